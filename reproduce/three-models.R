# The three models of the article and the conference paper, with data drawn as their appendices say,
# and one fit with its CPU seconds. Sourced by items.

# Rows of a linear regression: 5 columns and an intercept, unit noise, coefficients from the prior.
linear_rows <- function(n) {
  x <- matrix(rnorm(5 * n), n)
  list(model = linear_regression(sigma = 1, prior_sd = 1),
       data = list(x = x, y = as.vector(cbind(x, 1) %*% rnorm(6) + rnorm(n))))
}

# Rows of a regression with 4 classes, 10 columns and intercepts; 44 parameters.
softmax_rows <- function(n) {
  x <- matrix(rnorm(10 * n), n)
  utility <- cbind(x, 1) %*% matrix(rnorm(44), 11) - log(-log(matrix(runif(4 * n), n)))
  list(model = softmax_regression(prior_sd = 1),
       data = list(x = x, y = factor(max.col(utility), 1:4)))
}

# Rows of a mixture of 5 normal distributions in the plane; 24 free parameters.
mixture_rows <- function(n) {
  centre <- rbind(c(-3, -2), c(2.5, 3), c(0, 0), c(3.5, -2.5), c(-2.5, 3)) + rnorm(10, sd = 0.3)
  sd <- matrix(runif(10, 0.5, 1.2), 5)
  z <- sample.int(5, n, replace = TRUE, prob = runif(5, 0.5, 1.5) * c(0.3, 0.25, 0.2, 0.15, 0.1))
  list(model = gaussian_mixture(components = 5, location = 0, rate = 1),
       data = centre[z, ] + sd[z, ] * matrix(rnorm(2 * n), n))
}

# Rows of a one-dimensional mixture of 3 normal distributions (9 parameters, 8 of them free).
three_clusters <- function(n) {
  set.seed(4)
  centre <- sample(c(-1, 0.5, 2), n, replace = TRUE)
  list(model = gaussian_mixture(components = 3, location = 0, rate = 1),
       data = matrix(rnorm(n, centre, c(0.7, 0.6, 0.8)[match(centre, c(-1, 0.5, 2))])))
}

THREE_MODELS <- list(linear = linear_rows, softmax = softmax_rows, mixture = mixture_rows)

rows_of_model <- function(name, n, seed = 1) {
  set.seed(seed)
  THREE_MODELS[[name]](n)
}

first_rows <- function(problem, n) {
  data <- problem$data
  problem$data <- if (is.matrix(data)) data[seq_len(n), , drop = FALSE] else
    list(x = data$x[seq_len(n), ], y = data$y[seq_len(n)])
  problem
}

rows_in <- function(problem) if (is.matrix(problem$data)) problem$data else problem$data$x

# The closed form of a linear regression; importance sampling around the modes elsewhere, the mean
# of the runs that have found the best modes. With few rows, whose posterior is farther from normal,
# there are more draws.
truth_of <- function(problem, draws = min(max(2e7 / NROW(rows_in(problem)), 400), 10000)) {
  exact <- tryCatch(model_functions(problem$model, problem$data)$exact(), error = function(e) NULL)
  if (is.numeric(exact)) return(exact)
  value <- vapply(1:3, function(seed)
    suppressWarnings(evidence(problem$model, problem$data, laplace(importance = round(draws)),
                              seed = seed, progress = FALSE))$log_evidence, 0)
  mean(value[value > max(value) - 0.5])
}

cpu_of <- function(code) {
  spent <- system.time(code, gcFirst = FALSE)
  spent[["user.self"]] + spent[["sys.self"]]
}

# A fit, with its CPU seconds at each moment of its trace, and how often it computed the density of
# a row or its gradient, which does not depend on the machine.
timed_fit <- function(problem, method, seed = 1) {
  cpu <- cpu_of(fit <- suppressWarnings(evidence(problem$model, problem$data, method, seed = seed,
                                                 progress = FALSE)))
  fit$cpu <- cpu
  fit$computed <- sum(fit$work[c("likelihoods", "gradients")])
  if (is.data.frame(fit$trace) && "seconds" %in% names(fit$trace))
    fit$trace$cpu <- fit$trace$seconds / max(fit$trace$seconds) * cpu
  fit
}

# Nested sampling as the papers use it: two live points sit in a local mode in some runs, and all
# estimators tend to be too low, so that the thesis (5.1.2) takes the largest of several estimates.
# A row for each seed.
nested_runs <- function(problem, seeds) do.call(rbind, lapply(seq_len(seeds), function(seed) {
  fit <- timed_fit(problem, nested(preset = "paper"), seed)
  data.frame(seed = seed, log_evidence = fit$log_evidence, seconds = fit$cpu,
             computed = fit$computed)
}))

# The estimates of a data set: of several runs of nested sampling the largest (and the median of
# what they cost).
references <- function(table) {
  nested <- table$method == "nested"
  cell <- paste(table$model, table$dataset, table$n)[nested]
  best <- do.call(rbind, lapply(split(table[nested, ], factor(cell, unique(cell))), function(own)
    transform(own[which.max(own$log_evidence), ], seconds = median(own$seconds),
              computed = median(own$computed))))
  rbind(table[!nested, ], best)
}

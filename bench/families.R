# Every family of regression() with 1 to 20 coefficients and 20 to 1,000,000 rows: is the evidence
# right, and is the stated error?  Each seed has fresh data; with more than 100,000 rows, where the
# reference takes ten times as long as the estimate, seeds share DATA_SETS sets of data.
#
#   Rscript bench/families.R run [seeds = 100] [rows = 20,1000] [file = bench/results/families.csv]
#     [families, comma-separated] [references = a file of an earlier run]
#   Rscript bench/families.R report [file]
#
# A run adds what is missing in the file and can be stopped at any time. References do not depend on
# the package's estimates, so that they can be those of an earlier run. A reference is importance
# sampling with densities in plain R. The proposal is Student's t distribution; its centre and scale
# are those of the posterior's peak at first and then, with few rows, in three rounds the mean and
# covariance of the weighted draws. If the weights are uneven and there is one further parameter,
# it is integrated on a grid. With unknown normal noise the reference is an integral over one
# parameter, and t regressions with as many coefficients as rows are mixtures of normal ones.

suppressPackageStartupMessages(library(logevidence))

PRIOR_SD <- 2.5
COEFFICIENTS <- c(1, 2, 5, 20)
DATA_SETS <- 11

log_sum <- function(x) max(x) + log(sum(exp(x - max(x))))

# Families ----------------------------------------------------------------------------------------

# `draw` makes responses from linear predictors; `density` has the log density of each row for each
# point: y (rows), eta (rows x points), a (points x further parameters).
half_t <- function(log_sigma)
  log(2) + dt(exp(log_sigma) / 2.5, 3, log = TRUE) - log(2.5) + log_sigma
exponential_1 <- function(log_a) log_a - exp(log_a)
# inverse gamma with shape 2 and scale 10
prior_df <- function(log_df) 2 * log(10) - 2 * log_df - 10 / exp(log_df)
each <- function(a, eta) rep(a, each = nrow(eta))

FAMILIES <- list(
  poisson = list(
    family = poisson(), draw = function(eta) rpois(length(eta), exp(1 + eta)),
    density = function(y, eta, a) y * eta - exp(eta) - lgamma(y + 1)),
  binomial = list(
    family = binomial(), draw = function(eta) rbinom(length(eta), 1, plogis(eta)),
    density = function(y, eta, a) plogis((2 * y - 1) * eta, log.p = TRUE)),
  probit = list(
    family = binomial("probit"), draw = function(eta) rbinom(length(eta), 1, pnorm(eta)),
    density = function(y, eta, a) pnorm((2 * y - 1) * eta, log.p = TRUE)),
  gaussian = list(
    family = gaussian(), draw = function(eta) eta + rnorm(length(eta)),
    further = list(half_t),
    density = function(y, eta, a) dnorm(y, eta, each(exp(a[, 1]), eta), log = TRUE)),
  student_fixed = list(
    family = family_student(4), draw = function(eta) eta + rt(length(eta), 4),
    further = list(half_t),
    density = function(y, eta, a)
      dt((y - eta) / each(exp(a[, 1]), eta), 4, log = TRUE) - each(a[, 1], eta)),
  student = list(
    family = family_student(inverse_gamma(2, 10)), draw = function(eta) eta + rt(length(eta), 4),
    further = list(half_t, prior_df),
    density = function(y, eta, a) dt((y - eta) / each(exp(a[, 1]), eta), each(exp(a[, 2]), eta),
                                     log = TRUE) - each(a[, 1], eta)),
  negative_binomial = list(
    family = family_negative_binomial(),
    draw = function(eta) rnbinom(length(eta), mu = exp(1 + eta), size = 2),
    further = list(exponential_1),
    density = function(y, eta, a) dnbinom(y, each(exp(a[, 1]), eta), mu = exp(eta), log = TRUE)),
  gamma = list(
    family = Gamma("log"), draw = function(eta) rgamma(length(eta), 2, 2 / exp(eta)),
    further = list(exponential_1),
    density = function(y, eta, a) {
      shape <- each(exp(a[, 1]), eta)
      dgamma(y, shape, shape / exp(eta), log = TRUE)
    }),
  weibull = list(
    family = family_weibull(), draw = function(eta) rweibull(length(eta), 1.5, exp(eta)),
    further = list(exponential_1),
    density = function(y, eta, a)
      dweibull(y, each(exp(a[, 1]), eta), exp(eta), log = TRUE))
)

make_data <- function(family, p, n, seed) {
  set.seed(seed)
  x <- matrix(rnorm(n * (p - 1)), n, dimnames = list(NULL, sprintf("x%d", seq_len(p - 1))))
  w <- c(rnorm(1, sd = 0.5), rnorm(p - 1, sd = 0.7 / sqrt(max(p - 1, 1))))
  x1 <- cbind(1, x)
  list(x = x1, y = as.double(family$draw(drop(x1 %*% w))), frame = data.frame(y = 0, x))
}

# References --------------------------------------------------------------------------------------

# The log posterior of points, without the evidence; in blocks of rows.
log_posterior <- function(family, data, theta) {
  p <- ncol(data$x)
  further <- theta[, -seq_len(p), drop = FALSE]
  value <- rowSums(dnorm(theta[, seq_len(p), drop = FALSE], 0, PRIOR_SD, log = TRUE))
  for (k in seq_along(family$further)) value <- value + family$further[[k]](further[, k])
  size <- max(1, floor(2e6 / nrow(theta)))
  for (at in seq(1, nrow(data$x), by = size)) {
    rows <- at:min(at + size - 1, nrow(data$x))
    eta <- data$x[rows, , drop = FALSE] %*% t(theta[, seq_len(p), drop = FALSE])
    value <- value + colSums(matrix(family$density(data$y[rows], eta, further), length(rows)))
  }
  ifelse(is.nan(value), -Inf, value)
}

# Importance sampling from Student's t distribution: log mean weight, its error, the draws.
t_sampling <- function(target, centre, root, draws, df) {
  d <- length(centre)
  z <- matrix(rnorm(draws * d), draws)
  u <- rchisq(draws, df) / df
  theta <- rep(centre, each = draws) + (z / sqrt(u)) %*% root
  proposal <- lgamma((df + d) / 2) - lgamma(df / 2) - d / 2 * log(df * pi) -
    sum(log(diag(root))) - (df + d) / 2 * log1p(rowSums(z^2) / u / df)
  log_weight <- target(theta) - proposal
  weight <- exp(log_weight - max(log_weight))
  list(value = log_sum(log_weight) - log(draws), ess = sum(weight)^2 / sum(weight^2),
       se = sd(weight) / mean(weight) / sqrt(draws), theta = theta, weight = weight / sum(weight))
}

# With a proposal that is adapted in rounds, the first ones with flattened weights, so that no
# single draw decides.
adapted_t_sampling <- function(target, centre, root, draws, df) {
  now <- t_sampling(target, centre, 1.2 * root, draws, df)
  for (power in c(0.3, 0.6, 1, 1)) {
    weight <- now$weight^power / sum(now$weight^power)
    centre <- colSums(weight * now$theta)
    away <- now$theta - rep(centre, each = draws)
    root <- tryCatch(chol(crossprod(away * sqrt(weight))), error = function(e) root)
    now <- t_sampling(target, centre, root, draws, df)
  }
  now
}

newton_peak <- function(f, theta, free = seq_along(theta)) {
  value <- function(t) f$log_prior(t) + f$log_lik(t)
  now <- value(theta)
  for (k in 1:200) {
    gradient <- (f$log_prior_gradient(theta) + f$gradient(theta))[free]
    curvature <- -(f$log_prior_hessian(theta) + f$hessian(theta))[free, free, drop = FALSE]
    parts <- eigen(curvature, symmetric = TRUE)
    shape <- parts$vectors %*% (t(parts$vectors) / pmax(abs(parts$values), 1e-8))
    step <- drop(shape %*% gradient)
    size <- min(1, 3 / max(abs(step)))
    repeat {
      next_theta <- theta
      next_theta[free] <- theta[free] + size * step
      new <- value(next_theta)
      if (is.finite(new) && new >= now - 1e-9 || size < 1e-6) break
      size <- size / 2
    }
    theta <- next_theta
    if (abs(new - now) < 1e-10 * (1 + abs(now)) && sum(step * gradient) < 1e-6) break
    now <- new
  }
  list(theta = theta, root = chol((shape + t(shape)) / 2))
}

by_t <- function(family, data, f, draws) {
  target <- function(theta) log_posterior(family, data, theta)
  many <- nrow(data$x) > 500
  # with very many rows the posterior is so near normal that few draws from a normal are enough
  df <- if (nrow(data$x) > 1e5) 1e6 else if (many) 20 else 8
  start <- c(rep(0, ncol(data$x)), rep(0, length(family$further)))
  peak <- newton_peak(f, start)
  if (many) {
    now <- t_sampling(target, peak$theta, peak$root, draws, df)
    return(list(truth = now$value, truth_se = now$se, truth_ess = now$ess / draws))
  }
  now <- adapted_t_sampling(target, peak$theta, peak$root, draws, df)
  list(truth = now$value, truth_se = now$se, truth_ess = now$ess / draws)
}

# On a grid of one further parameter, with importance sampling over the coefficients.
by_grid <- function(family, data, f, draws) {
  p <- ncol(data$x)
  width <- 0.15
  at_point <- function(a, start) {
    peak <- newton_peak(f, c(start, a), seq_len(p))
    target <- function(w) log_posterior(family, data, cbind(w, a))
    found <- adapted_t_sampling(target, peak$theta[seq_len(p)], peak$root, draws, 8)
    c(list(start = peak$theta[seq_len(p)]), found[c("value", "se", "ess")])
  }
  centre <- newton_peak(f, rep(0, p + 1))$theta
  best <- at_point(centre[p + 1], centre[seq_len(p)])
  table <- data.frame(value = best$value, se = best$se, ess = best$ess)
  for (side in c(-1, 1)) {
    start <- best$start
    for (k in 1:400) {
      found <- at_point(centre[p + 1] + side * width * k, start)
      start <- found$start
      table <- rbind(table, found[c("value", "se", "ess")])
      if (found$value < max(table$value) - 18) break
    }
  }
  share <- exp(table$value - log_sum(table$value))
  list(truth = log_sum(table$value) + log(width), truth_se = sqrt(sum((share * table$se)^2)),
       truth_ess = min(table$ess[share > 1e-3]) / draws)
}

# With normal noise the coefficients have an integral in closed form.
by_noise <- function(data) {
  values <- svd(data$x, nu = ncol(data$x), nv = 0)
  within <- drop(crossprod(values$u, data$y))
  outside <- sum(data$y^2) - sum(within^2)
  n <- length(data$y)
  rank <- length(values$d)
  value <- function(s) {
    variance <- exp(2 * s) + PRIOR_SD^2 * values$d^2
    half_t(s) - n / 2 * log(2 * pi) - sum(log(variance) + within^2 / variance) / 2 -
      (n - rank) * s - max(outside, 0) / exp(2 * s) / 2
  }
  peak <- optimise(value, c(-20, 5), maximum = TRUE)
  start <- seq(-20, 5, length.out = 2001)
  heights <- vapply(start, value, 0)
  peak <- max(heights, peak$objective)
  inside <- range(start[heights > peak - 40], start[which.max(heights)] + c(-0.0125, 0.0125))
  grid <- seq(inside[1], inside[2], length.out = 4001)
  list(truth = log_sum(vapply(grid, value, 0)) + log(diff(grid[1:2])), truth_se = 1e-6,
       truth_ess = 1)
}

# Student's t distribution is normal given a scale for each row, so that the coefficients have an
# integral in closed form; the scales and further parameters are drawn from the prior. The Cholesky
# factors of all draws are made together, column by column.
by_scales <- function(name, data, draws) {
  n <- length(data$y)
  square <- PRIOR_SD^2 * tcrossprod(data$x)
  sigma <- abs(2.5 * rt(draws, 3))
  df <- if (name == "student") 10 / rgamma(draws, 2) else 4
  root <- z <- vector("list", n)
  value <- rep(-n / 2 * log(2 * pi), draws)
  for (j in seq_len(n)) {
    root[[j]] <- vector("list", n)
    for (i in j:n) {
      rest <- square[i, j] + if (i == j) sigma^2 * df / rchisq(draws, df) else 0
      for (k in seq_len(j - 1)) rest <- rest - root[[k]][[i]] * root[[k]][[j]]
      root[[j]][[i]] <- if (i == j) sqrt(rest) else rest / root[[j]][[j]]
    }
    rest <- data$y[j]
    for (k in seq_len(j - 1)) rest <- rest - root[[k]][[j]] * z[[k]]
    z[[j]] <- rest / root[[j]][[j]]
    value <- value - log(root[[j]][[j]]) - z[[j]]^2 / 2
  }
  value[is.nan(value)] <- -Inf
  weight <- exp(value - max(value))
  list(truth = log_sum(value) - log(draws), truth_se = sd(weight) / mean(weight) / sqrt(draws),
       truth_ess = sum(weight)^2 / sum(weight^2) / draws)
}

reference <- function(name, data, f) {
  if (name == "gaussian") return(by_noise(data))
  family <- FAMILIES[[name]]
  n <- nrow(data$x)
  if (startsWith(name, "student") && n <= ncol(data$x)) return(by_scales(name, data, 1e5))
  draws <- if (n > 1e5) 24 else if (n > 100) 2000 else if (name == "student") 40000 else 10000
  found <- by_t(family, data, f, draws)
  if (found$truth_se > 0.03 && n <= 100 && length(family$further) != 1)
    found <- by_t(family, data, f, 20 * draws)
  if (found$truth_se > 0.03 && length(family$further) == 1 && n <= 1000)
    found <- by_grid(family, data, f, draws / 2)
  found
}

# Cells -------------------------------------------------------------------------------------------

data_set <- function(rows, seed) ifelse(rows > 1e5, (seed - 1) %% DATA_SETS + 1, seed)

# Fits one set of data with all of `seeds`. `truth` is its reference if a run has found it before.
cell <- function(name, p, n, set, seeds, truth) {
  family <- FAMILIES[[name]]
  data <- make_data(family, p, n, 1000 * set + p)
  data$frame$y <- data$y
  model <- logevidence:::at_unit_one(regression(y ~ ., family = family$family, prior_sd = 2.5))
  if (is.null(truth)) truth <- reference(name, data, model_functions(model, data$frame))
  failed <- list(log_evidence = NA, se = NA, source = "error", warnings = "")
  do.call(rbind, lapply(seeds, function(seed) {
    seconds <- system.time(fit <- tryCatch(
      suppressWarnings(evidence(model, data$frame, seed = seed, threads = 1)),
      error = function(e) failed))[["elapsed"]]
    data.frame(family = name, coefficients = p, rows = n, seed = seed,
               truth = truth$truth, truth_se = truth$truth_se, truth_ess = truth$truth_ess,
               log_evidence = fit$log_evidence, se = fit$se, source = fit$source,
               warnings = length(setdiff(fit$warnings, fit$prior_conflict)), seconds = seconds)
  }))
}

run <- function(seeds, sizes, file, families, references) {
  read <- function(file) if (file.exists(file)) read.csv(file, strip.white = TRUE)
  done <- read(file)
  known <- rbind(done, read(references))
  key <- function(d) paste(d$family, d$coefficients, d$rows, d$seed)
  todo <- expand.grid(seed = seq_len(seeds), coefficients = COEFFICIENTS, family = families,
                      rows = sizes, stringsAsFactors = FALSE)
  todo <- todo[!key(todo) %in% key(done), ]
  todo$set <- data_set(todo$rows, todo$seed)
  # sets of data last, so that all cells have about as many whenever it is stopped
  cells <- unique(todo[order(todo$rows, todo$set), c("family", "coefficients", "rows", "set")])
  for (k in seq_len(nrow(cells))) {
    now <- cells[k, ]
    same <- function(d) d$family == now$family & d$coefficients == now$coefficients &
      d$rows == now$rows & data_set(d$rows, d$seed) == now$set
    before <- if (!is.null(known)) known[same(known), ]
    found <- cell(now$family, now$coefficients, now$rows, now$set, todo$seed[same(todo)],
                  if (NROW(before)) before[1, ])
    new <- !file.exists(file)
    write.table(format(found, digits = 12), file, append = !new, sep = ",", row.names = FALSE,
                col.names = new, quote = FALSE)
  }
}

report <- function(file) {
  all <- read.csv(file, strip.white = TRUE)
  stopped <- is.na(all$log_evidence)
  lost <- aggregate(list(errors = stopped), all[c("family", "coefficients", "rows")], sum)
  all <- all[!stopped, ]
  all$error <- all$log_evidence - all$truth
  all$z <- all$error / sqrt(all$se^2 + all$truth_se^2)
  cells <- split(all, list(all$coefficients, all$rows, all$family), drop = TRUE)
  table <- do.call(rbind, lapply(cells, function(d) data.frame(
    family = d$family[1], coefficients = d$coefficients[1], rows = d$rows[1], seeds = nrow(d),
    mean_error = mean(d$error), rms_error = sqrt(mean(d$error^2)), stated = median(d$se),
    truth_se = median(d$truth_se), within_2 = mean(abs(d$z) < 2), within_4 = mean(abs(d$z) < 4),
    largest_z = max(abs(d$z)), checked = mean(d$source == "audit"), warned = sum(d$warnings > 0),
    seconds = median(d$seconds))))
  table <- merge(table, lost, all = TRUE)
  table <- table[order(table$rows, table$family, table$coefficients), ]
  options(width = 200)
  print(format(table, digits = 2, scientific = FALSE), row.names = FALSE)
  cat("\nAll: ", nrow(all), " runs and ", sum(stopped), " errors; within 2 errors ",
      format(mean(abs(all$z) < 2), digits = 3),
      ", within 4 ", format(mean(abs(all$z) < 4), digits = 4), ", mean square of z ",
      format(mean(all$z^2), digits = 3), "\n", sep = "")
  invisible(table)
}

given <- commandArgs(TRUE)
argument <- function(k, default) if (length(given) >= k) given[k] else default
what <- argument(1, "report")
if (what == "run") {
  run(as.integer(argument(2, "100")), as.numeric(strsplit(argument(3, "20,1000"), ",")[[1]]),
      argument(4, "bench/results/families.csv"),
      strsplit(argument(5, paste(names(FAMILIES), collapse = ",")), ",")[[1]], argument(6, ""))
} else if (what == "report") {
  report(argument(2, "bench/results/families.csv"))
} else {
  stop("`", what, "` must be `run` or `report`.")
}

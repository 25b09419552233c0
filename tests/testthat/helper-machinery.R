# Doors into the machinery, and the models on which it is tested. Everything here is deterministic
# given a seed; LOGEVIDENCE_TEST_SEED moves all seeds at once, LOGEVIDENCE_SLOW=true turns on the
# long variants.

test_seed <- function(k = 1) k + as.numeric(Sys.getenv("LOGEVIDENCE_TEST_SEED", "0"))

is_slow <- function() identical(Sys.getenv("LOGEVIDENCE_SLOW"), "true")
skip_unless_slow <- function()
  testthat::skip_if_not(is_slow(), "Long variant, LOGEVIDENCE_SLOW is not true")
# The slow suite does more of the same: more seeds, more draws, more cases.
fast_or_slow <- function(fast, slow) if (is_slow()) slow else fast

# check_model() has two threads call each function of a model for 40 ms. That is half of its time,
# and of use only where threads are the point.
seconds_of_threads <- function(seconds) {
  check <- utils::getFromNamespace("CHECK", "logevidence")
  utils::assignInNamespace("CHECK", replace(check, "threads", list(seconds)), "logevidence")
}
seconds_of_threads(fast_or_slow(0.004, 0.04))

# One sentence, without a call, of the package's class.
refused <- function(code, sentence) {
  error <- testthat::expect_error(code, class = "logevidence_error")
  testthat::expect_match(conditionMessage(error), sentence, fixed = TRUE)
  testthat::expect_match(conditionMessage(error), "\\.$")
  testthat::expect_null(conditionCall(error))
}

# A fit whose warnings are not raised, for tests that read them from `fit$warnings` or are of
# something else.
quiet_fit <- function(...) muffled(evidence(...))

# What print shows, as it stands and with the lines run together.
printed <- function(x, ...) paste(utils::capture.output(print(x, ...)), collapse = "\n")
said <- function(x) gsub("[ \n]+", " ", printed(x))

# The x and y of each series of points and lines that `code` draws with R's graphics.
drawn_series <- function(code) {
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  grDevices::dev.control("enable")
  force(code)
  calls <- lapply(grDevices::recordPlot()[[1]], `[[`, 2)
  series <- Filter(function(call) {
    inherits(call[[1]], "NativeSymbolInfo") && identical(call[[1]]$name, "C_plotXY")
  }, calls)
  lapply(series, function(call) as.data.frame(call[[2]][c("x", "y")]))
}

# A seed as the two words C takes.
words <- function(k = 1) c(0, test_seed(k))

# Statistical claims: how many standard errors the mean of `x` (a column for each quantity) is from
# `expected`.
z_score <- function(x, expected = 0) {
  x <- as.matrix(x)
  (colMeans(x) - expected) / (apply(x, 2, stats::sd) / sqrt(nrow(x)))
}
expect_z <- function(z, limit = 4.5) {
  testthat::expect_true(all(is.finite(z)) && max(abs(z)) < limit,
                        info = paste("z-scores:", paste(format(z, digits = 3), collapse = " ")))
}

# The model functions of C, with rows as C has them: an observation in each column.
ask <- function(model, what, theta = NULL, rows = matrix(0, model$width, 0), extra = list()) {
  if (!is.null(theta) && !is.matrix(theta)) theta <- matrix(theta, ncol = 1)
  .Call(ffi_model, model$type, model$args, rows, what, theta, extra)
}
facts <- function(model) .Call(ffi_model_facts, model$type, model$args)
# Points as relabelled by C.
relabelled <- function(model, theta, reference)
  ask(model, "relabel", theta, extra = list(other = reference))$theta

mean_model <- function(sigma = 1, prior_mean = 0, prior_sd = 1) {
  list(type = "gaussian_mean", dim = 1, width = 1,
       args = list(sigma = sigma, prior_mean = prior_mean, prior_sd = prior_sd))
}
conjugate_model <- function(type, ...) list(type = type, dim = 1, width = 2, args = list(...))
linear_model <- function(p, sigma = 1, prior_mean = 0, prior_sd = 1) {
  list(type = "linear_regression", dim = p, width = p + 1,
       args = list(covariates = p, sigma = sigma, prior_mean = prior_mean, prior_sd = prior_sd))
}
softmax_model <- function(p, classes, prior_sd = 1) {
  list(type = "softmax_regression", dim = p * classes, width = p + 1,
       args = list(covariates = p, classes = classes, prior_sd = prior_sd))
}
mixture_model <- function(components, p, location = 0, mean_scale = 2, shape = 1, rate = 1,
                          concentration = 1) {
  list(type = "gaussian_mixture", dim = components - 1 + 2 * components * p, width = p,
       args = list(components = components, dimensions = p, location = location,
                   mean_scale = mean_scale,
                   shape = shape, rate = rate, concentration = concentration))
}

# n rows with covariates of all sizes; responses are drawn given `theta`.
some_rows <- function(model, n, theta, seed = 1) {
  set.seed(test_seed(seed))
  rows <- matrix(stats::rnorm(n * model$width), model$width)
  # exposures and trials
  if (model$type %in% c("poisson_rate", "binomial_probability")) rows[1, ] <- ceiling(rows[1, ]^2)
  ask(model, "simulate", theta, rows, list(seed = words(seed)))
}

prior_draws <- function(model, n, seed = 1)
  ask(model, "draw_prior", extra = list(n = n, seed = words(seed)))

# Moves of a kernel; a point in each column.
run_kernel <- function(kernel, model, rows, theta, seed = 1, ..., words = c(0, test_seed(seed))) {
  if (!is.matrix(theta)) theta <- matrix(theta, model$dim)
  settings <- lapply(list(...), function(x) if (is.character(x)) x else as.double(x))
  .Call(ffi_kernel_moves, model$type, model$args, kernel, rows, theta, settings, words)
}

# Mean and precision of a quadratic model's posterior where the first `seen` rows count fully, the
# others lambda times.
gaussian_posterior <- function(model, rows, seen = ncol(rows), lambda = 0) {
  p <- model$dim
  x <- if (model$type == "gaussian_mean") matrix(1, ncol(rows), 1) else
    t(rows[seq_len(p), , drop = FALSE])
  y <- rows[model$width, ]
  weight <- ifelse(seq_len(ncol(rows)) <= seen, 1, lambda) / model$args$sigma^2
  # models with normal priors only have shorter names for their settings
  args <- model$args
  sd <- if (is.null(args$prior_scale)) args$prior_sd else args$prior_scale
  centre <- if (is.null(args$prior_location)) args$prior_mean else args$prior_location
  prior <- rep(1 / sd^2, length.out = p)
  precision <- crossprod(x, weight * x) + diag(prior, p)
  list(mean = drop(solve(precision, crossprod(x, weight * y) + prior * centre)),
       precision = precision)
}

# m points, `spread` standard deviations wide and `shift` of them away.
gaussian_draws <- function(target, m, seed = 1, spread = 1, shift = 0) {
  set.seed(test_seed(seed))
  p <- length(target$mean)
  target$mean + backsolve(chol(target$precision), matrix(spread * stats::rnorm(p * m) + shift, p))
}

# First and second moments of whitened points, one row for each point; expectations 0, 1 and 0.
whitened_moments <- function(theta, target) {
  p <- length(target$mean)
  z <- t(chol(target$precision) %*% (matrix(theta, p) - target$mean))
  squares <- z^2 - 1
  products <- if (p > 1) do.call(cbind, lapply(seq_len(p - 1), function(j) z[, j] * z[, j + 1]))
  cbind(z, squares, products)
}

# Runs by hand.
run_problem <- function(model, data, method, seed = 1, threads = 1) {
  encoded <- encode(model, data)
  list(problem = new_problem(model, encoded, method, words(seed), threads), rows = encoded$rows)
}
start_run <- function(setup) {
  run <- .Call(ffi_run_new, setup$problem)
  .Call(ffi_run_feed, run, setup$rows, "last")
  run
}
finish_run <- function(run) {
  while (.Call(ffi_run_advance, run, 0.05, Inf) == "more") NULL
  timeless(run_result(run))
}
# What a fresh R with the package says to some lines of code.
new_session <- function(...) {
  script <- tempfile(fileext = ".R")
  on.exit(unlink(script))
  writeLines(c(sprintf(".libPaths(%s)", deparse1(.libPaths())), "library(logevidence)", ...),
             script)
  paste(suppressWarnings(system2(file.path(R.home("bin"), "Rscript"), script, stdout = TRUE,
                                 stderr = TRUE)), collapse = "\n")
}
timeless <- function(result) {
  result$seconds <- result$trace$seconds <- NULL
  result
}

# A fit without what may differ between equal fits: times, also in the state of the run.
essence <- function(fit) {
  fit$trace$seconds <- fit$state <- NULL
  fit$work <- fit$work[names(fit$work) != "seconds"]
  unclass(fit[names(fit) != "call"])
}

# End to end.

# The fast suite takes a quarter of the seeds, or as many as `least`.
fast_seeds <- function(seeds, least = 6)
  if (is_slow()) seeds else utils::head(seeds, max(least, ceiling(length(seeds) / 4)))

fits_of <- function(problem, method, seeds, least = 6) {
  lapply(test_seed(fast_seeds(seeds, least)), function(seed)
           quiet_fit(problem$model, problem$data, method, seed = seed, progress = FALSE))
}

#' Every estimate within 4 standard errors of the truth, its own and the reference's together, and
#' no drift of the mean
#'
#' @param drift Largest mean error in nats that is forgiven besides the spread: the logarithm of
#'   an unbiased estimate is low by half its variance.
expect_truth <- function(problem, method, seeds = 1:10, drift = 0.02) {
  fits <- fits_of(problem, method, seeds, least = 2)
  of <- function(what) vapply(fits, what, 0)
  sources <- list(
    reported = list(value = of(function(f) f$log_evidence), se = of(function(f) f$se)),
    sampler = list(value = of(function(f) f$sampler$log_evidence),
                   se = of(function(f) f$sampler$se))
  )
  for (source in names(sources)) {
    value <- sources[[source]]$value
    se <- sources[[source]]$se
    label <- paste0(problem$name, ", ", method$name, ", ", source)
    expect_true(all(is.finite(value) & is.finite(se) & se > 0),
                label = paste("finite estimates of", label))
    z <- (value - problem$log_evidence) / sqrt(se^2 + problem$se^2)
    expect_lt(max(abs(z)), 4, label = paste("largest |z| of", label))
    error <- mean(value) - problem$log_evidence
    allowed <- 4 * sqrt(mean(se^2) / length(value) + problem$se^2) + drift
    expect_lt(abs(error), allowed, label = paste0("mean error of ", label))
  }
}

#' The result of a run that is saved after so many slices of work, and restored into a fresh one
resumed <- function(problem, rows, slices, seconds = 0) {
  run <- .Call(ffi_run_new, problem)
  .Call(ffi_run_feed, run, rows, "last")
  for (slice in seq_len(slices)) .Call(ffi_run_advance, run, seconds, Inf)
  state <- .Call(ffi_run_save, run)
  run <- .Call(ffi_run_new, replace(problem, "restore", TRUE))
  .Call(ffi_run_restore, run, state)
  while (.Call(ffi_run_advance, run, 1, Inf) == "more") NULL
  run_result(run)
}

#' Two fits with the same bits
expect_same <- function(one, other, info = NULL) {
  for (part in c("log_evidence", "se", "draws", "log_weights", "n", "data_id", "pairing",
                 "warnings", "sampler", "audit", "bound", "nested", "replicates"))
    testthat::expect_identical(one[[part]], other[[part]], info = paste(info, part))
}

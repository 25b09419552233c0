# The example package, which adds a model in C by the public header: installed here, it can do what
# the package's own models do.

installed <- if (identical(Sys.getenv("NOT_CRAN"), "true")) local({
  folder <- tempfile("library")
  dir.create(folder)
  source <- file.path(tempfile("source"), "poissonrate")
  dir.create(dirname(source))
  file.copy(system.file("examples", "poissonrate", package = "logevidence"), dirname(source),
            recursive = TRUE)
  libraries <- paste(c(folder, .libPaths()), collapse = .Platform$path.sep)
  old <- Sys.getenv("R_LIBS", NA)
  Sys.setenv(R_LIBS = libraries)
  on.exit(if (is.na(old)) Sys.unsetenv("R_LIBS") else Sys.setenv(R_LIBS = old))
  said <- tryCatch(suppressWarnings(system2(
    file.path(R.home("bin"), "R"),
    c("CMD", "INSTALL", "--no-test-load", paste0("--library=", folder), source),
    stdout = TRUE, stderr = TRUE)), error = function(e) conditionMessage(e))
  example <- "poissonrate"
  if (requireNamespace(example, lib.loc = folder, quietly = TRUE)) TRUE
  else paste(utils::tail(said, 3), collapse = " ")
})
needs_package <- function() {
  skip_on_cran()
  if (!isTRUE(installed)) skip(paste("The example package does not install here:", installed))
}
poisson_rate <- function(...) getExportedValue("poissonrate", "poisson_rate")(...)

counts <- with_own_seed(test_seed(3), {
  x <- rnorm(40)
  data.frame(y = rpois(40, exp(0.5 + 0.7 * x)), x = x)
})
quadrature <- function(data, prior_sd, slope = TRUE) {
  log_f <- function(a, b) vapply(seq_along(a), function(i) {
    sum(dpois(data$y, exp(a[i] + b[i] * data$x), log = TRUE)) + dnorm(a[i], 0, prior_sd, TRUE) +
      if (slope) dnorm(b[i], 0, prior_sd, TRUE) else 0
  }, 0)
  grid <- seq(-1, 2, 0.01)
  if (!slope) return(log(sum(exp(log_f(grid, 0 * grid)))) + log(0.01))
  both <- expand.grid(a = grid, b = grid)
  value <- log_f(both$a, both$b)
  max(value) + log(sum(exp(value - max(value)))) + 2 * log(0.01)
}

test_that("the model of the example package passes check_model()", {
  needs_package()
  for (seed in seq_len(fast_or_slow(1, 3))) {
    found <- check_model(poisson_rate(y ~ x), counts, seed = test_seed(seed))
    expect_equal(found$what[which(!found$holds)], character())
    must <- c("gradient", "second derivatives", "simulate", "width")
    expect_true(all(found$holds[found$check %in% must]))
  }
})

test_that("the example's evidence is that of quadrature, by the default method and others", {
  needs_package()
  truth <- quadrature(counts, 2)
  for (method in list(sgais(), smc(), nested(100), laplace(importance = 500))) {
    fit <- evidence(poisson_rate(y ~ x, prior_sd = 2), counts, method, seed = test_seed(1),
                    progress = FALSE)
    expect_lt(abs(logml(fit) - truth), 4 * fit$se + 0.01, label = paste("error of", method$name))
  }
})

test_that("fits of the example can be printed, predicted, compared and simulated", {
  needs_package()
  fit <- evidence(poisson_rate(y ~ x, prior_sd = 2), counts, seed = test_seed(1), progress = FALSE)
  expect_output(print(fit), "Regression of counts")
  glm <- stats::glm(y ~ x, stats::poisson, counts)
  new <- data.frame(x = c(-1, 0, 1))
  expect_equal(predict(fit, new), unname(predict(glm, new, type = "response")), tolerance = 0.1)
  expect_equal(unname(coef(fit)), unname(coef(glm)), tolerance = 0.2)
  expect_length(predict(fit, counts, type = "density"), 40)
  expect_error(predict(fit, new, type = "density"))
  expect_length(fitted(fit, counts), 40)
  flat <- evidence(poisson_rate(y ~ 1, prior_sd = 2), counts, seed = test_seed(1), progress = FALSE)
  expect_lt(abs(logml(flat) - quadrature(counts, 2, slope = FALSE)), 4 * flat$se + 0.01)
  table <- compare_models(slope = fit, flat = flat)
  expect_output(print(table), "slope")
  again <- simulate(poisson_rate(y ~ x), nsim = 2, seed = test_seed(), data = counts)
  expect_true(all(again[[1]]$y >= 0 & again[[1]]$y == round(again[[1]]$y)))
  expect_error(evidence(poisson_rate(y ~ x), data.frame(y = -1, x = 1)), "whole numbers")
})

test_that("data that contradict the example's prior give a warning", {
  needs_package()
  far <- data.frame(y = rep(2000, 20), x = 1)
  fit <- quiet_fit(poisson_rate(y ~ 1, prior_sd = 0.5), far, laplace(), seed = test_seed(1))
  expect_match(fit$prior_conflict, "prior standard deviations from its prior mean", fixed = TRUE)
})

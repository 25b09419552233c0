# The standard error of a run: the relative variance of the weights where nothing is resampled, the
# spread of repeated runs where there is.

set.seed(test_seed(2))
sample_y <- rnorm(25, 1)
centre <- gaussian_mean(sigma = 1, prior_sd = 2)
line <- linear_regression(y ~ x, sigma = 1, prior_sd = 2)
pairs <- data.frame(x = rnorm(80))
pairs$y <- 1 - pairs$x + rnorm(80)

relative_variance <- function(log_weights) {
  w <- exp(log_weights - max(log_weights))
  w <- w / sum(w)
  sum((w - 1 / length(w))^2)
}

test_that("without resampling the standard error is that of the weights, exactly", {
  for (method in list(likelihood_weighting(300), ais(50, linear(30)),
                      smc("data", 50, chunk = 3, resampling = "none"),
                      sgais(preset = "paper", chunk = 10))) {
    for (data in list(sample_y, pairs)) {
      fit <- quiet_fit(if (is.data.frame(data)) line else centre, data, method, seed = test_seed())
      expect_equal(fit$sampler$se^2, relative_variance(fit$sampler$log_weights), tolerance = 1e-9)
    }
  }
})

test_that("steps that depend on the particles add to the standard error", {
  for (method in list(ais(50, adaptive(0.7)), ais(preset = "paper")))
    for (data in list(sample_y, pairs)) {
    fit <- quiet_fit(if (is.data.frame(data)) line else centre, data, method, seed = test_seed())
    ratio <- fit$sampler$se^2 / relative_variance(fit$sampler$log_weights)
    expect_gte(ratio, 1)
    # of 300 seeds, at most 10.6; the few particles of the paper's settings can be anything
    if (is.null(method$call$preset)) expect_lt(ratio, 15)
  }
})

test_that("the errors in the trace begin at that of the first step and end at that of the fit", {
  fit <- evidence(centre, sample_y, ais(40, linear(10)), seed = test_seed(2))
  expect_equal(tail(fit$trace$se, 1), fit$sampler$se, tolerance = 1e-12)
  expect_false(is.unsorted(fit$trace$lambda))
  fit <- evidence(centre, sample_y, likelihood_weighting(100), seed = test_seed(2))
  expect_equal(fit$trace$se, fit$sampler$se)
})

test_that("weights of equal particles have no error", {
  # one observation that says nothing: sigma is huge
  fit <- evidence(gaussian_mean(sigma = 1e8), c(1, 2), smc(particles = 50), seed = test_seed(3))
  expect_lt(fit$se, 1e-10)
})

# Estimates and stated errors of repeated runs.
repeated <- function(method, runs, model = centre, data = sample_y) {
  vapply(seq_len(runs), function(s) {
    fit <- evidence(model, data, method, seed = test_seed(1000 + s))
    c(fit$sampler$log_evidence, fit$sampler$se)
  }, c(0, 0))
}

test_that("with resampling the standard error is the spread of repeated runs", {
  runs <- fast_or_slow(60, 200)
  exact <- model_functions(centre, sample_y)$exact()
  thermal <- function(...) smc(particles = 100, kernel = rwm(), steps = 10, ...)
  methods <- list(
    thermal = thermal(ess = 0.7, threshold = 1),
    data = smc("data", 100, chunk = 2, kernel = rwm(), steps = 10, move = "always"),
    stratified = thermal(ess = 0.6, resampling = "stratified", threshold = 0.9),
    unresampled = ais(100, linear(8), kernel = rwm(), steps = 5)
  )
  for (name in names(methods)) {
    found <- repeated(methods[[name]], runs)
    spread <- stats::sd(found[1, ])
    stated <- sqrt(mean(found[2, ]^2))
    expect_gt(stated / spread, 0.7)
    expect_lt(stated / spread, 1.5)
    # the evidence itself, not its log, is unbiased, or nearly so for adaptive schedules
    ratio <- exp(found[1, ] - exact)
    expect_lt(abs(mean(ratio) - 1), 4.5 * stats::sd(ratio) / sqrt(runs) + 0.01)
  }
})

test_that("the error shrinks as one over the root of the particles", {
  stated <- vapply(c(100, 400), function(m) {
    mean(repeated(smc(particles = m, ess = 0.7 * m, kernel = rwm(), steps = 5), 20)[2, ])
  }, 0)
  expect_lt(abs(stated[1] / stated[2] - 2), 0.4)
})

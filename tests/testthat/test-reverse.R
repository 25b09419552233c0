# A mode that particles from the prior never reach: the likelihood has a sharp peak with long tails,
# 40 prior standard deviations away.
hidden <- function(gradient = TRUE) {
  custom_model(
    "a", vectorised = TRUE,
    log_likelihood = function(theta) -80 * log1p((theta[, 1] - 40)^2 / 0.01),
    log_prior = function(theta) dnorm(theta[, 1], log = TRUE), draw_prior = function(n) rnorm(n),
    gradient = if (gradient) function(theta) -160 * (theta - 40) / (0.01 + (theta - 40)^2),
    prior_gradient = if (gradient) function(theta) -theta
  )
}
hidden_truth <- function() {
  log(integrate(function(x) exp(-80 * log1p((x - 40)^2 / 0.01) + dnorm(x, log = TRUE) + 800), 39.5,
                40.5, rel.tol = 1e-10)$value) - 800
}
missed <- function(fit) any(grepl("missed a part of the posterior", fit$failed))

test_that("a peak that tempered particles miss and climbs find gives a warning", {
  for (method in list(smc(), ais(), bridge(), power_posterior())) {
    fit <- suppressWarnings(evidence(hidden(), method = method, seed = test_seed()))
    expect_lt(fit$log_evidence, hidden_truth() - 100)
    expect_true(missed(fit), info = method$name)
    expect_true(all(fit$failed %in% fit$warnings))
  }
  expect_true(missed(suppressWarnings(evidence(hidden(FALSE), method = smc(kernel = slice()),
                                               seed = test_seed()))))
})

test_that("mixtures that particles have missed give a warning", {
  model <- gaussian_mixture(components = 2)
  set.seed(test_seed())
  clusters <- rbind(matrix(rnorm(160), 80), matrix(rnorm(160, 4), 80))
  data <- list(faithful, scale(faithful) + 10, clusters + 10, clusters + 14)
  bound <- c(-1240, -664.3, -640, -700)
  for (i in seq_along(data)) for (method in list(smc(), bridge())) {
    fit <- suppressWarnings(evidence(model, data[[i]], method, seed = test_seed()))
    expect_true(missed(fit) || fit$log_evidence > bound[i], info = paste(i, method$name))
  }
})

test_that("there is no warning where nothing is missed", {
  cars <- as.data.frame(scale(mtcars))
  set.seed(test_seed())
  clusters <- scale(rbind(matrix(rnorm(80), 40), matrix(rnorm(80, 3), 40)))
  seeds <- test_seed(seq_len(fast_or_slow(1, 3)))
  for (seed in seeds) for (method in list(smc(), ais(), bridge())) {
    expect_false(missed(evidence(linear_regression(mpg ~ wt + hp, sigma = 0.5,
                                                   prior_sd = 1), cars, method,
                                 seed = seed)))
    expect_false(missed(evidence(gaussian_mixture(components = 2), clusters, method, seed = seed)))
  }
})

test_that("recording a path does not change a run", {
  model <- linear_regression(mpg ~ wt + hp, sigma = 0.5, prior_sd = 1)
  encoded <- logevidence:::encode(model, as.data.frame(scale(mtcars)))
  for (method in list(smc(), bridge())) {
    problem <- logevidence:::new_problem(model, encoded, method, c(0, 1))
    recorded <- logevidence:::recorded(problem, method, encoded)
    expect_identical(recorded$settings$record, 1)
    runs <- lapply(list(problem, recorded), logevidence:::conduct, encoded$rows)
    expect_identical(runs[[1]]$draws, runs[[2]]$draws)
    expect_identical(runs[[1]]$log_evidence, runs[[2]]$log_evidence)
  }
})

test_that("a reverse run agrees with a run that knows the peak, and is far above one without it", {
  walk_back <- function(model, data, method, peak, seed) {
    encoded <- logevidence:::encode(model, data)
    problem <- logevidence:::recorded(logevidence:::new_problem(model, encoded, method, c(0, seed)),
                                      method, encoded)
    run <- logevidence:::conduct(problem, encoded$rows)
    logevidence:::reverse_run_estimate(problem, encoded, run$path, peak) - drop(run$log_evidence)
  }
  cars <- as.data.frame(scale(mtcars))
  model <- linear_regression(mpg ~ wt + hp, sigma = 0.5, prior_sd = 1)
  peak <- coef(lm(mpg ~ wt + hp, cars))
  gaps <- sapply(test_seed(1:6), function(seed) sapply(list(smc(), bridge(), ais()),
                                            function(m) walk_back(model, cars, m, peak, seed)))
  expect_lt(max(abs(gaps)), 5)
  set.seed(test_seed())
  expect_gt(walk_back(hidden(), NULL, smc(), 40, 1), 100)
})

test_that("methods without a check of their own are compared with optimisation", {
  # One mode is near the prior and has much noise; the other is 16 prior standard deviations away.
  y <- as.vector(100 + scale(qnorm((1:30 - 0.5) / 30)))
  model <- linear_regression(y ~ 1, prior_sd = 6.02)
  log_sigma <- seq(-2, 8, 0.005)
  # the mean has an integral in closed form
  value <- vapply(log_sigma, function(s) {
    v <- exp(2 * s)
    -15 * log(2 * pi) - 29 * s - log(v + 30 * 6.02^2) / 2 -
      (sum((y - mean(y))^2) / v + 30 * mean(y)^2 / (v + 30 * 6.02^2)) / 2 +
      log(2) + dt(exp(s) / 2.5, 3, log = TRUE) - log(2.5) + s
  }, 0)
  truth <- max(value) + log(sum(exp(value - max(value)))) + log(0.005)
  for (method in list(nested(), hybrid(), smc("data"))) {
    fit <- quiet_fit(model, data.frame(y), method, seed = test_seed())
    expect_true(missed(fit))
    expect_gt(truth - fit$log_evidence, 1)
    # nothing is missed where the prior is at the rows
    near <- quiet_fit(model, data.frame(y = y - 100), method, seed = test_seed())
    expect_false(missed(near))
  }
})

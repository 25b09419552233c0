# Particles that cannot enter a narrow part of the posterior, though averages of their moves look
# well, and others that have settled.

# A funnel in ten dimensions as the likelihood, under a normal prior.
funnel <- function() {
  rest <- function(x) x[, -1, drop = FALSE]
  custom_model(
    paste0("x", 1:10), vectorised = TRUE,
    log_likelihood = function(x) {
      dnorm(x[, 1], 0, 3, log = TRUE) + rowSums(dnorm(rest(x), 0, exp(x[, 1] / 2), log = TRUE))
    },
    gradient = function(x) {
      narrow <- exp(-x[, 1])
      unname(cbind(-x[, 1] / 9 - 4.5 + rowSums(rest(x)^2) * narrow / 2, -rest(x) * narrow))
    },
    log_prior = function(x) rowSums(dnorm(x, 0, 3, log = TRUE)),
    prior_gradient = function(x) unname(-x / 9),
    draw_prior = function(n) matrix(rnorm(10 * n, 0, 3), n)
  )
}
unsettled <- function(fit) any(grepl("The particles do not represent", fit$failed))

test_that("a warning says that the particles still change when moved at the end", {
  density <- function(v) dnorm(v, 0, 3)^2 * dnorm(0, 0, sqrt(exp(v) + 9))^9
  truth <- log(integrate(function(v) 1e9 * density(v), -40, 40, rel.tol = 1e-10)$value) - log(1e9)
  quiet <- function(...) suppressWarnings(evidence(...))
  fits <- lapply(test_seed(1:4), function(seed) quiet(funnel(), method = smc(), seed = seed))
  errors <- vapply(fits, function(fit) fit$log_evidence - truth, 0)
  expect_lt(mean(errors), -0.2)
  expect_gte(sum(vapply(fits, unsettled, NA)), 3)
  for (fit in fits) expect_true(all(fit$failed %in% fit$warnings))
})

test_that("there is no warning where the particles no longer change", {
  cars <- as.data.frame(scale(mtcars))
  set.seed(test_seed())
  clusters <- scale(rbind(matrix(rnorm(80), 40), matrix(rnorm(80, 3), 40)))
  seeds <- test_seed(seq_len(fast_or_slow(1, 2)))
  for (seed in seeds) for (method in list(smc(), ais(), bridge())) {
    model <- linear_regression(mpg ~ wt + hp, sigma = 0.5, prior_sd = 1)
    line <- suppressWarnings(evidence(model, cars, method, seed = seed))
    expect_false(unsettled(line), info = method$name)
    model <- gaussian_mixture(components = 2)
    mixture <- suppressWarnings(evidence(model, clusters, method, seed = seed))
    expect_false(unsettled(mixture), info = method$name)
  }
})

test_that("the check changes no bit of the run, and finds particles of another posterior", {
  model <- linear_regression(mpg ~ wt + hp, sigma = 0.5, prior_sd = 1)
  encoded <- logevidence:::encode(model, as.data.frame(scale(mtcars)))
  problem <- logevidence:::new_problem(model, encoded, smc(), c(0, 1))
  problem <- logevidence:::recorded(problem, smc(), encoded)
  run <- logevidence:::conduct(problem, encoded$rows)
  most <- 0.4 * logevidence:::evaluations_of(run)
  found <- logevidence:::settled(problem, encoded, run, model, most)
  expect_lt(abs(found$change), 4 * found$se)
  expect_null(logevidence:::settled_warning(found))
  run$draws <- 3 * run$draws # far too wide
  found <- logevidence:::settled(problem, encoded, run, model, most)
  expect_match(logevidence:::settled_warning(found), "raise their mean log-likelihood")
})

test_that("weights with a heavy tail give a warning", {
  # the posterior is narrow beside the prior: the mean of 2,000 weights has hardly met it
  data <- data.frame(x = qnorm(ppoints(60)))
  data$y <- 2 * data$x + cos(1e3 * data$x)
  model <- linear_regression(y ~ x, sigma = 0.3, prior_sd = 10)
  fits <- lapply(fast_or_slow(1:6, 1:40), function(seed)
    quiet_fit(model, data, likelihood_weighting(2000), seed = test_seed(seed)))
  expect_true(all(vapply(fits, function(fit) "no_mean" %in% names(fit$failed), NA)))
  # few rows: even weights, and no sentence
  few <- quiet_fit(gaussian_mean(), c(0.3, -0.2), likelihood_weighting(2000), seed = test_seed(1))
  expect_null(few$failed)
  truth <- logml(evidence(gaussian_mean(), c(0.3, -0.2), exact()))
  expect_lt(abs(logml(few) - truth), 4 * few$se)
})

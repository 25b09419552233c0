# Fractional and partial Bayes factors against closed forms, and the plots of a tempered path.

rows <- c(1.2, 0.4, 2.1, 0.9, 1.5, -0.3)
closed <- function(y, power = 1, sd = 1, prior_sd = 3) {
  # the integral of prior times likelihood to a power
  n <- length(y)
  precision <- 1 / prior_sd^2 + power * n / sd^2
  slope <- power * sum(y) / sd^2
  -power * (n * log(2 * pi * sd^2) + sum(y^2) / sd^2) / 2 - log(prior_sd * sqrt(precision)) +
    slope^2 / precision / 2
}

test_that("the evidence beyond a fraction is that of the closed form", {
  model <- gaussian_mean(prior_sd = 3)
  methods <- list(smc(ess = 0.97), ais(particles = 500), power_posterior(run = smc(ess = 0.95)))
  for (method in methods)
    for (fraction in c(1 / 6, 0.5)) {
      fits <- lapply(test_seed(1:4), function(seed) quiet_fit(model, rows, method, seed = seed))
      found <- partial_evidence(fits, fraction)
      truth <- closed(rows) - closed(rows, fraction)
      z <- (mean(found$log_evidence) - truth) / (sqrt(sum(found$se^2)) / 4)
      expect_lt(abs(z), 4.5)
      expect_true(all(found$se < 0.2))
    }
})

test_that("the evidence beyond some rows is that of the closed form", {
  model <- gaussian_mean(prior_sd = 3)
  fits <- lapply(test_seed(1:4), function(seed)
    quiet_fit(model, rows, smc("data", order = "given"), seed = seed))
  found <- partial_evidence(fits, 2)
  expect_equal(found$training, rep(2, 4))
  z <- (mean(found$log_evidence) - (closed(rows) - closed(rows[1:2]))) / (sqrt(sum(found$se^2)) / 4)
  expect_lt(abs(z), 4.5)
  race <- evidence(list(narrow = model, wide = gaussian_mean(prior_sd = 300)), rows, seed = 1)
  found <- partial_evidence(race, 2)
  expect_setequal(found$model, c("narrow", "wide"))
  truth <- c(narrow = closed(rows) - closed(rows[1:2]),
             wide = closed(rows, prior_sd = 300) - closed(rows[1:2], prior_sd = 300))
  expect_lt(max(abs(found$log_evidence - truth[found$model]) / found$se), 4.5)
  # the width of the prior hardly matters
  expect_lt(abs(diff(truth)), 0.1)
})

test_that("the stated error is the spread over seeds", {
  model <- gaussian_mean(prior_sd = 3)
  found_by <- function(method, training) do.call(rbind, lapply(test_seed(1:60), function(seed)
    partial_evidence(quiet_fit(model, rows, method, seed = seed), training)))
  by_fraction <- found_by(smc(ess = 0.97), 0.5)
  truth <- closed(rows) - closed(rows, 0.5)
  ratio <- sqrt(mean((by_fraction$log_evidence - truth)^2) / mean(by_fraction$se^2))
  expect_gt(ratio, 0.6)
  expect_lt(ratio, 1.6)
  by_rows <- found_by(smc("data", order = "given"), 3)
  truth <- closed(rows) - closed(rows[1:3])
  ratio <- sqrt(mean((by_rows$log_evidence - truth)^2) / mean(by_rows$se^2))
  expect_gt(ratio, 0.6)
  expect_lt(ratio, 1.6)
  expect_true(all(by_fraction$reliable & by_rows$reliable))
})

test_that("a fit that failed its checks has no reliable partial evidence", {
  fit <- quiet_fit(gaussian_mean(), rows, smc("data"), seed = 1)
  fit$failed <- "paths"
  expect_false(partial_evidence(fit, 2)$reliable)
})

test_that("fits whose trace does not have the evidence of a part are refused with the reason", {
  refused <- function(code, text) expect_error(code, text, class = "logevidence_error")
  whole <- quiet_fit(gaussian_mean(), rows, smc(), seed = 1)
  refused(partial_evidence(whole, 2), "chunks")
  by_rows <- quiet_fit(gaussian_mean(), rows, smc("data"), seed = 1)
  refused(partial_evidence(by_rows, 0.5), "tempered")
  refused(partial_evidence(by_rows, 6), "less than")
  refused(partial_evidence(whole, -1), "`training`")
  refused(partial_evidence(1, 0.5), "`fit`")
  race <- evidence(list(a = gaussian_mean(), b = gaussian_mean(prior_sd = 1)), rows, seed = 1)
  refused(partial_evidence(race, 0.5), "number of rows")
})

test_that("a tempered path shows mean and variance of the log-likelihood", {
  fit <- quiet_fit(gaussian_mean(prior_sd = 3), rows, power_posterior(run = smc(ess = 0.95)),
                   seed = test_seed(1))
  path <- fit$power$path[fit$power$path$lambda > 0, ]
  phase <- drawn_series(plot(fit, "phase"))
  line <- Filter(function(s) length(s$x) == nrow(path), phase)[[1]]
  expect_equal(line$y, path$lambda^2 * path$variance)
  # one parameter that the data have fixed: half a unit of heat capacity
  expect_lt(abs(utils::tail(line$y, 1) - 0.5), 0.25)
  energy <- drawn_series(plot(fit, "energy"))
  expect_equal(Filter(function(s) length(s$x) == nrow(path), energy)[[1]]$y, path$mean)
  expect_error(plot(quiet_fit(gaussian_mean(), rows, smc(), seed = 1), "phase"), "`type`")
})

test_that("the default method knows the evidence after some rows, and else names the method", {
  data <- data.frame(x = qnorm(ppoints(200)), g = gl(20, 10))
  data$y <- data$x + 3 * sin(1e3 * data$x)
  model <- linear_regression(y ~ x, sigma = 3, prior_sd = 10)
  refused(partial_evidence(quiet_fit(regression(y ~ x), data), 50), "used all 200 rows at once")
  groups <- quiet_fit(regression(y ~ x + (1 | g)), data, smc("data", particles = 50), seed = 1)
  refused(partial_evidence(groups, 5), "adds groups, not rows")
  more <- data[rep(1:200, 10), ]
  fit <- quiet_fit(model, more, sgais(early = list(rows = 300)), seed = test_seed(1))
  expect_gt(nrow(fit$trace), 3)
  found <- partial_evidence(fit, 400)
  expect_true(found$training >= 400 && found$training < 2000)
  # rows are in random order: on average each adds as much
  mean <- fit$log_evidence / 2000 * (2000 - found$training)
  expect_lt(abs(found$log_evidence / mean - 1), 0.1)
  last <- max(fit$trace$n[fit$trace$n < 2000])
  refused(partial_evidence(fit, last + 1), paste("must be at most", count(last)))
})

test_that("the default method has the evidence beyond the first of many rows", {
  y <- with_own_seed(test_seed(2), rnorm(3000, 1))
  model <- gaussian_mean(prior_sd = 2, sigma = 1)
  fit <- quiet_fit(model, y, seed = test_seed(3))
  found <- partial_evidence(fit, 1200)
  expect_true(found$reliable)
  expect_true(found$training >= 1200 && found$training < 3000)
  # the run has taken rows in random order
  closed <- function(rows) evidence(model, rows, exact())$log_evidence
  beyond <- with_own_seed(test_seed(4),
                          replicate(40, closed(y) - closed(sample(y, found$training))))
  expect_lt(abs(found$log_evidence - mean(beyond)), 4.5 * sqrt(var(beyond) + found$se^2))
})

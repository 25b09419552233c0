# bridge() and power_posterior(): right on problems of known evidence, and the same as other code
# makes of their draws.

run <- function(problem, method = bridge(), seed = 1, ...) {
  quiet_fit(problem$model, problem$data, method, seed = test_seed(seed), progress = FALSE, ...)
}
line <- truth_problem("cars")

# The bridge ---------------------------------------------------------------------------------------

# The errors are as small as a thousandth, and known from fifty chains: their tails are those of t.
expect_right <- function(problem, method, seeds, label = deparse1(method$call)) {
  fits <- fits_of(problem, method, seeds)
  value <- vapply(fits, `[[`, 0, "log_evidence")
  se <- vapply(fits, `[[`, 0, "se")
  expect_lt(max(abs(value - problem$log_evidence) / sqrt(se^2 + problem$se^2)), 5.5, label = label)
  expect_lt(abs(mean(value) - problem$log_evidence),
            5 * sqrt(mean(se^2) / length(fits) + problem$se^2) + 1e-3,
            label = label)
  expect_lt(abs(log(stats::sd(value) / mean(se))), log(1.6) + 2 / sqrt(2 * length(fits)),
            label = label)
  # of the mixture's posterior a chain may stay in one mode: 2 of 60 seeds
  alarms <- sum(lengths(lapply(fits, `[[`, "failed")) > 0)
  rare <- if (grepl("^mix", problem$name)) stats::qbinom(0.9999, length(fits), 0.04) else 0
  expect_lte(alarms, rare, label = paste("alarms of", label))
}

test_that("bridge() is right, and its standard error is the spread over seeds", {
  seeds <- c(mean100 = 60, cars = 60, mtcars = 40, softmax_tiny = 30, iris_petal = 12,
             mix2_dozen = 12)
  for (name in names(seeds))
    expect_right(truth_problem(name), bridge(), seq_len(seeds[[name]]), name)
})

test_that("bridge() is right with other kernels and numbers of draws", {
  for (method in list(bridge(kernel = rwm(), steps = 10), bridge(kernel = slice()), bridge(10, 400),
                      bridge(300, 20), bridge(kernel = mala(), steps = 5)))
    expect_right(line, method, 1:20)
  expect_right(truth_problem("mix2_galaxies"), bridge(draws = 60), 1:4)
})

test_that("draws of bridge() are the posterior's", {
  posterior <- list(precision = crossprod(line$x) / 225 + diag(2) / 100)
  posterior$mean <- drop(solve(posterior$precision, crossprod(line$x, line$y) / 225))
  moments <- t(vapply(fits_of(line, bridge(), 1:40), function(f) {
    colMeans(whitened_moments(t(f$draws), posterior))
  }, numeric(5)))
  expect_z(z_score(moments))
  fit <- run(line, bridge(20, 30))
  expect_identical(dim(fit$draws), c(600L, 2L))
})

test_that("package bridgesampling has the same estimate from the same draws", {
  skip_if_not_installed("bridgesampling")
  for (name in fast_or_slow("cars", c("cars", "softmax_tiny", "iris_petal"))) {
    problem <- truth_problem(name)
    fit <- run(problem, bridge(draws = 60))
    f <- model_functions(problem$model, problem$data)
    draws <- fit$parameters
    colnames(draws) <- paste0("p", seq_len(f$dim))
    bound <- function(at) stats::setNames(rep(at, f$dim), colnames(draws))
    # at a random order, as it fits to the first half and bridges to the second
    other <- with_own_seed(test_seed(), bridgesampling::bridge_sampler(
      draws[sample(nrow(draws)), ], log_posterior = function(theta, data)
        f$log_prior(theta) + f$log_lik(theta),
      data = NULL, lb = bound(-Inf), ub = bound(Inf), silent = TRUE
    ))
    error <- sqrt(bridgesampling::error_measures(other)$re2)
    expect_lt(abs(other$logml - fit$log_evidence), 4 * sqrt(fit$se^2 + error^2))
    expect_lt(abs(other$logml - problem$log_evidence), 5 * sqrt(fit$se^2 + error^2))
  }
})

test_that("too few draws for a normal density give a warning", {
  refused(run(truth_problem("mtcars"), bridge(2, 2)),
          "The draws are too few, or too much alike, for fitting a normal density")
  refused(run(truth_problem("mtcars"), bridge(4, 4, kernel = hmc(step_size = 1e6))),
          "or another kernel")
})

test_that("bad settings of bridge() are refused before the run", {
  for (particles in list(1, 0, 2.5, NA, "many", 2:3))
    refused(bridge(particles), "`particles` must be a whole number")
  for (draws in list(1, 0, 2.5, NA, "many", NULL))
    refused(bridge(draws = draws), "`draws` must be a whole number")
  for (steps in list(0, -1, 1.5, NA))
    refused(bridge(steps = steps), "`steps` must be a whole number")
  for (kernel in list(sghmc(), sgld(), baoab()))
    refused(bridge(kernel = kernel),
            paste0("`kernel` must have an accept step, hmc(), mala() or rwm(), not ", kernel$name,
                   "()."))
  refused(bridge(kernel = hmc), "`kernel` must be a kernel")
  refused(bridge(kernel = logevidence::kernel_prior_draws()), "prior_draws() is for nested()")
})

# Power posteriors ---------------------------------------------------------------------------------

test_that("power_posterior() is right by either rule", {
  for (rule in c("stepping", "thermodynamic")) {
    for (name in c("mean100", "cars", "mtcars", "softmax_tiny"))
      expect_truth(truth_problem(name), power_posterior(rule), drift = 0.04)
    expect_truth(truth_problem("mix2_dozen"), power_posterior(rule), 1:4, drift = 0.04)
    expect_truth(line, power_posterior(rule, ais()), drift = 0.05)
  }
})

test_that("stepping stones give the estimate of the walk itself", {
  for (problem in list(line, truth_problem("softmax_tiny"))) {
    for (walk in list(smc(), smc(ess = 0.95), smc(resampling = "none"), ais(),
                      ais(50, linear(20)))) {
      alone <- run(problem, walk)
      fit <- run(problem, power_posterior(run = walk))
      expect_identical(fit$log_evidence, alone$log_evidence)
      expect_identical(fit$se, alone$se)
      expect_equal(fit$power$stepping, fit$log_evidence, tolerance = 1e-10)
      expect_identical(fit$draws, alone$draws)
      thermodynamic <- run(problem, power_posterior("thermodynamic", walk))
      expect_identical(thermodynamic$power, fit$power)
      expect_identical(thermodynamic$log_evidence, fit$power$corrected)
      expect_identical(thermodynamic$se, fit$power$se)
    }
  }
})

test_that("the thermodynamic integral is that of plain R", {
  for (walk in list(smc(), ais(50, linear(20)))) {
    fit <- run(line, power_posterior("thermodynamic", walk))
    power <- fit$power
    at <- power$path$lambda
    expect_identical(at[c(1, length(at))], c(0, 1))
    expect_false(is.unsorted(at, strictly = TRUE))
    expect_equal(at[-1], fit$trace$lambda)
    rule <- power$path$rule[-length(at)]
    expect_true(is.na(power$path$rule[length(at)]))
    plain <- correction <- replaced <- 0
    for (k in seq_along(at)[-1]) {
      trapezoid <- (at[k] - at[k - 1]) * (power$path$mean[k] + power$path$mean[k - 1]) / 2
      plain <- plain + trapezoid
      if (rule[k - 1] == "corrected")
        correction <- correction -
          (at[k] - at[k - 1])^2 * (power$path$variance[k] - power$path$variance[k - 1]) / 12
      if (rule[k - 1] == "ratio") replaced <- replaced + power$path$log_ratio[k - 1] - trapezoid
    }
    expect_equal(power$thermodynamic, plain)
    expect_equal(power$corrected, plain + correction + replaced)
    expect_equal(power$stepping, sum(utils::head(power$path$log_ratio, -1)))
    alone <- run(line, walk)
    expect_equal(power$se,
                 sqrt(alone$se^2 + (correction / 4)^2 + (power$corrected - power$stepping)^2))
    expect_gt(fit$se, alone$se)
  }
})

#' Of the linear problem at a power: the evidence, and mean and variance of the log-likelihood
closed_power <- function(lambda) {
  information <- crossprod(line$x) / line$sigma^2
  precision <- lambda * information + diag(1 / line$prior_sd^2)
  covariance <- solve(precision)
  centre <- drop(covariance %*% crossprod(line$x, line$y)) * lambda / line$sigma^2
  slope <- drop(crossprod(line$x, line$y)) / line$sigma^2 - drop(information %*% centre)
  spread <- information %*% covariance
  c(mean = sum(stats::dnorm(line$y, drop(line$x %*% centre), line$sigma, TRUE)) -
      sum(diag(spread)) / 2,
    variance = sum(diag(spread %*% spread)) / 2 + drop(slope %*% covariance %*% slope))
}

test_that("mean and variance along the path are those of the power posteriors", {
  fits <- fits_of(line, power_posterior(run = ais(400, linear(12), steps = 4)), 1:20, 20)
  for (k in c(2, 6, 13)) {
    truth <- closed_power(fits[[1]]$power$path$lambda[k])
    found <- function(what) vapply(fits, function(f) f$power$path[[what]][k], 0)
    expect_equal(mean(found("mean")), truth[["mean"]], tolerance = 0.01)
    expect_lt(abs(log(mean(found("variance")) / truth[["variance"]])), 0.35)
  }
  prior <- closed_power(0)
  first <- vapply(fits, function(f) c(f$power$path$mean[1], f$power$path$variance[1],
                                      f$power$path$ess[1]), numeric(3))
  expect_z(z_score(t(first[1:2, ]), prior))
  expect_equal(first[3, ], rep(400, 20))
})

test_that("the correction removes the error of wide steps", {
  fits <- fits_of(line, power_posterior("thermodynamic", smc(ess = 0.8)), 1:12)
  off <- function(what) mean(vapply(fits, function(f) f$power[[what]] - f$power$stepping, 0))
  expect_lt(3 * abs(off("corrected")), -off("thermodynamic"))
})

test_that("the integral is right under wide priors", {
  set.seed(test_seed())
  dozen <- data.frame(x = 1:12)
  dozen$y <- 2 + dozen$x / 2 + rnorm(12)
  models <- list(linear_regression(y ~ x, sigma = 1, prior_sd = 100),
                 linear_regression(y ~ x, prior_sd = 100))
  for (model in models) {
    truth <- evidence(model, dozen, exact())$log_evidence
    for (seed in test_seed(1:4)) {
      fit <- quiet_fit(model, dozen, power_posterior("thermodynamic"), seed = seed)
      expect_lt(abs(fit$log_evidence - truth), 4.5 * fit$se)
      expect_lt(fit$se, 0.5)
      expect_false("rules_apart" %in% names(fit$failed))
    }
  }
})

test_that("an interval is corrected only within the bounds of its integral", {
  rules <- function(variance, left, mean = c(-10, -5)) {
    path <- data.frame(lambda = c(0, 0.1), mean = mean, variance = variance, ess = 100)
    interval_rules(path, -0.1^2 * diff(variance) / 12, left)
  }
  # half of the rise times the width is 0.25, which a fall of the variance by 300 corrects by
  expect_equal(rules(c(349, 50), 90), "corrected")
  expect_equal(rules(c(1e6, 50), 90), "ratio")
  expect_equal(rules(c(1e6, 50), 30), "plain")
  expect_equal(rules(c(NaN, 50), 90, c(-Inf, -5)), "ratio")
  # a mean that does not rise, by chance
  expect_equal(rules(c(50, 40), 90, c(-5, -5.1)), "corrected")
})

test_that("power_posterior() refuses runs that do not anneal by powers of the likelihood", {
  refused(power_posterior("simpson"),
          "`rule` must be \"stepping\" or \"thermodynamic\", not \"simpson\".")
  refused(power_posterior(NULL), "`rule` must be")
  for (walk in list(smc("data"), nested(), sgais(), sequential(), likelihood_weighting(),
                    harmonic_mean(), bridge(),
                    laplace(), power_posterior(), hybrid(), online_nested()))
    refused(power_posterior(run = walk), paste0(
      "`run` must anneal by powers of the likelihood of all data: ais() or smc(\"thermal\"), not ",
      walk$name, "()."
    ))
  refused(power_posterior(run = smc), "`run` must be a method")
  refused(power_posterior(run = "smc"), "`run` must be a method")
  refused(power_posterior(run = NULL), "`run` must be a method")
})

test_that("fits by bridge() and power_posterior() print their method", {
  expect_output(print(run(line)), "50 particles, error from chains and proposal")
  expect_output(print(summary(run(line))), "Posterior, 5,000 draws")
  for (rule in c("stepping", "thermodynamic")) {
    fit <- run(line, power_posterior(rule), replicates = 2)
    expect_output(print(summary(fit)), "2 replicates")
    expect_output(print(power_posterior(rule)), "kernel: hmc")
  }
  expect_null(run(line)$power)
  expect_null(run(line, smc())$power)
})

# Bad input to evidence() and to the methods: one sentence that names the argument, or the right
# finite answer.

numbers <- data.frame(y = c(1.2, 0.3, 2.2, 1.9, -0.4, 0.8), x = c(0.5, -1, 1.3, 0.7, -0.2, 0.1),
                      class = factor(c("a", "b")), word = letters[1:6])
line <- linear_regression(y ~ x, sigma = 1, prior_sd = 1)
run <- function(model, data, ...) quiet_fit(model, data, ..., seed = test_seed(), progress = FALSE)

#' One sentence, in backticks the argument, without a call, of the package's class
refused <- function(code, argument, sentence = NULL) {
  error <- expect_error(code, class = "logevidence_error")
  said <- conditionMessage(error)
  expect_match(said, paste0("`", argument), fixed = TRUE)
  if (!is.null(sentence)) expect_match(said, sentence, fixed = TRUE)
  expect_match(said, "\\.$")
  expect_null(conditionCall(error))
}

sound <- function(fit) {
  expect_true(is.finite(fit$log_evidence) && is.finite(fit$se) && fit$se > 0)
  expect_true(is.finite(fit$sampler$log_evidence) && is.finite(fit$sampler$se))
  expect_true(all(is.finite(fit$draws)))
  expect_true(all(is.finite(fit$parameters)))
  expect_false(anyNA(fit$log_weights))
  expect_equal(sum(exp(fit$log_weights)), 1)
}

right <- function(fit, truth) {
  sound(fit)
  expect_lt(abs(fit$log_evidence - truth), 5 * fit$se)
  expect_lt(abs(fit$sampler$log_evidence - truth), 5 * fit$sampler$se)
}

#' Stops what takes too long, in seconds of the processor: other programs must not count
within_seconds <- function(limit, code) {
  on.exit(setTimeLimit())
  setTimeLimit(cpu = limit, transient = TRUE)
  code
}

# `careful` methods look before they leap, the others may be lost in a wide prior.
careful <- list(sgais(), ais(), smc())
all_methods <- c(careful, list(smc("data"), likelihood_weighting(), sequential(), harmonic_mean(),
                               sgais(preset = "paper")))

# Data ---------------------------------------------------------------------------------------------

test_that("missing and infinite values are refused, with column and row", {
  for (value in c(NA, NaN, Inf, -Inf)) {
    bad <- numbers
    bad$x[3] <- value
    refused(run(line, bad), "data", "`x`, row 3")
    refused(run(softmax_regression(class ~ x, prior_sd = 1), bad), "data", "`x`, row 3")
    refused(run(gaussian_mixture(~ x + y, components = 1), bad), "data", "`x`, row 3")
    bad <- numbers
    bad$y[2] <- value
    refused(run(line, bad), "data", "`y`, row 2")
    refused(run(gaussian_mean(), c(1, value)), "data", "row 2")
  }
  bad <- numbers
  bad$class[4] <- NA
  refused(run(softmax_regression(class ~ x, prior_sd = 1), bad), "data", "`class`, row 4")
})

test_that("data without rows or columns, or of the wrong kind, are refused", {
  refused(run(line, numbers[0, ]), "data", "at least one row")
  refused(run(softmax_regression(class ~ x,
                                 prior_sd = 1), numbers[0, ]), "data", "at least one row")
  refused(run(gaussian_mean(), numeric()), "data", "at least one row")
  refused(run(gaussian_mixture(components = 1), numbers[0, 1:2]), "data", "at least one row")
  refused(run(gaussian_mixture(components = 1), numbers[, 0]), "data", "at least one column")
  refused(linear_regression(y ~ 0, sigma = 1,
                            prior_sd = 1), "formula", "a covariate or an intercept")
  refused(run(line, NULL), "data")
  refused(run(line, "cars"), "data")
  refused(run(line, numbers["y"]), "data", "`x`")
  refused(run(linear_regression(sigma = 1, prior_sd = 1), list(x = 1:3, y = 1:2)), "data$y")
  refused(run(gaussian_mean(), letters), "data", "numeric")
  refused(run(linear_regression(word ~ x, sigma = 1, prior_sd = 1), numbers), "data", "`word`")
  refused(run(gaussian_mixture(components = 1), numbers), "data", "`class`")
  refused(run(linear_regression(y ~ f, sigma = 1,
                                prior_sd = 1), cbind(numbers, f = factor("a"))), "data",
          "at least two levels")
  refused(run(softmax_regression(class ~ x,
      prior_sd = 1), droplevels(numbers[numbers$class == "a", ])), "data",
          "at least two classes")
})

test_that("missing arguments are refused by name", {
  refused(evidence(line, seed = test_seed()), "data")
  refused(evidence(data = numbers, seed = test_seed()), "model")
})

test_that("a wrong object in the place of a formula or a method is named in the error", {
  said <- function(code, sentence)
    expect_error(code, sentence, fixed = TRUE, class = "logevidence_error")
  said(poisson_rate(absent), "`formula` must be a formula such as `y ~ 1` or `~ y`: object")
  said(linear_regression(absent), "`formula` must be a formula with a response")
  said(evidence(linear_regression(dist ~ speed), cars, "bridge"), "write `bridge()`")
  said(evidence(linear_regression(dist ~ speed), cars, "q"), "must be a method, such as")
  said(linear_regression(dist ~ speed, family = "student"), "argument of regression()")
  said(linear_regression(dist ~ speed, offset = log(speed)), "`y ~ x + offset(z)`")
  said(evidence(linear_regression(dist ~ log(speed - 5)), cars), "only finite values, not NaN")
  said(summary(quiet_fit(linear_regression(dist ~ speed), cars, laplace()), level = 0.5),
          "not `level`")
})

test_that("objects that are no model or no method are refused", {
  for (model in list(y ~ x, linear_regression, lm(y ~ x, numbers), NULL, "linear"))
    refused(run(model, numbers), "model")
  refused(run(line, numbers, sgais), "method", "add parentheses")
  for (method in list("sgais", NULL, list(), hmc(), NA))
    refused(run(line, numbers, method), "method")
})

test_that("wrong settings of models are refused when the model is made", {
  for (value in list(0, -1, NA, NaN, Inf, "a", NULL, c(1, 2))) {
    if (!is.null(value)) refused(linear_regression(y ~ x, sigma = value), "sigma", "positive")
    refused(gaussian_mean(sigma = value), "sigma", "positive")
    refused(gaussian_mean(prior_sd = value), "prior_sd", "positive")
  }
  for (value in list(0, -1, NA, Inf, "a")) {
    refused(linear_regression(y ~ x, prior_sd = value, sigma = 1), "prior_sd", "positive")
    refused(softmax_regression(class ~ x, prior_sd = value), "prior_sd", "positive")
  }
  refused(run(linear_regression(y ~ x, prior_sd = 1:3, sigma = 1), numbers), "prior_sd")
  for (value in list(0, 1.5, -1, NA, "2", 65, 1e12))
    refused(gaussian_mixture(components = value), "components")
})

# Methods ------------------------------------------------------------------------------------------

test_that("numbers of particles, steps and draws must be whole and in range", {
  for (method in list(sgais, ais, smc, likelihood_weighting, sequential, harmonic_mean))
    for (value in list(0, 1, 1.5, -3, 1e12, Inf, NA, NaN, "10", NULL, c(10, 20)))
      refused(method(particles = value), "particles")
  for (method in list(sgais, ais, smc, sequential, harmonic_mean))
    for (value in list(0, -1, 1.5, NA, 1e12, "a")) refused(method(steps = value), "steps")
  for (value in list(0, -1, 1.5, NA, 1e12, "a")) {
    refused(sgais(chunk = value), "chunk")
    refused(smc("data", chunk = value), "chunk")
    refused(sgais(batch = value), "batch")
    refused(sequential(batch = value), "batch")
    refused(sgais(audit_draws = value), "audit_draws")
    refused(harmonic_mean(draws = value), "draws")
    refused(linear(value), "steps")
    refused(sigmoidal(value), "steps")
  }
})

test_that("effective sample sizes out of range are refused", {
  for (value in list(0, -1, NA, Inf, "a", NULL, 1e4)) {
    refused(sgais(ess = value), "ess")
    refused(smc(ess = value), "ess")
    refused(ais(schedule = adaptive(value)), "ess")
    refused(sgais(early = list(ess = if (is.null(value)) NA else value)), "early$ess")
  }
})

test_that("words that are not among those of an argument are refused", {
  refused(sgais(preset = "turbo"), "preset", "\"default\" or \"paper\"")
  refused(ais(preset = "turbo"), "preset")
  refused(smc("both"), "path")
  refused(smc(resampling = "x"), "resampling")
  refused(smc(threshold = 2), "threshold")
  refused(smc("data", move = "never"), "move")
  refused(sgais(order = "x"), "order")
  refused(sgais(audit = "x"), "audit")
  refused(hmc(mass = "x"), "mass")
})

test_that("a kernel must suit its method", {
  refused(sgais(kernel = hmc()), "kernel", "mini-batches")
  refused(sgais(kernel = rwm()), "kernel", "mini-batches")
  refused(sequential(kernel = mala()), "kernel", "mini-batches")
  refused(ais(kernel = hmc), "kernel")
  refused(ais(kernel = "hmc"), "kernel")
  refused(ais(schedule = "linear"), "schedule")
  # the harmonic mean needs exact posterior draws, as its page says
  refused(harmonic_mean(kernel = baoab()), "kernel")
  refused(harmonic_mean(kernel = sghmc()), "kernel")
  sound(run(line, numbers, sgais(kernel = hmc(), batch = Inf)))
})

test_that("settings of the early phase are checked", {
  refused(sgais(early = 1), "early")
  refused(sgais(early = list(foo = 1)), "early", "`foo`")
  refused(sgais(early = list(5)), "early")
  refused(sgais(early = list(rows = 0)), "early$rows")
  refused(sgais(early = list(particles = 1)), "early$particles")
  refused(sgais(early = list(kernel = "hmc")), "early$kernel")
  refused(sgais(preset = "paper", early = list(rows = 10)), "early")
  refused(sgais(rate = 1), "rate")
})

test_that("seed, replicates, threads and progress are checked", {
  for (value in list(1.5, -1, NA, "a", 2^60, c(1, 2), Inf))
    refused(evidence(line, numbers, seed = value, progress = FALSE), "seed")
  for (value in list(0, -1, 1.5, NA, 1e9, "a", NULL)) {
    refused(run(line, numbers, threads = value), "threads")
    refused(run(line, numbers, replicates = value), "replicates")
  }
  for (value in list(NA, 1, "a", NULL))
    refused(evidence(line, numbers, seed = test_seed(), progress = value), "progress")
})

# Strange but legal data ---------------------------------------------------------------------------

test_that("one row gives the right evidence", {
  x <- cbind(1, numbers$x[1])
  truth <- linear_truth(x, numbers$y[1], 1, c(1, 1))
  component <- single_component_truth(numbers[1, c("y", "x")])
  for (method in all_methods) {
    # the harmonic mean is biased even here
    check <- if (method$name == "harmonic_mean") function(fit, truth) sound(fit) else right
    check(run(line, numbers[1, ], method), truth)
    check(run(gaussian_mean(), 1.5, method), dnorm(1.5, 0, sqrt(2), log = TRUE))
    check(run(softmax_regression(class ~ x, prior_sd = 1), numbers[1, ], method), -log(2))
    check(run(gaussian_mixture(components = 1, location = 0, rate = 1), numbers[1, c("y", "x")],
              method), component)
  }
})

test_that("constant columns, equal rows and more coefficients than rows have the right evidence", {
  with_constant <- cbind(numbers, z = 1)
  equal <- numbers[rep(1, 30), ]
  wide <- with_own_seed(test_seed(), data.frame(y = rnorm(5), matrix(rnorm(5 * 30), 5)))
  for (method in c(careful, list(smc("data")))) {
    right(run(linear_regression(y ~ x + z, sigma = 1, prior_sd = 1), with_constant, method),
          linear_truth(cbind(1, numbers$x, 1), numbers$y, 1, c(1, 1, 1)))
    right(run(line, equal, method), linear_truth(cbind(1, equal$x), equal$y, 1, c(1, 1)))
    right(run(linear_regression(y ~ ., sigma = 1, prior_sd = 1), wide, method),
          linear_truth(cbind(1, as.matrix(wide[-1])), wide$y, 1, rep(1, 31)))
    sound(run(softmax_regression(class ~ x, prior_sd = 1), equal, method))
  }
})

#' n equal points in K = 2: only the sizes of the two sets matter
equal_points_truth <- function(point, n) {
  size <- 0:n
  value <- function(m) lgamma(1 + m) +
    Reduce(`+`, lapply(point, function(y) cluster_marginal(m, m * y, m * y^2)))
  log_sum_exp(lchoose(n, size) + value(size) + value(n - size)) - lgamma(n + 2)
}

test_that("mixtures of equal points have the right evidence", {
  point <- unlist(numbers[1, c("y", "x")])
  expect_equal(equal_points_truth(point, 8), mixture_truth(matrix(point, 8, 2, byrow = TRUE), 2))
  equal <- matrix(point, 30, 2, byrow = TRUE)
  two <- gaussian_mixture(components = 2, location = 0, rate = 1)
  for (method in careful) {
    right(run(two, equal, method), equal_points_truth(point, 30))
    right(run(two, rep(0, 20), method), equal_points_truth(0, 20))
  }
})

test_that("covariates on a scale of a million have the right evidence", {
  far <- transform(numbers, x = x * 1e6)
  shifted <- transform(numbers, x = x + 1e6)
  for (method in fast_or_slow(careful[1], careful)) {
    right(run(line, far, method), linear_truth(cbind(1, far$x), far$y, 1, c(1, 1)))
    right(run(linear_regression(y ~ x, prior_sd = c(1, 1e-6), sigma = 1), far, method),
          linear_truth(cbind(1, far$x), far$y, 1, c(1, 1e-6)))
    right(run(line, shifted, method), linear_truth(cbind(1, shifted$x), shifted$y, 1, c(1, 1)))
    sound(run(softmax_regression(class ~ x, prior_sd = 1), far, method))
    sound(run(gaussian_mixture(components = 2), far[1:2], method))
  }
})

test_that("on extreme data each method is right within its standard error, or warns", {
  far <- transform(numbers, x = x * 1e6)
  truth <- linear_truth(cbind(1, far$x), far$y, 1, c(1, 1))
  for (method in list(smc("data"), likelihood_weighting(), sequential())) {
    fit <- tryCatch(run(line, far, method), logevidence_error = identity)
    if (inherits(fit, "error")) next
    sound(fit)
    honest <- abs(fit$log_evidence - truth) < 5 * fit$se ||
      any(grepl("particle|draw|effective", setdiff(fit$warnings, method$note)))
    expect_true(honest, label = paste(method$name, "on covariates of a million is honest"))
  }
})

test_that("draws are finite, or the fit has a warning", {
  far <- transform(numbers, x = x * 1e6)
  for (method in all_methods[fast_or_slow(c(5, 6), seq_along(all_methods))]) {
    fit <- tryCatch(run(gaussian_mixture(components = 2), far[1:2], method),
                    logevidence_error = identity)
    if (inherits(fit, "error")) next
    if (all(is.finite(fit$draws))) sound(fit)
    else expect_match(fit$warnings, "draws are infinite", all = FALSE)
  }
})

test_that("data of size 1e200 are refused in a sentence", {
  for (method in all_methods) {
    for (data in list(transform(numbers, y = y * 1e200), transform(numbers, x = x * 1e200))) {
      error <- expect_error(run(line, data, method), class = "logevidence_error")
      expect_match(conditionMessage(error), "\\.$")
    }
  }
})

test_that("the evidence is right under very narrow and very wide priors", {
  for (method in careful) for (prior_sd in c(1e-8, 1e4)) {
    fit <- run(linear_regression(y ~ x, prior_sd = prior_sd, sigma = 1), numbers, method)
    truth <- linear_truth(cbind(1, numbers$x), numbers$y, 1, rep(prior_sd, 2))
    # a prior that is as good as a point leaves next to no error to report
    expect_lt(abs(fit$log_evidence - truth), 5 * fit$se + 1e-6)
  }
})

# Instrumented code is slower: `make sanitize` asks for patience.
patience <- function() as.numeric(Sys.getenv("LOGEVIDENCE_PATIENCE", "1"))

test_that("calls that would take very long are refused or end at their limit", {
  # the posterior lies a hundred million prior standard deviations away
  huge <- transform(numbers, y = y * 1e8)
  outcome <- within_seconds(5 * patience(), tryCatch(run(line, huge), error = identity))
  if (inherits(outcome, "error")) expect_s3_class(outcome, "logevidence_error") else sound(outcome)
  # a step that keeps every particle's weight equal has no length
  outcome <- within_seconds(5 * patience(),
                            tryCatch(run(line, numbers, smc(ess = 500)), error = identity))
  if (inherits(outcome, "error")) expect_s3_class(outcome, "logevidence_error") else sound(outcome)
})

# Found by fuzzing (tools/fuzz.R) ------------------------------------------------------------------

test_that("variables of a formula outside the data must have a value for each row", {
  short <- function(...) rep(1, 2)
  refused(run(linear_regression(y ~ short(x), sigma = 1, prior_sd = 1), numbers), "data")
  refused(run(gaussian_mixture(~ short(), components = 1), numbers), "formula", "each row")
  refused(run(low_rank(~ short() + short(2), rank = 1), numbers), "formula", "each row")
  refused(run(binomial_probability(~ short()), numbers), "formula", "each row")
  refused(run(density(~ dnorm(y, m, 1, log = TRUE), m = ~ 0 + short()), numbers), "formula",
          "each row")
})

test_that("dates are refused, and the error says what to write", {
  days <- data.frame(y = c(1, 3, 2), day = as.Date("2026-01-01") + 0:2)
  expect_error(evidence(linear_regression(y ~ day, sigma = 1), days), "write `as.numeric(day)` in",
               fixed = TRUE)
  days$day <- as.POSIXct(days$day)
  expect_error(evidence(linear_regression(y ~ day, sigma = 1), days), "write `as.numeric(day)` in",
               fixed = TRUE)
})

test_that("an offset must have numbers", {
  for (offset in list(numbers$word, numbers$class, as.Date("2020-01-01") + 1:6))
    refused(run(linear_regression(y ~ x + offset(w), sigma = 1, prior_sd = 1),
                cbind(numbers, w = offset)), "data", "numbers for an offset")
})

test_that("a covariate must have a column", {
  data <- numbers
  data$none <- matrix(0, 6, 0)
  refused(run(linear_regression(y ~ x + none, sigma = 1, prior_sd = 1), data), "data",
          "at least one column")
})

test_that("lists to which a user gave a class of the package are refused", {
  fake <- function(class, ...) structure(list(...), class = class)
  refused(run(fake("evidence_model"), numbers), "model")
  refused(run(line, numbers, fake("evidence_method")), "method")
  refused(run(line, numbers, fake("evidence_method", name = 1)), "method")
  refused(smc(kernel = fake("evidence_kernel")), "kernel")
  refused(ais(schedule = fake("evidence_schedule")), "schedule")
  refused(regression(y ~ x, fake("regression_family")), "family")
  refused(regression(y ~ x, prior = fake("evidence_prior")), "prior")
  refused(regression(y ~ x, prior = structure(1, class = "evidence_prior")), "prior")
  refused(regression(y ~ x, prior = structure(function() 1, class = "mine")), "prior")
  refused(run(line, fake("rows_source")), "data")
  for (data in list(sum, environment(), quote(x)))
    refused(run(line, data, na.action = na.omit), "data")
})

test_that("altered functions, formula or settings of a model are refused", {
  nothing <- function(...) NULL
  made <- function(...) new_model("mine", ..., encode_new = nothing, describe = nothing)
  refused(made(encode = 1), "encode", "a function")
  refused(made(encode = nothing, advice = "no"), "advice", "a function")
  refused(made(encode = nothing, formula = 1), "formula")
  refused(made(encode = nothing, settings = list(1)), "settings")
  refused(poisson_rate(y ~ stop() + Inf), "formula", "that R can read")
})

test_that("confint() refuses names that are not those of a parameter", {
  fit <- run(line, numbers)
  for (parm in list(sum, list(1), character(), y ~ x, 7, "z")) refused(confint(fit, parm), "parm")
})

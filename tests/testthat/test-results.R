# What a fit says: print, summary, draws, predictions.

regression <- linear_regression(dist ~ speed, sigma = 15, prior_sd = 10)
run <- function(model, data, method = sgais(), ...) {
  quiet_fit(model, data, method, seed = test_seed(), progress = FALSE, ...)
}
linear_fit <- run(regression, cars)
mixture_fit <- run(gaussian_mixture(components = 2), scale(faithful))
plain <- function(x) as.vector(unname(x))

# A fit with draws of our own, for comparison with formulas written out.
with_draws <- function(fit, parameters, log_weights) {
  fit$parameters <- parameters
  fit$log_weights <- log_weights - log(sum(exp(log_weights)))
  fit
}

test_that("numbers have the digits that their standard errors allow", {
  sign <- plus_minus()
  expect_identical(align_estimates(-212.6588, 0.00276), paste("-212.659", sign, "0.003"))
  expect_identical(align_estimates(-212.6588, 0.0121), paste("-212.659", sign, "0.012"))
  expect_identical(align_estimates(-1234.56, 25), paste("-1235", sign, "25"))
  expect_identical(align_estimates(-1.25, 0.199), paste("-1.2", sign, "0.2"))
  expect_identical(align_estimates(-2, NA), paste("-2.000", sign, "?"))
  expect_identical(align_estimates(-2, 0), paste("-2.000", sign, "0"))
  expect_identical(align_estimates(-Inf, NaN), paste("-Inf", sign, "?"))
  aligned <- align_estimates(c(-9.5, -212.654), c(0.14, 0.003))
  expect_identical(regexpr(".", aligned, fixed = TRUE)[1], regexpr(".", aligned, fixed = TRUE)[2])
  expect_identical(large(34456921), "34.5 million")
  expect_identical(large(1234), "1,230")
  expect_identical(count_of(1, "step"), "1 step")
  expect_identical(count_of(100000, "step"), "100,000 steps")
})

test_that("a fit prints on one screen with both estimates", {
  text <- printed(linear_fit)
  expect_match(text, "Linear regression, known noise: dist ~ speed", fixed = TRUE)
  expect_match(text, "from the importance-sampling check", fixed = TRUE)
  expect_match(text, "\n  sampler .*\n  check .*Pareto k")
  expect_match(text, "n = 50; sgais(); ", fixed = TRUE)
  expect_lt(length(utils::capture.output(print(mixture_fit))), 24)
  expect_invisible(expect_output(print(linear_fit)))
})

test_that("fits without audit, with a warning, and of replicates are printed as such", {
  text <- printed(run(regression, cars, harmonic_mean()))
  expect_no_match(text, "audit")
  expect_match(text, "chains' spread", fixed = TRUE)
  expect_match(text, "Note: The harmonic mean overstates", fixed = TRUE)
  text <- printed(run(regression, cars, ais(), replicates = 3))
  expect_match(text, "from the spread of 3 replicates, sd ", fixed = TRUE)
  failed <- linear_fit
  failed$audit[c("draws", "ess", "pareto_k", "log_evidence", "se")] <- list(0, NA, NA, NaN, NaN)
  failed$audit$passed <- FALSE
  failed$source <- "sampler"
  expect_match(printed(failed), "no peak found", fixed = TRUE)
  wide <- unlist(lapply(list(linear_fit, mixture_fit, failed),
                        function(f) utils::capture.output(print(f))))
  expect_lte(max(nchar(wide)), 80)
})

test_that("particles that left the region of their gradients give a warning", {
  trace <- data.frame(n = c(100, 1200, 2000), drift = c(NA, 5, 8))
  expect_null(runaway_warning(trace))
  trace$drift[2] <- 105
  expect_match(runaway_warning(trace), "Before row 1,200 the particles left the region")
})

test_that("weighted quantiles are those of the weighted distribution", {
  x <- c(3, 1, 2)
  w <- c(0.5, 0.2, 0.3)
  # half weights below: 1 at 0.1, 2 at 0.35, 3 at 0.75
  expect_equal(weighted_quantile(x, w, c(0.05, 0.1, 0.225, 0.35, 0.55, 0.75, 0.95)),
               c(1, 1, 1.5, 2, 2.5, 3, 3))
  set.seed(test_seed())
  y <- rnorm(101)
  p <- c(0.05, 0.37, 0.5, 0.95)
  expect_equal(weighted_quantile(y, rep(1 / 101, 101), p), plain(quantile(y, p, type = 5)))
  expect_equal(weighted_quantile(c(y, 1e9), c(rep(1 / 101, 101), 0), p),
               plain(quantile(y, p, type = 5)))
  expect_equal(weighted_quantile(7, 1, p), rep(7, 4))
  expect_equal(weighted_quantile(c(2, 2, 2), w, p), rep(2, 4))
  expect_equal(weighted_sd(y, rep(1 / 101, 101)), sd(y))
  expect_equal(weighted_sd(x, w), sqrt(sum(w * (x - 2.3)^2) / (1 - sum(w^2))))
  expect_identical(weighted_sd(c(1, 5), c(1, 0)), NA_real_)
})

test_that("the summary has the posterior and the figures of the walk", {
  s <- summary(linear_fit)
  w <- exp(linear_fit$log_weights)
  speed <- linear_fit$draws[, "speed"]
  expect_identical(names(s$parameters), c("mean", "sd", "q5", "q50", "q95"))
  expect_identical(rownames(s$parameters), colnames(linear_fit$draws))
  expect_equal(s$parameters["speed", "mean"], sum(w * speed))
  expect_equal(s$parameters["speed", "q95"], weighted_quantile(speed, w, 0.95))
  expect_equal(s$effective, 1 / sum(w^2))
  expect_identical(s$draws, nrow(linear_fit$draws))
  trace <- linear_fit$trace
  expect_equal(s$steps$total, sum(trace$lambda_steps))
  expect_equal(s$steps$most, max(trace$lambda_steps))
  expect_equal(s$steps$chunks, nrow(trace))
  expect_equal(s$least_ess$ess, min(trace$ess))
  expect_equal(s$acceptance, range(trace$acceptance))
  expect_false(s$exchangeable)
  expect_true(summary(mixture_fit)$exchangeable)
  # posterior mean and sd in closed form
  x <- cbind(1, cars$speed)
  covariance <- solve(crossprod(x) / 225 + diag(2) / 100)
  centre <- covariance %*% crossprod(x, cars$dist) / 225
  error <- sqrt(diag(covariance) / s$effective)
  expect_true(all(abs(s$parameters$mean - centre) < 5 * error))
  expect_equal(s$parameters$sd, sqrt(diag(covariance)), tolerance = 0.15)
})

test_that("summaries of each kind of fit are printed", {
  text <- printed(summary(linear_fit))
  expect_match(text, "Posterior, 1,000 weighted draws, effective sample size", fixed = TRUE)
  expect_match(text, "mean +sd +5% +50% +95%")
  expect_match(text, "in 5 chunks, at most", fixed = TRUE)
  expect_match(text, "Laplace approximation  approximate  -212.66", fixed = TRUE)
  expect_match(printed(summary(mixture_fit)), "numbered arbitrarily", fixed = TRUE)
  expect_match(printed(summary(mixture_fit), most = 3), "... and 7 more", fixed = TRUE)
  expect_error(print(summary(linear_fit), most = 0), "`most` must be", class = "logevidence_error")
  for (method in list(ais(), smc("data"), sequential(), likelihood_weighting(1000),
                      harmonic_mean())) {
    s <- summary(run(regression, cars, method))
    expect_no_match(printed(s), "The importance-sampling check")
    expect_true(all(is.finite(as.matrix(s$parameters))))
  }
  one <- summary(run(gaussian_mean(), 1.2))
  expect_identical(dim(one$parameters), c(1L, 5L))
  expect_match(printed(one), "n = 1;", fixed = TRUE)
  expect_match(printed(summary(run(regression, cars, replicates = 2))), "The run (first replicate)",
               fixed = TRUE)
})

test_that("posterior_draws() gives weighted or resampled draws", {
  draws <- posterior_draws(linear_fit)
  expect_identical(attr(draws, "log_weights"), linear_fit$log_weights)
  expect_equal(sum(exp(attr(draws, "log_weights"))), 1)
  few <- linear_fit
  few$draws <- few$draws[1:4, ]
  few$parameters <- few$parameters[1:4, ]
  few$log_weights <- log(c(0.5, 0, 0.25, 0.25))
  set.seed(test_seed(3))
  equal <- suppressMessages(posterior_draws(few, weighted = FALSE, n = 8))
  expect_identical(equal, few$draws[c(1, 1, 1, 1, 3, 3, 4, 4), ])
  set.seed(test_seed(3))
  expect_identical(suppressMessages(posterior_draws(few, FALSE, 8)), equal)
  refused(posterior_draws(few, 8), "write `weighted = FALSE, n = 8`.")
  expect_message(posterior_draws(few, FALSE, 8), "`n` = 8: the result repeats 3 distinct draws",
                 fixed = TRUE)
  expect_no_message(posterior_draws(few, FALSE, 4))
  expect_identical(dim(posterior_draws(linear_fit, FALSE)), dim(linear_fit$draws))
  # uneven weights on average
  counts <- rowMeans(replicate(2000, tabulate(resample(c(0.05, 0.62, 0.33), 3), 3)))
  expect_equal(counts, 3 * c(0.05, 0.62, 0.33), tolerance = 0.05)
  expect_identical(resample(1, 3), rep(1L, 3))
  expect_identical(dim(posterior_draws(run(gaussian_mean(), 1.2), FALSE, 1)), c(1L, 1L))
  expect_error(posterior_draws(1), "`fit` must be a fit from `evidence()`, not 1.", fixed = TRUE)
  expect_error(posterior_draws(linear_fit, n = 5), "`n` must be given only with `weighted = FALSE`",
               fixed = TRUE)
  expect_error(posterior_draws(linear_fit, FALSE, 0), "`n` must be a whole number",
               class = "logevidence_error")
  expect_error(posterior_draws(linear_fit, NA), "`weighted` must be TRUE or FALSE",
               class = "logevidence_error")
})

test_that("draws keep their weights where the estimate is not finite", {
  run <- function(log_evidence) list(log_evidence = log_evidence, log_weights = log(c(0.25, 0.75)))
  expect_equal(pool_weights(list(run(NaN))), log(c(0.25, 0.75)))
  expect_equal(exp(pool_weights(list(run(-5), run(NaN), run(-5)))),
               c(0.25, 0.75, 0, 0, 0.25, 0.75) / 2)
  # particles whose log likelihood is -Inf, and a first step too long for its stepping stone: the
  # thermodynamic integral is not finite
  d <- data.frame(x = seq(-2, 2, length.out = 50), y = seq(-1, 3, length.out = 50))
  method <- power_posterior("thermodynamic",
                            smc(particles = 12, steps = 1, ess = 0.2, kernel = rwm()))
  fit <- quiet_fit(custom_model("m", function(theta, data) {
    if (theta[["m"]] > 2) rep(-Inf, length(data$y)) else dnorm(data$y, theta[["m"]], 1, log = TRUE)
  }, function(theta) dnorm(theta[["m"]], 0, 3, log = TRUE), function(n) rnorm(n, 0, 3)),
  d, method, seed = test_seed(1))
  expect_false(is.finite(fit$log_evidence))
  expect_true("not_finite" %in% names(fit$warnings) || length(fit$failed) > 0)
  expect_equal(sum(exp(fit$log_weights)), 1)
})

test_that("package posterior gets draws of equal weight, or weighted ones if asked", {
  skip_if_not_installed("posterior")
  for (fit in list(linear_fit, mixture_fit)) {
    draws <- posterior::as_draws(fit, weighted = TRUE)
    expect_s3_class(draws, "draws_matrix")
    expect_equal(plain(weights(draws)), exp(fit$log_weights))
    expect_identical(posterior::variables(draws), colnames(fit$draws))
    second <- colnames(fit$draws)[2]
    expect_equal(plain(posterior::as_draws_df(fit, weighted = TRUE)[[second]]),
                 plain(fit$draws[, 2]))
    equal <- plain(posterior::as_draws_df(fit)[[second]])
    # as many as are effective, in no order that would look like a chain that has not mixed
    effective <- 1 / sum(exp(fit$log_weights)^2)
    expect_lt(abs(length(equal) - effective), 1)
    found <- posterior::summarise_draws(posterior::as_draws(fit), "ess_bulk", "rhat")
    expect_gt(min(found$ess_bulk), 0.5 * effective)
    expect_lt(max(found$rhat), 1.03)
    expect_true(all(equal %in% fit$draws[, 2]))
    expect_lt(abs(mean(equal) - sum(exp(fit$log_weights) * fit$draws[, 2])) / sd(equal), 0.1)
  }
  expect_s3_class(posterior::as_draws_array(linear_fit), "draws_array")
  expect_s3_class(posterior::as_draws_list(linear_fit), "draws_list")
  expect_s3_class(posterior::as_draws_rvars(mixture_fit), "draws_rvars")
})

test_that("logml() works as generic of this package and of bridgesampling", {
  expect_identical(logml(linear_fit), linear_fit$log_evidence)
  expect_error(logml(3), "`x` must be a fit from `evidence()`, not 3.", fixed = TRUE)
  skip_if_not_installed("bridgesampling")
  expect_identical(bridgesampling::logml(linear_fit), linear_fit$log_evidence)
  bridge <- structure(list(logml = -1.5, niter = 3, method = "normal"), class = "bridge")
  expect_equal(logml(bridge), -1.5)
})

test_that("a regression predicts means with factors and offsets", {
  data <- data.frame(y = c(1, 4, 2, 6, 3, 8), x = 1:6, f = factor(c("a", "b", "c", "a", "b", "c")),
                     o = (1:6) / 10)
  fit <- run(linear_regression(y ~ f * x + offset(o), sigma = 2, prior_sd = 3), data)
  new <- data.frame(f = c("c", "a"), x = c(2.5, 0), o = c(7, -7))
  x <- model.matrix(~ f * x, data.frame(f = factor(new$f, levels = c("a", "b", "c")), x = new$x))
  draws <- posterior_draws(fit)
  w <- exp(attr(draws, "log_weights"))
  expect_equal(predict(fit, new), plain(x %*% t(draws) %*% w) + new$o)
  new$y <- c(5, 50)
  density <- sapply(1:2, function(i)
                      log(sum(w * dnorm(new$y[i], x[i, ] %*% t(draws) + new$o[i], 2))))
  expect_equal(predict(fit, new, type = "density"), density)
  expect_error(predict(fit, data.frame(f = "d", x = 1, o = 0)), "only known levels in `f`",
               class = "logevidence_error")
  expect_error(predict(fit, new[c("x", "o")]), "must have the column `f`",
               class = "logevidence_error")
  expect_error(predict(fit, new[c("x", "o", "f")], type = "density"), "must have the column `y`",
               class = "logevidence_error")
})

test_that("gaussian_mean() predicts its mean and density", {
  fit <- run(gaussian_mean(sigma = 2, prior_sd = 3), c(1, 2, 4))
  w <- exp(fit$log_weights)
  expect_equal(predict(fit, c(9, 9)), rep(sum(w * fit$draws), 2))
  expect_equal(predict(fit, c(0, 40), type = "density"),
               sapply(c(0, 40), function(y) log(sum(w * dnorm(y, fit$draws[, 1], 2)))))
})

test_that("predicted densities far from all draws are right", {
  fit <- with_draws(run(gaussian_mean(), c(1, 2)), cbind(mean = c(0, 1000, 5)), c(0, -2000, -Inf))
  expect_equal(predict(fit, c(0, 1000, 1e6), type = "density"),
               c(dnorm(0, log = TRUE), -2000 + dnorm(0, log = TRUE),
                 -2000 + dnorm(1e6, 1000, log = TRUE)))
})

test_that("probabilities of classes are those of the softmax, averaged over draws", {
  fit <- run(softmax_regression(Species ~ Petal.Length + Petal.Width, prior_sd = 5), iris)
  new <- iris[c(1, 60, 71, 140), ]
  x <- cbind(1, new$Petal.Length, new$Petal.Width)
  w <- exp(fit$log_weights)
  expected <- Reduce(`+`, lapply(seq_along(w), function(i) {
    score <- exp(x %*% matrix(fit$draws[i, ], 3))
    w[i] * score / rowSums(score)
  }))
  probability <- predict(fit, new[c("Petal.Length", "Petal.Width")])
  expect_equal(unname(probability), unname(expected))
  expect_identical(colnames(probability), levels(iris$Species))
  expect_equal(rowSums(probability), rep(1, 4))
  expect_identical(predict(fit, new, type = "class"),
                   factor(levels(iris$Species)[max.col(expected)], levels = levels(iris$Species)))
  expect_equal(predict(fit, new, type = "density"),
               log(expected[cbind(1:4, as.integer(new$Species))]))
})

test_that("a mixture predicts densities and memberships", {
  new <- scale(faithful)[c(1, 2, 3, 200), ]
  draws <- posterior_draws(mixture_fit)
  w <- exp(attr(draws, "log_weights"))
  part <- function(k, i) {
    column <- function(stem, name) draws[, sprintf("%s[%d,%s]", stem, k, name)]
    draws[, sprintf("weight[%d]", k)] *
      dnorm(new[i, "eruptions"], column("mean", "eruptions"), column("sd", "eruptions")) *
      dnorm(new[i, "waiting"], column("mean", "waiting"), column("sd", "waiting"))
  }
  share <- t(sapply(1:4, function(i) {
    parts <- cbind(part(1, i), part(2, i))
    colSums(w * parts / rowSums(parts))
  }))
  density <- sapply(1:4, function(i) log(sum(w * (part(1, i) + part(2, i)))))
  expect_equal(predict(mixture_fit, new), density)
  probability <- predict(mixture_fit, new, type = "probability")
  expect_equal(unname(probability), share)
  expect_identical(colnames(probability), c("component1", "component2"))
  # draws that number components differently are brought together
  swapped <- mixture_fit
  heavy <- which.max(swapped$log_weights)
  theta <- swapped$parameters
  other <- theta[, c(1, 4, 5, 2, 3, 8, 9, 6, 7)]
  other[, 1] <- -theta[, 1]
  odd <- setdiff(seq(1, nrow(theta), 2), heavy)
  swapped$parameters[odd, ] <- other[odd, ]
  expect_equal(predict(swapped, new, type = "probability"), probability)
  single <- run(gaussian_mixture(components = 1), c(1, 2, 3, 4))
  expect_equal(plain(predict(single, c(1, 9), type = "probability")), c(1, 1))
})

test_that("predictions do not depend on how rows are blocked", {
  set.seed(test_seed(5))
  new <- data.frame(speed = runif(400, 0, 30), dist = runif(400, 0, 120))
  whole <- predict(linear_fit, new, type = "density")
  parts <- list(new[1:7, ], new[8:400, ])
  expect_equal(unlist(lapply(parts, function(part) predict(linear_fit, part, type = "density"))),
               whole)
  expect_identical(over_blocks(rbind(1:7), 2^17, function(rows) 2 * rows[1, ]), 2 * (1:7))
  expect_identical(over_blocks(rbind(1:5), 2^16, function(rows) cbind(rows[1, ])), cbind(1:5))
})

test_that("replicates predict from all draws together", {
  fit <- run(regression, cars, replicates = 3)
  w <- exp(fit$log_weights)
  expect_equal(predict(fit, data.frame(speed = 10)), sum(w * (fit$draws %*% c(1, 10))))
})

test_that("wrong arguments of predict() are refused in a sentence", {
  expect_error(predict(linear_fit), "`newdata` must be given: the data in the call of the fit were",
               fixed = TRUE)
  expect_error(predict(linear_fit, cars, type = "class"),
               paste0("`type` must be \"response\", \"link\", \"expected\", \"draws\" or ",
                      "\"density\", not \"class\""), fixed = TRUE)
  expect_error(predict(linear_fit, cars[0, ]), "at least one row", class = "logevidence_error")
  expect_error(predict(linear_fit, data.frame(speed = NA_real_)), "no missing values",
               class = "logevidence_error")
  expect_error(predict(linear_fit, cars, se = TRUE), "not `se`", class = "logevidence_error")
})

test_that("a fit of which a part was removed or replaced is refused in a sentence", {
  d <- data.frame(y = c(1.2, 0.3, 2.2, 1.9), x = c(0.5, -1, 1.3, 0.7))
  fits <- list(
    quiet_fit(linear_regression(y ~ x, sigma = 1, prior_sd = 1), d, seed = test_seed()),
    quiet_fit(linear_regression(y ~ x), d, exact(), seed = test_seed()))
  verbs <- list(print, summary, plot, predict, coef, vcov, report, function(fit)
    compare_models(fit, fits[[1]]), function(fit) bayes_factor(fits[[1]], fit))
  changes <- list(NULL, "a", NA, list(1), sum, NaN)
  if (!is_slow()) changes <- changes[1:3]
  refused <- 0
  pdf(NULL)
  on.exit(dev.off())
  for (fit in fits) for (name in setdiff(names(unclass(fit)), "audit"))
      for (change in changes) {
    altered <- unclass(fit)
    altered[name] <- list(change)
    class(altered) <- class(fit)
    for (verb in verbs) {
      utils::capture.output(error <- tryCatch(suppressWarnings(verb(altered)), error = identity))
      if (!inherits(error, "error")) next
      refused <- refused + 1
      expect_s3_class(error, "logevidence_error")
    }
  }
  expect_gt(refused, 100)
  for (part in c("log_evidence", "verdict", "model")) {
    altered <- fits[[1]]
    altered[[part]] <- NULL
    expect_error(altered[[part]], paste0("part `", part, "` of this one is missing"),
                 class = "logevidence_error")
  }
  # neither the rows nor a reason of failure are known
  for (change in list(list(n = NA_integer_), list(log_evidence = -Inf, failed = character()))) {
    altered <- fits[[1]]
    for (name in names(change)) altered[name] <- change[name]
    expect_error(print(altered), paste0("part `", names(change)[1], "` of this one is "),
                 class = "logevidence_error")
  }
  altered <- fits[[1]]
  altered$n <- 3e9
  expect_identical(nobs(altered), 3e9)
  expect_identical(as.data.frame(altered)$nobs, 3e9)
  altered <- fits[[1]]
  for (weight in c(-Inf, Inf, 1)) {
    altered$log_weights <- rep(weight, nrow(altered$draws))
    refused(predict(altered, d), "part `log_weights` of this one is ")
  }
  altered <- unclass(fits[[1]])
  altered$trace <- structure(replace(unclass(altered$trace), "lambda", list(1:2)),
                             class = "data.frame")
  refused(plot(structure(altered, class = "evidence")), "part `trace` of this one is a data frame")
  altered <- fits[[1]]
  altered$power <- data.frame(a = 1)
  expect_error(plot(altered), "part `power` of this one is a data", class = "logevidence_error")
  altered <- fits[[1]]
  altered$model$contract$describe <- 1
  expect_error(print(altered$model), "`describe` of this one is 1", class = "logevidence_error")
})

test_that("print() of a fit shows as many digits as are asked for", {
  fit <- evidence(linear_regression(dist ~ speed, sigma = 15, prior_sd = 10), cars,
                  laplace(importance = 50), seed = 1)
  shown <- function(...) utils::capture.output(print(fit, ...))[2]
  for (digits in c(4, 9))
    expect_match(shown(digits = digits), format(fit$log_evidence, digits = digits), fixed = TRUE)
  expect_match(shown(digits = 9), format(signif(fit$se, 2)), fixed = TRUE)
  expect_identical(shown(digits = NULL), shown())
  refused(print(fit, digits = "all"), "`digits`")
})

test_that("a warning of several models is raised once, with their names", {
  fits <- list(a = list(warnings = c("x.", "y.")), b = list(warnings = "x."), c = list())
  said <- tryCatch(raise_named(fits), warning = function(w) w$sentences)
  expect_identical(said, c("a, b: x.", "a: y."))
  expect_silent(raise_named(fits["c"]))
})

test_that("`seconds` of a fit is the time of its call and of the calls that it continues", {
  # most of the time goes to a likelihood in R that waits
  slow <- custom_model(
    "a", function(theta, data) {
      Sys.sleep(0.0005)
      sum(stats::dnorm(data, theta, 20, log = TRUE))
    }, function(theta) stats::dnorm(theta, 40, 20, log = TRUE),
    function(n) stats::rnorm(n, 40, 20))
  timed <- function(code) {
    began <- proc.time()[["elapsed"]]
    fit <- muffled(code)
    took <- proc.time()[["elapsed"]] - began
    list(fit = fit, took = took, seconds = fit$work[["seconds"]])
  }
  same_time <- function(call, before = 0) {
    expect_gt(call$took, 0.05)
    expect_lt(call$seconds, before + call$took + 0.02)
    expect_gt(call$seconds, before + 0.8 * call$took)
  }
  same_fit <- function(...) evidence(slow, cars$dist, ..., progress = FALSE)
  few <- smc(particles = 10, steps = 2, kernel = rwm())
  first <- timed(same_fit(few, seed = 1))
  same_time(first)
  same_time(timed(same_fit(few, seed = 1, replicates = 2)))
  same_time(timed(same_fit(laplace(importance = 50), seed = 1)))
  expect_identical(as.data.frame(first$fit)$seconds, first$seconds)

  data <- with_own_seed(test_seed(), data.frame(x = rnorm(1000)))
  data$y <- data$x + rep(c(-1, 1), 500)
  model <- regression(y ~ x, "student", prior_sd = 5)
  begun <- timed(run(model, data[1:800, ], smc("data"), keep_state = TRUE))
  same_time(begun)
  more <- timed(update(begun$fit, data[801:1000, ]))
  expect_lt(more$seconds, begun$seconds + more$took + 0.02)
  expect_gt(more$seconds, begun$seconds)
  stopped <- timed(same_fit(few, seed = 1, time_limit = 1e-9))
  expect_s3_class(stopped$fit, "incomplete_evidence")
  same_time(timed(resume(stopped$fit)), 0.8 * stopped$took)

  live <- nested(live = 10, kernel = rwm(), steps = 2)
  runs <- lapply(test_seed(1:2), function(seed) timed(same_fit(live, seed = seed)))
  for (run in runs) same_time(run)
  joined <- muffled(c(runs[[1]]$fit, runs[[2]]$fit))
  expect_equal(joined$work[["seconds"]], runs[[1]]$seconds + runs[[2]]$seconds, tolerance = 0.05)
  same_time(timed(update(runs[[1]]$fit, tol = 1e-4, data = cars$dist)), runs[[1]]$seconds)
})

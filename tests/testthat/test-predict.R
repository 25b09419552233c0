# predict(), simulate() and log_lik() of fits: means, draws and intervals against closed forms.

known <- linear_regression(mpg ~ wt + offset(hp / 100), sigma = 3, prior_sd = 1e4)
line <- evidence(known, mtcars, exact(), seed = test_seed())
least <- lm(mpg ~ wt + offset(hp / 100), mtcars)
new <- data.frame(wt = c(2, 3, 5), hp = c(100, 150, 300))
spread_of_line <- function(new) {
  x <- cbind(1, new$wt)
  3 * sqrt(rowSums((x %*% summary(least)$cov.unscaled) * x))
}
# Closed form: each row given all others.
loo_of_line <- function() {
  leverage <- hatvalues(least)
  dnorm(residuals(least) / (1 - leverage), 0, 3 / sqrt(1 - leverage), log = TRUE)
}
# A fit whose posterior is one point, for draws of the likelihood alone.
fit_at <- function(model, data, theta, log_weights = 0) {
  model <- at_unit_one(model)
  encoded <- encode(model, data)
  points <- matrix(theta, length(log_weights), dimnames = list(NULL, encoded$theta_names))
  structure(list(model = model, log_weights = log_weights, parameters = points, draws = points,
                 design = structure(encoded$design, class = "evidence_design"),
                 args = encoded$args), class = "evidence")
}

test_that("without `newdata` rows are those of the fit", {
  expect_identical(predict(line), fitted(line))
  expect_equal(predict(line), predict(line, mtcars))
  here <- mtcars[1:20, ]
  local <- evidence(known, here, exact(), seed = test_seed())
  expect_equal(predict(local), predict(local, here))
  expect_equal(predict(local, type = "density"), predict(local, here, "density"))
  here$mpg[1] <- 0
  refused(predict(local), "`newdata` must be given: the data in the call of the fit have changed")
  here <- "no data"
  refused(predict(local), "the data in the call of the fit have changed since.")
  rm(here)
  refused(predict(local), "the data in the call of the fit were not found.")
})

test_that("means and intervals of a linear regression are those of its closed form", {
  exact <- unname(predict(least, new))
  sd <- spread_of_line(new)
  link <- predict(line, new, type = "link", interval = 0.8)
  expect_identical(colnames(link), c("fit", "lower", "upper"))
  expect_equal(link[, "fit"], predict(line, new))
  expect_equal(predict(line, new, "link"), predict(line, new))
  z <- qnorm(0.9)
  error <- function(found, truth, sd) max(abs(found - truth) / sd)
  expect_lt(error(link[, -1], exact + outer(sd, c(-z, z)), sd), 0.25)
  wide <- predict(line, new, interval = 0.8, draws = 20000, seed = test_seed())
  sd <- sqrt(sd^2 + 9)
  expect_identical(wide[, "fit"], predict(line, new))
  expect_lt(error(wide[, -1], exact + outer(sd, c(-z, z)), sd), 0.08)
})

test_that("limits of counts are the smallest counts with enough probability below", {
  rows <- data.frame(x = 1:30, n = stats::qpois(1:30 / 31, 2:31))
  counts <- quiet_fit(regression(n ~ x, poisson(), scale = TRUE), rows, seed = test_seed())
  negative <- quiet_fit(regression(n ~ x, negative_binomial(), scale = TRUE), rows,
                        seed = test_seed())
  new <- data.frame(x = c(1, 15, 30))
  both <- compare_models(counts, negative)
  for (fit in list(counts, negative, both)) for (level in c(0.5, 0.9, 0.37)) {
    limits <- predict(fit, new, interval = level, draws = 250, seed = 3)
    drawn <- predict(fit, new, "draws", draws = 250, seed = 3)
    expect_identical(limits[, -1] %% 1, 0 * limits[, -1])
    below <- function(limit) vapply(1:3, function(j) mean(drawn[, j] <= limit[j]), 0)
    expect_true(all(below(limits[, "lower"]) >= (1 - level) / 2))
    expect_true(all(below(limits[, "lower"] - 1) < (1 - level) / 2))
    expect_true(all(below(limits[, "upper"]) >= (1 + level) / 2 - 1e-9))
    expect_true(all(below(limits[, "upper"] - 1) < (1 + level) / 2))
  }
})

test_that("draws are reproducible, and intervals are their quantiles", {
  draws <- predict(line, new, type = "draws", draws = 300, seed = 4)
  expect_identical(dim(draws), c(300L, 3L))
  set.seed(8)
  state <- .Random.seed
  expect_identical(predict(line, new, type = "draws", draws = 300, seed = 4), draws)
  expect_identical(.Random.seed, state)
  expect_identical(dim(predict(line, new, type = "draws")), c(1000L, 3L))
  first <- predict(line, new, type = "draws", draws = 9)
  set.seed(8)
  predict(line, new, type = "draws")
  expect_identical(predict(line, new, type = "draws", draws = 9), first)
  limits <- predict(line, new, interval = 0.5, draws = 300, seed = 4)
  expect_equal(limits[, -1], t(apply(draws, 2, quantile, c(0.25, 0.75))), ignore_attr = TRUE)
  # many rows are taken in blocks
  blocks <- over_encoded(list(rows = rbind(1:7, 0), offset = 11:17), 3, function(block, k)
    cbind(block$rows[1, ], block$offset, k))
  expect_equal(blocks, cbind(1:7, 11:17, c(1, 1, 1, 2, 2, 2, 3)), ignore_attr = TRUE)
})

test_that("predictions use the weights of draws", {
  weighted <- with_draws(line)
  weighted$parameters <- weighted$draws <- rbind(c(0, 0), c(1000, 0), c(5000, 0))
  weighted$log_weights <- log(c(0.75, 0.25, 0))
  draws <- predict(weighted, new, type = "draws", draws = 400, seed = test_seed())
  expect_identical(as.vector(table(draws[, 1] > 500)), c(300L, 100L))
  expect_lt(max(draws), 2000)
  link <- predict(weighted, new, type = "link", interval = 0.4)
  expect_equal(link[, "fit"], 250 + new$hp / 100)
  expect_lt(max(link[, "upper"]), 900)
  sets <- simulate(weighted, nsim = 400, seed = test_seed())
  expect_equal(mean(colMeans(sets) > 500), 0.25)
  each <- log_lik(weighted, draws = 8, seed = test_seed())
  expect_identical(dim(each), c(8L, 32L))
  expect_equal(mean(each[, 1] < -1e4), 0.25)
  skip_if_not_installed("loo")
  equal <- log_lik(line, seed = test_seed())
  loo <- suppressWarnings(loo::loo(equal))
  expect_equal(loo$estimates["elpd_loo", "Estimate"], sum(loo_of_line()), tolerance = 0.01)
})

test_that("draws of every family have the mean that is predicted", {
  data <- regression_data(40)[1:4, ]
  for (name in names(regression_cases())) {
    model <- regression_cases()[[name]]$model
    p <- length(encode(model, data)$theta_names)
    fit <- fit_at(model, data, rep(c(0.4, -0.3), length.out = p) + (seq_len(p) == p) * 1.2)
    draws <- predict(fit, data, type = "draws", draws = 3000, seed = test_seed())
    expect_z(z_score(draws, predict(fit, data)))
    eta <- predictor_of(model, data, fit$parameters[1, ])
    if (!grepl("offset", deparse1(model$formula)))
      expect_equal(predict(fit, data, type = "link"), unname(eta), label = name)
  }
})

test_that("predictions of each model of the crossings are the means of its simulated rows", {
  skip_on_cran()
  checked <- character()
  for (name in setdiff(names(crossing_models()), "groups_nested")) { # as groups, and slow
    entry <- crossing_models()[[name]]
    model <- eval(entry$call)
    types <- prediction_types(model)
    type <- intersect(c("response", "probability"), types)[1]
    if (is.na(type) || !"draws" %in% types) next
    data <- crossing_rows("steady", min(entry$n, 20))
    if (!is.null(entry$columns)) data <- data[entry$columns]
    fit <- quiet_fit(model, data, seed = test_seed(), progress = FALSE)
    draws <- predict(fit, data, type = "draws", draws = 2000, seed = test_seed())
    if (length(dim(draws)) != 2) next
    found <- predict(fit, data, type = type)
    # of a class, the share of draws in it
    if (type == "probability")
      draws <- do.call(cbind, lapply(seq_len(ncol(found)), function(k) (draws == k) + 0))
    apart <- abs(as.vector(found) - colMeans(draws)) / (apply(draws, 2, sd) / sqrt(2000))
    expect_lt(max(apart[is.finite(apart)]), 5.5, label = name)
    checked <- c(checked, name)
  }
  expect_gt(length(checked), 25)
})

test_that("residuals with group-level terms are from predictions", {
  data <- with_own_seed(test_seed(7), data.frame(g = rep(1:4, each = 6), x = rnorm(24)))
  data$y <- with_own_seed(test_seed(8), data$x + rnorm(24))
  fit <- quiet_fit(regression(y ~ x + (1 | g), sigma = 1.3), data, seed = test_seed())
  expect_equal(residuals(fit, data), data$y - predict(fit, data), ignore_attr = TRUE)
})

test_that("draws without weight do not make predictions infinite", {
  data <- with_own_seed(2, data.frame(x = rnorm(12), g = factor(rep(1:4, 3))))
  data$k <- with_own_seed(3, rpois(12, exp(0.5 + 0.3 * data$x)))
  fit <- quiet_fit(regression(k ~ x + (1 | g), poisson()), data, seed = 1)
  means <- predict(fit, data[1:3, ])
  far <- 1:5
  fit$parameters[far, ] <- fit$draws[far, ] <- 800
  without <- function(log_weights, at) normalise(replace(log_weights, at, -1e6))
  fit$log_weights <- without(fit$log_weights, far)
  expect_equal(predict(fit, data[1:3, ]), means, tolerance = 0.05)
  expect_true(all(is.finite(predict(fit, data[1:3, ], groups = FALSE))))
  plain <- quiet_fit(regression(k ~ x, poisson()), data, seed = 1)
  means <- predict(plain, data)
  plain$parameters[1, ] <- plain$draws[1, ] <- 800
  plain$log_weights <- without(plain$log_weights, 1)
  expect_equal(predict(plain, data), means, tolerance = 0.05)
})

test_that("the number of trials of new rows is theirs if given, else one", {
  data <- regression_data(40)[1:4, ]
  fit <- fit_at(regression(cbind(hits, misses) ~ x, binomial()), data, c(0.5, 1))
  p <- plogis(0.5 + data$x)
  expect_equal(predict(fit, data), data$trials * p)
  expect_equal(predict(fit, data["x"]), p)
  expect_equal(predict(fit, transform(data, hits = NA)), p)
  expect_lte(max(predict(fit, data["x"], "draws", draws = 50)), 1)
  replicated <- simulate(fit, nsim = 2, newdata = data, seed = test_seed())
  expect_type(replicated, "list")
  expect_named(replicated, c("sim_1", "sim_2"))
  expect_identical(colnames(replicated$sim_2), c("hits", "misses"))
  expect_equal(rowSums(replicated$sim_1), data$trials)
  refused(predict(fit, data, type = "class"), "whose rows have no class.")
})

test_that("predicted classes are the most probable ones", {
  data <- regression_data(60)
  data$sick <- factor(ifelse(data$one == 1, "yes", "no"))
  fit <- fit_at(regression(sick ~ x, binomial()), data, c(0.5, 1))
  p <- predict(fit, data)
  expect_identical(predict(fit, data, "class"), factor(ifelse(p > 0.5, "yes", "no")))
  expect_equal(predict(fit, data, "probability"), cbind(no = 1 - p, yes = p))
  expect_identical(levels(simulate(fit, newdata = data, seed = 1)$sim_1), c("no", "yes"))
  expect_true(all(predict(fit, data, "draws", draws = 5) %in% 0:1))
  plain <- fit_at(regression(one ~ x, binomial()), data, c(0.5, 1))
  expect_identical(levels(predict(plain, data, "class")), c("0", "1"))
  softmax <- fit_at(softmax_regression(g ~ x), data, c(0, 1, 0, 0, 1, -2))
  draws <- predict(softmax, data["x"], type = "draws", draws = 2000, seed = test_seed())
  expect_identical(attr(draws, "levels"), c("a", "b", "c"))
  shares <- vapply(1:3, function(k) colMeans(draws == k), numeric(60))
  expect_lt(max(abs(shares - predict(softmax, data["x"]))), 4.5 * 0.5 / sqrt(2000))
  expect_s3_class(simulate(softmax, newdata = data, seed = 1)$sim_1, "factor")
})

test_that("simulate() keeps the contract of its generic", {
  sets <- simulate(line, nsim = 4, seed = 3)
  expect_s3_class(sets, "data.frame")
  expect_identical(dim(sets), c(32L, 4L))
  expect_named(sets, paste0("sim_", 1:4))
  expect_identical(attr(sets, "seed"), 3)
  expect_identical(simulate(line, nsim = 4, seed = 3), sets)
  free <- simulate(line)
  expect_identical(simulate(line, seed = attr(free, "seed")), free)
  y <- as.matrix(simulate(line, nsim = 3000, newdata = new, seed = test_seed()))
  expect_z(z_score(t(y), predict(line, new)))
  refused(simulate(line, nsim = 0), "`nsim` must be a whole number")
  refused(simulate(line, 2, 1, new, size = 3), "not `size`.")
})

test_that("with lags of the response replicates are series, and fitted values keep their rows", {
  model <- linear_regression(y ~ lags(y, 1) + offset(o), sigma = 1e-9, prior_sd = 10)
  data <- data.frame(o = c(0, 1, 0, 2, 0, 1))
  data$y <- Reduce(function(last, o) 0.5 * last + 1 + o, data$o[-1], 3, accumulate = TRUE)
  fit <- evidence(model, data, exact(), seed = test_seed())
  expect_equal(fitted(fit), data$y[-1])
  expect_equal(predict(fit), data$y[-1])
  expect_equal(simulate(fit, seed = 1)$sim_1, data$y[-1], tolerance = 1e-6)
  other <- transform(data, y = c(7, rep(NA, 5)))
  series <- Reduce(function(last, o) 0.5 * last + 1 + o, data$o[-1], 7, accumulate = TRUE)
  expect_equal(simulate(fit, newdata = other, seed = 1)$sim_1, series[-1], tolerance = 1e-6)
})

test_that("log_lik() gives the log-likelihoods of single rows", {
  f <- model_functions(known, mtcars)
  all <- log_lik(line, weighted = TRUE)
  expect_equal(all, f$log_lik_each(line$draws), ignore_attr = TRUE)
  expect_identical(attr(all, "log_weights"), line$log_weights)
  some <- log_lik(line, mtcars[1:3, ], draws = 40, seed = 5)
  expect_identical(dim(some), c(40L, 3L))
  expect_true(all(some[, 2] %in% all[, 2]))
  expect_identical(log_lik(line, mtcars[1:3, ], draws = 40, seed = 5), some)
  refused(log_lik(line, draws = 3, weighted = TRUE), "`draws` must be given only")
  refused(log_lik(1), "`object` must be a fit from `evidence()`")
  skip_if_not_installed("rstantools")
  expect_identical(rstantools::log_lik(line, draws = 40, seed = 5),
                   log_lik(line, draws = 40, seed = 5))
  registerS3method("log_lik", "fit_of_another_package", function(object, ...) "theirs",
                   asNamespace("rstantools"))
  expect_identical(log_lik(structure(1, class = "fit_of_another_package")), "theirs")
})

test_that("log_lik() works for custom models", {
  rows <- c(1.2, 0.4, 2.1)
  custom <- custom_model("m", function(theta, data) dnorm(data, theta, log = TRUE),
                         function(theta) dnorm(theta, log = TRUE), function(n) matrix(rnorm(n)))
  fit <- muffled(evidence(custom, rows, likelihood_weighting(50), seed = test_seed(),
                           progress = FALSE))
  expect_equal(log_lik(fit, weighted = TRUE),
               outer(fit$draws[, 1], rows, function(m, y) dnorm(y, m, log = TRUE)),
               ignore_attr = TRUE)
  expect_equal(log_lik(fit, rows[2:3], weighted = TRUE), log_lik(fit, weighted = TRUE)[, 2:3],
               ignore_attr = TRUE)
})

test_that("the mean of a response, or the probability of a binary one, has limits", {
  expect_equal(predict(line, new, type = "expected"), predict(line, new))
  expect_equal(predict(line, new, type = "expected", interval = 0.8)[, -1],
               predict(line, new, type = "link", interval = 0.8)[, -1])
  data <- regression_data(40)
  points <- rbind(c(0.2, 0.5), c(-1, 2), c(1, -0.3), c(0, 0))
  fit <- fit_at(regression(g == "a" ~ x, binomial()), data, points, log(c(0.4, 0.3, 0.2, 0.1)))
  p <- plogis(points %*% rbind(1, data$x[1:3]))
  found <- predict(fit, data[1:3, ], type = "expected", interval = 0.5)
  expect_equal(found[, "fit"], predict(fit, data[1:3, ]))
  for (j in 1:3)
    expect_equal(found[j, 2:3], weighted_quantile(p[, j], exp(fit$log_weights), c(0.25, 0.75)),
                 ignore_attr = TRUE)
  refused(predict(fit, data, type = "probability", interval = 0.5),
          "\"expected\" has that of the probability")
  expect_equal(predict(fit_at(gaussian_mean(), 1:3, c(1, 3), log(c(0.5, 0.5))), 1:3, "expected",
                       interval = 0.9), cbind(fit = rep(2, 3), lower = 1, upper = 3))
})

test_that("constants of a formula keep their values after the fit", {
  run <- function(model) quiet_fit(model, cars, laplace(importance = 50), seed = test_seed())
  k <- 2
  fit <- run(linear_regression(dist ~ I(speed^k / 100), sigma = 15, prior_sd = 20))
  normal <- run(density(~ dnorm(dist, mu, 15 * k, log = TRUE), mu = ~ I(speed^k / 100)))
  numbers <- function() list(predict(fit, cars), fitted(fit, cars),
                             predict(normal, cars, type = "density"))
  before <- numbers()
  k <- 3
  expect_identical(numbers(), before)
  of_arguments <- function(k, b) linear_regression(dist ~ I(speed^k / b))
  expect_s3_class(of_arguments(b = stop("never used")), "linear_regression")
  # a column is used before a constant of the same name
  square <- function() run(linear_regression(dist ~ I(speed^2 / 100), sigma = 15, prior_sd = 20))
  without <- square()
  speed <- 7
  expect_identical(square()$log_evidence, without$log_evidence)
})

test_that("predictions that a model does not have are refused in a sentence", {
  refused(predict(line, new, interval = "prediction"), "`interval` must be a level between 0 and 1")
  for (level in list(TRUE, 90, 0, c(0.1, 0.9)))
    refused(predict(line, new, interval = level), "`interval` must be a level between 0 and 1")
  refused(predict(line, new, "density", interval = 0.9),
          "it is for \"response\", \"expected\" or \"link\".")
  refused(predict(line, new, level = 0.9), "`level` is not an argument: use `interval`")
  refused(predict(line, new, ndraws = 10), "use `draws`, as in `draws = 500`.")
  refused(predict(line, new, draws = 10), "`draws` must be NULL unless")
  refused(predict(line, new, seed = 1), "`seed` must be NULL unless")
  refused(predict(line, new, "draws", draws = 0), "`draws` must be a whole number")
  # draws are known of a single density of R
  known <- density(~ dpois(count, exp(mu), log = TRUE), mu = ~ x, mean = ~ exp(mu))
  wide <- predict(fit_at(known, regression_data(20), c(3, 0)), regression_data(20)[1, ],
                  interval = 0.9, seed = 1)
  expect_equal(wide[1, 2:3], qpois(c(0.05, 0.95), exp(3)), tolerance = 0.06, ignore_attr = TRUE)
  counts <- density(~ dpois(count, exp(mu), log = TRUE) + log(1), mu = ~ x, mean = ~ exp(mu))
  fit <- fit_at(counts, regression_data(20), c(0, 0))
  refused(predict(fit, regression_data(20), interval = 0.9), "cannot.")
  refused(predict(fit, regression_data(20), "draws"), "`type` must be")
  refused(simulate(fit), "simulate() needs a model that can simulate data")
  softmax <- fit_at(softmax_regression(g ~ x), regression_data(20), rep(0, 6))
  refused(predict(softmax, regression_data(20), interval = 0.9), "no intervals.")
})

test_that("quantiles of rows are those of quantile() and of weighted_quantile()", {
  at <- c(0, 0.05, 0.5, 0.913, 1)
  with_own_seed(test_seed(5), {
    shapes <- list(rnorm, function(n) as.double(rpois(n, 3)), function(n) rcauchy(n)^3,
                   function(n) as.double(runif(n) < 0.3), function(n) rep(2, n))
    for (shape in shapes) for (n in c(1, 2, 7, 500)) {
      x <- matrix(shape(6 * n), 6)
      columns <- lapply(seq_len(n), function(j) x[, j])
      expect_equal(.Call(ffi_row_quantiles, columns, rep(1, n), (n - 1) * at, 0),
                   t(apply(x, 1, quantile, at, names = FALSE)))
      # between equal values of different weights the order is arbitrary
      x <- matrix(rexp(6 * n), 6)
      weights <- c(rexp(n)^3, 0)[seq_len(n) + (n > 5)]
      weights <- weights / sum(weights)
      expect_equal(.Call(ffi_row_quantiles, x, weights, sum(weights) * at, 0.5),
                   t(apply(x, 1, weighted_quantile, weights, at)))
    }
  })
})

test_that("the generics of rstantools, loo and bayesplot take fits", {
  skip_if_not_installed("rstantools")
  of <- function(package, name) getExportedValue(package, name)
  drawn <- of("rstantools", "posterior_predict")(line, new, draws = 50, seed = 2)
  expect_identical(drawn, predict(line, new, type = "draws", draws = 50, seed = 2))
  linear <- of("rstantools", "posterior_linpred")(line, newdata = new, draws = 4000, seed = 2)
  expect_equal(of("rstantools", "posterior_epred")(line, new, draws = 4000, seed = 2), linear)
  expect_equal(apply(linear, 2, sd), spread_of_line(new), tolerance = 0.06)
  expect_equal(of("rstantools", "predictive_interval")(line, 0.5, new, 300, seed = 4),
               predict(line, new, interval = 0.5, draws = 300, seed = 4)[, -1], ignore_attr = TRUE)
  expect_equal(of("rstantools", "posterior_interval")(line, 0.9), confint(line, level = 0.9))
  # the data of the fit are found where the generic is called
  inside <- function(rows) {
    fit <- evidence(known, rows, exact(), seed = 1)
    of("rstantools", "predictive_error")(fit, seed = 3) +
      of("rstantools", "posterior_predict")(fit, seed = 3)
  }
  expect_equal(inside(mtcars[1:9, ])[7, ], mtcars$mpg[1:9])
  r2 <- mean(of("rstantools", "bayes_R2")(line, seed = 1))
  expect_equal(r2, var(fitted(line)) / (var(fitted(line)) + var(residuals(line))), tolerance = 0.02)
  # counts of successes as proportions, and classes
  data <- regression_data(30)
  trials <- fit_at(regression(cbind(hits, 10 + count - hits) ~ x, binomial()),
                   transform(data, hits = pmin(count, 5)), c(-1, 0.3))
  data$hits <- pmin(data$count, 5)
  p <- plogis(-1 + 0.3 * data$x)
  expect_equal(of("rstantools", "bayes_R2")(trials, data, draws = 1, seed = 1),
               var(p) / (var(p) + var(data$hits / (10 + data$count) - p)))
  classes <- fit_at(softmax_regression(g ~ x), data, c(0.1, 0.2, -0.3, 0, 1, -1))
  each <- of("rstantools", "posterior_epred")(classes, data[1:4, ], draws = 3)
  expect_equal(each[2, , ], predict(classes, data[1:4, ]), ignore_attr = TRUE)
  refused(of("rstantools", "posterior_linpred")(classes, newdata = data), "has no linear predictor")
  refused(of("rstantools", "posterior_predict")(line, ndraws = 3), "use `draws`")
  skip_if_not_installed("loo")
  found <- suppressWarnings(of("loo", "loo")(line, seed = 1))
  expect_equal(found$estimates["elpd_loo", "Estimate"], sum(loo_of_line()), tolerance = 0.01)
  expect_equal(suppressWarnings(of("loo", "waic")(line, seed = 1))$estimates["elpd_waic", 1],
               sum(loo_of_line()), tolerance = 0.01)
  skip_if_not_installed("bayesplot")
  expect_s3_class(of("bayesplot", "pp_check")(line, "stat", stat = "max", draws = 9), "ggplot")
  refused(of("bayesplot", "pp_check")(line, "nope"), "the name of a picture of bayesplot")
})

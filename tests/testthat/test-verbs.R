# coef(), fitted() and their like, against lm() and closed forms.

model <- linear_regression(mpg ~ wt + offset(hp / 100), sigma = 3, prior_sd = 1e4)
fit <- evidence(model, mtcars, exact(), seed = test_seed())
least <- lm(mpg ~ wt + offset(hp / 100), mtcars)
draws <- nrow(fit$draws)

test_that("verbs of a linear regression with a wide prior agree with lm()", {
  expect_named(coef(fit), names(coef(least)))
  spread <- 3 * sqrt(diag(summary(least)$cov.unscaled))
  expect_lt(max(abs(coef(fit) - coef(least)) / spread), 5 / sqrt(draws))
  expect_equal(vcov(fit), 9 * summary(least)$cov.unscaled, tolerance = 0.2)
  expect_equal(vcov(fit), stats::cov(fit$draws)) # equal weights
  limits <- coef(least) + outer(spread, qnorm(c(0.05, 0.95)))
  expect_lt(max(abs(confint(fit, level = 0.9) - limits) / spread), 8 / sqrt(draws))
  expect_identical(dimnames(confint(fit)), list(names(coef(fit)), c("2.5 %", "97.5 %")))
  expect_identical(confint(fit, "wt"), confint(fit)["wt", , drop = FALSE])
  expect_identical(confint(fit, 2), confint(fit, "wt"))
  design <- model.matrix(least)
  expect_equal(fitted(fit), as.vector(design %*% coef(fit)) + mtcars$hp / 100)
  expect_equal(fitted(fit), predict(fit, mtcars))
  expect_equal(residuals(fit), mtcars$mpg - fitted(fit))
  expect_lt(max(abs(residuals(fit) - residuals(least))), 10 * 3 / sqrt(draws))
  expect_equal(deviance(fit), -2 * sum(dnorm(mtcars$mpg, fitted(fit), 3, log = TRUE)))
  expect_identical(nobs(fit), nobs(least))
  expect_identical(sigma(fit), 3)
  expect_identical(formula(fit), formula(least))
})

test_that("verbs use the weights of draws", {
  weighted <- with_draws(fit)
  weighted$log_weights <- normalise(seq_len(draws) / draws)
  w <- exp(weighted$log_weights)
  expect_equal(coef(weighted), colSums(w * fit$draws))
  expect_equal(vcov(weighted), stats::cov.wt(fit$draws, w)$cov)
  expect_equal(unname(confint(weighted)["wt", ]),
               weighted_quantile(fit$draws[, "wt"], w, c(0.025, 0.975)))
})

test_that("data are those of the call or given, and others are refused", {
  expect_identical(fitted(fit, data = mtcars), fitted(fit))
  refused(fitted(fit, data = mtcars[1:20, ]),
          "`data` must be those of the fit, all 32 rows with those that update() has added and")
  turned <- transform(mtcars, mpg = rev(mpg))
  refused(residuals(fit, data = turned), "`data` must be those of the fit")
  lost <- fit
  lost$call$data <- quote(nowhere_to_be_found)
  refused(deviance(lost), "`data` must be given: the data in the call of the fit were not found.")
})

test_that("classes have probabilities and residuals of ones and zeros", {
  classes <- evidence(softmax_regression(Species ~ Petal.Length, prior_sd = 5), iris,
                      laplace(importance = 100), seed = test_seed())
  p <- fitted(classes)
  expect_identical(p, predict(classes, iris))
  r <- residuals(classes)
  expect_identical(colnames(r), levels(iris$Species))
  expect_equal(r + p, outer(as.character(iris$Species), levels(iris$Species), `==`) + 0,
               ignore_attr = TRUE)
  expect_identical(names(coef(classes)), colnames(classes$draws))
  expect_lt(deviance(classes), 2 * 150 * log(3))
  refused(sigma(classes), paste("sigma() has nothing to return: this softmax_regression() has no",
                                "single standard deviation"))
})

test_that("verbs that a model does not have are errors, not NULL", {
  mixture <- quiet_fit(gaussian_mixture(components = 2), scale(faithful), laplace(),
                       seed = test_seed(),
                       progress = FALSE)
  for (verb in list(coef, vcov, confint, fitted, residuals, deviance, sigma, formula))
    expect_error(verb(mixture), "has nothing to return", class = "logevidence_error")
  expect_identical(nobs(mixture), 272L)
  groups <- clustering(~ a, components = 2, noise_sd = 0.7)
  latent <- quiet_fit(groups, data.frame(a = c(-1, 1, 2)), smc(particles = 20), seed = test_seed(),
                      progress = FALSE)
  expect_identical(sigma(latent), 0.7)
  expect_identical(formula(latent), ~ a, ignore_attr = TRUE)
  refused(coef(latent), "coef() has nothing to return")
  unknown <- quiet_fit(clustering(components = 2, infer = TRUE), c(-1, 1, 2), smc(particles = 20),
                       seed = test_seed(), progress = FALSE)
  expect_equal(sigma(unknown), sum(exp(unknown$log_weights) * unknown$draws[, "noise_sd"]))
  mean_fit <- evidence(gaussian_mean(), c(1, 2, 0), exact())
  expect_lt(abs(coef(mean_fit) - 0.75), 5 * 0.5 / sqrt(nrow(mean_fit$draws)))
  expect_equal(residuals(mean_fit), c(1, 2, 0) - coef(mean_fit)[[1]])
})

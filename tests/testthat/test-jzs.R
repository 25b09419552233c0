# The Zellner-Siow prior against Bayes factors of the BayesFactor package (version 0.9.12-4.4), and
# against integrals in plain R.

jzs_evidence <- function(formula, data, ...)
  evidence(linear_regression(formula, prior = jzs(...)), data, exact(),
           seed = test_seed())$log_evidence

test_that("Bayes factors of regressions are those of regressionBF()", {
  # regressionBF(mpg ~ wt + hp + qsec, mtcars, rscaleCont = "wide")@bayesFactor$bf
  wide <- c(wt = 17.93441995095, hp = 11.19960087760, qsec = 1.16749396712,
            "wt + hp" = 20.78339163365, "wt + qsec" = 20.75407771894,
            "hp + qsec" = 10.69744304142, "wt + hp + qsec" = 19.42818084674)
  null <- jzs_evidence(mpg ~ 1, mtcars, scale = 1 / 2)
  for (terms in names(wide)) {
    formula <- stats::reformulate(terms, "mpg")
    expect_equal(jzs_evidence(formula, mtcars, scale = 1 / 2) - null, wide[[terms]],
                 tolerance = 1e-8)
  }
  # lmBF(rating ~ complaints + privileges + learning + raises + critical + advance, attitude)
  expect_equal(jzs_evidence(rating ~ ., attitude) - jzs_evidence(rating ~ 1, attitude),
               7.70161270336405, tolerance = 1e-8)
})

test_that("Bayes factors of means are those of ttestBF()", {
  # ttestBF(formula = extra ~ group, data = sleep), ttestBF(sleep$extra)
  half <- sqrt(2) / 4
  expect_equal(jzs_evidence(extra ~ group, sleep, half) - jzs_evidence(extra ~ 1, sleep, half),
               0.235803198417734, tolerance = 1e-8)
  one <- function(formula) jzs_evidence(formula, sleep, sqrt(2) / 2, FALSE)
  expect_equal(one(extra ~ 1) - one(extra ~ 0), 2.67491587754421, tolerance = 1e-8)
  # ttestBF(formula = len ~ supp, data = ToothGrowth[c(1:37, 50:55), ], rscale = 1)
  teeth <- ToothGrowth[c(1:37, 50:55), ]
  groups <- table(teeth$supp)
  scale <- sqrt(prod(groups)) / sum(groups)
  expect_equal(jzs_evidence(len ~ supp, teeth, scale) - jzs_evidence(len ~ 1, teeth, scale),
               -1.14405537608690, tolerance = 1e-8)
})

# The evidence by the definition: the response is normal given g and sigma, and sigma^2 and the
# intercept are integrated in closed form.
jzs_truth <- function(x, y, scale, flat) {
  n <- length(y)
  if (flat) x <- sweep(x, 2, colMeans(x))
  unit <- if (flat) rep(1, n)
  given_g <- function(t) {
    cover <- diag(n) + exp(t) * n * x %*% solve(crossprod(x), t(x))
    inverse <- solve(cover)
    rest <- sum(y * inverse %*% y)
    log_det <- determinant(cover)$modulus
    if (flat) {
      info <- sum(inverse)
      rest <- rest - sum(inverse %*% y)^2 / info
      log_det <- log_det + log(info)
    }
    nu <- n - flat
    lgamma(nu / 2) - nu / 2 * log(pi * rest) - log_det / 2 +
      0.5 * log(scale^2 / 2) - lgamma(0.5) - 0.5 * t - scale^2 / 2 * exp(-t)
  }
  t <- seq(-8, 25, length.out = 1651)
  log_sum_exp(vapply(t, given_g, 0)) + log(diff(t[1:2]))
}

test_that("the evidence is the integral over g, with its constants", {
  data <- regression_data(25, 4)
  x <- as.matrix(data[c("x", "z")])
  expect_equal(jzs_evidence(y ~ x + z, data, 0.7), jzs_truth(x, data$y, 0.7, TRUE),
               tolerance = 1e-9)
  expect_equal(jzs_evidence(y ~ x + z + offset(e), data, 0.7),
               jzs_truth(x, data$y - data$e, 0.7, TRUE), tolerance = 1e-9)
  expect_equal(jzs_evidence(y ~ 0 + x + z, data, 0.4), jzs_truth(x, data$y, 0.4, FALSE),
               tolerance = 1e-9)
  expect_equal(jzs_evidence(y ~ x, data, 0.4, FALSE),
               jzs_truth(cbind(1, data$x), data$y, 0.4, FALSE), tolerance = 1e-9)
  list_form <- evidence(linear_regression(prior = jzs(0.7)), list(x = x, y = data$y), exact())
  expect_equal(list_form$log_evidence, jzs_evidence(y ~ x + z, data, 0.7))
})

test_that("Bayes factors do not depend on units and contrasts", {
  null <- jzs_evidence(mpg ~ 1, mtcars)
  bf <- jzs_evidence(mpg ~ wt + factor(cyl), mtcars) - null
  far <- transform(mtcars, wt = 1e6 * wt + 1e9, mpg = 1e-5 * mpg - 3,
                   cyl = factor(cyl, c(8, 4, 6)))
  expect_equal(jzs_evidence(mpg ~ wt + cyl, far) - jzs_evidence(mpg ~ 1, far), bf,
               tolerance = 1e-7)
})

test_that("draws follow the posterior given g and sigma", {
  fit <- evidence(linear_regression(mpg ~ wt + hp, prior = jzs()), mtcars, seed = test_seed())
  expect_identical(fit$method$name, "exact")
  # lmBF(mpg ~ wt + hp, mtcars): mean and sd of 20,000 draws of its posterior
  reference <- rbind(wt = c(-3.7837, 0.6755), hp = c(-0.03102, 0.00955))
  for (name in rownames(reference)) {
    draws <- fit$draws[, name]
    expect_lt(abs(mean(draws) - reference[name, 1]), 4.5 * reference[name, 2] / sqrt(1000))
    expect_lt(abs(stats::sd(draws) / reference[name, 2] - 1), 0.12)
  }
  expect_lt(abs(mean(fit$draws[, "sigma"]^2) - 7.494), 4.5 * 2.2 / sqrt(1000))
  null <- evidence(linear_regression(mpg ~ 1, prior = jzs()), mtcars, seed = test_seed())
  z <- (mean(null$draws[, 1]) - mean(mtcars$mpg)) / stats::sd(mtcars$mpg) * sqrt(32 * 1000)
  expect_lt(abs(z), 4.5)
  nothing <- evidence(linear_regression(extra ~ 0, prior = jzs()), sleep, seed = test_seed())
  expect_named(coef(nothing), "sigma")
  expect_equal(predict(nothing, sleep[1:2, ]), c(0, 0))
  expect_length(predict(fit, mtcars[1:3, ], type = "density"), 3)
})

test_that("methods and checks that need a proper prior refuse jzs()", {
  model <- linear_regression(mpg ~ wt, prior = jzs())
  fails <- function(code, words) expect_error(code, words, class = "logevidence_error")
  for (method in list(sgais(), smc(), nested(), laplace(), bic()))
    fails(evidence(model, mtcars, method, seed = test_seed()),
          "`method` must be exact\\(\\) for this model")
  fails(model_functions(model, mtcars)$log_prior(c(0, 0, 0)), "improper")
  fails(model_functions(model, mtcars)$draw_prior(2), "improper")
  fails(simulate(model, data = mtcars), "`parameters` must be given")
  expect_length(simulate(model, data = mtcars, parameters = c(30, -5, 1), seed = test_seed())$mpg,
                32)
  fails(check_model(model, mtcars), "improper")
  fails(regression(cyl ~ wt, poisson(), prior = jzs()), "for the family gaussian, not for poisson")
  fails(regression(mpg ~ wt, prior = jzs(), intercept = normal(0, 1)), "`intercept` must not be")
  fails(linear_regression(mpg ~ wt, sigma = 1, prior = jzs()), "`sigma` must not be given")
  fails(linear_regression(mpg ~ wt, prior_sd = 1, prior = jzs()), "`prior_sd` must not be given")
  fails(jzs(0), "`scale` must be a positive number, not 0.")
  fails(jzs(flat_intercept = NA), "`flat_intercept` must be TRUE or FALSE")
  blocks <- in_blocks(mtcars, 10)
  fails(evidence(model, blocks), "use `collect = TRUE`")
  expect_equal(evidence(model, blocks, collect = TRUE)$log_evidence,
               evidence(model, mtcars)$log_evidence)
  twice <- transform(mtcars, wt2 = 2 * wt + 1, one = 5)
  run <- function(formula, data) evidence(linear_regression(formula, prior = jzs()), data)
  fails(run(mpg ~ wt + wt2, twice), "`wt2` is constant or a linear function of the others")
  fails(run(mpg ~ wt + one, twice), "`one` is constant")
  fails(run(mpg ~ wt + hp, mtcars[1:3, ]), "more rows than coefficients \\(3\\)")
  fails(run(mpg ~ I(2 * mpg), mtcars), "fit the response exactly")
})

test_that("fits can be compared only if the same parameters have improper priors", {
  fit <- function(formula, ...) evidence(linear_regression(formula, ...), sleep, exact(),
                                         seed = test_seed())
  flat <- fit(extra ~ group, prior = jzs())
  null <- fit(extra ~ 1, prior = jzs())
  expect_equal(compare_models(flat, null)$model, c("flat", "null"))
  proper <- fit(extra ~ group)
  origin <- fit(extra ~ 0 + group, prior = jzs())
  for (compare in list(compare_models, bayes_factor, post_prob)) {
    expect_error(compare(flat, proper), "`.*` has improper priors of the intercept and `sigma`|or",
                 class = "logevidence_error")
    expect_error(compare(flat, origin), "improper", class = "logevidence_error")
  }
  expect_error(compare_models(flat, proper), "`proper` has a proper prior", fixed = TRUE)
})

test_that("levels without rows are left out, as lm() does", {
  two <- subset(iris, Species != "setosa")
  model <- linear_regression(Sepal.Length ~ Species + Petal.Width, prior = jzs())
  fit <- evidence(model, two, progress = FALSE)
  expect_identical(logml(fit), logml(evidence(model, droplevels(two), progress = FALSE)))
  expect_named(coef(fit), c("(Intercept)", "Speciesvirginica", "Petal.Width", "sigma"))
  expect_output(print(fit), "Note: No row has the level \"setosa\" of `Species`, left out.",
                fixed = TRUE)
  expect_error(predict(fit, iris[1, ]), "only known levels in `Species`")
  expect_error(evidence(model, iris[1:50, ], progress = FALSE), "at least two levels in the factor")
})

# The priors of Rouder et al. (2012) of fixed and random factors, jzs(fixed = ) and jzs() with
# group-level terms, against dense matrices and against package BayesFactor.

# log p(y | g) with a flat mean and density 1 / sigma^2, by dense matrices.
given_g <- function(y, z, g) {
  n <- length(y)
  v <- diag(n) + z %*% (g * t(z))
  inverse <- solve(v)
  one <- rep(1, n)
  weight <- sum(inverse)
  rest <- sum(y * (inverse %*% y)) - sum(inverse %*% y)^2 / weight
  half <- (n - 1) / 2
  as.vector(-half * log(2 * pi) - determinant(v)$modulus / 2 - log(weight) / 2 + lgamma(half) -
              half * log(rest / 2))
}

contrasts_for <- function(x) {
  a <- nlevels(x)
  eigen(diag(a) - 1 / a)$vectors[as.integer(x), seq_len(a - 1), drop = FALSE]
}

repeated <- with_own_seed(test_seed(440), {
  d <- expand.grid(shape = factor(c("round", "square")), color = factor(c("a", "b", "c")),
                   id = factor(1:7))
  d$w <- rnorm(42)
  d$y <- 40 + rnorm(7, 0, 2)[d$id] + (d$shape == "round") + 0.3 * d$w + rnorm(42)
  d
})

test_that("given g the density equals that from dense matrices", {
  model <- linear_regression(y ~ shape * color + w + (1 | id), prior = jzs())
  f <- model_functions(model, repeated)
  expect_identical(f$user_names, c("g_id", "g_shape", "g_color", "g_shape:color", "g_covariates"))
  d <- repeated
  shape <- contrasts_for(d$shape)
  color <- contrasts_for(d$color)
  z <- cbind(outer(as.integer(d$id), 1:7, `==`) + 0, shape, color, shape[, 1] * color,
             sqrt(42) * scale(d$w)[, 1] / sqrt(sum(scale(d$w)^2)))
  theta <- c(0.4, -0.3, -1, 0.2, 0.6)
  g <- exp(theta)[c(rep(1, 7), 2, 3, 3, 4, 4, 5)]
  expect_equal(f$log_lik(theta), given_g(d$y, z, g), tolerance = 1e-10)
  # the prior of g
  expect_equal(f$log_prior(theta), sum(mapply(function(t, s)
    log(s^2 / 2) / 2 - lgamma(1 / 2) - 1.5 * t - s^2 / 2 / exp(t) + t, theta,
    c(1, 0.5, 0.5, 0.5, sqrt(2) / 4))), tolerance = 1e-12)
})

test_that("Bayes factors of fixed factors are those of anovaBF()", {
  teeth <- transform(ToothGrowth, dose = factor(dose))
  fit <- function(formula) evidence(linear_regression(formula, prior = jzs(fixed = 1 / 2)), teeth,
                                    seed = 1)
  none <- fit(len ~ 1)
  # BayesFactor 0.9.12-4.4, with errors of 1e-4, 1e-8 and two percent
  known <- c(supp = 0.181285, dose = 29.237181, both = 33.267, all = 34.299)
  found <- list(supp = fit(len ~ supp), dose = fit(len ~ dose), both = fit(len ~ supp + dose),
                all = fit(len ~ supp * dose))
  for (name in names(known))
    expect_lt(abs(found[[name]]$log_evidence - none$log_evidence - known[[name]]),
              4 * found[[name]]$se + if (name %in% c("both", "all")) 0.08 else 1e-3)
  # a factor of two levels is the t test
  plain <- evidence(linear_regression(len ~ supp, prior = jzs()), teeth, seed = 1)
  expect_lt(abs(plain$log_evidence - found$supp$log_evidence), 4 * found$supp$se + 1e-6)
})

test_that("Bayes factors with random factors are those of lmBF(whichRandom = )", {
  fit <- function(formula) evidence(linear_regression(formula, prior = jzs()), sleep, seed = 1)
  with_group <- fit(extra ~ group + (1 | ID))
  without <- fit(extra ~ 1 + (1 | ID))
  # BayesFactor 0.9.12-4.4, with an error of 0.7 percent
  expect_lt(abs(with_group$log_evidence - without$log_evidence - 2.4428),
            4 * sqrt(with_group$se^2 + without$se^2 + 0.0074^2))
  compared <- compare_models(with_group, without)
  expect_s3_class(compared, "model_comparison")
  refused(bayes_factor(with_group, evidence(linear_regression(extra ~ group), sleep, seed = 1)),
          "improper")
  refused(linear_regression(extra ~ group + (group | ID), prior = jzs()), "terms of intercepts")
  refused(fit(extra ~ group * as.integer(ID) + (1 | ID)), "interactions of factors only")
  refused(predict(with_group, sleep), "no predictions")
  refused(evidence(linear_regression(extra ~ group + (1 | ID), prior = jzs()), sleep, exact()),
          "the priors of factors leave an integral over each `g`")
  refused(evidence(linear_regression(extra ~ group + (1 | ID)), sleep, exact()),
          "one with group-level terms has an integral over their parameters")
  for (verb in list(coef, vcov, confint, group_effects))
    refused(verb(with_group), "effects are integrated out, and it has draws of the variances")
})

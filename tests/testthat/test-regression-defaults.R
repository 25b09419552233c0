# One model, one answer: linear_regression() is the gaussian family of regression(), and priors mean
# the same in every regression.

kg <- with_own_seed(7, {
  x <- rnorm(40)
  data.frame(x, far = 100 + 20 * x + 5 * rnorm(40), y = 1 + 0.5 * x + rnorm(40),
             kind = factor(sample(c("a", "b", "c"), 40, TRUE)), count = rpois(40, 2))
})
exactly <- function(model, data = kg) evidence(model, data, exact())$log_evidence

test_that("linear_regression() and regression() are the same model", {
  both <- function(...) expect_identical(exactly(linear_regression(y ~ x, ...)),
                                         exactly(regression(y ~ x, ...)))
  both()
  both(sigma = 2)
  both(sigma = exponential(1), prior = normal(1, 3))
  both(auxiliary = half_normal(2), prior_sd = c(4, 1))
  both(intercept = normal(0, 1), scale = TRUE)
  both(prior = jzs())
  for (model in list(linear_regression(y ~ x, sigma ~ x), regression(y ~ x, sigma ~ x)))
    expect_identical(model_functions(model, kg)$names[3:4], c("sigma_(Intercept)", "sigma_x"))
  fits <- lapply(list(linear_regression(y ~ x), regression(y ~ x)), evidence, kg,
                 seed = test_seed())
  expect_identical(fits[[1]]$log_evidence, fits[[2]]$log_evidence)
})

test_that("short forms are normal priors of all coefficients, the intercept included", {
  expect_identical(exactly(regression(y ~ x, prior_sd = 3)),
                   exactly(regression(y ~ x, prior_sd = 3)))
  expect_identical(exactly(regression(y ~ x, prior_mean = c(0, 2), prior_sd = 3)),
                   exactly(regression(y ~ x, prior = list("(Intercept)" = normal(0, 3),
                                                          x = normal(2, 3)))))
  # names that leave out the intercept leave it its default
  usual <- exactly(regression(y ~ x, prior = normal(0, 5)))
  for (model in list(regression(y ~ x, prior_sd = c(x = 5)),
                     regression(y ~ x, prior_sd = c(x = 5), prior_mean = c(x = 0)),
                     regression(y ~ x, prior = list(x = normal(0, 5)))))
    expect_identical(exactly(model), usual)
  expect_match(said(regression(y ~ x, prior_sd = c(x = 5))),
               "(Intercept) ~ normal(mean = 0, sd = 10)", fixed = TRUE)
  refused(exactly(regression(y ~ x, prior_sd = c(z = 5))), "not by `z`")
  refused(exactly(regression(y ~ x, prior_sd = c(x = 5),
                             prior_mean = c("(Intercept)" = 2, x = 0))),
        "not none for `(Intercept)`")
  refused(exactly(regression(y ~ x + far, prior_sd = c(x = 5))), "not none for `far`")
  expect_identical(exactly(regression(y ~ x, prior_sd = 3, intercept = normal(1, 9))),
                   exactly(regression(y ~ x, prior = list("(Intercept)" = normal(1, 9),
                                                          x = normal(0, 3)))))
  # defaults are those of standardised columns, in units of the response
  own <- transform(kg, x = (x - mean(x)) / sd(x), y = (y - mean(y)) / sd(y))
  expect_equal(exactly(regression(y ~ x)) + nrow(kg) * log(sd(kg$y)),
               exactly(regression(y ~ x, prior = normal(0, 2.5), intercept = normal(0, 10),
                                  sigma = half_student(3, 2.5)), own), tolerance = 1e-10)
  # priors by name need none for the intercept if that has its own
  expect_identical(exactly(regression(y ~ x, prior = list(x = normal(0, 2)),
                                      intercept = normal(1, 9))),
                   exactly(regression(y ~ x, prior = normal(0, 2), intercept = normal(1, 9))))
  # a prior that is given is not that of the intercept, but in its short form
  expect_identical(exactly(regression(y ~ x, prior = normal(0, 2))),
                   exactly(regression(y ~ x, prior = list(x = normal(0, 2)))))
  expect_false(exactly(regression(y ~ x, prior = normal(0, 2))) ==
                 exactly(regression(y ~ x, prior_sd = 2)))
  # models without an intercept have none
  expect_identical(exactly(regression(y ~ 0 + x, prior = normal(0, 2))),
                   exactly(regression(y ~ 0 + x, prior_sd = 2)))
})

test_that("known noise has a closed form, also on standardised columns", {
  own <- transform(kg, far = (far - mean(far)) / sd(far))
  expect_equal(exactly(linear_regression(y ~ far, 1.5, scale = TRUE)),
               exactly(linear_regression(y ~ far, 1.5), own), tolerance = 1e-12)
  fit <- evidence(linear_regression(y ~ far, 1.5, scale = TRUE), kg, seed = test_seed())
  plain <- evidence(linear_regression(y ~ far, 1.5), own, seed = test_seed())
  expect_equal(predict(fit, kg), predict(plain, own), tolerance = 1e-10)
  expect_equal(coef(fit)[["far"]] * sd(kg$far), coef(plain)[["far"]], tolerance = 1e-10)
})

test_that("known noise works with priors with heavy tails", {
  fit <- evidence(regression(y ~ x, sigma = 1, prior = student_t(3, 0, 2),
                             intercept = student_t(3, 0, 2)), kg,
                  laplace(importance = 4000), seed = test_seed())
  density <- function(b) vapply(b, function(b2) integrate(function(a) vapply(a, function(a1)
    prod(dnorm(kg$y, a1 + b2 * kg$x)) * dt(a1 / 2, 3) / 2 * dt(b2 / 2, 3) / 2, 0),
    0, 2, rel.tol = 1e-8)$value, 0)
  truth <- log(integrate(density, -0.5, 1.5, rel.tol = 1e-7)$value)
  expect_lt(abs(fit$log_evidence - truth) / fit$se, 4.5)
})

test_that("softmax_regression() has the arguments of the other regressions", {
  run <- function(..., data = kg) evidence(softmax_regression(kind ~ far, ...), data,
                                           laplace(importance = 500), seed = test_seed())
  same <- function(a, b) expect_equal(a$log_evidence, b$log_evidence, tolerance = 1e-9)
  same(run(prior_sd = 2), run(prior_sd = 2))
  same(run(prior = normal(0, 2), intercept = normal(0, 5)), run(prior_sd = c(5, 2)))
  own <- transform(kg, far = (far - mean(far)) / sd(far))
  scaled <- run(scale = TRUE)
  same(scaled, run(data = own))
  expect_equal(predict(scaled, kg, type = "probability"),
               predict(run(data = own), own, type = "probability"), tolerance = 1e-8)
  heavy <- model_functions(softmax_regression(kind ~ far, prior = student_t(3, 0, 2),
                                              intercept = student_t(3, 0, 2)), kg)
  expect_equal(heavy$log_prior(rep(1, 6)), 6 * (dt(0.5, 3, log = TRUE) - log(2)))
})

test_that("arguments that contradict each other are refused", {
  fails <- function(code, words) expect_error(code, words, class = "logevidence_error")
  fails(regression(y ~ x, prior = normal(), prior_sd = 2), "`prior_sd` must not be given with")
  fails(linear_regression(y ~ x, prior = normal(), prior_mean = 2), "`prior_mean` must not be")
  fails(regression(y ~ x, prior = list("(Intercept)" = normal(), normal()), intercept = normal()),
        "`intercept` must not be given with")
  fails(regression(count ~ x, poisson(), sigma = 2), "family poisson, which has no parameter")
  fails(regression(y ~ x, student(), sigma = 2), "`sigma` must be a prior")
  fails(regression(y ~ x, sigma ~ x, sigma = 2), "a formula or a prior, not both")
  fails(regression(y ~ x, sigma = exponential(), auxiliary = exponential()), "short for")
  fails(regression(y ~ x, sigma = 2, auxiliary = exponential()), "must not be given with")
  fails(regression(y ~ x, intercept = half_normal()), "`intercept` must be a prior of a real")
})

test_that("a prior that is far too wide for its column is named in a warning", {
  fit <- evidence(linear_regression(y ~ far, prior_sd = 1e6), kg, exact())
  expect_match(said(fit), "a standard deviation of `far` changes the linear predictor")
  expect_no_match(said(evidence(linear_regression(y ~ x), kg, exact())), "changes the linear")
})

test_that("an unknown argument is an error that names the nearest one", {
  fails <- function(code, words)
    expect_error(code, words, fixed = TRUE, class = "logevidence_error")
  fails(regression(y ~ x, priors = normal()), "not `priors`: the nearest is `prior`.")
  fails(linear_regression(y ~ x, sigmas = 2), "not `sigmas`: the nearest is `sigma`.")
  fails(softmax_regression(kind ~ x, scaled = TRUE), "not `scaled`: the nearest is `scale`.")
  fails(regression(y ~ x, something_else = 1), "not `something_else`.")
  fit <- evidence(regression(y ~ x), kg, exact())
  fails(confint(fit, levels = 0.9), "not `levels`: the nearest is `level`.")
})

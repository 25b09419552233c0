# Which fits are of the same data, and which are refused in a comparison.

quick <- laplace(importance = 50)
run <- function(model, data, method = quick, seed = test_seed())
  quiet_fit(model, data, method, seed = seed, progress = FALSE)
regression <- function(formula, ...) linear_regression(formula, sigma = 15, prior_sd = 20, ...)
line <- run(regression(dist ~ speed), cars)

test_that("responses that were permuted against their covariates are other data", {
  turned <- cars
  turned$dist <- rev(turned$dist)
  refused(compare_models(line, b = run(regression(dist ~ speed + I(speed^2)), turned)),
          "in `line` and `b`, the values of `speed` belong to different responses.")
  mixed <- cars[c(50:1), ]
  expect_s3_class(compare_models(line, b = run(regression(dist ~ speed + I(speed^2)), mixed)),
                  "model_comparison")
  expect_s3_class(compare_models(line, b = run(regression(dist ~ 1), turned)), "model_comparison")
  # small whole numbers, whose plain sums of products agree
  small <- function(y) data.frame(x = c(1, 2, 3), y = y)
  refused(compare_models(run(regression(y ~ x), small(c(1, 3, 2))),
                         b = run(regression(y ~ I(x + 0) + x), small(c(2, 1, 3)))),
                         "belong to different responses")
  swapped <- iris
  swapped$Species <- rev(swapped$Species)
  refused(compare_models(a = run(softmax_regression(Species ~ Petal.Length, prior_sd = 1), iris),
                         b = run(softmax_regression(Species ~ Petal.Length,
                                                    prior_sd = 1), swapped)),
                         "belong to different responses")
})

test_that("fits without a covariate in common need the same order of rows", {
  some <- transform(cars, other = sin(seq_along(dist)))
  expect_s3_class(compare_models(line, b = run(regression(dist ~ other), some)), "model_comparison")
  refused(compare_models(line, b = run(regression(dist ~ other), some[50:1, ])),
          "the rows must be in the same order.")
})

test_that("the order of very many rows is compared, too", {
  many <- data.frame(x = sin(1:150000), z = cos(1:150000))
  many$y <- many$x + sin((1:150000)^2)
  pairing <- function(data, formula)
    list(pairing = encode(linear_regression(formula, prior_sd = 1), data)$pairing, n = 150000)
  one <- pairing(many, y ~ x)
  expect_null(pairings_differ(list(one, pairing(many, y ~ x + z), pairing(many, y ~ z))))
  turned <- pairings_differ(list(one, one, pairing(many[c(2:150000, 1), ], y ~ x)))
  expect_identical(unname(turned$of), c(1L, 3L))
  expect_match(turned$reason, "different responses, or the rows are in a different order")
})

mean_of <- function(parameter = "m") {
  custom_model(parameter, function(m, d)
                 sum(dnorm(if (is.data.frame(d)) d$y else d, m, log = TRUE)),
               function(m) dnorm(m, log = TRUE), rnorm)
}

test_that("custom models on other data of the same size are refused", {
  pairs <- function(x, y) data.frame(x = x, y = y)
  climb <- nested(20, slice())
  one <- run(mean_of(), pairs(1:3, 1:3), climb)
  refused(c(one, run(mean_of(), pairs(1:3, 3:1), climb, seed = test_seed(2))),
          "fit 2 has other data")
  expect_s3_class(c(one, run(one$model, pairs(1:3, c(1, 2, 3)), climb, seed = test_seed(2))),
                  "evidence")
  # a likelihood of one's own may depend on the order of the rows
  refused(update(one, 1e-4, data = pairs(3:1, 3:1)), "`data` must be those of the fit")
  refused(update(one, 1e-4, data = pairs(1:3, c(1, 3, 2))), "`data` must be those of the fit")
  expect_s3_class(update(one, 1e-4, data = pairs(1:3, 1:3)), "evidence")
  refused(compare_models(one, b = run(mean_of(), pairs(1:3, 4:6))),
          "as many, but with other values")
  refused(compare_models(one, b = run(mean_of(), pairs(1:3, 3:1))),
          "as many, but with other values")
  expect_s3_class(compare_models(one, b = run(mean_of(), pairs(3:1, 3:1))), "model_comparison")
  expect_s3_class(compare_models(one, b = run(mean_of(), c(1, 2, 3))), "model_comparison")
  expect_s3_class(compare_models(one, b = run(gaussian_mean(), c(1, 2, 3))), "model_comparison")
  refused(compare_models(one, b = run(gaussian_mean(), c(1, 2, 4))),
          "as many, but with other values")
})

test_that("a message says that data of custom models are not checked", {
  pairs <- data.frame(x = c(0.2, -1, 0.7), y = c(1, 2, 3))
  own <- run(mean_of(), pairs, nested(20, slice()))
  other <- run(linear_regression(y ~ x, sigma = 1, prior_sd = 1), pairs)
  sentence <- paste("Not checked: `own` has your own likelihood, of data with several columns. .*",
                    "`y`, as in")
  expect_match(said(compare_models(own, other)), sentence)
  expect_match(said(evidence_report(compare_models(own, other))), sentence)
  expect_match(said(bayes_factor(own, other)), sentence)
  # of one column there is no choice, and models of the package know their response
  single <- run(mean_of(), pairs$y, nested(20, slice()))
  for (table in list(compare_models(single, other), compare_models(own, single),
                     compare_models(line, b = run(regression(dist ~ 1), cars))))
    expect_no_match(said(table), "Not checked")
})

test_that("any kind of column of a custom model has a fingerprint", {
  data <- data.frame(a = 1:2, b = c("u", "v"), c = factor(c("p", "q")), d = c(TRUE, FALSE),
                     e = c(1i, 2))
  data$f <- list(1:3, "x")
  data$g <- as.Date("2026-01-01") + 0:1
  expect_identical(dim(numbers_of(data)), c(8L, 2L))
  expect_false(identical(custom_prints(data)$observed, custom_prints(data[2:1, ])$observed))
  expect_identical(data_id(custom_prints(data)), data_id(custom_prints(data[2:1, ])))
  expect_identical(numbers_of(array(1:24, c(2, 3, 4)))[, 1],
                   as.double(array(1:24, c(2, 3, 4))[1, , ]))
})

test_that("a response among the covariates and group-level terms are refused", {
  refused(linear_regression(mpg ~ mpg + wt, prior_sd = 1),
          "must not have the response `mpg` among its covariates")
  refused(linear_regression(mpg ~ mpg:wt, prior_sd = 1), "must not have the response `mpg`")
  refused(softmax_regression(cyl ~ cyl, prior_sd = 1), "must not have the response `cyl`")
  refused(run(gaussian_mixture(~ mpg + (1 | cyl), components = 2), mtcars),
          "Group-level terms are for regression() and linear_regression()")
  expect_s3_class(linear_regression(mpg ~ wt + I(cyl == 4 | cyl == 6),
                                    prior_sd = 1), "evidence_model")
  expect_s3_class(linear_regression(mpg ~ log(mpg), prior_sd = 1), "evidence_model")
})

test_that("the observations of a density() are those of its response, whatever its covariates", {
  two <- density(~ dnorm(dist, a + b * speed, s, log = TRUE), a = ~ 1, b = half_normal(5),
                 s = half_student(3, 20))
  fit <- run(two, cars)
  line <- run(regression(dist ~ speed), cars)
  expect_s3_class(compare_models(fit, b = run(regression(dist ~ 1), cars)), "model_comparison")
  expect_s3_class(compare_models(fit, b = line), "model_comparison")
  # covariates of an expression are paired with responses as those of a formula
  turned <- transform(cars, speed = rev(speed))
  refused(compare_models(line, b = run(two, turned)), "`speed` belong to different responses")
  whole <- run(two, in_blocks(cars, 20), sgais(particles = 20, audit = FALSE))
  expect_identical(whole$data_id, fit$data_id)
  joint <- run(density(~ dnorm(dist - b * speed, a, s, log = TRUE), a = ~ 1, b = half_normal(5),
                       s = half_student(3, 20)), cars)
  refused(compare_models(line, joint),
          "`joint` is taken for one of `dist`, `speed` together: only what is a parameter")
  expect_s3_class(compare_models(line, joint, same_rows = TRUE), "model_comparison")
  # the same columns are the same observations, however they are written
  expect_s3_class(compare_models(fit, joint), "model_comparison")
  refused(compare_models(fit, b = run(joint$model, transform(cars, dist = dist + 1))),
          "`b` as many, but with other values")
  # the trials are a part of the response, as of cbind(successes, failures)
  hits <- transform(cars, n = 120 + speed)
  both <- lapply(list(a = density(~ dbinom(dist, n, plogis(p), log = TRUE), p = ~ 1),
                      b = logevidence::regression(cbind(dist, n - dist) ~ 1, binomial())),
                 run, data = hits)
  expect_s3_class(compare_models(both), "model_comparison")
  expect_identical(response_columns(quote(e * dweibull(t, s, exp(a), log = TRUE) +
                                            (1 - e) * pweibull(t, s, exp(a), log.p = TRUE)),
                                    c("t", "e")), c("t", "e"))
})

test_that("rows that a file has rounded are refused, and the error says what to do", {
  close <- transform(cars, dist = dist * (1 + 1e-15))
  refused(compare_models(line, b = run(regression(dist ~ speed), close)),
          "a file may have rounded them: write.csv() keeps 15 digits")
  refused(bayes_factor(line, run(regression(dist ~ speed), close)), "`same_rows = TRUE`")
})

test_that("a response on two scales is refused, also with `same_rows = TRUE`", {
  logged <- run(regression(log(dist) ~ speed), cars)
  for (same in c(FALSE, TRUE))
    refused(compare_models(line, logged, same_rows = same),
            "`line` is a density of dist, `logged` of log(dist). Give both models the same")
  refused(bayes_factor(line, logged), "different scales of the response")
  typed <- run(regression(as.numeric(dist) ~ speed), cars)
  expect_equal(compare_models(line, typed)$posterior, c(0.5, 0.5), tolerance = 0.2)
})

test_that("data without the rows that update() has added are refused with their number", {
  few <- suppressWarnings(evidence(linear_regression(dist ~ speed), cars[1:30, ], seed = 1,
                                   progress = FALSE))
  fit <- suppressWarnings(update(few, cars[31:50, ]))
  refused(fitted(fit),
          "`data` must be those of the fit, all 50 rows with those that update() has added and not")
  refused(predict(fit), "`newdata` must be given: the data in the call of the fit have 30 of its")
  expect_length(fitted(fit, data = cars), 50)
})

# Rows with missing values: refused, or left out if asked.

holed <- transform(cars, dist = replace(dist, 3, NA), speed = replace(speed, c(3, 10), NA),
                   unused = NA)
line <- linear_regression(dist ~ speed, sigma = 15, prior_sd = 20)
fit_to <- function(data, model = line, ..., method = exact())
  evidence(model, data, method, seed = test_seed(), ...)
omitting <- function(...) suppressMessages(muffled(fit_to(..., na.action = na.omit)))

test_that("missing values are an error that names the argument, unless they are left out", {
  refused(fit_to(holed), paste("`data` must have no missing values (`na.action = na.omit` of",
                               "evidence() leaves such rows out, those of a source with",
                               "`collect = TRUE`), not NA in column `dist`, row 3."))
  refused(fit_to(holed, na.action = na.pass),
          "`na.action` must be na.fail or na.omit, not a function.")
  expect_message(fit <- fit_to(holed, na.action = na.omit),
                 "na.omit: 2 of 50 rows left out, with missing values (`speed`: 2, `dist`: 1).",
                 fixed = TRUE)
  whole <- fit_to(cars[-c(3, 10), ])
  expect_identical(fit$log_evidence, whole$log_evidence)
  expect_identical(nobs(fit), 48L)
  expect_identical(na.action(fit), structure(c(3L, 10L), class = "omit"))
  expect_match(said(fit), "n = 48 (2 rows left out); exact()", fixed = TRUE)
  expect_no_message(complete <- fit_to(cars, na.action = "na.omit"))
  expect_null(na.action(complete))
})

test_that("methods for the data of the fit use the rows that were left in", {
  fit <- suppressMessages(evidence(line, holed, exact(), na.action = na.omit))
  expect_equal(fitted(fit), predict(fit, cars[-c(3, 10), ]))
  expect_length(residuals(fit), 48)
  expect_identical(case.names(fit), as.character(1:50)[-c(3, 10)])
  expect_identical(fitted(fit, data = cars[-c(3, 10), ]), fitted(fit))
})

test_that("rows are left out of matrices, lists and vectors, too", {
  values <- omitting(c(1, NA, 2), gaussian_mean())
  expect_identical(values$n, 2L, ignore_attr = TRUE)
  listed <- omitting(list(x = c(1, 2, NA, 4, 5), y = c(1, NA, 3, 4, 6)),
                     linear_regression(sigma = 1))
  expect_identical(nobs(listed), 3L)
  points <- omitting(rbind(c(NA, 1), as.matrix(faithful)[1:20, ]),
                     gaussian_mixture(components = 1), method = laplace())
  expect_identical(nobs(points), 20L)
  several <- omitting(rbind(c(NA, 1), scale(faithful)[1:20, ]), gaussian_mixture(components = 1:2),
                      method = laplace())
  expect_identical(unname(lengths(lapply(attr(several, "fits"), na.action))), c(1L, 1L))
})

test_that("sources and models that cannot leave rows out refuse it in a sentence", {
  source <- rows_function(local({
    left <- 1
    function(reset) if (left > 0) {
      left <<- 0
      holed
    }
  }), rewind = FALSE)
  refused(fit_to(source, na.action = na.omit),
          "`na.action` must be na.fail for a source of rows")
  refused(fit_to(holed, linear_regression(dist ~ lags(dist), sigma = 15), na.action = na.omit),
          "`na.action` must be na.fail for a model with lags()")
  refused(fit_to(transform(cars, speed = NA_real_), na.action = na.omit),
          "`data` must have a row without missing values.")
})

test_that("a comparison says that rows were left out", {
  refused(compare_models(line = omitting(holed),
                         flat = omitting(holed, linear_regression(dist ~ 1, sigma = 15))),
          paste("`line` has 48 observations, `flat` 49. Rows with missing values were left out",
                "(`line`: 2, `flat`: 1): fit all models to the rows that are complete in the",
                "columns of all of them."))
})

test_that("incomplete rows of one-dimensional arrays and dates are left out, too", {
  x <- structure(replace(seq(-1, 1, length.out = 20), 4, NA), dim = 20)
  fit <- omitting(x, gaussian_mean(sigma = 1))
  expect_identical(fit$log_evidence, fit_to(x[-4], gaussian_mean(sigma = 1))$log_evidence)
  # a list of dates is refused in words, not by R's stack
  dates <- as.POSIXlt(as.POSIXct("2020-01-01", tz = "UTC") + 1:3)
  expect_error(omitting(list(x = c(1, NA, 2), y = dates)), "must be a data frame",
               class = "logevidence_error")
})

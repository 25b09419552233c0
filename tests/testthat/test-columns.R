# Columns of regressions that are zero, aliased or far from the prior's scale are named.

column_data <- function(n = 60) with_own_seed(test_seed(3), {
  d <- data.frame(x = rnorm(n), b = rnorm(n), time = 1.7e9 + runif(n), wide = rnorm(n, 0, 2e4),
                  g = factor(rep_len(1:3, n), levels = 1:4))
  d$zero <- 0
  d$same <- 3
  d$mix <- 2 * d$x - d$b + 1
  d$y <- d$x - d$b + rnorm(n)
  d$count <- rpois(n, exp(0.3 * d$x))
  d$none <- 0
  d
})

warned_columns <- function(model, data = column_data())
  column_warnings(model, encode(model, data))

test_that("zero and aliased columns are named, after a fit too", {
  data <- column_data()
  model <- regression(y ~ x + b + mix + zero + same, sigma ~ x + b + mix, prior_sd = 2.5)
  found <- warned_columns(model)
  expect_length(found, 3)
  expect_match(found[1], "The column `zero` is zero in all rows")
  expect_match(found[2], "The columns `mix`, `same` are linear combinations of other columns")
  expect_match(found[3], "The column `mix` (in the formula of sigma) is", fixed = TRUE)
  fit <- quiet_fit(model, data, laplace(), seed = test_seed())
  expect_true(all(found %in% fit$warnings))
  expect_length(intersect(found, fit$failed), 0)
  for (other in list(linear_regression(y ~ x + mix + b, sigma = 1, prior_sd = 1),
                     softmax_regression(g ~ x + mix + b, prior_sd = 1)))
    expect_match(warned_columns(other), "The column `b` is a linear combination")
  expect_match(warned_columns(linear_regression(sigma = 1, prior_sd = 1),
                              list(x = cbind(a = data$x, b = -data$x), y = data$y)),
               "The column `b` is a linear combination")
})

test_that("columns that only look alike are not named, nor levels without rows", {
  data <- column_data()
  data$near <- data$x + 1e-4 * data$b
  data$later <- data$time + 1e-3 * data$x
  for (formula in list(y ~ x + b + g, y ~ time + x, y ~ x + near, y ~ 0 + same + x, y ~ poly(x, 3),
                       y ~ time + later, y ~ g * x, y ~ 1))
    expect_null(warned_columns(regression(formula,
                                          prior_sd = 2.5), data), info = deparse1(formula))
  # different in a few rows of many only
  many <- data.frame(x = with_own_seed(test_seed(), rnorm(1e5)))
  many$z <- replace(many$x, 77777, 3)
  many$y <- many$x + cos(seq_len(1e5))
  expect_null(warned_columns(regression(y ~ x + z, prior_sd = 2.5), many))
  expect_match(warned_columns(regression(y ~ x + I(2 * x),
      prior_sd = 2.5), many), "`I(2 * x)` is", fixed = TRUE)
  # with more coefficients than rows every column is a combination of others
  expect_null(warned_columns(regression(y ~ x + mix + b, prior_sd = 2.5), data[1:4, ]))
})

test_that("responses that do not vary are named in a warning", {
  expect_match(warned_columns(regression(none ~ x, poisson(), prior_sd = 2.5)),
               "The response `none` is 0 in all rows.", fixed = TRUE)
  data <- transform(column_data(), g = factor("b", levels = c("a", "b")))
  for (model in list(softmax_regression(g ~ x,
      prior_sd = 1), regression(g ~ x, binomial(),
                                                           prior_sd = 2.5)))
    expect_match(warned_columns(model, data), "The response `g` is \"b\" in all rows", fixed = TRUE)
  expect_null(warned_columns(regression(count ~ x, poisson(), prior_sd = 2.5)))
})

test_that("columns on a scale far from the prior's get a hint in print()", {
  data <- column_data()
  fit <- quiet_fit(regression(y ~ x + wide + g,
                              prior_sd = 2.5), data, laplace(), seed = test_seed())
  expect_output(print(fit), "Note: Under the prior a standard deviation of `wide` changes")
  for (model in list(regression(y ~ x + wide + g, scale = TRUE,
      prior_sd = 2.5), regression(y ~ x + b + g,
                                                                            prior_sd = 2.5),
                     regression(y ~ x + wide, prior = list(normal(0, 2.5),
                                                           wide = normal(0, 1e-4)))))
    expect_no_match(capture.output(print(quiet_fit(model, data, laplace(), seed = test_seed()))),
                    "Note: Under")
  # the same model in other units of the response
  small <- transform(data, y = y / 1e6)
  fit <- quiet_fit(regression(y ~ x, prior_sd = 2.5), small, laplace(), seed = test_seed())
  expect_output(print(fit), "that of the response is")
})

test_that("each coefficient far from its prior is named", {
  data <- with_own_seed(test_seed(5), data.frame(matrix(rnorm(4000), 400)))
  data$y <- with_own_seed(test_seed(6), as.matrix(data) %*% rep(30, 10) + rnorm(400))[, 1]
  fit <- quiet_fit(linear_regression(y ~ ., sigma = 1,
                                     prior_sd = 1), data, laplace(), seed = test_seed())
  for (name in paste0("X", 1:10)) expect_match(fit$prior_conflict, paste0("`", name, "`"))
  # coefficients of further parameters too
  data$y <- with_own_seed(test_seed(7), exp(12 * data$X1) * rnorm(400))
  fit <- quiet_fit(regression(y ~ 1, sigma ~ X1, prior_sd = 2.5), data, seed = test_seed())
  expect_match(fit$prior_conflict, "`sigma_X1`")
})

test_that("weights and na.action are refused in a sentence, missing values with advice", {
  for (model in list(linear_regression, softmax_regression, regression)) {
    refused(model(y ~ x, weights = w), "`weights` are not supported")
    refused(model(y ~ x, na.action = na.omit), "`na.action` is an argument of evidence()")
  }
  refused(softmax_regression(y ~ x, 1, NULL, NULL, FALSE, 3), "an unnamed further one")
  data <- replace(column_data(), "x", NA)
  refused(evidence(regression(y ~ x), data), "`na.action = na.omit` of evidence()")
})

test_that("numbers read as text are refused, and the error says what to do", {
  d <- transform(mtcars, weight = as.character(wt), size = as.character(cyl),
                 day = as.character(as.Date("2020-01-01") + 1:32), kind = rep(c("a", "b"), 16))
  d$mixed <- replace(d$weight, 4, "n/a")
  models <- list(function(f) regression(f), function(f) linear_regression(f, prior = jzs()),
                 function(f) regression(mpg ~ hp, stats::formula(paste("sigma", deparse(f[-2])))),
                 function(f) density(~ dnorm(mpg, mu, 5, log = TRUE), mu = f[-2]))
  for (model in models) {
    numbers <- paste("must have numbers, and not text such as \"2.62\", in the column `weight`.",
                     "Convert it by as.numeric();")
    refused(evidence(model(mpg ~ weight), d), numbers)
    refused(evidence(model(mpg ~ weight), in_blocks(d, 5), collect = TRUE), numbers)
    refused(evidence(model(mpg ~ size), d), "use `factor(size)` in the formula")
    refused(evidence(model(mpg ~ mixed), d), "makes a missing value of \"n/a\" in row 4")
    refused(evidence(model(mpg ~ day), d),
            "not `day` with 32 of them in 32 rows. If this is what you want, use `factor(day)`")
  }
  one <- function(formula, data = d, ...)
    quiet_fit(linear_regression(formula, sigma = 5), data, exact(), seed = 1, ...)
  # what the formula makes of a column is no mistake
  expect_identical(one(mpg ~ factor(size))$log_evidence, one(mpg ~ factor(cyl))$log_evidence)
  expect_identical(one(mpg ~ as.character(cyl))$log_evidence, one(mpg ~ factor(cyl))$log_evidence)
  expect_identical(one(mpg ~ kind)$log_evidence, one(mpg ~ factor(kind))$log_evidence)
  # groups have any number of levels
  expect_s3_class(quiet_fit(regression(mpg ~ hp + (1 | day)), d, laplace(), seed = 1), "evidence")
  # of a file the user has said so
  file <- write_digits(d)
  on.exit(unlink(file))
  refused(evidence(linear_regression(mpg ~ day), rows_csv(file)),
          "use `types = c(\"day\" = \"text\")`")
  said <- rows_csv(file, types = c(day = "text"))
  expect_equal(one(mpg ~ day, said, collect = TRUE)$log_evidence,
               one(mpg ~ factor(day))$log_evidence)
})

test_that("`x^2` in a formula, which R takes as `x`, gives a note in model and fit", {
  note <- function(formula, ...) power_note(regression(formula, ...))
  expect_identical(note(mpg ~ wt + wt^2), paste(
    "In a formula `wt^2` is the same as the term without its power. For a power write `I(wt^2)`."))
  expect_match(note(mpg ~ (wt)^2 + log(hp)^3), "`I((wt)^2)`, `I(log(hp)^3)`", fixed = TRUE)
  expect_match(note(mpg ~ hp + (wt^2 | gear)), "`I(wt^2)`", fixed = TRUE)
  expect_match(note(mpg ~ hp, sigma ~ wt^2), "`I(wt^2)`", fixed = TRUE)
  for (formula in list(mpg ~ (wt + hp)^2, mpg ~ I(wt^2), mpg ~ poly(wt, 2), mpg ~ exp(wt^2)))
    expect_null(note(formula))
  model <- linear_regression(mpg ~ wt + wt^2)
  expect_match(said(model), "Note: In a formula `wt^2`", fixed = TRUE)
  expect_match(said(evidence(model, mtcars, exact(), seed = 1)), "Note: In a formula `wt^2`",
               fixed = TRUE)
})

# lags() in formulas: columns made by hand give the same numbers, in a data frame, in a stream of
# blocks of any size, after update() and after a run that was stopped.

series <- with_own_seed(test_seed(5), {
  n <- 400
  x <- rnorm(n)
  y <- numeric(n)
  for (i in 3:n) y[i] <- 0.5 * y[i - 1] - 0.3 * y[i - 2] + 0.4 * x[i - 1] + rnorm(1)
  data.frame(y = y, x = x, count = rpois(n, exp(0.3 + 0.2 * c(0, x[-n]))),
             state = factor(sample(c("a", "b"), n, TRUE)))
})

by_hand <- function(d) {
  n <- nrow(d)
  from <- 3:n
  data.frame(y = d$y[from], y1 = d$y[from - 1], y2 = d$y[from - 2], x1 = d$x[from - 1])
}

lagged <- regression(y ~ lags(y, 1:2) + lags(x, 1), prior_sd = 2.5, sigma = half_student(3, 2.5))
hand <- regression(y ~ y1 + y2 + x1, prior_sd = 2.5, sigma = half_student(3, 2.5))

blocks_of <- function(d, size) {
  starts <- seq(1, nrow(d), by = size)
  at <- 0
  rows_function(function(reset) {
    at <<- if (reset) 0 else at + 1
    if (at >= 1 && at <= length(starts)) d[starts[at]:min(starts[at] + size - 1, nrow(d)), ]
  })
}

test_that("lags() gives the values of earlier rows", {
  expect_identical(lags(1:4, 1), c(NA, 1L, 2L, 3L))
  expect_identical(lags(c(5, 6, 7), c(1, 3)),
                   matrix(c(NA, 5, 6, NA, NA, NA), 3, dimnames = list(NULL, c("1", "3"))))
  expect_identical(lags(factor(c("a", "b")), 1), factor(c(NA, "a"), levels = c("a", "b")))
  expect_identical(lags(1:2, 5), c(NA_integer_, NA_integer_))
  expect_equal(dim(lags(logical(0), c(a = 1, b = 2))), c(0, 2))
  expect_error(lags(1:4, 0), "`k` must be distinct whole numbers")
  expect_error(lags(1:4, c(1, 1)), "`k` must be distinct whole numbers")
  expect_error(lags(letters, 1:2), "`k` must be one number for a factor")
})

test_that("a model with lags() is that with columns made by hand", {
  f <- model_functions(lagged, series)
  g <- model_functions(hand, by_hand(series))
  expect_identical(f$n, 398L)
  expect_identical(f$names, c("(Intercept)", "lags(y, 1:2)1", "lags(y, 1:2)2", "lags(x, 1)",
                              "log(sigma)"))
  theta <- c(0.1, 0.5, -0.3, 0.4, 0.05)
  expect_identical(unname(f$log_lik_each(theta)), unname(g$log_lik_each(theta)))
  for (method in list(sgais(), smc(), sgais(order = "given"))) {
    one <- evidence(lagged, series, method, seed = test_seed(3), progress = FALSE)
    other <- evidence(hand, by_hand(series), method, seed = test_seed(3), progress = FALSE)
    expect_identical(logml(one), logml(other))
  }
  linear <- linear_regression(y ~ lags(y, 1:2) + logevidence::lags(x), prior_sd = 1)
  expect_equal(logml(evidence(linear, series, exact())),
               logml(evidence(linear_regression(y ~ y1 + y2 + x1,
                                                prior_sd = 1), by_hand(series), exact())))
  k <- 1:2
  expect_identical(model_functions(regression(y ~ lags(y, k),
                                              prior_sd = 2.5), series)$dim, 4L)
  functions <- regression(y ~ lags(y, 1) * lags(log(x + 9), 2) + exp(-lags(y, 2)^2),
                          prior_sd = 2.5)
  expect_identical(model_functions(functions, series)$n, 398L)
})

test_that("classes may depend on the class of the row before", {
  chain <- softmax_regression(state ~ lags(state, 1), prior_sd = 1)
  pairs <- data.frame(now = series$state[-1], before = series$state[-400])
  one <- evidence(chain, series, seed = test_seed(), progress = FALSE)
  other <- evidence(softmax_regression(now ~ before,
                                       prior_sd = 1), pairs, seed = test_seed(), progress = FALSE)
  expect_identical(logml(one), logml(other))
})

test_that("blocks of a stream and added rows give the bits of one data frame", {
  whole <- evidence(lagged, series, sgais(order = "given"), seed = test_seed(3), progress = FALSE)
  for (size in c(1, 7, 150)) {
    rows <- do.call(rbind, rep(list(series), if (size == 150) 6 else 1))
    stream <- evidence(lagged, blocks_of(rows, size), seed = test_seed(3), progress = FALSE)
    frame <- evidence(lagged, rows, sgais(order = "given"), seed = test_seed(3), progress = FALSE)
    expect_identical(stream$n, frame$n)
    expect_identical(logml(stream), logml(frame), label = paste("blocks of", size))
    expect_identical(stream$data_id, frame$data_id)
    later <- data.frame(y = 0, x = 0)
    expect_equal(predict(stream, later), predict(frame, later))
  }
  parts <- evidence(lagged, series[1:150, ], sgais(order = "given"), seed = test_seed(3),
                    progress = FALSE)
  for (some in list(151:151, 152:300, 301:400))
    parts <- update(parts, series[some, ], progress = FALSE)
  expect_identical(logml(parts), logml(whole))
  expect_identical(parts$n, whole$n)
  stream <- evidence(lagged, blocks_of(series[1:200, ], 60), seed = test_seed(3), progress = FALSE)
  stream <- update(stream, blocks_of(series[201:400, ], 60), progress = FALSE)
  expect_identical(logml(stream), logml(whole))
})

test_that("a run with lags that is stopped and resumed has the same bits", {
  rows <- do.call(rbind, rep(list(series), 20))
  file <- tempfile()
  on.exit(unlink(file))
  stops <- 0
  failing <- rows_function(local({
    at <- 0
    function(reset) {
      at <<- if (reset) 0 else at + 1
      if (at == 5 && stops == 0) {
        stops <<- 1
        stop("no connection")
      }
      if (at >= 1 && at <= 8) rows[(at - 1) * 1000 + 1:1000, ]
    }
  }))
  stopped <- tryCatch(evidence(lagged, failing, seed = test_seed(3), progress = FALSE,
                               checkpoint = file),
                      error = identity)
  expect_match(conditionMessage(stopped), "no connection")
  # the first rows are read, too
  expect_identical(stopped$fit$rows_read, 4000)
  goes_on <- resume(stopped$fit, rows[4001:8000, ], skip = FALSE, progress = FALSE)
  resumed <- resume(file, failing, progress = FALSE)
  whole <- evidence(lagged, rows, sgais(order = "given"), seed = test_seed(3), progress = FALSE)
  expect_identical(logml(resumed), logml(whole))
  expect_identical(logml(goes_on), logml(whole))
})

test_that("predict() uses the last rows of the data for the first lags", {
  fit <- evidence(lagged, series[1:350, ], seed = test_seed(), progress = FALSE)
  twin <- evidence(hand, by_hand(series[1:350, ]), seed = test_seed(), progress = FALSE)
  expect_equal(predict(fit, series[351:400, ]), predict(twin, by_hand(series[349:400, ])))
  expect_equal(predict(fit, series[351:400, ], "density"),
               predict(twin, by_hand(series[349:400, ]), "density"))
  expect_length(predict(fit, data.frame(y = NA_real_, x = 0)), 1)
  expect_error(predict(fit, data.frame(y = c(NA, 1), x = 0)), "`lags\\(y, 1:2\\)`, row 2")
})

test_that("a comparison of different lags says which rows to leave out", {
  data <- data.frame(y = as.numeric(LakeHuron) - 579)
  run <- function(k, data) {
    formula <- eval(bquote(y ~ lags(y, 1:.(k))))
    evidence(linear_regression(formula, sigma = 1), data, exact(), seed = 1)
  }
  two <- run(2, data)
  refused(compare_models(one = run(1, data), two = two), paste(
    "`one` has 97 observations, `two` 96. With lags() the first rows of the data, as many as the",
    "longest lag, have no likelihood: fit `one` without the first row, so that all models have",
    "the same responses."))
  compared <- compare_models(one = run(1, data[-1, , drop = FALSE]), two = two)
  expect_s3_class(compared, "model_comparison")
  refused(compare_models(one = run(1, data[-(1:5), , drop = FALSE]), two = two),
          "leave out rows so that the first response is the same")
})

test_that("errors name the row of the data", {
  broken <- series
  broken$y[30] <- NA
  expect_error(evidence(lagged, broken, progress = FALSE), "column `y`, row 30")
  expect_error(evidence(lagged, blocks_of(broken, 7), progress = FALSE), "column `y`, row 30")
  long <- do.call(rbind, rep(list(series), 40))
  long$y[12345] <- Inf
  expect_error(evidence(lagged, blocks_of(long, 1500), seed = test_seed(), progress = FALSE),
               "column `y`, row 12345")
  broken <- series
  broken$x[50] <- NA
  expect_error(evidence(lagged, broken, progress = FALSE), "column `lags\\(x, 1\\)`, row 51")
  counts <- regression(count ~ lags(x, 3), poisson(), prior_sd = 2.5)
  broken <- series
  broken$count[9] <- 0.5
  expect_error(evidence(counts, broken, progress = FALSE), "row 9")
  expect_error(evidence(lagged, series[1:2, ], progress = FALSE),
               "more rows than the longest lag \\(2\\), not 2")
  expect_error(evidence(regression(lags(y, 1) ~ x,
      prior_sd = 2.5), series), "no lags\\(\\) on its left-hand side")
  expect_error(evidence(regression(y ~ lags(y, 0),
                                   prior_sd = 2.5), series), "`k` must be distinct")
  expect_error(evidence(regression(y ~ lags(y, unknown),
                                   prior_sd = 2.5), series), "column `unknown`")
  expect_error(gaussian_mixture(~ y + lags(y, 1)), "no lags\\(\\), which are for regressions")
  expect_error(simulate(lagged, data = series["x"]), "`y` in its first 2 rows")
  expect_error(simulate(lagged, data = transform(series, y = c(NA, y[-1]))), "`y` in its first 2")
  expect_error(simulate(lagged, data = series[1:2, ]), "more rows than the longest lag")
  scaled <- regression(y ~ lags(y, 1), scale = TRUE, prior_sd = 2.5)
  expect_error(simulate(scaled, data = series), "`scale = TRUE`")
  expect_error(density(~ dnorm(y, mu * lags(y, 1), 1, log = TRUE), mu = ~ 1), "lags")
})

test_that("columns of wrong types are refused with lags() as without", {
  d <- data.frame(x = c(1, 3, 2, 5, 4, 6), y = c(2, 1, 4, 3, 6, 5), g = factor(c(1, 2, 1, 2, 1, 2)))
  fit <- quiet_fit(linear_regression(y ~ lags(x, 1) + g, sigma = 1), d, exact())
  refused(predict(fit, transform(d, g = as.integer(g))),
          "`newdata` must have `g` of type factor, as in the first data, not numeric.")
  expect_length(predict(fit, transform(d, g = as.character(g))), 6)
  d$y <- array(d$x, c(6, 2, 2))
  refused(evidence(linear_regression(y ~ lags(x, 1), sigma = 1), d, exact()), "`y` of type array")
})

test_that("simulate() draws rows one after another in time", {
  # with almost no noise the recursion itself comes out
  point <- c(0.2, 0.5, -0.3, 0.4, 1e-9)
  drawn <- simulate(lagged, data = transform(series, y = c(y[1:2], rep(NA, 398))),
                    seed = test_seed(),
                    parameters = point)
  y <- series$y
  for (i in 3:400) y[i] <- 0.2 + 0.5 * y[i - 1] - 0.3 * y[i - 2] + 0.4 * series$x[i - 1]
  expect_equal(drawn$y, y, tolerance = 1e-6)
  # with noise: each row has noise of its own, and its law is that of the model
  point[5] <- 2
  drawn <- simulate(lagged, data = series, seed = test_seed(), parameters = point)
  noise <- with(by_hand(drawn), y - (0.2 + 0.5 * y1 - 0.3 * y2 + 0.4 * x1)) / 2
  expect_gt(stats::ks.test(noise, "pnorm")$p.value, 1e-3)
  expect_lt(abs(stats::acf(noise, plot = FALSE)$acf[2]), 0.2)
  expect_identical(drawn, simulate(lagged, data = series, seed = test_seed(), parameters = point))
  expect_identical(drawn[1:2, ], series[1:2, ], ignore_attr = TRUE)
  # several rows at a time if the lag allows it, all if only covariates are lagged, and classes
  far <- simulate(regression(y ~ lags(y, 3),
                             prior_sd = 2.5), data = series, seed = test_seed(2),
                  parameters = c(0, 1, 1e-9))
  expect_equal(far$y, rep(series$y[1:3], length.out = 400), tolerance = 1e-5)
  counts <- simulate(regression(count ~ lags(x, 3), poisson(),
                                prior_sd = 2.5), data = series["x"],
                     seed = test_seed())
  expect_identical(which(is.na(counts$count)), 1:3)
  expect_true(is.finite(evidence(regression(count ~ lags(x, 3), poisson(),
                                            prior_sd = 2.5), counts,
                                 seed = test_seed())$log_evidence))
  chain <- simulate(softmax_regression(state ~ lags(state, 1),
                                       prior_sd = 1), data = series, seed = test_seed(),
                    parameters = c(-40, 80, 40, -80))
  expect_true(all(diff(as.integer(chain$state)) != 0))
})

test_that("the bounds of simulated data hold with lags", {
  stable <- regression(y ~ lags(y, 1), prior_sd = 0.3)
  found <- bdmc(stable, data = series[1:20, ], chains = 4, budgets = c(0.5, 1),
                seed = test_seed())
  expect_identical(nrow(found$bounds), 2L)
  # few chains have noise
  expect_true(all(found$bounds$lower <= found$bounds$upper + 1))
})

test_that("lags() may be in formulas of further parameters, with other lags than the mean", {
  model <- at_unit_one(regression(y ~ lags(y, 1), sigma ~ tanh(lags(y, 2)) + x, prior_sd = 2.5))
  from <- 3:400
  columns <- data.frame(y = series$y[from], y1 = series$y[from - 1],
                        t2 = tanh(series$y[from - 2]), x = series$x[from])
  given <- sgais(order = "given")
  whole <- evidence(model, series, given, seed = test_seed(3))
  expect_identical(whole$log_evidence,
                   evidence(at_unit_one(regression(y ~ y1, sigma ~ t2 + x,
                                                   prior_sd = 2.5)), columns, given,
                            seed = test_seed(3))$log_evidence)
  expect_identical(evidence(model, blocks_of(series, 7), seed = test_seed(3))$log_evidence,
                   whole$log_evidence)
  begun <- evidence(model, series[1:150, ], given, seed = test_seed(3))
  expect_identical(update(begun, series[151:400, ])$log_evidence, whole$log_evidence)
  expect_equal(predict(whole, data.frame(y = NA_real_, x = 0)),
               sum(c(1, series$y[400]) * coef(whole)[1:2]), tolerance = 1e-6)
  drawn <- simulate(model, data = series, parameters = c(0, 0.5, log(1e-8), 0, 0),
                    seed = test_seed())
  expect_equal(drawn$y[-(1:2)], 0.5 * drawn$y[2:399], tolerance = 1e-5)
})

test_that("lags() may be in predictors of a density()", {
  model <- density(~ dnorm(y, mu, exp(s), log = TRUE), mu = ~ lags(y, 1:2) + lags(x, 1),
                   s = ~ tanh(lags(y, 1)), mean = ~ mu)
  columns <- cbind(by_hand(series), t1 = tanh(by_hand(series)$y1))
  hand <- density(~ dnorm(y, mu, exp(s), log = TRUE), mu = ~ y1 + y2 + x1, s = ~ t1, mean = ~ mu)
  given <- sgais(order = "given")
  whole <- evidence(model, series, given, seed = test_seed(3))
  right <- evidence(hand, columns, given, seed = test_seed(3))
  expect_identical(whole$log_evidence, right$log_evidence)
  expect_identical(whole$n, 398L)
  for (size in c(1, 7, 399)) expect_identical(
    evidence(model, blocks_of(series, size), seed = test_seed(3))$log_evidence, whole$log_evidence
  )
  begun <- evidence(model, series[1:150, ], given, seed = test_seed(3))
  expect_identical(update(begun, series[151:400, ])$log_evidence, whole$log_evidence)
  expect_equal(predict(whole, data.frame(y = NA_real_, x = 0)),
               sum(c(1, series$y[400:399], series$x[400]) * coef(whole)[1:4]), tolerance = 1e-6)
  expect_error(simulate(model, data = series), "lags")
  expect_error(evidence(model, series[1:2, ], seed = 1), "longest lag")
})

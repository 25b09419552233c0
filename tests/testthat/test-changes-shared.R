# change_points(changes = ): the other coefficients and the noise are shared by all segments.

found_in <- function(...) muffled(change_points(..., seed = test_seed()))
log_sum_of <- function(x) max(x) + log(sum(exp(x - max(x))))

# All ways to divide n rows by k changes into segments of at least `least` rows.
cuts_of <- function(n, k, least) {
  cuts <- if (k == 0) list(integer()) else utils::combn(n - 1, k, simplify = FALSE)
  Filter(function(cut) all(diff(c(0, cut, n)) >= least), cuts)
}

# The log evidence of each number of changes by enumeration: given the positions, and sigma, the
# response is normal.
#
# @param moving,fixed Columns that change, and others; `sd` their prior standard deviations.
# @param log_prior The log density of sigma's prior, or NULL if `sigma` is known.
enumerated <- function(y, moving, fixed, sd_moving, sd_fixed, most, sigma = NULL,
                       log_prior = NULL, least = 1) {
  n <- length(y)
  value <- function(cut) {
    block <- findInterval(seq_len(n), cut + 0.5)
    same <- outer(block, block, "==")
    shared <- fixed %*% (sd_fixed^2 * t(fixed)) + same * (moving %*% (sd_moving^2 * t(moving)))
    parts <- eigen(shared, symmetric = TRUE)
    z2 <- drop(crossprod(parts$vectors, y))^2
    size <- pmax(parts$values, 0)
    given <- function(s)
      -n / 2 * log(2 * pi) - sum(log(size + s^2)) / 2 - sum(z2 / (size + s^2)) / 2
    if (!is.null(sigma)) return(given(sigma))
    f <- function(t) vapply(exp(t), function(s) given(s) + log_prior(s) + log(s), 0)
    top <- optimize(f, c(-4, 3), maximum = TRUE)
    top$objective + log(integrate(function(t) exp(f(t) - top$objective), -6, 5,
                                  rel.tol = 1e-9, subdivisions = 1000L)$value)
  }
  vapply(seq(0, most), function(k) {
    each <- vapply(cuts_of(n, k, least), value, 0)
    log_sum_of(each) - log(length(each))
  }, 0)
}

rows <- local({
  set.seed(3)
  n <- 14
  x <- rnorm(n)
  data.frame(x = x, w = runif(n), t = seq_len(n),
             y = 0.8 * x + c(0, 1.5)[1 + (seq_len(n) > 8)] + rnorm(n, 0, 0.5))
})

test_that("evidences with shared coefficients equal those of enumeration", {
  x <- cbind(rows$x, rows$w)
  one <- matrix(1, nrow(rows), 1)
  known <- linear_regression(y ~ x + w, sigma = 0.5, prior_sd = c(3, 1, 2))
  unknown <- linear_regression(y ~ x + w, prior_sd = c(3, 1, 2), sigma = half_student(3, 1))
  inverse <- regression(y ~ 0 + x + w, prior = list(x = normal(0, 1), w = normal(0, 2)),
                        auxiliary = inverse_gamma(2, 1))
  half <- function(s) log(2) + stats::dt(s, 3, log = TRUE)
  gamma <- function(s) -lgamma(2) - 3 * log(s) - 1 / s
  cases <- list(
    list(known, ~ 1, enumerated(rows$y, one, x, 3, c(1, 2), 2, sigma = 0.5)),
    list(known, ~ 0 + x, enumerated(rows$y, x[, 1, drop = FALSE], cbind(1, x[, 2]), 1, c(3, 2), 2,
                                    sigma = 0.5)),
    list(unknown, ~ 1, enumerated(rows$y, one, x, 3, c(1, 2), 2, log_prior = half)),
    list(unknown, ~ x, enumerated(rows$y, cbind(1, x[, 1]), x[, 2, drop = FALSE], c(3, 1), 2, 2,
                                  log_prior = half)),
    list(unknown, ~ x + w, enumerated(rows$y, cbind(1, x), matrix(0, nrow(x), 0), c(3, 1, 2),
                                      numeric(), 2, log_prior = half)),
    list(inverse, ~ 0 + w, enumerated(rows$y, x[, 2, drop = FALSE], x[, 1, drop = FALSE], 2, 1, 2,
                                      log_prior = gamma))
  )
  z <- vapply(cases, function(case) {
    found <- found_in(case[[1]], rows, changes = case[[2]], most = 2, draws = 20)
    expect_true(all(found$numbers$error < 0.07))
    (found$numbers$log_evidence - case[[3]]) / found$numbers$error
  }, numeric(3))
  expect_true(all(abs(z) < 4), info = toString(format(z, digits = 3)))
  # segments of at least three rows
  longer <- found_in(known, rows, changes = ~ 1, most = 2, least = 3, draws = 20)
  truth <- enumerated(rows$y, one, x, 3, c(1, 2), 2, sigma = 0.5, least = 3)
  expect_true(all(abs(longer$numbers$log_evidence - truth) < 4 * longer$numbers$error))
  expect_true(all(diff(c(0, longer$changes$row, nrow(rows))) >= 3))
})

test_that("positions and sizes of changes equal those of enumeration", {
  model <- linear_regression(y ~ x, sigma = 0.5, prior_sd = c(3, 1))
  found <- found_in(model, rows, changes = ~ 1, prior = c(0, 1), draws = 5000)
  n <- nrow(rows)
  fixed <- tcrossprod(rows$x)
  given <- function(cut, what) {
    same <- outer(seq_len(n) > cut, seq_len(n) > cut, "==")
    step <- 9 * same
    root <- chol(step + fixed + diag(0.25, n))
    z <- backsolve(root, rows$y, transpose = TRUE)
    # posterior means of the two levels and of the slope
    solved <- backsolve(root, z)
    c(-sum(log(diag(root))) - sum(z^2) / 2, 9 * sum(solved[seq_len(cut)]),
      9 * sum(solved[-seq_len(cut)]), sum(rows$x * solved))
  }
  each <- vapply(seq_len(n - 1), given, numeric(4))
  p <- exp(each[1, ] - log_sum_of(each[1, ]))
  expect_lt(max(abs(as.data.frame(found, "rows")$probability - p)), 0.02)
  expect_equal(found$changes$row, which.max(p))
  expect_lt(abs(found$sizes$before - sum(p * each[2, ])), 0.03)
  expect_lt(abs(found$sizes$after - sum(p * each[3, ])), 0.03)
  expect_lt(abs(found$shared$mean - sum(p * each[4, ])), 0.03)
  # given the most probable row
  best <- which.max(p)
  levels <- found$segments[found$segments$parameter == "(Intercept)", "mean"]
  expect_lt(max(abs(levels - each[2:3, best])), 0.03)
})

test_that("many rows, standardised columns and time series are right, and seeds reproducible", {
  set.seed(1)
  n <- 500
  many <- data.frame(x = rnorm(n, 100), y = rnorm(n) + c(0, 2)[1 + (seq_len(n) > 300)])
  many$y <- many$y + 0.3 * many$x
  one <- found_in(regression(y ~ x, scale = TRUE), many, changes = ~ 1, most = 1, draws = 100)
  two <- found_in(regression(y ~ x, scale = TRUE), many, changes = ~ 1, most = 1, draws = 100)
  same <- setdiff(names(one), "call")
  expect_identical(one[same], two[same])
  expect_identical(one$number, 1)
  expect_lt(abs(one$changes$row - 300), 10)
  expect_lt(abs(one$sizes$difference - 2), 0.4)
  expect_lt(abs(one$shared$mean[one$shared$parameter == "x"] - 0.3), 0.2)
  expect_identical(unique(one$sizes$parameter), "(Intercept)")
  expect_output(print(summary(one)), "The same in all segments")
  expect_equal(nrow(as.data.frame(one, "rows")), n - 1)
  quarters <- stats::ts(c(rnorm(12), rnorm(12, 4)), start = c(2000, 1), frequency = 4)
  steps <- found_in(linear_regression(y ~ 1), quarters, changes = ~ 1, most = 2, draws = 50)
  expect_identical(steps$changes$at, as.Date("2002-10-01"))
  expect_identical(steps$shared$parameter, "sigma")
})

test_that("coefficients and models that cannot be shared are refused", {
  model <- linear_regression(y ~ x + w)
  refused <- function(changes, words, of = model, ...)
    expect_error(change_points(of, rows, changes = changes, ..., seed = 1), words,
                 class = "logevidence_error")
  refused(y ~ x, "a formula without a response")
  refused(1, "a formula without a response")
  refused(~ t, "must have terms of the model")
  refused(~ nothing, "the column `nothing`")
  refused(~ x, "write `~ 0 \\+ x`", linear_regression(y ~ 0 + x))
  refused(~ 1, "must have terms of the model", linear_regression(y ~ 0 + x))
  refused(~ 1, "must have normal priors", linear_regression(y ~ x, intercept = cauchy(0, 1)))
  refused(~ 1, "is for linear regressions", regression(t ~ x, poisson()))
  refused(~ 1, "need a proper prior", linear_regression(y ~ x, prior = jzs()))
  refused(~ 1, "is for linear regressions", regression(y ~ x, student()))
  refused(~ 1, "`method` must be NULL", method = laplace())
  expect_error(change_points(model, rows_function(function(reset) NULL), changes = ~ 1),
               "must be NULL for a source", class = "logevidence_error")
  # all coefficients change and the noise is known: nothing is shared
  known <- linear_regression(y ~ x, sigma = 1)
  expect_identical(found_in(known, rows, changes = ~ x, most = 1)$numbers,
                   found_in(known, rows, most = 1)$numbers)
})

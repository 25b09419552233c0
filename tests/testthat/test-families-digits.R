# Log densities of a row of each family, and their derivatives, at extreme linear predictors, counts
# and further parameters, against numbers of 113 bits (precise-families.c).

families <- compile_model(test_path("precise-families.c"), "precise_families",
                          libraries = "-lquadmath")

exact_row <- function(family, y, extra, at, unit) {
  found <- .C("precise_family", as.integer(family), as.double(y), as.double(extra), as.double(at),
              as.double(unit), value = 0, slope = double(3), curve = double(9),
              PACKAGE = "precise_families")
  list(value = found$value, slope = found$slope, curve = matrix(found$curve, 3))
}

# The largest relative error of value, gradient and second derivatives; numbers below one, and below
# the size of the second derivatives, count as of that size, and those of a large count as of the
# size of its terms, which cancel.
worst_of_row <- function(call, true, at, y) {
  own <- seq_along(at)
  curve <- true$curve[own, own, drop = FALSE]
  unit <- sqrt(abs(diag(curve)))
  error <- function(found, true, size) max(abs(found - true) / pmax(1, abs(true), size))
  gradient <- call("log_lik_grad", matrix(at))
  terms <- 1e-6 * abs(y) * log(max(abs(y), 1))
  c(error(as.vector(gradient$value), true$value, terms),
    error(as.vector(gradient$gradient), true$slope[own], pmax(unit, terms)),
    error(as.vector(call("log_lik_hess", matrix(at))$hessian), as.vector(curve),
          as.vector(outer(unit, unit))))
}

test_that("log densities keep their digits at extreme predictors, counts and other parameters", {
  needs_compiler(families)
  numbers <- c(-1e8, 0, 1, 1e8)
  positive <- c(1e-300, 1e-8, 1, 1e8, 1e300)
  counts <- c(0, 1, 7, 1e6, 1e11)
  tries <- cbind(y = c(0, 1, 0, 3, 10, 2e5), n = c(1, 1, 10, 10, 10, 1e6))
  # a small change of eta
  near <- function(eta, y, a, b) max(a * min(1, sqrt(b)), 1e-3 * abs(y - eta))
  one <- function(...) 1
  cases <- list(
    list(0, regression(y ~ 1), numbers, 1, near),
    list(1, regression(y ~ 1, poisson()), counts, 0, one),
    list(2, regression(cbind(y, n - y) ~ 1, binomial()), tries, 0, one),
    list(3, regression(cbind(y, n - y) ~ 1, binomial("probit")), tries, 0, one),
    list(4, regression(y ~ 1, negative_binomial()), counts, 1, one),
    list(5, regression(y ~ 1, Gamma("log")), positive, 1,
         function(eta, y, a, b) min(1, 1 / sqrt(a))),
    list(6, regression(y ~ 1, weibull()), positive, 1,
         function(eta, y, a, b) max(min(1, 1 / a), 1e-3 * (eta - log(y)))),
    list(7, regression(y ~ 1, student(df = exponential(1))), numbers, 2, near))
  some <- c(1e-3, 0.1, 1, 30, 1e4, 1e8)
  for (case in cases) {
    rows <- if (is.matrix(case[[3]])) case[[3]] else cbind(y = case[[3]], n = 1)
    worst <- c(0, 0, 0)
    for (k in seq_len(nrow(rows))) {
      encoded <- encode(case[[2]], as.data.frame(rows[k, , drop = FALSE]))
      call <- model_caller(case[[2]], encoded)
      for (eta in c(-700, -40, -5, -1e-8, 0, 0.3, 5, log(1e6), 40, 700))
        for (a in if (case[[4]] > 0) some else 1) for (b in if (case[[4]] > 1) some else 1) {
          at <- c(eta, log(a), log(b))
          y <- rows[k, "y"]
          true <- exact_row(case[[1]], y, rows[k, "n"], at, case[[5]](eta, y, a, b))
          # numbers that differ by more lose digits in the reference, too
          if (!is.finite(true$value) || abs(true$value) > 1e10) next
          worst <- pmax(worst, worst_of_row(call, true, at[seq_len(1 + case[[4]])],
                                              if (case[[1]] %in% 1:4) y else 0))
        }
    }
    expect_lt(worst[1], 1e-9, label = paste("value of family", case[[1]]))
    expect_lt(worst[2], 1e-9, label = paste("gradient of family", case[[1]]))
    # differences of an exponential of an exponential are less exact
    expect_lt(worst[3], if (case[[1]] == 6) 1e-4 else 1e-9,
              label = paste("second derivatives of family", case[[1]]))
  }
})

test_that("counts so large that no digit is left are refused or give a warning", {
  refused <- function(model, data) expect_error(evidence(model, data), "up to 1e11",
                                                class = "logevidence_error")
  large <- data.frame(y = c(1e11, 1e12), z = c(1, 2))
  refused(regression(y ~ 1, poisson()), large)
  refused(regression(y ~ 1, negative_binomial()), large)
  refused(regression(cbind(y, z) ~ 1, binomial()), large)
  refused(poisson_rate(~ y), large)
  many <- data.frame(y = rep(1e11, 40))
  fit <- muffled(evidence(regression(y ~ 1, poisson()), many, laplace()))
  expect_true(any(grepl("The counts add up to 4e\\+?12", fit$warnings)))
  fit <- muffled(evidence(regression(y ~ 1, poisson()), many / 1e5, laplace()))
  expect_false(any(grepl("add up", fit$warnings)))
  # a rate without bounds: draws end, and are counts that a model takes
  vague <- muffled(evidence(poisson_rate(~ y, rate = 5e-324), data.frame(y = c(0, 1, 0)),
                            smc(particles = 10, kernel = rwm()), seed = 792))
  drawn <- unlist(simulate(vague, 2, seed = 1))
  expect_true(all(is.finite(drawn) & drawn >= 0 & drawn <= 1e11))
})

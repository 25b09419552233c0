# Annealing schedules, and the shape of the weights' tail.

step <- function(log_lik, target, lambda = 0, weight = NULL) {
  .Call(unit("schedule"), log_lik, weight, target, lambda)
}
effective_size <- function(log_lik, increment) {
  w <- exp(increment * (log_lik - max(log_lik)))
  sum(w)^2 / sum(w^2)
}
pareto_tail <- function(x) .Call(ffi_pareto_k, x)
pareto_k <- function(x) pareto_tail(x)[1]

test_that("linear and sigmoidal schedules follow their formulas", {
  for (n in c(1, 2, 7, 1000)) {
    expect_equal(lambdas("linear", n), (0:n) / n, tolerance = 1e-15)
    for (delta in c(0.1, 4, 20)) {
      s <- stats::plogis(delta * (2 * (0:n) / n - 1))
      expect_equal(lambdas("sigmoidal", n, delta), (s - s[1]) / (s[n + 1] - s[1]),
                   tolerance = 1e-12)
    }
  }
  for (found in list(lambdas("linear", 13), lambdas("sigmoidal", 13, 4),
                     lambdas("sigmoidal", 500, 30))) {
    expect_identical(range(found), c(0, 1))
    expect_false(is.unsorted(found))
  }
})

test_that("an adaptive step brings the effective size to its target", {
  for (scale in 10^(-1:12)) {
    set.seed(test_seed(round(log10(scale))))
    log_lik <- scale * stats::rnorm(200) - 1e4 * scale
    for (lambda in c(0, 0.3)) for (target in c(10, 100, 190)) {
      found <- step(log_lik, target, lambda)
      if (found == 1 - lambda)
        expect_gte(effective_size(log_lik, 1 - lambda), target)
      else
        expect_equal(effective_size(log_lik, found), target, tolerance = 1e-6)
    }
  }
})

test_that("particles that have lost their weight do not make steps smaller", {
  for (i in 1:50) {
    set.seed(test_seed(i))
    n <- 50
    log_lik <- 10^stats::runif(1, -2, 6) * stats::rnorm(n)
    weight <- stats::runif(n, 0.1, 1)
    target <- n * stats::runif(1, 0.05, 0.95)
    found <- step(log_lik, target)
    # as long as they have weight, it does not matter how much
    expect_identical(step(log_lik, target, weight = weight), found)
    expect_identical(step(log_lik, target, weight = 1e5 * weight), found)
    # others do not count, wherever they are
    far <- c(log_lik, 1e9, -1e9, rep(-1e7, 60))
    expect_equal(step(far, target * length(far) / n, weight = c(weight, rep(1e-9, 62))), found,
                 tolerance = 1e-8)
    # for them the target is reduced in proportion
    expect_equal(step(far, target, weight = c(weight, rep(1e-9, 62))),
                 step(log_lik, target * n / length(far)), tolerance = 1e-8)
  }
})

test_that("an adaptive step never keeps less than its target, also with rounding", {
  set.seed(test_seed(1))
  short <- 0
  for (i in 1:500) {
    log_lik <- 10^stats::runif(1, -2, 3) * stats::rnorm(sample(c(16, 50, 400), 1))
    target <- length(log_lik) * stats::runif(1, 0.05, 0.95)
    short <- max(short, 1 - effective_size(log_lik, step(log_lik, target)) / target)
  }
  expect_lt(short, 1e-13)
})

test_that("lambda goes to one in a step if that keeps the target", {
  for (lambda in c(0, 0.25)) {
    expect_identical(step(rep(-1234.5, 50), 50, lambda), 1 - lambda)
    expect_identical(step(rep(-1234.5, 50), 49.9, lambda), 1 - lambda)
    expect_identical(step(c(-1, -1e6, -1e9), 1, lambda), 1 - lambda)
    expect_identical(step(c(-1, -1e6, -1e9), 0.5, lambda), 1 - lambda)
    expect_identical(step(-7, 1, lambda), 1 - lambda)
    expect_identical(step(c(-1, -1.001, -1.002), 2.9, lambda), 1 - lambda)
  }
})

test_that("a huge spread of log-likelihoods gives a tiny step", {
  log_lik <- c(0, -1e8)
  found <- step(log_lik, 1.9)
  expect_lt(found, 1e-8)
  expect_equal(effective_size(log_lik, found), 1.9, tolerance = 1e-6)
  # the closed form for two particles: (1 + w)^2 / (1 + w^2) = 1.9
  w <- (1 - sqrt(1 - 0.9^2)) / 0.9
  expect_equal(found, -log(w) / 1e8, tolerance = 1e-8)
  # a constant offset changes nothing
  expect_equal(step(log_lik - 1e9, 1.9), found, tolerance = 1e-6)
  expect_equal(step(c(0, -1e200), 1.9), -log(w) / 1e200, tolerance = 1e-8)
})

test_that("impossible particles do not change the step", {
  set.seed(test_seed(3))
  log_lik <- stats::rnorm(100, sd = 20)
  log_lik[1:30] <- -Inf
  expect_equal(effective_size(log_lik[-(1:30)], step(log_lik, 50)), 50, tolerance = 1e-6)
  expect_equal(step(log_lik, 50), step(log_lik[-(1:30)], 50), tolerance = 1e-8)
  # a target that the possible ones cannot reach falls in proportion
  expect_equal(effective_size(log_lik[-(1:30)], step(log_lik, 90)), 90 * 70 / 100, tolerance = 1e-6)
  expect_identical(step(c(-3, -Inf, -Inf), 2.5), 1)
  expect_identical(step(c(-3, -Inf, -3), 2.5), 1)
  expect_error(step(rep(-Inf, 5), 3), "No particle gives the observations a positive probability")
})

test_that("an increment that would not move lambda is an error", {
  expect_error(step(c(0, -1e20), 1.9, 0.5), "increment became too small")
  expect_gt(step(c(0, -1e20), 1.9, 0), 0)
})

test_that("a whole schedule takes as many steps as the spread requires", {
  set.seed(test_seed(4))
  log_lik <- stats::rnorm(500, sd = 30)
  lambda <- 0
  steps <- 0
  while (lambda < 1 && steps < 1000) {
    lambda <- lambda + step(log_lik, 450, lambda)
    steps <- steps + 1
  }
  expect_equal(lambda, 1, tolerance = 1e-12)
  # for normal log-likelihoods ESS = M exp(-v step^2)
  expect_lt(abs(steps / (30 / sqrt(-log(0.9))) - 1), 0.15)
})

# A generalised Pareto tail of shape k above a body of smaller weights.
tailed <- function(n, k, seed) {
  set.seed(test_seed(seed))
  u <- stats::runif(n)
  log(1 + (if (k == 0) -log(u) else (u^-k - 1) / k))
}

test_that("Pareto k finds the shape of known tails", {
  for (k in c(0.2, 0.5, 0.7, 1)) {
    found <- vapply(1:20, function(s) pareto_k(tailed(20000, k, s)), 0)
    tail <- 3 * sqrt(20000)
    expect_lt(abs(mean(found) - (k * tail + 5) / (tail + 10)),
              4.5 * (1 + k) / sqrt(tail * 20) + 0.03)
  }
  expect_lt(pareto_k(log(stats::qunif(stats::ppoints(5000)))), 0.1) # bounded weights
})

test_that("Pareto k does not depend on the weights' scale or order", {
  x <- tailed(1000, 0.6, 7)
  expect_equal(pareto_k(x - 5000), pareto_k(x), tolerance = 1e-9)
  expect_identical(pareto_k(rev(x)), pareto_k(x))
  expect_lt(pareto_k(c(x, rep(-Inf, 10))), 2)
})

test_that("Pareto k of too few or unusual weights is defined", {
  expect_true(is.nan(pareto_k(c(1, 2, 3))))
  expect_true(is.nan(pareto_k(numeric())))
  expect_identical(pareto_k(rep(-3, 100)), -Inf)
  expect_gt(pareto_k(c(rep(-1e4, 99), 0)), 0.7) # one weight is all
  expect_false(isTRUE(pareto_k(rep(-Inf, 100)) > 0))
})

test_that("Pareto k is that of the loo package", {
  skip_if_not_installed("loo")
  for (n in c(50, 200, 1000, 4000)) for (k in c(0.1, 0.5, 0.9)) {
    x <- tailed(n, k, n)
    theirs <- suppressWarnings(loo::psis(x, r_eff = 1)$diagnostics$pareto_k)
    expect_equal(pareto_k(x), theirs, tolerance = 1e-8)
  }
})

test_that("the unseen part of the mean weight is that of a Pareto distribution", {
  # the mean of w = u^-k above its quantile 1 - 1/n, less the mean of all, times 1/n, over the mean
  n <- 4000
  for (k in c(0.3, 0.5, 0.7)) {
    unseen <- vapply(1:40, function(seed) {
      set.seed(test_seed(seed))
      pareto_tail(-k * log(stats::runif(n)))[2]
    }, 0)
    expect_equal(stats::median(unseen) / (n^(k - 1) - 1 / n), 1, tolerance = 0.3)
  }
  # even weights have nothing unseen
  set.seed(test_seed(1))
  expect_lt(pareto_tail(1e-3 * stats::rnorm(n))[2], 1e-5)
})

test_that("numbers are sorted as by sort(): few and many, of all sizes and signs, with ties", {
  set.seed(test_seed(7))
  for (n in c(0, 1, 2, 47:50, 300, 2000)) {
    x <- list(stats::rnorm(n), stats::rcauchy(n) * 10^stats::runif(n, -300, 300),
              round(3 * stats::rnorm(n)), rep(-2.5, n), 1 + 1e-15 * seq_len(n)[sample.int(n)],
              -stats::rexp(n), sample(c(-Inf, Inf, 0, 1, 5e-324, -5e-324), n, replace = TRUE))
    for (numbers in x) {
      before <- numbers + 0
      expect_identical(.Call(unit("sorted"), numbers), sort(numbers))
      expect_identical(numbers, before)
    }
  }
})

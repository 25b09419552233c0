# Gradient rules: full, from a mini-batch, and from a mini-batch with control variates, all of the same mean.

estimate <- function(model, rows, theta, rule, seen, lambda, ..., seed = 1)
  run_kernel(sgld(), model, rows, theta, seed, gradient = rule, seen = seen, lambda = lambda, answer = "gradient", ...)

full_gradient <- function(model, rows, theta, seen, lambda) {
  part <- function(r) ask(model, "log_lik_grad", theta, rows[, r, drop = FALSE])$gradient
  chunk <- setdiff(seq_len(ncol(rows)), seq_len(seen))
  ask(model, "log_prior_grad", theta) + part(seq_len(seen)) + lambda * part(chunk)
}

noisy_cases <- function() {
  softmax <- softmax_model(2, 3)
  mixture <- mixture_model(2, 1)
  lapply(list(list(softmax, c(1, 0, -1, 0.5, 0, -0.5), 61), list(mixture, c(0.3, 1, -1, 0, 0.4), 62)), function(case) {
    model <- case[[1]]
    rows <- some_rows(model, 60, case[[2]], case[[3]])
    away <- seq_along(case[[2]]) / 5
    list(model = model, rows = rows, truth = case[[2]], theta = cbind(case[[2]] + away, case[[2]] - sqrt(away / 5)))
  })
}

test_that("the full rule is the full gradient, at any split of the rows", {
  for (case in noisy_cases()) for (seen in c(0, 40, 60)) for (lambda in c(0, 0.3, 1))
    expect_equal(estimate(case$model, case$rows, case$theta, "full", seen, lambda),
                 full_gradient(case$model, case$rows, case$theta, seen, lambda), tolerance = 1e-12)
})

test_that("mini-batch estimates are unbiased under both rules", {
  for (case in noisy_cases()) for (split in list(c(40, 0.6), c(60, 0), c(20, 1))) {
    expected <- full_gradient(case$model, case$rows, case$theta, split[1], split[2])
    for (rule in c("batch", "control")) {
      found <- t(vapply(1:1500, function(s) {
        as.vector(estimate(case$model, case$rows, case$theta, rule, split[1], split[2], batch = 7,
                           anchor = case$truth, seed = s))
      }, as.vector(expected)))
      expect_z(z_score(found, as.vector(expected)))
    }
  }
})

test_that("the batch is shared by all particles", {
  case <- noisy_cases()[[1]]
  twice <- estimate(case$model, case$rows, case$theta[, c(1, 1)], "batch", 40, 0.5, batch = 5)
  expect_identical(twice[, 1], twice[, 2])
})

test_that("control variates are far less noisy near the anchor, and exact at it", {
  for (case in noisy_cases()) {
    model <- case$model
    spread <- function(rule, distance) {
      theta <- matrix(case$truth + distance * cos(seq_len(model$dim)), model$dim)
      found <- vapply(1:300, function(s) {
        drop(estimate(model, case$rows, theta, rule, 40, 0.6, batch = 10, anchor = case$truth, seed = s))
      }, numeric(model$dim))
      sum(apply(found, 1, stats::var))
    }
    plain <- spread("batch", 0.02)
    expect_lt(spread("control", 0.02), 1e-3 * plain)
    expect_lt(spread("control", 0.1), 0.1 * plain)
    # the remainder is of second order: a tenth of the distance, a ten-thousandth of the variance
    expect_lt(abs(log10(spread("control", 0.02) / spread("control", 0.002)) - 4), 0.5)
    expect_equal(drop(estimate(model, case$rows, case$truth, "control", 40, 0.6, batch = 10, anchor = case$truth)),
                 drop(full_gradient(model, case$rows, matrix(case$truth), 40, 0.6)), tolerance = 1e-10)
  }
})

test_that("a quadratic model needs no batch: control variates are exact everywhere", {
  model <- linear_model(3, 0.7, 0, 2)
  rows <- some_rows(model, 700, c(1, 2, 3), 63)
  theta <- prior_draws(model, 5, 64)
  for (seen in c(0, 300, 700)) for (lambda in c(0, 0.4, 1))
    expect_equal(estimate(model, rows, theta, "control", seen, lambda, batch = 10, anchor = c(5, -3, 0)),
                 full_gradient(model, rows, theta, seen, lambda), tolerance = 1e-10)
})

test_that("with nothing seen, or no anchor, the estimate is the full gradient", {
  for (case in noisy_cases()) {
    expected <- full_gradient(case$model, case$rows, case$theta, 0, 0.5)
    expect_equal(estimate(case$model, case$rows, case$theta, "batch", 0, 0.5, batch = 5), expected, tolerance = 1e-12)
    expect_equal(estimate(case$model, case$rows, case$theta, "control", 0, 0.5, batch = 5), expected, tolerance = 1e-12)
  }
})

test_that("batches longer than a block of rows are summed whole", {
  model <- softmax_model(2, 2)
  rows <- some_rows(model, 3000, c(1, -1, 0, 0.5), 65)
  theta <- cbind(c(0.8, -0.9, 0.1, 0.4))
  expected <- full_gradient(model, rows, theta, 2500, 0.5)
  for (rule in c("batch", "control")) {
    found <- t(vapply(1:200, function(s) {
      drop(estimate(model, rows, theta, rule, 2500, 0.5, batch = 1300, anchor = c(1, -1, 0, 0.5), seed = s))
    }, numeric(4)))
    expect_z(z_score(found, expected[, 1]))
  }
})

# Log-likelihoods by part of the rows around an anchor: of chunks, and of the audit's draws.

weigh <- function(model, rows, theta, part, seen, ..., seed = 1)
  run_kernel(sgld(), model, rows, theta, seed, gradient = "control", seen = seen,
             answer = "log_lik", part = part, ...)

weighed_case <- function(model, truth, spread, seed, n = 3000, m = 40) {
  set.seed(test_seed(seed))
  list(model = model, rows = some_rows(model, n, truth, seed), truth = truth,
       theta = truth + matrix(spread * stats::rnorm(length(truth) * m), length(truth)))
}

chunk_sums <- function(case, seen)
  ask(case$model, "log_lik", case$theta, case$rows[, -seq_len(seen), drop = FALSE])

test_that("for a quadratic likelihood the expansion is exact at any distance from the anchor", {
  model <- linear_model(3)
  case <- weighed_case(model, c(1, -1, 0.5), 2, 71)
  found <- weigh(model, case$rows, case$theta, 100, 1000, anchor = c(0.5, 0, 1))
  expect_equal(as.vector(found), chunk_sums(case, 1000), tolerance = 1e-12)
  expect_equal(attr(found, "likelihoods"), 2000)
})

test_that("weights of a chunk from part of its rows: unbiased, exact far away, and less work", {
  cases <- list(weighed_case(softmax_model(2, 3), c(1, 0, -1, 0.5, 0, -0.5), 0.03, 72),
                weighed_case(mixture_model(2, 1), c(0.3, 1, -1, 0, 0.4), 0.02, 73))
  for (case in cases) {
    exact <- chunk_sums(case, 1000)
    times <- fast_or_slow(150, 400)
    runs <- lapply(seq_len(times), function(s) weigh(case$model, case$rows, case$theta, 200, 1000,
                                            anchor = case$truth, seed = s))
    error <- t(vapply(runs, as.vector, exact)) - rep(exact, each = times)
    same <- colSums(abs(error) > 1e-9) == 0
    expect_equal(sum(same), 4)
    expect_lt(max(abs(error)), 0.15)
    expect_z(z_score(error[, !same], 0))
    # 200 rows of 41 points, and 2,000 of five
    expect_equal(unique(vapply(runs, attr, 0, "likelihoods")), 200 * 41 + 2000 * 5)
  }
})

test_that("if part of the rows does not determine a chunk's value, all rows are used", {
  case <- weighed_case(softmax_model(2, 3), c(1, 0, -1, 0.5, 0, -0.5), 0.03, 74)
  exact <- chunk_sums(case, 1000)
  expect_identical(as.vector(weigh(case$model, case$rows, case$theta, 0, 1000,
                                   anchor = case$truth)), exact)
  expect_identical(as.vector(weigh(case$model, case$rows, case$theta, 1001, 1000,
                                   anchor = case$truth)), exact)
  expect_identical(as.vector(weigh(case$model, case$rows, case$theta, 200, 1000)), exact)

  far <- case
  far$theta[1, 7] <- far$theta[1, 7] + 3
  expect_identical(as.vector(weigh(far$model, far$rows, far$theta, 200, 1000, anchor = far$truth)),
                   chunk_sums(far, 1000))

  # a row that says more than all others, which the part has in one of ten times
  odd <- case
  odd$rows[1:2, 2000] <- c(20, 80)
  for (seed in 1:10)
    expect_identical(as.vector(weigh(odd$model, odd$rows, odd$theta, 200, 1000, anchor = odd$truth,
                                     seed = seed)), chunk_sums(odd, 1000))

  # a particle that is nowhere does not hide among the others
  lost <- case
  lost$theta[1, 5] <- NaN
  found <- as.vector(weigh(lost$model, lost$rows, lost$theta, 200, 1000, anchor = lost$truth))
  expect_false(is.finite(found[5]))
  expect_lt(max(abs(found[-5] - exact[-5])), 0.15)
})

test_that("if a part of the rows is too imprecise, four times as many are tried before all", {
  case <- weighed_case(softmax_model(2, 3), c(1, 0, -1, 0.5, 0, -0.5), 0.08, 76)
  exact <- chunk_sums(case, 1000)
  runs <- lapply(1:60, function(s) weigh(case$model, case$rows, case$theta, 100, 1000,
                                         anchor = case$truth, seed = s))
  error <- vapply(runs, function(r) max(abs(as.vector(r) - exact)), 0)
  # what asks rows: 41 points part of them, and all of them five, or in the end all
  first <- 100 * 41 + 2000 * 5
  second <- first + 400 * 41 + 2000 * 5
  asked <- factor(vapply(runs, attr, 0, "likelihoods"), c(first, second, second + 2000 * 40))
  expect_false(anyNA(asked))
  expect_true(all(table(asked) > 0))
  expect_lt(sqrt(mean(error^2)), 0.1)
  expect_lt(max(error), 0.5)
  expect_true(all(error[asked == second + 2000 * 40] == 0))
})

# Three classes, 20,000 rows.
many_rows <- function(odd = FALSE) with_own_seed(test_seed(75), {
  x <- matrix(stats::rnorm(40000), 20000)
  utility <- cbind(x, 1) %*% matrix(c(1, -1, 0.5, -0.5, 0.3, 0, 0, 0, 0), 3) -
    log(-log(matrix(stats::runif(60000), 20000)))
  y <- factor(max.col(utility))
  # a row whose likelihood differs much within the width of the posterior
  if (odd) {
    x[77, ] <- c(400, 800)
    y[77] <- "3"
  }
  list(x = x, y = y)
})

audits <- function(data, seeds, model = softmax_regression(prior_sd = 1)) {
  method <- sgais(audit_draws = 1000)
  method$settings[c("audit_least", "audit_work")] <- list(100, 1e6)
  vapply(seeds, function(s) {
    audit <- evidence(model, data, method, seed = test_seed(s), progress = FALSE)$audit
    c(error = audit$log_evidence, se = audit$se, draws = audit$draws, laplace = audit$laplace)
  }, numeric(4))
}

test_that("a check by part of the rows has as many draws as asked for and a right standard error", {
  data <- many_rows()
  truth <- evidence(softmax_regression(prior_sd = 1), data, laplace(importance = 10000),
                    seed = test_seed(1), progress = FALSE)
  runs <- fast_or_slow(12, 25)
  found <- audits(data, seq_len(runs))
  expect_true(all(found["draws", ] == 1000))
  z <- (found["error", ] - truth$log_evidence) / found["se", ]
  expect_lt(abs(mean(z)), 3 * sqrt(1 / runs + (truth$se / mean(found["se", ]))^2))
  square <- sum((z - mean(z))^2)
  expect_gt(square, stats::qchisq(1e-4, runs - 1))
  expect_lt(square, stats::qchisq(1 - 1e-4, runs - 1))
})

test_that("with one unusual row the check uses all rows and fewer draws", {
  data <- many_rows(odd = TRUE)
  truth <- evidence(softmax_regression(prior_sd = 1), data, laplace(importance = 4000),
                    seed = test_seed(1), progress = FALSE)
  found <- audits(data, 1:4)
  expect_true(all(found["draws", ] == 100))
  expect_lt(max(abs(found["error", ] - truth$log_evidence)), 4 * max(found["se", ]))
})

test_that("a check by part of the rows is right for a mixture", {
  data <- with_own_seed(test_seed(77),
                        stats::rnorm(12000, sample(c(-4, 0, 5), 12000, replace = TRUE), 1))
  model <- gaussian_mixture(components = 3)
  truth <- evidence(model, data, laplace(importance = 4000), seed = test_seed(1), progress = FALSE)
  found <- audits(data, seq_len(fast_or_slow(3, 8)), model)
  # a trial that misses has all rows asked, of a tenth of the draws; where some draws need all rows
  # there are fewer too
  expect_true(all(found["draws", ] >= 100 & found["draws", ] <= 1000))
  expect_gt(mean(found["draws", ] == 1000), 0.25)
  expect_lt(max(abs(found["error", ] - truth$log_evidence) / sqrt(found["se", ]^2 + truth$se^2)), 4)
  # climbs end a little below the top, and say by how much
  expect_lt(max(abs(found["laplace", ] -
                    evidence(model, data, laplace(), progress = FALSE)$log_evidence)), 0.005)
})

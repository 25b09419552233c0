# Combinations of features that once ended the R session or changed a result. The generated matrix
# of all combinations is in test-crossings.R.

shifted_stream <- function(n) with_own_seed(test_seed(11), {
  d <- data.frame(x = rnorm(n))
  d$y <- d$x + rnorm(n) + 5 * (seq_len(n) > n / 2)
  d
})

test_that("a run whose rows have left memory starts again from the sample if their law changes", {
  d <- shifted_stream(12000)
  model <- linear_regression(y ~ x, sigma = 1, prior_sd = 1)
  fit <- quiet_fit(model, d, seed = test_seed(1), keep = 4000)
  exact <- evidence(model, d, exact(), seed = 1)$log_evidence
  expect_lt(abs(fit$log_evidence - exact), 5 * fit$se)
  expect_match(fit$warnings, "distribution of the rows changed", all = FALSE)
  # without a check there is nothing to start again from
  bare <- quiet_fit(model, d, sgais(audit = FALSE), seed = test_seed(1), keep = 4000)
  expect_true(is.finite(bare$log_evidence))
})

test_that("the check works with every kernel and its mass matrix", {
  d <- with_own_seed(test_seed(12), {
    d <- data.frame(x = rnorm(400))
    d$y <- rpois(400, exp(d$x / 2))
    d
  })
  model <- regression(y ~ x, poisson(), prior_sd = 2.5)
  dense <- quiet_fit(model, d, seed = test_seed(1))
  for (kernel in list(sghmc(), sgld(), baoab())) {
    fit <- quiet_fit(model, d, sgais(kernel = kernel), seed = test_seed(1))
    expect_lt(abs(fit$log_evidence - dense$log_evidence), 5 * (fit$se + dense$se))
  }
})

test_that("a run without accept steps can be saved between its moves and the end of its chunk", {
  d <- shifted_stream(300)[1:60, ]
  setup <- run_problem(linear_regression(y ~ x, sigma = 1, prior_sd = 1), d,
                       smc("data", 20, kernel = baoab(), chunk = 15), test_seed())
  whole <- finish_run(start_run(setup))
  run <- start_run(setup)
  repeat {
    again <- .Call(ffi_run_new, replace(setup$problem, "restore", list(TRUE)))
    .Call(ffi_run_restore, again, .Call(ffi_run_save, run))
    expect_identical(finish_run(again), whole)
    if (.Call(ffi_run_advance, run, 0, Inf) != "more") break
  }
})

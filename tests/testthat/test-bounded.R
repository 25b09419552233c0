# Rows that are no longer in memory: sums and a sample of them stand for all (core/past.h).

bounded <- with_own_seed(test_seed(21), {
  n <- 12000
  data <- data.frame(x = rnorm(n), z = rnorm(n))
  data$y <- 1 + 2 * data$x + rnorm(n)
  data$class <- factor(rbinom(n, 1, stats::plogis(data$x)))
  data
})
line <- linear_regression(y ~ x + z, sigma = 1, prior_sd = 2)
classes <- softmax_regression(class ~ x + z, prior_sd = 1)
blobs <- gaussian_mixture(~ x + y, components = 2, location = 0, rate = 1)

cases <- list(
  list(line, sgais()), list(classes, sgais()), list(blobs, sgais()),
  list(classes, sgais(early = list(particles = 50, rows = 300), audit = FALSE)),
  list(line, sgais(preset = "paper")), list(classes, smc("data", 100, chunk = 100)),
  list(classes, smc("data", 50, chunk = 500, kernel = rwm())), list(classes, sequential()),
  list(line, hybrid()), list(line, online_nested(20, steps = 5)),
  list(classes, online_nested(20, sghmc(0.01), 5, batch = 30))
)

test_that("the size of blocks does not matter when rows are gone", {
  for (case in cases) {
    fits <- lapply(c(61, 1e5), function(size)
      quiet_fit(case[[1]], in_blocks(bounded, size), case[[2]], seed = test_seed(2), keep = 2000))
    for (part in c("log_evidence", "se", "draws", "n", "data_id", "warnings"))
      expect_identical(fits[[1]][[part]], fits[[2]][[part]], info = case[[2]]$name)
  }
})

test_that("a pause for rows while control variates are renewed changes no bit", {
  data <- with_own_seed(test_seed(), {
    x <- rnorm(20000)
    data.frame(w = x + 1.5 * rnorm(20000, sample(c(-1, 1), 20000, TRUE)))
  })
  fits <- lapply(c(700, 3000, 1e5), function(size)
    quiet_fit(gaussian_mixture(components = 2, location = 0, rate = 1),
              in_blocks(data, size), seed = test_seed(2),
              keep = 4000))
  for (fit in fits[-1]) expect_identical(fit$sampler, fits[[1]]$sampler)
})

test_that("the estimate and its error are right, with one pass and with two", {
  exact <- model_functions(line, bounded)$exact()
  reference <- evidence(classes, bounded, sgais(audit_draws = 20000), seed = test_seed())
  two <- evidence(blobs, bounded, sgais(audit_draws = 20000), seed = test_seed())
  truths <- list(list(line, exact, 0), list(classes, reference$log_evidence, reference$se),
                 list(blobs, two$log_evidence, two$se))
  for (truth in truths) for (rewind in c(FALSE, TRUE)) {
    fits <- lapply(test_seed(seq_len(fast_or_slow(2, 6))), function(seed)
      quiet_fit(truth[[1]], in_blocks(bounded[with_own_seed(seed, sample(nrow(bounded))), ], 5000,
                                      rewind), seed = seed, keep = 3000))
    se <- vapply(fits, `[[`, 0, "se")
    z <- (vapply(fits, `[[`, 0, "log_evidence") - truth[[2]]) / sqrt(se^2 + truth[[3]]^2)
    expect_lt(max(abs(z)), 4.5)
    expect_lt(max(se), if (rewind) 0.03 else 0.1)
    expect_true(all(vapply(fits, `[[`, "", "source") == "audit"))
  }
})

# All slices of a run, with the blocks of a matrix; saved and restored after the slice `at`. With
# `late` a time limit is over before each slice, which is then undone and done again.
by_slices <- function(problem, rows, size, at = Inf, late = FALSE) {
  run <- .Call(ffi_run_new, problem)
  fed <- slices <- 0
  repeat {
    answer <- if (late) .Call(ffi_run_advance, run, 0, -1) else "more"
    if (answer == "more") answer <- .Call(ffi_run_advance, run, 0, Inf)
    slices <- slices + 1
    if (answer == "done") break
    if (answer == "question") fed <- 0
    if (answer %in% c("rows", "question")) {
      to <- min(fed + size, ncol(rows))
      .Call(ffi_run_feed, run, rows[, (fed + 1):to, drop = FALSE],
            if (to == ncol(rows)) "last" else "some")
      fed <- to
    }
    if (slices != at) next
    state <- .Call(ffi_run_save, run)
    .Call(ffi_run_free, run)
    run <- .Call(ffi_run_new, replace(problem, "restore", TRUE))
    .Call(ffi_run_restore, run, state)
  }
  list(result = timeless(run_result(run)), slices = slices)
}

test_that("a run whose rows are gone is restored to the same bits at any moment", {
  for (case in cases[fast_or_slow(c(1, 3, 4, 6, 9, 11), seq_along(cases))]) {
    method <- by_blocks(case[[2]], case[[1]], list(rewinds = TRUE), 2000)
    problem <- new_problem(case[[1]], encode(case[[1]], bounded), method, words(2))
    rows <- encode(case[[1]], bounded)$rows
    whole <- by_slices(problem, rows, 1500)
    expect_identical(by_slices(problem, rows, 1500, late = TRUE)$result, whole$result)
    for (at in round(whole$slices * fast_or_slow(c(0.5, 0.97), c(0.2, 0.5, 0.8, 0.97)))) {
      other <- by_slices(problem, rows, 1500, max(1, at))
      expect_identical(other$result, whole$result, info = paste(case[[2]]$name, at))
    }
  }
})

shifted <- with_own_seed(test_seed(5), {
  k <- c(sample(c(-6, 0), 8000, TRUE), sample(c(-6, 0, 6), 8000, TRUE))
  data.frame(a = rnorm(16000, k), b = rnorm(16000, -k))
})
three <- gaussian_mixture(components = 3, location = 0, rate = 1)

test_that("a change of the rows' distribution gives a warning, and a second pass is right", {
  truth <- evidence(three, shifted, seed = test_seed())
  once <- quiet_fit(three, in_blocks(shifted, 1000, FALSE), seed = test_seed(3), keep = 3000)
  expect_gt(max(once$trace$restarts), 0)
  expect_match(once$failed, "distribution of the rows changed", all = FALSE)
  expect_lt(abs(once$log_evidence - truth$log_evidence), 4 * once$se)
  again <- quiet_fit(three, in_blocks(shifted, 1000), seed = test_seed(3), keep = 3000)
  expect_lt(abs(again$log_evidence - truth$log_evidence), 0.05)
  expect_identical(again$source, "audit")
})

test_that("a source that has other rows the second time is an error", {
  starts <- at <- 0
  rows <- rows_function(function(reset) {
    if (reset) starts <<- starts + 1
    if (reset) at <<- if (starts > 1) 1000 else 0
    else if ((at <<- at + 1000) <= 16000) shifted[(at - 999):at, ]
  })
  refused(evidence(three, rows, keep = 3000, seed = test_seed(3)), "the second time")
})

test_that("nested sampling of exchangeable components is refused without all rows", {
  refused(suppressWarnings(evidence(blobs, in_blocks(bounded, 1000), online_nested(20), keep = 2000,
                                    seed = test_seed())), "all rows in memory")
  expect_warning(try(evidence(blobs, in_blocks(bounded, 1000), online_nested(20), keep = 2000,
                              seed = test_seed()), silent = TRUE),
                 "stops with an error after 2,000 rows: use sgais(), or a larger", fixed = TRUE)
  told <- function(...) exchangeable_warning(online_nested(), ..., keep = 2000)
  encoded <- encode(blobs, bounded)
  expect_null(told(blobs, encoded, total = 2000))
  expect_match(told(blobs, encoded, total = NA), "exchangeable")
  expect_null(exchangeable_warning(sgais(), blobs, encoded, NA, 2000))
})

# The conductor: what is shown while a run goes on, and how runs end.

test_that("a progress bar has an estimate of the time left, or the rows of a stream without end", {
  skip_on_cran()
  printed <- function(n, done, rows) {
    file <- tempfile()
    connection <- file(file, "w")
    sink(connection, type = "message")
    on.exit({
      sink(type = "message")
      close(connection)
    })
    bar <- logevidence:::progress_bar(TRUE, n)
    Sys.sleep(0.6)
    bar$show(done, rows)
    bar$close()
    flush(connection)
    readChar(file, 1e4)
  }
  expect_match(printed(1000, 0.5, 500), "50%  ETA [0-9.]+ (ms|s)")
  expect_match(printed(NA, 0, 12345), "12,345 rows")
})

test_that("nothing is printed when no progress is wanted", {
  expect_silent(evidence(gaussian_mean(), rnorm(10), seed = test_seed(), progress = FALSE))
})

test_that("a run that fails is freed and raises one sentence", {
  line <- linear_regression(y ~ x, sigma = 1, prior_sd = 1)
  data <- data.frame(x = c(1, 2, 3), y = c(1e160, 2e160, 3e160))
  expect_error(evidence(line, data, seed = test_seed()), class = "logevidence_error")
  expect_s3_class(evidence(line, data.frame(x = 1:3, y = 1:3), seed = test_seed()), "evidence")
})

test_that("a row of density zero is named by its place in the data, where that is known", {
  line <- linear_regression(y ~ x, sigma = 1, prior_sd = 1)
  data <- data.frame(x = 1:40 / 10, y = c(rnorm(24), 1e160, rnorm(15)))
  setup <- run_problem(line, data, sgais(20, audit = FALSE))
  ends <- function(parts) {
    run <- .Call(ffi_run_new, setup$problem)
    for (k in seq_along(parts)) .Call(ffi_run_feed, run, setup$rows[, parts[[k]], drop = FALSE],
                                      if (k == length(parts)) "last" else "some")
    expect_error(finish_run(run), class = "logevidence_error")$message
  }
  expect_match(ends(list(1:40)), "Observation 25 has zero likelihood")
  expect_match(ends(list(1:20, 21:40)), "An observation has zero likelihood")
  for (seed in test_seed(1:3)) expect_error(evidence(line, data, sgais(20), seed = seed),
                                 "Observation 25 has zero likelihood")
})

test_that("data and what a run needs take less than 2.5 times the memory of the data", {
  skip_on_cran()
  skip_if_not(file.access("/proc/self/clear_refs", 2) == 0,
              "the system does not tell how much memory was held")
  skip_if(nzchar(Sys.getenv("ASAN_OPTIONS")), "a sanitizer has memory of its own")
  told <- new_session(
    "status <- function(what) grep(what, readLines('/proc/self/status'), value = TRUE)",
    "held <- function(what) as.numeric(gsub('[^0-9]', '', status(what))) * 1024",
    "data <- matrix(rnorm(2e6) + 8 * (runif(1e6) < 0.4), ncol = 2)",
    "invisible(evidence(gaussian_mixture(components = 2,
                                         location = 0, rate = 1),
                               data[1:1000, ], sgais(20), seed = 1))",
    "invisible(gc())",
    "writeLines('5', '/proc/self/clear_refs')",
    "before <- held('VmRSS')",
    "invisible(evidence(gaussian_mixture(components = 2,
                                         location = 0, rate = 1), data, sgais(20), seed = 1))",
    "cat('times', 1 + (held('VmHWM') - before) / as.numeric(object.size(data)))"
  )
  expect_match(told, "times ")
  times <- as.numeric(sub(".*times ", "", told))
  expect_gt(times, 1.9) # the rows are there twice
  expect_lt(times, 2.5)
})

test_that("an interrupt ends a run at once and leaves R usable", {
  skip_on_cran()
  skip_on_os("windows")
  told <- new_session(
    "x <- matrix(rnorm(2e6), ncol = 10)",
    "data <- list(x = x, y = factor(sample(4, nrow(x), TRUE)))",
    "child <- Sys.getpid()",
    "system(paste('(sleep 1; kill -INT', child, ') &'))",
    "started <- proc.time()[['elapsed']]",
    "fit <- function(...) evidence(softmax_regression(), data, ais(), seed = 1, ...)",
    "result <- tryCatch(fit(), interrupt = function(i) 'interrupted')",
    "spent <- proc.time()[['elapsed']] - started",
    "stopifnot(identical(result, 'interrupted'), spent < 20)",
    "system(paste('(sleep 1; kill -INT', child, ') &'))",
    "started <- proc.time()[['elapsed']]",
    "result <- tryCatch(fit(replicates = 2, threads = 2), interrupt = function(i) 'interrupted')",
    "spent <- proc.time()[['elapsed']] - started",
    "stopifnot(identical(result, 'interrupted'), spent < 20)",
    "again <- evidence(gaussian_mean(), 1:5, seed = 1)",
    "cat('usable', is.finite(logml(again)))"
  )
  expect_match(told, "usable TRUE")
})

test_that("fingerprints differ for other observations, and not for another order", {
  fingerprint <- function(x) logevidence:::fingerprint(x, threads = 2)
  x <- with_own_seed(test_seed(3), matrix(stats::rnorm(60), 6))
  expect_identical(fingerprint(x), fingerprint(x[, 10:1]))
  classes <- factor(c("b", "a", "c", "b"))
  expect_identical(fingerprint(classes), fingerprint(c(1, 0, 2, 1)))
  turned <- x
  turned[2, 3:4] <- -turned[2, 3:4]
  swapped <- x
  swapped[1:2, 1] <- x[2:1, 1]
  others <- list(turned, swapped, x * (1 + 1e-15), x[, -1], cbind(x, x[, 1]), x[1:5, ])
  expect_identical(anyDuplicated(vapply(c(list(x), others), fingerprint, "")), 0L)
  expect_error(fingerprint("a"), "must be numeric")
  many <- matrix(seq_len(3e5) / 7, 3)
  expect_identical(fingerprint(many), logevidence:::fingerprint(many[, rev(seq_len(1e5))]))
})

test_that("data that are not finite are found, and finite data with an infinite sum are not", {
  for (n in c(1:20, 1000)) {
    x <- rep(1e308, n)
    expect_true(all_finite(x))
    for (bad in c(NA, NaN, Inf, -Inf)) for (at in unique(c(1, n %/% 2 + 1, n)))
      expect_false(all_finite(replace(x, at, bad)))
  }
  expect_true(all_finite(numeric()))
  whole <- c(1:9, .Machine$integer.max, -.Machine$integer.max)
  expect_true(all_finite(whole))
  expect_true(all_finite(factor(whole)))
  expect_false(all_finite(c(whole, NA)))
  expect_false(all_finite(factor(c(whole, NA))))
})

test_that("a run that would need more rows is an error, not an estimate of a part", {
  setup <- run_problem(linear_regression(dist ~ speed, sigma = 15,
                                         prior_sd = 1), cars, sequential(steps = 1))
  fed_in_parts <- function(problem) conduct_together(list(problem), setup$rows, feed = "some")
  expect_error(fed_in_parts(setup$problem), "more rows than the data have",
               class = "logevidence_error")
})

test_that("prior draws that never succeed can be interrupted", {
  model <- gaussian_mean(prior_sd = 100, sigma = 1e-3)
  setup <- run_problem(model, c(0, 0.001, 0.002),
                       nested(live = 20, kernel = logevidence::kernel_prior_draws()))
  run <- start_run(setup)
  longest <- 0
  for (slice in 1:15) {
    started <- proc.time()[[3]]
    if (.Call(ffi_run_advance, run, 0.05, Inf) != "more") break
    longest <- max(longest, proc.time()[[3]] - started)
  }
  expect_lt(longest, 2)
})

test_that("a user's function may leave by a restart of the user", {
  jumping <- custom_model("a", function(theta) invokeRestart("enough", "left"),
                          function(theta) dnorm(theta, log = TRUE), function(n) rnorm(n))
  left <- withRestarts(evidence(jumping, method = smc(kernel = rwm()), seed = test_seed()),
                       enough = function(x) x)
  expect_identical(left, "left")
  gc()
  expect_true(is.finite(evidence(gaussian_mean(), c(1, 2), seed = test_seed())$log_evidence))
})

test_that("a time limit of R is an error that can be caught, and the session works", {
  said <- new_session(
    "x <- matrix(rnorm(4e5), ncol = 2)",
    "stopped <- 0",
    "for (limit in c(0.15, 0.2, 0.3, 0.4, 0.5)) {",
    "  outcome <- tryCatch({",
    "    setTimeLimit(elapsed = limit, transient = TRUE)",
    "    evidence(gaussian_mixture(components = 6, location = 0, rate = 1), x, smc(), seed = 1)",
    "  }, error = conditionMessage, finally = setTimeLimit())",
    "  stopped <- stopped + identical(outcome, \"reached elapsed time limit\")",
    "}",
    "cat(\"stopped\", stopped, \"and R goes on\")"
  )
  expect_match(said, "stopped 5 and R goes on", fixed = TRUE)
})

test_that("the progress bar has a part for the checks after the last row of a source", {
  blobs <- gaussian_mixture(~ dist + speed, components = 2, location = 0, rate = 1)
  shares <- numeric()
  for (method in list(sgais(), smc("data"))) {
    problem <- new_problem(blobs, encode(blobs, cars), method, c(1, 0))
    display <- new_display(FALSE, function(report) shares <<- c(shares, report$share), 50, TRUE,
                           TRUE, first_share(problem))
    display$show(0.5, 50, function() NULL)
  }
  expect_identical(shares, c(FIRST_SHARE, 1))
})

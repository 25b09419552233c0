# change_points() of each kind of model: what has no closed form, sources, and every model of the
# crossings.

found_in <- function(...) muffled(change_points(..., seed = test_seed()))

test_that("changes between mixtures are found, within the stated error", {
  set.seed(test_seed(5))
  z <- function(n, centres) sample(centres, n, TRUE) + rnorm(n)
  y <- c(z(200, c(-4, 4)), z(300, c(-4, 1)))
  model <- gaussian_mixture(components = 2, mean_scale = 4)
  found <- found_in(model, y, most = 2)
  expect_identical(found$number, 1)
  expect_true(found$changes$from <= 200 && found$changes$to >= 200)
  expect_lt(found$numbers$error[2], 0.5)
  expect_identical(unique(found$sizes$parameter), c("mean", "sd"))
  expect_lt(max(found$sizes$up), 0.05)
  # without a change, and with one, it is the evidence of the parts
  whole <- quiet_fit(model, y, seed = 1)
  expect_lt(abs(found$numbers$log_evidence[1] - logml(whole)),
            4.5 * sqrt(whole$se^2 + found$numbers$error[1]^2))
  expect_match(said(summary(found)), "are estimates", fixed = TRUE)
  expect_false(is.null(found$band))
})

test_that("models of R functions use laplace() in segments, or the method that is given", {
  set.seed(test_seed(6))
  y <- c(rnorm(8), rnorm(7, 4))
  custom <- custom_model("mean", function(theta, data) dnorm(data, theta, log = TRUE),
                         function(theta) dnorm(theta, sd = 3, log = TRUE),
                         function(n) rnorm(n, 0, 3))
  exact <- found_in(gaussian_mean(prior_sd = 3), y, most = 1, least = 4)
  found <- found_in(custom, y, most = 1, least = 4)
  expect_lt(max(abs(found$numbers$log_evidence - exact$numbers$log_evidence)), 0.05)
  expect_lt(max(found$numbers$error), 0.05)
  expect_identical(found$number, exact$number)
  asked <- found_in(gaussian_mean(prior_sd = 3), y, most = 1, least = 4, method = sgais())
  expect_equal(asked$numbers$log_evidence, exact$numbers$log_evidence, tolerance = 1e-2)
  expect_identical(names(asked$segments), names(exact$segments))
})

test_that("a source gives what the same rows in memory give", {
  set.seed(test_seed(7))
  rows <- data.frame(day = as.Date("2000-01-01") + 0:4999,
                     x = rnorm(5000), y = rnorm(5000, rep(c(0, 0.6), c(3100, 1900))))
  file <- tempfile(fileext = ".csv")
  on.exit(unlink(file))
  utils::write.csv(rows, file, row.names = FALSE)
  for (model in list(gaussian_mean(~ y, prior_sd = 2),
                     linear_regression(y ~ x, sigma = 1, prior_sd = 2))) {
    memory <- found_in(model, rows)
    for (source in list(rows_csv(file, block = 1300), in_blocks(rows, 1800))) {
      found <- found_in(model, source)
      expect_equal(found$numbers, memory$numbers, tolerance = 1e-7)
      expect_equal(found$changes, memory$changes, tolerance = 1e-5)
      expect_equal(found$segments$last, memory$segments$last)
    }
    once <- found_in(model, in_blocks(rows, 900, FALSE))
    expect_false(once$exact)
    off <- abs(once$numbers$log_evidence - memory$numbers$log_evidence)
    expect_lt(max((off - 2 * once$numbers$error)[1:2]), 0.2)
    expect_gte(once$changes$row, memory$changes$from)
    expect_lte(once$changes$row, memory$changes$to)
  }
  timed <- found_in(gaussian_mean(~ y, prior_sd = 2), in_blocks(rows, 900, TRUE), at = "day")
  expect_lt(abs(as.numeric(timed$changes$at - rows$day[timed$changes$row])), 3)
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off(), add = TRUE)
  plot(timed)
  refused(change_points(gaussian_mean(~ y), in_blocks(rows[5000:1, ], 900, TRUE), at = "day"),
          "`at` must be sorted")
})

test_that("change_points() works for every model or refuses it in a sentence", {
  models <- crossing_models()
  alike <- grepl("^regression_.*_|_unknown$|^custom_(bounds|cube|prior)$", names(models)) &
    !vapply(models, `[[`, NA, "full")
  for (name in names(models)[!alike | fast_or_slow(FALSE, TRUE)]) {
    entry <- models[[name]]
    data <- crossing_data(name)
    n <- min(NROW(data), if (entry$n == MEMORY_ROWS) 120 else 15)
    data <- if (is.null(dim(data))) data[seq_len(n)] else data[seq_len(n), , drop = FALSE]
    model <- eval(entry$call)
    found <- tryCatch(found_in(model, data, most = 1, least = n %/% 3, draws = 50),
                      logevidence_error = identity)
    # with a part of the coefficients: the same without changes, or a sentence
    level <- tryCatch(found_in(model, data, most = 1, least = n %/% 3, draws = 50, changes = ~ 1),
                      logevidence_error = identity)
    if (!inherits(level, "logevidence_error")) {
      off <- abs(level$numbers$log_evidence[1] - found$numbers$log_evidence[1])
      expect_lt(off, 4 * sqrt(level$numbers$error[1]^2 + found$numbers$error[1]^2) + 1e-6,
                label = paste(name, "with changes of the level"))
    }
    if (inherits(found, "logevidence_error")) {
      # a model without rows, or with groups of rows, or an improper prior
      expect_match(conditionMessage(found), "data|proper prior|must have|group-level", info = name)
      next
    }
    expect_true(all(is.finite(found$numbers$log_evidence)), info = name)
    expect_equal(sum(found$numbers$posterior), 1, info = name)
    expect_match(said(summary(found)), "Change points in", fixed = TRUE, info = name)
    whole <- quiet_fit(model, data, seed = 1)
    off <- abs(found$numbers$log_evidence[1] - logml(whole))
    expect_lt(off, 0.3 + 4.5 * sqrt(found$numbers$error[1]^2 + sum(whole$se^2, na.rm = TRUE)),
              label = name)
  }
})

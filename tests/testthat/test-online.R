# online_nested() and hybrid(): right when all rows have been seen, and right on the way.

run <- function(problem, method = online_nested(), seed = 1, ...) {
  quiet_fit(problem$model, problem$data, method, seed = test_seed(seed), progress = FALSE, ...)
}
line <- truth_problem("cars")
line500 <- c(list(name = "linear500"), simulated_linear(500))
small <- c(list(name = "linear200"), simulated_linear(200, 2))
hundred <- c(list(name = "hundred"), with_own_seed(test_seed(5), {
  mean_problem(sample(hundred_around_two()))
}))

first_rows <- function(problem, n) {
  linear_truth(problem$x[seq_len(n), , drop = FALSE], problem$y[seq_len(n)], problem$sigma,
               problem$prior_sd)
}
linear_posterior <- function(problem) {
  precision <- crossprod(problem$x) / problem$sigma^2 + diag(1 / problem$prior_sd^2)
  list(mean = drop(solve(precision, crossprod(problem$x, problem$y))) / problem$sigma^2,
       precision = precision)
}

#' On the way as at the end: after every chunk the estimate is near the evidence of the rows so far
expect_right_throughout <- function(problem, method, seeds) {
  traces <- lapply(fits_of(problem, method, seeds, 2), `[[`, "trace")
  n <- traces[[1]]$n
  truth <- vapply(n, function(k) first_rows(problem, k), 0)
  value <- vapply(traces, `[[`, numeric(length(n)), "log_evidence")
  se <- vapply(traces, `[[`, numeric(length(n)), "se")
  z <- (value - truth) / se
  label <- paste(problem$name, method$name)
  expect_lt(max(abs(z)), 4.5, label = paste("largest |z| of", label))
  expect_lt(max(abs(rowMeans(z))), 4 / sqrt(length(traces)) + 0.1,
            label = paste("mean z of", label))
  for (k in seq_along(traces)) {
    expect_identical(traces[[k]]$n, n)
    expect_false(is.unsorted(se[, k]))
  }
  invisible(z)
}

# Nested sampling, chunk by chunk ------------------------------------------------------------------

test_that("online_nested() is right after every chunk", {
  expect_right_throughout(line, online_nested(), 1:30)
  expect_right_throughout(truth_problem("mtcars"), online_nested(), 1:15)
  if (is_slow()) expect_right_throughout(truth_problem("swiss"), online_nested(), 1:15)
  expect_right_throughout(line500, online_nested(), 1:6)
})

test_that("online_nested() is right with other settings", {
  for (method in list(online_nested(order = "shuffled"), online_nested(50, chunk = 5),
                      online_nested(chunk = 1000),
                      online_nested(kernel = rwm(), steps = 40), online_nested(200, tol = 0.001)))
    expect_truth(line, method, 1:6, drift = 0.05)
  expect_truth(truth_problem("softmax_tiny"), online_nested(chunk = 2), 1:6, drift = 0.05)
  expect_truth(truth_problem("mix2_dozen"), online_nested(chunk = 4), 1:6, drift = 0.05)
})

test_that("the standard error of online_nested() is the spread over seeds", {
  seeds <- 1:40
  fits <- fits_of(line, online_nested(), seeds)
  value <- vapply(fits, `[[`, 0, "log_evidence")
  se <- vapply(fits, `[[`, 0, "se")
  expect_lt(abs(log(stats::sd(value) / mean(se))), log(1.25) + 3 / sqrt(2 * length(fits)))
})

test_that("earlier rows are replaced by a sample where this is as good, and then cost nothing", {
  long <- c(list(name = "linear3000"), simulated_linear(3000, 2))
  some <- online_nested(past = 400, chunk = 300)
  fits <- fits_of(long, some, 1:6)
  z <- vapply(fits, function(f) (f$log_evidence - long$log_evidence) / f$se, 0)
  expect_lt(max(abs(z)), 4.5)
  expect_lt(abs(mean(z)), 4 / sqrt(length(z)))
  growth <- function(fit) {
    spent <- diff(fit$trace$evaluations)
    spent[length(spent) - 1] / spent[1]
  }
  expect_lt(growth(fits[[1]]), 2)
  expect_gt(growth(run(long, online_nested(past = Inf, chunk = 300))), 3)
  # two modes: sums at one point cannot stand for the rows
  modes <- density(~ log(0.5 * dnorm(a, m) + 0.5 * dnorm(a, -m)), m = ~ 1)
  apart <- with_own_seed(test_seed(2), data.frame(a = rnorm(300, c(-2, 2))))
  all_rows <- quiet_fit(modes, apart, online_nested(past = Inf), seed = 1)
  expect_identical(quiet_fit(modes, apart, online_nested(past = 100), seed = 1)$log_evidence,
                   all_rows$log_evidence)
})

test_that("the standard error includes that of the sample of earlier rows", {
  later <- with_own_seed(test_seed(4), {
    x <- rnorm(600)
    data.frame(x, y = rbinom(600, 1, plogis(c(1, -3)[1 + (seq_len(600) > 300)] * x)))
  })
  model <- regression(y ~ x, "binomial", prior_sd = 2.5)
  fit <- quiet_fit(model, later, online_nested(past = 100), seed = test_seed(1))
  truth <- evidence(model, later, seed = 1)$log_evidence
  expect_lt(abs(fit$log_evidence - truth) / fit$se, 4.5)
  expect_match(fit$warnings, "stands for all of them.*past = Inf", all = FALSE)
})

test_that("chunks have the sizes that were asked for", {
  trace <- run(line500, online_nested(30, chunk = 60, steps = 5))$trace
  expect_identical(trace$n, c(60, 120, 180, 240, 300, 375, 468, 500))
  expect_identical(run(line, online_nested(30, chunk = 50))$trace$n, 50)
  expect_identical(run(line, online_nested(30, chunk = 7))$trace$n, c(7, 14, 21, 28, 35, 43, 50))
})

test_that("draws are the points of the reservoir, at most as many as live points", {
  for (problem in fast_or_slow(list(line), list(line, small))) {
    posterior <- linear_posterior(problem)
    fits <- fits_of(problem, online_nested(), 1:20, 10)
    d <- length(posterior$mean)
    moments <- t(vapply(fits, function(f) colMeans(whitened_moments(t(f$draws), posterior)),
                        numeric(3 * d - 1)))
    expect_z(z_score(moments))
    expect_identical(nrow(fits[[1]]$draws), 100L)
    expect_identical(fits[[1]]$log_weights, rep(-log(100), 100))
  }
  expect_identical(dim(run(line500, online_nested(37, steps = 5))$draws), c(37L, 6L))
})

test_that("moves by stochastic gradients are near the truth where their rate is small", {
  error <- function(...) {
    method <- online_nested(kernel = sghmc(...), steps = 80, batch = 50)
    value <- vapply(fits_of(small, method, 1:6, 3), `[[`, 0, "log_evidence")
    mean(value) - small$log_evidence
  }
  expect_lt(abs(error(rate = 5e-3)), 0.8)
  expect_lt(abs(error(rate = 5e-3, friction = 1)), 0.8)
})

test_that("each gradient rule runs, and control variates are closer than plain mini-batches", {
  sgd <- sghmc(rate = 0.02)
  methods <- list(control = online_nested(kernel = sgd, batch = 20),
                  full = online_nested(kernel = sgd, batch = Inf),
                  plain = online_nested(kernel = sgd, batch = 20, gradient = "plain"))
  expect_identical(vapply(methods, function(m) m$settings$gradient, ""),
                   c(control = "control", full = "full", plain = "batch"))
  off <- vapply(methods, function(m) {
    fits <- fits_of(small, m, 1:6)
    expect_true(all(is.finite(unlist(lapply(fits, function(f) c(f$log_evidence, f$se, f$draws))))))
    mean(abs(vapply(fits, `[[`, 0, "log_evidence") - small$log_evidence))
  }, 0)
  expect_lt(off[["control"]], off[["plain"]])
  # a kernel that asks for densities takes all rows whatever `batch` says
  expect_identical(online_nested(batch = 5)$settings$gradient, "full")
})

test_that("points displaced together by the noise of mini-batches give a warning", {
  long <- with_own_seed(test_seed(1), data.frame(x = rnorm(2000), y = rnorm(2000)))
  model <- linear_regression(y ~ x, sigma = 1, prior_sd = 1)
  told <- function(gradient, seeds) vapply(seeds, function(seed) {
    fit <- quiet_fit(model, long, online_nested(kernel = sghmc(), gradient = gradient, batch = 50),
                     seed = test_seed(seed))
    any(grepl("moved all points away", fit$failed))
  }, NA)
  expect_gte(sum(told("plain", 1:6)), 5)
  expect_false(any(told("control", 1:6)))
})

test_that("models without gradients use their densities in online_nested()", {
  y <- hundred$data[1:40]
  model <- custom_model("mean", function(theta, data) stats::dnorm(data, theta[["mean"]], 1, TRUE),
                        function(theta) stats::dnorm(theta[["mean"]], log = TRUE),
                        function(n) stats::rnorm(n))
  fit <- run(list(model = model, data = y), online_nested(50, steps = 8))
  expect_identical(fit$trace$n, c(20, 40))
  expect_lt(abs(fit$log_evidence - mean_problem(y)$log_evidence), 4 * fit$se)
})

test_that("bad settings of online_nested() are refused before the run", {
  for (live in list(1, 0, 2.5, NA, Inf, "many", NULL))
    refused(online_nested(live), "`live` must be a whole number")
  for (steps in list(0, -1, 1.5, NA, NULL))
    refused(online_nested(steps = steps), "`steps` must be a whole number")
  for (tol in list(0, 1, NA, "small"))
    refused(online_nested(tol = tol), "`tol` must be a number above 0 and below 1")
  for (chunk in list(0, 1.5, NA, Inf))
    refused(online_nested(chunk = chunk), "`chunk` must be a whole number")
  for (kernel in list(slice(), sghmc())) for (batch in list(0, 1.5, NA, "some", NULL))
    refused(online_nested(kernel = kernel, batch = batch), "`batch` must be a whole number")
  refused(online_nested(order = "sorted"), "`order` must be \"shuffled\" or \"given\"")
  refused(online_nested(gradient = "exact"), "`gradient` must be \"control\" or \"plain\"")
  refused(online_nested(kernel = "slice"), "`kernel` must be a kernel")
  refused(online_nested(kernel = logevidence::kernel_prior_draws()),
          "correct only when all rows are used at once.")
  for (kernel in list(hmc(), mala(), baoab(), sgld()))
    refused(online_nested(kernel = kernel),
            paste0(
              "`kernel` must keep points above a likelihood threshold: slice(), rwm(), sghmc() or ",
                                                   "prior_draws(), not ", kernel$name, "()."))
})

# Nested sampling first ----------------------------------------------------------------------------

test_that("hybrid() is right with many particles", {
  expect_truth(hundred, hybrid(first = 20, particles = 200), drift = 0.05)
  expect_truth(hundred, hybrid(first = 20, particles = 200, batch = Inf), drift = 0.05)
  expect_truth(hundred, hybrid(first = 20, particles = 200, kernel = hmc(), steps = 4, batch = Inf),
               drift = 0.05)
  expect_truth(hundred, hybrid(first = 20, particles = 200, start = rwm()), drift = 0.05)
})

test_that("the first row of the trace of hybrid() is that of nested sampling", {
  for (problem in list(hundred, small)) {
    n <- NROW(problem$data)
    method <- hybrid(first = 30, live = 50, particles = 12)
    fit <- run(problem, method)
    expect_identical(fit$trace$n[1:2], c(30, 50))
    start <- method
    start$estimator <- "nested"
    start$kernels <- method$kernels[1]
    known <- tables()$engines$nested$settings$name
    start$settings <- start$settings[names(start$settings) %in% known]
    data <- if (is.data.frame(problem$data)) problem$data[1:30, ] else problem$data[1:30]
    alone <- finish_run(start_run(run_problem(problem$model, data, start)))
    expect_identical(fit$trace$log_evidence[1], drop(alone$log_evidence[1]))
    expect_identical(fit$trace$se[1], drop(alone$se[1]))
    expect_identical(nrow(fit$draws), 12L)
  }
  early <- vapply(fits_of(small, hybrid(first = 30, particles = 2, steps = 1), 1:30), function(f) {
    (f$trace$log_evidence[1] - first_rows(small, 30)) / f$trace$se[1]
  }, 0)
  expect_lt(max(abs(early)), 4)
  expect_lt(abs(mean(early)), 4.5 / sqrt(30))
})

test_that("nested sampling of hybrid() may take all rows", {
  for (first in c(50, 1000)) {
    fits <- fits_of(line, hybrid(first = first), 1:10)
    z <- vapply(fits, function(f) (f$log_evidence - line$log_evidence) / f$se, 0)
    expect_lt(max(abs(z)), 4)
    expect_identical(dim(fits[[1]]$draws), c(10L, 2L))
    expect_identical(fits[[1]]$trace$n, 50)
  }
})

test_that("hybrid() has a smaller error than sequential()", {
  off <- function(method) {
    mean(abs(vapply(fits_of(line500, method, 1:8), `[[`, 0, "log_evidence") - line500$log_evidence))
  }
  expect_lt(3 * off(hybrid()), off(sequential()))
})

test_that("bad settings of hybrid() are refused before the run", {
  for (first in list(0, 1.5, NA, Inf, "few", NULL))
    refused(hybrid(first), "`first` must be a whole number")
  for (live in list(1, 2.5, NA)) refused(hybrid(live = live), "`live` must be a whole number")
  for (tol in list(0, 1, NA))
    refused(hybrid(tol = tol), "`tol` must be a number above 0 and below 1")
  for (particles in list(1, NA, "many"))
    refused(hybrid(particles = particles), "`particles` must be a whole number")
  for (steps in list(0, 1.5)) refused(hybrid(steps = steps), "`steps` must be a whole number")
  for (batch in list(0, 1.5, NA)) refused(hybrid(batch = batch), "`batch` must be a whole number")
  refused(hybrid(start = hmc()), "`start` must keep points above a likelihood")
  refused(hybrid(start = logevidence::kernel_prior_draws()),
          "`start` must be slice() or rwm(), not prior_draws().")
  refused(hybrid(start = slice), "`start` must be a kernel")
  refused(hybrid(kernel = hmc()), "`kernel` hmc() accepts or rejects on the exact density")
  refused(hybrid(kernel = "sghmc"), "`kernel` must be a kernel")
})

test_that("fits by online_nested() and hybrid() print their method", {
  expect_output(print(run(line)), "100 particles, error from simulated volumes")
  expect_output(print(run(line, hybrid(first = 20))),
                "10 particles, error from volumes and predictions")
  for (method in list(online_nested(), hybrid(first = 20), online_nested(kernel = sghmc(1e-3)))) {
    expect_output(print(summary(run(line, method))), "Posterior, [0-9,]+ (weighted )?draws")
    expect_output(print(run(line, method, replicates = 2)), "2 replicates")
  }
})

test_that("hybrid() warns that averaged predictions are too low where this matters", {
  set.seed(test_seed(12))
  d <- data.frame(x = rnorm(300))
  d$y <- 1 + d$x + rnorm(300)
  line <- linear_regression(y ~ x)
  low <- "Averaging each chunk's predictive density makes the estimate too low"
  expect_null(quiet_fit(line, d[1:80, ], hybrid(live = 30), seed = test_seed())$warnings)
  fit <- quiet_fit(line, d, hybrid(40, 20), seed = test_seed())
  expect_match(fit$warnings, low, all = FALSE)
  expect_match(said(fit), low, fixed = TRUE)
})

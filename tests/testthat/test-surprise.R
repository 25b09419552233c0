outlier <- function(size, n = 300) {
  set.seed(test_seed())
  x <- rnorm(n)
  y <- 1 + 2 * x + rnorm(n)
  y[n / 2] <- size
  data.frame(x, y)
}
model <- linear_regression(y ~ x, sigma = 1, prior_sd = 1)

test_that("smc(\"data\") keeps up with a row that moves the posterior", {
  data <- outlier(1000)
  truth <- evidence(model, data, exact())$log_evidence
  fits <- lapply(test_seed(seq_len(fast_or_slow(2, 5))), function(seed)
                   suppressWarnings(evidence(model, data, smc("data"), seed = seed)))
  errors <- vapply(fits, function(fit) fit$log_evidence - truth, 0)
  expect_lt(abs(mean(errors)), 3)
  expect_lt(max(abs(errors)), 5)
  for (fit in fits) expect_match(fit$failed, "The chunk that ends at row 150 needed", all = FALSE)
})

test_that("smc(\"data\") does not warn of rows like those before", {
  set.seed(test_seed(2))
  data <- data.frame(x = rnorm(60))
  data$y <- 1 + data$x + rnorm(60)
  for (seed in test_seed(1:5)) expect_null(evidence(model, data, smc("data"), seed = seed)$failed)
})

test_that("smc(\"data\") warns of particles that do not move", {
  set.seed(test_seed(2))
  data <- data.frame(x = rnorm(60))
  data$y <- 1 + data$x + rnorm(60)
  still <- smc("data", particles = 100, kernel = hmc(step_size = 1e-4))
  fit <- suppressWarnings(evidence(model, data, still, seed = test_seed()))
  expect_match(fit$failed, "hardly moved", all = FALSE)
})

test_that("nested sampling stops with an error at an outlier of 10^6 standard deviations", {
  for (method in list(nested(live = 30), online_nested(live = 30)))
    expect_error(evidence(model, outlier(1e6), method, seed = test_seed()), "volume has shrunk by")
})

test_that("online_nested() warns of a row that changes the posterior much", {
  fit <- suppressWarnings(evidence(model, outlier(200), online_nested(live = 50),
                                   seed = test_seed()))
  expect_match(fit$failed, "contradicts the rows before it", all = FALSE)
  expect_null(evidence(model, outlier(2), online_nested(live = 100), seed = test_seed())$failed)
})

test_that("nested sampling of a huge constant likelihood ends, and is marked as failed", {
  for (value in c(1e20, -1e20)) {
    flat <- custom_model("a", function(theta) value, function(theta) dnorm(theta, log = TRUE),
                         function(n) rnorm(n))
    fit <- suppressWarnings(evidence(flat, method = nested(live = 50), seed = test_seed()))
    expect_equal(fit$log_evidence, value)
    expect_match(fit$failed, "rounding error", all = FALSE)
  }
})

test_that("hybrid() and sequential() are marked as failed for rows beyond 10^70", {
  data <- outlier(1, 60)
  data$y <- data$y * 1e75
  for (method in list(hybrid(), sequential()))
    expect_match(suppressWarnings(evidence(model, data, method, seed = test_seed()))$failed,
                 "rounding error|on one or two particles|left the region", all = FALSE)
})

test_that("nested() warns of copies that hardly move, and not of thin rings", {
  ring <- custom_model(
    c("a", "b"), vectorised = TRUE,
    log_likelihood = function(theta) dnorm(sqrt(rowSums(theta^2)), 3, 0.03, log = TRUE),
    log_prior = function(theta) rowSums(dunif(theta, -6, 6, log = TRUE)),
    draw_prior = function(n) matrix(runif(2 * n, -6, 6), n)
  )
  truth <- log(2 * pi * 3 / 144)
  for (seed in test_seed(seq_len(fast_or_slow(1, 2)))) {
    fit <- evidence(ring, method = nested(), seed = seed)
    expect_null(fit$failed)
    expect_lt(fit$nested$echo, 0.2)
    expect_lt(abs(fit$log_evidence - truth), 5 * fit$se)
  }
  lame <- suppressWarnings(evidence(model, outlier(2), nested(kernel = rwm(), steps = 1),
                                    seed = test_seed()))
  expect_match(lame$failed, "hardly moves", all = FALSE)
  expect_gt(lame$nested$echo, 0.5)
})

test_that("an error of a run names exact() where there is a closed form", {
  set.seed(test_seed())
  data <- data.frame(x = rnorm(100))
  data$y <- 1e4 + data$x + rnorm(100)
  expect_error(evidence(model, data, smc(particles = 40), seed = test_seed()),
               "exact\\(\\) needs no annealing")
})

# Likelihoods in which a row depends on earlier rows: they are no sums over rows, so no run may cut
# their rows. Truths by quadrature.

# A random walk that is observed with noise: the Kalman filter, at many points at once. The number
# of rows (n > 512) is more than any block of rows that C passes on.
walk_density <- function(sums = TRUE) function(theta, data) {
  noise <- exp(2 * theta[, 1])
  step <- exp(2 * theta[, 2])
  mean <- numeric(nrow(theta))
  variance <- 4
  rows <- matrix(0, nrow(theta), length(data))
  for (t in seq_along(data)) {
    if (t > 1) variance <- variance + step
    total <- variance + noise
    rows[, t] <- stats::dnorm(data[t], mean, sqrt(total), log = TRUE)
    mean <- mean + variance / total * (data[t] - mean)
    variance <- variance * noise / total
  }
  if (sums) rowSums(rows) else rows
}
walk_prior <- function(theta) rowSums(stats::dnorm(theta, 0, 1, log = TRUE))
walk_model <- function(...)
  custom_model(c("noise", "step"), walk_density(...), walk_prior,
               function(n) matrix(stats::rnorm(2 * n), n), vectorised = TRUE)

walk_data <- function(n) {
  set.seed(1)
  cumsum(stats::rnorm(n, 0, 0.5)) + stats::rnorm(n, 0, 1.5)
}

# On a grid around the mode, whose posterior is narrow.
walk_truth <- function(data, width) {
  density <- function(theta) walk_density()(theta, data) + walk_prior(theta)
  top <- stats::optim(c(0, 0), function(x) -density(t(x)))$par
  grid <- seq(-width, width, length.out = 101)
  points <- as.matrix(expand.grid(top[1] + grid, top[2] + grid))
  values <- density(points)
  max(values) + log(sum(exp(values - max(values)))) + 2 * log(grid[2] - grid[1])
}

test_that("methods that do not cut rows give all rows to a likelihood with memory", {
  for (case in list(list(n = 30, width = 3.5, methods = list(sgais(), smc(), nested(100))),
                    list(n = 600, width = 0.6, methods = list(laplace(importance = 500))))) {
    data <- walk_data(case$n)
    truth <- walk_truth(data, case$width)
    for (method in case$methods) {
      # the values of single rows, each given those before, are no sum either
      sums <- method$name != "smc"
      fit <- evidence(walk_model(sums), data, method, seed = test_seed(2))
      expect_lt(abs(logml(fit) - truth), 4.5 * fit$se + 1e-3,
                label = paste0("error of ", method$name, "() on ", case$n, " rows"))
      expect_null(fit$failed)
      expect_equal(fit$n, case$n)
    }
  }
  expect_output(print(fit), "is not a sum over rows")
  expect_equal(logml(evidence(walk_model(), data, bic(), seed = 1)),
               evidence(walk_model(), data, bic(), seed = 1)$peaks$maximum - log(600),
               tolerance = 1e-10)
})

test_that("methods that cut rows are refused for a likelihood with memory, before the run", {
  data <- walk_data(30)
  for (method in list(smc("data"), sequential(), online_nested(), hybrid()))
    expect_error(evidence(walk_model(), data, method), "is not a sum over rows.*use sgais")
  expect_error(evidence(list(walk_model(), walk_model()), data, stop_at = c(0.1, 10)),
               class = "logevidence_error")
})

test_that("a likelihood that is a sum over rows is recognised as one", {
  calls <- 0
  each <- function(theta, data) {
    calls <<- calls + 1
    stats::dnorm(data, theta[1], exp(theta[2]), log = TRUE)
  }
  normal <- function(likelihood, ...)
    custom_model(c("mean", "log_sd"), likelihood,
                 function(theta) sum(stats::dnorm(theta, 0, c(10, 3), log = TRUE)),
                 function(n) matrix(stats::rnorm(2 * n, 0, rep(c(10, 3), each = n)), n), ...)
  data <- walk_data(50)
  for (model in list(normal(each), normal(function(theta, data) sum(each(theta, data)))))
    expect_equal(encode(model, data)$n, 50)
  # the mean of the rows, a likelihood of blocks of two rows, and one that fails on few rows
  wrong <- list(function(theta, data) mean(each(theta, data)),
                function(theta, data) sum(each(theta, data)[c(TRUE, FALSE)]),
                function(theta, data) if (length(data) < 40) stop("too few") else
                  sum(each(theta, data)))
  for (likelihood in wrong) expect_equal(encode(normal(likelihood), data)$n, 1)
  # a gradient that does not add, of a likelihood that does
  gradient <- function(scale) function(theta, data) {
    z <- (data - theta[1]) / exp(theta[2])
    c(sum(z) / exp(theta[2]), sum(z^2 - 1)) / scale(data)
  }
  slope <- function(theta) -theta / c(100, 9)
  with_gradient <- function(scale)
    normal(function(theta, data) sum(each(theta, data)), gradient = gradient(scale),
           prior_gradient = slope)
  expect_equal(encode(with_gradient(function(data) 1), data)$n, 50)
  expect_equal(encode(with_gradient(length), data)$n, 1)
  # a likelihood that is itself random is not known to be no sum
  noisy <- function(theta, data) sum(each(theta, data)) + stats::rnorm(1)
  expect_equal(encode(normal(noisy), data)$n, 50)
  # zero at every draw from the prior
  expect_equal(encode(normal(function(theta, data) -Inf), data)$n, 50)
  # the comparison takes a few calls, and leaves R's generator as it was
  calls <- 0
  set.seed(3)
  before <- .Random.seed
  encode(normal(each), data)
  expect_identical(.Random.seed, before)
  expect_lt(calls, 60)
})

test_that("log_lik() and predict() refuse rows that depend on earlier ones", {
  fit <- evidence(walk_model(), walk_data(20), laplace(), seed = 1)
  expect_error(log_lik(fit), "depends on the other rows")
  expect_error(predict(fit, walk_data(5)), "`newdata` must be left out")
})

# The same filter in C, with the prior of the example of the package.
memory_in_c <- compile_model(
  system.file("examples", "normal_mean.c", package = "logevidence"), "noisy_walk",
  more = c(
    'static le_status walk(const void *self, size_t m, const double *theta, const le_rows *rows,',
    '                      double *value, double *scratch)',
    '{ (void)self; (void)scratch;',
    '  for (size_t i = 0; i < m; i++) {',
    '    double at = theta[i];',
    '    for (size_t r = 0; r < rows->n; r++) {',
    '      value[i] += log_normal(rows->values[r] - at);',
    '      at = theta[i] + 0.5 * (rows->values[r] - theta[i]); } }',
    '  return LE_OK; }',
    'const le_model_ops *walk_table(void) { static le_model_ops t; t = ops; t.log_lik = walk;',
    '  t.log_lik_grad = NULL; t.log_lik_hess = NULL; t.exact = NULL; return &t; }'))

test_that("a likelihood with memory in C gets all rows at once", {
  needs_compiler(memory_in_c)
  data <- walk_data(800)
  density <- function(theta) vapply(theta, function(at) {
    expected <- c(at, at + 0.5 * (data[-800] - at))
    sum(stats::dnorm(data, expected, 1, log = TRUE)) + stats::dnorm(at, log = TRUE)
  }, 0)
  top <- stats::optimize(density, c(-10, 10), maximum = TRUE)$maximum
  grid <- seq(top - 1, top + 1, length.out = 2001)
  values <- density(grid)
  truth <- max(values) + log(sum(exp(values - max(values)))) + log(grid[2] - grid[1])
  model <- compiled_model("walk_table", "mean", PACKAGE = "noisy_walk")
  for (method in list(smc(), nested(300), ais())) {
    fit <- evidence(model, data, method, seed = test_seed(4), threads = 2)
    expect_lt(abs(logml(fit) - truth), 4.5 * fit$se, label = paste("error of", method$name))
    expect_equal(fit$n, 800)
  }
  expect_error(evidence(model, data, smc("data")), "is not a sum over rows")
  expect_error(predict(fit, data[1:3]), "`newdata` must be left out")
  drawn <- simulate(model, data = data, seed = 1, nsim = 1)
  expect_length(drawn, 800)
  expect_equal(model_functions(model, data)$log_lik_each(top),
               model_functions(model, data)$log_lik(top), ignore_attr = TRUE)
})

# Moves follow the renewal of the particles, and kernels that cannot move them give a warning.

quietly <- function(...) evidence(..., progress = FALSE)

# A normal likelihood with correlation `r` in d dimensions under a wide normal prior.
wide_normal <- function(d, r) {
  covariance <- (1 - r) * diag(d) + r
  factor <- chol(solve(covariance))
  total <- covariance + 100 * diag(d)
  list(
    model = custom_model(
      paste0("x", 1:d), function(theta) -0.5 * rowSums(((theta - 1) %*% t(factor))^2),
      function(theta) -0.5 * rowSums(theta^2) / 100 - d * log(10) - d / 2 * log(2 * pi),
      function(n) matrix(rnorm(n * d, 0, 10), n), vectorised = TRUE
    ),
    truth = 0.5 * as.numeric(determinant(covariance)$modulus) -
      0.5 * as.numeric(determinant(total)$modulus) -
      0.5 * sum(solve(total, rep(1, d)))
  )
}

test_that("random walks in twenty dimensions make enough moves to be right", {
  problem <- wide_normal(20, 0.9)
  walk <- smc(particles = fast_or_slow(60, 500), kernel = rwm())
  fits <- list(quietly(problem$model, method = walk, seed = test_seed()))
  error <- vapply(fits, function(fit) (fit$log_evidence - problem$truth) / fit$se, 0)
  expect_lt(max(abs(error)), 4)
  moves <- vapply(fits, function(fit) mean(fit$trace$moves), 0)
  expect_gt(min(moves), 20)
  for (fit in fits) {
    expect_equal(fit$failed, NULL)
    expect_gt(stats::median(fit$trace$renewal, na.rm = TRUE), 0.55)
  }
  few <- quietly(problem$model, method = smc(particles = 60, kernel = rwm(), steps = 5),
                 seed = test_seed())
  expect_true(all(few$trace$moves == 5))
  expect_match(few$failed, "move too little", all = FALSE)
})

test_that("a path that is recorded has the moves that were made", {
  setup <- run_problem(linear_regression(dist ~ speed, sigma = 15, prior_sd = 10), cars,
                       smc(particles = 60, kernel = slice()), test_seed())
  setup$problem$settings$record <- 1
  out <- finish_run(start_run(setup))
  expect_identical(out$path["moves", ], as.numeric(out$trace$moves))
})

test_that("kernels that do not move, or leave the target without an accept step, give a warning", {
  model <- linear_regression(dist ~ speed, sigma = 15, prior_sd = 10)
  told <- function(method, sentence)
    expect_match(quietly(model, cars, method, seed = test_seed())$failed, sentence, all = FALSE)
  told(smc(kernel = hmc(step_size = 1e6)), "The particles hardly move")
  told(smc(kernel = baoab(mass = "identity")), "steps of baoab\\(\\) are too long")
  told(smc("data", kernel = baoab(mass = "identity")), "steps of baoab\\(\\) are too long")
  for (kernel in list(hmc(), rwm(), slice(), baoab()))
    expect_equal(quietly(model, cars, smc(kernel = kernel), seed = test_seed())$failed, NULL)
})

# exp(3 x - exp(3 x)) in each of four dimensions, under a standard normal prior
skewed <- custom_model(
  paste0("x", 1:4), function(x) rowSums(3 * x - exp(3 * x)),
  function(x) rowSums(dnorm(x, log = TRUE)),
  function(n) matrix(rnorm(4 * n), n), gradient = function(x) unname(3 - 3 * exp(3 * x)),
  prior_gradient = function(x) unname(-x), vectorised = TRUE
)
skewed_truth <- 4 * log(stats::integrate(function(x) exp(3 * x - exp(3 * x)) * dnorm(x), -9, 4,
                                         rel.tol = 1e-10)$value)

test_that("the cost of steps without acceptance is measured in nats", {
  for (kernel in list(sgld(), sghmc())) {
    fit <- quietly(skewed, method = smc(kernel = kernel), seed = test_seed())
    error <- fit$log_evidence - skewed_truth
    expect_lt(error, -0.6 + 4 * fit$se)
    expect_lt(abs(fit$sampler$heating$bias - error), 0.3 * abs(error) + 4 * fit$se)
    expect_match(fit$failed, paste0("steps of ", kernel$name, "\\(\\) are too long.*nats too low"),
                 all = FALSE)
  }
})

test_that("steps that cost a tenth of a nat give no warning", {
  y <- seq(-1.5, 2.5, length.out = 50)
  truth <- evidence(gaussian_mean(), y, exact())$log_evidence
  for (kernel in list(baoab(), sgld(), sghmc())) for (seed in test_seed(1:3)) {
    fit <- quietly(gaussian_mean(), y, smc(kernel = kernel), seed = seed)
    expect_lt(abs(fit$log_evidence - truth), 0.5)
    expect_equal(fit$failed, NULL)
    expect_lt(abs(fit$sampler$heating$bias), 0.4)
  }
})

test_that("a walk that stops because the steps of its kernel are too long is an error", {
  narrow <- custom_model(
    paste0("x", 1:4), function(x) -50 * rowSums(x^2), function(x) rowSums(dnorm(x, log = TRUE)),
    function(n) matrix(rnorm(4 * n), n), gradient = function(x) unname(-100 * x),
    prior_gradient = function(x) unname(-x), vectorised = TRUE
  )
  expect_error(quietly(narrow, method = smc(kernel = sgld(), particles = 100), seed = test_seed()),
               "stopped at lambda = .* because the steps of sgld\\(\\) are too long")
})

test_that("step sizes recover from a distribution that was hard", {
  # with four rows the posterior is a wedge whose edge is 1 / 30,000 wide, later it is nearly normal
  set.seed(test_seed())
  data <- data.frame(income = rnorm(100, 30000, 8000), z = rnorm(100))
  data$y <- factor(rbinom(100, 1, plogis((data$income - 30000) / 8000)))
  fit <- quietly(softmax_regression(y ~ income + z,
                                    prior_sd = 1), data, smc("data", particles = 100),
                 seed = test_seed())
  truth <- evidence(softmax_regression(y ~ income + z,
                                       prior_sd = 1), data, laplace(importance = 5000),
                    seed = test_seed())
  expect_lt(abs(fit$log_evidence - truth$log_evidence), 4 * sqrt(fit$se^2 + truth$se^2))
  expect_gt(utils::tail(fit$trace$step_size, 1), 0.1)
})

test_that("a gradient that is not that of the density gives a warning", {
  with_gradient <- function(factor) {
    custom_model("a", function(theta, data) dnorm(data, theta, 1, log = TRUE),
                 function(theta) dnorm(theta, 0, 2, log = TRUE),
                 function(n) rnorm(n, 0, 2), gradient = function(theta, data)
                   factor * sum(data - theta),
                 prior_gradient = function(theta) -theta / 4)
  }
  off <- quietly(with_gradient(10), c(0.4, 1.1, 0.2), smc(particles = 50, kernel = baoab()),
                 seed = test_seed())
  expect_match(off$failed, "`gradient` is not the gradient of `log_likelihood`", all = FALSE)
  right <- quietly(with_gradient(1), c(0.4, 1.1, 0.2), smc(particles = 50, kernel = baoab()),
                   seed = test_seed())
  expect_equal(right$failed, NULL)
})

test_that("chains that never leave their modes give a warning", {
  density <- function(theta) log(0.5 * dnorm(theta, -6, 0.3) + 0.5 * dnorm(theta, 6, 0.3))
  slope <- function(theta) -(theta - 6 * sign(theta)) / 0.09
  modes <- custom_model("a", density, function(theta) dnorm(theta, 0, 6, log = TRUE),
                        function(n) rnorm(n, 0, 6),
                        gradient = slope, prior_gradient = function(theta) -theta / 36,
                        vectorised = TRUE)
  fit <- quietly(modes, method = bridge(20, 20, kernel = hmc(3, 0.02), steps = 2),
                 seed = test_seed())
  expect_match(fit$failed, "chains do not agree", all = FALSE)
  set.seed(test_seed())
  alike <- matrix(rnorm(2 * 50 * 100), 2)
  expect_equal(chains_warning(alike, 50), NULL)
  expect_match(chains_warning(alike + rep(c(-2, 2), each = 2), 50), "do not agree")
  expect_match(chains_warning(matrix(rnorm(100), 2)[, rep(1:50, 30)], 50), "never moved")
})

test_that("a thermodynamic integral far from its stepping stones gives a warning", {
  model <- linear_regression(dist ~ speed, sigma = 15, prior_sd = 10)
  fit <- quietly(model, cars, power_posterior("thermodynamic", ais(50, linear(20))),
                 seed = test_seed())
  gap <- abs(fit$power$corrected - fit$power$stepping)
  expect_gt(gap, 10)
  expect_gte(fit$se, gap)
  expect_match(fit$failed, "The thermodynamic integral is", all = FALSE)
  fine <- quietly(model, cars, power_posterior("thermodynamic"), seed = test_seed())
  expect_equal(fine$failed, NULL)
})

test_that("a thermodynamic integral without a standard error or a value is no error", {
  power <- function(corrected) list(corrected = corrected, stepping = -10)
  expect_null(thermodynamic_warning(power(-10.1), NaN))
  expect_match(thermodynamic_warning(power(-12), NaN), "2 nats lower")
  for (value in c(NaN, NA, -Inf)) expect_null(thermodynamic_warning(power(value), 0.1))
})

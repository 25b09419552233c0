# Linear regression with unknown noise: its exact evidence against integrals in plain R, its exact
# draws against the posterior, and the default method against both.

# log p(y | sigma) at each of exp(t), through the singular values of the covariates.
given_sigma <- function(x, y, mean, sd) {
  parts <- svd(x %*% diag(sd, ncol(x)), nu = min(dim(x)))
  rest <- drop(y - x %*% mean)
  along <- drop(crossprod(parts$u, rest))
  across <- sum((rest - parts$u %*% along)^2)
  function(t) vapply(exp(2 * t), function(v)
    -0.5 * (length(y) * log(2 * pi) + sum(log(v + parts$d^2)) +
              (length(y) - length(parts$d)) * log(v) + sum(along^2 / (v + parts$d^2)) +
              across / v), 0)
}

# Priors of sigma, and the logarithms of their densities of log(sigma).
noises <- list(
  list(prior = half_student(3, 2.5),
       log = function(t) log(2 * stats::dt(exp(t) / 2.5, 3) / 2.5) + t),
  list(prior = half_student(1, 100),
       log = function(t) log(2 * stats::dt(exp(t) / 100, 1) / 100) + t),
  list(prior = half_normal(2), log = function(t) log(2) + stats::dnorm(exp(t), 0, 2, TRUE) + t),
  list(prior = exponential(0.3), log = function(t) stats::dexp(exp(t), 0.3, TRUE) + t),
  list(prior = inverse_gamma(2, 1.5),
       log = function(t) 2 * log(1.5) - lgamma(2) - 2 * t - 1.5 * exp(-t)),
  list(prior = inverse_gamma(50, 0.01),
       log = function(t) 50 * log(0.01) - lgamma(50) - 50 * t - 0.01 * exp(-t))
)

# The trapezoidal rule over all of the line where f is not negligible.
line_total <- function(f) {
  wide <- seq(-45, 45, 0.01)
  value <- f(wide)
  near <- range(wide[which(value > max(value, na.rm = TRUE) - 50)])
  at <- seq(near[1] - 0.01, near[2] + 0.01, length.out = 10001)
  log_sum_exp(f(at)) + log(diff(at[1:2]))
}

noisy_problem <- function(seed) with_own_seed(seed, {
  n <- sample(c(1, 2, 5, 20, 100, 2000), 1)
  p <- sample(0:6, 1)
  x <- matrix(rnorm(n * p), n) * rep(10^runif(p, -3, 3), each = n)
  if (p > 2 && seed %% 3 == 0) x[, 2] <- 2 * x[, 1]
  colnames(x) <- sprintf("x%d", seq_len(p))
  noise <- noises[[seed %% length(noises) + 1]]
  sd <- 10^runif(p + 1, -2, 2)
  mean <- rnorm(p + 1) * sample(c(0, 3), 1)
  off <- rnorm(n)
  y <- drop(cbind(1, x) %*% rnorm(p + 1)) * runif(1) + off + rnorm(n) * 10^runif(1, -4, 3)
  formula <- stats::reformulate(c(if (p) colnames(x), "offset(off)"), "y")
  density <- given_sigma(cbind(1, x), y - off, mean, sd)
  list(model = linear_regression(formula, noise$prior, sd, mean), data = data.frame(y, off, x),
       truth = line_total(function(t) density(t) + noise$log(t)))
})

noise_slow <- identical(Sys.getenv("LOGEVIDENCE_SLOW"), "true")

test_that("an exact fit of the coefficients is recognised for numbers of any size", {
  rows <- data.frame(x = c(0.3, -1.2, 0.8, 1.9, -0.4))
  exactly <- function(y) !is.null(exact_rank(encode(regression(y ~ x), cbind(rows, y = y))))
  for (size in c(1e-300, 1e-8, 1, 1e150, 1e307)) {
    expect_true(exactly(size * rows$x), label = size)
    expect_false(exactly(size * rows$x^2), label = size)
  }
  expect_true(exactly(rep(0, 5)))
  # the residuals overflow
  expect_false(exactly(c(1e300, -1e308, 0, 0, 1e308)))
  # an offset in units of the response would overflow
  beside <- function(offset, y) {
    data <- cbind(rows, y = y, off = offset)
    !is.null(exact_rank(encode(regression(y ~ x + offset(off)), data)))
  }
  expect_false(beside(1e100 * rows$x^2, 1e-300 * rows$x))
  expect_true(beside(rows$x^2, rows$x^2 + rows$x))
})

test_that("the exact evidence is the integral over sigma", {
  for (seed in test_seed(seq_len(if (noise_slow) 300 else 12))) {
    problem <- noisy_problem(seed)
    value <- model_functions(problem$model, problem$data)$exact()
    expect_lt(abs(value - problem$truth) / max(1, abs(problem$truth)), 1e-9)
  }
})

test_that("two modes of sigma are both integrated", {
  # ten prior standard deviations of one coefficient against noise a hundred times as large
  x <- rep(c(-1, 1), 3)
  data <- data.frame(x, y = 10 * x + 0.01 * c(1, 1, -2, -2, 1, 1))
  density <- given_sigma(cbind(x), data$y, 0, 1)
  prior <- function(t) log(2) + stats::dnorm(exp(t), 0, 20, TRUE) + t
  joint <- function(t) density(t) + prior(t)
  at <- seq(-8, 5, 0.01)
  expect_equal(sum(diff(sign(diff(joint(at)))) == -2), 2)
  model <- linear_regression(y ~ 0 + x, half_normal(20), prior_sd = 1)
  expect_lt(abs(model_functions(model, data)$exact() - line_total(joint)), 1e-9)
  # draws go to both in proportion to their mass
  fit <- evidence(model, data, exact(), seed = test_seed())
  valley <- at[which.min(ifelse(at > -4 & at < 2, joint(at), NA))]
  low <- exp(line_total(function(t) ifelse(t < valley, joint(t), -Inf)) - fit$log_evidence)
  share <- mean(fit$parameters[, "log(sigma)"] < valley)
  expect_lt(abs(share - low), 4.5 * sqrt(low * (1 - low) / 1000) + 1e-3)
})

test_that("regression() of the gaussian family has the same exact evidence", {
  data <- regression_data(50)
  own <- regression(y ~ x + z, prior = list(normal(1, 2), "(Intercept)" = normal(0, 5)),
                    auxiliary = exponential(2))
  line <- linear_regression(y ~ x + z, exponential(2), c(5, 2, 2), c(0, 1, 1))
  expect_equal(evidence(own, data, exact())$log_evidence,
               evidence(line, data, exact())$log_evidence, tolerance = 1e-13)
  f <- model_functions(line, data)
  theta <- c(0.3, 0.2, -0.4, -0.1)
  expect_equal(f$log_prior(theta), model_functions(own, data)$log_prior(theta), tolerance = 1e-13)
  expect_equal(f$log_lik(theta),
               sum(dnorm(data$y, 0.3 + 0.2 * data$x - 0.4 * data$z, exp(-0.1), TRUE)))
})

test_that("exact() refuses regressions without a closed form, or with infinite evidence", {
  data <- regression_data(30)
  for (model in list(regression(y ~ x, prior = student_t(3, 0, 1)), regression(t ~ x, student(),
      prior_sd = 2.5),
                     regression(count ~ x, poisson(), prior_sd = 2.5)))
    expect_error(evidence(model, data, exact()), "closed form", class = "logevidence_error")
  expect_error(evidence(regression(count ~ x, poisson(),
                                   prior_sd = 2.5), data, bic(), seed = test_seed()), NA)
  fitting <- data.frame(x = 1:4, y = 2 * (1:4) + 1)
  expect_error(evidence(linear_regression(y ~ x,
      prior_sd = 1), fitting, exact()), "fit the response exactly",
               class = "logevidence_error")
  expect_error(evidence(linear_regression(y ~ 1, prior_sd = 1), data.frame(y = c(0, 0)), exact()),
               "inverse_gamma", class = "logevidence_error")
  # by other methods, too
  for (model in list(linear_regression(y ~ x,
      prior_sd = 1), regression(y ~ x,
      prior_sd = 2.5), regression(y ~ x, student(),
      prior_sd = 2.5)))
    for (method in list(sgais(), nested()))
      expect_error(evidence(model, fitting, method, seed = test_seed()), "fit the response exactly",
                   class = "logevidence_error")
  # as many coefficients as rows: the evidence is finite
  expect_true(is.finite(evidence(linear_regression(y ~ x,
      prior_sd = 1), fitting[1:2, ], exact())$log_evidence))
  proper <- linear_regression(y ~ x, inverse_gamma(2, 1), prior_sd = 1)
  expect_true(is.finite(evidence(proper, fitting, exact())$log_evidence))
})

test_that("draws of exact() are independent draws from the posterior", {
  model <- linear_regression(dist ~ speed, half_student(3, 20), c(20, 5))
  density <- given_sigma(model.matrix(dist ~ speed, cars), cars$dist, c(0, 0), c(20, 5))
  t <- seq(1.5, 4, length.out = 4001)
  weight <- density(t) + log(2 * stats::dt(exp(t) / 20, 3) / 20) + t
  weight <- exp(weight - log_sum_exp(weight))
  fits <- lapply(1:5, function(k) evidence(model, cars, exact(), seed = test_seed(k)))
  sigma <- unlist(lapply(fits, function(fit) fit$draws[, "sigma"]))
  expect_gt(stats::ks.test(log(sigma), stats::approxfun(t, cumsum(weight), yleft = 0,
                                                        yright = 1))$p.value, 1e-4)
  # given sigma the coefficients are normal
  x <- model.matrix(dist ~ speed, cars)
  z <- do.call(rbind, lapply(fits, function(fit) t(apply(fit$draws, 1, function(draw) {
    precision <- crossprod(x) / draw[3]^2 + diag(1 / c(400, 25))
    mean <- solve(precision, crossprod(x, cars$dist) / draw[3]^2)
    drop(chol(precision) %*% (draw[1:2] - mean))
  }))))
  for (column in 1:2) expect_gt(stats::ks.test(z[, column], stats::pnorm)$p.value, 1e-4)
  expect_lt(abs(stats::cor(z[, 1], z[, 2])), 4.5 / sqrt(5000))
  fit <- fits[[1]]
  expect_named(coef(fit), c("(Intercept)", "speed", "sigma"))
  expect_equal(unname(sigma(fit)), mean(fit$draws[, "sigma"]))
  expect_equal(predict(fit, data.frame(speed = c(0, 10))),
               drop(cbind(1, c(0, 10)) %*% coef(fit)[1:2]), ignore_attr = TRUE)
  expect_null(fit$warnings)
  expect_output(print(fit), "Linear regression, unknown noise: dist ~ speed")
})

test_that("sgais(), streams and update() agree with exact() within their errors", {
  scaled_cars <- scaled(mtcars)
  many <- regression_data(2500, 3)
  model <- linear_regression(y ~ x + z, exponential(1), prior_sd = 1)
  truth <- model_functions(model, many)$exact()
  stated <- function(fit, truth) (fit$log_evidence - truth) / fit$se
  seeds <- seq_len(if (noise_slow) 100 else 8)
  line <- linear_regression(mpg ~ wt + hp, prior_sd = 1)
  narrow <- model_functions(line, scaled_cars)$exact()
  z <- list(
    memory = vapply(seeds, function(k)
      stated(quiet_fit(line, scaled_cars, seed = test_seed(k)), narrow), 0),
    stream = vapply(seeds, function(k)
      stated(quiet_fit(model, in_blocks(many, 400), seed = test_seed(k)), truth), 0),
    update = vapply(seeds, function(k) {
      half <- evidence(model, many[1:1500, ], sgais(order = "given"), seed = test_seed(k),
                       progress = FALSE, keep_state = TRUE)
      stated(update(half, many[1501:2500, ], progress = FALSE), truth)
    }, 0)
  )
  for (case in names(z)) {
    expect_lt(max(abs(z[[case]])), 4.5)
    expect_lt(abs(mean(z[[case]])), 4.5 / sqrt(length(seeds)))
    if (noise_slow) expect_gte(mean(abs(z[[case]]) < 2), 0.88)
  }
})

test_that("the stated error of smc() does not depend on draws of the prior that keep no weight", {
  # log-likelihoods of draws with little noise are far below all others
  line <- linear_regression(mpg ~ wt, prior_sd = 1)
  data <- scaled(mtcars)
  truth <- model_functions(line, data)$exact()
  fits <- vapply(seq_len(if (noise_slow) 100 else 10), function(k) {
    fit <- quiet_fit(line, data, smc(), seed = test_seed(k))
    c(fit$log_evidence - truth, fit$se)
  }, c(0, 0))
  expect_lt(max(fits[2, ]), 0.15)
  expect_lt(max(abs(fits[1, ] / fits[2, ])), 4.5)
  expect_gt(mean(abs(fits[1, ] / fits[2, ]) < 2), 0.8)
})

test_that("ais() is right although a few chains are stuck at a tiny noise", {
  cars32 <- as.data.frame(scale(mtcars))
  model <- linear_regression(mpg ~ wt, prior_sd = 1)
  truth <- evidence(model, cars32, exact())$log_evidence
  for (seed in 1:6) {
    fit <- quiet_fit(model, cars32, ais(), seed = test_seed(seed))
    expect_length(fit$failed, 0)
    expect_lt(nrow(fit$trace), 300)
    expect_lt(abs(fit$log_evidence - truth), 4.5 * fit$se)
  }
})

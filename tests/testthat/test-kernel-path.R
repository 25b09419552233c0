# Paths of points by a kernel alone, and the steps and noise of sgld() and sghmc().

line <- linear_regression(dist ~ speed, sigma = 15, prior_sd = 10)

exact_line <- function() {
  f <- model_functions(line, cars)
  precision <- -f$log_prior_hessian(c(0, 0)) - f$hessian(c(0, 0))
  gradient <- f$log_prior_gradient(c(0, 0)) + f$gradient(c(0, 0))
  list(mean = drop(solve(precision, gradient)), covariance = solve(precision), functions = f)
}

test_that("paths by exact kernels are draws from the posterior", {
  exact <- exact_line()
  for (kernel in list(hmc(), mala(), rwm(), slice())) {
    path <- kernel_path(line, cars, kernel, 60, start = matrix(c(-17, 4), 400, 2, byrow = TRUE),
                        tune = 100, scale = exact$covariance, density = FALSE,
                        seed = test_seed(1))
    last <- as.matrix(as.data.frame(path)[path$step == 60, names(exact$mean)])
    z <- (colMeans(last) - exact$mean) / sqrt(diag(exact$covariance) / 400)
    expect_lt(max(abs(z)), 4.5)
    ratio <- diag(var(last)) / diag(exact$covariance)
    expect_lt(max(abs(ratio - 1)), 4.5 * sqrt(2 / 399))
  }
})

test_that("a tempered path draws from its power posterior, with the densities of the model", {
  exact <- exact_line()
  path <- kernel_path(line, cars, slice(), 40, points = 400, lambda = 0, seed = test_seed(2))
  last <- as.data.frame(path)[path$step == 40, ]
  expect_lt(abs(var(last$speed) / 100 - 1), 4.5 * sqrt(2 / 399))
  path <- kernel_path(line, cars, hmc(), 5, points = 3, lambda = 0.5, seed = test_seed(3))
  at <- as.matrix(as.data.frame(path)[names(exact$mean)])
  expect_equal(path$log_density,
               exact$functions$log_prior(at) + 0.5 * exact$functions$log_lik(at))
  expect_equal(path$step, rep(0:5, each = 3))
  expect_equal(path$point, rep(1:3, 6))
})

test_that("mini-batches widen the draws of sgld() as much as their gradient noise predicts", {
  exact <- exact_line()
  spread <- function(batch) {
    path <- kernel_path(line, cars, sgld(0.1), 4000, start = exact$mean, thin = 5,
                        batch = batch, density = FALSE, seed = test_seed(4))
    var(path$speed)
  }
  expect_gt(spread(2), 1.5 * spread(Inf))
})

test_that("steps decrease as asked, and noise is injected as in the article or the thesis", {
  # a flat density: what remains of a move is its noise
  flat <- custom_model("x", function(theta) 0, function(theta) dnorm(theta, 0, 1e6, log = TRUE),
                       function(n) rnorm(n, 0, 1e6), function(theta) 0,
                       function(theta) -theta / 1e12)
  variances <- function(kernel, steps) {
    path <- kernel_path(flat, kernel = kernel, steps = steps, start = matrix(0, 3000, 1),
                        density = FALSE, seed = test_seed(5))
    moves <- diff(matrix(path$x, steps + 1, byrow = TRUE))
    apply(moves, 1, var)
  }
  near <- function(found, right) expect_lt(max(abs(found / right - 1)), 5 * sqrt(2 / 2999))
  eta <- 0.5 * (1 + 0:9 / 3)^-0.7
  near(variances(sgld(0.5, decay = 0.7, delay = 3), 10), 2 * eta)
  near(variances(sgld(0.5, noise = 0.4), 2), rep(2 * (1 - 0.4 * 0.5) * 0.5, 2))
  near(variances(sgld(0.5, noise = 0.4, scaled = FALSE), 2), rep(2 * (1 - 0.4) * 0.5, 2))
  # velocities are in equilibrium where the density is flat: their variance is the step, but for
  # what the splitting adds to it, alpha / (2 - alpha) of the noise
  path <- kernel_path(flat, kernel = sghmc(0.5, 0.01, decay = 0.7, delay = 3), steps = 10,
                      start = matrix(0, 3000, 1), density = FALSE, seed = test_seed(6))
  near(apply(diff(matrix(path$x, 11, byrow = TRUE)), 1, var), eta)
  expect_equal(attr(path, "step_size"), eta[10])
})

test_that("decreasing steps go on through a whole run", {
  method <- function(kernel) sgais(kernel = kernel, chunk = 10, batch = 5, steps = 7, audit = FALSE,
                                   early = list(rows = 1))
  fit <- quiet_fit(line, cars, method(sghmc(0.3, decay = 0.6, delay = 5)), seed = 1)
  plain <- quiet_fit(line, cars, method(sghmc(0.3)), seed = 1)
  expect_true(is.finite(fit$log_evidence))
  expect_false(fit$log_evidence == plain$log_evidence)
})

test_that("paths are printed, plotted and data frames", {
  path <- kernel_path(line, cars, sghmc(0.1), 20, points = 2, thin = 5, batch = 10, seed = 1)
  expect_output(print(path), "2 points moved 20 times by sghmc")
  expect_output(print(path), "mini-batches of 10 of 50 rows")
  expect_s3_class(path, "data.frame")
  expect_identical(class(path[1:2, ]), "data.frame")
  expect_identical(dim(as.data.frame(path)), c(10L, 5L))
  expect_length(drawn_series(plot(path)), 7) # a frame, and three of each point
  expect_equal(drawn_series(plot(path, "speed"))[[2]]$x, c(0, 5, 10, 15, 20))
  one <- kernel_path(gaussian_mean(), c(1, 2), hmc(), 5, seed = 1)
  expect_equal(drawn_series(plot(one))[[1]]$y, one$mean)
  same <- kernel_path(line, cars, sghmc(0.1), 20, points = 2, thin = 5, batch = 10, seed = 1)
  expect_identical(as.data.frame(path), as.data.frame(same))
})

test_that("errors name the wrong argument of kernel_path(), sgld() and sghmc()", {
  refused <- function(code, text) expect_error(code, text, class = "logevidence_error")
  refused(kernel_path(line, cars, hmc(), batch = 5), "`batch`")
  refused(kernel_path(line, cars, sgld(), batch = 50), "`batch`")
  refused(kernel_path(line, cars, sgld(), batch = 5, lambda = 0.5), "`lambda`")
  refused(kernel_path(line, cars, scale = c(1, -1)), "`scale`")
  refused(kernel_path(line, cars, scale = matrix(c(1, 2, 2, 1), 2)), "`scale`")
  refused(kernel_path(line, cars, start = 1:3), "`start`")
  refused(kernel_path(line, cars, steps = 10, thin = 3), "`steps`")
  refused(kernel_path(line, cars, kernel_prior_draws()), "`kernel`")
  refused(kernel_path(clustering(components = 2), iris[1:4]), "latent variables")
  refused(plot(kernel_path(line, cars, steps = 2, seed = 1), "nothing"), "`parameters`")
  refused(sghmc(noise = 0.3, scaled = FALSE), "`noise`")
  refused(sgld(decay = 2), "`decay`")
  refused(sgld(decay = 1, delay = 0), "`delay`")
  broken <- custom_model("x", function(theta) stop("no value here"),
                         function(theta) dnorm(theta, log = TRUE), function(n) rnorm(n))
  expect_error(kernel_path(broken, kernel = rwm(), seed = 1), "no value here")
})

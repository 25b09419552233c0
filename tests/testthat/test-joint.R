# The joint test of check_model(geweke = TRUE): right models pass, wrong ones fail.

# Fewer chains find what these tests have wrong.
few_chains <- function(env = parent.frame()) {
  joint <- get("JOINT", asNamespace("logevidence"))
  utils::assignInNamespace("JOINT", replace(joint, "chains", fast_or_slow(120, 400)), "logevidence")
  do.call(on.exit, list(bquote(utils::assignInNamespace("JOINT", .(joint), "logevidence"))),
          envir = env)
}

joint_of <- function(model, data, seed = 1, ...) {
  check <- check_model(model, data, seed = test_seed(seed), geweke = TRUE, ...)
  check[check$check == "joint", ]
}

test_that("right models pass the joint test, by several kernels and sweeps", {
  scaled <- as.data.frame(scale(cars))
  for (kernel in list(slice(), hmc(), rwm()))
    expect_true(joint_of(linear_regression(dist ~ speed), scaled, kernel = kernel)$holds)
  expect_true(joint_of(regression(count ~ spray, "poisson"), InsectSprays)$holds)
  expect_true(joint_of(density(~ dnorm(dist, mu, exp(s), log = TRUE), mu = ~ speed, s = ~ 1),
                       scaled)$holds)
  expect_true(joint_of(clustering(components = 2, infer = TRUE), iris[1:6, 1:2])$holds)
})

wrong_prior <- custom_model(
  "mean",
  function(theta, data) outer(theta[, 1], data, function(m, y) dnorm(y, m, 1, log = TRUE)),
  function(theta) dnorm(theta[, 1], 0, 0.5, log = TRUE), function(n) rnorm(n, 0, 3),
  vectorised = TRUE, simulate = function(theta, data) rnorm(length(data), theta, 1)
)
with_noise <- function(sd) density(~ dnorm(y, m, 1, log = TRUE), m = ~ 1, prior = normal(0, 3),
                                   simulate = eval(bquote(y ~ rnorm(n, m, .(sd)))))

test_that("wrong simulated data, priors and kernels fail the joint test", {
  few_chains()
  rows <- data.frame(y = c(1.2, 0.4, 2.1))
  right <- check_model(with_noise(1), rows, seed = test_seed(1), geweke = TRUE)
  expect_true(right$holds[right$check == "joint"])
  expect_false(joint_of(with_noise(3), rows)$holds)
  expect_false(joint_of(wrong_prior, rows$y)$holds)
  expect_length(drawn_series(plot(right)), 3)
  expect_error(plot(check_model(gaussian_mean(), rows, seed = 1)), "geweke")
})

test_that("models that cannot simulate data are not tested", {
  blind <- custom_model("m", function(theta, data) dnorm(data, theta, log = TRUE),
                        function(theta) dnorm(theta, log = TRUE), function(n) rnorm(n))
  found <- joint_of(blind, c(1, 2))
  expect_true(is.na(found$holds))
  expect_match(found$what, "without `simulate`")
})

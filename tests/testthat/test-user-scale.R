# Parameters that users give to simulate() are those of posterior_draws(), for every model.

# All models of the package that can simulate data, and scales that are less simple.
simulating_models <- function() {
  entries <- crossing_models()
  models <- lapply(entries, function(entry) eval(entry$call))
  data <- lapply(names(entries), function(name) utils::head(crossing_data(name), 20))
  cases <- Map(function(model, data) list(model = model, data = data), models, data)
  cases <- Filter(function(case) can_simulate(case$model), cases)
  more <- list(
    scaled_further = regression(y ~ x + kind, sigma ~ z, scale = TRUE),
    scaled_through_zero = regression(count ~ 0 + x + z, poisson(), scale = TRUE),
    scaled_weibull = regression(positive ~ x, shape ~ z, family = weibull(), scale = TRUE),
    one_component = gaussian_mixture(~ a + b, components = 1),
    three_components = gaussian_mixture(~ a + b, components = 3, location = c(1, -2),
                                        mean_scale = 3)
  )
  rows <- utils::head(crossing_data("regression_modelled"), 20)
  c(cases, lapply(more, function(model) list(model = model, data = rows)))
}

test_that("draws of the posterior and simulate() agree on the scale, in every model", {
  cases <- simulating_models()
  expect_gt(length(cases), 20)
  for (name in names(cases)) {
    model <- cases[[name]]$model
    data <- cases[[name]]$data
    encoded <- encode(model, data)
    theta <- with_own_seed(test_seed(), matrix(rnorm(3 * length(encoded$theta_names), 0, 0.6), 3))
    user <- t(model_caller(model, encoded)("to_user", t(theta)))
    colnames(user) <- encoded$user_names
    turned <- user[, rev(seq_len(ncol(user))), drop = FALSE]
    points <- given_points(model, encoded, turned, FALSE)
    expect_equal(t(points), theta, tolerance = 1e-10, label = name)
    draw <- function(parameters, ...)
      simulate(model, nsim = 3, seed = test_seed(), data = data, parameters = parameters, ...)
    expect_equal(draw(turned), draw(theta, unconstrained = TRUE), tolerance = 1e-9, label = name)
    drawn <- vapply(draw(user), attr, user[1, ], "parameters")
    expect_equal(t(matrix(drawn, ncol(user))), user, tolerance = 1e-10, ignore_attr = TRUE)
  }
})

test_that("posterior draws of a fit are given as they are", {
  fit <- evidence(linear_regression(dist ~ speed, prior_sd = 10), cars, exact(),
                  seed = test_seed())
  wide <- data.frame(speed = rep(10, 20000))
  draw <- posterior_draws(fit, weighted = FALSE, n = 1)
  y <- simulate(fit$model, data = wide, parameters = draw, seed = test_seed())$dist
  expect_z(z_score(y, draw[, "(Intercept)"] + 10 * draw[, "speed"]))
  expect_equal(sd(y), draw[[1, "sigma"]], tolerance = 0.03)
  # and parameters of simulated data
  drawn <- simulate(fit$model, data = cars, seed = test_seed())
  again <- simulate(fit$model, data = cars, seed = test_seed(), parameters = attr(drawn,
                                                                                 "parameters"))
  expect_named(attr(drawn, "parameters"), colnames(fit$draws))
  expect_equal(attr(again, "parameters"), attr(drawn, "parameters"))
  # values in the order of the parameters need no names
  expect_identical(simulate(fit$model, data = cars, parameters = c(1, 2, 3), seed = test_seed()),
                   simulate(fit$model, data = cars, seed = test_seed(),
                            parameters = data.frame(sigma = 3, speed = 2, `(Intercept)` = 1,
                                                    check.names = FALSE)))
})

test_that("wrong names and values of parameters are refused", {
  model <- linear_regression(dist ~ speed)
  refuses <- function(sentence, ...)
    refused(simulate(model, data = cars, parameters = c(...)), sentence)
  refuses(paste("`parameters` must be named by the parameters (`(Intercept)`, `speed`, `sigma`),",
                "not by `Speeed`: the nearest name is `speed`."),
          "(Intercept)" = 1, Speeed = 2, sigma = 3)
  refuses("not by `log(sigma)`, which is for `unconstrained = TRUE`.",
          "(Intercept)" = 1, speed = 2, "log(sigma)" = 3)
  refuses("not none for `sigma`.", "(Intercept)" = 1, speed = 2)
  refuses("not several for `speed`.", "(Intercept)" = 1, speed = 2, speed = 2, sigma = 1)
  refuses("`parameters` must have positive numbers as `sigma`, not -1.", 0, 0, -1)
  refused(simulate(model, data = cars, unconstrained = TRUE,
                   parameters = c("(Intercept)" = 1, speed = 2, sigma = 3)),
          "in unconstrained space (`(Intercept)`, `speed`, `log(sigma)`), not by `sigma`")
  refused(simulate(gaussian_mean(), n = 2, parameters = c(mu = 1)),
          "not by `mu`: the nearest name is `mean`.")
  mixture <- gaussian_mixture(components = 2, location = c(a = 0))
  refused(simulate(mixture, n = 5, parameters = c(0.5, 0.6, 0, 1, 1, 1)), "sum to one, not to 1.1.")
  refused(simulate(mixture, n = 5, parameters = c(1.5, -0.5, 0, 1, 1, 1)), "not -0.5.")
  refused(simulate(mixture, n = 5, parameters = c(0.5, 0.5, 0, 1, 1, 0)), "as `sd[2,a]`, not 0.")
  refused(simulate(model, data = cars, parameters = 1:3, unconstrained = NA), "TRUE or FALSE")
})

test_that("a model without the inverse scale takes points in unconstrained space", {
  model <- linear_regression(dist ~ speed)
  model$contract$from_user <- NULL
  refused(simulate(model, data = cars, parameters = c(0, 1, 2)),
          "`parameters` must be in unconstrained space, with `unconstrained = TRUE`")
  expect_identical(nrow(simulate(model, data = cars, parameters = c(0, 1, 2),
                                 unconstrained = TRUE)), 50L)
  # one that says it wrongly fails its check
  holds <- function(model) {
    found <- check_model(model, cars, seed = test_seed())
    found$holds[found$check == "user scale"]
  }
  expect_true(holds(linear_regression(dist ~ speed)))
  model$contract$from_user <- function(model, encoded, user) user
  expect_false(holds(model))
})

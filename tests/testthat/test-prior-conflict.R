# Priors that contradict the data are named, benign ones are not.

conflict <- function(model, data, method = laplace(), ...) {
  fit <- quiet_fit(model, data, method, seed = test_seed(1), progress = FALSE, ...)
  expect_true(all(fit$prior_conflict %in% fit$warnings))
  expect_false(any(fit$prior_conflict %in% fit$failed))
  fit$prior_conflict
}

test_that("coefficients far from their prior are named, in print() and as a warning", {
  days <- data.frame(Days = rep(0:9, 18))
  days$Reaction <- 251 + 10.5 * days$Days + 40 * sin(1:180)
  model <- linear_regression(Reaction ~ Days, sigma = 30, prior_sd = 1)
  expect_warning(fit <- evidence(model, days, seed = test_seed(), progress = FALSE),
                 paste("contradict the prior: the posterior mean of `Days` lies .* standard",
                       "deviations from its prior mean"))
  expect_match(said(fit), "(likewise `(Intercept)`)", fixed = TRUE)
  expect_match(said(fit), "Set `prior` and `intercept` in the units of the data, or leave",
               fixed = TRUE)
  expect_length(fit$failed, 0)
  expect_null(conflict(linear_regression(Reaction ~ Days, sigma = 30, prior_sd = 300), days))
  expect_match(conflict(gaussian_mean(), c(10, 11, 12)), "`mean` lies 8[.][23] prior")
  expect_null(conflict(gaussian_mean(prior_mean = 9), c(10, 11, 12)))
  # the criterion of Schwarz has no prior
  expect_null(conflict(model, days, bic()))
})

test_that("a prior that makes the model explain the data as noise is named", {
  raw <- conflict(linear_regression(mpg ~ wt + hp, prior_sd = 1), mtcars)
  expect_match(raw, paste("least-squares estimate of `\\(Intercept\\)` lies 37 prior standard",
                          "deviations from its prior mean, and the fit has [0-9.]+ times"))
  expect_match(raw, paste("Set `prior`, `intercept` and `auxiliary` in the units of the data,",
                          "or leave them out: their defaults have these units."), fixed = TRUE)
  # standardised covariates leave the intercept where it is
  expect_match(conflict(linear_regression(mpg ~ wt + hp, prior_sd = 1, scale = TRUE), mtcars),
               "in the units of the data", fixed = TRUE)
  expect_match(conflict(linear_regression(mpg ~ wt + hp,
                                          prior_sd = 1), mtcars, exact()), "37 prior")
  expect_match(conflict(regression(mpg ~ wt + hp, prior_sd = 1), mtcars), "37 prior")
  units <- linear_regression(mpg ~ wt + hp, prior_sd = c(20, 5, 0.1))
  expect_null(conflict(units, mtcars))
  scaled <- scaled(mtcars)
  for (sd in c(0.3, 1, 10))
    for (model in list(linear_regression(mpg ~ ., prior_sd = sd),
                       linear_regression(mpg ~ wt * hp + offset(qsec), prior_sd = sd)))
      expect_null(conflict(model, scaled, exact()))
  # noise alone, and data from the prior
  for (seed in test_seed(1:20)) {
    data <- simulate(linear_regression(mpg ~ wt + hp, prior_sd = 1), data = scaled, seed = seed)
    expect_null(conflict(linear_regression(mpg ~ wt + hp, prior_sd = 1), data, exact()))
    data$mpg <- with_own_seed(seed, rnorm(32))
    expect_null(conflict(linear_regression(mpg ~ ., prior_sd = 0.1), data, exact()))
  }
})

test_that("columns that a mixture does not expect are named, whether clusters were found or not", {
  two <- gaussian_mixture(components = 2, location = 0, rate = 1)
  expect_match(conflict(two, faithful), "`waiting` lies .*Set `location`")
  # the defaults have the units of the columns
  expect_null(conflict(gaussian_mixture(components = 2), faithful))
  expect_match(conflict(gaussian_mixture(components = 1, location = 0, rate = 1), faithful),
               "`waiting` lies far from `location`")
  expect_match(conflict(two, scale(faithful) + 10),
               "a component mean of column `(waiting|eruptions)` lies [0-9.]+ prior")
  expect_match(conflict(two, scale(faithful) / 100),
               "a component's log variance in column `(waiting|eruptions)`")
  expect_null(conflict(gaussian_mixture(~ eruptions + waiting, components = 2,
                                        location = c(3.5, 70)), faithful))
})

test_that("columns that a model with latent variables does not expect are named", {
  quick <- smc(particles = 10)
  raw <- iris[1:40, 1:4]
  expect_match(conflict(clustering(components = 2), 10 * raw, quick),
               "`Sepal.Length` is far from zero")
  expect_match(conflict(clustering(components = 2, infer = TRUE), 100 * raw, quick),
               "or set `shape`, `scale`")
  expect_match(conflict(low_rank(rank = 1), 10 * raw, quick), "far from zero")
  expect_match(conflict(binary_attributes(attributes = 2), scale(raw) / 100, quick),
               "varies less than `noise_sd`")
  for (model in list(clustering(components = 2), low_rank(rank = 1),
                     binary_attributes(attributes = 2, infer = TRUE)))
    expect_null(conflict(model, scale(raw), quick))
})

test_that("custom models are compared with draws of their prior", {
  centred <- function(draw, log_prior)
    custom_model("m", function(m, y) sum(dnorm(y, m, log = TRUE)), log_prior, draw)
  normal <- centred(rnorm, function(m) dnorm(m, log = TRUE))
  set.seed(test_seed(3))
  before <- .Random.seed
  expect_match(conflict(normal, c(10, 11, 12)),
               "`m` lies 8.* prior standard deviations.*units of the data")
  expect_identical(.Random.seed, before)
  expect_null(conflict(normal, c(1, 2, 0)))
  # heavy tails expect values far out
  expect_null(conflict(centred(rcauchy, function(m) dcauchy(m, log = TRUE)), c(10, 11, 12)))
})

test_that("problems with sensible priors give no warning", {
  for (name in names(TRUTH_PROBLEMS)) {
    problem <- truth_problem(name)
    expect_null(conflict(problem$model, problem$data))
  }
})

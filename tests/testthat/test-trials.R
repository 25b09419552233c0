# Simulated data of all kinds of models, bounds from them, and how independent runs become one.

normal_mean <- function(sd = 1, ...) custom_model(
  "mean", function(theta, data) dnorm(data, theta, 1, log = TRUE),
  function(theta) dnorm(theta, 0, 3, log = TRUE), function(n) rnorm(n, 0, 3),
  simulate = function(theta, data) rnorm(length(data), theta, sd), ...
)

test_that("R functions simulate data reproducibly by a seed", {
  drawn <- simulate(normal_mean(), 2, seed = 3, n = 4000)
  expect_length(drawn, 2)
  for (one in drawn) {
    expect_lt(abs(mean(one) - attr(one, "parameters")) * sqrt(4000), 4.5)
    expect_lt(abs(var(as.vector(one)) - 1), 4.5 * sqrt(2 / 3999))
  }
  set.seed(1)
  before <- runif(1)
  set.seed(1)
  again <- simulate(normal_mean(), 2, seed = 3, n = 4000)
  expect_identical(again, drawn)
  expect_identical(runif(1), before)
  refused <- function(code, text) expect_error(code, text, class = "logevidence_error")
  refused(simulate(custom_model("m", function(theta, data) -data, function(theta) -theta^2,
                                function(n) rnorm(n)), n = 3), "without `simulate`")
  short <- custom_model("m", function(theta, data) -(data - theta)^2, function(theta) -theta^2,
                        function(n) rnorm(n), simulate = function(theta, data) 1)
  refused(simulate(short, n = 3, seed = 1), "`simulate` must return data like `data`")
})

test_that("a density() that is one density of R can simulate; others are refused", {
  model <- density(~ dnorm(y, a, exp(s), log = TRUE), a = ~ x, s = ~ 1)
  rows <- data.frame(x = rep(0:1, 2000))
  made <- simulate(model, data = rows, seed = 1, parameters = c(1, 2, log(0.5)))
  expect_lt(abs(mean(made$y[rows$x == 1]) - 3), 4.5 * 0.5 / sqrt(2000))
  expect_lt(abs(sd(made$y[rows$x == 0]) / 0.5 - 1), 4.5 / sqrt(4000))
  counts <- density(~ dpois(k, exp(mu), log = TRUE), mu = ~ x)
  made <- simulate(counts, data = rows, seed = 2, parameters = c(0.3, 0.5))
  expect_true(is.numeric(made$k) && all(made$k == round(made$k)))
  expect_lt(abs(mean(made$k[rows$x == 0]) - exp(0.3)), 4.5 * sqrt(exp(0.3) / 2000))
  shares <- density(~ dbeta(p, exp(a), exp(b), log = TRUE), a = ~ 1, b = ~ 1)
  made <- simulate(shares, n = 2000, seed = 3, parameters = c(0, log(2)))
  expect_lt(abs(mean(made$p) - 1 / 3), 4.5 * sqrt(1 / 18 / 2000))
  zeros <- density(~ ifelse(k == 0, log(plogis(p) + plogis(-p) * exp(-exp(mu))),
                            plogis(-p, log.p = TRUE) + dpois(k, exp(mu), log = TRUE)),
                   mu = ~ 1, p = ~ 1, simulate = k ~ rbinom(n, 1, plogis(-p)) * rpois(n, exp(mu)))
  made <- simulate(zeros, n = 4000, seed = 4, parameters = c(1, 0))
  share <- 0.5 + 0.5 * exp(-exp(1))
  expect_lt(abs(mean(made$k == 0) - share), 4.5 * sqrt(share * (1 - share) / 4000))
  refused <- function(code, text) expect_error(code, text, class = "logevidence_error")
  refused(simulate(density(~ dnorm(y, a, 1, log = TRUE) + log(2), a = ~ 1), n = 3), "`simulate`")
  refused(density(~ dnorm(y, a, 1, log = TRUE), a = ~ 1, simulate = ~ rnorm(n, a)), "`simulate`")
  refused(density(~ dnorm(y, a, 1, log = TRUE), a = ~ 1, simulate = z ~ rnorm(n, a)),
          "`simulate` must draw a column")
  # the means that are known without a formula, against means of draws
  for (own in list(
    density(~ dgamma(y, exp(a), scale = exp(b), log = TRUE), a = ~ 1, b = ~ 1),
    density(~ dgamma(y, exp(a), exp(b), log = TRUE), a = ~ 1, b = ~ 1),
    density(~ dweibull(y, exp(a), exp(b), log = TRUE), a = ~ 1, b = ~ 1),
    density(~ dnbinom(y, mu = exp(a), size = exp(b), log = TRUE), a = ~ 1, b = ~ 1),
    density(~ dlnorm(y, a, exp(b - 1), log = TRUE), a = ~ 1, b = ~ 1),
    density(~ dbeta(y, exp(a), exp(b), log = TRUE), a = ~ 1, b = ~ 1)
  )) {
    made <- simulate(own, n = 4000, seed = 5, parameters = c(0.7, 0.4))
    mean <- eval(own$mean, list(a = 0.7, b = 0.4), baseenv())
    expect_lt(abs(mean(made$y) - mean), 4.5 * sd(made$y) / sqrt(4000))
  }
  # fits predict and replicate from it
  fit <- evidence(model, data.frame(x = c(0, 1, 0, 1), y = c(1, 3, 1.2, 2.9)), seed = 1)
  expect_identical(dim(simulate(fit, 3, seed = 1)), c(4L, 3L))
})

test_that("models with latent variables simulate their rows", {
  model <- clustering(components = 2, prior_sd = 3, noise_sd = 0.5)
  drawn <- simulate(model, 2000, seed = 1, n = 2, columns = 1)
  values <- vapply(drawn, function(rows) rows[1, 1], 0)
  # a centre, and noise around it
  expect_lt(abs(var(values) / 9.25 - 1), 4.5 * sqrt(2 / 1999))
  named <- simulate(clustering(~ a + b, components = 2), n = 3, seed = 1)
  expect_named(named, c("a", "b"))
  expect_named(attr(named, "parameters"), c("label[1]", "label[2]", "label[3]"))
  expect_true(all(attr(named, "parameters") %in% 1:2))
  like <- simulate(low_rank(rank = 1, infer = TRUE), data = iris[1:3, 1:2], seed = 1)
  expect_named(like, names(iris)[1:2])
  expect_true("noise_sd" %in% names(attr(like, "parameters")))
  expect_error(simulate(model, n = 3, parameters = 1), "`parameters`")
})

test_that("bounds of models of R functions hold the closed form", {
  closed <- function(y) logml(evidence(gaussian_mean(prior_sd = 3), y, exact()))
  model <- normal_mean(vectorised = FALSE)
  method <- ais(particles = 20, schedule = linear(60))
  found <- bdmc(model, n = 10, method = method, chains = 8, budgets = 1, seed = 1)
  truth <- closed(as.vector(found$data))
  expect_lt(found$bounds$lower_low, truth)
  expect_gt(found$bounds$upper_high, truth)
  again <- bdmc(model, n = 10, method = method, chains = 8, budgets = 1, seed = 1)
  expect_identical(again$bounds[1:7], found$bounds[1:7])
  own <- density(~ dnorm(y, a, 1, log = TRUE), a = ~ 1, prior = normal(0, 3))
  found <- bdmc(own, n = 10, method = method, chains = 8, budgets = 1, seed = 2)
  truth <- closed(found$data$y)
  expect_lt(found$bounds$lower_low, truth)
  expect_gt(found$bounds$upper_high, truth)
  check <- sandwich_check(quiet_fit(own, found$data, method, seed = 1), datasets = 1, chains = 4,
                          data = found$data, seed = 1)
  expect_true(is.finite(check$gap))
})

test_that("independent trials are combined by the mean that was asked for", {
  trials <- function(combine) quiet_fit(gaussian_mean(), c(1.2, 0.4, 2.1), seed = 1, replicates = 6,
                                        method = ais(particles = 5, schedule = linear(4)),
                                        combine = combine)
  fits <- lapply(c("arithmetic", "harmonic", "log"), trials)
  single <- fits[[1]]$replicates$log_evidence
  expect_equal(fits[[1]]$log_evidence, log(mean(exp(single))))
  expect_equal(fits[[2]]$log_evidence, -log(mean(exp(-single))))
  expect_equal(fits[[3]]$log_evidence, mean(single))
  expect_gte(fits[[3]]$se, sd(single) / sqrt(6))
  expect_identical(trials(NULL)$log_evidence, fits[[1]]$log_evidence)
  harmonic <- quiet_fit(gaussian_mean(), c(1.2, 0.4), harmonic_mean(5, 20), seed = 1,
                        replicates = 4)
  expect_equal(harmonic$log_evidence, -log(mean(exp(-harmonic$replicates$log_evidence))))
  model <- clustering(components = 2)
  bounds <- lapply(c(a = "arithmetic", h = "harmonic", l = "log", best = "best"), function(how)
    bdmc(model, n = 8, method = ais(schedule = sigmoidal(10)), budgets = 1, seed = 1,
         combine = how))
  forward <- bounds$best$forward
  expect_equal(bounds$best$bounds$lower, log(mean(exp(forward))))
  expect_equal(bounds$best$bounds$upper, -log(mean(exp(-bounds$best$reverse))))
  expect_equal(bounds$h$bounds$lower, -log(mean(exp(-forward))))
  expect_equal(bounds$l$bounds$upper, mean(bounds$l$reverse))
  expect_equal(bounds$l$bounds$gap, bounds$l$bounds$kl)
  expect_error(quiet_fit(gaussian_mean(), 1, combine = "median"), "`combine`")
})

test_that("the error of a single chain is known from replicates only", {
  fit <- quiet_fit(gaussian_mean(), c(1.2, 0.4, 2.1), ais(1, sigmoidal(300)), seed = 1)
  expect_true(is.na(fit$se))
  expect_null(fit$failed)
  expect_output(print(fit), "1 particle, no standard error")
  truth <- logml(evidence(gaussian_mean(), c(1.2, 0.4, 2.1), exact()))
  both <- quiet_fit(gaussian_mean(), c(1.2, 0.4, 2.1), ais(1, sigmoidal(300)), seed = 1,
                    replicates = 40)
  expect_lt(abs(both$log_evidence - truth), 4.5 * both$se)
  rows <- quiet_fit(clustering(components = 2), c(-0.3, 1.2, 0.4, -1.1), smc("data", 1), seed = 1,
                    replicates = 200)
  full <- quiet_fit(clustering(components = 2), c(-0.3, 1.2, 0.4, -1.1), smc("data", 2000),
                    seed = 1)
  expect_lt(abs(rows$log_evidence - full$log_evidence), 4.5 * sqrt(rows$se^2 + full$se^2))
  expect_error(ais(1), "`particles`")
  expect_error(smc(particles = 1), "`particles`")
})

test_that("harmonic_mean() starts from an exact draw", {
  made <- bdmc(clustering(components = 2), n = 8, method = ais(schedule = sigmoidal(50)),
               budgets = 1, seed = 1)
  from_draw <- harmonic_mean(2, 400, start = made$state)
  start <- function(seed) quiet_fit(made$model, made$data, from_draw, seed = seed)
  expect_identical(start(1)$log_evidence, start(1)$log_evidence)
  free <- quiet_fit(made$model, made$data, harmonic_mean(2, 400), seed = 1)
  expect_false(free$log_evidence == start(1)$log_evidence)
  exact <- quiet_fit(made$model, made$data, smc("data", 2000), seed = 1)
  many <- quiet_fit(made$model, made$data, from_draw, seed = 1, replicates = 8)
  expect_lt(abs(many$log_evidence - exact$log_evidence), 1)
  expect_error(evidence(gaussian_mean(), 1:3, harmonic_mean(start = 1)), "`start`")
  expect_error(evidence(made$model, made$data, harmonic_mean(start = 1:3)), "state|numbers")
  expect_error(harmonic_mean(start = "x"), "`start`")
})

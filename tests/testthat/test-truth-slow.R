# Many seeds: do the reported standard errors mean what they say?  Runs with LOGEVIDENCE_SLOW=true.

slow <- function() skip_if_not(identical(Sys.getenv("LOGEVIDENCE_SLOW"), "true"),
                               "LOGEVIDENCE_SLOW=true")

#' Errors and standard errors of many runs: columns `error`, `se` (reported) and `own_error`,
#' `own_se` (the sampler's)
many_runs <- function(name, method, runs) {
  problem <- truth_problem(name)
  results <- vapply(test_seed(seq_len(runs)), function(seed) {
    fit <- evidence(problem$model, problem$data, method, seed = seed, progress = FALSE)
    c(fit$log_evidence - problem$log_evidence, sqrt(fit$se^2 + problem$se^2),
      fit$sampler$log_evidence - problem$log_evidence, sqrt(fit$sampler$se^2 + problem$se^2))
  }, numeric(4))
  stats::setNames(as.data.frame(t(results)), c("error", "se", "own_error", "own_se"))
}

expect_accurate <- function(name, method) {
  runs <- many_runs(name, method, 100)
  label <- paste(method$name, "on", name)
  expect_gte(sum(abs(runs$error) <= 4 * runs$se), 95,
             label = paste("runs of 100 within 4 se, reported,", label))
  expect_gte(sum(abs(runs$own_error) <= 4 * runs$own_se), 95,
             label = paste("runs of 100 within 4 se, sampler,", label))
  expect_lt(abs(mean(runs$error)), 0.2, label = paste("mean error, reported,", label))
  expect_lt(abs(mean(runs$own_error)), 0.2, label = paste("mean error, sampler,", label))
}

# 90 to 99 percent, as normal errors give 95.4; a share of 200 runs has an error of its own, so that
# 0.9 is only given up for what is significantly less.
expect_calibrated <- function(name, method) {
  runs <- many_runs(name, method, 200)
  label <- paste(method$name, "on", name)
  for (of in c("", "own_")) {
    share <- mean(abs(runs[[paste0(of, "error")]]) < 2 * runs[[paste0(of, "se")]])
    what <- paste0("share with |z| < 2, ", if (of == "") "reported, " else "sampler, ", label)
    expect_gte(share, stats::qbinom(0.05, 200, 0.90) / 200, label = what)
    expect_lte(share, stats::qbinom(0.95, 200, 0.99) / 200, label = what)
  }
}

exact_names <- c("mean100", "cars", "mtcars", "swiss", "longley", "airquality", "linear1000",
                 "softmax_tiny", "iris_petal",
                 "iris", "mix1_faithful", "mix2_dozen", "mix3_dozen", "mix2_dozen_2d",
                 "mix3_dozen_2d")

test_that("sgais() is within 4 standard errors and 0.2 nats of the truth", {
  slow()
  for (name in c(exact_names, "iris_wide", "softmax500", "softmax1000", "mix2_galaxies",
                 "mix3_galaxies", "mix2_eruptions", "mix2_faithful")) expect_accurate(name, sgais())
})

test_that("thermal SMC is within 4 standard errors and 0.2 nats of the truth", {
  slow()
  for (name in setdiff(exact_names, "linear1000")) expect_accurate(name, smc())
})

test_that("SMC that adds observations is within 4 standard errors and 0.2 nats of the truth", {
  slow()
  for (name in setdiff(exact_names, "longley")) expect_accurate(name, smc("data"))
})

test_that("AIS is within 4 standard errors and 0.2 nats of the truth", {
  slow()
  for (name in setdiff(exact_names, "longley")) expect_accurate(name, ais())
})

test_that("likelihood weighting is within 4 standard errors and 0.2 nats of the truth", {
  slow()
  for (name in c("mean100", "cars", "softmax_tiny")) expect_accurate(name, likelihood_weighting())
})

test_that("standard errors of sgais() are calibrated", {
  slow()
  for (name in c(exact_names, "mix2_galaxies", "mix2_faithful")) expect_calibrated(name, sgais())
})

test_that("standard errors of thermal SMC are calibrated", {
  slow()
  for (name in setdiff(exact_names, "linear1000")) expect_calibrated(name, smc())
})

test_that("standard errors of SMC that adds observations are calibrated", {
  slow()
  for (name in setdiff(exact_names, "longley")) expect_calibrated(name, smc("data"))
})

test_that("standard errors of AIS are calibrated", {
  slow()
  for (name in setdiff(exact_names, "longley")) expect_calibrated(name, ais())
})

test_that("standard errors of nested sampling are calibrated", {
  slow()
  for (name in exact_names) expect_calibrated(name, nested())
})

test_that("standard errors of bridge sampling and power posteriors are calibrated", {
  slow()
  for (name in c("mean100", "cars", "mtcars", "softmax_tiny", "iris_petal", "mix2_dozen")) {
    expect_calibrated(name, bridge())
    expect_calibrated(name, power_posterior("thermodynamic"))
  }
})

test_that("standard errors of importance sampling around the peak are calibrated", {
  slow()
  for (name in c("mean100", "cars", "mtcars", "swiss", "longley", "linear1000", "softmax_tiny",
                 "iris_petal"))
    expect_calibrated(name, laplace(importance = 400))
})

test_that("reflected nested sampling agrees with rejection from the prior, and with annealing", {
  slow()
  set.seed(test_seed(4))
  centre <- sample(c(-1, 0.5, 2), 1000, replace = TRUE)
  data <- data.frame(x = rnorm(1000, centre, 0.7))
  three <- gaussian_mixture(components = 3, location = 0, rate = 1)
  runs <- function(method, n) vapply(test_seed(1:5), function(seed)
    evidence(three, data[seq_len(n), , drop = FALSE], method, seed = seed,
             progress = FALSE)$log_evidence, 0)
  overlap <- function(a, b) max(min(a), min(b)) <= min(max(a), max(b))
  reflected <- nested(live = 20, kernel = sghmc(rate = 1e-3, friction = 0.1), steps = 60)
  for (n in c(10, 25, 50))
    expect_true(overlap(runs(reflected, n),
                        runs(nested(live = 20, kernel = logevidence::kernel_prior_draws()), n)))
  # many more draws from the prior: the papers' two live points, which are enough to see a bias of
  # some nats
  for (n in c(100, 250))
    expect_true(overlap(runs(nested(2, sghmc(rate = 1e-3, friction = 0.1), 60), n),
                        runs(nested(live = 2, kernel = logevidence::kernel_prior_draws()), n)))
  for (n in c(20, 100, 400, 1000))
    expect_true(overlap(runs(nested(live = 100), n), runs(ais(), n)), label = n)
})

test_that("standard errors of likelihood weighting are calibrated", {
  slow()
  for (name in c("mean100", "cars", "softmax_tiny")) expect_calibrated(name, likelihood_weighting())
})

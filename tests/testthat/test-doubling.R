# evidence(target_se =, doubling = TRUE): further runs double the particles until the standard error
# is reached, and their estimates are weighted by their numbers of particles.

line <- linear_regression(dist ~ speed, sigma = 15, prior_sd = 10)
truth <- logml(evidence(line, cars, exact()))

doubled <- function(method = smc(particles = 50), ..., model = line, data = cars, target_se = 0.1)
  suppressMessages(quiet_fit(model, data, method, ..., target_se = target_se, doubling = TRUE))

test_that("particles double until the error is reached, and no run is thrown away", {
  said <- testthat::capture_messages(
    fit <- quiet_fit(line, cars, smc(particles = 50), seed = test_seed(), target_se = 0.1,
                     doubling = TRUE))
  expect_match(said, "doublings of 50 particles", all = FALSE)
  runs <- fit$replicates
  k <- nrow(runs)
  expect_gt(k, 2)
  expect_identical(runs$particles, 50 * c(1, 2^(0:(k - 2))))
  expect_lte(fit$se, 0.1)
  level <- exp(runs$log_evidence - truth)
  expect_equal(fit$log_evidence - truth, log(sum(runs$particles * level) / sum(runs$particles)))
  # the first run is that of a call without a target, and the error was not reached before
  expect_identical(runs$log_evidence[1],
                   quiet_fit(line, cars, smc(particles = 50), seed = test_seed())$log_evidence)
  before <- combine_estimates(runs$log_evidence[-k], "arithmetic", runs$particles[-k])
  own <- sqrt(sum((before$weight * runs$se[-k])^2)) / sum(before$weight)
  expect_gt(max(before$se, own), 0.1)
  # draws: those of each run have its share of the weight
  shares <- tapply(exp(fit$log_weights), rep(seq_len(k), runs$particles), sum)
  expect_equal(as.vector(shares), runs$particles * level / sum(runs$particles * level))
  expect_output(print(fit), paste("from", k, "runs"))
  expect_output(print(fit), paste(count(sum(runs$particles)), "particles in all"))
})

test_that("the result depends on the seed only", {
  one <- doubled(seed = test_seed())
  other <- doubled(seed = test_seed(), threads = 2)
  expect_identical(one$log_evidence, other$log_evidence)
  expect_identical(one$replicates, other$replicates)
  expect_false(identical(one$log_evidence, doubled(seed = test_seed(2))$log_evidence))
  streamed <- doubled(smc("data", particles = 50), data = rows_in_memory(cars), seed = test_seed())
  expect_gt(nrow(streamed$replicates), 1)
  expect_lt(abs(streamed$log_evidence - truth), 4 * streamed$se)
})

test_that("the spread of runs of several sizes is an estimate of the error of their mean", {
  # runs whose variance is inversely proportional to their particles
  times <- c(1, 1, 2, 4, 8, 16)
  set.seed(test_seed())
  found <- replicate(2000, {
    both <- combine_estimates(log(1 + rnorm(6, 0, 0.05 / sqrt(times))), "arithmetic", times)
    c(expm1(both$value), both$se)
  })
  expect_lt(abs(sd(found[1, ]) / (0.05 / sqrt(32)) - 1), 0.06)
  expect_lt(abs(mean(found[2, ]^2) / (0.05^2 / 32) - 1), 0.1)
  # of equal runs it is that of before
  x <- rnorm(5)
  both <- combine_estimates(x, "arithmetic")
  ratio <- exp(x - max(x))
  expect_equal(both$value, max(x) + log(mean(ratio)))
  expect_equal(both$se, sd(ratio) / mean(ratio) / sqrt(5))
})

test_that("stopping by the estimated error does not bias the estimate beyond its error", {
  # unbiased at any number of particles, so all bias would be that of stopping
  cases <- list(list(likelihood_weighting(2000), 0.2),
                list(ais(particles = 50, schedule = sigmoidal(40)), 0.1),
                list(smc(particles = 50), 0.1))
  for (case in cases[fast_or_slow(1, 1:3)]) {
    found <- vapply(seq_len(200), function(i) {
      fit <- doubled(case[[1]], seed = test_seed(i), target_se = case[[2]])
      c(fit$log_evidence - truth, fit$se)
    }, c(0, 0))
    z <- found[1, ] / found[2, ]
    expect_lt(sqrt(mean(found[1, ]^2)), 1.15 * sqrt(mean(found[2, ]^2)))
    expect_lt(abs(mean(z)), 0.4)
    expect_lt(mean(abs(z) > 2), 0.1)
  }
})

test_that("fits with doubled particles are pooled by their numbers of particles", {
  fits <- list(doubled(seed = test_seed()), doubled(seed = test_seed(2)),
               quiet_fit(line, cars, smc(particles = 50), seed = test_seed(3)))
  pooled <- muffled(do.call(c, fits))
  particles <- pooled$replicates$particles
  expect_identical(particles, c(fits[[1]]$replicates$particles, fits[[2]]$replicates$particles, 50))
  level <- exp(pooled$replicates$log_evidence - truth)
  expect_equal(exp(pooled$log_evidence - truth), sum(particles * level) / sum(particles))
  expect_equal(sum(exp(pooled$log_weights)), 1)
})

test_that("doubled runs are in the checkpoint", {
  file <- tempfile()
  on.exit(unlink(file))
  fit <- function(...) doubled(smc(particles = 50), seed = test_seed(), target_se = 0.05, ...)
  whole <- fit()
  expect_gt(nrow(whole$replicates), 1)
  saved <- fit(checkpoint = file)
  again <- suppressMessages(muffled(resume(file)))
  for (part in c("log_evidence", "se", "draws", "replicates")) {
    expect_identical(saved[[part]], whole[[part]], info = part)
    expect_identical(again[[part]], whole[[part]], info = part)
  }
})

test_that("a limit that stops doubling gives a warning, and wrong combinations are refused", {
  expect_match(doubled(smc(particles = 20), seed = test_seed(), target_se = 1e-4)$warnings,
               "particles would be needed, more than 20,480", all = FALSE)
  short <- doubled(smc(particles = 500), seed = test_seed(), target_se = 0.005, time_limit = 0.3)
  if (inherits(short, "evidence"))
    expect_match(short$warnings, "does not fit in `time_limit`", all = FALSE)
  expect_null(doubled(smc(particles = 50), seed = test_seed(), target_se = 5)$replicates)
  refuse <- function(words, ...) refused(evidence(line, cars, ..., doubling = TRUE), words)
  refuse("must be FALSE without `target_se`", smc())
  refuse("not sgais()", target_se = 0.1)
  refuse("not nested()", nested(), target_se = 0.1)
  refuse("\"arithmetic\" with `doubling`", smc(), target_se = 0.1, combine = "log")
  refuse("at least 2 with `doubling`", ais(particles = 1, schedule = linear(10)), target_se = 0.1)
  refused(evidence(line, cars, smc(), target_se = 0.1, doubling = 2), "`doubling` must be")
})

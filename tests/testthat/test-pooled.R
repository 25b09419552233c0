# c() of fits: runs made apart are one fit.

line <- linear_regression(dist ~ speed, prior_sd = 10)
run <- function(seed, ..., model = line, data = cars, method = smc(particles = 50))
  quiet_fit(model, data, method, seed = test_seed(seed), ...)
refused <- function(code, text) expect_error(code, text, class = "logevidence_error")

test_that("c() of fits of different seeds equals the replicates of one call", {
  fits <- lapply(1:4, run)
  pooled <- do.call(c, fits)
  each <- vapply(fits, `[[`, 0, "log_evidence")
  se <- vapply(fits, `[[`, 0, "se")
  weight <- exp(each - max(each))
  expect_equal(pooled$log_evidence, max(each) + log(mean(weight)))
  spread <- sd(weight) / mean(weight) / 2
  expect_equal(pooled$se, max(spread, sqrt(sum((weight * se)^2)) / sum(weight)))
  expect_identical(pooled$replicates$log_evidence, each)
  expect_identical(pooled$seeds, do.call(rbind, lapply(fits, `[[`, "seed")))
  expect_equal(sum(exp(pooled$log_weights)), 1)
  # each run has the share of its evidence
  share <- colSums(matrix(exp(pooled$log_weights), ncol = 4))
  expect_equal(share, weight / sum(weight))
  # the parts of a fit with replicates, and the same words
  whole <- run(1, replicates = 4)
  expect_identical(names(pooled$replicates), names(whole$replicates))
  expect_identical(pooled$source, whole$source)
  expect_identical(pooled$verdict$entry[1], whole$verdict$entry[1])
  expect_identical(pooled$verdict$kind[1], whole$verdict$kind[1])
  expect_output(print(pooled), "from the spread of 4 replicates")
  # in two steps, and with fits that have replicates
  steps <- c(c(fits[[1]], fits[[2]]), c(fits[[3]], fits[[4]]))
  expect_identical(steps[c("log_evidence", "se", "draws", "verdict", "seeds")],
                   pooled[c("log_evidence", "se", "draws", "verdict", "seeds")])
  expect_equal(steps$log_weights, pooled$log_weights)
  more <- c(fits[[2]], whole)
  expect_identical(nrow(more$replicates), 5L)
  expect_equal(more$log_evidence, with(more$replicates, max(log_evidence) +
                                         log(mean(exp(log_evidence - max(log_evidence))))))
  # uses of fits
  null <- quiet_fit(linear_regression(dist ~ 1), cars, seed = 1)
  table <- compare_models(list(pooled = pooled, null = null))
  expect_identical(table$log_evidence[table$model == "pooled"], pooled$log_evidence)
  expect_identical(dim(predict(pooled, cars)), dim(predict(whole, cars)))
  refused(update(c(run(1, method = sgais()), run(2, method = sgais())), cars[1:5, ]),
          "has no state")
})

test_that("c() of fits is right within its standard error", {
  truth <- quiet_fit(line, cars, exact())$log_evidence
  z <- vapply(seq_len(fast_or_slow(8, 50)), function(k) {
    pooled <- do.call(c, lapply(100 * k + 1:4, run))
    (pooled$log_evidence - truth) / pooled$se
  }, 0)
  expect_true(all(abs(z) < 4.5))
  expect_gt(stats::sd(z), 0.3)
})

test_that("c() refuses fits of different problems, or of one seed, and names the difference", {
  first <- run(1)
  refused(c(first, first), "the same seed")
  refused(c(c(first, run(2)), run(2, method = smc(particles = 50))), "the same seed")
  refused(c(first, run(2, data = cars[1:49, ])), "another number of observations")
  refused(c(first, run(2, data = transform(cars, dist = dist + 1))), "other data")
  refused(c(first, run(2, data = transform(cars, speed = rev(speed)))), "other covariates")
  refused(c(first, run(2, model = linear_regression(dist ~ 1))), "another model")
  refused(c(first, run(2, model = linear_regression(dist ~ speed, prior_sd = 9))), "other priors")
  refused(c(first, run(2, method = smc(particles = 51))), "other settings of its method")
  refused(c(first, run(2, method = ais())), "another method")
  refused(c(first, run(2, combine = "log")), "other settings of its method")
  refused(c(run(1, method = exact()), run(2, method = exact())), "a Monte Carlo error")
  refused(c(first, 1), "`...`")
  stopped <- quiet_fit(line, in_blocks(cars, 10), seed = 1, time_limit = 1e-9)
  refused(c(first, stopped), "whole fit")
})

test_that("fits of R functions are pooled after they were saved, if their variables are the same", {
  normal_model <- function(sd) custom_model("m",
    function(theta, data) stats::dnorm(data, theta, sd, log = TRUE),
    function(theta) stats::dnorm(theta, 0, 3, log = TRUE), function(n) stats::rnorm(n, 0, 3))
  numbers <- c(1.2, 0.4, 2.1, 0.9, 1.5, -0.3)
  fit <- function(seed, sd) run(seed, model = normal_model(sd), data = numbers)
  file <- tempfile()
  saveRDS(fit(1, 1), file)
  expect_identical(nrow(c(readRDS(file), fit(2, 1))$replicates), 2L)
  refused(c(readRDS(file), fit(2, 2)), "other priors or settings")
})

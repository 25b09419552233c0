# evidence_tune(): gaps against exact evidences, the choice, its stated errors, and what is refused.

line <- linear_regression(dist ~ speed, sigma = 15, prior_sd = 10)
small <- low_rank(rank = 1, noise_sd = 0.5)
few <- with_own_seed(1, matrix(rnorm(40), 10))
tuned <- function(..., seed = 1) evidence_tune(..., seed = test_seed(seed), progress = FALSE)
steps <- function(...) list(schedule = lapply(c(...), sigmoidal))

test_that("gaps bound the mean error of runs on data of known evidence, for both methods", {
  for (method in list(ais(particles = 4, schedule = sigmoidal(5)), smc(particles = 12))) {
    grid <- if (method$name == "ais") list(schedule = list(sigmoidal(5), sigmoidal(60)))
    else list(particles = c(6, 60))
    found <- tuned(line, cars, method, grid, datasets = fast_or_slow(12, 40), chains = 8,
                   from = "prior")
    # the same data sets, of which the evidence is known
    source <- fit_to_simulate_from(line, cars, "prior", found$seed)
    sets <- simulated_sets(source$fit, cars, FALSE, found$datasets, found$seed)
    truth <- vapply(sets, function(set)
      quiet_fit(line, set$made$data, exact(), seed = 1)$log_evidence, 0)
    each <- found$each
    for (i in 1:2) {
      own <- each[each$setting == i, ]
      error <- truth - own$lower
      expect_gt(mean(error), -4.5 * sd(error) / sqrt(length(error)))
      above <- own$upper - truth
      expect_gt(mean(above), -4.5 * sd(above) / sqrt(length(above)))
    }
    # the coarse one has the larger gap on most data sets, and the larger error
    gaps <- matrix(each$gap, 2)
    expect_gt(mean(gaps[1, ] > gaps[2, ]), 0.6)
    expect_gt(found$settings$behind[1], 0)
    expect_gt(mean((truth - each$lower)[each$setting == 1]),
              mean((truth - each$lower)[each$setting == 2]))
    expect_identical(found$settings$best, c(FALSE, TRUE))
  }
})

test_that("figures are those of bdmc() on the same data sets with the same seeds", {
  found <- tuned(small, few, ais(particles = 3), steps(10, 30), datasets = 2, chains = 4)
  set <- simulated_sets(list(model = small, n = 10, design = list(columns = paste0("V", 1:4))),
                        NULL, FALSE, 2, found$seed)[[2]]
  expect_identical(dim(set$made$data), c(10L, 4L))
  one <- sandwich(set$model, set$made, found$methods[[1]], 12, 1, set$words, FALSE)
  own <- found$each[found$each$setting == 1 & found$each$dataset == 2, ]
  runs <- matrix(one$forward, 3)
  runs <- log(colMeans(exp(runs - max(runs)))) + max(runs)
  expect_equal(own$lower, mean(runs))
  expect_equal(own$lower_se, sd(runs) / 2)
  expect_equal(own$upper, one$bounds$upper)
  table <- as.data.frame(found)
  expect_equal(table$gap, as.vector(tapply(found$each$gap, found$each$setting, mean)))
  gaps <- matrix(found$each$gap, 2, byrow = TRUE)
  expect_true(all(table$gap_se >= apply(gaps, 2, sd) / sqrt(2) - 1e-12))
  expect_equal(table$gap_seconds, table$gap * table$seconds)
  expect_identical(tuned(small, few, ais(particles = 3), steps(10, 30), datasets = 2,
                         chains = 4)$each[c("lower", "upper")], found$each[c("lower", "upper")])
})

test_that("standard errors of mean gaps are right", {
  z <- vapply(seq_len(fast_or_slow(60, 300)), function(seed) {
    settings <- tuned(small, few, ais(particles = 2), steps(20, 60), datasets = 6, chains = 4,
                      seed = seed)$settings
    c(settings$gap, settings$gap_se, settings$behind[1], settings$behind_se[1])
  }, numeric(6))
  for (of in list(c(1, 3), c(2, 4), c(5, 6))) {
    # both stated errors are the larger one of two
    ratio <- sd(z[of[1], ]) / sqrt(mean(z[of[2], ]^2))
    expect_gt(ratio, 0.5)
    expect_lt(ratio, 1.3)
  }
})

test_that("the best setting is the fastest of the nearly best ones, within the budget", {
  table <- data.frame(gap = c(3, 0.05, 0.01, 0), gap_se = 0.1, seconds = c(1, 2, 3, 4),
                      in_budget = TRUE)
  expect_identical(best_setting(table, 0.1), 2L)
  expect_identical(best_setting(table, 0.001), 4L)
  table$in_budget <- table$seconds <= 3
  expect_identical(best_setting(table, 0.001), 3L)
  table$in_budget <- table$seconds <= 1
  expect_identical(best_setting(table, 0.001), 1L)
  table$in_budget <- FALSE
  expect_identical(best_setting(table, 0.001), 1L)
  table$gap <- c(Inf, NaN, 2, 3)
  table$in_budget <- TRUE
  expect_identical(best_setting(table, 0.1), 3L)
  found <- tuned(small, few, ais(particles = 3), steps(5, 20), datasets = 1, budget = 1e-9)
  expect_identical(found$settings$in_budget, c(FALSE, FALSE))
  expect_match(said(found), fixed = TRUE,
               "No setting is within the budget of less than 1 ms. The fastest is `ais")
})

test_that("the best method is a call that a user can write, and evidence() takes it", {
  p <- 3
  found <- tuned(line, cars, ais(particles = p), list(
    schedule = list(sigmoidal(20), linear(30)), kernel = list(hmc(), rwm()), steps = list(NULL, 3)
  ), datasets = 1, chains = 2, from = "prior")
  expect_identical(nrow(found$settings), 8L)
  expect_identical(found$settings$schedule[1:2], c("sigmoidal(20)", "linear(30)"))
  expect_identical(found$settings$steps[c(1, 5)], c("NULL", "3"))
  made <- found$methods[[8]]
  written <- ais(particles = p, schedule = linear(30), kernel = rwm(), steps = 3)
  parts <- setdiff(names(written), "call")
  expect_identical(unclass(made)[parts], unclass(written)[parts])
  expect_identical(deparse1(made$call),
                   "ais(particles = p, schedule = linear(30), kernel = rwm(), steps = 3)")
  fit <- quiet_fit(line, cars, found$best, seed = 1)
  expect_true(is.finite(fit$log_evidence))
  # rows of a data frame are settings, and a kernel alone is one value
  pairs <- tuned(line, cars, smc(), data.frame(particles = c(5, 20), steps = c(4, 2)),
                 datasets = 1, chains = 2, from = "prior")
  expect_identical(vapply(pairs$methods, function(m) deparse1(m$call), ""),
                   c("smc(particles = 5, steps = 4)", "smc(particles = 20, steps = 2)"))
  alone <- tuned(line, cars, smc(particles = 5), list(kernel = rwm()), datasets = 1, chains = 2,
                 from = "prior")
  expect_identical(alone$settings$kernel, "rwm()")
})

test_that("data are simulated from a fit, from its draws, or from the prior", {
  fit <- quiet_fit(line, cars, laplace(importance = 200), seed = 1)
  found <- tuned(line, cars, smc(particles = 10), list(steps = 1:2), datasets = 2, from = fit)
  expect_identical(found$from, "fit")
  expect_identical(tuned(line, cars, smc(particles = 10), list(steps = 1:2),
                         datasets = 2)$from, "posterior")
  unknown <- clustering(components = 2, infer = TRUE)
  method <- smc("data", particles = 5)
  for (from in c("posterior", "prior")) {
    found <- tuned(unknown, few, method, list(proposal = c("conditional", "prior")), datasets = 2,
                   chains = 3, from = from)
    expect_true(all(is.finite(found$settings$gap)))
  }
  expect_match(said(found), "2 data sets of 10 rows simulated from the prior, 3 runs of each",
               fixed = TRUE)
  refused(evidence_tune(line, cars[1:40, ], smc(), list(steps = 1:2), from = fit),
          "must be those of the fit")
  refused(evidence_tune(small, few, ais(), steps(5), from = fit), "`from` must be a fit of `model`")
  refused(evidence_tune(small, few, ais(), steps(5), from = "else"), "`from` must be")
})

test_that("the workers of a cluster give the same bounds", {
  skip_on_cran()
  cl <- local_cluster()
  bounds <- function(...) tuned(line, cars, smc(particles = 10), list(steps = 1:2), datasets = 2,
                                from = "prior", ...)$each[c("setting", "lower", "upper")]
  expect_identical(bounds(cl = cl), bounds())
})

test_that("settings of tune() are printed and plotted", {
  found <- tuned(small, few, ais(particles = 3), steps(5, 200), datasets = 2, budget = 60)
  text <- said(found)
  expect_match(text, "2 data sets of 10 rows simulated from the model, 5 runs of each setting",
               fixed = TRUE)
  expect_match(text, "The best setting is `ais(particles = 3, schedule = sigmoidal(200))`",
               fixed = TRUE)
  expect_match(text, "This is advice, not a guarantee", fixed = TRUE)
  series <- drawn_series(expect_invisible(plot(found)))
  last <- series[[length(series)]]
  expect_equal(last$x, pmax(found$settings$seconds, 1e-4))
  expect_equal(last$y, pmax(found$settings$gap, SMALL_GAP))
  found$settings$gap <- c(Inf, NaN)
  refused(plot(found), "plot() has nothing to draw")
})

test_that("tune() refuses models and methods that it cannot tune in a sentence", {
  for (method in list(nested(), sgais(), laplace(), chib(), likelihood_weighting()))
    refused(evidence_tune(line, cars, method, list(steps = 1:2)), "whose runs can be reversed, not")
  refused(evidence_tune(small, few, smc(), list(particles = 5)), "must be ais() or smc(\"data\")")
  refused(evidence_tune(line, cars, smc(), list(kernel = list(hmc(), sghmc()))),
          "a kernel with a step-size error gives no bounds")
  refused(evidence_tune(small, few, ais(), list(kernel = hmc())),
          "`kernel` must not be given for a model")
  refused(evidence_tune(line, cars, ais(),
                        list(particles = c(5, 20), schedule = list(adaptive(10)))),
          "`ais(particles = 5, schedule = adaptive(10))` does not: `ess` must be")
  refused(evidence_tune(line, cars, ais(), c(particles = 5)), "`grid` must be a list of settings")
  refused(evidence_tune(line, cars, ais(), list()), "`grid` must be a list of settings")
  refused(evidence_tune(line, cars, ais(), sigmoidal(5)), "`grid` must be a list of settings")
  refused(evidence_tune(line, cars, ais(), list(5)), "must have a different name for each setting")
  refused(evidence_tune(line, cars, ais(), list(live = 5)),
          "arguments of ais(), `particles`, `schedule`")
  refused(evidence_tune(line, cars, ais(), list(particles = NULL)),
          "at least one value of `particles`")
  refused(evidence_tune(line, cars, ais(), list(particles = 1:1001 + 1)),
          "at most 1,000 combinations")
  refused(evidence_tune(line, method = ais(), grid = steps(5)), "`data` must be given")
  refused(evidence_tune(line, in_blocks(cars, 10), ais(), steps(5)),
          "`data` must be rows in memory")
  refused(evidence_tune(line, cars, ais(), steps(5), budget = 0), "`budget` must be")
  refused(evidence_tune(line, cars, ais(), steps(5), tolerance = -1), "`tolerance` must be")
  refused(evidence_tune(line, cars, ais(), steps(5), chains = 1), "`chains` must be")
  refused(evidence_tune(line, cars, ais(), steps(5), datasets = 0), "`datasets` must be")
  made <- local({
    hidden <- 7
    ais(particles = hidden)
  })
  refused(evidence_tune(line, cars, made, steps(5)),
          "those of `ais(particles = hidden)` are not known here")
  silent <- custom_model("m", function(m, data) 0, function(m) dnorm(m, log = TRUE), rnorm)
  refused(evidence_tune(silent, 1:3, ais(), steps(5)), "`model` must be one that can simulate data")
})

# The sandwich: bounds on simulated data of known evidence, and what print and plot say of them.

sandwich <- function(..., seed = 1) bdmc(..., seed = test_seed(seed), progress = FALSE)
small <- clustering(components = 2, proportions = c(0.7, 0.3), prior_sd = 2, noise_sd = 0.8)

#' By enumeration
clustering_truth <- function(data) {
  n <- nrow(data)
  picks <- as.matrix(expand.grid(rep(list(1:2), n)))
  values <- apply(picks, 1, function(pick) {
    root <- chol(4 * outer(pick, pick, `==`) + diag(0.64, n))
    sum(log(c(0.7, 0.3)[pick])) + sum(apply(data, 2, function(y)
      -n / 2 * log(2 * pi) - sum(log(diag(root))) -
      sum(backsolve(root, y, transpose = TRUE)^2) / 2))
  })
  max(values) + log(sum(exp(values - max(values))))
}

test_that("bounds enclose the known evidence and come closer with more steps", {
  for (method in list(ais(schedule = sigmoidal(100)), smc("data", particles = 30),
                      smc("data", particles = 30, proposal = "prior", steps = 2))) {
    runs <- lapply(seq_len(fast_or_slow(6, 12)), function(seed)
                     sandwich(small, 6, 2, method, chains = 5, budgets = c(0.1, 1), seed = seed))
    truth <- vapply(runs, function(s) clustering_truth(s$data), 0)
    lower <- vapply(runs, function(s) s$bounds$lower, c(0, 0))
    upper <- vapply(runs, function(s) s$bounds$upper, c(0, 0))
    # Markov: three nats beyond the truth with probability below exp(-3)
    expect_lt(mean(lower[1, ] > truth + 3), 0.2)
    expect_lt(mean(upper[1, ] < truth - 3), 0.2)
    expect_lt(mean(abs(lower[2, ] - truth)), 0.35)
    # row by row, particles that all start from one draw may stay in its mode for long: the bound is
    # loose, not wrong
    if (method$name == "ais") expect_lt(mean(abs(upper[2, ] - truth)), 0.35)
    else if (is_slow()) expect_lt(mean(abs(upper[2, ] - truth)), 2)
    less <- upper[2, ] - lower[2, ] - (upper[1, ] - lower[1, ])
    expect_lt(mean(less), 0.1 + 4 * sd(less) / sqrt(length(less)))
  }
})

test_that("the bounds meet for all three models, also with adaptive schedules", {
  models <- list(clustering(components = 3, prior_sd = 2), low_rank(rank = 1),
                 binary_attributes(attributes = 3))
  for (model in models)
    for (method in list(ais(schedule = sigmoidal(500)), ais(schedule = adaptive(0.98)))) {
    s <- sandwich(model, 15, 4, method, chains = 20)
    last <- s$bounds[nrow(s$bounds), ]
    expect_lt(abs(last$gap), 1, label = paste(model$name, deparse1(method$call)))
    expect_gt(last$kl, -0.5)
  }
})

test_that("forward chains are combined by the arithmetic mean, reverse ones by the harmonic mean", {
  s <- sandwich(small, 8, 3, ais(schedule = sigmoidal(20)), chains = 7)
  expect_length(s$forward, 7)
  expect_length(s$reverse, 7)
  last <- s$bounds[3, ]
  expect_equal(last$lower, log(mean(exp(s$forward - s$forward[1]))) + s$forward[1])
  expect_equal(last$upper, s$reverse[1] - log(mean(exp(s$reverse[1] - s$reverse))))
  expect_equal(last$gap, last$upper - last$lower)
  expect_equal(last$kl, mean(s$reverse) - mean(s$forward))
  expect_true(with(s$bounds, all(lower_low <= lower & lower <= lower_high & upper_low <= upper &
                                 upper <= upper_high)))
  expect_identical(s$bounds$budget, c(0.01, 0.1, 1))
  expect_identical(dim(s$data), c(8L, 3L))
  expect_length(s$state, 2 + 2 + 8)
})

test_that("bdmc() is reproducible by its seed, and a formula may name the columns", {
  same <- function(...) sandwich(clustering(~ height + weight, components = 2), 5,
                                 method = ais(schedule = linear(10)), ...)
  expect_identical(same()$bounds[-10], same()$bounds[-10])
  expect_false(identical(same()$data, same(seed = test_seed(2))$data))
  expect_named(same()$data, c("height", "weight"))
  set.seed(test_seed())
  before <- .Random.seed
  same()
  expect_identical(.Random.seed, before)
})

test_that("simulated data have the variances of the model", {
  spread <- vapply(1:40, function(seed) stats::var(unlist(
    simulate_latent(clustering(components = 50, prior_sd = 3, noise_sd = 1), 60, 5,
                    seed_words(test_seed(seed)))$data)), 0)
  expect_lt(abs(mean(spread) - 10), 4.5 * sd(spread) / sqrt(40) + 0.3)
})

test_that("bdmc() refuses models and methods for which it has no bounds", {
  refused(bdmc(small), "`n` must be a whole number between 2 and 1000000, not NULL")
  refused(bdmc(small, 1), "`n` must be a whole number between 2 and 1000000")
  refused(bdmc(small, 5, 0), "`columns` must be")
  refused(bdmc(small, 5, 2, smc()), "whose runs can be reversed")
  refused(bdmc(small, 5, 2, nested()), "whose runs can be reversed")
  refused(bdmc(small, 5, 2, ais(kernel = hmc())), "Gibbs sweeps")
  refused(bdmc(small, 5, 2, chains = 1), "`chains` must be a whole number between 2 and 100000")
  refused(bdmc(small, 5, 2, budgets = c(0.5, 0.1)), "`budgets` must be increasing shares")
  refused(bdmc(small, 5, 2, budgets = 0.5), "`budgets` must be increasing shares")
  refused(bdmc(clustering(components = 6), 5), "`components` must be at most the number of rows")
  refused(bdmc(low_rank(rank = 2), 5, 2), "`rank` must be less")
})

test_that("bounds are printed and plotted", {
  s <- sandwich(small, 10, 3, ais(schedule = sigmoidal(200)))
  text <- paste(utils::capture.output(print(s)), collapse = " ")
  expect_match(text, "Clustering, 2 components, 10 simulated rows of 3 columns", fixed = TRUE)
  expect_match(text, "10 chains each way", fixed = TRUE)
  expect_match(gsub(" +", " ", text), "The log evidence of these data lies between", fixed = TRUE)
  s$bounds$gap[3] <- 5
  expect_match(gsub(" +", " ", paste(utils::capture.output(print(s)), collapse = " ")),
               "have not met")
  series <- drawn_series(expect_invisible(plot(s)))
  # an empty plot, then each bound as a line and as points
  expect_equal(lapply(series[-1], `[[`, "y"), unname(as.list(s$bounds[rep(c("lower", "upper"),
                                                                          each = 2)])))
  for (one in series[-1]) expect_equal(one$x, pmax(s$bounds$seconds, 1e-4))
})

test_that("given a fit, sandwich_check() simulates data like those of the fit", {
  data <- with_own_seed(test_seed(1),
                        data.frame(a = rnorm(12), b = rnorm(12) + 5 * (1:12 > 6), c = 0))
  for (model in list(clustering(~ a + b, components = 2),
                     clustering(~ a + b, components = 2, infer = TRUE),
                     binary_attributes(~ a + b, attributes = 2, infer = TRUE),
                     low_rank(rank = 1, infer = TRUE))) {
    for (method in list(ais(particles = 6, sigmoidal(100)), smc("data", particles = 10))) {
      fit <- evidence(model, data, method, seed = test_seed(1), progress = FALSE)
      check <- sandwich_check(fit, 2, seed = test_seed(2), progress = FALSE)
      expect_identical(dim(check), c(2L, 5L))
      expect_true(all(is.finite(check$gap)))
      expect_identical(attr(check, "chains"), if (method$name == "ais") 6 else 5)
      expect_identical(check$lower,
                       sandwich_check(fit, 2, seed = test_seed(2), progress = FALSE)$lower)
    }
  }
  text <- gsub("[ \n]+", " ", paste(utils::capture.output(print(check)), collapse = " "))
  expect_match(text, "2 data sets of 12 rows simulated from the fit, 5 chains each way",
               fixed = TRUE)
  expect_match(text, "This is advice, not a guarantee", fixed = TRUE)
  expect_output(print(check["gap"]), "gap")
})

test_that("with inferred variances gaps are large for coarse settings and small for fine ones", {
  data <- with_own_seed(test_seed(5), matrix(rnorm(160, rep(c(-2, 0, 2, 2), 40)), 40))
  gaps <- function(steps) {
    fit <- quiet_fit(clustering(components = 3, infer = TRUE), data,
                     ais(particles = 10, sigmoidal(steps)), seed = test_seed(), progress = FALSE)
    mean(sandwich_check(fit, fast_or_slow(4, 8), seed = test_seed(2), progress = FALSE)$gap)
  }
  coarse <- gaps(3)
  expect_gt(coarse, 5)
  expect_lt(abs(gaps(fast_or_slow(1000, 2000))), coarse / 5)
})

test_that("settled_model() fixes the settings of a model at those of a state", {
  state <- c(prior_sd = 4, noise_sd = 0.25, `proportion[1]` = 0.7, `proportion[2]` = 0.3,
             `label[1]` = 0)
  settled <- settled_model(clustering(components = 2, infer = TRUE), state)
  expect_identical(settled$args[c("infer", "prior_sd", "noise_sd", "proportions")],
                   list(infer = 0, prior_sd = 2, noise_sd = 0.5, proportions = c(0.7, 0.3)))
  expect_identical(settled_model(small, NULL), small)
  thermal <- evidence(small, cbind(1:4, 4:1), smc(particles = 10), seed = test_seed())
  refused(sandwich_check(thermal), "whose runs can be reversed")
})

test_that("columns that a formula makes cannot be simulated", {
  for (formula in list(~ I(a^2), ~ log(a) + b, ~ .))
    refused(bdmc(clustering(formula, components = 2), n = 10, method = ais(schedule = linear(5))),
            "must name plain columns to simulate data")
  expect_identical(names(bdmc(clustering(~ b + a, components = 2), n = 10,
                              method = ais(schedule = linear(5)), seed = test_seed(),
                              progress = FALSE)$data),
                   c("b", "a"))
  fit <- evidence(small, cbind(1:4, 4:1), ais(particles = 3, linear(5)), seed = test_seed())
  refused(sandwich_check(fit, data = iris),
          "`data` must be left out for a model with latent variables")
})

test_that("smc(\"data\") of one particle has the same estimate in evidence() and in bdmc()", {
  method <- smc("data", particles = 1)
  for (model in list(low_rank(rank = 2), binary_attributes(attributes = 2),
                     clustering(components = 2))) {
    chains <- fast_or_slow(60, 300)
    bounds <- bdmc(model, n = 10, columns = 3, method = method, chains = chains,
                   seed = test_seed(8))
    fits <- vapply(seq_len(chains), function(seed)
      quiet_fit(model, bounds$data, method, seed = test_seed(seed))$log_evidence, 0)
    expect_gt(stats::ks.test(fits, bounds$forward)$p.value, 1e-4)
  }
  # a model without latent variables: the particle moves, so that it follows the rows
  rows <- data.frame(y = c(rep(5, 10), rep(5.2, 10)))
  linear <- linear_regression(y ~ 1, sigma = 1, prior_sd = 3)
  truth <- evidence(linear, rows, exact())$log_evidence
  log_z <- vapply(seq_len(fast_or_slow(60, 300)), function(seed)
    quiet_fit(linear, rows, method, seed = test_seed(seed))$log_evidence, 0)
  # unbiased for Z, and with far less variance than a particle that stays at its prior draw
  z <- exp(log_z - truth)
  expect_lt(abs(mean(z) - 1), 4.5 * sd(z) / sqrt(length(z)))
  still <- colSums(dnorm(outer(rows$y, 3 * stats::qnorm(stats::ppoints(500)), "-"), log = TRUE))
  expect_lt(sd(log_z), sd(still) / 5)
})

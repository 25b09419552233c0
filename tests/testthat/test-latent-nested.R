# Nested sampling and the harmonic mean on models with latent variables: one by sweeps inside a
# wall, the other by chains.

run <- function(model, data, method, seed = 1)
  quiet_fit(model, data, method, seed = test_seed(seed), progress = FALSE)

small <- list(
  clustering(components = 3, proportions = c(0.5, 0.3, 0.2), prior_sd = 1.3, noise_sd = 0.8),
  low_rank(rank = 1, row_sd = 0.9, column_sd = 1.1, noise_sd = 0.8),
  binary_attributes(attributes = 2, probabilities = c(0.3, 0.6), prior_sd = 1.3, noise_sd = 0.8),
  clustering(components = 3, infer = TRUE, shape = 3, scale = 2),
  low_rank(rank = 1, infer = TRUE, shape = 3, scale = 2),
  binary_attributes(attributes = 2, infer = TRUE, shape = 3, scale = 2)
)
few_rows <- with_own_seed(test_seed(1), cbind(a = rnorm(6, sd = 1.5), b = rnorm(6)))

test_that("nested() and its errors agree with annealing and with rows one at a time", {
  runs <- fast_or_slow(10, 25)
  for (model in small[fast_or_slow(c(1, 3, 5), 1:6)]) {
    truth <- run(model, few_rows, ais(particles = fast_or_slow(700, 2000), sigmoidal(100)))
    other <- run(model, few_rows, smc("data", particles = fast_or_slow(1000, 4000), steps = 2))
    label <- paste(model$name, model$args$infer)
    expect_lt(abs(other$log_evidence - truth$log_evidence), 4 * sqrt(truth$se^2 + other$se^2),
              label = label)
    fits <- lapply(seq_len(runs), function(seed) run(model, few_rows, nested(live = 50), seed))
    error <- vapply(fits, `[[`, 0, "log_evidence") - truth$log_evidence
    se <- vapply(fits, `[[`, 0, "se")
    expect_lt(abs(mean(error)), 4 * sqrt(var(error) / runs + truth$se^2), label = label)
    expect_lt(abs(log(mean(se) / sd(error))), 3 / sqrt(runs), label = label)
    expect_lt(mean(vapply(fits, function(fit) fit$nested$rank_p < 1e-3, NA)), 0.1, label = label)
  }
})

test_that("sweeps under a likelihood constraint draw from the prior under that constraint", {
  # by rejection: states of the prior whose likelihood is high enough, against a long chain of
  # sweeps
  for (model in small) {
    encoded <- encode(model, few_rows)
    ask <- function(what, state, seed, ...) {
      answer <- .Call(ffi_model, model$name, encoded$args, encoded$rows, paste0("state_", what),
                      state, list(seed = c(test_seed(2), seed), ...))
      list(value = answer$value, state = answer$theta)
    }
    prior <- function(seed) {
      state <- ask("start", NULL, seed)$state
      for (i in 1:6) state <- ask("extend_blind", state, 1e4 * i + seed, seen = i - 1)$state
      state
    }
    # of latents, of parameters and of the likelihood itself
    look <- function(state) {
      latents <- utils::tail(state[seq_along(encoded$theta_names)],
                             if (model$name == "binary_attributes") 12 else 6)
      c(ask("log_lik", state, 1)$value, sum(latents), sum(latents * seq_along(latents)),
        latents[1] == latents[2], state[1:2])
    }
    draws <- lapply(seq_len(fast_or_slow(800, 3000)), prior)
    value <- vapply(draws, function(state) ask("log_lik", state, 1)$value, 0)
    # between two values that the likelihood takes, a fifth of the draws above
    distinct <- sort(unique(signif(value, 9)))
    floor <- mean(distinct[which.min(abs(ecdf(value)(distinct) - 0.8)) + 0:1])
    expected <- vapply(draws[value > floor], look, numeric(6))
    # chains from rejected draws' betters: each makes a few sweeps, so that wrong ones drift away
    found <- vapply(seq_len(sum(value > floor)), function(chain) {
      state <- draws[value > floor][[chain]]
      for (turn in 1:5) state <- ask("sweep_above", state, 10 * chain + turn, floor = floor,
                                     tie = 0.5)$state
      look(state)
    }, numeric(6))
    label <- paste(model$name, model$args$infer)
    expect_true(all(found[1, ] > floor - 1e-9), label = label)
    for (k in 1:6) {
      spread <- sqrt((var(expected[k, ]) + var(found[k, ])) / ncol(found))
      expect_lt(abs(mean(expected[k, ]) - mean(found[k, ])), 4 * spread + 1e-12,
                label = paste(label, k))
    }
    # and they do move
    expect_gt(mean(found[1, ] != expected[1, ]), 0.5, label = label)
  }
})

test_that("a plateau of the likelihood, where many states are alike, does not hold nested() up", {
  # far apart: all the posterior is in one partition of the rows and its labellings
  data <- matrix(c(-60, -59, 0, 1, 60, 61), dimnames = list(NULL, "a"))
  model <- clustering(components = 3, prior_sd = 60, noise_sd = 0.7)
  truth <- run(model, data, smc("data", particles = 2000))$log_evidence
  error <- vapply(1:20, function(seed) run(model, data, nested(live = 50), seed)$log_evidence, 0) -
    truth
  expect_lt(abs(mean(error)), 4 * sd(error) / sqrt(20))
  expect_lt(sd(error), 0.6)
})

test_that("draws of nested() are of the posterior", {
  model <- small[[1]]
  pair <- function(fit) sum(exp(fit$log_weights) * (fit$draws[, 1] == fit$draws[, 2]))
  expect_lt(abs(pair(run(model, few_rows, nested(live = 1000))) -
                pair(run(model, few_rows, smc("data", particles = 5000, steps = 3)))), 0.07)
})

test_that("nested() of latent variables refuses merging, continuing and other kernels", {
  fit <- run(small[[1]], few_rows, nested(live = 20))
  refused(c(fit, fit), "the same seed")
  refused(update(fit, tol = 1e-3), "cannot be merged or continued: their points are not all kept")
  refused(run(small[[1]], few_rows, nested(preset = "paper")),
          "which models with latent variables do not have")
  refused(run(small[[1]], few_rows, nested(kernel = slice())), "it is moved by Gibbs sweeps")
  expect_false(grepl("NaN", paste(utils::capture.output(print(summary(fit))), collapse = " ")))
})

test_that("the harmonic mean is far too high, likelihood weighting far too low", {
  models <- list(clustering(components = 6), low_rank(rank = 3), binary_attributes(attributes = 5))
  for (model in fast_or_slow(models[3], models)) {
    made <- bdmc(model, 30, 12, ais(schedule = sigmoidal(1000)), chains = 5, budgets = 1,
                 seed = test_seed(3), progress = FALSE)
    harmonic <- run(model, made$data, harmonic_mean(draws = 200))
    expect_gt(harmonic$log_evidence, max(made$bounds$upper) + 10, label = model$name)
    expect_match(harmonic$warnings, "overstates the evidence", all = FALSE)
    expect_lt(run(model, made$data, likelihood_weighting(5000))$log_evidence,
              min(made$bounds$lower) - 10, label = model$name)
  }
})

test_that("harmonic_mean() takes chains from an exact draw, or at the end of a run", {
  # so few and so noisy rows that even the harmonic mean converges
  model <- clustering(components = 2, noise_sd = 3)
  truth <- run(model, few_rows, smc("data", particles = 5000, steps = 2))$log_evidence
  fit <- run(model, few_rows, harmonic_mean(particles = 200, draws = 200))
  expect_lt(abs(fit$log_evidence - truth), 4 * fit$se)
  expect_lt(fit$se, 0.1)
  expect_equal(nrow(fit$draws), 200)
  encoded <- encode(model, few_rows)
  problem <- new_problem(model, encoded, harmonic_mean(particles = 50, draws = 400),
                         seed_words(test_seed(4)))
  problem$settings$from_state <-
    as.double(run(model, few_rows, smc("data", particles = 5))$parameters[1, ])
  out <- conduct(problem, encoded$rows)
  expect_lt(abs(drop(out$log_evidence) - truth), 5 * drop(out$se) + 0.05)
  expect_equal(drop(out$lambda_steps), 0)
})

test_that("runs can be saved between any two steps", {
  encoded <- encode(small[[6]], few_rows)
  for (method in list(nested(live = 20), harmonic_mean(particles = 10, draws = 20))) {
    problem <- new_problem(small[[6]], encoded, method, c(1, 2))
    whole <- conduct(problem, encoded$rows)
    for (slices in c(3, 40)) {
      again <- resumed(problem, encoded$rows, slices)
      expect_identical(again$log_evidence, whole$log_evidence)
      expect_identical(again$draws, whole$draws)
    }
  }
})

test_that("a plateau stays a plateau in spite of rounding, and its evidence is unbiased", {
  # all rows alike: of 4096 states 70 levels, each of many states
  data <- matrix(0, 4, 2, dimnames = list(NULL, c("a", "b")))
  model <- binary_attributes(attributes = 3, probabilities = 0.5, noise_sd = 0.1, prior_sd = 3)
  truth <- local({
    choices <- as.matrix(expand.grid(0:1, 0:1, 0:1))
    picks <- as.matrix(expand.grid(rep(list(1:8), 4)))
    log_sum_exp(apply(picks, 1, function(pick) {
      root <- chol(9 * tcrossprod(choices[pick, ]) + diag(0.01, 4))
      -12 * log(2) - 2 * sum(log(diag(root))) - 4 * log(2 * pi)
    }))
  })
  runs <- fast_or_slow(20, 80)
  error <- vapply(seq_len(runs), function(seed)
    run(model, data, nested(live = 200), seed)$log_evidence, 0) - truth
  expect_lt(abs(mean(error)), 3 * sd(error) / sqrt(runs) + 0.02)
})

test_that("fits that do not keep all dead points can be plotted", {
  fit <- run(small[[1]], few_rows, nested(live = 30))
  expect_equal(nrow(fit$nested$points), nrow(fit$nested$levels))
  expect_equal(sum(exp(fit$nested$points$log_weight)), 1)
  file <- tempfile(fileext = ".png")
  grDevices::png(file)
  for (type in c("evidence", "climb", "weight")) expect_silent(plot(fit, type = type))
  grDevices::dev.off()
})

# What must hold under each variant of the vectorised loops: tools/test.sh runs this file once more
# with LOGEVIDENCE_SIMD=plain and avx2. Densities against plain R, gradients against differences and
# against those of mini-batches, and short runs of each model against a known evidence. test-simd.R
# compares the variants with one another.

data <- regression_data()

test_that("densities of each family and their gradients are those of plain R", {
  cases <- regression_cases()
  for (name in names(cases)) {
    case <- cases[[name]]
    for (n in c(7, 64, 200)) {
      part <- data[seq_len(n), ]
      f <- model_functions(case$model, part)
      theta <- f$draw_prior(1, seed = test_seed(n))[1, ] / 3
      plain <- function(theta)
        unname(case$each(part, predictor_of(case$model, part, theta), further_of(f, theta)))
      info <- paste(name, n)
      expect_equal(drop(f$log_lik_each(theta)), plain(theta), tolerance = 1e-11, info = info)
      expect_equal(f$log_lik(theta), sum(plain(theta)), tolerance = 1e-11, info = info)
      slope <- vapply(seq_along(theta), function(j) {
        step <- replace(0 * theta, j, 1e-5)
        (sum(plain(theta + step)) - sum(plain(theta - step))) / 2e-5
      }, 0)
      expect_lt(max(abs(f$gradient(theta) - slope)), 1e-6 * max(abs(slope), n), label = info)
    }
  }
})

test_that("mini-batches of equal rows and control variates at their anchor are exact", {
  for (model in list(linear_model(3, 0.7), softmax_model(2, 3), mixture_model(2, 1))) {
    theta <- prior_draws(model, 1, 3)
    rows <- some_rows(model, 60, theta[, 1], 4)
    full <- function(rows)
      ask(model, "log_prior_grad", theta) + ask(model, "log_lik_grad", theta, rows)$gradient
    estimate <- function(rows, rule)
      run_kernel(sgld(), model, rows, theta, gradient = rule, seen = 60, lambda = 0,
                 answer = "gradient", anchor = theta[, 1], batch = 7)
    alike <- rows[, rep(1, 60), drop = FALSE]
    expect_equal(estimate(alike, "batch"), full(alike), tolerance = 1e-5, info = model$type)
    expect_equal(estimate(rows, "control"), full(rows), tolerance = 1e-5, info = model$type)
  }
})

#' Evidence of counts with mean exp(a + b x), a and b normal(0, 2.5), on a grid in plain R
count_truth <- function(x, y) {
  at <- seq(-5, 5, by = 0.02)
  prior <- stats::dnorm(at, 0, 2.5, log = TRUE)
  value <- outer(prior, prior, `+`)
  for (i in seq_along(y))
    value <- value + stats::dpois(y[i], exp(outer(at, x[i] * at, `+`)), log = TRUE)
  log_sum_exp(value) + 2 * log(0.02)
}

test_that("short runs of each model have the right evidence", {
  counts <- data[1:15, ]
  count_problem <- function(name, model) list(name = name, model = model, data = counts, se = 0,
                                              log_evidence = count_truth(counts$x, counts$count))
  problems <- c(
    lapply(c("cars", "softmax_tiny", "iris_petal", "mix2_dozen"), truth_problem),
    list(
      count_problem("poisson", regression(count ~ x, family = poisson(), prior_sd = 2.5)),
      count_problem("density", density(~ dpois(count, exp(m), log = TRUE), m = ~ x,
                                       prior = normal(0, 2.5)))
    )
  )
  for (problem in problems)
    for (method in list(sgais(), smc(particles = 100))) {
      fit <- quiet_fit(problem$model, problem$data, method, seed = test_seed(), progress = FALSE)
      expect_lt(abs(fit$log_evidence - problem$log_evidence), 4.5 * sqrt(fit$se^2 + problem$se^2),
                label = paste(problem$name, method$name))
    }
  # past the rows of its early phase, where the walk goes by mini-batches
  problem <- truth_problem("linear1000")
  walk <- sgais(particles = 30, early = list(rows = 300, work = 0), audit = FALSE)
  fit <- quiet_fit(problem$model, problem$data, walk, seed = test_seed())
  expect_lt(abs(fit$log_evidence - problem$log_evidence), 4.5 * fit$se)
})

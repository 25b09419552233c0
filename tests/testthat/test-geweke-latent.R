# Geweke's joint distribution test for the sweeps of every latent model, forwards and backwards, with known and with unknown
# settings, tempered and not: the machinery is in helper-geweke.R, long runs and their pictures in bench/geweke.R.

# Greatest deviation over what chance allows, one time in 10^5
pp_ratio <- function(case, known, lambda = 1, backwards = FALSE, broken = list(), draws = 1500, seed = 1) {
  marginal <- marginal_draws(latent_joint(case, known, lambda, broken = broken["prior"], seed = test_seed(seed)), draws, seed)
  joint <- latent_joint(case, known, lambda, backwards, broken, seed = test_seed(seed) + 1e5)
  table <- pp_table(marginal, conditional_draws(joint, draws, case$thin, seed = seed + 1e5), alpha = 1e-5)
  max(table$deviation / table$bound)
}

test_that("every sweep leaves the joint distribution of state and data alone", {
  seed <- 100
  for (case in latent_cases) for (known in c(TRUE, FALSE)) for (lambda in c(1, 0.5)) for (backwards in c(FALSE, TRUE)) {
    seed <- seed + 1
    expect_lt(pp_ratio(case, known, lambda, backwards, seed = seed), 1,
              label = paste("deviation over its bound,", case$type, if (known) "known" else "unknown", lambda,
                            if (backwards) "backwards" else "forwards"))
  }
})

test_that("broken sweeps are found out", {
  found <- function(case, known, ..., lambda = 1, backwards = FALSE, draws = 2000) {
    expect_gt(pp_ratio(case, known, lambda, backwards, list(...), draws, seed = 200), 1,
              label = paste("deviation over its bound,", case$type, if (known) "known" else "unknown", "broken", names(list(...))))
  }
  noisier <- function(case) function(state) replace(state, case$noise, 3 * state[case$noise])
  for (case in latent_cases) {
    # labels and bits say less of what is wrong than numbers do, where nothing else is moved
    found(case, TRUE, lambda = 1, state = noisier(case), draws = 4000)
    found(case, FALSE, state = noisier(case))
    found(case, FALSE, args = list(shape = 3), backwards = TRUE)
    found(case, FALSE, args = list(scale = 3))
    # the constant of a likelihood to a power depends on its variance
    found(case, FALSE, prior = TRUE, lambda = 0.5, draws = 500)
  }
})

test_that("a sweep at a wrong temperature, or that overlooks a row, is found out", {
  wrong <- function(case, known, broken, lambda = 1, draws = 4000)
    expect_gt(pp_ratio(case, known, lambda, broken = broken, draws = draws, seed = 300), 1,
              label = paste("deviation over its bound,", case$type, known, lambda))
  for (case in latent_cases) {
    wrong(case, TRUE, list(lambda = 0.3))
    wrong(case, FALSE, list(lambda = 0.5), draws = 1500)
    wrong(case, FALSE, list(lambda = 1), lambda = 0.5, draws = 2000)
    wrong(case, FALSE, list(seen = case$n - 1))
  }
})

test_that("the P-P plot is that of two distribution functions, and correlated draws are worth less", {
  expect_equal(pp_deviation(1:4, c(1.5, 2.5, 3.5, 4.5)), 1 / 4)
  expect_equal(pp_deviation(c(0, 0, 1, 1), c(0, 1, 1, 1)), 1 / 4)
  with_own_seed(test_seed(1), {
    white <- stats::rnorm(4000)
    slow <- as.vector(vapply(1:4, function(i) as.vector(stats::filter(stats::rnorm(1000), 0.8, "recursive")), numeric(1000)))
  })
  expect_equal(pp_deviation(white, slow), unname(suppressWarnings(stats::ks.test(white, slow))$statistic))
  expect_gt(thinned_worth(white), 3000)
  expect_lt(abs(thinned_worth(slow) / 4000 - 1 / 9), 0.06)
})

# Geweke's joint distribution test for the sweeps of every latent model, forwards and backwards,
# with known and with unknown settings, tempered and not: the machinery is in helper-geweke.R, long
# runs and their pictures in bench/geweke.R.

# Greatest deviation over what chance allows, one time in 10^5
pp_ratios <- function(case, known, lambda = 1, backwards = FALSE, broken = list(), draws = 1200,
                      seed = 1) {
  told <- broken[names(broken) == "prior"]
  marginal <- marginal_draws(latent_joint(case, known, lambda, broken = told,
                                          seed = test_seed(seed)), draws, seed)
  vapply(backwards, function(way) {
    joint <- latent_joint(case, known, lambda, way, broken,
                          seed = test_seed(seed) + 1e5 * (1 + way))
    table <- pp_table(marginal, conditional_draws(joint, draws, seed = seed + 1e5), alpha = 1e-5)
    max(table$deviation / table$bound)
  }, 0)
}
about <- function(case, known, ...)
  paste("deviation over its bound,", case$type, if (known) "known" else "unknown", ...)

test_that("no sweep changes the joint distribution of state and data", {
  seed <- 100
  for (case in latent_cases) for (known in c(TRUE, FALSE)) for (lambda in c(1, 0.5)) {
    seed <- seed + 1
    if (!is_slow() && (lambda < 1) == known) next # fast: lambda = 0.5 with unknown settings only
    draws <- if (case$thin[[if (known) "known" else "inferred"]] < 5) 3000 else 1200
    draws <- draws / fast_or_slow(3, 1)
    expect_lt(max(pp_ratios(case, known, lambda, c(FALSE, TRUE), draws = draws, seed = seed)), 1,
              label = about(case, known, lambda))
  }
})

test_that("the joint distribution test detects wrong sweeps", {
  found <- function(case, known, broken, draws, lambda = 1, backwards = FALSE) {
    # factors are numbers, and say more than labels and bits
    if (case$type == "low_rank") draws <- 600
    expect_gt(pp_ratios(case, known, lambda, backwards, broken, draws, seed = 200), 1,
              label = about(case, known, lambda, "but", paste(names(broken), collapse = " ")))
  }
  for (case in latent_cases[fast_or_slow(c(1, 3), 1:3)]) {
    noisier <- function(state) replace(state, case$noise, 3 * state[case$noise])
    found(case, FALSE, list(args = list(shape = 3)), 500, backwards = TRUE)
    # the constant of a likelihood to a power depends on its variance
    found(case, FALSE, list(prior = TRUE), 500, lambda = 0.5)
    if (!is_slow()) next
    found(case, TRUE, list(state = noisier), 2500)
    found(case, FALSE, list(state = noisier), 800)
    found(case, TRUE, list(lambda = 0.3), 2500)
    found(case, FALSE, list(lambda = 0.4), 1000)
    found(case, FALSE, list(lambda = 1), 2000, lambda = 0.5)
    found(case, FALSE, list(args = list(scale = 3)), 500)
  }
  skip_unless_slow()
  # a row that is overlooked, though its latent is moved in its turn
  found(latent_cases$clustering, FALSE, list(seen = 4), 3000)
})

test_that("the P-P plot compares distribution functions, and its band allows for correlation", {
  expect_equal(pp_deviation(1:4, c(1.5, 2.5, 3.5, 4.5)), 1 / 4)
  expect_equal(pp_deviation(c(0, 0, 1, 1), c(0, 1, 1, 1)), 1 / 4)
  with_own_seed(test_seed(1), {
    white <- stats::rnorm(4000)
    slow <- as.vector(vapply(1:4, function(i)
                               as.vector(stats::filter(stats::rnorm(1000), 0.8, "recursive")),
                               numeric(1000)))
  })
  expect_equal(pp_deviation(white, slow),
               unname(suppressWarnings(stats::ks.test(white, slow))$statistic))
  expect_gt(thinned_worth(white), 3000)
  expect_lt(abs(thinned_worth(slow) / 4000 - 1 / 9), 0.06)
})

# Geweke's joint distribution test: parameters from the prior, data given them, then in turn a few moves of the
# parameters given the data and fresh data given the parameters.  If the moves are right, parameters and data are
# distributed as at the start, however often that is repeated.  Chains are short, many and independent, so that the
# change of each test function has a plain z-score.

joint_test <- function(kernel, model, n, chains, turns = 3, moves = 4, seed = 1, lambda = 1, seen = n, believed = model,
                       functions, ...) {
  set.seed(test_seed(seed))
  covariates <- matrix(stats::rnorm(n * model$width), model$width)
  theta <- ask(model, "draw_prior", extra = list(n = chains, seed = words(seed)))
  fresh <- function(theta, s) ask(model, "simulate", theta, covariates, list(seed = c(test_seed(seed), s)))
  change <- lapply(seq_len(chains), function(i) {
    x <- theta[, i, drop = FALSE]
    y <- fresh(x, 100 * i)
    before <- functions(drop(x), y)
    for (turn in seq_len(turns)) {
      if (turn > 1) y <- fresh(x, 100 * i + turn)
      x <- run_kernel(kernel, believed, y, x, words = c(i, 10 * test_seed(seed) + turn), moves = moves, seen = seen,
                      lambda = lambda, ...)
      dim(x) <- c(model$dim, 1)
    }
    functions(drop(x), y) - before
  })
  z_score(do.call(rbind, change))
}

# The models, what is looked at (bounded, as some priors have no variance), and steps that suit them.
joint_cases <- list(
  mean = list(
    model = mean_model(1, 0.5, 1.5), n = 3,
    functions = function(x, y) c(x, x^2, x * mean(y), mean(y)^2, stats::pnorm(x), (x - mean(y))^2),
    kernels = list(rwm(1), slice(4), hmc(3, 0.5), mala(0.8), baoab(0.15), sghmc(0.02, 0.1),
                   sghmc(0.02, 0.1, refresh = TRUE), sgld(0.02))
  ),
  linear = list(
    model = linear_model(2, 0.8, c(0, 1), c(1, 0.5)), n = 4,
    functions = function(x, y) {
      r <- y[3, ] - drop(x %*% y[1:2, ])
      c(x, x^2, x[1] * x[2], sum(r), sum(r^2), tanh(sum(r^2) / 3), x * y[3, 1])
    },
    kernels = list(rwm(0.4), slice(3), hmc(3, 0.3), mala(0.4), baoab(0.1), sghmc(0.01, 0.1), sgld(0.01))
  ),
  softmax = list(
    model = softmax_model(2, 2), n = 3,
    functions = function(x, y) {
      # the last: how well the labels are explained
      c(x, x^2, x[1] * x[3], x * y[3, 1], x[1:2] * y[3, 2],
        sum(tanh(drop((x[3:4] - x[1:2]) %*% y[1:2, ]) * (2 * y[3, ] - 1))))
    },
    kernels = list(rwm(0.7), slice(3), hmc(3, 0.6), mala(0.7), baoab(0.15), sghmc(0.02, 0.1), sgld(0.02))
  ),
  mixture = list(
    model = mixture_model(2, 1, shape = 4, rate = 4), n = 4,
    functions = function(x, y) {
      c(tanh(x), x[2:5]^2 / (1 + x[2:5]^2), tanh(x[2]) * tanh(x[3]), tanh(mean(y)), tanh(x[2] * mean(y)),
        tanh(x[4]) * tanh(stats::var(y[1, ])), tanh(x[1]) * tanh(x[2] * y[1, 1]))
    },
    kernels = list(rwm(0.4), slice(3), hmc(3, 0.25), mala(0.25), baoab(0.05), sghmc(0.004, 0.1), sgld(0.004))
  )
)

# The momenta that sghmc() draws anew for each distribution cost it a bias that falls only with the number of moves made
# before the next draw: it gets more of them.
test_joint <- function(chains, moves, turns = 2, sghmc_moves = moves) {
  for (case in joint_cases) for (k in seq_along(case$kernels)) {
    kernel <- case$kernels[[k]]
    expect_z(joint_test(kernel, case$model, case$n, chains, turns, if (kernel$name == "sghmc") sghmc_moves else moves,
                        seed = 80 + k, functions = case$functions))
  }
}

test_that("every kernel leaves every model's joint distribution of parameters and data alone", {
  test_joint(1000, 5, sghmc_moves = 20)
})

test_that("it does so on longer runs", {
  skip_unless_slow()
  test_joint(15000, 10, 4, sghmc_moves = 60)
})

test_that("rows count the same whether seen or in a chunk at lambda = 1", {
  case <- joint_cases$linear
  for (kernel in case$kernels[c(1, 2, 4)])
    expect_z(joint_test(kernel, case$model, case$n, 700, turns = 2, seed = 91, seen = 2, functions = case$functions))
})

test_that("mini-batches are left alone too, by small steps", {
  case <- joint_cases$softmax
  for (kernel in list(baoab(0.05), sghmc(0.002, 0.1), sgld(0.002)))
    expect_z(joint_test(kernel, case$model, case$n, 700, turns = 2, seed = 92, moves = 10, gradient = "batch",
                        batch = 2, functions = case$functions))
})

test_that("a wrong target is found out", {
  largest <- function(case, kernel, ..., moves = 15) {
    max(abs(joint_test(kernel, case$model, case$n, 1000, turns = 3, moves = moves, seed = 93, ...,
                       functions = case$functions)))
  }
  changed <- function(model, setting, factor) {
    model$args[[setting]] <- factor * model$args[[setting]]
    model
  }
  for (kernel in list(rwm(0.8), hmc(3, 0.5), baoab(0.15))) {
    case <- joint_cases$mean
    expect_gt(largest(case, kernel, seen = 0, lambda = 0.5), 6)
    expect_gt(largest(case, kernel, believed = changed(case$model, "sigma", 1.5)), 6)
    expect_gt(largest(case, kernel, believed = changed(case$model, "prior_sd", 0.7)), 6)
  }
  case <- joint_cases$linear
  case$n <- 8
  expect_gt(largest(case, hmc(3, 0.3), seen = 0, lambda = 0.3), 6)
  expect_gt(largest(case, hmc(3, 0.3), believed = changed(case$model, "sigma", 1.5)), 6)
  case <- joint_cases$softmax
  case$n <- 8 # labels say little each
  expect_gt(largest(case, hmc(3, 0.6), seen = 0, lambda = 0.1), 6)
  case <- joint_cases$mixture
  expect_gt(largest(case, hmc(3, 0.25), believed = changed(case$model, "mean_scale", 0.6)), 6)
})

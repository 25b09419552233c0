# Geweke's joint distribution test of kernels, see helper-geweke.R: chains are short, many and
# independent, so that the change of each test function has a plain z-score. kernel_chains() moves
# the seeds.

joint_cases <- kernel_cases()
joint_test <- function(...) {
  chains <- kernel_chains(...)
  z_score(chains$after - chains$before)
}

# The momenta that sghmc() draws anew for each distribution cost it a bias that falls only with the
# number of moves made before the next draw: it gets more of them.
test_joint <- function(chains, moves, turns = 2, sghmc_moves = moves) {
  for (case in joint_cases) for (k in seq_along(case$kernels)) {
    kernel <- case$kernels[[k]]
    expect_z(joint_test(kernel, case$model, case$n, chains, turns,
                        if (kernel$name == "sghmc") sghmc_moves else moves,
                        seed = 80 + k, functions = case$functions))
  }
}

test_that("no kernel changes a model's joint distribution of parameters and data", {
  test_joint(fast_or_slow(150, 1000), 5, sghmc_moves = 20)
})

test_that("longer runs of kernels do not change the joint distribution either", {
  skip_unless_slow()
  test_joint(15000, 10, 4, sghmc_moves = 60)
})

test_that("rows seen before and rows of a chunk at lambda = 1 have the same weight", {
  case <- joint_cases$linear
  for (kernel in case$kernels[c(1, 2, 4)])
    expect_z(joint_test(kernel, case$model, case$n, 700, turns = 2, seed = 91, seen = 2,
                        functions = case$functions))
})

test_that("with mini-batches and small steps the joint distribution does not change", {
  case <- joint_cases$softmax
  for (kernel in list(baoab(0.05), sghmc(0.002, 0.1), sgld(0.002)))
    expect_z(joint_test(kernel, case$model, case$n, 700, turns = 2, seed = 92, moves = 10,
                        gradient = "batch", batch = 2, functions = case$functions))
})

test_that("the joint distribution test detects a wrong target", {
  largest <- function(case, kernel, ..., moves = 15) {
    max(abs(joint_test(kernel, case$model, case$n, 1000, turns = 3, moves = moves, seed = 93, ...,
                       functions = case$functions)))
  }
  changed <- function(model, setting, factor) {
    model$args[[setting]] <- factor * model$args[[setting]]
    model
  }
  kernels <- list(rwm(0.8), hmc(3, 0.5), baoab(0.15))
  for (kernel in fast_or_slow(list(), kernels)) {
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

# Kernels leave their target where it is, and bring particles there that are not.

gaussian_cases <- function() {
  mean <- mean_model(1.5, 0.5, 2)
  linear <- linear_model(3, 0.8, 0, c(1, 2, 3))
  mean_rows <- some_rows(mean, 12, 1, 71)
  linear_rows <- some_rows(linear, 30, c(0.5, -1, 0.2), 72)
  linear_rows[2, ] <- linear_rows[1, ] + 0.3 * linear_rows[2, ] # correlated covariates
  list(list(model = mean, rows = mean_rows), list(model = linear, rows = linear_rows))
}
splits <- function(n) list(c(seen = n, lambda = 0), c(seen = round(0.6 * n), lambda = 0.5),
                           c(seen = 0, lambda = 0.5))

invariance <- function(kernel, case, split, moves, m = 3000, seed = 1, metric = TRUE, ...) {
  target <- gaussian_posterior(case$model, case$rows, split[["seen"]], split[["lambda"]])
  start <- gaussian_draws(target, m, seed, ...)
  precision <- if (metric) target$precision else diag(diag(target$precision), case$model$dim)
  end <- run_kernel(kernel, case$model, case$rows, start, seed, moves = moves,
                    seen = split[["seen"]], lambda = split[["lambda"]], precision = precision)
  list(start = whitened_moments(start, target), end = whitened_moments(end, target),
       moved = mean(end != start))
}

exact_kernels <- list(slice = slice(), slice_wide = slice(width = 30), rwm = rwm(),
                      rwm_large = rwm(step_size = 4), hmc = hmc(), hmc_wild = hmc(3, 1.5),
                      mala = mala(),
                      mala_large = mala(step_size = 1.5), baoab = baoab(),
                      baoab_large = baoab(step_size = 1.2))

test_that("exact kernels leave the posterior unchanged", {
  for (case in gaussian_cases()) for (split in splits(ncol(case$rows)))
    for (name in names(exact_kernels)) {
    found <- invariance(exact_kernels[[name]], case, split, 6, seed = nchar(name))
    expect_z(z_score(found$end))
    # what is left of the start's own randomness cancels in the difference: a sharper look
    expect_z(z_score(found$end - found$start))
    expect_gt(found$moved, 0.05)
  }
})

test_that("exact kernels leave a target unchanged that has another scale than their metric", {
  for (case in gaussian_cases()[2]) for (kernel in list(rwm(0.3), hmc(5, 0.3), mala(0.4))) {
    found <- invariance(kernel, case, c(seen = 20, lambda = 0.5), 5, metric = FALSE)
    expect_z(z_score(found$end - found$start))
  }
})

test_that("exact kernels bring scattered particles to the target", {
  for (case in gaussian_cases()) {
    split <- splits(ncol(case$rows))[[2]]
    for (kernel in list(rwm(step_size = 1.5), hmc(), mala(step_size = 1), baoab()))
      expect_z(z_score(invariance(kernel, case, split, 80, 1500, spread = 3, shift = 2)$end))
  }
})

test_that("Langevin dynamics sample a normal target without step-size error, from the first move", {
  case <- gaussian_cases()[[2]]
  split <- c(seen = 20, lambda = 0.5)
  for (h in c(0.3, 1, 1.7)) for (friction in c(0.2, 2)) for (moves in c(1, 2, 3, 10)) {
    found <- invariance(baoab(step_size = h, friction = friction, clip = 100), case, split, moves,
                        6000, seed = moves)
    expect_z(z_score(found$end - found$start))
    expect_z(z_score(found$end))
  }
})

test_that("known gradient noise is subtracted from the injected noise of momenta", {
  model <- linear_model(1, 1, 0, 10)
  rows <- some_rows(model, 400, 0.5, 71)
  exact <- gaussian_posterior(model, rows)
  scale <- sqrt(1 / drop(exact$precision))
  # a batch of its own for each particle: each is a run
  temperature <- function(noise) {
    ends <- vapply(1:3000, function(s) {
      drop(run_kernel(baoab(), model, rows, exact$mean + scale * cos(s), s, gradient = "batch",
                      batch = 200, noise = noise, precision = exact$precision, moves = 30))
    }, 0)
    mean((ends - exact$mean)^2) / scale^2
  }
  slopes <- rows[1, ] * (rows[2, ] - rows[1, ] * exact$mean)
  noise <- 400^2 / 200 * mean((slopes - mean(slopes))^2) * scale^2
  heats <- 0.7^2 / 4 * (1 + exp(-1.4)) / (1 - exp(-1.4))
  expect_gt(heats * noise, 0.2)
  chance <- 4 * sqrt(2 / 3000)
  expect_lt(abs(temperature(0) / (1 + heats * noise) - 1), chance)
  expect_lt(abs(temperature(noise) - 1), chance)
})

test_that("mini-batches add rate / (2 friction batch) to the variance, shared or own", {
  # n rows of information 1, so that the posterior has the variance 1 / n
  n <- 2000
  model <- linear_model(1, 1, 0, 1e6)
  rows <- with_own_seed(test_seed(5), rbind(1, rnorm(n)))
  exact <- gaussian_posterior(model, rows)
  rate <- 0.02
  friction <- 0.2
  batch <- 20
  added <- rate / (2 * friction * batch) * var(rows[2, ])
  particles <- 40
  # the mean over particles of squared distances from the posterior's mean, and their variance
  spread <- function(own, noise = 0, size = batch) {
    ends <- vapply(seq_len(fast_or_slow(150, 600)), function(s) {
      start <- exact$mean + sqrt(1 / n) * rnorm(particles)
      at <- drop(run_kernel(sghmc(rate, friction, noise), model, rows, matrix(start, 1), s,
                            gradient = "batch", batch = size, own_batches = own, moves = 200,
                            mixed = 0))
      c(mean((at - exact$mean)^2), var(at), (mean(at) - exact$mean)^2)
    }, numeric(3))
    list(mean = rowMeans(ends), se = apply(ends, 1, sd) / sqrt(ncol(ends)))
  }
  set.seed(test_seed(6))
  near <- function(found, expected) expect_true(all(
    abs(found$mean - expected) < 4.5 * found$se + 0.03 * expected))
  near(spread(1), c(1 / n + added, 1 / n + added, (1 / n + added) / particles))
  # what is shared moves the mean, and does not widen the cloud
  near(spread(0), c(1 / n + added, 1 / n, 1 / n / particles + added))
  # the noise that is measured is taken off, up to what is injected; each move has two batches
  near(spread(1, "adaptive", 100), c(1 / n, 1 / n, 1 / n / particles))
  near(spread(1, "adaptive"), c(added / 2, added / 2, added / 2 / particles))
  expect_gt(added * n, 3)
})

test_that("stochastic gradient kernels are right up to their step size", {
  for (case in gaussian_cases()) {
    n <- ncol(case$rows)
    split <- splits(n)[[2]]
    size <- split[["seen"]] + split[["lambda"]] * (n - split[["seen"]])
    target <- gaussian_posterior(case$model, case$rows, split[["seen"]], split[["lambda"]])
    largest <- max(eigen(target$precision, TRUE, TRUE)$values)
    for (kernel in list(sgld(rate = 0.02 * size / largest),
                        sghmc(rate = 0.002 * size / largest, friction = 0.1),
                        sghmc(rate = 0.01 * size / largest, friction = 0.1, refresh = TRUE))) {
      found <- invariance(kernel, case, split, 30, 2000)
      # Euler's error in a variance is half of eta times the precision, 1%, less the part not yet
      # reached
      bias <- colMeans(found$end - found$start)
      expect_true(all(abs(bias) < 0.015 +
                      4.5 * apply(found$end - found$start, 2, stats::sd) / sqrt(2000)))
      expect_true(all(abs(colMeans(found$end)) < 0.015 +
                      4.5 * apply(found$end, 2, stats::sd) / sqrt(2000)))
    }
  }
})

test_that("SGLD has exactly the stationary variance of Euler's scheme", {
  # x <- x - eta P x + N(0, 2 eta): variance 1 / (P (1 - eta P / 2))
  case <- gaussian_cases()[[1]]
  target <- gaussian_posterior(case$model, case$rows)
  precision <- drop(target$precision)
  eta <- 0.5 / precision
  # SGHMC with full friction is SGLD
  for (kernel in list(sgld(rate = eta * 12), sghmc(rate = eta * 12, friction = 1))) {
    end <- run_kernel(kernel, case$model, case$rows, gaussian_draws(target, 8000), moves = 40)
    z <- (drop(end) - target$mean) * sqrt(precision)
    expect_z(z_score(cbind(z, z^2), c(0, 1 / (1 - 0.25))))
  }
})

test_that("a rate is per observation, of which the chunk counts lambda times or in full", {
  case <- gaussian_cases()[[1]]
  eta <- function(kernel, seen, lambda)
    attr(run_kernel(kernel, case$model, case$rows, 0, moves = 1, seen = seen, lambda = lambda),
         "step_size")
  for (make in list(sgld, sghmc)) {
    expect_equal(eta(make(rate = 0.6), 10, 0.5), 0.6 / 11)
    expect_equal(eta(make(rate = 0.6, tempered = FALSE), 10, 0.5), 0.6 / 12)
    expect_equal(eta(make(rate = 0.6), 0, 0.01), 0.6)
  }
})

test_that("assumed gradient noise reduces the injected noise", {
  case <- gaussian_cases()[[1]]
  start <- matrix(0.3, 1, 20000)
  eta <- 0.05
  moved <- function(kernel) drop(run_kernel(kernel, case$model, case$rows, start, moves = 1))
  for (noise in c(0, 4, 19)) {
    x <- moved(sgld(rate = eta * 12, noise = noise))
    expect_lt(abs(stats::var(x) / (2 * (1 - noise * eta) * eta) - 1), 4.5 * sqrt(2 / 20000))
  }
  expect_equal(stats::sd(moved(sgld(rate = eta * 12, noise = 1e6))), 0)
})

test_that("kernels with an accept step find the step size for their acceptance rate", {
  model <- linear_model(20, 1, 0, 1)
  rows <- some_rows(model, 40, rep(0.2, 20), 73)
  target <- gaussian_posterior(model, rows)
  start <- gaussian_draws(target, 200)
  for (case in list(list(hmc(), 0.8), list(hmc(accept = 0.6), 0.6), list(mala(), 0.65),
                    list(mala(accept = 0.9), 0.9), list(rwm(), 0.234))) {
    found <- run_kernel(case[[1]], model, rows, start, moves = 10, distributions = 40,
                        precision = target$precision)
    expect_lt(abs(attr(found, "acceptance") - case[[2]]), 0.08)
    expect_gt(attr(found, "step_size"), 0)
  }
  one <- gaussian_cases()[[1]]
  target <- gaussian_posterior(one$model, one$rows)
  found <- run_kernel(rwm(), one$model, one$rows, gaussian_draws(target, 400), moves = 2,
                      distributions = 40, precision = target$precision)
  expect_lt(abs(attr(found, "acceptance") - 0.44), 0.08)
})

test_that("a given step size is kept", {
  case <- gaussian_cases()[[1]]
  for (kernel in list(rwm(0.123), mala(0.123), hmc(4, 0.123))) {
    found <- run_kernel(kernel, case$model, case$rows, matrix(0, 1, 10), moves = 2,
                        distributions = 5)
    expect_identical(attr(found, "step_size"), 0.123)
  }
})

test_that("the move of a particle does not depend on those beside it", {
  case <- gaussian_cases()[[2]]
  start <- gaussian_draws(gaussian_posterior(case$model, case$rows), 7)
  for (kernel in list(rwm(0.1), mala(0.1), baoab(0.1), sghmc(), sgld(0.01))) {
    all <- run_kernel(kernel, case$model, case$rows, start, moves = 5)
    some <- run_kernel(kernel, case$model, case$rows, start[, 1:3], moves = 5)
    expect_identical(as.vector(all[, 1:3]), as.vector(some))
    # neighbours from one start are uncorrelated
    same <- run_kernel(kernel, case$model, case$rows, start[, rep(1, 2000)], moves = 5)
    expect_z(diag(stats::cor(t(same[, -1]), t(same[, -2000]))) * sqrt(1999))
  }
})

test_that("hmc() moves alike after a change of distribution and from a fresh start", {
  model <- softmax_model(2, 3)
  truth <- c(1, 0, -1, 0.5, 0, -0.5)
  rows <- some_rows(model, 300, truth, 81)
  set.seed(test_seed(82))
  theta <- truth + matrix(0.1 * stats::rnorm(180), 6)
  move <- function(...) run_kernel(hmc(4, 0.05), model, rows, theta, ...)
  fresh <- move(seen = 100, lambda = 0.7)
  expect_false(isTRUE(all.equal(as.vector(fresh), as.vector(move(seen = 100, lambda = 0.2)))))
  # another exponent, upwards and downwards; the same again
  for (before in c(0.2, 1, 0.7))
    expect_equal(move(seen = 100, lambda = c(before, 0.7), moves = c(0, 1), distributions = 2),
                 fresh, tolerance = 1e-12)
  # the chunk joins the rows seen; other rows seen
  whole <- move(seen = 300)
  expect_equal(move(seen = c(100, 300), lambda = c(1, 0), moves = c(0, 1), distributions = 2),
               whole, tolerance = 1e-12)
  for (before in c(50, 200))
    expect_equal(move(seen = c(before, 100), lambda = c(0.5, 0.7), moves = c(0, 1),
                      distributions = 2), fresh, tolerance = 1e-12)
})

test_that("moves are reproducible by seed and do not change their start", {
  case <- gaussian_cases()[[2]]
  start <- gaussian_draws(gaussian_posterior(case$model, case$rows), 5)
  kept <- start + 0
  for (kernel in list(rwm(0.1), hmc(3, 0.1), baoab(0.1), sghmc(), sgld())) {
    first <- run_kernel(kernel, case$model, case$rows, start, 5, moves = 3)
    expect_identical(run_kernel(kernel, case$model, case$rows, start, 5, moves = 3), first)
    expect_false(identical(as.vector(run_kernel(kernel, case$model, case$rows, start, 6,
                                                moves = 3)), as.vector(first)))
    expect_identical(start, kept)
  }
})

test_that("no kernel moves to a point that is not a number", {
  model <- mixture_model(3, 2)
  rows <- some_rows(model, 50, prior_draws(model, 1, 74)[, 1], 74)
  set.seed(test_seed(75))
  wild <- matrix(sample(c(-1, 1), model$dim * 40, TRUE) * 10^stats::runif(model$dim * 40, -2, 6),
                 model$dim)
  for (kernel in list(rwm(), hmc(), mala(), baoab(), sghmc(), sgld(), sgld(rate = 1e6),
                      hmc(10, 100), baoab(clip = 1e5))) {
    found <- run_kernel(kernel, model, rows, wild, moves = 5)
    expect_false(anyNA(found))
  }
})

test_that("particles from a far start reach the target", {
  # far outside, where the density is zero for all that a double can say but its slope is not
  case <- gaussian_cases()[[2]]
  target <- gaussian_posterior(case$model, case$rows)
  for (kernel in list(hmc(), baoab())) {
    start <- target$mean + matrix(if (kernel$name == "hmc") 1e4 else 30, 3, 200)
    end <- run_kernel(kernel, case$model, case$rows, start, moves = 400,
                      precision = target$precision)
    expect_z(z_score(whitened_moments(end, target)))
  }
})

# ---- other targets than normal ones: against sums over a grid ----

test_that("kernels sample a posterior that is not normal", {
  skip_unless_slow()
  # few rows and a wide prior leave a skewed posterior
  model <- softmax_model(1, 2, 3)
  rows <- rbind(c(1, 2, 0.5), c(0, 0, 1))
  grid <- as.matrix(expand.grid(seq(-12, 12, 0.1), seq(-12, 12, 0.1)))
  density <- exp(ask(model, "log_prior", t(grid)) + ask(model, "log_lik", t(grid), rows))
  density <- density / sum(density)
  expected <- c(sum(density * grid[, 1]), sum(density * grid[, 1]^2),
                sum(density * grid[, 1] * grid[, 2]))
  for (kernel in list(rwm(1.5), hmc(5, 0.7), mala(1), baoab(step_size = 0.05), sghmc(0.005, 0.1),
                      sgld(0.005))) {
    end <- run_kernel(kernel, model, rows, prior_draws(model, 4000, 76), moves = 3000,
                      precision = diag(2) / 4)
    expect_z((c(mean(end[1, ]), mean(end[1, ]^2), mean(end[1, ] * end[2, ])) - expected) /
               c(stats::sd(end[1, ]), stats::sd(end[1, ]^2), stats::sd(end[1, ] * end[2, ])) *
               sqrt(4000))
  }
})

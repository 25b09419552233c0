# Nested sampling: right against known evidence, its sums and live counts against plain R, runs that
# merge and go on, and kernels inside a wall of the likelihood.

from_prior <- logevidence::kernel_prior_draws # the helpers have another function of this name

run <- function(problem, method = nested(100), seed = 1, ...) {
  quiet_fit(problem$model, problem$data, method, seed = test_seed(seed), progress = FALSE, ...)
}
three <- c(list(name = "mean of three"), mean_problem(c(1.2, 0.4, 2.1)))
line <- truth_problem("cars")

# Known evidence -----------------------------------------------------------------------------------

test_that("nested() is right on problems of known evidence", {
  names <- c("cars", "longley", "mix2_dozen", "mtcars", "softmax_tiny")
  for (name in fast_or_slow(names[1:3], names))
    expect_truth(truth_problem(name), nested(live = 200), drift = 0.05)
})

test_that("nested() is right with every kernel", {
  hundred <- truth_problem("mean100")
  for (kernel in list(slice(), rwm(), slice(mass = "identity")))
    expect_truth(hundred, nested(200, kernel), drift = 0.03)
  expect_truth(hundred, nested(60, from_prior()), drift = 0.05)
  expect_truth(three, nested(200, from_prior()))
  expect_truth(three, nested(200, sghmc(rate = 0.01), steps = 60))
})

test_that("nested() is right for any number of points replaced at once", {
  for (batch in c(1, 3, 25)) expect_truth(line, nested(100, batch = batch), drift = 0.05)
  # draws from the prior are no relatives of those they replace
  expect_truth(three, nested(100, from_prior(), batch = 99), drift = 0.05)
})

test_that("the standard error is the spread over seeds", {
  seeds <- 1:100
  for (kernel in list(slice(), from_prior())) {
    fits <- fits_of(three, nested(100, kernel), seeds)
    value <- vapply(fits, `[[`, 0, "log_evidence")
    se <- vapply(fits, `[[`, 0, "se")
    expect_lt(abs(log(stats::sd(value) / sqrt(mean(se^2)))), 4.5 / sqrt(2 * length(fits)))
    information <- vapply(fits, function(f) f$nested$information, 0)
    expect_lt(abs(log(mean(se) / sqrt(mean(information) / 100))), 0.15)
  }
})

test_that("the information is that of the closed form", {
  posterior <- gaussian_posterior(mean_model(), matrix(three$data, 1))
  variance <- 1 / drop(posterior$precision)
  truth <- 0.5 * (variance + posterior$mean^2 - 1 - log(variance))
  fits <- fits_of(three, nested(100), 1:60)
  expect_z(z_score(vapply(fits, function(f) f$nested$information, 0), truth))
  # posterior draws as well
  expect_z(z_score(vapply(fits, function(f) sum(exp(f$log_weights) * f$draws), 0), posterior$mean))
  expect_z(z_score(vapply(fits, function(f) sum(exp(f$log_weights) * f$draws^2), 0),
                   variance + posterior$mean^2))
})

# Sums ---------------------------------------------------------------------------------------------

#' The sums over points of which the last `rest` were live at the end, in plain numbers
plain_sums <- function(log_lik, live, rest) {
  n <- length(log_lik)
  volume <- exp(-cumsum(1 / live))
  before <- c(1, volume[-n])
  after <- c(volume[-1], 0)
  shell <- ifelse(seq_len(n) == n, before, before - volume)
  width <- (before - after) / 2 + c((1 - volume[1]) / 2, numeric(n - 2), volume[n] / 2)
  top <- max(log_lik)
  lik <- exp(log_lik - top)
  log_weights <- log_lik + log(width)
  total <- top + log(sum(lik * width))
  dead <- seq_len(n - rest)
  list(log_volume = log(volume), log_weights = log_weights,
       information = sum(exp(log_weights - total) * (log_lik - total)),
       sums = c(trapezoid = total, lower = top + log(sum(lik * (volume - after))),
                upper = top + log(sum(lik * shell)),
                published = top + log(sum((lik * (volume - after))[dead]))))
}

test_that("the sums are those of plain R", {
  for (fit in list(run(three), run(line, nested(50, batch = 7)), run(truth_problem("mix2_dozen")),
                   run(three, nested(preset = "paper")))) {
    nested <- fit$nested
    plain <- plain_sums(nested$levels$log_lik, nested$levels$live, nested$live)
    for (name in names(plain$sums)) expect_lt(abs(nested$sums[[name]] - plain$sums[[name]]), 1e-10)
    expect_lt(max(abs(nested$points$log_volume - plain$log_volume)), 1e-10)
    expect_lt(abs(nested$information - plain$information), 1e-10)
    expect_lt(max(abs(fit$log_weights - plain$log_weights + plain$sums[["trapezoid"]])), 1e-10)
    expect_false(is.unsorted(nested$levels$log_lik))
    expect_identical(nested$points$log_lik, nested$levels$log_lik)
    expect_lt(nested$sums[["lower"]], nested$sums[["trapezoid"]])
    expect_lt(nested$sums[["trapezoid"]], nested$sums[["upper"]])
    expect_lt(nested$sums[["published"]], nested$sums[["lower"]])
    volumes <- .Call(ffi_volumes, nested$levels$log_lik, nested$levels$live, nested$live, 10,
                     words())
    expect_lt(max(abs(volumes$log_weights - plain$log_weights)), 1e-10)
    expect_equal(log_sum_exp(volumes$log_weights), volumes$sums[1])
    expect_equal(volumes$sums[c(1, 4:6)], unname(plain$sums))
  }
})

test_that("the log-likelihoods of nested points are those of their parameters", {
  for (problem in list(line, truth_problem("mix2_dozen"))) {
    fit <- run(problem)
    expect_equal(model_functions(problem$model, problem$data)$log_lik(fit$parameters),
                 fit$nested$levels$log_lik)
  }
})

test_that("the simulated volumes spread as those of plain R do", {
  fit <- run(three, nested(40))
  levels <- fit$nested$levels
  n <- nrow(levels)
  draws <- 3000
  set.seed(test_seed())
  plain <- replicate(draws, {
    volume <- cumprod(stats::runif(n)^(1 / levels$live))
    width <- (c(1, volume[-n]) - c(volume[-1], 0)) / 2 +
      c((1 - volume[1]) / 2, numeric(n - 2), volume[n] / 2)
    log_sum_exp(levels$log_lik + log(width))
  })
  sums <- .Call(ffi_volumes, levels$log_lik, levels$live, 40, draws, words())$sums
  expect_lt(abs(log(sums[2] / stats::sd(plain))), 4.5 / sqrt(draws))
  expect_lt(abs(sums[7] - mean(plain)), 4.5 * stats::sd(plain) * sqrt(2 / draws))
  expect_lt(abs(fit$se / stats::sd(plain) - 1), 4.5 / sqrt(2 * 200))
})

# Merging ------------------------------------------------------------------------------------------

#' Born before the k-th died, and not dead before it
plain_counts <- function(levels) {
  before <- function(value, tie, k)
    value < levels$log_lik[k] | value == levels$log_lik[k] & tie < levels$tie[k]
  vapply(seq_len(nrow(levels)), function(k) {
    sum(before(levels$birth, levels$birth_tie, k) & !before(levels$log_lik, levels$tie, k))
  }, 0)
}

test_that("the number of live points follows from births and deaths", {
  fits <- list(run(line), run(line, nested(30, batch = 1)), run(line, nested(30, batch = 29)),
               run(truth_problem("mix2_dozen"), nested(40)), run(three, nested(preset = "paper")))
  for (fit in fits) {
    levels <- fit$nested$levels
    expect_identical(live_counts(levels), levels$live)
    expect_identical(plain_counts(levels), levels$live)
  }
  # plateaus, told apart by their labels alone
  levels$log_lik <- 0
  levels$birth <- ifelse(levels$birth > -Inf, 0, -Inf)
  set.seed(test_seed())
  levels$tie <- sort(stats::runif(nrow(levels)))
  levels$birth_tie <- ifelse(levels$birth == 0, levels$tie * stats::runif(nrow(levels)), 0)
  expect_identical(live_counts(levels), plain_counts(levels))
})

test_that("merged runs are the run of all their points", {
  fits <- list(run(line, nested(60, slice()), 1), run(line, nested(40, slice(), batch = 1), 2),
               run(line, nested(50, slice(), tol = 0.2), 3))
  merged <- c(fits[[1]], fits[[2]], fits[[3]])
  pooled <- do.call(rbind, lapply(fits, function(f) cbind(f$nested$levels, f$parameters)))
  pooled <- pooled[order(pooled$log_lik), ]
  levels <- merged$nested$levels
  expect_identical(levels$log_lik, pooled$log_lik)
  expect_identical(unname(merged$parameters), unname(as.matrix(pooled[7:8])))
  expect_identical(levels$live, plain_counts(levels))
  alive_in <- function(fit) {
    each <- fit$nested$levels
    next_dead <- findInterval(levels$log_lik, each$log_lik, left.open = TRUE) + 1
    c(each$live, 0)[next_dead]
  }
  expect_identical(levels$live, Reduce(`+`, lapply(fits, alive_in)))
  expect_identical(merged$nested$live, 150)
  plain <- plain_sums(levels$log_lik, levels$live, 150)
  expect_equal(merged$nested$sums[names(plain$sums)], plain$sums)
  expect_equal(merged$log_evidence, plain$sums[["trapezoid"]])
  expect_equal(merged$nested$information, plain$information)
  expect_equal(sum(exp(merged$log_weights)), 1)
  expect_equal(summary(merged)$parameters$mean,
               unname(colSums(exp(merged$log_weights) * merged$draws)))
  expect_equal(merged$work[["likelihoods"]],
               sum(vapply(fits, function(f) f$work[["likelihoods"]], 0)))
  stepwise <- c(c(fits[[3]], fits[[1]]), fits[[2]])
  expect_equal(stepwise$nested$levels, levels)
  expect_equal(stepwise$log_evidence, merged$log_evidence)
  expect_identical(c(fits[[1]]), fits[[1]])
  expect_output(print(merged), "150 live points")
})

test_that("merged runs are right, with a standard error smaller by the square root of two", {
  runs <- fast_or_slow(9, 25)
  pairs <- lapply(seq_len(runs), function(k)
                    list(run(line, nested(60), 2 * k), run(line, nested(60), 2 * k + 1)))
  merged <- lapply(pairs, function(pair) c(pair[[1]], pair[[2]]))
  se <- vapply(merged, `[[`, 0, "se")
  z <- (vapply(merged, `[[`, 0, "log_evidence") - line$log_evidence) / se
  expect_lt(max(abs(z)), 4)
  expect_lt(abs(mean(z)), 4.5 / sqrt(runs))
  single <- vapply(unlist(pairs, recursive = FALSE), `[[`, 0, "se")
  expect_lt(abs(mean(single) / mean(se) / sqrt(2) - 1), 0.3 / sqrt(runs))
  wide <- vapply(seq_len(runs), function(k) run(line, nested(120), k)$se, 0)
  expect_lt(abs(mean(wide) / mean(se) - 1), 0.3 / sqrt(runs))
})

test_that("c() refuses runs of different problems or of one seed", {
  fit <- run(line)
  refused(c(fit, run(list(model = line$model, data = cars[-1, ]))), "another number of obs")
  other <- function(formula = dist ~ speed, ...) {
    run(list(model = linear_regression(formula, ...), data = cars), seed = 2)
  }
  refused(c(fit, other(sigma = 15, prior_sd = 11)), "other priors")
  refused(c(fit, other(dist ~ I(speed^2), sigma = 15, prior_sd = 10)), "another model")
  refused(c(fit, fit), "the same seed")
  refused(c(fit, update(fit, tol = 1e-3, data = cars)), "the same seed")
  refused(c(c(fit, run(line, seed = 2)), fit), "the same seed")
  refused(c(fit, run(line, nested(120))), "the same seed")
  refused(c(fit, run(line, smc(), 2)), "another method")
  refused(c(fit, run(line, nested(20), 2, replicates = 2)), "other settings of its method")
  refused(c(fit, 1), "`...`")
})

# Going on -----------------------------------------------------------------------------------------

test_that("update() continues a nested run from where it ended", {
  for (problem in list(line, truth_problem("mix2_dozen"))) {
    fit <- run(problem, nested(50, tol = 0.5))
    further <- update(fit, tol = 1e-3, data = problem$data)
    dead <- seq_len(nrow(fit$nested$levels) - 50)
    old <- fit$nested$levels
    new <- further$nested$levels
    expect_identical(new[dead, ], old[dead, ])
    expect_identical(further$parameters[dead, ], fit$parameters[dead, ])
    expect_true(all(old$tie %in% new$tie))
    expect_gt(nrow(new), nrow(old))
    expect_lt(min(further$nested$points$log_volume), min(fit$nested$points$log_volume))
    expect_identical(new$live, plain_counts(new))
    expect_identical(further$nested$live, 50)
    expect_identical(further$method$settings$tol, 1e-3)
    expect_gt(further$work[["likelihoods"]], fit$work[["likelihoods"]])
    expect_false(is.unsorted(further$trace$evaluations))
    expect_lt(further$nested$sums[["upper"]] - further$nested$sums[["lower"]], 0.05)
    expect_identical(essence(update(fit, tol = 1e-3, data = problem$data)), essence(further))
    again <- update(further, tol = 1e-5, data = problem$data)
    expect_gt(nrow(again$nested$levels), nrow(new))
    expect_output(print(summary(again)), "50 live points")
  }
})

test_that("update() of a run that has ended at its tolerance changes nothing", {
  fit <- run(line)
  same <- update(fit, tol = 0.00999, data = cars)
  expect_identical(same$nested$levels, fit$nested$levels)
  expect_identical(same$log_evidence, fit$log_evidence)
  expect_identical(same$nested$renewal, fit$nested$renewal)
  expect_output(print(summary(same)), "100 live points")
})

test_that("runs that were continued are right", {
  fits <- lapply(1:40, function(seed)
                   update(run(three, nested(100, tol = 0.9), seed), tol = 0.01, data = three$data))
  z <- vapply(fits, function(f) (f$log_evidence - three$log_evidence) / f$se, 0)
  expect_lt(max(abs(z)), 4)
  expect_lt(abs(mean(z)), 4.5 / sqrt(40))
})

test_that("update() refuses settings that do not continue a run", {
  fit <- evidence(line$model, cars, nested(50), seed = test_seed(), progress = FALSE)
  expect_s3_class(update(fit, tol = 1e-3), "evidence")
  refused(update(fit), "`tol` must be given: the new tolerance, smaller than 0.01.")
  for (tol in list(0.01, 0.5, 0, -1, NA, "small"))
    refused(update(fit, tol = tol), "`tol` must be a number above 0 and below 0.01")
  refused(update(fit, tol = 1e-3, data = cars[-1, ]), "`data` must be those of the fit")
  refused(update(fit, tol = 1e-3, data = transform(cars, speed = speed + 1)),
          "`data` must be those of the fit")
  refused(update(c(fit, run(line, nested(50), 7)), tol = 1e-3), "A merged fit cannot be continued")
  refused(update(run(line, smc()), tol = 1e-3), "Only fits of nested()")
  refused(update(run(line, nested(20), replicates = 2), tol = 1e-3), "several replicates")
  refused(update(fit, tol = 1e-3, live = 10), "`live`")
})

# Walls --------------------------------------------------------------------------------------------

# A normal mean inside a wall: the log-likelihood of the rows from `seen` on exceeds that at `reach`
# from their mean, a truncated normal.
walled <- function(seen, reach, prior_sd = 0.7) {
  model <- mean_model(1.5, 0.5, prior_sd)
  rows <- some_rows(model, 12, 1, 71)
  inner <- rows[, seq_len(seen), drop = FALSE]
  chunk <- rows[, (seen + 1):12, drop = FALSE]
  before <- gaussian_posterior(model, inner)
  sd <- 1 / sqrt(drop(before$precision))
  ends <- (mean(chunk) + c(-1, 1) * reach - before$mean) / sd
  list(model = model, rows = rows, seen = seen, chunk = chunk, mean = before$mean, sd = sd,
       ends = ends, floor = c(ask(model, "log_lik", mean(chunk) + reach, chunk), 0.3))
}
draw_walled <- function(wall, m, seed = 1) {
  set.seed(test_seed(seed))
  share <- stats::pnorm(wall$ends)
  matrix(wall$mean + wall$sd * stats::qnorm(share[1] + diff(share) * stats::runif(m)), 1)
}
# All at one end.
cornered <- function(wall, m)
  matrix(wall$mean + wall$sd * (wall$ends[1] + diff(wall$ends) * stats::ppoints(m) / 20), 1)
# Moments less their closed forms, and the probability integral less those of a uniform number.
walled_moments <- function(theta, wall) {
  z <- (drop(theta) - wall$mean) / wall$sd
  share <- diff(stats::pnorm(wall$ends))
  mean <- -diff(stats::dnorm(wall$ends)) / share
  square <- 1 - diff(wall$ends * stats::dnorm(wall$ends)) / share
  u <- (stats::pnorm(z) - stats::pnorm(wall$ends[1])) / share - 0.5
  cbind(z - mean, z^2 - square, u, u^2 - 1 / 12)
}
inside <- function(theta, wall)
  all(ask(wall$model, "log_lik", matrix(theta, 1), wall$chunk) > wall$floor[1])
move_walled <- function(kernel, wall, start, moves, seed = 1, precision = 1 / wall$sd^2, ...) {
  run_kernel(kernel, wall$model, wall$rows, start, seed, moves = moves, seen = wall$seen,
             floor = wall$floor, precision = precision, ...)
}
walls <- function(seen = c(0, 5)) {
  unlist(lapply(seen, function(s) lapply(c(0.3, 1, 3), function(reach) walled(s, reach))),
         recursive = FALSE)
}

test_that("the closed forms of a normal mean inside a likelihood limit are right", {
  for (wall in walls()) {
    at <- seq(wall$ends[1], wall$ends[2], length.out = 20001)
    density <- stats::dnorm(at)
    moments <- colSums(density * walled_moments(wall$mean + wall$sd * at, wall)) / sum(density)
    expect_lt(max(abs(moments)), 1e-3)
    expect_true(inside(draw_walled(wall, 100), wall))
  }
})

test_that("exact kernels leave a distribution inside a likelihood limit unchanged", {
  for (wall in walls())
    for (kernel in list(slice(), slice(width = 0.5), rwm(step_size = 0.3), rwm(step_size = 3))) {
    start <- draw_walled(wall, 3000, 2)
    for (moves in c(1, 6)) {
      end <- move_walled(kernel, wall, start, moves, 3)
      expect_true(inside(end, wall))
      expect_z(z_score(walled_moments(end, wall)))
      expect_z(z_score(walled_moments(end, wall) - walled_moments(start, wall)))
      expect_gt(mean(end != start), 0.02)
    }
  }
})

test_that("exact kernels bring points to the distribution inside a likelihood limit", {
  for (wall in walls()) {
    start <- cornered(wall, 1500)
    width <- min(diff(wall$ends), 4)
    for (kernel in list(slice(width = 2 * width), rwm(step_size = width / 2))) {
      end <- move_walled(kernel, wall, start, 60)
      expect_true(inside(end, wall))
      expect_z(z_score(walled_moments(end, wall)))
    }
  }
  for (wall in walls(0)) {
    end <- move_walled(from_prior(), wall, start, 1)
    expect_true(inside(end, wall))
    expect_z(z_score(walled_moments(end, wall)))
    u <- walled_moments(end, wall)[, 3]
    expect_gt(stats::ks.test(u + 0.5, "punif")$p.value, 1e-5)
  }
})

test_that("exact kernels stay inside a likelihood limit in several dimensions", {
  model <- linear_model(3, 0.8, 0, c(1, 2, 3))
  rows <- some_rows(model, 10, c(0.5, -1, 0.2), 72)
  theta <- prior_draws(model, 40000, 4)
  log_lik <- ask(model, "log_lik", theta, rows)
  floor <- c(stats::quantile(log_lik, 0.9, names = FALSE), 0.3)
  start <- theta[, log_lik > floor[1]]
  moments <- function(x)
    t(rbind(x, x^2, x[1, ] * x[2, ], x[2, ] * x[3, ], ask(model, "log_lik", matrix(x, 3), rows)))
  for (kernel in list(slice(), rwm(step_size = 0.5), from_prior())) {
    end <- run_kernel(kernel, model, rows, start, 5, moves = 4, seen = 0, floor = floor,
                      precision = diag(1, 3))
    expect_true(all(ask(model, "log_lik", matrix(end, 3), rows) > floor[1]))
    expect_z(z_score(moments(end) - moments(start)))
  }
})

test_that("reflected momenta stay inside a likelihood limit up to their step size", {
  for (wall in walls(0)[2:3]) for (friction in c(0.1, 1)) {
    kernel <- sghmc(rate = 2e-4, friction = friction)
    start <- draw_walled(wall, 2000, 2)
    found <- move_walled(kernel, wall, start, 60)
    expect_true(inside(found, wall))
    change <- walled_moments(found, wall) - walled_moments(start, wall)
    expect_true(all(abs(colMeans(change)) < 0.01 + 4.5 * apply(change, 2, stats::sd) / sqrt(2000)))
    expect_gt(mean(found != start), 0.5)
  }
  # and bring points to it
  wall <- walled(0, 1)
  start <- cornered(wall, 1000)
  end <- move_walled(sghmc(rate = 2e-3, friction = 0.1), wall, start, 600)
  expect_true(inside(end, wall))
  moments <- walled_moments(end, wall)
  expect_true(all(abs(colMeans(moments)) < 0.03 + 4.5 * apply(moments, 2, stats::sd) / sqrt(1000)))
})

test_that("points outside a likelihood limit move inside or stay", {
  wall <- walled(0, 1)
  start <- matrix(mean(wall$chunk) + c(-1.5, 1.5), 1, 500)
  for (kernel in list(slice(width = 20), rwm(step_size = 1))) {
    end <- move_walled(kernel, wall, start, 5)
    came <- end != start
    expect_gt(mean(came), 0.5)
    expect_true(inside(end[came], wall))
  }
})

test_that("on a plateau at the likelihood limit kernels draw from the whole distribution", {
  # no rows in the chunk: all likelihoods are one, and all that is left is the posterior of the rows
  # seen
  model <- mean_model(1.5, 0.5, 2)
  rows <- some_rows(model, 12, 1, 71)
  target <- gaussian_posterior(model, rows)
  start <- gaussian_draws(target, 5000, 5)
  moved <- function(kernel, floor, moves) {
    end <- run_kernel(kernel, model, rows, start, 6, moves = moves, floor = floor,
                      precision = target$precision)
    expect_z(z_score(whitened_moments(end, target)))
    expect_z(z_score(whitened_moments(end, target) - whitened_moments(start, target)))
    mean(end != start)
  }
  for (moves in c(1, 4)) for (tie in c(0.1, 0.9)) moved(slice(), c(0, tie), moves)
  free <- moved(rwm(step_size = 1), c(-1, 0), 1)
  for (tie in c(0.1, 0.5, 0.9))
    expect_lt(abs(moved(rwm(step_size = 1), c(0, tie), 1) - free * (1 - tie)),
              4.5 * sqrt(2 / 4 / 5000))
  # below the wall there is nowhere to go
  expect_equal(run_kernel(rwm(step_size = 1), model, rows, start, 6, moves = 5, floor = c(1e-9, 0)),
               start, ignore_attr = TRUE)
})

# Looking out for trouble --------------------------------------------------------------------------

test_that("a kernel that does not move gives a warning, and one that does gives none", {
  fit <- run(line, nested(100, rwm(step_size = 1e-5), steps = 1))
  expect_match(fit$warnings, "hardly moves the points", all = FALSE)
  expect_lt(fit$nested$renewal, 0.01)
  expect_match(update(fit, tol = 1e-3, data = cars)$warnings, "hardly moves the points",
               all = FALSE)
  for (problem in list(line, three, truth_problem("softmax_tiny")))
    for (f in fits_of(problem, nested(100), 1:20)) expect_null(f$warnings)
})

test_that("uneven ranks of new points give a warning", {
  nested <- list(renewal = 1, rank_p = 1e-9, rank_gap = 0.1)
  expect_match(nested_warnings(nested), "do not rank uniformly")
  expect_null(nested_warnings(utils::modifyList(nested, list(rank_gap = 0.01))))
  expect_null(nested_warnings(utils::modifyList(nested, list(rank_p = 0.01))))
  expect_null(nested_warnings(list(renewal = NA, rank_p = NA_real_, rank_gap = NA_real_)))
  expect_match(nested_warnings(utils::modifyList(nested, list(renewal = 0.01))),
               "hardly moves|do not rank")
})

test_that("the test of ranks is that of Kolmogorov", {
  set.seed(test_seed())
  for (rank in list(stats::runif(20), stats::runif(500), stats::rbeta(300, 1.2, 1),
                    stats::runif(200) / 2)) {
    known <- suppressWarnings(stats::ks.test(rank, "punif", exact = FALSE))
    found <- rank_test(c(NaN, rank, NA))
    expect_equal(found[["gap"]], unname(known$statistic))
    expect_equal(found[["p"]], known$p.value, tolerance = 1e-3)
  }
  expect_identical(rank_test(c(rep(NaN, 100), stats::runif(19))), c(gap = NA_real_, p = NA_real_))
})

test_that("ranks of new points are uniform", {
  p <- vapply(fits_of(line, nested(100), 1:60), function(f) f$nested$rank_p, 0)
  expect_gt(stats::ks.test(p, "punif")$p.value, 1e-4)
  ranks <- run(line)$nested$levels$rank
  expect_true(all(ranks > 0 & ranks < 1, na.rm = TRUE))
  expect_identical(sum(is.finite(ranks)), length(ranks) - 100L)
})

# Settings -----------------------------------------------------------------------------------------

test_that("preset = \"paper\" has the published settings and reports the published sum", {
  paper <- nested(preset = "paper")
  expect_identical(paper$settings[c("live", "batch", "steps", "published")],
                   list(live = 2, batch = 1, steps = 20, published = 1))
  expect_identical(paper$kernels, list(sghmc(rate = 1e-3, friction = 0.1, bounce = FALSE)))
  own <- nested(live = 50, kernel = slice(), steps = 7, preset = "paper")
  expect_identical(own$settings[c("live", "steps")], list(live = 50, steps = 7))
  expect_identical(own$kernels, list(slice()))
  for (method in list(paper, own)) {
    fit <- run(three, method)
    expect_identical(fit$log_evidence, fit$nested$sums[["published"]])
    expect_identical(fit$sampler$log_evidence, fit$log_evidence)
  }
  merged <- c(fit, run(three, own, 2))
  expect_identical(merged$log_evidence, merged$nested$sums[["published"]])
  expect_identical(run(three)$log_evidence, run(three)$nested$sums[["trapezoid"]])
})

test_that("the default number of steps depends on kernel and number of parameters", {
  moves <- function(problem, ...) run(problem, nested(20, batch = 2, ...))$trace$steps
  # the first round may have adapted already
  expect_lte(abs(moves(line)[1] - 20), 3)
  expect_lte(abs(moves(line, kernel = slice())[1] - 6), 1)
  expect_lte(abs(moves(three, kernel = slice())[1] - 5), 1)
  expect_gt(length(unique(moves(line))), 1)
  expect_true(all(moves(three, steps = 2) == 2))
  # one draw from the prior is as good as several
  expect_identical(nested(kernel = from_prior())$settings$steps, 1)
})

test_that("a run with very many points stops at its time limit, also while it draws them", {
  rows <- with_own_seed(test_seed(1), data.frame(x = rnorm(100), y = rnorm(100)))
  model <- linear_regression(y ~ x, prior_sd = 1)
  spent <- system.time(fit <- quiet_fit(model, rows, nested(3e5), seed = 1, time_limit = 0.2))
  expect_s3_class(fit, "incomplete_evidence")
  expect_lt(spent[["user.self"]], 3)
  # points are drawn in parts, between which a run can be saved
  setup <- run_problem(model, rows, nested(25000))
  slices <- function(run, n) for (i in seq_len(n))
    expect_identical(.Call(ffi_run_advance, run, 0, Inf), "more")
  whole <- start_run(setup)
  slices(whole, 6)
  saved <- start_run(setup)
  slices(saved, 2)
  state <- .Call(ffi_run_save, saved)
  again <- .Call(ffi_run_new, replace(setup$problem, "restore", list(TRUE)))
  .Call(ffi_run_restore, again, state)
  slices(again, 4)
  expect_identical(timeless(run_result(again)), timeless(run_result(whole)))
})

test_that("bad settings are refused before the run", {
  for (live in list(1, 0, -5, 2.5, NA, Inf, "many", 2:3, NULL))
    refused(nested(live), "`live` must be a whole number")
  for (tol in list(0, 1, -0.1, 2, NA, NULL, "small"))
    refused(nested(tol = tol), "`tol` must be a number above 0 and below 1")
  for (steps in list(0, -1, 1.5, NA, "few"))
    refused(nested(steps = steps), "`steps` must be a whole number")
  for (batch in list(0, -1, 1.5, NA))
    refused(nested(batch = batch), "`batch` must be a whole number")
  for (batch in c(10, 11))
    refused(nested(10, batch = batch),
            paste0("`batch` must be less than `live`, 10, but is ", batch))
  for (kernel in list(hmc(), mala(), baoab(), sgld()))
    refused(nested(kernel = kernel),
            paste0("slice(), rwm(), sghmc() or prior_draws(), not ", kernel$name, "()."))
  refused(nested(kernel = "slice"), "`kernel` must be a kernel")
  refused(nested(kernel = slice), "`kernel` must be a kernel")
  refused(nested(preset = "article"), "`preset` must be")
  for (width in list(0, -1, NA, "wide")) refused(slice(width = width), "`width` must be")
})

test_that("prior() as kernel is for nested sampling only", {
  alone <- "prior_draws() is for nested()"
  refused(ais(kernel = from_prior()), alone)
  refused(smc(kernel = from_prior()), alone)
  refused(smc("data", kernel = from_prior()), alone)
  refused(harmonic_mean(kernel = from_prior()), alone)
  refused(sequential(kernel = from_prior(), batch = Inf), alone)
  refused(sgais(kernel = from_prior(), batch = Inf), alone)
  refused(sgais(early = list(kernel = from_prior())),
          "`early$kernel` prior_draws() is for nested()")
  # the C code refuses as well
  method <- ais()
  method$kernels[[1]] <- from_prior()
  refused(run(three, method), alone)
})

test_that("fits are printed with their live points", {
  fit <- run(line, nested(120))
  expect_output(print(fit), "120 live points, error from simulated volumes")
  expect_output(print(summary(fit)),
                "120 live points.*information [0-9.]+ nats.*trapezoid.*ranks of new points")
  expect_output(print(run(three, nested(50), replicates = 3)), "3 replicates")
})

# Reservoir ----------------------------------------------------------------------------------------

reservoir <- function(log_weight, most, k = 1) {
  kept <- .Call(unit("varopt"), log_weight, most, c(k, test_seed()))
  list(kept = kept[1, ], log_weight = kept[2, ])
}

test_that("a reservoir keeps each point's weight on average, and the total weight exactly", {
  set.seed(test_seed())
  weight <- sample(c(50, 30, 0.3 + stats::rexp(13)))
  for (most in c(1, 2, 6, 14)) {
    carried <- t(vapply(seq_len(8000), function(k) {
      found <- reservoir(log(weight), most, k)
      replace(numeric(15), found$kept, exp(found$log_weight))
    }, numeric(15)))
    expect_true(all(rowSums(carried > 0) == most))
    expect_lt(max(abs(rowSums(carried) - sum(weight))), 1e-9)
    # those heavier than the threshold are kept as they are
    shares <- cumsum(sort(weight))[15 - most + seq_len(most)] / seq_len(most)
    threshold <- shares[match(TRUE, shares <= c(sort(weight), Inf)[16 - most + seq_len(most)])]
    heavy <- weight >= threshold
    expect_equal(sum(pmin(1, weight / threshold)), most)
    expect_equal(carried[, heavy, drop = FALSE],
                 matrix(weight[heavy], 8000, sum(heavy), byrow = TRUE))
    light_part <- carried[, !heavy, drop = FALSE]
    expect_true(all(light_part == 0 | abs(light_part - threshold) < 1e-9))
    expect_z(z_score(light_part, weight[!heavy]))
    # the sizes that weights share leave nothing else to correlate but a negative part
    expect_lt(max(stats::cor(light_part)[upper.tri(diag(sum(!heavy)))], -1), 4.5 / sqrt(8000))
  }
})

test_that("adding a point to a large reservoir takes little time", {
  # it took a minute for as many, when each point was compared with all
  log_weight <- with_own_seed(test_seed(4), 5 * rnorm(40000))
  took <- system.time(found <- reservoir(log_weight, 20000))[["user.self"]]
  expect_lt(took, 5)
  expect_equal(sum(exp(found$log_weight)), sum(exp(log_weight)))
})

test_that("a reservoir keeps all points that fit, and none without weight", {
  log_weight <- c(-3, 2, -Inf, 0, 700, -800, NaN)
  found <- reservoir(log_weight, 10)
  expect_identical(found$kept, c(1, 2, 4, 5, 6))
  expect_identical(found$log_weight, log_weight[c(1, 2, 4, 5, 6)])
  expect_length(reservoir(rep(-Inf, 5), 3)$kept, 0)
  many <- reservoir(rep(-1e4, 1000), 20)
  expect_length(unique(many$kept), 20)
  expect_equal(many$log_weight, rep(-1e4 + log(50), 20))
  expect_identical(reservoir(rep(0, 100), 20), reservoir(rep(0, 100), 20))
})

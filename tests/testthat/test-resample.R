# Resampling: unbiased, in order, and for the schemes that promise it with counts close to what is
# expected.

schemes <- c("systematic", "stratified", "multinomial", "residual")
resample <- function(scheme, weight, m, seed = 1)
  .Call(unit("resample"), match(scheme, schemes) - 1, weight, m, c(3, test_seed(seed)))
offspring <- function(scheme, weight, m, seed)
  tabulate(resample(scheme, weight, m, seed), length(weight))
normalised <- function(x) x / sum(x)

test_that("every scheme is unbiased, also for another number of offspring", {
  weights <- list(normalised(c(5, 1, 0, 3, 0.5, 0.02)), normalised(1:7), rep(1 / 4, 4),
                  normalised(c(1e-6, 1, 2)))
  for (scheme in schemes) for (w in weights) for (m in c(length(w), 3, 11)) {
    counts <- t(vapply(1:1500, function(s)
      offspring(scheme, w, m, s), numeric(length(w))))
    expect_true(all(rowSums(counts) == m))
    expect_true(all(counts[, w == 0] == 0))
    exact <- apply(counts, 2, function(x) all(x == x[1]))
    expect_equal(counts[1, exact], (m * w)[exact], tolerance = 1e-4)
    if (any(!exact)) {
      # never more than multinomial; small counts need it rather than the sample's
      variance <- pmin(m * w * (1 - w), 1)
      se <- pmax(apply(counts, 2, stats::sd), sqrt(m * w * (1 - w)) * (w < 0.01)) /
        sqrt(nrow(counts))
      expect_z(((colMeans(counts) - m * w) / se)[!exact], 5)
    }
  }
})

test_that("ancestors come in increasing order and within range", {
  set.seed(test_seed())
  for (scheme in schemes) {
    fine <- vapply(1:200, function(s) {
      m <- sample(c(1, 2, 19, 20, 57), 1)
      ancestor <- resample(scheme, normalised(stats::rexp(20)^3), m, s)
      length(ancestor) == m && !is.unsorted(ancestor) && all(ancestor >= 1 & ancestor <= 20)
    }, TRUE)
    expect_true(all(fine))
  }
})

test_that("counts differ from their expectation at most as each scheme allows", {
  set.seed(test_seed(2))
  fine <- vapply(1:300, function(s) {
    w <- normalised(stats::rexp(sample(2:30, 1))^2)
    m <- sample(1:60, 1)
    off <- function(scheme) offspring(scheme, w, m, s) - m * w
    c(systematic = all(abs(off("systematic")) < 1 + 1e-9),
      stratified = all(abs(off("stratified")) < 2 + 1e-9),
      residual = all(offspring("residual", w, m, s) >= floor(m * w - 1e-9)))
  }, c(systematic = TRUE, stratified = TRUE, residual = TRUE))
  expect_identical(rowSums(!fine), c(systematic = 0, stratified = 0, residual = 0))
})

test_that("equal weights are kept as they are by all but the multinomial scheme", {
  for (scheme in setdiff(schemes, "multinomial"))
    expect_identical(resample(scheme, rep(1 / 8, 8), 8), as.double(1:8))
  expect_identical(offspring("residual", rep(0.1, 10), 30, 1), rep(3L, 10))
})

test_that("degenerate weights have one ancestor", {
  for (scheme in schemes) {
    for (k in c(1, 4, 6)) expect_identical(resample(scheme, as.double(1:6 == k), 9),
                                           rep(as.double(k), 9))
    expect_identical(resample(scheme, 1, 5), rep(1, 5))
    expect_identical(resample(scheme, c(0, 0.5, 0, 0.5, 0), 1) %in% c(2, 4), TRUE)
    # weights that miss one by rounding, with nothing at the end
    w <- c(normalised(rep(1, 49)) * (1 - 1e-12), 0)
    expect_true(all(resample(scheme, w, 1000) <= 49))
  }
})

test_that("the schemes are ordered by variance", {
  w <- normalised(c(1, 2, 3, 4, 5) + 0.3)
  spread <- vapply(schemes, function(scheme) {
    sum(apply(vapply(1:2000, function(s) offspring(scheme, w, 8, s), numeric(5)), 1, stats::var))
  }, 0)
  multinomial <- sum(8 * w * (1 - w))
  expect_lt(abs(spread[["multinomial"]] / multinomial - 1), 0.1)
  expect_true(all(spread[c("systematic", "stratified", "residual")] < 0.7 * multinomial))
})

test_that("a step that keeps just the threshold's share does not resample", {
  set.seed(test_seed(1))
  for (n in c(50, 1e5)) {
    d <- data.frame(x = stats::rnorm(n))
    d$y <- 1e3 + d$x + stats::rnorm(n)
    model <- linear_regression(y ~ x, sigma = 1, prior_sd = 1e4)
    ess <- evidence(model, d, smc(particles = 64, ess = 0.5, threshold = 0.5, steps = 1),
                    seed = test_seed(n))$trace$ess
    kept <- ess[-length(ess)] > 32 * (1 - 1e-6)
    expect_gt(length(kept), 10)
    expect_identical(kept, rep_len(c(TRUE, FALSE), length(kept)))
  }
})

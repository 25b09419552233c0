# The interrupt key is heard within a second, also where the parameters are many and the rows few,
# or a row is a whole group.

wide <- function(n, d) {
  set.seed(test_seed())
  list(x = matrix(rnorm(n * d), n), y = rnorm(n))
}

#' Seconds from a signal to the end of a run, or NA if the run was over before; of the processor if
#' they are fewer, as on a busy machine
waited <- function(method, data, after, model = linear_regression(sigma = 1, prior_sd = 1), ...) {
  before <- proc.time()
  system(sprintf("(sleep %g; kill -INT %d) &", after, Sys.getpid()))
  stopped <- tryCatch({
    evidence(model, data, method, seed = test_seed(), progress = FALSE, ...)
    Sys.sleep(after) # the signal must not hit what comes after
    FALSE
  }, interrupt = function(i) TRUE)
  spent <- proc.time() - before
  spent <- min(spent[["elapsed"]], spent[["user.self"]] + spent[["sys.self"]]) - after
  if (stopped) spent else NA
}

test_that("an interrupt soon ends factorisations, draws and moves of many parameters", {
  skip_on_os("windows")
  skip_on_cran()
  # while the curvature is factorised, and while particles move
  expect_lt(waited(exact(), wide(30, 3000), 0.8), 2)
  expect_lt(waited(sgais(), wide(30, 1200), fast_or_slow(1.5, 4)), 2)
})

test_that("an interrupt ends moves of grouped models, in all threads and runs", {
  skip_on_os("windows")
  skip_on_cran()
  set.seed(test_seed(3))
  rows <- data.frame(g = gl(500, 20), x = rnorm(10000))
  rows$y <- rpois(10000, exp(0.2 + rnorm(500, 0, 0.5)[rows$g] + 0.1 * rows$x))
  slopes <- regression(y ~ x + (x | g), family = poisson())
  # one thread; two threads for the particles of a run; two runs, of which the first waits
  for (more in list(list(), list(threads = 2), list(threads = 2, replicates = 2))) {
    call <- c(list(smc(particles = 500), rows, fast_or_slow(1.5, 6), slopes), more)
    expect_lt(do.call(waited, call, quote = TRUE), 1)
  }
})

test_that("the factor of a matrix made in bands is that made at once", {
  set.seed(test_seed(2))
  a <- crossprod(matrix(rnorm(600 * 620), 620))
  factor <- matrix(.Call(unit("cholesky"), a), 600)
  if (max(abs(factor[upper.tri(factor)])) > 0) factor <- t(factor)
  expect_lt(max(abs(factor %*% t(factor) - a)), 1e-9 * max(abs(a)))
})

# Seeds govern everything and threads nothing. Threads are only used where particles x rows x
# parameters are 100,000 at the least, so most runs here have 1,000 rows, 60 particles and two
# parameters.

set.seed(test_seed())
straight <- data.frame(x = rnorm(1000))
straight$y <- 1 + 2 * straight$x + rnorm(1000)
line <- linear_regression(y ~ x, sigma = 1, prior_sd = 2)
few <- straight[1:60, ]
clusters <- data.frame(a = c(rnorm(60, -2), rnorm(60, 2)))

methods <- list(
  # the early phase ends early, so that both are seen
  sgais = sgais(60, early = list(rows = 250), audit_draws = 100),
  sgais_paper = sgais(preset = "paper", steps = 2, chunk = 150),
  ais = ais(60, linear(20)), ais_paper = ais(preset = "paper", steps = 2),
  smc_thermal = smc(particles = 60), smc_data = smc("data", 60, chunk = 100),
  sequential = sequential(steps = 3), harmonic_mean = harmonic_mean(60, 4), bridge = bridge(60, 4),
  power_posterior = power_posterior(run = smc(particles = 60)),
  nested = nested(100, batch = 60), online_nested = online_nested(100, steps = 5),
  online_control = online_nested(60, sghmc(0.01), steps = 3, batch = 50),
  hybrid = hybrid(200, particles = 60, steps = 3),
  laplace = laplace(importance = 400), likelihood_weighting = likelihood_weighting(500)
)

test_that("the number of threads changes nothing, to the bit", {
  # the others are in the test of replicates below
  some <- c("sgais", "sgais_paper", "bridge", "online_control")
  for (name in fast_or_slow(some, names(methods))) {
    fit <- function(threads)
      essence(evidence(line, straight, methods[[name]], seed = test_seed(), threads = threads))
    expect_identical(fit(2), fit(1), info = name)
  }
  fit <- function(threads)
    essence(evidence(line, straight, smc(particles = 65), seed = test_seed(), threads = threads))
  for (threads in c(2, 3, 64)) expect_identical(fit(threads), fit(1))
  # so many rows that those of a few particles could be shared out, of which each thread has fewer
  # than there are
  long <- with_own_seed(test_seed(8), data.frame(x = rnorm(10000)))
  long$y <- with_own_seed(test_seed(9), 1 + 2 * long$x + rnorm(10000))
  for (particles in c(12, 20)) {
    fit <- function(threads) essence(evidence(line, long, smc(particles = particles),
                                              seed = test_seed(), threads = threads))
    for (threads in c(2, 2, 3)) expect_identical(fit(threads), fit(1))
  }
  mixed <- function(threads) {
    essence(evidence(gaussian_mixture(components = 2), clusters, methods$sgais, seed = test_seed(2),
                     threads = threads))
  }
  expect_identical(mixed(2), mixed(1))
})

test_that("the work of a run is done by threads that are there already", {
  cases <- with_own_seed(test_seed(7), data.frame(matrix(rnorm(6 * 3000), 3000),
                                       class = factor(sample(4, 3000, TRUE))))
  fit <- function() evidence(softmax_regression(class ~ .,
                                                prior_sd = 1), cases, sgais(100, audit = FALSE),
                             seed = test_seed(), threads = 2)
  seconds <- function(task)
    scan(file.path("/proc/self/task", task, "schedstat"), quiet = TRUE)[1] / 1e9
  skip_if(.Call(ffi_threads, 2) < 2, "one thread")
  fit()
  others <- setdiff(list.files("/proc/self/task"), Sys.getpid())
  skip_if(length(others) == 0, "threads are not seen from outside, or none is kept")
  share <- function() {
    before <- sum(vapply(others, seconds, 0))
    own <- sum(proc.time()[1:2])
    for (i in 1:3) fit()
    (sum(vapply(others, seconds, 0)) - before) / (sum(proc.time()[1:2]) - own)
  }
  # half; less where other programs need the cores, so that threads rest; nothing where they are
  # made for each piece of work
  for (attempt in 1:5) if ((part <- share()) > 0.03) break
  expect_gt(part, 0.03)
})

test_that("threads that make a run slower are left out for growing times", {
  pace <- function(done, seconds) .Call(unit("pace"), done, seconds)
  watched <- function(...) {
    rounds <- do.call(cbind, list(...))
    pace(matrix(50, 2, ncol(rounds)), rounds)
  }
  rested <- function(...) which(watched(...)[1, ] == 1)
  good <- matrix(1e-3, 2, 40) # each thread's seconds for its half of some work
  late <- function(n) rbind(rep(1e-3, n), 4.9e-3) # 2.9 ms lost each time
  expect_identical(rested(good), integer())
  expect_identical(rested(late(3)), 2:3)
  # what has been gained counts, up to a limit, and one long wait in a while does not matter
  expect_identical(rested(good, late(5)), 45L)
  expect_identical(rested(good, late(3), good, late(3), good), integer())
  # twice as long from one time to the next, up to a limit, until threads have helped for a time
  expect_equal(watched(late(14))[2, 2 * (1:7)], c(0.1, 0.2, 0.4, 0.8, 0.8, 0.8, 0.8))
  expect_equal(watched(late(8), good)[2, c(8, 48)], c(0.8, 0.05))
  # a share that was empty, and clocks that were set
  expect_identical(sum(pace(matrix(c(100, 0), 2, 9), rbind(rep(2e-3, 9), 1e-5))[1, ]), 0)
  expect_identical(rested(matrix(-1, 2, 9)), integer())
})

test_that("sharing mini-batches and rows among threads changes no bit", {
  set.seed(test_seed(4))
  n <- 6000
  many <- data.frame(matrix(rnorm(3 * n), n), class = factor(sample(4, n, TRUE)))
  classes <- softmax_regression(class ~ ., prior_sd = 1)
  for (method in list(sgais(60, batch = 400, early = list(rows = 250), audit = FALSE),
                      sgais(20, preset = "paper", steps = 2))) {
    fit <- function(threads)
      essence(evidence(classes, many, method, seed = test_seed(3), threads = threads))
    expect_identical(fit(2), fit(1))
  }
  n <- 40000
  long <- list(x = matrix(rnorm(3 * n), n), y = rnorm(n))
  matrices <- linear_regression(sigma = 1, prior_sd = 1)
  rows <- encode(matrices, long)$rows
  expect_identical(rows, rbind(1, t(long$x), long$y), ignore_attr = TRUE)
  for (seed in list(NULL, seed_words(test_seed(8)))) {
    bound <- lapply(1:3, function(threads)
                      encode(matrices, long, list(threads = threads, seed = seed))$rows)
    expect_identical(bound[[1]][, order(bound[[1]][2, ])], rows[, order(rows[2, ])])
    for (threads in 2:3) expect_identical(bound[[threads]], bound[[1]])
  }
})

test_that("sharing metrics, labels and normals among threads changes no bit", {
  wide <- with_own_seed(test_seed(5), data.frame(matrix(rnorm(9 * 700), 700),
                                      class = factor(sample(4, 700, TRUE))))
  pairs <- with_own_seed(test_seed(6), matrix(rnorm(1800, c(-4, 0, 4, 8, 12)), ncol = 2))
  early <- list(rows = 300, particles = 200, steps = 2, work = 0)
  # 110 x 40 normals, 200 x 24 x 24 multiplications: above the thresholds of src/base/rng.c and
  # src/core/target.h
  for (case in list(
    list(softmax_regression(class ~ ., prior_sd = 1), wide,
         sgais(110, early = replace(early, "particles", 110), audit = FALSE)),
    list(gaussian_mixture(components = 5), pairs, sgais(200, early = early, audit = FALSE))
  )) {
    fit <- function(threads)
      essence(evidence(case[[1]], case[[2]], case[[3]], seed = test_seed(6), threads = threads))
    one <- fit(1)
    for (threads in 2:3) expect_identical(fit(threads), one)
  }
})

test_that("sharing the rows of one point among threads changes no bit", {
  n <- 30000
  set.seed(test_seed(2))
  long <- data.frame(x = rnorm(n), class = factor(sample(3, n, TRUE)))
  classes <- softmax_regression(class ~ x, prior_sd = 1)
  fit <- function(threads, method)
    essence(evidence(classes, long, method, seed = test_seed(6), threads = threads))
  for (method in list(sgais(audit_draws = 20), laplace())) for (threads in c(2, 3))
    expect_identical(fit(threads, method), fit(1, method))
  # parts of the rows add up to the same second derivatives
  model <- linear_regression(y ~ x, sigma = 2, prior_sd = 3)
  flat <- data.frame(x = long$x, y = 1 + long$x + rnorm(n))
  expect_equal(evidence(model, flat, laplace(), seed = test_seed())$log_evidence,
               model_functions(model, flat)$exact(), tolerance = 1e-10)
})

test_that("a forked child of a process with threads runs with one, and has the same result", {
  skip_on_os("windows")
  fit <- function() evidence(line, straight, smc(particles = 65), seed = test_seed(),
                             threads = 2)[c("log_evidence", "se", "draws")]
  here <- fit()
  job <- parallel::mcparallel(list(fit(), fit()))
  there <- parallel::mccollect(job, wait = FALSE, timeout = 60)
  if (is.null(there)) tools::pskill(job$pid, tools::SIGKILL)
  expect_identical(there[[1]], list(here, here))
})

# The thread pool of OpenMP is one for all libraries of a process.
OPENMP_LIBRARY <- '
#include <omp.h>
void use_threads(int *n)
{
  #pragma omp parallel num_threads(2)
  {
    #pragma omp single
    n[0] = omp_get_num_threads();
  }
}'

test_that("a forked child loads the package after its parent has used OpenMP elsewhere", {
  skip_on_cran()
  skip_on_os("windows")
  folder <- tempfile()
  dir.create(folder)
  on.exit(unlink(folder, recursive = TRUE))
  writeLines(OPENMP_LIBRARY, file.path(folder, "threads.c"))
  library <- file.path(folder, paste0("threads", .Platform$dynlib.ext))
  flags <- c("PKG_CFLAGS=-fopenmp", "PKG_LIBS=-fopenmp")
  built <- suppressWarnings(system2(file.path(R.home("bin"), "R"), c(
    "CMD", "SHLIB", "-o", library, file.path(folder, "threads.c")), stdout = FALSE,
    stderr = FALSE, env = flags))
  skip_if(built != 0, "No OpenMP")
  script <- file.path(folder, "script.R")
  writeLines(c(
    sprintf(".libPaths(%s)", deparse1(.libPaths())), sprintf("dyn.load(%s)", deparse(library)),
    "if (.C('use_threads', n = 0L)$n < 2 || isNamespaceLoaded('logevidence')) quit(status = 3)",
    "fit <- function(i) logevidence::evidence(logevidence::linear_regression(dist ~ speed), cars,",
    "  logevidence::method_smc(particles = 200), seed = i, progress = FALSE,",
    "  threads = 2)$log_evidence",
    "there <- unlist(parallel::mclapply(1:2, fit, mc.cores = 2))",
    "quit(status = if (identical(there, vapply(1:2, fit, 0))) 0 else 4)"), script)
  status <- suppressWarnings(system2(file.path(R.home("bin"), "Rscript"), script, stdout = FALSE,
                                     stderr = FALSE, timeout = 60,
                                     env = c("OMP_NUM_THREADS=2", "LOGEVIDENCE_FORKS=")))
  skip_if(status == 3, "One thread")
  expect_identical(status, 0L)
})

test_that("the same seed gives the same fit, another seed another", {
  for (name in names(methods)) {
    fit <- function(seed) essence(evidence(line, few, methods[[name]], seed = seed))
    first <- fit(test_seed(3))
    expect_identical(fit(test_seed(3)), first, info = name)
    expect_false(identical(fit(test_seed(4))$log_evidence, first$log_evidence), info = name)
  }
  large <- function(seed) evidence(line, few, ais(20, linear(5)), seed = seed)$log_evidence
  expect_false(large(1) == large(2^32 + 1))
  expect_identical(large(2^53), large(2^53))
})

test_that("replicates differ, and the first is the run without any", {
  fit <- evidence(line, few, ais(20, linear(5)), seed = test_seed(5), replicates = 4)
  expect_identical(anyDuplicated(fit$replicates$log_evidence), 0L)
  alone <- evidence(line, few, ais(20, linear(5)), seed = test_seed(5))
  expect_identical(fit$replicates$log_evidence[1], alone$log_evidence)
  again <- evidence(line, few, ais(20, linear(5)), seed = test_seed(5), replicates = 4, threads = 2)
  expect_identical(essence(again), essence(fit))
})

test_that("replicates side by side are those one after another", {
  same <- function(model, data, method, replicates = 2, threads = 2) {
    fit <- function(threads) essence(evidence(model, data, method, seed = test_seed(8),
                                              replicates = replicates, threads = threads))
    one <- fit(1)
    for (several in threads) expect_identical(fit(several), one)
    one
  }
  same(line, straight, methods$sgais, fast_or_slow(3, 5), fast_or_slow(2:3, c(2, 3, 64)))
  same(line, straight, sgais(60, order = "given", early = list(rows = 250)))
  for (name in c("sgais_paper", "ais", "nested", "hybrid", "laplace", "bridge"))
    same(line, few, methods[[name]])
  same(clustering(components = 2), clusters, smc(particles = 20))
  asked <- custom_model("mean", function(theta, data) dnorm(data, theta, log = TRUE),
                        function(theta) dnorm(theta, log = TRUE), rnorm)
  same(asked, few$y, smc(particles = 20, kernel = rwm()))
  skip_unless_slow()
  # particles near labels' walls, and walks that are done again with more effort
  crowd <- with_own_seed(test_seed(6), matrix(rnorm(400, rep(c(-4, 4), 200)), ncol = 1))
  thorough <- same(gaussian_mixture(components = 4), crowd, sgais(particles = 20))
  expect_gt(nrow(thorough$draws), 2 * 200)
})

test_that("one of several replicates that fails ends them all, in a sentence", {
  data <- data.frame(x = c(1, 2, 3), y = c(1e160, 2e160, 3e160))
  for (threads in 1:2)
    expect_error(evidence(line, data, sgais(20), seed = test_seed(), replicates = 3,
                          threads = threads),
                 "zero likelihood", class = "logevidence_error")
})

test_that("without a seed R's generator is used and advances", {
  fit <- function() evidence(line, few, ais(20, linear(5)))$log_evidence
  set.seed(test_seed(6))
  first <- c(fit(), fit())
  set.seed(test_seed(6))
  expect_identical(c(fit(), fit()), first)
  expect_false(first[1] == first[2])
})

test_that("with a seed R's generator does not change", {
  set.seed(test_seed(7))
  before <- .Random.seed
  evidence(line, few, ais(20, linear(5)), seed = test_seed())
  simulate(line, seed = test_seed(), data = few)
  model_functions(line, few)$draw_prior(3, seed = test_seed())
  expect_identical(.Random.seed, before)
  # also when it has not been used yet
  rm(".Random.seed", envir = globalenv())
  evidence(line, few, ais(20, linear(5)), seed = test_seed())
  expect_false(exists(".Random.seed", envir = globalenv(), inherits = FALSE))
  set.seed(test_seed())
})

test_that("the kind of R's generator does not matter with a seed", {
  kind <- RNGkind()
  on.exit(do.call(RNGkind, as.list(kind)))
  first <- evidence(line, few, ais(20, linear(5)), seed = test_seed(3))$log_evidence
  RNGkind("Wichmann-Hill")
  expect_identical(evidence(line, few, ais(20, linear(5)), seed = test_seed(3))$log_evidence, first)
})

# Runs that are killed (SIGKILL) at random moments and resumed from their checkpoint: does each give
# the bits of the run that was never stopped?
#
#   tools/with-lib.sh Rscript bench/kill.R [kills of each kind] [seconds at most] [kinds, a regex]
#
# Each run is a child process that writes checkpoints as often as it can, so that many are killed
# while they write. The parent resumes what the child has left, in another child, and kills that one
# as well; the third goes on to the end.

library(logevidence)

arguments <- commandArgs(trailingOnly = TRUE)
kills <- if (length(arguments) > 0) as.numeric(arguments[1]) else 5
limit <- if (length(arguments) > 1) as.numeric(arguments[2]) else 170
wanted <- if (length(arguments) > 2) arguments[3] else "."

set.seed(1)
points <- data.frame(x = rnorm(20000), z = rnorm(20000))
points$y <- 1 + 2 * points$x + rnorm(20000)
points$class <- factor(rbinom(20000, 1, plogis(points$x)))
points$w <- points$x + 1.5 * rnorm(20000, sample(c(-1, 1), 20000, TRUE))
few <- points[1:60, ]
blobs <- matrix(rnorm(400, rep(c(-3, 3), 100)), ncol = 2)
line <- linear_regression(y ~ x + z, sigma = 1, prior_sd = 2)
two_classes <- softmax_regression(class ~ x + z, prior_sd = 1)
overlapping <- gaussian_mixture(~ w, components = 2, location = 0, rate = 1)
classes <- softmax_regression(Species ~ Petal.Width + Sepal.Width, prior_sd = 1)
user <- custom_model(
  c("a", "b"), function(theta, data) sum(dnorm(data$y, theta[1] + theta[2] * data$x, log = TRUE)),
  function(theta) sum(dnorm(theta, log = TRUE)), function(n) matrix(rnorm(2 * n), n))

in_blocks <- function(data, size) {
  at <- 0
  rows_function(function(reset) {
    if (reset) at <<- 0
    else if (at < nrow(data)) {
      rows <- (at + 1):min(at + size, nrow(data))
      at <<- at + size
      data[rows, , drop = FALSE]
    }
  })
}

kind <- function(model, data, method, ..., again = FALSE)
  list(model = model, data = data, method = method, more = list(...), again = again)
kinds <- list(
  sgais = kind(line, points, sgais(steps = 20)),
  sgais_given = kind(line, points, sgais(steps = 20, order = "given")),
  sgais_paper = kind(line, points[1:8000, ], sgais(preset = "paper")),
  sgais_softmax = kind(classes, iris, sgais()),
  sgais_mixture = kind(gaussian_mixture(components = 2, location = 0, rate = 1), blobs, sgais()),
  second_runs = kind(gaussian_mixture(components = 4, location = 0, rate = 1),
                     blobs, sgais(20, audit_draws = 64)),
  replicates = kind(line, points[1:4000, ], sgais(), replicates = 3),
  stream = kind(line, in_blocks(points, 700), sgais(steps = 20), again = TRUE),
  stream_replicates = kind(line, in_blocks(points, 700), sgais(), replicates = 3, again = TRUE),
  rows_gone = kind(two_classes, in_blocks(points, 700), sgais(steps = 20), keep = 2000,
                   again = TRUE),
  second_pass = kind(overlapping, in_blocks(points, 3000), sgais(), keep = 4000, again = TRUE),
  smc_data_gone = kind(two_classes, in_blocks(points[1:6000, ], 700),
                       method_smc("data", 200, chunk = 50),
                       keep = 2000, again = TRUE),
  online_nested_gone = kind(line, in_blocks(points[1:4000, ], 300), online_nested(30),
                            keep = 2000, again = TRUE),
  race = kind(list(line, linear_regression(y ~ x, sigma = 1, prior_sd = 2),
                   linear_regression(y ~ 1, sigma = 1, prior_sd = 2)),
              in_blocks(points, 700), sgais(steps = 20), again = TRUE),
  race_in_memory = kind(list(line, linear_regression(y ~ x, sigma = 1, prior_sd = 2)), points,
                        sgais(steps = 20)),
  ais = kind(line, few, ais(400)),
  smc = kind(line, few, method_smc(particles = 2000)),
  smc_data = kind(line, few, method_smc("data", 2000)),
  sequential = kind(line, points[1:2000, ], method_sequential()),
  hybrid = kind(line, points[1:3000, ], hybrid()),
  bridge = kind(line, few, bridge(50, 400)),
  harmonic_mean = kind(line, few, harmonic_mean(50, 400)),
  power_posterior = kind(line, few, power_posterior()),
  likelihood_weighting = kind(line, points[1:500, ], likelihood_weighting(1e5)),
  nested = kind(line, few, nested(400)),
  online_nested = kind(line, few, online_nested(100)),
  laplace = kind(classes, iris, method_laplace(starts = 400, importance = 20000)),
  chib = kind(clustering(components = 2), blobs, chib(draws = 2000)),
  latent = kind(clustering(components = 2), blobs, method_smc("data", particles = 200)),
  variational = kind(gaussian_mixture(components = 3, location = 0, rate = 1),
                     blobs, variational(60, draws = 2000)),
  user = kind(user, few, method_smc(particles = 100, kernel = rwm()))
)

essence <- function(fit) {
  if (inherits(fit, "evidence_race")) return(lapply(attr(fit, "fits"), essence))
  fit$trace$seconds <- fit$variational$restarts$seconds <- NULL
  parts <- c("log_evidence", "se", "n", "draws", "log_weights", "parameters", "sampler", "audit",
             "bound", "nested", "replicates", "warnings", "data_id", "trace", "variational",
             "power")
  unclass(fit)[parts]
}

first <- function(kind, file) {
  call <- c(list(kind$model, kind$data, kind$method, seed = 2, progress = FALSE), kind$more)
  if (!is.null(file)) call <- c(call, checkpoint = file, every = 0)
  suppressWarnings(do.call(evidence, call, quote = TRUE))
}
further <- function(kind, file)
  suppressWarnings(resume(file, if (kind$again) kind$data, progress = FALSE, every = 0))

# A child that is killed `after` seconds from its first checkpoint; TRUE if it was still at work.
killed <- function(work, file, after) {
  before <- file.mtime(file)
  child <- parallel::mcparallel(work())
  while (is.na(before) && !file.exists(file)) Sys.sleep(0.002)
  Sys.sleep(after)
  tools::pskill(child$pid, tools::SIGKILL)
  is.null(suppressWarnings(parallel::mccollect(child))[[1]])
}

in_child <- function(work) suppressWarnings(parallel::mccollect(parallel::mcparallel(work())))[[1]]

began <- proc.time()[["elapsed"]]
total <- different <- 0
for (name in grep(wanted, names(kinds), value = TRUE)) {
  one <- kinds[[name]]
  whole <- in_child(function() essence(first(one, NULL)))
  spent <- system.time(in_child(function() first(one, tempfile())))[["elapsed"]]
  done <- wrong <- 0
  while (done < kills && proc.time()[["elapsed"]] - began < limit) {
    file <- tempfile("run")
    once <- killed(function() first(one, file), file, stats::runif(1, 0, spent))
    twice <- killed(function() further(one, file), file, stats::runif(1, 0, spent / 2))
    last <- in_child(function() essence(further(one, file)))
    done <- done + once + twice
    if (!identical(last, whole)) {
      wrong <- wrong + 1
      if (!is.list(last)) print(last)
      else print(names(Filter(Negate(isTRUE), Map(identical, whole, last))))
    }
    if (!once && !twice) spent <- spent / 2
    unlink(file)
    if (spent < 0.01) break
  }
  total <- total + done
  different <- different + wrong
  cat(sprintf("%-22s %5.2f s  %3d kills  %d results differ\n", name, spent, done, wrong))
}
cat(total, "kills,", different, "results differ\n")
quit(status = as.integer(different > 0))

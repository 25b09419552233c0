# speed.R <library before> <library now> <pairs> <pattern>: ten fits by two versions of the package
# (`make speed`, tools/speed.sh).
#
# Each run is a fresh process on one core that makes the fit once unmeasured if it is short, then
# `times` times. The two runs of a pair follow one another, and which is first alternates, so that
# what else the machine does meets both alike. The ratio is that of the processor time, now to
# before: its geometric mean over the pairs, with the standard error of that mean.

regression_data <- function(n, p = 5) {
  x <- matrix(stats::rnorm(n * p), n)
  eta <- drop(x %*% seq(-0.5, 0.5, length.out = p))
  data.frame(x, y = eta + stats::rnorm(n), count = stats::rpois(n, exp(0.5 * eta)),
             yes = stats::rbinom(n, 1, stats::plogis(eta)),
             class = factor(max.col(cbind(0, eta, -eta) - log(stats::rexp(3 * n)))))
}

# name = list(times, data, fit): data are made outside of what is measured.
FITS <- list(
  `linear, 100,000 rows` = list(
    times = 6, data = function() regression_data(1e5),
    fit = function(d, seed) evidence(linear_regression(y ~ X1 + X2 + X3 + X4 + X5,
                                                       prior_sd = 1), d, seed = seed)
  ),
  `logit, 100,000 rows` = list(
    times = 4, data = function() regression_data(1e5),
    fit = function(d, seed)
      evidence(regression(yes ~ X1 + X2 + X3 + X4 + X5, family = binomial(),
                          prior_sd = 2.5), d, seed = seed)
  ),
  `poisson, 10,000 rows` = list(
    times = 10, data = function() regression_data(1e4),
    fit = function(d, seed)
      evidence(regression(count ~ X1 + X2 + X3 + X4 + X5, family = poisson(),
                          prior_sd = 2.5), d, seed = seed)
  ),
  `softmax, 20,000 rows` = list(
    times = 4, data = function() regression_data(2e4),
    fit = function(d, seed) evidence(softmax_regression(class ~ X1 + X2 + X3,
                                                        prior_sd = 1), d, seed = seed)
  ),
  `mixture, 5,000 rows` = list(
    times = 5, data = function() matrix(stats::rnorm(5e3, c(-3, 0, 3), 0.7)),
    fit = function(d, seed) evidence(gaussian_mixture(components = 3, location = 0, rate = 1),
                                     d, seed = seed)
  ),
  `custom, 40 rows` = list(
    times = 1, data = function() stats::rnorm(40, 1),
    fit = function(d, seed) {
      model <- custom_model("mean",
                            function(theta, data) sum(stats::dnorm(data, theta, log = TRUE)),
                            function(theta) stats::dnorm(theta, 0, 2, log = TRUE),
                            function(n) matrix(stats::rnorm(n, 0, 2)))
      evidence(model, d, smc(), seed = seed)
    }
  ),
  `density, 2,000 rows` = list(
    times = 6, data = function() regression_data(2e3),
    fit = function(d, seed)
      evidence(density(~ dnorm(y, m, exp(s), log = TRUE), m = ~ X1 + X2, s = ~ X1), d, seed = seed)
  ),
  `stream, 100,000 rows, keep = 2,000` = list(
    times = 6, data = function() regression_data(1e5),
    fit = function(d, seed)
      evidence(linear_regression(y ~ X1 + X2 + X3, prior_sd = 1), d, seed = seed, keep = 2000)
  ),
  `clustering, 40 rows` = list(
    times = 10, data = function() matrix(stats::rnorm(80, c(-2, 2)), ncol = 2, byrow = TRUE),
    fit = function(d, seed) evidence(clustering(components = 3), d, smc(), seed = seed)
  ),
  `nested, 200 rows` = list(
    times = 8, data = function() regression_data(200),
    fit = function(d, seed)
      evidence(linear_regression(y ~ X1 + X2, sigma = 1, prior_sd = 1), d, nested(), seed = seed)
  )
)

# ---- one run: the seconds on standard output

arguments <- commandArgs(trailingOnly = TRUE)
if (identical(arguments[1], "run")) {
  library(logevidence, lib.loc = arguments[2])
  case <- FITS[[arguments[3]]]
  set.seed(1)
  data <- case$data()
  if (case$times > 1) invisible(suppressWarnings(case$fit(data, 0)))
  gc()
  before <- proc.time()
  for (seed in seq_len(case$times)) suppressWarnings(case$fit(data, seed))
  cat(sum((proc.time() - before)[1:2]) / case$times)
  quit()
}

# ---- all runs

script <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))
libraries <- arguments[1:2]
pairs <- as.integer(arguments[3])

seconds_of <- function(library, name) {
  said <- suppressWarnings(system2(
    file.path(R.home("bin"), "Rscript"), c(script, "run", shQuote(library), shQuote(name)),
    env = "OMP_NUM_THREADS=1", stdout = TRUE, stderr = TRUE
  ))
  seconds <- suppressWarnings(as.numeric(utils::tail(said, 1)))
  if (!is.null(attr(said, "status")) || is.na(seconds)) stop(paste(said, collapse = " "))
  seconds
}

cat(sprintf("%-36s %10s %10s  %s\n", "", "before, s", "now, s", "now / before"))
slower <- character()
for (name in grep(arguments[4], names(FITS), value = TRUE)) {
  seconds <- tryCatch(t(vapply(seq_len(pairs), function(pair) {
    order <- if (pair %% 2) 1:2 else 2:1
    vapply(libraries[order], seconds_of, 0, name)[order(order)]
  }, numeric(2))), error = function(e) conditionMessage(e))
  if (is.character(seconds)) {
    cat(sprintf("%-36s fails: %s\n", name, substr(seconds, 1, 200)))
    next
  }
  logs <- log(seconds[, 2] / seconds[, 1])
  error <- stats::sd(logs) / sqrt(pairs)
  changed <- pairs > 2 && abs(mean(logs)) > max(0.03, 3 * error)
  if (changed && mean(logs) > 0) slower <- c(slower, name)
  cat(sprintf("%-36s %10.3f %10.3f  %.3f ± %.3f, %.2f to %.2f%s\n", name, mean(seconds[, 1]),
              mean(seconds[, 2]), exp(mean(logs)), exp(mean(logs)) * error, exp(min(logs)),
              exp(max(logs)), if (!changed) "" else if (mean(logs) > 0) "  slower" else "  faster"))
}
if (length(slower))
  cat("\nSlower by more than 3% and three standard errors:", toString(slower), "\n")

# Every method once on a few rows of every model, for tools that watch the C code: valgrind
# (make sanitize), ThreadSanitizer (make races), and R's garbage collector. The models must all work
# with the default method; another pair may be refused, which must leave nothing behind.
#
#   MODELS=mean,linear   some models, by their names below
#   ROWS=40              rows of the data
#   THREADS=1            threads of each run
#   TORTURE=0            if it is k, R collects garbage at every k-th allocation of a second run,
#                        which must give the same bits: an object that C has not protected is then
#                        overwritten

library(logevidence)

asked <- function(name, default) {
  value <- Sys.getenv(name)
  if (nzchar(value)) as.numeric(value) else default
}
threads <- asked("THREADS", 1)
torture <- asked("TORTURE", 0)

set.seed(1)
n <- asked("ROWS", 40)
data <- data.frame(x = rnorm(n), kind = factor(rep(c("a", "b"), n / 2)), group = rep(1:10, n / 10))
data$y <- 1 + data$x + rnorm(n)
data$count <- rpois(n, exp(data$x / 2))

models <- list(
  mean = gaussian_mean(~ y),
  linear = linear_regression(y ~ x, sigma = 1, prior_sd = 1),
  noise = linear_regression(y ~ x, prior_sd = 1),
  jzs = linear_regression(y ~ x, prior = jzs()),
  softmax = softmax_regression(kind ~ x, prior_sd = 1),
  mixture = gaussian_mixture(~ y, components = 2, location = 0, rate = 1),
  counts = regression(count ~ x, "poisson"),
  groups = regression(kind ~ x + (1 | group), "binomial"),
  density = density(~ dnorm(y, m, 1, log = TRUE), m = ~ x),
  clusters = clustering(~ x + y, components = 2),
  rank = low_rank(~ x + y, rank = 1),
  custom = custom_model("m", function(theta, data) dnorm(data$y, theta, 1, log = TRUE),
                        function(theta) dnorm(theta, log = TRUE), function(n) rnorm(n))
)
methods <- c(
  "sgais", "ais", "smc", "sequential", "hybrid", "nested", "online_nested",
  "likelihood_weighting", "harmonic_mean", "laplace", "bic", "bridge", "power_posterior", "chib",
  "variational", "partitions", "exact")

chosen <- names(models)
if (nzchar(Sys.getenv("MODELS"))) chosen <- strsplit(Sys.getenv("MODELS"), ",")[[1]]
stopifnot(chosen %in% names(models))
# R functions allocate so much that a model of them would take hours
if (torture > 0) chosen <- setdiff(chosen, "custom")

differ <- character()
for (model in chosen) {
  cat(model, ":", sep = "")
  for (method in c("default", methods)) {
    run <- function() {
      given <- if (method != "default") list(method = get(paste0("method_", method))())
      call <- c(list(models[[model]], data, seed = 1, progress = FALSE, threads = threads), given)
      fit <- suppressWarnings(do.call(evidence, call))
      fit[c("log_evidence", "se", "draws", "log_weights")]
    }
    outcome <- tryCatch({
      fit <- run()
      if (torture > 0) {
        gctorture2(torture)
        again <- run()
        gctorture(FALSE)
        if (!identical(fit, again)) differ <- c(differ, paste(model, method))
      }
      method
    }, logevidence_error = function(e) if (method == "default") stop(e) else NULL)
    gctorture(FALSE)
    if (is.null(outcome)) outcome <- paste0(method, " (refused)")
    cat("", outcome)
  }
  cat("\n")
}
if (length(differ)) stop("Other bits with garbage collection: ", toString(differ))

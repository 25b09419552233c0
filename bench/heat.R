# The evidence of a linear regression on up to a million rows, against what is exact.
#
#   Rscript bench/heat.R [data sets of each size = 10]
#
# Every data set is simulated anew: an intercept and five covariates, coefficients and noise from
# the prior and the likelihood. For each there is the default sgais() and the published algorithm,
# sgais(preset = "paper"). A run tells
#
#   sampler, audit   their log evidence less the exact one, in nats, and the standard errors they
#                    report;
#   T                how wide the particles lie: the weighted mean of (theta - m)' P (theta - m) /
#                    d, where the exact posterior has mean m and precision P.  One when right;
#   T_plain          the same with equal weights: where the particles are, whatever they weigh.
#
# For the published settings (rate 0.1, friction 0.2, mini-batches of 500 rows) the noise of the
# gradient is expected to heat the particles to T = 1 + 5e-4 n, which costs (d/2) (T - 1) nats.
#
# Writes bench/results/heat.csv.

suppressPackageStartupMessages(library(logevidence))

here <- dirname(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[1]))
asked <- commandArgs(trailingOnly = TRUE)
most <- if (length(asked)) as.integer(asked[[1]]) else 10L

COVARIATES <- 5
DIMENSIONS <- COVARIATES + 1
HEAT <- 5e-4 # expected of the published settings, per row

model <- linear_regression(sigma = 1, prior_sd = 1)

simulated <- function(n, seed) {
  set.seed(seed)
  x <- matrix(rnorm(n * COVARIATES), n, dimnames = list(NULL, paste0("x", seq_len(COVARIATES))))
  w <- rnorm(DIMENSIONS)
  list(x = x, y = as.vector(w[1] + x %*% w[-1] + rnorm(n)))
}

# With unit noise and a standard normal prior.
exact_posterior <- function(data) {
  x <- cbind(1, data$x)
  precision <- crossprod(x) + diag(DIMENSIONS)
  list(precision = precision, mean = as.vector(solve(precision, crossprod(x, data$y))))
}

spread <- function(draws, weights, posterior) {
  away <- t(draws) - posterior$mean
  sum(weights * colSums(away * (posterior$precision %*% away))) / DIMENSIONS
}

one_run <- function(n, seed, settings, method, data, exact, posterior) {
  fit <- evidence(model, data, method, seed = seed)
  particles <- fit$sampler$draws
  audit <- if (is.null(fit$audit)) list(log_evidence = NA, se = NA) else fit$audit
  data.frame(
    n = n, seed = seed, settings = settings, exact = exact,
    sampler_error = fit$sampler$log_evidence - exact, sampler_se = fit$sampler$se,
    audit_error = audit$log_evidence - exact, audit_se = audit$se, source = fit$source,
    T = spread(particles, exp(fit$sampler$log_weights), posterior),
    T_plain = spread(particles, rep(1 / nrow(particles), nrow(particles)), posterior),
    seconds = fit$work[["seconds"]]
  )
}

runs <- list()
for (n in c(1e3, 1e4, 1e5, 1e6)) {
  for (seed in seq_len(most)) {
    data <- simulated(n, seed)
    exact <- model_functions(model, data)$exact()
    posterior <- exact_posterior(data)
    runs <- c(runs, list(
      one_run(n, seed, "default", sgais(), data, exact, posterior),
      one_run(n, seed, "paper", sgais(preset = "paper"), data, exact, posterior)
    ))
  }
  message(format(n, big.mark = ",", scientific = FALSE), " rows done")
}
runs <- do.call(rbind, runs)

folder <- file.path(here, "results")
dir.create(folder, showWarnings = FALSE)
utils::write.csv(runs, file.path(folder, "heat.csv"), row.names = FALSE)

# Mean and standard deviation over data sets, and the figures expected of the published settings.
mean_sd <- function(x, digits) sprintf("%.*f (%.*f)", digits, mean(x), digits, stats::sd(x))
row_of <- function(group, default) {
  n <- group$n[1]
  data.frame(
    n = format(n, big.mark = ",", scientific = FALSE),
    sampler = mean_sd(group$sampler_error, if (default) 2 else 1),
    se = sprintf("%.2f", mean(group$sampler_se)),
    audit = if (default) mean_sd(group$audit_error, 3) else "",
    `audit se` = if (default) sprintf("%.3f", mean(group$audit_se)) else "",
    T = mean_sd(group$T, if (default) 2 else 1),
    `T plain` = mean_sd(group$T_plain, if (default) 2 else 1),
    `T expected` = if (default) "1" else sprintf("%.1f", 1 + HEAT * n),
    `loss expected` = if (default) "0" else sprintf("%.1f", -DIMENSIONS / 2 * HEAT * n),
    seconds = sprintf("%.2f", stats::median(group$seconds)),
    check.names = FALSE
  )
}
for (settings in c("default", "paper")) {
  cat("\n", settings, " settings, ", most,
      " data sets each; errors in nats, mean (sd); median seconds of the run\n", sep = "")
  chosen <- runs[runs$settings == settings, ]
  print(do.call(rbind, lapply(split(chosen, chosen$n), row_of, default = settings == "default")),
        row.names = FALSE)
}

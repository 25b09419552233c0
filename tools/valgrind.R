# What `make sanitize` runs under valgrind: every method once on a few rows of every model. The
# models must all work with the default method; another pair may be refused, which must leave
# nothing behind.

library(logevidence)

set.seed(1)
n <- 40
data <- data.frame(x = rnorm(n), kind = factor(rep(c("a", "b"), n / 2)))
data$y <- 1 + data$x + rnorm(n)

models <- list(
  mean = gaussian_mean(~ y),
  linear = linear_regression(y ~ x, sigma = 1, prior_sd = 1),
  noise = linear_regression(y ~ x, prior_sd = 1),
  jzs = linear_regression(y ~ x, prior = jzs()),
  softmax = softmax_regression(kind ~ x, prior_sd = 1),
  mixture = gaussian_mixture(~ y, components = 2)
)
methods <- intersect(
  c("ais", "smc", "sequential", "hybrid", "nested", "online_nested", "likelihood_weighting",
    "harmonic_mean", "laplace", "bic", "bridge", "power_posterior", "chib", "variational", "exact"),
  getNamespaceExports("logevidence")
)

for (model in names(models)) {
  run <- function(...) evidence(models[[model]], data, seed = 1, progress = FALSE, ...)
  cat(model, ": sgais", sep = "")
  run()
  for (method in methods) {
    outcome <- tryCatch({
      run(method = getExportedValue("logevidence", method)())
      method
    }, error = function(e) paste0(method, " (refused)"))
    cat(",", outcome)
  }
  cat("\n")
}

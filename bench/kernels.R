# What one row costs one particle, by model and by the vector instructions used, with the data in
# cache.
#
#   Rscript bench/kernels.R [seconds for each figure = 0.3]
#
# Nanoseconds of CPU time per row and particle of the log-likelihood, of its gradient (which comes
# with it) for a block of 512 rows and for a mini-batch of 100, 500 particles, of the gradient
# without its value (`alone`) for the block; and nanoseconds per row of the second derivatives at
# one point; the best of repeated runs. In the same run: the greatest speed of multiply-adds by the
# same instructions, and the share of it that the gradient with its value reaches, counting only the
# multiply-adds of its products (linear 2 p + 1, softmax 2 p K, mixture 5 K p), and also what it
# cannot do without: an exp as 18 operations (with AVX-512 as 14, near 0 as 11) and a log as 25, a
# division as 8. Sums are compared with those of the plain variant: the last column is the greatest
# relative difference.

suppressPackageStartupMessages(library(logevidence))
asked <- commandArgs(trailingOnly = TRUE)
patience <- if (length(asked)) as.numeric(asked[[1]]) else 0.3

inside <- function(name) get(name, envir = asNamespace("logevidence"))
door <- inside("ffi_model")
source("tests/testthat/helper-units.R")
Sys.setenv(LOGEVIDENCE_UNITS = make_units("tests/testthat"))
multiply_adds <- unit("multiply_adds")
best <- .Call(inside("ffi_simd"))$best
variants <- c("plain", "avx2", "avx512")
variants <- variants[seq_len(match(best, variants))]

models <- list(
  linear = list(type = "linear_regression", args = list(covariates = 6, sigma = 1), d = 6,
                width = 7, products = 13, operations = 13, exps = 0, short_exp = 0),
  softmax = list(type = "softmax_regression", args = list(covariates = 11, classes = 4), d = 44,
                 width = 12, products = 88, operations = 88 + 8 + 4 * 5, exps = 4, short_exp = 14),
  mixture = list(type = "gaussian_mixture", args = list(components = 5, dimensions = 2), d = 24,
                 width = 2, products = 50,
                 operations = 20 + 8 + 5 * 3 + 45, exps = 5, short_exp = 11)
)

ask <- function(model, variant, what, theta, rows, extra = list()) {
  .Call(door, model$type, c(model$args, simd = variant), rows, what, theta, extra)
}

# CPU seconds of one call, the best of many.
seconds <- function(call) {
  cpu <- function(loops) sum(system.time(for (i in seq_len(loops)) call(), gcFirst = FALSE)[1:2])
  loops <- 1
  while ((took <- cpu(loops)) < 0.02) loops <- 2 * loops
  best <- took / loops
  from <- proc.time()[[3]]
  while (proc.time()[[3]] - from < patience) best <- min(best, cpu(loops) / loops)
  best
}

apart <- function(a, b) max(abs(a - b)) / max(abs(b))

table <- list()
for (variant in variants) {
  spent <- seconds(function() .Call(multiply_adds, 20, match(variant, variants) - 1))
  peak <- 8 * 2^20 * 20 / spent / 1e9
  cat(sprintf("%-6s %.1f multiply-adds per ns\n", variant, peak))
  for (name in names(models)) {
    model <- models[[name]]
    set.seed(1)
    d <- model$d
    n <- 4096
    rows <- matrix(rnorm(n * model$width), model$width)
    theta <- matrix(rnorm(d * 500) / 2, d)
    rows <- ask(model, "plain", "simulate", theta[, 1, drop = FALSE], rows, list(seed = c(0, 1)))
    block <- rows[, 1:512]
    batch <- rows[, 1:100]
    one <- theta[, 1, drop = FALSE]
    per <- function(what, theta, rows)
      seconds(function() ask(model, variant, what, theta, rows)) / ncol(theta) / ncol(rows) * 1e9
    grad <- per("log_lik_grad", theta, block)
    found <- ask(model, variant, "log_lik_grad", theta, block)
    plain <- ask(model, "plain", "log_lik_grad", theta, block)
    operations <- model$operations + model$exps * if (variant == "avx512") model$short_exp else 18
    table <- c(table, list(data.frame(
      model = name, variant = variant, likelihood = per("log_lik", theta, block), gradient = grad,
      batch = per("log_lik_grad", theta, batch),
      alone = per(if (name == "linear") "log_lik_grad" else "log_lik_grad_alone", theta, block),
      curvature = per("log_lik_hess", one, rows), products = model$products / grad / peak,
      all = operations / grad / peak,
      apart = max(apart(found$value, plain$value), apart(found$gradient, plain$gradient))
    )))
  }
}
table <- do.call(rbind, table)
shown <- table
for (column in c("likelihood", "gradient", "batch", "alone", "curvature"))
  shown[[column]] <- sprintf("%.2f", shown[[column]])
for (column in c("products", "all")) shown[[column]] <- sprintf("%.0f%%", 100 * shown[[column]])
shown$apart <- sprintf("%.0e", shown$apart)
print(shown[order(match(shown$model, names(models))), ], row.names = FALSE)

# Data that are not kind: sgais() as it comes, on fresh data sets of every family.
#
#   Rscript bench/robust.R [data sets = 10] [directory = bench/results] [rows = 5000] [families,
#     comma-separated]
#
# The reference is the closed form for linear regression and importance sampling with 20,000 draws
# for softmax regression; for mixtures importance sampling around the best peaks of three times 500
# climbs from the prior, where its weights are even, and smc() with 1,000 particles where they are
# not. Writes robust.csv.

suppressPackageStartupMessages(library(logevidence))

linear <- function(n, x, prior_sd = 1, w = rnorm(ncol(x) + 1, sd = prior_sd), noise = rnorm(n)) {
  list(model = linear_regression(sigma = 1, prior_sd = prior_sd),
       data = list(x = x, y = as.vector(cbind(1, x) %*% w + noise)))
}
softmax <- function(n, x, classes = 4, w = matrix(rnorm(classes * (ncol(x) + 1)), ncol(x) + 1),
                    prior_sd = 1) {
  utility <- cbind(1, x) %*% w - log(-log(matrix(runif(classes * n), n)))
  list(model = softmax_regression(prior_sd = prior_sd),
       data = list(x = x, y = factor(max.col(utility), seq_len(classes))))
}
mixture <- function(n, components, weight, centre, sd = 0.7, noise = rnorm) {
  z <- sample.int(length(weight), n, replace = TRUE, prob = weight)
  list(model = gaussian_mixture(components = components, location = 0, rate = 1),
       data = centre[z, , drop = FALSE] + sd * matrix(noise(n * ncol(centre)), n))
}
normal <- function(n, d) matrix(rnorm(n * d), n)
alike <- function(n, d, r) sqrt(r) * rnorm(n) + sqrt(1 - r) * normal(n, d)
scaled <- function(n, d) normal(n, d) * rep(10^seq(-3, 3, length.out = d), each = n)
ring <- function(k, radius = 4) radius *
  cbind(cos(2 * pi * seq_len(k) / k), sin(2 * pi * seq_len(k) / k)) + rnorm(2 * k, sd = 0.3)

FAMILIES <- list(
  "linear, d = 201" = function(n) linear(n, normal(n, 200)),
  "linear, covariates alike (0.99)" = function(n) linear(n, alike(n, 10, 0.99)),
  "linear, scales 1e-3 to 1e3" = function(n)
    linear(n, scaled(n, 7), w = rnorm(8) / c(1, 10^seq(-3, 3, length.out = 7))),
  "linear, prior in conflict" = function(n) linear(n, normal(n, 5), w = rnorm(6, 20)),
  "linear, errors t with 2 df" = function(n) linear(n, normal(n, 5), noise = rt(n, 2)),
  "softmax, d = 204" = function(n) softmax(n, normal(n, 50)),
  "softmax, covariates alike (0.99)" = function(n) softmax(n, alike(n, 10, 0.99)),
  "softmax, scales 1e-3 to 1e3" = function(n) {
    x <- scaled(n, 7)
    softmax(n, x, w = matrix(rnorm(32), 8) / c(1, 10^seq(-3, 3, length.out = 7)))
  },
  "softmax, prior in conflict" = function(n)
    softmax(n, normal(n, 5), w = matrix(rnorm(24, sd = 5), 6)),
  "softmax, a class in 500" = function(n)
    softmax(n, normal(n, 5), w = rbind(c(6, 5, 4, 0), matrix(rnorm(20), 5))),
  "mixture, overlapping" = function(n)
    mixture(n, 3, c(0.5, 0.3, 0.2), rbind(c(-1, 0), c(1, 0.5), c(0, -1))),
  "mixture, weights down to 0.02" = function(n)
    mixture(n, 5, c(0.4, 0.3, 0.2, 0.08, 0.02), ring(5)),
  "mixture, 3 components of 7 clusters" = function(n) mixture(n, 3, rep(1 / 7, 7), ring(7)),
  "mixture, 5 components of 3 clusters" = function(n) mixture(n, 5, rep(1 / 3, 3), ring(3)),
  "mixture, tails t with 3 df" = function(n)
    mixture(n, 3, rep(1 / 3, 3), ring(3), 0.5, function(m) rt(m, 3)),
  "mixture, prior in conflict" = function(n)
    mixture(n, 2, c(0.6, 0.4), rbind(c(60, 60), c(70, 60))),
  "mixture, 10 components of 10 clusters" = function(n) mixture(n, 10, rep(0.1, 10), ring(10, 7))
)

reference_of <- function(problem) {
  if (inherits(problem$model, "linear_regression"))
    return(c(model_functions(problem$model, problem$data)$exact(), 0))
  several <- inherits(problem$model, "gaussian_mixture")
  fits <- lapply(if (several) 1:3 else 1, function(seed)
    evidence(problem$model, problem$data, laplace(importance = if (several) 4000 else 20000,
                                                  starts = if (several) 500), seed = seed))
  value <- vapply(fits, `[[`, 0, "log_evidence")
  uneven <- function(fit) fit$peaks$ess < 0.25 * fit$peaks$ideal || fit$peaks$pareto_k > 0.7
  fit <- fits[[which.max(value)]]
  even <- fits[value > max(value) - 5 & !vapply(fits, uneven, TRUE)]
  if (!several) return(c(fit$log_evidence, fit$se))
  if (length(even)) {
    se <- vapply(even, `[[`, 0, "se")
    return(c(stats::weighted.mean(vapply(even, `[[`, 0, "log_evidence"), 1 / se^2),
             1 / sqrt(sum(1 / se^2))))
  }
  fit <- evidence(problem$model, problem$data, smc(particles = 1000), seed = 1, progress = FALSE)
  c(fit$log_evidence, fit$se)
}

one_run <- function(family, n, set) {
  set.seed(1000 + set)
  problem <- FAMILIES[[family]](n)
  reference <- reference_of(problem)
  seconds <- system.time(fit <- evidence(problem$model, problem$data, sgais(), seed = set,
                                         progress = FALSE))
  unreached <- if (is.null(fit$audit$unreached)) 0 else fit$audit$unreached
  data.frame(family = family, set = set, error = fit$log_evidence - reference[1], se = fit$se,
             source = fit$source,
             sampler_error = fit$sampler$log_evidence - reference[1], sampler_se = fit$sampler$se,
             unreached = unreached,
             reference = reference[1], reference_se = reference[2], warned = length(fit$warnings),
             cpu = seconds[["user.self"]] + seconds[["sys.self"]])
}

main <- function(sets = "10", directory = "bench/results", rows = "5000", families = NULL) {
  chosen <- if (is.null(families)) names(FAMILIES) else
    grep(gsub(",", "|", families), names(FAMILIES), value = TRUE)
  table <- NULL
  for (family in chosen) {
    runs <- do.call(rbind, lapply(seq_len(as.integer(sets)),
                                  function(set) one_run(family, as.numeric(rows), set)))
    table <- rbind(table, runs)
    utils::write.csv(table, file.path(directory, "robust.csv"), row.names = FALSE)
    form <- paste("%-38s error %8.3f (%.3f), worst %.2f, |z| < 3 %3.0f%%, audit %3.0f%% | sampler",
                  "%7.2f (%.2f) se %.2f | %.2f s, warned %d\n")
    cat(sprintf(form, family,
                mean(runs$error), stats::sd(runs$error), runs$error[which.max(abs(runs$error))],
                100 * mean(abs(runs$error) < 3 * sqrt(runs$se^2 + runs$reference_se^2)),
                100 * mean(runs$source == "audit"),
                mean(runs$sampler_error), stats::sd(runs$sampler_error), mean(runs$sampler_se),
                mean(runs$cpu), sum(runs$warned > 0)))
  }
}

do.call(main, as.list(commandArgs(trailingOnly = TRUE)))

# Posteriors with many modes, periodic, skewed and nearly singular ones, under the default method.
#
#   tools/with-lib.sh Rscript bench/modes.R run [seeds]   # writes results/modes.csv, 10 min
#   tools/with-lib.sh Rscript bench/modes.R report
#
# References are sums and integrals on grids, coordinate by coordinate where the posterior is a
# product. A run is right if its error is within four standard errors; otherwise `fit$failed` must
# say that something is missing.

suppressPackageStartupMessages(library(logevidence))
results <- "bench/results/modes.csv"

log_sum <- function(x) max(x) + log(sum(exp(x - max(x))))

# The mean of three rows is the square of a coefficient: its sign is not known, so p coefficients
# have 2^p equal modes.
squares <- function(p, at = 1, sd = 0.1, prior = "normal(0, 2.5)",
                    log_prior = function(b) dnorm(b, 0, 2.5, log = TRUE)) {
  set.seed(p)
  group <- rep(seq_len(p), each = 3)
  y <- if (at == 1) rep(1 + runif(p), each = 3) else rep((at + runif(p))^2, each = 3)
  y <- y + rnorm(3 * p, 0, sd)
  b <- seq(-at - 3, at + 3, 2e-4)
  truth <- sum(vapply(seq_len(p), function(k) {
    z <- y[group == k]
    log_sum(-1.5 * log(2 * pi * sd^2) -
              (3 * b^4 - 2 * b^2 * sum(z) + sum(z^2)) / (2 * sd^2) + log_prior(b)) + log(2e-4)
  }, 0))
  columns <- paste0("x", seq_len(p))
  data <- data.frame(y, outer(group, seq_len(p), `==`) * 1)
  names(data) <- c("y", columns)
  model <- eval(parse(text = sprintf(
    "density(~ dnorm(y, m^2, %g, log = TRUE), m = ~ 0 + %s, prior = %s)", sd,
    paste(columns, collapse = " + "), prior)))
  list(model = model, data = data, truth = truth)
}

# A cosine of unknown amplitude and phase. The prior of the phase has many periods; the amplitude is
# integrated in closed form.
waves <- function(width, n = 40) {
  set.seed(5)
  x <- runif(n, 0, 10)
  y <- 1.3 * cos(2 * x + 0.7) + rnorm(n, 0, 0.3)
  phase <- seq(-8 * width, 8 * width, by = 0.01)
  truth <- log_sum(vapply(phase, function(p) {
    wave <- cos(2 * x + p)
    precision <- sum(wave^2) / 0.09 + 1 / 4
    -n / 2 * log(2 * pi * 0.09) - sum(y^2) / 0.18 - 0.5 * log(4) - 0.5 * log(precision) +
      (sum(wave * y) / 0.09)^2 / (2 * precision) + dnorm(p, 0, width, log = TRUE)
  }, 0)) + log(0.01)
  model <- eval(bquote(density(
    ~ dnorm(y, a * cos(2 * x + p), 0.3, log = TRUE), a = ~ 1, p = ~ 1,
    prior = list("a_(Intercept)" = normal(0, 2), "p_(Intercept)" = normal(0, .(width))))))
  list(model = model, data = data.frame(x, y), truth = truth)
}

# Two groups with their own noise; the two rows of the second are nearly equal, so its noise may be
# tiny.
tied <- function(apart, width = 2.5) {
  set.seed(9)
  data <- data.frame(g = factor(rep(c("a", "b"), c(8, 2))),
                     y = c(rnorm(8), 0.3, 0.3 + apart))
  first <- seq(-4, 4, 0.05)
  second <- seq(-18, 8, 0.05)
  near <- 0.3 + apart / 2 + c(-1, 1) %o% exp(seq(-19, 2, 0.02))
  m <- sort(unique(c(seq(-6, 6, 0.01), near)))
  weight <- (c(diff(m), 0) + c(0, diff(m))) / 2
  lik <- function(y, sd) colSums(matrix(dnorm(rep(y, length(m)), rep(m, each = length(y)), sd,
                                              log = TRUE), length(y)))
  a <- vapply(first, function(s) lik(data$y[1:8], exp(s)), m)
  b <- vapply(second, function(s) lik(data$y[9:10], exp(s)), m)
  own <- dnorm(m, 0, width, log = TRUE) + log(weight)
  truth <- log_sum(vapply(seq_along(first), function(i) {
    inner <- vapply(seq_along(second), function(j)
      log_sum(own + a[, i] + b[, j]) +
        dnorm(second[j] - first[i], 0, width, log = TRUE), 0)
    log_sum(inner) + dnorm(first[i], 0, width, log = TRUE)
  }, 0)) + 2 * log(0.05)
  model <- eval(bquote(density(~ dnorm(y, m, exp(s), log = TRUE), m = ~ 1, s = ~ g,
                               prior = normal(0, .(width)))))
  list(model = model, data = data, truth = truth)
}

# A skew-normal density of 30 rows: the slope has a long ridge.
skewed <- function() {
  set.seed(4)
  y <- abs(rnorm(30)) * 0.9 + rnorm(30) * 0.3
  scale <- seq(-3, 1.5, 0.02)
  slope <- seq(-30, 30, 0.15)
  parts <- lapply(seq(-2, 3, 0.02), function(m) {
    z <- outer(y - m, exp(-scale))
    base <- colSums(dnorm(z, log = TRUE)) - 30 * scale + 30 * log(2) +
      dnorm(scale, 0, 1, log = TRUE) + dnorm(m, 0, 2, log = TRUE)
    if (max(base) < -60) return(NULL)
    vapply(slope, function(a) log_sum(base + colSums(pnorm(a * z, log.p = TRUE))) +
             dnorm(a, 0, 5, log = TRUE), 0)
  })
  model <- density(
    ~ log(2) + dnorm(y, m, exp(s), log = TRUE) + pnorm(a * (y - m) / exp(s), log.p = TRUE),
    m = ~ 1, s = ~ 1, a = ~ 1,
    prior = list("m_(Intercept)" = normal(0, 2), "s_(Intercept)" = normal(0, 1),
                 "a_(Intercept)" = normal(0, 5)))
  list(model = model, data = data.frame(y),
       truth = log_sum(unlist(parts)) + 2 * log(0.02) + log(0.15))
}

heavy <- function(p, at) squares(p, at, 1, "student_t(1, 0, 0.5)",
                                 function(b) dt(b / 0.5, 1, log = TRUE) - log(0.5))

problems <- function() {
  signs <- setNames(lapply(1:10, function(p) function() squares(p)), paste("signs:", 2^(1:10)))
  periods <- c(2, 6, 20, 60, 200)
  sines <- setNames(lapply(periods, function(w) function() waves(w)),
                    paste("phase, prior sd", periods))
  c(signs, sines,
    list(`signs: 16, heavy prior, far` = function() heavy(4, 10),
         `signs: 16, heavy prior, farther` = function() heavy(4, 30),
         `signs: 64, heavy prior, far` = function() heavy(6, 10),
         `tied pair, 1e-2` = function() tied(1e-2), `tied pair, 1e-3` = function() tied(1e-3),
         `tied pair, 1e-5` = function() tied(1e-5), `skew-normal, 30 rows` = skewed))
}

one_fit <- function(problem, seed) {
  started <- proc.time()[[3]]
  fit <- suppressMessages(suppressWarnings(
    evidence(problem$model, problem$data, seed = seed, progress = FALSE)))
  data.frame(seed = seed, error = signif(fit$log_evidence - problem$truth, 4),
             se = signif(fit$se, 4), modes = fit$audit$modes, source = fit$source,
             failed = length(fit$failed) > 0, seconds = round(proc.time()[[3]] - started, 3))
}

report_lines <- function(rows) {
  lines <- lapply(split(rows, factor(rows$problem, unique(rows$problem))), function(part) {
    z <- part$error / part$se
    silent <- mean(abs(z) > 4 & !part$failed)
    sprintf("| %s | %d | %.0f | %.4f | %.4f | %.4f | %.1f | %.0f%% | %.0f%% | %.2f |",
            part$problem[1], nrow(part), median(part$modes), mean(part$error), sd(part$error),
            mean(part$se), max(abs(z)), 100 * silent, 100 * mean(part$failed),
            mean(part$seconds))
  })
  c(paste("| posterior | seeds | modes found | mean error | sd | stated | largest error / stated |",
          "silent | failed | s |"), "|---|---|---|---|---|---|---|---|---|---|", unlist(lines))
}

arguments <- commandArgs(TRUE)
if (identical(arguments[1], "run")) {
  seeds <- if (length(arguments) > 1) as.integer(arguments[2]) else 20
  rows <- NULL
  for (name in names(problems())) {
    problem <- problems()[[name]]()
    own <- do.call(rbind, lapply(seq_len(seeds), function(seed) one_fit(problem, seed)))
    rows <- rbind(rows, cbind(problem = name, own))
    message(sprintf("%-34s %.1f s a fit", name, mean(own$seconds)))
  }
  utils::write.csv(rows, results, row.names = FALSE)
}
if (length(arguments)) writeLines(report_lines(utils::read.csv(results)))

# Computes anew the constants of tests/testthat/helper-truth.R, and checks the code that does
# against what is exact.
#
#   Rscript bench/truth.R [names of constants, comma-separated]
#
# The package supplies only the specifications of the models (R_LIBS says where it is); every number
# comes from plain R. Softmax regressions, and mixtures whose posterior has one mode and its copies:
# importance sampling. Other mixtures: sequential Monte Carlo over allocations, all parameters
# integrated out, which no code of the package does; its mean over independent runs, with their
# spread. About ten minutes on one core in all.

suppressPackageStartupMessages(library(logevidence))
here <- dirname(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[1]))
source(file.path(here, "..", "tests", "testthat", "helper-truth.R"))

# Mixtures -----------------------------------------------------------------------------------------

#' One estimate of the log evidence of a mixture
#'
#' Particles are allocations z, distributed as p(z) times the integral of prior x likelihood^lambda.
#' A normal likelihood to the power lambda counts each point lambda times, so cluster_marginal()
#' serves at every lambda. lambda rises so that the weights of a step keep 90% of their effective
#' sample size; particles are resampled at every step and moved by collapsed Gibbs sweeps. All
#' particles are swept together, site by site.
allocation_smc <- function(y, components, particles, sweeps = 1, keep = 0.9, r = 2, a = 1, b = 1) {
  y <- as.matrix(y)
  n <- nrow(y)
  d <- ncol(y)
  rows <- seq_len(particles)
  weights <- matrix(rgamma(particles * components, 1), particles)
  z <- vapply(seq_len(n), function(i) draw_rows(weights), integer(particles))
  tally <- function(of) {
    vapply(seq_len(components), function(k) drop((z == k) %*% of), numeric(particles))
  }
  count <- tally(rep(1, n))
  totals <- lapply(seq_len(d), function(j) tally(y[, j]))
  squares <- lapply(seq_len(d), function(j) tally(y[, j]^2))

  log_likelihood <- function(lambda) {
    Reduce(`+`, lapply(seq_len(d), function(j) {
      rowSums(cluster_marginal(lambda * count, lambda * totals[[j]], lambda * squares[[j]], r, a,
                               b))
    }))
  }
  lambda <- 0
  log_z <- 0
  steps <- 0
  while (lambda < 1) {
    now <- log_likelihood(lambda)
    ess_short <- function(to) {
      w <- log_likelihood(to) - now
      w <- exp(w - max(w))
      sum(w)^2 / sum(w^2) / particles - keep
    }
    to <- if (ess_short(1) >= 0) 1 else uniroot(ess_short, c(lambda, 1), tol = 1e-6)$root
    w <- log_likelihood(to) - now
    log_z <- log_z + log_sum_exp(w) - log(particles)
    w <- exp(w - max(w))
    chosen <- findInterval((rows - runif(1)) / particles, cumsum(w) / sum(w)) + 1
    chosen <- pmin(chosen, particles)
    z <- z[chosen, , drop = FALSE]
    count <- count[chosen, , drop = FALSE]
    totals <- lapply(totals, function(t) t[chosen, , drop = FALSE])
    squares <- lapply(squares, function(t) t[chosen, , drop = FALSE])
    lambda <- to
    steps <- steps + 1

    # What depends on a whole count is looked up.
    whole <- lambda * (0:n)
    precision <- 1 / r^2 + whole
    constant <- -whole / 2 * LOG_2PI - 0.5 * log(r^2 * precision) + a * log(b) - lgamma(a) +
      lgamma(a + whole / 2)
    power <- a + whole / 2
    share <- 0.5 * lambda^2 / precision
    value <- function(count, total, square) {
      at <- count + 1
      constant[at] - power[at] * log(b + 0.5 * lambda * square - share[at] * total^2)
    }
    for (sweep in seq_len(sweeps)) for (i in sample.int(n)) {
      own <- cbind(rows, z[, i])
      count[own] <- count[own] - 1
      log_odds <- log(1 + count)
      for (j in seq_len(d)) {
        totals[[j]][own] <- totals[[j]][own] - y[i, j]
        squares[[j]][own] <- squares[[j]][own] - y[i, j]^2
        log_odds <- log_odds + value(count + 1, totals[[j]] + y[i, j], squares[[j]] + y[i, j]^2) -
          value(count, totals[[j]], squares[[j]])
      }
      z[, i] <- draw_rows(exp(log_odds - do.call(pmax, as.data.frame(log_odds))))
      own <- cbind(rows, z[, i])
      count[own] <- count[own] + 1
      for (j in seq_len(d)) {
        totals[[j]][own] <- totals[[j]][own] + y[i, j]
        squares[[j]][own] <- squares[[j]][own] + y[i, j]^2
      }
    }
  }
  c(log_evidence = log_z, steps = steps)
}

#' For each row a column, drawn in proportion to the entries
draw_rows <- function(weights) {
  at <- runif(nrow(weights)) * rowSums(weights)
  drawn <- rep(1L, nrow(weights))
  below <- 0
  for (k in seq_len(ncol(weights) - 1)) {
    below <- below + weights[, k]
    drawn <- drawn + (at > below)
  }
  drawn
}

allocation_truth <- function(y, components, particles, runs, sweeps = 1, seed = 1) {
  estimates <- with_own_seed(seed, vapply(seq_len(runs), function(run) {
    allocation_smc(y, components, particles, sweeps)[["log_evidence"]]
  }, 0))
  ratio <- exp(estimates - max(estimates))
  list(log_evidence = max(estimates) + log(mean(ratio)), se = sd(ratio) / mean(ratio) / sqrt(runs),
       spread = sd(estimates), shift = mean(estimates) - max(estimates) - log(mean(ratio)))
}

#' Two components that are well apart: one mode and its mirror image, by importance sampling in all
#' parameters
two_component_importance <- function(y, draws, df = 8, rounds = 4) {
  y <- as.matrix(y)
  d <- ncol(y)
  swap <- function(points) {
    points[, 1] <- -points[, 1]
    for (j in seq_len(d))
      points[, 1 + (j - 1) * 4 + 1:4] <- points[, 1 + (j - 1) * 4 + c(2, 1, 4, 3)]
    points
  }
  upper <- y[, 1] > (max(y[, 1]) + min(y[, 1])) / 2
  start <- c(log(mean(!upper) / mean(upper)),
             unlist(lapply(seq_len(d), function(j)
                             c(tapply(y[, j], upper, mean), log(tapply(y[, j], upper, var))))))
  joint <- function(points) mixture_joint(points, y, 2)
  peak <- optim(start, function(v) -joint(matrix(v, 1)), method = "BFGS", hessian = TRUE,
                control = list(maxit = 500))
  t_importance(joint, peak$par, solve(peak$hessian), draws, df, rounds,
               images = list(identity, swap))
}

# Checks -------------------------------------------------------------------------------------------

agree <- function(what, value, reference, tolerance) {
  gap <- value - reference
  cat(sprintf("%-58s %13.6f against %13.6f %s\n", what, value, reference,
              if (abs(gap) <= tolerance) "ok" else "DIFFERS"))
}

check_truths <- function() {
  for (name in c("cars", "mtcars", "swiss", "airquality", "longley")) {
    p <- truth_problem(name)
    agree(paste("linear", name, "through singular values, N x N density"), p$log_evidence,
          linear_truth_dense(p$x, p$y, p$sigma, p$prior_sd), 1e-6)
  }
  tiny <- truth_problem("softmax_tiny")
  by_importance <- softmax_importance(tiny$x, tiny$class, 2, 2e5, df = 5)
  agree("softmax, importance sampling, quadrature", by_importance$log_evidence, tiny$log_evidence,
        4 * by_importance$se)
  full <- four_dimensional(tiny$x, tiny$class)
  agree("softmax, four dimensions, two", full, tiny$log_evidence, 1e-4)
  for (name in c("mix2_dozen", "mix3_dozen", "mix2_dozen_2d", "mix3_dozen_2d")) {
    p <- truth_problem(name)
    by_smc <- allocation_truth(p$data, p$model$components, 1000, 10)
    agree(paste("mixture", name, "by SMC, by enumeration"), by_smc$log_evidence, p$log_evidence,
          4 * by_smc$se + 1e-3)
  }
  apart <- c(-1.3, -1.2, -1.1, -1, -0.9, 0.8, 0.9, 1, 1.1, 1.2, 1.3) * 4
  swapped <- two_component_importance(apart, 2e5, df = 4)
  agree("mixture of two, importance sampling, enumeration", swapped$log_evidence,
        mixture_truth(apart, 2), 4 * swapped$se)
  one <- single_component_truth(dozen())
  agree("mixture of one, closed form, enumeration", one, mixture_truth(dozen(), 1), 1e-9)
}

#' The tiny softmax problem in all its four coordinates, both classes' weights, from the definition
four_dimensional <- function(x, class, reach = 5, nodes = 41) {
  at <- seq(-reach, reach, length.out = nodes)
  first <- as.matrix(expand.grid(at, at))
  eta <- x %*% t(first)
  density <- -0.5 * rowSums(first^2) - LOG_2PI
  side <- ifelse(class == 1, 1, -1)
  total <- vapply(seq_len(nrow(first)), function(k) {
    gap <- eta - eta[, k]
    log_sum_exp(density - colSums(log1p(exp(-side * gap)))) + density[k]
  }, 0)
  log_sum_exp(total) + 4 * log(at[2] - at[1])
}

# Constants ----------------------------------------------------------------------------------------

softmax_constant <- function(name, draws, df, rounds = 0) function() {
  p <- truth_problem(name)
  softmax_importance(p$x, p$class, p$classes, draws, p$prior_sd, df, rounds)
}

CONSTANTS <- list(
  iris_petal = softmax_constant("iris_petal", 2e5, 8),
  iris = softmax_constant("iris", 2e5, 8, 2),
  iris_wide = softmax_constant("iris_wide", 2e5, 5, 4),
  softmax500 = softmax_constant("softmax500", 2e5, 30),
  softmax1000 = softmax_constant("softmax1000", 2e5, 30),
  softmax3000 = softmax_constant("softmax3000", 5e4, 30),
  mix2_eruptions = function() two_component_importance(truth_problem("mix2_eruptions")$data, 1e5),
  mix2_faithful = function() two_component_importance(truth_problem("mix2_faithful")$data, 1e5),
  mix2_galaxies = function() allocation_truth(scaled_galaxies(), 2, 6000, 40),
  mix3_galaxies = function() allocation_truth(scaled_galaxies(), 3, 2000, 20)
)

main <- function(names = NULL) {
  if (is.null(names)) check_truths()
  for (name in if (is.null(names)) base::names(CONSTANTS) else strsplit(names, ",")[[1]]) {
    spent <- system.time(found <- CONSTANTS[[name]]())[["elapsed"]]
    rest <- unlist(found[-(1:2)])
    cat(sprintf("  %s = c(%.4f, %.4f), # %s; %.0f s\n", name, found$log_evidence, found$se,
                paste(names(rest), format(rest, digits = 3), collapse = ", "), spent))
  }
}

if (!interactive()) do.call(main, as.list(commandArgs(trailingOnly = TRUE)))

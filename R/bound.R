# The variational lower bound as a check: no reported estimate may be below it.

#' Add the lower bound of the evidence to a fit, with a warning if the estimate is below it
#'
#' @noRd
with_bound <- function(fit, encoded, words) {
  # a bound needs all rows
  if (isTRUE(encoded$sampled) || fit$method$name %in% UNBOUNDED ||
      !has_bound(fit$model, encoded$args)) return(fit)
  fit$bound <- cheap_bound(fit$model, encoded, words, sum(fit$work[c("likelihoods", "gradients")]))
  if (is_latent(fit$model)) fit$second_look <- second_look(fit, encoded, words)
  sentence <- c(bound_warning(fit), second_warning(fit))
  fit$warnings <- unique(c(fit$warnings, sentence))
  fit$failed <- unique(c(fit$failed, sentence))
  fit
}

# Methods that are bounds, exact, or known to overstate the evidence.
UNBOUNDED <- c("variational", "bic", "exact", "harmonic_mean")

# A mixture of one component has no latent labels, and its evidence is known.
has_bound <- function(model, args) part_of(model, "bound")(model, args)

#' A lower bound that costs at most a tenth of the fit, or a few milliseconds; `NULL` if that is too
#' little
#'
#' The limit is a number of evaluations and not a time, so that a seed gives the same bound on every
#' machine.
#'
#' @param work Evaluations of the likelihood and the gradient of one row that the fit has made.
#' @noRd
cheap_bound <- function(model, encoded, words, work) {
  cells <- encoded$n * nrow(encoded$rows) * part_of(model, "parts")(model, encoded$args)
  share <- BOUND_SHARE[[if (is_latent(model)) "latent" else "mixture"]]
  passes <- max(share * work / encoded$n, BOUND_LEAST / cells)
  sweeps <- if (is_latent(model)) min(BOUND_SWEEPS, floor(passes / 4)) else 0
  iterations <- min(BOUND_ITERATIONS, floor((passes - sweeps) / 2))
  if (iterations < 20) return(NULL)
  restarts <- min(BOUND_STARTS, max(1, floor(passes / (sweeps + iterations))))
  method <- variational(restarts, sweeps, iterations = iterations, draws = 2)
  problem <- new_problem(model, encoded, method, words)
  problem$replicate <- BOUND_STREAM
  out <- tryCatch(conduct(problem, encoded$rows), logevidence_error = function(e) NULL)
  if (is.null(out)) return(NULL)
  own <- drop(out$bound)
  symmetry <- drop(out$symmetry)
  list(log_evidence = own + symmetry, bound = own, symmetry = symmetry)
}

# Shares of the fit's work: one row in a sweep costs as much as in an iteration of the ascent; in
# the likelihood of a mixture it costs a tenth.
BOUND_SHARE <- c(latent = 0.1, mixture = 0.01)
# work (rows x columns x components) that is always allowed, some milliseconds
BOUND_LEAST <- 1e6
BOUND_SWEEPS <- 60
BOUND_ITERATIONS <- 200
BOUND_STARTS <- 2
BOUND_STREAM <- 2^29 + 2^28 # random number stream that no run of evidence() uses

# One nat is more than the numerical error of the bound, and too little to mislead.
BOUND_LEAST_GAP <- 1
BOUND_MOST_ERRORS <- 4

bound_warning <- function(fit) {
  if (is.null(fit$bound) || is.na(fit$log_evidence)) return(NULL)
  gap <- fit$bound$log_evidence - fit$log_evidence
  se <- if (is.finite(fit$se)) fit$se else 0
  if (!isTRUE(gap > max(BOUND_LEAST_GAP, BOUND_MOST_ERRORS * se))) return(NULL)
  sprintf(paste("The estimate, %s, is below a lower bound of the log evidence, %s (variational",
                "Bayes), so it is too low by at least %s nats: a part of the posterior was",
                "missed. %s"),
          format_number(fit$log_evidence, 2), format_number(fit$bound$log_evidence, 2),
          format(signif(gap, 2)),
          if (is_latent(fit$model)) "Use smc(\"data\") or nested() with more particles."
          else paste("Center and scale the columns, or compare with nested(), and use",
                     "variational() for the bound itself."))
}

# A short run row by row, in random order --------------------------------------------------------

#' Another estimate for methods that may stay in one part of the posterior: annealing methods, and
#' chib()
#'
#' Its mean is the evidence, so it is too high by `a` nats with a probability of at most e^-a: an
#' estimate far below it has missed something.
#' @noRd
second_look <- function(fit, encoded, words) {
  if (!(fit$method$name %in% c("chib", "ais") || identical(fit$method$path, "thermal")))
    return(NULL)
  n <- encoded$n
  width <- nrow(encoded$rows)
  most <- max(SECOND_SHARE * fit$work[["likelihoods"]], SECOND_LEAST) *
    row_cost(fit$model, n, width)$sweep
  particles <- min(SECOND_PARTICLES, floor(most / by_rows_cost(fit$model, n, width)))
  if (particles < 20) return(NULL)
  problem <- new_problem(fit$model, encoded, smc("data", particles), words)
  problem$replicate <- BOUND_STREAM + 1
  out <- tryCatch(conduct(problem, encoded$rows), logevidence_error = function(e) NULL)
  if (is.null(out)) return(NULL)
  list(log_evidence = out$log_evidence, se = out$se, particles = particles)
}

SECOND_SHARE <- 0.2 # share of the likelihood evaluations of the fit
SECOND_LEAST <- 1e5 # likelihood evaluations that are always allowed
SECOND_PARTICLES <- 300

second_warning <- function(fit) {
  other <- fit$second_look
  if (is.null(other) || is.na(fit$log_evidence) || !is.finite(other$log_evidence)) return(NULL)
  gap <- other$log_evidence - fit$log_evidence
  joint <- sqrt((if (is.finite(fit$se)) fit$se^2 else 0) + other$se^2)
  least <- if (fit$method$name == "chib") SECOND_LEAST_GAP[["chib"]]
  else SECOND_LEAST_GAP[["others"]]
  if (!isTRUE(gap > max(least, BOUND_MOST_ERRORS * joint))) return(NULL)
  sprintf(paste("A short run of smc(\"data\") with %.0f particles gives a log evidence of %s (se",
                "%s), which is %s nats more than the estimate. The estimate has probably missed",
                "a part of the posterior. Use smc(\"data\") or nested()."),
          other$particles, format_number(other$log_evidence, 2), format_number(other$se, 2),
          format(signif(gap, 2)))
}

SECOND_LEAST_GAP <- c(chib = 0.5, others = 1)

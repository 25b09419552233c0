# A check of runs from the prior by optimisation. All particles of such a run, and all live points
# of nested sampling, may end in one of several modes and agree with each other. Optimisation does
# not depend on the path: it starts from points all over the prior (if the model has better starting
# points, from the data) and ends at posterior modes. Two estimates then show whether the run has
# missed some of these:
#
# * Importance sampling around the modes. Its mean weight is unbiased, so it exceeds the evidence by
#   a factor of e^5 with probability at most e^-5. A run far below it has missed something.
# * If its weights are too uneven, and Laplace's approximation of the mass of a mode is larger than
#   the run's estimate: a reverse run from the mode along the recorded path to the prior. If it
#   starts in one mode with a share p of the posterior, minus the log mean of the reciprocal weights
#   is on average at least log Z + log p, and is far above the forward estimate if the path enters
#   the mode too late. If it agrees with the forward estimate, the particles have found the mode,
#   and Laplace's approximation was wrong.
#
# See Grosse, Ghahramani and Adams (2015), "Sandwiching the marginal likelihood using bidirectional
# Monte Carlo", arXiv:1511.02543.

END_DRAWS <- 400       # number of draws of importance sampling
# the fourth climbs the likelihood alone first (core/search.c), as the prior may hide a narrow mode
END_STARTS <- c(one = 2, `in R` = 4, several = 48)
END_RECORDED <- 60     # largest dimension, because a path has a metric for each distribution
# weights are even above this share of the ideal effective sample size
END_EVEN <- 0.25
END_SURE <- 0.1        # above this share a reverse run is not needed
END_PARTICLES <- 0.05  # particles of the reverse run, as a share of those of the run
END_CLIMBED <- 20      # typical iterations of an optimisation run
END_CALL <- 50         # number of points in a call that cost as much as the call itself
# Rows times squared parameters up to which all optimisation runs are made, whatever the run has
# cost: with derivatives of the model they take about a tenth of a second. The cost of hybrid() is
# not known, because its first stage does not count evaluations.
END_CHEAP <- 2e5
# Ten times the moves of other distributions, so that a point near a posterior becomes a draw from
# it.
WARM <- 10

# Runs of one stage along powers of the likelihood of all data.
is_tempered <- function(method) {
  method <- unclass(method)
  settings <- method$settings
  of_engine(method, "walks") && identical(settings$`1.whole`, 1) && isTRUE(settings$stages == 1) &&
    identical(settings$`1.gradient`, "full") && length(method$kernels) == 1
}

# Estimates by predictions or volumes have no check of their own.
is_checked <- function(method) {
  is_tempered(method) || has_trait(method, "live") || has_trait(method, "checked")
}

#' Let a run record its path if a reverse run is possible
#' @noRd
recorded <- function(problem, method, encoded) {
  reversible <- of_engine(problem, "walks") && is_tempered(method) &&
    is_reversible(method$kernels[[1]]) && length(encoded$theta_names) <= END_RECORDED
  if (reversible) recording(problem) else problem
}

#' Check a run by optimisation and, if it is tempered and if necessary, by a reverse run
#'
#' @param runs The results of the runs; the path of the first is followed.
#' @return NULL, or a list of `log_evidence` and `se` (importance sampling), `even` (whether its
#' weights are), `mass` (Laplace) and `upper` (the reverse run).
#' @noRd
reverse_checks <- function(problem, encoded, runs, model, method, budget) {
  # parameters with few values have no modes to climb to
  if (is_latent(model) || is_discrete(model) || isTRUE(encoded$sampled) || !is_checked(method))
    return(NULL)
  run <- runs[[1]]
  forward <- log_mean(vapply(runs, function(out) drop(out$log_evidence), 0))
  climbs <- climbs_affordable(granted(budget, "climbs"), model, encoded,
                              method$settings$`1.particles`)
  best <- or_null(climbed_by_engine(problem, encoded, model, climbs))
  if (is.null(best)) return(NULL)
  if (is.null(run$path) || isTRUE(best$share >= END_SURE) || !isTRUE(best$mass > forward + AHEAD))
    return(best)
  best$upper <- or_null(reverse_run_estimate(problem, encoded, run$path, best$peak))
  best
}

#' The search and optimisation of laplace(), with importance sampling around the modes
#' @noRd
climbed_by_engine <- function(problem, encoded, model, climbs) {
  kind <- if (may_have_modes(model)) "several"
  else if (asks_r(model)) "in R" else "one"
  starts <- min(max(END_STARTS[[kind]], part_of(model, "starts")), climbs)
  if (starts < 1) return(NULL)
  method <- laplace(starts = starts, importance = END_DRAWS)
  words <- problem$seed
  other <- new_problem(model, encoded, method, words, problem$threads)
  other$replicate <- STREAMS[["climbs"]]
  out <- lapply(conduct(other, encoded$rows), drop)
  # draws in two steps need no mode
  if (out$failed && !is.finite(out$importance)) return(NULL)
  list(log_evidence = out$importance, se = out$se, mass = out$laplace, share = out$ess / out$ideal,
       even = isTRUE(out$ess >= END_EVEN * out$ideal) &&
         !isTRUE(out$pareto_k > weight_limit("most_k")),
       peak = out$peak, draws = out$ess, cost = evaluations_of(out))
}

#' Number of optimisation runs for so many evaluations
#'
#' An iteration of Newton's method needs derivatives: those of the model, or differences, evaluated
#' in one call. R functions that take many points in a call cost little more than for one point.
#'
#' @param particles Number of particles, or NULL for a method without.
#' @noRd
climbs_affordable <- function(evaluations, model, encoded, particles) {
  d <- length(encoded$theta_names)
  evaluations <- evaluations / encoded$n
  if (isTRUE(model$vectorised)) return(floor(evaluations / min(particles, END_CALL) / END_CLIMBED))
  if (has_curvature(model) && max(encoded$n, d) * d^2 <= END_CHEAP)
    return(END_STARTS[["several"]])
  each <- if (has_curvature(model)) d else if (has_gradients(model)) 2 * d else 2 * d^2
  floor(evaluations / END_CLIMBED / each)
}

#' Minus the log mean reciprocal weight of a reverse run from a mode to the prior
#' @noRd
reverse_run_estimate <- function(problem, encoded, path, peak) {
  path["moves", ncol(path)] <- WARM * path["moves", ncol(path)]
  particles <- max(10, round(END_PARTICLES * problem$settings$`1.particles`))
  drop(reversed(problem, encoded, path, peak, particles, STREAMS[["reverse run"]])$log_evidence)
}

#' A reverse run of so many particles along a path
#' @noRd
reversed <- function(problem, encoded, path, from, particles, replicate) {
  problem <- following(problem, path, particles, from)
  problem$replicate <- replicate
  conduct(problem, encoded$rows)
}

# Do the particles represent the posterior? -------------------------------------------------------

# A step size that is right for most of the posterior is too large for its narrow parts: proposals
# into them are rejected, and particles in them do not move. Averages such as renewal and acceptance
# do not show this. If the particles at the end of a run represent the posterior, they do so after
# further moves of any size as well, so their mean log-likelihood must not change.

SETTLED_PARTICLES <- 300
SETTLED_LEAST <- 60    # with fewer, the mean is too uncertain
SETTLED_STEP <- 0.25   # share of the last step size of the run
SETTLED_MOVES <- 3     # factor for the number of moves at the last distribution
SETTLED_ERRORS <- 4
SETTLED_NATS <- 0.3

#' How short moves at the end change the mean log-likelihood of some of a run's particles
#'
#' Each selected particle is used once, with its weight, so that copies do not reduce the standard
#' error.
#'
#' @return NULL, or a list of `change` and `se`.
#' @noRd
settled <- function(problem, encoded, run, model, budget) {
  if (is_latent(model) || nrow(run$draws) < 2) return(NULL)
  path <- run$path[, ncol(run$path), drop = FALSE]
  path["moves", ] <- SETTLED_MOVES * max(path["moves", ], problem$settings$`1.steps`)
  path["step", ] <- SETTLED_STEP * path["step", ]
  particles <- settled_affordable(problem, granted(budget, "short moves"), path, encoded$n)
  weight <- if (is.null(run$log_weights)) rep(1, ncol(run$draws))
  else exp(normalise(drop(run$log_weights)))
  if (particles < SETTLED_LEAST) return(NULL)
  taken <- findInterval((seq_len(particles) - 0.5) / particles, cumsum(weight) / sum(weight)) + 1
  times <- tabulate(taken, length(weight))
  chosen <- which(times > 0)
  if (length(chosen) < SETTLED_LEAST) return(NULL)
  before <- run$draws[, chosen, drop = FALSE]
  after <- reversed(problem, encoded, path, before, length(chosen), STREAMS[["short moves"]])$draws
  log_lik <- function(theta) as.vector(model_caller(model, encoded)("log_lik", theta))
  change <- log_lik(after) - log_lik(before)
  share <- times[chosen] / particles
  mean <- sum(share * change)
  list(change = mean, se = sqrt(sum(share^2 * (change - mean)^2)))
}

#' Number of particles whose moves cost at most so many evaluations
#' @noRd
settled_affordable <- function(problem, evaluations, path, n) {
  kernel <- problem$kernels[[1]]
  # trajectories keep their length, with more steps (src/kernels/hmc.c)
  leapfrog <- if (is.null(kernel$args$leapfrog)) 1
  else if (isTRUE(kernel$args$leapfrog > 0)) kernel$args$leapfrog
  else min(most_leapfrog(kernel), ceiling(1.5 / path["step", ]))
  min(SETTLED_PARTICLES, floor(evaluations / n / (path["moves", ] * leapfrog)))
}

settled_warning <- function(found, discrete = FALSE) {
  if (is.null(found) || !isTRUE(abs(found$change) > max(SETTLED_NATS, SETTLED_ERRORS * found$se)))
    return(NULL)
  say("not_settled", if (found$change > 0) "raise" else "lower",
      format(signif(abs(found$change), 2)), abs(found$change) / found$se,
      if (found$change > 0) "few" else "many", if (found$change > 0) "low" else "high",
      if (discrete) "" else ", or nested()")
}

#' What these checks say, as entries of the ledger
#' @noRd
end_entries <- function(found) {
  if (is.null(found)) return(NULL)
  stream <- STREAMS[["climbs"]]
  ledger_of(
    new_entry("sampling around modes", "unbiased", found$log_evidence, found$se,
              error = if (found$even) found$se else Inf, ess = found$draws, cost = found$cost,
              stream = stream, uneven = !found$even,
              doubt = if (found$even) "" else "uneven weights"),
    if (isTRUE(is.finite(found$mass)))
      new_entry("Laplace approximation", "approximate", found$mass, stream = stream),
    if (!is.null(found$upper))
      new_entry("reverse run from a mode", "upper bound", found$upper,
                stream = STREAMS[["reverse run"]]))
}

# A mode behind a path that enters it too late: see the top of this file.
mode_behind <- function(found, headline, advice) {
  if (is.null(found$upper)) return(NULL)
  se <- if (is.finite(headline$se)) headline$se else 0
  above <- min(found$upper, found$mass) - headline$log_evidence
  if (!isTRUE(above > AHEAD + 2 * se)) return(NULL)
  say("mode_behind", show_nats(found$mass - headline$log_evidence, 2),
      show_nats(found$upper - headline$log_evidence, 2), advice)
}

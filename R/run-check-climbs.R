# A check of runs from the prior by optimisation. All particles of such a run, and all live points
# of nested sampling, may end in one of several modes and agree with each other. Optimisation does
# not depend on the path: it starts from points all over the prior (if the model has better starting
# points, from the data) and ends at posterior modes. The mean weight of importance sampling around
# them is unbiased, so it exceeds the evidence by a factor of e^5 with probability at most e^-5. A
# run far below it has missed something. If its weights are too uneven, and Laplace's approximation
# of the mass of a mode is larger than the run's estimate, a reverse run asks whether the particles
# have found this mode (R/run-check-reverse-run.R).

END_DRAWS <- 400       # number of draws of importance sampling
# the fourth climbs the likelihood alone first (core/search.c), as the prior may hide a narrow mode
END_STARTS <- c(one = 2, `in R` = 4, several = 48)
# weights are even above this share of the ideal effective sample size
END_EVEN <- 0.25
END_CLIMBED <- 20      # typical iterations of an optimisation run
END_CALL <- 50         # number of points in a call that cost as much as the call itself
# Rows times squared parameters up to which all optimisation runs are made, whatever the run has
# cost: with derivatives of the model they take about a tenth of a second. The cost of hybrid() is
# not known, because its first stage does not count evaluations.
END_CHEAP <- 2e5

CHECK_CLIMBS <- list(
  # parameters with few values have no modes to climb to
  applies = function(case) can_climb(case) && is_checked(case$method),
  share = function(case) 0.3,
  look = function(case, most) climbed_by_engine(
    case$problem, case$encoded, case$model,
    climbs_affordable(most, case$model, case$encoded, case$method$settings$`1.particles`)),
  entry = function(found) ledger_of(
    new_entry("sampling around modes", "unbiased", found$log_evidence, found$se,
              error = if (found$even) found$se else Inf, ess = found$draws, cost = found$cost,
              stream = STREAMS[["climbs"]], uneven = !found$even,
              doubt = if (found$even) "" else "uneven weights"),
    if (isTRUE(is.finite(found$mass)))
      new_entry("Laplace approximation", "approximate", found$mass, stream = STREAMS[["climbs"]]))
)

can_climb <- function(case)
  !is_latent(case$model) && !is_discrete(case$model) && !isTRUE(case$encoded$sampled)

# Estimates by predictions or volumes have no check of their own.
is_checked <- function(method) {
  is_tempered(method) || has_trait(method, "live") || has_trait(method, "checked")
}

# Runs of one stage along powers of the likelihood of all data.
is_tempered <- function(method) {
  method <- unclass(method)
  settings <- method$settings
  of_engine(method, "walks") && identical(settings$`1.whole`, 1) && isTRUE(settings$stages == 1) &&
    identical(settings$`1.gradient`, "full") && length(method$kernels) == 1
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

# A third estimate, if two others cannot both be right: climbs and draws of its own.
CONFIRMING_CLIMBS <- 48

confirmation <- function(case) {
  if (!can_climb(case)) return(NULL)
  found <- or_null(climbed_by_engine(case$problem, case$encoded, case$model, CONFIRMING_CLIMBS))
  if (!is.null(found) && is.finite(found$log_evidence))
    new_entry(CONFIRMATION, "unbiased", found$log_evidence, found$se, ess = found$draws,
              cost = found$cost, stream = STREAMS[["climbs"]], error = Inf,
              # a heavy tail does not matter: that other modes were found would
              uneven = !isTRUE(found$share >= END_EVEN))
}

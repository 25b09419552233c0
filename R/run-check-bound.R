# A lower bound as a check: no reported estimate may be far below it.

# work (rows x columns x components) that is always allowed, some milliseconds
BOUND_LEAST <- 1e6
BOUND_SWEEPS <- 60
BOUND_ITERATIONS <- 200
BOUND_STARTS <- 2

CHECK_BOUND <- list(
  applies = function(case) has_bound(case),
  share = function(case) if (is_latent(case$model)) 0.1 else 0.01,
  least = function(case) BOUND_LEAST / nrow(case$encoded$rows) /
    part_of(case$model, "bound")(case$model, case$encoded$args),
  look = function(case, most) cheap_bound(case$model, case$encoded, case$words, most),
  entry = function(found) new_entry("variational Bayes", "lower bound", found$log_evidence,
                                    cost = found$cost, stream = STREAMS[["lower bound"]])
)

# A bound needs all rows; and a mixture of one component needs none, as it has no latent labels.
has_bound <- function(case) {
  model <- case$model
  !isTRUE(case$encoded$sampled) && !has_trait(case$method, "no bound") &&
    has_variational(model) && part_of(model, "bound")(model, case$encoded$args) > 0
}

#' A lower bound, `NULL` if so many evaluations are too few for one
#'
#' The limit is a number of evaluations and not a time, so that a seed gives the same bound on every
#' machine. One row in a sweep costs as much as in an iteration of the ascent; in the likelihood of
#' a mixture it costs a tenth.
#' @noRd
cheap_bound <- function(model, encoded, words, most) {
  passes <- most / encoded$n
  sweeps <- if (is_latent(model)) min(BOUND_SWEEPS, floor(passes / 4)) else 0
  iterations <- min(BOUND_ITERATIONS, floor((passes - sweeps) / 2))
  if (iterations < 20) return(NULL)
  restarts <- min(BOUND_STARTS, max(1, floor(passes / (sweeps + iterations))))
  method <- variational(restarts, sweeps, iterations = iterations, draws = 2)
  problem <- new_problem(model, encoded, method, words)
  problem$replicate <- STREAMS[["lower bound"]]
  out <- conduct(problem, encoded$rows)
  own <- drop(out$bound)
  symmetry <- drop(out$symmetry)
  list(log_evidence = own + symmetry, bound = own, symmetry = symmetry,
       cost = evaluations_of(out))
}

# Bounds and second estimates as checks: no reported estimate may be far below them.

# Methods that are bounds, exact, or known to overstate the evidence.
# A mixture of one component has no latent labels, and its evidence is known.
has_bound <- function(model, args)
  has_variational(model) && part_of(model, "bound")(model, args) > 0

#' A lower bound, `NULL` if the budget is too small for one
#'
#' The limit is a number of evaluations and not a time, so that a seed gives the same bound on every
#' machine. One row in a sweep costs as much as in an iteration of the ascent; in the likelihood of
#' a mixture it costs a tenth.
#' @noRd
cheap_bound <- function(model, encoded, words, budget) {
  cells <- encoded$n * nrow(encoded$rows) * part_of(model, "bound")(model, encoded$args)
  passes <- granted(budget, if (is_latent(model)) "lower bound" else "bound of a mixture",
                    BOUND_LEAST * encoded$n / cells) / encoded$n
  sweeps <- if (is_latent(model)) min(BOUND_SWEEPS, floor(passes / 4)) else 0
  iterations <- min(BOUND_ITERATIONS, floor((passes - sweeps) / 2))
  if (iterations < 20) return(NULL)
  restarts <- min(BOUND_STARTS, max(1, floor(passes / (sweeps + iterations))))
  method <- variational(restarts, sweeps, iterations = iterations, draws = 2)
  problem <- new_problem(model, encoded, method, words)
  problem$replicate <- STREAMS[["lower bound"]]
  out <- tryCatch(conduct(problem, encoded$rows), logevidence_error = function(e) NULL)
  if (is.null(out)) return(NULL)
  own <- drop(out$bound)
  symmetry <- drop(out$symmetry)
  list(log_evidence = own + symmetry, bound = own, symmetry = symmetry,
       cost = evaluations_of(out))
}

# work (rows x columns x components) that is always allowed, some milliseconds
BOUND_LEAST <- 1e6
BOUND_SWEEPS <- 60
BOUND_ITERATIONS <- 200
BOUND_STARTS <- 2

# A short run row by row, in random order --------------------------------------------------------

#' Another estimate for methods that may stay in one part of the posterior: annealing methods, and
#' chib()
#'
#' Its mean is the evidence, so it is too high by `a` nats with a probability of at most e^-a: an
#' estimate far below it has missed something.
#' @noRd
second_look <- function(model, method, encoded, words, budget) {
  if (!(has_trait(method, "local") || identical(method$path, "thermal"))) return(NULL)
  n <- encoded$n
  width <- nrow(encoded$rows)
  most <- granted(budget, "run by rows", SECOND_LEAST) * row_cost(model, n, width)$sweep
  particles <- min(SECOND_PARTICLES, floor(most / by_rows_cost(model, n, width)))
  if (particles < 20) return(NULL)
  problem <- new_problem(model, encoded, smc("data", particles), words)
  problem$replicate <- STREAMS[["run by rows"]]
  out <- tryCatch(conduct(problem, encoded$rows), logevidence_error = function(e) NULL)
  if (is.null(out)) return(NULL)
  list(log_evidence = drop(out$log_evidence), se = drop(out$se), particles = particles,
       cost = evaluations_of(out))
}

SECOND_LEAST <- 1e5 # likelihood evaluations that are always allowed
SECOND_PARTICLES <- 300

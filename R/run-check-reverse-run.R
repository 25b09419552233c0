# A reverse run from a mode along the recorded path to the prior. If it starts in one mode with a
# share p of the posterior, minus the log mean of the reciprocal weights is on average at least
# log Z + log p, and is far above the forward estimate if the path enters the mode too late. If it
# agrees with the forward estimate, the particles have found the mode, and Laplace's approximation
# was wrong. See Grosse, Ghahramani and Adams (2015), "Sandwiching the marginal likelihood using
# bidirectional Monte Carlo", arXiv:1511.02543.

END_RECORDED <- 60     # largest dimension, because a path has a metric for each distribution
END_SURE <- 0.1        # above this share of the ideal effective size no reverse run is needed
END_PARTICLES <- 0.05  # particles of the reverse run, as a share of those of the run
# Ten times the moves of other distributions, so that a point near a posterior becomes a draw from
# it.
WARM <- 10

CHECK_REVERSE_RUN <- list(
  applies = function(case) {
    climbed <- case$found$climbs
    if (is.null(climbed) || is.null(case$runs[[1]]$path) || isTRUE(climbed$share >= END_SURE))
      return(FALSE)
    forward <- log_mean(vapply(case$runs, function(out) drop(out$log_evidence), 0))
    isTRUE(climbed$mass > forward + AHEAD)
  },
  share = function(case) 0, # of so few particles
  look = function(case, most) list(mass = case$found$climbs$mass, upper = reverse_run_estimate(
    case$problem, case$encoded, case$runs[[1]]$path, case$found$climbs$peak)),
  entry = function(found) new_entry("reverse run from a mode", "upper bound", found$upper,
                                    stream = STREAMS[["reverse run"]]),
  sentence = function(found, headline, case)
    mode_behind(found, headline, advice_for(case$model, case$method))
)

#' Let a run record its path if a reverse run is possible
#' @noRd
recorded <- function(problem, method, encoded) {
  reversible <- of_engine(problem, "walks") && is_tempered(method) &&
    is_reversible(method$kernels[[1]]) && length(encoded$theta_names) <= END_RECORDED
  if (reversible) recording(problem) else problem
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

# A mode behind a path that enters it too late.
mode_behind <- function(found, headline, advice) {
  se <- if (is.finite(headline$se)) headline$se else 0
  above <- min(found$upper, found$mass) - headline$log_evidence
  if (!isTRUE(above > AHEAD + 2 * se)) return(NULL)
  say("mode_behind", show_nats(found$mass - headline$log_evidence, 2),
      show_nats(found$upper - headline$log_evidence, 2), advice)
}

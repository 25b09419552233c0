# Do the particles represent the posterior? A step size that is right for most of the posterior is
# too large for its narrow parts: proposals into them are rejected, and particles in them do not
# move. Averages such as renewal and acceptance do not show this. If the particles at the end of a
# run represent the posterior, they do so after further moves of any size as well, so their mean
# log-likelihood must not change.

SETTLED_PARTICLES <- 300
SETTLED_LEAST <- 60    # with fewer, the mean is too uncertain
SETTLED_STEP <- 0.25   # share of the last step size of the run
SETTLED_MOVES <- 3     # factor for the number of moves at the last distribution
SETTLED_ERRORS <- 4
SETTLED_NATS <- 0.3

CHECK_SHORT_MOVES <- list(
  applies = function(case) !is.null(case$runs[[1]]$path) && !is_latent(case$model) &&
    nrow(case$runs[[1]]$draws) > 1,
  share = function(case) 0.4,
  look = function(case, most)
    settled(case$problem, case$encoded, case$runs[[1]], case$model, most),
  sentence = function(found, headline, case) settled_warning(found, is_discrete(case$model))
)

#' How short moves at the end change the mean log-likelihood of some of a run's particles
#'
#' Each selected particle is used once, with its weight, so that copies do not reduce the standard
#' error.
#'
#' @param most Evaluations that it may take.
#' @return NULL, or a list of `change` and `se`.
#' @noRd
settled <- function(problem, encoded, run, model, most) {
  path <- run$path[, ncol(run$path), drop = FALSE]
  path["moves", ] <- SETTLED_MOVES * max(path["moves", ], problem$settings$`1.steps`)
  path["step", ] <- SETTLED_STEP * path["step", ]
  particles <- settled_affordable(problem, most, path, encoded$n)
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
  if (!isTRUE(abs(found$change) > max(SETTLED_NATS, SETTLED_ERRORS * found$se)))
    return(NULL)
  say("not_settled", if (found$change > 0) "raise" else "lower",
      format(signif(abs(found$change), 2)), abs(found$change) / found$se,
      if (found$change > 0) "few" else "many", if (found$change > 0) "low" else "high",
      if (discrete) "" else ", or nested()")
}

# All particles of a run may end in a mode that was the best for the first rows only, and nothing in
# the run shows it. So the importance-sampling check also finds modes from the results of a separate
# search (core/search.h), and computes by how much the modes without particles raise log Z:
# `unreached`. Importance sampling includes these modes. If its weights are too uneven, the run's
# own estimate is reported, and the run is repeated with more effort and, if so much is missing,
# through the rows in random order.

is_searched <- function(out, problem) isTRUE(problem$settings$search > 0) &&
  !is.null(out$audit_unreached)

is_lost <- function(out) isTRUE(drop(out$audit_unreached > out$audit_chance))

#' The problem of a repeated run, or NULL if the result needs none
#' @noRd
challenge <- function(out, problem) {
  if (!is_searched(out, problem) || !is_lost(out) && is.null(problem$thorough) || believed(out))
    return(NULL)
  if (!is.null(problem$thorough)) problem$settings <- problem$thorough
  if (is_lost(out)) problem$settings[c("shuffle", "restarts")] <- list(1, 0)
  replace(problem, "replicate", list(CHALLENGED + problem$replicate))
}

better_run <- function(out, second, problem) {
  if (!is_searched(out, problem)) return(out)
  # less is missing, or both miss too little to matter
  better <- !is.null(second) && second$audit_unreached < max(out$audit_unreached, out$audit_chance)
  chosen <- if (!better) out
  else if (is_lost(out)) after(out, second, given = problem$settings$shuffle == 0) else second
  structure(chosen,
            challenge = list(walks = 1 + !is.null(second), work = work_of(out) + work_of(second)))
}

believed <- function(out) {
  isTRUE(audit_of(out, list(log_evidence = out$log_evidence, se = out$se),
                  AUDIT_LEAST_ESS[["several"]], strict = TRUE)$passed)
}

audit_weights <- function(figures) {
  draws <- if (is.null(figures$audit_draws)) NA else ncol(figures$audit_draws)
  list(ess = drop(figures$audit_ess) / draws, ideal = drop(figures$audit_ideal) / draws,
       pareto_k = drop(figures$audit_pareto_k))
}

# The cost of a run; zero if there was none.
work_of <- function(out) {
  vapply(c(lambda_steps = "lambda_steps", likelihoods = "likelihoods", gradients = "gradients",
           seconds = "seconds"),
         function(name) if (is.null(out[[name]])) 0 else out[[name]], 0)
}


CHALLENGED <- 2^29 # random number streams that no replicate of evidence() uses

#' The result of the repeated run; if the rows have a given order, with the trace of the first run
#' and its last entry replaced
#' @noRd
after <- function(first, second, given) {
  if (!given) return(second)
  last <- second$trace[nrow(second$trace), ]
  trace <- first$trace
  last$restarts <- utils::tail(trace$restarts, 1) + 1
  last$seconds <- utils::tail(trace$seconds, 1) + last$seconds
  trace[nrow(trace), ] <- last
  second$trace <- trace
  second
}

# A warning is given above this many nats; if the check is not reported, Laplace's approximation is
# rough, too.
UNREACHED_LEAST <- 0.2

unreached_warning <- function(audit) {
  if (is.null(audit) ||
      !isTRUE(audit$unreached > if (audit$passed) UNREACHED_LEAST else audit$chance)) return(NULL)
  paste0(
    "A search has found posterior modes that the particles have missed. They raise the log ",
    "evidence by ",
    if (audit$unreached < 1e4) sprintf("about %s nats",
                                       format(signif(audit$unreached, 2), big.mark = ",",
                                              scientific = FALSE))
    else "more than 10,000 nats",
    if (audit$passed) paste0(". The reported estimate is from importance sampling, which ",
                             "includes them; the particles' own estimate is too low.")
    else paste0(" (a rough estimate), and the reported estimate does not include them. Use more ",
                "particles in the early phase, or compare with smc() or nested().")
  )
}

# A warning is given if the particles' own estimate is lower by at least so many nats, for another
# reason than a missed mode.
BEHIND_LEAST <- 5

behind_warning <- function(audit, sampler) {
  if (is.null(audit) || !audit$passed || isTRUE(audit$unreached > UNREACHED_LEAST)) return(NULL)
  gap <- audit$log_evidence - sampler$log_evidence
  if (!isTRUE(gap > max(BEHIND_LEAST, AUDIT_MOST_Z * sqrt(audit$se^2 + sampler$se^2)))) return(NULL)
  sprintf(paste("The particles' own estimate is %s nats lower than the reported one, which comes",
                "from importance sampling and does not depend on the particles."),
          format(signif(gap, 2), big.mark = ",", scientific = FALSE))
}

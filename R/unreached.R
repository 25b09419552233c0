# A walk may end in a mode that was the best once, with nothing to show for it: all of its particles
# are there. So the audit also climbs from where a search of its own, from the prior, has led
# (core/search.h), and knows by how much log Z is larger for the modes that no particle is near:
# `unreached`. Importance sampling has them all. Where it cannot be believed the walk is the
# estimate, and done once more, with more effort, and through rows in random order if it has missed
# that much.

#' What runs have reported, or what is better than that
#'
#' @param first A list, of what has come of each of the problems.
#' @param walk Runs a list of problems.
#' @noRd
challenged_runs <- function(first, problems, walk) {
  again <- Map(challenge, first, problems)
  wanted <- !vapply(again, is.null, NA)
  second <- vector("list", length(first))
  if (any(wanted)) second[wanted] <- attempt(again[wanted], walk)
  Map(better_run, first, second, problems)
}

is_searched <- function(out, problem) isTRUE(problem$settings$search > 0) &&
  !is.null(out$audit_unreached)

is_lost <- function(out) out$audit_unreached > out$audit_chance

#' Another walk, if this one's result calls for it, or NULL
#' @noRd
challenge <- function(out, problem) {
  if (!is_searched(out, problem) || !is_lost(out) && is.null(problem$thorough) || believed(out))
    return(NULL)
  if (!is.null(problem$thorough)) problem$settings <- problem$thorough
  if (is_lost(out)) problem$settings[c("shuffle", "restarts")] <- list(1, 0)
  replace(problem, "replicate", list(CHALLENGED + problem$replicate))
}

# NULL for those that fail: of several which, only each alone can tell.
attempt <- function(problems, walk) {
  alone <- function(e) if (length(problems) == 1) list(NULL)
  else lapply(problems, function(problem) attempt(list(problem), walk)[[1]])
  tryCatch(walk(problems), logevidence_error = alone)
}

better_run <- function(out, second, problem) {
  if (!is_searched(out, problem)) return(out)
  # less is missing, or what is missing does not tell them apart
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

# What a run cost; nothing, if there was none.
work_of <- function(out) {
  vapply(c(lambda_steps = "lambda_steps", likelihoods = "likelihoods", gradients = "gradients",
           seconds = "seconds"),
         function(name) if (is.null(out[[name]])) 0 else out[[name]], 0)
}


CHALLENGED <- 2^29 # streams of numbers that no replicate of evidence() uses

#' The second walk's result; of a stream in its own order the trace is the first's, and its last
#' entry the second's
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

# More than this many nats are worth a sentence; where the audit failed, Laplace's approximation is
# rough too.
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

# By so many nats at the least the particles' own estimate is lower, for another reason than a mode
# that they have missed.
BEHIND_LEAST <- 5

behind_warning <- function(audit, sampler) {
  if (is.null(audit) || !audit$passed || isTRUE(audit$unreached > UNREACHED_LEAST)) return(NULL)
  gap <- audit$log_evidence - sampler$log_evidence
  if (!isTRUE(gap > max(BEHIND_LEAST, AUDIT_MOST_Z * sqrt(audit$se^2 + sampler$se^2)))) return(NULL)
  sprintf(paste("The particles' own estimate is %s nats lower than the reported one, which comes",
                "from importance sampling and does not depend on the particles."),
          format(signif(gap, 2), big.mark = ",", scientific = FALSE))
}

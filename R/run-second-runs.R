# All particles of a run may end in a mode that was the best for the first rows only, and nothing in
# the run shows it. So the importance-sampling check also finds modes from the results of a separate
# search (core/search.h), and computes by how much the modes without particles raise log Z:
# `unreached`. Importance sampling includes these modes. If its weights are too uneven, the run's
# own estimate is reported, and the run is repeated with more effort and, if so much is missing,
# through the rows in random order.

is_searched <- function(out, problem) has_setting(problem, "search") &&
  !is.null(out$audit_unreached)

# Has the run lost a mode? Not if the search found no peak.
is_lost <- function(out) isTRUE(drop(out$audit_unreached > out$audit_chance))

#' The problem of a repeated run, or NULL if the result needs none
#' @noRd
second_problem <- function(out, problem) {
  if (!is_searched(out, problem) || !is_lost(out) && is.null(problem$thorough) ||
      check_is_surer(out)) return(NULL)
  replace(with_more_effort(problem, is_lost(out)), "replicate",
          list(STREAMS[["second run"]] + problem$replicate))
}

better_run <- function(out, second, problem) {
  if (!is_searched(out, problem)) return(out)
  # less is missing, or both miss too little to matter
  better <- !is.null(second) &&
    isTRUE(drop(second$audit_unreached < max(out$audit_unreached, out$audit_chance)))
  chosen <- if (!better) out
  else if (!is_lost(out)) second
  else second_result(out, second, given = problem$settings$shuffle == 0)
  # the error of the other particles is not known, because they may lack a mode
  entry <- function(other, name, stream)
    new_entry(name, "approximate", other$log_evidence, other$se, uneven = TRUE,
              cost = evaluations_of(other), stream = stream)
  other <- if (better) entry(out, "particles of the first run", 0)
  else if (!is.null(second)) entry(second, "particles of a second run", STREAMS[["second run"]])
  attr(chosen, "second_run") <- list(walks = 1 + !is.null(second),
                                    work = work_of(out) + work_of(second), entry = other)
  chosen
}

# Is the error of the importance-sampling check known, and smaller than that of the particles?
check_is_surer <- function(out) {
  audit <- audit_of(out, "several")
  ledger <- ledger_of(
    new_entry("particles", "approximate", out$log_evidence, out$se,
              error = weight_limit("doubted") * drop(out$se), reportable = TRUE),
    audit_entries(audit, out))
  isTRUE(audit$known) && ledger$entry[headline(ledger)] == AUDIT_ENTRY
}

#' The result of the repeated run; if the rows have a given order, with the trace of the first run
#' and its last entry replaced
#' @noRd
second_result <- function(first, second, given) {
  if (!given) return(second)
  last <- second$trace[nrow(second$trace), ]
  trace <- first$trace
  last$restarts <- utils::tail(trace$restarts, 1) + 1
  last$seconds <- utils::tail(trace$seconds, 1) + last$seconds
  trace[nrow(trace), ] <- last
  second$trace <- trace
  second
}

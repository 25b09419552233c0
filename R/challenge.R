# A walk through a stream may end in a mode that was the best once, with nothing to show for it: all of its particles are there,
# and so is what the audit sees. So a challenger looks for peaks on its own, from the prior, on rows taken at random; both are
# scored on those rows.

CHALLENGE_ROWS <- 1e4

#' A run of sgais() whose mode a challenger beats: importance sampling around the better one where its weights allow it, and
#' otherwise another walk, through rows in random order
#' @noRd
challenged_run <- function(out, problem, model, encoded, method, walk, peaks = around_peaks(model, encoded, problem)) {
  if (!isTRUE(method$challenged) || !inherits(model, "gaussian_mixture") || model$components < 2) return(out)
  call <- challenger(model, encoded, problem$seed)
  told <- function(out, lost, won, ...) structure(out, challenge = list(
    lost = lost, won = won, rows = call$rows, work = Reduce(`+`, lapply(list(call$out, ...), work_of))
  ))
  lost <- call$gap(out)
  if (lost <= 0) return(told(out, 0, "walk"))
  if (!is.null(peaks)) return(told(utils::modifyList(out, peaks$audit), lost, "peaks", peaks$out))
  again <- problem
  again$settings$shuffle <- 1
  again$settings$restarts <- 0
  again$replicate <- CHALLENGED + problem$replicate
  second <- walk(again)
  left <- call$gap(second)
  if (left >= lost) return(told(out, lost, "nobody", second))
  told(after(out, second, given = problem$settings$shuffle == 0), max(left, 0), if (left > 0) "nobody" else "walk", out)
}

# What a run cost; nothing, if there was none.
work_of <- function(out) {
  figures <- out[!duplicated(names(out))]
  vapply(c(lambda_steps = "lambda_steps", likelihoods = "likelihoods", gradients = "gradients", seconds = "seconds"),
         function(name) if (is.null(figures[[name]])) 0 else drop(figures[[name]]), 0)
}

#' An audit around peaks found from the prior, as the walk's own is reported; NULL where its weights are too uneven
#' @noRd
around_peaks <- function(model, encoded, problem) {
  draws <- problem$settings$audit_draws
  found <- tryCatch(conduct(new_problem(model, encoded, laplace(importance = draws), problem$seed), encoded$rows),
                    logevidence_error = function(e) NULL)
  if (is.null(found) || drop(found$failed) != 0) return(NULL)
  audit <- list(ess = drop(found$ess) / draws, pareto_k = drop(found$pareto_k))
  if (!is.null(uneven_weights(audit, AUDIT_LEAST_ESS[["several"]]))) return(NULL)
  list(out = found, audit = list(
    audit_failed = found$failed, audit_modes = found$modes, audit_log_evidence = found$importance, audit_se = found$se,
    audit_laplace = found$laplace, audit_ess = found$ess, audit_pareto_k = found$pareto_k, audit_draws = found$draws,
    audit_log_weights = found$log_weights
  ))
}

CHALLENGED <- 2^29 # streams of numbers that no replicate of evidence() uses

#' The challenger's peak, and by how many nats more than fitting these rows explains it beats a run's best point on them
#' @noRd
challenger <- function(model, encoded, words) {
  restore <- own_generator(words, keep = FALSE)
  on.exit(restore())
  part <- encoded
  part$rows <- encoded$rows[, sample.int(encoded$n, min(encoded$n, CHALLENGE_ROWS)), drop = FALSE]
  part$n <- ncol(part$rows)
  found <- tryCatch(conduct(new_problem(model, part, laplace(), words), part$rows), logevidence_error = function(e) NULL)
  peak <- if (!is.null(found$peak)) drop(found$peak)
  call <- model_caller(model, part)
  score <- function(points) max(call("log_lik", points) + call("log_prior", points))
  own <- if (!is.null(peak)) score(matrix(peak)) - chance(length(peak))
  list(out = found, rows = part$n, gap = function(out) if (is.null(peak) || !is.finite(own)) -Inf else own - score(unique(out$draws, MARGIN = 2)))
}

# What a fit to the rows at hand gains on any other point of the posterior, generously.
chance <- function(d) d / 2 + 5 * sqrt(d / 2) + 5

#' The second walk's result; of a stream in its own order the trace is the first's, and its last entry the second's
#' @noRd
after <- function(first, second, given) {
  if (!given) return(second)
  # summary figures and columns of the trace share names, but only the columns are no matrices
  columns <- function(out) which(!vapply(out, is.matrix, TRUE))
  last <- trace_of(second)[nrow(trace_of(second)), ]
  trace <- trace_of(first)
  last$restarts <- utils::tail(trace$restarts, 1) + 1
  last$seconds <- utils::tail(trace$seconds, 1) + last$seconds
  trace[nrow(trace), ] <- last
  second[columns(second)] <- as.list(trace)[names(second)[columns(second)]]
  second
}

challenge_warnings <- function(out) {
  challenge <- attr(out, "challenge")
  if (is.null(challenge) || challenge$lost <= 0) return(NULL)
  better <- sprintf("Another mode of the posterior explains %s rows better by more than %.0f nats than the one that the walk ended in",
                    count(challenge$rows), challenge$lost)
  if (challenge$won == "peaks")
    paste0(better, ": the estimate, by importance sampling, is of that mode, and the sampler's own does not count.")
  else paste0(better, ", so the evidence is too low. Use more particles in the early phase, or smc().")
}

# The ledger of a fit: all estimates and checks of its log evidence, one in each row, and the one
# rule that decides between them. crosscheck() compares fits by a rule of its own (R/crosscheck.R).
#
# An entry has a kind, which says what can be wrong with it:
#
# unbiased      the mean of exp(value) is the evidence. It exceeds the log evidence by `a` nats with
#               a probability of at most e^-a, so it is also a lower limit, whatever its error is
# approximate   without this property, such as particles moved by stochastic gradients
# lower bound, upper bound     of the log evidence
# exact
#
# and an `error` by which it is ranked: its standard error if its own checks passed, more if these
# leave a doubt, and Inf if they failed. headline() takes the entry of the smallest error that no
# other entry overtakes. What overtakes the reported estimate in spite of this is said
# (contradictions()).

# An unbiased estimate from uneven weights is a lower limit less so many nats.
AHEAD <- 5
# Other estimates contradict each other by so many joint standard errors, if these are also more
# nats than numerical errors explain; unbiased ones are rarely too high, so fewer are enough for one
# that lies above.
ERRORS_APART <- 4
ERRORS_ABOVE <- 3
GAP_LEAST <- 0.2
# The error of an estimate in doubt, in units of its standard error: of importance sampling with
# uneven weights, and of particles whose standard error does not include the bias of their moves.
DOUBTED <- 3

#' An entry of the ledger: a ledger of one entry, which is a list of its columns
#'
#' @param error The error by which the entry is ranked, see above.
#' @param uneven Whether its standard error is not known because its weights are uneven.
#' @param reportable Whether it can be the result of the fit: it has draws.
#' @param cost Evaluations of the likelihood or the gradient of one row.
#' @param stream The random numbers that it used: 0, or the name of a stream (STREAMS).
#' @param doubt What its own checks say against it, in a few words, or "".
#' @noRd
new_entry <- function(entry, kind, log_evidence, se = NA_real_, error = se, ess = NA_real_,
                      cost = NA_real_, stream = 0, reportable = FALSE, uneven = FALSE,
                      doubt = "") {
  list(entry = entry, kind = kind, log_evidence = drop(log_evidence), se = drop(se),
       ess = drop(ess), cost = drop(cost), stream = stream,
       error = if (is.na(error)) Inf else drop(error), reportable = reportable,
       uneven = uneven, doubt = doubt)
}

#' Entries below one another
#'
#' Each fit makes some of them, and data.frame() and rbind() would take most of its time in R.
#' @param ... Entries, ledgers, or NULL.
#' @noRd
ledger_of <- function(...) {
  columns <- NULL
  # all have the columns of new_entry(), in its order
  for (part in list(...)) {
    if (!length(part)) next
    if (is.null(columns)) columns <- part
    else for (j in seq_along(columns)) columns[[j]] <- c(columns[[j]], part[[j]])
  }
  columns
}

entry_at <- function(ledger, i) lapply(ledger, `[`, i)

# Do these standard errors not explain the distance of two estimates?
are_apart <- function(gap, ...) {
  isTRUE(abs(gap) > max(GAP_LEAST, ERRORS_APART * sqrt(sum(c(...)^2, na.rm = TRUE))))
}

# By how many nats each entry lies above entry i, if one of the two must be wrong; otherwise 0.
overtaken <- function(ledger, i) {
  gap <- ledger$log_evidence - ledger$log_evidence[i]
  # all limits below are at least as large as this one
  if (!any(gap > min(GAP_LEAST, AHEAD), na.rm = TRUE)) return(numeric(length(gap)))
  own <- if (is.finite(ledger$se[i])) ledger$se[i] else 0
  sure <- ledger$kind %in% c("exact", "lower bound")
  unbiased <- ledger$kind == "unbiased"
  errors <- rep(ERRORS_APART, length(gap))
  errors[unbiased] <- ERRORS_ABOVE
  se <- ledger$se
  se[sure] <- 0
  least <- errors * sqrt(own^2 + se^2)
  least[least < GAP_LEAST] <- GAP_LEAST
  least[ledger$uneven & !sure] <- Inf
  least[ledger$uneven & unbiased] <- AHEAD + 2 * own
  above <- !is.na(gap) & gap > 0 & is.finite(least) & gap > least & ledger$kind != "upper bound"
  gap[!above | seq_along(gap) == i] <- 0
  gap
}

#' Which entry is reported
#' @noRd
headline <- function(ledger) {
  stands <- ledger$reportable & !is.nan(ledger$log_evidence)
  for (i in which(stands)) stands[i] <- all(overtaken(ledger, i) == 0)
  # bounds and other entries without draws may contradict all that can be reported
  if (!any(stands)) stands <- ledger$reportable
  stands <- which(stands)
  stands[which.min(ledger$error[stands])[1]]
}

#' The standard error of the reported entry
#'
#' An unbiased estimate from uneven weights is more often too low than too high. If it lies above
#' the reported one, but not by enough to contradict it, the error includes the distance.
#' @noRd
widened <- function(ledger, at) {
  above <- ledger$log_evidence - ledger$log_evidence[at]
  above <- above[ledger$uneven & ledger$kind == "unbiased" & seq_along(above) != at]
  sqrt(sum(c(ledger$se[at], max(above, 0, na.rm = TRUE))^2))
}

#' What each entry says of the reported one, in a few words
#' @noRd
with_words <- function(ledger, at) {
  above <- overtaken(ledger, at) > 0
  says <- rep("reported", length(above))
  for (i in seq_along(says)[-at]) {
    gap <- ledger$log_evidence[i] - ledger$log_evidence[at]
    se <- ledger$se[i]
    says[i] <- if (is.na(gap)) "no estimate"
    else if (above[i]) paste(show_nats(gap, 2), "nats higher: a contradiction")
    else if (ledger$kind[i] == "lower bound") "holds"
    else if (is.na(se)) "error not known"
    else if (are_apart(gap, se, ledger$se[at]))
      paste(show_nats(abs(gap), 2), if (gap < 0) "nats lower" else "nats higher")
    else "agrees"
  }
  doubted <- nzchar(ledger$doubt)
  says[doubted] <- paste(says[doubted], ledger$doubt[doubted], sep = ", ")
  ledger$says <- says
  ledger
}

#' Sentences about entries that contradict the reported one
#'
#' @param advice What to do about it.
#' @noRd
contradictions <- function(ledger, at, advice) {
  above <- which(overtaken(ledger, at) > 0)
  if (!length(above)) return(NULL)
  own <- entry_at(ledger, at)
  found <- lapply(above, function(j) {
    other <- entry_at(ledger, j)
    gap <- other$log_evidence - own$log_evidence
    value <- format_number(other$log_evidence, 2)
    if (other$kind == "lower bound")
      return(say("under_bound", format_number(own$log_evidence, 2), value, other$entry,
                 show_nats(gap, 2), advice))
    say("missed_part", other$entry, paste0(value, if (is.finite(other$se)) sprintf(
      " (se %s)", format_number(other$se, decimals_for(other$se)))), show_nats(gap, 2), advice)
  })
  unlist(found)
}

show_nats <- function(x, digits = 6) {
  if (!is.finite(x) || abs(x) >= 1e9) return("more than 1e9")
  format(signif(x, digits), big.mark = ",", scientific = FALSE)
}

#' The ledger as `fit$verdict`
#' @noRd
verdict_of <- function(ledger, at) {
  shown <- c("entry", "kind", "log_evidence", "se", "ess", "cost", "stream", "says")
  verdict <- plain_frame(with_words(ledger, at)[shown], length(ledger$entry))
  class(verdict) <- c("verdict", "data.frame")
  verdict
}

VERDICT <- c("entry", "kind", "log_evidence", "se", "ess", "cost", "says")

#' @export
print.verdict <- function(x, ...) {
  if (!all(VERDICT %in% names(x)) || nrow(x) == 0) return(print.data.frame(x, ...))
  number <- function(value, show)
    vapply(value, function(one) if (is.na(one)) "" else show(one), "")
  shown <- cbind(
    format(c("entry", x$entry)), format(c("kind", x$kind)),
    format(c("log evidence", align_estimates(x$log_evidence, x$se)), justify = "right"),
    format(c("draws", number(x$ess, count)), justify = "right"),
    format(c("cost", number(x$cost, large)), justify = "right"), c("", x$says))
  cat(paste0(sub(" +$", "", apply(shown, 1, paste, collapse = "  ")), "\n"), sep = "")
  invisible(x)
}

# Random numbers and costs of checks --------------------------------------------------------------

# Streams of random numbers that no replicate of evidence() uses.
STREAMS <- c(climbs = 2^28, `reverse run` = 2^28 + 1, `short moves` = 2^28 + 2,
             `lower bound` = 2^29 + 2^28, `run by rows` = 2^29 + 2^28 + 1,
             `second run` = 2^29, continued = 2^30)

# What checks may cost, as shares of the evaluations of the likelihood and the gradient that the
# runs have made. Together they take at most CHECKS_MOST of them; the first are served first.
CHECKS_MOST <- 0.71
CHECK_SHARES <- c(climbs = 0.3, `short moves` = 0.4, `run by rows` = 0.2, `lower bound` = 0.1,
                  `bound of a mixture` = 0.01)

#' The budget of all checks of a fit
#'
#' @param work Evaluations that the runs have made.
#' @noRd
new_budget <- function(work) {
  budget <- new.env(parent = emptyenv())
  budget$work <- work
  budget$left <- CHECKS_MOST * work
  budget
}

#' What a check may cost; taken from the budget
#'
#' @param least Evaluations that are always allowed, because they take some milliseconds.
#' @noRd
granted <- function(budget, check, least = 0) {
  share <- min(CHECK_SHARES[[check]] * budget$work, budget$left)
  budget$left <- budget$left - share
  max(share, least)
}

# Least effective sample size of the importance-sampling check, as a share of the ideal one (for a
# posterior that is normal around its modes). With several modes the proposal may miss a part of the
# posterior, which the weights show only if a draw happens to fall there, so the limit is stricter.
AUDIT_LEAST_ESS <- c(one = 0.25, several = 0.6)

# Between this share and AUDIT_LEAST_ESS the error is in doubt (DOUBTED); below it is not known.
AUDIT_DOUBTED_ESS <- 0.1
AUDIT_UNEVEN_ESS <- 0.15 # below this share the fit has a warning
AUDIT_MOST_K <- 0.7     # Pareto shape of its weights
AUDIT_ENTRY <- "importance sampling"
FAILED_OWN <- "failed its own checks"

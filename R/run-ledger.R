# The ledger of a fit: all estimates and checks of its log evidence, one in each row, and the one
# rule that decides between them. crosscheck() compares fits by a rule of its own
# (R/develop-crosscheck.R).
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
# (contradictions()). What an entry can say against one that lies below it follows from its kind:
#
# exact, lower bound          the evidence is at least so much
# unbiased, even weights      the same, within three joint standard errors
# unbiased, uneven weights or failed checks      the same, less 5 nats
# approximate, passed its checks                 the same, within four joint standard errors
# approximate, failed its checks                 nothing, if the other is unbiased and even
# without a standard error, upper bound          nothing
#
# What lies below says nothing, as estimates are too low where they have missed something: unless
# two that both state an error are so far apart that one of them is not what it is taken for. Then a
# third estimate is asked for, and the reported one has failed if that does not agree with it.

# An unbiased estimate from uneven weights is a lower limit less so many nats.
AHEAD <- 5
# Other estimates contradict each other by so many joint standard errors, if these are also more
# nats than numerical errors explain; unbiased ones are rarely too high, so fewer are enough for one
# that lies above.
ERRORS_APART <- 4
ERRORS_ABOVE <- 3
GAP_LEAST <- 0.2
# Entries so many joint standard errors apart are never only said in the verdict.
ERRORS_IMPOSSIBLE <- 20

# Limits of the weights of importance sampling, by the names that C has for them (core/audit.h).
weight_limit <- function(name) tables()$limits[[name]]

#' What the weights of importance sampling say of its standard error
#'
#' @param found A list: `ess` and `ideal`, `pareto_k`, `laplace`, and `thin`, the share of the
#'   estimate in parts of the proposal of which few draws have weight.
#' @param given_scales Whether the draws were made in two steps, given the scales, which needs no
#'   mode.
#' @param modes "one" or "several".
#' @return A list: whether it is `known`, in doubt though known (`doubted`), or so much that there
#'   is a warning (`uneven`).
#' @noRd
weights_verdict <- function(found, modes, given_scales = 0) {
  share <- found$ess / found$ideal
  # without a mode, and so without Laplace's value, only even weights say that the draws are where
  # the posterior is; as many coefficients as rows have none, because the density has no maximum
  # where the noise goes to zero
  least <- weight_limit(if (!is.na(found$laplace)) "known_ess"
                        else if (isTRUE(given_scales == 1)) "one_ess" else "several_ess")
  list(
    known = isTRUE(share >= least) && !isTRUE(found$pareto_k > weight_limit("most_k")),
    doubted = isTRUE(share < weight_limit(paste0(modes, "_ess"))) || isTRUE(found$thin > 0),
    uneven = isTRUE(share < weight_limit("uneven_ess"))
  )
}

thin_words <- function(found)
  if (isTRUE(found$thin > 0))
    say("thin", show_share(found$thin), weight_limit("thin_ess"), weight_limit("doubted"))

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
  failed <- ledger$doubt == FAILED_OWN
  least[(ledger$uneven | failed) & unbiased] <- AHEAD + 2 * own
  if (unbiased[i] && !ledger$uneven[i] && !failed[i]) least[failed & !unbiased & !sure] <- Inf
  above <- !is.na(gap) & gap > 0 & is.finite(least) & gap > least & ledger$kind != "upper bound"
  gap[!above | seq_along(gap) == i] <- 0
  gap
}

# Which entries are impossible beside entry i, because both could be the result and state an error
# that is known? Particles that failed their own checks, or are draws of the check, say nothing.
impossible_beside <- function(ledger, i) {
  opinion <- ledger$reportable & !ledger$uneven &
    is.finite(ledger$se) & !ledger$doubt %in% c(FAILED_OWN, DRAWN_BY_CHECK)
  gap <- abs(ledger$log_evidence - ledger$log_evidence[i])
  limit <- ERRORS_IMPOSSIBLE * sqrt(ledger$se^2 + ledger$se[i]^2)
  limit[limit < GAP_LEAST] <- GAP_LEAST
  which(opinion & opinion[i] & !is.na(gap) & gap > limit & seq_along(gap) != i)
}

# The third estimate: importance sampling around modes from climbs and draws of its own.
CONFIRMATION <- "importance sampling, other climbs"

is_confirmed <- function(ledger, at) {
  third <- which(ledger$entry == CONFIRMATION & !ledger$uneven)
  length(third) > 0 && !are_apart(ledger$log_evidence[third] - ledger$log_evidence[at],
                                  ledger$se[third], ledger$se[at])
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
  beside <- if (!is_confirmed(ledger, at)) setdiff(impossible_beside(ledger, at), above)
  c(unlist(found), if (length(beside)) impossible_words(ledger, at, beside[1], advice))
}

impossible_words <- function(ledger, at, j, advice) {
  gap <- ledger$log_evidence[j] - ledger$log_evidence[at]
  se <- sqrt(ledger$se[j]^2 + ledger$se[at]^2)
  value <- format_number(ledger$log_evidence[j], 2)
  side <- if (gap < 0) "less" else "more"
  if (ledger$kind[at] == "exact")
    say("beside_exact", ledger$entry[j], value, show_nats(abs(gap), 2), side, abs(gap) / se)
  else say("impossible", ledger$entry[j], value, show_nats(abs(gap), 2), side, abs(gap) / se,
           advice)
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

# Random numbers of checks ------------------------------------------------------------------------

# Streams of random numbers that no replicate of evidence() uses.
STREAMS <- c(climbs = 2^28, `reverse run` = 2^28 + 1, `short moves` = 2^28 + 2,
             `lower bound` = 2^29 + 2^28, `run by rows` = 2^29 + 2^28 + 1,
             `second run` = 2^29, continued = 2^30)

AUDIT_ENTRY <- "importance sampling"
FAILED_OWN <- "failed its own checks"
DRAWN_BY_CHECK <- "drawn by the check"

# Warnings of sequential methods about rows that contradict the rows before them, such as an outlier
# or a column that is not scaled, which move the posterior by many of its standard deviations.

# A chunk after this many rows that needs so many annealing steps gives errors of a nat: with one
# outlier at 1,000 standard deviations of the noise among 300 rows, the mean error was -0.7 at a
# standard error of 0.7. Rows like those before need one or two steps.
SURPRISE_FROM <- 20
SURPRISE_STEPS <- 100
# The length of a trajectory, in posterior standard deviations, below which particles hardly move.
# The usual length is 1.5.
STILL_LENGTH <- 0.15
STILL_SHARE <- 0.1 # of the chunks
# Shrinkage of the volume in one chunk after the first, in nats, of online nested sampling.
SURPRISE_NATS <- 50
# Numbers of this size have a rounding error of a thousandth of a nat, and sums of many of them one
# of more than a nat.
DIGITS_MOST <- 1e12

sequential_warnings <- function(trace, method, log_evidence) {
  c(if (identical(method$path, "data")) c(annealed_warning(trace),
                                          short_steps_warning(trace, method)),
    compressed_warning(trace), digits_warning(log_evidence))
}

annealed_warning <- function(trace) {
  if (is.null(trace$lambda_steps) || is.null(trace$particles)) return(NULL)
  hard <- which(trace$n > SURPRISE_FROM & trace$lambda_steps > SURPRISE_STEPS)
  if (length(hard) == 0) return(NULL)
  say("hard_chunk", count(trace$n[hard[1]]), count(trace$lambda_steps[hard[1]]))
}

short_steps_warning <- function(trace, method) {
  if (length(method$kernels) != 1 || is.null(method$kernels[[1]]$args$leapfrog) ||
      is.null(trace$step_size)) return(NULL)
  moved <- !is.na(trace$acceptance)
  steps <- most_leapfrog(method$kernels[[1]])
  still <- moved & (steps * trace$step_size < STILL_LENGTH | trace$acceptance < STILL_ACCEPTED)
  if (!any(still) || mean(still[moved]) < STILL_SHARE) return(NULL)
  say("still", count(sum(still)), count(length(still)), count(trace$n[which(still)[1]]))
}
STILL_ACCEPTED <- 0.02

compressed_warning <- function(trace) {
  if (is.null(trace$log_volume) || is.null(trace$n) || length(unique(trace$n)) < 2) return(NULL)
  hard <- which(trace$n > trace$n[1] & -trace$log_volume > SURPRISE_NATS)
  if (length(hard) == 0) return(NULL)
  say("contradicting_chunk", count(trace$n[hard[1]]), -trace$log_volume[hard[1]])
}

digits_warning <- function(log_evidence) {
  if (!is.finite(log_evidence) || abs(log_evidence) < DIGITS_MOST) return(NULL)
  say("digits", abs(log_evidence))
}

# The rows of a run whose memory is bounded: the standard error includes what the sample adds, but a
# large one must be explained.
PAST_MOST <- 1 # nats
PAST_SMALL <- 0.1 # below this the sample of the rows did not matter
PAST_APART <- 0.01 # share of the evidence at modes far from the point around which sums are known

past_warnings <- function(out, method, audit = NULL) {
  if (is.null(out$past_se)) return(NULL)
  advice <- if (has_setting(method, "past")) "Use online_nested(past = Inf)."
  else "Use a source that can be read again, or a larger `keep`."
  changed <- drop(out$past_changed) > 0
  # the check has seen all rows, in a further pass or by exact sums
  whole <- isTRUE(audit$passed) && isTRUE(audit$known) && is.finite(out$past_se) &&
    drop(out$past_se) < PAST_SMALL
  apart <- isTRUE(drop(out$past_apart) > log(PAST_APART))
  c(if (apart) say("modes_apart"),
    if (changed) if (whole) say("rows_changed") else say("lost_rows", advice),
    if (!is.finite(out$past_se)) say("sample_error_unknown", advice)
    else if (drop(out$past_se) > PAST_MOST)
      say("sample_error", format(signif(drop(out$past_se), 2), scientific = FALSE), advice))
}

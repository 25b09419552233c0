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

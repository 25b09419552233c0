# What is computed from the outputs of a run: its cost, weights and trace.

named_draws <- function(columns, names) {
  draws <- t.default(columns)
  dimnames(draws) <- list(NULL, names)
  draws
}

# The standard deviation of log weights, from those above the median. A few chains that are stuck
# far from the posterior have no weight, and leave the estimate as it is.
upper_spread <- function(log_weights) {
  middle <- stats::median(log_weights)
  above <- log_weights[log_weights > middle] - middle
  if (length(above)) sqrt(mean(above^2)) else 0
}

normalise <- function(log_weights) {
  top <- max(log_weights)
  log_weights - top - log(sum(exp(log_weights - top)))
}

least_ess <- function(trace) {
  worst <- which.min(trace$ess / trace$particles)
  if (length(worst)) as.list(trace[worst, c("ess", "particles", "n", "lambda")])
}

most_steps <- function(trace) {
  steps <- if (is_one_chunk(trace)) sum(trace$lambda_steps) else trace$lambda_steps
  list(total = sum(steps), chunks = length(steps), most = max(steps, 0),
       at = trace$n[which.max(steps)])
}

range_of <- function(x) {
  x <- x[is.finite(x)]
  if (length(x)) range(x) else c(NA_real_, NA_real_)
}

# The cost of a run; zero if there was none.
work_of <- function(out) {
  found <- c(lambda_steps = 0, likelihoods = 0, gradients = 0, seconds = 0)
  for (name in names(found)) if (!is.null(out[[name]])) found[[name]] <- out[[name]]
  found
}

evaluations_of <- function(out) sum(work_of(out)[c("likelihoods", "gradients")])

# If all data are annealed together, they are one chunk, with a row of the trace for each step.
is_one_chunk <- function(trace) nrow(trace) > 1 && all(trace$n == trace$n[1])

log_mean <- function(x) max(x) + log(mean(exp(x - max(x))))

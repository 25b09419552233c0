# Annealing schedules as specifications.

#' Annealing schedules
#'
#' The number and the places of the intermediate distributions between prior and posterior.
#'
#' @param steps Number of steps, a whole number.
#' @param delta Steepness of the sigmoid, positive: larger values put more steps near the two ends.
#' @param ess Effective sample size of the weights of each step: a share of the particles if below
#'   1, else a number of particles. Larger values are slower and more accurate.
#'
#' @details
#' `adaptive()` chooses each step from the particles; `linear()` and `sigmoidal()` fix all steps
#' beforehand, which avoids the bias from adapting them.
#'
#' The powers of `sigmoidal()` are \eqn{\lambda_t = (s_t - s_0)/(s_T - s_0)} with \eqn{s_t} the
#' logistic function of \eqn{\delta(2t/T - 1)}, for \eqn{t = 0, \ldots, T}{t = 0, ..., T}: `steps`
#' is the number of steps \eqn{T}. Grosse et al. count from \eqn{t = 1}, which is one step less.
#'
#' The effective sample size is that of the weights of all particles, \eqn{(\sum w)^2 / \sum w^2}
#' {(sum w)^2 / sum w^2}; particles without weight, where the likelihood is zero, add nothing to it.
#'
#' In arguments the names do without `schedule_`, as here: see [logevidence_names].
#'
#' @return An object of class `"evidence_schedule"`.
#'
#' @references
#' Grosse, R. B., Ghahramani, Z. and Adams, R. P. (2015). Sandwiching the marginal likelihood using
#' bidirectional Monte Carlo. \doi{10.48550/arXiv.1511.02543}
#'
#' @examples
#' evidence(gaussian_mean(), c(1.2, 0.4, 2.1), ais(schedule = sigmoidal(100)), seed = 1)
#'
#' @aliases adaptive linear sigmoidal
#' @name schedules
NULL

new_schedule <- function(kind, ...) structure(list(kind = kind, ...), class = "evidence_schedule")

#' @rdname schedules
#' @export
schedule_adaptive <- function(ess = 0.99) {
  new_schedule("adaptive", ess = check_number(ess, "ess", 0, lower_open = TRUE))
}

#' @rdname schedules
#' @export
schedule_linear <- function(steps = 1000) {
  new_schedule("linear", steps = check_count(steps, "steps", 1, 1e6))
}

#' @rdname schedules
#' @export
schedule_sigmoidal <- function(steps = 1000, delta = 4) {
  new_schedule("sigmoidal", steps = check_count(steps, "steps", 1, 1e6),
               delta = check_positive(delta, "delta"))
}

check_schedule <- function(schedule) {
  if (!is_made(schedule, "evidence_schedule"))
    refuse_made(schedule, "schedule", "a schedule, such as `adaptive()`", "schedule")
  schedule
}

#' @export
print.evidence_schedule <- function(x, ...) {
  cat("Schedule ", format_schedule(x), "\n", sep = "")
  invisible(x)
}

format_schedule <- function(schedule) {
  settings <- schedule[names(schedule) != "kind"]
  paste0(schedule$kind, "(",
         paste(names(settings), vapply(settings, format, ""), sep = " = ", collapse = ", "), ")")
}

# The settings of a stage for a schedule.
schedule_settings <- function(schedule, particles) {
  if (schedule$kind == "adaptive")
    return(list(schedule = "adaptive", ess = ess_in_particles(schedule$ess, particles)))
  # a flat sigmoid is linear in the limit, and differences of its values are inaccurate before that
  kind <- if (schedule$kind == "sigmoidal" && schedule$delta < 1e-6) "linear" else schedule$kind
  list(schedule = "fixed", lambda = lambdas(kind, schedule$steps, schedule$delta)[-1])
}

# From 0 to 1, equally spaced or along a sigmoid of steepness delta.
lambdas <- function(kind, steps, delta = NULL) {
  share <- (0:steps) / steps
  if (kind == "linear") return(share)
  sigmoid <- function(x) 1 / (1 + exp(-delta * x))
  lambda <- (sigmoid(2 * share - 1) - sigmoid(-1)) / (sigmoid(1) - sigmoid(-1))
  lambda[c(1, steps + 1)] <- 0:1
  lambda
}

# Shares become numbers of particles; a number must be below that of the particles.
ess_in_particles <- function(ess, particles, name = "ess") {
  ess <- check_number(ess, name, 0, particles, lower_open = TRUE, upper_open = TRUE)
  if (ess < 1) ess * particles else ess
}

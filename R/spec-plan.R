# The plan of a run: a method, or the problem that it makes, with its settings for C. Only this file
# and the constructors of methods write settings; each function returns a changed copy. Names are
# those of src/estimators/*/settings.c, with the number of the stage first.

# Settings of NULL are removed.
with_settings <- function(plan, ...) {
  own <- list(...)
  settings <- plan$settings
  for (name in names(own))
    settings[[name]] <- if (!is.null(own[[name]])) as_setting(own[[name]])
  plan$settings <- settings
  plan
}

as_setting <- function(x) if (is.character(x)) x else as.double(x)

has_setting <- function(plan, name) {
  value <- .subset2(plan, "settings")[[name]]
  length(value) == 1 && !is.na(value) && value > 0
}

particles_of <- function(plan) plan$settings$`1.particles`

# Does the run have a single particle?
is_lone <- function(plan) identical(particles_of(plan), 1)

with_particles <- function(plan, n) with_settings(plan, `1.particles` = n)

# Settings of a stage that are numbers of particles.
COUNTED <- c("1.particles", "1.ess", "1.anneal")

#' A run of so many times as many particles
#' @noRd
grown <- function(plan, times) {
  counted <- intersect(COUNTED, names(plan$settings))
  plan$settings[counted] <- lapply(plan$settings[counted], `*`, times)
  plan$times <- times
  plan
}

#' A method with a kernel for models without gradients, if the user names none
#' @noRd
with_spare_kernel <- function(plan, kernel) {
  plan$spare <- kernel
  plan
}

#' The spare kernel in place of the default one
#'
#' @param steps Its number of moves, if the user has given none.
#' @noRd
moved_by_spare <- function(plan, steps) {
  plan$kernels[[1]] <- plan$spare
  if (has_setting(plan, "1.renew")) with_settings(plan, `1.steps` = steps) else plan
}

#' The temperatures of the first stage
#'
#' @param ess Least effective sample size, for an adaptive schedule.
#' @param lambda The temperatures of a fixed one.
#' @noRd
with_schedule <- function(plan, schedule, ess = 0, lambda = NULL) {
  plan <- with_settings(plan, `1.schedule` = schedule, `1.ess` = ess)
  if (is.null(lambda)) plan else with_settings(plan, `1.lambda` = lambda)
}

#' A run whose path (temperatures, moves, tuning) can be followed by others
#' @noRd
recording <- function(plan) with_settings(plan, record = 1)

#' A run from a given state, in reverse: from the posterior to the prior
#'
#' @param state NULL for a run forwards.
#' @noRd
reversed_from <- function(plan, state)
  with_settings(plan, reverse = !is.null(state), from_state = state)

#' A run of so many particles along a recorded path; nothing adapts
#' @noRd
following <- function(plan, path, particles, state = NULL) {
  plan <- with_settings(plan, record = NULL, rounds = NULL, bridge = NULL, moments = NULL,
                        follow = path)
  reversed_from(with_particles(with_schedule(plan, "one"), particles), state)
}

# Largest chunk of rows in their own order, so that the trace of a stream has enough entries.
STREAM_CHUNK <- 20000

#' A run on rows in the order of a source, of which `keep` stay in memory
#'
#' @param again Can the source be read again?
#' @noRd
in_given_order <- function(plan, keep, again) {
  in_both_runs(plan, function(plan) {
    if (has_setting(plan, "shuffle") && has_setting(plan, "search"))
      plan <- with_settings(plan, restarts = 1)
    chunks <- grep("[.]chunk_most$", names(plan$settings), value = TRUE)
    plan$settings[chunks] <- lapply(plan$settings[chunks], min, STREAM_CHUNK)
    with_settings(plan, keep = keep, again = again, shuffle = 0)
  })
}

# The same change for the second run, whose settings are `thorough`, if there may be one.
in_both_runs <- function(plan, change) {
  changed <- change(plan)
  if (!is.null(plan$thorough))
    changed$thorough <- change(list(settings = plan$thorough))$settings
  changed
}

#' A second run with more effort, and, if the first has lost a mode, with rows in random order
#' @noRd
with_more_effort <- function(plan, lost) {
  if (!is.null(plan$thorough)) plan$settings <- plan$thorough
  if (lost) with_settings(plan, shuffle = 1, restarts = 0) else plan
}

#' A run that is continued from the levels and points of a fit by nested()
#' @noRd
from_levels <- function(plan, levels, theta)
  with_settings(plan, from_levels = t(as.matrix(levels)), from_theta = t(theta))

without_levels <- function(plan) with_settings(plan, from_levels = NULL, from_theta = NULL)

#' Annealing of latent states by Gibbs sweeps
#'
#' @param sweeps At each distribution.
#' @param blind Are new states drawn from the prior?
#' @noRd
by_sweeps <- function(plan, sweeps, by_rows, blind)
  with_settings(plan, sweeps = sweeps, by_rows = by_rows, blind = blind, `1.kernel` = 0,
                shuffle = by_rows && !identical(plan$settings$shuffle, 0))

#' The first rows of a run row by row: so many are annealed together, and sweeps follow more often
#'
#' @param ess Least effective sample size at each temperature, as a share of the particles.
#' @noRd
with_first_rows <- function(plan, first, ess, often) {
  plan <- if (first == 0) with_schedule(plan, "one")
  else with_schedule(plan, "adaptive", ess * particles_of(plan))
  with_settings(plan, first = first, often = often)
}

# All that C needs to start a run.

#' All that C needs to start a run, except the rows
#' @noRd
new_problem <- function(model, encoded, method, words, threads = 1) {
  # of an object with a class, each `$` looks for a method in all packages that are attached
  method <- unclass(method)
  if (isTRUE(encoded$without_rows)) check_for_no_rows(method, encoded)
  if (!has_trait(method, "improper")) require_proper(model, "`method` must be exact()", method$name)
  if (has_trait(method, "closed form")) check_for_closed_form(model)
  if (is_discrete(model)) check_for_discrete(method, model)
  ready <- READY[[method$estimator]]
  if (!is.null(ready)) method <- ready(method, model, encoded)
  if (!is.null(method$settings$from_state) && is.null(method$settings$follow) && !is_latent(model))
    fail("`start` is for models with latent variables, not ", model$name, "().")
  method <- if (is_latent(model)) latent_method(method, model)
  else for_units(settle(method, model, encoded$args), model, encoded)
  draws <- audit_draws(may_have_modes(model))
  complete <- function(settings)
    if (identical(settings$audit_draws, 0)) replace(settings, names(draws), draws) else settings
  list(
    model_type = model_type(model), model_args = encoded$args,
    model = model[names(model) != "contract"], estimator = method$estimator,
    settings = for_engine(complete(method$settings)),
    thorough = if (!is.null(method$thorough)) for_engine(complete(method$thorough)),
    kernels = lapply(method$kernels,
                     function(k) list(name = .subset2(k, "name"),
                                      args = lapply(.subset2(k, "args"), as.double))),
    seed = words, replicate = 0, threads = as.double(threads),
    row_work = cost_of_row(model, encoded),
    total = if (is.na(encoded$n)) 0 else as.double(encoded$n),
    restore = FALSE
  )
}

cost_of_row <- function(model, encoded)
  if (needs_all(model)) part_of(model, "cost")(model, encoded)

# By engine: refuses models that it cannot take, and returns the method with what it needs of the
# model.
READY <- list(
  laplace = function(method, model, encoded) {
    if (is_stepped(model)) check_for_curvature(method, model)
    method
  },
  variational = function(method, model, encoded) {
    check_for_variational(model)
    method
  },
  chib = function(method, model, encoded) {
    check_for_chib(model)
    with_chosen_state(method, model, encoded)
  }
)

# C would name its own model, which is none of R.
check_for_closed_form <- function(model) {
  instead <- part_of(model, "closed")
  if (is.character(instead))
    fail("exact() needs a model whose evidence has a closed form, such as gaussian_mean() or ",
         "linear_regression(), but ", instead, ": leave `method` out.")
}

# Units of which the first check may make all draws, before any particle moves.
FIRST_UNITS <- 20000

# Climbs of a search where the likelihood of all units is expensive: so many that they take about
# SEARCH_WORK evaluations of a row, of CLIMB_VALUES likelihoods each, and at least SEARCH_LEAST.
SEARCH_WORK <- 5e8
CLIMB_VALUES <- 400
SEARCH_LEAST <- 4

#' A method for a model whose rows are groups, of which each takes as long as many rows
#' @noRd
for_units <- function(method, model, encoded) {
  cost <- cost_of_row(model, encoded)
  if (is.null(cost)) return(method)
  if (has_setting(method, "audit_work"))
    method <- with_settings(method, audit_work = method$settings$audit_work / max(cost, 1))
  if (has_setting(method, "search")) {
    affordable <- SEARCH_WORK / (CLIMB_VALUES * cost * ncol(encoded$rows))
    climbs <- max(SEARCH_LEAST, floor(affordable))
    method <- in_both_runs(method, function(plan)
      with_settings(plan, search = min(plan$settings$search, climbs)))
  }
  if (!has_setting(method, "1.until")) return(method)
  most <- min(FIRST_UNITS, condensed_rows(nrow(encoded$rows)))
  in_both_runs(method, function(plan)
    with_settings(plan, `1.until` = max(plan$settings$`1.until`, most)))
}

# Settings that only select among the results that an engine reports; C does not see them.
CHOSEN_IN_R <- c("published", "symmetry")

for_engine <- function(settings) settings[!names(settings) %in% CHOSEN_IN_R]

#' Refuse methods that use the rows one after another for a model whose rows are all used at once
#' @noRd
check_for_no_rows <- function(method, encoded) {
  by_data <- identical(method$path, "data")
  if (by_data || has_trait(method, "chunks"))
    fail("`method` ", method$name, "(", if (by_data) "\"data\"", ") uses rows chunk by chunk, and ",
         if (!isTRUE(encoded$joined)) "this model has no rows"
         else paste("the log-likelihood of this model is not a sum over rows (all rows together",
                    "give another value than two parts)"),
         ": use sgais(), smc(), nested() or laplace().")
}

#' Refuse methods that need parameters of all values
#' @noRd
check_for_discrete <- function(method, model) {
  if (has_trait(method, "discrete")) {
    # with steps of one size, an error of 0.3 nats where a covariate is in or out of a regression
    for (kernel in method$kernels) if (!is_reversible(kernel))
      fail("`kernel` must be hmc(), mala(), rwm() or slice() for a model with parameters of few ",
           "values, not ", kernel$name, "(): the step size fits some of these values and not ",
           "others, and without an accept step that is an error of the estimate.")
    return(invisible())
  }
  fail("`method` must be smc(), ais(), power_posterior() or likelihood_weighting(), not ",
       method$name, "(): only these take parameters with few values, as `",
       names(part_of(model, "discrete"))[1], "` has.")
}

audit_draws <- function(several) {
  list(audit_draws = if (several) 4000 else 1000, audit_lots = if (several) 4 else 1,
       audit_least = 100)
}

# Rows go when there are too many of them: those of update(), or, if all rows were in memory and
# used at once, when the run has ended.
bounded <- function(problem, feeding, width) {
  walks <- of_engine(problem, "walks")
  if (!walks && feeding != "open") return(problem)
  in_both_runs(problem, function(plan) {
    plan <- with_settings(plan, keep = condensed_rows(width))
    if (walks) with_settings(plan, keep_all = feeding != "open") else plan
  })
}

# A run keeps so many rows in memory: all of them, or a uniform sample.
KEEP <- 20000
# When rows in memory are condensed for it, at most so many numbers of them stay.
CONDENSED <- 1e6

condensed_rows <- function(width) max(1000, min(KEEP, floor(CONDENSED / width)))

takes_blocks <- function(method) has_trait(method, "blocks")

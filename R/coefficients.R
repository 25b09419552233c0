# The priors of the coefficients of a regression: one for all but the intercept, some by name, the
# intercept's own, and the short forms `prior_sd` and `prior_mean` for all of them.

coefficient_default <- function() in_units(normal(0, 2.5))

# The intercept is in nearly all models that are compared, so a wide prior of it costs all of them
# the same.
intercept_default <- function(link) in_units(normal(0, if (link == "identity") 10 else 5))

#' Settings of a model from the arguments of its constructor
#'
#' @param link That of the linear predictor, which decides the default of the intercept.
#' @return A list: `prior` (from check_priors()), or `prior_sd` and `prior_mean`; and `intercept`.
#' @noRd
coefficient_settings <- function(prior, intercept, prior_sd, prior_mean, link) {
  short <- c(if (!is.null(prior_sd)) "prior_sd", if (!is.null(prior_mean)) "prior_mean")
  if (length(short) && !is.null(prior))
    fail("`", short[1], "` must not be given with `prior`: it is short for a normal prior.")
  if (!is.null(prior)) prior <- check_priors(prior, "prior", TRUE)
  if (!is.null(intercept)) intercept <- check_prior(intercept, "intercept", TRUE)
  if (!is.null(intercept) && INTERCEPT %in% names(prior))
    fail("`intercept` must not be given with a prior of `", INTERCEPT, "` in `prior`.")
  if (is.null(intercept) && !INTERCEPT %in% names(prior) &&
      !for_intercept(list(prior_sd, prior_mean))) intercept <- intercept_default(link)
  if (length(short))
    return(list(prior_sd = if (is.null(prior_sd)) coefficient_default()$scale
                else check_numbers(prior_sd, "prior_sd", positive = TRUE),
                prior_mean = if (is.null(prior_mean)) 0
                else check_numbers(prior_mean, "prior_mean"), intercept = intercept))
  list(prior = if (is.null(prior)) list(coefficient_default()) else prior, intercept = intercept)
}

# Does one of these settings, all or none of which may be given, hold for the intercept, too?
for_intercept <- function(settings) {
  given <- Filter(Negate(is.null), settings)
  length(given) > 0 && !all(vapply(given, names_others, NA))
}

names_others <- function(setting)
  !is.null(names(setting)) && !any(names(setting) %in% c("", INTERCEPT))

#' The prior of each coefficient, by name
#' @noRd
coefficient_priors <- function(model, covariates, what = "coefficient") {
  intercept <- if (!is.null(model$intercept)) stats::setNames(list(model$intercept), INTERCEPT)
  of_each <- function(name) {
    setting <- model[[name]]
    # any number: the intercept's own prior takes its place below
    if (length(intercept) && INTERCEPT %in% covariates && names_others(setting))
      setting[INTERCEPT] <- 1
    rep_len(match_setting(setting, name, covariates, what), length(covariates))
  }
  found <- if (is.null(model$prior))
    stats::setNames(Map(normal, of_each("prior_mean"), of_each("prior_sd")), covariates)
  else match_priors(model$prior, "prior", covariates, intercept)
  if (length(intercept) && INTERCEPT %in% covariates) found[INTERCEPT] <- intercept
  found
}

#' What the default priors of a regression take from the response
#'
#' @param y Responses as numbers.
#' @param offset That of the linear predictor, or NULL.
#' @return A list: `centre`, of the linear predictor of an average row, and `scale`, its unit.
#' @noRd
response_units <- function(model, y, offset = NULL) {
  if (!is.null(model$units)) return(model$units)
  family <- model$family
  if (family_type(family) %in% UNIT_OF_LOG) return(list(centre = log_ratio(y, offset), scale = 1))
  if (!isTRUE(family$link == "identity")) return(UNIT_ONE)
  of_column <- function(x) .Call(ffi_standard_constants, matrix(as.double(x)), 1)
  constants <- of_column(y)
  centre <- if (is.null(offset)) constants[1] else of_column(y - offset)[1]
  # of one row, or of equal ones, nothing is known
  known <- constants[3] != SAME_COLUMN && is.finite(1e3 * constants[2]) &&
    constants[2] > 1e-14 * abs(constants[1])
  list(centre = if (is.finite(centre)) centre else 0, scale = if (known) constants[2] else 1)
}

# Families of positive numbers that have a unit: the linear predictor is the logarithm of a mean.
UNIT_OF_LOG <- c("gamma", "weibull")

# The logarithm of the mean response over that of exp(offset).
log_ratio <- function(y, offset) {
  most <- max(y)
  centre <- log(most) + log(mean(y / most))
  if (!is.null(offset)) centre <- centre - max(offset) - log(mean(exp(offset - max(offset))))
  if (is.finite(centre)) centre else 0
}

#' Priors of the coefficients of a linear predictor with the units of the response
#' @noRd
coefficients_with_units <- function(priors, units) {
  found <- lapply(priors, with_units, units$scale)
  if (INTERCEPT %in% names(priors))
    found[[INTERCEPT]] <- with_units(priors[[INTERCEPT]], units$scale, units$centre)
  found
}

show_coefficient_priors <- function(model) {
  of <- paste0(if (is.null(model$intercept)) "all coefficients " else "coefficients ",
               if (isTRUE(model$scale)) "of standardised columns ")
  c(paste0(of, if (is.null(model$prior)) paste0("normal around ", show_setting(model$prior_mean),
                                                ", sd ", show_setting(model$prior_sd))
           else show_priors(model$prior)),
    if (!is.null(model$intercept)) paste(INTERCEPT, "~", format(model$intercept)))
}

# What to do where prior and data contradict each other.
advice_regression <- function(model) {
  further <- length(model$auxiliary) || length(model$formulas)
  arguments <- if (further) "`prior`, `intercept` and `auxiliary`" else "`prior` and `intercept`"
  paste0("Set ", arguments, " in the units of the data, or leave them out: their defaults have ",
         "these units.")
}

has_normal_priors <- function(settings) {
  all <- c(settings$prior, if (!is.null(settings$intercept)) list(settings$intercept))
  all(vapply(all, `[[`, "", "kind") == "normal")
}

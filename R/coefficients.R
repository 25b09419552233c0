# The priors of the coefficients of a regression, the same for all of them: one for all, some by
# name, the intercept's own, and the short forms `prior_sd` and `prior_mean`.

coefficient_default <- function() normal(0, 2.5)

# The intercept is in nearly all models that are compared, so a wide prior of it costs all of them
# the same.
intercept_default <- function(link) normal(0, if (link == "identity") 10 else 5)

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
  # priors by name without that of the intercept: it has its default
  if (is.null(intercept) && all_but_intercept(list(prior, prior_sd, prior_mean)))
    intercept <- intercept_default(link)
  if (length(short))
    return(list(prior_sd = if (is.null(prior_sd)) coefficient_default()$scale
                else check_numbers(prior_sd, "prior_sd", positive = TRUE),
                prior_mean = if (is.null(prior_mean)) 0
                else check_numbers(prior_mean, "prior_mean"), intercept = intercept))
  if (is.null(prior) && is.null(intercept)) intercept <- intercept_default(link)
  list(prior = if (is.null(prior)) list(coefficient_default()) else prior, intercept = intercept)
}

#' Are all that are given of these settings named by coefficients, without the intercept?
#' @noRd
all_but_intercept <- function(settings) {
  given <- Filter(Negate(is.null), settings)
  length(given) > 0 && all(vapply(given, names_others, NA))
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
  # of softmax_regression() NULL
  if (!isTRUE(model$family$link == "identity"))
    return(paste0(if (!model$scale) "Use `scale = TRUE`, or set " else "Set ", arguments, "."))
  paste0("Set ", arguments, " in the unit of the response", if (model$scale)
    ", which `scale = TRUE` does not change." else paste0(
      ", or use standardised columns: `scale = TRUE` standardises covariates, but not the ",
      "response."))
}

has_normal_priors <- function(settings) {
  all <- c(settings$prior, if (!is.null(settings$intercept)) list(settings$intercept))
  all(vapply(all, `[[`, "", "kind") == "normal")
}

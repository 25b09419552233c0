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
  switch(kind_of_unit(model$family),
         log = units_of_log(log_mean_exp(log(y)), if (is.null(offset)) 0 else log_mean_exp(offset)),
         identity = units_of_response(.Call(ffi_standard_constants, matrix(as.double(
           if (is.null(offset)) y else y - offset)), 1)[, 1]),
         none = UNIT_ONE)
}

#' Which unit has the linear predictor of a family? That of the response, none but a place (it is
#' the logarithm of the mean of a positive response), or none at all.
#' @noRd
kind_of_unit <- function(family) {
  if (isTRUE(family_facts(family)$response %in% c("positive", "times"))) "log"
  else if (isTRUE(family$link == "identity")) "identity" else "none"
}

#' @param constants From ffi_standard_constants(), of the response without its offset.
#' @noRd
units_of_response <- function(constants) {
  # of one row, or of equal ones, nothing is known
  known <- constants[[3]] != SAME_COLUMN && is.finite(1e3 * constants[[2]]) &&
    constants[[2]] > 1e-14 * abs(constants[[1]])
  list(centre = if (is.finite(constants[[1]])) constants[[1]] else 0,
       scale = if (known) constants[[2]] else 1)
}

# From the logarithms of the means of the response and of exp(offset).
units_of_log <- function(response, offset) {
  centre <- response - offset
  list(centre = if (is.finite(centre)) centre else 0, scale = 1)
}

log_mean_exp <- function(x) max(x) + log(mean(exp(x - max(x))))

# What regressions say of units for rows that are elsewhere (contract, `units`).
REGRESSION_UNITS <- list(
  # rows for C, with a response without offset, or else the logarithm of a positive one
  rows = function(model, rows) {
    y <- nrow(rows)
    offset <- match("(offset)", rownames(rows))
    switch(kind_of_unit(model$family), identity =
             if (!is.na(offset)) rows[y, ] <- rows[y, ] - rows[offset, ],
           log = rows[y, ] <- log(rows[y, ]))
    rows
  },
  of = function(model, constants) {
    own <- constants[, ncol(constants)]
    offset <- if ("(offset)" %in% colnames(constants)) constants[["exp", "(offset)"]] else 0
    units <- switch(kind_of_unit(model$family), identity = units_of_response(own),
                    log = units_of_log(own[["exp"]], offset), none = UNIT_ONE)
    # columns of formulas of further parameters by their own names, too
    for (name in names(model$formulas)) {
      of_part <- startsWith(colnames(constants), paste0(name, "_"))
      again <- constants[, of_part, drop = FALSE]
      colnames(again) <- substring(colnames(again), nchar(name) + 2)
      constants <- cbind(constants, again)
    }
    c(units, list(columns = TRUE, constants = constants))
  }
)

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

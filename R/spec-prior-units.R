# Default priors have no units: they are those of standardised columns, and of a response whose unit
# is its standard deviation, so that evidences do not depend on what columns are measured in. A
# prior that a user gives is in the units of the data as they are.

# A prior whose numbers are in units of the data.
in_units <- function(prior) {
  prior$unit <- "data"
  prior
}

# Which of these priors are in units of the data?
are_relative <- function(model, priors) {
  found <- !vapply(priors, has_units, NA)
  if (isFALSE(model$units$columns)) found & FALSE else found
}

#' A model whose default priors have these units and not those of its data
#'
#' @param units A list: `centre` and `scale` of the response, and whether `columns` are
#'   standardised. If these are known, `scaling` and `further`, of the covariates and of those of
#'   further parameters, as column_scaling() returns it, and `effects`, the units of group-level
#'   effects; or `constants`, what ffi_standard_constants() would return of all rows.
#' @noRd
at_units <- function(model, units) {
  model$units <- units
  if (!is.null(model$base)) model$base <- at_units(model$base, units)
  model
}

# Before there are data all units are one, for columns as they are.
UNIT_ONE <- list(centre = 0, scale = 1)
at_unit_one <- function(model) at_units(model, c(UNIT_ONE, columns = FALSE))

# The model of a fit with the units of its first rows.
at_units_of <- function(fit) {
  design <- fit$design
  if (is.null(design$prior_units)) return(fit$model)
  at_units(fit$model, c(design$prior_units, list(
    columns = TRUE, scaling = design$scaling, further = lapply(design$further, `[[`, "scaling"),
    effects = design$effect_units)))
}

#' A prior in the units of the data as they are
#'
#' @param prior One that is in units of the data; any other one stays as it is.
#' @noRd
with_units <- function(prior, scale = 1, centre = 0) {
  if (has_units(prior)) return(prior)
  found <- times_unit(prior, scale, centre)
  found$unit <- NULL
  found$default <- TRUE
  found
}

#' The prior of `centre` plus `scale` times a parameter with this prior
#' @noRd
times_unit <- function(prior, scale, centre = 0) {
  shown <- prior$shown
  found <- switch(prior$kind,
                  normal = normal(centre + scale * shown$mean, scale * shown$sd),
                  student_t = student_t(shown$df, centre + scale * shown$location,
                                        scale * shown$scale),
                  half_normal = half_normal(scale * shown$sd),
                  half_student = half_student(shown$df, scale * shown$scale),
                  inverse_gamma = inverse_gamma(shown$shape, scale * shown$scale),
                  exponential = exponential(shown$rate / scale))
  if (is.null(found)) prior else found
}

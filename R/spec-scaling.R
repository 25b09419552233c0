# Regressions on standardised columns (`scale = TRUE`): the constants of each column, which are kept
# for later data, and the way back to coefficients of the columns as they were given.

#' Centre and standard deviation of each covariate
#'
#' Columns of numbers are divided by their standard deviations with `scale = TRUE`, or if their
#' prior has no units. Columns from factors and logical covariates alone, and of no other values
#' than 0 and 1, are not: a rare level would get a wide prior. With an intercept, columns that are
#' divided are centred with `scale = TRUE`, and all columns if the prior of the intercept has no
#' units: it is then that of an average row. Without an intercept columns are not centred, because
#' the model would be another one.
#'
#' @param input From regression_input().
#' @param relative Whether the prior of each covariate has no units (R/spec-prior-units.R).
#' @param known What is known of these columns from earlier data, or NULL.
#' @return A list of `centre` and `scale`, named by the covariates.
#' @noRd
column_scaling <- function(model, input, design, relative, threads = 1,
                           known = model$units$scaling) {
  x <- input$x
  names <- design$covariates
  if (identical(names(known$scale), names)) return(known)
  found <- list(centre = stats::setNames(numeric(length(names)), names),
                scale = stats::setNames(rep(1, length(names)), names))
  if (!model$scale && !any(relative)) return(found)
  own <- trailing(names, ncol(x))
  check_finite_matrix(x, input$argument, own)
  if (!is.double(x)) storage.mode(x) <- "double"
  constants <- column_constants(model, x, own, threads)
  same <- constants[3, ] == SAME_COLUMN
  usual <- constants[3, ] == 0
  if (!is.null(design$categorical)) usual <- usual & !trailing(design$categorical, ncol(x))
  divided <- usual & (model$scale | trailing(relative, ncol(x)))
  centred <- if (!INTERCEPT %in% names) rep(FALSE, ncol(x))
  else if (relative[[match(INTERCEPT, names)]] && !isTRUE(model$uncentred)) !same
  else if (model$scale) divided
  else rep(FALSE, ncol(x))
  at <- trailing(seq_along(names), ncol(x))
  found$centre[at[centred]] <- constants[1, centred]
  found$scale[at[divided]] <- constants[2, divided]
  found
}

#' What ffi_standard_constants() says of columns, of all rows where the model knows it
#' @noRd
column_constants <- function(model, x, names, threads = 1) {
  known <- model$units$constants
  at <- match(names, colnames(known))
  found <- if (anyNA(at) || is.null(known)) .Call(ffi_standard_constants, x, threads)
  else matrix(0, 3, length(names))
  found[, !is.na(at)] <- known[1:3, at[!is.na(at)]]
  found
}

# What ffi_standard_constants() says of a column with one value.
SAME_COLUMN <- 2

stays_unscaled <- function(x) all(x == x[1]) || all(x == 0 | x == 1)

# The standard deviation of numbers, where rounding does not matter; divided by the largest, their
# squares do not overflow. NaN if some are not finite, or all are zero.
spread_of <- function(x) {
  most <- max(abs(x))
  z <- x / most
  most * sqrt(sum((z - sum(z) / length(z))^2) / (length(z) - 1))
}

# Squares of deviations from the mean, divided by the largest, do not overflow.
standard_constants <- function(x) {
  centre <- mean(x)
  most <- max(abs(x - centre))
  list(centre = centre,
       scale = most * sqrt(sum(((x - centre) / most)^2) / (length(x) - 1)))
}

#' For C: coefficients of the columns as given are those of standardised columns divided by
#' `user_scale`; `user_intercept` counts the parameter from which the centres are taken, from zero,
#' or is -1
#'
#' @param scalings For each linear predictor what column_scaling() gave; NULL for a parameter that
#'   has none.
#' @noRd
scaling_args <- function(scalings) {
  changed <- function(one) any(one$centre != 0 | one$scale != 1)
  if (!any(vapply(scalings, changed, NA))) return(NULL)
  sizes <- vapply(scalings, function(s) max(length(s$scale), 1L), 1L)
  first <- cumsum(c(0, sizes))[seq_along(sizes)]
  each <- lapply(seq_along(scalings), function(k) {
    one <- scalings[[k]]
    if (is.null(one)) return(data.frame(centre = 0, scale = 1, intercept = -1))
    at <- match(INTERCEPT, names(one$scale))
    data.frame(centre = unname(one$centre), scale = unname(one$scale),
               intercept = if (is.na(at)) -1 else first[k] + at - 1)
  })
  table <- do.call(rbind, each)
  list(user_centre = table$centre, user_scale = table$scale, user_intercept = table$intercept)
}

# Columns with a mean of more standard deviations: Newton's method loses digits by its square.
FAR_FROM_ZERO <- 1e3
# Rows that are looked at.
FAR_ROWS <- 1000

#' The model on standardised columns, for methods without a prior, if columns are far from zero
#'
#' With an intercept the likelihood has the same maximum on columns of any centre and scale.
#' @noRd
centred_model <- function(model, encoded) {
  if (model$scale || is.null(far_column(encoded))) return(NULL)
  model$scale <- TRUE
  model
}

#' The covariate that is farthest from zero: its name, and the distance in standard deviations
#' @noRd
far_column <- function(encoded) {
  names <- encoded$design$covariates
  p <- length(names)
  if (p < 2 || !INTERCEPT %in% names || nrow(encoded$rows) <= p) return(NULL)
  many <- ncol(encoded$rows)
  some <- unique(round(seq(1, many, length.out = min(many, FAR_ROWS))))
  far <- vapply(seq_len(p), function(j) {
    x <- encoded$rows[j, some]
    if (!all(is.finite(x)) || stays_unscaled(x)) return(0)
    one <- standard_constants(x)
    abs(one$centre) / one$scale
  }, 0)
  worst <- which.max(far)
  if (far[worst] > FAR_FROM_ZERO) list(name = names[worst], far = far[worst])
}

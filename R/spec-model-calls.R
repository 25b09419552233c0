# Calls of a model's functions in C, at points of the user.

#' Properties of a model by its table in C: dimensions, traits, which functions it offers
#' @noRd
model_facts <- function(model, args) .Call(ffi_model_facts, model_type(model), args)

#' Does a model of C functions of a user or another package have no gradients, or those of a density
#' no meaning, as it is a step function of a parameter?
#' @noRd
lacks_gradients <- function(model, args) {
  is_stepped(model) || identical(part_of(model, "starts"), 0) &&
    !all(c("log_prior_grad", "log_lik_grad") %in% model_facts(model, args)$offered)
}

is_stepped <- function(model) length(part_of(model, "stepped")) > 0

# Has the model parameters with few values, which Gibbs steps draw?
is_discrete <- function(model) length(part_of(model, "discrete")) > 0

#' A function that calls the C code of a model: what to compute, points, further arguments
#'
#' @return `function(what, theta = NULL, extra = list())`, `theta` with a point in each *column*.
#' @noRd
model_caller <- function(model, encoded) {
  type <- model_type(model)
  args <- encoded$args
  rows <- encoded$rows
  function(what, theta = NULL, extra = list()) .Call(ffi_model, type, args, rows, what, theta,
                                                     extra)
}

#' Points as C reads them, one in each column
#'
#' @return A list: `points` (a matrix, `dim` x points) and `single` (whether the user gave a
#' vector).
#' @noRd
as_points <- function(theta, dim, name = "theta") {
  if (!is_plain_numeric(theta) || length(theta) == 0)
    refuse(theta, name, "a numeric vector, or a matrix with a point in each row")
  is_rows <- is.matrix(theta)
  # A vector is one point, or, in one dimension, as many points as it has values.
  shape <- if (is_rows) theta else matrix(theta, ncol = if (dim > 1) length(theta) else 1)
  if (ncol(shape) != dim)
    fail("`", name, "` must have ", dim, " values", if (is_rows) " in each row",
         ", one for each parameter, not ", ncol(shape), ".")
  if (!all(is.finite(shape))) refuse_point(shape, name)
  points <- t(shape)
  storage.mode(points) <- "double"
  dimnames(points) <- NULL
  list(points = points, single = !is_rows)
}

refuse_point <- function(shape, name) {
  bad <- which(!is.finite(shape), arr.ind = TRUE)[1, ]
  fail("`", name, "` must hold only finite numbers, not ", shape[bad[1], bad[2]], " (parameter ",
       bad[2], ").")
}

one_point <- function(theta, dim, name = "theta") {
  points <- as_points(theta, dim, name)$points
  if (ncol(points) != 1) fail("`", name, "` must be one point, not ", ncol(points), ".")
  points
}

# From a column for each point to a row for each; a vector if the user gave one point as a vector.
per_point <- function(values, labels, single) {
  values <- matrix(values, length(labels))
  if (single && length(labels) == 1) return(as.vector(values))
  if (single && ncol(values) == 1) return(stats::setNames(as.vector(values), labels))
  matrix(t(values), ncol(values), dimnames = list(NULL, labels))
}

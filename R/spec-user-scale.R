# Parameters on the user's scale, as from posterior_draws(), turned into points in unconstrained
# space, the form in which C reads them.

#' Points that the user gave, one in each column
#'
#' @param unconstrained Whether they are in unconstrained space, not on the user's scale.
#' @noRd
given_points <- function(model, encoded, parameters, unconstrained) {
  names <- encoded[[if (unconstrained) "theta_names" else "user_names"]]
  if (is.data.frame(parameters)) parameters <- as.matrix(parameters)
  points <- as_points(by_name(parameters, names, encoded, unconstrained), length(names),
                      "parameters")$points
  if (unconstrained) points else from_user(model, encoded, points)
}

#' Named values in the order of the parameters
#' @noRd
by_name <- function(parameters, names, encoded, unconstrained) {
  given <- if (is.matrix(parameters)) colnames(parameters) else names(parameters)
  if (is.null(given)) return(parameters)
  unknown <- setdiff(given, names)
  if (length(unknown)) refuse_name(unknown[1], names, encoded, unconstrained)
  # with one parameter each value of a vector is a point
  if (length(names) == 1) return(parameters)
  absent <- setdiff(names, given)
  if (length(absent))
    fail("`parameters` must have a value for each parameter, not none for `", absent[1], "`.")
  if (anyDuplicated(given))
    fail("`parameters` must have one value for each parameter, not several for `",
         given[duplicated(given)][1], "`.")
  if (is.matrix(parameters)) parameters[, names, drop = FALSE] else parameters[names]
}

refuse_name <- function(name, names, encoded, unconstrained) {
  other <- encoded[[if (unconstrained) "user_names" else "theta_names"]]
  if (name %in% other)
    fail("`parameters` must be named by the parameters", if (unconstrained)
           " in unconstrained space" else " on the user's scale", " (", show_names(names),
         "), not by `", name, "`, which is for `unconstrained = ", !unconstrained, "`.")
  fail("`parameters` must be named by the parameters (", show_names(names), "), not by `", name,
       "`: the nearest name is ", show_names(nearest_names(name, names)), ".")
}

#' From the user's scale to unconstrained space, points in columns
#' @noRd
from_user <- function(model, encoded, user) {
  inverse <- part_of(model, "from_user")
  if (!is.null(inverse)) return(inverse(model, encoded, user))
  same <- length(encoded$theta_names) == nrow(user) &&
    isTRUE(all.equal(matrix(model_caller(model, encoded)("to_user", user), nrow(user)), user))
  if (!same)
    fail("`parameters` must be in unconstrained space, with `unconstrained = TRUE`, for this ",
         "model, which does not say how to compute them from the user's scale.")
  user
}

#' Logarithms of positive parameters
#'
#' @param which Which rows of `user` they are.
#' @noRd
log_positive <- function(user, which, names) {
  bad <- which(user[which, , drop = FALSE] <= 0, arr.ind = TRUE)
  if (nrow(bad))
    fail("`parameters` must have positive numbers as `", names[which[bad[1, 1]]], "`, not ",
         format(user[which[bad[1, 1]], bad[1, 2]], digits = 7), ".")
  user[which, ] <- log(user[which, ])
  user
}

#' Parameters of a regression: positive ones are logarithms in unconstrained space, and coefficients
#' may be those of standardised columns, see scaling_args()
#' @noRd
from_user_regression <- function(model, encoded, user) {
  args <- encoded$args
  positive <- which(encoded$theta_names != encoded$user_names &
                    startsWith(encoded$theta_names, "log("))
  points <- log_positive(user, positive, encoded$user_names)
  if (is.null(args$user_scale)) return(points)
  for (j in which(args$user_intercept >= 0)) {
    at <- args$user_intercept[j] + 1
    points[at, ] <- points[at, ] + args$user_centre[j] * user[j, ]
  }
  points * args$user_scale
}

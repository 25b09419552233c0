# The modes of the posterior that a run has found.

#' Modes of the posterior
#'
#' Where a fit has found modes of the posterior: their places, and the share of the evidence around
#' each. Before and beside the particles of [sgais()] a search climbs from many points;
#' [laplace()] and [bic()] consist of it.
#'
#' @param object A fit from [evidence()].
#'
#' @details
#' A mode is one of the density of the unconstrained parameters, such as `log(sigma)`: that is where
#' climbs go. Its mass is that of Laplace's approximation, which is rough where the posterior is not
#' normal around the mode; [evidence()] weighs draws around all modes instead. If a model has a
#' symmetry of labels, a mode stands for all its relabellings. Of replicates the modes are those of
#' the first run. Methods without such a search, such as [nested()], know no modes.
#'
#' @return A data frame with a row for each mode, the heaviest first: `share` of the mass of all
#'   modes, `log_density` of prior times likelihood there, `climbs`, how many of the search ended
#'   there, and the parameters, as in [posterior_draws()].
#'
#' @examples
#' # two readings of the same data
#' model <- density(~ dnorm(y, m^2, 0.5, log = TRUE), m = ~ 1)
#' posterior_modes(evidence(model, data.frame(y = c(3.8, 4.1, 4.3)), seed = 1))
#'
#' @concept maximum a posteriori
#' @concept multimodal posterior
#' @seealso [posterior_draws()], [laplace()]
#' @export
posterior_modes <- function(object) {
  check_is_fit(object)
  if (is.null(object$modes))
    fail("posterior_modes() has nothing to return: ", object$method$name, "() has not searched ",
         "for modes, or has found none.")
  object$modes
}

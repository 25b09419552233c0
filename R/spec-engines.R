# Engines (src/estimators): what the package asks of one, in the place of its name. An engine that
# is not here, or a part that it does not have, is as ENGINE says.

ENGINE <- list(
  points = NULL,    # what its points are called
  walks = FALSE,    # do kernels move particles along a sequence of distributions?
  weighs = FALSE,   # are its weights unbiased if its moves leave each distribution as it is?
  bounds = FALSE,   # is its estimate a lower bound, so that the highest of several runs is best?
  elsewhere = NULL  # its settings if rows are elsewhere
)

# Points in one question of importance sampling: a question takes as long as the slowest worker.
POINTS_ASKED <- 1024

ENGINES <- list(
  walk = list(points = "particles", walks = TRUE, weighs = TRUE), latent = list(weighs = TRUE),
  nested = list(points = "live points"), laplace = list(elsewhere = list(batch = POINTS_ASKED)),
  variational = list(bounds = TRUE))

#' A part of the engine of a method or of a problem
#' @noRd
of_engine <- function(x, part) {
  own <- ENGINES[[.subset2(x, "estimator")]]
  if (match(part, names(own), 0L) > 0L) own[[part]] else ENGINE[[part]]
}

# Other packages that have a verb of the same name, see also compare.R.  Methods for generics of packages in Suggests stand in NAMESPACE as
# S3method(package::generic, class): R registers them when that package is loaded, before or after this one.

# ggplot2's pronoun for the columns of a plot's data.
utils::globalVariables(".data")

#' @rawNamespace S3method(bridgesampling::logml, evidence)
NULL

# Whichever of the two generics is found first, it serves the objects of both packages.
#' @exportS3Method
logml.default <- function(x, ...) {
  if (inherits(x, c("bridge", "bridge_list")) && requireNamespace("bridgesampling", quietly = TRUE))
    return(bridgesampling::logml(x, ...))
  refuse(x, "x", "a fit from `evidence()`")
}

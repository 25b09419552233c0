# Other packages with functions of the same name, see also R/call-compare.R. Methods for generics of
# packages in Suggests stand in NAMESPACE as S3method(package::generic, class): R registers them
# when that package is loaded, before or after this one.

# ggplot2's pronoun for the columns of a plot's data.
utils::globalVariables(".data")

#' @rawNamespace S3method(bridgesampling::logml, evidence)
NULL

#' @rawNamespace S3method(rstantools::log_lik, evidence)
NULL

# Either generic, of this package or of bridgesampling, works for the objects of both.
#' @exportS3Method
logml.default <- function(x, ...) {
  theirs <- their_generic("bridgesampling", "logml", x)
  if (is.null(theirs)) refuse(x, "x", "a fit from `evidence()`")
  theirs(x, ...)
}

# Is this process a child of mclapply() or the like?
is_forked_child <- function() {
  if (!"parallel" %in% loadedNamespaces() || .Platform$OS.type == "windows") return(FALSE)
  isTRUE(tryCatch(of_parallel("isChild")(), error = function(e) FALSE))
}

# LOGEVIDENCE_SIMD is for tests and for comparisons; see base/simd.h. LOGEVIDENCE_FORKS says that
# no library has used threads before this process was forked.
.onLoad <- function(libname, pkgname) {
  register_refusals()
  add_short_names(topenv())
  if (is_forked_child() && !nzchar(Sys.getenv("LOGEVIDENCE_FORKS"))) .Call(ffi_threads_none)
  simd <- .Call(ffi_simd)
  if (nzchar(simd$wish) && simd$wish != simd$used) {
    variants <- c("plain", "avx2", "avx512")
    reason <- if (simd$wish %in% variants) "is not supported by this processor"
    else paste("is none of", show_names(variants, 9))
    warning("LOGEVIDENCE_SIMD=", simd$wish, " ", reason, "; \"", simd$used, "\" is used.",
            call. = FALSE)
  }
}

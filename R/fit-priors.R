# The priors of a fit with the numbers that were used.

#' The priors of a fit
#'
#' The prior of each parameter with the numbers that were used, in the units of the columns as they
#' are. Priors that the user has not given take these numbers from the data: see [regression()].
#'
#' @param object A fit from [evidence()].
#' @param ... Must be empty.
#'
#' @details
#' `"intercept of an average row"` in the column `of` says that the prior is that of the intercept
#' of columns minus their means, and not that of the parameter `(Intercept)` of the columns as they
#' are.
#'
#' The function is also a method for the generic of package \pkg{rstantools}, which \pkg{rstanarm}
#' and \pkg{brms} share, and `get_priors()` of package \pkg{insight} has the same numbers.
#'
#' @return A data frame with a row for each parameter: `parameter`, `prior` (as it would be
#'   written), `distribution`, `location`, `scale` and `df` or shape (`shape`, NA if there is none),
#'   whether it is the `default`, and `of`. It prints as its first two columns. For models whose
#'   priors are not written parameter by parameter, such as [gaussian_mixture()], `parameter` and
#'   the numbers are `NA`, and `prior` has the sentences that [print()] of the model shows.
#'
#' @examples
#' fit <- evidence(regression(dist ~ speed), cars, seed = 1)
#' prior_summary(fit)
#' as.data.frame(prior_summary(fit))
#'
#' @concept default prior
#' @seealso [priors]; `plot(fit, "prior")` lays prior and posterior over one another.
#' @export
prior_summary <- function(object, ...) UseMethod("prior_summary")

#' @export
prior_summary.default <- function(object, ...) {
  theirs <- their_generic("rstantools", "prior_summary", object)
  if (is.null(theirs)) refuse(object, "object", "a fit from `evidence()`")
  theirs(object, ...)
}

#' @rdname prior_summary
#' @export
#' @rawNamespace S3method(rstantools::prior_summary, evidence)
prior_summary.evidence <- function(object, ...) {
  check_no_dots(...)
  check_parts(object)
  priors <- priors_of_fit(object)
  words <- as.character(describe(at_units_of(object))$prior)
  found <- if (length(priors)) prior_table(priors)
  else data.frame(parameter = NA_character_,
                  prior = if (length(words)) words else "that of the model's code",
                  distribution = NA_character_, location = NA_real_, scale = NA_real_,
                  shape = NA_real_, default = NA, of = "")
  structure(found, class = c("evidence_priors", "data.frame"))
}

prior_table <- function(priors) {
  number <- function(name) vapply(priors, function(one) as.double(one$prior[[name]]), 0)
  kind <- vapply(priors, function(one) one$prior$kind, "")
  shape <- number("shape")
  shape[!kind %in% c("student_t", "half_student", "inverse_gamma", "correlation")] <- NA
  data.frame(parameter = names(priors), prior = vapply(priors, function(one) format(one$prior), ""),
             distribution = kind, location = number("location"), scale = number("scale"),
             shape = shape, default = vapply(priors, `[[`, NA, "default"),
             of = vapply(priors, `[[`, "", "of"), row.names = NULL)
}

#' @export
print.evidence_priors <- function(x, ...) {
  if (!all(c("parameter", "prior", "default", "of") %in% names(x)))
    return(print.data.frame(x, ...))
  cat_wrapped("Priors, in the units of the columns as they are:")
  if (anyNA(x$parameter)) cat_wrapped(paste0("  ", x$prior), exdent = 4)
  else cat(paste0("  ", format(x$parameter), "  ", x$prior,
                  ifelse(nzchar(x$of), paste0("  (", x$of, ")"), ""), "\n"), sep = "")
  if (any(x$default, na.rm = TRUE))
    cat_wrapped(paste0(if (all(x$default)) "All" else paste("Those of", show_names(
      x$parameter[x$default])), " are defaults, in units of the data: see ?regression."))
  invisible(x)
}

#' @exportS3Method insight::get_priors
get_priors.evidence <- function(x, ...) {
  found <- prior_summary.evidence(x)
  data.frame(Parameter = found$parameter, Distribution = found$distribution,
             Location = found$location, Scale = found$scale, df = found$shape)
}

# More coefficients with priors of their own are only counted.
PRIORS_SHOWN <- 3

#' The priors of a fit as lines of at most `width` columns, or NULL
#' @noRd
prior_lines <- function(fit, width = 0.9 * getOption("width")) {
  priors <- priors_of_fit(fit)
  if (!length(priors)) return(lines_of_mixture(fit, width))
  texts <- vapply(priors, function(one) short_prior(one$prior), "")
  labels <- paste0(names(priors), ifelse(vapply(priors, function(one) nzchar(one$of), NA),
                                         " of an average row", ""))
  coefficients <- names(priors) %in% fit$design$covariates & names(priors) != INTERCEPT
  if (sum(coefficients) > 1 && length(unique(texts[coefficients])) == 1) {
    labels[coefficients] <- "coefficients"
    coefficients <- duplicated(labels) & coefficients
    texts <- texts[!coefficients]
    labels <- labels[!coefficients]
    coefficients <- rep(FALSE, length(labels))
  }
  others <- !coefficients & !startsWith(labels, INTERCEPT)
  hidden <- (coefficients & cumsum(coefficients) > PRIORS_SHOWN) |
    (others & cumsum(others) > PRIORS_SHOWN + 1)
  items <- paste(labels, "~", texts)[!hidden]
  end <- c(if (any(hidden)) paste(sum(hidden), "more: prior_summary()"),
           if (all(vapply(priors, `[[`, NA, "default"))) "(defaults, in units of the data)")
  in_lines(c(paste0(items, ifelse(seq_along(items) < length(items), ",", ""))[!is.na(items)], end),
           width, "priors: ")
}

# The lines of a mixture's default priors: what its columns have given.
lines_of_mixture <- function(fit, width) {
  model <- fit$model
  own <- Filter(function(name) is.null(model[[name]]), names(fit$design$prior_units))
  if (!length(own)) return(NULL)
  words <- vapply(own, function(name)
    paste(name, paste(format_each(signif(fit$design$prior_units[[name]], 3)), collapse = ", ")), "")
  in_lines(c(paste0(words, ifelse(seq_along(words) < length(words), ";", "")),
             "(defaults, in units of the data)"), width, "priors: ")
}

# Words that are not broken, in lines of at most `width` columns.
in_lines <- function(words, width, start) {
  lines <- paste0(start, words[1])
  for (word in words[-1]) {
    last <- length(lines)
    if (nchar(lines[last]) + nchar(word) + 1 > width) lines <- c(lines, paste0("    ", word))
    else lines[last] <- paste(lines[last], word)
  }
  lines
}

# Names of fits in comparisons: those given, variables in the call, or what differs between models.

#' Names of the arguments in `...`: those given, else the expressions in the call
#' @noRd
argument_names <- function(calls, given) {
  own <- vapply(seq_along(calls), function(i) argument_name(calls[[i]], paste("model", i)), "")
  if (is.null(given)) own else ifelse(nzchar(given), given, own)
}

# With do.call() an argument is the object itself, which must not be deparsed.
argument_name <- function(call, otherwise) {
  has_object <- is.object(call) || is.list(call) || is.call(call) &&
    any(vapply(as.list(call), is.object, NA))
  if (has_object) otherwise else shorten(deparse1(call), 30)
}

#' Names of the fits of a comparison
#'
#' Those given; else the variable in the call, as `line` or `fits[[1]]`; else, for the elements of a
#' list and for calls such as `evidence(...)`, a label that says how the models differ.
#' @param calls The expressions of the fits, or a list of NULL.
#' @param given Names of the arguments, or NULL.
#' @noRd
fit_names <- function(fits, calls, given) {
  unnamed <- if (is.null(given)) rep(TRUE, length(fits)) else !nzchar(given)
  names <- ifelse(unnamed, vapply(calls, variable_name, ""), given)
  open <- unnamed & (names == "" | names %in% names[duplicated(names)])
  if (!any(open)) return(names)
  labels <- model_labels(fits)
  if (!is.null(labels) && !any(labels[open] %in% names[!open])) names[open] <- labels[open]
  ifelse(names == "", paste("model", seq_along(names)), names)
}

# "" if the expression is not a variable or an element of one.
variable_name <- function(call) {
  element <- is.call(call) && as.character(call[[1]])[1] %in% c("[[", "$")
  if (is.name(call) || element) argument_name(call, "") else ""
}

#' A label for each fit, of those parts of its model and method that differ; NULL if these do not
#' tell the fits apart
#' @noRd
model_labels <- function(fits) {
  parts <- Map(label_parts, fits, different_constants(fits))
  parts <- lapply(stats::setNames(nm = unique(unlist(lapply(parts, names)))), function(name)
    vapply(parts, function(own) if (is.na(own[name])) "" else own[[name]], ""))
  if (!is.null(parts$formula)) parts$formula <- short_formulas(fits, parts$formula)
  # the priors of coefficients and intercept become one part, as the first may hold for both
  if (length(unique(parts$intercept)) > 1) {
    parts$prior <- gsub("^, |, $", "", paste(parts$prior, parts$intercept, sep = ", "))
    parts$intercept <- NULL
  }
  labels <- rep("", length(fits))
  for (part in parts) {
    longer <- paste0(labels, ifelse(nzchar(labels) & nzchar(part), ", ", ""), part)
    if (length(unique(longer)) > length(unique(labels))) labels <- longer
  }
  if (all(nzchar(labels)) && !anyDuplicated(labels)) labels
}

LABEL_MOST <- 60

#' The constants in the formulas of each fit, such as `k` of `ns(x, k)`, if they are not the same in
#' all fits
#'
#' Columns go before constants of the same name, so that there are none before the columns are known
#' (`design`).
#' @noRd
different_constants <- function(fits) {
  all <- lapply(fits, function(fit) {
    formulas <- rapply(unclass(fit$model)[names(fit$model) != "contract"], list, "formula",
                       how = "unlist")
    found <- unlist(lapply(unname(formulas), constants_of), FALSE)
    if (!length(found) || is.null(fit$design)) return(list())
    found[!duplicated(names(found)) & !names(found) %in% fit$design$named_columns]
  })
  differ <- Filter(function(name) length(unique(lapply(all, `[[`, name))) > 1,
                   unique(unlist(lapply(all, names))))
  lapply(all, function(own) own[names(own) %in% differ])
}

#' @param values Of constants, to be shown in formulas.
#' @noRd
label_parts <- function(fit, values = NULL) {
  model <- fit$model
  if (length(values))
    model <- rapply(unclass(model)[names(model) != "contract"], with_values, "formula",
                    how = "replace", values = values)
  own <- setdiff(names(model), c("name", "formula", "formulas", "family", "contract",
                                "units", "uncentred"))
  settings <- vapply(own, function(name) setting_label(name, model[[name]]), "")
  # `prior_sd` is the short form of `prior`, and is shown in its place
  if (!"prior" %in% own) names(settings)[own == "prior_sd"] <- "prior"
  if ("intercept" %in% own && is.null(model$intercept) && has_one_prior(model))
    settings[["intercept"]] <- "also of the intercept"
  found <- c(formula = if (!is.null(model$formula)) paste(
    c(deparse1(model$formula), show_further_formulas(model)), collapse = ", "),
  family = if (!is.null(model$family)) format(model$family), model = paste0(model$name, "()"),
  settings, parameters = count_of(ncol(fit$draws), "parameter"),
  method = deparse1(fit$method$call))
  vapply(found, shorten, "", 4 * LABEL_MOST)
}

# Have all coefficients the same prior, so that none is named?
has_one_prior <- function(model) {
  one <- if (is.null(model$prior)) model$prior_sd else model$prior
  length(one) == 1 && is.null(names(one)) && (is.numeric(one) || is_prior(one[[1]]))
}

setting_label <- function(name, value) {
  text <- if (is.numeric(value) || is.logical(value)) show_setting(value)
  else if (is_prior(value) && !has_units(value)) "default"
  else if (is_prior(value) || is_jzs(value)) format(value)
  else if (inherits(value, "formula")) deparse1(value)
  else if (is.list(value) && length(value) && all(vapply(value, is_prior, NA)))
    if (any(vapply(value, has_units, NA))) paste(show_priors(value), collapse = ", ")
    else "default"
  else if (is.list(value) && length(value) && all(vapply(value, inherits, NA, "formula")))
    paste(names(value), vapply(value, deparse1, ""), collapse = ", ")
  if (is.null(text)) "" else paste(name, "=", text)
}

# Formulas as labels: long ones are reduced to the terms that not all of them have.
short_formulas <- function(fits, texts) {
  if (max(nchar(texts)) <= LABEL_MOST) return(texts)
  terms <- lapply(fits, function(fit) attr(fit$design$terms, "term.labels"))
  common <- Reduce(intersect, terms)
  if (!length(common)) return(texts)
  short <- vapply(terms, function(own) paste(c("...", setdiff(own, common)), collapse = " + "), "")
  if (anyDuplicated(short)) texts else paste("~", short)
}

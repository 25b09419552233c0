# What a case may do: give a finite log evidence with a standard error, or say in a sentence of the
# package why not. Everything else is a finding.

#' Runs a case
#'
#' @param case A list: `call`, `objects`, and perhaps `by_r`, whether R's own errors and warnings
#'   are no findings.
#' @return A list: the `finding`, a list of `what`, `text` and `of` (the function), NULL if the
#' outcome is sound; the `outcome` in a word; what an error has `said`.
judged <- function(case) {
  force(case)
  foreign <- way <- NULL
  outcome <- "value"
  said <- ""
  finding <- tryCatch(
    withCallingHandlers(
      {
        value <- in_silence(eval(case$call, list2env(case$objects, parent = globalenv())))
        unsound <- unsound_value(value)
        shown <- in_silence(utils::capture.output(print(value)))
        unsound
      },
      error = function(e) way <<- way_to(sys.calls()),
      warning = function(w) {
        if (!inherits(w, "logevidence_warning") && is.null(foreign))
          foreign <<- finding("a warning that is not ours", w, way_to(sys.calls()))
        invokeRestart("muffleWarning")
      },
      message = function(m) invokeRestart("muffleMessage")
    ),
    error = function(e) {
      outcome <<- "error"
      said <<- conditionMessage(e)
      unsound_error(e, way)
    }
  )
  if (is.null(finding)) finding <- foreign
  if (isTRUE(case$by_r) && isTRUE(finding$what %in% OF_R)) finding <- NULL
  list(finding = finding, outcome = if (is.null(finding)) outcome else "finding", said = said)
}

OF_R <- c("an error that is not ours", "a warning that is not ours")

in_silence <- function(code) {
  utils::capture.output(value <- withVisible(code)$value)
  value
}

finding <- function(what, condition, way)
  list(what = what, text = conditionMessage(condition), of = way)

# The package's functions on the way to a condition, the last ones.
way_to <- function(calls) {
  names <- unlist(lapply(calls, function(call) if (is.name(call[[1]])) as.character(call[[1]])))
  own <- intersect(names, ls(asNamespace("logevidence"), all.names = TRUE))
  paste(utils::tail(own, 3), collapse = " > ")
}

# R's own words when memory ends. Cases ask for more than there is.
NO_MEMORY <- "cannot allocate (vector|memory)|memory exhausted|result would be too long"

unsound_error <- function(e, way) {
  said <- conditionMessage(e)
  if (inherits(e, "logevidence_error")) {
    if (!grepl("[.?!)]\"?$", said)) return(finding("a sentence without an end", e, way))
    if (grepl("^(Error|argument )", said)) return(finding("not a sentence of ours", e, way))
    return(NULL)
  }
  # what the case's own functions say, with their names before it; what stop("told to") in a formula
  # and sum() as `encode` say; and what R says of calls that a function's head refuses
  of_function <- sub("^`[a-z_]+` stopped: ", "", said)
  by_sum <- "invalid 'type' (list) of argument"
  if (grepl(NO_MEMORY, said) || of_function == "told to" ||
      grepl("^unused argument", of_function) || of_function == by_sum && of_function != said ||
      said == by_sum && grepl("encode > after_rows$", way)) return(NULL)
  finding("an error that is not ours", e, way)
}

unsound_value <- function(value) {
  if (inherits(value, "evidence")) return(unsound_fit(value))
  if (inherits(value, "change_alarm") && !isTRUE(is.finite(value$log_evidence)))
    return(list(what = "an unsound alarm", text = "no finite log evidence", of = NULL))
  if (inherits(value, "model_comparison"))
    for (fit in attr(value, "fits")) if (!is.null(found <- unsound_fit(fit))) return(found)
  NULL
}

unsound_fit <- function(fit) {
  number <- function(x) is.numeric(x) && length(x) == 1
  bad <- function(text) list(what = "an unsound fit", text = text, of = NULL)
  if (!number(fit$log_evidence)) return(bad("`log_evidence` is not one number"))
  if (!number(fit$se)) return(bad("`se` is not one number"))
  # approximations have no standard error
  kind <- fit$verdict$kind[startsWith(fit$verdict$says, "reported")]
  if (is.nan(fit$se)) return(bad("`se` is NaN"))
  if (is.na(fit$se) && !any(kind %in% c("approximate", "lower bound")))
    return(bad("`se` is NA, and the estimate is no approximation"))
  if (!is.finite(fit$log_evidence) && !length(fit$failed))
    return(bad(paste("a log evidence of", fit$log_evidence, "that has not failed")))
  if (anyNA(fit$log_weights)) return(bad("missing log weights"))
  if (anyNA(fit$draws)) return(bad("missing draws"))
  NULL
}

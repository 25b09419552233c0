# From formulas, matrices and lists to columns of numbers, for all models: what a formula may have,
# which columns it reads, its model matrix, and rows for C. encode() (R/spec-encode.R) uses them.

#' @export
print.evidence_model <- function(x, ...) {
  lines <- describe(x)
  cat(lines[[1]], "\n", sep = "")
  for (label in names(lines)[-1]) {
    text <- lines[[label]]
    labels <- c(paste0(label, ":"), rep("", length(text) - 1))
    cat(paste0("  ", format(labels, width = 12), text, "\n"), sep = "")
  }
  for (note in power_note(x)) cat_wrapped(paste0("Note: ", note), exdent = 2)
  invisible(x)
}

# "1", or for several values "1, 2, 3" and at most six of them; names are shown.
show_setting <- function(x) {
  values <- format_each(x)
  if (!is.null(names(x))) values <- paste(names(x), values)
  if (length(values) > 6) values <- c(values[1:6], "...")
  if (length(values) > 1) paste0("(", paste(values, collapse = ", "), ")") else values
}

# Formulas ----------------------------------------------------------------------------------------

#' A formula of the right number of sides, or NULL
#' @noRd
check_formula <- function(formula, sides) {
  rule <- if (sides == 1) "a one-sided formula, such as `~ a + b`"
  else "a formula with a response, such as `y ~ x`"
  require_value(formula, "formula", rule)
  if (is.null(formula)) return(NULL)
  if (!inherits(formula, "formula") || length(formula) != sides + 1)
    refuse(formula, "formula", rule)
  if (is.null(formula[[2]]))
    fail("`formula` must have a name or an expression before `~` or after it, not NULL: `",
         deparse1(formula), "`.")
  # `d$x` would stay the same for other data
  picked <- intersect(c("$", "[[", "@"), all.names(formula))
  if (length(picked))
    fail("`formula` must name columns of `data`, as in `y ~ x`, without `", picked[1], "`: not `",
         shorten(deparse1(formula), 60), "`.")
  if (sides == 1 && formula_lag(formula) > 0)
    fail("`formula` must have no lags(), which are for regressions, not `", deparse1(formula),
         "`.")
  with_constants(formula)
}

MOST_CONSTANTS <- 20 # numbers of a constant

#' A formula whose constants keep the values that they have now
#'
#' Else `k` of `ns(x, k)` would have its last value in all models that were made in a loop, and
#' predictions would be those of other columns. A column of the data of the same name is used
#' before a constant.
#' @noRd
with_constants <- function(formula) {
  if (is_plain(formula)) return(formula)
  values <- Filter(Negate(is.null), lapply(stats::setNames(nm = all.vars(formula)), constant_at,
                                           environment(formula)))
  if (length(values))
    environment(formula) <- structure(list2env(values, parent = environment(formula)),
                                      constants = names(values))
  formula
}

# Arguments of functions may be missing, or errors.
constant_at <- function(name, environment) or_null({
  value <- get0(name, environment)
  if (is.atomic(value) && is.null(dim(value)) && length(value) <= MOST_CONSTANTS &&
      !exists(name, baseenv(), inherits = FALSE)) value
})

#' The constants of a formula, those that with_constants() has kept
#' @noRd
constants_of <- function(formula) {
  kept <- as.character(attr(environment(formula), "constants"))
  mget(kept[kept %in% all.vars(formula)], environment(formula))
}

#' A formula with values in the place of some constants
#' @noRd
with_values <- function(formula, values) {
  # 3 and not 3L
  values <- lapply(values, function(value)
    if (is.integer(value) && length(value) == 1) as.double(value) else value)
  structure(eval(call("substitute", formula, values)), class = "formula")
}

#' The terms of a formula, with `.` replaced by columns of `data`
#' @noRd
formula_terms <- function(formula, data) {
  if (is_plain(formula)) return(stats::terms(formula))
  # The second call drops a column that was removed, as in `. - b`, which may be absent or of any
  # type. R warns of `.` beside names that are no columns.
  terms <- tryCatch(suppressWarnings(
    stats::terms(stats::formula(stats::terms(formula, data = data, simplify = TRUE)))
  ), error = function(e)
    fail("`formula` must be one that R can read, not `", deparse1(formula), "` (",
         conditionMessage(e), ")."))
  refuse_groups(terms, formula)
  terms
}

#' What to write for a power of a column, which is the column itself in a formula of R; or NULL
#' @noRd
power_note <- function(model) {
  lost <- unique(unlist(lapply(model_formulas(model), function(formula)
    if (inherits(formula, "formula")) lost_powers(formula[[length(formula)]]))))
  if (length(lost))
    paste0("In a formula ", paste0("`", lost, "`", collapse = ", "), if (length(lost) == 1)
      " is the same as the term without its power" else " are the same as terms without powers",
      ". For a power write ", paste0("`I(", lost, ")`", collapse = ", "), ".")
}

# `(a + b)^2` has the products of its terms; of one term there are none.
lost_powers <- function(e) {
  if (!is.call(e)) return(NULL)
  operator <- as.character(e[[1]])[1]
  if (operator == "^") {
    base <- e[[2]]
    while (is_in_brackets(base)) base <- base[[2]]
    several <- is.call(base) && as.character(base[[1]])[1] %in% FORMULA_OPERATORS
    return(if (!several) deparse1(e))
  }
  if (operator %in% c(FORMULA_OPERATORS, "(", "|", "||"))
    unlist(lapply(as.list(e)[-1], lost_powers))
}

FORMULA_OPERATORS <- c("+", "-", "*", ":", "/", "%in%", "^")
is_in_brackets <- function(e) is.call(e) && identical(e[[1]], quote(`(`))

# Is it a name on a sum of other names, each once? Then it is as terms() would simplify it.
is_plain <- function(formula) {
  formula <- unclass(formula)
  if (length(formula) != 3 || !is.name(formula[[2]])) return(FALSE)
  used <- as.character(formula[[2]])
  part <- formula[[3]]
  while (is.call(part)) {
    if (length(part) != 3 || !identical(part[[1]], quote(`+`)) || !is.name(part[[3]])) return(FALSE)
    used <- c(used, as.character(part[[3]]))
    part <- part[[2]]
  }
  if (!is.name(part)) return(FALSE)
  used <- c(used, as.character(part))
  !anyDuplicated(used) && !any(used %in% c(".", "+", "~"))
}

# model.matrix() would take `1 | group` for the logical operator.
refuse_groups <- function(terms, formula) {
  is_group <- function(v)
    is.call(v) && (as.character(v[[1]])[1] %in% c("|", "||") || identical(v[[1]], quote(`(`)) &&
                   is_group(v[[2]]))
  if (any(vapply(as.list(attr(terms, "variables"))[-1], is_group, NA)))
    fail("Group-level terms are for regression() and linear_regression(): `formula` must have no ",
         "`|`, not `", deparse1(formula), "`.")
}

# A formula without `.` can be checked before there are data.
check_has_terms <- function(formula, ...) {
  if (is.null(formula) || is_plain(formula) || "." %in% all.vars(formula)) return(invisible())
  require_terms(formula_terms(formula, NULL), formula, ...)
}

#' @param written The formula as the user wrote it, and in which argument.
#' @param advice What to do without covariates and intercept.
#' @noRd
require_terms <- function(terms, formula, written = formula, argument = "formula", advice = "") {
  if (attr(terms, "intercept") == 0 && length(attr(terms, "term.labels")) == 0)
    fail("`", argument, "` must have a covariate or an intercept, not `", deparse1(written), "`.",
         advice)
  response <- attr(terms, "response")
  factors <- attr(terms, "factors")
  if (response > 0 && length(factors) && any(factors[response, ] > 0))
    fail("`", argument, "` must not have the response `", rownames(factors)[response],
         "` among its covariates, not `", deparse1(written), "`.")
}

refuse_offset <- function(terms, model = NULL) {
  if (!is.null(attr(terms, "offset")))
    fail("`formula` must have no offset", if (!is.null(model)) paste0(" in ", model, "()"),
         ", not `", deparse1(stats::formula(terms)), "`.")
}

#' The columns of `data` that a formula reads
#'
#' A name that is not a column may be a constant in the formula's environment, such as `k` in
#' `poly(x, k)`, but not a whole variable, because later data would not include it.
#' @noRd
formula_columns <- function(terms, data, argument = "data") {
  variables <- attr(terms, "variables")
  used <- all.vars(variables)
  here <- !is.na(match(used, attr(data, "names")))
  constant <- function(name) {
    value <- get0(name, envir = environment(terms))
    alone <- unlist(lapply(as.list(variables)[-1], function(v) if (is.name(v)) as.character(v)))
    !is.null(value) && !name %in% alone && (length(value) == 1 || length(value) != nrow(data))
  }
  for (name in used[!here]) if (!constant(name)) refuse_missing_column(name, data, argument)
  used[here]
}

#' The names in all formulas of a model: the columns that it may use. NULL if it uses all.
#' @noRd
columns_read <- function(model) {
  names <- unique(rapply(unclass(model), all.vars, "formula", how = "unlist"))
  if (length(names) && !"." %in% names) unname(names)
}

columns_read_by <- function(models) {
  read <- lapply(models, columns_read)
  if (!any(vapply(read, is.null, NA))) unique(unlist(read))
}

# Data frames and matrices ------------------------------------------------------------------------

#' The model frame, or an error with the reason why there is none
#' @noRd
build_frame <- function(terms, data, columns, argument = "data") {
  frame <- frame_of_numbers(terms, data)
  if (!is.null(frame)) return(frame)
  frame <- tryCatch(
    # Warnings, as of log(-1), are suppressed, because the check of the result names the row.
    suppressWarnings(stats::model.frame(terms, data, na.action = stats::na.pass,
                                        drop.unused.levels = FALSE)),
    error = function(e) {
      check_finite_columns(data[columns], argument)
      # A missing column whose name is that of a function, as in log(df), was taken for a constant.
      absent <- setdiff(all.vars(attr(terms, "variables")), columns)
      absent <- Filter(function(name) is.function(get0(name, environment(terms))), absent)
      if (length(absent)) refuse_missing_column(absent[1], data, argument)
      refuse_terms_of_others(terms)
      fail("`", argument, "` must be something `formula` can be computed from, not so (",
           sub("\\.?\n*$", "", conditionMessage(e)), ").")
    }
  )
  check_frame(frame, data, argument)
  frame
}

# Terms of formulas of brms and mgcv that are no functions, and what to write instead.
TERMS_OF_OTHERS <- c(
  stats::setNames(rep("smooth terms are not built: give columns of a basis, as splines::ns() does",
                      5), c("s", "te", "ti", "t2", "gp")),
  mvbind = "a model has one response: fit one model for each",
  mo = "monotonic effects are not built: give the factor itself or its number",
  cs = "effects that differ between categories are those of `softmax_regression()`",
  mm = "groups of several members are not built",
  me = "covariates with errors are not built", mi = "missing values are not imputed")

refuse_terms_of_others <- function(terms) {
  used <- setdiff(all.names(attr(terms, "variables")), all.vars(attr(terms, "variables")))
  used <- intersect(used, names(TERMS_OF_OTHERS))
  used <- Filter(function(name) is.null(get0(name, environment(terms), mode = "function")), used)
  if (length(used))
    fail("`formula` must have no term ", used[1], "(): ", TERMS_OF_OTHERS[[used[1]]], ".")
}

#' The frame that model.frame() makes, if all variables are plain columns of numbers, or NULL
#' @noRd
frame_of_numbers <- function(terms, data) {
  names <- plain_variables(terms)
  if (!length(names) || !is.null(attr(terms, "offset"))) return(NULL)
  columns <- .subset(data, names)
  n <- rows_of(data)
  for (x in columns)
    if (!is.numeric(x) || is.object(x) || !is.null(attributes(x)) || length(x) != n)
      return(NULL)
  attr(terms, "predvars") <- attr(terms, "variables")
  attr(terms, "dataClasses") <- stats::setNames(rep("numeric", length(names)), names)
  class(columns) <- "data.frame"
  attr(columns, "row.names") <- attr(data, "row.names")
  attr(columns, "terms") <- terms
  columns
}

# Variables that do not come from columns, as rep(1, 2), have lengths of their own, whatever the row
# names of the frame say.
check_frame <- function(frame, data, argument) {
  n <- vapply(.subset(frame, seq_along(frame)), NROW, 0L)
  other <- which(n != nrow(data))
  if (length(other))
    fail("`formula` must have variables with a value for each row of `", argument, "` (",
         nrow(data), "), not `", names(frame)[other[1]], "` with ", n[other[1]], ".")
  for (name in names(frame)[attr(attr(frame, "terms"), "offset")])
    if (!is_plain_numeric(frame[[name]]) || NCOL(frame[[name]]) != 1)
      fail("`", argument, "` must have numbers for an offset, not `", name, "` of type ",
           show_kind(frame[[name]]), ".")
}

#' Refuse columns that cannot be covariates
#' @noRd
check_covariates <- function(frame, argument = "data") {
  for (name in names(frame)) {
    kind <- column_kind(frame[[name]])
    if (kind == "numeric") next
    if (!(kind %in% c("factor", "logical") || startsWith(kind, "numeric")))
      fail("`", argument, "` must have numeric, logical, character or factor covariates, not `",
           name, "` of type ", kind, ".", if (kind %in% c("Date", "date-time", "difftime"))
             paste0(" Its unit decides what a prior means: write `as.numeric(", name, ")` in the ",
                    "formula, or give a column in years, days or hours from a date of your ",
                    "choice."))
    if (NCOL(frame[[name]]) == 0)
      fail("`", argument, "` must have covariates with at least one column, not `", name,
           "` with none.")
    if (kind == "factor") {
      labels <- levels_of_column(frame[[name]])
      if (length(labels) < 2)
        fail("`", argument, "` must have at least two levels in the factor `", name, "`, not ",
             if (length(labels)) paste0("only ", show_text(labels)) else "none", ".")
    }
  }
}

#' A numeric matrix with column names and rows, from a matrix or a vector
#' @noRd
as_numeric_matrix <- function(x, argument, stem = "x") {
  columns <- numeric_columns(x, argument, stem)
  wanted <- list(NULL, columns$names)
  if (identical(dimnames(columns$x), wanted))
    columns$x else matrix(columns$x, nrow(columns$x), dimnames = wanted)
}

# Regressions: covariates and a response ----------------------------------------------------------

#' Covariates, response and offset, from a formula and a data frame or from `list(x =, y =)`
#'
#' @return A list: `x` (a matrix with a row per observation, perhaps with infinite values), the
#' `argument` that it comes from, `y` (as given by the user), `offset` and `design`.
#' @noRd
regression_input <- function(model, data) {
  if (is.null(model$formula)) return(input_from_list(data))
  improper <- is_improper(model)
  input_from_formula(model$formula, data, empty = improper, lag = model_lag(model), drop = improper)
}

regression_new <- function(design, newdata, response, argument) {
  if (is.null(design$terms)) new_from_list(design, newdata, response, argument)
  else new_from_formula(design, newdata, response, argument)
}

# `empty`: a model without coefficients has a meaning, as the noise is a parameter. `drop`: levels
# without rows are left out.
input_from_formula <- function(formula, data, empty = FALSE, lag = 0, drop = FALSE) {
  data <- as_frame(data)
  terms <- formula_terms(formula, data)
  if (!empty) require_terms(terms, formula)
  columns <- formula_columns(terms, data)
  frame <- without_first(build_frame(terms, data, columns), lag, "data")
  terms <- attr(frame, "terms")
  covariates <- frame_covariates(frame, terms)
  check_finite_columns(frame)
  if (length(frame) && column_kind(frame[[1]]) == "character matrix")
    fail("`data` must have a response of numbers or one column of classes, not the character ",
         "matrix `", names(frame)[1], "`.")
  kinds <- vapply(.subset(frame, covariates), column_kind, "")
  factors <- covariates[kinds == "factor"]
  unused <- unused_levels(frame, factors)
  if (drop) for (name in names(unused)) frame[[name]] <- droplevels(frame[[name]])
  check_covariates(.subset(frame, covariates))
  check_text_covariates(frame, factors, names(data))
  frame <- text_as_factors(frame, factors)
  x <- frame_matrix(terms, frame)
  contrasts <- attr(x, "contrasts")
  columns_of <- kinds_of_columns(x, terms, kinds)
  covariates_named <- make.unique(as.character(colnames(x)))
  list(
    x = plain_matrix(x, covariates_named),
    paired = paired_columns(x, terms, data, attr(x, "assign")),
    argument = "data",
    y = frame[[1]],
    offset = frame_offset(frame),
    design = list(
      terms = terms,
      columns = columns,
      lag = lag,
      carried = columns,
      carry = carry_of(data, columns, lag),
      kinds = kinds,
      categorical = columns_of$categorical,
      levelled = columns_of$levelled,
      levels_of = frame_levels(.subset(frame, factors)),
      contrasts = contrasts,
      covariates = covariates_named,
      response = names(frame)[1],
      unused = unused_part(unused, drop, nrow(frame))
    )
  )
}

#' The model matrix; for plain numeric columns without row names, which would take more memory than
#' the numbers
#' @noRd
frame_matrix <- function(terms, frame, ...) {
  labels <- attr(terms, "term.labels")
  columns <- .subset(frame, labels)
  plain <- length(labels) > 0
  # NULL: a term of several variables
  for (x in columns) plain <- plain && is.numeric(x) && is.null(dim(x)) && !is.object(x)
  if (!plain) {
    check_few_coefficients(terms, frame)
    return(stats::model.matrix(terms, frame, ...))
  }
  intercept <- attr(terms, "intercept")
  x <- matrix(1, rows_of(frame), length(labels) + intercept,
              dimnames = list(NULL, c(if (intercept) "(Intercept)", labels)))
  for (j in seq_along(labels)) x[, j + intercept] <- columns[[j]]
  x
}

# Their covariance alone would take 3 GB.
COEFFICIENTS_MOST <- 20000

# Before a model matrix is made that no memory has room for.
check_few_coefficients <- function(terms, frame) {
  in_term <- attr(terms, "factors")
  if (length(in_term) == 0) return(invisible())
  levels <- vapply(.subset(frame, rownames(in_term)), function(x)
    if (is.factor(x)) max(1, nlevels(x) - 1) else if (is.matrix(x)) ncol(x) else 1, 1)
  coefficients <- sum(apply(in_term > 0, 2, function(use) prod(levels[use])))
  if (coefficients <= COEFFICIENTS_MOST) return(invisible())
  largest <- rownames(in_term)[which.max(levels)]
  fail("`formula` must have at most ", count(COEFFICIENTS_MOST), " coefficients, not ",
       count(coefficients), ", most of them for the levels of `", largest, "`. regression() takes ",
       "very many groups as group-level effects: `(1 | ", largest, ")`.")
}

# Which columns of the model matrix come from terms of factors and logical covariates only
# (`categorical`), and which from terms with such a covariate (`levelled`)? NULL if all are numbers.
kinds_of_columns <- function(x, terms, kinds) {
  term <- attr(x, "assign")
  in_term <- attr(terms, "factors")
  if (is.null(term) || length(in_term) == 0) return(NULL)
  number <- !(kinds[rownames(in_term)] %in% c("factor", "logical"))
  count <- function(which) c(0, colSums(in_term[which, , drop = FALSE] > 0))[term + 1]
  list(categorical = count(number) == 0 & term > 0, levelled = count(!number) > 0)
}

new_from_formula <- function(design, newdata, response, argument) {
  frame <- new_frame(design, newdata, response, argument)
  x <- frame_matrix(attr(frame, "terms"), frame, contrasts.arg = design$contrasts)
  list(
    x = plain_matrix(x, design$covariates),
    argument = argument,
    y = if (response) frame[[1]],
    offset = frame_offset(frame)
  )
}

#' The model frame of later data, with the kinds and levels of the first
#' @noRd
new_frame <- function(design, newdata, response, argument) {
  newdata <- as_frame(newdata, argument)
  terms <- if (response) design$terms else stats::delete.response(design$terms)
  needed <- intersect(design$columns, all.vars(attr(terms, "variables")))
  for (name in setdiff(needed, names(newdata))) refuse_missing_column(name, newdata, argument)
  newdata <- with_carry(newdata, design$carry, needed, argument)
  frame <- without_first(build_frame(terms, newdata, needed, argument), design$lag, argument)
  check_finite_columns(frame, argument)
  check_same_kinds(frame, design$kinds, argument)
  for (name in names(design$levels_of))
    frame[[name]] <- match_levels(frame[[name]], design$levels_of[[name]], name, argument)
  frame
}

# The variables on the right-hand side, without offsets.
frame_covariates <- function(frame, terms) {
  attr(frame, "names")[-c(attr(terms, "response"), attr(terms, "offset"))]
}

plain_matrix <- function(x, names) {
  # without changes there is no copy
  if (!is.null(attr(x, "assign"))) attr(x, "assign") <- attr(x, "contrasts") <- NULL
  if (!identical(dimnames(x), list(NULL, names))) dimnames(x) <- list(NULL, names)
  x
}

frame_offset <- function(frame) {
  offset <- stats::model.offset(frame)
  if (!is.null(offset)) as.double(offset)
}

# Levels without rows are kept, because rows may come later. With a proper prior, a coefficient
# without data does not change the evidence. With another one, as jzs(), they are left out.
frame_levels <- function(columns) {
  factors <- columns[vapply(columns, column_kind, "") == "factor"]
  lapply(factors, function(x) list(levels = levels_of_column(x), ordered = is.ordered(x)))
}

#' The levels of factors that no row has, by factor
#' @noRd
unused_levels <- function(frame, columns) {
  if (!length(columns)) return(NULL)
  factors <- columns[vapply(.subset(frame, columns), is.factor, NA)]
  found <- lapply(stats::setNames(nm = factors), function(name) {
    x <- frame[[name]]
    levels(x)[tabulate(x, nlevels(x)) == 0]
  })
  found[lengths(found) > 0]
}

unused_part <- function(levels, left_out, n)
  if (length(levels)) list(levels = levels, left_out = left_out, n = n)

# Said of a fit to just these rows: later rows may have had such levels.
unused_note <- function(fit) {
  designs <- c(list(fit$design), fit$design$further, fit$design$predictors)
  unused <- Filter(function(part) identical(as.double(part$n), as.double(fit$n)),
                   lapply(unname(designs), `[[`, "unused"))
  if (!length(unused)) return(NULL)
  levels <- unlist(lapply(unused, `[[`, "levels"), recursive = FALSE)
  each <- vapply(unique(names(levels)), function(name)
    paste0("the level", if (length(levels[[name]]) > 1) "s", " ",
           show_levels(levels[[name]]), " of `", name, "`"), "")
  paste0("No row has ", paste(each, collapse = " or "), if (unused[[1]]$left_out)
    ", left out." else paste0(". Levels without rows keep their coefficients, as rows may come ",
                              "later; droplevels() leaves them out."))
}

INTERCEPT <- "(Intercept)"

input_from_list <- function(data) {
  check_list(data, "data", TRUE)
  covariates <- shaped_columns(list_covariates(data$x), "data$x")
  own_intercept <- INTERCEPT %in% covariates$names
  check_same_length(data, covariates$x, "data")
  list(
    x = covariates$x,
    argument = "data$x",
    y = data$y,
    offset = NULL,
    design = list(
      columns = covariates$names,
      named = !is.null(colnames(data$x)),
      covariates = c(if (!own_intercept) INTERCEPT, covariates$names),
      response = "y"
    )
  )
}

new_from_list <- function(design, newdata, response, argument) {
  check_list(newdata, argument, response)
  covariates <- shaped_columns(list_covariates(newdata$x), paste0(argument, "$x"))
  x <- covariates$x
  if (ncol(x) != length(design$columns))
    fail("`", argument, "$x` must have ", length(design$columns),
         " columns as in the first data, not ", ncol(x), ".")
  if (design$named && !is.null(colnames(newdata$x))) {
    absent <- setdiff(design$columns, covariates$names)
    if (length(absent)) refuse_missing_column(absent[1], newdata$x, paste0(argument, "$x"))
    order <- match(design$columns, covariates$names)
    if (is.unsorted(order)) x <- x[, order, drop = FALSE]
  }
  if (response) check_same_length(newdata, x, argument)
  list(x = x, argument = paste0(argument, "$x"), y = if (response) newdata$y, offset = NULL)
}

check_list <- function(data, argument, response) {
  if (is.data.frame(data) || is.matrix(data))
    fail("`formula` must be given when `", argument, "` is ", show_value(data), ", not NULL.")
  rule <- if (response) "a list of `x` and `y` when the model has no formula" else
    "a list with `x` when the model has no formula"
  if (!is.list(data) || is.object(data)) refuse(data, argument, rule)
  for (part in c("x", if (response) "y")) if (is.null(data[[part]]))
    fail("`", argument, "` must be ", rule, ", not one without `", part, "`.")
  extra <- setdiff(names(data), c("x", "y"))
  if (length(extra)) fail("`", argument, "` must be ", rule, ", not one with `", extra[1], "` too.")
}

# A data frame of numbers is accepted as a matrix.
list_covariates <- function(x) {
  if (is.data.frame(x) && length(x) && all(vapply(x, column_kind, "") == "numeric"))
    as.matrix(x) else x
}

check_same_length <- function(data, x, argument) {
  if (NROW(data$y) != nrow(x))
    fail("`", argument, "$y` must have a value for each row of `", argument, "$x` (", nrow(x),
         "), not ", NROW(data$y), ".")
}

#' The columns of a regression whose formula only names numeric columns, so that they are the
#' covariates and the response as they stand (`plain` in R/spec-contract.R); else NULL
#' @noRd
plain_regression <- function(model, design) {
  terms <- design$terms
  if (length(design$further)) return()
  if (is.null(terms) || !all(c(design$kinds, attr(terms, "order")) %in% c("numeric", 1))) return()
  variables <- plain_variables(terms)
  intercept <- attr(terms, "intercept") == 1
  covariates <- variables[-1]
  if (is.null(variables) || attr(terms, "response") != 1 || !is.null(attr(terms, "offset")) ||
      !identical(c(if (intercept) INTERCEPT, covariates), design$covariates)) return()
  list(columns = c(covariates, variables[1]), intercept = intercept,
       names = c(design$covariates, design$response),
       scaling = standardised_rows(design$scaling))
}

# The names of the variables of a formula, NULL if one of them is not only a name.
plain_variables <- function(terms) {
  variables <- as.list(attr(terms, "variables"))[-1]
  if (all(vapply(variables, is.name, NA))) as.character(variables)
}

#' Rows for C, with an observation in each column: an intercept first if `x` has none, the
#' covariates, and the response last (for a factor its codes, from zero)
#'
#' Covariates are checked here, because this step reads them anyway. Products of finite columns may
#' overflow, too.
#' @noRd
regression_rows <- function(input, y, design, binding = AS_GIVEN) {
  x <- input$x
  rows <- bind_rows(x, c(design$covariates, design$response), binding,
                    if (is.factor(y)) y else as.double(y),
                    intercept = ncol(x) < length(design$covariates),
                    scalings = list(standardised_rows(design$scaling)))
  if (is.null(rows)) check_finite_matrix(x, input$argument, utils::tail(design$covariates, ncol(x)))
  rows
}

#' Which rows of a matrix for C are standardised, for bind_rows()
#'
#' @param scaling From column_scaling().
#' @param before The number of rows before the first covariate.
#' @noRd
standardised_rows <- function(scaling, before = 0) {
  use <- which(scaling$centre != 0 | scaling$scale != 1)
  if (length(use)) list(at = as.integer(before + use), centre = unname(scaling$centre[use]),
                        scale = unname(scaling$scale[use]))
}

#' Standardises rows of a new matrix in place
#'
#' @param scalings A list of what standardised_rows() gave.
#' @param ones The row from which centres are taken, if it has other numbers than ones.
#' @noRd
standardise <- function(rows, scalings, threads = 1, ones = NULL) {
  part <- function(name) unlist(lapply(scalings, `[[`, name), use.names = FALSE)
  at <- part("at")
  if (!length(at)) return(rows)
  if (is.null(ones))
    return(.Call(ffi_standardise, rows, at, part("centre"), part("scale"), threads))
  if (!is.na(ones)) rows[at, ] <- rows[at, ] - outer(part("centre"), rows[ones, ])
  rows[at, ] <- rows[at, ] / part("scale")
  rows
}

#' @param scalings A list of what standardised_rows() gave.
#' @return The rows, or NULL if `x` has values that are not finite.
#' @noRd
bind_rows <- function(x, names, binding = AS_GIVEN, y = NULL, intercept = FALSE,
                      scalings = NULL) {
  if (!is.double(x)) storage.mode(x) <- "double"
  rows <- .Call(ffi_bind_rows, x, y, intercept, binding$threads, binding$seed)
  if (is.null(rows)) return(NULL)
  rows <- standardise(rows, scalings, binding$threads)
  dimnames(rows) <- list(names, NULL)
  rows
}

#' A response as plain finite numbers
#' @noRd
numeric_response <- function(y, name, argument = "data") {
  if (!is_plain_numeric(y) || NCOL(y) != 1 || length(dim(y)) > 2)
    fail("`", argument, "` must have a numeric response, not `", name, "` of type ", show_kind(y),
         ".")
  check_finite_columns(stats::setNames(list(as.vector(y)), name), argument)
  as.double(y)
}

# Simulated responses in the user's data ----------------------------------------------------------

INVERSES <- list(log = exp, log2 = function(y) 2^y, log10 = function(y) 10^y, log1p = expm1)

#' The column of a response, and the inverse of its transformation
#' @noRd
response_column <- function(formula) {
  left <- formula[[2]]
  if (is.name(left)) return(list(name = as.character(left), invert = identity))
  undo <- if (is.call(left) && length(left) == 2 &&
              is.name(left[[2]])) INVERSES[[deparse1(left[[1]])]]
  if (is.null(undo))
    fail("`formula` must have a column, or the logarithm of one, on its left to simulate data, ",
         "not `",
         deparse1(left), "`.")
  list(name = as.character(left[[2]]), invert = undo)
}

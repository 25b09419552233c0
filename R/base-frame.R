# Data frames: the kinds of their columns, the levels of text, and what is refused.

#' A plain data frame with at least one row and distinct names, from a data frame or a numeric
#' matrix
#' @noRd
as_frame <- function(data, argument = "data") {
  if (is.matrix(data) && !is.object(data)) {
    if (!is.numeric(data)) refuse(data, argument, "a numeric matrix or a data frame")
    if (is.null(colnames(data)))
      fail("`", argument,
           "` must have column names when the model has a formula, not a matrix without.")
    check_distinct(colnames(data), argument)
    rownames(data) <- NULL
  } else if (!is.data.frame(data)) {
    refuse(data, argument,
           "a data frame, or a matrix with column names, when the model has a formula")
  }
  check_distinct(attr(data, "names"), argument)
  if (!identical(class(data), "data.frame")) data <- as.data.frame(data)
  check_some_rows(rows_of(data), argument)
  data
}

#' A data frame of plain columns, without the time that data.frame() takes for its checks
#'
#' @param columns A named list of vectors, which are recycled.
#' @noRd
plain_frame <- function(columns, n) {
  for (name in names(columns)[lengths(columns) != n]) columns[[name]] <- rep_len(columns[[name]], n)
  class(columns) <- "data.frame"
  attr(columns, "row.names") <- .set_row_names(n)
  columns
}

# nrow() of a data frame, without the search for a method of dim(). Likewise attr(frame, "names")
# is names(frame), and t.default() is t(), where each fit needs them.
rows_of <- function(frame) .row_names_info(frame, 2L)

check_some_rows <- function(n, argument = "data") {
  if (n == 0) fail("`", argument, "` must have at least one row, not 0.")
}

check_distinct <- function(names, argument = "data") {
  if (anyNA(names) || any(names == ""))
    fail("`", argument, "` must have a name for every column, not an empty one.")
  twice <- anyDuplicated(names)
  if (twice)
    fail("`", argument, "` must have distinct column names, not `", names[twice], "` twice.")
}

refuse_missing_column <- function(name, data, argument) {
  fail("`", argument, "` must have the column `", name, "`, not only ", show_names(colnames(data)),
       ".", if (!l10n_info()[["UTF-8"]] && any(is_foreign(colnames(data))))
         " This R cannot write all these names in formulas: see Sys.setlocale(), or rename them.")
}

# Has characters beyond ASCII.
is_foreign <- function(x) is.na(iconv(x, to = "ASCII"))

#' The names in all formulas of a model that are columns of the data
#' @noRd
columns_named <- function(model, data) {
  names <- if (is.data.frame(data)) attr(data, "names") else if (is.matrix(data)) colnames(data)
  if (length(names))
    intersect(unlist(rapply(unclass(model), all.vars, "formula", how = "unlist")), names)
}

#' The type of a column, for the rules on allowed columns and for comparing new data with old
#' @noRd
column_kind <- function(x) {
  if (is.numeric(x) && is.null(attributes(x))) return("numeric")
  if (inherits(x, "integer64")) return("integer64")
  if (is.factor(x) || is.character(x)) return(if (is.null(dim(x))) "factor" else "character matrix")
  if (is.numeric(x))
    return(if (is.matrix(x)) paste("numeric with", ncol(x), "columns")
           else if (length(dim(x)) > 2) "array" else "numeric")
  if (is.logical(x) && is.null(dim(x))) return("logical")
  if (inherits(x, "AsIs")) class(x) <- setdiff(class(x), "AsIs")
  if (inherits(x, "POSIXt")) return("date-time")
  class(x)[1]
}

show_kind <- function(x) if (is.character(x)) "character" else column_kind(x)

check_same_kinds <- function(frame, kinds, argument) {
  for (name in names(kinds)) {
    if (column_kind(frame[[name]]) != kinds[[name]])
      fail("`", argument, "` must have `", name, "` of type ", kinds[[name]],
           ", as in the first data, not ", show_kind(frame[[name]]), ".")
  }
}

#' Refuse missing and infinite values, naming the column and the first row
#' @noRd
check_finite_columns <- function(frame, argument = "data") {
  for (name in attr(frame, "names")) {
    x <- .subset2(frame, name)
    if (is.numeric(x) && all_finite(x)) next
    if (is.factor(x) && isTRUE(any(unclass(x) < 1 | unclass(x) > nlevels(x), na.rm = TRUE)))
      fail("`", argument, "` must have a level for each value of the factor `", name, "`.")
    if (if (is.factor(x)) all_finite(x) else !is.numeric(x) && !anyNA(x)) next
    bad <- if (is.numeric(x)) !is.finite(x) else is.na(x)
    if (!any(bad)) next
    row <- if (is.matrix(x)) which(rowSums(bad) > 0)[1] else which(bad)[1]
    value <- if (is.matrix(x)) x[row, bad[row, ]][1] else as.vector(x[row])
    refuse_not_finite(value, name, row, argument)
  }
}

all_finite <- function(x) .Call(ffi_all_finite, x)

refuse_not_finite <- function(value, column, row, argument) {
  instead <- if (!startsWith(argument, "data")) "see na.omit()"
  else paste("`na.action = na.omit` of evidence() leaves such rows out, those of a source with",
             "`collect = TRUE`")
  # NaN that a function has made, as log(x) of a negative number, is no missing value
  computed <- is.nan(value) && grepl("[[:alnum:]_.][(]", sub("^offset", "", column))
  rule <- if (is.na(value) && !computed) paste0("no missing values (", instead, ")")
  else "only finite values"
  fail_in_row(row, "`", argument, "` must have ", rule, ", not ", value, " in column `", column,
              "`, row ")
}

check_finite_matrix <- function(x, argument = "data", names = colnames(x)) {
  if (all_finite(x)) return(invisible())
  row <- which(rowSums(!is.finite(x)) > 0)[1]
  column <- which(!is.finite(x[row, ]))[1]
  refuse_not_finite(x[row, column], names[column], row, argument)
}

#' The numeric columns of a matrix or a vector, and their names
#' @param stem Unnamed columns get the names `stem1`, `stem2`, ...
#' @return A list: `x`, a matrix of doubles (without a copy if the user's data are one), and
#' `names`.
#' @noRd
numeric_columns <- function(x, argument, stem = "x") {
  columns <- shaped_columns(x, argument, stem)
  check_finite_matrix(columns$x, argument, columns$names)
  columns
}

# The first level is the reference, so that the evidence depends on the order of the levels. That of
# a factor is the user's; that of text must not depend on the language of the computer, as it does
# in as.factor().
levels_of_column <- function(x) {
  if (is.factor(x)) levels(x) else sort(unique(enc2utf8(as.character(x))), method = "radix")
}

# Text that would be a factor by mistake ----------------------------------------------------------

# A column of text is one of numbers with texts for missing values if at least so many are numbers.
NUMBERS_SHARE <- 0.5
# A factor must have fewer levels than this share of the rows; so few levels are always allowed.
LEVELS_SHARE <- 0.5
LEVELS_FEW <- 20

too_many_levels <- function(levels, n) levels > LEVELS_FEW && levels > LEVELS_SHARE * n

#' Refuse covariates of text that would be factors by mistake: numbers, and texts that hardly repeat
#'
#' What a formula makes of a column, as `as.character(year)`, may be numbers.
#' @param columns Names of covariates in the model frame, which has no missing values.
#' @param given Names of the columns of the data.
#' @noRd
check_text_covariates <- function(frame, columns, given) {
  for (name in columns) {
    x <- .subset2(frame, name)
    if (!is.character(x) || !is.null(dim(x)) || inherits(x, "AsIs")) next
    levels <- unique(x)
    each <- tabulate(match(x, levels), length(levels))
    number <- !is.na(suppressWarnings(as.numeric(levels)))
    if (name %in% given && sum(each[number]) >= NUMBERS_SHARE * length(x))
      refuse_numbers_as_text(x, x %in% levels[number], name)
    if (too_many_levels(length(levels), length(x)))
      refuse_levels(name, length(levels), length(x), paste0("`factor(", name, ")` in the formula"),
                    after = " Numbers and dates must not be text: see as.numeric() and as.Date().")
  }
}

refuse_numbers_as_text <- function(x, number, name) {
  other <- which(!number)
  fail("`data` must have numbers, and not text such as ", show_text(x[number][1]),
       ", in the column `", name, "`. Convert it by as.numeric()", if (length(other))
         paste0(", which makes a missing value of ", show_text(x[other[1]]), " in row ",
                plain_number(other[1])),
       "; if each of these texts is a level of a factor, use `factor(", name,
       ")` in the formula.")
}

refuse_levels <- function(name, levels, n, instead, which = "", after = "") {
  fail("`data` must have columns of text with few different values, as each is a level of a ",
       "factor, not `", name, "` with ", count(levels), " of them in ", which, count_of(n, "row"),
       ". If this is what you want, use ", instead, ".", after)
}

#' Text that is not checked: that of which the user has said so, and parts of rows
#' @noRd
text_as_it_is <- function(data, columns = names(data)) {
  if (is.data.frame(data))
    for (name in columns) if (is.character(data[[name]])) data[[name]] <- I(data[[name]])
  data
}

text_as_factors <- function(frame, columns) {
  for (name in columns[vapply(.subset(frame, columns), is.character, NA)])
    frame[[name]] <- factor(as.character(frame[[name]]), levels_of_column(frame[[name]]))
  frame
}

match_levels <- function(x, known, name, argument) {
  codes <- if (is.factor(x)) match(levels(x), known$levels)[x]
  else match(as.character(x), known$levels)
  unknown <- which(is.na(codes))
  if (length(unknown))
    fail_in_row(unknown[1], "`", argument, "` must have only known levels in `", name, "` (",
                show_levels(known$levels),
                # of later blocks of a source
                if (argument == "data") ": those of the first rows, or `levels` of the source",
                "), not ", show_text(as.character(x[unknown[1]])), " in row ")
  structure(codes, levels = known$levels, class = c(if (known$ordered) "ordered", "factor"))
}

show_levels <- function(levels) {
  paste(c(show_text(utils::head(levels, 5)), if (length(levels) > 5) "..."), collapse = ", ")
}

#' Levels of factors given to a source
#' @noRd
check_source_levels <- function(levels) {
  if (is.null(levels)) return(NULL)
  rule <- "a list of levels named by columns, such as `list(colour = c(\"red\", \"blue\"))`"
  if (!is.list(levels) || !has_names(levels)) refuse(levels, "levels", rule)
  for (name in names(levels)) {
    own <- levels[[name]]
    if (!is.character(own) || length(own) < 2 || anyNA(own) || anyDuplicated(own))
      refuse(own, paste0("levels$", name), "at least two distinct texts")
  }
  levels
}

#' Turn columns of text into factors with the levels given to the source
#'
#' @param before Number of rows of the source before these.
#' @noRd
with_levels <- function(frame, levels, before) {
  for (name in names(levels)) {
    if (!name %in% names(frame)) refuse_missing_column(name, frame, "data")
    known <- list(levels = levels[[name]], ordered = FALSE)
    x <- as.character(frame[[name]])
    missing <- which(is.na(x))
    frame[[name]] <- after_rows(before, {
      if (length(missing)) refuse_not_finite(NA, name, missing[1], "data")
      match_levels(x, known, name, "data")
    })
  }
  frame
}

# The same, without a check of the numbers.
shaped_columns <- function(x, argument, stem = "x") {
  if (!is_plain_numeric(x) || length(dim(x)) > 2 || (is.object(x) && !inherits(x, c("AsIs", "ts"))))
    refuse(x, argument, "a numeric matrix")
  names <- colnames(x)
  if (!is.matrix(x) || !is.double(x) || is.object(x)) x <- matrix(as.double(x), NROW(x), NCOL(x))
  if (ncol(x) == 0) fail("`", argument, "` must have at least one column, not 0.")
  check_some_rows(nrow(x), argument)
  if (is.null(names)) names <- paste0(stem, seq_len(ncol(x)))
  check_distinct(names, argument)
  list(x = x, names = names)
}

#' Evaluate `expr`, whose first row comes after `before` other rows of the source
#'
#' Errors that name a row (fail_in_row()) then count it from the first row of the source.
#' @noRd
after_rows <- function(before, expr) {
  tryCatch(expr, logevidence_row_error = function(e) fail_in_row(before + e$row, e$start))
}

# Other errors name the rows of the block.
within_rows <- function(before, n, expr) {
  tryCatch(after_rows(before, expr), logevidence_error = function(e) {
    if (before == 0 || inherits(e, "logevidence_row_error")) stop(e)
    fail(conditionMessage(e), " (This is in the rows from ", plain_number(before + 1), " to ",
         plain_number(before + n), ".)")
  })
}

plain_number <- function(x) format(x, scientific = FALSE)

# Checks of arguments, and their errors: a sentence that names the argument in backticks, the rule,
# and the value. Each checker returns the value in the form that the package uses.

#' Raise an error of class `logevidence_error`, without a call
#'
#' @param ... Pieces of the sentence, pasted together.
#' @noRd
fail <- function(...) {
  stop(structure(
    class = c("logevidence_error", "error", "condition"),
    list(message = paste0(..., collapse = ""), call = NULL)
  ))
}

#' The same with the number of a row at the end of the sentence
#'
#' A source of rows counts the rows before those that it has just read (after_rows() in
#' R/rows-sources.R).
#' @param ... Pieces of the sentence up to the number.
#' @noRd
fail_in_row <- function(row, ...) {
  start <- paste0(..., collapse = "")
  stop(structure(
    class = c("logevidence_row_error", "logevidence_error", "error", "condition"),
    list(message = paste0(start, format(row, scientific = FALSE), "."), call = NULL, row = row,
         start = start)
  ))
}

#' Refuse `x`: "`name` must be <rule>, not <value>."
#' @noRd
refuse <- function(x, name, rule)
  fail("`", name, "` must be ", rule, ", not ", show_value(x), ".", data_advice(x, name))

# Arguments of models that come first or after the formula, where lm() has the data.
PLACE_OF_DATA <- c("formula", "sigma", "family", "prior_sd", "components", "rank", "shape",
                   "shape1", "prior", "...")

data_advice <- function(x, name) if (is.data.frame(x) && name %in% PLACE_OF_DATA) DATA_ADVICE

DATA_ADVICE <- " A model has no data: they are given to evidence(model, data)."

# A name in the place of a formula is looked for where the user calls, and may be nothing.
require_value <- function(x, name, rule) {
  tryCatch(force(x), error = function(e)
    fail("`", name, "` must be ", rule, ": ", conditionMessage(e), "."))
  invisible()
}

#' Error for a value that no constructor of this package has made
#'
#' Often a function of the same name was called that belongs to another package.
#' @param prefix That of the names of these constructors.
#' @noRd
refuse_made <- function(x, name, rule, prefix) {
  of_others <- is.list(x) || is.object(x) || is.function(x)
  advice <- data_advice(x, name)
  fail("`", name, "` must be ", rule, ", not ", show_value(x), ".",
       if (!is.null(advice)) advice else if (of_others) prefix_advice(prefix))
}

prefix_advice <- function(prefix)
  paste0(" Outside of arguments write the name of a function of this package with `", prefix,
         "_`: see ?logevidence_names.")

#' A value as text for an error message: the value itself if short, else its type
#' @noRd
show_value <- function(x) {
  if (is.null(x)) return("NULL")
  if (inherits(x, "formula")) return(paste0("`", deparse1(x), "`"))
  if (is.data.frame(x))
    return(if (inherits(x, "model_comparison")) "a comparison of several fits" else "a data frame")
  if (is.function(x)) return("a function")
  if (is.matrix(x)) return(paste0("a matrix of ", nrow(x), " x ", ncol(x), " (", typeof(x), ")"))
  if (is.array(x) && length(dim(x)) > 2)
    return(paste0("an array of ", paste(dim(x), collapse = " x "), " (", typeof(x), ")"))
  if (is.object(x) && !is.factor(x)) return(paste0("an object of class ", class(x)[1]))
  if (is.list(x)) return(if (length(x)) "a list" else "an empty list")
  if (!is.atomic(x)) return(paste0("an object of type ", typeof(x)))
  kind <- if (is.factor(x)) "factor" else paste(typeof(x), "vector")
  if (length(x) == 0) return(paste("an empty", kind))
  if (length(x) > 1)
    return(paste(if (startsWith(kind, "integer")) "an" else "a", kind, "of length", length(x)))
  if (is.factor(x)) return(paste0("a factor, ", show_text(as.character(x))))
  if (is.character(x) && !is.na(x)) return(show_text(x))
  format(unname(x), digits = 7)
}

# Characters of a text in a sentence.
TEXT_SHOWN <- 40

shorten_text <- function(text) {
  text <- iconv(enc2utf8(text), "UTF-8", "UTF-8", sub = "byte")
  ifelse(nchar(text) > TEXT_SHOWN, paste0(substr(text, 1, TEXT_SHOWN), "..."), text)
}

#' Texts in quotes; the beginning of a long one
#' @noRd
show_text <- function(text) dQuote(shorten_text(text), FALSE)

#' Names in backticks, for sentences; at most `most` of them
#' @noRd
show_names <- function(names, most = 5) {
  shown <- paste0("`", utils::head(names, most), "`", collapse = ", ")
  more <- length(names) - most
  if (more > 0) paste(shown, "and", more, "more") else shown
}

# Numbers whose doubles are their values, unlike those of an integer64 before bit64 converts them.
is_plain_numeric <- function(x) is.numeric(x) && !inherits(x, "integer64")

is_one_number <- function(x) is_plain_numeric(x) && length(x) == 1 && is.finite(x)

#' One finite number between `lower` and `upper`; an open end excludes the bound itself
#' @noRd
check_number <- function(x, name, lower = -Inf, upper = Inf, lower_open = FALSE,
                         upper_open = FALSE) {
  inside <- is_one_number(x) &&
    (if (lower_open) x > lower else x >= lower) &&
    (if (upper_open) x < upper else x <= upper)
  if (!inside) refuse(x, name, number_rule(lower, upper, lower_open, upper_open))
  as.double(x)
}

number_rule <- function(lower, upper, lower_open, upper_open) {
  if (lower == -Inf && upper == Inf) return("a finite number")
  if (lower == 0 && upper == Inf)
    return(if (lower_open) "a positive number" else "a non-negative number")
  if (is.finite(lower) && is.finite(upper) && !lower_open && !upper_open)
    return(paste("a number between", format(lower), "and", format(upper)))
  above <- if (lower > -Inf) paste(if (lower_open) "above" else "of at least", format(lower))
  below <- if (upper < Inf) paste(if (upper_open) "below" else "at most", format(upper))
  paste("a number", paste(c(above, below), collapse = " and "))
}

#' One whole number between `min` and `max`
#' @noRd
check_count <- function(x, name, min = 1, max = Inf) {
  if (!(is_one_number(x) && x == round(x) && x >= min && x <= max)) {
    range <- if (min > -Inf && max < Inf) paste(" between", big(min), "and", big(max))
    else if (min > -Inf) paste(" of at least", big(min))
    else if (max < Inf) paste(" of at most", big(max))
    refuse(x, name, paste0("a whole number", range))
  }
  as.double(x)
}

# A bound in full: 100000, not 1e+05.
big <- function(x) format(x, scientific = FALSE)

#' One number above zero
#' @noRd
check_positive <- function(x, name) check_number(x, name, lower = 0, lower_open = TRUE)

#' One number from 0 to 1, both included
#' @noRd
check_probability <- function(x, name) check_number(x, name, lower = 0, upper = 1)

#' TRUE or FALSE
#' @noRd
check_flag <- function(x, name) {
  if (!is_one_flag(x)) refuse(x, name, "TRUE or FALSE")
  unname(x)
}

# The words as text: "a, b or c".
either <- function(words) {
  last <- length(words)
  if (last > 1) paste(paste(words[-last], collapse = ", "), "or", words[last]) else words
}

#' One of several words; the whole vector of choices (a default argument) means the first
#' @noRd
check_choice <- function(x, name, choices) {
  if (identical(x, choices)) return(choices[1])
  if (!(is.character(x) && length(x) == 1 && x %in% choices)) {
    refuse(x, name, either(dQuote(choices, FALSE)))
  }
  unname(x)
}

is_one_string <- function(x)
  is.character(x) && length(x) == 1 && !is.na(x) && validEnc(x) && nzchar(x)

#' One string that is not empty
#' @noRd
check_word <- function(x, name, rule) {
  if (!is_one_string(x)) refuse(x, name, rule)
  unname(x)
}

#' A vector of finite numbers, positive ones if so asked; its names are kept
#' @noRd
check_numbers <- function(x, name, positive = FALSE) {
  rule <- if (positive) "positive number" else "finite number"
  one_or_more <- paste0("a ", rule, " or a vector of such numbers")
  if (!is_plain_numeric(x) || length(x) == 0 || length(dim(x)) > 1) refuse(x, name, one_or_more)
  bad <- which(!is.finite(x) | (positive & x <= 0))
  if (length(bad) && length(x) == 1) refuse(x, name, paste("a", rule))
  if (length(bad))
    fail("`", name, "` must hold only ", rule, "s, not ", show_value(x[[bad[1]]]), " (element ",
         bad[1], ").")
  stats::setNames(as.double(x), names(x))
}

#' The values of a setting for coefficients or columns called `labels`: one for all or one for each
#'
#' Unnamed values are taken in order; named ones by name.
#' @noRd
match_setting <- function(x, name, labels, what = "coefficient") {
  if (is.null(names(x))) {
    if (!length(x) %in% c(1L, length(labels)))
      fail("`", name, "` must have one value, or one for each ", what, " (", length(labels),
           "), not ", length(x), ".")
    return(x)
  }
  unknown <- setdiff(names(x), labels)
  if (length(unknown))
    fail("`", name, "` must be named by ", what, "s (", show_names(labels), "), not by `",
         unknown[1], "`.")
  absent <- setdiff(labels, names(x))
  if (length(absent))
    fail("`", name, "` must have a value for each ", what, ", not none for `", absent[1], "`.")
  twice <- anyDuplicated(names(x))
  if (twice)
    fail("`", name, "` must have one value for each ", what, ", not several for `", names(x)[twice],
         "`.")
  unname(x[labels])
}

#' Whether `x` is of a class of this package, and has the parts that the class always has
#'
#' An object of which parts were removed, or a list that was given the class by hand, is not.
#' @noRd
is_made <- function(x, class) {
  if (!inherits(x, class) || !is.list(x)) return(FALSE)
  x <- unclass(x)
  wanted <- MADE_PARTS[[class]]
  for (part in names(wanted)) if (!wanted[[part]](x[[part]])) return(FALSE)
  TRUE
}

is_one_flag <- function(x) is.logical(x) && length(x) == 1 && !is.na(x)

# What these parts must be.
MADE_PARTS <- list(
  evidence_model = list(name = is.character, contract = is.list),
  evidence_method = list(name = is.character, call = is.call, estimator = is.character,
                         settings = is.list, kernels = is.list),
  evidence_kernel = list(name = is.character, args = is.list, mass = is.character),
  evidence_schedule = list(kind = is.character),
  evidence_prior = list(kind = is.character, shown = is.list, location = is.numeric,
                        scale = is.numeric, shape = is.numeric),
  evidence_lkj = list(shape = is.numeric),
  evidence_jzs = list(scale = is.numeric, flat_intercept = is.logical),
  regression_family = list(family = is.character, link = is.character),
  rows_source = list(describe = is.function, open = is.function, rewinds = is_one_flag,
                     count = is.function, lasts = is_one_flag)
)

# Tables of parts ----------------------------------------------------------------------------------
#
# What a user holds may have been altered, and C reads its parts. A table has a rule for each part:
# a function of the part and, if it has a second argument, of the whole object, which is TRUE if the
# part is right. Objects that are used by few verbs are checked whole at the start of each; fits
# check a part when it is taken (R/run-result.R).

#' The rule of a part that holds numbers
#'
#' @param n The length, or a function of the object that returns it; NULL for any.
#' @param lower,upper The range, ends included: one number for all or one for each, or a function of
#'   the object.
#' @param whole Whether they are whole numbers.
#' @noRd
numbers_rule <- function(n = 1, lower = -Inf, upper = Inf, whole = FALSE) {
  force(n)
  force(lower)
  force(upper)
  force(whole)
  function(x, object) {
    of <- function(value) if (is.function(value)) value(object) else value
    is_plain_numeric(x) && all(is.finite(x)) && (is.null(n) || length(x) == of(n)) &&
      all(x >= of(lower) & x <= of(upper)) && all(!whole | x == round(x))
  }
}

#' The rule of a part that is a data frame with these columns of numbers, or perhaps NULL
#' @noRd
table_rule <- function(columns, or_none = FALSE) {
  force(columns)
  function(x) or_none && is.null(x) ||
    is_whole_table(x) && all(columns %in% names(x)) &&
    all(vapply(unclass(x)[columns], is_plain_numeric, NA))
}

#' A data frame whose columns have as many values as it has rows, none of them a matrix
#' @noRd
is_whole_table <- function(x) is.data.frame(x) && !length(uneven_columns(x)) &&
  !any(vapply(unclass(x), function(column) length(dim(column)) > 1, NA))

# Altered by hand, a data frame may have columns of other lengths, of which base R warns.
uneven_columns <- function(x)
  which(vapply(unclass(x), NROW, 0L, USE.NAMES = FALSE) != .row_names_info(x, 2L))

#' Is the part right, by its rule?
#' @noRd
follows <- function(rule, part, object)
  isTRUE(if (length(formals(rule)) > 1) rule(part, object) else rule(part))

#' Error for a part that does not follow its rule
#'
#' @param what The object, as "A fit"; `maker` is the function that has made it.
#' @noRd
refuse_altered <- function(what, maker, name, value, again)
  fail(what, " must be as ", maker, " has made it, and the part `", name, "` of this one is ",
       if (is.null(value)) "missing" else show_part(value), ": ", again)

show_part <- function(value) {
  shown <- show_value(value)
  if (is.list(value) || !is.numeric(value) || length(value) < 2) shown
  else paste0(shown, " that is not as it was")
}

#' An error if a part of an object does not follow its rule
#' @noRd
check_parts_of <- function(object, rules, what, maker, again) {
  if (!is.list(object)) refuse(object, "object", paste("a result of", maker))
  plain <- unclass(object)
  for (name in names(rules))
    if (!follows(rules[[name]], plain[[name]], plain))
      refuse_altered(what, maker, name, plain[[name]], again)
}

#' Are these the columns of a result that is a data frame?
#'
#' FALSE if a column was left out or has become another type; an error if columns have other lengths
#' than the table has rows.
#' @param types The function that is TRUE of each column, by its name.
#' @noRd
has_columns <- function(x, types) {
  columns <- unclass(x)
  check_whole_table(x)
  for (name in names(types))
    if (!isTRUE(types[[name]](columns[[name]]))) return(FALSE)
  TRUE
}

check_whole_table <- function(x) {
  uneven <- uneven_columns(x)
  if (length(uneven))
    fail("A table of results must have columns of one length, ", .row_names_info(x, 2L),
         ", and not one of length ", NROW(unclass(x)[[uneven[1]]]), ": make it again.")
}

#' A table of results as a plain data frame
#' @noRd
plain_table <- function(x) {
  check_whole_table(x)
  attributes(x) <- attributes(x)[c("names", "row.names")]
  class(x) <- "data.frame"
  x
}

# TRUE or FALSE, or text, in each row.
is_yes_or_no <- function(x) is.logical(x) && !anyNA(x)
is_full_text <- function(x) is.character(x) && !anyNA(x)

#' A model specification
#' @noRd
check_is_model <- function(x, name = "model") {
  if (is_made(x, "evidence_model")) return(x)
  rule <- "a model, such as `linear_regression(y ~ x)`"
  advice <- model_advice(x)
  if (is.null(advice)) refuse(x, name, rule)
  fail("`", name, "` must be ", rule, ", not ", show_value(x), ".", advice)
}

# What to give in the place of a formula, or of a fit of this or another package.
model_advice <- function(x) {
  if (inherits(x, "evidence"))
    return(" That is a fit: its log evidence is logml(fit), its model `fit$model`.")
  if (inherits(x, "stanfit")) return(" See stanfit_model().")
  written <- if (inherits(x, "formula")) x
  else if (inherits(x, c("lm", "lmerMod", "glmerMod", "nls", "brmsfit", "stanreg")))
    or_null(stats::formula(x))
  if (!inherits(written, "formula") || length(written) != 3) return(NULL)
  text <- shorten(deparse1(written), 60)
  family <- if (inherits(x, c("glm", "glmerMod"))) or_null(stats::family(x)$family)
  paste0(" Write the model, with its priors: `", if (is.null(family)) "linear_regression(" else
    "regression(", text, if (!is.null(family)) paste0(", ", family, "()"), ")`.")
}

#' Error for arguments in dots that a generic requires but a method does not use
#' @noRd
check_no_dots <- function(...) {
  if (...length() == 0) return(invisible())
  given <- names(list(...))
  if (is.null(given) || given[1] == "")
    fail("Arguments must be among those of the help page, not an unnamed further one.")
  refuse_argument(given[1], sys.function(-1))
}

#' Error for an argument that a function does not have, with the nearest one that it has
#' @noRd
refuse_argument <- function(name, of) {
  own <- setdiff(names(formals(of)), "...")
  elsewhere <- NAMES_ELSEWHERE[name]
  known <- !is.na(elsewhere) && elsewhere %in% own
  near <- if (known) elsewhere else nearest_names(name, own)
  like <- known || length(near) > 0 && (
    utils::adist(name, near[1]) <= max(1, nchar(name) / 3) || startsWith(name, near[1]))
  fail("Arguments must be among those of the help page, not `", name, "`",
       if (like) paste0(": the nearest is `", near[1], "`"), ".")
}

# What other packages call the arguments.
NAMES_ELSEWHERE <- c(prior_aux = "auxiliary", prior_intercept = "intercept", conf.level = "level",
                     which = "type", autoscale = "scale", chains = "replicates", cores = "threads")

# The names that differ by the fewest letters.
nearest_names <- function(name, names) {
  if (!length(names)) return(names)
  changes <- drop(utils::adist(name, names, ignore.case = TRUE))
  names[changes == min(changes)]
}

check_is_fit <- function(x, name = "fit") {
  if (inherits(x, "incomplete_evidence"))
    fail("`", name, "` must be a whole fit: continue the incomplete one by resume().")
  if (!inherits(x, "evidence")) refuse(x, name, "a fit from `evidence()`")
  x
}

# Functions of other packages with the same name ---------------------------------------------------

#' The generic of another package, for objects of a class for which it has a method; else NULL
#' @noRd
their_generic <- function(package, name, x) {
  if (!is.object(x) || !requireNamespace(package, quietly = TRUE)) return(NULL)
  known <- vapply(class(x), function(class)
    !is.null(utils::getS3method(name, class, TRUE, asNamespace(package))), NA)
  if (any(known)) getExportedValue(package, name)
}

#' The function that this package may mask, for objects of others; NULL if it is not attached
#' @noRd
masked_function <- function(package, name, x) {
  ours <- inherits(x, c("evidence", "incomplete_evidence", "evidence_model", "model_comparison"))
  place <- paste0("package:", package)
  if (is.object(x) && !ours && place %in% search())
    get0(name, as.environment(place), mode = "function", inherits = FALSE)
}

# A function of another package, which is installed if its generics are called.
of_package <- function(package, name) getExportedValue(package, name)

has_names <- function(x) {
  !is.null(names(x)) && all(nzchar(names(x))) && !anyNA(names(x)) && !anyDuplicated(names(x))
}

# NULL if the code fails. A time limit (setTimeLimit()) is no failure of the code, and R has already
# lifted it: the error goes on.
or_null <- function(code) tryCatch(code, error = function(e) if (is_time_limit(e)) stop(e))

is_time_limit <- function(e) {
  said <- c("reached elapsed time limit", "reached CPU time limit",
            "reached session elapsed time limit", "reached session CPU time limit")
  conditionMessage(e) %in% c(said, vapply(said, gettext, "", domain = "R"))
}

# An error of a user's function, with the name of the function in its message.
with_function_name <- function(e, name) {
  if (inherits(e, "logevidence_error") || is_time_limit(e)) return(e)
  text <- conditionMessage(e)
  # the call is left out if it is one of this package, which a user does not know
  call <- conditionCall(e)
  if (is.call(call) && deparse1(call[[1]]) %in% c("f", "model$draw_prior"))
    e["call"] <- list(NULL)
  e$message <- paste0("`", name, "` stopped: ", text)
  e
}

# A function that is called with what is known of a run; its errors have the name of the argument.
check_on_chunk <- function(on_chunk) {
  if (is.null(on_chunk)) return(NULL)
  if (!is.function(on_chunk)) refuse(on_chunk, "on_chunk", "NULL or a function of a list")
  f <- on_chunk
  function(known)
    withCallingHandlers(f(known), error = function(e) stop(with_function_name(e, "on_chunk")))
}

# The last `n` elements of a vector, without the time that tail() takes to look for its method.
trailing <- function(x, n) x[length(x) - n + seq_len(n)]

check_cluster <- function(cl) {
  if (is.null(cl)) return(NULL)
  if (!inherits(cl, "cluster") || !length(cl))
    refuse(cl, "cl", "NULL or a cluster, such as parallel::makeCluster(2)")
  cl
}

# The log density of a count y is a difference of numbers of size y log(y), so that of larger counts
# it has no digits left.
MOST_COUNT <- 1e11
COUNT_RULE <- "non-negative whole numbers up to 1e11"

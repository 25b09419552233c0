# Group-level terms of formulas, such as `(1 + x | g)`: how they are read, and the groups of rows.

GROUP_EXAMPLE <- "as in `y ~ x + (1 | g)`"

is_bar <- function(e) is.call(e) && as.character(e[[1]])[1] %in% c("|", "||")

#' Is there a group-level term among the terms of an expression?
#'
#' `I(a | b)` is none: there `|` is the logical operator.
#' @noRd
has_bars <- function(e) {
  if (is.null(e) || !any(c("|", "||") %in% all.names(e))) return(FALSE)
  if (inherits(e, "formula")) return(has_bars(e[[length(e)]]))
  if (is_bar(e)) return(TRUE)
  if (!is.call(e) || !as.character(e[[1]])[1] %in% c(FORMULA_OPERATORS, "(")) return(FALSE)
  any(vapply(as.list(e)[-1], has_bars, NA))
}

#' A formula without its group-level terms, and these
#'
#' @return A list: `fixed`, a formula, and `terms`, each a list of `effects` (an expression),
#'   `group` (a list of the expressions whose combinations are the groups), `label` and
#'   `correlated`.
#' @noRd
split_groups <- function(formula) {
  terms <- list()
  strip <- function(e) {
    if (!has_bars(e)) return(e)
    if (is_in_brackets(e)) {
      if (!is_bar(e[[2]])) return(strip(e[[2]]))
      terms <<- c(terms, group_terms(e[[2]], formula))
      return(NULL)
    }
    operator <- as.character(e[[1]])[1]
    if (!operator %in% c("+", "-") || length(e) < 3 || operator == "-" && has_bars(e[[3]]))
      fail("`formula` must have group-level terms in brackets, each a term of its own, ",
           GROUP_EXAMPLE, ", not `", deparse1(formula), "`.")
    left <- strip(e[[2]])
    right <- strip(e[[3]])
    if (is.null(left)) return(if (operator == "+") right else call("-", right))
    if (is.null(right)) left else call(operator, left, right)
  }
  fixed <- formula
  right <- strip(formula[[length(formula)]])
  fixed[[length(formula)]] <- if (is.null(right)) 1 else right
  list(fixed = fixed, terms = terms)
}

# Functions and signs of other packages.
NO_GROUPS <- c(gr = "groups with a structure of their own", mm = "rows of several groups")

#' The terms of one bar: several if the groups are nested, as in `(1 | g/h)`
#' @noRd
group_terms <- function(bar, formula) {
  if (is_bar(bar[[2]]))
    fail("`formula` must have one `|` in each group-level term: names of terms, as in `(1 | id | ",
         "g)`, are not supported, not `", deparse1(formula), "`.")
  lapply(nested_groups(bar[[3]], formula), function(group) {
    text <- vapply(group, deparse1, "")
    list(effects = bar[[2]], group = group, label = paste(text, collapse = ":"),
         correlated = as.character(bar[[1]]) == "|")
  })
}

nested_groups <- function(e, formula) {
  while (is_in_brackets(e)) e <- e[[2]]
  operator <- if (is.call(e)) as.character(e[[1]])[1] else ""
  if (operator %in% names(NO_GROUPS))
    fail("`formula` must have plain grouping factors: `", operator, "()`, ", NO_GROUPS[[operator]],
         ", is not supported. See tmb_model().")
  if (operator == "/") {
    outer <- nested_groups(e[[2]], formula)
    inner <- nested_groups(e[[3]], formula)
    last <- outer[[length(outer)]]
    return(c(outer, lapply(inner, function(group) c(last, group))))
  }
  if (operator == ":")
    return(list(c(nested_groups(e[[2]], formula)[[1]], nested_groups(e[[3]], formula)[[1]])))
  if (operator %in% c("+", "*", "-", "|", "||", "^", "%in%"))
    fail("`formula` must have a factor, or factors joined by `:` or `/`, after `|`, not `",
         deparse1(e), "`: write a term for each, ", "as in `(1 | a) + (1 | b)`.")
  list(list(e))
}

#' The group of each row
#'
#' @param label What messages call the groups.
#' @return A list: `codes`, from 1 in the order of the rows, and `levels`, texts.
#' @noRd
groups_of_rows <- function(group, label, data, environment, argument = "data") {
  columns <- lapply(group, function(e) {
    for (name in setdiff(all.vars(e), names(data)))
      if (is.name(e) || is.null(get0(name, environment)))
        refuse_missing_column(name, data, argument)
    value <- tryCatch(eval(e, data, environment), error = function(cnd)
      fail("`", argument, "` must be something `", deparse1(e), "` can be computed from, not so (",
           conditionMessage(cnd), ")."))
    if (!is.atomic(value) || !is.null(dim(value)) || length(value) != nrow(data) ||
        is.complex(value) || is.raw(value))
      fail("`", argument, "` must have a group for each row (", nrow(data), ") in `", deparse1(e),
           "`, not ", show_value(value), ".")
    check_finite_columns(stats::setNames(list(if (is.numeric(value)) as.vector(value) else value),
                                         deparse1(e)), argument)
    value
  })
  codes <- NULL
  for (value in columns) {
    own <- match(value, unique(value))
    codes <- if (is.null(codes)) own else {
      both <- (codes - 1) * max(own) + own
      match(both, unique(both))
    }
  }
  first <- which(!duplicated(codes))
  list(codes = codes,
       levels = do.call(paste, c(lapply(columns, function(value) as.character(value[first])),
                                 sep = ":")))
}

#' The groups of each row by each of some factors
#' @noRd
factors_of_rows <- function(model, factors, data, argument = "data") {
  labels <- vapply(model$group_terms, `[[`, "", "label")
  lapply(stats::setNames(nm = factors), function(label)
    groups_of_rows(model$group_terms[[match(label, labels)]]$group, label, data,
                   environment(model$formula), argument))
}

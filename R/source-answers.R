# Log-likelihoods of regressions on counts and on zeros and ones, with gradients and curvatures,
# computed by a database: a query for each step, and no row leaves the database.
#
# The columns of the model matrix are linear functions of a basis of centred numbers and of cells
# (R/source-sums.R). In each cell, the linear predictor eta is a polynomial of centred atoms, whose
# coefficients the query has as numbers. Per row the query computes eta, then the residual and the
# weight, and sums their products with the basis. The families are those whose links a database
# computes by EXP() and LN(): "poisson" with the log link and "binomial", of zeros and ones, with
# the logit link.

MOST_ANSWER_CELLS <- 500   # combinations of levels: the query names each of them
MOST_RESPONSES <- 100000   # distinct counts

# Expressions in SQL of the response y, of eta, and of `e`, which is computed first. Where exp(eta)
# is below exp(-300) it is taken as 0, because PostgreSQL raises an error where products are too
# small for a number. Of counts it is NULL beyond exp(300), and then the log-likelihood is taken as
# -Inf.
ANSWERS <- list(
  poisson = list(
    responses = "numeric",
    e = "CASE WHEN {eta} < -300.0 THEN 0.0 WHEN {eta} < 300.0 THEN {exp}({eta}) END",
    log_lik = "{y} * {eta} - {e}", residual = "{y} - {e}", weight = "{e}",
    invalid = "{y} < 0.0 OR {y} <> ROUND({y})", rule = "whole numbers of at least 0"),
  binomial = list(
    responses = c("numeric", "logical"),
    e = "CASE WHEN ABS({eta}) < 300.0 THEN {exp}(- ABS({eta})) ELSE 0.0 END",
    log_lik = "{y} * {eta} - CASE WHEN {eta} > 0.0 THEN {eta} ELSE 0.0 END - {ln}(1.0 + {e})",
    residual = "{y} - CASE WHEN {eta} > 0.0 THEN 1.0 ELSE {e} END / (1.0 + {e})",
    weight = "{e} / ((1.0 + {e}) * (1.0 + {e}))",
    invalid = "{y} <> 0.0 AND {y} <> 1.0", rule = "zeros and ones")
)

#' The log-likelihood of a regression at a few points, computed by a database
#'
#' @param con,table,formula As in database_sums().
#' @param family "poisson" (with the log link) or "binomial" (of zeros and ones, logit link).
#' @param points A matrix of coefficients, in the order of the columns of the model matrix, with a
#'   point in each row.
#' @param what Of "log_lik", "gradient" and "curvature".
#'
#' @return A list: `n`, `omitted` and what was asked for: `log_lik`, a number for each point;
#'   `gradient`, a matrix of points x coefficients; `curvature`, a list of matrices, one for each
#'   point, minus the second derivatives.
#' @noRd
database_answer <- function(con, table, formula, family, points, what = "log_lik", head = NULL) {
  database_likelihood(con, table, formula, family, head)(points, what)
}

#' The same as a function of `points` and `what`, for several steps
#' @noRd
database_likelihood <- function(con, table, formula, family, head = NULL) {
  if (!family %in% names(ANSWERS)) refuse(family, "family", either(show_text(names(ANSWERS))))
  parts <- ANSWERS[[family]]
  design <- database_design(con, table, formula, head, parts$responses)
  if (length(design$cells$n) > MOST_ANSWER_CELLS)
    fail("`data` must have at most ", MOST_ANSWER_CELLS, " combinations of levels for a family of ",
         show_text(family), " in a database, not ", count(length(design$cells$n)),
         ". Read the rows instead: see rows_dbi().")
  check_literals(design)
  basis <- without_response(database_basis(design))
  functions <- c(exp = design$named("exp"), ln = if (family == "binomial") design$named("ln"))
  check_responses(design, parts)
  constant <- if (family == "poisson") log_factorials(design) else 0
  function(points, what = "log_lik") {
    points <- as_points(points, ncol(basis$to), "points")$points
    answers <- lapply(seq_len(ncol(points)), function(k)
      answer_at(design, basis, parts, functions, points[, k], what))
    taken <- function(name) lapply(answers, `[[`, name)
    answer <- list(n = design$n, omitted = design$omitted)
    if ("log_lik" %in% what) answer$log_lik <- unlist(taken("log_lik")) - constant
    if ("gradient" %in% what) answer$gradient <- do.call(rbind, taken("gradient"))
    if ("curvature" %in% what) answer$curvature <- taken("curvature")
    answer
  }
}

# The members of the basis that the covariates need.
without_response <- function(basis) {
  basis$to <- basis$to[, -ncol(basis$to), drop = FALSE]
  own <- which(rowSums(basis$to != 0) > 0)
  m <- unique(basis$monomial[own])
  list(monomials = basis$monomials[m], parts = basis$parts, part = basis$part[own],
       monomial = match(basis$monomial[own], m), to = basis$to[own, , drop = FALSE])
}

answer_at <- function(design, basis, parts, functions, theta, what) {
  monomials <- basis$monomials
  products <- outer(monomials, monomials, Vectorize(joined))
  squares <- if ("curvature" %in% what) unique(c(products))
  firsts <- if ("gradient" %in% what) monomials
  sums <- c("SUM(log_lik)", "SUM(CASE WHEN log_lik IS NULL THEN 1.0 ELSE 0.0 END)",
            weighted_sums(design, "residual", firsts), weighted_sums(design, "weight", squares))
  values <- cell_sums(design, sums, answer_rows(design, basis, parts, functions, theta),
                      finite = FALSE)
  # the mean of a row is too large for a number
  far <- sum(values[, 2]) > 0
  if (far) values[] <- NaN
  else refuse_large_sums(values)
  answer <- list(log_lik = if (far) -Inf else sum(values[, 1]))
  at <- 2 + seq_along(firsts)
  if ("gradient" %in% what) answer$gradient <-
    drop(crossprod(basis$to, summed_basis(basis, values[, at, drop = FALSE])))
  at <- 2 + length(firsts) + seq_along(squares)
  if ("curvature" %in% what) {
    gram <- gram_of(basis, list(values = values[, at, drop = FALSE],
                                at = matrix(match(products, squares), length(monomials))))
    curvature <- crossprod(basis$to, gram %*% basis$to)
    answer$curvature <- (curvature + t(curvature)) / 2
  }
  answer
}

weighted_sums <- function(design, weight, monomials)
  if (length(monomials)) paste0("SUM(", weight, " * ", monomial_sql(design, monomials), ")")

# Sums of the members of the basis, from sums of monomials for each cell.
summed_basis <- function(basis, values)
  colSums(basis$parts[, basis$part, drop = FALSE] * values[, basis$monomial, drop = FALSE])

#' The query of the rows with their log-likelihood, residual and weight
#' @noRd
answer_rows <- function(design, basis, parts, functions, theta) {
  con <- design$con
  fill <- function(text) {
    with <- c(y = "response", eta = "eta", e = "e", functions)
    for (name in names(with)) text <- gsub(paste0("{", name, "}"), with[[name]], text, fixed = TRUE)
    text
  }
  layer <- function(rows, ...)
    paste0("SELECT t.*, ", paste(c(...), collapse = ", "), " FROM (", rows, ") AS t",
           if (is_sqlite(con)) " LIMIT -1 OFFSET 0")
  rows <- centred_rows(design, paste(design$response, "AS response"))
  rows <- layer(rows, paste(predictor_sql(design, basis, theta), "AS eta"))
  rows <- layer(rows, paste(fill(parts$e), "AS e"))
  layer(rows, vapply(c("log_lik", "residual", "weight"), function(name)
    paste(fill(parts[[name]]), "AS", name), ""))
}

#' The linear predictor: a polynomial in each cell
#' @noRd
predictor_sql <- function(design, basis, theta) {
  con <- design$con
  member <- drop(basis$to %*% theta)
  terms <- vapply(seq_along(basis$monomials), function(m) {
    own <- basis$monomial == m
    coefficient <- drop(basis$parts[, basis$part[own], drop = FALSE] %*% member[own])
    paste0(by_cell(design, coefficient), " * ", monomial_sql(design, basis$monomials[m]))
  }, "")
  paste(terms, collapse = " + ")
}

# A number for each cell.
by_cell <- function(design, values) {
  con <- design$con
  if (length(unique(values)) == 1) return(number_sql(con, values[1]))
  numbers <- vapply(values, number_sql, "", con = con)
  names <- key_names(design)
  conditions <- do.call(paste, c(lapply(seq_along(names), function(i)
    is_value(con, names[i], design$cells$raw[[i]])), sep = " AND "))
  paste0("(CASE ", paste("WHEN", conditions, "THEN", numbers, collapse = " "), " END)")
}

is_value <- function(con, name, values) {
  if (is.logical(values)) return(paste0(ifelse(values, "", "NOT "), name))
  literal <- if (is.numeric(values)) vapply(as.double(values), number_sql, "", con = con)
  else as.character(DBI::dbQuoteLiteral(con, as.character(values)))
  paste(name, "=", literal)
}

#' Refuse a database that takes a backslash in a text for something else
#'
#' DBI's own dbQuoteLiteral(), which some drivers use, does not know of such databases. The two
#' backslashes of this query are harmless in both.
#' @noRd
check_literals <- function(design) {
  texts <- unlist(Filter(is.character, as.list(design$cells$raw)))
  if (!any(grepl("\\", texts, fixed = TRUE))) return(invisible())
  two <- "\\\\"
  got <- ask_frame(design$con, paste("SELECT", DBI::dbQuoteLiteral(design$con, two)))[[1]]
  if (!identical(as.character(got), two))
    fail("`data` must have no backslash in the levels of factors, because this database takes it ",
         "for a sign of its own.")
}

check_responses <- function(design, parts) {
  invalid <- gsub("{y}", "response", parts$invalid, fixed = TRUE)
  bad <- ask_numbers(design$con, paste0(
    "SELECT SUM(CASE WHEN ", invalid, " THEN 1.0 ELSE 0.0 END) FROM (", response_rows(design),
    ") AS t"))
  if (bad > 0)
    fail("`data` must have ", parts$rule, " in the response `", names(design$variables)[1],
         "`, not so in ", count_of(bad, "row"), ".")
}

response_rows <- function(design)
  paste("SELECT", design$response, "AS response FROM", design$from, "WHERE", design$complete)

# The sum of log(y!), from the numbers of rows of each count.
log_factorials <- function(design) {
  counts <- ask_frame(design$con, paste0(
    "SELECT response, COUNT(*) FROM (", response_rows(design), ") AS t GROUP BY response LIMIT ",
    plain_number(MOST_RESPONSES + 1)))
  if (nrow(counts) > MOST_RESPONSES)
    fail("`data` must have at most ", count(MOST_RESPONSES), " distinct counts in the response ",
         "for a likelihood in a database. Read the rows instead: see rows_dbi().")
  sum(as.double(counts[[2]]) * lgamma(as.double(counts[[1]]) + 1))
}

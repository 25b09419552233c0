# Sums of products of the columns of a linear regression, computed by a database.
#
# For known or unknown noise, the likelihood of a linear regression depends on the rows only by n,
# X'X, X'y and y'y. A database computes these by SELECT COUNT(*), SUM(...), so that no row leaves
# it. The steps:
#
# 1. Each variable of the formula is a factor (a key of GROUP BY) or a polynomial of "atoms":
#    numeric columns, or functions of them that only the database computes, such as LN(x). So x:z,
#    x^2 and 2 * x + 1 are polynomials of the atoms x and z, and log(x) is an atom.
# 2. One query checks that values are finite and gives the mean of each atom, another the cells: the
#    combinations of levels of the factors that have rows.
# 3. The last queries give for each cell the sums of products of *centred* atoms. Polynomials of
#    atoms are polynomials of centred atoms, with other coefficients, so that X and y are linear
#    functions of products of centred atoms and indicators of cells. X'X computed directly would
#    have lost all digits of the residuals where means are large: y'y is n 10^12 if the mean is 10^6
#    and the standard deviation is 1.
# 4. model.matrix() of the cells, with 1 for all numbers, gives the columns with their names, and
#    for each cell the factor by which a column multiplies the product of its numbers.
#
# Identifiers and values come into queries only by dbQuoteIdentifier() and dbQuoteLiteral().

MOST_LEVELS <- 100   # of a factor
MOST_CELLS <- 20000  # combinations of levels
MOST_BASIS <- 400    # products of centred atoms and of factors
MOST_EXPANDED <- 30  # terms of a polynomial; larger ones are atoms
MOST_SUMS <- 20000   # for each cell
QUERY_SUMS <- 500    # for each query: databases allow 1,600 to 2,000 columns in a result
FIRST_ROWS <- 1000   # that show the types of columns
MOST_SQL <- 20000    # characters of an expression

#' Sums of products of the columns of a linear regression, computed by a database
#'
#' @param con A DBI connection.
#' @param table The name of a table, `DBI::Id()`, or a SELECT as `DBI::SQL()`. Several queries are
#'   sent, which must find the same rows: where others write to the table, begin a transaction that
#'   reads one state of it (in PostgreSQL, `REPEATABLE READ`). A change of numbers of rows is an
#'   error.
#' @param formula A formula with a response.
#' @param head A data frame of some of the rows, which has the types of columns; factors have their
#'   levels, in their order. By default the first rows of the table.
#'
#' @return A list: `n`, the number of complete rows; `products`, the products of the columns of the
#'   model matrix and, last, the response; `omitted`, the number of rows with missing values; and
#'   `root`, a matrix with these columns whose crossprod() is `products`. It has as many rows as
#'   columns, or more (up to MOST_BASIS) where products of numbers have no terms of their own. Where
#'   means are large, `products` has not the digits that residuals need, and `root` has: least
#'   squares by a QR decomposition of `root` are those of all rows.
#' @noRd
database_sums <- function(con, table, formula, head = NULL) {
  design <- database_design(con, table, formula, head)
  basis <- database_basis(design)
  sums <- database_products(design, basis)
  gram <- gram_of(basis, sums)
  products <- crossprod(basis$to, gram %*% basis$to)
  root <- root_of(gram) %*% basis$to
  # a QR decomposition is most accurate with the largest rows first
  largest <- order(apply(abs(root), 1, max), decreasing = TRUE)
  list(n = design$n, products = (products + t(products)) / 2, omitted = design$omitted,
       root = root[largest, , drop = FALSE])
}

#' Products of the members of the basis, from sums of products of monomials for each cell
#' @noRd
gram_of <- function(basis, sums) {
  gram <- matrix(0, length(basis$monomial), length(basis$monomial))
  for (cell in seq_len(nrow(basis$parts))) {
    part <- basis$parts[cell, basis$part]
    own <- which(part != 0)
    m <- basis$monomial[own]
    gram[own, own] <- gram[own, own] + outer(part[own], part[own]) *
      sums$values[cell, sums$at[m, m]]
  }
  gram
}

#' A matrix of which `gram` is the crossprod(), with as many rows as the rank of `gram`
#' @noRd
root_of <- function(gram) {
  size <- sqrt(diag(gram))
  size[size == 0] <- 1
  upper <- suppressWarnings(chol(gram / outer(size, size), pivot = TRUE))
  upper <- upper[seq_len(attr(upper, "rank")), order(attr(upper, "pivot")), drop = FALSE]
  upper * rep(size, each = nrow(upper))
}

#' What a database must compute for a formula, with the means of atoms and the cells
#'
#' @return A list: `con`, `from` (SQL), `complete` (a condition in SQL), `n`, `omitted`, `terms`,
#'   `variables` (below), `atoms` (SQL), `centre` and `cells` (for each variable that is a factor
#'   its values, and the number of rows).
#' @noRd
database_design <- function(con, table, formula, head = NULL) {
  need_package("DBI", "a regression in a database")
  if (!inherits(con, "DBIConnection"))
    refuse(con, "con", "a connection made by `DBI::dbConnect()`")
  formula <- check_formula(formula, 2)
  from <- database_from(con, table)
  if (is.null(head)) head <- ask_frame(con, paste("SELECT * FROM", from, "LIMIT", FIRST_ROWS))
  terms <- formula_terms(formula, head)
  require_terms(terms, formula)
  for (at in attr(terms, "offset")) refuse_in_database(attr(terms, "variables")[[at + 1]])
  columns <- formula_columns(terms, head)
  work <- list2env(list(con = con, where = environment(terms), atoms = character(),
                        labels = list(), functions = list(),
                        columns = column_types(con, from, head, columns)), parent = emptyenv())
  variables <- read_variables(terms, work)
  if (variables[[1]]$type != "numeric")
    fail("`data` must have a numeric response, not `", names(variables)[1], "` of type ",
         variables[[1]]$type, ".")
  design <- list(con = con, from = from, terms = terms, variables = variables, atoms = work$atoms,
                 complete = nothing_missing(con, columns_for_omit(formula, head)))
  design <- c(design, check_values(design, work))
  work$centre <- design$centre
  design$variables <- read_variables(terms, work)
  design$cells <- database_cells(design)
  design
}

# The columns that complete_data() takes: with `.` all, also those that were removed from it.
columns_for_omit <- function(formula, head) {
  read <- all.vars(formula)
  if ("." %in% read) names(head) else intersect(read, names(head))
}

# Queries -----------------------------------------------------------------------------------------

#' The table or the query in parentheses, as it stands after FROM
#' @noRd
database_from <- function(con, table) {
  if (inherits(table, "SQL")) {
    query <- sub("[[:space:];]+$", "", as.character(table))
    # a comment at the end of the query must not take the parenthesis
    return(paste0("(", query, "\n) AS ", quoted(con, "rows_of_query")))
  }
  if (!is_one_string(table) && !inherits(table, "Id"))
    refuse(table, "table", "the name of a table, `DBI::Id()`, or a query as `DBI::SQL()`")
  as.character(DBI::dbQuoteIdentifier(con, table))
}

quoted <- function(con, name) as.character(DBI::dbQuoteIdentifier(con, name))

# With 17 digits: dbQuoteLiteral() writes numbers with 15.
number_sql <- function(con, x)
  paste0("CAST(", DBI::dbQuoteLiteral(con, sprintf("%.17g", x)), " AS DOUBLE PRECISION)")

nothing_missing <- function(con, columns)
  paste(c(vapply(columns, function(name) paste(quoted(con, name), "IS NOT NULL"), "")),
        collapse = " AND ")

#' The result of a query, or the error of the database as ours
#'
#' dbGetQuery() of RPostgreSQL prints errors and raises none.
#' @noRd
ask_frame <- function(con, sql) {
  tryCatch(refuse_mixed(all_of_result(con, sql), 0), logevidence_error = stop,
           error = function(e) fail("The database could not answer a query for the sums: ",
                                    gsub("[[:space:]]+", " ", sub("[.]?[[:space:]]*$", "",
                                                                  conditionMessage(e))), "."))
}

all_of_result <- function(con, sql) {
  result <- DBI::dbSendQuery(con, sql)
  on.exit(quietly(DBI::dbClearResult(result)))
  DBI::dbFetch(result, -1)
}

#' A row of numbers
#' @noRd
ask_numbers <- function(con, sql) {
  answer <- ask_frame(con, sql)
  vapply(answer, as.double, 0, USE.NAMES = FALSE)
}

is_sqlite <- function(con) inherits(con, "SQLiteConnection")
is_mysql <- function(con) inherits(con, c("MariaDBConnection", "MySQLConnection"))

# Columns -----------------------------------------------------------------------------------------

#' What is known about the columns that a formula reads
#'
#' @return For each column a list: `type`, of column_kind(), and `first`, its first values.
#' @noRd
column_types <- function(con, from, head, columns) {
  lapply(stats::setNames(nm = columns), function(name) {
    first <- head[[name]]
    # of a column of NULLs only, SQLite does not know the type
    if (all(is.na(first)) && !is.factor(first)) {
      own <- quoted(con, name)
      more <- ask_frame(con, paste("SELECT", own, "FROM", from, "WHERE", own,
                                   "IS NOT NULL LIMIT 1"))
      if (nrow(more)) first <- more[[1]]
    }
    type <- column_kind(first)
    if (type == "integer64") type <- "numeric"
    if (!type %in% c("numeric", "factor", "logical", "Date"))
      fail("`data` must have numeric, logical, character or factor covariates, or dates, not `",
           name, "` of type ", type, ".")
    list(type = type, first = first)
  })
}

#' A column as a number, of double precision: whole numbers would overflow in sums
#' @noRd
number_of_column <- function(work, name) {
  sql <- quoted(work$con, name)
  switch(work$columns[[name]]$type,
         numeric = paste0("CAST(", sql, " AS DOUBLE PRECISION)"),
         logical = paste0("(CASE WHEN ", sql, " THEN 1.0 ELSE 0.0 END)"),
         Date = days_of_column(work$con, sql))
}

#' Days since 1970-01-01, as the numbers of R's dates
#'
#' SQLite has no type for dates. RSQLite takes numbers in columns that are declared as dates for
#' days, and texts for dates.
#' @noRd
days_of_column <- function(con, sql) {
  origin <- as.character(DBI::dbQuoteLiteral(con, "1970-01-01"))
  if (is_sqlite(con))
    return(paste0("(CASE WHEN typeof(", sql, ") = 'text' THEN julianday(", sql, ") - julianday(",
                  origin, ") ELSE CAST(", sql, " AS DOUBLE PRECISION) END)"))
  if (is_mysql(con)) return(paste0("CAST(DATEDIFF(", sql, ", ", origin, ") AS DOUBLE PRECISION)"))
  paste0("CAST(", sql, " - CAST(", origin, " AS DATE) AS DOUBLE PRECISION)")
}

# Formulas ----------------------------------------------------------------------------------------

read_variables <- function(terms, work) {
  variables <- as.list(attr(terms, "variables"))[-1]
  stats::setNames(lapply(variables, read_variable, work), vapply(variables, deparse1, ""))
}

#' A variable of a formula
#'
#' @return A list: its `type`, and a `polynomial` of atoms; or of a factor its `key` in SQL, and a
#'   function `values` that makes an R vector of the values of the key.
#' @noRd
read_variable <- function(v, work) {
  inner <- without_marks(v)
  column <- if (is.name(inner)) work$columns[[as.character(inner)]]
  if (!is.null(column) && column$type %in% c("factor", "logical"))
    return(factor_variable(work, as.character(inner), column))
  if (is.call(inner) && is.name(inner[[1]]) && length(inner) == 2 && is.name(inner[[2]]) &&
      as.character(inner[[1]]) %in% c("factor", "as.factor") &&
      as.character(inner[[2]]) %in% names(work$columns)) {
    check_own_function(inner, v, work)
    name <- as.character(inner[[2]])
    column <- work$columns[[name]]
    if (column$type == "Date") refuse_in_database(v)
    made <- factor_variable(work, name, column)
    made$values <- function(x) factor(column_values(column, x))
    made$type <- "factor"
    return(made)
  }
  if (!is.null(column))
    return(list(polynomial = atom_of(number_of_column(work, as.character(inner)), v, work),
                type = column$type))
  if (!any(all.vars(inner) %in% names(work$columns)))
    fail("`formula` must have a column of the table in each variable, not only constants as in `",
         deparse1(v), "`.")
  list(polynomial = polynomial_of(inner, v, work), type = "numeric")
}

# The expression within I() and parentheses.
without_marks <- function(v) {
  while (is.call(v) && length(v) == 2 && (identical(v[[1]], quote(I)) ||
                                          identical(v[[1]], quote(`(`)))) v <- v[[2]]
  v
}

factor_variable <- function(work, name, column) {
  key <- quoted(work$con, name)
  # a column may be declared to take "a" and "A" for the same
  if (is_sqlite(work$con) && column$type == "factor") key <- paste(key, "COLLATE BINARY")
  list(key = key, type = column$type, column = name,
       values = function(x) factor_values(column, x, name))
}

# The values of a column as R has them when rows are read.
column_values <- function(column, x) {
  switch(column$type, logical = as.logical(x), numeric = as.double(x),
         factor = if (is.factor(column$first)) as.character(x) else enc2utf8(as.character(x)))
}

factor_values <- function(column, x, name) {
  x <- column_values(column, x)
  if (is.logical(x)) return(x)
  first <- column$first
  if (!is.factor(first)) return(factor(x, levels_of_column(x)))
  unknown <- setdiff(x, levels(first))
  if (length(unknown))
    fail("`data` must have only known levels in `", name, "` (", show_levels(levels(first)),
         "), not ", show_text(unknown[1]), ".")
  x <- factor(x, levels(first), ordered = is.ordered(first))
  attr(x, "contrasts") <- attr(first, "contrasts")
  x
}

refuse_in_database <- function(e, why = NULL) {
  fail("`formula` must be one that a database can compute, not with `", deparse1(e), "`", why,
       ". It may have columns, factor(), I(), log(), exp(), sqrt(), abs() and arithmetic with ",
       "constants. Compute other columns in a query, or read the rows: see rows_dbi().")
}

# A function that the formula's environment has under a name of R must be that of R.
check_own_function <- function(call, v, work) {
  name <- as.character(call[[1]])
  if (!identical(get0(name, work$where, mode = "function"), get(name, baseenv())))
    refuse_in_database(v)
}

ARITHMETIC <- c("+", "-", "*", "/", "^")

# An expression without columns: its value. NULL for others.
constant_value <- function(e, v, work) {
  if (any(all.vars(e) %in% names(work$columns))) return(NULL)
  value <- tryCatch(eval(e, work$where), error = function(problem)
    refuse_in_database(v, paste0(" (", conditionMessage(problem), ")")))
  if (is.logical(value)) value <- as.numeric(value)
  if (!is_one_number(value)) refuse_in_database(v)
  as.double(value)
}

# The name of the function of a call, which must be one that is translated.
function_of <- function(e, v, work) {
  if (!is.call(e) || !is.name(e[[1]])) refuse_in_database(v)
  name <- as.character(e[[1]])
  if (!name %in% c(ARITHMETIC, "(", "I", "as.numeric", "as.double", "log", "log2", "log10", "exp",
                   "sqrt", "abs")) refuse_in_database(v)
  check_own_function(e, v, work)
  name
}

# A column within an expression.
column_in_expression <- function(e, v, work, dates = FALSE) {
  type <- work$columns[[as.character(e)]]$type
  if (type == "factor") refuse_in_database(v)
  if (type == "Date" && !dates)
    refuse_in_database(v, paste0(" (use as.numeric(", deparse1(e), "), the number of days)"))
  number_of_column(work, as.character(e))
}

# Polynomials of centred atoms: coefficients named by their atoms, ".const" for the constant, "1"
# for the first atom, "1*2" for its product with the second. Formulas are read twice: when the means
# are not known yet, they are taken as 1. Coefficients of zero stay, so that both give the same
# terms. (x - 10^6)^3 has small coefficients, as the difference is computed first.
CONSTANT <- ".const"

#' An expression as a polynomial of atoms
#'
#' @param v The variable of the formula, for errors.
#' @noRd
polynomial_of <- function(e, v, work) {
  value <- constant_value(e, v, work)
  if (!is.null(value)) return(stats::setNames(value, CONSTANT))
  if (is.name(e)) return(atom_of(column_in_expression(e, v, work), e, work))
  f <- function_of(e, v, work)
  if (f %in% c("(", "I") && length(e) == 2) return(polynomial_of(e[[2]], v, work))
  expanded <- if (f %in% ARITHMETIC) expand(f, e, v, work)
  if (!is.null(expanded)) expanded else atom_of(sql_of(e, v, work), e, work)
}

# NULL if it is no polynomial, or one with very many terms.
expand <- function(f, e, v, work) {
  if (f == "/" || f == "^") {
    second <- constant_value(e[[3]], v, work)
    if (is.null(second)) return(NULL)
    if (f == "^" && !second %in% 1:6) return(NULL)
    if (f == "/" && second == 0) refuse_in_database(v)
    a <- polynomial_of(e[[2]], v, work)
    if (f == "/") return(a / second)
    product <- a
    for (i in seq_len(second - 1)) {
      product <- times(product, a)
      if (length(product) > MOST_EXPANDED) return(NULL)
    }
    return(product)
  }
  a <- polynomial_of(e[[2]], v, work)
  if (length(e) == 2) return(if (f == "-") -a else a)
  b <- polynomial_of(e[[3]], v, work)
  result <- switch(f, "+" = plus(a, b), "-" = plus(a, -b), "*" = times(a, b))
  if (length(result) <= MOST_EXPANDED) result
}

atom_of <- function(sql, e, work) {
  if (nchar(sql) > MOST_SQL) refuse_in_database(e, " (it is too long)")
  at <- match(sql, work$atoms)
  if (is.na(at)) {
    work$atoms <- c(work$atoms, sql)
    work$labels <- c(work$labels, deparse1(e))
    at <- length(work$atoms)
  }
  centre <- if (is.null(work$centre)) 1 else work$centre[at]
  stats::setNames(c(1, centre), c(at, CONSTANT))
}

plus <- function(a, b) {
  for (name in names(b)) a[name] <- b[[name]] + if (name %in% names(a)) a[[name]] else 0
  a
}

times <- function(a, b) {
  product <- stats::setNames(numeric(), character())
  for (i in names(a)) for (j in names(b)) {
    name <- joined(i, j)
    product[name] <- a[[i]] * b[[j]] + if (name %in% names(product)) product[[name]] else 0
  }
  product
}

atoms_in <- function(name)
  if (name == CONSTANT) integer() else as.integer(strsplit(name, "*", fixed = TRUE)[[1]])

joined <- function(i, j) {
  atoms <- sort(c(atoms_in(i), atoms_in(j)))
  if (length(atoms)) paste(atoms, collapse = "*") else CONSTANT
}

#' An expression in SQL
#'
#' Where R has no finite number, such as for the logarithm of a negative number, it is NULL, because
#' some databases raise an error instead.
#' @noRd
sql_of <- function(e, v, work) {
  con <- work$con
  value <- constant_value(e, v, work)
  if (!is.null(value)) return(number_sql(con, value))
  if (is.name(e)) return(column_in_expression(e, v, work))
  f <- function_of(e, v, work)
  if (!is.null(names(e)) && any(nzchar(names(e))) && f != "log") refuse_in_database(v)
  if (length(e) > if (f %in% c(ARITHMETIC, "log")) 3 else 2) refuse_in_database(v)
  if (f %in% c("as.numeric", "as.double") && is.name(e[[2]]))
    return(column_in_expression(e[[2]], v, work, dates = TRUE))
  if (f == "log") return(log_sql(e, v, work))
  a <- sql_of(e[[2]], v, work)
  if (f %in% c("(", "I", "as.numeric", "as.double")) return(a)
  if (length(e) == 2 && f %in% ARITHMETIC) return(if (f == "-") paste0("(- ", a, ")") else a)
  if (f == "^") return(power_sql(a, e[[3]], v, work))
  if (f == "abs") return(paste0("ABS(", a, ")"))
  if (f %in% ARITHMETIC) {
    b <- sql_of(e[[3]], v, work)
    return(if (f == "/") paste0("(", a, " / NULLIF(", b, ", 0.0))")
           else paste0("(", a, " ", f, " ", b, ")"))
  }
  switch(f,
         log2 = paste0("(", ln_sql(a, work), " / ", number_sql(con, log(2)), ")"),
         log10 = paste0("(", ln_sql(a, work), " / ", number_sql(con, log(10)), ")"),
         exp = exp_sql(a, work),
         sqrt = paste0(function_sql("sqrt", work), "(CASE WHEN ", a, " >= 0.0 THEN ", a, " END)"))
}

log_sql <- function(e, v, work) {
  e <- match.call(function(x, base) NULL, e)
  if (is.null(e$x)) refuse_in_database(v)
  a <- ln_sql(sql_of(e$x, v, work), work)
  if (is.null(e$base)) return(a)
  base <- constant_value(e$base, v, work)
  if (is.null(base) || base <= 0 || base == 1) refuse_in_database(v)
  paste0("(", a, " / ", number_sql(work$con, log(base)), ")")
}

ln_sql <- function(a, work)
  paste0(function_sql("ln", work), "(CASE WHEN ", a, " > 0.0 THEN ", a, " END)")

# PostgreSQL raises an error where the result is too large or too small for a number.
exp_sql <- function(a, work)
  paste0("(CASE WHEN ", a, " < -745.0 THEN 0.0 WHEN ", a, " < 709.75 THEN ",
         function_sql("exp", work), "(", a, ") END)")

power_sql <- function(a, power, v, work) {
  k <- constant_value(power, v, work)
  if (is.null(k)) refuse_in_database(v)
  if (k == round(k) && abs(k) <= 8) {
    if (k == 0) refuse_in_database(v)
    product <- paste0("(", paste(rep(a, abs(k)), collapse = " * "), ")")
    return(if (k > 0) product else paste0("(1.0 / NULLIF(", product, ", 0.0))"))
  }
  paste0("(CASE WHEN ", a, " > 0.0 THEN ", function_sql("power", work), "(", a, ", ",
         number_sql(work$con, k), ")", if (k > 0) paste0(" WHEN ", a, " = 0.0 THEN 0.0"), " END)")
}

# The value of each function at 2, and names that it may have. LOG() is the natural logarithm in
# some databases only. SQLite may have been built without functions.
FUNCTIONS <- list(ln = list(at_2 = log(2), names = c("LN", "LOG")),
                  exp = list(at_2 = exp(2), names = "EXP"),
                  sqrt = list(at_2 = sqrt(2), names = "SQRT"),
                  power = list(at_2 = sqrt(2), names = c("POWER", "POW"), second = 0.5))

#' The name of a function in this database
#' @noRd
function_sql <- function(f, work) {
  if (is.null(work$functions[[f]])) {
    known <- FUNCTIONS[[f]]
    arguments <- paste(vapply(c(2, known$second), number_sql, "", con = work$con), collapse = ", ")
    right <- function(name) {
      answer <- quietly(all_of_result(work$con, paste0("SELECT ", name, "(", arguments, ")")))
      is.data.frame(answer) && isTRUE(all.equal(as.double(answer[[1]]), known$at_2, 1e-12))
    }
    names <- Filter(right, known$names)
    if (!length(names))
      fail("The database must have the function ", known$names[1], "(), which the formula needs. ",
           "Compute the column when the table is made, or read the rows: see rows_dbi().")
    work$functions[[f]] <- names[1]
  }
  work$functions[[f]]
}

# Checks and means --------------------------------------------------------------------------------

#' Refuse values that are not finite or of another type
#'
#' @return A list: `n`, `omitted` and the `centre` of each atom.
#' @noRd
check_values <- function(design, work) {
  con <- design$con
  total <- ask_numbers(con, paste("SELECT COUNT(*) FROM", design$from))
  check_some_rows(total)
  # x - x is NaN or NULL if x is not finite
  not_finite <- function(x) paste0("SUM(CASE WHEN ", x, " - ", x, " = 0.0 THEN 0.0 ELSE 1.0 END)")
  columns <- work$columns
  numeric <- names(columns)[vapply(columns, function(column) column$type == "numeric", NA)]
  checks <- c(if (is_sqlite(con)) vapply(names(columns), other_type, "", work),
              vapply(numeric, function(name) not_finite(number_of_column(work, name)), ""),
              vapply(design$atoms, not_finite, ""))
  means <- sprintf("AVG(%s)", design$atoms)
  asked <- c("COUNT(*)", checks, means)
  answer <- unlist(lapply(split(asked, (seq_along(asked) - 1) %/% QUERY_SUMS), function(part)
    ask_numbers(con, paste("SELECT", paste(part, collapse = ", "), "FROM", design$from, "WHERE",
                           design$complete))), use.names = FALSE)
  n <- answer[1]
  if (n == 0) fail("`data` must have a row without missing values.")
  bad <- answer[1 + seq_along(checks)]
  at <- which(bad > 0)[1]
  if (!is.na(at)) {
    types <- length(checks) - length(numeric) - length(design$atoms)
    name <- c(if (types) names(columns), numeric, unlist(work$labels))[at]
    if (at <= types)
      fail("`data` must have values of one type in each column, not so in `", name,
           "`: use CAST(... AS REAL) or CAST(... AS TEXT) in a query.")
    fail("`data` must have only finite values, not NaN or infinite ones in `", name, "` (in ",
         count_of(bad[at], "row"), ").")
  }
  centre <- utils::tail(answer, length(means))
  refuse_large_sums(centre)
  if (n > total) refuse_changing_rows()
  list(n = n, omitted = total - n, centre = centre)
}

# SQLite would take the text "fast" for the number 0.
other_type <- function(name, work) {
  types <- switch(work$columns[[name]]$type, factor = "'text'", numeric = "'integer', 'real'",
                  Date = "'integer', 'real', 'text'", logical = "'integer'")
  paste0("SUM(CASE WHEN typeof(", quoted(work$con, name), ") IN (", types,
         ") THEN 0.0 ELSE 1.0 END)")
}

refuse_large_sums <- function(sums) {
  if (!all(is.finite(sums)))
    fail("The sums of the database must be finite, which they are not: the values of columns are ",
         "too large. Divide them by a constant.")
}

#' The combinations of the levels of factors, with their numbers of rows
#' @noRd
database_cells <- function(design) {
  keys <- keys_of(design)
  if (!length(keys)) return(list(values = list(), n = design$n))
  answer <- ask_frame(design$con, paste(
    "SELECT", paste(c(keys, "COUNT(*)"), collapse = ", "), "FROM", design$from, "WHERE",
    design$complete, "GROUP BY", paste(keys, collapse = ", "), "LIMIT", MOST_CELLS + 1))
  for (i in seq_along(keys)) {
    levels <- length(unique(answer[[i]]))
    if (levels > MOST_LEVELS)
      fail("`data` must have at most ", MOST_LEVELS, " levels in the factor `", names(keys)[i],
           "` for sums in a database, not ", if (nrow(answer) > MOST_CELLS) "at least ",
           count(levels), ". Read the rows instead: see rows_dbi().")
  }
  if (nrow(answer) > MOST_CELLS)
    fail("`data` must have at most ", count(MOST_CELLS), " combinations of the levels of ",
         show_names(names(keys)), " for sums in a database. Read the rows instead: see rows_dbi().")
  values <- lapply(seq_along(keys), function(i) {
    x <- design$variables[[names(keys)[i]]]$values(answer[[i]])
    if (is.factor(x) && nlevels(x) < 2)
      fail("`data` must have at least two levels in the factor `", names(keys)[i], "`, not only ",
           show_text(levels(x)), ".")
    x
  })
  names(values) <- names(keys)
  list(values = values, raw = answer[seq_along(keys)], n = as.double(answer[[length(keys) + 1]]))
}

keys_of <- function(design) {
  keys <- lapply(design$variables, `[[`, "key")
  unlist(keys[!vapply(keys, is.null, NA)])
}

# Columns of the model matrix ---------------------------------------------------------------------

#' The columns of the model matrix and the response as linear functions of a basis
#'
#' A member of the basis is the product of a monomial of centred atoms and of a part, which is a
#' number for each cell.
#'
#' @return A list: `monomials` (names, as of polynomials), `parts` (a matrix of cells x parts), and
#'   for each member of the basis its `monomial` and its `part`; `to`, a matrix of basis x columns.
#' @noRd
database_basis <- function(design) {
  terms <- design$terms
  values <- lapply(names(design$variables), function(name)
    if (is.null(design$variables[[name]]$key)) rep(1, length(design$cells$n))
    else design$cells$values[[name]])
  names(values) <- names(design$variables)
  frame <- structure(values, class = "data.frame", terms = terms,
                     row.names = .set_row_names(length(design$cells$n)))
  x <- stats::model.matrix(terms, frame)
  term <- attr(x, "assign")
  numbers <- lapply(unique(term), function(t) term_polynomial(design, t))
  polynomials <- c(numbers[match(term, unique(term))],
                   list(design$variables[[1]]$polynomial))
  polynomials <- lapply(polynomials, function(polynomial) polynomial[polynomial != 0])
  columns <- c(lapply(seq_len(ncol(x)), function(j) unname(x[, j])), list(rep(1, nrow(x))))
  parts <- unique(columns)
  part <- match(columns, parts)
  members <- unique(do.call(rbind, lapply(seq_along(columns), function(j)
    data.frame(monomial = names(polynomials[[j]]), part = rep(part[j], length(polynomials[[j]]))))))
  if (nrow(members) > MOST_BASIS)
    fail("`formula` must have fewer columns for sums in a database, not ", ncol(x),
         ". Read the rows instead: see rows_dbi().")
  to <- matrix(0, nrow(members), length(columns),
               dimnames = list(NULL, c(make.unique(as.character(colnames(x))),
                                       names(design$variables)[1])))
  key <- paste(members$monomial, members$part)
  for (j in seq_along(columns))
    to[match(paste(names(polynomials[[j]]), part[j]), key), j] <- polynomials[[j]]
  monomials <- unique(members$monomial)
  list(monomials = monomials, parts = matrix(unlist(parts), nrow(x)),
       monomial = match(members$monomial, monomials), part = members$part, to = to)
}

# The product of the numeric variables of a term; 1 for a term without, and for the intercept.
term_polynomial <- function(design, t) {
  product <- stats::setNames(1, CONSTANT)
  if (t > 0) for (i in which(attr(design$terms, "factors")[, t] > 0)) {
    variable <- design$variables[[i]]
    if (!is.null(variable$polynomial)) product <- times(product, variable$polynomial)
    if (length(product) > MOST_BASIS)
      refuse_in_database(str2lang(attr(design$terms, "term.labels")[t]), " (it is too long)")
  }
  product
}

#' Sums of products of two monomials, for each cell
#'
#' @return A list: `values` (cells x products), and `at`, a matrix of the columns of `values` that
#'   have the products of two monomials.
#' @noRd
database_products <- function(design, basis) {
  m <- basis$monomials
  products <- outer(m, m, Vectorize(joined))
  asked <- unique(c(products[upper.tri(products, TRUE)]))
  if (length(asked) > MOST_SUMS)
    fail("`formula` must have fewer columns for sums in a database: it needs ",
         count(length(asked)), " sums. Read the rows instead: see rows_dbi().")
  sums <- setdiff(asked, CONSTANT)
  values <- cbind(design$cells$n, cell_sums(design, sum_sql(design, sums)))
  list(values = values, at = matrix(match(products, c(CONSTANT, sums)), length(m)))
}

sum_sql <- function(design, monomials) paste0("SUM(", monomial_sql(design, monomials), ")")

monomial_sql <- function(design, monomials) {
  names <- atom_names(design)
  vapply(monomials, function(monomial)
    if (monomial == CONSTANT) "1.0" else paste(names[atoms_in(monomial)], collapse = " * "), "",
    USE.NAMES = FALSE)
}

atom_names <- function(design)
  quoted_all(design$con, sprintf("value_%d", seq_along(design$atoms)))

quoted_all <- function(con, names) vapply(names, quoted, "", con = con, USE.NAMES = FALSE)

key_names <- function(design)
  quoted_all(design$con, sprintf("key_%d", seq_along(keys_of(design))))

#' The query of the keys and of the centred atoms
#'
#' SQLite would put the expression of a column wherever the outer query names it, unless there is a
#' limit; with it, sums take half of the time. In PostgreSQL OFFSET 0 does the same and saves a
#' third, but then only one process sums.
#' @noRd
centred_rows <- function(design) {
  con <- design$con
  centred <- sprintf("%s - %s AS %s", design$atoms,
                     vapply(design$centre, function(x) number_sql(con, x), ""), atom_names(design))
  paste0("SELECT ", paste(c(sprintf("%s AS %s", keys_of(design), key_names(design)), centred),
                          collapse = ", "),
         " FROM ", design$from, " WHERE ", design$complete,
         if (is_sqlite(con)) " LIMIT -1 OFFSET 0")
}

#' Sums of expressions for each cell
#'
#' @param sums Expressions in SQL.
#' @return A matrix of cells x sums.
#' @noRd
cell_sums <- function(design, sums) {
  parts <- split(sums, (seq_along(sums) - 1) %/% QUERY_SUMS)
  values <- do.call(cbind, lapply(parts, function(part) sums_of_query(design, part)))
  refuse_large_sums(values)
  values
}

sums_of_query <- function(design, sums) {
  con <- design$con
  keys <- key_names(design)
  answer <- ask_frame(con, paste0(
    "SELECT ", paste(c(keys, "COUNT(*)", sums), collapse = ", "), " FROM (",
    centred_rows(design), ") AS ",
    quoted(con, "rows_of_sums"),
    if (length(keys)) paste(" GROUP BY", paste(keys, collapse = ", "))))
  at <- match_cells(answer[seq_along(keys)], design$cells$raw, nrow(answer))
  n <- as.double(answer[[length(keys) + 1]])
  if (length(n) != length(design$cells$n) || anyNA(at) || any(n != design$cells$n[at]))
    refuse_changing_rows()
  values <- vapply(answer[-seq_len(length(keys) + 1)], as.double, numeric(length(n)),
                   USE.NAMES = FALSE)
  matrix(values, length(n))[order(at), , drop = FALSE]
}

# Which of the known cells each row of an answer is.
match_cells <- function(answer, known, n) {
  if (!length(known)) return(rep(1L, n))
  codes <- function(frame) do.call(paste, lapply(seq_along(known), function(i)
    match(as.character(frame[[i]]), unique(as.character(known[[i]])))))
  match(codes(answer), codes(known))
}

refuse_changing_rows <- function()
  fail("The rows in the database have changed while they were read.")

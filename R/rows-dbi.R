# Rows from a database, by the package DBI.

#' Rows from a database
#'
#' A source of rows for [evidence()]: a table or the result of a query, by any driver of the package
#' DBI (RSQLite, RPostgres, RPostgreSQL, RMariaDB and others). Rows are fetched in blocks.
#'
#' @param con A connection made by `DBI::dbConnect()`. It stays open.
#' @param query A query in SQL, or the name of a table (also as `DBI::Id()`). A database may return
#'   rows in any order: use `ORDER BY` in a query if results shall be reproducible.
#' @param levels A list of levels of factors, named by columns, as for [rows_csv()]. Without it, the
#'   levels of a column of text are those in the first 10,000 rows.
#' @param block Number of rows that are fetched at a time. It does not change the results.
#' @param push Whether the database computes the sums that a linear regression needs, so that only
#'   the first rows are read. For [linear_regression()] and gaussian [regression()] with constant
#'   noise; see Details.
#'
#' @details
#' The query is sent when a run begins. Its result is cleared when the run ends, also by an error or
#' an interrupt. To read the rows again the query is sent again. Use the connection for nothing else
#' during a run, because most drivers allow one open result per connection. The number of rows of a
#' table is asked for; that of a query is not known.
#'
#' Memory stays small as far as the driver fetches results in parts. RSQLite, RPostgres and RMariaDB
#' do so. RPostgreSQL would read the whole result at once, so for it the rows come through a cursor
#' (`DECLARE ... CURSOR WITH HOLD`), for which the server keeps a copy of the result until the run
#' ends. DuckDB keeps the whole result in memory, too; its Arrow stream does not: use
#' `rows_arrow(function() duckdb::duckdb_fetch_record_batch(DBI::dbSendQuery(con, query, arrow =
#' TRUE)))`, which needs the package arrow.
#'
#' **In the database.** With `push = TRUE` the number of rows and the sums of products of the
#' columns of the model matrix come from some queries with `SUM()`, and rows with missing values are
#' left out, with a message. The formula may have numbers, factors (of text or logical values, up to
#' 100 levels), dates, interactions, powers, and `log()`, `exp()`, `sqrt()` and `abs()` of columns;
#' what SQL cannot compute is refused, with the term. The method is [laplace()] with importance
#' sampling, [bic()], or [exact()] where the evidence has a closed form, and the result that of the
#' same method for the rows in memory, up to rounding. With many columns the sums can take longer
#' than reading the rows. Replicates, `target_se`, `time_limit` and checkpoints are those of rows in
#' memory; a checkpoint has the sums, and [resume()] needs no database. Such fits can be compared
#' with each other, but not with fits of rows that were read, because the values of the rows are not
#' known.
#'
#' The columns of an SQLite table may have values of several types. If numbers of different kinds,
#' or text and numbers, come in one column, RSQLite would change some values, and this is an error:
#' use `CAST(x AS REAL)` in the query.
#'
#' @inherit rows_function return
#'
#' @examples
#' if (requireNamespace("DBI", quietly = TRUE) && requireNamespace("RSQLite", quietly = TRUE)) {
#'   con <- DBI::dbConnect(RSQLite::SQLite(), ":memory:")
#'   DBI::dbWriteTable(con, "cars", cars)
#'   print(rows_dbi(con, "cars"))
#'   rows <- rows_dbi(con, "SELECT speed, dist FROM cars WHERE speed < 20 ORDER BY speed")
#'   print(evidence(linear_regression(dist ~ speed, sigma = 15, prior_sd = 10), rows, seed = 1))
#'   DBI::dbDisconnect(con)
#' }
#'
#' @family sources of rows
#' @export
rows_dbi <- function(con, query, levels = NULL, block = 10000, push = FALSE) {
  need_package("DBI", "rows_dbi()")
  if (!inherits(con, "DBIConnection"))
    refuse(con, "con", "a connection made by `DBI::dbConnect()`")
  # RPostgreSQL has no dbIsValid()
  valid <- tryCatch(DBI::dbIsValid(con), error = function(e) TRUE)
  if (!valid) fail("`con` must be an open connection, not one that is closed.")
  if (!is_one_string(query) && !inherits(query, "Id"))
    refuse(query, "query", "a query in SQL or the name of a table")
  levels <- check_source_levels(levels)
  block <- check_count(block, "block", 1, 1e8)
  check_is_query(con, query)
  table <- if (is_table(con, query)) as.character(DBI::dbQuoteIdentifier(con, query))
  sql <- if (is.null(table)) as.character(query) else paste("SELECT * FROM", table)
  source <- new_source("rows_dbi", function() describe_dbi(con, table, sql),
                       function() dbi_reader(con, sql, levels, block), rewinds = TRUE,
                       count = table_counter(con, table), lasts = FALSE)
  if (check_flag(push, "push"))
    source$push <- list(con = con, table = if (is.null(table)) DBI::SQL(sql) else query)
  source
}

#' An error if a suggested package is not installed
#' @noRd
need_package <- function(package, what) {
  if (!requireNamespace(package, quietly = TRUE))
    fail(what, " needs the package ", package, ", which is not installed.")
}

# A query has more than one word.
check_is_query <- function(con, query) {
  name <- if (inherits(query, "Id")) or_null(as.character(DBI::dbQuoteIdentifier(con, query)))
  else if (!inherits(query, "SQL") && !grepl("[[:space:](]", trimws(query))) query
  if (is.null(name)) return(invisible())
  there <- tryCatch(DBI::dbExistsTable(con, query), error = function(e) NA)
  if (!isFALSE(there)) return(invisible())
  tables <- tryCatch(DBI::dbListTables(con), error = function(e) character())
  fail("`query` must be a query in SQL or the name of a table, not ", show_text(name),
       ": the database has ", if (length(tables)) paste("the tables", show_names(tables))
       else "no table of this name", ".")
}

is_table <- function(con, query) {
  if (inherits(query, "Id")) return(TRUE)
  if (inherits(query, "SQL")) return(FALSE)
  isTRUE(tryCatch(DBI::dbExistsTable(con, query), error = function(e) FALSE))
}

describe_dbi <- function(con, table, sql) {
  lines <- list(if (is.null(table)) "Rows from a query" else paste("Rows from the table", table))
  lines$database <- sub("Connection$", "", class(con)[1])
  if (is.null(table)) lines$query <- shorten(gsub("[[:space:]]+", " ", sql), 70)
  lines
}

# Asked once: another query would end the result of one that is being read.
table_counter <- function(con, table) {
  n <- NULL
  function() {
    if (is.null(table)) return(NA_real_)
    if (is.null(n)) n <<- tryCatch(
      as.double(DBI::dbGetQuery(con, paste("SELECT COUNT(*) FROM", table))[[1]]),
      error = function(e) NA_real_
    )
    n
  }
}

dbi_reader <- function(con, sql, levels, block) {
  by_cursor <- inherits(con, "PostgreSQLConnection")
  from <- if (by_cursor) cursor_rows(con, sql) else result_rows(con, sql)
  rows <- 0
  read <- function() {
    frame <- refuse_mixed(from$fetch(block), rows)
    if (is.null(frame) || nrow(frame) == 0) return(NULL)
    frame[] <- lapply(frame, function(x) if (inherits(x, "integer64")) as.double(x) else x)
    frame <- with_levels(frame, levels, rows)
    rows <<- rows + nrow(frame)
    frame
  }
  list(read = read, close = from$close)
}

# A lost connection must not hide the error that came first.
quietly <- function(expr) suppressWarnings(tryCatch(expr, error = function(e) NULL))

# What the database says of a query that it refuses, in a sentence.
accepted <- function(code) {
  tryCatch(code, error = function(e) {
    if (is_time_limit(e)) stop(e)
    fail("`query` must be one that the database accepts, and of this one it says: ",
         sub("[.[:space:]]+$", "", conditionMessage(e)), ".")
  })
}

result_rows <- function(con, sql) {
  result <- accepted(DBI::dbSendQuery(con, sql))
  list(fetch = function(n) if (!DBI::dbHasCompleted(result)) DBI::dbFetch(result, n),
       close = function() quietly(DBI::dbClearResult(result)))
}

cursor_rows <- function(con, sql) {
  name <- paste0("logevidence_", Sys.getpid(), "_", sub("[.]", "", proc.time()[["elapsed"]]))
  accepted(DBI::dbExecute(con, paste("DECLARE", name, "NO SCROLL CURSOR WITH HOLD FOR", sql)))
  # where the server does not answer, RPostgreSQL only warns
  fetch <- function(n) {
    rows <- DBI::dbGetQuery(con, paste("FETCH", plain_number(n), "FROM", name))
    if (is.null(rows)) stop(DBI::dbGetException(con)$errorMsg)
    rows
  }
  list(fetch = fetch,
       close = function() quietly(DBI::dbExecute(con, paste("CLOSE", name))))
}

# RSQLite warns when it has changed values of a column with several types.
refuse_mixed <- function(expr, rows) {
  withCallingHandlers(expr, warning = function(w) {
    if (!grepl("mixed type|coercing", conditionMessage(w))) return()
    fail("`data` must have values of one type in each column, not so in the rows after row ",
         plain_number(rows), " (", sub("[.]?\n*$", "", conditionMessage(w)),
         "): use CAST(... AS REAL) in the query.")
  })
}

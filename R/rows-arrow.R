# Rows from Arrow streams. The package nanoarrow makes the stream and converts columns of text; C
# reads the batches, and numeric columns without R's vectors (src/bridge/arrow.c).

#' Rows from an Arrow stream
#'
#' A source of rows for [evidence()]: whatever the package nanoarrow can make a stream of. These are
#' data frames, tables, datasets (of Parquet files, for example) and readers of the package arrow,
#' results of DuckDB and ADBC, and streams of nanoarrow.
#'
#' @param x An object for `nanoarrow::as_nanoarrow_array_stream()`, or a function without arguments
#'   that returns one. A function is called each time when the rows are read from the start. A
#'   stream or reader itself can be read only once.
#' @param levels A list of levels of factors, named by columns, as for [rows_csv()]. Without it, the
#'   levels of a column of text are those in the first 10,000 rows.
#'
#' @details
#' Batches are read by the Arrow C stream interface. If the formula of a [linear_regression()] or
#' [gaussian_mixture()] only names columns of numbers, these are used as they are stored; otherwise
#' the batches are converted to data frames. The stream is released when the run ends, also by an
#' error or an interrupt.
#'
#' @inherit rows_function return
#'
#' @examples
#' if (requireNamespace("nanoarrow", quietly = TRUE)) {
#'   rows <- rows_arrow(nanoarrow::as_nanoarrow_array_stream(cars))
#'   print(rows)
#'   print(evidence(linear_regression(dist ~ speed, sigma = 15, prior_sd = 10), rows, seed = 1))
#' }
#'
#' @family sources of rows
#' @export
rows_arrow <- function(x, levels = NULL) {
  need_package("nanoarrow", "rows_arrow()")
  levels <- check_source_levels(levels)
  if (!is.function(x) && !can_stream(x))
    refuse(x, "x", "an object that nanoarrow::as_nanoarrow_array_stream() accepts")
  again <- is.function(x) || !inherits(x, c("nanoarrow_array_stream", "RecordBatchReader"))
  opened <- FALSE
  new_source("rows_arrow", function() describe_arrow(x), function() {
    if (opened && !again) fail("The rows of an Arrow stream can be read only once.")
    opened <<- TRUE
    arrow_reader(if (is.function(x)) x() else x, levels)
  }, rewinds = again, count = function() if (length(dim(x)) == 2) as.double(nrow(x)) else NA_real_)
}

can_stream <- function(x) {
  any(vapply(class(x), function(class) {
    !is.null(utils::getS3method("as_nanoarrow_array_stream", class, optional = TRUE,
                                envir = asNamespace("nanoarrow")))
  }, NA))
}

describe_arrow <- function(x) {
  lines <- list(if (is.function(x)) "Rows from Arrow streams made by a function"
                else paste0("Rows from an Arrow stream (", class(x)[1], ")"))
  if (!inherits(x, "nanoarrow_array_stream")) return(lines)
  types <- tryCatch(arrow_types(x$get_schema()), error = function(e) NULL)
  if (!is.null(types)) lines$columns <- shorten(types, 200)
  lines
}

arrow_types <- function(schema) {
  type <- function(child) nanoarrow::nanoarrow_schema_parse(child)$type
  types <- vapply(schema$children, type, "")
  paste0(names(schema$children), " (", types, ")", collapse = ", ")
}

arrow_reader <- function(x, levels) {
  stream <- tryCatch(nanoarrow::as_nanoarrow_array_stream(x), error = function(e)
    fail("`x` must be something that package nanoarrow can read as a stream, not so (",
         conditionMessage(e), ")."))
  schema <- stream$get_schema()
  if (!identical(schema$format, "+s"))
    fail("`x` must be a stream of batches with columns, not of single values.")
  read <- function() {
    array <- nanoarrow::nanoarrow_allocate_array()
    n <- .Call(ffi_arrow_next, stream, array)
    if (is.null(n)) return(NULL)
    nanoarrow::nanoarrow_array_set_schema(array, schema, validate = FALSE)
    structure(list(array = array, schema = schema, n = n, levels = levels), class = "arrow_block")
  }
  list(read = read, close = function() quietly(nanoarrow::nanoarrow_pointer_release(stream)))
}

# Rows with missing values, which `na.action = na.omit` leaves out of a fit.

#' Data without their incomplete rows, and a message that says how many these are
#'
#' @param na.action As in evidence().
#' @return A list: `data`, and `omitted`, what na.action() of the fit returns, or NULL.
#' @noRd
complete_data <- function(model, data, na.action) {
  if (!leaves_out(na.action)) return(list(data = data))
  if (is_source(data))
    fail("`na.action` must be na.fail for a source of rows: leave incomplete rows out where the ",
         "source reads them, or use `collect = TRUE`.")
  if (is_lagged(model))
    fail("`na.action` must be na.fail for a model with lags(): without a row, the rows around it ",
         "would count as neighbours.")
  missing <- missing_by_column(model, data)
  # other lengths are refused later
  if (length(unique(lengths(missing))) > 1) return(list(data = data))
  omitted <- which(Reduce(`|`, missing, FALSE))
  if (!length(omitted)) return(list(data = data))
  n <- length(missing[[1]])
  if (length(omitted) == n) fail("`data` must have a row without missing values.")
  message(left_out(missing, length(omitted), n))
  list(data = some_rows_of(data, -omitted), omitted = structure(omitted, class = "omit"))
}

without_incomplete <- function(model, data) {
  omitted <- which(Reduce(`|`, missing_by_column(model, data), FALSE))
  if (length(omitted)) some_rows_of(data, -omitted) else data
}

leaves_out <- function(na.action) {
  same <- function(f, name) identical(na.action, f) || identical(na.action, name)
  if (same(stats::na.fail, "na.fail")) return(FALSE)
  if (!same(stats::na.omit, "na.omit")) refuse(na.action, "na.action", "na.fail or na.omit")
  TRUE
}

#' For each column that the model reads, which rows have missing values
#' @noRd
missing_by_column <- function(model, data) {
  # what is no data is refused later
  if (!is.vector(data) && !is.factor(data) && !is.data.frame(data) && is.null(dim(data)))
    return(list())
  if (is_plain_list(data)) return(lapply(data, missing_rows))
  if (length(dim(data)) < 2) return(list(data = missing_rows(data)))
  if (length(dim(data)) > 2) return(list(data = missing_rows(matrix(data, nrow(data)))))
  names <- if (is.null(colnames(data))) seq_len(ncol(data)) else colnames(data)
  read <- columns_read(model)
  if (!is.null(read)) names <- intersect(names, read)
  lapply(stats::setNames(nm = names), function(name)
    missing_rows(if (is.data.frame(data)) data[[name]] else data[, name]))
}

missing_rows <- function(x) {
  if (is.data.frame(x)) return(Reduce(`|`, lapply(x, missing_rows)))
  if (is.matrix(x)) rowSums(is.na(x)) > 0
  else if (is_plain_list(x)) rep(FALSE, length(x))
  else as.vector(is.na(x))
}

# A list that is no object: as.list() of a date with parts would be such dates again.
is_plain_list <- function(x) is.list(x) && !is.object(x)

some_rows_of <- function(data, rows) {
  if (is_plain_list(data)) return(lapply(data, some_rows_of, rows))
  if (length(dim(data)) < 2) return(data[rows])
  if (length(dim(data)) > 2) return(data[rows, , , drop = FALSE])
  data[rows, , drop = FALSE]
}

left_out <- function(missing, omitted, n) {
  counts <- vapply(missing, sum, 0L)
  counts <- utils::head(counts[counts > 0], 5)
  paste0("na.omit: ", count(omitted), " of ", count_of(n, "row"),
         " left out, with missing values (",
         paste0("`", names(counts), "`: ", counts, collapse = ", "), ").")
}

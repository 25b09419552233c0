# Rows from text files with separated values. The text is read by R's connections, so that
# compressed files and URLs work, and split by C (src/bridge/csv.c).

#' Rows from a text file
#'
#' A source of rows for [evidence()]: a CSV file or another file with separated values. It is read
#' in blocks, so it need not fit in memory.
#'
#' @param file Path of a file, which may be compressed (gzip, bzip2 or xz), a URL, or a connection.
#'   A path or a URL is opened when a run begins and closed when it ends, also by an error or an
#'   interrupt. A connection that is not open is opened and then closed in the same way; one that is
#'   already open is read from where it is, and is not closed.
#' @param header Whether the first line has the names of the columns. Otherwise they are `V1`, `V2`,
#'   and so on.
#' @param sep,quote,dec The separator of fields, the quote around text (`""` for none), and the
#'   decimal point, one character each. Text in quotes may contain separators, line ends and doubled
#'   quotes.
#' @param na Texts that mean a missing value. Empty fields in columns of numbers are missing, too.
#' @param skip Number of lines to skip before the header.
#' @param types Types of columns, a vector of `"number"`, `"logical"` or `"text"` named by columns.
#'   Those of other columns come from the first 10,000 rows: whole and other numbers are one type.
#' @param levels A list of levels of factors, named by columns: `list(colour = c("red", "blue"))`.
#'   Without it, the levels of a column of text are those in the first 10,000 rows.
#' @param block Number of lines that are read at a time. It does not change the results.
#'
#' @details
#' A value of another type than that of its column, and a level not seen before, are errors that
#' name the column, the value and the row. Rows are counted without the header and without empty
#' lines. Each row must have as many fields as the header. Dates are text.
#'
#' @inherit rows_function return
#'
#' @examples
#' file <- tempfile(fileext = ".csv.gz")
#' write.csv(cars, gzfile(file), row.names = FALSE)
#' rows <- rows_csv(file)
#' evidence(linear_regression(dist ~ speed, sigma = 15, prior_sd = 10), rows, seed = 1)
#' rows # now the types of the columns are known
#'
#' @family sources of rows
#' @export
rows_csv <- function(file, header = TRUE, sep = ",", quote = "\"", dec = ".", na = "NA", skip = 0,
                     types = NULL, levels = NULL, block = 10000) {
  check_csv_file(file)
  spec <- list(
    file = file, header = check_flag(header, "header"),
    format = c(check_letter(sep, "sep"), check_letter(quote, "quote", TRUE),
               check_letter(dec, "dec")),
    na = check_na_words(na), skip = check_count(skip, "skip", 0, 1e9), types = check_types(types),
    levels = check_source_levels(levels), block = check_count(block, "block", 1, 1e8)
  )
  if (spec$format[1] == spec$format[3])
    fail("`dec` must be another character than `sep`, not ", dQuote(dec, FALSE), " too.")
  known <- new.env(parent = emptyenv())
  again <- is.character(file)
  opened <- FALSE
  new_source("rows_csv", function() describe_csv(file, known), function() {
    if (opened && !again) fail("The rows of a connection can be read only once.")
    opened <<- TRUE
    csv_reader(spec, known)
  }, rewinds = again)
}

check_csv_file <- function(file) {
  if (inherits(file, "connection")) return(invisible())
  if (!is_one_string(file)) refuse(file, "file", "the path of a file, a URL or a connection")
  if (!is_url(file) && (!file.exists(file) || dir.exists(file)))
    fail("`file` must be a file that exists, not ", dQuote(file, FALSE), ".")
}

is_url <- function(file) grepl("^(https?|ftps?|file)://", file)

check_letter <- function(x, name, or_none = FALSE) {
  fine <- is.character(x) && length(x) == 1 && !is.na(x) &&
    (nchar(x, "bytes") == 1 || or_none && x == "")
  if (!fine) refuse(x, name, paste0("one character", if (or_none) ", or \"\" for none"))
  unname(x)
}

check_na_words <- function(na) {
  if (!is.character(na) || anyNA(na)) refuse(na, "na", "texts that mean a missing value")
  enc2utf8(na)
}

# Codes of C.
CSV_TYPES <- c(text = 0L, number = 1L, logical = 2L)

check_types <- function(types) {
  if (is.null(types)) return(NULL)
  rule <- paste("a vector of", either(dQuote(names(CSV_TYPES), FALSE)), "named by columns")
  if (!is.character(types) || !has_names(types)) refuse(types, "types", rule)
  bad <- which(!types %in% names(CSV_TYPES))
  if (length(bad)) refuse(types[[bad[1]]], "types", rule)
  types
}

has_names <- function(x) {
  !is.null(names(x)) && all(nzchar(names(x))) && !anyNA(names(x)) && !anyDuplicated(names(x))
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

describe_csv <- function(file, known) {
  shown <- if (is.character(file)) file else summary(file)$description
  lines <- list(paste0("Rows from ", if (is.character(file)) "" else "the connection ", shown))
  if (is.character(file) && !is_url(file))
    lines$size <- if (file.exists(file))
      format(structure(file.size(file), class = "object_size"), units = "auto")
    else "the file is not there"
  lines$columns <- if (is.null(known$types)) "their types are known when they have been read"
  else shorten(paste0(known$names, " (", known$types, ")", collapse = ", "), 200)
  lines
}

# A connection and how to close it.
csv_connection <- function(file) {
  if (is.character(file)) {
    con <- if (!is_url(file)) base::file(file, "rt")
    else if (grepl("[.]gz$", file)) gzcon(url(file, "rb"))
    else url(file, "rt")
    return(list(con = con, close = function() close(con)))
  }
  if (isOpen(file)) return(list(con = file, close = function() NULL))
  open(file, "rt")
  list(con = file, close = function() close(file))
}

# Reading -----------------------------------------------------------------------------------------

csv_reader <- function(spec, known) {
  csv <- new.env(parent = emptyenv())
  csv$spec <- spec
  csv$known <- known
  csv$lines <- character()
  csv$at <- 0 # so many of the lines have been used
  csv$ended <- FALSE
  csv$rows <- 0
  connection <- csv_connection(spec$file)
  csv$con <- connection$con
  done <- FALSE
  on.exit(if (!done) connection$close())
  begin_csv(csv)
  done <- TRUE
  list(read = function() next_csv(csv), close = connection$close)
}

lines_left <- function(csv) length(csv$lines) - csv$at

# The next lines, without taking them.
next_lines <- function(csv, n) csv$lines[csv$at + seq_len(n)]

# Reads on until there are `n` lines, or all that are left. Returns the number of lines.
fill_lines <- function(csv, n) {
  while (lines_left(csv) < n && !csv$ended) {
    # UTF-8 text stays as it is, whatever the locale
    lines <- readLines(csv$con, n - lines_left(csv), warn = FALSE, encoding = "UTF-8")
    if (length(lines) == 0) csv$ended <- TRUE
    csv$lines <- c(next_lines(csv, lines_left(csv)), lines)
    csv$at <- 0
  }
  lines_left(csv)
}

begin_csv <- function(csv) {
  spec <- csv$spec
  if (spec$skip > 0) readLines(csv$con, spec$skip, warn = FALSE)
  fill_lines(csv, HEAD_ROWS)
  if (length(csv$lines)) csv$lines[1] <- sub("^\ufeff", "", csv$lines[1])
  first <- .Call(ffi_csv_fields, csv$lines, spec$format)
  if (is.null(first)) {
    if (length(csv$lines)) fail("The quote in the first line of the file is not closed.")
    csv$names <- character()
    return()
  }
  fields <- unlist(first$fields)
  csv$names <- paste0("V", seq_along(fields))
  if (spec$header) {
    csv$at <- first$used
    csv$names <- ifelse(nzchar(fields), fields, csv$names)
    check_distinct(csv$names)
    fill_lines(csv, HEAD_ROWS)
  }
  for (name in setdiff(c(names(spec$types), names(spec$levels)), csv$names))
    refuse_missing_column(name, csv_frame(csv, vector("list", length(csv$names))), "data")
  csv$types <- csv_types(csv)
  csv$known$names <- csv$names
  csv$known$types <- csv$types
}

# Types by the first rows: "unknown" if all of them are missing.
csv_types <- function(csv) {
  types <- rep("text", length(csv$names))
  got <- split_lines(csv, next_lines(csv, lines_left(csv)), types)
  types <- vapply(got$columns, type_of_text, "", csv$spec)
  given <- match(names(csv$spec$types), csv$names)
  types[given] <- csv$spec$types
  types[csv$names %in% names(csv$spec$levels)] <- "text"
  types
}

type_of_text <- function(text, spec) {
  value <- utils::type.convert(text, spec$na, as.is = TRUE, dec = spec$format[3])
  if (is.numeric(value)) "number"
  else if (!is.logical(value)) "text"
  else if (all(is.na(value))) "unknown"
  else "logical"
}

split_lines <- function(csv, lines, types) {
  codes <- CSV_TYPES[types]
  codes[is.na(codes)] <- 0L
  .Call(ffi_csv, lines, unname(codes), csv$spec$format, csv$spec$na)
}

csv_frame <- function(csv, columns) {
  n <- if (length(columns)) length(columns[[1]]) else 0L
  structure(columns, names = csv$names, class = "data.frame", row.names = .set_row_names(n))
}

# Codes of problems in C.
CSV_PROBLEMS <- c("few", "many", "number", "logical", "open")

# A quote without its end would otherwise take in the rest of the file.
LONGEST_RECORD <- 10000

next_csv <- function(csv) {
  take <- min(csv$spec$block, fill_lines(csv, csv$spec$block))
  if (take == 0) return(NULL)
  repeat {
    got <- split_lines(csv, next_lines(csv, take), csv$types)
    if (got$used > 0 || !is_open_record(got) || take > LONGEST_RECORD) break
    more <- min(2 * take, fill_lines(csv, 2 * take))
    if (more == take) break
    take <- more
  }
  finish_csv(csv, got)
}

is_open_record <- function(got) got$problem[1] == match("open", CSV_PROBLEMS)

# The rows before a problem are given out first; the next call then begins with the problem.
finish_csv <- function(csv, got) {
  if (got$used == 0) refuse_record(csv, got)
  csv$at <- csv$at + got$used
  columns <- got$columns
  for (j in which(csv$types == "unknown")) {
    csv$types[j] <- type_of_text(columns[[j]], csv$spec)
    columns[[j]] <- utils::type.convert(columns[[j]], csv$spec$na, as.is = TRUE,
                                        dec = csv$spec$format[3])
    if (is.integer(columns[[j]])) columns[[j]] <- as.double(columns[[j]])
  }
  csv$known$types <- csv$types
  frame <- with_levels(csv_frame(csv, columns), csv$spec$levels, csv$rows)
  csv$rows <- csv$rows + nrow(frame)
  frame
}

refuse_record <- function(csv, got) {
  row <- csv$rows + 1
  name <- csv$names[got$problem[2]]
  switch(CSV_PROBLEMS[got$problem[1]],
    few = , many = fail("`data` must have ", count_of(length(csv$names), "field"),
                        " in each row, not ", got$problem[2], " in row ", plain_number(row), "."),
    number = refuse_text(name, got$value, row),
    logical = fail_in_row(row, "`data` must have TRUE or FALSE in the column `", name,
                          "`, as in its first rows, not ", dQuote(got$value, FALSE), " in row "),
    open = fail("`data` must have an end of each quote, not one in the column `", name,
                "` that is still open ", count_of(min(lines_left(csv), LONGEST_RECORD), "line"),
                " after the beginning of row ", plain_number(row), ".")
  )
}

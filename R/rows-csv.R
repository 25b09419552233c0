# Rows from text files with separated values: records, fields and types. The lines come from
# R/rows-text.R, and are split by C (src/bridge/csv.c).

#' Rows from a text file
#'
#' A source of rows for [evidence()]: a CSV file or another file with separated values. It is read
#' in blocks, so it need not fit in memory.
#'
#' @param file Path of a file, which may be compressed (gzip, bzip2 or xz), a URL, or a connection.
#'   A path or a URL is opened when a run begins and closed when it ends, also by an error or an
#'   interrupt. A connection that is not open is opened and then closed in the same way; one that is
#'   already open is read from where it is, and is not closed. A compressed file that was cut short
#'   or is damaged is an error; of a URL or an open connection this is not checked. So is a
#'   [pipe()], not open yet, whose command fails. A FIFO is read as its writer writes; an interrupt
#'   ends the waiting.
#' @param header Whether the first line has the names of the columns. Otherwise they are `V1`, `V2`,
#'   and so on.
#' @param sep,quote,dec The separator of fields, the quote around text (`""` for none), and the
#'   decimal point, one character each. Text in quotes may contain separators, line ends and doubled
#'   quotes.
#' @param na Texts that mean a missing value, such as `c("NA", "N/A", "-")`. Empty fields in columns
#'   of numbers are missing, too.
#' @param skip Number of lines to skip before the header.
#' @param types Types of columns, a vector of `"number"`, `"logical"` or `"text"` named by columns.
#'   Those of other columns come from the first rows, 10,000 or as many as have ten million fields:
#'   whole and other numbers are one type.
#' @param levels A list of levels of factors, named by columns: `list(colour = c("red", "blue"))`.
#'   Without it, the levels of a column of text are those in the first 10,000 rows.
#' @param block Number of lines that are read at a time. It does not change the results.
#' @param encoding Encoding of the text, one that [iconv()] knows, such as `"latin1"`. A file that
#'   begins with the mark of UTF-8 or UTF-16 is read as such. Of a connection set it by the
#'   connection's own `encoding`.
#'
#' @details
#' A value of another type than that of its column, and a level not seen before, are errors that
#' name the column, the value and the row. Rows are counted without the header and without empty
#' lines. Each row must have as many fields as the header. Dates are text.
#'
#' If at least half of the values of a column are numbers, the others are an error, and not levels
#' of a factor: name them in `na`, or say by `types` that the column is text. A column of text with
#' more than 20 levels, and more than half as many as rows, is an error, too, unless its `types` or
#' `levels` are given. Both are decided by the first rows, and only for columns that the model uses.
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
                     types = NULL, levels = NULL, block = 10000, encoding = "UTF-8") {
  check_csv_file(file)
  spec <- list(
    file = file, header = check_flag(header, "header"),
    format = c(check_letter(sep, "sep"), check_letter(quote, "quote", TRUE),
               check_letter(dec, "dec")),
    na = check_na_words(na), skip = check_count(skip, "skip", 0, 1e9), types = check_types(types),
    levels = check_source_levels(levels), block = check_count(block, "block", 1, 1e8),
    encoding = check_encoding(encoding, file)
  )
  if (spec$format[1] == spec$format[3])
    fail("`dec` must be another character than `sep`, not ", dQuote(dec, FALSE), " too.")
  known <- new.env(parent = emptyenv())
  again <- is.character(file) && (is_url(file) || kind_of_file(file) != "FIFO")
  opened <- FALSE
  new_source("rows_csv", function() describe_csv(file, known), function() {
    if (opened && !again) fail("The rows of a connection or a FIFO can be read only once.")
    opened <<- TRUE
    csv_reader(spec, known)
  }, rewinds = again)
}

check_csv_file <- function(file) {
  if (inherits(file, "connection")) {
    open <- tryCatch(isOpen(file), error = function(e)
      fail("`file` must be a connection that exists, not one that has been closed."))
    if (open && !isOpen(file, "read"))
      fail("`file` must be a connection that can be read, not one that is open for writing.")
    return(invisible())
  }
  if (!is_one_string(file)) refuse(file, "file", "the path of a file, a URL or a connection")
  if (!is_url(file) && (!file.exists(file) || dir.exists(file)))
    fail("`file` must be a file that exists, not ", dQuote(file, FALSE), ".")
}

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

# Reading -----------------------------------------------------------------------------------------

csv_reader <- function(spec, known) {
  csv <- new.env(parent = emptyenv())
  csv$spec <- spec
  csv$known <- known
  csv$lines <- character()
  csv$at <- 0 # so many of the lines have been used
  csv$before <- 0 # lines of the file before these
  csv$ended <- FALSE
  csv$failure <- NULL # why no further lines can be read, when the present ones have been used
  csv$rows <- 0
  csv$text <- open_text(spec$file, spec$encoding, known)
  done <- FALSE
  on.exit(if (!done) csv$text$close())
  begin_csv(csv)
  done <- TRUE
  list(read = function() next_csv(csv), close = csv$text$close,
       check = function(used) check_text_columns(csv, used))
}

lines_left <- function(csv) length(csv$lines) - csv$at

# The next lines, without taking them.
next_lines <- function(csv, n) csv$lines[csv$at + seq_len(n)]

# Reads on until there are `n` lines, or all that are left. Returns the number of lines.
fill_lines <- function(csv, n) {
  while (lines_left(csv) < n && !csv$ended) {
    got <- csv$text$read(n - lines_left(csv), csv$before + length(csv$lines))
    csv$failure <- got$failure
    csv$ended <- got$ended || !is.null(got$failure)
    csv$lines <- c(next_lines(csv, lines_left(csv)), got$lines)
    csv$before <- csv$before + csv$at
    csv$at <- 0
  }
  lines_left(csv)
}

# A quote that is open where the lines could not be read on is a consequence of that.
stop_if_failed <- function(csv) {
  if (is.null(csv$failure)) return(invisible())
  if (!inherits(csv$failure, "logevidence_cut_short")) csv$text$verify()
  stop(csv$failure)
}

begin_csv <- function(csv) {
  spec <- csv$spec
  if (spec$skip > 0) csv$at <- min(spec$skip, fill_lines(csv, spec$skip))
  fill_lines(csv, 1)
  fill_head(csv)
  first <- .Call(ffi_csv_fields, next_lines(csv, lines_left(csv)), spec$format)
  if (is.null(first)) {
    stop_if_failed(csv)
    if (lines_left(csv)) fail("The quote in the first line of the file is not closed.")
    csv$names <- character()
    return()
  }
  csv$names <- paste0("V", seq_along(first$fields))
  if (spec$header) {
    csv$at <- csv$at + first$used
    named <- nzchar(first$fields)
    csv$names[named] <- first$fields[named]
    check_distinct(csv$names)
    fill_head(csv)
  }
  for (name in setdiff(c(names(spec$types), names(spec$levels)), csv$names))
    refuse_missing_column(name, csv_frame(csv, vector("list", length(csv$names))), "data")
  csv$types <- csv_types(csv)
  csv$known$names <- csv$names
  csv$known$types <- csv$types
}

# At most so many fields decide about types: with very many columns these are fewer rows.
HEAD_FIELDS <- 1e7

# The lines by which types are decided; more if the names of the columns take more than one line.
fill_head <- function(csv) {
  if (lines_left(csv) == 0) return(invisible())
  fields <- nchar(csv$lines[csv$at + 1], "bytes") / 2
  fill_lines(csv, min(HEAD_ROWS, max(100, HEAD_FIELDS / max(1, fields))))
}

# Types by the first rows: "unknown" if all of them are missing.
csv_types <- function(csv) {
  spec <- csv$spec
  head <- min(lines_left(csv), max(100, HEAD_FIELDS %/% length(csv$names)), HEAD_ROWS)
  got <- .Call(ffi_csv_kinds, next_lines(csv, head), length(csv$names), spec$format, spec$na)
  csv$head <- c(got, list(lines = head))
  count <- got$count
  number <- count[2, ] > 0
  logical <- count[3, ] > 0
  text <- count[4, ] > 0 | number & logical
  types <- ifelse(text, "text", ifelse(number, "number", ifelse(logical, "logical", "unknown")))
  types[match(names(spec$types), csv$names)] <- spec$types
  types[csv$names %in% names(spec$levels)] <- "text"
  types
}

#' Refuse columns of text that would be factors by mistake, among those that are used
#'
#' @param used Names of columns, or NULL for all.
#' @noRd
check_text_columns <- function(csv, used) {
  spec <- csv$spec
  own <- csv$types == "text" & !csv$names %in% c(names(spec$types), names(spec$levels))
  if (!is.null(used)) own <- own & csv$names %in% used
  count <- csv$head$count
  for (j in which(own))
    if (count[2, j] >= NUMBERS_SHARE * sum(count[2:4, j])) refuse_some_text(csv, j)
  if (!any(own)) return(invisible())
  columns <- split_lines(csv, next_lines(csv, csv$head$lines), csv$types)$columns
  for (j in which(own)) {
    n <- length(columns[[j]])
    levels <- length(unique(columns[[j]]))
    if (too_many_levels(levels, n)) refuse_levels(
      csv$names[j], levels, n, paste0("`types = c(", dQuote(csv$names[j], FALSE), " = \"text\")`"),
      "the first ")
  }
}

refuse_some_text <- function(csv, j) {
  value <- csv$head$value[j]
  fail("`data` must have numbers in the column `", csv$names[j], "`, as in most of its rows, not ",
       show_text(value), " in line ", plain_number(csv$before + csv$at + csv$head$line[j]),
       " of the file. If this text means a missing value, use `na = ",
       deparse1(unique(c(csv$spec$na, shorten_text(value)))), "`; if the column is text, use ",
       "`types = c(", dQuote(csv$names[j], FALSE), " = \"text\")`.")
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
  if (take == 0) {
    stop_if_failed(csv)
    return(NULL)
  }
  repeat {
    got <- split_lines(csv, next_lines(csv, take), csv$types)
    if (got$used > 0 || !is_open_record(got) || take > LONGEST_RECORD) break
    more <- min(2 * take, fill_lines(csv, 2 * take))
    if (more == take) {
      stop_if_failed(csv)
      break
    }
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
  # the user has said that they are text
  said <- intersect(csv$names[csv$types == "text"], names(csv$spec$types))
  frame <- with_levels(text_as_it_is(csv_frame(csv, columns), said), csv$spec$levels, csv$rows)
  csv$rows <- csv$rows + nrow(frame)
  frame
}

refuse_record <- function(csv, got) {
  # a damaged file may be the reason
  csv$text$verify()
  row <- csv$rows + 1
  name <- csv$names[got$problem[2]]
  value <- if (!is.null(got$value)) show_text(got$value)
  line <- plain_number(csv$before + csv$at + 1)
  switch(CSV_PROBLEMS[got$problem[1]],
    few = , many = fail("`data` must have ", count_of(length(csv$names), "field"),
                        " in each row, not ", got$problem[2], " in line ", line, ", row ",
                        plain_number(row), "."),
    number = fail_in_row(row, "`data` must have numbers in the column `", name, "`, as in its ",
                         "first rows (or a text of `na`, or other `types`), not ", value,
                         " in line ", line, ", row "),
    logical = fail_in_row(row, "`data` must have TRUE or FALSE in the column `", name, "`, as in ",
                          "its first rows (or a text of `na`, or other `types`), not ", value,
                          " in line ", line, ", row "),
    open = fail("`data` must have an end of each quote, not one in the column `", name,
                "` that is still open ", count_of(min(lines_left(csv), LONGEST_RECORD), "line"),
                " after the beginning of row ", plain_number(row), ".")
  )
}

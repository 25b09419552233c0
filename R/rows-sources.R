# Sources of rows: data that come in blocks, from a function, a file, a database or memory.
#
# A source is a specification, as models and methods are. `open()` makes a reader of it: `read()`
# returns the next block, a data frame or what else the model accepts as data, or NULL at the end,
# and `close()` ends it. A feed (R/rows-feed.R) binds a reader to a model and gives rows of numbers
# to the runs. The size of the source's blocks does not matter: runs take rows in portions of
# their own. Sources are in R/rows-*.R.

#' A source of rows
#'
#' @param kind Class of the source, such as "rows_function".
#' @param describe `function()`: what it is, a list of a title and then named texts.
#' @param open `function()`: a reader, a list of `read` and `close`, and maybe `check`, a function
#'   of the names of the columns that are used (NULL for all), which refuses columns before rows are
#'   read.
#' @param rewinds Whether `open()` can be called again, for the same rows in the same order.
#' @param lasts Whether the source can be saved and used by another process.
#' @param count `function()`: the number of rows where that is cheap, else NA.
#' @noRd
new_source <- function(kind, describe, open, rewinds = FALSE, count = function() NA_real_,
                       lasts = rewinds) {
  structure(list(describe = describe, open = open, rewinds = rewinds, count = count, lasts = lasts),
            class = c(kind, "rows_source"))
}

is_source <- function(data) is_made(data, "rows_source")
is_in_memory <- function(source) inherits(source, "rows_in_memory")

# From these first rows the levels of factors and the types of columns are taken.
HEAD_ROWS <- 10000

#' @export
print.rows_source <- function(x, ...) {
  if (!is_source(x))
    fail("A source must be as its constructor has made it, and parts of this one were altered: ",
         "make it again.")
  lines <- x$describe()
  n <- x$count()
  lines <- c(lines, rows = if (is.na(n)) "number not known before they are read" else count(n),
             again = if (x$rewinds) "can be read again from the start" else "can be read only once")
  cat(lines[[1]], "\n", sep = "")
  for (label in names(lines)[-1])
    cat("  ", format(paste0(label, ":"), width = 12), lines[[label]], "\n", sep = "")
  invisible(x)
}

# Sources are not joined, because their columns and levels may differ.
#' @export
c.rows_source <- function(...) {
  fail("Sources of rows cannot be joined by c(): fit the first with evidence(), and add the rows ",
       "of the others with update().")
}

#' Rows from a function
#'
#' A source of rows for [evidence()]: a function that returns one block of rows after another. Rows
#' are used in the order in which they come and need not fit in memory.
#'
#' @param f `function(reset)`: with `reset = FALSE` it returns the next rows, a data frame (or
#'   another form of data that the model accepts), or `NULL` if there are no more. With `reset =
#'   TRUE` it goes back to the first row; its value is then ignored.
#' @param rewind Whether `f(reset = TRUE)` works. If not, `f` is never called with `TRUE`.
#'
#' @return A source of rows for [evidence()], of class `"rows_source"`.
#'
#' @examples
#' blocks <- split(cars, rep(1:5, each = 10))
#' at <- 0
#' rows <- rows_function(function(reset) {
#'   if (reset) at <<- 0 else if (at < 5) blocks[[at <<- at + 1]]
#' })
#' rows
#' evidence(linear_regression(dist ~ speed, sigma = 15, prior_sd = 10), rows, seed = 1)
#'
#' @family sources of rows
#' @export
rows_function <- function(f, rewind = TRUE) {
  if (!is.function(f)) refuse(f, "f", "a function of `reset`")
  if (!is.primitive(f) && length(formals(f)) == 0)
    fail("`f` must be a function of `reset`, such as `function(reset) ...`, not one without ",
         "arguments: it is called with TRUE to go back to the first row.")
  rewind <- check_flag(rewind, "rewind")
  opened <- FALSE
  new_source("rows_function", function() list("Rows from a function"), function() {
    # a function that was never called is at its first row
    if (rewind) f(TRUE) else if (opened) fail("The rows of this source can be read only once.")
    opened <<- TRUE
    list(read = function() f(FALSE), close = function() NULL)
  }, rewind)
}

#' Data in memory as a source
#'
#' @param size Rows of a block; all by default.
#' @noRd
rows_in_memory <- function(data, size = Inf) {
  force(data)
  n <- block_rows(data)
  new_source("rows_in_memory", function() list("Rows in memory"), function() {
    at <- 0
    list(read = function() {
      from <- at
      at <<- min(n, at + size)
      if (from < n) if (at - from == n) data else block_part(data, (from + 1):at)
    }, close = function() NULL)
  }, rewinds = TRUE, count = function() as.double(NROW(data)))
}

# Readers -----------------------------------------------------------------------------------------

#' Open a source
#'
#' @return An environment: the `reader` of the source, how many rows have been `read`, the `form` of
#'   its blocks and which columns are `numeric`.
#' @noRd
open_reader <- function(source) {
  rows <- new.env(parent = emptyenv())
  rows$source <- source
  rows$read <- 0
  rows$numeric <- rows$form <- NULL
  reader <- source$open()
  if (!is.list(reader) || !is.function(reader$read) || !is.function(reader$close))
    fail("A source of rows must be as its constructor has made it, and the part `open` of this ",
         "one returns ", show_value(reader), ": make it again.")
  rows$reader <- reader
  rows
}

close_reader <- function(rows) {
  reader <- rows$reader
  rows$reader <- NULL
  if (!is.null(reader)) reader$close()
}

check_columns <- function(rows, used) {
  if (!is.null(rows$reader$check)) rows$reader$check(used)
}

# The next block that is not empty, or NULL at the end.
read_block <- function(rows) {
  repeat {
    block <- tryCatch(rows$reader$read(), error = function(e) stop(reading_error(e, rows$read)))
    if (is.null(block)) return(NULL)
    check_same_form(rows, block)
    n <- block_rows(block)
    if (n > 0) break
  }
  if (is.data.frame(block)) check_still_numbers(rows, block)
  rows$read <- rows$read + n
  block
}

check_same_form <- function(rows, block) {
  form <- if (is_arrow_block(block)) "an Arrow batch"
  else if (is.data.frame(block)) "a data frame"
  else if (is.matrix(block)) "a matrix"
  else if (is.list(block)) "a list"
  else "a vector"
  if (form == "a list" && is.null(block$x))
    fail("A block must be a data frame, a matrix, or a list of `x` and `y`, not another list.")
  if (is.null(rows$form)) rows$form <- form
  if (form != rows$form)
    fail("The blocks of a source must have the same form, ", rows$form, " as the first, not ", form,
         " after row ", plain_number(rows$read), ".")
}

reading_error <- function(e, n) {
  if (inherits(e, "logevidence_error")) return(e)
  said <- sub("[.]?\n*$", "", conditionMessage(e))
  tryCatch(fail("The rows could not be read after row ", plain_number(n), ": ", said, "."),
           error = identity)
}

# The first block decides which columns have numbers. Text there would otherwise only be found to be
# of another type, without its row.
check_still_numbers <- function(rows, block) {
  if (is.null(rows$numeric))
    rows$numeric <- names(block)[vapply(block, is_plain_numeric, NA)]
  # by number, because to find each of very many columns by its name takes long
  for (j in which(names(block) %in% rows$numeric)) {
    x <- .subset2(block, j)
    if (is.numeric(x) || !(is.character(x) || is.factor(x))) next
    name <- names(block)[j]
    text <- as.character(x)
    bad <- which(!is.na(text) & is.na(suppressWarnings(as.numeric(text))))
    row <- c(bad, which(!is.na(text)), 1)[1]
    refuse_text(name, text[row], rows$read + row)
  }
}

refuse_text <- function(name, text, row) {
  fail_in_row(row, "`data` must have numbers in the column `", name,
              "`, as in its first rows, not ", show_text(text), " in row ")
}

#' All rows of a source, in memory
#'
#' @param used Names of the columns that are used, or NULL for all.
#' @return A data frame; a matrix or a list if the blocks of the source are such.
#' @noRd
collect_rows <- function(source, used = NULL) {
  rows <- open_reader(source)
  on.exit(close_reader(rows))
  check_columns(rows, used)
  blocks <- list()
  while (!is.null(block <- read_block(rows))) {
    if (length(blocks)) check_kinds(blocks[[1]], block, rows$read - block_rows(block))
    blocks[[length(blocks) + 1]] <- block
  }
  if (rows$read == 0) fail("`data` must have at least one row, not 0.")
  block_data(bind_blocks(blocks))
}

# Columns must keep their types; of one without values the type is not known.
check_kinds <- function(first, block, before) {
  old <- block_kinds(first)
  new <- block_kinds(block)
  if (identical(old, new)) return(invisible())
  empty <- function(name) all(is.na(first[[name]])) || all(is.na(block[[name]]))
  for (name in intersect(names(old), names(new)))
    if (old[[name]] != new[[name]] && empty(name)) old[[name]] <- new[[name]]
  if (identical(old, new)) return(invisible())
  within_rows(before, block_rows(block), {
    for (name in setdiff(names(old), names(new))) refuse_missing_column(name, block, "data")
    for (name in setdiff(names(new), names(old)))
      fail("`data` must have the columns of its first rows, and no column `", name, "`.")
    name <- names(old)[old != new]
    fail("`data` must have ", if (length(name)) paste0("`", name[1], "` of"), " type ",
         old[old != new][1], ", as in the first data, not ", new[old != new][1], ".")
  })
}

# Sources of rows: data that come in blocks, from a function, a file, a database or memory.
#
# A source is a specification, as models and methods are. `open()` makes a reader of it: `read()`
# returns the next block, a data frame or what else the model accepts as data, or NULL at the end,
# and `close()` ends it. A feed (open_feed()) binds a reader to a model and gives rows of numbers to
# the runs. The size of the source's blocks does not matter: runs take rows in portions of their
# own. Sources are in R/source-*.R.

#' A source of rows
#'
#' @param kind Class of the source, such as "rows_function".
#' @param describe `function()`: what it is, a list of a title and then named texts.
#' @param open `function()`: a reader, a list of `read` and `close`.
#' @param rewinds Whether `open()` can be called again, for the same rows in the same order.
#' @param count `function()`: the number of rows where that is cheap, else NA.
#' @noRd
new_source <- function(kind, describe, open, rewinds = FALSE, count = function() NA_real_) {
  structure(list(describe = describe, open = open, rewinds = rewinds, count = count),
            class = c(kind, "rows_source"))
}

is_source <- function(data) inherits(data, "rows_source")

#' @export
print.rows_source <- function(x, ...) {
  lines <- x$describe()
  n <- x$count()
  lines <- c(lines, rows = if (is.na(n)) "number not known before they are read" else count(n),
             again = if (x$rewinds) "can be read again from the start" else "can be read only once")
  cat(lines[[1]], "\n", sep = "")
  for (label in names(lines)[-1])
    cat("  ", format(paste0(label, ":"), width = 12), lines[[label]], "\n", sep = "")
  invisible(x)
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
  rewind <- check_flag(rewind, "rewind")
  opened <- FALSE
  new_source("rows_function", function() list("Rows from a function"), function() {
    # a function that was never called is at its first row
    if (rewind) f(TRUE) else if (opened) fail("The rows of this source can be read only once.")
    opened <<- TRUE
    list(read = function() f(FALSE), close = function() NULL)
  }, rewind)
}

# Data in memory as a source: one block.
rows_in_memory <- function(data) {
  new_source("rows_in_memory", function() list("Rows in memory"), function() {
    left <- TRUE
    list(read = function() if (left) {
      left <<- FALSE
      data
    }, close = function() NULL)
  }, rewinds = TRUE, count = function() as.double(NROW(data)))
}

# Blocks ------------------------------------------------------------------------------------------

block_rows <- function(block) {
  if (is_arrow_block(block)) return(block$n)
  NROW(if (is.list(block) && !is.data.frame(block)) block$x else block)
}

#' A block in a form that models accept as data
#' @noRd
block_data <- function(block) if (is_arrow_block(block)) arrow_frame(list(block)) else block

block_part <- function(block, which) {
  if (is.data.frame(block) || is.matrix(block)) block[which, , drop = FALSE]
  else if (is.list(block)) list(x = block_part(block$x, which), y = block$y[which])
  else block[which]
}

bind_blocks <- function(blocks) {
  if (length(blocks) == 1) return(blocks[[1]])
  first <- blocks[[1]]
  if (is_arrow_block(first)) return(arrow_frame(blocks))
  if (is.data.frame(first)) bind_frames(blocks)
  else if (is.matrix(first)) do.call(rbind, blocks)
  else if (is.list(first))
    list(x = bind_blocks(lapply(blocks, `[[`, "x")), y = unlist(lapply(blocks, `[[`, "y")))
  else unlist(blocks)
}

# rbind() takes seconds for thousands of small data frames, so columns of plain values, and factors
# with the same levels, are bound one by one.
bind_frames <- function(blocks) {
  names <- names(blocks[[1]])
  blocks <- lapply(blocks, function(block) {
    if (identical(names(block), names)) return(block)
    for (name in setdiff(names, names(block))) refuse_missing_column(name, block, "data")
    block[names]
  })
  columns <- lapply(seq_along(names), function(j) bind_columns(lapply(blocks, .subset2, j)))
  if (any(vapply(columns, is.null, NA))) return(do.call(rbind, lapply(blocks, as.data.frame)))
  structure(columns, names = names, class = "data.frame",
            row.names = .set_row_names(sum(vapply(blocks, nrow, 1L))))
}

# NULL if only rbind() knows how.
bind_columns <- function(parts) {
  kinds <- unique(lapply(parts, attributes))
  if (length(kinds) > 1) return(NULL)
  if (is.null(kinds[[1]])) return(unlist(parts))
  if (is.factor(parts[[1]]))
    structure(unlist(lapply(parts, unclass)), levels = levels(parts[[1]]),
              class = class(parts[[1]]))
}

# Readers -----------------------------------------------------------------------------------------

#' Evaluate `expr`, whose first row comes after `before` other rows of the source
#'
#' Errors that name a row (fail_in_row()) then count it from the first row of the source.
#' @noRd
after_rows <- function(before, expr) {
  tryCatch(expr, logevidence_row_error = function(e) fail_in_row(before + e$row, e$start))
}

# Other errors name the rows of the block.
within_rows <- function(before, n, expr) {
  tryCatch(after_rows(before, expr), logevidence_error = function(e) {
    if (before == 0 || inherits(e, "logevidence_row_error")) stop(e)
    fail(conditionMessage(e), " (This is in the rows from ", plain_number(before + 1), " to ",
         plain_number(before + n), ".)")
  })
}

plain_number <- function(x) format(x, scientific = FALSE)

#' Open a source
#'
#' @return An environment: the `reader` of the source and how many rows have been `read`. A feed
#'   (below) has more members.
#' @noRd
open_reader <- function(source) {
  rows <- new.env(parent = emptyenv())
  rows$source <- source
  rows$read <- 0
  rows$numeric <- NULL
  rows$reader <- source$open()
  rows
}

close_reader <- function(rows) {
  reader <- rows$reader
  rows$reader <- NULL
  if (!is.null(reader)) reader$close()
}

# The next block that is not empty, or NULL at the end.
read_block <- function(rows) {
  repeat {
    block <- tryCatch(rows$reader$read(), error = function(e) stop(reading_error(e, rows$read)))
    if (is.null(block)) return(NULL)
    n <- block_rows(block)
    if (n > 0) break
  }
  if (is.data.frame(block)) check_still_numbers(rows, block)
  rows$read <- rows$read + n
  block
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
  for (name in intersect(rows$numeric, names(block))) {
    x <- block[[name]]
    if (is.numeric(x) || !(is.character(x) || is.factor(x))) next
    text <- as.character(x)
    bad <- which(!is.na(text) & is.na(suppressWarnings(as.numeric(text))))
    row <- c(bad, which(!is.na(text)), 1)[1]
    refuse_text(name, text[row], rows$read + row)
  }
}

refuse_text <- function(name, text, row) {
  fail_in_row(row, "`data` must have numbers in the column `", name,
              "`, as in its first rows, not ", dQuote(text, FALSE), " in row ")
}

#' All rows of a source, in memory
#'
#' @return A data frame; a matrix or a list if the blocks of the source are such.
#' @noRd
collect_rows <- function(source) {
  rows <- open_reader(source)
  on.exit(close_reader(rows))
  blocks <- list()
  while (!is.null(block <- read_block(rows))) blocks[[length(blocks) + 1]] <- block
  if (rows$read == 0) fail("`data` must have at least one row, not 0.")
  block_data(bind_blocks(blocks))
}

# Feeds -------------------------------------------------------------------------------------------

# From these first rows the levels of factors and the types of columns are taken.
HEAD_ROWS <- 10000

# Smaller blocks of the source are put together, because each call of C and R takes some time.
GATHER_ROWS <- 1000

#' Bind a source to a model
#'
#' @param keep All rows are kept in memory up to this number.
#' @return A feed, an environment: `encoded` (what encode() returns for the first rows, without
#'   these), `pull()`, and the number of rows `n` pulled so far, and `at` in this pass over the
#'   source. `waiting` are the next rows, or the error that the source has raised instead of them,
#'   or NULL at the end.
#' @noRd
open_feed <- function(model, source, keep = Inf) {
  feed <- open_reader(source)
  feed$model <- model
  feed$keep <- keep
  feed$n <- feed$at <- 0
  feed$kept <- list()
  open <- FALSE
  on.exit(if (!open) close_feed(feed))
  begin_feed(feed)
  open <- TRUE
  feed
}

begin_feed <- function(feed) {
  feed$waiting <- gather(feed, HEAD_ROWS)
  if (is.null(feed$waiting)) fail("`data` must have at least one row, not 0.")
  if (is_failure(feed$waiting)) stop(feed$waiting)
  head <- block_data(feed$waiting)
  if (block_rows(head) > HEAD_ROWS) head <- block_part(head, seq_len(HEAD_ROWS))
  first <- encode(feed$model, head)
  feed$plain <- part_of(feed$model, "plain")(feed$model, first$design)
  feed$identified <- identified_by(first)
  first$n <- NA_real_
  first$rows <- first$rows[, 0, drop = FALSE]
  first[c("observed", "in_order", "pairing", "offset")] <- NULL
  feed$encoded <- first
}

# At least so many rows as a block, or fewer at the end. An error of the source is kept until the
# rows before it have been used.
gather <- function(feed, least) {
  blocks <- list()
  n <- 0
  while (n < least && is.null(feed$failure)) {
    block <- tryCatch(read_block(feed), error = function(e) {
      feed$failure <- e
      NULL
    })
    if (is.null(block)) break
    blocks[[length(blocks) + 1]] <- block
    n <- n + block_rows(block)
  }
  if (n == 0) feed$failure
  else within_rows(feed$read - n, n, bind_blocks(blocks))
}

is_failure <- function(block) inherits(block, "condition")

# What identifies the data of a fit (R/fingerprint.R): "rows", their "response", or "nothing" if it
# is neither.
identified_by <- function(encoded) {
  if (is.null(encoded$observed)) return("rows")
  if (identical(data_id(encoded), block_id(encoded, "response"))) "response" else "nothing"
}

block_id <- function(encoded, by) {
  if (by == "nothing") return(NULL)
  response <- encoded$rows[nrow(encoded$rows), ]
  if (!is.null(encoded$offset)) response <- response + encoded$offset
  .Call(ffi_fingerprint, if (by == "rows") encoded$rows else response, 1)
}

#' The fingerprint of two parts of the data together: numbers of rows and sums of hashes
#' @noRd
join_ids <- function(one, other) {
  if (is.null(one) || is.null(other)) return(NULL)
  half <- function(id, from, to) as.numeric(paste0("0x", substr(sub(".*-", "", id), from, to)))
  low <- half(one, 9, 16) + half(other, 9, 16)
  high <- half(one, 1, 8) + half(other, 1, 8) + (low >= 2^32)
  hex <- function(x) {
    x <- x %% 2^32
    sprintf("%04x%04x", as.integer(x %/% 2^16), as.integer(x %% 2^16))
  }
  n <- as.numeric(sub("-.*", "", one)) + as.numeric(sub("-.*", "", other))
  paste0(format(n, scientific = FALSE), "-", hex(high), hex(low))
}

# Do the rows come from a source, and not from an object in memory?
is_streamed <- function(encoded) !is.null(encoded$sampled)

#' The next rows for C
#'
#' Reads one block ahead, so that the last rows are known to be the last.
#' @return A list: `rows`, a matrix with an observation in each column, and `last`.
#' @noRd
pull <- function(feed) {
  block <- feed$waiting
  if (is_failure(block)) stop(block)
  feed$waiting <- gather(feed, GATHER_ROWS)
  added <- within_rows(feed$at, block_rows(block), encode_block(feed, block))
  rows <- added$rows
  feed$at <- feed$at + ncol(rows)
  if (isTRUE(feed$passed)) return(list(rows = rows, last = is.null(feed$waiting)))
  id <- block_id(added, feed$identified)
  feed$id <- if (feed$n == 0) id else join_ids(feed$id, id)
  feed$n <- feed$n + ncol(rows)
  feed$kept <- if (feed$n <= feed$keep) c(feed$kept, list(rows))
  list(rows = rows, last = is.null(feed$waiting))
}

encode_block <- function(feed, block) {
  rows <- if (!is.null(feed$plain)) plain_rows(block, feed$plain)
  if (!is.null(rows)) return(list(rows = rows, n = ncol(rows), offset = NULL))
  encode_new(feed$model, feed$encoded$design, block_data(block), TRUE, "data")
}

#' Rows for C from a block whose columns need no change
#'
#' @param plain From the model's contract: the `columns`, whether there is an `intercept`, and
#'   `names` for the rows.
#' @return The rows, or NULL if the block has other columns than plain numbers.
#' @noRd
plain_rows <- function(block, plain) {
  rows <- if (is_arrow_block(block)) {
    .Call(ffi_arrow_rows, block$array, block$schema, plain$columns, plain$intercept)
  } else if (is.data.frame(block) && all(plain$columns %in% names(block))) {
    columns <- lapply(plain$columns, function(name) block[[name]])
    plain_vector <- function(x) is.numeric(x) && !is.object(x) && is.null(dim(x))
    if (all(vapply(columns, plain_vector, NA))) .Call(ffi_vector_rows, columns, plain$intercept)
  }
  if (is.null(rows)) return(NULL)
  if (!is.matrix(rows)) refuse_not_finite(rows[3], plain$columns[rows[2]], rows[1], "data")
  dimnames(rows) <- list(plain$names, NULL)
  rows
}

# For a second pass: back to the first row.
rewind_feed <- function(feed) {
  close_feed(feed)
  feed$passed <- TRUE
  feed$at <- feed$read <- 0
  feed$failure <- NULL
  feed$reader <- feed$source$open()
  feed$waiting <- gather(feed, GATHER_ROWS)
}

# All rows pulled so far, or NULL if they are too many to be kept.
kept_rows <- function(feed) if (length(feed$kept)) do.call(cbind, feed$kept)

close_feed <- function(feed) close_reader(feed)

#' What encode() returns, after all rows have been pulled: with the rows if they were kept, or with
#' the sample that a run has kept
#' @noRd
encoded_by <- function(feed, sample = NULL) {
  encoded <- feed$encoded
  encoded$n <- if (feed$n <= .Machine$integer.max) as.integer(feed$n) else feed$n
  rows <- kept_rows(feed)
  encoded$sampled <- is.null(rows)
  if (is.null(rows)) rows <- sample
  if (!is.null(rows)) encoded$rows <- rows
  encoded$data_id <- feed$id
  encoded
}

# Methods ------------------------------------------------------------------------------------------

# A run keeps so many rows in memory: all of them, or a uniform sample.
KEEP <- 20000

#' A method for rows that come in blocks: in their order, in chunks of bounded size
#' @noRd
by_blocks <- function(method, model, source, keep = KEEP) {
  if (is_latent(model) || asks_r(model))
    fail("A ", model$name, "() needs all rows at once: give it a data frame.")
  sequential <- method$name %in% c("sgais", "sequential", "hybrid", "online_nested") ||
    identical(method$path, "data")
  if (!sequential)
    fail("`method` ", method$name, "() needs all rows at once: use sgais(), smc(\"data\"), ",
         "sequential(), hybrid() or online_nested(), or give it a data frame.")
  method$settings <- in_given_order(method$settings, keep, source$rewinds)
  if (!is.null(method$thorough))
    method$thorough <- in_given_order(method$thorough, keep, source$rewinds)
  method
}

in_given_order <- function(settings, keep, again) {
  settings[c("keep", "again")] <- list(keep, as.double(again))
  if (isTRUE(settings$shuffle > 0) && isTRUE(settings$search > 0)) settings$restarts <- 1
  settings$shuffle <- 0
  for (name in grep("[.]chunk_most$", names(settings), value = TRUE))
    settings[[name]] <- min(settings[[name]], STREAM_CHUNK)
  settings
}

# The rows of a run whose memory is bounded: the standard error includes what the sample adds, but a
# large one must be explained.
PAST_MOST <- 1 # nats

past_warnings <- function(out) {
  if (is.null(out$past_se)) return(NULL)
  advice <- paste("Use a source that can be read again, or a larger `keep`.")
  changed <- drop(out$past_changed) > 0 && drop(out$past_exact) == 0
  c(if (changed)
      paste("The distribution of the rows changed when earlier rows were no longer in memory, and",
            "the run went on from a sample of them.", advice),
    if (drop(out$past_se) > PAST_MOST)
      sprintf(paste("Only a sample of the rows was kept in memory. This adds a standard error of",
                    "%s nats to the estimate. %s"),
              format(signif(drop(out$past_se), 2), scientific = FALSE), advice))
}

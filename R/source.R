# Sources of rows: data that come in blocks, from a function, a file, a database or memory.
#
# A source is a specification, as models and methods are. `open()` makes a reader of it: `read()`
# returns the next block, a data frame or what else the model accepts as data, or NULL at the end,
# and `close()` ends it. A feed (open_feed()) binds a reader to a model and gives rows of numbers to
# the runs. The size of the source's blocks does not matter: runs take rows in portions of their own.

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
  force(data)
  new_source("rows_in_memory", function() list("Rows in memory"), function() {
    left <- TRUE
    list(read = function() if (left) {
      left <<- FALSE
      data
    }, close = function() NULL)
  }, rewinds = TRUE, count = function() as.double(NROW(data)))
}

#' All rows of a source as one object in memory
#' @noRd
collect_rows <- function(source) {
  reader <- source$open()
  on.exit(reader$close())
  blocks <- list()
  while (!is.null(block <- reader$read())) if (block_rows(block)) blocks <- c(blocks, list(block))
  if (length(blocks) == 0) fail("`data` must have at least one row, not 0.")
  bind_blocks(blocks)
}

# Blocks ------------------------------------------------------------------------------------------

block_rows <- function(block) {
  NROW(if (is.list(block) && !is.data.frame(block)) block$x else block)
}

block_part <- function(block, which) {
  if (is.data.frame(block) || is.matrix(block)) block[which, , drop = FALSE]
  else if (is.list(block)) list(x = block_part(block$x, which), y = block$y[which])
  else block[which]
}

bind_blocks <- function(blocks) {
  if (length(blocks) == 1) return(blocks[[1]])
  first <- blocks[[1]]
  if (is.data.frame(first) || is.matrix(first)) do.call(rbind, blocks)
  else if (is.list(first))
    list(x = bind_blocks(lapply(blocks, `[[`, "x")), y = unlist(lapply(blocks, `[[`, "y")))
  else unlist(blocks)
}

# Feeds -------------------------------------------------------------------------------------------

# From these first rows the levels of factors and the types of columns are taken.
HEAD_ROWS <- 10000

#' Bind a source to a model
#'
#' @param keep All rows are kept in memory up to this number.
#' @return A feed, an environment: `encoded` (what encode() returns for the first rows, without
#'   these), `pull()`, and the number of rows `n` pulled so far.
#' @noRd
open_feed <- function(model, source, keep = Inf) {
  feed <- new_feed(model, source, keep)
  feed$reader <- source$open()
  tryCatch(begin_feed(feed), error = function(e) {
    close_feed(feed)
    stop(e)
  })
  feed
}

# `tracks`: whether the blocks since the last saved state are kept (`since`; `cells` counts their
# numbers), because a state that is older than the last block needs them (R/work.R).
new_feed <- function(model, source, keep) {
  feed <- new.env(parent = emptyenv())
  feed$source <- source
  feed$model <- model
  feed$keep <- keep
  feed$n <- feed$from <- 0
  feed$kept <- list()
  feed$argument <- "data"
  feed$ended <- feed$tracks <- FALSE
  feed$since <- feed$again <- list()
  feed$cells <- 0
  feed
}

begin_feed <- function(feed) {
  blocks <- list()
  n <- 0
  while (n < HEAD_ROWS && !is.null(block <- read_block(feed))) {
    blocks <- c(blocks, list(block))
    n <- n + block_rows(block)
  }
  if (n == 0) fail("`data` must have at least one row, not 0.")
  head <- bind_blocks(blocks)
  feed$waiting <- head
  first <- encode(feed$model, if (n > HEAD_ROWS) block_part(head, seq_len(HEAD_ROWS)) else head)
  feed$identified <- identified_by(first)
  first$n <- NA_real_
  first$rows <- first$rows[, 0, drop = FALSE]
  first[c("observed", "in_order", "pairing", "offset")] <- NULL
  feed$encoded <- first
}

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

# Sources are not joined, because their columns and levels may differ.
#' @export
c.rows_source <- function(...) {
  fail("Sources of rows cannot be joined by c(): fit the first with evidence(), and add the rows ",
       "of the others with update().")
}

# The next block that is not empty.
read_block <- function(feed) {
  while (!is.null(block <- feed$reader$read())) if (block_rows(block) > 0) return(block)
  NULL
}

#' The next rows for C
#'
#' @return A list: `rows`, a matrix with an observation in each column, and `last`: whether the
#'   source has ended; then there are no rows.
#' @noRd
pull <- function(feed) {
  if (length(feed$again)) {
    # rows that were pulled before the run was saved, but after its states were
    rows <- feed$again[[1]]
    feed$again <- feed$again[-1]
    track(feed, rows)
    return(list(rows = rows, last = FALSE))
  }
  block <- if (!is.null(feed$waiting)) feed$waiting else if (!feed$ended) read_block(feed)
  feed$waiting <- NULL
  if (is.null(block)) {
    feed$ended <- TRUE
    return(list(rows = feed$encoded$rows, last = TRUE))
  }
  added <- tryCatch(encode_new(feed$model, feed$encoded$design, block, TRUE, feed$argument),
                    logevidence_error = function(e) stop(row_of_source(e, feed)))
  id <- block_id(added, feed$identified)
  # all of it or nothing, so that a run can be saved whenever it is interrupted
  suspendInterrupts({
    feed$id <- if (feed$n == 0) id else join_ids(feed$id, id)
    feed$n <- feed$n + ncol(added$rows)
    feed$kept <- if (feed$n <= feed$keep) c(feed$kept, list(added$rows))
    track(feed, added$rows)
  })
  list(rows = added$rows, last = FALSE)
}

# A check counts rows from the start of the block, the user from the start of the source (`from`:
# the rows of a fit to which the source adds).
row_of_source <- function(e, feed) {
  place <- regexpr("row [0-9][0-9,]*", e$message)
  if (place < 0) return(e)
  row <- as.numeric(gsub("[^0-9]", "", regmatches(e$message, place)))
  regmatches(e$message, place) <- paste("row", big(feed$n - feed$from + row))
  e
}

track <- function(feed, rows) {
  if (!feed$tracks) return(invisible())
  feed$since <- c(feed$since, list(rows))
  feed$cells <- feed$cells + length(rows)
}

# All rows pulled so far, or NULL if they are too many to be kept.
kept_rows <- function(feed) if (length(feed$kept)) do.call(cbind, feed$kept)

close_feed <- function(feed) {
  reader <- feed$reader
  feed$reader <- NULL
  if (!is.null(reader)) reader$close()
}

#' What encode() returns, after all rows have been pulled: with the rows if they were kept
#' @noRd
encoded_by <- function(feed) {
  encoded <- feed$encoded
  # whole numbers are integers, as for data in memory
  encoded$n <- if (feed$n <= .Machine$integer.max) as.integer(feed$n) else feed$n
  rows <- kept_rows(feed)
  encoded$sampled <- is.null(rows)
  if (!is.null(rows)) encoded$rows <- rows
  encoded$data_id <- feed$id
  encoded
}

# Methods ------------------------------------------------------------------------------------------

# A run keeps so many rows in memory: all of them, or a uniform sample.
KEEP <- 20000

#' A method for rows that come in blocks: in their order, in chunks of bounded size
#' @noRd
by_blocks <- function(method, model) {
  if (is_latent(model) || asks_r(model))
    fail("A ", model$name, "() needs all rows at once: give it a data frame.")
  if (!takes_blocks(method))
    fail("`method` ", method$name, "() needs all rows at once: use sgais(), smc(\"data\"), ",
         "sequential(), hybrid() or online_nested(), or give it a data frame.")
  method$settings <- in_given_order(method$settings)
  if (!is.null(method$thorough)) method$thorough <- in_given_order(method$thorough)
  method
}

takes_blocks <- function(method) {
  method$name %in% c("sgais", "sequential", "hybrid", "online_nested") ||
    identical(method$path, "data")
}

in_given_order <- function(settings) {
  if (isTRUE(settings$shuffle > 0) && isTRUE(settings$search > 0)) settings$restarts <- 1
  settings$shuffle <- 0
  for (name in grep("[.]chunk_most$", names(settings), value = TRUE))
    settings[[name]] <- min(settings[[name]], STREAM_CHUNK)
  settings
}

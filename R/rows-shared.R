# A source that several feeds read at the same time: each of its blocks is read once.
#
# A reader that is ahead of others reads the next block; the block is kept until the others have
# taken it. Feeds that are given rows by turns (R/run-driver.R) differ by a block or two.

#' Sources of the same rows for several feeds
#'
#' @return A list of `n` sources.
#' @noRd
shared_sources <- function(source, n) {
  shared <- list2env(list(source = source, blocks = list(), gone = 0, read = 0,
                          ended = FALSE, pass = 0, at = rep(0, n), own_pass = rep(0, n),
                          reads = rep(FALSE, n)), parent = emptyenv())
  lapply(seq_len(n), function(i)
    new_source(c("rows_shared", class(source)[1]), source$describe,
               function() open_share(shared, i), source$rewinds, source$count, lasts = FALSE))
}

# All readers go through the rows together. One that comes too late for the first block has a pass
# of its own.
open_share <- function(shared, i) {
  first <- shared$gone == 0 && shared$own_pass[i] < shared$pass
  if (!first) {
    at_end <- shared$ended & shared$at == shared$gone + length(shared$blocks)
    if (any((shared$reads & !at_end)[-i])) return(shared$source$open())
    close_shared(shared)
    shared$reader <- shared$source$open()
    shared$pass <- shared$pass + 1
    shared$blocks <- list()
    shared$gone <- shared$read <- 0
    shared$ended <- FALSE
  }
  shared$own_pass[i] <- shared$pass
  shared$at[i] <- 0
  shared$reads[i] <- TRUE
  list(read = function() read_share(shared, i), check = shared$reader$check,
       close = function() leave_share(shared, i))
}

read_share <- function(shared, i) {
  k <- shared$at[i] - shared$gone + 1
  if (k > length(shared$blocks)) {
    if (shared$ended) return(NULL)
    block <- tryCatch(shared$reader$read(), error = function(e) stop(unread(e, shared$read)))
    shared$ended <- is.null(block)
    if (shared$ended) return(NULL)
    shared$blocks[[k]] <- block
    shared$read <- shared$read + block_rows(block)
  }
  block <- shared$blocks[[k]]
  shared$at[i] <- shared$at[i] + 1
  forget_blocks(shared)
  block
}

#' An error of the source itself, which concerns all models
#' @noRd
unread <- function(e, read) {
  e <- reading_error(e, read)
  class(e) <- c("rows_unread", class(e))
  e
}

# Forgets blocks that every reader has taken. A reader that has not begun reads from the first.
forget_blocks <- function(shared) {
  begun <- shared$own_pass == shared$pass
  if (shared$pass == 1 && !all(begun)) return(invisible())
  behind <- min(shared$at[begun & shared$reads], shared$gone + length(shared$blocks))
  shared$blocks <- utils::tail(shared$blocks, shared$gone + length(shared$blocks) - behind)
  shared$gone <- behind
}

leave_share <- function(shared, i) {
  if (!shared$reads[i]) return(invisible())
  shared$reads[i] <- FALSE
  if (!any(shared$reads)) {
    # all that were to begin have begun, or none will
    shared$own_pass[] <- shared$pass
    close_shared(shared)
  }
  forget_blocks(shared)
}

close_shared <- function(shared) {
  reader <- shared$reader
  shared$reader <- NULL
  if (!is.null(reader)) reader$close()
}

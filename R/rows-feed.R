# Feeds: a source of rows bound to a model, for the runs (R/run-conductor.R).
#
# A feed is an environment with the fields of FEED_FIELDS. The rows that it gives were read once
# for all runs. A position (feed_position()) is the list of those fields that are saved, with which
# a feed that is made again goes on where this one was.

# Each field: what it begins as, and whether it is a part of a saved position. `make lint` looks
# whether fields that are used are named here.
saved_field <- function(begins = NULL) list(begins = begins, saved = TRUE)
other_field <- function(begins = NULL) list(begins = begins, saved = FALSE)

FEED_FIELDS <- list(
  # the source, and its reader, from open_reader()
  source = other_field(),
  reading = other_field(),
  # the model with what encode() returns for the first rows, without these; the names of the columns
  # that matter; columns that need no change; `head` identifies the first rows
  model = other_field(),
  encoded = other_field(),
  used = other_field(),
  plain = other_field(),
  head = other_field(),
  # the argument of the user that messages name
  argument = other_field("data"),
  # rows so far, with those of an earlier fit, and their fingerprint, of the whole rows or of their
  # responses (`identified`); the fingerprint of the rows of the earlier fit; fingerprints of rows
  # with their places
  n = saved_field(0),
  id = saved_field(),
  identified = saved_field(),
  id_before = saved_field(),
  order = saved_field(),
  # rows that were given from this source in this pass. The feed ends after `ends_after` rows,
  # whatever else the source has; a block ends at row `block_ends_at`.
  at = saved_field(0),
  ends_after = saved_field(Inf),
  block_ends_at = other_field(Inf),
  ended = saved_field(FALSE),
  # fingerprints of all numbers of a pass: a further pass must give the same rows. Some rows cannot
  # be read again if `cannot_reread`.
  is_further_pass = saved_field(FALSE),
  id_of_pass = saved_field(),
  id_of_first_pass = saved_field(),
  cannot_reread = saved_field(FALSE),
  # the next block, or the error that the source has raised instead; a block that was read but has
  # columns of other types than those before it; the error of the source that comes after them
  read_ahead = saved_field(),
  block_of_other_types = saved_field(),
  failure = other_field(),
  # rows are kept in memory up to the number `keep`
  keep = other_field(Inf),
  kept = saved_field(list()),
  # the last rows before the next block, and before the first row, for lagged columns
  # (R/spec-lags.R)
  carry = saved_field(),
  carry_before = saved_field(),
  # of a model whose rows are groups: the levels of each factor that were read (environments); the
  # last rows, whose group may go on in the next block; where the levels of each block are; the
  # number of rows; the number of groups of this pass and of an earlier fit
  by_groups = other_field(FALSE),
  groups = other_field(),
  open_group = saved_field(),
  places = saved_field(list()),
  observations = saved_field(0),
  units = saved_field(0),
  units_before = saved_field(0),
  # A state that is older than the last block needs the blocks since then again. If the source
  # cannot give them again, they are kept (`keeps_given`); a feed that goes on gives them first.
  keeps_given = other_field(FALSE),
  given_since_saved = other_field(list()),
  numbers_since_saved = other_field(0),
  to_give_again = saved_field(list())
)

# Smaller blocks of the source are put together, because each call of C and R takes some time.
GATHER_ROWS <- 1000

#' Bind a source to a model
#'
#' @param keep All rows are kept in memory up to this number.
#' @param counted Of groups, what read_groups() has counted; by default those of the source.
#' @noRd
open_feed <- function(model, source, keep = Inf, counted = NULL) {
  feed <- new_feed(model, source, keep)
  if (feed$by_groups && source$rewinds && is.null(counted))
    counted <- read_groups(model, source)$counted
  begin_reading(feed)
  open <- FALSE
  on.exit(if (!open) close_feed(feed))
  begin_feed(feed, counted)
  open <- TRUE
  feed
}

new_feed <- function(model, source, keep = Inf) {
  feed <- list2env(lapply(FEED_FIELDS, `[[`, "begins"), parent = emptyenv())
  # a field that is not in the table is an error
  lockEnvironment(feed)
  feed$source <- source
  feed$model <- model
  feed$keep <- keep
  feed$used <- columns_read(model)
  feed$by_groups <- takes_units(model)
  feed
}

#' Where a feed is
#' @noRd
feed_position <- function(feed) {
  position <- mget(names(FEED_FIELDS)[vapply(FEED_FIELDS, `[[`, NA, "saved")], envir = feed)
  # what no run has been given, or only after the states were saved
  position$to_give_again <- c(feed$given_since_saved, feed$to_give_again)
  position
}

#' The position of a feed that has ended and goes on with other rows, which cannot be read again
#'
#' @param ... Fields that are not as in a new feed.
#' @noRd
position_to_go_on <- function(...) {
  given <- list(..., cannot_reread = TRUE)
  position <- lapply(FEED_FIELDS, `[[`, "begins")[vapply(FEED_FIELDS, `[[`, NA, "saved")]
  position[names(given)] <- given
  position
}

#' A feed at a position, still without a reader
#' @noRd
feed_at <- function(position, model, encoded, keep) {
  feed <- new_feed(model, NULL, keep)
  feed$encoded <- encoded
  feed$plain <- part_of(model, "plain")(model, encoded$design)
  for (name in names(position)) assign(name, position[[name]], feed)
  if (feed$n > feed$keep) feed$kept <- NULL
  feed
}

#' Open the feed's source at its first row
#' @noRd
begin_reading <- function(feed) {
  feed$reading <- open_reader(feed$source)
  feed$failure <- feed$open_group <- NULL
  feed$groups <- new.env(parent = emptyenv())
}

begin_feed <- function(feed, counted = NULL) {
  check_columns(feed$reading, feed$used)
  feed$read_ahead <- gather(feed, HEAD_ROWS)
  if (is.null(feed$read_ahead)) fail("`data` must have at least one row, not 0.")
  if (is_failure(feed$read_ahead)) stop(feed$read_ahead)
  head <- block_data(feed$read_ahead)
  if (block_rows(head) > HEAD_ROWS) head <- block_part(head, seq_len(HEAD_ROWS))
  first <- encode_head(feed$model, head)
  feed$plain <- part_of(feed$model, "plain")(feed$model, first$design)
  feed$identified <- if (feed$by_groups) "observed" else identified_by(first)
  first$design[c("carry", "varying_id", "column_ids")] <- NULL
  first$n <- NA_real_
  first$head_id <- fingerprint(first$rows)
  feed$head <- if (is.null(first$partial)) stand_in(feed$model, first)
  if (feed$by_groups)
    first <- part_of(feed$model, "groups")$room(first, counted, feed$keep)
  first$rows <- first$rows[, 0, drop = FALSE]
  first[c("observed", "in_order", "pairing", "offset", "partial", "each")] <- NULL
  feed$encoded <- first
}

#' What says of which observations a model is, before there is a fit
#' @noRd
stand_in <- function(model, encoded)
  list(n = if (is.null(encoded$observations)) ncol(encoded$rows) else encoded$observations,
       data_id = data_id(encoded), pairing = encoded$pairing, design = encoded$design,
       model = model)

# The rows before a bad one are used, and it is met again when the run comes to it.
encode_head <- function(model, head) {
  tryCatch(encode(model, head), logevidence_row_error = function(e) {
    before <- seq_len(e$row - 1)
    if (!length(before)) stop(e)
    part <- tryCatch(encode(model, block_part(head, before)), error = function(...) stop(e))
    c(part, partial = TRUE)
  })
}

# At least so many rows as a block, or fewer at the end. An error of the source is kept until the
# rows before it have been used.
gather <- function(feed, least) {
  blocks <- list()
  n <- 0
  kinds <- NULL
  while (n < least && is.null(feed$failure)) {
    block <- if (feed$by_groups) next_groups(feed) else next_block(feed)
    if (is.null(block)) break
    if (length(blocks)) {
      if (is.null(kinds)) kinds <- block_kinds(blocks[[1]], feed$used)
      if (!identical(block_kinds(block, feed$used), kinds)) {
        feed$block_of_other_types <- block
        break
      }
    }
    blocks[[length(blocks) + 1]] <- block
    n <- n + block_rows(block)
  }
  if (n == 0) feed$failure
  else within_rows(feed$at, n, bind_blocks(blocks, feed$used))
}

# The block that was read last but has other types than those before it, or the next one.
next_block <- function(feed) {
  if (!is.null(feed$block_of_other_types)) {
    block <- feed$block_of_other_types
    feed$block_of_other_types <- NULL
    return(block)
  }
  tryCatch(read_block(feed$reading), error = function(e) {
    feed$failure <- e
    NULL
  })
}

is_failure <- function(block) inherits(block, "condition")

# What identifies the data of a fit (R/base-fingerprint.R): "rows", their "response", what is
# "observed" of groups, or "nothing" if it is none.
identified_by <- function(encoded, id = data_id(encoded), threads = 1) {
  if (is.null(encoded$observed)) return("rows")
  if (identical(id, block_id(encoded, "response", threads))) "response" else "nothing"
}

block_id <- function(encoded, by, threads = 1) {
  if (by == "nothing") return(NULL)
  if (by == "observed") return(fingerprint(encoded$observed))
  rows <- encoded$rows
  moved <- by == "response" && !is.null(encoded$offset)
  if (moved) rows <- rows[nrow(rows), ] + encoded$offset
  fingerprint(rows, threads, last = by == "response" && !moved)
}

#' The same with the place of each row: fits of equal ones have seen the same rows in the same order
#'
#' @param before Number of rows before these.
#' @noRd
ordered_id <- function(encoded, by, before = 0) {
  if (by %in% c("nothing", "observed")) return(NULL)
  rows <- encoded$rows
  if (by == "response") {
    rows <- rows[nrow(rows), , drop = FALSE]
    if (!is.null(encoded$offset)) rows <- rows + encoded$offset
  }
  fingerprint(rbind(rows, before + seq_len(ncol(rows))))
}

#' The next rows for C
#'
#' @return A list: `rows`, a matrix with an observation in each column, and `last`: whether the
#'   source has ended; then there are no rows.
#' @noRd
pull <- function(feed) {
  if (length(feed$to_give_again)) {
    # rows that were pulled before the run was saved, but after its states were
    rows <- feed$to_give_again[[1]]
    feed$to_give_again <- feed$to_give_again[-1]
    track(feed, rows)
    return(list(rows = rows, last = FALSE))
  }
  left <- feed$ends_after - feed$at
  block <- if (left > 0) {
    if (!is.null(feed$read_ahead)) feed$read_ahead else if (!feed$ended) gather(feed, GATHER_ROWS)
  }
  feed$read_ahead <- NULL
  if (is_failure(block)) stop(block)
  size <- if (!is.null(block)) block_rows(block) else 0
  most <- if (feed$block_ends_at > feed$n && !feed$is_further_pass) feed$block_ends_at - feed$n
  else Inf
  if (size > min(left, most)) {
    block <- block_data(block)
    if (most < left) feed$read_ahead <- block_part(block, (most + 1):size)
    block <- block_part(block, seq_len(min(left, most)))
  }
  if (is.null(block)) {
    if (feed$is_further_pass) check_same_rows(feed$id_of_first_pass, feed$id_of_pass)
    feed$ended <- TRUE
    return(list(rows = feed$encoded$rows, last = TRUE))
  }
  added <- encoded_rows(feed, block)
  id <- if (!feed$is_further_pass) block_id(added, feed$identified)
  order <- if (!feed$is_further_pass) ordered_id(added, feed$identified, feed$n)
  print <- print_with(feed, added, id)
  # all of it or nothing, so that a run can be saved whenever it is interrupted
  suspendInterrupts({
    feed$at <- feed$at + added$size
    feed$units <- feed$units + ncol(added$rows)
    feed$carry <- added$carry
    feed$id_of_pass <- print
    if (!feed$is_further_pass) {
      feed$id <- if (feed$n == 0) id else join_ids(feed$id, id)
      feed$order <- c(feed$order, order)
      if (length(feed$order) > 100) feed$order <- join_all(feed$order)
      feed$n <- feed$n + ncol(added$rows)
      if (feed$by_groups) {
        feed$observations <- feed$observations + added$size
        feed$places <- c(feed$places, list(added$places))
      }
      feed$kept <- if (feed$n <= feed$keep) c(feed$kept, list(added$rows))
    }
    track(feed, added$rows)
  })
  list(rows = added$rows, last = FALSE)
}

# The fingerprint of this pass with these rows; `id` is their own, and NULL in a further pass.
print_with <- function(feed, added, id) {
  if (feed$cannot_reread) return(NULL)
  own <- if (!is.null(id) && feed$identified == "rows") id else fingerprint(added$rows)
  if (feed$at == 0) own else join_ids(feed$id_of_pass, own)
}

#' Refuse a source whose rows are others when it is read again
#'
#' @param first,again Fingerprints of two passes; NULL of one without rows.
#' @noRd
check_same_rows <- function(first, again) {
  if (is.null(first) || identical(again, first)) return(invisible())
  rows_of <- function(print) if (is.null(print)) 0 else as.numeric(sub("-.*", "", print))
  fail("`data` must give the same rows each time it is read. It gave ", count(rows_of(first)),
       " rows first, and ", if (rows_of(first) == rows_of(again)) "rows with other values"
       else count_of(rows_of(again), "row"), " the second time. Use a source that does not change ",
       "during the run, one that is read only once (as rows_function(rewind = FALSE) is), or a ",
       "larger `keep`.")
}

# The fingerprint of the rows in the first pass.
print_of <- function(feed) if (feed$is_further_pass) feed$id_of_first_pass else feed$id_of_pass

# A bad row stops the run when the rows before it have been used.
encoded_rows <- function(feed, block) {
  size <- block_rows(block)
  code <- function(block) within_rows(feed$at, size, encode_block(feed, block))
  tryCatch(code(block), logevidence_row_error = function(e) {
    before <- e$row - feed$at - 1
    if (feed$by_groups) before <- rows_of_whole_groups(feed, block, before)
    if (before < 1) stop(e)
    feed$read_ahead <- e
    code(block_part(block_data(block), seq_len(before)))
  })
}

track <- function(feed, rows) {
  if (!feed$keeps_given) return(invisible())
  feed$given_since_saved <- c(feed$given_since_saved, list(rows))
  feed$numbers_since_saved <- feed$numbers_since_saved + length(rows)
}

encode_block <- function(feed, block) {
  rows <- if (!is.null(feed$plain)) plain_rows(block, feed$plain, feed$argument)
  if (!is.null(rows)) return(list(rows = rows, n = ncol(rows), offset = NULL, size = ncol(rows)))
  data <- block_data(block)
  if (feed$by_groups) {
    added <- part_of(feed$model, "groups")$encode(feed$model, feed$encoded, data, feed$argument,
                                                  feed$units)
    return(c(added, size = block_rows(data)))
  }
  design <- feed$encoded$design
  design$carry <- feed$carry
  added <- encode_new(feed$model, design, data, TRUE, feed$argument)
  added$size <- block_rows(data)
  if (isTRUE(design$lag > 0))
    added$carry <- carry_of(with_carry(data, design$carry, design$carried, feed$argument),
                            design$carried, design$lag)
  added
}

#' Rows for C from a block whose columns need no change
#'
#' @param plain From the model's contract: the `columns`, whether there is an `intercept`, `names`
#'   for the rows, and their `scaling`.
#' @return The rows, or NULL if the block has other columns than plain numbers.
#' @noRd
plain_rows <- function(block, plain, argument = "data") {
  rows <- if (is_arrow_block(block)) {
    .Call(ffi_arrow_rows, block$array, block$schema, plain$columns, plain$intercept)
  } else if (is.data.frame(block) && all(plain$columns %in% names(block))) {
    columns <- lapply(plain$columns, function(name) block[[name]])
    plain_vector <- function(x) is.numeric(x) && !is.object(x) && is.null(dim(x))
    if (all(vapply(columns, plain_vector, NA))) .Call(ffi_vector_rows, columns, plain$intercept)
  }
  if (is.null(rows)) return(NULL)
  if (!is.matrix(rows)) refuse_not_finite(rows[3], plain$columns[rows[2]], rows[1], argument)
  rows <- standardise(rows, list(plain$scaling))
  dimnames(rows) <- list(plain$names, NULL)
  rows
}

# For a further pass: back to the first row.
rewind_feed <- function(feed) {
  if (is.null(feed$source))
    fail("`data` must be given again: the check at the end of the run reads its rows once more.")
  close_feed(feed)
  begin_reading(feed)
  if (!feed$is_further_pass) feed$id_of_first_pass <- feed$id_of_pass
  feed$id_of_pass <- NULL
  feed$is_further_pass <- TRUE
  feed$carry <- feed$carry_before
  feed$units <- feed$units_before
  feed$ended <- FALSE
  feed$at <- 0
  feed$given_since_saved <- feed$to_give_again <- list()
  feed$numbers_since_saved <- 0
}

#' The rows of a feed as the driver sees them (R/rows-contract.R)
#' @noRd
feed_rows <- function(feed) {
  begin <- function(run, k = 1)
    if (feed$cannot_reread) .Call(ffi_run_feed, run, feed$encoded$rows, "once")
  new_rows("blocks", begin, begin, function() pull(feed), function() rewind_feed(feed),
           at = function() feed$at, passed = function() feed$is_further_pass,
           whole = function() kept_rows(feed))
}

# All rows pulled so far, or NULL if they are too many to be kept.
kept_rows <- function(feed) if (length(feed$kept)) do.call(cbind, feed$kept)

close_feed <- function(feed) if (!is.null(feed$reading)) close_reader(feed$reading)

#' What encode() returns, after all rows have been pulled: with the rows if they were kept, or with
#' the sample that a run has kept
#' @noRd
encoded_by <- function(feed, sample = NULL) {
  encoded <- feed$encoded
  encoded$n <- count_as_integer(feed$n)
  rows <- kept_rows(feed)
  encoded$sampled <- is.null(rows)
  encoded$design$carry <- feed$carry
  if (is.null(rows)) rows <- sample
  if (!is.null(rows)) encoded$rows <- rows
  encoded$data_id <- feed$id
  if (!feed$by_groups) return(encoded)
  part_of(feed$model, "groups")$whole(encoded, feed$places, feed$observations, !encoded$sampled)
}

# Groups -------------------------------------------------------------------------------------------

#' Rows of whole groups: those after the last end of a group wait for the next block
#'
#' @return As next_block().
#' @noRd
next_groups <- function(feed) {
  repeat {
    block <- next_block(feed)
    if (!is.null(feed$failure)) return(NULL)
    rows <- if (is.null(block)) feed$open_group
    else if (is.null(feed$open_group)) block_data(block)
    else {
      check_kinds(feed$open_group, block, feed$reading$read - block_rows(block))
      bind_blocks(list(feed$open_group, block_data(block)), feed$used)
    }
    if (is.null(rows)) return(NULL)
    size <- block_rows(rows)
    before <- feed$reading$read - size
    units <- within_rows(before, size,
                         part_of(feed$model, "groups")$units(feed$model, rows, feed$argument))
    ends <- if (is.null(block)) size else max(0, units$ends[units$ends < size])
    feed$open_group <- if (ends < size) block_part(rows, (ends + 1):size)
    if (ends == 0) next
    if (!feed$is_further_pass) note_groups(feed, units$factors, seq_len(ends), before)
    return(if (ends < size) block_part(rows, seq_len(ends)) else rows)
  }
}

# Rows of a block before a bad one: a part of a group is no group.
rows_of_whole_groups <- function(feed, block, most) {
  ends <- part_of(feed$model, "groups")$units(feed$model, block_data(block), feed$argument)$ends
  max(0, ends[ends <= most])
}

#' Refuse groups that come again, and remember these
#' @noRd
note_groups <- function(feed, factors, rows, before) {
  for (label in names(factors)) {
    codes <- factors[[label]]$codes[rows]
    levels <- factors[[label]]$levels[unique(codes)]
    known <- known_groups(feed, label)
    again <- vapply(as_name(levels), exists, NA, envir = known, inherits = FALSE)
    if (any(again))
      fail_in_row(before + match(unique(codes)[which(again)[1]], codes),
                  "`", feed$argument, "` must have the rows of a group together, because groups ",
                  "come in blocks here. Group ", show_text(levels[which(again)[1]]), " of `",
                  label, "` comes again in row ")
    remember_groups(known, levels)
  }
}

known_groups <- function(feed, label) {
  if (is.null(feed$groups[[label]])) assign(label, new.env(parent = emptyenv()), feed$groups)
  feed$groups[[label]]
}

# No variable has an empty name, and ls() leaves out names that begin with a point.
as_name <- function(levels) paste0("=", levels)

remember_groups <- function(known, levels)
  for (name in as_name(levels)) assign(name, TRUE, known)

#' The groups of an earlier fit, or of rows that were used before the source was opened again
#' @noRd
remember_places <- function(feed) {
  for (block in feed$places) for (label in names(block))
    remember_groups(known_groups(feed, label), block[[label]]$levels)
}

#' What the groups of a source need, from a pass over its rows
#'
#' @return A list: `counted`, from count_units(); `levels` of each factor; and `n`, the number of
#'   rows.
#' @noRd
read_groups <- function(model, source, used = columns_read(model)) {
  feed <- new_feed(model, source)
  begin_reading(feed)
  on.exit(close_feed(feed))
  check_columns(feed$reading, used)
  counted <- part_of(model, "groups")$count(model, function() {
    rows <- next_groups(feed)
    if (is.null(rows) && !is.null(feed$failure)) stop(feed$failure)
    rows
  })
  list(counted = counted, levels = lapply(as.list(feed$groups), function(known)
    substring(ls(known), 2)), n = as.double(feed$reading$read))
}

#' What encode() returns of all rows of a source, whose groups are joined block by block
#'
#' @param from What encode() has returned of earlier rows, or NULL.
#' @noRd
joined_source <- function(model, source, from = NULL) {
  feed <- new_feed(model, source)
  if (!is.null(from)) feed$argument <- "rows"
  begin_reading(feed)
  on.exit(close_feed(feed))
  check_columns(feed$reading, feed$used)
  encoded <- from
  # what it costs to join a block grows with the groups so far
  while (!is.null(block <- gather(feed, max(HEAD_ROWS, ncol(encoded$rows))))) {
    if (is_failure(block)) stop(block)
    data <- block_data(block)
    encoded <- within_rows(feed$at, block_rows(data),
                           if (is.null(encoded)) encode_to_join(model, data)
                           else join_rows(model, encoded, data, feed$argument))
    feed$at <- feed$at + block_rows(data)
  }
  if (is.null(encoded)) fail("`data` must have at least one row, not 0.")
  encoded
}

encode_to_join <- function(model, data) {
  encoded <- encode(model, data)
  encoded$data_id <- data_id(encoded)
  encoded$sampled <- FALSE
  encoded
}

#' @param data Data, or what the contract calls a part.
#' @noRd
join_rows <- function(model, encoded, data, argument = "data")
  part_of(model, "groups")$join(model, encoded, data, argument)

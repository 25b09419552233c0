# resume(): a run goes on from a checkpoint or from a stopped call.

#' Continue a run from a checkpoint
#'
#' Continues a run that was stopped: by a time limit, an interrupt, an error, or the end of its
#' process. The result is the same, to the last bit, as that of a run that was never stopped.
#'
#' @param from The file that was given to [evidence()] as `checkpoint`, or an incomplete fit: what
#'   `evidence()` returns after its `time_limit`, or the element `fit` of the condition of an error
#'   or an interrupt.
#' @param data The data again. Not needed for data in memory with at most 20 million numbers, and
#'   for sources that can be read again and opened by another process, such as a file. A source that
#'   can be read only once must be given again, and so must a function whose variables are in the
#'   global environment of a session that has ended, and [rows_cluster()]: the same shards, on this
#'   cluster or another one, of any number of workers.
#' @param skip Whether a source begins with the rows that were already used: they are read, compared
#'   with the fingerprint of the rows that were used, and skipped. `FALSE` if it begins with the
#'   first row that has not been used (`from$rows_read` rows were).
#' @param threads Number of threads; by default as before.
#' @param checkpoint,every As in [evidence_checkpoints]. By default the run goes on to write its
#'   file.
#' @param progress,time_limit,on_chunk,keep_state,cl As in [evidence()].
#'
#' @section Files of others:
#' A checkpoint, and a fit that was saved by [saveRDS()], may contain R functions: in the model, in
#' its formulas, and in the source of the rows. `resume()` runs them, and they can do whatever you
#' can do. The checksum of a checkpoint finds damage, not forgery. Open only files that you trust.
#'
#' @return A fit, or again an incomplete one, as from [evidence()].
#'
#' @examples
#' model <- linear_regression(dist ~ speed, sigma = 15, prior_sd = 10)
#' fit <- evidence(model, cars, smc(), seed = 1, time_limit = 0.001)
#' fit
#' if (inherits(fit, "incomplete_evidence")) resume(fit)
#'
#' file <- tempfile()
#' evidence(model, cars, seed = 1, checkpoint = file)
#' resume(file)
#'
#' @seealso [evidence()], [update.evidence()]
#' @export
resume <- function(from, data = NULL, skip = TRUE, threads = NULL, progress = interactive(),
                   checkpoint = if (is.character(from)) from, every = 60, time_limit = NULL,
                   on_chunk = NULL, keep_state = NULL, cl = NULL) {
  if (!inherits(from, c("incomplete_evidence", "incomplete_race")) && !is_one_string(from))
    refuse(from, "from", "a checkpoint file or an incomplete fit")
  skip <- check_flag(skip, "skip")
  saved <- if (is.character(from)) read_checkpoint(from) else from$state
  if (!has_run(saved)) fail("`from` must be a fit as evidence() has made it: this one has no run.")
  options <- check_options(progress, checkpoint, every, time_limit, on_chunk, keep_state,
                           begins = FALSE, cl = cl)
  on.exit(close_checkpoint(options))
  # the checkpoint is the one that was read under the lock
  if (is.character(from) && identical(options$checkpoint$file, file_place(from, "from")))
    saved <- options$checkpoint$old
  if (!is.null(saved$log)) {
    if (!skip) fail("`skip` must be TRUE for rows_cluster(), whose shards are opened anew.")
    return(fit_shards(shards_from(saved, threads), data, options))
  }
  if (is_sharded(data)) fail("`data` must not be rows_cluster(): the run has other data.")
  if (!is.null(saved$works)) return(resume_race(saved, data, skip, threads, options))
  work <- work_from(saved, threads)
  if (is_stream(work)) reopen(work, saved, data, skip)
  else work$encoded <- again_encoded(work, data)
  run_work(work, options)
}

#' The data of a run in memory, from its checkpoint or given again
#' @noRd
again_encoded <- function(work, data) {
  if (!is.null(work$sums) && !is.null(data))
    fail("`data` must not be given: the run has the sums that the database has computed.")
  if (is.null(data)) {
    if (is.null(work$encoded$rows))
      fail("`data` must be given again: these data are too large to be in the checkpoint.")
    return(work$encoded)
  }
  mixed <- work$feeding == "mixed"
  given <- if (is_source(data) && gathers(work$model)) joined_source(work$model, data)
  else encode(work$model, data, list(threads = work$threads, seed = if (mixed) work$words))
  same <- list(given$args, data_id(given), given$pairing)
  old <- work$encoded
  if (is.null(old$rows)) old$rows <- given$rows
  if (!identical(same, list(old$args, data_id(old), old$pairing)) ||
      !identical(given$rows, old$rows))
    fail("`data` must be the data of the run that is resumed, in the same order.")
  given
}

#' Open the source of a stream where the run has stopped reading
#' @noRd
reopen <- function(work, saved, data, skip) {
  work$total <- NA_real_
  if (work$feed$ended && is.null(data) && is.null(saved$source)) return(invisible())
  source <- if (!is.null(data)) as_source(data) else stored_source(saved)
  work$source <- source_bytes(source)
  reopen_feeds(list(work), source, list(source), skip, !is.null(data))
}

#' @param sources For each work the source of its feed: `source` itself, or shared ones of it.
#' @param given Whether the user has given the source, and it was not saved.
#' @noRd
reopen_feeds <- function(works, source, sources, skip, given) {
  for (i in seq_along(works)) {
    feed <- works[[i]]$feed
    feed$source <- sources[[i]]
    if (!source$rewinds || !skip) feed$cannot_reread <- TRUE
  }
  # only a further pass would read the rows of a source that has ended
  works <- Filter(function(work) !work$feed$ended, works)
  if (!length(works)) return(invisible())
  tryCatch({
    total <- source$count()
    for (work in works) {
      work$total <- total
      held <- work$feed$open_group
      begin_reading(work$feed)
      if (!skip) {
        work$feed$open_group <- held
        remember_places(work$feed)
      }
    }
    if (skip) skip_rows(lapply(works, `[[`, "feed"))
    else for (work in works) {
      feed <- work$feed
      work$total <- total + feed$n
      feed$at <- 0
      feed$id_before <- feed$id
      feed$carry_before <- feed$carry
      feed$units_before <- feed$units
    }
  }, error = function(e) {
    for (work in works) close_feed(work$feed)
    if (inherits(e, "logevidence_error") || given) stop(e)
    fail("The source of the rows cannot be read again (", sub("[.]?\n*$", "", conditionMessage(e)),
         "): give it as `data`.")
  })
}

as_source <- function(data) if (is_source(data)) data else rows_in_memory(data)

stored_source <- function(saved) {
  if (is.null(saved$source))
    fail("`data` must be given again: the source of the rows is not in the saved run.")
  unserialize(saved$source)
}

#' Read the rows that were used already; their fingerprint must be the stored one
#'
#' Several feeds of one source go by turns, so that none is far ahead.
#' @noRd
skip_rows <- function(feeds) {
  skips <- lapply(feeds, function(feed) {
    # these rows will be read again
    feed$read_ahead <- feed$block_of_other_types <- NULL
    feed$carry <- feed$carry_before
    feed$units <- feed$units_before
    list2env(list(feed = feed, left = feed$at, id = feed$id_before, print = NULL),
             parent = emptyenv())
  })
  while (any(vapply(skips, function(skip) skip$left > 0, NA)))
    for (skip in skips) if (skip$left > 0) skip_block(skip)
  for (skip in skips) {
    feed <- skip$feed
    # `id` is computed in the first pass only, and for some models from the responses alone
    same <- if (!is.null(feed$id_of_pass)) identical(skip$print, feed$id_of_pass)
    else feed$is_further_pass || identical(skip$id, feed$id)
    if (feed$at > 0 && !same)
      fail("`data` must begin with the ", count(feed$at), " rows that were used already.")
  }
}

skip_block <- function(skip) {
  feed <- skip$feed
  left <- skip$left
  block <- if (feed$by_groups) next_groups(feed) else next_block(feed)
  if (!is.null(feed$failure)) stop(feed$failure)
  if (is.null(block))
    fail("`data` must have the ", count(feed$at), " rows that were used already, not only ",
         count(feed$at - left), ".")
  size <- block_rows(block)
  if (size > left) {
    block <- block_data(block)
    feed$read_ahead <- block_part(block, (left + 1):size)
    block <- block_part(block, seq_len(left))
    size <- left
  }
  added <- within_rows(feed$at - left, size, encode_block(feed, block))
  feed$carry <- added$carry
  feed$units <- feed$units + ncol(added$rows)
  one <- block_id(added, feed$identified)
  skip$id <- if (is.null(skip$id)) one else join_ids(skip$id, one)
  if (!is.null(feed$id_of_pass)) {
    own <- fingerprint(added$rows)
    skip$print <- if (is.null(skip$print)) own else join_ids(skip$print, own)
  }
  skip$left <- left - size
}

# Several models ----------------------------------------------------------------------------------

#' Continue a race from its saved list
#' @noRd
resume_race <- function(saved, data, skip, threads, options) {
  race <- race_from(saved, threads)
  works <- racing(race)
  if (!is_stream(works[[1]])) {
    if (!is.null(data)) race$data <- data
    for (work in works) work$encoded <- again_encoded(work, data)
    return(run_race(race, options))
  }
  for (work in works) work$total <- NA_real_
  ended <- all(vapply(works, function(work) work$feed$ended, NA))
  if (!ended || !is.null(data) || !is.null(saved$source)) {
    source <- if (!is.null(data)) as_source(data) else stored_source(saved)
    race$source <- source_bytes(source)
    reopen_feeds(works, source, shared_sources(source, length(works)), skip, !is.null(data))
  }
  run_race(race, options)
}

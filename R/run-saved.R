# Work as it is saved: a plain list, and how far it is.

is_stream <- function(work) !is.null(work$feed)

# The works of a race whose models have not dropped out.
racing <- function(race) race$works[!race$names %in% names(race$dropped)]

# Second runs of a stream whose rows are no longer in memory are left out, and not open.
is_finished <- function(work) {
  if (!is.null(work$log)) return(work$complete)
  if (!is.null(work$works)) return(all(vapply(racing(work), is_finished, NA)))
  if (is_done(work$plan)) return(TRUE)
  no_rows <- is_stream(work) && is.null(kept_rows(work$feed))
  no_rows && !any(vapply(work$plan$first, is_open, NA))
}

#' The work as a plain list
#'
#' @param stream Where a feed is, by default that of the work; for data in memory NULL.
#' @noRd
saved_work <- function(work, plan = work$plan, stream = plan_position(work)) {
  encoded <- work$encoded
  # further rows go the way of a stream, which keeps its rows elsewhere
  if (!is_stream(work) && !is.null(stream)) encoded <- without_rows(encoded)
  list(spec = mget(c("call", "model", "method", "words", "seeded", "replicates", "threads", "keep",
                     "origin", "omitted", "sums"), envir = work, ifnotfound = list(NULL)),
       encoded = encoded, problem = work$problem,
       plan = list(first = packed(plan$first, work$problem),
                   second = if (!is.null(plan$second)) packed(plan$second, work$problem)),
       feeding = if (is.null(stream)) work$feeding else "stream", stream = stream,
       source = if (is_stream(work)) work$source, rng = work$rng,
       elapsed = work$elapsed + if (is.null(work$started)) 0 else now() - work$started)
}

without_rows <- function(encoded) {
  encoded$n <- NA_real_
  encoded$rows <- encoded$rows[, 0, drop = FALSE]
  encoded[c("observed", "in_order", "pairing", "offset")] <- NULL
  encoded
}

# Where the source is to be read on for the states of the plan.
plan_position <- function(work) {
  if (!is_stream(work)) NULL
  else if (is.null(work$position) || work$feed$keeps_given) feed_position(work$feed)
  else work$position
}

# A problem has the model in it; jobs differ in few parts, and only these are saved.
packed <- function(jobs, problem) {
  lapply(jobs, function(job) {
    if (is.null(job)) return(NULL)
    if (identical(job$problem, problem)) job$problem <- problem[0]
    else {
      same <- logical(length(problem))
      for (j in seq_along(problem))
        same[j] <- identical(job$problem[[names(problem)[j]]], problem[[j]])
      job$problem <- job$problem[!same]
    }
    job
  })
}

unpacked <- function(jobs, problem) {
  lapply(jobs, function(job) {
    if (is.null(job)) return(NULL)
    own <- problem
    own[names(job$problem)] <- job$problem
    replace(job, "problem", list(own))
  })
}

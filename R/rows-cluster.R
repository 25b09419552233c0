# Rows on many machines: each worker of a cluster opens its own part of the data.

#' Rows on many machines
#'
#' Data that are too large for one machine, or that lie on many. The rows are in parts, called
#' shards; each worker of a cluster opens some of them, and the rows stay there. What travels are
#' points in the space of the parameters and sums of log-likelihoods at these points, with their
#' derivatives, so a fit of a billion rows takes some passes through the rows, one or two megabytes
#' of traffic for each worker, and far less for each shard.
#'
#' @param cl A cluster of package parallel, such as one made by [parallel::makeCluster()], by
#'   `parallel::makePSOCKcluster()` with the names of hosts, or by other packages that make such
#'   clusters. See [task_limit()] for workers that hang or are lost.
#' @param open A function of the number of a shard that returns its rows: a source such as
#'   [rows_csv()], [rows_dbi()] or [rows_function()] that can be read again, or a data frame. It is
#'   called on the workers, so it loads what it needs and opens its own connections. Or a list of
#'   such sources, one for each shard, that workers can open.
#' @param shards Number of shards. There may be more than workers.
#' @param keep Largest number of values (rows times columns) of a shard that its worker holds in
#'   memory. A larger shard is read again for each question, and `open` is called again if it
#'   returns a data frame.
#'
#' @details
#' [evidence()] fits such rows with [laplace()] (the default here, with importance sampling),
#' [bic()] and [exact()], and several models on the same passes. With [exact()] one pass is enough,
#' and one more if priors are left to their defaults or with `scale = TRUE`: their units are the
#' means and standard deviations of all rows. Otherwise the steps are: the workers read their shards
#' once, count the rows and draw a uniform random sample; the modes are found on the sample, and
#' then on all rows by Newton's method, with a question in each step; and the draws of importance
#' sampling are weighted by the log-likelihood of all rows. All this is exact: the result differs
#' from that of the same method in memory by rounding errors only.
#'
#' **Workers do not matter.** Sums are added in the order of shards, and random numbers belong to
#' the seed and the shard, so the result has the same bits with any number of workers. It depends on
#' the shards: other shards round differently.
#'
#' **Runs.** `replicates`, `target_se` and `on_chunk` of [evidence()] are those of rows in memory:
#' all runs of all models ask their questions together. `stop_at` needs rows in an order, and `keep`
#' and `cl` have no meaning here: they are refused.
#'
#' **Failures.** If a worker is lost, another one opens its shard, and checks that it has the same
#' rows as before. If no worker is left, or a shard has changed, there is an error, which names the
#' worker, the shard and the checkpoint; an estimate from a part of the rows is never returned.
#'
#' **Checkpoints** of [evidence()] have what the workers have said so far, and no rows but those of
#' the sample. [resume()] needs the same shards again, on this cluster or another one of any number
#' of workers: `resume("file", rows_cluster(cl, open, shards))`. It opens a shard when it asks
#' something of it; a shard with other rows than before is an error. The result has the same bits as
#' that of a run that was never stopped. `time_limit` stops a run, too, between two answers.
#'
#' **Columns and levels** are taken from the first rows of all shards together, `10,000` in all. A
#' level of a factor that comes later is an error, which names the shard.
#'
#' Models with latent variables, [custom_model()] and models with [lags()] need rows together or in
#' order, and are refused. With group-level terms ([regression()]) the rows of a group must be in
#' one shard, in any order; a group in two shards is an error that names both. Only of [gaussian()]
#' a group may have rows in several shards: its sums over groups are joined.
#'
#' @return A source of rows for [evidence()], of class `"rows_cluster"`.
#'
#' @examples
#' cl <- parallel::makeCluster(2)
#' rows <- rows_cluster(cl, function(shard) cars[(25 * (shard - 1) + 1):(25 * shard), ], shards = 2)
#' rows
#' evidence(linear_regression(dist ~ speed, sigma = 15, prior_sd = 10), rows, seed = 1)
#' parallel::stopCluster(cl)
#'
#' @family sources of rows
#' @export
rows_cluster <- function(cl, open, shards = length(cl), keep = 1e7) {
  if (is.null(cl)) refuse(cl, "cl", "a cluster, such as parallel::makeCluster(2)")
  cl <- check_cluster(cl)
  if (is.list(open) && !is.data.frame(open)) {
    if (!missing(shards)) fail("`shards` must be left out if `open` is a list of sources.")
    if (!length(open) || !all(vapply(open, function(one) is_source(one) || is.data.frame(one), NA)))
      refuse(open, "open", "a function of the number of a shard, or a list of sources")
    shards <- length(open)
    open <- from_list(open)
  }
  if (!is.function(open) || !is.primitive(open) && !length(formals(open)))
    refuse(open, "open", "a function of the number of a shard, or a list of sources")
  structure(list(cl = cl, open = open, shards = check_count(shards, "shards", 1, 1e5),
                 keep = check_number(keep, "keep", 0, Inf)),
            class = "rows_cluster")
}

from_list <- function(sources) {
  force(sources)
  function(shard) sources[[shard]]
}

is_sharded <- function(data) inherits(data, "rows_cluster")

#' @export
print.rows_cluster <- function(x, ...) {
  cat("Rows in ", count_of(x$shards, "shard"), " on ", count_of(length(x$cl), "worker"), "\n",
      sep = "")
  invisible(x)
}

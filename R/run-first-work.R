# The work of a call of evidence() before it runs: from a model and its data, in memory or from a
# source.

#' @param alone Whether there is one model: only then rows come in whole groups.
#' @noRd
work_on_source <- function(spec, source, alone = TRUE) {
  if (is.null(spec$keep)) spec$keep <- KEEP
  spec$method <- by_blocks(spec$method, spec$model, source, spec$keep, alone)
  # some databases end a query when another one is sent
  total <- source$count()
  feed <- open_feed(spec$model, source, spec$keep)
  work <- tryCatch({
    needs_all <- exchangeable_warning(spec$method, spec$model, feed$encoded, total, spec$keep)
    if (!is.null(needs_all)) warning(new_warning(needs_all, model_line(spec$model)))
    new_work(spec, feed$encoded, feed, "stream")
  }, error = function(e) {
    close_feed(feed)
    stop(e)
  })
  work$source <- source_bytes(source)
  work$total <- total
  # further runs read it again
  if (!is.null(spec$goal)) work$reads <- source
  work
}

has_one_run <- function(spec) spec$replicates == 1 && is.null(spec$goal)

#' Rows of a source that are joined in memory as groups
#'
#' @param from Groups that the rows are joined to, or NULL.
#' @noRd
work_on_groups <- function(spec, source, chosen = FALSE, from = NULL) {
  if (!is.null(spec$keep)) fail("`keep` is not for group-level terms: leave it out.")
  work_on_encoded(spec, joined_source(spec$model, source, from), chosen = chosen)
}

# Rows that are gone are known around one anchor, and the points of nested sampling go to all
# labellings of the components.
exchangeable_warning <- function(method, model, encoded, total, keep) {
  if (!has_trait(method, "points by chunk") || isTRUE(total <= keep) ||
      model_facts(model, encoded$args)$log_symmetry == 0) return(NULL)
  say("needs_all_rows", count(keep))
}

#' @param alone Whether there will be a single run: it gets its rows in its own random order;
#'   several runs have different orders.
#' @param chosen Whether the method is the default, and not the user's.
#' @noRd
work_in_memory <- function(spec, data, alone, chosen = FALSE) {
  mixed <- alone && has_setting(spec$method, "shuffle")
  binding <- list(threads = spec$threads, seed = if (mixed) spec$words)
  encoded <- encode(spec$model, data, binding)
  centred <- if (has_trait(spec$method, "no prior"))
    part_of(spec$model, "centred")(spec$model, encoded)
  if (!is.null(centred)) {
    spec$model <- centred
    encoded <- encode(centred, data, binding)
  }
  work_on_encoded(spec, encoded, mixed, chosen)
}

#' @param encoded All rows, as C reads them.
#' @param mixed Whether they are in the random order of the run.
#' @noRd
work_on_encoded <- function(spec, encoded, mixed = FALSE, chosen = FALSE) {
  reason <- part_of(spec$model, "refuses")(spec$model, encoded)
  if (!is.null(reason)) fail(reason)
  if (chosen && (is_latent(spec$model) || lacks_gradients(spec$model, encoded$args)))
    spec$method <- default_method(spec$model, spec$replicates, encoded)
  if (chosen && is_latent(spec$model))
    say_if_slow(spec$method, spec$model, encoded$n, nrow(encoded$rows), spec$replicates)
  spec$method <- method_for_rows(spec$model, spec$method, encoded, spec$words)
  spec$keep <- Inf
  new_work(spec, encoded, mixed = mixed)
}

# The same in all calls: to make it takes a tenth of a call on few rows.
plain_sgais <- local({
  known <- NULL
  function() {
    if (is.null(known)) known <<- sgais()
    known
  }
})

default_replicates <- function(model) if (is_latent(model)) LATENT_RUNS else 1

#' @param encoded The data, from encode(): the default of models with latent variables depends on
#'   their size.
#' @noRd
default_method <- function(model, replicates = 1, encoded = NULL) {
  if (needs_exact(model)) exact()
  else if (!is_latent(model))
    if (is_discrete(model) || !is.null(encoded) && lacks_gradients(model, encoded$args)) smc()
    else plain_sgais()
  else if (is.null(encoded)) smc("data") # of a source, which latent variables refuse
  else latent_default(model, encoded$n, nrow(encoded$rows), replicates)
}

# What makes a run read rows in blocks that are in memory.
LEAVE_OUT <- "leave out `keep` and `stop_at`."

#' A method for rows that come in blocks: in their order, in chunks of bounded size
#' @noRd
by_blocks <- function(method, model, source, keep = KEEP, alone = TRUE) {
  if (is_latent(model) || asks_r(model))
    fail("A ", model$name, "() needs all rows at once: ",
         if (is_in_memory(source)) LEAVE_OUT
         else "use `collect = TRUE`, or give it a data frame.")
  if (needs_all(model) && !(alone && takes_units(model)))
    fail("A ", model$name, "() with group-level terms needs all rows of a group at once: ",
         LEAVE_OUT)
  if (is_stepped(model))
    fail("This model needs all rows at once, because sums over rows that are gone need gradients, ",
         "and ", no_gradients(model), ": use `collect = TRUE`, or give it a data frame.")
  if (is_improper(model))
    fail("This model needs all rows at once, because its prior is improper: use `collect = TRUE`, ",
         "or give it a data frame.")
  if (!takes_blocks(method))
    fail("`method` ", method$name, "() needs all rows at once: use sgais(), smc(\"data\"), ",
         "sequential(), hybrid() or online_nested(), or ",
         if (is_in_memory(source)) LEAVE_OUT
         else "`collect = TRUE` if the rows fit in memory.")
  in_given_order(method, keep, source$rewinds)
}

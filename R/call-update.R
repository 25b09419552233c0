# update() of fits: further rows for fits that keep the state of their run, and for fits of nested()
# a smaller tolerance (R/run-method-nested.R).

#' Add rows to a fit
#'
#' Continues the run of a fit with further rows. This costs only what the new rows cost; the old
#' rows are not needed. Works also for a fit that was saved by [saveRDS()] and read in another
#' session.
#'
#' @param object A fit from [evidence()] by [sgais()], [smc()] with `path = "data"`, [sequential()],
#'   [hybrid()] or [online_nested()]. Also an incomplete fit of a source, whose run then goes on
#'   with these rows. And several models on the same rows ([race]): each block goes to all of them.
#'   And a fit of a [regression()] with group-level effects by any method.
#' @param rows Further rows: a data frame (or other data that the model accepts), or a source such
#'   as [rows_function()]. Columns must be those of the fit.
#' @param levels What becomes of rows with levels of factors that the fit does not have. A new level
#'   of a group, as of `g` in `(1 | g)`, is a new group. A new level of another covariate has no
#'   coefficient in the run: `"new"`, the default, is an error that says what to do, and `"omit"`
#'   leaves such rows out, with a message of how many. New classes of a response are always errors.
#' @param tol,data For fits of [nested()]: see [nested_runs].
#' @param threads Number of threads; by default as before.
#' @param progress,time_limit,on_chunk,keep_state,checkpoint,every As in [evidence()] and
#'   [evidence_checkpoints].
#' @param ... Unused.
#'
#' @details
#' If the rows so far were used in their given order (they came from a source, or from a data frame
#' with `order = "given"`), the result is the same, to the last bit, as that of one run on all rows
#' in this order. If they were shuffled, as [sgais()] does with a data frame, it is another estimate
#' of the same number, within the standard errors.
#'
#' With group-level effects ([regression()]) the likelihood needs all rows of a group together. So a
#' fit keeps what its groups need, the new rows are added to them, and the run begins anew, with the
#' same seed, and with one thread unless `threads` says more: the result is that of one run on all
#' rows, but for defaults of priors that depend on the first rows. A run with `keep` goes on with
#' rows of groups that it has not had.
#'
#' A fit keeps the state of its run, in `fit$state`, if it takes at most 20 MB. `keep_state = TRUE`
#' keeps it whatever its size, `FALSE` drops it. Columns that a formula transforms by the data, as
#' `scale(x)` does, keep the transformation of the first rows: up to 10,000 rows of a source, or all
#' rows of a data frame.
#'
#' @section Files of others:
#' A fit may contain R functions, in its model and its formulas, and `update()`, [resume()] and
#' [predict()][predict.evidence] run them. They can do whatever you can do: if you read a fit by
#' [readRDS()] or [load()], use only files that you trust.
#'
#' @return A fit of all rows, of class `"evidence"`.
#'
#' @examples
#' model <- linear_regression(dist ~ speed, sigma = 15, prior_sd = 10)
#' fit <- evidence(model, cars[1:30, ], sgais(order = "given"), seed = 1)
#' update(fit, cars[31:50, ])
#'
#' @seealso [resume()], [nested_runs]
#' @export
update.evidence <- function(object, rows, ..., levels = c("new", "omit"), tol = NULL, data = NULL,
                            threads = NULL, progress = interactive(), time_limit = NULL,
                            on_chunk = NULL, keep_state = NULL, checkpoint = NULL, every = 60) {
  check_no_dots(...)
  if (missing(rows)) {
    if (is.null(tol) && !is.null(object$state))
      fail("`rows` must be given: the rows to add to the fit.")
    return(update_nested(object, tol, data, parent.frame()))
  }
  # `tol` used to be the second argument
  if (!is.null(object$nested) && is.null(object$state) && is_one_number(rows))
    return(update_nested(object, rows, data, parent.frame()))
  refuse_formula(rows)
  levels <- check_choice(levels, "levels", UPDATE_LEVELS)
  joins <- is.null(object$state) && needs_all(object$model)
  if (joins) check_joins(object) else check_updates(object)
  if (!is.null(tol)) fail("`tol` and `rows` cannot both be given: add rows, or go on to `tol`.")
  options <- check_options(progress, checkpoint, every, time_limit, on_chunk, keep_state)
  on.exit(close_checkpoint(options))
  if (joins) refit(object, rows, levels, threads, options)
  else add_rows(object$state, rows, levels, threads, options, object$warnings)
}

#' @rdname update.evidence
#' @export
update.incomplete_evidence <- function(object, rows, ..., levels = c("new", "omit"),
                                       threads = NULL, progress = interactive(), time_limit = NULL,
                                       on_chunk = NULL, keep_state = NULL, checkpoint = NULL,
                                       every = 60) {
  check_no_dots(...)
  if (missing(rows)) fail("`rows` must be given: the rows to add, or call resume().")
  refuse_formula(rows)
  if (is.null(object$state$stream) || object$state$stream$ended)
    fail("This fit has all its rows: continue it by resume().")
  levels <- check_choice(levels, "levels", UPDATE_LEVELS)
  options <- check_options(progress, checkpoint, every, time_limit, on_chunk, keep_state,
                           begins = FALSE)
  on.exit(close_checkpoint(options))
  add_rows(object$state, rows, levels, threads, options, NULL)
}

#' Can the run of this fit go on with further rows? If not, an error that says what to do
#' @noRd
check_updates <- function(fit) {
  if (!is.null(fit$state)) return(invisible())
  if (!can_go_on(fit$model, fit$method, TRUE))
    fail("Rows cannot be added to a fit of ", fit$method$name, "() of a ", fit$model$name,
         "(), which needs all rows at once: fit all rows with evidence().")
  fail("Rows cannot be added to this fit, because it has no state: fit with `keep_state = TRUE`.")
}

refuse_formula <- function(rows) {
  if (inherits(rows, "formula"))
    fail("update() adds rows to a fit and does not change its formula: fit the new model with ",
         "evidence() on all rows.")
}

# Rows are joined to the groups of a fit, and the work begins anew: the likelihood of a group needs
# all its rows.

check_joins <- function(fit) {
  groups <- part_of(fit$model, "groups")
  if (is.null(groups) || is.null(groups$of_fit(fit)$rows))
    fail("Rows cannot be added to this fit of a ", fit$model$name, "(), which does not keep its ",
         "groups: fit all rows with evidence().")
}

#' The fit of the rows of a fit and of further ones
#' @noRd
refit <- function(fit, rows, levels, threads, options) {
  source <- rows_of_known_levels(as_source(rows), list(fit$design), levels)
  spec <- list(call = fit$call, model = fit$model, method = fit$method, words = fit$seed,
               seeded = TRUE, replicates = max(1, NROW(fit$replicates)),
               threads = if (is.null(threads)) 1 else check_count(threads, "threads", 1, 1024))
  work <- work_on_groups(spec, source, from = part_of(fit$model, "groups")$of_fit(fit))
  run_work(work, options, fit$warnings)
}

#' Continue the open state of a fit with further rows
#' @noRd
add_rows <- function(state, rows, levels, threads, options, known) {
  work <- work_from(state, threads)
  source <- rows_of_known_levels(as_source(rows), list(work$encoded$design), levels)
  work$source <- NULL
  add_source(work, source, source$count())
  run_work(work, options, known)
}

add_source <- function(work, source, more) {
  feed <- work$feed
  feed$argument <- "rows"
  feed$at <- 0
  feed$ends_after <- Inf
  feed$id_before <- feed$id
  feed$carry_before <- feed$carry
  feed$units_before <- feed$units
  feed$cannot_reread <- TRUE
  # rows that were read but not used are left out
  feed$read_ahead <- feed$block_of_other_types <- NULL
  work$total <- feed$n + more
  feed$source <- source
  begin_reading(feed)
  remember_places(feed)
}

# Several models ----------------------------------------------------------------------------------

#' @rdname update.evidence
#' @export
update.evidence_race <- function(object, rows, ..., levels = c("new", "omit"),
                                 threads = NULL, progress = interactive(), time_limit = NULL,
                                 on_chunk = NULL, keep_state = NULL, checkpoint = NULL,
                                 every = 60) {
  check_no_dots(...)
  if (missing(rows)) fail("`rows` must be given: the rows to add to the fits.")
  require_race(object, "object")
  before <- race_in(object)
  fits <- fits_in_order(object)
  refuse_formula(rows)
  levels <- check_choice(levels, "levels", UPDATE_LEVELS)
  for (fit in fits) check_updates(fit)
  options <- check_options(progress, checkpoint, every, time_limit, on_chunk, keep_state)
  on.exit(close_checkpoint(options))
  left <- match(names(fits), before$names)
  race <- list2env(list(names = names(fits), prior = unname(before$prior[left]),
                        stop_at = before$stop_at, from = before$from, dropped = character(),
                        call = before$call,
                        methods = before$methods[left], opening = before$opening[left],
                        past = past_of(before, fits), looks = before$looks,
                        data = before$parts[[1]]$data, gone = before$dropped),
                   parent = emptyenv())
  race$works <- lapply(fits, function(fit) work_from(fit$state, threads))
  add_to_race(race, rows, levels)
  run_race(race, options, unlist(lapply(fits, fit_warnings)))
}

# The moments that are known, and that of the fits to which rows are added. Others are computed when
# they are asked for.
past_of <- function(race, fits) {
  known <- if (is.null(race$moments)) race$past else race$moments[race$moments$from != "reported", ]
  rbind(known, moment_of(fits[[1]]$n, names(fits), fits))
}

#' @rdname update.evidence
#' @export
update.incomplete_race <- function(object, rows, ..., levels = c("new", "omit"),
                                   threads = NULL, progress = interactive(), time_limit = NULL,
                                   on_chunk = NULL, keep_state = NULL, checkpoint = NULL,
                                   every = 60) {
  check_no_dots(...)
  if (missing(rows)) fail("`rows` must be given: the rows to add, or call resume().")
  refuse_formula(rows)
  levels <- check_choice(levels, "levels", UPDATE_LEVELS)
  if (!is.null(object$state$log))
    fail("Rows cannot be added to a run of rows_cluster(): continue it by resume().")
  ended <- function(work) is.null(work$stream) || work$stream$ended
  if (any(vapply(object$state$works, ended, NA)))
    fail("These fits have all their rows: continue them by resume().")
  read <- vapply(object$fits, function(fit) as.double(fit$rows_read), 0)
  if (any(read != read[1]))
    fail("The models have used different numbers of rows (", toString(unique(read)), "): continue ",
         "them by resume() before adding rows.")
  options <- check_options(progress, checkpoint, every, time_limit, on_chunk, keep_state,
                           begins = FALSE)
  on.exit(close_checkpoint(options))
  race <- race_from(object$state, threads)
  add_to_race(race, rows, levels)
  run_race(race, options)
}

add_to_race <- function(race, rows, levels) {
  works <- racing(race)
  source <- rows_of_known_levels(as_source(rows), lapply(works, function(work) work$encoded$design),
                                 levels)
  more <- source$count()
  sources <- shared_sources(source, length(works))
  for (i in seq_along(works)) add_source(works[[i]], sources[[i]], more)
}

# evidence(): estimates the evidence of a model on data.

#' Bayesian evidence of a model
#'
#' Estimates the evidence (marginal likelihood) of a model on data, with a standard error, and
#' returns posterior draws along with it. **Most calls need `model`, `data` and `seed`.**
#'
#' @param model A model, such as [linear_regression()], [regression()],
#'   [softmax_regression()], [gaussian_mixture()], [gaussian_mean()], [clustering()], [low_rank()],
#'   [binary_attributes()], [custom_model()] or [compiled_model()]. Or a list of several models of
#'   the same observations, which then see the same rows in the same order: the result is their
#'   comparison, see [race].
#' @param data The data: a data frame, or another form that the model's help page describes; or a
#'   source of rows that need not fit in memory, see [evidence_streams]. A [custom_model()] may have
#'   no data.
#' @param method How to estimate: [sgais()], the default (for models with latent variables the mean
#'   of 8 runs of [smc()], see [clustering()]; with discrete parameters [smc()], see
#'   [custom_model()]), [ais()], [smc()], [nested()], [online_nested()], [sequential()],
#'   [hybrid()], [laplace()], [bridge()], [power_posterior()], [exact()], [bic()],
#'   [likelihood_weighting()], [harmonic_mean()], [chib()], [partitions()] or [variational()].
#' @param seed A whole number that makes the run reproducible, whatever the number of `threads`.
#'   `NULL`, the default, draws one from R's generator, so that [set.seed()] makes the run
#'   reproducible.
#' @param replicates,target_se,doubling,combine Independent runs whose estimates are combined, see
#'   [evidence_runs]: their number; the standard error to reach by further runs; whether each of
#'   these doubles the number of particles; and how they are combined.
#' @param threads,cl Number of threads; and a cluster for replicates and for models of a list, see
#'   [evidence_runs].
#' @param progress Whether to show a progress bar: from 0 to 100% over all runs of the call, with
#'   the time left; for a source whose number of rows is not known the rows and rows per second.
#'   Methods that add rows one chunk after another also show the log evidence per row.
#' @param keep,collect For a source of rows: how many are kept in memory, and whether all are read
#'   first, see [evidence_streams].
#' @param checkpoint,every,time_limit,keep_state For runs that stop and go on: a file, the seconds
#'   between two writings, a limit in seconds, and whether the fit keeps what [update.evidence()]
#'   needs, see [evidence_checkpoints].
#' @param on_chunk `NULL`, or a function that is called during the run, see [evidence_runs].
#' @param na.action What becomes of rows with missing values in columns that the model reads:
#'   [na.fail()], the default, is an error; [na.omit()] leaves them out, and a message says how
#'   many. For data in memory. Models that are compared must be fitted to the same rows: leave out
#'   rows that are incomplete in the columns of any model.
#' @param prior For several models, their prior weights; `NULL`, the default, for equal ones. They
#'   need not sum to one.
#' @param stop_at For several models, `NULL` or two Bayes factors, one below and one above 1, such
#'   as `c(1/10, 10)`: the rows end where the Bayes factor has passed one of them, see [race]. A
#'   data frame is then used row by row, in its order.
#' @param from With `stop_at`, the least number of rows before the end. `NULL`, the default, is the
#'   largest number of parameters of a model, but at least 20.
#'
#' @details
#' All numbers are natural logarithms; a difference of 1 in log evidence is a factor of 2.7 between
#' the models. The run can be interrupted at any time.
#'
#' **Warnings.** Doubts about a fit are raised once, when the fit is made, as one R warning of class
#' `"logevidence_warning"` with a line that names the model and a line for each sentence. The
#' sentences are kept in `fit$warnings`, and `print()` shows them. Notes on a method, such as those
#' of [bic()] and [harmonic_mean()], are also printed and kept in `fit$warnings`, but not raised,
#' because they do not depend on the data. Fits inside [crosscheck()] raise no warnings; its table
#' shows which fits have some.
#'
#' @return For several models, and for a [gaussian_mixture()] with several numbers of components, a
#'   comparison, see [race] and there. Otherwise a fit, a list of class `"evidence"` with
#'   `log_evidence`, its standard error `se`, `draws` of the posterior with their `log_weights`,
#'   `warnings` and `failed` (what speaks against the number), `verdict` (all estimates and checks),
#'   `n`, and further parts: see [evidence_value].
#'
#' @examples
#' fit <- evidence(linear_regression(dist ~ speed, sigma = 15, prior_sd = 10), cars, seed = 1)
#' fit
#' summary(fit)
#' logml(fit)
#'
#' @seealso [compare_models()]; [evidence_value] for what a fit contains; [evidence_streams] for
#'   rows of a source, [evidence_checkpoints] for runs that stop and go on, [evidence_runs] for
#'   replicates, threads and clusters
#' @export
evidence <- function(model, data, method = sgais(), seed = NULL, replicates = 1, threads = 1,
                     progress = interactive(), keep = NULL, checkpoint = NULL, every = 60,
                     time_limit = NULL, target_se = NULL, on_chunk = NULL, keep_state = NULL,
                     collect = FALSE, na.action = stats::na.fail, prior = NULL,
                     stop_at = NULL, combine = NULL, cl = NULL, from = NULL, doubling = FALSE) {
  own_names("method")
  call <- match.call()
  if (missing(model)) fail("`model` must be given, such as `linear_regression(y ~ x)`.")
  if (!missing(data) && inherits(data, "evidence_model"))
    fail("`model` must come first and `data` second: evidence(model, data).")
  several <- is_list_of_models(model)
  models <- if (several) check_models(model) else list(check_is_model(model))
  if (missing(data)) data <- part_of(models[[1]], "no_data")(models[[1]])
  if (inherits(data, "evidence_method"))
    fail("`data` must not be a method: give it by its name, `method = ", deparse1(data$call), "`.")
  chosen <- missing(method)
  by_default <- chosen && missing(replicates)
  runs <- lapply(models, function(model) {
    if (by_default) replicates <- default_replicates(model)
    list(replicates = check_count(replicates, "replicates", 1, 1e4),
         method = combined_by(if (chosen) default_method(model, replicates)
                              else check_is_method(method), combine))
  })
  threads <- check_count(threads, "threads", 1, 1024)
  options <- check_options(progress, checkpoint, every, time_limit, on_chunk, keep_state,
                           cl = cl)
  on.exit(close_checkpoint(options))
  doubling <- check_flag(doubling, "doubling")
  if (doubling && is.null(target_se))
    fail("`doubling` must be FALSE without `target_se`, the error to reach.")
  if (!is.null(target_se)) check_target(target_se, options, data)
  words <- seed_words(seed)
  components <- !several && length(model$components) > 1
  sharded <- is_sharded(data)
  pushed <- is_pushed(data)
  if (sharded || pushed) {
    where <- if (sharded) "rows_cluster()" else "rows_dbi(push = TRUE)"
    # rows elsewhere have no order, and this session has none of them
    given <- c(if (components) "components", if (!is.null(keep)) "keep",
               if (!is.null(stop_at)) "stop_at", if (!is.null(cl)) "cl", if (doubling) "doubling")
    if (length(given)) fail("`", given[1], "` cannot be used for ", where, ".")
    if (chosen) for (i in which(!vapply(models, gathers, NA))) runs[[i]]$method <- SHARD_METHOD()
  } else if ((check_flag(collect, "collect") || collects(models, keep)) && is_source(data))
    data <- collect_rows(data, columns_read_by(models))
  omitted <- NULL
  for (one in if (!sharded && !pushed) models) {
    complete <- complete_data(one, data, na.action)
    data <- complete$data
    if (!is.null(complete$omitted)) omitted <- all_omitted(omitted, complete$omitted)
  }
  if (!is.null(keep)) keep <- check_count(keep, "keep", 1000, 1e9)
  if (several) check_race(models)
  else if (!is.null(prior) || !is.null(stop_at))
    fail("`prior` and `stop_at` are for several models: give `model` as a list of them.")
  if (!is.null(from) && is.null(stop_at)) fail("`from` must be NULL without `stop_at`.")
  if (!is.null(cl) && (is_source(data) || !is.null(keep) || !is.null(stop_at)))
    fail(CLUSTER_IN_MEMORY)
  if (!is_source(data) && !sharded && (!is.null(keep) || !is.null(stop_at)))
    data <- rows_in_memory(data, if (several || components || needs_all(model)) HEAD_ROWS else Inf)
  specs <- Map(function(model, run)
    list(call = call, model = model, method = run$method, words = words, seeded = !is.null(seed),
         replicates = run$replicates, threads = threads, keep = keep, omitted = omitted,
         goal = new_goal(target_se, doubling)),
    models, runs)
  if (components && !apart_by_components(specs[[1]], data, options))
    evidence_of_components(specs[[1]], data, options, evidence)
  else if (components) run_race(race_of_components(specs[[1]], data, chosen), options)
  else if (sharded) fit_shards(new_shards(specs, several, prior, data$shards), data, options)
  else if (several)
    run_race(new_race(specs, data, chosen, prior, stop_at, from), options)
  else fit_one(specs[[1]], data, options, chosen)
}

#' The fit of one model
#' @noRd
fit_one <- function(spec, data, options, chosen) {
  work <- if (is_pushed(data)) work_on_sums(spec, data)
  else if (!is_source(data)) work_in_memory(spec, data, has_one_run(spec), chosen)
  else if (gathers(spec$model)) work_on_groups(spec, data, chosen)
  else work_on_source(spec, data)
  run_work(work, options)
}

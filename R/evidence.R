# evidence(): estimates the evidence of a model on data.

#' Bayesian evidence of a model
#'
#' Estimates the evidence (marginal likelihood) of a model on data, with a standard error, and
#' returns posterior draws along with it.
#'
#' @param model A model, such as [linear_regression()], [regression()],
#'   [softmax_regression()], [gaussian_mixture()], [gaussian_mean()], [clustering()], [low_rank()],
#'   [binary_attributes()], [custom_model()] or [compiled_model()]. Or a list of several models of
#'   the same observations, which then see the same rows in the same order: the result is their
#'   comparison, see [race].
#' @param data The data: a data frame, or another form that the model's help page describes. A
#'   [custom_model()] may have no data.
#' @param method How to estimate: [sgais()], the default (for models with latent variables the mean
#'   of 8 runs of [smc()], see [clustering()]), [ais()], [smc()], [nested()], [online_nested()],
#'   [sequential()], [hybrid()], [laplace()], [bridge()], [power_posterior()], [exact()], [bic()],
#'   [likelihood_weighting()], [harmonic_mean()], [chib()], [partitions()] or [variational()].
#' @param seed A whole number that makes the run reproducible, whatever the number of `threads`.
#'   `NULL`, the default, draws one from R's generator, so that [set.seed()] makes the run
#'   reproducible.
#' @param replicates Number of independent runs, a whole number; 1, and 8 by the default method for
#'   models with latent variables. Their estimates are combined, see `combine`, and the standard
#'   error comes from their spread.
#' @param threads Number of threads; never more than the machine or `OMP_THREAD_LIMIT` allows.
#'   Replicates run at the same time, one per thread, each with a copy of the data; with more than
#'   20 million numbers, and for a [custom_model()], they run one after another. Within a run the
#'   threads synchronise about a thousand times, so use no more threads than there are idle cores.
#'   On a busy machine extra threads mostly wait, and the run takes about a third longer than with
#'   one.
#' @param progress Whether to show a progress bar: from 0 to 100% over all runs of the call, with
#'   the time left; for a source whose number of rows is not known the rows and rows per second.
#'   Methods that add rows one chunk after another also show the log evidence per row.
#' @param keep Most rows of a source that are kept in memory, a whole number of at least 1,000;
#'   20,000 by default. With a data frame: uses its rows as a source would give them. With
#'   group-level terms ([regression()]): most groups.
#' @param checkpoint `NULL`, or the name of a file to which the run is saved every `every` seconds,
#'   when it is interrupted, fails or reaches its `time_limit`, and when it has ended. [resume()]
#'   continues from this file, also in another session, and gives the same bits as a run that was
#'   never stopped. See the section on checkpoints below.
#' @param every Seconds between two checkpoints.
#' @param time_limit `NULL`, or a number of seconds after which the run stops at a whole step. The
#'   result is then an incomplete fit, of class `"incomplete_evidence"`, from which [resume()]
#'   continues. Its `log_evidence`, `se` and `n` are the estimate of the rows so far and their
#'   number; `NA` if the method has none before its end. The checks after a run are not included.
#' @param target_se `NULL`, or the standard error to reach by further replicates. The spread of the
#'   first runs gives a forecast of how many are needed; a message says how many runs and how much
#'   time, then all of them are run and averaged. More than 1,000 runs are not tried.
#' @param on_chunk `NULL`, or a function that is called with a list at most about three times a
#'   second, and at the end, for a display of your own: `rows` (that the run has passed), `share`
#'   (of the work, `NA` if not known), `seconds`, and of the last entry of the trace `n`,
#'   `log_evidence`, `se`, `ess`, `lambda`; for several models these are in `models`, a data frame.
#'   An error in it stops the run.
#' @param keep_state Whether the fit keeps the state of its run, so that [update.evidence()] can add
#'   rows. `NULL`, the default, keeps it if it takes at most 20 MB.
#' @param na.action What becomes of rows with missing values in columns that the model reads:
#'   [na.fail()], the default, is an error; [na.omit()] leaves them out, and a message says how
#'   many. For data in memory. Models that are compared must be fitted to the same rows: leave out
#'   rows that are incomplete in the columns of any model.
#' @param collect Whether all rows of a source are read into memory first, for methods that need
#'   all rows at once.
#' @param prior For several models, their prior weights; `NULL`, the default, for equal ones. They
#'   need not sum to one.
#' @param stop_at For several models, `NULL` or two Bayes factors, one below and one above 1, such
#'   as `c(1/10, 10)`: the rows end where the Bayes factor has passed one of them, see [race]. A
#'   data frame is then used row by row, in its order.
#' @param combine How the estimates of `replicates` become one: `"arithmetic"`, the mean of the
#'   evidence; `"harmonic"`, the reciprocal of the mean of its reciprocal; `"log"`, the mean of the
#'   logarithms. `NULL`, the default, is harmonic for [harmonic_mean()], whose reciprocal is
#'   unbiased, and arithmetic for the others.
#' @param cl `NULL`, or a cluster such as one made by [parallel::makeCluster()], whose workers do
#'   `replicates` and the models of a list, each with `threads` threads, for rows in memory. The
#'   numbers are the same bits with and without it. A `checkpoint` then has the runs that have
#'   ended. See [task_limit()] for workers that hang or are lost.
#'
#' @details
#' All numbers are natural logarithms; a difference of 1 in log evidence is a factor of 2.7 between
#' the models. The run can be interrupted at any time.
#'
#' **Rows of a source** need not fit in memory. When there are more than `keep` rows, the run keeps
#' a uniform sample of them, and sums of the log-likelihood and its derivatives over all rows at a
#' point near the posterior mode. The sample corrects these sums away from that point. What this
#' adds to the standard error is measured from parts of the sample, and is included in `se`. If it
#' is more than 0.01 nats and the source can be read again, the rows are read once more for the
#' importance-sampling check. If the distribution of the rows changes after rows have left the
#' memory, the run goes on from the sample, and a warning says so. Models without gradients, and
#' nested sampling of mixtures, need all rows in memory.
#'
#' **Stopped runs.** If a run on a source of rows, or one with a `checkpoint`, is stopped by an
#' error or an interrupt, the condition has an element `fit`: an incomplete fit of the rows so far,
#' as after a `time_limit`. `tryCatch(evidence(...), error = function(e) e$fit)` returns it, and
#' [resume()] or [update.evidence()] continues it.
#'
#' **Checkpoints.** With data in memory of at most 20 million numbers the file has the data in it,
#' so only its owner can read it. A file that exists is replaced only if it is a checkpoint of the
#' same run (model, priors, method, seed and data; of a source, its first 10,000 rows) and this run
#' has ended. Every other file is refused before the run begins: a file of the user, a checkpoint of
#' another run, of another version of the package, of a run that has not ended, or one that is
#' damaged or cannot be read. A link is followed: the file behind it is replaced, and the link
#' stays. Directories, devices, FIFOs and sockets are refused. While a run works, other runs that
#' are given its file are refused (not on Windows, and not on file systems without locks; there a
#' run does not replace a file that another one has written in the meantime). A file is replaced
#' only when a new one is complete, under a name of its own in the same directory (the name of the
#' checkpoint, eight digits or letters, and `.new`), which stays only if the process is killed while
#' it writes. If writing fails (a full disk), or if another program has changed the file during the
#' run, there is a warning, the run goes on, and the file stays as it is. [resume()] and
#' [update.evidence()] run functions that are in the file or the fit: open only files that you
#' trust.
#'
#' **Warnings.** Doubts about a fit are raised once, when the fit is made, as one R warning of class
#' `"logevidence_warning"` with a line that names the model and a line for each sentence. The
#' sentences are kept in `fit$warnings`, and `print()` shows them. Notes on a method, such as those
#' of [bic()] and [harmonic_mean()], are also printed and kept in `fit$warnings`, but not raised,
#' because they do not depend on the data. Fits inside [crosscheck()] raise no warnings; its table
#' shows which fits have some.
#'
#' @return For several models, and for a [gaussian_mixture()] with several numbers of components, a
#'   comparison, see [race] and there.
#'   Otherwise an object of class `"evidence"`, a list:
#' \describe{
#'   \item{`log_evidence`, `se`}{The estimate and its standard error.}
#'   \item{`source`}{Which estimate they are: `"sampler"`, `"audit"` (the importance-sampling
#'     check), `"replicates"`, or, for [laplace()], [bic()], [exact()] and [variational()],
#'     `"laplace"`, `"importance"`, `"bic"`, `"exact"`, `"quadrature"` and `"variational"`.}
#'   \item{`verdict`}{All estimates and checks of the log evidence, a data frame of class
#'     `"verdict"` that `summary()` prints: `entry`, `kind` (`"unbiased"`: the mean of the estimated
#'     evidence is the evidence, so that it is far too high only rarely; `"approximate"`,
#'     `"lower bound"`, `"upper bound"` or `"exact"`), `log_evidence`, `se`, `ess` (effective number
#'     of draws), `cost` (evaluations of the likelihood or gradient of one row), `stream` (of random
#'     numbers) and `says`: `"reported"`, or what the entry says of the reported one. Reported is
#'     the entry of the smallest error that no other one contradicts. An entry contradicts another
#'     one if it lies above it by at least 4 joint standard errors and 0.2 nats, or, if it is from
#'     uneven weights, by 5 nats and 2 standard errors. What contradicts the reported one all the
#'     same is said in `failed`. If an estimate from uneven weights lies above it by less, `se`
#'     includes the distance.}
#'   \item{`n`}{Number of observations.}
#'   \item{`trace`}{A data frame with a row for each chunk (or, if all data are annealed together,
#'     each step): `n`, `lambda`, `log_evidence`, `se`, `lambda_steps`, `shortest` (annealing step),
#'     `ess`, `acceptance`, `step_size`, `particles`, `temperature` (spread of the particles
#'     relative to the posterior; 1 is right, above 1 is too wide; with control variates, and for
#'     kernels without an accept step), `noise` (of the gradients, in units of the posterior's own
#'     variance), `drift` (distance of the particles from the anchor of the control variates, in the
#'     same units), `restarts` (how often the run started again from the prior), `moves` (made at
#'     this distribution), `renewal` (how independent these moves made the particles of where they
#'     were, in the slowest direction and within a mode: 0 is no change, 1 an independent draw, `NA`
#'     not measured), `evaluations`, `seconds`. Nested sampling has a row for each round, with
#'     `steps`, `log_lik`, `log_volume` and `renewal`; methods without a path have none.}
#'   \item{`sampler`}{The sampler's own estimate: `log_evidence`, `se`, and its weighted particles
#'     `draws` and `log_weights`; with control variates, and for kernels without an accept step
#'     if their gradients use all rows, `heating`: their `temperature`, the `bias` in nats that it
#'     adds to the estimate (with its `se`), and, with control variates, the bias that the noise of
#'     mini-batches would add if [baoab()] did not correct for it (`batches`).}
#'   \item{`audit`}{The importance-sampling check: `log_evidence`, `se`, `laplace` (the Laplace
#'     approximation), `modes`, `ess` (effective sample size as a share of the draws), `ideal` (this
#'     share if the posterior were normal around its modes), `pareto_k`, `missing` (nats that modes
#'     which no climb has found could add, from those that few climbs have reached; part of
#'     `se`), `unreached` (by how many nats the modes that the particles have missed raise the log
#'     evidence), `first` (whether the particles are draws of the check itself, so that no annealing
#'     was needed), `no_mode` (whether no peak was found), `uneven` (whether `ess` is far below
#'     `ideal`), `known` (whether its weights are even enough for its standard error to be
#'     believed), `cost` (evaluations), `passed` (whether its estimate is reported), `reason` (why
#'     it was inconclusive); `NULL` if there was no check.}
#'   \item{`draws`, `log_weights`}{Posterior draws on the user's scale, a matrix with a row for
#'     each, and their log weights, which sum to one on the natural scale.}
#'   \item{`parameters`}{The same draws in unconstrained space.}
#'   \item{`redraw`}{For [exact()] on few rows, which take less memory than their draws: the rows.
#'     The fit then makes `draws`, `log_weights`, `parameters` and `sampler` when `$` or `[[` asks
#'     for them, always with the same random numbers. `NULL` for other fits.}
#'   \item{`nested`}{Further results of nested sampling, see [nested()]; `NULL` for other methods.}
#'   \item{`peaks`}{The posterior modes found by [laplace()] and [bic()]; `NULL` for other methods.}
#'   \item{`variational`}{Further results of [variational()]; `NULL` for other methods.}
#'   \item{`partitions`}{Further results of [partitions()]; `NULL` for other methods.}
#'   \item{`power`}{Further results of [power_posterior()]; `NULL` for other methods.}
#'   \item{`bound`}{For [gaussian_mixture()] and models with latent variables a lower bound of the
#'     log evidence from a short run of [variational()]: `log_evidence`, the sum of `bound` (for one
#'     labelling of the components) and `symmetry` (the gain from all relabellings). An estimate
#'     below the bound has missed a part of the posterior, and `failed` says so. `NULL` for other
#'     models, and if the bound would cost too much.}
#'   \item{`second_look`}{For [ais()], [smc()] along temperatures and [chib()] on models with latent
#'     variables the `log_evidence` and `se` of a short run of `smc("data")`; if the estimate is far
#'     below it, `failed` says so.}
#'   \item{`na.action`}{The numbers of the rows that were left out, or `NULL`.}
#'   \item{`data_id`}{A text that is equal for fits to the same observations.}
#'   \item{`rows_id`}{For nested sampling, the same for observations together with covariates.}
#'   \item{`replicates`}{A data frame of the single runs' estimates, if there are several.}
#'   \item{`warnings`}{Doubts about the result, and notes on the method, one sentence each; their
#'     names, such as `missed_part`, say which doubt it is.}
#'   \item{`failed`}{Those `warnings` that say that the estimate failed a check; [compare_models()]
#'     leaves such a fit out.}
#'   \item{`prior_conflict`}{The warning that data and prior contradict each other, or `NULL`.}
#'   \item{`work`}{Evaluations of likelihoods and gradients of one observation, annealing steps,
#'     seconds.}
#'   \item{`state`}{What [update.evidence()] needs to add rows, or `NULL`.}
#'   \item{`call`, `model`, `method`, `seed`, `design`}{The call and its arguments.}
#'   \item{`version`}{The versions of this package and of R that made the fit.}
#' }
#'
#' @examples
#' fit <- evidence(linear_regression(dist ~ speed, sigma = 15, prior_sd = 10), cars, seed = 1)
#' fit
#' summary(fit)
#' logml(fit)
#'
#' @export
evidence <- function(model, data, method = sgais(), seed = NULL, replicates = 1, threads = 1,
                     progress = interactive(), keep = NULL, checkpoint = NULL, every = 60,
                     time_limit = NULL, target_se = NULL, on_chunk = NULL, keep_state = NULL,
                     collect = FALSE, na.action = stats::na.fail, prior = NULL,
                     stop_at = NULL, combine = NULL, cl = NULL) {
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
  if (!is.null(target_se)) check_target(target_se, options, data)
  words <- seed_words(seed)
  components <- !several && length(model$components) > 1
  if (is_sharded(data) || is_pushed(data)) {
    given <- list(replicates = if (!missing(replicates) && replicates > 1) TRUE, keep = keep,
                  target_se = target_se, on_chunk = on_chunk, stop_at = stop_at, cl = cl,
                  checkpoint = if (is_pushed(data)) checkpoint,
                  time_limit = if (is_pushed(data)) time_limit)
    given <- names(given)[lengths(given) > 0]
    if (components) given <- "components"
    if (length(given))
      fail("`", given[1], "` cannot be used for ", if (is_sharded(data)) "rows_cluster()."
           else "rows_dbi(push = TRUE).")
    methods <- Map(function(model, run)
      if (chosen && !gathers(model)) SHARD_METHOD() else run$method, models, runs)
    if (is_sharded(data))
      return(fit_shards(new_shards(models, methods, several, prior, data$shards, words, threads,
                                   call), data, options))
    fits <- fit_pushed(models, methods, data, words, threads, call)
    return(fits_of_call(fits, models, methods, several, prior))
  }
  if ((check_flag(collect, "collect") || collects(models, keep)) && is_source(data) && !components)
    data <- collect_rows(data, columns_read_by(models))
  omitted <- NULL
  for (one in models) {
    complete <- complete_data(one, data, na.action)
    data <- complete$data
    if (!is.null(complete$omitted)) omitted <- all_omitted(omitted, complete$omitted)
  }
  replicates <- runs[[1]]$replicates
  if (components)
    return(evidence_of_components(model, data, runs[[1]]$method, words, threads, options, call,
                                  environment(), evidence))
  if (!is.null(keep)) keep <- check_count(keep, "keep", 1000, 1e9)
  if (several) check_race(models, target_se)
  else if (!is.null(prior) || !is.null(stop_at))
    fail("`prior` and `stop_at` are for several models: give `model` as a list of them.")
  if (!is.null(cl) && (is_source(data) || !is.null(keep) || !is.null(stop_at)))
    fail(CLUSTER_IN_MEMORY)
  if (!is_source(data) && (!is.null(keep) || !is.null(stop_at)))
    data <- rows_in_memory(data, if (several || needs_all(model)) HEAD_ROWS else Inf)
  spec_of <- function(model, run)
    list(call = call, model = model, method = run$method, words = words, seeded = !is.null(seed),
         replicates = run$replicates, threads = threads, keep = keep, omitted = omitted)
  if (several)
    return(run_race(new_race(Map(spec_of, models, runs), data, chosen, prior, stop_at), options))
  spec <- spec_of(model, runs[[1]])
  work <- if (!is_source(data))
    work_in_memory(spec, data, alone = spec$replicates == 1 && is.null(target_se), chosen)
  else if (gathers(spec$model)) work_on_groups(spec, data, chosen)
  else work_on_source(spec, data)
  if (is.null(target_se)) run_work(work, options) else reach_target(work, options, target_se, data)
}

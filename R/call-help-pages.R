# Help pages on parts of evidence() that not every call needs: rows of a source, runs that stop and
# go on, replicates and clusters, and what a fit contains.

#' Evidence of rows that need not fit in memory
#'
#' `data` of [evidence()] may be a source of rows, such as [rows_csv()], [rows_dbi()],
#' [rows_arrow()], [rows_function()] or [rows_cluster()]. This page says what a run does with them,
#' and what `keep` and `collect` are for.
#'
#' @section Arguments of evidence():
#' * `keep`: most rows of a source that are kept in memory, a whole number of at least 1,000; 20,000
#'   by default. With a data frame: uses its rows as a source would give them. With group-level
#'   terms ([regression()]): most groups.
#' * `collect`: whether all rows of a source are read into memory first, for methods that need all
#'   rows at once.
#'
#' @details
#' When there are more than `keep` rows, the run keeps
#' a uniform sample of them, and sums of the log-likelihood and its derivatives over all rows at a
#' point near the posterior mode. The sample corrects these sums away from that point. What this
#' adds to the standard error is measured from parts of the sample, and is included in `se`. If it
#' is more than 0.01 nats and the source can be read again, the rows are read once more for the
#' importance-sampling check. If the distribution of the rows changes after rows have left the
#' memory, the run goes on from the sample, and a warning says so. Models without gradients, and
#' nested sampling of mixtures, need all rows in memory.
#'
#' @examples
#' file <- tempfile(fileext = ".csv")
#' write.csv(cars, file, row.names = FALSE)
#' evidence(linear_regression(dist ~ speed, sigma = 15, prior_sd = 10), rows_csv(file), seed = 1)
#'
#' @seealso [evidence()], [update.evidence()], [evidence_checkpoints]
#' @name evidence_streams
NULL

#' Runs that stop and go on
#'
#' A run of [evidence()] can be saved to a file while it works, stopped after a time, and continued
#' by [resume()], with the bits of a run that was never stopped.
#'
#' @section Arguments of evidence():
#' * `checkpoint`: `NULL`, or the name of a file to which the run is saved every `every` seconds,
#'   when it is interrupted, fails or reaches its `time_limit`, and when it has ended. [resume()]
#'   continues from this file, also in another session, and gives the same bits as a run that was
#'   never stopped.
#' * `every`: seconds between two checkpoints.
#' * `time_limit`: `NULL`, or a number of seconds after which the run stops: a step that is under
#'   way is undone, unless it is the first. The result is then an incomplete fit, of class
#'   `"incomplete_evidence"`, from which [resume()] continues. Its `log_evidence`, `se` and `n` are
#'   the estimate of the rows so far and their number; `NA` if the method has none before its end.
#'   The checks after a run are not included.
#' * `keep_state`: whether the fit keeps the state of its run, so that [update.evidence()] can add
#'   rows. `NULL`, the default, keeps it if it takes at most 20 MB.
#'
#' @details
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
#' @examples
#' file <- tempfile(fileext = ".checkpoint")
#' model <- linear_regression(dist ~ speed, sigma = 15, prior_sd = 10)
#' fit <- evidence(model, cars, seed = 1, checkpoint = file)
#' identical(resume(file)$log_evidence, fit$log_evidence)
#'
#' @seealso [evidence()], [resume()], [update.evidence()]
#' @name evidence_checkpoints
NULL

#' Replicates, threads and clusters
#'
#' Several independent runs of one call of [evidence()], and what does them.
#'
#' @section Arguments of evidence():
#' * `replicates`: number of independent runs, a whole number; 1, and 8 by the default method for
#'   models with latent variables. Their estimates are combined, see `combine`, and the standard
#'   error comes from their spread.
#' * `target_se`: `NULL`, or the standard error to reach by further replicates. The spread of the
#'   first runs gives a forecast of how many are needed; a message says how many runs and how much
#'   time, then all of them are run and averaged. More than 1,000 runs are not tried.
#' * `doubling`: with `target_se`, for [ais()], [smc()] and [likelihood_weighting()], whether each
#'   further run has as many particles as all runs before it together, until the standard error is
#'   reached. No run is thrown away: the estimate is the mean of the evidence of the runs, weighted
#'   by their numbers of particles, which are in `fit$replicates`. A number of particles that the
#'   method was given for `ess` grows with them. The run ends after ten doublings, at a million
#'   particles, or where the next run, which takes about as long as all before it, would pass the
#'   `time_limit`; the fit then has a warning. (A first run that does not end in time gives an
#'   unfinished fit, which [resume()] continues without further runs.) Without a `time_limit` the
#'   numbers depend on the seed only. Stopping at an estimated error did not bias 400 runs of
#'   [ais()] with a fixed schedule (mean error -0.008, standard error 0.004, at a stated error of
#'   0.086). Temperatures that adapt to few particles do bias each run, by an amount that is
#'   inversely proportional to their number, so that a mean over several runs has it several times:
#'   from 50 particles to a target of 0.1 the mean error was 0.012 for [smc()] and 0.045 for
#'   [ais()], within the stated error. Begin with some hundred particles.
#' * `combine`: how the estimates of `replicates` become one: `"arithmetic"`, the mean of the
#'   evidence; `"harmonic"`, the reciprocal of the mean of its reciprocal; `"log"`, the mean of the
#'   logarithms. `NULL`, the default, is harmonic for [harmonic_mean()], whose reciprocal is
#'   unbiased, and arithmetic for the others.
#' * `threads`: number of threads; never more than the machine or `OMP_THREAD_LIMIT` allows.
#'   Replicates run at the same time, one per thread, each with a copy of the data; with more than
#'   20 million numbers, and for a [custom_model()], they run one after another. Within a run the
#'   threads synchronise about a thousand times, so use no more threads than there are idle cores.
#'   On a busy machine extra threads mostly wait, and the run takes about a third longer than with
#'   one.
#' * `cl`: `NULL`, or a cluster such as one made by [parallel::makeCluster()], whose workers do
#'   `replicates` and the models of a list, each with `threads` threads, for rows in memory. The
#'   numbers are the same bits with and without it. A `checkpoint` then has the runs that have
#'   ended. See [task_limit()] for workers that hang or are lost, and [rows_cluster()] for rows that
#'   are on the workers.
#' * `on_chunk`: `NULL`, or a function that is called with a list at most about three times a
#'   second, and at the end, for a display of your own: `rows` (that the run has passed), `share`
#'   (of the work, `NA` if not known), `seconds`, and of the last entry of the trace `n`,
#'   `log_evidence`, `se`, `ess`, `lambda`; for several models these are in `models`, a data frame.
#'   An error in it stops the run.
#'
#' @examples
#' model <- linear_regression(dist ~ speed, sigma = 15, prior_sd = 10)
#' fit <- evidence(model, cars, smc(), seed = 1, replicates = 4)
#' fit$replicates
#'
#' @seealso [evidence()], [c.evidence], [task_limit()]
#' @name evidence_runs
NULL

#' What a fit contains
#'
#' The parts of an object of class `"evidence"`, the result of [evidence()] for one model. Verbs
#' such as [summary()][summary.evidence], [coef()][evidence_verbs] and [posterior_draws()] read
#' them.
#'
#' @format A list:
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
#'     one if it lies above it by at least 4 joint standard errors (3 if it is unbiased) and 0.2
#'     nats, or, if it is unbiased and from uneven weights or failed its own checks, by 5 nats and 2
#'     standard errors. An approximate one that failed its own checks does not contradict an
#'     unbiased one from even weights. What contradicts the reported one all the same is said in
#'     `failed`, and so is an estimate more than 20 joint standard errors away, unless a third
#'     importance sampling (`"importance sampling, other climbs"`) agrees with the reported one. If
#'     an estimate from uneven weights lies above it by less, `se` includes the distance.}
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
#'     share if the posterior were normal around its modes), `pareto_k`, `thin` (share of the
#'     estimate in parts of the proposal of which few draws have weight), `missing` (nats that modes
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
#' @seealso [evidence()], [summary.evidence()], [evidence_verbs]
#' @name evidence_value
NULL

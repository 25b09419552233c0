# The one verb.

#' Bayesian evidence of a model
#'
#' Estimates the evidence (marginal likelihood) of a model on data, with a standard error, and
#' returns posterior draws along with it.
#'
#' @param model A model, such as [linear_regression()], [softmax_regression()],
#'   [gaussian_mixture()], [gaussian_mean()], [clustering()], [low_rank()], [binary_attributes()],
#'   [custom_model()] or [compiled_model()].
#' @param data The data: a data frame, or what the model's help page allows besides. A
#'   [custom_model()] may do without.
#' @param method How to estimate: [sgais()], the default (`smc("data", particles = 200)`, the mean
#'   of 8 runs, for models with latent variables), [ais()], [smc()], [nested()], [online_nested()],
#'   [sequential()], [hybrid()], [laplace()], [bridge()], [power_posterior()], [exact()], [bic()],
#'   [likelihood_weighting()], [harmonic_mean()], [chib()] or [variational()].
#' @param seed A whole number that makes the run reproducible, whatever the number of `threads`.
#'   `NULL`, the default, takes one from R's own generator, so that [set.seed()] governs.
#' @param replicates Number of independent runs, a whole number; 1, and 8 by the default method for
#'   models with latent variables. Their estimates of the evidence are averaged, and the standard
#'   error comes from their spread.
#' @param threads Number of threads; never more than the machine or `OMP_THREAD_LIMIT` allows.
#'   Replicates run side by side, one to a thread, each with a copy of the data; on more than 20
#'   million numbers, and of a [custom_model()], one after another. Within a run threads wait for
#'   each other a thousand times: ask for no more than there are idle cores. Where other programs
#'   keep these busy, threads rest for most of the run, which then takes about a third longer than
#'   with one.
#' @param progress Whether to show a progress bar.
#'
#' @details
#' All numbers are natural logarithms; a difference of 1 in log evidence is a factor of 2.7 between
#' the models. The run can be interrupted at any time.
#'
#' **Warnings.** What is suspect about a fit is raised once, when the fit is made, as one R warning
#' of class `"logevidence_warning"` with a line for each sentence. The sentences stay in
#' `fit$warnings`, and `print()` shows them. Notes on a method itself, such as that of [bic()] or
#' [harmonic_mean()], are printed below the fit and are in `fit$warnings` too, but are not raised:
#' they do not depend on the data. Fits inside [crosscheck()] raise nothing, its table shows what
#' they say.
#'
#' @return An object of class `"evidence"`, a list:
#' \describe{
#'   \item{`log_evidence`, `se`}{The estimate and its standard error.}
#'   \item{`source`}{Where they come from: `"sampler"`, `"audit"`, `"replicates"`, or, for
#'     [laplace()], [bic()], [exact()] and [variational()], `"laplace"`, `"importance"`, `"bic"`,
#'     `"exact"` and `"variational"`.}
#'   \item{`n`}{Number of observations.}
#'   \item{`trace`}{A data frame with a row for each chunk (or, if all data are annealed together,
#'     each step): `n`, `lambda`, `log_evidence`, `se`, `lambda_steps`, `shortest` (annealing step),
#'     `ess`, `acceptance`, `step_size`, `particles`, `temperature` (how wide the particles lie, 1
#'     when right; with control variates, and for kernels without an accept step), `noise` (of the
#'     gradients, in units of the posterior's own variance), `drift` (of the particles from the
#'     anchor of the control variates, likewise), `restarts` (how often the walk began anew),
#'     `moves` (made at this distribution), `renewal` (the share of the way to fresh draws that they
#'     carried the particles, in the slowest direction and within a mode; 1 is a fresh draw, `NA`
#'     where it was not measured), `evaluations`, `seconds`. Nested sampling has a row for each
#'     round, with `steps`, `log_lik`, `log_volume` and `renewal`; methods without a path have
#'     none.}
#'   \item{`sampler`}{The sampler's own estimate: `log_evidence`, `se`, and its weighted particles
#'     `draws` and `log_weights`; with control variates, and for kernels without an accept step,
#'     `heating`: their `temperature`, by how many nats it makes the estimate too high (`bias`, with
#'     its `se`), and with control variates what the noise of mini-batches would have cost if
#'     [baoab()] did not make up for it (`batches`).}
#'   \item{`audit`}{The importance-sampling check: `log_evidence`, `se`, `laplace` (the Laplace
#'     approximation), `modes`, `ess` (effective sample size as a share of the draws), `ideal` (the
#'     share if the posterior were normal around its peaks), `pareto_k`, `unreached` (by how many
#'     nats modes that the particles have missed make it larger), `first` (whether the particles are
#'     its own draws, so that annealing was not needed), `uneven` (whether `ess` is far under
#'     `ideal`), `below` (whether it is clearly lower than the sampler's estimate), `passed`,
#'     `reason`; `NULL` without one.}
#'   \item{`draws`, `log_weights`}{Posterior draws on the user's scale, a matrix with a row for
#'     each, and their log weights, which sum to one on the natural scale.}
#'   \item{`parameters`}{The same draws in unconstrained space.}
#'   \item{`nested`}{What nested sampling knows besides, see [nested()]; `NULL` for other methods.}
#'   \item{`peaks`}{What [laplace()] and [bic()] know of the posterior's peaks; `NULL` for other
#'     methods.}
#'   \item{`variational`}{What [variational()] knows besides; `NULL` for other methods.}
#'   \item{`power`}{What [power_posterior()] knows besides; `NULL` for other methods.}
#'   \item{`bound`}{For [gaussian_mixture()] and models with latent variables a lower bound of the
#'     log evidence, by a short run of [variational()]: `log_evidence`, which is the sum of `bound`,
#'     that of one labelling, and `symmetry`, what relabellings add. An estimate below it has missed
#'     something, and is in `failed`. `NULL` where it would cost too much, and for other models.}
#'   \item{`second_look`}{For [ais()], [smc()] along temperatures and [chib()] on models with latent
#'     variables the `log_evidence` and `se` of a short run of `smc("data")`; an estimate far below
#'     it is in `failed`.}
#'   \item{`data_id`}{A text that is the same for fits to the same observations.}
#'   \item{`rows_id`}{For nested sampling, the same for observations and covariates together.}
#'   \item{`replicates`}{A data frame of the single runs' estimates, if there are several.}
#'   \item{`warnings`}{Sentences about what is suspect, and notes on the method.}
#'   \item{`failed`}{Those of them that say that the estimate failed its own checks:
#'     [compare_models()] leaves it out.}
#'   \item{`prior_conflict`}{That one of the warnings which says that data and prior contradict each
#'     other, or `NULL`.}
#'   \item{`work`}{Evaluations of likelihoods and gradients of one observation, annealing steps,
#'     seconds.}
#'   \item{`call`, `model`, `method`, `seed`, `design`}{What was asked for.}
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
                     progress = interactive()) {
  call <- match.call()
  if (missing(model)) fail("`model` must be given, such as `linear_regression(y ~ x)`.")
  check_is_model(model)
  if (missing(data)) data <- part_of(model, "no_data")(model)
  if (missing(method) && missing(replicates)) replicates <- default_replicates(model)
  if (missing(method)) method <- default_method(model, replicates)
  check_is_method(method)
  replicates <- check_count(replicates, "replicates", 1, 1e4)
  threads <- check_count(threads, "threads", 1, 1024)
  progress <- check_flag(progress, "progress")
  words <- seed_words(seed)
  # one run finds its rows where it wants them; several want them in different orders
  binding <- list(threads = threads,
                  seed = if (replicates == 1 && isTRUE(method$settings$shuffle > 0)) words)
  encoded <- encode(model, data, binding)
  if (asks_r(model)) {
    restore <- own_generator(words, keep = is.null(seed))
    on.exit(restore())
  }
  problem <- recorded(new_problem(model, encoded, method, words, threads), method, encoded)
  bar <- progress_bar(progress, encoded$n)
  on.exit(bar$close(), add = TRUE)
  runs <- replicated_runs(problem, encoded, replicates, alone = asks_r(model), bar,
                          mixed = !is.null(binding$seed))
  other_end <- from_other_end(problem, encoded, runs, model, method)
  settled <- tryCatch(settled(problem, encoded, runs[[1]], model), error = function(e) NULL)
  fit <- new_evidence(runs, call, model, method, encoded, words, threads, other_end, settled)
  raise_warnings(with_bound(fit, encoded, words))
}

# Row by row a whole run may follow its first rows into a poor part of the posterior of latent
# variables (one run in ten, where the model does not fit). Runs through several orders of the rows
# do not all do so, and their mean shows the best.
LATENT_RUNS <- 8

default_replicates <- function(model) if (is_latent(model)) LATENT_RUNS else 1

default_method <- function(model, replicates = 1) {
  if (!is_latent(model)) sgais()
  else if (replicates == LATENT_RUNS) smc("data", particles = 200)
  else smc("data", particles = 1000)
}

# Numbers in all. Of more, copies take more memory than a tenth of the time is worth that runs one
# after another, their parts shared by threads, need longer.
SIDE_BY_SIDE <- 2e7

#' As many replicates at a time as there are threads; those that are left over share them
#'
#' @param alone Do runs ask R functions, which one at a time may do?
#' @param mixed Are rows that are `own` in the order of the first run?
#' @noRd
replicated_runs <- function(problem, encoded, replicates, alone, bar, mixed) {
  threads <- .Call(ffi_threads, problem$threads)
  together <- if (alone || length(encoded$rows) > SIDE_BY_SIDE) 1 else min(threads, replicates)
  # of several, which one is the last depends on the threads
  own <- isTRUE(encoded$own) && replicates == 1 && order_is_free(problem$settings)
  groups <- split(seq_len(replicates), (seq_len(replicates) - 1) %/% together)
  runs <- lapply(groups, function(group) {
    show <- function(done, rows) bar$show((group[1] - 1 + length(group) * done) / replicates, rows)
    feed <- function(problems) if (!own) "last"
    else if (mixed && problems[[1]]$replicate == 0) "mixed" else "own"
    walk <- function(problems) conduct_together(problems, encoded$rows, show, feed(problems))
    problem$threads <- if (length(group) > 1) 1 else threads
    problems <- lapply(group, function(r) replace(problem, "replicate", list(r - 1)))
    challenged_runs(walk(problems), problems, walk)
  })
  unlist(runs, recursive = FALSE, use.names = FALSE)
}

# Does nobody need the order of the rows after this run? A walk of rows in their own order may be
# done again, see challenged_runs().
order_is_free <- function(settings) isTRUE(settings$shuffle > 0) || !isTRUE(settings$search > 0)

#' All that C needs to start a run, but the rows
#' @noRd
new_problem <- function(model, encoded, method, words, threads = 1) {
  check_gradients(model, method)
  if (method$estimator == "chib") check_for_chib(model)
  if (method$estimator == "variational") check_for_variational(model)
  method <- if (is_latent(model)) latent_method(method, model) else settle(method, model)
  draws <- audit_draws(encoded$n, may_have_modes(model))
  complete <- function(settings)
    if (identical(settings$audit_draws, 0)) utils::modifyList(settings, draws) else settings
  list(
    model_type = model_type(model), model_args = encoded$args,
    model = model[names(model) != "contract"], estimator = method$estimator,
    settings = for_engine(complete(method$settings)),
    thorough = if (!is.null(method$thorough)) for_engine(complete(method$thorough)),
    kernels = lapply(method$kernels,
                     function(k) list(name = k$name, args = lapply(k$args, as.double))),
    seed = words, replicate = 0, threads = as.double(threads), total = as.double(encoded$n),
    restore = FALSE
  )
}

# Choices between results that an engine reports anyway.
CHOSEN_IN_R <- c("published", "symmetry")

for_engine <- function(settings) settings[!names(settings) %in% CHOSEN_IN_R]

# In the words of the user, who may not have chosen the kernel; C matches needs and offers once
# more.
check_gradients <- function(model, method) {
  if (has_gradients(model)) return(invisible())
  needy <- Filter(function(kernel) kernel_needs(kernel, "gradient"), method$kernels)
  if (length(needy))
    fail("`method` ", method$name, "() moves particles by ", needy[[1]]$name,
         "(), which needs gradients, and this model has none: use nested(), or smc(kernel = ",
         "slice()), or give custom_model() its `gradient` and `prior_gradient`.")
}

# More where weights may be uneven; where each draw has to ask all rows, as many as cost next to
# nothing, down to a hundred for very large data.
AUDIT_WORK <- 2e7
audit_draws <- function(n, several) {
  draws <- if (several) 4000 else 1000
  list(audit_draws = draws, audit_lots = if (several) 4 else 1,
       audit_least = min(draws, max(100, ceiling(AUDIT_WORK / n))))
}

# Methods that use posterior modes or a closed form: laplace(), bic(), exact().

#' Laplace's approximation, and importance sampling around the modes
#'
#' Finds the posterior modes by optimisation and approximates the posterior by a normal density at
#' each. With `importance`, draws from a heavy-tailed mixture around the modes are weighted by the
#' posterior. This estimate has a standard error, and is good if the weights are even.
#'
#' @param starts Number of starting points of the optimisation, at most 512. `NULL`, the default,
#'   is 2, and 16 to 48 for regressions. For models that may have several modes it is 48 to 512,
#'   more for fewer parameters (16 to 512 if derivatives are finite differences). The search ends
#'   earlier if the optimisation runs agree. The 32 modes with the largest mass are kept; if further
#'   modes matter, the fit has a warning.
#' @param importance Number of importance sampling draws, or 0, the default, for none.
#'
#' @details
#' The optimisation is Newton's method, with the model's own second derivatives if it has them,
#' otherwise with differences of its gradients or densities. With many rows it starts on 2,000
#' random ones. For mixtures each distinct mode is counted as many times as there are orders of its
#' components.
#'
#' Without `importance` the estimate has no standard error, because the difference between the
#' posterior and the normal density is unknown. With it, `fit$peaks` has the effective sample size
#' as a share of the draws and the Pareto shape of the weights, and the fit has a warning if the
#' weights are uneven.
#'
#' @inherit method_likelihood_weighting return
#'
#' @references
#' Tierney, L. and Kadane, J. B. (1986). Accurate approximations for posterior moments and marginal
#' densities. *Journal of the American Statistical Association* 81, 82-86.
#'
#' @examples
#' model <- linear_regression(dist ~ speed, sigma = 15, prior_sd = 10)
#' evidence(model, cars, laplace())
#' evidence(model, cars, laplace(importance = 400), seed = 1)
#'
#' @family methods
#' @aliases laplace
#' @export
method_laplace <- function(starts = NULL, importance = 0) {
  if (!is.null(starts)) starts <- check_count(starts, "starts", 1, 512)
  importance <- check_count(importance, "importance", 0, 1e6)
  if (importance == 1) fail("`importance` must be 0 or at least 2 draws, not 1.")
  new_method("laplace", match.call(), estimator = "laplace",
             starts = if (is.null(starts)) 0 else starts, importance = importance,
             traits = "asks")
}

#' Bayesian information criterion (BIC)
#'
#' The maximum of the log likelihood minus half the number of parameters times the log of the number
#' of observations (Schwarz's criterion). It is [laplace()] without the terms of prior and
#' curvature, and differs from the log evidence by a constant that does not vanish with more data.
#' For comparison.
#'
#' @details
#' If the likelihood has no maximum, as for mixtures or separable classes, the likelihood at the
#' posterior mode is used, and the fit has a warning. For [softmax_regression()] the weights of one
#' class are not counted as parameters, because the others determine them.
#'
#' If a covariate of a regression with an intercept is more than 1,000 standard deviations from
#' zero, the columns are standardised as by `scale = TRUE`: the maximum is the same, and keeps its
#' digits.
#'
#' Models with latent variables, such as [clustering()], are fitted by EM from several starting
#' points. The likelihood is that of the parameters, such as the centres, with the latent variables
#' summed out. For [low_rank()] the number of parameters is that of the loadings minus that of their
#' rotations.
#'
#' The value is on the scale of a log evidence: it is \eqn{-\mathrm{BIC}/2}{-BIC/2} in the usual
#' convention.
#'
#' @inherit method_likelihood_weighting return
#'
#' @references
#' Schwarz, G. (1978). Estimating the dimension of a model. *Annals of Statistics* 6, 461-464.
#'
#' @examples
#' evidence(linear_regression(dist ~ speed, sigma = 15, prior_sd = 10), cars, bic())
#'
#' @family methods
#' @aliases bic
#' @export
method_bic <- function() {
  new_method("bic", match.call(), estimator = "laplace", starts = 0, maximum = 1,
             note = "BIC ignores the prior, so it does not estimate this model's evidence.",
             traits = c("latent", "no bound", "no prior", "repeats", "asks"))
}

#' The exact evidence
#'
#' The evidence without Monte Carlo error, for models that have it: [linear_regression()],
#' [regression()] of the gaussian family with normal priors of the coefficients, [gaussian_mean()],
#' [poisson_rate()], [binomial_probability()], and [gaussian_mixture()] with one component.
#'
#' @details
#' With unknown noise, or with [jzs()], all other parameters are integrated out in closed form, and
#' the rest is a one-dimensional integral over the standard deviation of the noise, or over `g`, by
#' Gauss-Legendre rules around all its peaks, with a relative error below 1e-9. Draws are
#' independent draws from the posterior.
#'
#' Otherwise the evidence is in closed form, and draws are from the normal density at the posterior
#' mode. This is the posterior itself for linear regression with known noise and for
#' [gaussian_mean()], and close to it for a mixture of one component on more than a few
#' observations.
#'
#' All rows are needed at once: collect those of a source first (`collect = TRUE` in
#' [evidence()]). Rows on many machines ([rows_cluster()]) need not be collected: each worker gives
#' the triangular factor of its rows, or the sums of a conjugate model, so that nothing is squared.
#'
#' @inherit method_likelihood_weighting return
#'
#' @examples
#' model <- linear_regression(dist ~ speed, sigma = half_student(3, 20), prior_sd = 10)
#' evidence(model, cars, exact(), seed = 1)
#'
#' @family methods
#' @aliases exact
#' @export
method_exact <- function() {
  method <- new_method("exact", match.call(), estimator = "laplace", starts = 1, exact = 1,
                       traits = c("no bound", "improper", "repeats", "joins", "closed form"))
  method$quick <- TRUE
  method
}

# Results -----------------------------------------------------------------------------------------

#' One run of an estimator that uses posterior modes: as one_run() in run-result.R
#' @noRd
peak_run <- function(out, method, model, encoded) {
  figures <- lapply(out[names(out) != "trace"], drop)
  if (method$name != "exact" && figures$failed) {
    fail("No posterior mode with positive definite curvature was found, so ", method$name,
         "() gives no estimate. smc() and nested() do not need such a mode.")
  }
  if (method$name == "exact" && figures$exact == Inf)
    fail(EXACT_FIT)
  weighted <- method$settings$importance > 0
  source <- if (isTRUE(weighted)) "importance" else method$name
  closed_form <- isTRUE(part_of(model, "closed"))
  free <- if (is.null(encoded$free_parameters)) length(figures$peak) else encoded$free_parameters
  headline <- list(
    log_evidence = switch(source, laplace = figures$laplace, importance = figures$importance,
                          exact = figures$exact,
                          bic = figures$maximum - 0.5 * free *
                          log(if (is.null(encoded$observations)) figures$n
                              else encoded$observations)),
    se = switch(source, importance = figures$se, exact = 0, NA_real_),
    source = if (isTRUE(figures$drawn == 1) && !closed_form) "quadrature" else source,
    points = if (source == "importance") out$draws else out$normal_draws
  )
  headline$entry <- peak_entry(headline$source)
  headline$log_weights <-
    normalise(if (source == "importance") figures$log_weights else rep(0, ncol(headline$points)))
  peaks <- list(modes = figures$modes, log_density = figures$log_peak, parameters = figures$peak,
                laplace = figures$laplace, maximum = figures$maximum,
                draws = method$settings$importance, ess = figures$ess / method$settings$importance,
                ideal = figures$ideal / method$settings$importance,
                pareto_k = figures$pareto_k, thin = figures$thin, once = figures$once,
                refused = figures$refused, climbs = figures$climbs)
  several <- may_have_modes(model)
  verdict <- weights_verdict(peaks, "several")
  # no particles can say that a part of the posterior was missed, so the stricter limit holds
  if (source == "importance" && (verdict$doubted || !verdict$known))
    headline$se <- max(figures$se, weight_limit("doubted") *
                         sqrt(max(figures$se^2 - figures$unseen^2, 0)))
  said <- c(
    if (source == "importance") uneven_weights(peaks, if (several) "several" else "one"),
    if (source %in% c("importance", "laplace") && several) more_peaks(peaks),
    if (source == "bic" && !figures$top_found) say("no_maximum")
  )
  list(
    headline = headline, peaks = peaks, mode_table = out$mode_table, trace = data.frame(),
    said = said,
    ledger = peak_entries(headline, figures, said),
    sampler = list(log_evidence = headline$log_evidence, se = headline$se,
                   draws = t(headline$points), log_weights = headline$log_weights),
    work = c(lambda_steps = 0, likelihoods = figures$likelihoods, gradients = figures$gradients,
             seconds = figures$seconds)
  )
}

peak_entry <- function(source)
  switch(source, importance = AUDIT_ENTRY, laplace = "Laplace approximation", bic = "bic()",
         "exact()")

#' The reported entry, and Laplace's approximation beside importance sampling
#' @noRd
peak_entries <- function(headline, figures, said) {
  sampled <- headline$source == "importance"
  kind <- switch(headline$source, importance = "unbiased", exact = , quadrature = "exact",
                 "approximate")
  ledger_of(
    new_entry(headline$entry, kind, headline$log_evidence, headline$se,
              error = if (length(said)) Inf else headline$se,
              ess = if (sampled) figures$ess else NA_real_, cost = evaluations_of(figures),
              reportable = TRUE, doubt = if (length(said)) FAILED_OWN else ""),
    if (sampled && is.finite(figures$laplace))
      new_entry("Laplace approximation", "approximate", figures$laplace))
}

uneven_weights <- function(peaks, modes) {
  reason <- if (isTRUE(peaks$ess < weight_limit(paste0(modes, "_ess")) * peaks$ideal))
    sprintf("the effective sample size is %.0f%% of the draws", 100 * peaks$ess)
  else if (isTRUE(peaks$pareto_k > weight_limit("most_k")))
    sprintf("the weights have a heavy tail (Pareto k %.2f)", peaks$pareto_k)
  else if (!weights_verdict(peaks, modes)$known)
    "no mode was found, and the weights are not even enough to do without"
  if (is.null(reason)) thin_words(peaks) else say("not_normal", reason)
}

PEAKS_REFUSED <- 0.01 # a mode that is left out matters if it has this share of the evidence
PEAKS_ONCE <- 0.05    # share of the evidence at modes that few optimisation runs have found

# Importance sampling misses modes for which it has no proposal.
more_peaks <- function(peaks) {
  if (isTRUE(peaks$refused > PEAKS_REFUSED)) say("modes_refused", as.integer(peaks$modes))
  else if (isTRUE(peaks$climbs > 1 && peaks$once > PEAKS_ONCE))
    say("modes_once", 100 * peaks$once, as.integer(peaks$climbs))
}

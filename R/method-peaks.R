# Methods that look at the posterior's peaks, or at a closed form: laplace(), bic(), exact().

#' Laplace's approximation, and importance sampling around the peaks
#'
#' Climbs to the peaks of the posterior and takes each for a normal density. With `importance`,
#' draws from a heavy-tailed mixture around the peaks are weighted by the posterior itself, which
#' makes the estimate as good as the weights are even and gives it a standard error.
#'
#' @param starts Number of starting points of the climbs, at most 512; `NULL`, the default, is 2,
#'   and for models that may have several modes from 48 to 512, the more the fewer parameters there
#'   are (16 to 512 where climbs are by differences). Climbs end before that where they agree. The
#'   16 heaviest modes are kept, and a fit that had to leave out others that matter says so.
#' @param importance Number of importance sampling draws, or 0, the default, for none.
#'
#' @details
#' The climb is Newton's method, with the model's own second derivatives where it has them and
#' differences of its gradients or densities elsewhere. On many rows it starts on a random 2,000 of
#' them. For mixtures each distinct mode counts as often as there are ways to number its components.
#'
#' Without `importance` the estimate has no standard error: how far the posterior is from normal
#' shows only when it is asked. The share of draws that count and the Pareto shape of the weights
#' are in `fit$peaks`, and a fit whose weights are uneven says so.
#'
#' @inherit likelihood_weighting return
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
#' @export
laplace <- function(starts = NULL, importance = 0) {
  if (!is.null(starts)) starts <- check_count(starts, "starts", 1, 512)
  importance <- check_count(importance, "importance", 0, 1e6)
  if (importance == 1) fail("`importance` must be 0 or at least 2 draws, not 1.")
  new_method("laplace", match.call(), estimator = "laplace",
             starts = if (is.null(starts)) 0 else starts, importance = importance)
}

#' Schwarz's criterion
#'
#' The highest log likelihood less half the number of parameters times the log of the number of
#' observations: what is left of [laplace()] when prior and curvature are dropped, and off by a
#' constant that more data do not remove. For comparison.
#'
#' @details
#' Where the likelihood has no highest point, as that of mixtures, or separable classes, the
#' likelihood at the posterior's peak stands in for it, and the fit says so. The parameters of
#' [softmax_regression()] count without one class, which the others determine.
#'
#' Models with latent variables, such as [clustering()], are fitted by EM from several starts: the
#' likelihood is that of the parameters, such as the centres, with latent variables summed out. The
#' loadings of [low_rank()] count but for their rotations.
#'
#' The value is on the scale of a log evidence: it is \eqn{-\mathrm{BIC}/2}{-BIC/2} in the usual
#' convention.
#'
#' @inherit likelihood_weighting return
#'
#' @references
#' Schwarz, G. (1978). Estimating the dimension of a model. *Annals of Statistics* 6, 461-464.
#'
#' @examples
#' evidence(linear_regression(dist ~ speed, sigma = 15, prior_sd = 10), cars, bic())
#'
#' @family methods
#' @export
bic <- function() {
  new_method("bic", match.call(), estimator = "laplace", starts = 0, maximum = 1,
             note = "BIC ignores the prior, so it does not estimate this model's evidence.")
}

#' The exact evidence
#'
#' In closed form, for the models that have one: [gaussian_mean()], [linear_regression()], and
#' [gaussian_mixture()] with one component.
#'
#' @details
#' Draws are those of the normal density at the posterior's peak: the posterior itself for the first
#' two, and close to it for a mixture of one component on more than a few observations.
#'
#' @inherit likelihood_weighting return
#'
#' @examples
#' evidence(linear_regression(dist ~ speed, sigma = 15, prior_sd = 10), cars, exact())
#'
#' @family methods
#' @export
exact <- function() new_method("exact", match.call(), estimator = "laplace", starts = 1, exact = 1)

# Results -----------------------------------------------------------------------------------------

#' One run of an estimator that looks at peaks: as one_run() in result.R
#' @noRd
peak_run <- function(out, method, model, args) {
  figures <- lapply(out[names(out) != "trace"], drop)
  if (method$name != "exact" && figures$failed) {
    fail("No posterior mode with positive definite curvature was found, so ", method$name,
         "() gives no estimate. smc() and nested() do not need such a mode.")
  }
  weighted <- method$settings$importance > 0
  source <- if (isTRUE(weighted)) "importance" else method$name
  headline <- list(
    log_evidence = switch(source, laplace = figures$laplace, importance = figures$importance,
                          exact = figures$exact,
                          bic = figures$maximum - 0.5 *
                          part_of(model, "free_parameters")(model, figures$peak, args) *
                          log(figures$n)),
    se = switch(source, importance = figures$se, exact = 0, NA_real_),
    source = source,
    points = if (source == "importance") out$draws else out$normal_draws
  )
  headline$log_weights <-
    normalise(if (source == "importance") figures$log_weights else rep(0, ncol(headline$points)))
  peaks <- list(modes = figures$modes, log_density = figures$log_peak, parameters = figures$peak,
                laplace = figures$laplace, maximum = figures$maximum,
                draws = method$settings$importance, ess = figures$ess / method$settings$importance,
                ideal = figures$ideal / method$settings$importance,
                pareto_k = figures$pareto_k, once = figures$once, refused = figures$refused,
                climbs = figures$climbs)
  several <- may_have_modes(model)
  failed <- c(
    if (source == "importance") uneven_weights(peaks,
                                               AUDIT_LEAST_ESS[[if (several) "several"
                                                                else "one"]]),
    if (source %in% c("importance", "laplace") && several) more_peaks(peaks)
  )
  list(
    headline = headline, peaks = peaks, trace = data.frame(), failed = failed,
    sampler = list(log_evidence = headline$log_evidence, se = headline$se,
                   draws = t(headline$points), log_weights = headline$log_weights),
    warnings = c(
      failed,
      if (source == "bic" && !figures$top_found)
        paste("No maximum of the likelihood was found; the likelihood at the posterior mode is used",
              "instead.")
    ),
    work = c(lambda_steps = 0, likelihoods = figures$likelihoods, gradients = figures$gradients,
             seconds = figures$seconds)
  )
}

uneven_weights <- function(peaks, least_ess) {
  reason <- if (peaks$ess < least_ess * peaks$ideal) {
    sprintf("the effective sample size is %.0f%% of the draws", 100 * peaks$ess)
  } else if (isTRUE(peaks$pareto_k > AUDIT_MOST_K)) {
    sprintf("the weights have a heavy tail (Pareto k %.2f)", peaks$pareto_k)
  }
  if (!is.null(reason))
    paste0("The posterior is not close to normal around its modes: ", reason,
           ". The estimate and its standard error cannot be trusted; use sgais(), smc() or ",
           "nested().")
}

PEAKS_REFUSED <- 0.01 # share of the evidence from which a peak that is left out matters
PEAKS_ONCE <- 0.05    # share of it at peaks that a single climb has reached

# Importance sampling knows nothing of peaks that it has no proposal for.
more_peaks <- function(peaks) {
  if (isTRUE(peaks$refused > PEAKS_REFUSED)) {
    return(sprintf(paste("The posterior has more modes than the %d that are kept, and the others",
                         "hold a relevant part of the evidence: the estimate is too low. Use",
                         "smc() or nested()."),
                         peaks$modes))
  }
  if (isTRUE(peaks$climbs > 1 && peaks$once > PEAKS_ONCE)) {
    sprintf(paste("%.0f%% of the estimate comes from modes that only one of %d optimisation runs",
                  "has found, so there are probably more modes and the estimate is too low. Use",
                  "more `starts`, or smc() or nested()."),
                  100 * peaks$once, as.integer(peaks$climbs))
  }
}

# Variational Bayes: a lower bound, from the estimator of the same name in C.

#' Variational Bayes
#'
#' A lower bound on the log evidence, by coordinate ascent on a density in which latent variables
#' and parameters are independent of one another. It takes milliseconds and has no sampling error.
#' It is too low by the divergence of this density from the posterior, often several nats. For
#' [clustering()], [low_rank()], [binary_attributes()] and [gaussian_mixture()].
#'
#' @param restarts Number of starts; the highest bound is reported.
#' @param sweeps Number of Gibbs sweeps of the annealed run that finds each starting point, for
#'   models that have such sweeps; 0 for random starting points.
#' @param tolerance A start ends when 50 iterations raise the bound by less than this, in nats.
#' @param iterations Largest number of iterations of one start.
#' @param symmetry Whether the reported bound includes all relabellings of the components (the
#'   default) or only one; see the details.
#' @param draws Number of draws, from the best density found.
#' @param start `NULL`, or a state of the sampler, such as `bdmc(...)$state`: the first ascent
#'   begins there, and only the others from annealed sweeps. Grosse, Ghahramani and Adams (2015) use
#'   it to see whether a low bound is due to local optima.
#'
#' @details
#' The factors are of the model's own families: categorical labels, Bernoulli attributes, normal
#' centres, features and factors (with full covariances where the model has vectors), inverse-gamma
#' variances, Dirichlet proportions, Beta probabilities, and for [gaussian_mixture()] a
#' normal-inverse-gamma density for each component and column. Known parameters are not estimated.
#'
#' **Relabellings.** The ascent finds one of the \eqn{K!} equal modes that differ by the order of
#' the components. The mixture of all relabellings of its density has a higher bound: by \eqn{\log
#' K!}{log K!} if they do not overlap, by less if they do, as when several components have no
#' observations or the same ones. With `symmetry = TRUE` the bound is that of this mixture. The gain
#' is computed from draws of the latent variables: it is exact if relabellings do not overlap, and
#' accurate to a few hundredths of a nat if they do. So the result is still a lower bound, while the
#' common practice of adding \eqn{\log K!}{log K!} may exceed the evidence and favours models with
#' superfluous components. `fit$variational` has all these numbers. With more than 12 overlapping
#' components the gain is a conservative estimate; with more than 200 components it is omitted; for
#' `low_rank()`, whose factors can be rotated freely, there is none.
#'
#' The bound has no standard error, and the draws have a smaller spread than the posterior.
#' `replicates` of [evidence()] are further restarts; the highest bound is reported.
#'
#' @return An object of class `"evidence_method"` for [evidence()]. Its fits have `variational`, a
#'   list: `bound`, that of one labelling; `symmetry`, the gain from all relabellings;
#'   `relabellings`, the log of their number, which is the largest possible gain; and `restarts`, a
#'   data frame with a row for each start: `iterations`, `bound`, `seconds` and whether it
#'   `converged`.
#'
#' @references
#' Attias, H. (2000). A variational Bayesian framework for graphical models. *Advances in Neural
#' Information Processing Systems* 12, 209-215.
#'
#' Grosse, R. B., Ghahramani, Z. and Adams, R. P. (2015). Sandwiching the marginal likelihood using
#' bidirectional Monte Carlo. arXiv:1511.02543.
#'
#' @examples
#' model <- clustering(components = 3, prior_sd = 1.5, noise_sd = 0.5)
#' fit <- evidence(model, scale(iris[1:4]), variational(), seed = 1)
#' fit
#' fit$variational$restarts
#'
#' @family methods
#' @aliases variational
#' @export
method_variational <- function(restarts = 10, sweeps = 100, tolerance = 0.01, iterations = 10000,
                               symmetry = TRUE, draws = 1000, start = NULL) {
  method <- new_method("variational", match.call(), estimator = "variational",
                       traits = c("latent", "no bound", "repeats"),
                       restarts = check_count(restarts, "restarts", 1, 1e6),
                       sweeps = check_count(sweeps, "sweeps", 0, 1e6),
                       tolerance = check_positive(tolerance, "tolerance"),
                       iterations = check_count(iterations, "iterations", 1, 1e9),
                       symmetry = check_flag(symmetry, "symmetry"),
                       draws = check_count(draws, "draws", 2, 1e6))
  from_given_state(method, start)
}

check_for_variational <- function(model) {
  if (!has_variational(model))
    fail("variational() needs a model with a lower bound, such as clustering() or ",
         "gaussian_mixture(), not ", model$name, "().")
}

#' One run of variational Bayes: as one_run() in run-result.R
#' @noRd
variational_run <- function(out, method) {
  climbs <- out$trace
  climbs$converged <- climbs$converged == 1
  log_evidence <- out$bound + if (identical(method$settings$symmetry, 1)) out$symmetry else 0
  headline <- list(log_evidence = log_evidence, se = NA_real_, source = "variational",
                   entry = "variational Bayes", points = out$draws,
                   log_weights = normalise(rep(0, ncol(out$draws))))
  list(
    headline = headline, trace = data.frame(),
    ledger = new_entry("variational Bayes", "lower bound", log_evidence,
                       cost = evaluations_of(out), reportable = TRUE),
    variational = c(out[c("bound", "symmetry", "relabellings")], list(restarts = climbs)),
    sampler = list(log_evidence = log_evidence, se = NA_real_, draws = t(out$draws),
                   log_weights = headline$log_weights),
    said = if (!climbs$converged[which.max(climbs$bound)]) say("bound_can_rise"),
    work = c(lambda_steps = 0, likelihoods = out$likelihoods, gradients = 0, seconds = out$seconds)
  )
}

# The run with the highest bound.
best_run <- function(fits) fits[[which.max(vapply(fits, function(f) f$headline$log_evidence, 0))]]

#' Lines of print(): the bound, and if there are relabellings the bound that was not chosen
#' @noRd
variational_lines <- function(fit) {
  own <- fit$variational
  chosen <- identical(fit$method$settings$symmetry, 1)
  climbs <- paste("best of", count_of(nrow(own$restarts), "start"))
  most <- paste("relabelling adds at most", format_number(own$relabellings, 3))
  if (own$relabellings == 0)
    return(list(estimates = list(fit), labels = "log evidence",
                words = paste("lower bound,", climbs)))
  other <- list(log_evidence = own$bound + if (chosen) 0 else own$symmetry, se = NA_real_)
  list(
    estimates = list(fit, other),
    labels = c("log evidence", if (chosen) "  one labelling" else "  all labellings"),
    words = if (chosen) c("lower bound, all labellings", paste0(climbs, "; ", most))
    else c("lower bound, one labelling", paste0(climbs, "; ", most))
  )
}

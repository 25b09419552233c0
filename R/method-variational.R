# Variational Bayes: a lower bound, from the estimator of the same name in C.

#' Variational Bayes
#'
#' A lower bound on the log evidence: coordinate ascent on a density that takes latent variables and
#' parameters to be independent of one another. It takes milliseconds, has no sampling error, and is
#' low by as much as the posterior differs from such a product, often several nats. For
#' [clustering()], [low_rank()], [binary_attributes()] and [gaussian_mixture()].
#'
#' @param restarts Number of random starts; the highest bound counts.
#' @param sweeps Gibbs sweeps on the way from the prior to the posterior that find each start, for
#'   models that have them; 0 for plain random starts.
#' @param tolerance A climb ends when 50 iterations have raised the bound by less than this, in
#'   nats.
#' @param iterations Most iterations of one climb.
#' @param symmetry Whether the reported bound is that of all relabellings together, the default, or
#'   of one; see the details.
#' @param draws Number of posterior draws, from the best density found.
#'
#' @details
#' The factors are of the model's own families: categorical labels, Bernoulli attributes, normal
#' centres, features and factors (with full covariances where the model has vectors), inverse-gamma
#' variances, Dirichlet proportions, Beta probabilities, and for [gaussian_mixture()] a
#' normal-inverse-gamma density for each component and column. What is known is not estimated.
#'
#' **Relabellings.** The climb finds one of the \eqn{K!} equal modes that exchanging components
#' makes. The mixture of all relabellings of its density has a higher bound: by \eqn{\log K!}{log
#' K!} if they do not overlap, by less if they do, as when several components have no observations
#' or the same ones. With `symmetry = TRUE` the bound is that of the mixture. Its gain comes from
#' draws of the latent variables: it is exact where relabellings do not overlap, and good to a few
#' hundredths of a nat where they do. So it remains a lower bound, while adding all of \eqn{\log
#' K!}{log K!}, as is common, may exceed the evidence and favours models with superfluous
#' components. `fit$variational` has all these numbers. With more than 12 components that overlap
#' the gain is a cautious one, with more than 200 components it is left out, and for `low_rank()`,
#' whose factors may be rotated at will, none is counted.
#'
#' The bound has no standard error, and draws are narrower than the posterior. `replicates` of
#' [evidence()] are further restarts: the highest counts.
#'
#' @return An object of class `"evidence_method"` for [evidence()]. Its fits have `variational`, a
#'   list: `bound`, that of one labelling; `symmetry`, what all relabellings add; `relabellings`,
#'   the log of their number, which is the most that they could add; and `restarts`, a data frame
#'   with a row for each climb: `iterations`, `bound`, `seconds` and whether it `converged`.
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
#' @export
variational <- function(restarts = 10, sweeps = 100, tolerance = 0.01, iterations = 10000,
                        symmetry = TRUE, draws = 1000) {
  new_method("variational", match.call(), estimator = "variational",
             restarts = check_count(restarts, "restarts", 1, 1e6),
             sweeps = check_count(sweeps, "sweeps", 0, 1e6),
             tolerance = check_positive(tolerance, "tolerance"),
             iterations = check_count(iterations, "iterations", 1, 1e9),
             symmetry = check_flag(symmetry, "symmetry"),
             draws = check_count(draws, "draws", 2, 1e6))
}

check_for_variational <- function(model) {
  if (!has_variational(model))
    fail("variational() is for clustering(), low_rank(), binary_attributes() and ",
         "gaussian_mixture(), not ", model$name, "().")
}

#' One run of variational Bayes: as one_run() in result.R
#' @noRd
variational_run <- function(out, method) {
  climbs <- out$trace
  climbs$converged <- climbs$converged == 1
  log_evidence <- out$bound + if (identical(method$settings$symmetry, 1)) out$symmetry else 0
  headline <- list(log_evidence = log_evidence, se = NA_real_, source = "variational",
                   points = out$draws, log_weights = normalise(rep(0, ncol(out$draws))))
  list(
    headline = headline, trace = data.frame(), failed = NULL,
    variational = c(out[c("bound", "symmetry", "relabellings")], list(restarts = climbs)),
    sampler = list(log_evidence = log_evidence, se = NA_real_, draws = t(out$draws),
                   log_weights = headline$log_weights),
    warnings = if (!climbs$converged[which.max(climbs$bound)])
      "The best start reached the limit of `iterations`: more would raise the bound.",
    work = c(lambda_steps = 0, likelihoods = out$likelihoods, gradients = 0, seconds = out$seconds)
  )
}

# Of several bounds the highest is the best.
best_run <- function(fits) fits[[which.max(vapply(fits, function(f) f$headline$log_evidence, 0))]]

#' What print() says: the bound, and where there are relabellings the one that was not chosen
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

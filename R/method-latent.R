# Methods for models with latent variables only.

#' Chib's estimator
#'
#' The evidence from one state of the latent variables: its joint density divided by its posterior
#' probability. The posterior probability is the mean transition density of Gibbs sweeps to this
#' state. For [clustering()], [low_rank()] and [binary_attributes()] with known variances and
#' probabilities.
#' @param draws Number of sweeps in this mean.
#' @param search Number of sweeps that search for a state of high density; the first half are
#'   annealed from the prior.
#' @param plain `TRUE` for a chain that continues the search, as first proposed. `FALSE`, the
#'   default, for a chain that starts with a reverse sweep from the state itself and is extended in
#'   both directions, which makes the estimate of the evidence unbiased.
#'
#' @details
#' If sweeps do not exchange labels, as with well separated clusters, they reach only one of
#' \eqn{K!} equal modes, and the estimate of either form is too low by up to \eqn{\log K!}{log K!}.
#' The standard error, from batches of the chain, does not show this.
#'
#' With unknown variances and probabilities there is no such estimator here: sweeps draw unknown
#' variances by slice sampling, because the parameters of the components are integrated out, and the
#' transition density of a slice sampler has no closed form. Take [smc()], [ais()] or [nested()].
#'
#' @inherit likelihood_weighting return
#'
#' @references
#' Chib, S. (1995). Marginal likelihood from the Gibbs output. *Journal of the American Statistical
#' Association* 90, 1313-1321.
#'
#' Murray, I. and Salakhutdinov, R. (2009). Evaluating probabilities under high-dimensional latent
#' variable models. *Advances in Neural Information Processing Systems* 21.
#'
#' @examples
#' evidence(clustering(components = 2), c(-0.3, 1.2, 0.4, -1.1), chib(), seed = 1)
#'
#' @family methods
#' @aliases method_chib
#' @export
chib <- function(draws = 1000, search = 500, plain = FALSE) {
  new_method("chib", match.call(), estimator = "chib", traits = c("latent", "local"),
             draws = check_count(draws, "draws", 4, 1e8),
             search = check_count(search, "search", 1, 1e8), plain = check_flag(plain, "plain"),
             note = paste("Chib's estimator includes only the modes that its sweeps reach. If",
                          "components can be exchanged, it may be too low by up to the log of",
                          "the number of their orders, which its standard error does not show."))
}

# Least effective number of draws in the mean, and least share of sweeps at which the chain moves.
CHIB_LEAST_MET <- 20
CHIB_LEAST_MOVED <- 0.02

#' Does the mean rest on many draws, and does the chain move?
#' @noRd
chib_warnings <- function(figures, method, model) {
  if (!identical(method$name, "chib") || is.null(figures$met)) return(NULL)
  met <- drop(figures$met)
  # probabilities are at most one, so their largest values do not show the tail of the mean
  k <- if (part_of(model, "latent")$tail) drop(figures$pareto_k)
  heavy <- isTRUE(k > weight_limit("most_k"))
  moved <- drop(figures$moved)
  c(
    if (!isTRUE(met >= CHIB_LEAST_MET) || heavy)
      say("few_met", met, if (heavy) sprintf(" (Pareto k %.2f)", k) else ""),
    if (isTRUE(moved < CHIB_LEAST_MOVED)) say("one_state")
  )
}

#' One run of the criterion of Schwarz: as one_run() in result.R
#' @noRd
latent_bic_run <- function(out, method, model, encoded) {
  run <- variational_run(out, method)
  maximum <- drop(out$bound)
  run$headline$log_evidence <- maximum - 0.5 *
    part_of(model, "latent")$free(model$args, nrow(encoded$rows)) * log(encoded$n)
  run$headline$source <- "bic"
  run$headline$entry <- "bic()"
  run$ledger <- new_entry("bic()", "approximate", run$headline$log_evidence,
                          cost = evaluations_of(out), reportable = TRUE)
  run$sampler$log_evidence <- run$headline$log_evidence
  run$peaks <- list(maximum = maximum, climbs = run$variational$restarts)
  run$variational <- NULL
  run
}

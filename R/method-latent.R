# Methods that only models with latent variables have.

#' Chib's estimator
#'
#' The evidence from one state of the latent variables: its density over its posterior probability,
#' which is averaged from the transition densities of Gibbs sweeps towards it. For [clustering()],
#' [low_rank()] and [binary_attributes()] with known variances and probabilities.
#'
#' @param draws Sweeps that the average is taken over.
#' @param search Sweeps that look for a good state, the first half of them warming up from the
#'   prior.
#' @param plain `TRUE` for a chain that goes on from the search, as first proposed; `FALSE`, the
#'   default, for one that is grown both ways from a reverse sweep from the state itself, which
#'   makes the estimate of the evidence unbiased.
#'
#' @details
#' Sweeps that do not exchange labels, as with well separated clusters, see one of \eqn{K!} equal
#' modes, and the estimate comes out low by up to \eqn{\log K!}{log K!}, whichever the form; its
#' standard error, from batches of the chain, does not show that.
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
#' @export
chib <- function(draws = 1000, search = 500, plain = FALSE) {
  new_method("chib", match.call(), estimator = "chib", draws = check_count(draws, "draws", 4, 1e8),
             search = check_count(search, "search", 1, 1e8), plain = check_flag(plain, "plain"),
             note = paste("Chib's estimator includes only the modes that its sweeps reach. If",
                          "components can be exchanged, it may be too low by up to the log of",
                          "the number of their orders, which its standard error does not show."))
}

# Of the draws whose transition densities carry the average, and of those at which the chain has
# moved.
CHIB_LEAST_MET <- 20
CHIB_LEAST_MOVED <- 0.02

#' Is the average over the chain one of many draws, in a chain that moves?
#' @noRd
chib_warnings <- function(figures, method, model) {
  if (!identical(method$name, "chib") || is.null(figures$met)) return(NULL)
  met <- drop(figures$met)
  # of probabilities, which are at most one, the largest say nothing of the mean's tail
  k <- if (part_of(model, "latent")$tail) drop(figures$pareto_k)
  moved <- drop(figures$moved)
  c(
    if (!isTRUE(met >= CHIB_LEAST_MET) || isTRUE(k > AUDIT_MOST_K)) sprintf(
      paste("Few draws have an appreciable transition density to the chosen state: the average",
            "rests on %.0f of them%s. The estimate may be wrong by several nats, and its",
            "standard error does not show it. Use more `draws`, or compare with smc(\"data\")."),
      met, if (isTRUE(k > AUDIT_MOST_K)) sprintf(" (Pareto k %.2f)", k) else ""),
    if (isTRUE(moved < CHIB_LEAST_MOVED)) paste(
      "The sweeps hardly leave one state, so the standard error ignores other parts of the",
      "posterior, and the estimate may be several nats too low. Compare with smc(\"data\") or",
      "nested().")
  )
}

check_for_chib <- function(model) {
  if (!is_latent(model))
    fail("chib() is for models with latent variables, such as clustering(), not ", model$name,
         "().")
  if (model$args$infer != 0)
    fail("chib() needs known variances and probabilities: the transition density of sweeps over ",
         "unknown ones cannot be computed.")
}

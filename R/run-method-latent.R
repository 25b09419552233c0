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
#' @param relabel `TRUE`, the default, for sweeps that begin with a random relabelling: components
#'   of equal proportion or attributes of equal probability are numbered anew; for [low_rank()] also
#'   the columns of both factors, and their signs. `FALSE` for sweeps alone, as published.
#' @param state The chosen state, so that no search is made: a result of [bdmc()], its `state`, or a
#'   posterior draw (a row of [posterior_draws()] of a fit to the same data). With `plain = TRUE`
#'   the chain begins there. `NULL`, the default, searches.
#'
#' @details
#' Sweeps alone hardly ever exchange labels, as with well separated clusters. They reach one of
#' \eqn{K!} equal modes, and with `relabel = FALSE` the estimate of either form is too low by up to
#' \eqn{\log K!}{log K!}. The standard error, from batches of the chain, does not show this. A
#' random relabelling leaves the posterior invariant as well, and the transition density of both
#' together is the mean over all relabellings. The mean is exact if there are at most 24. Otherwise
#' it is an unbiased estimate from one relabelling for each sweep, which is drawn to make the two
#' states alike.
#'
#' Sweeps may also be slow in other ways that no relabelling mends. The estimate is then too low:
#' its expected logarithm, if `state` is a posterior draw, is too low by the mutual information of
#' the state and the chain. For [low_rank()] with rank \eqn{K} and little noise this is about
#' \eqn{K^2 \log(1 / \mbox{noise\_sd})}{K^2 log(1 / noise_sd)}, because each sweep draws all row
#' factors given the column factors. If the chosen state is not like a posterior draw, as a point
#' estimate may be, the error can be thousands of nats. More sweeps hardly help: whatever the state,
#' `draws` of them win at most \eqn{\log(\mbox{draws})}{log(draws)} nats over one, on average.
#'
#' With unknown variances and probabilities there is no such estimator here: sweeps draw unknown
#' variances by slice sampling, because the parameters of the components are integrated out, and the
#' transition density of a slice sampler has no closed form. Take [smc()], [ais()] or [nested()].
#'
#' @inherit method_likelihood_weighting return
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
#' # with the state from which the data were simulated
#' made <- bdmc(clustering(components = 2), n = 10, method = ais(schedule = sigmoidal(100)),
#'              seed = 1)
#' evidence(made$model, made$data, chib(state = made), seed = 1)
#'
#' @family methods
#' @aliases chib
#' @export
method_chib <- function(draws = 1000, search = 500, plain = FALSE, relabel = TRUE, state = NULL) {
  relabel <- check_flag(relabel, "relabel")
  method <- new_method(
    "chib", match.call(), estimator = "chib", traits = c("latent", "local"),
    draws = check_count(draws, "draws", 4, 1e8), search = check_count(search, "search", 1, 1e8),
    plain = check_flag(plain, "plain"), relabel = relabel,
    note = paste(c("Chib's estimator includes only the modes that its sweeps reach.", if (!relabel)
      paste("If components can be exchanged, it may be too low by up to the log of the number of",
            "their orders, which its standard error does not show.")), collapse = " ")
  )
  if (!is.null(state)) method$state <- check_state(state, "state") # see with_chosen_state()
  method
}

check_for_chib <- function(model) {
  if (!is_latent(model))
    fail("chib() is for models with latent variables, such as clustering(), not ", model$name,
         "().")
  if (model$args$infer != 0)
    fail("chib() needs known variances and probabilities: the transition density of sweeps over ",
         "unknown ones cannot be computed.")
}

#' The method with its chosen state, if the user gives one, in the form of C
#' @noRd
with_chosen_state <- function(method, model, encoded) {
  state <- method$state
  if (is.null(state)) return(method)
  own <- encoded$theta_names
  shown <- own %in% encoded$user_names
  short <- length(state) != length(own)
  expected <- if (short) encoded$user_names else own
  if (length(state) != length(expected))
    fail("`state` must have ", length(own), " numbers, as `bdmc(...)$state` for these data, or ",
         "the ", sum(shown), " of a posterior draw, not ", length(state), ".")
  if (!is.null(names(state))) {
    wrong <- setdiff(names(state), expected)
    if (length(wrong) || anyDuplicated(names(state)))
      fail("`state` must have the names of a state for these data, such as `",
           expected[length(expected)], "`, not `",
           c(wrong, names(state)[duplicated(names(state))])[1], "`.")
    state <- state[expected]
  }
  ask <- model_caller(model, encoded)
  # what is known, such as variances, stands at the front of a state
  known <- ask("state_start", extra = list(seen = 0, seed = c(0, 0)))$theta[!shown]
  labels <- grepl("^label", expected)
  if (short) state[labels] <- state[labels] - 1
  if (short) state <- c(known, state)
  off <- which(abs(state[!shown] - known) > 1e-8 * known)[1]
  if (!is.na(off)) {
    user <- function(value) show_setting(if (grepl("_sd$", own[off])) sqrt(value) else value)
    fail("`state` must be a state of this model, whose ", own[off], " is ", user(known[off]),
         ", not ", user(state[off]), ".")
  }
  if (ask("state_possible", state, list(seed = c(0, 0)))$value == 0)
    fail("`state` must be a state of this model: ", part_of(model, "latent")$legal(model$args), ".")
  with_settings(method, from_state = unname(state))
}

# Least effective number of draws in the mean, and least share of sweeps at which the chain moves.
CHIB_LEAST_MET <- 20
CHIB_LEAST_MOVED <- 0.02

#' Does the mean rest on many draws, and does the chain move?
#' @noRd
chib_warnings <- function(figures, model) {
  if (is.null(figures$met)) return(NULL)
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

#' One run of the criterion of Schwarz: as one_run() in run-result.R
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

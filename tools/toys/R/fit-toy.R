# How much the data say: the mean over the posterior of the log prior density, and the information,
# which is the mean of the log-likelihood minus the log evidence (Kullback-Leibler divergence of the
# posterior from the prior).

#' A toy verb on fits
#' @noRd
toy_verb <- function(x, ...) UseMethod("toy_verb")

toy_verb.evidence <- function(x, data = NULL, ..., envir = parent.frame()) {
  check_no_dots(...)
  call_prior <- prior_caller(x, "toy_verb() has nothing to return for")
  call_rows <- model_caller(x$model, own_data(x, data, envir))
  weights <- exp(x$log_weights)
  use <- weights > 0
  mean_at_draws <- function(call, what)
    sum(weights[use] * call(what, t(unname(x$parameters[use, , drop = FALSE]))))
  data.frame(log_prior = mean_at_draws(call_prior, "log_prior"),
             information = mean_at_draws(call_rows, "log_lik") - x$log_evidence)
}

toy_verb.incomplete_evidence <- function(x, ...) whole_fit("toy_verb")

# A row for each model, with its probability.
toy_verb.model_comparison <- function(x, data = NULL, ...) {
  check_no_dots(...)
  fits <- compared_fits(x, "toy_verb")
  each <- lapply(fits, toy_verb, data, envir = parent.frame())
  data.frame(model = x$model, posterior = x$posterior, do.call(rbind, unname(each)))
}

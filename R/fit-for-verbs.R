# What verbs on fits share: the prior of a fit at points, the draws of coefficients, and sentences
# for fits without what a verb needs. ARCHITECTURE.md lists the rest ("A verb on fits").

#' The function of model_caller() for what needs no rows: the prior and the scale of the user
#'
#' `call("log_prior", t(fit$parameters))` is the log density of the prior at the draws, in
#' unconstrained space.
#'
#' @param refused The beginning of the error's sentence, for fits of which the prior is not known.
#' @noRd
prior_caller <- function(fit, refused) {
  model <- fit$model
  improper <- !is.null(improper_parts(model, fit$design))
  if (improper || is_latent(model) || is.null(fit$args))
    fail(refused, " this ", model$name, "(), whose prior is ",
         if (improper) "improper." else "not drawn from.")
  model_caller(model, list(args = fit$args, rows = matrix(0, 0, 0)))
}

no_verb <- function(fit, verb, what, instead) {
  fail(verb, "() has nothing to return: this ", fit$model$name, "() has no ", what, ". See ",
       instead, ".")
}

coefficient_draws <- function(fit, verb) {
  check_not_integrated(fit$model, verb)
  if (!part_of(fit$model, "coefficients"))
    no_verb(fit, verb,
            "coefficients, and its components and latent variables are numbered arbitrarily",
            "summary() or predict()")
  fit$draws
}

require_response <- function(fit, verb) {
  if (is.null(part_of(fit$model, "fitted")))
    no_verb(fit, verb, "response whose mean is known", "predict()")
}

# Effects of factors under jzs() are no parameters of C, and the fit has no draws of them.
check_not_integrated <- function(model, verb) {
  if (is_integrated(model))
    fail(verb, "() has nothing to return: this ", model$name, "() is for comparisons. ",
         INTEGRATED_OUT)
}

fitted_to <- function(fit, encoded) part_of(fit$model, "fitted")(fit, by_observation(encoded))

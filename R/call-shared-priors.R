# Priors of parameters that several models share: a Bayes factor compares models with their priors,
# so that it also judges these where they differ.

AVERAGE_ROW <- "intercept of an average row"

#' The priors of a fit in the units of its columns as they are
#'
#' @return A list named by parameters, each element a list of `prior`, whether it is the `default`,
#'   whether it is that of an intercept of an `average` row, and `of`, a sentence if this is not the
#'   parameter itself; empty if the model has no priors parameter by parameter.
#' @noRd
priors_of_fit <- function(fit) {
  priors <- fit$design$priors
  if (!length(priors)) return(list())
  predictors <- c(list(fit$design$scaling), lapply(fit$design$further, `[[`, "scaling"))
  prefixes <- c("", sprintf("%s_", names(fit$design$further)))
  scale <- unlist(Map(function(one, prefix)
    if (length(one$scale)) stats::setNames(one$scale, paste0(prefix, names(one$scale))),
    predictors, prefixes))
  of_intercept <- function(holds) unlist(Map(function(one, prefix)
    if (holds(one)) paste0(prefix, INTERCEPT), predictors, prefixes))
  centred <- of_intercept(function(one) any(one$centre != 0))
  alone <- of_intercept(function(one) identical(names(one$scale), INTERCEPT))
  lapply(stats::setNames(nm = names(priors)), function(name) {
    prior <- priors[[name]]
    own <- if (name %in% names(scale)) scale[[name]] else 1
    default <- isTRUE(prior$default)
    intercept <- endsWith(name, INTERCEPT)
    list(prior = if (own == 1) prior else times_unit(prior, 1 / own), default = default,
         average = intercept && (default || name %in% c(centred, alone)),
         of = if (name %in% centred) AVERAGE_ROW else "")
  })
}

# A prior as its kind and its numbers, without the names of these.
short_prior <- function(prior)
  paste0(if (prior$kind == "correlation") "lkj" else prior$kind, "(",
         paste(format_each(signif(unlist(prior$shown), 3)), collapse = ", "), ")")

# Effective draws below which a change of the prior is not computed from draws.
REWEIGHTED_LEAST <- 50
# Smaller changes, in nats, are called "the same".
MOVED_LEAST <- 0.01
PRIORS_NAMED <- 3

#' A sentence about shared parameters whose priors differ, and by how much that moves the Bayes
#' factors; or NULL
#'
#' @param fits Named, those of which the checks were passed.
#' @param reference The name of the fit to whose priors the others are compared.
#' @noRd
priors_sentence <- function(fits, reference) {
  all <- lapply(fits, comparable_priors)
  first <- all[[reference]]
  if (is.null(first)) return(NULL)
  others <- setdiff(names(fits), reference)
  differ <- lapply(stats::setNames(nm = others), function(name) {
    own <- all[[name]]
    shared <- intersect(names(own$priors), names(first$priors))
    if (!identical(own$link, first$link)) return(character())
    shared[!vapply(shared, function(one) same_prior(own$priors[[one]], first$priors[[one]]), NA)]
  })
  differ <- differ[lengths(differ) > 0]
  if (!length(differ)) return(NULL)
  named <- unique(unlist(differ))
  shown <- utils::head(named, PRIORS_NAMED)
  each <- vapply(shown, function(one) {
    models <- c(reference, names(differ)[vapply(differ, function(of) one %in% of, NA)])[1:2]
    paste0("`", one, "` (", paste(vapply(models, function(model)
      paste(short_prior(all[[model]]$priors[[one]]$prior), "in", model), ""), collapse = ", "), ")")
  }, "")
  moved <- Map(function(name, of) reweighted(fits[[name]], all[[name]]$priors[of],
                                             first$priors[of]), names(differ), differ)
  paste0("Different priors of shared parameters: ", paste(each, collapse = ", "),
         if (length(named) > length(shown)) paste(" and", length(named) - length(shown), "more"),
         ". ", moved_words(moved, reference))
}

comparable_priors <- function(fit) {
  priors <- or_null(priors_of_fit(fit))
  ratio <- fit$model$family$link
  if (length(priors) && nrow(fit$draws) > 0 && all(names(priors) %in% colnames(fit$draws)))
    list(priors = priors, link = ratio)
}

same_prior <- function(a, b) {
  numbers <- function(one) unlist(one$prior[c("location", "scale", "shape")])
  a$average == b$average && identical(a$prior$kind, b$prior$kind) &&
    isTRUE(all.equal(numbers(a), numbers(b), tolerance = 1e-6))
}

#' By how much the log evidence of a fit changes with other priors of some parameters
#'
#' @return The change and its standard error; NA if few draws are probable under these priors.
#' @noRd
reweighted <- function(fit, own, other) {
  log_ratio <- numeric(nrow(fit$draws))
  for (name in names(own))
    log_ratio <- log_ratio + prior_log_density(other[[name]]$prior, values_for(fit, name, other)) -
      prior_log_density(own[[name]]$prior, values_for(fit, name, own))
  log_weights <- fit$log_weights + log_ratio
  if (anyNA(log_weights)) return(c(NA, NA))
  total <- log_sum(log_weights)
  weights <- exp(log_weights - total)
  if (1 / sum(weights^2) < REWEIGHTED_LEAST) return(c(NA, NA))
  before <- exp(fit$log_weights)
  c(total, sqrt(sum((weights - before)^2)))
}

# The draws of a parameter to which its prior applies: for an intercept of an average row those of
# the parameter on standardised columns.
values_for <- function(fit, name, priors) {
  if (nzchar(priors[[name]]$of) && name %in% colnames(fit$parameters)) fit$parameters[, name]
  else fit$draws[, name]
}

moved_words <- function(moved, reference) {
  names <- names(moved)
  known <- !vapply(moved, function(one) is.na(one[1]), NA)
  by <- vapply(moved, `[`, 0, 1)
  large <- known & abs(by) >= MOVED_LEAST
  shown <- utils::head(which(large), PRIORS_NAMED)
  said <- c(
    if (length(shown)) paste0("with the priors of ", reference, " the log evidence would be ",
                              paste0(format_each(signif(abs(by[shown]), 2)),
                                     ifelse(by[shown] > 0, " higher", " lower"), " for ",
                                     names[shown], collapse = ", "),
                              if (sum(large) > length(shown)) " and so on"),
    if (any(known & !large)) paste0("with the priors of ", reference, " the log evidence of ",
                                    show_models(names[known & !large]), " would be the same"),
    if (any(!known)) paste0("by how much that changes the Bayes factor over ",
                            show_models(names[!known]), " is not known from the draws"))
  said <- paste(said, collapse = "; ")
  paste0(toupper(substr(said, 1, 1)), substring(said, 2), ".")
}

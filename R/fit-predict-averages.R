# Predictions and simulations of a comparison: of the mixture of its models, each with its posterior
# probability.

#' @rdname compare_models
#' @export
predict.model_comparison <- function(object, newdata = NULL, type = NULL, ..., interval = NULL,
                                     draws = NULL, seed = NULL) {
  check_prediction_dots(...)
  if (is.null(newdata)) fail("`newdata` must be given: a comparison does not keep its data.")
  if (identical(type, "link"))
    fail("`type` must be one that is averaged over models, not \"link\": use predict() of a fit ",
         "in `attr(x, \"fits\")`.")
  models <- averaged_models(object)
  own <- vapply(models$fits, function(fit) prediction_types(fit$model)[1], "")
  if (is.null(type)) {
    if (length(unique(own)) > 1)
      fail("`type` must be given: the models' own are ", show_names(unique(own)), ".")
    type <- own[[1]]
  }
  each <- function(type) lapply(models$fits, predict, newdata = newdata, type = type)
  simulates <- identical(type, "draws") || identical(type, "response") && !is.null(interval)
  draws <- check_number_of_draws(draws, simulates)
  words <- if (simulates) seed_words(seed) else if (!is.null(seed)) refuse_without_draws("seed")
  if (!is.null(interval)) {
    types <- Reduce(intersect, lapply(models$fits, function(fit) prediction_types(fit$model)))
    interval <- check_interval(interval, type, setdiff(types, "link"))
    mean <- Reduce(`+`, Map(`*`, each("response"), models$weights))
    return(interval_table(mean, if (type == "expected") mixed_limits(models, newdata, interval)
      else row_limits(mixed_draws(models, newdata, draws, words), interval)))
  }
  if (identical(type, "draws")) return(mixed_draws(models, newdata, draws, words))
  found <- each(if (identical(type, "class")) "probability" else type)
  if (is.matrix(found[[1]])) {
    columns <- lapply(found, colnames)
    if (!all(vapply(columns, identical, TRUE, columns[[1]])))
      fail("`type` must be one that means the same in all models: their classes or components ",
           "differ. Use predict() of a fit in `attr(x, \"fits\")`.")
    average <- Reduce(`+`, Map(`*`, found, models$weights))
    return(if (identical(type, "class")) most_probable(average) else average)
  }
  if (type != "density") return(Reduce(`+`, Map(`*`, found, models$weights)))
  log_sum_rows(do.call(cbind, found) + rep(log(models$weights), each = length(found[[1]])))
}

#' @rdname race
#' @export
predict.evidence_race <- function(object, ..., rows = NULL) {
  if (!is.null(rows)) object <- at_moment(object, check_number(rows, "rows", 0))
  predict.model_comparison(object, ...)
}

#' The fits of a comparison that have a posterior probability, and these
#' @noRd
averaged_models <- function(x) {
  check_whole_table(x)
  use <- which(x$posterior > 0)
  if (!is_plain_numeric(x$posterior) || !is_full_text(x$model) || !length(use) ||
      !are_probabilities(x$posterior[use]) || !all(x$model %in% names(attr(x, "fits"))))
    fail("`object` must be a comparison with its columns `model` and `posterior`.")
  list(fits = attr(x, "fits")[x$model[use]], weights = x$posterior[use] / sum(x$posterior[use]))
}

# Mixtures over models ----------------------------------------------------------------------------

#' How many of `n` draws are from each model, by systematic resampling, and their order
#' @noRd
shared_out <- function(models, n, words) {
  restore <- own_generator(words, keep = FALSE)
  on.exit(restore())
  list(counts = tabulate(resample(models$weights, n), length(models$weights)),
       order = sample.int(n))
}

#' Draws from the posterior predictive distribution, of each model as its probability says
#' @noRd
mixed_draws <- function(models, newdata, n, words) {
  share <- shared_out(models, n, words)
  use <- which(share$counts > 0)
  each <- lapply(use, function(k)
    predict(models$fits[[k]], newdata, "draws", draws = share$counts[k],
            seed = method_seed(words, k + 1)))
  first <- each[[1]]
  alike <- vapply(each, function(one) identical(dim(one)[-1], dim(first)[-1]) &&
                    identical(attr(one, "levels"), attr(first, "levels")) &&
                    identical(dimnames(one)[-1], dimnames(first)[-1]), NA)
  if (!all(alike))
    fail("`type` must be one that means the same in all models: their classes or columns differ.")
  all <- do.call(rbind, lapply(each, function(one) matrix(one, dim(one)[1])))
  structure(all[share$order, , drop = FALSE], dim = c(n, dim(first)[-1]),
            dimnames = if (length(dim(first)) > 2) dimnames(first), levels = attr(first, "levels"))
}

# Limits of each column of draws, the same quantiles as in predictive_interval().
row_limits <- function(draws, level) {
  counts <- all(draws == round(draws))
  t(apply(draws, 2, stats::quantile, interval_ends(level), names = FALSE,
          type = if (counts) 1 else 7))
}

#' Limits of the mean of each response given model and parameters
#' @noRd
mixed_limits <- function(models, newdata, level) {
  each <- lapply(models$fits, function(fit) {
    fit <- with_draws(prepared(fit))
    encoded <- encode_new(fit$model, fit$design, newdata, response = FALSE)
    list(means = mean_draws(fit, by_observation(encoded)), weights = exp(fit$log_weights))
  })
  weights <- unlist(Map(function(one, p) p * one$weights, each, models$weights))
  weighted_limits(do.call(cbind, lapply(each, `[[`, "means")), weights, level)
}

#' @rdname simulate.evidence
#' @export
simulate.model_comparison <- function(object, nsim = 1, seed = NULL, newdata = NULL, ...) {
  check_no_dots(...)
  nsim <- check_count(nsim, "nsim", max = 1e6)
  if (is.null(seed)) seed <- floor(stats::runif(1) * 2^31)
  words <- seed_words(seed)
  models <- averaged_models(object)
  envir <- parent.frame()
  share <- shared_out(models, nsim, words)
  drawn <- lapply(which(share$counts > 0), function(k)
    as.list(simulate_fit(models$fits[[k]], share$counts[k], seed_words(method_seed(words, k + 1)),
                         newdata, envir)))
  as_simulated(unlist(drawn, recursive = FALSE)[share$order], seed)
}

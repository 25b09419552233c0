# Comparison of several fits: Bayes factors, model probabilities, averaged predictions.

#' Compare models by their evidence
#'
#' Ranks fits of several models to the same data by their evidence, with Bayes factors against the
#' best, posterior model probabilities, and the probability that the ranking is right given the
#' standard errors.
#'
#' @param ... Fits from [evidence()], a list of them, or a comparison or race, whose fits are then
#'   compared with another `prior` or `reference`. A fit without a name gets that of its
#'   variable in the call; in a list, its formula, or what else differs between the models.
#' @param prior Prior weights of the models, in the order of the fits or with their names; `NULL`,
#'   the default, for equal weights. They need not sum to one.
#' @param reference Name or number of the fit over which the Bayes factors are given; `NULL`, the
#'   default, for the best one.
#' @param same_rows `TRUE` if you know that all fits are to the same observations, and the
#'   comparison is refused because the data have different forms, as those that a file has rounded
#'   (`write.csv()` keeps 15 digits). The check is then left out:
#'   Bayes factors of different observations have no meaning, and nothing would say so. Fits of
#'   different numbers of observations are refused all the same.
#' @param x,object A comparison.
#' @param newdata,type,interval,draws,seed As for [predict.evidence()]; `newdata` must be given, and
#'   types are those that can be averaged, not `"link"`.
#' @param n Largest number of models to print, the first rows, or to plot, the best ones.
#'
#' @details
#' The column `against` has the terms of Kass and Raftery for the evidence *against* a model, by the
#' Bayes factor of the best model over it: not worth more than a mention (up to 3.2), substantial
#' (up to 10), strong (up to 100), decisive. With a `reference` it is the evidence against a model
#' in favour of the reference, or `in favour:` of the model.
#'
#' Fits that failed their own checks, and all fits by [harmonic_mean()], are marked and excluded
#' from the probabilities. A fit without a standard error is included, but its error does not enter
#' the probability of the ranking.
#'
#' Fits must be to the same observations. Regressions of one response on different covariates are
#' comparable. Their rows may be in different orders, provided that each response has its own
#' covariates. If two regressions have no covariate in common, or more than 20,000 rows, their rows
#' must be in the same order. A [custom_model()] must have a column of its data, such as the
#' response, in common with the other model. If its data have several columns, it is not checked
#' that its likelihood is a density of the same response, and a sentence under the table says so.
#'
#' `predict()` averages the predictions of the models by their posterior probabilities. Draws, and
#' those of `simulate()`, are from each model as often as its probability says, and intervals are
#' those of this mixture.
#'
#' The column `posterior` has the probabilities of the models. The sentence under the table answers
#' another question: whether Monte Carlo error, given by the standard errors, could change the
#' ranking. Fits with warnings are marked, because their error may be larger than the standard
#' error, and so are fits whose prior contradicts the data.
#'
#' `plot()` and `autoplot()` show the model probabilities and the log evidences with two standard
#' errors. If the fits have seen the same rows in the same order, as fits of sources do, the result
#' also knows how the evidence went, and is of class `"evidence_race"`: see [race].
#'
#' @return A data frame of class `"model_comparison"`, the best model first: `model`,
#'   `log_evidence`, `se`, `log_bf` (log Bayes factor of the model over the best one, at most 0, or
#'   over the `reference`), `posterior`, `against` (the terms above), `reliable` (whether the fit
#'   passed its own checks), and `doubt`: `"failed"`, `"warns"`, `"prior conflict"` or `""`.
#'   Attributes: `"fits"`, `"prior"`, and `"certainty"`, the probabilities that the first model is
#'   the `best` and that the whole `order` is right.
#'
#' @references
#' Kass, R. E. and Raftery, A. E. (1995). Bayes factors. *Journal of the American Statistical
#' Association* 90, 773-795. \doi{10.1080/01621459.1995.10476572}
#'
#' @examples
#' line <- evidence(linear_regression(dist ~ speed, sigma = 15, prior_sd = 20), cars, seed = 1)
#' flat <- evidence(linear_regression(dist ~ 1, sigma = 15, prior_sd = 20), cars, seed = 2)
#' both <- compare_models(line, flat)
#' both
#' plot(both)
#' predict(both, data.frame(speed = c(5, 25)))
#'
#' @concept model selection
#' @concept model comparison
#' @concept posterior model probability
#' @concept Bayes factor
#' @seealso [bayes_factor()], [crosscheck()]; [logevidence_names] for
#'   `evidence_compare_models()`, the same function
#' @export
compare_models <- function(..., prior = NULL, reference = NULL, same_rows = FALSE) {
  fits <- list(...)
  calls <- match.call(expand.dots = FALSE)$...
  if (length(fits) == 1 && inherits(fits[[1]], "model_comparison")) fits <- fits_of_table(fits[[1]])
  if (length(fits) == 1 && is.list(fits[[1]]) && !inherits(fits[[1]], "evidence")) fits <- fits[[1]]
  if (length(fits) != length(calls) || is.null(calls)) calls <- vector("list", length(fits))
  theirs <- if (length(fits)) masked_function("parameters", "compare_models", fits[[1]])
  if (!is.null(theirs))
    return(do.call(theirs, stats::setNames(fits, argument_names(calls, names(fits)))))
  if (length(fits) < 2) fail("`...` must hold at least two fits, not ", length(fits), ".")
  given <- argument_names(calls, names(fits))
  for (i in seq_along(fits)) check_parts(check_is_fit(fits[[i]], given[i]))
  names <- fit_names(fits, calls, names(fits))
  if (anyDuplicated(names))
    fail("`...` must hold fits of distinct names, not `", names[duplicated(names)][1], "` twice.")
  same_rows <- check_flag(same_rows, "same_rows")
  check_same_data(fits, names, same_rows)
  if (!any(vapply(fits, passed_checks, NA)))
    fail("None of the fits passed its own checks: there is nothing to compare. Their warnings ",
         "say what to do.")
  as_race(new_comparison(fits, names, prior_weights(prior, names), reference, same_rows), fits,
          names)
}

#' @rdname compare_models
#' @usage NULL
#' @export
evidence_compare_models <- compare_models

#' The fits of the models in the table of a comparison or a race
#' @noRd
fits_of_table <- function(x) {
  require_comparison(x, "compare_models")
  attr(x, "fits")[x$model]
}

new_comparison <- function(fits, names, prior, reference = NULL, same_rows = FALSE) {
  table <- comparison_table(fits, names, prior)
  reference <- reference_model(reference, table)
  table <- with_bayes_factors(table, reference)
  sorted <- order(!table$reliable, -table$log_evidence)
  table <- table[sorted, COMPARISON]
  rownames(table) <- NULL
  structure(table, class = c("model_comparison", "data.frame"),
            fits = stats::setNames(fits, names)[sorted], prior = prior[sorted],
            certainty = certainty(table), n = most_known(fits), reference = reference,
            same_rows = same_rows)
}

comparison_table <- function(fits, names, prior) {
  table <- data.frame(model = names, log_evidence = vapply(fits, logml, 0),
                      se = vapply(fits, `[[`, 0, "se"),
                      reliable = vapply(fits, passed_checks, NA), row.names = NULL)
  table$posterior <- if (any(table$reliable))
    posterior_weights(table$log_evidence, prior, table$reliable) else NA_real_
  table$doubt <- vapply(fits, doubt_about, "")
  table
}

#' The name of the model against which Bayes factors are given; NULL for the best
#' @noRd
reference_model <- function(reference, table) {
  if (is.null(reference)) return(NULL)
  at <- if (is.character(reference)) match(reference, table$model)
  else if (is_one_number(reference)) match(reference, seq_len(nrow(table)))
  if (length(at) != 1 || is.na(at))
    refuse(reference, "reference", paste0("the name (", show_names(table$model),
                                          ") or number of one of the fits"))
  if (!table$reliable[at])
    fail("`reference` must be a fit that passed its own checks, not `", table$model[at], "`.")
  table$model[at]
}

with_bayes_factors <- function(table, reference) {
  zero <- if (is.null(reference)) max(table$log_evidence[table$reliable], -Inf)
  else table$log_evidence[match(reference, table$model)]
  log_bf <- ifelse(table$reliable, table$log_evidence - zero, NA)
  table$log_bf <- log_bf
  table$against <- ifelse(!table$reliable, "failed its checks",
                          paste0(ifelse(log_bf %in% 0 | log_bf < 0, "", "in favour: "),
                                 strength(abs(log_bf))))
  table
}

prior_weights <- function(prior, names) {
  if (is.null(prior)) return(rep(1 / length(names), length(names)))
  if (!is_plain_numeric(prior) || length(prior) != length(names))
    refuse(prior, "prior", paste0("a weight for each of the ", length(names), " fits"))
  if (anyNA(prior) || any(prior < 0) || !is.finite(sum(prior)) || sum(prior) == 0)
    fail("`prior` must hold weights of at least 0 that are not all 0.")
  if (!is.null(names(prior))) {
    if (!setequal(names(prior), names))
      fail("`prior` must be named by the fits (", show_names(names), "), or not at all.")
    prior <- prior[names]
  }
  unname(prior / sum(prior))
}

posterior_weights <- function(log_evidence, prior, use) {
  posterior <- rep(NA_real_, length(prior))
  log_weight <- log_evidence[use] + log(prior[use])
  if (all(log_weight == -Inf))
    fail("`prior` must give a positive weight to a fit that passed its checks.")
  posterior[use] <- exp(normalise(log_weight))
  posterior
}

#' Kass and Raftery's terms for a log Bayes factor of at least 0
#' @noRd
strength <- function(log_bf) {
  ifelse(log_bf == 0, "-", STRENGTHS[findInterval(log_bf, c(0, log(LADDER)))])
}

#' Probability that the first model is the best, and that the whole order is right, with independent
#' normal errors
#'
#' From random draws that do not use R's generator and are the same every time.
#' @noRd
certainty <- function(table, draws = 20000) {
  # fewer draws for many models: two million numbers are enough
  draws <- max(1000, min(draws, round(2e6 / nrow(table))))
  use <- table$reliable
  estimate <- table$log_evidence[use]
  se <- ifelse(is.finite(table$se[use]), table$se[use], 0)
  k <- length(estimate)
  if (k < 2 || all(se == 0)) return(c(best = 1, order = 1))
  noise <- stats::qnorm(vapply(seq_len(k),
                               function(i) .Call(ffi_uniforms, c(0, 1), 0, as.double(i),
                                                 as.double(draws), TRUE),
                               numeric(draws)))
  values <- rep(estimate, each = draws) + noise * rep(se, each = draws)
  best <- rowSums(values[, 1] >= values) == k
  order <- rowSums(values[, -k, drop = FALSE] >= values[, -1, drop = FALSE]) == k - 1
  c(best = mean(best), order = mean(order))
}

COMPARISON <- c("model", "log_evidence", "se", "log_bf", "posterior", "against", "reliable",
                "doubt")

#' Is this still a comparison, with all its columns?
#'
#' Fits that passed their checks have an estimate and a probability.
#' @noRd
is_comparison <- function(x) {
  is_number <- function(x) is_plain_numeric(x) || is.logical(x) && all(is.na(x))
  known <- function(rows) !anyNA(.subset2(x, "log_evidence")[rows]) &&
    are_probabilities(.subset2(x, "posterior")[rows])
  has_columns(x, list(model = is_full_text, log_evidence = is_number, se = is_number,
                      log_bf = is_number, posterior = is_number, against = is_full_text,
                      reliable = is_yes_or_no, doubt = is_full_text)) &&
    known(.subset2(x, "reliable"))
}

are_probabilities <- function(x) !anyNA(x) && all(x >= 0 & x <= 1)

require_comparison <- function(x, verb) {
  if (!is_comparison(x) || nrow(x) == 0)
    fail(verb, "() needs a comparison with all its columns and at least one model.")
}

# Subsets of a comparison keep the fits.
KEPT <- c("fits", "prior", "n", "reference", "same_rows", "race")

#' @export
`[.model_comparison` <- function(x, ...) {
  part <- NextMethod()
  if (is.data.frame(part))
    attributes(part)[KEPT] <- attributes(x)[KEPT]
  part
}

#' @rdname compare_models
#' @export
print.model_comparison <- function(x, n = 10, ...) {
  if (!is_comparison(x) || nrow(x) == 0) return(print.data.frame(x, ...))
  n <- check_count(n, "n", 1, 1e9)
  if (anyDuplicated(x$model) || sum(x$posterior, na.rm = TRUE) > 1 + 1e-6) {
    cat_wrapped(paste("Rows of several comparisons, each with probabilities of its own. For one",
                      "comparison of all fits call compare_models()."))
    return(invisible(print.data.frame(x, ...)))
  }
  cat("Comparison of ", count_of(nrow(x), "model"), if (is_part(x)) paste0(
    " (of ", count(length(attr(x, "fits"))), ")"), on_rows(x), "\n\n", sep = "")
  all_rows <- x[order(!x$reliable, -x$log_evidence), ]
  # in the order of the user, who may have sorted them by another column
  rows <- utils::head(x, n)
  marks <- c(failed = "", warns = "has warnings", `prior conflict` = "prior conflict")[rows$doubt]
  marks[is.na(marks)] <- ""
  shown <- cbind(
    format(c("", rows$model)),
    format(c("log evidence", align_estimates(rows$log_evidence, rows$se)), justify = "right"),
    format(c("log BF", ifelse(is.na(rows$log_bf), "", format_number_each(rows$log_bf, 2))),
           justify = "right"),
    format(c("posterior", ifelse(is.na(rows$posterior), "", show_probability(rows$posterior))),
           justify = "right"),
    if (any(nzchar(marks))) format(c("against", rows$against)) else c("against", rows$against),
    if (any(nzchar(marks))) c("", marks),
    added_columns(rows)
  )
  cat(paste0(sub(" +$", "", apply(shown, 1, paste, collapse = "  ")), "\n"), sep = "")
  hidden <- nrow(x) - nrow(rows)
  if (hidden > 0)
    cat("... and ", count(hidden), " more: print(x, n = ", big(nrow(x)), ")\n", sep = "")
  cat("\n")
  if (!is.null(attr(x, "reference")))
    cat_wrapped(paste0("Bayes factors are those of each model over ", attr(x, "reference"), "."))
  if (isTRUE(attr(x, "same_rows")))
    cat_wrapped("That all fits are to the same observations was said by `same_rows`.")
  if (is_part(x))
    cat_wrapped(paste0("Probabilities and Bayes factors are those among all ",
                       count(length(attr(x, "fits"))), " models", if (is.null(attr(x, "reference")))
                         sprintf(", of which %s is the best", best_of_all(x)), "."))
  for (sentence in comparison_sentences(all_rows)) cat_wrapped(sentence)
  for (sentence in unchecked_in(x)) cat_wrapped(sentence)
  invisible(x)
}

on_rows <- function(x) {
  if (all(vapply(attr(x, "fits"), has_no_data, NA))) return("")
  paste0(if (is.na(attr(x, "n"))) ", " else " on ", row_words(attr(x, "n"), "observation"))
}

# Columns that the user has added, as text under their names; NULL if there are none.
added_columns <- function(rows) {
  added <- setdiff(names(rows), c(COMPARISON, "components"))
  if (!length(added)) return(NULL)
  do.call(cbind, lapply(added, function(name) {
    column <- unclass(rows)[[name]]
    side <- if (is.numeric(column)) "right" else "left"
    text <- if (is.atomic(column) && is.null(dim(column))) format(column) else
      rep(show_value(column), nrow(rows))
    format(c(name, text), justify = side)
  }))
}

# Were some of the models left out of the table?
is_part <- function(x) nrow(x) < length(attr(x, "fits"))

best_of_all <- function(x) {
  fits <- Filter(passed_checks, attr(x, "fits"))
  names(fits)[which.max(vapply(fits, logml, 0))]
}

#' The comparison of the models that are left in the table, with probabilities that sum to one
#' @noRd
among_themselves <- function(x) {
  if (!is_part(x) || !any(x$reliable)) return(x)
  at <- match(x$model, names(attr(x, "fits")))
  prior <- attr(x, "prior")[at]
  left <- new_comparison(unname(attr(x, "fits")[at]), x$model, prior / sum(prior),
                         if (isTRUE(attr(x, "reference") %in% x$model)) attr(x, "reference"),
                         attr(x, "same_rows"))
  attr(left, "race") <- attr(x, "race")
  class(left) <- class(x)
  left
}

unchecked_in <- function(x) {
  fits <- attr(x, "fits")
  fits <- fits[intersect(x$model, names(fits))]
  c(unchecked_response(fits, names(fits)), bic_among(fits, names(fits)))
}

# bic() does not use the prior of the model, so a comparison of it with other methods has a note.
bic_among <- function(fits, names) {
  bic <- vapply(fits, function(fit) has_trait(fit$method, "no prior"), NA)
  if (!any(bic) || all(bic)) return(NULL)
  paste0(show_models(names[bic]), if (sum(bic) == 1) " is" else " are",
         " by bic(), which does not use the prior of the model: Bayes factors over the other fits ",
         "also compare the priors. Compare fits that are all by bic(), or none.")
}

#' Sentences under the table; all rows, best first
#' @noRd
comparison_sentences <- function(x) {
  several <- sum(x$reliable) > 1
  unsure <- x$model[x$reliable & is.na(x$se)]
  c(
    if (several) ranking_sentence(certainty(x), sum(x$reliable)),
    if (several) priors_sentence(attr(x, "fits")[x$model[x$reliable]], x$model[x$reliable][1]),
    if (several && length(unsure))
      paste0(show_models(unsure), has_or_have(unsure),
             " no standard error, which is taken as 0 here."),
    sentences_of_doubt(x$model, ifelse(x$reliable, x$doubt, "failed"))
  )
}

has_or_have <- function(names) if (length(names) == 1) " has" else " have"

#' Sentences about fits that failed or have warnings
#'
#' @param doubt Of each, from doubt_about().
#' @noRd
sentences_of_doubt <- function(names, doubt) {
  warns <- names[doubt == "warns"]
  against <- names[doubt == "prior conflict"]
  left_out <- names[doubt == "failed"]
  c(
    if (length(warns))
      paste0(show_models(warns), has_or_have(warns),
             " warnings: the log evidence may be off by more than its standard error, and so may ",
             "the probabilities. See `fit$warnings`."),
    if (length(against))
      paste0("The prior of ", show_models(against),
             " contradicts the data, so its Bayes factors mostly judge the prior. See ",
             "`fit$warnings`."),
    if (length(left_out))
      paste0("Left out of the probabilities: ", show_models(left_out), ", which failed ",
             if (length(left_out) == 1) "its own checks. Its" else "their own checks. Their",
             " warnings say why.")
  )
}

# Monte Carlo error of the ranking, which is not the probability of a model.
ranking_sentence <- function(certain, models) {
  sure <- certain >= 0.9995
  if (all(sure)) return("Monte Carlo error is too small to change this ranking.")
  order <- if (models > 2 && !sure[["order"]])
    paste0("; probability ", show_probability(certain[["order"]]),
           " that the whole order is right")
  if (sure[["best"]])
    return(paste0("Monte Carlo error is too small to change which model is first", order, "."))
  paste0("Given the Monte Carlo errors of the estimates, the model that is first has the highest ",
         "evidence with probability ", show_probability(certain[["best"]]), order, ".")
}

# Pictures ----------------------------------------------------------------------------------------

#' @rdname compare_models
#' @export
plot.model_comparison <- function(x, n = 10, ...) {
  check_no_dots(...)
  figure <- comparison_figure(x, n)
  at <- rev(seq_len(nrow(figure)))
  frame <- function(xlim, xlab, main, note, names) {
    graphics::plot.default(NA, NA, xlim = xlim, ylim = c(0.5, nrow(figure) + 0.5), axes = FALSE,
                           xlab = xlab, ylab = "")
    graphics::title(main = main, adj = 0, line = 1.55, font.main = 2, cex.main = 1.05)
    room <- graphics::par("pin")[1] / max(graphics::strwidth(note, "inches"), 1e-9)
    graphics::mtext(note, side = 3, line = 0.35, adj = 0, cex = graphics::par("cex") *
                      min(0.8, room), col = "grey35")
    ticks <- graphics::axTicks(1)
    graphics::abline(v = ticks, col = FAINT, lwd = 0.8)
    graphics::axis(1, ticks, axis_labels(ticks), lwd = 0, lwd.ticks = 0.8, col.ticks = "grey50")
    graphics::axis(2, at, names, lwd = 0)
  }
  draw_panels(function(panel) {
    # names take at most a third of the width, and the two panels the same parts of the rest
    width <- graphics::par("fin")[1] / graphics::par("mai")[1]
    names <- shorten_apart(figure$model, max(8, floor((width / 3 - 1) / 0.55)))
    left <- 1 + 0.55 * max(nchar(names))
    middle <- (1 + left / width) / 2
    panel(c(0, middle, 0, 1), c(3.6, left, 3, 1))
    frame(c(0, 1), "Posterior probability", "Model probabilities", "", names)
    graphics::segments(0, at, figure$probability, at, col = BLUE, lwd = 15, lend = "butt")
    # numbers are left out where those of neighbours would overlap
    if (graphics::strheight("0", cex = 0.8) < 0.9)
      graphics::text(figure$probability, at, figure$label, cex = 0.8,
                     pos = ifelse(figure$probability > 0.7, 2, 4),
                     col = ifelse(figure$probability > 0.7, "white", "grey20"))
    panel(c(middle, 1, 0, 1), c(3.6, 1, 3, 1))
    frame(figure_range(figure), "Log evidence", "Log evidence",
          "bars: 2 standard errors; hollow: warnings or failed", FALSE)
    graphics::segments(figure$lower, at, figure$upper, at, col = BLUE, lwd = 2.5)
    graphics::points(figure$log_evidence, at, pch = ifelse(figure$sound, 16, 1), col = ORANGE,
                     cex = 1.2)
  }, 1, 2)
  invisible(x)
}

#' The numbers of a plot, of the best models
#' @noRd
comparison_figure <- function(x, n) {
  n <- check_count(n, "n", 1, 1e3)
  if (!is_comparison(x)) fail("`x` must be a comparison with all its columns.")
  figure <- utils::head(as.data.frame(unclass(x))[order(!x$reliable, -x$log_evidence), ], n)
  figure <- figure[is.finite(figure$log_evidence), ]
  if (nrow(figure) == 0)
    fail("`x` must have a model with a finite log evidence, or there is nothing to plot.")
  se <- ifelse(is.finite(figure$se), figure$se, 0)
  data.frame(model = figure$model, log_evidence = figure$log_evidence,
             lower = figure$log_evidence - 2 * se,
             upper = figure$log_evidence + 2 * se,
             probability = ifelse(is.na(figure$posterior), 0, figure$posterior),
             label = ifelse(is.na(figure$posterior), "left out",
                            show_probability(figure$posterior)),
             sound = !figure$doubt %in% c("failed", "warns"))
}

#' @rdname compare_models
#' @exportS3Method ggplot2::autoplot
autoplot.model_comparison <- function(object, n = 10, ...) {
  check_no_dots(...)
  figure <- comparison_figure(object, n)
  names <- shorten_apart(figure$model, 30)
  figure$model <- factor(names, rev(names))
  panels <- c("Posterior probability", "Log evidence")
  both <- rbind(
    data.frame(figure[c("model", "sound")], panel = panels[1], value = figure$probability, from = 0,
               to = figure$probability),
    data.frame(figure[c("model", "sound")], panel = panels[2], value = figure$log_evidence,
               from = figure$lower, to = figure$upper)
  )
  both$panel <- factor(both$panel, panels)
  ggplot2::ggplot(both, ggplot2::aes(x = .data$value, y = .data$model)) +
    ggplot2::geom_linerange(ggplot2::aes(xmin = .data$from, xmax = .data$to), colour = BLUE,
                            linewidth = 1) +
    ggplot2::geom_point(ggplot2::aes(shape = .data$sound), colour = ORANGE, size = 2.5) +
    ggplot2::scale_shape_manual(values = c(`TRUE` = 16, `FALSE` = 1), guide = "none") +
    ggplot2::facet_wrap("panel", scales = "free_x") +
    ggplot2::labs(title = "Comparison of models",
                  subtitle = "bars: 2 standard errors; hollow: warnings or failed", x = NULL,
                  y = NULL) +
    ggplot2::theme_minimal() +
    ggplot2::theme(panel.spacing.x = ggplot2::unit(2, "lines"),
                   plot.subtitle = ggplot2::element_text(size = ggplot2::rel(0.8)))
}

# Two models: bayes_factor(), post_prob() and others, generics of bridgesampling too ---------------

#' Bayes factors, model probabilities and error measures
#'
#' The functions of package \pkg{bridgesampling}, for fits of this package, for objects of that
#' package, and for both in one call.
#'
#' @param x1,x2 Fits from [evidence()], objects of \pkg{bridgesampling}, or log marginal
#'   likelihoods.
#' @param log Whether to return the logarithm of the Bayes factor.
#' @param x The first fit, or the only one; for `post_prob()` also a comparison or race, and for
#'   `plot()` a Bayes factor.
#' @param ... More fits for `post_prob()`; otherwise unused.
#' @param prior_prob Prior weights of the models; equal by default.
#' @param model_names Names of the models, by default the expressions in the call.
#' @param fit A fit from [evidence()].
#'
#' @details
#' The functions of the same names in \pkg{bridgesampling} accept a fit of this package as their
#' first argument. Further arguments must be objects of that package: `as_bridge(fit)`.
#'
#' @return `bayes_factor()` returns a list of class `"evidence_bayes_factor"`: `bf`, `log`, `log_bf`
#' and its standard error `se`. `post_prob()` returns named probabilities. A fit that failed its own
#' checks is not used, as in [compare_models()]: its Bayes factors and its probability are `NA`,
#' with a warning. `error_measures()` returns the list that \pkg{bridgesampling} has: the relative
#' mean squared error `re2` of the evidence, its root `cv`, and that in percent. `as_bridge()`
#' returns an object of class `"bridge"`, with the error measures of the fit; `print()` and
#' `summary()` name its method.
#'
#' @examples
#' line <- evidence(linear_regression(dist ~ speed, sigma = 15, prior_sd = 20), cars, seed = 1)
#' flat <- evidence(linear_regression(dist ~ 1, sigma = 15, prior_sd = 20), cars, seed = 2)
#' bayes_factor(line, flat)
#' post_prob(line, flat)
#' error_measures(line)
#'
#' @seealso [compare_models()]
#' @export
bayes_factor <- function(x1, x2, log = FALSE, ...) UseMethod("bayes_factor")

#' @export
bayes_factor.default <- function(x1, x2, log = FALSE, ...) {
  theirs <- comparison_of_others("bayes_factor", x1)
  if (!is.null(theirs)) return(theirs(x1, x2, log = log, ...))
  check_no_dots(...)
  call <- match.call()
  compare_two(x1, x2, log, c(argument_name(call$x1, "model 1"), argument_name(call$x2, "model 2")))
}

#' @rawNamespace S3method(bayes_factor, evidence)
#' @rawNamespace S3method(bridgesampling::bayes_factor, evidence)
#' @rawNamespace S3method(bridgesampling::bf, evidence)
bayes_factor.evidence <- bayes_factor.default
bf.evidence <- bayes_factor.default

# Fits of brms have methods for the generics of bridgesampling; those of bridges are not needed.
comparison_of_others <- function(name, x) {
  if (!inherits(x, c("evidence", "bridge", "bridge_list"))) their_generic("bridgesampling", name, x)
}

compare_two <- function(x1, x2, log, names) {
  log <- check_flag(log, "log")
  one <- log_evidence_of(x1, "x1")
  two <- log_evidence_of(x2, "x2")
  log_bf <- one[["log_evidence"]] - two[["log_evidence"]]
  structure(list(bf = if (log) log_bf else exp(log_bf), log = log, log_bf = log_bf,
                 se = sqrt(one[["se"]]^2 + two[["se"]]^2)),
            class = "evidence_bayes_factor", model_names = names,
            said = said_of_fits(list(x1, x2), names))
}

#' What is to be said of fits that are compared with one another or with other objects
#'
#' Warns of those that failed their checks, whose log evidence is not used.
#' @noRd
said_of_fits <- function(fits, names) {
  own <- vapply(fits, inherits, NA, "evidence")
  fits <- fits[own]
  names <- names[own]
  if (length(fits) > 1) check_same_data(fits, names)
  doubt <- vapply(fits, doubt_about, "")
  if (any(doubt == "failed"))
    warning(new_warning(sentences_of_doubt(names, ifelse(doubt == "failed", doubt, ""))))
  c(sentences_of_doubt(names, doubt),
    if (length(fits) > 1 && all(doubt != "failed") && !anyDuplicated(names))
      priors_sentence(stats::setNames(fits, names), names[1]),
    if (length(fits) > 1) c(unchecked_response(fits, names), bic_among(fits, names)))
}

#' Log evidence and standard error of a fit, a bridge object or a number; NA of a fit that failed
#' its checks
#' @noRd
log_evidence_of <- function(x, name) {
  if (inherits(x, "evidence"))
    return(if (passed_checks(x)) c(log_evidence = x$log_evidence, se = x$se)
           else c(log_evidence = NA_real_, se = NA_real_))
  if (inherits(x, "bridge")) return(c(log_evidence = x$logml, se = NA))
  if (inherits(x, "bridge_list")) return(c(log_evidence = stats::median(x$logml), se = NA))
  if (is_one_number(x)) return(c(log_evidence = x, se = NA))
  refuse(x, name, "a fit from `evidence()`, a bridge, or a log marginal likelihood")
}

# Rules of its parts (R/base-check.R).
check_bayes_factor <- function(x) {
  number_or_none <- function(x) length(x) == 1 && (is_plain_numeric(x) || is.logical(x) && is.na(x))
  check_parts_of(x, list(bf = number_or_none, log = function(x) length(x) == 1 && is_yes_or_no(x),
                         log_bf = number_or_none, se = number_or_none),
                 "A Bayes factor", "bayes_factor()", "compute it again.")
}

#' @rdname bayes_factor
#' @export
plot.evidence_bayes_factor <- function(x, ...) {
  check_no_dots(...)
  check_bayes_factor(x)
  if (!is.finite(x$log_bf))
    fail("`x` must be a Bayes factor that is known, or there is nothing to plot.")
  names <- shorten_apart(attr(x, "model_names"), 30)
  se <- if (is.finite(x$se)) x$se else 0
  ends <- x$log_bf + c(-2, 2) * se
  ladder <- c(-log(rev(LADDER)), 0, log(LADDER))
  figure <- list(x = NA, y = NA, type = "n", xlim = range(ends, ladder), ylim = c(0, 1),
                 xlab = "Log Bayes factor", ylab = "",
                 main = paste(names[1], "over", names[2]), axes = FALSE)
  old <- graphics::par(mar = c(3.6, 1.6, 3, 1.6), mgp = c(2.3, 0.6, 0), tcl = -0.3, las = 1)
  on.exit(graphics::par(old))
  draw_frame(figure, paste0(if (se > 0) "bar: 2 standard errors; ",
                            "dotted: Bayes factors of 3.2, 10 and 100"))
  graphics::abline(v = ladder, col = "grey60", lty = c(3, 3, 3, 1, 3, 3, 3))
  at <- graphics::axTicks(1)
  graphics::axis(1, at, axis_labels(at), lwd = 0, lwd.ticks = 0.8, col.ticks = "grey50")
  graphics::segments(ends[1], 0.5, ends[2], 0.5, col = BLUE, lwd = 2.5)
  graphics::points(x$log_bf, 0.5, pch = 16, col = ORANGE, cex = 1.2)
  invisible(x)
}

#' @export
print.evidence_bayes_factor <- function(x, ...) {
  check_bayes_factor(x)
  names <- attr(x, "model_names")
  behind <- x$log_bf < 0
  if (is.na(x$log_bf))
    cat_wrapped(paste0("Bayes factor of ", names[1], " over ", names[2], ": not known"))
  else cat_wrapped(paste0(
    if (x$log) "Log Bayes factor" else "Bayes factor", " of ", names[1], " over ", names[2], ": ",
    if (x$log) align_estimates(x$log_bf, x$se) else format(x$bf, digits = 4),
    if (!x$log) paste0(" (log ", trimws(align_estimates(x$log_bf, x$se)), ")")
  ))
  if (isTRUE(x$log_bf != 0))
    cat_wrapped(paste0("Evidence against ", names[if (behind) 1 else 2], ": ",
                       strength(abs(x$log_bf))))
  for (sentence in attr(x, "said")) cat_wrapped(sentence)
  invisible(x)
}

#' @export
as.data.frame.evidence_bayes_factor <- function(x, row.names = NULL, optional = FALSE, ...) {
  check_no_dots(...)
  check_bayes_factor(x)
  names <- attr(x, "model_names")
  data.frame(model = names[1], over = names[2], log_bf = x$log_bf, se = x$se,
             row.names = row.names)
}

#' @rdname bayes_factor
#' @export
post_prob <- function(x, ..., prior_prob = NULL, model_names = NULL) UseMethod("post_prob")

#' @export
post_prob.default <- function(x, ..., prior_prob = NULL, model_names = NULL) {
  theirs <- comparison_of_others("post_prob", x)
  if (!is.null(theirs))
    return(theirs(x, ..., prior_prob = prior_prob, model_names = model_names))
  fits <- list(x, ...)
  call <- match.call(expand.dots = FALSE)
  if (inherits(x, "model_comparison") && ...length() == 0) {
    fits <- fits_of_table(x)
    if (is.null(model_names)) model_names <- names(fits)
    fits <- unname(fits)
    if (is.null(prior_prob)) prior_prob <- unname(attr(x, "prior"))
  }
  names <- if (is.null(model_names)) argument_names(c(list(call$x), as.list(call$...)), NULL)
  else model_names
  if (length(names) != length(fits))
    fail("`model_names` must have a name for each of the ", length(fits), " models.")
  if (length(fits) < 2)
    fail("`...` must hold more models to compare with.")
  evidences <- vapply(seq_along(fits),
                      function(i) log_evidence_of(fits[[i]], names[i])[["log_evidence"]], 0)
  said_of_fits(fits, names)
  prior <- prior_weights(prior_prob, names)
  # NA of those that failed their checks
  stats::setNames(if (all(is.na(evidences))) evidences
                  else posterior_weights(evidences, prior, !is.na(evidences)), names)
}

#' @rawNamespace S3method(post_prob, evidence)
#' @rawNamespace S3method(bridgesampling::post_prob, evidence)
post_prob.evidence <- post_prob.default

#' @rdname bayes_factor
#' @export
error_measures <- function(x, ...) UseMethod("error_measures")

#' @rawNamespace S3method(error_measures, evidence)
#' @rawNamespace S3method(bridgesampling::error_measures, evidence)
error_measures.evidence <- function(x, ...) {
  re2 <- expm1(x$se^2)
  percentage <- if (is.na(re2)) NA_character_ else paste0(format(100 * sqrt(re2), digits = 3), "%")
  list(re2 = re2, cv = sqrt(re2), percentage = percentage)
}

#' @export
error_measures.default <- function(x, ...) {
  theirs <- their_generic("bridgesampling", "error_measures", x)
  if (is.null(theirs)) refuse(x, "x", "a fit from `evidence()`")
  theirs(x, ...)
}

#' @rdname bayes_factor
#' @export
as_bridge <- function(fit) {
  check_is_fit(fit)
  structure(list(logml = fit$log_evidence, niter = 1L, method = "normal", q11 = NA_real_,
                 q12 = NA_real_, q21 = NA_real_,
                 q22 = NA_real_, measures = error_measures(fit), se = fit$se,
                 made_by = paste0(fit$method$name, "() of logevidence")),
                 class = c("evidence_bridge", "bridge"))
}

# Without this method bridgesampling's own would print "bridge sampling, method normal".
#' @export
print.evidence_bridge <- function(x, ...) {
  cat("Log marginal likelihood: ", align_estimates(x$logml, x$se), ", by ", x$made_by, "\n",
      sep = "")
  invisible(x)
}

#' @export
summary.evidence_bridge <- function(object, ...)
  data.frame(Logml_Estimate = object$logml, Relative_Mean_Squared_Error = object$measures$re2,
             Coefficient_of_Variation = object$measures$cv,
             Percentage_Error = object$measures$percentage, Method = object$made_by)

# bridgesampling would compute these from the densities at its draws
#' @rawNamespace S3method(error_measures, evidence_bridge)
#' @rawNamespace S3method(bridgesampling::error_measures, evidence_bridge)
error_measures.evidence_bridge <- function(x, ...) x$measures

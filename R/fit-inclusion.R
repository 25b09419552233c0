# How probable are the models that have a coefficient: before the data, after them, and the Bayes
# factor between the two.

#' The models of a comparison that passed their checks and have a positive prior probability
#'
#' @return A list: the comparison `x` of these models, their `log_prior`, which sums to one, and
#'   `log_weight`, that plus the log evidence.
#' @noRd
usable_models <- function(x) {
  prior <- attr(x, "prior")[match(x$model, names(attr(x, "fits")))]
  use <- x$reliable & prior > 0
  log_prior <- log(prior[use] / sum(prior[use]))
  list(x = x[use, ], log_prior = log_prior, log_weight = log_prior + x$log_evidence[use])
}

#' Probabilities and Bayes factors of inclusion
#'
#' @param names Of coefficients.
#' @return A data frame with a row for each: `prior_inclusion`, `inclusion`, `log_bf`,
#'   `log_matched_bf`.
#' @noRd
inclusion_table <- function(x, names, verb) {
  use <- usable_models(x)
  fits <- attr(x, "fits")[use$x$model]
  has <- matrix(vapply(fits, function(fit) names %in% colnames(coefficient_draws(fit, verb)),
                       logical(length(names))), length(names))
  pairs <- matched_pairs(fits)
  found <- apply(has, 1, function(with) {
    own <- pairs[with[pairs[, 1]] & !with[pairs[, 2]], , drop = FALSE]
    c(share_of(use$log_prior, with), share_of(use$log_weight, with),
      log_odds_ratio(use, which(with), which(!with)),
      log_odds_ratio(use, unique(own[, 1]), unique(own[, 2])))
  })
  data.frame(prior_inclusion = found[1, ], inclusion = found[2, ], log_bf = found[3, ],
             log_matched_bf = found[4, ], row.names = names)
}

# The probability of some models; exactly 1, without rounding error, for all.
share_of <- function(log_weight, which)
  if (all(which)) 1 else exp(log_sum(log_weight[which]) - log_sum(log_weight))

#' The log Bayes factor of some models together over others
#' @noRd
log_odds_ratio <- function(use, with, without) {
  if (!length(with) || !length(without)) return(NA_real_)
  log_odds <- function(log_weight) log_sum(log_weight[with]) - log_sum(log_weight[without])
  log_odds(use$log_weight) - log_odds(use$log_prior)
}

#' Pairs of models that differ in one term alone, which the first of them has: numbers, in two
#' columns
#' @noRd
matched_pairs <- function(fits) {
  terms <- lapply(fits, term_names)
  rest <- vapply(fits, function(fit) {
    parts <- label_parts(fit)
    paste(c(show_further_formulas(fit$model),
            parts[!names(parts) %in% c("formula", "parameters", "method")]), collapse = "; ")
  }, "")
  # models with the same terms in another order have the same key
  key <- function(names, rest) paste(c(sort(names), rest), collapse = "\r")
  keys <- vapply(seq_along(fits), function(i) key(terms[[i]], rest[i]), "")
  pairs <- lapply(seq_along(fits), function(i) {
    without <- vapply(terms[[i]], function(term) key(setdiff(terms[[i]], term), rest[i]), "")
    partner <- which(keys %in% without)
    cbind(rep(i, length(partner)), partner)
  })
  do.call(rbind, unname(pairs))
}

# The terms of a formula, and its intercept; those of interactions in one order. Terms of groups
# are terms, too.
term_names <- function(fit) {
  terms <- fit$design$terms
  if (is.null(terms)) return(character())
  labels <- vapply(strsplit(attr(terms, "term.labels"), ":", fixed = TRUE),
                   function(parts) paste(sort(parts), collapse = ":"), "")
  groups <- grep("|", right_hand_terms(fit), fixed = TRUE, value = TRUE)
  c(if (attr(terms, "intercept") == 1) "1", labels, groups)
}

right_hand_terms <- function(fit) {
  formula <- fit$model$formula
  if (is.null(formula) || "." %in% all.vars(formula)) return(character())
  attr(stats::terms(formula), "term.labels")
}

# Coefficients that not all models have, those with the largest Bayes factor first.
open_coefficients <- function(table) {
  own <- table[!is.na(table$log_bf), ]
  own[order(-own$log_bf), ]
}

# Does the Bayes factor from pairs of models that differ in one term differ from that of all models?
differs_if_matched <- function(table)
  !all(is.na(table$log_matched_bf)) && !isTRUE(all.equal(table$log_matched_bf, table$log_bf))

print_inclusion <- function(table) {
  own <- open_coefficients(table)
  if (!nrow(own)) return(invisible())
  matched <- differs_if_matched(own)
  cat_wrapped(c("", paste0(
    "Probability of the models that have a coefficient, before and after the data; log BF: of ",
    "these models over the others", if (matched)
      "; matched: among models that differ in this term alone")))
  factor <- function(log_bf) ifelse(is.na(log_bf), "", format_number_each(log_bf, 2))
  right <- function(name, text) format(c(name, text), justify = "right")
  lines <- cbind(format(c("", rownames(own))),
                 right("prior", show_probability(own$prior_inclusion)),
                 right("posterior", show_probability(own$inclusion)),
                 right("log BF", factor(own$log_bf)),
                 format(c("evidence", strength_of_inclusion(own$log_bf))),
                 if (matched) right("matched", factor(own$log_matched_bf)))
  cat(sub(" +$", "", apply(lines, 1, paste, collapse = "  ")), sep = "\n")
}

strength_of_inclusion <- function(log_bf)
  paste0(ifelse(log_bf < 0, "against: ", "for: "), strength(abs(log_bf)))

#' A sentence about the inclusion of at most so many coefficients; "" if all models have all of them
#' @noRd
inclusion_sentence <- function(table, most) {
  own <- open_coefficients(table)
  if (!nrow(own)) return("")
  matched <- differs_if_matched(own)
  told <- utils::head(own, most)
  factor <- function(log_bf)
    vapply(log_bf, function(b) if (b < 0) paste("1 /", show_factor(-b)) else show_factor(b), "")
  each <- paste0(rownames(told), ": ", show_probability(told$prior_inclusion), " and ",
                 show_probability(told$inclusion), ", Bayes factor ", factor(told$log_bf))
  known <- matched & !is.na(told$log_matched_bf)
  each[known] <- paste0(each[known], ", matched ", factor(told$log_matched_bf[known]))
  paste0("Prior and posterior probability of the models that have a coefficient, and the Bayes ",
         "factor of these models over the others", if (matched)
           " (matched: among models that differ in this term alone)", ". ",
         paste(each, collapse = "; "), if (nrow(own) > most)
           paste0("; and ", count(nrow(own) - most), " more"), ".")
}

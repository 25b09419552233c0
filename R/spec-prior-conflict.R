# Do prior and data contradict each other? Checks for a posterior mean many prior standard
# deviations from the prior mean, and for a column whose location or scale is very improbable under
# the prior. The evidence may be right in this case, but it depends more on the prior than on the
# model. Most often the columns need scaling.

CONFLICT_SDS <- 4             # prior standard deviations
CONFLICT_RUNAWAY <- 1e9       # prior standard deviations that are not believed of a failed run
# of a column's location or scale under its prior, which has heavy tails
CONFLICT_PROBABILITY <- 0.001
# draws from the prior, for models without a closed form of its moments
CONFLICT_DRAWS <- 1000
CONFLICT_ROWS <- 20000        # number of rows for the locations and scales of columns

#' A warning that names what contradicts the prior, with advice, or NULL
#'
#' @param points Posterior draws in unconstrained space, one in each column, with their log weights.
#' @param failed Whether the run has failed, so that the draws may be far from the posterior.
#' @noRd
prior_conflict <- function(model, encoded, points, log_weights, words, failed = FALSE) {
  weights <- exp(log_weights)
  found <- rbind(conflicting_draws(model, encoded, points, weights, words, failed),
                 part_of(model, "far")(model, encoded, points, weights))
  if (is.null(found) || nrow(found) == 0) return(NULL)
  found <- found[order(-found$distance), ]
  found <- found[!duplicated(found$subject), ]
  others <- if (nrow(found) > 1) paste0(" (likewise ", show_names(found$subject[-1], Inf), ")")
  say("prior_conflict", paste0(found$text[1], others), part_of(model, "advice")(model))
}

# Posterior draws --------------------------------------------------------------------

#' Parameters whose posterior mean lies too many prior standard deviations from the prior mean
#' @noRd
conflicting_draws <- function(model, encoded, points, weights, words, failed) {
  prior <- prior_moments(model, encoded, words)
  if (is.null(prior)) return(NULL)
  prior <- unclass(prior)
  posterior <- drop(points %*% weights)[prior$row]
  distance <- abs(posterior - prior$mean) / prior$sd
  outside <- posterior < prior$least | posterior > prior$most
  far <- which(is.finite(distance) & distance > CONFLICT_SDS & outside)
  if (failed) far <- far[distance[far] < CONFLICT_RUNAWAY]
  if (!length(far)) return(NULL)
  text <- prior$text
  own <- is.na(text)
  text[own] <- paste0("the posterior mean of `", prior$subject[own], "`")
  said <- ifelse(is.na(prior$from), text,
                 sprintf("%s lies %s prior standard deviations from %s", text,
                         format_each(signif(distance, 2)), prior$from))
  data.frame(subject = prior$subject[far], distance = distance[far], text = said[far])
}

#' Means and standard deviations of the prior, of parameters in unconstrained space
#'
#' @return A data frame: `row` (of the points), `mean`, `sd`, `least` and `most` (the range of draws
#' from the prior, if it has no closed form), `subject` (column or coefficient), `text` (NA: the
#' posterior mean of the subject) and `from` (NA: `text` says it all), pieces of a text; or NULL.
#' @noRd
prior_moments <- function(model, encoded, words) {
  found <- part_of(model, "prior_moments")(model, encoded, words)
  if (is.null(found) || is.data.frame(found)) found else do.call(moments_table, found)
}

moments_table <- function(row, mean, sd, subject,
                          text = NA_character_,
                          from = "its prior mean", least = Inf, most = -Inf) {
  plain_frame(list(row = row, mean = mean, sd = sd, subject = subject, text = text, from = from,
                   least = least, most = most), length(row))
}

prior_moments_linear <- function(model, encoded, words) {
  args <- encoded$args
  list(row = seq_along(encoded$theta_names), mean = args$prior_mean, sd = args$prior_sd,
       subject = encoded$theta_names)
}

# Standardised means are standard normal, variances inverse gamma; their logarithms have these
# moments.
prior_moments_mixture <- function(model, encoded, words) {
  columns <- rep(encoded$design$columns, model$components)
  place <- length(columns)
  rate <- rep(rep_len(encoded$args$rate, length(encoded$design$columns)), model$components)
  # values between these are no contradiction, because a log variance has a long right tail
  log_variance <- function(side) {
    log(rate) -
      log(stats::qgamma(abs(side) * CONFLICT_PROBABILITY, model$shape, lower.tail = side < 0))
  }
  rbind(
    moments_table(model$components - 1 + seq_len(place), 0, 1, columns,
                  paste0("a component mean of column `", columns, "`"), "`location`"),
    moments_table(model$components - 1 + place + seq_len(place),
                  log(rate) - digamma(model$shape),
                  sqrt(trigamma(model$shape)), columns,
                  paste0("a component's log variance in column `", columns, "`"),
                  least = log_variance(0.5), most = log_variance(-0.5))
  )
}

prior_moments_custom <- function(model, encoded, words) {
  restore <- own_generator(words, keep = FALSE)
  on.exit(restore())
  sampled_moments(encoded,
                  function() encoded$args$answer("draw_prior",
                                                 matrix(0, length(model$parameters),
                                                        CONFLICT_DRAWS), 1))
}

prior_moments_compiled <- function(model, encoded, words) {
  sampled_moments(encoded, function() {
    model_caller(model, encoded)("draw_prior",
                                 extra = list(n = CONFLICT_DRAWS, seed = next_seed(words, 3)))
  })
}

# For priors known only by draws. Their tails may be heavy, so values within the range of the draws
# are no contradiction.
sampled_moments <- function(encoded, draw) {
  d <- length(encoded$theta_names)
  if (d > 100) return(NULL)
  draws <- or_null(matrix(draw(), d))
  if (is.null(draws) || !all(is.finite(draws))) return(NULL)
  sd <- apply(draws, 1, stats::sd)
  use <- which(sd > 0)
  if (!length(use)) return(NULL)
  moments_table(use, rowMeans(draws)[use], sd[use], encoded$theta_names[use],
                least = apply(draws, 1, min)[use], most = apply(draws, 1, max)[use])
}

# If the noise is unknown, a fit that the prior of the coefficients rules out may be given up for
# noise, and the posterior of the coefficients then lies close to their prior.
CONFLICT_NOISE <- 1.5 # ratio of the noise to that of the least-squares fit
CONFLICT_NATS <- 10   # and what the rows lose by it

#' Coefficients whose least-squares estimates the prior rules out, where noise takes their place
#' @noRd
far_fit_regression <- function(model, encoded, points, weights) {
  least <- least_squares(encoded$rows, encoded$design)
  if (is.null(least)) return(NULL)
  p <- length(encoded$design$covariates)
  noise <- sqrt(sum(least$residuals^2) / (least$n - least$rank))
  own <- exp(sum(weights * points[p + 1, ]))
  ratio <- own / max(noise, 1e-12 * own)
  if (!isTRUE(ratio > CONFLICT_NOISE && encoded$n * log(ratio) > CONFLICT_NATS)) return(NULL)
  distance <- abs(least$estimate - encoded$args$prior_location[seq_len(p)]) /
    encoded$args$prior_scale[seq_len(p)]
  far <- which(distance > CONFLICT_SDS)
  if (!length(far)) return(NULL)
  data.frame(subject = encoded$design$covariates[far], distance = distance[far],
             text = sprintf(paste("the least-squares estimate of `%s` lies %s prior standard",
                                  "deviations from its prior mean, and the fit has %s times the",
                                  "noise of least squares"), encoded$design$covariates[far],
                            format_each(signif(distance[far], 2)), format(signif(ratio, 2))))
}

# The least-squares fit of some rows for C, or NULL if they are few.
least_squares <- function(rows, design) {
  p <- length(design$covariates)
  n <- min(ncol(rows), CONFLICT_ROWS)
  if (p == 0 || n < 2 * p + 10) return(NULL)
  rows <- rows[, evenly(ncol(rows), n), drop = FALSE]
  y <- rows[nrow(rows), ] - if (design$offset) rows[p + 1, ] else 0
  least <- stats::.lm.fit(t.default(rows[seq_len(p), , drop = FALSE]), y)
  estimate <- rep(NA_real_, p)
  estimate[least$pivot[seq_len(least$rank)]] <- least$coefficients[seq_len(least$rank)]
  c(least[c("residuals", "rank")], list(estimate = estimate, n = n))
}

#' The same where effects of groups take their place
#' @noRd
far_fit_groups <- function(model, encoded, points, weights) {
  if (is.null(encoded$each)) return(NULL)
  rows <- encoded$each[-seq_len(encoded$design$group_rows), , drop = FALSE]
  least <- least_squares(rows, encoded$design)
  if (is.null(least)) return(NULL)
  own <- seq_along(least$estimate)
  scale <- encoded$args$prior_scale[own]
  distance <- abs(least$estimate - encoded$args$prior_location[own]) / scale
  apart <- abs(least$estimate - drop(points[own, , drop = FALSE] %*% weights)) / scale
  far <- which(distance > CONFLICT_SDS & apart > CONFLICT_SDS / 2)
  if (!length(far)) return(NULL)
  data.frame(subject = encoded$design$covariates[far], distance = distance[far],
             text = sprintf(paste("the least-squares estimate of `%s` lies %s prior standard",
                                  "deviations from its prior mean, and effects of groups have",
                                  "taken its place"), encoded$design$covariates[far],
                            format_each(signif(distance[far], 2))))
}

# Columns of the data ----------------------------------------------------------------------------

#' Columns whose location or scale is very improbable under the prior, independent of the fit
#' @param compare `function(model, args, x)`: the prior probability of the columns, a list of
#'   `probability`, `distance` and `text`.
#' @noRd
conflicting_columns <- function(compare) function(model, encoded, points, weights) {
  x <- encoded$rows
  if (ncol(x) > CONFLICT_ROWS) x <- x[, evenly(ncol(x), CONFLICT_ROWS), drop = FALSE]
  check <- compare(model, encoded$args, x)
  far <- which(check$probability < CONFLICT_PROBABILITY)
  if (!length(far)) return(NULL)
  names <- encoded$design$columns[far]
  data.frame(subject = names, distance = check$distance[far],
             text = sprintf(check$text[far], paste0("`", names, "`")))
}

far_mixture <- conflicting_columns(function(...) mixture_location(...))
far_latent <- conflicting_columns(function(...) latent_columns(...))

# A component mean has a t density a priori. At least one component mean is as far from `location`
# as the mean of the column.
mixture_location <- function(model, args, x) {
  scale <- model$mean_scale * sqrt(args$rate / model$shape)
  distance <- abs(rowMeans(x) - args$location) / scale
  list(distance = distance, probability = 2 * stats::pt(-distance, 2 * model$shape),
       text = rep("column %s lies far from `location`", nrow(x)))
}

# Centres, features and factors are around zero. The mean square of a column is compared with its
# mean under the prior: with known variances by the limit CONFLICT_SDS, with unknown ones by the
# tail of the inverse gamma density. The noise variance is a lower limit for the variance of a
# column.
latent_columns <- function(model, args, x) {
  args <- model$args
  square <- rowMeans(x^2)
  wide_text <- "column %s is far from zero or very wide"
  if (args$infer != 0) {
    probability <- stats::pgamma(args$scale / square, args$shape)
    distance <- sqrt(square / args$scale)
    return(list(distance = distance, probability = probability, text = rep(wide_text, nrow(x))))
  }
  parts <- part_of(model, "latent")$spread(args)
  distance <- sqrt(square / (parts * args$prior_sd^2 + args$noise_sd^2))
  n <- ncol(x)
  about_mean <- rowSums((x - rowMeans(x))^2) / args$noise_sd^2
  narrow <- stats::pchisq(about_mean, n - 1)
  wide <- distance > CONFLICT_SDS
  list(distance = ifelse(wide, distance, 1 / distance), probability = ifelse(wide, 0, narrow),
       text = ifelse(wide, wide_text, "column %s varies less than `noise_sd` says"))
}

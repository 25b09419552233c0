# Effects of groups given a fit: later rows, draws of effects, predictions.

# Later data --------------------------------------------------------------------------------------

#' Rows of later data: those of the regression without groups, with the groups and the columns of
#' effects before them
#' @noRd
encode_new_groups <- function(model, design, newdata, response = TRUE, argument = "newdata") {
  newdata <- as_frame(newdata, argument)
  base <- encode_new_regression(model$base, design, newdata, response, argument)
  found <- new_groups(model, design, newdata, argument)
  each <- rbind(known_codes(found, design), t(found$x), base$rows)
  list(rows = each, each = each, n = base$n, offset = NULL)
}

# What identifies later rows: responses, without what belongs to groups.
observed_rows <- function(base, design) {
  last <- nrow(base$rows)
  extra <- if (design$extra) list(base$rows[last - 1, ])
  observed_columns(c(list(base$rows[last, ]), extra))$observed
}

#' The columns of effects of later data, and their groups
#'
#' @return A list: `x`, a matrix; and for each factor `codes`, the level of each row, and `levels`.
#' @noRd
new_groups <- function(model, design, newdata, argument) {
  factors <- factors_of_rows(model, names(design$group_factors), newdata, argument)
  x <- lapply(design$group_effects, function(one) {
    input <- regression_new(one$design, newdata, FALSE, argument)
    check_finite_matrix(input$x, input$argument, one$design$covariates)
    if (is.null(one$only)) input$x else input$x[, one$only, drop = FALSE]
  })
  list(x = do.call(cbind, x), codes = lapply(factors, `[[`, "codes"),
       levels = lapply(factors, `[[`, "levels"))
}

#' The number of each row's level among those of the fit, or further numbers for levels that the fit
#' has not seen
#' @noRd
known_codes <- function(found, design) {
  do.call(rbind, lapply(names(found$codes), function(label) {
    code_among(design$group_factors[[label]]$levels, found$levels[[label]])[found$codes[[label]]]
  }))
}

code_among <- function(known, levels) {
  code <- match(levels, known)
  fresh <- is.na(code)
  code[fresh] <- length(known) + seq_len(sum(fresh))
  code
}

# Draws of effects --------------------------------------------------------------------------------

#' Draws of the effects of all groups, one for each point
#'
#' @param points One in each column.
#' @return For each factor an array of effects x levels x points.
#' @noRd
drawn_effects <- function(fit, points, words) {
  design <- fit$design
  if (is.null(design$units))
    fail("This fit has no rows of its groups, so that their effects are not known: fit with a ",
         "larger `keep`, or predict with `groups = FALSE`.")
  drawn <- .Call(ffi_model, model_type(fit$model), fit$args, design$units, "effects", points,
                 list(seed = words))
  effects_by_factor(design, fit$args, drawn, ncol(points))
}

effects_by_factor <- function(design, args, drawn, points) {
  size <- length(drawn) / points / ncol(design$units)
  drawn <- array(drawn, c(size, ncol(design$units), points))
  q <- effects_of_blocks(design)
  # the first effect of each factor in each unit
  many <- lapply(design$group_factors, function(one) tabulate(one$unit, ncol(design$units)))
  before <- 0
  found <- list()
  for (label in names(design$group_factors)) {
    place <- design$group_factors[[label]]
    first <- (if (length(before) > 1) before[place$unit] else before) +
      (place$position - 1) * q[[label]]
    found[[label]] <- array(0, c(q[[label]], length(place$unit), points))
    for (k in seq_len(q[[label]])) {
      at <- cbind(rep(first + k, points), rep(place$unit, points),
                  rep(seq_len(points), each = length(place$unit)))
      found[[label]][k, , ] <- drawn[at]
    }
    before <- before + many[[label]] * q[[label]]
  }
  found
}

effects_of_blocks <- function(design) {
  label <- vapply(design$group_effects, `[[`, "", "label")
  vapply(stats::setNames(nm = names(design$group_factors)), function(one)
    sum(lengths(lapply(design$group_effects[label == one], `[[`, "names"))), 0L)
}

effect_names <- function(design, label) {
  of <- vapply(design$group_effects, `[[`, "", "label")
  unlist(lapply(design$group_effects[of == label], `[[`, "names"))
}

#' The root of the covariance of the effects of a factor at a point on the user's scale
#' @noRd
effect_root <- function(design, label, user) {
  names <- effect_names(design, label)
  sd <- user[paste0("sd_", label, "_", names)]
  cor <- diag(length(names))
  for (i in seq_along(names)) for (j in seq_len(i - 1)) {
    value <- user[paste0("cor_", label, "_", names[j], "_", names[i])]
    if (!is.na(value)) cor[i, j] <- cor[j, i] <- value
  }
  root <- tryCatch(t(chol(cor)), error = function(e) diag(length(names)))
  sd * root
}

#' What effects add to each linear predictor of rows
#'
#' @param each Rows as encode_new_groups() makes them.
#' @param effects For each factor a matrix of effects x levels. Levels beyond them are drawn from
#'   the distribution of effects at `user` (R's generator), or zero if it is NULL.
#' @return A matrix of rows x predictors.
#' @noRd
effects_on_rows <- function(design, each, effects, user = NULL) {
  factors <- names(design$group_factors)
  part <- vapply(design$group_effects, `[[`, 0, "part")
  label <- vapply(design$group_effects, `[[`, "", "label")
  sizes <- lengths(lapply(design$group_effects, `[[`, "names"))
  found <- matrix(0, ncol(each), max(part) + 1)
  at <- length(factors)
  for (name in factors) {
    codes <- each[match(name, factors), ]
    own <- effects[[name]]
    fresh <- max(codes) - ncol(own)
    if (fresh > 0) {
      q <- nrow(own)
      own <- cbind(own, if (is.null(user)) matrix(0, q, fresh)
                   else effect_root(design, name, user) %*% matrix(stats::rnorm(q * fresh), q))
    }
    k <- 0
    for (b in which(label == name)) {
      for (j in seq_len(sizes[b])) {
        k <- k + 1
        at <- at + 1
        found[, part[b] + 1] <- found[, part[b] + 1] + each[at, ] * own[k, codes]
      }
    }
  }
  found
}

#' Rows of the regression without groups, with effects added to its offsets
#' @noRd
base_rows <- function(design, each, added) {
  rows <- each[-seq_len(design$group_rows), , drop = FALSE]
  p <- length(design$covariates)
  rows[p + 1, ] <- rows[p + 1, ] + added[, 1]
  at <- p + 1
  for (name in names(design$further)) {
    own <- design$further[[name]]
    at <- at + length(own$covariates) + 1
    part <- match(name, design$further_order)
    if (part < ncol(added)) rows[at, ] <- rows[at, ] + added[, part + 1]
  }
  rows
}

# Predictions -------------------------------------------------------------------------------------

# Numbers of all draws of effects, and fewest draws.
EFFECTS_MOST <- 2e7
EFFECTS_DRAWS <- 100

#' A fit with draws of the effects of all groups, `fit$effects`, one for each of its draws, which
#' are fewer if there are very many groups
#'
#' @param least Draws to which those of the fit are repeated, each time with other effects, unless
#'   there are very many groups.
#' @noRd
with_effects <- function(fit, least = 0) {
  numbers <- sum(effects_of_blocks(fit$design) *
                   lengths(lapply(fit$design$group_factors, `[[`, "levels")))
  most <- max(EFFECTS_DRAWS, floor(EFFECTS_MOST / numbers))
  # always the same numbers: predictions have no seed
  words <- seed_words(0)
  if (nrow(fit$draws) > most) {
    restore <- own_generator(words, keep = FALSE)
    use <- resample(exp(fit$log_weights), most)
    restore()
    fit$draws <- fit$draws[use, , drop = FALSE]
    fit$parameters <- fit$parameters[use, , drop = FALSE]
    fit$log_weights <- rep(-log(most), most)
  }
  n <- nrow(fit$draws)
  times <- max(1, floor(min(ceiling(least / n), most / n)))
  points <- unname(fit$parameters)[rep(seq_len(n), times), , drop = FALSE]
  fit$effects <- drawn_effects(fit, t(points), words)
  fit$effect_weights <- rep(exp(fit$log_weights) / times, times)
  fit
}

# What C and the functions of the regression without groups need of a fit at some draws.
base_fit <- function(fit, draws) {
  design <- fit$design
  use <- seq_along(design$base_names)
  list(model = fit$model$base, design = design, args = design$base_args,
       parameters = fit$parameters[draws, use, drop = FALSE],
       log_weights = rep(-log(length(draws)), length(draws)))
}

#' Effects of groups that the fit has not seen, for each factor an array of effects x levels x draws
#'
#' They are from the distribution of effects at each draw, in layers of equal probability, and their
#' mean over the draws is zero: so that of a linear predictor has no Monte Carlo error. A level has
#' the same numbers whatever other levels there are; very many levels share them.
#' @noRd
fresh_effects <- function(fit, each) {
  draws <- nrow(fit$parameters)
  weights <- exp(fit$log_weights)
  factors <- names(fit$effects)
  lapply(stats::setNames(nm = factors), function(name) {
    known <- dim(fit$effects[[name]])
    q <- known[1]
    fresh <- max(each[match(name, factors), ]) - known[2]
    if (fresh <= 0) return(NULL)
    roots <- lapply(seq_len(draws), function(s) effect_root(fit$design, name, fit$draws[s, ]))
    several <- max(1, min(fresh, floor(EFFECTS_MOST / (q * draws))))
    found <- vapply(seq_len(several), function(level) {
      z <- t(vapply(seq_len(q), function(k)
        stats::qnorm((sample.int(draws) - stats::runif(draws)) / draws), numeric(draws)))
      effects <- matrix(vapply(seq_len(draws), function(s) as.vector(roots[[s]] %*% z[, s]),
                               numeric(q)), q)
      effects - drop(effects %*% weights)
    }, matrix(0, q, draws))
    aperm(array(found, c(q, draws, several)), c(1, 3, 2))[, rep_len(seq_len(several), fresh), ,
                                                          drop = FALSE]
  })
}

#' Apply `f(fit without groups, rows)` at each draw; a column of the result for each
#' @noRd
over_effects <- function(fit, each, f) {
  fresh <- with_seed_words(seed_words(0), fresh_effects(fit, each))
  draw <- function(s) {
    at_draw <- function(all) matrix(all[, , s], dim(all)[1])
    effects <- Map(function(own, other) cbind(at_draw(own), if (!is.null(other)) at_draw(other)),
                   fit$effects, fresh)
    added <- effects_on_rows(fit$design, each, effects)
    f(base_fit(fit, s), base_rows(fit$design, each, added))
  }
  vapply(seq_len(nrow(fit$parameters)), draw, numeric(ncol(each)))
}

group_link <- function(fit, rows, offset = NULL) {
  found <- over_effects(fit, rows, function(base, rows) as.vector(regression_link(base, rows)))
  matrix(found, ncol(rows))
}

group_mean <- function(fit, encoded) {
  if (is.null(fit$effects)) fit <- with_effects(fit)
  mean_over_draws(group_mean_draws(fit, encoded), fit$log_weights)
}

group_mean_draws <- function(fit, encoded) {
  found <- over_effects(fit, encoded$rows, function(base, rows)
    regression_mean(base, list(rows = rows)))
  matrix(found, ncol(encoded$rows))
}

#' A fit of the regression without groups, for predictions with effects of zero
#' @noRd
population_fit <- function(fit) {
  base <- base_fit(fit, seq_len(nrow(fit$parameters)))
  base$log_weights <- fit$log_weights
  base$draws <- fit$draws[, seq_along(fit$design$base_names), drop = FALSE]
  base
}

# Responses given a point: effects of groups of the fit given their rows, of others from their
# distribution.
simulate_groups <- function(model, encoded, theta) {
  design <- encoded$design
  fit <- list(model = model, design = design, args = encoded$args)
  each <- if (is.null(encoded$each)) encoded$rows else encoded$each
  words <- c(floor(stats::runif(2) * WORD), 0)[1:2]
  effects <- if (is.null(design$units))
    lapply(effects_of_blocks(design), function(q) matrix(0, q, 0))
  else lapply(drawn_effects(fit, matrix(theta, ncol = 1), words), function(all)
    matrix(all, dim(all)[1]))
  user <- stats::setNames(as.vector(.Call(ffi_model, model_type(model), encoded$args,
                                          matrix(0, 0, 0), "to_user", matrix(theta, ncol = 1),
                                          list())), design$all_names)
  added <- effects_on_rows(design, each, effects, user)
  rows <- base_rows(design, each, added)
  rows[is.na(rows)] <- 1
  base <- list(args = design$base_args, rows = rows)
  point <- theta[seq_along(design$base_names)]
  words <- floor(stats::runif(2) * WORD)
  drawn <- model_caller(model$base, base)("simulate", matrix(point, ncol = 1), list(seed = words))
  each[nrow(each), ] <- drawn[nrow(drawn), ]
  each
}

decode_groups <- function(model, encoded, rows, data)
  decode_regression(model$base, encoded, rows, data)

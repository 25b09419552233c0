# Priors of the standard deviations and correlations of group-level effects.

#' Prior of correlation matrices
#'
#' The distribution of Lewandowski, Kurowicka and Joe for the correlations of group-level effects in
#' [regression()]: its density is proportional to the determinant of the correlation matrix to the
#' power `shape - 1`.
#'
#' @param shape Positive: 1 is uniform over correlation matrices; larger numbers favour small
#'   correlations.
#'
#' @return An object of class `"evidence_lkj"`.
#'
#' @references Lewandowski, D., Kurowicka, D. and Joe, H. (2009). Generating random correlation
#' matrices based on vines and extended onion method. *Journal of Multivariate Analysis* 100,
#' 1989-2001.
#'
#' @examples
#' prior_lkj(2)
#' regression(weight ~ Time + (Time | Chick), group_sd = half_student(3, 20), group_cor = lkj(2))
#'
#' @seealso [regression()], [priors]
#' @aliases lkj
#' @export
prior_lkj <- function(shape = 1)
  structure(list(shape = check_positive(shape, "shape")), class = "evidence_lkj")

is_lkj <- function(x) is_made(x, "evidence_lkj")

#' @export
format.evidence_lkj <- function(x, ...) paste0("lkj(shape = ", format_each(x$shape), ")")

#' @export
print.evidence_lkj <- function(x, ...) {
  cat("Prior: ", format(x), "\n", sep = "")
  invisible(x)
}

group_sd_default <- function() in_units(half_student(3, 2.5))

#' Settings of a model from `group_sd` and `group_cor`
#' @noRd
group_settings <- function(group_sd, group_cor) {
  list(group_sd = if (is.null(group_sd)) list(group_sd_default())
       else check_priors(group_sd, "group_sd", FALSE),
       group_cor = check_group_cor(group_cor))
}

check_group_cor <- function(x) {
  if (is.null(x)) return(list(lkj()))
  one <- function(x, name) if (is_lkj(x)) x else if (is_prior(x) && x$kind %in% REAL_PRIORS) x
  else refuse_made(x, name, paste("`lkj()`, or a prior of a real number for the inverse hyperbolic",
                                  "tangents of partial correlations"), "prior")
  if (is_lkj(x) || is_prior(x)) return(list(one(x, "group_cor")))
  if (!is.list(x) || is.object(x) || !length(x) || !has_names(x))
    return(list(one(x, "group_cor")))
  Map(one, x, paste0("group_cor$", names(x)))
}

#' The prior that `given` has for the first of some names, or one without a name, or NULL
#' @noRd
prior_named <- function(given, names) {
  own <- if (is.null(names(given))) rep("", length(given)) else names(given)
  at <- match(c(names, ""), own)
  at <- at[!is.na(at)]
  if (length(at)) given[[at[1]]]
}

#' Names and priors of the standard deviations and correlations of some terms
#'
#' @param effects For each block of effects a list of `label` (of its groups), `names` and
#'   `correlated`, and `units` of their standard deviations.
#' @return A list: `theta` and `user`, names, and `priors`.
#' @noRd
group_parameters <- function(effects, model) {
  sds <- list()
  cors <- list()
  for (one in effects) {
    user <- paste0("sd_", one$label, "_", one$names)
    sds <- c(sds, Map(function(user, unit) {
      prior <- prior_named(model$group_sd, c(user, sub("^sd_", "", user), one$label))
      if (is.null(prior)) prior <- group_sd_default()
      list(theta = paste0("log(", user, ")"), user = user, prior = with_units(prior, unit))
    }, user, one$units))
    q <- length(one$names)
    if (!one$correlated || q < 2) next
    given <- prior_named(model$group_cor, one$label)
    if (is.null(given)) given <- lkj()
    for (i in 2:q) for (j in seq_len(i - 1)) {
      user <- paste0("cor_", one$label, "_", one$names[j], "_", one$names[i])
      prior <- if (is_lkj(given)) new_prior("correlation", list(shape = given$shape),
                                            shape = given$shape + (q - 1 - j) / 2) else given
      cors <- c(cors, list(list(theta = paste0("z_", user), user = user, prior = prior)))
    }
  }
  all <- c(sds, cors)
  check_group_names(model, effects, vapply(sds, `[[`, "", "user"))
  user <- vapply(all, `[[`, "", "user")
  list(theta = make.unique(vapply(all, `[[`, "", "theta")), user = make.unique(user),
       priors = stats::setNames(lapply(all, `[[`, "prior"), user))
}

#' Blocks of effects with the `units` of their standard deviations: the unit of the linear predictor
#' for each unit of the column; of a parameter that is a logarithm it is one
#'
#' @param unit That of the response.
#' @noRd
effects_with_units <- function(model, effects, unit) {
  for (k in seq_along(effects)) {
    one <- effects[[k]]
    effects[[k]]$units <- if (is.null(model$units$effects)) units_of_effects(model, one, unit)
    else model$units$effects[[k]]
  }
  effects
}

units_of_effects <- function(model, block, unit) {
  unit <- rep(if (block$part) 1 else unit, length(block$names))
  if (isFALSE(model$units$columns)) return(unit)
  own <- block$design$covariates
  constants <- column_constants(model, block$x + 0, if (is.null(block$only)) own
                                else own[block$only])
  usual <- constants[3, ] == 0 & is.finite(constants[2, ]) & constants[2, ] > 0
  ifelse(usual, unit / constants[2, ], unit)
}

check_group_names <- function(model, effects, sds) {
  labels <- unique(vapply(effects, `[[`, "", "label"))
  unknown <- setdiff(names(model$group_sd), c("", sds, sub("^sd_", "", sds), labels))
  if (length(unknown))
    fail("`group_sd` must be named by factors or effects (",
         show_names(c(labels, sub("^sd_", "", sds))), "), not by `", unknown[1], "`.")
  unknown <- setdiff(names(model$group_cor), c("", labels))
  if (length(unknown))
    fail("`group_cor` must be named by factors (", show_names(labels), "), not by `", unknown[1],
         "`.")
}

show_group_priors <- function(model) {
  c(paste0("standard deviations of effects ", show_priors(model$group_sd)),
    if (model$group_correlated)
      paste0("correlations ", show_priors(model$group_cor)))
}

# The default priors of factors, fixed and random: linear regressions with `prior = jzs(fixed = )`
# or with group-level terms (src/models/mixed/factor_priors.c).

# A formula without covariates has no `g`.
has_factor_priors <- function(formula, prior) {
  if (has_bars(formula)) return(TRUE)
  if (is.null(prior$fixed)) return(FALSE)
  if (is.null(formula)) fail("`formula` must be given with `jzs(fixed = )`.")
  "." %in% all.vars(formula) || length(attr(stats::terms(formula), "term.labels")) > 0
}

factor_regression <- function(name, formula, prior) {
  groups <- split_groups(formula)
  for (term in groups$terms) if (!identical(term$effects, 1))
    fail("`formula` must have group-level terms of intercepts under `jzs()`, ", GROUP_EXAMPLE,
         " or `(1 | a:b)`, not of `", deparse1(term$effects), "`.")
  settings <- list(prior = prior, family = check_family("gaussian"), scale = FALSE,
                   fixed = groups$fixed, group_terms = groups$terms)
  new_model(name, formula, settings, encode_factors, encode_new_factors, describe_jzs,
            type = "factor_priors", derivatives = function(model) 1, coefficients = "integrated",
            family = glm_family, starts = 12,
            simulates = function(model) "not one whose prior is improper",
            cost = function(model, encoded)
              cost_of_elimination(encoded$args$levels, encoded$args$others),
            improper = function(model, design) improper_factors(model),
            closed = "the priors of factors leave an integral over each `g`",
            advice = function(model) "Set `scale`, `fixed` and `random` of jzs().")
}

improper_factors <- function(model)
  c(if (model$prior$flat_intercept && has_intercept(model$fixed)) "the intercept", "`sigma`")

has_intercept <- function(formula)
  "." %in% all.vars(formula) || attr(stats::terms(formula), "intercept") == 1

encode_new_factors <- function(model, design, newdata, response, argument)
  fail("A fit with the prior jzs() of factors has no predictions: it is for comparisons. ",
       INTEGRATED_OUT)

INTEGRATED_OUT <- paste(
  "Its coefficients and effects are integrated out, and it has draws of the variances `g_` alone.",
  "For coefficients and predictions fit the model with normal priors (`prior`, and `group_sd` of",
  "group-level terms), or without group-level terms with `prior = jzs()`, where `fixed` is NULL.")

encode_factors <- function(model, data, binding = AS_GIVEN) {
  data <- as_frame(data)
  environment <- environment(model$formula)
  groups <- lapply(model$group_terms, function(term)
    groups_of_rows(term$group, term$label, data, environment))
  names(groups) <- vapply(model$group_terms, `[[`, "", "label")
  terms <- formula_terms(model$fixed, without_groups(model, model$fixed, data))
  frame <- build_frame(terms, data, formula_columns(terms, data))
  covariates <- frame_covariates(frame, attr(frame, "terms"))
  check_finite_columns(frame)
  check_covariates(.subset(frame, covariates))
  check_text_covariates(frame, covariates, names(data))
  frame <- text_as_factors(frame, covariates)
  y <- numeric_response(frame[[1]], names(frame)[1])
  observed <- observed_columns(list(y))
  offset <- frame_offset(frame)
  if (!is.null(offset)) y <- y - offset
  flat <- model$prior$flat_intercept && attr(terms, "intercept") == 1
  blocks <- fixed_blocks(frame, terms, flat, model$prior)
  if (length(y) <= flat + 1) fail("`data` must have at least ", flat + 2, " rows under `jzs()`.")
  found <- factor_sums(y, flat, groups, blocks)
  scales <- c(rep(model$prior$random, length(groups)), vapply(blocks, `[[`, 0, "scale"))
  scales <- scales[found$order]
  names <- paste0("g_", c(names(groups), names(blocks)))[found$order]
  list(
    rows = matrix(found$row), n = 1L, observations = length(y),
    args = c(found$args, list(observations = as.double(length(y)),
                             flat = as.double(flat), blocks = as.double(length(names))),
             prior_args(lapply(scales, function(scale) inverse_gamma(1 / 2, scale^2 / 2)))),
    theta_names = paste0("log(", names, ")"), user_names = names,
    observed = observed$observed, offset = NULL,
    design = c(list(terms = NULL), observed[c("varying_id", "ids")])
  )
}

#' The columns of each fixed term
#'
#' Effects of a factor are those of orthonormal contrasts, of an interaction the products of those
#' of its factors. All numeric columns are one block: with centred columns X and `scale` s their
#' coefficients have the covariance g sigma^2 n (X'X)^-1.
#' @noRd
fixed_blocks <- function(frame, terms, flat, prior) {
  labels <- attr(terms, "term.labels")
  in_term <- attr(terms, "factors") > 0
  blocks <- list()
  numbers <- list()
  for (label in labels) {
    variables <- rownames(in_term)[in_term[, label]]
    kinds <- vapply(variables, function(name) column_kind(frame[[name]]), "")
    number <- !kinds %in% c("factor", "logical")
    if (all(number) && length(variables) == 1) numbers[[label]] <- as.matrix(frame[[variables]])
    else if (any(number))
      fail("`formula` must have interactions of factors only under `jzs(fixed = )` and with ",
           "group-level terms, not `", label, "`.")
    else blocks[[label]] <- list(x = Reduce(row_products, lapply(variables, function(name)
      contrasts_of(frame[[name]]))), scale = prior$fixed)
  }
  if (length(numbers)) blocks <- c(blocks, list(covariates = list(
    x = standard_block(do.call(cbind, numbers), flat), scale = prior$scale)))
  blocks
}

contrasts_of <- function(x) {
  x <- if (is.logical(x)) factor(x, c(FALSE, TRUE)) else droplevels(as.factor(x))
  a <- nlevels(x)
  if (a < 2) fail("`data` must have at least two levels of each factor under `jzs()`.")
  vectors <- eigen(diag(a) - 1 / a, symmetric = TRUE)$vectors[, seq_len(a - 1), drop = FALSE]
  vectors[as.integer(x), , drop = FALSE]
}

row_products <- function(a, b)
  do.call(cbind, lapply(seq_len(ncol(a)), function(j) a[, j] * b))

# Columns whose coefficients are independent with variance one under the prior of the block.
standard_block <- function(x, flat) {
  if (flat) x <- sweep(x, 2, colMeans(x))
  found <- qr(x, tol = DEPENDENT)
  if (found$rank < ncol(x))
    fail("`data` must have linearly independent covariates under `jzs()`.")
  sqrt(nrow(x)) * qr.Q(found)
}

#' The row that C reads: sums of products of all columns
#'
#' @return A list: `row`, `args`, and `order`, that of the blocks.
#' @noRd
factor_sums <- function(y, flat, groups, blocks) {
  sizes <- vapply(groups, function(one) length(one$levels), 0L)
  lead <- if (length(groups)) which.max(sizes) else 0L
  order <- c(if (lead) lead, setdiff(seq_len(length(groups) + length(blocks)), lead))
  # mu is flat, so the mean of the response means nothing
  x <- if (flat) cbind(1, y - mean(y)) else cbind(y)
  columns <- c(lapply(groups, function(one)
    outer(one$codes, seq_along(one$levels), `==`) + 0), lapply(blocks, `[[`, "x"))
  rest <- columns[setdiff(order, lead)]
  z <- if (length(rest)) do.call(cbind, rest) else matrix(0, length(y), 0)
  block <- rep(match(setdiff(order, lead), order) - 1, vapply(rest, ncol, 0L))
  triangle <- qr.R(qr(x, tol = 0))
  codes <- if (lead) groups[[lead]]$codes
  own <- if (lead) tabulate(codes) else numeric()
  shared <- if (lead) rowsum(z, codes, reorder = TRUE) else matrix(0, 0, ncol(z))
  with_x <- rbind(if (lead) rowsum(x, codes, reorder = TRUE), crossprod(z, x))
  list(row = c(length(y), t(triangle)[lower.tri(triangle, diag = TRUE)], own, t(shared),
               crossprod(z), t(with_x)),
       args = list(levels = as.double(length(own)), others = as.double(ncol(z)),
                   block = as.double(block)),
       order = order)
}

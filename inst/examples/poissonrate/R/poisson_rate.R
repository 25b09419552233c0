# Counts whose log rate is a linear predictor, with a normal prior on every coefficient:
#
#   y[i] ~ Poisson(exp(x[i]' w)),   w[j] ~ N(0, prior_sd^2)
#
# src/poisson_rate.c has the densities and their derivatives; what follows binds them to data.

poisson_rate <- function(formula, prior_sd = 1) {
  stopifnot(inherits(formula, "formula"), length(formula) == 3, is.numeric(prior_sd),
            length(prior_sd) == 1, prior_sd > 0)
  logevidence::new_model(
    "poisson_rate", formula, list(prior_sd = prior_sd),
    encode = encode, encode_new = encode_new, describe = describe,
    decode = decode, template = template,
    predictions = list(response = mean_rate), fitted = mean_rate, prior_moments = prior_moments,
    advice = function(model) "Use scale() on the columns, or set `prior_sd`.",
    symbol = "poisson_rate_table", PACKAGE = "poissonrate"
  )
}

# An observation in each column: its covariates, then its count.
encode <- function(model, data, ...) {
  frame <- stats::model.frame(model$formula, data, na.action = stats::na.fail)
  terms <- stats::terms(frame)
  x <- stats::model.matrix(terms, frame)
  design <- list(terms = terms, levels = stats::.getXlevels(terms, frame))
  list(
    rows = t(cbind(x, counts(frame))), n = nrow(x),
    args = list(covariates = as.double(ncol(x)), prior_sd = as.double(model$prior_sd)),
    theta_names = colnames(x), user_names = colnames(x), design = design,
    observed = counts(frame) # models of other covariates are of the same data
  )
}

# Later data as the first ones; counts that are not needed are NA.
encode_new <- function(model, design, newdata, response, argument) {
  terms <- if (response) design$terms else stats::delete.response(design$terms)
  frame <- stats::model.frame(terms, newdata, na.action = stats::na.fail, xlev = design$levels)
  x <- stats::model.matrix(terms, frame)
  list(rows = t(cbind(x, if (response) counts(frame) else NA_real_)), n = nrow(x))
}

counts <- function(frame) {
  y <- stats::model.response(frame)
  if (!is.numeric(y) || any(y < 0 | y != round(y)))
    stop("The response must be whole numbers of at least 0.", call. = FALSE)
  as.double(y)
}

describe <- function(model) {
  list("Regression of counts", formula = deparse1(model$formula),
       likelihood = "response Poisson, its log rate the linear predictor",
       prior = paste0("coefficients normal around 0, sd ", format(model$prior_sd)))
}

# Simulated counts in the shape of the user's data, and data whose counts are still to come.
decode <- function(model, encoded, rows, data) {
  data[[all.vars(model$formula)[1]]] <- rows[nrow(rows), ]
  data
}
template <- function(model, data, n) {
  data[[all.vars(model$formula)[1]]] <- 0
  list(data = data, encoded = encode(model, data))
}

# The posterior mean of the rate of each row.
mean_rate <- function(fit, encoded) {
  x <- encoded$rows[-nrow(encoded$rows), , drop = FALSE]
  as.vector(exp(fit$log_weights) %*% exp(fit$parameters %*% x))
}

prior_moments <- function(model, encoded, words) {
  d <- length(encoded$theta_names)
  list(row = seq_len(d), mean = 0, sd = model$prior_sd, subject = encoded$theta_names)
}

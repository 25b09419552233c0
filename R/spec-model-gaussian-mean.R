# The mean of normal observations whose standard deviation is known: the smallest model with a
# closed form.

#' Gaussian mean with known standard deviation
#'
#' Observations are normal with an unknown mean and a known standard deviation; the mean has a
#' normal prior:
#' \deqn{y_i \sim N(\mu, \sigma^2), \qquad \mu \sim N(m, s^2).}{
#' y[i] ~ N(mu, sigma^2), mu ~ N(m, s^2).}
#' Evidence and posterior have closed forms, so this model is good for testing a method, and as a
#' null model in comparisons.
#'
#' @param formula `y ~ 1` or, for short, `~ y`, where `y` is a column of the data or a
#'   transformation of one. `NULL`, the default, when the data are a numeric vector or have one
#'   column.
#' @param sigma Standard deviation of an observation, positive, in units of `y`.
#' @param prior_mean Prior mean \eqn{m} of the mean, in units of `y`.
#' @param prior_sd Prior standard deviation \eqn{s} of the mean, positive, in units of `y`.
#'
#' @details
#' **Data** are a data frame (or a matrix with column names) for a model with a formula; without
#' one, a numeric vector, or a matrix or data frame of one column. Missing and infinite values are
#' errors.
#'
#' **Parameter**, both in unconstrained space and on the user's scale: `mean`.
#'
#' @return A model specification of class `"evidence_model"`: a list without data. Printing it shows
#' its likelihood and prior.
#'
#' @references Bishop, C. M. (2006). *Pattern Recognition and Machine Learning*, section 2.3.6.
#' Springer.
#'
#' @examples
#' model <- gaussian_mean(~ dist, sigma = 25, prior_mean = 50, prior_sd = 50)
#' model
#' model_functions(model, cars)$exact()
#'
#' @seealso [linear_regression()], [model_functions()]
#' @family models
#' @export
gaussian_mean <- function(formula = NULL, sigma = 1, prior_mean = 0, prior_sd = 1) {
  new_model("gaussian_mean", check_mean_formula(formula), list(
    sigma = check_positive(sigma, "sigma"),
    prior_mean = check_number(prior_mean, "prior_mean"),
    prior_sd = check_positive(prior_sd, "prior_sd")
  ), encode_mean, encode_new_mean, describe_mean, decode = decode_mean, template = template_mean,
  predictions = list(response = repeated_mean), fitted = repeated_mean, one_number = TRUE,
  noise_sd = function(fit) fit$model$sigma, family = function(model) stats::gaussian(),
  prior_moments = prior_moments_linear,
  advice = function(model) "Set `prior_mean` and `prior_sd`, or scale the data.")
}

repeated_mean <- function(fit, encoded) rep(sum(exp(fit$log_weights) * fit$parameters), encoded$n)

# `~ y` is short for `y ~ 1`.
check_mean_formula <- function(formula) {
  if (is.null(formula)) return(NULL)
  rule <- "a formula such as `y ~ 1` or `~ y`"
  if (!inherits(formula, "formula") || is.null(formula[[2]])) refuse(formula, "formula", rule)
  given <- formula
  if (length(formula) == 2) {
    formula <- y ~ 1
    formula[[2]] <- given[[2]]
    environment(formula) <- environment(given)
  }
  if (!identical(formula[[3]], 1) || identical(formula[[2]], quote(.)) || is.numeric(formula[[2]]))
    refuse(given, "formula", rule)
  formula
}

describe_mean <- function(model) {
  list(
    "Gaussian mean, known standard deviation",
    likelihood = paste0(if (is.null(model$formula)) "y" else deparse1(model$formula[[2]]),
                        " normal around mean, sd ", show_setting(model$sigma)),
    prior = paste0("mean normal around ", show_setting(model$prior_mean), ", sd ",
                   show_setting(model$prior_sd))
  )
}

encode_mean <- function(model, data, binding = AS_GIVEN) {
  input <- mean_values(model$formula, data, "data")
  list(
    rows = matrix(input$y, 1, dimnames = list(input$response, NULL)),
    n = length(input$y),
    args = model[c("sigma", "prior_mean", "prior_sd")],
    theta_names = "mean",
    user_names = "mean",
    offset = NULL,
    design = list(formula = model$formula, response = input$response)
  )
}

encode_new_mean <- function(model, design, newdata, response = TRUE, argument = "newdata") {
  y <- if (response) mean_values(design$formula, newdata, argument)$y
  else rep(NA_real_, NROW(newdata))
  check_some_rows(length(y), argument)
  list(rows = matrix(y, 1, dimnames = list(design$response, NULL)), n = length(y), offset = NULL)
}

mean_values <- function(formula, data, argument) {
  if (!is.null(formula)) {
    data <- as_frame(data, argument)
    terms <- formula_terms(formula, data)
    frame <- build_frame(terms, data, formula_columns(terms, data, argument), argument)
    return(list(y = numeric_response(frame[[1]], names(frame)[1], argument),
                response = names(frame)[1]))
  }
  if (is.data.frame(data)) {
    if (length(data) != 1)
      fail("`", argument, "` must have one column when the model has no formula, not ",
           length(data), ".")
    y <- numeric_response(data[[1]], names(data), argument)
    check_some_rows(length(y), argument)
    return(list(y = y, response = names(data)))
  }
  if (!is_plain_numeric(data))
    refuse(data, argument, "a numeric vector when the model has no formula")
  x <- as_numeric_matrix(data, argument, stem = "y")
  if (ncol(x) != 1)
    fail("`", argument, "` must have one column when the model has no formula, not ", ncol(x), ".")
  list(y = x[, 1], response = if (is.null(colnames(data))) "y" else colnames(data))
}

decode_mean <- function(model, encoded, rows, data) {
  values <- rows[1, ]
  if (!is.null(model$formula)) return(fill_response(model, data, values))
  if (is.data.frame(data)) {
    data[[1]] <- values
    return(data)
  }
  if (is.matrix(data)) matrix(values, ncol = 1, dimnames = dimnames(data)) else values
}

template_mean <- function(model, data, n) {
  if (is.null(data)) {
    data <- rep(0, n)
    if (!is.null(model$formula))
      data <- stats::setNames(data.frame(data), response_column(model$formula)$name)
  }
  # A transformed response needs allowed values before it is replaced: log(1), because log(0) would
  # fail.
  if (!is.null(model$formula)) data <- fill_response(model, data, rep(0, nrow(as_frame(data))))
  list(data = data, encoded = encode(model, data))
}

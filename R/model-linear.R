# Linear regression with a known noise level and a normal prior on every coefficient.

#' Linear regression with known noise
#'
#' The response is a linear function of the covariates plus normal noise of known standard
#' deviation; every coefficient, the intercept among them, has an independent normal prior:
#' \deqn{y_i \sim N(x_i'w, \sigma^2), \qquad w_j \sim N(m_j, s_j^2).}{
#' y[i] ~ N(x[i]'w, sigma^2), w[j] ~ N(m[j], s[j]^2).}
#' The evidence has a closed form (see [exact()]). Other methods also give the evidence of a growing
#' data stream, and can be tested against the exact evidence.
#'
#' @param formula A formula as in [lm()]: factors, interactions, `.`, transformations such as
#'   `log(y)`, `I()` and `poly()`, and `offset()` are understood. `NULL`, the default, when the data
#'   are `list(x =, y =)`.
#' @param sigma Standard deviation of the noise, positive, in units of the response.
#' @param prior_sd Prior standard deviation of the coefficients, positive: one for all, or one for
#'   each coefficient, in the order of the coefficients or named by them (`c("(Intercept)" = 10, x =
#'   1)`). The unit is that of the response per unit of the covariate, so scale covariates of very
#'   different scales, or give each its own value.
#' @param prior_mean Prior mean of the coefficients, as `prior_sd`.
#' @param ... Must be empty. There are no `weights` and no `na.action`.
#'
#' @details
#' **Data** for a model with a formula are a data frame, or a numeric matrix with column names. All
#' variables of the formula must be columns; only constants, as `k` in `poly(x, k)`, may come from
#' elsewhere. Character columns are factors. All levels of a factor are kept, because later chunks
#' may have rows of levels without rows so far; with a proper prior such levels do not change the
#' evidence. Contrasts are those of `options("contrasts")` or of the factor. Dates must be converted
#' to numbers first, in the formula or in the data.
#'
#' Data for a model without formula are `list(x =, y =)`, `x` a numeric matrix (or vector) and `y` a
#' numeric vector. A first column of ones called `(Intercept)` is added unless `x` has a column of
#' that name (as a [model.matrix()] does); for a model without an intercept use a formula with `0
#' +`.
#'
#' Offsets are subtracted from the response. Missing and infinite values are errors. More
#' coefficients than rows, constant columns and repeated rows are all allowed.
#'
#' **Parameters**, both in unconstrained space and on the user's scale: the coefficients, with the
#' names of [lm()].
#'
#' @inherit gaussian_mean return
#'
#' @references Bishop, C. M. (2006). *Pattern Recognition and Machine Learning*, sections 3.3 and
#' 3.5. Springer.
#'
#' @examples
#' model <- linear_regression(dist ~ speed, sigma = 15, prior_sd = c("(Intercept)" = 20, speed = 5))
#' model
#' model_functions(model, cars)$exact()
#'
#' # the same from a matrix
#' xy <- list(x = cbind(speed = cars$speed), y = cars$dist)
#' model_functions(linear_regression(sigma = 15, prior_sd = c(20, 5)), xy)$exact()
#'
#' @seealso [model_functions()]
#' @family models
#' @export
linear_regression <- function(formula = NULL, sigma = 1, prior_sd = 1, prior_mean = 0, ...) {
  refuse_arguments(...)
  formula <- check_formula(formula, 2)
  check_has_terms(formula)
  new_model("linear_regression", formula, list(
    sigma = check_positive(sigma, "sigma"),
    prior_sd = check_numbers(prior_sd, "prior_sd", positive = TRUE),
    prior_mean = check_numbers(prior_mean, "prior_mean")
  ), encode_linear, encode_new_linear, describe_linear, decode = decode_linear,
  template = template_linear, plain = plain_regression,
  predictions = list(response = predictive_mean), fitted = predictive_mean, one_number = TRUE,
  noise_sd = function(fit) fit$model$sigma, prior_moments = prior_moments_linear,
  advice = function(model) "Use scale() on the columns, or set `prior_mean` and `prior_sd`.")
}

describe_linear <- function(model) {
  list(
    "Linear regression, known noise",
    formula = if (is.null(model$formula)) "none: y on an intercept and all columns of x"
    else deparse1(model$formula),
    likelihood = paste0("response normal around the linear predictor, sd ",
                        show_setting(model$sigma)),
    prior = paste0("coefficients normal around ", show_setting(model$prior_mean),
                   ", sd ", show_setting(model$prior_sd))
  )
}

encode_linear <- function(model, data, binding = AS_GIVEN) {
  input <- regression_input(model, data)
  design <- input$design
  covariates <- design$covariates
  rows <- linear_rows(input, design, "data", binding)
  list(
    rows = rows,
    own = TRUE,
    pairing = pairing_of(input$x, as.double(input$y), covariates),
    n = nrow(input$x),
    args = list(
      covariates = as.double(length(covariates)),
      sigma = model$sigma,
      prior_sd = match_setting(model$prior_sd, "prior_sd", covariates),
      prior_mean = match_setting(model$prior_mean, "prior_mean", covariates)
    ),
    theta_names = covariates,
    user_names = covariates,
    offset = input$offset,
    observed = as.double(input$y),
    design = design
  )
}

encode_new_linear <- function(model, design, newdata, response = TRUE, argument = "newdata") {
  input <- regression_new(design, newdata, response, argument)
  list(rows = linear_rows(input, design, argument), n = nrow(input$x), offset = input$offset)
}

# C gets the response minus the offset.
linear_rows <- function(input, design, argument, binding = AS_GIVEN) {
  y <- if (is.null(input$y)) rep(NA_real_, nrow(input$x))
  else numeric_response(input$y, design$response, argument)
  regression_rows(input, if (is.null(input$offset)) y else y - input$offset, design, binding)
}

decode_linear <- function(model, encoded, rows, data) {
  values <- rows[nrow(rows), ]
  fill_response(model, data, if (is.null(encoded$offset)) values else values + encoded$offset)
}

template_linear <- function(model, data, n) {
  require_data(data)
  data <- blank_response(model, data)
  list(data = data, encoded = encode(model, data))
}

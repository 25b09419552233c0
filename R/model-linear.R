# Linear regression with normal priors and unknown or known noise, or with a Zellner-Siow prior. If
# the noise is unknown, the likelihood is that of the gaussian family of regression().

#' Linear regression
#'
#' The response is a linear function of the covariates plus normal noise, whose standard deviation
#' `sigma` is unknown with a prior, or known; every coefficient, the intercept among them, has an
#' independent normal prior:
#' \deqn{y_i \sim N(x_i'w, \sigma^2), \qquad w_j \sim N(m_j, s_j^2).}{
#' y[i] ~ N(x[i]'w, sigma^2), w[j] ~ N(m[j], s[j]^2).}
#' The evidence is known without Monte Carlo error (see [exact()]). Other methods also give the
#' evidence of a growing data stream, and can be tested against the exact evidence.
#'
#' @param formula A formula as in [lm()]: factors, interactions, `.`, transformations such as
#'   `log(y)`, `I()` and `poly()`, and `offset()` are understood. `NULL`, the default, when the data
#'   are `list(x =, y =)`.
#' @param sigma Standard deviation of the noise, in units of the response: its prior, one of
#'   `half_student()`, `half_normal()`, `exponential()` and `inverse_gamma()` (see [priors]); or a
#'   positive number, if it is known.
#' @param prior_sd Prior standard deviation of the coefficients, positive: one for all, or one for
#'   each coefficient, in the order of the coefficients or named by them (`c("(Intercept)" = 10, x =
#'   1)`). The unit is that of the response per unit of the covariate, so scale covariates of very
#'   different scales, or give each its own value.
#' @param prior_mean Prior mean of the coefficients, as `prior_sd`.
#' @param prior `NULL`, or [jzs()], which replaces the priors of coefficients and noise by a default
#'   prior that has no units.
#' @param ... Must be empty. There are no `weights` and no `na.action`.
#'
#' @details
#' **Units.** The evidence depends on the priors however many data there are. The defaults,
#' coefficients of size one and noise of size 2.5, are for a response and covariates that were
#' scaled to about one (see [scale()]); otherwise give the sizes that you expect, before looking at
#' the data. The defaults do not look at the data: a prior made from the response would count the
#' data twice, and would change with each chunk of a stream. For a comparison without such choices
#' use [jzs()].
#'
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
#' coefficients than rows, constant columns and repeated rows are all allowed. If the coefficients
#' fit the response exactly, with rows to spare, the evidence is infinite under all priors of
#' `sigma` but `inverse_gamma()`, and [exact()] says so.
#'
#' **Parameters**: the coefficients, with the names of [lm()], and `sigma` if it is unknown, which
#' is `log(sigma)` in unconstrained space.
#'
#' @inherit gaussian_mean return
#'
#' @references Bishop, C. M. (2006). *Pattern Recognition and Machine Learning*, sections 3.3 and
#' 3.5. Springer.
#'
#' @examples
#' model <- linear_regression(dist ~ speed, sigma = half_student(3, 20),
#'                            prior_sd = c("(Intercept)" = 20, speed = 5))
#' model
#' fit <- evidence(model, cars, exact(), seed = 1)
#' fit
#' coef(fit)
#'
#' # by sampling
#' evidence(model, cars, seed = 1)
#'
#' # known noise, from a matrix
#' xy <- list(x = cbind(speed = cars$speed), y = cars$dist)
#' model_functions(linear_regression(sigma = 15, prior_sd = c(20, 5)), xy)$exact()
#'
#' @seealso [regression()], [jzs()], [model_functions()]
#' @family models
#' @export
linear_regression <- function(formula = NULL, sigma = half_student(3, 2.5), prior_sd = 1,
                              prior_mean = 0, prior = NULL, ...) {
  refuse_arguments(...)
  formula <- check_formula(formula, 2)
  if (!is.null(prior)) {
    if (!is_jzs(prior))
      refuse(prior, "prior", "NULL or `jzs()` (`prior_sd` and `prior_mean` are normal priors)")
    given <- c("sigma", "prior_sd", "prior_mean")[!c(missing(sigma), missing(prior_sd),
                                                     missing(prior_mean))]
    if (length(given)) fail("`", given[1], "` must not be given with `prior = jzs()`.")
    return(jzs_regression(formula, prior))
  }
  check_has_terms(formula)
  known <- is_one_number(sigma) && sigma > 0
  if (!known && !is_prior(sigma))
    refuse(sigma, "sigma", "a positive number or a prior, such as `half_student(3, 2.5)`")
  settings <- list(
    sigma = if (known) as.double(sigma) else check_prior(sigma, "sigma", FALSE),
    prior_sd = check_numbers(prior_sd, "prior_sd", positive = TRUE),
    prior_mean = check_numbers(prior_mean, "prior_mean")
  )
  if (known) known_noise(formula, settings) else unknown_noise(formula, settings)
}

ADVICE_LINEAR <- "Use scale() on the columns, or set `prior_mean` and `prior_sd`."

known_noise <- function(formula, settings) {
  new_model("linear_regression", formula, settings,
    encode_linear, encode_new_linear, describe_linear, decode = decode_linear,
    template = template_linear, plain = plain_regression,
    predictions = list(response = predictive_mean), fitted = predictive_mean, one_number = TRUE,
    noise_sd = function(fit) fit$model$sigma, prior_moments = prior_moments_linear,
    advice = function(model) ADVICE_LINEAR)
}

unknown_noise <- function(formula, settings) {
  gaussian_model(formula, settings, type = "regression", encode = encode_unknown_noise,
                 describe = describe_linear, starts = REGRESSION_STARTS,
                 refuses = function(model, encoded) exact_fit(model$sigma, encoded),
                 far_fit = far_fit_regression,
                 prior_moments = prior_moments_regression, advice = function(model) ADVICE_LINEAR)
}

jzs_regression <- function(formula, prior) {
  gaussian_model(formula, list(prior = prior), type = "zellner_siow", encode = encode_jzs,
                 describe = describe_linear,
                 improper = function(model, design) improper_parts_jzs(prior, design))
}

# Linear regressions whose likelihood is that of the gaussian family.
gaussian_model <- function(formula, settings, encode, describe, ...) {
  family <- check_family("gaussian")
  settings <- c(settings, list(family = family, scale = FALSE))
  new_model("linear_regression", formula, settings, encode,
            encode_new_regression, describe, decode = decode_regression,
            template = template_regression, plain = plain_regression,
            predictions = list(response = regression_mean), fitted = regression_mean,
            one_number = TRUE,
            noise_sd = function(fit) sum(exp(fit$log_weights) * fit$draws[, "sigma"]), ...)
}

describe_linear <- function(model) {
  known <- is.numeric(model$sigma)
  c(list(
    paste0("Linear regression, ", if (known) "known noise" else "unknown noise"),
    formula = if (is.null(model$formula)) "none: y on an intercept and all columns of x"
    else deparse1(model$formula),
    likelihood = paste0("response normal around the linear predictor, sd ",
                        if (known) show_setting(model$sigma) else "`sigma`"),
    prior = if (is.null(model$prior)) paste0("coefficients normal around ",
                                             show_setting(model$prior_mean), ", sd ",
                                             show_setting(model$prior_sd))
    else format(model$prior)
  ), if (is_prior(model$sigma)) list(auxiliary = paste("sigma ~", format(model$sigma))))
}

# Unknown noise -----------------------------------------------------------------------------------

# The encoding of regression() with the normal priors of this model.
encode_unknown_noise <- function(model, data, binding = AS_GIVEN) {
  encoded <- encode_gaussian(model, data, binding, model$sigma)
  covariates <- encoded$design$covariates
  use <- seq_along(covariates)
  encoded$args$prior_location[use] <- match_setting(model$prior_mean, "prior_mean", covariates)
  encoded$args$prior_scale[use] <- match_setting(model$prior_sd, "prior_sd", covariates)
  encoded
}

encode_gaussian <- function(model, data, binding, sigma) {
  model[c("prior", "auxiliary")] <- list(list(normal(0, 1)), list(sigma = sigma))
  encoded <- encode_regression(model, data, binding)
  encoded$design$hint <- NULL # for the priors of regression()
  encoded
}

# Zellner-Siow prior ------------------------------------------------------------------------------

encode_jzs <- function(model, data, binding = AS_GIVEN) {
  prior <- model$prior
  encoded <- encode_gaussian(model, data, binding, half_student(3, 2.5)) # C does not use the latter
  covariates <- encoded$design$covariates
  flat <- prior$flat_intercept && INTERCEPT %in% covariates
  if (flat && covariates[1] != INTERCEPT)
    fail("`data$x` must have `(Intercept)` as its first column, not `", covariates[1], "`.")
  # simulated responses are not yet there
  check_jzs_rows(encoded$rows[seq_along(covariates), , drop = FALSE], covariates, flat)
  encoded$args <- c(encoded$args, list(scale = prior$scale, flat = as.double(flat)))
  encoded
}

check_jzs_rows <- function(columns, covariates, flat) {
  n <- ncol(columns)
  if (n <= length(covariates))
    fail("`data` must have more rows than coefficients (", length(covariates),
         ") under `jzs()`, not ", n, ".")
  x <- t(columns)
  if (flat) x[, -1] <- sweep(x[, -1, drop = FALSE], 2, colMeans(x[, -1, drop = FALSE]))
  if (length(covariates) == 0) return(invisible())
  size <- sqrt(rowMeans(columns^2))
  pivots <- qr(x, tol = DEPENDENT)
  small <- sqrt(colMeans(x^2)) <= DEPENDENT * size
  dependent <- c(which(small), pivots$pivot[seq_along(covariates) > pivots$rank])
  if (length(dependent))
    fail("`data` must have linearly independent covariates under `jzs()`, but `",
         covariates[dependent[1]], "` is constant or a linear function of the others.")
}

# Covariates whose part that the others do not explain is a smaller share are taken for dependent.
DEPENDENT <- 1e-10

# What is improper: evidences can be compared if it is the same.
improper_parts_jzs <- function(prior, design) {
  c(if (prior$flat_intercept && INTERCEPT %in% design$covariates) "the intercept", "`sigma`")
}

# Known noise -------------------------------------------------------------------------------------

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

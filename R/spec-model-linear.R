# Linear regression with known noise, or with a Zellner-Siow prior: what differs from the gaussian
# family of regression().

# Known noise and normal priors: evidence and posterior are in closed form.
known_noise <- function(name, formula, settings) {
  new_model(name, formula, settings, encode_linear, encode_new_linear, describe_family_regression,
            type = "linear_regression", decode = decode_linear, template = template_linear,
            plain = plain_regression, predictions = list(response = predictive_mean),
            normal = TRUE, units = REGRESSION_UNITS,
            fitted = predictive_mean, one_number = TRUE,
            from_user = from_user_regression, link = linear_link, family = glm_family,
            noise_sd = noise_of(settings$family),
            prior_moments = prior_moments_regression, boundaries = 500,
            centred = centred_model, closed = TRUE, advice = advice_regression)
}

jzs_regression <- function(name, formula, prior) {
  new_model(name, formula, list(prior = prior, family = check_family("gaussian"), scale = FALSE),
            encode_jzs, encode_new_regression, describe_jzs, type = "zellner_siow",
            decode = decode_regression, template = template_regression, plain = plain_regression,
            predictions = list(response = regression_mean), fitted = regression_mean,
            one_number = TRUE, from_user = from_user_regression, link = regression_link,
            family = glm_family,
            noise_sd = mean_of_sigma,
            improper = function(model, design) improper_parts_jzs(prior, design))
}

describe_jzs <- function(model)
  c(describe_likelihood(model), list(prior = format(model$prior)))

# Zellner-Siow prior ------------------------------------------------------------------------------

encode_jzs <- function(model, data, binding = AS_GIVEN) {
  prior <- model$prior
  # C does not use these
  model[c("prior", "auxiliary")] <- list(list(normal(0, 1)), list(sigma = half_student(3, 2.5)))
  encoded <- encode_regression(model, data, binding)
  encoded <- without_priors(encoded)
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
  priors <- coefficient_priors(model, covariates)
  y <- numeric_response(input$y, design$response, "data")
  units <- response_units(model, y, input$offset)
  design$scaling <- column_scaling(model, input, design, are_relative(model, priors),
                                   binding$threads)
  design$hint <- c(scale_hint(model, input, design, priors, units$scale),
                   units_note(model, input, design, are_relative(model, priors), y))
  design$priors <- coefficients_with_units(priors, units)
  design$prior_units <- units
  rows <- linear_rows(input, design, "data", binding)
  list(
    rows = rows,
    own = TRUE,
    pairing = pairing_of(input, as.double(input$y), covariates),
    n = nrow(input$x),
    args = c(list(covariates = as.double(length(covariates)), sigma = model$family$sigma),
             prior_args(design$priors), scaling_args(list(design$scaling))),
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

linear_link <- function(fit, rows, offset) {
  eta <- crossprod(rows[-nrow(rows), , drop = FALSE], t(fit$parameters))
  if (is.null(offset)) eta else eta + offset
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

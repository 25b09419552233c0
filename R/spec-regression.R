# Regressions with a linear predictor, by family: counts, proportions, positive numbers, times, and
# numbers with unknown noise.

family_regression <- function(name, formula, settings) {
  family <- settings$family
  facts <- family_facts(family)
  normal_noise <- is_normal(family) && !length(settings$formulas)
  new_model(name, formula, settings, encode_regression, encode_new_regression,
    describe_family_regression, type = "regression",
    decode = decode_regression, template = template_regression,
    plain = if (facts$response == "numbers") plain_regression else NOTHING,
    predictions = c(list(response = regression_mean),
                    if (counts_trials(family)) BINARY_PREDICTIONS),
    normal = normal_noise, units = REGRESSION_UNITS,
    fitted = regression_mean, one_number = TRUE, from_user = from_user_regression,
    replicated = replicated_regression, link = regression_link,
    noise_sd = noise_of(family, settings$formulas),
    refuses = infinite_evidence, centred = centred_model,
    far = if (is_normal(family) && is.null(family$sigma)) far_fit_regression else NOTHING,
    doubts = lost_counts,
    family = glm_family, prior_moments = prior_moments_regression,
    # the closed form has an integral over sigma
    starts = regression_starts(settings), boundaries = 300,
    advice = advice_regression)
}

# The standard deviation of normal noise, if it is the same for all rows.
noise_of <- function(family, formulas = NULL) {
  if (is.numeric(family$sigma)) function(fit) fit$model$family$sigma
  else if (is_normal(family) && !length(formulas)) mean_of_sigma
}

mean_of_sigma <- function(fit) sum(exp(fit$log_weights) * fit$draws[, "sigma"])

# Infinite evidences ------------------------------------------------------------------------------

EXACT_SHAPE <- paste("The coefficients fit the response exactly, so its evidence is infinite under",
                     "this prior of `shape`: use one with light tails, such as exponential().")

#' Why rows have no finite evidence, or NULL
#'
#' As the noise goes to zero, or a shape to infinity, rows that are fitted exactly have densities
#' that grow faster than the prior falls.
#' @noRd
infinite_evidence <- function(model, encoded) {
  facts <- family_facts(model$family)
  if (!is.null(facts$shape_power)) {
    shape <- model$auxiliary$shape
    if (is.null(shape) || shape$kind != "half_student") return(NULL)
    rank <- exact_rank(encoded, log)
    spare <- if (is.null(rank)) 0 else ncol(encoded$rows) - rank
    # the power of the shape in the integral over it
    return(if (facts$shape_power * spare >= shape$shape) EXACT_SHAPE)
  }
  sigma <- model$auxiliary$sigma
  # with a formula for it, it is the intercept of log(sigma) that must not go far
  if (!is.null(model$formulas$sigma)) {
    label <- paste0("sigma_", INTERCEPT)
    sigma <- further_coefficient_priors(model, "sigma", label)[[1]]
    if (sigma$kind != "student_t") return(NULL)
  }
  reason <- exact_fit(sigma, encoded)
  if (is.null(reason) && isTRUE(facts$heavy))
    reason <- tied_responses(model, sigma, encoded)
  if (is.null(reason) || is.null(model$formulas$sigma)) return(reason)
  sub(": .*", paste0(": give `", label, "` a normal prior in `auxiliary`."), reason)
}

#' Many equal responses and a t distribution
#'
#' If k of n rows are fitted exactly by coefficients of rank r, the likelihood, integrated over the
#' coefficients, goes as sigma^(r - k + df (n - k)) for small sigma.
#' @noRd
tied_responses <- function(model, sigma, encoded) {
  if (is.null(sigma) || sigma$kind == "inverse_gamma" || encoded$design$offset ||
      !INTERCEPT %in% encoded$design$covariates) return(NULL)
  rows <- encoded$rows
  n <- ncol(rows)
  y <- rows[nrow(rows), ]
  some <- tabulate(match(y[evenly(n, COLUMN_ROWS)], y[evenly(n, COLUMN_ROWS)]))
  if (max(some) < 3) return(NULL)
  value <- y[evenly(n, COLUMN_ROWS)][which.max(some)]
  tied <- which(y == value)
  k <- length(tied)
  use <- seq_along(encoded$design$covariates)
  rank <- qr(t(rows[use, tied, drop = FALSE]), tol = 1e-12)$rank
  # the largest df for which the integral over sigma diverges
  most <- if (k == n) Inf else (k - rank - 1) / (n - k)
  df <- model$family$df
  infinite <- if (is.numeric(df)) df <= most
  else most > 0 && probability_below(df, most) > 0.01
  if (infinite)
    paste0(count(k), " of ", count(n), " responses are ", format(value, digits = 7),
           ", and with the heavy tails of this family the evidence of so many equal numbers is ",
           "infinite: use the prior inverse_gamma() for `sigma`, which excludes small values, or ",
           "a model for such responses.")
}

probability_below <- function(prior, most) {
  density <- function(x) exp(prior_log_density(prior, x))
  stats::integrate(density, 0, min(most, 1e3), stop.on.error = FALSE)$value
}

# Starts ------------------------------------------------------------------------------------------

# Three of four optimisation runs start at weighted least-squares fits of the rows, one at a prior
# draw. More if the likelihood may have several modes.
REGRESSION_STARTS <- 12
MODES_STARTS <- 48

regression_starts <- function(settings) {
  heavy <- !has_normal_priors(settings) || isTRUE(family_facts(settings$family)$heavy)
  if (heavy) MODES_STARTS else REGRESSION_STARTS
}

# Further formulas and the priors of further parameters --------------------------------------------

# Arguments of lm() and glm() that a regression does not have.
refuse_named <- function(names, of = sys.function(-1)) {
  names <- names[!is.na(names) & nzchar(names)]
  if ("weights" %in% names)
    fail("`weights` are not supported: give repeated rows, binomial trials by `cbind()`, an ",
         "offset, or for known precisions `regression(y ~ x, sigma ~ offset(-log(w) / 2))`.")
  if ("se" %in% names)
    fail("`se` is not an argument of a regression.", known_noise_advice(NULL))
  if ("na.action" %in% names)
    fail("`na.action` is an argument of evidence(), not of the model.")
  if ("data" %in% names)
    fail("`data` is an argument of evidence(), not of the model: evidence(model, data).")
  if ("offset" %in% names)
    fail("`offset` is a part of the formula: `y ~ x + offset(z)`.")
  if ("family" %in% names)
    fail("`family` is an argument of regression(), as in `regression(y ~ x, student())`: see ",
         "?families.")
  if (length(names)) refuse_argument(names[1], of)
}

#' Formulas as `sigma ~ z`, by the name of the parameter
#'
#' Their left sides are replaced by the response, so that `.` means the same in all formulas.
#' @noRd
check_further_formulas <- function(formulas, formula, family) {
  if (!length(formulas)) return(list())
  known <- setdiff(further_names(family), "df")
  found <- list()
  for (one in formulas) {
    if (!inherits(one, "formula") || length(one) != 3 || !is.name(one[[2]]))
      refuse(one, "...", "formulas of further parameters, such as `sigma ~ z`")
    name <- as.character(one[[2]])
    if (name == "df") fail("`df` cannot have a formula: give it a prior by `student(df = )`.")
    if (!length(known))
      fail("`", deparse1(one), "` cannot be used: the family ", family$family,
           " has no parameter that can have a formula.")
    if (!name %in% known)
      fail("`...` must be formulas of ", either(paste0("`", known, "`")), ", as in `", known[1],
           " ~ z`, not `", deparse1(one), "`.")
    if (name %in% names(found)) fail("`", name, "` must have one formula, not several.")
    if (is.null(formula)) fail("`formula` must be given when `", name, "` has a formula, not NULL.")
    written <- one
    one[[2]] <- formula[[2]]
    if (!has_bars(one))
      check_has_terms(one, written, name, if (is_normal(family))
        known_noise_advice(formula, noise_of_offset(written[[3]])))
    found[[name]] <- with_constants(one)
  }
  found
}

#' How to write noise that is known for each row, or NULL
#'
#' @param noise An expression, as the column `se`; NULL: there is no such noise.
#' @noRd
known_noise_advice <- function(formula, noise = quote(se)) {
  if (is.null(noise)) return(NULL)
  formula <- if (is.null(formula)) y ~ x else if (has_bars(formula)) split_groups(formula)$fixed
  else formula
  density_of <- function(noise) paste0("`density(~ dnorm(", deparse1(formula[[2]]), ", mu, ",
                                       deparse1(noise), ", log = TRUE), mu = ~ ",
                                       deparse1(formula[[3]]))
  paste0(" Noise that is known for each row is a column of the data in a density: ",
         density_of(noise), ")`. If the rows differ by more than it, as the studies of a ",
         "meta-analysis do: ",
         density_of(call("sqrt", call("+", quote(tau^2), call("^", noise, 2)))),
         ", tau = half_normal(1))`.")
}

# `se` of the right side `0 + offset(log(se))`, or NULL.
noise_of_offset <- function(e) {
  if (!is.call(e)) return(NULL)
  if (!identical(e[[1]], quote(offset))) {
    found <- Filter(Negate(is.null), lapply(as.list(e)[-1], noise_of_offset))
    return(if (length(found) == 1) found[[1]])
  }
  inner <- e[[2]]
  if (is.call(inner) && identical(inner[[1]], quote(log)) && length(inner) == 2) inner[[2]]
  else call("exp", inner)
}

#' Priors of the further parameters
#'
#' @param modelled The parameters with a formula, whose priors are those of coefficients.
#' @return A list: `numbers`, the prior of each parameter without a formula, by name, and
#'   `coefficients`, priors of coefficients by name, of a parameter or of a coefficient.
#' @noRd
check_auxiliary <- function(auxiliary, family, modelled) {
  names <- further_names(family)
  if (!is.null(auxiliary) && !length(names))
    fail("`auxiliary` must be NULL for the family ", family$family,
         ", which has no further parameters.")
  plain <- setdiff(names, modelled)
  if (!is.null(auxiliary) && !is.list(auxiliary))
    refuse_made(auxiliary, "auxiliary", "a prior or a list of priors", "prior")
  given <- if (is.null(auxiliary)) list() else if (is_prior(auxiliary)) list(auxiliary)
  else auxiliary
  own <- if (length(modelled)) of_modelled(given, modelled, plain) else rep(FALSE, length(given))
  coefficients <- if (any(own)) check_priors(given[own], "auxiliary", TRUE) else list()
  given <- if (all(own) && length(given)) list()
  else if (length(given) || !is.null(auxiliary)) check_priors(given[!own], "auxiliary", FALSE)
  else list()
  list(numbers = plain_auxiliary(given, family, plain), coefficients = coefficients)
}

# Which priors are those of coefficients? One without a name is, if all parameters have formulas.
of_modelled <- function(given, modelled, plain) {
  if (!is.list(given) || is.object(given)) return(FALSE)
  names <- if (is.null(names(given))) rep("", length(given)) else names(given)
  begins <- vapply(names, function(name) any(startsWith(name, paste0(modelled, "_"))), NA)
  names %in% modelled | begins | (names == "" & !length(plain))
}

plain_auxiliary <- function(given, family, names) {
  # one prior for all is not for `df`, whose prior is in the family
  if ("df" %in% names && !"df" %in% names(given)) given$df <- family$df
  if (!length(names)) return(list())
  if (!is_prior(family$df) && "df" %in% names(given))
    fail("`auxiliary` must have no prior for `df`: write `student(df = )`.")
  match_priors(given, "auxiliary", names, further_defaults(family)[names])
}

#' The prior of each coefficient of the formula of a further parameter
#' @noRd
further_coefficient_priors <- function(model, name, labels) {
  given <- model$further_prior
  words <- if (is.null(names(given))) rep("", length(given)) else names(given)
  unknown <- setdiff(words[startsWith(words, paste0(name, "_"))], labels)
  if (length(unknown))
    fail("`auxiliary` must be named by parameters (", show_names(labels), "), not by `",
         unknown[1], "`.")
  lapply(stats::setNames(labels, labels), function(label) {
    at <- match(c(label, name, ""), words)
    at <- at[!is.na(at)]
    if (length(at)) given[[at[1]]] else further_coefficient_default(name, label)
  })
}

further_coefficient_default <- function(name, label)
  in_units(if (label == paste0(name, "_", INTERCEPT)) student_t(3, 0, 2.5) else normal(0, 1))

describe_family_regression <- function(model) {
  c(describe_likelihood(model), list(prior = show_coefficient_priors(model)),
    if (length(model$auxiliary)) list(auxiliary = show_priors(model$auxiliary)),
    if (length(model$formulas)) list(further = show_further_priors(model)))
}

describe_likelihood <- function(model) {
  family <- model$family
  facts <- family_facts(family)
  known <- c(if (is.numeric(family$df)) paste0(", df ", show_setting(family$df)))
  Filter(Negate(is.null), list(
    if (is.null(family$sigma)) facts$title else "Linear regression, known noise",
    formula = if (is.null(model$formula)) "none: y on an intercept and all columns of x"
    else c(deparse1(model$formula), show_further_formulas(model)),
    likelihood = if (is.null(family$sigma))
      paste0(facts$likelihood, if (family$link == "probit") " (probit)", known)
    else paste0("response normal around the linear predictor, sd ", show_setting(family$sigma)),
    ratios = ratio_sentence(ratio_of(family))
  ))
}

show_further_formulas <- function(model) {
  vapply(names(model$formulas), function(name)
    paste(name, "~", deparse1(model$formulas[[name]][[3]])), "")
}

show_further_priors <- function(model) {
  given <- model$further_prior
  names <- if (is.null(names(given))) rep("", length(given)) else names(given)
  own <- paste0(ifelse(names == "", "coefficients", names), " ~ ", vapply(given, format, ""))
  if (length(given) && any(names == "")) return(own)
  rest <- setdiff(names(model$formulas), names)
  c(if (length(given)) own, if (length(rest)) paste0(
    rest, "_", INTERCEPT, " ~ ", format(further_coefficient_default("", paste0("_", INTERCEPT))),
    ", others ~ ", format(further_coefficient_default("", ""))))
}

# Data --------------------------------------------------------------------------------------------

# `offsets`: rows have an offset in each linear predictor, if only of zeros.
encode_regression <- function(model, data, binding = AS_GIVEN, offsets = FALSE) {
  # `$` then need not look for a method of the model's class
  model <- unclass(model)
  input <- regression_input(model, data)
  design <- input$design
  lag <- if (is.null(design$lag)) model_lag(model) else design$lag
  response <- family_response(model$family, input$y, design$response)
  observed <- observed_columns(c(list(response$y), if (!is.null(response$extra))
    list(response$extra)))
  design[c("varying_id", "column_ids")] <- observed[c("varying_id", "ids")]
  design$classes <- response$levels
  design$extra <- !is.null(response$extra)
  design$offset <- offsets || !is.null(input$offset)
  priors <- coefficient_priors(model, design$covariates)
  units <- response_units(model, response$y, input$offset)
  design$scaling <- column_scaling(model, input, design, are_relative(model, priors),
                                   binding$threads)
  parts <- lapply(model$formulas, function(formula) input_from_formula(formula, data, lag = lag))
  design$further <- lapply(parts, function(part) {
    own <- part$design
    own$offset <- offsets || !is.null(part$offset)
    own
  })
  if (lag > 0 && length(parts)) {
    design$carried <- unique(unlist(lapply(c(list(design), design$further), `[[`, "columns")))
    design$carry <- carry_of(as_frame(data), design$carried, lag)
  }
  further <- further_names(model$family)
  names <- further_labels(further, design$further)
  check_clash(design$covariates, unlist(names$user))
  further_priors <- lapply(further, function(name) {
    part <- design$further[[name]]
    # the logarithm of a size
    of_log <- list(centre = if (name == "sigma") log(units$scale) else 0, scale = 1)
    if (is.null(part)) return(lapply(model$auxiliary[name], with_units, units$scale))
    own <- further_coefficient_priors(model, name, names$user[[name]])
    of_columns <- stats::setNames(own, part$covariates)
    design$further[[name]]$scaling <<- column_scaling(
      model, parts[[name]], part, are_relative(model, of_columns),
      known = model$units$further[[name]])
    stats::setNames(coefficients_with_units(of_columns, of_log), names(own))
  })
  design$hint <- c(
    scale_hint(model, input, design, priors, units$scale),
    units_note(model, input, design, are_relative(model, priors),
               if (identical(model$family$link, "identity")) response$y))
  priors <- c(coefficients_with_units(priors, units), unlist(further_priors, recursive = FALSE))
  design$priors <- priors
  design$prior_units <- units
  of_priors <- prior_args(priors)
  sizes <- function(part) vapply(further, function(name)
    as.double(part(design$further[[name]])), 0, USE.NAMES = FALSE)
  list(
    rows = family_rows(input, parts, response, design, binding),
    own = TRUE,
    pairing = pairing_of(input, response$y, design$covariates),
    n = nrow(input$x),
    args = c(list(
      family = family_type(model$family),
      covariates = as.double(length(design$covariates)),
      offset = as.double(design$offset),
      extra = as.double(design$extra)
    ), if (is.numeric(model$family$df)) list(df = model$family$df),
    if (!is.null(model$family$sigma)) list(sigma = model$family$sigma),
    if (length(parts)) list(further_columns = sizes(function(own) length(own$covariates)),
                            further_offset = sizes(function(own) isTRUE(own$offset))),
    of_priors,
    scaling_args(c(list(design$scaling), lapply(further, function(name)
      design$further[[name]]$scaling)))),
    theta_names = c(design$covariates, unlist(names$theta, use.names = FALSE)),
    user_names = c(design$covariates, unlist(names$user, use.names = FALSE)),
    offset = NULL,
    observed = observed$observed,
    design = design
  )
}

# For models with priors of their own, whose rows are encoded as those of a regression.
without_priors <- function(encoded) {
  encoded$design[c("hint", "priors", "prior_units")] <- NULL
  encoded
}

#' Names of the further parameters, or of the coefficients of their formulas
#' @noRd
further_labels <- function(further, designs) {
  theta <- as.list(sprintf("log(%s)", further))
  user <- as.list(further)
  names(theta) <- names(user) <- further
  for (name in intersect(names(designs), further))
    theta[[name]] <- user[[name]] <- paste0(name, "_", designs[[name]]$covariates)
  list(theta = theta, user = user)
}

check_clash <- function(covariates, further) {
  clash <- covariates[covariates %in% further]
  if (length(clash))
    fail("`data` must have no covariate with the name of a parameter of the family, not `",
         clash[1], "`.")
}

encode_new_regression <- function(model, design, newdata, response = TRUE, argument = "newdata") {
  response <- response || has_trials(model, design, newdata)
  input <- regression_new(design, newdata, response, argument)
  parts <- lapply(design$further, function(own) {
    own$carry <- design$carry
    regression_new(own, newdata, FALSE, argument)
  })
  n <- nrow(input$x)
  found <- if (response) family_response(model$family, input$y, design$response, argument, design)
  else list(y = rep(NA_real_, n), extra = if (design$extra) rep(1, n))
  list(rows = family_rows(input, parts, found, design), n = n, offset = NULL)
}

# Do later data say how many trials each row has? Else it has one.
has_trials <- function(model, design, newdata) {
  if (!design$extra || !counts_trials(model$family)) return(FALSE)
  columns <- if (is.null(model$formula)) "y" else all.vars(model$formula[[2]])
  all(columns %in% colnames(newdata) | columns %in% names(newdata)) &&
    all(vapply(columns, function(name) !anyNA(as.data.frame(newdata)[[name]]), NA))
}

# Covariates, offset, the same of further parameters with a formula, the second column of the
# response, and the response.
family_rows <- function(input, parts, response, design, binding = AS_GIVEN) {
  x <- input$x
  n <- nrow(x)
  intercept <- ncol(x) < length(design$covariates)
  offset_of <- function(input, design)
    if (design$offset) cbind(if (is.null(input$offset)) rep(0, n) else input$offset)
  if (!design$offset && !length(parts) && is.null(response$extra))
    return(regression_rows(input, response$y, design, binding))
  more <- list(offset_of(input, design))
  scalings <- list(standardised_rows(design$scaling))
  before <- length(design$covariates) + design$offset
  for (name in names(parts)) {
    own <- design$further[[name]]
    check_finite_matrix(parts[[name]]$x, parts[[name]]$argument, own$covariates)
    more <- c(more, list(parts[[name]]$x, offset_of(parts[[name]], own)))
    scalings <- c(scalings, list(standardised_rows(own$scaling, before)))
    before <- before + length(own$covariates) + own$offset
  }
  more <- do.call(cbind, c(more, list(if (!is.null(response$extra)) cbind(response$extra))))
  check_finite_matrix(x, input$argument, trailing(design$covariates, ncol(x)))
  bind_rows(cbind(x, more), row_names(design, !is.null(response$extra)), binding,
            response$y, intercept = intercept, scalings = scalings)
}

row_names <- function(design, extra) {
  own <- lapply(names(design$further), function(name) {
    part <- design$further[[name]]
    paste0(name, "_", c(part$covariates, if (part$offset) "(offset)"))
  })
  c(design$covariates, if (design$offset) "(offset)", unlist(own), if (extra) "(extra)",
    design$response)
}

# Simulation --------------------------------------------------------------------------------------

decode_regression <- function(model, encoded, rows, data) {
  y <- rows[nrow(rows), ]
  levels <- encoded$design$classes
  if (!is.null(levels)) return(fill_response(model, data, factor(levels[y + 1], levels = levels)))
  if (!encoded$design$extra) return(fill_response(model, data, y))
  columns <- two_columns(model$formula)
  data <- as_frame(data)
  data[[columns[1]]] <- y
  data[[columns[2]]] <- if (counts_trials(model$family)) rows[nrow(rows) - 1, ] - y else 1
  data
}

# The columns of a response such as cbind(dead, alive) or Surv(time, status).
two_columns <- function(formula) {
  left <- formula[[2]]
  columns <- as.list(left)[-1]
  if (length(columns) != 2 || !all(vapply(columns, is.name, NA)))
    fail("`formula` must have two columns on its left to simulate data, as in ",
         "`cbind(dead, alive) ~ dose`, not `", deparse1(left), "`.")
  vapply(columns, as.character, "")
}

# A response of two columns, or one with levels, must be there: it has the trials or the levels.
template_regression <- function(model, data, n) {
  require_data(data)
  needed <- counts_trials(model$family) || is_pair(model$formula)
  if (!needed || !has_response(model, data))
    data <- fill_response(model, blank_response(model, data), 1)
  list(data = data, encoded = encode(model, data))
}

is_pair <- function(formula) !is.null(formula) && is.call(formula[[2]]) && length(formula[[2]]) > 2

has_response <- function(model, data) {
  if (is.null(model$formula)) return(!is.null(data$y))
  if (is_pair(model$formula)) return(TRUE)
  all(all.vars(model$formula[[2]]) %in% names(as_frame(data)))
}

# The response in the form of the data: a factor, or successes and failures.
replicated_regression <- function(fit, rows, offset) {
  y <- rows[nrow(rows), ]
  levels <- fit$design$classes
  if (!is.null(levels)) return(factor(levels[y + 1], levels = levels))
  if (!fit$design$extra || !counts_trials(fit$model$family)) return(y)
  both <- cbind(y, rows[nrow(rows) - 1, ] - y)
  pair <- as.list(fit$model$formula[[2]])[-1]
  plain <- length(pair) == 2 && all(vapply(pair, is.name, NA))
  colnames(both) <- if (plain) vapply(pair, as.character, "") else c("successes", "failures")
  both
}

# Predictions -------------------------------------------------------------------------------------

regression_link <- function(fit, rows, offset = NULL) {
  p <- length(fit$design$covariates)
  predictor_at(fit, rows, seq_len(p), 1, p, fit$design$offset)
}

#' The probabilities of failure and success
#' @noRd
binary_probabilities <- function(fit, encoded) {
  if (fit$design$extra)
    fail("`type` must be \"response\", \"link\", \"draws\" or \"density\" for a response of ",
         "successes and failures, whose rows have no class.")
  p <- regression_mean(fit, encoded)
  levels <- if (is.null(fit$design$classes)) c("0", "1") else fit$design$classes
  matrix(c(1 - p, p), ncol = 2, dimnames = list(NULL, levels))
}

BINARY_PREDICTIONS <- list(
  probability = binary_probabilities,
  class = function(fit, encoded) most_probable(binary_probabilities(fit, encoded))
)

#' The mean of each response, averaged over the posterior
#' @noRd
regression_mean <- function(fit, encoded) {
  design <- fit$design
  if (fit$model$family$link == "identity") {
    fit$parameters <- rbind(colSums(exp(fit$log_weights) * fit$parameters))
    return(as.vector(regression_link(fit, encoded$rows)))
  }
  over_blocks(encoded$rows, length(fit$log_weights), function(rows) {
    eta <- regression_link(fit, rows)
    extra <- if (design$extra) rows[nrow(rows) - 1, ]
    mean_over_draws(family_mean(fit$model$family, eta, extra, further_at(fit, rows)),
                    fit$log_weights)
  })
}

# A linear predictor: a matrix of rows x draws, from `count` rows of `rows` that begin at `at`.
predictor_at <- function(fit, rows, parameters, at, count, offset) {
  eta <- crossprod(rows[at - 1 + seq_len(count), , drop = FALSE],
                   t(fit$parameters[, parameters, drop = FALSE]))
  if (offset) eta + rows[at + count, ] else eta
}

# The further parameters by name, each a matrix of rows x draws.
further_at <- function(fit, rows) {
  design <- fit$design
  first <- length(design$covariates)
  at <- first + design$offset + 1
  found <- list()
  for (name in further_names(fit$model$family)) {
    own <- design$further[[name]]
    if (is.null(own)) {
      found[[name]] <- rep(exp(fit$parameters[, first + 1]), each = ncol(rows))
      first <- first + 1
    } else {
      count <- length(own$covariates)
      found[[name]] <- exp(predictor_at(fit, rows, first + seq_len(count), at, count, own$offset))
      first <- first + count
      at <- at + count + own$offset
    }
  }
  found
}

# Conflicts of prior and data ---------------------------------------------------------------------

# Coefficients, further ones too. Under a prior with heavy tails a distant value is no contradiction
# unless it is beyond the quantiles of CONFLICT_PROBABILITY.
prior_moments_regression <- function(model, encoded, words) {
  args <- encoded$args
  kinds <- PRIOR_KINDS[args$prior_kind + 1]
  positive <- prior_moments_positive(args, kinds, encoded)
  use <- which(kinds %in% REAL_PRIORS)
  location <- args$prior_location[use]
  scale <- args$prior_scale[use]
  heavy <- kinds[use] == "student_t"
  reach <- ifelse(heavy, stats::qt(1 - CONFLICT_PROBABILITY / 2, args$prior_shape[use]), 0) * scale
  rbind(moments_table(use, location, scale, encoded$theta_names[use],
                      least = ifelse(heavy, location - reach, Inf),
                      most = ifelse(heavy, location + reach, -Inf)), positive)
}

# Standard deviations, of the noise and of groups, far above what their prior says. (Far below it,
# a prior is only wide.)
prior_moments_positive <- function(args, kinds, encoded) {
  use <- which(kinds %in% c("half_normal", "half_student"))
  if (!length(use)) return(NULL)
  # a half t distribution with many degrees of freedom is half normal
  df <- ifelse(kinds[use] == "half_normal", Inf, args$prior_shape[use])
  scale <- args$prior_scale[use]
  limit <- log(scale * stats::qt(1 - CONFLICT_PROBABILITY / 4, df))
  subject <- sub("^log\\((.*)\\)$", "\\1", encoded$theta_names[use])
  # so that a value at the limit is at the distance that counts
  moments_table(use, log(scale), (limit - log(scale)) / CONFLICT_SDS, subject,
                text = paste0("the posterior of `", subject, "` lies beyond ",
                              format_each(signif(exp(limit), 3)), ", to which its prior gives a ",
                              "probability of ",
                              format(CONFLICT_PROBABILITY / 2, scientific = FALSE)),
                from = NA_character_, least = -Inf, most = limit)
}

#' Why rows have no finite evidence under a prior of sigma whose density at zero is positive
#'
#' All rows are looked at only if the first ones fit exactly.
#' @noRd
exact_fit <- function(prior, encoded) {
  if (is.null(prior) || .subset2(prior, "kind") == "inverse_gamma") return(NULL)
  if (!is.null(exact_rank(encoded))) EXACT_FIT
}

# The rank of the covariates if they fit the response, or a function of it, exactly, else NULL.
exact_rank <- function(encoded, of = identity) {
  use <- seq_along(encoded$design$covariates)
  rows <- encoded$rows
  fits <- function(n) {
    some <- rows[, seq_len(n), drop = FALSE]
    y <- of(some[nrow(some), ])
    offset <- if (encoded$design$offset) some[length(use) + 1, ] else 0
    if (!all(is.finite(y))) return(NULL)
    # relative to the largest, as the square of a large number is infinite
    x <- some[use, , drop = FALSE]
    sizes <- numeric(length(use))
    for (j in use) sizes[j] <- max(abs(x[j, ]))
    sizes[sizes == 0] <- 1
    size <- max(abs(y), abs(offset))
    if (size == 0) size <- 1
    least <- stats::.lm.fit(t.default(x / sizes), y / size - offset / size, tol = 1e-12)
    left <- sum(least$residuals^2)
    if (least$rank < n && isTRUE(left <= 1e-26 * sum((y / size)^2))) least$rank
  }
  if (!is.null(fits(min(ncol(rows), 2 * length(use) + 10)))) fits(ncol(rows))
}

EXACT_FIT <- paste("The coefficients fit the response exactly, so its evidence is infinite: give",
                   "the noise a known `sigma`, or the prior inverse_gamma(), which excludes small",
                   "values.")

# Regressions with a linear predictor, by family: counts, proportions, positive numbers, times, and
# numbers with unknown noise.

#' Regression with a choice of family
#'
#' Regressions as in [glm()], with a prior on every parameter: the response has a distribution of
#' the given family, which depends on a linear function of the covariates (the linear predictor)
#' and, in some families, on a further unknown parameter such as the standard deviation of the
#' noise.
#'
#' @param formula A formula as in [glm()]: factors, interactions, `.`, transformations and
#'   `offset()` are understood. `NULL`, the default, when the data are `list(x =, y =)`.
#' @param family A family of R: [gaussian()], [poisson()], [binomial()] (links `"logit"` and
#'   `"probit"`) or `Gamma(link = "log")`; one of this package: [student()], [negative_binomial()]
#'   or [weibull()]; or the name of one: `"gaussian"`, `"poisson"`, `"binomial"`, `"gamma"`,
#'   `"student"`, `"negative_binomial"` or `"weibull"`.
#' @param prior Prior of the coefficients: one for all, as `normal(0, 2.5)`, or a list with names of
#'   coefficients, in which one prior without a name is that of all others:
#'   `list(normal(0, 1), "(Intercept)" = normal(0, 10))`. See [priors].
#' @param auxiliary Prior of the family's further parameters: one prior, or a list named by them.
#'   `NULL`, the default, is `half_student(3, 2.5)` for `sigma` and `exponential(1)` for `size` and
#'   `shape`; the prior of `df` is given in `student(df =)`.
#'
#' @details
#' **Data** are as for [linear_regression()], but for the response:
#' \describe{
#'   \item{[poisson()], [negative_binomial()]}{non-negative whole numbers. Exposure is
#'     `offset(log(exposure))`, as in [glm()];}
#'   \item{[binomial()]}{`cbind(successes, failures)`; or a factor of two levels, of which the first
#'     is failure; or a logical or 0/1 vector. For two classes this has one coefficient vector,
#'     unlike [softmax_regression()];}
#'   \item{[Gamma()]}{positive numbers;}
#'   \item{[weibull()]}{positive times, or `survival::Surv(time, status)`, right-censored;}
#'   \item{[gaussian()], [student()]}{finite numbers.}
#' }
#' Offsets are part of the linear predictor. Rows with missing values are errors; there are no
#' `weights`.
#'
#' **Parameters**: the coefficients, with the names of [glm()], then `sigma` (of `gaussian()` and
#' `student()`), `size` (of `negative_binomial()`), `shape` (of `Gamma()` and `weibull()`) and `df`
#' (of `student()` with a prior). In unconstrained space they are logarithms, `log(sigma)` and so
#' on.
#'
#' All densities have their constants, so that families can be compared on the same response: a
#' Poisson regression with a negative binomial one, or a gamma with a Weibull regression.
#'
#' **Runs.** [sgais()] first looks for the posterior mode, from a weighted least-squares fit of the
#' rows, and replaces the annealing of the first rows by importance sampling around it where its
#' weights are even. This matters for counts and times: under a wide prior the likelihoods of draws
#' from the prior differ so much that annealing takes thousands of steps.
#'
#' [predict()] and `fitted()` give the mean of the response, for `cbind(successes, failures)` the
#' mean number of successes. `simulate()` of censored times simulates the times of events, without
#' censoring.
#'
#' @inherit gaussian_mean return
#'
#' @references McCullagh, P. and Nelder, J. A. (1989). *Generalized Linear Models*, second edition.
#' Chapman and Hall.
#'
#' @examples
#' counts <- regression(count ~ spray, family = poisson())
#' counts
#' fit <- evidence(counts, InsectSprays, seed = 1)
#' fit
#' coef(fit)
#'
#' # are the counts more variable than Poisson?
#' wide <- evidence(regression(count ~ spray, family = negative_binomial()), InsectSprays, seed = 1)
#' compare_models(poisson = fit, negative_binomial = wide)
#'
#' @seealso [priors], [families]
#' @family models
#' @export
regression <- function(formula = NULL, family = stats::gaussian(), prior = normal(0, 2.5),
                       auxiliary = NULL) {
  formula <- check_formula(formula, 2)
  check_has_terms(formula)
  family <- check_family(family)
  auxiliary <- check_auxiliary(auxiliary, family)
  type <- family_type(family)
  new_model("regression", formula, list(
    family = family, prior = check_priors(prior, "prior", TRUE), auxiliary = auxiliary
  ), encode_regression, encode_new_regression, describe_family_regression,
  decode = decode_regression, template = template_regression,
  plain = if (family_facts(family)$response == "numbers") plain_regression
          else function(model, design) NULL,
  predictions = list(response = regression_mean), fitted = regression_mean, one_number = TRUE,
  noise_sd = if (type == "gaussian")
    function(fit) sum(exp(fit$log_weights) * fit$draws[, "sigma"]),
  refuses = function(model, encoded) exact_fit(model$auxiliary$sigma, encoded),
  far_fit = if (type == "gaussian") far_fit_regression else function(...) NULL,
  prior_moments = prior_moments_regression, starts = REGRESSION_STARTS,
  advice = function(model) "Use scale() on the columns, or set `prior` and `auxiliary`.")
}

# Three optimisation runs start at weighted least-squares fits of the rows, one at a prior draw.
REGRESSION_STARTS <- 4

# Priors of the further parameters, by name.
check_auxiliary <- function(auxiliary, family) {
  names <- further_names(family)
  given <- if (is.null(auxiliary)) list() else check_priors(auxiliary, "auxiliary", FALSE)
  if (length(given) && !length(names))
    fail("`auxiliary` must be NULL for the family ", family$family,
         ", which has no further parameters.")
  # one prior for all is not for `df`, whose prior is in the family
  if ("df" %in% names && !"df" %in% names(given)) given$df <- family$df
  if (!length(names)) return(list())
  if (!is_prior(family$df) && "df" %in% names(given))
    fail("`auxiliary` must have no prior for `df`: write `student(df = )`.")
  match_priors(given, "auxiliary", names, further_defaults(family))
}

describe_family_regression <- function(model) {
  facts <- family_facts(model$family)
  known <- model$family$df
  c(list(
    facts$title,
    formula = if (is.null(model$formula)) "none: y on an intercept and all columns of x"
    else deparse1(model$formula),
    likelihood = paste0(facts$likelihood, if (model$family$link == "probit") " (probit)",
                        if (is.numeric(known)) paste0(", df ", show_setting(known))),
    prior = paste("coefficients", show_priors(model$prior))
  ), if (length(model$auxiliary)) list(auxiliary = show_priors(model$auxiliary)))
}

# Data --------------------------------------------------------------------------------------------

encode_regression <- function(model, data, binding = AS_GIVEN) {
  input <- regression_input(model, data)
  design <- input$design
  response <- family_response(model$family, input$y, design$response)
  design$classes <- response$levels
  design$extra <- !is.null(response$extra)
  design$offset <- !is.null(input$offset)
  further <- further_names(model$family)
  clash <- intersect(design$covariates, further)
  if (length(clash))
    fail("`data` must have no covariate with the name of a parameter of the family, not `",
         clash[1], "`.")
  priors <- c(match_priors(model$prior, "prior", design$covariates), model$auxiliary[further])
  list(
    rows = family_rows(input, response, design, binding),
    own = TRUE,
    pairing = pairing_of(input$x, response$y, design$covariates),
    n = nrow(input$x),
    args = c(list(
      family = family_type(model$family),
      covariates = as.double(length(design$covariates)),
      offset = as.double(design$offset),
      extra = as.double(design$extra)
    ), if (is.numeric(model$family$df)) list(df = model$family$df), prior_args(priors)),
    theta_names = c(design$covariates, if (length(further)) paste0("log(", further, ")")),
    user_names = c(design$covariates, further),
    offset = NULL,
    observed = c(response$y, response$extra),
    design = design
  )
}

encode_new_regression <- function(model, design, newdata, response = TRUE, argument = "newdata") {
  input <- regression_new(design, newdata, response, argument)
  n <- nrow(input$x)
  found <- if (response) family_response(model$family, input$y, design$response, argument, design)
  else list(y = rep(NA_real_, n), extra = if (design$extra) rep(1, n))
  if (is.null(input$offset) && design$offset) input$offset <- rep(0, n)
  list(rows = family_rows(input, found, design), n = n, offset = NULL)
}

# Covariates, offset, the second column of the response, and the response.
family_rows <- function(input, response, design, binding = AS_GIVEN) {
  x <- input$x
  intercept <- ncol(x) < length(design$covariates)
  more <- cbind(`(offset)` = if (design$offset) input$offset, `(extra)` = response$extra)
  if (is.null(more)) return(regression_rows(input, response$y, design, binding))
  check_finite_matrix(x, input$argument, utils::tail(design$covariates, ncol(x)))
  bind_rows(cbind(x, more), c(design$covariates, colnames(more), design$response), binding,
            response$y, intercept = intercept)
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
  data[[columns[2]]] <- if (model$family$family == "binomial") rows[nrow(rows) - 1, ] - y else 1
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
  needed <- model$family$family == "binomial" || is_pair(model$formula)
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

# Predictions -------------------------------------------------------------------------------------

#' The mean of each response, averaged over the posterior
#' @noRd
regression_mean <- function(fit, encoded) {
  design <- fit$design
  p <- length(design$covariates)
  weights <- exp(fit$log_weights)
  further <- exp(fit$parameters[, seq_len(ncol(fit$parameters)) > p, drop = FALSE])
  colnames(further) <- further_names(fit$model$family)
  over_blocks(encoded$rows, length(weights), function(rows) {
    eta <- t(rows[seq_len(p), , drop = FALSE]) %*% t(fit$parameters[, seq_len(p), drop = FALSE])
    if (design$offset) eta <- eta + rows[p + 1, ]
    extra <- if (design$extra) rows[nrow(rows) - 1, ]
    as.vector(family_mean(fit$model$family, eta, extra, further) %*% weights)
  })
}

# Conflicts of prior and data ---------------------------------------------------------------------

# Coefficients only. Under a prior with heavy tails a distant value is no contradiction unless it is
# beyond the quantiles of CONFLICT_PROBABILITY.
prior_moments_regression <- function(model, encoded, words) {
  p <- length(encoded$design$covariates)
  args <- encoded$args
  use <- seq_len(p)
  location <- args$prior_location[use]
  scale <- args$prior_scale[use]
  heavy <- args$prior_kind[use] == match("student_t", PRIOR_KINDS) - 1
  reach <- ifelse(heavy, stats::qt(1 - CONFLICT_PROBABILITY / 2, args$prior_shape[use]), 0) * scale
  moments_table(use, location, scale, encoded$theta_names[use],
                least = ifelse(heavy, location - reach, Inf),
                most = ifelse(heavy, location + reach, -Inf))
}

# Softmax (multinomial logistic) regression with a free weight vector for every class.

#' Softmax regression
#'
#' The class of an observation depends on its covariates by
#' \deqn{p(y_i = k \mid x_i) \propto \exp(x_i'w_k), \qquad w_{kj} \sim p_j,}{
#' p(y[i] = k | x[i]) proportional to exp(x[i]'w[k]), w[kj] ~ p[j],} with a free weight
#' vector for each of the \eqn{K} classes, the first included: the prior, not a reference class,
#' makes the weights identifiable, and treats the classes alike.
#'
#' @param formula A formula as in [lm()], with the class on its left and without an offset. `NULL`,
#'   the default, when the data are `list(x =, y =)`.
#' @param prior_sd Short for normal priors of all weights, those of the intercept included: their
#'   standard deviation, in units of log odds per unit of the covariate. One for all, or one for
#'   each covariate (shared by the classes), in the order of the covariates or named by them
#'   (`c("(Intercept)" = 10, x = 1)`).
#' @param prior,intercept,scale As in [regression()], for each covariate (shared by the classes).
#' @param ... Must be empty. There are no `weights`; `na.action` is an argument of [evidence()].
#'
#' @details
#' **Data** are as for [linear_regression()], but for the response: a factor, or character, logical
#' or whole-number labels. There must be at least two classes. The levels of a factor are the
#' classes, *whether or not they have rows*: that a possible class was not observed is information.
#' Use [droplevels()] to remove such classes. Labels that are not factors give one class for each
#' label in the data, in sorted order (`FALSE` and `TRUE` are always both classes); use a factor if
#' later data may have further classes.
#'
#' **Parameters**, both in unconstrained space and on the user's scale: the weights,
#' `class:covariate`, class by class.
#'
#' @inherit gaussian_mean return
#'
#' @references Bishop, C. M. (2006). *Pattern Recognition and Machine Learning*, section 4.3.4.
#' Springer.
#'
#' @examples
#' model <- softmax_regression(Species ~ Petal.Length + Petal.Width, prior_sd = 5)
#' model
#' f <- model_functions(model, iris)
#' f$names
#' f$log_lik(rep(0, f$dim)) # 150 rows of three equally probable classes
#'
#' @concept multinomial regression
#' @seealso [model_functions()]
#' @family models
#' @export
softmax_regression <- function(formula = NULL, prior_sd = NULL, prior = NULL, intercept = NULL,
                               scale = FALSE, ...) {
  own_names("prior", "intercept")
  refuse_named(...names())
  check_no_dots(...)
  formula <- check_formula(formula, 2)
  check_has_terms(formula)
  if (!is.null(formula) && !"." %in% all.vars(formula))
    refuse_offset(formula_terms(formula, NULL), "softmax_regression")
  new_model("softmax_regression", formula, c(
    coefficient_settings(prior, intercept, prior_sd, NULL, "logit"),
    list(scale = check_flag(scale, "scale"))
  ), encode_softmax, encode_new_softmax, describe_softmax, decode = decode_softmax,
  template = template_softmax, predictions = list(
    probability = function(fit, encoded) class_probabilities(fit, encoded$rows),
    class = function(fit, encoded) most_probable(class_probabilities(fit, encoded$rows))
  ),
  fitted = function(fit, encoded) class_probabilities(fit, encoded$rows),
  responses = function(fit, rows, offset) classes_of(rows, fit$design$levels),
  units = list(rows = function(model, rows) rows, of = function(model, constants)
    c(UNIT_ONE, list(columns = TRUE, constants = constants))),
  from_user = from_user_regression, prior_moments = prior_moments_softmax,
  centred = centred_model, advice = advice_regression)
}

describe_softmax <- function(model) {
  list(
    "Softmax regression",
    formula = if (is.null(model$formula)) "none: y on an intercept and all columns of x"
    else deparse1(model$formula),
    likelihood = "class probabilities proportional to exp(linear predictor of the class)",
    prior = show_coefficient_priors(model)
  )
}

encode_softmax <- function(model, data, binding = AS_GIVEN) {
  input <- regression_input(model, data)
  design <- input$design
  if (!is.null(design$terms)) refuse_offset(design$terms, "softmax_regression")
  design$levels <- class_levels(input$y, design$response)
  names <- as.vector(t(outer(design$levels, design$covariates, paste, sep = ":")))
  class <- class_codes(input, design, "data")
  priors <- coefficient_priors(model, design$covariates, "covariate")
  design$scaling <- column_scaling(model, input, design, are_relative(model, priors),
                                   binding$threads)
  design$hint <- c(scale_hint(model, input, design, priors, 1),
                   units_note(model, input, design, are_relative(model, priors), NULL))
  design$priors <- coefficients_with_units(priors, UNIT_ONE)
  design$prior_units <- UNIT_ONE
  rows <- regression_rows(input, class, design, binding)
  list(
    rows = rows,
    own = TRUE,
    observed = class,
    pairing = pairing_of(input, as.double(class) - is.factor(class), design$covariates),
    n = nrow(input$x),
    args = c(
      list(covariates = as.double(length(design$covariates)),
           classes = as.double(length(design$levels))),
      prior_args(design$priors),
      scaling_args(rep(list(design$scaling), length(design$levels)))
    ),
    theta_names = names,
    user_names = names,
    # one of the coefficient vectors is arbitrary
    free_parameters = length(names) - length(design$covariates),
    offset = NULL,
    design = design
  )
}

encode_new_softmax <- function(model, design, newdata, response = TRUE, argument = "newdata") {
  input <- regression_new(design, newdata, response, argument)
  class <- class_codes(input, design, argument)
  list(rows = regression_rows(input, class, design),
       n = nrow(input$x), offset = NULL)
}

# Classes are 0, 1, ..., K - 1 in C, which is the code of the factor minus one.
class_codes <- function(input, design, argument) {
  if (is.null(input$y)) return(rep(NA_real_, nrow(input$x)))
  check_classes(input$y, design$response, argument)
  known <- list(levels = design$levels, ordered = FALSE)
  # the codes of a factor with the same levels are used directly, because labels of a million rows
  # take long
  coded <- is.factor(input$y) && identical(levels(input$y), design$levels)
  if (coded) input$y else match_levels(as.character(input$y), known, design$response, argument)
}

# An error for counts or measurements given as classes, which would have a weight vector for each
# value.
MOST_NUMERIC_CLASSES <- 100
MOST_CLASSES <- 10000

class_levels <- function(y, name) {
  check_classes(y, name, "data")
  levels <- if (is.logical(y)) c("FALSE", "TRUE")
  else if (is.numeric(y)) as.character(sort(unique(as.vector(y))))
  else levels_of_column(y)
  if (length(levels) < 2)
    fail("`data` must have at least two classes in `", name, "`, not only ", show_text(levels),
         ".")
  if (is.numeric(y) && length(levels) > MOST_NUMERIC_CLASSES)
    fail("`data` must have at most ", MOST_NUMERIC_CLASSES, " whole-number labels in `", name,
         "` (or a factor, if so many classes are meant), not ", length(levels), ".")
  if (length(levels) > MOST_CLASSES)
    fail("`data` must have at most ", MOST_CLASSES, " classes in `", name, "`, not ",
         length(levels), ".")
  levels
}

check_classes <- function(y, name, argument) {
  whole <- is_plain_numeric(y) && all(is.na(y) | y == round(y))
  if (NCOL(y) != 1 || length(dim(y)) > 2 ||
      !(is.factor(y) || is.character(y) || is.logical(y) || whole))
    fail("`", argument, "` must have a factor, character, logical or whole-number response, not `",
         name,
         "` of type ", if (is_plain_numeric(y) && NCOL(y) == 1) "numeric with fractions"
         else column_kind(y), ".")
  check_finite_columns(stats::setNames(list(if (is.factor(y)) y else as.vector(y)), name), argument)
}

decode_softmax <- function(model, encoded, rows, data)
  fill_response(model, data, classes_of(rows, encoded$design$levels))

classes_of <- function(rows, levels) factor(levels[rows[nrow(rows), ] + 1], levels = levels)

# The response defines the classes.
template_softmax <- function(model, data, n) {
  require_data(data)
  if (!is.null(model$formula) && !is.name(model$formula[[2]]))
    fail("`formula` must have a column on its left to simulate data, not `",
         deparse1(model$formula[[2]]), "`.")
  list(data = data, encoded = encode(model, data))
}

# The classes have the same priors.
prior_moments_softmax <- function(model, encoded, words) {
  kinds <- grepl("^prior_", names(encoded$args))
  encoded$args[kinds] <- lapply(encoded$args[kinds], rep, encoded$args$classes)
  prior_moments_regression(model, encoded, words)
}

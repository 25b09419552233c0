# simulate() of models: data drawn from the prior, or given parameters.

#' Simulate data from a model
#'
#' Draws parameters from the prior, or takes given parameters, and then draws observations given
#' them: for prior predictive checks, simulation-based calibration, and accuracy tests with known
#' parameters.
#'
#' @param object A model, such as [linear_regression()].
#' @param nsim Number of data sets, a whole number of at least 1.
#' @param seed A whole number from 0 to 2^53 that makes the result reproducible without using R's
#'   generator; `NULL`, the default, takes the seed from R's generator, so that [set.seed()] works.
#' @param data The data that are not simulated, in the form for [model_functions()]. For a
#'   regression these are the covariates (a response may be absent, except for
#'   [softmax_regression()], where it defines the classes, and its first values for [lags()]; it
#'   only gives the units of default priors). For other models only the number of rows and the names
#'   of the columns are used, but for these units, and `n` may be given instead.
#' @param n Number of observations, for models without covariates.
#' @param parameters Parameters on the user's scale, as from [posterior_draws()] and [coef()]: a
#'   vector for all data sets or a matrix with a row for each. Names, if there are any, must be
#'   those of the parameters, in any order. `NULL`, the default, draws new ones from the prior for
#'   each data set.
#' @param unconstrained Whether `parameters` are in unconstrained space instead, as `fit$parameters`
#'   and the points of [model_functions()].
#' @param columns Number of columns, for models with latent variables without a formula.
#' @param ... Must be empty.
#'
#' @details
#' **Units.** Priors that are not given are in units of the data, see [regression()]. If `data` have
#' a response, they are those of a fit to these data. If not, the response has unit one, and
#' covariates are standardised as in a fit. Without `data` all units are one.
#'
#' Models with latent variables, such as [clustering()], draw everything from the prior: variances
#' and probabilities if they are unknown, the latent variables of all rows, and the rows. The
#' attribute `"parameters"` has what was drawn; what is integrated out is not in it.
#'
#' Log weights of draws, an attribute of `posterior_draws(fit)`, are not used: a data set simulated
#' from a weighted draw has the weight of this draw. For data sets of equal weight take
#' `posterior_draws(fit, weighted = FALSE, n = nsim)`, or [simulate()][simulate.evidence] of the fit
#' itself.
#'
#' @return Data in the form of `data`, with simulated responses; a list of such data sets if `nsim`
#' is above 1. The attribute `"parameters"` of each data set has its parameters, on the user's
#' scale. Simulated classes are factors with all levels, including classes without rows.
#'
#' @examples
#' simulate(gaussian_mean(sigma = 2), n = 5, seed = 1)
#'
#' model <- linear_regression(dist ~ speed, sigma = 15, prior_sd = 10)
#' drawn <- simulate(model, nsim = 3, seed = 1, data = cars)
#' sapply(drawn, attr, "parameters")
#'
#' # given parameters
#' noisy <- linear_regression(dist ~ speed, prior_sd = 10)
#' simulate(noisy, seed = 1, data = cars[1:3, ],
#'          parameters = c("(Intercept)" = -17, speed = 4, sigma = 15))
#'
#' # rows in three clusters, and to which each belongs
#' rows <- simulate(clustering(components = 3, prior_sd = 4), n = 10, seed = 1)
#' attr(rows, "parameters")
#'
#' @concept prior predictive check
#' @seealso [simulate.evidence()] for data like those of a fit, [model_functions()]
#' @importFrom stats simulate
#' @export
simulate.evidence_model <- function(object, nsim = 1, seed = NULL, data = NULL, n = NULL,
                                    parameters = NULL, unconstrained = FALSE, columns = 2, ...) {
  check_no_dots(...)
  unconstrained <- check_flag(unconstrained, "unconstrained")
  nsim <- check_count(nsim, "nsim", max = 1e6)
  if (!is.null(n)) n <- check_count(n, "n", max = 2^31 - 1)
  if (is.null(data) == is.null(n))
    fail("Exactly one of `data` and `n` must be given, not ", if (is.null(n)) "neither" else "both",
         ".")
  words <- seed_words(seed)
  if (is_latent(object)) return(simulated_states(object, nsim, words, data, n, columns, parameters))
  if (is.null(parameters)) require_proper(object, "`parameters` must be given")
  blank <- template(object, data, n)
  call <- model_caller(object, blank$encoded)
  drawn_points <- function() call("draw_prior", extra = list(n = nsim, seed = words))
  points <- if (is.null(parameters) && asks_r(object)) with_seed_words(words, drawn_points())
  else if (is.null(parameters)) drawn_points()
  else given_points(object, blank$encoded, parameters, unconstrained)
  if (!ncol(points) %in% c(1, nsim))
    fail("`parameters` must have one row, or one for each data set (", nsim, "), not ",
         ncol(points), ".")
  user <- call("to_user", points)
  drawn <- lapply(seq_len(nsim), function(i) {
    at <- if (ncol(points) == 1) 1 else i
    structure(simulated(object, blank, points[, at], next_seed(words, i)),
              parameters = stats::setNames(user[, at], blank$encoded$user_names))
  })
  if (nsim == 1) drawn[[1]] else drawn
}

#' Data sets of a model with latent variables, each with its own ones
#' @noRd
simulated_states <- function(model, nsim, words, data, n, columns, parameters) {
  if (!is.null(parameters))
    fail("`parameters` must be left out for a model with latent variables: it draws them, with ",
         "the latent variables, from the prior.")
  labels <- NULL
  if (!is.null(data)) {
    labels <- names(as_frame(data))
    n <- NROW(data)
    columns <- length(labels)
  }
  columns <- check_count(columns, "columns", 1, 1e5)
  drawn <- lapply(seq_len(nsim), function(i) {
    made <- part_of(model, "latent")$simulate(model, n, columns, next_seed(words, i))
    if (!is.null(labels) && is.null(model$formula)) names(made$data) <- labels
    structure(made$data, parameters = made$user)
  })
  if (nsim == 1) drawn[[1]] else drawn
}

#' Data with simulated responses
#'
#' @param blank A result of `template()`.
#' @noRd
simulated <- function(model, blank, theta, seed, at_once = !is_lagged(model)) {
  if (!at_once) return(simulated_forward(model, blank, theta, seed))
  draw <- part_of(model, "simulate_data")
  if (!is.null(draw))
    return(with_seed_words(seed, draw(model, theta, blank$data)))
  decode(model, blank$encoded, simulated_rows(model, blank$encoded, theta, seed), blank$data)
}

#' Rows with responses simulated at a point, by C or by the model's own R function
#' @noRd
simulated_rows <- function(model, encoded, theta, seed) {
  draw <- part_of(model, "simulate_rows")
  if (!is.null(draw)) return(with_seed_words(seed, draw(model, encoded, theta)))
  model_caller(model, encoded)("simulate", matrix(theta, ncol = 1), list(seed = seed))
}

#' A value that R's generator decides, from a seed of this package
#' @noRd
with_seed_words <- function(words, code) {
  force(words) # it may come from the generator that is put back at the end
  restore <- own_generator(words, keep = FALSE)
  on.exit(restore())
  code
}

#' Responses drawn from the first row to the last, each given those before it
#' @noRd
simulated_forward <- function(model, blank, theta, seed) {
  design <- blank$encoded$design
  data <- blank$data
  columns <- all.vars(model$formula[[2]])
  n <- nrow(data)
  at <- design$lag
  step <- 0
  while (at < n) {
    rows <- at + seq_len(min(response_lag(model), n - at))
    design$carry <- carry_of(data[seq.int(at - design$lag + 1, at), , drop = FALSE],
                             design$carried, design$lag)
    part <- data[rows, , drop = FALSE]
    encoded <- blank$encoded
    encoded[c("rows", "offset")] <- encode_new(model, design, part, TRUE,
                                               "data")[c("rows", "offset")]
    drawn <- simulated(model, list(data = part, encoded = encoded), theta, next_seed(seed, step),
                       at_once = TRUE)
    for (name in columns) data[[name]][rows] <- drawn[[name]]
    at <- at + length(rows)
    step <- step + 1
  }
  data
}

#' Put responses into the user's data
#' @noRd
fill_response <- function(model, data, values) {
  if (is.null(model$formula)) {
    data$y <- values
    return(data)
  }
  response <- response_column(model$formula)
  data <- as_frame(data)
  data[[response$name]] <- response$invert(values)
  data
}

# `data` with an allowed number as each response, whether or not there was one.
blank_response <- function(model, data) {
  if (is.null(model$formula)) {
    check_list(data, "data", FALSE)
    n <- NROW(data$x)
  } else {
    n <- nrow(as_frame(data))
  }
  fill_response(model, data, rep(0, n))
}

# The template of a regression needs covariates.
require_data <- function(data) {
  if (is.null(data)) fail("`data` must hold the covariates of a regression, not be NULL.")
}

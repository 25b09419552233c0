# Fits of rstan as models: the log density of the fitted program, from which that of the program
# without data is subtracted to get the likelihood.

#' An rstan fit as a model
#'
#' A `stanfit` object of the package rstan becomes a model for [evidence()]. Its log density is that
#' of prior and likelihood together. A second fit of the same parameters without the likelihood says
#' what the prior is: usually the same program with a data flag, as in the example.
#'
#' @param fit A `stanfit` object. Its draws are not used, so one without draws is enough
#'   (`rstan::sampling(program, data, chains = 0)`).
#' @param prior_fit A `stanfit` object with the same parameters whose log density is that of the
#'   prior alone. Its draws are the draws from the prior, unless there is a `draw_prior`.
#' @param draw_prior `function(n)`: `n` draws from the prior of the *unconstrained* parameters, a
#'   matrix with a row for each, or `NULL` for the draws of `prior_fit`.
#' @inheritParams tmb_model
#'
#' @details
#' **Constants.** Sampling statements such as `y ~ normal(mu, sigma)` leave constants out of rstan's
#' log density, so the evidence is wrong by an unknown number. Write `target += normal_lpdf(y | mu,
#' sigma)`, also for priors; and add the constant of a prior that is truncated by bounds, such as
#' `target += normal_lpdf(tau | 0, 5) + log(2)` for a positive `tau`. The function looks for `~` in
#' the programs and warns; it does not know about missing constants of truncated priors.
#' [check_model()] compares the density of the prior with its draws, and the constant up to eight
#' parameters.
#'
#' **Parameters** are those of the unconstrained space of Stan, with the Jacobian:
#' `rstan::constrain_pars(fit, fit_of_evidence$draws[i, ])` turns a draw into the parameters of the
#' program. All of them are sampled, also latent variables.
#'
#' **Many parameters.** Programs often have latent variables, whose posterior is far from normal.
#' Prefer [smc()] for them, which moves its particles until they have changed enough: on a mixed
#' model with 42 parameters [sgais()] was one nat too low with a standard error of 0.4, and its
#' importance-sampling check was inconclusive. With random effects integrated out ([tmb_model()])
#' the same model has six parameters, and the error is 0.02.
#'
#' **Draws from the prior** are those of `prior_fit` in random order, thinned to their effective
#' number, without replacement in a call of [evidence()]. A method that needs more of them stops
#' with an error: 4,000 are enough for [sgais()], [smc()] and [nested()] with their defaults.
#'
#' **Data** are in the object, so `data` is left out of [evidence()], and methods that add rows
#' chunk by chunk do not apply. Points at which Stan reports an error, such as an infinite scale,
#' are taken as impossible; the fit has a warning if any of them are where the posterior is.
#'
#' @inherit custom_model return
#'
#' @examples
#' \dontrun{
#' # compiling the program takes a minute
#' program <- rstan::stan_model(model_code = "
#'   data { int n; vector[n] y; int<lower=0, upper=1> prior_only; }
#'   parameters { real mu; real<lower=0> sigma; }
#'   model {
#'     target += normal_lpdf(mu | 0, 10);
#'     target += exponential_lpdf(sigma | 1);
#'     if (!prior_only) target += normal_lpdf(y | mu, sigma);
#'   }")
#' data <- list(n = 3, y = c(1.2, 0.4, 2.1), prior_only = 0)
#' fit <- rstan::sampling(program, data, chains = 0)
#' prior_fit <- rstan::sampling(program, replace(data, "prior_only", 1))
#' evidence(stanfit_model(fit, prior_fit, observed = data$y), seed = 1)
#' }
#'
#' @seealso [tmb_model()]
#' @family models
#' @export
stanfit_model <- function(fit, prior_fit, draw_prior = NULL, observed = NULL, n = NULL) {
  if (!requireNamespace("rstan", quietly = TRUE))
    fail("stanfit_model() needs the package rstan, which is not installed.")
  if (missing(prior_fit))
    fail("`prior_fit` must be given: a stanfit object of the same program without its likelihood.")
  d <- check_stanfit(fit, "fit")
  if (check_stanfit(prior_fit, "prior_fit") != d)
    fail("`prior_fit` must have the ", d, " unconstrained parameters of `fit`, not ",
         rstan::get_num_upars(prior_fit), ".")
  if (!is.null(draw_prior)) check_is_function(draw_prior, "draw_prior")
  else draw_prior <- draws_of_stanfit(prior_fit, "prior_fit")
  constants <- stan_constants(list(fit = fit, prior_fit = prior_fit))
  if (!is.null(constants)) warning(new_warning(constants))
  lost <- lost_points()
  prior <- stan_functions(prior_fit)
  whole <- stan_functions(fit)
  refuse_no_likelihood(whole$value, prior$value, d)
  log_likelihood <- function(theta) {
    value <- without_prior(whole$value(theta), prior$value(theta))
    if (!is.na(value)) return(value)
    lost$add(theta)
    -Inf
  }
  gradient <- function(theta) whole$gradient(theta) - prior$gradient(theta)
  object_model("stanfit_model", "Stan program", stan_names(fit, d), log_likelihood,
               list(log_prior = function(theta) if (is.na(value <- prior$value(theta))) -Inf
                    else value,
                    prior_gradient = prior$gradient, draw_prior = draw_prior),
               gradient, observed, check_observations(n, observed),
               function(...) c(constants, lost$doubts(...)),
               list(prior = "the log density of `prior_fit`"))
}

#' Whether this is a stanfit object that can be evaluated; its number of unconstrained parameters
#' @noRd
check_stanfit <- function(fit, name) {
  if (!inherits(fit, "stanfit")) refuse(fit, name, "a stanfit object of the package rstan")
  d <- tryCatch(rstan::get_num_upars(fit), error = function(e) {
    fail("`", name, "` cannot be evaluated (", conditionMessage(e), "). An object of another R ",
         "session must be made again, for which `chains = 0` is enough.")
  })
  if (d == 0) fail("`", name, "` must have at least one parameter, not 0.")
  d
}

#' Refuse a prior that is the posterior: the likelihood would be one everywhere
#'
#' @param whole,prior Log densities; they are compared at a few points around zero.
#' @noRd
refuse_no_likelihood <- function(whole, prior, d) {
  points <- outer(seq_len(d), seq_len(8), function(j, k) 1.5 * sin(3 * j + 7 * k))
  both <- cbind(apply(points, 2, whole), apply(points, 2, prior))
  both <- both[rowSums(!is.finite(both)) == 0, , drop = FALSE]
  if (nrow(both) > 0 && all(abs(both[, 1] - both[, 2]) <= 1e-9 * (1 + abs(both[, 1]))))
    fail("`prior_fit` must have the log density of the prior alone, but it has that of `fit`, so ",
         "that nothing is left for the likelihood: sample from the program without its ",
         "likelihood, as in the example.")
}

stan_names <- function(fit, d) {
  names <- tryCatch(fit@.MISC$stan_fit_instance$unconstrained_param_names(FALSE, FALSE),
                    error = function(e) NULL)
  if (length(names) == d) names else paste0("theta", seq_len(d))
}

#' Log density and gradient of a fit in unconstrained space; NaN where Stan has none
#' @noRd
stan_functions <- function(fit) {
  zeros <- numeric(rstan::get_num_upars(fit))
  value <- function(theta) {
    value <- tryCatch(rstan::log_prob(fit, unname(theta), adjust_transform = TRUE,
                                      gradient = FALSE), error = function(e) NaN)
    if (value == Inf || is.na(value)) NaN else value
  }
  gradient <- function(theta)
    tryCatch(as.double(rstan::grad_log_prob(fit, unname(theta), adjust_transform = TRUE)),
             error = function(e) zeros)
  list(value = value, gradient = gradient)
}

# Draws of the prior ------------------------------------------------------------------------------

#' A function that gives the draws of a fit, each once, in random order
#' @noRd
draws_of_stanfit <- function(fit, name) {
  pool <- unconstrained_draws(fit)
  if (is.null(pool))
    fail("`", name, "` must have draws, because all methods need draws from the prior: sample ",
         "from it, or give `draw_prior`.")
  pool_of_draws(pool, name)
}

pool_of_draws <- function(pool, name) {
  order <- NULL
  # the start of a call of evidence() is marked by restart()
  draw <- function(n) {
    if (is.null(order)) order <<- sample.int(nrow(pool))
    if (n > length(order))
      fail("`", name, "` must have more than ", nrow(pool), " independent draws for this method: ",
           "sample longer, or give `draw_prior`.")
    chosen <- order[seq_len(n)]
    order <<- order[-seq_len(n)]
    pool[chosen, , drop = FALSE]
  }
  structure(draw, restart = function() order <<- NULL)
}

#' The draws of a fit in unconstrained space, thinned to their effective number
#' @noRd
unconstrained_draws <- function(fit) {
  if (fit@mode != 0L || length(fit@sim$samples) == 0) return(NULL)
  draws <- rstan::extract(fit, permuted = TRUE)
  parameters <- setdiff(names(draws), "lp__")
  n <- length(draws$lp__)
  effective <- rstan::summary(fit, probs = 0.5)$summary[, "n_eff"]
  independent <- max(2, floor(min(effective, n, na.rm = TRUE)))
  keep <- round(seq(1, n, length.out = independent))
  one <- function(x, i) {
    shape <- dim(x)[-1]
    if (length(shape) == 0) return(as.double(x[i]))
    array(x[slice.index(x, 1) == i], shape)
  }
  rows <- lapply(keep, function(i)
    rstan::unconstrain_pars(fit, lapply(draws[parameters], one, i = i)))
  do.call(rbind, rows)
}

# Constants ---------------------------------------------------------------------------------------

#' A sentence about programs with sampling statements, or NULL
#' @noRd
stan_constants <- function(fits) {
  drops <- vapply(fits, function(fit) drops_constants(rstan::get_stancode(fit)), NA)
  if (!any(drops)) return(NULL)
  paste0("The Stan program of ", paste0("`", names(fits)[drops], "`", collapse = " and "),
         " has sampling statements (`~`), whose constants rstan leaves out: the log evidence is ",
         "wrong by an unknown number. Write `target += normal_lpdf(y | mu, sigma)` instead of ",
         "`y ~ normal(mu, sigma)`, also for priors.")
}

#' Whether a program has sampling statements, or densities without constants, outside of comments
#' @noRd
drops_constants <- function(code) {
  code <- paste(code, collapse = "\n")
  code <- gsub("\"[^\"\n]*\"", "", code)
  code <- gsub("(?s)/\\*.*?\\*/", "", code, perl = TRUE)
  code <- gsub("(//|#)[^\n]*", "", code)
  grepl("~|_lup[dm]f\\b", code)
}

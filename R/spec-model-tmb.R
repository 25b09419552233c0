# Objects of TMB and RTMB as models: their objective is minus a log density of the fixed parameters,
# in which random effects are integrated out by Laplace's approximation.

#' A TMB or RTMB object as a model
#'
#' The function of an object made by `MakeADFun()` of the packages TMB or RTMB becomes a likelihood,
#' so that [evidence()] gives the evidence of any model that these packages can fit. Random effects
#' (`random =` of `MakeADFun()`) are integrated out by the object itself, by Laplace's
#' approximation; only its fixed parameters are parameters of the model.
#'
#' @param object An object from `MakeADFun()`: a list with `par`, `fn`, `gr` and `env`. Its
#'   objective must be minus the log-likelihood with *all constants* (densities such as `dnorm(...,
#'   true)`), and the densities of the random effects must be part of it.
#' @param prior The prior of the fixed parameters, one of
#'   \itemize{
#'     \item prior objects such as [normal()]: one for all parameters, or a list named by
#'       parameters, in which one without a name is that of all others. A name that `object` gives
#'       to several parameters stands for all of them; single ones are called `beta[1]`, `beta[2]`;
#'     \item a `function(theta)`: the normalised log density;
#'     \item another object from `MakeADFun()` with the same parameters, whose objective is minus
#'       the normalised log density of the prior.
#'   }
#' @param logs Names of parameters that are logs of positive numbers, such as `"log_sigma"`. Their
#'   prior objects are priors of the positive number (`half_student(3, 10)` of sigma), and the
#'   Jacobian is added. Parameters are real numbers without bounds: a standard deviation must be a
#'   parameter by its log.
#' @param draw_prior `function(n)`: `n` draws from the prior, a matrix with a row for each, as in
#'   [custom_model()]. Only and always with a `prior` that is a function or a TMB object.
#' @param joint Whether the objective of `object` includes this prior, which is then subtracted.
#' @param observed Optional: the observations, such as the response. [compare_models()] refuses fits
#'   with other observations. Without it, it does not check that two objects have the same data.
#' @param n Number of observations, which the fit states; only for the reader. `NULL`, the default,
#'   for that of `observed`, or, if all data in an object of TMB have one number of rows, this;
#'   else it is not known.
#'
#' @details
#' **The evidence** is the integral of the marginal likelihood over the fixed parameters. The error
#' of the Laplace approximation of the random effects is part of the estimate and not of its
#' standard error; it is zero if they are normal given the data, as in linear mixed models.
#'
#' **Data** are in the object, so `data` is left out of [evidence()], and methods that add rows
#' chunk by chunk, such as `smc("data")`, do not apply. [sgais()] with its importance-sampling
#' check, [smc()], [nested()], [bridge()] and [laplace()] do.
#'
#' **Points without a value.** Where the inner optimisation of the random effects fails, the
#' objective is `NaN`. Draws from a wide prior often have such points. They are taken as impossible,
#' and the fit has a warning if any of them are where the posterior is.
#'
#' Each inner optimisation starts at the random effects of the best parameters known when the model
#' is made (after `nlminb(object$par, object$fn, object$gr)`, those of the maximum), so results are
#' reproducible. The object keeps its own state, except that it becomes silent.
#'
#' @inherit custom_model return
#'
#' @examples
#' \dontrun{
#' # needs RTMB or TMB, which the package itself does not
#' data(Orthodont, package = "nlme")
#' negative_log_likelihood <- function(p) {
#'   RTMB::getAll(p, Orthodont)
#'   -sum(RTMB::dnorm(u, 0, exp(log_tau), TRUE)) -
#'     sum(RTMB::dnorm(distance, beta[1] + beta[2] * (age - 11) + u[Subject], exp(log_sigma), TRUE))
#' }
#' start <- list(beta = c(24, 0), log_tau = 0, log_sigma = 0, u = numeric(27))
#' object <- RTMB::MakeADFun(negative_log_likelihood, start, random = "u", silent = TRUE)
#' model <- tmb_model(object, list(beta = normal(0, 30), half_student(3, 5)),
#'                    logs = c("log_tau", "log_sigma"))
#' evidence(model, seed = 1)
#' }
#'
#' @seealso [stanfit_model()]
#' @family models
#' @export
tmb_model <- function(object, prior, logs = NULL, draw_prior = NULL, joint = FALSE,
                      observed = NULL, n = NULL) {
  own_names("prior")
  check_tmb_object(object, "object")
  names <- distinct_names(names(object$par), length(object$par))
  if (missing(prior)) fail("`prior` must be given: a prior object, a list of them, or a function.")
  joint <- check_flag(joint, "joint")
  prior <- tmb_prior(prior, names, names(object$par), logs, draw_prior)
  evaluate <- tmb_functions(object, "object")
  lost <- lost_points()
  log_likelihood <- function(theta) {
    value <- without_prior(evaluate$value(theta), if (joint) prior$log_prior(theta) else 0)
    if (!is.na(value)) return(value)
    lost$add(theta)
    -Inf
  }
  if (is.null(prior$prior_gradient)) prior$prior_gradient <- slope_of(prior, length(names))
  gradient <- function(theta)
    evaluate$gradient(theta) - if (joint) prior$prior_gradient(theta) else 0
  object_model("tmb_model", "TMB object", names, log_likelihood, prior, gradient, observed,
               check_observations(n, observed, object$env$data), lost$doubts,
               list(random = random_effects(object), prior = prior$shown))
}

#' The number of observations behind a density; NA if it is not known
#'
#' @param data The data in an object of TMB, a list; one of RTMB has none.
#' @noRd
check_observations <- function(n, observed, data = NULL) {
  if (!is.null(n)) n <- check_count(n, "n", 1)
  if (!is.null(n) && !is.null(observed) && n != NROW(observed))
    fail("`n` must be the number of rows of `observed`, ", NROW(observed), ", not ", n, ".")
  if (!is.null(n)) return(n)
  if (!is.null(observed)) return(NROW(observed))
  rows <- unique(vapply(Filter(function(x) is.atomic(x) && NROW(x) > 1, data), NROW, 0L))
  if (length(rows) == 1) rows else NA_integer_
}

random_effects <- function(object) {
  n <- length(object$env$random)
  if (n) paste(n, "integrated out by Laplace's approximation") else "none"
}

#' The likelihood where the density of prior and likelihood is known; zero where the prior is
#' @noRd
without_prior <- function(both, prior)
  if (isTRUE(prior == -Inf) || isTRUE(both == -Inf)) -Inf else both - prior

#' The slope of a log prior density by central differences
#' @noRd
slope_of <- function(prior, d) {
  step <- NULL
  function(theta) {
    if (is.null(step)) step <<- difference_steps(prior)
    sides <- apart(matrix(theta, d), seq_len(d), step)
    at <- function(points) apply(points, 2, function(point)
      prior$log_prior(stats::setNames(point, names(theta))))
    (at(sides$above) - at(sides$below)) / sides$width
  }
}

#' Names of parameters that are distinct: those that occur several times get a number
#' @noRd
distinct_names <- function(names, n) {
  if (is.null(names)) names <- rep("theta", n)
  repeated <- names %in% names[duplicated(names)]
  place <- stats::ave(seq_along(names), names, FUN = seq_along)
  ifelse(repeated, paste0(names, "[", place, "]"), names)
}

is_tmb_object <- function(x)
  is.list(x) && is.numeric(x$par) && is.function(x$fn) && is.function(x$gr) &&
    is.environment(x$env)

check_tmb_object <- function(object, name) {
  if (!is_tmb_object(object))
    refuse(object, name, "an object from TMB::MakeADFun() or RTMB::MakeADFun()")
  if (length(object$par) == 0) fail("`", name, "` must have at least one fixed parameter, not 0.")
  if (is.function(object$env$beSilent)) object$env$beSilent()
  value <- tryCatch(suppressWarnings(tmb_functions(object, name)$value(object$par)),
                    error = function(e) {
    fail("`", name, "` cannot be evaluated at its own `par` (", conditionMessage(e),
         "). An object of another R session must be made again.")
  })
  if (!is.finite(value))
    fail("`", name, "` must have a finite objective at its own `par`, not ", -value, ".")
}

# What TMB keeps from one evaluation to the next: it is put back, and inner optimisations start at
# the same place.
TMB_STATE <- c("last.par", "last.par1", "last.par2", "last.par.ok", "last.par.best", "value.best",
               "random.start")

#' Log density (minus the objective) and gradient of an object, as functions of a point
#' @noRd
tmb_functions <- function(object, name) {
  env <- object$env
  kept <- Filter(function(x) exists(x, env, inherits = FALSE), TMB_STATE)
  best <- if (is.null(env$last.par.best)) env$par else env$last.par.best
  start <- if (length(env$random)) best[env$random]
  undisturbed <- function(f) function(theta) {
    state <- mget(kept, env)
    on.exit(list2env(state, env))
    if (!is.null(start)) assign("random.start", start, env)
    f(unname(theta))
  }
  list(
    value = undisturbed(function(theta) {
      value <- suppressWarnings(object$fn(theta))
      if (!is.numeric(value) || length(value) != 1)
        fail("`", name, "$fn` must return one number, not ", show_value(value), ".")
      value <- -as.double(value)
      if (is.na(value) || value == Inf) NaN else value
    }),
    gradient = undisturbed(function(theta) -as.double(suppressWarnings(object$gr(theta))))
  )
}

# Priors ------------------------------------------------------------------------------------------

#' The functions of a prior that is given in one of its three forms
#' @noRd
tmb_prior <- function(prior, names, base, logs, draw_prior) {
  if (is.function(prior) || is_tmb_object(prior)) {
    if (!is.null(logs)) fail("`logs` must be left out if `prior` is not a list of prior objects.")
    if (is.null(draw_prior))
      fail("`draw_prior` must be given, a function that draws from the prior: all methods need ",
           "draws, and `prior` has only a density.")
    check_is_function(draw_prior, "draw_prior")
    if (is.function(prior)) return(prior_of_function(prior, draw_prior))
    check_tmb_object(prior, "prior")
    if (length(prior$par) != length(names))
      fail("`prior` must have the ", length(names), " parameters of `object`, not ",
           length(prior$par), ".")
    evaluate <- tmb_functions(prior, "prior")
    return(list(log_prior = evaluate$value, prior_gradient = evaluate$gradient,
                draw_prior = draw_prior, shown = "a TMB object"))
  }
  if (!is.null(draw_prior))
    fail("`draw_prior` must be left out: prior objects have draws of their own.")
  if (!is_prior(prior) && !is.list(prior))
    refuse(prior, "prior", "a prior object, a list of them, a function or a TMB object")
  if (!is.null(logs) && !is.character(logs)) refuse(logs, "logs", "names of parameters")
  unknown <- setdiff(logs, c(names, base))
  if (length(unknown))
    fail("`logs` must be names of parameters (", show_names(names), "), not `", unknown[1], "`.")
  is_log <- names %in% logs | base %in% logs
  priors <- match_priors(spread_priors(if (is_prior(prior)) list(prior) else prior, names, base),
                         "prior", names)
  for (j in seq_along(names)) check_object_prior(priors[[j]], names[j], is_log[j])
  c(prior_functions(priors, is_log),
    list(shown = paste0(ifelse(is_log, paste0("exp(", names, ")"), names), " ~ ",
                        vapply(priors, format, ""))))
}

#' A prior under the name of several parameters becomes one for each of them
#' @noRd
spread_priors <- function(priors, names, base) {
  given <- if (is.null(names(priors))) rep("", length(priors)) else names(priors)
  if (length(priors) == 0 || sum(given == "") > 1 || anyDuplicated(given))
    fail("`prior` must be a list of prior objects, named by parameters but for at most one.")
  several <- given %in% base & !given %in% names
  single <- priors[!several]
  for (k in which(several)) {
    own <- setdiff(names[base == given[k]], given)
    single <- c(single, stats::setNames(rep(priors[k], length(own)), own))
  }
  single
}

check_object_prior <- function(prior, name, is_log) {
  argument <- paste0("prior$", name)
  if (!is_prior(prior)) refuse(prior, argument, "a prior object, such as `normal(0, 2.5)`")
  if (!is_log && !prior$kind %in% REAL_PRIORS)
    fail("`", argument, "` must be a prior of a real number, such as `normal(0, 2.5)`, not ",
         format(prior), ". If `", name, "` is the log of a positive number, name it in `logs`.")
  if (is_log) check_prior(prior, argument, real = FALSE)
}

prior_of_function <- function(prior, draw_prior) {
  list(log_prior = prior, prior_gradient = NULL, draw_prior = draw_prior, shown = "a function")
}

# Models whose functions are those of an object of another package --------------------------------

#' A custom model without rows, made from an object of another package
#'
#' @param prior A list: `log_prior`, `prior_gradient`, `draw_prior`.
#' @param n Number of observations, NA if not known.
#' @param doubts `function(model, points, log_weights, encoded)`: sentences about a fit, or NULL.
#' @param shown Named texts that describe the model.
#' @noRd
object_model <- function(name, title, parameters, log_likelihood, prior, gradient, observed, n,
                         doubts, shown) {
  model <- custom_model(parameters, log_likelihood, prior$log_prior, prior$draw_prior, gradient,
                        prior$prior_gradient)
  model$name <- name
  class(model) <- c(name, class(model))
  model$contract$asks_r <- "object"
  model$contract$doubts <- doubts
  model$contract$describe <- function(model) {
    c(list(paste0(title, ", ", count_of(length(parameters), "parameter")),
           parameters = shorten(paste(parameters, collapse = ", "), 60)), shown)
  }
  if (!is.null(observed) && !is.atomic(observed) && !is.data.frame(observed))
    refuse(observed, "observed", "a vector, a matrix or a data frame")
  force(n)
  prints <- if (!is.null(observed)) custom_prints(observed)$observed
  restart <- attr(prior$draw_prior, "restart")
  model$contract$encode <- function(model, data, binding = AS_GIVEN) {
    if (!is.null(restart)) restart()
    encoded <- encode_custom(model, data, binding)
    if (!is.null(prints)) encoded$observed <- prints
    encoded$observations <- n
    encoded
  }
  model
}

#' Points at which an object had no value, and the sentence about those near the posterior
#' @noRd
lost_points <- function(most = 2000) {
  points <- list()
  count <- 0
  list(
    add = function(theta) {
      count <<- count + 1
      points[[(count - 1) %% most + 1]] <<- unname(theta)
    },
    doubts = function(model, draws, log_weights, encoded) {
      lost <- points
      points <<- list()
      count <<- 0
      if (!length(lost)) return(NULL)
      near <- sum(near_draws(do.call(cbind, lost), draws, log_weights))
      if (near) say("no_value", count_of(near, "point"))
    }
  )
}

NEAR_DRAWS <- 1e-3 # probability of a normal posterior outside of which a point is not near

near_draws <- function(at, draws, log_weights) {
  d <- nrow(draws)
  moments <- stats::cov.wt(t(draws), exp(log_weights - max(log_weights)))
  root <- tryCatch(chol(moments$cov), error = function(e) NULL)
  if (is.null(root)) return(rep(FALSE, ncol(at)))
  z <- backsolve(root, at - moments$center, transpose = TRUE)
  colSums(z^2) < stats::qchisq(NEAR_DRAWS, d, lower.tail = FALSE)
}

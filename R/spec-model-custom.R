# A model made of the user's own R functions: any likelihood, or any integral over a prior.

#' A model of your own
#'
#' A likelihood as an R function, and a prior as [priors] or as R functions. All methods work with
#' such a model, [sgais()] and its importance-sampling check among them; gradients that are not
#' given are made by differences. The log-likelihood may be a sum over rows, or one in which rows
#' depend on earlier ones (a filter, a time series): which of the two it is, is found out before the
#' run, see Details.
#'
#' @param parameters Names of the parameters. They are real numbers without bounds, unless there are
#'   `bounds` or a `prior_transform`.
#' @param log_likelihood `function(theta, data)`, or `function(theta)` for a model without data: the
#'   log-likelihood at the named vector `theta`, as one number, or as one for each row of `data`.
#'   `-Inf` is allowed. `NaN` and `Inf` are errors, except where the prior has practically nothing
#'   (its log density is lower by 700 than at draws) and in searches for posterior modes: there they
#'   count as `-Inf`.
#' @param log_prior `function(theta)`: the log density of the prior, normalised. If it integrates to
#'   another number than one, the evidence is multiplied by that number. With up to eight
#'   parameters a fit has a warning if the density and the draws of `draw_prior` contradict each
#'   other; see also [check_model()].
#' @param draw_prior `function(n)`: `n` draws from that prior, a matrix with a row for each (a
#'   vector if there is one parameter).
#' @param gradient,prior_gradient Gradients of the log-likelihood and of the log prior density with
#'   respect to `theta`, functions of the same arguments; both or neither (`gradient` alone if there
#'   is a `prior`). Without them, methods that need gradients use central differences of the two
#'   functions.
#' @param vectorised Whether the functions take a matrix with a point in each row and return a value
#'   (or a row of the gradient) for each point. This is much faster.
#' @param simulate `NULL`, or `function(theta, data)`: data like `data`, drawn from the model at the
#'   named vector `theta`. Only what the model predicts may differ. If only a number of rows was
#'   asked for, `data` is a vector of so many `NA`. [simulate()][simulate.evidence_model], [bdmc()],
#'   [sandwich_check()] and `check_model(geweke = TRUE)` need it.
#' @param prior_transform `NULL`, or `function(u)`: parameters at a point of the unit cube, as for
#'   programs of nested sampling. The prior is that of these parameters for uniform `u`, so
#'   `log_prior`, `draw_prior` and `gradient` are left out. `u` is a named vector, or a matrix if
#'   `vectorised`. See the section on bounds.
#' @param bounds `NULL`, or the bounds of parameters, a list such as
#'   `list(sigma = c(0, Inf), p = c(0, 1))`. All functions take parameters inside their bounds, and
#'   `log_prior` is the density of these parameters.
#' @param prior `NULL`, or independent [priors] by parameter, such as
#'   `list(mean = normal(0, 10), sigma = half_normal(5))`: `log_prior`, `draw_prior`,
#'   `prior_gradient` and `bounds` are left out. At most one has no name, that of all others. A
#'   parameter whose prior is one of a positive number is positive.
#' @param gibbs `NULL`, or the values that discrete parameters can take, a list such as
#'   `list(label = 0:2, used = 0:1)`. See the section on discrete parameters.
#' @param modes `"one"`, or `"several"` if the posterior may have several modes: methods then look
#'   for more than one.
#'
#' @details
#' Data may be a data frame, a matrix or a vector. A model without data is any integral of
#' `exp(log_likelihood(theta))` over the prior; leave `data` out of [evidence()].
#'
#' **Likelihoods with memory.** Runs pass parts of the rows to `log_likelihood`, in an order of
#' their own, which is right if it is a sum over rows that are independent given `theta`. The
#' density of a row given earlier rows, as in a Kalman filter, a hidden Markov chain or GARCH, is no
#' such sum. So before a run the log-likelihood of all rows is compared with the sum over two parts,
#' at four draws from the prior (and `gradient` likewise). If they differ by more than rounding
#' (1e-6 of their size), `log_likelihood` always gets all rows, in the order of `data`: the fit has
#' a note, and methods that use the rows one after another, such as `smc("data")` and
#' [sequential()], are refused.
#'
#' **Gradients by differences** cost two evaluations for each parameter, so with ten parameters a
#' gradient costs as much as twenty densities; [nested()], and [smc()] with `kernel = slice()`, need
#' no gradients. The steps are 1e-5 of the prior's spread (or of `1 + abs(theta)` if this is less).
#' The density must be smooth at this scale: an integral or a differential equation that is solved
#' inside `log_likelihood` needs small tolerances. The modes and curvatures of the
#' importance-sampling check and of [laplace()] come from differences of densities with steps that
#' fit the posterior.
#'
#' The functions run in R, one call after another, for any number of `threads`. An error in one of
#' them, or an interrupt, stops the run. Random numbers drawn by them are determined by the `seed`
#' of the run.
#'
#' @section Bounds:
#' Methods work with real numbers without bounds. With `bounds` these are logarithms or logits of
#' parameters, and the prior density is multiplied by the derivative of the parameters; with
#' `prior_transform` they are standard normal quantiles of `u`, `qnorm(u)`. Draws, estimates and
#' predictions are the parameters that your functions take; `fit$parameters` has the real numbers.
#' With a `prior_transform` that is not smooth use [nested()], or [smc()] with `kernel = slice()`.
#'
#' @section Discrete parameters:
#' A parameter in `gibbs` takes one of two to 1,000 numbers: a label, whether a covariate is used,
#' the row of a change. Kernels leave it as it is and move the others. After each move every such
#' parameter is drawn from its conditional distribution given all others (a Gibbs step), which comes
#' from the density at each of its values: an evaluation for each value but one. Hundreds of labels
#' of hundreds of rows therefore take long. Where a sum over the labels can be written into
#' `log_likelihood`, that is better.
#'
#' [smc()], the default for these models, [ais()], [power_posterior()] and [likelihood_weighting()]
#' take them, with [hmc()], [mala()], [rwm()] or [slice()]. Other methods climb to modes or fit a
#' density to draws, so they refuse such a model, and fits have no importance-sampling check.
#' [crosscheck()] compares [smc()] by two kernels and [ais()]. The renewal of particles, by which
#' runs choose the number of moves, is that of the other parameters.
#'
#' With `prior` the values have equal probabilities, or those that it gives as numbers:
#' `prior = list(mean = normal(0, 3), label = c(0.5, 0.3, 0.2))`. Otherwise `log_prior` contains the
#' log probability of the values, and `draw_prior` returns them. `gradient` and `prior_gradient` are
#' by the other parameters alone, in their order. Use `modes = "several"` if labels can be
#' exchanged. `prior_transform` has no discrete parameters, and `bounds` are for the others.
#'
#' @return An object of class `"evidence_model"`.
#'
#' @examples
#' # a normal distribution
#' y <- c(1.2, 0.4, 2.1, -0.8, 1.5, -0.3, 0.9, -1.7)
#' model <- custom_model(
#'   c("mean", "sigma"),
#'   function(theta, data) dnorm(data, theta["mean"], theta["sigma"], log = TRUE),
#'   prior = list(mean = cauchy(0, 1), sigma = half_normal(2))
#' )
#' evidence(model, y, laplace(importance = 1000), seed = 1)
#'
#' # a standard deviation with a prior density as a function, and the same prior from the unit cube
#' log_lik <- function(theta, data) dnorm(data, 0, theta["sigma"], log = TRUE)
#' bounded <- custom_model("sigma", log_lik, function(theta) dexp(theta, log = TRUE), rexp,
#'                         bounds = list(sigma = c(0, Inf)))
#' evidence(bounded, y, laplace(importance = 1000), seed = 1)
#' cube <- custom_model("sigma", log_lik, prior_transform = function(u) qexp(u))
#' evidence(cube, y, nested(live = 20), seed = 1)
#'
#' # an integral without data
#' shell <- custom_model(
#'   c("x", "y"),
#'   log_likelihood = function(theta) dnorm(sqrt(rowSums(theta^2)), 2, 0.1, log = TRUE),
#'   log_prior = function(theta) ifelse(rowSums(abs(theta) > 6) == 0, -2 * log(12), -Inf),
#'   draw_prior = function(n) matrix(runif(2 * n, -6, 6), n),
#'   vectorised = TRUE
#' )
#' evidence(shell, method = nested(live = 50), seed = 1)
#'
#' # is a covariate used? An indicator, drawn by Gibbs steps
#' line <- custom_model(
#'   c("level", "slope", "used"),
#'   function(theta, data) {
#'     mean <- theta[, "level"] + outer(theta[, "slope"] * theta[, "used"], data$speed - 7)
#'     matrix(dnorm(rep(data$dist, each = nrow(theta)), mean, 10, log = TRUE), nrow(theta))
#'   },
#'   prior = list(level = normal(20, 20), slope = normal(0, 3)),
#'   gibbs = list(used = 0:1),
#'   vectorised = TRUE
#' )
#' fit <- evidence(line, cars[1:8, ], smc(particles = 200), seed = 1)
#' coef(fit)["used"] # its posterior probability
#'
#' @concept user-defined likelihood
#' @seealso [compiled_model()] for C.
#' @family models
#' @export
custom_model <- function(parameters, log_likelihood, log_prior, draw_prior, gradient = NULL,
                         prior_gradient = NULL, vectorised = FALSE, modes = c("one", "several"),
                         simulate = NULL, prior_transform = NULL, bounds = NULL, prior = NULL,
                         gibbs = NULL) {
  own_names("prior")
  check_parameter_names(parameters)
  gibbs <- check_gibbs(gibbs, parameters)
  check_gibbs_alone(gibbs, prior_transform, bounds)
  check_is_function(log_likelihood, "log_likelihood")
  vectorised <- check_flag(vectorised, "vectorised")
  alone <- missing(log_prior) && missing(draw_prior)
  if (!is.null(prior)) {
    prior <- check_custom_prior(prior, parameters, alone && is.null(prior_gradient) &&
                                  is.null(bounds) && is.null(prior_transform), vectorised, gibbs)
    bounds <- prior$bounds
    log_prior <- prior$log_prior
    draw_prior <- prior$draw_prior
  } else if (is.null(prior_transform)) {
    if (missing(log_prior) || missing(draw_prior))
      fail("`prior` must be given, or `log_prior` and `draw_prior`, or a `prior_transform`.")
    check_is_function(log_prior, "log_prior")
    check_is_function(draw_prior, "draw_prior")
  } else {
    check_prior_transform(prior_transform, alone, gradient, bounds)
    log_prior <- draw_prior <- NULL
  }
  if (!is.null(gradient)) check_is_function(gradient, "gradient")
  if (!is.null(prior)) prior_gradient <- prior$prior_gradient
  else if (is.null(gradient) != is.null(prior_gradient))
    fail("`gradient` and `prior_gradient` must be given together, or neither.")
  if (!is.null(prior_gradient)) check_is_function(prior_gradient, "prior_gradient")
  if (!is.null(simulate)) check_is_function(simulate, "simulate")
  scale <- custom_scale(parameters, prior_transform, bounds, vectorised)
  use <- list(log_likelihood = log_likelihood, log_prior = log_prior, draw_prior = draw_prior,
              gradient = gradient, prior_gradient = prior_gradient, simulate = simulate)
  if (!is.null(scale))
    use <- rescaled_functions(use, scale, parameters, vectorised,
                              real_parameters(parameters, gibbs))
  model <- new_model("custom_model", NULL, list(
    parameters = parameters, log_likelihood = use$log_likelihood, log_prior = use$log_prior,
    draw_prior = use$draw_prior, vectorised = vectorised,
    modes = check_choice(modes, "modes", c("one", "several")), gibbs = gibbs
  ), encode_custom, encode_new_custom, describe_custom,
  modes = function(model) model$modes, simulates = simulates_custom,
  simulate_data = if (!is.null(simulate)) simulate_custom, template = template_custom,
  no_data = no_data_custom,
  derivatives = function(model) if (is.null(model$gradient)) 0 else 1, asks_r = "user", starts = 0,
  prior_moments = prior_moments_custom, doubts = prior_doubts, limits = limits_custom,
  discrete = gibbs,
  from_user = if (!is.null(scale$from_user)) from_user_custom)
  model$gradient <- use$gradient
  model$prior_gradient <- use$prior_gradient
  model$simulate <- use$simulate
  model$scale <- scale
  model$shown_prior <- prior$shown
  model
}

simulates_custom <- function(model) {
  if (is.null(model$simulate)) return("not a custom_model() without `simulate`")
  if (length(formals(args(model$log_likelihood))) < 2) "not a custom_model() without data"
}

template_custom <- function(model, data, n) {
  reason <- simulates_custom(model)
  if (!is.null(reason)) fail("The model must be one that can simulate data, ", reason, ".")
  if (is.null(data)) data <- rep(NA_real_, n)
  list(data = data, encoded = encode(model, data))
}

simulate_custom <- function(model, theta, data) {
  drawn <- model$simulate(stats::setNames(theta, model$parameters), data)
  if (is.null(drawn) || !identical(NROW(drawn), NROW(data)) ||
      is.null(dim(drawn)) != is.null(dim(data)))
    fail("`simulate` must return data like `data`, of ", count_of(NROW(data), "row"), ", not ",
         show_value(drawn), ".")
  drawn
}

check_parameter_names <- function(parameters) {
  if (!is.character(parameters) || length(parameters) == 0 || anyNA(parameters) ||
      !all(validEnc(parameters) & nzchar(parameters)))
    refuse(parameters, "parameters", "names of the parameters")
  if (anyDuplicated(parameters))
    fail("`parameters` must be distinct, not `", parameters[duplicated(parameters)][1], "` twice.")
}

check_is_function <- function(f, name) if (!is.function(f)) refuse(f, name, "a function")

describe_custom <- function(model) {
  c(list(
    paste0("Custom model of ", count_of(length(model$parameters), "parameter")),
    parameters = shorten(paste(model$parameters, collapse = ", "), 60),
    gradients = if (is.null(model$gradient))
      paste0("central differences, ",
             2 * length(real_parameters(model$parameters, model$gibbs)), " evaluations each")
    else "given"
  ), describe_gibbs(model$gibbs), describe_custom_prior(model), list(
    functions = if (model$vectorised) "vectorised" else "one point at a time"
  ))
}

encode_custom <- function(model, data, binding = AS_GIVEN) {
  if (is.null(data)) no_data_custom(model)
  arguments <- formals(args(model$log_likelihood))
  if (!is.null(data) && length(arguments) == 1 && names(arguments) != "...")
    fail("`data` must be left out: `log_likelihood` takes the parameters only, and no data.")
  n <- custom_rows(data)
  prints <- custom_prints(data)
  list(
    rows = matrix(as.double(seq_len(n)), 1),
    n = n,
    without_rows = is.null(data),
    args = list(dim = as.double(length(model$parameters)), gradients = !is.null(model$gradient),
                several = model$modes == "several", scaled = !is.null(model$scale),
                answer = custom_answer(model, data, n),
                discrete = if (!is.null(model$gibbs))
                  lapply(model$parameters, function(name) as.double(model$gibbs[[name]]))),
    observed = prints$observed,
    in_order = prints$in_order,
    theta_names = if (is.null(model$scale)) model$parameters else model$scale$names,
    user_names = model$parameters,
    offset = NULL,
    design = list(columns = prints$columns, names = colnames(data))
  )
}

#' Number of rows: one for a model without data
#' @noRd
custom_rows <- function(data, argument = "data") {
  if (is.null(data)) return(1L)
  if (!is.atomic(data) && !is.data.frame(data))
    refuse(data, argument, "a data frame, a matrix or a vector")
  n <- NROW(data)
  check_some_rows(n, argument)
  n
}

no_data_custom <- function(model) {
  if (length(formals(args(model$log_likelihood))) > 1) fail("`data` must be given.")
  NULL
}

encode_new_custom <- function(model, design, newdata, response = TRUE, argument = "newdata") {
  n <- custom_rows(newdata, argument)
  list(rows = matrix(as.double(seq_len(n)), 1), n = n, offset = NULL,
       answer = custom_answer(model, newdata, n))
}

# Texts of warnings that are remembered, so that each is raised once.
WARNINGS_KEPT <- 20

# The functions for C -----------------------------------------------------------------------------

#' The function that C calls to evaluate the model's functions, at points (columns) and for rows;
#' its values are checked
#' @noRd
custom_answer <- function(model, data, n) {
  names <- model$parameters
  d <- length(names)
  real <- real_parameters(names, model$gibbs)
  every <- seq_len(n)
  with_data <- !is.null(data)
  part <- function(rows) {
    if (length(rows) == n && (n == 1 || identical(rows, as.double(every)))) return(data)
    if (is.null(dim(data))) data[rows] else data[rows, , drop = FALSE]
  }
  # values of a function at all points: a list, or for vectorised functions their result
  at_points <- function(f, theta, rows = NULL) {
    data <- if (!is.null(rows) && with_data) list(part(rows))
    if (model$vectorised) {
      points <- t(theta)
      colnames(points) <- names
      return(do.call(f, c(list(points), data), quote = TRUE))
    }
    rownames(theta) <- names
    if (is.null(data)) lapply(seq_len(ncol(theta)), function(i) f(theta[, i]))
    else lapply(seq_len(ncol(theta)), function(i) f(theta[, i], data[[1]]))
  }
  refuse_value <- function(what, theta, i, rule, value) {
    if (!is.null(theta) && !is.null(model$scale)) theta <- model$scale$to_user(unname(theta))
    fail("`", what, "` must return ", rule, ", not ", show_value(value),
         if (!is.null(theta)) paste0(", at ",
         paste0(names[seq_len(min(d, 4))], " = ", signif(theta[seq_len(min(d, 4)), i], 4),
                collapse = ", "),
         if (d > 4) ", ..."), ".")
  }
  # In climbs (`lenient`) and at points of which the prior has none, numbers that are not finite
  # count as -Inf: diverging moves go to such points.
  lenient <- FALSE
  least <- NULL
  is_hopeless <- function(theta) {
    if (is.null(least)) least <<- least_log_prior(log_prior(t(fixed_draws(model))))
    suppressWarnings(log_prior(theta)) < least
  }
  # numbers that may be -Inf
  check_values <- function(values, what, theta) {
    bad <- which(is.na(values) | values == Inf)
    if (length(bad) && !lenient) {
      wrong <- if (what == "log_prior") bad
      else bad[!is_hopeless(theta[, bad, drop = FALSE])]
      if (length(wrong))
        refuse_value(what, theta, wrong[1], "finite numbers or -Inf", values[wrong[1]])
    }
    values[bad] <- -Inf
    as.double(values)
  }
  # one number for each point; a vectorised function may return a column for each row of the data
  one_each <- function(values, what, theta, rows = 1) {
    m <- ncol(theta)
    if (model$vectorised) {
      if (!is_plain_numeric(values) && !is.logical(values))
        refuse_value(what, NULL, 1, "numbers", values)
      if (is.matrix(values) && nrow(values) == m && ncol(values) == rows) values <- rowSums(values)
      if (length(values) != m)
        fail("`", what, "` must return a value for each of the ", m,
             " points (rows of `theta`), not ", length(values), ".")
      return(check_values(values, what, theta))
    }
    sums <- numeric(m)
    for (i in seq_len(m)) {
      value <- values[[i]]
      if (!is_plain_numeric(value) && !is.logical(value))
        refuse_value(what, theta, i, "a number", value)
      if (length(value) != 1 && length(value) != rows)
        fail("`", what, "` must return one number",
             if (rows > 1) paste0(", or one for each of the ", rows, " rows"), ", not ",
             length(value), ".")
      sums[i] <- sum(value)
    }
    check_values(sums, what, theta)
  }
  gradients <- function(values, what, theta) {
    m <- ncol(theta)
    k <- length(real)
    if (model$vectorised) {
      if (!is.numeric(values) || !identical(dim(values), c(m, k)))
        fail("`", what, "` must return a matrix of ", m, " x ", k, ", a row for each point, not ",
             show_value(values), ".")
      values <- t(values)
    } else {
      for (i in seq_len(m)) if (!is.numeric(values[[i]]) || length(values[[i]]) != k)
        refuse_value(what, theta, i,
                     paste0(k, " numbers, one for each parameter", if (k < d) " not in `gibbs`"),
                     values[[i]])
      values <- unlist(values)
    }
    # the gradient is not used where the density is zero
    values <- as.double(ifelse(is.finite(values), values, 0))
    if (k == d) values else with_zeros(values, real, m)
  }
  with_zeros <- function(values, rows, m) {
    found <- matrix(0, d, m)
    found[rows, ] <- values
    as.double(found)
  }
  draws <- function(m) {
    values <- model$draw_prior(m)
    if (!is.numeric(values) || length(values) != m * d || d > 1 &&
        !identical(dim(values), c(as.integer(m), d)))
      fail("`draw_prior` must return a matrix of ", m, " x ", d, ", a row for each draw, not ",
           show_value(values), ".")
    if (!all(is.finite(values)))
      fail("`draw_prior` must return finite numbers, not ", values[!is.finite(values)][1], ".")
    values <- matrix(values, m)
    check_drawn_values(values, names, model$gibbs)
    as.double(t(values))
  }
  step <- NULL
  # central differences of a function that returns a value for each point, for some coordinates at
  # a time if there are many points and rows
  slopes <- function(values_at, theta, rows = 1) {
    if (is.null(step)) step <<- difference_steps(model)
    m <- ncol(theta)
    some <- max(1, min(d, DIFFERENCES_AT_ONCE %/% (2 * m * rows)))
    found <- matrix(0, d, m)
    for (first in if (length(real)) seq(1, length(real), some)) {
      coordinate <- real[first:min(length(real), first + some - 1)]
      sides <- apart(theta, coordinate, step)
      change <- values_at(sides$above) - values_at(sides$below)
      found[coordinate, ] <- matrix(change / sides$width, length(coordinate), m)
    }
    # next to a point of density zero there is no slope
    as.double(ifelse(is.finite(found), found, 0))
  }
  log_lik <- function(theta, rows)
    one_each(at_points(model$log_likelihood, theta, rows), "log_likelihood", theta, length(rows))
  log_prior <- function(theta) one_each(at_points(model$log_prior, theta), "log_prior", theta)
  each_row <- function(theta, rows) {
    values <- at_points(model$log_likelihood, theta, rows)
    if (!model$vectorised) values <- do.call(rbind, values)
    if (!is.numeric(values) || length(values) != ncol(theta) * length(rows))
      fail("`log_likelihood` must return a value for each row of the data for this, not their sum.")
    as.double(t(matrix(values, ncol(theta))))
  }
  values_of <- function(what, theta, rows)
    switch(what,
      log_lik = log_lik(theta, rows),
      log_prior = log_prior(theta),
      gradient = if (is.null(model$gradient))
        slopes(function(at) log_lik(at, rows), theta, length(rows))
      else gradients(at_points(model$gradient, theta, rows), "gradient", theta),
      prior_gradient = if (is.null(model$prior_gradient)) slopes(log_prior, theta)
      else gradients(at_points(model$prior_gradient, theta), "prior_gradient", theta),
      draw_prior = draws(ncol(theta)),
      to_user = as.double(model$scale$to_user(theta)),
      log_lik_each = each_row(theta, rows)
    )
  running <- function(what) switch(what,
    log_lik = , log_lik_each = "log_likelihood",
    gradient = if (is.null(model$gradient)) "log_likelihood" else what,
    to_user = "prior_transform",
    prior_gradient = if (is.null(model$prior_gradient)) "log_prior" else what, what)
  # a warning is raised once, not at each point
  raised <- character()
  once <- function(w) {
    text <- conditionMessage(w)
    if (text %in% raised) tryInvokeRestart("muffleWarning")
    if (length(raised) < WARNINGS_KEPT) raised <<- c(raised, text)
  }
  function(what, theta, rows, forgive = FALSE) {
    lenient <<- forgive
    named <- function(e) stop(with_function_name(e, running(what)))
    if (forgive)
      withCallingHandlers(suppressWarnings(values_of(what, theta, rows)), error = named)
    else withCallingHandlers(values_of(what, theta, rows), warning = once, error = named)
  }
}

# Points times rows in one call for differences, which limits the memory of vectorised functions.
DIFFERENCES_AT_ONCE <- 4e6
# Steps of the differences relative to the spread of the prior. With a prior that is far wider than
# the posterior they are relative to the parameter itself.
DIFFERENCE_STEP <- 1e-5

#' The points below and above each point (column) in each of some coordinates
#' @noRd
apart <- function(theta, coordinate, step) {
  m <- ncol(theta)
  k <- length(coordinate)
  above <- below <- theta[, rep(seq_len(m), each = k), drop = FALSE]
  at <- cbind(rep(coordinate, m), seq_len(m * k))
  h <- DIFFERENCE_STEP * pmin(step[at[, 1]], 1 + abs(above[at]))
  above[at] <- above[at] + h
  below[at] <- below[at] - h
  list(above = above, below = below, width = above[at] - below[at])
}

#' Draws from the prior, a row each, that are always the same
#' @noRd
fixed_draws <- function(model) {
  restore <- own_generator(c(0, 1), keep = FALSE)
  on.exit(restore())
  matrix(model$draw_prior(200), 200)
}

# A third is for the normal density of prior_integral(); the second number confirms a contradiction,
# as the error of few draws can be underestimated.
PRIOR_DRAWS <- c(1500, 6000)

#' Is the prior normalised, and are its draws from it? A sentence, or NULL if nothing speaks against
#' it or it cannot be known
#'
#' Estimates that use draws of the prior alone are right without the constant, others are not.
#' @noRd
prior_doubts <- function(model, points, log_weights, encoded) {
  if (!is.null(model$shown_prior)) return(NULL)
  restore <- own_generator(c(0, 2), keep = FALSE)
  on.exit(restore())
  for (m in PRIOR_DRAWS) {
    found <- or_null(suppressWarnings({
      draws <- t(matrix(model$draw_prior(m), m))
      pilot <- seq_len(m / 3)
      prior_integral(draws[, pilot, drop = FALSE], draws[, -pilot, drop = FALSE],
                     function(theta) prior_at(model, theta),
                     match(names(model$gibbs), model$parameters))
    }))
    if (!isFALSE(found$holds)) return(NULL)
  }
  size <- log(found$integral)
  number <- sprintf("%.3g", size)
  say("prior_apart", model$name, number, format(signif(found$se / found$integral, 1)), number)
}

# The log prior density at points in columns; custom_answer() checks its values.
prior_at <- function(model, theta) {
  rownames(theta) <- model$parameters
  if (model$vectorised) return(as.double(model$log_prior(t(theta))))
  vapply(seq_len(ncol(theta)), function(i) sum(model$log_prior(theta[, i])), 0)
}

#' Independent draws of parameters with few values, by their shares in a sample: `draw`, a function
#' of the numbers of points and of all parameters, and `log_density`
#' @noRd
shares_in <- function(pilot, few) {
  values <- lapply(few, function(j) unique(pilot[j, ]))
  shares <- Map(function(j, own) tabulate(match(pilot[j, ], own)) / ncol(pilot), few, values)
  list(
    draw = function(m, d) {
      at <- matrix(0, d, m)
      for (k in seq_along(few))
        at[few[k], ] <- values[[k]][sample.int(length(values[[k]]), m, TRUE, shares[[k]])]
      at
    },
    log_density = function(at) {
      sum <- numeric(ncol(at))
      for (k in seq_along(few)) {
        own <- log(shares[[k]])[match(at[few[k], ], values[[k]])]
        sum <- sum + ifelse(is.na(own), -Inf, own)
      }
      sum
    }
  )
}

#' The spread of the prior of each parameter
#' @noRd
difference_steps <- function(model) {
  spread <- apply(fixed_draws(model), 2, stats::mad)
  ifelse(is.finite(spread) & spread > 0, spread, 1)
}

# Densities that are smaller by this many nats than at draws from the prior count as zero: they are
# zero for R, which computes without logarithms.
HOPELESS <- 700

least_log_prior <- function(values) {
  # -Inf, below which is nothing, if no value is finite
  possible <- values[is.finite(values)]
  if (length(possible)) min(possible) - HOPELESS else -Inf
}

#' The integral of a density p up to a constant from draws: the average of q / p over draws from p,
#' for a normal q cut off where its density is low
#'
#' @param pilot,rest Draws, in columns: those that q is fitted to, and others.
#' @param log_p `function(theta)` of points in columns.
#' @param few Which parameters have few values: q has the shares of each in `pilot`.
#' @return A list: `integral`, its `se`, and whether it is one within its error (`holds`); or
#'   `not_known`, why there is none; or `impossible`, if the density of a draw is zero.
#' @noRd
prior_integral <- function(pilot, rest, log_p, few = integer()) {
  shares <- shares_in(pilot, few)
  real <- setdiff(seq_len(nrow(pilot)), few)
  all <- rest
  pilot <- pilot[real, , drop = FALSE]
  rest <- rest[real, , drop = FALSE]
  d <- nrow(pilot)
  half <- ncol(pilot)
  if (d > 8) return(list(not_known = "only for up to 8 parameters"))
  if (d == 0) return(list(not_known = "no parameter is a real number"))
  centre <- apply(pilot, 1, stats::median)
  spread <- prior_spread(pilot)
  # correlated where the draws are; heavy tails must not widen it
  inner <- t((pilot - centre) / spread)
  inner <- inner[rowSums(inner^2) <= stats::quantile(rowSums(inner^2), 0.9), , drop = FALSE]
  root <- tryCatch(chol(stats::cov(inner) + diag(1e-12, d)), error = function(e) NULL)
  if (is.null(root)) return(list(not_known = "the draws have no covariance matrix"))
  root <- 0.6 * root * rep(spread, each = d)
  log_root <- sum(log(diag(root)))
  edge <- stats::qchisq(0.95, d)
  log_q <- function(x) {
    z <- backsolve(root, x - centre, transpose = TRUE)
    square <- colSums(z^2)
    ifelse(square <= edge, -square / 2 - d / 2 * log(2 * pi) - log_root - log(0.95), -Inf)
  }
  ratio <- exp(log_q(rest) + shares$log_density(all) - log_p(all))
  if (!all(is.finite(ratio))) return(list(impossible = TRUE))
  # where the density is zero q has no part
  z <- matrix(stats::rnorm(d * half), d)
  z <- z[, colSums(z^2) <= edge, drop = FALSE]
  at <- shares$draw(ncol(z), nrow(all))
  at[real, ] <- centre + t(root) %*% z
  inside <- mean(is.finite(log_p(at)))
  if (sum(ratio)^2 / sum(ratio^2) < 100)
    return(list(not_known = "too few draws are where the test is"))
  se <- sqrt(stats::var(ratio) / length(ratio) + inside * (1 - inside) / ncol(z))
  integral <- inside / mean(ratio)
  list(integral = integral, se = se * integral / mean(ratio),
       holds = abs(mean(ratio) - inside) <= CHECK$z * se + 0.01)
}

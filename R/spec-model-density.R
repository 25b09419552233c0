# A model whose log density of a row is an expression that the user writes; it is differentiated and
# computed by C as a program (R/spec-expressions.R), without a compiler.

#' A regression from a log density
#'
#' Makes a model from the log density of one row, written in R. Parameters of the density may be
#' linear functions of covariates. The expression is differentiated and runs in C, in vectors of
#' rows, so that all methods work, at a speed close to that of [regression()]. No compiler is
#' needed.
#'
#' @param x A formula without left-hand side: `~` and the log density of one row, as a function of
#'   columns of the data, of predictors and of parameters.
#' @param ... Predictors and parameters, by name: a formula such as `mu = ~ x1 + x2` for a linear
#'   predictor, `mu = ~ 1` for one number; or a prior, such as `sigma = half_student(3, 2.5)`, for a
#'   parameter with this prior. At most eight.
#' @param prior Prior of the coefficients of predictors, in the forms of [regression()]: one for
#'   all, or a list named by coefficients. The default, `normal(0, 2.5)`, holds for intercepts, too;
#'   those of regression() have wider priors. Before you compare with a regression(), give both
#'   models the same priors.
#' @param mean `NULL`, or a formula `~` and the mean of the response as a function of predictors,
#'   parameters and columns, for [predict()]. It is known without this formula if the log density
#'   is a single density of R, as for `simulate`. If it is not known, [predict()] returns log
#'   densities.
#'
#' @param simulate `NULL`, or a formula that draws the response, such as
#'   `y ~ rnorm(n, mu, exp(s))`: on the left a column of the data, on the right numbers, as many as
#'   there are rows (`n`), as a function of predictors, parameters and other columns. If the log
#'   density is a single density of R, as `dnorm(y, mu, exp(s), log = TRUE)`, of one column, it is
#'   known without this formula.
#'
#' @details
#' `density()` is the generic of \pkg{stats}; `density_model()` does not need it. Both are the same.
#'
#' **The expression** may use arithmetic, comparisons, `&`, `|`, `!`, `ifelse()`, `pmin()`,
#' `pmax()`, `exp()`, `log()`, `log1p()`, `expm1()`, `log2()`, `log10()`, `sqrt()`, `abs()`,
#' `sin()`, `cos()`, `tanh()`, `atan()`, `lgamma()`, `digamma()`, `lbeta()`, `lchoose()` and
#' `lfactorial()`; the densities `dnorm()`, `dlnorm()`, `dt()`, `dcauchy()`, `dlogis()`, `dexp()`,
#' `dgamma()`, `dweibull()`, `dbeta()`, `dpois()`, `dgeom()`, `dnbinom()` and `dbinom()`, with or
#' without `log = TRUE`; and the probabilities `pnorm()`, `plogis()`, `pweibull()` and `pexp()`,
#' with `lower.tail` and `log.p`. Their arguments are those of R. Gamma functions are for positive
#' arguments. Names that are neither predictors nor columns of the data must be single numbers where
#' the formula was written.
#'
#' Logarithms of exponentials, of probabilities and of sums of these are simplified. With
#' `p = plogis(eta)`, the mixture `log(p * dnorm(y, a, s) + (1 - p) * dnorm(y, b, s))` does not
#' underflow.
#'
#' Predictors are real numbers. A standard deviation is written as `exp(s)`, a probability as
#' `plogis(p)`; or the parameter is given a prior of a positive number. The first argument of a
#' density with a restricted range, such as `dpois()`, must depend on the data only, and each row is
#' checked.
#'
#' For some rows and points the values are compared with those that R computes. An expression that
#' is not a number at some row is an error before any run. That it is a normalised density cannot be
#' checked; constants matter for the evidence.
#'
#' **The response** is the column, or are the columns, of which this is the density: fits to the
#' same response can be compared. A column that is only a parameter of a density of R, as `x` in
#' `dnorm(y, a + b * x, s, log = TRUE)`, is a covariate; all others are taken for responses. If that
#' is not so, as in `dnorm(y - b * x, 0, s, log = TRUE)`, write it in the first form, or use
#' `compare_models(same_rows = TRUE)`. `fitted()` and `residuals()` are known if `mean` is, and the
#' response is one column or that of `simulate`.
#'
#' Densities are assumed to be continuous functions of the predictors, and the posterior to have one
#' mode; use [nested()] if it may have several. A density may depend on a predictor or parameter by
#' comparisons alone, as on `a` in `dnorm(y, ifelse(x > a, m2, m1), 1, log = TRUE)`: it has no
#' gradient then, so the default is [smc()] with moves that need none, and methods that need
#' gradients or the curvature are refused.
#'
#' **Parameters**: the coefficients, named by predictor and covariate as `mu_(Intercept)` and
#' `mu_x1`, then the parameters with priors of their own; in unconstrained space those of positive
#' numbers are logarithms.
#'
#' **Data** are a data frame, or a matrix with column names, or a source of rows. Data are simulated
#' if the package knows how, see `simulate`.
#'
#' @inherit gaussian_mean return
#'
#' @examples
#' # linear regression whose noise depends on a covariate
#' model <- density(~ dnorm(dist, mu, exp(s), log = TRUE), mu = ~ speed, s = ~ speed,
#'                  prior = list(normal(0, 2.5), "mu_(Intercept)" = normal(0, 20)), mean = ~ mu)
#' fit <- evidence(model, cars, seed = 1)
#' fit
#' predict(fit, data.frame(speed = c(10, 20)))
#'
#' # counts with too many zeros
#' zeros <- density(~ ifelse(count == 0,
#'                           log(plogis(p) + plogis(-p) * exp(-exp(mu))),
#'                           plogis(-p, log.p = TRUE) + dpois(count, exp(mu), log = TRUE)),
#'                  mu = ~ spray, p = ~ 1, mean = ~ plogis(-p) * exp(mu),
#'                  simulate = count ~ rbinom(n, 1, plogis(-p)) * rpois(n, exp(mu)))
#' fit <- evidence(zeros, InsectSprays, seed = 1)
#' fit
#' predict(fit, data.frame(spray = c("A", "C")), interval = 0.9, seed = 1)
#'
#' @concept user-defined likelihood
#' @seealso [regression()], [priors], [custom_model()]
#' @family models
#' @importFrom stats density
#' @export
density.formula <- function(x, ..., prior = normal(0, 2.5), mean = NULL, simulate = NULL) {
  own_names("prior")
  expression <- check_one_sided(x, "x")
  x <- with_constants(x)
  parts <- check_density_parts(own_list(...))
  mean <- if (is.null(mean)) derived_mean(expression, names(parts))
  else check_one_sided(mean, "mean")
  predictors <- Filter(function(part) inherits(part, "formula"), parts)
  own <- Filter(is_prior, parts)
  own <- own[order(!vapply(own, function(p) p$kind %in% REAL_PRIORS, NA))]
  parts <- c(predictors, own)
  check_density_expression(expression, names(parts))
  simulate <- if (is.null(simulate)) derived_simulation(expression, names(parts))
  else check_simulation(simulate, setdiff(all.vars(expression), names(parts)))
  model <- new_model("density_model", NULL, list(
    expression = x, predictors = predictors, parameters = own,
    prior = check_priors(prior, "prior", TRUE), mean = mean, simulate = simulate
  ), encode_density, encode_new_density, describe_density, type = "density",
  predictions = if (!is.null(mean)) list(response = density_mean) else list(),
  fitted = if (!is.null(mean) && has_one_response(expression, names(parts), simulate)) density_mean,
  simulates = simulates_density, simulate_rows = simulate_density, decode = decode_density,
  template = template_density, responses = responses_density, from_user = from_user_density,
  one_number = TRUE, prior_moments = prior_moments_regression, starts = MODES_STARTS,
  advice = function(model) "Use scale() on the columns, or set `prior`.")
  # all that can be checked without data
  program <- density_program(model, function(name) TRUE)
  model$contract$stepped <- program$stepped
  model
}

#' @rdname density.formula
#' @export
density_model <- density.formula

check_one_sided <- function(x, name) {
  if (!inherits(x, "formula") || length(x) != 2)
    refuse(x, name, "a formula without left-hand side, such as `~ dnorm(y, mu, 1, log = TRUE)`")
  x[[2]]
}

MOST_PREDICTORS <- 8 # DENSITY_PREDICTORS in C

check_density_parts <- function(parts) {
  names <- if (is.null(names(parts))) rep("", length(parts)) else names(parts)
  if (length(parts) == 0)
    fail("`...` must have at least one predictor, such as `mu = ~ x`, not none.")
  if (length(parts) > MOST_PREDICTORS)
    fail("`...` must have at most ", MOST_PREDICTORS, " predictors and parameters, not ",
         length(parts), ".")
  if (!all(nzchar(names)) || anyDuplicated(names))
    fail("`...` must have a name for each predictor, each its own.")
  if (any(names != make.names(names)))
    fail("`...` must have names that can stand in an expression, not `",
         names[names != make.names(names)][1], "`.")
  for (name in names) {
    part <- parts[[name]]
    if (is_prior(part)) next
    if (is.data.frame(part)) fail("`", name, "` must not be a data frame.", DATA_ADVICE)
    check_one_sided_predictor(part, name)
    parts[[name]] <- with_constants(part)
  }
  parts
}

check_one_sided_predictor <- function(part, name) {
  if (!inherits(part, "formula") || length(part) != 2)
    refuse(part, name, "a formula such as `~ x`, or a prior such as `half_normal(1)`")
  if ("." %in% all.vars(part))
    fail("`", name, "` must name its covariates, not `", deparse1(part), "`.")
  require_terms(formula_terms(part, NULL), part)
}

# A term of the sum that is a density and not its logarithm is the most likely mistake.
check_density_expression <- function(e, names) {
  unused <- setdiff(names, all.vars(e))
  if (length(unused))
    fail("`x` must be a function of all predictors, and `", unused[1], "` is not in `",
         shorten(deparse1(e), 60), "`.")
  check_log_terms(e)
}

check_log_terms <- function(e) {
  if (!is.call(e) || !is_function_name(e[[1]])) return(invisible())
  name <- function_name(e[[1]])
  if (name %in% c("+", "-", "(")) for (part in as.list(e)[-1]) check_log_terms(part)
  if (name == "ifelse") for (part in as.list(e)[-(1:2)]) check_log_terms(part)
  if (is_density_of_r(e) && !has_log_argument(name, e))
    fail("`x` must be a log density: `", deparse1(e), "` is a density. Write `log = TRUE`.")
}

# Arguments that do not match are refused when the expression is read.
has_log_argument <- function(name, e) {
  tryCatch("log" %in% names(match.call(getExportedValue("stats", name), e)),
           error = function(problem) TRUE)
}

describe_density <- function(model) {
  predictors <- vapply(model$predictors, deparse1, "")
  c(list(
    "Regression from a log density",
    density = shorten(deparse1(model$expression[[2]]), 70)
  ), if (length(predictors)) list(predictors = paste(names(predictors), predictors)),
  list(prior = c(if (length(predictors)) paste("coefficients", show_priors(model$prior)),
                 if (length(model$parameters)) show_priors(model$parameters))))
}

# The program --------------------------------------------------------------------------------------

#' The expression as a program, and the columns of the data that it reads
#'
#' @param is_column `function(name)`: whether a name is a column of the data.
#' @return A list: `settings` for C, `columns`, `constants`, and `rules` for the data.
#' @noRd
density_program <- function(model, is_column) {
  reader <- density_reader(model, is_column)
  g <- reader$graph
  inputs <- unlist(reader$inputs, use.names = FALSE)
  value <- read_expression(reader, model$expression[[2]])
  slopes <- vapply(inputs, function(by) differentiate(g, value, by), 0L)
  idle <- !inputs %in% nodes_below(g, value)
  if (any(idle))
    fail("`x` must be a function of all predictors, and does not depend on `",
         names(reader$inputs)[idle][1], "`.")
  stepped <- names(reader$inputs)[slopes == constant_node(g, 0)]
  if (!length(reader$columns))
    fail("`x` must depend on the data, and `", shorten(deparse1(model$expression[[2]]), 60),
         "` has only predictors.")
  pairs <- unlist(lapply(seq_along(inputs), function(a) lapply(seq_len(a), function(b)
    differentiate(g, slopes[a], inputs[b]))))
  responses <- response_columns(model$expression[[2]], reader$columns)
  # last, as in rows of a regression
  for (name in c(responses, intersect(simulated_column(model$simulate), reader$columns)))
    reader$columns <- c(setdiff(reader$columns, name), name)
  list(
    settings = write_programs(g, unlist(reader$names[reader$columns]), inputs,
                              list(value = value, slope = slopes, both = c(value, slopes),
                                   curve = c(slopes, pairs))),
    columns = reader$columns, responses = responses, constants = reader$constants,
    rules = reader$rules, stepped = stepped
  )
}

#' The columns that are observed, and not covariates
#'
#' A column that is only a parameter of a density of R, as `x` in `dnorm(y, a + b * x, s)`, is a
#' covariate. All others may be responses, as time and status of a censored time are. The trials of
#' `dbinom()` belong to the response, as in `cbind(successes, failures)`.
#' @noRd
response_columns <- function(e, columns) {
  observed <- function(e) {
    if (is.name(e)) return(as.character(e))
    if (!is.call(e)) return(character())
    args <- as.list(e)[-1]
    if (is_density_of_r(e)) {
      call <- or_null(match.call(getExportedValue("stats", function_name(e[[1]])), e))
      if (!is.null(call)) args <- as.list(call)[c("x", if (!is.null(call$size) &&
        function_name(e[[1]]) == "dbinom") "size")]
    }
    unlist(lapply(args, observed))
  }
  found <- intersect(columns, observed(e))
  if (length(found)) found else columns
}

# One column of which `mean` and `simulate` speak.
has_one_response <- function(e, names, simulate) !is.null(simulate) ||
  length(response_columns(e, setdiff(all.vars(e), c(names, "pi")))) == 1

simulated_column <- function(simulate) if (!is.null(simulate)) as.character(simulate[[2]])

is_density_of_r <- function(e) {
  name <- if (is_function_name(e[[1]])) function_name(e[[1]]) else ""
  startsWith(name, "d") && name %in% names(UNDERSTOOD) && name != "digamma"
}

density_reader <- function(model, is_column) {
  reader <- new.env(parent = emptyenv())
  g <- reader$graph <- new_graph()
  of_predictors <- lapply(stats::setNames(nm = names(model$predictors)), function(name)
    input_node(g, name, if (is_one_number_formula(model$predictors[[name]])) LEVEL[["point"]]
               else LEVEL[["row"]]))
  of_parameters <- lapply(stats::setNames(nm = names(model$parameters)),
                          function(name) input_node(g, name, LEVEL[["point"]]))
  reader$inputs <- c(of_predictors, of_parameters)
  positive <- Filter(function(name) is_positive_prior(model$parameters[[name]]),
                     names(model$parameters))
  reader$names <- reader$inputs
  for (name in positive) reader$names[[name]] <- make(g, "exp", reader$inputs[[name]])
  reader$columns <- character()
  reader$constants <- list()
  reader$rules <- reader$when <- list()
  reader$constant <- function(name) if (!is_column(name)) density_constant(model, name)
  reader
}

is_positive_prior <- function(prior) !prior$kind %in% REAL_PRIORS

# A number where the formula was written; otherwise the name is that of a column.
density_constant <- function(model, name) {
  value <- get0(name, envir = environment(model$expression))
  if (is_one_number(value) && is.null(dim(value))) as.double(value)
}

is_one_number_formula <- function(formula) {
  terms <- stats::terms(formula)
  attr(terms, "intercept") == 1 && length(attr(terms, "term.labels")) == 0 &&
    is.null(attr(terms, "offset"))
}

# Data ---------------------------------------------------------------------------------------------

encode_density <- function(model, data, binding = AS_GIVEN) {
  data <- as_frame(data)
  program <- density_program(model, function(name) name %in% names(data))
  lag <- model_lag(model)
  parts <- lapply(varying_predictors(model), predictor_input, data = data, lag = lag)
  design <- list(columns = program$columns, density_of = program$responses,
                 constants = program$constants, rules = program$rules,
                 predictors = lapply(parts, `[[`, "design"), lag = lag)
  design$carried <- unique(unlist(lapply(design$predictors, `[[`, "columns")))
  design$carry <- carry_of(data, design$carried, lag)
  columns <- later_rows(expression_columns(data, design, "data"), lag)
  coefficients <- unlist(lapply(names(model$predictors), function(name)
    paste0(name, "_", if (is.null(parts[[name]])) INTERCEPT else parts[[name]]$design$covariates)))
  positive <- vapply(model$parameters, is_positive_prior, NA)
  own <- names(model$parameters)
  clash <- intersect(coefficients, own)
  if (length(clash))
    fail("`...` must have names that differ from those of coefficients, not `", clash[1], "`.")
  design$covariates <- c(coefficients, own[!positive])
  priors <- c(match_priors(model$prior, "prior", coefficients), model$parameters)
  design$priors <- priors
  blocks <- predictor_blocks(parts)
  design$used <- blocks$used
  observed <- observed_columns(columns[program$responses])
  design[c("varying_id", "column_ids")] <- observed[c("varying_id", "ids")]
  if (length(columns) > 1)
    design$read_ids <- sort(vapply(columns, fingerprint, ""), method = "radix")
  args <- c(list(width = blocks$width + length(program$columns),
                 columns = as.double(length(program$columns)),
                 predictors = predictor_numbers(model, parts, blocks),
                 positive = as.double(sum(positive))), program$settings, prior_args(priors))
  encoded <- list(
    rows = density_rows(parts, columns, design, binding), own = TRUE,
    pairing = density_pairing(parts, columns, program$responses), n = nrow(columns), args = args,
    theta_names = c(design$covariates, sprintf("log(%s)", own[positive])),
    user_names = c(design$covariates, own[positive]), offset = NULL,
    observed = observed$observed,
    design = design
  )
  check_density_values(model, encoded, parts, columns, "data")
  encoded$design$args <- args
  encoded
}

encode_new_density <- function(model, design, newdata, response = TRUE, argument = "newdata") {
  newdata <- as_frame(newdata, argument)
  parts <- lapply(design$predictors, function(predictor)
    new_from_formula(replace(predictor, "carry", list(design$carry)), newdata, TRUE, argument))
  columns <- later_rows(expression_columns(newdata, design, argument, response),
                        if (is.null(design$carry)) design$lag else 0)
  encoded <- list(rows = density_rows(parts, columns, design), n = nrow(columns), offset = NULL)
  if (response)
    check_density_values(model, c(encoded, list(design = design, args = design$args)), parts,
                         columns, argument, FALSE)
  encoded
}

# Without the first rows, whose lagged values are not known.
later_rows <- function(columns, lag) {
  if (lag == 0) return(columns)
  later <- lapply(columns, utils::tail, -lag)
  structure(later, class = "data.frame", row.names = .set_row_names(nrow(columns) - lag))
}

varying_predictors <- function(model) Filter(function(f) !is_one_number_formula(f),
                                             model$predictors)

#' The covariates of one predictor, as `input_from_formula()` has them for a regression
#' @noRd
predictor_input <- function(formula, data, lag) {
  terms <- formula_terms(formula, data)
  columns <- formula_columns(terms, data)
  frame <- without_first(build_frame(terms, data, columns), lag, "data")
  terms <- attr(frame, "terms")
  covariates <- names(frame)[setdiff(seq_along(frame), attr(terms, "offset"))]
  check_finite_columns(frame)
  check_covariates(frame[covariates])
  unused <- unused_levels(frame, covariates)
  check_text_covariates(frame, covariates, names(data))
  frame <- text_as_factors(frame, covariates)
  x <- frame_matrix(terms, frame)
  named <- make.unique(colnames(x))
  list(x = plain_matrix(x, named), offset = frame_offset(frame),
       paired = paired_columns(x, terms, data, attr(x, "assign")), design = list(
    terms = terms, columns = columns, lag = lag,
    kinds = vapply(frame[covariates], column_kind, ""),
    levels_of = frame_levels(.subset(frame, covariates)), contrasts = attr(x, "contrasts"),
    covariates = named, unused = unused_part(unused, FALSE, nrow(frame))))
}

#' The columns that the expression reads, as numbers
#' @noRd
expression_columns <- function(data, design, argument, response = TRUE) {
  columns <- lapply(stats::setNames(nm = design$columns), function(name) {
    if (!name %in% names(data)) {
      if (!response) return(rep(NA_real_, nrow(data)))
      refuse_missing_column(name, data, argument)
    }
    x <- data[[name]]
    if (!(is_plain_numeric(x) || is.logical(x)) || is.object(x) || !is.null(dim(x)))
      fail("`", argument, "` must have numeric or logical columns in the log density, not `", name,
           "` of type ", show_kind(x), ".")
    if (response) check_finite_columns(stats::setNames(list(x), name), argument)
    as.double(x)
  })
  columns <- structure(columns, class = "data.frame", row.names = .set_row_names(nrow(data)))
  if (response) check_rules(columns, design, argument)
  columns
}

# Which values the densities of the expression allow.
check_rules <- function(columns, design, argument) {
  known <- c(columns, design$constants)
  eval_rows <- function(e) rep_len(suppressWarnings(eval(e, known, asNamespace("stats"))),
                                   nrow(columns))
  for (rule in design$rules) {
    values <- eval_rows(rule$expression)
    applies <- rep(TRUE, nrow(columns))
    for (test in rule$when)
      if (all(all.vars(test) %in% names(known))) applies <- applies & as.logical(eval_rows(test))
    bad <- which(applies & !(rule$ok(values) %in% TRUE))
    if (length(bad))
      fail_in_row(bad[1], "`", argument, "` must have ", rule$rule, " as `",
                  deparse1(rule$expression), "` in ", rule$name, "(), not ",
                  format(values[bad[1]], digits = 7), " in row ")
  }
}

# Predictors with the same covariates and offset share columns of the rows.
predictor_blocks <- function(parts) {
  used <- integer()
  first <- numeric(length(parts))
  width <- 0
  for (k in seq_along(parts)) {
    same <- Filter(function(j) identical(parts[[j]]$x, parts[[k]]$x) &&
                     identical(parts[[j]]$offset, parts[[k]]$offset), used)
    if (length(same)) {
      first[k] <- first[same[1]]
      next
    }
    used <- c(used, k)
    first[k] <- width
    width <- width + ncol(parts[[k]]$x) + !is.null(parts[[k]]$offset)
  }
  list(used = used, first = stats::setNames(first, names(parts)), width = as.double(width))
}

# For each predictor and parameter: covariates, first column, offset, and whether it is one number.
predictor_numbers <- function(model, parts, blocks) {
  as.double(unlist(lapply(c(names(model$predictors), names(model$parameters)), function(name) {
    part <- parts[[name]]
    if (is.null(part)) return(c(1, 0, 0, 1))
    c(ncol(part$x), blocks$first[[name]], !is.null(part$offset), 0)
  })))
}

density_rows <- function(parts, columns, design, binding = AS_GIVEN) {
  pieces <- lapply(parts[design$used], function(part)
    if (is.null(part$offset)) part$x else cbind(part$x, `(offset)` = part$offset))
  x <- do.call(cbind, c(unname(pieces), list(as.matrix(columns))))
  if (length(parts)) check_finite_matrix(x[, seq_len(ncol(x) - ncol(columns)), drop = FALSE])
  rows <- bind_rows(x, make.unique(colnames(x)), binding)
  if (is.null(rows)) t(x) else rows # without a response its column is NA
}

# So that fits can be compared with those of regressions on the same response.
density_pairing <- function(parts, columns, responses) {
  if (length(responses) != 1) return(NULL)
  own <- columns[setdiff(names(columns), responses)]
  x <- do.call(cbind, c(unname(lapply(parts, function(part)
    if (is.null(part$paired)) part$x else part$paired)), if (length(own)) list(as.matrix(own))))
  if (is.null(x)) x <- matrix(1, nrow(columns), 1, dimnames = list(NULL, INTERCEPT))
  x <- x[, !duplicated(colnames(x)), drop = FALSE]
  pairing_of(list(x = x), columns[[responses]], colnames(x))
}

# Checks of values ---------------------------------------------------------------------------------

CHECKED_ROWS <- 500
# Predictors of such a size do not overflow.
CHECKED_REACH <- 30

#' Is the density a number at every row, and, for some rows and points, what R computes?
#'
#' @param compare Whether it is compared with R.
#' @noRd
check_density_values <- function(model, encoded, parts, columns, argument, compare = TRUE) {
  args <- encoded$args
  theta <- checked_points(args)
  strict <- c(args, strict = 1)
  centre <- log_lik_rows("density", strict, encoded$rows, theta[, 1, drop = FALSE])
  if (!compare && !anyNA(centre)) return(invisible())
  some <- unique(c(seq_len(min(nrow(columns), CHECKED_ROWS)),
                   utils::head(which(is.nan(centre)), CHECKED_ROWS)))
  few <- columns[some, , drop = FALSE]
  parts <- lapply(parts, function(part) list(x = part$x[some, , drop = FALSE],
                                             offset = part$offset[some], design = part$design))
  rows <- t(density_rows_of(parts, few, encoded$design))
  ours <- log_lik_rows("density", strict, rows, theta)
  for (k in seq_len(ncol(theta))) {
    values <- predictor_values(model, parts, theta[, k], length(some))
    near <- Reduce(`&`, lapply(values, function(v) abs(v) < CHECKED_REACH))
    theirs <- density_in_r(model, few, values)
    refuse_nan(ours[, k], theirs, near, values, some, argument)
    refuse_difference(model, ours[, k], theirs, near, some)
  }
}

density_rows_of <- function(parts, columns, design) {
  pieces <- lapply(parts[design$used], function(part) cbind(part$x, part$offset))
  unname(do.call(cbind, c(unname(pieces), list(as.matrix(columns)))))
}

# The centre of the prior, and points around it.
checked_points <- function(args) {
  real <- args$prior_kind %in% (match(REAL_PRIORS, PRIOR_KINDS) - 1)
  centre <- ifelse(real, args$prior_location, log(args$prior_scale))
  step <- ifelse(real, pmin(args$prior_scale, 2), 0.7)
  signs <- function(k) (-1)^(seq_along(centre) %/% k)
  cbind(centre, centre + 0.3 * step * signs(1), centre - 0.45 * step * signs(1),
        centre + 0.37 * step * signs(2))
}

#' Predictors and parameters on the user's scale
#' @noRd
predictor_values <- function(model, parts, theta, n) {
  at <- 0
  take <- function(count) {
    at <<- at + count
    theta[at - count + seq_len(count)]
  }
  predictors <- lapply(stats::setNames(nm = names(model$predictors)), function(name) {
    part <- parts[[name]]
    if (is.null(part)) return(rep(take(1), n))
    as.vector(part$x %*% take(ncol(part$x))) + if (is.null(part$offset)) 0 else part$offset
  })
  c(predictors, lapply(model$parameters, function(prior)
    rep(if (is_positive_prior(prior)) exp(take(1)) else take(1), n)))
}

density_in_r <- function(model, columns, values) {
  found <- suppressWarnings(eval(model$expression[[2]], c(values, columns),
                                 environment(model$expression)))
  if (!is.numeric(found) || length(found) != nrow(columns))
    fail("`x` must have a value for each row, not ", show_value(found), ".")
  found
}

refuse_nan <- function(ours, theirs, near, values, rows, argument) {
  bad <- which(near & (is.nan(ours) | ours == Inf))
  if (!length(bad)) return(invisible())
  at <- vapply(values, function(v) v[bad[1]], 0)
  fail_in_row(rows[bad[1]], "`x` must be a number or -Inf for all values of the predictors, not ",
              ours[bad[1]], " at ", paste0(names(at), " = ", signif(at, 4), collapse = ", "),
              ". Predictors are real numbers: is a standard deviation written as exp(), a ",
              "probability as plogis()? `", argument, "` row ")
}

refuse_difference <- function(model, ours, theirs, near, rows) {
  differ <- abs(ours - theirs) > 1e-6 * (1 + abs(theirs))
  bad <- which(near & (is.nan(theirs) | (differ %in% TRUE)))
  if (length(bad))
    fail_in_row(rows[bad[1]], "`x` must mean the same in R and in this package: R gives ",
                format(theirs[bad[1]], digits = 9), ", this package ",
                format(ours[bad[1]], digits = 9), ". Is a function of the expression redefined? ",
                "This is in row ")
}

# Predictions --------------------------------------------------------------------------------------

#' The mean of each response, averaged over the posterior
#' @noRd
density_mean <- function(fit, encoded) {
  over_blocks(encoded$rows, length(fit$log_weights), function(rows) {
    values <- density_draws(fit, rows)
    columns <- utils::tail(seq_len(nrow(rows)), length(fit$design$columns))
    data <- lapply(stats::setNames(columns, fit$design$columns), function(k) rows[k, ])
    mean <- eval(fit$model$mean, c(values, data), environment(fit$model$expression))
    if (length(mean) == 1) return(rep(mean, ncol(rows)))
    mean_over_draws(matrix(mean, ncol(rows)), fit$log_weights)
  })
}

# Predictors and parameters: a row for each row, a column for each draw.
density_draws <- function(fit, rows) {
  model <- fit$model
  numbers <- matrix(fit$args$predictors, 4)
  names <- c(names(model$predictors), names(model$parameters))
  first <- cumsum(c(0, numbers[1, ]))
  values <- lapply(seq_along(names), function(k) {
    theta <- t(fit$parameters[, first[k] + seq_len(numbers[1, k]), drop = FALSE])
    prior <- model$parameters[[names[k]]]
    if (!is.null(prior) && is_positive_prior(prior)) theta <- exp(theta)
    if (numbers[4, k] == 1) return(theta[rep(1, ncol(rows)), , drop = FALSE])
    at <- numbers[2, k] + seq_len(numbers[1, k])
    eta <- t(rows[at, , drop = FALSE]) %*% theta
    if (numbers[3, k] == 1) eta + rows[max(at) + 1, ] else eta
  })
  stats::setNames(values, names)
}

# Simulation ---------------------------------------------------------------------------------------

check_simulation <- function(simulate, columns) {
  if (!inherits(simulate, "formula") || length(simulate) != 3 || !is.name(simulate[[2]]))
    refuse(simulate, "simulate", "a formula such as `y ~ rnorm(n, mu, exp(s))`")
  if (!as.character(simulate[[2]]) %in% columns)
    fail("`simulate` must draw a column of the log density, ", show_names(columns), ", not `",
         simulate[[2]], "`.")
  simulate
}

# Densities of R whose draws have the same arguments.
DRAWN_BY_R <- c("dnorm", "dlnorm", "dt", "dcauchy", "dlogis", "dexp", "dgamma", "dweibull", "dbeta",
                "dpois", "dgeom", "dnbinom", "dbinom")

#' A log density that is a single density of a column: its name, the column and its arguments
#' @param names Predictors and parameters, which are no columns.
#' @noRd
single_density <- function(e, names) {
  while (is.call(e) && identical(e[[1]], quote(`(`))) e <- e[[2]]
  name <- if (is.call(e) && is_function_name(e[[1]])) function_name(e[[1]]) else ""
  if (!name %in% DRAWN_BY_R) return(NULL)
  call <- tryCatch(match.call(getExportedValue("stats", name), e), error = function(problem) NULL)
  if (!is.name(call$x) || as.character(call$x) %in% names) return(NULL)
  given <- as.list(call)[-1]
  list(name = name, column = call$x, given = given[setdiff(names(given), c("x", "log"))])
}

#' The formula that draws the response of such a log density
#' @noRd
derived_simulation <- function(e, names) {
  found <- single_density(e, names)
  if (is.null(found)) return(NULL)
  draw <- call("::", quote(stats), as.name(sub("^d", "r", found$name)))
  formula_of_sides(found$column, as.call(c(draw, list(n = quote(n)), found$given)))
}

# Means of densities of R, as expressions of their arguments.
MEANS_BY_R <- list(
  dnorm = quote(mean), dlnorm = quote(exp(meanlog + sdlog^2 / 2)), dlogis = quote(location),
  dexp = quote(1 / rate), dgamma = quote(shape / rate), dpois = quote(lambda),
  dweibull = quote(scale * gamma(1 + 1 / shape)), dbeta = quote(shape1 / (shape1 + shape2)),
  dgeom = quote((1 - prob) / prob), dbinom = quote(size * prob),
  dnbinom = quote(size * (1 - prob) / prob)
)

#' The mean of such a log density, or NULL
#' @noRd
derived_mean <- function(e, names) {
  found <- single_density(e, names)
  mean <- if (!is.null(found)) MEANS_BY_R[[found$name]]
  if (is.null(mean)) return(NULL)
  given <- found$given
  if (!is.null(given$ncp)) return(NULL)
  # the two arguments that may be given in two forms
  if (found$name == "dnbinom" && !is.null(given$mu)) return(given$mu)
  if (found$name == "dgamma" && !is.null(given$scale)) given$rate <- call("/", 1, given$scale)
  usual <- formals(getExportedValue("stats", found$name))
  all <- utils::modifyList(as.list(usual)[!vapply(usual, is.name, NA)], given)
  if (!base::all(all.vars(mean) %in% names(all))) return(NULL)
  do.call(substitute, list(mean, all))
}

formula_of_sides <- function(left, right) eval(call("~", left, right), baseenv())

simulates_density <- function(model) {
  if (is_lagged(model)) return("not a density() with lags()")
  if (is.null(model$simulate)) "and this density() says nothing about its draws: give `simulate`"
}

# Which row of the rows for C has the response that is simulated.
simulated_row <- function(model, rows, design) {
  nrow(rows) - length(design$columns) + match(simulated_column(model$simulate), design$columns)
}

simulate_density <- function(model, encoded, theta) {
  rows <- encoded$rows
  columns <- encoded$design$columns
  at <- simulated_row(model, rows, encoded$design)
  values <- density_draws(list(model = model, args = encoded$args, parameters = t(theta)), rows)
  data <- lapply(stats::setNames(seq_along(columns), columns),
                 function(k) rows[nrow(rows) - length(columns) + k, ])
  known <- c(lapply(values, as.vector), data)
  if (is.null(known$n)) known$n <- ncol(rows)
  drawn <- eval(model$simulate[[3]], known, environment(model$expression))
  if (!(is.numeric(drawn) || is.logical(drawn)) || length(drawn) != ncol(rows) ||
      !all(is.finite(drawn)))
    fail("`simulate` must draw ", count_of(ncol(rows), "finite number"), ", not ",
         show_value(drawn), ".")
  rows[at, ] <- as.double(drawn)
  rows
}

decode_density <- function(model, encoded, rows, data) {
  data <- as_frame(data)
  data[[as.character(model$simulate[[2]])]] <- rows[simulated_row(model, rows, encoded$design), ]
  data
}

# Positive parameters come last.
from_user_density <- function(model, encoded, user) {
  d <- nrow(user)
  positive <- seq_len(d) > d - encoded$args$positive
  if (any(user[positive, ] <= 0))
    fail("`parameters` must be positive for ", show_names(encoded$user_names[positive]), ".")
  user[positive, ] <- log(user[positive, ])
  user
}

responses_density <- function(fit, rows, offset) rows[simulated_row(fit$model, rows, fit$design), ]

# Numbers of which one is a legal response of each density.
LEGAL_RESPONSES <- c(1, 0.5, 0)

template_density <- function(model, data, n) {
  reason <- simulates_density(model)
  if (!is.null(reason)) fail("`model` must be one that can simulate data, ", reason, ".")
  response <- as.character(model$simulate[[2]])
  data <- if (is.null(data)) data.frame(row.names = seq_len(n)) else as_frame(data)
  if (response %in% names(data)) return(list(data = data, encoded = encode(model, data)))
  problem <- NULL
  for (value in LEGAL_RESPONSES) {
    data[[response]] <- rep(value, nrow(data))
    encoded <- tryCatch(encode(model, data), logevidence_error = function(e) e)
    if (!inherits(encoded, "condition")) return(list(data = data, encoded = encoded))
    if (is.null(problem)) problem <- encoded
  }
  stop(problem)
}

# The interface between models and the rest of the package: a list of functions and traits that
# every model has, including models of other packages. Files outside R/spec-model-*.R use this
# list and never a model's class or name.

#' A model of your own
#'
#' Makes a model specification for [evidence()] and all other functions of the package, from a
#' likelihood in C and a few R functions that bind it to data. The models of this package are made
#' by this function, so a model of another package can do all that they can. For a model in a few
#' lines, without a package, see [custom_model()] and [compiled_model()].
#'
#' @param name Name of the model, one word. It is the class of the specification and the name in
#'   messages.
#' @param formula The model's formula, or `NULL`.
#' @param settings A named list, which becomes part of the specification.
#' @param encode `function(model, data, ...)`: binds the model to data. A list with at least
#'   \describe{
#'     \item{`rows`}{a numeric matrix with an observation in each *column*, as C reads them;}
#'     \item{`n`}{the number of observations;}
#'     \item{`args`}{named numeric vectors or strings, the settings that C reads;}
#'     \item{`theta_names`, `user_names`}{names of the parameters in unconstrained space and on the
#'       user's scale;}
#'     \item{`design`}{what `encode_new` needs to encode later data in the same way;}
#'     \item{`observed`}{optional, the observations that two fits to the same data must have in
#'       common, if not `rows`;}
#'     \item{`offset`}{optional, what was subtracted from the responses.}
#'   }
#' @param encode_new `function(model, design, newdata, response, argument)`: later data as a list of
#'   `rows`, `n` and `offset`. `response` says whether the response is needed, `argument` is the
#'   name of the data in error messages.
#' @param describe `function(model)`: a description of the model, a list of a title and then named
#'   texts.
#' @param symbol,PACKAGE Name of the C function that returns the model's table, as in
#'   [compiled_model()], and of the library or package that has it.
#' @param ... Further parts of the contract, by name. All have defaults for a model without that
#'   feature:
#'   \describe{
#'     \item{`modes`}{`function(model)`: `"one"`, the default, or `"several"` if the posterior may
#'       have several modes;}
#'     \item{`decode`, `template`}{`function(model, encoded, rows, data)` and `function(model, data,
#'       n)`: simulated rows in the form of the user's data, and data before their responses are
#'       simulated, as a list of `data` and `encoded` (what `encode` returns for them);}
#'     \item{`simulates`}{`function(model)`: why data cannot be simulated, a sentence, or `NULL` if
#'       they can;}
#'     \item{`simulate_rows`, `simulate_data`}{where an R function and not C simulates:
#'       `function(model, encoded, theta)`, which returns `encoded$rows` with new responses; or
#'       `function(model, theta, data)`, which returns the user's data with new ones. They draw from
#'       R's generator;}
#'     \item{`from_user`}{`function(model, encoded, user)`: points in unconstrained space from
#'       parameters on the user's scale, both with a point in each column; not needed if both scales
#'       are the same;}
#'     \item{`responses`, `replicated`}{`function(fit, rows, offset)`: the responses of simulated
#'       rows, for [predict()] numbers, a factor, or a matrix if a row has several (by default the
#'       last number of each row if the model has `fitted`, else all); and for [simulate()] the same
#'       in the form of the data, if that is another one;}
#'     \item{`link`}{`function(fit, rows, offset)`: the linear predictor, a matrix of rows x draws;}
#'     \item{`clusters`}{`function(fit)`: posterior means of the components of a model whose
#'       predictions have the type `"probability"` of membership, a list of the matrices `mean` and
#'       `sd`, components x columns;}
#'     \item{`predictions`}{a named list of `function(fit, encoded)`, the types of [predict()]
#'       besides `"density"`, `"link"` and `"draws"`; the first is the default;}
#'     \item{`needs_response`}{whether [predict()] needs complete rows for all types;}
#'     \item{`coefficients`}{whether the parameters are coefficients, for `coef()`, `vcov()` and
#'       `confint()`;}
#'     \item{`fitted`}{`function(fit, encoded)`: fitted values, for `fitted()`, `residuals()` and
#'       `deviance()`;}
#'     \item{`noise_sd`}{`function(fit)`: the standard deviation of the noise, for `sigma()`;}
#'     \item{`family`}{`function(model)`: the family of a regression with a linear predictor, a list
#'       with `family` and `link`, for `family()`; or `NULL`;}
#'     \item{`free_parameters`}{`function(model, peak, args)`: the number of parameters for
#'       [bic()];}
#'     \item{`limits`}{`function(fit)`: the range of each parameter on the user's scale, beyond
#'       which plots have no density, a matrix of two rows, `lower` and `upper`. By default
#'       parameters that have a name such as `log(sigma)` in unconstrained space are positive;}
#'     \item{`prior_moments`}{`function(model, encoded, words)`: means and standard deviations of
#'       the prior, to check whether data and prior contradict each other: a list of `row` (which of
#'       `theta_names`), `mean`, `sd` and `subject` (what a sentence calls them);}
#'     \item{`discrete`}{of parameters with few values, these values by their names in unconstrained
#'       space, a list: as `discrete` in logevidence.h has them;}
#'     \item{`improper`}{`function(model, design)`: which parameters have improper priors, so that
#'       only ratios of evidences have a meaning and only [exact()] applies; words, or `NULL` for
#'       none;}
#'     \item{`label_free`}{`function(model, draws)`: parameters that mean the same in all segments
#'       of [change_points()], from draws on the user's scale;}
#'     \item{`needs_all`}{`function(model)`: whether all rows must be in memory, because groups of
#'       them belong together; and for such models, `cost`, `function(model, encoded)`: how many
#'       times as long the likelihood of a row in C takes as that of an observation of a
#'       regression;}
#'     \item{`groups`}{of such models, if rows can be added to groups, a list: `of_fit`,
#'       `function(fit)`, what `encode` has returned, of what the fit has kept; `join`,
#'       `function(model, encoded, data, argument)`, the same with the rows of later data;
#'       `units`, `count`, `counts`, `room`, `encode` and `whole`, for rows of a source that come in
#'       blocks of whole groups (R/spec-groups-blocks.R);
#'       `gathers`, `function(model)`, whether the rows of a source can be joined block by block, in
#'       memory that does not grow with them; and `part`, `function(encoded)`, plain numbers and
#'       texts that `join` takes in the place of data, from another process;}
#'     \item{`correction`}{`function(model, encoded, points, log_weights, words)`, if the likelihood
#'       is approximate: what is to be added to the log evidence, and its standard error, from
#'       weighted draws of the posterior: a list of `log_evidence` and `se`, `NULL` if there is
#'       nothing to add, or a sentence from `say()` if that is not known; and
#'       `finer`, `function(args)`: settings in C with which the likelihood is exact enough that
#'       [check_model()] can compare its gradient with differences, or `NULL` if it is so anyway;}
#'     \item{`integrated`}{whether improper parameters are integrated out, so that those of C have a
#'       proper prior and can be sampled;}
#'     \item{`prepared`}{`function(fit)`: a fit with what predictions need besides;}
#'     \item{`mean_draws`}{`function(fit, encoded)`: the mean of each response at each draw, a
#'       matrix of rows x draws; by default `predictions$response` of fits with a single draw;}
#'     \item{`advice`}{`function(model)`: a sentence with advice for this case.}
#'   }
#'
#' @return A model specification of class `c(name, "evidence_model")`.
#'
#' @details
#' `system.file("examples", "poissonrate", package = "logevidence")` is a small package that adds a
#' model in this way: its C code includes `logevidence.h` (`LinkingTo: logevidence`), and its R code
#' is a constructor of some twenty lines. Test a new model with [check_model()] first.
#'
#' @seealso [check_model()], [compiled_model()]
#' @family models
#' @export
new_model <- function(name, formula = NULL, settings = list(), encode, encode_new, describe, ...,
                      symbol = NULL, PACKAGE = "") {
  check_word(name, "name", "one word")
  given <- list(encode = encode, encode_new = encode_new, describe = describe, ...)
  unknown <- names(given)[is.na(match(names(given), names(CONTRACT)))]
  if (length(unknown) || is.null(names(given)) || !all(nzchar(names(given))))
    fail("`...` must hold only parts of the contract by name (", show_names(names(CONTRACT), 30),
         "), not ",
         if (length(unknown)) paste0("`", unknown[1], "`") else "unnamed values", ".")
  if (!is.null(formula) && !inherits(formula, "formula"))
    refuse(formula, "formula", "NULL or a formula")
  if (!is.list(settings) || length(settings) && !has_names(settings))
    refuse(settings, "settings", "a named list")
  for (part in names(given))
    if (!is.function(given[[part]]) && !is.null(CONTRACT_FUNCTIONS[[part]]))
      refuse(given[[part]], part, "a function")
  contract <- CONTRACT
  contract[names(given)] <- given
  contract$type <- if (!is.null(given$type)) given$type else if (is.null(symbol)) name
  else "compiled_model"
  if (!is.null(symbol)) {
    contract$library <- list(.symbol = check_word(symbol, "symbol", "the name of a C function"),
                             .library = PACKAGE)
  }
  structure(c(list(name = name, formula = formula), settings, list(contract = contract)),
            class = c(name, "evidence_model"))
}

# A response is the last number of a row, without the offset of a model that subtracts it.
plain_responses <- function(fit, rows, offset) {
  if (is.null(part_of(fit$model, "fitted"))) return(t(rows))
  rows[nrow(rows), ] + if (is.null(offset)) 0 else offset
}

#' The range of each parameter on the user's scale
#'
#' @param names The parameters; those in `positive` are above zero, those in `shares` between zero
#'   and one, and those in `correlations` between minus one and one.
#' @return A matrix of `lower` and `upper`, a column for each parameter.
#' @noRd
parameter_limits <- function(names, positive = NULL, shares = NULL, correlations = NULL) {
  found <- rbind(lower = rep(-Inf, length(names)), upper = rep(Inf, length(names)))
  found["lower", names %in% c(positive, shares)] <- 0
  found["lower", names %in% correlations] <- -1
  found["upper", names %in% c(shares, correlations)] <- 1
  found
}

# The same by the beginning of names, as `weight` of `weight[1]`.
limits_by_kind <- function(fit, positive, shares) {
  names <- colnames(fit$draws)
  kind <- sub("[[].*", "", names)
  parameter_limits(names, names[kind %in% positive], names[kind %in% shares])
}

# Positive parameters are logarithms in unconstrained space.
logs_of <- function(fit) {
  names <- colnames(fit$draws)
  names[paste0("log(", names, ")") %in% colnames(fit$parameters)]
}

positive_limits <- function(fit) parameter_limits(colnames(fit$draws), logs_of(fit))

# Defaults of the contract.
CONTRACT <- local({
  nothing <- function(...) NULL
  list(
    # the first are those asked for most often, since R compares names one after another
    latent = NULL,             # of models with latent variables: see R/spec-model-latent.R
    # does it call R functions? Then one run at a time, with R's generator
    asks_r = FALSE,
    # function(model): must all rows be in memory, as groups of them belong together?
    needs_all = function(model) FALSE,
    modes = function(model) "one",
    type = NULL,
    improper = nothing,        # function(model, design): parameters without a proper prior
    encode = NULL, encode_new = NULL, describe = NULL, library = NULL,
    decode = function(model, encoded, rows, data) fail("A ", model$name, "() cannot be simulated."),
    template = function(model, data, n) fail("A ", model$name, "() cannot be simulated."),
    # the reason why data cannot be simulated
    simulates = nothing,
    # where R and not C simulates: function(model, encoded, theta), which returns the rows with
    # other responses; or function(model, theta, data), which returns data
    simulate_rows = NULL, simulate_data = NULL,
    # of models with latent variables: function(model, n, columns, words), a list with `data`,
    # `encoded`, `state` and `named`
    simulate_whole = NULL,
    # function(model, design): if numeric columns of the data are the rows for C as they stand, a
    # list of these `columns`, whether there is an `intercept`, `names`, and `scaling`; see
    # R/rows-feed.R
    plain = nothing,
    no_data = function(model) fail("`data` must be given."), # if `data` are missing
    # does the likelihood depend on rows only by their number and the sums of products of their
    # numbers? Then other rows with the same sums do as well.
    products = FALSE,
    # of models whose default priors have units of the data, a list: `rows`, function(model, rows),
    # rows for C whose constants matter, and `of`, function(model, constants), the units (see
    # at_units()) from what R/run-units.R says of these rows
    units = NULL,
    gradients = function(model) TRUE, # or are they differences of densities?
    stepped = character(),     # parameters on which the density depends by comparisons alone
    # of parameters with few values, these values by their names in unconstrained space: C draws
    # them by Gibbs steps
    discrete = NULL,
    derivatives = TRUE,        # second derivatives in closed form
    user_written = TRUE,       # if it calls R functions, are they written by the user?
    user_gradient = FALSE,     # is the gradient written by the user, and so to be checked?
    unknown = FALSE,           # is the form of its posterior the user's?
    variational = FALSE,
    partitions = FALSE,        # does partitions() apply? Then the model has `components`
    # change_points(): blocks of the first grid, if segments have a closed form; may they share
    # parameters, because rows are linear in the coefficients with normal noise of one sd? and
    # function(model, draws): parameters of which all segments have the same
    boundaries = 1000,
    shares = FALSE,
    label_free = function(model, draws) draws,
    no_closed_form = NULL,     # why exact() does not apply, where C calls the model by another name
    closed = FALSE,            # are evidence and posterior draws in closed form?
    bound = function(model, args) FALSE, # is there a variational bound?
    # components or attributes, for the cost of the bound
    parts = function(model, args) 1,
    same_data = NULL,          # function(own, other): are fits of custom models of the same data?
    one_number = FALSE,        # is the response one number, whose fingerprint is that of the data?
    open_columns = function(model) FALSE, # may data be simulated with any number of columns?
    like_columns = FALSE,      # are all columns of the data simulated?
    from_user = NULL,
    # function(fit): a fit with what predictions need besides
    prepared = function(fit) fit,
    groups = NULL,             # of such models: how rows are added to groups, see new_model()
    responses = plain_responses, replicated = NULL, link = NULL, clusters = NULL,
    predictions = list(), needs_response = FALSE,
    # function(fit, encoded): the mean of each response at each draw, a matrix of rows x draws; by
    # default from `predictions$response` of single draws
    mean_draws = NULL,
    coefficients = TRUE, fitted = NULL, noise_sd = NULL,
    family = nothing,          # function(model): the family, as glm() has it
    free_parameters = function(model, peak, args) length(peak),
    prior_moments = nothing,
    # function(model, points, log_weights): sentences about a fit that has failed
    doubts = nothing,
    # function(model, encoded, points, log_weights, words): what is added to the log evidence since
    # the likelihood of the run is approximate, and its standard error; or NULL
    correction = nothing,
    # function(args), of such models: settings of C with which it is exact enough for differences
    finer = nothing,
    # are its improper parameters integrated out, so that those of C have a proper prior?
    integrated = FALSE,
    # function(model, encoded), of models whose rows are groups of observations: how many times as
    # long the likelihood of a row takes as that of an observation of a regression
    cost = nothing,
    # function(model, encoded): why all rows together have no evidence, a sentence
    refuses = nothing,
    # function(model, encoded): the same likelihood on columns near zero, a model; or NULL
    centred = nothing,
    far_columns = nothing,     # function(model, args, x): columns that the prior rules out
    # function(model, encoded, points, weights): parameters, as conflicting_draws()
    far_fit = nothing,
    # function(fit): the range of each parameter on the user's scale, for plots
    limits = positive_limits,
    # number of optimisation runs before the first particle moves, if the model has one mode and
    # makes starting points from the rows (`start` in logevidence.h)
    starts = NULL,
    advice = function(model) "Check the units of the data and the scale of the prior."
  )
})

#' A part of a model's contract
#' @noRd
part_of <- function(model, part) {
  # `$` would look for a method of the model's class, in a hundred calls of each fit
  value <- .subset2(.subset2(model, "contract"), part)
  if (!is.function(value) && !is.null(CONTRACT_FUNCTIONS[[part]]))
    fail("A model must be as its constructor has made it, and the part `", part, "` of this one ",
         "is ", if (is.null(value)) "missing" else show_value(value), ": make it again.")
  value
}

# Parts that every model has, an environment: its names are found without comparing them all.
CONTRACT_FUNCTIONS <- local({
  parts <- c("encode", "encode_new", "describe",
             names(CONTRACT)[vapply(CONTRACT, is.function, NA)])
  list2env(as.list(stats::setNames(nm = parts)))
})

# The name of the model in C.
model_type <- function(model) part_of(model, "type")

is_latent <- function(model) !is.null(part_of(model, "latent"))
may_have_modes <- function(model) part_of(model, "modes")(model) == "several"
# The parameters without a proper prior, in words.
improper_parts <- function(model, design = NULL) part_of(model, "improper")(model, design)
is_improper <- function(model) !is.null(improper_parts(model))
asks_r <- function(model) isTRUE(part_of(model, "asks_r"))
# Is there nothing to sample, because the prior of the parameters in C is improper?
needs_exact <- function(model) is_improper(model) && !isTRUE(part_of(model, "integrated"))
# Must all rows be in memory, because groups of them belong together?
needs_all <- function(model) part_of(model, "needs_all")(model)
# Are the rows of a source joined block by block?
gathers <- function(model) {
  groups <- part_of(model, "groups")
  !is.null(groups) && groups$gathers(model)
}
# Or do they come in blocks of whole groups?
takes_units <- function(model) !is.null(part_of(model, "groups")) && !gathers(model)
# Is there a model whose rows of a source must all be in memory? With `keep` groups come in blocks.
collects <- function(models, keep = NULL)
  any(vapply(models, needs_all, NA)) &&
    (length(models) > 1 || !gathers(models[[1]]) && is.null(keep))
has_gradients <- function(model) part_of(model, "gradients")(model)
has_variational <- function(model) isTRUE(part_of(model, "variational"))

#' The description of a model: a list of its title, then named texts, each of one line or more
#' @noRd
describe <- function(model) part_of(model, "describe")(model)

#' The model in one line
#' @noRd
model_line <- function(model) {
  words <- describe(model)
  if (is.null(model$formula)) return(words[[1]])
  # with the formulas of further parameters
  formulas <- if (is.null(words$formula)) deparse1(model$formula) else words$formula
  shorten(paste0(words[[1]], ": ", paste(formulas, collapse = ", ")), 78)
}

#' Refuse a model with an improper prior
#' @noRd
require_proper <- function(model, rule, given = NULL) {
  if (!needs_exact(model)) return(invisible())
  fail(rule, " for this model, whose prior is improper and cannot be drawn from",
       if (!is.null(given)) paste0(", not ", given, "()"),
       ": give the model `prior_sd = 10` or `prior = normal(0, 10)`, in units of the data, ",
       "instead of `prior = jzs()`.")
}

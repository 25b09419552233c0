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
#'     \item{`offset`}{optional, what was subtracted from the responses;}
#'     \item{`free_parameters`}{optional, their number for [bic()].}
#'   }
#' @param encode_new `function(model, design, newdata, response, argument)`: later data as a list of
#'   `rows`, `n` and `offset`. `response` says whether the response is needed, `argument` is the
#'   name of the data in error messages.
#' @param describe `function(model)`: a description of the model, a list of a title and then named
#'   texts.
#' @param symbol,PACKAGE Name of the C function that returns the model's table, as in
#'   [compiled_model()], and of the library or package that has it.
#' @param ... Further parts of the contract, by name. All have defaults for a model without that
#'   feature; they are listed below.
#'
#' @return A model specification of class `c(name, "evidence_model")`.
#'
#' @details
#' `system.file("examples", "poissonrate", package = "logevidence")` is a small package that adds a
#' model in this way: its C code includes `logevidence.h` (`LinkingTo: logevidence`), and its R code
#' is a constructor of some twenty lines. Test a new model with [check_model()] first.
#'
#' @eval help_of_parts()
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
  if (is.null(contract$type)) contract$type <- name
  if (!is.null(symbol))
    contract$type <- list("compiled_model", .library = PACKAGE,
                          .symbol = check_word(symbol, "symbol", "the name of a C function"))
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

# The contract: groups of parts. Each has its words for the help page, and its default.
part <- function(words, default = NULL) list(words = words, default = default)

NOTHING <- function(...) NULL

CONTRACT_PARTS <- list(
  data = list(
    encode = part("see the argument"),
    encode_new = part("see the argument"),
    describe = part("see the argument"),
    type = part("the name of the model in C"),
    latent = part("of models with latent variables, a list of functions (R/spec-model-latent.R)"),
    one_number = part("whether the response is one number, by which two fits are known to be of the
      same data", FALSE),
    asks_r = part("whether the model calls R functions, so that one run after the other is made,
      with R's generator: `\"user\"` for functions that the user has written, `\"object\"` for those
      of an object, or `\"no\"`", "no"),
    no_data = part("`function(model)`: the data if they are not given, or an error",
                   function(model) fail("`data` must be given."))),
  prior = list(
    prior_moments = part("`function(model, encoded, words)`: means and standard deviations of the
      prior, to check whether data and prior contradict each other: a list of `row` (which of
      `theta_names`), `mean`, `sd` and `subject` (what a sentence calls them)", NOTHING),
    improper = part("`function(model, design)`: which parameters have improper priors, so that only
      ratios of evidences have a meaning and only [exact()] applies; words, or `NULL` for none",
      NOTHING),
    units = part("of models whose default priors have units of the data, a list: `rows`,
      `function(model, rows)`, rows for C whose constants matter, and `of`, `function(model,
      constants)`, the units (R/run-units.R)"),
    far = part("`function(model, encoded, points, weights)`: what else the prior excludes, columns
      or a fit, a data frame of `subject`, `distance` and `text`, or `NULL`", NOTHING),
    advice = part("`function(model)`: a sentence with advice for this case",
                  function(model) "Check the units of the data and the scale of the prior."),
    modes = part("`function(model)`: `\"one\"`, the default, or `\"several\"` if the posterior may
      have several modes", function(model) "one"),
    starts = part("the number of optimisation runs before the first particle moves, of models with
      one mode that make starting points from the rows (`start` in logevidence.h); 0 if the form of
      the posterior is not known"),
    discrete = part("of parameters with few values, these values by their names in unconstrained
      space, a list: as `discrete` in logevidence.h has them. C draws them by Gibbs steps")),
  simulate = list(
    simulates = part("`function(model)`: why data cannot be simulated, a sentence, or `NULL` if
      they can", NOTHING),
    decode = part("`function(model, encoded, rows, data)`: simulated rows in the form of the user's
      data", function(model, encoded, rows, data) not_simulated(model)),
    template = part("`function(model, data, n)`: data before their responses are simulated, a list
      of `data` and `encoded` (what `encode` returns for them)",
      function(model, data, n) not_simulated(model)),
    simulate_rows = part("where an R function and not C simulates: `function(model, encoded,
      theta)`, which returns `encoded$rows` with new responses, drawn by R's generator"),
    simulate_data = part("or `function(model, theta, data)`, which returns the user's data with new
      ones"),
    from_user = part("`function(model, encoded, user)`: points in unconstrained space from
      parameters on the user's scale, both with a point in each column; not needed if both scales
      are the same"),
    responses = part("`function(fit, rows, offset)`: the responses of simulated rows, for
      [predict()] numbers, a factor, or a matrix if a row has several (by default the last number of
      each row if the model has `fitted`, else all)", function(fit, rows, offset)
        plain_responses(fit, rows, offset)),
    replicated = part("the same for [simulate()], if the data have another form")),
  predict = list(
    predictions = part("a named list of `function(fit, encoded)`, the types of [predict()] besides
      `\"density\"`, `\"link\"` and `\"draws\"`; the first is the default", list()),
    link = part("`function(fit, rows, offset)`: the linear predictor, a matrix of rows x draws"),
    fitted = part("`function(fit, encoded)`: fitted values, for `fitted()`, `residuals()` and
      `deviance()`"),
    noise_sd = part("`function(fit)`: the standard deviation of the noise, for `sigma()`"),
    family = part("`function(model)`: the family of a regression with a linear predictor, a list
      with `family` and `link`, for `family()`; or `NULL`", NOTHING),
    coefficients = part("whether the parameters are coefficients, for `coef()`, `vcov()` and
      `confint()`; or `\"integrated\"` if those with improper priors are integrated out, so that the
      parameters of C have a proper prior and can be sampled", TRUE),
    clusters = part("`function(fit)`: posterior means of the components of a model whose
      predictions have the type `\"probability\"` of membership, a list of the matrices `mean` and
      `sd`, components x columns"),
    limits = part("`function(fit)`: the range of each parameter on the user's scale, beyond which
      plots have no density, a matrix of two rows, `lower` and `upper`. By default parameters that
      have a name such as `log(sigma)` in unconstrained space are positive",
      function(fit) positive_limits(fit))),
  `closed form` = list(
    closed = part("whether evidence and posterior draws are in closed form; or why [exact()] does
      not apply, a sentence, where C calls the model by another name", FALSE),
    derivatives = part("`function(model)`: which derivatives of the densities C has, 2 for the
      second ones, 1 for gradients, or 0", function(model) 2),
    stepped = part("parameters on which the density depends by comparisons alone", character()),
    normal = part("whether rows are linear in the coefficients, with normal noise of one standard
      deviation: the likelihood then depends on rows only by the sums of products of their numbers,
      and segments of [change_points()] can share parameters", FALSE),
    bound = part("of models for [variational()], `function(model, args)`: the number of components
      or attributes, which is the cost of the bound; 0 where other estimates need none"),
    partitions = part("whether [partitions()] applies: the model then has `components`", FALSE),
    boundaries = part("blocks of the first grid of [change_points()], where segments have a closed
      form", 1000),
    label_free = part("`function(model, draws)`: parameters that mean the same in all segments of
      [change_points()], from draws on the user's scale", function(model, draws) draws)),
  rows = list(
    plain = part("`function(model, design)`: if numeric columns of the data are the rows for C as
      they stand, a list of these `columns`, whether there is an `intercept`, `names`, and
      `scaling`", NOTHING),
    columns = part("`function(model)`: if all columns of the data are simulated, `\"given\"`, or
      `\"any\"` if their number is free", NOTHING),
    cost = part("`function(model, encoded)`, of models that need all rows in memory, because groups
      of them belong together and are rows for C: how many times as long the likelihood of such a
      row takes as that of an observation of a regression"),
    groups = part("of such models, if rows can be added to groups, a list: `of_fit`,
      `function(fit)`, what `encode` has returned, of what the fit has kept; `join`,
      `function(model, encoded, data, argument)`, the same with the rows of later data; `units`,
      `count`, `counts`, `room`, `encode` and `whole`, for rows of a source that come in blocks of
      whole groups (R/spec-groups-blocks.R); `gathers`, `function(model)`, whether the rows of a
      source can be joined block by block, in memory that does not grow with them; `part`,
      `function(encoded)`, plain numbers and texts that `join` takes in the place of data, from
      another process; `prepared`, `function(fit)`, a fit with what predictions need besides; and
      `mean_draws`, `function(fit, encoded)`, the mean of each response at each draw, a matrix of
      rows x draws"),
    centred = part("`function(model, encoded)`: the same likelihood on columns near zero, a model,
      or `NULL`", NOTHING),
    refuses = part("`function(model, encoded)`: why all rows together have no evidence, a sentence,
      or `NULL`", NOTHING),
    doubts = part("`function(model, points, log_weights, encoded)`: sentences about a fit, from
      weighted draws of the posterior", NOTHING),
    correction = part("if the likelihood is approximate, a list: `of`, `function(model, encoded,
      points, log_weights, words)`, what is to be added to the log evidence, and its standard error,
      from weighted draws of the posterior: a list of `log_evidence` and `se`, `NULL` if there is
      nothing to add, or a sentence from `say()` if that is not known; and `finer`,
      `function(args)`, settings in C with which the likelihood is exact enough that [check_model()]
      can compare its gradient with differences, or `NULL` if it is so anyway"))
)

not_simulated <- function(model) fail("A ", model$name, "() cannot be simulated.")

# A section of the help page of new_model() for each group.
help_of_parts <- function() {
  unlist(lapply(names(CONTRACT_PARTS), function(group) {
    words <- gsub("\\s+", " ", vapply(CONTRACT_PARTS[[group]], `[[`, "", "words"))
    shown <- words != "see the argument"
    c(paste0("@section Parts of the contract, ", group, ":"), "\\describe{",
      paste0("\\item{`", names(words), "`}{", words, ".}")[shown], "}")
  }))
}

CONTRACT <- lapply(do.call(c, unname(CONTRACT_PARTS)), `[[`, "default")

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

# The name of the model in C; behind it, the function of another package that has its table.
model_type <- function(model) part_of(model, "type")[[1]]

is_latent <- function(model) !is.null(part_of(model, "latent"))
may_have_modes <- function(model) part_of(model, "modes")(model) == "several"
# The parameters without a proper prior, in words.
improper_parts <- function(model, design = NULL) part_of(model, "improper")(model, design)
is_improper <- function(model) !is.null(improper_parts(model))
asks_r <- function(model) part_of(model, "asks_r") != "no"
# Has the user written the gradient, which is thus to be checked?
has_user_gradient <- function(model)
  part_of(model, "asks_r") == "user" && has_gradients(model)
# Are the parameters with improper priors integrated out?
is_integrated <- function(model) identical(part_of(model, "coefficients"), "integrated")
# Is there nothing to sample, because the prior of the parameters in C is improper?
needs_exact <- function(model) is_improper(model) && !is_integrated(model)
# Must all rows be in memory, because groups of them belong together?
needs_all <- function(model) !is.null(part_of(model, "cost"))
# A fit with what predictions need besides.
prepared <- function(fit) {
  add <- part_of(fit$model, "groups")$prepared
  if (is.null(add)) fit else add(fit)
}
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
has_gradients <- function(model) part_of(model, "derivatives")(model) > 0
has_curvature <- function(model) part_of(model, "derivatives")(model) == 2
has_variational <- function(model) !is.null(part_of(model, "bound"))

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

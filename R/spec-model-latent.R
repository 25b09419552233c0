# Models with a latent variable for each observation. A particle is a state of all latent variables,
# moved by Gibbs sweeps.

#' Clustering with Gaussian centres
#'
#' Each observation belongs to one of `components` clusters. The centre of a cluster has a normal
#' prior around zero, and the observations of the cluster are normal around its centre. Centres are
#' integrated out exactly, so only the labels are sampled.
#'
#' @param formula A one-sided formula of numeric columns, such as `~ a + b`; `NULL`, the default,
#'   for all columns.
#' @param components Number of clusters, at most the number of observations.
#' @param proportions Probability of each cluster: positive numbers that sum to one, or `NULL`, the
#'   default, for equal ones.
#' @param prior_sd,noise_sd Standard deviations of the centres around zero and of the observations
#'   around their centre.
#' @param infer Whether the proportions and both variances are unknown: with a Dirichlet(1) prior
#'   and inverse-gamma priors of the given `shape` and `scale`. `proportions`, `prior_sd` and
#'   `noise_sd` are then not used.
#' @param shape,scale Shape and scale of the inverse-gamma priors.
#'
#' @details
#' Columns are used as they are: centre and scale them if zero is not a sensible centre. The methods
#' for these models are [ais()], [smc()] along both paths, [nested()], [chib()], [variational()],
#' [bic()], [harmonic_mean()] and [likelihood_weighting()]. Moves are Gibbs sweeps; `steps` is their
#' number at each distribution, by default one, and five for every new point of [nested()], above
#' its likelihood threshold. Unknown variances are sampled with the centres, the features or the row
#' factors integrated out.
#'
#' The default is the mean of eight runs, by one of two paths.
#'
#' * [low_rank()] and [binary_attributes()] with known variances, while the number of rows is at
#'   most four times that of all factors or features (columns times rank or attributes): all rows
#'   are annealed together, `smc(particles = 16, ess = 0.98)`.
#' * Else `smc("data")` with 50 to 200 particles, fewer for larger data. Rows are added one by one.
#'   Particles are swept after each of the first 20 rows, later once each time the number of rows
#'   has grown by a twentieth, and after each resampling; if `steps` is given, that many times after
#'   every row. Rows are in random order unless `order = "given"`; with sorted rows, such as those
#'   of `iris`, the given order fails. Draws always have the order of the data.
#'
#' If the default needs more than five seconds, a message says how long, and which settings take
#' less time. The settings `ess` and `move` of [smc()] along `"data"` are for other models. The
#' first few rows of [low_rank()], and of [binary_attributes()] with known variances, are added
#' together, by annealing. With [adaptive()], and along temperatures, the length of a step follows
#' from the weights of the step before, so its effective sample size is near `ess`, but not equal
#' to it.
#'
#' With unknown variances the posterior changes abruptly along the temperatures. `smc()` along
#' temperatures and [ais()] then miss most of the evidence, by 20 to 100 nats for data with separate
#' clusters. A variational lower bound, computed with every fit (`fit$bound`), detects this, and
#' `fit$failed` says so. [nested()], which does not anneal, is a good check. Its standard error is
#' too small if the likelihood takes only a few values, as with a few rows that are nearly equal. A
#' run uses one thread.
#'
#' @return An object of class `"evidence_model"`.
#'
#' @examples
#' model <- clustering(components = 3, prior_sd = 1.5, noise_sd = 0.5)
#' evidence(model, scale(iris[1:4]), ais(particles = 20, sigmoidal(500)), seed = 1)
#'
#' @references
#' Grosse, R. B., Ghahramani, Z. and Adams, R. P. (2015). Sandwiching the marginal likelihood using
#' bidirectional Monte Carlo. arXiv:1511.02543.
#'
#' @concept cluster analysis
#' @family models
#' @export
clustering <- function(formula = NULL, components, proportions = NULL, prior_sd = 1, noise_sd = 1,
                       infer = FALSE, shape = 1, scale = 1) {
  formula <- check_formula(formula, 1)
  if (missing(components)) fail("`components` must be given, a whole number of at least 1.")
  components <- check_count(components, "components", 1, 10000)
  if (!is.null(proportions)) {
    proportions <- check_numbers(proportions, "proportions", positive = TRUE)
    if (length(proportions) != components)
      fail("`proportions` must have one value for each of the ", components, " components, not ",
           length(proportions), ".")
    if (abs(sum(proportions) - 1) > 1e-8)
      fail("`proportions` must sum to one, not to ", format(sum(proportions), digits = 7), ".")
  }
  new_latent("clustering", formula, list(
    components = components, proportions = if (is.null(proportions)) 1 / components
    else unname(proportions)
  ), prior_sd, noise_sd, infer, shape, scale, CLUSTERING, predictions = CLUSTER_PREDICTIONS,
  clusters = cluster_centres)
}

#' A matrix of low rank with noise
#'
#' The data matrix is a product of two factors plus noise: the value of column j in row i is
#' \eqn{u_i' v_j} plus normal noise, with normal priors on both factors.
#'
#' @inheritParams clustering
#' @param rank The rank, less than the number of rows and of columns.
#' @param row_sd,column_sd Standard deviations of the priors of the factors \eqn{u} and \eqn{v}.
#' @param noise_sd Standard deviation of the noise.
#' @param infer Whether the three variances are unknown, with inverse-gamma priors of the given
#'   `shape` and `scale`.
#'
#' @inherit clustering details return references
#'
#' @examples
#' model <- low_rank(rank = 1, noise_sd = 0.5)
#' evidence(model, scale(iris[1:40, 1:4]), ais(particles = 20, sigmoidal(500)), seed = 1)
#'
#' @concept factor analysis
#' @concept matrix factorization
#' @family models
#' @export
low_rank <- function(formula = NULL, rank, row_sd = 1, column_sd = 1, noise_sd = 1, infer = FALSE,
                     shape = 1, scale = 1) {
  formula <- check_formula(formula, 1)
  if (missing(rank)) fail("`rank` must be given, a whole number of at least 1.")
  new_latent("low_rank", formula,
             list(rank = check_count(rank, "rank", 1, 10000),
                  row_sd = check_positive(row_sd, "row_sd")),
             check_positive(column_sd, "column_sd"), noise_sd, infer, shape, scale, LOW_RANK)
}

#' Binary attributes
#'
#' Each observation has or lacks each of a few attributes. An observation is the sum of the features
#' of its attributes plus noise. Features have normal priors and are integrated out exactly, so only
#' the attributes of the observations are sampled.
#'
#' @inheritParams clustering
#' @param attributes Number of attributes, at most 16.
#' @param probabilities Probability of each attribute, or one for all, between 0 and 1.
#' @param prior_sd,noise_sd Standard deviations of the features around zero and of the noise.
#' @param infer Whether the probabilities and both variances are unknown: with Beta(1, 1) priors and
#'   inverse-gamma priors of the given `shape` and `scale`.
#'
#' @inherit clustering details return references
#'
#' @examples
#' model <- binary_attributes(attributes = 2, noise_sd = 0.5)
#' evidence(model, scale(iris[1:40, 1:4]), smc(particles = 100), seed = 1)
#'
#' @family models
#' @export
binary_attributes <- function(formula = NULL, attributes, probabilities = 0.5, prior_sd = 1,
                              noise_sd = 1, infer = FALSE, shape = 1, scale = 1) {
  formula <- check_formula(formula, 1)
  if (missing(attributes)) fail("`attributes` must be given, a whole number between 1 and 16.")
  attributes <- check_count(attributes, "attributes", 1, 16)
  probabilities <- check_numbers(probabilities, "probabilities", positive = TRUE)
  if (!length(probabilities) %in% c(1, attributes))
    fail("`probabilities` must have one value, or one for each of the ", attributes,
         " attributes, not ", length(probabilities), ".")
  if (any(probabilities >= 1))
    fail("`probabilities` must lie between 0 and 1, not ", format(max(probabilities)), ".")
  new_latent("binary_attributes", formula,
             list(attributes = attributes, probabilities = unname(probabilities)),
             prior_sd, noise_sd, infer, shape, scale, BINARY_ATTRIBUTES)
}

# `latent` has the differences between the three models, functions of `args` except for constants:
#
# * title, prior: texts; `prior` also gets whether the variances are known and how to show `sd`
# * check(args, n, width): errors
# * state(args, rows, columns, each): names of the numbers of a state, in the order of C
# * first: number of rows that are added together by annealing, see first_rows()
# * anneals: does the default anneal all rows together, for so many rows and columns?
# * length: of the path from prior to posterior, in standard deviations of the log weights: for each
#   normal factor the log of how much its variance shrinks, over the root of two; as measured within
#   a quarter
# * cost: nanoseconds for each row of a sweep (`sweep`), to draw the latents of the last of n rows
#   (`extend`); the number of rows up to which a row tells much of factors or features (`telling`)
# * free(args, width): number of free parameters for bic()
# * parts, spread: components or attributes, for the cost of the bound; squares of a row in units of
#   the prior variance
# * settled(args, sd_of, named): the settings with the variances and probabilities of a state
# * scales: the arguments to change if the columns contradict the prior
# * tail: whether the tail of chib()'s densities shows whether the chain reaches the chosen state
# * legal(args): what the numbers of a state must be, as text
new_latent <- function(name, formula, own, prior_sd, noise_sd, infer, shape, scale, latent, ...) {
  new_model(name, formula, list(args = c(own, list(
    prior_sd = check_positive(prior_sd, "prior_sd"),
    noise_sd = check_positive(noise_sd, "noise_sd"),
    infer = as.double(check_flag(infer, "infer")), shape = check_positive(shape, "shape"),
    scale = check_positive(scale, "scale")
  ))), encode_latent, encode_new_mixture, describe_latent,
  decode = function(model, encoded, rows, data) data,
  template = function(model, data, n)
    fail("A model with latent variables has no parameters to simulate from: leave them out."),
  modes = function(model) "several", latent = c(latent, simulate = simulate_latent),
  label_free = function(model, draws) draws[, 0, drop = FALSE],
  bound = function(model, args) latent$parts(args), coefficients = FALSE,
  far = far_latent,
  limits = function(fit) limits_by_kind(fit, positive = latent$scales,
                                        shares = c("proportion", "probability")),
  noise_sd = function(fit) if (fit$model$args$infer == 0) fit$model$args$noise_sd
    else sum(exp(fit$log_weights) * fit$draws[, "noise_sd"]),
  advice = latent_advice, ...)
}

describe_latent <- function(model) {
  args <- model$args
  known <- args$infer == 0
  sds <- if (known) paste0("sd ", show_setting(args$prior_sd)) else "sd unknown"
  latent <- part_of(model, "latent")
  what <- list(latent$title(args), prior = latent$prior(args, known, sds))
  c(what, list(
    columns = if (is.null(model$formula)) "all" else deparse1(model$formula[[2]]),
    noise = paste0("normal, sd ", if (known) show_setting(args$noise_sd) else "unknown"),
    `variances` = if (known) "known" else
      paste0("inverse gamma, shape ", show_setting(args$shape), ", scale ",
             show_setting(args$scale))
  ))
}

encode_latent <- function(model, data, binding = AS_GIVEN) {
  input <- mixture_columns(model$formula, data, "data")
  x <- input$x
  n <- nrow(x)
  check_latent_size(model, n, ncol(x))
  rows <- bind_rows(x, input$names)
  names <- state_names(model, n, input$names)
  list(rows = rows, n = n, args = c(list(width = as.double(ncol(x))), model$args),
       theta_names = names, user_names = names[shown_state(model, names)], offset = NULL,
       # predictions of new rows need these rows, because a state does not include what is
       # integrated out
       design = c(input$design, list(columns = input$names, rows = rows)))
}

check_latent_size <- function(model, n, width) {
  args <- model$args
  part_of(model, "latent")$check(args, n, width)
}

# Names of the numbers of a state, in the order of C.
state_names <- function(model, n, columns) {
  each <- function(stem, a, b)
    sprintf("%s[%s,%s]", stem, rep(a, each = length(b)), rep(b, length(a)))
  rows <- seq_len(n)
  part_of(model, "latent")$state(model$args, rows, columns, each)
}

# The terms of a formula, or NULL if it contains a dot.
plain_columns <- function(formula)
  if (!"." %in% all.vars(formula)) attr(stats::terms(formula), "term.labels")

#' A state of the latent variables, and data simulated from it
#' @noRd
simulate_latent <- function(model, n, columns, words) {
  labels <- if (is.null(model$formula)) paste0("x", seq_len(columns)) else all.vars(model$formula)
  if (!is.null(model$formula) && !setequal(labels, plain_columns(model$formula)))
    fail("`formula` must name plain columns to simulate data, not `", deparse1(model$formula), "`.")
  width <- length(labels)
  check_latent_size(model, n, width)
  args <- c(list(width = as.double(width)), model$args)
  blank <- matrix(0, width, n)
  step <- 0
  ask <- function(what, state, seen) {
    step <<- step + 1
    .Call(ffi_model, model_type(model), args, blank, paste0("state_", what), state,
          list(seen = seen, seed = c(words[1], (words[2] + 7919 * step) %% 2^32)))
  }
  state <- ask("start", NULL, 0)$theta
  for (i in seq_len(n)) state <- ask("extend_blind", state, i - 1)$theta
  rows <- ask("simulate", state, n)$first
  data <- as.data.frame(t(rows))
  names(data) <- labels
  encoded <- encode(model, data)
  list(data = data, encoded = encoded, state = state,
       named = stats::setNames(state, encoded$theta_names),
       user = stats::setNames(user_state(model, encoded, matrix(state))[, 1], encoded$user_names))
}

# Known parameters are not part of the posterior draws.
shown_state <- function(model, names)
  model$args$infer != 0 | !grepl("_sd$|^proportion|^probability", names)

#' States on the user's scale: standard deviations instead of variances, labels from one
#' @noRd
user_state <- function(model, encoded, points) {
  names <- encoded$theta_names
  sds <- grepl("_sd$", names)
  points[sds, ] <- sqrt(points[sds, ])
  # C counts labels from zero
  labels <- grepl("^label", names)
  points[labels, ] <- points[labels, ] + 1
  points[shown_state(model, names), , drop = FALSE]
}

#' The method with its settings for the engines for latent states
#' @noRd
latent_method <- function(method, model) {
  if (!has_trait(method, "latent"))
    fail("`method` must be ais(), smc(), likelihood_weighting(), harmonic_mean(), nested(), ",
         "variational(), bic() or chib() for a model with latent variables, not ", method$name,
         "().")
  if ("kernel" %in% names(method$call))
    fail("`kernel` must not be given for a model with latent variables: it is moved by Gibbs ",
         "sweeps, whose number is `steps`.")
  if (has_trait(method, "live")) return(latent_nested(method))
  if (has_trait(method, "no prior")) return(latent_bic(method))
  if (is.null(method$settings$stages)) return(method)
  own <- method$settings
  by_rows <- identical(method$path, "data")
  if (by_rows && own$`1.chunk_least` != 1)
    fail("`chunk` must be 1 for a model with latent variables.")
  given <- !is.null(method$call$steps)
  sweeps <- if (has_trait(method, "still")) 0 else if (given) own$`1.steps` else 1
  method <- by_sweeps(method, sweeps, by_rows, blind = identical(method$proposal, "prior"))
  if (by_rows)
    method <- with_first_rows(method, if (is_lone(method)) 0
                              else if (is.null(own$first)) first_rows(model) else own$first,
                              FIRST_ESS, if (!is.null(own$often)) own$often
                              else if (given) 0 else SWEPT_OFTEN)
  method$kernels <- list()
  method$estimator <- "latent"
  method
}

# Effective sample size, as a share of the particles, at each temperature of the first rows. The
# weights of one particle do not vary, so it would take all of these rows in one step.
FIRST_ESS <- 0.9
# Number of first rows after each of which particles are swept; later they are swept once each time
# the number of rows has grown by a twentieth, and after each resampling.
SWEPT_OFTEN <- 20

# The default method -----------------------------------------------------------------------------

# When rows are added one by one, all particles of a run may follow the first rows into a poor part
# of the posterior of latent variables (one run in ten, if the model does not fit). Runs through
# different orders of the rows rarely all do so, and the mean of the evidence is close to the best.
LATENT_RUNS <- 8

#' The default method, whose path and number of particles depend on the size of the data
#'
#' One more row tells of as many factors or features as there are columns for each of them. While
#' rows are few against these, each row makes the weights very uneven, and a population that takes
#' them one by one would need thousands of particles. Annealing all rows together takes smaller
#' steps, with few particles that are swept often. Where the centres are integrated out, or
#' variances are unknown (the posterior changes abruptly along temperatures then), rows are better
#' taken one by one.
#' @noRd
latent_default <- function(model, n, width, replicates) {
  runs <- LATENT_RUNS / replicates
  if (anneals_together(model, n, width))
    return(do.call("smc", list(particles = ceiling(ANNEALED_PARTICLES * max(runs, 1)),
                               ess = ANNEALED_TOGETHER)))
  affordable <- 1e9 * DEFAULT_SECONDS / by_rows_cost(model, n, width) / LATENT_RUNS
  particles <- min(max(affordable, BY_ROWS_PARTICLES[1]), BY_ROWS_PARTICLES[2])
  do.call("smc", list("data", particles = 10 * round(min(particles * max(runs, 1), 1000) / 10)))
}

anneals_together <- function(model, n, width)
  model$args$infer == 0 && part_of(model, "latent")$anneals(model$args, n, width)

# Particles of each of LATENT_RUNS runs, and the effective sample size of a step. Eight runs
# together are .4 to .5 nats off on problems of 50 rows, 25 columns, and 10 attributes or rank 5.
ANNEALED_PARTICLES <- 16
ANNEALED_TOGETHER <- 0.98
BY_ROWS_PARTICLES <- c(50, 200)
# What the default may take without a message.
DEFAULT_SECONDS <- 5

#' Nanoseconds that a particle needs for all rows, if these are annealed together
#' @noRd
annealed_cost <- function(model, n, width, ess) {
  steps <- part_of(model, "latent")$length(model$args, n, width) / sqrt(1 / ess - 1)
  steps * n * row_cost(model, n, width)$sweep
}

#' The same, if rows are added one by one
#' @noRd
by_rows_cost <- function(model, n, width) {
  first <- min(first_rows(model), n)
  each <- row_cost(model, n, width)
  swept <- if (n <= SWEPT_OFTEN) n^2 / 2 else SWEPT_OFTEN^2 / 2 + SWEPT_OFTEN * (n - SWEPT_OFTEN)
  # after each resampling, which follows nearly each row while rows tell much of the features
  swept <- max(swept, min(each$telling, n)^2 / 2)
  (if (first > 0) annealed_cost(model, first, width, FIRST_ESS) else 0) + swept * each$sweep +
    (n - first) * each$extend
}

row_cost <- function(model, n, width)
  part_of(model, "latent")$cost(model$args, n, width, known = model$args$infer == 0)

#' Says how long the default will take if that is long
#' @noRd
say_if_slow <- function(method, model, n, width, replicates) {
  thermal <- identical(method$path, "thermal")
  cost <- if (thermal) annealed_cost(model, n, width, ANNEALED_TOGETHER)
  else by_rows_cost(model, n, width)
  seconds <- cost * method$settings$`1.particles` * replicates / 1e9
  if (seconds <= 1.1 * DEFAULT_SECONDS) return(invisible())
  shorter <- if (thermal) "smc(particles = 8, ess = 0.9)" else "smc(\"data\", particles = 50)"
  message("The default method needs about ", show_time(signif(seconds, 1)), " for ",
          count_of(n, "row"), " and ", count_of(width, "column"), ". `", shorter,
          "` takes less time, with a larger error.")
}

# Number of rows that are added together by annealing. Factors and features drawn from the prior
# would fit the first rows badly if these were added one by one. Clustering needs no such rows,
# because centres are integrated out. With unknown variances many rows together have a phase
# transition, which the data path avoids, so the number is small.
first_rows <- function(model) {
  part_of(model, "latent")$first(model$args, known = model$args$infer == 0)
}

# Above a likelihood threshold one variable moves at a time: a few sweeps give a new point.
latent_nested <- function(method) {
  if (method$settings$published)
    fail("`preset` \"paper\" moves points by sghmc(), which models with latent variables do not ",
         "have.")
  if (is.null(method$call$steps)) method <- with_settings(method, steps = NESTED_SWEEPS)
  method$kernels <- list(list(name = "sweeps", args = list()))
  method
}

NESTED_SWEEPS <- 5

# Maximum likelihood by EM, with the engine of variational().
latent_bic <- function(method) {
  method$estimator <- "variational"
  method$settings <- list(maximum = 1, restarts = 10, sweeps = 100, tolerance = 1e-3,
                          iterations = 1e4, draws = 1)
  method
}

#' Were the particles resampled again and again while sweeps left all of them as they were?
#' @noRd
unmoved_warning <- function(out) {
  if (is.null(out$unmoved) || out$unmoved < UNMOVED) return(NULL)
  say("copies", out$unmoved)
}
UNMOVED <- 2

# Up to this multiple of the number of factors or features, the default anneals rows together.
ANNEALED_ROWS <- 4

# Differences between the three models, see new_latent() ------------------------------------------

CLUSTERING <- list(
  title = function(args) paste0("Clustering, ", count_of(args$components, "component")),
  prior = function(args, known, sds) paste0(
    if (known) paste0("proportions ", show_setting(args$proportions))
    else "proportions Dirichlet(1)", "; centres normal around 0, ", sds),
  check = function(args, n, width) if (args$components > n)
    fail("`components` must be at most the number of rows (", n, "), not ", args$components, "."),
  state = function(args, rows, columns, each)
    c("prior_sd", "noise_sd", numbered("proportion", args$components), sprintf("label[%d]", rows)),
  first = function(args, known) 0,
  anneals = function(args, n, width) FALSE,
  cost = function(args, n, width, known) list(
    sweep = (2 * args$components + if (known) 0 else 20) * (width + 2),
    extend = n / 2 * (width + 2), telling = 0
  ),
  length = function(args, n, width) 0,
  free = function(args, width) args$components * width + args$infer * args$components,
  parts = function(args) args$components,
  spread = function(args) 1,
  settled = function(args, sd_of, named)
    utils::modifyList(args, list(prior_sd = sd_of("prior_sd"), proportions = named("^proportion"))),
  scales = c("prior_sd", "noise_sd"), tail = FALSE,
  legal = function(args) paste0("labels are whole numbers from 0 to ", args$components - 1,
                                ", in posterior draws from 1 to ", args$components)
)

LOW_RANK <- list(
  title = function(args) paste0("Low rank, rank ", args$rank),
  prior = function(args, known, sds) {
    if (known) paste0("rows normal around 0, sd ", show_setting(args$row_sd), "; columns ", sds)
    else "rows and columns normal around 0, sd unknown"
  },
  check = function(args, n, width) if (args$rank >= min(n, width))
    fail("`rank` must be less than the number of rows and of columns (", n, " and ", width,
         "), not ", args$rank, "."),
  state = function(args, rows, columns, each)
    c("row_sd", "column_sd", "noise_sd", each("v", seq_len(args$rank), columns),
      each("u", rows, seq_len(args$rank))),
  first = function(args, known) if (known) 4 + 4 * args$rank else 2 + args$rank,
  anneals = function(args, n, width) n <= ANNEALED_ROWS * args$rank * width,
  cost = function(args, n, width, known) {
    size <- args$rank * (args$rank + width) + 20
    list(sweep = 3.5 * size, extend = args$rank * size, telling = 2 * args$rank * width)
  },
  length = function(args, n, width) {
    signal <- (args$row_sd * args$prior_sd / args$noise_sd)^2
    sqrt(args$rank * (n * log1p(width * signal)^2 + width * log1p(n * signal)^2) / 2)
  },
  free = function(args, width) args$rank * width - args$rank * (args$rank - 1) / 2 + args$infer,
  parts = function(args) args$rank,
  spread = function(args) args$rank * args$row_sd^2,
  settled = function(args, sd_of, named) utils::modifyList(args,
                                                           list(prior_sd = sd_of("column_sd"),
                                                                row_sd = sd_of("row_sd"))),
  scales = c("row_sd", "column_sd", "noise_sd"), tail = TRUE,
  legal = function(args) "all numbers are finite"
)

BINARY_ATTRIBUTES <- list(
  title = function(args) paste0("Binary attributes, ", count_of(args$attributes, "attribute")),
  prior = function(args, known, sds) paste0("probabilities ",
                                            if (known) show_setting(args$probabilities)
                                            else "Beta(1, 1)", "; features normal around 0, ", sds),
  check = function(args, n, width) NULL,
  state = function(args, rows, columns, each)
    c("prior_sd", "noise_sd", numbered("probability", args$attributes),
      each("z", rows, seq_len(args$attributes))),
  first = function(args, known) if (known) 4 * args$attributes else 0,
  anneals = function(args, n, width) n <= ANNEALED_ROWS * args$attributes * width,
  cost = function(args, n, width, known) {
    size <- args$attributes * (args$attributes + width) + 20
    list(sweep = (if (known) 5 else 15) * size,
         extend = 2 * 2^args$attributes * (args$attributes + width + 10) + n / 4 * size,
         telling = 2 * args$attributes * width)
  },
  length = function(args, n, width) {
    signal <- n * mean(args$probabilities) * (args$prior_sd / args$noise_sd)^2
    sqrt(args$attributes * (width * log1p(signal)^2 + 1.5 * n) / 2)
  },
  free = function(args, width) args$attributes * width + args$infer * (args$attributes + 1),
  parts = function(args) args$attributes,
  spread = function(args) sum(rep_len(args$probabilities, args$attributes)),
  settled = function(args, sd_of, named)
    utils::modifyList(args, list(prior_sd = sd_of("prior_sd"),
                                 probabilities = named("^probability"))),
  scales = c("prior_sd", "noise_sd"), tail = FALSE,
  legal = function(args) "attributes are zeros and ones"
)

latent_advice <- function(model) {
  own <- if (model$args$infer != 0) c("shape", "scale") else part_of(model, "latent")$scales
  paste0("Use scale() on the columns, or set ", show_names(own), ".")
}

# Methods as specifications: a name, the settings of an engine in src/estimators, and kernels. A
# constructor only collects settings; it computes nothing.

#' @param traits What other files ask of a method, instead of its name: words of `TRAITS`.
#' @param error_from Where the standard error comes from, for the printed fit.
#' @noRd
new_method <- function(name, call, stages = list(), kernels = list(), ..., note = NULL,
                       estimator = "walk", traits = character(), error_from = GENEALOGY) {
  settings <- list(...)
  for (s in seq_along(stages)) {
    stage <- stages[[s]]
    names(stage) <- paste0(s, ".", names(stage))
    settings <- c(settings, stage)
  }
  if (length(stages)) settings$stages <- length(stages)
  structure(
    list(name = name, call = call, estimator = estimator, settings = lapply(settings, as_setting),
         kernels = kernels, note = note, traits = check_traits(traits), error_from = error_from),
    class = "evidence_method" # not `name`: bridgesampling has methods for class "bridge"
  )
}

GENEALOGY <- "their genealogy"

# How estimates of independent runs become one, and what that is called.
COMBINED <- c(arithmetic = "mean", harmonic = "harmonic mean", log = "mean of the logs")
COMBINATIONS <- names(COMBINED)

# How a method combines runs: as the user says, or as the method does.
combination_of <- function(method) if (is.null(method$combine)) "arithmetic" else method$combine

combined_by <- function(method, combine) {
  if (!is.null(combine)) method$combine <- check_choice(combine, "combine", COMBINATIONS)
  method
}

#' One estimate from independent ones, given their logarithms, and its standard error from their
#' spread
#' @param times How many times as many particles each has as the others.
#' @noRd
combine_estimates <- function(estimate, combine, times = rep(1, length(estimate))) {
  if (combine == "log")
    return(list(value = mean(estimate), se = stats::sd(estimate) / sqrt(length(estimate)),
                weight = rep(1, length(estimate))))
  sign <- if (combine == "harmonic") -1 else 1
  top <- max(sign * estimate)
  ratio <- exp(sign * estimate - top)
  mean <- sum(times * ratio) / sum(times)
  # the variance of a run is taken as inversely proportional to its particles
  spread <- sum(times * (ratio - mean)^2) / (length(ratio) - 1) / sum(times)
  list(value = sign * (top + log(mean)), se = sqrt(spread) / mean, weight = times * ratio)
}

TRAITS <- c(
  default = "is the default, so that it says why it is slow",
  blocks = "takes rows in blocks from a source",
  asks = "asks for sums over rows that are elsewhere",
  "closed form" = "is the closed form of the evidence",
  joins = "needs of rows that are elsewhere only what can be joined, in closed form",
  chunks = "uses rows chunk by chunk, so that it needs some",
  latent = "takes models with latent variables",
  anneals = "anneals one set of particles, so that the run can be reversed or its powers be used",
  independent = "has particles that do not interact",
  discrete = "takes parameters with few values, by Gibbs steps or by draws from the prior",
  still = "does not move its particles",
  local = "may stay in one part of the posterior of latent variables",
  checked = "has a check of its own",
  live = "has live points, so that volumes give its estimate",
  "points by chunk" = "moves live points by rows that may be gone",
  "no bound" = "has an estimate that a lower bound is not compared with",
  "no prior" = "does not use the prior",
  improper = "takes improper priors",
  components = "fits several numbers of components in one run",
  repeats = "gives the same result each time",
  overstates = "has an estimate that is too high",
  "any particles" =
    "has an unbiased estimate with any number of particles, so that runs of several are averaged"
)

check_traits <- function(traits) {
  if (anyNA(match(traits, names(TRAITS)))) stop("There is no such trait of a method.")
  traits
}

has_trait <- function(method, trait) {
  TRAITS[[trait]] # an error if there is no such trait
  match(trait, .subset2(method, "traits"), 0L) > 0L
}

#' One stage of an annealed run, with the settings named as in C
#' @noRd
stage <- function(particles, kernel = 0, mass = "default", steps = 0,
                  schedule = list(schedule = "one"),
                  resampling = "systematic", threshold = 0, gradient = "full", ...) {
  c(list(particles = particles, kernel = kernel, mass = mass, steps = steps,
         resampling = resampling, threshold = threshold, gradient = gradient), schedule, list(...))
}

check_particles <- function(particles, min = 2) check_count(particles, "particles", min, 1e6)

# One particle has no effective sample size, by which a schedule could adapt.
check_lone_particles <- function(particles, schedule) {
  particles <- check_particles(particles, 1)
  if (particles == 1 && check_schedule(schedule)$kind == "adaptive")
    fail("`particles` must be at least 2 with an adaptive() schedule, because one particle has no ",
         "effective sample size: take linear() or sigmoidal().")
  particles
}

# Default: at least this many moves, and more if they do not renew the particles enough.
check_steps <- function(steps, kernel = NULL) {
  if (is.null(steps) && !is.null(kernel)) return(kernel$moves)
  check_count(steps, "steps", 1, 1e5)
}

# Renewal of the particles at each distribution that moves must reach (1: independent draws), if
# their number is not given.
RENEWAL <- 0.6
renewal_goal <- function(steps) if (is.null(steps)) RENEWAL else -1 # only measured

check_resampling <- function(resampling) {
  check_choice(resampling, "resampling", c(setting_words("resampling"), "none"))
}

# The engine takes "none" as a threshold of zero.
resampling_settings <- function(resampling, threshold) {
  if (resampling == "none") return(list(resampling = "systematic", threshold = 0))
  list(resampling = resampling, threshold = check_probability(threshold, "threshold"))
}

#' @export
print.evidence_method <- function(x, ...) {
  cat("Method ", deparse1(x$call), "\n", sep = "")
  for (i in seq_along(x$kernels)) cat("  kernel: ", format_kernel(x$kernels[[i]]), "\n", sep = "")
  invisible(x)
}

check_is_method <- function(method, name = "method") {
  if (is.function(method))
    fail("`", name, "` must be a method, such as `sgais()`, not a function: add parentheses.")
  if (is.character(method) && length(method) == 1 && is_method_name(method))
    fail("`", name, "` must be a method, not its name: write `", method, "()`.")
  if (!is_made(method, "evidence_method"))
    refuse_made(method, name, "a method, such as `sgais()`", "method")
  method
}

is_method_name <- function(name)
  exists(paste0("method_", name), topenv(), inherits = FALSE)

#' Likelihood weighting
#'
#' Draws from the prior, weighted by their likelihood: the simplest estimate of the evidence. It
#' works for few observations and parameters. Beyond that it fails, and its standard error is then
#' too small. A baseline for comparison.
#'
#' @param particles Number of draws, a whole number of at least 2.
#'
#' @return An object of class `"evidence_method"` for [evidence()]. In arguments the name
#' does without `method_`, as `evidence(model, data, smc())`: see [logevidence_names].
#'
#' @examples
#' evidence(gaussian_mean(), c(1.2, 0.4, 2.1), likelihood_weighting(), seed = 1)
#'
#' @family methods
#' @aliases likelihood_weighting
#' @export
method_likelihood_weighting <- function(particles = 10000) {
  particles <- check_particles(particles)
  new_method("likelihood_weighting", match.call(), list(stage(particles, whole = 1)),
             traits = c("latent", "discrete", "still", "any particles"),
             error_from = "their weights' spread")
}

#' Harmonic mean
#'
#' The reciprocal of the mean reciprocal likelihood of posterior draws. The method is well known
#' because it is simple, and it is wrong: its variance is usually infinite, it overstates the
#' evidence, and its standard error shows neither. A baseline for comparison.
#'
#' @param particles Number of chains, a whole number of at least 2.
#' @param draws Number of posterior draws of each chain.
#' @param steps Number of moves between two draws; by default at least 2, 5 with [slice()], 10 with
#'   [rwm()], and more if these do not renew the particles enough.
#' @param kernel A kernel with an accept step: [hmc()], [mala()] or [rwm()].
#' @param start For models with latent variables: the state from which the chains start, in the form
#'   of `state` of [bdmc()], or a result of [bdmc()]. Its data come from its state, which is thus an
#'   exact draw from their posterior. `NULL`, the default, starts from an annealed sample.
#'
#' @details
#' The chains start from an annealed sample of the posterior, or from `start`; the standard error
#' comes from the spread between chains. The estimate of \eqn{1/Z} from an exact draw is unbiased,
#' so the harmonic mean of independent runs is an upper bound in the sense of [bdmc()].
#'
#' @inherit method_likelihood_weighting return
#'
#' @references
#' Newton, M. A. and Raftery, A. E. (1994). Approximate Bayesian inference with the weighted
#' likelihood bootstrap. *Journal of the Royal Statistical Society B* 56, 3-48.
#'
#' @examples
#' evidence(gaussian_mean(), c(1.2, 0.4, 2.1), harmonic_mean(), seed = 1)
#'
#' # from the exact draw of simulated data
#' made <- bdmc(clustering(components = 2), n = 10, method = ais(schedule = sigmoidal(100)),
#'              seed = 1)
#' evidence(made$model, made$data, harmonic_mean(2, 1000, start = made$state), seed = 1)
#'
#' @family methods
#' @aliases harmonic_mean
#' @export
method_harmonic_mean <- function(particles = 50, draws = 100, steps = NULL, kernel = hmc(),
                                 start = NULL) {
  own_names("kernel")
  particles <- check_particles(particles)
  kernel <- check_kernel(kernel)
  if (!needs_density(kernel))
    fail("`kernel` must have an accept step, hmc(), mala() or rwm(), not ", kernel$name, "().")
  method <- new_method(
    "harmonic_mean", match.call(),
    list(stage(particles, 1, kernel$mass, check_steps(steps, kernel),
               list(schedule = "adaptive", ess = 0.9 * particles), threshold = 0.5, whole = 1,
               renew = renewal_goal(steps))),
    list(kernel),
    rounds = check_count(draws, "draws", 1, 1e6),
    note = paste("The harmonic mean overstates the evidence, often by far; its standard error",
                 "does not show it."),
    traits = c("latent", "no bound", "overstates"), error_from = "the chains' spread"
  )
  method$combine <- "harmonic"
  with_spare_kernel(from_given_state(method, start), rwm())
}

#' A method that starts at a state which the user gives, or not
#' @noRd
from_given_state <- function(method, start) {
  if (is.null(start)) return(method)
  with_settings(method, from_state = unname(check_state(start, "start")))
}

#' A state of latent variables that the user gives, or the one in a result of bdmc()
#' @noRd
check_state <- function(state, name) {
  if (inherits(state, "bdmc")) state <- state$state
  if (!is_plain_numeric(state) || !is.null(dim(state)) || length(state) == 0 ||
      !all(is.finite(state)))
    refuse(state, name, "a state, such as `bdmc(...)$state`")
  stats::setNames(as.double(state), names(state))
}

#' Bridge sampling
#'
#' Posterior draws from chains, a normal density fitted to half of them, and the optimal bridge
#' estimate between the two. This is the usual method for Stan fits, included for comparison; unlike
#' [harmonic_mean()] it works.
#'
#' @inheritParams method_harmonic_mean
#'
#' @details
#' The chains start from an annealed sample of the posterior. The optimal bridge uses the effective
#' number of draws, which accounts for autocorrelation. The standard error is the root of the
#' approximate relative mean squared error; its posterior part comes from the spread between chains.
#'
#' @inherit method_likelihood_weighting return
#'
#' @references
#' Meng, X.-L. and Wong, W. H. (1996). Simulating ratios of normalizing constants via a simple
#' identity. *Statistica Sinica* 6, 831-860.
#'
#' Fruehwirth-Schnatter, S. (2004). Estimating marginal likelihoods for mixture and Markov switching
#' models using bridge sampling techniques. *Econometrics Journal* 7, 143-167.
#'
#' @examples
#' evidence(linear_regression(dist ~ speed, sigma = 15, prior_sd = 10), cars, bridge(), seed = 1)
#'
#' @family methods
#' @aliases bridge
#' @export
method_bridge <- function(particles = 50, draws = 100, steps = NULL, kernel = hmc()) {
  own_names("kernel")
  method <- harmonic_mean(particles, check_count(draws, "draws", 2, 1e6), steps, kernel)
  method <- with_settings(method, bridge = 1)
  method["note"] <- list(NULL)
  rename_method(method, "bridge", match.call(), error_from = "chains and proposal")
}

# A method of its own, without the other's traits.
rename_method <- function(method, name, call, traits = character(), error_from = GENEALOGY) {
  method$name <- name
  method$traits <- check_traits(traits)
  method$error_from <- error_from
  method$call <- call
  method$combine <- NULL
  method
}

#' Power posteriors
#'
#' The evidence from the powers of the likelihood through which [ais()] and [smc()] anneal, by
#' thermodynamic integration or by stepping stones.
#'
#' @param rule `"stepping"` for the product of the ratios between neighbouring powers,
#'   `"thermodynamic"` for the integral of the mean log likelihood over the power, by the trapezoid
#'   rule with a correction computed from the variances.
#' @param run The annealed run: [smc()] with `path = "thermal"` (the default, with smaller steps
#'   than those of `smc()` itself) or [ais()].
#' @details
#' `fit$power` has both estimates, the integral without its correction, and the mean and variance of
#' the log likelihood at each power. For the weights of `ais()` and `smc()`, stepping stones give
#' the same estimate as these methods. The thermodynamic integral adds an error if the steps are
#' wide; the size of the correction shows how large it is. The standard error is that of the run
#' combined with this error.
#'
#' The integral has a limit that stepping stones do not have. At power zero the draws are those of
#' the prior, and if the prior is wide, a few of them have log likelihoods of minus millions or
#' less: the variance, and often the mean, of the log likelihood under the prior is then unknown or
#' infinite, and a correction computed from it can be wrong by any number of nats. The mean log
#' likelihood rises with the power, which bounds the integral over each interval between two powers.
#' Where the correction leaves these bounds by more than chance explains, the interval is not
#' corrected; its stepping stone takes the place of the trapezoid if the step is short enough (at
#' least a share 1/e of the effective draws is left after it). The column `rule` of
#' `fit$power$path` says for each interval, at its lower end, which one it is: `"corrected"`,
#' `"ratio"` (stepping stone) or `"plain"` (trapezoid).
#'
#' @inherit method_likelihood_weighting return
#'
#' @references
#' Friel, N., Hurn, M. and Wyse, J. (2014). Improving power posterior estimation of statistical
#' evidence. *Statistics and Computing* 24, 709-723.
#'
#' Xie, W., Lewis, P. O., Fan, Y., Kuo, L. and Chen, M.-H. (2011). Improving marginal likelihood
#' estimation for Bayesian phylogenetic model selection. *Systematic Biology* 60, 150-160.
#'
#' @examples
#' model <- linear_regression(dist ~ speed, sigma = 15, prior_sd = 10)
#' evidence(model, cars, power_posterior("thermodynamic"), seed = 1)
#'
#' @family methods
#' @aliases power_posterior
#' @export
method_power_posterior <- function(rule = c("stepping", "thermodynamic"), run = smc(ess = 0.95)) {
  own_names("run")
  rule <- check_choice(rule, "rule", c("stepping", "thermodynamic"))
  run <- check_is_method(run, "run")
  if (!has_trait(run, "anneals") || !identical(run$settings$`1.whole`, 1))
    fail("`run` must anneal by powers of the likelihood of all data: ais() or smc(\"thermal\"), ",
         "not ", run$name, "().")
  if (!is.null(run$call$kernel)) run$spare <- NULL
  run <- with_settings(run, moments = 1)
  run$rule <- rule
  rename_method(run, "power_posterior", match.call(), "discrete")
}

#' Annealed importance sampling
#'
#' Particles move from the prior to the posterior through distributions in which the likelihood is
#' raised to an increasing power, and accumulate importance weights; they do not interact. With a
#' fixed schedule the estimate of the evidence (not of its logarithm) is unbiased.
#'
#' @param particles Number of particles. One is allowed if `schedule` is fixed, as [sigmoidal()]: a
#'   single chain, whose standard error only `replicates` show.
#' @param schedule [adaptive()], [sigmoidal()] or [linear()].
#' @param kernel The kernel that moves the particles, with the full data: [hmc()], [mala()],
#'   [rwm()], [baoab()], [sghmc()] or [sgld()].
#' @param steps Number of moves at each distribution. By default at least 2, 5 with [slice()] and 10
#'   with [rwm()], whose moves are shorter, and as many as bring the renewal of the particles
#'   (`renewal` in `fit$trace`) to 0.6.
#' @param preset `"default"`, or `"paper"` for the settings of the SGAIS article's comparison: 10
#'   particles, an effective sample size of 5, 20 steps of [sghmc()] with full gradients. Arguments
#'   given explicitly override these.
#'
#' @inherit method_likelihood_weighting return
#'
#' @references
#' Neal, R. M. (2001). Annealed importance sampling. *Statistics and Computing* 11, 125-139.
#'
#' @examples
#' model <- linear_regression(dist ~ speed, sigma = 15, prior_sd = 10)
#' fit <- evidence(model, cars, ais(), seed = 1)
#' fit
#'
#' @family methods
#' @aliases ais
#' @export
method_ais <- function(particles = 200, schedule = adaptive(), kernel = hmc(), steps = NULL,
                       preset = "default") {
  own_names("schedule", "kernel")
  preset <- check_choice(preset, "preset", c("default", "paper"))
  if (preset == "paper") {
    if (missing(particles)) particles <- 10
    if (missing(schedule)) schedule <- adaptive(ess = 5)
    if (missing(kernel)) kernel <- sghmc(tempered = FALSE)
    if (missing(steps)) steps <- 20
  }
  particles <- check_lone_particles(particles, schedule)
  kernel <- check_kernel(kernel)
  method <- new_method(
    "ais", match.call(),
    list(stage(particles, 1, kernel$mass, check_steps(steps, kernel),
               schedule_settings(check_schedule(schedule), particles),
               whole = 1, renew = renewal_goal(steps))),
    list(kernel), traits = c("anneals", "independent", "latent", "discrete", "local",
                               "any particles"),
    error_from = "their weights' spread"
  )
  with_spare_kernel(method, slice())
}

# Effective sample size, as a share of the particles, after each step that anneals a chunk.
ANNEALED_ESS <- 0.9

#' Sequential Monte Carlo
#'
#' A population of particles moves from the prior to the posterior and is resampled on the way. The
#' path either raises the likelihood of all data to a growing power (`"thermal"`) or adds
#' observations one chunk at a time (`"data"`, sequential importance resampling).
#'
#' @param path `"thermal"` or `"data"`.
#' @param particles Number of particles, at least 2, or 1 on the data path: a single chain as in
#'   [bdmc()], whose rows enter one chunk at a time without annealing, and whose standard error only
#'   `replicates` show.
#' @param ess Effective sample size after each step: a share of the particles if below 1, else a
#'   number of particles. On the data path (default 0.5) a chunk that would leave a smaller
#'   effective sample size is added in annealing steps, each of which keeps 0.9 of the particles and
#'   is followed by moves; 1 never anneals.
#' @param chunk For the data path: rows added at a time.
#' @param kernel The kernel that moves the particles, with all data so far: [hmc()], [mala()],
#'   [rwm()], [baoab()], [sghmc()] or [sgld()].
#' @param steps Number of moves at each distribution. By default at least 2, 5 with [slice()] and 10
#'   with [rwm()] (more on the data path of a mixture while there are few rows), and as many as
#'   bring the renewal of the particles (`renewal` in `fit$trace`) to 0.6.
#' @param resampling `"systematic"`, `"stratified"`, `"multinomial"`, `"residual"`, or `"none"`.
#' @param threshold Resample when the effective sample size falls below this share of the particles;
#'   1 means always.
#' @param move For the data path: move particles after every chunk (`"always"`), or only after
#'   resampling (`"resampled"`, the default, because moves need a pass over all data so far and are
#'   of little use without resampling). One particle is not resampled: its default is `"always"`.
#' @param proposal For the data path of models with latent variables, such as [clustering()]:
#'   whether the latent variable of a new row is drawn from its conditional distribution given the
#'   row, or from its prior.
#' @param order For the data path: `"shuffled"` takes the rows in random order, `"given"` keeps
#'   their order, which the trace then follows. `NULL`, the default, is `"shuffled"` for models with
#'   latent variables and `"given"` for others. Sorted rows can make the path very slow: a run
#'   that needs much time for its first rows says so in a message.
#'
#' @details
#' A single run of `smc("data")` on a model with latent variables may be a few nats too low without
#' a warning (3 and 4 of 100 runs on two test problems). Give `replicates`: by default [evidence()]
#' makes eight for these models.
#'
#' @inherit method_likelihood_weighting return
#'
#' @references
#' Del Moral, P., Doucet, A. and Jasra, A. (2006). Sequential Monte Carlo samplers. *Journal of the
#' Royal Statistical Society B* 68, 411-436. \doi{10.1111/j.1467-9868.2006.00553.x}
#'
#' Chopin, N. (2002). A sequential particle filter method for static models. *Biometrika* 89,
#' 539-552.
#'
#' @examples
#' model <- linear_regression(dist ~ speed, sigma = 15, prior_sd = 10)
#' evidence(model, cars, smc(), seed = 1)
#' evidence(model, cars, smc("data"), seed = 1)
#'
#' @family methods
#' @aliases smc
#' @export
method_smc <- function(path = c("thermal", "data"), particles = 500,
                       ess = if (path == "thermal") 0.9 else 0.5, chunk = 1, kernel = hmc(),
                       steps = NULL, resampling = "systematic", threshold = 0.5,
                       move = if (particles == 1) "always" else "resampled",
                       proposal = c("conditional", "prior"), order = NULL) {
  own_names("kernel")
  path <- check_choice(path, "path", c("thermal", "data"))
  proposal <- check_choice(proposal, "proposal", c("conditional", "prior"))
  particles <- check_particles(particles, if (path == "data") 1 else 2)
  kernel <- check_kernel(kernel)
  resampling <- resampling_settings(check_resampling(resampling), threshold)
  move <- check_choice(move, "move", c("resampled", "always"))
  if (path == "data" && particles == 1 && move == "resampled")
    fail("`move` must be \"always\" with one particle, not \"resampled\": one particle is not ",
         "resampled, so it would not be moved.")
  chunk <- check_count(chunk, "chunk", 1, 1e9)
  own <- if (path == "thermal") {
    list(schedule = "adaptive", ess = ess_in_particles(ess, particles), whole = 1)
  } else {
    list(schedule = "adaptive", ess = ess_in_particles(ess, particles), chunk_least = chunk,
         move_resampled = move == "resampled", anneal = ANNEALED_ESS * particles)
  }
  method <- new_method(
    "smc", match.call(),
    list(c(stage(particles, 1, kernel$mass, check_steps(steps, kernel), own[1:2],
                 resampling$resampling,
                 resampling$threshold, renew = renewal_goal(steps)), own[-(1:2)])),
    list(kernel), traits = c("anneals", "checked", "latent", "discrete", "any particles",
                             if (path == "data") "blocks")
  )
  if (path == "data") method$open <- "work"
  if (!is.null(order)) {
    if (path != "data")
      fail("`order` is for smc(\"data\") only: with path \"thermal\" all rows are used from the ",
           "start.")
    method <- with_settings(method, shuffle = check_order(order) == "shuffled")
  }
  method$path <- path
  method$proposal <- proposal
  with_spare_kernel(method, slice())
}

#' Sequential estimation with stochastic gradients
#'
#' The estimator of a conference paper that preceded SGAIS. The predictive density of each chunk is
#' a mean over particles that sample the posterior of the rows before it, moved by [sghmc()] with
#' mini-batches. Chunks hold 20 rows up to 80, then a quarter of the rows seen, and 500 beyond
#' 2,000.
#'
#' @param particles Number of particles, a whole number of at least 2.
#' @param steps Number of moves after each chunk.
#' @param kernel A kernel that needs only gradients: [sghmc()], [sgld()] or [baoab()].
#' @param batch Rows in a mini-batch; `Inf` for the full data.
#' @param order `"shuffled"` takes the rows in random order, `"given"` (as published) keeps their
#'   order.
#' @param own_batches Whether each particle has a mini-batch of its own in each move, as published,
#'   or all share one: see [sgais()].
#'
#' @inherit method_likelihood_weighting return
#'
#' @references
#' Cameron, S. A., Eggers, H. C. and Kroon, S. (2019). A sequential marginal likelihood
#' approximation using stochastic gradients. *Proceedings* 33(1), 18.
#' \doi{10.3390/proceedings2019033018}
#'
#' @examples
#' model <- linear_regression(dist ~ speed, sigma = 15, prior_sd = 10)
#' evidence(model, cars, sequential(), seed = 1)
#'
#' @family methods
#' @aliases sequential
#' @export
method_sequential <- function(particles = 10, steps = 20, kernel = sghmc(tempered = FALSE),
                              batch = 500, order = "given", own_batches = TRUE) {
  own_names("kernel")
  particles <- check_particles(particles)
  kernel <- check_kernel(kernel)
  gradient <- gradient_settings("batch", batch, kernel, own_batches)
  new_method(
    "sequential", match.call(),
    list(c(stage(particles, 1, kernel$mass, check_steps(steps), gradient = gradient$gradient,
                 chunk_least = 20, chunk_fraction = 0.25, chunk_most = 500),
           gradient[c("batch", "own_batches")])),
    list(kernel),
    mean_weights = TRUE, shuffle = check_order(order) == "shuffled",
    note = paste("Averaging each chunk's predictive density makes the estimate too low when",
                 "there are few particles."),
    traits = c("blocks", "checked", "chunks"), error_from = "their predictions' spread"
  )
}

check_order <- function(order) check_choice(order, "order", c("shuffled", "given"))

# An infinite batch is the full data; kernels with an accept step require it.
gradient_settings <- function(rule, batch, kernel, own_batches) {
  own_batches <- check_flag(own_batches, "own_batches")
  if (identical(batch, Inf)) return(list(gradient = "full", batch = 1, own_batches = 0))
  if (needs_density(kernel))
    fail("`kernel` ", kernel$name,
         "() accepts or rejects on the exact density, which mini-batches do not give: use ",
         "baoab(), sghmc() or sgld(), or `batch = Inf`.")
  halves <- isTRUE(kernel$settings$adaptive == 1)
  batch <- check_count(batch, "batch", if (halves) 2 else 1, 1e7)
  list(gradient = rule, batch = if (halves) ceiling(batch / 2) else batch,
       own_batches = as.double(own_batches))
}

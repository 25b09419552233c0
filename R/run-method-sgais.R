# Stochastic gradient annealed importance sampling: the package's version, and the published one.

#' Stochastic gradient annealed importance sampling
#'
#' The default method. A set of parameter draws (particles) starts at the prior and is updated as
#' rows are added, chunk by chunk. Each chunk is added in annealing steps; after each step the
#' particles are reweighted, resampled if necessary, and moved by a kernel that uses gradients of
#' small random mini-batches. The cost of a row does not depend on the number of rows before it, so
#' the evidence of a million rows takes about a second.
#'
#' @param particles Number of particles, a whole number of at least 2.
#' @param steps Number of moves at each distribution.
#' @param ess Effective sample size after each annealing step: a share of the particles if below 1,
#'   else a number.
#' @param kernel The Markov kernel that moves the particles: one that needs only gradients, or any
#'   kernel with `batch = Inf`.
#' @param batch Number of rows in a mini-batch; `Inf` for the full data.
#' @param own_batches Whether each particle has a mini-batch of its own in each move, as published,
#'   or all particles share one, which costs less.
#' @param chunk Size of a chunk: a share of the rows seen so far if below 1 (with `order = "given"`
#'   at most 20,000 rows), else a number of rows.
#' @param early A list of settings of the early phase, in which gradients and accept steps use the
#'   full data: `rows` (length of the phase), `particles`, `ess`, `chunk` (a share), `first` (rows
#'   of the first chunk), `kernel`, `steps`, and `work` (least number of moves times rows at each
#'   distribution, so that small data get more moves). Settings that are left out have default
#'   values; those of `rows`, `particles`, `ess`, `kernel`, `steps` and `work` depend on the number
#'   of components of a mixture.
#' @param resampling `"systematic"`, `"stratified"`, `"multinomial"`, `"residual"`, or `"none"`.
#' @param threshold Resample when the effective sample size falls below this share of the particles;
#'   1 means always.
#' @param order `"shuffled"`, the default, takes the rows in random order, which is faster and more
#'   accurate; `"given"` keeps their order, so that `fit$trace` follows the data stream.
#' @param restart If `TRUE`, the default: (1) with `order = "given"` the run starts again from the
#'   prior, through the rows so far in random order, if the distribution of the rows seems to have
#'   changed; `fit$trace$restarts` counts this. (2) For a mixture or a model of unknown form the
#'   package searches for posterior modes: for mixtures on the first rows, after the early phase and
#'   at the end, for others at the end. If the particles have missed relevant modes, the
#'   importance-sampling check, which includes them, is the estimate; if its weights are too uneven,
#'   the run is repeated. The fit has a warning in these cases.
#' @param audit Whether to check the result at the end by importance sampling from the whole
#'   posterior (the importance-sampling check).
#' @param audit_draws Number of draws of the check. `NULL` takes 1,000 (for mixtures 4,000, and up
#'   to four times as many if the weights are uneven); fewer, but at least 100, if each draw must
#'   use all rows of large data.
#' @param rate,friction Learning rate per observation and friction of the published [sghmc()]
#'   kernel; only for `preset = "paper"`.
#' @param preset `"default"`, or `"paper"` for the published algorithm: 10 particles, target
#'   effective sample size 5, 20 steps of [sghmc()] with rate 0.1 and friction 0.2, chunks and
#'   mini-batches of 500 rows in the given order, each particle with its own, no resampling, no
#'   importance-sampling check. Arguments given explicitly override these.
#'
#' @details
#' **Differences from the published algorithm.** (1) Mini-batch gradients use second-order control
#' variates around an anchor that follows the particles. Plain mini-batch gradients spread the
#' particles too widely (at \eqn{10^6} rows to a temperature of hundreds), which costs about a tenth
#' of a percent of the log evidence, that is hundreds to thousands of nats: with learning rate
#' \eqn{r}, friction \eqn{\alpha} and \eqn{b} rows in a mini-batch they add \eqn{r / (2 \alpha b)}
#' to the variance of a parameter of unit information per row, however many rows there are. (2) The
#' first rows, where the posterior changes most, are processed with many particles, small chunks
#' and exact densities. (3) The kernel is whitened Langevin dynamics ([baoab()]). (4) Later
#' annealing steps are chosen from the curvature of the log-likelihood and not from the particles
#' that they weight, because that would bias the result. (5) Particles are resampled. (6) The
#' standard error is computed from the particles' genealogy; for mixtures its square is multiplied
#' by 1.5, because tests showed it to be too small. Half the variance is added to the log evidence,
#' because the logarithm of an unbiased estimate is too low by about this amount. (7) For models
#' with second derivatives, the log-likelihood of a large chunk is a second-order expansion around
#' the anchor plus a correction from a thousand of its rows. The particles farthest from the anchor
#' are also weighted by all rows. If the two differ by more than a tenth of a nat, four times as
#' many rows are used, and if that is not enough, all rows.
#'
#' For [softmax_regression()] and [gaussian_mixture()], gradients of mini-batches and inside
#' trajectories are computed in single precision. At a million rows this shifts the posterior by
#' less than a thousandth of its standard deviation. Densities, weights, and everything that is
#' accepted or reported are in double precision.
#'
#' **The importance-sampling check** (`fit$audit`) finds posterior modes by optimisation from the
#' particles and samples around the modes (for mixtures also from a wider distribution with the
#' particles' mean and covariance). For mixtures and models of unknown form it also starts from the
#' results of a separate search. That search starts from the rows (for mixtures from k-means++ seeds
#' and a few steps of EM, wherever the columns are located) and from the prior, first on a part of
#' the rows. For models of unknown form it starts from those of 4,000 prior draws (fewer from 7
#' parameters on) that are more probable than their neighbours. If modes differ, points that combine
#' their coordinates are starts, too. With many rows, a thousand of them and the derivatives at the
#' modes give the weights, as in (7), unless a test shows an error of more than a tenth of a nat
#' even with sixteen thousand rows.
#'
#' A regression with about as many coefficients as rows is far from normal, and its density may have
#' no mode. If the weights are uneven there, draws are made in two steps: first the scale or shape
#' parameters, then the coefficients given these, annealed from t distributions around their mode.
#'
#' `fit$audit$unreached` is the number of nats by which the modes that the particles have missed
#' raise the log evidence. If the weights of the check are even, its estimate is reported, because
#' it is much more precise, unless the particles have found clearly more evidence: importance
#' sampling can overlook a mode, so it may be too low, but it exceeds the truth by 5 nats with
#' probability at most \eqn{e^{-5}}. For the same reason, if the check finds much more evidence than
#' the particles, its estimate is reported even with uneven weights, and its standard error is
#' tripled. Otherwise the run is repeated with more moves, its sampler's estimate is reported, and a
#' warning says why. Both estimates are always in the result. If the search or the check contradicts
#' the reported estimate, `fit$failed` says so.
#'
#' **Mixtures often need no annealing.** If importance sampling around the modes works well on the
#' first 1,500 rows (at least five for each parameter), its draws are the particles with which the
#' run continues (`fit$audit$first` says whether these were all rows). A mixture of five components
#' on a thousand rows then takes a twentieth of a second. If its weights are uneven, its draws are
#' annealed to the posterior when there is one mode and further rows follow; in all other cases the
#' particles are annealed from the prior. `audit = FALSE` omits the check at the end, but not this
#' first step.
#'
#' **What the checks cannot find**: a mode so narrow and so far from the structure of the rows that
#' neither optimisation nor particles reach it, such as a spike with 1e-14 of the prior's mass.
#'
#' **If control variates fail**, as for a mixture with many more components than clusters, whose
#' posterior is far from normal around one point, exact densities replace mini-batches until the
#' number of rows has doubled (`noise` in `fit$trace` decides). This is correct, but slow. If the
#' weights of the importance-sampling check are too uneven for a mixture, the run is repeated with
#' several times the particles and moves of the early phase (unless `early` sets them), and the
#' second run is reported unless it misses more.
#'
#' @inherit method_likelihood_weighting return
#'
#' @references
#' Cameron, S. A., Eggers, H. C. and Kroon, S. (2019). Stochastic gradient annealed importance
#' sampling for efficient online marginal likelihood estimation. *Entropy* 21(11), 1109.
#' \doi{10.3390/e21111109}
#'
#' Baker, J., Fearnhead, P., Fox, E. B. and Nemeth, C. (2019). Control variates for stochastic
#' gradient MCMC. *Statistics and Computing* 29, 599-615. \doi{10.1007/s11222-018-9826-2}
#'
#' Olsson, J. and Douc, R. (2019). Numerically stable online estimation of variance in particle
#' filters. *Bernoulli* 25, 1504-1535. \doi{10.3150/18-BEJ1028}
#'
#' @examples
#' model <- linear_regression(dist ~ speed, sigma = 15, prior_sd = 10)
#' fit <- evidence(model, cars, sgais(), seed = 1)
#' fit
#' fit$sampler
#' fit$audit
#'
#' @family methods
#' @aliases sgais
#' @export
method_sgais <- function(particles = 100, steps = 5, ess = 0.5, kernel = baoab(), batch = 100,
                         chunk = 0.2, early = list(), resampling = "systematic", threshold = 0.5,
                         order = "shuffled", restart = TRUE, audit = TRUE, audit_draws = NULL,
                         rate = 0.1, friction = 0.2, preset = "default",
                         own_batches = preset == "paper") {
  own_names("kernel", "early")
  call <- match.call()
  preset <- check_choice(preset, "preset", c("default", "paper"))
  if (preset == "paper") {
    if (missing(particles)) particles <- 10
    if (missing(steps)) steps <- 20
    if (missing(ess)) ess <- 5
    if (missing(kernel)) kernel <- sghmc(rate, friction, tempered = FALSE)
    if (missing(batch)) batch <- 500
    if (missing(chunk)) chunk <- 500
    if (missing(resampling)) resampling <- "none"
    if (missing(order)) order <- "given"
    if (missing(audit)) audit <- FALSE
    if (length(early))
      fail("`early` must be empty with `preset = \"paper\"`, which has no early phase.")
  } else if (!missing(rate) || !missing(friction)) {
    fail("`", if (missing(rate)) "friction" else "rate",
         "` must be given only with `preset = \"paper\"`; otherwise it is a setting of the kernel.")
  }
  restart <- check_flag(restart, "restart")
  particles <- check_particles(particles)
  kernel <- check_kernel(kernel)
  resampling <- resampling_settings(check_resampling(resampling), threshold)
  gradient <- gradient_settings(if (preset == "paper") "batch" else "control", batch, kernel,
                                own_batches)
  schedule <- list(schedule = if (preset == "paper" || gradient$gradient == "full") "adaptive"
                   else "curvature", ess = ess_in_particles(ess, particles))
  common <- list(shuffle = check_order(order) == "shuffled", audit = check_flag(audit, "audit"),
                 audit_draws = if (is.null(audit_draws)) 0
                 else check_count(audit_draws, "audit_draws", 20, 1e6),
                 audit_part = PART_WEIGHED, audit_work = AUDIT_WORK)
  late <- function(index) {
    c(stage(particles, index, kernel$mass, check_steps(steps), schedule, resampling$resampling,
            resampling$threshold,
            gradient$gradient), gradient[c("batch", "own_batches")],
            part = if (preset == "paper") 0 else PART_WEIGHED,
      chunk_settings(chunk, most = if (common$shuffle) Inf else STREAM_CHUNK))
  }
  common$traits <- c("default", "blocks")
  if (preset == "paper") {
    return(do.call(new_method, c(list("sgais", call, list(late(1)), list(kernel)), common),
                   quote = TRUE))
  }
  early <- early_settings(early)
  first <- c(stage(early$particles, 1, early$kernel$mass, early$steps,
                   list(schedule = "adaptive", ess = early$ess), resampling$resampling,
                   resampling$threshold),
             list(work = early$work, until = early$rows, chunk_least = early$first,
                  chunk_fraction = early$chunk))
  refuge <- c(stage(REFUGE_PARTICLES, 1, early$kernel$mass, max(2, early$steps),
                    list(schedule = "adaptive", ess = REFUGE_PARTICLES / 2), resampling$resampling,
                    resampling$threshold),
              chunk_settings(chunk, most = if (common$shuffle) Inf else STREAM_CHUNK))
  method <- do.call(new_method,
                    c(list("sgais", call, list(first, late(2), refuge), list(early$kernel, kernel)),
                      common,
                      list(correct = TRUE, search = restart,
                           restarts = as.double(restart && !common$shuffle))), quote = TRUE)
  method$open <- early$open
  method
}

# Particles of the stage that uses exact densities because control variates fail, as for posteriors
# that are far from normal.
REFUGE_PARTICLES <- 100

# For mixtures the genealogy of the particles uses a longer lag, and still finds only two thirds of
# the variance, because the effect of slow moves of a whole run is the same for all particles. With
# these two corrections, z over 200 seeds at 10^3, 10^4 and 10^5 rows has a standard deviation of
# 0.98, 0.92 and 1.03, and half the variance, which is added to the estimate, removes its bias.
SEVERAL_LAG <- 8
SEVERAL_UNSEEN <- 1.5

# A chunk of more than twice as many rows is weighted by so many of its rows if the control variates
# allow it (core/expansion.h). For the particles farthest from the anchor the error is 0.04 nats on
# average with 8,000 rows seen and 0.003 with half a million, small compared with the standard
# error.
PART_WEIGHED <- 1000

chunk_settings <- function(chunk, name = "chunk", most = Inf) {
  chunk <- check_number(chunk, name, 0, 1e9, lower_open = TRUE)
  if (chunk < 1) return(list(chunk_least = 10, chunk_fraction = chunk, chunk_most = most))
  list(chunk_least = check_count(chunk, name), chunk_most = chunk)
}

# Defaults of the early phase. A posterior that may have several modes needs more moves, above all
# with few rows, but fewer particles. It also needs more rows, because one anchor serves one mode:
# with overlapping clusters, runs on 10^5 rows differed by 2.6 to 3.9 nats with 1,000 early rows and
# by 1.9 nats with 1,500. `thorough` is for the second run, when the importance-sampling check has
# failed.
early_moves <- function(components = 1, thorough = FALSE) {
  if (components == 1)
    return(list(rows = 1000, kernel = hmc(), steps = 1, work = 0, particles = 200, ess = 0.9))
  list(rows = 1500, kernel = hmc(leapfrog = 4),
       steps = max(2, (if (thorough) components - 1 else ceiling(components / 2) - 1)),
       work = (if (thorough) 200 else 40) * components, particles = if (thorough) 300 else 100,
       ess = if (thorough) 0.9 else 0.95)
}

#' A method whose kernel fits a model without gradients
#' @noRd
for_gradients <- function(method, model, args) {
  if (!any(vapply(method$kernels, kernel_needs, NA, "gradient")) || !lacks_gradients(model, args))
    return(method)
  named <- !is.null(method$call$kernel)
  if (!named && !is.null(method$spare))
    return(moved_by_spare(method, check_steps(NULL, method$spare)))
  fail(if (named) "`kernel` must be rwm() or slice() here: the one of " else "`method` ",
       method$name, "() needs gradients, and ", no_gradients(model), if (named) "." else
         paste0(". Use smc(), ais(), nested() or bridge()", if (!is_stepped(model))
           " or laplace(), or smc(\"data\") for a source", "."))
}

#' Refuse approximations by the curvature of a density that has none
#' @noRd
check_for_curvature <- function(method, model) {
  if (!isTRUE(method$settings$importance > 0))
    fail(method$name, "() needs the curvature of the density, and ", no_gradients(model), ". Use ",
         "laplace(importance = 1000), smc(), nested() or bridge().")
}

no_gradients <- function(model) {
  if (!is_stepped(model))
    return("the model's C functions have no `log_lik_grad` or no `log_prior_grad`")
  stepped <- part_of(model, "stepped")
  paste0("the density depends on ", show_names(stepped), " by comparisons alone, so that its ",
         "derivative is zero or does not exist")
}

#' Set the choices of a method that depend on the model
#' @noRd
settle <- function(method, model, args) {
  method <- for_gradients(method, model, args)
  starts <- part_of(model, "starts")
  if (identical(starts, 0)) {
    # the form of the posterior is unknown: particles explore it better than optimisation, which
    # only checks them
    if (has_setting(method, "search"))
      method <- with_settings(method, search = SEARCH_UNKNOWN, first_look = 0)
  } else if (!may_have_modes(model) || is.null(model$components)) {
    method <- with_settings(method,
                            search = if (has_setting(method, "search")) starts)
  }
  if (length(method$open) == 0) return(method)
  if (!may_have_modes(model) || is.null(model$components)) {
    if (all(c("particles", "steps", "ess") %in% method$open))
      method$thorough <- replace(method$settings, names(THOROUGH), THOROUGH)
    return(method)
  }
  # particles that stay in a mode depend on their starting points for longer
  method <- with_settings(method, lag = SEVERAL_LAG, unseen = SEVERAL_UNSEEN)
  before <- particles_of(method)
  settled <- function(moves) {
    chosen <- moves[setdiff(names(moves), "kernel")]
    share <- if (is.null(moves$ess)) method$settings$`1.ess` / before else moves$ess
    chosen$ess <- share * (if (is.null(moves$particles)) before else moves$particles)
    names(chosen) <- paste0("1.", sub("rows", "until", names(chosen), fixed = TRUE))
    if (!is.null(moves$steps)) chosen$`3.steps` <- moves$steps
    utils::modifyList(method$settings, chosen)
  }
  moves <- early_moves(model$components)[method$open]
  if (any(c("work", "particles") %in% method$open))
    method$thorough <- settled(early_moves(model$components, thorough = TRUE)[method$open])
  if (!is.null(moves$kernel)) method$kernels[[1]] <- moves$kernel
  method$settings <- settled(moves)
  method
}

# The second run of a model with one mode moves its particles until they are renewed, as smc() does:
# the particles' own estimate is then the only one. With 20 rows and 20 coefficients and one move
# at each distribution it was up to 3.8 nats too low.
THOROUGH <- list(`1.particles` = 500, `1.ess` = 450, `1.steps` = 2, `1.renew` = 0.6)

# Most optimisation runs of a search if the model offers no starting points. From 13 parameters on
# there are fewer (src/estimators/walk/settings.c), because finite differences are expensive.
SEARCH_UNKNOWN <- 48

early_settings <- function(early) {
  defaults <- list(rows = NULL, particles = NULL, ess = NULL, chunk = 0.2, first = 10,
                   kernel = NULL, steps = NULL, work = NULL)
  if (!is.list(early) || (length(early) && is.null(names(early))))
    refuse(early, "early", "a named list")
  unknown <- setdiff(names(early), names(defaults))
  if (length(unknown))
    fail("`early` must hold only ", show_names(names(defaults), 9), ", not `", unknown[1], "`.")
  open <- names(which(vapply(c("rows", "kernel", "steps", "work", "particles", "ess"),
                             function(name) is.null(early[[name]]), TRUE)))
  early <- utils::modifyList(utils::modifyList(defaults, early_moves()[open]), early)
  particles <- check_count(early$particles, "early$particles", 2, 1e6)
  list(
    rows = check_count(early$rows, "early$rows", 1),
    particles = particles,
    ess = ess_in_particles(early$ess, particles, "early$ess"),
    chunk = check_number(early$chunk, "early$chunk", 0, 10, lower_open = TRUE),
    first = check_count(early$first, "early$first"),
    open = open,
    kernel = check_kernel(early$kernel, "early$kernel"),
    steps = check_count(early$steps, "early$steps", 1, 1e5),
    work = check_number(early$work, "early$work", 0)
  )
}

# Draws of the importance-sampling check: more if weights may be uneven. If each draw must use all
# rows, only so many draws that they take little time (AUDIT_WORK evaluations), at least 100.
AUDIT_WORK <- 2e7

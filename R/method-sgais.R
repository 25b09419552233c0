# Stochastic gradient annealed importance sampling: this package's own form, and the published one.

#' Stochastic gradient annealed importance sampling
#'
#' The default method: a population of particles is led through the data chunk by chunk, each chunk
#' annealed in, while moves between reweightings use gradients of small random batches. The cost of
#' a row does not depend on how many came before, so the evidence of a million rows takes about a
#' second.
#'
#' @param particles Number of particles, a whole number of at least 2.
#' @param steps Moves at each distribution.
#' @param ess Effective sample size that each annealing step keeps: a share of the particles if
#'   below 1, else a number.
#' @param kernel How particles move; a kernel that needs only gradients, or any with `batch = Inf`.
#' @param batch Rows in a mini-batch, which all particles share; `Inf` for the full data.
#' @param chunk Rows of a chunk: a share of the rows seen so far if below 1 (of rows in their own
#'   order, 20,000 at the most), else a number of rows.
#' @param early A list of settings of the early phase, in which gradients and accept steps use the
#'   full data: `rows` (until so many are seen), `particles`, `ess`, `chunk` (a share), `first`
#'   (rows of the first chunk), `kernel`, `steps`, and `work` (moves times rows of each
#'   distribution, at the least, so that few rows get more moves). What is left out keeps its
#'   default; `rows`, `particles`, `ess`, `kernel`, `steps` and `work` depend on the components of a
#'   mixture.
#' @param resampling `"systematic"`, `"stratified"`, `"multinomial"`, `"residual"`, or `"none"`.
#' @param threshold Resample when the effective sample size falls under this share of the particles;
#'   1 is always.
#' @param order `"shuffled"`, the default, walks the rows in random order, which is faster, more
#'   accurate, and fair for rows that are exchangeable; `"given"` keeps their order, for a trace
#'   that follows the stream.
#' @param restart Whether to walk again from the prior, through rows in random order, where the law
#'   of a stream seems to have changed on the way (`order = "given"`), and whether the posterior of
#'   a mixture, or of a model of unknown form, is searched for modes: of mixtures on the first rows,
#'   after the early phase, and by the audit at the end, of others at the end. Where modes matter
#'   that the particles have missed, importance sampling, which has them, is the estimate, or if its
#'   weights are too uneven another walk, and the fit says so. `fit$trace` counts new beginnings in
#'   `restarts`.
#' @param audit Whether to check the result by importance sampling of the whole posterior at the
#'   end.
#' @param audit_draws Draws of the audit; `NULL` takes 1,000 (4,000 for mixtures, up to four times
#'   as many where weights are uneven), and where each has to ask all rows of large data fewer, at
#'   least 100.
#' @param rate,friction Learning rate per observation and friction of the published [sghmc()]
#'   kernel; only for `preset = "paper"`.
#' @param preset `"default"`, or `"paper"` for the published algorithm to the letter: 10 particles,
#'   target effective sample size 5, 20 steps of [sghmc()] with rate 0.1 and friction 0.2, chunks
#'   and mini-batches of 500 rows in the given order, no resampling, no audit. Arguments given
#'   explicitly still count.
#'
#' @details
#' **What differs from the published algorithm**, and why: (1) mini-batch gradients use control
#' variates to second order around an anchor that follows the particles, because plain ones heat the
#' particles (at \eqn{10^6} rows to a temperature of hundreds), which costs about a tenth of a
#' percent of the log evidence, that is hundreds to thousands of nats; (2) the first rows, where the
#' posterior changes most, are walked with many particles, small chunks and exact densities; (3)
#' moves are whitened Langevin dynamics ([baoab()]); (4) later annealing steps are chosen from the
#' curvature and not from the particles that they weigh, which would bias the result; (5) particles
#' are resampled; (6) the standard error follows the particles' genealogy (of a mixture it counts
#' half as much again, which the genealogy was measured to miss), and half the variance is added to
#' the log evidence, which the logarithm of an unbiased estimate lacks on average; (7) of models
#' with second derivatives, large chunks are weighed by their sums to second order around the anchor
#' and a thousand of their rows for what that leaves. The particles farthest from the anchor are
#' weighed by all rows besides: where the two differ by more than a tenth of a nat, four times as
#' many rows are taken, and if that does not help all of them.
#'
#' Gradients of mini-batches, and inside of trajectories, are of single precision for
#' [softmax_regression()] and [gaussian_mixture()], with the published settings too: at a million
#' rows they differ from others by less than a thousandth of what a posterior standard deviation
#' makes. Densities, weights and all that is accepted or reported are of double precision.
#'
#' **The audit**, an importance-sampling check, climbs to the peaks of the posterior from where the
#' particles are and samples around them (for mixtures also from a wider distribution with the
#' particles' mean and covariance). Of many rows a thousand weigh its draws, with what derivatives
#' at the peaks tell, as in (7), unless a trial differs from all rows by a tenth of a nat with
#' sixteen thousand too. For mixtures and for models of unknown form it also climbs from where a
#' search of its own has ended. That search starts from the rows (for mixtures: k-means++ seeds and
#' a few steps of EM, wherever the columns lie) and from the prior, on a part of the rows first.
#' `fit$audit$unreached` is by how many nats modes that the particles have missed raise the log
#' evidence. Where its weights are even its estimate, far more precise, is the one reported, unless
#' the particles have found clearly more: importance sampling can miss a part of the posterior, but
#' never adds one. It is also reported where its weights are uneven and it has found far more than
#' the particles, with three times its standard error. Otherwise the sampler's is, with a sentence
#' saying why. Both are always in the result. Where search or check contradict the reported
#' estimate, the fit has `failed`.
#'
#' **Mixtures need no annealing** where importance sampling around the peaks is good on the first
#' 1,500 rows (at least five for each parameter): its draws are then the particles with which the
#' run goes on (`fit$audit$first` says whether these were all rows). A mixture of five components on
#' a thousand rows takes a twentieth of a second. Where it is not, its draws are annealed to the
#' posterior if there is one peak and other rows follow; elsewhere particles are annealed from the
#' prior. `audit = FALSE` leaves out the check at the end, not this first look.
#'
#' **What no check can know**: a mode that is so narrow and so far from the rows' own structure that
#' neither climbs nor particles meet it, such as a spike that holds 1e-14 of the prior's mass.
#'
#' **Where control variates fail**, as on a mixture with many more components than clusters, whose
#' posterior is nothing like a normal density around one point, mini-batches are given up for exact
#' densities until the rows have doubled (`noise` in `fit$trace` is what decides). That is right,
#' and slow. And where no audit can help a mixture, the walk is done a second time with several
#' times the particles and moves of the early phase (unless `early` gives them), and the second is
#' the one reported.
#'
#' @inherit likelihood_weighting return
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
#' @export
sgais <- function(particles = 100, steps = 5, ess = 0.5, kernel = baoab(), batch = 100, chunk = 0.2,
                  early = list(),
                  resampling = "systematic", threshold = 0.5, order = "shuffled", restart = TRUE,
                  audit = TRUE, audit_draws = NULL,
                  rate = 0.1, friction = 0.2, preset = "default") {
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
  gradient <- gradient_settings(if (preset == "paper") "batch" else "control", batch, kernel)
  schedule <- list(schedule = if (preset == "paper" || gradient$gradient == "full") "adaptive"
                   else "curvature", ess = ess_in_particles(ess, particles))
  common <- list(shuffle = check_order(order) == "shuffled", audit = check_flag(audit, "audit"),
                 audit_draws = if (is.null(audit_draws)) 0
                 else check_count(audit_draws, "audit_draws", 20, 1e6),
                 audit_part = PART_WEIGHED, audit_work = AUDIT_WORK)
  late <- function(index) {
    c(stage(particles, index, kernel$mass, check_steps(steps), schedule, resampling$resampling,
            resampling$threshold,
            gradient$gradient), gradient["batch"],
            part = if (preset == "paper") 0 else PART_WEIGHED,
      chunk_settings(chunk, most = if (common$shuffle) Inf else STREAM_CHUNK))
  }
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
              chunk_settings(chunk))
  method <- do.call(new_method,
                    c(list("sgais", call, list(first, late(2), refuge), list(early$kernel, kernel)),
                      common,
                      list(correct = TRUE, search = restart,
                           restarts = as.double(restart && !common$shuffle))), quote = TRUE)
  method$open <- early$open
  method
}

# Where control variates fail, as on posteriors that are nothing like a normal density, exact
# densities take over.
REFUGE_PARTICLES <- 100

# Of a mixture's particles the genealogy looks further back, and still sees two thirds of the
# variance: what a whole run's slow moves decide is the same for all. With the rest, runs over 200
# seeds at 10^3, 10^4 and 10^5 rows have z of size 0.98, 0.92 and 1.03, and half the variance, which
# is added to the estimate, is what it lacked.
SEVERAL_LAG <- 8
SEVERAL_UNSEEN <- 1.5

# Rows by which a chunk of more than twice as many is weighed where the control variates allow it
# (core/expansion.h): what they miss, of the particles farthest from the anchor 0.04 nats on average
# with 8,000 rows seen and 0.003 with half a million, is little against the standard error.
PART_WEIGHED <- 1000

# Rows of a chunk at most where rows keep their order: so often a stream's trace is written.
STREAM_CHUNK <- 20000

chunk_settings <- function(chunk, name = "chunk", most = Inf) {
  chunk <- check_number(chunk, name, 0, 1e9, lower_open = TRUE)
  if (chunk < 1) return(list(chunk_least = 10, chunk_fraction = chunk, chunk_most = most))
  list(chunk_least = check_count(chunk, name), chunk_most = chunk)
}

# What the user left open of the early phase: a posterior that may have several modes needs more
# moves, above all while rows are few, and fewer particles then do; and more rows, since one anchor
# serves one mode (of clusters that overlap 10^5 rows ended 2.6 to 3.9 nats apart with 1,000, 1.9
# with 1,500). Where the result is nothing like normal around its peaks, so that no audit helps, the
# walk is done again with all the effort that pays.
early_moves <- function(components = 1, thorough = FALSE) {
  if (components == 1)
    return(list(rows = 1000, kernel = hmc(), steps = 1, work = 0, particles = 200, ess = 0.9))
  list(rows = 1500, kernel = hmc(leapfrog = 4),
       steps = max(2, (if (thorough) components - 1 else ceiling(components / 2) - 1)),
       work = (if (thorough) 200 else 40) * components, particles = if (thorough) 300 else 100,
       ess = if (thorough) 0.9 else 0.95)
}

#' A method's open choices made for a model
#' @noRd
settle <- function(method, model) {
  if (inherits(model, c("custom_model", "compiled_model"))) {
    # the form of the posterior is unknown: particles see more of it than climbs, which only check
    # them
    if (isTRUE(method$settings$search > 0))
      method$settings[c("search", "first_look")] <- list(SEARCH_UNKNOWN, 0)
  } else if (!may_have_modes(model) || is.null(model$components)) {
    method$settings$search <- NULL
  }
  if (length(method$open) == 0 || !may_have_modes(model) || is.null(model$components))
    return(method)
  # particles that keep to a mode remember for longer where they come from
  method$settings[c("lag", "unseen")] <- list(SEVERAL_LAG, SEVERAL_UNSEEN)
  before <- method$settings$`1.particles`
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

# Climbs of a search where the model offers no starts: by differences they are dear.
SEARCH_UNKNOWN <- 8

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

# Nested sampling: the methods, and merging and continuing their runs.

#' Nested sampling
#'
#' A population of live points starts at the prior. The points of lowest likelihood are recorded and
#' replaced by draws from the prior above that likelihood, which shrinks the remaining prior volume
#' by a known factor. The method needs no annealing and works across phase transitions, where
#' annealing fails; it uses the full data at every step.
#'
#' @param live Number of live points, a whole number of at least 2. The standard error falls with
#'   the square root of this number, and the time is proportional to it.
#' @param kernel The kernel that moves copies of live points within the region above the likelihood
#'   threshold: [rwm()], [slice()], [sghmc()] (reflected at the threshold) or [prior_draws()].
#' @param steps Number of moves of the kernel for each new point. `NULL`, the default, starts with a
#'   number that depends on the kernel and the number of parameters, and adapts it so that copies
#'   end far from where they started.
#' @param tol The run ends when the live points cannot add more than this share to the evidence.
#' @param batch Number of points replaced at the same time; `NULL`, the default, is a tenth of
#'   `live`.
#' @param preset `"default"`, or `"paper"` for the settings of the SGAIS article: 2 live points, 20
#'   steps of reflected [sghmc()] with \eqn{\eta = 10^{-3}} and \eqn{\alpha = 0.1}, and the
#'   published sum, which omits the points that are live at the end. Arguments given explicitly
#'   override these.
#'
#' @details
#' The standard error comes from simulations of the prior volumes of the points;
#' `fit$nested$information` is the information \eqn{H}; \eqn{\sqrt{H/live}} is the usual
#' approximation of the same error. `fit$nested$sums` has the evidence by the trapezoid rule, the
#' lower and the upper sum, the published one, and the mean over simulated volumes.
#'
#' **Differences from the papers.** Volumes are those of the expected logarithms, a factor of
#' \eqn{e^{-1/M}} for each of \eqn{M} points, as Skilling has it; the thesis takes \eqn{M/(M+1)},
#' the expected volume itself. The run with `preset = "paper"`, too, stops when its live points
#' cannot add more than `tol`, and not when a term of the sum falls below a share of it.
#'
#' The run stops when the live points cannot add more than `tol` to the evidence. If the posterior
#' has a narrow spike above a broad slope, possibly no live point has reached it by then: a smaller
#' `tol` continues the run, and more `live` points are more likely to find the spike.
#'
#' The scale of the moves is estimated from the live points, separately for each cluster of points
#' if there are several, as around several modes. In the package's benchmarks [slice()] needed 1.3
#' times (regressions) to 4 times (shells) as many likelihood evaluations as [rwm()] for the same
#' error. [sghmc()] has a step-size error that no check detects.
#'
#' [`c(fit1, fit2)`][c.evidence] merges runs into one with as many live points as all of them.
#' `update(fit, tol = 1e-4)` continues a run to a smaller tolerance. `plot(fit)` shows the points.
#'
#' If the kernel hardly moves the copies, or does not reach the whole region above the likelihood
#' threshold, the estimate is wrong and its standard error does not show it. Two checks look for
#' this and give a warning: `fit$nested$renewal`, the distance that copies move (1: as far as an
#' independent draw), and `fit$nested$rank_p`, a test that the likelihoods of new points rank
#' uniformly among those of the live points.
#'
#' @inherit method_likelihood_weighting return
#'
#' @references
#' Skilling, J. (2006). Nested sampling for general Bayesian computation. *Bayesian Analysis* 1,
#' 833-859. \doi{10.1214/06-BA127}
#'
#' @examples
#' model <- linear_regression(dist ~ speed, sigma = 15, prior_sd = 10)
#' fit <- evidence(model, cars, nested(live = 100), seed = 1)
#' fit
#'
#' @concept nested sampling
#' @family methods
#' @aliases nested
#' @export
method_nested <- function(live = 400, kernel = rwm(), steps = NULL, tol = 0.01, batch = NULL,
                          preset = "default") {
  own_names("kernel")
  preset <- check_choice(preset, "preset", c("default", "paper"))
  if (preset == "paper") {
    if (missing(live)) live <- 2
    if (missing(kernel)) kernel <- sghmc(rate = 1e-3, friction = 0.1, bounce = FALSE)
    if (missing(steps)) steps <- 20
  }
  live <- check_count(live, "live", 2, 1e6)
  kernel <- check_wall_kernel(kernel)
  new_method(
    "nested", match.call(), kernels = list(kernel), estimator = "nested",
    live = live, batch = check_batch(batch, live), steps = nested_steps(steps, kernel),
    steps_per_dimension = kernel$walled, mass = kernel$mass,
    tol = check_number(tol, "tol", 0, 1, lower_open = TRUE, upper_open = TRUE),
    published = preset == "paper", traits = c("latent", "live")
  )
}

# 0: the engine chooses, because it knows the number of parameters. With prior_draws() one move is
# enough.
nested_steps <- function(steps, kernel) {
  if (!is.null(steps)) check_steps(steps) else if (kernel_needs(kernel, "floor")) 1 else 0
}

check_wall_kernel <- function(kernel, name = "kernel") {
  kernel <- check_kernel(kernel, name, walled = TRUE)
  if (is.null(kernel$walled))
    fail("`", name, "` must keep points above a likelihood threshold: slice(), rwm(), sghmc() or ",
                    "prior_draws(), not ", kernel$name, "().")
  kernel
}

# 0: all rows.
check_past <- function(past) if (identical(past, Inf)) 0 else check_count(past, "past", 100, 1e9)

check_batch <- function(batch, live) {
  if (is.null(batch)) return(max(1, floor(live / 10)))
  batch <- check_count(batch, "batch", 1, 1e6)
  if (batch >= live) fail("`batch` must be less than `live`, ", live, ", but is ", batch, ".")
  batch
}

#' Nested sampling, chunk by chunk
#'
#' The evidence as rows arrive. The predictive density of each chunk is computed by a small nested
#' sampling run whose prior is the posterior of the rows before it. The points of that run, kept in
#' a weighted reservoir of `live` points, represent the next prior.
#'
#' @param live,tol As for [nested()].
#' @param kernel The kernel that moves the points: [slice()], the default, or [rwm()] with all rows
#'   seen so far or what stands for them (`past`); or [sghmc()] with mini-batches, reflected at the
#'   likelihood threshold of the chunk, as in the thesis. The cost of `sghmc()` does not grow with
#'   the number of rows. Its error decreases with `rate`, which should be well below one over the
#'   curvature of a row; a smaller rate needs more `steps`.
#' @param steps Number of moves of the kernel for each new point.
#' @param batch For `sghmc()`: number of rows in a mini-batch; `Inf` for the full data.
#' @param gradient `"control"` for mini-batches with control variates, whose noise does not spread
#'   the points (if the model has gradients); `"plain"` as in the literature.
#' @param chunk Number of rows of the first chunks; later chunks have a quarter of the rows seen, up
#'   to 500.
#' @param order `"given"` keeps the order of the rows, `"shuffled"` takes them in random order.
#' @param past For kernels that use all rows: so many of the rows seen, drawn at random, may stand
#'   for all of them, together with sums over all of them; `Inf` for always all rows. See Details.
#'
#' @details
#' **Time.** The kernel computes the likelihood of the rows seen many times. When they are more than
#' `past`, they are replaced by a random sample, and by sums of the log-likelihood and its first and
#' second derivatives over all of them, as soon as this gives the same log-likelihood at the points
#' to a tenth of a nat. From then on the time for a chunk does not grow. The standard error includes
#' what the sample adds. All rows stay in use if the model has no gradients, if its components can
#' be exchanged, or as long as the sample is not good enough, as with several modes.
#'
#' **Error.** The standard error combines those of the chunks, from simulated volumes. It does not
#' include errors of moves by stochastic gradients, nor the error of the reservoir; compare with
#' [sgais()].
#'
#' All points use the same mini-batches. The noise of `gradient = "plain"` therefore moves them
#' together: their spread stays right, but their centre leaves the posterior, and the estimate can
#' be tens of nats off. A warning says so when the mean gradient of the points over all rows is far
#' from zero, for rows that are in memory. `"control"` does not have this error.
#'
#' **Streams.** Models whose components can be exchanged, such as [gaussian_mixture()], need all
#' rows in memory: a run stops with an error after `keep` rows (see [evidence()]), and a warning
#' says this at its start. Use [sgais()], or a larger `keep`.
#'
#' @inherit method_likelihood_weighting return
#'
#' @references
#' Chao, M. T. (1982). A general purpose unequal probability sampling plan. *Biometrika* 69,
#' 653-656.
#'
#' @examples
#' model <- linear_regression(dist ~ speed, sigma = 15, prior_sd = 10)
#' fit <- evidence(model, cars, online_nested(kernel = slice()), seed = 1)
#' fit$trace[c("n", "log_evidence", "se")]
#'
#' @family methods
#' @aliases online_nested
#' @export
method_online_nested <- function(live = 100, kernel = slice(), steps = 20, tol = 0.01, batch = 500,
                                 gradient = c("control", "plain"), chunk = 20, order = "given",
                                 past = 1000) {
  own_names("kernel")
  live <- check_count(live, "live", 2, 1e6)
  kernel <- check_wall_kernel(kernel)
  if (kernel_needs(kernel, "floor"))
    fail("`kernel` ", kernel$name,
         "() draws from the prior, which is correct only when all rows are used at once.")
  full <- needs_density(kernel) || identical(batch, Inf)
  if (!identical(batch, Inf)) batch <- check_count(batch, "batch", 1, 1e7)
  gradient <- check_choice(gradient, "gradient", c("control", "plain"))
  new_method(
    "online_nested", match.call(), kernels = list(kernel), estimator = "nested",
    live = live, batch = check_batch(NULL, live), steps = check_steps(steps), mass = kernel$mass,
    tol = check_number(tol, "tol", 0, 1, lower_open = TRUE, upper_open = TRUE), whole = 0,
    chunk_least = check_count(chunk, "chunk", 1, 1e9), chunk_fraction = 0.25, chunk_most = 500,
    gradient = if (full) "full" else if (gradient == "plain") "batch" else "control",
    gradient_batch = if (full) 1 else batch,
    shuffle = check_order(order) == "shuffled",
    past = if (full) check_past(past) else 0,
    traits = c("blocks", "chunks", "live", "points by chunk"), error_from = "simulated volumes"
  )
}

#' Nested sampling first, then sequential estimation
#'
#' [sequential()] has its largest errors at the first rows; this method uses nested sampling for
#' these, by default with [slice()] and 100 points where the conference paper had reflected
#' [sghmc()] and two.
#' @param first Number of rows for nested sampling.
#' @param live,tol As for [nested()].
#' @param start The kernel of nested sampling on the first rows: [slice()] or [rwm()].
#' @param particles,steps,kernel,batch,own_batches As for [sequential()], for the other rows.
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
#' evidence(model, cars, hybrid(first = 20), seed = 1)
#'
#' @family methods
#' @aliases hybrid
#' @export
method_hybrid <- function(first = 100, live = 100, tol = 0.01, start = slice(), particles = 10,
                          steps = 20, kernel = sghmc(tempered = FALSE), batch = 500,
                          own_batches = TRUE) {
  own_names("start", "kernel")
  walk <- sequential(particles, steps, kernel, batch, own_batches = own_batches)
  start <- check_wall_kernel(start, "start")
  if (kernel_needs(start, "floor"))
    fail("`start` must be slice() or rwm(), not ", start$name, "().")
  nested <- nested(live, start, NULL, tol)$settings
  first <- check_count(first, "first", 1, 1e9)
  own <- nested[c("live", "batch", "steps", "steps_per_dimension", "mass", "tol")]
  walk <- do.call(with_settings, c(list(walk, `1.kernel` = 2, whole = 0, chunk_least = first,
                                        first = first, reservoir = particles), own))
  walk$kernels <- list(start, walk$kernels[[1]])
  walk$estimator <- "hybrid"
  # of 40 runs each, with predictions for more than the first rows: .7 to 1.6 nats too low at stated
  # errors of .8 to 1.2; .07 and .26 at .3 and .7 where they matter less than this
  walk$note_from <- 0.1
  rename_method(walk, "hybrid", match.call(), c("blocks", "chunks", "live"),
                "volumes and predictions")
}

# Nested sampling results -------------------------------------------------------------------------

#' The results of a nested sampling run besides its estimate
#' @noRd
nested_of <- function(figures, trace, live) {
  if (is.null(figures$levels)) return(NULL)
  levels <- as.data.frame(t(figures$levels))
  sums <- c(trapezoid = drop(figures$log_evidence), lower = drop(figures$lower),
            upper = drop(figures$upper),
            published = drop(figures$published), simulated = drop(figures$simulated))
  nested_part(levels, drop(figures$log_volumes), drop(figures$level_log_weights), sums,
              drop(figures$information),
              stats::median(trace$renewal), live, stats::median(trace$echo))
}

nested_part <- function(levels, log_volume, log_weight, sums, information, renewal, live, echo) {
  test <- rank_test(levels$rank)
  list(live = live,
       points = data.frame(log_lik = levels$log_lik, log_volume = log_volume,
                           log_weight = normalise(log_weight)), levels = levels, sums = sums,
       information = information, renewal = renewal, echo = echo, rank_gap = test[["gap"]],
       rank_p = test[["p"]])
}

#' Do the likelihoods of new points rank uniformly among those of the live points?
#'
#' Kolmogorov's distance and its asymptotic probability.
#' @noRd
rank_test <- function(rank) {
  rank <- sort(rank[is.finite(rank)])
  n <- length(rank)
  if (n < 20) return(c(gap = NA_real_, p = NA_real_))
  gap <- max(seq_len(n) / n - rank, rank - (seq_len(n) - 1) / n)
  k <- 1:100
  c(gap = gap, p = min(1, max(0, 2 * sum((-1)^(k - 1) * exp(-2 * k^2 * n * gap^2)))))
}

LEAST_RENEWAL <- 0.2 # renewal of copied points; independent draws have 1
# Correlation of the likelihood ranks of copies with those of the points that were copied. On a thin
# ring copies stay near, but their ranks are independent.
MOST_ECHO <- 0.2
MOST_RANK_GAP <- 0.03
LEAST_RANK_P <- 1e-4

nested_warnings <- function(nested) {
  if (is.null(nested)) return(NULL)
  uneven <- isTRUE(nested$rank_p < LEAST_RANK_P && nested$rank_gap > MOST_RANK_GAP)
  c(
    if (isTRUE(nested$renewal < LEAST_RENEWAL && !(nested$echo < MOST_ECHO)))
      say("near_copies", 100 * nested$renewal),
    if (uneven) say("uneven_ranks", nested$rank_gap)
  )
}

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
#' The run stops when the live points cannot add more than `tol` to the evidence. If the posterior
#' has a narrow spike above a broad slope, possibly no live point has reached it by then: a smaller
#' `tol` continues the run, and more `live` points are more likely to find the spike.
#'
#' The scale of the moves is estimated from the live points, separately for each cluster of points
#' if there are several, as around several modes. In the package's benchmarks [slice()] needed 1.3
#' times (regressions) to 4 times (shells) as many likelihood evaluations as [rwm()] for the same
#' error. [sghmc()] has a step-size error that no check detects.
#'
#' `c(fit1, fit2)` merges several runs into one with as many live points as all of them together.
#' `update(fit, tol = 1e-4)` continues a run to a smaller tolerance. `plot(fit)` shows the points.
#'
#' If the kernel hardly moves the copies, or does not reach the whole region above the likelihood
#' threshold, the estimate is wrong and its standard error does not show it. Two checks look for
#' this and give a warning: `fit$nested$renewal`, the distance that copies move (1: as far as an
#' independent draw), and `fit$nested$rank_p`, a test that the likelihoods of new points rank
#' uniformly among those of the live points.
#'
#' @inherit likelihood_weighting return
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
#' @family methods
#' @export
nested <- function(live = 400, kernel = rwm(), steps = NULL, tol = 0.01, batch = NULL,
                   preset = "default") {
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
    steps_per_dimension = STEPS_PER_DIMENSION[[kernel$name]], mass = kernel$mass,
    tol = check_number(tol, "tol", 0, 1, lower_open = TRUE, upper_open = TRUE),
    published = preset == "paper"
  )
}

# First number of moves per parameter, before it adapts.
STEPS_PER_DIMENSION <- c(slice = 3, rwm = 10, sghmc = 5, prior_draws = 0)

# 0: the engine chooses, because it knows the number of parameters. With prior_draws() one move is
# enough.
nested_steps <- function(steps, kernel) {
  if (!is.null(steps)) check_steps(steps) else if (kernel_needs(kernel, "floor")) 1 else 0
}

check_wall_kernel <- function(kernel, name = "kernel") {
  kernel <- check_kernel(kernel, name, walled = TRUE)
  if (!kernel$name %in% names(STEPS_PER_DIMENSION))
    fail("`", name, "` must keep points above a likelihood threshold: slice(), rwm(), sghmc() or ",
                    "prior_draws(), not ", kernel$name, "().")
  kernel
}

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
#'   seen so far, which is exact and takes longer with every row; or [sghmc()] with mini-batches,
#'   reflected at the likelihood threshold of the chunk, as in the thesis. The cost of `sghmc()`
#'   does not grow with the number of rows. Its error decreases with `rate`, which should be well
#'   below one over the curvature of a row; a smaller rate needs more `steps`.
#' @param steps Number of moves of the kernel for each new point.
#' @param batch For `sghmc()`: number of rows in a mini-batch; `Inf` for the full data.
#' @param gradient `"control"` for mini-batches with control variates, whose noise does not spread
#'   the points (if the model has gradients); `"plain"` as in the literature.
#' @param chunk Number of rows of the first chunks; later chunks have a quarter of the rows seen, up
#'   to 500.
#' @param order `"given"` keeps the order of the rows, `"shuffled"` takes them in random order.
#'
#' @details
#' The standard error combines those of the chunks, from simulated volumes. It does not include
#' errors of moves by stochastic gradients, nor the error of the reservoir; compare with [sgais()].
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
#' @inherit likelihood_weighting return
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
#' @export
online_nested <- function(live = 100, kernel = slice(), steps = 20, tol = 0.01, batch = 500,
                          gradient = c("control", "plain"), chunk = 20, order = "given") {
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
    shuffle = check_order(order) == "shuffled"
  )
}

#' Nested sampling first, then sequential estimation
#'
#' [sequential()] has its largest errors at the first rows; this method uses nested sampling for
#' these.
#' @param first Number of rows for nested sampling.
#' @param live,tol As for [nested()].
#' @param start The kernel of nested sampling on the first rows: [slice()] or [rwm()].
#' @param particles,steps,kernel,batch As for [sequential()], for the other rows.
#'
#' @inherit likelihood_weighting return
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
#' @export
hybrid <- function(first = 100, live = 100, tol = 0.01, start = slice(), particles = 10, steps = 20,
                   kernel = sghmc(tempered = FALSE), batch = 500) {
  walk <- sequential(particles, steps, kernel, batch)
  start <- check_wall_kernel(start, "start")
  if (kernel_needs(start, "floor"))
    fail("`start` must be slice() or rwm(), not ", start$name, "().")
  nested <- nested(live, start, NULL, tol)$settings
  first <- check_count(first, "first", 1, 1e9)
  walk$settings$`1.kernel` <- 2
  walk$settings <-
    c(walk$settings, nested[c("live", "batch", "steps", "steps_per_dimension", "mass", "tol")],
      list(whole = 0, chunk_least = first, first = first, reservoir = particles))
  walk$kernels <- list(start, walk$kernels[[1]])
  walk$estimator <- "hybrid"
  rename_method(walk, "hybrid", match.call())
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

#' Merge or continue nested sampling
#'
#' `c()` merges independent fits by [nested()] of the same model and data. The result is the fit
#' that one run with as many live points as all of them together would give. `update(fit, tol = )`
#' continues a fit to a tolerance that is smaller than before; its argument `data` has the data of
#' the fit, by default those of its call.
#'
#' @param ... Fits from [evidence()] with [nested()].
#'
#' @return A fit, of class `"evidence"`.
#'
#' @examples
#' model <- linear_regression(dist ~ speed, sigma = 15, prior_sd = 10)
#' one <- evidence(model, cars, nested(live = 100), seed = 1)
#' two <- evidence(model, cars, nested(live = 100), seed = 2)
#' c(one, two)
#' update(one, tol = 1e-3)
#'
#' @seealso [nested()]
#' @name nested_runs
NULL

#' @rdname nested_runs
#' @export
c.evidence <- function(...) {
  fits <- list(...)
  for (fit in fits) check_is_nested(fit)
  first <- fits[[1]]
  for (fit in fits[-1]) {
    if (!identical(fit$data_id, first$data_id))
      fail("Runs can only be merged if they have the same data.")
    if (!same_model(fit, first))
      fail("Runs can only be merged if they have the same model.")
    if (!identical(fit$rows_id, first$rows_id))
      fail("Runs can only be merged if they have the same model and covariates.")
  }
  if (anyDuplicated(do.call(rbind,
                            lapply(fits, function(fit) fit$nested$levels[c("log_lik", "tie")]))))
    fail("Runs can only be merged if they are independent: two of these share points.")
  if (length(fits) == 1) return(first)
  together(fits)
}

same_model <- function(one, two) {
  if (asks_r(one$model)) return(identical(one$model, two$model))
  identical(one$args, two$args) && identical(one$model$name, two$model$name)
}

check_is_nested <- function(fit, name = "...") {
  check_is_fit(fit, name)
  if (is.null(fit$nested))
    fail("Only fits of nested() can be merged or continued, not one of ", fit$method$name, "().")
  if (is_latent(fit$model))
    fail("Fits of models with latent variables cannot be merged or continued: their points are ",
         "not all kept.")
  if (!is.null(fit$replicates))
    fail("A fit of several replicates cannot be merged or continued; fit once, with more `live`.")
  fit
}

#' @param frame Where the data of the fit's call are looked for.
#' @noRd
update_nested <- function(object, tol, data, frame) {
  check_is_nested(object, "object")
  if (is.null(tol))
    fail("`tol` must be given: the new tolerance, smaller than ", object$method$settings$tol, ".")
  tol <- check_number(tol, "tol", 0, object$method$settings$tol, TRUE, TRUE)
  if (object$nested$live != object$method$settings$live)
    fail("A merged fit cannot be continued: continue its parts, then merge them.")
  if (is.null(data)) data <- eval(object$call$data, frame)
  encoded <- encode(object$model, data)
  if (!identical(rows_id(encoded), object$rows_id))
    fail("`data` must be those of the fit, so that its run can be continued.")
  method <- object$method
  method$settings$tol <- tol
  method$settings$from_levels <- as.double(t(as.matrix(object$nested$levels)))
  method$settings$from_theta <- as.double(t(object$parameters))
  problem <- new_problem(object$model, encoded, method, object$seed)
  problem$replicate <- as.double(STREAMS[["continued"]] + nrow(object$nested$levels))
  if (asks_r(object$model)) {
    restore <- own_generator(c(problem$replicate, object$seed[2]), keep = FALSE)
    on.exit(restore())
  }
  out <- conduct(problem, encoded$rows)
  method$settings[c("from_levels", "from_theta")] <- NULL
  method$call$tol <- tol
  checks <- further_checks(problem, encoded, list(out), object$model, method, object$seed)
  fit <- new_evidence(list(out), object$call, object$model, method, encoded, object$seed,
                      checks = checks)
  fit$call$method <- method$call
  for (name in c("evaluations", "seconds"))
    fit$trace[[name]] <- fit$trace[[name]] + utils::tail(object$trace[[name]], 1)
  fit$trace <- rbind(object$trace, fit$trace)
  fit$work <- fit$work + object$work
  # of the whole run; the new part may be short or empty
  fit$nested$renewal <- stats::median(fit$trace$renewal)
  raise_warnings(with_doubts(fit, nested_warnings(fit$nested)), known = object$warnings)
}

#' The fit of all points of some fits
#' @noRd
together <- function(fits) {
  levels <- do.call(rbind, lapply(fits, function(fit) fit$nested$levels))
  sorted <- order(levels$log_lik, levels$tie)
  levels <- levels[sorted, ]
  rownames(levels) <- NULL
  levels$live <- live_counts(levels)
  pool <- function(part) do.call(rbind, lapply(fits, `[[`, part))[sorted, , drop = FALSE]
  fit <- fits[[1]]
  live <- sum(vapply(fits, function(f) f$nested$live, 0))
  volumes <- .Call(ffi_volumes, levels$log_lik, levels$live, as.double(live), 200, fit$seed)
  sums <- stats::setNames(volumes$sums,
                          c("log_evidence", "se", "information", "lower", "upper", "published",
                            "simulated"))
  renewal <- mean(vapply(fits, function(f) f$nested$renewal, 0))
  fit$nested <- nested_part(levels, volumes$log_volumes, volumes$log_weights,
                            c(trapezoid = sums[["log_evidence"]],
                              sums[c("lower", "upper", "published", "simulated")]),
                            sums[["information"]], renewal, live,
                            mean(vapply(fits, function(f) f$nested$echo, 0)))
  fit$draws <- pool("draws")
  fit$parameters <- pool("parameters")
  fit$log_weights <- normalise(volumes$log_weights)
  fit$trace <- do.call(rbind, lapply(fits, `[[`, "trace"))
  fit$work <- Reduce(`+`, lapply(fits, `[[`, "work"))
  fit$log_evidence <-
    sums[[if (fit$method$settings$published == 1) "published" else "log_evidence"]]
  fit$se <- sums[["se"]]
  fit$sampler <- list(log_evidence = fit$log_evidence, se = fit$se, draws = fit$parameters,
                      log_weights = fit$log_weights)
  known <- unlist(lapply(fits, `[[`, "warnings"))
  fit$warnings <- fit$failed <- NULL
  fit <- with_doubts(fit, c(known, nested_warnings(fit$nested)))
  fit$verdict <- merged_verdict(fit, fits)
  raise_warnings(fit, known = known)
}

# The merged points are reported; the estimates of the single fits stand beside.
merged_verdict <- function(fit, fits) {
  ledger <- new_entry("live points", "approximate", fit$log_evidence, fit$se, reportable = TRUE,
                      cost = sum(fit$work[c("likelihoods", "gradients")]))
  for (i in seq_along(fits))
    ledger <- ledger_of(ledger, new_entry(paste("fit", i), "approximate", fits[[i]]$log_evidence,
                                          fits[[i]]$se, uneven = TRUE))
  verdict_of(ledger, 1)
}

#' Number of live points when each of the sorted `levels` was removed: those drawn before and not
#' removed earlier
#' @noRd
live_counts <- function(levels) {
  n <- nrow(levels)
  keys <- order(order(c(levels$log_lik, levels$birth), c(levels$tie, levels$birth_tie),
                      rep(0:1, each = n)))
  death <- keys[seq_len(n)]
  birth <- sort(keys[n + seq_len(n)])
  # a new point is drawn just after the removal of the point whose level is its threshold
  as.double(findInterval(death, birth) - seq_len(n) + 1)
}

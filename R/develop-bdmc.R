# Bidirectional Monte Carlo: lower and upper bounds on the evidence of simulated data.

#' Bounds on the evidence of simulated data
#'
#' Measures the error of a method on data simulated from the model. The parameters (and latent
#' variables) from which the data were simulated are an exact draw from their posterior. A reverse
#' run that starts from this draw overestimates the log evidence, and a forward run underestimates
#' it. The truth lies between the two, so if they are close, both are accurate. This is
#' bidirectional Monte Carlo.
#'
#' @param model A model that can simulate data: a [custom_model()], a [density()] or a
#'   [compiled_model()] if it has `simulate`, and all others.
#' @param n,columns Rows and columns of the data to simulate. `columns` is for models without a
#'   formula; otherwise the formula gives the columns.
#' @param method [ais()] or [smc()], with the settings to be tested. The kernel must be [hmc()],
#'   [mala()], [rwm()] or [slice()]. Models with latent variables use their own Gibbs sweeps, and
#'   take [smc()] only with path `"data"`.
#' @param chains Number of independent chains in each direction, at least 2. For [ais()] a chain is
#'   one particle, and the number in `method` is used only for the pilot run. For [smc()] a chain is
#'   one population of particles.
#' @param budgets Increasing shares, up to 1, of the number of temperatures of [ais()] or of the
#'   particles of [smc()]. The bounds are computed at each, to show how the gap shrinks.
#' @param combine How the estimates of the chains become the two bounds: `"best"`, the default, by
#'   the mean of what is unbiased, which is the evidence forward and its reciprocal in reverse;
#'   `"arithmetic"`, `"harmonic"` or `"log"` as for [evidence()], for both directions. The mean of
#'   the logarithms shows the error of a single chain.
#' @param data Instead of `n`, the data that are not simulated, as for
#'   [simulate()][simulate.evidence_model]: the covariates of a regression and, to define the
#'   classes, the response of a [softmax_regression()]. Regressions need this argument.
#' @param seed,progress As for [evidence()].
#' @param cl `NULL`, or a cluster whose workers do the runs, as in [evidence()].
#' @param x A result of `bdmc()`.
#' @param ... Unused.
#'
#' @details
#' Priors that the model does not give have units of one, for columns as they are, because the
#' response is simulated.
#'
#' Forward estimates of the evidence \eqn{Z} are unbiased. So their logarithms are too low on
#' average, and by Markov's inequality too high by \eqn{b} nats with probability less than
#' \eqn{e^{-b}}. They are combined by their mean over chains. Reverse estimates of \eqn{1/Z} are
#' unbiased as well; their combination is a harmonic mean, which is an upper bound in the same
#' sense. Each bound has a Monte Carlo error: where both are near the truth, the lower one can be
#' above the upper one by chance, and the gap is then negative. The 95% intervals come from
#' bootstrapping the chains. The mean gap between single forward and reverse chains is a bound on
#' the Kullback-Leibler divergence of the sampler's draws from the posterior.
#'
#' **Adaptation is fixed beforehand**, because an adaptive run cannot be reversed. A pilot run on
#' the same data, with all settings of the method, chooses the temperatures, the step size and mass
#' matrix at each of them, the labels of mixtures, and on the path `"data"` where particles are
#' moved. The runs in both directions follow it and do not adapt. They resample by the rule of the
#' method, in reverse in proportion to the reciprocal weights. Methods that are not exact at a given
#' step size, that is [sghmc()], [sgld()], [baoab()] or mini-batches, have no such bounds and are an
#' error.
#'
#' All reverse chains start from the same draw. If moves rarely leave a mode, they explore the mode
#' of this draw only, and the upper bound depends on it. It is still a bound on average over
#' simulated data, but less tight than its interval says. The same holds if particles are rarely
#' moved: on the path `"data"`, `move = "always"` makes the upper bound tighter.
#'
#' This is exact for simulated data. For real data the forward estimate is the same lower bound, but
#' there is no exact draw for an upper bound. A small gap on data simulated from a similar model is
#' advice, not a guarantee. See [sandwich_check()].
#'
#' @return An object of class `"bdmc"`, a list: `bounds`, a data frame with a row for each budget:
#'   `budget`, `lower` and `upper`, their intervals `lower_low`, `lower_high`, `upper_low`,
#'   `upper_high`, `gap`, `kl` (the bound on the divergence) and `seconds` (both directions);
#'   `data`, the simulated data; `state`, the parameters and latent variables from which they were
#'   simulated, in the form of the sampler (variances, labels from 0); `forward` and `reverse`, the
#'   log estimates of all chains at the full budget; `model`, `method`, `seed`, `n`, `chains`.
#'
#' @references
#' Grosse, R. B., Ghahramani, Z. and Adams, R. P. (2015). Sandwiching the marginal likelihood using
#' bidirectional Monte Carlo. arXiv:1511.02543.
#'
#' @examples
#' model <- clustering(components = 3, prior_sd = 2)
#' sandwich <- bdmc(model, n = 20, columns = 4, ais(schedule = sigmoidal(300)), seed = 1)
#' sandwich
#' plot(sandwich)
#' # given covariates, simulated responses
#' model <- linear_regression(dist ~ speed, sigma = 15, prior_sd = 10)
#' bdmc(model, data = cars, method = ais(), seed = 1)
#'
#' @export
bdmc <- function(model, n = NULL, columns = 2, method = ais(schedule = sigmoidal(1000)),
                 chains = 10,
                 budgets = c(0.01, 0.1, 1), data = NULL, seed = NULL, progress = interactive(),
                 combine = c("best", "arithmetic", "harmonic", "log"), cl = NULL) {
  own_names("method")
  cl <- check_cluster(cl)
  check_is_model(model)
  check_is_method(method)
  check_reversible(method, model)
  chains <- check_count(chains, "chains", 2, 1e5)
  combine <- check_choice(combine, "combine", c("best", COMBINATIONS))
  if (!is_plain_numeric(budgets) || length(budgets) == 0 || anyNA(budgets) || any(budgets <= 0) ||
      any(diff(budgets) <= 0) || max(budgets) != 1)
    fail("`budgets` must be increasing shares, the last of them 1.")
  progress <- check_flag(progress, "progress")
  words <- seed_words(seed)
  made <- if (is_latent(model)) {
    if (!is.null(data))
      fail("`data` must be left out for a model with latent variables: `n` and `columns` give ",
           "their size.")
    n <- check_count(n, "n", 2, 1e6)
    if (is.null(model$formula)) columns <- check_count(columns, "columns", 1, 1e5)
    simulate_latent(model, n, columns, words)
  } else {
    model <- at_unit_one(model)
    blank <- blank_for(model, n, columns, data)
    simulate_from(model, blank, prior_draw(model, blank, words), words)
  }
  sandwich(model, made, method, chains, budgets, words, progress, combine = combine, cl = cl)
}

check_reversible <- function(method, model) {
  allowed <- if (is_latent(model)) "ais() or smc(\"data\")" else "ais() or smc()"
  by_rows <- identical(method$path, "data")
  if (!has_trait(method, "anneals") ||
      is_latent(model) && !has_trait(method, "independent") && !by_rows)
    fail("`method` must be ", allowed, ", whose runs can be reversed, not ", deparse1(method$call),
         ".")
  kernel <- method$kernels[[1]]
  if (!is_latent(model) && !is_reversible(kernel))
    fail("`kernel` must be hmc(), mala(), rwm() or slice(), which leave the posterior exactly ",
         "invariant, not ", kernel$name, "(): a kernel with a step-size error gives no bounds.")
}

#' Both bounds at every budget, for simulated data
#' @param made The simulated data: a result of `simulate_latent()` or `simulate_from()`.
#' @param warm Factor by which a reverse run makes more moves at its start, under the posterior,
#'   than at other distributions.
#' @noRd
sandwich <- function(model, made, method, chains, budgets, words, progress, warm = 1,
                     combine = "best", cl = NULL) {
  bar <- progress_bar(progress, made$encoded$n)
  on.exit(bar$close())
  found <- both_directions(model, made, method, chains, budgets, words, warm, bar$show, cl)
  last <- found$results[[length(budgets)]]
  structure(
    list(bounds = bounds_of(found$results, budgets, words, combine), data = made$data,
         state = made$named, forward = last$forward$log_evidence,
         reverse = last$reverse$log_evidence, chains = chains, model = model, method = method,
         seed = words, n = made$encoded$n),
    class = "bdmc"
  )
}

#' The estimates of all chains in both directions, at every budget
#'
#' @param show Called with the share of the work that is done, and the number of rows.
#' @return A list: `results`, for each budget a list of what estimates_of_side() returns for
#'   `forward` and `reverse`; `pilot`, seconds of processor time before them.
#' @noRd
both_directions <- function(model, made, method, chains, budgets, words, warm = 1,
                      show = function(done, rows) NULL, cl = NULL) {
  encoded <- made$encoded
  freeze <- if (is_latent(model)) frozen_latent else frozen_walk
  # R functions of the model draw from R's generator
  restore <- own_generator(words, keep = !asks_r(model))
  on.exit(restore())
  began <- cpu_seconds()
  frozen <- freeze(model, encoded, method, words, chains, warm)
  pilot <- cpu_seconds() - began
  sides <- expand.grid(reverse = 0:1, budget = seq_along(budgets))
  problems <- Map(function(b, reverse) {
    one <- frozen(budgets[b], if (reverse) made$state)
    problems_of_side(model, encoded, one, chains, words, 2 * b + reverse)
  }, sides$budget, sides$reverse)
  runs <- conduct_each(unlist(problems, recursive = FALSE), encoded$rows, cl,
                       if (asks_r(model)) words, function(share) show(share, encoded$n))
  runs <- unname(split(runs, rep(seq_along(problems), lengths(problems))))
  found <- Map(estimates_of_side, runs, ifelse(sides$reverse, -1, 1),
               has_trait(method, "independent"))
  results <- lapply(seq_along(budgets), function(b)
    stats::setNames(found[sides$budget == b], c("forward", "reverse")))
  list(results = results, pilot = pilot)
}

# Simulated data ---------------------------------------------------------------

#' Data whose responses are not simulated yet, as from `template()`
#' @noRd
blank_for <- function(model, n, columns, data) {
  reason <- part_of(model, "simulates")(model)
  if (!is.null(reason)) fail("`model` must be one that can simulate data, ", reason, ".")
  if (is.null(data) == is.null(n))
    fail("Exactly one of `data` and `n` must be given, not ", if (is.null(n)) "neither" else "both",
         ".")
  if (!is.null(n)) n <- check_count(n, "n", 1, 1e8)
  if (is.null(data) && identical(part_of(model, "columns")(model), "any"))
    data <- matrix(0, n, check_count(columns, "columns", 1, 1e5))
  template(model, data, n)
}

# With another seed than the runs, so that their tuning depends on the draw only through the data.
prior_draw <- function(model, blank, words) {
  seed <- next_seed(words, 1)
  draw <- function()
    as.vector(model_caller(model, blank$encoded)("draw_prior", extra = list(n = 1, seed = seed)))
  if (asks_r(model)) with_seed_words(seed, draw()) else draw()
}

#' Data simulated at a point in parameter space
#' @noRd
simulate_from <- function(model, blank, theta, words) {
  data <- simulated(model, blank, theta, next_seed(words, 2))
  list(data = data, encoded = encode(model, data), state = theta,
       named = stats::setNames(theta, blank$encoded$theta_names))
}

# Runs that do not adapt ---------------------------------------------------------------------

#' For models with latent variables: a function that returns the method for a budget and, for
#' reverse runs, the state they start from
#' @noRd
frozen_latent <- function(model, encoded, method, words, chains, warm) {
  # rows that are added together cannot be removed one by one
  method <- latent_method(with_settings(method, first = 0), model)
  path <- if (method$settings$by_rows == 0) frozen_path(model, encoded, method, words)
  function(budget, state) {
    with_settings(reversed_from(at_budget(method, path, budget, chains), state), warm = warm)
  }
}

#' The temperatures for both directions: those given, or those of a pilot run
#' @noRd
frozen_path <- function(model, encoded, method, words) {
  if (method$settings$`1.schedule` == "fixed") return(method$settings$`1.lambda`)
  conduct(new_problem(model, encoded, method, words), encoded$rows)$trace$lambda
}

#' The method at a budget
#' @noRd
at_budget <- function(method, path, budget, chains) {
  if (is.null(path)) return(with_particles(method, share_of_particles(method, budget)))
  steps <- max(1, round(budget * length(path)))
  lambda <- stats::approx(0:length(path), c(0, path), n = steps + 1)$y[-1]
  with_particles(with_schedule(method, "fixed", lambda = lambda), chains)
}

# At least two, unless the method has one.
share_of_particles <- function(method, budget) {
  all <- particles_of(method)
  max(min(2, all), round(budget * all))
}

#' For models with parameters in R^d: the same, with the path of a pilot run for both directions
#' @noRd
frozen_walk <- function(model, encoded, method, words, chains, warm) {
  path <- conduct(new_problem(model, encoded, recording(method), words), encoded$rows)$path
  alone <- has_trait(method, "independent")
  function(budget, state) {
    taken <- if (alone) thinned_path(path, budget) else path
    if (!is.null(state)) taken["moves", ncol(taken)] <- warm * taken["moves", ncol(taken)]
    particles <- if (alone) chains else share_of_particles(method, budget)
    following(method, taken, particles, state)
  }
}

# A path is in the form of C, with a column for each distribution.

#' A share of the temperatures of a path, each with the tuning of the next higher one
#' @noRd
thinned_path <- function(path, share) {
  whole <- ncol(path)
  steps <- max(1, round(share * whole))
  if (steps == whole) return(path)
  at <- whole * seq_len(steps) / steps
  taken <- path[, ceiling(at), drop = FALSE]
  taken["lambda", ] <- stats::approx(0:whole, c(0, path["lambda", ]), at)$y
  taken
}

# Independent chains are the particles of one run.
problems_of_side <- function(model, encoded, method, chains, words, index) {
  runs <- if (has_trait(method, "independent")) 1 else chains
  problem <- new_problem(model, encoded, method, words)
  lapply(seq_len(runs), function(chain) replace(problem, "replicate", list(index * 1e5 + chain)))
}

#' Log estimates of the evidence, one for each chain
#' @param sign Sign of the logarithms: -1 for weights that estimate 1/Z.
#' @noRd
estimates_of_side <- function(runs, sign, independent) {
  seconds <- sum(vapply(runs, function(out) drop(out$seconds), 0))
  values <- if (independent) sign * drop(runs[[1]]$log_weights)
  else vapply(runs, function(out) drop(out$log_evidence), 0)
  list(log_evidence = values, seconds = seconds,
       cpu = sum(vapply(runs, function(out) out$cpu, 0)))
}

# The mean of what is unbiased: of the evidence forward, of its reciprocal in reverse.
BEST <- c(forward = "arithmetic", reverse = "harmonic")

bounds_of <- function(results, budgets, words, combine) {
  restore <- own_generator(words, keep = FALSE)
  on.exit(restore())
  side <- function(result, which) {
    how <- if (combine == "best") BEST[[which]] else combine
    values <- result[[which]]$log_evidence
    join <- function(x) combine_estimates(x, how)$value
    c(join(values), stats::quantile(replicate(1000, join(sample(values, replace = TRUE))),
                                    c(0.025, 0.975), names = FALSE))
  }
  rows <- Map(function(result, budget) {
    low <- side(result, "forward")
    high <- side(result, "reverse")
    data.frame(budget = budget, lower = low[1], upper = high[1], lower_low = low[2],
               lower_high = low[3], upper_low = high[2], upper_high = high[3],
               gap = high[1] - low[1],
               kl = mean(result$reverse$log_evidence) - mean(result$forward$log_evidence),
               seconds = result$forward$seconds + result$reverse$seconds)
  }, results, budgets)
  do.call(rbind, rows)
}

#' @rdname bdmc
#' @export
print.bdmc <- function(x, ...) {
  check_no_dots(...)
  bounds <- x$bounds
  cat(model_line(x$model), ", ", x$n, " simulated rows",
      if (is_latent(x$model)) paste0(" of ", count_of(ncol(x$data), "column")), "\n", sep = "")
  cat(deparse1(x$method$call), ", ", x$chains, " chains each way\n\n", sep = "")
  digits <- function(values) sprintf("%.1f", values)
  shown <- cbind(
    format(c("share", format(bounds$budget)), justify = "right"),
    format(c("lower", digits(bounds$lower)), justify = "right"),
    format(c("upper", digits(bounds$upper)), justify = "right"),
    format(c("gap", sprintf("%.2f", round(bounds$gap, 2) + 0)), justify = "right"),
    format(c("time", vapply(bounds$seconds, show_time, "")), justify = "right")
  )
  cat(paste0(apply(shown, 1, paste, collapse = "  "), "\n"), sep = "")
  last <- bounds[nrow(bounds), ]
  cat("\n")
  cat_wrapped(paste0(
    sprintf(paste0("The log evidence of these data lies between %.2f and %.2f (95%% of ",
                   "bootstrapped chains: %.2f to %.2f). "), min(last$lower, last$upper),
            max(last$lower, last$upper), min(last$lower_low, last$upper_low),
            max(last$lower_high, last$upper_high)),
    sprintf(paste("The Kullback-Leibler divergence of one chain's draws from the posterior is at",
                  "most %.1f nats."), max(last$kl, 0)),
    if (last$gap > 1) paste0(" The bounds have not met: more temperatures, ", moves_of(x$model),
                             " or particles would bring them closer.")
  ))
  invisible(x)
}

moves_of <- function(model) if (is_latent(model)) "sweeps" else "moves"

#' @rdname bdmc
#' @export
plot.bdmc <- function(x, ...) {
  check_no_dots(...)
  bounds <- x$bounds
  old <- graphics::par(mar = c(3.6, 5, 3, 1.6), mgp = c(2.3, 0.6, 0), tcl = -0.3, las = 1)
  on.exit(graphics::par(old))
  seconds <- pmax(bounds$seconds, 1e-4)
  finite <- function(values) values[is.finite(values)]
  graphics::plot.default(NA, NA, log = "x", xlim = range(seconds), axes = FALSE,
                         xlab = "Seconds, both ways", ylab = "",
                         ylim = range(finite(unlist(bounds[c("lower_low", "lower_high", "upper_low",
                                                             "upper_high")]))))
  graphics::title(ylab = "Log evidence", line = 3.6)
  graphics::title(main = "Bounds on the log evidence", adj = 0, line = 1.55, font.main = 2,
                  cex.main = 1.05)
  graphics::mtext("blue: lower bound, orange: upper bound; 95% of bootstrapped chains", side = 3,
                  line = 0.35, adj = 0, cex = 0.8 * graphics::par("cex"),
                  col = "grey35")
  ticks <- graphics::axTicks(2)
  graphics::abline(h = ticks, col = FAINT, lwd = 0.8)
  graphics::axis(1, lwd = 0, lwd.ticks = 0.8, col.ticks = "grey50")
  graphics::axis(2, ticks, axis_labels(ticks), lwd = 0)
  for (side in c("lower", "upper")) {
    colour <- if (side == "lower") BLUE else ORANGE
    graphics::segments(seconds, bounds[[paste0(side, "_low")]], seconds,
                       bounds[[paste0(side, "_high")]], col = colour, lwd = 2.5)
    graphics::lines(seconds, bounds[[side]], col = colour, lwd = 1.4)
    graphics::points(seconds, bounds[[side]], col = colour, pch = 16)
  }
  invisible(x)
}

#' How accurate is a fit likely to be?
#'
#' Simulates data sets like those of the fit, from the model with parameters from the fit, and
#' computes lower and upper bounds on the evidence of each with the fit's settings ([bdmc()]). The
#' gaps between the bounds show the accuracy to expect from these settings on such data.
#'
#' @param fit A fit by [ais()] or [smc()] of a model that [bdmc()] takes.
#' @param datasets Number of data sets, at least 1.
#' @param chains Number of chains in each direction, as for [bdmc()]; by default the fit's particles
#'   for [ais()] and 5 populations for [smc()].
#' @param data For regressions, the data of the fit, because a fit does not keep them. All data sets
#'   have these covariates.
#' @param from Source of the parameters: `"posterior"`, draws of the fit, for data like those of the
#'   fit; or `"prior"`, for data typical of the prior, with exact bounds. See Details.
#' @param seed,progress As for [evidence()].
#' @param cl `NULL`, or a cluster whose workers do the runs, as in [evidence()].
#' @param x A result of `sandwich_check()`.
#' @param ... Unused.
#'
#' @details
#' The upper bound needs an exact draw from the posterior of the simulated data *under the prior of
#' the model*. Whether there is one depends on the model.
#'
#' For models with latent variables and known variances and probabilities, everything else is drawn
#' again, and the bounds are exact.
#'
#' For other models, and if variances and probabilities are unknown, there are two choices.
#' Parameters **from the posterior** of the fit give data like those of the fit. But they are not an
#' exact draw from the posterior of the simulated data, because they also depend on the data of the
#' fit. The difference is small if the data outweigh the prior. Ten times the usual number of moves
#' under the new posterior reduce it before the reverse run starts. Still, the upper bound is
#' approximate, and Markov's inequality does not hold for it; the lower bound is exact. With
#' parameters **from the prior** both bounds are exact, but the data may be easier than those of the
#' fit. If the data are far from what the prior expects, these gaps are far too small; with a wide
#' prior they are too large.
#'
#' Linear regressions, whose evidence is known, show both. A coarse [ais()] was 5.0 nats too low on
#' average because the data were far from the prior; the gap was 5.8 nats with `"posterior"` and 0.4
#' with `"prior"`. Under a wide prior it was 23 nats too low, and the gaps were 31 and 70. Upper
#' bounds were equally rarely below the truth.
#'
#' `gap` is the gap of all chains together. A fit by [ais()] consists of as many chains. A fit by
#' [smc()] is a single population, so its error is comparable to `kl`, the mean gap between single
#' chains.
#'
#' A gap near zero shows that the sampler reaches the whole posterior of such data. It is advice and
#' no guarantee: the posterior of real data may have a mode that simulated data do not have.
#'
#' @return An object of class `"sandwich_check"`, a data frame with a row for each data set:
#'   `lower`, `upper`, `gap`, `kl` and `seconds`.
#'
#' @examples
#' model <- clustering(components = 3, infer = TRUE)
#' fit <- evidence(model, scale(iris[1:40, 1:4]), ais(particles = 10, sigmoidal(100)), seed = 1)
#' sandwich_check(fit, datasets = 3, seed = 1)
#'
#' model <- linear_regression(dist ~ speed, sigma = 15, prior_sd = 10)
#' fit <- evidence(model, cars, ais(), seed = 1)
#' sandwich_check(fit, datasets = 3, data = cars, seed = 1)
#'
#' @seealso [bdmc()]
#' @export
sandwich_check <- function(fit, datasets = 5, chains = NULL, data = NULL,
                           from = c("posterior", "prior"), seed = NULL, progress = interactive(),
                           cl = NULL) {
  cl <- check_cluster(cl)
  check_is_fit(fit)
  check_reversible(fit$method, fit$model)
  datasets <- check_count(datasets, "datasets", 1, 1e4)
  from <- check_choice(from, "from", c("posterior", "prior"))
  if (is_latent(fit$model) && !is.null(data))
    fail("`data` must be left out for a model with latent variables: the fit has all that is ",
         "needed.")
  settings <- fit$method$settings
  if (is.null(chains))
    chains <- if (has_trait(fit$method, "independent")) settings$`1.particles` else 5
  chains <- check_count(chains, "chains", 2, 1e5)
  words <- seed_words(seed)
  picks <- picked_draws(fit, datasets, words)
  simulated <- data_like(fit, data)
  rows <- lapply(seq_len(datasets), function(i) {
    own <- seed_words(method_seed(words, i))
    like <- simulated(if (from == "posterior") fit$parameters[picks[i], ], own)
    sandwich(like$model, like$made, fit$method, chains, 1, own, progress, like$warm,
             cl = cl)$bounds[c("lower", "upper", "gap", "kl", "seconds")]
  })
  structure(do.call(rbind, rows), class = c("sandwich_check", "data.frame"), fit = fit,
            chains = chains, from = from)
}

#' Which draws of a fit data sets are simulated from
#' @noRd
picked_draws <- function(fit, datasets, words) {
  restore <- own_generator(words, keep = FALSE)
  on.exit(restore())
  sample.int(nrow(fit$parameters), datasets, TRUE, exp(fit$log_weights))
}

#' A function that simulates data like those of a fit
#'
#' It takes a point, at whose parameters data are simulated, or NULL for a draw from the prior, and
#' a seed, and returns a list: `model`, `made` and `warm`, for sandwich().
#'
#' @param data The data of the fit, which give the covariates of a regression.
#' @noRd
data_like <- function(fit, data)
  if (is_latent(fit$model)) latent_like(fit) else walk_like(fit, data)

#' With latent variables: with the variances and probabilities of the point
#' @noRd
latent_like <- function(fit) {
  model <- fit$model
  model["formula"] <- list(NULL)
  function(point, words) {
    from <- if (is.null(point)) model else settled_model(model, point)
    made <- simulate_latent(from, fit$n, length(fit$design$columns), words)
    made$encoded <- encode(model, made$data)
    list(model = model, made = made,
         warm = if (is.null(point) || model$args$infer == 0) 1 else WARM)
  }
}

walk_like <- function(fit, data) {
  model <- fit$model <- at_units_of(fit)
  blank <- blank_like(fit, data)
  function(point, words) {
    theta <- if (is.null(point)) prior_draw(model, blank, words) else unname(point)
    list(model = model, made = simulate_from(model, blank, theta, words),
         warm = if (is.null(point)) 1 else WARM)
  }
}

#' Data like those of a fit, to be simulated
#' @noRd
blank_like <- function(fit, data) {
  columns <- fit$design$columns
  if (is.null(data) && !is.null(part_of(fit$model, "columns")(fit$model)))
    data <- `colnames<-`(matrix(1, fit$n, length(columns)), columns)
  blank <- blank_for(fit$model, if (is.null(data)) fit$n, NULL, data)
  if (blank$encoded$n != fit$n)
    fail("`data` must have as many rows as those of the fit (", fit$n, "), not ", blank$encoded$n,
         ".")
  if (!identical(blank$encoded$theta_names, colnames(fit$parameters)))
    fail("`data` must be like those of the fit, with the parameters ",
         show_names(colnames(fit$parameters)), ".")
  blank
}

#' The model with the variances and probabilities of a state
#' @noRd
settled_model <- function(model, state) {
  args <- model$args
  if (args$infer == 0) return(model)
  named <- function(pattern) unname(state[grepl(pattern, names(state))])
  sd_of <- function(name) sqrt(state[[name]])
  args[c("infer", "noise_sd")] <- list(0, sd_of("noise_sd"))
  model$args <- part_of(model, "latent")$settled(args, sd_of, named)
  model
}

#' @rdname sandwich_check
#' @export
print.sandwich_check <- function(x, ...) {
  check_no_dots(...)
  fit <- attr(x, "fit")
  if (is.null(fit) || !all(c("gap", "kl") %in% names(x))) return(print.data.frame(x))
  cat(model_line(fit$model), ", ", deparse1(fit$method$call), "\n", sep = "")
  source <- if (identical(attr(x, "from"), "prior")) "prior" else "fit"
  cat(count_of(nrow(x), "data set"), " of ", count_of(fit$n, "row"), " simulated from the ", source,
      ", ", attr(x, "chains"), " chains each way\n\n", sep = "")
  print.data.frame(data.frame(lapply(x[c("lower", "upper", "gap", "kl")], round, 2)),
                   row.names = FALSE)
  cat("\n")
  worst <- max(x$gap)
  cat_wrapped(paste0(
    sprintf("The gap between the bounds is %.2f nats on average and at most %.2f. ", mean(x$gap),
            worst),
    if (worst < 1) "On data like these, these settings are accurate to about one nat. "
    else paste0("More temperatures, ", moves_of(fit$model),
                " or particles would narrow the gap. "),
    "This is advice, not a guarantee: the real data may be harder than simulated data."
  ))
  invisible(x)
}

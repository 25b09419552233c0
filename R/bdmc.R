# Bidirectional Monte Carlo: the evidence of simulated data between a lower and an upper bound.

#' Sandwich the evidence of simulated data
#'
#' How wrong could a method be? On data simulated from the model the answer can be measured: the latent variables that the
#' data were made from are an exact draw from their posterior, and a walk in reverse from there overestimates the log
#' evidence where the forward walk underestimates it. The truth lies between the two, and if they meet, both are right.
#'
#' @param model A model with latent variables: [clustering()], [low_rank()] or [binary_attributes()].
#' @param n,columns Rows and columns of the data to simulate. With a formula, its columns count.
#' @param method [ais()], or [smc()] along the path `"data"`, with the settings whose accuracy is in question.
#' @param chains Number of independent walks in each direction, at least 2. For [ais()] they are its particles, whose
#'   number in `method` does not count; for [smc()] each is a population of its own.
#' @param budgets Shares of the method's size, increasing and up to 1, at which the bounds are computed to show how they
#'   close: of the number of temperatures of [ais()], of the particles of [smc()].
#' @param seed,progress As for [evidence()].
#' @param x A sandwich.
#' @param ... Unused.
#'
#' @details
#' Forward estimates of the evidence \eqn{Z} are unbiased, so their logarithms are low on average and by Markov's
#' inequality too high by \eqn{b} nats with probability less than \eqn{e^{-b}}; the mean over chains is their combination.
#' Reverse estimates of \eqn{1/Z} are unbiased as well, and combine to a harmonic mean that bounds from above in the same
#' sense. Intervals are of 95%, from bootstrapping the chains. The mean gap between single chains of either direction
#' bounds the Kullback-Leibler divergence of the sampler's draws from the posterior.
#'
#' A schedule that adapts cannot be reversed, so that of `ais(schedule = adaptive())` is frozen: a pilot run on the same data
#' chooses the temperatures, which both directions then use.
#'
#' All reverse chains start from the same draw. Where the posterior has modes that sweeps hardly leave, they know of its mode
#' alone, and the upper bound depends on which that is: still a bound, over many simulated data, but looser than its interval
#' says.
#'
#' All reverse chains start from the same draw. Where the posterior has modes that sweeps hardly leave, they know of its mode
#' alone, and the upper bound depends on which that is: still a bound, over many simulated data, but looser than its interval
#' says.
#'
#' All this is exact for simulated data. For data of your own the forward estimate is the same lower bound, but there is
#' no exact draw to bound from above: that the bounds met on data simulated from a similar model is advice, not a
#' guarantee.
#'
#' @return An object of class `"bdmc"`, a list: `bounds`, a data frame with a row for each budget: `budget`, `lower` and
#'   `upper`, their intervals `lower_low`, `lower_high`, `upper_low`, `upper_high`, `gap`, `kl` (the bound on the divergence)
#'   and `seconds` (both ways); `data`, what was simulated; `state`, what it was made from; `forward` and `reverse`, the log
#'   estimates of all chains at the full budget; `model`, `method`, `seed`.
#'
#' @references
#' Grosse, R. B., Ghahramani, Z. and Adams, R. P. (2015). Sandwiching the marginal likelihood using bidirectional Monte Carlo.
#' arXiv:1511.02543.
#'
#' @examples
#' model <- clustering(components = 3, prior_sd = 2)
#' sandwich <- bdmc(model, n = 20, columns = 4, ais(schedule = sigmoidal(300)), seed = 1)
#' sandwich
#' plot(sandwich)
#'
#' @export
bdmc <- function(model, n, columns = 2, method = ais(schedule = sigmoidal(1000)), chains = 10, budgets = c(0.01, 0.1, 1),
                 seed = NULL, progress = interactive()) {
  check_is_model(model)
  if (!is_latent(model)) fail("`model` must be one with latent variables, such as clustering(), not ", model$name, "().")
  n <- check_count(n, "n", 2, 1e6)
  if (is.null(model$formula)) columns <- check_count(columns, "columns", 1, 1e5)
  check_is_method(method)
  by_rows <- method$name == "smc" && identical(method$path, "data")
  if (method$name != "ais" && !by_rows)
    fail("`method` must be ais() or smc(\"data\"), whose walks can be reversed, not ", deparse1(method$call), ".")
  chains <- check_count(chains, "chains", 2, 1e5)
  if (!is_plain_numeric(budgets) || length(budgets) == 0 || anyNA(budgets) || any(budgets <= 0) || any(diff(budgets) <= 0) ||
      max(budgets) != 1)
    fail("`budgets` must be increasing shares, the last of them 1.")
  progress <- check_flag(progress, "progress")
  method <- latent_method(method)
  words <- seed_words(seed)
  made <- simulate_latent(model, n, columns, words)
  encoded <- encode(model, made$data)
  bar <- progress_bar(progress, n)
  on.exit(bar$close())
  path <- if (by_rows) NULL else frozen_path(model, encoded, method, words)
  rounds <- length(budgets)
  results <- lapply(seq_along(budgets), function(b) {
    walk <- function(reverse) {
      walk_chains(model, encoded, at_budget(method, path, budgets[b], chains), chains, words, 2 * b + reverse,
                  if (reverse) made$state, function(share) bar$show((b - 1 + (share + reverse) / 2) / rounds, n))
    }
    list(forward = walk(FALSE), reverse = walk(TRUE))
  })
  last <- results[[rounds]]
  structure(
    list(bounds = bounds_of(results, budgets, words), data = made$data, state = made$named, forward = last$forward$log_evidence,
         reverse = last$reverse$log_evidence, chains = chains, model = model, method = method, seed = words),
    class = "bdmc"
  )
}

#' A state, and data made from it
#' @noRd
simulate_latent <- function(model, n, columns, words) {
  labels <- if (is.null(model$formula)) paste0("x", seq_len(columns)) else all.vars(model$formula)
  width <- length(labels)
  check_latent_size(model, n, width)
  args <- c(list(width = as.double(width)), model$args)
  blank <- matrix(0, width, n)
  step <- 0
  ask <- function(what, state, seen) {
    step <<- step + 1
    .Call(ffi_latent, model$name, args, blank, what, state,
          list(seen = as.double(seen), lambda = 1, backwards = FALSE, to = NULL, seed = c(words[1], (words[2] + 7919 * step) %% 2^32)))
  }
  state <- ask("start", NULL, 0)$state
  for (i in seq_len(n)) state <- ask("extend_blind", state, i - 1)$state
  rows <- ask("simulate", state, n)$rows
  data <- as.data.frame(t(rows))
  names(data) <- labels
  names <- state_names(model, n, labels)
  # C lays out room for one row more
  state <- state[seq_along(names)]
  list(data = data, state = state, named = stats::setNames(state, names))
}

#' The temperatures of both directions: those given, or those that a pilot run chose
#' @noRd
frozen_path <- function(model, encoded, method, words) {
  if (method$settings$`1.schedule` == "fixed") return(method$settings$`1.lambda`)
  trace_of(conduct(new_problem(model, encoded, method, words), encoded$rows))$lambda
}

#' The method at a share of its size
#' @noRd
at_budget <- function(method, path, budget, chains) {
  if (is.null(path)) {
    method$settings$`1.particles` <- max(2, round(budget * method$settings$`1.particles`))
    return(method)
  }
  steps <- max(1, round(budget * length(path)))
  method$settings$`1.schedule` <- "fixed"
  method$settings$`1.lambda` <- stats::approx(0:length(path), c(0, path), n = steps + 1)$y[-1]
  method$settings$`1.ess` <- 0
  method$settings$`1.particles` <- chains
  method
}

#' Log estimates of the evidence, one for each chain
#' @noRd
walk_chains <- function(model, encoded, method, chains, words, index, state, show) {
  reverse <- !is.null(state)
  method$settings$reverse <- as.double(reverse)
  if (reverse) method$settings$from_state <- state
  walk <- function(chain, part) {
    problem <- new_problem(model, encoded, method, words)
    problem$replicate <- index * 1e5 + chain
    conduct(problem, encoded$rows, function(done, rows) show(part(done)))
  }
  sign <- if (reverse) -1 else 1
  if (!method$settings$by_rows) {
    out <- walk(1, identity)
    return(list(log_evidence = sign * drop(out$log_weights), seconds = drop(out$seconds)))
  }
  runs <- lapply(seq_len(chains), function(chain) walk(chain, function(done) (chain - 1 + done) / chains))
  list(log_evidence = vapply(runs, function(out) drop(out$log_evidence), 0),
       seconds = sum(vapply(runs, function(out) drop(out$seconds), 0)))
}

log_mean <- function(x) max(x) + log(mean(exp(x - max(x))))

bounds_of <- function(results, budgets, words) {
  restore <- own_generator(words, keep = FALSE)
  on.exit(restore())
  interval <- function(x, combine) {
    stats::quantile(replicate(1000, combine(sample(x, replace = TRUE))), c(0.025, 0.975), names = FALSE)
  }
  harmonic <- function(x) -log_mean(-x)
  rows <- lapply(seq_along(results), function(b) {
    forward <- results[[b]]$forward$log_evidence
    reverse <- results[[b]]$reverse$log_evidence
    low <- interval(forward, log_mean)
    high <- interval(reverse, harmonic)
    data.frame(budget = budgets[b], lower = log_mean(forward), upper = harmonic(reverse), lower_low = low[1],
               lower_high = low[2], upper_low = high[1], upper_high = high[2],
               gap = harmonic(reverse) - log_mean(forward), kl = mean(reverse) - mean(forward),
               seconds = results[[b]]$forward$seconds + results[[b]]$reverse$seconds)
  })
  do.call(rbind, rows)
}

#' @rdname bdmc
#' @export
print.bdmc <- function(x, ...) {
  check_no_dots(...)
  bounds <- x$bounds
  cat(model_line(x$model), ", ", nrow(x$data), " simulated rows of ", count_of(ncol(x$data), "column"), "\n", sep = "")
  cat(deparse1(x$method$call), ", ", x$chains, " chains each way\n\n", sep = "")
  digits <- function(values) sprintf("%.1f", values)
  shown <- cbind(
    format(c("share", format(bounds$budget)), justify = "right"),
    format(c("lower", digits(bounds$lower)), justify = "right"),
    format(c("upper", digits(bounds$upper)), justify = "right"),
    format(c("gap", sprintf("%.2f", bounds$gap)), justify = "right"),
    format(c("time", vapply(bounds$seconds, show_time, "")), justify = "right")
  )
  cat(paste0(apply(shown, 1, paste, collapse = "  "), "\n"), sep = "")
  last <- bounds[nrow(bounds), ]
  cat("\n")
  cat_wrapped(paste0(
    sprintf("The log evidence of these data lies between %.2f and %.2f (95%% of bootstrapped chains: %.2f to %.2f). ", min(last$lower, last$upper),
            max(last$lower, last$upper), min(last$lower_low, last$upper_low), max(last$lower_high, last$upper_high)),
    sprintf("One chain's draws are at most %.1f nats (Kullback-Leibler) from the posterior.", max(last$kl, 0)),
    if (last$gap > 1) " The bounds have not met: more temperatures, sweeps or particles would bring them closer."
  ))
  invisible(x)
}

#' @rdname bdmc
#' @export
plot.bdmc <- function(x, ...) {
  check_no_dots(...)
  bounds <- x$bounds
  old <- graphics::par(mar = c(3.6, 5, 3, 1.6), mgp = c(2.3, 0.6, 0), tcl = -0.3, las = 1)
  on.exit(graphics::par(old))
  seconds <- pmax(bounds$seconds, 1e-4)
  finite <- function(values) values[is.finite(values)]
  graphics::plot.default(NA, NA, log = "x", xlim = range(seconds), axes = FALSE, xlab = "Seconds, both ways", ylab = "",
                         ylim = range(finite(unlist(bounds[c("lower_low", "lower_high", "upper_low", "upper_high")]))))
  graphics::title(ylab = "Log evidence", line = 3.6)
  graphics::title(main = "Bounds on the log evidence", adj = 0, line = 1.55, font.main = 2, cex.main = 1.05)
  graphics::mtext("blue: from below, orange: from above; 95% of bootstrapped chains", side = 3, line = 0.35, adj = 0, cex = 0.8,
                  col = "grey35")
  ticks <- graphics::axTicks(2)
  graphics::abline(h = ticks, col = FAINT, lwd = 0.8)
  graphics::axis(1, lwd = 0, lwd.ticks = 0.8, col.ticks = "grey50")
  graphics::axis(2, ticks, axis_labels(ticks), lwd = 0)
  for (side in c("lower", "upper")) {
    colour <- if (side == "lower") BLUE else ORANGE
    graphics::segments(seconds, bounds[[paste0(side, "_low")]], seconds, bounds[[paste0(side, "_high")]], col = colour, lwd = 2.5)
    graphics::lines(seconds, bounds[[side]], col = colour, lwd = 1.4)
    graphics::points(seconds, bounds[[side]], col = colour, pch = 16)
  }
  invisible(x)
}

#' How accurate is a fit likely to be?
#'
#' Simulates data sets of the shape of the fit's own from the model as the fit found it, sandwiches the evidence of each with
#' the fit's settings ([bdmc()]), and reports the gaps: what accuracy to expect of these settings on data like these.
#'
#' @param fit A fit by [ais()] or `smc("data")` of a model with latent variables.
#' @param datasets Number of data sets, at least 1.
#' @param chains Walks each way for every one of them, as for [bdmc()]; by default the fit's particles for [ais()] and 5
#'   populations for [smc()].
#' @param seed,progress As for [evidence()].
#' @param x A check.
#' @param ... Unused.
#'
#' @details
#' Where variances and probabilities were inferred, each data set has those of one posterior draw of the fit, which then count
#' as known. A gap near zero says that the sampler reaches all of the posterior of data like these. It is advice and no
#' guarantee: real data may hold a mode that simulated data do not.
#'
#' @return An object of class `"sandwich_check"`, a data frame with a row for each data set: `lower`, `upper`, `gap`, `kl` and
#'   `seconds`.
#'
#' @examples
#' model <- clustering(components = 3, infer = TRUE)
#' fit <- evidence(model, scale(iris[1:40, 1:4]), ais(particles = 10, sigmoidal(100)), seed = 1)
#' sandwich_check(fit, datasets = 3, seed = 1)
#'
#' @seealso [bdmc()]
#' @export
sandwich_check <- function(fit, datasets = 5, chains = NULL, seed = NULL, progress = interactive()) {
  check_is_fit(fit)
  if (!is_latent(fit$model)) fail("`fit` must be of a model with latent variables, such as clustering(), not ", fit$model$name, "().")
  datasets <- check_count(datasets, "datasets", 1, 1e4)
  settings <- fit$method$settings
  if (is.null(chains)) chains <- if (fit$method$name == "ais") settings$`1.particles` else 5
  words <- seed_words(seed)
  width <- length(fit$design$columns)
  restore <- own_generator(words, keep = FALSE)
  picks <- tryCatch(sample.int(nrow(fit$parameters), datasets, TRUE, exp(fit$log_weights)), finally = restore())
  rows <- lapply(seq_len(datasets), function(i) {
    model <- settled_model(fit$model, fit$parameters[picks[i], ])
    model["formula"] <- list(NULL)
    method <- fit$method
    made <- bdmc(model, fit$n, width, method, chains, 1, method_seed(words, i), progress)
    made$bounds[c("lower", "upper", "gap", "kl", "seconds")]
  })
  structure(do.call(rbind, rows), class = c("sandwich_check", "data.frame"), fit = fit, chains = chains)
}

#' The model with what a state says of its variances and probabilities
#' @noRd
settled_model <- function(model, state) {
  args <- model$args
  if (args$infer == 0) return(model)
  named <- function(pattern) unname(state[grepl(pattern, names(state))])
  sd_of <- function(name) sqrt(state[[name]])
  args$infer <- 0
  args$noise_sd <- sd_of("noise_sd")
  args$prior_sd <- sd_of(if (model$name == "low_rank") "column_sd" else "prior_sd")
  if (model$name == "low_rank") args$row_sd <- sd_of("row_sd")
  if (model$name == "clustering") args$proportions <- named("^proportion")
  if (model$name == "binary_attributes") args$probabilities <- named("^probability")
  model$args <- args
  model
}

#' @rdname sandwich_check
#' @export
print.sandwich_check <- function(x, ...) {
  check_no_dots(...)
  fit <- attr(x, "fit")
  if (is.null(fit) || !all(c("gap", "kl") %in% names(x))) return(print.data.frame(x))
  cat(model_line(fit$model), ", ", deparse1(fit$method$call), "\n", sep = "")
  cat(count_of(nrow(x), "data set"), " of ", count_of(fit$n, "row"), " simulated from the fit, ", attr(x, "chains"),
      " chains each way\n\n", sep = "")
  print.data.frame(data.frame(lapply(x[c("lower", "upper", "gap", "kl")], round, 2)), row.names = FALSE)
  cat("\n")
  worst <- max(x$gap)
  cat_wrapped(paste0(
    sprintf("Between the bounds lie %.2f nats on average, at most %.2f. ", mean(x$gap), worst),
    if (worst < 1) "On data like these the settings are good to about a nat. "
    else "More temperatures, sweeps or particles would bring the bounds together. ",
    "This is advice, not a guarantee: the data themselves may be harder than what the model makes of them."
  ))
  invisible(x)
}

# evidence_tune(): the settings of a method, judged by bounds on data simulated like the user's.

#' Which settings of a method are accurate enough?
#'
#' Simulates data sets like yours, runs a method with each setting of a grid forward and in reverse
#' ([bdmc()]), and reports how far apart the two bounds on the log evidence are, and how much
#' processor time a run takes. The gap is an upper bound of the error, so it says which settings are
#' accurate on such data, without the true evidence.
#'
#' @param model,data A model that [bdmc()] takes, and data in memory for it, as for [evidence()].
#' @param method [ais()] or [smc()], with the settings that are not in `grid`. Models with latent
#'   variables take [smc()] only with path `"data"`; other models need a kernel with an accept step.
#'   No other method can be run in reverse.
#' @param grid A list named by arguments of the method's constructor: for each a vector or a list of
#'   values, of which all combinations are tried; or a data frame with a row for each setting. A
#'   kernel or a schedule alone is one value.
#' @param datasets Number of simulated data sets, at least 1.
#' @param chains Number of independent runs of each setting on each data set, in each direction, at
#'   least 2. A run of [ais()] has all particles of the setting, a run of [smc()] is one population.
#' @param budget Largest processor time of one run, in seconds. The best setting is chosen among
#'   those that take no more.
#' @param tolerance A difference of gaps, in nats, that does not matter: the best setting is the
#'   fastest of those whose gap is larger than the smallest one by at most so much.
#' @param from Where the parameters of the simulated data come from: `"posterior"`, draws of a fit
#'   of `model` to `data` by the default method, which is made first; a fit of `model` to `data`, of
#'   which draws are taken; or `"prior"`. See [sandwich_check()] for the difference.
#' @param seed,progress As for [evidence()].
#' @param cl `NULL`, or a cluster whose workers do the runs, as in [evidence()].
#' @param x A result of `evidence_tune()`.
#' @param ... Must be empty.
#'
#' @details
#' **The gap** of a setting on a data set is the upper bound less the lower one. The lower bound is
#' the mean of the log estimates of single runs, which is what [evidence()] would return on average
#' (without the checks after a run). The upper bound is the harmonic mean of all reverse estimates,
#' the tightest one that they give. So the gap bounds the mean error of a run from above. `gap_se`
#' is the larger one of two standard errors of the mean gap: from the spread between data sets, and
#' from the spread between runs.
#'
#' **Comparisons are paired.** All settings get the same data sets and the same seed for each, so
#' what makes a data set hard is the same for all. `behind` is the difference from the gap of the
#' best setting, with its own standard error. A difference of mean lower bounds is that of the mean
#' errors themselves, because the true log evidence drops out of it.
#'
#' **Time** is processor time of a forward run that adapts where the method does, all threads
#' together, without the checks that [evidence()] does afterwards. `gap_seconds` is the gap times
#' this time, in nat seconds. The error of [ais()] falls in inverse proportion to the number of
#' temperatures once there are many, and so does its gap. Settings for which this product is smaller
#' make better use of time.
#'
#' **Which bounds are exact?** Those of models with latent variables and known variances and
#' probabilities, and those with `from = "prior"`. Otherwise the parameters of the simulated data
#' are a draw of the posterior given your data, and the upper bound is approximate, as
#' [sandwich_check()] says. As there, small gaps are advice and no guarantee: your data can be
#' harder than data that the model makes. Models that [bdmc()] cannot simulate from, and methods
#' that cannot be run in reverse, are an error.
#'
#' @return An object of class `"tuning"`, a list: `best`, the method with the best setting, for
#'   [evidence()]; `settings`, a data frame with a row for each setting, also by `as.data.frame()`:
#'   the values of the grid, `gap` and `gap_se`, `behind` and `behind_se`, the means `lower` and
#'   `upper` of the bounds, `seconds`, `gap_seconds`, `best` and `in_budget`; `each`, a data frame
#'   with a row for each setting and data set: `setting`, `dataset`, `lower`, `lower_se`, `upper`,
#'   `upper_se`, `gap`, `seconds`; `methods`, a list of the method with each setting; `model`,
#'   `method`, `n`, `datasets`, `chains`, `budget`, `tolerance`, `from`, `seed`.
#'
#' @references
#' Grosse, R. B., Ghahramani, Z. and Adams, R. P. (2015). Sandwiching the marginal likelihood using
#' bidirectional Monte Carlo. arXiv:1511.02543.
#'
#' @examples
#' model <- low_rank(rank = 1, noise_sd = 0.5)
#' rows <- scale(iris[1:20, 1:4])
#' tuned <- evidence_tune(model, rows, ais(particles = 5),
#'                        list(schedule = list(sigmoidal(10), sigmoidal(100), sigmoidal(500))),
#'                        datasets = 3, seed = 1)
#' tuned
#' plot(tuned)
#' evidence(model, rows, tuned$best, seed = 1)
#'
#' @concept hyperparameters of samplers
#' @concept bidirectional Monte Carlo
#' @aliases tune
#' @seealso [sandwich_check()] for the settings of one fit, [bdmc()]
#' @export
evidence_tune <- function(model, data, method, grid, datasets = 5, chains = 5, budget = Inf,
                          tolerance = 0.1, from = "posterior", seed = NULL,
                          progress = interactive(), cl = NULL) {
  own_names("method", "grid")
  cl <- check_cluster(cl)
  check_is_model(model)
  check_is_method(method)
  check_reversible(with_default_kernel(method), model)
  refuse_remote(data)
  datasets <- check_count(datasets, "datasets", 1, 1e4)
  chains <- check_count(chains, "chains", 2, 1e5)
  if (!identical(budget, Inf)) budget <- check_positive(budget, "budget")
  tolerance <- check_number(tolerance, "tolerance", 0)
  progress <- check_flag(progress, "progress")
  places <- rev(c(sys.frames()[-sys.nframe()], parent.frame()))
  table <- settings_of_grid(method, grid, places)
  methods <- table$methods
  for (i in seq_along(methods)) of_setting(methods[[i]], {
    check_reversible(methods[[i]], model)
    if (is_latent(model)) latent_method(methods[[i]], model)
  })
  words <- seed_words(seed)
  source <- fit_to_simulate_from(model, data, from, words)
  sets <- simulated_sets(source$fit, data, source$draws, datasets, words)
  tasks <- expand.grid(setting = seq_along(methods), dataset = seq_len(datasets))
  bar <- progress_bar(progress, nrow(tasks))
  on.exit(bar$close())
  make <- function(i) list(method = methods[[tasks$setting[i]]], set = sets[[tasks$dataset[i]]])
  found <- each_task(cl, "tuned_of_task", paste("run", seq_len(nrow(tasks))), make,
                     list(chains = chains), function(done) bar$show(done, done * nrow(tasks)),
                     function(value, task) is_tuned(value))
  each <- cbind(tasks, do.call(rbind, lapply(found, as.data.frame)))
  new_tuning(table, each, budget, tolerance,
             list(model = model, method = method, n = source$fit$n, datasets = datasets,
                  chains = chains, budget = budget, tolerance = tolerance, from = source$from,
                  seed = words))
}

refuse_remote <- function(data) {
  if (missing(data)) fail("`data` must be given: the data sets are simulated like them.")
  if (is_source(data) || is_sharded(data) || is_pushed(data))
    fail("`data` must be rows in memory, not ", show_value(data), ".")
}

# The grid may give the kernel.
with_default_kernel <- function(method) {
  if (length(method$kernels)) method$kernels[[1]] <- hmc()
  method
}

# Settings -----------------------------------------------------------------------------------------

#' The method with each setting of a grid
#'
#' @param places Environments in which the values in the call of the method are looked up.
#' @return A list: `methods`, and `values`, a data frame of the settings as they are shown.
#' @noRd
settings_of_grid <- function(method, grid, places) {
  constructor <- get(paste0("method_", method$name), topenv())
  values <- values_of_grid(grid, names(formals(constructor)), method$name)
  at <- if (is.data.frame(grid)) as.data.frame(lapply(values, seq_along))
  else expand.grid(lapply(values, seq_along))
  if (nrow(at) > MOST_SETTINGS)
    fail("`grid` must have at most ", count(MOST_SETTINGS), " combinations, not ",
         count(nrow(at)), ".")
  given <- given_settings(method, constructor, places)
  methods <- lapply(seq_len(nrow(at)), function(i) {
    own <- Map(function(value, k) value[[k]], values, at[i, ])
    call <- method$call
    for (name in names(own)) call[name] <- list(as_written(own[[name]]))
    made <- of_setting(list(call = call), do.call(constructor, replace_values(given, own),
                                                  quote = TRUE))
    made$call <- call
    made
  })
  shown <- Map(function(value, k) shown_values(value)[k], values, at)
  list(methods = methods, values = as.data.frame(shown, stringsAsFactors = FALSE))
}

MOST_SETTINGS <- 1000

# Values of NULL are kept.
replace_values <- function(values, own) {
  values[names(own)] <- own
  values
}

values_of_grid <- function(grid, known, name) {
  if (!is.list(grid) || !length(grid) || is.object(grid) && !is.data.frame(grid))
    refuse(grid, "grid", "a list of settings, such as `list(particles = c(5, 20))`")
  labels <- names(grid)
  if (is.null(labels) || anyNA(labels) || any(labels == "") || anyDuplicated(labels))
    fail("`grid` must have a different name for each setting, such as `list(particles = c(5, ",
         "20))`.")
  other <- setdiff(labels, known)
  if (length(other))
    fail("`grid` must be named by arguments of ", name, "(), ", show_names(known, length(known)),
         ", not ", show_names(other), ".")
  values <- lapply(grid, function(one)
    if (is.object(one) && is.list(one) && !inherits(one, "AsIs")) list(one) else as.list(one))
  for (label in labels) if (!length(values[[label]]))
    fail("`grid` must have at least one value of `", label, "`.")
  values
}

#' The values of the arguments that the call of a method gives
#'
#' A method keeps its call. If variables in it have changed since, or are not known here, the values
#' give another method, which is an error.
#' @noRd
given_settings <- function(method, constructor, places) {
  parts <- function(one) unclass(one)[setdiff(names(one), "call")]
  for (place in c(places, globalenv())) {
    values <- or_null(lapply(as.list(method$call)[-1], eval_own, place))
    again <- or_null(do.call(constructor, values, quote = TRUE))
    if (!is.null(again) && identical(parts(again), parts(method))) return(values)
  }
  fail("`method` must be written with values, such as `ais(particles = 20)`: those of `",
       deparse1(method$call), "` are not known here, or have changed since.")
}

#' A value as a user would write it
#' @noRd
as_written <- function(value) {
  if (inherits(value, "evidence_schedule")) without_defaults(str2lang(format_schedule(value)))
  else if (inherits(value, "evidence_kernel")) without_defaults(str2lang(format_kernel(value)))
  else value
}

# The first argument is written without its name, and the others only if they are not the defaults.
without_defaults <- function(call) {
  usual <- formals(get(as.character(call[[1]]), topenv()))
  first <- names(call) == names(usual)[1]
  call <- call[c(TRUE, !mapply(identical, as.list(call)[-1], usual[names(call)[-1]]) | first[-1])]
  names(call)[names(call) == names(usual)[1]] <- ""
  call
}

shown_values <- function(values) {
  if (all(vapply(values, function(one) is.atomic(one) && length(one) == 1, NA)))
    return(unlist(values, use.names = FALSE))
  vapply(values, function(one) deparse1(as_written(one)), "")
}

#' Errors of one setting say which it is
#' @noRd
of_setting <- function(method, code)
  tryCatch(code, logevidence_error = function(e)
    fail("`grid` must have settings that work, and `", deparse1(method$call), "` does not: ",
         conditionMessage(e)))

# Data sets ----------------------------------------------------------------------------------------

#' What data sets are simulated from
#'
#' @return A list: `fit`, a fit or what data_like() asks of one; `draws`, whether its draws are
#'   used; `from`, a word for the result.
#' @noRd
fit_to_simulate_from <- function(model, data, from, words) {
  if (inherits(from, "evidence")) {
    fit <- check_is_fit(from, "from")
    if (!identical(model_line(fit$model), model_line(model)))
      fail("`from` must be a fit of `model`, not of another one: ", model_line(fit$model), ".")
    own_data(fit, data, parent.frame())
    return(list(fit = fit, draws = TRUE, from = "fit"))
  }
  from <- check_choice(from, "from", c("posterior", "prior"))
  # a latent model whose settings are known needs no fit to simulate data
  settled <- is_latent(model) && model$args$infer == 0
  if (from == "posterior" && !settled) {
    fit <- evidence(model, data, seed = seed_number(next_seed(words, 3)), progress = FALSE)
    return(list(fit = fit, draws = TRUE, from = from))
  }
  encoded <- encode(model, data)
  labels <- encoded$theta_names
  fit <- list(model = model, design = encoded$design, n = number_of_rows(encoded),
              parameters = matrix(0, 0, length(labels), dimnames = list(NULL, labels)))
  list(fit = fit, draws = FALSE, from = if (settled) "model" else from)
}

simulated_sets <- function(fit, data, draws, datasets, words) {
  picks <- if (draws) picked_draws(fit, datasets, words)
  simulated <- data_like(fit, if (!is_latent(fit$model)) data)
  lapply(seq_len(datasets), function(i) {
    own <- seed_words(method_seed(words, i))
    c(simulated(if (draws) fit$parameters[picks[i], ], own), list(words = own))
  })
}

# Runs ---------------------------------------------------------------------------------------------

#' The bounds of one setting on one data set. May run on a worker.
#' @noRd
tuned_of_task <- function(task, shared) {
  method <- task$method
  set <- task$set
  particles <- if (has_trait(method, "independent")) particles_of(method) else 1
  found <- both_directions(set$model, set$made, method, shared$chains * particles, 1, set$words,
                     set$warm)
  pilot <- found$pilot
  found <- found$results[[1]]
  runs <- apply(matrix(found$forward$log_evidence, particles), 2, function(one)
    combine_estimates(one, BEST[["forward"]])$value)
  upper <- combine_estimates(found$reverse$log_evidence, BEST[["reverse"]])
  lower <- mean(runs)
  list(lower = lower, lower_se = stats::sd(runs) / sqrt(length(runs)), upper = upper$value,
       upper_se = upper$se, gap = upper$value - lower,
       # runs together can take less time each than the adaptive pilot run, which users would make
       seconds = max(pilot, found$forward$cpu / length(runs)))
}

is_tuned <- function(value)
  is.list(value) && identical(names(value), c("lower", "lower_se", "upper", "upper_se", "gap",
                                              "seconds")) &&
    all(vapply(value, function(one) is.double(one) && length(one) == 1, NA))

# The choice ---------------------------------------------------------------------------------------

new_tuning <- function(table, each, budget, tolerance, facts) {
  settings <- table$values
  # a row for each data set, a column for each setting
  wide <- function(name) matrix(each[[name]], facts$datasets, nrow(settings), byrow = TRUE)
  gap <- wide("gap")
  variance <- wide("lower_se")^2 + wide("upper_se")^2
  found <- data.frame(gap = colMeans(gap), gap_se = paired_se(gap, variance),
                      lower = colMeans(wide("lower")), upper = colMeans(wide("upper")),
                      seconds = colMeans(wide("seconds")))
  found$gap_seconds <- found$gap * found$seconds
  found$in_budget <- found$seconds <= budget
  best <- best_setting(found, tolerance)
  found$best <- seq_len(nrow(found)) == best
  found$behind <- found$gap - found$gap[best]
  found$behind_se <- paired_se(gap - gap[, best], variance + variance[, best])
  found$behind_se[best] <- 0
  columns <- c("gap", "gap_se", "behind", "behind_se", "lower", "upper", "seconds", "gap_seconds",
               "best", "in_budget")
  structure(c(list(best = table$methods[[best]], settings = cbind(settings, found[columns]),
                   each = each, methods = table$methods), facts), class = "tuning")
}

#' Standard errors of the means of columns
#' @param variance Of each value, from its chains.
#' @noRd
paired_se <- function(values, variance) {
  n <- nrow(values)
  between <- if (n > 1) apply(values, 2, stats::sd) / sqrt(n) else 0
  pmax(between, sqrt(colSums(variance)) / n)
}

#' The fastest setting within the budget whose gap is not larger than the smallest one by more than
#' the tolerance; without any within the budget the fastest one
#' @noRd
best_setting <- function(found, tolerance) {
  # where all weights were zero the gap is not known
  usable <- found$in_budget & is.finite(found$gap)
  if (!any(usable)) return(which.min(found$seconds))
  near <- usable & found$gap <= min(found$gap[usable]) + tolerance
  which(near)[which.min(found$seconds[near])]
}

# What is shown ------------------------------------------------------------------------------------

#' @rdname evidence_tune
#' @export
print.tuning <- function(x, ...) {
  check_no_dots(...)
  settings <- x$settings
  cat(model_line(x$model), "\n", sep = "")
  source <- c(posterior = "a fit", fit = "a fit", prior = "the prior", model = "the model")
  cat(count_of(x$datasets, "data set"), " of ", count_of(x$n, "row"), " simulated from ",
      source[[x$from]], ", ", x$chains, " runs of each setting each way\n\n", sep = "")
  columns <- settings[seq_len(which(names(settings) == "gap") - 1)]
  shown <- data.frame(ifelse(settings$best, "*", ""), lapply(columns, format),
                      align_estimates(settings$gap, settings$gap_se),
                      vapply(settings$seconds, show_time, ""),
                      format(signif(settings$gap_seconds, 2)))
  names(shown) <- c("", names(columns), "gap", "time", "gap x s")
  print.data.frame(shown, row.names = FALSE)
  cat("\n")
  cat_wrapped(tuning_words(x))
  invisible(x)
}

tuning_words <- function(x) {
  settings <- x$settings
  best <- settings[settings$best, ]
  alike <- sum(!settings$best & settings$in_budget &
                 abs(settings$behind) <= 2 * settings$behind_se, na.rm = TRUE)
  known <- is.finite(best$gap)
  paste0(
    if (!best$in_budget) paste0("No setting is within the budget of ", show_time(x$budget),
                                ". The fastest is "),
    if (best$in_budget) "The best setting is ", "`", deparse1(x$best$call), "`: ",
    if (known) sprintf(paste("on data like these a run is at most %.2f nats too low on average",
                             "(standard error %.2f), and takes "), max(best$gap, 0), best$gap_se)
    else "its bounds are not known, and a run takes ",
    show_time(best$seconds), " of processor time.",
    if (alike) paste0(" These runs do not tell ", count_of(alike, "other setting"),
                      " from it (two standard errors)."),
    if (known && best$gap > 1) paste0(" The bounds have not met: more temperatures, ",
                                      moves_of(x$model), " or particles would bring them closer."),
    " This is advice, not a guarantee: the real data may be harder than simulated data."
  )
}

#' @rdname evidence_tune
#' @export
as.data.frame.tuning <- function(x, ...) {
  check_no_dots(...)
  x$settings
}

# Gaps below this are drawn at it, because the axis is that of logarithms.
SMALL_GAP <- 0.01

#' @rdname evidence_tune
#' @export
plot.tuning <- function(x, ...) {
  check_no_dots(...)
  old <- graphics::par(mar = c(3.6, 5, 3, 1.6), mgp = c(2.3, 0.6, 0), tcl = -0.3, las = 1)
  on.exit(graphics::par(old))
  settings <- x$settings[is.finite(x$settings$gap), ]
  if (!nrow(settings)) fail("plot() has nothing to draw: no setting has a finite gap.")
  seconds <- pmax(settings$seconds, 1e-4)
  above <- function(gap) pmax(gap, SMALL_GAP)
  low <- above(settings$gap - 2 * settings$gap_se)
  high <- above(settings$gap + 2 * settings$gap_se)
  colour <- ifelse(settings$best, ORANGE, BLUE)
  draw_frame(list(x = NA, y = NA, type = "n", log = "xy", xlim = range(seconds),
                  ylim = range(low, high), axes = FALSE, xlab = "Processor time of a run, seconds",
                  ylab = "Gap, nats", main = "Gap between the bounds"),
             paste0("bar: 2 standard errors; orange: best",
                    if (any(low == SMALL_GAP)) paste("; gaps below", SMALL_GAP, "at this value")))
  ticks <- graphics::axTicks(2)
  graphics::abline(h = ticks, col = FAINT, lwd = 0.8)
  if (is.finite(x$budget)) graphics::abline(v = x$budget, col = "grey50", lty = 3)
  graphics::axis(1, lwd = 0, lwd.ticks = 0.8, col.ticks = "grey50")
  graphics::axis(2, ticks, axis_labels(ticks), lwd = 0)
  graphics::segments(seconds, low, seconds, high, col = colour, lwd = 2.5)
  graphics::points(seconds, above(settings$gap), col = colour, pch = 16)
  graphics::text(seconds, above(settings$gap), rownames(settings), pos = 4, cex = 0.75,
                 col = "grey35", xpd = NA)
  invisible(x)
}

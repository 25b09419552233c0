# study_design(): how a sequential study would go, by simulation.

#' How many rows would a sequential study need?
#'
#' Simulates streams of rows from each model and follows the Bayes factor as
#' `evidence(models, rows, stop_at = )` does: how often is each decision reached within `n` rows,
#' how often wrongly, and after how many rows?
#'
#' @param models A list of at least two models that can simulate data (see
#'   [simulate.evidence_model()]) and read it row by row: no [custom_model()]. Regressions with
#'   group-level terms read it group by group, see below.
#' @param n Largest number of rows of a stream.
#' @param stop_at Two thresholds for the Bayes factor, as in [evidence()].
#' @param from Least number of rows before a decision, as in [evidence()].
#' @param data For regressions: a data frame of covariates. The rows of each stream are drawn from
#'   its rows, with replacement; or a function of `n` that returns `n` rows, which may use R's
#'   random numbers. For other models `NULL`, or data whose columns have the names.
#' @param truth `NULL`, the default: the streams of each model come from its prior, with parameters
#'   of their own. Or a list of parameters on the user's scale, named by models: then streams come
#'   from these models with these parameters, for instance from the smallest effect of interest.
#' @param nsim Number of streams from each model.
#' @param method `NULL`, the default: if all models have an evidence in closed form, as linear
#'   regressions with normal priors (see [exact()]), this evidence, in a twentieth of the time;
#'   otherwise [sgais()]. Or a method that can read blocks of rows, as `sgais()`.
#' @param seed As in [evidence()].
#' @param progress Whether to show a progress bar.
#' @param cl `NULL`, or a cluster whose workers do the streams, as in [evidence()].
#' @param x A result of `study_design()`.
#' @param ... Must be empty.
#'
#' @details
#' Priors that the models do not give have units of one, for columns as they are, because there are
#' no data yet: give priors in the units of the study, or columns of a size of about one.
#'
#' The Bayes factor is computed after 1, 2, 3, ... rows, at distances that grow by 8 percent (10
#' percent beyond 1,000 rows). A decision is reached when it is beyond a threshold by two standard
#' errors of its Monte Carlo error, which is zero for an evidence in closed form.
#'
#' For streams from a model with parameters from its prior, the probability of ever passing the
#' threshold `b` against this model is at most `1 / b`. This does not hold for given parameters: a
#' small true effect may well be decided against.
#'
#' **Group-level terms.** If a model has some, as `(1 | g)`, `data` is a function that returns the
#' rows of each group one after another: a stream can then stop after a whole group, and the Bayes
#' factor is computed after 1, 2, 3, ... groups, at distances that grow by 8 percent. `n` and the
#' results count rows. `method` may be any method for such models.
#'
#' @return A data frame of class `"study_design"` with a row for each true model: `truth`, `right`,
#'   `wrong` and `undecided` (shares of the streams), `wrong_se` (standard error of the share),
#'   `mean_rows` and `median_rows` (when the stream stopped; `n` if undecided). The attribute
#'   `"streams"` has a row for each stream: `truth`, `decided` (the model, or `NA`) and `rows`.
#'   `plot()` shows the shares of decisions against the number of rows.
#'
#' @examples
#' set.seed(1)
#' two_groups <- function(n) data.frame(group = rep(0:1, length.out = n))
#' models <- list(effect = linear_regression(y ~ group), none = linear_regression(y ~ 1))
#' design <- study_design(models, n = 40, data = two_groups, nsim = 4,
#'                        truth = list(effect = c("(Intercept)" = 0, group = 1, sigma = 1)))
#' design
#' plot(design)
#'
#' @concept sample size
#' @concept power analysis
#' @concept sequential test
#' @seealso [evidence()] with `stop_at`, [race]
#' @export
study_design <- function(models, n, stop_at = c(1 / 10, 10), data = NULL, truth = NULL,
                         nsim = 100, method = NULL, seed = NULL, progress = interactive(),
                         cl = NULL, from = NULL) {
  own_names("method")
  cl <- check_cluster(cl)
  if (!is_list_of_models(models)) refuse(models, "models", "a list of at least two models")
  check_models(models)
  # the data are not there yet
  models <- lapply(models, at_unit_one)
  n <- check_count(n, "n", 2, 1e6)
  nsim <- check_count(nsim, "nsim", 1, 1e6)
  stop_at <- check_thresholds(stop_at)
  if (is.null(stop_at)) refuse(stop_at, "stop_at", "two Bayes factors")
  from <- check_from(from)
  if (!is.null(method)) check_is_method(method)
  progress <- check_flag(progress, "progress")
  specs <- lapply(models, function(model) list(model = model, method = exact()))
  names <- spec_names(specs, columns_of_study(specs, data))
  models <- stats::setNames(models, names)
  for (name in names) of_model(name, require_data_simulation(models[[name]]))
  if (any(vapply(models, needs_all, NA))) check_study_of_groups(models, data)
  truth <- check_truth(truth, models)
  words <- seed_words(seed)
  began <- now()
  streams <- expand.grid(stream = seq_len(nsim), truth = names(truth), stringsAsFactors = FALSE)
  bar <- progress_bar(progress, nrow(streams))
  on.exit(bar$close())
  make <- function(i) {
    own <- next_seed(words, i)
    name <- streams$truth[i]
    list(rows = simulated_stream(models[[name]], n, data, truth[[name]], own), words = own)
  }
  found <- each_task(cl, "race_of_task", paste("simulated stream", seq_len(nrow(streams))), make,
                     list(models = models, method = method, stop_at = stop_at, from = from),
                     function(done) bar$show(done, done * nrow(streams)),
                     function(value, task) is_decision(value, names, n))
  streams$decided <- vapply(found, `[[`, "", "model")
  streams$rows <- vapply(found, `[[`, 0, "rows")
  new_study_design(streams[-1], n, stop_at, names)
}

#' The columns that formulas of models name, NULL if they are known only when rows are simulated
#'
#' Responses are columns, too. Without covariates there are no others.
#' @noRd
columns_of_study <- function(specs, data) {
  if (is.function(data)) return(NULL)
  left <- function(formula) if (length(formula) == 3) all.vars(formula[[2]])
  responses <- lapply(specs, function(spec)
    rapply(unclass(spec$model), left, "formula", how = "unlist"))
  as.character(c(columns_of_all(specs, data), unlist(responses)))
}

check_truth <- function(truth, models) {
  if (is.null(truth)) {
    for (name in names(models))
      of_model(name, require_proper(models[[name]], "`truth` must be given"))
    return(lapply(models, function(model) NULL))
  }
  known <- is.list(truth) && length(truth) && all(names(truth) %in% names(models))
  if (!known || is.null(names(truth)) || anyDuplicated(names(truth)))
    refuse(truth, "truth", paste("NULL or a list of parameters named by models:",
                                 show_names(names(models))))
  truth
}

require_data_simulation <- function(model) {
  reason <- part_of(model, "simulates")(model)
  if (is_latent(model)) reason <- "not one with latent variables"
  if (needs_all(model) && is.null(part_of(model, "groups")))
    reason <- "row by row, not one that needs all rows at once"
  if (asks_r(model)) reason <- paste0("row by row, not a ", model$name, "(): write a density()")
  if (!is.null(reason)) fail("study_design() needs a model that can simulate data, ", reason, ".")
}

check_study_of_groups <- function(models, data) {
  if (!is.function(data))
    fail("`data` must be a function of `n` for models with group-level terms, which returns the ",
         "rows of each group one after another.")
  for (name in names(models)) {
    if (isTRUE(models[[name]]$scale))
      of_model(name, fail("`scale` must be FALSE beside group-level terms, because the constants ",
                          "would change with each group."))
    if (is_lagged(models[[name]]))
      of_model(name, fail("`formula` must have no lags() beside group-level terms."))
  }
}

#' @param parameters NULL for new ones from the prior.
#' @noRd
simulated_stream <- function(model, n, data, parameters, words) {
  drawn <- if (is.function(data)) data
  covariates <- if (!is.null(drawn)) drawn(n)
  else if (!is.null(data)) {
    data <- as_frame(data)
    data[1 + floor(uniforms(words, n) * nrow(data)), , drop = FALSE]
  }
  if (is.function(data) && NROW(covariates) != n)
    fail("`data` must return as many rows as it is asked for: ", n, ", not ", NROW(covariates), ".")
  draw <- function(...) stats::simulate(model, 1, seed = seed_number(words), ...,
                                        parameters = parameters)
  if (is.null(covariates)) draw(n = n) else {
    rownames(covariates) <- NULL
    draw(data = covariates)
  }
}

# A number in [0, 1) for each row, from the seed of the stream.
uniforms <- function(words, n) .Call(ffi_uniforms, words, 0, 0, as.double(n), TRUE)

seed_number <- function(words) words[1] + 2^32 * (words[2] %% 2^20)

# May run on a worker.
race_of_task <- function(task, shared)
  stopped_race(shared$models, task$rows, shared$method, task$words, shared$stop_at,
               shared$from)

#' The decision of one stream: the model that is ahead, or NA, and after how many rows
#' @noRd
stopped_race <- function(models, rows, method, words, stop_at, from = NULL) {
  specs <- lapply(models, function(model)
    list(call = NULL, model = model, method = if (is.null(method)) sgais() else method,
         words = words, seeded = TRUE, replicates = 1, threads = 1, keep = NULL))
  if (any(vapply(models, needs_all, NA))) return(decided_by_groups(specs, rows, stop_at, from))
  race <- new_race(specs, rows_in_memory(rows), FALSE, NULL, stop_at, from)
  on.exit(close_feeds(race))
  if (is.null(method)) {
    decision <- decided_in_closed_form(race, rows)
    if (!is.null(decision)) return(decision)
  }
  for (work in race$works) begin_work(work, list(keep_state = FALSE), race)
  race$options <- list()
  race$started <- now()
  decide_at_once(race)
  if (is.null(race$stopped) && NROW(rows) > OPENING_ROWS)
    advance_streams(race, list(show = function(...) NULL))
  if (is.null(race$stopped)) list(model = NA_character_, rows = as.double(NROW(rows)))
  else list(model = race$stopped$model, rows = as.double(race$stopped$rows))
}

#' The decision by the evidences in closed form; NULL if a model has none
#'
#' After the same numbers of rows as by other methods; beyond the opening rows all rows are at hand,
#' so that no state has to be kept.
#' @noRd
decided_in_closed_form <- function(race, rows) {
  if (any(vapply(race$works, function(work) is_lagged(work$model), NA))) return(NULL)
  race$opening <- NULL
  race$data <- rows
  parts <- moment_parts(race)
  offers <- function(part)
    "exact" %in% model_facts(part$spec$model, part$encoded$args)$offered
  if (!all(vapply(parts, offers, NA))) return(NULL)
  known <- lapply(parts, known_rows)
  evidence_at <- function(n) vapply(seq_along(parts), function(i)
    as.vector(model_caller(parts[[i]]$spec$model, known[[i]]$encoded(n))("exact")), 0)
  if (anyNA(evidence_at(1))) return(NULL)
  none <- rep(0, length(parts))
  moments <- opening_moments(NROW(rows), beyond = LOOK_STEP_STOP)
  for (n in moments[moments >= least_to_stop(race, parts)]) {
    ahead <- decided(evidence_at(n), none, race$stop_at)
    if (!is.na(ahead)) return(list(model = race$names[ahead], rows = as.double(n)))
  }
  list(model = NA_character_, rows = as.double(NROW(rows)))
}

#' The decision after whole groups, to which each model is fitted anew
#' @noRd
decided_by_groups <- function(specs, rows, stop_at, from) {
  # the levels of text must not depend on how many rows there are
  rows <- text_as_factors(rows, names(rows))
  ends <- ends_of_groups(lapply(specs, `[[`, "model"), rows)
  for (n in ends[opening_moments(length(ends))]) {
    some <- rows[seq_len(n), , drop = FALSE]
    parts <- lapply(specs, function(spec) list(spec = spec, encoded = encode(spec$model, some)))
    if (n < least_to_stop(list(from = from), parts)) next
    fits <- lapply(parts, function(part) fit_of_rows(part$spec, part$encoded))
    if (any(vapply(fits, decides_nothing, NA))) next
    ahead <- decided(vapply(fits, `[[`, 0, "log_evidence"), vapply(fits, `[[`, 0, "se"), stop_at)
    if (!is.na(ahead)) return(list(model = names(specs)[ahead], rows = as.double(n)))
  }
  list(model = NA_character_, rows = as.double(nrow(rows)))
}

#' The rows after which no group of any model goes on
#' @noRd
ends_of_groups <- function(models, rows) {
  last <- function(codes) {
    final <- integer(max(codes))
    final[codes] <- seq_along(codes)
    cummax(final[codes])
  }
  grouped <- Filter(needs_all, models)
  codes <- unlist(lapply(grouped, function(model)
    lapply(part_of(model, "groups")$units(model, rows)$factors, `[[`, "codes")), recursive = FALSE)
  ends <- which(Reduce(pmax, lapply(codes, last)) == seq_len(nrow(rows)))
  if (length(ends) < 2)
    fail("`data` must return the rows of each group one after another, so that a stream can stop ",
         "between two groups.")
  ends
}

#' Is this what stopped_race() returns?
#' @noRd
is_decision <- function(value, models, n)
  is.list(value) && identical(names(value), c("model", "rows")) &&
    is.character(value$model) && length(value$model) == 1 && value$model %in% c(NA, models) &&
    is_one_number(value$rows) && isTRUE(value$rows >= 1 && value$rows <= n)

new_study_design <- function(streams, n, stop_at, names) {
  table <- do.call(rbind, lapply(unique(streams$truth), function(name) {
    own <- streams[streams$truth == name, ]
    wrong <- mean(!is.na(own$decided) & own$decided != name)
    data.frame(truth = name, right = mean(own$decided %in% name), wrong = wrong,
               undecided = mean(is.na(own$decided)),
               wrong_se = sqrt(wrong * (1 - wrong) / nrow(own)), mean_rows = mean(own$rows),
               median_rows = stats::median(own$rows))
  }))
  structure(table, class = c("study_design", "data.frame"), streams = streams, n = n,
            stop_at = stop_at, models = names)
}

#' @rdname study_design
#' @export
print.study_design <- function(x, ...) {
  streams <- attr(x, "streams")
  if (is.null(streams) || !"mean_rows" %in% names(x)) return(NextMethod())
  each <- nrow(streams) / length(unique(streams$truth))
  cat_wrapped(paste0("Sequential study of ", either(attr(x, "models")), ": ", count(each),
                     " simulated streams of at most ", count(attr(x, "n")),
                     " rows from each true model, stopped at Bayes factors of ",
                     paste(vapply(attr(x, "stop_at"), show_threshold, ""), collapse = " and "),
                     "."))
  cat("\n")
  shown <- data.frame(truth = x$truth, right = in_percent(x$right), wrong = in_percent(x$wrong),
                      undecided = in_percent(x$undecided), `mean rows` = round(x$mean_rows, 1),
                      `median rows` = x$median_rows, check.names = FALSE)
  print(shown, row.names = FALSE)
  invisible(x)
}

show_threshold <- function(b)
  if (b > 0 && b < 1) paste0("1/", format(1 / b, digits = 3)) else format(b, digits = 3)

in_percent <- function(x) paste0(format(round(100 * x, 1)), "%")

#' @rdname study_design
#' @export
plot.study_design <- function(x, ...) {
  check_no_dots(...)
  streams <- attr(x, "streams")
  truths <- unique(streams$truth)
  grid <- grDevices::n2mfrow(length(truths))
  cells <- grid_cells(grid[1], grid[2])
  draw_panels(function(panel) for (i in seq_along(truths)) {
    panel(cells[[i]], c(3.6, 4.2, 3, 1))
    draw_study(streams[streams$truth == truths[i], ], truths[i], attr(x, "n"))
  }, grid[1], grid[2], mgp = c(2.4, 0.6, 0))
  invisible(x)
}

#' The shares of streams that are decided by each row
#' @param own Streams of the model `name`.
#' @noRd
draw_study <- function(own, name, n) {
  graphics::plot.default(NA, NA, xlim = c(0, n), ylim = c(0, 1), axes = FALSE, xlab = "Rows",
                         ylab = "Share of streams decided")
  graphics::title(main = paste("True model:", name), adj = 0, line = 1.4, font.main = 2,
                  cex.main = 1.05)
  graphics::abline(h = 0:4 / 4, col = FAINT, lwd = 0.8)
  graphics::axis(1, lwd = 0, lwd.ticks = 0.8, col.ticks = "grey50")
  graphics::axis(2, 0:4 / 4, lwd = 0)
  decided <- function(hit, colour) {
    at <- c(0, sort(own$rows[hit]), n)
    graphics::lines(at, c(seq(0, sum(hit)), sum(hit)) / nrow(own), type = "s", lwd = 2,
                    col = colour)
  }
  decided(own$decided %in% name, BLUE)
  decided(!is.na(own$decided) & own$decided != name, ORANGE)
  graphics::mtext(c("right", "wrong"), side = 3, line = 0.2, adj = c(0, 0.15),
                  cex = 0.8 * graphics::par("cex"), col = c(BLUE, ORANGE))
}

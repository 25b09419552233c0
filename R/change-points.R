# change_points(): after which rows the distribution changes, how often, and how probable that is.

#' Change points
#'
#' Where in a series of rows did the parameters of a model change, how many times, and how sure is
#' that? The rows are divided into segments, each with parameters of its own from the model's prior.
#' The evidences of 0, 1, 2, ... changes are sums over all positions of the changes.
#'
#' @param model A model with a proper prior, or a fit, whose model and data are taken. In closed
#'   form: [gaussian_mean()], [linear_regression()] and [regression()] of the gaussian family with
#'   normal priors of the coefficients, [poisson_rate()], [binomial_probability()], and
#'   [gaussian_mixture()] with one component (normal rows with unknown means and variances). With
#'   other models the evidence of a segment is an estimate; see below.
#' @param data The rows in the order of time: a data frame, a time series, or another form that the
#'   model's help page describes. For models in closed form also a source of rows ([rows_csv()] and
#'   others), which is read several times if that is possible; memory does not grow with its rows.
#'   For a fit the data of its call, if they are left out.
#' @param at The time of each row: the name of a column of `data`, or a vector of numbers, dates or
#'   date-times, sorted. `NULL`, the default, counts rows, or has the times of a time series. The
#'   model does not use it. Of a source some times are kept, and a row between two of them gets the
#'   earlier one.
#' @param most Largest number of changes, a whole number. `NULL`, the default, is 5, and 20 with
#'   `duration`.
#' @param prior Prior weights of 0, 1, ..., `most` changes. `NULL`, the default, is equal weights.
#' @param duration `NULL`, or the mean number of rows of a segment: after each row the parameters
#'   change with probability `1 / duration`, so that durations are geometric. It replaces `prior`.
#' @param least Least number of rows of a segment, a whole number. `NULL`, the default, is 1 for
#'   closed forms, 10 for models with latent variables, and twice the number of parameters for other
#'   models; and for a regression with unknown noise whose coefficients fit some rows exactly, such
#'   as equal neighbours, whose evidence would be infinite (a note says so).
#' @param blocks Number of blocks of rows between which changes are looked for first, a whole
#'   number. `NULL`, the default, depends on the model; see below.
#' @param level Probability of the intervals.
#' @param draws Number of posterior draws from which the sizes of changes are computed.
#' @param seed Seed of these draws, as in [evidence()].
#' @param method `NULL`, or the method that computes the evidence of each segment, such as
#'   [sgais()].
#' @param threads Threads of each of these computations.
#' @param na.action As in [evidence()].
#' @param changes `NULL`, or a formula of the terms whose coefficients change, such as `~ 1` for the
#'   level alone: see "Shared parameters".
#'
#' @details
#' **Prior.** Given their number, all allowed positions of the changes have the same probability. A
#' position is that of the last row before the change. The parameters of a segment are independent
#' of those of other segments, so the model's prior decides how much evidence a change must have:
#' use a proper prior that says where parameters can be expected.
#'
#' **Shared parameters.** With `changes = ~ 1` only the intercept changes, with `changes = ~ x` the
#' intercept and the coefficient of `x`, and with `~ 0 + x` this one alone. The other coefficients
#' and the noise are the same in all segments. This is for linear regressions of the gaussian family
#' with rows in memory; coefficients that change have normal priors, others may have any. Given what
#' segments share, their evidences have a closed form; over it an importance sampler integrates (400
#' to 4,000 draws), whose standard error is part of `error`. There is a warning if its weights are
#' uneven.
#'
#' **Sums.** Up to a number of rows that depends on the model (2,000; for regressions 1,000 with
#' known and 600 with unknown noise; 200 with `changes`; 32 or 16 if evidences of segments are
#' estimates) every row is a possible position. With more rows the positions are first the
#' boundaries of `blocks` blocks (1,000, 500, 300, 100, 32 or 16), each of which stands for the rows
#' around it. Blocks with more than 1/200 of the probability of a change are then divided, in
#' several steps, up to single rows. Two changes inside one block are looked for as well: in closed
#' form in every block, otherwise next to the changes that were found and at both ends of the rows.
#' Segments that are shorter than a sixteenth of a block, or shorter than a block elsewhere, can be
#' missed. A source that can be read only once has no steps: its positions are the ends of 1,000 to
#' 2,000 blocks.
#'
#' **Estimates.** Models with second derivatives and one posterior mode, such as
#' [softmax_regression()] and [regression()] of any family, have segments by Laplace's
#' approximation, other models by [laplace()] with 32 starts if they may have several modes, and
#' models without gradients or with latent variables by their default method. Segments with more
#' than 1/100 of the probability are measured again by importance sampling around their modes, and
#' one that is still uncertain by [evidence()]. A mixture of several components takes minutes on
#' 100,000 rows. Its parameters are reported as mean and standard deviation of each column, because
#' labels of components have no meaning across segments; those of models with latent variables are
#' not reported.
#'
#' **Error.** `error` is the difference that it would make to leave out every other boundary between
#' undivided blocks, joined with the standard errors of the evidences of segments. There is a
#' warning if it is above 0.5.
#'
#' **Bayes factors** in the table are those against no change.
#'
#' @return An object of class `"change_points"`, a list:
#' \describe{
#'   \item{`numbers`}{a data frame with a row for each number of `changes`: `log_evidence`, `error`
#'     (0 if every row is a position and segments have a closed form), `log_bayes_factor` (against
#'     no change), `prior` and `posterior`;}
#'   \item{`number`}{the most probable number of changes;}
#'   \item{`changes`}{given this number, a data frame with a row for each change: `row` (the last
#'     one before the change; those of all changes are the most probable ones together), `at` (its
#'     time), `probability` (of this row, or of a change in its block), `from` and `to` (the
#'     interval, in rows), `from_at` and `to_at`, and `posterior` (the probability of a change in
#'     the interval, over all numbers of changes);}
#'   \item{`sizes`}{the size of each change, a data frame: `change`, `parameter`, `before` and
#'     `after` (means), `difference`, `lower`, `upper`, and `up`, the probability that the parameter
#'     became larger;}
#'   \item{`segments`}{the segments between the rows of `changes`, a data frame: `segment`, `first`,
#'     `last` (rows), `parameter`, `mean`, `lower`, `upper`;}
#'   \item{`shared`}{with `changes` what segments share, a data frame: `parameter`, `mean`, `lower`,
#'     `upper`;}
#'   \item{`positions`}{the possible positions, a data frame: `row`, `rows` (for which it stands),
#'     `probability` (of a change there, over all numbers of changes);}
#'   \item{`n`, `exact`, `warnings`, `model`, `call` and further elements}{what the methods need.}
#' }
#' `as.data.frame()` is the table of `changes`, or with `type = "rows"` the probability of a change
#' after each row, or `"numbers"`, `"sizes"` or `"segments"`. `plot()` and `autoplot()` show the
#' rows with the mean of the response and its band above, and the probability of a change below.
#'
#' @references
#' Fearnhead, P. (2006). Exact and efficient Bayesian inference for multiple changepoint problems.
#' *Statistics and Computing* 16, 203-213.
#'
#' Barry, D. and Hartigan, J. A. (1993). A Bayesian analysis for change point problems. *Journal of
#' the American Statistical Association* 88, 309-319.
#'
#' @examples
#' nile <- data.frame(year = 1871:1970, flow = as.numeric(Nile))
#' normal_flow <- gaussian_mixture(~ flow, components = 1, location = 900, mean_scale = sqrt(10),
#'                                 shape = 2, rate = 20000)
#' found <- change_points(normal_flow, nile, at = "year", seed = 1)
#' found
#' as.data.frame(found, "sizes")
#' plot(found)
#'
#' # the level changes, the noise does not
#' change_points(linear_regression(flow ~ 1, prior = normal(900, 300), sigma = half_normal(300)),
#'               nile, at = "year", changes = ~ 1, seed = 1)
#'
#' @concept change point
#' @concept structural break
#' @concept segmentation of a time series
#' @seealso [change_alarm()] for streams, [poisson_rate()]
#' @export
change_points <- function(model, data, at = NULL, most = NULL, prior = NULL, duration = NULL,
                          least = NULL, blocks = NULL, level = 0.95, draws = 1000, seed = NULL,
                          method = NULL, threads = 1, na.action = stats::na.fail,
                          changes = NULL) {
  own_names("method")
  call <- match.call()
  if (inherits(model, "evidence")) {
    data <- given_data(check_is_fit(model, "model"), if (!missing(data)) data, parent.frame())
    model <- model$model
  }
  check_for_changes(model)
  if (missing(data) || is.null(data)) fail("`data` must be given: rows in the order of time.")
  if (stats::is.ts(data)) {
    if (is.null(at)) at <- times_of_ts(data)
    data <- rows_of_ts(data, model)
  }
  words <- seed_words(seed)
  number <- check_number_prior(most, prior, duration)
  if (!is.null(least)) least <- check_count(least, "least")
  if (!is.null(blocks)) blocks <- check_count(blocks, "blocks", 2, 3000)
  level <- check_number(level, "level", 0, 1, TRUE, TRUE)
  draws <- check_count(draws, "draws", 10, 1e5)
  threads <- check_count(threads, "threads", 1, 1024)
  if (!is.null(method)) check_is_method(method)
  series <- if (is_source(data)) {
    if (!is.null(method))
      fail("`method` must be NULL for a source of rows, whose segments have a closed form.")
    if (!is.null(changes))
      fail("`changes` must be NULL for a source of rows: give rows in memory.")
    series_of_source(model, data, check_time_column(at), least, blocks, words)
  } else series_in_memory(model, data, at, least, words, method, threads, na.action, changes)
  n <- series$n
  found <- grid_of_series(series, number, blocks, least, draws)
  number <- found$number
  grid <- found$grid
  result <- c(list(call = call, model = model, n = n, times = series$times,
                   at_name = if (is_one_string(at)) at else if (is.null(at)) "row" else "time",
                   duration = duration, least = series$least, level = level, draws = draws),
              note = series$note, summarise_changes(series, grid, number, level, draws))
  if (length(result$warnings)) warning(new_warning(result$warnings))
  structure(result, class = "change_points")
}

#' The times of a time series: dates if it is of months or quarters, else numbers
#' @noRd
times_of_ts <- function(x) {
  time <- as.double(stats::time(x))
  if (!stats::frequency(x) %in% c(4, 12)) return(time)
  month <- round(12 * time)
  as.Date(sprintf("%04d-%02d-01", as.integer(month %/% 12), as.integer(month %% 12 + 1)))
}

#' The rows of a time series; for a model with a formula a data frame, in which one series has the
#' name of the response
#' @noRd
rows_of_ts <- function(x, model) {
  response <- model$formula
  if (is.matrix(x)) return(as.data.frame(x))
  if (is.null(response)) return(as.double(x))
  columns <- all.vars(response)
  if (length(columns) != 1)
    fail("`data` must be a data frame for a model of several columns (", show_names(columns),
         "), not one time series.")
  stats::setNames(data.frame(as.double(x)), columns)
}

series_in_memory <- function(model, data, at, least, words, method, threads, na.action, changes) {
  given <- NROW(if (is.list(data) && !is.data.frame(data)) data$y else data)
  times <- check_times(at, data, given)
  complete <- complete_data(model, data, na.action)
  encoded <- encode(model, complete$data)
  moving <- moving_coefficients(model, complete$data, encoded, changes)
  # a shared intercept is that at zero of the columns, which are not centred
  if (shares_intercept(moving, encoded$design$covariates) && !has_units(model$intercept)) {
    model$uncentred <- TRUE
    encoded <- encode(model, complete$data)
  }
  if (!is.null(moving) && !is.null(method))
    fail("`method` must be NULL with `changes`: given what segments share, they have a closed ",
         "form.")
  series <- if (is.null(moving))
    new_series(model, complete$data, encoded, least, words, method, threads)
  else shared_series(model, complete$data, encoded, moving, least, words)
  n <- encoded$n
  series$times <- new_times(seq_len(n), kept_times(times, complete$omitted, n, given))
  series
}

#' The sums over segments; if some rows are fitted exactly, over segments with more rows
#'
#' Then the least number of rows is that of models without a closed form, and more than those.
#' @param least What the user has given.
#' @noRd
grid_of_series <- function(series, number, blocks, least, draws) {
  repeat {
    number$most <- min(number$most, floor(series$n / series$least) - 1)
    if (number$most < 1)
      fail("`data` must have at least ", count(2 * series$least), " rows, twice `least`, not ",
           count(series$n), ".")
    if (is_shared(series))
      return(list(grid = shared_totals(series, number, blocks, draws), number = number))
    found <- tryCatch(refined_grid(series, number, blocks), logevidence_exact_rows = identity)
    if (!inherits(found, "condition")) return(list(grid = found, number = number))
    more <- max(2 * length(series$names), found$rows + 1)
    if (!is.null(least) || 2 * more > series$n) stop(found)
    series$least <- more
    series$note <- paste0("The coefficients fit ", found$where, " exactly. Segments of so few ",
                          "rows would have an infinite evidence, so they have at least ",
                          count(more), ". For shorter ones give `sigma` an inverse_gamma() prior.")
  }
}

# Arguments ---------------------------------------------------------------------------------------

check_for_changes <- function(model) {
  check_is_model(model)
  require_proper(model, "Change points need a proper prior")
  if (needs_all(model))
    fail("change_points() is not for models with group-level terms, whose rows have no order.")
  if (length(model$components) > 1)
    fail("change_points() needs a mixture of one number of components, not of several.")
}

check_time_column <- function(at) {
  if (is.null(at) || is_one_string(at)) return(at)
  refuse(at, "at", "NULL or the name of a column, because the data are a source of rows,")
}

check_number_prior <- function(most, prior, duration) {
  if (!is.null(prior) && !is.null(duration)) fail("Give `prior` or `duration`, not both.")
  if (!is.null(duration)) duration <- check_number(duration, "duration", 1, lower_open = TRUE)
  if (!is.null(prior)) {
    numbers <- is_plain_numeric(prior) && length(prior) > 1 && all(is.finite(prior)) &&
      all(prior >= 0) && sum(prior) > 0
    if (!numbers) refuse(prior, "prior", "weights of 0, 1, ... changes, not negative")
    if (!is.null(most) && !identical(as.double(most), length(prior) - 1))
      fail("`prior` must have `most` + 1 weights, not ", length(prior), ".")
    most <- length(prior) - 1
  }
  if (is.null(most)) most <- if (is.null(duration)) 5 else 20
  list(most = check_count(most, "most", 1, 200), weights = prior, duration = duration)
}

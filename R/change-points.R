# change_points(): where the law of the rows changes. Exact sums over all ways to divide the rows
# into segments (src/core/segments.c); with many rows over positions on a grid, which is refined
# where a change is probable.

#' Change points
#'
#' Where in a series of rows did the parameters of a model change, how many times, and how sure is
#' that? The rows are divided into segments, each with parameters of its own from the model's prior.
#' The evidences of 0, 1, 2, ... changes are sums over all positions of the changes.
#'
#' @param model A model. In closed form: [gaussian_mean()], [linear_regression()] and
#'   [regression()] of the gaussian family with normal priors of the coefficients,
#'   [poisson_rate()], [binomial_probability()], and [gaussian_mixture()] with one component
#'   (normal rows with unknown means and variances). Other models with second derivatives and one
#'   posterior mode, such as [softmax_regression()] and [regression()] of any family, by Laplace's
#'   approximation. For rows of several clusters use the most probable component of each row as the
#'   response of a softmax_regression().
#' @param data The rows in the order of time, in memory: a data frame, or another form that the
#'   model's help page describes.
#' @param at The time of each row: the name of a column of `data`, or a vector of numbers, dates or
#'   date-times, sorted. `NULL`, the default, counts rows. The model does not use it.
#' @param most Largest number of changes, a whole number. `NULL`, the default, is 5, and 20 with
#'   `duration`.
#' @param prior Prior weights of 0, 1, ..., `most` changes. `NULL`, the default, is equal weights.
#' @param duration `NULL`, or the mean number of rows of a segment: after each row the parameters
#'   change with probability `1 / duration`, so that durations are geometric. It replaces `prior`.
#' @param least Least number of rows of a segment, a whole number. `NULL`, the default, is 1 for
#'   closed forms, and twice the number of parameters for Laplace's approximation.
#' @param blocks Number of blocks of rows between which changes are looked for first, a whole
#'   number. `NULL`, the default, depends on the model; see below.
#' @param level Probability of the intervals.
#' @param draws Number of posterior draws from which the sizes of changes are computed.
#' @param seed Seed of these draws, as in [evidence()].
#' @param na.action As in [evidence()].
#'
#' @details
#' **Prior.** Given their number, all allowed positions of the changes have the same probability. A
#' position is that of the last row before the change. The parameters of a segment are independent
#' of those of other segments, so the model's prior decides how much evidence a change must have:
#' use a proper prior that says where parameters can be expected.
#'
#' **Sums.** Up to a number of rows that depends on the model (2,000; for regressions 1,000 with
#' known and 600 with unknown noise; 32 for Laplace's approximation) every row is a possible
#' position and the evidences are exact, but for rounding and Laplace's approximation. With more
#' rows the positions are first the boundaries of `blocks` blocks (1,000, 500, 300 or 32), each of
#' which stands for the rows around it. Blocks with more than 1/200 of the probability of a change
#' are then divided, in several steps, up to single rows. `error` is the difference that it would
#' make to leave out every other boundary between undivided blocks. Segments that are shorter than
#' a block, far from all other changes, can be missed.
#'
#' **Laplace's approximation** leaves an error in the evidence of each segment of the order of one
#' over its number of rows; `laplace_error` is the sum of such errors for the segments of the most
#' probable positions, measured by importance sampling.
#'
#' **Bayes factors** in the table are those against no change.
#'
#' @return An object of class `"change_points"`, a list:
#' \describe{
#'   \item{`numbers`}{a data frame with a row for each number of `changes`: `log_evidence`, `error`
#'     (of the grid; 0 if every row is a position), `log_bayes_factor` (against no change), `prior`
#'     and `posterior`;}
#'   \item{`number`}{the most probable number of changes;}
#'   \item{`changes`}{given this number, a data frame with a row for each change: `row` (the last
#'     one before the change, the most probable), `at` (its time), `probability` (of this row, or of
#'     a change in its block), `from` and `to` (the interval, in rows), `from_at` and `to_at`, and
#'     `posterior` (the probability of a change in the interval, over all numbers of changes);}
#'   \item{`sizes`}{the size of each change, a data frame: `change`, `parameter`, `before` and
#'     `after` (means), `difference`, `lower`, `upper`, and `up`, the probability that the parameter
#'     became larger;}
#'   \item{`segments`}{the segments between the rows of `changes`, a data frame: `segment`, `first`,
#'     `last` (rows), `parameter`, `mean`, `lower`, `upper`;}
#'   \item{`positions`}{the possible positions, a data frame: `row`, `rows` (for which it stands),
#'     `probability` (of a change there, over all numbers of changes);}
#'   \item{`n`, `exact`, `laplace_error`, `warnings`, `model`, `call` and further elements}{what the
#'     methods need.}
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
#' @seealso [change_alarm()] for streams, [poisson_rate()]
#' @export
change_points <- function(model, data, at = NULL, most = NULL, prior = NULL, duration = NULL,
                          least = NULL, blocks = NULL, level = 0.95, draws = 1000, seed = NULL,
                          na.action = stats::na.fail) {
  call <- match.call()
  check_for_changes(model)
  if (missing(data) || is.null(data)) fail("`data` must be given: rows in the order of time.")
  if (is_source(data))
    fail("`data` must be in memory, not a source of rows: change_alarm() follows a source.")
  words <- seed_words(seed)
  number <- check_number_prior(most, prior, duration)
  if (!is.null(least)) least <- check_count(least, "least")
  if (!is.null(blocks)) blocks <- check_count(blocks, "blocks", 2, 3000)
  level <- check_number(level, "level", 0, 1, TRUE, TRUE)
  draws <- check_count(draws, "draws", 10, 1e5)
  rows_given <- NROW(if (is.list(data) && !is.data.frame(data)) data$y else data)
  times <- check_times(at, data, rows_given)
  complete <- complete_data(model, data, na.action)
  encoded <- encode(model, complete$data)
  times <- kept_times(times, complete$omitted, encoded$n, rows_given)
  series <- new_series(model, encoded, least)
  least <- series$least
  number$most <- min(number$most, floor(encoded$n / least) - 1)
  if (number$most < 1)
    fail("`data` must have at least ", count(2 * least), " rows, twice `least`, not ",
         count(encoded$n), ".")
  grid <- refined_grid(series, number, blocks)
  result <- c(list(call = call, model = model, n = encoded$n, times = times,
                   at_name = if (is_one_string(at)) at else if (is.null(at)) "row" else "time",
                   duration = duration, least = least, level = level, draws = draws),
              summarise_changes(series, grid, number, level, draws, words, times))
  if (length(result$warnings)) warning(new_warning(result$warnings))
  structure(result, class = "change_points")
}

# Arguments ---------------------------------------------------------------------------------------

check_for_changes <- function(model) {
  check_is_model(model)
  require_proper(model, "Change points need a proper prior")
  several <- length(model$components) > 1 || is_latent(model) || may_have_modes(model)
  if (several)
    fail("change_points() needs a model whose posterior has one mode, not ", model$name,
         "(): use gaussian_mixture() with one component, or look at the annealing steps of a ",
         "stream by plot(fit, \"steps\").")
  if (asks_r(model))
    fail("change_points() needs a model with second derivatives in C, not ", model$name, "().")
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

#' Log prior probabilities of 0, ..., `most` changes
#' @noRd
number_prior <- function(number, n, least) {
  k <- seq(0, number$most)
  log_weight <- if (!is.null(number$duration)) {
    lchoose(n - (k + 1) * (least - 1) - 1, k) - k * log(number$duration) +
      (n - 1 - k) * log1p(-1 / number$duration)
  } else if (is.null(number$weights)) 0 * k else log(number$weights[k + 1])
  if (all(log_weight == -Inf))
    fail("`prior` must have a positive weight for a number of changes between 0 and ",
         number$most, ", the most that the rows have room for.")
  log_weight - log_sum(log_weight)
}

log_sum <- function(x) {
  top <- max(x)
  if (is.finite(top)) top + log(sum(exp(x - top))) else top
}

check_times <- function(at, data, n) {
  if (is.null(at)) return(NULL)
  times <- at
  if (is_one_string(at)) {
    if (!at %in% colnames(data))
      fail("`at` must be a column of `data` or a vector of times, not ", show_text(at), ".")
    times <- if (is.data.frame(data)) data[[at]] else data[, at]
  }
  if (!(is_plain_numeric(times) || inherits(times, c("Date", "POSIXct"))) || !is.null(dim(times)))
    refuse(times, "at", "numbers, dates or date-times")
  if (length(times) != n)
    fail("`at` must have a time for each row of `data` (", count(n), "), not ", length(times), ".")
  bad <- which(!is.finite(as.numeric(times)))
  if (length(bad)) fail_in_row(bad[1], "`at` must have no missing times, as in row ")
  back <- which(diff(as.numeric(times)) < 0)
  if (length(back))
    fail("`at` must be sorted: order the rows by time first (row ", back[1] + 1,
         " is earlier than the row before).")
  times
}

# Of rows that were left out, and the first ones of a model with lags, no time is kept.
kept_times <- function(times, omitted, n, given) {
  kept <- seq_len(given)
  if (length(omitted)) kept <- kept[-omitted]
  kept <- utils::tail(kept, n)
  if (is.null(times)) kept else times[kept]
}

# Segments ----------------------------------------------------------------------------------------

# Laplace's approximation costs a climb over all rows of each segment.
LAPLACE_BLOCKS <- 32

new_series <- function(model, encoded, least) {
  closed <- .Call(ffi_segments_closed, model_type(model), encoded$args)
  blocks <- if (closed) part_of(model, "boundaries") else LAPLACE_BLOCKS
  if (is.null(least)) least <- if (closed) 1 else 2 * length(encoded$theta_names)
  list(model = model, encoded = encoded, n = encoded$n, least = least, closed = closed,
       blocks = blocks, every_row = if (closed) 2 * blocks else blocks)
}

segment_evidence <- function(series, bounds) {
  value <- .Call(ffi_segments, model_type(series$model), series$encoded$args, series$encoded$rows,
                 as.double(bounds), series$least, series$closed)
  m <- length(bounds) - 1
  if (any(value == Inf, na.rm = TRUE) || anyNA(value)) {
    bad <- which(is.na(value) | value == Inf)[1]
    i <- which(cumsum(rev(seq_len(m))) >= bad)[1]
    j <- bad - segment_start(m, i) + i
    where <- paste0("rows ", count(bounds[i] + 1), " to ", count(bounds[j]))
    if (is.na(value[bad]))
      fail("No posterior mode was found for ", where, ": give a larger `least`, or a prior that ",
           "says more.")
    fail("The coefficients fit ", where, " exactly, so their evidence is infinite: give `sigma` ",
         "an inverse_gamma() prior, or a larger `least`.")
  }
  value
}

# Segments are sorted by their first boundary; this many come before those of boundary i.
segment_start <- function(m, i) (i - 1) * m - (i - 1) * (i - 2) / 2
# The position of the segments from boundaries i to j, numbered from 1.
segment_at <- function(m, i, j) segment_start(m, i) + j - i

#' Sums over segmentations, and what follows from them for each number of changes
#'
#' @return A list: `bounds`, `log_evidence` (of segments), `log_weight` (of boundaries), the sums
#'   `first` and `last`, and `total`, the log evidence of each number of changes.
#' @noRd
sum_segments <- function(bounds, log_evidence, n, most) {
  m <- length(bounds) - 1
  inner <- bounds[-c(1, m + 1)]
  # the rows that a position stands for end halfway to its neighbours
  edges <- c(0.5, if (m > 2) (inner[-1] + inner[-(m - 1)]) / 2, n - 0.5)
  rows <- diff(edges)
  log_weight <- c(0, log(rows), 0)
  most <- min(most, m - 1)
  sums <- function(flat) .Call(ffi_segments_sums, log_evidence, log_weight, most, flat)
  all <- sums(FALSE)
  flat <- sums(TRUE)
  list(bounds = bounds, rows = rows, edges = edges, log_evidence = log_evidence,
       log_weight = log_weight, first = all$first, last = all$last,
       total = all$first[m + 1, ] - flat$first[m + 1, ])
}

#' Probabilities that the r-th of k changes is at each inner boundary: a row for each r
#' @noRd
position_probabilities <- function(sums, k) {
  m <- length(sums$bounds) - 1
  inner <- seq(2, length.out = m - 1)
  t(vapply(seq_len(k), function(r) {
    log_p <- sums$first[inner, r] + sums$last[inner, k - r + 1] + sums$log_weight[inner]
    exp(log_p - sums$first[m + 1, k + 1])
  }, numeric(m - 1)))
}

# Posterior probability of the largest number of changes above which there is a warning.
MOST_SHARE <- 0.1

# Blocks with a larger probability of a change are divided, into at most so many parts.
DIVIDED <- 1 / 200
PARTS <- 8
MOST_ROUNDS <- 20

refined_grid <- function(series, number, blocks) {
  n <- series$n
  every <- is.null(blocks) && n <= series$every_row || isTRUE(blocks >= n)
  start <- if (every) n else if (is.null(blocks)) series$blocks else blocks
  bounds <- unique(round(seq(0, n, length.out = start + 1)))
  limit <- max((if (series$closed) 2 else 5) * series$blocks, start + 8 * PARTS)
  for (round in seq_len(MOST_ROUNDS)) {
    sums <- sum_segments(bounds, segment_evidence(series, bounds), n, number$most)
    more <- divided_blocks(sums, number, limit - length(bounds))
    if (!length(more)) break
    bounds <- sort(c(bounds, more))
  }
  prior <- number_prior(number, n, series$least)[seq_along(sums$total)]
  log_posterior <- sums$total + prior
  sums$posterior <- exp(log_posterior - log_sum(log_posterior))
  sums$prior <- exp(prior)
  sums$error <- grid_errors(sums, n)
  sums$exact <- all(diff(bounds) == 1)
  sums
}

#' New boundaries in the blocks on both sides of positions with much probability
#' @noRd
divided_blocks <- function(sums, number, room) {
  gaps <- diff(sums$bounds)
  m <- length(gaps)
  if (all(gaps == 1) || room < 1) return(NULL)
  share <- numeric(m - 1)
  # more changes than the rows have are somewhere, and need no more than the blocks
  for (k in seq_len(min(length(sums$total) - 1, which.max(sums$total) + 1)))
    share <- pmax(share, apply(position_probabilities(sums, k), 2, max))
  share <- pmax(c(0, share), c(share, 0))
  wide <- which(share > DIVIDED & gaps > 1)
  wide <- wide[order(-share[wide])]
  parts <- pmin(gaps, PARTS, ceiling(share / DIVIDED))
  wide <- wide[cumsum(parts[wide] - 1) <= room]
  unlist(lapply(wide, function(b) {
    ends <- sums$bounds[b + 0:1]
    setdiff(round(seq(ends[1], ends[2], length.out = parts[b] + 1)), ends)
  }))
}

#' What it changes to leave out every other boundary between blocks that were not divided
#' @noRd
grid_errors <- function(sums, n) {
  gaps <- diff(sums$bounds)
  m <- length(gaps)
  between <- which(gaps[-m] > 1 & gaps[-1] > 1) + 1
  between <- between[seq_along(between) %% 2 == 0]
  if (!length(between)) return(0 * sums$total)
  kept <- setdiff(seq_len(m + 1), between)
  pairs <- unlist(lapply(seq_len(length(kept) - 1), function(i)
    segment_at(m, kept[i], kept[-seq_len(i)])))
  coarse <- sum_segments(sums$bounds[kept], sums$log_evidence[pairs], n, length(sums$total) - 1)
  abs(sums$total - coarse$total[seq_along(sums$total)])
}

# What the sums say -------------------------------------------------------------------------------

#' What evidence() says of a prior that contradicts all rows together, or NULL
#' @noRd
conflict_of <- function(model, encoded, words) or_null({
  spec <- list(call = NULL, model = model, method = laplace(), words = words, seeded = TRUE,
               replicates = 1, threads = 1, keep = Inf)
  work <- new_work(spec, encoded)
  begin_work(work, list(keep_state = FALSE))
  muffled(fit_of_work(work, list(show = function(...) NULL)))$prior_conflict
})

summarise_changes <- function(series, sums, number, level, draws, words, times) {
  total <- sums$total
  numbers <- data.frame(changes = seq_along(total) - 1, log_evidence = total, error = sums$error,
                        log_bayes_factor = total - total[1], prior = sums$prior,
                        posterior = sums$posterior)
  best <- which.max(sums$posterior) - 1
  m <- length(sums$bounds) - 1
  inner <- sums$bounds[-c(1, m + 1)]
  probability <- numeric(m - 1)
  for (k in seq_along(total)[-1] - 1)
    probability <- probability + sums$posterior[k + 1] * colSums(position_probabilities(sums, k))
  positions <- data.frame(row = inner, rows = sums$rows, probability = pmin(probability, 1))
  changes <- changes_table(sums, best, level, times)
  at <- drawn_segments(sums, best, draws, words)
  parameters <- drawn_parameters(series, sums$bounds, at, words)
  drawn <- matrix(sums$bounds[at], draws)
  last <- length(total)
  error <- if (!series$closed) laplace_error(series, changes, words)
  coarse <- max(sums$error[sums$posterior > 0.01])
  said <- c(
    conflict_of(series$model, series$encoded, words),
    if (sums$posterior[last] > MOST_SHARE && number$most < floor(series$n / series$least) - 1)
      say("most_changes", count(number$most), show_probability(sums$posterior[last])),
    if (coarse > 0.5) say("coarse_grid", coarse),
    if (!is.null(error) && !isTRUE(abs(error) < 0.5)) say("rough_laplace", abs(error))
  )
  list(numbers = numbers, number = best, changes = changes,
       sizes = sizes_table(parameters$user, best, level),
       segments = segments_table(series, changes, series$n, level, draws, words),
       positions = positions, exact = sums$exact, closed = series$closed, blocks = m,
       laplace_error = error,
       warnings = said, band = response_band(series, drawn, parameters, level))
}

changes_table <- function(sums, k, level, times) {
  columns <- c("row", "probability", "from", "to", "posterior")
  table <- matrix(numeric(), 0, 5)
  if (k > 0) {
    p <- position_probabilities(sums, k)
    inner <- sums$bounds[-c(1, length(sums$bounds))]
    all <- lapply(seq_along(sums$total)[-1] - 1, function(j)
      sums$posterior[j + 1] * pmin(colSums(position_probabilities(sums, j)), 1))
    table <- t(apply(p, 1, function(at) {
      best <- which.max(at / sums$rows)
      limits <- central_rows(at, sums$edges, level)
      inside <- inner >= limits[1] & inner <= limits[2]
      c(inner[best], at[best], limits, sum(vapply(all, function(q) min(sum(q[inside]), 1), 0)))
    }))
  }
  table <- as.data.frame(matrix(table, ncol = 5, dimnames = list(NULL, columns)))
  table$posterior <- pmin(table$posterior, 1)
  cbind(change = seq_len(k), table["row"], at = times[table$row],
        table[c("probability", "from", "to")], from_at = times[table$from],
        to_at = times[table$to], table["posterior"])
}

#' The central interval of a position whose probabilities are spread evenly over rows between edges
#' @noRd
central_rows <- function(probability, edges, level) {
  above <- c(0, cumsum(probability) / sum(probability))
  cut <- function(p) {
    cell <- max(which(above <= p))
    cell <- min(cell, length(probability))
    edges[cell] + (p - above[cell]) / (above[cell + 1] - above[cell]) * diff(edges[cell + 0:1])
  }
  c(ceiling(cut((1 - level) / 2) - 0.5), floor(cut((1 + level) / 2) + 0.5))
}

#' Draws of the positions of k changes: numbers of boundaries, a matrix with a row for each draw
#' @noRd
drawn_segments <- function(sums, k, draws, words) {
  restore <- own_generator(words, FALSE)
  on.exit(restore())
  m <- length(sums$bounds) - 1
  at <- matrix(1, draws, k + 2)
  at[, k + 2] <- m + 1
  for (r in rev(seq_len(k))) for (j in unique(at[, r + 2])) {
    from <- seq(2, length.out = j - 2)
    log_p <- sums$first[from, r] + sums$log_weight[from] +
      sums$log_evidence[segment_at(m, from, j)]
    here <- which(at[, r + 2] == j)
    at[here, r + 1] <- from[sample.int(length(from), length(here), TRUE,
                                       exp(log_p - max(log_p)))]
  }
  at
}

#' Draws of the parameters of segments between drawn boundaries
#'
#' @return A list of arrays of draws x parameters x segments: `theta`, and `user` on the user's
#'   scale; by Laplace's approximation also `log_density`, a matrix.
#' @noRd
drawn_parameters <- function(series, bounds, at, words) {
  ends <- cbind(c(at[, -ncol(at)]), c(at[, -1])) - 1
  order <- order(ends[, 1], ends[, 2])
  theta <- .Call(ffi_segments_draw, model_type(series$model), series$encoded$args,
                 series$encoded$rows, as.double(bounds), ends[order, , drop = FALSE], words,
                 series$closed)
  if (anyNA(theta)) fail("The parameters of a segment could not be drawn.")
  theta[, order] <- theta
  names <- series$encoded$user_names
  d <- length(series$encoded$theta_names)
  by_segment <- function(x, names)
    aperm(array(x, c(nrow(x), nrow(at), ncol(at) - 1), list(names, NULL, NULL)), c(2, 1, 3))
  log_density <- if (!series$closed) matrix(theta[d + 1, ], nrow(at))
  theta <- theta[seq_len(d), , drop = FALSE]
  user <- matrix(series_call(series, "to_user", theta), length(names))
  # a mixture of one component has weight one
  varies <- !startsWith(names, "weight[")
  list(theta = by_segment(theta, NULL), log_density = log_density,
       user = by_segment(user[varies, , drop = FALSE], plain_names(series$model, names[varies])))
}

#' The error of Laplace's approximation, summed over the segments of the most probable positions
#' @noRd
laplace_error <- function(series, changes, words) {
  bounds <- unique(c(0, changes$row, series$n))
  drawn <- drawn_parameters(series, bounds, same_bounds(bounds, LAPLACE_DRAWS), next_seed(words, 2))
  each <- vapply(seq_len(length(bounds) - 1), function(s) {
    theta <- t(matrix(drawn$theta[, , s], LAPLACE_DRAWS))
    own <- series
    own$encoded$rows <- series$encoded$rows[, seq(bounds[s] + 1, bounds[s + 1]), drop = FALSE]
    log_weight <- series_call(own, "log_prior", theta) + series_call(own, "log_lik", theta) -
      drawn$log_density[, s]
    log_sum(log_weight) - log(LAPLACE_DRAWS) - segment_evidence(own, c(0, ncol(own$encoded$rows)))
  }, 0)
  sum(each)
}

LAPLACE_DRAWS <- 200

same_bounds <- function(bounds, draws)
  matrix(seq_along(bounds), draws, length(bounds), byrow = TRUE)

# "mean[1,flow]" of a mixture of one component is "mean[flow]", or "mean" if there is one column.
plain_names <- function(model, names) {
  if (is.null(model$components)) return(names)
  names <- sub("[1,", "[", names, fixed = TRUE)
  short <- sub("\\[.*", "", names)
  if (anyDuplicated(short)) names else short
}

series_call <- function(series, what, theta)
  .Call(ffi_model, model_type(series$model), series$encoded$args, series$encoded$rows, what, theta,
        list())

sizes_table <- function(parameters, k, level) {
  names <- dimnames(parameters)[[2]]
  tail <- (1 - level) / 2
  rows <- lapply(seq_len(k), function(r) {
    before <- matrix(parameters[, , r], ncol = length(names))
    after <- matrix(parameters[, , r + 1], ncol = length(names))
    size <- after - before
    limits <- apply(size, 2, stats::quantile, c(tail, 1 - tail), names = FALSE)
    data.frame(change = r, parameter = names, before = colMeans(before), after = colMeans(after),
               difference = colMeans(size), lower = limits[1, ], upper = limits[2, ],
               up = colMeans(size > 0))
  })
  if (length(rows)) return(do.call(rbind, rows))
  data.frame(change = integer(), parameter = character(), before = numeric(), after = numeric(),
             difference = numeric(), lower = numeric(), upper = numeric(), up = numeric())
}

segments_table <- function(series, changes, n, level, draws, words) {
  bounds <- c(0, changes$row, n)
  # the most probable rows of two changes may coincide
  bounds <- bounds[!duplicated(bounds)]
  k <- length(bounds) - 1
  parameters <- drawn_parameters(series, bounds, same_bounds(bounds, draws),
                                 next_seed(words, 1))$user
  tail <- (1 - level) / 2
  do.call(rbind, lapply(seq_len(k), function(s) {
    own <- matrix(parameters[, , s], draws)
    limits <- apply(own, 2, stats::quantile, c(tail, 1 - tail), names = FALSE)
    data.frame(segment = s, first = bounds[s] + 1, last = bounds[s + 1],
               parameter = dimnames(parameters)[[2]], mean = colMeans(own), lower = limits[1, ],
               upper = limits[2, ])
  }))
}

# Rows that are drawn, and draws whose means make the band.
SHOWN_ROWS <- 1000
SHOWN_DRAWS <- 200

#' The response at some rows, with mean and band of its expectation; or NULL for a model without
#' @noRd
response_band <- function(series, drawn, parameters, level) {
  model <- series$model
  encoded <- series$encoded
  mixture <- !is.null(model$components)
  if (!mixture && (is.null(part_of(model, "fitted")) || !part_of(model, "one_number")))
    return(NULL)
  rows <- evenly(series$n, SHOWN_ROWS)
  part <- function(use)
    list(rows = encoded$rows[, rows[use], drop = FALSE], n = sum(use),
         offset = encoded$offset[rows[use]])
  fitted <- vapply(seq_len(min(SHOWN_DRAWS, nrow(drawn))), function(i) {
    segment <- findInterval(rows - 1, drawn[i, ], rightmost.closed = TRUE)
    value <- numeric(length(rows))
    for (s in unique(segment)) {
      own <- function(x) matrix(x[i, , s], 1, dimnames = list(NULL, dimnames(x)[[2]]))
      user <- own(parameters$user)
      fit <- list(model = model, parameters = own(parameters$theta), draws = user,
                  log_weights = 0, args = encoded$args, design = encoded$design)
      value[segment == s] <- if (mixture) user[1]
      else part_of(model, "fitted")(fit, part(segment == s))
    }
    value
  }, numeric(length(rows)))
  fitted <- matrix(fitted, length(rows))
  limit <- function(p) apply(fitted, 1, stats::quantile, p, names = FALSE)
  all <- part(rep(TRUE, length(rows)))
  y <- all$rows[if (mixture) 1 else nrow(all$rows), ] + if (is.null(all$offset)) 0 else all$offset
  data.frame(row = rows, y = y, mean = rowMeans(fitted), lower = limit((1 - level) / 2),
             upper = limit((1 + level) / 2))
}

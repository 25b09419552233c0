# The rows of change_points(): what is known of them, the evidences of segments between boundaries,
# and draws of their parameters. There are four kinds of series:
#
#   closed   the evidence of a segment is a closed form of sums of its rows; only sums of blocks are
#            kept, so rows may come from a source
#   laplace  Laplace's approximation in C, for models of one mode with second derivatives
#   fits     each segment is a fit, by laplace() or another method
#   shared   segments share parameters, given which there is a closed form (R/change-shared.R)
#
# The evidences of `laplace` and `fits` are kept when they are known, and segments with much of the
# probability are measured once more, by importance sampling around their modes.

#' @param method NULL, or the method that computes the evidence of a segment.
#' @return An environment.
#' @noRd
new_series <- function(model, data, encoded, least, words = NULL, method = NULL, threads = 1) {
  series <- list2env(list(
    model = model, type = model_type(model), args = encoded$args, design = encoded$design,
    encoded = encoded, data = data, n = encoded$n, words = words, threads = threads,
    names = encoded$theta_names
  ), parent = emptyenv())
  if (is.null(method)) series$tables <- segment_tables(model, encoded)
  series$kind <- if (!is.null(series$tables)) "closed"
  else if (is.null(method) && has_one_climb(model)) "laplace" else "fits"
  series$method <- method
  if (series$kind != "closed") choose_methods(series)
  series$blocks <- switch(series$kind, closed = part_of(model, "boundaries"),
                          laplace = LAPLACE_BLOCKS, fits = FITTED_BLOCKS)
  series$every_row <- if (is_closed(series)) 2 * series$blocks else series$blocks
  series$least <- if (!is.null(least)) least else if (is_closed(series)) 1
  else if (is_latent(model)) LATENT_LEAST else 2 * length(series$names)
  series
}

# Blocks of the first grid if each segment is a climb over its rows, or a fit.
LAPLACE_BLOCKS <- 32
FITTED_BLOCKS <- 16
# Least rows of a segment of a model with latent variables.
LATENT_LEAST <- 10

is_closed <- function(series) series$kind == "closed"

# Does one climb in C find the mode of a segment, so that Laplace's approximation needs no fit?
has_one_climb <- function(model)
  !is_latent(model) && !may_have_modes(model) && !asks_r(model) && has_curvature(model)

# Starts of the climbs in a segment. Segments with a large probability are measured with
# MEASURED_STARTS and MEASURED_DRAWS, the draws around their modes.
SEGMENT_STARTS <- 32
MEASURED_STARTS <- 64
MEASURED_DRAWS <- 400

#' The methods of segments: the first one, that for probable segments (`better`), and that for those
#' that are still uncertain (`best`)
#' @noRd
choose_methods <- function(series) {
  if (!is.null(series$method)) return(invisible())
  model <- series$model
  if (is_latent(model) || is_discrete(model) || lacks_gradients(model, series$args)) {
    series$method <- default_method(model, 1, series$encoded)
    return(invisible())
  }
  many <- may_have_modes(model)
  series$method <- laplace(starts = if (many) SEGMENT_STARTS)
  series$better <- laplace(starts = if (many) MEASURED_STARTS, importance = MEASURED_DRAWS)
  if (series$kind == "fits") series$best <- default_method(model, 1, series$encoded)
}

# Sums of blocks ----------------------------------------------------------------------------------

#' What all blocks of a model share, NULL if its segments have no closed form
#' @noRd
segment_tables <- function(model, encoded)
  .Call(ffi_segment_tables, model_type(model), encoded$args, encoded$rows)

closed_tables <- function(model, encoded) {
  tables <- segment_tables(model, encoded)
  if (is.null(tables))
    fail("Streams need a model whose segments have a closed form, such as gaussian_mean() or ",
         "poisson_rate(), not this ", model$name, "(): give change_points() rows in memory.")
  tables
}

add_to_sums <- function(series, rows, cells, sums, count) {
  if (is.null(sums)) sums <- matrix(0, 0, 0)
  .Call(ffi_segment_add, series$type, series$args, series$tables, rows, as.double(cells), sums,
        as.double(count))
}

join_sums <- function(series, sums, cells, count)
  .Call(ffi_segment_join, series$type, series$args, series$tables, sums, as.double(cells),
        as.double(count))

# Rows after bounds[b], up to bounds[b + 1], are in block b.
block_of <- function(row, bounds) findInterval(row, bounds, left.open = TRUE)

#' The sums of the blocks between boundaries
#' @noRd
sums_between <- function(series, bounds) {
  m <- length(bounds) - 1
  if (is.null(series$source))
    return(add_to_sums(series, series$encoded$rows, rep(seq_len(m), diff(bounds)), NULL, m))
  if (!series$source$rewinds)
    return(join_sums(series, series$sums, block_of(series$ends, bounds), m))
  sums <- NULL
  n <- over_source(series, series$source, function(encoded, before, data) {
    row <- before + seq_len(ncol(encoded$rows))
    if (max(row) > series$n) return()
    sums <<- add_to_sums(series, encoded$rows, block_of(row, bounds), sums, m)
    note_times(series, row, data, bounds)
  })
  if (n != series$n)
    fail("The source gave ", count(n), " rows, but ", count(series$n), " when it was read first.")
  sums
}

#' The rows of a source, block by block
#'
#' @param binding An environment with the `model` and its `design`, which the first block sets if it
#'   is NULL, and also `args` and `encoded`.
#' @param each function(encoded, before, data), which gets the number of rows before the block.
#' @return The number of rows.
#' @noRd
over_source <- function(binding, source, each) {
  reader <- open_reader(source)
  on.exit(close_reader(reader))
  while (!is.null(block <- read_block(reader))) {
    data <- block_data(block)
    n <- block_rows(data)
    before <- reader$read - n
    model <- binding$model
    encoded <- within_rows(before, n, if (is.null(binding$design)) encode(model, data)
                           else encode_new(model, binding$design, data, argument = "data"))
    if (is.null(binding$design)) {
      binding$design <- encoded$design
      binding$args <- encoded$args
      binding$encoded <- encoded
    }
    each(encoded, before, data)
  }
  reader$read
}

#' The series of a source, which is read once
#'
#' Blocks are joined in pairs when there are too many of them, so memory does not grow with the
#' rows. Some rows are kept for pictures.
#' @noRd
series_of_source <- function(model, source, at, least, blocks, words) {
  if (is_lagged(model)) fail("change_points() of a source needs a model without lags().")
  series <- list2env(list(model = model, type = model_type(model), kind = "closed", at = at,
                          source = source, words = words,
                          least = if (is.null(least)) 1 else least),
                     parent = emptyenv())
  series$blocks <- part_of(model, "boundaries")
  most <- 2 * if (is.null(blocks)) series$blocks else blocks
  width <- 1
  sums <- NULL
  series$n <- over_source(series, source, function(encoded, before, data) {
    row <- before + seq_len(ncol(encoded$rows))
    if (is.null(series$tables)) prepare_source(series, encoded)
    while (max(row) > most * width) {
      if (!is.null(sums)) {
        pairs <- ceiling(seq_len(ncol(sums)) / 2)
        sums <<- join_sums(series, sums, pairs, max(pairs))
      }
      width <<- 2 * width
    }
    cells <- ceiling(row / width)
    sums <<- add_to_sums(series, encoded$rows, cells, sums, max(cells))
    note_sample(series, row, encoded)
    note_times(series, row, data)
  })
  if (series$n == 0) fail("`data` must have at least one row, not 0.")
  series$sums <- sums
  series$ends <- pmin(width * seq_len(ncol(sums)), series$n)
  series$every_row <- 2 * series$blocks
  series$encoded[c("rows", "offset", "n")] <-
    list(series$sample$rows, series$sample$offset, ncol(series$sample$rows))
  series
}

prepare_source <- function(series, encoded) {
  series$names <- encoded$theta_names
  series$tables <- closed_tables(series$model, encoded)
}

# So many rows are shown in pictures.
SHOWN_ROWS <- 1000

# Keeps every `step`-th row, with a step so large that at most twice SHOWN_ROWS are kept.
note_sample <- function(series, row, encoded) {
  old <- series$sample
  if (is.null(old)) old <- list(step = 1)
  own <- (row - 1) %% old$step == 0
  new <- list(step = old$step, row = c(old$row, row[own]),
              rows = cbind(old$rows, encoded$rows[, own, drop = FALSE]),
              offset = c(old$offset, encoded$offset[own]))
  while (length(new$row) > 2 * SHOWN_ROWS) {
    new$step <- 2 * new$step
    kept <- (new$row - 1) %% new$step == 0
    new <- list(step = new$step, row = new$row[kept], rows = new$rows[, kept, drop = FALSE],
                offset = new$offset[kept])
  }
  series$sample <- new
}

# Times -------------------------------------------------------------------------------------------

# Rows and their times; of a source only some are known, and a row between two of them gets the
# earlier time. Without times rows are counted.
new_times <- function(row, value) list(row = row, value = value)

time_at <- function(times, row)
  if (is.null(times)) row else times$value[pmax(1, findInterval(row, times$row))]

check_times <- function(at, data, n, before = 0) {
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
  if (length(bad)) fail_in_row(before + bad[1], "`at` must have no missing times, as in row ")
  back <- which(diff(as.numeric(times)) < 0)
  if (length(back))
    fail("`at` must be sorted: order the rows by time first (row ",
         plain_number(before + back[1] + 1), " is earlier than the row before).")
  times
}

# The times of the rows used: without those left out and the first ones of a model with lags.
kept_times <- function(times, omitted, n, given) {
  kept <- seq_len(given)
  if (length(omitted)) kept <- kept[-omitted]
  kept <- utils::tail(kept, n)
  if (is.null(times)) kept else times[kept]
}

#' Read the times of some rows of a source
#' @noRd
find_times <- function(series, wanted) {
  known <- is.null(series$source) || is.null(series$at) || all(wanted %in% series$times$row)
  if (known || !series$source$rewinds) return(invisible())
  over_source(series, series$source, function(encoded, before, data)
    note_times(series, before + seq_len(ncol(encoded$rows)), data, wanted))
}

MOST_TIMES <- 4000

#' The times of the wanted rows of a source, or of a sample of rows
#' @noRd
note_times <- function(series, row, data, wanted = NULL) {
  if (is.null(series$at)) return(invisible())
  value <- check_times(series$at, data, length(row), row[1] - 1)
  last <- series$last_time
  if (row[1] > 1 && !is.null(last) && value[1] < last)
    fail("`at` must be sorted: row ", plain_number(row[1]), " is earlier than the row before.")
  series$last_time <- value[length(value)]
  old <- series$times
  step <- if (is.null(series$time_step)) 1 else series$time_step
  own <- if (is.null(wanted)) (row - 1) %% step == 0 | seq_along(row) == length(row)
  else row %in% wanted & !row %in% old$row
  if (!any(own)) return(invisible())
  all <- c(old$row, row[own])
  values <- if (is.null(old)) value[own] else c(old$value, value[own])
  order <- order(all)
  series$times <- new_times(all[order], values[order])
  while (is.null(wanted) && length(series$times$row) > MOST_TIMES) {
    step <- series$time_step <- 2 * step
    kept <- (series$times$row - 1) %% step == 0 | seq_along(series$times$row) ==
      length(series$times$row)
    series$times <- new_times(series$times$row[kept], series$times$value[kept])
  }
}

# Evidences of segments ---------------------------------------------------------------------------

# Segments are sorted by their first boundary: so many begin before boundary i.
segment_start <- function(m, i) (i - 1) * m - (i - 1) * (i - 2) / 2
# The position of the segments from boundaries i to j, numbered from 1.
segment_at <- function(m, i, j) segment_start(m, i) + j - i

# The boundaries of all segments, in this order.
segment_from <- function(m) rep(seq_len(m), rev(seq_len(m)))
segment_to <- function(m) sequence(rev(seq_len(m))) + segment_from(m)

#' The log evidences of all segments between boundaries
#'
#' @param wanted Which of them are computed; others that are not known are -Inf.
#' @return A list: `bounds`, `log_evidence`, and `sums` (closed) or `se`, `failed`, `level`, which
#'   is 0 for a segment that is not measured, and `group`, the same for segments with one error.
#' @noRd
segment_grid <- function(series, bounds, wanted = TRUE) {
  m <- length(bounds) - 1
  if (is_closed(series)) {
    sums <- sums_between(series, bounds)
    value <- .Call(ffi_segments, series$type, series$args, series$tables, sums, as.double(bounds),
                   series$least)
    refuse_infinite(value, bounds)
    return(list(bounds = bounds, log_evidence = value, sums = sums))
  }
  from <- bounds[segment_from(m)]
  to <- bounds[segment_to(m)]
  allowed <- to - from >= series$least
  new <- wanted & allowed & is.na(known_at(series, from, to))
  if (any(new)) learn_segments(series, bounds, from, to, new)
  at <- known_at(series, from, to)
  at[!allowed] <- NA
  value <- series$known$value[at]
  value[is.na(at)] <- -Inf
  list(bounds = bounds, log_evidence = value, se = series$known$se[at],
       failed = series$known$failed[at] %in% TRUE, level = series$known$level[at],
       group = series$known$group[at])
}

refuse_infinite <- function(value, bounds) {
  bad <- which(is.na(value) | value == Inf)[1]
  if (is.na(bad)) return(invisible())
  m <- length(bounds) - 1
  where <- paste0("rows ", count(bounds[segment_from(m)[bad]] + 1), " to ",
                  count(bounds[segment_to(m)[bad]]))
  if (is.na(value[bad]))
    fail("No posterior mode was found for ", where, ": give a larger `least`, or a prior that ",
         "says more.")
  rows <- (bounds[segment_to(m)] - bounds[segment_from(m)])[is.na(value) | value == Inf]
  stop(structure(class = c("logevidence_exact_rows", "logevidence_error", "error", "condition"),
                 list(message = paste0("The coefficients fit ", where, " exactly, so their ",
                                       "evidence is infinite: give `sigma` an inverse_gamma() ",
                                       "prior, or a larger `least`."),
                      call = NULL, where = where, rows = max(rows))))
}

segment_key <- function(series, from, to) from * (series$n + 1) + to

known_at <- function(series, from, to) match(segment_key(series, from, to), series$known$key)

learn_segments <- function(series, bounds, from, to, new) {
  found <- if (series$kind == "laplace") {
    all <- .Call(ffi_segments_laplace, series$type, series$args, series$encoded$rows,
                 as.double(bounds), series$least, new)
    found <- data.frame(value = all[new], se = NA_real_, failed = FALSE)
    # a climb from the prior's centre that finds no mode is repeated from several starts
    lost <- is.na(found$value)
    found[lost, ] <- fitted_segments(series, from[new][lost], to[new][lost],
                                     laplace(starts = SEGMENT_STARTS))
    found
  } else fitted_segments(series, from[new], to[new], series$method)
  # segments by a method that the user chose are not measured again
  level <- if (is.null(series$better)) Inf else 0
  series$known <- rbind(series$known, cbind(
    key = segment_key(series, from, to)[new], from = from[new], to = to[new], found,
    first = found$value, level = level, own = 0, group = segment_key(series, from, to)[new]
  ))
}

#' Measure a segment that is known already
#'
#' Segments with nearly the same rows get the same difference from Laplace's approximation, which
#' is smooth in their ends, while separate estimates are not; unless another mode was found.
#' @param level 1: by importance sampling; 2: by the default method.
#' @noRd
measure_segment <- function(series, from, to, level) {
  found <- fitted_segments(series, from, to, list(series$better, series$best)[[level]])
  known <- series$known
  one <- known_at(series, from, to)
  shift <- found$value - known$first[one]
  if (level == 1) series$shift <- c(series$shift, shift)
  # a second measurement replaces the first only if its standard error is smaller
  if (level == 1 || !(found$se >= known$se[one])) {
    common <- pmin(known$to, to) - pmax(known$from, from)
    near <- common > ALIKE * pmax(known$to - known$from, to - from) & known$level < level &
      shift < OTHER_MODE
    near[one] <- TRUE
    known$value[near] <- known$first[near] + shift
    known$se[near] <- found$se
    known$failed[near] <- found$failed
    known$level[near] <- level
    known$group[near] <- known$key[one]
  }
  known$level[one] <- known$own[one] <- level
  series$known <- known
}

# Two segments are nearly the same if they have more than this share of rows in common.
ALIKE <- 0.9
# An estimate more than so many nats above Laplace's approximation has found another mode.
OTHER_MODE <- 5

#' Fits to the rows of segments: a data frame of `value`, `se`, and whether a fit has `failed`
#' @noRd
fitted_segments <- function(series, from, to, method) {
  bar <- progress_bar(interactive(), length(from))
  on.exit(bar$close())
  all <- lapply(seq_along(from), function(i) {
    bar$show((i - 1) / length(from), to[i])
    fit <- within_segment(from[i], to[i], segment_fit(series, from[i], to[i], method))
    if (!is.finite(fit$log_evidence))
      fail("Rows ", count(from[i] + 1), " to ", count(to[i]), " have no finite log evidence.")
    c(fit$log_evidence, fit$se, length(fit$failed) > 0)
  })
  all <- matrix(as.numeric(unlist(all)), 3)
  data.frame(value = all[1, ], se = all[2, ], failed = all[3, ] == 1)
}

within_segment <- function(from, to, expr) {
  tryCatch(expr, logevidence_error = function(e)
    fail("Rows ", count(from + 1), " to ", count(to), ": ", conditionMessage(e)))
}

segment_fit <- function(series, from, to, method) {
  model <- series$model
  rows <- seq(from + 1, to)
  encoded <- series$encoded
  if (asks_r(model) || is_latent(model)) encoded <- encode(model, text_as_it_is(
    block_part(series$data, rows)))
  else {
    encoded$own <- NULL
    encoded$rows <- encoded$rows[, rows, drop = FALSE]
    encoded$offset <- encoded$offset[rows]
    encoded$n <- length(rows)
  }
  spec <- list(call = NULL, model = model, method = method, words = series$words, seeded = TRUE,
               replicates = 1, threads = series$threads, keep = Inf)
  fit_of_rows(spec, encoded)
}

# Draws -------------------------------------------------------------------------------------------

#' Draws of the parameters of segments between drawn boundaries
#'
#' @param grid From segment_grid().
#' @param at Numbers of boundaries, a row for each draw.
#' @return A list of arrays of draws x parameters x segments: `user` on the user's scale, and
#'   `theta`, or NULL if segments are fits.
#' @noRd
drawn_parameters <- function(series, grid, at, words) {
  ends <- cbind(c(at[, -ncol(at)]), c(at[, -1])) - 1
  if (series$kind == "fits") {
    user <- fitted_draws(series, grid$bounds, ends, words)
    return(list(user = by_segment(user, at, rownames(user))))
  }
  order <- order(ends[, 1], ends[, 2])
  closed <- if (is_closed(series)) list(tables = series$tables, sums = grid$sums)
  theta <- .Call(ffi_segments_draw, series$type, series$args, series$encoded$rows, closed,
                 as.double(grid$bounds), ends[order, , drop = FALSE], words)
  theta[, order] <- theta
  user_draws(series, theta, at)
}

# A column for each draw and segment, as an array of draws x parameters x segments.
by_segment <- function(x, at, names)
  aperm(array(x, c(nrow(x), nrow(at), ncol(at) - 1), list(names, NULL, NULL)), c(2, 1, 3))

user_draws <- function(series, theta, at) {
  if (anyNA(theta)) fail("The parameters of a segment could not be drawn.")
  user <- .Call(ffi_model, series$type, series$args, series$encoded$rows, "to_user", theta, list())
  user <- matrix(user, nrow = length(series$encoded$user_names))
  rownames(user) <- series$encoded$user_names
  user <- t(label_free(series$model, t(user)))
  list(theta = by_segment(theta, at, NULL), user = by_segment(user, at, rownames(user)))
}

#' Parameters on the user's scale, a row for each draw, as they may be compared between segments:
#' labels of components have no meaning there
#' @noRd
label_free <- function(model, draws) part_of(model, "label_free")(model, draws)

#' Draws from fits
#'
#' Segments that differ by a few rows share one fit, that of the one which is drawn most often.
#' @noRd
fitted_draws <- function(series, bounds, ends, words) {
  restore <- own_generator(words, FALSE)
  on.exit(restore())
  from <- bounds[ends[, 1] + 1]
  to <- bounds[ends[, 2] + 1]
  key <- segment_key(series, from, to)
  often <- sort(table(key), decreasing = TRUE)
  first <- match(names(often), key)
  drawn <- NULL
  left <- rep(TRUE, length(key))
  for (one in first) {
    if (!left[one]) next
    common <- pmin(to, to[one]) - pmax(from, from[one])
    own <- which(left & (key == key[one] |
                           common > SHARES_FIT * pmax(to - from, to[one] - from[one])))
    left[own] <- FALSE
    fit <- within_segment(from[one], to[one], fit_to_draw(series, from[one], to[one]))
    draws <- as.matrix(fit$draws)[resample(exp(fit$log_weights), length(own)), , drop = FALSE]
    draws <- t(label_free(series$model, draws))
    if (is.null(drawn))
      drawn <- matrix(0, nrow(draws), length(key), dimnames = list(rownames(draws), NULL))
    drawn[, own] <- draws[, sample.int(length(own))]
  }
  drawn
}

# Segments with more than this share of rows in common have the same draws.
SHARES_FIT <- 0.98

# The fit of a segment by the method that has measured it.
fit_to_draw <- function(series, from, to) {
  level <- series$known$own[known_at(series, from, to)]
  method <- if (level %in% 1) series$better else if (level %in% 2) series$best
  else series$method
  segment_fit(series, from, to, method)
}

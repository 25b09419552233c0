# The positions of changes: exact sums over all ways to divide the rows into segments
# (src/core/segments.c) between the boundaries of a grid, which is refined where a change is
# probable.

#' Sums over segmentations, and the totals for each number of changes
#'
#' @return The grid with `rows` and `edges` (those for which a boundary stands), `log_weight` (of
#'   boundaries), the sums `first` and `last`, and `total`, the log evidence of each number.
#' @noRd
sum_segments <- function(grid, n, most, least = 1) {
  grid[c("n", "edges", "rows", "log_weight")] <- c(n = n, boundary_rows(grid$bounds, n))
  m <- length(grid$bounds) - 1
  most <- min(most, m - 1)
  all <- .Call(ffi_segments_sums, grid$log_evidence, grid$log_weight, most, TRUE)
  grid$first <- all$first
  grid$last <- all$last
  grid$total <- all$first[m + 1, ] - log_ways(grid$bounds, grid$log_weight, most, least)
  grid
}

#' The rows for which each inner boundary stands: they end halfway to its neighbours
#' @noRd
boundary_rows <- function(bounds, n) {
  m <- length(bounds) - 1
  inner <- bounds[-c(1, m + 1)]
  edges <- c(0.5, if (m > 2) (inner[-1] + inner[-(m - 1)]) / 2, n - 0.5)
  list(edges = edges, rows = diff(edges), log_weight = c(0, log(diff(edges)), 0))
}

#' The log number of ways to have 0, ..., `most` changes
#' @noRd
log_ways <- function(bounds, log_weight, most, least) {
  m <- length(bounds) - 1
  ways <- numeric(m * (m + 1) / 2)
  if (least > 1) ways[bounds[segment_to(m)] - bounds[segment_from(m)] < least] <- -Inf
  .Call(ffi_segments_sums, ways, log_weight, most, FALSE)$first[m + 1, ]
}

#' Probabilities that the r-th of k changes is at each inner boundary: a row for each r
#' @noRd
position_probabilities <- function(sums, k) {
  if (!is.null(sums$chances)) return(sums$chances[[k + 1]])
  m <- length(sums$bounds) - 1
  inner <- seq(2, length.out = m - 1)
  t(vapply(seq_len(k), function(r) {
    log_p <- sums$first[inner, r] + sums$last[inner, k - r + 1] + sums$log_weight[inner]
    exp(log_p - sums$first[m + 1, k + 1])
  }, numeric(m - 1)))
}

#' The probability of each segment given k changes
#' @noRd
segment_probabilities <- function(sums, k) {
  m <- length(sums$bounds) - 1
  from <- segment_from(m)
  to <- segment_to(m)
  inner <- seq(2, length.out = m - 1)
  log_p <- rep(-Inf, length(from))
  # of a segment: `before` changes are at or before its first boundary, `after` at or after its last
  for (before in 0:k) {
    after <- k - before
    left <- right <- rep(-Inf, m + 1)
    if (before == 0) left[1] <- 0
    else left[inner] <- sums$first[inner, before] + sums$log_weight[inner]
    if (after == 0) right[m + 1] <- 0
    else right[inner] <- sums$last[inner, after] + sums$log_weight[inner]
    way <- left[from] + right[to]
    top <- pmax(log_p, way, -1e300)
    log_p <- top + log(exp(log_p - top) + exp(way - top))
  }
  exp(log_p + sums$log_evidence - sums$first[m + 1, k + 1])
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

# Blocks with a larger probability of a change are divided, into at most PARTS parts (PARTS_OF_FITS
# if each segment is a fit), in at most MOST_ROUNDS rounds.
DIVIDED <- 1 / 200
PARTS <- 8
PARTS_OF_FITS <- 4
MOST_ROUNDS <- 20

# If segments are costly, only boundaries with a larger probability get segments to new boundaries.
PAIRED <- 1e-3
# At the end, all pairs of boundaries with a larger product of probabilities get a segment.
PAIRED_AT_END <- 1e-4

# Segments of which only Laplace's approximation is known are measured if their probability is above
# MEASURED; given an improbable number of changes this probability is multiplied by the number's
# relative probability, or by MEASURED_LEAST if that is larger.
MEASURED <- 0.01
MEASURED_LEAST <- 0.05
# Segments with more than MEASURED_AGAIN and a standard error above ROUGH_SEGMENT are measured once
# more. At most MOST_MEASURED are measured over all.
MEASURED_AGAIN <- 0.1
ROUGH_SEGMENT <- 0.3
MOST_MEASURED <- 200

#' The sums on a grid that is as fine as it must be
#' @noRd
refined_grid <- function(series, number, blocks) {
  n <- series$n
  again <- is.null(series$source) || series$source$rewinds
  every <- is.null(blocks) && n <= series$every_row || isTRUE(blocks >= n)
  start <- if (every) n else if (is.null(blocks)) series$blocks else blocks
  bounds <- if (again) unique(round(seq(0, n, length.out = start + 1))) else c(0, series$ends)
  prior <- number_prior(number, n, series$least)
  added <- function(grid) {
    sums <- sum_segments(grid, n, number$most, series$least)
    if (anyNA(sums$total))
      fail("`blocks` must be more, or `most` fewer: between ", count(length(grid$bounds) - 2),
           " boundaries there are no ", which(is.na(sums$total))[1], " segments of at least ",
           count(series$least), " rows each.")
    log_posterior <- sums$total + prior[seq_along(sums$total)]
    sums$posterior <- exp(log_posterior - log_sum(log_posterior))
    sums
  }
  if (again && is_closed(series)) bounds <- c(bounds, short_segments(series, bounds))
  sums <- added(segment_grid(series, sort(bounds)))
  limit <- max((if (is_closed(series)) 2 else 10) * series$blocks, length(bounds) + 8 * PARTS)
  for (round in seq_len(if (again) MOST_ROUNDS else 0)) {
    more <- divided_blocks(sums, series, limit - length(sums$bounds))
    if (!length(more)) more <- split_segments(series, sums)
    if (!length(more)) break
    sums <- added(larger_grid(series, sums, more))
  }
  if (!is_closed(series)) {
    sums <- added(paired_at_end(series, sums))
    sums <- measured_grid(series, sums, added)
  }
  sums$prior <- exp(prior[seq_along(sums$total)])
  sums$error <- grid_errors(sums, n, series$least)
  if (!is_closed(series)) sums$error <- sqrt(sums$error^2 + segment_errors(series, sums)^2)
  sums$exact <- all(diff(sums$bounds) == 1)
  sums
}

#' The largest probability of a change at each boundary, weighted by that of the number of changes
#' @noRd
boundary_share <- function(sums, count_of_number) {
  share <- numeric(length(sums$bounds) - 2)
  for (k in seq_along(sums$total)[-1] - 1) {
    p <- apply(position_probabilities(sums, k), 2, max)
    share <- pmax(share, count_of_number(k) * p)
  }
  share
}

weighted_share <- function(sums)
  boundary_share(sums, function(k) sums$posterior[k + 1] / max(sums$posterior))

#' New boundaries in the blocks on both sides of positions with much probability
#' @noRd
divided_blocks <- function(sums, series, room) {
  gaps <- diff(sums$bounds)
  m <- length(gaps)
  if (m < 2 || all(gaps == 1) || room < 1) return(NULL)
  share <- weighted_share(sums)
  share <- pmax(c(0, share), c(share, 0))
  wide <- which(share > DIVIDED & gaps > 1)
  wide <- wide[order(-share[wide])]
  most <- if (series$kind == "fits") PARTS_OF_FITS else PARTS
  parts <- pmin(gaps, most, ceiling(share / DIVIDED))
  wide <- wide[cumsum(parts[wide] - 1) <= room]
  unlist(lapply(wide, function(b) {
    ends <- sums$bounds[b + 0:1]
    setdiff(round(seq(ends[1], ends[2], length.out = parts[b] + 1)), ends)
  }))
}

#' The grid with more boundaries
#'
#' Where a segment costs a climb or a fit, new boundaries are paired with each other and with those
#' that have some probability.
#' @noRd
larger_grid <- function(series, sums, more) {
  bounds <- sort(c(sums$bounds, more))
  if (is_closed(series)) return(segment_grid(series, bounds))
  inner <- sums$bounds[-c(1, length(sums$bounds))]
  paired <- bounds %in% c(0, sums$n, more, inner[weighted_share(sums) > PAIRED])
  m <- length(bounds) - 1
  segment_grid(series, bounds, paired[segment_from(m)] & paired[segment_to(m)])
}

#' The grid with segments between probable boundaries and those that a further change may have
#' @noRd
paired_at_end <- function(series, sums) {
  m <- length(sums$bounds) - 1
  if (m < 2) return(sums)
  best <- which.max(sums$posterior) - 1
  sure <- c(1, weighted_share(sums), 1)
  further <- c(1, boundary_share(sums, function(k) as.numeric(k <= best + 1)), 1)
  product <- function(i, j) pmax(sure[i] * further[j], further[i] * sure[j])
  segment_grid(series, sums$bounds,
               product(segment_from(m), segment_to(m)) > PAIRED_AT_END)
}

#' Boundaries that divide segments between the most probable changes
#'
#' The grid may be too coarse for a change near another one, or near an end of the rows: the blocks
#' there are divided at distances from the end that are halved again and again, and the boundary
#' that improves the evidence most is added. (In closed form short_segments() has looked there.)
#' @noRd
split_segments <- function(series, sums) {
  if (is_closed(series)) return(NULL)
  k <- which.max(sums$posterior) - 1
  changes <- if (k > 0) apply(position_probabilities(sums, k), 1, which.max) + 1
  bounds <- unique(sums$bounds[sort(unique(c(1, changes, length(sums$bounds))))])
  unlist(lapply(seq_len(length(bounds) - 1), function(s)
    best_split(series, sums, bounds[s], bounds[s + 1])))
}

best_split <- function(series, sums, from, to) {
  halves <- (to - from) / 2^seq_len(40)
  halves <- round(halves[halves >= max(series$least, 1)])
  at <- setdiff(c(from + halves, to - halves), sums$bounds)
  block <- block_of(at, sums$bounds)
  beside <- sums$bounds[block] == from | sums$bounds[block + 1] == to
  at <- sort(unique(at[beside]))
  if (!length(at)) return(NULL)
  bounds <- c(from, at, to)
  m <- length(bounds) - 1
  value <- segment_grid(series, bounds, segment_from(m) == 1 | segment_to(m) == m + 1)$log_evidence
  inner <- seq(2, m)
  gain <- value[segment_at(m, 1, inner)] + value[segment_at(m, inner, m + 1)] -
    value[segment_at(m, 1, m + 1)]
  # a priori the change is after one of n rows, so the gain must exceed log(n) + log(DIVIDED)
  best <- which.max(gain)
  if (gain[best] > log(sums$n) + log(DIVIDED)) at[best]
}

# Short segments ----------------------------------------------------------------------------------

# Segments shorter than a block are searched between the ends of so many parts of it.
BLOCK_PARTS <- 16

#' New boundaries in blocks that probably contain a whole segment
#'
#' For each block: the evidence of a segment inside it, relative to none, in rows that go from the
#' block before to the block after. Sums are cheap in closed form, so every block is looked at.
#' @noRd
short_segments <- function(series, bounds) {
  gaps <- diff(bounds)
  m <- length(gaps)
  wide <- which(gaps > 1)
  if (!length(wide) || m < 2) return(NULL)
  inside <- lapply(wide, function(b)
    unique(round(seq(bounds[b], bounds[b + 1], length.out = min(gaps[b], BLOCK_PARTS) + 1))))
  fine <- sort(unique(c(bounds, unlist(inside))))
  sums <- sums_between(series, fine)
  n <- series$n
  unlist(lapply(seq_along(wide), function(w) {
    b <- wide[w]
    around <- bounds[c(max(1, b - 1), min(m + 1, b + 2))]
    cells <- seq(match(around[1], fine), match(around[2], fine) - 1)
    cuts <- inside[[w]]
    own <- unique(c(around[1], cuts, around[2]))
    grouped <- join_sums(series, sums[, cells, drop = FALSE], block_of(fine[cells + 1], own),
                         length(own) - 1)
    value <- .Call(ffi_segments, series$type, series$args, series$tables, grouped,
                   as.double(own), series$least)
    if (anyNA(value) || any(value == Inf)) return(NULL)
    # the odds are NaN where no segment has the least number of rows
    if (isTRUE(short_odds(value, own, cuts, n) > DIVIDED)) setdiff(cuts, bounds)
  }))
}

#' The odds of two changes in a block, against none
#' @noRd
short_odds <- function(value, bounds, cuts, n) {
  k <- length(bounds) - 1
  at <- match(cuts, bounds)
  pairs <- which(outer(at, at, "<"), arr.ind = TRUE)
  i <- at[pairs[, 1]]
  j <- at[pairs[, 2]]
  part <- function(i, j) ifelse(i == j, 0, value[pmax(1, segment_at(k, i, j))])
  each <- part(rep(1, length(i)), i) + part(i, j) + part(j, rep(k + 1, length(j)))
  rows <- mean(diff(cuts))
  exp(min(700, log_sum(each) - value[segment_at(k, 1, k + 1)] + 2 * log(rows) -
            log(n) - log(max(n - 1, 1)) + log(2)))
}

# Segments that are measured ----------------------------------------------------------------------

measured_grid <- function(series, sums, added) {
  m <- length(sums$bounds) - 1
  from <- sums$bounds[segment_from(m)]
  to <- sums$bounds[segment_to(m)]
  for (round in seq_len(if (is.null(series$better)) 0 else MOST_MEASURED)) {
    level <- 1
    weight <- segment_weight(sums, MEASURED_LEAST)
    new <- which(weight > MEASURED & sums$level %in% 0)
    if (!length(new) && !is.null(series$best)) {
      level <- 2
      weight <- segment_weight(sums, 0)
      new <- which(weight > MEASURED_AGAIN & sums$level %in% 1 &
                     (sums$se > ROUGH_SEGMENT | sums$failed))
    }
    if (!length(new)) break
    top <- new[which.max(weight[new])]
    measure_segment(series, from[top], to[top], level)
    sums <- added(segment_grid(series, sums$bounds, FALSE))
  }
  sums
}

#' The largest probability of each segment over numbers of changes, each multiplied by the relative
#' probability of its number, or by `least` if that is larger
#' @noRd
segment_weight <- function(sums, least) {
  weight <- 0
  for (k in seq_along(sums$total) - 1)
    weight <- pmax(weight, segment_probabilities(sums, k) *
                     max(least, sums$posterior[k + 1] / max(sums$posterior)))
  weight
}

#' The standard error of each total that follows from those of the segments
#'
#' Segments that were measured together share one error. Those that were not measured share another:
#' the median of the differences between measured values and Laplace's approximation.
#' @noRd
segment_errors <- function(series, sums) {
  typical <- if (is.null(series$shift)) 0 else stats::median(abs(series$shift))
  se <- ifelse(is.na(sums$se), typical, sums$se)
  group <- ifelse(is.na(sums$se), -1, sums$group)
  vapply(seq_along(sums$total) - 1, function(k) {
    p <- segment_probabilities(sums, k)
    sqrt(sum(rowsum((p * se)[p > 0], group[p > 0])^2))
  }, 0)
}

#' By how much the totals change if every other boundary between undivided blocks is left out
#' @noRd
grid_errors <- function(sums, n, least) {
  gaps <- diff(sums$bounds)
  m <- length(gaps)
  between <- which(gaps[-m] > 1 & gaps[-1] > 1) + 1
  between <- between[seq_along(between) %% 2 == 0]
  if (!length(between)) return(0 * sums$total)
  kept <- setdiff(seq_len(m + 1), between)
  pairs <- unlist(lapply(seq_len(length(kept) - 1), function(i)
    segment_at(m, kept[i], kept[-seq_len(i)])))
  coarse <- sum_segments(list(bounds = sums$bounds[kept], log_evidence = sums$log_evidence[pairs]),
                         n, length(sums$total) - 1, least)
  abs(sums$total - coarse$total[seq_along(sums$total)])
}

#' Draws of the positions of k changes: numbers of boundaries, a matrix with a row for each draw
#' @noRd
drawn_segments <- function(sums, k, draws, words) {
  if (!is.null(sums$at)) return(sums$at)
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

#' The boundaries that are the most probable rows of k changes together
#'
#' The most probable row of each change by itself may be the same for two of them.
#' @noRd
likely_segments <- function(sums, k) {
  if (!is.null(sums$likely)) return(sums$likely)
  m <- length(sums$bounds) - 1
  # `top`: the largest sum of r segments that end at each boundary; `before`: where the last begins
  top <- c(0, rep(-Inf, m))
  before <- matrix(1L, k + 1, m + 1)
  for (r in seq_len(k + 1)) {
    ends <- if (r > k) m + 1L else seq.int(r + 1L, m - k + r)
    now <- rep(-Inf, m + 1)
    for (j in ends) {
      from <- seq_len(j - 1L)
      value <- top[from] + sums$log_evidence[segment_at(m, from, j)]
      before[r, j] <- which.max(value)
      now[j] <- value[before[r, j]]
    }
    top <- now
  }
  at <- m + 1L
  for (r in rev(seq_len(k))) at <- c(before[r + 1, at[1]], at)
  at[seq_len(k)]
}

same_bounds <- function(bounds, draws)
  matrix(seq_along(bounds), draws, length(bounds), byrow = TRUE)

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

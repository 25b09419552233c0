# The tables of change_points(), from the sums over segmentations (R/change-grid.R).

# Posterior probability of the largest number of changes above which there is a warning.
MOST_SHARE <- 0.1

#' What evidence() says of a prior that contradicts all rows together, or NULL
#' @noRd
conflict_of <- function(model, encoded, words) or_null({
  spec <- list(call = NULL, model = model, method = laplace(), words = words, seeded = TRUE,
               replicates = 1, threads = 1, keep = Inf)
  fit_of_rows(spec, encoded)$prior_conflict
})

summarise_changes <- function(series, sums, number, level, draws) {
  words <- series$words
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
  changes <- changes_table(series, sums, best, level)
  at <- drawn_segments(sums, best, draws, words)
  parameters <- segment_parameters(series, sums, at, words)
  drawn <- matrix(sums$bounds[at], draws)
  last <- length(total)
  rough <- max(sums$error[sums$posterior > 0.01])
  said <- c(
    conflict_of(series$model, series$encoded, words),
    if (sums$posterior[last] > MOST_SHARE && number$most < floor(series$n / series$least) - 1)
      say("most_changes", count(number$most), show_probability(sums$posterior[last])),
    if (rough > 0.5) say("rough_changes", rough),
    if (isTRUE(sums$uneven)) say("uneven_changes"),
    if (any(sums$failed)) doubted_segments(sums)
  )
  list(numbers = numbers, number = best, changes = changes,
       sizes = sizes_table(changing_of(series, parameters$user), best, level),
       shared = shared_table(series, parameters$user, level),
       segments = segments_table(series, sums, changes, level, draws),
       positions = positions, exact = sums$exact, kind = series$kind, blocks = m,
       warnings = said, band = response_band(series, drawn, parameters, level))
}

doubted_segments <- function(sums) {
  doubted <- sum(sums$failed & segment_weight(sums, 0) > MEASURED)
  if (doubted > 0) say("doubted_segments", count_of(doubted, "segment"))
}

changes_table <- function(series, sums, k, level) {
  columns <- c("row", "probability", "from", "to", "posterior")
  table <- matrix(numeric(), 0, 5)
  if (k > 0) {
    p <- position_probabilities(sums, k)
    inner <- sums$bounds[-c(1, length(sums$bounds))]
    all <- lapply(seq_along(sums$total)[-1] - 1, function(j)
      sums$posterior[j + 1] * pmin(colSums(position_probabilities(sums, j)), 1))
    likely <- likely_segments(sums, k) - 1
    table <- t(vapply(seq_len(k), function(r) {
      at <- p[r, ]
      best <- likely[r]
      limits <- central_rows(at, sums$edges, level)
      inside <- inner >= limits[1] & inner <= limits[2]
      c(inner[best], at[best], limits, sum(vapply(all, function(q) min(sum(q[inside]), 1), 0)))
    }, numeric(5)))
  }
  table <- as.data.frame(matrix(table, ncol = 5, dimnames = list(NULL, columns)))
  find_times(series, unlist(table[c("row", "from", "to")]))
  times <- series$times
  table$posterior <- pmin(table$posterior, 1)
  cbind(change = seq_len(k), table["row"], at = time_at(times, table$row),
        table[c("probability", "from", "to")], from_at = time_at(times, table$from),
        to_at = time_at(times, table$to), table["posterior"])
}

sizes_table <- function(parameters, k, level) {
  names <- dimnames(parameters)[[2]]
  tail <- (1 - level) / 2
  rows <- lapply(seq_len(if (length(names)) k else 0), function(r) {
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

# The parameters that differ between segments.
changing_of <- function(series, parameters) {
  if (!is_shared(series)) return(parameters)
  parameters[, series$encoded$user_names[seq_along(series$moving)][series$moving], , drop = FALSE]
}

shared_table <- function(series, parameters, level) {
  if (!is_shared(series)) return(NULL)
  own <- setdiff(dimnames(parameters)[[2]], dimnames(changing_of(series, parameters))[[2]])
  draws <- matrix(parameters[, own, 1], ncol = length(own))
  tail <- (1 - level) / 2
  limits <- apply(draws, 2, stats::quantile, c(tail, 1 - tail), names = FALSE)
  data.frame(parameter = own, mean = colMeans(draws), lower = limits[1, ], upper = limits[2, ])
}

segments_table <- function(series, sums, changes, level, draws) {
  bounds <- c(0, changes$row, series$n)
  k <- length(bounds) - 1
  parameters <- segment_parameters(series, coarser_grid(series, sums, bounds, draws),
                                   same_bounds(bounds, draws), next_seed(series$words, 1))$user
  tail <- (1 - level) / 2
  do.call(rbind, lapply(seq_len(k), function(s) {
    own <- matrix(parameters[, , s], draws)
    if (!ncol(own))
      return(data.frame(segment = s, first = bounds[s] + 1, last = bounds[s + 1],
                        parameter = NA_character_, mean = NA_real_, lower = NA_real_,
                        upper = NA_real_))
    limits <- apply(own, 2, stats::quantile, c(tail, 1 - tail), names = FALSE)
    data.frame(segment = s, first = bounds[s] + 1, last = bounds[s + 1],
               parameter = dimnames(parameters)[[2]], mean = colMeans(own), lower = limits[1, ],
               upper = limits[2, ])
  }))
}

# The band of a picture is made from the means of so many draws.
SHOWN_DRAWS <- 200

shown_rows <- function(series) {
  if (!is.null(series$source)) return(series$sample)
  row <- evenly(series$n, SHOWN_ROWS)
  list(row = row, rows = series$encoded$rows[, row, drop = FALSE],
       offset = series$encoded$offset[row])
}

#' The response at some rows, with mean and band of its expectation; or NULL for a model without
#' @noRd
response_band <- function(series, drawn, parameters, level) {
  model <- series$model
  encoded <- series$encoded
  mixture <- !is.null(model$components)
  fits <- !is.null(part_of(model, "fitted")) && part_of(model, "one_number") &&
    !is.null(parameters$theta)
  if (!mixture && !fits) return(NULL)
  shown <- shown_rows(series)
  rows <- shown$row
  part <- function(use)
    list(rows = shown$rows[, use, drop = FALSE], n = sum(use), offset = shown$offset[use])
  fitted <- vapply(seq_len(min(SHOWN_DRAWS, nrow(drawn))), function(i) {
    segment <- findInterval(rows - 1, drawn[i, ], rightmost.closed = TRUE)
    value <- numeric(length(rows))
    for (s in unique(segment)) {
      own <- function(x) matrix(x[i, , s], 1, dimnames = list(NULL, dimnames(x)[[2]]))
      user <- own(parameters$user)
      value[segment == s] <- if (mixture) user[1] else {
        fit <- list(model = model, parameters = own(parameters$theta), draws = user,
                    log_weights = 0, args = encoded$args, design = encoded$design)
        part_of(model, "fitted")(fit, part(segment == s))
      }
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

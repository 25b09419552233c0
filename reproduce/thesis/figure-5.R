# Chapter 5 of the thesis repeats the figures of both papers. Each item points at the measurement of
# its paper; the numbers quoted are those of the thesis.

again <- function(id, same_as, title, reported)
  item("thesis", id, title, reported = reported, same_as = same_as)

again("figure-5.1", "article/figure-1", "rows of a stream with 3, then 5, then 7 clusters",
      "histograms of 1,000, 9,000, 90,000 and all rows; clusters overlap")

# the sequential estimator
again("figure-5.2", "conference/figure-1", "sequential estimates of a linear regression",
      "error of 1e-4 N (0.01%) at a million rows; 3 times as fast as nested sampling")
again("figure-5.3", "conference/figure-2", "sequential estimates of a softmax regression",
      "3e-4 N (0.7%) from nested sampling at a million rows; almost 17 times as fast; the hybrid
       matches nested sampling for all sizes")
again("figure-5.4", "conference/figure-3", "sequential estimates of a mixture",
      "2e-3 N (0.06%) from nested sampling at a million rows; 11 times as fast; the hybrid matches
       nested sampling for all sizes")

# SGAIS
again("figure-5.5", "article/figure-2", "SGAIS on a linear regression",
      "error of 0.1% at a million rows; 3.3 times as fast as nested sampling, 24.9 times as AIS")
again("figure-5.6", "article/figure-3", "SGAIS on a softmax regression",
      "0.6% from nested sampling at a million rows, 10.4 times as fast")
again("figure-5.7", "article/figure-4", "SGAIS on a mixture",
      "0.1% from nested sampling at a million rows, 4.9 times as fast")
again("figure-5.8", "article/figure-5", "shifts of the distribution",
      "cusps and spikes of the annealing steps at 1,000 and 10,000 rows; steps remain high; shuffled
       rows give the same evidence; 5 and 7 components are close")

# sensitivity
# The thesis draws error, run time and annealing steps of each setting together; the article's
# measurement has them all.
study_of <- function(table, study) {
  own <- table[table$study == study, ]
  own$error <- abs(own$error) / own$n
  aggregate(own[c("error", "seconds", "steps")], own[c("value", "n")], mean)
}

draw_study <- function(study) function(table) {
  own <- study_of(table, study)
  values <- sort(unique(own$value))
  colours <- hcl.colors(length(values) + 1, "Viridis")[seq_along(values)]
  labels <- c(error = "error, nats per row", seconds = "CPU seconds",
              steps = "annealing steps of a chunk")
  par(mfrow = c(1, 3), mar = c(4, 4.6, 2, 0.5))
  for (what in names(labels)) {
    plot(own$n, pmax(own[[what]], 1e-6), type = "n", log = "xy", xlab = "rows", ylab = "",
         xaxt = "n")
    axis(1, 10^(3:6), format(10^(3:6), big.mark = ",", scientific = FALSE, trim = TRUE))
    title(ylab = labels[[what]], line = 3.4)
    for (i in seq_along(values)) {
      line <- own[own$value == values[i], ]
      lines(line$n, pmax(line[[what]], 1e-6), type = "o", col = colours[i], pch = 14 + i, lwd = 1.6)
    }
    if (what == "error") legend("topright", legend = values, col = colours, lwd = 1.6, bty = "n",
                                pch = 14 + seq_along(values))
  }
}

# Does a measure at the largest size rise (1) or fall (-1) with the setting, or change at most
# twofold (0)? The costs of mini-batches are those of a step, annealing steps those of all chunks.
changes <- function(table, study, what) {
  last <- table[table$study == study & table$n > max(table$n) / 2, ]
  moves <- if (study == "steps") last$value else 20
  y <- switch(what, error = abs(last$error) / last$n, seconds = last$seconds,
              `seconds of a step` = last$seconds / last$moves,
              `annealing steps` = last$moves / last$chunks / moves)
  means <- tapply(y, last$value, mean)
  rank <- suppressWarnings(cor(as.numeric(names(means)), means, method = "spearman"))
  list(means = means, sign = if (max(means) <= 2 * min(means) && what == "annealing steps" &&
                                   study == "particles") 0 else if (abs(rank) < 0.6) NA else
    sign(rank))
}
judge_study <- function(study, expected) function(table) {
  found <- lapply(names(expected), function(what) changes(table, study, what))
  ok <- vapply(found, function(x) !is.na(x$sign), NA) &
    vapply(seq_along(found), function(i) identical(found[[i]]$sign, expected[[i]]), NA)
  values <- vapply(found, function(x) paste(signif(x$means, 2), collapse = ", "), "")
  list(verdict = if (all(ok)) "reproduced" else "not reproduced",
       obtained = sprintf("for %s: %s", paste(names(found[[1]]$means), collapse = ", "),
                          paste(names(expected), values, collapse = "; ")),
       why = if (all(ok)) "at the largest number of rows" else
         sprintf("not as reported at the largest number of rows: %s. There the noise of gradients,
                  which more moves do not reduce, is the larger part of the error",
                 paste(names(expected)[!ok], collapse = ", ")))
}
study_item <- function(id, study, title, reported, expected) item(
  "thesis", id, title, reported = reported, same_as = "article/figure-6",
  draw = draw_study(study), judge = judge_study(study, expected), size = c(9, 3.2),
  alt = paste0("Three panels against the number of rows, a line for each ", title,
               ": error per row, run time, and annealing steps of a chunk.")
)

study_item("figure-5.9", "particles", "number of particles",
           "more particles: more accurate, slower, about as many annealing steps",
           list(error = -1, seconds = 1, `annealing steps` = 0))
study_item("figure-5.10", "steps", "number of burn-in steps",
           "fewer steps: less accurate, faster, more annealing steps",
           list(error = -1, seconds = 1, `annealing steps` = -1))
study_item("figure-5.11", "batch", "size of mini-batches",
           "larger mini-batches: more accurate, more work per step, more annealing steps per chunk",
           list(error = -1, `seconds of a step` = 1, `annealing steps` = 1))

again("figure-5.12", "article/figure-6", "target effective sample size",
      "a higher target gives more annealing steps; any target above 1 is accurate; even a small one
       matches AIS on average")
again("figure-5.13", "article/figure-7", "learning rate",
      "smaller rates are less accurate and slower, with more annealing steps")
again("figure-5.14", "article/figure-8", "learning rate times steps constant",
      "rate 1.0 is of acceptable accuracy at a million rows and 83 times as fast as nested sampling;
       smaller rates are more accurate")

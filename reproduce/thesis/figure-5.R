# Chapter 5 of the thesis repeats the figures of both papers. Each item points at the measurement of
# its paper; the numbers quoted are those of the thesis, and so is the judge where the thesis makes
# claims together that its paper makes apart.

source("reproduce/pictures.R", local = TRUE)
source("reproduce/sensitivity-claims.R", local = TRUE)

again <- function(id, same_as, title, reported, ...)
  item("thesis", id, title, reported = reported, same_as = same_as, ...)

# Where the thesis says in one place what a paper says in several, all judges of these must agree.
# Each is a key of an item, or a function of the table.
all_judges <- function(...) {
  parts <- list(...)
  function(table) {
    said <- lapply(parts, function(part) if (is.function(part)) part(table) else
      items[[part]]$judge(table))
    verdicts <- vapply(said, `[[`, "", "verdict")
    list(verdict = if ("not reproduced" %in% verdicts) "not reproduced" else verdicts[1],
         obtained = paste(vapply(said, `[[`, "", "obtained"), collapse = ". "),
         why = paste(vapply(said, `[[`, "", "why"), collapse = ". "))
  }
}
of_model <- function(model, key) function(table)
  items[[key]]$judge(table[table$model == model, ])

again("figure-5.1", "article/figure-1", "rows of a stream with 3, then 5, then 7 clusters",
      "histograms of 1,000, 9,000, 90,000 and all rows; clusters overlap")

# the sequential estimator
THOUSAND_ROWS <- "1,000 rows, where the error per row is larger than at 10^6 by far"
again("figure-5.2", "conference/figure-1", "sequential estimates of a linear regression",
      "error of 1e-4 N (0.01%) at a million rows; 3 times as fast as nested sampling")
again("figure-5.3", "conference/figure-2", "sequential estimates of a softmax regression",
      "3e-4 N (0.7%) from nested sampling at a million rows; almost 17 times as fast; the hybrid
       matches nested sampling for all sizes",
      judge = all_judges("conference/figure-2", of_model("softmax", "conference/claim-hybrid")),
      small = THOUSAND_ROWS)
again("figure-5.4", "conference/figure-3", "sequential estimates of a mixture",
      "2e-3 N (0.06%) from nested sampling at a million rows; 11 times as fast; the hybrid matches
       nested sampling for all sizes",
      judge = all_judges("conference/figure-3", of_model("mixture", "conference/claim-hybrid")),
      small = THOUSAND_ROWS)

# SGAIS
again("figure-5.5", "article/figure-2", "SGAIS on a linear regression",
      "error of 0.1% at a million rows; 3.3 times as fast as nested sampling, 24.9 times as AIS")
again("figure-5.6", "article/figure-3", "SGAIS on a softmax regression",
      "0.6% from nested sampling at a million rows, 10.4 times as fast")
again("figure-5.7", "article/figure-4", "SGAIS on a mixture",
      "0.1% from nested sampling at a million rows, 4.9 times as fast")
again("figure-5.8", "article/figure-5", "shifts of the distribution",
      "cusps and spikes of the annealing steps at 1,000 and 10,000 rows; steps remain high; shuffled
       rows give the same evidence; 5 and 7 components are close",
      judge = all_judges("article/figure-5", "article/claim-steps-after-shift",
                         "article/claim-order"),
      small = "12,000 rows of two streams (see the article's claim-order)")

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

study_item <- function(id, study, title, reported, judge, ...) item(
  "thesis", id, title, reported = reported, same_as = "article/figure-6",
  draw = draw_study(study), judge = judge, size = c(9, 3.2),
  alt = paste0("Three panels against the number of rows, a line for each ", title,
               ": error per row, run time, and annealing steps of a chunk."), ...
)
noise <- function(study) function(table) if (!test_of(table, study, "error", -1)$ok)
  because_of_noise(table, study, -1)

study_item("figure-5.9", "particles", "number of particles",
           "more particles: more accurate, slower, about as many annealing steps",
           judge_claims(claims(list("particles", "error", -1, "more accurate"),
                               list("particles", "computed", 1, "slower"),
                               list("particles", "seconds", 1, "slower, CPU"),
                               list("particles", "steps", 0, "annealing steps")),
                        noise("particles")), small = FEW_ROWS)
study_item("figure-5.10", "steps", "number of burn-in steps",
           "fewer steps: less accurate, faster, more annealing steps",
           judge_claims(claims(list("steps", "error", -1, "less accurate"),
                               list("steps", "computed", 1, "faster"),
                               list("steps", "seconds", 1, "faster, CPU"),
                               list("steps", "steps", -1, "more annealing steps")),
                        noise("steps")), small = FEW_ROWS)
study_item("figure-5.11", "batch", "size of mini-batches",
           "larger mini-batches: more accurate, more work per step, more annealing steps per chunk",
           judge_claims(claims(list("batch", "error", -1, "more accurate"),
                               list("batch", "step_cost", 1, "more work per step"),
                               list("batch", "step_seconds", 1, "more work per step, CPU"),
                               list("batch", "steps", 1, "more annealing steps"))),
           small = FEW_ROWS)

again("figure-5.12", "article/figure-6", "target effective sample size",
      "a higher target gives more annealing steps; any target above 1 is accurate; even a small one
       matches AIS on average")
again("figure-5.13", "article/figure-7", "learning rate",
      "smaller rates are less accurate and slower, with more annealing steps")
# The thesis says of a rate of 1 in the same breath that it is accurate enough and 83 times as fast.
again("figure-5.14", "article/figure-8", "learning rate times steps constant",
      "rate 1.0 is of acceptable accuracy at a million rows and 83 times as fast as nested sampling;
       smaller rates are more accurate", judge = judge_product_and_rate_one,
      small = "1,000 rows, where nested sampling takes as long as starting a fit")

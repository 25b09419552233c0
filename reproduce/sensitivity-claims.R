# Judges of claims about settings of the published algorithm: article/sensitivity.R has the
# measurement, chapter 5 of the thesis makes the same claims in other groups. Sourced by items that
# have sourced pictures.R.

GRID <- c(500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6)

# What a small form of few rows cannot show.
FEW_ROWS <- "1,000 rows, where gradient noise, which grows with the rows, is a small part of the
             error"

# A measure of each value (rows) and data set (columns) of a study: after the largest number of
# rows, or after `n`.
measures <- function(table, study, what, n = NULL) {
  own <- table[table$study == study, ]
  own <- if (is.null(n)) own[own$n > max(table$n) / 2, ] else own[own$n == n, ]
  moves <- if (study == "steps") own$value else if (grepl("product", study)) 2 / own$value else 20
  y <- switch(what, error = abs(own$error) / own$n, seconds = own$seconds, computed = own$computed,
              step_cost = own$computed / own$moves, step_seconds = own$seconds / own$moves,
              steps = if (is.null(n)) own$all_steps / own$chunks else own$steps)
  stopifnot(nrow(own) > 0, length(moves) > 0)
  tapply(y, list(own$value, own$dataset), mean)
}

means_of <- function(...) rowMeans(measures(...))

# Does a measure rise (sign 1) or fall (-1) with the setting? Slopes of its logarithm, one for each
# data set, must have a mean of that sign that chance does not explain (t test, one-sided
# p < 0.025), and the fitted change from the smallest value to the largest must be a fifth at least.
# Sign 0: it changes at most twofold in every data set.
test_of <- function(table, study, what, sign, n = NULL) {
  y <- pmax(measures(table, study, what, n), 1e-9)
  x <- log(as.numeric(rownames(y)))
  slope <- apply(log(y), 2, function(column) coef(lm(column ~ x))[[2]])
  fold <- apply(y, 2, function(column) max(column) / min(column))
  if (sign == 0) return(list(ok = all(fold <= 2), t = NA, fold = max(fold)))
  # measures that are counts may have the same slope in all data sets
  t <- sign * mean(slope) / max(sd(slope) / sqrt(length(slope)), 1e-9)
  change <- exp(sign * mean(slope) * diff(range(x)))
  list(ok = t > stats::qt(0.975, length(slope) - 1) && change >= 1.2, t = t, fold = change)
}

claims <- function(...) lapply(list(...), setNames, c("study", "what", "sign", "text"))

# The largest size up to which a measure has the trend of a claim at each size of the grid.
until <- function(table, study, sign, what = "error") {
  sizes <- sort(unique(table$n[table$study == study & table$n %in% GRID]))
  ok <- vapply(sizes, function(n) test_of(table, study, what, sign, n)$ok, NA)
  held <- sizes[cumsum(!ok) == 0]
  if (length(held)) paste("it holds up to", big(max(held)), "rows") else
    paste("it holds at", if (any(ok)) paste(big(sizes[ok]), collapse = " and ") else "no", "rows")
}

# Why a run time or annealing steps do not follow a claim: mini-batches of their own spread
# particles by noise, so that chunks need more steps. Tested with one mini-batch for all particles.
because_of_own_batches <- function(table, study) {
  shared <- paste0(study, ", shared")
  if (!shared %in% table$study) return("")
  paste0("noise of mini-batches of their own spreads particles, so that chunks need more steps; with
         one mini-batch for all particles: ", told(table, shared, "computed"), "; ",
         told(table, shared, "steps"))
}

WORDS <- c(error = "error per row", seconds = "seconds", computed = "millions of densities",
           step_cost = "densities of a step", step_seconds = "microseconds of a step",
           steps = "annealing steps of a chunk")
UNITS <- c(computed = 1e-6, step_seconds = 1e6)

told <- function(table, study, what) {
  unit <- if (what %in% names(UNITS)) UNITS[[what]] else 1
  paste0(WORDS[[what]], ": ", listed(unit * means_of(table, study, what)))
}

# Of claims that fail, `why` says more.
judge_claims <- function(all, why = NULL) function(table) {
  found <- lapply(all, function(claim) test_of(table, claim$study, claim$what, claim$sign))
  ok <- vapply(found, `[[`, NA, "ok")
  each <- vapply(seq_along(all), function(i) paste0(
    all[[i]]$text, if (all[[i]]$sign == 0) sprintf(" (at most %.2g-fold)", found[[i]]$fold) else
      sprintf(" (%.2g-fold, t %.1f)", found[[i]]$fold, found[[i]]$t)), "")
  pairs <- unique(lapply(all, `[`, c("study", "what")))
  more <- if (!is.null(why)) why(table)
  list(verdict = if (all(ok)) "reproduced" else "not reproduced",
       obtained = paste0(sum(ok), " of ", length(ok), " claims hold on ",
                         length(unique(table$dataset)), " data sets at ", big(max(table$n)),
                         " rows", if (any(ok)) ": ", paste(each[ok], collapse = ", "),
                         if (any(!ok)) paste0("; not: ", paste(each[!ok], collapse = ", "))),
       why = paste(c(if (length(more) && nzchar(more)) more, vapply(pairs, function(pair) paste0(
         if (length(unique(vapply(pairs, `[[`, "", "study"))) > 1) paste0(pair$study, ", "),
         told(table, pair$study, pair$what)), "")), collapse = "; "))
}

# Why an error does not fall: gradient noise is most of it. Tested with what reduces the noise and
# nothing else: the error of larger mini-batches, and of a smaller rate with as much more steps.
because_of_noise <- function(table, study, sign) {
  at <- function(study, pick) {
    error <- means_of(table, study, "error")
    error[[pick(as.numeric(names(error)))]]
  }
  base <- means_of(table, "batch", "error")[["500"]]
  sprintf("%s: %s, then gradient noise, %s, is the larger error: mini-batches of 2,000 leave %.0f%%
           of the error, a rate of 0.04 with 50 steps %.0f%%",
          c(steps = "more SGHMC steps", particles = "more particles",
            rate = "less accurate")[[study]], until(table, study, sign),
          if (study == "rate") "which grows with the rate" else "which the setting does not reduce",
          100 * at("batch", which.max) / base,
          100 * at("product", which.min) / base)
}

# Targets of 10 particles. A target of 1 never anneals.
judge_ess <- function(table) {
  error <- means_of(table, "ess", "error")
  seconds <- means_of(table, "ess", "seconds")
  computed <- means_of(table, "ess", "computed")
  early <- measures(table, "ess", "error", 1000)
  few <- table$few[1]
  # a small target against AIS and against nested sampling, on all data sets
  small <- colMeans(abs(measures(table, "ess", "error", few)[c("2", "5"), , drop = FALSE]))
  once <- table[!duplicated(table$dataset), ]
  others <- abs(once$ais_few[match(names(small), once$dataset)])
  steps <- test_of(table, "ess", "steps", 1)
  ratio <- computed / computed[["1"]]
  ok <- c(`more annealing steps` = steps$ok,
          `small impact on the run time (below twofold)` = all(ratio < 2),
          `accurate above 1` = all(error[-1] < 0.1),
          `poor early without annealing` =
            all(early["1", ] > 1.5 * early["5", ]),
          `a small target matches AIS on average` = mean(small) <= mean(others))
  list(verdict = if (all(ok)) "reproduced" else "not reproduced",
       obtained = paste0(sum(ok), " of ", length(ok), " claims hold on ", ncol(early), " data sets",
                         if (!all(ok)) paste0("; not: ", paste(names(ok)[!ok], collapse = ", ")),
                         "; densities and gradients, times those of target 1: ", listed(ratio),
                         "; seconds: ", listed(seconds / seconds[["1"]])),
       why = paste0("a target of 5 of 10 particles costs ", short(ratio[["5"]]), " times as much as
                    none, targets nearer to the number of particles more, because later chunks need
                    more steps, too (annealing steps of a chunk: ",
                    listed(means_of(table, "ess", "steps")), "); error per row at ",
                    big(max(table$n)), " rows: ", listed(error), "; at 1,000 rows ",
                    listed(rowMeans(early)), "; at ", big(few), " rows targets of 2 and 5 ",
                    short(mean(small)), ", AIS ", short(mean(others)),
                    ", nested sampling (the largest of three runs) ",
                    short(mean(abs(once$nested_few))), if (!all(ratio < 2)) paste0(
                      "; ", because_of_own_batches(table, "ess"))))
}

RATE <- claims(list("rate", "error", -1, "smaller rates are less accurate"),
               list("rate", "computed", -1, "take longer"),
               list("rate", "seconds", -1, "take longer, CPU"),
               list("rate", "steps", -1, "need more annealing steps"))
judge_rate <- judge_claims(RATE, function(table) paste(c(
  if (!test_of(table, "rate", "error", -1)$ok) because_of_noise(table, "rate", -1),
  if (!test_of(table, "rate", "steps", -1)$ok) paste0(
    "annealing steps: ", until(table, "rate", -1, "steps"), "; ",
    because_of_own_batches(table, "rate"))), collapse = "; "))

PRODUCT <- claims(list("product", "error", 1, "larger rates are less accurate"),
                  list("product", "computed", -1, "faster"),
                  list("product", "seconds", -1, "faster, CPU"),
                  list("product", "steps", 1, "need more annealing steps"))
judge_product <- judge_claims(PRODUCT, function(table)
  if (!test_of(table, "product", "computed", -1)$ok) paste0(
    "faster: ", until(table, "product", -1, "computed"), "; ",
    because_of_own_batches(table, "product")))

# The article's claims about rate 1, and those of the figure.
judge_product_and_rate_one <- function(table) {
  found <- judge_product(table)
  one <- rate_one(table)
  if (!one$ok) found$verdict <- "not reproduced"
  found$obtained <- paste0(found$obtained, "; rate 1: ", one$text)
  found$why <- paste0(found$why, "; see claim-rate-one")
  found
}

# Is a rate of 1 with 2 steps below 0.1 nats per row, and 83 times as fast as nested sampling within
# a factor of two, on most data sets?
rate_one <- function(table) {
  error <- measures(table, "product", "error")["1", ]
  seconds <- measures(table, "product", "seconds")["1", ]
  computed <- measures(table, "product", "computed")["1", ]
  once <- table[match(names(error), table$dataset), ]
  times <- once$nested_seconds / seconds
  fewer <- once$nested_computed / computed
  ok <- error < 0.1 & times >= 83 / 2 & fewer > 1
  list(ok = mean(ok) > 0.5,
       text = paste0("below 0.1 nats per row and 83 times faster than nested sampling, within a
                     factor of two, on ", sum(ok), " of ", length(ok), " data sets (",
                     in_turn(error, 2), " nats per row; ", in_turn(times), " times faster, ",
                     in_turn(fewer), " times fewer densities and gradients)"))
}

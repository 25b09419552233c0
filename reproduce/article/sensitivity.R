# Figures 6, 7, 8 and A2, A3, A4 of the article: what the published algorithm's error, run time and
# annealing steps depend on. One setting at a time is varied, on a mixture of five components.

source("reproduce/three-models.R", local = TRUE)
source("reproduce/pictures.R", local = TRUE)

GRID <- c(500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6)

published <- function(...) sgais(preset = "paper", ...)

# Values, the default, and the method of a value.
STUDIES <- list(
  particles = list(c(5, 10, 20, 50), 10, function(x) published(particles = x, ess = x / 2)),
  ess = list(c(1, 2, 5, 7, 9), 5, function(x) published(ess = max(x, 1 + 1e-9))),
  steps = list(c(5, 10, 20, 50), 20, function(x) published(steps = x)),
  rate = list(c(0.01, 0.03, 0.1, 0.3), 0.1, function(x) published(rate = x)),
  product = list(c(0.04, 0.1, 0.4, 1), 0.1, function(x) published(rate = x, steps = 2 / x)),
  batch = list(c(100, 250, 500, 1000, 2000), 500, function(x) published(batch = x, chunk = x))
)
NAMES <- c(particles = "particles (ESS: half)", ess = "target ESS of 10 particles",
           steps = "SGHMC steps", rate = "rate", product = "rate, rate x steps = 2",
           batch = "mini-batch and chunk")

# The nearest chunk ends to the grid; annealing steps are means of the chunks since the last.
one_run <- function(study, value, problem, truth, seed, grid) {
  fit <- timed_fit(problem, STUDIES[[study]][[3]](value), seed)
  trace <- fit$trace
  at <- unique(vapply(grid, function(n) which.min(abs(trace$n - n)), 0L))
  part <- findInterval(seq_len(nrow(trace)), at + 1) + 1
  steps <- tapply(trace$lambda_steps, part, mean)[as.character(seq_along(at))]
  data.frame(study = study, value = value, seed = seed, n = trace$n[at],
             error = signif(trace$log_evidence[at] - truth(trace$n[at]), 5),
             seconds = signif(trace$cpu[at], 4), steps = round(as.vector(steps), 2),
             chunks = nrow(trace), moves = signif(sum(trace$lambda_steps * trace$moves), 6))
}

# The truth of the first n rows, for n that were asked for.
truths <- function(problem) {
  known <- new.env()
  function(sizes) vapply(sizes, function(n) {
    key <- as.character(n)
    if (is.null(known[[key]])) known[[key]] <- truth_of(first_rows(problem, n), 200)
    known[[key]]
  }, 0)
}

run <- function(full) {
  grid <- if (full) GRID else c(500, 1000)
  problem <- rows_of_model("mixture", max(grid), seed = 5)
  truth <- truths(problem)
  few <- first_rows(problem, if (full) 1e4 else 500)
  discrepancy <- abs(timed_fit(few, nested(preset = "paper"))$log_evidence -
                     timed_fit(few, ais(preset = "paper"))$log_evidence) / NROW(few$data)
  rows <- do.call(rbind, lapply(seq_len(if (full) 2 else 1), function(seed) {
    base <- NULL # the same in all studies
    do.call(rbind, lapply(names(STUDIES), function(study) {
      default <- STUDIES[[study]][[2]]
      do.call(rbind, lapply(STUDIES[[study]][[1]], function(value) {
        if (value != default || is.null(base)) {
          found <- one_run(study, value, problem, truth, seed, grid)
          if (value == default) base <<- found
          return(found)
        }
        base[c("study", "value")] <- list(study, value)
        base
      }))
    }))
  }))
  transform(rows, discrepancy = signif(discrepancy, 3))
}

mean_of <- function(table, what) {
  aggregate(table[what], table[c("study", "value", "n")], mean)
}

panel <- function(table, study, what, legend = TRUE) {
  own <- mean_of(table[table$study == study, ], what)
  values <- sort(unique(own$value))
  colour <- setNames(hcl.colors(length(values) + 1, "Viridis")[seq_along(values)], values)
  y <- if (what == "error") pmax(abs(own$error) / own$n, 1e-6) else own[[what]]
  ylab <- c(error = "|error| / rows, nats", seconds = "CPU seconds",
            steps = "annealing steps of a chunk")[[what]]
  frame_of(own$n, y, "xy", ylab = ylab, main = NAMES[[study]])
  for (value in values) {
    line <- own$value == value
    lines(own$n[line], y[line], col = colour[[as.character(value)]], type = "o",
          pch = 14 + match(value, values), cex = 0.8, lwd = if (value == STUDIES[[study]][[2]]) 3
          else 1.5)
  }
  if (legend) legend(if (what == "seconds") "topleft" else "topright", legend = values, bty = "n",
                     cex = 0.8, lwd = 2, col = colour, pch = 14 + seq_along(values))
}

three_panels <- function(table, study) {
  panels(1, 3)
  for (what in c("error", "seconds", "steps")) panel(table, study, what)
}

six_panels <- function(table, what) {
  panels(2, 3)
  for (study in names(STUDIES)) panel(table, study, what)
}

# What a study's values do to the largest size: rank correlations over the values.
trend <- function(table, study, what) {
  own <- table[table$study == study & table$n > max(table$n) / 2, ]
  y <- switch(what, error = abs(own$error), seconds = own$seconds, step_cost =
                own$seconds / own$moves, steps = NA)
  if (what == "steps") { # over all chunks
    own <- table[table$study == study, ]
    first <- !duplicated(own[c("value", "seed")])
    own <- own[first, ]
    y <- own$moves / own$chunks / switch(study, steps = own$value, product = 2 / own$value, 20)
  }
  means <- tapply(y, own$value, mean)
  list(rank = suppressWarnings(cor(as.numeric(names(means)), means, method = "spearman")),
       means = means)
}

# The largest size up to which the error has the trend of a claim at each size.
until <- function(table, study, sign) {
  sizes <- sort(unique(table$n[table$study == study & table$n %in% GRID]))
  ok <- vapply(sizes, function(n) {
    own <- table[table$study == study & table$n == n, ]
    means <- tapply(abs(own$error), own$value, mean)
    rank <- suppressWarnings(cor(as.numeric(names(means)), means, method = "spearman"))
    isTRUE(sign * rank >= 0.6)
  }, NA)
  held <- sizes[cumsum(!ok) == 0]
  if (length(held)) paste("it holds up to", big(max(held)), "rows") else "it holds at no size"
}

# A claim: `sign` of the trend, 0 for "little effect" (at most twofold).
holds <- function(table, claim) {
  found <- trend(table, claim$study, claim$what)
  if (claim$sign == 0) return(max(found$means) / min(found$means) <= 2)
  isTRUE(sign(found$rank) == claim$sign && abs(found$rank) >= 0.6)
}

claims <- function(...) lapply(list(...), setNames, c("study", "what", "sign", "text"))

judged <- function(table, all, why) {
  ok <- vapply(all, holds, NA, table = table)
  text <- vapply(all, `[[`, "", "text")
  list(verdict = if (all(ok)) "reproduced" else "not reproduced",
       obtained = paste0(sum(ok), " of ", length(ok), " claims hold",
                         if (any(!ok)) paste0("; not: ", paste(text[!ok], collapse = ", "))),
       why = why)
}

per_row <- function(table, study) {
  last <- table[table$study == study & table$n > max(table$n) / 2, ]
  tapply(abs(last$error) / last$n, last$value, mean)
}

SETTINGS <- "one mixture data set, up to 10^6 rows, 2 seeds; truth: laplace(importance = 200)"

item(
  "article", "figure-6", "what the target ESS changes",
  reported = "a higher target needs more annealing steps, has little effect on the run time and is
              accurate if above 1; without annealing the first chunks are poor",
  settings = SETTINGS, run = run,
  draw = function(table) three_panels(table, "ess"),
  alt = "Three panels against the number of rows for target effective sample sizes 1 to 9: error per
         row, CPU seconds, annealing steps.",
  judge = function(table) {
    error <- per_row(table, "ess")
    means <- trend(table, "ess", "seconds")$means
    early <- table[table$study == "ess" & table$n == 1000, ]
    early <- tapply(abs(early$error), early$value, mean)
    ok <- c(`more annealing steps` = trend(table, "ess", "steps")$rank > 0.6,
            `small impact on the run time from 1 to 5` = means[["5"]] / means[["1"]] < 2,
            `accurate above 1` = all(error[-1] < 0.1),
            `poor early without annealing` = early[["1"]] > 2 * early[["5"]])
    list(verdict = if (all(ok)) "reproduced" else "not reproduced",
         obtained = paste0(sum(ok), " of 4 claims hold", if (!all(ok)) paste0("; not: ",
                           paste(names(ok)[!ok], collapse = ", "))),
         why = paste0("error per row at ", big(max(table$n)), " rows: ", listed(error),
                      " (nested sampling and AIS differ by ", short(table$discrepancy[1]),
                      " at 10,000 rows); seconds: ", listed(means)))
  },
  size = c(9, 3.2)
)

item(
  "article", "figure-7", "what the learning rate changes",
  reported = "smaller rates are less accurate, take longer and need more annealing steps",
  settings = SETTINGS, table_of = "figure-6",
  draw = function(table) three_panels(table, "rate"),
  alt = "Three panels against the number of rows for learning rates 0.01 to 0.3: error per row, CPU
         seconds, annealing steps.",
  judge = function(table) judged(
    table, claims(list("rate", "error", -1, "less accurate"), list("rate", "seconds", -1, "longer"),
                  list("rate", "steps", -1, "more annealing steps")),
    paste0("less accurate: ", until(table, "rate", -1), ", then gradient noise, which grows with the
           rate and the rows, is the larger error; error per row: ",
           listed(per_row(table, "rate")), "; seconds: ",
           listed(trend(table, "rate", "seconds")$means), "; annealing steps of a chunk: ",
           listed(trend(table, "rate", "steps")$means))),
  size = c(9, 3.2)
)

item(
  "article", "figure-8", "what the learning rate changes, rate x steps constant",
  reported = "larger rates are faster, less accurate and need more annealing steps",
  settings = SETTINGS, table_of = "figure-6",
  draw = function(table) three_panels(table, "product"),
  alt = "Three panels against the number of rows for learning rates 0.04 to 1 with steps such that
         their product is constant: error per row, CPU seconds, annealing steps.",
  judge = function(table) judged(
    table, claims(list("product", "error", 1, "less accurate"),
                  list("product", "seconds", -1, "faster"),
                  list("product", "steps", 1, "more annealing steps")),
    paste0("error per row: ", listed(per_row(table, "product")), "; seconds: ",
           listed(trend(table, "product", "seconds")$means), "; annealing steps of a chunk: ",
           listed(trend(table, "product", "steps")$means), "; see claim-rate-one")),
  size = c(9, 3.2)
)

item(
  "article", "figure-a2", "sensitivity of the log evidence, all studies",
  reported = "more particles, more SGHMC steps and larger mini-batches are more accurate",
  settings = SETTINGS, table_of = "figure-6",
  draw = function(table) six_panels(table, "error"),
  alt = "Six panels of the error per row against the number of rows, one for each varied setting.",
  judge = function(table) judged(
    table, claims(list("particles", "error", -1, "more particles"),
                  list("steps", "error", -1, "more SGHMC steps"),
                  list("batch", "error", -1, "larger mini-batches")),
    paste0("more SGHMC steps: ", until(table, "steps", -1), ", then gradient noise is the larger
           error; error per row, particles: ", listed(per_row(table, "particles")), "; steps: ",
           listed(per_row(table, "steps")), "; batch: ", listed(per_row(table, "batch")))),
  size = c(9, 6)
)

item(
  "article", "figure-a3", "sensitivity of the run time, all studies",
  reported = "more particles and more SGHMC steps take longer; larger mini-batches cost more for
              each step",
  settings = SETTINGS, table_of = "figure-6",
  draw = function(table) six_panels(table, "seconds"),
  alt = "Six panels of CPU seconds against the number of rows, one for each varied setting.",
  judge = function(table) judged(
    table, claims(list("particles", "seconds", 1, "more particles"),
                  list("steps", "seconds", 1, "more SGHMC steps"),
                  list("batch", "step_cost", 1, "larger mini-batches")),
    paste0("seconds, particles: ", listed(trend(table, "particles", "seconds")$means), "; steps: ",
           listed(trend(table, "steps", "seconds")$means), "; batch: ",
           listed(trend(table, "batch", "seconds")$means))),
  size = c(9, 6)
)

item(
  "article", "figure-a4", "sensitivity of the annealing steps, all studies",
  reported = "little effect of particles; fewer SGHMC steps and larger mini-batches need more",
  settings = SETTINGS, table_of = "figure-6",
  draw = function(table) six_panels(table, "steps"),
  alt = "Six panels of annealing steps of a chunk against the number of rows, one for each varied
         setting.",
  judge = function(table) judged(
    table, claims(list("particles", "steps", 0, "particles"),
                  list("steps", "steps", -1, "fewer SGHMC steps"),
                  list("batch", "steps", 1, "larger mini-batches")),
    paste0("annealing steps of a chunk, particles: ", listed(trend(table, "particles",
                                                                    "steps")$means), "; steps: ",
           listed(trend(table, "steps", "steps")$means), "; batch: ",
           listed(trend(table, "batch", "steps")$means))),
  size = c(9, 6)
)

# Figures 6, 7, 8 and A2, A3, A4 of the article: what the published algorithm's error, run time and
# annealing steps depend on. One setting at a time is varied, on mixtures of five components.

source("reproduce/three-models.R", local = TRUE)
source("reproduce/pictures.R", local = TRUE)
source("reproduce/sensitivity-claims.R", local = TRUE)

published <- function(...) sgais(preset = "paper", ...)

# Values, the default, and the method of a value.
STUDIES <- list(
  particles = list(c(5, 10, 20, 50), 10, function(x) published(particles = x, ess = x / 2)),
  ess = list(c(1, 2, 5, 7, 9), 5, function(x, ...) published(ess = max(x, 1 + 1e-9), ...)),
  steps = list(c(5, 10, 20, 50), 20, function(x) published(steps = x)),
  rate = list(c(0.01, 0.03, 0.1, 0.3), 0.1, function(x, ...) published(rate = x, ...)),
  product = list(c(0.04, 0.1, 0.4, 1), 0.1,
                 function(x, ...) published(rate = x, steps = 2 / x, ...)),
  batch = list(c(100, 250, 500, 1000, 2000), 500, function(x) published(batch = x, chunk = x))
)
# Three of them also with one mini-batch for all particles, whose noise moves them together: is it
# what keeps a claim from holding? None of these values is the default.
for (name in c("ess", "rate", "product")) local({
  own <- STUDIES[[name]]
  STUDIES[[paste0(name, ", shared")]] <<- list(own[[1]], NA, function(x)
    own[[3]](x, own_batches = FALSE))
})
NAMES <- c(particles = "particles (ESS: half)", ess = "target ESS of 10 particles",
           steps = "SGHMC steps", rate = "rate", product = "rate, rate x steps = 2",
           batch = "mini-batch and chunk")

# The nearest chunk ends to the grid; annealing steps are means of the chunks since the last.
one_run <- function(study, value, problem, truth, grid) {
  fit <- timed_fit(problem, STUDIES[[study]][[3]](value))
  trace <- fit$trace
  at <- unique(vapply(grid, function(n) which.min(abs(trace$n - n)), 0L))
  part <- findInterval(seq_len(nrow(trace)), at + 1) + 1
  steps <- tapply(trace$lambda_steps, part, mean)[as.character(seq_along(at))]
  data.frame(study = study, value = value, n = trace$n[at],
             error = signif(trace$log_evidence[at] - truth(trace$n[at]), 5),
             seconds = signif(trace$cpu[at], 4), computed = signif(trace$evaluations[at], 6),
             steps = round(as.vector(steps), 2), chunks = nrow(trace),
             all_steps = sum(trace$lambda_steps),
             moves = signif(sum(trace$lambda_steps * trace$moves), 6))
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

# Of one data set: all studies, what nested sampling takes for all rows, and how far nested sampling
# (the largest of three runs) and AIS are off at 10,000.
run_dataset <- function(dataset, grid, few, studies = names(STUDIES)) {
  problem <- rows_of_model("mixture", max(grid), seed = dataset)
  truth <- truths(problem)
  part <- first_rows(problem, few)
  at_few <- c(max(nested_runs(part, 3)$log_evidence),
              timed_fit(part, ais(preset = "paper"))$log_evidence) - truth(few)
  nested <- timed_fit(problem, nested(preset = "paper"))
  base <- NULL # the same in all studies
  rows <- do.call(rbind, lapply(studies, function(study) {
    default <- STUDIES[[study]][[2]]
    do.call(rbind, lapply(STUDIES[[study]][[1]], function(value) {
      if (!identical(value, default) || is.null(base)) {
        found <- one_run(study, value, problem, truth, grid)
        if (identical(value, default)) base <<- found
        return(found)
      }
      base[c("study", "value")] <- list(study, value)
      base
    }))
  }))
  data.frame(dataset = dataset, rows, nested_few = signif(at_few[1] / few, 3),
             ais_few = signif(at_few[2] / few, 3), few = few,
             nested_seconds = signif(nested$cpu, 4), nested_computed = signif(nested$computed, 6))
}

run <- function(full) do.call(rbind, lapply(
  if (full) c(5, 1:4) else c(5, 1:3), run_dataset, if (full) GRID else c(500, 1000),
  if (full) 1e4 else 1000, if (full) names(STUDIES) else names(NAMES)))

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
  for (study in names(NAMES)) panel(table, study, what)
}

SETTINGS <- "five mixture data sets, up to 10^6 rows; a claim holds if slopes of logarithms over the
             data sets have its sign (t test, p < 0.025) and the range of the setting changes the
             measure by a fifth at least; truth: laplace(importance = 200)"

item(
  "article", "figure-6", "what the target ESS changes",
  reported = "a higher target needs more annealing steps, has little effect on the run time and is
              accurate if above 1; without annealing the first chunks are poor",
  settings = SETTINGS, run = run,
  draw = function(table) three_panels(table, "ess"),
  alt = "Three panels against the number of rows for target effective sample sizes 1 to 9: error per
         row, CPU seconds, annealing steps.",
  judge = judge_ess, small = "1,000 rows, where no target is accurate", size = c(9, 3.2)
)

item(
  "article", "figure-7", "what the learning rate changes",
  reported = "smaller rates are less accurate, take longer and need more annealing steps",
  settings = SETTINGS, table_of = "figure-6",
  draw = function(table) three_panels(table, "rate"),
  alt = "Three panels against the number of rows for learning rates 0.01 to 0.3: error per row, CPU
         seconds, annealing steps.",
  judge = judge_rate, small = FEW_ROWS, size = c(9, 3.2)
)

item(
  "article", "figure-8", "what the learning rate changes, rate x steps constant",
  reported = "larger rates are faster, less accurate and need more annealing steps",
  settings = SETTINGS, table_of = "figure-6",
  draw = function(table) three_panels(table, "product"),
  alt = "Three panels against the number of rows for learning rates 0.04 to 1 with steps such that
         their product is constant: error per row, CPU seconds, annealing steps.",
  judge = judge_product, small = FEW_ROWS, size = c(9, 3.2)
)

item(
  "article", "figure-a2", "sensitivity of the log evidence, all studies",
  reported = "more particles, more SGHMC steps and larger mini-batches are more accurate",
  settings = SETTINGS, table_of = "figure-6",
  draw = function(table) six_panels(table, "error"),
  alt = "Six panels of the error per row against the number of rows, one for each varied setting.",
  judge = judge_claims(
    claims(list("particles", "error", -1, "more particles"),
           list("steps", "error", -1, "more SGHMC steps"),
           list("batch", "error", -1, "larger mini-batches")),
    function(table) paste(c(
      if (!all(test_of(table, "steps", "error", -1)$ok)) because_of_noise(table, "steps", -1),
      if (!all(test_of(table, "particles", "error", -1)$ok))
        because_of_noise(table, "particles", -1)), collapse = "; ")),
  small = FEW_ROWS, size = c(9, 6)
)

item(
  "article", "figure-a3", "sensitivity of the run time, all studies",
  reported = "more particles and more SGHMC steps take longer; larger mini-batches cost more for
              each step",
  settings = SETTINGS, table_of = "figure-6",
  draw = function(table) six_panels(table, "seconds"),
  alt = "Six panels of CPU seconds against the number of rows, one for each varied setting.",
  judge = judge_claims(
    claims(list("particles", "computed", 1, "more particles"),
           list("particles", "seconds", 1, "more particles, CPU"),
           list("steps", "computed", 1, "more SGHMC steps"),
           list("steps", "seconds", 1, "more SGHMC steps, CPU"),
           list("batch", "step_cost", 1, "larger mini-batches"),
           list("batch", "step_seconds", 1, "larger mini-batches, CPU"))),
  small = "1,000 rows, whose seconds are those of starting a fit", size = c(9, 6)
)

item(
  "article", "figure-a4", "sensitivity of the annealing steps, all studies",
  reported = "little effect of particles; fewer SGHMC steps and larger mini-batches need more",
  settings = SETTINGS, table_of = "figure-6",
  draw = function(table) six_panels(table, "steps"),
  alt = "Six panels of annealing steps of a chunk against the number of rows, one for each varied
         setting.",
  judge = judge_claims(
    claims(list("particles", "steps", 0, "particles"),
           list("steps", "steps", -1, "fewer SGHMC steps"),
           list("batch", "steps", 1, "larger mini-batches"))),
  size = c(9, 6)
)

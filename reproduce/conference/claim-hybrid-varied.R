# What hybrid() would need to be as exact as its first part: settings that the paper leaves open,
# on the first 1,000 rows.

source("reproduce/three-models.R", local = TRUE)
source("reproduce/pictures.R", local = TRUE)

VARIATIONS <- list(
  published = hybrid(),
  "30 particles" = hybrid(particles = 30),
  "100 particles" = hybrid(particles = 100),
  "1,000 particles" = hybrid(particles = 1000),
  "100 steps" = hybrid(steps = 100),
  "rate 0.01, 200 steps" = hybrid(steps = 200, kernel = sghmc(0.01, tempered = FALSE)),
  "1,000 particles, 100 steps" = hybrid(particles = 1000, steps = 100),
  "nested sampling for 500 rows" = hybrid(first = 500),
  "nested sampling, published" = nested(preset = "paper"),
  "sgais() of today" = sgais()
)

item(
  "conference", "claim-hybrid-varied", "the hybrid on 1,000 rows: settings that decide its error",
  reported = "it matches nested sampling closely for all sizes",
  settings = "first 1,000 rows of the three data sets, 3 seeds, published settings apart from what
              is named; truth: closed form or laplace(importance = 400)",
  run = function(full) {
    n <- 1000
    names <- if (full) names(VARIATIONS) else c("published", "100 particles")
    do.call(rbind, lapply(if (full) names(THREE_MODELS) else "linear",
                          function(model) {
      problem <- rows_of_model(model, n, seed = 2)
      truth <- truth_of(problem, 400)
      do.call(rbind, lapply(names, function(name) do.call(rbind, lapply(
        seq_len(if (full) 3 else 1), function(seed) {
          fit <- timed_fit(problem, VARIATIONS[[name]], seed)
          data.frame(model = model, variation = name, seed = seed, n = n,
                     error = round(fit$log_evidence - truth, 3), seconds = signif(fit$cpu, 3))
        }))))
    }))
  },
  draw = function(table) {
    panels(left = 13)
    names <- rev(intersect(names(VARIATIONS), table$variation))
    y <- match(table$variation, names)
    models <- intersect(names(THREE_MODELS), table$model)
    x <- asinh(table$error)
    ticks <- c(-200, -100, -50, -20, -10, -5, -2, -1, 0, 1, 2, 5, 10, 20, 50, 100)
    plot(range(x), range(y), type = "n", xaxt = "n", yaxt = "n", ylab = "",
         xlab = "error of the log evidence, nats")
    axis(1, asinh(ticks), ticks, cex.axis = 0.85)
    axis(2, seq_along(names), names, tick = FALSE, cex.axis = 0.9)
    abline(h = seq_along(names), col = "grey90")
    abline(v = 0, col = "grey50", lty = 2)
    points(x, y + 0.12 * (match(table$model, models) - 2), pch = 14 + match(table$model, models),
           col = PALETTE[match(table$model, models)])
    legend("topright", models, pch = 14 + seq_along(models), col = PALETTE[seq_along(models)],
           bg = "white", cex = 0.85)
  },
  alt = "Errors of the log evidence at 1,000 rows of three models, for each variation of the
            hybrid.",
  judge = function(table) {
    means_of <- function(error) tapply(error, table[c("variation", "model")], mean)
    errors <- means_of(table$error)
    worst <- sort(apply(means_of(abs(table$error)), 1, max))
    ours <- worst[!names(worst) %in% c("nested sampling, published", "sgais() of today")]
    list(verdict = if (ours[["published"]] < 1) "reproduced" else "not reproduced",
         obtained = paste0("mean absolute error of the worst model, nats: ", listed(ours)),
         why = paste0("as published: ", paste(colnames(errors), short(errors["published", ]),
                                                 collapse = ", "), " nats",
                      if ("nested sampling, published" %in% names(worst))
                        paste0("; nested sampling as published is itself off by ",
                               paste(colnames(errors),
                                     short(errors["nested sampling, published", ]),
                                     collapse = ", ")),
                      if ("sgais() of today" %in% names(worst))
                        paste0("; today's sgais() by at most ",
                               short(worst[["sgais() of today"]]))))
  },
  size = c(8, 4)
)

# What the estimate of sgais() depends on: the six sensitivity studies of the SGAIS paper (its
# figures 6 to 8 and A2 to A4), for the published settings and for the package's own.
#
#   Rscript bench/sensitivity.R run   [data sets = 3] [directory = bench/results]
#   Rscript bench/sensitivity.R draw  [directory]
#
# The mixture of five components in two dimensions, on 16,000 rows drawn from a fixed one. One
# setting at a time is varied, the others stay at their defaults, of which the published ones are
# those of the paper. Where the paper's figures show the log evidence, these show its error: the
# truth of the first n rows is laplace() with 1,000 draws, known to 0.04 nats. Rows come in the
# given order, for both, so that the truth of the first n is that of the same rows for all. The
# early phase of the package's own form ends at 200 rows, is exact and the same for all: what is
# varied here comes after it.
#
# Writes sensitivity.csv, a row for each chunk, and sensitivity-paper.png and
# sensitivity-default.png.

suppressPackageStartupMessages(library(logevidence))

ROWS <- 16000
MODEL <- gaussian_mixture(components = 5, location = 0, rate = 1)
# where the error is told, or at the chunk's end next to it
GRID <- c(500, 1000, 2000, 4000, 8000, 16000)

draw_data <- function(seed) {
  set.seed(seed)
  of <- sample(5, ROWS, TRUE, c(0.15, 0.2, 0.25, 0.25, 0.15))
  mean <- cbind(c(-3, -1.5, 0, 2, 3), c(2, -2, 1, -1, 3))
  sd <- cbind(c(0.7, 0.5, 0.6, 0.9, 0.5), c(0.5, 0.8, 0.6, 0.5, 0.9))
  mean[of, ] + sd[of, ] * matrix(rnorm(2 * ROWS), ROWS)
}

published <- function(...) sgais(preset = "paper", ...)
own <- function(...) sgais(..., order = "given", audit = FALSE,
                           early = list(rows = 200, particles = 100, ess = 0.9, steps = 4,
                                        work = 375))

# A study: what is varied, its values (the default among them, marked by its place), and the method
# for each.
STUDIES <- list(
  paper = list(
    list("particles", c(5, 10, 20, 50), 2, function(x) published(particles = x, ess = x / 2)),
    list("steps", c(5, 10, 20, 50), 3, function(x) published(steps = x)),
    list("batch and chunk", c(100, 250, 500, 1000, 2000), 3,
         function(x) published(batch = x, chunk = x)),
    list("target ESS of 10", c(1, 2, 5, 7, 9), 3, function(x)
           published(ess = if (x > 1) x else 1 + 1e-9)),
    list("rate", c(0.01, 0.03, 0.1, 0.3, 1), 3, function(x) published(rate = x)),
    list("rate, rate x steps = 2", c(0.02, 0.05, 0.1, 0.4, 1), 3,
         function(x) published(rate = x, steps = 2 / x))
  ),
  default = list(
    list("particles", c(20, 50, 100, 300), 3, function(x) own(particles = x)),
    list("steps", c(1, 2, 5, 15), 3, function(x) own(steps = x)),
    list("batch", c(10, 30, 100, 500), 3, function(x) own(batch = x)),
    list("target ESS of 100", c(10, 25, 50, 90), 3, function(x) own(ess = x)),
    list("step size h", c(0.1, 0.3, 0.7, 1.2, 1.7), 3, function(x) own(kernel = baoab(x))),
    list("h, h x steps = 3.5", c(0.1, 0.35, 0.7, 1.17, 1.75), 3,
         function(x) own(kernel = baoab(x), steps = round(3.5 / x)))
  )
)

truths <- function(data) {
  known <- list()
  function(n) {
    key <- as.character(n)
    if (is.null(known[[key]]))
      known[[key]] <<- evidence(MODEL, data[seq_len(n), ], laplace(importance = 1000), seed = 1,
                                progress = FALSE)$log_evidence
    known[[key]]
  }
}

one_run <- function(method, data, truth, seed) {
  before <- proc.time()
  fit <- evidence(MODEL, data, method, seed = seed, progress = FALSE)
  cpu <- sum((proc.time() - before)[1:2])
  trace <- fit$trace
  told <- unique(vapply(GRID, function(n) which.min(abs(log(trace$n / n))), 0L))
  error <- rep(NA_real_, nrow(trace))
  error[told] <- trace$log_evidence[told] - vapply(trace$n[told], truth, 0)
  # the clock's seconds, made those of the processor
  data.frame(n = trace$n, error = error, cpu = trace$seconds / max(trace$seconds) * cpu,
             annealing = trace$lambda_steps)
}

run <- function(count, folder) {
  out <- list()
  for (seed in seq_len(count)) {
    data <- draw_data(seed)
    truth <- truths(data)
    for (preset in names(STUDIES)) {
      base <- NULL # the same for all studies
      for (study in STUDIES[[preset]]) for (v in seq_along(study[[2]])) {
        is_base <- v == study[[3]]
        found <- if (is_base && !is.null(base)) base else
          one_run(study[[4]](study[[2]][v]), data, truth, seed)
        if (is_base) base <- found
        out <- c(out, list(cbind(preset = preset, study = study[[1]], value = study[[2]][v],
                                 base = is_base, seed = seed, found)))
      }
    }
    message("data set ", seed, " done")
  }
  out <- do.call(rbind, out)
  out <- transform(out, error = signif(error, 5), cpu = signif(cpu, 4))
  # of the published settings' many chunks only those on the way to be drawn
  kept <- !is.na(out$error) | out$n <= 5000 | out$n %% 2000 == 0
  utils::write.csv(out[kept, ], file.path(folder, "sensitivity.csv"), row.names = FALSE)
}

# Errors of all sizes and both signs on one scale: linear up to about a nat, logarithmic beyond.
SCALES <- list(
  error = list(to = asinh, ticks = c(-c(3000, 1000, 500, 200, 100, 50, 20, 10, 5, 2, 1), 0, 1, 2, 5,
                                     10, 20)),
  cpu = list(to = log10, ticks = c(1, 2, 5) * 10^rep(-3:3, each = 3)),
  annealing = list(to = log10, ticks = c(1, 2, 3, 5, 7, 10, 20, 50, 100, 200, 500))
)

panel <- function(part, what, colours, base, main) {
  scale <- SCALES[[what]]$to
  y <- part[[what]]
  if (what == "error" && stats::median(y) > -10) y <- c(y, -1, 1)
  plot(range(part$n), range(scale(y)), type = "n", log = "x", axes = FALSE, xlab = "", ylab = "")
  at <- if (diff(log10(range(part$n))) > 2) c(10, 100, 1000, 10000) else
    c(500, 1000, 2000, 5000, 10000)
  axis(1, at = at, labels = formatC(at, format = "d", big.mark = ","))
  ticks <- SCALES[[what]]$ticks
  axis(2, at = scale(ticks), labels = formatC(ticks, format = "fg", big.mark = ","))
  box(col = "grey70")
  if (what == "error") abline(h = 0, col = "grey50", lty = 2)
  title(main, font.main = 1, cex.main = 1.05, adj = 0, line = 0.5)
  mean_of <- stats::aggregate(part[what], part[c("value", "n")], mean) # over data sets
  for (v in c(setdiff(seq_along(colours), base), base)) {
    of_value <- function(x) x[abs(x$value - as.numeric(names(colours)[v])) < 1e-9, ]
    own <- of_value(mean_of)
    own <- own[order(own$n), ]
    if (what == "error") points(of_value(part)$n, scale(of_value(part)$error), pch = 16, cex = 0.6,
                                col = colours[v])
    lines(own$n, scale(own[[what]]), col = colours[v], lwd = if (v == base) 3.2 else 1.6)
  }
}

# Seconds since the early phase, which no study varies.
since_early <- function(all) {
  run <- interaction(all$preset, all$study, all$value, all$seed, drop = TRUE)
  early <- ave(ifelse(all$preset == "default" & all$n <= 250, all$cpu, 0), run, FUN = max)
  all$cpu <- pmax(all$cpu - early, 0.01)
  all
}

draw <- function(folder) {
  all <- since_early(utils::read.csv(file.path(folder, "sensitivity.csv")))
  for (preset in names(STUDIES)) {
    png(file.path(folder, paste0("sensitivity-", preset, ".png")), 1700, 2500, res = 140)
    layout(matrix(1:24, 6, byrow = TRUE), widths = c(1, 1, 1, 0.28))
    par(mar = c(2.4, 4, 2, 0.6), oma = c(1.6, 0, 2.2, 0), mgp = c(2.2, 0.5, 0), tcl = -0.25,
        las = 1, cex = 0.72)
    for (study in STUDIES[[preset]]) {
      part <- all[all$preset == preset & all$study == study[[1]], ]
      colours <- stats::setNames(
        grDevices::hcl.colors(length(study[[2]]) + 1, "Viridis")[seq_along(study[[2]])], study[[2]])
      late <- part[part$n >= 450, ]
      panel(late[!is.na(late$error), ], "error", colours, study[[3]],
            paste0(study[[1]], ": error of log Z, nats"))
      panel(late, "cpu", colours, study[[3]],
            if (preset == "paper") "CPU seconds" else "CPU seconds after the early phase")
      panel(part, "annealing", colours, study[[3]], "annealing steps of a chunk")
      par(mar = c(0, 0, 0, 0))
      plot.new()
      legend("left", formatC(study[[2]], format = "fg"), bty = "n", col = colours,
             lwd = ifelse(seq_along(colours) == study[[3]], 3, 1.6), seg.len = 1.5)
      par(mar = c(2.4, 4, 2, 0.6))
    }
    mtext(if (preset == "paper") "sgais(preset = \"paper\")" else "sgais()", outer = TRUE, side = 3,
          line = 0.6, adj = 0.02, font = 2)
    mtext("rows so far; thick: the default; points: single data sets", outer = TRUE, side = 1,
          line = 0.3, cex = 0.75)
    grDevices::dev.off()
  }
}

report <- function(folder) {
  all <- since_early(utils::read.csv(file.path(folder, "sensitivity.csv")))
  last <- all[all$n == ROWS, ]
  for (preset in names(STUDIES)) for (study in STUDIES[[preset]]) for (value in study[[2]]) {
    x <- last[last$preset == preset & last$study == study[[1]] & last$value == value, ]
    early <- all[all$preset == preset & all$study == study[[1]] & all$value == value &
                 all$n >= 1000 & all$n < 1300 & !is.na(all$error), ]
    cat(sprintf("%-8s %-26s %8s  error %9.1f (%.1f)  at 1,000 %8.1f  cpu %6.2f\n", preset,
                study[[1]], format(value), mean(x$error), stats::sd(x$error),
                mean(early$error), mean(x$cpu)))
  }
}

here <- dirname(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[1]))
asked <- commandArgs(trailingOnly = TRUE)
verb <- if (length(asked)) asked[[1]] else "run"
folder <- if (verb == "draw")
  (if (length(asked) > 1) asked[[2]] else file.path(here, "results")) else
  if (length(asked) > 2) asked[[3]] else file.path(here, "results")
if (verb == "run") run(if (length(asked) > 1) as.integer(asked[[2]]) else 3L, folder)
draw(folder)
report(folder)

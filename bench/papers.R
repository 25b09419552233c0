# The papers' own checks of nested sampling, as figures: reflected SGHMC against rejection from the
# prior, up to 250 rows, and nested sampling against annealed importance sampling, from 20 to 1,000
# rows; five runs each, on a one-dimensional mixture of three normals (9 parameters, 8 of them
# free). Bands are the smallest and largest of the runs.
#
#   Rscript bench/papers.R [runs = 5] [directory = bench/results] [parts = rejection,long,annealing]
#
# Runs the installed package (R_LIBS says which). Rejections take most of the time, and ever more of
# it: 40 seconds a run of 20 live points at 75 rows, and about twenty times as many draws at 250. So
# up to 75 rows both have 20 live points, and in the part `long` the two of the papers.

suppressPackageStartupMessages(library(logevidence))

clusters <- function(n, seed = 4) {
  set.seed(seed, "Mersenne-Twister", "Inversion", "Rejection")
  centre <- sample(c(-1, 0.5, 2), n, replace = TRUE)
  data.frame(x = rnorm(n, centre, c(0.7, 0.6, 0.8)[match(centre, c(-1, 0.5, 2))]))
}

MODEL <- gaussian_mixture(components = 3, location = 0, rate = 1)

runs_of <- function(name, method, sizes, runs) {
  data <- clusters(1000)
  do.call(rbind, lapply(sizes, function(n) {
    spent <- system.time(values <- vapply(seq_len(runs), function(seed)
      evidence(MODEL, data[seq_len(n), , drop = FALSE], method, seed = seed,
               progress = FALSE)$log_evidence, 0))
    cat(sprintf("%-22s n = %4d  %9.2f to %9.2f  %7.1f s\n", name, n, min(values), max(values),
                spent[["elapsed"]]))
    data.frame(method = name, n = n, run = seq_len(runs), log_evidence = values)
  }))
}

bands <- function(table, title, file, colours) {
  png(file, 1100, 750, res = 130)
  on.exit(dev.off())
  par(mar = c(3.6, 5.2, 2.6, 1), mgp = c(2.4, 0.6, 0), tcl = -0.3, las = 1)
  range_of <- function(f) aggregate(log_evidence / n ~ n + method, table, f)
  low <- range_of(min)
  high <- range_of(max)
  plot(NA, NA, log = "x", xlim = range(table$n), ylim = range(low[[3]], high[[3]]),
       xlab = "Observations", ylab = "", main = title, font.main = 2, cex.main = 1)
  title(ylab = "Log evidence per observation", line = 3.8)
  for (m in names(colours)) {
    a <- low[low$method == m, ]
    b <- high[high$method == m, ]
    polygon(c(a$n, rev(b$n)), c(a[[3]], rev(b[[3]])), col = adjustcolor(colours[[m]], 0.35),
            border = colours[[m]])
  }
  legend("bottomright", names(colours), fill = adjustcolor(unlist(colours), 0.35), bty = "n")
}

reflected <- function(live, bounce = TRUE) {
  nested(live = live, kernel = sghmc(rate = 1e-3, friction = 0.1, bounce = bounce), steps = 60)
}

against_rejection <- function(runs, file) {
  few <- c(10, 20, 30, 50, 75, 100, 150, 250)
  table <- rbind(runs_of("reflected", reflected(20), few, runs),
                 runs_of("reflected, published", reflected(20, bounce = FALSE), few, runs),
                 runs_of("rejection", nested(live = 20, kernel = prior_draws()), few[few <= 75],
                         runs))
  bands(table, "Nested sampling: reflected SGHMC and rejection from the prior", file,
        list(rejection = "#D55E00", reflected = "#0072B2", `reflected, published` = "#009E73"))
  table
}

against_long_rejection <- function(runs, file) {
  few <- c(10, 30, 50, 100, 150, 250)
  table <- rbind(runs_of("reflected, 2 live points", reflected(2), few, runs),
                 runs_of("rejection, 2 live points", nested(live = 2, kernel = prior_draws()), few,
                         runs))
  bands(table, "Two live points: reflected SGHMC and rejection from the prior", file,
        list(`rejection, 2 live points` = "#D55E00", `reflected, 2 live points` = "#0072B2"))
  table
}

against_annealing <- function(runs, file) {
  many <- c(20, 40, 100, 200, 400, 1000)
  table <- rbind(runs_of("nested", nested(live = 100), many, runs),
                 runs_of("nested, published", nested(preset = "paper"), many, runs),
                 runs_of("ais", ais(), many, runs))
  bands(table, "Nested sampling and annealed importance sampling", file,
        list(nested = "#0072B2", `nested, published` = "#009E73", ais = "#D55E00"))
  table
}

PARTS <- list(rejection = list(against_rejection, "nested-rejection"),
              long = list(against_long_rejection, "nested-rejection-long"),
              annealing = list(against_annealing, "nested-ais"))

# Each part has a figure and a table of its own.
main <- function(runs = "5", directory = "bench/results", parts = "rejection,long,annealing") {
  dir.create(directory, showWarnings = FALSE, recursive = TRUE)
  for (part in PARTS[strsplit(parts, ",")[[1]]]) {
    file <- function(ending) file.path(directory, paste0(part[[2]], ending))
    table <- part[[1]](as.integer(runs), file(".png"))
    write.csv(table, file(".csv"), row.names = FALSE)
  }
}

do.call(main, as.list(commandArgs(trailingOnly = TRUE)))

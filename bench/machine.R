# What vector instructions, threads and replicates side by side bring to whole runs of a million
# rows, and how much memory a run takes beside its data. For an idle machine: times of a busy one
# say little.
#
#   Rscript bench/machine.R simd       [rows = 1e6]  medians of three seeds, by LOGEVIDENCE_SIMD
#   Rscript bench/machine.R threads    [rows = 1e6]  twelve pairs of one thread and two, in turns
#   Rscript bench/machine.R replicates [rows = 1e6]  six pairs: replicates on one thread and two
#   Rscript bench/machine.R memory     [rows = 1e6]  greatest memory less that before, by the data
#   Rscript bench/machine.R calls [blocks = 40]      CPU milliseconds of a call on 32 rows and three
#                                                    coefficients: 10%, 50%, 90% of blocks of 30
#   Rscript bench/machine.R one <model> [rows]       CPU seconds of sgais(audit = FALSE), median of
#                                                    three seeds
#
# Each run of `simd` and `memory` is a process of its own. Prints tables.

suppressPackageStartupMessages(library(logevidence))
here <- dirname(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[1]))
million <- new.env(parent = globalenv())
for (line in parse(file.path(here, "million.R")))
  if (is.call(line) && identical(line[[1]], quote(`<-`))) eval(line, million)

MODELS <- c("linear", "softmax", "mixture")
elapsed <- function(code) system.time(code, gcFirst = FALSE)[["elapsed"]]
fit <- function(problem, seed = 1, ...) suppressWarnings(
  evidence(problem$model, problem$data, sgais(audit = FALSE), seed = seed, progress = FALSE, ...))
self <- function(arguments, env = character()) suppressWarnings(system2(
  file.path(R.home("bin"), "Rscript"), c(file.path(here, "machine.R"), arguments), stdout = TRUE,
  stderr = FALSE, env = env))
last_number <- function(lines) as.numeric(utils::tail(lines, 1))

one <- function(model, rows = "1e6") {
  problem <- million$simulated(model, as.numeric(rows), 1)
  cat(stats::median(vapply(1:3, function(seed)
    million$cpu(fit(problem, seed, threads = 1)), 0)), "\n")
}

simd <- function(rows = "1e6") for (model in MODELS) {
  spent <- vapply(c("plain", "avx2", "avx512"), function(variant)
    last_number(self(c("one", model, rows), paste0("LOGEVIDENCE_SIMD=", variant))), 0)
  cat(sprintf("%-10s %s\n", model, paste(sprintf("%.2f", spent), collapse = " ")))
}

in_turns <- function(title, pairs, run) {
  times <- vapply(seq_len(pairs), function(k) c(run(1), run(2)), numeric(2))
  cat(sprintf("%-12s ratio %.2f, best %.3f and %.3f s\n", title,
              stats::median(times[1, ] / times[2, ]), min(times[1, ]), min(times[2, ])))
}

threads <- function(rows = "1e6") for (model in names(million$PROBLEMS)) {
  problem <- million$simulated(model, as.numeric(rows), 1)
  in_turns(model, 12, function(threads) elapsed(fit(problem, threads = threads)))
}

replicates <- function(rows = "1e6") for (model in MODELS) {
  problem <- million$simulated(model, as.numeric(rows), 1)
  in_turns(model, 6, function(threads) elapsed(fit(problem, replicates = 4, threads = threads)))
}

high <- function() {
  line <- grep("^VmHWM", readLines("/proc/self/status"), value = TRUE)
  as.numeric(sub("[^0-9]*([0-9]+).*", "\\1", line)) * 1024
}
peak <- function(model, rows) {
  problem <- million$simulated(model, as.numeric(rows), 1)
  small <- million$first_rows(problem, 1000)
  fit(small)
  invisible(gc())
  writeLines("5", "/proc/self/clear_refs") # the greatest memory is counted from here on
  before <- high()
  suppressWarnings(evidence(problem$model, problem$data, seed = 1, progress = FALSE))
  cat((high() - before) / as.numeric(utils::object.size(problem$data)), "\n")
}
memory <- function(rows = "1e6") for (model in MODELS)
  cat(sprintf("%-10s %.2f\n", model, last_number(self(c("peak", model, rows)))))

calls <- function(blocks = "40") {
  set.seed(1)
  data <- data.frame(x = stats::rnorm(32), z = stats::rnorm(32))
  data$y <- 1 + data$x + stats::rnorm(32)
  unknown <- linear_regression(y ~ x + z)
  known <- linear_regression(y ~ x + z, sigma = 1)
  ways <- list(`the default` = function(seed) evidence(unknown, data, seed = seed),
               `laplace()` = function(seed) evidence(unknown, data, laplace(), seed = seed),
               `bic()` = function(seed) evidence(unknown, data, bic(), seed = seed),
               `exact(), known noise` = function(seed) evidence(known, data, exact(), seed = seed))
  for (way in names(ways)) {
    ways[[way]](1)
    spent <- replicate(as.numeric(blocks),
                       million$cpu(for (seed in 1:30) ways[[way]](seed)) / 30 * 1000)
    cat(sprintf("%-22s %s\n", way, paste(sprintf("%.2f", stats::quantile(spent, c(0.1, 0.5, 0.9))),
                                         collapse = " ")))
  }
}

asked <- as.list(commandArgs(trailingOnly = TRUE))
task <- list(simd = simd, threads = threads, replicates = replicates, memory = memory,
             calls = calls, one = one, peak = peak)
task <- task[[if (length(asked)) asked[[1]] else "simd"]]
if (is.null(task)) stop("simd, threads, replicates, memory, calls or one?")
invisible(do.call(task, asked[-1]))

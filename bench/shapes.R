# How often is the default doubted although it is right, on users' own models that are not close to
# normal: rings, hard edges, steps, a narrow peak beside a wide one?
#
#   tools/with-lib.sh Rscript bench/shapes.R run [--indices 1:200] [--draw 1] [--seeds 1]
#           [--file results/shapes.csv]       rows that are in the file already are not made again
#   ... report [--file results/shapes.csv]
#
# The problems are in tests/testthat/helper-shapes.R; `draw` is the seed of the problems.

suppressPackageStartupMessages(library(logevidence))
script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
here <- dirname(normalizePath(script))
source(file.path(here, "..", "tests", "testthat", "helper-shapes.R"))

arguments <- commandArgs(TRUE)
option <- function(name, otherwise) {
  at <- match(paste0("--", name), arguments)
  if (is.na(at)) otherwise else arguments[at + 1]
}
numbers <- function(name, otherwise) eval(parse(text = option(name, otherwise)))
file <- option("file", file.path(here, "results", "shapes.csv"))
verb <- if (length(arguments)) arguments[1] else "report"

if (verb == "run") {
  draw <- numbers("draw", "1")
  known <- if (file.exists(file)) with(read.csv(file), paste(draw, problem, seed))
  for (index in numbers("indices", "1:200")) {
    problem <- shape_problem(index, draw)
    for (seed in 100 * index + numbers("seeds", "1")) {
      if (paste(draw, problem$name, seed) %in% known) next
      row <- cbind(draw = draw, shape_fit(problem, seed))
      write.table(row, file, append = file.exists(file), sep = ",", row.names = FALSE,
                  col.names = !file.exists(file), qmethod = "double")
    }
  }
} else if (verb == "report") {
  rows <- judged_shapes(read.csv(file, colClasses = c(said = "character"), na.strings = "NA"))
  line <- function(part, name) sprintf(
    "| %s | %d | %d | %d | %.1f%% | %d | %.2f | %.3f | %.2f |", name, nrow(part), sum(part$silent),
    sum(!part$right), 100 * sum(part$doubted) / max(1, sum(part$right)),
    sum(part$right & part$failed), mean(part$z[is.finite(part$z)]^2), median(part$se, na.rm = TRUE),
    mean(part$seconds))
  cat("| shapes | runs | silent | beyond 4 se | doubted though right | failed though right |",
      "mean z^2 | stated | s |\n|---|---|---|---|---|---|---|---|---|\n")
  for (family in unique(rows$family))
    cat(line(rows[rows$family == family, ], family), "\n", sep = "")
  cat(line(rows, "all"), "\n", sep = "")
  said <- table(unlist(strsplit(rows$said[rows$doubted], " ")))
  cat("\nSentences of fits that were right:\n")
  for (name in names(sort(said, decreasing = TRUE)))
    cat(sprintf("  %-20s %d\n", name, said[[name]]))
} else stop("unknown: ", verb)

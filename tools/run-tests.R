# Runs tests/testthat on the installed package (tools/with-lib.sh says which) and counts `test_that`
# blocks: one is failed when anything in it failed, skipped when it gave up, passed otherwise.
# An optional argument picks the test files whose names match it. LOGEVIDENCE_SUITE=quick leaves out
# those that take longest, LOGEVIDENCE_SUITE=thorough runs only these. LOGEVIDENCE_PART=<a whole
# number> runs the crossings and a quarter of the other files, the next one for the next number.

library(testthat)

wanted <- commandArgs(trailingOnly = TRUE)
files <- sub("^test-(.*)[.]R$", "\\1", list.files("tests/testthat", "^test-.*[.]R$"))
if (length(wanted)) files <- grep(wanted[[1]], files, value = TRUE)

# Crossings of features, statistical tests of one method over many seeds, and what needs many
# processes or packages.
thorough <- c("cluster", "engines", "crossings", "partitions", "custom", "names", "heavy",
              "sandwich", "truth", "peaks", "latent-sizes", "bridge", "bdmc", "geweke",
              "geweke-latent", "latent-evidence", "regression-evidence", "moves", "nested",
              "online", "check-model", "example-package", "variants", "interop", "changes-models",
              "joint", "group-blocks", "race", "gibbs")
stopifnot(all(thorough %in% files) || length(wanted) > 0)
files <- switch(Sys.getenv("LOGEVIDENCE_SUITE", "all"), quick = setdiff(files, thorough),
                thorough = intersect(files, thorough), files)

part <- Sys.getenv("LOGEVIDENCE_PART")
if (nzchar(part)) {
  others <- setdiff(files, "crossings")
  files <- c("crossings", others[(seq_along(others) + as.numeric(part)) %% 4 == 0])
}

# One library of small parts of C for all files that call them.
calls_units <- function(name) any(grepl('unit("', readLines(
  file.path("tests/testthat", paste0("test-", name, ".R"))), fixed = TRUE))
if (sum(vapply(files, calls_units, TRUE)) > 1) {
  source("tests/testthat/helper-units.R")
  Sys.setenv(LOGEVIDENCE_UNITS = make_units("tests/testthat"))
}

# Files know nothing of one another, so cores share them, as many as MC_CORES says: a long file or a
# few short ones in a process of its own, which speaks when it has finished. It loads the package
# itself, as threads are for the process that has loaded them; those that wait leave their core to
# other files.
run_files <- function(files) {
  Sys.setenv(OMP_WAIT_POLICY = "passive", LOGEVIDENCE_FORKS = "true")
  library(logevidence)
  said <- utils::capture.output(results <- test_dir(
    "tests/testthat",
    filter = paste0("^(", paste(files, collapse = "|"), ")$"),
    package = "logevidence", load_package = "installed",
    reporter = SummaryReporter$new(show_praise = FALSE, max_reports = 100L),
    stop_on_failure = FALSE
  ))
  results <- as.data.frame(results)
  seconds <- tapply(results$real, factor(results$file), sum)
  cat(paste0(said[nzchar(said)], "\n"), sprintf("%s: %.0f s\n", names(seconds), seconds), sep = "")
  results
}
# Those that take longest first, so that no core is idle at the end.
longest <- c("cluster", "crossings", "group-blocks", "race", "groups", "partitions", "engines",
             "custom", "changes-models", "names", "online", "sandwich", "checkpoint", "joint",
             "joined", "nested", "peaks", "check-model", "heavy", "shift", "run", "far", "latent",
             "adaptors", "latent-sizes", "latent-evidence", "source", "update", "bdmc", "truth",
             "bounded", "changes", "bad-input", "surprise", "source-sums", "results",
             "regression", "bridge", "threads", "source-same", "predict")
short <- setdiff(files, longest)
TOGETHER <- 6
files <- c(as.list(intersect(longest, files)),
           unname(split(short, (seq_along(short) - 1) %/% TOGETHER)))
results <- parallel::mclapply(files, run_files, mc.preschedule = FALSE)

ended <- vapply(results, is.data.frame, TRUE)
for (why in results[!ended]) if (inherits(why, "try-error")) cat("\n", why, sep = "")
if (any(!ended))
  cat("\nStopped before their end:\n", sprintf("  %s\n", unlist(files[!ended])), sep = "")
results <- do.call(rbind, results[ended])
results$test[is.na(results$test)] <- "outside of any test"
failed <- results$failed > 0 | results$error
skipped <- !failed & results$skipped
passed <- !failed & !skipped

if (any(failed)) {
  cat("\nFailed:\n", sprintf("  %s: %s\n", results$file[failed], results$test[failed]), sep = "")
}
slowest <- utils::head(order(-results$real), 5)
cat("\nSlowest:\n", sprintf("  %6.1f s  %s: %s\n", results$real[slowest], results$file[slowest],
                            results$test[slowest]), sep = "")
cat(sum(results$nb), "expectations in", nrow(results), "tests\n")

totals <- c(sum(passed), sum(failed) + sum(!ended), sum(skipped))
file <- Sys.getenv("LOGEVIDENCE_TOTALS")
if (nzchar(file)) writeLines(paste(totals, collapse = " "), file)
quit(status = as.integer(totals[2] > 0))

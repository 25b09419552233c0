# Runs tests/testthat on the installed package (tools/with-lib.sh says which) and counts `test_that`
# blocks: one is failed when anything in it failed, skipped when it gave up, passed otherwise.
# An optional argument picks the test files whose names match it.

suppressPackageStartupMessages({
  library(testthat)
  library(logevidence)
})

wanted <- commandArgs(trailingOnly = TRUE)
results <- test_dir(
  "tests/testthat",
  filter = if (length(wanted)) wanted[[1]],
  package = "logevidence", load_package = "installed",
  reporter = SummaryReporter$new(show_praise = FALSE, max_reports = 100L),
  stop_on_failure = FALSE
)

results <- as.data.frame(results)
results$test[is.na(results$test)] <- "outside of any test"
failed <- results$failed > 0 | results$error
skipped <- !failed & results$skipped
passed <- !failed & !skipped

if (any(failed)) {
  cat("\nFailed:\n", sprintf("  %s: %s\n", results$file[failed], results$test[failed]), sep = "")
}
slowest <- utils::head(order(-results$real), 5)
cat("\nSlowest:\n", sprintf("  %6.1f s  %s: %s\n", results$real[slowest], results$file[slowest], results$test[slowest]), sep = "")
cat(sum(results$nb), "expectations in", nrow(results), "tests\n")

totals <- c(sum(passed), sum(failed), sum(skipped))
file <- Sys.getenv("LOGEVIDENCE_TOTALS")
if (nzchar(file)) writeLines(paste(totals, collapse = " "), file)
quit(status = as.integer(totals[2] > 0))

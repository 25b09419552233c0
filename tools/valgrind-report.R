# valgrind-report.R <file>: prints the errors and definite leaks of valgrind's XML report that have
# a function of our own library on the stack, and fails when there are any.

path <- commandArgs(trailingOnly = TRUE)[[1]]
report <- paste(readLines(path), collapse = "\n")
if (!grepl("</valgrindoutput>", report, fixed = TRUE)) stop("valgrind did not finish its report.")

errors <- regmatches(report, gregexpr("(?s)<error>.*?</error>", report, perl = TRUE))[[1]]
ours <- errors[grepl("logevidence.so", errors, fixed = TRUE)]

field <- function(text, name) {
  found <- regmatches(text, gregexpr(sprintf("<%s>.*?</%s>", name, name), text, perl = TRUE))[[1]]
  gsub("<[^>]*>", "", found)
}

for (error in ours) {
  cat(field(error, "kind")[1], ": ", c(field(error, "what"), field(error, "text"))[1], "\n",
      sep = "")
  frames <- regmatches(error, gregexpr("(?s)<frame>.*?</frame>", error, perl = TRUE))[[1]]
  for (frame in utils::head(frames[grepl("logevidence.so", frames, fixed = TRUE)], 8)) {
    cat("    ", field(frame, "fn")[1], " (", field(frame, "file")[1], ":", field(frame, "line")[1],
        ")\n", sep = "")
  }
}
cat(length(errors), "reports by valgrind,", length(ours), "of them ours\n")
quit(status = as.integer(length(ours) > 0))

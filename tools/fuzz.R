# Random calls, most of them wrong somewhere: each must give a finite log evidence, or a sentence of
# the package that says why not. A crash, a hang, a number that is not finite and a condition of R's
# own are findings. A case is made from (SEED, KIND, CASE), so each can be run again alone:
#
#   make fuzz                               each kind, CASES=500 of it
#   make fuzz KIND=formula SEED=7 CASES=5000
#   make fuzz KIND=formula SEED=7 CASE=123  prints this case and runs it
#   make fuzz SECONDS=20                    as many cases as fit
#   make fuzz SAID=1                        also the sentences of all errors, and how often
#
# What a case may do is in tools/fuzz/judge.R; the generators are the other files there.

library(logevidence)

asked <- function(name, default) {
  value <- Sys.getenv(name)
  if (nzchar(value)) value else default
}
root <- asked("LOGEVIDENCE_ROOT", ".")
for (file in sort(list.files(file.path(root, "tools/fuzz"), "[.]R$", full.names = TRUE)))
  source(file, encoding = "UTF-8")
KINDS <- list(formula = FORMULA_CASES, settings = SETTINGS_CASES, archive = ARCHIVE_CASES,
              csv = CSV_CASES, arrow = ARROW_CASES, fits = FIT_CASES, objects = OBJECT_CASES,
              forged = FORGED_CASES)

seed <- asked("SEED", "1")
usual <- setdiff(names(KINDS), "forged")
kinds <- strsplit(asked("KIND", paste(usual, collapse = ",")), ",")[[1]]
unknown <- setdiff(kinds, names(KINDS))
if (length(unknown)) stop("KIND must be among ", toString(names(KINDS)), ", not ", unknown[1], ".")
one <- asked("CASE", "")

leave <- function(findings) {
  unlink(OWN_FILES, recursive = TRUE)
  quit(status = as.integer(findings > 0))
}

#' A case as R code
show_case <- function(case) {
  for (name in intersect(names(case$objects), all.names(case$call))) {
    cat(name, "<- ")
    shown <- utils::head(deparse(case$objects[[name]]), 60)
    cat(shown, sep = "\n")
  }
  cat(deparse(case$call), "", sep = "\n")
}

show_finding <- function(finding)
  cat("  ", finding$what, if (length(finding$of)) paste0(" (in ", finding$of, ")"), ": ",
      finding$text, "\n", sep = "")

run_one <- function(kind, number) {
  if (!is.null(KINDS[[kind]]$lacks())) stop(KINDS[[kind]]$lacks())
  show_case(case_of(kind, seed, number))
  got <- run_numbers(kind, seed, number)
  cat("Outcome:", names(got$outcomes), "\n")
  if (!length(got$findings)) {
    case <- case_of(kind, seed, number)
    env <- list2env(case$objects, parent = globalenv())
    try(print(eval(case$call, env)))
  }
  for (found in got$findings) show_finding(found)
  leave(length(got$findings))
}
if (nzchar(one)) run_one(kinds[1], as.numeric(one))

# Findings of the same words are one.
signature <- function(finding)
  paste(finding$what, finding$of, gsub("[0-9]+|['\"\u2018`].*?['\"\u2019`]", "#", finding$text))

cases <- as.numeric(asked("CASES", "500"))
seconds <- as.numeric(asked("SECONDS_OF_FUZZ", "Inf"))
total <- 0
for (kind in kinds) {
  lacks <- KINDS[[kind]]$lacks()
  if (!is.null(lacks)) {
    cat(sprintf("%-9s skipped: %s\n", kind, lacks))
    next
  }
  began <- as.numeric(Sys.time())
  got <- run_numbers(kind, seed, seq_len(if (is.finite(seconds)) 1e6 else cases),
                     began + seconds / length(kinds))
  cat(sprintf("%-9s %d cases, %.0f s: %s\n", kind, sum(got$outcomes),
              as.numeric(Sys.time()) - began,
              paste(got$outcomes, names(got$outcomes), collapse = ", ")))
  if (nzchar(asked("SAID", ""))) {
    said <- sort(table(gsub("[0-9]+|\"[^\"]*\"|`[^`]*`", "#", got$said)), decreasing = TRUE)
    cat(sprintf("  %5d  %s\n", said, names(said)), sep = "")
  }
  groups <- split(as.character(names(got$findings)), vapply(got$findings, signature, ""))
  groups <- groups[order(-lengths(groups))]
  for (numbers in groups) {
    show_finding(got$findings[[numbers[1]]])
    cat("    ", length(numbers), if (length(numbers) > 1) " cases" else " case",
        ": make fuzz KIND=", kind, " SEED=", seed, " CASE=", numbers[1], "\n", sep = "")
  }
  total <- total + length(groups)
}
cat(total, "findings\n")
leave(total)

# Do README.md, bench/README.md and vignettes/how-far-to-trust.Rmd still say what the files of
# results say, and does a small form of every measurement give the same now?
#
#   make claims
#   tools/with-lib.sh Rscript bench/claims.R [groups = . (regex)]
#   ... bench/claims.R list        the groups, where their figures stand, and their big forms
#
# A claim is a row {document, section, figure, stated, now, tolerance, verdict}. Three kinds:
#
#   text      a sentence with its figures must stand in the document as it does in this file, so
#             that nobody changes one without the other; the figure is then measured again
#   recorded  each number of a table against the file of results that it was made from, to the
#             last digit printed
#   now       some of the recorded runs again, with the same data and seeds: the difference is
#             allowed 4.5 standard errors of both, or what is said under `tolerance`
#
# Times are compared as ratios, or reported only. A run of all groups writes results/claims.csv.
# Exits with status 1 if a claim fails. claims/groups.R is the table of what is measured, and of the
# command that makes the big form.

suppressPackageStartupMessages(library(logevidence))
script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
HERE <- dirname(normalizePath(script))
ROOT <- dirname(HERE)
RESULTS <- file.path(HERE, "results")
for (part in c("documents", "recorded", "reruns")) source(file.path(HERE, "claims",
                                                                    paste0(part, ".R")))

# ---- claims ----

CLAIMS <- NULL
add_claim <- function(document, section, figure, stated, now, tolerance, verdict) {
  row <- data.frame(document = document, section = section, figure = figure,
                    stated = paste(stated), now = paste(now), tolerance = paste(tolerance),
                    verdict = verdict)
  CLAIMS <<- rbind(CLAIMS, row)
  if (verdict == "FAILS" || Sys.getenv("CLAIMS_VERBOSE") != "") print_claims(row)
}
print_claims <- function(rows) cat(sprintf("%-8s %-44s %14s %14s  %s\n", rows$verdict,
                                           substr(paste0(rows$section, ": ", rows$figure), 1, 100),
                                           rows$stated, rows$now, rows$tolerance), sep = "")
short <- function(x) if (is.numeric(x)) format(signif(x, 4), scientific = abs(x) > 1e7) else x

near <- function(document, section, figure, stated, now, tolerance) {
  good <- is.finite(now) && abs(now - stated) <= tolerance
  add_claim(document, section, figure, short(stated), short(now),
            paste("\u00b1", short(tolerance)), if (good) "holds" else "FAILS")
}
at_most <- function(document, section, figure, stated, now) {
  add_claim(document, section, figure, paste("at most", short(stated)), short(now), "",
            if (is.finite(now) && now <= stated) "holds" else "FAILS")
}
truth_claim <- function(document, section, figure, good)
  add_claim(document, section, figure, "yes", if (isTRUE(good)) "yes" else "no", "",
            if (isTRUE(good)) "holds" else "FAILS")
reported <- function(document, section, figure, stated, now)
  add_claim(document, section, figure, short(stated), short(now), "", "reported")

# Within a factor: times and their ratios, and standard errors.
factor_of <- function(document, section, figure, stated, now, factor) {
  good <- is.finite(now) && now / stated < factor && stated / now < factor
  add_claim(document, section, figure, short(stated), short(now), paste("factor", short(factor)),
            if (good) "holds" else "FAILS")
}

# A sentence of a document.
says <- function(document, section, text) {
  if (!in_document(document, text))
    add_claim(document, section, substr(text, 1, 70), "in the document", "is not", "", "FAILS")
}

# A table against the numbers of a file; `columns` are those whose numbers are compared.
recorded <- function(document, section, columns, rows, k = 1, lines = seq_along(rows)) {
  table <- document_table(document, section, k)
  wrong <- character()
  cells <- 0
  for (i in seq_along(rows)) {
    parts <- lapply(table[lines[i], columns], numbers_of)
    stated <- unlist(lapply(parts, `[[`, "value"))
    half <- unlist(lapply(parts, `[[`, "half"))
    cells <- cells + length(rows[[i]])
    if (length(stated) != length(rows[[i]])) {
      wrong <- c(wrong, sprintf("row %d has %d numbers, not %d", lines[i], length(stated),
                                length(rows[[i]])))
      next
    }
    off <- abs(stated - rows[[i]]) > 1.05 * half + 1e-9 * abs(stated)
    if (any(off)) wrong <- c(wrong, sprintf("%s: %s, recorded %s", table[lines[i], 1], stated[off],
                                            signif(unname(rows[[i]][off]), 4)))
  }
  add_claim(document, section, sprintf("table %d, %d numbers as recorded", k, cells), cells,
            cells - length(wrong), "last digit", if (length(wrong)) "FAILS" else "holds")
  if (length(wrong)) cat(paste0("           ", utils::head(wrong, 12)), sep = "\n")
}

# Lines as a script prints them must stand in the document.
recorded_lines <- function(document, section, lines) {
  flat <- function(x) gsub("[[:space:]]+", " ", trimws(x))
  there <- flat(lines) %in% flat(document_lines(document))
  add_claim(document, section, sprintf("%d lines as the script prints them", length(lines)),
            length(lines), sum(there), "exact", if (all(there)) "holds" else "FAILS")
  if (!all(there)) cat(paste0("           not there: ", utils::head(lines[!there], 5)), sep = "\n")
}

# Recorded runs again: columns error, error_se, se (recorded) and now, now_se, all against the same
# reference. One claim for the worst single run, one for all together, one for stated errors.
again <- function(document, section, figure, runs, z = TRUE) {
  joint <- sqrt(runs$se^2 + runs$now_se^2 + 1e-8)
  apart <- abs(runs$now - runs$error) / joint
  worst <- which.max(ifelse(is.finite(apart), apart, Inf))
  near(document, section, sprintf("%s: %d runs, the worst", figure, nrow(runs)),
       runs$error[worst], runs$now[worst], 4.5 * joint[worst] + 0.02)
  if (!z) return(invisible())
  score <- runs$now / sqrt(runs$now_se^2 + runs$reference_se^2)
  m <- nrow(runs)
  if (m >= 8) near(document, section, paste0(figure, ": within 2 se"), 0.955,
                   mean(abs(score) < 2), 4.5 * sqrt(0.955 * 0.045 / m) + 0.5 / m)
  factor_of(document, section, paste0(figure, ": stated error, median of ratios"), 1,
            median(runs$now_se / runs$se), 1 + 2 / sqrt(m) + 0.25)
}

# ---- groups ----

GROUPS <- list()
group <- function(name, documents, big, takes, check)
  GROUPS[[name]] <<- list(name = name, documents = documents, big = big, takes = takes,
                          check = check)
source(file.path(HERE, "claims", "groups.R"))

asked <- commandArgs(TRUE)
asked <- if (length(asked)) asked[1] else "."
if (asked == "list") {
  for (g in GROUPS) cat(sprintf("%-14s %s\n%14s big form: %s (%s)\n", g$name,
                                toString(g$documents), "", g$big, g$takes))
  quit(status = 0)
}
started <- proc.time()
for (g in GROUPS[grepl(asked, names(GROUPS))]) {
  before <- proc.time()
  tryCatch(suppressWarnings(g$check()), error = function(e)
    add_claim(g$documents[1], g$name, "ran", "to its end", conditionMessage(e), "", "FAILS"))
  spent <- proc.time() - before
  message(sprintf("%-14s %5.0f s, %5.0f s of CPU", g$name, spent[["elapsed"]],
                  sum(spent[c("user.self", "sys.self", "user.child", "sys.child")])))
}
# Sections with a table and no claim.
if (asked == ".") for (document in c(FRONT, TRUST, BENCH)) {
  lines <- document_lines(document)
  heads <- which(startsWith(lines, "## "))
  for (i in seq_along(heads)) {
    own <- lines[heads[i]:min(c(heads[i + 1] - 1, length(lines)), na.rm = TRUE)]
    figures <- any(startsWith(own, "|") & grepl("[|] *-?[0-9.]+ *[|]", own))
    title <- sub("^## ", "", own[1])
    if (figures && !any(startsWith(title, CLAIMS$section)))
      add_claim(document, title, "its table", "a claim", "none", "", "FAILS")
  }
}
cat("\n")
print_claims(data.frame(section = "claim", figure = "figure", stated = "stated", now = "now",
                        tolerance = "", verdict = "verdict"))
print_claims(CLAIMS)
if (asked == ".") utils::write.csv(CLAIMS, file.path(RESULTS, "claims.csv"), row.names = FALSE)
bad <- sum(CLAIMS$verdict == "FAILS")
cat(sprintf("\n%d claims: %d hold, %d are reported only, %d fail; %.0f s\n", nrow(CLAIMS),
            sum(CLAIMS$verdict == "holds"), sum(CLAIMS$verdict == "reported"), bad,
            (proc.time() - started)[["elapsed"]]))
quit(status = as.integer(bad > 0))

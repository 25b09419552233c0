# Every figure, table and test of the four papers, by this package: runs the items, draws them, and
# writes one page of verdicts.
#
#   Rscript reproduce/run.R [full | small | draw | check | contents] [pattern] [directory]
#
# An item is a call of item() in a file of a paper's folder (reproduce/README.md says how to add
# one). `full` writes reproduce/results and the pictures and verdicts that vignettes show
# (vignettes/reproduced, and vignettes/paper-verdicts.csv for those of the package); `small` runs a
# small form of each item into a directory of its own, to show that it works; `draw` draws and
# judges again from the tables that are there; `check` only says whether each item has its files,
# and whether the table of the papers' contents in README.md, which `contents` writes, is up to
# date. `pattern` is a regular expression for paper/item. Runs the installed package (R_LIBS says
# which); MC_CORES files run side by side.

suppressPackageStartupMessages(library(logevidence))

PAPERS <- c(article = "the SGAIS article (Entropy 2019)",
            conference = "the conference paper (Proceedings 2019)", thesis = "the thesis (2020)",
            bidirectional = "bidirectional Monte Carlo (2015)")
# reproduced: what the paper reports comes out here, too. not reproduced: it does not. surpassed: it
# does, and what is used today is better. corrected: the paper makes a slip; `why` has the algebra,
# and the measurement shows that the form stated is off and the corrected one is right.
VERDICTS <- c("reproduced", "not reproduced", "surpassed", "corrected")

# Columns of the verdicts that articles of the package show.
SHORT <- c("paper", "id", "title", "reported", "obtained", "verdict")

items <- new.env()

# One figure, table, algorithm or test.
#   id        unique name in its paper, such as "figure-2"; title: what it shows, in our words
#   reported  what the paper reports: numbers, as text
#   settings  settings, rows, seeds of our run, as text
#   run       function(full) that returns a data frame: the measurement. NULL: `table_of` is the id
#             of another item of the same paper whose table this one shows.
#   draw      function(table): base graphics; NULL for a table or a test without a picture
#   alt       what the picture shows, for readers who cannot see it
#   judge     function(table) that returns list(verdict = one of VERDICTS, obtained = text,
#             why = text): computed from the table, so that it cannot be older than the table
#   size      inches of the picture
#   small     what the small form is too small to tell, as text; NULL if it must have the verdict of
#             the full form
#   same_as   "paper/id" of an item of another paper that is the same measurement: the table, and
#             all that is not given here, are those of that item, which this one never runs
item <- function(paper, id, title, reported = NULL, settings = NULL, run = NULL, table_of = id,
                 draw = NULL, alt = NULL, judge = NULL, size = c(7, 4), same_as = NULL,
                 small = NULL) {
  stopifnot(paper %in% names(PAPERS), is.null(draw) || is.character(alt))
  if (is.null(same_as))
    stopifnot(is.character(reported), is.character(settings), is.function(judge),
              is.function(run) || table_of != id)
  key <- paste0(paper, "/", id)
  one_line <- function(text) if (!is.null(text)) gsub("[[:space:]]+", " ", text)
  if (exists(key, items, inherits = FALSE)) stop("There are two items ", key, ".")
  items[[key]] <- list(paper = paper, id = id, key = key, title = title,
                       reported = one_line(reported), settings = one_line(settings), run = run,
                       table_of = paste0(paper, "/", table_of), draw = draw, alt = one_line(alt),
                       judge = judge, size = size, same_as = same_as, picture_of = key,
                       small = one_line(small),
                       order = length(ls(items)))
}

file_of <- function(key, directory, ending) {
  file.path(directory, paste0(gsub("/", "-", key), ending))
}

# Where tables, pictures and verdicts go.
places <- function(mode, directory) {
  if (mode == "small")
    return(list(tables = directory, pictures = directory, page = directory, short = directory))
  list(tables = "reproduce/results", pictures = "vignettes/reproduced", page = "reproduce",
       short = "vignettes")
}

read_table <- function(key, where) {
  utils::read.csv(file_of(items[[key]]$table_of, where$tables, ".csv"), stringsAsFactors = FALSE)
}

measure <- function(one, mode, where) {
  spent <- system.time(table <- one$run(mode == "full"))
  utils::write.csv(table, file_of(one$key, where$tables, ".csv"), row.names = FALSE)
  utils::write.csv(data.frame(seconds = round(sum(spent[c(1, 2, 4, 5)]), 1),
                              date = format(Sys.Date()),
                              version = as.character(utils::packageVersion("logevidence"))),
                   file_of(one$key, where$tables, "-cost.csv"), row.names = FALSE)
}

picture <- function(one, table, where) {
  grDevices::png(file_of(one$key, where$pictures, ".png"), one$size[1], one$size[2], "in", res = 96,
                 type = "cairo", antialias = "subpixel")
  on.exit(grDevices::dev.off())
  graphics::par(las = 1, mar = c(4, 4.2, 2, 1), mgp = c(2.6, 0.6, 0), tcl = -0.3)
  one$draw(table)
}

# A row of verdicts.csv.
judged <- function(one, where) {
  table <- read_table(one$key, where)
  if (!is.null(one$draw) && one$picture_of == one$key) picture(one, table, where)
  said <- one$judge(table)
  stopifnot(said$verdict %in% VERDICTS, nzchar(said$obtained))
  cost <- utils::read.csv(file_of(one$table_of, where$tables, "-cost.csv"))
  data.frame(paper = one$paper, id = one$id, title = one$title, reported = one$reported,
             obtained = gsub("[[:space:]]+", " ", said$obtained), verdict = said$verdict,
             why = gsub("[[:space:]]+", " ", said$why),
             settings = one$settings, seconds = cost$seconds, date = cost$date,
             script = one$script,
             picture = if (is.null(one$draw)) "" else
               basename(file_of(one$picture_of, where$pictures, ".png")),
             alt = if (is.null(one$alt)) "" else one$alt)
}

# Items of the files, in their order; each knows its file.
load_items <- function() {
  for (paper in names(PAPERS)) {
    for (file in sort(list.files(file.path("reproduce", paper), "[.]R$", full.names = TRUE))) {
      before <- ls(items)
      sys.source(file, new.env(parent = globalenv()))
      for (key in setdiff(ls(items), before)) items[[key]]$script <- file
    }
  }
  for (key in ls(items)) fill_from_same(key)
  keys <- ls(items)
  keys[order(vapply(keys, function(key) items[[key]]$order, 0))]
}

# What an item takes from the one that it is the same as; without that one there is no item.
fill_from_same <- function(key) {
  one <- items[[key]]
  if (is.null(one$same_as)) return()
  if (!exists(one$same_as, items, inherits = FALSE)) return(rm(list = key, envir = items))
  other <- items[[one$same_as]]
  # what the small form of another judge cannot tell, this one's may
  if (is.null(one$judge) && is.null(one$small)) one["small"] <- list(other$small)
  for (part in c("reported", "settings", "judge", "alt"))
    if (is.null(one[[part]])) one[[part]] <- other[[part]]
  if (is.null(one$draw)) one[c("draw", "picture_of")] <- list(other$draw, other$key)
  one$table_of <- other$table_of
  items[[key]] <- one
}

main <- function(mode = "full", pattern = "", directory = tempfile("reproduce")) {
  if (!mode %in% c("full", "small", "draw", "check", "contents"))
    stop("The first word is full, small, draw, check or contents.")
  if (mode == "check") return(check_files(places(mode)))
  if (mode == "contents") return(write_contents(load_items()))
  where <- places(mode, directory)
  for (place in where) dir.create(place, showWarnings = FALSE, recursive = TRUE)
  keys <- load_items()
  chosen <- grep(pattern, keys, value = TRUE)
  if (length(chosen) == 0) stop("No item matches ", pattern, ".")
  if (mode != "draw") {
    own <- Filter(function(key) is.null(items[[key]]$same_as), chosen)
    to_run <- Filter(function(key) is.function(items[[key]]$run),
                     unique(vapply(own, function(key) items[[key]]$table_of, "")))
    problems <- parallel::mclapply(to_run, function(key) tryCatch({
      message(key)
      measure(items[[key]], mode, where)
      NULL
    }, error = function(e) paste0(key, ": ", conditionMessage(e))),
    mc.cores = as.integer(Sys.getenv("MC_CORES", "2")), mc.preschedule = FALSE)
    if (length(unlist(problems))) stop(paste(unlist(problems), collapse = "\n"))
  }
  # the page has all items whose tables are there, so that a part can be run again
  ready <- Filter(function(key) file.exists(file_of(items[[key]]$table_of, where$tables, ".csv")),
                  keys)
  verdicts <- do.call(rbind, lapply(ready, function(key) judged(items[[key]], where)))
  utils::write.csv(verdicts, file.path(where$pictures, "verdicts.csv"), row.names = FALSE)
  utils::write.csv(verdicts[SHORT], file.path(where$short, "paper-verdicts.csv"), row.names = FALSE)
  writeLines(page(verdicts), file.path(where$page, "VERDICTS.md"))
  print(table(factor(verdicts$paper, names(PAPERS)), verdicts$verdict))
  if (mode == "small") compare_small(verdicts)
  invisible(verdicts)
}

# Small forms hold if they have the verdict of the full form (the full verdicts are those of the
# checkout). Some items say what theirs is too small to tell; any other difference is an error.
compare_small <- function(verdicts) {
  key <- function(table) paste0(table$paper, "/", table$id)
  full <- utils::read.csv(file.path("vignettes", "reproduced", "verdicts.csv"))
  expected <- full$verdict[match(key(verdicts), key(full))]
  cannot <- lapply(key(verdicts), function(one) items[[one]]$small)
  small <- lengths(cannot) > 0
  same <- !small & verdicts$verdict == expected
  if (any(small)) {
    cat("\nToo small to tell:\n")
    cat(sprintf("  %s: %s\n", key(verdicts)[small], unlist(cannot)), sep = "")
  }
  cat(sum(same), "small forms have the verdict of the full form,", sum(small),
      "are too small to tell\n")
  off <- !small & !(same %in% TRUE)
  if (any(off))
    stop("Small forms without the verdict of the full form: ",
         paste(paste0(key(verdicts), " (", verdicts$verdict, " instead of ", expected, ": ",
                      verdicts$obtained, ")")[off], collapse = "; "), ".")
}

# Every item has its table, its picture and its row.
check_files <- function(where) {
  keys <- load_items()
  verdicts <- utils::read.csv(file.path(where$pictures, "verdicts.csv"))
  missing <- unlist(lapply(keys, function(key) {
    one <- items[[key]]
    known <- verdicts[verdicts$paper == one$paper & verdicts$id == one$id, ]
    if (nrow(known) != 1) return(paste("the verdict of", key))
    files <- c(if (is.null(one$same_as)) paste0(file_of(one$table_of, where$tables, ""),
                                                c(".csv", "-cost.csv")),
               if (nzchar(known$picture)) file.path(where$pictures, known$picture))
    files[!file.exists(files)]
  }))
  short <- utils::read.csv(file.path(where$short, "paper-verdicts.csv"))
  if (!identical(short, verdicts[SHORT]))
    stop("vignettes/paper-verdicts.csv is not what vignettes/reproduced/verdicts.csv says. ",
         "Run `Rscript reproduce/run.R draw`.")
  if (length(missing)) stop("Missing: ", paste(missing, collapse = ", "), ". Run `make reproduce`.")
  cat(length(keys), "items have their files\n")
  if (!identical(with_contents(keys), readLines(README)))
    stop("The contents in ", README, " are out of date. Run `Rscript reproduce/run.R contents`.")
  cat("all contents of the papers have an item or a reason\n")
}

# Contents of the papers ---------------------------------------------------------------------------

CONTENTS <- "reproduce/contents.csv"
README <- "reproduce/README.md"
MARKERS <- c("<!-- contents: made by `Rscript reproduce/run.R contents` -->",
  "<!-- end of contents -->")

# Rows of contents.csv: paper, where, what, item (keys of items, separated by spaces) and why (a
# sentence, if there is no item). A problem with any of them is an error, and so is an item that no
# row names.
read_contents <- function(keys) {
  rows <- utils::read.csv(CONTENTS, colClasses = "character", na.strings = NULL)
  stopifnot(identical(names(rows), c("paper", "where", "what", "item", "why")))
  named <- strsplit(rows$item, " +")
  unknown <- setdiff(unlist(named), keys)
  lines <- seq_len(nrow(rows)) + 1
  problems <- c(
    if (length(unknown)) paste("there is no item", unknown),
    paste("line", lines[!rows$paper %in% names(PAPERS)], "names no paper")[
      any(!rows$paper %in% names(PAPERS))],
    sprintf("line %d lacks a place or what it is about", lines[!nzchar(rows$where) |
      !nzchar(rows$what)]),
    sprintf("line %d has neither an item nor a reason", lines[!nzchar(rows$item) &
      !nzchar(rows$why)]),
    sprintf("line %d has the reason of no item, and an item", lines[nzchar(rows$item) &
      nzchar(rows$why)]),
    sprintf("no line has the item %s", setdiff(keys, unlist(named))))
  if (length(problems)) stop(CONTENTS, ": ", paste(problems, collapse = "; "), ".")
  rows
}

# The lines of README.md with the table between its markers.
with_contents <- function(keys) {
  rows <- read_contents(keys)
  rows[] <- lapply(rows, gsub, pattern = "|", replacement = "\\|", fixed = TRUE)
  table <- unlist(lapply(names(PAPERS), function(paper) {
    own <- rows[rows$paper == paper, ]
    of <- ifelse(nzchar(own$item), gsub("([^ ]+)", "`\\1`", own$item), paste("none:", own$why))
    c("", paste0("### Contents of ", PAPERS[[paper]]), "",
      sprintf("%d rows, %d of them with an item.", nrow(own), sum(nzchar(own$item))), "",
      "| where | what | item |", "|---|---|---|",
      sprintf("| %s | %s | %s |", own$where, own$what, of))
  }))
  lines <- readLines(README)
  at <- match(MARKERS, lines)
  if (anyNA(at)) stop(README, " must have the lines ", paste(MARKERS, collapse = " and "), ".")
  c(lines[seq_len(at[1])], table, "", lines[at[2]:length(lines)])
}

write_contents <- function(keys) {
  writeLines(with_contents(keys), README)
  cat("wrote the contents of the papers into", README, "\n")
}

# The page of all verdicts.
page <- function(verdicts) {
  text <- vapply(verdicts, is.character, NA)
  verdicts[text] <- lapply(verdicts[text], gsub, pattern = "|", replacement = "\\|", fixed = TRUE)
  counts <- table(factor(verdicts$verdict, VERDICTS))
  lines <- c("# The four papers, figure by figure", "",
             "Made by `make reproduce` (`reproduce/run.R`); do not edit.", "",
             paste0(nrow(verdicts), " items: ", paste(counts, names(counts), collapse = ", "), "."))
  for (paper in unique(verdicts$paper)) {
    own <- verdicts[verdicts$paper == paper, ]
    lines <- c(lines, "", paste0("## ", toupper(substr(PAPERS[[paper]], 1, 1)),
                                 substring(PAPERS[[paper]], 2)), "",
               "| item | shows | reported | obtained | verdict | why | settings | CPU s | script |",
               "|---|---|---|---|---|---|---|---:|---|",
               sprintf("| %s | %s | %s | %s | **%s** | %s | %s | %s | `%s` |", own$id, own$title,
                       own$reported, own$obtained, own$verdict, own$why, own$settings, own$seconds,
                       sub("^reproduce/", "", own$script)))
  }
  lines
}

do.call(main, as.list(commandArgs(trailingOnly = TRUE)))

# shared-phrases.R <folder of texts> [folder]: which sequences of eight words do the documents of
# the checkout share with the texts (*.txt) of a folder? Papers are quoted by their numbers, and
# their sentences are not copied; this finds those that were. Prints each finding as
# "file:line: shared with <text>: <words>", and fails if there is one. The texts are no part of the
# checkout: `make phrases PAPERS=<folder>`.
#
# Case, punctuation, line breaks, marks of comments, tags and commands of LaTeX do not count. Nor do
# numbers and single letters: a quoted number is none of the eight words, and formulas have none.
# Titles of references do not count: those below, the list of references of a text, and references
# in help pages.

WORDS <- 8

# Titles that no document can say in other words.
TITLES <- c(
  "Stochastic gradient annealed importance sampling for efficient online marginal likelihood
   estimation",
  "A sequential marginal likelihood approximation using stochastic gradients",
  "Evidence estimation using stochastic likelihood approximations",
  "Sandwiching the marginal likelihood using bidirectional Monte Carlo"
)

# ---- words of a text ----

# Letters with their marks removed, and ligatures taken apart.
plain_letters <- function(lines) {
  lines <- gsub("\ufb01", "fi", gsub("\ufb02", "fl", gsub("\ufb00", "ff", lines)))
  lines <- gsub("['\u2019\u00ad]", "", lines)
  said <- iconv(lines, "UTF-8", "ASCII//TRANSLIT")
  tolower(ifelse(is.na(said), iconv(lines, "UTF-8", "ASCII", sub = " "), said))
}

# A data frame of `word` and the number of its `line`.
words_of <- function(lines) {
  lines <- plain_letters(lines)
  # a word that is divided at the end of a line
  divided <- grep("[a-z]-$", lines)
  divided <- divided[divided < length(lines)]
  divided <- divided[grepl("^[a-z]", lines[divided + 1])]
  for (i in divided) {
    rest <- sub("^([a-z]+).*", "\\1", lines[i + 1])
    lines[i] <- paste0(sub("-$", "", lines[i]), rest)
    lines[i + 1] <- substring(lines[i + 1], nchar(rest) + 1)
  }
  lines <- gsub("https?://[^ >)}]*", " ", lines)
  lines <- gsub("</?[a-z]+[^<>]*>", " ", lines)
  # a line break within a string of code, then commands of LaTeX, whose arguments stay
  lines <- gsub("\\\\n\\b", " ", lines)
  lines <- gsub("\\\\[a-z]+", " ", lines)
  found <- regmatches(lines, gregexpr("[a-z0-9]+", lines))
  words <- data.frame(word = as.character(unlist(found)),
                      line = rep(seq_along(lines), lengths(found)))
  words[!grepl("[0-9]", words$word) & (nchar(words$word) > 1 | words$word == "a"), , drop = FALSE]
}

# The sequences of `count` words that begin at each word; none at the last ones.
sequences <- function(words, count = WORDS) {
  starts <- seq_len(max(0, length(words) - count + 1))
  do.call(paste, lapply(seq_len(count) - 1, function(i) words[starts + i]))
}

# For each word whether it is in one of the titles.
in_titles <- function(words, titles) {
  inside <- rep(FALSE, length(words))
  for (title in titles) {
    own <- words_of(strsplit(title, "\n")[[1]])$word
    if (length(own) == 0 || length(words) < length(own)) next
    for (start in which(sequences(words, length(own)) == paste(own, collapse = " ")))
      inside[start + seq_along(own) - 1] <- TRUE
  }
  inside
}

# ---- comparison ----

# Sequences of the document that are in one of the texts (a named list of lines): a data frame of
# `line`, `text` and `words`. Sequences that overlap are one finding.
shared_phrases <- function(document, texts, titles = TITLES, count = WORDS) {
  words <- words_of(document)
  # a title ends the sequence before it and begins another
  words$word[in_titles(words$word, titles)] <- "|"
  own <- sequences(words$word, count)
  none <- data.frame(line = integer(), text = character(), words = character())
  findings <- lapply(names(texts), function(name) {
    known <- if (is.environment(texts[[name]])) texts[[name]]$sequences else
      sequences(words_of(texts[[name]])$word, count)
    starts <- which(own %in% known)
    if (length(starts) == 0) return(none)
    part <- cumsum(c(1, diff(starts) > 1))
    do.call(rbind, lapply(split(starts, part), function(run) data.frame(
      line = words$line[run[1]], text = name,
      words = paste(words$word[seq(run[1], run[length(run)] + count - 1)], collapse = " "))))
  })
  found <- do.call(rbind, c(list(none), findings))
  rownames(found) <- NULL
  found
}

# A document without what is a reference: in comments of R functions from @references to the next
# tag or the end of the comment. Lines keep their numbers.
without_references <- function(lines) {
  comment <- grepl("^#'", lines)
  begins <- grepl("^#' *@references", lines)
  ends <- !comment | (grepl("^#' *@", lines) & !begins)
  section <- cumsum(begins | ends)
  inside <- section > 0 & section %in% section[begins]
  lines[inside] <- ""
  lines
}

# A text without its list of references, which ends before an appendix.
without_list <- function(lines) {
  heading <- grep("^[# ]*(list of )?references *$", lines, ignore.case = TRUE)
  if (length(heading) == 0) return(lines)
  first <- heading[length(heading)]
  after <- grep("^[# ]*appendix", lines, ignore.case = TRUE)
  last <- c(after[after > first] - 1, length(lines))[1]
  lines[-seq(first, last)]
}

# ---- documents of a checkout ----

# man/ is made from R/, results are numbers, and LICENSE is not ours.
documents_of <- function(root) {
  files <- list.files(root, "[.](md|Rmd|R|c|h|csv|sh|yml|html)$", recursive = TRUE)
  others <- c("DESCRIPTION", "inst/CITATION", "Makefile")
  files <- c(files, others[file.exists(file.path(root, others))])
  apart <- "^(docs|man|bench/results|reproduce/results|tools/shared-phrases[.]R)(/|$)"
  sort(grep(apart, files, value = TRUE, invert = TRUE))
}

read_lines <- function(file) readLines(file, encoding = "UTF-8", warn = FALSE)

main <- function(folder = "", root = ".") {
  files <- list.files(folder, "[.]txt$", full.names = TRUE)
  if (!nzchar(folder) || length(files) == 0)
    stop("There are no texts (*.txt) in the folder \"", folder, "\": name one, ",
         "`make phrases PAPERS=<folder>`.", call. = FALSE)
  texts <- lapply(files, function(file) list2env(list(
    sequences = unique(sequences(words_of(without_list(read_lines(file)))$word)))))
  names(texts) <- basename(files)
  documents <- documents_of(root)
  count <- 0
  for (file in documents) {
    found <- shared_phrases(without_references(read_lines(file.path(root, file))), texts)
    count <- count + nrow(found)
    cat(sprintf("%s:%d: shared with %s: %s\n", file, found$line, found$text, found$words), sep = "")
  }
  cat(length(documents), "documents,", length(files), "texts,", count, "shared phrases\n")
  if (count > 0) quit(status = 1)
}

if (sys.nframe() == 0) do.call(main, as.list(commandArgs(trailingOnly = TRUE)))

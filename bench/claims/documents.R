# What the documents say: their tables, and the numbers in a cell.

document_lines <- function(document) readLines(file.path(ROOT, document), encoding = "UTF-8")

# The k-th table under a heading, as a matrix of cells without its two head lines.
document_table <- function(document, heading, k = 1) {
  lines <- document_lines(document)
  from <- which(startsWith(lines, "## ") & grepl(heading, lines, fixed = TRUE))
  if (length(from) != 1) stop("no section `", heading, "` in ", document)
  until <- c(which(startsWith(lines, "## ") & seq_along(lines) > from), length(lines) + 1)[1] - 1
  own <- lines[from:until]
  is_row <- startsWith(own, "|")
  block <- cumsum(is_row & !c(FALSE, is_row[-length(is_row)]))
  rows <- own[is_row & block == k]
  if (length(rows) < 3) stop("no table ", k, " under `", heading, "` in ", document)
  # a bar within backticks or an escaped one does not occur in these tables
  cells <- strsplit(sub("[|] *$", "", sub("^[|]", "", rows[-(1:2)])), "|", fixed = TRUE)
  width <- max(lengths(cells))
  t(vapply(cells, function(row) trimws(c(row, rep("", width - length(row)))), character(width)))
}

# All numbers of a text, and half a unit of the last digit of each.
NUMBER <- "-?[0-9]*[.]?[0-9]+(e-?[0-9]+)?"
numbers_of <- function(text) {
  text <- gsub("10^", "1e", gsub("(?<=[0-9]),(?=[0-9]{3})", "", text, perl = TRUE), fixed = TRUE)
  text <- gsub("\u2212", "-", text)
  found <- regmatches(text, gregexpr(NUMBER, text))[[1]]
  # a minus after a digit is a range or a name
  digits <- vapply(found, function(x) {
    mantissa <- sub("e.*", "", x)
    after <- if (grepl(".", mantissa, fixed = TRUE)) nchar(sub(".*[.]", "", mantissa)) else 0
    power <- if (grepl("e", x)) as.numeric(sub(".*e", "", x)) else 0
    0.5 * 10^(power - after)
  }, 0)
  list(value = as.numeric(found), half = unname(digits))
}

# Does the document have this text? Line breaks count as blanks.
in_document <- function(document, text) {
  flat <- function(x) gsub("[[:space:]]+", " ", paste(x, collapse = " "))
  grepl(flat(text), flat(document_lines(document)), fixed = TRUE)
}

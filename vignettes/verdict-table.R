# Sourced by the articles of the papers: the verdicts of paper-verdicts.csv as a table.

# Prints how many items there are, and a row for each.
verdict_table <- function(paper) {
  verdicts <- read.csv("paper-verdicts.csv", stringsAsFactors = FALSE)
  own <- verdicts[verdicts$paper == paper, ]
  counts <- table(factor(own$verdict, c("reproduced", "surpassed", "not reproduced")))
  cat(sprintf("%d items: %s.\n\n", nrow(own), paste(counts, names(counts), collapse = ", ")))
  plain <- function(text) gsub("([][\\\\*_^~<>|`$])", "\\\\\\1", text)
  item <- sub("-", " ", own$id)
  rows <- data.frame(Item = paste0("**", plain(item), "**: ", plain(own$title)),
                     Reported = plain(own$reported), Here = plain(own$obtained),
                     Verdict = own$verdict)
  print(knitr::kable(rows, format = "pipe", row.names = FALSE))
}

# Sourced by articles: R warnings are shown in lines of the page's width.
local({
  shown <- knitr::knit_hooks$get("warning")
  knitr::knit_hooks$set(warning = function(x, options) {
    mark <- if (is.character(options$comment)) paste0(options$comment, " ") else ""
    lines <- strsplit(sub("\n$", "", x), "\n", fixed = TRUE)[[1]]
    plain <- ifelse(startsWith(lines, mark), substring(lines, nchar(mark) + 1), lines)
    wrapped <- unlist(lapply(plain, strwrap, width = 78, exdent = 2))
    shown(paste0(mark, wrapped, "\n", collapse = ""), options)
  })
})

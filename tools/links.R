# links.R [folder]: is the index of the site complete, and does each link of its pages lead to a
# file of the checkout? Prints each breach, without making the site. `make articles` runs it.

root <- c(commandArgs(TRUE), ".")[1]
setwd(root)
breaches <- character()
breach <- function(...) breaches <<- c(breaches, paste0(...))
read <- function(file) paste(readLines(file, encoding = "UTF-8", warn = FALSE), collapse = "\n")

settings <- yaml::read_yaml("_pkgdown.yml")
listed_in <- function(sections) unlist(lapply(sections, `[[`, "contents"))

# ---- the index of articles, and the menu

articles <- sub("[.]Rmd$", "", list.files("vignettes", "[.]Rmd$"))
listed <- listed_in(settings$articles)
starts <- sub("^starts_with\\(\"(.*)\"\\)$", "\\1", grep("^starts_with", listed, value = TRUE))
listed <- grep("^starts_with", listed, value = TRUE, invert = TRUE)
begun <- vapply(articles, function(name) any(startsWith(name, starts)), NA)
for (name in articles[!articles %in% listed & !begun])
  breach("_pkgdown.yml: the index of articles lacks `", name, "`.")
for (name in setdiff(listed, articles))
  breach("_pkgdown.yml: there is no article `", name, "`.")
menu <- grep("^articles/", unlist(settings$navbar$components), value = TRUE)
for (page in setdiff(sub("^articles/(.*)[.]html$", "\\1", menu), c(articles, "index")))
  breach("_pkgdown.yml: the menu has an article `", page, "` that does not exist.")

# ---- the index of help pages

files <- list.files("man", "[.]Rd$", full.names = TRUE)
pages <- vapply(files, read, "")
found <- regmatches(pages, gregexpr("\\\\(alias|name)\\{[^}]*\\}", pages))
aliases <- lapply(found, function(own) gsub("\\", "", sub("^\\\\\\w+\\{(.*)\\}$", "\\1", own),
                                            fixed = TRUE))
open <- !grepl("\\keyword{internal}", pages, fixed = TRUE)
topics <- listed_in(settings$reference)
for (name in setdiff(topics, unlist(aliases)))
  breach("_pkgdown.yml: there is no help page `", name, "`.")
for (i in which(open)) if (!any(aliases[[i]] %in% topics))
  breach("_pkgdown.yml: the index of help pages lacks `", aliases[[i]][1], "`.")

# ---- links of pages in Markdown

documents <- c(list.files(".", "[.]md$"), list.files("vignettes", "[.]Rmd$", full.names = TRUE),
               "bench/README.md", "bench/results/README.md", "reproduce/README.md")
for (file in documents[file.exists(documents)]) {
  # code has brackets of its own
  text <- gsub("(?s)```.*?```|`[^`]*`", "", read(file), perl = TRUE)
  links <- regmatches(text, gregexpr("(?<=\\]\\()[^)\\s]+(?=\\))", text, perl = TRUE))[[1]]
  for (target in unique(sub("#.*$", "", links))) {
    if (!nzchar(target) || grepl("^[a-z]+:", target)) next
    # a page of the site is made from an article, or from a help page
    made <- sub("^(.*/)?(articles/)?([^/]+)[.]html$", "vignettes/\\3.Rmd", target)
    help <- sub("^.*reference/([^/]+)[.]html$", "man/\\1.Rd", target)
    places <- c(file.path(dirname(file), target), target, made, help)
    if (!any(file.exists(places))) breach(file, ": the link `", target, "` leads nowhere.")
  }
}

if (length(breaches)) {
  writeLines(breaches, stderr())
  quit(status = 1)
}
cat("The index of the site is complete, and its links lead to files.\n")

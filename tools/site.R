# Makes the site in docs/: pkgdown, then three changes to its pages. Formulas become MathML, the
# index of the search becomes a script, so that it also works from files, and nothing is loaded from
# elsewhere. Stops if a page loads something from the network or a picture has no text.
#
#   tools/with-lib.sh Rscript tools/site.R [home | reference | articles]

options(pkgdown.internet = FALSE, width = 80)
suppressPackageStartupMessages(library(pkgdown))
what <- c(commandArgs(TRUE), "all")[1]
# downlit asks CRAN for the sites of packages in library(); without a network that is an error
utils::assignInNamespace("CRAN_urls", function() list(), "downlit")

# ---- pages that _pkgdown.yml does not list come last ----

settings <- yaml::read_yaml("_pkgdown.yml")
listed_in <- function(sections) unlist(lapply(sections, `[[`, "contents"))

unlisted_articles <- function() {
  names <- sub("[.]Rmd$", "", list.files("vignettes", "[.]Rmd$"))
  listed <- listed_in(settings$articles)
  starts <- sub("^starts_with\\(\"(.*)\"\\)$", "\\1", grep("^starts_with", listed, value = TRUE))
  known <- names %in% listed | vapply(names, function(name) any(startsWith(name, starts)), NA)
  names[!known]
}

unlisted_topics <- function() {
  files <- list.files("man", "[.]Rd$", full.names = TRUE)
  text <- vapply(files, function(file) paste(readLines(file), collapse = "\n"), "")
  open <- !grepl("\\keyword{internal}", text, fixed = TRUE)
  aliases <- lapply(regmatches(text, gregexpr("\\\\(alias|name)\\{[^}]*\\}", text)),
                    function(found) sub("^\\\\\\w+\\{(.*)\\}$", "\\1", found))
  known <- vapply(aliases, function(own) any(own %in% listed_in(settings$reference)), NA)
  sub("[.]Rd$", "", basename(files[open & !known]))
}

add_section <- function(sections, title, contents)
  c(sections, if (length(contents)) list(list(title = title, contents = as.list(contents))))
papers <- grep("^paper", unlisted_articles(), value = TRUE)
articles <- add_section(settings$articles, "The papers", papers)
articles <- add_section(articles, "More", setdiff(unlisted_articles(), papers))
override <- list(articles = articles,
                 reference = add_section(settings$reference, "More", unlisted_topics()))

# ---- pkgdown ----

pkg <- as_pkgdown(".", override)
init_site(pkg)
if (what %in% c("all", "home")) build_home(pkg, preview = FALSE)
if (what %in% c("all", "reference"))
  build_reference(pkg, lazy = FALSE, devel = FALSE, preview = FALSE, seed = 1)
if (what %in% c("all", "articles")) build_articles(pkg, lazy = FALSE, preview = FALSE)
if (what == "all") build_news(pkg, preview = FALSE)
unlink(c("docs/pkgdown.js", "docs/link.svg"))
build_search(pkg)

# ---- formulas ----

pages <- list.files("docs", "[.]html$", recursive = TRUE, full.names = TRUE)
read_page <- function(file)
  paste(readLines(file, encoding = "UTF-8", warn = FALSE), collapse = "\n")
write_page <- function(text, file) writeLines(enc2utf8(text), file, useBytes = TRUE)
FORMULA <- "(?s)\\\\\\((.+?)\\\\\\)|\\\\\\[(.+?)\\\\\\]|\\$\\$(.+?)\\$\\$"

plain <- function(tex) {
  for (pair in list(c("&lt;", "<"), c("&gt;", ">"), c("&amp;", "&")))
    tex <- gsub(pair[1], pair[2], tex, fixed = TRUE)
  gsub("\\s+", " ", tex)
}
to_mathml <- function(formulas) {
  block <- !startsWith(formulas, "\\(")
  tex <- trimws(plain(substr(formulas, 3, nchar(formulas) - 2)))
  mark <- ifelse(block, "$$", "$")
  input <- tempfile(fileext = ".md")
  writeLines(enc2utf8(paste0(mark, tex, mark, "\n")), input, useBytes = TRUE)
  html <- system2("pandoc", c("-f", "markdown", "-t", "html", "--mathml", "--wrap=none", input),
                  stdout = TRUE)
  html <- paste(html, collapse = "\n")
  made <- regmatches(html, gregexpr("(?s)<math.*?</math>", html, perl = TRUE))[[1]]
  if (length(made) != length(formulas)) stop("pandoc could not convert all formulas.")
  gsub("(?s)<annotation.*?</annotation>", "", made, perl = TRUE)
}
# Code is left as it is.
outside_code <- function(text, change) {
  code <- gregexpr("(?s)<(pre|code)\\b.*?</\\1>", text, perl = TRUE)
  pieces <- regmatches(text, code, invert = TRUE)[[1]]
  between <- regmatches(text, code)[[1]]
  paste0(vapply(pieces, change, ""), c(between, ""), collapse = "")
}
texts <- vapply(pages, read_page, "")
named <- gsub("class=\"logo\" alt=\"\"", "class=\"logo\" alt=\"logevidence\"", texts, fixed = TRUE)
# A picture of an example is described by the code that drew it.
describe_examples <- function(text) {
  at <- gregexpr("<img src=\"[^\"]*\" alt=\"\"", text)[[1]]
  for (start in rev(at[at > 0])) {
    before <- strsplit(substr(text, 1, start), "<span class=\"r-in\">", fixed = TRUE)[[1]]
    code <- gsub("<[^>]*>", "", sub("(?s)\n.*", "", before[length(before)], perl = TRUE))
    end <- start + attr(at, "match.length")[match(start, at)]
    text <- paste0(substr(text, 1, end - 2), "Drawn by ", gsub("\"", "&quot;", trimws(code)),
                   substr(text, end - 1, nchar(text)))
  }
  text
}
examples <- grepl("^docs/reference/", pages)
named[examples] <- vapply(named[examples], describe_examples, "")
for (file in pages[named != texts]) write_page(named[[file]], file)
texts <- named
found <- unique(unlist(lapply(texts, function(text) {
  own <- character()
  outside_code(text, function(piece) {
    own <<- c(own, regmatches(piece, gregexpr(FORMULA, piece, perl = TRUE))[[1]])
    piece
  })
  own
})))
if (length(found)) {
  made <- to_mathml(found)
  for (file in pages) {
    changed <- outside_code(texts[[file]], function(piece) {
      at <- gregexpr(FORMULA, piece, perl = TRUE)
      regmatches(piece, at) <- lapply(regmatches(piece, at), function(own) made[match(own, found)])
      piece
    })
    if (changed != texts[[file]]) write_page(changed, file)
  }
}

# ---- search ----

# "Evidence in five minutes", of a page
titles <- vapply(pages, function(file) {
  title <- sub("(?s).*<title>(.*?)</title>.*", "\\1", read_page(file), perl = TRUE)
  plain(sub(" \u2022 .*", "", title))
}, "")
names(titles) <- sub("^docs/", "", pages)
index <- jsonlite::read_json("docs/search.json")
entries <- lapply(Filter(function(entry) length(entry$path) > 0, index), function(entry) {
  text <- paste(unlist(entry[c("text", "code")]), collapse = " ")
  text <- substr(gsub("\\s+", " ", text), 1, 1500)
  what <- if (is.null(entry$what)) "" else entry$what
  path <- sub("^/", "", entry$path)
  title <- if (path %in% names(titles)) titles[[path]] else "logevidence"
  if (length(entry$id) && nzchar(entry$id)) path <- paste0(path, "#", entry$id)
  list(path = path, title = title, what = what, text = text,
       lower = lapply(list(title = title, what = what, text = text), tolower))
})
write_page(paste0("window.searchIndex = ", jsonlite::toJSON(entries, auto_unbox = TRUE), ";"),
           "docs/search-index.js")

# ---- is anything loaded from elsewhere, and has each picture a text? ----

bad <- character()
for (file in pages) {
  text <- read_page(file)
  loads <- regmatches(text, gregexpr(
    "<(script|img|link|iframe)\\b[^>]*(src|href)=\"(https?:|//|file:)[^\"]*\"", text))[[1]]
  images <- regmatches(text, gregexpr("<img\\b[^>]*>", text))[[1]]
  silent <- images[!grepl("alt=\"[^\"]+\"", images)]
  bad <- c(bad, if (length(loads)) paste0(file, ": ", loads),
           if (length(silent)) paste0(file, ": no alternative text: ", substr(silent, 1, 90)))
}
cat(length(pages), "pages in docs/\n")
if (length(bad)) {
  writeLines(bad)
  quit(status = 1)
}

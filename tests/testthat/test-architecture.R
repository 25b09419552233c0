# ARCHITECTURE.md names files: they exist. An installed package and R CMD check do not have it.

checkout <- function() {
  root <- normalizePath(file.path("..", ".."), mustWork = FALSE)
  skip_if_not(file.exists(file.path(root, "ARCHITECTURE.md")), "not in a checkout")
  root
}

text_of <- function(root) readLines(file.path(root, "ARCHITECTURE.md"), encoding = "UTF-8")

# Files and folders, as they are named from the top of the checkout; `*` stands for any letters.
named_files <- function(text) {
  text <- text[!startsWith(text, "+++")]
  pattern <- "(?<![\\w/.])(R|src|inst|tools|tests|bench|vignettes|[.]ci)/[\\w./*-]*[\\w/*]"
  unique(unlist(regmatches(text, gregexpr(pattern, text, perl = TRUE))))
}

test_that("files that ARCHITECTURE.md names exist", {
  root <- checkout()
  files <- named_files(text_of(root))
  expect_gt(length(files), 50)
  there <- vapply(files, function(file) length(Sys.glob(file.path(root, sub("/$", "", file)))) > 0,
                  TRUE)
  expect_identical(files[!there], character())
  expect_identical(named_files(c("`src/core/none.c`, R/x.R.", "+++ src/new.c")),
                   c("src/core/none.c", "R/x.R"))
})

test_that("ARCHITECTURE.md answers some twenty questions, each by a file", {
  rows <- grep("^\\| (Where|Which) ", text_of(checkout()), value = TRUE)
  expect_gte(length(rows), 20)
  answers <- sub("^\\|[^|]*\\|", "", rows)
  expect_true(all(lengths(lapply(answers, named_files)) > 0))
})

test_that("new files of its diffs are in tools/toys", {
  root <- checkout()
  text <- text_of(root)
  new <- sub("^\\+\\+\\+ (\\S+).*", "\\1", text[startsWith(text, "+++")])
  expect_length(new, 9)
  expect_identical(new[!file.exists(file.path(root, "tools", "toys", new))], character())
})

test_that("the contract of models has six groups of at most eight parts, each with a sentence", {
  expect_length(CONTRACT_PARTS, 6)
  expect_lte(max(lengths(CONTRACT_PARTS)), 8)
  words <- vapply(unlist(unname(CONTRACT_PARTS), recursive = FALSE), `[[`, "", "words")
  expect_false(anyDuplicated(names(words)) > 0)
  expect_true(all(nchar(words) > 10))
})

test_that("it stays short", {
  text <- text_of(checkout())
  expect_lt(length(text), 325)
  expect_lte(max(nchar(text)), 100)
})

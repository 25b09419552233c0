# ARCHITECTURE.md and tests/README.md name files: they exist. An installed package and R CMD check
# do not have these pages.

checkout <- function() {
  root <- normalizePath(file.path("..", ".."), mustWork = FALSE)
  skip_if_not(file.exists(file.path(root, "ARCHITECTURE.md")), "not in a checkout")
  root
}

text_of <- function(root, page = "ARCHITECTURE.md")
  readLines(file.path(root, page), encoding = "UTF-8")

# Files and folders, as they are named from the top of the checkout; `*` stands for any letters.
named_files <- function(text) {
  text <- text[!startsWith(text, "+++")]
  pattern <- "(?<![\\w/.])(R|src|inst|tools|tests|bench|vignettes|[.]ci)/[\\w./*-]*[\\w/*]"
  unique(unlist(regmatches(text, gregexpr(pattern, text, perl = TRUE))))
}

# Those among the files that are not there.
missing_files <- function(files, root)
  files[!lengths(lapply(file.path(root, sub("/$", "", files)), Sys.glob))]

test_that("files that ARCHITECTURE.md and tests/README.md name exist", {
  root <- checkout()
  for (page in c("ARCHITECTURE.md", "tests/README.md")) {
    files <- named_files(text_of(root, page))
    expect_gt(length(files), 50)
    expect_identical(missing_files(files, root), character())
  }
  expect_identical(missing_files(c("R/x.R", "R/"), root), "R/x.R")
  expect_identical(named_files(c("`src/core/none.c`, R/x.R.", "+++ src/new.c")),
                   c("src/core/none.c", "R/x.R"))
})

test_that("ARCHITECTURE.md answers at least twenty questions, each by a file", {
  rows <- grep("^\\| (Where|Which) ", text_of(checkout()), value = TRUE)
  expect_gte(length(rows), 20)
  answers <- sub("^\\|[^|]*\\|", "", rows)
  expect_true(all(lengths(lapply(answers, named_files)) > 0))
})

test_that("new files in the diffs of ARCHITECTURE.md are in tools/toys", {
  root <- checkout()
  text <- text_of(root)
  new <- sub("^\\+\\+\\+ (\\S+).*", "\\1", text[startsWith(text, "+++")])
  expect_length(new, 11)
  expect_identical(new[!file.exists(file.path(root, "tools", "toys", new))], character())
})

test_that("tests/README.md has a line for each test file, with a place to look", {
  root <- checkout()
  lines <- grep("^\\| `", text_of(root, "tests/README.md"), value = TRUE)
  files <- list.files(file.path(root, "tests", "testthat"), "^test-.*[.]R$")
  expect_setequal(paste0("test-", sub("^\\| `([^`]*)`.*", "\\1", lines), ".R"), files)
  expect_length(lines, length(files))
  place <- sub("^([^|]*\\|){3}", "", lines)
  expect_true(all(grepl("`[A-Za-z]+[./][^`]*`", place)))
})

test_that("the contract of models has six groups of at most eight parts, each with a sentence", {
  expect_length(CONTRACT_PARTS, 6)
  expect_lte(max(lengths(CONTRACT_PARTS)), 8)
  words <- vapply(unlist(unname(CONTRACT_PARTS), recursive = FALSE), `[[`, "", "words")
  expect_false(anyDuplicated(names(words)) > 0)
  expect_true(all(nchar(words) > 10))
})

test_that("ARCHITECTURE.md has fewer than 300 lines of at most 100 columns", {
  text <- text_of(checkout())
  expect_lt(length(text), 300)
  expect_lte(max(nchar(text)), 100)
})

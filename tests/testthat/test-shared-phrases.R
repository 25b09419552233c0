# tools/shared-phrases.R, on made-up texts. An installed package and R CMD check do not have it.

tool <- function() {
  file <- file.path("..", "..", "tools", "shared-phrases.R")
  skip_if_not(file.exists(file), "not in a checkout")
  own <- new.env()
  sys.source(file, own)
  own
}

text <- c("The grey cat walks along the old garden wall at night, and it",
          "looks for 3 small mice [7], which $\\mathrm{live}$ in the hay-",
          "stack behind the barn.")

test_that("eight words in sequence are found, with their line, and seven are not", {
  shared <- tool()$shared_phrases
  found <- shared(c("# Nothing.", "# A bird sees the grey cat", "# walks along the old garden."),
                  list(fable = text))
  expect_identical(found, data.frame(line = 2L, text = "fable",
                                     words = "the grey cat walks along the old garden"))
  expect_equal(nrow(shared("The grey cat walks along the old fence.", list(fable = text))), 0)
  expect_equal(nrow(shared(character(), list(fable = text))), 0)
})

test_that("case, punctuation, line breaks, numbers, tags and LaTeX are ignored", {
  shared <- tool()$shared_phrases
  same <- list(
    c("#' looks FOR 40 small *mice*, which", "#' \\emph{live} in the haystack"),
    "paste0(\"and it looks for\", \" small mice\\n\", \"which live\")",
    "| and | it looks <b>for</b> | small mice | which live |"
  )
  for (document in same) expect_equal(nrow(shared(document, list(fable = text))), 1)
  # overlapping sequences are one finding, two texts are two
  found <- shared(text, list(fable = text, other = text[1]))
  expect_identical(found$text, c("fable", "other"))
  expect_match(found$words[1], "^the grey cat .* haystack behind the barn$")
})

test_that("quoted numbers, titles and references are ignored", {
  own <- tool()
  numbers <- "at 1 2 3 4 5 6 7 8 9 10"
  expect_equal(nrow(own$shared_phrases(numbers, list(table = numbers))), 0)
  title <- "The grey cat walks\n along the old garden wall"
  cited <- "As *The grey cat walks along the old garden wall* says, it rains."
  expect_equal(nrow(own$shared_phrases(cited, list(fable = cited), title)), 0)
  expect_equal(nrow(own$shared_phrases(cited, list(fable = cited))), 1)
  # words on both sides of a title are no sequence
  expect_equal(nrow(own$shared_phrases("One two three four the grey cat five six seven eight",
                                       list(a = "one two three four five six seven eight"),
                                       "the grey cat")), 0)
  comment <- c("#' Text.", "#' @references", "#' The book.", "#' @export", "f <- 1", "# The end.")
  expect_identical(own$without_references(comment),
                   c("#' Text.", "", "", "#' @export", "f <- 1", "# The end."))
  paper <- c("Some words.", "## References", "1. The book.", "# Appendix A", "More words.")
  expect_identical(own$without_list(paper), c("Some words.", "# Appendix A", "More words."))
})

test_that("as a program it names file and line, and its status is 1 if it has found something", {
  tool()
  folder <- tempfile("phrases")
  dir.create(file.path(folder, "papers"), recursive = TRUE)
  dir.create(file.path(folder, "checkout"))
  on.exit(unlink(folder, recursive = TRUE))
  writeLines(text, file.path(folder, "papers", "fable.txt"))
  page <- file.path(folder, "checkout", "README.md")
  run <- function() suppressWarnings(system2(
    file.path(R.home("bin"), "Rscript"),
    c("../../tools/shared-phrases.R", file.path(folder, c("papers", "checkout"))), stdout = TRUE))
  writeLines(c("# Mice", "", text[2:3]), page)
  said <- run()
  expect_match(said[1], "^README.md:3: shared with fable.txt: looks for small mice")
  expect_equal(attr(said, "status"), 1)
  writeLines("Mice are small.", page)
  expect_identical(as.vector(run()), "1 documents, 1 texts, 0 shared phrases")
})

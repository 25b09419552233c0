# Rows from text files: fields, types, levels, and errors that name column, row and value.

text_file <- function(...) {
  file <- tempfile(fileext = ".csv")
  writeLines(c(...), file)
  file
}
read_text <- function(lines, ...) collect_rows(rows_csv(text_file(lines), ...))

set.seed(test_seed(13))
table <- data.frame(
  y = rnorm(50) * 10^sample(-300:300, 50), n = as.double(1:50), flag = rep(c(TRUE, FALSE), 25),
  text = sample(c("plain", "with, comma", "with \"quotes\"", "two\nlines", " blank ", ""), 50, TRUE)
)

# Quotes are doubled, and text with line ends stays as it is.
write_quoted <- function(table, file, sep = ",", dec = ".") {
  table$y <- sub(".", dec, sprintf("%.17g", table$y), fixed = TRUE)
  table$text <- paste0("\"", gsub("\"", "\"\"", table$text), "\"")
  lines <- do.call(paste, c(unname(table), sep = sep))
  cat(c(paste(names(table), collapse = sep), lines), file = file, sep = "\n")
}

test_that("fields are read back exactly, whatever the block, separator and compression", {
  plain <- tempfile()
  write_quoted(table, plain)
  for (block in c(1, 3, 7, 1000)) expect_identical(collect_rows(rows_csv(plain, block = block)),
                                                   table)
  other <- tempfile()
  write_quoted(table, other, ";", ",")
  expect_identical(collect_rows(rows_csv(other, sep = ";", dec = ",")), table)
  for (open in list(gzfile, bzfile, xzfile)) {
    packed <- tempfile()
    con <- open(packed, "wb")
    writeLines(readLines(plain), con)
    close(con)
    expect_identical(collect_rows(rows_csv(packed)), table)
  }
  windows <- tempfile()
  con <- file(windows, "wb")
  writeBin(charToRaw("\ufeffa,b\r\n1,x\r\n2,y\r\n"), con)
  close(con)
  expect_identical(collect_rows(rows_csv(windows)), data.frame(a = c(1, 2), b = c("x", "y")))
})

test_that("numbers are those of R", {
  values <- c("1", "-1.5e-3", " 7", "8 ", "1e400", "-inf", "0x1F", "NaN", "1E5", ".5", "5.")
  got <- read_text(c("a,b", paste0(values, ",1")))
  expect_identical(got$a, as.double(trimws(values)))
  set.seed(test_seed())
  x <- c(rnorm(2e4) * 2^sample(-1000:1000, 2e4, TRUE), .Machine$double.xmin, 4.9e-324, 0.1 + 0.2)
  expect_identical(read_text(c("x,y", sprintf("%.17g,0", x)))$x, x)
})

test_that("names, missing values, empty lines and connections", {
  expect_identical(read_text(c("1,a", "2,b"), header = FALSE),
                   data.frame(V1 = c(1, 2), V2 = c("a", "b")))
  expect_named(read_text(c(",my name,x", "1,2,3")), c("V1", "my name", "x"))
  got <- read_text(c("", "# a comment", "a,b,c", "1,NA,T", "", ",-,", "3,x,F"), na = c("NA", "-"),
                   skip = 2)
  expect_identical(got, data.frame(a = c(1, NA, 3), b = c(NA, NA, "x"), c = c(TRUE, NA, FALSE)))
  # a column without values in its first rows has a type once it has values
  late <- c("a,b", sprintf("%d,", 1:10100), "10101,word")
  expect_identical(utils::tail(read_text(late)$b, 1), "word")
  con <- file(text_file("skipped", "a,b", "1,2"), "rt")
  readLines(con, 1)
  source <- rows_csv(con)
  expect_output(print(source), "connection .*only once")
  expect_identical(collect_rows(source), data.frame(a = 1, b = 2))
  expect_true(isOpen(con))
  close(con)
  expect_error(collect_rows(source), "only once")
})

test_that("types and levels can be given, and print() says what they are", {
  file <- text_file("zip,colour,x", "01234,red,1", "98765,blue,2")
  source <- rows_csv(file, types = c(zip = "text"),
                     levels = list(colour = c("red", "blue", "green")))
  expect_output(print(source), "when they have been read\n.*number not known")
  got <- collect_rows(source)
  expect_identical(got$zip, c("01234", "98765"))
  expect_identical(got$colour, factor(c("red", "blue"), c("red", "blue", "green")))
  expect_output(print(source), "zip (text), colour (text), x (number)", fixed = TRUE)
  fit <- evidence(linear_regression(x ~ colour, sigma = 1), source, seed = test_seed())
  expect_true("colourgreen" %in% colnames(fit$draws))
})

test_that("a bad value names its column, its row and itself", {
  refused <- function(message, lines, ...) {
    for (block in c(fast_or_slow(100, 1), 10000))
      expect_error(read_text(lines, block = block, ...), message, fixed = TRUE,
                   class = "logevidence_error")
  }
  many <- sprintf("%d,%s", 1:12000, rep(c("u", "v"), 6000))
  number <- replace(many, 11000, "\"1.5 m\",u")
  refused("numbers in the column `a`, as in its first rows, not \"1.5 m\" in row 11000.",
          c("a,b", number))
  refused("numbers in the column `a`, as in its first rows, not \"1,5\" in row 2.",
          c("a;b", "1.5;2", "1,5;2"), sep = ";", types = c(a = "number"))
  refused("known levels in `b` (\"u\", \"v\"), not \"w\" in row 11000.",
          c("a,b", replace(many, 11000, "1,w")), levels = list(b = c("u", "v")))
  refused("not NA in column `b`, row 3.", c("a,b", "1,u", "2,v", "3,NA"),
          levels = list(b = c("u", "v")))
  refused("TRUE or FALSE in the column `b`, as in its first rows, not \"maybe\" in row 10500.",
          c("a,b", replace(rep("1,T", 11000), 10500, "1,maybe")))
  refused("2 fields in each row, not 1 in row 11000.", c("a,b", replace(many, 11000, "7")))
  refused("2 fields in each row, not 3 in row 2.", c("a,b", "1,2", "1,2,3"))
  refused("an end of each quote, not one in the column `b`", c("a,b", "1,2", "2,\"x", "3,4"))
  refused("must have the column `c`", c("a,b", "1,2"), levels = list(c = c("u", "v")))
  refused("at least one row", c("a,b"))
  refused("at least one row", character())
  refused("distinct column names, not `a` twice", c("a,a", "1,2"))
  expect_error(evidence(linear_regression(a ~ b), rows_csv(text_file("a,b", "1,2", "2,NA"))),
               "not NA in column `b`, row 2.", fixed = TRUE)
})

test_that("arguments are checked at once", {
  file <- text_file("a,b", "1,2")
  expect_error(rows_csv("no such file.csv"), "`file` must be a file that exists, not \"no such")
  expect_error(rows_csv(1), "`file` must be the path of a file, a URL or a connection, not 1")
  expect_error(rows_csv(file, sep = "::"), "`sep` must be one character")
  expect_error(rows_csv(file, dec = ","), "`dec` must be another character than `sep`")
  expect_error(rows_csv(file, types = c(a = "date")), "`types` must be a vector of")
  expect_error(rows_csv(file, levels = list(b = "u")),
               "`levels\\$b` must be at least two distinct texts")
  expect_error(rows_csv(file, block = 0), "`block` must be a whole number between 1 and")
})

test_that("the file is closed when a run ends or fails", {
  before <- nrow(showConnections())
  line <- linear_regression(a ~ b, sigma = 1)
  evidence(line, rows_csv(text_file("a,b", "1,2", "2,3")), seed = test_seed())
  expect_error(evidence(line, rows_csv(text_file("a,b", "1,2", "2,NA")), seed = test_seed()))
  expect_error(evidence(line, rows_csv(text_file("a,a", "1,2")), seed = test_seed()))
  expect_identical(nrow(showConnections()), before)
})

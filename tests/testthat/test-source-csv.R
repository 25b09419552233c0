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

test_that("numbers are read as R reads them", {
  values <- c("1", "-1.5e-3", " 7", "8 ", "1e400", "-inf", "0x1F", "NaN", "1E5", ".5", "5.")
  got <- read_text(c("a,b", paste0(values, ",1")))
  expect_identical(got$a, as.double(trimws(values)))
  set.seed(test_seed())
  x <- c(rnorm(2e4) * 2^sample(-1000:1000, 2e4, TRUE), .Machine$double.xmin, 4.9e-324, 0.1 + 0.2)
  expect_identical(read_text(c("x,y", sprintf("%.17g,0", x)))$x, x)
})

test_that("names, missing values, empty lines and connections are read as documented", {
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

test_that("types and levels can be given, and print() shows them", {
  file <- text_file("zip,colour,x", "01234,red,1", "98765,blue,2")
  source <- rows_csv(file, types = c(zip = "text"),
                     levels = list(colour = c("red", "blue", "green")))
  expect_output(print(source), "when they have been read\n.*number not known")
  got <- collect_rows(source)
  expect_identical(got$zip, I(c("01234", "98765")))
  expect_identical(got$colour, factor(c("red", "blue"), c("red", "blue", "green")))
  expect_output(print(source), "zip (text), colour (text), x (number)", fixed = TRUE)
  fit <- evidence(linear_regression(x ~ colour, sigma = 1,
                                    prior_sd = 1), source, seed = test_seed())
  expect_true("colourgreen" %in% colnames(fit$draws))
})

test_that("a wrong value is refused with its column, its row and the value", {
  refused <- function(message, lines, ...) {
    for (block in c(fast_or_slow(100, 1), 10000))
      expect_error(read_text(lines, block = block, ...), message, fixed = TRUE,
                   class = "logevidence_error")
  }
  many <- sprintf("%d,%s", 1:12000, rep(c("u", "v"), 6000))
  number <- replace(many, 11000, "\"1.5 m\",u")
  refused("or other `types`), not \"1.5 m\" in line 11001, row 11000.",
          c("a,b", number))
  refused("as in its first rows (or a text of `na`, or other `types`), not \"1,5\" in line 3",
          c("a;b", "1.5;2", "1,5;2"), sep = ";", types = c(a = "number"))
  refused(paste("known levels in `b` (\"u\", \"v\": those of the first rows, or `levels` of the",
                "source), not \"w\" in row 11000."),
          c("a,b", replace(many, 11000, "1,w")), levels = list(b = c("u", "v")))
  refused("not NA in column `b`, row 3.", c("a,b", "1,u", "2,v", "3,NA"),
          levels = list(b = c("u", "v")))
  refused("or other `types`), not \"maybe\" in line 10501, row 10500.",
          c("a,b", replace(rep("1,T", 11000), 10500, "1,maybe")))
  refused("2 fields in each row, not 1 in line 11001, row 11000.",
          c("a,b", replace(many, 11000, "7")))
  refused("2 fields in each row, not 3 in line 3, row 2.", c("a,b", "1,2", "1,2,3"))
  refused("an end of each quote, not one in the column `b`", c("a,b", "1,2", "2,\"x", "3,4"))
  refused("must have the column `c`", c("a,b", "1,2"), levels = list(c = c("u", "v")))
  refused("at least one row", c("a,b"))
  refused("at least one row", character())
  refused("distinct column names, not `a` twice", c("a,a", "1,2"))
  expect_error(evidence(linear_regression(a ~ b,
                                          prior_sd = 1), rows_csv(text_file("a,b", "1,2", "2,NA"))),
               "not NA in column `b`, row 2.", fixed = TRUE)
})

test_that("arguments of rows_csv() are checked before the file is read", {
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

test_that("a connection that cannot be read is refused at once", {
  file <- tempfile()
  con <- file(file, "w")
  expect_error(rows_csv(con), "not one that is open for writing", class = "logevidence_error")
  expect_true(isOpen(con))
  close(con)
  expect_error(rows_csv(con), "not one that has been closed", class = "logevidence_error")
  con <- file(file)
  expect_s3_class(rows_csv(con), "rows_source")
  close(con)
  unlink(file)
})

test_that("the file is closed when a run ends or fails", {
  before <- nrow(showConnections())
  line <- linear_regression(a ~ b, sigma = 1, prior_sd = 1)
  evidence(line, rows_csv(text_file("a,b", "1,2", "2,3")), seed = test_seed())
  expect_error(evidence(line, rows_csv(text_file("a,b", "1,2", "2,NA")), seed = test_seed()))
  expect_error(evidence(line, rows_csv(text_file("a,a", "1,2")), seed = test_seed()))
  expect_identical(nrow(showConnections()), before)
})

# Files that are not what they seem ----------------------------------------------------------------

cars_of <- function(n = 3000) {
  set.seed(test_seed(5))
  data.frame(speed = round(runif(n, 4, 25), 6), dist = round(rnorm(n, 40, 25), 6))
}

packed_with <- function(open, data) {
  file <- tempfile(fileext = ".csv")
  con <- open(file, "w")
  utils::write.csv(data, con, row.names = FALSE)
  close(con)
  readBin(file, "raw", file.size(file))
}

write_bytes <- function(...) {
  file <- tempfile(fileext = ".csv")
  writeBin(c(...), file)
  file
}

test_that("a compressed file that was cut short or is damaged is an error", {
  data <- cars_of()
  line <- linear_regression(dist ~ speed, prior_sd = 1)
  for (open in list(gzfile, bzfile, xzfile)) {
    bytes <- packed_with(open, data)
    n <- length(bytes)
    expect_equal(collect_rows(rows_csv(write_bytes(bytes))), data)
    # two parts are one file
    both <- write_bytes(bytes, packed_with(open, data))
    expect_identical(nrow(collect_rows(rows_csv(both, types = c(speed = "text", dist = "text")))),
                     2L * nrow(data) + 1L)
    broken <- bytes
    broken[n %/% 2] <- xor(broken[n %/% 2], as.raw(16))
    cut <- lapply(c(n - 1, n - 9, n %/% 2, n %/% 3), function(k) write_bytes(bytes[seq_len(k)]))
    files <- c(cut, write_bytes(broken), write_bytes(bytes, bytes[1:(n %/% 2)]))
    for (file in files) {
      rows <- function() rows_csv(file, types = c(speed = "text", dist = "text"))
      refused(collect_rows(rows()), "`file` must be whole")
      refused(collect_rows(rows()), file)
    }
    refused(evidence(line, rows_csv(files[[3]]), seed = 1), "after line ")
    con <- base::file(files[[3]])
    refused(collect_rows(rows_csv(con)), "`file` must be whole")
    close(con)
  }
  # what was read before the end of the file can be used
  cut <- write_bytes(packed_with(gzfile, data)[1:20000])
  e <- tryCatch(evidence(line, rows_csv(cut), seed = 1), error = identity)
  expect_s3_class(e$fit, "incomplete_evidence")
})

test_that("a zero byte is an error that names its line", {
  text <- charToRaw("a,b\n1,2\n3,4\n5,6\n")
  text[14] <- as.raw(0)
  file <- write_bytes(text)
  refused(collect_rows(rows_csv(file)), "line 4 of")
  con <- base::file(file, "rt")
  refused(collect_rows(rows_csv(con)), "line 4 of")
  close(con)
})

test_that("text in other encodings is read, or is an error that names the line", {
  text <- "a,b\n1,caf\u00e9\n2,na\u00efve \U0001F600\n3,b\n"
  latin <- iconv("a,b\n1,caf\u00e9\n2,na\u00efve\n3,b\n", "UTF-8", "latin1", toRaw = TRUE)[[1]]
  file <- write_bytes(latin)
  refused(collect_rows(rows_csv(file)), "`file` must be text in UTF-8, and line 2 of")
  refused(collect_rows(rows_csv(file)), "`encoding = \"latin1\"`")
  words <- c("caf\u00e9", "na\u00efve", "b")
  expect_identical(collect_rows(rows_csv(file, encoding = "latin1"))$b, words)
  if (l10n_info()$`UTF-8`)
    expect_identical(collect_rows(rows_csv(base::file(file, encoding = "latin1")))$b, words)
  words[2] <- "na\u00efve \U0001F600"
  for (to in c("UTF-16LE", "UTF-16BE", "UTF-32LE", "UTF-32BE")) {
    bytes <- iconv(text, "UTF-8", to, toRaw = TRUE)[[1]]
    read <- function(...) collect_rows(rows_csv(...))
    mark <- BYTE_ORDER_MARKS[[to]]
    expect_identical(read(write_bytes(mark, bytes))$b, words)
    expect_identical(read(write_bytes(bytes), encoding = to)$b, words)
    expect_identical(read(write_bytes(bytes), encoding = substr(to, 1, 6))$b, words)
    refused(read(write_bytes(bytes)), "`encoding = \"UTF-16\"`")
    refused(read(write_bytes(mark, bytes[1:21])), "must be text")
  }
  # letters that lie in two blocks of bytes
  long <- paste0("a,b\n", strrep("1,\U0001F600\U0001F600\n", 90000))
  bytes <- iconv(long, "UTF-8", "UTF-16LE", toRaw = TRUE)[[1]]
  got <- collect_rows(rows_csv(write_bytes(BYTE_ORDER_MARKS[["UTF-16LE"]], bytes)))
  expect_identical(unique(got$b), "\U0001F600\U0001F600")
  expect_identical(nrow(got), 90000L)
  refused(rows_csv(file, encoding = "no such"), "`encoding` must be an encoding that iconv() knows")
  refused(rows_csv(con <- base::file(file), encoding = "latin1"), "must be that of the connection")
  close(con)
})

test_that("texts in a column of numbers are not levels of a factor", {
  data <- cars_of(500)
  spoilt <- function(text, at, ...) {
    data$speed[at] <- text
    file <- tempfile(fileext = ".csv")
    utils::write.csv(data, file, row.names = FALSE, quote = FALSE)
    rows_csv(file, ...)
  }
  line <- linear_regression(dist ~ speed, sigma = 25, prior_sd = 1)
  for (text in c("N/A", "-", "?", "n.a.")) {
    refused(evidence(line, spoilt(text, 7)),
            paste0("`speed`, as in most of its rows, not \"", text, "\" in line 8 of the file"))
    refused(evidence(line, spoilt(text, 7)), paste0("`na = c(\"NA\", \"", text, "\")`"))
    # many of them, too
    refused(evidence(line, spoilt(text, 7:200)), "in line 8 of the file")
  }
  # what the sentence says helps: then it is a missing value
  refused(evidence(line, spoilt("N/A", 7, na = c("NA", "N/A"))), "no missing values")
  expect_identical(collect_rows(spoilt("x", 7, types = c(speed = "text")))$speed[7], I("x"))
  # other columns may have what they want
  mean_alone <- linear_regression(dist ~ 1, sigma = 25, prior_sd = 50)
  expect_s3_class(evidence(mean_alone, spoilt("x", 7), seed = 1), "evidence")
  # in later rows
  refused(read_text(c("speed,dist", rep("1,2", 10500), "-,3")),
          "(or a text of `na`, or other `types`), not \"-\" in line 10502, row 10501.")
})

test_that("a column of text with a level for each row is refused", {
  id <- sprintf("%d,%s", 1:60, paste0("id", 1:60))
  file <- text_file("y,id", id)
  line <- function(formula) linear_regression(formula, sigma = 20, prior_sd = 30)
  refused(evidence(line(y ~ id), rows_csv(file)),
          "not `id` with 60 of them in the first 60 rows")
  expect_s3_class(evidence(line(y ~ 1), rows_csv(file), seed = 1), "evidence")
  expect_identical(nrow(collect_rows(rows_csv(file, types = c(id = "text")))), 60L)
  expect_identical(nrow(collect_rows(rows_csv(file, levels = list(id = paste0("id", 1:60))))), 60L)
  few <- text_file("y,id", rep(id[1:20], 2))
  expect_s3_class(evidence(line(y ~ id), rows_csv(few), seed = 1), "evidence")
})

test_that("long values are not printed whole", {
  long <- strrep("x", 1e5)
  for (lines in list(c("a,b", "1,2", paste0(long, ",2"), "3,4"),
                     c("a,b", rep("1,2", 11000), paste0(long, ",2")))) {
    e <- tryCatch(read_text(lines), error = identity)
    expect_match(conditionMessage(e), "not \"x{40}[.]{3}\"")
    expect_lt(nchar(conditionMessage(e)), 500)
  }
  e <- tryCatch(read_text(c("a,b", "1,u", paste0("2,", long)), levels = list(b = c("u", "v"))),
                error = identity)
  expect_lt(nchar(conditionMessage(e)), 200)
  expect_identical(show_text(paste0(strrep("\u00e9", 50))),
                   paste0("\"", strrep("\u00e9", 40), "...\""))
  expect_no_error(show_text("caf\xe9"))
})

test_that("a file with very many columns is opened in a short time", {
  wide <- function(p) {
    set.seed(test_seed(6))
    body <- vapply(1:5, function(i) paste(round(rnorm(p), 3), collapse = ","), "")
    text_file(paste0("v", seq_len(p), collapse = ","), body)
  }
  few <- wide(2e4)
  many <- wide(1e5)
  # the time of five times as many columns, not 25 times
  seconds <- function(file) system.time(got <- collect_rows(rows_csv(file)))[["user.self"]]
  one <- max(seconds(few), 0.2)
  expect_lt(seconds(many), 15 * one)
})

test_that("a pipe whose command fails or is killed is an error", {
  skip_on_os("windows")
  file <- tempfile(fileext = ".csv")
  on.exit(unlink(file))
  utils::write.csv(cars, file, row.names = FALSE)
  model <- linear_regression(dist ~ speed, sigma = 15, prior_sd = 10)
  fitted <- function(end, lines = 51)
    evidence(model, rows_csv(pipe(paste0("head -", lines, " ", file, "; ", end))), seed = 1)
  expect_identical(fitted("exit 0")$n, 50L)
  refused(fitted("exit 3"), "ended with status 3 after 51 lines")
  refused(fitted("exit 3", 20), "ended with status 3 after 20 lines")
  refused(fitted("kill -9 $$", 20), "ended with signal 9 after 20 lines")
})

test_that("a FIFO is read as it is written, and waiting for its writer can be interrupted", {
  skip_on_os("windows")
  fifo <- tempfile("fifo")
  skip_if(system2("mkfifo", fifo, stderr = FALSE) != 0, "there is no mkfifo")
  file <- tempfile(fileext = ".csv")
  utils::write.csv(cars, file, row.names = FALSE)
  on.exit(unlink(c(fifo, file)))
  fit <- function(path)
    evidence(linear_regression(dist ~ speed), rows_csv(path), seed = test_seed())
  # the writer comes late, pauses, and comes in two
  system(sprintf("(sleep 0.2; (head -20 %s; sleep 0.3; tail -n +21 %s) > %s) &", file, file, fifo))
  expect_identical(fit(fifo)$log_evidence, fit(file)$log_evidence)
  system(sprintf("(sleep 0.2; : > %s) &", fifo))
  refused(fit(fifo), "at least one row")
  skip_on_cran()
  # no writer, and one that does not go on
  for (writer in c("", sprintf("(head -20 %s; sleep 2) > %s &", file, fifo))) {
    took <- system.time(stopped <- tryCatch({
      system(sprintf("%s (sleep 0.5; kill -INT %d) &", writer, Sys.getpid()))
      fit(fifo)
      "the call has ended"
    }, interrupt = function(i) TRUE, error = conditionMessage))
    # if the call has ended before the signal, this must not be outside when it comes
    if (!isTRUE(stopped)) tryCatch(Sys.sleep(5), interrupt = function(i) NULL)
    expect_true(stopped)
    expect_lt(took[["elapsed"]], 1.5)
  }
})

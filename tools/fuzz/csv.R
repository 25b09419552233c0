# Bytes of text files: a valid file with bytes changed, or pieces put together at random.

CSV_PIECES <- c(",", ",", ",", "\n", "\n", "\r\n", "\r", "\"", "\"\"", "1", "2.5", "-3e5", "NA",
                "y", "x", "a", "TRUE", "F", " ", "\t", ";", "1e999", "0x1p3", "nan", "inf",
                "1,5", "'",
                "\u00e9", "\ufeff", "# no", "\\", "1d5", "--1", "+", ".", "1e", "1_000", "NULL",
                "2147483648", "123456789012345678901234567890")

csv_text <- function() {
  n <- few_rows()
  frame <- data.frame(y = signif(stats::rnorm(n), 3), x = sample(c("a", "b"), n, TRUE),
                      z = stats::rpois(n, 2))
  sep <- pick(c(",", ",", ",", ",", ",", ";"))
  lines <- c(paste(c("y", "x", "z"), collapse = sep),
             if (n) do.call(paste, c(frame, sep = sep)))
  paste0(paste(lines, collapse = pick(c("\n", "\n", "\r\n"))), pick(c("\n", "", "\r\n")))
}

odd_bytes <- function(bytes) {
  for (k in seq_len(pick(list(0, 0, 1, 1, 2, 4)))) {
    n <- length(bytes)
    at <- sample.int(n + 1, 1) - 1
    head <- utils::head(bytes, at)
    tail <- utils::tail(bytes, n - at)
    bytes <- switch(sample.int(7, 1),
      c(head, as.raw(sample(0:255, 1)), tail),
      c(head, as.raw(sample(0:255, 1)), utils::tail(tail, -1)),
      c(head, charToRaw(enc2utf8(pick(CSV_PIECES))), tail),
      head,
      c(head, utils::tail(tail, -sample.int(5, 1))),
      c(head, utils::head(tail, 10), tail),
      c(head, as.raw(0), tail))
  }
  bytes
}

CSV_CASES <- list(
  lacks = function() NULL,
  prepare = function() NULL,
  make = function() {
    bytes <- if (chance(0.8)) charToRaw(csv_text())
    else charToRaw(enc2utf8(paste(collapse = "", c(
      if (chance(0.7)) "y,x\n", sample(CSV_PIECES, sample.int(60, 1), TRUE)))))
    bytes <- odd_bytes(bytes)
    packing <- if (chance(0.2)) pick(c("gzip", "bzip2", "xz")) else "none"
    if (packing != "none") bytes <- memCompress(bytes, packing)
    # R's own in-memory form of gzip has no header, and is bytes like others
    if (packing != "none" && chance(0.3)) bytes <- odd_bytes(bytes)
    settings <- c(
      if (chance(0.1)) list(header = pick(list(TRUE, FALSE))),
      if (chance(0.1)) list(sep = pick(c(";", "\t", ",", "\"", " ", "\n", "y", "1"))),
      if (chance(0.1)) list(quote = pick(c("", "'", "\"", ",", "1"))),
      if (chance(0.1)) list(dec = pick(c(",", ".", "1", "-", "e"))),
      if (chance(0.2)) list(na = pick(list("", character(), c("a", "1"), "\u00e9", "NA"))),
      if (chance(0.1)) list(skip = pick(c(0, 1, 2, 100))),
      if (chance(0.1)) list(types = pick(list(c(y = "text"), c(x = "number"), c(y = "logical"),
                                              c(z = "text"), c(y = "number")))),
      if (chance(0.1)) list(levels = pick(list(list(x = c("a", "b")), list(y = "1"), list(x = 1)))),
      if (chance(0.3)) list(block = pick(c(1, 2, 5))),
      if (chance(0.1)) list(encoding = pick(c("latin1", "UTF-16", "UTF-16LE", "UTF-32", "ASCII",
                                              "UCS-2"))))
    model <- pick(expression(gaussian_mean(~ y), gaussian_mean(~ y),
                             linear_regression(y ~ z, sigma = 1, prior_sd = 1),
                             linear_regression(y ~ x + z, sigma = 1, prior_sd = 1),
                             softmax_regression(x ~ y, prior_sd = 1), gaussian_mean(~ V1)))
    source <- as.call(c(quote(rows_csv), quote(file), settings))
    list(objects = list(bytes = bytes), call = bquote({
      file <- tempfile()
      writeBin(bytes, file)
      rows <- .(source)
      evidence(.(model), rows, sgais(particles = 10, steps = 1), seed = 1, progress = FALSE,
               time_limit = 3, collect = .(chance(0.3)))
    }))
  })

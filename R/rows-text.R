# Lines of text from files, URLs and connections, for R/rows-csv.R.
#
# R's connections decompress. They say nothing of a compressed file that was cut short, and drop
# what comes after a zero byte, so bytes are read and split into lines here (src/bridge/csv.c), and
# at the end the file is checked. Connections of the user may be in text mode, where only lines can
# be read.

#' Lines of a text
#'
#' @param known An environment that lasts as long as the source.
#' @return A list: `close()`; `read(n, before)`, which returns about `n` further `lines`, whether
#' the text has `ended`, and the `failure` that prevents reading on, a condition (`before` is the
#' number of lines so far); and `verify()`, an error if a compressed file is damaged anywhere.
#' @noRd
open_text <- function(file, encoding, known) {
  if (!is.character(file)) return(open_connection(file, known))
  kind <- if (is_url(file)) "URL" else kind_of_file(file)
  if (kind == "FIFO") return(open_fifo(file, encoding, known))
  packing <- if (kind == "file") packing_of(file) else "none"
  con <- if (kind == "URL") open_url(file)
  else if (packing == "none") base::file(file, "rb", raw = TRUE)
  else gzfile(file, "rb")
  text <- new_text(file, encoding, packing, con)
  list(read = function(n, before) read_text(text, before, known), close = function() close(con),
       verify = function() if (text$packed) check_packed(file, packing, known))
}

# Waits for its writer, and can be interrupted.
open_fifo <- function(file, encoding, known) {
  con <- tryCatch(.Call(ffi_fifo_open, path.expand(file)), error = function(e)
    fail("`file` must be one that can be read: ", dQuote(file, FALSE), ": ", conditionMessage(e),
         "."))
  text <- new_text(file, encoding, "none", con)
  text$fifo <- TRUE
  list(read = function(n, before) read_text(text, before, known),
       close = function() .Call(ffi_fifo_close, con), verify = function() NULL)
}

new_text <- function(file, encoding, packing, con) {
  list2env(list(file = file, encoding = encoding, packing = packing, packed = packing != "none",
                fifo = FALSE, con = con, begun = FALSE, rest = raw(), odd = NULL, size = 0,
                sum = 0),
           parent = emptyenv())
}

# The kind of a file: of the file itself if it is a link.
kind_of_file <- function(file)
  .Call(ffi_path_kind, suppressWarnings(normalizePath(path.expand(file))))[1]

open_url <- function(file) if (grepl("[.]gz$", file)) gzcon(url(file, "rb")) else url(file, "rb")

check_encoding <- function(encoding, file) {
  rule <- "an encoding that iconv() knows, such as \"latin1\""
  if (!is_one_string(encoding)) refuse(encoding, "encoding", rule)
  tryCatch(iconv("a", encoding, "UTF-8"), error = function(e) refuse(encoding, "encoding", rule))
  if (!is.character(file) && !is_utf8(encoding))
    fail("`encoding` must be that of the connection, such as file(name, encoding = ",
         dQuote(encoding, FALSE), ").")
  encoding
}

is_utf8 <- function(encoding) grepl("^utf-?8$", encoding, ignore.case = TRUE)

# Bytes -------------------------------------------------------------------------------------------

# So many bytes are read at a time; more of lines that are longer.
TEXT_BYTES <- 1e6

read_text <- function(text, before, known) {
  bytes <- tryCatch(read_bytes(text), error = identity, warning = identity)
  if (inherits(bytes, "condition"))
    return(no_lines(if (text$packed) cut_short(text$file, before) else bytes))
  ended <- length(bytes) == 0
  whole <- !ended || !text$packed || is_whole(text, known)
  bytes <- in_utf8(text, bytes, ended)
  if (is.null(bytes)) return(no_lines(other_encoding(text, before + 1)))
  if (length(text$rest)) bytes <- c(text$rest, bytes)
  # the last line of a file that was cut short was cut short, too
  got <- .Call(ffi_csv_lines, bytes, ended && whole)
  text$rest <- if (got$used < length(bytes)) bytes[(got$used + 1):length(bytes)] else raw()
  found <- valid_lines(text, got, before)
  if (!whole) found$failure <- cut_short(text$file, before + length(found$lines))
  c(found, list(ended = ended))
}

read_bytes <- function(text) {
  most <- max(TEXT_BYTES, length(text$rest))
  if (text$fifo) return(.Call(ffi_fifo_read, text$con, as.double(most)))
  bytes <- readBin(text$con, "raw", most)
  if (text$packed) add_bytes(text, bytes)
  bytes
}

no_lines <- function(failure) list(lines = character(), ended = TRUE, failure = as_error(failure))

# Errors of R are completed by read_block().
as_error <- function(condition)
  if (inherits(condition, "error")) condition else simpleError(conditionMessage(condition))

failure_of <- function(...) tryCatch(fail(...), error = identity)

cut_short <- function(file, line) {
  failure <- failure_of("`file` must be whole: the compressed file ", dQuote(file, FALSE),
                        " ends too early or is damaged after line ", plain_number(line),
                        " of its text.")
  class(failure) <- c("logevidence_cut_short", class(failure))
  failure
}

# Lines before the first that is not valid, and why it is not.
valid_lines <- function(text, got, before) {
  lines <- got$lines
  failure <- if (got$nul > 0)
    failure_of("`file` must be text without zero bytes, and line ", plain_number(before + got$nul),
               " of ", dQuote(text$file, FALSE), " has one. If the text is UTF-16, use ",
               "`encoding = \"UTF-16\"`.")
  if (got$high) {
    # of wide letters in_utf8() has made UTF-8
    utf8 <- is_utf8(text$encoding) || unit_of(text$encoding) > 1
    if (!utf8) lines <- iconv(lines, text$encoding, "UTF-8")
    bad <- which(if (utf8) !validUTF8(lines) else is.na(lines))
    if (length(bad)) {
      failure <- other_encoding(text, before + bad[1])
      lines <- utils::head(lines, bad[1] - 1)
    }
  }
  list(lines = lines, failure = failure)
}

other_encoding <- function(text, line) {
  failure_of("`file` must be text in ", text$encoding, ", and line ", plain_number(line), " of ",
             dQuote(text$file, FALSE), " is not. Name its encoding",
             if (is_utf8(text$encoding)) ", such as `encoding = \"latin1\"`", ".")
}

# Encodings whose letters take more than one byte -------------------------------------------------

# Marks at the beginning of a file; a longer one first.
BYTE_ORDER_MARKS <- list("UTF-32LE" = as.raw(c(0xff, 0xfe, 0, 0)),
                         "UTF-32BE" = as.raw(c(0, 0, 0xfe, 0xff)),
                         "UTF-8" = as.raw(c(0xef, 0xbb, 0xbf)), "UTF-16LE" = as.raw(c(0xff, 0xfe)),
                         "UTF-16BE" = as.raw(c(0xfe, 0xff)))

#' Bytes in UTF-8, or in another encoding in which line ends are single bytes
#'
#' @return NULL if they are not valid.
#' @noRd
in_utf8 <- function(text, bytes, ended) {
  if (!text$begun) {
    text$begun <- TRUE
    bytes <- after_mark(text, bytes)
  }
  unit <- unit_of(text$encoding)
  if (unit == 1) return(bytes)
  bytes <- c(text$odd, bytes)
  n <- length(bytes) %/% unit * unit
  # the first half of a pair waits for the second
  if (n > 0 && unit == 2 && is_high_surrogate(bytes[n - 1:0], text$encoding)) n <- n - 2
  text$odd <- if (n < length(bytes)) bytes[(n + 1):length(bytes)]
  if (ended && length(text$odd)) return(NULL)
  if (n == 0) raw() else iconv(list(bytes[seq_len(n)]), text$encoding, "UTF-8", toRaw = TRUE)[[1]]
}

after_mark <- function(text, bytes) {
  for (encoding in names(BYTE_ORDER_MARKS)) {
    mark <- BYTE_ORDER_MARKS[[encoding]]
    if (!identical(utils::head(bytes, length(mark)), mark)) next
    text$encoding <- encoding
    return(utils::tail(bytes, -length(mark)))
  }
  # without a mark: the zero byte of an ASCII letter comes first or last
  if (grepl("^(UTF|UCS)-?(16|2|32|4)$", text$encoding, ignore.case = TRUE)) {
    big <- length(bytes) > 0 && bytes[1] == 0
    text$encoding <- paste0("UTF-", if (unit_of(text$encoding) == 2) "16" else "32",
                            if (big) "BE" else "LE")
  }
  bytes
}

unit_of <- function(encoding) {
  wide <- function(size) grepl(paste0("^(UTF|UCS)-?(", size, ")([LB]E)?$"), encoding,
                               ignore.case = TRUE)
  if (wide("16|2")) 2 else if (wide("32|4")) 4 else 1
}

is_high_surrogate <- function(pair, encoding) {
  high <- as.integer(if (grepl("BE$", encoding, ignore.case = TRUE)) pair[1] else pair[2])
  high >= 0xd8 && high <= 0xdb
}

# Compressed files --------------------------------------------------------------------------------

# By their first bytes.
PACKINGS <- list(gzip = as.raw(c(0x1f, 0x8b)), bzip2 = charToRaw("BZh"),
                 xz = as.raw(c(0xfd, 0x37, 0x7a, 0x58, 0x5a)), lzma = as.raw(c(0x5d, 0, 0)),
                 zstd = as.raw(c(0x28, 0xb5, 0x2f, 0xfd)))

packing_of <- function(file) {
  con <- base::file(file, "rb", raw = TRUE)
  on.exit(close(con))
  first <- readBin(con, "raw", 8)
  is <- vapply(PACKINGS, function(magic) identical(utils::head(first, length(magic)), magic), NA)
  if (any(is)) names(which(is))[1] else "none"
}

# What has been unpacked: how much, and the checksum of gzip.
add_bytes <- function(text, bytes) {
  text$size <- text$size + length(bytes)
  if (text$packing == "gzip") text$sum <- .Call(ffi_crc32, bytes, text$sum)
}

#' Was all of a compressed file unpacked?
#'
#' R's connections end silently where a file was cut short. The end of a gzip file has the size and
#' the checksum of its text (of the last part, if it has several). Otherwise a copy of the file is
#' unpacked to which a further part was added: this part is found only after a file that is whole.
#' @noRd
is_whole <- function(text, known) {
  stamp <- c(file.size(text$file), as.numeric(file.mtime(text$file)))
  if (identical(known$whole, stamp)) return(TRUE)
  whole <- text$packing == "gzip" && fits_end_of_gzip(text) || is_followed(text)
  if (whole) known$whole <- stamp
  whole
}

fits_end_of_gzip <- function(text) {
  con <- base::file(text$file, "rb", raw = TRUE)
  on.exit(close(con))
  seek(con, file.size(text$file) - 8)
  end <- as.numeric(readBin(con, "raw", 8))
  place <- 256^(0:3)
  length(end) == 8 && sum(end[1:4] * place) == text$sum &&
    sum(end[5:8] * place) == text$size %% 2^32
}

is_followed <- function(text) {
  last <- charToRaw("the end of the text")
  copy <- c(tempfile(), tempfile())
  on.exit(unlink(copy))
  pack <- switch(text$packing, gzip = gzfile, bzip2 = bzfile, xzfile)
  con <- pack(copy[2], "wb")
  writeBin(last, con)
  close(con)
  if (!all(file.copy(text$file, copy[1]), file.append(copy[1], copy[2])))
    fail("`file` must be a file of which a copy can be made, to check that it is whole: there is ",
         "no room for one of ", dQuote(text$file, FALSE), " in ", dQuote(tempdir(), FALSE), ".")
  con <- gzfile(copy[1], "rb")
  on.exit(close(con), add = TRUE)
  size <- 0
  end <- raw()
  # a file that cannot be unpacked is an error or a warning
  read <- function() tryCatch(readBin(con, "raw", TEXT_BYTES), error = function(e) raw(),
                              warning = function(w) raw())
  while (length(bytes <- read())) {
    size <- size + length(bytes)
    end <- utils::tail(c(end, bytes), length(last))
  }
  size == text$size + length(last) && identical(end, last)
}

# Unpacks all of it.
check_packed <- function(file, packing, known) {
  text <- new_text(file, "UTF-8", packing, gzfile(file, "rb"))
  on.exit(close(text$con))
  lines <- 0
  repeat {
    got <- read_text(text, lines, known)
    lines <- lines + length(got$lines)
    if (!is.null(got$failure) && inherits(got$failure, "logevidence_cut_short")) stop(got$failure)
    if (got$ended) return(invisible())
  }
}

# Connections -------------------------------------------------------------------------------------

open_connection <- function(file, known) {
  own <- !isOpen(file)
  if (own) {
    # later only its lines are seen
    check_connection(file, known)
    open(file, "rt")
  }
  text <- list(file = summary(file)$description, encoding = "UTF-8")
  # the exit status of the command of a pipe(), once
  leave <- function() {
    if (!own) return(NULL)
    own <<- FALSE
    close(file)
  }
  read <- function(n, before) {
    got <- read_connection(file, n, before, text)
    if (got$ended && is.null(got$failure))
      got["failure"] <- list(failed_command(leave(), text$file, before))
    got
  }
  list(read = read, close = leave, verify = function() NULL)
}

# A command that was killed or has failed may have written only a part of its lines.
failed_command <- function(status, command, lines) {
  if (is.null(status) || status == 0) return(NULL)
  # pclose() has the exit status in the upper byte
  told <- if (status %% 256 == 0) paste("status", status %/% 256)
  else paste("signal", status %% 128)
  failure_of("`file` must be read to its end: the command ", show_text(command), " ended with ",
             told, " after ", count_of(lines, "line"), ".")
}

check_connection <- function(con, known) {
  file <- path.expand(summary(con)$description)
  kinds <- c("file", "gzfile", "bzfile", "xzfile")
  if (!class(con)[1] %in% kinds || kind_of_file(file) != "file") return(invisible())
  packing <- packing_of(file)
  if (packing != "none") check_packed(file, packing, known)
}

read_connection <- function(con, n, before, text) {
  nul <- 0
  lines <- withCallingHandlers(
    # UTF-8 text stays as it is, whatever the locale
    readLines(con, n, encoding = "UTF-8"),
    warning = function(w) {
      at <- nul_line(conditionMessage(w))
      if (!is.na(at) && nul == 0) nul <<- at
      invokeRestart("muffleWarning")
    })
  if (before == 0 && length(lines)) lines[1] <- sub("^\ufeff", "", lines[1])
  ended <- length(lines) == 0
  if (nul > 0) lines <- utils::head(lines, nul - 1)
  c(valid_lines(text, list(lines = lines, high = TRUE, nul = nul), before), list(ended = ended))
}

# The number in R's warning of a zero byte, in the language of the session; NA of other warnings.
nul_line <- function(message) {
  rule <- strsplit(gettext("line %lld appears to contain an embedded nul", domain = "R"), "%lld",
                   fixed = TRUE)[[1]]
  fits <- startsWith(message, rule[1]) && endsWith(message, utils::tail(rule, 1))
  if (fits) as.numeric(gsub("[^0-9]", "", message)) else NA_real_
}

is_url <- function(file) grepl("^(https?|ftps?|file)://", file)

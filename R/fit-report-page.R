# A report as one page of HTML, without pandoc and without links to other files: text, a table,
# pictures as PNG in base64, what the fits print, and the session.

check_page <- function(file, overwrite) {
  check_flag(overwrite, "overwrite")
  if (is.null(file)) return(invisible())
  if (!is.character(file) || length(file) != 1 || is.na(file) || !nzchar(file))
    refuse(file, "file", "NULL or the name of a file")
  if (dir.exists(file)) fail("`file` must not be a directory: ", show_text(file), ".")
  if (!dir.exists(dirname(file)))
    fail("`file` must be in a directory that exists, not ", show_text(dirname(file)), ".")
  if (!file.exists(file) && isTRUE(nzchar(Sys.readlink(file), keepNA = TRUE)))
    fail("`file` must not be a link to a file that does not exist: ", show_text(file),
         ". Give the name of the file itself.")
  if (file.exists(file) && !overwrite)
    fail("`file` exists and stays as it is: ", show_text(file),
         ". Give another name, or `overwrite = TRUE`.")
}

#' @param made The report.
#' @param x What it is about.
#' @noRd
write_page <- function(made, x, file, envir) {
  page <- page_lines(made, x, envir)
  connection <- base::file(file, "wb")
  on.exit(close(connection))
  writeLines(enc2utf8(page), connection, useBytes = TRUE)
}

page_lines <- function(made, x, envir) {
  fits <- if (inherits(x, "evidence")) list(x) else attr(x, "fits")[x$model]
  title <- if (length(fits) == 1) model_line(fits[[1]]$model)
  else paste("Comparison of", count_of(length(fits), "model"))
  of_model <- startsWith(names(made), "model")
  text <- function(some)
    paste0("<p>", gsub("`([^`]*)`", "<code>\\1</code>", as_html(as.character(made)[some])), "</p>")
  c("<!DOCTYPE html>", "<html lang=\"en\">", "<head>", "<meta charset=\"utf-8\">",
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">",
    paste0("<title>", as_html(title), "</title>"), "<style>", PAGE_STYLE, "</style>", "</head>",
    "<body>", paste0("<h1>", as_html(title), "</h1>"), text(!of_model),
    table_html(attr(made, "table")), table_html(rows_table(fits[[1]], envir)), pictures_html(x),
    heading("Model", fits, " and priors"), text(of_model),
    heading("The fit", fits, " in full"), unlist(Map(fit_html, fits, names_of(fits))),
    "<h2>Session</h2>", printed_html(utils::sessionInfo()),
    paste0("<p class=\"note\">Made by the R package logevidence ", PACKAGE_VERSION, " on ",
           format(Sys.time(), "%Y-%m-%d"), ".</p>"), "</body>", "</html>")
}

heading <- function(what, fits, more)
  paste0("<h2>", what, if (length(fits) > 1) "s", more, "</h2>")

names_of <- function(fits) if (is.null(names(fits))) rep("", length(fits)) else names(fits)

# Light and dark, and tables that scroll on narrow screens.
PAGE_STYLE <- c(
  ":root { color-scheme: light dark; }",
  "body { font: 16px/1.5 system-ui, sans-serif; max-width: 50rem; margin: 2rem auto;",
  "  padding: 0 1rem; }",
  "h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; margin-top: 2rem; } h3 { font-size: 1rem; }",
  ".wide { overflow-x: auto; }",
  "table { border-collapse: collapse; } th, td { padding: .25rem .8rem; text-align: right;",
  "  border-bottom: 1px solid #8884; white-space: nowrap; }",
  "th:first-child, td:first-child, th:last-child, td:last-child { text-align: left; }",
  "pre { overflow-x: auto; padding: .7rem; background: #8882; font-size: .8rem; }",
  "img { max-width: 100%; height: auto; background: white; } .note { color: #888; }")

as_html <- function(text) {
  for (pair in list(c("&", "&amp;"), c("<", "&lt;"), c(">", "&gt;"), c("\"", "&quot;")))
    text <- gsub(pair[1], pair[2], text, fixed = TRUE)
  text
}

table_html <- function(table) {
  if (is.null(table)) return(NULL)
  row <- function(cells, tag)
    paste0("<tr>", paste0("<", tag, ">", as_html(trimws(cells)), "</", tag, ">", collapse = ""),
           "</tr>")
  c("<div class=\"wide\"><table>", row(names(table), "th"),
    vapply(seq_len(nrow(table)), function(i) row(unlist(table[i, ]), "td"), ""), "</table></div>")
}

printed_html <- function(...) {
  lines <- unlist(lapply(list(...), function(x) c(utils::capture.output(print(x)), "")))
  lines <- utils::head(lines, -1)
  c("<pre>", as_html(lines), "</pre>")
}

fit_html <- function(fit, name) {
  call <- call_lines(fit)
  estimates <- estimates_of(fit)
  c(if (nzchar(name)) paste0("<h3>", as_html(name), "</h3>"),
    if (length(call)) c("<pre>", as_html(call), "</pre>"), table_html(estimates$table),
    if (nzchar(estimates$note)) paste0("<p class=\"note\">", as_html(estimates$note), "</p>"),
    printed_html(fit, fit$verdict, fit$model, fit$method))
}

# Pictures ----------------------------------------------------------------------------------------

pictures_html <- function(x) {
  if (!isTRUE(capabilities("png")[[1]])) return("<p>Without pictures: R cannot draw PNG here.</p>")
  drawn <- if (inherits(x, "evidence"))
    picture_html(plot(x), "The fit: its evidence during the run, and the posterior.")
  else c(
    picture_html(plot.model_comparison(x), "Model probabilities and log evidences.",
                 min(900, 300 + 60 * nrow(x))),
    if (inherits(x, "evidence_race"))
      picture_html(plot(x), "How the evidence of the models went as rows were added."))
  c("<h2>Pictures</h2>", drawn)
}

#' An <img> of what the code draws; nothing if it cannot be drawn
#' @noRd
picture_html <- function(code, what, height = 900) {
  file <- tempfile(fileext = ".png")
  on.exit(unlink(file))
  before <- grDevices::dev.cur()
  grDevices::png(file, 1400, height, res = 150)
  device <- grDevices::dev.cur()
  drawn <- tryCatch(or_null({
    code
    TRUE
  }), finally = {
    grDevices::dev.off(device)
    if (before > 1) grDevices::dev.set(before)
  })
  if (is.null(drawn)) return(NULL)
  bytes <- readBin(file, raw(), file.size(file))
  paste0("<img alt=\"", as_html(what), "\" src=\"data:image/png;base64,", base64(bytes), "\">")
}

#' Bytes as base64 (RFC 4648): three bytes are four characters
#' @noRd
base64 <- function(bytes) {
  letters64 <- c(LETTERS, letters, 0:9, "+", "/")
  missing <- (3 - length(bytes) %% 3) %% 3
  triples <- matrix(c(as.integer(bytes), integer(missing)), 3)
  word <- triples[1, ] * 65536 + triples[2, ] * 256 + triples[3, ]
  digits <- rbind(word %/% 262144, word %/% 4096 %% 64, word %/% 64 %% 64, word %% 64)
  text <- letters64[digits + 1]
  if (missing) text[length(text) + 1 - seq_len(missing)] <- "="
  paste(text, collapse = "")
}

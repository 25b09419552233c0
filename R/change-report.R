# evidence_report() of change points: paragraphs for a paper.

#' @rdname evidence_report
#' @rawNamespace S3method(report, change_points)
#' @rawNamespace S3method(report::report, change_points)
report.change_points <- function(x, ...) {
  check_no_dots(...)
  check_change_points(x)
  new_report(c(
    numbers = numbers_sentence(x),
    changes = if (x$number == 0) "" else paste0(
      "Given ", count_of(x$number, "change"), ": ",
      paste0(vapply(seq_len(x$number), function(r)
        paste(c(change_words(x, r), size_words(x, r)), collapse = "; "), ""), collapse = ". "),
      "."),
    model = model_sentence(x), positions = paste0("Positions of changes: ",
                                                        positions_words(x), "."),
    method = paste(c(paste0("Computed by change_points() of the R package logevidence ",
                            PACKAGE_VERSION, " (R ", getRversion(), ")."), how_summed(x)),
                   collapse = " "),
    doubts = if (length(x$warnings)) paste("Warnings:", paste(x$warnings, collapse = " "))
    else "There was no warning."))
}

numbers_sentence <- function(x) {
  table <- x$numbers
  best <- table[match(x$number, table$changes), ]
  paste0("In ", count_of(x$n, "row"), if (x$at_name != "row")
    paste0(" (", x$at_name, " ", paste(show_at(x, c(1, x$n)), collapse = " to "), ")"),
    " the most probable number of changes is ", x$number, if (x$number > 0) paste0(
      ", with a log Bayes factor of ", format_number(best$log_bayes_factor, 2),
      " over no change"), ". Posterior probabilities of numbers of changes: ",
    paste0(table$changes, ": ", show_probability(table$posterior), collapse = "; "), ".")
}

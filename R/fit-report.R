# evidence_report(): sentences for a paper about a fit or a comparison, with numbers, errors,
# priors, method, seed and versions. R/fit-report-page.R makes a page of HTML from them.

#' Report a fit or a comparison
#'
#' Sentences to paste into a paper: the evidence with its error and where it comes from, the model
#' and its priors, method, seed and versions, and what the checks of the fit have found. For a
#' comparison a table, Bayes factors, posterior probabilities, and the priors of each model. With
#' `file` the report is also a self-contained page of HTML with pictures, the calls, the estimates
#' of parameters, and the numbers of rows and of events (if the data in the call still exist).
#'
#' @param x A fit from [evidence()]; a comparison from [compare_models()] or from `evidence()` of
#'   several models or several numbers of components; a result of [change_points()] or
#'   [bayes_factor()], which have sentences and no page; or a report, to be printed.
#' @param file `NULL`, or the name of a file for the page of HTML. It is one file without links to
#'   others: text, table, pictures, settings, and the session's versions. Package \pkg{grDevices}
#'   must be able to draw PNG files, or the page is without pictures.
#' @param overwrite Whether a file that exists may be replaced. By default that is an error.
#' @param ... Must be empty.
#'
#' @details
#' Numbers are rounded to their standard errors. Words for the strength of evidence are those of
#' Kass and Raftery, as in [compare_models()]. The error of a log Bayes factor is the root of the
#' sum of the two squared standard errors. A fit keeps the version of this package and of R with
#' which it was made; the page also has the versions of the session that writes it.
#'
#' What a report cannot know belongs in the paper too: why these models and these priors, and what
#' happens under others. The article *What to report in a paper* has an example.
#'
#' **Names.** The generic `report()` of package \pkg{report} takes the objects of this package, too,
#' and `evidence_report()` those of the other.
#'
#' @return A character vector of class `"evidence_report"`, one element for each paragraph, and for
#'   a comparison an attribute `"table"`, a data frame of text: `model`, `log evidence`, `log BF`
#'   (against the best model), `prior` (if not equal), `posterior`, `against`. With `file` it is
#'   returned invisibly.
#'
#' @examples
#' line <- evidence(linear_regression(dist ~ speed, sigma = 15, prior_sd = 20), cars, seed = 1)
#' flat <- evidence(linear_regression(dist ~ 1, sigma = 15, prior_sd = 20), cars, seed = 1)
#' evidence_report(line)
#' evidence_report(compare_models(line, flat))
#' page <- tempfile(fileext = ".html")
#' evidence_report(compare_models(line, flat), file = page)
#'
#' @seealso [summary.evidence()], [compare_models()], [tidy.evidence]
#' @aliases report
#' @order 1
#' @export
evidence_report <- function(x, ...) UseMethod("report")

# The generic of the methods, which are those of package report, too.
report <- evidence_report

#' @export
report.default <- function(x, ...) {
  theirs <- their_generic("report", "report", x)
  if (is.null(theirs))
    refuse(x, "x", "a fit from `evidence()`, a comparison of fits, a Bayes factor or change points")
  theirs(x, ...)
}

#' @rdname evidence_report
#' @rawNamespace S3method(report, evidence)
#' @rawNamespace S3method(report::report, evidence)
report.evidence <- function(x, file = NULL, overwrite = FALSE, ...) {
  check_no_dots(...)
  check_page(file, overwrite)
  made <- new_report(c(
    evidence = evidence_sentence(x), model = model_sentence(x),
    method = methods_sentence(list(x)), doubts = doubt_sentence(x)))
  finish_report(made, x, file, parent.frame())
}

#' @rdname evidence_report
#' @rawNamespace S3method(report, model_comparison)
#' @rawNamespace S3method(report::report, model_comparison)
report.model_comparison <- function(x, file = NULL, overwrite = FALSE, ...) {
  check_no_dots(...)
  check_page(file, overwrite)
  require_comparison(x, "report")
  x <- among_themselves(x)
  fits <- attr(x, "fits")
  x <- x[order(!x$reliable, -x$log_evidence), ]
  fits <- fits[x$model]
  told <- utils::head(fits, REPORT_MOST)
  made <- new_report(c(
    question = comparison_sentence(x), result = best_sentences(x),
    ranking = paste(c(comparison_sentences(x), unchecked_in(x)), collapse = " "),
    coefficients = coefficients_sentence(x),
    course_sentences(x),
    models_sentences(told), method = methods_sentence(told), doubts = doubts_sentence(fits)),
    report_table(x))
  finish_report(made, x, file, parent.frame())
}

#' @rdname evidence_report
#' @rawNamespace S3method(report, evidence_bayes_factor)
#' @rawNamespace S3method(report::report, evidence_bayes_factor)
report.evidence_bayes_factor <- function(x, ...) {
  check_no_dots(...)
  check_bayes_factor(x)
  names <- attr(x, "model_names")
  first <- if (isTRUE(x$log_bf < 0)) 2 else 1
  value <- if (is.na(x$log_bf)) "not known, because a fit failed its own checks"
  else paste0(format(exp(abs(x$log_bf)), digits = 4), " (log ",
              trimws(align_estimates(abs(x$log_bf), x$se)), ")", if (x$log_bf != 0)
                paste0("; evidence against ", names[3 - first], ": ", strength(abs(x$log_bf))))
  new_report(c(
    result = paste0("The Bayes factor of ", names[first], " over ", names[3 - first], " is ", value,
                    "."),
    method = paste0("Computed by the R package logevidence ", PACKAGE_VERSION, " (R ",
                    getRversion(), ")."),
    doubts = paste(attr(x, "said"), collapse = " ")))
}

#' @rawNamespace S3method(report, incomplete_evidence)
#' @rawNamespace S3method(report::report, incomplete_evidence)
report.incomplete_evidence <- function(x, ...) whole_fit("report")

new_report <- function(sentences, table = NULL) {
  sentences <- sentences[nzchar(sentences)]
  structure(sentences, table = table, class = "evidence_report")
}

finish_report <- function(made, x, file, envir) {
  if (is.null(file)) return(made)
  write_page(made, x, file, envir)
  invisible(made)
}

#' @rdname evidence_report
#' @export
print.evidence_report <- function(x, ...) {
  check_no_dots(...)
  table <- attr(x, "table")
  after <- if (is.null(table)) 0 else match("ranking", names(x), 2)
  for (i in seq_along(x)) {
    cat_wrapped(x[[i]], exdent = if (startsWith(names(x)[i], "model ")) 2 else 0)
    cat("\n")
    if (i == after) {
      cat(table_lines(utils::head(table, REPORT_MOST)),
          if (nrow(table) > REPORT_MOST) paste("... and", count(nrow(table) - REPORT_MOST), "more"),
          "", sep = "\n")
    }
  }
  invisible(x)
}

# The most models in a text; of more it has the best.
REPORT_MOST <- 10

# Names to the left, numbers to the right, in lines that are not broken.
table_lines <- function(table) {
  columns <- lapply(names(table), function(name)
    format(c(name, table[[name]]),
           justify = if (name %in% c("model", "against")) "left" else "right"))
  sub(" +$", "", do.call(paste, c(columns, sep = "  ")))
}

#' @export
as.character.evidence_report <- function(x, ...) as.vector(unclass(x))

#' @export
format.evidence_report <- function(x, ...) as.character.evidence_report(x)

# Sentences about one fit -------------------------------------------------------------------------

evidence_sentence <- function(fit) {
  value <- format_number(fit$log_evidence, decimals_for(fit$se))
  paste0("The log evidence (natural logarithm of the marginal likelihood) of the model",
         if (!is.na(fit$n) && !has_no_data(fit)) paste(" for", row_words(fit$n, "observation")),
         if (length(fit$na.action)) paste0(" (", count_of(length(fit$na.action), "row"),
                                           " with missing values left out)"),
         " is ", value, error_words(fit), ".")
}

# ", with a standard error of 0.016 (from the importance-sampling check: 1,000 draws, ...)"
error_words <- function(fit) {
  from <- origin_of(fit)
  if (fit$source == "audit") from <- paste0(from, ": ", audit_words(fit$audit))
  if (isTRUE(fit$se == 0)) return(paste0(", without Monte Carlo error (", from, ")"))
  if (!is.finite(fit$se))
    return(paste0("; its error is not known", if (nzchar(from)) paste0(" (", from, ")")))
  paste0(", with a standard error of ", format_number(fit$se, decimals_for(fit$se)),
         if (nzchar(from)) paste0(" (", from, ")"))
}

#' "Linear regression (mpg ~ wt); response normal ...", and its priors
#' @noRd
model_words <- function(fit) {
  parts <- describe(at_units_of(fit))
  text <- function(names) unlist(parts[intersect(names, names(parts))], use.names = FALSE)
  parts$ratios <- NULL
  of_prior <- intersect(c("prior", "intercept", "auxiliary", "further"), names(parts))
  further <- setdiff(names(parts)[-1], c("formula", "likelihood", of_prior))
  about <- c(paste0(parts[[1]], if (length(text("formula")))
    paste0(" (", paste(text("formula"), collapse = ", "), ")")), text("likelihood"),
    vapply(further, function(name) paste0(name, " ", paste(parts[[name]], collapse = ", ")), ""))
  priors <- numbers_of_priors(fit)
  if (is.null(priors)) priors <- text(of_prior)
  c(model = paste0(paste(about, collapse = "; "), "."),
    priors = paste0(if (length(priors)) paste(priors, collapse = "; ")
                    else "those of the model's own functions, which its user must state", "."))
}

# More priors are only counted.
PRIORS_TOLD <- 12

#' The priors of a fit with the numbers that the data have given; NULL if they have given none
#' @noRd
numbers_of_priors <- function(fit) {
  priors <- priors_of_fit(fit)
  default <- vapply(priors, `[[`, NA, "default")
  if (!any(default)) return(NULL)
  words <- paste0(names(priors), ifelse(vapply(priors, function(one) nzchar(one$of), NA),
                                        " of an average row", ""),
                  " ~ ", vapply(priors, function(one) format(one$prior), ""))
  more <- length(words) - PRIORS_TOLD
  c(utils::head(words, PRIORS_TOLD), if (more > 0) paste(more, "more"),
    if (all(default)) "all are defaults, in units of the data"
    else "those that were not given are defaults, in units of the data")
}

model_sentence <- function(fit) {
  words <- model_words(fit)
  paste("Model:", words[["model"]], "Priors:", words[["priors"]])
}

# Priors that all models have are said once.
models_sentences <- function(fits) {
  words <- vapply(fits, model_words, c("", ""))
  common <- length(unique(words[2, ])) == 1
  each <- paste0(names(fits), ": ", words[1, ],
                 if (!common) paste(" Priors:", words[2, ]))
  c(stats::setNames(each, paste("model", names(fits))),
    `model priors` = if (common) paste("Priors of all models:", words[2, 1]) else "")
}

# "sgais() with seed 1, as the mean of 5 independent runs"
how_made <- function(fit) {
  runs <- nrow(fit$replicates)
  paste0(deparse1(fit$method$call), if (!isTRUE(fit$se == 0)) paste0(" ", seed_sentence(fit$seed)),
         if (length(runs)) paste0(", as the ", COMBINED[[combination_of(fit$method)]], " of ", runs,
                                  " independent runs", if (!is.null(fit$replicates$particles))
           paste(", weighted by their particles,", count(sum(fit$replicates$particles)),
                 "in all")))
}

version_words <- function(fit) {
  version <- fit$version
  if (is.null(version)) return("the R package logevidence (of a version that the fit did not keep)")
  paste0("the R package logevidence ", version[["logevidence"]], " (R ", version[["R"]], ")")
}

# A seed that was drawn at random is beyond those that can be given.
seed_sentence <- function(words) {
  seed <- words[1] * WORD + words[2]
  if (seed <= 2^53) paste("with seed", format(seed, scientific = FALSE)) else "without a seed"
}

doubt_sentence <- function(fit) {
  said <- distinct(c(fit_warnings(fit), intersect(fit$method$note, fit$warnings)))
  if (!length(said)) return("The checks of the fit raised no warning.")
  start <- if (length(fit$failed)) "The fit failed its own checks: "
  else if (length(fit_warnings(fit))) "The checks of the fit raised a warning: " else "Note: "
  paste0(start, paste(said, collapse = " "))
}

# Sentences about a comparison ---------------------------------------------------------------------

comparison_sentence <- function(x) {
  prior <- attr(x, "prior")[match(x$model, names(attr(x, "fits")))]
  equal <- length(unique(signif(prior, 10))) == 1
  paste0(count_of(nrow(x), "model"), if (nrow(x) == 1) " was compared by its evidence"
         else " were compared by their evidence",
         if (!is.na(attr(x, "n"))) on_rows(x),
         if (equal) ", with equal prior probabilities." else
           paste0(", with prior probabilities ",
                  paste0(show_probability(prior), " (", x$model, ")", collapse = ", "), "."))
}

best_sentences <- function(x) {
  use <- x[x$reliable, ]
  if (!nrow(use)) return("No fit passed its own checks.")
  best <- use[1, ]
  first <- paste0("The model ", best$model, " has the highest evidence (log evidence ",
                  trimws(align_estimates(best$log_evidence, best$se)), ") and posterior ",
                  "probability ", share_words(best$posterior, nrow(use)), ".")
  told <- seq_len(min(nrow(use), REPORT_MOST))[-1]
  others <- nrow(use) - REPORT_MOST
  paste(c(first, vapply(told, function(i) against_sentence(best, use[i, ]), ""),
          if (others > 0) paste0("The other ", count(others), " models are further behind: those ",
                                 "named have a posterior probability of ",
                                 show_probability(sum(use$posterior[c(1, told)])), " together.")),
        collapse = " ")
}

against_sentence <- function(best, other) {
  log_bf <- best$log_evidence - other$log_evidence
  se <- sqrt(sum(c(best$se, other$se)^2))
  paste0("Its Bayes factor over ", other$model, " is ", show_factor(log_bf), " (log Bayes factor ",
         trimws(align_estimates(log_bf, se)), ")",
         if (log_bf > 0) paste0(", ", evidence_in_words(log_bf), other$model), ".")
}

evidence_in_words <- function(log_bf) {
  word <- strength(log_bf)
  if (grepl("mention", word)) "which is not worth more than a mention as evidence against "
  else paste(word, "evidence against ")
}

# How probable coefficients are. With two models the sentences on their evidence say it.
coefficients_sentence <- function(x) {
  if (nrow(usable_models(x)$x) < 3) return("")
  averaged <- or_null(averaged_draws(x, "report"))
  if (is.null(averaged)) "" else inclusion_sentence(averaged$inclusion, REPORT_MOST)
}

# A probability that is rounded to 1 is not 1 if there are other models.
share_words <- function(p, models) show_probability(if (models > 1) pmin(p, 1 - 1e-9) else p)

# What stopped a race, and which models dropped out; or how many clusters have rows.
course_sentences <- function(x) {
  race <- if (inherits(x, "evidence_race")) race_in(x)
  c(stopped = if (!is.null(race$stopped)) sentence_of_stop(race) else "",
    dropped = paste(sprintf("%s dropped out: %s", names(race$dropped), unlist(race$dropped)),
                    collapse = " "))
}

report_table <- function(x) {
  prior <- attr(x, "prior")[match(x$model, names(attr(x, "fits")))]
  best <- max(x$log_evidence[x$reliable], -Inf)
  log_bf <- ifelse(x$reliable, x$log_evidence - best, NA)
  shown <- function(text) ifelse(x$reliable, text, "left out")
  table <- data.frame(
    model = x$model, `log evidence` = align_estimates(x$log_evidence, x$se),
    `log BF` = shown(format_number_each(ifelse(abs(log_bf) < 0.005, 0, log_bf), 2)),
    prior = show_probability(prior), posterior = shown(share_words(x$posterior, sum(x$reliable))),
    against = shown(strength(abs(log_bf))), check.names = FALSE)
  # equal ones stand in the first sentence
  if (length(unique(signif(prior, 10))) == 1) table[names(table) != "prior"] else table
}

# The version once if it is that of all fits, and so the method with its seed.
methods_sentence <- function(fits) {
  versions <- vapply(fits, version_words, "")
  same_version <- length(unique(versions)) == 1
  made <- paste0(vapply(fits, how_made, ""), if (!same_version) paste(" of", versions))
  paste0("Computed by ", if (same_version) paste0(versions[1], ": "),
         if (length(unique(made)) == 1) made[1]
         else paste0(names(fits), " by ", made, collapse = "; "), ".")
}

doubts_sentence <- function(fits) {
  said <- lapply(fits, function(fit) distinct(c(fit_warnings(fit),
                                               intersect(fit$method$note, fit$warnings))))
  said <- said[lengths(said) > 0]
  if (!length(said)) return("The checks of the fits raised no warning.")
  paste("Warnings and notes.", paste0(names(said), ": ", vapply(said, paste, "", collapse = " "),
                            collapse = " "))
}

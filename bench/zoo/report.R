# What counts, and the tables.
#
# wrong:        |error| above 4 standard errors (stated and reference's together) and above 1 nat
# silent:       wrong, and no warning names a problem
# false alarm:  a warning that names a problem of an estimate that is not wrong; counted on benign
#               problems only, where there is nothing to warn about
# no answer:    an error, or stopped at the time limit
#
# The rule of one nat hides small errors that are stated to be smaller still. So a second set:
#
# beyond:       |error| above 4 standard errors, however small
# silent > .1:  beyond, above 0.1 nats, and no warning and nothing in `failed`
# doubted:      a warning or `failed` although the error is within 2 standard errors
# z:            error over the standard error (stated and reference's together)

# Numbers are kept with five digits after the point.
ROUNDED <- 1e-5

judge <- function(rows, truths, problem = rows$problem) {
  at <- match(problem, truths$problem)
  rows <- rows[!is.na(at), ]
  at <- at[!is.na(at)]
  rows$truth <- truths$truth[at]
  rows$truth_se <- truths$se[at]
  rows$error <- rows$log_evidence - rows$truth
  rows$answered <- !is.na(rows$warned)
  joint <- sqrt(ifelse(is.finite(rows$se), rows$se, 0)^2 + rows$truth_se^2 + ROUNDED^2)
  right <- is.finite(rows$error) & (abs(rows$error) <= 1 | abs(rows$error) <= 4 * joint)
  rows$wrong <- rows$answered & !right
  rows$silent <- rows$wrong & !rows$warned
  rows$z <- rows$error / joint
  told <- rows$warned | rows$failed
  beyond <- rows$answered & (!is.finite(rows$error) | abs(rows$error) > 4 * joint)
  rows$beyond <- beyond
  rows$silent_any <- beyond & !told
  rows$silent_tenth <- beyond & !told & (!is.finite(rows$error) | abs(rows$error) > 0.1)
  rows$doubted <- rows$answered & is.finite(rows$error) & abs(rows$error) <= 2 * joint & told
  flag <- function(name) vapply(rows$problem, function(p) isTRUE(PROBLEMS[[p]][[name]]), NA)
  rows$benign <- flag("benign")
  rows$hidden <- flag("hidden")
  rows$alarm <- rows$answered & !rows$wrong & rows$warned
  rows
}

percent <- function(x) if (length(x)) sprintf("%.1f%%", 100 * mean(x)) else "-"
number <- function(x) if (length(x)) format(signif(x, 3), scientific = FALSE) else "-"
table_lines <- function(head, body) {
  c(paste0("| ", paste(head, collapse = " | "), " |"),
    paste0("|", paste(rep("---|", length(head)), collapse = "")),
    vapply(body, function(line) paste0("| ", paste(line, collapse = " | "), " |"), ""))
}

# One line for a problem and a method.
problem_line <- function(part) {
  done <- part[part$answered & is.finite(part$error), ]
  one <- part[1, ]
  c(paste0(one$problem, if (one$benign) " (benign)", if (one$hidden) " (hidden)"), one$method,
    paste0(sprintf("%.2f", one$truth), if (one$truth_se > 0.1) sprintf(" ± %.2f", one$truth_se)),
    nrow(part), number(mean(done$error)), number(sd(done$error)), number(mean(done$se)),
    percent(part$wrong), percent(part$silent), percent(part$alarm),
    if (all(part$answered)) "" else percent(!part$answered), number(mean(part$seconds)))
}
LINE <- c("problem", "method", "truth", "runs", "mean error", "sd", "mean se", "wrong", "silent",
          "warned though right", "no answer", "seconds")

# One line for a method: what the goals are about.
method_line <- function(part) {
  counted <- part[!part$hidden, ]
  by_problem <- tapply(counted$silent, counted$problem, mean)
  worst <- names(by_problem)[which.max(by_problem)]
  benign <- counted[counted$benign & counted$answered, ]
  c(part$method[1], length(by_problem), nrow(counted), percent(counted$wrong),
    percent(counted$silent), sum(by_problem > 0.02),
    if (max(by_problem) > 0) sprintf("%s %s", worst, percent(max(by_problem))) else "none",
    percent(benign$alarm), percent(!counted$answered))
}
TOTAL <- c("method", "problems", "runs", "wrong", "silent", "problems over 2% silent", "worst",
           "false alarms", "no answer")

# One line of figures without the rule of one nat.
honest_line <- function(part, name) {
  done <- part[part$answered & is.finite(part$z), ]
  quiet <- done[!done$warned & !done$failed, ]
  benign <- part[part$benign & part$answered, ]
  c(name, length(unique(part$problem)), nrow(part), percent(part$silent_tenth),
    percent(part$silent_any), percent(part$silent), percent(part$beyond), percent(part$wrong),
    percent(part$doubted), percent(benign$alarm), percent(abs(done$z) < 2), number(mean(done$z^2)),
    percent(abs(quiet$z) < 2), number(mean(quiet$z^2)), percent(!part$answered),
    number(mean(part$seconds)))
}
HONEST <- c("family", "problems", "runs", "silent > .1", "silent", "silent > 1", "beyond 4 se",
            "wrong (> 1)", "doubted", "false alarms", "z < 2", "mean z^2", "quiet: z < 2",
            "mean z^2", "no answer", "s")

# Problems with silent errors above 0.1 nats, the worst first.
worst_lines <- function(rows) {
  bad <- rows[rows$silent_tenth, ]
  if (!nrow(bad)) return(invisible())
  parts <- split(bad, bad$problem)
  size <- vapply(parts, function(p) max(abs(p$error)), 0)
  cat("\nSilent errors above 0.1 nats:\n\n")
  writeLines(table_lines(c("problem", "seeds", "mean error", "mean se", "truth"),
    lapply(parts[order(-size)], function(p) c(p$problem[1], nrow(p), number(mean(p$error)),
                                              number(mean(p$se)), sprintf("%.3f", p$truth[1])))))
}

# The runs of all methods are too many for git: what is kept of them is a line for each problem and
# method, with counts of runs and means over those that have an answer.
summarised <- function(rows) {
  counts <- c("answered", "wrong", "silent", "beyond", "silent_any", "silent_tenth", "doubted",
              "alarm")
  parts <- split(rows, list(factor(rows$problem, unique(rows$problem)),
                            factor(rows$method, names(METHODS))), drop = TRUE)
  do.call(rbind, c(lapply(parts, function(part) {
    done <- part[part$answered & is.finite(part$error), ]
    data.frame(part[1, c("problem", "method", "benign", "hidden")], runs = nrow(part),
               lapply(part[counts], sum), error = signif(mean(done$error), 6),
               error_sd = signif(stats::sd(done$error), 4), se = signif(mean(done$se), 4),
               seconds = signif(mean(part$seconds), 3))
  }), list(make.row.names = FALSE)))
}

# One line for each method: problems, runs, shares in per cent.
summary_figures <- function(summary) {
  counted <- summary[!summary$hidden, ]
  benign <- counted[counted$benign, ]
  c(nrow(counted), sum(counted$runs), 100 * sum(counted$wrong) / sum(counted$runs),
    100 * sum(counted$silent) / sum(counted$runs), sum(counted$silent / counted$runs > 0.02),
    100 * sum(benign$alarm) / sum(benign$answered))
}
print_summary <- function(summary) {
  lines <- lapply(intersect(names(METHODS), summary$method), function(method) {
    line <- summary_figures(summary[summary$method == method, ])
    c(method, line[1], format(line[2], big.mark = ","), paste0(signif(line[3:4], 2), "%"), line[5],
      paste0(signif(line[6], 2), "%"))
  })
  writeLines(table_lines(c("method", "problems", "runs", "wrong", "silent", "over 2%",
                           "false alarms"), lines))
}

report <- function(file, truths) {
  rows <- judge(read.csv(file), read.csv(truths))
  order_of <- function(names, all) factor(names, intersect(all, names))
  by_method <- split(rows, order_of(rows$method, names(METHODS)))
  cat("Totals. Goals: silent under 1% over all runs of the default, at most 2% on any problem;",
      "false alarms under 5% of runs on benign problems.\n\n")
  writeLines(table_lines(TOTAL, lapply(by_method, method_line)))
  cat("\nThe same without the rule of one nat, by family.\n")
  for (part in by_method) {
    part <- part[!part$hidden, ]
    cat(sprintf("\n%s\n\n", part$method[1]))
    family <- vapply(part$problem, function(p) PROBLEMS[[p]]$family, "")
    lines <- Map(honest_line, split(part, family), sort(unique(family)))
    writeLines(table_lines(HONEST, c(lines, list(honest_line(part, "**all**")))))
    worst_lines(part)
  }
  cat("\nBy problem. A reference not known to 0.1 nat has its standard error.\n\n")
  parts <- split(rows, list(order_of(rows$method, names(METHODS)),
                            order_of(rows$problem, names(PROBLEMS))), drop = TRUE)
  writeLines(table_lines(LINE, lapply(parts, problem_line)))
}

# crosscheck(): says "agree" where it should not?  Wrong is the mean of the methods that it judged.
crosscheck_zoo <- function(problems, seeds, file) {
  for (problem in problems) for (seed in seq_len(seeds)) {
    call <- list(problem$model, problem$data, seed = seed, progress = FALSE)
    if (is.null(problem$data)) call[2] <- NULL
    check <- tryCatch({
      setTimeLimit(elapsed = problem$limit * 3, transient = TRUE)
      suppressWarnings(do.call(crosscheck, call))
    }, error = conditionMessage, finally = setTimeLimit())
    if (is.character(check)) {
      message(problem$name, " ", seed, ": ", check)
      next
    }
    verdict <- paste(utils::capture.output(print(check)), collapse = " ")
    table <- as.data.frame(check)
    agree <- grepl("methods agree", verdict)
    rows <- data.frame(problem = problem$name, seed = seed, method = sub("\\(.*", "", table$method),
                       log_evidence = signif(table$log_evidence, 9), se = signif(table$se, 4),
                       doubt = if (is.null(table$doubt)) "" else table$doubt, agree = agree)
    append_rows(rows, file)
    message(problem$name, " ", seed, if (agree) " agree" else " other")
  }
}

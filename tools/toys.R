# toys.R: adds the toys of ARCHITECTURE.md (a model, a kernel, a method, a family, a check, a
# source of rows, a verb on fits) to a copy of the checkout, installs the copy and runs them
# against known numbers. Two workers in this process, each with half of the rows, then answer the
# questions of a run that has none but a sample.
#
# ARCHITECTURE.md shows by a short diff what each of them takes. The new files are in tools/toys,
# under the paths that they get. tools/lint-selftest.R reads this file for its
# functions: it adds the toys to a copy too, and removes them again.

# ---- the diffs of ARCHITECTURE.md

# A list with an entry for each block: `new`, the paths of new files; `edits`, a data frame of
# `file`, `after` (how the line begins below which the new one goes) and `line`; `stated`, the last
# number of edits that the text above names, as in "**A model** (4 edits)".
toy_diffs <- function(root) {
  text <- readLines(file.path(root, "ARCHITECTURE.md"), encoding = "UTF-8")
  from <- which(text == "```diff")
  states <- "^\\*\\*A .*\\(([0-9]+) edits?\\).*|^.*needs .*\\(([0-9]+) edits\\):$"
  lapply(from, function(start) {
    block <- text[seq(start + 1, start + which(text[-seq_len(start)] == "```")[[1]] - 1)]
    edits <- data.frame(file = character(), after = character(), line = character())
    file <- after <- ""
    for (line in block) {
      if (startsWith(line, "--- ")) file <- sub("^--- (\\S+).*", "\\1", line)
      else if (startsWith(line, " ")) after <- substring(line, 2)
      else if (startsWith(line, "+") && !startsWith(line, "+++")) {
        edits[nrow(edits) + 1, ] <- list(file, after, substring(line, 2))
        after <- substring(line, 2)
      }
    }
    list(new = sub("^\\+\\+\\+ (\\S+).*", "\\1", grep("^\\+\\+\\+ ", block, value = TRUE)),
         edits = edits,
         stated = as.numeric(sub(states, "\\1\\2", utils::tail(grep(states, text[seq_len(start)],
                                                                    value = TRUE), 1))))
  })
}

# What of a diff breaks the promise: as many edits as are stated and at most five. A new file is an
# edit, and so are lines that follow each other in a file.
edits_of <- function(diff)
  length(diff$new) + sum(!paste(diff$edits$file, diff$edits$after) %in%
                           paste(diff$edits$file, diff$edits$line))
promise_broken <- function(diff) {
  if (!identical(diff$stated, as.numeric(edits_of(diff))))
    return(paste(diff$new[1], "takes", edits_of(diff), "edits, and not as many as are stated"))
  if (!all(grepl("^src/.*\\.[ch]$|^R/.*\\.R$", diff$new)) || edits_of(diff) > 5)
    paste("more than five edits, or new files of another kind:", paste(diff$new, collapse = ", "))
}

# ---- a copy of the checkout

checkout_copy <- function(root) {
  copy <- tempfile("checkout-")
  dir.create(copy)
  parts <- c("DESCRIPTION", "NAMESPACE", "configure", "cleanup", "R", "src", "inst")
  file.copy(file.path(root, parts), copy, recursive = TRUE)
  made <- list.files(file.path(copy, "src"), "\\.(o|so|dll|dylib)$", recursive = TRUE,
                     full.names = TRUE)
  unlink(c(made, file.path(copy, "src", "Makevars")))
  copy
}

# The files of a copy and what is in them.
contents_of <- function(copy) {
  files <- list.files(copy, recursive = TRUE)
  tools::md5sum(stats::setNames(file.path(copy, files), files))
}

add_toy <- function(diff, root, copy) {
  for (file in diff$new) {
    if (file.exists(file.path(copy, file))) stop("There is a file `", file, "` already.")
    if (!file.copy(file.path(root, "tools", "toys", file), file.path(copy, file)))
      stop("There is no file `tools/toys/", file, "`.")
  }
  for (i in seq_len(nrow(diff$edits))) {
    edit <- diff$edits[i, ]
    path <- file.path(copy, edit$file)
    text <- readLines(path)
    at <- which(startsWith(text, edit$after))
    if (length(at) != 1) stop("`", edit$after, "` is not the beginning of one line of ", edit$file,
                              ".")
    writeLines(append(text, edit$line, at), path)
  }
}

remove_toy <- function(diff, copy) {
  unlink(file.path(copy, diff$new))
  for (i in seq_len(nrow(diff$edits))) {
    path <- file.path(copy, diff$edits$file[i])
    text <- readLines(path)
    writeLines(text[text != diff$edits$line[i]], path)
  }
}

# ---- installed and run

# What tools/install.sh has built, objects included: only what the toys change is compiled.
built_copy <- function(root) {
  if (system2(file.path(root, "tools", "install.sh")) != 0)
    stop("The package does not install.", call. = FALSE)
  copy <- tempfile("built-")
  # with times, by which make sees what is up to date
  if (system2("cp", c("-pR", shQuote(file.path(root, ".lib", "build", "logevidence")), copy)) != 0)
    stop("What was built cannot be copied.", call. = FALSE)
  copy
}

# laplace() with importance sampling, of rows that two workers have. Nothing is added for this: a
# model needs no other functions.
by_two_workers <- function(package, model, data) {
  encoded <- package$encode(model, data)
  n <- ncol(encoded$rows)
  method <- package$laplace(importance = 1000)
  problem <- package$with_rows_elsewhere(package$new_problem(model, encoded, method, c(0, 1)), n)
  half <- seq_len(n %/% 2)
  workers <- lapply(list(half, -half), function(part)
    package$new_worker(problem, encoded$rows[, part, drop = FALSE]))
  asked <- 0
  answer <- function(questions) lapply(questions, function(question) {
    asked <<- asked + 1
    package$add_answers(lapply(workers, function(worker) worker(question)))
  })
  sample <- encoded$rows[, c(1, n), drop = FALSE]
  out <- package$conduct(problem, package$asked_rows(list(sample), answer))
  cat("two workers have answered", asked, "questions\n")
  list(log_evidence = out$importance, se = out$se)
}

# The toy verb on a fit, on a comparison and on an incomplete fit, against integrals over the
# posterior. TRUE if it is wrong.
verb_wrong <- function(package, fit, waits, truth) {
  log_lik <- function(theta) length(waits) * theta - exp(theta) * sum(waits)
  mean_of <- function(f) stats::integrate(function(theta) {
    f(theta) * exp(log_lik(theta) - truth) * stats::dnorm(theta)
  }, -10, 10, rel.tol = 1e-10)$value
  right <- c(mean_of(function(theta) stats::dnorm(theta, log = TRUE)), mean_of(log_lik) - truth)
  # as NAMESPACE has it after `make docs`
  for (class in c("evidence", "incomplete_evidence", "model_comparison"))
    registerS3method("toy_verb", class, package[[paste0("toy_verb.", class)]], package)
  table <- package$toy_verb(package$compare_models(a = fit, b = fit), waits)
  alone <- package$toy_verb(fit, waits)
  cat(sprintf("toy_verb(): %.3f, %.3f; truth %.3f, %.3f\n", alone$log_prior, alone$information,
              right[1], right[2]))
  refused <- tryCatch(package$toy_verb(structure(list(), class = "incomplete_evidence")),
                      error = conditionMessage)
  max(abs(unlist(alone) - right)) > 0.1 || !is.character(refused) ||
    !identical(unname(unlist(table[1, c("log_prior", "information")])), unname(unlist(alone))) ||
    !all(table$posterior == 0.5) || !grepl("resume() before toy_verb()", refused, fixed = TRUE)
}

run_toys <- function(root) {
  copy <- built_copy(root)
  library <- tempfile("library-")
  flags <- tempfile("flags-")
  on.exit(unlink(c(copy, library, flags), recursive = TRUE))
  for (diff in toy_diffs(root)) add_toy(diff, root, copy)
  dir.create(library)
  writeLines("CFLAGS = -O1", flags) # compiled fast, not to run fast
  said <- suppressWarnings(system2(
    file.path(R.home("bin"), "R"),
    c("CMD", "INSTALL", "--no-docs", "--no-byte-compile", "--no-test-load",
      paste0("--library=", library), copy),
    env = paste0("R_MAKEVARS_USER=", flags), stdout = TRUE, stderr = TRUE
  ))
  if (!is.null(attr(said, "status"))) {
    writeLines(grep("^(gcc|cc|clang)[ -]", said, value = TRUE, invert = TRUE))
    stop("The copy with the toys does not install.", call. = FALSE)
  }
  loadNamespace("logevidence", lib.loc = library)
  package <- asNamespace("logevidence")

  set.seed(1)
  waits <- stats::rexp(20, 2)
  model <- package$toy_model()
  truth <- log(stats::integrate(function(theta) {
    exp(20 * theta - exp(theta) * sum(waits)) * stats::dnorm(theta)
  }, -10, 10, rel.tol = 1e-10)$value)
  fits <- list(
    `toy_model() by the default method` = package$evidence(model, waits, seed = 1),
    `toy_kernel() in smc()` =
      package$evidence(model, waits, package$smc(kernel = package$toy_kernel()), seed = 1),
    `toy_method()` = package$evidence(model, waits, package$toy_method(5000), seed = 1),
    `toy_model(), rows with two workers` = by_two_workers(package, model, waits),
    `rows_toy()` = package$evidence(model, package$rows_toy(20), seed = 1)
  )
  same <- package$with_seed_words(package$seed_words(1), stats::rexp(20, 2))
  in_memory <- package$evidence(model, package$rows_in_memory(same), seed = 1)
  wrong <- !identical(fits$`rows_toy()`$log_evidence, in_memory$log_evidence)
  if (wrong) cat("rows_toy() does not give the bits of the same rows in memory\n")
  wrong <- verb_wrong(package, fits[[1]], waits, truth) || wrong
  fits$`rows_toy()` <- NULL # its rows have another evidence
  # precisions a + b of two exponential numbers have a gamma distribution
  numbers <- data.frame(y = stats::rnorm(20, 1, 0.7))
  of_numbers <- function(precision) vapply(precision, function(p) {
    centred <- sum((numbers$y - mean(numbers$y))^2) * p + mean(numbers$y)^2 / (1 / (20 * p) + 4)
    exp(-10 * log(2 * pi) + 10 * log(p) - log(1 + 80 * p) / 2 - centred / 2)
  }, 0)
  truths <- c(rep(truth, length(fits)), log(stats::integrate(function(p)
    of_numbers(p) * stats::dgamma(p, 2), 0, 50, rel.tol = 1e-10)$value))
  fits$`regression of the family "toy"` <- package$evidence(
    package$regression(y ~ 1, "toy", prior = package$normal(0, 1),
                       intercept = package$normal(0, 2)), numbers, seed = 1)
  wrong <- wrong || !"draws from the prior" %in% fits$`toy_method()`$verdict$entry &&
    !"draws from the prior" %in% fits[[1]]$verdict$entry
  if (wrong) cat("the toy check has no entry\n")
  for (k in seq_along(fits)) {
    name <- names(fits)[k]
    truth <- truths[k]
    fit <- fits[[k]]
    z <- (fit$log_evidence - truth) / fit$se
    cat(sprintf("%-34s %.4f, standard error %.4f, truth %.4f\n", name, fit$log_evidence, fit$se,
                truth))
    wrong <- wrong || !isTRUE(abs(z) < 5) || fit$se > 0.5
  }
  refused <- tryCatch(package$evidence(model, waits,
                                       replace(package$toy_method(), "settings",
                                               list(list(drawz = 9)))),
                      error = conditionMessage)
  cat("a misspelt setting: ", refused, "\n", sep = "")
  !wrong && is.character(refused) && grepl("drawz", refused, fixed = TRUE)
}

if (sys.nframe() == 0) {
  script <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))
  quit(status = if (run_toys(dirname(dirname(normalizePath(script))))) 0 else 1)
}

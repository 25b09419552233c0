# References and runs of generated problems (generate.R). Rows have `draw`, the seed of the
# problems, beside `seed`, that of the fit.

# References of the problems that have none yet, each written as soon as it is found.
write_generated_truths <- function(indices, draw, file) {
  known <- if (file.exists(file)) with(read.csv(file), index[seed == draw])
  for (index in setdiff(indices, known)) {
    for (attempt in 0:20) {
      problem <- generate_problem(index, draw, attempt)
      started <- proc.time()[[1]]
      truth <- made(1, suppressWarnings(problem$truth()))
      good <- is.finite(truth$value) && truth$se < LARGEST_ERROR
      message(sprintf("%-20s %14.4f +- %.4f  %s, %.1f s%s", problem$name, truth$value, truth$se,
                      truth$way, proc.time()[[1]] - started, if (good) "" else ", dropped"))
      if (good) break
    }
    if (!good) stop("no reference of ", problem$name)
    append_rows(data.frame(seed = draw, index = index, attempt = attempt, problem = problem$name,
                           truth = signif(truth$value, 9), error = signif(truth$se, 2),
                           way = truth$way), file)
  }
}

generated_problems <- function(indices, draw, truths, families = ".") {
  rows <- read.csv(truths)
  rows <- rows[rows$seed == draw & rows$index %in% indices & grepl(families, rows$problem), ]
  Map(function(index, attempt) generate_problem(index, draw, attempt), rows$index, rows$attempt)
}

# Runs of a commit that are in the file are not made again, unless the package had changes. Seeds
# of fits differ between problems: with the same ones, errors of problems with as many parameters
# would be alike.
run_generated <- function(problems, methods, seeds, file, limit = 30) {
  key <- function(rows) with(rows, paste(draw, problem, method, seed, commit))
  seen <- if (file.exists(file)) key(read.csv(file))
  if (grepl("[+]$|^unknown", package_commit())) seen <- NULL
  for (problem in problems) for (method in intersect(methods, FAMILIES[[problem$kind]])) {
    rows <- list()
    for (seed in 100 * problem$index + seeds) {
      this <- list(draw = problem$draw, problem = problem$name, method = method, seed = seed,
                   commit = package_commit())
      if (key(this) %in% seen) next
      rows[[length(rows) + 1]] <- cbind(draw = problem$draw, family = problem$family,
                                        one_fit(problem, method, seed, limit))
    }
    if (!length(rows)) next
    rows <- do.call(rbind, rows)
    append_rows(rows, file)
    message(sprintf("%-20s %-10s %2d fits, %.1f s", problem$name, method, nrow(rows),
                    sum(rows$seconds)))
  }
}

# Kinds of families, for the table of bench/README.md.
KINDS_OF_FAMILIES <- list(
  "regressions, also collinear and p > n" = c(
    "linear", "linear-noise", "collinear", "wide-linear", "counts", "binary", "wide-binary",
    "times", "outliers", "softmax"),
  "heavy priors, noise by group, clusters under a t" = c("heavy-prior", "noise-groups",
                                                         "clusters-t"),
  "sines of unknown phase or frequency" = c("phase", "frequency"),
  "products of unknown numbers" = "products",
  "skew, contaminated and zero-inflated rows" = c("skew-rows", "contaminated", "zeros"),
  "up to 256 peaks, heavy priors" = c("peaks", "corners", "heavy-peaks"),
  "shells, bananas, funnels" = "shapes",
  "skewed and normal densities" = c("skew-product", "normal"),
  "mixtures" = c("mixture-few", "mixture-ties", "mixture"),
  "latent variables, few rows" = c("clustering", "attributes", "rank-one"))

kind_line <- function(part, name) c(
  name, length(unique(paste(part$draw, part$problem))), nrow(part), percent(part$silent_tenth),
  percent(part$silent_any), percent(part$beyond), percent(part$wrong), percent(part$doubted),
  percent(abs(part$z[is.finite(part$z)]) < 2), number(mean(part$seconds)))
KIND <- c("families of problems", "problems", "runs", "silent > .1", "silent", "beyond 4 se",
          "wrong", "doubted", "within 2 se", "s")
kind_lines <- function(part) table_lines(KIND, c(
  lapply(names(KINDS_OF_FAMILIES), function(name)
    kind_line(part[part$family %in% KINDS_OF_FAMILIES[[name]], ], name)),
  list(kind_line(part, "all"))))

report_generated <- function(file, truths) {
  rows <- judged_generated(file, truths)
  for (part in split(rows, list(rows$method, rows$commit), drop = TRUE)) {
    cat(sprintf("\n## %s, commit %s\n\n", part$method[1], part$commit[1]))
    writeLines(kind_lines(part))
    cat("\n")
    lines <- lapply(split(part, factor(part$family, intersect(names(GENERATORS), part$family))),
                    function(own) honest_line(own, own$family[1]))
    writeLines(table_lines(HONEST, c(lines, list(honest_line(part, "**all**")))))
    worst_lines(part)
  }
}

judged_generated <- function(file, truths) {
  rows <- read.csv(file)
  # of runs made twice with changed code the last counts
  rows <- rows[!duplicated(rows[c("draw", "problem", "method", "seed", "commit")],
                           fromLast = TRUE), ]
  truths <- read.csv(truths)
  benign <- unlist(lapply(split(truths, truths$seed), function(some) {
    is <- vapply(seq_len(nrow(some)), function(i)
      generate_problem(some$index[i], some$seed[i], some$attempt[i])$benign, NA)
    setNames(is, paste(some$seed, some$problem))
  }))
  names(benign) <- sub("^[^.]*[.]", "", names(benign))
  rows <- judge(rows, data.frame(problem = paste(truths$seed, truths$problem), truth = truths$truth,
                                 se = truths$error), paste(rows$draw, rows$problem))
  rows$benign <- benign[paste(rows$draw, rows$problem)]
  rows$hidden <- FALSE
  rows
}

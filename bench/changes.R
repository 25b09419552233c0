# Are changes found where they are, with intervals that cover, and none where there are none?
# Streams of 100,000 rows with one change after row 50,000, and stationary ones.
#
#   Rscript bench/changes.R [streams = 200] [directory = bench/results] [rows = 100000]
#   Rscript bench/changes.R shift [streams = 5] [directory = bench/results]
#
# Runs the installed package (R_LIBS says which). Writes changes.csv, one row for each stream; the
# second form the papers' stream of clusters (bench/shift.R): changes-shift.csv.

suppressPackageStartupMessages(library(logevidence))

# Rows before and after; `change` is 0 for a stationary stream.
kinds <- list(
  mean = list(model = gaussian_mean(~ y, prior_sd = 3), what = "mean 0 to 0.5, sd 1",
              rows = function(n, later) data.frame(y = rnorm(n) + 0.5 * later)),
  slope = list(model = linear_regression(y ~ x, sigma = 1, prior_sd = 3),
               what = "slope 1 to 1.1, noise 1",
               rows = function(n, later) {
                 x <- rnorm(n)
                 data.frame(x = x, y = (1 + 0.1 * later) * x + rnorm(n))
               }),
  variance = list(model = gaussian_mixture(~ y, components = 1, location = 0, rate = 1),
                  what = "sd 1 to 1.2",
                  rows = function(n, later) data.frame(y = rnorm(n) * (1 + 0.2 * later))),
  proportion = list(model = binomial_probability(y ~ 1), what = "probability 0.30 to 0.35",
                    rows = function(n, later) data.frame(y = rbinom(n, 1, 0.3 + 0.05 * later)))
)

one_stream <- function(kind, changed, seed, n) {
  set.seed(seed)
  data <- kinds[[kind]]$rows(n, changed * (seq_len(n) > n / 2))
  seconds <- system.time(found <- suppressWarnings(
    change_points(kinds[[kind]]$model, data, seed = seed)
  ))
  first <- found$changes[1, ]
  data.frame(kind = kind, changed = changed, seed = seed, number = found$number,
             posterior = max(found$numbers$posterior),
             log_bayes_factor = found$numbers$log_bayes_factor[2],
             error = found$numbers$error[found$number + 1], row = first$row, from = first$from,
             to = first$to, covers = first$from <= n / 2 && n / 2 <= first$to,
             cpu = sum(seconds[1:2]))
}

main <- function(streams = "200", directory = "bench/results", rows = "100000") {
  dir.create(directory, showWarnings = FALSE, recursive = TRUE)
  cases <- expand.grid(kind = names(kinds), changed = c(TRUE, FALSE),
                       seed = seq_len(as.integer(streams)), stringsAsFactors = FALSE)
  cores <- as.integer(Sys.getenv("MC_CORES", "1"))
  table <- do.call(rbind, parallel::mclapply(seq_len(nrow(cases)), function(i) {
    row <- one_stream(cases$kind[i], cases$changed[i], cases$seed[i], as.integer(rows))
    cat(format(unlist(row)), "\n")
    row
  }, mc.cores = cores))
  write.csv(table, file.path(directory, "changes.csv"), row.names = FALSE)
  summarise(table)
}

summarise <- function(table) {
  for (kind in names(kinds)) {
    own <- table[table$kind == kind, ]
    changed <- own[own$changed, ]
    one <- changed[changed$number == 1, ]
    still <- own[!own$changed, ]
    cat(sprintf("| %s | %s | %.0f%% | %.1f%% | %.0f | %.3f | %.1f%% | %.1f |\n", kind,
                kinds[[kind]]$what, 100 * mean(changed$number == 1), 100 * mean(one$covers),
                median(one$to - one$from), max(changed$error), 100 * mean(still$number == 0),
                median(own$cpu)))
  }
}

# Mixtures of 3, 5 and 7 components on the rows themselves, and shares of clusters.
shift <- function(streams = "5", directory = "bench/results") {
  own <- new.env()
  lines <- readLines("bench/shift.R")
  eval(parse(text = lines[seq_len(grep("^asked <- ", lines)[1] - 1)]), own)
  one <- function(stream, name) {
    data <- own$simulated(1e5, stream)
    model <- if (name == "shares") softmax_regression(k ~ 1, prior_sd = 2)
    else gaussian_mixture(components = as.numeric(name), location = 0, rate = 1)
    if (name == "shares") {
      # the most probable of seven components of each row, from every twentieth row
      fit <- suppressWarnings(evidence(gaussian_mixture(components = 7, location = 0, rate = 1),
                                       data[seq(1, 1e5, 20), ],
                                       laplace(starts = 48), seed = stream))
      data <- data.frame(k = factor(predict(fit, data, type = "class")))
    }
    seconds <- system.time(found <- suppressWarnings(change_points(model, data, seed = stream)))
    row <- cbind(stream = stream, model = name, number = found$number, cpu = sum(seconds[1:2]),
                 error = found$numbers$error[found$number + 1],
                 found$changes[c("row", "from", "to", "probability")])
    print(row, row.names = FALSE)
    row
  }
  table <- NULL
  for (name in c("shares", "3", "5", "7")) for (stream in seq_len(as.integer(streams))) {
    table <- rbind(table, one(stream, name))
    write.csv(table, file.path(directory, "changes-shift.csv"), row.names = FALSE)
  }
}

arguments <- commandArgs(trailingOnly = TRUE)
if (identical(arguments[1], "shift")) do.call(shift, as.list(arguments[-1])) else
  do.call(main, as.list(arguments))

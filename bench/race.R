# Several models on one pass: are the numbers those of single fits, what does it cost, is the rule
# "stop at 10 or 1/10" as safe as theory says, and is the error along the stream right?
#
#   Rscript bench/race.R bits [streams = 10] [rows = 100000]
#   Rscript bench/race.R stop [streams = 500] [rows = 200]
#   Rscript bench/race.R band [streams = 100] [rows = 20000]
#   Rscript bench/race.R score [streams = 50] [rows = 2000]
#   Rscript bench/race.R memory [rows = 10000000]
#   Rscript bench/race.R shift
#   Rscript bench/race.R report
#
# Each writes bench/results/race-<name>.csv, which `report` prints as tables; `shift` writes the
# numbers of a vignette, vignettes/race-shift.csv. Runs the installed package (R_LIBS says which).

suppressPackageStartupMessages(library(logevidence))

RESULTS <- "bench/results"
file_of <- function(name) file.path(RESULTS, paste0("race-", name, ".csv"))
write_table <- function(table, name) write.csv(table, file_of(name), row.names = FALSE)
fits_of <- function(race) attr(race, "fits")

simulated <- function(rows, seed) {
  set.seed(seed)
  data <- data.frame(x = rnorm(rows), z = rnorm(rows), w = rnorm(rows))
  data$y <- rpois(rows, exp(0.3 + 0.1 * data$x - 0.02 * data$z))
  data
}

four_models <- function() list(
  constant = regression(y ~ 1, family = poisson()), x = regression(y ~ x, family = poisson()),
  xz = regression(y ~ x + z, family = poisson()),
  all = regression(y ~ x + z + w, family = poisson()))

# Blocks of a data frame, and how many rows were given.
counted <- function(data, size = 5000) {
  at <- given <- 0
  source <- rows_function(function(reset) {
    if (reset) at <<- 0 else if (at < nrow(data)) {
      block <- data[(at + 1):min(at + size, nrow(data)), ]
      at <<- at + nrow(block)
      given <<- given + nrow(block)
      block
    }
  })
  list(source = source, given = function() given)
}

cpu <- function(code) sum(system.time(code)[1:2])

# Time to read the blocks alone, which single fits do each.
reading <- function(data, size = 5000) cpu(for (i in seq_len(ceiling(nrow(data) / size)))
  data[((i - 1) * size + 1):min(i * size, nrow(data)), ])

bits_of <- function(i, rows) {
  data <- simulated(rows, i)
  models <- four_models()
  singly <- list()
  single <- cpu(for (name in names(models))
    singly[[name]] <- evidence(models[[name]], counted(data)$source, seed = i))
  source <- counted(data)
  together <- cpu(race <- evidence(models, source$source, seed = i))
  same <- vapply(names(models), function(name) {
    own <- fits_of(race)[[name]]
    identical(own$log_evidence, singly[[name]]$log_evidence) &&
      identical(own$draws, singly[[name]]$draws)
  }, NA)
  data.frame(stream = i, rows = rows, same = all(same), read = source$given() / rows,
             single = single, together = together, reading = reading(data))
}

bits <- function(streams = 10, rows = 1e5)
  write_table(do.call(rbind, lapply(seq_len(streams), bits_of, rows)), "bits")

# Streams from two models with parameters from their priors, stopped at 10 or 1/10.
stop_rule <- function(streams = 500, rows = 200) {
  set.seed(1)
  covariates <- function(n) data.frame(x = rnorm(n))
  models <- list(slope = linear_regression(y ~ x), none = linear_regression(y ~ 1))
  design <- study_design(models, rows, data = covariates, nsim = streams,
                         method = sgais(), seed = 1)
  print(design)
  write_table(as.data.frame(unclass(design)[names(design)]), "stop")
}

# The error of the log Bayes factor along a stream, by closed forms.
band_of <- function(i, rows) {
  models <- list(none = linear_regression(y ~ 1, sigma = 1, prior_sd = 1),
                 slope = linear_regression(y ~ x, sigma = 1, prior_sd = 1))
  set.seed(i)
  data <- data.frame(x = rnorm(rows))
  data$y <- 1 + 0.01 * data$x + rnorm(rows)
  race <- evidence(models, data, seed = i, keep = 5000)
  moments <- as.data.frame(race)
  at <- unique(moments$rows)
  at <- at[findInterval(c(50, 500, 2000, 10000, rows), at)]
  do.call(rbind, lapply(at, function(n) {
    own <- moments[moments$rows == n & moments$model != "combination", ]
    true <- vapply(models, function(model)
      evidence(model, data[seq_len(n), ], exact())$log_evidence, 0)
    error <- own$log_evidence - true
    data.frame(stream = i, rows = n, from = own$from[1], error_none = error[1],
               error_slope = error[2], se_none = own$se[1], se_slope = own$se[2])
  }))
}

band <- function(streams = 100, rows = 20000)
  write_table(do.call(rbind, lapply(seq_len(streams), band_of, rows)), "band")

# Log score of the combination against that of the best model: at most the log of the number of
# models below, on streams of one of the models and of none.
score <- function(streams = 50, rows = 2000) {
  table <- do.call(rbind, lapply(seq_len(streams), function(i) {
    data <- simulated(rows, i)
    # every other stream has more spread than any Poisson model
    if (i %% 2 == 0) data$y <- rnbinom(rows, mu = exp(0.3 + 0.1 * data$x), size = 1)
    race <- suppressWarnings(evidence(four_models(), data, seed = i, keep = 1000))
    moments <- as.data.frame(race)
    models <- moments[moments$model != "combination", ]
    best <- tapply(models$log_evidence, models$rows, max)
    combined <- moments[moments$model == "combination", ]
    gap <- best[as.character(combined$rows)] - combined$log_evidence
    data.frame(stream = i, from = if (i %% 2) "a model of the list" else "none of the list",
               largest = max(gap), last = gap[length(gap)], bound = log(4))
  }))
  rownames(table) <- NULL
  write_table(table, "score")
}

# A file of many rows, four models, and the largest memory of the process.
memory <- function(rows = 1e7) {
  file <- tempfile(fileext = ".csv")
  on.exit(unlink(file))
  set.seed(1)
  connection <- file(file, "w")
  writeLines("x,y", connection)
  for (i in seq_len(ceiling(rows / 1e6))) {
    x <- round(rnorm(min(1e6, rows)), 4)
    writeLines(paste(x, rpois(length(x), exp(0.3 + 0.1 * x)), sep = ","), connection)
  }
  close(connection)
  gc(reset = TRUE)
  peak <- function() as.numeric(sub("[^0-9]*([0-9]+).*", "\\1", grep("VmHWM", readLines(
    "/proc/self/status"), value = TRUE))) / 1024
  before <- peak()
  models <- list(constant = regression(y ~ 1, family = poisson()),
                 x = regression(y ~ x, family = poisson()),
                 squared = regression(y ~ x + I(x^2), family = poisson()),
                 spread = regression(y ~ x, family = negative_binomial()))
  seconds <- system.time(race <- evidence(models, rows_csv(file), seed = 1))[["elapsed"]]
  print(race)
  write_table(data.frame(rows = rows, file_mb = file.size(file) / 2^20, models = length(models),
                         seconds = seconds, peak_before_mb = before, peak_mb = peak()), "memory")
}

# The stream of the SGAIS article whose law changes twice (bench/shift.R), and mixtures of 3, 5 and
# 7 components.
shift <- function(rows = 1e5) {
  source("bench/shift.R", local = stream <- new.env())
  data <- stream$simulated(rows, 1)
  models <- lapply(c(three = 3, five = 5, seven = 7), function(k)
    gaussian_mixture(components = k, location = 0, rate = 1, mean_scale = 10))
  seconds <- system.time(
    race <- suppressWarnings(evidence(models, data, seed = 1, keep = 20000)))[["elapsed"]]
  print(race)
  cat("seconds:", round(seconds), "\n")
  moments <- as.data.frame(race)
  restarts <- lapply(fits_of(race), function(fit)
    fit$trace$n[c(FALSE, diff(fit$trace$restarts) > 0)])
  print(restarts)
  write.csv(moments, "vignettes/race-shift.csv", row.names = FALSE)
}

report <- function() {
  read <- function(name) if (file.exists(file_of(name))) read.csv(file_of(name))
  if (!is.null(d <- read("bits"))) {
    cat("| streams | rows | same bits | rows read | CPU / sum of single fits |\n",
        "|---|---|---|---|---|\n", sep = "")
    ratio <- d$together / (d$single - 3 * d$reading)
    cat(sprintf("| %d | %d | %d | %.2f times | %.2f (%.2f to %.2f) |\n\n", nrow(d), d$rows[1],
                sum(d$same), max(d$read), median(ratio), min(ratio), max(ratio)))
  }
  if (!is.null(d <- read("stop"))) print(d)
  if (!is.null(d <- read("band"))) {
    d$group <- ave(d$rows, d$stream, FUN = seq_along)
    cat("| rows | sd of the error | stated | |z| < 2 | correlation of the two errors |\n",
        "|---|---|---|---|---|\n", sep = "")
    for (g in sort(unique(d$group))) {
      own <- d[d$group == g, ]
      error <- own$error_slope - own$error_none
      se <- sqrt(own$se_none^2 + own$se_slope^2)
      cat(sprintf("| %d (%s) | %.3f | %.3f | %.0f%% | %.2f |\n", max(own$rows), own$from[1],
                  sqrt(mean(error^2)), mean(se), 100 * mean(abs(error / se) < 2),
                  cor(own$error_slope, own$error_none)))
    }
    cat("\n")
  }
  if (!is.null(d <- read("score"))) print(aggregate(cbind(largest, last) ~ from, d, max))
  if (!is.null(d <- read("memory"))) print(d)
}

arguments <- commandArgs(TRUE)
do.call(switch(arguments[1], bits = bits, stop = stop_rule, band = band, score = score,
               memory = memory, shift = shift, report = report),
        as.list(as.numeric(arguments[-1])))

# Streams in bounded memory: how large is the error, what does the memory do, what does it cost?
#
#   Rscript bench/stream.R accuracy [streams = 10] [directory = bench/results] [rows = 1e6]
#   Rscript bench/stream.R shift    [streams = 5]  [directory] [rows = 1e5]
#   Rscript bench/stream.R memory   [rows = 1e8]   [directory]
#   Rscript bench/stream.R sqlite   [rows = 2e7]   [directory]
#   Rscript bench/stream.R draw     [directory]
#   Rscript bench/stream.R tables   [directory]
#
# `accuracy`: fresh data of each kind of million.R, once as rows that can be read only once and once
# as rows that can be read again, with keep = 20,000. The reference is that of million.R.  Writes
# stream.csv. `shift`: the streams of shift.R, whose law changes. Writes stream-shift.csv. `memory`:
# linear regression on 10^6, 10^7 and 10^8 generated rows, each in a process of its own: peak
# memory, seconds, and seconds of reading alone, in pairs. Writes stream-memory.csv. `sqlite`: the
# same from a table of SQLite.  Writes stream-sqlite.csv.

suppressPackageStartupMessages(library(logevidence))

# Definitions of another script, without running it.
definitions_of <- function(file) {
  into <- new.env(parent = globalenv())
  for (line in parse(file)) if (is.call(line) && identical(line[[1]], quote(`<-`))) eval(line, into)
  into
}
bench <- dirname(sub("--file=", "", grep("--file=", commandArgs(), value = TRUE)))
million <- definitions_of(file.path(bench, "million.R"))
shifting <- definitions_of(file.path(bench, "shift.R"))

rows_of <- function(data, which) {
  if (is.matrix(data)) data[which, , drop = FALSE]
  else list(x = data$x[which, , drop = FALSE], y = data$y[which])
}

in_blocks <- function(data, rewind, size = 1e5) {
  n <- NROW(if (is.matrix(data)) data else data$x)
  at <- 0
  rows_function(function(reset) {
    if (reset) at <<- 0
    else if (at < n) {
      which <- (at + 1):min(at + size, n)
      at <<- max(which)
      rows_of(data, which)
    }
  }, rewind)
}

one_fit <- function(model, data, seed, rewind) {
  seconds <- system.time(
    fit <- suppressWarnings(evidence(model, in_blocks(data, rewind), seed = seed,
                                     progress = FALSE)), gcFirst = FALSE)[["elapsed"]]
  data.frame(again = rewind, log_evidence = fit$log_evidence, se = fit$se, source = fit$source,
             sampler = fit$sampler$log_evidence, sampler_se = fit$sampler$se,
             restarts = max(fit$trace$restarts), warned = length(fit$warnings),
             failed = length(fit$failed), seconds = seconds)
}

write_table <- function(table, directory, name)
  utils::write.csv(table, file.path(directory, name), row.names = FALSE)

accuracy <- function(streams = "10", directory = "bench/results", rows = "1e6") {
  table <- NULL
  for (name in names(million$PROBLEMS)) for (stream in seq_len(as.integer(streams))) {
    problem <- million$simulated(name, as.numeric(rows), 7000 + stream)
    reference <- million$reference_of(name, problem, as.numeric(rows))
    for (rewind in c(FALSE, TRUE)) {
      fit <- one_fit(problem$model, problem$data, stream, rewind)
      table <- rbind(table, cbind(model = name, stream = stream, n = as.numeric(rows), fit,
                                  reference = reference[1], reference_se = reference[2]))
      print(utils::tail(table, 1), row.names = FALSE)
      write_table(table, directory, "stream.csv")
    }
  }
}

# The mean of the runs that have found the best modes.
reference_of <- function(model, data) {
  value <- vapply(1:3, function(seed)
    evidence(model, data, laplace(importance = 4000), seed = seed)$log_evidence, 0)
  mean(value[value > max(value) - 0.5])
}

shift <- function(streams = "5", directory = "bench/results", rows = "1e5") {
  table <- NULL
  for (stream in seq_len(as.integer(streams))) {
    data <- shifting$simulated(as.integer(as.numeric(rows)), 100 + stream)
    for (components in c(3, 5, 7)) {
      model <- gaussian_mixture(components = components, location = 0, rate = 1)
      reference <- reference_of(model, data)
      for (rewind in c(FALSE, TRUE)) {
        table <- rbind(table, cbind(stream = stream, components = components,
                                    one_fit(model, data, stream, rewind), reference = reference))
        print(utils::tail(table, 1), row.names = FALSE)
        write_table(table, directory, "stream-shift.csv")
      }
    }
  }
}

# ---- memory and time ----

# Linear regression with six coefficients; blocks of 100,000 rows.
generator <- function(n, size = 1e5) {
  done <- 0
  rows_function(function(reset) {
    if (reset) {
      set.seed(1)
      done <<- 0
    } else if (done < n) {
      k <- min(size, n - done)
      done <<- done + k
      x <- matrix(stats::rnorm(5 * k), k, dimnames = list(NULL, letters[1:5]))
      data.frame(x, y = drop(x %*% (1:5 / 5)) + stats::rnorm(k))
    }
  })
}

table_of_sqlite <- function(n) {
  file <- file.path(tempdir(), "rows.sqlite")
  if (!file.exists(file)) {
    con <- DBI::dbConnect(RSQLite::SQLite(), file)
    reader <- generator(n)$open()
    DBI::dbExecute(con, "PRAGMA synchronous = OFF")
    while (!is.null(block <- reader$read())) DBI::dbWriteTable(con, "rows", block, append = TRUE)
    DBI::dbDisconnect(con)
  }
  file
}

peak <- function() {
  line <- grep("^VmHWM", readLines("/proc/self/status"), value = TRUE)
  as.numeric(sub("[^0-9]*([0-9]+).*", "\\1", line)) / 1024
}

read_alone <- function(source) {
  reader <- source$open()
  on.exit(reader$close())
  system.time(while (!is.null(reader$read())) NULL, gcFirst = FALSE)[["elapsed"]]
}

# In a process of its own: what is asked for on n rows of this kind, as a line.
child <- function(what, n, file = "") {
  n <- as.numeric(n)
  con <- if (nzchar(file)) DBI::dbConnect(RSQLite::SQLite(), file)
  source <- if (nzchar(file)) rows_dbi(con, "rows") else generator(n)
  model <- linear_regression(y ~ ., sigma = 1, prior_sd = 2)
  seconds <- if (what == "read") read_alone(source)
  else system.time(fit <- evidence(model, source, seed = 1, progress = FALSE))[["elapsed"]]
  if (!is.null(con)) DBI::dbDisconnect(con)
  cat(sprintf("%.4f %.1f %.6f\n", seconds, peak(), if (what == "read") NA else fit$se))
}

measured <- function(what, n, file = "") {
  script <- file.path(bench, "stream.R")
  line <- system2(file.path(R.home("bin"), "Rscript"), c(script, "child", what, n, file),
                  stdout = TRUE)
  as.numeric(strsplit(utils::tail(line, 1), " ")[[1]])
}

pairs_of <- function(sizes, repeats, directory, name, file = function(n) "") {
  table <- NULL
  for (n in sizes) for (k in seq_len(if (n > 1e7) 1 else repeats)) {
    reading <- suppressWarnings(measured("read", n, file(n)))
    run <- measured("run", n, file(n))
    table <- rbind(table, data.frame(n = n, pair = k, read = reading[1], run = run[1],
                                     ratio = run[1] / reading[1], megabytes = run[2],
                                     megabytes_reading = reading[2], se = run[3]))
    print(utils::tail(table, 1), row.names = FALSE)
    write_table(table, directory, name)
  }
}

memory <- function(rows = "1e8", directory = "bench/results")
  pairs_of(10^(6:round(log10(as.numeric(rows)))), 3, directory, "stream-memory.csv")

sqlite <- function(rows = "2e7", directory = "bench/results")
  pairs_of(as.numeric(rows), 1, directory, "stream-sqlite.csv", table_of_sqlite)

# ---- tables and pictures ----

read_table <- function(directory, name) {
  file <- file.path(directory, name)
  if (file.exists(file)) utils::read.csv(file)
}

line <- function(...) cat("|", paste(..., sep = " | "), "|\n")

tables <- function(directory = "bench/results") {
  table <- read_table(directory, "stream.csv")
  if (!is.null(table)) {
    table$error <- table$log_evidence - table$reference
    table$z <- table$error / sqrt(table$se^2 + table$reference_se^2)
    for (part in split(table, list(table$model, table$again), drop = TRUE))
      line(part$model[1], if (part$again[1]) "two" else "one", nrow(part),
           sprintf("%.3f", mean(part$error)), sprintf("%.3f", stats::sd(part$error)),
           sprintf("%.3f", mean(part$se)), sprintf("%.0f%%", 100 * mean(abs(part$z) < 2)),
           sum(part$failed > 0), sprintf("%.2f", stats::median(part$seconds)))
  }
  table <- read_table(directory, "stream-shift.csv")
  if (!is.null(table)) {
    table$error <- table$log_evidence - table$reference
    for (part in split(table, list(table$components, table$again), drop = TRUE))
      line(part$components[1], if (part$again[1]) "two" else "one", nrow(part),
           sprintf("%.3g", max(abs(part$error))), sprintf("%.3g", max(part$se)),
           sum(part$failed > 0), sprintf("%.1f", stats::median(part$seconds)))
  }
  for (name in c("stream-memory.csv", "stream-sqlite.csv")) {
    table <- read_table(directory, name)
    for (part in if (!is.null(table)) split(table, table$n))
      line(sprintf("10^%.1f", log10(part$n[1])), sprintf("%.2f", stats::median(part$read)),
           sprintf("%.2f", stats::median(part$run)), sprintf("%.2f", stats::median(part$ratio)),
           sprintf("%.0f", max(part$megabytes)))
  }
}

# Errors with their standard errors, and memory and seconds against the number of rows.
draw <- function(directory = "bench/results") {
  table <- read_table(directory, "stream.csv")
  memory <- read_table(directory, "stream-memory.csv")
  grDevices::png(file.path(directory, "stream.png"), 1900, 1300, res = 130)
  on.exit(grDevices::dev.off())
  graphics::layout(matrix(c(1, 1, 2, 3), 2, byrow = TRUE))
  graphics::par(mar = c(4, 4.5, 2.5, 1), las = 1)
  table$error <- table$log_evidence - table$reference
  table <- table[order(match(table$model, names(million$PROBLEMS)), table$again, table$stream), ]
  colour <- ifelse(table$again, "#2166ac", "#b2182b")
  at <- seq_len(nrow(table)) + 2 * (cumsum(!duplicated(paste(table$model, table$again))) - 1)
  reach <- min(0.6, max(abs(table$error) + 2 * table$se))
  outside <- abs(table$error) > reach
  shown <- pmax(pmin(table$error, 0.97 * reach), -0.97 * reach)
  marks <- ifelse(outside, ifelse(shown > 0, 2, 6), 16)
  graphics::plot(at, shown, pch = marks, col = colour, ylim = c(-reach, reach),
                 xaxt = "n",
                 xlab = "", ylab = "error of the log evidence (nats)",
                 main = "A million rows as a stream, 20,000 rows kept: ten streams of each kind")
  graphics::abline(h = 0, col = "grey")
  graphics::segments(at, table$error - 2 * table$se, at, table$error + 2 * table$se, col = colour)
  if (any(outside))
    graphics::text(at[outside], shown[outside], pos = 4, cex = 0.8,
                   sprintf("%.1f \u00b1 %.1f", table$error[outside], table$se[outside]))
  graphics::axis(1, tapply(at, table$model, mean), names(tapply(at, table$model, mean)))
  graphics::legend("topleft", c("read once", "read twice"), pch = 16, bty = "n",
                   col = c("#b2182b", "#2166ac"))
  sizes <- stats::aggregate(cbind(read, run, megabytes) ~ n, memory, stats::median)
  graphics::plot(sizes$n, sizes$megabytes, log = "x", type = "b", pch = 16, xlab = "rows",
                 ylim = c(0, 300), ylab = "peak memory (MB)", main = "Memory")
  graphics::plot(sizes$n, sizes$run, log = "xy", type = "b", pch = 16, xlab = "rows",
                 ylab = "seconds", main = "Time", col = "#2166ac",
                 ylim = range(sizes$read, sizes$run))
  graphics::lines(sizes$n, sizes$read, type = "b", col = "grey40")
  graphics::legend("topleft", c("reading and evidence", "reading alone"), pch = c(16, 1),
                   col = c("#2166ac", "grey40"), bty = "n")
}

asked <- as.list(commandArgs(trailingOnly = TRUE))
task <- list(accuracy = accuracy, shift = shift, memory = memory, sqlite = sqlite, draw = draw,
             tables = tables, child = child)[[if (length(asked)) asked[[1]] else "tables"]]
if (is.null(task)) stop("accuracy, shift, memory, sqlite, draw or tables?")
invisible(do.call(task, asked[-1]))

# How do fits of rows in shards (rows_cluster()) take time with rows and workers?
#
#   Rscript bench/cluster.R run [rows = 1e6,1e7] [workers = 1,2] [seeds = 1] [models] [keep = 2e7]
#   Rscript bench/cluster.R replicates [pairs = 3]
#   Rscript bench/cluster.R memory [data sets = 10]
#   Rscript bench/cluster.R report
#
# Each shard has 500,000 rows, which its worker simulates when it reads them; `read` is the time of
# that alone. A worker keeps shards of up to `keep` numbers in memory; with `keep` = 0 it reads all
# again at each pass. Bytes are those of the serialised messages, both ways. Times are wall times;
# `memory` is the most that a worker has used so far, in MB. `report` fits the cost model
#
#   seconds = start + passes x rows / workers x (read + sums),
#
# with the time of a row's sums of each model, and says what it gives for more rows and workers.

suppressPackageStartupMessages(library(logevidence))
here <- dirname(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[1]))
FILE <- file.path(here, "results", "cluster.csv")
SHARD <- 5e5

shard_of <- function(shard) {
  set.seed(shard)
  x <- matrix(rnorm(5e5 * 5), 5e5)
  eta <- 0.3 + x %*% c(1, -1, 0.5, 0, 0.2)
  data.frame(x, k = rpois(5e5, exp(eta / 3)), class = findInterval(eta + rlogis(5e5), c(-1, 1)))
}
MODELS <- list(
  poisson = regression(k ~ X1 + X2 + X3 + X4 + X5, "poisson", prior_sd = 2.5),
  softmax = softmax_regression(factor(class) ~ X1 + X2 + X3 + X4 + X5, prior_sd = 1)
)

# The bytes of all messages, counted where they are sent and received.
counted <- new.env()
count_bytes <- function() {
  namespace <- asNamespace("logevidence")
  plain <- get("of_parallel", namespace)
  counting <- function(name) {
    f <- plain(name)
    function(...) {
      value <- f(...)
      what <- if (name == "sendCall") list(...)[-1] else value
      counted$bytes <- counted$bytes + length(serialize(what, NULL))
      value
    }
  }
  unlockBinding("of_parallel", namespace)
  assign("of_parallel", counting, namespace)
  function() assign("of_parallel", plain, namespace)
}

numbers <- function(text) as.numeric(strsplit(text, ",")[[1]])

# The most memory of a process of Linux, in MB.
memory_of <- function() {
  line <- grep("^VmHWM", readLines("/proc/self/status"), value = TRUE)
  as.numeric(gsub("[^0-9]", "", line)) / 1024
}

run <- function(rows = "1e6,1e7", workers = "1,2", seeds = "1",
                models = paste(names(MODELS), collapse = ","), keep = "2e7") {
  keep <- as.numeric(keep)
  restore <- count_bytes()
  on.exit(restore())
  # workers by turns, so that each pair sees the same machine
  for (n in numbers(rows)) for (name in strsplit(models, ",")[[1]]) for (seed in numbers(seeds))
    for (w in numbers(workers)) {
      cl <- parallel::makePSOCKcluster(w)
      shards <- ceiling(n / SHARD)
      read <- system.time(parallel::clusterApplyLB(cl, seq_len(shards), function(i, f) {
        f(i)
        NULL
      }, shard_of))[[3]]
      counted$bytes <- 0
      source <- rows_cluster(cl, shard_of, shards, keep = keep)
      seconds <- system.time(fit <- evidence(MODELS[[name]], source, seed = seed))[[3]]
      row <- data.frame(model = name, rows = n, workers = w, seed, shards, keep,
                        passes = fit$shards$passes, mb = counted$bytes / 1e6, read, seconds,
                        memory = max(unlist(parallel::clusterCall(cl, memory_of))),
                        log_evidence = fit$log_evidence, se = fit$se)
      parallel::stopCluster(cl)
      print(row, row.names = FALSE)
      old <- if (file.exists(FILE)) utils::read.csv(FILE)
      utils::write.csv(rbind(old, row), FILE, row.names = FALSE)
    }
}

# Replicates of one model and a list of models, on one worker and on two, in turn.
replicates <- function(pairs = "3") {
  set.seed(1)
  d <- data.frame(matrix(rnorm(2e5 * 5), ncol = 5))
  d$k <- rpois(2e5, exp(0.3 + 0.3 * d$X1))
  few <- d[1:20000, ]
  tasks <- list(
    "8 replicates, 20,000 rows" = function(cl)
      evidence(regression(k ~ X1 + X2 + X3, "poisson", prior_sd = 2.5), few,
               nested(200), seed = 1, replicates = 8, cl = cl),
    "8 models, 20,000 rows" = function(cl)
      evidence(lapply(1:8, function(m) regression(stats::reformulate(paste0("X", 1:3), "k"),
                                                  "poisson", prior_sd = 1 + m)), few,
               nested(200), seed = 1, cl = cl),
    "8 models, 200,000 rows" = function(cl)
      evidence(lapply(1:8, function(m) regression(stats::reformulate(paste0("X", 1:5), "k"),
                                                  "poisson", prior_sd = 1 + m)), d,
               laplace(importance = 4000), seed = 1, cl = cl))
  one <- parallel::makePSOCKcluster(1)
  two <- parallel::makePSOCKcluster(2)
  on.exit({
    parallel::stopCluster(one)
    parallel::stopCluster(two)
  })
  for (cl in list(one, two)) parallel::clusterCall(cl, loadNamespace, "logevidence")
  for (name in names(tasks)) for (i in seq_len(as.numeric(pairs))) {
    a <- system.time(first <- tasks[[name]](one))[[3]]
    b <- system.time(second <- tasks[[name]](two))[[3]]
    cat(sprintf("%s: %.2f s on one worker, %.2f s on two, %.2f times as fast, same bits: %s\n",
                name, a, b, a / b, identical(first$log_evidence, second$log_evidence)))
  }
}

# Rows in two shards against the same rows in memory, by the default method.
memory <- function(sets = "10") {
  cl <- parallel::makePSOCKcluster(2)
  on.exit(parallel::stopCluster(cl))
  models <- c(MODELS, list(linear = regression(X6 ~ X1 + X2 + X3 + X4 + X5)))
  rows_of <- function(i, shard) {
    d <- shard(i)
    d$X6 <- d$X1 / 2 + d$k
    d
  }
  for (name in names(models)) {
    found <- vapply(seq_len(as.numeric(sets)), function(set) {
      open <- function(shard) make(2 * (set - 1) + shard, plain)
      environment(open) <- list2env(list(set = set, make = rows_of, plain = shard_of),
                                    parent = globalenv())
      there <- suppressWarnings(evidence(models[[name]], rows_cluster(cl, open, 2), seed = set))
      all <- rbind(rows_of(2 * set - 1, shard_of), rows_of(2 * set, shard_of))
      here <- suppressWarnings(evidence(models[[name]], all, seed = 100 + set, progress = FALSE))
      c(there$log_evidence - here$log_evidence, sqrt(there$se^2 + here$se^2))
    }, c(0, 0))
    z <- found[1, ] / found[2, ]
    cat(sprintf(paste("%s: %d data sets of 1,000,000 rows; largest difference %.4f nats, %.1f",
                      "joint errors; mean square %.2f\n"), name, ncol(found),
                max(abs(found[1, ])), max(abs(z)), mean(z^2)))
  }
}

# The lines of the table of bench/README.md.
report_lines <- function(runs) with(runs, sprintf(
  "| %s | %s | %d | %d | %d | %.2f | %.1f | %.1f | %.0f |",
  ifelse(keep > 0, model, paste0(model, ", `keep = 0`")), show_rows(rows), workers, seed, passes,
  mb, seconds, read, memory))

report <- function() {
  runs <- utils::read.csv(FILE)
  head <- c("model", "rows", "workers", "seed", "passes", "MB", "seconds", "of these reading",
            "memory")
  writeLines(c(paste0("| ", paste(head, collapse = " | "), " |"),
               "|---|---|---|---|---|---|---|---|---|", report_lines(runs)))
  held <- runs[runs$keep > 0, ]
  for (name in unique(held$model)) cost_of(held[held$model == name, ], name)
}

show_rows <- function(rows) format(rows, big.mark = ",", trim = TRUE, scientific = FALSE)

# Relative errors are minimised, because seconds go over two orders.
cost_of <- function(runs, name) {
  work <- runs$passes * runs$rows / runs$workers
  fit <- stats::lm(seconds ~ work, runs, weights = 1 / seconds^2)
  cat(sprintf(paste0("\n%s: seconds = %.2f + %.3g x passes x rows / workers; ",
                     "largest relative error %.0f%%\n"),
              name, coef(fit)[1], coef(fit)[2], 100 * max(abs(residuals(fit) / runs$seconds))))
  passes <- round(mean(runs$passes))
  for (n in c(1e9, 1e10)) {
    more <- data.frame(shards = n / SHARD, workers = 100)
    cat(sprintf("  extrapolated: %s rows on 100 workers %.0f s, %.0f MB\n", show_rows(n),
                coef(fit)[1] + coef(fit)[2] * passes * n / 100,
                stats::predict(stats::lm(mb ~ shards + workers, runs), more)))
  }
}

asked <- commandArgs(trailingOnly = TRUE)
if (length(asked)) switch(asked[1], run = do.call(run, as.list(asked[-1])), report = report(),
                          replicates = do.call(replicates, as.list(asked[-1])),
                          memory = do.call(memory, as.list(asked[-1])),
                          stop("not `run`, `replicates`, `memory` or `report`"))

# How do fits of rows in shards (rows_cluster()) take time with rows and workers?
#
#   Rscript bench/cluster.R run [rows = 1e6,1e7] [workers = 1,2]
#   Rscript bench/cluster.R report
#
# Each shard has 500,000 rows, which its worker simulates when it reads them; `read` is the time of
# that alone. Bytes are those of the serialised messages, both ways. Times are wall times.

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
  poisson = regression(k ~ X1 + X2 + X3 + X4 + X5, "poisson", prior = normal(0, 2.5)),
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

run <- function(rows = "1e6,1e7", workers = "1,2", seeds = "1") {
  numbers <- function(text) as.numeric(strsplit(text, ",")[[1]])
  for (w in numbers(workers)) {
    cl <- parallel::makePSOCKcluster(w)
    for (n in numbers(rows)) for (name in names(MODELS)) for (seed in numbers(seeds)) {
      shards <- ceiling(n / SHARD)
      source <- rows_cluster(cl, shard_of, shards, keep = 2e7)
      read <- system.time(parallel::clusterApplyLB(cl, seq_len(shards), function(i, f) {
        f(i)
        NULL
      }, shard_of))[[3]]
      seconds <- system.time(fit <- evidence(MODELS[[name]], source, seed = seed))[[3]]
      counted$bytes <- 0
      restore <- count_bytes()
      evidence(MODELS[[name]], source, seed = seed)
      restore()
      row <- data.frame(model = name, rows = n, workers = w, seed, shards,
                        passes = fit$shards$passes, mb = counted$bytes / 1e6, read, seconds,
                        log_evidence = fit$log_evidence, se = fit$se)
      print(row, row.names = FALSE)
      old <- if (file.exists(FILE)) utils::read.csv(FILE)
      utils::write.csv(rbind(old, row), FILE, row.names = FALSE)
    }
    parallel::stopCluster(cl)
  }
}

report <- function() {
  runs <- utils::read.csv(FILE)
  cat("| model | rows | workers | passes | MB | seconds | of these reading |\n",
      "|---|---|---|---|---|---|---|\n", sep = "")
  with(runs, cat(sprintf("| %s | %s | %d | %d | %.2f | %.1f | %.1f |\n", model,
                         format(rows, big.mark = ",", trim = TRUE, scientific = FALSE), workers,
                         passes, mb, seconds, read), sep = ""))
}

asked <- commandArgs(trailingOnly = TRUE)
if (length(asked)) switch(asked[1], run = do.call(run, as.list(asked[-1])), report = report(),
                          stop("not `run` or `report`"))

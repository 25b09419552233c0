# Calls with too little memory, at several limits of a process (ulimit -v): each gives its right
# result or says in a sentence that memory is not enough, and after it R gives the bits that it
# should. A crash, another number and a hang are findings.
#
#   make memory-limit                 all calls
#   make memory-limit KIND=csv,latent

asked <- function(name, default) {
  value <- Sys.getenv(name)
  if (nzchar(value)) value else default
}
HANG <- 300 # seconds of a process
# Megabytes above those that R and the package need.
ABOVE <- c(2, 10, 25, 50, 80, 120, 180, 260, 400)

seeded <- function() set.seed(5, "Mersenne-Twister", "Inversion", "Rejection")
frame_of <- function(n) {
  seeded()
  x <- matrix(stats::rnorm(n * 10), n, dimnames = list(NULL, letters[1:10]))
  data.frame(x, y = x[, 1] + stats::rnorm(n))
}
quiet <- function(...) suppressWarnings(evidence(..., seed = 3, progress = FALSE))
in_blocks <- function(n, size) {
  at <- 0
  rows_function(function(reset) {
    if (reset) at <<- 0
    else if (at < n) {
      at <<- at + size
      frame_of(size)
    }
  })
}

CALLS <- list(
  memory = function() quiet(linear_regression(y ~ .), frame_of(500000), sgais(particles = 20)),
  particles = function() quiet(linear_regression(y ~ .), frame_of(500),
                               method_smc(particles = 20000)),
  nested = function() quiet(linear_regression(y ~ .), frame_of(500), nested(20000)),
  importance = function() quiet(linear_regression(y ~ .), frame_of(500),
                                method_laplace(importance = 1e6)),
  source = function() quiet(linear_regression(y ~ .), in_blocks(200000, 20000),
                            sgais(particles = 20)),
  keep = function() quiet(linear_regression(y ~ .), in_blocks(200000, 20000),
                          sgais(particles = 20), keep = 1e6),
  csv = function() {
    file <- tempfile(fileext = ".csv")
    on.exit(unlink(file))
    utils::write.csv(frame_of(20000), file, row.names = FALSE)
    quiet(linear_regression(y ~ .), rows_csv(file), sgais(particles = 20))
  },
  latent = function() quiet(clustering(~ a + b, components = 3), frame_of(3000),
                            method_smc("data", 500)),
  mixture = function() quiet(gaussian_mixture(~ a + b, components = 3, location = 0, rate = 1),
                             frame_of(20000),
                             sgais(particles = 200, steps = 2)),
  bdmc = function() suppressWarnings(bdmc(linear_regression(y ~ .), data = frame_of(500),
                                          method = smc(particles = 20000), chains = 2,
                                          budgets = 1, seed = 3)),
  cluster = function() {
    cl <- parallel::makePSOCKcluster(1)
    on.exit(try(parallel::stopCluster(cl), silent = TRUE))
    quiet(linear_regression(y ~ .), frame_of(40000), sgais(particles = 20), replicates = 2,
          cl = cl)
  }
)
number_of <- function(value)
  if (is.null(value$log_evidence)) value$bounds$log_evidence else value$log_evidence
small <- function() quiet(linear_regression(y ~ a), frame_of(50),
                          method_smc(particles = 50))$log_evidence

# Words of R when memory ends, and of this package.
NO_MEMORY <- paste0("^No worker of `cl` is left|",
                    "cannot allocate|memory exhausted|out of memory|not enough memory|",
                    "[Mm]emory (is not enough|could not)|Cannot allocate")

one <- asked("CALL_OF_CHILD", "")
if (nzchar(one)) {
  suppressPackageStartupMessages(library(logevidence))
  bits <- small()
  value <- tryCatch(CALLS[[one]](), error = function(e) e)
  gc(FALSE)
  after <- tryCatch(small(), error = function(e) conditionMessage(e))
  saveRDS(list(number = if (!inherits(value, "error")) number_of(value),
               said = if (inherits(value, "error")) conditionMessage(value),
               ours = inherits(value, "logevidence_error"),
               after = if (identical(after, bits)) "" else paste("afterwards:", after)),
          asked("RESULT", ""))
  quit(status = 0)
}

#' What a call gives in a process with this limit in kilobytes, or with none
limited <- function(name, kilobytes) {
  file <- tempfile()
  on.exit(unlink(file))
  script <- sprintf("%s exec '%s/Rscript' tools/memory-limit.R",
                    if (is.finite(kilobytes)) sprintf("ulimit -v %.0f;", kilobytes) else "",
                    R.home("bin"))
  log <- tempfile()
  status <- suppressWarnings(system2(
    "sh", c("-c", shQuote(script)), stdout = log, stderr = log, timeout = HANG,
    env = c(paste0("CALL_OF_CHILD=", name), paste0("RESULT=", file), "OMP_NUM_THREADS=1")))
  if (file.exists(file)) return(readRDS(file))
  list(crash = if (status %in% c(15, 124)) "a hang" else
    paste("status", status, utils::tail(readLines(log, warn = FALSE), 4), collapse = " / "))
}

# The smallest limit at which R starts and the package is loaded.
needed <- function() {
  for (kilobytes in seq(150000, 1500000, 10000)) {
    script <- sprintf("ulimit -v %d; exec '%s/Rscript' -e 'library(logevidence)'", kilobytes,
                      R.home("bin"))
    if (system2("sh", c("-c", shQuote(script)), stdout = FALSE, stderr = FALSE) == 0)
      return(kilobytes)
  }
  stop("R does not start.")
}

base <- needed() + 10000
cat("R with the package needs", base / 1000, "MB\n")
kinds <- strsplit(asked("KIND", paste(names(CALLS), collapse = ",")), ",")[[1]]
found <- runs <- 0
for (name in kinds) {
  right <- limited(name, Inf)
  words <- character()
  for (above in ABOVE) {
    got <- limited(name, base + 1000 * above)
    runs <- runs + 1
    wrong <- c(if (!is.null(got$crash)) got$crash,
               if (!is.null(got$number) && !identical(got$number, right$number)) "another number",
               if (!is.null(got$said) && !grepl(NO_MEMORY, got$said)) paste("said:", got$said),
               if (!is.null(got$after) && nzchar(got$after)) got$after)
    for (text in wrong) cat(sprintf("  FOUND %s, %d MB more: %s\n", name, above, text))
    found <- found + length(wrong)
    words <- c(words, if (length(wrong)) "found" else if (is.null(got$said)) "right" else "error")
  }
  counts <- table(words)
  cat(sprintf("%-12s %s\n", name, paste(counts, names(counts), collapse = ", ")))
}
cat(found, "findings in", runs, "runs\n")
quit(status = as.integer(found > 0))

# Runs on clusters whose workers are killed, stopped, or answer with something else, at random
# moments: the result must be the same bits as without that, or an error in a sentence of the
# package; never another number, never a hang. After it the session works, and no connection or file
# is left. A case depends on its seed and number only, apart from the timing of processes.
#
#   make faults                       60 cases
#   make faults SEED=7 CASES=200
#   make faults SEED=7 CASE=31        one case, and what was said
#   make faults ENGINE=psock,ssh      some engines only
#   make faults FAULT=part            one fault only
#
# MPI ends a job whose process is killed: that is the outcome "ended". A cluster that does not start
# in time, as on a busy machine, is "none".

library(logevidence)

asked <- function(name, default) {
  value <- Sys.getenv(name)
  if (nzchar(value)) value else default
}
words <- function(name, all) {
  some <- strsplit(asked(name, paste(all, collapse = ",")), ",")[[1]]
  wrong <- setdiff(some, all)
  if (length(wrong)) stop(name, " must be among ", toString(all), ", not ", wrong[1], ".")
  some
}
KINDS <- c("replicates", "models", "crosscheck", "shards")
FAULTS <- c("kill", "stop", "bytes", "part", "object", "task", "version", "rows")
HANG <- 150 # seconds of a case

source("tests/testthat/helper-engines.R")
engines <- words("ENGINE", ENGINES)
faults <- words("FAULT", FAULTS)
seed <- as.numeric(asked("SEED", "1"))

# Engines, faults and kinds are in turn, so that few cases have all pairs.
case_of <- function(number) {
  set.seed((seed * 1000003 + number) %% 2^31, "Mersenne-Twister", "Inversion", "Rejection")
  engine <- engines[(number - 1) %% length(engines) + 1]
  turn <- (number - 1) %/% length(engines)
  fault <- faults[turn %% length(faults) + 1]
  # messages of mirai are its own
  if (engine == "mirai" && fault %in% c("bytes", "part", "object")) fault <- "task"
  trial <- if (fault == "rows") "shards" else sample(KINDS, 1)
  list(number = number, engine = engine, fault = fault, trial = trial,
       lost = if (stats::runif(1) < 0.7) 1 else 2, seed = sample.int(1e6, 1))
}

run_case <- function(case) {
  file <- normalizePath("tools/faults/trial.R")
  use <- function(cl) {
    library(logevidence)
    env <- new.env(parent = globalenv())
    sys.source(file, env)
    env$trial(cl, case)
  }
  environment(use) <- list2env(list(file = file, case = case), parent = globalenv())
  # a cluster that does not start or ends as a whole
  failed <- function(e) {
    said <- conditionMessage(e)
    outcome <- if (grepl("exited on signal", said)) "ended"
    else if (grepl("does not start|^Reason", said) || inherits(e, "skip")) "none" else "foreign"
    list(outcome = outcome, said = said, seconds = NA)
  }
  result <- tryCatch(
    if (case$engine == "mpi" && is.null(no_mpi())) use_in_mpi(use, 3, HANG - 10)
    else on_engine(case$engine, use, 3),
    error = failed, skip = failed)
  if (nrow(showConnections())) result$left <- c(result$left, "connections after the cluster")
  result
}

show_case <- function(case) cat(sprintf(
  "case %d: %s, %s, %s of %d worker(s)\n", case$number, case$engine, case$trial, case$fault,
  case$lost))

# processes of MPI wait busily, and there are more than cores
Sys.setenv(OMPI_MCA_mpi_yield_when_idle = "1")
if (nzchar(asked("CASE", ""))) {
  case <- case_of(as.numeric(asked("CASE", "")))
  show_case(case)
  result <- run_case(case)
  file <- asked("RESULT", "")
  if (nzchar(file)) saveRDS(result, file) else utils::str(result)
  quit(status = as.integer(!result$outcome %in% c("right", "error", "ended", "none")))
}

# Each case in a process of its own, which is ended if it hangs; its workers end with it.
outcomes <- lapply(seq_len(as.numeric(asked("CASES", "60"))), function(number) {
  case <- case_of(number)
  file <- tempfile()
  log <- tempfile()
  on.exit(unlink(c(file, log)))
  status <- suppressWarnings(system2(
    file.path(R.home("bin"), "Rscript"), "tools/faults.R", stdout = log, stderr = log,
    env = c(paste0("CASE=", number), paste0("RESULT=", file)), timeout = HANG))
  result <- if (file.exists(file)) readRDS(file)
  else if (status == 124) list(outcome = "hang")
  else list(outcome = "foreign", said = utils::tail(readLines(log, warn = FALSE), 3))
  bad <- !result$outcome %in% c("right", "error", "ended", "none") || length(result$left)
  if (bad || nzchar(asked("SAID", ""))) {
    show_case(case)
    cat("  ", as.character(result$outcome),
        if (length(result$left)) paste0("; left: ", toString(result$left)),
        sprintf(" (%.1f s)\n", if (is.null(result$seconds)) NA else result$seconds), sep = "")
    for (text in result$said) cat("   ", text, "\n")
  }
  data.frame(engine = case$engine, fault = case$fault, kind = case$trial,
             outcome = result$outcome, left = length(result$left) > 0)
})
outcomes <- do.call(rbind, outcomes)
outcomes$outcome <- factor(outcomes$outcome,
                           c("right", "error", "ended", "none", "wrong", "foreign", "hang"))
table <- as.data.frame.matrix(table(paste(outcomes$engine, outcomes$fault, outcomes$kind),
                                    outcomes$outcome))
print(table)
counts <- table(outcomes$outcome)
cat(paste(counts, names(counts), collapse = ", "), "; left something: ", sum(outcomes$left), "\n",
    sep = "")
quit(status = as.integer(any(outcomes$outcome %in% c("wrong", "foreign", "hang")) ||
                           any(outcomes$left)))

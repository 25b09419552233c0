# Cases in child processes: a child runs a batch of cases and writes down which it begins and ends,
# so that a crash or a hang belongs to a case. The next child goes on after it.

BATCH <- 200
BATCH_IN_TIME <- 20 # where the time for all is limited
# A case hangs when it has not ended after SLOWEST seconds and then works for as long again, or has
# not ended after LONGEST seconds: that a machine is busy is not a finding.
SLOWEST <- 30
LONGEST <- 600

# Files of all processes, not in R's own folder, which is gone after a crash.
OWN_FILES <- tempfile("fuzz", dirname(tempdir()))
dir.create(OWN_FILES)
own_file <- function(name) file.path(OWN_FILES, name)

#' A whole number from a text, the same on each machine, as a seed of R's generator
seed_of <- function(seed, kind, number) {
  h <- 17
  for (code in utf8ToInt(paste(seed, kind, number))) h <- (h * 131 + code) %% 2147483629
  as.integer(h)
}

case_of <- function(kind, seed, number) {
  KINDS[[kind]]$prepare()
  set.seed(seed_of(seed, kind, number), "Mersenne-Twister", "Inversion", "Rejection")
  KINDS[[kind]]$make()
}

#' In the child
run_batch <- function(kind, seed, numbers, folder) {
  journal <- file(file.path(folder, "journal"), "at")
  note <- function(...) {
    cat(..., "\n", file = journal)
    flush(journal)
  }
  # R removes it when a process crashes
  tempdir(check = TRUE)
  # a case must not see files of others
  setwd(folder)
  grDevices::pdf(NULL)
  for (number in numbers) {
    note("begin", number)
    result <- judged(case_of(kind, seed, number))
    if (!is.null(result$finding))
      saveRDS(result$finding, file.path(folder, paste0("finding-", number, ".rds")))
    note("end", number, result$outcome, gsub("[ \n]+", " ", result$said))
  }
  note("whole")
  close(journal)
}

#' @return A list: `outcomes`, a table; `findings`, a list named by numbers of cases; what errors
#' have `said`.
run_numbers <- function(kind, seed, numbers, until = Inf) {
  KINDS[[kind]]$prepare()
  outcomes <- said <- known <- character()
  findings <- list()
  while (length(numbers) && as.numeric(Sys.time()) < until) {
    folder <- own_file("batch")
    dir.create(folder)
    batch <- utils::head(numbers, if (is.finite(until)) BATCH_IN_TIME else BATCH)
    ended <- watched(function() run_batch(kind, seed, batch, folder),
                     file.path(folder, "journal"))
    for (file in list.files(folder, "^finding", full.names = TRUE))
      findings[[gsub("\\D", "", basename(file))]] <- readRDS(file)
    outcomes <- c(outcomes, ended$outcomes)
    said <- c(said, ended$said)
    last <- utils::tail(batch, 1)
    if (!ended$whole) {
      # none has begun if the child could not even start
      last <- if (length(ended$at)) ended$at else batch[1]
      findings[[as.character(last)]] <-
        list(what = if (ended$hung != "") ended$hung else "the process has ended", text = "",
             of = NULL)
      outcomes <- c(outcomes, "finding")
    }
    found <- setdiff(names(findings), known)
    # a long run is not over for hours
    for (number in found)
      message("A finding: make fuzz KIND=", kind, " SEED=", seed, " CASE=", number)
    known <- c(known, found)
    numbers <- numbers[numbers > last]
    unlink(folder, recursive = TRUE)
  }
  list(outcomes = table(outcomes), findings = findings, said = said[nzchar(said)])
}

#' Seconds of work of a process, its threads included; NA where this machine does not tell
work_of <- function(pid) {
  told <- suppressWarnings(try(system2("ps", c("-o", "cputimes=", "-p", pid), stdout = TRUE,
                                       stderr = FALSE), silent = TRUE))
  suppressWarnings(as.numeric(told[1]))
}

#' Runs a function in a child, and ends it when a case takes too long
watched <- function(f, journal) {
  job <- parallel::mcparallel(f(), mc.set.seed = FALSE, silent = TRUE)
  seen <- ""
  since <- as.numeric(Sys.time())
  work <- NULL # seconds, once the case is slow
  hung <- ""
  repeat {
    gone <- !is.null(suppressWarnings(parallel::mccollect(job, wait = FALSE, timeout = 0.05)))
    lines <- if (file.exists(journal)) readLines(journal, warn = FALSE) else character()
    last <- utils::tail(c("", lines), 1)
    if (last != seen) {
      seen <- last
      since <- as.numeric(Sys.time())
      work <- NULL
    }
    if (gone || startsWith(last, "whole")) break
    waited <- as.numeric(Sys.time()) - since
    if (waited > SLOWEST && is.null(work)) work <- work_of(job$pid)
    if (waited > 2 * SLOWEST && isTRUE(work_of(job$pid) - work > SLOWEST))
      hung <- paste("no end after", 2 * SLOWEST, "seconds of work")
    if (waited > LONGEST) hung <- paste("no end after", LONGEST, "seconds")
    if (hung != "") break
  }
  if (hung != "") tools::pskill(job$pid, tools::SIGKILL)
  suppressWarnings(parallel::mccollect(job))
  words <- strsplit(trimws(lines), " +")
  begun <- as.numeric(unlist(lapply(words, function(w) if (identical(w[1], "begin")) w[2])))
  list(whole = startsWith(last, "whole"), hung = hung, at = utils::tail(begun, 1),
       outcomes = unlist(lapply(words, function(w) if (identical(w[1], "end")) w[3])),
       said = unlist(lapply(words, function(w)
         if (identical(w[1], "end")) paste(w[-(1:3)], collapse = " "))))
}

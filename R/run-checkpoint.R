# Checkpoints: files from which a run goes on, and resume().
#
# A file has a head (a magic word, the format, the version of the package), the saved work
# (R/run-work.R) as R serialises it, and a checksum of both (src/bridge/checkpoint.c).

CHECKPOINT_MAGIC <- charToRaw("logevidence run\n")
CHECKPOINT_FORMAT <- 2L
VERSION_BYTES <- 24

# Data in memory with at most so many numbers are saved with the run; others are given to resume()
# again. The states of the runs hold their rows in any case.
CHECKPOINT_ROWS <- 2e7
# The same for a source, in bytes.
CHECKPOINT_SOURCE <- 1e7

# The file of a run -------------------------------------------------------------------------------

#' What a name of a file stands for, without opening anything
#'
#' Links are followed, so that the file itself is replaced, and the link stays.
#' @return The full name of a file that exists or can be made.
#' @noRd
file_place <- function(file, argument) {
  file <- path.expand(file)
  kind <- path_kind(file, argument)
  if (kind == "link") {
    target <- suppressWarnings(normalizePath(file))
    if (path_kind(target, argument) %in% c("link", "none"))
      fail("`", argument, "` must be the name of a file, not of a link to a file that does not ",
           "exist: ", dQuote(file, FALSE), ".")
    return(file_place(target, argument))
  }
  if (!kind %in% c("none", "file"))
    fail("`", argument, "` must be the name of a file, not of a ", kind, ": ", dQuote(file, FALSE),
         ".")
  if (!dir.exists(dirname(file)))
    fail("`", argument, "` must be in a directory that exists, not in ",
         dQuote(dirname(file), FALSE), ".")
  # the working directory may change during the run
  file.path(normalizePath(dirname(file)), basename(file))
}

path_kind <- function(file, argument) {
  kind <- .Call(ffi_path_kind, file)
  if (kind[1] == "error")
    fail("`", argument, "` must be the name of a file that can be read or made, not ",
         dQuote(file, FALSE), " (", kind[2], ").")
  kind
}

# A process that has just been killed may have its lock for a moment.
LOCK_WAIT <- 1 # seconds

#' The file of a run, locked against other processes
#'
#' A file that exists must be a checkpoint: the user's own files are not replaced.
#'
#' @param begins Whether a run begins: then the file must not be of a run that has not ended.
#' @return An environment: `file`; `place`, which holds the lock until close_checkpoint(); `old`,
#' what is saved in the file, NULL if there is no file.
#' @noRd
open_checkpoint <- function(file, begins) {
  file <- file_place(check_word(file, "checkpoint", "NULL or the name of a file"), "checkpoint")
  place <- locked_place(file)
  done <- FALSE
  on.exit(if (!done) .Call(ffi_checkpoint_close, place))
  old <- tryCatch(read_work(.Call(ffi_checkpoint_read, place), file), error = function(e) {
    fail(conditionMessage(e), " `checkpoint` must be the name of a new file, or the file of this ",
         "run.")
  })
  if (begins && has_begun(old) && !isTRUE(old$ended))
    fail("`checkpoint` is the file of a run that has not ended: continue it by resume(",
         dQuote(file, FALSE), "), delete the file, or use another one.")
  done <- TRUE
  list2env(list(file = file, place = place, old = old), parent = emptyenv())
}

locked_place <- function(file) {
  until <- now() + LOCK_WAIT
  repeat {
    place <- .Call(ffi_checkpoint_open, file, dirname(file))
    if (!identical(place, "locked") || now() > until) break
    Sys.sleep(0.05)
  }
  if (identical(place, "locked"))
    fail("`checkpoint` must be a file that no other run writes to now, not ", dQuote(file, FALSE),
         ".")
  if (is.character(place)) refuse_unreadable(file, place)
  place
}

close_checkpoint <- function(options) {
  if (!is.null(options$checkpoint)) .Call(ffi_checkpoint_close, options$checkpoint$place)
}

has_begun <- function(saved) {
  if (!is.null(saved$log)) return(TRUE)
  if (!is.null(saved$works)) return(any(vapply(saved$works, has_begun, NA)))
  any(vapply(saved$plan$first, function(job) !is.null(job$state) || !is.null(job$result), NA))
}

#' What is the same for a run as long as it goes on: model, method, seed and the data with which it
#' began
#'
#' Of a source that has not been read yet these are its first rows.
#' @noRd
run_id <- function(work) {
  if (!is.null(work$works)) {
    ids <- lapply(work$works, run_id)
    return(lapply(stats::setNames(nm = names(ids[[1]])), function(part) lapply(ids, `[[`, part)))
  }
  data <- if (!is.null(work$sums)) work$encoded$data_id
  else if (!is_stream(work)) rows_id(work$encoded)
  else if (work$feed$n == 0) work$encoded$head_id
  else c(work$feed$n, work$feed$id)
  # the number of rows is also in the problem, so the data are compared first
  list(data = data, seed = as.double(work$words), replicates = as.double(work$replicates),
       problem = .Call(ffi_problem_id, work$problem))
}

#' Refuse to replace the checkpoint of another run
#' @noRd
check_same_run <- function(work) {
  checkpoint <- work$options$checkpoint
  if (is.null(checkpoint)) return(invisible())
  # a run that is continued keeps it
  if (is.null(work$origin)) work$origin <- run_id(work)
  old <- checkpoint$old
  # it is large
  checkpoint$old <- NULL
  if (is.null(old) || identical(old$spec$origin, work$origin)) return(invisible())
  other <- Filter(function(name) !identical(old$spec$origin[[name]], work$origin[[name]]),
                  names(work$origin))
  words <- c(data = "other data", seed = "another seed", replicates = "another number of runs",
             problem = "another model, prior or method")
  fail("`checkpoint` is the file of another run (with ", words[[other[1]]], "): delete the file ",
       dQuote(checkpoint$file, FALSE), ", or use another one.")
}

# Writing -----------------------------------------------------------------------------------------

# A race writes the file of all its runs.
write_is_due <- function(work) {
  if (!is.null(work$race)) return(isTRUE(work$race$due))
  !is.null(work$options$checkpoint) && now() - work$written >= work$options$every
}

# At once, so that a file that cannot be written is known before hours of work.
write_first <- function(work) {
  work$warned <- FALSE
  reason <- write_work(work)
  # made by another process after this one has looked
  if (length(reason) > 1)
    fail("`checkpoint` must be a file that no other run writes to: ",
         dQuote(work$options$checkpoint$file, FALSE), " (", reason[1], ").")
}

#' Write a checkpoint; if that fails, warn once and go on
#'
#' @return NULL, or the reason; with a second element if the file belongs to another program.
#' @noRd
write_work <- function(work) {
  checkpoint <- work$options$checkpoint
  reason <- tryCatch(.Call(ffi_checkpoint_write, checkpoint$place, checkpoint_bytes(work)),
                     error = conditionMessage)
  work$written <- now()
  if (is.null(reason)) work$warned <- FALSE
  else if (!isTRUE(work$warned)) {
    work$warned <- TRUE
    warning(new_warning(paste0(
      "The checkpoint ", dQuote(checkpoint$file, FALSE), " could not be written (", reason[1],
      "); the run goes on, and an older checkpoint is unchanged.")))
  }
  reason
}

checkpoint_bytes <- function(work) {
  saved <- if (!is.null(work$log)) saved_log(work)
  else if (is.null(work$works)) saved_in_file(work) else saved_race(work)
  saved$ended <- is_finished(work)
  c(checkpoint_head(), serialize(saved, NULL, xdr = FALSE))
}

saved_in_file <- function(work) {
  saved <- saved_work(work)
  # groups that were joined cannot be given again
  if (!is_stream(work) && !is_streamed(work$encoded) &&
      length(work$encoded$rows) > CHECKPOINT_ROWS)
    saved$encoded$rows <- NULL
  saved
}

#' A race as a plain list: its works, and what they have in common
#' @noRd
saved_race <- function(race) {
  common <- mget(RACE_SAVED, envir = race, ifnotfound = list(NULL))
  if (utils::object.size(common$data) > 8 * CHECKPOINT_ROWS) common$data <- NULL
  c(common, list(works = lapply(race$works, saved_in_file), spec = list(origin = race$origin)))
}

#' A run whose rows are in shards as a plain list: what its workers have said
#' @noRd
saved_log <- function(work) {
  elapsed <- work$elapsed + now() - work$started
  c(mget(SHARDS_SAVED, envir = work, ifnotfound = list(NULL)),
    list(elapsed = elapsed, spec = list(origin = work$origin)))
}

# What such a run has (R/call-shards.R).
SHARDS_SAVED <- c("log", "partial", "call", "models", "methods", "replicates", "goal", "names",
                  "prior", "words", "threads", "shards")

# What a race has besides its works (R/call-race.R).
RACE_SAVED <- c("names", "prior", "stop_at", "from", "dropped", "stopped", "methods", "opening",
                "past", "data", "source", "call", "gone", "looks", "look_step",
                "components")

checkpoint_head <- function() {
  version <- charToRaw(PACKAGE_VERSION)
  c(CHECKPOINT_MAGIC, writeBin(CHECKPOINT_FORMAT, raw(), endian = "little"),
    version, raw(VERSION_BYTES - length(version)))
}

# The source as bytes, if it can be read again and is not the data themselves. Otherwise resume()
# asks for the source.
source_bytes <- function(source) {
  if (!source$lasts) return(NULL)
  bytes <- tryCatch(serialize(source, NULL, xdr = FALSE), error = function(e) NULL)
  if (length(bytes) <= CHECKPOINT_SOURCE) bytes
}

# Reading -----------------------------------------------------------------------------------------

#' The saved work of a file
#' @noRd
read_checkpoint <- function(file) {
  file <- file_place(file, "from")
  saved <- read_work(.Call(ffi_file_read, file), file)
  if (is.null(saved))
    fail("`from` must be a checkpoint or an incomplete fit: there is no file ",
         dQuote(file, FALSE), ".")
  saved
}

#' @param bytes All bytes of the file, NULL if there is none, or a text that says why they could not
#'   be read.
#' @noRd
read_work <- function(bytes, file) {
  if (is.null(bytes)) return(NULL)
  if (is.character(bytes)) refuse_unreadable(file, bytes)
  head <- checkpoint_head()
  magic <- length(CHECKPOINT_MAGIC)
  if (length(bytes) < magic || !identical(bytes[seq_len(magic)], CHECKPOINT_MAGIC))
    fail("The file ", dQuote(file, FALSE), " is not a checkpoint of evidence().")
  if (!.Call(ffi_checkpoint_intact, bytes))
    fail("The checkpoint ", dQuote(file, FALSE), " is damaged or was cut short.")
  if (!identical(bytes[seq_along(head)], head)) refuse_version(bytes, magic)
  saved <- tryCatch(unserialize(bytes[(length(head) + 1):(length(bytes) - 8)]),
                    error = function(e) NULL)
  if (!has_run(saved))
    fail("The checkpoint ", dQuote(file, FALSE), " has no run.")
  saved
}

has_run <- function(saved)
  is.list(saved) && (all(c("spec", "plan", "problem") %in% names(saved)) ||
                       is.list(saved$works) || is.list(saved$log))

refuse_unreadable <- function(file, reason)
  fail("The file ", dQuote(file, FALSE), " could not be read (", reason, ").")

refuse_version <- function(bytes, magic) {
  text <- bytes[magic + 4 + seq_len(VERSION_BYTES)]
  fail("The checkpoint was written by version ", rawToChar(text[text != 0]),
       " of the package and cannot be read by version ", PACKAGE_VERSION, ".")
}

# One run on a cluster whose workers fail at a random moment, and what has become of it. This file
# is read by the process that has the cluster: with MPI this is rank 0 of a job.

WORKERS <- 3
LIMIT <- 4 # seconds of a task, for workers that are stopped
SIGNAL_ARRIVES <- 0.3

now <- function() proc.time()[["elapsed"]]

# Kinds of runs ------------------------------------------------------------------------------------

# Functions and formulas for workers, without this file's environment.
bare <- function(f, ...) {
  environment(f) <- list2env(list(...), parent = globalenv())
  f
}

trial_rows <- function() {
  set.seed(11, "Mersenne-Twister", "Inversion", "Rejection")
  x <- stats::rnorm(30000)
  data.frame(x, y = 1 + x + stats::rnorm(30000))
}

line <- linear_regression(stats::as.formula("dist ~ speed", globalenv()), sigma = 15, prior_sd = 10)
numbers_of <- function(table)
  lapply(c("log_evidence", "se"), function(column) as.vector(table[[column]]))
fit_essence <- function(fit) fit[c("log_evidence", "se", "draws", "log_weights", "n", "data_id",
                                   "warnings", "sampler", "replicates")]

#' Functions of a cluster that return numbers; `open` is for rows in shards
TRIALS <- list(
  replicates = function(cl, open) fit_essence(suppressWarnings(evidence(
    line, cars, nested(800), seed = 3, replicates = 9, progress = FALSE, cl = cl))),
  models = function(cl, open) numbers_of(suppressWarnings(evidence(
    list(a = line, b = linear_regression(dist ~ 1, sigma = 15, prior_sd = 10),
         c = regression(dist ~ speed, "student"), d = regression(dist ~ log(speed))), cars,
    smc(particles = 10000), seed = 3, progress = FALSE, cl = cl))),
  crosscheck = function(cl, open) numbers_of(suppressWarnings(crosscheck(
    line, cars, list(nested(4000), smc(particles = 40000), laplace(), sgais(particles = 4000)),
    seed = 3, cl = cl))),
  shards = function(cl, open) fit_essence(suppressWarnings(evidence(
    regression(stats::as.formula("y ~ x", globalenv()), prior = normal(0, 2)),
    rows_cluster(cl, open, 6, keep = 0), seed = 3, progress = FALSE)))
)

# Others read other rows after the first reader of a shard is lost, if `other` is a file.
opening <- function(rows, other = "") bare(function(shard) {
  part <- rows[seq(5000 * shard - 4999, 5000 * shard), ]
  if (nzchar(other) && file.exists(other)) part$y <- part$y + 1
  part
}, rows = rows, other = other)

# Faults -------------------------------------------------------------------------------------------

in_background <- function(line) system2("sh", c("-c", shQuote(line)), wait = FALSE, stdout = FALSE,
                                        stderr = FALSE)
signal_later <- function(pids, signal, seconds, also = "")
  in_background(sprintf("sleep %.3f; %s kill -%s %s", seconds, also, signal,
                        paste(pids, collapse = " ")))

#' On a worker: what is sent as the n-th message from now on is replaced
#'
#' @param how "bytes": random bytes; "part": the first half of the message, and then the worker
#'   stops; "object": another object; "task": the value of the task is another object.
spoil <- function(pids, n, how, object, bytes) {
  # so that each process of engines whose nodes are not processes gets this once
  Sys.sleep(0.2)
  if (!Sys.getpid() %in% pids) return(list())
  # the answer to this call comes first
  count <- if (how == "task") 0 else -1
  is_time <- function() {
    count <<- count + 1
    count == n
  }
  if (how == "task") {
    namespace <- asNamespace("logevidence")
    for (name in c("job_of_task", "result_of_task", "do_for_shards")) local({
      old <- get(name, namespace)
      unlockBinding(name, namespace)
      assign(name, function(...) if (is_time()) object else old(...), namespace)
    })
    return(list())
  }
  spoiled <- function(node, data) {
    if (!is_time()) return(NULL)
    if (how == "object") return(serialize(object(data), NULL))
    if (how == "bytes") return(bytes)
    message <- serialize(data, NULL)
    message[seq_len(length(message) %/% 2)]
  }
  for (package in intersect(c("parallel", "snow"), loadedNamespaces()))
    for (class in c("SOCKnode", "SOCK0node", "MPInode")) local({
      namespace <- asNamespace(package)
      name <- paste0("sendData.", class)
      if (!exists(name, namespace)) return(NULL)
      old <- get(name, namespace)
      unlockBinding(name, namespace)
      assign(name, function(node, data) {
        other <- spoiled(node, data)
        if (is.null(other)) return(old(node, data))
        if (is.null(node$con))
          getExportedValue("Rmpi", "mpi.send")(other, 4, node$rank, node$SENDTAG, node$comm)
        else writeBin(other, node$con)
        if (how == "part") tools::pskill(Sys.getpid(), tools::SIGSTOP)
      }, namespace)
    })
  list()
}
environment(spoil) <- baseenv()

# Of each worker at least, with that by which it says who it is.
MESSAGES_SENT <- c(replicates = 4, models = 2, crosscheck = 2, shards = 8)

# Other objects than an answer, as values and as messages.
OBJECTS <- list(1:10, list(), NULL, "x", quote(stop("this was evaluated")), list(value = 1),
                list(result = 1), list(result = list(log_evidence = "x")), list(result = NULL),
                list(NULL, NULL), list(1, 2), list(result = list(trace = data.frame())),
                data.frame(a = 1:3), structure(list(), class = "evidence"), matrix(1, 2, 2),
                structure(list(1), names = NA_character_), function() 1, globalenv(), NaN,
                list(list(n = 10, ids = 1, prints = 1, keys = "a", rows = 3)),
                list(data.frame(x = 1), 2), factor("a"), Sys.time(), as.name("x"))
MESSAGES <- list(
  function(data) 1:10, function(data) NULL, function(data) list(), function(data) globalenv(),
  function(data) as.name("x"), function(data) list(type = "VALUE", tag = data$tag),
  function(data) list(value = list(error = 1), tag = data$tag),
  function(data) list(value = list(error = character()), tag = data$tag),
  function(data) list(value = list(unknown = "x"), tag = data$tag),
  function(data) list(value = list(unknown = NA), tag = data$tag),
  function(data) list(value = list(), tag = data$tag),
  function(data) list(value = list(version = 1, pid = "a", host = 1), tag = data$tag),
  function(data) list(value = list(value = NULL), tag = data$tag),
  function(data) list(value = list(value = quote(stop("evaluated"))), tag = data$tag),
  function(data) list(value = data$value, tag = 1),
  function(data) structure(list(value = 1), class = "evidence"),
  function(data) list(value = structure(data$value, class = "noquote"), tag = data$tag))
for (k in seq_along(MESSAGES)) environment(MESSAGES[[k]]) <- baseenv()

other_version <- function(pids) {
  Sys.sleep(0.2)
  if (Sys.getpid() %in% pids)
    assign("spec", c(name = "logevidence", version = "0.0.1"),
           asNamespace("logevidence")[[".__NAMESPACE__."]])
  list()
}
environment(other_version) <- baseenv()

#' Prepare a fault
#'
#' @param seconds As long as a run takes without it.
#' @return `pids`, of the workers, and `until`, when it has happened.
prepare_fault <- function(cl, case, pids, seconds, other) {
  pids <- pids[sample.int(length(pids), case$lost)]
  moment <- stats::runif(1, 0, seconds)
  n <- sample.int(MESSAGES_SENT[[case$trial]], 1)
  cat(sprintf("workers %s, after %.2f s or as message %d\n", toString(pids), moment, n))
  to_all <- function(f, ...) invisible(parallel::clusterCall(cl, f, pids, ...))
  switch(case$fault,
    kill = signal_later(pids, "KILL", moment),
    stop = signal_later(pids, "STOP", moment),
    rows = signal_later(pids, "KILL", moment, paste("touch", other, ";")),
    version = to_all(other_version),
    bytes = to_all(spoil, n, "bytes", NULL, as.raw(sample(0:255, 200, TRUE))),
    part = to_all(spoil, n, "part", NULL, NULL),
    task = to_all(spoil, n, "task", OBJECTS[[sample.int(length(OBJECTS), 1)]], NULL),
    object = to_all(spoil, n, "object", MESSAGES[[sample.int(length(MESSAGES), 1)]], NULL))
  list(pids = pids, until = now() + moment)
}

# The trial ----------------------------------------------------------------------------------------

small_fit <- function() evidence(line, cars, seed = 1, progress = FALSE)$log_evidence
things_left <- function() list(connections = nrow(showConnections()),
                               files = list.files(tempdir(), all.files = TRUE, recursive = TRUE))

#' A sentence that this package has made, or what else there is
outcome_of <- function(result, right) {
  if (!inherits(result, "condition"))
    return(if (identical(result, right)) "right" else "wrong")
  text <- conditionMessage(result)
  if (inherits(result, "logevidence_error") && grepl("[.)]$", text)) "error" else "foreign"
}

#' @param case A list: `seed`, `trial`, `fault` and `lost`, the number of workers.
#' @return A list: `outcome`, `said` and `left`, what is wrong after the run.
trial <- function(cl, case) {
  set.seed(case$seed, "Mersenne-Twister", "Inversion", "Rejection")
  paths <- .libPaths()
  parallel::clusterCall(cl, bare(function(paths) {
    Sys.sleep(0.2)
    .libPaths(paths)
    loadNamespace("logevidence")
    list()
  }), paths)
  # of nodes that are not processes each process is asked
  pids <- unique(unlist(parallel::clusterCall(cl, bare(function() {
    Sys.sleep(0.2)
    Sys.getpid()
  }))))
  other <- tempfile("other", "/tmp")
  on.exit(unlink(other))
  open <- opening(trial_rows(), if (case$fault == "rows") other else "")
  run <- function(cl) TRIALS[[case$trial]](cl, open)
  right <- run(cl)
  small <- small_fit()
  before <- things_left()
  began <- now()
  run(cl)
  seconds <- now() - began
  lost <- prepare_fault(cl, case, pids, seconds, other)
  said <- character()
  began <- now()
  result <- withCallingHandlers(
    tryCatch(run(task_limit(cl, LIMIT)), error = function(e) e),
    message = function(m) {
      said <<- c(said, conditionMessage(m))
      invokeRestart("muffleMessage")
    })
  took <- now() - began
  # a signal that comes after the run must not meet the end of the cluster
  Sys.sleep(max(0, lost$until - now()) + SIGNAL_ARRIVES)
  # stopped workers go on; their late answers belong to no later call
  go_on <- function() for (pid in lost$pids) tools::pskill(pid, tools::SIGCONT)
  go_on()
  again <- if (case$fault != "rows") tryCatch(suppressMessages(run(task_limit(cl, LIMIT))),
                                              error = function(e) e)
  # one that was to stop at a later message
  go_on()
  after <- if (is.null(again)) "right" else outcome_of(again, right)
  left <- c(if (!after %in% c("right", "error"))
              paste("a second call:", after, if (after == "foreign") conditionMessage(again)),
            if (!identical(small_fit(), small)) "another result of a later call",
            if (nrow(showConnections()) > before$connections) "open connections",
            if (length(new <- setdiff(things_left()$files, before$files)))
              paste("files:", toString(new)))
  if (inherits(result, "condition")) said <- c(said, conditionMessage(result))
  list(outcome = outcome_of(result, right), said = trimws(said), left = left, seconds = took)
}

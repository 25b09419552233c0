# Work on the workers of a cluster, of package parallel or one that gives its clusters: sockets,
# ssh, MPI, mirai. Each worker gets one task at a time. A task whose worker is lost is done on
# another one; what a worker sends is read as data and never evaluated.

#' Limit the time of each task on a cluster
#'
#' The functions with an argument `cl`, such as [evidence()], wait as long as a worker works. If a
#' worker or its machine hangs, they would wait forever. With a limit, a worker that has not
#' answered for so many seconds is given up, and its task is done by another one.
#'
#' @param cl A cluster, such as one made by [parallel::makeCluster()].
#' @param seconds Largest time of a task: of one replicate, one model or one simulated data set.
#'   Choose it several times as long as a task takes.
#'
#' @details
#' **What is sent.** A worker gets the settings of a run and its rows, and the functions of a
#' [custom_model()]; it sends back numbers and text. An answer that holds a function, or anything
#' else that could be evaluated, is refused, and the worker that sent it is given up.
#'
#' **Failures.** If a worker ends, or answers with something that is no result of its task, or, with
#' a limit, stops in the middle of an answer, the task is done on another worker, with the same
#' random numbers and so with the same result. A task that two workers have not survived is not
#' tried again: an error names it. There is also an error if no worker is left. With MPI all ends if
#' one process ends; one that hangs is given up as on other clusters.
#'
#' **Results** have the same bits with any cluster, any number of workers, and without one, because
#' random numbers belong to the seed and the number of the replicate.
#'
#' **Interrupts.** When R is interrupted, workers on this machine are interrupted too; others work
#' until the end of their task, and the answer is then ignored. A worker to which a message was
#' being sent ends, and a message names it. Before such a cluster is used by other packages it
#' should be started again.
#'
#' **Security** is that of the engine: sockets of [parallel::makeCluster()] are neither encrypted
#' nor authenticated, and are for machines and networks that you trust. Use a tunnel of ssh or mirai
#' with TLS for others.
#'
#' @return The cluster with this limit.
#'
#' @examples
#' cl <- parallel::makeCluster(2)
#' model <- linear_regression(dist ~ speed)
#' evidence(model, cars, nested(), seed = 1, replicates = 4, cl = task_limit(cl, 60))
#' parallel::stopCluster(cl)
#'
#' @export
task_limit <- function(cl, seconds) {
  if (is.null(cl)) refuse(cl, "cl", "a cluster")
  cl <- check_cluster(cl)
  attr(cl, "task_limit") <- check_positive(seconds, "seconds")
  cl
}

# Workers ------------------------------------------------------------------------------------------

# So many workers may be lost by a task.
TASK_ATTEMPTS <- 2
# Seconds between two looks at a stopping rule, and for a worker to load the package and to say who
# it is; with a limit for tasks fewer, but enough to load it.
CLUSTER_LOOK <- 0.2
HANDSHAKE <- c(least = 10, most = 60)

# Seconds without a byte in the middle of a message, after which a worker is lost, also without a
# limit for tasks: its next byte is only as far away as the network makes it.
SILENCE <- 60

# Functions of parallel that its own clusters and those of other packages have methods for.
of_parallel <- function(name) utils::getFromNamespace(name, "parallel")

#' A cluster at work: `alive`, `busy` (the task of each worker, 0 for none), `since`, `knows` (which
#' shared object it has), `told` (whether its task came with it)
#' @noRd
new_crew <- function(cl) {
  n <- length(cl)
  limit <- attr(cl, "task_limit")
  crew <- list2env(list(cl = cl, alive = rep(TRUE, n), busy = rep(0, n), since = rep(0, n),
                        knows = rep("", n), tags = rep("", n), who = vector("list", n),
                        told = rep(FALSE, n), limit = if (is.null(limit)) Inf else limit, count = 0,
                        id = paste(Sys.getpid(), format(as.numeric(Sys.time()), digits = 16))),
                   parent = emptyenv())
  crew$patience <- limit_sockets(cl, crew$limit)
  ready <- FALSE
  on.exit(if (!ready) restore_sockets(crew))
  greet(crew)
  ready <- TRUE
  crew
}

socket_of <- function(node) if (is.list(node) && inherits(node$con, "sockconn")) node$con

#' A worker may stop in the middle of an answer, or before it has read a task: reading and writing
#' then end with an error
#' @return The seconds of each connection before, NA for none.
#' @noRd
limit_sockets <- function(cl, limit) {
  seconds <- max(1, ceiling(min(limit, SILENCE)))
  vapply(cl, function(node) {
    socket <- socket_of(node)
    if (is.null(socket)) return(NA_real_)
    # a connection that is closed has none
    tryCatch(as.double(socketTimeout(socket, seconds)), error = function(e) NA_real_)
  }, 0)
}

#' Seconds in which a whole message over MPI must arrive: MPI does not tell how much has come
#' @noRd
patience_of <- function(crew) max(1, crew$limit)

restore_sockets <- function(crew) {
  for (i in which(!is.na(crew$patience)))
    try(socketTimeout(socket_of(crew$cl[[i]]), crew$patience[i]), silent = TRUE)
}

#' Send or receive a message
#'
#' R lets interrupts through while it waits for a socket, also where they are suspended, and what
#' was received of the message is then lost. The rest is read and ignored, so that the next message
#' is whole again. A worker that has got a part of a message would take the next one for its rest:
#' its connection is closed, and it ends.
#'
#' @param torn What is done with the node after an interrupt.
#' @noRd
whole_message <- function(node, code, torn) {
  whole <- FALSE
  on.exit(if (!whole && !is.null(socket_of(node))) try(torn(socket_of(node)), silent = TRUE))
  value <- tryCatch(code, error = function(e) e)
  whole <- TRUE
  value
}

# Seconds without a byte after which the rest of a message has come.
REST_OF_MESSAGE <- 0.5

skip_message <- function(socket) {
  until <- now() + SILENCE
  while (now() < until && socketSelect(list(socket), FALSE, REST_OF_MESSAGE))
    if (!length(readBin(socket, "raw", 1))) break
}

is_left_over <- function(node) {
  socket <- socket_of(node)
  !is.null(socket) && tryCatch(socketSelect(list(socket), FALSE, 0), error = function(e) FALSE)
}

worker_name <- function(crew, i) {
  host <- crew$who[[i]]$host
  paste0("worker ", i, if (is_text(host)) paste0(" (", host, ")"))
}

# Sent before anything of this package, so it uses base R alone.
say_who <- function(paths, package) {
  paths <- paths[dir.exists(paths)]
  .libPaths(unique(c(.libPaths(), paths)))
  known <- requireNamespace(package, quietly = TRUE)
  list(host = Sys.info()[["nodename"]], pid = Sys.getpid(),
       version = if (known) as.character(getNamespaceVersion(package)) else "")
}
environment(say_who) <- baseenv()

#' Ask all workers who they are: another version may give other numbers
#' @noRd
greet <- function(crew) {
  # no worker owes an answer: what is there is the rest of one whose worker was interrupted
  for (node in crew$cl) if (is_left_over(node)) try(skip_message(socket_of(node)), silent = TRUE)
  for (i in seq_along(crew$cl))
    send_to(crew, i, 0, say_who, list(paths = .libPaths(), package = PACKAGE))
  until <- now() + min(HANDSHAKE[["most"]], max(HANDSHAKE[["least"]], crew$limit))
  while (any(crew$tags != "" & crew$alive) && now() < until)
    for (answer in receive(crew, CLUSTER_LOOK))
      if (is.null(answer$lost)) crew$who[[answer$worker]] <- answer$value
  here <- PACKAGE_VERSION
  for (i in seq_along(crew$cl)) {
    who <- crew$who[[i]]
    if (!crew$alive[i] || is.null(who)) {
      crew$alive[i] <- FALSE
      message("`cl`: worker ", i, " does not answer and is left out.")
      next
    }
    # a number of a process that is not positive would mean many processes
    if (!is_text(who$version) || !is_text(who$host) || !is_one_number(who$pid) || who$pid <= 1)
      fail("`cl`: ", worker_name(crew, i), " does not answer as a worker of a cluster.")
    if (who$version == "")
      fail("`cl`: ", worker_name(crew, i), " has no package ", PACKAGE,
           ": install it there, or set the worker's .libPaths().")
    if (who$version != here)
      fail("`cl`: ", worker_name(crew, i), " has version ", who$version, " of ", PACKAGE,
           ", and this session has ", here, ": install the same version.")
  }
  if (!any(crew$alive)) fail("`cl` has no worker that answers: start the cluster again.")
}

#' Send a call; a worker to which nothing can be sent is lost
#' @return Whether it was sent.
#' @noRd
send_to <- function(crew, i, task, f, args) {
  crew$count <- crew$count + 1
  tag <- paste0(crew$id, "-", crew$count)
  node <- crew$cl[[i]]
  send <- function() if (is_mpi(node)) mpi_send_call(node, f, args, tag, patience_of(crew))
  else of_parallel("sendCall")(node, f, args, tag = tag)
  sent <- whole_message(node, send(), function(socket) {
    close(socket)
    message("`cl`: the interrupt has cut off a message to ", worker_name(crew, i), ", which ends. ",
            "To stop the others: parallel::stopCluster(cl[-", i, "]).")
  })
  sent <- !inherits(sent, "error")
  crew$alive[i] <- sent
  crew$busy[i] <- if (sent) task else 0
  crew$tags[i] <- if (sent) tag else ""
  crew$since[i] <- now()
  sent
}

NO_RESULT <- "has sent something that is no result"

#' Wait for answers
#'
#' @return A list with an element for each worker that has answered or is lost: `worker`, `task`,
#'   and `value` or `lost`, the reason.
#' @noRd
receive <- function(crew, seconds) {
  waiting <- which(crew$tags != "" & crew$alive)
  if (!length(waiting)) return(list())
  found <- lapply(waiting[has_answered(crew$cl[waiting], seconds)], function(i) {
    node <- crew$cl[[i]]
    received <- function() if (is_mpi(node)) mpi_receive(node, patience_of(crew))
    else of_parallel("recvData")(node)
    message <- whole_message(node, received(), function(socket) {
      crew$tags[i] <- ""
      skip_message(socket)
    })
    # of mirai
    if (is.environment(message)) message <- list(value = message$value, tag = message$tag)
    answer <- list(worker = i, task = crew$busy[i])
    if (inherits(message, "error"))
      return(c(answer, lost = "has ended or sent something that is no answer"))
    tag <- if (is.list(message)) .subset2(message, "tag")
    # an answer to an earlier call, which was interrupted
    if (!is.null(tag) && !identical(tag, crew$tags[i])) return(NULL)
    value <- if (is.list(message)) .subset2(message, "value")
    if (!is.list(value) || is.object(value) || !holds_data(value)) c(answer, lost = NO_RESULT)
    else c(answer, list(value = value))
  })
  # task 0 is none of the user's
  late <- waiting[now() - crew$since[waiting] > crew$limit & crew$busy[waiting] > 0]
  late <- setdiff(late, vapply(found[lengths(found) > 0], `[[`, 0L, "worker"))
  # an answer may have come while another one was read
  if (length(late)) late <- late[!has_answered(crew$cl[late], 0)]
  found <- c(found, lapply(late, function(i)
    list(worker = i, task = crew$busy[i],
         lost = paste("has not answered for", format_seconds(crew$limit)))))
  found <- found[lengths(found) > 0]
  for (answer in found) {
    i <- answer$worker
    crew$busy[i] <- 0
    crew$tags[i] <- ""
    if (!is.null(answer$lost)) crew$alive[i] <- FALSE
  }
  found
}

#' Which of these nodes have an answer? Waits so many seconds for the first one.
#' @noRd
has_answered <- function(nodes, seconds) {
  sockets <- lapply(nodes, function(node) if (is.list(node)) node$con)
  if (all(vapply(sockets, inherits, NA, "connection")))
    return(tryCatch(socketSelect(sockets, FALSE, seconds),
                    # a connection that is closed is looked at by reading from it
                    error = function(e) !vapply(sockets, is_usable, NA)))
  until <- now() + seconds
  repeat {
    ready <- vapply(nodes, is_ready, NA)
    if (any(ready) || now() > until) return(ready)
    Sys.sleep(0.01)
  }
}

is_usable <- function(connection) tryCatch(isOpen(connection), error = function(e) FALSE)

# Engines without connections; of one that is unknown, the answer is waited for.
is_ready <- function(node) {
  if (inherits(node, "miraiNode"))
    return(!getExportedValue("mirai", "unresolved")(node[["mirai"]]))
  if (is_mpi(node)) mpi_has_message(node) else TRUE
}

# Kinds of R objects in which nothing can be evaluated.
PLAIN <- c("NULL", "logical", "integer", "double", "complex", "character", "raw", "list")

holds_data <- function(x) {
  if (!typeof(x) %in% PLAIN || isS4(x)) return(FALSE)
  all(vapply(c(attributes(x), if (is.list(x)) unclass(x)), holds_data, NA))
}

# Tasks --------------------------------------------------------------------------------------------

# What tasks have in common is sent once to each worker, which keeps the last.
known_here <- new.env(parent = emptyenv())

#' Runs on a worker: an error comes back as text
#'
#' The nodes of some engines are not always the same process, so that it says if it does not know
#' what is shared.
#'
#' @param f The name of a function of this package, of a task and of what is shared.
#' @noRd
run_task <- function(f, task, id, shared) {
  if (!is.null(shared)) {
    known_here$id <- id
    known_here$shared <- shared
  }
  if (!identical(known_here$id, id)) return(list(unknown = TRUE))
  tryCatch(list(value = get(f, asNamespace(PACKAGE))(task, known_here$shared)),
           error = function(e) list(error = conditionMessage(e),
                                    ours = inherits(e, "logevidence_error")))
}

forget_shared <- function() {
  rm(list = ls(known_here), envir = known_here)
  list()
}

#' Do tasks on the workers of a cluster
#'
#' @param f The name of a function of this package, of a task and of what is shared.
#' @param names Of the tasks, for messages, such as "replicate 3".
#' @param make A function of the number of a task, which makes it. Called once for each, in order.
#' @param shared A list of objects; the i-th task gets that at `which[i]`.
#' @param cl A cluster, or a crew, which goes on to other tasks.
#' @param id Of what is shared, if a crew gets other things later.
#' @param each Called with the number of a task and its value, or the error, once it is known.
#' @param fits A function of a value and its task: is this a value of `f`? A worker that has sent
#'   anything else is given up.
#' @param stop Whether to end early.
#' @noRd
on_workers <- function(cl, f, names, make, each, fits, shared = list(TRUE),
                       which = rep(1, length(names)), stop = function() FALSE, id = "") {
  if (!length(names)) return(invisible())
  crew <- cl
  if (!is.environment(cl)) {
    crew <- new_crew(cl)
    on.exit(leave(crew))
  }
  left <- seq_along(names)
  tried <- rep(0, length(names))
  # those that are not done yet
  made <- vector("list", length(names))
  repeat {
    free <- which(crew$alive & crew$tags == "")
    for (i in free) {
      k <- task_for(crew, i, left)
      if (is.na(k)) next
      share <- paste(crew$id, id, which[k])
      known <- crew$knows[i] == share
      if (is.null(made[[k]])) made[[k]] <- make(k)
      args <- list(f = f, task = made[[k]], id = share, shared = if (!known) shared[[which[k]]])
      if (!send_to(crew, i, k, run_task, args)) next
      crew$knows[i] <- share
      crew$told[i] <- !known
      left <- setdiff(left, k)
    }
    if (!length(left) && all(crew$busy == 0)) break
    if (!any(crew$alive))
      fail("No worker of `cl` is left", if (!is.null(crew$lost)) paste0("; the last, ", crew$lost),
           "; not done: ", show_tasks(names[left]), ".")
    for (answer in receive(crew, CLUSTER_LOOK)) {
      k <- answer$task
      i <- answer$worker
      if (isTRUE(answer$value[["unknown"]]) && !crew$told[i]) {
        crew$knows[i] <- ""
        left <- c(k, left)
        next
      }
      if (is.null(answer$lost) && !is_answer(answer$value, function(x) fits(x, made[[k]]))) {
        answer$lost <- NO_RESULT
        crew$alive[i] <- FALSE
      }
      if (is.null(answer$lost)) {
        crew$answered <- answer$worker
        each(k, value_of_answer(answer$value))
        made[k] <- list(NULL)
        next
      }
      tried[k] <- tried[k] + 1
      worker <- worker_name(crew, i)
      crew$lost <- paste0(worker, ", ", answer$lost)
      if (tried[k] >= TASK_ATTEMPTS)
        fail("`cl`: gave up ", names[k], ", which was lost on ", tried[k],
             " workers; the last, ", worker, ", ", answer$lost, ".")
      message("`cl`: ", worker, " ", answer$lost, "; its task goes to another worker: ", names[k],
              ".")
      left <- c(k, left)
    }
    if (stop()) return(invisible())
  }
}

#' Is this what run_task() returns? It is only data.
#' @noRd
is_answer <- function(answer, fits) {
  names <- names(answer)
  if (identical(names, "value")) return(isTRUE(fits(answer[["value"]])))
  identical(names, c("error", "ours")) && is_text(answer[["error"]]) && is.logical(answer[["ours"]])
}

is_text <- function(x) is.character(x) && length(x) == 1 && !is.na(x)

#' Is this what run_result() returns?
#' @noRd
is_run_report <- function(x) {
  is_named <- is.list(x) && !is.object(x) && !is.null(names(x)) && !anyNA(names(x)) &&
    !anyDuplicated(names(x))
  is_named && is.data.frame(x$trace) &&
    all(vapply(c(x$trace, x[names(x) != "trace"]), is.double, NA)) &&
    all(vapply(c("n", "likelihoods", "seconds"), function(name) is_one_number(x[[name]]), NA))
}

#' The values of a function of each task and of what is shared, here or on the workers
#'
#' @param fits As for on_workers().
#' @param show A function of the share that is done.
#' @noRd
each_task <- function(cl, f, names, make, shared, show, fits) {
  values <- vector("list", length(names))
  done <- 0
  each <- function(i, value) {
    if (inherits(value, "condition")) stop(value)
    values[[i]] <<- value
    done <<- done + 1
    show(done / length(names))
  }
  if (!is.null(cl)) on_workers(cl, f, names, make, each, fits, list(shared))
  else for (i in seq_along(names)) each(i, get(f, asNamespace(PACKAGE))(make(i), shared))
  values
}

# The next task for a worker: one that is at home there (`home` of a crew), or whose home is lost.
task_for <- function(crew, i, left) {
  if (is.null(crew$home)) return(left[1])
  k <- left[crew$home[left] == i | !crew$alive[crew$home[left]]][1]
  if (!is.na(k)) crew$home[k] <- i
  k
}

show_tasks <- function(names)
  paste0(paste(utils::head(names, 5), collapse = ", "), if (length(names) > 5) ", ...")

value_of_answer <- function(answer) {
  if (is.null(answer$error)) return(answer$value)
  class <- c(if (isTRUE(answer$ours)) "logevidence_error", "error", "condition")
  structure(list(message = answer$error, call = NULL), class = class)
}

# Seconds in which a worker may still end its task by itself, and for an interrupt to arrive: the
# next message to the worker must not be read while it does.
GRACE <- 1
INTERRUPT_ARRIVES <- 0.1

#' Make the workers free: those that are at work on this machine, and go on, are interrupted
#' @noRd
leave <- function(crew) {
  on.exit(restore_sockets(crew))
  await <- function(workers) {
    until <- now() + GRACE
    while (any(crew$tags[workers] != "" & crew$alive[workers]) && now() < until)
      receive(crew, CLUSTER_LOOK)
  }
  await(seq_along(crew$cl))
  here <- Sys.info()[["nodename"]]
  at_work <- which(crew$alive & crew$tags != "")
  for (i in at_work) {
    who <- crew$who[[i]]
    if (identical(who$host, here) && who$pid != Sys.getpid()) tools::pskill(who$pid, tools::SIGINT)
  }
  if (length(at_work)) Sys.sleep(INTERRUPT_ARRIVES)
  idle <- which(crew$alive & crew$tags == "" & crew$knows != "")
  for (i in idle) send_to(crew, i, 0, forget_shared, list())
  await(idle)
}

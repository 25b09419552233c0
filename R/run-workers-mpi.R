# Messages over MPI. Blocking calls of MPI have no limit of time and cannot be interrupted: a large
# message to a process that hangs, or from it, would keep R waiting forever. Here each transfer is a
# request of MPI that is looked at until it is done or its time is over.

is_mpi <- function(node) inherits(node, "MPInode")
of_rmpi <- function(name) getExportedValue("Rmpi", name)

# Numbers of requests that Rmpi has and that its own functions do not use by default.
MPI_REQUESTS <- 1000:1999
# The type of messages of bytes, in Rmpi.
MPI_RAW <- 4
# Seconds between two looks at a transfer.
MPI_LOOK <- 1e-4

# The messages of requests that are not done, by number. MPI writes to them, or reads them, also
# after R has given them up.
mpi_messages <- new.env(parent = emptyenv())

#' Is there a message from this node?
#' @noRd
mpi_has_message <- function(node)
  isTRUE(of_rmpi("mpi.iprobe")(node$rank, node$RECVTAG, node$comm))

#' Send a call as parallel's sendCall() does
#' @param seconds After which this is an error.
#' @noRd
mpi_send_call <- function(node, f, args, tag, seconds) {
  call <- list(fun = f, args = args, return = TRUE, tag = tag)
  message <- serialize(list(type = "EXEC", data = call, tag = NULL), NULL)
  mpi_transfer(message, seconds, function(request)
    of_rmpi("mpi.isend")(message, MPI_RAW, node$rank, node$SENDTAG, node$comm, request))
}

#' Read the message that has come from a node
#' @noRd
mpi_receive <- function(node, seconds) {
  of_rmpi("mpi.probe")(node$rank, node$RECVTAG, node$comm)
  message <- raw(of_rmpi("mpi.get.count")(MPI_RAW))
  mpi_transfer(message, seconds, function(request)
    of_rmpi("mpi.irecv")(message, MPI_RAW, node$rank, node$RECVTAG, node$comm, request))
  unserialize(message)
}

#' Send or receive a message, or give it up
#' @param begin A function of the number of a request, which begins it.
#' @noRd
mpi_transfer <- function(message, seconds, begin) {
  name <- free_request()
  assign(name, message, mpi_messages)
  begin(as.integer(name))
  until <- now() + seconds
  while (!mpi_is_done(name)) {
    if (now() > until) stop("A message of MPI has not arrived in time.")
    Sys.sleep(MPI_LOOK)
  }
}

# Asking whether a transfer is done is also what lets MPI go on with it.
mpi_is_done <- function(name) {
  done <- isTRUE(of_rmpi("mpi.test")(as.integer(name)))
  if (done) rm(list = name, envir = mpi_messages)
  done
}

#' The name of a request that is not in use
#' @noRd
free_request <- function() {
  for (name in ls(mpi_messages)) mpi_is_done(name)
  free <- setdiff(as.character(MPI_REQUESTS), ls(mpi_messages))
  if (!length(free)) stop("Too many messages of MPI have not arrived.")
  free[1]
}

# Clusters of several kinds on this machine, for tests of work on other processes: PSOCK, SSH, MPI,
# mirai and Slurm. Servers have their own keys, ports and folders. All that a test has started ends
# with it, also when the test fails or its R process is killed.
#
# `make engines` installs what they need and sets LOGEVIDENCE_ENGINES=true: a kind that cannot start
# is then a failure. Elsewhere its tests are skipped, with the reason.

ENGINES <- c("psock", "ssh", "mpi", "mirai")

#' What `use`, a function of a cluster with `n` workers, returns
#'
#' Its workers are new processes, which know nothing of the libraries of this session. With "mpi"
#' the function and what it refers to are copied, and it runs as rank 0 under `mpirun`.
on_engine <- function(engine, use, n = 2) {
  if (engine == "mpi") {
    reason <- no_mpi()
    if (is.character(reason)) skip_engine(reason)
    return(use_in_mpi(use, n))
  }
  started <- switch(engine, psock = start_psock, ssh = start_ssh, mirai = start_mirai)(n)
  if (is.character(started)) skip_engine(started)
  on.exit(started$stop())
  use(started$cluster)
}

skip_engine <- function(reason) {
  if (identical(Sys.getenv("LOGEVIDENCE_ENGINES"), "true")) stop(reason, ".", call. = FALSE)
  testthat::skip(reason)
}

#' Tell the workers of a cluster where this session has its packages
set_libraries <- function(cl)
  invisible(parallel::clusterCall(cl, function(paths) .libPaths(paths), .libPaths()))

# A call that takes its time and says which process has worked; without what a test has defined.
who_after <- function(seconds) {
  Sys.sleep(seconds)
  Sys.getpid()
}
environment(who_after) <- globalenv()

# Functions of parallel for one node, which it does not export: it has the whole cluster's only.
send_call <- function(node, fun, ...)
  utils::getFromNamespace("sendCall", "parallel")(node, fun, list(...))
receive_result <- function(node) utils::getFromNamespace("recvResult", "parallel")(node)

#' Which nodes have an answer that can be read, after at most so many seconds
#'
#' parallel has this for sockets only. Its own functions wait without limit.
answered <- function(cl, seconds = 0) {
  if (inherits(cl, "SOCKcluster"))
    return(parallel_select(lapply(cl, `[[`, "con"), seconds))
  end <- Sys.time() + seconds
  repeat {
    ready <- if (inherits(cl, "MPIcluster")) vapply(cl, mpi_answered, NA)
    else vapply(cl, function(node) !mirai_function("unresolved")(node$mirai), NA)
    if (any(ready) || Sys.time() >= end) return(ready)
    Sys.sleep(0.01)
  }
}
parallel_select <- function(connections, seconds)
  as.logical(socketSelect(connections, FALSE, seconds))
mpi_answered <- function(node)
  getExportedValue("Rmpi", "mpi.iprobe")(node$rank, node$RECVTAG, node$comm)

# Processes ----------------------------------------------------------------------------------------

# Ends all processes that have this folder in their environment, command or current directory, and
# removes it. With a process number it first waits until that process has gone.
END_ENGINE <- '
folder=$1
if [ -n "$2" ]; then
  trap "" HUP INT TERM
  while kill -0 "$2" 2> /dev/null; do sleep 1; done
fi
numbers() {
  grep -lsF "$folder" /proc/[0-9]*/environ /proc/[0-9]*/cmdline | cut -d/ -f3
  ls -ld /proc/[0-9]*/cwd 2> /dev/null | sed -n "s|.* /proc/\\([0-9]*\\)/cwd -> $folder.*|\\1|p"
}
for round in 1 2 3 4 5 6 7 8 9 10; do
  found=no
  for number in $(numbers | sort -u); do
    [ "$number" = $$ ] || [ "$number" = $PPID ] || { kill -9 "$number" && found=yes; }
  done 2> /dev/null
  [ $found = no ] && break
  sleep 0.05
done
rm -rf "$folder"
if [ -e /run/sshd/made-by-logevidence ] && ! ls /tmp/le*/sshd_config > /dev/null 2>&1; then
  rm -rf /run/sshd
fi
'

#' A folder for one engine, and how to end what is started in it
#'
#' @return `path`; `variables` and `env`, one variable for R and for a shell, by which processes are
#'   found; and `stop()`. A guard does what `stop()` does if this R process ends without it.
engine_folder <- function() {
  # not in R's temporary folder: sockets must have short names, and other users read some files
  path <- tempfile("le", "/tmp")
  dir.create(path, mode = "0755")
  script <- file.path(path, "end.sh")
  writeLines(END_ENGINE, script)
  in_background("sh", c(script, path, Sys.getpid()))
  ended <- FALSE
  stop <- function() {
    if (ended) return(invisible())
    ended <<- TRUE
    system2("sh", c(script, path), env = "LD_PRELOAD=")
  }
  list(path = path, stop = stop, variables = c(LOGEVIDENCE_ENGINE = path),
       env = paste0("LOGEVIDENCE_ENGINE=", path))
}

#' Start a command without waiting, and without what `make sanitize` loads into R
in_background <- function(command, arguments, env = NULL)
  system2(command, arguments, stdout = FALSE, stderr = FALSE, wait = FALSE,
          env = c(env, "LD_PRELOAD="))

#' Run a command; an error has the end of what it said
run_command <- function(command, arguments, env = NULL, seconds = 20) {
  # a file, as a server would keep a pipe open
  file <- tempfile()
  on.exit(unlink(file))
  status <- suppressWarnings(system2(command, shQuote(arguments), stdin = "/dev/null",
                                     stdout = file, stderr = file, env = c(env, "LD_PRELOAD="),
                                     timeout = seconds))
  said <- readLines(file, warn = FALSE)
  if (status != 0)
    stop(basename(command), ": ", paste(utils::tail(said, 3), collapse = " "), call. = FALSE)
  said
}

#' Evaluate `code` with these environment variables, which processes started by it inherit
with_variables <- function(variables, code) {
  old <- Sys.getenv(names(variables), NA, names = TRUE)
  on.exit({
    Sys.unsetenv(names(old)[is.na(old)])
    if (!all(is.na(old))) do.call(Sys.setenv, as.list(old[!is.na(old)]))
  })
  do.call(Sys.setenv, as.list(variables))
  code
}

#' Wait until a condition holds; an error if it does not within these seconds
wait_until <- function(holds, seconds, what) {
  end <- Sys.time() + seconds
  while (!holds()) {
    if (Sys.time() > end)
      stop("waited ", seconds, " seconds for ", what, call. = FALSE)
    Sys.sleep(0.1)
  }
}

#' A TCP port on which nothing listens, below those that the system gives to clients
free_port <- local({
  last <- 0
  function() {
    for (try in 1:100) {
      last <<- last + 1
      port <- 12000 + (Sys.getpid() * 31 + last) %% 20000
      socket <- tryCatch(serverSocket(port), error = function(e) NULL)
      if (!is.null(socket)) {
        close(socket)
        return(port)
      }
    }
    stop("no free port", call. = FALSE)
  }
})

#' The first reason why an engine cannot start, or NULL
missing_parts <- function(programs = NULL, packages = NULL) {
  if (nzchar(Sys.getenv("LD_PRELOAD"))) return("A sanitizer is loaded into R, not into servers")
  if (!dir.exists("/proc/self")) return("No /proc, by which tests find the processes to end")
  for (package in packages)
    if (!nzchar(system.file(package = package))) return(paste("No package", package))
  for (program in programs)
    if (!nzchar(path_of(program))) return(paste("No", program))
}

# Servers are in a folder that is not on the path of all users.
path_of <- function(program) {
  found <- c(Sys.which(program), file.path("/usr/sbin", program))
  found <- found[file.exists(found)]
  if (length(found)) found[[1]] else ""
}

#' `start`, a function of the engine's folder, or in a sentence why it failed, after its end
start_in_folder <- function(name, start) {
  folder <- engine_folder()
  tryCatch(start(folder), error = function(e) {
    folder$stop()
    paste0(name, " does not start: ", conditionMessage(e))
  })
}

# PSOCK and SSH ------------------------------------------------------------------------------------

# A worker that has gone must not keep the others from being told to end.
stop_sockets <- function(cl) for (k in seq_along(cl))
  try(suppressWarnings(parallel::stopCluster(cl[k])), silent = TRUE)

start_psock <- function(n) start_in_folder("PSOCK", function(folder) {
  cl <- with_variables(folder$variables, parallel::makePSOCKcluster(n, port = free_port(),
                                                                    setup_timeout = 20))
  stop <- function() {
    stop_sockets(cl)
    folder$stop()
  }
  list(cluster = cl, stop = stop)
})

# sshd reads neither files of the system nor those of the user: its home is the engine's folder.
ssh_server_settings <- function(folder, port) c(
  paste("Port", port), "ListenAddress 127.0.0.1", paste0("HostKey ", folder, "/host"),
  paste0("PidFile ", folder, "/sshd.pid"), paste0("AuthorizedKeysFile ", folder, "/client.pub"),
  paste0("SetEnv HOME=", folder, " LOGEVIDENCE_ENGINE=", folder),
  "UsePAM no", "StrictModes no", "PermitRootLogin yes", "PermitUserRC no",
  "PasswordAuthentication no", "KbdInteractiveAuthentication no"
)

ssh_client_options <- function(folder, port) c(
  "-F", "/dev/null", "-p", port, "-i", file.path(folder, "client"), "-o", "IdentitiesOnly=yes",
  "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "StrictHostKeyChecking=no",
  "-o", "LogLevel=ERROR", "-o", paste0("UserKnownHostsFile=", file.path(folder, "known"))
)

#' Workers that SSH starts through a server of our own on 127.0.0.1
start_ssh <- function(n) {
  reason <- missing_parts(c("ssh", "ssh-keygen", "sshd"))
  if (is.character(reason)) return(reason)
  start_in_folder("SSH", function(folder) {
    for (key in c("host", "client"))
      run_command("ssh-keygen", c("-q", "-t", "ed25519", "-N", "", "-f",
                                  file.path(folder$path, key)))
    port <- free_port()
    settings <- file.path(folder$path, "sshd_config")
    writeLines(ssh_server_settings(folder$path, port), settings)
    # as root sshd needs this folder, which Debian makes when it starts its own
    if (Sys.info()[["effective_user"]] == "root" && dir.create("/run/sshd", FALSE))
      file.create("/run/sshd/made-by-logevidence")
    run_command(path_of("sshd"), c("-f", settings, "-E", file.path(folder$path, "sshd.log")),
                folder$env)
    options <- ssh_client_options(folder$path, port)
    # makePSOCKcluster() would wait for ever
    run_command("ssh", c(options, "127.0.0.1", "true"))
    cl <- parallel::makePSOCKcluster(
      rep("127.0.0.1", n), master = "127.0.0.1", port = free_port(),
      rshcmd = paste(c("ssh", options), collapse = " ")
    )
    stop <- function() {
      stop_sockets(cl)
      folder$stop()
    }
    list(cluster = cl, stop = stop)
  })
}

# mirai --------------------------------------------------------------------------------------------

mirai_function <- function(name) getExportedValue("mirai", name)

#' A certificate for 127.0.0.1 and its key
#'
#' mirai can make one itself, of a kind that takes several seconds.
tls_certificate <- function(folder) {
  key <- file.path(folder, "key.pem")
  certificate <- file.path(folder, "certificate.pem")
  run_command("openssl", c("req", "-x509", "-newkey", "ec", "-pkeyopt",
                           "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key, "-out",
                           certificate, "-days", "2", "-subj", "/CN=127.0.0.1", "-addext",
                           "subjectAltName=IP:127.0.0.1"))
  text <- function(file) paste0(readLines(file), "\n", collapse = "")
  list(certificate = text(certificate), key = text(key))
}

#' Workers of mirai that connect over TLS to 127.0.0.1, as they would from another machine
#'
#' Nodes of this cluster are not processes: a node's next call goes to the process that is free.
start_mirai <- function(n) {
  reason <- missing_parts("openssl", c("nanonext", "mirai"))
  if (is.character(reason)) return(reason)
  start_in_folder("mirai", function(folder) {
    tls <- tls_certificate(folder$path)
    how <- mirai_function("remote_config")("sh", rep(list(c("-c", ".")), n),
                                           paste("exec", file.path(R.home("bin"), "Rscript")),
                                           quote = TRUE)
    # workers need mirai before they can be told where packages are
    variables <- c(folder$variables, R_LIBS = dirname(system.file(package = "mirai")))
    cl <- with_variables(variables, mirai_function("make_cluster")(
      n, "tls+tcp://127.0.0.1:0", how, tls = unlist(tls, use.names = FALSE),
      tlscert = c(tls$certificate, "")
    ))
    connected <- function() mirai_function("status")(attr(cl, "id"))$connections
    stop <- function() {
      try(parallel::stopCluster(cl), silent = TRUE)
      folder$stop()
    }
    tryCatch(wait_until(function() connected() == n, 20, "workers of mirai"),
             error = function(e) {
               stop()
               base::stop(e)
             })
    list(cluster = cl, stop = stop)
  })
}

# MPI ----------------------------------------------------------------------------------------------

no_mpi <- function() missing_parts("mpirun", c("Rmpi", "snow"))

# Rank 0 has the cluster, the others are its workers.
MPI_SCRIPT <- c(
  "suppressPackageStartupMessages({ library(Rmpi); library(snow) })",
  "if (mpi.comm.rank(0) > 0) {",
  "  sink('/dev/null')",
  "  workLoop(makeMPImaster())",
  "  mpi.quit()",
  "}",
  "cl <- makeMPIcluster()",
  "given <- readRDS('given.rds')",
  ".libPaths(given$libraries)",
  "helpers <- new.env(parent = asNamespace('logevidence'))",
  "for (file in given$helpers) sys.source(file, helpers)",
  "attach(helpers, warn.conflicts = FALSE)",
  "value <- tryCatch(list(value = given$use(cl)), error = function(e) list(error = e))",
  "saveRDS(value, 'value.rds')",
  "stopCluster(cl)",
  "mpi.quit()"
)

#' What `use` returns in rank 0 of `mpirun`, with a cluster of `n` other ranks
#'
#' An error if MPI ends the job before that.
use_in_mpi <- function(use, n, seconds = 60) {
  folder <- engine_folder()
  helpers <- normalizePath(list.files(testthat::test_path(), "^helper-.*[.]R$", full.names = TRUE))
  old <- setwd(folder$path)
  on.exit({
    setwd(old)
    folder$stop()
  })
  saveRDS(list(use = use, libraries = .libPaths(), helpers = helpers), "given.rds")
  writeLines(MPI_SCRIPT, "script.R")
  said <- run_command(
    "mpirun", c("-np", n + 1, "--oversubscribe", "--allow-run-as-root",
                "--mca", "orte_tmpdir_base", folder$path,
                "--mca", "btl_vader_backing_directory", folder$path,
                file.path(R.home("bin"), "Rscript"), "script.R"),
    c(folder$env, "OMP_NUM_THREADS=1"), seconds
  )
  if (!file.exists("value.rds"))
    stop("mpirun: ", paste(utils::tail(said, 3), collapse = " "), call. = FALSE)
  given <- readRDS("value.rds")
  if (!is.null(given$error)) stop(given$error)
  given$value
}

# Slurm --------------------------------------------------------------------------------------------

slurm_settings <- function(folder, ports) c(
  "ClusterName=tests", paste0("SlurmctldHost=", Sys.info()[["nodename"]], "(127.0.0.1)"),
  paste0("SlurmctldPort=", ports[1]), paste0("SlurmdPort=", ports[2]),
  paste0(c("SlurmUser=", "SlurmdUser="), Sys.info()[["effective_user"]]),
  "AuthType=auth/munge", paste0("AuthInfo=socket=", folder, "/munge.socket"),
  paste0("StateSaveLocation=", folder, "/state"), paste0("SlurmdSpoolDir=", folder, "/spool"),
  paste0(c("SlurmctldPidFile=", "SlurmdPidFile="), folder, c("/slurmctld.pid", "/slurmd.pid")),
  paste0(c("SlurmctldLogFile=", "SlurmdLogFile="), folder, c("/slurmctld.log", "/slurmd.log")),
  # a container has no control groups that a test may use
  "ProctrackType=proctrack/linuxproc", "TaskPlugin=task/none",
  "JobAcctGatherType=jobacct_gather/none", "MpiDefault=none",
  paste0("PlugStackConfig=", folder, "/plugstack.conf"),
  "SelectType=select/cons_tres", "SelectTypeParameters=CR_Core", "ReturnToService=2",
  "SchedulerParameters=sched_interval=1,batch_sched_delay=0",
  # seconds between SIGTERM and SIGKILL
  "KillWait=1", "SlurmdParameters=config_overrides",
  paste0("NodeName=here NodeHostname=", Sys.info()[["nodename"]],
         " NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN"),
  "PartitionName=all Nodes=here Default=YES MaxTime=INFINITE State=UP"
)

#' A controller and a node of Slurm on this machine, which runs two jobs at once
#'
#' @return `folder`, where jobs run; `run(command, ...)`, which runs a command of Slurm;
#'   `submit(lines, ...)`, which submits a script of R and returns the job's number; `state(job)`,
#'   the states of its tasks; `requeue(job)`, which returns when it has started again; and `stop()`.
#'   Or a sentence that says why there is no Slurm.
start_slurm <- function() {
  reason <- missing_parts(c("munged", "slurmctld", "slurmd", "sbatch"))
  if (is.character(reason)) return(reason)
  start_in_folder("Slurm", function(folder) {
    at <- function(name) file.path(folder$path, name)
    env <- c(folder$env, paste0("SLURM_CONF=", at("slurm.conf")))
    run <- function(command, ...) run_command(path_of(command), c(...), env)
    for (name in c("state", "spool")) dir.create(at(name))
    file.create(at("plugstack.conf"))
    writeLines(slurm_settings(folder$path, c(free_port(), free_port())), at("slurm.conf"))
    run_command("dd", c("if=/dev/urandom", paste0("of=", at("munge.key")), "bs=128", "count=1"))
    Sys.chmod(at("munge.key"), "0400")
    run("munged", "--num-threads", "2", "--key-file", at("munge.key"), "--socket",
        at("munge.socket"), "--pid-file", at("munged.pid"), "--seed-file", at("munge.seed"),
        "--log-file", at("munged.log"))
    run("slurmctld", "-c")
    run("slurmd", "-c")
    wait_until(function() identical(run("sinfo", "-h", "-o", "%t"), "idle"), 10, "Slurm's node")
    state <- function(job) {
      lines <- run("scontrol", "-o", "show", "job", job)
      sub(".* JobState=([A-Z_]+) .*", "\\1", lines)
    }
    # Rscript is the job itself, so that signals come to it
    submit <- function(lines, ...) {
      script <- tempfile("job", folder$path)
      writeLines(c(sprintf(".libPaths(%s)", deparse1(.libPaths())), lines),
                 paste0(script, ".R"))
      writeLines(c("#!/bin/sh", paste("exec", file.path(R.home("bin"), "Rscript"),
                                      paste0(script, ".R"))), script)
      run("sbatch", "--parsable", "--chdir", folder$path, "--output", at("out-%A-%a.txt"),
          "--open-mode=append", ..., script)
    }
    # after a requeue Slurm waits for two minutes; a job that still ends has no start to be changed
    requeue <- function(job) {
      run("scontrol", "requeue", job)
      wait_until(function() {
        if (state(job) == "PENDING")
          try(run("scontrol", "update", paste0("JobId=", job), "StartTime=now"), silent = TRUE)
        state(job) %in% c("RUNNING", "COMPLETED")
      }, 15, "the second start")
    }
    # a step of a job reports its end to the controller, which must be there then
    stop <- function() {
      idle <- function() length(run("squeue", "-h")) == 0
      try({
        run("scancel", "--user", Sys.info()[["effective_user"]])
        wait_until(idle, 5, "the end of jobs")
        run("scontrol", "shutdown")
      }, silent = TRUE)
      folder$stop()
    }
    list(folder = folder$path, run = run, submit = submit, state = state, requeue = requeue,
         stop = stop)
  })
}

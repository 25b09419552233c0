# Processes of other kinds than this one, on this machine: what a run gets from them, and what a
# worker does that is stopped or killed. The clusters are in helper-engines.R.

skip_on_cran()
skip_on_os("windows")

# a formula of the global environment is equal to itself where it has been copied
line <- linear_regression(stats::as.formula("dist ~ speed", globalenv()), sigma = 15, prior_sd = 10)

for (engine in ENGINES) test_that(paste0(engine, ": workers give the bits of this process"), {
  found <- on_engine(engine, function(cl) {
    squares <- unlist(parallel::clusterApply(cl, 1:4, function(i) i^2))
    balanced <- unlist(parallel::clusterApplyLB(cl, 1:4, function(i) i^2))
    processes <- unlist(parallel::clusterCall(cl, Sys.getpid))
    set_libraries(cl)
    parallel::clusterEvalQ(cl, library(logevidence))
    fits <- parallel::clusterCall(cl, evidence, line, cars, seed = test_seed(3),
                                  progress = FALSE)
    list(squares = squares, balanced = balanced, processes = c(Sys.getpid(), processes),
         fits = fits)
  })
  expect_identical(found$squares, c(1, 4, 9, 16))
  expect_identical(found$balanced, c(1, 4, 9, 16))
  expect_length(unique(c(Sys.getpid(), found$processes)), if (engine == "mpi") 4 else 3)
  here <- essence(evidence(line, cars, seed = test_seed(3), progress = FALSE))
  for (fit in found$fits) expect_identical(essence(fit), here)
})

for (engine in ENGINES) test_that(paste0(engine, ": `cl` and shards have the bits of none"), {
  part_of_cars <- function(shard) datasets::cars[seq(10 * shard - 9, 10 * shard), ]
  environment(part_of_cars) <- globalenv()
  found <- on_engine(engine, function(cl) {
    set_libraries(cl)
    runs <- evidence(line, cars, nested(50), seed = test_seed(3), replicates = 3, progress = FALSE,
                     cl = cl)
    shards <- function(cl) evidence(line, rows_cluster(cl, part_of_cars, 5), seed = test_seed(3),
                                    progress = FALSE)
    one <- if (engine == "mirai") cl else cl[1]
    list(runs = essence(runs), shards = essence(shards(cl)), one = essence(shards(one)))
  })
  here <- evidence(line, cars, nested(50), seed = test_seed(3), replicates = 3, progress = FALSE)
  expect_identical(found$runs, essence(here))
  expect_identical(found$one, found$shards)
  whole <- evidence(line, cars, laplace(importance = 4000), seed = test_seed(3))
  expect_lt(abs(found$shards$log_evidence - whole$log_evidence), 1e-6)
})

# Both workers have a call, and a process gets a signal. Answers say which process has worked: for
# mirai it may be that of either node.
signal_one <- function(cl, signal) {
  process <- parallel::clusterCall(cl, Sys.getpid)[[1]]
  for (node in cl) send_call(node, who_after, 0.5)
  Sys.sleep(0.1)
  tools::pskill(process, signal)
  process
}

for (engine in ENGINES) test_that(paste0(engine, ": a worker stopped by a signal goes on"), {
  found <- on_engine(engine, function(cl) {
    process <- signal_one(cl, tools::SIGSTOP)
    answered(cl, 20)
    while_stopped <- answered(cl, 0.3)
    others <- unlist(lapply(cl[while_stopped], receive_result))
    tools::pskill(process, tools::SIGCONT)
    rest <- cl[!while_stopped]
    answered(rest, 20)
    list(process = process, answered = while_stopped, others = others,
         late = unlist(lapply(rest, receive_result)))
  })
  expect_identical(sum(found$answered), 1L)
  expect_false(found$process %in% found$others)
  expect_identical(found$late, found$process)
})

# The process that is killed, and what is received from both nodes.
answers_of_killed <- function(engine) on_engine(engine, function(cl) {
  process <- signal_one(cl, tools::SIGKILL)
  list(process = process, answers = lapply(cl, function(node)
    tryCatch(receive_result(node), error = conditionMessage)))
})

for (engine in c("psock", "ssh")) test_that(paste0(engine, ": a killed worker is an error"), {
  found <- answers_of_killed(engine)
  expect_identical(found$answers[[1]], "error reading from connection")
  expect_true(is.integer(found$answers[[2]]) && found$answers[[2]] != found$process)
})

test_that("mirai: a killed worker gives an error value, and others answer", {
  found <- answers_of_killed("mirai")
  lost <- vapply(found$answers, inherits, NA, "errorValue")
  expect_identical(sum(lost), 1L)
  expect_identical(as.integer(found$answers[[which(lost)]]), 19L)
  expect_false(identical(found$answers[[which(!lost)]], found$process))
})

test_that("mpi: a killed worker ends the job", {
  expect_error(answers_of_killed("mpi"), "exited on signal 9")
})

# Slurm --------------------------------------------------------------------------------------------

# Its answers take seconds, and on a busy machine many.
with_slurm <- function(use) {
  needed <- identical(Sys.getenv("LOGEVIDENCE_ENGINES"), "true") || is_slow()
  skip_if_not(needed, "LOGEVIDENCE_ENGINES is not true")
  slurm <- start_slurm()
  if (is.character(slurm)) skip_engine(slurm)
  on.exit(slurm$stop())
  use(slurm)
}
# what all tasks of a job have written
said_in <- function(slurm, job) unlist(lapply(
  list.files(slurm$folder, paste0("^out-", job, "-"), full.names = TRUE), readLines, warn = FALSE))

test_that("slurm: an array gives the bits of this process, a requeued job starts again", {
  with_slurm(function(slurm) {
    fit <- c("library(logevidence)",
             "task <- as.integer(Sys.getenv('SLURM_ARRAY_TASK_ID'))",
             "model <- linear_regression(dist ~ speed, sigma = 15, prior_sd = 10)",
             sprintf("fit <- evidence(model, cars, seed = %g + task, progress = FALSE)",
                     test_seed(0)),
             "saveRDS(fit$log_evidence, paste0('fit-', task, '.rds'))")
    array <- slurm$submit(fit, "--array=1-3")
    wait_until(function() all(slurm$state(array) == "COMPLETED"), 15, "the array")
    for (task in 1:3) {
      there <- readRDS(file.path(slurm$folder, sprintf("fit-%d.rds", task)))
      here <- evidence(line, cars, seed = test_seed(task), progress = FALSE)
      expect_identical(there, here$log_evidence)
    }
    restarts <- c("cat('restart', Sys.getenv('SLURM_RESTART_COUNT', '0'), '\n')",
                  "if (Sys.getenv('SLURM_RESTART_COUNT') != '1') Sys.sleep(60)")
    job <- slurm$submit(restarts, "--requeue")
    wait_until(function() any(grepl("restart 0", said_in(slurm, job))), 10, "the job")
    slurm$requeue(job)
    wait_until(function() slurm$state(job) == "COMPLETED", 10, "the end of the second start")
    expect_match(said_in(slurm, job), "DUE TO JOB REQUEUE", all = FALSE)
    expect_match(said_in(slurm, job), "restart 1", all = FALSE)
  })
})

# Slurm looks at the time that is left every half minute.
test_that("slurm: a job that reaches its walltime is ended by a signal", {
  with_slurm(function(slurm) {
    job <- slurm$submit("repeat { cat('at work\\n'); Sys.sleep(0.1) }", "--time=1")
    wait_until(function() any(grepl("at work", said_in(slurm, job))), 10, "the job")
    slurm$run("scontrol", "update", paste0("JobId=", job), "EndTime=now")
    wait_until(function() slurm$state(job) == "TIMEOUT", 40, "the walltime")
    expect_match(said_in(slurm, job), "DUE TO TIME LIMIT", all = FALSE)
  })
})

# Blocking calls of MPI would wait for the process forever.
test_that("mpi: a process that stops during a long message is left out", {
  found <- on_engine("mpi", function(cl) {
    own <- asNamespace("logevidence")
    set_libraries(cl)
    crew <- own$new_crew(task_limit(cl, 2))
    pids <- vapply(crew$who, `[[`, 0L, "pid")
    numbers <- as.double(1:1e6)
    # the first worker has stopped before its message, the second in the middle of its answer
    tools::pskill(pids[1], tools::SIGSTOP)
    Sys.sleep(0.1)
    sent <- own$send_to(crew, 1, 1, function(x) list(sum(x)), list(x = numbers))
    own$send_to(crew, 2, 2, function(x) list(x), list(x = numbers))
    Sys.sleep(1)
    tools::pskill(pids[2], tools::SIGSTOP)
    Sys.sleep(0.1)
    half <- own$receive(crew, 0.1)[[1]]
    for (pid in pids) tools::pskill(pid, tools::SIGCONT)
    own$leave(crew)
    # what they had still to say belongs to no later call
    again <- own$new_crew(task_limit(cl, 5))
    own$send_to(again, 1, 1, function(x) list(sum(x)), list(x = numbers))
    late <- unlist(own$receive(again, 5)[[1]]$value)
    own$leave(again)
    list(sent = sent, half = half[c("lost", "value")], alive = again$alive, late = late,
         waiting = ls(own$mpi_messages))
  })
  expect_false(found$sent)
  # a machine may copy an answer without the process
  if (is.null(found$half$value)) expect_match(found$half$lost, "has ended or sent something")
  expect_identical(found$alive, rep(TRUE, 2))
  expect_identical(found$late, sum(1:1e6))
  expect_length(found$waiting, 0)
})

# Runs that are stopped, saved and continued: the same bits as runs that were never stopped.

set.seed(test_seed(31))
points <- data.frame(x = rnorm(6000), z = rnorm(6000))
points$y <- 1 + 2 * points$x + rnorm(6000)
line <- linear_regression(y ~ x + z, sigma = 1, prior_sd = 2)
few <- points[1:60, ]

files_beside <- function(file)
  list.files(dirname(file), paste0("^", basename(file)), all.files = TRUE)

bytes_in <- function(file) readBin(file, "raw", file.size(file))

saved_few <- function() {
  file <- tempfile(fileext = ".rds")
  saveRDS(few, file)
  file
}

# Stops after every slice until the fit is complete; returns it and the number of stops.
in_slices <- function(...) {
  fit <- quiet_fit(..., time_limit = 1e-9)
  stops <- 0
  while (inherits(fit, "incomplete_evidence")) {
    stops <- stops + 1
    fit <- muffled(resume(unserialize(serialize(fit, NULL)), time_limit = 1e-9))
  }
  list(fit = fit, stops = stops)
}

test_that("a run that is stopped by its time limit after every slice gives the same bits", {
  blobs <- matrix(rnorm(200, rep(c(-3, 3), 50)), ncol = 2)
  user <- custom_model("a", function(theta, data) sum(dnorm(data$y, theta, log = TRUE)),
                       function(theta) dnorm(theta, log = TRUE), function(n) rnorm(n))
  calls <- list(
    list(line, points, sgais(steps = 100), seed = test_seed()),
    list(line, points, sgais(steps = 100, order = "given"), seed = test_seed()),
    list(line, in_blocks(points, 500), sgais(steps = 100), seed = test_seed()),
    list(line, in_blocks(points, 500), sgais(), seed = test_seed(), replicates = 2),
    list(line, points[1:1000, ], sgais(preset = "paper"), seed = test_seed(), replicates = 2),
    list(line, few, nested(50), seed = test_seed()),
    list(line, few, smc(particles = 300), seed = test_seed()),
    list(line, few, ais(50), seed = test_seed()),
    list(line, few, bridge(20, 50), seed = test_seed()),
    list(line, few, hybrid(40, 20), seed = test_seed()),
    list(line, few, online_nested(30), seed = test_seed()),
    list(line, few, laplace(importance = 200), seed = test_seed()),
    list(line, few, exact(), seed = test_seed()),
    list(gaussian_mixture(components = 2), blobs, sgais(), seed = test_seed()),
    list(gaussian_mixture(components = 2), blobs, variational(3, draws = 50), seed = test_seed()),
    list(clustering(components = 2), blobs, smc("data", 20), seed = test_seed()),
    list(clustering(components = 2), blobs, chib(draws = 50), seed = test_seed()),
    list(user, few, smc(particles = 20, kernel = rwm()), seed = test_seed()),
    list(line, points[1:300, ], online_nested(20, steps = 3, past = 100), seed = test_seed())
  )
  if (!is_slow()) calls <- calls[c(2, 4, 6, 9, 14, 16, 18, 19)]
  stops <- 0
  for (call in calls) {
    sliced <- do.call(in_slices, call, quote = TRUE)
    stops <- stops + sliced$stops
    expect_same(sliced$fit, do.call(quiet_fit, call, quote = TRUE), deparse1(call[[3]]$call))
  }
  expect_gt(stops, length(calls))
})

test_that("a phase that is under way when the time is over is undone, and done again", {
  set.seed(test_seed(5))
  rows <- data.frame(g = gl(40, 20), x = rnorm(800))
  rows$y <- rpois(800, exp(0.2 + rnorm(40, 0, 0.5)[rows$g] + 0.1 * rows$x))
  slopes <- regression(y ~ x + (x | g), family = poisson())
  user <- custom_model("a", function(theta, data) {
    Sys.sleep(0.0005)
    sum(dnorm(data$x, theta, log = TRUE))
  }, function(theta) dnorm(theta, log = TRUE), function(n) rnorm(n))
  # long phases of one run, of two runs at once, of an R function, and of a chain
  calls <- list(list(slopes, rows[1:100, ], smc(particles = 30)),
                list(slopes, rows[1:100, ], smc(particles = 15), replicates = 2, threads = 2),
                list(user, rows[1:20, ], smc(particles = 10, kernel = rwm())),
                list(slopes, rows, smc(particles = 20)),
                list(slopes, rows[1:200, ], bridge(10, 40)))
  if (!is_slow()) calls <- calls[1:3]
  limit <- 0.15
  for (call in calls) {
    call <- c(call, list(seed = test_seed(6)))
    # what a phase takes depends on the machine, so the time is that of the first stop
    took <- system.time(fit <- do.call(quiet_fit, c(call, list(time_limit = limit)), quote = TRUE))
    expect_lt(min(took[["elapsed"]], took[["user.self"]] + took[["sys.self"]]), limit + 1)
    expect_s3_class(fit, "incomplete_evidence")
    fit <- muffled(resume(unserialize(serialize(fit, NULL)), time_limit = 3 * limit))
    while (inherits(fit, "incomplete_evidence")) fit <- muffled(resume(fit, time_limit = 1))
    expect_same(fit, do.call(quiet_fit, call, quote = TRUE), deparse1(call[[3]]$call))
  }
})

test_that("an incomplete fit has the estimate of the rows so far, where there is one", {
  n <- 0
  # stops at the first slice that has passed some rows
  fit <- evidence(line, points, sgais(steps = 100, order = "given"), seed = test_seed(),
                  time_limit = 1e-9)
  while (inherits(fit, "incomplete_evidence") && is.na(fit$log_evidence))
    fit <- resume(fit, time_limit = 1e-9)
  if (inherits(fit, "incomplete_evidence")) {
    expect_lte(fit$n, 6000)
    truth <- evidence(line, points[seq_len(fit$n), ], exact())$log_evidence
    expect_lt(abs(fit$log_evidence - truth), 5 * fit$se + 0.5)
    expect_match(printed(fit), "Log evidence of the first [0-9,]+ rows")
  }
  fit <- evidence(line, few, nested(400), seed = test_seed(), time_limit = 1e-9)
  expect_true(is.na(fit$log_evidence))
  expect_match(printed(fit), "No estimate yet")
})

killed_child <- function(file, call) {
  script <- tempfile(fileext = ".R")
  pid <- tempfile()
  on.exit(unlink(c(script, pid)))
  writeLines(c(sprintf(".libPaths(%s)", deparse1(.libPaths())), "library(logevidence)",
               sprintf("writeLines(as.character(Sys.getpid()), '%s')", pid), call), script)
  system2(file.path(R.home("bin"), "Rscript"), script, wait = FALSE, stdout = FALSE, stderr = FALSE)
  for (i in 1:600) {
    if (file.exists(file)) break
    Sys.sleep(0.05)
  }
  Sys.sleep(stats::runif(1, 0, 0.5))
  tools::pskill(as.integer(readLines(pid)), tools::SIGKILL)
}

test_that("a killed process leaves a checkpoint that another one resumes to the same bits", {
  skip_on_os("windows")
  data <- tempfile(fileext = ".rds")
  file <- tempfile()
  on.exit(unlink(c(data, file)))
  saveRDS(points, data)
  model <- linear_regression(y ~ x + z, sigma = 1, prior_sd = 2)
  calls <- list(sgais = sgais(steps = 1000), nested = nested(300))
  for (name in names(calls)) {
    unlink(file)
    rows <- if (name == "nested") few else points
    killed_child(file, sprintf(
      "evidence(linear_regression(y ~ x + z, sigma = 1, prior_sd = 2), readRDS('%s')[1:%d, ], %s,
       seed = %d, checkpoint = '%s', every = 0)",
      data, nrow(rows), deparse1(calls[[name]]$call), test_seed(), file))
    expect_same(muffled(resume(file)), quiet_fit(model, rows, calls[[name]], seed = test_seed()),
                name)
  }
})

test_that("a source in a checkpoint is opened again, or must be given again", {
  file <- tempfile()
  on.exit(unlink(file))
  stop_at <- function(source, times) {
    calls <- 0
    hook <- function(state) if ((calls <<- calls + 1) > times) stop("stop")
    expect_error(evidence(line, source, sgais(steps = 2000), seed = test_seed(), checkpoint = file,
                          every = 0,
                          on_chunk = hook), "stop")
  }
  whole <- evidence(line, points, sgais(steps = 2000, order = "given"), seed = test_seed())
  stop_at(in_blocks(points, 700), 1)
  expect_same(resume(file)[c("log_evidence", "draws")], whole[c("log_evidence", "draws")])
  at <- new_session(sprintf("cat(format(resume('%s')$log_evidence, digits = 17))", file))
  expect_identical(at, format(whole$log_evidence, digits = 17))
  unlink(file)
  stop_at(in_blocks(points, 700, rewind = FALSE), 1)
  saved <- read_checkpoint(file)
  if (!saved$stream$ended) refused(resume(file), "`data` must be given again")
  expect_same(resume(file, in_blocks(points, 13, rewind = FALSE))["draws"], whole["draws"])
})

# A file with a right checksum.
write_raw <- function(file, bytes) {
  place <- locked_place(file)
  testthat::expect_null(.Call(ffi_checkpoint_write, place, bytes))
  .Call(ffi_checkpoint_close, place)
}

test_that("damaged files, and files of other programs or versions, are refused in a sentence", {
  file <- tempfile()
  other <- tempfile()
  on.exit(unlink(c(file, other)))
  evidence(line, few, seed = test_seed(), checkpoint = file)
  expect_s3_class(resume(file), "evidence")
  bytes <- readBin(file, "raw", file.size(file))
  with <- function(bytes) {
    writeBin(bytes, other)
    resume(other)
  }
  set.seed(test_seed())
  magic <- length(CHECKPOINT_MAGIC)
  for (n in c(magic, magic + fast_or_slow(1:10, 1:60), sample(length(bytes) - 1, 20),
              length(bytes) - 1:9))
    if (n >= magic) refused(with(bytes[seq_len(n)]), "is damaged or was cut short")
  for (at in c(magic + fast_or_slow(1:10, 1:60),
               sample((magic + 1):length(bytes), fast_or_slow(30, 100)), length(bytes) - 0:9)) {
    flipped <- bytes
    flipped[at] <- xor(flipped[at], as.raw(2^sample(0:7, 1)))
    refused(with(flipped), "is damaged or was cut short")
  }
  refused(with(c(bytes, as.raw(0))), "is damaged")
  refused(with(raw()), "is not a checkpoint")
  refused(with(serialize(1, NULL)), "is not a checkpoint")
  refused(resume(tempfile()), "there is no file")
  for (value in list(1, NULL, NA, c("a", "b"), few))
    refused(resume(value), "`from` must be a checkpoint file or an incomplete fit")
  version <- bytes[seq_len(length(bytes) - 8)]
  version[magic + 4 + 1] <- charToRaw("9")
  unlink(other)
  write_raw(other, version)
  refused(resume(other), "was written by version 9")
  refused(evidence(line, few, seed = 1, checkpoint = other), "was written by version 9")
})

test_that("other data than those of the run are refused", {
  fit <- evidence(line, points, smc(particles = 300), seed = test_seed(), time_limit = 1e-9)
  expect_s3_class(fit, "incomplete_evidence")
  refused(resume(fit, points[6000:1, ]), "`data` must be the data of the run")
  refused(resume(fit, points[-1, ]), "`data` must be the data of the run")
})

test_that("a source whose covariates have changed is refused, in the first pass and the second", {
  many <- rows_for_two_passes()
  changed <- many
  changed$a[1] <- changed$a[1] + 1e-9
  # fails at this block, counted over all passes
  failing <- function(at) {
    rows <- in_blocks(many, 2000)
    open <- rows$open
    rows$open <- function() {
      reader <- open()
      list(read = function() if ((at <<- at - 1) == 0) stop("broken") else reader$read(),
           close = reader$close)
    }
    rows
  }
  run <- function(rows)
    evidence(regression(y ~ ., binomial(), prior_sd = 2.5), rows, seed = 1, keep = 1000)
  whole <- run(in_blocks(many, 2000))
  for (at in c(6, 10)) {
    fit <- tryCatch(run(failing(at)), error = function(e) e$fit)
    expect_identical(fit$state$stream$is_further_pass, at == 10)
    expect_gt(fit$state$stream$at, 0)
    refused(resume(fit, in_blocks(changed, 2000)), "rows that were used already")
    expect_same(resume(fit, in_blocks(many, 2000)), whole)
  }
})

test_that("a checkpoint that cannot be written is a warning, and an older one stays", {
  skip_on_os("windows")
  file <- tempfile()
  on.exit(unlink(file))
  evidence(linear_regression(dist ~ speed,
                             prior_sd = 1), cars, sgais(500), seed = 1, checkpoint = file)
  old <- readBin(file, "raw", file.size(file))
  # no file may be longer than 16 KB, as on a disk that is full
  script <- tempfile(fileext = ".R")
  writeLines(c(sprintf(".libPaths(%s)", deparse1(.libPaths())), "library(logevidence)",
               "model <- linear_regression(dist ~ speed, prior_sd = 1)",
               sprintf("fit <- evidence(model, cars, sgais(500), seed = 1, checkpoint = '%s',
                        every = 0)", file), "cat(class(fit), fit$n)"), script)
  said <- suppressWarnings(system2("bash", c("-c", shQuote(paste(
    "trap '' XFSZ; ulimit -f 16;", shQuote(file.path(R.home("bin"), "Rscript")), shQuote(script)))),
    stdout = TRUE, stderr = TRUE))
  said <- paste(said, collapse = " ")
  expect_match(said, "could not be written")
  expect_length(gregexpr("could not be written", said)[[1]], 1)
  expect_match(said, "evidence 50")
  expect_identical(readBin(file, "raw", file.size(file)), old)
  expect_length(files_beside(file), 1)
})

test_that("a file name that cannot be one is refused before any work", {
  refused(evidence(line, few, checkpoint = file.path(tempfile(), "run")), "directory that exists")
  refused(evidence(line, few, checkpoint = tempdir()), "not of a directory")
  refused(evidence(line, few, checkpoint = 1), "`checkpoint` must be NULL or the name of a file")
  refused(evidence(line, few, checkpoint = tempfile(), every = -1), "`every`")
  refused(evidence(line, few, time_limit = 0), "`time_limit` must be a positive number")
  refused(evidence(line, few, on_chunk = 3), "`on_chunk` must be NULL or a function")
  refused(evidence(line, few, keep_state = 3), "`keep_state` must be TRUE or FALSE")
  refused(evidence(line, few, collect = NA), "`collect` must be TRUE or FALSE")
})

test_that("an interrupt leaves a checkpoint and a fit", {
  skip_on_os("windows")
  skip_on_cran()
  file <- tempfile()
  on.exit(unlink(file))
  long <- sgais(steps = 5000)
  system(sprintf("(sleep 0.3; kill -INT %d) &", Sys.getpid()))
  cnd <- tryCatch({
    evidence(line, points, long, seed = test_seed(), checkpoint = file)
    Sys.sleep(1) # the signal must not hit what comes after
    NULL
  }, interrupt = identity)
  skip_if(is.null(cnd), "the run was over before the interrupt")
  expect_s3_class(cnd$fit, "incomplete_evidence")
  whole <- evidence(line, points, long, seed = test_seed())
  expect_same(resume(cnd$fit), whole)
  expect_same(resume(file), whole)
})

test_that("`on_chunk` sees the state of the run, and its error stops the run", {
  seen <- list()
  fit <- evidence(line, points, sgais(steps = 5000), seed = test_seed(),
                  on_chunk = function(state) seen <<- c(seen, list(state)))
  expect_same(fit, evidence(line, points, sgais(steps = 5000), seed = test_seed()))
  share <- vapply(seen, `[[`, 0, "share")
  expect_true(all(diff(share) >= 0))
  last <- seen[[length(seen)]]
  expect_identical(last$share, 1)
  expect_identical(last$n, 6000L)
  expect_true(is.finite(last$log_evidence))
  expect_error(evidence(line, points, seed = test_seed(), on_chunk = function(state) stop("mine")),
               "^`on_chunk` stopped: mine$")
})

test_that("the progress bar never goes back", {
  drawn <- character()
  bar <- progress_bar(TRUE, 100)
  file <- tempfile()
  connection <- file(file, "w")
  sink(connection, type = "message")
  Sys.sleep(0.6)
  for (done in c(0.1, 0.5, 0.3, 0.7, 0.2, 1.5)) bar$show(done, 50)
  sink(type = "message")
  close(connection)
  text <- readChar(file, 1e4)
  shown <- as.numeric(sub("%", "", regmatches(text, gregexpr("[0-9]+%", text))[[1]]))
  expect_identical(shown, c(10, 50, 50, 70, 70, 100))
})

test_that("replicates are added until the standard error is reached", {
  noisy <- sgais(particles = 20, audit = FALSE)
  said <- testthat::capture_messages(
    fit <- quiet_fit(line, few, noisy, seed = test_seed(), target_se = 0.05))
  expect_match(said, "runs .*about", all = FALSE)
  expect_lt(fit$se, 0.05)
  expect_identical(fit$log_evidence, quiet_fit(line, few, noisy, seed = test_seed(),
                                               replicates = nrow(fit$replicates))$log_evidence)
  streamed <- suppressMessages(quiet_fit(line, in_blocks(few, 7), noisy, seed = test_seed(),
                                         target_se = 0.05))
  expect_identical(streamed$log_evidence,
                   quiet_fit(line, in_blocks(few, 60), noisy, seed = test_seed(),
                             replicates = nrow(streamed$replicates))$log_evidence)
  far <- suppressMessages(quiet_fit(line, few, noisy, seed = test_seed(), target_se = 1e-5))
  expect_match(far$warnings, "more than 1,000", all = FALSE)
  refused(evidence(line, in_blocks(few, 7, rewind = FALSE), noisy, target_se = 0.1), "read again")
  refused(evidence(line, few, noisy, target_se = 0), "`target_se` must be a positive number")
  refused(evidence(line, in_blocks(few, 7), noisy, target_se = 0.1, checkpoint = tempfile()),
          "cannot be combined")
  limited <- suppressMessages(quiet_fit(line, in_blocks(few, 7), noisy, seed = test_seed(),
                                        target_se = 1e-3, time_limit = 0.3))
  if (inherits(limited, "evidence"))
    expect_match(limited$warnings, "target|standard error", all = FALSE)
  expect_no_message(evidence(line, few, exact(), target_se = 0.1))
})

test_that("runs for a target are jobs of the plan: they are saved, limited and shared, too", {
  noisy <- sgais(particles = 20, audit = FALSE)
  fit <- function(...) suppressMessages(quiet_fit(line, few, noisy, seed = test_seed(),
                                                  target_se = 0.05, ...))
  whole <- fit()
  same <- function(one)
    for (part in c("log_evidence", "se", "draws", "warnings", "replicates"))
      expect_identical(one[[part]], whole[[part]], info = part)
  file <- tempfile()
  on.exit(unlink(file))
  # a limit after the first runs leaves their fit, which says so; the file goes on to the target
  calls <- 0
  limited <- fit(checkpoint = file, time_limit = 1e-9)
  for (k in 1:200) {
    unfinished <- inherits(limited, "incomplete_evidence") ||
      any(grepl("time_limit", limited$warnings))
    if (!unfinished) break
    calls <- calls + 1
    limited <- suppressMessages(muffled(resume(file, time_limit = 1e-9)))
  }
  expect_gt(calls, 0)
  same(limited)
  expect_identical(whole$log_evidence, fit(checkpoint = tempfile())$log_evidence)
  # models of a list reach it each, and with a source each in passes of its own
  several <- list(a = line, b = gaussian_mean(~ y))
  for (data in list(few, in_blocks(few, 7))) {
    race <- suppressMessages(quiet_fit(several, data, noisy, seed = test_seed(), target_se = 0.05))
    alone <- suppressMessages(quiet_fit(line, data, noisy, seed = test_seed(), target_se = 0.05))
    expect_identical(race$log_evidence[race$model == "a"], alone$log_evidence)
    expect_true(all(race$se < 0.05))
  }
})

test_that("collect_rows() makes a source usable for methods that need all rows", {
  one <- evidence(line, in_blocks(few, 7), nested(50), seed = test_seed(), collect = TRUE)
  expect_same(one, evidence(line, few, nested(50), seed = test_seed()))
})

test_that("a data frame can be used as a source would be", {
  one <- evidence(line, points, seed = test_seed(), keep = 1000)
  expect_same(one, evidence(line, in_blocks(points, 600), seed = test_seed(), keep = 1000))
})

test_that("a stop by the time limit writes the checkpoint, and a new run does not replace it", {
  file <- tempfile()
  long <- points[rep(1:6000, 5), ]
  source <- function() {
    rows <- in_blocks(long, 1000)
    reader <- rows$open
    rows$open <- function() {
      one <- reader()
      list(read = function() {
        Sys.sleep(0.02)
        one$read()
      }, close = one$close)
    }
    rows
  }
  part <- evidence(line, source(), seed = test_seed(), checkpoint = file, time_limit = 0.3,
                   every = 1e6)
  expect_s3_class(part, "incomplete_evidence")
  saved <- logevidence:::read_checkpoint(file)
  expect_identical(saved$stream$n, part$rows_read)
  expect_gt(saved$stream$n, 0)
  refused(evidence(line, source(), seed = test_seed(), checkpoint = file),
          "of a run that has not ended")
  fit <- resume(file, data = source())
  expect_same(evidence(line, in_blocks(long, 1000), seed = test_seed()), fit)
  # the run has ended now
  expect_same(evidence(line, in_blocks(long, 1000), seed = test_seed(), checkpoint = file), fit)
})

# Whose file it is ---------------------------------------------------------------------------------

test_that("a checkpoint replaces only the file of the same run that has ended", {
  file <- tempfile()
  on.exit(unlink(file))
  run <- function(model = line, data = few, method = laplace(), seed = 1, ...)
    evidence(model, data, method, seed = seed, checkpoint = file, ...)
  fit <- run()
  expect_same(run(), fit)
  old <- bytes_in(file)
  kept <- function(code, sentence) {
    refused(code, sentence)
    expect_identical(bytes_in(file), old)
    expect_length(files_beside(file), 1)
  }
  kept(run(seed = 2), "the file of another run (with another seed)")
  changed <- few
  changed$x[3] <- changed$x[3] + 1e-9
  kept(run(data = changed), "the file of another run (with other data)")
  kept(run(data = in_blocks(few, 7), method = sgais()), "the file of another run")
  kept(run(replicates = 2), "the file of another run (with another number of runs)")
  kept(run(linear_regression(y ~ x + z, sigma = 1, prior_sd = 3)),
       "the file of another run (with another model, prior or method)")
  kept(run(method = laplace(importance = 200)), "(with another model, prior or method)")
  other <- evidence(line, few, smc(particles = 300), seed = 1, time_limit = 1e-9)
  kept(resume(other, checkpoint = file), "(with another model, prior or method)")
  # the identity does not depend on the session
  again <- new_session(sprintf(
    "d <- readRDS('%s'); cat(format(evidence(linear_regression(y ~ x + z, sigma = 1, prior_sd = 2),
     d, laplace(), seed = 1, checkpoint = '%s')$log_evidence, digits = 17))", saved_few(), file))
  expect_identical(again, format(fit$log_evidence, digits = 17))
})

test_that("a run that is updated still writes its checkpoint", {
  file <- tempfile()
  on.exit(unlink(file))
  fit <- evidence(line, in_blocks(few[1:30, ], 7), seed = 1, checkpoint = file)
  more <- update(fit, few[31:60, ], checkpoint = file)
  expect_same(resume(file), more)
  stranger <- evidence(line, in_blocks(few[2:31, ], 7), seed = 1)
  refused(update(stranger, few[31:60, ], checkpoint = file), "(with other data)")
})

test_that("files of the user are never replaced", {
  file <- tempfile(fileext = ".csv")
  on.exit(unlink(file))
  for (write in list(function() utils::write.csv(few, file), function() saveRDS(few, file),
                     function() file.create(file), function() writeBin(CHECKPOINT_MAGIC, file))) {
    write()
    old <- bytes_in(file)
    refused(evidence(line, few, seed = 1, checkpoint = file), "`checkpoint` must be the name of a")
    expect_identical(bytes_in(file), old)
    expect_length(files_beside(file), 1)
  }
  # of a run that has not ended, and cannot be read any more
  unlink(file)
  evidence(line, points, seed = 1, checkpoint = file, time_limit = 1e-9)
  bytes <- bytes_in(file)
  bytes[500] <- xor(bytes[500], as.raw(1))
  writeBin(bytes, file)
  refused(evidence(line, points, seed = 1, checkpoint = file), "damaged or was cut short")
  expect_identical(bytes_in(file), bytes)
  write_raw(other <- tempfile(), c(checkpoint_head(), serialize(list(1), NULL)))
  refused(resume(other), "has no run")
})

test_that("a file of the user beside the checkpoint stays, and the checkpoint is private", {
  skip_on_os("windows")
  file <- tempfile()
  new <- paste0(file, ".new")
  on.exit(unlink(c(file, new)))
  writeLines("mine", new)
  before <- Sys.umask("0")
  on.exit(Sys.umask(before), add = TRUE)
  evidence(line, few, laplace(), seed = 1, checkpoint = file)
  expect_identical(readLines(new), "mine")
  expect_identical(format(file.mode(file)), "600")
  expect_length(files_beside(file), 2)
})

test_that("a file that another program writes during a run is not replaced", {
  file <- tempfile()
  on.exit(unlink(file))
  spoil <- function(write) {
    unlink(file)
    spoilt <- FALSE
    expect_warning(fit <- evidence(line, points, sgais(steps = 2000), seed = 1, checkpoint = file,
                                   every = 1e6, on_chunk = function(state) {
                                     if (!spoilt) write()
                                     spoilt <<- TRUE
                                   }),
                   "another program has made or changed this file", class = "logevidence_warning")
    expect_s3_class(fit, "evidence")
  }
  spoil(function() {
    unlink(file)
    writeLines("a,b", file)
  })
  expect_identical(readLines(file), "a,b")
  spoil(function() writeLines("a,c", file))
  expect_identical(readLines(file), "a,c")
})

test_that("two runs do not write to the same file", {
  skip_on_os("windows")
  file <- tempfile()
  on.exit(unlink(file))
  # within a run, and in another process, which ends like any other
  said <- NULL
  fit <- evidence(line, points, sgais(steps = 2000), seed = 1, checkpoint = file, every = 0,
                  on_chunk = function(state) {
    if (length(said)) return()
    said <<- c(tryCatch(resume(file), error = conditionMessage),
               new_session(sprintf("cat(tryCatch(resume('%s'), error = conditionMessage))", file)))
  })
  expect_match(said, "`checkpoint` must be a file that no other run writes to now", fixed = TRUE)
  expect_same(resume(file), fit)
  # both have seen that there is no file
  one <- locked_place(file2 <- tempfile())
  two <- locked_place(file2)
  expect_null(.Call(ffi_checkpoint_write, one, raw(5)))
  expect_identical(.Call(ffi_checkpoint_write, two, raw(6))[2], "conflict")
  expect_identical(file.size(file2), 13)
  for (place in list(one, two)) .Call(ffi_checkpoint_close, place)
})

test_that("a checkpoint that is no regular file is refused before it is opened", {
  skip_on_os("windows")
  fifo <- tempfile()
  skip_if(system2("mkfifo", fifo) != 0, "no FIFOs")
  link <- tempfile()
  file.symlink(fifo, link)
  nowhere <- tempfile()
  file.symlink(tempfile(), nowhere)
  on.exit(unlink(c(fifo, link, nowhere)))
  for (name in c(fifo, link)) {
    refused(evidence(line, few, seed = 1, checkpoint = name), "not of a FIFO")
    refused(resume(name), "not of a FIFO")
  }
  refused(evidence(line, few, seed = 1, checkpoint = nowhere), "a link to a file that does not")
  expect_identical(path_kind(fifo, "file"), "FIFO")
  expect_identical(path_kind(link, "file"), "link")
  expect_identical(path_kind(tempdir(), "file"), "directory")
  # this only looks at it
  expect_identical(path_kind("/dev/null", "file"), "device")
  expect_identical(path_kind(tempfile(), "file"), "none")
})

test_that("a link stays a link, and the file to which it points is replaced", {
  skip_on_os("windows")
  folder <- tempfile()
  dir.create(folder)
  link <- tempfile()
  file <- file.path(folder, "run")
  on.exit(unlink(c(folder, link), recursive = TRUE))
  evidence(line, few, laplace(), seed = 1, checkpoint = file)
  file.symlink(file, link)
  fit <- evidence(line, few, laplace(), seed = 1, checkpoint = link)
  expect_identical(Sys.readlink(link), file)
  expect_same(resume(link), fit)
  expect_identical(list.files(folder), "run")
})

test_that("a file that cannot be read is an error and is not replaced", {
  skip_on_os("windows")
  skip_if(Sys.which("setpriv") == "" && Sys.info()[["effective_user"]] == "root",
          "root can read every file, and there is no setpriv")
  # other users cannot enter R's temporary folder
  folder <- tempfile("checkpoint", "/tmp")
  dir.create(folder)
  on.exit(unlink(folder, recursive = TRUE))
  Sys.chmod(folder, "0777", use_umask = FALSE)
  file <- file.path(folder, "run")
  evidence(linear_regression(dist ~ speed,
                             prior_sd = 1), cars, laplace(), seed = 1, checkpoint = file)
  old <- bytes_in(file)
  Sys.chmod(file, "0000")
  script <- file.path(folder, "script.R")
  writeLines(c(sprintf(".libPaths(%s)", deparse1(.libPaths())), "library(logevidence)", sprintf(
    "cat(tryCatch({evidence(linear_regression(dist ~ speed), cars, laplace(), seed = 1,
     checkpoint = '%s'); 'no error'}, error = conditionMessage))", file)), script)
  command <- paste("TMPDIR=/tmp", shQuote(file.path(R.home("bin"), "Rscript")), shQuote(script))
  if (Sys.info()[["effective_user"]] == "root")
    command <- paste("setpriv --reuid=65534 --regid=65534 --clear-groups env", command)
  said <- suppressWarnings(system(paste(command, "2>&1"), intern = TRUE))
  skip_if(any(grepl("there is no package|cannot open file '.*script", said)),
          "another user cannot read the library")
  expect_match(paste(said, collapse = " "), "could not be read (Permission denied)", fixed = TRUE)
  Sys.chmod(file, "0600")
  expect_identical(bytes_in(file), old)
})

test_that("a time limit during the last rows leaves a fit", {
  long <- points[rep(1:6000, 4), ]
  slow <- in_blocks(long, 1000)
  reader <- slow$open
  slow$open <- function() {
    one <- reader()
    list(read = function() {
      block <- one$read()
      if (is.null(block)) Sys.sleep(1)
      block
    }, close = one$close)
  }
  fit <- evidence(line, slow, seed = test_seed(), time_limit = 0.9, keep_state = TRUE)
  expect_s3_class(fit, "evidence")
  expect_same(evidence(line, in_blocks(long, 1000), seed = test_seed()), fit)
})

test_that("verbs that need a whole fit refuse an incomplete one", {
  part <- evidence(line, points, smc("data"), seed = test_seed(), time_limit = 1e-9)
  for (verb in list(plot, summary, predict, coef, vcov, confint, fitted, residuals, deviance, sigma,
                    nobs, formula, logml))
    refused(verb(part), "The fit is incomplete: continue it by resume()")
  refused(compare_models(part, part), "continue the incomplete one by resume()")
})

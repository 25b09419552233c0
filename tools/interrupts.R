# SIGINT at random moments of calls: all engines of C, sources of rows, checkpoints and clusters.
# After each: the session gives the bits that it should, no connection or file is left, memory is
# given back, and the call has ended by an interrupt, or with its result. What it has saved goes on
# to the result of the whole run.
#
#   make interrupts                       200 moments, in turn over all calls
#   make interrupts SEED=7 CASES=1000
#   make interrupts SEED=7 KIND=csv       some calls only
#
# Each call has a process of its own, which is ended if it hangs. Moments are drawn from the seed;
# what is under way at a moment depends on the machine.

library(logevidence)

asked <- function(name, default) {
  value <- Sys.getenv(name)
  if (nzchar(value)) value else default
}
HANG <- 240 # seconds of all moments of a call
LEAK <- 40 # megabytes
LATE <- 1 # seconds from the signal to the end of a call

# Calls --------------------------------------------------------------------------------------------

seeded <- function() set.seed(5, "Mersenne-Twister", "Inversion", "Rejection")
rows_of <- function(n) {
  seeded()
  x <- stats::rnorm(n)
  data.frame(x, y = 1 + x + stats::rnorm(n))
}
line <- linear_regression(y ~ x, sigma = 1, prior_sd = 2)
unknown <- linear_regression(y ~ x)
rows <- rows_of(20000)
few <- rows_of(300)
fit <- function(...) suppressWarnings(evidence(..., seed = 3, progress = FALSE))
in_blocks <- function(data, size) {
  at <- 0
  rows_function(function(reset) {
    if (reset) at <<- 0
    else if (at < nrow(data)) {
      at <<- at + size
      data[seq(at - size + 1, min(at, nrow(data))), ]
    }
  })
}
own_folder <- tempfile("interrupts", "/tmp")
own_file <- function(name) file.path(own_folder, name)
csv_file <- function() {
  file <- own_file("rows.csv")
  if (!file.exists(file)) utils::write.csv(rows, file, row.names = FALSE)
  file
}
state <- new.env()
once <- function(name, make) {
  if (is.null(state[[name]])) state[[name]] <- make()
  state[[name]]
}
database <- function() once("database", function() {
  con <- DBI::dbConnect(RSQLite::SQLite(), own_file("rows.sqlite"))
  if (!DBI::dbExistsTable(con, "t")) DBI::dbWriteTable(con, "t", rows)
  con
})
workers <- function() once("workers", function() parallel::makePSOCKcluster(2))
shard_of <- function(shard) {
  x <- shard + (1:5000) %% 17 / 3
  data.frame(x, y = 1 + x / 2 + (1:5000) %% 13 / 5)
}
environment(shard_of) <- globalenv()
in_shards <- function() rows_cluster(workers(), shard_of, 6, keep = 0)
stream <- function() nanoarrow::basic_array_stream(lapply(split(rows, rep(1:20, each = 1000)),
                                                          nanoarrow::as_nanoarrow_array))
mixture <- gaussian_mixture(~ x + y, components = 2, location = 0, rate = 1)
user <- custom_model("m", function(theta, data) stats::dnorm(data$y, theta, 1, log = TRUE),
                     function(theta) stats::dnorm(theta, log = TRUE),
                     function(n) stats::rnorm(n))

grouped <- local({
  seeded()
  rows <- data.frame(g = gl(200, 20), h = gl(40, 1, 4000), x = stats::rnorm(4000))
  rows$mean <- 0.2 + 0.1 * rows$x + stats::rnorm(200, 0, 0.5)[rows$g]
  rows$y <- stats::rpois(4000, exp(rows$mean))
  rows$z <- rows$mean + stats::rnorm(4000)
  rows
})
few_groups <- grouped[1:300, ]
slopes <- regression(y ~ x + (x | g), family = poisson())
long_lines <- function() {
  file <- own_file("lines.csv")
  if (!file.exists(file))
    cat("x,y\n", rep(paste0("1,", strrep("3", 2e7), "\n"), 2), sep = "", file = file)
  file
}

CALLS <- list(
  sgais = function() fit(unknown, rows, sgais(particles = 4000)),
  sgais_paper = function() fit(unknown, rows, sgais(particles = 1000, preset = "paper")),
  smc = function() fit(unknown, rows, smc(particles = 800)),
  smc_data = function() fit(unknown, few, smc("data", 4000)),
  ais = function() fit(unknown, few, ais(2000, linear(300))),
  nested = function() fit(unknown, few, nested(1500)),
  online = function() fit(unknown, few[1:60, ], online_nested(100, steps = 5, chunk = 2)),
  hybrid = function() fit(unknown, few, hybrid(4, 1500)),
  bridge = function() fit(unknown, few, bridge(400, 2000)),
  laplace = function() fit(unknown, rows, laplace(importance = 40000)),
  exact = function() {
    seeded()
    fit(linear_regression(sigma = 1, prior_sd = 1),
        list(x = matrix(stats::rnorm(60 * 1800), 60), y = stats::rnorm(60)), exact())
  },
  power = function() fit(unknown, few, power_posterior(run = smc(particles = 500))),
  harmonic = function() fit(unknown, few, harmonic_mean()),
  variational = function() fit(mixture, few, variational(200, draws = 2000)),
  chib = function() fit(clustering(~ x + y, components = 2), few, chib(draws = 20000)),
  latent = function() fit(clustering(~ x + y, components = 2), few, smc("data", 60)),
  partitions = function() fit(mixture, few, partitions(chains = 4, work = 2e6)),
  bdmc = function() suppressWarnings(bdmc(unknown, data = few, method = smc(particles = 300),
                                          chains = 4, budgets = c(0.5, 1), seed = 3)),
  custom = function() fit(user, few, smc(particles = 100, kernel = rwm())),
  groups = function() fit(slopes, few_groups, smc(particles = 30)),
  groups_threads = function() fit(slopes, few_groups, smc(particles = 30), threads = 2),
  groups_default = function() fit(slopes, grouped),
  groups_runs = function() fit(slopes, few_groups, smc(particles = 30), threads = 2,
                               replicates = 2),
  groups_setup = function() fit(regression(z ~ x + (1 | g)), grouped[rep(1:4000, 100), ],
                                method_bic()),
  crossed = function() fit(regression(z ~ x + (1 | g) + (1 | h)), grouped),
  races = function() fit(list(a = regression(y ~ x + (1 | g), family = poisson()),
                              b = regression(y ~ 1 + (1 | g), family = poisson())), grouped),
  changes = function() suppressWarnings(
    change_points(regression(z ~ x), grouped, most = 3, seed = 1, draws = 100)),
  alarm = function() change_alarm(gaussian_mean(~ z, prior_sd = 3), grouped, duration = 500),
  fifo = function() {
    path <- tempfile("fifo")
    system2("mkfifo", path)
    on.exit(unlink(path))
    system(sprintf("timeout 5 sh -c 'cat %s > %s' 2> %s &", csv_file(), path, nullfile()))
    fit(line, rows_csv(path), sgais(particles = 200))
  },
  lines = function() tryCatch(fit(line, rows_csv(long_lines())),
                              logevidence_row_error = function(e) list(log_evidence = 0)),
  models = function() fit(list(a = line, b = unknown), rows, sgais(particles = 200)),
  csv = function() fit(unknown, rows_csv(csv_file()), sgais(particles = 200)),
  dbi = function() fit(unknown, rows_dbi(database(), "SELECT x, y FROM t"), sgais(particles = 200)),
  push = function() fit(line, rows_dbi(database(), "SELECT x, y FROM t", push = TRUE)),
  rows_function = function() fit(unknown, in_blocks(rows, 1000), sgais(particles = 200)),
  arrow = function() fit(unknown, rows_arrow(stream), sgais(particles = 200)),
  keep = function() fit(unknown, in_blocks(rows, 1000), sgais(particles = 100), keep = 2000),
  checkpoint = function() fit(unknown, in_blocks(rows, 1000), sgais(particles = 200),
                              checkpoint = own_file("saved.rds")),
  checkpoint_memory = function() fit(unknown, few, nested(1500),
                                     checkpoint = own_file("saved2.rds")),
  cluster = function() fit(unknown, few, nested(400), replicates = 6, cl = workers()),
  shards = function() fit(unknown, in_shards())
)
# The data that resume() needs again.
GIVEN_AGAIN <- list(shards = function() in_shards(), fifo = function() rows_csv(csv_file()),
                    dbi = function() rows_dbi(database(), "SELECT x, y FROM t"))

# What is left -------------------------------------------------------------------------------------

small <- function() fit(line, few, smc(particles = 100))$log_evidence
megabytes <- function() {
  gc(FALSE)
  as.numeric(strsplit(readLines("/proc/self/statm"), " ")[[1]][2]) * 4096 / 2^20
}
things <- function() list(connections = nrow(showConnections()),
                          files = c(list.files(tempdir(), all.files = TRUE),
                                    list.files(own_folder, all.files = TRUE)))
number_of <- function(value)
  if (is.null(value$log_evidence)) value$bounds$log_evidence else value$log_evidence

#' One interrupt, after so many seconds
#' @return A list: `outcome`, and in words what is `wrong`.
interrupted <- function(call, seconds, right, bits, data = NULL) {
  unlink(list.files(own_folder, "^saved", full.names = TRUE))
  before <- things()
  system2("sh", c("-c", shQuote(sprintf("sleep %.4f; kill -INT %d", seconds, Sys.getpid()))),
          wait = FALSE)
  began <- proc.time()[["elapsed"]]
  value <- tryCatch({
    value <- tryCatch(call(), error = function(e) e)
    # the signal must not hit what comes after
    Sys.sleep(max(0, seconds + 0.5 - (proc.time()[["elapsed"]] - began)))
    value
  }, interrupt = function(i) i)
  took <- proc.time()[["elapsed"]] - began
  outcome <- if (inherits(value, "interrupt")) "interrupt"
  else if (inherits(value, "error")) "error" else "done"
  wrong <- character()
  note <- function(...) wrong <<- c(wrong, paste0(...))
  if (outcome == "error") note("an error: ", conditionMessage(value))
  if (outcome == "done" && !identical(number_of(value), right)) note("another number")
  if (took > seconds + (if (outcome == "interrupt") LATE else 5))
    note("it took ", round(took - seconds, 1), " s to end")
  # what was saved goes on
  going_on <- function(what, from) {
    again <- tryCatch(suppressWarnings(resume(from, data, progress = FALSE)), error = function(e) e)
    if (inherits(again, "error")) note(what, " does not go on: ", conditionMessage(again))
    else if (!identical(number_of(again), right)) note(what, " goes on to another number")
  }
  if (outcome == "interrupt" && !is.null(value$fit) && !is.null(value$fit$state))
    going_on("the fit of the interrupt", value$fit)
  for (file in list.files(own_folder, "^saved", full.names = TRUE)) {
    if (!grepl("saved2?[.]rds$", file)) note("the file ", basename(file))
    else if (outcome == "interrupt") going_on("the checkpoint", file)
  }
  if (!identical(small(), bits)) note("another number afterwards")
  after <- things()
  if (after$connections > before$connections) note("open connections")
  new <- setdiff(after$files, c(before$files, "saved.rds", "saved2.rds"))
  if (length(new)) note("files: ", toString(new))
  list(outcome = outcome, wrong = wrong)
}

#' In a process of its own: all moments of a call
run_call <- function(name, seed, n) {
  dir.create(own_folder)
  on.exit(unlink(own_folder, recursive = TRUE))
  call <- CALLS[[name]]
  again <- GIVEN_AGAIN[[name]]
  bits <- small()
  right <- number_of(call())
  unlink(list.files(own_folder, "^saved", full.names = TRUE))
  seconds <- system.time(call())[["elapsed"]]
  set.seed((seed * 7919 + match(name, names(CALLS))) %% 2^31, "Mersenne-Twister", "Inversion",
           "Rejection")
  moments <- stats::runif(n, 0, seconds)
  cat(sprintf("%-18s %.2f s:", name, seconds))
  begun <- NULL
  outcomes <- character()
  for (i in seq_len(n)) {
    got <- interrupted(call, moments[i], right, bits, if (!is.null(again)) again())
    outcomes <- c(outcomes, got$outcome)
    for (text in got$wrong) cat(sprintf("\n  FOUND after %.4f s: %s", moments[i], text))
    if (i == min(2, n)) begun <- megabytes()
  }
  grown <- megabytes() - begun
  if (grown > LEAK) cat(sprintf("\n  FOUND: %.0f megabytes more", grown))
  counts <- table(outcomes)
  cat(" ", paste(counts, names(counts), collapse = ", "), "; ", sprintf("%+.0f MB", grown), "\n",
      sep = "")
  # a worker whose message was cut off has no connection any more
  for (i in seq_along(state$workers)) try(parallel::stopCluster(state$workers[i]), silent = TRUE)
  if (!is.null(state$database)) DBI::dbDisconnect(state$database)
}

seed <- as.numeric(asked("SEED", "1"))
one <- asked("CALL_OF_CHILD", "")
if (nzchar(one)) {
  run_call(one, seed, as.numeric(asked("CASES", "7")))
  quit(status = 0)
}

kinds <- strsplit(asked("KIND", paste(names(CALLS), collapse = ",")), ",")[[1]]
lacks <- c(dbi = "RSQLite", push = "RSQLite", arrow = "nanoarrow")
for (name in intersect(kinds, names(lacks))) if (!nzchar(system.file(package = lacks[[name]]))) {
  cat(name, "is left out: no package", lacks[[name]], "\n")
  kinds <- setdiff(kinds, name)
}
each <- ceiling(as.numeric(asked("CASES", "200")) / length(kinds))
found <- 0
for (name in kinds) {
  said <- suppressWarnings(system2(
    file.path(R.home("bin"), "Rscript"), "tools/interrupts.R", stdout = TRUE, stderr = TRUE,
    env = c(paste0("CALL_OF_CHILD=", name), paste0("CASES=", each), paste0("SEED=", seed),
            "OMP_NUM_THREADS=1"), timeout = HANG))
  cat(said, sep = "\n")
  ended <- is.null(attr(said, "status")) && any(grepl(" MB$", said))
  if (!ended) cat("  FOUND:", name, "has not come to its end\n")
  found <- found + sum(grepl("FOUND", said)) + !ended
}
cat(found, "findings in", each * length(kinds), "interrupts\n")
quit(status = as.integer(found > 0))

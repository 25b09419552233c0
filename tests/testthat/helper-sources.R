# Sources of rows for tests: functions, text files, and a PostgreSQL server of our own.

# A source of the rows of `data` in blocks of `size`.
in_blocks <- function(data, size, rewind = TRUE) {
  at <- 0
  rows_function(function(reset) {
    if (reset) at <<- 0
    else if (at < NROW(data)) {
      rows <- (at + 1):min(at + size, nrow(data))
      at <<- at + size
      data[rows, , drop = FALSE]
    }
  }, rewind)
}

# Rows of which a logit regression on all columns, with `keep = 1000`, makes a second pass.
rows_for_two_passes <- function() {
  set.seed(test_seed(8))
  data <- as.data.frame(matrix(stats::rnorm(48000), 12000, dimnames = list(NULL, letters[1:4])))
  data$y <- stats::rbinom(12000, 1, stats::plogis(as.matrix(data) %*% 4:1))
  data
}

# These blocks one after another; a function among them is called in its turn.
these_blocks <- function(...) {
  blocks <- list(...)
  at <- 0
  rows_function(function(reset) {
    if (reset) at <<- 0
    else if (at < length(blocks)) {
      block <- blocks[[at <<- at + 1]]
      if (is.function(block)) block() else block
    }
  })
}

# 17 significant digits give back the same numbers.
write_digits <- function(data, file = tempfile(fileext = ".csv")) {
  exact <- data
  for (name in names(data)) if (is.double(data[[name]]))
    exact[[name]] <- sprintf("%.17g", data[[name]])
  numbers <- which(vapply(data, is.double, NA))
  quoted <- setdiff(which(vapply(exact, Negate(is.numeric), NA)), numbers)
  utils::write.table(exact, file, sep = ",", row.names = FALSE, quote = quoted)
  file
}

collect_rows <- logevidence:::collect_rows

# PostgreSQL --------------------------------------------------------------------------------------

# The server refuses to run as root, so root starts it as the user of Debian's package.
postgres_command <- function(bin, program, ...) {
  arguments <- c(...)
  command <- file.path(bin, program)
  if (Sys.info()[["effective_user"]] == "root") {
    arguments <- c("-u", "postgres", "--", command, arguments)
    command <- "runuser"
  }
  said <- tempfile()
  # what `make sanitize` loads into R would block the server
  status <- suppressWarnings(system2(command, arguments, stdout = said, stderr = said,
                                     env = "LD_PRELOAD="))
  if (status != 0) stop(program, ": ", paste(utils::tail(readLines(said), 3), collapse = " "))
}

postgres_programs <- function() {
  bin <- c(dirname(Sys.which("initdb")), Sys.glob("/usr/lib/postgresql/*/bin"))
  Filter(function(folder) file.exists(file.path(folder, "initdb")), bin)
}

#' A server that is reached only by a socket in a temporary folder
#'
#' @return `connect()` and `stop()`, or a sentence that says why there is no server.
start_postgres <- function() {
  for (package in c("DBI", "RPostgreSQL"))
    if (!requireNamespace(package, quietly = TRUE)) return(paste("No package", package))
  bin <- postgres_programs()
  if (length(bin) == 0) return("No PostgreSQL")
  # not in R's temporary folder, which other users cannot enter
  folder <- tempfile("pg", "/tmp")
  dir.create(folder, mode = "0777")
  Sys.chmod(folder, "0777", use_umask = FALSE)
  data <- file.path(folder, "data")
  stop <- function() {
    try(postgres_command(bin[1], "pg_ctl", "-D", data, "-m", "immediate", "-w", "stop"), TRUE)
    unlink(folder, recursive = TRUE)
  }
  tryCatch({
    postgres_command(bin[1], "initdb", "-D", data, "-U", "tester", "-A", "trust", "--no-sync")
    options <- shQuote(paste0("-k ", folder, " -c listen_addresses= -c fsync=off"))
    postgres_command(bin[1], "pg_ctl", "-D", data, "-l", file.path(folder, "log"), "-w", "-o",
                     options, "start")
  }, error = function(e) {
    stop()
    folder <<- paste("PostgreSQL does not start:", conditionMessage(e))
  })
  if (!dir.exists(folder)) return(folder)
  connect <- function()
    RPostgreSQL::dbConnect(RPostgreSQL::PostgreSQL(), host = folder, dbname = "postgres",
                           user = "tester")
  list(connect = connect, stop = stop)
}

# As if the user had pressed the key for it.
an_interrupt <- function() {
  signalCondition(structure(list(message = "", call = NULL), class = c("interrupt", "condition")))
  stop("An interrupt that nothing has caught.")
}

#' Use a connection to a PostgreSQL server that is started for it, or skip the test
with_postgres <- function(use) {
  server <- start_postgres()
  if (is.character(server)) testthat::skip(server)
  on.exit(server$stop())
  con <- server$connect()
  on.exit(DBI::dbDisconnect(con), add = TRUE, after = FALSE)
  use(con)
}

# Stopped when the test has ended.
local_cluster <- function(n = 2, env = parent.frame()) {
  cl <- tryCatch(parallel::makePSOCKcluster(n), error = function(e) skip(conditionMessage(e)))
  # one by one, because some may have ended
  end <- function() for (k in seq_along(cl))
    suppressWarnings(try(parallel::stopCluster(cl[k]), silent = TRUE))
  do.call(on.exit, list(bquote(.(end)()), add = TRUE), envir = env)
  cl
}

# The first rows of a source are then those of its first blocks.
with_first_rows <- function(n, code) {
  namespace <- environment(evidence)
  old <- HEAD_ROWS
  unlockBinding("HEAD_ROWS", namespace)
  on.exit({
    assign("HEAD_ROWS", old, namespace)
    lockBinding("HEAD_ROWS", namespace)
  })
  assign("HEAD_ROWS", n, namespace)
  code
}

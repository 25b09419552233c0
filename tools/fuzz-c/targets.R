# What the fuzzer of C code (fuzz.c) calls with its bytes. This file's value is the function of
# TARGET; it returns TRUE if what C has done is wrong: an error that is not a sentence. The inputs
# to begin with are written to the folder WRITE_CORPUS.

library(logevidence)
own <- asNamespace("logevidence")
for (file in list.files("tools/fuzz", "[.]R$", full.names = TRUE)) source(file)

# Inputs to begin with, and functions of bytes that call C.
FUZZERS <- list()

text_format <- function(bytes) {
  pick_by <- function(choices, k) choices[[as.integer(bytes[k]) %% length(choices) + 1]]
  list(sep = pick_by(c(",", ";", "\t", " "), 1), quote = pick_by(c("\"", "'", ""), 2),
       dec = pick_by(c(".", ","), 3), types = as.integer(bytes[4:6]) %% 4L)
}

FUZZERS$csv <- list(
  seeds = function() c(lapply(1:20, function(i) {
    set.seed(i)
    c(as.raw(sample(0:255, 6)), charToRaw(csv_text()))
  }), lapply(1:20, function(i) {
    set.seed(i)
    c(raw(6), charToRaw(paste(sample(CSV_PIECES, 40, TRUE), collapse = "")))
  })),
  call = function(bytes) {
    if (length(bytes) < 6) return(NULL)
    format <- text_format(bytes)
    spec <- c(format$sep, format$quote, format$dec)
    text <- utils::tail(bytes, -6)
    lines <- .Call(own$ffi_csv_lines, text, TRUE)$lines
    first <- .Call(own$ffi_csv_fields, lines, spec)
    if (is.null(first)) return(NULL)
    k <- length(first$fields)
    .Call(own$ffi_csv_kinds, lines, k, spec, c("NA", ""))
    .Call(own$ffi_csv, lines, rep_len(format$types, k), spec, c("NA", ""))
  })

# Problems with their states, small ones: many of them run in a second.
problems <- function() {
  rows <- standard_objects()$rows
  line <- linear_regression(y ~ x, sigma = 1, prior_sd = 1)
  of <- function(model, method) {
    encoded <- own$encode(model, rows)
    problem <- own$new_problem(model, encoded, method, own$seed_words(1))
    run <- .Call(own$ffi_run_new, problem)
    on.exit(.Call(own$ffi_run_free, run))
    .Call(own$ffi_run_feed, run, encoded$rows, "last")
    advance(run)
    list(problem = problem, rows = encoded$rows, state = .Call(own$ffi_run_save, run))
  }
  mixture <- gaussian_mixture(~ x + y, components = 2)
  clusters <- clustering(~ x + y, components = 2)
  Filter(function(job) length(job$state) < 1e5, list(
    of(line, sgais(particles = 10, steps = 5)), of(line, nested(20)),
    of(line, method_smc(particles = 50)),
    of(line, ais(20, linear(20))), of(line, bridge(20, 100)), of(line, hybrid(4, 40)),
    of(line, online_nested(10, steps = 2, chunk = 2)), of(line, method_laplace(importance = 50)),
    of(line, sgais(particles = 10, preset = "paper")),
    of(line, sgais(particles = 10, audit = TRUE)),
    of(regression(y ~ x, student()), sgais(particles = 10, steps = 3)),
    of(density(~ dnorm(y, m, 1, log = TRUE), m = ~ 1), method_smc(particles = 20)),
    of(mixture, sgais(particles = 10, steps = 2)), of(mixture, variational(5, draws = 20)),
    of(clusters, method_smc("data", 20)), of(clusters, chib(draws = 500)),
    of(mixture, partitions(chains = 4, work = 1e5)),
    of(low_rank(~ x + y, rank = 1), ais(20, linear(20))),
    of(binary_attributes(~ x + y, attributes = 1), ais(20, linear(20)))))
}
problems_known <- NULL
problem_of <- function(byte) problems_known[[as.integer(byte) %% length(problems_known) + 1]]

# One short slice: what a forged state makes a run do may take very long.
SHORT <- 1e-9
advance <- function(run)
  for (k in 1:3) if (.Call(own$ffi_run_advance, run, SHORT, Inf) == "done") break

FUZZERS$state <- list(
  seeds = function() lapply(seq_along(problems_known), function(i)
    c(as.raw(i - 1), problems_known[[i]]$state)),
  call = function(bytes) {
    if (length(bytes) < 20) return(NULL)
    job <- problem_of(bytes[1])
    run <- .Call(own$ffi_run_new, replace(job$problem, "restore", list(TRUE)))
    on.exit(.Call(own$ffi_run_free, run))
    .Call(own$ffi_run_restore, run, .Call(own$ffi_state_seal, bytes[-1]))
    advance(run)
  })

# Numbers of settings, and of rows: each piece of the input says which and by what.
ODD_NUMBERS <- c(-1, 0, 1, 2, 3, 7, 0.5, -0.5, 1e-300, 1e300, -1e300, 2^31, 2^53, Inf, -Inf, NaN,
                 NA)

alter_numbers <- function(x, piece) {
  at <- which(vapply(x, is.numeric, NA) & lengths(x) > 0)
  if (!length(at)) return(x)
  k <- at[as.integer(piece[1]) %% length(at) + 1]
  j <- as.integer(piece[2]) %% length(x[[k]]) + 1
  by <- as.integer(piece[3])
  value <- if (by < 128) ODD_NUMBERS[by %% length(ODD_NUMBERS) + 1] else x[[k]][j] + (by - 192)
  if (as.integer(piece[4]) %% 8 == 0) x[[k]] <- utils::head(x[[k]], j - 1)
  else x[[k]][j] <- value
  x
}

FUZZERS$settings <- list(
  seeds = function() lapply(seq_along(problems_known), function(i) as.raw(c(i - 1, 9, 1, 140, 1))),
  call = function(bytes) {
    if (length(bytes) < 1) return(NULL)
    job <- problem_of(bytes[1])
    problem <- job$problem
    rows <- job$rows
    pieces <- utils::head(bytes[-1], 40)
    for (k in seq_len(length(pieces) %/% 4)) {
      piece <- pieces[4 * k - 3:0]
      part <- as.integer(piece[4]) %/% 8 %% 3
      if (part == 0) problem$model_args <- alter_numbers(problem$model_args, piece)
      else if (part == 1) problem$settings <- alter_numbers(problem$settings, piece)
      else rows[] <- alter_numbers(list(rows), replace(piece, 4, as.raw(1)))[[1]]
    }
    # R refuses this before C knows of it, and what it would do may have no end
    if (problem$estimator == "chib" && !identical(problem$model_args$infer, 0)) return(NULL)
    problem["restore"] <- list(FALSE)
    run <- .Call(own$ffi_run_new, problem)
    on.exit(.Call(own$ffi_run_free, run))
    .Call(own$ffi_run_feed, run, rows, "last")
    advance(run)
  })

name <- Sys.getenv("TARGET", "csv")
if (!name %in% names(FUZZERS))
  stop("TARGET must be among ", toString(names(FUZZERS)), ", not ", name, ".")
if (name != "csv") problems_known <- problems()
fuzzer <- FUZZERS[[name]]
folder <- Sys.getenv("WRITE_CORPUS")
if (nzchar(folder)) {
  seeds <- fuzzer$seeds()
  for (i in seq_along(seeds)) writeBin(seeds[[i]], file.path(folder, paste0("seed", i)))
}
function(bytes) tryCatch({
  fuzzer$call(bytes)
  FALSE
}, error = function(e) {
  said <- conditionMessage(e)
  wrong <- !grepl("[.]$", said) && !grepl(NO_MEMORY, said)
  if (wrong) cat("not a sentence:", said, "\n", file = stderr())
  wrong
})

# digests.R [record | show <names>]: do runs still give the bits that were recorded?
#
#   make digests           compares with tools/digests.txt
#   make digests-record    writes it
#   tools/with-lib.sh Rscript tools/digests.R show ais    prints what the lines of the setups and
#                          fits whose names match are made of, to find what differs
#
# A change that should move code and nothing else leaves every line as it was. There is a line for
# each of test-state's setups, and for one fit by each method to each model that it applies to,
# under each variant of the vectorised kernels that this processor has (plain, avx2, avx512): name,
# variant, log evidence and a hash of all numbers of the result but seconds.
#
# Bits depend on the processor, the compiler and the mathematical libraries, so the file says for
# which it was recorded, and elsewhere nothing is compared: record before the change, compare after.

FILE <- "tools/digests.txt"
VARIANTS <- c("plain", "avx2", "avx512")

# The driver runs this script again for each variant, as "run <variant>" before its own arguments.
arguments <- commandArgs(trailingOnly = TRUE)
asked <- if (identical(arguments[1], "run")) arguments[-(1:2)] else arguments
task <- c(asked, "compare")[[1]]
pattern <- c(asked, "", "")[[2]]
if (!task %in% c("compare", "record", "show")) stop("There is no task `", task, "`.", call. = FALSE)

first_line <- function(command, args) {
  said <- tryCatch(suppressWarnings(system2(command, args, stdout = TRUE, stderr = TRUE)),
                   error = function(e) "")
  c(said, "")[[1]]
}

machine <- function() {
  cpu <- if (file.exists("/proc/cpuinfo")) readLines("/proc/cpuinfo")
  cpu <- grep("^model name", cpu, value = TRUE)
  r <- file.path(R.home("bin"), "R")
  compiler <- strsplit(first_line(r, c("CMD", "config", "CC")), " ")[[1]]
  c(
    processor = if (length(cpu)) sub(".*: *", "", cpu[[1]]) else Sys.info()[["machine"]],
    compiler = first_line(compiler[[1]], c(compiler[-1], "--version")),
    flags = first_line(r, c("CMD", "config", "CFLAGS")),
    R = R.version.string,
    libc = extSoftVersion()[["iconv"]],
    gsl = first_line("gsl-config", "--version")
  )
}

# ---- what is hashed

# The numbers in a result, by their own names and not by where they lie in it; whole numbers and
# logicals count as doubles, matrices as vectors. Texts, functions and pointers are left out, and so
# are times.
leaves <- function(x, name = "") {
  if (grepl("seconds", name, fixed = TRUE)) return(list())
  if (is.list(x)) {
    names <- if (is.null(names(x))) rep("", length(x)) else names(x)
    names[names == ""] <- paste0(name, which(names == ""))
    x <- unclass(x)
    return(unlist(lapply(seq_along(x), function(i) leaves(x[[i]], names[i])), recursive = FALSE))
  }
  if (is.numeric(x) && !is.null(names(x))) x <- x[!grepl("seconds", names(x), fixed = TRUE)]
  if (is.numeric(x) || is.logical(x)) stats::setNames(list(as.double(x)), name)
}

# All NaN are one, and so are all NA.
bytes_of <- function(x) {
  x[is.nan(x)] <- NaN
  writeBin(ifelse(is.na(x) & !is.nan(x), NA_real_, x), raw(), endian = "little")
}

hash_of <- function(bytes) {
  file <- tempfile()
  on.exit(unlink(file))
  writeBin(bytes, file)
  tools::md5sum(file)[[1]]
}

hashes <- function(result) {
  parts <- leaves(result)
  hash <- vapply(parts, function(x) hash_of(bytes_of(x)), "")
  sort(sprintf("%s %d %s", names(parts), lengths(parts), hash), method = "radix")
}

line_of <- function(name, variant, log_evidence, result) {
  if (task == "show") {
    return(c(paste0(name, ", ", variant, ":"), paste0("  ", hashes(result))))
  }
  sprintf("%-42s %-6s %25.17g  %s", name, variant, log_evidence,
          hash_of(charToRaw(paste(hashes(result), collapse = "\n"))))
}

# ---- what is run

# test-state.R's setups: all that stands there besides the tests.
setups_of_test_state <- function() {
  here <- new.env(parent = asNamespace("logevidence"))
  files <- paste0("tests/testthat/", c("helper-machinery.R", "helper-truth.R", "test-state.R"))
  for (code in do.call(c, lapply(files, parse)))
    if (!is.call(code) || !identical(code[[1]], as.name("test_that"))) eval(code, here)
  list(setups = here$setups(), finish = function(setup) here$finish_run(here$start_run(setup)))
}

compiled_example <- function() {
  folder <- tempfile("example")
  dir.create(folder)
  source <- file.path(folder, "normal_mean.c")
  file.copy(system.file("examples", "normal_mean.c", package = "logevidence"), source)
  library <- file.path(folder, paste0("normal_mean", .Platform$dynlib.ext))
  flags <- paste0("PKG_CPPFLAGS=-I", system.file("include", package = "logevidence"))
  status <- system2(file.path(R.home("bin"), "R"), c("CMD", "SHLIB", "-o", library, source),
                    env = flags, stdout = FALSE, stderr = FALSE)
  if (status != 0) stop("The example of a model in C could not be compiled.")
  dyn.load(library)
  compiled_model("normal_mean_table", "mean", sigma = 2, PACKAGE = "normal_mean")
}

models <- function() {
  set.seed(11)
  x <- stats::rnorm(40)
  line <- data.frame(x = x, y = 1 + 2 * x + stats::rnorm(40))
  classes <- data.frame(x = x, y = factor(findInterval(x + stats::rnorm(40), c(-0.5, 0.5))))
  blobs <- cbind(a = stats::rnorm(40, rep(c(-2, 2), 20)), b = stats::rnorm(40, rep(c(1, -1), 20)))
  mean_custom <- custom_model(
    "mean", function(theta, data) stats::dnorm(data, theta[["mean"]], 1, log = TRUE),
    function(theta) stats::dnorm(theta[["mean"]], log = TRUE), stats::rnorm,
    gradient = function(theta, data) sum(data - theta), prior_gradient = function(theta) -theta
  )
  list(
    gaussian_mean = list(gaussian_mean(sigma = 2), line$y),
    linear_regression = list(linear_regression(y ~ x, sigma = 1, prior_sd = 1), line),
    softmax_regression = list(softmax_regression(y ~ x, prior_sd = 1), classes),
    gaussian_mixture = list(gaussian_mixture(components = 2, location = 0, rate = 1), blobs),
    clustering = list(clustering(components = 2), blobs[1:20, ]),
    clustering_infer = list(clustering(components = 2, infer = TRUE), blobs[1:20, ]),
    low_rank = list(low_rank(rank = 1), blobs[1:20, ]),
    low_rank_infer = list(low_rank(rank = 1, infer = TRUE), blobs[1:20, ]),
    binary_attributes = list(binary_attributes(attributes = 2), blobs[1:20, ]),
    binary_attributes_infer = list(binary_attributes(attributes = 2, infer = TRUE), blobs[1:20, ]),
    custom = list(mean_custom, line$y[1:20]),
    compiled = list(compiled_example(), line$y)
  )
}

methods <- function() {
  few <- list(rows = 20, particles = 40)
  list(
    sgais = sgais(20, early = few, audit_draws = 100),
    sgais_given = sgais(20, order = "given", early = few, audit = FALSE),
    sgais_paper = sgais(preset = "paper", steps = 2),
    ais = ais(20, linear(20)),
    ais_sigmoidal = ais(20, sigmoidal(20), kernel = rwm()),
    smc = method_smc(particles = 40),
    smc_data = method_smc("data", particles = 40),
    smc_slice = method_smc(particles = 20, kernel = slice()),
    smc_mala = method_smc(particles = 20, kernel = mala()),
    smc_sgld = method_smc(particles = 20, kernel = sgld(), steps = 2),
    smc_sghmc = method_smc(particles = 20, kernel = sghmc(), steps = 2),
    smc_baoab = method_smc(particles = 20, kernel = baoab(), steps = 2),
    sequential = method_sequential(20),
    harmonic_mean = harmonic_mean(10, 20),
    likelihood_weighting = likelihood_weighting(200),
    power_posterior = power_posterior(run = smc(particles = 30)),
    thermodynamic = power_posterior("thermodynamic", run = smc(particles = 30)),
    bridge = bridge(10, 20),
    nested = nested(live = 30),
    nested_paper = nested(preset = "paper"),
    online_nested = online_nested(20, steps = 5),
    hybrid = hybrid(10, 20, particles = 20, batch = 5),
    laplace = method_laplace(importance = 100),
    bic = method_bic(),
    exact = method_exact(),
    chib = chib(),
    variational = variational(2, draws = 20)
  )
}

# Of more rows than a block of the likelihoods, which small ones do not fill.
many_rows <- function() {
  set.seed(12)
  centres <- matrix(3 * stats::rnorm(12), 4)
  points <- centres[rep(1:4, 500), ] + matrix(stats::rnorm(6000), 2000)
  frame <- data.frame(points, class = factor(rep(1:4, 500)))
  list(mixture = list(gaussian_mixture(components = 4, location = 0, rate = 1), points),
       softmax = list(softmax_regression(class ~ X1 + X2 + X3, prior_sd = 1), frame),
       linear = list(linear_regression(X1 ~ X2 + X3, sigma = 1, prior_sd = 1), frame))
}

# Methods that do not apply say so, and give no line.
fit_of <- function(problem, method) {
  tryCatch(
    withCallingHandlers(evidence(problem[[1]], problem[[2]], method, seed = 5, progress = FALSE),
                        warning = function(w) invokeRestart("muffleWarning")),
    logevidence_error = function(e) NULL
  )
}

run_all <- function(variant) {
  suppressWarnings(library(logevidence))
  if (.Call(asNamespace("logevidence")$ffi_simd)$used != variant) return(invisible())
  state <- setups_of_test_state()
  log_evidence_of <- function(result) {
    values <- unlist(result[c("log_evidence", "importance", "laplace", "bound")])
    c(values[!is.na(values)], NaN)[[1]]
  }
  wanted <- function(name) task != "show" || grepl(pattern, name)
  for (name in names(state$setups)) {
    if (!wanted(paste0("state:", name))) next
    result <- state$finish(state$setups[[name]])
    writeLines(line_of(paste0("state:", name), variant, log_evidence_of(result), result))
  }
  write_fit <- function(name, problem, method) {
    if (!wanted(name)) return()
    fit <- fit_of(problem, method)
    if (is.null(fit)) return()
    fit <- logevidence:::with_draws(fit)
    result <- fit[setdiff(names(fit), c("call", "model", "method", "design", "state", "redraw"))]
    writeLines(line_of(name, variant, fit$log_evidence, result))
  }
  large <- many_rows()
  for (model in names(large))
    write_fit(paste0("many:", model), large[[model]], sgais(audit_draws = 200))
  problems <- models()
  ways <- methods()
  for (model in names(problems)) for (way in names(ways))
    write_fit(paste0(model, ":", way), problems[[model]], ways[[way]])
}

if (identical(arguments[1], "run")) {
  run_all(arguments[[2]])
  quit()
}

# ---- record and compare

here <- machine()
header <- sprintf("# %s: %s", names(here), here)
recorded <- if (task == "compare") {
  if (!file.exists(FILE)) stop(FILE, " is not there: record first.", call. = FALSE)
  readLines(FILE)
}
if (task == "compare" && !all(header %in% recorded)) {
  cat("The digests were recorded elsewhere:", grep("^# [A-Za-z]+:", recorded, value = TRUE),
      "and this machine has:", header,
      "Record before a change ('make digests-record'), compare after it.", sep = "\n")
  quit(status = 1)
}

script <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))
lines <- missing <- character()
for (variant in VARIANTS) {
  started <- Sys.time()
  command <- shQuote(c(script, "run", variant, arguments))
  said <- system2(file.path(R.home("bin"), "Rscript"), command, stdout = TRUE,
                  env = paste0("LOGEVIDENCE_SIMD=", variant))
  if (!is.null(attr(said, "status")))
    stop("The runs under ", variant, " ended with an error.", call. = FALSE)
  if (!length(said)) {
    missing <- c(missing, variant)
    next
  }
  lines <- c(lines, said)
  message(sprintf("%s: %.0f s", variant, as.numeric(Sys.time() - started, units = "secs")))
}
if (length(missing))
  message("Not run, as this processor lacks it: ", paste(missing, collapse = ", "))

if (task == "show") {
  writeLines(lines)
} else if (task == "record") {
  about <- "# Bits of results, made by tools/digests.R, which says what they are. Recorded for"
  writeLines(c(about, header, lines), FILE)
  cat(length(lines), "digests recorded in", FILE, "\n")
} else {
  recorded <- recorded[!startsWith(recorded, "#")]
  words_of <- function(lines) strsplit(lines, " +")
  variant_of <- function(lines) vapply(words_of(lines), `[[`, "", 2)
  unknown <- setdiff(variant_of(lines), variant_of(recorded))
  if (length(unknown))
    message("Not compared, as there are no records of it: ", paste(unknown, collapse = ", "))
  lines <- lines[!variant_of(lines) %in% unknown]
  recorded <- recorded[variant_of(recorded) %in% variant_of(lines)]
  gone <- setdiff(recorded, lines)
  new <- setdiff(lines, recorded)
  if (length(gone) + length(new)) {
    writeLines(c(sprintf("- %s", gone),
                 sprintf("+ %s", new))[order(c(gone, new), method = "radix")])
    names <- vapply(words_of(c(gone, new)), function(words) paste(words[1:2], collapse = " "), "")
    cat(length(unique(names)), "digests differ from", FILE, "\n")
    quit(status = 1)
  }
  cat(length(lines), "digests are as recorded\n")
}

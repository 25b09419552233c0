# Nested sampling by kernel: what accuracy costs, on three problems of known evidence, next to
# MultiNest's figures for the same problems; and what the package adds to the time of the likelihood
# itself.
#
#   Rscript bench/nested.R [seeds = 20] [problems, comma-separated: linear, gaussian, shells]
#
# Runs the installed package (R_LIBS says which), on one core: tools/with-lib.sh Rscript
# bench/nested.R

suppressPackageStartupMessages(library(logevidence))
here <- dirname(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[1]))
source(file.path(here, "..", "tests", "testthat", "helper-truth.R"))

KERNELS <- list(slice = kernel_slice(), rwm = rwm(), sghmc = kernel_sghmc())

# Problems -----------------------------------------------------------------------------------------

# The integrals' likelihoods are in C, as MultiNest's are
integrals <- local({
  library <- file.path(tempdir(), paste0("integrals", .Platform$dynlib.ext))
  source <- file.path(tempdir(), "integrals.c")
  stopifnot(file.copy(file.path(here, "integrals.c"), source))
  flags <- paste0("PKG_CPPFLAGS=-I", system.file("include", package = "logevidence"))
  stopifnot(system2(file.path(R.home("bin"), "R"), c("CMD", "SHLIB", "-o", library, source),
                    stdout = FALSE, env = flags) == 0)
  dyn.load(library)[["name"]]
})

in_box <- function(symbol, d, half, ...) {
  compiled_model(symbol, paste0("x", seq_len(d)), d = d, half = half, ..., PACKAGE = integrals)
}

#' Unit variances, the same correlation between any two
correlated <- function(d = 10, correlation = 0.95, half = 10) {
  # what lies outside ten standard deviations does not show
  list(model = in_box("normal_table", d, half, correlation = correlation),
       log_evidence = -d * log(2 * half))
}

#' Two shells around (-3.5, 0, ...) and (3.5, 0, ...), a normal density of the distance from each
#' centre
shells <- function(d = 10, radius = 2, width = 0.1, centre = 3.5, half = 6) {
  # a shell's integral: the surface of the unit sphere, and the radius by quadrature
  surface <- log(2) + d / 2 * log(pi) - lgamma(d / 2)
  along <- integrate(function(r) r^(d - 1) * dnorm(r, radius, width), radius - 10 * width,
                     radius + 10 * width, rel.tol = 1e-10)$value
  list(model = in_box("shells_table", d, half, radius = radius, width = width, centre = centre),
       log_evidence = log(2) + surface + log(along) - d * log(2 * half))
}

PROBLEMS <- list(
  linear = function() c(truth_problem("linear1000"), list(
    title = "Linear regression, 1,000 rows, 6 parameters",
    multinest = c(seconds = 0.49, rms = 0.20))),
  gaussian = function() c(correlated(), list(
    title = "Gaussian, 10 dimensions, correlation 0.95, box of +-10 standard deviations",
    multinest = c(seconds = 0.76, rms = 0.24))),
  shells = function() c(shells(), list(
    title = "Two Gaussian shells, 10 dimensions, radius 2, width 0.1, centres +-3.5, box +-6",
    multinest = c(seconds = 0.40, rms = 0.18)))
)

# Runs ---------------------------------------------------------------------------------------------

#' CPU seconds of an expression
cpu <- function(code) {
  spent <- system.time(code, gcFirst = FALSE)
  spent[["user.self"]] + spent[["sys.self"]]
}

#' One run: its error, and its evaluations of the likelihood and its gradient at a point, over all
#' rows
run_once <- function(problem, kernel, seed) {
  seconds <- cpu(fit <- evidence(problem$model, problem$data, nested(kernel = kernel), seed = seed,
                                 progress = FALSE))
  data.frame(error = fit$log_evidence - problem$log_evidence, se = fit$se, seconds = seconds,
             failed = length(fit$failed) > 0, likelihoods = fit$work[["likelihoods"]] / fit$n,
             gradients = fit$work[["gradients"]] / fit$n)
}

#' Microseconds of the bare likelihood for each point, called with as many points as nested sampling
#' replaces at once; integrals with a thousand, lest the call from R be what is measured
bare_likelihood <- function(problem,
                            batch = if (is.null(problem$data)) 1000 else nested()$settings$batch) {
  f <- model_functions(problem$model, problem$data)
  points <- f$draw_prior(batch, seed = 1)
  calls <- ceiling(0.2 / max(cpu(for (i in 1:100) f$log_lik(points)) / 100, 1e-7))
  best <- min(replicate(3, cpu(for (i in seq_len(calls)) f$log_lik(points)) / calls))
  1e6 * best / batch
}

HEADER <- sprintf("%-10s %4s %8s %7s %6s %6s %9s %9s %11s %13s %7s %6s",
                  "kernel", "runs", "CPU s", "mean", "rms", "se", "lik. ev.",
                  "gradients", "CPU x rms^2", "evals x rms^2", "us/eval", "ratio")

table_row <- function(name, runs, bare) {
  rms <- sqrt(mean(runs$error^2))
  evaluations <- mean(runs$likelihoods + runs$gradients)
  each <- 1e6 * mean(runs$seconds) / evaluations
  paste0(
    sprintf("%-10s %4d %8.3f %7.3f %6.3f %6.3f %9.0f %9.0f %11.4f %13.0f %7.2f %6.2f", name,
            nrow(runs),
            mean(runs$seconds), mean(runs$error), rms, mean(runs$se), mean(runs$likelihoods),
            mean(runs$gradients),
            mean(runs$seconds) * rms^2, evaluations * rms^2, each, each / bare),
    if (any(runs$failed)) sprintf("  (%d of %d failed their own checks)", sum(runs$failed),
                                  nrow(runs))
  )
}

main <- function(seeds = "20", problems = NULL) {
  seeds <- seq_len(as.integer(seeds))
  problems <- if (is.null(problems)) names(PROBLEMS) else strsplit(problems, ",")[[1]]
  for (name in problems) {
    problem <- PROBLEMS[[name]]()
    bare <- bare_likelihood(problem)
    about <- sprintf("log evidence %.4f; nested(live = %g); bare likelihood %.2f us a point",
                     problem$log_evidence, nested()$settings$live, bare)
    writeLines(c(problem$title, about, HEADER))
    for (kernel in names(KERNELS)) {
      # far off at its default rate, and slow: that shows in a quarter of the runs
      own <- if (kernel == "sghmc" && name != "linear")
        seeds[seq_len(ceiling(length(seeds) / 4))] else seeds
      runs <- do.call(rbind, lapply(own, function(seed) run_once(problem, KERNELS[[kernel]], seed)))
      cat(table_row(kernel, runs, bare), "\n", sep = "")
    }
    theirs <- problem$multinest
    cat(sprintf("%-10s %4s %8.3f %7s %6.3f %6s %9s %9s %11.4f\n\n", "MultiNest", "",
                theirs[["seconds"]], "",
                theirs[["rms"]], "", "", "", theirs[["seconds"]] * theirs[["rms"]]^2))
  }
  writeLines(c(
    "mean and rms: of the error in nats; se: mean of the standard errors reported. Evaluations",
    "are of all rows at one point. evals x rms^2 and us/eval (CPU time of the whole run for each)",
    "count likelihoods and gradients together; ratio is us/eval over the bare likelihood's, called",
    "from R with many points at once. All likelihoods are in C."
  ))
}

do.call(main, as.list(commandArgs(trailingOnly = TRUE)))

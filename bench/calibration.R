# How the methods' errors and standard errors hold up on problems of known evidence: a table, method
# x problem, for the reported estimate and for the sampler's own.
#
#   Rscript bench/calibration.R [seeds = 200] [methods, comma-separated] [problems,
#     comma-separated] [file]
#
# Runs the installed package (R_LIBS says which).  The rows are appended to `file` as they come.

suppressPackageStartupMessages(library(logevidence))
here <- dirname(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[1]))
source(file.path(here, "..", "tests", "testthat", "helper-truth.R"))

METHODS <- list(
  sgais = sgais(),
  ais = ais(),
  thermal = method_smc(),
  data = method_smc("data"),
  nested = nested(),
  weighting = likelihood_weighting()
)

CHEAP <- c("mean100", "cars", "mtcars", "swiss", "longley", "airquality", "linear1000",
           "softmax_tiny", "iris_petal",
           "iris", "mix1_faithful", "mix2_dozen", "mix3_dozen", "mix2_dozen_2d", "mix3_dozen_2d")

#' Runs of one method on one problem: the two estimates, their errors, and CPU seconds
run_many <- function(method, problem, seeds) {
  one <- function(seed) {
    spent <- system.time(fit <- evidence(problem$model, problem$data, method, seed = seed,
                                         progress = FALSE),
                         gcFirst = FALSE)
    data.frame(log_evidence = fit$log_evidence, se = fit$se, own = fit$sampler$log_evidence,
               own_se = fit$sampler$se,
               audited = fit$source == "audit",
               seconds = spent[["user.self"]] + spent[["sys.self"]])
  }
  do.call(rbind, parallel::mclapply(seeds, one, mc.cores = 1))
}

summarise <- function(estimate, se, problem) {
  error <- estimate - problem$log_evidence
  z <- error / sqrt(se^2 + problem$se^2)
  c(mean = mean(error), sd = sd(error), se = mean(se), within2 = 100 * mean(abs(z) < 2),
    within4 = 100 * mean(abs(z) < 4))
}

HEADER <- sprintf("%-10s %-15s %4s | %8s %7s %7s %5s %5s | %8s %7s %7s %5s %5s | %5s %7s", "method",
                  "problem", "runs",
                  "mean err", "sd", "se", "|z|<2", "|z|<4", "mean err", "sd", "se", "|z|<2",
                  "|z|<4", "audit", "CPU s")
TITLE <- sprintf("%-31s | %-36s | %-36s |", "", "reported", "sampler's own")

table_row <- function(method_name, problem, runs) {
  whole <- summarise(runs$log_evidence, runs$se, problem)
  own <- summarise(runs$own, runs$own_se, problem)
  numbers <- function(s) sprintf("%8.3f %7.4f %7.4f %5.1f %5.1f", s[1], s[2], s[3], s[4], s[5])
  sprintf("%-10s %-15s %4d | %s | %s | %4.0f%% %7.4f", method_name, problem$name, nrow(runs),
          numbers(whole), numbers(own), 100 * mean(runs$audited), mean(runs$seconds))
}

main <- function(seeds = "200", methods = NULL, problems = NULL, file = "") {
  seeds <- seq_len(as.integer(seeds))
  chosen <- function(given, default) if (is.null(given) || given == "") default else
    strsplit(given, ",")[[1]]
  methods <- chosen(methods, names(METHODS))
  problems <- chosen(problems, CHEAP)
  say <- function(line) cat(line, "\n", sep = "", file = file, append = TRUE)
  say(TITLE)
  say(HEADER)
  for (name in problems) {
    problem <- truth_problem(name)
    for (method in methods) {
      runs <- tryCatch(run_many(METHODS[[method]], problem, seeds), error = conditionMessage)
      say(if (is.character(runs)) sprintf("%-10s %-15s error: %s", method, name, runs) else
          table_row(method, problem, runs))
    }
  }
}

do.call(main, as.list(commandArgs(trailingOnly = TRUE)))

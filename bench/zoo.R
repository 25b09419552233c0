# Wrong answers, silent ones, and false alarms: many problems with independent reference values,
# all methods that apply, many seeds, default settings.
#
#   tools/with-lib.sh Rscript bench/zoo.R list
#   ... truths [--problems regex] [--only missing]    reference values, into results/zoo-truths.csv
#   ... run [--methods default,smc | all] [--seeds 20] [--problems regex] [--limit seconds]
#           [--patience seconds] [--cores 1] [--file results/zoo.csv]
#           rows that are in the file already are not computed again; at most `patience` seconds
#           go to one problem and method
#   ... crosscheck [--seeds 5] [--problems regex]    do its verdicts say what its methods could?
#   ... report [--file results/zoo.csv]
#   ... summary [--file results/zoo-others.csv]     counts of each problem and method, into
#           results/zoo-others-summary.csv; without the file of the runs, which is not in git, it
#           prints the table of the summary that is there
#
# Generated problems, which nothing is tuned to (zoo/generate.R):
#
#   ... generated truths [--indices 1:300] [--draw seed]
#           references that are missing, into results/zoo-generated-truths.csv
#   ... generated run [--indices 1:300] [--families regex] [--seeds 1:3] [--methods default]
#           [--limit 30] [--draw seed] [--file results/zoo-generated.csv]
#   ... generated report [--file results/zoo-generated.csv]
#
# The ways of giving rows (zoo/sources.R):
#
#   ... sources truths                              into results/zoo-sources-truths.csv
#   ... sources run [--minutes 20] [--problems regex] [--ways shards,memory]
#           [--file results/zoo-sources.csv]
#   ... sources report [--file results/zoo-sources.csv]
#
# Rows have the commit of the package that R found. R_LIBS=<a library> chooses another one.
#
# The problems are in zoo/problems.R, zoo/functions.R, zoo/regressions.R and zoo/groups.R, how
# reference values are found in zoo/truths.R, what counts as silent and as a false alarm in
# zoo/report.R.

suppressPackageStartupMessages(library(logevidence))
script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
HERE <- dirname(normalizePath(script))
ZOO <- file.path(HERE, "zoo")
RESULTS <- file.path(HERE, "results")
parts <- c("truths", "integrals", "problems", "functions", "regressions", "groups", "generate",
           "runner", "report", "generated")
for (part in parts) source(file.path(ZOO, paste0(part, ".R")))

arguments <- commandArgs(TRUE)
verb <- if (length(arguments)) arguments[1] else "list"
option <- function(name, otherwise) {
  at <- match(paste0("--", name), arguments)
  if (is.na(at)) return(otherwise)
  if (is.character(otherwise)) arguments[at + 1] else as.numeric(arguments[at + 1])
}
file <- option("file", file.path(RESULTS, "zoo.csv"))
wanted <- PROBLEMS[grepl(option("problems", "."), names(PROBLEMS))]
methods <- option("methods", "default")
methods <- if (methods == "all") names(METHODS) else strsplit(methods, ",")[[1]]

if (verb == "list") {
  for (p in wanted)
    cat(sprintf("%-24s %-14s%s%s\n", p$name, p$family, if (p$benign) "benign " else "",
                if (p$hidden) "hidden" else ""))
} else if (verb == "truths") {
  truths <- file.path(RESULTS, "zoo-truths.csv")
  if (option("only", "all") == "missing" && file.exists(truths))
    wanted <- wanted[!names(wanted) %in% read.csv(truths)$problem]
  write_truths(wanted, truths)
} else if (verb == "run") {
  run <- function(some) run_zoo(some, methods, option("seeds", 20), file, option("limit", 60),
                                option("patience", Inf))
  cores <- option("cores", 1)
  if (cores == 1) run(wanted) else
    invisible(parallel::mclapply(split(wanted, seq_along(wanted) %% cores), run, mc.cores = cores))
} else if (verb == "crosscheck") {
  crosscheck_zoo(wanted, option("seeds", 5), file.path(RESULTS, "zoo-crosscheck.csv"))
} else if (verb == "report") {
  report(file, file.path(RESULTS, "zoo-truths.csv"))
} else if (verb == "summary") {
  runs <- option("file", file.path(RESULTS, "zoo-others.csv"))
  short <- sub("[.]csv$", "-summary.csv", runs)
  if (file.exists(runs))
    write.csv(summarised(judge(read.csv(runs), read.csv(file.path(RESULTS, "zoo-truths.csv")))),
              short, row.names = FALSE, quote = FALSE)
  if (!file.exists(short))
    stop(runs, " is made by `zoo.R run --methods all --seeds 100 --file ", runs, "`, in days.",
         call. = FALSE)
  print_summary(read.csv(short))
} else if (verb == "generated") {
  range_of <- function(text) as.integer(unlist(lapply(strsplit(text, ",")[[1]], function(one)
    eval(parse(text = one)))))
  what <- if (length(arguments) > 1) arguments[2] else "report"
  draw <- option("draw", ZOO_SEED)
  indices <- range_of(option("indices", paste0("1:", GENERATED)))
  truths <- file.path(RESULTS, "zoo-generated-truths.csv")
  file <- option("file", file.path(RESULTS, "zoo-generated.csv"))
  if (what == "truths") {
    write_generated_truths(indices, draw, truths)
  } else if (what == "run") {
    run_generated(generated_problems(indices, draw, truths, option("families", ".")), methods,
                  range_of(option("seeds", "1:3")), file, option("limit", 30))
  } else if (what == "report") {
    report_generated(file, truths)
  } else stop("unknown: generated ", what)
} else if (verb == "sources") {
  source(file.path(ZOO, "sources.R"))
  what <- if (length(arguments) > 1) arguments[2] else "report"
  truths <- file.path(RESULTS, "zoo-sources-truths.csv")
  file <- option("file", file.path(RESULTS, "zoo-sources.csv"))
  if (what == "truths") write_source_truths(truths)
  else if (what == "run")
    run_sources(file, option("minutes", 20), option("problems", "."),
                strsplit(option("ways", paste(names(SOURCE_WAYS), collapse = ",")), ",")[[1]])
  else if (what == "report") report_sources(file, truths)
  else stop("unknown: sources ", what)
} else stop("unknown: ", verb)

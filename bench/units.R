# Raw data sets of R and no prior given: is the evidence right under default priors in units of the
# data, and is the stated error?
#
#   Rscript bench/units.R run [seeds = 40]      into results/units.csv
#   Rscript bench/units.R report
#
# References: exact() where the model has it, else laplace() with 200,000 draws.

suppressPackageStartupMessages(library(logevidence))
RESULTS <- file.path(dirname(sub("^--file=", "", grep("^--file=", commandArgs(FALSE),
                                                      value = TRUE))), "results", "units.csv")

CASES <- list(
  mtcars = list(regression(mpg ~ wt + hp + factor(cyl)), mtcars),
  cars = list(regression(dist ~ speed), cars),
  `cars, sigma ~ speed` = list(regression(dist ~ speed, sigma ~ speed), cars),
  airquality = list(regression(Ozone ~ Wind + Temp), stats::na.omit(airquality)),
  `longley, student` = list(regression(Employed ~ ., student()), longley),
  `warpbreaks, poisson` = list(regression(breaks ~ wool * tension, poisson()), warpbreaks),
  `warpbreaks, negative binomial` =
    list(regression(breaks ~ wool * tension, negative_binomial()), warpbreaks),
  `mtcars, logit` = list(regression(am ~ wt, binomial()), mtcars),
  `trees, gamma` = list(regression(Volume ~ Girth + Height, "gamma"), trees),
  `trees, weibull` = list(regression(Volume ~ Girth + Height, weibull()), trees),
  `ChickWeight, slopes` = list(regression(weight ~ Time + (Time | Chick)), ChickWeight),
  `npk, blocks` = list(regression(yield ~ N + P + (1 | block)), npk),
  `iris, softmax` = list(softmax_regression(Species ~ Sepal.Length + Sepal.Width), iris),
  `faithful, mixture of 2` = list(gaussian_mixture(~ eruptions + waiting, 2), faithful))

run <- function(seeds) {
  table <- lapply(names(CASES), function(name) {
    model <- CASES[[name]][[1]]
    data <- CASES[[name]][[2]]
    exact <- tryCatch(evidence(model, data, exact()), error = function(e) NULL)
    truth <- if (is.null(exact)) evidence(model, data, laplace(importance = 2e5), seed = 999)
    else exact
    fits <- lapply(seq_len(seeds), function(seed) suppressWarnings(evidence(model, data,
                                                                           seed = seed)))
    data.frame(case = name, rows = nrow(data), truth = truth$log_evidence,
               truth_se = if (is.null(exact)) truth$se else 0, seed = seq_len(seeds),
               log_evidence = vapply(fits, `[[`, 0, "log_evidence"),
               se = vapply(fits, `[[`, 0, "se"),
               warned = vapply(fits, function(fit) length(c(fit$warnings, fit$failed)) > 0, NA))
  })
  utils::write.csv(do.call(rbind, table), RESULTS, row.names = FALSE)
}

report <- function() {
  table <- utils::read.csv(RESULTS)
  cat("| data | rows | runs | log evidence | mean error | stated | mean z^2 | largest z | warned |",
      "|---|---|---|---|---|---|---|---|---|", sep = "\n")
  for (one in split(table, factor(table$case, unique(table$case)))) {
    error <- one$log_evidence - one$truth
    z <- error / sqrt(one$se^2 + one$truth_se^2)
    cat(sprintf("| %s | %d | %d | %.2f | %.3f | %.3f | %.2f | %.1f | %d |\n", one$case[1],
                one$rows[1], nrow(one), one$truth[1], mean(error), stats::median(one$se),
                mean(z^2), max(abs(z)), sum(one$warned)))
  }
}

arguments <- commandArgs(TRUE)
switch(arguments[1], run = run(if (length(arguments) > 1) as.integer(arguments[2]) else 40),
       report = report(), stop("`", arguments[1], "` must be `run` or `report`."))

# Group-level effects: seconds beside what a user would take today.
#
#   Rscript bench/groups-speed.R run [problems, separated by ;] [file]
#   Rscript bench/groups-speed.R report [file]
#
# Results go to bench/results/groups-speed.csv. Ways that a machine lacks are left out; all others
# of a problem run in turn, in one process, and the mean of their numbers and the median of their
# seconds are reported. lme4 and
# glmmTMB (packages r-cran-lme4, r-cran-glmmtmb) fit by maximum likelihood, without an evidence.
# rstanarm (r-cran-rstanarm) draws four chains with its own priors on standard deviations, and
# bridgesampling takes the evidence from them. BayesFactor (r-cran-bayesfactor) has the same priors
# as jzs(): its Bayes factor and ours are of the model against the one without the fixed effects.

suppressPackageStartupMessages(library(logevidence))

RESULTS <- "bench/results/groups-speed.csv"
have <- function(package) requireNamespace(package, quietly = TRUE)
quiet <- function(code) suppressWarnings(suppressMessages({
  utils::capture.output(value <- code)
  value
}))

# Data --------------------------------------------------------------------------------------------

simulated <- function(groups, rows, slope = FALSE, family = "gaussian") {
  set.seed(1)
  d <- data.frame(g = rep(seq_len(groups), each = rows), x = rnorm(groups * rows))
  eta <- 0.3 + 0.5 * d$x + rnorm(groups)[d$g] + if (slope) 0.5 * rnorm(groups)[d$g] * d$x else 0
  d$y <- if (family == "gaussian") rnorm(nrow(d), eta, 0.7) else rbinom(nrow(d), 1, plogis(eta))
  d
}

subjects_and_items <- function() {
  set.seed(1)
  d <- expand.grid(subject = 1:100, item = 1:100)
  d$x <- rnorm(nrow(d))
  d$y <- 0.3 + 0.5 * d$x + rnorm(100)[d$subject] + 0.6 * rnorm(100)[d$item] + rnorm(nrow(d))
  d
}

# A repeated-measures design: two factors of two levels, each person in all four cells.
repeated <- function(people) {
  set.seed(1)
  d <- expand.grid(id = factor(seq_len(people)), a = factor(1:2), b = factor(1:2))
  d$y <- rnorm(people)[d$id] + 0.1 * (d$a == 2) + 0.15 * (d$b == 2) + rnorm(nrow(d))
  d
}

# A stream of a hundred blocks.
in_blocks <- function(block) {
  at <- 0
  rows_function(function(reset) {
    if (reset) at <<- 0
    else if (at < 100) {
      at <<- at + 1
      set.seed(at)
      block(at)
    }
  })
}

# In random order: every group has rows in about ten blocks.
stream <- function() in_blocks(function(at) {
  g <- sample(1e5, 1e4, TRUE)
  x <- rnorm(1e4)
  data.frame(g = g, x = x, y = rnorm(1e4, 0.3 + 0.5 * x + sin(g), 0.7))
})

# Sorted by groups, a thousand in each block.
sorted_stream <- function() in_blocks(function(at) {
  g <- rep(1000 * (at - 1) + 1:1000, each = 10)
  x <- rnorm(1e4)
  data.frame(g = g, x = x, y = rbinom(1e4, 1, plogis(0.3 + 0.5 * x + sin(g))))
})

# Ways --------------------------------------------------------------------------------------------

ours <- function(formula, data, family = gaussian(), ..., source = identity) function(seed) {
  model <- regression(formula, family, prior_sd = 2.5, ...)
  fit <- quiet(evidence(model, source(data), seed = seed, threads = 2))
  c(fit$log_evidence, fit$se)
}
lmer <- function(formula, data) if (have("lme4")) function(seed) {
  quiet(lme4::lmer(formula, data, REML = FALSE))
  c(NA, NA)
}
glmer <- function(formula, data, family) if (have("lme4")) function(seed) {
  quiet(lme4::glmer(formula, data, family))
  c(NA, NA)
}
tmb <- function(formula, data, family = gaussian()) if (have("glmmTMB")) function(seed) {
  quiet(glmmTMB::glmmTMB(formula, data, family))
  c(NA, NA)
}
stan <- function(formula, data, family = gaussian())
  if (have("rstanarm") && have("bridgesampling")) function(seed) {
    if (seed > 1) return(NULL) # minutes
    # rstanarm evaluates its arguments again elsewhere
    fit <- quiet(do.call(rstanarm::stan_glmer, list(
      formula, data, family, prior = rstanarm::normal(0, 2.5), cores = 2, iter = 6000,
      prior_intercept = rstanarm::normal(0, 2.5), seed = seed, refresh = 0,
      diagnostic_file = file.path(tempdir(), paste0("stan", seed, ".csv")))))
    found <- quiet(bridgesampling::bridge_sampler(fit, silent = TRUE))
    c(found$logml, quiet(bridgesampling::error_measures(found)$cv))
  }
# Bayes factors of a model against one with fewer terms. `id` names the column of the groups.
grouped_by <- function(terms, id, group) stats::reformulate(c(terms, if (!is.null(id)) group), "y")
jzs_ours <- function(data, more, fewer = "1", id = "id") function(seed) {
  fit <- function(terms) quiet(evidence(
    linear_regression(grouped_by(terms, id, paste0("(1 | ", id, ")")),
                      prior = jzs(fixed = 1 / 2, random = 1)), data, seed = seed, threads = 2))
  both <- fit(more)
  none <- fit(fewer)
  c(both$log_evidence - none$log_evidence, sqrt(both$se^2 + none$se^2))
}
jzs_theirs <- function(data, more, fewer = "1", id = "id", iterations = 1e4)
  if (have("BayesFactor")) function(seed) {
    set.seed(seed)
    loadNamespace("BayesFactor")
    fit <- function(terms) {
      if (identical(terms, "1") && is.null(id)) return(list(bf = 0, error = 0))
      quiet(BayesFactor::lmBF(grouped_by(setdiff(terms, "1"), id, id), data,
                              whichRandom = if (!is.null(id)) id, iterations = iterations,
                              progress = FALSE))@bayesFactor
    }
    both <- fit(more)
    none <- fit(fewer)
    c(both$bf - none$bf, sqrt(both$error^2 + none$error^2))
  }
jzs_problem <- function(data, more, groups, effects = 1, id = "id", iterations = 1e6, runs = 6)
  problem(nrow(data), groups, effects, runs = runs,
          list("logevidence, jzs()" = jzs_ours(data, more, id = id),
               BayesFactor = jzs_theirs(data, more, id = id, iterations = iterations)))
puzzles <- function() {
  utils::data("puzzles", package = "BayesFactor", envir = environment())
  d <- get("puzzles", envir = environment())
  data.frame(y = d$RT, id = d$ID, shape = d$shape, color = d$color)
}

#' `rows`, `groups` and `effects` are for the table, `runs` is the number of runs of each way
problem <- function(rows, groups, effects, ways, runs = 3)
  list(rows = rows, groups = groups, effects = effects, ways = ways, runs = runs)

PROBLEMS <- list(
  sleepstudy = function() {
    d <- getExportedValue("lme4", "sleepstudy")
    f <- Reaction ~ Days + (Days | Subject)
    problem(180, 18, 2, list(logevidence = ours(f, d), lme4 = lmer(f, d), glmmTMB = tmb(f, d),
                             "rstanarm, bridgesampling" = stan(f, d)))
  },
  "epil, Poisson" = function() {
    d <- MASS::epil
    f <- y ~ lbase + trt + lage + V4 + (1 | subject)
    problem(236, 59, 1, list(logevidence = ours(f, d, poisson()), lme4 = glmer(f, d, poisson()),
                             glmmTMB = tmb(f, d, poisson()),
                             "rstanarm, bridgesampling" = stan(f, d, poisson())))
  },
  "bacteria, logit" = function() {
    d <- MASS::bacteria
    d$y <- as.integer(d$y == "y")
    f <- y ~ trt + I(week > 2) + (1 | ID)
    problem(220, 50, 1, list(logevidence = ours(f, d, binomial()), lme4 = glmer(f, d, binomial()),
                             glmmTMB = tmb(f, d, binomial()),
                             "rstanarm, bridgesampling" = stan(f, d, binomial())))
  },
  "subjects and items" = function() {
    d <- subjects_and_items()
    f <- y ~ x + (1 | subject) + (1 | item)
    problem(1e4, 200, 1, list(logevidence = ours(f, d), lme4 = lmer(f, d), glmmTMB = tmb(f, d)))
  },
  "logit, 10,000 groups" = function() {
    d <- simulated(1e4, 10, family = "logit")
    f <- y ~ x + (1 | g)
    problem(1e5, 1e4, 1, list(logevidence = ours(f, d, binomial()), lme4 = glmer(f, d, binomial()),
                              glmmTMB = tmb(f, d, binomial())), runs = 1)
  },
  "slopes, 100,000 groups" = function() {
    d <- simulated(1e5, 10, slope = TRUE)
    f <- y ~ x + (x | g)
    problem(1e6, 1e5, 2, list(logevidence = ours(f, d), lme4 = lmer(f, d), glmmTMB = tmb(f, d)),
            runs = 1)
  },
  "a stream, logit" = function() problem(1e6, 1e5, 1, runs = 1, list(logevidence = function(seed) {
    model <- regression(y ~ x + (1 | g), binomial(), prior_sd = 2.5)
    fit <- quiet(evidence(model, sorted_stream(), seed = seed, threads = 2, keep = 2000))
    c(fit$log_evidence, fit$se)
  })),
  "a stream, 100,000 groups" = function()
    problem(1e6, 1e5, 1, list(logevidence = ours(y ~ x + (1 | g), NULL,
                                                 source = function(...) stream())), runs = 1),
  "2 x 2 cells, 300 people" = function()
    jzs_problem(repeated(300), "a * b", 300, iterations = 1e4, runs = 3),
  # BayesFactor had not ended after 20 minutes here
  "2 x 2 cells, 3,000 people" = function()
    problem(12000, 3000, 1, list("logevidence, jzs()" = jzs_ours(repeated(3000), "a * b"))),
  "puzzles, shape" = function() jzs_problem(puzzles(), "shape", 12),
  "puzzles, color" = function() jzs_problem(puzzles(), "color", 12),
  "puzzles, both" = function() jzs_problem(puzzles(), c("shape", "color"), 12),
  "puzzles, interaction" = function() jzs_problem(puzzles(), "shape * color", 12),
  sleep = function() jzs_problem(stats::setNames(datasets::sleep, c("y", "a", "id")), "a", 10),
  ToothGrowth = function()
    jzs_problem(with(datasets::ToothGrowth, data.frame(y = len, supp, dose = factor(dose))),
                "supp * dose", 0, 0, id = NULL),
  attitude = function()
    jzs_problem(stats::setNames(datasets::attitude[1:4], c("y", "complaints", "privileges",
                                                           "learning")),
                c("complaints", "learning"), 0, 0, id = NULL)
)

run <- function(names, file) {
  for (name in names) {
    p <- PROBLEMS[[name]]()
    ways <- Filter(Negate(is.null), p$ways)
    for (run in seq_len(p$runs)) for (way in names(ways)) {
      seconds <- system.time(value <- ways[[way]](run))[["elapsed"]]
      if (is.null(value)) next
      row <- data.frame(problem = name, rows = p$rows, groups = p$groups, effects = p$effects,
                        way = way, run = run, log_evidence = value[1], se = value[2],
                        seconds = seconds)
      write.table(row, file, append = file.exists(file), col.names = !file.exists(file),
                  row.names = FALSE, sep = ",")
      cat(name, "|", way, "|", format(value[1], digits = 8), "|", seconds, "\n")
    }
  }
}

report <- function(file) {
  all <- read.csv(file)
  cat("| problem | rows | groups | effects | way | log evidence | seconds |\n",
      "|---|---|---|---|---|---|---|\n", sep = "")
  for (name in intersect(names(PROBLEMS), all$problem)) {
    own <- all[all$problem == name, ]
    for (way in unique(own$way)) {
      of <- own[own$way == way, ]
      count <- function(x) format(x, big.mark = ",", scientific = FALSE)
      cat(sprintf("| %s | %s | %s | %d | %s | %s | %.2f |\n", name, count(of$rows[1]),
                  count(of$groups[1]), of$effects[1], way,
                  if (is.na(of$log_evidence[1])) ""
                  else sprintf("%.2f (%.2f)", mean(of$log_evidence),
                               sqrt(mean(of$se^2) / nrow(of))),
                  stats::median(of$seconds)))
    }
  }
}

given <- commandArgs(TRUE)
argument <- function(k, otherwise) if (length(given) >= k) given[k] else otherwise
if (argument(1, "report") == "run") {
  names <- argument(2, "all")
  run(if (names == "all") names(PROBLEMS) else strsplit(names, ";")[[1]], argument(3, RESULTS))
} else if (given[1] == "report") {
  report(argument(2, RESULTS))
} else {
  stop("`", given[1], "` must be `run` or `report`.")
}

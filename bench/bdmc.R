# The comparison of the bidirectional Monte Carlo paper: what each estimator of the evidence of
# three latent-variable models is worth in a given time, on simulated data whose evidence the
# sandwich tells. 50 rows, 25 columns, 10 components or attributes, rank 5.
#
#   Rscript bench/bdmc.R one    [trials = 25] [directory = bench/results] [models =
#                               clustering,low_rank,binary_attributes]
#   Rscript bench/bdmc.R again  [trials = 25] [directory] [models] [estimators, by semicolons]
#   Rscript bench/bdmc.R many   [datasets = 25] [directory] [models]
#   Rscript bench/bdmc.R table  [datasets = 3] [directory]
#   Rscript bench/bdmc.R draw   [directory]
#
# `one` is the paper's own: independent trials of every estimator on one data set for each model, so
# that trials can also be combined (figures 2 to 5). `again` replaces some estimators of `one`, on
# the same data. `many` has one trial on each of many data sets,
# since one may be easy or hard. `table` fits each model, hyper-parameters unknown, to data of each
# (table 1). Seconds are those of one estimate on one core (of `again`: without the time that other
# processes had the core). Estimates by AIS are of one chain. Runs
# the installed package (R_LIBS says which).

suppressPackageStartupMessages(library(logevidence))

MODELS <- list(
  clustering = list(model = clustering(components = 10, prior_sd = 1, noise_sd = 1), steps = 5000),
  low_rank = list(model = low_rank(rank = 5, row_sd = 1, column_sd = 1, noise_sd = 1),
                  steps = 15000),
  binary_attributes = list(model = binary_attributes(attributes = 10, probabilities = 0.3,
                                                     prior_sd = 1, noise_sd = 1),
                           steps = 10000)
)
UNKNOWN <- list(clustering = clustering(components = 10, infer = TRUE),
                low_rank = low_rank(rank = 5, infer = TRUE),
                binary_attributes = binary_attributes(attributes = 10, infer = TRUE))

# One estimate each, as a user would get it. `combine` is what the paper does with several.
each <- function(sizes, method) lapply(sizes, method)
lone <- function(method) { # one particle, whose error nobody can tell
  method$settings[c("1.particles", "1.ess")] <- list(1, 0)
  method
}
ESTIMATORS <- list(
  default = list("default"),
  BIC = list(method_bic()),
  `likelihood weighting` = each(c(100, 1000, 10000), likelihood_weighting),
  AIS = each(c(10, 30, 100, 300, 1000, 3000), function(t) lone(ais(particles = 2, sigmoidal(t)))),
  `SMC, by rows` = each(c(3, 10, 30, 100, 300), function(m) method_smc("data", particles = m)),
  `SMC, by temperature` = each(c(10, 30, 100, 300), function(m) method_smc(particles = m)),
  `nested, 2 points` = each(c(1, 3, 10, 30), function(s) nested(live = 2, steps = s)),
  `nested, 20 points` = each(c(1, 5), function(s) nested(live = 20, steps = s)),
  `Chib-Murray-Salakhutdinov` = each(c(100, 1000, 10000),
                                     function(d) chib(draws = d, search = min(d, 1000),
                                                      relabel = FALSE)),
  `variational Bayes` = each(c(1, 3, 10, 30), function(r) variational(restarts = r, draws = 2))
)
REVERSE <- list(`reverse AIS` = list(method = ais(schedule = sigmoidal(3000)),
                                     budgets = c(0.01, 0.03, 0.1, 0.3, 1)),
                `sequential harmonic mean` = list(method = method_smc("data", particles = 100),
                                                  budgets = c(0.03, 0.1, 0.3, 1)))
COMBINE <- c(BIC = "max", `variational Bayes` = "max", `variational Bayes, all labellings` = "max",
             `nested, 2 points` = "average", `nested, 20 points` = "average",
             `harmonic mean` = "harmonic",
             `reverse AIS` = "harmonic", `sequential harmonic mean` = "harmonic")

LOOKS <- rbind( # colour, line, point: forwards blue, backwards orange
  default = c("#000000", 1, 8),
  BIC = c("#555555", 1, 15), `likelihood weighting` = c("#999999", 1, 16),
  `harmonic mean` = c("#111111", 2, 17),
  AIS = c("#1f4fa3", 1, 16),
  `SMC, by rows` = c("#3a9ad9", 1, 17),
  `SMC, by temperature` = c("#0b2559", 2, 15), `nested, 2 points` = c("#5cb85c", 3, 1),
  `nested, 20 points` = c("#1d7a33", 1, 16),
  `Chib-Murray-Salakhutdinov` = c("#8a5a2b", 1, 18), `variational Bayes` = c("#c2185b", 3, 1),
  `variational Bayes, all labellings` = c("#c2185b", 1, 16), `reverse AIS` = c("#e67e00", 1, 16),
  `sequential harmonic mean` = c("#f2b04a", 1, 17)
)
look <- function(estimator) list(col = LOOKS[estimator, 1], lty = as.integer(LOOKS[estimator, 2]),
                                 pch = as.integer(LOOKS[estimator, 3]))

row_of <- function(estimator, size, log_evidence, seconds)
  data.frame(estimator = estimator, size = size, log_evidence = log_evidence, seconds = seconds)

# Every estimator once, on data whose exact draw is known.
trial <- function(model, truth, seed, wanted = NULL) {
  asked <- function(names) if (is.null(wanted)) names else intersect(names, wanted)
  forward <- lapply(asked(names(ESTIMATORS)), function(name) {
    do.call(rbind, lapply(seq_along(ESTIMATORS[[name]]), function(size) {
      started <- proc.time()
      method <- ESTIMATORS[[name]][[size]]
      fit <- suppressMessages(
        if (name == "default") evidence(model, truth$data, seed = seed, progress = FALSE)
        else evidence(model, truth$data, method, seed = seed, progress = FALSE))
      seconds <- seconds_of(fit, name) * if (is.null(wanted)) 1 else share_of_core(started)
      if (name != "variational Bayes") return(row_of(name, size, fit$log_evidence, seconds))
      rbind(row_of(name, size, fit$variational$bound, seconds),
            row_of("variational Bayes, all labellings", size, fit$log_evidence, seconds))
    }))
  })
  # from the exact draw
  encoded <- logevidence:::encode(model, truth$data)
  words <- logevidence:::seed_words(seed)
  harmonic <- lapply(if (length(asked("harmonic mean"))) 1:3, function(size) {
    problem <- logevidence:::new_problem(model, encoded,
                                         lone(harmonic_mean(particles = 2, draws = 10^(size + 1))),
                                         words)
    problem$settings$from_state <- unname(truth$state)
    out <- logevidence:::conduct(problem, encoded$rows)
    row_of("harmonic mean", size, drop(out$log_evidence), drop(out$seconds))
  })
  reverse <- lapply(asked(names(REVERSE)), function(name) {
    own <- REVERSE[[name]]
    freeze <- logevidence:::frozen_latent(model, encoded, own$method, words, 1, 1)
    do.call(rbind, lapply(seq_along(own$budgets), function(size) {
      started <- proc.time()
      method <- freeze(own$budgets[size], unname(truth$state))
      problems <- logevidence:::problems_of_side(model, encoded, method, 1, words, 2 * size)
      runs <- lapply(problems, function(problem) logevidence:::conduct(problem, encoded$rows))
      walked <- logevidence:::estimates_of_side(runs, -1,
                                                logevidence:::has_trait(own$method, "independent"))
      row_of(name, size, walked$log_evidence,
             walked$seconds * if (is.null(wanted)) 1 else share_of_core(started))
    }))
  })
  do.call(rbind, c(forward, harmonic, reverse))
}

# The estimator alone where its trace has the time, without the checks that the package adds, which
# take some .05 s; the default with its checks.
seconds_of <- function(fit, name) {
  own <- fit$trace$seconds
  if (name == "default" || !length(own)) fit$work[["seconds"]] else max(own)
}

share_of_core <- function(started) {
  spent <- proc.time() - started
  min(1, (spent[["user.self"]] + spent[["sys.self"]]) / max(spent[["elapsed"]], 1e-3))
}

# The data set of `one`, and the truth that its file has.
again <- function(trials, directory, models, estimators) {
  wanted <- strsplit(estimators, ";")[[1]]
  for (name in strsplit(models, ",")[[1]]) {
    file <- file.path(directory, sprintf("bdmc-%s-one.csv", name))
    old <- read.csv(file)
    made <- bdmc(MODELS[[name]]$model, 50, 25, ais(schedule = sigmoidal(2)), chains = 2,
                 budgets = 1, seed = 1, progress = FALSE)
    truth <- list(data = made$data, state = made$state)
    runs <- do.call(rbind, lapply(seq_len(trials), function(t) cbind(
      trial = t, trial(MODELS[[name]]$model, truth, 1000 + t, wanted))))
    runs <- cbind(model = name, dataset = 1, truth = old$truth[1], gap = old$gap[1], runs,
                  error = runs$log_evidence - old$truth[1])
    number <- vapply(runs, is.double, NA)
    runs[number] <- lapply(runs[number], signif, 8)
    write.csv(rbind(old[!old$estimator %in% wanted, ], runs), file, row.names = FALSE)
  }
}

true_evidence <- function(own, seed) {
  truth <- bdmc(own$model, 50, 25, ais(schedule = sigmoidal(own$steps)), chains = 25, budgets = 1,
                seed = seed, progress = FALSE)
  list(data = truth$data, state = truth$state,
       middle = mean(unlist(truth$bounds[c("lower", "upper")])), gap = truth$bounds$gap)
}

compare_on <- function(name, datasets, trials) {
  own <- MODELS[[name]]
  do.call(rbind, lapply(seq_len(datasets), function(d) {
    truth <- true_evidence(own, d)
    runs <- do.call(rbind, lapply(seq_len(trials), function(t)
                                    cbind(trial = t, trial(own$model, truth, 1000 * d + t))))
    cbind(model = name, dataset = d, truth = truth$middle, gap = truth$gap, runs,
          error = runs$log_evidence - truth$middle)
  }))
}

log_mean <- function(x) max(x) + log(mean(exp(x - max(x))))
combined <- function(errors, estimator) {
  how <- if (estimator %in% names(COMBINE)) COMBINE[[estimator]] else "arithmetic"
  switch(how, max = max(errors), average = mean(errors), harmonic = -log_mean(-errors),
         arithmetic = log_mean(errors))
}

summarise <- function(runs) {
  parts <- split(runs, list(runs$estimator, runs$size), drop = TRUE)
  out <- do.call(rbind, lapply(parts, function(p) {
    data.frame(estimator = p$estimator[1], size = p$size[1], seconds = mean(p$seconds),
               mean = mean(p$error),
               half = 1.96 * stats::sd(p$error) / sqrt(nrow(p)), rms = sqrt(mean(p$error^2)),
               combined = if (length(unique(p$dataset)) == 1) combined(p$error, p$estimator[1]) else
                 NA)
  }))
  out[order(out$estimator, out$size), ]
}

panel <- function(summary, what, main, limits = NULL, log = "xy", guide = NULL) {
  y <- summary[[what]]
  if (log == "xy") y <- pmax(abs(y), 0.03)
  plot(summary$seconds, y, type = "n", log = log, xlab = "Seconds of one estimate", ylab = "",
       ylim = limits)
  title(main, font.main = 2, cex.main = 1, adj = 0)
  abline(h = guide, col = "grey60", lty = 2)
  for (estimator in unique(summary$estimator)) {
    own <- summary$estimator == estimator
    if (what == "mean") suppressWarnings(
      arrows(summary$seconds[own], y[own] - summary$half[own], y1 = y[own] + summary$half[own],
             angle = 90, code = 3, length = 0.02, col = look(estimator)$col))
    do.call(lines, c(list(summary$seconds[own], y[own], type = "o", cex = 0.8, lwd = 1.5),
                     look(estimator)))
  }
}

# The paper's figures: estimates by time, from afar and near, and errors, alone and combined.
figure <- function(summary, name, file) {
  png(file, 1700, 1150, res = 130)
  old <- options(scipen = 6)
  on.exit({
    dev.off()
    options(old)
  })
  one <- !anyNA(summary$combined)
  layout(rbind(c(1, 2, 5), c(3, 4, 5)), widths = c(1, 1, 0.62))
  par(mar = c(3.6, 4.2, 2.6, 0.8), mgp = c(2.3, 0.6, 0), tcl = -0.3, las = 1, cex = 0.85)
  names <- intersect(rownames(LOOKS), summary$estimator)
  title <- sub("_", " ", name)
  panel(summary, "mean", paste0(title, ": mean error of the log evidence, nats"), log = "x",
        guide = 0)
  panel(summary, "mean", "the same, nearer", c(-40, 40), "x", 0)
  panel(summary, "rms", "rms error of one estimate", guide = 10)
  if (one) panel(summary, "combined", "error of all trials combined", guide = 10) else plot.new()
  par(mar = c(0, 0, 0, 0))
  plot.new()
  do.call(legend, c(list("left", names, lwd = 1.5, bty = "n", seg.len = 3), look(names)))
}

report <- function(runs, name, kind, directory) {
  summary <- summarise(runs)
  gaps <- tapply(runs$gap, runs$dataset, `[`, 1)
  cat(sprintf("%s, %s: gap of the sandwich %.2f on average, %.2f at most\n", name, kind, mean(gaps),
              max(gaps)))
  cat(sprintf("%-34s %10s %10s %10s %10s\n", "estimator", "seconds", "mean", "rms", "combined"))
  cat(sprintf("%-34s %10.4f %10.2f %10.2f %10.2f\n", summary$estimator, summary$seconds,
              summary$mean, summary$rms, summary$combined), sep = "")
  figure(summary, name, file.path(directory, sprintf("bdmc-%s-%s.png", name, kind)))
}

comparison <- function(kind, count, directory, models) {
  for (name in strsplit(models, ",")[[1]]) {
    runs <- if (kind == "one") compare_on(name, 1, count) else compare_on(name, count, 1)
    number <- vapply(runs, is.numeric, NA)
    runs[number] <- lapply(runs[number], signif, 8)
    write.csv(runs, file.path(directory, sprintf("bdmc-%s-%s.csv", name, kind)), row.names = FALSE)
    report(runs, name, kind, directory)
  }
}

# Table 1: log evidence of each model, hyper-parameters unknown, on data of each.
cross_table <- function(datasets, directory) {
  method <- ais(particles = 5, sigmoidal(30000))
  runs <- do.call(rbind, lapply(seq_len(datasets),
                                function(d) do.call(rbind, lapply(names(MODELS), function(from) {
    data <- bdmc(MODELS[[from]]$model, 50, 25, ais(schedule = sigmoidal(2)), chains = 2,
                 budgets = 1, seed = d, progress = FALSE)$data
    do.call(rbind, lapply(names(UNKNOWN), function(to) {
      fit <- evidence(UNKNOWN[[to]], data, method, seed = d, progress = FALSE)
      # nested sampling crosses phase transitions, annealing does not
      check <- evidence(UNKNOWN[[to]], data, nested(live = 25, steps = 10), seed = d,
                        progress = FALSE)
      data.frame(dataset = d, data = from, model = to, log_evidence = fit$log_evidence, se = fit$se,
                 seconds = fit$work[["seconds"]], nested = check$log_evidence, nested_se = check$se)
    }))
  }))))
  write.csv(runs, file.path(directory, "bdmc-table.csv"), row.names = FALSE)
  for (d in seq_len(datasets)) {
    own <- runs[runs$dataset == d, ]
    value <- matrix(own$log_evidence, 3, byrow = TRUE,
                    dimnames = list(data = names(MODELS), model = names(UNKNOWN)))
    cat("data set", d, "\n")
    print(round(value, 1))
    cat("less than the true model's:\n")
    print(round(diag(value) - value, 1))
  }
  cat(sprintf("largest difference from nested sampling %.1f nats, %.1f of its standard errors\n",
              max(abs(runs$nested - runs$log_evidence)),
              max(abs(runs$nested - runs$log_evidence) / runs$nested_se)))
}

main <- function(what = "one", count = NULL, directory = "bench/results",
                 models = paste(names(MODELS), collapse = ","), estimators = "default") {
  if (what == "draw" && !is.null(count)) directory <- count
  dir.create(directory, showWarnings = FALSE, recursive = TRUE)
  if (what == "again")
    return(again(as.integer(count), directory, models, estimators))
  if (what == "table") return(cross_table(as.integer(if (is.null(count)) 3 else count), directory))
  if (what != "draw")
    return(comparison(what, as.integer(if (is.null(count)) 25 else count), directory, models))
  all <- NULL
  for (name in names(MODELS)) for (kind in c("one", "many")) {
    file <- file.path(directory, sprintf("bdmc-%s-%s.csv", name, kind))
    if (!file.exists(file)) next
    runs <- read.csv(file)
    report(runs, name, kind, directory)
    all <- rbind(all, cbind(model = name, kind = kind, gap = max(abs(runs$gap)), summarise(runs)))
  }
  number <- vapply(all, is.numeric, NA)
  all[number] <- lapply(all[number], signif, 4)
  write.csv(all, file.path(directory, "bdmc-summary.csv"), row.names = FALSE)
}

invisible(do.call(main, as.list(commandArgs(trailingOnly = TRUE))))

# Figures 2 to 5 of the paper show means of 25 trials with confidence limits, and estimates that
# combine the 25. Here each estimator has 100 trials, four times 25: whether the limits hold, and
# what combining is worth.

source("reproduce/latent-models.R", local = TRUE)

# Trials of every estimator on one data set; how 25 of them are combined.
trials_of <- function(name, full) {
  model <- LATENT_MODELS[[name]]()
  both <- function(method, chains) bdmc(model, 50, 25, method, chains = chains, budgets = 1,
                                        seed = 1, progress = FALSE)
  truth <- both(ais(schedule = sigmoidal(if (full) 10000 else 2000)), if (full) 25 else 10)
  middle <- mean(c(truth$bounds$lower, truth$bounds$upper))
  trials <- if (full) 100 else 50
  two_ways <- function(names, method) {
    run <- both(method, trials)
    rbind(data.frame(estimator = names[1], value = run$forward),
          data.frame(estimator = names[2], value = run$reverse))
  }
  alone <- function(estimator, method, what = function(fit) fit$log_evidence) data.frame(
    estimator = estimator, value = vapply(seq_len(trials), function(t)
      what(quiet_evidence(model, truth$data, method, seed = t)), 0))
  rows <- rbind(
    two_ways(c("AIS, 30", "reverse AIS, 30"), ais(schedule = sigmoidal(30))),
    two_ways(c("AIS, 1000", "reverse AIS, 1000"), ais(schedule = sigmoidal(1000))),
    two_ways(c("SMC", "sequential harmonic mean"), method_smc("data", particles = 1, steps = 1)),
    alone("nested sampling", nested(live = 2, steps = 1, tol = exp(-10))),
    alone("Chib-Murray-Salakhutdinov", chib(draws = 100, relabel = FALSE)),
    alone("likelihood weighting", likelihood_weighting(1000)),
    alone("harmonic mean", harmonic_mean(particles = 2, draws = 50, start = truth$state)))
  data.frame(model = name, rows[1], trial = rep_len(seq_len(trials), nrow(rows)),
             error = signif(rows$value - middle, 6), gap = truth$bounds$gap)
}

RECIPROCAL <- c("reverse AIS, 30", "reverse AIS, 1000", "sequential harmonic mean", "harmonic mean")
combined_of <- function(estimator, x) {
  if (estimator %in% RECIPROCAL) return(-log_mean(-x))
  if (estimator == "nested sampling") mean(x) else log_mean(x)
}

# Each 25 trials: mean, half of their confidence interval, rms, combination; the mean of the others.
groups_of_25 <- function(table) {
  table$group <- (table$trial - 1) %/% 25
  key <- interaction(table$model, table$estimator, table$group, drop = TRUE)
  do.call(rbind, lapply(split(table, key), function(own) {
    others <- table$error[table$model == own$model[1] & table$estimator == own$estimator[1] &
                          table$group != own$group[1]]
    spread <- sd(own$error)
    data.frame(own[1, c("model", "estimator", "group")], mean = mean(own$error),
               half = qt(0.975, 24) * spread / 5, rms = sqrt(mean(own$error^2)),
               combined = combined_of(own$estimator[1], own$error),
               # 25 against the mean of the others
               covers = abs(mean(own$error) - mean(others)) <
                 qt(0.975, 24) * spread * sqrt(1 / 25 + 1 / length(others)))
  }))
}

item(
  "bidirectional", "claim-trials", "means of 25 trials, their confidence limits, and combinations",
  reported = "confidence limits, whose level is not stated, are for the expected estimate and mostly
              miss the truth; combining 25 trials
              improves AIS and SMC where single ones are within 10 nats, elsewhere it makes little
              difference",
  settings = "one data set of each model, 50 rows, 25 columns; 100 trials of ten estimators, four
              times 25; limits are those of Student's t for a confidence of 95%; combined by the
              arithmetic mean, the harmonic one for estimators of 1 / Z, the mean of logarithms for
              nested sampling; the Chib-Murray-Salakhutdinov estimator is without relabelling",
  run = function(full) do.call(rbind, lapply(
    names(LATENT_MODELS)[if (full) 1:3 else 2], trials_of, full)),
  draw = function(table) {
    groups <- groups_of_25(table)
    first <- groups[groups$group == 0, ]
    layout(matrix(1:3, 1), widths = c(1.6, 1, 1))
    scale <- function(x) asinh(x)
    marks <- c(-1000, -100, -10, -1, 0, 1, 10, 100, 1000)
    names <- unique(table$estimator)
    for (model in unique(table$model)) {
      par(mar = c(4, if (model == table$model[1]) 13 else 1, 2, 0.6))
      own <- first[first$model == model, ]
      at <- length(names) - match(own$estimator, names) + 1
      plot(scale(range(first$mean, first$combined)), c(0.5, length(names) + 0.5), type = "n",
           axes = FALSE, xlab = "error, nats", ylab = "")
      axis(1, scale(marks), marks)
      if (model == table$model[1]) axis(2, rev(seq_along(names)), names, tick = FALSE)
      box()
      title(gsub("_", " ", model), adj = 0, font.main = 2, cex.main = 1)
      abline(v = 0, lty = 2, col = "grey50")
      segments(scale(own$mean - own$half), at, scale(own$mean + own$half), lwd = 4, col = "#56B4E9")
      points(scale(own$mean), at, pch = 16, col = "#0072B2")
      points(scale(own$combined), at, pch = 5, col = "#D55E00")
    }
    legend("bottomright", c("mean, 95% limits", "combined"), pch = c(16, 5), bg = "white",
           col = c("#0072B2", "#D55E00"))
  },
  alt = "Three panels, one for each model: mean errors of ten estimators with short bars of their
         confidence limits, and diamonds of the 25 trials combined, which are near zero only where
         the means are.",
  judge = function(table) {
    groups <- groups_of_25(table)
    by <- list(model = groups$model, estimator = groups$estimator)
    whole <- aggregate(cbind(rms = rms, combined = abs(combined)) ~ model + estimator, groups, mean)
    whole$left <- whole$combined / whole$rms
    groups$left <- abs(groups$combined) / groups$rms
    whole[c("least", "most")] <- aggregate(left ~ model + estimator, groups, range)$left
    good <- grepl("^(AIS|SMC)", whole$estimator) & whole$rms < 10
    rest <- whole$rms > 10
    covered <- mean(groups$covers)
    misses <- mean(abs(groups$mean) > groups$half)
    ok <- c(covered > 0.9, misses > 0.5, all(whole$left[good] < 0.9),
            median(whole$left[rest]) > 0.7 && mean(whole$left[rest] > 0.5) >= 0.75)
    told <- function(rows) paste(sprintf(
      "%s on %s %.0f%% (%.0f to %.0f)", whole$estimator, gsub("_", " ", whole$model),
      100 * whole$left, 100 * whole$least, 100 * whole$most)[rows], collapse = ", ")
    interval <- 100 * binom.test(sum(groups$covers), nrow(groups))$conf.int
    list(verdict = if (all(ok)) "reproduced" else "not reproduced",
         obtained = sprintf("95%% limits of 25 trials hold for %.0f%% of %d groups (95%% interval
                             %.0f to %.0f%%) and miss the truth in %.0f%%; combining leaves of the
                             rms error (in brackets: least and most of four groups): %s; of the %d
                             cases above ten nats a median of %.0f%%", 100 * covered, nrow(groups),
                            interval[1], interval[2], 100 * misses, told(good), sum(rest),
                            100 * median(whole$left[rest])),
         why = paste0("limits are checked against the mean of the other 75 trials",
                      if (any(rest & whole$left < 0.5)) paste0("; combining does help above ten
                                                                nats for ", told(rest &
                                                                  whole$left < 0.5)) else ""))
  },
  size = c(11, 4)
)

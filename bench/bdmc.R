# The comparison of the bidirectional Monte Carlo paper: what each estimator of the evidence of three latent-variable models
# is worth in a given time, on simulated data whose evidence the sandwich tells. 50 rows, 25 columns, 10 components or
# attributes, rank 5.
#
#   Rscript bench/bdmc.R [trials = 25] [directory = bench/results] [models = clustering,low_rank,binary_attributes]
#
# Errors are over the trials, each a data set of its own; seconds are those of one estimate on one core. Estimates by AIS,
# forwards and in reverse, by the sequential harmonic mean (populations of 30) and by SMC with particles that are not
# resampled combine two chains. Runs the installed package (R_LIBS says which).

suppressPackageStartupMessages(library(logevidence))

MODELS <- list(
  clustering = list(model = clustering(components = 10, prior_sd = 1, noise_sd = 1), steps = 3000),
  low_rank = list(model = low_rank(rank = 5, row_sd = 1, column_sd = 1, noise_sd = 1), steps = 3000),
  binary_attributes = list(model = binary_attributes(attributes = 10, probabilities = 0.3, prior_sd = 1, noise_sd = 1),
                           steps = 5000)
)

# One estimate each: forward as a user would get it.
ESTIMATORS <- list(
  `likelihood weighting` = lapply(c(100, 1000, 10000), likelihood_weighting),
  AIS = lapply(c(10, 30, 100, 300, 1000, 3000), function(t) ais(particles = 2, sigmoidal(t))),
  `SMC, by rows` = lapply(c(2, 10, 30, 100, 300), function(m) smc("data", particles = m)),
  `SMC, two lone particles` = lapply(c(1, 3, 10, 30), function(s) smc("data", particles = 2, threshold = 0, steps = s)),
  `SMC, from the prior` = lapply(c(30, 300, 1000), function(m) smc("data", particles = m, proposal = "prior")),
  `SMC, by temperature` = lapply(c(10, 100, 300), function(m) smc(particles = m)),
  `Chib-Murray-Salakhutdinov` = lapply(c(100, 1000), function(d) chib(draws = d, search = d))
)

trial <- function(name, seed) {
  own <- MODELS[[name]]
  truth <- bdmc(own$model, 50, 25, ais(schedule = sigmoidal(own$steps)), chains = 10, seed = seed, progress = FALSE)
  bounds <- truth$bounds[nrow(truth$bounds), ]
  middle <- (bounds$lower + bounds$upper) / 2
  forward <- do.call(rbind, lapply(names(ESTIMATORS), function(estimator) {
    do.call(rbind, lapply(seq_along(ESTIMATORS[[estimator]]), function(size) {
      fit <- evidence(own$model, truth$data, ESTIMATORS[[estimator]][[size]], seed = seed + 1000, progress = FALSE)
      data.frame(estimator = estimator, size = size, error = fit$log_evidence - middle, seconds = fit$work[["seconds"]])
    }))
  }))
  # and backward, from the exact draw
  backward <- do.call(rbind, lapply(list(`reverse AIS` = ais(schedule = sigmoidal(1000)), `sequential harmonic mean` =
    smc("data", particles = 30)), function(method) {
      b <- bdmc(own$model, 50, 25, method, chains = 2, seed = seed, progress = FALSE)$bounds
      data.frame(size = seq_len(nrow(b)), error = b$upper - middle, seconds = b$seconds / 2)
    }))
  backward$estimator <- sub("\\.[0-9]+$", "", rownames(backward))
  cbind(model = name, trial = seed, truth = middle, gap = bounds$gap, rbind(forward, backward[names(forward)]))
}

figure <- function(summary, name, file) {
  png(file, 1100, 750, res = 130)
  on.exit(dev.off())
  par(mar = c(3.6, 5, 2.6, 12), mgp = c(2.4, 0.6, 0), tcl = -0.3, las = 1)
  own <- summary[summary$model == name, ]
  names <- unique(own$estimator)
  colours <- setNames(grDevices::hcl.colors(length(names), "Dark 3"), names)
  plot(own$seconds, own$rms, type = "n", log = "xy", xlab = "Seconds", ylab = "", font.main = 2, cex.main = 1,
       main = sprintf("%s: error of the log evidence by time", sub("_", " ", name)))
  title(ylab = "rms error, nats", line = 3.6)
  abline(h = 10, col = "grey60", lty = 2)
  for (estimator in names) {
    line <- own[own$estimator == estimator, ]
    line <- line[order(line$seconds), ]
    lines(line$seconds, line$rms, col = colours[[estimator]], type = "o", pch = 16, lwd = 1.5)
  }
  legend(grconvertX(1.02, "npc"), grconvertY(1, "npc"), names, col = colours, lwd = 2, pch = 16, bty = "n", xpd = TRUE, cex = 0.8)
}

main <- function(trials = "25", directory = "bench/results", models = paste(names(MODELS), collapse = ",")) {
  dir.create(directory, showWarnings = FALSE, recursive = TRUE)
  all <- NULL
  for (name in strsplit(models, ",")[[1]]) {
    own <- do.call(rbind, lapply(seq_len(as.integer(trials)), function(seed) trial(name, seed)))
    all <- rbind(all, own)
    summary <- aggregate(cbind(error, seconds) ~ model + estimator + size, own, mean)
    squares <- aggregate(error^2 ~ model + estimator + size, own, mean)
    summary$rms <- sqrt(squares[[4]])
    summary <- summary[order(summary$estimator, summary$size), ]
    gaps <- tapply(own$gap, own$trial, `[`, 1)
    cat(sprintf("%s: gap of the sandwich %.2f on average, %.2f at most\n", name, mean(gaps), max(gaps)))
    cat(sprintf("%-28s %10s %10s %10s\n", "estimator", "seconds", "mean", "rms"))
    cat(sprintf("%-28s %10.4f %10.2f %10.2f\n", summary$estimator, summary$seconds, summary$error, summary$rms), sep = "")
    figure(summary, name, file.path(directory, sprintf("bdmc-%s.png", name)))
    write.csv(own, file.path(directory, sprintf("bdmc-%s.csv", name)), row.names = FALSE)
  }
}

do.call(main, as.list(commandArgs(trailingOnly = TRUE)))

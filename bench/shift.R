# Streams whose law changes on the way, as in the SGAIS article: 1,000 rows from 3 clusters, 9,000
# from 5, 90,000 from 7, and mixtures of 3, 5 and 7 components walked in that order, and shuffled.
#
#   Rscript bench/shift.R [streams = 5] [directory = bench/results] [rows = 100000]
#   Rscript bench/shift.R draw [directory = bench/results]
#
# The reference is the best of three laplace(importance = 400), which climb from the prior and do
# not care about the order. Runs the installed package (R_LIBS says which). Writes shift.csv and
# shift-trace.csv, and draws the first stream.

suppressPackageStartupMessages(library(logevidence))

simulated <- function(rows, seed) {
  set.seed(seed)
  centre <- cbind(c(0, 4, -4, 4, -4, 8, 0), c(0, 4, -4, -4, 4, 0, 8)) +
    matrix(rnorm(14, sd = 0.5), 7)
  sd <- matrix(sqrt(1 / rgamma(14, 4, 3)), 7)
  clusters <- rep(c(3, 5, 7), times = round(rows * c(0.01, 0.09, 0.90)))
  z <- vapply(clusters, function(k) sample.int(k, 1), 1L)
  centre[z, ] + sd[z, ] * matrix(rnorm(2 * length(z)), length(z))
}

one_run <- function(data, components, order, seed) {
  fit <- evidence(gaussian_mixture(components = components, location = 0, rate = 1),
                  data, sgais(order = order),
                  seed = seed)
  list(fit = fit, row = data.frame(components = components, order = order,
                                   log_evidence = fit$log_evidence, se = fit$se,
                                   sampler = fit$sampler$log_evidence, sampler_se = fit$sampler$se,
                                   audit = fit$audit$log_evidence, audit_se = fit$audit$se,
                                   source = fit$source,
                                   restarts = if (is.null(fit$trace$restarts)) NA else
                                     max(fit$trace$restarts),
                                   warned = length(fit$warnings), seconds = fit$work[["seconds"]]))
}

main <- function(streams = "5", directory = "bench/results", rows = "100000") {
  dir.create(directory, showWarnings = FALSE, recursive = TRUE)
  table <- trace <- NULL
  for (stream in seq_len(as.integer(streams))) {
    data <- simulated(as.integer(rows), stream)
    for (components in c(3, 5, 7)) {
      reference <- max(vapply(1:3, function(seed)
        evidence(gaussian_mixture(components = components, location = 0, rate = 1),
                 data, laplace(importance = 400),
                 seed = seed)$log_evidence, 0))
      for (order in c("given", "shuffled")) {
        run <- one_run(data, components, order, stream)
        table <- rbind(table, cbind(stream = stream, run$row, reference = reference))
        trace <- rbind(trace, cbind(stream = stream, components = components, order = order,
                                    run$fit$trace[c("n", "log_evidence", "lambda_steps")]))
        print(utils::tail(table, 1), row.names = FALSE)
      }
    }
  }
  write.csv(table, file.path(directory, "shift.csv"), row.names = FALSE)
  write.csv(trace, file.path(directory, "shift-trace.csv"), row.names = FALSE)
  draw(directory)
}

# As the article does: log Z / N by order and model against N, and the annealing steps of each
# chunk.
draw <- function(directory = "bench/results") {
  trace <- subset(read.csv(file.path(directory, "shift-trace.csv")), stream == 1)
  table <- subset(read.csv(file.path(directory, "shift.csv")), stream == 1)
  colour <- c("3" = "#b2182b", "5" = "#e08214", "7" = "#2166ac")
  grDevices::png(file.path(directory, "shift.png"), 1900, 1300, res = 130)
  graphics::layout(matrix(1:4, 2))
  graphics::par(mar = c(4, 4.5, 2.5, 1), las = 1)
  for (order in c("given", "shuffled")) {
    part <- trace[trace$order == order & trace$n >= 100, ]
    lines_of <- function(y, ...) for (k in names(colour)) {
      own <- part$components == as.numeric(k)
      graphics::lines(part$n[own], y[own], col = colour[[k]], lwd = 2, ...)
    }
    y <- part$log_evidence / part$n
    graphics::plot(part$n, y, log = "x", type = "n", xlab = "rows", ylab = "log Z / rows, nats",
                   main = if (order == "given") "in order: 3, then 5, then 7 clusters" else
                     "shuffled")
    graphics::abline(v = c(0.01, 0.1) * max(part$n), lty = if (order == "given") 3 else 0,
                     col = "grey50")
    lines_of(y)
    last <- table[table$order == order, ]
    graphics::points(rep(max(part$n), nrow(last)), last$log_evidence / max(part$n), pch = 19,
                     col = colour[as.character(last$components)])
    graphics::points(rep(max(part$n), nrow(last)), last$reference / max(part$n), pch = 1, cex = 1.8)
    if (order == "given")
      graphics::legend("bottomleft", c(paste(names(colour), "components"), "reported", "reference"),
                       col = c(colour, 1, 1),
                       lwd = c(2, 2, 2, NA, NA), pch = c(NA, NA, NA, 19, 1), bty = "n")
    graphics::plot(part$n, part$lambda_steps, log = "xy", type = "n", xlab = "rows",
                   ylab = "annealing steps of a chunk")
    lines_of(part$lambda_steps, type = "s")
  }
  grDevices::dev.off()
}

asked <- as.list(commandArgs(trailingOnly = TRUE))
if (sys.nframe() == 0) {
  if (length(asked) && asked[[1]] == "draw") do.call(draw, asked[-1]) else do.call(main, asked)
}

# The demonstration: two questions to data that come with R, each answered by the evidence of
# several models.
#
#   make demo
#
# Prints a table and a sentence for each, and writes pictures to the folder demo-output/.

suppressPackageStartupMessages(library(logevidence))

here <- dirname(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[1]))
folder <- file.path(dirname(normalizePath(here)), "demo-output")
dir.create(folder, showWarnings = FALSE)
started <- proc.time()[["elapsed"]]

say <- function(...) cat(strwrap(paste0(...), 78), sep = "\n")

timed_fit <- function(model, data) {
  time <- system.time(fit <- evidence(model, data, seed = 1, progress = FALSE))
  fit$wall <- time[["elapsed"]]
  fit
}

# The sampler and the audit are two estimates of the same number. Five joint standard errors apart,
# and more than a nat, they contradict each other, whichever of them is reported.
contradicted <- function(fit) {
  if (is.null(fit$audit) || !is.finite(fit$audit$log_evidence)) return(FALSE)
  gap <- abs(fit$sampler$log_evidence - fit$audit$log_evidence)
  gap > max(1, 5 * sqrt(fit$sampler$se^2 + fit$audit$se^2))
}

comparison <- function(fits) {
  log_evidence <- vapply(fits, logml, 0)
  against_best <- log_evidence - max(log_evidence)
  data.frame(
    model = names(fits),
    `log evidence` = sprintf("%.2f", log_evidence),
    se = sprintf("%.3f", vapply(fits, `[[`, 0, "se")),
    source = paste0(vapply(fits, `[[`, "", "source"),
                    ifelse(vapply(fits, contradicted, TRUE), " (!)", "")),
    `log BF` = sprintf("%.2f", against_best),
    probability = format.pval(exp(against_best) / sum(exp(against_best)), digits = 2, eps = 1e-4),
    seconds = sprintf("%.2f", vapply(fits, `[[`, 0, "wall")),
    check.names = FALSE
  )
}

# log BF: log Bayes factor against the best model. Probabilities are for models of equal prior
# probability.
print_comparison <- function(table) print(table, row.names = FALSE, right = TRUE)

# The best model, the runner-up, and in words how far apart they are (after Kass and Raftery, 1995).
verdict <- function(fits, of = "") {
  ordered <- sort(vapply(fits, logml, 0), decreasing = TRUE)
  gap <- ordered[[1]] - ordered[[2]]
  strength <- if (gap < 1) "hardly more probable than" else if (gap < 3) "more probable than"
  else if (gap < 5) "strongly preferred to" else "very strongly preferred to"
  say("Best: ", names(ordered)[1], of, ". It is ", strength, " the next, ", names(ordered)[2],
      ": the data are ", format(signif(exp(gap), 2), big.mark = ",", scientific = gap > 12),
      " times as probable under it.")
}

warn_of_contradictions <- function(fits) {
  bad <- Filter(contradicted, fits)
  if (!length(bad)) return(invisible())
  each <- vapply(names(bad), function(name) sprintf(
    "%s %.1f by the sampler and %.1f by the audit", name, bad[[name]]$sampler$log_evidence,
    bad[[name]]$audit$log_evidence
  ), "")
  say("(!) The sampler and the audit contradict each other: ", paste(each, collapse = "; "),
      ". Neither number, nor its standard error, is to be trusted there; more moves, as in ",
      "sgais(early = list(steps = 4)), bring them closer together at a price in time.")
}

picture <- function(name, draw, width = 1400, height = 1000) {
  path <- file.path(folder, name)
  grDevices::png(path, width, height, res = 150)
  tryCatch(draw(), finally = grDevices::dev.off())
  path
}

# How many kinds of eruption has Old Faithful? -----------------------------------------------------

say("HOW MANY KINDS OF ERUPTION HAS OLD FAITHFUL?")
say("272 eruptions: how long they lasted and how long the wait for the next was (data set ",
    "faithful, both columns standardised). The models are mixtures of 1 to 6 Gaussians with ",
    "diagonal covariances, all from one call; log BF is the log Bayes factor against the best, ",
    "and the probabilities take the models for equally probable beforehand.")
cat("\n")

eruptions <- as.data.frame(scale(faithful))
time <- system.time(
  mixtures <- evidence(gaussian_mixture(~ eruptions + waiting, components = 1:6), eruptions,
                       seed = 1, progress = FALSE)
)
print(mixtures)
cat("\n")
say(sprintf("%.1f seconds in all.", time[["elapsed"]]))

best_mixture <- attr(mixtures, "fits")[[1]]

draw_clusters <- function() {
  member <- max.col(predict(best_mixture, eruptions, type = "probability"), "first")
  side <- function(x) seq(min(x) - 0.4, max(x) + 0.4, length.out = 80)
  axes <- lapply(eruptions, side)
  density <- matrix(predict(best_mixture, expand.grid(axes), type = "density"), 80)
  graphics::par(mar = c(4.2, 4.5, 3.2, 1), las = 1)
  graphics::plot(eruptions, type = "n", xlab = "Length of eruption, standardised",
                 ylab = "Wait, standardised",
                 main = paste0("Old Faithful: predictive density, ", best_mixture$model$components,
                               " components"))
  graphics::contour(axes[[1]], axes[[2]], exp(density), nlevels = 9, add = TRUE, col = "grey70",
                    drawlabels = FALSE)
  graphics::points(eruptions, pch = member, col = c("#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                                    "#E69F00", "#56B4E9")[member],
                   cex = 0.9, lwd = 1.5)
}

pictures <- c(
  picture("faithful-components.png", function() plot(mixtures), 1600, 800),
  picture("faithful-clusters.png", draw_clusters),
  picture("faithful-fit.png", function() plot(best_mixture), 1600, 1200)
)

# What decides how far a car goes on a gallon? -----------------------------------------------------

cat("\n")
say("WHAT DECIDES HOW FAR A CAR GOES ON A GALLON?")
say("32 cars (data set mtcars, all columns standardised). Linear regressions with unknown noise ",
    "and default priors, on weight; weight and power; these, gears and axle ratio; ",
    "and all ten columns. Here the exact evidence is known.")
cat("\n")

cars32 <- as.data.frame(scale(mtcars))
formulas <- list(`weight` = mpg ~ wt, `weight, power` = mpg ~ wt + hp,
                 `four columns` = mpg ~ wt + hp + gear + drat, `all ten columns` = mpg ~ .)
models <- lapply(formulas, linear_regression)
regressions <- lapply(models, timed_fit, cars32)
exact <- vapply(models, function(model) model_functions(model, cars32)$exact(), 0)

table <- comparison(regressions)
print_comparison(cbind(table[1:2], exact = sprintf("%.2f", exact), table[-(1:2)]))
cat("\n")
verdict(regressions)
say("A wider model can always fit better; the evidence asks whether its prior led one to expect ",
    "these data.")
warn_of_contradictions(regressions)

best_regression <- regressions[[which.max(vapply(regressions, logml, 0))]]
pictures <- c(pictures, picture("mtcars-fit.png", function() plot(best_regression), 1600, 1200))

cat("\nThe best regression as it prints:\n\n")
print(best_regression)

cat("\nPictures:\n", paste0("  ", pictures, "\n"), sep = "")
cat(sprintf("%.0f seconds in all\n", proc.time()[["elapsed"]] - started))

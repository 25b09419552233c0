# The demonstration: three questions, each answered by the evidence of several models.
#
#   make demo
#
# Prints tables and sentences, and writes pictures to the folder demo-output/. Each warning is
# printed where it is raised, with the name of its model.

suppressPackageStartupMessages(library(logevidence))

here <- dirname(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[1]))
folder <- file.path(dirname(normalizePath(here)), "demo-output")
dir.create(folder, showWarnings = FALSE)
started <- proc.time()[["elapsed"]]
options(width = 80)

say <- function(...) cat(strwrap(paste0(...), 78), sep = "\n")
heading <- function(text) cat("\n", text, "\n", strrep("-", nchar(text)), "\n", sep = "")

# The first line of a warning is the model, or each of its sentences begins with the name that the
# model has in a list.
with_warnings <- function(code) {
  withCallingHandlers(code, logevidence_warning = function(w) {
    lines <- strsplit(conditionMessage(w), "\n", fixed = TRUE)[[1]]
    cat(strwrap(paste0(c("Warning: ", rep("", length(lines) - 1)), lines), 78, exdent = 2),
        sep = "\n")
    invokeRestart("muffleWarning")
  })
}

pictures <- character()
picture <- function(name, draw, width = 1400, height = 1000) {
  path <- file.path(folder, name)
  grDevices::png(path, width, height, res = 150)
  tryCatch(draw(), finally = grDevices::dev.off())
  pictures <<- c(pictures, path)
}

# Which model is better now, and when did the law change? ------------------------------------------

heading("WHICH MODEL NOW? TWO MODELS ON A STREAM")
say("4,000 readings of a machine arrive in blocks of 100: its temperature, and the load. Does the ",
    "temperature depend on the load? The effect is small (0.1 standard deviations), and at one ",
    "row the temperature rises by 0.4. Each block is read once, for both models.")
cat("\n")

set.seed(1)
readings <- data.frame(load = rnorm(4000))
readings$temperature <- 0.1 * readings$load + 0.4 * (seq_len(4000) > 2600) + rnorm(4000)
blocks <- split(readings, rep(1:40, each = 100))
at <- 0
arriving <- rows_function(function(reset) {
  if (reset) at <<- 0 else if (at < length(blocks)) blocks[[at <<- at + 1]]
})
models <- list(constant = linear_regression(temperature ~ 1),
               load = linear_regression(temperature ~ load))
race <- with_warnings(evidence(models, arriving, seed = 1, progress = FALSE))
print(race)
cat("\n")
first <- crossings(race, reference = c("load", "constant"))
passed <- function(factor) first$rows[abs(first$bayes_factor / factor - 1) < 1e-9]
say("The Bayes factor of `load` over `constant` was below 1/10 after ", passed(1 / 10),
    " rows, and above 10 after ", passed(10), ". The prior expects effects of a size of about ",
    "2.5, so that one of 0.1 looks like none until there are many rows.")
picture("stream-race.png", function() plot(race, reference = c("load", "constant")),
        1600, 900)

heading("WHEN DID ITS LAW CHANGE?")
say("The same readings: where did the parameters of the regression change, how many times, and ",
    "how sure is that?")
cat("\n")
found <- with_warnings(change_points(models$load, readings, seed = 1))
print(found)
say("(The change was made after row 2,600.)")
picture("stream-change.png", function() plot(found), 1600, 1000)

# How many kinds of eruption has Old Faithful? -----------------------------------------------------

heading("HOW MANY KINDS OF ERUPTION HAS OLD FAITHFUL?")
say("272 eruptions: how long they lasted and how long the wait for the next was (data set ",
    "faithful, both columns standardised). The models are mixtures of 1 to 6 Gaussians, all from ",
    "one call.")
cat("\n")

eruptions <- as.data.frame(scale(faithful))
mixtures <- with_warnings(evidence(
  gaussian_mixture(~ eruptions + waiting, components = 1:6), eruptions, seed = 1,
  progress = FALSE))
print(mixtures)

best_mixture <- attr(mixtures, "fits")[[1]]
picture("faithful-components.png", function() plot(mixtures), 1600, 800)
picture("faithful-clusters.png", function()
  plot(best_mixture, "clusters", data = eruptions, main = "Old Faithful"))

# What decides how far a car goes on a gallon? -----------------------------------------------------

heading("WHAT DECIDES HOW FAR A CAR GOES ON A GALLON?")
say("32 cars (data set mtcars, all columns standardised). Linear regressions with default priors ",
    "on weight; on weight and power; on these, gears and axle ratio; and on all ten columns.")
cat("\n")

cars32 <- as.data.frame(scale(mtcars))
formulas <- list(`weight` = mpg ~ wt, `weight, power` = mpg ~ wt + hp,
                 `four columns` = mpg ~ wt + hp + gear + drat, `all ten` = mpg ~ .)
regressions <- lapply(formulas, function(formula)
  with_warnings(evidence(linear_regression(formula), cars32, seed = 1, progress = FALSE)))
comparison <- compare_models(regressions)
print(comparison)
exact <- vapply(formulas, function(formula)
  logml(evidence(linear_regression(formula), cars32, exact())), 0)
error <- vapply(regressions, logml, 0) - exact
cat("\n")
say("Here the exact evidence is known. The errors of the four numbers are ",
    paste(sprintf("%.3f", error), collapse = ", "), ". A wider model can always fit better; the ",
    "evidence asks whether its prior led one to expect these data.")
picture("mtcars-fit.png", function() plot(regressions[[comparison$model[1]]]), 1600, 1200)

heading("THE BEST OF THESE REGRESSIONS, AS A PAPER WOULD SAY IT")
print(evidence_report(regressions[[comparison$model[1]]]))

cat("Pictures:\n", paste0("  ", pictures, "\n"), sep = "")
cat(sprintf("%.0f seconds in all\n", proc.time()[["elapsed"]] - started))

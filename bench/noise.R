# The noise of mini-batch gradients: what heats particles, and what is done about it, side by side.
#
#   Rscript bench/noise.R [data sets = 10] [models = linear,softmax,mixture]
#
# Linear and softmax regression of the sgais() papers (6 and 44 parameters), drawn anew from prior
# and likelihood for each data set, and a mixture of five components in two dimensions (24), drawn
# from a fixed one. The truth is exact() or laplace() with 1,000 draws, which is known to 0.04 nats
# at worst. Two walks are compared. `published` is sgais(preset = "paper"), 10 particles and 20
# steps for each distribution; `own` is the default with 30 particles and an early phase of 200
# rows, after which it is left to
#
#   plain batches of 500 rows and 20 steps of sghmc() or baoab();
#   control variates, batches of 100 rows and 5 steps of baoab(), as it is.
#
# results/noise-before.csv, of earlier code, also has two kernels that were taken out for what it
# shows: sghmc() with the gradient's noise measured on the fly (beta-hat), and a Nose-Hoover
# thermostat.
#
# Writes bench/results/noise.csv.

suppressPackageStartupMessages(library(logevidence))

here <- dirname(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[1]))
asked <- commandArgs(trailingOnly = TRUE)
most <- if (length(asked)) as.integer(asked[[1]]) else 10L
chosen <- if (length(asked) > 1) strsplit(asked[[2]], ",")[[1]] else
  c("linear", "softmax", "mixture")

SIZES <- c(1e3, 1e4, 1e5)
BATCH <- 500

regressors <- function(n, p) matrix(rnorm(n * p), n, dimnames = list(NULL, paste0("x", seq_len(p))))
PROBLEMS <- list(
  linear = list(
    model = linear_regression(sigma = 1, prior_sd = 1), truth = method_exact(),
    draw = function(n) {
      x <- regressors(n, 5)
      list(x = x, y = as.vector(cbind(1, x) %*% rnorm(6) + rnorm(n)))
    }
  ),
  softmax = list(
    model = softmax_regression(y ~ ., prior_sd = 1), truth = method_laplace(importance = 1000),
    draw = function(n) {
      x <- regressors(n, 10)
      scores <- cbind(1, x) %*% matrix(rnorm(44), 11) - log(-log(matrix(runif(4 * n), n)))
      data.frame(y = factor(max.col(scores), levels = 1:4), x)
    }
  ),
  mixture = list(
    model = gaussian_mixture(components = 5, location = 0, rate = 1),
truth = method_laplace(importance = 1000),
    draw = function(n) {
      of <- sample(5, n, TRUE, c(0.15, 0.2, 0.25, 0.25, 0.15))
      mean <- cbind(c(-3, -1.5, 0, 2, 3), c(2, -2, 1, -1, 3))
      sd <- cbind(c(0.7, 0.5, 0.6, 0.9, 0.5), c(0.5, 0.8, 0.6, 0.5, 0.9))
      mean[of, ] + sd[of, ] * matrix(rnorm(2 * n), n)
    }
  )
)

# The mixture's early moves are many: half of them do here.
own <- function(problem, ..., plain = TRUE) {
  early <- list(rows = 200, particles = 100, ess = 0.9)
  if (problem == "mixture") early[c("work", "steps")] <- list(375, 4)
  method <- sgais(particles = 30, ..., audit = FALSE, early = early)
  if (plain) method$settings[["2.gradient"]] <- "batch"
  method
}
published <- function(...) sgais(preset = "paper", ...)

settings <- function(problem, n) {
  plain <- function(...) own(problem, ..., batch = BATCH)
  c(
    list(`published, sghmc` = published()),
    list(`own, sghmc` = plain(steps = 20, kernel = kernel_sghmc())),
    list(`own, baoab` = plain(steps = 20, kernel = baoab(0.3)),
         `own, control variates` = own(problem, plain = FALSE))
  )
}

one_data_set <- function(problem, n, seed) {
  of <- PROBLEMS[[problem]]
  set.seed(seed)
  data <- of$draw(n)
  truth <- evidence(of$model, data, of$truth, seed = seed, progress = FALSE)
  do.call(rbind, Map(function(method, name) {
    before <- proc.time()
    fit <- evidence(of$model, data, method, seed = seed, progress = FALSE)
    data.frame(problem = problem, n = n, seed = seed, settings = name, truth = truth$log_evidence,
               truth_se = truth$se,
               error = fit$sampler$log_evidence - truth$log_evidence, se = fit$sampler$se,
               steps = sum(fit$trace$lambda_steps), cpu = sum((proc.time() - before)[1:2]),
               row.names = NULL)
  }, settings(problem, n), names(settings(problem, n))))
}

folder <- file.path(here, "results")
file <- file.path(folder, "noise.csv")
runs <- NULL
for (problem in chosen) for (n in SIZES) {
  for (seed in seq_len(most)) runs <- rbind(runs, one_data_set(problem, n, seed))
  utils::write.csv(transform(runs, truth = signif(truth, 9), truth_se = signif(truth_se, 3),
                             error = signif(error, 5), se = signif(se, 3)), file, row.names = FALSE)
  message(problem, ", ", format(n, big.mark = ",", scientific = FALSE), " rows done")
}

cells <- split(runs, list(runs$settings, runs$n, runs$problem), drop = TRUE)
print(do.call(rbind, lapply(cells, function(x) {
  data.frame(problem = x$problem[1], n = x$n[1], settings = x$settings[1],
             mean = signif(mean(x$error), 3),
             sd = signif(stats::sd(x$error), 2), se = round(mean(x$se), 2),
             steps = round(mean(x$steps)), cpu = round(mean(x$cpu), 2))
})), row.names = FALSE)

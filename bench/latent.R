# Are the defaults of the models with latent variables right for any number of parts and rows?
# Problems are drawn at random: model, parts (1 to 12), rows (2 to 200), columns, noise, whether
# variances are known. Data are simulated from the model itself, so the latents that made them are
# an exact draw from their posterior.
#
#   Rscript bench/latent.R run   [problems = 60] [first = 1] [methods = default] [directory]
#   Rscript bench/latent.R check [rows = 40,44,52,56]
#   Rscript bench/latent.R table [directory = bench/results]
#
# `run` adds to latent.csv: problem `first` and so many after it, each from its own seed; with
# `methods` "all" also by the other methods. The truth is enumerated if the latents have at most
# 4,096 values; else it lies between forward runs and reverse runs from the exact draw (bdmc()),
# along temperatures and row by row: the best lower and the best upper bound, and `truth_se` is half
# their distance, or their bootstrapped error if this is larger. `check` has the sizes at which no
# particle was moved until November 2026. Runs the installed package (R_LIBS says which).

suppressPackageStartupMessages(library(logevidence))

OTHERS <- list(ais = ais(particles = 50), `smc thermal` = method_smc(particles = 100),
               `smc data` = method_smc("data", particles = 200), nested = nested(live = 50),
               chib = chib())
MOST_STATES <- 4096

draw_problem <- function(seed) {
  set.seed(seed)
  kind <- sample(c("binary_attributes", "low_rank", "clustering"), 1)
  parts <- sample(12, 1)
  n <- round(exp(runif(1, log(2), log(200))))
  columns <- round(exp(runif(1, 0, log(25))))
  noise <- sample(c(0.3, 1), 1)
  infer <- runif(1) < 0.3
  if (kind == "low_rank") {
    n <- max(n, parts + 1)
    columns <- max(columns, parts + 1)
  }
  if (kind == "clustering") parts <- min(parts, n)
  list(kind = kind, parts = parts, n = n, columns = columns, noise = noise, infer = infer,
       model = model_of(kind, parts, noise, infer), seed = seed)
}

model_of <- function(kind, parts, noise, infer = FALSE) switch(
  kind,
  # shape 3: unknown variances are neither tiny nor huge
  binary_attributes = binary_attributes(attributes = parts, probabilities = 0.3, noise_sd = noise,
                                        infer = infer, shape = 3, scale = 2),
  low_rank = low_rank(rank = parts, noise_sd = noise, infer = infer, shape = 3, scale = 2),
  clustering = clustering(components = parts, noise_sd = noise, infer = infer, shape = 3, scale = 2)
)

log_mean <- function(x) max(x) + log(mean(exp(x - max(x))))

# The sum over all states of the latents, each a normal density of the columns.
enumerated <- function(p, data) {
  choices <- if (p$kind == "clustering") diag(p$parts)
  else as.matrix(expand.grid(rep(list(0:1), p$parts)))
  log_prior <- if (p$kind == "clustering") rep(-log(p$parts), p$parts)
  else rowSums(choices) * log(0.3) + rowSums(1 - choices) * log(0.7)
  picks <- as.matrix(expand.grid(rep(list(seq_len(nrow(choices))), p$n)))
  values <- apply(picks, 1, function(pick) {
    z <- choices[pick, , drop = FALSE]
    root <- chol(tcrossprod(z) + diag(p$noise^2, p$n))
    sum(log_prior[pick]) - ncol(data) * (p$n / 2 * log(2 * pi) + sum(log(diag(root)))) -
      sum(backsolve(root, as.matrix(data), transpose = TRUE)^2) / 2
  })
  max(values) + log(sum(exp(values - max(values))))
}

states_of <- function(p) {
  if (p$infer || p$kind == "low_rank") return(Inf)
  if (p$kind == "clustering") p$parts^p$n else 2^(p$parts * p$n)
}

truth_of <- function(p) {
  # temperatures from a pilot run, as many as take seconds
  steps <- min(max(6e6 / (p$n * p$parts * (p$columns + 8)), 300), 10000)
  length <- max(logevidence:::part_of(p$model, "latent")$length(p$model$args, p$n, p$columns), 10)
  pilot <- adaptive(max(1 / (1 + (length / steps)^2), 0.5))
  particles <- round(min(max(1e6 / (p$n * p$parts * (p$columns + 8) * 20), 10), 200))
  by_rows <- p$kind != "binary_attributes" || p$parts <= 8
  methods <- c(list(ais(particles = 8, pilot)),
               if (by_rows) list(method_smc("data", particles = particles)))
  runs <- lapply(methods, function(method)
    bdmc(p$model, p$n, p$columns, method, chains = if (method$name == "ais") 8 else 4, budgets = 1,
         seed = p$seed, progress = FALSE))
  data <- runs[[1]]$data
  if (states_of(p) <= MOST_STATES)
    return(list(data = data, truth = enumerated(p, data), se = 0, how = "enumeration"))
  bounds <- do.call(rbind, lapply(runs, `[[`, "bounds"))
  low <- bounds[which.max(bounds$lower), ]
  high <- bounds[which.min(bounds$upper), ]
  spread <- c(low$lower_high - low$lower_low, high$upper_high - high$upper_low) / 4
  list(data = data, truth = (low$lower + high$upper) / 2, how = "sandwich",
       se = max(abs(high$upper - low$lower) / 2, sqrt(sum(spread^2)) / 2))
}

fit_by <- function(p, truth, name) {
  if (name == "chib" && p$infer) return(NULL)
  started <- proc.time()[[1]]
  fit <- suppressMessages(suppressWarnings(
    if (name == "default") evidence(p$model, truth$data, seed = p$seed, progress = FALSE)
    else evidence(p$model, truth$data, OTHERS[[name]], seed = p$seed, progress = FALSE)))
  data.frame(problem = p$seed, kind = p$kind, parts = p$parts, n = p$n, columns = p$columns,
             noise = p$noise, infer = p$infer, how = truth$how, truth = truth$truth,
             truth_se = truth$se, method = name, call = deparse1(fit$method$call),
             log_evidence = fit$log_evidence, se = fit$se, error = fit$log_evidence - truth$truth,
             z = (fit$log_evidence - truth$truth) / sqrt(fit$se^2 + truth$se^2),
             cpu = proc.time()[[1]] - started, failed = paste(fit$failed, collapse = " | "))
}

run <- function(problems = "60", first = "1", methods = "default", directory = "bench/results") {
  file <- file.path(directory, "latent.csv")
  for (seed in seq(as.integer(first), length.out = as.integer(problems))) {
    p <- draw_problem(seed)
    truth <- truth_of(p)
    names <- c("default", if (methods == "all") names(OTHERS))
    rows <- do.call(rbind, lapply(names, function(name) fit_by(p, truth, name)))
    number <- vapply(rows, is.double, NA)
    rows[number] <- lapply(rows[number], signif, 8)
    utils::write.table(rows, file, sep = ",", row.names = FALSE, col.names = !file.exists(file),
                       append = file.exists(file))
  }
}

# As many rows annealed together as made the old rule skip all sweeps.
check <- function(rows = "40,44,52,56") {
  for (n in as.integer(strsplit(rows, ",")[[1]])) {
    p <- list(kind = "binary_attributes", parts = 10, n = n, columns = 4, noise = 1, infer = FALSE,
              model = model_of("binary_attributes", 10, 1), seed = n)
    truth <- truth_of(p)
    print(fit_by(p, truth, "default")[c("n", "error", "se", "z", "cpu")], row.names = FALSE)
  }
}

judged <- function(runs) {
  joint <- sqrt(runs$se^2 + runs$truth_se^2)
  wrong <- abs(runs$error) > 4 * joint & abs(runs$error) > 0.1
  warned <- nzchar(runs$failed)
  data.frame(runs = nrow(runs), silent = sum(wrong & !warned), wrong = sum(wrong),
             `false alarms` = sum(warned & abs(runs$z) < 4 & abs(runs$error) < 1),
             warned = sum(warned), `within 2` = round(mean(abs(runs$z[!warned]) < 2), 2),
             `z^2` = round(mean(runs$z[!warned]^2), 2),
             `median se` = round(stats::median(runs$se), 3),
             `median cpu` = round(stats::median(runs$cpu), 2), `most cpu` = round(max(runs$cpu), 1),
             check.names = FALSE)
}

table <- function(directory = "bench/results") {
  runs <- utils::read.csv(file.path(directory, "latent.csv"))
  runs$failed[is.na(runs$failed)] <- ""
  for (by in list("method", c("method", "kind", "infer"))) {
    parts <- split(runs, runs[by], drop = TRUE, sep = ", ")
    out <- do.call(rbind, lapply(parts, judged))
    print(out)
    cat("\n")
  }
}

arguments <- commandArgs(trailingOnly = TRUE)
invisible(do.call(switch(arguments[1], run = run, check = check, table = table),
                  as.list(arguments[-1])))

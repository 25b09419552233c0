# A million rows: every method of the SGAIS article's comparison on the same data, and the default
# on fresh data.
#
#   Rscript bench/million.R compare   [directory = bench/results] [rows = 1e6] [models,
#                                     comma-separated, the others' rows kept]
#   Rscript bench/million.R fresh     [data sets = 10] [directory] [rows] [models, as above,
#                                     and overlapping]
#   Rscript bench/million.R calibrate [runs = 200] [directory] [rows = 1e5] [models, as above]
#   Rscript bench/million.R cost      [directory] [rows = 1e6] [models, as above]
#   Rscript bench/million.R draw      [directory]
#   Rscript bench/million.R tables    [directory]
#
# `compare`: linear regression (6 coefficients), softmax regression (44) and a mixture (5 components
# in the plane, 24 parameters) at 10^3, 10^4, .. rows; one data set, its first rows for the smaller
# sizes; a method is left out where its last time says that it would need more than ten minutes.
# Writes million.csv. If the environment variable YARDSTICK names a PyTorch implementation of the
# published algorithm (options --model --method --N --data --seed --grad, a line of JSON with cpu_s,
# obs_grads, obs_liks, logZ), it runs on the same data.
# `fresh`: new data, coefficients and all, for each run of sgais() with and without its audit; a
# second mixture's components overlap. Writes million-fresh.csv. `calibrate`: many seeds on one data
# set, without the audit; million-calibrate.csv.
#
# The reference is the closed form where there is one and importance sampling around the peaks
# elsewhere, with its standard error. CPU seconds are those of the whole call, data preparation
# included.
#
# `cost`: nanoseconds per gradient of one observation at the published settings, everything that the
# run does included once it has its rows, and of the implementation that YARDSTICK names, whose
# clock starts there too, in turns, and the ratios of such pairs: medians of five rounds, of three
# at 10^6 rows. Writes million-cost.csv.
#
# `tables`: what the files say, as the tables of README.md.

suppressPackageStartupMessages(library(logevidence))

TOO_LONG <- 600

linear_data <- function(n) {
  x <- matrix(rnorm(5 * n), n)
  list(model = linear_regression(sigma = 1, prior_sd = 1),
       data = list(x = x, y = as.vector(cbind(x, 1) %*% rnorm(6) + rnorm(n))))
}

softmax_data <- function(n) {
  x <- matrix(rnorm(10 * n), n)
  utility <- cbind(x, 1) %*% matrix(rnorm(44), 11) - log(-log(matrix(runif(4 * n), n)))
  list(model = softmax_regression(prior_sd = 1),
       data = list(x = x, y = factor(max.col(utility), 1:4)))
}

# `apart` pulls the clusters together; each data set has its own places, widths and weights.
mixture_data <- function(n, apart = 1) {
  centre <- apart * (rbind(c(-3, -2), c(2.5, 3), c(0, 0), c(3.5, -2.5), c(-2.5, 3)) +
                     rnorm(10, sd = 0.3))
  sd <- matrix(runif(10, 0.5, 1.2), 5)
  z <- sample.int(5, n, replace = TRUE, prob = runif(5, 0.5, 1.5) * c(0.3, 0.25, 0.2, 0.15, 0.1))
  list(model = gaussian_mixture(components = 5, location = 0, rate = 1),
       data = centre[z, ] + sd[z, ] * matrix(rnorm(2 * n), n))
}

PROBLEMS <- list(linear = linear_data, softmax = softmax_data, mixture = mixture_data,
                 overlapping = function(n) mixture_data(n, 0.6))

METHODS <- list(
  sgais = sgais(), "sgais, no audit" = sgais(audit = FALSE),
  "sgais, published" = sgais(preset = "paper"),
  "sgais, published, rate = 1, steps = 2" = sgais(preset = "paper", rate = 1, steps = 2),
  "nested, published" = nested(preset = "paper"), "ais, published" = ais(preset = "paper"),
  laplace = method_laplace(importance = 400)
)

first_rows <- function(problem, n) {
  problem$data <- if (is.matrix(problem$data)) problem$data[seq_len(n), ]
  else list(x = problem$data$x[seq_len(n), ], y = problem$data$y[seq_len(n)])
  problem
}

simulated <- function(name, n, seed) {
  set.seed(seed)
  PROBLEMS[[name]](n)
}

# Each data set has its own seeds: with 10^6 rows the posterior is nearly normal, and the same draws
# would have the same error for all.
reference_of <- function(name, problem, n, set = 0) {
  if (name == "linear") return(c(model_functions(problem$model, problem$data)$exact(), 0))
  draws <- min(max(4e8 / n, 400), 40000)
  fits <- lapply(3 * set + 1:3, function(seed)
                   evidence(problem$model, problem$data, laplace(importance = draws), seed = seed))
  value <- vapply(fits, `[[`, 0, "log_evidence")
  best <- which.max(value)
  found <- value > value[best] - 0.5
  c(mean(value[found]), fits[[best]]$se / sqrt(sum(found)))
}

cpu <- function(code) {
  spent <- system.time(code, gcFirst = FALSE)
  spent[["user.self"]] + spent[["sys.self"]]
}

one_run <- function(problem, method, seed) {
  seconds <- cpu(fit <- tryCatch(evidence(problem$model, problem$data, method, seed = seed,
                                          progress = FALSE),
                                 logevidence_error = function(e) NULL))
  # the published algorithm may stall
  if (is.null(fit)) return(data.frame(log_evidence = NA, se = NA, source = "failed", sampler = NA,
                                      sampler_se = NA, cpu = seconds,
                                      gradients = NA, likelihoods = NA, steps = NA))
  data.frame(log_evidence = fit$log_evidence, se = fit$se, source = fit$source,
             sampler = fit$sampler$log_evidence,
             sampler_se = fit$sampler$se, cpu = seconds, gradients = fit$work[["gradients"]],
             likelihoods = fit$work[["likelihoods"]], steps = fit$work[["lambda_steps"]])
}

sizes <- function(most) 10^(3:round(log10(as.numeric(most))))

# ---- the yardstick ----

YARDSTICKS <- list(
  "sgais, PyTorch" = list(models = c("linear", "softmax", "mixture"),
                          args = c("--method", "sgais")),
  "sgais, PyTorch, own gradient" = list(models = c("linear", "softmax"),
                                        args = c("--method", "sgais", "--grad", "manual"))
)

yardstick_file <- function(problem) {
  file <- tempfile(fileext = ".bin")
  rows <- if (is.matrix(problem$data)) problem$data
  else cbind(problem$data$x,
             if (is.factor(problem$data$y)) as.integer(problem$data$y) - 1 else problem$data$y)
  writeBin(as.vector(t(rows)), file)
  file
}

yardstick_run <- function(script, name, n, file, args) {
  args <- c(script, "--model", if (name == "mixture") "gmm" else name, "--N", sprintf("%.0f", n),
            "--data", file, "--seed", 1, args, "--maxsec", TOO_LONG)
  line <- suppressWarnings(system2("/usr/bin/python3", args, stdout = TRUE, stderr = FALSE,
                                   env = c("OPENBLAS_NUM_THREADS=1", "OMP_NUM_THREADS=1")))
  line <- utils::tail(grep("^[{]", line, value = TRUE), 1)
  if (length(line) == 0) return(NULL)
  number <- function(key) as.numeric(sub(paste0(".*\"", key, "\": *([-+0-9.eE]+).*"), "\\1", line))
  data.frame(log_evidence = number("logZ"), se = NA, source = "yardstick", sampler = number("logZ"),
             sampler_se = NA,
             cpu = number("cpu_s"), gradients = number("obs_grads"),
             likelihoods = number("obs_liks"), steps = number("anneal_steps"))
}

# ---- the three tables ----

compare <- function(directory = "bench/results", most = "1e6", models = "linear,softmax,mixture") {
  script <- Sys.getenv("YARDSTICK")
  models <- strsplit(models, ",")[[1]]
  file <- file.path(directory, "million.csv")
  table <- if (file.exists(file)) subset(utils::read.csv(file), !model %in% models)
  for (name in models) {
    whole <- simulated(name, max(sizes(most)), 1)
    rows <- if (nzchar(script)) yardstick_file(whole)
    last <- growth <- numeric()
    for (n in sizes(most)) {
      problem <- first_rows(whole, n)
      reference <- reference_of(name, problem, n)
      add <- function(method, run) {
        if (is.null(run)) return(invisible())
        row <- cbind(model = name, n = n, method = method, run, reference = reference[1],
                     reference_se = reference[2], error = run$log_evidence - reference[1])
        print(row[c("model", "n", "method", "error", "se", "cpu")], row.names = FALSE)
        table <<- rbind(table, row)
        if (!is.na(last[method])) growth[[method]] <<- run$cpu / last[[method]]
        last[[method]] <<- run$cpu
      }
      # ten times the rows take 12 times as long, or by as much more as the time before: annealing
      # all data is worse than linear
      worth <- function(method)
        is.na(last[method]) || max(12, growth[method], na.rm = TRUE) * last[[method]] < TOO_LONG
      for (method in names(METHODS))
        if (worth(method)) add(method, one_run(problem, METHODS[[method]], 1))
      for (method in names(YARDSTICKS)) {
        yard <- YARDSTICKS[[method]]
        if (nzchar(script) && name %in% yard$models && worth(method))
          add(method, yardstick_run(script, name, n, rows, yard$args))
      }
      utils::write.csv(table, file, row.names = FALSE)
    }
  }
}

cost <- function(directory = "bench/results", most = "1e6", models = "linear,softmax,mixture") {
  script <- Sys.getenv("YARDSTICK")
  models <- strsplit(models, ",")[[1]]
  file <- file.path(directory, "million-cost.csv")
  table <- if (file.exists(file))
    subset(utils::read.csv(file, check.names = FALSE), !model %in% models)
  for (name in models) {
    whole <- simulated(name, max(sizes(most)), 1)
    rows <- if (nzchar(script)) yardstick_file(whole)
    for (n in sizes(most)) {
      problem <- first_rows(whole, n)
      ns <- function(run, seconds = 0) {
        each <- numeric()
        spent <- 0
        while (length(each) == 0 || spent < seconds && length(each) < 30) {
          out <- run()
          if (is.null(out)) return(NA)
          spent <- spent + out[1]
          each <- c(each, 1e9 * out[1] / out[2])
        }
        stats::median(each)
      }
      own <- function()
        evidence(problem$model, problem$data, METHODS[["sgais, published"]], seed = 1,
                 progress = FALSE)$work[c("seconds", "gradients")]
      theirs <- function(yard) {
        # more takes over ten minutes
        wanted <- nzchar(script) && name %in% yard$models && (name != "mixture" || n <= 1e5)
        if (wanted) ns(function() unlist(yardstick_run(script, name, n, rows,
                                                       yard$args)[c("cpu", "gradients")])) else NA
      }
      # a machine that others use is now fast and now slow: what is compared is run in turns
      rounds <- vapply(seq_len(if (n < 1e6) 5 else 3), function(round)
                         c(own = ns(own, 0.5), vapply(YARDSTICKS, theirs, 0)), numeric(3))
      found <- apply(rounds, 1, stats::median)
      row <- data.frame(model = name, n = n, t(found), check.names = FALSE)
      row$times <- stats::median(rounds[2, ] / rounds[1, ])
      row$`times, own gradient` <- stats::median(rounds[3, ] / rounds[1, ])
      print(row, row.names = FALSE, digits = 3)
      table <- rbind(table, row)
      utils::write.csv(table, file, row.names = FALSE)
    }
  }
}

fresh <- function(sets = "10", directory = "bench/results", most = "1e6",
                  models = "linear,softmax,mixture,overlapping") {
  table <- NULL
  models <- strsplit(models, ",")[[1]]
  for (n in sizes(most)) for (name in models) for (seed in seq_len(as.integer(sets))) {
    problem <- simulated(name, n, 100 + seed)
    reference <- reference_of(name, problem, n, seed)
    for (method in c("sgais", "sgais, no audit")) {
      run <- one_run(problem, METHODS[[method]], seed)
      table <- rbind(table, cbind(model = name, n = n, set = seed, method = method, run,
                                  reference = reference[1],
                                  reference_se = reference[2],
                                  error = run$log_evidence - reference[1]))
    }
    utils::write.csv(table, file.path(directory, "million-fresh.csv"), row.names = FALSE)
  }
  print(summarised(table), row.names = FALSE)
}

summarised <- function(table) {
  parts <- split(table, list(table$method, table$model, table$n), drop = TRUE)
  do.call(rbind, lapply(parts, function(part) {
    z <- part$error / sqrt(part$se^2 + part$reference_se^2)
    data.frame(n = part$n[1], model = part$model[1], method = part$method[1], runs = nrow(part),
               mean = round(mean(part$error), 3),
               sd = round(stats::sd(part$error), 3), se = round(mean(part$se), 3),
               within2 = mean(abs(z) < 2),
               audited = mean(part$source == "audit"), cpu = round(mean(part$cpu), 3))
  }))
}

calibrate <- function(runs = "200", directory = "bench/results", most = "1e5",
                      models = "linear,softmax,mixture") {
  models <- strsplit(models, ",")[[1]]
  file <- file.path(directory, "million-calibrate.csv")
  table <- if (file.exists(file)) subset(utils::read.csv(file), !model %in% models)
  for (n in sizes(most)) for (name in models) {
    problem <- simulated(name, n, 1)
    reference <- reference_of(name, problem, n)
    for (seed in seq_len(as.integer(runs))) {
      run <- one_run(problem, METHODS[["sgais, no audit"]], seed)
      table <- rbind(table, cbind(model = name, n = n, method = "sgais, no audit", run,
                                  reference = reference[1],
                                  reference_se = reference[2],
                                  error = run$log_evidence - reference[1]))
    }
    utils::write.csv(table, file, row.names = FALSE)
  }
  print(summarised(table), row.names = FALSE)
}

# ---- pictures ----

COLOURS <- c(sgais = "#b2182b", "sgais, no audit" = "#ef8a62", "sgais, published" = "#2166ac",
             "sgais, published, rate = 1, steps = 2" = "#92c5de", "nested, published" = "#1b7837",
             "ais, published" = "#a6dba0",
             laplace = "grey35", "sgais, PyTorch" = "#762a83",
             "sgais, PyTorch, own gradient" = "#c2a5cf")

# A row of panels, one for each model: `height(part)` against the number of rows, sgais() on top of
# all.
panels <- function(table, height, ylab, limits = function(part, y) range(y, finite = TRUE),
                   log = "xy", below = function(part) NULL) {
  for (model in unique(table$model)) {
    part <- table[table$model == model, ]
    y <- height(part)
    graphics::plot(part$n, y, log = log, type = "n", ylim = limits(part, y), xlab = "rows",
                   ylab = "", main = model, xaxt = "n", yaxt = "n")
    graphics::axis(1, 10^(3:6), parse(text = paste0("10^", 3:6)))
    ticks <- if (grepl("y", log))
      10^seq(floor(log10(min(y, na.rm = TRUE))), ceiling(log10(max(y, na.rm = TRUE)))) else
        pretty(limits(part, y))
    graphics::axis(2, ticks, if (grepl("y", log))
                     parse(text = paste0("10^", log10(ticks))) else ticks)
    graphics::title(ylab = ylab, line = 4)
    graphics::grid(NA, NULL)
    below(part)
    for (method in rev(intersect(names(COLOURS), part$method))) {
      own <- part$method == method
      graphics::lines(part$n[own], y[own], type = "o", pch = 19, cex = 0.8, col = COLOURS[[method]],
                      lwd = if (method == "sgais") 3 else 1.5)
    }
  }
}

picture <- function(file, height, rows, methods, draw) {
  grDevices::png(file, 2000, height, res = 130)
  count <- 3 * rows
  graphics::layout(matrix(c(seq_len(count), rep(count + 1, 3)), rows + 1, byrow = TRUE),
                   heights = c(rep(1, rows), 0.25))
  graphics::par(mar = c(4, 5.5, 2.5, 1), las = 1)
  draw()
  graphics::par(mar = c(0, 0, 0, 0))
  graphics::plot.new()
  graphics::legend("center", methods, col = COLOURS[methods], lwd = 2.5, pch = 19, ncol = 3,
                   bty = "n", cex = 1.1,
                   text.width = 1.05 * max(graphics::strwidth(methods, cex = 1.1)))
  grDevices::dev.off()
}

draw <- function(directory = "bench/results") {
  table <- utils::read.csv(file.path(directory, "million.csv"))
  methods <- intersect(names(COLOURS), table$method)
  picture(file.path(directory, "million.png"), 1350, 2, methods, function() {
    panels(table, function(part) pmax(abs(part$error) / part$n, 1e-9),
           "|error of log Z| / rows, nats")
    panels(table, function(part) part$cpu, "CPU seconds")
  })
  # as the article draws it: log Z / N against N, the truth a broad grey line
  near <- table[!grepl("PyTorch|no audit", table$method), ]
  picture(file.path(directory, "million-log-evidence.png"), 850, 1, unique(near$method), function()
    panels(near, function(part) part$log_evidence / part$n, "log Z / rows, nats", log = "x",
           limits = function(part, y) {
             truth <- range(part$reference / part$n)
             c(max(min(y, na.rm = TRUE), truth[1] - 3 * diff(truth) - 0.03),
               truth[2] + max(0.02, diff(truth)))
           },
           below = function(part) graphics::lines(part$n, part$reference / part$n, lwd = 8,
                                                  col = "grey85")))
}

# ---- tables ----

big <- function(n) format(n, big.mark = ",", scientific = FALSE, trim = TRUE)

line <- function(...) cat("| ", paste(..., sep = " | "), " |\n", sep = "")

nats <- function(x) if (abs(x) >= 1000) big(round(x)) else if (abs(x) >= 100)
  sprintf("%.0f", x) else if (abs(x) >= 10) sprintf("%.1f", x) else sprintf("%.2f", x)

seconds <- function(s) if (s >= 10) sprintf("%.0f", s) else if (s >= 0.1) sprintf("%.2f", s) else
  sprintf("%.3f", s)

mean_sd <- function(x, digits) sprintf("%.*f (%.*f)", digits, mean(x), digits, stats::sd(x))

within_two <- function(part, digits = 0) {
  z <- part$error / sqrt(part$se^2 + part$reference_se^2)
  sprintf("%.*f%%", digits, 100 * mean(abs(z) < 2))
}

each_part <- function(table, show) for (name in unique(table$model)) for (n in unique(table$n))
  show(name, n, table[table$model == name & table$n == n, ])

tables <- function(directory = "bench/results") {
  read <- function(name) utils::read.csv(file.path(directory, name), check.names = FALSE)
  table <- read("million.csv")
  cell <- function(part) if (nrow(part) == 0) "" else
    paste0(nats(part$error), if (!is.na(part$se)) sprintf(" (%.2f)", part$se), " in ",
           seconds(part$cpu))
  for (name in unique(table$model)) for (method in unique(table$method[table$model == name])) {
    cells <- vapply(sizes("1e6"), function(n)
                      cell(table[table$model == name & table$method == method & table$n == n, ]),
                      "")
    line(if (method == "sgais") name else "", method, paste(cells, collapse = " | "))
  }
  cat("\n")
  number <- function(x, digits) ifelse(is.na(x), "", sprintf("%.*f", digits, x))
  each_part(read("million-cost.csv"), function(name, n, part)
    line(name, big(n), number(part$own, 2), number(part$`sgais, PyTorch`, 1),
         number(part$`sgais, PyTorch, own gradient`, 1),
         number(part$times, 1), number(part$`times, own gradient`, 1)))
  cat("\n")
  fresh_columns <- function(part, digits)
    c(mean_sd(part$error, digits), sprintf("%.*f", digits, mean(part$se)), within_two(part),
      seconds(mean(part$cpu)))
  each_part(read("million-fresh.csv"), function(name, n, part) {
    alone <- part[part$method == "sgais, no audit", ]
    audited <- part[part$method == "sgais", ]
    line(name, big(n), paste(c(fresh_columns(alone, 2), fresh_columns(audited, 3)),
                             collapse = " | "),
         paste(sum(audited$source == "audit"), "of", nrow(audited)))
  })
  cat("\n")
  each_part(read("million-calibrate.csv"), function(name, n, part)
    line(name, big(n), sprintf("%.2f", mean(part$error)), sprintf("%.2f", stats::sd(part$error)),
         sprintf("%.2f", mean(part$se)), within_two(part, 1)))
}

main <- function(what = "compare", ...) {
  task <- list(compare = compare, cost = cost, fresh = fresh, calibrate = calibrate, draw = draw,
               tables = tables)[[what]]
  if (is.null(task)) stop("compare, cost, fresh, calibrate, draw or tables?")
  task(...)
}

do.call(main, as.list(commandArgs(trailingOnly = TRUE)))

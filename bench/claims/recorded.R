# Tables that come from files of results: every number of a document's table against the number
# that the file gives. Each function returns the rows of the table as lists of numbers, in the order
# in which they stand in it.

result <- function(name) {
  file <- file.path(RESULTS, name)
  if (!file.exists(file)) file <- paste0(file, ".gz")
  utils::read.csv(file, strip.white = TRUE, check.names = FALSE)
}
z_of <- function(part, truth = part$reference, truth_se = part$reference_se)
  (part$log_evidence - truth) / sqrt(part$se^2 + truth_se^2)

stream_rows <- function() {
  all <- result("stream.csv")
  all$error <- all$log_evidence - all$reference
  unlist(lapply(c(FALSE, TRUE), function(again)
    lapply(c("linear", "softmax", "mixture", "overlapping"), function(name) {
      part <- all[all$model == name & all$again == again, ]
      c(nrow(part), mean(part$error), sd(part$error), mean(part$se),
        100 * mean(abs(z_of(part)) < 2), sum(part$failed > 0))
    })), recursive = FALSE)
}

stream_shift_rows <- function() {
  all <- result("stream-shift.csv")
  unlist(lapply(c(FALSE, TRUE), function(again) lapply(c(3, 5, 7), function(k) {
    part <- all[all$components == k & all$again == again, ]
    c(nrow(part), max(abs(part$log_evidence - part$reference)), max(part$se),
      sum(part$failed > 0), median(part$seconds))
  })), recursive = FALSE)
}

stream_memory_rows <- function() {
  all <- rbind(result("stream-memory.csv"), result("stream-sqlite.csv"))
  all$kind <- cumsum(c(TRUE, diff(all$n) != 0))
  lapply(split(all, all$kind), function(part)
    c(median(part$read), median(part$run), median(part$ratio), max(part$megabytes)))
}

families_rows <- function() {
  all <- result("families.csv")
  all$error <- all$log_evidence - all$truth
  all$z <- all$error / sqrt(all$se^2 + all$truth_se^2)
  cells <- expand.grid(coefficients = c(1, 2, 5, 20), rows = c(20, 1000, 1e6))
  Map(function(p, n) {
    part <- all[all$coefficients == p & all$rows == n, ]
    lowest <- function(limit) 100 * min(tapply(abs(part$z) < limit, part$family, mean))
    c(nrow(part), sqrt(mean(part$error^2)), median(part$se), 100 * mean(abs(part$z) < 2),
      lowest(2), 100 * mean(abs(part$z) < 4), lowest(4), sum(part$warnings > 0),
      median(part$seconds))
  }, cells$coefficients, cells$rows)
}

# Of a file of the zoo: problems, runs, shares in per cent.
zoo_line <- function(rows) {
  counted <- rows[!rows$hidden, ]
  silent <- tapply(counted$silent, counted$problem, mean)
  benign <- counted[counted$benign & counted$answered, ]
  c(length(silent), nrow(counted), 100 * mean(counted$wrong), 100 * mean(counted$silent),
    sum(silent > 0.02), 100 * mean(benign$alarm))
}
zoo_rows <- function(file) zoo()$judge(result(file), result("zoo-truths.csv"))

sensitivity_rows <- function(preset) {
  own <- definitions_of("sensitivity")
  all <- own$since_early(result("sensitivity.csv"))
  last <- all[all$n == own$ROWS & all$preset == preset, ]
  lapply(own$STUDIES[[preset]], function(study) unlist(lapply(study[[2]], function(value) {
    x <- last[last$study == study[[1]] & abs(last$value - value) < 1e-9, ]
    c(value, mean(x$error), sd(x$error), mean(x$cpu))
  })))
}

robust_rows <- function() {
  all <- result("robust.csv")
  lapply(split(all, factor(all$family, unique(all$family))), function(part) {
    within <- abs(part$error) < 3 * sqrt(part$se^2 + part$reference_se^2)
    c(mean(part$error), sd(part$error), part$error[which.max(abs(part$error))], sum(within),
      nrow(part), sum(part$source == "audit"), mean(part$sampler_error), sd(part$sampler_error),
      mean(part$sampler_se), mean(part$cpu))
  })
}

shift_rows <- function() {
  all <- result("shift.csv")
  unlist(lapply(c(3, 5, 7), function(k) lapply(c("given", "shuffled"), function(order) {
    part <- all[all$components == k & all$order == order, ]
    error <- part$log_evidence - part$reference
    own <- part$sampler - part$reference
    c(median(error), error[which.max(abs(error))], range(own), sum(part$warned > 0),
      mean(part$seconds))
  })), recursive = FALSE)
}

heat_rows <- function(settings) {
  all <- result("heat.csv")
  lapply(c(1e3, 1e4, 1e5, 1e6), function(n) {
    part <- all[all$n == n & all$settings == settings, ]
    both <- function(x) c(mean(x), sd(x))
    if (settings == "default")
      c(both(part$sampler_error), mean(part$sampler_se), both(part$audit_error),
        mean(part$audit_se), both(part$T), 1, 0, median(part$seconds))
    else c(both(part$sampler_error), mean(part$sampler_se), both(part$T), 1 + 5e-4 * n,
           -3 * 5e-4 * n, median(part$seconds))
  })
}

bdmc_table_rows <- function() {
  all <- result("bdmc-table.csv")
  models <- c("clustering", "low_rank", "binary_attributes")
  lapply(models, function(from) unlist(lapply(models, function(to) {
    gaps <- vapply(unique(all$dataset), function(d) {
      own <- all[all$dataset == d & all$data == from, ]
      own$log_evidence[own$model == from] - own$log_evidence[own$model == to]
    }, 0)
    if (from == to) 0 else mean(gaps)
  })))
}

# Of each moment: the error of the log Bayes factor, what is stated, and the correlation of the
# errors of the two models.
race_band_rows <- function() {
  all <- result("race-band.csv")
  lapply(unname(split(all, ave(all$rows, all$stream, FUN = seq_along))), function(part) {
    error <- part$error_slope - part$error_none
    se <- sqrt(part$se_none^2 + part$se_slope^2)
    c(sqrt(mean(error^2)), mean(se), 100 * mean(abs(error / se) < 2),
      cor(part$error_slope, part$error_none))
  })
}

race_stop_rows <- function() {
  all <- result("race-stop.csv")
  lapply(seq_len(nrow(all)), function(i)
    c(100 * unlist(all[i, c("right", "wrong", "undecided")]),
      unlist(all[i, c("mean_rows", "median_rows")])))
}

changes_rows <- function() {
  all <- result("changes.csv")
  lapply(unique(all$kind), function(kind) {
    changed <- all[all$kind == kind & all$changed, ]
    one <- changed[changed$number == 1, ]
    still <- all[all$kind == kind & !all$changed, ]
    c(100 * mean(changed$number == 1), 100 * mean(one$covers), median(one$to - one$from),
      max(changed$error), 100 * mean(still$number == 0), median(all$cpu[all$kind == kind]))
  })
}

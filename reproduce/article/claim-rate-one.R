# The article says that a learning rate of 1 with 2 steps is accurate enough at a million rows and
# 83 times faster than nested sampling. What does it depend on?

source("reproduce/three-models.R", local = TRUE)
source("reproduce/pictures.R", local = TRUE)

published <- function(...) sgais(preset = "paper", ...)
fast <- function(...) published(rate = 1, steps = 2, ...)

VARIATIONS <- list(
  "rate 0.1, 20 steps" = published(),
  "rate 1, 2 steps" = fast(),
  "one mini-batch for all" = fast(own_batches = FALSE),
  "rate 1, 20 steps" = published(rate = 1),
  "rate 0.5, 4 steps" = published(rate = 0.5, steps = 4),
  "mini-batches of 5,000 rows" = fast(batch = 5000),
  "all rows in each gradient" = fast(batch = Inf),
  "all rows, 20 steps" = published(rate = 1, batch = Inf),
  "all rows, rate 0.5, 4 steps" = published(rate = 0.5, steps = 4, batch = Inf),
  "noise estimate beta = 90" = fast(kernel = kernel_sghmc(1, noise = 90, tempered = FALSE)),
  "friction 1" = fast(friction = 1),
  "target ESS 9" = fast(ess = 9),
  "100 particles" = fast(particles = 100, ess = 50),
  "resampling" = fast(resampling = "systematic"),
  "100 particles, resampling" = fast(particles = 100, ess = 50, resampling = "systematic"),
  "all rows, 100 particles, resampling" = fast(batch = Inf, particles = 100, ess = 50,
                                               resampling = "systematic"),
  "control variates, exact first rows" =
    sgais(particles = 10, ess = 5, steps = 2, batch = 500, chunk = 500, order = "given",
          kernel = sghmc(1, tempered = FALSE), audit = FALSE),
  "sgais() of today" = sgais()
)
AT_MOST <- c("rate 0.1, 20 steps", "rate 1, 2 steps", "one mini-batch for all",
             "control variates, exact first rows", "sgais() of today")
SETS <- c(5, 1:4) # those of figures 6 to 8

one_fit <- function(name, set, problem, truth, nested, seed) { # `nested`: its fit
  fit <- timed_fit(problem, VARIATIONS[[name]], seed)
  n <- NROW(problem$data)
  data.frame(set = set, n = n, variation = name, seed = seed,
             error = signif(fit$log_evidence - truth, 5), seconds = signif(fit$cpu, 4),
             computed = signif(fit$computed, 6),
             chunk_steps = signif(mean(fit$trace$lambda_steps), 3),
             nested_seconds = signif(nested$cpu, 4), nested_computed = signif(nested$computed, 6))
}

at_size <- function(set, n, names, seeds) {
  problem <- rows_of_model("mixture", n, seed = set)
  truth <- truth_of(problem, 200)
  nested <- timed_fit(problem, nested(preset = "paper"))
  do.call(rbind, lapply(names, function(name) do.call(rbind, lapply(seq_len(seeds), function(seed)
    one_fit(name, set, problem, truth, nested, seed)))))
}

means <- function(table) {
  aggregate(cbind(error, seconds, computed, chunk_steps, nested_seconds, nested_computed) ~
              variation + n + set, table, mean)
}

item(
  "article", "claim-rate-one", "a learning rate of 1 with 2 steps, and what it would take",
  reported = "acceptable accuracy at 10^6 rows, 83 times faster than nested sampling",
  settings = "mixtures of five components, published settings apart from what is named: five data
              sets of 10^6 rows, 1 seed; each variation on 30,000 rows of two, 2 seeds. It holds if
              it does on most data sets. Acceptable: below 0.1 nats per row; speed within a factor
              of two, and fewer densities and gradients",
  run = function(full) {
    if (!full) return(at_size(SETS[1], 2000, c("rate 0.1, 20 steps", "rate 1, 2 steps",
                                               "all rows in each gradient", "resampling",
                                               "sgais() of today"), 1))
    rbind(do.call(rbind, lapply(SETS[1:2], at_size, 3e4, names(VARIATIONS), 2)),
          do.call(rbind, lapply(SETS, at_size, 1e6, AT_MOST, 1)))
  },
  draw = function(table) {
    own <- means(table[table$n == min(table$n), ])
    names <- rev(intersect(names(VARIATIONS), own$variation))
    y <- match(own$variation, names)
    sets <- intersect(SETS, own$set)
    mark <- function(x) {
      abline(h = seq_along(names), col = "grey90")
      points(x, y, pch = c(19, 17)[match(own$set, sets)], cex = 1.2,
             col = PALETTE[match(own$set, sets)])
    }
    named_panels(14)
    rows <- paste("at", big(min(table$n)), "rows")
    frame_of(pmax(abs(own$error) / own$n, 1e-7), y, "x", "|error| / rows, nats", ylab = "",
             main = rows, yaxt = "n")
    axis(2, seq_along(names), names, tick = FALSE, cex.axis = 0.85)
    abline(v = 0.1, lty = 2, col = "grey50")
    mark(pmax(abs(own$error) / own$n, 1e-7))
    par(mar = c(3.4, 1, 2, 0.8))
    frame_of(own$seconds, y, "x", "CPU seconds", ylab = "", main = rows, yaxt = "n")
    mark(own$seconds)
    legend("topright", paste("data set", sets), pch = c(19, 17)[seq_along(sets)],
           col = PALETTE[seq_along(sets)], bg = "white")
  },
  alt = "Two panels of points for each variation and two data sets: error per row, of which 0.1 nats
         is marked, and CPU seconds.",
  judge = function(table) {
    most <- means(table[table$n == max(table$n), ])
    of <- function(name) most[most$variation == name, ]
    base <- of("rate 1, 2 steps")
    slow <- of("rate 0.1, 20 steps")
    shared <- of("one mini-batch for all")
    per_row <- abs(base$error) / base$n
    faster <- base$nested_seconds / base$seconds
    fewer <- base$nested_computed / base$computed
    good <- function(own) abs(own$error) / own$n < 0.1 &
      own$nested_seconds / own$seconds >= 83 / 2 & own$nested_computed > own$computed
    ok <- good(base)
    few <- means(table[table$n == min(table$n), ])
    wanted <- c("rate 1, 2 steps", "one mini-batch for all", "all rows in each gradient",
                "all rows, 20 steps",
                "rate 0.5, 4 steps", "all rows, rate 0.5, 4 steps", "rate 0.1, 20 steps",
                "control variates, exact first rows", "sgais() of today")
    each <- function(own, names) {
      own <- own[order(own$set), ]
      paste(vapply(intersect(names, own$variation), function(name)
        paste0(name, " ", paste(short(own$error[own$variation == name]), collapse = ", ")), ""),
        collapse = "; ")
    }
    list(verdict = if (mean(ok) > 0.5) "reproduced" else "not reproduced",
         obtained = paste0("holds on ", sum(ok), " of ", nrow(base), " data sets; at ",
                           big(base$n[1]), " rows ", paste(signif(per_row, 2), collapse = ", "),
                           " nats per row, ", paste(short(faster), collapse = ", "),
                           " times faster, ", in_turn(fewer),
                           " times fewer densities and gradients of rows, ",
                           paste(short(base$chunk_steps), collapse = ", "),
                           " annealing steps a chunk (",
                           paste(short(slow$chunk_steps), collapse = ", "), " at rate 0.1)"),
         why = paste0(if (nrow(shared)) paste0("noise of mini-batches of their own spreads
                      particles, so that chunks need more annealing steps; with one mini-batch for
                      all of them at ", big(base$n[1]), " rows ",
                      in_turn(abs(shared$error) / shared$n, 2), " nats per row, ",
                      in_turn(shared$nested_seconds / shared$seconds), " times faster, ",
                      in_turn(shared$chunk_steps), " steps a chunk, which holds on ",
                      sum(good(shared)), " data sets; clusters must also be wide enough for such
                      large steps, which are off with all rows in each gradient, too"),
                      if (nrow(shared)) "; ", "errors in nats at ", big(min(table$n)),
                      " rows of data set ",
                      paste(sort(unique(few$set)), collapse = ", "), ": ", each(few, wanted),
                      "; at ", big(max(table$n)), " rows of data set ",
                      paste(sort(unique(most$set)), collapse = ", "), ": ", each(most, wanted)))
  },
  small = "2,000 rows, on which nested sampling takes as long as starting a fit", size = c(9, 4.6)
)

# Section 5 of the article, and what its abstract and conclusions say of estimates online: the cost
# of
# further rows, a reservoir instead of all rows, weights of models as rows arrive.

source("reproduce/three-models.R", local = TRUE)
source("reproduce/pictures.R", local = TRUE)

as_frame <- function(problem) data.frame(problem$data$x, y = problem$data$y)
FORMULA <- linear_regression(y ~ ., sigma = 1, prior_sd = 1)

# Rows that come once, in blocks, and can never be read again.
rows_once <- function(data, block = 1000) {
  at <- 0
  rows_function(function(reset) {
    if (at >= nrow(data)) return(NULL)
    from <- at + 1
    at <<- min(at + block, nrow(data))
    data[from:at, , drop = FALSE]
  }, rewind = FALSE)
}

quiet_evidence <- function(...)
  suppressMessages(suppressWarnings(evidence(..., progress = FALSE)))

# The cost of further rows
# --------------------------------------------------------------------------

item(
  "article", "claim-marginal-cost", "the cost of a chunk after few rows and after many",
  reported = "the marginal cost of new rows does not depend on the rows before them; nested
              sampling and AIS start from scratch",
  settings = "linear regression; sgais(preset = \"paper\") on one stream of a million rows, 3 data
              sets: densities and CPU seconds of chunks of 500; nested sampling and AIS, published
              settings, on the first 500 to 16,000 rows",
  run = function(full) {
    sizes <- if (full) c(500, 1000, 2000, 4000, 8000, 16000) else c(500, 1000, 2000, 4000)
    do.call(rbind, lapply(seq_len(if (full) 3 else 2), function(seed) {
      problem <- rows_of_model("linear", if (full) 1e6 else 1e5, seed)
      trace <- timed_fit(problem, sgais(preset = "paper"), seed)$trace
      # the first chunks have annealing steps of their own
      ends <- unique(round(exp(seq(log(4), log(nrow(trace)), length.out = 13))))
      chunks <- diff(ends)
      online <- data.frame(way = "sgais, a chunk", dataset = seed, n = trace$n[ends[-1]],
                           densities = diff(trace$evaluations[ends]) / chunks,
                           seconds = diff(trace$cpu[ends]) / chunks)
      scratch <- function(name, method) do.call(rbind, lapply(sizes, function(n) {
        fit <- timed_fit(first_rows(problem, n), method, seed)
        data.frame(way = name, dataset = seed, n = n, densities = max(fit$trace$evaluations),
                   seconds = fit$cpu)
      }))
      rbind(online, scratch("nested sampling, all rows", nested(preset = "paper")),
            scratch("AIS, all rows", ais(preset = "paper")))
    }))
  },
  draw = function(table) {
    panels(1, 2)
    ways <- unique(table$way)
    for (what in c("densities", "seconds")) {
      table$shown <- pmax(table[[what]], 1e-5)
      frame_of(table$n, table$shown, ylab = if (what ==
        "densities") "densities of a row computed" else
        "CPU seconds")
      for (i in seq_along(ways)) for (seed in unique(table$dataset)) {
        own <- table[table$way == ways[i] & table$dataset == seed, ]
        lines(own$n, own$shown, type = "o", pch = 14 + i, col = PALETTE[i], lwd = 1.5)
      }
      if (what == "densities") legend("right", ways, col = PALETTE, pch = 15:17, bty = "n",
                                      cex = 0.85)
    }
  },
  alt = "Densities computed and seconds against rows. The lines of a chunk of SGAIS are flat from
         a thousand rows to a million; those of nested sampling and AIS rise in proportion to the
         rows.",
  judge = function(table) {
    slope <- function(way, what) mean(vapply(split(table[table$way == way, ],
                                                   table$dataset[table$way == way]), function(own)
      coef(lm(log(pmax(own[[what]], 1e-6)) ~ log(own$n)))[[2]], 0))
    ways <- unique(table$way)
    slopes <- vapply(ways, slope, 0, "densities")
    ok <- abs(slopes[1]) < 0.1 && all(slopes[-1] > 0.7) && abs(slope(ways[1], "seconds")) < 0.4
    list(verdict = if (ok) "reproduced" else "not reproduced",
         obtained = sprintf("densities grow as n^%.2f for a chunk of SGAIS, n^%.2f for nested
                             sampling, n^%.2f for AIS; CPU of a chunk as n^%.2f", slopes[1],
                               slopes[2],
                            slopes[3], slope(ways[1], "seconds")),
         why = "the judge uses densities, which a busy machine does not change"
    )
  },
  size = c(8, 3.8)
)

# A reservoir
# ---------------------------------------------------------------------------------------

# The intercept changes after half of the rows: a sample of recent rows only would not represent
# them.
changed_rows <- function(n, seed) {
  data <- as_frame(rows_of_model("linear", n, seed))
  late <- seq_len(n) > n / 2
  data$y[late] <- data$y[late] + 0.5
  data
}

item(
  "article", "claim-reservoir", "a reservoir of rows instead of all rows",
  reported = "mini-batches from a large enough reservoir of earlier rows make estimates possible
              where not all rows can be kept, and nested sampling and AIS are not possible",
  settings = "linear regression, 20,000 rows that are read once, whose intercept changes by half a
              standard deviation of the noise in the middle; keep = 1,000, 2,000, 5,000, 20,000
              (all); 10 data sets; published settings, and rate 0.01 with 200 steps, and today's
              sgais()",
  run = function(full) {
    n <- if (full) 20000 else 6000
    keeps <- if (full) c(1000, 2000, 5000, 20000) else c(1000, 2000, 6000)
    ways <- list(published = sgais(preset = "paper"),
                 `small rate` = sgais(preset = "paper", rate = 0.01, steps = if (full) 200 else 60),
                 today = sgais(order = "given"))
    do.call(rbind, lapply(seq_len(if (full) 10 else 4), function(seed) {
      data <- changed_rows(n, seed)
      exact <- model_functions(FORMULA, data)$exact()
      refused <- mean(vapply(list(nested(), ais()), function(method) inherits(
        tryCatch(quiet_evidence(FORMULA, rows_once(data), method, keep = 1000),
                 error = identity), "error"), NA))
      recent <- model_functions(FORMULA, data[n - 999:0, ])
      whole <- model_functions(FORMULA, data)
      # a model that has learnt the last 1,000 rows only, asked about all rows
      best <- function(f, rows) stats::lm(y ~ ., rows)
      window <- sum(stats::dnorm(data$y, stats::predict(best(recent, data[n - 999:0, ]), data), 1,
                                 log = TRUE)) -
        sum(stats::dnorm(data$y, stats::fitted(best(whole, data)), 1, log = TRUE))
      do.call(rbind, lapply(keeps, function(keep) do.call(rbind, lapply(names(ways), function(way) {
        fit <- quiet_evidence(FORMULA, rows_once(data), ways[[way]], seed = seed, keep = keep)
        data.frame(way = way, keep = keep, dataset = seed, n = n,
                   error = fit$log_evidence - exact, refused = refused, window = window)
      }))))
    }))
  },
  draw = function(table) {
    panels(1, 1)
    ways <- unique(table$way)
    per_row <- pmax(abs(table$error) / table$n, 1e-8)
    frame_of(table$keep, per_row, xlab = "rows in the reservoir", ylab =
      "absolute error, nats per row")
    for (i in seq_along(ways)) {
      own <- table$way == ways[i]
      points(table$keep[own] * c(0.96, 1, 1.04)[i], per_row[own], pch = 14 + i, col = PALETTE[i],
             cex = 0.8)
      middle <- tapply(per_row[own], table$keep[own], median)
      lines(as.numeric(names(middle)), middle, col = PALETTE[i], lwd = 2)
    }
    legend("right", ways, col = PALETTE, pch = 15:17, lwd = 2, bty = "n")
  },
  alt = "Absolute errors per row against the size of the reservoir for three settings: lines of
         the published settings and of today's are flat, today's four powers of ten lower.",
  judge = function(table) {
    all_rows <- max(table$keep)
    means <- tapply(table$error, list(table$way, table$keep), mean)
    paired <- function(way, keep) {
      own <- table[table$way == way, ]
      own$error[own$keep == keep] - own$error[own$keep == all_rows]
    }
    large <- sort(unique(table$keep), decreasing = TRUE)[2]
    shift <- vapply(unique(table$way), function(way) mean(paired(way, large)), 0)
    se <- vapply(unique(table$way), function(way)
      sd(paired(way, large)) / sqrt(length(unique(table$dataset))), 0)
    worst <- max(abs(table$error) / table$n)
    enough <- all(abs(shift) / table$n[1] < 0.001) && worst < 0.01 &&
      max(abs(table$error[table$way == "today"])) < 0.5
    # far less than what a reservoir of recent rows would cost
    old <- mean(table$window) < 5 * min(shift - 3 * se)
    ok <- enough && old && all(table$refused == 1)
    list(verdict = if (ok) "reproduced" else "not reproduced",
         obtained = sprintf("mean error in nats with a reservoir of %s of %s rows: published
                             settings %s, small rate %s, today's at most %.2f in any run; nested()
                             and ais() refuse such rows", paste(big(as.numeric(colnames(means))),
                                                      collapse = ", "), big(table$n[1]),
                            paste(sprintf("%.1f", means["published", ]), collapse = ", "),
                            paste(sprintf("%.1f", means["small rate", ]), collapse = ", "),
                            max(abs(table$error[table$way == "today"]))),
         why = sprintf("%s rows instead of all change the error by %.1f +- %.1f, %.1f +- %.1f and
                        %.3f +- %.3f nats; parameters learnt from the last 1,000 rows alone would
                        lose %.0f nats on all rows", big(large), shift[1], se[1], shift[2], se[2],
                          shift[3],
                       se[3], -mean(table$window)))
  },
  size = c(6, 4)
)

# Weights of models as rows arrive
# ------------------------------------------------------------------

# Three regressions; the true one is drawn from the prior of the models, its coefficients from
# theirs.
NESTED <- list(none = linear_regression(y ~ 1, sigma = 1, prior_sd = 0.3),
               one = linear_regression(y ~ x1, sigma = 1, prior_sd = 0.3),
               both = linear_regression(y ~ x1 + x2, sigma = 1, prior_sd = 0.3))

rows_of_nested <- function(n, seed) {
  set.seed(seed)
  true <- (seed - 1) %% 3 + 1
  x <- matrix(rnorm(2 * n), n, dimnames = list(NULL, c("x1", "x2")))
  on <- c(TRUE, true > 1, true > 2)
  list(true = names(NESTED)[true],
       data = data.frame(x, y = drop(cbind(1, x) %*% (on * rnorm(3, sd = 0.3))) + rnorm(n)))
}

item(
  "article", "claim-online-weights", "weights of models, online, and what their combination is
                                      worth",
  reported = "estimates are available as data arrive, for weighted combination of models online;
              model averaging may be effective where new data come from time to time",
  settings = "three nested regressions, the true one of each third of 60 streams, coefficients
              from the prior; evidence(list of models, stream) with sgais(), 1,000 rows in blocks
              of 100; closed forms at every moment; scores of the rows after each moment by the
              combination, by each model, by the best so far, by equal weights",
  run = function(full) do.call(rbind, lapply(seq_len(if (full) 60 else 12), function(seed) {
    n <- if (full) 1000 else 400
    drawn <- rows_of_nested(n, seed)
    race <- suppressMessages(suppressWarnings(evidence(
      NESTED, rows_once(drawn$data, 100), sgais(order = "given"), seed = seed, progress = FALSE)))
    moments <- as.data.frame(race)
    own <- moments[moments$model %in% names(NESTED), ]
    at <- sort(unique(own$rows))
    wide <- function(what) sapply(names(NESTED), function(name)
      own[[what]][own$model == name][order(own$rows[own$model == name])])
    exact <- t(vapply(at, function(k) vapply(NESTED, function(model)
      model_functions(model, drawn$data[seq_len(k), ])$exact(), 0), numeric(3)))
    closed <- exp(exact - apply(exact, 1, max))
    closed <- closed / rowSums(closed)
    ours <- wide("posterior")
    # predictive scores of the rows from one moment to the next
    score <- diff(rbind(0, wide("log_evidence")))
    weight <- rbind(1 / 3, ours[-nrow(ours), ])
    blend <- function(w) log(rowSums(w * exp(score - apply(score, 1, max)))) + apply(score, 1, max)
    chosen <- max.col(weight, "first")
    data.frame(dataset = seed, true = drawn$true, rows = at,
               setNames(as.data.frame(ours), paste0("p_", names(NESTED))),
               off = apply(abs(ours - closed), 1, max), blend = blend(weight),
               equal = blend(array(1 / 3, dim(score))),
               best = score[cbind(seq_along(chosen), chosen)],
               setNames(as.data.frame(score), paste0("score_", names(NESTED))))
  })),
  draw = function(table) {
    panels(1, 2)
    one <- table[table$dataset == max(table$dataset), ]
    frame_of(table$rows, 0:1, "x", ylab = "posterior probability", main = "one stream")
    for (i in 1:3)
      lines(one$rows, one[[paste0("p_", names(NESTED)[i])]], lwd = 2, col = PALETTE[i])
    legend("left", names(NESTED), col = PALETTE, lwd = 2, bty = "n")
    others <- list(`best so far` = "best", `equal weights` = "equal", none = "score_none",
                   one = "score_one", both = "score_both")
    gains <- lapply(others, function(what)
      tapply(table$blend - table[[what]], table$dataset, sum))
    par(mar = c(5.6, 4.6, 2, 0.8))
    boxplot(gains, col = "#56B4E9", ylab = "gain of the combination, nats", las = 2,
            ylim = quantile(unlist(gains), c(0, 0.95)), cex.axis = 0.8)
    abline(h = 0, lty = 2)
  },
  alt = "Left: posterior probabilities of three models against rows of one stream. Right: boxes of
         the gain in log score of the weighted combination over other forecasts, mostly above
         zero.",
  judge = function(table) {
    gain <- function(what) as.vector(tapply(table$blend - table[[what]], table$dataset, sum))
    gains <- sapply(c("best", "equal", paste0("score_", names(NESTED))), gain)
    z <- colMeans(gains) / (apply(gains, 2, sd) / sqrt(nrow(gains)))
    off <- max(table$off)
    last <- table[!duplicated(table$dataset, fromLast = TRUE), ]
    right <- mean(names(NESTED)[max.col(last[paste0("p_", names(NESTED))])] == last$true)
    ok <- off < 0.05 && all(colMeans(gains) > 0) && z[["equal"]] > 1.5
    list(verdict = if (ok) "reproduced" else "not reproduced",
         obtained = sprintf("probabilities within %.3f of closed forms at all %d moments; mean
                             gain of the combination %.2f nats over the best so far (z %.1f), %.2f
                             over equal weights (z %.1f), %.2f, %.2f, %.2f over the single models",
                               off,
                            nrow(table), mean(gains[, 1]), z[1], mean(gains[, 2]), z[2],
                            mean(gains[, 3]), mean(gains[, 4]), mean(gains[, 5])),
         why = sprintf("the true model has the largest probability at the end in %.0f%% of %d
                        streams; over a model that is never wrong, only larger than needed, the
                        gain is small",
                       100 * right, nrow(last)))
  },
  size = c(8, 4)
)

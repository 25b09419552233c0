# Figure A1 of the conference paper: nested sampling by reflected SGHMC against nested sampling by
# rejection from the prior, on a one-dimensional mixture of three components.

source("reproduce/three-models.R", local = TRUE)
source("reproduce/pictures.R", local = TRUE)

item(
  "conference", "figure-a1", "nested sampling: reflected SGHMC and rejection from the prior",
  reported = "SGHMC slightly higher, within 0.1 nats per row, and the less the more rows",
  settings = "mixture of 3 in one dimension, published settings, 20 runs; rejection, which is exact,
              up to 20 rows (with 2 points larger sizes take too long); truth:
              laplace(importance = 2000)",
  run = function(full) {
    whole <- three_clusters(250)
    sizes <- if (full) c(5, 10, 15, 20, 30, 50, 100, 150, 200, 250) else c(5, 10)
    runs <- if (full) 20 else 2
    methods <- list(sghmc = nested(preset = "paper"),
                    rejection = nested(preset = "paper", kernel = prior_draws()))
    do.call(rbind, lapply(sizes, function(n) {
      problem <- first_rows(whole, n)
      truth <- truth_of(problem, if (full) 2000 else 200)
      do.call(rbind, lapply(names(methods), function(name) {
        if (name == "rejection" && n > 20) return(NULL)
        value <- vapply(seq_len(runs), function(seed)
          timed_fit(problem, methods[[name]], seed)$log_evidence, 0)
        data.frame(n = n, method = name, mean = round(mean(value), 3), sd = round(sd(value), 3),
                   runs = runs, low = round(min(value), 2), high = round(max(value), 2),
                   truth = round(truth, 3))
      }))
    }))
  },
  draw = function(table) {
    y <- (table$mean - table$truth) / table$n
    se <- table$sd / sqrt(table$runs) / table$n
    panels()
    frame_of(table$n, c(y - 2 * se, y + 2 * se, -0.12, 0.12), "x",
             ylab = "mean estimate less truth, nats per row")
    abline(h = c(-0.1, 0.1), lty = 2, col = "grey50")
    abline(h = 0, col = "grey60")
    for (name in c("rejection", "sghmc")) {
      own <- table$method == name
      colour <- PALETTE[match(name, c("rejection", "sghmc"))]
      arrows(table$n[own], (y - 2 * se)[own], table$n[own], (y + 2 * se)[own], 0.03, 90, 3,
             col = colour)
      lines(table$n[own], y[own], type = "o", pch = 19, col = colour, lwd = 2)
    }
    legend("bottomright", c("rejection", "SGHMC", "0.1 nats per row"), bty = "n",
           lwd = c(2, 2, 1), lty = c(1, 1, 2), col = c(PALETTE[1:2], "grey50"))
  },
  alt = "Mean estimates less the truth, per row, with two standard errors, against the number of
         rows, for rejection and for SGHMC; dashed lines mark 0.1 nats per row.",
  judge = function(table) {
    wide <- merge(table[table$method == "sghmc", ], table[table$method == "rejection", ], by = "n")
    gap <- (wide$mean.x - wide$mean.y) / wide$n
    all <- table[table$method == "sghmc", ]
    error <- (all$mean - all$truth) / all$n
    less <- abs(error[which.max(all$n)]) < max(abs(error))
    z <- gap * wide$n / sqrt((wide$sd.x^2 + wide$sd.y^2) / wide$runs.x)
    list(verdict = if (all(abs(gap) < 0.1) && less) "reproduced" else "not reproduced",
         obtained = sprintf(paste("SGHMC less rejection %s nats per row at %s rows; SGHMC against",
                                  "the truth %.3f at %d rows, at most %.3f"),
                            paste(sprintf("%.3f", gap), collapse = ", "),
                            paste(wide$n, collapse = ", "), error[which.max(all$n)], max(all$n),
                            max(abs(error))),
         why = sprintf(paste("means of %d runs; whether SGHMC is higher cannot be told: all",
                             "differences are below %.1f standard errors"), wide$runs.x[1],
                       ceiling(10 * max(abs(z))) / 10))
  }
)

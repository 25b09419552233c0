# Figure A1 of the article: nested sampling against annealed importance sampling on a
# one-dimensional mixture, five runs of each, with the truth between them.

source("reproduce/three-models.R", local = TRUE)
source("reproduce/pictures.R", local = TRUE)

METHODS <- list(nested = nested(preset = "paper"), ais = ais(preset = "paper"))

item(
  "article", "figure-a1", "nested sampling and AIS with SGHMC, 20 to 1,000 rows",
  reported = "bands of five runs of each tend to agree",
  settings = "mixture of 3 in one dimension, 20, 40, .., 1,000 rows, published settings, 5 runs
              each; truth: laplace(importance = 2000)",
  run = function(full) {
    whole <- three_clusters(1000)
    sizes <- if (full) seq(20, 1000, 20) else c(20, 200)
    do.call(rbind, lapply(sizes, function(n) {
      problem <- first_rows(whole, n)
      truth <- truth_of(problem, if (full) 2000 else 400)
      do.call(rbind, lapply(names(METHODS), function(name) {
        value <- vapply(1:5, function(seed)
          timed_fit(problem, METHODS[[name]], seed)$log_evidence, 0)
        data.frame(n = n, method = name, low = round(min(value), 2), high = round(max(value), 2),
                   mean = round(mean(value), 2), truth = round(truth, 2))
      }))
    }))
  },
  draw = function(table) {
    y <- c(table$low / table$n, table$high / table$n)
    panels()
    frame_of(table$n, y, "", ylab = "log evidence / rows, nats")
    for (name in names(METHODS)) {
      own <- table[table$method == name, ]
      colour <- PALETTE[match(name, names(METHODS))]
      polygon(c(own$n, rev(own$n)), c(own$low, rev(own$high)) / c(own$n, rev(own$n)),
              col = adjustcolor(colour, 0.35), border = colour)
    }
    own <- table[table$method == "ais", ]
    lines(own$n, own$truth / own$n, lwd = 2)
    legend("bottomright", c("nested sampling", "AIS", "truth"), bty = "n",
           fill = c(adjustcolor(PALETTE[1:2], 0.35), NA), border = c(PALETTE[1:2], NA),
           lwd = c(NA, NA, 2))
  },
  alt = "Bands of the smallest and largest of five estimates by nested sampling and by AIS against
         the number of rows, and a line for the truth.",
  judge = function(table) {
    ns <- table[table$method == "nested", ]
    ais <- table[table$method == "ais", ]
    meet <- ns$low <= ais$high & ais$low <= ns$high
    near <- abs(ns$mean - ais$mean) / ns$n < 0.1
    list(verdict = if (mean(meet) >= 0.5 && mean(near[ns$n >= 100]) > 0.9) "reproduced" else
           "not reproduced",
         obtained = sprintf(paste("bands overlap at %d of %d sizes; means differ by less than 0.1",
                                  "nats per row at %d"), sum(meet), length(meet), sum(near)),
         why = sprintf(paste("against the truth nested sampling is %+.1f nats off on average and",
                             "AIS %+.1f: two live points scatter by some nats, and ten",
                             "particles without resampling are too low"), mean(ns$mean - ns$truth),
                       mean(ais$mean - ais$truth)))
  }
)

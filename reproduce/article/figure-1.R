# Figure 1 of the article: the stream whose law changes twice, as histograms.

source("reproduce/streams.R", local = TRUE)

PARTS <- list("first 1,000 rows" = 1:1000, "next 9,000" = 1001:10000,
              "last 90,000" = 10001:100000, "all 100,000" = 1:100000)

item(
  "article", "figure-1", "rows of a stream with 3, then 5, then 7 clusters",
  reported = "histograms of 1,000, 9,000, 90,000 and all rows; clusters overlap",
  settings = "stream 1 of reproduce/streams.R: 100,000 rows",
  run = function(full) {
    rows <- shifting_clusters()
    breaks <- list(seq(-12, 16, 0.5), seq(-12, 16, 0.5))
    do.call(rbind, lapply(names(PARTS), function(part) {
      own <- rows[PARTS[[part]], ]
      cells <- table(cut(pmin(pmax(own$V1, -11.9), 15.9), breaks[[1]], labels = FALSE),
                     cut(pmin(pmax(own$V2, -11.9), 15.9), breaks[[2]], labels = FALSE))
      cells <- as.data.frame(cells, stringsAsFactors = FALSE)
      cells <- cells[cells$Freq > 0, ]
      data.frame(part = part, x = -12.25 + 0.5 * as.numeric(cells$Var1),
                 y = -12.25 + 0.5 * as.numeric(cells$Var2), count = cells$Freq)
    }))
  },
  draw = function(table) {
    par(mfrow = c(1, 4), mar = c(3, 3, 2.5, 0.5), mgp = c(2, 0.6, 0))
    for (part in names(PARTS)) {
      own <- table[table$part == part, ]
      shade <- gray(1 - 0.9 * sqrt(own$count / max(own$count)))
      plot(own$x, own$y, pch = 15, cex = 0.6, col = shade, xlim = c(-12, 16), ylim = c(-12, 16),
           xlab = "", ylab = "", main = part, cex.main = 1, asp = 1)
    }
  },
  alt = "Four two-dimensional histograms. The first has three clusters, the second five, the third
         and the last seven, some of which overlap.",
  judge = function(table) {
    counts <- tapply(table$count, table$part, sum)[names(PARTS)]
    list(verdict = "reproduced",
         obtained = paste("histograms of", paste(format(counts, big.mark = ",", trim = TRUE),
                                                 collapse = ", "), "rows"),
         why = "positions and widths of the clusters are not published; ours overlap too")
  },
  size = c(8, 2.6)
)

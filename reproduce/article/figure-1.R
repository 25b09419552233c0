# Figure 1 of the article: the stream whose law changes twice, as histograms.

source("reproduce/streams.R", local = TRUE)
source("reproduce/pictures.R", local = TRUE)

PARTS <- list("first 1,000 rows" = 1:1000, "next 9,000" = 1001:10000,
              "last 90,000" = 10001:100000, "all 100,000" = 1:100000)

# Maxima of the density that do not come from chance: of a kernel estimate with this bandwidth.
peaks_of <- function(x) {
  y <- stats::density(x, bw = 0.35, n = 1024)$y
  inner <- y[-c(1, length(y))]
  sum(inner > y[-(length(y) - 0:1)] & inner > y[-(1:2)] & inner > max(y) / 100)
}

item(
  "article", "figure-1", "rows of a stream with 3, then 5, then 7 clusters",
  reported = "histograms of 1,000, 9,000, 90,000 and all rows; clusters overlap, so that their
              number cannot be seen",
  settings = "stream 1 of reproduce/streams.R: 100,000 rows",
  run = function(full) {
    rows <- shifting_clusters()$V1
    breaks <- seq(floor(min(rows)), ceiling(max(rows)), 0.25)
    do.call(rbind, lapply(names(PARTS), function(part) {
      own <- graphics::hist(rows[PARTS[[part]]], breaks, plot = FALSE)
      data.frame(part = part, x = own$mids, count = own$counts,
                 peaks = peaks_of(rows[PARTS[[part]]]))
    }))
  },
  draw = function(table) {
    par(mfrow = c(1, 4), mar = c(3.2, 3, 2.5, 0.5), mgp = c(2, 0.6, 0))
    for (part in names(PARTS)) {
      own <- table[table$part == part, ]
      density <- own$count / sum(own$count) / 0.25
      plot(own$x, density, type = "h", lwd = 3, lend = 1, col = PALETTE[1], xlab = "", ylab = "",
           main = part, cex.main = 1, ylim = c(0, 0.3))
    }
  },
  alt = "Four histograms of rows in one dimension. The first shows three clusters, the others five
         and seven, which overlap.",
  judge = function(table) {
    counts <- tapply(table$count, table$part, sum)[names(PARTS)]
    peaks <- tapply(table$peaks, table$part, `[`, 1)[names(PARTS)]
    overlap <- peaks[["last 90,000"]] < 7
    list(verdict = if (identical(as.vector(counts), c(1000L, 9000L, 90000L, 100000L)) && overlap)
           "reproduced" else "not reproduced",
         obtained = paste0("histograms of ", paste(big(counts), collapse = ", "), " rows; ",
                           paste(peaks, collapse = ", "), " maxima for 3, 5, 7 and 7 clusters"),
         why = "positions and widths of the clusters are not published; ours overlap, too")
  },
  size = c(8, 2.4)
)

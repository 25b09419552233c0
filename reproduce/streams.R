# The data of the papers, drawn as their appendices say. Sourced by items.

# Rows from 3 clusters, then 5, then 7, the earlier ones always among them: 1%, 9% and 90% of all.
# The article draws histograms, so its stream has one dimension; positions and widths of its
# clusters are not published. Ours overlap, as it says. In two dimensions clusters are farther
# apart, which is harder for particles that are in modes of the first rows. `apart` multiplies the
# distances of the centres.
# With `still`, all rows are from that number of clusters: the control without a change.
shifting_clusters <- function(rows = 1e5, seed = 1, apart = 1, dimensions = 1, still = NULL) {
  set.seed(seed)
  if (dimensions == 1) {
    centre <- cbind(apart * 3 * c(0, 2, -2, 1, -1, 3, -3) + rnorm(7, sd = 0.6))
    sd <- cbind(runif(7, 0.7, 1.5))
  } else {
    centre <- apart * cbind(c(0, 4, -4, 4, -4, 8, 0), c(0, 4, -4, -4, 4, 0, 8)) +
      matrix(rnorm(14, sd = 0.5), 7)
    sd <- matrix(sqrt(1 / rgamma(14, 4, 3)), 7)
  }
  clusters <- if (!is.null(still)) rep(still, rows) else
    rep(c(3, 5, 7), times = round(rows * c(0.01, 0.09, 0.90)))
  z <- vapply(clusters, function(k) sample.int(k, 1), 1L)
  as.data.frame(centre[z, ] + sd[z, ] * matrix(rnorm(length(z) * dimensions), length(z)))
}

# The data of the papers, drawn as their appendices say. Sourced by items.

# Rows from 3 clusters, then 5, then 7, the earlier ones always among them: 1%, 9% and 90% of all.
# `apart` multiplies the distances of their centres.
shifting_clusters <- function(rows = 1e5, seed = 1, apart = 1) {
  set.seed(seed)
  centre <- apart * cbind(c(0, 4, -4, 4, -4, 8, 0), c(0, 4, -4, -4, 4, 0, 8)) +
    matrix(rnorm(14, sd = 0.5), 7)
  sd <- matrix(sqrt(1 / rgamma(14, 4, 3)), 7)
  clusters <- rep(c(3, 5, 7), times = round(rows * c(0.01, 0.09, 0.90)))
  z <- vapply(clusters, function(k) sample.int(k, 1), 1L)
  as.data.frame(centre[z, ] + sd[z, ] * matrix(rnorm(2 * length(z)), length(z)))
}

# A clustering so small that its labels can be enumerated, in plain R: the joint density, a
# collapsed
# Gibbs sweep, the evidence. Sourced by items.

K <- 2
MODEL <- clustering(components = K, prior_sd = 1.5, noise_sd = 1)

log_mean <- function(x) max(x) + log(mean(exp(x - max(x))))

# The log joint density of rows and labels, centres integrated out, likelihood to the power lambda.
log_joint <- function(z, y, lambda = 1) {
  total <- -length(z) * log(K) - lambda * length(z) * ncol(y) / 2 * log(2 * pi)
  for (k in unique(z)) {
    own <- y[z == k, , drop = FALSE]
    spread <- 1 + lambda * nrow(own) * 1.5^2
    total <- total - ncol(y) / 2 * log(spread) -
      lambda / 2 * (sum(own^2) - lambda * 1.5^2 / spread * sum(colSums(own)^2))
  }
  total
}

# Log weights of each label of row i, given the other labels.
label_weights <- function(i, z, y, lambda = 1)
  vapply(seq_len(K), function(k) log_joint(replace(z, i, k), y, lambda), 0)

draw_label <- function(log_weight) sample.int(K, 1, prob = exp(log_weight - max(log_weight)))

gibbs_sweep <- function(z, y, lambda = 1, order = seq_along(z)) {
  for (i in order) z[i] <- draw_label(label_weights(i, z, y, lambda))
  z
}

enumerated <- function(y) {
  labels <- as.matrix(expand.grid(rep(list(seq_len(K)), nrow(y))))
  values <- apply(labels, 1, log_joint, y)
  list(labels = labels, log_evidence = log_mean(values) + log(nrow(labels)),
       share = exp(values - max(values)))
}

# Temperatures of sigmoidal(steps), without zero.
sigmoidal_powers <- function(steps) {
  shape <- plogis(4 * (2 * (0:steps) / steps - 1))
  ((shape - shape[1]) / (shape[steps + 1] - shape[1]))[-1]
}

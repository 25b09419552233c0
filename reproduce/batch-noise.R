# What the noise of mini-batches costs the published estimators, by the proposition of the article
# figures-sequential. Sourced by items.

# The stationary variance that mini-batches of `batch` rows add to a parameter of unit information
# per row: the recursion v' = (1 - a) v - r x + e, x' = x + v' has the variance
# var(e) (2 - a) / (a r (2 (2 - a) - r)), and the noise e of the gradient has variance r^2 / batch.
added_variance <- function(rate, friction, batch) {
  rate / (2 * friction * batch) / (1 - rate / (2 * (2 - friction)))
}

# The log evidence lost by sequential() for each row: minus the expected log of the mean, over
# particles, of the density of a chunk relative to that at the centre. A particle is off by
# sqrt(variance) z, the score of the chunk is sqrt(chunk) u, and x = chunk * variance.
predicted_loss <- function(x, chunk, d, particles, own, draws = 4000) {
  if (!own) return(d * x / 2 / chunk)
  set.seed(1)
  losses <- replicate(draws, {
    u <- rnorm(d)
    z <- matrix(rnorm(d * particles), d)
    w <- sqrt(x) * colSums(u * z) - x * colSums(z^2) / 2
    -(max(w) + log(mean(exp(w - max(w)))))
  })
  mean(losses) / chunk
}

# With infinitely many particles.
limit_of_loss <- function(x, chunk, d) d * (log1p(x) - x / (1 + x)) / 2 / chunk

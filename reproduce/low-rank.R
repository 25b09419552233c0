# Densities of a low-rank model in plain R, prior standard deviations 1, and states for Chib's
# estimator. Sourced by items.

# States of a low-rank model as the package has them, and back.
state_of <- function(u, v) c(t(v), t(u)) # V by rows, U by rows
factors_of <- function(state, rank, columns) {
  cells <- seq_len(rank * columns)
  list(v = matrix(state[cells], rank, byrow = TRUE),
       u = matrix(state[-cells], ncol = rank, byrow = TRUE))
}

# Point estimates. The joint mode has the singular values of the rows, each less the variance of the
# noise, in equal parts in U and V.
point_states <- function(data, rank, noise) {
  one <- svd(as.matrix(data), rank, rank)
  size <- one$d[seq_len(rank)]
  part <- function(size, power) state_of(one$u %*% diag(size^power, rank),
                                         diag(size^(1 - power), rank) %*% t(one$v))
  list(`joint mode` = part(pmax(size - noise^2, 0), 0.5), `SVD, shared` = part(size, 0.5),
       `SVD, all in U` = part(size, 1), `SVD, all in V` = part(size, 0))
}

# p(U | V, Y): the precision that rows of U have in common, as its Cholesky factor, and their means
# as columns. With transposed arguments p(V | U, Y).
conditional <- function(v, y, noise) {
  root <- chol(diag(nrow(v)) + tcrossprod(v) / noise^2)
  list(root = root,
       mean = backsolve(root, backsolve(root, v %*% t(y), transpose = TRUE)) / noise^2)
}
log_conditional <- function(u, v, y, noise) {
  one <- conditional(v, y, noise)
  z <- one$root %*% (t(u) - one$mean)
  sum(dnorm(z, log = TRUE)) + nrow(u) * sum(log(diag(one$root)))
}
draw_conditional <- function(v, y, noise) {
  one <- conditional(v, y, noise)
  t(one$mean + backsolve(one$root, matrix(rnorm(length(one$mean)), nrow(one$mean))))
}

# p(U, Y): V is integrated out.
log_joint <- function(u, y, noise) {
  root <- chol(noise^2 * diag(nrow(u)) + tcrossprod(u))
  z <- backsolve(root, y, transpose = TRUE)
  sum(dnorm(u, log = TRUE)) + sum(dnorm(z, log = TRUE)) - ncol(y) * sum(log(diag(root)))
}

# The mean error of Chib's estimator of one draw from a state with this U, log p(U | Y) - E log p(U
# | W, Y) with W from p(W | U, Y), and the standard deviation of one estimate.
error_of_one_draw <- function(u, y, noise, log_evidence, draws = 200) {
  back <- replicate(draws, log_conditional(u, t(draw_conditional(t(u), t(y), noise)), y, noise))
  c(mean = log_joint(u, y, noise) - log_evidence - mean(back), sd = sd(back))
}

# The mutual information of U and V given the rows, E log p(U | V, Y) - E log p(U | Y), as a
# mean along Gibbs sweeps that begin at a posterior draw.
information_by_sweeps <- function(u, y, noise, log_evidence, sweeps) {
  mean(vapply(seq_len(sweeps), function(t) {
    v <- t(draw_conditional(t(u), t(y), noise))
    gain <- log_conditional(u, v, y, noise) - log_joint(u, y, noise)
    u <<- draw_conditional(v, y, noise)
    gain
  }, 0)) + log_evidence
}

# The mutual information of U and V given the data, by Laplace's method for little noise, at the
# factors of a draw (both prior standard deviations are 1). The first sum is that of a normal
# posterior; the rest corrects it for what the data leave open, (U A, A^-1 V) for all A of K x K:
# rotations fill the orthogonal group, and all else is curved.
coupling <- function(u, v, noise) {
  k <- ncol(u)
  a <- svd(u)$d^2
  b <- svd(v)$d^2
  pair <- (outer(a + b, a + b, "+") / (4 * pi * exp(1)))[lower.tri(diag(k))]
  log_group <- sum(log(2) + (1:k) / 2 * log(pi) - lgamma((1:k) / 2)) # volume of O(K)
  sum(log(outer(noise^2 + a, noise^2 + b) / noise^2 / (noise^2 + outer(a, b, "+")))) / 2 +
    sum(log(pair)) / 2 - k / 2 * log(2) + log_group
}

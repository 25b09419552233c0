# Models with latent variables on five rows, and their evidence without the package: by enumeration
# and quadrature.

few_rows <- with_own_seed(test_seed(1), cbind(a = rnorm(5, sd = 1.5), b = rnorm(5)))

#' Evidence given each row's features, summed over all of them: latent rows of Z, their log
#' probabilities
enumerated <- function(data, choices, log_probability, prior_sd, noise_sd) {
  n <- nrow(data)
  picks <- as.matrix(expand.grid(rep(list(seq_len(nrow(choices))), n)))
  log_sum_exp(apply(picks, 1, function(pick) {
    z <- choices[pick, , drop = FALSE]
    root <- chol(prior_sd^2 * tcrossprod(z) + diag(noise_sd^2, n))
    sum(log_probability[pick]) + sum(apply(data, 2, function(y)
      -n / 2 * log(2 * pi) - sum(log(diag(root))) -
      sum(backsolve(root, y, transpose = TRUE)^2) / 2))
  }))
}

#' Evidence of low_rank(rank = 1, row_sd = 0.9, column_sd = 1.1, noise_sd = 0.8)
#'
#' Given v, the two numbers of the matrix V, rows are normal with covariance 0.8^2 I + 0.9^2 v v',
#' whose eigenvalues are 0.64 and 0.64 + 0.81 |v|^2: an integral over v by quadrature.
low_rank_truth <- function(data, v = seq(-8, 8, length.out = 401)) {
  at <- as.matrix(expand.grid(v, v))
  large <- 0.64 + 0.81 * rowSums(at^2)
  along <- rowSums((at %*% t(data))^2)
  log_lik <- rowSums(dnorm(at, 0, 1.1, log = TRUE)) - nrow(data) * log(2 * pi) -
    nrow(data) / 2 * (log(0.64) + log(large)) - (sum(data^2) - 0.81 * along / large) / 0.64 / 2
  log_sum_exp(log_lik) + 2 * log(v[2] - v[1])
}

# Computed when a test first asks for it: every test file reads this one.
delayedAssign("CASES", list(
  clustering = list(
    model = clustering(components = 3, proportions = c(0.5, 0.3, 0.2), prior_sd = 1.3,
                       noise_sd = 0.8),
    truth = enumerated(few_rows, diag(3), log(c(0.5, 0.3, 0.2)), 1.3, 0.8)
  ),
  binary = list(
    model = binary_attributes(attributes = 2, probabilities = c(0.3, 0.6), prior_sd = 1.3,
                              noise_sd = 0.8),
    truth = enumerated(few_rows, as.matrix(expand.grid(0:1, 0:1)),
                       log(as.vector(outer(c(0.7, 0.3), c(0.4, 0.6)))), 1.3, 0.8)
  ),
  low_rank = list(
    model = low_rank(rank = 1, row_sd = 0.9, column_sd = 1.1, noise_sd = 0.8),
    truth = low_rank_truth(few_rows)
  )
))

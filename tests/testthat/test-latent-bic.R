# The criterion of Schwarz for models with latent variables: its maximum against closed forms and
# R's own optimisers.

run <- function(model, data, ...)
  quiet_fit(model, data, bic(), seed = test_seed(1), progress = FALSE, ...)
few_rows <- with_own_seed(test_seed(2), cbind(a = c(rnorm(10, -2), rnorm(10, 2)), b = rnorm(20),
                                              c = rnorm(20, rep(c(-1, 1), 10))))
highest <- function(f, starts) max(vapply(starts, function(start) {
  for (turn in 1:3) start <- stats::optim(start, f, method = "BFGS",
                                          control = list(fnscale = -1, maxit = 1000))$par
  f(start)
}, 0))
starts <- function(n, count = 30)
  with_own_seed(test_seed(3), lapply(seq_len(count), function(i) rnorm(n, sd = 1.5)))

#' Rows' log-likelihoods summed over features of each row, `choices` x columns of means
summed <- function(data, choices, log_probability, sd) {
  square <- outer(rowSums(data^2), rowSums(choices^2), `+`) - 2 * tcrossprod(data, choices)
  each <- rep(as.vector(log_probability), each = nrow(data)) - square / 2 / sd^2 -
    ncol(data) * log(sd * sqrt(2 * pi))
  top <- do.call(pmax, as.data.frame(each))
  sum(top + log(rowSums(exp(each - top))))
}

test_that("clustering: bic() uses the highest likelihood of centres, proportions and noise", {
  p <- c(0.5, 0.3, 0.2)
  fit <- run(clustering(components = 3, proportions = p, noise_sd = 0.8), few_rows)
  top <- highest(function(x) summed(few_rows, matrix(x, 3), log(p), 0.8), starts(9))
  expect_equal(fit$peaks$maximum, top, tolerance = 1e-4)
  expect_equal(fit$log_evidence, fit$peaks$maximum - 9 / 2 * log(20))
  unknown <- run(clustering(components = 2, infer = TRUE), few_rows)
  top <- highest(function(x)
                   summed(few_rows, matrix(x[1:6], 2),
                          c(plogis(x[7], log.p = TRUE), plogis(-x[7], log.p = TRUE)), exp(x[8])),
                 starts(8))
  expect_equal(unknown$peaks$maximum, top, tolerance = 1e-4)
  expect_equal(unknown$log_evidence, unknown$peaks$maximum - (6 + 1 + 1) / 2 * log(20))
})

test_that("low rank: bic() uses the closed form of probabilistic principal components", {
  spectrum <- eigen(crossprod(few_rows) / 20)$values
  # signal where an eigenvalue exceeds the noise, noise elsewhere
  closed <- function(signal, noise) {
    own <- c(pmax(signal, noise), rep(noise, 3 - length(signal)))
    -20 / 2 * (3 * log(2 * pi) + sum(log(own)) + sum(spectrum / own))
  }
  for (rank in 1:2) {
    fit <- run(low_rank(rank = rank, row_sd = 0.7, noise_sd = 0.8), few_rows)
    expect_equal(fit$peaks$maximum, closed(spectrum[seq_len(rank)], 0.64), tolerance = 1e-5)
    expect_equal(fit$log_evidence,
                 fit$peaks$maximum - (3 * rank - rank * (rank - 1) / 2) / 2 * log(20))
    unknown <- run(low_rank(rank = rank, infer = TRUE), few_rows)
    expect_equal(unknown$peaks$maximum,
                 closed(spectrum[seq_len(rank)], mean(spectrum[-seq_len(rank)])), tolerance = 1e-5)
  }
})

test_that("binary attributes: bic() uses the highest likelihood of features and settings", {
  z <- as.matrix(expand.grid(0:1, 0:1))
  weight <- function(p) z %*% log(p) + (1 - z) %*% log1p(-p)
  fit <- run(binary_attributes(attributes = 2, probabilities = c(0.3, 0.6), noise_sd = 0.9),
             few_rows)
  top <- highest(function(x) summed(few_rows, z %*% matrix(x, 2), weight(c(0.3, 0.6)), 0.9),
                 starts(6))
  expect_equal(fit$peaks$maximum, top, tolerance = 1e-4)
  unknown <- run(binary_attributes(attributes = 2, infer = TRUE), few_rows)
  top <- highest(function(x) summed(few_rows, z %*% matrix(x[1:6], 2), weight(plogis(x[7:8])),
                                    exp(x[9])), starts(9))
  expect_equal(unknown$peaks$maximum, top, tolerance = 1e-3)
  expect_equal(unknown$log_evidence, unknown$peaks$maximum - (6 + 2 + 1) / 2 * log(20))
})

test_that("a likelihood without a maximum is an error, and the highest replicate is used", {
  # a climb may end at a local maximum, as about half of them do
  ends <- vapply(1:10, function(seed) tryCatch({
    quiet_fit(clustering(components = 3, infer = TRUE), few_rows[1:3, ], bic(),
              seed = test_seed(seed))
    "a number"
  }, logevidence_error = conditionMessage), "")
  expect_true(any(grepl("The likelihood has no maximum", ends)))
  model <- clustering(components = 4)
  expect_gte(run(model, few_rows, replicates = 5)$log_evidence, run(model, few_rows)$log_evidence)
  expect_true(is.na(run(model, few_rows)$se))
  # of data with few rows the criterion is many nats off, but for some data sets of a low rank
  models <- list(clustering(components = 6), low_rank(rank = 3), binary_attributes(attributes = 5))
  off <- vapply(models, function(model) {
    made <- bdmc(model, 30, 12, ais(schedule = sigmoidal(1000)), chains = 5, budgets = 1,
                 seed = test_seed(3), progress = FALSE)
    abs(run(model, made$data)$log_evidence - mean(unlist(made$bounds[c("lower", "upper")])))
  }, 0)
  expect_gte(sum(off > 5), 2)
})

# Models with latent variables: every conditional of every sweep is a ratio of joints, and the joints sum to the evidence.

latent <- function(type, args, rows) {
  width <- nrow(rows)
  args <- lapply(c(list(width = width), args), as.double)
  force(rows)
  function(what, state = NULL, seen = ncol(rows), lambda = 1, backwards = FALSE, to = NULL, seed = 1, data = rows) {
    .Call(ffi_latent, type, args, data, what, state, list(seen = as.double(seen), lambda = as.double(lambda),
                                                          backwards = backwards, to = to, seed = words(seed)))
  }
}
some_data <- function(n, d, seed = 1) with_own_seed(test_seed(seed), matrix(rnorm(n * d, sd = 1.5), d))
log_normal <- function(y, covariance) {
  root <- chol(covariance)
  -length(y) / 2 * log(2 * pi) - sum(log(diag(root))) - sum(backsolve(root, y, transpose = TRUE)^2) / 2
}

MODELS <- list(
  clustering = list(type = "clustering", args = list(components = 3, proportions = c(0.5, 0.3, 0.2), prior_sd = 1.3,
                                                     noise_sd = 0.8), head = 2 + 3, per = 1),
  binary = list(type = "binary_attributes", args = list(attributes = 2, probabilities = c(0.3, 0.6), prior_sd = 1.3,
                                                        noise_sd = 0.8), head = 2 + 2, per = 2)
)

#' All latent states of the first n rows, as states
all_states <- function(model, start, n, size) {
  each <- if (model$type == "clustering") as.matrix(expand.grid(rep(list(0:2), n)))
  else as.matrix(expand.grid(rep(list(0:1), 2 * n)))
  lapply(seq_len(nrow(each)), function(i) {
    state <- start
    state[model$head + seq_len(ncol(each))] <- each[i, ]
    state
  })
}

#' log p(rows | latents)^lambda with the common parameters integrated out, by plain linear algebra: a Gaussian likelihood to
#' a power is one of another variance and a constant
plain_log_lik <- function(model, state, rows, lambda) {
  n <- ncol(rows)
  z <- if (model$type == "clustering") outer(state[model$head + seq_len(n)], 0:2, `==`) * 1
  else matrix(state[model$head + seq_len(2 * n)], n, byrow = TRUE)
  s2 <- model$args$noise_sd^2
  covariance <- model$args$prior_sd^2 * z %*% t(z) + diag(s2 / lambda, n)
  sum(apply(rows, 1, function(y) log_normal(y, covariance))) +
    length(rows) * (-lambda / 2 * log(2 * pi * s2) + 0.5 * log(2 * pi * s2 / lambda))
}
plain_log_prior <- function(model, state, n) {
  if (model$type == "clustering") return(sum(log(model$args$proportions[state[model$head + seq_len(n)] + 1])))
  z <- matrix(state[model$head + seq_len(2 * n)], n, byrow = TRUE)
  p <- rep(model$args$probabilities, each = n)
  sum(ifelse(z == 1, log(p), log(1 - p)))
}

test_that("densities of states are those of plain linear algebra, at any temperature", {
  rows <- some_data(4, 3)
  for (model in MODELS) {
    ask <- latent(model$type, model$args, rows)
    states <- all_states(model, ask("start")$state, 4)
    for (state in states[c(1, 7, 20, length(states))]) {
      expect_equal(ask("log_prior", state)$value, plain_log_prior(model, state, 4), tolerance = 1e-12)
      for (lambda in c(1, 0.3, 1e-3))
        expect_equal(ask("log_lik", state, lambda = lambda)$value, plain_log_lik(model, state, rows, lambda), tolerance = 1e-10)
      expect_equal(ask("log_lik", state, lambda = 0)$value, 0)
    }
  }
})

test_that("a sweep's transition density is the product of its conditionals, each a ratio of joints", {
  rows <- some_data(3, 2, 2)
  for (model in MODELS) for (lambda in c(1, 0.4, 0)) for (backwards in c(FALSE, TRUE)) {
    ask <- latent(model$type, model$args, rows)
    start <- ask("start")$state
    states <- all_states(model, start, 3)
    joint <- vapply(states, function(s) ask("log_prior", s)$value + ask("log_lik", s, lambda = lambda)$value, 0)
    key <- function(s) paste(s[-seq_len(model$head)], collapse = "")
    keys <- vapply(states, key, "")
    to <- states[[length(states) - 2]]
    at <- states[[2]]
    spots <- model$head + seq_len(3 * model$per)
    expected <- 0
    for (spot in if (backwards) rev(spots) else spots) {
      choices <- if (model$type == "clustering") 0:2 else 0:1
      value <- vapply(choices, function(x) joint[match(key(replace(at, spot, x)), keys)], 0)
      expected <- expected + value[choices == to[spot]] - log_sum_exp(value)
      at[spot] <- to[spot]
    }
    moved <- ask("sweep", states[[2]], lambda = lambda, backwards = backwards, to = to)
    expect_equal(moved$value, expected, tolerance = 1e-10)
    expect_identical(moved$state, to)
  }
})

test_that("sweeps leave the tempered posterior alone", {
  rows <- some_data(3, 2, 3)
  for (model in MODELS) for (lambda in c(1, 0.4)) for (backwards in c(FALSE, TRUE)) {
    ask <- latent(model$type, model$args, rows)
    states <- all_states(model, ask("start")$state, 3)
    joint <- vapply(states, function(s) ask("log_prior", s)$value + ask("log_lik", s, lambda = lambda)$value, 0)
    p <- exp(joint - log_sum_exp(joint))
    after <- 0 * p
    for (i in seq_along(states)) after <- after + p[i] *
      vapply(states, function(to) exp(ask("sweep", states[[i]], lambda = lambda, backwards = backwards, to = to)$value), 0)
    expect_equal(after, p, tolerance = 1e-8)
  }
})

test_that("a backward sweep is the reverse of a forward one", {
  rows <- some_data(3, 2, 4)
  for (model in MODELS) {
    ask <- latent(model$type, model$args, rows)
    states <- all_states(model, ask("start")$state, 3)
    joint <- function(s) ask("log_prior", s)$value + ask("log_lik", s, lambda = 0.7)$value
    for (pair in list(c(2, 11), c(5, 20), c(9, 9))) {
      a <- states[[pair[1]]]
      b <- states[[pair[2]]]
      expect_equal(joint(a) + ask("sweep", a, lambda = 0.7, to = b)$value,
                   joint(b) + ask("sweep", b, lambda = 0.7, backwards = TRUE, to = a)$value, tolerance = 1e-10)
    }
  }
})

test_that("free sweeps draw by the densities that forced ones report", {
  rows <- some_data(2, 2, 5)
  for (model in MODELS) {
    ask <- latent(model$type, model$args, rows)
    states <- all_states(model, ask("start")$state, 2)
    from <- states[[3]]
    p <- vapply(states, function(to) exp(ask("sweep", from, to = to)$value), 0)
    expect_equal(sum(p), 1)
    draws <- vapply(1:4000, function(seed) {
      match(list(ask("sweep", from, seed = test_seed(seed))$state), states)
    }, 0L)
    counts <- tabulate(draws, length(states))
    keep <- p > 1e-3
    expect_gt(stats::chisq.test(counts[keep], p = p[keep] / sum(p[keep]))$p.value, 1e-4)
  }
})

test_that("rows come and go by their predictive densities", {
  rows <- some_data(3, 2, 6)
  for (model in MODELS) {
    ask <- latent(model$type, model$args, rows)
    start <- ask("start")$state
    state <- all_states(model, start, 3)[[6]]
    before <- all_states(model, start, 2)
    joint <- function(s, n) ask("log_prior", s, seen = n)$value + ask("log_lik", s, seen = n)$value
    # the last row given its own latent, and given the others' alone
    with_latent <- ask("last_given_latent", state)$value
    expect_equal(with_latent, ask("log_lik", state)$value - ask("log_lik", state, seen = 2)$value, tolerance = 1e-10)
    spots <- model$head + 2 * model$per + seq_len(model$per)
    tails <- if (model$per == 1) as.matrix(0:2) else as.matrix(expand.grid(0:1, 0:1))
    value <- apply(tails, 1, function(tail) joint(replace(state, spots, tail), 3))
    rest <- log_sum_exp(value) - joint(state, 2)
    expect_equal(ask("last_given_rest", state)$value, rest, tolerance = 1e-10)
    drawn <- lapply(1:3000, function(seed) ask("extend", state, seen = 2, seed = test_seed(seed)))
    expect_equal(drawn[[1]]$value, rest, tolerance = 1e-10)
    which_tail <- vapply(drawn, function(x) which(apply(tails, 1, function(tail) all(tail == x$state[spots]))), 0L)
    expect_gt(stats::chisq.test(tabulate(which_tail, nrow(tails)), p = exp(value - log_sum_exp(value)))$p.value, 1e-4)
    blind <- vapply(1:3000, function(seed)
      which(apply(tails, 1, function(tail) all(tail == ask("extend_blind", state, seen = 2, seed = test_seed(seed))$state[spots]))), 0L)
    prior <- apply(tails, 1, function(tail) ask("log_prior", replace(state, spots, tail))$value)
    expect_gt(stats::chisq.test(tabulate(blind, nrow(tails)), p = exp(prior - log_sum_exp(prior)))$p.value, 1e-4)
  }
})

low_rank_args <- list(rank = 2, row_sd = 1.2, prior_sd = 0.7, noise_sd = 0.8)

test_that("low rank: densities, rows that come and go, and sweeps", {
  rows <- some_data(4, 3, 7)
  ask <- latent("low_rank", low_rank_args, rows)
  state <- ask("start", seed = 3)$state
  for (i in 0:3) state <- ask("extend_blind", state, seen = i, seed = 4 + i)$state
  v <- matrix(state[3 + 1:6], 2, byrow = TRUE)
  u <- matrix(state[9 + 1:8], 4, byrow = TRUE)
  expect_equal(ask("log_prior", state)$value, sum(dnorm(v, 0, 0.7, log = TRUE)) + sum(dnorm(u, 0, 1.2, log = TRUE)))
  for (lambda in c(0, 0.3, 1))
    expect_equal(ask("log_lik", state, lambda = lambda)$value, lambda * sum(dnorm(t(rows), u %*% v, 0.8, log = TRUE)))
  expect_equal(ask("last_given_latent", state)$value, sum(dnorm(rows[, 4], u[4, ] %*% v, 0.8, log = TRUE)))
  expect_equal(ask("last_given_rest", state)$value, log_normal(rows[, 4], diag(0.64, 3) + 1.44 * crossprod(v)))
  expect_equal(ask("extend", state, seen = 3)$value, ask("last_given_rest", state)$value)
  # forwards and backwards balance
  other <- ask("start", seed = 13)$state
  for (i in 0:3) other <- ask("extend_blind", other, seen = i, seed = 14 + i)$state
  joint <- function(s) ask("log_prior", s)$value + ask("log_lik", s, lambda = 0.6)$value
  expect_equal(joint(state) + ask("sweep", state, lambda = 0.6, to = other)$value,
               joint(other) + ask("sweep", other, lambda = 0.6, backwards = TRUE, to = state)$value, tolerance = 1e-10)
  # rows drawn given the columns: mean and covariance of the conditional
  weight <- 0.6 / 0.64
  precision <- diag(1 / 1.44, 2) + weight * tcrossprod(v)
  draws <- t(vapply(1:3000, function(seed) ask("sweep", state, lambda = 0.6, seed = test_seed(seed))$state[9 + 1:2], numeric(2)))
  z <- sweep(draws, 2, solve(precision, weight * v %*% rows[, 1])) %*% t(chol(precision))
  expect_lt(max(abs(colMeans(z))), 4.5 / sqrt(3000))
  expect_lt(max(abs(crossprod(z) / 3000 - diag(2))), 0.12)
})

test_that("data simulated given a state have that state's likelihood", {
  rows <- some_data(3, 2, 8)
  for (model in MODELS) {
    ask <- latent(model$type, model$args, rows)
    state <- all_states(model, ask("start")$state, 3)[[8]]
    z <- if (model$per == 1) outer(state[model$head + 1:3], 0:2, `==`) * 1 else matrix(state[model$head + 1:6], 3, byrow = TRUE)
    covariance <- 1.69 * tcrossprod(z) + diag(0.64, 3)
    columns <- vapply(1:3000, function(seed) ask("simulate", state, seed = test_seed(seed))$rows[1, ], numeric(3))
    expect_lt(max(abs(tcrossprod(columns) / 3000 - covariance) / sqrt(diag(covariance) %o% diag(covariance))), 0.13)
  }
})

# Models with latent variables: every conditional of every sweep is a ratio of joints, and the
# joints sum to the evidence.

latent <- function(type, args, rows) {
  width <- nrow(rows)
  args <- lapply(c(list(width = width), args), as.double)
  force(rows)
  function(what, state = NULL, seen = ncol(rows), lambda = 1, backwards = FALSE, to = NULL,
           seed = 1, data = rows) {
    answer <- .Call(ffi_model, type, args, data, paste0("state_", what), state,
                    list(seen = seen, lambda = lambda, backwards = backwards, other = to,
                         seed = words(seed)))
    list(value = answer$value, state = answer$theta, rows = answer$first)
  }
}
some_data <- function(n, d, seed = 1)
  with_own_seed(test_seed(seed), matrix(rnorm(n * d, sd = 1.5), d))
log_normal <- function(y, covariance) {
  root <- chol(covariance)
  -length(y) / 2 * log(2 * pi) - sum(log(diag(root))) -
    sum(backsolve(root, y, transpose = TRUE)^2) / 2
}

MODELS <- list(
  clustering = list(type = "clustering",
                    args = list(components = 3, proportions = c(0.5, 0.3, 0.2), prior_sd = 1.3,
                                noise_sd = 0.8), head = 2 + 3, per = 1),
  binary = list(type = "binary_attributes",
                args = list(attributes = 2, probabilities = c(0.3, 0.6), prior_sd = 1.3,
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

#' log p(rows | latents)^lambda with the common parameters integrated out, by plain linear algebra:
#' a Gaussian likelihood to a power is one of another variance and a constant
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
  if (model$type == "clustering")
    return(sum(log(model$args$proportions[state[model$head + seq_len(n)] + 1])))
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
      expect_equal(ask("log_prior", state)$value, plain_log_prior(model, state, 4),
                   tolerance = 1e-12)
      for (lambda in c(1, 0.3, 1e-3))
        expect_equal(ask("log_lik", state, lambda = lambda)$value,
                     plain_log_lik(model, state, rows, lambda), tolerance = 1e-10)
      expect_equal(ask("log_lik", state, lambda = 0)$value, 0)
    }
  }
})

test_that("a sweep's transition density is the product of its conditionals, each a ratio of joints",
          {
  rows <- some_data(3, 2, 2)
  for (model in MODELS) for (lambda in c(1, 0.4, 0)) for (backwards in c(FALSE, TRUE)) {
    ask <- latent(model$type, model$args, rows)
    start <- ask("start")$state
    states <- all_states(model, start, 3)
    joint <- vapply(states, function(s)
                      ask("log_prior", s)$value + ask("log_lik", s, lambda = lambda)$value, 0)
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

test_that("sweeps leave the tempered posterior unchanged", {
  rows <- some_data(3, 2, 3)
  for (model in MODELS) for (lambda in c(1, 0.4)) for (backwards in c(FALSE, TRUE)) {
    ask <- latent(model$type, model$args, rows)
    states <- all_states(model, ask("start")$state, 3)
    joint <- vapply(states, function(s)
                      ask("log_prior", s)$value + ask("log_lik", s, lambda = lambda)$value, 0)
    p <- exp(joint - log_sum_exp(joint))
    after <- 0 * p
    for (i in seq_along(states)) after <- after + p[i] *
      vapply(states, function(to) exp(ask("sweep", states[[i]], lambda = lambda,
                                          backwards = backwards, to = to)$value), 0)
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
                   joint(b) + ask("sweep", b, lambda = 0.7, backwards = TRUE, to = a)$value,
                   tolerance = 1e-10)
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

test_that("adding and removing a row changes the density by its predictive density", {
  rows <- some_data(3, 2, 6)
  for (model in MODELS) {
    ask <- latent(model$type, model$args, rows)
    start <- ask("start")$state
    state <- all_states(model, start, 3)[[6]]
    before <- all_states(model, start, 2)
    joint <- function(s, n) ask("log_prior", s, seen = n)$value + ask("log_lik", s, seen = n)$value
    # the last row given its own latent, and given the others' alone
    with_latent <- ask("last_given_latent", state)$value
    expect_equal(with_latent, ask("log_lik", state)$value - ask("log_lik", state, seen = 2)$value,
                 tolerance = 1e-10)
    spots <- model$head + 2 * model$per + seq_len(model$per)
    tails <- if (model$per == 1) as.matrix(0:2) else as.matrix(expand.grid(0:1, 0:1))
    value <- apply(tails, 1, function(tail) joint(replace(state, spots, tail), 3))
    rest <- log_sum_exp(value) - joint(state, 2)
    expect_equal(ask("last_given_rest", state)$value, rest, tolerance = 1e-10)
    drawn <- lapply(1:3000, function(seed) ask("extend", state, seen = 2, seed = test_seed(seed)))
    expect_equal(drawn[[1]]$value, rest, tolerance = 1e-10)
    which_tail <- vapply(drawn, function(x)
                           which(apply(tails, 1, function(tail) all(tail == x$state[spots]))), 0L)
    expect_gt(stats::chisq.test(tabulate(which_tail, nrow(tails)),
                                p = exp(value - log_sum_exp(value)))$p.value, 1e-4)
    blind <- vapply(1:3000, function(seed)
      which(apply(tails, 1, function(tail)
                    all(tail == ask("extend_blind", state, seen = 2,
                                    seed = test_seed(seed))$state[spots]))), 0L)
    prior <- apply(tails, 1, function(tail) ask("log_prior", replace(state, spots, tail))$value)
    expect_gt(stats::chisq.test(tabulate(blind, nrow(tails)),
                                p = exp(prior - log_sum_exp(prior)))$p.value, 1e-4)
  }
})

low_rank_args <- list(rank = 2, row_sd = 1.2, prior_sd = 0.7, noise_sd = 0.8)

test_that("low rank: densities, added and removed rows, and sweeps are right", {
  rows <- some_data(4, 3, 7)
  ask <- latent("low_rank", low_rank_args, rows)
  state <- ask("start", seed = 3)$state
  for (i in 0:3) state <- ask("extend_blind", state, seen = i, seed = 4 + i)$state
  v <- matrix(state[3 + 1:6], 2, byrow = TRUE)
  u <- matrix(state[9 + 1:8], 4, byrow = TRUE)
  expect_equal(ask("log_prior", state)$value,
               sum(dnorm(v, 0, 0.7, log = TRUE)) + sum(dnorm(u, 0, 1.2, log = TRUE)))
  for (lambda in c(0, 0.3, 1))
    expect_equal(ask("log_lik", state, lambda = lambda)$value,
                 lambda * sum(dnorm(t(rows), u %*% v, 0.8, log = TRUE)))
  expect_equal(ask("last_given_latent", state)$value,
               sum(dnorm(rows[, 4], u[4, ] %*% v, 0.8, log = TRUE)))
  expect_equal(ask("last_given_rest", state)$value,
               log_normal(rows[, 4], diag(0.64, 3) + 1.44 * crossprod(v)))
  expect_equal(ask("extend", state, seen = 3)$value, ask("last_given_rest", state)$value)
  # forwards and backwards balance
  other <- ask("start", seed = 13)$state
  for (i in 0:3) other <- ask("extend_blind", other, seen = i, seed = 14 + i)$state
  joint <- function(s) ask("log_prior", s)$value + ask("log_lik", s, lambda = 0.6)$value
  expect_equal(joint(state) + ask("sweep", state, lambda = 0.6, to = other)$value,
               joint(other) + ask("sweep", other, lambda = 0.6, backwards = TRUE, to = state)$value,
               tolerance = 1e-10)
  # rows drawn given the columns: mean and covariance of the conditional
  weight <- 0.6 / 0.64
  precision <- diag(1 / 1.44, 2) + weight * tcrossprod(v)
  draws <- t(vapply(1:3000, function(seed) ask("sweep", state, lambda = 0.6,
                                               seed = test_seed(seed))$state[9 + 1:2], numeric(2)))
  z <- sweep(draws, 2, solve(precision, weight * v %*% rows[, 1])) %*% t(chol(precision))
  expect_lt(max(abs(colMeans(z))), 4.5 / sqrt(3000))
  expect_lt(max(abs(crossprod(z) / 3000 - diag(2))), 0.12)
})

test_that("data simulated given a state have the likelihood of that state", {
  rows <- some_data(3, 2, 8)
  for (model in MODELS) {
    ask <- latent(model$type, model$args, rows)
    state <- all_states(model, ask("start")$state, 3)[[8]]
    z <- if (model$per == 1) outer(state[model$head + 1:3], 0:2, `==`) * 1 else
      matrix(state[model$head + 1:6], 3, byrow = TRUE)
    covariance <- 1.69 * tcrossprod(z) + diag(0.64, 3)
    columns <- vapply(1:3000, function(seed)
                        ask("simulate", state, seed = test_seed(seed))$rows[1, ], numeric(3))
    expect_lt(max(abs(tcrossprod(columns) / 3000 - covariance) /
                  sqrt(diag(covariance) %o% diag(covariance))), 0.13)
  }
})

# Unknown variances, proportions and probabilities -------------------------------------------------

unknown <- function(args, ...) c(args, list(infer = 1, shape = 3, scale = 2), ...)
UNKNOWN <- list(
  clustering = list(type = "clustering", args = unknown(list(components = 3)), head = 2 + 3,
                    per = 1, noise = 2),
  binary = list(type = "binary_attributes", args = unknown(list(attributes = 2)), head = 2 + 2,
                per = 2, noise = 2)
)

#' A state whose settings and latents all came from the prior
drawn_state <- function(ask, n, seed) {
  state <- ask("start", seed = seed)$state
  for (i in seq_len(n) - 1)
    state <- ask("extend_blind", state, seen = i, seed = seed + 1e5 * (i + 1))$state
  state
}

#' A distribution function from log densities at equally spaced points
tabulated <- function(at, log_density) {
  p <- exp(log_density - max(log_density))
  p <- c(0, cumsum((p[-1] + p[-length(p)]) / 2))
  stats::splinefun(at, p / p[length(p)], "hyman")
}
expect_law <- function(draws, cdf, label) {
  expect_gt(stats::ks.test(draws, function(x) pmin(pmax(cdf(x), 0), 1))$p.value, 1e-4,
            label = label)
}

test_that("with unknown settings, latents are drawn by ratios of joints at the current settings", {
  rows <- some_data(3, 2, 9)
  for (model in UNKNOWN) for (lambda in c(1, 0.4)) for (backwards in c(FALSE, TRUE))
    for (seed in 1:3) {
    ask <- latent(model$type, model$args, rows)
    from <- drawn_state(ask, 3, seed)
    to <- drawn_state(ask, 3, seed + 50)
    moved <- ask("sweep", from, lambda = lambda, backwards = backwards, to = to, seed = seed)
    spots <- model$head + seq_len(3 * model$per)
    settings <- seq_len(model$head)
    expect_identical(moved$state[spots], to[spots])
    expect_true(all(moved$state[settings] != from[settings]))
    # forwards latents come first and see the old settings, backwards last and see the new
    at <- if (backwards) replace(from, settings, moved$state[settings]) else from
    expected <- 0
    for (spot in if (backwards) rev(spots) else spots) {
      choices <- if (model$type == "clustering") 0:2 else 0:1
      value <- vapply(choices, function(x) {
        s <- replace(at, spot, x)
        ask("log_prior", s)$value + ask("log_lik", s, lambda = lambda)$value
      }, 0)
      expected <- expected + value[choices == to[spot]] - log_sum_exp(value)
      at[spot] <- to[spot]
    }
    expect_equal(moved$value, expected, tolerance = 1e-10)
  }
})

test_that("proportions and probabilities are drawn from their conditionals", {
  rows <- some_data(4, 2, 10)
  # also with all in the first cluster, or without any attribute, where the prior's share shows best
  for (model in UNKNOWN) for (backwards in c(FALSE, TRUE)) for (uneven in c(FALSE, TRUE)) {
    ask <- latent(model$type, model$args, rows)
    from <- drawn_state(ask, 4, 3)
    if (uneven) from[model$head + seq_len(4 * model$per)] <- 0
    draws <- t(vapply(seq_len(fast_or_slow(600, 1500)), function(seed)
                        ask("sweep", from, lambda = 0.4, backwards = backwards, to = from,
                            seed = test_seed(seed))$state[3:4], numeric(2)))
    at <- seq(1e-6, 1 - 1e-6, length.out = 81)
    joint <- if (model$type == "clustering") {
      function(p, q) ask("log_prior", replace(from, 3:5, c(p, (1 - p) * c(q, 1 - q))))$value +
        log1p(-p)
    } else {
      function(p, q) ask("log_prior", replace(from, 3:4, c(p, q)))$value
    }
    table <- outer(at, at, Vectorize(joint))
    other <- if (model$type == "clustering") draws[, 2] / (1 - draws[, 1]) else draws[, 2]
    expect_law(draws[, 1], tabulated(at, log_sum_rows(table)),
               paste(model$type, backwards, uneven, 1))
    expect_law(other, tabulated(at, log_sum_rows(t(table))),
               paste(model$type, backwards, uneven, 2))
  }
})

#' The smaller p-value of two variances' laws given the latents: drawn by them, then a few sweeps
#' that move nothing else. `density` is of a state, to which power of the likelihood is known
settings_left <- function(ask, from, density, backwards, moves_at, which = 1:2,
                          draws = fast_or_slow(600, 1200), sweeps = 5) {
  log_variance <- seq(-4, 7, length.out = 45)
  joint <- outer(log_variance, log_variance,
                 Vectorize(function(a, b) density(replace(from, which, exp(c(a, b)))) + a + b))
  # next to nothing lies beyond the table
  expect_lt(max(exp(c(joint[c(1, 45), ], joint[, c(1, 45)]) - max(joint))), 1e-4)
  width <- log_variance[2] - log_variance[1]
  ends <- with_own_seed(test_seed(6), {
    cell <- sample(length(joint), draws, TRUE, exp(joint - max(joint)))
    middle <- cbind(log_variance[row(joint)[cell]], log_variance[col(joint)[cell]])
    start <- exp(middle + stats::runif(2 * draws, -width / 2, width / 2))
    t(vapply(seq_len(draws), function(i) {
      state <- replace(from, which, start[i, ])
      for (k in seq_len(sweeps))
        state <- ask("sweep", state, lambda = moves_at, backwards = backwards, to = from,
                     seed = test_seed(i) + 1e5 * k)$state
      log(state[which])
    }, numeric(2)))
  })
  law <- function(x, table) stats::ks.test(x, tabulated(log_variance, log_sum_rows(table)))$p.value
  min(law(ends[, 1], joint), law(ends[, 2], t(joint)))
}

expect_settings_left <- function(ask, from, density, which, label) {
  at <- function(lambda) function(state) density(state, lambda)
  for (lambda in c(1, 0.4)) for (backwards in c(FALSE, TRUE)) {
    if (!is_slow() && (lambda < 1) != backwards) next
    expect_gt(settings_left(ask, from, at(lambda), backwards, lambda, which), 1e-4,
              label = paste(label, lambda, backwards))
  }
  expect_lt(settings_left(ask, from, at(0.2), TRUE, 1, which), 1e-6, label = label)
  if (is_slow())
    expect_lt(settings_left(ask, from, at(1), FALSE, 0.2, which), 1e-6, label = label)
}

test_that("variances are drawn given latents, with centres and features integrated out", {
  rows <- some_data(6, 3, 11)
  for (model in UNKNOWN) {
    ask <- latent(model$type, model$args, rows)
    density <- function(state, lambda)
      ask("log_prior", state)$value + ask("log_lik", state, lambda = lambda)$value
    expect_settings_left(ask, drawn_state(ask, 6, 5), density, 1:2, model$type)
  }
})

#' log of the joint's integral over the factors of one side, given those of the other: Gaussian, a
#' row or column at a time
integrated_factors <- function(y, other, own_variance, other_variance, noise, lambda) {
  covariance <- own_variance * crossprod(other) + diag(noise / lambda, nrow(y))
  constant <- length(y) * (-lambda / 2 * log(2 * pi * noise) + 0.5 * log(2 * pi * noise / lambda))
  sum(apply(y, 2, log_normal, covariance)) + constant +
    sum(dnorm(other, 0, sqrt(other_variance), log = TRUE))
}

test_that("low rank: factors are drawn by ratios of the joint to its integral over them", {
  rows <- some_data(4, 3, 12)
  for (infer in 0:1) for (lambda in c(1, 0.4)) for (backwards in c(FALSE, TRUE)) {
    args <- if (infer == 1) unknown(list(rank = 2)) else low_rank_args
    ask <- latent("low_rank", args, rows)
    from <- drawn_state(ask, 4, 21)
    to <- drawn_state(ask, 4, 22)
    moved <- ask("sweep", from, lambda = lambda, backwards = backwards, to = to)
    factors <- 3 + seq_len(2 * 3 + 4 * 2)
    expect_identical(moved$state[factors], to[factors])
    old <- from[1:3]
    new <- moved$state[1:3]
    expect_identical(any(new == old), infer == 0)
    v <- function(state) matrix(state[3 + 1:6], 2, byrow = TRUE)
    u <- function(state) matrix(state[9 + 1:8], 4, byrow = TRUE)
    joint <- function(v, u, s) {
      ask("log_lik", c(s, t(v), t(u)), lambda = lambda)$value +
        sum(dnorm(v, 0, sqrt(s[2]), log = TRUE)) +
        sum(dnorm(u, 0, sqrt(s[1]), log = TRUE))
    }
    u_given_v <- function(v, u, s)
      joint(v, u, s) - integrated_factors(rows, v, s[1], s[2], s[3], lambda)
    v_given_u <- function(v, u, s)
      joint(v, u, s) - integrated_factors(t(rows), t(u), s[2], s[1], s[3], lambda)
    # the variances of U and noise have moved before U, that of V after it, or backwards before it
    expected <- if (backwards)
      v_given_u(v(to), u(from), c(old[1], new[2], old[3])) + u_given_v(v(to), u(to), new)
    else u_given_v(v(from), u(to), c(new[1], old[2], new[3])) +
      v_given_u(v(to), u(to), c(new[1], old[2], new[3]))
    expect_equal(moved$value, expected, tolerance = 1e-10)
  }
})

test_that("low rank: variances are drawn from their conditionals, with U integrated out", {
  rows <- some_data(4, 3, 13)
  ask <- latent("low_rank", unknown(list(rank = 2)), rows)
  from <- drawn_state(ask, 4, 23)
  at <- seq(-5, 7, length.out = 201)
  density <- function(state, lambda) {
    v <- matrix(state[3 + 1:6], 2, byrow = TRUE)
    sum(-4 * log(state[1:3]) - 2 / state[1:3]) +
      integrated_factors(rows, v, state[1], state[2], state[3], lambda)
  }
  for (backwards in c(FALSE, TRUE)) {
    draws <- vapply(seq_len(fast_or_slow(600, 1500)), function(seed)
      log(ask("sweep", from, lambda = 0.4, backwards = backwards, to = from,
              seed = test_seed(seed))$state[2]), 0)
    expect_law(draws, tabulated(at, vapply(at, function(x)
                                             density(replace(from, 2, exp(x)), 0.4) + x, 0)), "V")
  }
  expect_settings_left(ask, from, density, c(1, 3), "U and noise")
})

test_that("low rank: U and V are rescaled by a draw from the conditional of their scale", {
  # product and likelihood stay; the ratio of the variances is then of density exp(-scale (1 / rows
  # + 1 / columns))
  rows <- some_data(4, 3, 13)
  ask <- latent("low_rank", unknown(list(rank = 2)), rows)
  from <- drawn_state(ask, 4, 23)
  # a likelihood to the power 0 says nothing: variances are those of the prior, and so independent
  state <- from
  draws <- t(vapply(1:4000, function(turn) {
    state <<- ask("sweep", state, lambda = 1e-9, seed = test_seed(turn))$state
    state[1:3]
  }, numeric(3)))
  draws <- log(draws[seq(5, 4000, by = 5), ])
  for (j in 1:3)
    expect_law(draws[, j], function(x) stats::pgamma(exp(-x), 3, 2, lower.tail = FALSE), j)
  expect_lt(max(abs(stats::cor(draws)[upper.tri(diag(3))])), 0.2)
})

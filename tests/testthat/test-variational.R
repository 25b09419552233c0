# Variational Bayes: what plain R makes of every factor, and bounds that lie below the evidence.

bound_of <- function(model, data, method = variational(), seed = 1, ...)
  evidence(model, data, method, seed = test_seed(seed), progress = FALSE, ...)

#' The functions of C for one model and data
factors_of <- function(model, data) {
  encoded <- encode(model, data)
  args <- lapply(encoded$args, as.double)
  function(what, q = NULL, factor = 0, hint = NULL, seed = 1) {
    if (what == "factors") return(.Call(ffi_model_facts, model$name, args)$factors[1])
    answer <- .Call(ffi_model, model$name, args, encoded$rows, paste0("q_", what), q,
                    list(factor = factor, other = hint, seed = words(seed)))
    list(value = answer$value, q = answer$theta, point = answer$first)
  }
}

# Layouts -----------------------------------------------------------------------------------------

#' Each part of q: its shape, what kind of numbers it holds, which factor it belongs to
layout <- function(model, n, d) {
  part <- function(rows, columns, kind, factor)
    list(dim = c(rows, columns), kind = kind, factor = factor)
  k <- switch(model$name, gaussian_mixture = model$components, low_rank = model$args$rank,
              clustering = model$args$components, binary_attributes = model$args$attributes)
  infer <- identical(model$args$infer, 1)
  parts <- switch(model$name,
    clustering = list(share = part(k, n, "simplex", 0), mean = part(d, k, "real", 1),
                      variance = part(k, 1, "positive", 1),
                      spread = part(2, 1, "positive", 2), noise = part(2, 1, "positive", 3),
                      alpha = part(k, 1, "positive", 4)),
    low_rank = list(u = part(k, n, "real", 0), u_cov = part(k, k, "covariance", 0),
                    v = part(d, k, "real", 1),
                    v_cov = part(k, k, "covariance", 1), row = part(2, 1, "positive", 2),
                    column = part(2, 1, "positive", 3), noise = part(2, 1, "positive", 4)),
    binary_attributes = list(on = part(k, n, "bits", 0), mean = part(d, k, "real", 1),
                             cov = part(k, k, "covariance", 1),
                             spread = part(2, 1, "positive", 2), noise = part(2, 1, "positive", 3),
                             beta = part(2, k, "positive", 4)),
    gaussian_mixture = list(share = part(k, n, "simplex", 0), alpha = part(k, 1, "positive", 1),
                            centre = part(d, k, "real", 2),
                            count = part(d, k, "positive", 2), shape = part(d, k, "positive", 2),
                            scale = part(d, k, "positive", 2))
  )
  factors <- if (infer) 5 else if (model$name == "gaussian_mixture") 3 else 2
  lapply(parts, function(p) c(p, list(used = p$factor < factors)))
}
unpack <- function(q, parts) {
  sizes <- vapply(parts, function(p) prod(p$dim), 0)
  stopifnot(sum(sizes) == length(q))
  ends <- cumsum(sizes)
  Map(function(p, end, size) matrix(q[end - size + seq_len(size)], p$dim[1]), parts, ends, sizes)
}

#' A step of q along a direction of standard normal numbers, which never leaves the densities
step_along <- function(q, parts, direction, size, which) {
  old <- unpack(q, parts)
  along <- unpack(direction, parts)
  unlist(lapply(names(parts), function(name) {
    x <- old[[name]]
    e <- size * along[[name]]
    if (!name %in% which) return(x)
    switch(parts[[name]]$kind,
      real = x + e, positive = x * exp(e), bits = stats::plogis(stats::qlogis(x) + e),
      simplex = { y <- x * exp(e); sweep(y, 2, colSums(y), "/") },
      covariance = { a <- diag(nrow(x)) + e; a %*% x %*% t(a) }
    )
  }))
}

# Cases -------------------------------------------------------------------------------------------

mixture <- function(k) gaussian_mixture(components = k, location = 0.2, mean_scale = 1.5, shape = 2,
                                        rate = 1.2, concentration = 0.7)
known <- list(
  clustering = CASES$clustering$model,
  low_rank = low_rank(rank = 1, row_sd = 0.9, column_sd = 1.1, noise_sd = 0.8),
  binary = CASES$binary$model
)
unknown <- list(
  clustering_unknown = clustering(components = 2, infer = TRUE, shape = 3, scale = 2),
  low_rank_unknown = low_rank(rank = 1, infer = TRUE, shape = 3, scale = 2),
  binary_unknown = binary_attributes(attributes = 2, infer = TRUE, shape = 3, scale = 2)
)
models <- c(known, unknown, list(mixture = mixture(2)))
larger <- with_own_seed(test_seed(3),
                        cbind(a = rnorm(12, sd = 2), b = rnorm(12), c = rnorm(12, sd = 1.5)))
of_rank_two <- c(models, list(low_rank_two = low_rank(rank = 2, infer = TRUE, noise_sd = 0.5)))

climb_to_rest <- function(ask, rounds = 3000, seed = 1) {
  q <- ask("start", seed = seed)$q
  for (round in seq_len(rounds)) {
    old <- q
    for (factor in seq_len(ask("factors")) - 1) q <- ask("update", q, factor)$q
    if (max(abs(q - old)) < 1e-13) break
  }
  q
}

# Plain R -----------------------------------------------------------------------------------------

log_inverse_gamma <- function(x, shape, scale)
  dgamma(1 / x, shape, rate = scale, log = TRUE) - 2 * log(x)
draw_inverse_gamma <- function(q)
  1 / rgamma(length(q) / 2, q[seq(1, length(q), 2)], rate = q[seq(2, length(q), 2)])
log_dirichlet <- function(x, alpha)
  sum((alpha - 1) * log(x)) + lgamma(sum(alpha)) - sum(lgamma(alpha))
draw_dirichlet <- function(alpha) { x <- rgamma(length(alpha), alpha); x / sum(x) }
draw_vector <- function(mean, covariance) mean + drop(t(chol(covariance)) %*% rnorm(length(mean)))
log_vector <- function(x, mean, covariance) {
  root <- chol(covariance)
  sum(dnorm(backsolve(root, x - mean, transpose = TRUE), log = TRUE)) - sum(log(diag(root)))
}
variance_ratio <- function(x, q, model)
  log_inverse_gamma(x, model$args$shape, model$args$scale) - log_inverse_gamma(x, q[1], q[2])

#' log p(rows, unknowns) - log q(unknowns) at one draw from q
ratio_at_draw <- list(
  clustering = function(q, model, y) {
    k <- ncol(q$mean)
    infer <- model$args$infer == 1
    z <- apply(q$share, 2, function(p) sample.int(k, 1, prob = p))
    theta <- q$mean + rnorm(length(q$mean)) * rep(sqrt(q$variance), each = nrow(q$mean))
    spread <- if (infer) draw_inverse_gamma(q$spread) else model$args$prior_sd^2
    noise <- if (infer) draw_inverse_gamma(q$noise) else model$args$noise_sd^2
    p <- if (infer) draw_dirichlet(q$alpha) else model$args$proportions
    sum(log(p[z])) + sum(dnorm(y, theta[, z], sqrt(noise), log = TRUE)) +
      sum(dnorm(theta, 0, sqrt(spread), log = TRUE)) -
      sum(log(q$share[cbind(z, seq_along(z))])) -
      sum(dnorm(theta, q$mean, rep(sqrt(q$variance), each = nrow(q$mean)), log = TRUE)) +
      if (infer) variance_ratio(spread, q$spread, model) + variance_ratio(noise, q$noise, model) +
        log_dirichlet(p, rep(1, k)) - log_dirichlet(p, q$alpha) else 0
  },
  low_rank = function(q, model, y) {
    infer <- model$args$infer == 1
    u <- apply(q$u, 2, draw_vector, q$u_cov)
    v <- apply(q$v, 1, draw_vector, q$v_cov)
    u <- matrix(u, nrow(q$u))
    v <- matrix(v, ncol(q$v))
    s <- if (infer) c(draw_inverse_gamma(q$row), draw_inverse_gamma(q$column),
                      draw_inverse_gamma(q$noise))
    else c(model$args$row_sd, model$args$prior_sd, model$args$noise_sd)^2
    sum(dnorm(y, t(v) %*% u, sqrt(s[3]), log = TRUE)) + sum(dnorm(u, 0, sqrt(s[1]), log = TRUE)) +
      sum(dnorm(v, 0, sqrt(s[2]), log = TRUE)) -
      sum(vapply(seq_len(ncol(u)), function(i) log_vector(u[, i], q$u[, i], q$u_cov), 0)) -
      sum(vapply(seq_len(ncol(v)), function(j) log_vector(v[, j], q$v[j, ], q$v_cov), 0)) +
      if (infer) variance_ratio(s[1], q$row, model) + variance_ratio(s[2], q$column, model) +
        variance_ratio(s[3], q$noise, model) else 0
  },
  binary_attributes = function(q, model, y) {
    infer <- model$args$infer == 1
    k <- nrow(q$on)
    z <- (matrix(runif(length(q$on)), k) < q$on) * 1
    a <- matrix(apply(q$mean, 1, draw_vector, q$cov), k)
    spread <- if (infer) draw_inverse_gamma(q$spread) else model$args$prior_sd^2
    noise <- if (infer) draw_inverse_gamma(q$noise) else model$args$noise_sd^2
    p <- if (infer) rbeta(k, q$beta[1, ], q$beta[2, ]) else model$args$probabilities
    sum(dnorm(y, t(a) %*% z, sqrt(noise), log = TRUE)) +
      sum(dnorm(a, 0, sqrt(spread), log = TRUE)) +
      sum(dbinom(z, 1, p, log = TRUE)) - sum(dbinom(z, 1, q$on, log = TRUE)) -
      sum(vapply(seq_len(ncol(a)), function(j) log_vector(a[, j], q$mean[j, ], q$cov), 0)) +
      if (infer) variance_ratio(spread, q$spread, model) + variance_ratio(noise, q$noise, model) -
        sum(dbeta(p, q$beta[1, ], q$beta[2, ], log = TRUE)) else 0
  },
  gaussian_mixture = function(q, model, y) {
    k <- ncol(q$centre)
    z <- apply(q$share, 2, function(p) sample.int(k, 1, prob = p))
    w <- draw_dirichlet(q$alpha)
    s2 <- 1 / rgamma(length(q$shape), q$shape, rate = q$scale)
    mu <- q$centre + sqrt(s2 / q$count) * rnorm(length(s2))
    dim(s2) <- dim(mu)
    sum(log(w[z])) + sum(dnorm(y, mu[, z], sqrt(s2[, z]), log = TRUE)) -
      sum(log(q$share[cbind(z, seq_along(z))])) +
      log_dirichlet(w, rep(model$concentration, k)) - log_dirichlet(w, q$alpha) +
      sum(dnorm(mu, model$location, model$mean_scale * sqrt(s2), log = TRUE) +
          log_inverse_gamma(s2, model$shape, model$rate)) -
      sum(dnorm(mu, q$centre, sqrt(s2 / q$count), log = TRUE) +
          log_inverse_gamma(s2, q$shape, q$scale))
  }
)

test_that("the bound equals its expectation in plain R for each q", {
  for (name in names(of_rank_two)) {
    model <- of_rank_two[[name]]
    ask <- factors_of(model, larger[1:6, ])
    parts <- layout(model, 6, 3)
    set.seed(test_seed(5))
    q <- ask("start")$q
    q <- step_along(q, parts, rnorm(length(q)), 0.2, names(parts))
    n <- fast_or_slow(500, 3000)
    ratio <- replicate(n, ratio_at_draw[[model$name]](unpack(q, parts), model, t(larger[1:6, ])))
    expect_lt(abs(mean(ratio) - ask("bound", q)$value) * sqrt(n) / sd(ratio), 4.5, label = name)
    expect_lt(sd(ratio) / sqrt(n), 0.5)
  }
})

test_that("no update lowers the bound, and each maximises it over its factor", {
  for (name in names(of_rank_two)) {
    model <- of_rank_two[[name]]
    ask <- factors_of(model, larger)
    parts <- layout(model, 12, 3)
    set.seed(test_seed(6))
    for (factor in seq_len(ask("factors")) - 1) for (seed in 1:3) {
      q <- ask("start", seed = seed)$q
      q <- step_along(q, parts, rnorm(length(q)), 0.3, names(parts))
      before <- ask("bound", q)$value
      q <- ask("update", q, factor)$q
      after <- ask("bound", q)$value
      expect_gt(after, before, label = paste(name, factor))
      # attributes are updated one after the other, and only the last is the best given the others
      if (model$name == "binary_attributes" && factor == 0) next
      own <- names(Filter(function(p) p$factor == factor, parts))
      direction <- rnorm(length(q))
      for (size in c(1, 0.1, 0.01))
        expect_lt(ask("bound", step_along(q, parts, direction, size, own))$value, after,
                  label = paste(name, factor, size))
      slope <- (ask("bound", step_along(q, parts, direction, 1e-4, own))$value -
                  ask("bound", step_along(q, parts, direction, -1e-4, own))$value) / 2e-4
      expect_lt(abs(slope), 1e-4, label = paste("slope", name, factor))
    }
  }
})

test_that("climbs end at local maxima of all factors together", {
  for (name in names(of_rank_two)) {
    model <- of_rank_two[[name]]
    ask <- factors_of(model, larger)
    parts <- layout(model, 12, 3)
    used <- names(Filter(function(p) p$used, parts))
    q <- climb_to_rest(ask)
    top <- ask("bound", q)$value
    set.seed(test_seed(7))
    for (which in c(as.list(used), list(used))) for (trial in 1:3) {
      direction <- rnorm(length(q))
      at <- function(size) ask("bound", step_along(q, parts, direction, size, which))$value
      # shares of 0 or 1 to the last digit do not move
      for (size in c(0.3, 0.03, 0.003))
        expect_lte(at(size), top + 1e-11 * abs(top), label = paste(name, which[1], size))
      expect_lt(abs(at(1e-4) - at(-1e-4)) / 2e-4, 1e-4, label = paste("slope", name, which[1]))
    }
    expect_lt(at(0.3), top - 0.01)
  }
})

# Truths ------------------------------------------------------------------------------------------

#' Evidence with unknown variances by a grid over their logs; latents are enumerated with
#' proportions integrated out
unknown_truth <- function(data, designs, log_prior, shape, scale) {
  x <- seq(-5, 6, length.out = 120)
  grid <- expand.grid(spread = exp(x), noise = exp(x))
  prior <- log_inverse_gamma(grid$spread, shape, scale) + log(grid$spread) +
    log_inverse_gamma(grid$noise, shape, scale) +
    log(grid$noise) + 2 * log(x[2] - x[1])
  log_sum_exp(mapply(function(z, lp) {
    e <- eigen(tcrossprod(z), symmetric = TRUE)
    along <- rowSums(crossprod(e$vectors, data)^2)
    density <- 0
    for (i in seq_along(along)) {
      v <- grid$spread * max(e$values[i], 0) + grid$noise
      density <- density - 0.5 * (ncol(data) * log(2 * pi * v) + along[i] / v)
    }
    lp + log_sum_exp(prior + density)
  }, designs, log_prior))
}
four <- few_rows[1:4, ]
truths <- list(
  clustering = function() CASES$clustering$truth,
  low_rank = function() CASES$low_rank$truth,
  binary = function() CASES$binary$truth,
  clustering_unknown = function() {
    picks <- as.matrix(expand.grid(rep(list(1:2), 4)))
    # Dirichlet(1, 1): counts of n things in two places are equally likely
    log_prior <- apply(picks, 1, function(z) sum(lgamma(tabulate(z, 2) + 1)) - lgamma(6))
    unknown_truth(four, lapply(seq_len(nrow(picks)), function(i) diag(2)[picks[i, ], ]), log_prior,
                  3, 2)
  },
  binary_unknown = function() {
    picks <- as.matrix(expand.grid(rep(list(0:1), 8)))
    designs <- lapply(seq_len(nrow(picks)), function(i) matrix(picks[i, ], 4))
    log_prior <- vapply(designs, function(z) sum(lbeta(1 + colSums(z), 5 - colSums(z))), 0)
    unknown_truth(four, designs, log_prior, 3, 2)
  },
  low_rank_unknown = function() with_own_seed(test_seed(8), {
    # draws from the prior of variances and V, with U integrated out
    m <- 2e5
    s <- matrix(1 / rgamma(3 * m, 3, rate = 2), m)
    v <- matrix(rnorm(2 * m, sd = sqrt(s[, 2])), m)
    length2 <- rowSums(v^2)
    along <- four %*% t(v)
    inflation <- 1 + s[, 1] * length2 / s[, 3]
    log_lik <- -4 * log(2 * pi * s[, 3]) - 2 * log(inflation) -
      0.5 * (sum(four^2) - s[, 1] / s[, 3] / inflation * colSums(along^2)) / s[, 3]
    log_sum_exp(log_lik) - log(m) + 4 * sd(exp(log_lik)) / mean(exp(log_lik)) / sqrt(m)
  }),
  mixture = function() mixture_truth(four, 2)
)
mixture_truth <- function(data, k) {
  one <- function(y) {
    n <- length(y)
    if (n == 0) return(0)
    # normal-inverse-gamma, by the textbook
    kappa <- 1 / 1.5^2
    rate <- 1.2 + 0.5 * sum((y - mean(y))^2) + 0.5 * kappa * n * (mean(y) - 0.2)^2 / (kappa + n)
    lgamma(2 + n / 2) - lgamma(2) + 2 * log(1.2) - (2 + n / 2) * log(rate) +
      0.5 * log(kappa / (kappa + n)) -
      n / 2 * log(2 * pi)
  }
  picks <- as.matrix(expand.grid(rep(list(seq_len(k)), nrow(data))))
  log_sum_exp(apply(picks, 1, function(z) {
    count <- tabulate(z, k)
    sum(lgamma(0.7 + count)) - k * lgamma(0.7) + lgamma(0.7 * k) - lgamma(0.7 * k + nrow(data)) +
      sum(vapply(seq_len(k), function(c) one(data[z == c, 1]) + one(data[z == c, 2]), 0))
  }))
}

test_that("bounds lie below the evidence, with all their relabellings too, and not far below", {
  for (name in names(models)) {
    fit <- bound_of(models[[name]], if (name %in% names(known)) few_rows else four)
    truth <- truths[[name]]()
    # what relabelling adds is a mean over draws
    expect_lt(fit$log_evidence, truth + 0.03, label = name)
    expect_lt(fit$variational$bound, truth)
    expect_gt(fit$log_evidence, truth - 4, label = name)
    expect_equal(fit$log_evidence, fit$variational$bound + fit$variational$symmetry)
    expect_gte(fit$variational$symmetry, 0)
    expect_lte(fit$variational$symmetry, fit$variational$relabellings)
  }
})

test_that("bounds are exact where q holds the posterior", {
  one <- clustering(components = 1, prior_sd = 1.3, noise_sd = 0.8)
  expect_equal(bound_of(one, few_rows)$log_evidence, enumerated(few_rows, diag(1), 0, 1.3, 0.8),
               tolerance = 1e-10)
  expect_equal(bound_of(mixture(1), few_rows)$log_evidence, mixture_truth(few_rows, 1),
               tolerance = 1e-10)
  expect_equal(bound_of(mixture(1), few_rows)$log_evidence,
               evidence(mixture(1), few_rows, exact())$log_evidence,
               tolerance = 1e-10)
})

test_that("with clusters far apart bounds are exact but for the labelling", {
  model <- clustering(components = 2, prior_sd = 60, noise_sd = 0.7)
  data <- matrix(c(-60, -59, 60, 61), dimnames = list(NULL, "a"))
  fit <- bound_of(model, data)
  truth <- enumerated(data, diag(2), log(c(0.5, 0.5)), 60, 0.7)
  expect_equal(fit$log_evidence, truth, tolerance = 1e-8)
  expect_equal(fit$variational$symmetry, log(2))
  expect_equal(bound_of(model, data, variational(symmetry = FALSE))$log_evidence, truth - log(2),
               tolerance = 1e-8)
})

# Relabellings ------------------------------------------------------------------------------------

permutations <- function(k) {
  all <- as.matrix(expand.grid(rep(list(seq_len(k)), k)))
  all[apply(all, 1, function(p) !anyDuplicated(p)), , drop = FALSE]
}

#' The mutual information of latents and labelling, summed over all of both
plain_gain <- function(share, bits, value) {
  k <- nrow(share)
  n <- ncol(share)
  orders <- permutations(k)
  orders <- orders[apply(orders, 1, function(p) all(value[p] == value)), , drop = FALSE]
  z <- as.matrix(expand.grid(rep(list(if (bits) 0:1 else seq_len(k)), if (bits) n * k else n)))
  probability <- function(z, share) {
    if (bits) prod(ifelse(z == 1, share, 1 - share)) else prod(share[cbind(z, seq_len(n))])
  }
  each <- apply(orders, 1, function(p) apply(z, 1, probability, share[p, , drop = FALSE]))
  mixed <- rowMeans(each)
  first <- apply(z, 1, probability, share)
  sum((first * log(first / mixed))[first > 0])
}

gain_of <- function(model, share) {
  data <- matrix(0, ncol(share), 1, dimnames = list(NULL, "a"))
  parts <- layout(model, ncol(share), 1)
  q <- lapply(parts, function(p) matrix(1, p$dim[1], p$dim[2]))
  q[[1]] <- share
  factors_of(model, data)("symmetry", unlist(q))$value
}

test_that("relabellings add their mutual information with the latents", {
  set.seed(test_seed(9))
  for (spread in c(0.5, 2)) {
    share <- matrix(rexp(12)^spread, 3)
    share <- sweep(share, 2, colSums(share), "/")
    expect_lt(abs(gain_of(clustering(components = 3), share) -
                  plain_gain(share, FALSE, c(1, 1, 1))), 0.06)
    unlike <- c(0.3, 0.3, 0.4)
    expect_lt(abs(gain_of(clustering(components = 3, proportions = unlike), share) -
                  plain_gain(share, FALSE, unlike)), 0.06)
    on <- matrix(rbeta(9, 0.5, 0.5), 3)
    expect_lt(abs(gain_of(binary_attributes(attributes = 3), on) -
                  plain_gain(on, TRUE, c(1, 1, 1))), 0.06)
    expect_lt(abs(gain_of(binary_attributes(attributes = 3, probabilities = unlike), on) -
                  plain_gain(on, TRUE, unlike)), 0.06)
  }
})

test_that("separate relabellings are counted in full, coinciding ones not at all", {
  sure <- function(k, n) outer(seq_len(k), rep(seq_len(k), length.out = n), `==`) * 1
  expect_equal(gain_of(clustering(components = 5), sure(5, 20)), log(120))
  expect_equal(gain_of(gaussian_mixture(components = 5), sure(5, 20)), log(120))
  expect_equal(gain_of(binary_attributes(attributes = 5), sure(5, 20)), log(120))
  expect_equal(gain_of(clustering(components = 4), matrix(0.25, 4, 9)), 0)
  expect_identical(gain_of(clustering(components = 1), matrix(1, 1, 3)), 0)
  expect_identical(gain_of(clustering(components = 2, proportions = c(0.4, 0.6)), sure(2, 6)), 0)
  # ten of sixteen components are empty, and exchanging those does nothing
  empty <- function(k) rbind(sure(6, 18),
                             matrix(0, k - 6, 18))[, rep(1:18, length.out = max(18, k))]
  expect_equal(gain_of(clustering(components = 16), empty(16)), lfactorial(16) - lfactorial(10))
  # of more than twelve a cautious part
  expect_lt(gain_of(clustering(components = 20), empty(20)), lfactorial(20) - lfactorial(14))
  expect_gt(gain_of(clustering(components = 20), empty(20)), 0)
  expect_identical(gain_of(clustering(components = 201), rbind(1, matrix(0, 200, 201))), 0)
})

# Draws, starts, runs ------------------------------------------------------------------------------

test_that("draws have the moments of q", {
  for (name in names(of_rank_two)) {
    model <- of_rank_two[[name]]
    ask <- factors_of(model, larger)
    parts <- layout(model, 12, 3)
    q <- climb_to_rest(ask, 5)
    own <- unpack(q, parts)
    draws <- vapply(seq_len(fast_or_slow(500, 1500)), function(seed)
      ask("draw", q, seed = seed)$point, ask("draw", q)$point)
    encoded <- encode(model, larger)
    rownames(draws) <- encoded$theta_names
    pick <- function(pattern) t(draws[grepl(pattern, rownames(draws)), , drop = FALSE])
    infer <- identical(model$args$infer, 1)
    # inverse gamma and Dirichlet by the logs, which have all moments
    log_mean <- function(part) log(part[2]) - digamma(part[1])
    if (infer) {
      expect_z(z_score(log(pick("^prior_sd|^column_sd")),
                       log_mean(if (model$name == "low_rank") own$column else own$spread)))
      expect_z(z_score(log(pick("^noise_sd")), log_mean(own$noise)))
    } else if (model$name != "gaussian_mixture") {
      expect_equal(unique(drop(pick("^noise_sd"))), model$args$noise_sd^2)
    }
    switch(model$name,
      clustering = {
        together <- do.call(cbind,
                            lapply(0:(nrow(own$share) - 1), function(k) pick("^label") == k)) * 1
        moves <- apply(together, 2, sd) > 0.05
        expect_z(z_score(together, as.vector(t(own$share)))[moves])
        if (infer) expect_z(z_score(log(pick("^proportion")),
                                    drop(digamma(own$alpha) - digamma(sum(own$alpha)))))
      },
      low_rank = {
        expect_z(z_score(pick("^u\\["), as.vector(own$u)))
        expect_z(z_score(pick("^v\\["), as.vector(own$v)))
        expect_z(z_score(pick("^u\\[2,")[, 1]^2, own$u[1, 2]^2 + own$u_cov[1, 1]))
        k <- nrow(own$u)
        expect_z(z_score(pick("^v\\[1,b")[, 1] * pick(sprintf("^v\\[%d,b", k))[, 1],
                         own$v[2, 1] * own$v[2, k] + own$v_cov[1, k]))
      },
      binary_attributes = {
        bits <- pick("^z")
        moves <- apply(bits, 2, sd) > 0.05
        expect_z(z_score(bits, as.vector(own$on))[moves])
        if (infer) expect_z(z_score(pick("^probability"), own$beta[1, ] / colSums(own$beta)))
      },
      gaussian_mixture = {
        user <- .Call(ffi_model, model$name, encoded$args, encoded$rows, "to_user", draws, list())
        rownames(user) <- encoded$user_names
        user <- t(user)
        expect_z(z_score(user[, 1:2], drop(own$alpha) / sum(own$alpha)))
        expect_z(z_score(user[, grepl("^mean", colnames(user))], as.vector(own$centre)))
        expect_z(z_score(log(user[, grepl("^sd", colnames(user))]^2),
                         as.vector(log(own$scale) - digamma(own$shape))))
        # what is left of the mean in standard deviations has variance one over the count
        standard <- (user[, "mean[1,a]"] - own$centre[1, 1]) / user[, "sd[1,a]"]
        expect_z(z_score(standard^2, 1 / own$count[1, 1]))
      }
    )
  }
})

test_that("climbs may start from a state, or from theta", {
  for (name in names(of_rank_two)) {
    model <- of_rank_two[[name]]
    ask <- factors_of(model, larger)
    point <- ask("draw", climb_to_rest(ask, 5))$point
    near <- ask("start", hint = point)$q
    expect_true(is.finite(ask("bound", near)$value))
    expect_identical(near, ask("start", hint = point, seed = 7)$q)
    own <- unpack(near, layout(model, 12, 3))
    names(point) <- encode(model, larger)$theta_names
    labels <- point[grepl("^label|^z", names(point))]
    if (model$name == "clustering")
      expect_identical(own$share, outer(seq_len(nrow(own$share)) - 1, unname(labels), `==`) * 1)
    if (model$name == "binary_attributes") expect_identical(as.vector(own$on), unname(labels))
    if (model$name == "low_rank") {
      v <- grepl("^v\\[", names(point))
      other <- unpack(ask("start", hint = replace(point, v, -point[v]))$q, layout(model, 12, 3))
      expect_equal(other$v, -own$v)
      expect_gt(cor(as.vector(own$v), point[v]), 0.5)
    }
  }
  ask <- factors_of(gaussian_mixture(components = 2), cbind(a = c(-9, -10, -11, 9, 10, 11)))
  # log ratio, standard means, log variances: the second component is the one at -10
  q <- unpack(ask("start", hint = c(0, 5, -5, 0, 0))$q,
              layout(gaussian_mixture(components = 2), 6, 1))
  expect_equal(q$share[1, ], rep(0:1, each = 3))
  encoded <- encode(known$clustering, few_rows)
  problem <- new_problem(known$clustering, encoded, variational(1), words())
  problem$settings$from_state <- c(1, 2)
  refused(conduct(problem, encoded$rows), "A state of 5 rows must have 10 numbers, not 2")
})

test_that("the best of the climbs is reported, and more climbs are never worse", {
  model <- binary_attributes(attributes = 3, noise_sd = 0.5)
  few <- bound_of(model, larger, variational(4, sweeps = 0))
  more <- bound_of(model, larger, variational(20, sweeps = 0))
  expect_identical(nrow(more$variational$restarts), 20L)
  expect_identical(few$variational$restarts$bound, more$variational$restarts$bound[1:4])
  expect_identical(more$variational$bound, max(more$variational$restarts$bound))
  expect_gt(diff(range(more$variational$restarts$bound)), 0.5)
  again <- bound_of(model, larger, variational(20, sweeps = 0))
  expect_identical(again[c("log_evidence", "draws")], more[c("log_evidence", "draws")])
  # replicates are further restarts
  repeated <- bound_of(model, larger, variational(2, sweeps = 0), replicates = 4)
  expect_identical(repeated$log_evidence, max(repeated$replicates$log_evidence))
  expect_identical(repeated$source, "variational")
})

test_that("a climb ends by its tolerance or at its limit of iterations", {
  model <- unknown$binary_unknown
  ask <- factors_of(model, larger)
  restarts <- bound_of(model, larger,
                       variational(3, sweeps = 0, tolerance = 1e-9))$variational$restarts
  expect_true(all(restarts$converged & restarts$iterations >= 50 & restarts$iterations %% 10 == 0))
  fit <- bound_of(model, larger, variational(1, sweeps = 0, iterations = 3))
  expect_match(fit$warnings, "The best start reached the limit", fixed = TRUE)
  expect_null(fit$failed)
  expect_false(fit$variational$restarts$converged)
  # three rounds by hand, from the same stream
  q <- ask("start", seed = 1)$q
  by_hand <- function(rounds) {
    for (round in seq_len(rounds)) for (factor in 0:4) q <<- ask("update", q, factor)$q
    ask("bound", q)$value
  }
  same <- .Call(ffi_model, model$name, lapply(encode(model, larger)$args, as.double),
                encode(model, larger)$rows, "q_start", NULL, list(seed = fit$seed))
  q <- same$theta
  expect_equal(by_hand(3), fit$variational$bound)
  long <- bound_of(model, larger,
                   variational(1, sweeps = 0, tolerance = 0.01))$variational$restarts$iterations
  q <- same$theta
  climbed <- c(ask("bound", q)$value, vapply(1:(long / 10), function(i) by_hand(10), 0))
  grown <- utils::tail(climbed, -5) - utils::head(climbed, -5)
  expect_identical(which(grown < 0.01)[1], length(grown))
})

test_that("sweeps before the climbs find better starts", {
  set.seed(test_seed(10))
  z <- matrix(rbinom(200, 1, 0.4), 40)
  data <- z %*% matrix(rnorm(40), 5) + rnorm(320, sd = 0.4)
  model <- binary_attributes(attributes = 5, probabilities = 0.4, noise_sd = 0.4)
  mean_of <- function(sweeps)
    mean(bound_of(model, data, variational(8, sweeps = sweeps))$variational$restarts$bound)
  expect_gt(mean_of(60), mean_of(0) + 10)
})

test_that("a climb begins at the given state", {
  for (model in list(clustering(components = 3), low_rank(rank = 2, noise_sd = 0.5),
                     binary_attributes(attributes = 2, noise_sd = 0.5))) {
    both <- bdmc(model, n = 15, columns = 3, ais(schedule = sigmoidal(2)), chains = 2, budgets = 1,
                 seed = test_seed(11), progress = FALSE)
    # ten iterations are too few, which a warning says
    from <- function(state, seed, restarts = 1, ...) suppressWarnings(bound_of(
      model, both$data, variational(restarts, start = state, ..., draws = 2), seed))$variational
    given <- from(both$state, 1, iterations = 10)$bound
    expect_identical(from(both$state, 2, iterations = 10)$bound, given)
    # as by hand: q around the state, then ten updates of all factors
    ask <- factors_of(model, both$data)
    q <- ask("start", hint = both$state)$q
    for (i in 1:10) for (factor in seq_len(ask("factors")) - 1)
      q <- ask("update", q, factor)$q
    expect_equal(given, ask("bound", q)$value, tolerance = 1e-10)
    # without it, elsewhere; and later starts do not begin there
    expect_false(identical(from(NULL, 1, iterations = 10)$bound, given))
    several <- from(both$state, 1, 3, iterations = 10)$restarts$bound
    expect_identical(several[1], given)
    expect_false(any(several[-1] == given))
    refused(from(both$state[-1], 1), "numbers, not")
  }
})

test_that("fits are printed as bounds, and can be used like others", {
  fit <- bound_of(mixture(2), larger)
  expect_match(said(fit), "lower bound, all labellings", fixed = TRUE)
  expect_match(said(fit), "one labelling", fixed = TRUE)
  expect_match(said(fit), "best of 10 starts; relabelling adds at most 0.693", fixed = TRUE)
  expect_match(said(fit), format(round(fit$variational$bound, 3), nsmall = 3), fixed = TRUE)
  one <- bound_of(mixture(2), larger, variational(1, symmetry = FALSE))
  expect_match(said(one), "lower bound, one labelling", fixed = TRUE)
  expect_match(said(one), "all labellings", fixed = TRUE)
  expect_identical(one$log_evidence, one$variational$bound)
  expect_match(said(bound_of(mixture(1), larger, variational(1))),
               "lower bound, best of 1 start$|lower bound, best of 1 start ")
  expect_true(is.na(fit$se))
  expect_identical(nrow(fit$draws), 1000L)
  expect_match(said(summary(fit)), "Components are numbered arbitrarily.", fixed = TRUE)
  expect_true(all(is.finite(predict(fit, larger))))
  expect_equal(rowSums(predict(fit, larger, "probability")), rep(1, 12))
  expect_match(said(variational(3)), "Method variational(restarts = 3)", fixed = TRUE)
  # a number that never changes has no spread
  expect_match(said(summary(bound_of(clustering(components = 2, prior_sd = 60),
                                     cbind(a = c(-60, -59, 60, 61))))),
               "label\\[1\\] [12] +0 +[12] +[12] +[12]")
  labels <- bound_of(unknown$clustering_unknown, larger, variational(2, draws = 50))
  expect_identical(dim(labels$draws), c(50L, 16L))
  expect_true(all(labels$draws[, 5:16] %in% 1:2))
})

test_that("bad input is refused before anything runs", {
  refused(variational(restarts = 0), "`restarts` must be a whole number")
  refused(variational(sweeps = -1), "`sweeps` must be a whole number")
  refused(variational(tolerance = 0), "`tolerance` must be a positive number")
  refused(variational(iterations = 0), "`iterations` must be a whole number")
  refused(variational(symmetry = NA), "`symmetry` must be TRUE or FALSE")
  for (start in list("a", NA_real_, matrix(1:4, 2)))
    refused(variational(start = start), "a state, such as `bdmc(...)$state`")
  refused(variational(draws = 1), "`draws` must be a whole number")
  for (model in list(gaussian_mean(~a), linear_regression(a ~ b, sigma = 1, prior_sd = 1),
                     softmax_regression(factor(a > 0) ~ b, prior_sd = 1)))
    refused(bound_of(model, larger),
            paste0("variational() needs a model with a lower bound, such as clustering() or ",
                   "gaussian_mixture(), not ", model$name, "()."))
  refused(bound_of(clustering(components = 2), larger * 1e200, variational(sweeps = 0)),
          "The variational bound became infinite or not a number: scale the columns of the data.")
})

# Densities, derivatives, draws and symmetries of the models against plain R and numerical
# differences.

# ---- the same models in R, written from their textbook definitions ----

plain_each <- list(
  gaussian_mean = function(a, theta, rows) stats::dnorm(rows[1, ], theta, a$sigma, log = TRUE),
  poisson_rate = function(a, theta, rows)
    stats::dpois(rows[2, ], rows[1, ] * exp(theta), log = TRUE),
  binomial_probability = function(a, theta, rows)
    stats::dbinom(rows[2, ], rows[1, ], stats::plogis(theta), log = TRUE),
  linear_regression = function(a, theta, rows) {
    p <- a$covariates
    stats::dnorm(rows[p + 1, ], drop(theta %*% rows[1:p, , drop = FALSE]), a$sigma, log = TRUE)
  },
  softmax_regression = function(a, theta, rows) {
    p <- a$covariates
    logit <- t(matrix(theta, p)) %*% rows[1:p, , drop = FALSE]
    logit[cbind(rows[p + 1, ] + 1, seq_len(ncol(rows)))] - apply(logit, 2, log_sum_exp)
  },
  gaussian_mixture = function(a, theta, rows) {
    m <- mixture_parts(a, theta)
    each <- vapply(seq_len(a$components), function(k) {
      log(m$weight[k]) + colSums(stats::dnorm(rows, m$mean[, k], m$sd[, k], log = TRUE))
    }, numeric(ncol(rows)))
    apply(matrix(each, ncol(rows)), 1, log_sum_exp)
  }
)

# weights, and means and sds with a column for each component
mixture_parts <- function(a, theta) {
  K <- a$components
  p <- a$dimensions
  ratio <- c(theta[seq_len(K - 1)], 0)
  t <- matrix(theta[K - 1 + seq_len(K * p)], p)
  u <- matrix(theta[K - 1 + K * p + seq_len(K * p)], p)
  list(weight = exp(ratio - log_sum_exp(ratio)), t = t, u = u, sd = exp(u / 2),
       mean = rep(a$location, length.out = p) + a$mean_scale * exp(u / 2) * t)
}

plain_prior <- list(
  gaussian_mean = function(a, theta) stats::dnorm(theta, a$prior_mean, a$prior_sd, log = TRUE),
  # with the Jacobian of theta
  poisson_rate = function(a, theta) stats::dgamma(exp(theta), a$shape, a$rate, log = TRUE) + theta,
  binomial_probability = function(a, theta) {
    p <- stats::plogis(theta)
    stats::dbeta(p, a$shape, a$other, log = TRUE) + log(p) + log1p(-p)
  },
  linear_regression = function(a, theta)
    sum(stats::dnorm(theta, a$prior_mean, a$prior_sd, log = TRUE)),
  softmax_regression = function(a, theta) {
    sum(stats::dnorm(theta, 0, rep(a$prior_sd, length.out = a$covariates), log = TRUE))
  },
  gaussian_mixture = function(a, theta) {
    m <- mixture_parts(a, theta)
    K <- a$components
    c <- a$concentration
    # Dirichlet times the Jacobian of the log-ratios, which is the product of all weights
    dirichlet <- lgamma(K * c) - K * lgamma(c) + sum((c - 1) * log(m$weight)) + if (K > 1)
      sum(log(m$weight)) else 0
    variance <- m$sd^2
    inverse_gamma <- stats::dgamma(1 / variance, a$shape, a$rate, log = TRUE) - 2 * log(variance)
    mean <- stats::dnorm(m$mean, rep(a$location, length.out = a$dimensions), a$mean_scale * m$sd,
                         log = TRUE)
    # from (mean, variance) to (t, u): d mean / d t = mean_scale sd, d variance / d u = variance
    dirichlet + sum(inverse_gamma + log(variance) + mean + log(a$mean_scale * m$sd))
  }
)

# ---- the cases ----

cases <- list(
  "gaussian_mean" = mean_model(1.7, 0.3, 2.5),
  "rate" = conjugate_model("poisson_rate", shape = 2, rate = 0.5),
  "probability" = conjugate_model("binomial_probability", shape = 3, other = 2),
  "linear, 1" = linear_model(1, 0.8, -1, 3),
  "linear, 3, vector priors" = linear_model(3, 2, c(0, 1, -2), c(1, 0.1, 10)),
  "linear, 9" = linear_model(9, 1.1, 0, 2),
  "softmax, 1 x 2" = softmax_model(1, 2, 1.5),
  "softmax, 3 x 4, vector priors" = softmax_model(3, 4, c(2, 1, 0.5)),
  "softmax, 6 x 3" = softmax_model(6, 3),
  "mixture, 1 in 1-d" = mixture_model(1, 1),
  "mixture, 1 in 3-d" = mixture_model(1, 3, c(1, 2, 3), 1.3, 2, 0.5, 3),
  "mixture, 2 in 1-d" = mixture_model(2, 1, 0.5),
  "mixture, 3 in 2-d, vector location" = mixture_model(3, 2, c(-1, 4), 1.5, 1.5, 2, 0.7),
  "mixture, 5 in 2-d" = mixture_model(5, 2)
)
for (name in names(cases)) {
  model <- cases[[name]]
  theta <- prior_draws(model, 4, nchar(name))
  cases[[name]] <- list(model = model, theta = theta,
                        rows = some_rows(model, 1300, theta[, 1], nchar(name)))
}
each_case <- function(check) for (name in names(cases)) do.call(check, c(cases[[name]], name))

# Five-point differences of a function with values of any length.
differences <- function(f, theta, h = 2e-3) {
  columns <- lapply(seq_along(theta), function(j) {
    at <- function(k) f(replace(theta, j, theta[j] + k * h))
    (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * h)
  })
  do.call(cbind, columns)
}

test_that("dimensions are what the settings say", {
  each_case(function(model, theta, rows, name) {
    expect_identical(facts(model)$dim, as.double(model$dim), info = name)
    expect_identical(facts(model)$width, as.double(model$width), info = name)
  })
  expect_identical(facts(mixture_model(3, 2))$user_dim, 15)
  expect_equal(facts(mixture_model(5, 2))$log_symmetry, log(120), tolerance = 1e-14)
  expect_identical(facts(linear_model(3))$log_symmetry, 0)
})

test_that("densities are those of plain R, at any number of rows", {
  each_case(function(model, theta, rows, name) {
    each <- plain_each[[model$type]]
    prior <- apply(theta, 2, function(x) plain_prior[[model$type]](model$args, x))
    expect_equal(ask(model, "log_prior", theta), prior, tolerance = 1e-10, info = name)
    for (n in c(1, 2, 63, 64, 65, 511, 512, 513, 1024, 1025, 1300)) {
      part <- rows[, seq_len(n), drop = FALSE]
      expected <- apply(theta, 2, function(x) sum(each(model$args, x, part)))
      expect_equal(ask(model, "log_lik", theta, part), expected, tolerance = 1e-10,
                   info = paste(name, n))
    }
    expect_identical(ask(model, "log_lik", theta, rows[, 0, drop = FALSE]), rep(0, ncol(theta)))
  })
})

test_that("log_lik_each gives the values of single rows, whose sum is log_lik", {
  each_case(function(model, theta, rows, name) {
    for (n in c(1, 64, 700)) {
      part <- rows[, seq_len(n), drop = FALSE]
      found <- ask(model, "log_lik_each", theta, part)
      expect_equal(found, matrix(apply(theta, 2, function(x)
                                         plain_each[[model$type]](model$args, x, part)), n),
                   tolerance = 1e-10, info = name)
      expect_equal(colSums(found), ask(model, "log_lik", theta, part), tolerance = 1e-11,
                   info = name)
    }
  })
})

test_that("a point's values do not depend on the points beside it, to the bit", {
  each_case(function(model, theta, rows, name) {
    many <- prior_draws(model, 37, 5)
    alone <- function(what, pick = identity) vapply(seq_len(37), function(i) {
      as.vector(pick(ask(model, what, many[, i], rows)))
    }, as.vector(pick(ask(model, what, many[, 1], rows))))
    expect_identical(ask(model, "log_lik", many, rows), alone("log_lik"), info = name)
    expect_identical(ask(model, "log_prior", many), alone("log_prior"), info = name)
    together <- ask(model, "log_lik_grad", many, rows)
    slopes <- alone("log_lik_grad", function(x) x$gradient)
    expect_identical(as.vector(together$gradient), as.vector(slopes), info = name)
    expect_identical(together$value, alone("log_lik_grad", function(x) x$value), info = name)
    expect_identical(together$value, ask(model, "log_lik", many, rows), info = name)
    expect_identical(as.vector(ask(model, "log_prior_grad", many)),
                     as.vector(alone("log_prior_grad")), info = name)
  })
})

test_that("gradients are the slopes of the densities", {
  each_case(function(model, theta, rows, name) {
    part <- rows[, 1:150, drop = FALSE]
    for (i in 1:2) {
      x <- theta[, i]
      lik <- drop(differences(function(x) ask(model, "log_lik", x, part), x))
      expect_equal(drop(ask(model, "log_lik_grad", x, part)$gradient), lik, tolerance = 1e-7,
                   info = name)
      prior <- drop(differences(function(x) ask(model, "log_prior", x), x))
      expect_equal(drop(ask(model, "log_prior_grad", x)), prior, tolerance = 1e-7, info = name)
    }
    blocks <- lapply(list(1:512, 513:1024, 1025:1300), function(r) {
      ask(model, "log_lik_grad", theta, rows[, r, drop = FALSE])$gradient
    })
    expect_equal(ask(model, "log_lik_grad", theta, rows)$gradient, Reduce(`+`, blocks),
                 tolerance = 1e-11, info = name)
  })
})

test_that("second derivatives are the slopes of the gradients, and symmetric", {
  each_case(function(model, theta, rows, name) {
    part <- rows[, 1:150, drop = FALSE]
    for (i in 1:2) {
      x <- theta[, i]
      found <- ask(model, "log_lik_hess", x, part)
      expect_equal(found$hessian,
                   differences(function(x) ask(model, "log_lik_grad", x, part)$gradient[, 1], x),
                   tolerance = 1e-6, info = name)
      expect_equal(found$gradient, drop(ask(model, "log_lik_grad", x, part)$gradient),
                   tolerance = 1e-10, info = name)
      expect_identical(found$hessian, t(found$hessian), info = name)
      prior <- ask(model, "log_prior_hess", x)
      expect_equal(prior, differences(function(x) ask(model, "log_prior_grad", x)[, 1], x),
                   tolerance = 1e-7, info = name)
      expect_identical(prior, t(prior), info = name)
    }
    long <- ask(model, "log_lik_hess", theta[, 1], rows)$hessian
    parts <- lapply(list(1:700, 701:1300), function(r) {
      ask(model, "log_lik_hess", theta[, 1], rows[, r, drop = FALSE])$hessian
    })
    expect_equal(long, parts[[1]] + parts[[2]], tolerance = 1e-10, info = name)
  })
})

test_that("a quadratic model's second derivatives do not depend on the point", {
  for (case in cases[c("gaussian_mean", "linear, 3, vector priors")])
    expect_identical(ask(case$model, "log_lik_hess", case$theta[, 1], case$rows)$hessian,
                     ask(case$model, "log_lik_hess", case$theta[, 2], case$rows)$hessian)
})

test_that("the information of a mixture is that of its completed data", {
  for (case in cases[grep("mixture", names(cases))]) {
    model <- case$model
    a <- model$args
    K <- a$components
    p <- a$dimensions
    for (i in 1:2) {
      theta <- case$theta[, i]
      m <- mixture_parts(a, theta)
      part <- case$rows[, 1:200, drop = FALSE]
      each <- vapply(seq_len(K), function(k) {
        log(m$weight[k]) + colSums(stats::dnorm(part, m$mean[, k], m$sd[, k], log = TRUE))
      }, numeric(200))
      share <- colSums(exp(each - apply(each, 1, log_sum_exp)))
      expected <- matrix(0, model$dim, model$dim)
      if (K > 1) {
        w <- m$weight[-K]
        expected[seq_len(K - 1), seq_len(K - 1)] <- 200 * (diag(w, K - 1) - tcrossprod(w))
      }
      for (k in seq_len(K)) for (j in seq_len(p)) {
        sd <- m$sd[j, k]
        # (mean, variance) by (t, u), and the Fisher information of a normal sample in mean and
        # variance
        jacobian <- rbind(c(a$mean_scale * sd, a$mean_scale * sd * m$t[j, k] / 2), c(0, sd^2))
        at <- K - 1 + (k - 1) * p + j + c(0, K * p)
        expected[at, at] <- share[k] * t(jacobian) %*% diag(c(1 / sd^2, 1 / (2 * sd^4))) %*%
          jacobian
      }
      found <- ask(model, "information", theta, part)
      expect_equal(found, expected, tolerance = 1e-9)
      expect_gt(min(eigen(found, TRUE, TRUE)$values), -1e-9 * max(found))
    }
  }
})

test_that("parameters on the user's scale are weights, means and standard deviations", {
  for (case in cases[grep("mixture", names(cases))]) {
    user <- ask(case$model, "to_user", case$theta)
    for (i in 1:4) {
      m <- mixture_parts(case$model$args, case$theta[, i])
      expect_equal(user[, i], c(m$weight, m$mean, m$sd), tolerance = 1e-12)
    }
  }
  for (case in cases[c("linear, 9", "softmax, 1 x 2", "gaussian_mean")])
    expect_identical(ask(case$model, "to_user", case$theta), case$theta)
})

test_that("exact evidences are those of the multivariate normal distribution", {
  for (case in cases[c("gaussian_mean", "linear, 1", "linear, 3, vector priors", "linear, 9")]) {
    model <- case$model
    for (n in c(1, 2, 40, 600)) {
      rows <- case$rows[, seq_len(n), drop = FALSE]
      p <- model$dim
      x <- if (p < model$width) t(rows[1:p, , drop = FALSE]) else matrix(1, n, 1)
      covariance <- diag(model$args$sigma^2, n) +
        x %*% (rep(model$args$prior_sd^2, length.out = p) * t(x))
      factor <- chol(covariance)
      offset <- rows[model$width, ] - x %*% rep(model$args$prior_mean, length.out = p)
      residual <- backsolve(factor, offset, transpose = TRUE)
      expected <- -n / 2 * log(2 * pi) - sum(log(diag(factor))) - sum(residual^2) / 2
      expect_equal(ask(model, "exact", rows = rows), expected, tolerance = 1e-10)
    }
  }
  expect_error(ask(cases[["softmax, 1 x 2"]]$model, "exact", rows = cases[["softmax, 1 x 2"]]$rows),
               "exact")
})

test_that("the exact evidence keeps its digits for collinear columns, shifted data and many rows", {
  set.seed(test_seed(9))
  x <- stats::rnorm(50)
  rows <- rbind(1, x, x + 1e-9 * stats::rnorm(50), x + stats::rnorm(50))
  # nearly the same covariate twice with prior sd 1 is that covariate with sd sqrt(2)
  twice <- ask(linear_model(3), "exact", rows = rows)
  once <- ask(linear_model(2, prior_sd = c(1, sqrt(2))), "exact", rows = rows[-3, ])
  expect_equal(twice, once, tolerance = 1e-8)
  y <- matrix(1e6 + stats::rnorm(5000), 1)
  expect_equal(ask(mean_model(prior_mean = 1e6), "exact", rows = y),
               ask(mean_model(), "exact", rows = y - 1e6), tolerance = 1e-7)
})

test_that("the exact evidence is the integral of the densities", {
  model <- mean_model(0.7, 1, 2)
  rows <- some_rows(model, 6, 0.4)
  f <- function(x) exp(ask(model, "log_prior", t(x)) + ask(model, "log_lik", t(x), rows))
  expect_equal(ask(model, "exact", rows = rows),
               log(stats::integrate(f, -3, 4, rel.tol = 1e-10)$value),
               tolerance = 1e-8)
})

# ---- extremes ----

test_that("densities and gradients at extreme points are never NaN", {
  for (name in names(cases)) {
    model <- cases[[name]]$model
    rows <- cases[[name]]$rows[, 1:130, drop = FALSE]
    set.seed(test_seed(10))
    wild <- c(0, 1e-300, 40, 750, 1500, 1e5, 1e10, 1e100, 1e155, 1e300, .Machine$double.xmax)
    points <- cbind(outer(rep(1, model$dim), c(wild, -wild)),
                    matrix(sample(c(wild, -wild), 100 * model$dim, TRUE), model$dim))
    legal <- function(x) !anyNA(x) && all(x < Inf)
    expect_true(legal(ask(model, "log_lik", points, rows)), info = name)
    expect_true(legal(ask(model, "log_prior", points)), info = name)
    expect_true(legal(ask(model, "log_lik_each", points, rows)), info = name)
    both <- ask(model, "log_lik_grad", points, rows)
    expect_true(legal(both$value), info = name)
    expect_true(all(is.finite(both$gradient)), info = name)
    expect_false(anyNA(ask(model, "log_prior_grad", points)), info = name)
    fine <- rep(TRUE, 40)
    for (i in 1:40) for (what in c("log_lik_hess", "information")) {
      if (what == "information" && model$type != "gaussian_mixture") next
      answer <- tryCatch(ask(model, what, points[, i], rows), logevidence_error = function(e) NULL)
      fine[i] <- fine[i] && (!is.list(answer) || all(is.finite(answer$gradient)))
    }
    expect_true(all(fine), info = name)
  }
})

test_that("far but possible points have their right value", {
  model <- softmax_model(1, 3)
  rows <- rbind(1, c(0, 1, 2))
  expect_equal(ask(model, "log_lik_each", c(1000, 0, -1000), rows)[, 1], c(0, -1000, -2000))
  mixture <- mixture_model(2, 1)
  expect_equal(ask(mixture, "log_lik", c(800, 0, 0, 0, 0), matrix(0.5)),
               stats::dnorm(0.5, log = TRUE))
  expect_equal(ask(mixture, "log_lik", c(0, 0, 0, 0, 0), matrix(1e8)), -log(2 * pi) / 2 - 1e16 / 2)
})

# ---- draws ----

test_that("draws from the prior follow the prior", {
  normal <- function(model, sd, mean = 0) {
    draws <- prior_draws(model, 4000, 21)
    p <- mapply(function(j, m, s) stats::ks.test(draws[j, ], "pnorm", m, s)$p.value,
                seq_len(model$dim),
                rep(mean, length.out = model$dim), rep(sd, length.out = model$dim))
    expect_gt(min(p), 1e-5)
    if (model$dim > 1) expect_z(stats::cor(t(draws))[upper.tri(diag(model$dim))] * sqrt(4000))
  }
  normal(mean_model(1, 3, 0.2), 0.2, 3)
  normal(linear_model(3, 1, c(0, 1, -2), c(1, 0.1, 10)), c(1, 0.1, 10), c(0, 1, -2))
  normal(softmax_model(3, 4, c(2, 1, 0.5)), c(2, 1, 0.5))
  for (a in list(c(K = 1, p = 2, c = 1), c(K = 3, p = 1, c = 0.3), c(K = 2, p = 1, c = 4),
                 c(K = 5, p = 2, c = 1))) {
    model <- mixture_model(a[["K"]], a[["p"]], concentration = a[["c"]], shape = 1.7, rate = 0.4)
    draws <- prior_draws(model, 4000, 22)
    parts <- apply(draws, 2, function(x) mixture_parts(model$args, x), simplify = FALSE)
    p <- function(x, ...) stats::ks.test(x, ...)$p.value
    values <- c()
    for (k in seq_len(a[["K"]])) {
      if (a[["K"]] > 1)
        values <- c(values, p(vapply(parts, function(m) m$weight[k], 0), "pbeta", a[["c"]],
                              (a[["K"]] - 1) * a[["c"]]))
      values <- c(values, p(vapply(parts, function(m) m$t[1, k], 0), "pnorm"),
                  p(vapply(parts, function(m) exp(-m$u[1, k]), 0), "pgamma", 1.7, 0.4))
    }
    expect_gt(min(values), 1e-5)
  }
})

test_that("very small concentrations and shapes do not underflow", {
  model <- mixture_model(3, 1, concentration = 1e-3, shape = 1e-2)
  expect_true(all(is.finite(prior_draws(model, 2000, 23))))
})

test_that("the prior of a mixture integrates to one", {
  # two components in one dimension, by importance sampling with a wide logistic proposal
  model <- mixture_model(2, 1, 0.5, 1.5, 2, 1.3, 1.6)
  set.seed(test_seed(24))
  x <- matrix(stats::rlogis(5 * 40000, scale = 0.8), 5)
  ratio <- exp(ask(model, "log_prior", x) - colSums(stats::dlogis(x, scale = 0.8, log = TRUE)))
  expect_z(z_score(ratio, 1))
})

test_that("simulated data have the model's moments", {
  n <- 40000
  y <- some_rows(mean_model(2), n, 1.5, 31)[1, ]
  expect_z(z_score(cbind(y - 1.5, (y - 1.5)^2 - 4, (y - 1.5)^3)))
  theta <- c(1, -2, 0.5)
  rows <- some_rows(linear_model(3, 0.6), n, theta, 32)
  residual <- rows[4, ] - drop(theta %*% rows[1:3, ])
  expect_z(z_score(cbind(residual, residual^2 - 0.36, residual * t(rows[1:3, ]))))
  model <- softmax_model(2, 3)
  theta <- c(0.5, 1, -1, 0, 0.2, -0.7)
  rows <- some_rows(model, n, theta, 33)
  logit <- t(matrix(theta, 2)) %*% rows[1:2, ]
  probability <- t(exp(logit)) / colSums(exp(logit))
  residual <- outer(rows[3, ], 0:2, `==`) - probability
  expect_z(z_score(cbind(residual, residual * rows[1, ], residual * rows[2, ])))
  model <- mixture_model(3, 2, c(1, -1))
  theta <- prior_draws(model, 1, 34)[, 1]
  theta[3:8] <- theta[3:8] / 2
  rows <- some_rows(model, n, theta, 35)
  m <- mixture_parts(model$args, theta)
  mean <- drop(m$mean %*% m$weight)
  second <- drop((m$mean^2 + m$sd^2) %*% m$weight)
  product <- sum(m$weight * m$mean[1, ] * m$mean[2, ])
  moments <- cbind(t(rows), t(rows^2), rows[1, ] * rows[2, ])
  expect_z(z_score(moments, c(mean, second, product)))
  # and the density agrees: the mean score at the true point is zero
  score <- vapply(seq_len(2000), function(i)
                    ask(model, "log_lik_grad", theta, rows[, i, drop = FALSE])$gradient[, 1],
                  numeric(model$dim))
  expect_z(z_score(t(score)))
})

# ---- labels ----

permutations <- function(n) {
  if (n == 1) return(list(1))
  unlist(lapply(permutations(n - 1), function(p) lapply(0:(n - 1), function(at) append(p, n, at))),
         recursive = FALSE)
}
permute <- function(a, theta, order) {
  K <- a$components
  p <- a$dimensions
  ratio <- c(theta[seq_len(K - 1)], 0)[order]
  t <- matrix(theta[K - 1 + seq_len(K * p)], p)[, order]
  u <- matrix(theta[K - 1 + K * p + seq_len(K * p)], p)[, order]
  c(ratio[-K] - ratio[K], t, u)
}

test_that("relabelling changes no density", {
  for (name in grep("mixture, [235]", names(cases), value = TRUE)) {
    case <- cases[[name]]
    rows <- case$rows[, 1:100, drop = FALSE]
    orders <- permutations(case$model$args$components)
    points <- vapply(orders, function(o) permute(case$model$args, case$theta[, 2], o),
                     case$theta[, 2])
    for (what in c("log_lik", "log_prior")) {
      value <- ask(case$model, what, points, rows)
      expect_equal(value, rep(value[1], length(orders)), tolerance = 1e-10, info = name)
    }
    user <- ask(case$model, "to_user", points)
    expect_equal(apply(user, 2, sort), apply(user[, rep(1, ncol(user))], 2, sort),
                 tolerance = 1e-10)
  }
})

test_that("all labellings of a point are relabelled to the same one of them", {
  for (name in grep("mixture, [235]", names(cases), value = TRUE)) {
    case <- cases[[name]]
    orders <- permutations(case$model$args$components)
    references <- cbind(case$theta[, 1], prior_draws(case$model, 3, 41))
    targets <- prior_draws(case$model, 10, 42)
    for (r in seq_len(ncol(references))) {
      sound <- vapply(seq_len(ncol(targets)), function(i) {
        points <- vapply(orders, function(o) permute(case$model$args, targets[, i], o),
                         targets[, i])
        found <- relabelled(case$model, points, references[, r])
        c(same = max(abs(found - found[, 1])) < 1e-10,
          member = min(colSums(abs(points - found[, 1]))) < 1e-9,
          # the domain: one of the labellings alone stays as it is, to the bit
          domain = sum(colSums(found != points) == 0) == 1)
      }, c(same = TRUE, member = TRUE, domain = TRUE))
      expect_identical(rowSums(!sound), c(same = 0, member = 0, domain = 0), info = name)
    }
    again <- relabelled(case$model, references, references[, 2])
    expect_identical(relabelled(case$model, again, references[, 2]),
                     again)
    expect_identical(again[, 2], references[, 2])
  }
})

test_that("a share 1 / K! of the prior lies in the domain", {
  for (K in c(2, 3)) {
    model <- mixture_model(K, 1)
    draws <- prior_draws(model, 6000, 43)
    kept <- relabelled(model, draws, prior_draws(model, 1, 44)[, 1])
    stays <- colSums(kept != draws) == 0
    expect_z(z_score(stays, 1 / factorial(K)))
    # the reference may itself have equal components
    same <- relabelled(model, draws, rep(0, model$dim))
    expect_z(z_score(colSums(same != draws) == 0, 1 / factorial(K)))
  }
})

test_that("as many labellings lie in the domain as log_orbit states, also in chains", {
  data <- matrix(0, 4, 1)
  model <- gaussian_mixture(components = 4)
  bench <- check_bench(model, encode(model, data))
  args <- mixture_model(4, 1)$args
  # three means, of which the first and the last are not alike; and other ways
  for (centre in list(c(0, 0.08, 0.16, 5), c(0, 0.01, 0.02, 5), c(0, 0.01, 5, 5.08), 1:4))
    for (order in permutations(4)) {
      reference <- c(rep(0, 3), centre[order], rep(0, 4))
      point <- prior_draws(mixture_model(4, 1), 1, sum(order * 4^(0:3)))[, 1]
      images <- vapply(permutations(4), function(o) permute(args, point, o), point)
      kept <- bench$ask("relabel", images, other = reference)$first != 1
      expect_equal(sum(kept) * exp(bench$get("log_orbit", reference)), 24)
    }
})

test_that("relabelling of extreme points ends", {
  model <- mixture_model(4, 2)
  set.seed(test_seed(45))
  wild <- matrix(sample(c(-1, 1), model$dim * 60, TRUE) *
                 10^stats::runif(model$dim * 60, -300, 300), model$dim)
  for (i in 1:5) {
    found <- relabelled(model, wild, wild[, i])
    expect_false(anyNA(found[-(1:3), ]))
    expect_identical(apply(found[4:11, ], 2, sort), apply(wild[4:11, ], 2, sort))
  }
})

# ---- the R side ----

test_that("model_functions() gives the values of the C code", {
  set.seed(test_seed(51))
  data <- data.frame(y = stats::rnorm(30), x = stats::rnorm(30))
  f <- model_functions(linear_regression(y ~ x, sigma = 1.3, prior_sd = 2), data)
  model <- linear_model(2, 1.3, 0, 2)
  rows <- rbind(1, data$x, data$y)
  theta <- rbind(c(0.3, -1), c(2, 0.1))
  expect_identical(f$log_lik(theta), ask(model, "log_lik", t(theta), rows))
  expect_identical(unname(f$gradient(theta)),
                   t(ask(model, "log_lik_grad", t(theta), rows)$gradient))
  expect_identical(unname(f$hessian(theta[1, ])),
                   ask(model, "log_lik_hess", theta[1, ], rows)$hessian)
  expect_identical(f$exact(), ask(model, "exact", rows = rows))
  expect_equal(f$log_lik_each(theta), t(ask(model, "log_lik_each", t(theta), rows)))
})

test_that("functions that a model does not offer, and wrong points and rows, are errors", {
  model <- softmax_model(1, 2)
  expect_error(ask(model, "information", c(0, 0), rbind(1, 0)), "offers no `information`")
  expect_error(ask(model, "nonsense"), "has no `nonsense`")
  expect_error(ask(model, "log_lik", c(0, 0, 0), rbind(1, 0)),
               "`theta` must be a numeric matrix of 2 rows")
  expect_error(ask(model, "log_lik", c(0, 0), rbind(1, 0, 0)),
               "Rows must be a numeric matrix of 2 rows")
  expect_error(ask(model, "log_lik", c(0, 0), rbind(1, 2)), "out of range",
               class = "logevidence_error")
  expect_error(ask(model, "log_lik", c(0, 0), rbind(1, 0.5)), "out of range",
               class = "logevidence_error")
  expect_error(facts(list(type = "nothing", args = list())), "no model called")
  expect_error(facts(list(type = "gaussian_mixture", args = list(components = 70, dimensions = 1))),
               "`components` must be a whole number from 1 to 64, not 70",
               class = "logevidence_error")
})

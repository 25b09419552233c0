# Problems made of R functions: shapes on which samplers fail.  All have gradients, so that every
# method applies, and take many points at once, so that R is fast enough for many seeds.

integral <- function(name, d, log_lik, gradient, truth, prior_sd = 1, modes = "one",
                     family = "custom", ...) {
  model <- custom_model(
    paste0("x", seq_len(d)), log_likelihood = log_lik, gradient = gradient,
    log_prior = function(x) rowSums(dnorm(x, 0, prior_sd, log = TRUE)),
    prior_gradient = function(x) unname(-x / prior_sd^2),
    draw_prior = function(n) matrix(rnorm(n * d, 0, prior_sd), n),
    vectorised = TRUE, modes = modes
  )
  add(name, family, model, truth = truth, ...)
}

# Sums of densities: log and gradient from those of the parts, each a matrix with a column a part.
mix_log <- function(each) {
  top <- apply(each, 1, max)
  top <- ifelse(is.finite(top), top, 0)
  top + log(rowSums(exp(each - top)))
}
mix_share <- function(each) exp(each - mix_log(each))

# A mixture of independent normal densities at rows of `centres`.
bumps <- function(centres, sds, shares) {
  d <- ncol(centres)
  each <- function(x) {
    vapply(seq_along(sds), function(k) {
      log(shares[k]) - d * log(sds[k] * sqrt(2 * pi)) -
        colSums((t(x) - centres[k, ])^2) / 2 / sds[k]^2
    }, numeric(nrow(x)))
  }
  list(
    log_lik = function(x) mix_log(matrix(each(x), nrow(x))),
    gradient = function(x) {
      share <- mix_share(matrix(each(x), nrow(x)))
      unname(Reduce(`+`, lapply(seq_along(sds), function(k) {
        share[, k] * t(centres[k, ] - t(x)) / sds[k]^2
      })))
    },
    truth = function(prior_sd) {
      each <- vapply(seq_along(sds), function(k) {
        log(shares[k]) + sum(dnorm(centres[k, ], 0, sqrt(prior_sd^2 + sds[k]^2), log = TRUE))
      }, 0)
      truth_of(log_sum_exp(each), way = "closed form")
    }
  )
}

bump_problem <- function(name, centres, sds, shares, prior_sd, modes, ...) {
  b <- bumps(centres, sds, shares)
  integral(name, ncol(centres), b$log_lik, b$gradient, function() b$truth(prior_sd), prior_sd,
           modes, ...)
}
bump_problem("unequal-modes-4d", rbind(rep(3, 4), rep(-3, 4)), c(0.3, 0.6), c(0.1, 0.9), 3,
             "several")
bump_problem("two-modes-2d", rbind(c(2, 2), c(-2, -2)), c(0.5, 0.5), c(0.5, 0.5), 3, "several",
             benign = TRUE)
bump_problem("16-modes-4d", 2 * as.matrix(expand.grid(rep(list(c(-1, 1)), 4))), rep(0.3, 16),
             rep(1 / 16, 16), 3, "several")
# the narrow part has nearly all of the evidence and a prior mass of about 1e-12
bump_problem("hidden-spike-8d", rbind(rep(1, 8), rep(0, 8)), c(0.03, 1), c(0.99, 0.01), 1, "one",
             hidden = TRUE)
bump_problem("far-bump-3d", rbind(rep(8, 3)), 0.5, 1, 1, "one")
bump_problem("bump-2d", rbind(c(1, 0)), 0.5, 1, 1, "one", benign = TRUE)

# A narrow and a wide bump in each coordinate, independently: 2^d modes. No gradients are given.
each_coordinate <- function(x) {
  log(0.5 * dnorm(x, 3, 0.01) + 0.5 * dnorm(x, -1, 0.5))
}
for (d in c(3, 5)) local({
  d <- d
  model <- custom_model(
    paste0("x", seq_len(d)), vectorised = TRUE,
    log_likelihood = function(x) rowSums(matrix(each_coordinate(x), nrow(x))),
    log_prior = function(x) rowSums(matrix(dnorm(x, 0, 2, log = TRUE), nrow(x))),
    draw_prior = function(n) matrix(rnorm(n * d, 0, 2), n))
  add(paste0("narrow-and-wide-", d, "d"), "custom", model, truth = function() truth_of(
    d * log(0.5 * dnorm(3, 0, sqrt(4 + 1e-4)) + 0.5 * dnorm(-1, 0, sqrt(4.25))),
    way = "closed form"))
})
cauchy_bumps <- cbind(centre = c(50, -30), sd = c(1, 0.1))
add("far-in-cauchy-1d", "custom", custom_model(
  "x", vectorised = TRUE,
  log_likelihood = function(x) mix_log(cbind(dnorm(x[, 1], 50, 1, log = TRUE),
                                             dnorm(x[, 1], -30, 0.1, log = TRUE))),
  log_prior = function(x) dcauchy(x[, 1], log = TRUE),
  draw_prior = function(n) matrix(rcauchy(n), n)),
  truth = function() truth_of(log(sum(apply(cauchy_bumps, 1, function(bump) integrate(
    function(x) dcauchy(x) * dnorm(x, bump[1], bump[2]), bump[1] - 9 * bump[2],
    bump[1] + 9 * bump[2], rel.tol = 1e-9)$value))), way = "quadrature"))

# ---- one dimension decides about the others ----

rest <- function(x) x[, -1, drop = FALSE]

# The prior has the shape of a funnel; each of the other coordinates is seen with noise.
funnel_data <- made(30, rnorm(8, 0, 0.3))
funnel_prior <- custom_model(
  c("v", paste0("x", 1:8)), vectorised = TRUE,
  log_likelihood = function(t) colSums(dnorm(t(rest(t)), funnel_data, 1, log = TRUE)),
  log_prior = function(t) {
    dnorm(t[, 1], 0, 3, log = TRUE) + rowSums(dnorm(rest(t), 0, exp(t[, 1] / 2), log = TRUE))
  },
  draw_prior = function(n) {
    v <- rnorm(n, 0, 3)
    cbind(v, matrix(rnorm(8 * n), n) * exp(v / 2), deparse.level = 0)
  },
  gradient = function(t) unname(cbind(0, t(funnel_data - t(rest(t))))),
  prior_gradient = function(t) {
    unname(cbind(-t[, 1] / 9 - 4 + rowSums(rest(t)^2) * exp(-t[, 1]) / 2, -rest(t) * exp(-t[, 1])))
  }
)
add("funnel-prior-9d", "custom", funnel_prior, table = TRUE, truth = function() quadrature(
  function(v) dnorm(v, 0, 3, log = TRUE) +
    vapply(v, function(one) sum(dnorm(funnel_data, 0, sqrt(exp(one) + 1), log = TRUE)), 0), -40, 40,
  2e4))

# The funnel as the likelihood, a normal prior.
integral("funnel-likelihood-10d", 10, prior_sd = 3, table = TRUE,
  log_lik = function(x) {
    dnorm(x[, 1], 0, 3, log = TRUE) + rowSums(dnorm(rest(x), 0, exp(x[, 1] / 2), log = TRUE))
  },
  gradient = function(x) {
    e <- exp(-x[, 1])
    unname(cbind(-x[, 1] / 9 - 4.5 + rowSums(rest(x)^2) * e / 2, -rest(x) * e))
  },
  truth = function() quadrature(function(v) {
    2 * dnorm(v, 0, 3, log = TRUE) + 9 * dnorm(0, 0, sqrt(exp(v) + 9), log = TRUE)
  }, -40, 40))

# The second coordinate follows the square of the first.
banana <- function(name, sd, bend) {
  integral(name, 2, prior_sd = 2,
    log_lik = function(x) dnorm(x[, 2], bend * x[, 1]^2, sd, log = TRUE),
    gradient = function(x) {
      pull <- (x[, 2] - bend * x[, 1]^2) / sd^2
      unname(cbind(2 * bend * x[, 1] * pull, -pull))
    },
    truth = function() quadrature(function(a) {
      dnorm(a, 0, 2, log = TRUE) + dnorm(bend * a^2, 0, sqrt(4 + sd^2), log = TRUE)
    }, -30, 30))
}
banana("banana-2d", 0.1, 1)
banana("banana-2d-thin", 0.01, 2)

# ---- rings and shells ----

ring <- function(name, d, radius, width, prior_sd = 1, ...) {
  integral(name, d, prior_sd = prior_sd,
    log_lik = function(x) dnorm(sqrt(rowSums(x^2)), radius, width, log = TRUE),
    gradient = function(x) {
      r <- sqrt(rowSums(x^2))
      unname(-(r - radius) / width^2 * x / pmax(r, 1e-300))
    },
    truth = function() quadrature(function(r) {
      dnorm(r, radius, width, log = TRUE) + dchisq((r / prior_sd)^2, d, log = TRUE) +
        log(2 * r / prior_sd^2)
    }, 1e-9, radius + 40 * width), ...)
}
ring("donut-2d", 2, 2, 0.1, modes = "several")
ring("shell-5d", 5, 3, 0.1)
ring("shell-10d", 10, 6, 0.1, 2)

# Two rings apart: the prior is nearly flat over each, so the plane is integrated on a grid.
two_rings_each <- function(x) cbind(
  dnorm(sqrt((x[, 1] - 3.5)^2 + x[, 2]^2), 2, 0.1, log = TRUE),
  dnorm(sqrt((x[, 1] + 3.5)^2 + x[, 2]^2), 2, 0.1, log = TRUE)
)
integral("two-rings-2d", 2, prior_sd = 3, modes = "several",
  log_lik = function(x) mix_log(two_rings_each(x)),
  gradient = function(x) {
    share <- mix_share(two_rings_each(x))
    sides <- lapply(1:2, function(k) {
      off <- cbind(x[, 1] - c(3.5, -3.5)[k], x[, 2])
      r <- sqrt(rowSums(off^2))
      -share[, k] * (r - 2) / 0.01 * off / pmax(r, 1e-300)
    })
    unname(sides[[1]] + sides[[2]])
  },
  truth = function() {
    at <- function(step) {
      g <- as.matrix(expand.grid(seq(-7, 7, step), seq(-4, 4, step)))
      log_sum_exp(mix_log(two_rings_each(g)) + rowSums(dnorm(g, 0, 3, log = TRUE))) + 2 * log(step)
    }
    fine <- at(0.01)
    truth_of(fine, abs(fine - at(0.02)), "quadrature")
  })

# ---- products over dimensions ----

product <- function(name, d, log_one, slope, from, to, prior_sd = 1, ...) {
  integral(name, d, prior_sd = prior_sd, log_lik = function(x) rowSums(log_one(x)),
           gradient = function(x) unname(slope(x)), truth = function() {
    one <- quadrature(function(x) log_one(x) + dnorm(x, 0, prior_sd, log = TRUE), from, to)
    truth_of(d * one$value, d * one$se, "quadrature")
  }, ...)
}
product("student-20d", 20, function(x) -1.5 * log1p((x - 1)^2 / 0.02),
        function(x) -3 * (x - 1) / (0.02 + (x - 1)^2), -30, 30)
product("skewed-8d", 8, function(x) 3 * x - exp(3 * x), function(x) 3 - 3 * exp(3 * x), -30, 10)
product("16-corners-4d", 4, function(x) log(dnorm(x, -1, 0.2) + dnorm(x, 1, 0.2) + 1e-300),
        function(x) {
          a <- dnorm(x, -1, 0.2)
          b <- dnorm(x, 1, 0.2)
          ((-1 - x) * a + (1 - x) * b) / 0.04 / (a + b + 1e-300)
        }, -10, 10, modes = "several")
product("laplace-noise-5d", 5, function(x) -10 * abs(x - 0.5), function(x) -10 * sign(x - 0.5),
        -30, 30)

# A Cauchy prior far from the data.
add("cauchy-conflict", "custom", custom_model(
  "m", function(t) dnorm(t[, 1], 20, 0.5, log = TRUE), function(t) dcauchy(t[, 1], log = TRUE),
  function(n) rcauchy(n), gradient = function(t) unname((20 - t) / 0.25),
  prior_gradient = function(t) unname(-2 * t / (1 + t^2)), vectorised = TRUE
), truth = function() quadrature(function(x) {
  dnorm(x, 20, 0.5, log = TRUE) + dcauchy(x, log = TRUE)
}, 0, 40))

# ---- normal likelihoods in many dimensions ----

gaussian <- function(name, covariance, benign = FALSE) {
  d <- nrow(covariance)
  precision <- solve(covariance)
  middle <- made(40 + d, rnorm(d, 0, 0.5))
  log_det <- determinant(covariance)$modulus[[1]]
  integral(name, d, family = "kernels", benign = benign,
    log_lik = function(x) {
      off <- t(t(x) - middle)
      -d / 2 * log(2 * pi) - log_det / 2 - rowSums((off %*% precision) * off) / 2
    },
    gradient = function(x) unname(-t(t(x) - middle) %*% precision),
    truth = function() {
      root <- chol(covariance + diag(d))
      truth_of(-d / 2 * log(2 * pi) - sum(log(diag(root))) -
                 sum(backsolve(root, middle, transpose = TRUE)^2) / 2, way = "closed form")
    })
}
gaussian("gaussian-20", diag(0.01, 20), benign = TRUE)
gaussian("gaussian-50", diag(10^seq(-4, 0, length.out = 50)))
gaussian("gaussian-100", diag(10^seq(-2, 0, length.out = 100)))
gaussian("gaussian-40-correlated", 0.1 * (0.1 * diag(40) + 0.9))

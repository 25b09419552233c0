# The generated half of the zoo: problems whose model, size, columns, priors and number of modes are
# drawn from a seed. No setting of the package is ever chosen by a look at them. ZOO_SEED moves
# with each release, so that what was seen once is not what counts next time.
#
# generate_problem(index, seed) gives the same problem each time. The 31 families take turns, so
# that 300 problems have nine or ten of each. The reference is found by other code (integrals.R,
# truths.R). Where its error is not below 0.03 nats another problem of the same family is drawn in
# its place; this is decided from the reference alone, and results/zoo-generated-truths.csv says how
# often (`attempt`).

ZOO_SEED <- 2
GENERATED <- 300
LARGEST_ERROR <- 0.03

GENERATORS <- list()
generator <- function(name, code) GENERATORS[[name]] <<- code

generate_problem <- function(index, seed = ZOO_SEED, attempt = 0) {
  families <- names(GENERATORS)
  family <- families[(index - 1) %% length(families) + 1]
  problem <- made(seed * 1e6 + index * 1000 + attempt, GENERATORS[[family]]())
  defaults <- list(data = NULL, benign = FALSE, hidden = FALSE, table = FALSE, limit = 30)
  problem <- c(problem, defaults[setdiff(names(defaults), names(problem))])
  c(list(name = sprintf("%s-%03d", family, index), family = family, index = index, draw = seed,
         attempt = attempt), problem)
}

# problems.R has a function normal() of its own
centred <- function(sd) logevidence::prior_normal(0, sd)

# ---- what is drawn ----

pick <- function(...) {
  of <- c(...)
  of[sample.int(length(of), 1)]
}
between <- function(from, to) exp(runif(1, log(from), log(to)))
whole <- function(from, to) min(to, floor(between(from, to + 1)))
chance <- function(p) runif(1) < p

# Columns of covariates: independent or alike, short or long tails or two values, as they come or
# far from zero and in other units. `kind` says whether nothing was done to them.
covariates <- function(n, p, alike = pick(0, 0, 0, 0.9, 0.99), plain = chance(0.5)) {
  common <- rnorm(n)
  x <- vapply(seq_len(p), function(j) {
    own <- switch(pick("normal", "normal", "t", "binary"), normal = rnorm(n), t = rt(n, 3),
                  binary = rbinom(n, 1, 0.4))
    sqrt(1 - alike^2) * own + alike * common
  }, numeric(n))
  x <- matrix(x, n, dimnames = list(NULL, paste0("x", seq_len(p))))
  scale <- if (plain) 1 else 10^runif(p, -1.5, 1.5)
  shift <- if (plain) 0 else ifelse(runif(p) < 0.5, 0, 10^runif(p, -0.5, 1.5))
  out <- sweep(sweep(x, 2, shift, `+`), 2, scale, `*`)
  structure(out, kind = plain && alike <= 0.9, unit = x)
}
frame_of <- function(y, x) data.frame(y = y, as.data.frame(unclass(x)[, , drop = FALSE]))
with_intercept <- function(x) cbind(1, unclass(x)[, , drop = FALSE])

# Priors of a positive number: the object and the log density of its logarithm.
positive_prior <- function(scale = between(0.5, 5)) {
  scale <- signif(scale, 3)
  switch(pick("half_student", "half_normal", "exponential", "inverse_gamma"),
    half_student = list(prior = half_student(3, scale), log = function(s)
      log(2) + dt(exp(s) / scale, 3, log = TRUE) - log(scale) + s),
    half_normal = list(prior = half_normal(scale), log = function(s)
      log(2) + dnorm(exp(s), 0, scale, log = TRUE) + s),
    exponential = list(prior = prior_exponential(1 / scale), log = function(s)
      -log(scale) - exp(s) / scale + s),
    inverse_gamma = list(prior = prior_inverse_gamma(2, scale), log = function(s)
      2 * log(scale) - 2 * s - scale * exp(-s)))
}

# ---- linear regressions: closed forms, and one integral over the noise ----

# Log evidence of y ~ N(X w, s^2), w ~ N(0, prior_sd^2), for each s = exp(log_s).
linear_given_noise <- function(x, y, prior_sd) {
  parts <- svd(sweep(x, 2, rep_len(prior_sd, ncol(x)), `*`))
  pulled <- drop(crossprod(parts$u, y))
  rest <- sum((y - drop(parts$u %*% pulled))^2)
  n <- length(y)
  r <- length(pulled)
  function(log_s) {
    variance <- exp(2 * log_s)
    value <- -n / 2 * log(2 * pi) - (n - r) * log_s - rest / 2 / variance
    for (k in seq_len(r)) {
      both <- variance + parts$d[k]^2
      value <- value - (log(both) + pulled[k]^2 / both) / 2
    }
    value
  }
}
noise_integral <- function(given, prior) {
  f <- function(s) {
    value <- given(s[, 1]) + prior(s[, 1])
    ifelse(is.finite(value), value, -Inf)
  }
  cubature(f, -30, 30, first = 200, share = 1e-8)
}

linear_rows <- function(n, p, alike = pick(0, 0, 0, 0.9, 0.99), conflict = chance(0.2)) {
  x <- covariates(n, p, alike)
  size <- if (conflict) between(5, 100) else between(0.3, 2)
  sigma <- between(0.1, 3)
  y <- drop(attr(x, "unit") %*% rnorm(p, 0, size)) + rnorm(1, 0, size) + sigma * rnorm(n)
  list(x = x, y = y, data = frame_of(y, x), sigma = sigma, size = size,
       kind = attr(x, "kind") && !conflict && n > 3 * p + 5)
}

generator("linear", function() {
  rows <- linear_rows(whole(2, 20000), whole(1, 20))
  sigma <- signif(rows$sigma * pick(1, 1, between(0.5, 2)), 3)
  prior_sd <- signif(pick(1, 1, between(0.01, 1000)), 3)
  list(kind = "regression", data = rows$data, benign = rows$kind && prior_sd == 1,
       model = linear_regression(y ~ ., sigma = sigma, prior_sd = prior_sd),
       truth = function() exact_linear(with_intercept(rows$x), rows$y, sigma, prior_sd))
})

noise_problem <- function(rows) {
  prior <- positive_prior()
  prior_sd <- signif(pick(1, 1, between(0.05, 100)), 3)
  list(kind = "glm", data = rows$data, benign = rows$kind && prior_sd == 1,
       model = linear_regression(y ~ ., sigma = prior$prior, prior_sd = prior_sd),
       truth = function() noise_integral(
         linear_given_noise(with_intercept(rows$x), rows$y, prior_sd), prior$log))
}
generator("linear-noise", function() noise_problem(linear_rows(whole(3, 5000), whole(1, 10))))
generator("collinear", function() {
  p <- whole(2, 8)
  noise_problem(linear_rows(p + whole(4, 30), p, alike = pick(0.95, 0.99, 0.999), FALSE))
})
generator("wide-linear", function() {
  n <- whole(4, 20)
  noise_problem(linear_rows(n, n + whole(0.5, 20), conflict = FALSE))
})

# ---- other regressions: importance sampling in plain R ----

# Effort falls with the number of rows: with many rows the posterior is close to normal.
importance_truth <- function(density, starts, rows) {
  t_importance(density, starts, draws = round(min(1e5, max(5000, 1e7 / rows)), -2),
               fit = round(min(2e4, max(2000, 3e6 / rows))))
}

# `rows(eta, more)` is the log density of each row, with a column for each point.
rows_problem <- function(model, data, x, rows, prior_sd, further = list(), start, benign) {
  p <- ncol(x)
  density <- function(theta) {
    first <- theta[, seq_len(p), drop = FALSE]
    more <- theta[, -seq_len(p), drop = FALSE]
    value <- colSums(matrix(rows(x %*% t(first), more), nrow(x))) +
      rowSums(dnorm(first, 0, prior_sd, log = TRUE))
    for (k in seq_along(further)) value <- value + further[[k]](more[, k])
    ifelse(is.nan(value), -Inf, value)
  }
  list(kind = "glm", model = model, data = data, benign = benign,
       truth = function() importance_truth(density, list(start), nrow(x)))
}

generator("counts", function() {
  n <- whole(8, 3000)
  p <- whole(1, 6)
  x <- covariates(n, p)
  wide <- chance(0.5)
  eta <- drop(attr(x, "unit") %*% rnorm(p, 0, 0.4)) + runif(1, -1, 3)
  y <- if (wide) rnbinom(n, 1.5, mu = exp(eta)) else rpois(n, exp(eta))
  prior_sd <- signif(pick(2.5, 2.5, between(0.1, 50)), 3)
  benign <- attr(x, "kind") && prior_sd == 2.5 && n > 5 * p
  start <- c(log(mean(y) + 0.1), rep(0, p))
  if (chance(0.5)) {
    return(rows_problem(regression(y ~ ., poisson(), prior_sd = prior_sd), frame_of(y, x),
                        with_intercept(x), function(eta, more) dpois(y, exp(eta), log = TRUE),
                        prior_sd, start = start, benign = benign))
  }
  rows_problem(regression(y ~ ., negative_binomial(), prior_sd = prior_sd), frame_of(y, x),
               with_intercept(x), function(eta, more)
                 dnbinom(y, per_row(exp(more[, 1]), eta), mu = exp(eta), log = TRUE),
               prior_sd, list(exponential_1), c(start, 0), benign)
})

generator("binary", function() {
  n <- whole(6, 5000)
  p <- whole(1, 8)
  x <- covariates(n, p)
  link <- pick("logit", "probit")
  probability <- if (link == "logit") plogis else pnorm
  trials <- if (chance(0.3)) rep(whole(2, 20), n) else rep(1, n)
  eta <- drop(attr(x, "unit") %*% rnorm(p, 0, pick(0.5, 3))) + rnorm(1)
  y <- rbinom(n, trials, probability(eta))
  prior_sd <- signif(pick(2.5, 2.5, between(0.1, 50)), 3)
  data <- frame_of(y, x)
  data$miss <- trials - y
  model <- regression(cbind(y, miss) ~ ., binomial(link), prior_sd = prior_sd)
  rows_problem(model, data, with_intercept(x), function(eta, more) {
    lchoose(trials, y) + y * probability(eta, log.p = TRUE) +
      (trials - y) * probability(-eta, log.p = TRUE)
  }, prior_sd, start = rep(0, p + 1),
  benign = attr(x, "kind") && prior_sd == 2.5 && n > 5 * p)
})

# More coefficients than rows: the linear predictors of the rows are normal a priori, so the
# integral is over as many numbers as there are rows.
generator("wide-binary", function() {
  n <- whole(4, 10)
  p <- n + whole(2, 20)
  x <- covariates(n, p, alike = pick(0, 0.9))
  y <- rbinom(n, 1, 0.5)
  link <- pick("logit", "probit")
  probability <- if (link == "logit") plogis else pnorm
  prior_sd <- signif(pick(2.5, 1, between(0.1, 20)), 3)
  design <- with_intercept(x)
  list(kind = "glm", data = frame_of(y, x), benign = attr(x, "kind"),
       model = regression(y ~ ., binomial(link), prior_sd = prior_sd), truth = function() {
    root <- prior_sd * t(chol(tcrossprod(design)))
    density <- function(z) {
      eta <- root %*% t(z)
      colSums(probability((2 * y - 1) * eta, log.p = TRUE)) + rowSums(dnorm(z, log = TRUE))
    }
    importance_truth(density, list(rep(0, n)), n)
  })
})

generator("times", function() {
  n <- whole(8, 3000)
  p <- whole(1, 6)
  x <- covariates(n, p)
  eta <- drop(attr(x, "unit") %*% rnorm(p, 0, 0.4)) + runif(1, -1, 3)
  shape <- between(0.5, 4)
  prior_sd <- signif(pick(2.5, 2.5, between(0.1, 50)), 3)
  benign <- attr(x, "kind") && prior_sd == 2.5 && n > 5 * p
  if (chance(0.5)) {
    y <- pmax(rgamma(n, shape, shape / exp(eta)), 1e-6)
    return(rows_problem(regression(y ~ ., Gamma("log"), prior_sd = prior_sd),
                        frame_of(y, x), with_intercept(x), function(eta, more) {
                          a <- per_row(exp(more[, 1]), eta)
                          dgamma(y, a, a / exp(eta), log = TRUE)
                        }, prior_sd, list(exponential_1), c(log(mean(y)), rep(0, p), 0), benign))
  }
  y <- pmax(rweibull(n, shape, exp(eta)), 1e-6)
  end <- if (chance(0.5)) quantile(y, 0.7) else Inf
  status <- as.numeric(y <= end)
  y <- pmin(y, end)
  data <- frame_of(y, x)
  data$status <- status
  rows_problem(regression(survival::Surv(y, status) ~ ., weibull(), prior_sd = prior_sd),
               data, with_intercept(x), function(eta, more) {
                 a <- per_row(exp(more[, 1]), eta)
                 rate <- a * (log(y) - eta)
                 status * (log(a) + rate - log(y)) - exp(rate)
               }, prior_sd, list(exponential_1), c(log(mean(y)), rep(0, p), 0), benign)
})

generator("outliers", function() {
  n <- whole(8, 2000)
  p <- whole(1, 5)
  x <- covariates(n, p)
  y <- drop(attr(x, "unit") %*% rnorm(p)) + rnorm(1) + between(0.2, 2) * rt(n, pick(1.5, 3, 20))
  df <- signif(between(1.5, 20), 2)
  prior_sd <- signif(pick(2.5, 2.5, between(0.1, 50)), 3)
  sigma <- positive_prior()
  start <- c(median(y), rep(0, p), log(mad(y) + 0.01))
  rows_problem(regression(y ~ ., student(df), prior_sd = prior_sd, auxiliary = sigma$prior),
               frame_of(y, x), with_intercept(x), function(eta, more) {
                 s <- per_row(exp(more[, 1]), eta)
                 dt((y - eta) / s, df, log = TRUE) - log(s)
               }, prior_sd, list(sigma$log), start,
               attr(x, "kind") && prior_sd == 2.5 && n > 5 * p + 10)
})

generator("softmax", function() {
  k <- pick(2, 3, 4)
  p <- whole(1, 12 %/% k - 1)
  n <- whole(6, 2000)
  x <- covariates(n, p)
  utility <- attr(x, "unit") %*% matrix(rnorm(p * k), p)
  class <- max.col(utility - log(-log(matrix(runif(n * k), n))), "first")
  data <- frame_of(factor(class, seq_len(k)), x)
  prior_sd <- signif(pick(1, 1, between(0.05, 50)), 3)
  design <- with_intercept(x)
  width <- ncol(design)
  density <- function(w) {
    each <- lapply(seq_len(k), function(j) {
      w[, (j - 1) * width + seq_len(width), drop = FALSE] %*% t(design)
    })
    top <- do.call(pmax, each)
    total <- top + log(Reduce(`+`, lapply(each, function(u) exp(u - top))))
    own <- Reduce(`+`, lapply(seq_len(k), function(j)
      rowSums(each[[j]][, class == j, drop = FALSE])))
    own - rowSums(total) + rowSums(dnorm(w, 0, prior_sd, log = TRUE))
  }
  list(kind = "regression", data = data,
       benign = attr(x, "kind") && prior_sd == 1 && n > 5 * p * k,
       model = softmax_regression(y ~ ., prior_sd = prior_sd),
       truth = function() importance_truth(density, list(rep(0, k * width)), n * k))
})

# ---- several modes, ridges and long tails: integrals in up to three dimensions ----

# Climbs start at draws from the prior and at places that the rows suggest.
integral_truth <- function(f, lower, upper, draw, hints = list(), climbs = 20, ...) {
  starts <- c(hints, lapply(seq_len(climbs), function(i) draw()))
  starts <- lapply(starts, function(s) pmin(pmax(s, lower), upper))
  cubature(f, lower, upper, peaks_of(f, starts), ...)
}

# Priors with heavy tails far from the rows. Coefficients by u, where w = scale * sinh(u).
generator("heavy-prior", function() {
  p <- pick(0, 0, 1)
  n <- whole(3, 60)
  x <- matrix(rnorm(n * p), n, p, dimnames = list(NULL, if (p) "x1"))
  df <- pick(1, 1, 3)
  scale <- signif(between(0.5, 5), 2)
  far <- sample(c(-1, 1), 1) * between(2, 1000) * scale
  y <- far + drop(x %*% rnorm(p, 0, abs(far) / 5)) + between(0.05, 5) * rnorm(n)
  sigma <- positive_prior()
  design <- with_intercept(x)
  square <- crossprod(design)
  with_y <- drop(crossprod(design, y))
  fit <- qr.coef(qr(design), y)
  rest <- sum((y - design %*% fit)^2)
  f <- function(at) {
    u <- at[, seq_len(p + 1), drop = FALSE]
    s <- at[, p + 2]
    w <- scale * sinh(u)
    off <- t(t(w) - fit)
    -n / 2 * log(2 * pi) - n * s - (rest + rowSums((off %*% square) * off)) / 2 / exp(2 * s) +
      rowSums(dt(sinh(u), df, log = TRUE) + log(cosh(u))) + sigma$log(s)
  }
  prior <- if (df == 1) prior_cauchy(0, scale) else prior_student_t(df, 0, scale)
  list(kind = "glm", data = frame_of(y, x),
       model = regression(y ~ ., prior = prior, intercept = prior, auxiliary = sigma$prior),
       truth = function() integral_truth(
         f, c(rep(-16, p + 1), -20), c(rep(16, p + 1), 20),
         function() c(asinh(rt(p + 1, df)), rnorm(1, 0, 2)),
         list(c(asinh(fit / scale), log(rest / n + 1e-6) / 2),
              c(rep(0, p + 1), log(mean(y^2)) / 2))))
})

# Noise that depends on a group, whose rows may nearly coincide. Coefficients of the mean are
# integrated out; what is left are the logarithms of the groups' noise.
generator("noise-groups", function() {
  groups <- pick(2, 2, 3)
  counts <- vapply(seq_len(groups), function(g) whole(2, 12), 0)
  g <- factor(rep(letters[seq_len(groups)], counts))
  y <- rnorm(length(g), pick(0, 3), between(0.3, 3)) + pick(0, 0, 2) * as.integer(g)
  tied <- chance(0.6)
  if (tied) y[which(g == "a")] <- y[1] + rnorm(counts[1], 0, between(1e-4, 0.1))
  prior_sd <- signif(between(1, 20), 2)
  spread <- signif(pick(1, between(1, 3)), 2)
  means <- chance(0.4)
  design <- if (means) model.matrix(~ g) else matrix(1, length(g))
  p <- ncol(design)
  sums <- lapply(levels(g), function(level) {
    own <- g == level
    list(n = sum(own), x = design[which(own)[1], ], mean = mean(y[own]),
         rest = sum((y[own] - mean(y[own]))^2))
  })
  f <- function(at) {
    log_s <- cbind(at[, 1], at[, 1] + at[, -1, drop = FALSE])
    value <- dt(at[, 1] / 2.5, 3, log = TRUE) - log(2.5) +
      rowSums(dnorm(at[, -1, drop = FALSE], 0, spread, log = TRUE))
    # the groups' means have variance s^2 / n given theirs, which are normal: a small normal vector
    covariance <- tcrossprod(t(matrix(vapply(sums, `[[`, numeric(p), "x"), p))) * prior_sd^2
    middle <- vapply(sums, `[[`, 0, "mean")
    for (k in seq_len(groups)) {
      n <- sums[[k]]$n
      value <- value - (n - 1) / 2 * log(2 * pi) - (n - 1) * log_s[, k] - log(n) / 2 -
        sums[[k]]$rest / 2 / exp(2 * log_s[, k])
    }
    value + small_normal(middle, covariance, exp(2 * log_s) * rep(1 / vapply(sums, `[[`, 0, "n"),
                                                                   each = nrow(at)))
  }
  formula <- if (means) y ~ g else y ~ 1
  list(kind = "glm", data = data.frame(y = y, g = g),
       model = regression(formula, sigma ~ g, prior_sd = prior_sd,
                          auxiliary = list(sigma = centred(spread),
                                           "sigma_(Intercept)" = student_t(3, 0, 2.5))),
       truth = function() {
         starts <- log(sqrt(vapply(sums, function(s) (s$rest + 1e-12) / s$n, 0)))
         far <- rep(14 * spread, groups - 1)
         integral_truth(f, c(-30, -far), c(20, far),
                        function() c(rnorm(1, 0, 3), rnorm(groups - 1, 0, spread)),
                        list(c(starts[1], (starts - starts[1])[-1])),
                        first = c(50, rep(16, groups - 1)), share = 1e-5)
       })
})

# Log density of a normal vector of up to three numbers, mean zero, whose covariance is the given
# matrix plus a diagonal (a row for each point): by Cholesky, number by number.
small_normal <- function(x, covariance, diagonal) {
  d <- length(x)
  root <- array(0, c(nrow(diagonal), d, d))
  z <- matrix(0, nrow(diagonal), d)
  value <- -d / 2 * log(2 * pi)
  for (i in seq_len(d)) {
    for (j in seq_len(i)) {
      rest <- covariance[i, j] + (if (i == j) diagonal[, i] else 0)
      for (k in seq_len(j - 1)) rest <- rest - root[, i, k] * root[, j, k]
      root[, i, j] <- if (i == j) sqrt(pmax(rest, 1e-300)) else rest / root[, j, j]
    }
    pull <- x[i]
    for (k in seq_len(i - 1)) pull <- pull - root[, i, k] * z[, k]
    z[, i] <- pull / root[, i, i]
    value <- value - log(root[, i, i]) - z[, i]^2 / 2
  }
  value
}

# Clusters of responses under a t distribution: a mode at each.
generator("clusters-t", function() {
  centres <- pick(2, 2, 3)
  y <- unlist(lapply(seq_len(centres), function(k)
    rnorm(1, 0, between(2, 50)) + rnorm(whole(2, 12), 0, between(0.02, 1))))
  df <- signif(between(1, 8), 2)
  prior_sd <- signif(between(5, 500), 2)
  sigma <- positive_prior(between(0.1, 3))
  f <- function(at) {
    s <- at[, 2]
    value <- dnorm(at[, 1], 0, prior_sd, log = TRUE) + sigma$log(s)
    for (one in y) value <- value + dt((one - at[, 1]) / exp(s), df, log = TRUE) - s
    value
  }
  wide <- 9 * prior_sd
  list(kind = "glm", data = data.frame(y = y),
       model = regression(y ~ 1, student(df), prior_sd = prior_sd,
                          auxiliary = sigma$prior),
       truth = function() integral_truth(f, c(-wide, -20), c(wide, 15),
                                         function() c(pick(y), rnorm(1)),
                                         lapply(y, function(one) c(one, -2)), first = c(40, 20)))
})

# A sine with unknown phase, or a direction: a posterior that is periodic under a wide prior.
generator("phase", function() {
  n <- whole(5, 60)
  x <- runif(n, 0, between(3, 30))
  noise <- between(0.1, 1.5)
  amplitude <- between(0.3, 3)
  y <- amplitude * sin(x + runif(1, 0, 6)) + rnorm(n, 0, noise)
  prior_sd <- signif(between(0.5, 40), 2)
  free <- chance(0.5)
  known <- chance(0.4)
  sigma <- positive_prior(between(0.3, 2))
  s_known <- signif(noise, 2)
  a_known <- signif(amplitude, 2)
  parts <- crossprod(cbind(sin(x), cos(x), y))
  f <- function(at) {
    s <- if (known) log(s_known) else at[, 2]
    turn <- cbind(cos(at[, 1]), sin(at[, 1]))
    with_y <- drop(turn %*% parts[1:2, 3])
    square <- rowSums((turn %*% parts[1:2, 1:2]) * turn)
    fit <- amplitude_fit(free, a_known, square, with_y, exp(2 * s))
    -n / 2 * log(2 * pi) - n * s - parts[3, 3] / 2 / exp(2 * s) + fit +
      dnorm(at[, 1], 0, prior_sd, log = TRUE) + if (known) 0 else sigma$log(s)
  }
  wide <- 9 * prior_sd
  model <- waves_of(quote(sin(x + p)), free, known, a_known, s_known, sigma$prior, p = ~ 1,
                    prior_sd = prior_sd)
  list(kind = "glm", data = data.frame(x = x, y = y), model = model, truth = function() {
    cells <- max(8, ceiling(2 * wide / 0.4))
    if (known) cubature(f, -wide, wide, first = cells)
    else cubature(f, c(-wide, -12), c(wide, 8), first = c(cells, 10), share = 1e-7)
  })
})

# The log of the mean of exp((2 a with_y - a^2 square) / 2 variance) over a ~ N(0, 2^2), or at a
# known amplitude.
amplitude_fit <- function(free, known, square, with_y, variance) {
  if (!free) return((2 * known * with_y - known^2 * square) / 2 / variance)
  -log1p(4 * square / variance) / 2 + (with_y / variance)^2 / 2 / (square / variance + 1 / 4)
}

waves_of <- function(signal, free, known, amplitude, noise, sigma, ..., prior) {
  mean <- if (free) bquote(a * .(signal)) else bquote(.(amplitude) * .(signal))
  expression <- bquote(dnorm(y, .(mean), .(if (known) noise else quote(s)), log = TRUE))
  formula <- eval(bquote(~ .(expression)))
  more <- c(list(...), if (free) list(a = centred(2)),
            if (!known) list(s = sigma))
  do.call(density, c(list(formula), more, list(prior = prior)))
}

# A sine with unknown frequency: many modes in it, found on a fine grid.
generator("frequency", function() {
  n <- whole(5, 50)
  reach <- between(2, 12)
  x <- runif(n, 0, reach)
  noise <- between(0.1, 1)
  amplitude <- between(0.5, 3)
  prior_sd <- signif(between(0.5, 8), 2)
  y <- amplitude * sin(rnorm(1, 0, prior_sd) * x) + rnorm(n, 0, noise)
  free <- chance(0.5)
  known <- chance(0.4)
  sigma <- positive_prior(between(0.3, 2))
  s_known <- signif(noise, 2)
  a_known <- signif(amplitude, 2)
  model <- waves_of(quote(sin(w)), free, known, a_known, s_known, sigma$prior, w = ~ 0 + x,
                    prior_sd = prior_sd)
  list(kind = "glm", data = data.frame(x = x, y = y), model = model, truth = function() {
    log_s <- if (known) log(s_known) else seq(-9, 6, 0.05)
    weight <- if (known) 0 else sigma$log(log_s) + log(0.05)
    at <- function(step) {
      w <- seq(-8 * prior_sd, 8 * prior_sd, step)
      parts <- split(w, (seq_along(w) - 1) %/% 5000)
      log_sum_exp(unlist(lapply(parts, function(w) {
        waves <- sin(outer(x, w))
        with_y <- colSums(y * waves)
        square <- colSums(waves^2)
        inner <- vapply(seq_along(log_s), function(i) {
          variance <- exp(2 * log_s[i])
          -n * log_s[i] - sum(y^2) / 2 / variance + weight[i] +
            amplitude_fit(free, a_known, square, with_y, variance)
        }, numeric(length(w)))
        row_log_sum_exp(matrix(inner, length(w))) + dnorm(w, 0, prior_sd, log = TRUE)
      }))) + log(step) - n / 2 * log(2 * pi)
    }
    step <- 0.02 * noise / amplitude / reach
    fine <- at(max(step, prior_sd / 5000))
    truth_of(fine, abs(fine - at(1.7 * max(step, prior_sd / 5000))), "grid")
  })
})

# Products of two or three unknown numbers: a change of two signs changes nothing, and ridges lie
# along constant products. Given all but one number the last one has a closed form.
generator("products", function() {
  many <- pick(2, 2, 3)
  n <- whole(3, 100)
  x <- rnorm(n) + pick(0, 1)
  prior_sd <- signif(between(0.3, 10), 2)
  noise <- between(0.1, 2)
  y <- prod(rnorm(many, 0, min(prior_sd, 2))) * x + rnorm(n, 0, noise)
  known <- chance(0.5) || many == 3
  sigma <- positive_prior(between(0.3, 2))
  s_known <- signif(noise, 2)
  xx <- sum(x^2)
  xy <- sum(x * y)
  yy <- sum(y^2)
  f <- function(at) {
    s <- if (known) log(s_known) else at[, many]
    others <- at[, seq_len(many - 1), drop = FALSE]
    size <- exp(rowSums(log(abs(others)))) * prior_sd
    variance <- exp(2 * s)
    -n / 2 * log(2 * pi) - n * s - yy / 2 / variance - log1p(size^2 * xx / variance) / 2 +
      (size * xy / variance)^2 / 2 / (1 + size^2 * xx / variance) +
      rowSums(dnorm(others, 0, prior_sd, log = TRUE)) + if (known) 0 else sigma$log(s)
  }
  mean <- Reduce(function(a, b) call("*", a, b), lapply(c(letters[seq_len(many)], "x"), as.name))
  formula <- eval(bquote(~ dnorm(y, .(mean), .(if (known) s_known else quote(s)), log = TRUE)))
  factors <- lapply(setNames(nm = letters[seq_len(many)]), function(name) ~ 1)
  model <- do.call(density, c(list(formula), factors, if (!known) list(s = sigma$prior),
                              list(prior_sd = prior_sd)))
  # symmetric in each sign
  list(kind = "glm", data = data.frame(x = x, y = y), model = model, truth = function() {
    sides <- many - 1
    half <- cubature(f, c(rep(0, sides), if (!known) -12), c(rep(9 * prior_sd, sides),
                                                             if (!known) 8), first = 20)
    replace(half, "value", half$value + sides * log(2))
  })
})

# Skew-normal rows with unknown location, scale and skewness.
generator("skew-rows", function() {
  n <- whole(5, 50)
  skew <- rnorm(1, 0, 4)
  y <- runif(1, -2, 2) + between(0.3, 3) * (abs(rnorm(n)) * skew + rnorm(n)) / sqrt(1 + skew^2)
  prior_sd <- signif(between(1, 10), 2)
  sigma <- positive_prior()
  model <- density(~ log(2) + dnorm(y, m, s, log = TRUE) +
                     pnorm(a * (y - m) / s, log.p = TRUE), m = ~ 1, a = ~ 1, s = sigma$prior,
                   prior_sd = prior_sd)
  f <- function(at) {
    s <- exp(at[, 3])
    value <- sigma$log(at[, 3]) + rowSums(dnorm(at[, 1:2, drop = FALSE], 0, prior_sd, log = TRUE)) +
      n * (log(2) - at[, 3])
    for (one in y) {
      z <- (one - at[, 1]) / s
      value <- value + dnorm(z, log = TRUE) + pnorm(at[, 2] * z, log.p = TRUE)
    }
    value
  }
  list(kind = "glm", data = data.frame(y = y), model = model, truth = function() integral_truth(
    f, c(-8 * prior_sd, -8 * prior_sd, -8), c(8 * prior_sd, 8 * prior_sd, 6),
    function() c(rnorm(2, 0, prior_sd), rnorm(1)),
    list(c(min(y), 2, log(sd(y))), c(max(y), -2, log(sd(y))), c(mean(y), 0, log(sd(y)))),
    first = c(10, 8, 6), share = 3e-5))
})

# A part of the rows is ten times as wide: location, scale and share.
generator("contaminated", function() {
  n <- whole(5, 60)
  wide <- rbinom(n, 1, pick(0.1, 0.3, 0.5))
  y <- runif(1, -3, 3) + between(0.1, 2) * ifelse(wide, 10, 1) * rnorm(n)
  prior_sd <- signif(between(1, 10), 2)
  sigma <- positive_prior()
  model <- density(~ log(plogis(p) * dnorm(y, m, s) + plogis(-p) * dnorm(y, m, 10 * s)),
                   m = ~ 1, p = ~ 1, s = sigma$prior, prior_sd = prior_sd)
  f <- function(at) {
    s <- exp(at[, 3])
    value <- sigma$log(at[, 3]) + rowSums(dnorm(at[, 1:2, drop = FALSE], 0, prior_sd, log = TRUE))
    narrow <- plogis(at[, 2])
    for (one in y)
      value <- value + log(narrow * dnorm(one, at[, 1], s) +
                             (1 - narrow) * dnorm(one, at[, 1], 10 * s) + 1e-300)
    value
  }
  list(kind = "glm", data = data.frame(y = y), model = model, truth = function() integral_truth(
    f, c(-8 * prior_sd, -8 * prior_sd, -8), c(8 * prior_sd, 8 * prior_sd, 6),
    function() c(rnorm(2, 0, prior_sd), rnorm(1)),
    list(c(median(y), 1, log(mad(y) + 0.01)), c(median(y), -1, log(mad(y) / 10 + 0.01))),
    first = c(10, 8, 6), share = 3e-5))
})

# Counts with too many zeros.
generator("zeros", function() {
  n <- whole(4, 200)
  slope <- chance(0.4) && n < 80
  x <- if (slope) rnorm(n) else rep(0, n)
  y <- rbinom(n, 1, pick(0.3, 0.7, 0.95)) * rpois(n, exp(rnorm(1, 0.5, 1) + 0.5 * x))
  prior_sd <- signif(pick(2.5, between(0.5, 20)), 2)
  model <- density(~ ifelse(y == 0, log(plogis(p) + plogis(-p) * exp(-exp(mu))),
                            plogis(-p, log.p = TRUE) + dpois(y, exp(mu), log = TRUE)),
                   mu = if (slope) ~ x else ~ 1, p = ~ 1, prior_sd = prior_sd)
  kinds <- unique(data.frame(x, y))
  copies <- apply(kinds, 1, function(k) sum(x == k[1] & y == k[2]))
  f <- function(at) {
    p <- at[, 1]
    value <- rowSums(dnorm(at, 0, prior_sd, log = TRUE))
    for (k in seq_along(copies)) {
      rate <- exp(pmin(at[, 2] + if (slope) at[, 3] * kinds$x[k] else 0, 600))
      value <- value + copies[k] * if (kinds$y[k] == 0) log(plogis(p) + plogis(-p) * exp(-rate))
      else plogis(-p, log.p = TRUE) + dpois(kinds$y[k], rate, log = TRUE)
    }
    value
  }
  d <- 2 + slope
  list(kind = "glm", data = data.frame(x = x, y = y), model = model, truth = function()
    integral_truth(f, rep(-8 * prior_sd, d), rep(8 * prior_sd, d),
                   function() rnorm(d, 0, prior_sd), list(c(0, log(mean(y) + 0.1), 0)[seq_len(d)]),
                   first = 16, share = 1e-5))
})

# ---- functions of R ----

# A custom model whose prior is normal with mean zero.
custom_problem <- function(d, log_lik, gradient, truth, prior_sd, modes = "one", benign = FALSE) {
  model <- custom_model(
    paste0("x", seq_len(d)), log_likelihood = log_lik, gradient = gradient,
    log_prior = function(x) rowSums(dnorm(x, 0, prior_sd, log = TRUE)),
    prior_gradient = function(x) unname(-x / prior_sd^2),
    draw_prior = function(n) matrix(rnorm(n * d, 0, prior_sd), n),
    vectorised = TRUE, modes = modes)
  list(kind = "custom", model = model, truth = truth, benign = benign)
}

# Normal peaks at random places.
generator("peaks", function() {
  d <- whole(1, 6)
  many <- whole(1, 64)
  prior_sd <- signif(between(1, 5), 2)
  centres <- matrix(rnorm(many * d, 0, prior_sd), many)
  sds <- if (chance(0.5)) rep(between(0.05, 1), many) else exp(runif(many, log(0.05), 0))
  shares <- rexp(many)
  b <- bumps(centres, sds, shares / sum(shares))
  custom_problem(d, b$log_lik, b$gradient, function() b$truth(prior_sd), prior_sd,
                 if (many > 1) pick("one", "several") else "one", many == 1)
})

# Two peaks in each coordinate, 2^d in all.
generator("corners", function() {
  d <- whole(1, 8)
  prior_sd <- signif(between(1, 4), 2)
  at <- cbind(runif(d, -2, -0.5), runif(d, 0.5, 2)) * prior_sd / 2
  sds <- if (chance(0.5)) between(0.05, 0.4) else exp(runif(2 * d, log(0.05), log(0.4)))
  sds <- matrix(sds, d, 2)
  share <- cbind(runif(d, 0.1, 0.9))
  share <- if (chance(0.5)) matrix(0.5, d, 2) else cbind(share, 1 - share)
  each <- function(x, j) matrix(vapply(1:2, function(k)
    log(share[j, k]) + dnorm(x[, j], at[j, k], sds[j, k], log = TRUE), numeric(nrow(x))), nrow(x))
  log_lik <- function(x) Reduce(`+`, lapply(seq_len(d), function(j) mix_log(each(x, j))))
  gradient <- function(x) unname(matrix(vapply(seq_len(d), function(j) {
    part <- mix_share(each(x, j))
    part[, 1] * (at[j, 1] - x[, j]) / sds[j, 1]^2 + part[, 2] * (at[j, 2] - x[, j]) / sds[j, 2]^2
  }, numeric(nrow(x))), nrow(x)))
  custom_problem(d, log_lik, gradient, function() truth_of(
    sum(log(rowSums(share * dnorm(at, 0, sqrt(prior_sd^2 + sds^2))))), way = "closed form"),
    prior_sd, pick("one", "several"))
})

# Rings, shells, bananas and funnels.
generator("shapes", function() {
  prior_sd <- signif(between(0.7, 4), 2)
  switch(pick("shell", "banana", "funnel"), shell = {
    d <- whole(2, 8)
    radius <- prior_sd * sqrt(d) * between(0.5, 2)
    width <- radius * between(0.01, 0.2)
    custom_problem(d, function(x) dnorm(sqrt(rowSums(x^2)), radius, width, log = TRUE),
      function(x) {
        r <- sqrt(rowSums(x^2))
        unname(-(r - radius) / width^2 * x / pmax(r, 1e-300))
      }, function() quadrature(function(r) {
        dnorm(r, radius, width, log = TRUE) + dchisq((r / prior_sd)^2, d, log = TRUE) +
          log(2 * r / prior_sd^2)
      }, 1e-9, radius + 40 * width), prior_sd, pick("one", "several"))
  }, banana = {
    bend <- between(0.2, 3)
    sd <- between(0.02, 0.5)
    custom_problem(2, function(x) dnorm(x[, 2], bend * x[, 1]^2, sd, log = TRUE), function(x) {
      pull <- (x[, 2] - bend * x[, 1]^2) / sd^2
      unname(cbind(2 * bend * x[, 1] * pull, -pull))
    }, function() quadrature(function(a) {
      dnorm(a, 0, prior_sd, log = TRUE) + dnorm(bend * a^2, 0, sqrt(prior_sd^2 + sd^2), log = TRUE)
    }, -15 * prior_sd, 15 * prior_sd), prior_sd)
  }, funnel = {
    # rows around coordinates whose spread is unknown
    d <- whole(2, 6)
    seen <- rnorm(d, 0, between(0.1, 3))
    noise <- between(0.3, 2)
    width <- signif(between(1, 3), 2)
    log_prior <- function(t) dnorm(t[, 1], 0, width, log = TRUE) +
      rowSums(dnorm(rest(t), 0, exp(t[, 1] / 2), log = TRUE))
    model <- custom_model(
      c("v", paste0("x", seq_len(d))), vectorised = TRUE,
      log_likelihood = function(t) colSums(dnorm(t(rest(t)), seen, noise, log = TRUE)),
      log_prior = log_prior,
      draw_prior = function(n) {
        v <- rnorm(n, 0, width)
        cbind(v, matrix(rnorm(d * n), n) * exp(v / 2), deparse.level = 0)
      },
      gradient = function(t) unname(cbind(0, t(seen - t(rest(t))) / noise^2)),
      prior_gradient = function(t) unname(cbind(
        -t[, 1] / width^2 - d / 2 + rowSums(rest(t)^2) * exp(-t[, 1]) / 2,
        -rest(t) * exp(-t[, 1]))))
    list(kind = "custom", model = model, truth = function() quadrature(
      function(v) dnorm(v, 0, width, log = TRUE) + vapply(v, function(one)
        sum(dnorm(seen, 0, sqrt(exp(one) + noise^2), log = TRUE)), 0), -15 * width, 15 * width,
      2e4))
  })
})

# Skewed in each coordinate, independently.
generator("skew-product", function() {
  d <- whole(1, 10)
  speed <- signif(exp(runif(d, log(0.5), log(5))), 3)
  shift <- rnorm(d)
  shape <- signif(exp(runif(d, log(0.3), log(5))), 3)
  prior_sd <- signif(between(0.5, 3), 2)
  custom_problem(d, function(x) {
    z <- t(x) * speed - shift
    colSums(shape * (z - exp(z)))
  }, function(x) {
    z <- t(x) * speed - shift
    unname(t(shape * speed * (1 - exp(z))))
  }, function() {
    each <- lapply(seq_len(d), function(j) quadrature(function(x) {
      z <- speed[j] * x - shift[j]
      shape[j] * (z - exp(z)) + dnorm(x, 0, prior_sd, log = TRUE)
    }, -20 * prior_sd, 20 * prior_sd))
    truth_of(sum(vapply(each, `[[`, 0, "value")), sum(vapply(each, `[[`, 0, "se")), "quadrature")
  }, prior_sd)
})

# Normal likelihoods of any covariance in many dimensions.
generator("normal", function() {
  d <- whole(2, 60)
  turn <- qr.Q(qr(matrix(rnorm(d * d), d)))
  variances <- 10^runif(d, -runif(1, 0, 5), 0)
  covariance <- if (chance(0.5)) turn %*% (variances * t(turn)) else diag(variances, d)
  covariance <- (covariance + t(covariance)) / 2
  precision <- solve(covariance)
  middle <- rnorm(d, 0, pick(0.5, 2))
  log_det <- determinant(covariance)$modulus[[1]]
  custom_problem(d, function(x) {
    off <- t(t(x) - middle)
    -d / 2 * log(2 * pi) - log_det / 2 - rowSums((off %*% precision) * off) / 2
  }, function(x) unname(-t(t(x) - middle) %*% precision), function() {
    root <- chol(covariance + diag(d))
    truth_of(-d / 2 * log(2 * pi) - sum(log(diag(root))) -
               sum(backsolve(root, middle, transpose = TRUE)^2) / 2, way = "closed form")
  }, 1, benign = TRUE)
})

# Priors with heavy tails and one or two peaks in each coordinate, near or far.
generator("heavy-peaks", function() {
  d <- whole(1, 4)
  df <- pick(1, 1, 3)
  many <- pick(1, 2)
  at <- matrix(rnorm(d * many, 0, between(1, 60)), d)
  sds <- matrix(between(0.05, 2), d, many)
  each <- function(x, j) matrix(vapply(seq_len(many), function(k)
    dnorm(x[, j], at[j, k], sds[j, k], log = TRUE), numeric(nrow(x))), nrow(x))
  model <- custom_model(
    paste0("x", seq_len(d)), vectorised = TRUE,
    log_likelihood = function(x) Reduce(`+`, lapply(seq_len(d), function(j) mix_log(each(x, j)))),
    log_prior = function(x) rowSums(dt(x, df, log = TRUE)),
    draw_prior = function(n) matrix(rt(n * d, df), n),
    gradient = function(x) matrix(vapply(seq_len(d), function(j) {
      part <- mix_share(each(x, j))
      rowSums(part * (rep(at[j, ], each = nrow(x)) - x[, j]) / rep(sds[j, ]^2, each = nrow(x)))
    }, numeric(nrow(x))), nrow(x)),
    prior_gradient = function(x) unname(-(df + 1) * x / (df + x^2)),
    modes = if (many > 1) pick("one", "several") else "one")
  list(kind = "custom", model = model, truth = function() {
    one <- function(j, k) integrate(function(x) dt(x, df) * dnorm(x, at[j, k], sds[j, k]),
                                    at[j, k] - 9 * sds[j, k], at[j, k] + 9 * sds[j, k],
                                    rel.tol = 1e-9, subdivisions = 1000)$value
    truth_of(sum(vapply(seq_len(d), function(j)
      log(sum(vapply(seq_len(many), function(k) one(j, k), 0))), 0)), 1e-6, "quadrature")
  })
})

# ---- mixtures and latent variables ----

# Few rows: a sum over all labels.
generator("mixture-few", function() {
  k <- pick(2, 2, 3, 4)
  n <- whole(k, floor(log(7e4) / log(k)) - pick(0, 2, 4))
  n <- max(n, k)
  d <- pick(1, 1, 2)
  shift <- pick(0, 0, rnorm(1, 0, 20))
  scale <- pick(1, 1, between(0.01, 100))
  y <- (matrix(rnorm(n * d), n) + 3 * sample.int(pick(1, 2, 3), n, TRUE)) * scale + shift
  y <- signif(y, 6)
  settings <- list(mean_scale = signif(pick(2, between(0.5, 10)), 2),
                   shape = signif(pick(1, between(0.3, 4)), 2),
                   rate = signif(pick(1, between(0.05, 5)), 2),
                   concentration = signif(pick(1, between(0.1, 5)), 2))
  colnames(y) <- paste0("y", seq_len(d))
  list(kind = "mixture", data = y, truth = function() do.call(enumerate_labels, c(list(y, k),
                                                                                settings)),
       model = do.call(gaussian_mixture, c(list(components = k), settings)))
})

# A mixture by the sum over all labels of few rows.
enumerate_labels <- function(y, components, mean_scale, shape, rate, concentration) {
  n <- nrow(y)
  labels <- as.matrix(expand.grid(rep(list(seq_len(components)), n)))
  value <- lgamma(components * concentration) - lgamma(components * concentration + n) -
    components * lgamma(concentration)
  kappa <- 1 / mean_scale^2
  for (k in seq_len(components)) {
    own <- labels == k
    count <- rowSums(own)
    value <- value + lgamma(concentration + count)
    for (j in seq_len(ncol(y))) {
      sums <- drop(own %*% y[, j])
      left <- rate + (drop(own %*% y[, j]^2) - sums^2 / (count + kappa)) / 2
      value <- value - count / 2 * log(2 * pi) + log(kappa / (kappa + count)) / 2 +
        shape * log(rate) - lgamma(shape) + lgamma(shape + count / 2) -
        (shape + count / 2) * log(left)
    }
  }
  truth_of(log_sum_exp(value), 1e-6, "enumeration of labels")
}

# Few distinct rows, each several times.
generator("mixture-ties", function() {
  k <- pick(2, 2, 3)
  kinds <- if (k == 2) whole(2, 5) else whole(2, 4)
  d <- pick(1, 2)
  values <- as.matrix(unique(matrix(sample(0:4, kinds * d, TRUE), kinds)))
  data <- values[sample.int(nrow(values), whole(k, if (k == 2) 30 else 18), TRUE), , drop = FALSE]
  data <- data * pick(1, 1, between(0.1, 10)) - pick(0, 2)
  colnames(data) <- paste0("y", seq_len(d))
  rate <- signif(between(0.05, 2), 2)
  list(kind = "mixture", data = data, model = gaussian_mixture(components = k, rate = rate),
       truth = function() enumerate_mixture(data, k, rate))
})

# Rows of some clusters, with too few, enough or too many components.
generator("mixture", function() {
  clusters <- pick(1, 2, 3, 4)
  k <- pick(1, 2, 2, 3, 3, 4, 5)
  n <- whole(max(10, 2 * k), 120)
  d <- pick(1, 1, 2, 3)
  apart <- between(0.5, 6)
  centres <- matrix(rnorm(clusters * d, 0, apart), clusters)
  y <- centres[sample.int(clusters, n, TRUE), , drop = FALSE] + matrix(rnorm(n * d), n)
  y <- (y + pick(0, 0, rnorm(1, 0, 15))) * pick(1, 1, between(0.05, 20))
  if (chance(0.3)) y <- y[order(y[, 1]), , drop = FALSE]
  colnames(y) <- paste0("y", seq_len(d))
  rate <- signif(pick(1, 1, between(0.1, 3)), 2)
  concentration <- signif(pick(1, 1, between(0.2, 4)), 2)
  list(kind = "mixture", data = y,
       benign = k <= clusters && apart > 3 && rate == 1 && max(abs(y)) < 12 && n > 20 * k,
       model = gaussian_mixture(components = k, rate = rate, concentration = concentration),
       truth = function() both_ways(y, k, rate, concentration))
})

# Two independent ways; where they disagree the error is at least half of their difference.
both_ways <- function(y, k, rate, concentration) {
  if (k == 1) return(exact_component(y, rate = rate))
  dual <- dual_importance(y, k, 1 / 4, 1, rate, concentration, draws = if (k > 4) 1e4 else 2e4)
  filter <- filter_rows(y, "mixture", k, concentration, 1, rate, 1 / 4, particles = 1000,
                        orders = 4)
  apart <- filter$value - dual$value
  joint <- sqrt(filter$se^2 + dual$se^2)
  note <- sprintf("%s (particle filter: %+.2f +- %.2f)", dual$way, apart, filter$se)
  truth_of(dual$value, if (abs(apart) < 3 * joint + 0.01) dual$se else abs(apart), note)
}

# Latent variables with known variances and few rows: a sum over all labels.
generator("clustering", function() {
  k <- pick(2, 2, 3)
  n <- whole(k, if (k == 2) 13 else 9)
  d <- whole(1, 5)
  sds <- signif(c(between(0.5, 4), between(0.2, 2)), 2)
  y <- matrix(rnorm(k * d, 0, sds[1]), k)[sample.int(k, n, TRUE), , drop = FALSE] +
    matrix(rnorm(n * d, 0, sds[2]), n)
  colnames(y) <- paste0("y", seq_len(d))
  list(kind = "latent-known", data = y, benign = TRUE,
       model = clustering(components = k, prior_sd = sds[1], noise_sd = sds[2]),
       truth = function() {
         labels <- as.matrix(expand.grid(rep(list(seq_len(k)), n)))
         ratio <- (sds[1] / sds[2])^2
         value <- -n * log(k) - n * d * log(sqrt(2 * pi) * sds[2]) - sum(y^2) / 2 / sds[2]^2
         for (one in seq_len(k)) {
           own <- labels == one
           count <- rowSums(own)
           value <- value - d / 2 * log1p(count * ratio) +
             rowSums((own %*% y)^2) * ratio / (1 + count * ratio) / 2 / sds[2]^2
         }
         truth_of(log_sum_exp(value), 1e-6, "enumeration of labels")
       })
})

generator("attributes", function() {
  k <- pick(1, 1, 2)
  n <- whole(2, if (k == 1) 11 else 5)
  d <- whole(1, 5)
  sds <- signif(c(between(0.5, 3), between(0.2, 2)), 2)
  y <- matrix(rbinom(n * k, 1, 0.5), n) %*% matrix(rnorm(k * d, 0, sds[1]), k) +
    matrix(rnorm(n * d, 0, sds[2]), n)
  colnames(y) <- paste0("y", seq_len(d))
  list(kind = "latent-known", data = y, benign = TRUE,
       model = binary_attributes(attributes = k, prior_sd = sds[1], noise_sd = sds[2]),
       truth = function() {
         codes <- seq_len(2^(n * k)) - 1
         value <- vapply(codes, function(code) {
           z <- matrix(bitwAnd(code, 2^(seq_len(n * k) - 1)) > 0, n) + 0
           root <- chol(diag(sds[2]^2, n) + sds[1]^2 * tcrossprod(z))
           -n * k * log(2) - n * d / 2 * log(2 * pi) - d * sum(log(diag(root))) -
             sum(backsolve(root, y, transpose = TRUE)^2) / 2
         }, 0)
         truth_of(log_sum_exp(value), 1e-6, "enumeration of labels")
       })
})

# Rank one with known variances: the row factors integrated out, a cubature over the others.
generator("rank-one", function() {
  n <- whole(3, 40)
  d <- pick(2, 3)
  sds <- signif(c(between(0.5, 2), between(0.5, 2), between(0.2, 2)), 2)
  y <- tcrossprod(rnorm(n, 0, sds[1]), rnorm(d, 0, sds[2])) + matrix(rnorm(n * d, 0, sds[3]), n)
  colnames(y) <- paste0("y", seq_len(d))
  square <- crossprod(y)
  f <- function(v) {
    length2 <- rowSums(v^2)
    noise <- sds[3]^2
    along <- rowSums((v %*% square) * v)
    -n * d / 2 * log(2 * pi) - n * d * log(sds[3]) - n / 2 * log1p(sds[1]^2 * length2 / noise) -
      (sum(diag(square)) - along * sds[1]^2 / (noise + sds[1]^2 * length2)) / 2 / noise +
      rowSums(dnorm(v, 0, sds[2], log = TRUE))
  }
  list(kind = "latent-known", data = y, benign = TRUE,
       model = low_rank(rank = 1, row_sd = sds[1], column_sd = sds[2], noise_sd = sds[3]),
       truth = function() integral_truth(f, rep(-9 * sds[2], d), rep(9 * sds[2], d),
                                         function() rnorm(d, 0, sds[2]), first = 12))
})

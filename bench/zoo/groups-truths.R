# References of regressions with group-level effects, in plain R, for bench/groups.R and the zoo.
#
# Parameters are drawn from Student's t distribution, which is adapted in rounds. At each draw
# effects are integrated out
# - normal densities: by the dense covariance matrix of all rows;
# - one effect of a group: on a grid of the effect for each group, which is narrowed twice;
# - else, for logit and Poisson models: by draws around the mode of all effects, which are new for
#   each draw of the parameters, so that the mean over all is unbiased and its standard error
#   contains theirs.

GROUP_PRIOR_SD <- 2.5

log_sum <- function(x) max(x) + log(sum(exp(x - max(x))))

# Densities of rows given the linear predictor and the logarithm of the further parameter.
DENSITIES <- list(
  gaussian = function(y, eta, a) dnorm(y, eta, exp(a), log = TRUE),
  student = function(y, eta, a) dt((y - eta) / exp(a), 4, log = TRUE) - a,
  poisson = function(y, eta, a) y * eta - exp(eta) - lgamma(y + 1),
  logit = function(y, eta, a) plogis((2 * y - 1) * eta, log.p = TRUE),
  probit = function(y, eta, a) pnorm((2 * y - 1) * eta, log.p = TRUE),
  gamma = function(y, eta, a) dgamma(y, exp(a), exp(a - eta), log = TRUE),
  negative_binomial = function(y, eta, a) dnbinom(y, exp(a), mu = exp(eta), log = TRUE),
  weibull = function(y, eta, a) dweibull(y, exp(a), exp(eta), log = TRUE)
)
GROUP_FAMILIES <- list(gaussian = gaussian(), student = student(4), poisson = poisson(),
                 logit = binomial(), probit = binomial("probit"), gamma = Gamma("log"),
                 negative_binomial = negative_binomial(), weibull = weibull())
HAS_FURTHER <- c("gaussian", "student", "gamma", "negative_binomial", "weibull")
half_t <- function(log_sd) log(2) + dt(exp(log_sd) / 2.5, 3, log = TRUE) - log(2.5) + log_sd
exponential_1 <- function(log_a) log_a - exp(log_a)

# A term: the column of the groups, the columns of its effects, whether these are correlated.
term <- function(group, effects = "one", correlated = length(effects) > 1, sd = 0.8)
  list(group = group, effects = effects, correlated = correlated, sd = rep_len(sd, length(effects)))

# `groups` of so many `rows`, or so many rows of each pair of `groups` and `items`.
problem <- function(family, formula, terms, groups, rows = 1, items = 0, inner = 0,
                    on_sigma = FALSE, fixed = "x") {
  list(family = family, formula = formula, terms = terms, groups = groups, rows = rows,
       items = items, inner = inner, on_sigma = on_sigma, fixed = fixed)
}

# theta: coefficients, the logarithm of the further parameter, then for each term the logarithms of
# its standard deviations, and the inverse hyperbolic tangent of the correlation of two.
layout <- function(p) {
  at <- length(p$fixed) + 1
  coefficients <- seq_len(at)
  further <- if (p$family %in% HAS_FURTHER) at + 1
  at <- at + length(further)
  terms <- lapply(p$terms, function(t) {
    q <- length(t$effects)
    sd <- at + seq_len(q)
    cor <- if (t$correlated) at + q + 1
    at <<- at + q + length(cor)
    list(sd = sd, cor = cor)
  })
  list(coefficients = coefficients, further = further, terms = terms, d = at)
}

log_prior <- function(p, l, theta) {
  value <- sum(dnorm(theta[l$coefficients], 0, GROUP_PRIOR_SD, log = TRUE))
  if (length(l$further)) {
    a <- theta[l$further]
    value <- value + if (p$on_sigma) dt(a / 2.5, 3, log = TRUE) - log(2.5)
    else if (p$family %in% c("gaussian", "student")) half_t(a) else exponential_1(a)
  }
  for (t in l$terms) {
    value <- value + sum(half_t(theta[t$sd]))
    # uniform in the correlation
    if (length(t$cor)) value <- value + log(0.5) - 2 * log(cosh(theta[t$cor]))
  }
  value
}

root_of <- function(t, theta) {
  sd <- exp(theta[t$sd])
  if (!length(t$cor)) return(diag(sd, length(sd)))
  r <- tanh(theta[t$cor])
  matrix(c(sd[1], sd[2] * r, 0, sd[2] / cosh(theta[t$cor])), 2)
}

# Columns of all effects, times the root of their covariance.
loads <- function(p, l, d, theta) do.call(cbind, Map(function(t, at) {
  code <- match(d[[t$group]], unique(d[[t$group]]))
  z <- as.matrix(d[t$effects]) %*% root_of(at, theta)
  found <- matrix(0, nrow(d), max(code) * ncol(z))
  for (k in seq_len(ncol(z))) found[cbind(seq_along(code), (code - 1) * ncol(z) + k)] <- z[, k]
  found
}, p$terms, l$terms))

fixed_part <- function(p, l, d, theta)
  drop(cbind(1, as.matrix(d[p$fixed])) %*% theta[l$coefficients])

by_covariance <- function(p, l, d) function(theta) {
  e <- d$y - fixed_part(p, l, d, theta)
  root <- chol(diag(exp(2 * theta[l$further]), nrow(d)) + tcrossprod(loads(p, l, d, theta)))
  squares <- sum(backsolve(root, e, transpose = TRUE)^2)
  -nrow(d) / 2 * log(2 * pi) - sum(log(diag(root))) - squares / 2
}

by_grid <- function(p, l, d) {
  code <- match(d$g, unique(d$g))
  groups <- max(code)
  z <- d[[p$terms[[1]]$effects]]
  density <- DENSITIES[[p$family]]
  function(theta) {
    eta <- fixed_part(p, l, d, theta)
    a <- if (length(l$further)) theta[l$further] else 0
    sd <- exp(theta[l$terms[[1]]$sd])
    values <- function(v) {
      added <- z * sd * v[code, , drop = FALSE]
      each <- if (p$on_sigma) density(d$y, eta, a + added) else density(d$y, eta + added, a)
      rowsum(each, code, reorder = FALSE) + dnorm(v, log = TRUE)
    }
    low <- rep(-9, groups)
    high <- rep(9, groups)
    for (points in c(if (nrow(d) > 1000) 25 else c(41, 41), if (nrow(d) > 1000) 41 else 101)) {
      step <- (high - low) / (points - 1)
      v <- low + outer(step, seq_len(points) - 1)
      f <- values(v)
      top <- f[cbind(seq_len(groups), max.col(f, "first"))]
      inside <- f > top - 30
      first <- max.col(inside, "first")
      last <- max.col(inside, "last")
      low <- v[cbind(seq_len(groups), pmax(first - 1, 1))]
      high <- v[cbind(seq_len(groups), pmin(last + 1, points))]
    }
    sum(top + log(rowSums(exp(f - top)) * step))
  }
}

# Around the mode of all effects: draws of Student's t distribution with 40 degrees of freedom.
by_draws <- function(p, l, d, draws = 200) {
  density <- DENSITIES[[p$family]]
  mean_of <- if (p$family == "poisson") exp else plogis
  bend_of <- if (p$family == "poisson") exp else function(eta) plogis(eta) * plogis(-eta)
  function(theta, random = TRUE) {
    eta <- fixed_part(p, l, d, theta)
    a <- loads(p, l, d, theta)
    k <- ncol(a)
    v <- numeric(k)
    target <- function(v) sum(density(d$y, eta + drop(a %*% v), 0)) - sum(v^2) / 2
    now <- target(v)
    for (i in 1:100) {
      at <- eta + drop(a %*% v)
      slope <- drop(crossprod(a, d$y - mean_of(at))) - v
      root <- chol(crossprod(a * sqrt(bend_of(at))) + diag(k))
      step <- backsolve(root, backsolve(root, slope, transpose = TRUE))
      size <- 1
      while (!((new <- target(v + size * step)) >= now - 1e-9) && size > 1e-6) size <- size / 2
      v <- v + size * step
      now <- new
      if (sum(step * slope) < 1e-8) break
    }
    base <- -sum(log(diag(root)))
    if (!random) return(now + base)
    z <- matrix(rnorm(k * draws), k) / rep(sqrt(rchisq(draws, 40) / 40), each = k)
    points <- v + backsolve(root, z)
    f <- colSums(density(d$y, eta + a %*% points, 0)) - colSums(points^2) / 2 - k / 2 * log(2 * pi)
    proposal <- lgamma((40 + k) / 2) - lgamma(20) - k / 2 * log(40 * pi) -
      (40 + k) / 2 * log1p(colSums(z^2) / 40)
    base + log_sum(f - proposal) - log(draws)
  }
}

t_sampling <- function(target, centre, root, draws, df = 6) {
  d <- length(centre)
  z <- matrix(rnorm(draws * d), draws)
  u <- rchisq(draws, df) / df
  theta <- rep(centre, each = draws) + (z / sqrt(u)) %*% root
  proposal <- lgamma((df + d) / 2) - lgamma(df / 2) - d / 2 * log(df * pi) -
    sum(log(diag(root))) - (df + d) / 2 * log1p(rowSums(z^2) / u / df)
  value <- apply(theta, 1, function(t) tryCatch(target(t), error = function(e) -Inf))
  log_weight <- ifelse(is.finite(value), value, -Inf) - proposal
  weight <- exp(log_weight - max(log_weight))
  list(value = log_sum(log_weight) - log(draws), ess = sum(weight)^2 / sum(weight^2),
       se = sd(weight) / mean(weight) / sqrt(draws), theta = theta, weight = weight / sum(weight))
}

one_effect <- function(p) length(p$terms) == 1 && length(p$terms[[1]]$effects) == 1

#' @return A data frame: `truth`, the log evidence, its standard error and how it was found.
group_reference <- function(p, d, seed) {
  l <- layout(p)
  one <- one_effect(p)
  normal <- p$family == "gaussian" && !p$on_sigma
  log_lik <- (if (normal) by_covariance else if (one) by_grid else by_draws)(p, l, d)
  target <- function(theta) log_prior(p, l, theta) + log_lik(theta)
  smooth <- if (normal || one) target
  else function(theta) log_prior(p, l, theta) + log_lik(theta, FALSE)
  safe <- function(theta) {
    value <- tryCatch(-smooth(theta), error = function(e) 1e10)
    if (is.finite(value)) value else 1e10
  }
  set.seed(seed)
  # the level of the response may be that of the coefficients or of the effects
  sizes <- log(pmax(c(1, sd(d$y), abs(mean(d$y))), 0.1))
  starts <- lapply(sizes, function(size) {
    start <- rep(0, l$d)
    start[unlist(lapply(l$terms, `[[`, "sd"))] <- size
    if (p$family %in% c("gaussian", "student") && !p$on_sigma) start[l$further] <- min(size, 2)
    start
  })
  peaks <- lapply(starts, optim, safe, method = "BFGS", control = list(maxit = 200))
  best <- peaks[[which.min(vapply(peaks, `[[`, 0, "value"))]]$par
  peak <- optim(best, safe, method = "BFGS", control = list(maxit = 100), hessian = TRUE)
  parts <- eigen(peak$hessian, symmetric = TRUE)
  root <- chol(parts$vectors %*% (t(parts$vectors) / pmax(parts$values, 0.1)))
  centre <- peak$par
  large <- nrow(d) > 1000
  few <- if (large) 60 else 1000
  for (power in if (large) 1 else c(0.3, 0.5, 1, 1)) {
    now <- t_sampling(target, centre, 1.2 * root, few)
    weight <- now$weight^power / sum(now$weight^power)
    if (large) break
    centre <- colSums(weight * now$theta)
    away <- now$theta - rep(centre, each = few)
    root <- tryCatch(chol(crossprod(away * sqrt(weight))), error = function(e) root)
  }
  draws <- if (large) 500 else if (nrow(d) < 120 && normal) 20000 else if (normal || one) 6000
  else 4000
  now <- t_sampling(target, centre, 1.1 * root, draws)
  data.frame(parameters = l$d, rows = nrow(d), draws = draws, truth = now$value,
             truth_se = now$se, share_used = now$ess / draws)
}

group_model <- function(p) {
  args <- list(p$formula, GROUP_FAMILIES[[p$family]], prior_sd = GROUP_PRIOR_SD)
  if (p$on_sigma) args <- c(args, list(sigma ~ 1 + (1 | g)))
  logevidence:::at_unit_one(do.call(regression, args))
}

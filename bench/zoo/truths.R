# Reference values by code that shares nothing with the package: closed forms, enumeration,
# quadrature, importance sampling, and a particle filter over labels (labels.c).  Each returns
# list(value =, se =, way =): the log evidence, its standard error in nats, and how it was found.

truth_of <- function(value, se = 0, way) list(value = value, se = se, way = way)

log_sum_exp <- function(x) max(x) + log(sum(exp(x - max(x))))

# The mean of independent unbiased estimates of the evidence, given as logs.
log_mean <- function(x, way) {
  ratio <- exp(x - max(x))
  se <- sd(ratio) / mean(ratio) / sqrt(length(x))
  truth_of(max(x) + log(mean(ratio)), se, way)
}

# Normal linear model: y ~ N(X w, sigma^2), w ~ N(mean, sd^2).
exact_linear <- function(x, y, sigma, sd, mean = 0) {
  x <- as.matrix(x)
  sd <- rep_len(sd, ncol(x))
  resid <- y - drop(x %*% rep_len(mean, ncol(x)))
  n <- length(y)
  scaled <- sweep(x, 2, sd, `*`) / sigma
  root <- chol(diag(ncol(x)) + crossprod(scaled))
  pulled <- backsolve(root, crossprod(scaled, resid / sigma), transpose = TRUE)
  value <- -n * log(sigma) - n / 2 * log(2 * pi) - sum(log(diag(root))) -
    (sum((resid / sigma)^2) - sum(pulled^2)) / 2
  truth_of(value, way = "closed form")
}

# Log of the integral of exp(f) over an interval: the trapezoid rule on ever finer grids.
quadrature <- function(f, from, to, points = 2e5, way = "quadrature") {
  at <- function(m) {
    x <- seq(from, to, length.out = m + 1)
    weight <- c(0.5, rep(1, m - 1), 0.5) * (to - from) / m
    log_sum_exp(f(x) + log(weight))
  }
  fine <- at(2 * points)
  truth_of(fine, abs(fine - at(points)), way)
}

# Importance sampling with a mixture of t distributions (5 degrees of freedom) around the peaks
# reached from `starts`, whose centres, scales and weights are fitted to weighted draws twice
# before the draws that count.  `log_density` takes a matrix with a point in each row.
t_importance <- function(log_density, starts, draws = 1e5, repeats = 10, rounds = 4) {
  one <- function(x) log_density(matrix(x, 1))
  parts <- lapply(starts, function(start) {
    climb <- optim(start, function(x) -max(one(x), -1e300), method = "BFGS",
                   control = list(maxit = 1000))
    hessian <- optimHess(climb$par, function(x) -max(one(x), -1e300))
    eig <- eigen((hessian + t(hessian)) / 2, symmetric = TRUE)
    spread <- pmin(1 / pmax(eig$values, 1e-8), 1e4)
    list(centre = climb$par, scale = eig$vectors %*% (spread * t(eig$vectors)),
         log_weight = -climb$value + sum(log(spread)) / 2)
  })
  top <- vapply(parts, `[[`, 0, "log_weight")
  parts <- parts[top > max(top) - 15]
  distinct <- !duplicated(vapply(parts, function(p) paste(signif(p$centre, 3), collapse = " "), ""))
  parts <- lapply(parts[distinct], function(p) replace(p, "log_weight", 0))
  df <- 5
  density_of <- function(part, x) {
    root <- chol(part$scale)
    z <- backsolve(root, t(x) - part$centre, transpose = TRUE)
    d <- ncol(x)
    lgamma((df + d) / 2) - lgamma(df / 2) - d / 2 * log(df * pi) - sum(log(diag(root))) -
      (df + d) / 2 * log1p(colSums(z^2) / df)
  }
  draw <- function(m) {
    share <- exp(vapply(parts, `[[`, 0, "log_weight"))
    of <- sample.int(length(parts), m, replace = TRUE, prob = share)
    d <- length(parts[[1]]$centre)
    x <- matrix(rnorm(m * d), m) / sqrt(rchisq(m, df) / df)
    for (k in unique(of)) {
      own <- of == k
      x[own, ] <- sweep(x[own, , drop = FALSE] %*% chol(parts[[k]]$scale), 2, parts[[k]]$centre, `+`)
    }
    each <- vapply(parts, density_of, numeric(m), x = x)
    each <- sweep(matrix(each, m), 2, log(share / sum(share)), `+`)
    proposal <- apply(each, 1, log_sum_exp)
    list(x = x, weight = log_density(x) - proposal, of = exp(each - proposal))
  }
  for (round in seq_len(rounds)) {
    now <- draw(max(2e4, draws / 5))
    weight <- exp(now$weight - max(now$weight))
    weight <- weight / sum(weight)
    parts <- lapply(seq_along(parts), function(k) {
      own <- weight * now$of[, k]
      if (sum(own) < 1e-4 || sum(own)^2 / sum(own^2) < 5 * ncol(now$x))
        return(replace(parts[[k]], "log_weight", log(max(sum(own), 0.01))))
      moments <- cov.wt(now$x, own / sum(own), method = "ML")
      list(centre = moments$center, scale = moments$cov + diag(1e-12, ncol(now$x)),
           log_weight = log(max(sum(own), 0.01)))
    })
  }
  estimates <- replicate(repeats, {
    weight <- draw(draws / repeats)$weight
    log_sum_exp(weight) - log(length(weight))
  })
  log_mean(estimates, sprintf("importance sampling, %g draws of %d t", draws, length(parts)))
}

# ---- labels ----

load_labels <- local({
  loaded <- FALSE
  function() {
    if (loaded) return(invisible())
    folder <- tempfile("zoo")
    dir.create(folder)
    file.copy(file.path(ZOO, "labels.c"), folder)
    system2(file.path(R.home("bin"), "R"), c("CMD", "SHLIB", file.path(folder, "labels.c")),
            stdout = FALSE, stderr = FALSE)
    dyn.load(file.path(folder, paste0("labels", .Platform$dynlib.ext)))
    loaded <<- TRUE
  }
})

# The particle filter of labels.c on several random orders of the rows.
filter_rows <- function(y, kind, parts, concentration = 1, shape = 1, rate = 1, kappa = 0.25,
                        infer = FALSE, sds = c(1, 1), share = NULL, particles = 2000, sweeps = 2,
                        orders = 16) {
  load_labels()
  y <- as.matrix(y)
  kinds <- c(mixture = 0L, clustering = 1L, attributes = 2L)
  settings <- c(parts, concentration, shape, rate, kappa, infer, 2 * log(sds), particles, sweeps)
  z <- replicate(orders, .Call("zoo_labels", t(y[sample(nrow(y)), , drop = FALSE]), kinds[[kind]],
                               as.double(settings), share))
  log_mean(z, sprintf("particle filter over labels, %d orders x %g particles", orders, particles))
}

# gaussian_mixture(): the settings by their names there.
filter_mixture <- function(y, components, location = 0, mean_scale = 2, shape = 1, rate = 1,
                           concentration = 1, ...) {
  y <- sweep(as.matrix(y), 2, location)
  if (components > 1)
    return(filter_rows(y, "mixture", components, concentration, shape, rate, 1 / mean_scale^2, ...))
  n <- nrow(y)
  k <- 1 / mean_scale^2
  b <- rate + (colSums(y^2) - colSums(y)^2 / (n + k)) / 2
  value <- sum(lgamma(shape + n / 2) - lgamma(shape) + shape * log(rate) - (shape + n / 2) * log(b) +
                 log(k / (k + n)) / 2 - n / 2 * log(2 * pi))
  truth_of(value, way = "closed form")
}

filter_clusters <- function(y, components, infer, sds = c(1, 1), ...) {
  filter_rows(y, "clustering", components, infer = infer, sds = sds,
              share = if (!infer) rep(1 / components, components), ...)
}

filter_attributes <- function(y, attributes, infer, sds = c(1, 1), ...) {
  filter_rows(y, "attributes", attributes, infer = infer, sds = sds,
              share = if (!infer) rep(0.5, attributes), ...)
}

# Two clusters by enumeration of all labels; unknown variances by quadrature over a grid.
enumerate_clusters <- function(y, infer, sds = c(1, 1)) {
  y <- as.matrix(y)
  n <- nrow(y)
  d <- ncol(y)
  step <- 0.05
  grid <- if (infer) expand.grid(seq(-8, 9, step), seq(-8, 9, step))
  else as.data.frame(as.list(2 * log(sds)))
  v <- exp(grid[[2]])
  ratio <- exp(grid[[1]] - grid[[2]])
  part <- function(own) {
    m <- nrow(own)
    -m * d / 2 * log(2 * pi * v) - d / 2 * log1p(m * ratio) -
      (sum(own^2) - ratio * sum(colSums(own)^2) / (1 + m * ratio)) / (2 * v)
  }
  prior <- if (infer) -rowSums(grid) - rowSums(exp(-grid)) + 2 * log(step) else 0
  # the first row is in the first cluster: the other half is its mirror image
  each <- vapply(seq_len(2^(n - 1)) - 1, function(code) {
    z <- c(FALSE, bitwAnd(code, 2^(seq_len(n - 1) - 1)) > 0)
    weight <- if (infer) lgamma(2) - lgamma(2 + n) + lgamma(1 + sum(z)) + lgamma(1 + sum(!z))
    else -n * log(2)
    log_sum_exp(weight + prior + part(y[z, , drop = FALSE]) + part(y[!z, , drop = FALSE]))
  }, 0)
  truth_of(log(2) + log_sum_exp(each), 1e-3, "enumeration of labels")
}

# low_rank() with the factors of the rows integrated out.  The likelihood knows V only up to a
# rotation, so V = Q R, R upper triangular, its diagonal chi distributed: rank x columns less
# rank (rank - 1) / 2 numbers, the diagonal by its log, and with `infer` three log variances.
integrate_low_rank <- function(y, rank, infer, sds = c(1, 1, 1), draws = 2e5) {
  y <- as.matrix(y)
  n <- nrow(y)
  d <- ncol(y)
  cross <- crossprod(y)
  at <- which(upper.tri(matrix(0, rank, d), diag = TRUE))
  on_diagonal <- row(matrix(0, rank, d))[at] == col(matrix(0, rank, d))[at]
  degrees <- rank - row(matrix(0, rank, d))[at] + 1
  width <- length(at)
  one <- function(x) {
    log_var <- if (infer) x[width + 1:3] else 2 * log(sds)
    sd <- exp(log_var[2] / 2)
    r <- matrix(0, rank, d)
    value <- ifelse(on_diagonal, exp(x[seq_len(width)]), x[seq_len(width)])
    prior <- ifelse(on_diagonal,
                    log(2) + dchisq(value^2, degrees, log = TRUE) + 2 * log(value),
                    dnorm(value, log = TRUE))
    r[at] <- sd * value
    root <- tryCatch(chol(exp(log_var[3]) * diag(d) + exp(log_var[1]) * crossprod(r)),
                     error = function(e) NULL)
    if (is.null(root)) return(-1e300)
    fit <- -n * d / 2 * log(2 * pi) - n * sum(log(diag(root))) -
      sum(chol2inv(root) * cross) / 2
    total <- fit + sum(prior) + if (infer) -sum(log_var) - sum(exp(-log_var)) else 0
    if (is.finite(total)) total else -1e300
  }
  density <- function(x) apply(x, 1, one)
  starts <- lapply(1:12, function(i) rnorm(width + 3 * infer, sd = 0.7))
  # the signs of rows of R are free: the off-diagonal numbers of each row may be mirrored
  t_importance(density, c(starts, mirrored(starts, at, rank, d)), draws, rounds = 6)
}

mirrored <- function(starts, at, rank, d) {
  off <- row(matrix(0, rank, d))[at] != col(matrix(0, rank, d))[at]
  lapply(starts, function(x) replace(x, which(off), -x[which(off)]))
}

# Reference values of the problems asked for; those of others stay in the file as they are.
write_truths <- function(problems, file) {
  old <- if (file.exists(file)) read.csv(file)
  for (problem in problems) {
    set.seed(1)
    started <- proc.time()[[3]]
    truth <- problem$truth()
    row <- data.frame(problem = problem$name, truth = signif(truth$value, 9),
                      se = signif(truth$se, 2), way = truth$way)
    message(sprintf("%-24s %12.4f +- %.4f  %s, %.1f s", row$problem, row$truth, row$se, row$way,
                    proc.time()[[3]] - started))
    old <- rbind(old[old$problem != row$problem, ], row)
    write.csv(old, file, row.names = FALSE)
  }
}

# Reference values by code that shares nothing with the package: closed forms, enumeration,
# quadrature, importance sampling, and a particle filter over labels (labels.c).  Each returns
# list(value =, se =, way =): the log evidence, its standard error in nats, and how it was found.

truth_of <- function(value, se = 0, way) list(value = value, se = se, way = way)

log_sum_exp <- function(x) max(x) + log(sum(exp(x - max(x))))
row_log_sum_exp <- function(x) {
  top <- x[cbind(seq_len(nrow(x)), max.col(x, "first"))]
  top + log(rowSums(exp(x - top)))
}

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
t_importance <- function(log_density, starts, draws = 1e5, repeats = 10, rounds = 4,
                         fit = max(2e4, draws / 5)) {
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
      part <- parts[[k]]
      x[own, ] <- sweep(x[own, , drop = FALSE] %*% chol(part$scale), 2, part$centre, `+`)
    }
    each <- vapply(parts, density_of, numeric(m), x = x)
    each <- sweep(matrix(each, m), 2, log(share / sum(share)), `+`)
    proposal <- row_log_sum_exp(each)
    list(x = x, weight = log_density(x) - proposal, of = exp(each - proposal))
  }
  for (round in seq_len(rounds)) {
    now <- draw(fit)
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
  storage.mode(y) <- "double"
  kinds <- c(mixture = 0L, clustering = 1L, attributes = 2L)
  settings <- c(parts, concentration, shape, rate, kappa, infer, 2 * log(sds), particles, sweeps)
  z <- replicate(orders, .Call("zoo_labels", t(y[sample(nrow(y)), , drop = FALSE]), kinds[[kind]],
                               as.double(settings), share))
  log_mean(z, sprintf("particle filter over labels, %d orders x %g particles", orders, particles))
}

# gaussian_mixture(): the settings by their names there.  One component is a closed form.
exact_component <- function(y, mean_scale = 2, shape = 1, rate = 1) {
  n <- nrow(y)
  k <- 1 / mean_scale^2
  b <- rate + (colSums(y^2) - colSums(y)^2 / (n + k)) / 2
  value <- sum(lgamma(shape + n / 2) - lgamma(shape) + shape * log(rate) -
                 (shape + n / 2) * log(b) + log(k / (k + n)) / 2 - n / 2 * log(2 * pi))
  truth_of(value, way = "closed form")
}

# Two ways.  Both are unbiased; where one misses a mode it is too low and states a small error.
# So where they differ by more than chance the larger one is taken. The filter's error is too small
# if its orders of the rows happen to agree: one below the distance of the two does not count.
mixture_truth <- function(y, components, mean_scale = 2, shape = 1, rate = 1, concentration = 1,
                          ...) {
  y <- as.matrix(y)
  if (components == 1) return(exact_component(y, mean_scale, shape, rate))
  filter <- filter_rows(y, "mixture", components, concentration, shape, rate, 1 / mean_scale^2, ...)
  if (components > 6) return(filter)
  dual <- dual_importance(y, components, 1 / mean_scale^2, shape, rate, concentration,
                          draws = if (components > 4) 1e4 else 2e4)
  apart <- dual$value - filter$value
  note <- sprintf(" (the other way: %.2f +- %.2f)",
                  c(filter$value, dual$value), c(filter$se, dual$se))
  first <- if (abs(apart) < 4 * sqrt(filter$se^2 + dual$se^2) + 0.05)
    dual$se < max(filter$se, abs(apart))
  else apart > 0
  best <- if (first) dual else filter
  replace(best, "way", paste0(best$way, note[if (first) 1 else 2]))
}

# Importance sampling from the mean of the parameters' conditional posteriors given labels, over
# labels from Gibbs runs that start at k-means partitions, and over all orders of the components
# (Lee and Robert 2016, Importance sampling schemes for evidence approximation in mixture models).
dual_importance <- function(y, components, kappa, shape, rate, concentration, draws = 2e4,
                            repeats = 10) {
  d <- ncol(y)
  n <- nrow(y)
  given <- function(z) {
    count <- tabulate(z, components)
    sums <- vapply(seq_len(d), function(j) tapply_sum(y[, j], z, components), numeric(components))
    squares <- vapply(seq_len(d), function(j) tapply_sum(y[, j]^2, z, components),
                      numeric(components))
    k <- kappa + count
    list(weight = concentration + count, k = k, m = sums / k, a = shape + count / 2,
         b = rate + pmax(squares - sums^2 / k, 0) / 2)
  }
  draw <- function(g) {
    s2 <- g$b / rgamma(components * d, rep(g$a, d))
    w <- rgamma(components, g$weight)
    list(w = pmax(w / sum(w), 1e-300), s2 = s2, mu = g$m + rnorm(components * d) * sqrt(s2 / g$k))
  }
  fit_of <- function(x, k) {
    log(x$w[k]) + rowSums(vapply(seq_len(d), function(j) {
      dnorm(y[, j], x$mu[k, j], sqrt(x$s2[k, j]), log = TRUE)
    }, numeric(n)))
  }
  gibbs <- function(z) {
    kept <- list()
    for (turn in seq_len(1000)) {
      x <- draw(given(z))
      log_p <- vapply(seq_len(components), function(k) fit_of(x, k), numeric(n))
      noise <- matrix(-log(-log(runif(n * components))), n)
      z <- max.col(log_p + noise, "first")
      if (turn > 100 && turn %% 15 == 0) kept[[length(kept) + 1]] <- given(z)
    }
    kept
  }
  groups <- pmin(rep(seq_len(components), each = 4), nrow(unique(y)))
  rows <- scale(y)
  starts <- lapply(groups, function(k) kmeans(rows, k, iter.max = 50, nstart = 1)$cluster)
  labels <- unlist(lapply(starts, gibbs), recursive = FALSE)
  most <- if (components > 4) 120 else 480
  labels <- labels[unique(round(seq(1, length(labels), length.out = most)))]
  # log density of component j of each draw under what labels say of their component k, for all
  # labels, is linear in log s2, mu^2 / s2, mu / s2 and 1 / s2
  coefficients <- lapply(seq_len(components), function(k) vapply(labels, function(g) {
    a <- g$a[k]
    per <- rbind(-a - 1.5, -g$k[k] / 2, g$k[k] * g$m[k, ], -g$k[k] * g$m[k, ]^2 / 2 - g$b[k, ])
    constant <- sum(log(g$k[k] / (2 * pi)) / 2 + a * log(g$b[k, ]) - lgamma(a))
    c(constant, as.vector(rbind(rep(-a - 1.5, d), rep(-g$k[k] / 2, d), per[3, ], per[4, ])))
  }, numeric(1 + 4 * d)))
  shares <- vapply(labels, function(g) c(lgamma(sum(g$weight)) - sum(lgamma(g$weight)),
                                         g$weight - 1), numeric(components + 1))
  orders <- permutations(components)
  one <- function(m) {
    of <- sample.int(length(labels), m, replace = TRUE)
    points <- lapply(of, function(t) draw(labels[[t]]))
    # components of the draws are shuffled too: the proposal is symmetric
    points <- lapply(points, function(x) {
      o <- sample.int(components)
      list(w = x$w[o], s2 = x$s2[o, , drop = FALSE], mu = x$mu[o, , drop = FALSE])
    })
    log_lik <- vapply(points, function(x) {
      each <- vapply(seq_len(components), function(k) fit_of(x, k), numeric(n))
      top <- do.call(pmax, lapply(seq_len(components), function(k) each[, k]))
      sum(top + log(rowSums(exp(each - top))))
    }, 0)
    w <- t(vapply(points, `[[`, numeric(components), "w"))
    features <- lapply(seq_len(components), function(j) t(vapply(points, function(x) {
      s2 <- x$s2[j, ]
      mu <- x$mu[j, ]
      c(1, as.vector(rbind(log(s2), mu^2 / s2, mu / s2, 1 / s2)))
    }, numeric(1 + 4 * d))))
    proposal <- NULL
    top <- -Inf
    pairs <- lapply(seq_len(components), function(j) lapply(seq_len(components), function(k) {
      features[[j]] %*% coefficients[[k]] + outer(log(w[, j]), shares[k + 1, ])
    }))
    for (o in seq_len(nrow(orders))) {
      each <- Reduce(`+`, lapply(seq_len(components), function(j) pairs[[j]][[orders[o, j]]]))
      each <- sweep(each, 2, shares[1, ], `+`)
      each <- row_log_sum_exp(each)
      proposal <- cbind(proposal, each)
    }
    proposal <- row_log_sum_exp(proposal) - log(nrow(orders)) - log(length(labels))
    prior <- given(integer(0))
    empty <- c(sum(log(prior$k[1] / (2 * pi)) / 2 + shape * log(rate) - lgamma(shape)) * d,
               rep(c(-shape - 1.5, -kappa / 2, 0, -rate), d))
    log_prior <- Reduce(`+`, lapply(features, function(f) drop(f %*% empty))) +
      lgamma(components * concentration) - components * lgamma(concentration) +
      (concentration - 1) * rowSums(log(w))
    log_sum_exp(log_lik + log_prior - proposal) - log(m)
  }
  log_mean(replicate(repeats, one(draws / repeats)),
           sprintf("dual importance sampling, %g draws given %d labels", draws, length(labels)))
}

tapply_sum <- function(x, z, k) vapply(seq_len(k), function(c) sum(x[z == c]), 0)

permutations <- function(k) {
  if (k == 1) return(matrix(1L, 1, 1))
  less <- permutations(k - 1)
  do.call(rbind, lapply(seq_len(k), function(first) cbind(first, less + (less >= first))))
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

# One attribute of known probability 1/2 by enumeration.
enumerate_attribute <- function(y, sds) {
  n <- nrow(y)
  each <- vapply(seq_len(2^n) - 1, function(code) {
    z <- bitwAnd(code, 2^(seq_len(n) - 1)) > 0
    ratio <- (sds[1] / sds[2])^2
    fit <- sum(colSums(y[z, , drop = FALSE])^2) * ratio / (1 + sum(z) * ratio)
    -n * log(2) - ncol(y) / 2 * log1p(sum(z) * ratio) - (sum(y^2) - fit) / 2 / sds[2]^2
  }, 0)
  constant <- -length(y) * log(sqrt(2 * pi) * sds[2])
  truth_of(constant + log_sum_exp(each), way = "enumeration of labels")
}

# low_rank() with the factors of the rows integrated out.  The likelihood knows V only up to a
# rotation, so V = Q R, R upper triangular, its diagonal chi distributed: rank x columns less
# rank (rank - 1) / 2 numbers, the diagonal by its log, and with `infer` three log variances.
integrate_low_rank <- function(y, rank, infer, sds = c(1, 1, 1), draws = 6e4) {
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

# A mixture on rows of which few are distinct: by enumeration of how many rows of each distinct
# kind every component has.
enumerate_mixture <- function(data, components, rate, mean_scale = 2) {
  kinds <- unique(data)
  copies <- apply(kinds, 1, function(kind) sum(colSums(t(data) == kind) == ncol(data)))
  splits <- lapply(copies, function(n) {
    all <- as.matrix(expand.grid(rep(list(0:n), components - 1)))
    all <- all[rowSums(all) <= n, , drop = FALSE]
    cbind(all, n - rowSums(all), deparse.level = 0)
  })
  at <- as.matrix(expand.grid(lapply(splits, function(x) seq_len(nrow(x)))))
  counts <- lapply(seq_along(splits), function(g) splits[[g]][at[, g], , drop = FALSE])
  n <- Reduce(`+`, counts)
  # the uniform prior of the weights
  value <- rowSums(lgamma(n + 1)) + lgamma(components) - lgamma(components + nrow(data))
  for (g in seq_along(copies))
    value <- value + lgamma(copies[g] + 1) - rowSums(lgamma(counts[[g]] + 1))
  for (j in seq_len(ncol(data))) {
    sums <- Reduce(`+`, Map(`*`, counts, kinds[, j]))
    squares <- Reduce(`+`, Map(`*`, counts, kinds[, j]^2))
    precision <- n + 1 / mean_scale^2
    rest <- rate + (squares - sums^2 / precision) / 2
    value <- value + rowSums(
      -n / 2 * log(2 * pi) - log(precision * mean_scale^2) / 2 + log(rate) +
        lgamma(1 + n / 2) - (1 + n / 2) * log(rest))
  }
  truth_of(log_sum_exp(value), way = "enumeration of counts")
}

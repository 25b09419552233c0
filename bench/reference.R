# The references of million.R for softmax regression and the mixture, checked with densities in
# plain R: a climb to the peak, and importance sampling from Student's t distribution around it.
# Shares no code with the package.
#
#   Rscript bench/reference.R [rows = 1e4, comma-separated] [draws = 1000]
#
# Prints the table of bench/README.md; the reference there is that of results/million.csv.

suppressPackageStartupMessages(library(logevidence))
here <- dirname(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[1]))
million <- new.env(parent = globalenv())
for (line in parse(file.path(here, "million.R")))
  if (is.call(line) && identical(line[[1]], quote(`<-`))) eval(line, million)

log_sum <- function(x) max(x) + log(sum(exp(x - max(x))))
row_log_sum <- function(x) {
  top <- do.call(pmax, as.data.frame(x))
  top + log(rowSums(exp(x - top)))
}

# Log posterior of one point, without the evidence.
softmax_density <- function(data) {
  x <- cbind(data$x, 1)
  class <- as.integer(data$y)
  own <- cbind(seq_along(class), class)
  function(w) {
    utility <- x %*% matrix(w, ncol(x))
    sum(utility[own]) - sum(row_log_sum(utility)) + sum(dnorm(w, log = TRUE))
  }
}
softmax_curvature <- function(data, w) {
  x <- cbind(data$x, 1)
  utility <- x %*% matrix(w, ncol(x))
  p <- exp(utility - row_log_sum(utility))
  k <- ncol(p)
  blocks <- lapply(seq_len(k), function(a) do.call(cbind, lapply(seq_len(k), function(b)
    crossprod(x, x * (p[, a] * ((a == b) - p[, b]))))))
  list(gradient = as.vector(crossprod(x, outer(as.integer(data$y), seq_len(k), `==`) - p)) - w,
       curvature = do.call(rbind, blocks) + diag(length(w)))
}

# K components: log weights against the last, means, log variances; the prior of
# gaussian_mixture(): uniform weights, variances InvGamma(1, 1), means N(0, 4 variance).
mixture_density <- function(y, k = 5) {
  d <- ncol(y)
  function(w) {
    log_weight <- c(w[seq_len(k - 1)], 0)
    log_weight <- log_weight - log_sum(log_weight)
    mean <- matrix(w[k - 1 + seq_len(k * d)], k)
    log_variance <- matrix(w[k - 1 + k * d + seq_len(k * d)], k)
    each <- vapply(seq_len(k), function(j) {
      value <- rep(log_weight[j], nrow(y))
      for (c in seq_len(d))
        value <- value + dnorm(y[, c], mean[j, c], exp(log_variance[j, c] / 2), log = TRUE)
      value
    }, numeric(nrow(y)))
    # with the Jacobians of the weights and of the variances
    sum(row_log_sum(each)) + lgamma(k) + sum(log_weight) +
      sum(-log_variance - exp(-log_variance) +
            dnorm(mean, 0, 2 * exp(log_variance / 2), log = TRUE))
  }
}

softmax_peak <- function(data) {
  w <- numeric(4 * (ncol(data$x) + 1))
  for (k in 1:50) {
    at <- softmax_curvature(data, w)
    step <- solve(at$curvature, at$gradient)
    w <- w + step * min(1, 5 / max(abs(step)))
    if (max(abs(step)) < 1e-9) break
  }
  list(centre = w, curvature = at$curvature, copies = 1)
}
mixture_peak <- function(y, density, k = 5) {
  groups <- stats::kmeans(y, k, nstart = 30)
  part <- split(as.data.frame(y), groups$cluster)
  share <- groups$size / nrow(y)
  start <- c(log(share[-k] / share[k]), as.vector(groups$centers),
             as.vector(log(t(vapply(part, function(own) vapply(own, var, 0), numeric(ncol(y)))))))
  climb <- list(par = start)
  for (turn in 1:3) climb <- stats::optim(climb$par, function(w) -density(w), method = "BFGS",
                                          control = list(maxit = 500, reltol = 1e-13))
  list(centre = climb$par, curvature = stats::optimHess(climb$par, function(w) -density(w)),
       copies = factorial(k))
}

sampled <- function(density, peak, draws, df = 20) {
  d <- length(peak$centre)
  root <- chol(1.05 * solve((peak$curvature + t(peak$curvature)) / 2))
  z <- matrix(rnorm(draws * d), draws)
  u <- rchisq(draws, df) / df
  theta <- rep(peak$centre, each = draws) + (z / sqrt(u)) %*% root
  proposal <- lgamma((df + d) / 2) - lgamma(df / 2) - d / 2 * log(df * pi) -
    sum(log(diag(root))) - (df + d) / 2 * log1p(rowSums(z^2) / u / df)
  log_weight <- apply(theta, 1, density) - proposal
  weight <- exp(log_weight - max(log_weight))
  c(value = log_sum(log_weight) - log(draws) + log(peak$copies),
    se = sd(weight) / mean(weight) / sqrt(draws))
}

in_plain_r <- function(name, n, draws) {
  set.seed(1)
  problem <- million$first_rows(million$simulated(name, 1e6, 1), n)
  density <- if (name == "softmax") softmax_density(problem$data) else mixture_density(problem$data)
  peak <- if (name == "softmax") softmax_peak(problem$data)
  else mixture_peak(problem$data, density)
  sampled(density, peak, draws)
}

main <- function(rows = "1e4", draws = "1000") {
  table <- utils::read.csv(file.path(here, "results", "million.csv"))
  for (name in c("softmax", "mixture")) for (n in as.numeric(strsplit(rows, ",")[[1]])) {
    own <- table[table$model == name & table$n == n, ][1, ]
    other <- in_plain_r(name, n, as.integer(draws))
    cat(sprintf("| %s | %s | %.3f (%.3f) | %.3f (%.3f) |\n", name,
                format(n, big.mark = ",", scientific = FALSE), own$reference, own$reference_se,
                other[["value"]], other[["se"]]))
  }
}

do.call(main, as.list(commandArgs(trailingOnly = TRUE)))

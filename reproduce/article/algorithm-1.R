# Algorithm 1 of the article, written in plain R, against sgais(preset = "paper"): two chunks of 50
# normal observations with unknown mean, whose evidence has a closed form.

source("reproduce/pictures.R", local = TRUE)

# Step by step as published, with the definitions that the article leaves open: momenta are drawn
# anew at each distribution, N in eta counts the rows of the chunk, particles share mini-batches.
algorithm_1 <- function(y, M = 10, ess = 5, steps = 20, rate = 0.1, alpha = 0.2, chunk = 50) {
  log_likelihood <- function(theta, rows) -length(rows) * log(2 * pi) / 2 -
    (sum(rows^2) - 2 * theta * sum(rows) + length(rows) * theta^2) / 2
  theta <- rnorm(M)
  log_w <- numeric(M)
  for (first in seq(1, length(y), chunk)) {
    new <- y[first:(first + chunk - 1)]
    seen <- y[seq_len(first - 1)]
    eta <- rate / (length(seen) + length(new))
    lambda <- 0
    while (lambda < 1) {
      l <- log_likelihood(theta, new)
      ess_of <- function(delta) {
        w <- exp(delta * (l - max(l)))
        sum(w)^2 / sum(w^2)
      }
      delta <- 1 - lambda
      if (ess_of(delta) < ess)
        delta <- uniroot(function(x) ess_of(x) - ess, c(0, delta), tol = 1e-12)$root
      lambda <- lambda + delta
      log_w <- log_w + delta * l
      v <- rnorm(M, sd = sqrt(eta))
      for (step in seq_len(steps)) {
        gradient <- lambda * (sum(new) - length(new) * theta) - theta
        if (length(seen))
          gradient <- gradient + length(seen) * (mean(sample(seen, chunk, TRUE)) - theta)
        v <- (1 - alpha) * v + eta * gradient + rnorm(M, sd = sqrt(2 * alpha * eta))
        theta <- theta + v
      }
    }
  }
  max(log_w) + log(mean(exp(log_w - max(log_w))))
}

item(
  "article", "algorithm-1", "the algorithm in plain R against the package",
  reported = "the algorithm, without a test of its own",
  settings = "mean of a normal distribution, 100 rows in 2 chunks, 2,000 seeds for each",
  run = function(full) {
    set.seed(2019)
    y <- rnorm(100, 2)
    seeds <- seq_len(if (full) 2000 else 100)
    plain <- vapply(seeds, function(seed) {
      set.seed(seed)
      algorithm_1(y)
    }, 0)
    method <- sgais(preset = "paper", chunk = 50, batch = 50)
    ours <- vapply(seeds, function(seed)
      suppressWarnings(evidence(gaussian_mean(), y, method, seed = seed,
                                progress = FALSE))$log_evidence, 0)
    exact <- evidence(gaussian_mean(), y, exact())$log_evidence
    data.frame(seed = seeds, plain = round(plain, 4), package = round(ours, 4),
               exact = round(exact, 4))
  },
  draw = function(table) {
    x <- list(plain = sort(table$plain), package = sort(table$package))
    share <- seq_along(x$plain) / nrow(table)
    plot(range(unlist(x)), 0:1, type = "n", xlab = "estimate of the log evidence",
         ylab = "share of runs below", main = "")
    abline(v = table$exact[1], col = "grey60", lty = 2)
    lines(x$plain, share, col = PALETTE[1], lwd = 5)
    lines(x$package, share, col = PALETTE[5], lwd = 2)
    legend("topleft", c("plain R", "sgais(preset = \"paper\")", "closed form"), bty = "n",
           col = c(PALETTE[c(1, 5)], "grey60"), lwd = c(5, 2, 1), lty = c(1, 1, 2))
  },
  alt = "Two cumulative distributions of estimates that lie on one another, of the algorithm in
         plain R and of the package; a line marks the closed form.",
  judge = function(table) {
    x <- table$plain
    y <- table$package
    n <- length(x)
    z <- c(mean = (mean(x) - mean(y)) / sqrt((var(x) + var(y)) / n),
           sd = log(sd(x) / sd(y)) /
             sqrt(sum(vapply(list(x, y), function(v)
               (mean((v - mean(v))^4) / var(v)^2 - 1) / (4 * n), 0))))
    p <- suppressWarnings(ks.test(x, y)$p.value)
    list(verdict = if (all(abs(z) < 4) && p > 1e-3) "reproduced" else "not reproduced",
         obtained = sprintf("mean %.2f and %.2f, sd %.2f and %.2f (z %.1f and %.1f), KS p = %.2f",
                            mean(x), mean(y), sd(x), sd(y), z[1], z[2], p),
         why = sprintf("same law; both are below the closed form %.2f on average", table$exact[1]))
  }
)

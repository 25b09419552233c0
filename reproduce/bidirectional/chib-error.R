# The mean error of Chib's estimator in the form of Murray and Salakhutdinov is minus the divergence
# of its chain from a stationary one; if the chosen state is a posterior draw, minus the mutual
# information of both. The article of the site has the proposition and its proof. Here it is
# measured where that information is known: on a normal posterior in closed form, and on a low-rank
# model of two columns by quadrature.

source("reproduce/low-rank.R", local = TRUE)

# A normal posterior of (u, v), both with mean 0 and standard deviation 1 and correlation rho, whose
# evidence is 1. A sweep draws u given v, then v given u.

# Errors of one estimate for each u of a chosen state, from chains of m draws. `plain`: chains as
# first proposed, which do not begin at the chosen state but are stationary.
errors_on_normal <- function(u, rho, m, plain = FALSE) {
  sd <- sqrt(1 - rho^2)
  n <- length(u)
  first <- if (plain) rnorm(n) else rho * u + sd * rnorm(n) # v at the random place
  later <- m - sample.int(m, n, replace = TRUE)             # draws after it
  v <- first
  total <- dnorm(u, rho * v, sd, log = TRUE)
  for (t in seq_len(m - 1)) {
    v <- ifelse(t == later + 1, first, v)                   # now those before it
    v <- rho^2 * v + sqrt(1 - rho^4) * rnorm(n)
    each <- dnorm(u, rho * v, sd, log = TRUE)
    total <- pmax(total, each) + log1p(exp(-abs(total - each)))
  }
  dnorm(u, log = TRUE) - total + log(m)
}

# Of one draw, from any state (nats; c: its u), and of the form as first proposed.
expected_on_normal <- function(rho, c) log(1 - rho^2) / 2 + rho^2 / 2 * (1 - c^2)
expected_plain <- function(rho) log(1 - rho^2) / 2 + rho^2 / (1 - rho^2)

measure_normal <- function(full) {
  set.seed(1)
  row <- function(state, rho, m, u, expected, plain = FALSE) {
    error <- errors_on_normal(u, rho, m, plain)
    data.frame(state = state, rho = rho, draws = m, plain = plain, mean = mean(error),
               se = sd(error) / sqrt(length(error)), one_draw = expected)
  }
  number <- function(m) if (full) c(4e5, 1e5, 2e4, 4e3)[ceiling(log10(m)) + 1] else 2e4 / m
  table <- do.call(rbind, lapply(c(0.5, 0.9, 0.99, 0.999), function(rho) rbind(
    do.call(rbind, lapply(c(1, 10, 100, if (full) 1000), function(m)
      row("posterior draw", rho, m, rnorm(number(m)), log(1 - rho^2) / 2))),
    row("posterior draw", rho, 1, rnorm(number(1)), expected_plain(rho), plain = TRUE))))
  points <- do.call(rbind, lapply(c(0, 1, 2, 4, 8, 16), function(c) do.call(rbind, lapply(
    c(1, 100), function(m)
      row(c, 0.9, m, rep(c, number(m)), expected_on_normal(0.9, c))))))
  rbind(table, points)
}

# Is each mean as it should be? Of one draw it is known; of m draws it is not below that, not above
# that plus log m, and not above zero.
as_expected <- function(mean, se, one_draw, draws, plain = FALSE) {
  room <- 4 * se + 1e-9
  ifelse(draws == 1, abs(mean - one_draw) < room,
         mean > one_draw - room & mean < pmin(0, one_draw + log(draws)) + room)
}

item(
  "bidirectional", "claim-chib-normal", "how far off Chib's estimator is on a normal posterior",
  reported = "too low, because the first draws make the transition to the chosen state seem too
              probable, which later ones cannot make good (no formula)",
  settings = "two correlated normal parameters, the evidence is 1; plain R; chains of 1 to 1,000
              draws, 400,000 to 4,000 of each; chosen states: posterior draws, and points 0 to 16
              standard deviations from the mode (correlation 0.9)",
  run = measure_normal,
  draw = function(table) {
    par(mfrow = c(1, 2), mar = c(4, 4.4, 2, 1))
    own <- table[table$state == "posterior draw" & !table$plain, ]
    shades <- c("#56B4E9", "#0072B2", "#E69F00", "#D55E00")
    plot(own$draws, own$mean, type = "n", log = "x", xlab = "draws of the chain", xaxt = "n",
         ylab = "mean error, nats", ylim = c(1.75 * min(own$one_draw), 0)) # room for the legend
    axis(1, unique(own$draws))
    title("the chosen state is a posterior draw", adj = 0, font.main = 2, cex.main = 1)
    rhos <- unique(own$rho)
    for (i in seq_along(rhos)) {
      one <- own[own$rho == rhos[i], ]
      m <- 10^seq(0, log10(max(one$draws)), length.out = 100)
      abline(h = one$one_draw[1], lty = 2, col = shades[i])
      lines(m, pmin(0, one$one_draw[1] + log(m)), lty = 3, col = shades[i])
      lines(one$draws, one$mean, type = "o", pch = 16, lwd = 2, col = shades[i])
    }
    legend("bottomright", c(paste("correlation", rhos), "minus the mutual information",
                            "that plus log of the draws"), bty = "n", cex = 0.8,
           col = c(shades, "black", "black"), lty = c(1, 1, 1, 1, 2, 3),
           pch = c(rep(16, 4), NA, NA))
    point <- table[table$state != "posterior draw", ]
    point$state <- as.numeric(point$state)
    plot(point$state, point$mean, type = "n", xlab = "standard deviations from the mode", ylab = "",
         axes = FALSE)
    axis(1, unique(point$state))
    axis(2)
    box()
    title("the chosen state is a point", adj = 0, font.main = 2, cex.main = 1)
    c <- seq(0, 16, 0.1)
    lines(c, expected_on_normal(0.9, c), col = "grey50")
    for (i in 1:2) {
      one <- point[point$draws == c(1, 100)[i], ]
      points(one$state, one$mean, pch = c(16, 1)[i], cex = c(1, 1.4)[i], col = shades[c(2, 4)[i]])
    }
    legend("bottomleft", c("1 draw", "100 draws", "formula, 1 draw"), bty = "n", pch = c(16, 1, NA),
           lty = c(NA, NA, 1), col = c(shades[c(2, 4)], "grey50"), cex = 0.8)
  },
  alt = "Left: mean errors against the draws of the chain for four correlations. Each line begins at
         minus the mutual information, up to three nats below zero, and rises to zero, the sooner
         the smaller the correlation. Right: mean errors against the distance of the chosen state
         from the mode, with correlation 0.9: about zero near the mode, and down to a hundred nats
         along a parabola.",
  judge = function(table) {
    fine <- as_expected(table$mean, table$se, table$one_draw, table$draws)
    exact <- table$draws == 1
    z <- (table$mean - table$one_draw)[exact] / table$se[exact]
    own <- table[table$state == "posterior draw", ]
    first <- own[own$draws == 1 & !own$plain, ]
    long <- own[own$draws == max(own$draws), ]
    plain <- own[own$plain, ]
    numbers <- function(x) paste(sprintf("%+.2f", x), collapse = ", ")
    far <- table[table$state == "16" & exact, ]
    list(verdict = if (all(fine)) "reproduced" else "not reproduced",
         obtained = sprintf("%d of %d means are as the proposition says; of one draw from a
                             posterior draw %s nats for correlations %s (minus the mutual
                             information: %s), of %d draws %s; with a state 16 standard deviations
                             from the mode %.1f (formula: %.1f); as first proposed, one draw, %s
                             (formula: %s)",
                            sum(fine), nrow(table), numbers(first$mean),
                            paste(first$rho, collapse = ", "), numbers(first$one_draw),
                            max(own$draws), numbers(long$mean), far$mean, far$one_draw,
                            numbers(plain$mean), numbers(plain$one_draw)),
         why = sprintf("means of one draw are within %.1f standard errors of the formulas; those of
                        more draws are between that of one draw and log m above it",
                       max(abs(z))))
  },
  size = c(9.5, 4)
)

# A low-rank model of rank 1 and two columns: given V, which is v = r (cos t, sin t), rows are
# independent, N(0, noise^2 I + v v'), so all that concerns v is a sum over a grid of r and t.
quadrature <- function(y, noise) {
  step <- c(0.01, 2 * pi / 3000)
  r <- seq(step[1] / 2, 6, by = step[1])
  t <- seq(0, 2 * pi - step[2], by = step[2])
  along <- colSums((y %*% rbind(cos(t), sin(t)))^2)
  log_density <- outer(r, along, function(r, along)
    sum(dnorm(y, 0, noise, log = TRUE)) - nrow(y) / 2 * log1p(r^2 / noise^2) +
      along * r^2 / (2 * noise^2 * (noise^2 + r^2)) - log(2 * pi) - r^2 / 2)
  top <- max(log_density)
  mass <- exp(log_density - top) * r # area of a cell: r dr dt
  total <- sum(mass)
  log_evidence <- top + log(total * prod(step))
  list(r = r, t = t, step = step, mass = mass / total, log_evidence = log_evidence,
       entropy = log_evidence - sum(mass * log_density) / total)
}

# Posterior draws: v from the grid, moved within its cell, and u given v.
draw_posterior <- function(grid, y, noise, n) {
  cell <- sample.int(length(grid$mass), n, replace = TRUE, prob = grid$mass) - 1
  r <- grid$r[cell %% length(grid$r) + 1] + (runif(n) - 0.5) * grid$step[1]
  t <- grid$t[cell %/% length(grid$r) + 1] + (runif(n) - 0.5) * grid$step[2]
  v <- r * cbind(cos(t), sin(t))
  u <- tcrossprod(v, y) / (r^2 + noise^2) +
    noise / sqrt(r^2 + noise^2) * matrix(rnorm(n * nrow(y)), n)
  list(u = u, v = v)
}
log_u_given_v <- function(u, v, y, noise) {
  square <- rowSums(v^2)
  variance <- noise^2 / (square + noise^2)
  z <- (u - tcrossprod(v, y) / (square + noise^2))^2 / variance
  -rowSums(z) / 2 - nrow(y) / 2 * log(2 * pi * variance)
}

# I(u; v | y): the entropy of v less the mean entropy of v given u, which is normal.
information <- function(grid, drawn, noise)
  grid$entropy - log(2 * pi * exp(1)) + mean(log1p(rowSums(drawn$u^2) / noise^2))

# The same by nested simulation, with p(u | y) as a mean over other draws of v.
information_nested <- function(grid, y, noise, outer_draws, inner_draws) {
  drawn <- draw_posterior(grid, y, noise, outer_draws)
  others <- draw_posterior(grid, y, noise, inner_draws)$v
  gain <- vapply(seq_len(outer_draws), function(i) {
    u <- drawn$u[rep(i, inner_draws), , drop = FALSE]
    each <- log_u_given_v(u, others, y, noise)
    log_u_given_v(drawn$u[i, , drop = FALSE], drawn$v[i, , drop = FALSE], y, noise) -
      (max(each) + log(mean(exp(each - max(each)))))
  }, 0)
  c(mean = mean(gain), se = sd(gain) / sqrt(outer_draws))
}

measure_low_rank <- function(full) do.call(rbind, lapply(c(1, 0.3, 0.1), function(noise) {
  set.seed(2)
  y <- tcrossprod(rnorm(10), rnorm(2)) + noise * matrix(rnorm(20), 10)
  grid <- quadrature(y, noise)
  known <- information(grid, draw_posterior(grid, y, noise, if (full) 1e6 else 1e5), noise)
  nested <- information_nested(grid, y, noise, if (full) 2000 else 300, if (full) 20000 else 3000)
  row <- function(what, draws, error) data.frame(
    noise = noise, what = what, draws = draws, mean = mean(error),
    se = sd(error) / sqrt(length(error)), ratio = mean(exp(error)),
    ratio_se = sd(exp(error)) / sqrt(length(error)), information = known)
  # one draw, in plain R: log p(u | y) - log p(u | w, y), with w from p(w | u, y)
  drawn <- draw_posterior(grid, y, noise, if (full) 1e5 else 1e4)
  spread <- 1 / (1 + rowSums(drawn$u^2) / noise^2)
  w <- spread * drawn$u %*% y / noise^2 + sqrt(spread) * matrix(rnorm(2 * length(spread)), ncol = 2)
  marginal <- log_marginal_u(drawn$u, y, noise) - grid$log_evidence
  one <- row("plain R", 1, marginal - log_u_given_v(drawn$u, w, y, noise))
  # the package, from other posterior draws
  model <- low_rank(rank = 1, noise_sd = noise)
  states <- draw_posterior(grid, y, noise, if (full) 150 else 20)
  fits <- function(relabel, draws) vapply(seq_len(nrow(states$v)), function(i) {
    state <- state_of(as.matrix(states$u[i, ]), states$v[i, , drop = FALSE])
    suppressMessages(suppressWarnings(evidence(
      model, as.data.frame(y), chib(draws = draws, relabel = relabel, state = state), seed = i,
      progress = FALSE)))$log_evidence - grid$log_evidence
  }, 0)
  draws <- c(4, 30, if (full) c(300, 3000))
  rbind(data.frame(noise = noise, what = "nested simulation", draws = NA, mean = nested[[1]],
                   se = nested[[2]], ratio = NA, ratio_se = NA, information = known),
        one,
        do.call(rbind, lapply(draws, function(m) row("package", m, fits(FALSE, m)))),
        do.call(rbind, lapply(range(draws), function(m)
          row("package, relabelled", m, fits(TRUE, m)))))
}))

# p(u, y): v is integrated out, so columns are independent, N(0, noise^2 I + u u').
log_marginal_u <- function(u, y, noise) {
  square <- rowSums(u^2)
  rowSums(dnorm(u, log = TRUE)) + sum(dnorm(y, 0, noise, log = TRUE)) -
    ncol(y) / 2 * log1p(square / noise^2) +
    rowSums((u %*% y)^2) / (2 * noise^2 * (noise^2 + square))
}

item(
  "bidirectional", "claim-chib-information",
  "how far off Chib's estimator is on a low-rank model whose information is known",
  reported = "too low on a low-rank model, because U and V are tightly coupled (no formula)",
  settings = "rank 1, 10 rows, 2 columns, noise of standard deviation 1, 0.3 and 0.1; evidence and
              mutual information of U and V by a grid of 600 x 3,000 points; one draw in plain R
              from 100,000 posterior draws; chib(relabel = FALSE) of 4 to 3,000 draws from 150
              posterior draws as chosen states; nested simulation with 2,000 outer and 20,000 inner
              draws",
  run = measure_low_rank,
  draw = function(table) {
    own <- table[table$what %in% c("plain R", "package"), ]
    shades <- c("#0072B2", "#E69F00", "#D55E00")
    noises <- unique(own$noise)
    plot(own$draws, own$mean, type = "n", log = "x", xlab = "draws of the chain", xaxt = "n",
         ylab = "mean error, nats", ylim = c(-1.8 * max(own$information), 0.1))
    axis(1, unique(own$draws))
    for (i in seq_along(noises)) {
      one <- own[own$noise == noises[i], ]
      m <- 10^seq(0, log10(max(one$draws)), length.out = 100)
      known <- -one$information[1]
      abline(h = known, lty = 2, col = shades[i])
      lines(m, pmin(0, known + log(m)), lty = 3, col = shades[i])
      segments(one$draws, one$mean - 2 * one$se, y1 = one$mean + 2 * one$se, col = shades[i])
      lines(one$draws, one$mean, type = "o", pch = 16, lwd = 2, col = shades[i])
      other <- table[table$noise == noises[i] & table$what == "package, relabelled", ]
      points(other$draws, other$mean, pch = 2, col = shades[i])
    }
    legend("bottomright", c(paste("noise", noises), "relabelled", "minus the mutual information",
                            "that plus log of the draws"), bty = "n", cex = 0.8,
           col = c(shades, rep("black", 3)), lty = c(1, 1, 1, NA, 2, 3),
           pch = c(16, 16, 16, 2, NA, NA))
  },
  alt = "Mean errors against the draws of the chain for three standard deviations of the noise. Each
         line begins at minus the mutual information and rises towards zero, between this level and
         a curve of this level plus the logarithm of the number of draws.",
  judge = function(table) {
    nested <- table[table$what == "nested simulation", ]
    rest <- table[table$what != "nested simulation", ]
    orders <- ifelse(rest$what == "package, relabelled", 2, 1)
    fine <- ifelse(rest$draws == 1, abs(rest$mean + rest$information) < 4 * rest$se,
                   rest$mean > -rest$information - 4 * rest$se &
                     rest$mean < pmin(0, log(rest$draws * orders) - rest$information) +
                       4 * rest$se)
    # of long chains that change signs the evidence itself shows no bias, too
    long <- rest[rest$what == "package, relabelled" & rest$draws > 1000, ]
    unbiased <- abs(long$ratio - 1) < 4 * long$ratio_se
    alike <- abs(nested$mean - nested$information) < 4 * nested$se + 0.05
    numbers <- function(what, draws) {
      own <- rest[rest$what == what & rest$draws == draws, ]
      paste(sprintf("%+.2f +- %.2f", own$mean, own$se), collapse = ", ")
    }
    most <- max(rest$draws)
    list(verdict = if (all(fine) && all(alike) && all(unbiased)) "reproduced" else "not reproduced",
         obtained = sprintf("mutual information %s nats with noise of standard deviation %s (nested
                             simulation: %s); mean error of one draw %s; of the package with 4 draws
                             %s, with %d %s, with 4 and relabelling %s, with %d %s",
                            paste(sprintf("%.2f", nested$information), collapse = ", "),
                            paste(nested$noise, collapse = ", "),
                            paste(sprintf("%.2f", nested$mean), collapse = ", "),
                            numbers("plain R", 1), numbers("package", 4), most,
                            numbers("package", most), numbers("package, relabelled", 4), most,
                            numbers("package, relabelled", most)),
         why = sprintf("%d of %d means are minus the information (one draw) or between that and log
                        m above it (m draws; with relabelling log 2 m). Without relabelling long
                        chains lack log 2, as they do not change signs; with it the mean of Z*/Z
                        is %s", sum(fine), length(fine),
                       paste(sprintf("%.2f +- %.2f", long$ratio, long$ratio_se), collapse = ", ")))
  },
  size = c(6.5, 4.2)
)

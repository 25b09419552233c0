# Figures 2.1 and 2.2 of the thesis: how points move by four kernels. The densities of the thesis
# are not published: here a correlated normal density, and the posterior of a regression.

# A normal density of correlation 0.9, without data.
PRECISION <- solve(matrix(c(1, 0.9, 0.9, 1), 2))
NORMAL <- custom_model(
  c("x", "y"),
  log_likelihood = function(theta) -sum(theta * (PRECISION %*% theta)) / 2,
  log_prior = function(theta) sum(dnorm(theta, 0, 100, log = TRUE)),
  draw_prior = function(n) matrix(rnorm(2 * n, 0, 100), n),
  gradient = function(theta) -drop(PRECISION %*% theta),
  prior_gradient = function(theta) -theta / 1e4
)

# A line through 1,000 rows; its covariate makes both coefficients correlated.
LINE <- linear_regression(y ~ a, sigma = 1, prior_sd = 10)
line_rows <- function() {
  set.seed(1)
  a <- rnorm(1000, 1, 1)
  data.frame(a = a, y = 0.5 - 0.4 * a + rnorm(1000))
}

# Moves until a place is forgotten: 1 + twice the sum of autocorrelations, of the slower parameter.
forgotten_after <- function(path) {
  time <- function(x) {
    lags <- acf(x, lag.max = length(x) / 10, plot = FALSE)$acf[-1]
    1 + 2 * sum(lags[cumprod(lags > 0.02) == 1])
  }
  max(apply(as.matrix(path), 2, time))
}

# A short path to draw, and what a long one says. `work` is the number of gradients or densities
# that a move needs.
trace_of <- function(kernel, name, short, long, work, ...) {
  values <- function(path) as.matrix(as.data.frame(path)[attr(path, "parameters")])
  drawn <- values(kernel_path(kernel = kernel, steps = short, seed = 2, ...))
  longer <- kernel_path(kernel = kernel, steps = long, seed = 3, density = FALSE, ...)
  rest <- values(longer)[-seq_len(long / 10), ]
  data.frame(kernel = name, x = signif(drawn[, 1], 5), y = signif(drawn[, 2], 5), work = work,
             forgotten = signif(forgotten_after(rest), 4), sd = signif(sd(rest[, 1]), 4),
             jump = signif(mean(sqrt(rowSums(diff(rest)^2))), 4),
             acceptance = signif(attr(longer, "acceptance"), 4))
}

# Contours that hold 39, 86 and 99% of a normal density.
draw_paths <- function(table, centre, covariance, labels) {
  par(mfrow = c(1, 2), mar = c(4, 4.2, 2, 1))
  angle <- seq(0, 2 * pi, length.out = 201)
  circle <- rbind(cos(angle), sin(angle))
  kernels <- unique(table$kernel)
  ring <- function(size) t(centre + size * t(chol(covariance)) %*% circle)
  for (i in seq_along(kernels)) {
    own <- table[table$kernel == kernels[i], ]
    plot(c(table$x, ring(3)[, 1]), c(table$y, ring(3)[, 2]), type = "n",
         xlab = labels[1], ylab = labels[2])
    title(paste0(letters[i], "  ", kernels[i]), adj = 0, font.main = 2, cex.main = 1)
    for (size in 1:3) lines(ring(size), col = "grey60")
    lines(own$x, own$y, col = "#0072B2")
    points(own$x, own$y, pch = 16, cex = 0.4, col = "#0072B2")
    points(own$x[1], own$y[1], pch = 1, cex = 1.5, col = "#D55E00", lwd = 2)
  }
}
facts_of <- function(table) {
  first <- !duplicated(table$kernel)
  rows <- table[first, ]
  rownames(rows) <- rows$kernel
  rows
}

item(
  "thesis", "figure-2.1", "paths of random walk Metropolis and of Hamiltonian Monte Carlo",
  reported = "Hamiltonian Monte Carlo travels farther in a move, is rejected less, and has far
              shorter autocorrelations",
  settings = "normal density of correlation 0.9; random walk of step 0.5, 200 moves; 20 moves of 10
              leapfrog steps of 0.15, which need as many evaluations; autocorrelations of 20,000 and
              2,000 moves",
  run = function(full) {
    times <- if (full) 20000 else 2000
    rbind(trace_of(rwm(0.5), "random walk Metropolis", 200, times, 1, model = NORMAL,
                   start = c(-2.5, -2.5)),
          trace_of(kernel_hmc(10, 0.15), "Hamiltonian Monte Carlo", 20, times / 10, 10,
                   model = NORMAL,
                   start = c(-2.5, -2.5)))
  },
  draw = function(table) draw_paths(table, c(0, 0), solve(PRECISION), c("x", "y")),
  alt = "Two paths on a narrow normal density that begin at its lower end, marked by a circle. The
         random walk makes short steps and stays close to where it was. The Hamiltonian path jumps
         from end to end.",
  judge = function(table) {
    facts <- facts_of(table)
    walk <- facts["random walk Metropolis", ]
    glide <- facts["Hamiltonian Monte Carlo", ]
    ok <- glide$jump > 2 * walk$jump && glide$forgotten * 3 < walk$forgotten &&
      glide$acceptance > walk$acceptance
    list(verdict = if (ok) "reproduced" else "not reproduced",
         obtained = sprintf("mean jump %.2f against %.2f; a place is forgotten after %.1f against
                             %.1f moves (%.0f against %.0f evaluations); %.0f%% against %.0f%%
                             accepted", glide$jump, walk$jump, glide$forgotten, walk$forgotten,
                            glide$forgotten * glide$work, walk$forgotten * walk$work,
                            100 * glide$acceptance, 100 * walk$acceptance),
         why = "by kernel_path(); the density and the steps are not published")
  },
  size = c(7.5, 3.8)
)

item(
  "thesis", "figure-2.2", "paths of SGLD and of SGHMC",
  reported = "SGLD descends quickly and then moves like a random walk; SGHMC has smoother paths and
              covers larger areas",
  settings = "posterior of a line, 1,000 rows, mini-batches of 100; rate 0.03, friction 0.15; 300
              moves; autocorrelations of 50,000 moves",
  run = function(full) {
    rows <- line_rows()
    times <- if (full) 50000 else 5000
    table <- rbind(
      trace_of(kernel_sgld(0.03), "SGLD", 300, times, 1, model = LINE, data = rows,
               start = c(0.2, -0.1),
               batch = 100),
      trace_of(kernel_sghmc(0.03, 0.15), "SGHMC", 300, times, 1, model = LINE, data = rows,
               start = c(0.2, -0.1), batch = 100))
    X <- cbind(1, rows$a)
    covariance <- signif(solve(crossprod(X) + diag(2) / 100), 6)
    centre <- signif(drop(covariance %*% crossprod(X, rows$y)), 6)
    cbind(table, centre_x = centre[1], centre_y = centre[2], var_x = covariance[1, 1],
          var_y = covariance[2, 2], cov = covariance[1, 2])
  },
  draw = function(table) {
    at <- table[1, ]
    draw_paths(table, c(at$centre_x, at$centre_y),
               matrix(c(at$var_x, at$cov, at$cov, at$var_y), 2), c("intercept", "slope"))
  },
  alt = "Two paths that begin outside of the posterior, marked by a circle. That of SGLD is ragged,
         arrives slowly and then moves back and forth within a part of the posterior. That of SGHMC
         is smooth, arrives soon and swings through all of it.",
  judge = function(table) {
    facts <- facts_of(table)
    # the distance between first and last place of ten moves, as a share of the way
    straight <- vapply(split(table, table$kernel), function(own) {
      place <- cbind(own$x, own$y)
      ends <- seq(11, nrow(place), by = 10)
      way <- sqrt(rowSums(diff(place)^2))
      mean(sqrt(rowSums((place[ends, ] - place[ends - 10, ])^2)) /
             vapply(ends, function(e) sum(way[(e - 10):(e - 1)]), 0))
    }, 0)
    ratio <- facts["SGLD", "forgotten"] / facts["SGHMC", "forgotten"]
    wide <- facts[c("SGLD", "SGHMC"), "sd"] / sqrt(table$var_x[1])
    list(verdict = if (ratio > 1.5 && straight[["SGHMC"]] > 1.5 * straight[["SGLD"]]) "reproduced"
         else "not reproduced",
         obtained = sprintf("a place is forgotten after %.0f moves of SGHMC and %.0f of SGLD; ten
                             moves lead %.0f%% and %.0f%% of their way; standard deviations %.2f and
                             %.2f times that of the posterior", facts["SGHMC", "forgotten"],
                            facts["SGLD", "forgotten"], 100 * straight[["SGHMC"]],
                            100 * straight[["SGLD"]], wide[2], wide[1]),
         why = "by kernel_path(); the density and the rates are not published. The area that SGHMC
                covers is also larger because the noise of mini-batches heats it more")
  },
  size = c(7.5, 3.8)
)

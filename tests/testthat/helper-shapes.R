# Problems of users' own models that are not close to normal: rings, hard edges, steps, and a narrow
# peak beside a wide one, in one to five dimensions. Each is drawn from a seed, and has a reference
# by a closed form or by an integral over one number, which does not use the package.
# tests/testthat/test-shapes.R runs some of them, bench/shapes.R many.

SHAPES <- list()

# A list: name, family, model, data (or NULL) and truth, the log evidence. The families take turns.
shape_problem <- function(index, draw = 1) {
  family <- names(SHAPES)[(index - 1) %% length(SHAPES) + 1]
  problem <- with_shape_seed(draw * 1e5 + index, SHAPES[[family]]())
  c(list(name = sprintf("%s-%03d", family, index), family = family), problem)
}

with_shape_seed <- function(seed, code) {
  if (exists(".Random.seed", globalenv(), inherits = FALSE)) {
    before <- get(".Random.seed", globalenv())
    on.exit(assign(".Random.seed", before, globalenv()))
  }
  set.seed(seed, kind = "Mersenne-Twister", normal.kind = "Inversion", sample.kind = "Rejection")
  code
}

shape_between <- function(from, to) exp(runif(1, log(from), log(to)))
shape_pick <- function(...) list(...)[[sample.int(...length(), 1)]]
shape_direction <- function(d) {
  w <- rnorm(d)
  w / sqrt(sum(w^2))
}

# Half of the models have gradients, the others are differentiated by differences.
shape_model <- function(d, log_lik, gradient, prior, truth, modes = "one", data = NULL) {
  with_gradient <- runif(1) < 0.5
  model <- custom_model(
    paste0("x", seq_len(d)), log_likelihood = log_lik,
    log_prior = prior$log, draw_prior = prior$draw,
    gradient = if (with_gradient) gradient, prior_gradient = if (with_gradient) prior$gradient,
    vectorised = TRUE, modes = modes)
  list(model = model, data = data, truth = truth)
}

# Normal priors, and uniform ones in a box.
shape_normal <- function(d, sd) list(
  sd = sd,
  log = function(x) rowSums(matrix(dnorm(x, 0, sd, log = TRUE), nrow(x))),
  gradient = function(x) unname(-x / sd^2),
  draw = function(n) matrix(rnorm(n * d, 0, sd), n))
shape_box <- function(lower, upper) {
  d <- length(lower)
  list(
    log = function(x) ifelse(colSums(t(x) < lower | t(x) > upper) > 0, -Inf,
                             -sum(log(upper - lower))),
    gradient = function(x) matrix(0, nrow(x), d),
    draw = function(n) matrix(runif(n * d, rep(lower, each = n), rep(upper, each = n)), n))
}

# Log of the integral of exp(f), by the trapezoid rule on a fine grid.
shape_integral <- function(f, from, to, points = 2e5) {
  value <- f(seq(from, to, length.out = points + 1))
  value[c(1, points + 1)] <- value[c(1, points + 1)] - log(2)
  max(value) + log(sum(exp(value - max(value)))) + log((to - from) / points)
}
shape_log_sum <- function(...) {
  x <- c(...)
  max(x) + log(sum(exp(x - max(x))))
}

# ---- a ring, or a shell, of random radius and width ----

SHAPES$ring <- function() {
  d <- sample(2:5, 1)
  sd <- shape_between(0.7, 4)
  radius <- sd * sqrt(d) * shape_between(0.5, 1.5)
  width <- radius * shape_between(0.02, 0.3)
  boxed <- runif(1) < 0.3
  # all of the ring is in the box but for e^-40 of it
  side <- (radius + 9 * width) * shape_between(1, 1.5)
  prior <- if (boxed) shape_box(rep(-side, d), rep(side, d)) else shape_normal(d, sd)
  log_area <- log(2) + d / 2 * log(pi) - lgamma(d / 2)
  # the density of the distance from the centre under the prior
  log_radial <- if (boxed) function(r) log_area + (d - 1) * log(r) - d * log(2 * side)
  else function(r) log_area + (d - 1) * log(r) - d / 2 * log(2 * pi * sd^2) - r^2 / 2 / sd^2
  truth <- shape_integral(function(r) dnorm(r, radius, width, log = TRUE) + log_radial(r),
                          max(1e-9, radius - 9 * width), radius + 9 * width)
  shape_model(d, function(x) dnorm(sqrt(rowSums(x^2)), radius, width, log = TRUE), function(x) {
    r <- sqrt(rowSums(x^2))
    unname(-(r - radius) / width^2 * x / pmax(r, 1e-300))
  }, prior, truth, shape_pick("one", "one", "several"))
}

# ---- a hard edge ----

# A normal likelihood and a normal prior of the same shape in all directions: the posterior, and the
# log evidence.
shape_pair <- function(d, sd, centre, width) {
  total <- sd^2 + width^2
  list(mean = centre * sd^2 / total, sd = sqrt(sd^2 * width^2 / total),
       log_evidence = sum(dnorm(centre, 0, sqrt(total), log = TRUE)))
}
shape_peak <- function(centre, width) list(
  log = function(x) colSums(matrix(dnorm(t(x), centre, width, log = TRUE), length(centre))),
  gradient = function(x) unname(t((centre - t(x)) / width^2)))

# A half-space without likelihood cuts a normal at a random place.
shape_half_space <- function() {
  d <- sample(1:5, 1)
  sd <- shape_between(0.5, 4)
  centre <- rnorm(d, 0, sd)
  width <- sd * shape_between(0.05, 1)
  pair <- shape_pair(d, sd, centre, width)
  direction <- if (runif(1) < 0.5) replace(numeric(d), 1, 1) else shape_direction(d)
  # from two standard deviations of the posterior below its mean to two above
  edge <- sum(direction * pair$mean) + runif(1, -2, 2) * pair$sd
  peak <- shape_peak(centre, width)
  inside <- function(x) drop(x %*% direction) > edge
  truth <- pair$log_evidence +
    pnorm(edge, sum(direction * pair$mean), pair$sd, lower.tail = FALSE, log.p = TRUE)
  shape_model(d, function(x) ifelse(inside(x), peak$log(x), -Inf), peak$gradient,
              shape_normal(d, sd), truth)
}

# A box as the prior, whose edges may cut the normal likelihood.
shape_in_box <- function() {
  d <- sample(1:5, 1)
  lower <- -vapply(seq_len(d), function(j) shape_between(0.3, 5), 0)
  upper <- vapply(seq_len(d), function(j) shape_between(0.3, 5), 0)
  width <- vapply(seq_len(d), function(j) shape_between(0.1, 3), 0)
  centre <- runif(d, lower - width, upper + width)
  peak <- shape_peak(centre, width)
  truth <- sum(log(pnorm((upper - centre) / width) - pnorm((lower - centre) / width)) -
                 log(upper - lower))
  shape_model(d, peak$log, peak$gradient, shape_box(lower, upper), truth)
}

# Rows from uniform distributions up to unknown numbers, whose logs have a normal prior.
shape_uniform_rows <- function() {
  d <- sample(1:3, 1)
  n <- sample(c(1, 2, 5, 20, 100), 1)
  sd <- shape_between(0.5, 2)
  rows <- matrix(runif(n * d), n) * rep(exp(rnorm(d, 0, sd)), each = n)
  largest <- log(apply(rows, 2, max))
  truth <- sum(n^2 * sd^2 / 2 + pnorm(largest, -n * sd^2, sd, lower.tail = FALSE, log.p = TRUE))
  shape_model(d, function(x, data) {
    at <- if (length(data)) log(apply(data, 2, max)) else rep(-Inf, d)
    ifelse(colSums(t(x) < at) > 0, -Inf, -nrow(data) * rowSums(x))
  }, function(x, data) matrix(-nrow(data), nrow(x), d), shape_normal(d, sd), truth, data = rows)
}

SHAPES$edge <- function()
  shape_pick(shape_half_space, shape_in_box, shape_uniform_rows)()

# ---- a step of random height ----

SHAPES$step <- function() {
  d <- sample(1:5, 1)
  sd <- shape_between(0.5, 4)
  flat <- runif(1) < 0.3
  centre <- rnorm(d, 0, sd)
  width <- sd * shape_between(0.1, 1)
  pair <- if (flat) list(mean = numeric(d), sd = sd, log_evidence = 0)
  else shape_pair(d, sd, centre, width)
  direction <- if (runif(1) < 0.5) replace(numeric(d), 1, 1) else shape_direction(d)
  middle <- sum(direction * pair$mean)
  edge <- middle + runif(1, -2, 2) * pair$sd
  height <- shape_between(0.5, 10)
  peak <- if (flat) list(log = function(x) numeric(nrow(x)), gradient = function(x) 0 * unname(x))
  else shape_peak(centre, width)
  truth <- pair$log_evidence + shape_log_sum(
    pnorm(edge, middle, pair$sd, log.p = TRUE),
    height + pnorm(edge, middle, pair$sd, lower.tail = FALSE, log.p = TRUE))
  shape_model(d, function(x) peak$log(x) + height * (drop(x %*% direction) > edge), peak$gradient,
              shape_normal(d, sd), truth)
}

# ---- a narrow peak beside a wide one ----

# The narrow peak is so wide that a few hundred draws of the wide one can meet it.
SHAPES$spike <- function() {
  d <- sample(1:5, 1)
  sd <- shape_between(1, 4)
  wide <- sd * shape_between(0.3, 1)
  narrow <- wide * shape_between(max(0.02, 0.005^(1 / d)), 0.5)
  centre <- rbind(rnorm(d, 0, sd / 2))
  away <- runif(1, 0.5, 3)
  centres <- rbind(centre, centre + away * wide * shape_direction(d))
  widths <- c(wide, narrow)
  share <- runif(1, 0.05, 0.95)
  # of the evidence, not of the likelihood
  alone <- vapply(1:2, function(k)
    sum(dnorm(centres[k, ], 0, sqrt(sd^2 + widths[k]^2), log = TRUE)), 0)
  logs <- log(c(1 - share, share)) - alone
  truth <- shape_log_sum(logs + alone)
  peaks <- lapply(1:2, function(k) shape_peak(centres[k, ], widths[k]))
  each <- function(x) {
    value <- vapply(1:2, function(k) logs[k] + peaks[[k]]$log(x), numeric(nrow(x)))
    matrix(value, nrow(x))
  }
  log_sum <- function(x) pmax(x[, 1], x[, 2]) + log1p(exp(-abs(x[, 1] - x[, 2])))
  shape_model(d, function(x) log_sum(each(x)), function(x) {
    share <- exp(each(x) - log_sum(each(x)))
    share[, 1] * peaks[[1]]$gradient(x) + share[, 2] * peaks[[2]]$gradient(x)
  }, shape_normal(d, sd), truth, shape_pick("one", "one", "several"))
}

# One fit as a row: its error, and what it says against itself. An error of evidence() is no number,
# and said.
shape_fit <- function(problem, seed) {
  call <- list(problem$model, problem$data, seed = seed, progress = FALSE)
  if (is.null(problem$data)) call[2] <- NULL
  seconds <- system.time(fit <- withCallingHandlers(
    tryCatch(do.call(evidence, call), error = function(e) list(
      log_evidence = NA_real_, se = NA_real_, source = "none", failed = conditionMessage(e),
      warnings = c(error = conditionMessage(e)))),
    logevidence_warning = function(w) invokeRestart("muffleWarning")))
  said <- names(fit$warnings)
  error <- fit$log_evidence - problem$truth
  # the prior may be contradicted, whatever the estimate
  said <- setdiff(said, "prior_conflict")
  data.frame(problem = problem$name, family = problem$family, seed = seed,
             truth = signif(problem$truth, 8), error = signif(error, 5), se = signif(fit$se, 3),
             z = signif(error / fit$se, 4), source = fit$source, said = paste(said, collapse = " "),
             failed = length(fit$failed) > 0, seconds = round(seconds[[3]], 2))
}

# right: within 4 standard errors; a smaller error than a tenth of a nat is never called silent.
judged_shapes <- function(rows) {
  rows$right <- is.finite(rows$z) & abs(rows$z) <= 4
  rows$told <- nzchar(rows$said) | rows$failed
  rows$doubted <- rows$right & rows$told
  rows$silent <- !rows$right & !rows$told & !(abs(rows$error) <= 0.1)
  rows
}

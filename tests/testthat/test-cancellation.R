# Likelihoods where large numbers cancel: rows that agree in all but their last digits, columns far
# from zero, noise far smaller or larger than effects. All against numbers of 113 bits (precise.c).

precise <- compile_model(test_path("precise.c"), "precise")

# Value, gradient and second derivatives at theta. `z` is a list of columns of effects, `code` the
# groups of each.
exact_gaussian <- function(y, x, code, z, theta, correlated = FALSE) {
  d <- length(theta)
  found <- .C("precise_gaussian", length(y), ncol(x), length(z), as.double(y), as.double(x),
              as.integer(unlist(code)), as.double(unlist(z)), as.double(theta),
              as.integer(correlated), value = 0, gradient = double(d), hessian = double(d * d),
              PACKAGE = "precise")
  list(value = found$value, gradient = found$gradient, hessian = matrix(found$hessian, d))
}

# The largest errors of a grouped likelihood. Derivatives are in units of the curvature, so that an
# error of a gradient is that of the log-likelihood at one standard deviation; for logarithms and
# correlations, of which the prior has curvatures near one, in units of at least one.
errors_of <- function(formula, data, theta, code, z, x, correlated = FALSE) {
  model <- at_unit_one(regression(formula))
  encoded <- encode_groups(model, data)
  call <- model_caller(model, encoded)
  true <- exact_gaussian(data$y, x, code, z, theta, correlated)
  unit <- pmax(sqrt(abs(diag(true$hessian))), rep(c(0, 1), c(ncol(x), length(theta) - ncol(x))))
  found <- call("log_lik_grad", matrix(theta))
  second <- call("log_lik_hess", matrix(theta))
  c(value = abs(found$value - true$value) / max(1, abs(true$value)),
    gradient = max(abs(found$gradient - true$gradient) / pmax(abs(true$gradient), unit)),
    hessian = max(abs(second$hessian - true$hessian) / outer(unit, unit)))
}

groups_of_rows <- rep(1:6, c(1, 1, 2, 3, 4, 5))
row_ones <- rep(1, length(groups_of_rows))
# One in each case is the standard deviation that is larger.
of_ratio <- function(ratio) list(effect = min(1, 1 / ratio), noise = min(1, ratio))

test_that("the likelihood of groups keeps its digits at every ratio of noise to effects", {
  needs_compiler(precise)
  n <- length(groups_of_rows)
  for (ratio in 10^seq(-12, 12, 3)) for (kind in c("noise", "equal", "single")) {
    sd <- of_ratio(ratio)
    code <- if (kind == "single") seq_len(n) else groups_of_rows
    y <- with_own_seed(test_seed(1), sd$effect * rnorm(n)[code] +
                         (kind != "equal") * sd$noise * rnorm(n))
    errors <- errors_of(y ~ 1 + (1 | g), data.frame(y = y, g = code),
                        c(0.1 * sd$effect, log(c(sd$noise, sd$effect))), list(code),
                        list(row_ones), cbind(row_ones))
    expect_lt(max(errors), 1e-8)
  }
})

test_that("the likelihood of groups keeps its digits with slopes and covariates", {
  needs_compiler(precise)
  n <- length(groups_of_rows)
  for (ratio in 10^c(-6, -3, 0, 3, 12)) for (far in c(0, 1e3)) for (correlated in c(TRUE, FALSE)) {
    sd <- of_ratio(ratio)
    d <- with_own_seed(test_seed(2), {
      x <- far + rnorm(n)
      data.frame(x, g = groups_of_rows,
                 y = sd$effect * (0.3 + 0.5 * x + rnorm(6)[groups_of_rows] +
                                    x * rnorm(6)[groups_of_rows]) + sd$noise * rnorm(n))
    })
    theta <- c(sd$effect * c(0.3, 0.5), log(sd$noise), log(sd$effect * c(1, 0.7)),
               if (correlated) 0.3)
    errors <- errors_of(if (correlated) y ~ x + (x | g) else y ~ x + (x || g), d, theta,
                        list(groups_of_rows, groups_of_rows), list(row_ones, d$x),
                        cbind(1, d$x), correlated)
    expect_lt(max(errors), 2e-8)
  }
})

test_that("crossed and nested effects keep their digits, or there is a warning", {
  needs_compiler(precise)
  n <- length(groups_of_rows)
  items <- rep_len(c(1, 2, 3, 1, 4, 2), n)
  for (nested in c(FALSE, TRUE)) for (ratio in 10^c(-3, 0, 3, 12)) {
    sd <- of_ratio(ratio)
    code <- list(g = groups_of_rows,
                 h = if (nested) as.integer(factor(paste(groups_of_rows, items))) else items)
    y <- with_own_seed(test_seed(4), sd$effect * (rnorm(6)[code$g] + 0.7 * rnorm(n)[code$h]) +
                         sd$noise * rnorm(n))
    formula <- y ~ 1 + (1 | g) + (1 | h)
    d <- data.frame(y = y, g = code$g, h = code$h)
    # the factor of more levels comes first
    order <- sub("^log.sd_(.)_.*", "\\1",
                 logevidence:::encode_groups(regression(formula), d)$theta_names[3:4])
    theta <- c(0.1 * sd$effect, log(sd$noise),
               log(sd$effect * c(g = 1, h = 0.7)[order]))
    errors <- errors_of(formula, d, theta, code[order], list(row_ones, row_ones), cbind(row_ones))
    expect_lt(errors[["value"]], 1e-9)
    expect_lt(errors[["gradient"]], 1e-8)
  }
  # with noise of 1e-8 of the effects they are lost
  d <- expand.grid(g = 1:6, h = 1:5, again = 1:2)
  d$y <- with_own_seed(test_seed(5), rnorm(6)[d$g] + rnorm(5)[d$h] + 1e-8 * rnorm(60))
  model <- regression(y ~ 1 + (1 | g) + (1 | h))
  encoded <- encode(model, d)
  for (noise in c(1e-3, 1e-5, 1e-7, 1e-9)) {
    said <- lost_digits(model, matrix(c(0, log(noise), 0, 0)), 0, encoded)
    expect_identical(length(said) > 0, noise < 1e-6)
  }
  if (is_slow())
    expect_match(quiet_fit(model, d, seed = 1)$failed, "likelihood has lost its digits",
                 all = FALSE)
  d$y <- with_own_seed(test_seed(5), rnorm(6)[d$g] + rnorm(5)[d$h] + 1e-3 * rnorm(60))
  expect_null(quiet_fit(model, d, seed = 1)$failed)
})

test_that("effects are the residuals of their groups if there is almost no noise", {
  d <- data.frame(g = rep(1:3, each = 2), x = c(0, 1, 0, 2, 1, 3))
  u <- rbind(c(1, -0.5, 2), c(0.3, 0, -1))
  d$y <- 0.25 + u[1, d$g] + d$x * (1 + u[2, d$g])
  model <- at_unit_one(regression(y ~ x + (x | g)))
  encoded <- encode(model, d)
  for (noise in c(1e-3, 1e-8, 1e-12)) {
    found <- .Call(ffi_model, model_type(model), encoded$args, encoded$rows, "effects",
                   matrix(c(0.25, 1, log(noise), 0, 0, 0.3)), list(seed = c(1, 2)))
    expect_lt(max(abs(matrix(found, 2) - u)), 20 * noise + 1e-9)
  }
})

test_that("the evidence of groups whose rows agree to six digits is that of quadrature", {
  d <- with_own_seed(8, data.frame(g = rep(1:10, each = 2), y = rep(round(rnorm(10), 2), each = 2) +
                                     rep(c(0, 1e-6), 10)))
  model <- regression(y ~ 1 + (1 | g), intercept = normal(0, 1), auxiliary = half_normal(1),
                      group_sd = half_normal(1))
  # log sigma and log tau on a grid; given these, means of groups are normal, and so is the
  # intercept
  mean <- d$y[c(TRUE, FALSE)] + 5e-7
  half <- 5e-7
  log_density <- function(log_sigma, log_tau) {
    sigma <- exp(log_sigma)
    v <- exp(2 * log_tau) + sigma^2 / 2
    precision <- 1 + 10 / v
    within <- -10 * (log(2) / 2 + log_sigma + log(2 * pi) / 2 + half^2 / sigma^2)
    between <- -5 * log(2 * pi * v) - sum(mean^2) / (2 * v) + (sum(mean) / v)^2 / (2 * precision) -
      log(precision) / 2
    within + between + log(2) + dnorm(sigma, log = TRUE) + log_sigma +
      log(2) + dnorm(exp(log_tau), log = TRUE) + log_tau
  }
  at <- expand.grid(sigma = seq(-17, -10, 0.02), tau = seq(-4, 2, 0.02))
  value <- log_density(at$sigma, at$tau)
  true <- max(value) + log(sum(exp(value - max(value))) * 0.02^2)
  for (method in list(sgais(), laplace(importance = 1000)))
    for (seed in seq_len(fast_or_slow(3, 20))) {
      fit <- evidence(model, d, method, seed = test_seed(seed))
      expect_lt(abs(fit$log_evidence - true), 4 * fit$se + 1e-3)
      expect_lt(fit$se, 0.05)
      expect_null(fit$warnings)
    }
})

far_data <- function(far, n = 300) with_own_seed(test_seed(4), {
  x <- rnorm(n)
  # z - far is exact
  z <- far + x
  data.frame(z, x = z - far, y = 1 + 0.5 * x + rnorm(n), count = rpois(n, exp(0.3 + 0.2 * x)),
             class = sample(c("a", "b", "c"), n, TRUE), g = sample(8, n, TRUE))
})

test_that("bic() of columns far from zero is that of the same columns near zero", {
  models <- function(column) {
    one <- function(response, groups = NULL) stats::reformulate(c(column, groups), response)
    list(regression(one("y")), regression(one("y"), sigma = 1), regression(one("y"), student()),
         regression(one("count"), poisson()), regression(one("count"), negative_binomial()),
         softmax_regression(one("class")), regression(one("y", "(1 | g)")),
         regression(one("count", "(1 | g)"), poisson()))
  }
  for (far in c(1e4, 1e7, 1e10)) {
    d <- far_data(far)
    for (k in 1:8) {
      of <- function(column) quiet_fit(models(column)[[k]], d, bic(), seed = 1)$log_evidence
      # the sd of groups may go to zero, without end
      expect_equal(of("z"), of("x"), tolerance = if (k > 6) 1e-6 else 1e-8)
    }
    line <- stats::lm(y ~ x, d)
    expect_equal(quiet_fit(models("z")[[1]], d, bic())$log_evidence,
                 as.numeric(stats::logLik(line)) - 1.5 * log(nrow(d)), tolerance = 1e-9)
  }
})

test_that("bic() refuses columns so far from zero that no digit is left", {
  cl <- parallel::makePSOCKcluster(1)
  on.exit(parallel::stopCluster(cl))
  open <- function(k) data.frame(z = 1e7 + seq(-1, 1, length.out = 100), y = seq(0, 1, len = 100))
  environment(open) <- baseenv()
  refused(evidence(regression(y ~ z, prior_sd = 2.5), rows_cluster(cl, open, 2), bic()),
          "`scale = TRUE`")
})

test_that("the exact evidence of columns far from zero is that of the covariance matrix", {
  needs_compiler(precise)
  for (far in c(1, 1e4, 1e7)) {
    sd <- 1e6
    d <- far_data(far, 15)
    one <- rep(1, 15)
    log_lik <- function(log_sigma)
      exact_gaussian(d$y, matrix(0, 15, 0), list(one, one), list(one, d$z),
                     c(log_sigma, log(sd), log(sd)))$value
    known <- evidence(regression(y ~ z, sigma = 0.9, prior_sd = sd), d, exact(), seed = 1)
    expect_equal(known$log_evidence, log_lik(log(0.9)), tolerance = 1e-8)
    fit <- evidence(regression(y ~ z, prior_sd = sd, auxiliary = half_normal(2)), d,
                    exact(), seed = 1)
    at <- seq(log(0.3), log(8), 0.04)
    value <- vapply(at, log_lik, 0) + log(2) + dnorm(exp(at), 0, 2, log = TRUE) + at
    expect_equal(fit$log_evidence, max(value) + log(sum(exp(value - max(value))) * 0.04),
                 tolerance = 1e-8)
    line <- stats::lm(y ~ x, d)
    if (far / 2 > sd) next # the prior of the intercept would matter
    for (one in list(known, fit)) {
      draws <- posterior_draws(one)
      means <- draws[, 1] + outer(draws[, 2], d$z)
      se <- apply(means, 2, stats::sd) / sqrt(nrow(means))
      expect_lt(max(abs(colMeans(means) - stats::fitted(line)) / se), 5)
    }
  }
})

test_that("exact() has draws at any distance of columns", {
  for (far in 10^(8:10)) {
    d <- far_data(far)
    line <- stats::lm(y ~ x, d)
    for (sigma in list(1, half_student(3, 2.5))) {
      fit <- evidence(regression(y ~ z, sigma = sigma, prior_sd = 1e10), d, exact(),
                      seed = test_seed(5))
      draws <- posterior_draws(fit)
      means <- draws[, 1] + outer(draws[, 2], d$z[1:5])
      sd <- stats::predict(line, se.fit = TRUE)$se.fit[1:5]
      expect_lt(max(abs(colMeans(means) - stats::fitted(line)[1:5]) / sd), 0.2)
      expect_lt(max(abs(log(apply(means, 2, stats::sd) / sd))), 0.2)
    }
  }
})

test_that("the evidence under jzs() does not depend on how far columns are from zero", {
  set.seed(1)
  near <- data.frame(x = rnorm(50), z = rnorm(50))
  for (noise in c(1, 1e-3)) for (far in c(1e3, 1e6, 1e8)) {
    near$y <- 1 + near$x + noise * rnorm(50)
    away <- transform(near, x = x + far, y = y + far)
    # the digits that are left
    back <- transform(away, x = x - far, y = y - far)
    value <- function(data) evidence(linear_regression(y ~ x + z, prior = jzs()), data,
                                     exact())$log_evidence
    expect_lt(abs(value(away) / value(back) - 1), 1e-8)
  }
})

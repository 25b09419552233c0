# density(~ expression): the program in C against R's own functions, the families of regression(),
# and quadrature.

rows <- with_own_seed(test_seed(3), {
  n <- 90
  d <- data.frame(x = rnorm(n), z = runif(n), g = factor(sample(letters[1:3], n, TRUE)),
                  e = runif(n, 0.5, 2), trials = sample(5:20, n, TRUE))
  d$y <- 0.5 + 0.4 * d$x + rnorm(n)
  d$count <- rpois(n, exp(0.5 + 0.4 * d$x))
  d$hits <- rbinom(n, d$trials, plogis(0.4 * d$x))
  d$positive <- rgamma(n, 3, 2)
  d$share <- rbeta(n, 2, 3)
  d$event <- rbinom(n, 1, 0.7)
  d
})

# Each is a function of predictors a (with covariates), b (one number) and s (positive).
expressions <- alist(
  dnorm(y, a, exp(b) * s, log = TRUE), dlnorm(positive, a, s * exp(b), log = TRUE),
  dt((y - a) / s, exp(b) + 1, log = TRUE) - log(s), dcauchy(y, a + b, s, log = TRUE),
  dlogis(y, a + b, s, log = TRUE), dexp(positive, s * exp(a + b), log = TRUE),
  dgamma(positive, s, exp(a + b), log = TRUE), dgamma(positive, s, scale = exp(a + b), log = TRUE),
  dweibull(positive, s, exp(a + b), log = TRUE), dbeta(share, s * plogis(a + b), s, log = TRUE),
  dpois(count, e * exp(a + b) * s, log = TRUE), dgeom(count, plogis(a + b * s), log = TRUE),
  dnbinom(count, size = s, mu = exp(a + b), log = TRUE),
  dnbinom(count, s * exp(b), plogis(a), log = TRUE),
  dbinom(hits, trials, plogis(a + b * s), log = TRUE),
  dbinom(hits, trials, pnorm(a + b * s), log = TRUE),
  log(plogis(b) * dnorm(y, a, s) + (1 - plogis(b)) * dnorm(y, a + 1, 2 * s)),
  ifelse(count == 0, log(plogis(b) + plogis(-b) * exp(-exp(a) * s)),
         plogis(b, lower.tail = FALSE, log.p = TRUE) + dpois(count, exp(a) * s, log = TRUE)),
  event * dweibull(positive, s, exp(a + b), log = TRUE) +
    (1 - event) * pweibull(positive, s, exp(a + b), lower.tail = FALSE, log.p = TRUE),
  pnorm(y, a + b, s, log.p = TRUE), pnorm(y, a + b, s, lower.tail = FALSE, log.p = TRUE),
  plogis((2 * event - 1) * (a + b * s), log.p = TRUE),
  lgamma(s * positive) + lbeta(s, exp(a)) + lchoose(trials, hits) * b + lfactorial(count) * a,
  sqrt(1 + a^2) + abs(b - 0.1) * positive^2.5 + s^a - 3^b,
  sin(a) * cos(b) + tanh(a * s) - atan(y * b) + expm1(-a) + log1p(s * share) + log10(s) + log2(e),
  pmin(a, y) + pmax(b, 0.2) * s * (y > 0 & a <= 1 | !(b != 0.3)),
  digamma(s) * y + a * b, pexp(positive, s * exp(a), lower.tail = FALSE, log.p = TRUE) + b * y
)

three <- function(e, ...) {
  formula <- eval(call("~", e), globalenv())
  density(formula, a = ~ x + g + offset(z / 3), b = ~ 1, s = half_normal(1), ...)
}

test_that("values, gradients and second derivatives are those of the expression in R", {
  for (e in expressions) {
    text <- deparse1(e)
    f <- model_functions(three(e), rows)
    theta <- c(0.2, 0.3, -0.2, 0.1, 0.27, 0.15)
    in_r <- function(theta) {
      x <- model.matrix(~ x + g, rows)
      eval(e, c(as.list(rows), list(a = as.vector(x %*% theta[1:4]) + rows$z / 3, b = theta[5],
                                    s = exp(theta[6]))))
    }
    expect_equal(drop(f$log_lik_each(theta)), in_r(theta), tolerance = 1e-11, label = text)
    expect_equal(f$log_lik(theta), sum(in_r(theta)), tolerance = 1e-11, label = text)
    steps <- diag(1e-5, 6)
    slopes <- apply(steps, 1, function(h) (sum(in_r(theta + h)) - sum(in_r(theta - h))) / 2e-5)
    expect_equal(unname(drop(f$gradient(theta))), slopes, tolerance = 1e-6, label = text)
    curves <- apply(steps, 1, function(h) (f$gradient(theta + h) - f$gradient(theta - h)) / 2e-5)
    expect_equal(unname(f$hessian(theta)), unname(curves), tolerance = 1e-6, label = text)
  }
})

test_that("a density agrees with the family of regression()", {
  pairs <- list(
    list(density(~ dnbinom(count, size = size, mu = exp(eta), log = TRUE), eta = ~ x + g,
                 size = exponential(1)), regression(count ~ x + g, negative_binomial(),
                                                    prior_sd = 2.5)),
    list(density(~ dpois(count, exp(eta), log = TRUE), eta = ~ x + offset(log(e))),
         regression(count ~ x + offset(log(e)), poisson(), prior_sd = 2.5)),
    list(density(~ dnorm(y, eta, sigma, log = TRUE), eta = ~ x * z, sigma = half_student(3, 2.5)),
         regression(y ~ x * z, prior_sd = 2.5)))
  for (pair in pairs) {
    f <- model_functions(pair[[1]], rows)
    pair[[2]] <- at_unit_one(pair[[2]])
    g <- model_functions(pair[[2]], rows)
    theta <- f$draw_prior(5, seed = test_seed()) / 5
    for (what in c("log_prior", "log_lik", "gradient", "log_lik_each"))
      expect_equal(unname(f[[what]](theta)), unname(g[[what]](theta)), tolerance = 1e-11)
    expect_equal(unname(f$hessian(theta[1, ])), unname(g$hessian(theta[1, ])), tolerance = 1e-9)
    one <- evidence(pair[[1]], rows, seed = test_seed(1), progress = FALSE)
    other <- evidence(pair[[2]], rows, seed = test_seed(2), progress = FALSE)
    expect_lt(abs(logml(one) - logml(other)), 4.5 * sqrt(one$se^2 + other$se^2))
    expect_silent(compare_models(one = one, other = other))
  }
})

test_that("the evidence is that of quadrature, within its standard error", {
  y <- rows$y[1:20]
  model <- density(~ dnorm(y, m, exp(s), log = TRUE), m = ~ 1, s = ~ 1, prior = normal(0, 1))
  grid <- seq(-3, 3, length.out = 151)
  values <- outer(grid, grid, Vectorize(function(m, s)
    sum(dnorm(y, m, exp(s), log = TRUE)) + dnorm(m, log = TRUE) + dnorm(s, log = TRUE)))
  truth <- max(values) + log(sum(exp(values - max(values)))) + 2 * log(grid[2] - grid[1])
  for (method in list(sgais(), smc(), nested(100), laplace(importance = 500), bridge())) {
    fit <- evidence(model, data.frame(y = y), method, seed = test_seed(4), progress = FALSE)
    expect_lt(abs(logml(fit) - truth), 4.5 * fit$se, label = method$name)
  }
  if (Sys.getenv("LOGEVIDENCE_SLOW") != "") {
    z <- vapply(test_seed(1:100), function(seed) {
      fit <- evidence(model, data.frame(y = y), seed = seed, progress = FALSE)
      (logml(fit) - truth) / fit$se
    }, 0)
    expect_gte(mean(abs(z) < 2), 0.88)
  }
})

test_that("check_model() holds for densities with shared covariates", {
  model <- density(~ dnorm(y, mu, exp(s), log = TRUE), mu = ~ x + g, s = ~ x + g)
  expect_equal(nrow(model_functions(model, rows)$hessian(rep(0.1, 8))), 8)
  checked <- check_model(model, rows)
  expect_true(all(checked$holds %in% c(TRUE, NA)))
})

test_that("predict() averages the mean over the posterior", {
  model <- density(~ dpois(count, e * exp(eta), log = TRUE), eta = ~ x + g, mean = ~ e * exp(eta))
  fit <- evidence(model, rows, seed = test_seed(), progress = FALSE)
  twin <- evidence(regression(count ~ x + g + offset(log(e)), poisson(),
                              prior_sd = 2.5), rows, seed = test_seed(),
                   progress = FALSE)
  expect_equal(predict(fit, rows), predict(twin, rows), tolerance = 0.05)
  expect_length(predict(fit, rows, "density"), nrow(rows))
  drawn <- simulate(model, data = rows, seed = 1, parameters = 0 * coef(fit))
  expect_named(drawn, names(rows))
  expect_lt(abs(sum(drawn$count) - sum(rows$e)), 4.5 * sqrt(sum(rows$e)))
})

test_that("streams and added rows give the same likelihood", {
  model <- density(~ dnorm(y, mu, s, log = TRUE), mu = ~ x + g, s = half_normal(2))
  whole <- evidence(model, rows, seed = test_seed(), progress = FALSE)
  parts <- evidence(model, rows[1:50, ], seed = test_seed(), progress = FALSE)
  parts <- update(parts, rows[51:90, ], progress = FALSE)
  expect_lt(abs(logml(whole) - logml(parts)), 4.5 * sqrt(whole$se^2 + parts$se^2))
  at <- 0
  source <- rows_function(function(reset) {
    at <<- if (reset) 0 else at + 1
    if (at %in% 1:3) rows[(at - 1) * 30 + 1:30, ]
  })
  stream <- evidence(model, source, seed = test_seed(), progress = FALSE)
  expect_lt(abs(logml(whole) - logml(stream)), 4.5 * sqrt(whole$se^2 + stream$se^2))
})

test_that("wrong arguments of density() are errors before any run", {
  expect_error(density(~ dnorm(y, mu, s), mu = ~ x, s = ~ 1), "Write `log = TRUE`")
  expect_error(density(~ sum(dnorm(y, mu, 1, log = TRUE)), mu = ~ x), "function of several rows")
  expect_error(density(~ besselI(y, mu), mu = ~ x), "besselI\\(\\), which is not understood")
  expect_error(density(~ dnorm(y, 0, 1, log = TRUE), mu = ~ x), "`mu` is not in")
  expect_error(density(~ dnorm(y, 0 * mu, 1, log = TRUE), mu = ~ x), "does not depend on `mu`")
  expect_error(density(~ dnorm(mu, 0, 1, log = TRUE), mu = ~ 1), "has only predictors")
  expect_error(density(~ dpois(mu, 1, log = TRUE), mu = ~ 1), "columns of the data only")
  expect_error(density(~ dnorm(y, mu, 1, log = TRUE)), "at least one predictor")
  expect_error(density(~ dnorm(y, mu, 1, log = TRUE), mu = y ~ x), "`mu` must be a formula")
  expect_error(density(y ~ dnorm(y, mu, 1, log = TRUE), mu = ~ x), "without left-hand side")
  expect_error(density(~ dnorm(y, mu, 1, log = yes), mu = ~ x), "TRUE or FALSE as `log`")
  expect_error(density(~ dnorm(y, mu, 1, log = TRUE), mu = ~ x, prior = 3), "`prior` must be")
  run <- function(..., data = rows) evidence(density(...), data, progress = FALSE)
  expect_error(run(~ dnorm(y, mu, s, log = TRUE), mu = ~ x, s = ~ 1), "not NaN at mu = 0, s = 0")
  expect_error(run(~ dnorm(why, mu, 1, log = TRUE), mu = ~ x), "column `why`")
  expect_error(run(~ dnorm(y, mu, 1, log = TRUE), mu = ~ why), "column `why`")
  expect_error(run(~ dnorm(g, mu, 1, log = TRUE), mu = ~ x), "`g` of type factor")
  expect_error(run(~ dpois(count - 1, exp(mu), log = TRUE), mu = ~ x),
               "non-negative whole numbers up to 1e11 as `count - 1` in dpois\\(\\), not -1 in row")
  expect_error(run(~ dbinom(hits, 3, plogis(mu), log = TRUE), mu = ~ x), "`3 - hits`")
  expect_error(run(~ dnorm(log(y), mu, 1, log = TRUE), mu = ~ x), "must be a number or -Inf")
  dnorm <- function(x, mean, sd, log) -abs(x - mean)
  expect_error(run(~ dnorm(y, mu, 1, log = TRUE), mu = ~ x), "must mean the same in R")
  rows$y[7] <- NA
  expect_error(run(~ stats::dnorm(y, mu, 1, log = TRUE), mu = ~ x), "column `y`, row 7")
})

test_that("rules for data hold only in their branch, and constants may be numbers", {
  k <- 2
  model <- density(~ ifelse(count > 0,
                            dgamma(count, k, exp(a), log = TRUE) + plogis(p, log.p = TRUE),
                            plogis(-p, log.p = TRUE)), a = ~ x, p = ~ 1)
  f <- model_functions(model, rows)
  x <- cbind(1, rows$x) %*% c(0.2, 0.1)
  theirs <- ifelse(rows$count > 0,
                   dgamma(rows$count, 2, exp(x), log = TRUE) + plogis(0.3, log.p = TRUE),
                   plogis(-0.3, log.p = TRUE))
  expect_equal(drop(f$log_lik_each(c(0.2, 0.1, 0.3))), as.vector(theirs), tolerance = 1e-12)
  expect_true(all(is.finite(f$gradient(c(0.2, 0.1, 0.3)))))
})

test_that("density() of numbers gives what stats::density() gives", {
  expect_s3_class(density(rows$y), "density")
  expect_identical(environmentName(environment(density)), "stats")
})

test_that("a density whose mean is known has fitted values and residuals", {
  fit <- evidence(density(~ dnorm(y, a + b * x, s, log = TRUE), a = ~ z, b = normal(0, 1),
                          s = exponential(1)), rows, seed = 1, progress = FALSE)
  means <- drop(exp(fit$log_weights) %*% fit$draws)
  expect_equal(unname(fitted(fit)),
               means[["a_(Intercept)"]] + means[["a_z"]] * rows$z + means[["b"]] * rows$x)
  expect_equal(residuals(fit), rows$y - fitted(fit))
  hits <- evidence(density(~ dbinom(hits, trials, plogis(a), log = TRUE), a = ~ x), rows, seed = 1,
                   progress = FALSE)
  expect_equal(residuals(hits), rows$hits - predict(hits, rows))
  unknown <- evidence(density(~ plogis((2 * event - 1) * a, log.p = TRUE), a = ~ x), rows,
                      seed = 1, progress = FALSE)
  expect_error(residuals(unknown), "no response whose mean is known")
})

test_that("a parameter that stands only in a comparison is accepted, and the default is right", {
  rows <- data.frame(x = 1:30, y = with_own_seed(3, c(stats::rnorm(12), stats::rnorm(18, 2))))
  model <- density(~ dnorm(y, ifelse(x > a, m2, m1), 1, log = TRUE), a = normal(15, 5),
                   m1 = normal(0, 2), m2 = normal(0, 2))
  # the evidence of each place of the step in closed form, times its prior probability
  of_mean <- function(y) {
    if (!length(y)) return(0)
    v <- diag(length(y)) + 4
    -0.5 * (length(y) * log(2 * pi) + determinant(v)$modulus + sum(y * solve(v, y)))
  }
  parts <- vapply(0:30, function(k)
    log(diff(stats::pnorm(c(if (k == 0) -Inf else k, if (k == 30) Inf else k + 1), 15, 5))) +
      of_mean(rows$y[rows$x <= k]) + of_mean(rows$y[rows$x > k]), 0)
  truth <- max(parts) + log(sum(exp(parts - max(parts))))
  fits <- lapply(list(smc(), bridge(), nested(), laplace(importance = 2000)), function(method)
    quiet_fit(model, rows, method, seed = test_seed()))
  fits <- c(list(quiet_fit(model, rows, seed = test_seed())), fits)
  expect_identical(fits[[1]]$method$name, "smc")
  for (fit in fits) expect_lt(abs(fit$log_evidence - truth) / fit$se, 4.5)
  why <- "the density depends on `a` by comparisons alone"
  for (method in list(sgais(), hybrid(), sequential(), laplace(), bic(), smc(kernel = hmc())))
    refused(evidence(model, rows, method), why)
  refused(evidence(model, in_blocks(rows, 10)), why)
  expect_equal(quiet_fit(model, in_blocks(rows, 10), seed = test_seed(),
                         collect = TRUE)$log_evidence, fits[[1]]$log_evidence)
  # the rows of a comparison may have a predictor
  by_row <- density(~ dnorm(y, ifelse(x > a, m, -m), 1, log = TRUE), a = ~ x, m = ~ 1)
  expect_identical(part_of(by_row, "stepped"), "a")
  refused(density(~ dnorm(y, a - a, s, log = TRUE), a = ~ x, s = half_normal(1)),
          "does not depend on `a`")
  expect_identical(part_of(density(~ dnorm(y, m, 1, log = TRUE), m = ~ x), "stepped"),
                   character())
})

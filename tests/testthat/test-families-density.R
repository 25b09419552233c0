# The lines of density() on the help page of families, against the densities of R.

rows <- with_own_seed(11, data.frame(x = rnorm(25), count = rpois(25, 1.2), share = rbeta(25, 2, 3),
                                     time = rexp(25), number = rnorm(25),
                                     class = sample(3, 25, TRUE), yes = rbinom(25, 1, 0.4)))

# The log-likelihood of a line, and what it should be given the parameters in their order.
expect_density <- function(column, expected, line) {
  data <- data.frame(x = rows$x, y = rows[[column]])
  f <- model_functions(line, data)
  for (point in list(rep(0.3, f$dim), seq(-1, 0.8, length.out = f$dim)))
    expect_equal(f$log_lik(point), sum(log(expected(data$y, data$x, point))), tolerance = 1e-9)
  expect_draws(line, f$names)
}

# Draws have the density of the line, as ratios to another density have the mean one, and its mean.
expect_draws <- function(line, names) {
  data <- data.frame(x = rep(c(-0.5, 0, 0.5), 1000))
  point <- stats::setNames(seq(0.4, -0.3, length.out = length(names)), names)
  drawn <- simulate(line, data = data, parameters = point, unconstrained = TRUE, seed = test_seed())
  f <- model_functions(line, drawn)
  ratio <- as.vector(exp(f$log_lik_each(point + 0.1) - f$log_lik_each(point)))
  expect_lt(abs(mean(ratio) - 1), 4.5 * sd(ratio) / sqrt(length(ratio)))
  fit <- quiet_fit(line, drawn[1:60, ], laplace(importance = 100), seed = test_seed())
  new <- data.frame(x = c(-0.5, 0.5))
  draws <- predict(fit, new, type = "draws", draws = 400, seed = test_seed())
  expect_true(all(abs(colMeans(draws) - predict(fit, new)) <
                    4.5 * apply(draws, 2, sd) / sqrt(400)))
  limits <- predict(fit, new, interval = 0.9, draws = 20, seed = test_seed())
  expect_identical(dim(limits), c(2L, 3L))
}

test_that("densities for counts with many zeros equal those of R", {
  expect_density("count", function(y, x, b) {
    zero <- plogis(b[3])
    zero * (y == 0) + (1 - zero) * dpois(y, exp(b[1] + b[2] * x))
  }, density(~ ifelse(y == 0, log(plogis(p) + plogis(-p) * exp(-exp(mu))),
                      plogis(-p, log.p = TRUE) + dpois(y, exp(mu), log = TRUE)),
             mu = ~ x, p = ~ 1, mean = ~ plogis(-p) * exp(mu),
             simulate = y ~ rbinom(n, 1, plogis(-p)) * rpois(n, exp(mu))))
  expect_density("count", function(y, x, b) {
    mean <- exp(b[1] + b[2] * x)
    ifelse(y == 0, plogis(b[3]), plogis(-b[3]) * dpois(y, mean) / (1 - dpois(0, mean)))
  }, density(~ ifelse(y == 0, plogis(p, log.p = TRUE),
                      plogis(-p, log.p = TRUE) + dpois(y, exp(mu), log = TRUE) -
                        log(-expm1(-exp(mu)))), mu = ~ x, p = ~ 1,
             mean = ~ plogis(-p) * exp(mu) / -expm1(-exp(mu)),
             simulate = y ~ rbinom(n, 1, plogis(-p)) *
               (1 + rpois(n, exp(mu) + log1p(runif(n) * expm1(-exp(mu)))))))
  expect_density("count", function(y, x, b) dgeom(y, plogis(b[1] + b[2] * x)),
                 density(~ dgeom(y, plogis(mu), log = TRUE), mu = ~ x))
})

test_that("densities for ordered classes and other links equal those of R", {
  expect_density("class", function(y, x, b) {
    limits <- c(-Inf, b[2], b[2] + exp(b[3]), Inf)
    plogis(limits[y + 1] - b[1] * x) - plogis(limits[y] - b[1] * x)
  }, density(~ ifelse(y == 1, plogis(low - mu, log.p = TRUE),
                      ifelse(y == 2, log(plogis(low + gap - mu) - plogis(low - mu)),
                             plogis(mu - low - gap, log.p = TRUE))),
             mu = ~ 0 + x, low = ~ 1, gap = exponential(1),
             mean = ~ 1 + plogis(mu - low) + plogis(mu - low - gap),
             simulate = y ~ {z <- rlogis(n, mu); 1 + (z > low) + (z > low + gap)}))
  expect_density("yes", function(y, x, b) dbinom(y, 1, 1 - exp(-exp(b[1] + b[2] * x))),
                 density(~ ifelse(y == 1, log(-expm1(-exp(mu))), -exp(mu)), mu = ~ x,
                         mean = ~ -expm1(-exp(mu)),
                         simulate = y ~ rbinom(n, 1, -expm1(-exp(mu)))))
})

test_that("densities for positive, skewed and (0, 1) responses equal those of R", {
  expect_density("share", function(y, x, b) {
    mean <- plogis(b[1] + b[2] * x)
    dbeta(y, mean * exp(b[3]), (1 - mean) * exp(b[3]))
  }, density(~ dbeta(y, plogis(mu) * phi, plogis(-mu) * phi, log = TRUE), mu = ~ x,
             phi = exponential(0.1)))
  expect_density("time", function(y, x, b) dlnorm(y, b[1] + b[2] * x, exp(b[3])),
                 density(~ dlnorm(y, mu, sigma, log = TRUE), mu = ~ x,
                         sigma = half_student(3, 2.5)))
  expect_density("time", function(y, x, b) dexp(y, exp(-b[1] - b[2] * x)),
                 density(~ dexp(y, exp(-mu), log = TRUE), mu = ~ x))
  inverse_gaussian <- function(y, x, b) {
    mean <- exp(b[1] + b[2] * x)
    sqrt(exp(b[3]) / (2 * pi * y^3)) * exp(-exp(b[3]) * (y - mean)^2 / (2 * mean^2 * y))
  }
  expect_density("time", inverse_gaussian,
                 density(~ (log(phi) - log(2 * pi * y^3)) / 2 -
                           phi * (y * exp(-mu) - 1)^2 / (2 * y),
                         mu = ~ x, phi = exponential(1), mean = ~ exp(mu),
                         simulate = y ~ {
                           w <- exp(mu) * rnorm(n)^2 / phi
                           r <- 1 + (w - sqrt(w * (4 + w))) / 2
                           exp(mu) * ifelse(runif(n) * (1 + r) < 1, r, 1 / r)
                         }))
  skew <- function(y, x, b) {
    z <- (y - b[1] - b[2] * x) / exp(b[4])
    2 * dnorm(z) / exp(b[4]) * pnorm(b[3] * z)
  }
  expect_density("number", skew,
                 density(~ log(2) + dnorm(y, mu, sigma, log = TRUE) +
                           pnorm(slant * (y - mu) / sigma, log.p = TRUE),
                         mu = ~ x, slant = ~ 1, sigma = half_student(3, 2.5),
                         mean = ~ mu + sigma * slant * sqrt(2 / pi / (1 + slant^2)),
                         simulate = y ~ mu + sigma *
                           (slant * abs(rnorm(n)) + rnorm(n)) / sqrt(1 + slant^2)))
  expect_equal(integrate(skew, -Inf, Inf, x = 0, b = c(0.2, 0, 2, 0.1))$value, 1, tolerance = 1e-6)
})

test_that("the evidence of such a density is that of quadrature", {
  data <- data.frame(x = rows$x, y = rows$yes)
  line <- density(~ ifelse(y == 1, log(-expm1(-exp(mu))), -exp(mu)), mu = ~ x,
                  prior = normal(0, 1))
  fit <- evidence(line, data, seed = test_seed())
  inner <- function(b) vapply(b, function(slope) integrate(function(a) vapply(a, function(one)
    prod(dbinom(data$y, 1, 1 - exp(-exp(one + slope * data$x)))) * dnorm(one) * dnorm(slope), 0),
    -6, 6, rel.tol = 1e-7)$value, 0)
  truth <- log(integrate(inner, -6, 6, rel.tol = 1e-6)$value)
  expect_lt(abs(fit$log_evidence - truth) / fit$se, 4.5)
})

test_that("a parameter of one sign has the evidence that the posterior probability of it gives", {
  data <- data.frame(x = rows$x, y = 0.2 * rows$x + rows$number)
  both <- evidence(linear_regression(y ~ x, sigma = 1, prior_sd = c(3, 2)), data, exact())
  precision <- crossprod(cbind(1, data$x)) + diag(1 / c(3, 2)^2)
  mean <- solve(precision, crossprod(cbind(1, data$x), data$y))[2]
  probability <- pnorm(mean / sqrt(solve(precision)[2, 2]))
  positive <- evidence(density(~ dnorm(y, a + b * x, 1, log = TRUE), a = normal(0, 3),
                               b = half_normal(2)), data, seed = test_seed())
  expect_lt(abs(positive$log_evidence - both$log_evidence - log(probability / 0.5)),
            4.5 * positive$se)
})

test_that("an unknown family is an error that names density()", {
  expect_error(regression(y ~ x, "ordinal"), "density\\(\\) takes any log density",
               class = "logevidence_error")
})

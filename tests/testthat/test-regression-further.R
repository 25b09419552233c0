# Formulas of further parameters: densities against plain R, evidences against integrals, verbs.

data <- regression_data()

# The log density of each row: functions of the data, the linear predictor without offset, and the
# further parameter of each row.
further_cases <- function() list(
  gaussian = list(
    model = regression(y ~ x + g, sigma ~ z + offset(log(e)),
                       prior_sd = 2.5), name = "sigma",
    terms = ~ z, offset = log(data$e),
    each = function(d, eta, a) dnorm(d$y, eta, a, log = TRUE)),
  "student, df known" = list(
    model = regression(t ~ x + offset(e), sigma ~ g, family = student(4),
                       prior_sd = 2.5), name = "sigma",
    terms = ~ g,
    each = function(d, eta, a) dt((d$t - eta - d$e) / a, 4, log = TRUE) - log(a)),
  student = list(
    model = regression(t ~ x, student(inverse_gamma(2, 10)), sigma ~ x * z,
                       prior_sd = 2.5), name = "sigma",
    terms = ~ x * z,
    each = function(d, eta, a, df) dt((d$t - eta) / a, df, log = TRUE) - log(a)),
  "negative binomial" = list(
    model = regression(wide ~ x + offset(log(e)), size ~ g + z, family = negative_binomial(),
                       prior_sd = 2.5),
    name = "size", terms = ~ g + z,
    each = function(d, eta, a) dnbinom(d$wide, a, mu = exp(eta) * d$e, log = TRUE)),
  gamma = list(
    model = regression(positive ~ x, shape ~ 1, family = Gamma("log"),
                       prior_sd = 2.5), name = "shape",
    terms = ~ 1,
    each = function(d, eta, a) dgamma(d$positive, a, a / exp(eta), log = TRUE)),
  weibull = list(
    model = regression(time ~ x + g, shape ~ 0 + z, family = weibull(),
                       prior_sd = 2.5), name = "shape",
    terms = ~ 0 + z,
    each = function(d, eta, a) dweibull(d$time, a, exp(eta), log = TRUE))
)

# The density of each row in plain R, from the parameters by name.
plain_rows <- function(case, d, offset, theta) {
  x <- model.matrix(delete.response(terms(case$model$formula)), d)
  z <- model.matrix(case$terms, d)
  eta <- drop(x %*% theta[colnames(x)])
  a <- exp(drop(z %*% theta[paste0(case$name, "_", colnames(z))]) + offset)
  if ("log(df)" %in% names(theta)) case$each(d, eta, a, exp(theta[["log(df)"]]))
  else case$each(d, eta, a)
}

test_that("densities of rows are those of plain R, and models pass the conformance suite", {
  for (name in names(further_cases())) {
    case <- further_cases()[[name]]
    for (n in fast_or_slow(c(1, 65), c(1, 63, 64, 65, 200))) {
      f <- raw_functions(case$model, data[seq_len(n), ])
      offset <- if (is.null(case$offset)) 0 else case$offset[seq_len(n)]
      for (theta in asplit(f$draw_prior(fast_or_slow(1, 3), seed = test_seed(n)) / 3, 1)) {
        names(theta) <- f$names
        plain <- unname(plain_rows(case, data[seq_len(n), ], offset, theta))
        expect_equal(drop(f$log_lik_each(theta)), plain, tolerance = 1e-11, info = paste(name, n))
        expect_equal(f$log_lik(theta), sum(plain), tolerance = 1e-11, info = paste(name, n))
      }
    }
    if (!is_slow() && !name %in% c("gaussian", "student")) next
    check <- check_model(case$model, data[1:fast_or_slow(60, 200), ], seed = test_seed())
    expect_identical(check$check[which(!check$holds)], character(), info = name)
  }
})

test_that("further parameters have names, priors and printed lines", {
  f <- model_functions(regression(y ~ x, sigma ~ z, auxiliary = list(
    sigma = normal(0, 0.5), "sigma_(Intercept)" = student_t(4, 1, 2)),
    prior_sd = 2.5), data)
  expect_identical(f$names, c("(Intercept)", "x", "sigma_(Intercept)", "sigma_z"))
  expect_identical(f$user_names, f$names)
  theta <- c(0.1, 0.2, 0.3, 0.4)
  expect_equal(f$log_prior(theta), sum(dnorm(theta[1:2], 0, 2.5, log = TRUE)) +
                 dt((0.3 - 1) / 2, 4, log = TRUE) - log(2) + dnorm(0.4, 0, 0.5, log = TRUE))
  f <- raw_functions(regression(y ~ x, sigma ~ z, prior_sd = 2.5), data)
  expect_equal(f$log_prior(theta), sum(dnorm(theta[1:2], 0, 2.5, log = TRUE)) +
                 dt(0.3 / 2.5, 3, log = TRUE) - log(2.5) + dnorm(0.4, 0, 1, log = TRUE))
  # one prior for all coefficients; the prior of `df` is that of its number
  f <- model_functions(regression(t ~ 1, sigma ~ z, family = student(exponential(0.1)),
                                  auxiliary = list(sigma = normal(0, 3)),
                                  prior_sd = 2.5), data)
  expect_identical(tail(f$names, 1), "log(df)")
  expect_equal(f$log_prior(theta), dnorm(0.1, 0, 2.5, log = TRUE) +
                 sum(dnorm(theta[2:3], 0, 3, log = TRUE)) + dexp(exp(0.4), 0.1, log = TRUE) + 0.4)
  expect_output(print(regression(y ~ x, sigma ~ z + g,
                                 prior_sd = 2.5)), "sigma ~ z + g", fixed = TRUE)
  expect_output(print(regression(y ~ x, sigma ~ z,
                                 prior_sd = 2.5)), "others ~ normal(mean = 0, sd = 1)",
                fixed = TRUE)
})

test_that("the evidence equals an integral over two parameters", {
  small <- data[1:30, ]
  model <- regression(y ~ 0 + x, sigma ~ 0 + z, auxiliary = normal(0, 1), prior_sd = 2.5)
  grid <- expand.grid(b = seq(-1.5, 2.5, length.out = 301), s = seq(-4, 4, length.out = 401))
  value <- dnorm(grid$b, 0, 2.5, log = TRUE) + dnorm(grid$s, 0, 1, log = TRUE)
  for (i in seq_len(nrow(small)))
    value <- value + dnorm(small$y[i], grid$b * small$x[i], exp(grid$s * small$z[i]), log = TRUE)
  truth <- log_sum_exp(value) + log(4 / 300) + log(8 / 400)
  z <- vapply(1:5, function(k) {
    fit <- quiet_fit(model, small, seed = test_seed(k))
    (fit$log_evidence - truth) / fit$se
  }, 0)
  expect_lt(max(abs(z)), 4)
})

test_that("a formula of an intercept is the parameter itself under the prior of its logarithm", {
  one <- model_functions(regression(wide ~ x, size ~ 1, family = negative_binomial(),
                                    prior_sd = 2.5), data)
  two <- model_functions(regression(wide ~ x, family = negative_binomial(),
                                    prior_sd = 2.5), data)
  theta <- c(0.4, 0.2, -0.3)
  expect_equal(one$log_lik(theta), two$log_lik(theta), tolerance = 1e-12)
  expect_equal(unname(one$gradient(theta)), unname(two$gradient(theta)), tolerance = 1e-10)
  expect_equal(unname(one$hessian(theta)), unname(two$hessian(theta)), tolerance = 1e-10)
})

test_that("noise that grows with a covariate is estimated, predicted and simulated", {
  d <- regression_data(4000, 5)
  d$y <- 1 + d$x + exp(-1 + 2 * d$z) * with_own_seed(test_seed(6), rnorm(4000))
  fit <- quiet_fit(regression(y ~ x, sigma ~ z, prior_sd = 2.5), d, seed = test_seed())
  expect_lt(max(abs(coef(fit) - c(1, 1, -1, 2)) / sqrt(diag(vcov(fit)))), 4)
  plain <- quiet_fit(regression(y ~ x, prior_sd = 2.5), d, seed = test_seed())
  expect_gt(fit$log_evidence, plain$log_evidence + 100)
  scaled <- quiet_fit(regression(y ~ x, sigma ~ z, scale = TRUE,
                                 prior_sd = 2.5), d, seed = test_seed())
  expect_equal(coef(scaled), coef(fit), tolerance = 0.02)
  stream <- quiet_fit(regression(y ~ x, sigma ~ z,
                                 prior_sd = 2.5), in_blocks(d, 700), seed = test_seed())
  expect_lt(abs(stream$log_evidence - fit$log_evidence), 4 * sqrt(stream$se^2 + fit$se^2))
  expect_equal(fitted(scaled, d), predict(scaled, d[, c("x", "z")]), tolerance = 1e-12)
  expect_error(sigma(fit), "single standard deviation")
  drawn <- simulate(regression(y ~ x, sigma ~ z,
                               prior_sd = 2.5), data = d, parameters = c(1, 1, -1, 2),
                    seed = test_seed())
  high <- d$z > 0.8
  expect_equal(sd((drawn$y - 1 - d$x)[high] / exp(-1 + 2 * d$z[high])), 1, tolerance = 0.1)

  # the mean of a Weibull distribution depends on its shape
  model <- at_unit_one(regression(time ~ x, shape ~ z, family = weibull(), prior_sd = 2.5))
  theta <- c(0.2, 0.1, -0.5, 1)
  design <- encode(model, d)$design
  fit <- list(model = model, log_weights = 0, parameters = matrix(theta, 1), design = design)
  shape <- exp(-0.5 + d$z[1:9])
  expect_equal(regression_mean(fit, encode_new(model, design, d[1:9, ])),
               exp(0.2 + 0.1 * d$x[1:9]) * gamma(1 + 1 / shape), tolerance = 1e-12)
})

test_that("wrong formulas of further parameters are refused in a sentence", {
  refused(regression(y ~ x, size ~ z,
      prior_sd = 2.5), "`...` must be formulas of `sigma`, as in `sigma ~ z`")
  refused(regression(count ~ x, poisson(), size ~ z,
                     prior_sd = 2.5), "has no parameter that can have a formula")
  refused(regression(y ~ x, gaussian(), ~ z,
                     prior_sd = 2.5), "formulas of further parameters, such as `sigma ~ z`")
  refused(regression(y ~ x, sigma ~ z, sigma ~ x,
                     prior_sd = 2.5), "one formula, not several")
  refused(regression(y ~ x, sigma ~ y,
                     prior_sd = 2.5), "must not have the response `y` among its covariates")
  refused(regression(y ~ x, weights = e, prior_sd = 2.5), "`weights` are not supported")
  refused(regression(y ~ x, data = 3, prior_sd = 2.5),
          "`data` is an argument of evidence(), not of the model")
  refused(regression(t ~ x, student(exponential(1)), df ~ z,
                     prior_sd = 2.5), "`df` cannot have a formula")
  refused(regression(y ~ x, sigma ~ z, auxiliary = half_normal(1),
                     prior_sd = 2.5), "a prior of a real number")
  refused(evidence(regression(y ~ x, sigma ~ z, auxiliary = list(sigma_w = normal(0, 1)),
                              prior_sd = 2.5), data),
          "not by `sigma_w`")
  refused(evidence(regression(y ~ x, sigma ~ missing,
                              prior_sd = 2.5), data), "must have the column `missing`")
  data$z[5] <- NA
  refused(evidence(regression(y ~ x, sigma ~ z,
                              prior_sd = 2.5), data), "not NA in column `z`, row 5")
  refused(evidence(regression(y ~ sigma_z, sigma ~ z,
                              prior_sd = 2.5), transform(regression_data(), sigma_z = 1)),
          "no covariate with the name of a parameter")
})

test_that("known noise of each row is refused, and the error says how to write it", {
  written <- function(code, ...) {
    error <- expect_error(code, class = "logevidence_error")
    for (part in c(...)) expect_match(conditionMessage(error), part, fixed = TRUE)
  }
  rows <- data.frame(y = c(0.3, 0.9, -0.2), x = 1:3, se = c(0.5, 0.4, 0.7), sd = 1)
  expected <- c("`density(~ dnorm(y, mu, se, log = TRUE), mu = ~ x)`",
                "`density(~ dnorm(y, mu, sqrt(tau^2 + se^2), log = TRUE), mu = ~ x, tau = half")
  written(linear_regression(y ~ x, sigma = rows$se), "not a double vector of length 3", expected)
  written(regression(y ~ x, sigma = "se"), "not \"se\"", expected)
  written(regression(y ~ x + (1 | x), sigma = "se"), expected)
  written(regression(y ~ x, sigma ~ 0 + offset(log(se))),
          "`sigma` must have a covariate or an intercept, not `sigma ~ 0 + offset(log(se))`.",
          expected)
  written(regression(y ~ x, sigma ~ 0 + offset(-log(w) / 2)), "dnorm(y, mu, exp(-log(w)/2), log")
  written(regression(y | se(se) ~ x), "response without `|`", expected)
  written(regression(y ~ x, se = se), "not an argument of a regression.", expected)
  refused(regression(y ~ x, sigma ~ y), "`sigma` must not have the response `y` among its")
  refused(regression(y ~ x, "gamma", shape ~ 0), "not `shape ~ 0`.")
  # the way that the error names works: it is the normal density of each row: y ~ N(0, v + x x' b^2)
  fit <- evidence(eval(parse(text = "density(~ dnorm(y, mu, se, log = TRUE), mu = ~ 0 + x)")[[1]]),
                  rows, laplace(), seed = 1)
  v <- diag(rows$se^2) + 2.5^2 * tcrossprod(rows$x)
  truth <- -0.5 * (3 * log(2 * pi) + log(det(v)) + sum(rows$y * solve(v, rows$y)))
  expect_equal(fit$log_evidence, truth, tolerance = 1e-6)
})

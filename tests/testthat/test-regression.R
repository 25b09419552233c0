# regression(): densities and derivatives of each family, against plain R, glm() and others; data
# and bad input.

data <- regression_data()

test_that("each family passes the conformance suite", {
  some <- c("poisson", "student", "weibull")
  for (name in fast_or_slow(some, names(regression_cases()))) {
    check <- check_model(regression_cases()[[name]]$model, data[1:fast_or_slow(60, 200), ],
                         seed = test_seed())
    expect_identical(check$check[which(!check$holds)], character(), info = name)
    # nothing of the contract is missing
    expect_setequal(check$check[is.na(check$holds)],
                    c("coordinates", "information", "relabelling", "symmetry"))
  }
})

test_that("densities of rows are those of plain R", {
  for (name in names(regression_cases())) {
    case <- regression_cases()[[name]]
    for (n in fast_or_slow(c(1, 65), c(1, 63, 64, 65, 200))) {
      part <- data[seq_len(n), ]
      f <- model_functions(case$model, part)
      for (theta in asplit(f$draw_prior(fast_or_slow(2, 5), seed = test_seed(n)) / 3, 1)) {
        plain <- unname(case$each(part, predictor_of(case$model, part, theta),
                                  further_of(f, theta)))
        expect_equal(drop(f$log_lik_each(theta)), plain, tolerance = 1e-11, info = paste(name, n))
        expect_equal(f$log_lik(theta), sum(plain), tolerance = 1e-11, info = paste(name, n))
      }
    }
  }
})

test_that("densities far in the tails are those of plain R", {
  for (name in setdiff(names(regression_cases()), "poisson")) {
    case <- regression_cases()[[name]]
    f <- model_functions(case$model, data)
    own <- grepl("^log\\(", f$names)
    for (size in c(-6, 6)) for (far in c(-30, 30)) {
      theta <- ifelse(own, size, 0)
      theta[1] <- far
      plain <- unname(case$each(data, predictor_of(case$model, data, theta), further_of(f, theta)))
      expect_equal(drop(f$log_lik_each(theta)), plain, tolerance = 1e-9,
                   info = paste(name, size, far))
    }
  }
})

test_that("log-likelihoods are those of glm(), glm.nb() and survreg() at their estimates", {
  same <- function(fit, model, further = numeric(), data. = data) {
    f <- model_functions(model, data.)
    expect_identical(head(f$names, length(coef(fit))), names(coef(fit)))
    expect_equal(f$log_lik(c(coef(fit), log(further))), as.numeric(logLik(fit)),
                 tolerance = 1e-10)
  }
  same(glm(count ~ x * g + offset(log(e)), poisson, data),
       regression(count ~ x * g + offset(log(e)), family = poisson, prior_sd = 2.5))
  for (link in c("logit", "probit")) {
    same(glm(cbind(hits, misses) ~ x + g, binomial(link), data),
         regression(cbind(hits, misses) ~ x + g, family = binomial(link), prior_sd = 2.5))
    same(glm(one ~ x + poly(z, 2), binomial(link), data),
         regression(one ~ x + poly(z, 2), family = binomial(link), prior_sd = 2.5))
  }
  fit <- lm(y ~ x + g, data)
  same(fit, regression(y ~ x + g, prior_sd = 2.5), sqrt(mean(residuals(fit)^2)))
  # R's logLik() of a gamma glm has the dispersion deviance / n
  fit <- glm(positive ~ x + z, Gamma("log"), data)
  same(fit, regression(positive ~ x + z, family = Gamma("log"),
                       prior_sd = 2.5), nobs(fit) / deviance(fit))

  skip_if_not_installed("MASS")
  fit <- MASS::glm.nb(wide ~ x + g + offset(log(e)), data)
  same(fit, regression(wide ~ x + g + offset(log(e)), family = "negative_binomial",
                       prior_sd = 2.5), fit$theta)
  quine <- MASS::quine
  fit <- MASS::glm.nb(Days ~ Eth + Sex + Age + Lrn, quine)
  same(fit, regression(Days ~ Eth + Sex + Age + Lrn, family = negative_binomial(),
                       prior_sd = 2.5), fit$theta,
       quine)

  skip_if_not_installed("survival")
  Surv <- survival::Surv
  fit <- survival::survreg(Surv(time, status) ~ x + g, data, dist = "weibull")
  same(fit, regression(Surv(time, status) ~ x + g, family = weibull(),
                       prior_sd = 2.5), 1 / fit$scale)
  fit <- survival::survreg(Surv(time) ~ x, data, dist = "weibull")
  same(fit, regression(time ~ x, family = weibull(), prior_sd = 2.5), 1 / fit$scale)
})

test_that("gradients are zero at maximum likelihood estimates", {
  fit <- glm(cbind(hits, misses) ~ x + g, binomial, data, epsilon = 1e-14)
  f <- model_functions(regression(cbind(hits, misses) ~ x + g, family = binomial(),
                                  prior_sd = 2.5), data)
  expect_lt(max(abs(f$gradient(coef(fit)))), 1e-9)
})

test_that("responses with two classes agree whatever their type", {
  data$factor <- factor(data$one, labels = c("no", "yes"))
  data$text <- as.character(data$factor)
  data$logical <- data$one == 1
  data$none <- 1 - data$one
  value <- function(formula) model_functions(regression(formula, family = binomial(),
                                                        prior_sd = 2.5),
                                             data)$log_lik(c(0.3, -0.7))
  expected <- value(one ~ x)
  for (formula in list(factor ~ x, text ~ x, logical ~ x, cbind(one, none) ~ x))
    expect_equal(value(formula), expected, tolerance = 1e-13)
})

test_that("wrong responses are refused with their row", {
  bad <- function(formula, family, column, value, sentence) {
    data[[column]][7] <- value
    refused(evidence(regression(formula, family = family, prior_sd = 2.5), data), sentence)
  }
  bad(count ~ x, poisson(), "count", -1,
      "must have non-negative whole numbers up to 1e11 as response `count`, not -1 in row 7")
  bad(count ~ x, poisson(), "count", 1.5, "not 1.5 in row 7")
  bad(wide ~ x, negative_binomial(), "wide", -2, "not -2 in row 7")
  bad(cbind(hits, misses) ~ x, binomial(), "misses", -3,
      "numbers up to 1e11 of failures (trials minus successes) as response")
  bad(cbind(hits, misses) ~ x, binomial(), "hits", 0.5, "of successes")
  bad(one ~ x, binomial(), "one", 2, "must have 0 or 1")
  bad(positive ~ x, Gamma("log"), "positive", 0, "must have positive numbers")
  bad(time ~ x, weibull(), "time", 0, "must have positive times")
  bad(y ~ x, gaussian(), "y", NA, "no missing values")
  bad(count ~ x, poisson(), "count", NA, "no missing values")
  refused(evidence(regression(g ~ x, family = binomial(),
                              prior_sd = 2.5), data), "must have two levels")
  skip_if_not_installed("survival")
  Surv <- survival::Surv
  bad(Surv(time, status) ~ x, weibull(), "time", -1, "must have positive times")
  refused(evidence(regression(Surv(time, time + 1, type = "interval2") ~ x, family = weibull(),
                              prior_sd = 2.5),
                   data), "right-censored times")
})

test_that("wrong families and priors are refused in a sentence", {
  refused(regression(y ~ x, family = "poison", prior_sd = 2.5), "not \"poison\"")
  refused(regression(y ~ x, family = quasipoisson(),
                     prior_sd = 2.5), "`family` must be one of")
  refused(regression(y ~ x, family = Gamma(),
                     prior_sd = 2.5), "must have the link \"log\" for Gamma()")
  refused(regression(y ~ x, family = binomial("cloglog"),
                     prior_sd = 2.5), "\"logit\" or \"probit\"")
  refused(regression(y ~ x, family = binomial("cloglog")), "see ?families: density() takes any")
  refused(regression(y ~ x, family = inverse.gaussian()), "see ?families: density() takes any")
  refused(regression(y ~ x, family = 3,
                     prior_sd = 2.5), "`family` must be a family such as")
  refused(regression(y ~ x, prior = 1), "`prior` must be a prior or a list of priors, not 1")
  refused(regression(y ~ x, prior = half_normal(1)), "a prior of a real number")
  refused(regression(y ~ x, prior = list(normal(0, 1), x = half_normal(1))),
          "see \"One-sided hypotheses\" in ?priors")
  refused(regression(y ~ x, auxiliary = normal(0, 1),
                     prior_sd = 2.5), "a prior of a positive number")
  refused(regression(y ~ x, auxiliary = list(size = exponential(1)),
                     prior_sd = 2.5), "not by `size`")
  refused(regression(y ~ x, family = poisson(), auxiliary = exponential(1), prior_sd = 2.5),
          "has no further parameters")
  refused(regression(y ~ x, prior = list(normal(), cauchy())), "must have names for all priors but")
  refused(regression(y ~ x, prior = list(x = normal(), x = cauchy())), "not several for `x`")
  refused(regression(t ~ x, family = student(4), auxiliary = list(df = exponential(1)),
                     prior_sd = 2.5),
          "write `student(df = )`")
  refused(student(-1), "`df` must be a positive number or a prior, not -1")
  refused(normal(0, 0), "`sd` must be a positive number, not 0")
  refused(half_student(0), "`df` must be a positive number")
  refused(evidence(regression(y ~ x, prior = list(w = normal())), data), "not by `w`")
  refused(evidence(regression(y ~ x + z, prior = list(x = normal())), data), "not none for `z`")
  data$sigma <- 1
  refused(evidence(regression(y ~ sigma,
      prior_sd = 2.5), data), "no covariate with the name of a parameter")
})

test_that("priors are those of plain R, with the Jacobian", {
  real <- list(
    list(normal(1, 3), function(x) dnorm(x, 1, 3)),
    list(student_t(3, -1, 2), function(x) dt((x + 1) / 2, 3) / 2),
    list(cauchy(1, 0.5), function(x) dcauchy(x, 1, 0.5)))
  positive <- list(
    list(half_normal(2), function(x) 2 * dnorm(x, 0, 2)),
    list(half_student(3, 2), function(x) 2 * dt(x / 2, 3) / 2),
    list(inverse_gamma(2, 5), function(x) dgamma(1 / x, 2, 5) / x^2),
    list(exponential(0.3), function(x) dexp(x, 0.3)))
  for (coefficient in real) for (scale in positive) {
    f <- model_functions(regression(y ~ x, intercept = normal(0, 1), prior = coefficient[[1]],
                                    auxiliary = scale[[1]]), data)
    for (theta in list(c(0.3, -2, 0.4), c(-1, 50, -3), c(0, 1, 2))) {
      expected <- dnorm(theta[1], log = TRUE) + log(coefficient[[2]](theta[2])) +
        log(scale[[2]](exp(theta[3]))) + theta[3]
      expect_equal(f$log_prior(theta), expected, tolerance = 1e-10)
    }
  }
})

test_that("priors are printed as they are written", {
  expect_output(print(half_student(3, 10)), "Prior: half_student(df = 3, scale = 10)", fixed = TRUE)
  model <- regression(y ~ x, prior = list(normal(0, 1), "(Intercept)" = cauchy(0, 10)))
  expect_output(print(model), "(Intercept) ~ student_t(df = 1, location = 0, scale = 10)",
                fixed = TRUE)
  expect_output(print(student(df = exponential(0.1))), "student(df = exponential(rate = 0.1))",
                fixed = TRUE)
})

test_that("simulated responses follow the model", {
  for (name in names(regression_cases())) {
    model <- regression_cases()[[name]]$model
    f <- model_functions(model, data)
    theta <- f$draw_prior(1, seed = test_seed()) / 10
    drawn <- simulate(model, data = data, seed = test_seed(), parameters = theta,
                      unconstrained = TRUE)
    expect_identical(dim(drawn), dim(data))
    expect_true(is.finite(model_functions(model, drawn)$log_lik(theta)), info = name)
  }
})

test_that("means of many simulated responses are fitted values", {
  wide <- data[rep(1:4, 5000), ]
  for (name in names(regression_cases())) {
    model <- regression_cases()[[name]]$model
    f <- model_functions(model, wide)
    theta <- rep(c(0.3, -0.2), length.out = f$dim)
    theta[grepl("^log\\(", f$names)] <- log(3)
    drawn <- simulate(model, data = wide, seed = test_seed(), parameters = theta,
                      unconstrained = TRUE)
    fit <- list(model = model, log_weights = 0, parameters = matrix(theta, 1),
                design = encode(model, wide)$design)
    mean <- regression_mean(fit, encode(model, wide[1:4, ]))
    response <- encode(model, drawn)$rows
    found <- matrix(response[nrow(response), ], 4)
    expect_z(z_score(t(found), mean))
  }
})

test_that("predictions and the usual verbs agree with glm() on many rows", {
  data <- regression_data(5000, 3)
  fit <- quiet_fit(regression(count ~ x + offset(log(e)), family = poisson(),
                              prior_sd = 2.5), data,
                   seed = test_seed())
  reference <- glm(count ~ x + offset(log(e)), poisson, data)
  expect_equal(fitted(fit, data), unname(fitted(reference)), tolerance = 0.02)
  expect_equal(predict(fit, data[1:9, c("x", "e")]),
               unname(predict(reference, data[1:9, ], type = "response")), tolerance = 0.02)
  expect_equal(fitted(fit, data) + residuals(fit, data), as.double(data$count), tolerance = 1e-12)
  expect_lt(deviance(fit, data), -2 * as.numeric(logLik(reference)) + 5)

  fit <- quiet_fit(regression(y ~ x + z, prior_sd = 2.5), data, seed = test_seed())
  expect_equal(sigma(fit), sigma(lm(y ~ x + z, data)), tolerance = 0.02)
  expect_named(coef(fit), c("(Intercept)", "x", "z", "sigma"))

  fit <- quiet_fit(regression(cbind(hits, misses) ~ x, family = binomial(),
                              prior_sd = 2.5), data,
                   seed = test_seed())
  expect_equal(predict(fit, data[1:9, ], type = "density"),
               dbinom(data$hits, data$trials,
                      predict(glm(cbind(hits, misses) ~ x, binomial, data), type = "response"),
                      log = TRUE)[1:9], tolerance = 0.02)
  expect_error(sigma(fit), class = "logevidence_error")
})

test_that("new data must be of the same kind", {
  data$class <- factor(data$one, labels = c("no", "yes"))
  fit <- quiet_fit(regression(class ~ x, family = binomial(),
                              prior_sd = 2.5), data, seed = test_seed())
  other <- data.frame(x = 1:2, class = factor(c("no", "perhaps")))
  refused(predict(fit, other, type = "density"), "not \"perhaps\" in row 2")
  expect_length(predict(fit, data.frame(x = 1:2)), 2)
})

test_that("rows from a source give what a data frame gives", {
  blocks <- function() {
    at <- 0
    rows_function(function(reset) {
      if (reset) at <<- 0
      else if (at < nrow(data)) data[(at <<- at + 40) - 39:0, ]
    })
  }
  for (name in c("poisson", "binomial, trials", "gaussian", "gamma")) {
    model <- regression_cases()[[name]]$model
    one <- quiet_fit(model, data, sgais(order = "given"), seed = test_seed(3))
    other <- quiet_fit(model, blocks(), sgais(order = "given"), seed = test_seed(3))
    for (part in c("log_evidence", "se", "draws", "n"))
      expect_identical(other[[part]], one[[part]], info = paste(name, part))
  }
  data$count[150] <- -1
  refused(evidence(regression(count ~ x, family = poisson(),
                              prior_sd = 2.5), blocks()), "not -1 in row 150")
})

test_that("families on the same response can be compared", {
  counts <- list(poisson = poisson(), wide = negative_binomial())
  fits <- lapply(counts, function(family)
    quiet_fit(regression(wide ~ x + z + offset(log(e)), family = family,
                         prior_sd = 2.5), data, seed = test_seed()))
  table <- compare_models(fits$poisson, fits$wide)
  expect_gt(fits$wide$log_evidence, fits$poisson$log_evidence + 10)
  expect_identical(nrow(as.data.frame(table)), 2L)
})

test_that("a coefficient far from its prior is named", {
  data <- regression_data(5000)
  data$tiny <- data$x / 50
  fit <- quiet_fit(regression(count ~ tiny, family = poisson(),
                              prior_sd = 2.5), data, seed = test_seed())
  expect_match(fit$warnings, "`tiny`", all = FALSE)
  # not under heavy tails
  fit <- quiet_fit(regression(count ~ tiny, family = poisson(), prior = cauchy(0, 2.5)), data,
                   seed = test_seed())
  expect_null(fit$prior_conflict)
})

# The model as C has it, for ask().
raw_model <- function(model, data) {
  encoded <- encode(model, data)
  list(type = "regression", dim = length(encoded$theta_names), width = nrow(encoded$rows),
       args = encoded$args, rows = encoded$rows)
}

test_that("densities and gradients at extreme points are never NaN", {
  wild <- c(0, 1e-300, 40, 750, 1500, 1e5, 1e10, 1e100, 1e155, 1e300, .Machine$double.xmax)
  legal <- function(x) !anyNA(x) && all(x < Inf)
  for (name in names(regression_cases())) {
    raw <- raw_model(regression_cases()[[name]]$model, data[1:130, ])
    points <- with_own_seed(test_seed(10), cbind(
      outer(rep(1, raw$dim), c(wild, -wild)),
      matrix(sample(c(wild, -wild), 100 * raw$dim, TRUE), raw$dim)))
    for (what in c("log_lik", "log_prior", "log_lik_each"))
      expect_true(legal(ask(raw, what, points, raw$rows)), info = paste(name, what))
    both <- ask(raw, "log_lik_grad", points, raw$rows)
    expect_true(legal(both$value), info = name)
    expect_true(all(is.finite(both$gradient)), info = name)
    expect_false(anyNA(ask(raw, "log_prior_grad", points)), info = name)
    for (i in fast_or_slow(seq(2, 40, 4), 1:40)) {
      answer <- tryCatch(ask(raw, "log_lik_hess", points[, i], raw$rows),
                         logevidence_error = function(e) NULL)
      expect_true(is.null(answer) || all(is.finite(unlist(answer))), info = paste(name, i))
    }
  }
})

test_that("all vector instructions give the same densities and derivatives", {
  for (name in names(regression_cases())) {
    raw <- raw_model(regression_cases()[[name]]$model, data)
    theta <- prior_draws(raw, 3) / 4
    with_simd <- function(simd, what, theta) {
      raw$args$simd <- simd
      ask(raw, what, theta, raw$rows)
    }
    for (simd in c("avx2", "avx512")) {
      for (what in c("log_lik", "log_lik_grad", "log_lik_each"))
        expect_equal(with_simd(simd, what, theta), with_simd("plain", what, theta),
                     tolerance = 1e-12, info = paste(name, simd, what))
      expect_equal(with_simd(simd, "log_lik_hess", theta[, 1]),
                   with_simd("plain", "log_lik_hess", theta[, 1]), tolerance = 1e-12,
                   info = paste(name, simd))
    }
  }
})

test_that("a response of two classes may be a factor with further levels, as in glm()", {
  two <- subset(iris, Species != "versicolor")
  model <- regression(Species ~ Sepal.Length, binomial())
  fit <- evidence(model, two, seed = 1, progress = FALSE)
  expect_identical(logml(fit), logml(evidence(model, droplevels(two), seed = 1, progress = FALSE)))
  expect_identical(levels(predict(fit, two, "class")), c("setosa", "virginica"))
  expect_error(evidence(model, iris, progress = FALSE), "must have two levels in the response")
})

test_that("a fit names levels without rows that keep their coefficients", {
  two <- subset(iris, Species != "virginica")
  fit <- evidence(linear_regression(Sepal.Length ~ Species), two, seed = 1, progress = FALSE)
  expect_output(print(fit), "No row has the level \"virginica\" of `Species`. Levels without rows",
                fixed = TRUE)
  later <- update(fit, iris[140:141, ])
  expect_false(any(grepl("No row", capture.output(print(later)))))
  expect_false(any(grepl("No row", capture.output(print(
    evidence(fit$model, droplevels(two), seed = 1, progress = FALSE))))))
  # also in formulas of further parameters and of densities
  two <- transform(iris[1:100, ], y = Sepal.Width)
  note <- "No row has the level \"virginica\" of `Species`. Levels without rows"
  expect_output(print(quiet_fit(linear_regression(y ~ 1, sigma ~ Species), two)), note,
                fixed = TRUE)
  written <- density(~ dnorm(y, m, exp(s), log = TRUE), m = ~ Species, s = ~ Species)
  expect_output(print(quiet_fit(written, two)), note, fixed = TRUE)
})

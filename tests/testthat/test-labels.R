# Names of fits in comparisons, the reference, and rows that are the same in other forms.

quick <- laplace(importance = 50)
run <- function(model, data = cars, seed = test_seed(), ...)
  quiet_fit(model, data, quick, seed = seed, progress = FALSE, ...)
regression_of <- function(formula, sd = 20) linear_regression(formula, sigma = 15, prior_sd = sd)
labels_of <- function(...) model_labels(list(...))

test_that("labels say what differs between the models", {
  line <- run(regression_of(dist ~ speed))
  expect_identical(labels_of(line, run(regression_of(dist ~ 1))), c("dist ~ speed", "dist ~ 1"))
  expect_identical(labels_of(line, run(regression_of(dist ~ speed, 10))),
                   c("prior_sd = 20", "prior_sd = 10"))
  expect_identical(labels_of(line, run(regression_of(dist ~ speed, 10)),
                             run(regression_of(dist ~ 1, 10))),
                   c("dist ~ speed, prior_sd = 20", "dist ~ speed, prior_sd = 10",
                     "dist ~ 1, prior_sd = 10"))
  # whether a prior is that of the intercept, too, belongs to it
  default <- run(linear_regression(dist ~ speed))
  own <- "prior = normal(mean = 0, sd = 2.5), intercept = normal(mean = 0, sd = 10)"
  expect_identical(labels_of(default, run(linear_regression(dist ~ speed, prior = normal(0, 5)))),
                   c(own, "prior = normal(mean = 0, sd = 5), also of the intercept"))
  expect_identical(labels_of(default, run(linear_regression(dist ~ speed, prior_sd = 5))),
                   c(own, "prior_sd = 5, also of the intercept"))
  # priors by name, and those without one for the intercept, are not said to be of it
  named <- list(`(Intercept)` = normal(0, 9), speed = normal(0, 2))
  expect_identical(labels_of(default, run(linear_regression(dist ~ speed, prior = named))),
                   c(own, paste("prior = (Intercept) ~ normal(mean = 0, sd = 9),",
                                "speed ~ normal(mean = 0, sd = 2)")))
  exactly <- lapply(list(linear_regression(dist ~ speed),
                         linear_regression(dist ~ speed, prior = jzs())), quiet_fit, cars, exact())
  expect_identical(model_labels(exactly), c(own, "prior = jzs(scale = 0.353553)"))
  exactly <- evidence(line$model, cars, exact(), seed = test_seed())
  expect_identical(labels_of(line, exactly), c("laplace(importance = 50)", "exact()"))
  expect_null(labels_of(line, line))
  families <- lapply(c("gaussian", "student"), function(family)
    run(regression(dist ~ speed, family = family, prior = normal(0, 20))))
  expect_identical(model_labels(families), c("gaussian()", "student(df = 4)"))
})

test_that("long names stay different when they are cut", {
  long <- paste("a very long name of a model, number", 1:3)
  for (width in c(8, 12, 20, 31)) {
    short <- shorten_apart(c(long, "short"), width)
    expect_lte(max(nchar(short)), width)
    expect_identical(anyDuplicated(short), 0L)
    expect_identical(short[4], "short")
  }
  inside <- paste0(strrep("x", 20), c("A", "B"), strrep("y", 20))
  expect_identical(anyDuplicated(shorten_apart(inside, 12)), 0L)
  expect_identical(shorten_apart(long, 60), long)
})

test_that("of long formulas the terms that differ are shown", {
  long <- paste("dist ~", paste0("I(speed^", 1:6, "/1000)", collapse = " + "))
  fits <- list(run(regression_of(stats::as.formula(long))),
               run(regression_of(stats::as.formula(paste(long, "+ sin(speed)")))))
  expect_identical(model_labels(fits), c("~ ...", "~ ... + sin(speed)"))
})

test_that("fits of calls, of a list and of a loop have names of their own", {
  table <- compare_models(run(regression_of(dist ~ speed)), run(regression_of(dist ~ 1)))
  expect_setequal(table$model, c("dist ~ speed", "dist ~ 1"))
  fits <- list()
  for (k in 2:3) fits[[k - 1]] <- run(regression_of(dist ~ poly(speed, k)))
  table <- compare_models(fits)
  expect_setequal(table$model, c("dist ~ poly(speed, 2)", "dist ~ poly(speed, 3)"))
  lagged <- list()
  for (p in 1:2) lagged[[p]] <- run(regression_of(dist ~ lags(speed, 1:p)), cars[p:50, ])
  expect_setequal(model_labels(lagged), c("dist ~ lags(speed, 1:1)", "dist ~ lags(speed, 1:2)"))
  normals <- lapply(1:2, function(k) density(~ dnorm(y, mu, k, log = TRUE), mu = ~ x))
  stand_ins <- lapply(normals, function(model) list(model = model, draws = matrix(0, 0, 0)))
  expect_match(model_labels(stand_ins)[2], "dnorm(y, mu, 2, log = TRUE)", fixed = TRUE)
  expect_identical(compare_models(fits[[1]], fits[[2]])$model[1],
                   paste0("fits[[", which.max(vapply(fits, logml, 0)), "]]"))
})

test_that("in a loop responses that belong to other rows are still found", {
  k <- 10
  one <- run(regression_of(dist ~ I((speed > k) + 0)))
  turned <- transform(cars, dist = rev(dist))
  k <- 15
  other <- run(regression_of(dist ~ I((speed > k) + 0)))
  expect_setequal(compare_models(list(one, other))$model, 
                  c("dist ~ I((speed > 10) + 0)", "dist ~ I((speed > 15) + 0)"))
  refused(compare_models(one, b = run(regression_of(dist ~ I((speed > k) + 0)), turned)),
          "the values of `speed` belong to different responses")
  refused(compare_models(one, b = run(regression_of(dist ~ speed), turned)),
          "the values of `speed` belong to different responses")
  expect_s3_class(compare_models(one, b = run(regression_of(dist ~ speed))), "model_comparison")
})

test_that("a response of two columns is the same however it is written", {
  trials <- data.frame(y = c(3, 5, 7, 2), n = c(10, 12, 9, 8), x = 1:4)
  bound <- run(regression(cbind(y, n - y) ~ x, "binomial", prior = normal(0, 2.5)), trials)
  written <- run(density(~ dbinom(y, n, plogis(p), log = TRUE), p = ~ x), trials)
  table <- compare_models(bound, written)
  expect_lt(diff(range(table$log_evidence)), 0.2)
  other <- run(density(~ dbinom(y, n, plogis(p), log = TRUE), p = ~ x),
               transform(trials, n = rev(n)))
  refused(compare_models(bound, other), "as many, but with other values")
  own <- custom_model("p", function(p, d) sum(dbinom(d$y, d$n, plogis(p), log = TRUE)),
                      function(p) dnorm(p, log = TRUE), rnorm)
  expect_s3_class(compare_models(bound, own = quiet_fit(own, trials, nested(20, slice()),
                                                        seed = test_seed())), "model_comparison")
  ten <- run(regression(cbind(y, 10 - y) ~ x, family = "binomial"), trials)
  expect_s3_class(compare_models(ten, b = run(density(~ dbinom(y, 10, plogis(p), log = TRUE),
                                                      p = ~ x), trials)), "model_comparison")
})

test_that("censored times are the same as Surv() and in a density", {
  skip_if_not_installed("survival")
  set.seed(test_seed())
  times <- data.frame(time = rexp(40), event = rep(c(1, 1, 0), length.out = 40), x = rnorm(40))
  log_density <- ~ ifelse(event == 1, dweibull(time, exp(k), exp(m), log = TRUE),
                          pweibull(time, exp(k), exp(m), lower.tail = FALSE, log.p = TRUE))
  written <- run(density(log_density, m = ~ x, k = ~ 1), times)
  censored <- run(regression(survival::Surv(time, event) ~ x, family = "weibull"), times)
  expect_s3_class(compare_models(written, censored), "model_comparison")
  swapped <- run(regression(survival::Surv(time, rev(event)) ~ x, family = "weibull"), times)
  refused(compare_models(written, swapped), "as many, but with other values")
})

test_that("`same_rows` leaves the check out, but not that of the numbers of rows", {
  line <- run(regression_of(dist ~ speed))
  feet <- run(regression_of(I(dist * 1) ~ speed), transform(cars, dist = dist + 1e-12))
  refused(compare_models(line, feet), "as many, but with other values")
  table <- compare_models(line, feet, same_rows = TRUE)
  expect_match(said(table), "That all fits are to the same observations was said by `same_rows`.")
  refused(compare_models(line, b = run(regression_of(dist ~ 1), cars[-1, ]), same_rows = TRUE),
          "`line` has 50 observations, `b` 49.")
  refused(compare_models(line, feet, same_rows = NA), "`same_rows` must be TRUE or FALSE, not NA.")
})

test_that("Bayes factors are given over the reference", {
  line <- run(regression_of(dist ~ speed))
  pretend <- function(log_evidence) {
    line$log_evidence <- log_evidence
    line
  }
  fits <- list(a = pretend(-10), b = pretend(-13), c = pretend(-20))
  table <- compare_models(fits, reference = "b")
  expect_identical(table$model, c("a", "b", "c"))
  expect_equal(table$log_bf, c(3, 0, -7))
  expect_identical(table$against, c("in favour: strong", "-", "decisive"))
  expect_equal(table$posterior, compare_models(fits)$posterior)
  expect_identical(compare_models(fits, reference = 2)$log_bf, table$log_bf)
  expect_match(said(table), "Bayes factors are those of each model over b.", fixed = TRUE)
  expect_no_match(said(compare_models(fits)), "Bayes factors are")
  refused(compare_models(fits, reference = "d"),
          "`reference` must be the name (`a`, `b`, `c`) or number of one of the fits, not \"d\".")
  refused(compare_models(fits, reference = 4), "number of one of the fits, not 4.")
  fits$b$failed <- "It has failed."
  refused(compare_models(fits, reference = "b"),
          "`reference` must be a fit that passed its own checks, not `b`.")
})

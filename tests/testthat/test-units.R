# Priors that are not given have the units of the data; those that are given are never changed.

units_data <- with_own_seed(test_seed(77), {
  n <- 80
  d <- data.frame(x = 5 + 2 * rnorm(n), z = rnorm(n), g = factor(rep_len(c("a", "b", "c"), n)),
                  id = rep(1:16, each = 5))
  eta <- 0.3 * (d$x - 5) / 2 + 0.4 * d$z + rnorm(16, 0, 0.5)[d$id]
  transform(d, y = 3 + eta + rnorm(n), count = rpois(n, exp(0.5 + eta)),
            hit = rbinom(n, 1, plogis(eta)), time = rgamma(n, 2, 2 / exp(eta)),
            kind = factor(sample(c("u", "v", "w"), n, TRUE)))
})

test_that("log Bayes factors do not change with the units of columns and responses", {
  # names of responses that can be moved, that can be multiplied, and others
  pairs <- list(
    list(c(y ~ x, y ~ x + z), gaussian(), "moved"), list(c(y ~ 1, y ~ z * g), gaussian(), "moved"),
    list(c(y ~ g, y ~ g + x), "student", "moved"),
    list(c(hit ~ 1, hit ~ x + g), binomial(), ""), list(c(count ~ z, count ~ x), poisson(), ""),
    list(c(count ~ 1, count ~ x), "negative_binomial", ""),
    list(c(time ~ 1, time ~ x + z), Gamma("log"), "scaled"),
    list(c(time ~ z, time ~ x), "weibull", "scaled"),
    list(c(y ~ x, y ~ x + (1 | id)), gaussian(), "moved"),
    list(c(count ~ 1 + (1 | id), count ~ x + (1 | id)), poisson(), ""))
  other <- transform(units_data, x = 1e3 * x - 7e4, z = z / 500)
  for (pair in pairs) {
    there <- other
    if (pair[[3]] == "moved") there$y <- 300 - 25 * there$y
    if (pair[[3]] == "scaled") there$time <- 365 * there$time
    jacobian <- 80 * log(c(moved = 25, scaled = 365)[pair[[3]]])
    closed <- !is.character(pair[[2]]) && pair[[2]]$family == "gaussian" &&
      !any(grepl("|", vapply(pair[[1]], deparse1, ""), fixed = TRUE))
    for (formula in pair[[1]]) {
      fits <- lapply(list(units_data, there), function(data)
        quiet_fit(regression(formula, pair[[2]]), data, if (closed) exact() else sgais(),
                  seed = test_seed()))
      away <- fits[[1]]$log_evidence - fits[[2]]$log_evidence - if (is.na(jacobian)) 0 else jacobian
      expect_lt(abs(away), if (closed) 1e-6 else 4 * (fits[[1]]$se + fits[[2]]$se),
                label = deparse1(formula))
    }
  }
  mixture <- function(data) vapply(1:2, function(k)
    quiet_fit(gaussian_mixture(~ x + z, k), data, laplace(importance = 2000),
              seed = test_seed())$log_evidence, 0)
  expect_equal(diff(mixture(units_data)), diff(mixture(other)), tolerance = 1e-3)
  classes <- function(data) quiet_fit(softmax_regression(kind ~ x + g), data,
                                      seed = test_seed())$log_evidence
  expect_equal(classes(units_data), classes(other), tolerance = 1e-6)
})

test_that("on standardised columns the defaults are numbers without units", {
  own <- transform(units_data, x = c(scale(x)), z = c(scale(z)), y = c(scale(y)))
  written <- regression(y ~ x + z, prior = normal(0, 2.5), intercept = normal(0, 10),
                        auxiliary = half_student(3, 2.5))
  expect_equal(evidence(regression(y ~ x + z), own, exact())$log_evidence,
               evidence(written, own, exact())$log_evidence, tolerance = 1e-10)
  table <- prior_summary(evidence(regression(y ~ x + z), own, exact()))
  expect_equal(table$scale, c(10, 2.5, 2.5, 2.5))
  expect_true(all(table$default))
})

test_that("given priors are in the units of the columns, and the intercept has its own", {
  d <- units_data
  fit <- evidence(regression(y ~ x + g, prior = list(x = normal(0, 3), normal(1, 2))), d, exact())
  table <- prior_summary(fit)
  expect_identical(table$default, c(TRUE, FALSE, FALSE, FALSE, TRUE))
  expect_equal(table$location[1:4], c(mean(d$y), 0, 1, 1))
  expect_equal(table$scale, c(10 * sd(d$y), 3, 2, 2, 2.5 * sd(d$y)))
  # the prior of the intercept is that of an average row: by hand, with centred columns
  centred <- transform(d, x = x - mean(x), b = (g == "b") - mean(g == "b"),
                       c = (g == "c") - mean(g == "c"))
  hand <- regression(y ~ x + b + c, prior = list(x = normal(0, 3), normal(1, 2)),
                     intercept = normal(mean(d$y), 10 * sd(d$y)),
                     auxiliary = half_student(3, 2.5 * sd(d$y)))
  expect_equal(fit$log_evidence, evidence(hand, centred, exact())$log_evidence, tolerance = 1e-9)
  # all given: columns stay as they are
  given <- regression(y ~ x, prior_sd = 2, auxiliary = half_normal(1))
  expect_null(encode(given, d)$args$user_scale)
  # a test without effect: the same as with this prior written out
  n <- 400
  trial <- data.frame(arm = rep(0:1, n / 2), won = rep(c(0, 0, 1, 1, 0), n / 5))
  bf <- function(...) {
    of <- function(formula) evidence(regression(formula, binomial(), prior = normal(0, 0.3), ...),
                                     trial, seed = test_seed())
    bayes_factor(of(won ~ arm), of(won ~ 1))
  }
  expect_equal(bf()$log_bf, bf(intercept = in_units(normal(0, 5)))$log_bf)
  expect_false(any(grepl("Different priors", attr(bf(), "said"))))
})

test_that("units are those of the first rows, wherever rows come from", {
  d <- units_data
  model <- regression(y ~ x + g)
  first <- evidence(model, d[1:30, ], seed = test_seed())
  more <- update(first, d[31:80, ])
  expect_identical(more$args$prior_scale, first$args$prior_scale)
  expect_identical(more$args$user_scale, first$args$user_scale)
  # as a model with these units has it for all rows
  whole <- evidence(at_units_of(first), d, exact())
  expect_lt(abs(more$log_evidence - whole$log_evidence), 4 * more$se)
  expect_equal(predict(more, d[1:5, ]), predict(whole, d[1:5, ]), tolerance = 0.02)
  # log_lik() of a fit whose first rows have given the units
  at <- more$draws
  expect_equal(unname(log_lik(more, d, weighted = TRUE)[, 3]), dnorm(
    d$y[3], drop(at[, 1:4] %*% model.matrix(~ x + g, d)[3, ]), at[, "sigma"], log = TRUE))
  source <- evidence(model, in_blocks(d, 20), seed = test_seed())
  memory <- evidence(model, d, seed = test_seed())
  expect_equal(prior_summary(source), prior_summary(memory), tolerance = 1e-12)
  expect_lt(abs(source$log_evidence - memory$log_evidence), 4 * (source$se + memory$se))
  # groups, of which an update makes all sums again
  grouped <- regression(y ~ x + (1 + z | id))
  begun <- evidence(grouped, d[1:40, ], seed = test_seed())
  both <- update(begun, d[41:80, ])
  expect_identical(both$args$prior_scale, begun$args$prior_scale)
  same <- evidence(at_units_of(begun), d, seed = test_seed())
  expect_lt(abs(both$log_evidence - same$log_evidence), 4 * (both$se + same$se))
  expect_equal(predict(both, d[1:5, ]), predict(same, d[1:5, ]), tolerance = 0.05)
  # a run that goes on, and rows of a mixture
  file <- tempfile()
  on.exit(unlink(file))
  mixture <- gaussian_mixture(~ x + z, 2)
  evidence(mixture, in_blocks(d, 20), seed = 1, checkpoint = file, time_limit = 1e-9)
  expect_identical(resume(file, in_blocks(d, 20))$log_evidence,
                   evidence(mixture, in_blocks(d, 20), seed = 1)$log_evidence)
})

test_that("rows in shards have the units of all rows, not those of their first rows", {
  # constants of parts are those of the whole, also far from zero and beside huge numbers
  parts <- with_own_seed(test_seed(4), cbind(
    far = 1e9 + rnorm(700), huge = 1e200 * rnorm(700), same = 3, zeros = 0,
    binary = rep(c(0, 1), c(200, 500)), e = rnorm(700)))
  model <- regression(e ~ far)
  of <- function(rows) constants_of_rows(unit_model(model), t(parts[rows, , drop = FALSE]))
  split <- Reduce(joined_constants, list(of(1:200), NULL, of(201), of(202:700)))
  whole <- of(1:700)
  expect_equal(split["sd", ], whole["sd", ], tolerance = 1e-12)
  expect_lt(max(abs(split["mean", ] / whole["mean", ] - 1), na.rm = TRUE), 1e-12)
  expect_identical(split["kind", ], whole["kind", ])
  expect_identical(split["mean", "same"], 3)
  small <- c("binary", "e")
  expect_equal(split["exp", small], whole["exp", small])
  cl <- local_cluster()
  # sorted, so that no shard is like all rows
  d <- with_own_seed(test_seed(5), {
    d <- data.frame(x = sort(rnorm(12000, 50, 3)), z = rgamma(12000, 1), g = rep(1:40, each = 300))
    d$f <- factor(ifelse(d$x > 50, "b", "a"))
    d$y <- 100 + 2 * d$x + d$g / 10 + 7 * rnorm(12000)
    d$p <- rgamma(12000, 2, exp(-0.05 * d$x + d$z))
    d
  })
  open <- function(shard) d[seq(4000 * shard - 3999, 4000 * shard), ]
  environment(open) <- list2env(list(d = d), parent = baseenv())
  same <- function(model, method = laplace(importance = 500), tolerance = 1e-4) {
    away <- quiet_fit(model, rows_cluster(cl, open, 3), method, seed = test_seed())
    here <- quiet_fit(model, d, method, seed = test_seed())
    expect_equal(prior_summary(away)$prior, prior_summary(here)$prior)
    expect_lt(abs(away$log_evidence - here$log_evidence), tolerance)
    away
  }
  fit <- same(regression(y ~ x + f), exact())
  expect_identical(fit$shards$passes, 2)
  expect_null(fit$model$units)
  same(linear_regression(y ~ x + offset(2 * x), sigma = 7), exact())
  same(regression(y ~ x + offset(2 * x), sigma ~ z))
  same(regression(p ~ x + offset(-z), family = "gamma"))
  same(softmax_regression(f ~ z))
  same(gaussian_mixture(~ x + z, 1))
  for (formula in list(y ~ 0 + x + (1 + z | g), y ~ . + (1 | g) - p))
    same(regression(formula), tolerance = 0.05)
  given <- regression(y ~ x, prior = normal(0, 1), intercept = normal(0, 100),
                      auxiliary = half_normal(20))
  expect_identical(same(given, exact())$shards$passes, 1)
  given$scale <- TRUE
  same(given, exact())
  # a run that stops among the constants goes on from its checkpoint, with the same bits
  file <- tempfile()
  on.exit(unlink(file))
  once <- evidence(regression(y ~ x + f), rows_cluster(cl, open, 3), exact(), seed = 1)
  halt <- function(shard) {
    rows <- d[seq(4000 * shard - 3999, 4000 * shard), ]
    if (shard == 3) rows$y[4000] <- Inf
    rows
  }
  environment(halt) <- environment(open)
  expect_error(evidence(regression(y ~ x + f), rows_cluster(cl[1], halt, 3), exact(), seed = 1,
                        checkpoint = file, every = 0), "Shard 3")
  expect_same(resume(file, rows_cluster(cl, open, 3)), once)
})

test_that("without a response units are one, and simulated data have the units of the data", {
  d <- units_data
  drawn <- simulate(regression(y ~ x), nsim = 200, data = d["x"], seed = 1)
  # the prior of the mean of an average row is normal with standard deviation 10
  centre <- vapply(drawn, function(one) mean(one$y), 0)
  expect_lt(abs(sd(centre) / 10 - 1), 0.25)
  moved <- transform(d, y = 1e4 + 100 * y)
  centre <- vapply(simulate(regression(y ~ x), 200, data = moved, seed = 1),
                   function(one) mean(one$y), 0)
  expect_lt(abs(mean(centre) - mean(moved$y)), 4 * 1000 * sd(d$y) / sqrt(200))
  expect_identical(encode(at_unit_one(regression(y ~ x)), d)$args$prior_scale, c(10, 2.5, 2.5))
  bounds <- bdmc(linear_regression(y ~ x, sigma = 1), data = d["x"], method = ais(20), chains = 2,
                 seed = 1)
  expect_lt(bounds$bounds$lower[3], bounds$bounds$upper[3] + 1)
})

test_that("constant and binary columns have no units", {
  one <- transform(units_data, y = 250)
  expect_identical(response_units(regression(y ~ x), one$y), list(centre = 250, scale = 1))
  expect_identical(response_units(regression(y ~ x), 3), list(centre = 3, scale = 1))
  expect_identical(response_units(regression(count ~ x, poisson()), 1:9), UNIT_ONE)
  expect_equal(response_units(regression(time ~ x, weibull()), c(1, 3), log(c(2, 2))),
               list(centre = 0, scale = 1))
  rare <- transform(units_data, rare = rep(c(1, 0), c(2, 78)), same = 4)
  scaling <- encode(regression(y ~ rare + same + x), rare)$design$scaling
  expect_equal(scaling$scale, c(`(Intercept)` = 1, rare = 1, same = 1, x = sd(rare$x)))
  expect_equal(scaling$centre, c(`(Intercept)` = 0, rare = 2 / 80, same = 0, x = mean(rare$x)))
})

test_that("first rows that do not vary, and priors that groups overrule, give a warning", {
  flat <- data.frame(x = c(rep(1, 1500), seq(-1, 1, length.out = 500)),
                     y = c(rep(5, 1500), sin(1:500)))
  with_head <- function(code) expect_output(print(code), "Note: Default priors have a unit of one")
  with_head(quiet_fit(regression(y ~ x, prior = normal(0, 1)), flat[1, ], seed = 1))
  blocks <- in_blocks(flat, 500)
  expect_output(print(with_first_rows(1000, quiet_fit(regression(y ~ x), blocks, seed = 1))),
                "the response `y` and for `x`, which\\s+does not vary in the first 1,000 rows")
  d <- units_data
  d$y <- d$y + 100
  usual <- list(y ~ x + (1 | id), prior = normal(0, 2), intercept = normal(0, 5),
                auxiliary = half_student(3, 2), group_sd = half_normal(2))
  against <- function(...) paste(quiet_fit(do.call(regression, utils::modifyList(
    usual, list(...))), d, seed = 1)$warnings, collapse = " ")
  expect_match(against(), "effects of groups have taken its place (likewise `sd_id_(Intercept)`",
               fixed = TRUE)
  expect_no_match(against(intercept = normal(100, 10)), "contradict")
  narrow <- quiet_fit(regression(y ~ x, sigma = half_normal(0.1)), d, exact())
  expect_match(narrow$warnings, "the posterior of `sigma` lies beyond 0.348", all = FALSE)
})

test_that("a comparison names shared parameters with other priors, and their effect", {
  d <- units_data
  fit <- function(formula, ...) evidence(regression(formula, ...), d, exact(), seed = 1)
  wide <- fit(y ~ 1, intercept = normal(3, 50), auxiliary = half_normal(2))
  narrow <- fit(y ~ x, intercept = normal(3, 1), auxiliary = half_normal(2))
  said <- paste(attr(bayes_factor(narrow, wide), "said"), collapse = " ")
  expect_match(said, "Different priors of shared parameters: `(Intercept)`", fixed = TRUE)
  # the change is known: the evidence of the other with this prior
  other <- fit(y ~ 1, intercept = normal(3, 1), auxiliary = half_normal(2))
  moved <- reweighted(wide, priors_of_fit(wide)["(Intercept)"], priors_of_fit(other)["(Intercept)"])
  expect_lt(abs(moved[1] - (other$log_evidence - wide$log_evidence)), 4 * moved[2] + 0.01)
  expect_output(print(compare_models(narrow = narrow, wide = wide)), "would be 3[.0-9]*\\s+higher")
  # too few draws near a prior that is far away
  far <- fit(y ~ x, intercept = normal(900, 1), auxiliary = half_normal(2))
  expect_match(priors_sentence(list(far = far, wide = wide), "far"), "not known from the draws")
  # the same, or of another link: nothing
  expect_null(priors_sentence(list(a = fit(y ~ 1), b = fit(y ~ x)), "a"))
})

test_that("print(), prior_summary(), plots and generics of other packages show the priors", {
  d <- units_data
  fit <- quiet_fit(regression(y ~ x + (1 | id)), d, seed = 1)
  expect_output(print(fit), "priors: (Intercept) of an average row ~ normal(", fixed = TRUE)
  expect_output(print(fit), "sd_id_(Intercept) ~ half_student(3, ", fixed = TRUE)
  expect_output(print(prior_summary(fit)), "All are defaults, in units of the data")
  two <- quiet_fit(gaussian_mixture(~ x + z, 2), d, laplace(), seed = 1)
  expect_output(print(two), "priors: location .*; rate .*defaults, in units")
  expect_output(print(prior_summary(two)), "means normal around")
  expect_error(prior_summary(1), "must be a fit")
  shown <- drawn_series(plot(fit, "prior"))
  expect_gt(length(shown), 0)
  figure <- prior_figure(fit, 2, prior_draws_of(fit))
  peak <- function(part) part$x[which.max(part$y)]
  expect_lt(abs(peak(figure$posterior) - coef(fit)[["x"]]), 0.1)
  expect_equal(max(figure$prior$y), 1)
  improper <- evidence(linear_regression(y ~ x, prior = jzs()), d)
  expect_error(plot(improper, "prior"), "whose prior is improper")
  expect_false(any(grepl("priors:", capture.output(print(improper)))))
  expect_output(print(prior_summary(improper)), "jzs(scale = ", fixed = TRUE)
  rate <- evidence(poisson_rate(count ~ 1, shape = 2), d, exact())
  expect_false(any(grepl("priors:", capture.output(print(rate)))))
  skip_if_not_installed("ggplot2")
  expect_s3_class(ggplot2::autoplot(fit, "prior"), "ggplot")
})

# Fits and comparisons as data frames, and what is averaged over models.

run <- function(formula, ..., seed = test_seed())
  evidence(linear_regression(formula, sigma = 15, prior_sd = 20, ...), cars,
           laplace(importance = 300), seed = seed)
line <- run(dist ~ speed)
flat <- run(dist ~ 1)
weighted_mean <- function(fit, name) sum(exp(fit$log_weights) * fit$draws[, name])

# Evidences close together, so that both models count.
near <- flat
near$log_evidence <- line$log_evidence - 1
p <- exp(c(0, -1)) / sum(exp(c(0, -1)))
both <- compare_models(line, near)

test_that("a fit is one row", {
  row <- as.data.frame(line)
  expect_named(row, c("log_evidence", "se", "nobs", "method", "reliable", "doubt", "seconds"))
  expect_identical(row[1, 1:3], data.frame(log_evidence = line$log_evidence, se = line$se,
                                           nobs = 50L))
  expect_identical(row$method, "laplace")
  expect_true(row$reliable)
  failed <- line
  failed$failed <- failed$warnings <- "It has failed."
  expect_identical(as.data.frame(failed)[c("reliable", "doubt")],
                   data.frame(reliable = FALSE, doubt = "failed"))
  expect_identical(do.call(rbind, lapply(list(line, flat), as.data.frame))$log_evidence,
                   c(line$log_evidence, flat$log_evidence))
})

test_that("tidy(), glance() and augment() are found by package generics", {
  skip_if_not_installed("generics")
  table <- generics::tidy(line, conf.level = 0.9)
  expect_identical(table$term, c("(Intercept)", "speed"))
  expect_equal(table$estimate, unname(coef(line)))
  expect_equal(table$std.error, unname(sqrt(diag(vcov(line)))))
  expect_equal(cbind(table$conf.low, table$conf.high), unname(confint(line, level = 0.9)))
  expect_named(generics::tidy(line, conf.int = FALSE), c("term", "estimate", "std.error"))
  refused(generics::tidy(line, conf.level = 95),
          "`conf.level` must be a number above 0 and below 1, not 95.")
  refused(generics::tidy(line, level = 0.9), "not `level`")
  expect_identical(generics::glance(line), as.data.frame(line))
  rows <- generics::augment(line)
  expect_identical(rows[names(cars)], cars)
  expect_equal(rows$.fitted, fitted(line))
  expect_equal(rows$.resid, residuals(line))
  new <- data.frame(speed = c(5, 25))
  expect_equal(generics::augment(line, newdata = new), cbind(new, .fitted = predict(line, new)))
  mixture <- quiet_fit(gaussian_mixture(components = 2), scale(faithful), laplace(),
                       seed = test_seed(), progress = FALSE)
  refused(generics::tidy(mixture), "tidy() has nothing to return")
  refused(generics::augment(mixture), "augment() has nothing to return")
  classes <- muffled(evidence(softmax_regression(Species ~ Petal.Length), iris,
                              laplace(importance = 50), seed = test_seed()))
  expect_equal(as.matrix(generics::augment(classes)[paste0(".fitted_", levels(iris$Species))]),
               fitted(classes), ignore_attr = TRUE)
  refused(generics::tidy(structure(list(), class = "incomplete_evidence")), "is incomplete")
})

test_that("coefficients are averaged, and are zero in a model without them", {
  expected <- c("(Intercept)" = p[1] * weighted_mean(line, "(Intercept)") +
                  p[2] * weighted_mean(near, "(Intercept)"),
                speed = p[1] * weighted_mean(line, "speed"))
  expect_equal(coef(both), expected)
  second <- sum(p * c(sum(exp(line$log_weights) * line$draws[, "speed"]^2), 0))
  expect_equal(vcov(both)["speed", "speed"], second - expected[["speed"]]^2, tolerance = 0.02)
  # more than 2.5% of the probability is at zero
  expect_identical(unname(confint(both, "speed")[, 1]), 0)
  expect_gt(confint(both, "speed", level = 0.2)[, 1], 1)
  expect_identical(names(formula(both)), c("line", "near"))
  expect_identical(formula(both)$near, formula(near))
  expect_identical(attr(terms(both)$line, "term.labels"), "speed")
})

test_that("the summary of a comparison has the probability of each term", {
  summary <- summary(both)
  expect_equal(summary$coefficients$inclusion, c(1, p[1]))
  expect_equal(summary$coefficients$mean, unname(coef(both)))
  text <- said(summary)
  expect_match(text, "Comparison of 2 models on n = 50 observations")
  expect_match(text, paste("Coefficients averaged over the models, zero where a model lacks them",
                           "mean sd 5% 50% 95%"))
  expect_match(text, "speed 0.500 0.731 1.00 for: not worth more than a mention$")
  mixtures <- lapply(1:2, function(k) quiet_fit(gaussian_mixture(components = k), scale(faithful),
                                                laplace(), seed = test_seed(), progress = FALSE))
  without <- summary(compare_models(mixtures))
  expect_match(without$coefficients, "components and latent variables are numbered arbitrarily")
  expect_no_match(said(without), "averaged")
  refused(summary(both["model"]), "needs a comparison with all its columns")
})

# Evidences that are known, of nested models with prior weights that favour the largest.
nested <- lapply(list(dist ~ 1, dist ~ speed, dist ~ speed + I(speed^2),
                      dist ~ speed + I(speed^2) + I(speed^3)), run)
for (i in 1:4) nested[[i]]$log_evidence <- c(-3, 0, -1, -1.5)[i]
names(nested) <- paste0("m", 1:4)
weights <- c(1, 1, 1, 8)

test_that("inclusion has its prior probability and its Bayes factors", {
  found <- summary(compare_models(nested, prior = weights))$coefficients
  posterior <- weights * exp(c(-3, 0, -1, -1.5))
  odds <- function(p, with) sum(p[with]) / sum(p[-with])
  for (name in c("speed", "I(speed^2)", "I(speed^3)")) {
    with <- list(speed = 2:4, `I(speed^2)` = 3:4, `I(speed^3)` = 4)[[name]]
    own <- found[name, ]
    expect_equal(own$prior_inclusion, sum(weights[with]) / 11, info = name)
    expect_equal(own$inclusion, sum(posterior[with]) / sum(posterior), info = name)
    expect_equal(own$log_bf, log(odds(posterior, with) / odds(weights, with)), info = name)
  }
  # each term has one pair of models that differ in it alone
  expect_equal(found[-1, "log_matched_bf"], c(3, -1, -0.5))
  # probable after the data, as it was before, and less so
  cube <- found["I(speed^3)", ]
  expect_lt(cube$inclusion, cube$prior_inclusion)
  expect_gt(cube$inclusion, 0.5)
  expect_identical(unlist(found["(Intercept)", 1:4], use.names = FALSE), c(1, 1, NA, NA))
  text <- said(summary(compare_models(nested, prior = weights)))
  expect_match(text, "prior posterior log BF evidence matched speed 0.909 0.984 1.85 for: substan")
  expect_match(text, "speed^3) 0.727 0.557 -0.75 against: not worth more than a mention -0.50",
               fixed = TRUE)
  report <- evidence_report(compare_models(nested, prior = weights))
  expect_match(report[["coefficients"]], fixed = TRUE,
               "I(speed^3): 0.727 and 0.557, Bayes factor 1 / 2.1, matched 1 / 1.6;")
})

test_that("models that failed or have no prior probability are not in the prior of inclusion", {
  failed <- nested
  failed$m1$failed <- failed$m1$warnings <- "It has failed."
  found <- summary(muffled(compare_models(failed)))$coefficients
  expect_equal(found[c("speed", "I(speed^3)"), "prior_inclusion"], c(1, 1 / 3))
  expect_identical(found["speed", "log_bf"], NA_real_)
  found <- summary(compare_models(nested, prior = c(1, 0, 1, 1)))$coefficients
  expect_equal(found["I(speed^2)", "prior_inclusion"], 2 / 3)
  # the pair of `speed` has lost its second model
  expect_identical(found["speed", "log_matched_bf"], NA_real_)
  # those of a part are among themselves
  part <- summary(compare_models(nested)[1:2, ])$coefficients
  expect_equal(part["I(speed^2)", c("prior_inclusion", "log_bf")],
               data.frame(prior_inclusion = 0.5, log_bf = -1), ignore_attr = TRUE)
})

test_that("inclusion Bayes factors are right for extreme evidences and for factors", {
  far <- nested
  far$m1$log_evidence <- -2000
  found <- summary(compare_models(far))$coefficients
  expect_equal(found["speed", "log_matched_bf"], 2000)
  expect_equal(found["speed", "log_bf"], log(sum(exp(c(0, -1, -1.5))) / 3) + 2000)
  formulas <- list(a = breaks ~ wool, b = breaks ~ tension + wool, c = breaks ~ wool * tension)
  counts <- lapply(formulas, function(formula)
    evidence(regression(formula, prior_sd = 2), warpbreaks, laplace(), seed = test_seed()))
  found <- summary(muffled(compare_models(counts)))$coefficients
  evidences <- vapply(counts, `[[`, 0, "log_evidence")
  expect_equal(found[c("tensionM", "tensionH"), "log_matched_bf"],
               rep(evidences[["b"]] - evidences[["a"]], 2))
  expect_equal(found["woolB:tensionM", "log_matched_bf"], evidences[["c"]] - evidences[["b"]])
})

test_that("models with different priors are not paired", {
  wide <- evidence(linear_regression(dist ~ speed + I(speed^2), sigma = 15, prior_sd = 40), cars,
                   laplace(importance = 300), seed = test_seed())
  found <- summary(compare_models(line, wide))$coefficients
  expect_identical(found["I(speed^2)", "log_matched_bf"], NA_real_)
  expect_equal(found["I(speed^2)", "log_bf"], wide$log_evidence - line$log_evidence)
})

test_that("further parameters are averaged only if all models have them", {
  unknown <- evidence(regression(dist ~ speed, prior_sd = 20), cars,
                      laplace(importance = 100), seed = test_seed())
  with_sigma <- compare_models(unknown, line)
  expect_named(coef(with_sigma), c("(Intercept)", "speed"))
  other <- unknown
  other$log_evidence <- unknown$log_evidence - 1
  expect_named(coef(compare_models(unknown, other)), c("(Intercept)", "speed", "sigma"))
})

test_that("parameters of other meanings are not averaged", {
  counts <- lapply(list(poisson(), gaussian()), function(family)
    evidence(regression(count ~ spray, family = family, prior_sd = 5), InsectSprays,
             laplace(importance = 50), seed = test_seed()))
  table <- compare_models(counts)
  table$posterior <- c(0.5, 0.5)
  refused(coef(table), "their parameters have different meanings (log link or identity link)")
  of_density <- evidence(density(~ dpois(count, exp(m), log = TRUE), m = ~ spray), InsectSprays,
                         laplace(importance = 50), seed = test_seed())
  mixed <- compare_models(counts[[1]], b = of_density)
  mixed$posterior <- c(0.5, 0.5)
  refused(coef(mixed), "density_model() of ~dpois(count, exp(m), log = TRUE)")
  expect_match(said(summary(table)), "decisive .*summary\\(\\) cannot average over these models")
})

test_that("terms whose columns depend on a name outside the data are not averaged", {
  fits <- lapply(1:2, function(k) muffled(run(dist ~ poly(speed, k))))
  refused(coef(compare_models(fits)),
          "the coefficients of `poly(speed, k)` may have another meaning in each of them")
})

test_that("a comparison as a data frame is its table, and glance() one row", {
  expect_identical(class(as.data.frame(both)), "data.frame")
  expect_identical(as.data.frame(both)$posterior, both$posterior)
  expect_null(attr(as.data.frame(both), "fits"))
  skip_if_not_installed("generics")
  row <- generics::glance(both)
  expect_identical(row[c("models", "nobs", "best", "posterior")],
                   data.frame(models = 2L, nobs = 50L, best = "line",
                              posterior = both$posterior[1]))
  table <- generics::tidy(both)
  expect_equal(table$estimate, unname(coef(both)))
  expect_equal(table$inclusion, c(1, p[1]))
  expect_equal(table$prior_inclusion, c(1, 0.5))
  expect_equal(table$log_bf, c(NA, 1))
})

test_that("draws for package posterior have equal weight, or their weights if asked", {
  skip_if_not_installed("posterior")
  uneven <- line
  uneven$log_weights <- normalise(as.vector(scale(line$draws[, "speed"])))
  draws <- posterior::as_draws(uneven)
  expect_identical(posterior::as_draws(uneven), draws)
  expect_null(stats::weights(draws))
  spread <- sqrt(diag(vcov(uneven)))
  error <- posterior::summarise_draws(draws, "mean")$mean - coef(uneven)
  expect_lt(max(abs(error) / spread), 0.1)
  expect_gt(max(abs(colMeans(uneven$draws) - coef(uneven)) / spread), 0.5)
  set.seed(test_seed())
  before <- .Random.seed
  frame <- posterior::as_draws_df(uneven, weighted = TRUE)
  expect_equal(as.vector(stats::weights(frame)), exp(uneven$log_weights))
  expect_identical(.Random.seed, before)
  refused(posterior::as_draws(uneven, weighted = 1), "`weighted` must be TRUE or FALSE, not 1.")
})

test_that("draws of a comparison are those of the common parameters, averaged", {
  skip_if_not_installed("posterior")
  draws <- posterior::as_draws_df(both)
  expect_identical(posterior::variables(draws), "(Intercept)")
  intercept <- draws[["(Intercept)"]]
  expect_lt(abs(mean(intercept) - coef(both)[[1]]), 0.02 * sd(intercept))
  # the order of the rows does not follow the models
  half <- seq_len(nrow(draws)) <= nrow(draws) / 2
  expect_lt(abs(mean(intercept[half]) - mean(intercept[!half])), 0.3 * sd(intercept))
  expect_equal(sum(stats::weights(posterior::as_draws(both, weighted = TRUE))), 1)
  slope <- run(dist ~ speed - 1)
  slope$log_evidence <- near$log_evidence
  refused(posterior::as_draws(compare_models(slope, near)), "they have no parameter in common")
})

test_that("packages insight, bayestestR and parameters treat a fit as a Bayesian regression", {
  skip_if_not_installed("insight")
  of <- function(package, name, ...) getExportedValue(package, name)(line, ...)
  expect_identical(of("insight", "find_parameters"), list(conditional = c("(Intercept)", "speed")))
  expect_identical(of("insight", "find_response"), "dist")
  expect_identical(of("insight", "find_predictors")$conditional, "speed")
  info <- of("insight", "model_info")
  expect_true(info$is_bayesian && info$is_linear)
  counts <- evidence(regression(count ~ spray, family = negative_binomial()), InsectSprays,
                     laplace(importance = 50), seed = test_seed())
  info <- getExportedValue("insight", "model_info")(counts)
  expect_true(info$is_negbin && info$is_count && !info$is_binomial)
  expect_identical(colnames(of("insight", "get_parameters")), c("(Intercept)", "speed"))
  expect_equal(of("insight", "get_data")$speed, cars$speed)
  # which compares its arguments with texts
  expect_false(line == "NULL")
  predicted <- getExportedValue("insight", "get_predicted")
  expect_equal(as.numeric(predicted(line)), fitted(line))
  expect_equal(as.data.frame(predicted(line, cars[1:2, ], ci = 0.9)),
               as.data.frame(predict(line, cars[1:2, ], "expected", interval = 0.9)),
               ignore_attr = TRUE)
  skip_if_not_installed("bayestestR")
  limits <- bayestestR::eti(line, ci = 0.9)
  expect_equal(cbind(limits$CI_low, limits$CI_high), unname(confint(line, level = 0.9)),
               tolerance = 0.1)
  skip_if_not_installed("parameters")
  table <- of("parameters", "model_parameters", centrality = "mean")
  expect_identical(table$Parameter, c("(Intercept)", "speed"))
  expect_equal(table$Mean, unname(coef(line)), tolerance = 0.1)
  skip_if_not_installed("performance")
  found <- of("performance", "model_performance", seed = 1)
  expect_equal(c(found$Log_evidence, found$SE), c(line$log_evidence, line$se))
  expect_equal(found$RMSE, sqrt(mean(residuals(line)^2)))
  expect_equal(found$R2, var(fitted(line)) / (var(fitted(line)) + var(residuals(line))),
               tolerance = 0.05)
  # classes have no residuals that are one number, and densities none
  columns <- function(fit) names(getExportedValue("performance", "model_performance")(fit))
  expect_identical(columns(evidence(softmax_regression(Species ~ Sepal.Width), iris, laplace())),
                   c("Log_evidence", "SE"))
})

test_that("the name of exp(coefficient) is right for each family", {
  further <- list(shape = 1.7, size = 2)
  odds <- function(p) p / (1 - p)
  for (family in list("poisson", "negative_binomial", "gamma", "weibull", "binomial")) {
    model <- regression(y ~ x, family)
    both <- family_mean(model$family, cbind(0.2, 1.2), NULL, further)
    if (family == "binomial") both <- odds(both)
    expect_equal(both[2] / both[1], exp(1))
    of <- switch(family, binomial = "odds", weibull = "times, and exp(-shape * coefficient) of",
                 "means")
    expect_match(said(model), paste("exp(coefficient) is a ratio of", of), fixed = TRUE)
  }
  # the hazard of a Weibull time is shape / scale * (t / scale)^(shape - 1)
  hazard <- function(t, eta)
    stats::dweibull(t, 1.7, exp(eta)) / stats::pweibull(t, 1.7, exp(eta), lower.tail = FALSE)
  expect_equal(hazard(0.8, 1.2) / hazard(0.8, 0.2), exp(-1.7))
  for (model in list(linear_regression(y ~ x), regression(y ~ x, "student"),
                     regression(y ~ x, stats::binomial("probit"))))
    expect_no_match(said(model), "ratio")
})

test_that("tidy(exponentiate = TRUE) gives ratios and names them", {
  rows <- data.frame(x = rep(0:1, 20), t = stats::qweibull(1:40 / 41, 2, 1.5))
  fit <- quiet_fit(regression(t ~ x, weibull()), rows, seed = test_seed())
  plain <- tidy.evidence(fit)
  ratios <- tidy.evidence(fit, exponentiate = TRUE)
  expect_identical(ratios$ratio, c("exp() of the intercept", "ratio of times", ""))
  expect_equal(ratios[3, names(plain)], plain[3, ])
  expect_equal(ratios$conf.low[2], exp(plain$conf.low[2]), tolerance = 1e-3)
  expect_equal(ratios$estimate[2], sum(exp(fit$log_weights) * exp(fit$draws[, "x"])))
  expect_match(said(summary(fit)), "exp(coefficient) is a ratio of times", fixed = TRUE)
  normal <- evidence(linear_regression(t ~ x), rows, exact(), seed = 1)
  refused(tidy.evidence(normal, exponentiate = TRUE), "`exponentiate` must be FALSE for this")
  refused(tidy.evidence(normal, exponentiate = 2), "`exponentiate` must be TRUE or FALSE")
})

# Verbs that other packages have too: Bayes factors, probabilities and errors of two models.

regression <- function(formula) linear_regression(formula, sigma = 15, prior_sd = 10)
run <- function(model, data = cars, method = laplace(importance = 200),
                seed = test_seed()) {
  quiet_fit(model, data, method, seed = seed, progress = FALSE)
}
line <- run(regression(dist ~ speed))
flat <- run(regression(dist ~ 1), seed = test_seed(2))
gap <- line$log_evidence - flat$log_evidence
shorter <- run(regression(dist ~ 1), cars[1:40, ])

# Output of a fresh R that has two fits, `line` and `flat`; what is attached is up to it.
fresh <- function(...) {
  fits <- tempfile(fileext = ".rds")
  script <- tempfile(fileext = ".R")
  on.exit(unlink(c(fits, script)))
  saveRDS(list(line, flat), fits)
  read <- sprintf("fits <- readRDS(\"%s\"); line <- fits[[1]]; flat <- fits[[2]]", fits)
  writeLines(c("shh <- suppressPackageStartupMessages", read, ...), script)
  system2(file.path(R.home("bin"), "Rscript"), script, stdout = TRUE, stderr = TRUE)
}

test_that("bayes_factor() is the ratio of the evidences, with its error", {
  factor <- bayes_factor(line, flat)
  expect_equal(factor$log_bf, gap)
  expect_equal(factor$bf, exp(gap))
  expect_equal(factor$se, sqrt(line$se^2 + flat$se^2))
  expect_equal(bayes_factor(flat, line)$log_bf, -gap)
  expect_equal(bayes_factor(line, flat, log = TRUE)$bf, gap)
  expect_match(said(factor), paste("^Bayes factor of line over flat: .*\\(log 51.4.*\\)",
                                   "Evidence against flat: decisive The prior of flat",
                                   "contradicts the data"))
  expect_match(said(bayes_factor(flat, line, log = TRUE)),
    "^Log Bayes factor of flat over line: -51.4.* Evidence against flat")
  expect_identical(said(bayes_factor(3, 3)),
                   paste0("Bayes factor of 3 over 3: 1 (log 0.000 ", plus_minus(), " ?)"))
  expect_equal(bayes_factor(line, flat$log_evidence)$log_bf, gap)
  expect_identical(bayes_factor(line, flat$log_evidence)$se, NA_real_)
  refused(bayes_factor(line, shorter), "`line` has 50 observations, `shorter` 40.")
  refused(bayes_factor(line, "a"),
    "`x2` must be a fit from `evidence()`, a bridge, or a log marginal likelihood, not \"a\".")
  refused(bayes_factor(lm(dist ~ speed, cars), line), "`x1` must be a fit")
  refused(bayes_factor(line, flat, log = NA), "`log` must be TRUE or FALSE")
})

test_that("post_prob() weighs the models", {
  near <- flat
  near$log_evidence <- line$log_evidence - 1
  expect_equal(post_prob(line, near), c(line = 1, near = exp(-1)) / (1 + exp(-1)))
  expect_equal(post_prob(line, near, prior_prob = c(1, 3)),
               c(line = 1, near = 3 * exp(-1)) / (1 + 3 * exp(-1)))
  expect_identical(post_prob(line, near, prior_prob = c(near = 3, line = 1)),
                   post_prob(line, near, prior_prob = c(1,
3)))
  expect_named(post_prob(line, near, model_names = c("a", "b")), c("a", "b"))
  expect_equal(sum(post_prob(line, near, flat)), 1)
  expect_equal(post_prob(-1, -2), c("-1" = 1, "-2" = exp(-1)) / (1 + exp(-1)))
  refused(post_prob(line), "`...` must hold more models")
  refused(post_prob(line, flat, model_names = "a"),
          "`model_names` must have a name for each of the 2 models.")
  refused(post_prob(line, shorter), "different data")
  refused(post_prob(line, lm(dist ~ speed, cars)), "must be a fit from")
})

test_that("error_measures() turns the standard error into that of the evidence", {
  errors <- error_measures(line)
  expect_equal(errors$re2, expm1(line$se^2))
  expect_equal(errors$cv, sqrt(errors$re2))
  expect_match(errors$percentage, "^[0-9.]+%$")
  expect_identical(error_measures(run(regression(dist ~ 1), method = laplace()))$percentage,
                   NA_character_)
  refused(error_measures(3), "`x` must be a fit from `evidence()`, not 3.")
})

test_that("logml() is the log evidence", {
  expect_identical(logml(line), line$log_evidence)
  refused(logml(3), "`x` must be a fit from `evidence()`, not 3.")
  refused(as_bridge(3), "`fit` must be a fit")
  expect_identical(as_bridge(line)$logml, line$log_evidence)
})

test_that("logLik(), AIC() and BIC() of a fit are errors", {
  for (f in list(stats::logLik, stats::BIC, stats::AIC)) {
    refused(f(line), "The log evidence is logml(); compare_models() compares models")
    refused(f(compare_models(line, flat)), "is for one model")
    expect_error(f(line$model))
  }
})

test_that("our verbs take fits together with objects of bridgesampling", {
  skip_if_not_installed("bridgesampling")
  bridge <- as_bridge(flat)
  expect_s3_class(bridge, "bridge")
  # it names its own method, and no bridge sampling
  expect_match(said(bridge), paste0("Log marginal likelihood: .*, by ", flat$method$name,
                                    "\\(\\) of logevidence"))
  expect_identical(summary(bridge)$Percentage_Error, error_measures(flat)$percentage)
  expect_equal(bayes_factor(line, bridge)$log_bf, gap)
  expect_equal(bayes_factor(bridge, line)$log_bf, -gap)
  expect_equal(bayes_factor(bridge, as_bridge(line))$log_bf, -gap)
  list_of <- structure(list(logml = flat$log_evidence + c(-1, 0, 2), niter = rep(1, 3),
                            method = "normal",
    repetitions = 3),
                       class = "bridge_list")
  expect_equal(bayes_factor(line, list_of)$log_bf, gap)
  expect_named(post_prob(bridge, line), c("bridge", "line"))
  expect_equal(post_prob(bridge, line), rev(post_prob(line, bridge)))
  expect_equal(logml(bridge), flat$log_evidence)
  expect_equal(logml(list_of), flat$log_evidence)
  own <- structure(list(logml = -1, niter = 5, method = "normal", q11 = log(1:50), q12 = log(2:51),
    q21 = log(1:50) + 0.1,
                        q22 = log(2:51) + 0.1), class = "bridge")
  expect_identical(error_measures(own), bridgesampling::error_measures(own))
})

test_that("verbs of bridgesampling take a fit as first argument, and bridges made of fits", {
  skip_if_not_installed("bridgesampling")
  bridge <- as_bridge(flat)
  expect_equal(bridgesampling::bayes_factor(line, flat), bayes_factor(line, flat))
  expect_equal(bridgesampling::bf(line, bridge)$log_bf, gap)
  expect_equal(bridgesampling::bf(bridge, as_bridge(line), log = TRUE)$bf, -gap)
  expect_equal(bridgesampling::post_prob(line, flat), post_prob(line, flat))
  expect_equal(bridgesampling::post_prob(line, bridge, model_names = c("a", "b")), c(a = 1,
    b = exp(-gap)) / (1 + exp(-gap)))
  expect_equal(unname(bridgesampling::post_prob(bridge, as_bridge(line))),
               unname(post_prob(bridge, line)))
  expect_identical(bridgesampling::logml(line), line$log_evidence)
  expect_identical(bridgesampling::error_measures(line), error_measures(line))
  expect_identical(bridgesampling::error_measures(bridge), error_measures(flat))
  expect_equal(summary(bridge)$Coefficient_of_Variation, error_measures(flat)$cv)
  estimate <- sprintf("likelihood: %.2f", trunc(100 * flat$log_evidence) / 100)
  expect_match(said(bridge), paste("Log marginal", estimate), fixed = TRUE)
})

test_that("our verbs work whichever package is attached first", {
  skip_if_not_installed("bridgesampling")
  use <-
    c("stopifnot(identical(logml(line), line$log_evidence))",
      "stopifnot(identical(logml(as_bridge(flat)), flat$log_evidence))",
      "print(bayes_factor(line, flat))", "print(names(post_prob(line, as_bridge(flat))))",
      "stopifnot(identical(error_measures(line)$re2, expm1(line$se^2)))")
  ours <- "shh(library(logevidence))"
  theirs <- "shh(library(bridgesampling))"
  scripts <- list(c(ours, theirs, use), c(theirs, ours, use), c(ours, use))
  for (script in fast_or_slow(scripts[1], scripts)) {
    text <- fresh(script)
    expect_match(text[1], "^Bayes factor of line over flat", info = text)
    expect_match(text[length(text)], "\"line\"", fixed = TRUE)
  }
})

test_that("bayesfactor_models() takes fits", {
  skip_if_not_installed("bayestestR")
  models <- bayestestR::bayesfactor_models
  table <- models(line, flat)
  expect_s3_class(table, "bayesfactor_models")
  expect_equal(table$log_BF, c(0, -gap))
  expect_identical(table$Model, c("speed", "1"))
  expect_identical(attr(table, "model_names"), c("line", "flat"))
  expect_equal(models(line, flat, denominator = 2)$log_BF, c(gap, 0))
  expect_equal(models(line, flat, denominator = flat), models(line, flat, denominator = 2))
  expect_identical(attr(models(a = line, b = flat), "model_names"), c("a", "b"))
  # a fit that is none of the others is added, as bayestestR does
  other <- models(flat, denominator = line)
  expect_identical(attr(other, "model_names"), c("flat", "line"))
  expect_equal(other$log_BF, c(-gap, 0))
  expect_identical(attr(other, "denominator"), 2)
  expect_match(said(table),
               "Bayes Factors for Model Comparison .*flat.* Against Denominator: .*line")
  expect_equal(as.matrix(table)[1, 2], -gap, ignore_attr = TRUE)
  expect_equal(stats::update(table, reference = 2)$log_BF, c(gap, 0))
  refused(models(line, shorter), "different data")
  refused(models(line, flat, denominator = 3),
          "`denominator` must be a whole number between 1 and 2, not 3.")
  refused(models(line, flat, denominator = lm(dist ~ 1, cars)), "`denominator` must be")
  skip_if_not_installed("bridgesampling")
  expect_equal(models(line, as_bridge(flat))$log_BF, c(0, -gap))
})

test_that("bayestestR gets models named by the terms of their formulas", {
  fits <- list(line = line, flat = flat)
  table <- do.call(bayesfactor_models.evidence, fits)
  expect_identical(table$Model, c("speed", "1"))
  expect_false(attr(table, "unsupported_models"))
  dot <- run(linear_regression(dist ~ ., sigma = 15, prior_sd = 10))
  expect_identical(bayesfactor_models.evidence(dot, flat)$Model, c("speed", "1"))
  own <- bayesfactor_models.evidence(line, structure(list(logml = -300), class = "bridge"))
  expect_true(attr(own, "unsupported_models"))
  comparison <- compare_models(flat, line)
  expect_identical(bayesfactor_models.model_comparison(comparison), table)
  refused(bayesfactor_models.model_comparison(comparison, comparison),
          "`...` must hold one comparison")
})

test_that("bayesfactor_inclusion() of bayestestR uses terms and the prior of a comparison", {
  skip_if_not_installed("bayestestR")
  theirs <- bayestestR::bayesfactor_inclusion(bayestestR::bayesfactor_models(line, flat))
  expect_identical(rownames(theirs), "speed")
  expect_equal(theirs$log_BF, gap)
  curve <- run(regression(dist ~ speed + I(speed^2)))
  comparison <- compare_models(line, flat, curve, prior = c(1, 2, 5))
  ours <- summary(comparison)$coefficients[-1, ]
  theirs <- bayestestR::bayesfactor_inclusion(comparison)
  expect_equal(theirs$log_BF, ours$log_bf)
  expect_equal(theirs$p_prior, ours$prior_inclusion)
})

test_that("comparing an evidence with a criterion gives an error or a message", {
  skip_if_not_installed("bayestestR")
  models <- bayestestR::bayesfactor_models
  least_squares <- lm(dist ~ speed, cars)
  refused(models(line, least_squares), "`least_squares` must be a fit from `evidence()`")
  expect_error(suppressWarnings(suppressMessages(models(least_squares, line))))
  expect_error(suppressWarnings(suppressMessages(models(lm(dist ~ 1, cars), least_squares, line))))
  expect_error(suppressWarnings(suppressMessages(models(list(line, flat)))))
  expect_error(suppressWarnings(suppressMessages(models(as_bridge(flat), line))))
})

test_that("as.mcmc() gives package coda draws of equal weight", {
  skip_if_not_installed("coda")
  fit <- evidence(linear_regression(dist ~ speed), cars, seed = test_seed())
  draws <- getExportedValue("coda", "as.mcmc")(fit)
  expect_s3_class(draws, "mcmc")
  expect_identical(colnames(draws), colnames(fit$draws))
  expect_equal(summary(draws)$statistics[, "Mean"], coef(fit)[colnames(draws)], tolerance = 0.05)
})

test_that("loo() and waic() refuse crossed groups, whose rows are one part", {
  skip_if_not_installed("loo")
  d <- expand.grid(g = 1:4, h = 1:4)
  d$y <- with_own_seed(test_seed(2), rnorm(16))
  fit <- muffled(evidence(regression(y ~ 1 + (1 | g) + (1 | h)), d, laplace(), seed = 1))
  refused(loo::loo(fit), "all rows are one.")
  refused(loo::waic(fit), "all rows are one.")
})

# Several models side by side, and several methods on one model.

regression <- function(formula) linear_regression(formula, sigma = 15, prior_sd = 10)
run <- function(model, data = cars, method = laplace(importance = 200),
                seed = test_seed()) {
  quiet_fit(model, data, method, seed = seed, progress = FALSE)
}
line <- run(regression(dist ~ speed))
flat <- run(regression(dist ~ 1), seed = test_seed(2))
square <- run(regression(dist ~ speed + I(speed^2)), seed = test_seed(3))
harmonic <- run(regression(dist ~ speed), method = harmonic_mean())
errorless <- run(regression(dist ~ 1), method = laplace())
collapsed <- run(linear_regression(dist ~ speed, sigma = 1, prior_sd = 1000),
                 method = ais(2, linear(2)))

# A fit that says what we want it to say.
pretend <- function(log_evidence, se = 0, fit = line) {
  fit$log_evidence <- log_evidence
  fit$se <- fit$verdict$se[startsWith(fit$verdict$says, "reported")] <- as.numeric(se)
  if (!is.finite(log_evidence)) fit$warnings <- c(not_finite = "The estimate is not finite.")
  fit
}
softmax <- function(p) exp(p - max(p)) / sum(exp(p - max(p)))

test_that("the table holds plain formulas, the best model first", {
  evidences <- c(a = -12, b = -10, c = -10.7)
  fits <- Map(pretend, evidences, c(0.1, 0.2, 0.3))
  table <- compare_models(fits)
  expect_s3_class(table, c("model_comparison", "data.frame"), exact = TRUE)
  expect_named(table, c("model", "log_evidence", "se", "log_bf", "posterior", "against", "reliable",
                        "doubt"))
  expect_identical(table$model, c("b", "c", "a"))
  expect_equal(table$log_evidence, c(-10, -10.7, -12))
  expect_identical(table$se, c(0.2, 0.3, 0.1))
  expect_equal(table$log_bf, c(0, -0.7, -2))
  expect_equal(table$posterior, softmax(c(-10, -10.7, -12)))
  expect_identical(table$reliable, rep(TRUE, 3))
  expect_equal(attr(table, "prior"), rep(1 / 3, 3))
  expect_identical(unname(attr(table, "fits")), unname(fits[c("b", "c", "a")]))
  huge <- compare_models(a = pretend(-1e6), b = pretend(-1e6 - 800))
  expect_equal(huge$posterior, c(1, 0))
})

test_that("prior probabilities may be given in order or by name", {
  a <- pretend(-12)
  b <- pretend(-10)
  posterior <- function(...) {
    table <- compare_models(a, b, prior = c(...))
    stats::setNames(table$posterior, table$model)[c("a", "b")]
  }
  expect_equal(posterior(6, 2), c(a = 0.75 * exp(-2), b = 0.25) / (0.75 * exp(-2) + 0.25))
  expect_equal(posterior(b = 2, a = 6), posterior(0.75, 0.25))
  expect_equal(posterior(1, 0), c(a = 1, b = 0))
  expect_equal(attr(compare_models(a, b, prior = c(6, 2)), "prior"), c(0.25, 0.75))
  refused(posterior(1), "`prior` must be a weight for each of the 2 fits, not 1.")
  refused(compare_models(a, b, prior = "a"),
          "`prior` must be a weight for each of the 2 fits, not \"a\".")
  for (bad in list(c(1, -1), c(0, 0), c(1, NA), c(1, Inf)))
    refused(posterior(bad), "`prior` must hold weights of at least 0 that are not all 0.")
  refused(posterior(a = 1, c = 1), "`prior` must be named by the fits (`a`, `b`), or not at all.")
  refused(compare_models(a, harmonic, prior = c(0, 1)),
          "`prior` must give a positive weight to a fit that passed")
})

test_that("strengths are in the words of Kass and Raftery, from their boundaries on", {
  word <- function(log10_bf)
    compare_models(a = pretend(0), b = pretend(-log10_bf * log(10)))$against[2]
  words <- c("not worth more than a mention", "substantial", "strong", "decisive")
  for (i in 1:3) {
    expect_identical(word(c(0.5, 1, 2)[i] - 1e-9), words[i])
    expect_identical(word(c(0.5, 1, 2)[i] + 1e-9), words[i + 1])
  }
  expect_identical(word(1e-9), words[1])
  expect_identical(word(0), "-")
  expect_identical(word(1e5), words[4])
})

test_that("certainty is the probability under independent normal errors", {
  certain <- function(...) attr(compare_models(...), "certainty")
  for (gap in c(0, 0.1, 0.5, 2)) {
    got <- certain(a = pretend(0, 0.3), b = pretend(-gap, 0.4))
    expect_lt(max(abs(got - pnorm(gap / 0.5))), 4.5 * 0.5 / sqrt(20000))
  }
  expect_identical(certain(a = pretend(0), b = pretend(-1e-9)), c(best = 1, order = 1))
  set.seed(test_seed())
  means <- c(0, -0.2, -0.5)
  se <- c(0.4, 0.1, 0.3)
  draws <- matrix(rnorm(3e5, rep(means, each = 1e5), rep(se, each = 1e5)), ncol = 3)
  truth <- c(mean(max.col(draws) == 1), mean(draws[, 1] > draws[, 2] & draws[, 2] > draws[, 3]))
  got <- certain(c = pretend(means[3], se[3]), a = pretend(means[1], se[1]),
                 b = pretend(means[2], se[2]))
  expect_lt(max(abs(got - truth)), 4.5 * 0.5 * sqrt(1 / 20000 + 1 / 1e5))
})

test_that("fits may be given one by one or in a list, and keep their names", {
  expect_identical(compare_models(line, flat)$model, c("line", "flat"))
  expect_identical(compare_models(straight = line, flat)$model, c("straight", "flat"))
  expect_identical(compare_models(list(line, flat))$model, c("dist ~ speed", "dist ~ 1"))
  expect_identical(compare_models(list(a = line, flat))$model, c("a", "dist ~ 1"))
  expect_equal(compare_models(list(line = line, flat = flat)), compare_models(line, flat))
  refused(compare_models(line, line), "distinct names, not `line` twice.")
  refused(compare_models(), "at least two fits, not 0.")
  refused(compare_models(line), "at least two fits, not 1.")
  refused(compare_models(list()), "at least two fits, not 0.")
  refused(compare_models(line, 3), "must be a fit from `evidence()`, not 3.")
  refused(compare_models(line, b = lm(dist ~ speed, cars)),
    "`b` must be a fit from `evidence()`, not an object of class lm.")
})

test_that("only fits to the same data are compared", {
  expect_identical(nrow(compare_models(line, flat, square)), 3L)
  other <- cars
  other$dist[1] <- 3
  refused(compare_models(line, b = run(regression(dist ~ speed), other)),
    "`line` has 50 observations, `b` as many, but with other values.")
  refused(compare_models(line, b = run(regression(dist ~ speed), cars[1:40, ])),
          "`line` has 50 observations, `b` 40.")
  refused(compare_models(line, b = run(regression(speed ~ dist))),
          "as many, but with other values.")
  set.seed(test_seed())
  expect_identical(compare_models(line, b = run(regression(dist ~ 1), cars[sample(50), ]))$model,
                   c("line", "b"))
  other$speed <- rev(other$speed)
  other$dist <- cars$dist
  refused(compare_models(line, b = run(regression(dist ~ speed), other)),
          "the values of `speed` belong to different responses")
})

test_that("fits that failed their checks are marked and left out", {
  expect_length(collapsed$failed, 2)
  expect_match(collapsed$failed[1], "almost all weight was on one or two particles")
  expect_match(collapsed$failed[2], "missed a part of the posterior")
  table <- compare_models(harmonic, flat, collapsed, line)
  expect_identical(table$model[1:2], c("line", "flat"))
  expect_identical(table$reliable, c(TRUE, TRUE, FALSE, FALSE))
  expect_equal(sum(table$posterior[1:2]), 1)
  expect_identical(table$posterior[3:4], c(NA_real_, NA_real_))
  expect_identical(table$log_bf[3:4], c(NA_real_, NA_real_))
  expect_identical(table$against[3:4], rep("failed its checks", 2))
  expect_equal(table[1:2, ], compare_models(line, flat), ignore_attr = TRUE)
  expect_match(said(table),
    "Left out of the probabilities: harmonic, collapsed, which failed their own checks. Their",
    fixed = TRUE)
  refused(compare_models(harmonic, collapsed), "None of the fits passed its own checks")
  expect_match(said(compare_models(line, harmonic)),
               "harmonic, which failed its own checks. Its warnings say why.",
    fixed = TRUE)
  expect_identical(compare_models(line, b = pretend(-Inf))$reliable,
                   c(TRUE, TRUE)[c(1, 2)] & c(TRUE, FALSE))
})

test_that("failed fits are left out of Bayes factors and probabilities, with a message", {
  expect_warning(factor <- bayes_factor(harmonic, flat),
                 "Left out of the probabilities: harmonic, which failed its own", fixed = TRUE)
  expect_identical(c(factor$bf, factor$log_bf, factor$se), rep(NA_real_, 3))
  expect_match(said(factor), "harmonic over flat: not known", fixed = TRUE)
  expect_warning(p <- post_prob(line, harmonic, flat), "harmonic, which failed", fixed = TRUE)
  expect_equal(p[c("line", "flat")], post_prob(line, flat))
  expect_identical(p[["harmonic"]], NA_real_)
  expect_warning(none <- post_prob(harmonic, collapsed), "harmonic, collapsed, which failed")
  expect_identical(unname(none), c(NA_real_, NA_real_))
  doubted <- flat
  doubted$warnings <- c(some = "A warning.")
  expect_silent(factor <- bayes_factor(line, doubted))
  expect_match(said(factor), "doubted has warnings", fixed = TRUE)
  expect_identical(as.data.frame(factor)$log_bf, factor$log_bf)
  refused(bayes_factor(line, flat, lgo = TRUE), "not `lgo`")
  refused(bayes_factor(compare_models(line, flat)), "not a comparison of several fits")
  refused(post_prob(line), "`...` must hold more models to compare with.")
})

test_that("a comparison of bic() with other methods says so", {
  schwarz <- run(regression(dist ~ speed), method = bic())
  expect_match(said(compare_models(line, schwarz)), "schwarz is by bic(), which does not use the",
               fixed = TRUE)
  expect_match(said(bayes_factor(line, schwarz)), "Compare fits that are all by bic(), or none.",
               fixed = TRUE)
  other <- run(regression(dist ~ 1), method = bic())
  expect_false(grepl("by bic()", said(compare_models(other, schwarz)), fixed = TRUE))
})

test_that("a part of a comparison prints that it is one, and is averaged by itself", {
  all <- compare_models(line, flat, square, prior = c(1, 2, 3))
  best <- all$model[1]
  part <- all[-1, ]
  words <- said(part)
  expect_match(words, "Comparison of 2 models (of 3)", fixed = TRUE)
  expect_match(words, paste0("among all 3 models, of which ", best, " is the best"), fixed = TRUE)
  alone <- compare_models(list(line = line, flat = flat, square = square)[part$model],
                          prior = c(line = 1, flat = 2, square = 3)[part$model])
  expect_identical(unclass(evidence_report(part))[seq_along(part)],
                   unclass(evidence_report(alone))[seq_along(part)])
  expect_equal(summary(part)$coefficients, summary(alone)$coefficients)
  expect_equal(summary(part)$comparison$posterior, alone$posterior)
  expect_false(grepl("(of ", said(all[3:1, ]), fixed = TRUE))
})

test_that("a fit without a standard error can be compared", {
  table <- compare_models(line, errorless)
  expect_identical(table$se[2], NA_real_)
  expect_true(all(table$reliable))
  expect_match(said(table), "errorless has no standard error, which is taken as 0 here.",
               fixed = TRUE)
  again <- compare_models(line, errorless, twin = errorless)
  expect_match(said(again), "errorless, twin have no standard error", fixed = TRUE)
  expect_identical(attr(compare_models(a = errorless, b = pretend(-300, NA)), "certainty"),
                   c(best = 1, order = 1))
})

test_that("a comparison prints as a table with its certainty", {
  table <- compare_models(a = pretend(-10, 0.02), b = pretend(-11.5, 0.3), c = pretend(-30, 0.1))
  text <- utils::capture.output(shown <- withVisible(print(table)))
  expect_false(shown$visible)
  expect_identical(text[c(1, 2, 7)], c("Comparison of 3 models on n = 50 observations", "", ""))
  expect_match(text[3], "^ +log evidence  log BF  posterior  against$")
  expect_match(text[4], "^a +-10.00 .* 0.02 +0.00 +0.818 +-$")
  expect_match(text[5], "^b +-11.5 .* 0.3 +-1.50 +0.182 +substantial$")
  expect_match(text[6], "^c +-30.00 .* 0.10 +-20.00 +<0.001 +decisive$")
  expect_match(said(table),
    "Monte Carlo error is too small to change this ranking.", fixed = TRUE)
  expect_no_match(said(compare_models(line, flat)), "whole order")
  close <- compare_models(a = pretend(-10, 0.02), b = pretend(-11.5, 0.3), c = pretend(-11.6, 0.3))
  expect_match(said(close),
               paste("too small to change which model is first; probability 0.[56][0-9]+ that the",
                     "whole order is right."))
})

test_that("rows are printed in their order, and rows of several comparisons are marked", {
  table <- compare_models(a = pretend(-12), b = pretend(-10))
  text <- said(table[order(table$log_evidence), ])
  expect_lt(regexpr("a +-12", text), regexpr("b +-10", text))
  expect_match(said(rbind(table, table)), "^Rows of several comparisons, each with probabilities")
  other <- compare_models(c = pretend(-12), d = pretend(-10))
  expect_match(said(rbind(table, other)), "^Rows of several comparisons, each with probabilities")
})

test_that("single rows and columns of a comparison can be printed", {
  table <- compare_models(a = pretend(-10, 0.02), b = pretend(-11.5, 1), c = pretend(-11.5, 1),
                          h = harmonic)
  part <- table[2:3, ]
  expect_match(said(part), "Comparison of 2 models", fixed = TRUE)
  expect_match(said(part), "first has the highest evidence with probability 0[.](49|50)")
  expect_match(said(table[2, ]), "Comparison of 1 model (of 4) on", fixed = TRUE)
  expect_no_match(said(table[2, ]), "Monte Carlo")
  expect_identical(table$posterior, table[["posterior"]])
  expect_no_error(printed(table["posterior"]))
  expect_no_error(printed(table[c("model", "posterior")]))
  expect_no_warning(printed(table[0, ]))
  expect_no_warning(printed(utils::head(table, 1)))
  expect_no_warning(printed(table[table$reliable, ]))
})

test_that("fits with warnings, and priors that contradict the data, are marked in their rows", {
  warned <- line
  warned$warnings <- "Something is odd."
  apart <- line
  apart$warnings <- apart$prior_conflict <- "The data contradict the prior: x."
  noted <- run(regression(dist ~ speed), method = bic())
  table <- compare_models(a = line, b = warned, c = apart, noted, harmonic)
  expect_identical(table$doubt[match(c("a", "b", "c", "noted", "harmonic"), table$model)],
                   c("", "warns", "prior conflict", "", "failed"))
  text <- utils::capture.output(print(table))
  expect_match(grep("^b  ", text, value = TRUE), "has warnings$")
  expect_match(grep("^c  ", text, value = TRUE), "prior conflict$")
  expect_match(said(table),
               "b has warnings: the log evidence may be off by more than its standard error")
  expect_match(said(table), "The prior of c contradicts the data")
  expect_no_match(said(compare_models(line, square)), "warnings|prior")
})

test_that("a comparison of many models prints ten, and any part of it prints", {
  many <- compare_models(Map(function(k) pretend(-k, 0.1), 1:300))
  expect_length(grep("^model ", utils::capture.output(print(many))), 10)
  expect_match(printed(many), "... and 290 more: print(x, n = 300)", fixed = TRUE)
  expect_length(grep("^model ", utils::capture.output(print(many, n = 30))), 30)
  both <- compare_models(line, flat)
  expect_match(said(subset(both, log_evidence > -1e6)), "Comparison of 2 models on n = 50")
  expect_no_error(printed(subset(both, select = c("model", "se"))))
  expect_equal(predict(subset(both, model == "line"), cars), predict(line, cars))
})

test_that("compare_models() by do.call() has short names and the right method", {
  fits <- list(line, flat)
  expect_identical(do.call(compare_models, fits)$model, c("dist ~ speed", "dist ~ 1"))
  expect_identical(do.call("compare_models", list(a = line, b = flat))$model, c("a", "b"))
  expect_equal(unname(do.call(post_prob, fits)), unname(post_prob(line, flat)))
  expect_lt(max(nchar(utils::capture.output(print(do.call(bayes_factor, fits))))), 80)
  expect_equal(do.call(bayes_factor, fits)$log_bf, bayes_factor(line, flat)$log_bf)
})

test_that("a comparison can be plotted", {
  table <- compare_models(line, flat, square, harmonic)
  figure <- comparison_figure(table, 10)
  expect_equal(figure$probability, c(table$posterior[1:3], 0))
  expect_equal(figure$upper - figure$lower, 4 * table$se)
  expect_identical(figure$sound, c(TRUE, TRUE, TRUE, FALSE))
  expect_identical(nrow(comparison_figure(table, 2)), 2L)
  pdf(NULL)
  on.exit(dev.off())
  old <- par(no.readonly = TRUE)
  expect_invisible(plot(table))
  expect_identical(par("mar", "mfrow"), old[c("mar", "mfrow")])
  refused(plot(table["se"]), "`x` must be a comparison with all its columns.")
  skip_if_not_installed("ggplot2")
  drawn <- ggplot2::ggplot_build(ggplot2::autoplot(table))
  expect_equal(sort(drawn$data[[2]]$x), sort(c(figure$probability, figure$log_evidence)))
})

test_that("compare_models() does not change R's random numbers", {
  set.seed(test_seed(7))
  before <- .Random.seed
  table <- compare_models(line, flat, square)
  utils::capture.output(print(table))
  expect_identical(.Random.seed, before)
  rm(".Random.seed", envir = globalenv())
  expect_identical(compare_models(line, flat, square), table)
  expect_false(exists(".Random.seed", globalenv()))
  set.seed(test_seed(7))
})

# Predictions --------------------------------------------------------------------------------------

test_that("predictions are averaged by the models' probabilities", {
  a <- pretend(-1, fit = line)
  b <- pretend(-2, fit = flat)
  both <- compare_models(a, b)
  p <- softmax(c(-1, -2))
  new <- data.frame(speed = c(5, 25, 12), dist = c(10, 80, 1000))
  expect_equal(predict(both, new), p[1] * predict(line, new) + p[2] * predict(flat, new))
  expect_equal(exp(predict(both, new, type = "density")),
               p[1] * exp(predict(line, new, type = "density")) +
                 p[2] * exp(predict(flat, new, type = "density")))
  far <- data.frame(speed = 5, dist = 1e4)
  each <- c(predict(line, far, type = "density"), predict(flat, far, type = "density"))
  expect_equal(predict(both, far, type = "density"), log_sum_exp(log(p) + each))
  expect_equal(predict(both[2:1, ], new), predict(both, new))
  expect_equal(predict(both[2, ], new), predict(flat, new))
  expect_equal(predict(compare_models(a, b, harmonic), new), predict(both, new))
  refused(predict(both), "`newdata` must be given")
  refused(predict(both, new, type = "class"), "`type` must be")
  refused(predict(both, new, types = "density"), "`types`")
})

test_that("draws and intervals of a comparison are those of the mixture of its models", {
  both <- compare_models(pretend(-1, fit = line), b = pretend(-1.5, fit = flat))
  p <- both$posterior[1]
  new <- data.frame(speed = c(5, 25))
  draws <- predict(both, new, type = "draws", draws = 1500, seed = test_seed())
  # shares are those of systematic resampling
  own <- predict(line, new, "draws", draws = 1500, seed = test_seed())
  other <- predict(flat, new, "draws", draws = 1500, seed = test_seed(2))
  for (j in 1:2) {
    mean <- p * mean(own[, j]) + (1 - p) * mean(other[, j])
    expect_lt(abs(mean(draws[, j]) - mean) / (sd(draws[, j]) / sqrt(750)), 4.5)
    share <- mean(draws[, j] < quantile(other[, j], 0.2))
    expect_lt(abs(share - p * mean(own[, j] < quantile(other[, j], 0.2)) - (1 - p) * 0.2), 0.06)
  }
  expect_identical(predict(both, new, type = "draws", draws = 1500, seed = test_seed()), draws)
  # not one model after another
  expect_lt(abs(cor(draws[, 2], seq_len(1500))), 0.13)
  limits <- predict(both, new, interval = 0.9, draws = 1500, seed = test_seed())
  expect_equal(limits[, "fit"], predict(both, new))
  expect_equal(limits[, -1], t(apply(draws, 2, quantile, c(0.05, 0.95))), ignore_attr = TRUE)
  expected <- predict(both, new, type = "expected", interval = 0.9)
  means <- lapply(list(line, flat), function(fit) cbind(1, if (ncol(fit$draws) > 1) 25) %*%
                    t(fit$parameters))
  expect_equal(expected[2, 2:3], weighted_quantile(
    unlist(means), c(p * exp(line$log_weights), (1 - p) * exp(flat$log_weights)), c(0.05, 0.95)),
    ignore_attr = TRUE)
  replicated <- simulate(both, 200, seed = 1, newdata = cars)
  expect_identical(dim(replicated), c(50L, 200L))
  attr(both, "fits") <- lapply(attr(both, "fits"), function(fit) {
    fit$call$data <- quote(cars)
    fit
  })
  expect_identical(simulate(both, 200, seed = 1), replicated)
  # under the flat model replicates do not follow the speed
  follows <- vapply(replicated, cor, 0, cars$speed) > 0.45
  expect_lt(abs(mean(follows) - p), 0.1)
  refused(predict(both, new, type = "link"), "averaged over models, not \"link\"")
  refused(predict(both, new, level = 0.9), "use `interval`")
})

test_that("class probabilities are averaged, and models with different classes are refused", {
  petal <- run(softmax_regression(Species ~ Petal.Length, prior_sd = 1), iris)
  sepal <- run(softmax_regression(Species ~ Sepal.Length, prior_sd = 1), iris)
  both <- compare_models(petal = pretend(-1, fit = petal), sepal = pretend(-1.5, fit = sepal))
  new <- iris[c(1, 60, 120, 71), ]
  p <- softmax(c(-1, -1.5))
  average <- p[1] * predict(petal, new) + p[2] * predict(sepal, new)
  expect_equal(predict(both, new), average)
  expect_equal(unname(rowSums(predict(both, new))), rep(1, 4))
  expect_identical(predict(both, new, type = "class"),
                   factor(levels(iris$Species)[max.col(average)],
levels(iris$Species)))
  density <- p[1] * exp(predict(petal, new, type = "density")) +
    p[2] * exp(predict(sepal, new, type = "density"))
  expect_equal(predict(both, new, type = "density"), log(density))
  other <- pretend(-1, fit = sepal)
  other$design$levels <- c("x", "y", "z")
  mixed <- compare_models(petal, other)
  attr(mixed, "fits")$other <- other
  mixed$posterior <- c(0.5, 0.5)
  refused(predict(mixed, new), "their classes or components differ.")
})

# Several methods ----------------------------------------------------------------------------------

test_that("crosscheck() has the figures of each method and their distances", {
  model <- regression(dist ~ speed)
  methods <- list(laplace(importance = 200), ladder = smc(particles = 100), nested(40), laplace())
  check <- crosscheck(model, cars, methods, seed = test_seed(3))
  expect_s3_class(check, c("crosscheck", "data.frame"), exact = TRUE)
  expect_named(check, c("method", "log_evidence", "se", "z", "seconds", "reliable", "error",
                        "wide_se", "bound",
    "doubt"))
  expect_identical(check$method,
                   c("laplace(importance = 200)", "ladder", "nested(live = 40)", "laplace()"))
  expect_identical(check$error, rep("", 4))
  fits <- attr(check, "fits")
  expect_identical(names(fits), check$method)
  expect_identical(check$log_evidence, unname(vapply(fits, `[[`, 0, "log_evidence")))
  expect_identical(essence(fits[[1]]), essence(evidence(model, cars, methods[[1]],
                                                        seed = test_seed(3))))
  apart <- attr(check, "disagreement")
  for (i in 1:3) for (j in setdiff(1:3, i))
    expect_equal(apart[i, j], (check$log_evidence[i] - check$log_evidence[j]) /
                                sqrt(check$wide_se[i]^2 + check$wide_se[j]^2))
  expect_identical(unname(diag(apart)), numeric(4))
  expect_true(all(is.na(apart[4, 1:3])))
  w <- 1 / check$wide_se[2:3]^2
  mean <- sum(w * check$log_evidence[2:3]) / sum(w)
  expect_equal(check$z[1], (check$log_evidence[1] - mean) / sqrt(check$wide_se[1]^2 + 1 / sum(w)))
  expect_identical(check$z[4], NA_real_)
  expect_lt(max(abs(apart[1:3, 1:3])), 4)
  text <- said(check)
  expect_match(text, "Linear regression, known noise: dist ~ speed, n = 50", fixed = TRUE)
  expect_match(text, "The methods agree. The largest difference: ", fixed = TRUE)
  expect_match(said(check[c(1, 3), ]),
               "(laplace\\(importance = 200\\) and nested|nested\\(live = 40\\) and laplace)")
  expect_match(said(check[c(1, 4), ]), "nothing to compare")
  expect_no_error(printed(check["se"]))
})

test_that("crosscheck() is reproducible, and seeds differ", {
  methods <- list(likelihood_weighting(50), again = likelihood_weighting(50))
  values <- function(...) crosscheck(gaussian_mean(), c(1, 2, 3), methods, ...)$log_evidence
  expect_identical(values(seed = test_seed()), values(seed = test_seed()))
  expect_false(any(values(seed = test_seed()) %in% values(seed = test_seed(2))))
  expect_false(values(seed = test_seed())[1] == values(seed = test_seed())[2])
  expect_length(values(seed = 2^53), 2)
  set.seed(test_seed())
  one <- values()
  two <- values()
  set.seed(test_seed())
  expect_identical(values(), one)
  expect_false(identical(one, two))
})

test_that("crosscheck() lists a method that fails, and runs the others", {
  methods <- list(exact(), laplace(importance = 100), smc(particles = 50))
  check <- crosscheck(gaussian_mixture(components = 2), dozen(), methods, seed = test_seed())
  expect_match(check$error[1], "closed form")
  expect_identical(is.na(check$log_evidence), c(TRUE, FALSE, FALSE))
  expect_identical(check$reliable[1], FALSE)
  expect_match(said(check), "exact() failed: exact() needs a model", fixed = TRUE)
  none <- crosscheck(gaussian_mixture(components = 2), dozen(), list(exact(), second = exact()))
  expect_match(said(none), "nothing to compare")
  refused(plot(none), "No method gave an estimate")
})

test_that("crosscheck() says that methods disagree if they do", {
  problem <- truth_problem("linear1000")
  check <- crosscheck(problem$model, problem$data, list(laplace(importance = 100), harmonic_mean()),
                      seed = test_seed())
  expect_match(said(check), "failed its own checks", fixed = TRUE)
  expect_match(said(check), "nothing to compare", fixed = TRUE)
  expect_true(all(is.na(check$z)))
  check$reliable <- TRUE
  expect_match(said(check), "The methods do not agree: .* At least one of them is wrong.* too low")
})

test_that("estimates below a lower bound do not agree, however close together they are", {
  check <- crosscheck(gaussian_mean(), c(1, 2, 3), list(exact(), smc(particles = 50), laplace()),
                      seed = test_seed())
  expect_match(said(check), "The methods agree")
  check$bound[3] <- check$log_evidence[1] + 2
  expect_match(said(check), paste("log evidence is at least .* \\(laplace\\(\\)\\), and",
                                  "exact\\(\\), smc.* lie below that"))
  expect_match(grep("^exact.* se ", utils::capture.output(print(check)), value = TRUE),
               "below a lower bound$")
  # the cheap bound of variational Bayes is among the methods
  mixture <- crosscheck(gaussian_mixture(components = 2), dozen(),
                        list(laplace(importance = 200), variational()), seed = test_seed())
  expect_identical(mixture$bound[2], mixture$log_evidence[2])
  # that of the fit, by another start
  expect_equal(mixture$bound[1], mixture$bound[2], tolerance = 0.01)
  expect_match(grep("^variational", utils::capture.output(print(mixture)), value = TRUE),
               "a lower bound$")
  expect_identical(lower_bound(attr(mixture, "fits")[[2]]), mixture$log_evidence[2])
  own <- ledger_of(new_entry("particles", "unbiased", -4, 0.1))
  expect_identical(lower_bound(list(verdict = own)), -Inf)
  expect_setequal(attr(mixture, "verdict")$method, mixture$method)
})

test_that("crosscheck() claims no agreement if a method has a warning or hardly moves", {
  check <- crosscheck(gaussian_mean(), c(1, 2, 3),
                      list(exact(), smc(particles = 50), sequential(particles = 500)),
                      seed = test_seed())
  expect_match(said(check), "The methods agree") # a note on a method is no warning
  warns <- check
  warns$doubt[2] <- "warns"
  expect_match(said(warns), "does not show that they are right: smc(particles = 50) has warnings.",
               fixed = TRUE)
  expect_match(grep("^smc", utils::capture.output(print(warns)), value = TRUE), "has warnings$")
  warns$doubt[3] <- "failed"
  expect_match(said(warns),
               "sequential(particles = 500) failed its own checks; smc(particles = 50) has",
               fixed = TRUE)
  check$doubt[2] <- "prior conflict"
  expect_match(said(check), "The methods agree")
  fit <- attr(check, "fits")[[2]]
  expect_identical(check_doubt(fit), "")
  fit$trace$renewal <- 0.05
  expect_identical(check_doubt(fit), "hardly moves")
})

test_that("standard errors from few effective draws are widened", {
  fit <- attr(crosscheck(gaussian_mean(), c(1, 2, 3), list(exact(), smc(particles = 50)),
                         seed = test_seed()),
              "fits")[[2]]
  fit$trace$ess <- 4
  expect_equal(wide_se(fit), fit$se * qt(pnorm(3), 3) / 3)
  fit$trace$ess <- 1e6
  expect_equal(wide_se(fit), fit$se, tolerance = 1e-4)
  fit$se <- fit$verdict$se[startsWith(fit$verdict$says, "reported")] <- NA_real_
  expect_identical(wide_se(fit), NA_real_)
})

test_that("an error in a user's function does not lose what other methods found", {
  calls <- 0
  failing <- function(theta, y) {
    calls <<- calls + 1
    if (calls > 3000) stop("out of calls")
    sum(dnorm(y, theta, log = TRUE))
  }
  model <- custom_model("m", failing, function(m) dnorm(m, log = TRUE), rnorm)
  check <- crosscheck(model, c(1, 2, 3), list(laplace(importance = 100), nested(50, slice())),
                      seed = test_seed())
  expect_match(check$error[2], "out of calls")
  expect_lt(abs(check$log_evidence[1] - logml(evidence(gaussian_mean(), c(1, 2, 3), exact()))), 0.1)
  expect_error(crosscheck(model, c(1, 2, 3), seed = test_seed()), "out of calls",
               class = "simpleError")
})

test_that("a crosscheck can be plotted", {
  check <- crosscheck(gaussian_mean(), c(1, 2, 3),
                      list(exact(), smc(particles = 50), laplace(), harmonic_mean()),
    seed = test_seed())
  pdf(NULL)
  on.exit(dev.off())
  old <- par(no.readonly = TRUE)
  expect_invisible(plot(check))
  expect_identical(par("mar"), old$mar)
  skip_if_not_installed("ggplot2")
  drawn <- ggplot2::ggplot_build(ggplot2::autoplot(check))
  expect_equal(sort(drawn$data[[2]]$x), sort(check$log_evidence))
})

test_that("crosscheck() refuses methods and models that it cannot check", {
  methods <- list(laplace(), exact())
  refused(crosscheck(1, cars, methods), "`model` must be a model")
  refused(crosscheck(regression(dist ~ speed), methods = methods), "`data` must be given.")
  refused(crosscheck(regression(dist ~ speed), cars, exact()),
          "`methods` must be a list of at least two methods.")
  refused(crosscheck(regression(dist ~ speed), cars, list(exact(), 1)),
          "`methods` must be a method")
  refused(crosscheck(regression(dist ~ speed), cars, list(exact, smc)), "add parentheses")
  refused(crosscheck(regression(dist ~ hops), cars, methods), "hops")
  refused(crosscheck(regression(dist ~ speed), cars, methods, seed = -1), "`seed`")
})

test_that("fits with several priors of further parameters are compared without names", {
  d <- data.frame(y = c(1.2, 0.3, 2.2, 1.9, -0.4, 0.8), x = c(0.5, -1, 1.3, 0.7, -0.2, 0.1))
  fit <- quiet_fit(logevidence::regression(y ~ x, student(df = inverse_gamma(2, 10))),
                   d, laplace(), seed = test_seed())
  expect_equal(nrow(as.data.frame(compare_models(list(fit, fit)))), 2)
})

test_that("models without data have no number of observations, and one row has one", {
  own <- function(sd) quiet_fit(custom_model(
    "x", function(theta) dnorm(1, theta["x"], sd, log = TRUE),
    function(theta) dnorm(theta, log = TRUE), rnorm), method = laplace(importance = 50),
    seed = test_seed(), progress = FALSE)
  without <- compare_models(a = own(1), b = own(2), same_rows = TRUE)
  expect_match(said(without), "^Comparison of 2 models log evidence")
  expect_match(evidence_report(without)[["question"]], "by their evidence, with equal")
  expect_no_match(evidence_report(own(1))[["evidence"]], "observation")
  one <- lapply(c(1, 2), function(sd)
    evidence(gaussian_mean(prior_sd = sd), 0.3, exact(), seed = test_seed()))
  expect_match(said(compare_models(one)), "^Comparison of 2 models on n = 1 observation log")
  expect_match(evidence_report(one[[1]])[["evidence"]], "for n = 1 observation is", fixed = TRUE)
})

test_that("`seconds` of crosscheck() and of a race are those of each whole run", {
  # a likelihood in R that takes its time: the runs of C alone are much shorter
  slow <- function(pause) custom_model(
    "a", function(theta, data) {
      Sys.sleep(pause)
      sum(stats::dnorm(data$dist, theta, 20, log = TRUE))
    }, function(theta) stats::dnorm(theta, 40, 20, log = TRUE),
    function(n) stats::rnorm(n, 40, 20))
  quick <- ais(2, linear(2), kernel = rwm())
  timed <- function(code) {
    began <- proc.time()[["elapsed"]]
    value <- muffled(code)
    list(value = value, took = proc.time()[["elapsed"]] - began)
  }
  check <- timed(crosscheck(slow(0.02), cars, list(quick, quick, quick), seed = 1,
                            progress = FALSE))
  seconds <- check$value$seconds
  expect_gt(min(seconds), 0.1)
  # cumulated ones would sum to twice the time of the call
  expect_lt(sum(seconds), check$took + 0.05)
  race <- timed(evidence(list(a = slow(0.02), b = slow(0.01)), cars, quick, seed = 1,
                         progress = FALSE))
  own <- vapply(attr(race$value, "fits")[c("a", "b")], function(fit) fit$work[["seconds"]], 0)
  expect_gt(own[["a"]], own[["b"]])
  expect_gt(sum(own), 0.5 * race$took)
  expect_lt(sum(own), race$took + 0.05)
  # models on one source work side by side: the whole run
  blocks <- function() {
    at <- 0
    rows_function(function(reset) {
      if (reset) at <<- 0
      else if (at < 50) {
        Sys.sleep(0.1)
        at <<- at + 25
        cars[at - 24:0, ]
      }
    })
  }
  model <- regression(dist ~ speed)
  source <- timed(evidence(list(a = model, b = regression(dist ~ 1)), blocks(),
                           sgais(particles = 10), seed = 1, progress = FALSE))
  own <- vapply(attr(source$value, "fits"), function(fit) fit$work[["seconds"]], 0)
  expect_true(all(own > 0.15 & own < source$took + 0.05))
})

test_that("functions that take fits also take comparisons and races", {
  both <- compare_models(line, flat, prior = c(3, 1))
  again <- compare_models(both, prior = c(line = 3, flat = 1))
  expect_equal(as.data.frame(again), as.data.frame(both))
  expect_identical(post_prob(both), stats::setNames(both$posterior, both$model))
  expect_equal(post_prob(both, prior_prob = c(1, 1)),
               post_prob(line, flat, prior_prob = c(1, 1))[both$model])
  # a subset has the models that are left
  three <- compare_models(line, flat, square)
  expect_setequal(compare_models(three[three$model != "square", ])$model, c("line", "flat"))
  race <- muffled(evidence(list(a = regression(dist ~ speed), b = regression(dist ~ 1)), cars,
                           laplace(), seed = 1))
  expect_equal(compare_models(race)$log_evidence, race$log_evidence)
  expect_equal(post_prob(race), stats::setNames(race$posterior, race$model))
})

test_that("columns that were added to a comparison are printed, altered ones are refused", {
  both <- compare_models(line, flat)
  both$lines <- c(2.5, 10)
  both$who <- c("one", "two")
  text <- said(both)
  expect_match(text, "lines")
  expect_match(text, "10.0")
  expect_match(text, "two")
  altered <- both
  altered$se <- c("a", "b")
  expect_match(said(altered), "log_evidence")
  refused(plot(altered), "`x` must be a comparison with all its columns.")
  altered$model <- c("line", "other")
  refused(predict(altered, cars), "`object` must be a comparison with its columns `model`")
  altered <- unclass(both)
  altered$se <- 1
  altered <- structure(altered, class = class(both))
  for (verb in list(print, plot, as.data.frame, function(x) predict(x, cars)))
    refused(verb(altered), "columns of one length, 2")
  # fits that passed their checks have an estimate and a probability
  for (part in c("log_evidence", "posterior")) {
    altered <- both
    altered[[part]] <- NaN
    expect_no_match(said(altered), "Comparison of")
    refused(plot(altered), "`x` must be a comparison with all its columns.")
  }
  refused(predict(altered, cars), "`object` must be a comparison with its columns `model`")
})

test_that("a Bayes factor can be plotted and reported", {
  found <- bayes_factor(flat, line)
  text <- as.character(evidence_report(found))
  expect_match(text[1], "The Bayes factor of line over flat is ", fixed = TRUE)
  expect_match(text[1], "evidence against flat: decisive", fixed = TRUE)
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  expect_identical(plot(found), found)
  unknown <- muffled(bayes_factor(harmonic, line))
  refused(plot(unknown), "`x` must be a Bayes factor that is known")
  expect_match(as.character(evidence_report(unknown))[1], "not known")
  altered <- found
  altered$log_bf <- "a"
  for (verb in list(print, plot, report, as.data.frame))
    refused(verb(altered), "the part `log_bf` of this one is \"a\"")
})

test_that("an altered crosscheck is printed as it is, or refused", {
  checked <- muffled(crosscheck(linear_regression(dist ~ speed), cars,
                                list(exact(), laplace(importance = 200)), seed = 1,
                                progress = FALSE))
  expect_match(said(checked), "The methods agree")
  for (change in list(list("seconds", c(NA, 1)), list("wide_se", c(0, NA)))) {
    altered <- checked
    altered[[change[[1]]]] <- change[[2]]
    expect_no_match(said(altered), "The methods")
  }
})

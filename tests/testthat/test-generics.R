# R's generics for models: each gives a right answer or an error in words, for a fit and for a
# comparison.

data <- transform(cars, group = factor(rep(c("a", "b"), 25)), fast = speed > 15)
fit <- evidence(linear_regression(dist ~ speed + group + fast, sigma = 15, prior_sd = 20), data,
                exact(), seed = test_seed())
least <- lm(dist ~ speed + group + fast, data)
flat <- evidence(linear_regression(dist ~ 1, sigma = 15, prior_sd = 20), data, exact(),
                 seed = test_seed())
mixture <- muffled(evidence(gaussian_mixture(components = 2), scale(faithful), laplace(),
                            seed = test_seed()))
both <- compare_models(fit, flat)

# Functions of a package that dispatch on their first argument and need no other.
generics_of <- function(package) {
  space <- asNamespace(package)
  names <- if (package == "base") ls(baseenv()) else getNamespaceExports(package)
  Filter(function(name) {
    f <- get(name, space)
    is.function(f) && !is.primitive(f) && any(grepl("UseMethod", deparse(body(f))))
  }, names)
}

# What are answers for a list or a data frame, or is about neither models nor data.
OF_LISTS <- c("print", "format", "summary", "plot", "str", "head", "tail", "with", "levels",
              "row.names", "as.null", "as.list", "as.data.frame", "seq", "is.na<-", "mtfrm",
              "toString", "dim", ".DollarNames", "isS3stdGeneric", "as.person", "as.personList",
              "type.convert", "text", "open", "close", "flush", "seek", "update", "edit", "prompt",
              "units", "julian", "months", "weekdays", "quarters", "trunc", "round")

# Those of stats that a fit answers; their values are compared below and in test-verbs.R.
ANSWERS <- c("case.names", "coef", "coefficients", "confint", "deviance", "family", "fitted",
             "fitted.values", "formula", "getCall", "model.frame", "model.matrix", "nobs",
             "predict", "resid", "residuals", "sigma", "simulate", "terms", "variable.names",
             "vcov")

# The result of a generic: its value, or the message of its error.
ask_generic <- function(package, name, x) {
  f <- get(name, asNamespace(package))
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  tryCatch(suppressWarnings(list(value = f(x))), error = function(e) list(error = e))
}

test_that("each generic of stats works for a fit or is an error", {
  for (name in setdiff(generics_of("stats"), c(OF_LISTS, ANSWERS))) {
    result <- ask_generic("stats", name, fit)
    if (name %in% c("na.action", "naprint")) next # as of lm(): NULL and "" where no row is missing
    expect_s3_class(result$error, "error")
  }
  for (name in ANSWERS) expect_false(is.null(ask_generic("stats", name, fit)$value), info = name)
})

test_that("errors of generics for fits name the generic", {
  verbs <- c("logLik", "AIC", "BIC", "extractAIC", "anova", "add1", "drop1", "effects", "alias",
             "influence", "hatvalues", "cooks.distance", "rstandard", "rstudent", "dfbeta",
             "dfbetas", "proj", "profile", "df.residual", "weights", "quantile", "median",
             "density")
  for (name in verbs) {
    error <- ask_generic("stats", name, fit)$error
    expect_s3_class(error, "logevidence_error")
    expect_match(conditionMessage(error), paste0("^", name, "\\(\\) .*\\(.*\\.$"))
  }
  for (name in c("mean", "sort", "unique", "merge", "as.matrix", "rev", "duplicated", "t", "split"))
    expect_s3_class(ask_generic("base", name, fit)$error, "logevidence_error")
  for (name in c("hist", "pairs", "boxplot", "lines"))
    expect_s3_class(ask_generic("graphics", name, fit)$error, "logevidence_error")
  refused(range(fit), "range() does not apply to a whole fit.")
  refused(log(fit), "log() does not apply to fits. The log evidence is logml()")
  refused(fit - flat, "- does not apply to fits. The log evidence is logml(), and two fits are")
  refused(stats::step(fit), "extractAIC() has no meaning for a fit")
})

test_that("as.list() of a fit has its parts", {
  expect_length(fit, length(unclass(fit)))
  expect_null(dim(fit))
  expect_identical(fit[["log_evidence"]], fit$log_evidence)
  expect_identical(fit[c("n", "se")], list(n = 50L, se = 0))
  expect_identical(names(as.list(fit)), names(fit))
  expect_identical(class(as.list(fit)), "list")
  expect_identical(as.character(fit), format(fit))
  expect_identical(getCall(fit), fit$call)
})

test_that("terms, model frame and model matrix are those of lm()", {
  expect_identical(family(fit), gaussian())
  expect_identical(labels(fit), labels(least))
  expect_identical(attr(terms(fit), "term.labels"), attr(terms(least), "term.labels"))
  expect_equal(model.frame(fit), model.frame(least), ignore_attr = TRUE)
  expect_equal(model.matrix(fit), model.matrix(least))
  expect_identical(variable.names(fit), variable.names(least))
  expect_identical(case.names(fit), case.names(least))
  expect_null(na.action(fit))
  refused(model.matrix(fit, data = data[1:20, ]), "`data` must be those of the fit")
  refused(model.frame(fit, what = 1), "Arguments must be among those of the help page, not `what`.")
  within <- lapply(list(fit), model.frame)
  expect_identical(nrow(within[[1]]), 50L)
})

test_that("family() gives the families of R where R has them", {
  of <- function(...) family(evidence(regression(count ~ spray, ...), InsectSprays,
                                      laplace(importance = 50), seed = test_seed()))
  expect_identical(of(family = poisson())$link, "log")
  expect_s3_class(of(family = poisson()), "family")
  expect_s3_class(of(family = negative_binomial()), "regression_family")
  refused(family(mixture), "family() has nothing to return: this gaussian_mixture() has no family")
})

test_that("for a model without formula or coefficients the error says that it has none", {
  for (verb in list(terms, labels, model.frame, model.matrix, variable.names))
    refused(verb(mixture), "has no formula with covariates")
  expect_identical(case.names(mixture), as.character(1:272))
  listed <- evidence(linear_regression(sigma = 15), list(x = cars$speed, y = cars$dist), exact(),
                     seed = test_seed())
  refused(model.matrix(listed), "has no formula with covariates")
  expect_identical(case.names(listed), as.character(1:50))
})

test_that("fixef() is coef(), and ranef() and VarCorr() without groups are errors", {
  skip_if_not_installed("nlme")
  of <- function(name) getExportedValue("nlme", name)(fit)
  expect_identical(of("fixef"), coef(fit))
  refused(of("ranef"), "ranef() has nothing to return: this linear_regression() has no group-level")
  refused(of("VarCorr"), "See sigma() and vcov().")
})

test_that("with lags the model frame has the rows whose lags are known", {
  rows <- data.frame(level = as.numeric(lh))
  lagged <- evidence(linear_regression(level ~ lags(level), sigma = 0.5), rows, exact(),
                     seed = test_seed())
  expect_equal(fitted(lagged), as.vector(cbind(1, rows$level[-48]) %*% coef(lagged)))
  expect_equal(unname(model.matrix(lagged)[, 2]), rows$level[-48])
  expect_identical(case.names(lagged), as.character(2:48))
})

test_that("generics for one model refuse a comparison", {
  for (name in c("logLik", "AIC", "BIC", "anova", "residuals", "fitted", "deviance", "sigma",
                 "family", "model.frame", "model.matrix", "df.residual", "weights", "update",
                 "getCall", "case.names", "median", "quantile", "hatvalues"))
    refused(stop(ask_generic("stats", name, both)$error),
            paste0(name, "() is for one model. The fits of a comparison are attr(x, \"fits\")."))
  refused(mean(both), "mean() is for one model.")
  expect_identical(nobs(both), 50L)
  expect_identical(dim(both), c(2L, 8L))
})

test_that("these generics refuse an incomplete fit", {
  part <- structure(list(model = fit$model, n = 3), class = "incomplete_evidence")
  for (f in list(logLik, terms, family, model.frame, model.matrix, labels, as.data.frame, quantile))
    refused(f(part), "The fit is incomplete: continue it by resume() before")
  skip_if_not_installed("posterior")
  refused(posterior::as_draws(part), "The fit is incomplete")
  refused(posterior::as_draws_df(part), "The fit is incomplete")
})

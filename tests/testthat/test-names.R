# Names of constructors with and without a prefix, and packages that have functions of the same
# names: whichever was attached last, the names with a prefix, the short ones in arguments and the
# verbs of this package give the same numbers.

# Each constructor of a kind, found by what it makes.
KINDS <- c(evidence_kernel = "kernel", evidence_method = "method", evidence_schedule = "schedule",
           evidence_prior = "prior", evidence_jzs = "prior",
           evidence_lkj = "prior", regression_family = "family")

constructors <- function() {
  first <- first_names(getNamespaceExports("logevidence"))
  # those of models load rstan, those of sources other packages
  first <- first[!grepl("^rows_|_model$", first)]
  made <- lapply(stats::setNames(nm = sort(first)), function(name)
    tryCatch(function_named(name)(), error = function(e) NULL))
  kind <- vapply(made, function(x) unname(KINDS[intersect(class(x), names(KINDS))])[1], "")
  kind[!is.na(kind)]
}

test_that("each constructor is exported with a prefix, and by a short name that nobody else has", {
  kind <- constructors()
  expect_setequal(unique(kind), KINDS)
  expect_gt(length(kind), 35)
  exports <- getNamespaceExports("logevidence")
  long <- paste0(kind, "_", names(kind))
  expect_identical(setdiff(long, exports), character())
  for (i in seq_along(kind))
    expect_identical(function_named(long[i]), function_named(names(kind)[i]))
  # their short names are those that arguments find
  known <- asNamespace("logevidence")$SHORT_NAMES
  expect_setequal(long, paste0(rep(names(known), lengths(known)), "_", unlist(known)))
  expect_setequal(setdiff(names(kind), exports), c(
    "slice", "hmc", "sghmc", "sgld", "prior_draws", "sequential", "laplace", "bic", "exact", "smc",
    "linear", "normal", "student_t", "cauchy", "exponential", "inverse_gamma", "lkj", "student",
    "weibull", "negative_binomial"))
  expect_false(any(c("report", "tune") %in% exports))
  for (verb in c("compare_models", "check_model", "posterior_draws"))
    expect_identical(function_named(paste0("evidence_", verb)), function_named(verb))
  expect_identical(density_model, getS3method("density", "formula"))
})

names_page <- function() {
  page <- tools::Rd_db("logevidence")[["logevidence_names.Rd"]]
  if (is.null(page)) page <- file.path("..", "..", "man", "logevidence_names.Rd")
  skip_if(is.character(page) && !file.exists(page), "installed without help pages")
  plain <- list(underline_titles = FALSE)
  paste(utils::capture.output(tools::Rd2txt(page, options = plain)), collapse = " ")
}

test_that("the help page names each masked function, and no base package masks one", {
  text <- names_page()
  ours <- getNamespaceExports("logevidence")
  for (package in c("stats", "base", "methods", "utils", "graphics", "grDevices", "datasets",
                    "MASS", "survival", "Matrix", "nlme")) {
    skip_if_not_installed(package)
    theirs <- if (package == "base") ls(baseenv()) else getNamespaceExports(package)
    expect_identical(intersect(ours, theirs), character(), info = package)
  }
  for (package in c("dplyr", "future", "mclust", "parameters", "performance", "posterior", "loo",
                    "bridgesampling", "bayestestR", "insight", "ggplot2", "rstantools", "report"))
    if (requireNamespace(package, quietly = TRUE))
      for (name in intersect(ours, getNamespaceExports(package)))
        expect_match(text, paste0(name, "()"), fixed = TRUE)
})

test_that("the help page names each name with a prefix", {
  text <- names_page()
  kind <- constructors()
  kind <- kind[kind != "method"]
  named <- vapply(paste0(kind, "_", names(kind), "()"), grepl, NA, text, fixed = TRUE)
  expect_identical(names(named)[!named], character())
})

test_that("a method is printed as it was called", {
  expect_output(print(method_laplace(importance = 200)), "method_laplace(importance = 200)",
                fixed = TRUE)
  # bridgesampling, where it is loaded, has a print() for objects of class "bridge"
  requireNamespace("bridgesampling", quietly = TRUE)
  expect_output(print(method_bridge()), "Method method_bridge()", fixed = TRUE)
  expect_output(print(kernel_slice()), "Kernel slice(", fixed = TRUE)
  refused(method_laplace(importance = -1), "`importance` must be")
  refused(kernel_rwm(step_size = 0), "`step_size` must be a positive number")
  refused(density_model(3), "`x` must be a formula without left-hand side")
  refused(evidence_compare_models(1, 2), "`1` must be a fit from `evidence()`")
})

test_that("values of functions with the same name are refused with what to write", {
  advice <- function(prefix) paste0("with `", prefix, "_`: see ?logevidence_names.")
  other <- structure(list(), class = "other")
  # rstanarm's normal()
  prior <- list(dist = "normal", df = NA, location = 0, scale = 1, autoscale = FALSE)
  refused(regression(dist ~ speed, prior = prior), "not one of rstanarm.")
  refused(regression(dist ~ speed, prior = prior), advice("prior"))
  refused(regression(dist ~ speed, intercept = prior), advice("prior"))
  refused(regression(dist ~ speed, sigma = other), advice("prior"))
  refused(regression(dist ~ speed, family = other), advice("family"))
  refused(regression(dist ~ speed, family = structure(list(family = "student"),
                                                      class = "brmsfamily")), advice("family"))
  refused(ais(kernel = other), advice("kernel"))
  refused(ais(schedule = other), advice("schedule"))
  refused(evidence(gaussian_mean(), 1:3, other), advice("method"))
})

test_that("formulas and priors of brms are refused, and the error says what to write here", {
  refused(regression(dist ~ speed, prior = structure(data.frame(prior = "normal(0, 5)"),
                                                     class = c("brmsprior", "data.frame"))),
          "not one of brms: for example `normal(0, 2.5)` for all coefficients")
  refused(regression(time | cens(gone) ~ age, family = "weibull"),
          "`survival::Surv(time, 1 - gone)`")
  refused(regression(y | trials(n) ~ x, family = "binomial"), "`cbind(y, n - y)`")
  refused(regression(y | weights(w) ~ x), "have no weights: give a row as often")
  refused(regression(y | se(w) ~ x), "Noise that is known for each row is a column")
  refused(evidence(regression(dist ~ s(speed)), cars), "must have no term s(): smooth terms")
  refused(evidence(regression(mvbind(dist, speed) ~ 1), cars), "a model has one response")
  # a function of this name that exists is called
  s <- function(x) x
  known <- evidence(regression(dist ~ s(speed)), cars, exact())
  expect_identical(known$log_evidence,
                   evidence(regression(dist ~ I(speed)), cars, exact())$log_evidence)
})

test_that("objects of other packages are passed on to their functions", {
  skip_if_not_installed("bridgesampling")
  for (name in c("logml", "bayes_factor", "post_prob", "error_measures"))
    registerS3method(name, "fit_of_others", function(...) list(...),
                     envir = asNamespace("bridgesampling"))
  one <- structure(list(), class = "fit_of_others")
  two <- structure(list(1), class = "fit_of_others")
  expect_identical(logml(one), list(one))
  expect_identical(error_measures(one), list(one))
  expect_identical(bayes_factor(one, two, log = TRUE), list(one, two, log = TRUE))
  expect_identical(post_prob(one, two, prior_prob = 1:2)[1:3], list(one, two, prior_prob = 1:2))
  refused(bayes_factor(structure(list(), class = "unknown"), 1), "`x1` must be a fit")
})

test_that("functions that this package masks get the objects of their packages", {
  one <- structure(list(), class = "fit_of_others")
  refused(posterior_draws(one, n = 2), "`fit` must be a fit")
  attach(list(posterior_draws = function(x, shape = "long") list(x, shape)),
         name = "package:marginaleffects", warn.conflicts = FALSE)
  on.exit(detach("package:marginaleffects", character.only = TRUE))
  expect_identical(posterior_draws(one), list(one, "long"))
  expect_identical(posterior_draws(one, "DxP"), list(one, "DxP"))
  expect_identical(posterior_draws(one, shape = "PxD"), list(one, "PxD"))
  refused(posterior_draws(3), "`fit` must be a fit")
  fit <- evidence(gaussian_mean(), c(1.2, 0.4, 2.1), exact(), seed = test_seed())
  expect_identical(dim(posterior_draws(fit, weighted = FALSE, n = 7)), c(7L, 1L))
})

# All names with a prefix and the main verbs, with numbers; it runs in other processes, too.
use_all_names <- function() {
  numbers <- function(x) c(x$log_evidence, x$se, colSums(x$draws))
  made <- list(
    kernel_baoab(), kernel_hmc(), kernel_mala(), kernel_prior_draws(), kernel_rwm(), kernel_sghmc(),
    kernel_sgld(), kernel_slice(), method_ais(), method_bic(), method_bridge(), method_chib(),
    method_exact(), method_harmonic_mean(), method_hybrid(), method_laplace(),
    method_likelihood_weighting(), method_nested(), method_online_nested(), method_partitions(),
    method_power_posterior(), method_sequential(), method_sgais(), method_smc(),
    method_variational(), schedule_adaptive(), schedule_linear(), schedule_sigmoidal(),
    prior_cauchy(), prior_exponential(), prior_half_normal(), prior_half_student(),
    prior_inverse_gamma(), prior_jzs(), prior_normal(), prior_student_t(),
    family_negative_binomial(), family_student(), family_weibull()
  )
  rows <- cars
  centred <- as.vector(scale(rows$dist))
  priors <- list(prior_normal(0, 5), `(Intercept)` = prior_cauchy(0, 20))
  linear_fit <- evidence(linear_regression(dist ~ speed, prior_sd = 20), rows, seed = 1)
  flat <- evidence(linear_regression(dist ~ 1, prior_sd = 20), rows, seed = 2)
  fits <- list(
    linear_fit, flat,
    evidence(regression(dist ~ speed, family = family_student(), prior = priors,
                        auxiliary = prior_half_student(3, 20)), rows,
             method_laplace(importance = 100), seed = 3),
    evidence(density_model(~ dnorm(dist, mu, s, log = TRUE), mu = ~ speed,
                           s = prior_exponential(0.1), prior = prior_student_t(3, 0, 20)), rows,
             method_laplace(importance = 100), seed = 4),
    evidence(gaussian_mean(), centred, method_nested(live = 20, kernel = kernel_slice()),
             seed = 5),
    evidence(gaussian_mean(), centred,
             method_ais(particles = 10, schedule = schedule_linear(20), kernel = kernel_hmc()),
             seed = 6),
    evidence(gaussian_mean(), centred, method_sequential(), seed = 7),
    evidence(linear_regression(dist ~ speed, prior = prior_jzs()), rows, seed = 8),
    evidence(gaussian_mixture(components = 2,
                              location = 0, rate = 1),
                    centred, method_smc(particles = 20), seed = 9)
  )
  both <- evidence_compare_models(linear_fit, flat)
  checked <- evidence_check_model(gaussian_mean(), c(1.2, 0.4, 2.1), seed = 1)
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  plot(linear_fit)
  plot(both)
  list(
    made = made, fits = lapply(fits, numbers), table = as.data.frame(both),
    checked = checked$holds, draws = colSums(evidence_posterior_draws(linear_fit)),
    factor = bayes_factor(linear_fit, flat)$log_bf, probabilities = post_prob(linear_fit, flat),
    errors = error_measures(linear_fit), number = logml(flat), each = sum(log_lik(flat, seed = 1)),
    verbs = list(coef(linear_fit), vcov(linear_fit), confint(linear_fit), sigma(linear_fit),
                 nobs(linear_fit), formula(linear_fit), family(linear_fit)$family,
                 head(fitted(linear_fit, rows)), head(residuals(linear_fit, rows)),
                 predict(linear_fit, rows[1:2, ]), predict(both, rows[1:2, ]),
                 simulate(linear_fit, nsim = 1, seed = 1, newdata = rows[1:2, ])),
    update = numbers(update(linear_fit, rows[1:5, ])),
    lags = numbers(evidence(linear_regression(dist ~ lags(dist, 1), prior_sd = 20), rows,
                            method_exact(), seed = 1)),
    said = utils::capture.output(print(summary(flat)$verdict[, 1:2]), print(both),
                                 for (x in made) print(x))
  )
}

# The value `x` of a script in a fresh process, or what it said.
fresh_value <- function(...) {
  script <- tempfile(fileext = ".R")
  out <- tempfile(fileext = ".rds")
  on.exit(unlink(c(script, out)))
  dump("use_all_names", script)
  cat("environment(use_all_names) <- globalenv()", ..., sprintf("saveRDS(x, '%s')", out),
      file = script, sep = "\n", append = TRUE)
  said <- suppressWarnings(system2(file.path(R.home("bin"), "Rscript"), script, stdout = TRUE,
                                   stderr = TRUE))
  if (file.exists(out)) readRDS(out) else said
}

# With a package attached after this one, then before it.
with_package <- function(attach, detach) {
  fresh_value("ours <- function() library(logevidence, warn.conflicts = FALSE)",
              "theirs <- function() suppressWarnings(suppressPackageStartupMessages(", attach, "))",
              "ours(); theirs(); x <- list(later = use_all_names())",
              "detach('package:logevidence')", detach,
              "theirs(); ours(); x$earlier <- use_all_names()")
}

# Formulas and functions have other environments there.
expect_same <- function(found, expected) {
  expect_type(found, "list")
  expect_equal(found$later, expected, tolerance = 0, ignore_attr = FALSE,
               ignore_formula_env = TRUE)
  expect_identical(found$earlier$fits, found$later$fits)
  expect_equal(found$earlier, expected, tolerance = 0, ignore_formula_env = TRUE)
}
expected <- suppressWarnings(use_all_names())

test_that("names and verbs do not depend on what masks the short names", {
  kind <- constructors()
  masks <- c(names(kind), "compare_models", "check_model", "posterior_draws", "density")
  expect_same(with_package(
    c("{masks <- sapply(c(", paste0("'", masks, "'", collapse = ", "), "), function(name)",
      "  eval(substitute(function(...) stop(name, ' is masked'), list(name = name))))",
      "attach(masks, name = 'masks')}"),
    "stopifnot(inherits(try(nested(), TRUE), 'try-error')); detach('masks')"), expected)
})

for (package in c("dplyr", "mclust", "parameters",
                  fast_or_slow(NULL, c("bridgesampling", "future", "performance", "brms",
                                       "rstanarm"))))
  test_that(paste("names and verbs work with", package, "attached before and after"), {
    skip_if_not_installed(package)
    expect_same(with_package(sprintf("library(%s)", package),
                             sprintf("detach('package:%s')", package)), expected)
  })

test_that("check_model() works for models of this package and those of package performance", {
  skip_if_not_installed("performance")
  x <- fresh_value("library(logevidence); library(performance, warn.conflicts = FALSE)",
                   "x <- list(check_model(gaussian_mean(), c(1.2, 0.4, 2.1), seed = 1)$holds)",
                   "detach('package:logevidence'); library(logevidence, warn.conflicts = FALSE)",
                   "x[[2]] <- class(check_model(lm(dist ~ speed, cars)))",
                   "x[[3]] <- try(check_model(3), silent = TRUE)")
  expect_identical(x[[1]], expected$checked)
  expect_true("check_model" %in% x[[2]])
  expect_match(x[[3]], "`model` must be a model", fixed = TRUE)
})

test_that("compare_models() passes models of other packages on to package parameters", {
  skip_if_not_installed("parameters")
  x <- fresh_value("library(parameters); library(logevidence, warn.conflicts = FALSE)",
                   "line <- lm(dist ~ speed, cars); flat <- lm(dist ~ 1, cars)",
                   "x <- compare_models(line, second = flat, ci = 0.9)")
  expect_s3_class(x, "compare_parameters")
  expect_true(all(c("Coefficient.line", "Coefficient.second") %in% names(x)))
})

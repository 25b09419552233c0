# The short names of constructors in arguments: they are those of this package, whatever else is
# attached, and the variables of the user are found as before. Code is run in an environment that
# sees what is attached, and not the inside of this package.

outside <- function(code, ...)
  eval(substitute(code), list2env(list(...), parent = globalenv()))

short <- unlist(asNamespace("logevidence")$SHORT_NAMES, use.names = FALSE)

# Attached after this package, with functions of all names, which are never called.
with_others <- function(code) {
  others <- lapply(stats::setNames(nm = c(short, "report", "tune")), function(name)
    eval(substitute(function(...) stop(name, "() of others was called"), list(name = name))))
  attach(others, name = "others", warn.conflicts = FALSE)
  on.exit(detach("others"))
  code
}

rows <- c(1.2, 0.4, 2.1)

test_that("the arguments of models find the priors and families of this package", {
  found <- with_others(outside(list(
    regression(dist ~ speed, family = student(df = exponential(1)),
               prior = list(normal(0, 1), `(Intercept)` = cauchy(0, 9)),
               auxiliary = half_student(3, 2)),
    regression(dist ~ speed, weibull),
    regression(weight ~ Time + (Time | Chick), group_sd = half_student(3, 20), group_cor = lkj(2),
               intercept = student_t(3, 0, 5), sigma = exponential(2)),
    linear_regression(dist ~ speed, prior = jzs()),
    linear_regression(dist ~ speed, prior = normal(0, 1), sigma = inverse_gamma(2, 2)),
    softmax_regression(Species ~ Sepal.Length, prior = normal(0, 3)),
    density(~ dnorm(dist, mu, s, log = TRUE), mu = ~ speed, s = half_normal(20),
            prior = normal(0, 20)),
    custom_model("m", function(theta, data) sum(dnorm(data, theta, log = TRUE)),
                 prior = list(m = normal(0, 2)))$shown_prior
  )))
  expected <- list(
    regression(dist ~ speed, family = family_student(df = prior_exponential(1)),
               prior = list(prior_normal(0, 1), `(Intercept)` = prior_cauchy(0, 9)),
               auxiliary = prior_half_student(3, 2)),
    regression(dist ~ speed, family_weibull()),
    regression(weight ~ Time + (Time | Chick), group_sd = prior_half_student(3, 20),
               group_cor = prior_lkj(2), intercept = prior_student_t(3, 0, 5),
               sigma = prior_exponential(2)),
    linear_regression(dist ~ speed, prior = prior_jzs()),
    linear_regression(dist ~ speed, prior = prior_normal(0, 1), sigma = prior_inverse_gamma(2, 2)),
    softmax_regression(Species ~ Sepal.Length, prior = prior_normal(0, 3)),
    density(~ dnorm(dist, mu, s, log = TRUE), mu = ~ speed, s = prior_half_normal(20),
            prior = prior_normal(0, 20)),
    custom_model("m", function(theta, data) sum(dnorm(data, theta, log = TRUE)),
                 prior = list(m = prior_normal(0, 2)))$shown_prior)
  shown <- function(x) capture.output(print(x))
  expect_identical(lapply(found, shown), lapply(expected, shown))
})

test_that("the arguments of methods find the kernels, schedules and methods of this package", {
  found <- with_others(outside(list(
    method_ais(10, linear(20), hmc()), method_smc(kernel = slice()), method_nested(20, rwm()),
    method_hybrid(start = slice(), kernel = sghmc()), method_power_posterior(run = smc(ess = 0.9)),
    method_sgais(early = list(kernel = mala())), method_online_nested(kernel = slice()),
    method_nested(kernel = prior_draws()), method_bridge(kernel = rwm()),
    method_harmonic_mean(kernel = mala()), method_sequential(kernel = sgld())
  )))
  expected <- list(
    method_ais(10, schedule_linear(20), kernel_hmc()), method_smc(kernel = kernel_slice()),
    method_nested(20, kernel_rwm()),
    method_hybrid(start = kernel_slice(), kernel = kernel_sghmc()),
    method_power_posterior(run = method_smc(ess = 0.9)),
    method_sgais(early = list(kernel = kernel_mala())),
    method_online_nested(kernel = kernel_slice()),
    method_nested(kernel = kernel_prior_draws()), method_bridge(kernel = kernel_rwm()),
    method_harmonic_mean(kernel = kernel_mala()), method_sequential(kernel = kernel_sgld()))
  parts <- function(method) unclass(method)[c("name", "settings", "kernels", "spare")]
  expect_identical(lapply(found, parts), lapply(expected, parts))
})

test_that("verbs find methods: by place, by name, in lists and functions, by dots and do.call()", {
  same <- evidence(gaussian_mean(), rows, method_exact(), seed = 1)$log_evidence
  found <- with_others(outside({
    by_dots <- function(...) evidence(gaussian_mean(), rows, ..., seed = 1)
    deep <- function(...) vapply(1, function(i) by_dots(...)$log_evidence, 0)
    piped <- gaussian_mean() |> evidence(rows, exact(), seed = 1)
    far <- function() {
      n <- 40
      by_dots(method = smc(particles = n))$particles
    }
    list(
      place = evidence(gaussian_mean(), rows, exact(), seed = 1), piped = piped,
      dots = by_dots(exact()), deep = deep(method = exact()), far = far(),
      quoted = do.call(evidence, list(gaussian_mean(), rows, quote(exact()))),
      value = do.call("evidence", list(gaussian_mean(), rows, method_exact())),
      local = local({
        k <- 30
        evidence(gaussian_mean(), rows, smc(particles = k), seed = 1)
      }),
      with = with(list(k = 30), evidence(gaussian_mean(), rows, smc(particles = k), seed = 1)),
      each = lapply(list(method_exact(), method_bic()), function(m)
        evidence(gaussian_mean(), rows, m, seed = 1)),
      lists = crosscheck(gaussian_mean(), rows, list(exact(), smc(particles = 50)), seed = 1),
      made = crosscheck(gaussian_mean(), rows,
                        lapply(c(50, 60), function(k) smc(particles = k)), seed = 1),
      path = kernel_path(gaussian_mean(), rows, slice(), steps = 2, seed = 1),
      bounds = bdmc(clustering(components = 1), n = 5, method = ais(schedule = linear(5)),
                    seed = 1),
      tuned = evidence_tune(gaussian_mean(), rows, ais(particles = 5, kernel = hmc()),
                            list(schedule = list(linear(5), sigmoidal(5))), datasets = 1,
                            chains = 2, seed = 1)
    )
  }, rows = rows))
  numbers <- c("place", "piped", "dots", "quoted", "value")
  for (name in numbers) expect_identical(found[[name]]$log_evidence, same)
  expect_identical(found$deep, same)
  expect_identical(found$local$log_evidence, found$with$log_evidence)
  expect_identical(found$each[[1]]$log_evidence, same)
  expect_identical(nrow(found$lists), 2L)
  expect_identical(nrow(found$made), 2L)
  expect_identical(deparse1(found$place$call$method), "exact()")
  expect_identical(deparse1(found$place$method$call), "exact()")
  expect_s3_class(found$tuned, "tuning")
})

test_that("variables of the user with such names are found, functions of packages by `::`", {
  found <- with_others(outside({
    normal <- 3
    exact <- method_exact()
    linear <- function(...) stop("a function of the user")
    list(regression(dist ~ speed, prior = normal(0, normal)),
         evidence(gaussian_mean(), rows, exact, seed = 1),
         method_ais(10, linear(7)),
         regression(dist ~ speed, prior = logevidence::prior_normal(0, normal)))
  }, rows = rows))
  expect_output(print(found[[1]]), "normal(mean = 0, sd = 3)", fixed = TRUE)
  expect_identical(found[[2]]$method$name, "exact")
  expect_identical(found[[3]]$settings, method_ais(10, schedule_linear(7))$settings)
  expect_output(print(found[[4]]), "normal(mean = 0, sd = 3)", fixed = TRUE)
})

test_that("arguments of functions of the user, and formulas, are left as they are", {
  expect_error(with_others(outside({
    f <- function(m) evidence(gaussian_mean(), rows, m)
    f(exact())
  }, rows = rows)), "exact() of others was called", fixed = TRUE)
  here <- new.env(parent = globalenv())
  here$normal <- function(x) x
  formulas <- eval(quote(regression(dist ~ normal(speed), gaussian(), sigma ~ normal(speed),
                                    prior = normal(0, 1))), here)
  expect_identical(environment(formulas$formula), here)
  refused(evidence(gaussian_mean(), rows, exact), "not a function: add parentheses")
})

test_that("missing arguments stay missing, and an argument is evaluated once", {
  expect_identical(method_sgais()$call, quote(method_sgais()))
  count <- 0
  counted <- function(x) {
    count <<- count + 1
    x
  }
  evidence(gaussian_mean(), rows, counted(exact()), seed = 1)
  expect_identical(count, 1)
  # an argument that is not needed is not evaluated
  expect_identical(outside({
    f <- function(kernel) method_ais(preset = "paper", kernel = kernel)
    f()$kernels[[1]]$name
  }), "sghmc")
})

test_that("dplyr's slice() is not masked, and ours is found in arguments, in both orders", {
  skip_if_not_installed("dplyr")
  found <- function(...) {
    code <- c(paste0(".libPaths(", deparse1(.libPaths()), ")"), ...,
              "stopifnot(nrow(mtcars |> slice(1:2)) == 2)",
              "fit <- evidence(gaussian_mean(), c(1, 0), nested(20, kernel = slice()), seed = 1)",
              "cat(fit$method$kernels[[1]]$name)")
    file <- tempfile(fileext = ".R")
    on.exit(unlink(file))
    writeLines(code, file)
    paste(suppressWarnings(system2(file.path(R.home("bin"), "Rscript"), file, stdout = TRUE,
                                   stderr = TRUE)), collapse = "\n")
  }
  theirs <- "suppressMessages(library(dplyr))"
  expect_match(found(theirs, "library(logevidence)"), "slice$")
  expect_match(found("library(logevidence)", theirs), "slice$")
})

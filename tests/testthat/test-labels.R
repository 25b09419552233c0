# Names of fits in comparisons, the reference, and rows that are the same in other forms.

quick <- laplace(importance = 50)
run <- function(model, data = cars, seed = test_seed(), ...)
  quiet_fit(model, data, quick, seed = seed, progress = FALSE, ...)
regression_of <- function(formula, sd = 20) linear_regression(formula, sigma = 15, prior_sd = sd)
labels_of <- function(...) model_labels(list(...))

test_that("labels have what differs between the models", {
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
  own <- "prior = default, intercept = default"
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
    run(regression(dist ~ speed, family = family, prior_sd = 20)))
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

test_that("labels of long formulas have the terms that differ", {
  long <- paste("dist ~", paste0("I(speed^", 1:6, "/1000)", collapse = " + "))
  fits <- list(run(regression_of(stats::as.formula(long))),
               run(regression_of(stats::as.formula(paste(long, "+ sin(speed)")))))
  expect_identical(model_labels(fits), c("~ ...", "~ ... + sin(speed)"))
})

test_that("fits of calls, of a list and of a loop get distinct names", {
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
  names <- spec_names(lapply(normals, function(model) list(model = model)), c("y", "x"))
  expect_match(names[2], "dnorm(y, mu, 2, log = TRUE)", fixed = TRUE)
  # before the columns are known, `y` may be one
  expect_identical(spec_names(lapply(normals, function(model) list(model = model))),
                   c("model 1", "model 2"))
  expect_identical(compare_models(fits[[1]], fits[[2]])$model[1],
                   paste0("fits[[", which.max(vapply(fits, logml, 0)), "]]"))
})

# All columns have a variable of their name where the formulas are written, one of them text that
# nobody may see; `degree` and `two` are constants.
local_columns <- function(n = 60) {
  set.seed(4)
  rows <- data.frame(x = stats::rnorm(n), z = stats::rnorm(n), g = rep(letters[1:6], n / 6),
                     z_only = stats::rnorm(n))
  rows$y <- rows$x + stats::rnorm(n)
  rows$count <- stats::rpois(n, 2)
  rows
}

test_that("a column is shown by its name although a variable of the workspace has it, too", {
  rows <- local_columns()
  x <- 987654
  z <- 0
  y <- 987653
  g <- count <- "password"
  z_only <- c(987652, 987651)
  degree <- 3
  models <- list(linear_regression(y ~ x), linear_regression(y ~ I(z^2)),
                 linear_regression(y ~ poly(x, degree)))
  wanted <- c("y ~ x", "y ~ I(z^2)", "y ~ poly(x, 3)")
  expect_clean <- function(...) {
    shown <- paste(unlist(lapply(list(...), function(object) {
      text <- printed(object)
      if (is.data.frame(object)) c(text, format(as.data.frame(object)$model)) else text
    })), collapse = " ")
    expect_no_match(shown, "password|9876|~ 0|~ 1\\b")
    shown
  }
  race <- evidence(models, rows, seed = 1)
  expect_setequal(race$model, wanted)
  expect_clean(race, summary(race), crossings(race), coef(race), evidence_report(race))
  expect_setequal(evidence(models, rows_in_memory(rows, 7), seed = 1)$model, wanted)
  blocks <- split(rows, rep(1:6, each = 10))
  at <- 0
  source <- rows_function(function(reset) {
    if (reset) at <<- 0 else if (at < 6) blocks[[at <<- at + 1]]
  })
  expect_setequal(evidence(models, source, seed = 1)$model, wanted)
  file <- tempfile(fileext = ".csv")
  on.exit(unlink(file))
  utils::write.csv(rows, file, row.names = FALSE)
  expect_setequal(evidence(models, rows_csv(file), seed = 1)$model, wanted)

  fits <- lapply(models, evidence, rows, seed = 1)
  expect_setequal(compare_models(fits)$model, wanted)
  expect_clean(compare_models(fits), bayes_factor(fits[[1]], fits[[2]]),
               predict(compare_models(fits), rows[1:2, ]))
  grouped <- list(regression(y ~ x + (1 | g)), regression(y ~ z + (1 | g)),
                  regression(y ~ x, sigma ~ z_only), regression(count ~ x, poisson()))
  for (model in grouped) {
    fit <- quiet_fit(model, rows, seed = 1)
    expect_clean(fit, summary(fit), model, evidence_report(fit), tidy.evidence(fit),
                 glance.evidence(fit),
                 format(fit), predict(fit, rows[1:2, ]), coef(fit))
  }
  expect_setequal(muffled(evidence(grouped[1:3], rows, seed = 1))$model,
                  c("y ~ x + (1 | g)", "y ~ z + (1 | g)", "y ~ x, sigma ~ z_only"))
  kept <- evidence(models[[1]], rows, seed = 1, keep_state = TRUE)
  more <- update(kept, local_columns(6))
  expect_setequal(compare_models(list(more, quiet_fit(models[[2]], rbind(rows, local_columns(6)),
                                                      seed = 1)))$model, wanted[1:2])

  picture <- tempfile(fileext = ".pdf")
  on.exit(unlink(picture), add = TRUE)
  grDevices::pdf(picture, compress = FALSE)
  plot(race)
  plot(compare_models(fits))
  plot(fits[[2]])
  grDevices::dev.off()
  expect_no_match(paste(readLines(picture, warn = FALSE), collapse = " "), "password|9876|~ 0")

  log_density <- lapply(1:2, function(two)
    density(~ dnorm(y, mu, two, log = TRUE), mu = ~ x, prior = normal(0, two)))
  expect_match(muffled(evidence(log_density, rows, seed = 1))$model[1], "dnorm\\(y, mu, [12]")
})

test_that("studies and change points do not show variables of the workspace", {
  rows <- local_columns()
  x <- 987654
  z <- 0
  y <- "password"
  models <- list(linear_regression(y ~ x, sigma = 1), linear_regression(y ~ I(z^2), sigma = 1))
  wanted <- c("y ~ x", "y ~ I(z^2)")
  expect_identical(attr(study_design(models, 10, data = rows, nsim = 1, seed = 1), "models"),
                   wanted)
  # which columns a function makes is not known before it is called
  made <- function(n) rows[seq_len(n), ]
  expect_identical(attr(study_design(models, 10, data = made, nsim = 1, seed = 1), "models"),
                   wanted)
  rates <- list(gaussian_mean(y ~ 1), gaussian_mean(log(y) ~ 1))
  expect_no_match(spec_names(lapply(rates, function(model) list(model = model)),
                             columns_of_study(lapply(rates, function(model) list(model = model)),
                                              NULL)), "password")
  expect_no_match(printed(muffled(change_points(models[[1]], rows, most = 1, seed = 1))),
                  "password|9876")
})

test_that("labels of models on shards have names of columns, not values of the workspace", {
  rows <- local_columns()
  x <- 987654
  z <- 0
  y <- "password"
  models <- list(linear_regression(y ~ x), linear_regression(y ~ I(z^2)))
  on_engine("psock", function(cl) {
    data <- rows_cluster(cl, list(rows[1:30, ], rows[31:60, ]))
    expect_setequal(muffled(evidence(models, data, seed = 1))$model, c("y ~ x", "y ~ I(z^2)"))
  })
})

test_that("labels of models on a database have names of columns, not values of the workspace", {
  skip_if_not_installed("RSQLite")
  rows <- local_columns()
  x <- 987654
  z <- 0
  y <- "password"
  models <- list(linear_regression(y ~ x), linear_regression(y ~ I(z^2)))
  con <- DBI::dbConnect(RSQLite::SQLite(), ":memory:")
  on.exit(DBI::dbDisconnect(con))
  DBI::dbWriteTable(con, "rows", rows)
  for (push in c(TRUE, FALSE))
    expect_setequal(evidence(models, rows_dbi(con, "rows", push = push), seed = 1)$model,
                    c("y ~ x", "y ~ I(z^2)"))
})

test_that("a large variable of the workspace with a column's name is not read", {
  rows <- local_columns()
  x <- stats::rnorm(1e6)
  z <- stats::rnorm(1e6)
  models <- lapply(list(y ~ x, y ~ z), linear_regression)
  expect_identical(lapply(models, function(model) constants_of(model$formula)),
                   list(stats::setNames(list(), character()), stats::setNames(list(), character())))
  expect_setequal(evidence(models, rows, seed = 1)$model, c("y ~ x", "y ~ z"))
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

test_that("a response of two columns is recognised however it is written", {
  trials <- data.frame(y = c(3, 5, 7, 2), n = c(10, 12, 9, 8), x = 1:4)
  bound <- run(regression(cbind(y, n - y) ~ x, "binomial", prior_sd = 2.5), trials)
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

test_that("censored times are recognised as the same by Surv() and in a density", {
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

test_that("`same_rows = TRUE` skips the check of rows, but not of their number", {
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

# evidence_report(): its sentences have the numbers of the fits, and its page is one file that
# replaces none.

fit <- function(formula, ..., data = cars, seed = test_seed())
  quiet_fit(linear_regression(formula, sigma = 15, prior_sd = 20), data, ..., seed = seed,
            progress = FALSE)
line <- fit(dist ~ speed)
flat <- fit(dist ~ 1)
known <- fit(dist ~ speed, exact())
both <- compare_models(line, flat)
says <- function(x) paste(as.character(evidence_report(x)), collapse = " ")

test_that("a report of a fit has its number, error, model, priors, seed and versions", {
  text <- says(line)
  expect_match(text, sprintf("n = 50 observations is %s, with a standard error of",
                             format_number(line$log_evidence, decimals_for(line$se))), fixed = TRUE)
  expect_match(text, "(dist ~ speed)", fixed = TRUE)
  expect_match(text, "Priors: all coefficients normal around 0, sd 20.", fixed = TRUE)
  expect_match(text, paste0("sgais() with seed ", test_seed()), fixed = TRUE)
  expect_match(text, paste0("logevidence ", getNamespaceVersion("logevidence"), " (R ",
                            getRversion(), ")"), fixed = TRUE)
  expect_match(text, "The checks of the fit raised no warning.", fixed = TRUE)
  expect_match(said(evidence_report(line)), "raised no warning")
  expect_s3_class(evidence_report(line), "evidence_report")
})

test_that("a report gives an error and a seed only where there are some", {
  text <- says(known)
  expect_match(text, "without Monte Carlo error")
  expect_no_match(text, "seed")
  expect_match(says(fit(dist ~ speed, seed = NULL)), "sgais() without a seed", fixed = TRUE)
  expect_match(says(fit(dist ~ speed, replicates = 3)), "as the mean of 3 independent runs")
})

test_that("a report has warnings, failures and rows left out", {
  raw <- quiet_fit(linear_regression(weight ~ height, prior_sd = 2.5), women, exact())
  expect_match(says(raw), paste("raised a warning:", raw$warnings), fixed = TRUE)
  doubted <- with_doubts(line, "A doubt.")
  expect_match(says(doubted), "raised a warning: A doubt.", fixed = TRUE)
  expect_match(says(fit(dist ~ speed, harmonic_mean())), "failed its own checks")
  expect_match(says(fit(dist ~ speed, bic())), "its error is not known")
  gone <- cars
  gone$dist[3] <- NA
  expect_match(says(suppressMessages(fit(dist ~ speed, exact(), data = gone,
                                         na.action = na.omit))),
               "1 row with missing values left out")
  line$version <- NULL
  expect_match(says(line), "of a version that the fit did not keep")
})

test_that("a report of a comparison has Bayes factors, words, probabilities and priors", {
  text <- says(both)
  expect_match(text, "2 models were compared by their evidence on n = 50 observations, with equal")
  log_bf <- line$log_evidence - flat$log_evidence
  shown <- trimws(align_estimates(log_bf, sqrt(line$se^2 + flat$se^2)))
  expect_match(text, paste0("(log Bayes factor ", shown, ")"), fixed = TRUE)
  expect_match(text, "decisive evidence against flat.", fixed = TRUE)
  expect_match(text, "Priors of all models: all coefficients normal around 0, sd 20.", fixed = TRUE)
  table <- attr(evidence_report(both), "table")
  expect_identical(table$model, c("line", "flat"))
  expect_identical(table$posterior, c(">0.999", "<0.001"))
  expect_false("prior" %in% names(table))
  weighed <- compare_models(line, flat, known, prior = c(line = 1, flat = 2, known = 1))
  expect_match(says(weighed), "with prior probabilities 0.250 (", fixed = TRUE)
  expect_true("prior" %in% names(attr(evidence_report(weighed), "table")))
  expect_match(says(weighed), "known by exact()", fixed = TRUE)
  other <- compare_models(line, wide = quiet_fit(
    linear_regression(dist ~ speed, sigma = 15, prior_sd = 40), cars, seed = test_seed()))
  expect_match(says(other), "Priors: all coefficients normal around 0, sd 40.", fixed = TRUE)
})

test_that("a report of many models has the best ten in its text, and all in its table", {
  fits <- lapply(stats::setNames(1:12, paste0("m", 1:12)), function(k)
    quiet_fit(linear_regression(dist ~ speed, sigma = 10 + k, prior_sd = 20), cars, exact()))
  made <- evidence_report(compare_models(fits))
  expect_identical(sum(startsWith(names(made), "model m")), 10L)
  expect_match(made[["result"]], "The other 2 models are further behind: those named have",
               fixed = TRUE)
  expect_identical(nrow(attr(made, "table")), 12L)
  expect_match(said(made), "... and 2 more", fixed = TRUE)
})

test_that("a report asks for priors that a model does not describe", {
  own <- custom_model(function(theta, data) dnorm(data$y, theta[1], 1, TRUE), parameters = "mean",
                      log_prior = function(theta) dnorm(theta, 0, 1, TRUE),
                      draw_prior = function(n) matrix(rnorm(n), n))
  text <- says(quiet_fit(own, data.frame(y = 1:3), smc(particles = 50), seed = test_seed()))
  expect_match(text, "those of the model's own functions, which its user must state.", fixed = TRUE)
})

test_that("failed fits are left out of the numbers, but named in the report", {
  part <- compare_models(line, flat, harmonic = fit(dist ~ speed, harmonic_mean()))
  expect_match(says(part), "Left out of the probabilities: harmonic", fixed = TRUE)
  table <- attr(evidence_report(part), "table")
  expect_identical(table$posterior[table$model == "harmonic"], "left out")
  expect_match(said(evidence_report(part)), "Warnings and notes. harmonic: The harmonic mean")
})

test_that("Bayes factors have two digits, or a power of ten", {
  expect_identical(show_factor(0), "1.0")
  expect_identical(show_factor(log(7.8234)), "7.8")
  expect_identical(show_factor(log(1234)), "1,200")
  expect_identical(show_factor(30), "1.1 x 10^13")
})

test_that("races and numbers of components have reports", {
  race <- quiet_fit(list(line = linear_regression(dist ~ speed, scale = TRUE),
                         flat = linear_regression(dist ~ 1)), cars, seed = test_seed(),
                    progress = FALSE)
  expect_match(says(race), "The model line has the highest evidence", fixed = TRUE)
  numbers <- quiet_fit(gaussian_mixture(~ waiting, components = 1:2), scale(faithful),
                       laplace(importance = 200), seed = test_seed(), progress = FALSE)
  expect_match(says(numbers), "The model 2 components has the highest evidence", fixed = TRUE)
})

test_that("base64 is that of RFC 4648", {
  of <- function(text) base64(charToRaw(text))
  texts <- c("f", "fo", "foo", "foob", "fooba", "foobar")
  expect_identical(vapply(texts, of, "", USE.NAMES = FALSE),
                   c("Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"))
  expect_identical(base64(as.raw(c(0, 16, 131, 255, 254))), "ABCD//4=")
})

test_that("the page is one file of its own, and replaces no other", {
  file <- tempfile(fileext = ".html")
  on.exit(unlink(file))
  devices <- grDevices::dev.list()
  made <- expect_invisible(evidence_report(both, file = file))
  expect_identical(grDevices::dev.list(), devices)
  page <- paste(readLines(file, encoding = "UTF-8"), collapse = "\n")
  expect_match(page, "<title>Comparison of 2 models</title>", fixed = TRUE)
  expect_match(page, as_html(made[["result"]]), fixed = TRUE)
  expect_match(page, "R version", fixed = TRUE)
  expect_no_match(page, "(src|href)=\"(?!data:)", perl = TRUE)
  if (capabilities("png")[[1]]) expect_match(page, "data:image/png;base64,iVBOR", fixed = TRUE)
  before <- readLines(file)
  refused(evidence_report(line, file = file), paste0(
    "`file` exists and stays as it is: ", show_text(file),
    ". Give another name, or `overwrite = TRUE`."))
  expect_identical(readLines(file), before)
  evidence_report(line, file = file, overwrite = TRUE)
  expect_match(paste(readLines(file), collapse = " "), "Linear regression")
  expect_error(evidence_report(line, file = tempdir()), "must not be a directory")
  expect_error(evidence_report(line, file = file.path(tempdir(), "none", "a.html")),
               "directory that exists")
  expect_error(evidence_report(line, file = 1), "`file` must be NULL or the name of a file, not 1.")
  expect_error(evidence_report(line, file = file, overwrite = NA), "`overwrite`")
})

test_that("change points are reported in sentences", {
  # so little noise that no other number of changes is likely
  series <- with_own_seed(test_seed(), data.frame(y = c(rnorm(20) / 3, 4 + rnorm(20) / 3),
                                                  t = 1:40 / 2))
  found <- change_points(gaussian_mean(y ~ 1), series, at = "t", seed = test_seed())
  text <- said(evidence_report(found))
  expect_match(text, "In 40 rows \\(t 0.5 to 20\\) the most probable number of changes is 1")
  expect_match(text, "Given 1 change: after t 10 \\(probability [0-9.>]+\\), 95% interval")
  expect_match(text, "mean from .* larger with probability above 0.999")
  expect_match(text, "Positions of changes: positions uniform given the number")
  none <- suppressWarnings(change_points(gaussian_mean(y ~ 1), series[1:20, ], seed = test_seed()))
  expect_match(said(evidence_report(none)), "most probable number of changes is 0[.]")
  refused(evidence_report(found, file = "page.html"), "not `file`")
})

test_that("evidence_report() refuses other objects", {
  refused(evidence_report(1),
          paste("`x` must be a fit from `evidence()`, a comparison of fits, a Bayes factor",
                "or change points, not 1."))
  expect_error(evidence_report(line, digits = 3), "digits")
  expect_error(evidence_report(both["model"]), "needs a comparison")
  expect_identical(evidence_report, report)
})

test_that("the page has the rows, their events, the calls and the estimates", {
  file <- tempfile(fileext = ".html")
  on.exit(unlink(file))
  manual <- muffled(evidence(regression(am ~ wt, family = binomial(), prior_sd = 2), mtcars,
                             laplace(importance = 100), seed = test_seed()))
  evidence_report(manual, file = file)
  page <- paste(readLines(file, encoding = "UTF-8"), collapse = " ")
  cells <- function(...) paste0("<tr>", paste0("<td>", c(...), "</td>", collapse = ""), "</tr>")
  has <- function(part) expect_true(grepl(part, page, fixed = TRUE), info = part)
  has(cells("rows", "32"))
  has(cells("events", "13 of 32"))
  estimates <- trimws(format_parameters(summary(manual)$parameters)["wt", ])
  has(cells("wt", estimates))
  has("<pre> evidence(model = regression(am ~ wt")
})

test_that("events are counted by the family, and left out where the data are gone", {
  events <- function(model, data) {
    fit <- muffled(evidence(model, data, laplace(importance = 50), seed = test_seed()))
    table <- rows_table(fit, environment())
    stats::setNames(table$number, table$data)
  }
  expect_identical(events(regression(cbind(ncases, ncontrols) ~ 1, family = binomial(),
                                     prior_sd = 2), esoph)[["events"]],
                   paste(sum(esoph$ncases), "of", sum(esoph$ncases + esoph$ncontrols)))
  expect_identical(events(regression(count ~ spray, family = poisson(), prior_sd = 2),
                          InsectSprays)[["events (sum of counts)"]], "684")
  expect_identical(events(softmax_regression(Species ~ 1), iris)[["of class virginica"]], "50")
  expect_named(events(linear_regression(dist ~ speed, sigma = 15, prior_sd = 10), cars), "rows")
  holes <- cars
  holes$speed[3] <- NA
  fit <- suppressMessages(evidence(linear_regression(dist ~ speed, sigma = 15, prior_sd = 10),
                                   holes, exact(), na.action = na.omit))
  expect_identical(rows_table(fit, environment())$number, c("49", "1"))
  skip_if_not_installed("survival")
  lung <- survival::lung
  found <- events(regression(survival::Surv(time, status) ~ 1, family = weibull(),
                             prior_sd = 10), lung)
  expect_identical(found[c("events", "censored")], c(events = "165", censored = "63"))
  counts <- data.frame(y = 1:5)
  gone <- muffled(evidence(regression(y ~ 1, family = poisson(), prior_sd = 2), counts,
                           laplace(importance = 50), seed = test_seed()))
  rm(counts)
  expect_identical(rows_table(gone, environment())$data, "rows")
})

test_that("objects in a call are named by their class", {
  fit <- do.call(evidence, list(linear_regression(dist ~ speed, sigma = 15, prior_sd = 10), cars,
                                exact()))
  expect_identical(call_lines(fit), paste0("evidence(model = <evidence_model>, ",
                                           "data = <data.frame>, method = <evidence_method>)"))
})

# Messages, limits and settings of the session that once gave wrong answers.

run <- function(...) quiet_fit(..., seed = test_seed(), progress = FALSE)

test_that("errors name what was given, and no other function", {
  three <- array(1:24, c(2, 3, 4))
  refused(run(gaussian_mean(), three), "an array of 2 x 3 x 4 (integer)")
  refused(run(clustering(~ a:b, components = 2), data.frame(a = 1:3, b = 2:4)),
          "must have no interactions, not `a:b`.")
  refused(smc(chunk = 0), "`chunk` must be a whole number between 1 and 1000000000, not 0.")
  alone <- custom_model("m", function(m) -m^2, function(m) dnorm(m, log = TRUE), rnorm)
  refused(run(alone, 1:3, nested(20, slice())),
          "`data` must be left out: `log_likelihood` takes the parameters only")
  refused(run(alone, nested(20)),
          "`data` must not be a method: give it by its name, `method = nested(live = 20)`.")
  whole <- custom_model("m", function(m) structure(1, class = "integer64"),
                        function(m) dnorm(m, log = TRUE), rnorm)
  refused(run(whole, method = nested(20, slice())),
          "`log_likelihood` must return a number, not an object of class integer64")
})

test_that("a time limit of R is never taken for a failed check", {
  expect_null(or_null(stop("a failure")))
  endless <- function() {
    setTimeLimit(elapsed = 0.05, transient = TRUE)
    on.exit(setTimeLimit())
    repeat Sys.sleep(0.001)
  }
  expect_error(or_null(endless()), "elapsed time limit")
  expect_true(is_time_limit(tryCatch(endless(), error = identity)))
})

test_that("the limit of a flat sigmoid is linear", {
  expect_equal(schedule_settings(sigmoidal(10, delta = 1e-16), 10)$lambda, (1:10) / 10)
  expect_equal(schedule_settings(sigmoidal(10, delta = 1.1e-6), 10)$lambda, (1:10) / 10,
               tolerance = 1e-6)
})

test_that("memberships are probabilities however far out a row is", {
  fit <- run(gaussian_mixture(components = 2), scale(faithful), laplace())
  p <- predict(fit, rbind(c(1e160, 0), c(0, -1e200), c(1, 1)), type = "probability")
  expect_true(all(is.finite(p)))
  expect_equal(rowSums(p), rep(1, 3))
})

test_that("tables stay aligned with a comma as decimal point", {
  old <- options(OutDec = ",")
  on.exit(options(old))
  aligned <- align_estimates(c(-9.5, -212.654), c(0.14, 0.003))
  expect_identical(regexpr(".", aligned, fixed = TRUE)[1], regexpr(".", aligned, fixed = TRUE)[2])
  expect_no_warning(expect_identical(count(12345), "12,345"))
})

test_that("the order of text levels does not depend on the language settings", {
  text <- with_own_seed(1, data.frame(g = rep(c("b", "A", "a", "B"), 10), y = rnorm(40),
                                      z = rep(c("no", "Yes"), 20)))
  models <- list(linear_regression(y ~ g, sigma = 1,
      prior_sd = 1), regression(z ~ g, binomial(),
                                                                 prior_sd = 2.5),
                 density(~ dnorm(y, m, 1, log = TRUE), m = ~ g), softmax_regression(g ~ y,
                                                                                    prior_sd = 1))
  fits <- function() lapply(models, function(model) {
    fit <- quiet_fit(model, text, laplace(), seed = 1)
    list(names(coef(fit)), fit$log_evidence, predict(fit, text[1:5, ]))
  })
  skip_if_not(capabilities("ICU"), "orders of other languages")
  old <- Sys.getlocale("LC_COLLATE")
  on.exit({
    icuSetCollate(locale = "default")
    Sys.setlocale("LC_COLLATE", old)
  })
  Sys.setlocale("LC_COLLATE", "C")
  in_c <- fits()
  expect_identical(in_c[[1]][[1]], c("(Intercept)", "gB", "ga", "gb"))
  for (locale in c("en_US.UTF-8", "C.UTF-8"))
    if (suppressWarnings(Sys.setlocale("LC_COLLATE", locale)) != "") break
  icuSetCollate(locale = "en")
  skip_if(identical(sort(c("b", "A")), c("A", "b")) && identical(sort(c("B", "a")), c("B", "a")),
          "no locale has another order than C")
  expect_identical(fits(), in_c)
  # a factor has the order that its user gave
  text$g <- factor(text$g)
  expect_identical(names(coef(quiet_fit(models[[1]], text, laplace(), seed = 1))),
                   c("(Intercept)", paste0("g", levels(text$g)[-1])))
})

test_that("format() of a fit is a short string", {
  fit <- run(linear_regression(dist ~ speed, prior_sd = 1), cars)
  expect_match(format(fit), "^log evidence -[0-9.]+ (\u00b1|\\+/-) [0-9.]+ by sgais\\(\\)$")
  part <- run(linear_regression(dist ~ speed, prior_sd = 1), cars, nested(5000), time_limit = 1e-9)
  expect_match(format(part), "^incomplete fit by nested\\(\\), 0 rows so far$")
  expect_length(utils::capture.output(print(data.frame(a = 1, b = I(list(fit))))), 2)
})

test_that("a slow default fit of few rows gives one message that says why", {
  work <- function(model, method = sgais(), n = 300)
    list2env(list(method = method, model = model, encoded = list(n = n)))
  line <- linear_regression(y ~ x, prior_sd = 1)
  notice <- slow_fit_notice(work(line))
  expect_silent(notice(0.1, 4))
  expect_message(notice(0.1, 6), "worked for 6.0 s. The posterior is far from normal.*time_limit")
  expect_silent(notice(0.2, 7))
  expect_message(slow_fit_notice(work(line))(0.9, 6), "A second run with more effort")
  expect_message(slow_fit_notice(work(line))(FIRST_SHARE, 6), "The search for modes")
  own <- custom_model("a", function(theta) 0, function(theta) 0, function(n) matrix(0, n))
  expect_message(slow_fit_notice(work(own))(0.1, 6), "vectorised = TRUE.*`gradient`.*density")
  expect_silent(slow_fit_notice(work(line, smc()))(0.1, 60))
  expect_silent(slow_fit_notice(work(line, n = 1e6))(0.1, 60))
})

test_that("a slow run through sorted rows gives one message", {
  work <- function(method) list2env(list(method = method, encoded = list(n = 4000)))
  notice <- slow_rows_notice(work(smc("data")))
  expect_silent(notice(0, 30))
  expect_silent(notice(200, 19))
  expect_message(notice(200, 21), "data\"\\) has added 200 of 4,000 rows in 21 s, .*shuffled")
  expect_silent(notice(300, 40))
  expect_silent(slow_rows_notice(work(smc("data")))(3000, 21))
  expect_silent(slow_rows_notice(work(smc("data", order = "shuffled")))(10, 60))
  expect_silent(slow_rows_notice(work(smc()))(10, 60))
})

test_that("citation() has a year, the version and the authors of DESCRIPTION", {
  expect_no_warning(cited <- utils::citation("logevidence"))
  expect_identical(cited[[1]]$year, "2026")
  expect_match(cited[[1]]$note, as.character(utils::packageVersion("logevidence")), fixed = TRUE)
  expect_match(format(cited[[1]]$author), "^The logevidence maintainers")
  expect_identical(cited[[2]]$doi, "10.3390/e21111109")
})

test_that("an infinite standard error is explained where it is printed", {
  fit <- evidence(gaussian_mean(), c(1, 2, 3), exact())
  expect_no_match(said(fit), "not known")
  fit$se <- Inf
  expect_match(said(fit), "Inf standard error not known, perhaps large; in closed form")
})

test_that("help pages have no broken list or code", {
  pages <- tools::Rd_db("logevidence")
  skip_if(!length(pages), "installed without help")
  marked <- vapply(pages, function(page)
    any(grepl("`", utils::capture.output(tools::Rd2txt(page)), fixed = TRUE)), NA)
  expect_identical(names(pages)[marked], character())
})

test_that("missing, damaged and cut files are refused in words of the package", {
  refused(clustering(~ speed), "`components` must be given")
  refused(low_rank(~ speed), "`rank` must be given")
  refused(binary_attributes(~ speed), "`attributes` must be given")
  for (code in c(-3L, 0L, 5L)) {
    damaged <- cars
    damaged$g <- structure(rep(c(code, 1L), 25), levels = c("a", "b"), class = "factor")
    sentence <- "`data` must have a level for each value of the factor `g`."
    refused(evidence(linear_regression(dist ~ speed + g), damaged, seed = 1), sentence)
    refused(evidence(softmax_regression(g ~ speed), damaged, seed = 1), sentence)
    refused(evidence(regression(dist ~ speed + (1 | g)), damaged, seed = 1), sentence)
  }
  fit <- evidence(linear_regression(dist ~ speed, sigma = 15, prior_sd = 10), cars, seed = 1)
  cut <- fit
  cut$draws <- fit$draws[1:3, ]
  for (verb in list(coef, vcov, posterior_draws))
    refused(verb(cut), "the part `draws` of this one is a matrix of 3 x 2")
  skip_on_os("windows")
  link <- tempfile(fileext = ".html")
  file.symlink(file.path(tempdir(), "no-such-folder", "file"), link)
  on.exit(unlink(link))
  for (overwrite in c(FALSE, TRUE))
    refused(evidence_report(fit, link, overwrite),
            "`file` must not be a link to a file that does not exist")
})

test_that("numbers that round to zero have no sign, and one model has a singular verb", {
  expect_identical(format_number_each(c(-0.001, -0.4, 0, -0.006, -12), 2),
                   c("0.00", "-0.40", "0.00", "-0.01", "-12.00"))
  expect_identical(format_number(-0.4, 0), "0")
  fits <- lapply(list(a = 10, b = 20), function(sd)
    evidence(linear_regression(dist ~ speed, sigma = 15, prior_sd = sd), cars, exact(), seed = 1))
  both <- compare_models(fits)
  expect_match(comparison_sentence(both), "^2 models were compared by their evidence")
  expect_match(comparison_sentence(both[1, ]), "^1 model was compared by its evidence")
})

test_that("quantiles leave out numbers without weight that are NaN, and others have none", {
  quantiles <- function(values, weights, places, part)
    .Call(ffi_row_quantiles, values, weights, places, part)
  x <- c(3, 1, NaN, 2, 5, 4)
  values <- rbind(x, c(1:5, NaN))
  weights <- c(1, 1, 0, 1, 1, 1)
  found <- quantiles(values, weights, c(0, 2, 4), 0)
  expect_equal(found[1, ], c(1, 3, 5))
  expect_true(all(is.nan(found[2, ])))
})

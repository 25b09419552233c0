# What is suspect about a fit is raised as one R warning when the fit is made; printing raises none.

line <- linear_regression(dist ~ speed, sigma = 15, prior_sd = 10)
run <- function(model, method = sgais(), seed = test_seed())
  evidence(model, cars, method, seed = seed, progress = FALSE)
hurried <- ais(particles = 5, schedule = linear(2))

test_that("a fit raises its warnings once, as one condition with a line for each sentence", {
  raised <- list()
  keep <- function(w) {
    raised <<- c(raised, list(w))
    invokeRestart("muffleWarning")
  }
  fit <- withCallingHandlers(run(line, hurried), warning = keep)
  expect_length(raised, 1)
  expect_s3_class(raised[[1]], c("logevidence_warning", "warning", "condition"), exact = TRUE)
  expect_null(conditionCall(raised[[1]]))
  expect_gt(length(fit$warnings), 0)
  expect_identical(raised[[1]]$sentences, fit$warnings)
  expect_identical(conditionMessage(raised[[1]]),
                   paste(c(model_line(fit$model), fit$warnings), collapse = "\n"))
  expect_no_warning(text <- printed(fit))
  expect_match(text, "Warning: ", fixed = TRUE)
  expect_no_warning(summary(fit))
})

test_that("the warnings of several fits in one call say which model each is about", {
  formulas <- list(dist ~ speed, dist ~ poly(speed, 2))
  models <- lapply(formulas, linear_regression, sigma = 15)
  said <- capture_warnings(lapply(models, run, hurried))
  expect_length(said, 2)
  of <- vapply(strsplit(said, "\n"), `[[`, "", 1)
  expect_identical(of, vapply(models, model_line, ""))
  expect_match(of[2], "dist ~ poly(speed, 2)", fixed = TRUE)
})

test_that("a fit without warnings raises none, and a note on the method is no warning", {
  expect_no_warning(run(line))
  for (method in list(bic(), harmonic_mean(), sequential(particles = 200))) {
    expect_no_warning(fit <- run(line, method), message = "harmonic|ignores|predictive")
    expect_match(printed(fit), "Note: ", fixed = TRUE)
    expect_true(method$note %in% fit$warnings)
  }
})

test_that("fits made inside other calls raise no warnings, and known ones are not repeated", {
  methods <- list(hurried, laplace(importance = 200))
  expect_no_warning(check <- crosscheck(line, cars, methods, seed = test_seed(), progress = FALSE))
  expect_gt(length(attr(check, "fits")[[1]]$warnings), 0)
  stuck <- nested(50, rwm(step_size = 1e-5), steps = 1)
  expect_warning(one <- run(line, stuck), "hardly moves", class = "logevidence_warning")
  two <- muffled(run(line, stuck, seed = test_seed(2)))
  flat <- run(linear_regression(dist ~ 1, sigma = 15, prior_sd = 20), exact())
  expect_no_warning(compare_models(two, flat))
  expect_no_warning(further <- update(one, tol = 1e-3, data = cars))
  expect_match(further$warnings, "hardly moves", all = FALSE)
  expect_no_warning(merged <- c(one, two))
  expect_match(merged$warnings, "hardly moves", all = FALSE)
})

# Models with latent variables with many numbers of parts and rows: sweeps cannot be left out, and
# the default is right.

#' The default (or `method`) on data simulated from the model, and bounds on their evidence
sandwiched <- function(model, n, columns, seed, method = NULL, steps = 400) {
  both <- bdmc(model, n, columns, ais(schedule = sigmoidal(steps)), chains = 8, budgets = 1,
               seed = test_seed(seed), progress = FALSE)
  arguments <- list(model, both$data, seed = test_seed(seed), progress = FALSE)
  if (!is.null(method)) arguments$method <- method
  fit <- suppressMessages(muffled(do.call(evidence, arguments)))
  bounds <- both$bounds
  truth <- (bounds$lower + bounds$upper) / 2
  spread <- max(bounds$upper_high - bounds$upper_low, bounds$lower_high - bounds$lower_low) / 4
  list(error = fit$log_evidence - truth, fit = fit,
       se = sqrt(fit$se^2 + ((bounds$upper - bounds$lower) / 2)^2 + spread^2))
}

test_that("particles are swept whatever the number of rows that are annealed together", {
  # four for each attribute: with 40, 44, 52 and 56 no particle was ever moved, and the evidence was
  # hundreds of nats too low
  for (attributes in 9:14) {
    rows <- 4 * attributes
    model <- binary_attributes(attributes = attributes, probabilities = 0.3)
    case <- sandwiched(model, rows + 2, 12, seed = attributes,
                       method = smc("data", particles = 20), steps = 100)
    expect_gt(case$error, -30, label = paste(rows, "rows together"))
  }
})

test_that("sweeps follow the growth of the rows beyond 400 of them", {
  n <- 900
  x <- with_own_seed(test_seed(2), matrix(rnorm(n), n, dimnames = list(NULL, "a")))
  method <- smc("data", particles = 2, threshold = 0)
  fit <- muffled(evidence(clustering(components = 2), x, method, seed = test_seed(1),
                          progress = FALSE))
  # work: one for each row added, and all rows so far for a sweep
  swept <- diff(c(fit$trace$evaluations, fit$work[["likelihoods"]])) > 2
  gaps <- diff(c(which(swept), n)) / which(swept)
  expect_lt(max(gaps[which(swept) > 20]), 0.08)
  expect_true(all(swept[1:20]))
})

test_that("the default is within two nats on the attributes of bidirectional Monte Carlo", {
  case <- sandwiched(binary_attributes(attributes = 10, probabilities = 0.3), 50, 25, 1,
                     steps = 1000)
  expect_lt(abs(case$error), 2 + 2 * case$se)
  expect_lt(case$fit$se, 1)
})

test_that("the default is right for many numbers of parts and rows", {
  # from one to many parts, two to many rows; bench/latent.R draws many more
  models <- list(function(k) binary_attributes(attributes = k), function(k) low_rank(rank = k),
                 function(k) clustering(components = k))
  for (model in models) for (size in list(c(1, 2), c(1, 30), c(2, 7), c(4, 12), c(7, 25))) {
    case <- sandwiched(model(size[1]), size[2], max(2, size[1] + 1), sum(size))
    warned <- length(case$fit$failed) > 0
    if (model(1)$name == "low_rank" && size[1] >= size[2]) next
    expect_true(warned || abs(case$error) < 5 * case$se,
                label = paste(deparse1(size), case$fit$model$name))
  }
})

test_that("particles that are resampled and never moved give a warning", {
  x <- with_own_seed(test_seed(4), matrix(rnorm(40), 20, dimnames = list(NULL, c("a", "b"))))
  model <- binary_attributes(attributes = 3, noise_sd = 0.3)
  encoded <- encode(model, x)
  for (method in list(smc(particles = 20), smc("data", particles = 20))) {
    problem <- new_problem(model, encoded, method, seed_words(test_seed(1)))
    expect_null(unmoved_warning(conduct(problem, encoded$rows)))
    problem$settings$sweeps <- 0
    out <- conduct(problem, encoded$rows)
    expect_match(one_run(out, method, "several", model)$said,
                 "sweeps changed none of them", all = FALSE)
  }
})

test_that("a default that takes long has a note", {
  x <- with_own_seed(test_seed(5), matrix(rnorm(300 * 30), 300, 30))
  model <- binary_attributes(attributes = 12)
  method <- latent_default(model, 300, 30, 8)
  expect_message(say_if_slow(method, model, 300, 30, 8), "The default method needs about")
  expect_silent(say_if_slow(latent_default(low_rank(rank = 1), 30, 4, 8), low_rank(rank = 1), 30, 4,
                            8))
})

# The rule that decides between estimates of one number, and the sentences about a fit.

entry <- function(value, se, kind = "unbiased", error = se, name = "a", reportable = TRUE, ...)
  new_entry(name, kind, value, se, error = error, reportable = reportable, ...)
uneven <- function(value, se, ...) entry(value, se, error = Inf, uneven = TRUE, ...)
reported <- function(...) headline(ledger_of(...))

test_that("the reported estimate has the smallest error of those that none overtakes", {
  expect_equal(reported(entry(-100, 0.1), entry(-100.1, 0.05)), 2)
  # particles whose error does not include their bias
  expect_equal(reported(entry(-100, 0.1, "approximate", 0.3), entry(-100.1, 0.2)), 2)
  # 30 joint standard errors lower
  expect_equal(reported(entry(-100, 0.1), entry(-104, 0.05)), 1)
  # an unbiased estimate 3.4 joint standard errors higher, and one that may be too high
  expect_equal(reported(entry(-100, 0.1, "approximate", 0.3), entry(-98.6, 0.4)), 2)
  expect_equal(reported(entry(-100, 0.1), entry(-98.6, 0.4, "approximate", 1.2)), 1)
  # numerical errors are not a contradiction
  expect_equal(reported(entry(-100, 1e-4), entry(-100.1, 1e-5)), 2)
  # an unknown error: reported only if it exceeds what an unbiased estimate can by chance
  expect_equal(reported(entry(-110, 1), uneven(-100, 0.1)), 2)
  expect_equal(reported(entry(-104, 1), uneven(-100, 0.1)), 1)
  expect_equal(reported(entry(-110, 4), uneven(-100, 0.1)), 1)
  expect_equal(reported(entry(-90, 1), uneven(-100, 0.1)), 1)
  # particles that failed their own checks, but are far above
  expect_equal(reported(entry(-98, 0.1, error = Inf), entry(-100, 0.1)), 1)
  # approximate ones that failed their own checks say nothing against even weights, unbiased ones
  # that did are lower limits less 5 nats
  failed <- function(...) entry(..., error = Inf, doubt = FAILED_OWN)
  expect_equal(reported(failed(-88, 1.5, "approximate"), entry(-100, 0.01)), 2)
  expect_equal(reported(failed(-88, 1.5, "approximate"), uneven(-100, 0.01)), 1)
  expect_equal(reported(failed(-96, 0.1), entry(-100, 0.1)), 2)
  expect_equal(reported(failed(-94, 0.1), entry(-100, 0.1)), 1)
  # of two unknown ones the first
  expect_equal(reported(uneven(-100, 1), uneven(-99, 0.1)), 1)
  # estimates that are not finite
  expect_equal(reported(entry(-Inf, 0), entry(-100, 0.1)), 2)
  expect_equal(reported(entry(NaN, NaN), entry(-100, 0.1)), 2)
  expect_equal(reported(entry(NaN, NaN)), 1)
  # entries without draws are never reported
  expect_equal(reported(entry(-110, 1), entry(-100, 0.1, reportable = FALSE)), 1)
})

test_that("the entries of runs are whole columns: only their mean can be reported", {
  fits <- lapply(c(-10, -10.1, -9.9), function(value) list(
    ledger = ledger_of(entry(value, 0.1), entry(value, NA, "approximate", name = "b")),
    headline = list(entry = "a")))
  ledger <- run_entries(fits, list(entry = "mean", combine = "arithmetic", log_evidence = -10,
                                   se = 0.05))
  expect_identical(unique(lengths(ledger)), 4L)
  expect_identical(ledger$reportable, c(TRUE, FALSE, FALSE, FALSE))
  expect_identical(ledger$uneven, c(FALSE, TRUE, TRUE, TRUE))
  expect_identical(ledger$log_evidence, c(-10, -10, -10.1, -9.9))
})

test_that("a warning names each estimate that contradicts the reported one, and no other", {
  told <- function(...) contradictions(ledger_of(entry(-100, 0.1), ...), 1, "Do more.")
  other <- function(...) entry(..., reportable = FALSE, name = "another run")
  expect_match(told(other(-99, 0.1)), "missed a part of the posterior: another run gives .* -99.0")
  expect_match(told(other(-99, 0, "lower bound")),
               "below a lower bound of the log evidence, -99.00")
  expect_match(told(other(-94, 0.1, uneven = TRUE)), "which is 6 nats more. Do more.")
  for (quiet in list(other(-99.6, 0.1), other(-101, 0.1), other(-96, 0.1, uneven = TRUE),
                     other(-90, NA, "approximate"), other(-90, 0.1, "upper bound"),
                     other(-99.7, NA, "lower bound"), other(NaN, NaN)))
    expect_null(told(quiet))
  expect_length(told(other(-99, 0.1), other(-98, 0, "lower bound")), 2)
})

test_that("two estimates that cannot both be right give a warning, unless a third agrees", {
  told <- function(first, ...) contradictions(ledger_of(first, ...), 1, "Do more.")
  check <- entry(-100, 0.1)
  far <- entry(-103, 0.1, "approximate", name = "particles")
  expect_match(told(check, far),
               "particles gives .* -103.00, which is 3 nats less .*21 joint .*wrong. Do more.")
  expect_identical(levels_of(told(check, far)), "failed", ignore_attr = TRUE)
  exact <- told(entry(-100, 0, "exact"), far)
  expect_match(exact, "3 nats less than the exact value")
  expect_identical(levels_of(exact), "doubt", ignore_attr = TRUE)
  third <- function(value, ...) entry(value, 0.2, name = CONFIRMATION, reportable = FALSE, ...)
  expect_null(told(check, far, third(-100.3)))
  expect_match(told(check, far, third(-103)), "one of the two is wrong")
  expect_match(told(check, far, third(-100.3, uneven = TRUE)), "one of the two is wrong")
  for (quiet in list(entry(-102, 0.1, "approximate"), entry(-150, NA, "approximate"),
                     entry(-150, 0.1, uneven = TRUE), entry(-150, Inf, "approximate"),
                     entry(-150, 0.1, reportable = FALSE),
                     entry(-150, 0.1, "approximate", doubt = FAILED_OWN),
                     entry(-150, 0.1, "approximate", doubt = DRAWN_BY_CHECK)))
    expect_null(told(check, quiet))
})

test_that("the tail of the weights decides whether their standard error is known", {
  found <- function(...)
    utils::modifyList(list(ess = 0.5, ideal = 1, pareto_k = 0.2, laplace = -3, thin = 0), list(...))
  verdict <- function(modes = "one", ...) unlist(weights_verdict(found(...), modes))
  expect_identical(verdict(), c(known = TRUE, doubted = FALSE, uneven = FALSE))
  expect_identical(verdict("several"), c(known = TRUE, doubted = TRUE, uneven = FALSE))
  expect_identical(verdict(ess = 0.2), c(known = TRUE, doubted = TRUE, uneven = FALSE))
  expect_identical(verdict(ess = 0.12), c(known = TRUE, doubted = TRUE, uneven = TRUE))
  for (unknown in list(list(ess = 0.05), list(pareto_k = 0.8), list(laplace = NaN),
                       list(ess = NaN)))
    expect_false(weights_verdict(do.call(found, unknown), "one")$known)
  expect_true(verdict(ess = 0.7, laplace = NaN)[["known"]])
  expect_true(weights_verdict(found(thin = 0.1), "one")$doubted)
  # draws given the scales do not need a mode
  no_mode <- found(laplace = NaN, ess = 0.4)
  expect_false(weights_verdict(no_mode, "one")$known)
  expect_true(weights_verdict(no_mode, "one", 1)$known)
  expect_match(thin_words(found(thin = 0.1)), "^10% of the importance-sampling estimate")
  # the same limits in C and R
  expect_true(all(unlist(tables()$limits) > 0))
})

test_that("the table of estimates has a word for each difference", {
  table <- verdict_of(ledger_of(
    entry(-100, 0.1), entry(-100.2, 0.1), entry(-105, 0.1), entry(-98, 0.1, error = 0.1),
    entry(-101, NA, "lower bound"), entry(-99, NA, "approximate"), entry(NaN, NaN)), 1)
  expect_identical(table$says, c("reported", "agrees", "5 nats lower",
                                 "2 nats higher: a contradiction", "holds", "error not known",
                                 "no estimate"))
  expect_output(print(table), "kind +log evidence +draws +cost")
  expect_output(print(table[0, ]), "0 rows")
  expect_output(print(table["entry"]), "a")
})

test_that("a fit has the estimates that it prints in its table, and exactly one is reported", {
  rows <- scale(faithful)[1:80, ]
  fits <- list(
    evidence(linear_regression(dist ~ speed, sigma = 15, prior_sd = 1), cars, seed = test_seed()),
    evidence(linear_regression(dist ~ speed, sigma = 15,
                               prior_sd = 1), cars, smc(), seed = test_seed()),
    evidence(linear_regression(dist ~ speed, sigma = 15, prior_sd = 1), cars, seed = test_seed(),
             replicates = 3),
    evidence(linear_regression(dist ~ speed, prior_sd = 1), cars, exact(), seed = test_seed()),
    evidence(gaussian_mixture(components = 2), rows, nested(50), seed = test_seed()),
    evidence(gaussian_mixture(components = 2), rows, laplace(importance = 400),
             seed = test_seed()),
    evidence(gaussian_mixture(components = 2), rows, variational(), seed = test_seed(),
             replicates = 2),
    evidence(gaussian_mixture(components = 4), rows, partitions(), seed = test_seed()),
    suppressWarnings(evidence(clustering(components = 2), rows[1:20, ], chib(),
                              seed = test_seed())),
    evidence(clustering(components = 2, infer = TRUE), rows[1:20, ], bic(), seed = test_seed())
  )
  for (fit in fits) {
    own <- fit$verdict[fit$verdict$says == "reported" | grepl("^reported,", fit$verdict$says), ]
    expect_equal(nrow(own), 1)
    expect_identical(c(own$log_evidence, own$se), as.numeric(c(fit$log_evidence, fit$se)))
    expect_false(anyDuplicated(fit$verdict$entry) > 0)
    if (!is.null(fit$audit)) expect_true(fit$audit$log_evidence %in% fit$verdict$log_evidence)
    if (!is.null(fit$bound)) expect_true(fit$bound$log_evidence %in% fit$verdict$log_evidence)
    expect_output(print(summary(fit)), "Estimates of the log evidence")
  }
})

test_that("checks share one budget, in their order", {
  budget <- new_budget(1000)
  expect_equal(granted(budget, CHECKS$climbs$share()), 300)
  expect_equal(granted(budget, CHECKS$`short moves`$share()), 400)
  expect_equal(granted(budget, CHECKS$`run by rows`$share()), 10)
  expect_equal(granted(budget, 0.1), 0)
  expect_equal(granted(budget, 0.2, least = 50), 50)
})

test_that("each sentence of the table has a level and is used, and no other is", {
  levels <- vapply(SENTENCES, `[[`, "", "level")
  expect_true(all(levels %in% c("failed", "doubt")))
  space <- asNamespace("logevidence")
  names_in <- function(code) {
    if (is.call(code) && identical(code[[1]], quote(say)) && is.character(code[[2]]))
      return(c(code[[2]], unlist(lapply(as.list(code)[-(1:2)], names_in))))
    if (is.recursive(code)) unlist(lapply(as.list(code), names_in))
  }
  used <- unlist(lapply(ls(space), function(name) {
    f <- get(name, space)
    if (is.function(f)) names_in(body(f))
  }))
  expect_setequal(used, names(SENTENCES))
  # a sentence has one line, ends with a point, and names its numbers
  for (name in names(SENTENCES))
    expect_match(SENTENCES[[name]][["text"]], "([.?]|%s)$", info = name)
  expect_identical(names(say("not_finite")), "not_finite")
  expect_identical(unname(levels_of(c(say("uneven", "x", 3), other = "From elsewhere."))),
                   c("doubt", "failed"))
})

# Every model of the crossings whose rows are groups: rows in memory, from a source, and added by
# update().

# Verbs that have a value for each observation agree, whatever the rows of the engine are.
expect_one_each <- function(fit, data, name) {
  table <- generics::augment(fit, data = data)
  expect_equal(as.data.frame(table[names(data)]), data, info = name)
  expect_equal(table$.fitted, fitted(fit, data = data), info = name)
  expect_equal(table$.resid, residuals(fit, data = data), info = name)
  expect_equal(generics::augment(fit, newdata = data)$.fitted, fitted(fit, data = data),
               info = name)
  expect_length(case.names(fit, data = data), nrow(data))
  expect_equal(nobs(fit), nrow(data), info = name)
}

test_that("grouped models have the same fit from memory, from a source and by update()", {
  skip_on_cran()
  models <- Filter(function(name) needs_all(crossing_model(name)), names(crossing_models()))
  expect_gt(length(models), 5)
  method <- laplace(importance = 200)
  refused <- character()
  for (name in models) {
    model <- crossing_model(name)
    data <- crossing_data(name)
    seed <- test_seed(5)
    whole <- quiet_fit(model, data, method, seed = seed)
    from_source <- quiet_fit(model, crossing_source(data, "once"), method, seed = seed)
    expect_identical(from_source[c("n", "data_id")], whole[c("n", "data_id")], info = name)
    # defaults of priors may depend on the first block
    within <- function(fit) expect_lt(abs(fit$log_evidence - whole$log_evidence),
                                      0.1 + 5 * sqrt(fit$se^2 + whole$se^2), label = name)
    within(from_source)
    if (!is.null(part_of(model, "fitted"))) expect_one_each(whole, data, name)
    half <- seq_len(nrow(data) %/% 2)
    more <- tryCatch(suppressWarnings(update(quiet_fit(model, data[half, ], method, seed = seed),
                                             data[-half, ])),
                     logevidence_error = function(e) e)
    if (inherits(more, "condition")) {
      expect_match(conditionMessage(more), "^Rows cannot be added .*[.]$", info = name)
      refused <- c(refused, model_type(model))
    } else {
      expect_identical(more[c("n", "data_id")], whole[c("n", "data_id")], info = name)
      within(more)
    }
  }
  expect_true(all(refused == "factor_priors"))
})

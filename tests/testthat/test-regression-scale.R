# regression(scale = TRUE): priors of standardised columns, coefficients of columns as given.

# `year` is far from zero, `income` is wide; `b` and `g` must stay as they are.
scale_data <- function(n = 80, seed = 2) with_own_seed(test_seed(seed), {
  d <- data.frame(year = 1990 + sample(0:29, n, TRUE), income = exp(rnorm(n, 10)),
                  b = rbinom(n, 1, 0.3), g = factor(rep_len(letters[1:4], n)),
                  l = rep_len(c(TRUE, FALSE, FALSE), n))
  d$count <- rpois(n, exp(1 + 0.02 * (d$year - 2000)))
  d$y <- 3 + 0.1 * (d$year - 2000) + d$b + rnorm(n)
  d
})

by_hand <- function(data, columns, constants = data) {
  for (name in columns)
    data[[name]] <- (data[[name]] - mean(constants[[name]])) / sd(constants[[name]])
  data
}

test_that("the evidence is that of columns scaled by hand, and so are predictions", {
  data <- scale_data()
  hand <- by_hand(data, c("year", "income"))
  for (family in c("poisson", "gaussian")) {
    formula <- if (family == "poisson") count ~ year + income + b + g + l
    else y ~ year + income + b + g + l
    one <- quiet_fit(regression(formula, family, scale = TRUE,
                                prior_sd = 2.5), data, seed = test_seed())
    two <- quiet_fit(regression(formula, family, prior_sd = 2.5), hand, seed = test_seed())
    expect_equal(one$log_evidence, two$log_evidence, tolerance = 1e-10)
    expect_equal(predict(one, data[5:9, ]), predict(two, hand[5:9, ]), tolerance = 1e-10)
    expect_equal(fitted(one, data), fitted(two, hand), tolerance = 1e-10)
    # coefficients are those of columns as given
    expect_identical(names(coef(one)), names(coef(two)))
    expect_equal(coef(one)[["year"]], coef(two)[["year"]] / sd(data$year), tolerance = 1e-8)
    expect_equal(coef(one)[["gb"]], coef(two)[["gb"]], tolerance = 1e-8)
    x <- model.matrix(formula, data)
    eta <- one$draws[, colnames(x)] %*% t(x)
    scaled <- two$draws[, colnames(x)] %*% t(model.matrix(formula, hand))
    expect_equal(eta, scaled, tolerance = 1e-8)
    if (family == "poisson")
      expect_equal(coef(one), coef(glm(formula, poisson, data)), tolerance = 0.2)
  }
})

test_that("scaling is that of columns of the model matrix, also of interactions", {
  data <- scale_data()
  formula <- count ~ year * g + poly(income, 2)
  x <- model.matrix(formula, data)[, -1]
  moving <- !colnames(x) %in% c("gb", "gc", "gd")
  x[, moving] <- scale(x[, moving])
  one <- model_functions(regression(formula, poisson(), scale = TRUE, prior_sd = 2.5), data)
  two <- model_functions(regression(family = poisson(),
                                    prior_sd = 2.5), list(x = x, y = data$count))
  theta <- one$draw_prior(3, seed = test_seed())
  expect_equal(one$log_lik(theta), two$log_lik(theta), tolerance = 1e-10)
  # a matrix without a formula has no factors, but columns of zeros and ones
  bare <- model_functions(regression(family = poisson(), scale = TRUE, prior_sd = 2.5),
                          list(x = model.matrix(formula, data)[, -1], y = data$count))
  expect_equal(bare$log_lik(theta), two$log_lik(theta), tolerance = 1e-10)
})

test_that("without an intercept columns are not centred", {
  data <- scale_data()
  hand <- transform(data, year = year / sd(year))
  one <- model_functions(regression(y ~ 0 + year + g, scale = TRUE, prior_sd = 2.5), data)
  two <- model_functions(regression(y ~ 0 + year + g, prior_sd = 2.5), hand)
  theta <- one$draw_prior(3, seed = test_seed())
  expect_equal(one$log_lik(theta), two$log_lik(theta), tolerance = 1e-10)
})

test_that("scaling constants of a stream are those of its first rows, also after update()", {
  data <- scale_data(12000)
  model <- regression(count ~ year + g, family = poisson(), scale = TRUE, prior_sd = 2.5)
  hand <- by_hand(data, "year", data[1:10000, ])
  stream <- quiet_fit(model, in_blocks(data, 3000), seed = test_seed())
  again <- quiet_fit(regression(count ~ year + g, family = poisson(), prior_sd = 2.5), hand,
                     sgais(order = "given"), seed = test_seed())
  expect_lt(abs(stream$log_evidence - again$log_evidence), 4 * sqrt(stream$se^2 + again$se^2))
  expect_equal(stream$design$scaling$centre[["year"]], mean(data$year[1:10000]))

  first <- quiet_fit(model, data[1:300, ], sgais(order = "given"), seed = test_seed())
  more <- update(first, data[301:400, ])
  reference <- quiet_fit(regression(count ~ year + g, family = poisson(), prior_sd = 2.5),
                         by_hand(data[1:400, ], "year", data[1:300, ]), sgais(order = "given"),
                         seed = test_seed())
  expect_lt(abs(more$log_evidence - reference$log_evidence),
            4 * sqrt(more$se^2 + reference$se^2))
  expect_equal(mean(fitted(more, data[1:400, ])), mean(data$count[1:400]), tolerance = 0.1)
})

test_that("models with standardised columns pass the conformance suite", {
  check <- check_model(regression(count ~ year * g, family = negative_binomial(), scale = TRUE,
                                  prior_sd = 2.5),
                       scale_data(), seed = test_seed())
  expect_identical(check$check[which(!check$holds)], character())
})

test_that("a constant column is not scaled, and values that are not finite are refused", {
  data <- scale_data()
  data$same <- 0.1
  model <- regression(y ~ year + same, scale = TRUE, prior_sd = 2.5)
  expect_identical(encode(model, data)$design$scaling$scale[["same"]], 1)
  data$year[7] <- Inf
  refused(evidence(model, data), "only finite values, not Inf in column `year`, row 7")
  refused(regression(y ~ x, scale = 2,
                     prior_sd = 2.5), "`scale` must be TRUE or FALSE, not 2")
})

# Specifications and the way from data to rows and back, without the C code.

covariates <- data.frame(
  y = c(1, 2, 4, 3, 9, 5),
  x = c(1, 5, 2, 8, 3, 4),
  z = 1:6,
  f = c("a", "b", "a", "c", "b", "c"),
  l = c(TRUE, FALSE, TRUE, TRUE, FALSE, FALSE),
  o = c(0, 1, 0, 2, 1, 3) / 10
)

# What C gets, as a matrix with a row for each observation and without names.
observations <- function(encoded) unname(t(encoded$rows))
linear_x <- function(formula, data = covariates) encode(linear_regression(formula, sigma = 1,
                                                                          prior_sd = 1), data)

test_that("specifications are plain lists of the arguments", {
  model <- linear_regression(y ~ x, sigma = 2, prior_sd = c(1, 3))
  expect_s3_class(model, c("linear_regression", "evidence_model"), exact = TRUE)
  expect_identical(model$name, "linear_regression")
  expect_identical(model$family$sigma, 2)
  expect_identical(model$prior_sd, c(1, 3))
  expect_identical(gaussian_mixture(components = 3)$components, 3)
  expect_identical(gaussian_mixture(~ a + b, 3)$components, 3)
  expect_identical(gaussian_mean(~y)$formula[[3]], 1)
  expect_identical(as.character(gaussian_mean(~y)$formula[[2]]), "y")
})

test_that("print() of a model shows likelihood and prior", {
  expect_output(print(gaussian_mean(~dist, sigma = 2)), "dist normal around mean, sd 2")
  expect_output(print(linear_regression(y ~ x, prior_sd = c(a = 1, b = 2))), "sd (a 1, b 2)",
                fixed = TRUE)
  expect_output(print(softmax_regression(y ~ x, prior_sd = 1)), "y ~ x", fixed = TRUE)
  expect_output(print(gaussian_mixture(components = 1)), "1 component,", fixed = TRUE)
  expect_invisible(expect_output(print(gaussian_mean())))
})

test_that("a gaussian mean takes vectors, single columns and formulas", {
  for (data in list(c(1, 3), matrix(c(1, 3)), data.frame(q = c(1, 3)), c(1L, 3L))) {
    encoded <- encode(gaussian_mean(sigma = 2, prior_mean = 1, prior_sd = 3), data)
    expect_identical(observations(encoded), cbind(c(1, 3)))
    expect_identical(encoded$args, list(sigma = 2, prior_mean = 1, prior_sd = 3))
    expect_identical(encoded$theta_names, "mean")
  }
  expect_equal(observations(encode(gaussian_mean(log(y) ~ 1), covariates)),
               cbind(log(covariates$y)))
  expect_equal(observations(encode(gaussian_mean(~y), covariates)), cbind(covariates$y))
  expect_identical(encode(gaussian_mean(), 7)$n, 1L)
})

test_that("a regression is encoded into the columns of lm()", {
  for (formula in list(y ~ x, y ~ 1, y ~ 0 + x, y ~ f * x + l, y ~ . - o,
                       log(y) ~ poly(x, 2) + I(z^2), y ~ f:z - 1)) {
    encoded <- linear_x(formula)
    frame <- model.frame(formula, covariates)
    x <- model.matrix(formula, frame)
    expect_equal(observations(encoded), unname(cbind(x, model.response(frame))), ignore_attr = TRUE)
    expect_identical(encoded$theta_names, colnames(x))
    expect_identical(encoded$args$covariates, as.double(ncol(x)))
    expect_type(encoded$rows, "double")
  }
})

test_that("offsets are subtracted from the response", {
  encoded <- linear_x(y ~ x + offset(o) + offset(2 * z))
  expect_equal(encoded$offset, with(covariates, o + 2 * z))
  expect_equal(encoded$rows["y", ], with(covariates, y - o - 2 * z))
  expect_identical(encoded$theta_names, c("(Intercept)", "x"))
})

test_that("matrices, lists and data frames are encoded into the same rows", {
  numbers <- as.matrix(covariates[c("y", "x", "z")])
  expected <- observations(linear_x(y ~ x + z))
  expect_identical(observations(linear_x(y ~ x + z, numbers)), expected)
  xy <- list(x = numbers[, c("x", "z")], y = numbers[, "y"])
  linear <- linear_regression(sigma = 1, prior_sd = 1)
  encoded <- encode(linear, xy)
  expect_identical(observations(encoded), expected)
  expect_identical(encoded$theta_names, c("(Intercept)", "x", "z"))
  expect_identical(encode(linear, list(x = unname(xy$x), y = xy$y))$theta_names,
                   c("(Intercept)", "x1", "x2"))
  expect_identical(observations(encode(linear,
                                       list(x = covariates$x, y = covariates$y))), expected[, -3])
})

test_that("an intercept is added to a matrix unless it has one by name", {
  linear <- linear_regression(sigma = 1, prior_sd = 1)
  own <- list(x = cbind("(Intercept)" = 1, a = 1:3), y = 4:6)
  expect_identical(encode(linear, own)$theta_names, c("(Intercept)", "a"))
  constant <- list(x = cbind(one = c(1, 1, 1)), y = 4:6)
  expect_identical(encode(linear, constant)$theta_names, c("(Intercept)", "one"))
})

test_that("priors may be one for all, one for each, or by name", {
  for (of in list(linear_regression, regression)) {
    prior <- function(...) encode(of(y ~ x, ..., sigma = 1), covariates)$args
    expect_identical(prior(prior_sd = 2)$prior_scale, c(2, 2))
    expect_identical(prior(prior_sd = c(2, 3))$prior_scale, c(2, 3))
    expect_identical(prior(prior_sd = c(x = 3, "(Intercept)" = 2))$prior_scale, c(2, 3))
    expect_identical(prior(prior_sd = 2, intercept = normal(0, 9))$prior_scale, c(9, 2))
    means <- prior(prior_mean = c(x = -1, "(Intercept)" = 0))
    expect_identical(means[c("prior_location", "prior_scale")],
                     list(prior_location = c(0, -1), prior_scale = c(2.5, 2.5)))
    # `prior` is for the other coefficients, and what is not given has no units
    found <- prior(prior = normal(1, 4))
    units <- c(mean(covariates$y), 10 * sd(covariates$y))
    expect_equal(c(found$prior_location, found$prior_scale), c(units[1], 1, units[2], 4))
    expect_equal(prior()$prior_scale, c(10, 2.5) * sd(covariates$y))
  }
})

test_that("unusual but legal data are accepted", {
  expect_identical(linear_x(y ~ x, data.frame(y = 1, x = 2))$n, 1L)
  expect_identical(linear_x(y ~ ., data.frame(y = 1:2, a = 1:2, b = 2, c = 0, d = 4:5))$n, 2L)
  expect_identical(linear_x(y ~ x, data.frame(y = c(1, 1), x = c(3, 3)))$n, 2L)
  expect_identical(linear_x(y ~ `a b`, data.frame(y = 1:2, `a b` = 1:2,
                                                  check.names = FALSE))$theta_names[2], "`a b`")
  expect_identical(linear_x(y ~ . - day,
                            data.frame(y = 1:2, x = 1:2, day = Sys.Date() + 1:2))$theta_names,
                   c("(Intercept)", "x"))
  expect_identical(linear_x(y ~ x, data.frame(y = c(1e300, 1e300), x = c(1e308, 1e308)))$n, 2L)
})

test_that("levels without rows keep their coefficients", {
  some <- data.frame(y = 1:3, f = factor(c("a", "b", "a"), levels = c("a", "b", "c")))
  expect_identical(linear_x(y ~ f, some)$theta_names, c("(Intercept)", "fb", "fc"))
  encoded <- encode(softmax_regression(f ~ y, prior_sd = 1), some)
  expect_identical(encoded$args$classes, 3)
  expect_identical(encoded$design$levels, c("a", "b", "c"))
})

test_that("constants of a formula may come from its environment, but columns may not", {
  degree <- 2
  expect_length(linear_x(y ~ poly(x, degree))$theta_names, 3)
  elsewhere <- rnorm(6)
  expect_error(linear_x(y ~ elsewhere), "must have the column `elsewhere`",
               class = "logevidence_error")
  expect_error(linear_x(y ~ log(elsewhere)), "must have the column `elsewhere`",
               class = "logevidence_error")
})

test_that("classes are counted from zero and weights go class by class", {
  encoded <- encode(softmax_regression(f ~ x, prior_sd = c(1, 2)), covariates)
  expect_identical(encoded$rows["f", ], c(0, 1, 0, 2, 1, 2))
  expect_identical(encoded$theta_names,
                   c("a:(Intercept)", "a:x", "b:(Intercept)", "b:x", "c:(Intercept)", "c:x"))
  expect_identical(encoded$args[c("covariates", "classes", "prior_scale")],
                   list(covariates = 2, classes = 3, prior_scale = c(1, 2)))
  labels <- list(c("u", "v", "u"), factor(c("u", "v", "u")), c(FALSE, TRUE, FALSE), c(3L, 10L, 3L),
                 c(3, 10, 3))
  for (y in labels) expect_identical(encode(softmax_regression(prior_sd = 1),
                                            list(x = 1:3, y = y))$rows["y", ],
                                     c(0, 1, 0))
  expect_identical(encode(softmax_regression(prior_sd = 1), list(x = 1, y = TRUE))$design$levels,
                   c("FALSE", "TRUE"))
})

test_that("mixtures take all columns, and their parameters are in the order of components", {
  two <- covariates[c("x", "z")]
  expected <- unname(as.matrix(two)) + 0
  for (data in list(two, as.matrix(two), unname(as.matrix(two))))
    expect_identical(observations(encode(gaussian_mixture(components = 2), data)), expected)
  expect_identical(observations(encode(gaussian_mixture(~ x + z, 2), covariates)), expected)
  expect_identical(observations(encode(gaussian_mixture(~ . - y - f - l - o, 2), covariates)),
                   expected)
  expect_equal(observations(encode(gaussian_mixture(~ log(x) + z, 2), covariates)),
               cbind(log(covariates$x), 1:6))
  encoded <- encode(gaussian_mixture(components = 2, location = c(z = 5, x = 1)), two)
  expect_identical(encoded$args$location, c(1, 5))
  expect_identical(encoded$args$dimensions, 2)
  expect_identical(encoded$theta_names, c(
    "log_ratio[1]",
    "standard_mean[1,x]", "standard_mean[1,z]", "standard_mean[2,x]", "standard_mean[2,z]",
    "log_variance[1,x]", "log_variance[1,z]", "log_variance[2,x]", "log_variance[2,z]"
  ))
  expect_identical(encoded$user_names[c(1, 2, 3, 6, 7, 10)],
                   c("weight[1]", "weight[2]", "mean[1,x]", "mean[2,z]", "sd[1,x]", "sd[2,z]"))
  expect_identical(encode(gaussian_mixture(components = 1), c(1, 2, 4))$theta_names,
                   c("standard_mean[1,x1]", "log_variance[1,x1]"))
})

test_that("the same data encode to the same rows later, all at once or in part", {
  cases <- list(
    list(linear_regression(log(y) ~ poly(x, 2) + f * l + offset(o), sigma = 1,
                           prior_sd = 1), covariates),
    list(linear_regression(y ~ scale(x) + factor(z %% 2), sigma = 1, prior_sd = 1), covariates),
    list(softmax_regression(f ~ x + l, prior_sd = 1), covariates),
    list(gaussian_mixture(~ log(x) + z, 2), covariates),
    list(gaussian_mixture(components = 2), covariates[c("x", "z")]),
    list(gaussian_mean(y ~ 1), covariates)
  )
  for (case in cases) {
    encoded <- encode(case[[1]], case[[2]])
    all <- encode_new(case[[1]], encoded$design, case[[2]])
    expect_equal(all$rows, encoded$rows)
    expect_equal(all$offset, encoded$offset)
    one <- encode_new(case[[1]], encoded$design, case[[2]][4, ])
    expect_equal(one$rows, encoded$rows[, 4, drop = FALSE])
  }
})

test_that("new data need no response for prediction", {
  model <- linear_regression(log(y) ~ x + offset(o), sigma = 1, prior_sd = 1)
  encoded <- encode(model, covariates)
  new <- encode_new(model, encoded$design, covariates[2:3, c("x", "o")], response = FALSE)
  expect_identical(new$rows[1:2, ], encoded$rows[1:2, 2:3])
  expect_true(all(is.na(new$rows[3, ])))
  expect_identical(new$offset, covariates$o[2:3])
  model <- softmax_regression(prior_sd = 1)
  design <- encode(model, list(x = cbind(a = 1:3, b = 4:6), y = c("u", "v", "v")))$design
  new <- encode_new(model, design, list(x = cbind(b = 7, a = 8)), response = FALSE)
  expect_identical(unname(new$rows[, 1]), c(1, 8, 7, NA))
  design <- encode(gaussian_mean(), 1:3)$design
  expect_identical(encode_new(gaussian_mean(), design, 1:2, response = FALSE)$n, 2L)
})

test_that("new data are encoded with the contrasts of the first", {
  model <- linear_regression(y ~ f, sigma = 1, prior_sd = 1)
  old <- options(contrasts = c("contr.sum", "contr.poly"))
  encoded <- encode(model, covariates)
  options(old)
  expect_identical(encoded$theta_names, c("(Intercept)", "f1", "f2"))
  expect_identical(encode_new(model, encoded$design, covariates)$rows, encoded$rows)
})

test_that("simulated rows return to the shape of the data", {
  back <- function(model, data) {
    encoded <- encode(model, data)
    decode(model, encoded, encoded$rows, data)
  }
  expect_equal(back(linear_regression(log(y) ~ x + offset(o), sigma = 1,
                                      prior_sd = 1), covariates), covariates)
  expect_equal(back(gaussian_mean(~y), covariates), covariates)
  expect_identical(back(gaussian_mean(), c(1, 2)), c(1, 2))
  expect_identical(back(gaussian_mean(), data.frame(q = c(1, 2))), data.frame(q = c(1, 2)))
  expect_identical(back(gaussian_mixture(~ x + y, 2), covariates), covariates)
  two <- cbind(a = c(1, 2), b = c(3, 4))
  expect_identical(back(gaussian_mixture(components = 2), two), two)
  expect_identical(back(gaussian_mixture(components = 2), as.data.frame(two)), as.data.frame(two))
  expect_identical(back(softmax_regression(f ~ x,
                                           prior_sd = 1), covariates)$f, factor(covariates$f))
  xy <- list(x = 1:2, y = c(3, 4))
  expect_identical(back(linear_regression(sigma = 1, prior_sd = 1), xy), xy)
})

test_that("templates for simulation need no responses", {
  model <- linear_regression(log(y) ~ x + offset(o), sigma = 1, prior_sd = 1)
  blank <- template(model, covariates[c("x", "o")], NULL)
  expect_equal(unname(blank$encoded$rows["log(y)", ]), -covariates$o)
  expect_identical(template(linear_regression(sigma = 1,
                                              prior_sd = 1), list(x = 1:3), NULL)$encoded$n, 3L)
  expect_identical(template(gaussian_mean(~ log(y)), NULL, 4)$encoded$n, 4L)
  # One observation of a mixture of two is a simulation like any other.
  expect_identical(template(gaussian_mixture(~ a + b, 2), NULL, 1)$encoded$n, 1L)
  expect_identical(template(gaussian_mixture(components = 2, location = c(a = 0, b = 1)), NULL,
                            3)$encoded$args$dimensions, 2)
})

test_that("a seed is two words of 32 bits", {
  expect_identical(seed_words(5), c(0, 5))
  expect_identical(seed_words(2^40 + 3), c(2^8, 3))
  set.seed(test_seed())
  words <- seed_words()
  set.seed(test_seed())
  expect_identical(seed_words(NULL), words)
  expect_true(all(words == floor(words) & words >= 0 & words < 2^32))
  before <- .Random.seed
  seed_words(test_seed(7))
  expect_identical(.Random.seed, before)
  streams <- vapply(0:1000, function(i) next_seed(c(2^32 - 1, 9), i)[1], 0)
  expect_identical(anyDuplicated(streams), 0L)
  expect_true(all(streams >= 0 & streams < 2^32))
})

test_that("points are vectors, or rows of a matrix", {
  expect_identical(as_points(1:3, 3)$points, cbind(c(1, 2, 3)))
  expect_identical(as_points(matrix(1:6, 2), 3)$points, t(matrix(c(1, 2, 3, 4, 5, 6), 2)))
  expect_identical(as_points(1:3, 1)$points, t(c(1, 2, 3)))
  expect_identical(per_point(matrix(1:6, 3), c("a", "b", "c"), FALSE),
                   rbind(c(a = 1L, b = 2L, c = 3L), 4:6))
  expect_identical(per_point(matrix(1:2, 2), c("a", "b"), TRUE), c(a = 1L, b = 2L))
})

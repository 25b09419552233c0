# Bad input gets one sentence: the argument in backticks, the rule, and the value seen.

numbers <- data.frame(y = c(1, 2, 3, 4), x = c(4, 3, 1, 2), z = 1:4)

# `...` is the whole sentence, or a fixed part of it.
expect_refusal <- function(code, sentence) {
  error <- expect_error(code, sentence, fixed = TRUE, class = "logevidence_error")
  expect_null(conditionCall(error))
  expect_match(conditionMessage(error), "\\.$")
  expect_match(conditionMessage(error), "`")
}
linear <- function(formula, data = numbers, ...)
  encode(linear_regression(formula, sigma = 1, ...), data)
softmax <- function(formula, data, ...) encode(softmax_regression(formula, ...), data)
mixture <- function(data, components = 1, formula = NULL, ...)
  encode(gaussian_mixture(formula, components, ...), data)

test_that("checkers name the argument, the rule and the value", {
  expect_refusal(check_count(1.5, "particles", 2),
                 "`particles` must be a whole number of at least 2, not 1.5.")
  expect_refusal(check_count(0, "k", 1, 64), "`k` must be a whole number between 1 and 64, not 0.")
  expect_refusal(check_count("a", "k", max = 100000, min = -Inf),
                 "a whole number of at most 100000, not \"a\".")
  expect_refusal(check_count(c(1, 2), "k"), "not a double vector of length 2.")
  expect_refusal(check_count(NULL, "k"), "not NULL.")
  expect_refusal(check_count(NA, "k"), "not NA.")
  expect_refusal(check_number("a", "h"), "`h` must be a finite number, not \"a\".")
  expect_refusal(check_number(-1, "h", 0), "`h` must be a non-negative number, not -1.")
  expect_refusal(check_number(1, "h", 0, 1, upper_open = TRUE),
                 "`h` must be a number of at least 0 and below 1, not 1.")
  expect_refusal(check_number(Inf, "h", 2), "`h` must be a number of at least 2, not Inf.")
  expect_refusal(check_positive(0, "s"), "`s` must be a positive number, not 0.")
  expect_refusal(check_probability(1.5, "p"), "`p` must be a number between 0 and 1, not 1.5.")
  expect_refusal(check_flag(NA, "f"), "`f` must be TRUE or FALSE, not NA.")
  expect_refusal(check_flag(1, "f"), "`f` must be TRUE or FALSE, not 1.")
  expect_refusal(check_choice("x", "o", c("a", "b", "c")),
                 "`o` must be \"a\", \"b\" or \"c\", not \"x\".")
  expect_refusal(check_is_model(1),
                 "`model` must be a model, such as `linear_regression(y ~ x)`, not 1.")
})

test_that("checkers return what they were given", {
  expect_identical(check_count(3L, "k"), 3)
  expect_identical(check_number(c(a = 2), "h"), 2)
  expect_identical(check_choice(c("a", "b"), "o", c("a", "b")), "a")
  expect_identical(check_choice("b", "o", c("a", "b")), "b")
  expect_true(check_flag(TRUE, "f"))
  expect_identical(check_numbers(c(a = 1L), "s", positive = TRUE), c(a = 1))
})

test_that("values in errors are shown as R would print them", {
  expect_identical(show_value(0.1), "0.1")
  expect_identical(show_value(NULL), "NULL")
  expect_identical(show_value(numeric()), "an empty double vector")
  expect_identical(show_value(1:3), "an integer vector of length 3")
  expect_identical(show_value(factor("a")), "a factor, \"a\"")
  expect_identical(show_value(y ~ x), "`y ~ x`")
  expect_identical(show_value(mean), "a function")
  expect_identical(show_value(list(1)), "a list")
  expect_identical(show_value(diag(2)), "a matrix of 2 x 2 (double)")
  expect_identical(show_value(numbers), "a data frame")
  expect_identical(show_value(Sys.Date()), "an object of class Date")
  expect_identical(show_value(quote(a)), "an object of type symbol")
  expect_identical(show_value(NA_character_), "NA")
})

test_that("constructors refuse bad settings", {
  noise <- "`sigma` must be a positive number or a prior, such as `half_student(3, 2.5)`, not "
  for (bad in list(-1, 0, NA, Inf, "a"))
    expect_refusal(linear_regression(sigma = bad,
                                     prior_sd = 1), paste0(noise, show_value(bad), "."))
  expect_refusal(linear_regression(sigma = 1:2,
                                   prior_sd = 1), paste0(noise, "an integer vector of length 2."))
  expect_refusal(linear_regression(sigma = normal(0, 1), prior_sd = 1),
                 "`sigma` must be a prior of a positive number, such as `half_student(3, 2.5)`")
  expect_refusal(linear_regression(prior_sd = 0), "`prior_sd` must be a positive number, not 0.")
  expect_refusal(linear_regression(prior_sd = c(1, -1)),
                 "`prior_sd` must hold only positive numbers, not -1 (element 2).")
  expect_refusal(linear_regression(prior_mean = NaN, prior_sd = 1),
                 "`prior_mean` must be a finite number, not NaN.")
  expect_refusal(linear_regression(prior_mean = "a",
                                   prior_sd = 1), "`prior_mean` must be a finite number")
  expect_refusal(gaussian_mean(prior_sd = 0), "`prior_sd` must be a positive number, not 0.")
  expect_refusal(gaussian_mean(prior_mean = 1:2),
                 "`prior_mean` must be a finite number, not an integer vector")
  expect_refusal(softmax_regression(prior_sd = -2), "`prior_sd` must be a positive number, not -2.")
  for (setting in c("mean_scale", "shape", "rate", "concentration"))
    expect_refusal(do.call(gaussian_mixture,
                           c(list(components = 2), stats::setNames(list(0), setting))),
                   paste0("`", setting, "` must be a positive number, not 0."))
})

test_that("constructors refuse bad numbers of components", {
  for (bad in list(0, -1, 2.5, 65))
    expect_refusal(gaussian_mixture(components = bad),
                   paste0("`components` must be a whole number between 1 and 64, not ", bad, "."))
  expect_refusal(gaussian_mixture(components = "a"), "not \"a\".")
  expect_refusal(gaussian_mixture(), "`components` must be given, a whole number between 1 and 64.")
  expect_refusal(gaussian_mixture(3),
                 "`formula` must be a one-sided formula, such as `~ a + b`, not 3.")
})

test_that("constructors refuse bad formulas", {
  expect_refusal(linear_regression(~x, prior_sd = 1),
                 "`formula` must be a formula with a response, such as `y ~ x`, not `~x`.")
  expect_refusal(linear_regression("y ~ x", prior_sd = 1), "not \"y ~ x\".")
  expect_refusal(linear_regression(numbers, prior_sd = 1), "not a data frame.")
  expect_refusal(linear_regression(y ~ 0, prior_sd = 1),
                 "`formula` must have a covariate or an intercept, not `y ~ 0`.")
  expect_refusal(softmax_regression(y ~ -1,
      prior_sd = 1), "`formula` must have a covariate or an intercept")
  expect_refusal(softmax_regression(y ~ x + offset(z), prior_sd = 1),
                 "`formula` must have no offset in softmax_regression()")
  expect_refusal(gaussian_mixture(y ~ x, 2),
                 "`formula` must be a one-sided formula, such as `~ a + b`, not `y ~ x`.")
  expect_refusal(gaussian_mean(y ~ x),
                 "`formula` must be a formula such as `y ~ 1` or `~ y`, not `y ~ x`.")
  expect_refusal(gaussian_mean(3), "not 3.")
})

test_that("formulas are checked against the data", {
  expect_refusal(linear(y ~ q), "`data` must have the column `q`, not only `y`, `x`, `z`.")
  expect_refusal(linear(y ~ log(df)), "`data` must have the column `df`")
  expect_refusal(linear(y ~ . - x - z - 1), "`formula` must have a covariate or an intercept")
  expect_refusal(linear(y ~ offset(x) - 1), "`formula` must have a covariate or an intercept")
  expect_refusal(softmax(z ~ . + offset(x), numbers), "`formula` must have no offset")
  expect_refusal(mixture(numbers, 1, ~ x:y), "`formula` must have no interactions, not `x:y`.")
  expect_refusal(mixture(numbers, 1, ~1), "`formula` must name at least one column, not `~1`.")
  expect_refusal(mixture(numbers, 1, ~ x + offset(y)), "`formula` must have no offset, not ")
  expect_refusal(linear(y ~ poly(x, 9)), "`data` must be something `formula` can be computed from")
})

test_that("missing and infinite values are named by column and row", {
  for (bad in c(NA, NaN, Inf, -Inf)) {
    rule <- if (is.na(bad)) paste("no missing values (`na.action = na.omit` of evidence() leaves",
                                  "such rows out, those of a source with `collect = TRUE`)")
    else "only finite values"
    sentence <- function(column)
      paste0("`data` must have ", rule, ", not ", bad, " in column `", column, "`, row 3.")
    x <- c(1, 2, bad, 4)
    holed <- data.frame(y = 1:4, x = x, c = c("a", "b", "a", "b"))
    expect_refusal(linear(y ~ x, holed), sentence("x"))
    expect_refusal(linear(x ~ y, holed), sentence("x"))
    expect_refusal(linear(y ~ 1 + offset(x), holed), sentence("offset(x)"))
    expect_refusal(softmax(c ~ x, holed), sentence("x"))
    expect_refusal(mixture(holed, 1, ~x), sentence("x"))
    expect_refusal(mixture(holed[1:2]), sentence("x"))
    expect_refusal(mixture(as.matrix(holed[1:2])), sentence("x"))
    expect_refusal(encode(gaussian_mean(~x), holed), sentence("x"))
    expect_refusal(encode(gaussian_mean(), holed["x"]), sentence("x"))
    expect_refusal(encode(gaussian_mean(), x), sentence("y1"))
    xy <- list(x = cbind(x), y = 1:4)
    expect_refusal(encode(linear_regression(sigma = 1, prior_sd = 1), xy),
                   paste0(rule, ", not ", bad, " in column `x`, row 3."))
  }
  expect_refusal(linear(y ~ log(w), transform(numbers, w = z - 1)),
                 "not -Inf in column `log(w)`, row 1.")
  expect_refusal(linear(y ~ poly(x, 2), transform(numbers, x = c(1, NA, 2, 3))),
                 "not NA in column `x`, row 2.")
  expect_refusal(linear(y ~ x:z, data.frame(y = 1, x = 1e200, z = 1e200)),
                 "not Inf in column `x:z`, row 1.")
  expect_refusal(linear(y ~ f, transform(numbers, f = c("a", NA, "b", "a"))),
                 "not NA in column `f`, row 2.")
  expect_refusal(softmax(f ~ x, transform(numbers, f = c("a", NA, "b", "a"))),
                 "not NA in column `f`, row 2.")
  expect_refusal(linear(y ~ l, transform(numbers, l = c(TRUE, NA, TRUE, TRUE))),
                 "not NA in column `l`, row 2.")
})

test_that("data without rows, or of a wrong form, are refused", {
  empty <- "`data` must have at least one row, not 0."
  expect_refusal(linear(y ~ x, numbers[0, ]), empty)
  expect_refusal(mixture(numbers[0, ]), empty)
  expect_refusal(mixture(numbers[0, ], 1, ~x), empty)
  expect_refusal(encode(gaussian_mean(), numeric()), empty)
  expect_refusal(encode(gaussian_mean(~y), numbers[0, ]), empty)
  for (bad in list(NULL, 1:3, list(y = 1, x = 2), "a", mean))
    expect_refusal(linear(y ~ x, bad), "`data` must be a data frame, or a matrix with column names")
  expect_refusal(linear(y ~ x, as.matrix(data.frame(y = 1, x = "a"))),
                 "must be a numeric matrix or a data frame")
  expect_refusal(linear(y ~ x, matrix(1:4, 2)),
                 "must have column names when the model has a formula")
  expect_refusal(linear(y ~ x, stats::setNames(numbers, c("y", "x", "x"))),
                 "must have distinct column names, not `x` twice.")
  expect_refusal(encode(gaussian_mean(), numbers),
                 "must have one column when the model has no formula, not 3.")
  expect_refusal(encode(gaussian_mean(), "a"),
                 "must be a numeric vector when the model has no formula, not \"a\".")
  expect_refusal(encode(gaussian_mean(), factor("a")), "must be a numeric vector")
  expect_refusal(mixture(letters), "must be a numeric matrix or a data frame")
  expect_refusal(mixture(list(1, 2)), "must be a numeric matrix or a data frame, not a list.")
})

test_that("data in lists are checked", {
  no_formula <- function(data) encode(linear_regression(sigma = 1, prior_sd = 1), data)
  expect_refusal(no_formula(numbers),
                 "`formula` must be given when `data` is a data frame, not NULL.")
  expect_refusal(no_formula(list(x = 1:3)), "not one without `y`.")
  expect_refusal(no_formula(list(y = 1:3)), "not one without `x`.")
  expect_refusal(no_formula(list(x = 1:2, y = 1:2, w = 1)), "not one with `w` too.")
  expect_refusal(no_formula(list(x = 1:2, y = 1:3)),
                 "`data$y` must have a value for each row of `data$x` (2), not 3.")
  expect_refusal(no_formula(list(x = letters, y = 1:26)),
                 "`data$x` must be a numeric matrix, not a character vector")
  expect_refusal(no_formula(list(x = matrix(0, 0, 2), y = numeric())),
                 "`data$x` must have at least one row, not 0.")
  expect_refusal(no_formula(list(x = matrix(0, 2, 0), y = 1:2)),
                 "`data$x` must have at least one column, not 0.")
  expect_refusal(no_formula(list(x = cbind(a = 1, a = 2), y = 1)),
                 "distinct column names, not `a` twice.")
  expect_refusal(no_formula(1:3), "`data` must be a list of `x` and `y`")
})

test_that("sparse matrices and integer64 are refused rather than misread", {
  # What matters about a sparse matrix here is that it is an S4 object.
  make_sparse <- methods::setClass("logevidence_test_sparse",
                                   methods::representation(i = "numeric"), where = globalenv())
  on.exit(methods::removeClass("logevidence_test_sparse", where = globalenv()))
  sparse <- make_sparse(i = 1)
  expect_refusal(linear(y ~ x, sparse), "must be a data frame, or a matrix with column names")
  expect_refusal(encode(linear_regression(sigma = 1, prior_sd = 1), list(x = sparse, y = 1:3)),
                 "`data$x` must be a numeric matrix")
  expect_refusal(mixture(sparse), "must be a numeric matrix or a data frame")
  wide <- numbers
  wide$w <- structure(c(1, 2, 3, 4), class = "integer64")
  expect_refusal(linear(y ~ w, wide), "not `w` of type integer64.")
  expect_refusal(mixture(wide), "not `w` of type integer64.")
})

test_that("columns of types that the models cannot use are refused", {
  odd <- transform(numbers, d = Sys.Date() + z, t = Sys.time() + z, f = c("a", "b", "a", "b"),
                   one = "a", l = z > 2, i = complex(4, 1))
  expect_refusal(linear(y ~ d, odd), paste(
    "must have numeric, logical, character or factor covariates, not `d` of type Date."
  ))
  expect_refusal(linear(y ~ t, odd), "not `t` of type date-time.")
  expect_refusal(linear(y ~ i, odd), "not `i` of type complex.")
  expect_refusal(linear(y ~ one, odd),
                 "must have at least two levels in the factor `one`, not only \"a\".")
  expect_refusal(linear(f ~ x, odd), "must have a numeric response, not `f` of type character.")
  expect_refusal(linear(l ~ x, odd), "must have a numeric response, not `l` of type logical.")
  expect_refusal(linear(d ~ x, odd), "must have a numeric response, not `d` of type Date.")
  expect_refusal(linear(cbind(x, y) ~ z, odd), "must have a numeric response")
  for (column in c("d", "f", "l"))
    expect_refusal(mixture(odd, 1, stats::reformulate(c("x", column))),
                   paste0("`data` must have numeric columns only, not `", column, "` of type "))
  expect_refusal(mixture(odd), "must have numeric columns only, not `d` of type Date.")
  expect_refusal(encode(gaussian_mean(~f), odd),
                 "must have a numeric response, not `f` of type character.")
})

test_that("responses of a softmax regression are classes", {
  expect_refusal(softmax(f ~ x, transform(numbers, f = "a")),
                 "must have at least two classes in `f`, not only \"a\".")
  expect_refusal(softmax(y ~ x, transform(numbers, y = y / 3)), "of type numeric with fractions.")
  expect_refusal(softmax(d ~ x, transform(numbers, d = Sys.Date())), "not `d` of type Date.")
  expect_refusal(softmax(y ~ x, data.frame(y = 1:101, x = 0)),
                 "at most 100 whole-number labels in `y`")
})

test_that("priors must fit the coefficients", {
  expect_refusal(linear(y ~ x, prior_sd = 1:3),
                 "`prior_sd` must have one value, or one for each coefficient (2), not 3.")
  expect_refusal(linear(y ~ x, prior_sd = c("(Intercept)" = 1)),
                 "must have a value for each coefficient, not none for `x`.")
  expect_refusal(linear(y ~ x, prior_mean = c(x = 1, q = 2)),
                 "must be named by coefficients (`(Intercept)`, `x`), not by `q`.")
  expect_refusal(linear(y ~ x, prior_sd = c(x = 1, x = 2, "(Intercept)" = 3)),
                 "not several for `x`.")
  expect_refusal(softmax(z ~ x, numbers, prior_sd = 1:3), "one for each covariate (2), not 3.")
  expect_refusal(mixture(numbers, 1, location = 1:2),
                 "`location` must have one value, or one for each column (3), not 2.")
})

test_that("new data must have the columns and levels of the first", {
  first <- transform(numbers, f = c("a", "b", "a", "b"))
  model <- linear_regression(y ~ x + f, sigma = 1, prior_sd = 1)
  design <- encode(model, first)$design
  new <- function(data, ...) encode_new(model, design, data, ...)
  expect_refusal(new(first["y"]), "`newdata` must have the column `x`, not only `y`.")
  expect_refusal(new(first[-1]), "`newdata` must have the column `y`")
  expect_refusal(new(first[0, ]), "`newdata` must have at least one row, not 0.")
  expect_refusal(new(transform(first, f = "q")),
                 "must have only known levels in `f` (\"a\", \"b\"), not \"q\" in row 1.")
  expect_refusal(new(transform(first, x = "q")),
                 "`newdata` must have `x` of type numeric, as in the first data, not character.")
  expect_refusal(new(transform(first, x = NA)),
                 paste("`newdata` must have no missing values (see na.omit()), not NA in column",
                       "`x`, row 1."))
  expect_refusal(new(transform(first, f = 1)),
                 "`newdata` must have `f` of type factor, as in the first data, not numeric.")
  expect_refusal(new(1:3), "`newdata` must be a data frame")
  expect_refusal(new(first["y"], argument = "data"), "`data` must have the column `x`")

  model <- softmax_regression(f ~ x, prior_sd = 1)
  design <- encode(model, first)$design
  expect_refusal(new(transform(first, f = "q")), "must have only known levels in `f`")

  model <- linear_regression(sigma = 1, prior_sd = 1)
  design <- encode(model, list(x = cbind(a = 1:2, b = 1:2), y = 1:2))$design
  expect_refusal(new(list(x = 1, y = 1)),
                 "`newdata$x` must have 2 columns as in the first data, not 1.")
  expect_refusal(new(list(x = cbind(a = 1, c = 1), y = 1)),
                 "`newdata$x` must have the column `b`, not only `a`, `c`.")

  model <- gaussian_mixture(components = 2)
  design <- encode(model, numbers)$design
  expect_refusal(new(numbers["x"]), "`newdata` must have the column `y`, not only `x`.")
  expect_refusal(new(matrix(1, 1, 2)), "`newdata` must have 3 columns as in the first data, not 2.")
})

test_that("simulate() needs parameters and a number of rows, and refuses wrong ones", {
  expect_refusal(simulate(gaussian_mean()),
                 "Exactly one of `data` and `n` must be given, not neither.")
  expect_refusal(simulate(gaussian_mean(), n = 3, data = 1:3), "not both.")
  expect_refusal(simulate(gaussian_mean(), n = 0), "`n` must be a whole number between 1 and")
  expect_refusal(simulate(gaussian_mean(), n = 3, nsim = 0),
                 "`nsim` must be a whole number between 1 and 1000000, not 0.")
  expect_refusal(simulate(gaussian_mean(), n = 3, seed = -1),
                 "`seed` must be NULL or a whole number from 0 to 2^53, not -1.")
  expect_refusal(simulate(gaussian_mean(), n = 3, size = 1), "not `size`.")
  expect_refusal(simulate(linear_regression(y ~ x, sigma = 1, prior_sd = 1), n = 3),
                 "`data` must hold the covariates of a regression")
  expect_refusal(simulate(gaussian_mixture(components = 2), n = 3), "`data` must be given")
  expect_refusal(simulate(linear_regression(sqrt(y) ~ x, sigma = 1, prior_sd = 1), data = numbers),
                 "`formula` must have a column, or the logarithm")
  expect_refusal(simulate(gaussian_mean(), n = 3, parameters = c(1, 2)),
                 "`parameters` must have one row")
})

test_that("points of parameters are checked", {
  expect_refusal(as_points("a", 2), paste(
    "`theta` must be a numeric vector, or a matrix with a point in each row, not \"a\"."
  ))
  expect_refusal(as_points(NULL, 2), "not NULL.")
  expect_refusal(as_points(1:3, 2), "`theta` must have 2 values, one for each parameter, not 3.")
  expect_refusal(as_points(matrix(1:3, 1), 2), "`theta` must have 2 values in each row")
  expect_refusal(as_points(c(1, NA), 2),
                 "`theta` must hold only finite numbers, not NA (parameter 2).")
  expect_refusal(one_point(matrix(1:4, 2), 2), "`theta` must be one point, not 2.")
  expect_refusal(model_functions(numbers, numbers), "`model` must be a model")
})

test_that("formulas with `data$column` are refused", {
  for (formula in c(mtcars$mpg ~ mtcars$wt, mpg ~ mtcars[["wt"]]))
    expect_error(linear_regression(formula), "must name columns of `data`")
  expect_error(gaussian_mixture(~ mtcars$mpg, 2), "must name columns of `data`")
})

test_that("all parts of a fit have names", {
  fit <- evidence(linear_regression(dist ~ speed), cars, seed = 1)
  expect_false(anyNA(names(fit)))
  expect_true(all(c("nested", "peaks", "partitions") %in% names(fit)))
})

test_that("words of other packages and arguments in the wrong order are refused with a remedy", {
  expect_error(linear_regression(dist ~ speed, prior_intercept = normal(0, 1)),
               "the nearest is `intercept`")
  expect_error(linear_regression(dist ~ speed, prior_aux = exponential(1)),
               "the nearest is `auxiliary`")
  expect_error(evidence(cars, linear_regression(dist ~ speed)), "must come first")
  expect_error(evidence(cars), "`model` must be a model")
})

test_that("wrong calls that the fuzzer has found are refused in a sentence", {
  d <- data.frame(y = c(1, 3, 2), x = c(0, 1, 1), text = c("a", "b", "a"))
  d$deep <- array(1, c(3, 2, 2))
  refused(regression(NULL ~ x), "not NULL")
  refused(poisson_rate(NULL ~ 1), "must be a formula such as")
  refused(gaussian_mean(~ NULL), "must be a formula such as")
  refused(evidence(gaussian_mixture(~ deep, 2), d), "of type array")
  refused(evidence(linear_regression(y ~ deep), d), "of type array")
  refused(evidence(linear_regression(cbind(text, y) ~ x), d), "the character matrix")
  refused(linear_regression(y ~ x, prior = jzs(), scale = c(TRUE, TRUE)), "TRUE or FALSE")
  refused(regression(y ~ x, auxiliary = quote(x)), "must be a prior or a list of priors")
  bad <- d
  bad$text <- structure(c(1L, 5L, 2L), levels = c("a", "b"), class = "factor")
  refused(evidence(linear_regression(y ~ text), bad), "must have a level for each value")
  expect_no_warning(refused(evidence(linear_regression(y ~ . + sin(x) + w), d[1:3]),
                            "must have the column `w`"))
  empty <- new_model("mine", encode = function(...) NULL, encode_new = function(...) NULL,
                     describe = function(...) "it")
  refused(evidence(empty, d), "`encode` of mine() must return a list with `rows`")
  refused(task_limit(NULL, 1), "`cl` must be a cluster")
  fit <- evidence(linear_regression(y ~ x), d, seed = 1)
  refused(plot(fit, changes = structure(1, class = "integer64")), "numbers of rows")
  refused(evidence(linear_regression(y ~ x), d, checkpoint = "\xff"), "the name of a file")
})

test_that("a fit or a formula in the place of a model is named in the error", {
  line <- lm(dist ~ speed, cars)
  refused(evidence(line, cars), "not an object of class lm. Write the model, with its priors: ")
  refused(evidence(line, cars), "`linear_regression(dist ~ speed)`.")
  steep <- glm(dist > 40 ~ speed, binomial(), cars)
  refused(evidence(steep), "`regression(dist > 40 ~ speed, binomial())`.")
  fit <- quiet_fit(linear_regression(dist ~ speed, sigma = 15, prior_sd = 10), cars, exact())
  refused(evidence(fit), "That is a fit: its log evidence is logml(fit), its model `fit$model`.")
  refused(evidence(list(fit$model, fit), cars), "`model[[2]]` must be a model")
  refused(evidence(dist ~ speed, cars), "`linear_regression(dist ~ speed)`.")
  refused(evidence(structure(list(), class = "stanfit")), "See stanfit_model().")
})

test_that("data in the place of a prior are refused: the error says that evidence() takes data", {
  said <- "A model has no data: they are given to evidence(model, data)."
  refused(linear_regression(dist ~ speed, cars), said)
  refused(regression(dist ~ speed, cars), said)
  refused(regression(dist ~ speed, poisson(), cars), said)
  refused(softmax_regression(dist ~ speed, cars), said)
  refused(gaussian_mixture(~ dist, cars), said)
  refused(density(~ dnorm(dist, mu, 1, log = TRUE), mu = ~ 1, data = cars), said)
  refused(regression(dist ~ speed, data = cars), "`data` is an argument of evidence()")
  refused(softmax_regression(dist ~ speed, data = cars), "`data` is an argument of evidence()")
})

test_that("a factor of very many levels is refused before its columns are made", {
  rows <- data.frame(y = rep(1, 1e5), g = factor(seq_len(1e5)))
  for (model in list(regression(y ~ g), linear_regression(y ~ g, sigma = 1),
                     regression(y ~ g, family = poisson())))
    refused(evidence(model, rows), "coefficients, not 99,999, most of them for the levels of `g`")
})

# End to end: evidence() against references that none of its code took part in.

# What is exact by itself --------------------------------------------------------------------------

test_that("the references agree with one another", {
  for (name in c("cars", "mtcars", "swiss", "airquality")) {
    p <- truth_problem(name)
    expect_equal(p$log_evidence, linear_truth_dense(p$x, p$y, p$sigma, p$prior_sd),
                 tolerance = 1e-10)
  }
  tiny <- truth_problem("softmax_tiny")
  by_importance <- softmax_importance(tiny$x, tiny$class, 2, 2e4, df = 5)
  expect_lt(abs(by_importance$log_evidence - tiny$log_evidence), 4 * by_importance$se)
  expect_equal(softmax_quadrature(tiny$x, tiny$class, nodes = 301), tiny$log_evidence,
               tolerance = 1e-9)
  iris <- truth_problem("iris_petal")
  by_importance <- softmax_importance(iris$x, iris$class, 3, 1e4, df = 8)
  expect_lt(abs(by_importance$log_evidence - iris$log_evidence), 4 * by_importance$se)
  expect_equal(mixture_truth(dozen(), 1), single_component_truth(dozen()), tolerance = 1e-12)
})

test_that("the C code has the same closed forms and densities", {
  for (name in c("mean100", "cars", "mtcars", "swiss", "longley", "airquality", "linear1000")) {
    p <- truth_problem(name)
    expect_equal(model_functions(p$model, p$data)$exact(), p$log_evidence, tolerance = 1e-8,
                 label = name)
  }
  p <- truth_problem("iris")
  f <- model_functions(p$model, p$data)
  # weights class by class; without their common part they are the coordinates of the reference
  theta <- with_own_seed(test_seed(), rnorm(f$dim))
  reduced <- as.vector(matrix(theta, ncol(p$x)) %*% class_contrasts(3))
  common <- rowSums(matrix(theta, ncol(p$x))) / sqrt(3)
  expect_equal(f$log_lik(theta) + f$log_prior(theta),
               softmax_joint(matrix(reduced, 1), p$x, p$class, 3) + sum(dnorm(common, log = TRUE)))
})

test_that("a mixture of one: closed form and quadrature over the package's density agree", {
  y <- dozen()[, 1]
  f <- model_functions(gaussian_mixture(components = 1, location = 0, rate = 1), y)
  at <- as.matrix(expand.grid(seq(-6, 6, length.out = 241), seq(-4, 6, length.out = 401)))
  log_cell <- log(12 / 240) + log(10 / 400)
  expect_equal(log_sum_exp(f$log_prior(at) + f$log_lik(at)) + log_cell, single_component_truth(y),
               tolerance = 1e-5)
})

# Methods x problems -------------------------------------------------------------------------------

linear_names <- c("mean100", "cars", "mtcars", "swiss", "longley", "airquality")

test_that("sgais() is right on regressions of known evidence", {
  for (name in c(linear_names, "linear1000", "linear5000", "softmax_tiny", "iris_petal", "iris"))
    expect_truth(truth_problem(name), sgais())
})

test_that("sgais() is right without its audit, past the rows of its early phase", {
  expect_truth(truth_problem("linear5000"), sgais(audit = FALSE))
  expect_truth(truth_problem("softmax3000"), sgais(audit = FALSE), fast_or_slow(1, 1:3))
})

test_that("sgais() is right on a softmax regression of 44 parameters", {
  expect_truth(truth_problem("softmax500"), sgais(), 1:5)
  expect_truth(truth_problem("softmax1000"), sgais(), 1:3)
})

test_that("sgais() is right on mixtures", {
  names <- c("mix2_dozen", "mix3_dozen_2d", "mix1_faithful", "mix3_dozen", "mix2_dozen_2d")
  for (name in fast_or_slow(names[1], names)) expect_truth(truth_problem(name), sgais())
  expect_truth(truth_problem("mix2_galaxies"), sgais(), fast_or_slow(1:3, 1:5))
  skip_unless_slow()
  expect_truth(truth_problem("mix2_eruptions"), sgais(), 1:5)
  expect_truth(truth_problem("mix2_faithful"), sgais(), 1:5)
})

test_that("thermal SMC is right", {
  names <- c("cars", "longley", "softmax_tiny", "mix2_dozen")
  for (name in fast_or_slow(names, c(linear_names, names[3:4], "mix1_faithful", "mix3_dozen_2d")))
    expect_truth(truth_problem(name), smc())
  expect_truth(truth_problem("iris_petal"), smc(), 1:5)
  expect_truth(truth_problem("mix2_galaxies"), smc(), 1:3)
})

test_that("SMC that adds observations is right where each has little information", {
  # longley is left out: on its raw scale the first row alone moves the posterior by thousands of
  # standard deviations
  names <- c("cars", "mtcars", "softmax_tiny", "mix2_dozen")
  all <- union(names, c(setdiff(linear_names, "longley"), "iris_petal"))
  for (name in fast_or_slow(names, all))
    expect_truth(truth_problem(name), smc("data"), drift = 0.1)
  skip_unless_slow()
  expect_truth(truth_problem("mix3_dozen_2d"), smc("data"), 1:3, drift = 0.1)
})

test_that("AIS is right on average, and its standard errors hold in few dimensions", {
  for (name in c("mean100", "cars", "softmax_tiny", "mix2_dozen"))
    expect_truth(truth_problem(name), ais(), drift = 0.05)
  fixed <- ais(schedule = sigmoidal(200))
  for (name in fast_or_slow("cars", c("mean100", "cars", "softmax_tiny")))
    expect_truth(truth_problem(name), fixed, drift = 0.05)
})

test_that("likelihood weighting is right on tiny problems", {
  for (name in c("mean100", "cars", "softmax_tiny"))
    expect_truth(truth_problem(name), likelihood_weighting(), drift = 0.05)
  three <- mean_problem(c(1.2, 0.4, 2.1))
  expect_truth(c(list(name = "mean of three"), three), likelihood_weighting())
})

test_that("replicates reduce the error", {
  p <- truth_problem("cars")
  fit <- evidence(p$model, p$data, smc(), seed = test_seed(), replicates = 10, progress = FALSE)
  expect_lt(abs(fit$log_evidence - p$log_evidence), 4 * fit$se)
  expect_lt(fit$se, 0.06)
})

test_that("the stated error of many rows is as large as the spread of the estimates", {
  skip_unless_slow()
  data <- with_own_seed(test_seed(), {
    x <- matrix(rnorm(1.5e6), ncol = 5)
    data.frame(y = rpois(3e5, exp(0.3 * x[, 1] + 0.2 * x[, 2])), x)
  })
  model <- regression(y ~ ., family = poisson(), prior_sd = 2.5)
  fits <- lapply(test_seed(1:100), function(seed) evidence(model, data, seed = seed))
  spread <- sd(vapply(fits, `[[`, 0, "log_evidence"))
  stated <- median(vapply(fits, `[[`, 0, "se"))
  # 1.42 when draws around the peak and wide draws counted as one sample
  expect_gt(stated / spread, 0.75)
  expect_lt(stated / spread, 1.3)
})

# check_model(): nothing is found where nothing is wrong, and each planted fault by the check that
# is there for it.

passes <- function(model, data, seed = test_seed(1)) {
  found <- check_model(model, data, seed = seed)
  info <- paste(describe(model)[[1]], seed)
  expect_equal(found$what[which(!found$holds)], character(), info = info)
  expect_gt(sum(found$holds, na.rm = TRUE), if (is_latent(model)) 7 else 10)
  invisible(found)
}
shown <- function(found) paste(utils::capture.output(print(found)), collapse = "\n")

test_that("all models of the package pass check_model()", {
  passes(linear_regression(dist ~ speed, sigma = 15, prior_sd = 10), cars)
  passes(softmax_regression(Species ~ ., prior_sd = 2), iris)
  passes(gaussian_mixture(components = 3, location = c(3, 70), rate = 5), faithful)
  passes(clustering(components = 3, infer = TRUE), scale(faithful))
  skip_unless_slow()
  passes(gaussian_mean(prior_sd = 3), c(1.2, 0.4, 2.1))
  passes(gaussian_mixture(components = 1), faithful)
  passes(clustering(components = 3), scale(faithful))
  passes(low_rank(rank = 1), scale(iris[1:4]))
  passes(binary_attributes(attributes = 2), scale(faithful))
})

line <- custom_model(
  log_likelihood = function(theta, data)
    dnorm(data$dist, theta[1] + theta[2] * data$speed, 15, log = TRUE),
  log_prior = function(theta) sum(dnorm(theta, 0, c(20, 5), log = TRUE)),
  draw_prior = function(n) cbind(rnorm(n, 0, 20), rnorm(n, 0, 5)),
  gradient = function(theta, data) {
    r <- (data$dist - theta[1] - theta[2] * data$speed) / 15^2
    c(sum(r), sum(r * data$speed))
  },
  prior_gradient = function(theta) -theta / c(20, 5)^2,
  parameters = c("a", "b")
)

test_that("right models of R functions pass, wrong ones fail at the wrong function", {
  passes(line, cars)
  fails <- function(check, ...) {
    wrong <- line
    wrong[...names()] <- list(...)
    found <- check_model(wrong, cars, seed = test_seed(1))
    expect_false(found$holds[found$check == check], info = shown(found))
  }
  fails("gradient", gradient = function(theta, data) c(0, sum(data$speed)))
  fails("prior gradient", prior_gradient = function(theta) theta / c(20, 5)^2)
  fails("prior draws", draw_prior = function(n) cbind(rnorm(n, 0, 20), rnorm(n, 0, 2)))
  fails("prior constant", log_prior = function(theta) sum(-theta^2 / 2 / c(20, 5)^2))
  fails("legal points", log_likelihood = function(theta, data)
    if (theta[1] > 20) NaN else sum(dnorm(data$dist, theta[1], 15, log = TRUE)))
  fails("blocks", log_likelihood = function(theta, data)
    sum(dnorm(data$dist, mean(data$dist) + theta[1] + theta[2] * data$speed, 15, log = TRUE)))
})

test_that("an error in a model's R function is a failed check", {
  wrong <- line
  wrong$gradient <- function(theta, data) stop("no gradient today")
  found <- check_model(wrong, cars, seed = test_seed(1))
  expect_match(found$what[which(!found$holds)], "no gradient today")
  wrong$gradient <- function(theta, data) 1
  found <- check_model(wrong, cars, seed = test_seed(1))
  expect_match(said(found), "`gradient` must return 2 numbers")
})

compiler_works <- compile_model(test_path("faults.c"), "faults") &&
  compile_model(test_path("faults-bound.c"), "faults_bound")
faulty <- function(fault) {
  compiled_model("faults_table", c("mean1", "mean2", "log_sd"), fault = fault, PACKAGE = "faults")
}
rows_of_pair <- function() with_own_seed(test_seed(5), {
  shift <- rnorm(60)
  cbind(shift = shift, y = shift + rnorm(60, sample(c(-1, 2), 60, TRUE)))
})

test_that("a model in C without a fault passes", {
  needs_compiler(compiler_works)
  for (seed in test_seed(seq_len(fast_or_slow(1, 5))))
    passes(faulty("none"), rows_of_pair(), seed)
})

# The check that is there for it: others may fail after it, as one fault follows from another.
FAULTS <- c(
  "gradient sign" = "gradient", "missing Jacobian" = "prior draws", "overwrites" = "adding",
  "scratch overrun" = "scratch", "hidden global" = "repeated calls", "NaN" = "legal points",
  "prior draw" = "prior draws", "symmetry" = "symmetry", "relabel" = "relabelling",
  "width" = "width", "block" = "blocks", "two threads" = "two threads",
  "curvature" = "prior second derivatives", "fast gradient" = "fast gradient",
  "unread column" = "width", "particles" = "particles", "log determinant" = "coordinates",
  "way back" = "coordinates", "mode" = "coordinates"
)

test_that("each planted fault is found by the check that is there for it", {
  needs_compiler(compiler_works)
  some <- union(names(FAULTS)[c(TRUE, FALSE)], "two threads")
  for (fault in fast_or_slow(some, names(FAULTS))) for (seed in test_seed(fast_or_slow(1, 1:2))) {
    if (fault == "two threads") seconds_of_threads(0.04)
    found <- check_model(faulty(fault), rows_of_pair(), seed = seed)
    failed <- found$check[which(!found$holds)]
    if (fault == "two threads" && is.na(found$holds[found$check == "two threads"])) next
    expect_identical(failed[1], FAULTS[[fault]], label = paste(fault, shown(found), sep = "\n"))
    # most faults are found by one check alone
    if (!fault %in% c("hidden global", "NaN", "prior draw", "missing Jacobian", "relabel", "width",
                      "block", "particles"))
      expect_length(failed, 1)
  }
})

faulty_bound <- function(fault)
  compiled_model("faults_bound_table", "mean", fault = fault, PACKAGE = "faults_bound")

FAULTS_OF_BOUNDS <- c(
  "bound too high" = "bound", "update" = "bound updates", "start" = "bound start",
  "unwritten" = "bound calls", "draw" = "bound draws", "relabelling" = "bound draws",
  "step of EM" = "maximum updates", "scratch of q" = "scratch"
)

test_that("each planted fault of a variational bound is found", {
  needs_compiler(compiler_works)
  y <- c(0.4, 1.3, -0.2, 2.2, 0.9, 1.1, 0.3)
  for (seed in test_seed(seq_len(fast_or_slow(1, 5)))) {
    found <- passes(faulty_bound("none"), y, seed)
    expect_true(all(found$holds[grep("^(bound|maximum)", found$check)]))
  }
  some <- names(FAULTS_OF_BOUNDS)[c(TRUE, FALSE)]
  seeds <- test_seed(fast_or_slow(1, 1:2))
  for (fault in fast_or_slow(some, names(FAULTS_OF_BOUNDS))) for (seed in seeds) {
    found <- check_model(faulty_bound(fault), y, seed = seed)
    failed <- found$check[which(!found$holds)]
    expect_identical(failed[1], FAULTS_OF_BOUNDS[[fault]],
                     label = paste(fault, shown(found), sep = "\n"))
  }
})

test_that("each planted fault of a model with latent variables is found", {
  model <- clustering(components = 3)
  fails <- function(check, what, lie) {
    encoded <- encode(model, scale(faithful))
    bench <- with_own_seed(test_seed(2), check_bench(model, encoded))
    honest <- bench$ask
    bench$ask <- function(asked, theta = NULL, ...) {
      answer <- honest(asked, theta, ...)
      if (asked == what) lie(answer, theta, ...) else answer
    }
    found <- with_own_seed(test_seed(2), check_states(bench, model))
    failed <- names(found)[!vapply(found, function(x) x$holds, NA)]
    expect_identical(failed, check, label = paste("what is found of", what))
  }
  off <- function(answer, by) replace(answer, "value", answer$value + by)
  fails(character(), "nothing", identity)
  # one label's probability is not what sweeps draw by
  fails("reversal", "state_log_prior", function(answer, theta, ...) off(answer, 0.01 * sum(theta)))
  fails(c("states", "bound draws"), "state_possible",
        function(answer, ...) replace(answer, "value", 0))
  fails("temperature", "state_log_lik", function(answer, ..., lambda = 1)
    off(answer, if (lambda == 0) 0.1 else 0))
  skip_unless_slow()
  fails("prediction", "state_last_given_rest", function(answer, ...) off(answer, 0.1))
  # a likelihood that is taken for a bound is above the evidence
  fails("bound", "q_bound", function(answer, ..., maximum = 0) off(answer, 3 * (maximum == 0)))
  fails("wall", "state_sweep_above", function(answer, theta, ...) {
    poor <- theta
    poor[-(1:5)] <- rev(theta[-(1:5)])
    replace(answer, "theta", list(poor))
  })
})

test_that("print() has a line for each check, and their number", {
  found <- check_model(line, cars, seed = test_seed())
  expect_s3_class(found, "model_check")
  said <- utils::capture.output(print(found))
  expect_length(said, nrow(found) + 2)
  expect_match(said[1], "Custom model of 2 parameters, checked on 50 rows", fixed = TRUE)
  expect_match(utils::tail(said, 1), "^All [0-9]+ checks hold")
  expect_false(inherits(found[found$check == "gradient", ], "model_check"))
})

test_that("check_model() is reproducible by its seed and does not change R's random numbers", {
  set.seed(test_seed(3))
  before <- .Random.seed
  one <- check_model(line, cars, seed = test_seed(4))
  expect_identical(.Random.seed, before)
  expect_identical(one, check_model(line, cars, seed = test_seed(4)))
})

test_that("check_model() refuses objects that are no model in a sentence", {
  refused(check_model(3, cars), "`model` must be a model")
  refused(check_model(line), "`data` must be given")
  refused(check_model(line, cars, seed = -1), "`seed` must be")
})

# Models of R functions: right against the built-in ones and closed forms, and safe whatever the
# functions do.

run <- function(model, data = NULL, method = nested(50, slice(), steps = 10), seed = 1, ...) {
  quiet_fit(model, data, method, seed = test_seed(seed), progress = FALSE, ...)
}
three <- c(1.2, 0.4, 2.1)

mean_custom <- function(log_likelihood = function(theta, data)
                          dnorm(data, theta[["mean"]], 1, log = TRUE),
                        log_prior = function(theta) dnorm(theta[["mean"]], log = TRUE),
                        draw_prior = stats::rnorm,
                        gradient = NULL, prior_gradient = if (!is.null(gradient)) function(theta)
                          -theta, ...) {
  custom_model("mean", log_likelihood, log_prior, draw_prior, gradient, prior_gradient, ...)
}

#' y ~ 1 + a + b with known noise and a standard normal prior, data as a matrix
line_custom <- function(gradients, vectorised) {
  at <- function(theta) if (vectorised) theta else matrix(theta, 1)
  residuals <- function(theta, data)
    t(data[, 3] - cbind(1, data[, 1:2, drop = FALSE]) %*% t(at(theta)))
  shape <- function(g) if (vectorised) g else drop(g)
  gradient <- function(theta, data)
    shape(residuals(theta, data) %*% cbind(1, data[, 1:2, drop = FALSE]))
  custom_model(
    c("one", "a", "b"),
    function(theta, data) shape(dnorm(residuals(theta, data), log = TRUE)),
    function(theta) rowSums(dnorm(at(theta), log = TRUE)),
    function(n) matrix(rnorm(3 * n), n),
    if (gradients) gradient, if (gradients) function(theta) -theta, vectorised = vectorised
  )
}
line_data <- with_own_seed(test_seed(4), {
  x <- matrix(rnorm(50), 25)
  cbind(x, drop(0.5 + x %*% c(1, -1)) + rnorm(25))
})
line_truth <- linear_truth(cbind(1, line_data[, 1:2]), line_data[, 3], 1, rep(1, 3))

# Against the built-in models ----------------------------------------------------------------------

without_gradients <- list(
  nested(60, steps = 10), nested(60, rwm(), steps = 20), smc(particles = 200, kernel = slice()),
  smc(particles = 200, kernel = rwm(), steps = 4), smc("data", particles = 200, kernel = slice()),
  ais(kernel = slice()), laplace(importance = 200), bridge(30, 40, kernel = rwm(), steps = 4),
  power_posterior(run = smc(particles = 200, ess = 0.95, kernel = slice())),
  likelihood_weighting(20000),
  online_nested(40, steps = 15), hybrid(15, 40, particles = 20, kernel = rwm(), batch = Inf)
)
with_gradients <- list(
  sgais(), smc(particles = 200), ais(), bridge(30, 40),
  power_posterior("thermodynamic", smc(particles = 200,
ess = 0.95)),
  hybrid(15, 40, particles = 20)
)

test_that("every method is right on a regression of three parameters", {
  methods <- c(without_gradients, with_gradients)
  # nested, smc, laplace, bridge, online_nested, sgais, smc by gradients, hybrid
  for (method in methods[fast_or_slow(c(1, 3, 7, 8, 11, 13, 14, 18), seq_along(methods))]) {
    model <- line_custom(gradients = TRUE, vectorised = TRUE)
    fits <- lapply(fast_or_slow(1, 1:2), function(seed) run(model, line_data, method, seed))
    z <- vapply(fits, function(f) (f$log_evidence - line_truth) / f$se, 0)
    expect_lt(max(abs(z)), 4, label = paste("largest |z| of", deparse1(method$call)))
    expect_identical(dim(fits[[1]]$draws), c(length(fits[[1]]$log_weights), 3L))
  }
  expect_equal(run(model, line_data, laplace())$log_evidence, line_truth, tolerance = 1e-6)
})

test_that("harmonic_mean() and sequential() give what they define for a custom model", {
  model <- line_custom(gradients = TRUE, vectorised = TRUE)
  harmonic <- run(model, line_data, harmonic_mean(20, 20))
  log_lik <- rowSums(model$log_likelihood(harmonic$draws, line_data))
  expect_equal(harmonic$log_evidence, log(length(log_lik)) - log_sum_exp(-log_lik))
  expect_match(harmonic$failed, "overstates the evidence")
  for (seed in fast_or_slow(1:2, 1:8)) {
    fit <- run(model, line_data, sequential(200), seed)
    expect_lt(abs(fit$log_evidence - line_truth), 4.5 * fit$se)
  }
})

test_that("vectorised functions and unused gradients change nothing", {
  few <- line_data[1:8, ]
  methods <- list(smc(particles = 20, kernel = slice()), nested(20, steps = 3),
                  online_nested(20, steps = 3), ais(20, kernel = rwm()))
  for (method in fast_or_slow(methods[1:2], methods)) {
    values <-
      lapply(c(TRUE, FALSE), function(gradients) lapply(c(TRUE, FALSE), function(vectorised) {
      run(line_custom(gradients, vectorised), few, method)[c("log_evidence", "se", "draws")]
    }))
    for (other in unlist(values, FALSE)) expect_equal(other, values[[1]][[1]], tolerance = 1e-8)
  }
  for (method in list(sgais(), smc(particles = 30), sequential()))
    expect_equal(run(line_custom(TRUE, FALSE), few, method)$draws,
                 run(line_custom(TRUE, TRUE), few, method)$draws, tolerance = 1e-6)
})

test_that("a mean as custom_model() has the evidence of gaussian_mean()", {
  truth <- mean_problem(three)$log_evidence
  for (method in without_gradients[c(1, 3, 6, 7, 10)]) {
    fits <- lapply(fast_or_slow(1, 1:4), function(seed) run(mean_custom(), three, method, seed))
    z <- vapply(fits, function(f) (f$log_evidence - truth) / f$se, 0)
    expect_lt(max(abs(z)), 4, label = paste("largest |z| of", method$name))
  }
  sums <- mean_custom(function(theta, data) sum(dnorm(data, theta, log = TRUE)))
  expect_equal(run(sums, three)$log_evidence, run(mean_custom(), three)$log_evidence)
})

test_that("methods that need gradients make them by differences", {
  truth <- mean_problem(three)$log_evidence
  for (method in list(sgais(), smc(), ais(), bridge())) {
    fit <- run(mean_custom(), three, method)
    expect_lt(abs(fit$log_evidence - truth), 4 * fit$se, label = method$name)
  }
  refused(run(mean_custom(), three, exact()), "closed form")
})

# Integrals ----------------------------------------------------------------------------------------

#' A model without data whose prior is uniform in a box, its likelihood a function of a matrix of
#' points
in_box <- function(d, lower, upper, log_likelihood, ...) {
  custom_model(
    paste0("x", seq_len(d)), log_likelihood,
    function(theta) ifelse(rowSums(theta < lower | theta > upper) > 0, -Inf,
                           -d * log(upper - lower)),
    function(n) matrix(runif(n * d, lower, upper), n), vectorised = TRUE, ...
  )
}

expect_near <- function(model, truth, method, seeds = 1:3, drift = 0) {
  if (!is_slow()) seeds <- seeds[1]
  fits <- lapply(seeds, function(seed) run(model, NULL, method, seed))
  error <- vapply(fits, `[[`, 0, "log_evidence") - truth
  se <- vapply(fits, `[[`, 0, "se")
  expect_lt(max(abs(error) / pmax(se, 1e-9)), 4)
  expect_lt(abs(mean(error)), 4 * sqrt(mean(se^2) / length(seeds)) + drift + 1e-9)
  invisible(fits)
}

test_that("nested() is right where the likelihood has plateaus", {
  stairs <- in_box(1, 0, 1, function(theta) 3 * floor(4 * theta[, 1]))
  expect_near(stairs, log(mean(exp(3 * 0:3))), nested(30, slice(), steps = 3), 1:4)
  steep <- in_box(2, 0, 1, function(theta)
                    ifelse(theta[, 1] < 0.05, 5, ifelse(theta[, 2] < 0.5, 1, 0)))
  expect_near(steep, log(0.05 * exp(5) + 0.95 * (0.5 * exp(1) + 0.5)),
              nested(30, slice(), steps = 3), 1:4)
  skip_unless_slow()
  half <- in_box(1, 0, 1, function(theta) ifelse(theta[, 1] < 0.5, -Inf, 0))
  expect_near(half, log(0.5), nested(30, slice(), steps = 3), 1:4)
  sloped <- in_box(1, 0, 1, function(theta) ifelse(theta[, 1] < 0.5, -Inf, log(theta[, 1])))
  expect_near(sloped, log(3 / 8), nested(30, slice(), steps = 3), 1:4)
})

test_that("the evidence of a constant likelihood is this constant", {
  flat <- in_box(2, 0, 1, function(theta) rep(-7, nrow(theta)))
  for (method in list(nested(20, steps = 2), smc(particles = 30, kernel = slice()),
                      likelihood_weighting(30))) {
    fit <- run(flat, NULL, method)
    expect_equal(fit$log_evidence, -7, tolerance = if (method$name == "nested") 0.01 else 1e-12)
  }
})

test_that("a likelihood that is impossible everywhere is an error", {
  nowhere <- in_box(1, 0, 1, function(theta) rep(-Inf, nrow(theta)))
  refused(run(nowhere, NULL, nested(10, slice(), steps = 2)),
    "No point of the prior gives the observations a positive probability")
  for (method in list(smc(kernel = slice()), likelihood_weighting(100)))
    refused(run(nowhere, NULL, method), "zero likelihood")
})

#' Two Gaussian shells of radius 2 in a box from -6 to 6
shells <- function(d, width = 0.1) {
  one <- function(theta, at)
    dnorm(sqrt((theta[, 1] - at)^2 + rowSums(theta[, -1, drop = FALSE]^2)), 2, width,
log = TRUE)
  model <- in_box(d, -6, 6, function(theta) {
    a <- one(theta, -3.5)
    b <- one(theta, 3.5)
    pmax(a, b) + log1p(exp(-abs(a - b)))
  })
  area <- log(2) + d / 2 * log(pi) - lgamma(d / 2)
  radial <- integrate(function(r) r^(d - 1) * dnorm(r, 2, width), 1, 3, rel.tol = 1e-10)$value
  list(model = model, log_evidence = log(2) + area + log(radial) - d * log(12))
}

egg_box <- function() {
  side <- seq(0, 10 * pi, length.out = 2001)[-1] - 5 * pi / 2000
  top <- outer(cos(side / 2), cos(side / 2), function(x, y) 5 * log(2 + x * y) * 1)
  value <- outer(cos(side / 2), cos(side / 2), function(x, y) (2 + x * y)^5)
  list(model = in_box(2, 0, 10 * pi, function(theta)
                        (2 + cos(theta[, 1] / 2) * cos(theta[, 2] / 2))^5),
       log_evidence = log_sum_exp(value) - log(length(value)))
}

#' Skilling's spike on a slab: a hundred parts of the evidence in a spike at the centre of a broad
#' Gaussian
spike <- function(d, narrow) {
  model <- in_box(d, -0.5, 0.5, function(theta) {
    square <- rowSums(theta^2)
    a <- -0.5 * square / 0.01 - d * log(0.1 * sqrt(2 * pi))
    b <- log(100) - 0.5 * square / narrow^2 - d * log(narrow * sqrt(2 * pi))
    pmax(a, b) + log1p(exp(-abs(a - b)))
  })
  list(model = model, log_evidence = log(101))
}

test_that("nested() integrates shells, an egg box and distant modes", {
  two <- shells(2)
  expect_equal(two$log_evidence, -1.75, tolerance = 0.01)
  expect_near(two$model, two$log_evidence, nested(100, slice(), steps = 12), 1:2)
  modes <- in_box(2, -10, 10, function(theta) {
    log(0.3 * exp(-0.5 * rowSums((theta - 5)^2)) + 0.7 * exp(-0.5 * rowSums((theta + 5)^2))) -
      log(2 * pi)
  })
  expect_near(modes, -log(400), nested(100, slice(), steps = 12), 1:2)
  skip_unless_slow()
  eggs <- egg_box()
  expect_equal(eggs$log_evidence, 235.86, tolerance = 1e-4)
  expect_near(eggs$model, eggs$log_evidence, nested(200, slice(), steps = 12), 1)
})

test_that("annealing that misses a phase transition, where nested() is right, gives a warning", {
  skip_unless_slow()
  problem <- spike(5, 0.003)
  # the default tolerance stops on the slab
  climb <- nested(60, slice(), steps = 15, tol = 1e-6)
  walk <- smc(particles = 200, kernel = slice())
  climbed <- run(problem$model, NULL, climb)
  expect_lt(abs(climbed$log_evidence - problem$log_evidence), 4 * climbed$se)
  for (method in list(walk, ais(kernel = slice()))) {
    fit <- run(problem$model, NULL, method)
    expect_lt(abs(fit$log_evidence), 1)
    expect_lt(fit$se, 0.5)
    expect_match(fit$failed, "missed a part of the posterior", all = FALSE)
  }
  check <- crosscheck(problem$model, methods = list(climb = climb, walk), seed = test_seed())
  expect_gt(abs(attr(check, "disagreement")[1, 2]), 3)
  expect_output(print(check), "failed its own checks")
})

test_that("nested() is right on large shells and spikes", {
  skip_unless_slow()
  five <- shells(5)
  expect_near(five$model, five$log_evidence, nested(400), 1:3)
  deep <- spike(10, 0.01)
  expect_near(deep$model, deep$log_evidence, nested(400, tol = 1e-8), 1:2)
  deep <- spike(20, 0.01)
  expect_near(deep$model, deep$log_evidence, nested(400, tol = 1e-12), 1)
})

# Functions that misbehave -------------------------------------------------------------------------

sum_of <- function(theta, data) sum(dnorm(data, theta, log = TRUE))
after <- function(calls, act, then = sum_of) {
  k <- 0
  function(...) {
    k <<- k + 1
    if (k > calls) act()
    then(...)
  }
}
usable <- function() expect_equal(run(mean_custom(), three, nested(10, slice(), steps = 2))$n, 3)

test_that("errors of users' functions keep their class, in every function and at any time", {
  act <- function() stop(structure(class = c("my_error", "error", "condition"),
                                   list(message = "mine", call = NULL)))
  slope <- function(theta, data) sum(data - theta)
  log_prior <- function(theta) dnorm(theta, log = TRUE)
  quick <- nested(20, slice(), steps = 5)
  for (calls in c(0, 300)) {
    expect_error(run(mean_custom(after(calls, act)), three, quick), "mine", class = "my_error")
    expect_error(run(mean_custom(log_prior = after(calls, act, log_prior)), three, quick), "mine",
                 class = "my_error")
    expect_error(run(mean_custom(gradient = after(calls, act, slope)), three, smc()), "mine",
                 class = "my_error")
    expect_error(run(mean_custom(gradient = slope,
                                 prior_gradient = after(calls, act, function(t) -t)), three, smc()),
                 class = "my_error")
    usable()
  }
  expect_error(run(mean_custom(draw_prior = after(0, act, rnorm)), three), class = "my_error")
  expect_error(run(mean_custom(draw_prior = after(2, act, rnorm)), three,
                   likelihood_weighting(500)),
    class = "my_error")
  expect_error(run(mean_custom(after(50, act)), three, laplace()), class = "my_error")
  expect_error(run(mean_custom(function(theta, data) stop("plain")), three), "plain",
               class = "simpleError")
  usable()
})

test_that("values of the wrong type or length from users' functions are refused in a sentence", {
  returns <- function(value) function(...) value
  quick <- nested(10, slice(), steps = 2)
  for (value in list(NULL, "a", list(1), numeric(0), c(1, 2), 1i, data.frame(a = 1))) {
    refused(run(mean_custom(returns(value)), three, quick), "`log_likelihood` must return ")
    refused(run(mean_custom(log_prior = returns(value)), three, quick), "`log_prior` must return ")
    refused(run(mean_custom(returns(value), vectorised = TRUE), three, quick),
            "`log_likelihood` must return ")
    refused(run(mean_custom(draw_prior = returns(value)), three, quick),
            "`draw_prior` must return a matrix of 100 x 1")
    refused(run(mean_custom(gradient = returns(value)), three, smc()),
            "`gradient` must return 1 numbers")
  }
  for (value in c(NA, NaN, Inf)) {
    refused(run(mean_custom(returns(value)), three, quick),
            paste0("finite numbers or -Inf, not ", value,
", at mean = "))
    refused(run(mean_custom(log_prior = returns(value)), three, quick),
            paste("`log_prior` must return finite numbers"))
    refused(run(mean_custom(draw_prior = function(n) rep(as.numeric(value), n)), three, quick),
      "`draw_prior` must return finite")
  }
  refused(run(mean_custom(returns(c(1, 2))), three, quick),
          "one number, or one for each of the 3 rows, not 2.")
  usable()
})

test_that("custom_model() refuses wrong arguments", {
  f <- function(theta) 0
  refused(custom_model(character(0), f, f, f), "`parameters` must be names")
  refused(custom_model("\xff", f, f, f), "`parameters` must be names")
  refused(custom_model(c("a", "a"), f, f, f), "`parameters` must be distinct, not `a` twice.")
  refused(custom_model("a", 1, f, f), "`log_likelihood` must be a function, not 1.")
  refused(custom_model("a", f, f, f, gradient = f), "must be given together, or neither.")
  refused(custom_model("a", f, f, f, vectorised = 2), "`vectorised` must be TRUE or FALSE")
  refused(evidence(mean_custom()), "`data` must be given.")
  for (bad in list(list(1, 2), numeric(0), sum)) refused(run(mean_custom(), bad), "`data` must")
  refused(simulate(mean_custom(), data = three), "not a custom_model() without `simulate`")
  expect_output(print(line_custom(TRUE, TRUE)),
                "Custom model of 3 parameters.*one, a, b.*given.*vectorised")
})

test_that("after warnings, jumps and interrupts in users' functions the session works", {
  warns <- mean_custom(after(100, function() warning("careful")))
  expect_identical(tryCatch(run(warns, three), warning = conditionMessage), "careful")
  usable()
  jumps <- function(leave) run(mean_custom(after(100, function() leave("out"))), three)
  expect_identical(callCC(jumps), "out")
  usable()
  skip_on_os("windows")
  stops <- mean_custom(after(100, function() tools::pskill(Sys.getpid(), 2L)))
  for (method in list(nested(20), likelihood_weighting(1000), laplace(importance = 100)))
    expect_identical(tryCatch(run(stops, three, method), interrupt = function(i) "stopped"),
                     "stopped")
  usable()
})

test_that("a user's function may call evidence() itself", {
  inner <- function(theta, data)
    run(mean_custom(), data, likelihood_weighting(5))$log_evidence + 0 * theta[[1]]
  expect_true(is.finite(run(mean_custom(inner), three, likelihood_weighting(10))$log_evidence))
})

test_that("runs free their memory however they end", {
  skip_if_not(file.exists("/proc/self/statm"))
  used <- function() {
    gc()
    scan("/proc/self/statm", quiet = TRUE)[2] * 4096
  }
  fails <- mean_custom(after(1500, function() stop("late")))
  again <- function(times) for (i in seq_len(times)) {
    try(run(fails, three, smc(particles = 1000, kernel = slice())), silent = TRUE)
    callCC(function(out) run(mean_custom(after(1200, function() out(1))), three,
                             smc(particles = 1000,
kernel = slice())))
  }
  times <- fast_or_slow(50, 100)
  again(times / 5)
  before <- used()
  again(times)
  expect_lt(used() - before, 1e5 * times * as.numeric(Sys.getenv("LOGEVIDENCE_PATIENCE", "1")))
})

test_that("results are right while R collects garbage all the time", {
  torture <- function(theta, data) {
    gctorture2(7)
    on.exit(gctorture(FALSE))
    sum(dnorm(data, theta, log = TRUE))
  }
  on.exit(gctorture(FALSE))
  method <- smc(particles = 4, kernel = slice(), steps = 1)
  expect_identical(run(mean_custom(torture), three, method)$log_evidence,
                   run(mean_custom(sum_of), three,
method)$log_evidence)
  gctorture2(200)
  whole <- run(mean_custom(sum_of), three, likelihood_weighting(3))$log_evidence
  gctorture(FALSE)
  expect_identical(whole, run(mean_custom(sum_of), three, likelihood_weighting(3))$log_evidence)
})

# Random numbers -----------------------------------------------------------------------------------

test_that("a seed makes runs reproducible and does not change the user's random numbers", {
  noisy <- mean_custom(function(theta, data) sum_of(theta, data) + rnorm(1, 0, 0.01))
  quick <- nested(20, slice(), steps = 2)
  set.seed(test_seed(5))
  before <- .Random.seed
  one <- run(noisy, three, quick)
  expect_identical(.Random.seed, before)
  runif(3)
  expect_identical(essence(run(noisy, three, quick)), essence(one), ignore_function_env = TRUE)
  expect_identical(run(noisy, three, quick, threads = 2)$draws, one$draws)
  expect_false(run(noisy, three, quick, seed = 2)$log_evidence == one$log_evidence)
  try(run(mean_custom(after(50, function() stop("late"))), three, quick), silent = TRUE)
  set.seed(test_seed(5))
  expect_identical(.Random.seed, before)
  kind <- RNGkind("L'Ecuyer-CMRG")
  on.exit(RNGkind(kind[1], kind[2], kind[3]))
  expect_identical(run(noisy, three, quick)$draws, one$draws)
  expect_identical(RNGkind()[1], "L'Ecuyer-CMRG")
  rm(".Random.seed", envir = globalenv())
  expect_identical(run(noisy, three, quick)$draws, one$draws)
  expect_false(exists(".Random.seed", globalenv()))
  set.seed(test_seed(5))
})

test_that("without a seed set.seed() makes runs reproducible", {
  free <- function() evidence(mean_custom(), three, nested(20, slice(), steps = 2),
                              progress = FALSE)$log_evidence
  set.seed(test_seed())
  one <- free()
  two <- free()
  set.seed(test_seed())
  expect_identical(free(), one)
  expect_false(one == two)
})

# Data and predictions -----------------------------------------------------------------------------

test_that("users' functions get the data in the form in which they were given", {
  seen <- list()
  watch <- function(theta, data) {
    seen[[length(seen) + 1]] <<- data
    rep(-theta[[1]]^2, NROW(data))
  }
  frame <- data.frame(y = 1:30 / 10, f = factor(rep(c("u", "v", "w"), 10)))
  for (data in list(frame$y, frame$f, as.matrix(frame["y"]), frame, frame["y"])) {
    for (method in list(nested(10, steps = 2), smc("data", particles = 5, kernel = slice()),
                        online_nested(10,
steps = 2))) {
      seen <- list()
      run(mean_custom(watch), data, method)
      alike <- vapply(seen, function(part) {
        identical(class(part), class(data)) && identical(names(part), names(data)) &&
          identical(ncol(part), ncol(data)) && identical(levels(part), levels(data))
      }, TRUE)
      expect_true(all(alike))
      rows <- vapply(seen, NROW, 0L)
      if (method$name == "nested") expect_identical(seen[[1]], data) else expect_lt(min(rows), 30)
    }
  }
})

test_that("predict() gives users' functions the new data", {
  fit <- run(mean_custom(), three, nested(60, slice(), steps = 10))
  weight <- exp(fit$log_weights)
  new <- c(-1, 0, 8, 2.5)
  plain <- vapply(new, function(y) log(sum(weight * dnorm(y, fit$draws[, 1], 1))), 0)
  expect_equal(predict(fit, new), plain)
  expect_equal(predict(fit, 8), plain[3])
  expect_equal(predict(fit, new, type = "density"), plain)
  matrix_fit <- run(line_custom(FALSE, TRUE), line_data, nested(30, slice(), steps = 5))
  expect_equal(predict(matrix_fit, line_data[3:5, ]), predict(matrix_fit, line_data)[3:5])
  summed <- run(mean_custom(sum_of), three, nested(20, slice(), steps = 2))
  refused(predict(summed, new), "`log_likelihood` must return a value for each row")
  refused(predict(fit, new, type = "response"), "`type` must be")
  both <- compare_models(a = fit, b = run(gaussian_mean(), three))
  expect_length(predict(both, new, type = "density"), 4)
})

test_that("nested fits of a custom model can be merged and continued", {
  model <- mean_custom()
  one <- run(model, three, nested(30, slice(), steps = 5), 1)
  two <- run(model, three, nested(30, slice(), steps = 5), 2)
  expect_identical(c(one, two)$nested$live, 60)
  refused(c(one, run(mean_custom(sum_of), three, nested(30), 2)), "other priors or settings")
  further <- update(one, tol = 1e-4, data = three)
  expect_gt(nrow(further$draws), nrow(one$draws))
})

test_that("gradients without second derivatives are enough for sgais(), past its early phase", {
  data <- with_own_seed(test_seed(11), {
    n <- fast_or_slow(700, 3000)
    x <- matrix(rnorm(3 * n), n)
    data.frame(y = drop(x %*% c(1, -1, 0.5)) + rnorm(n), x = x)
  })
  residual <- function(theta, data) data$y - as.matrix(data[-1]) %*% t(theta)
  model <- custom_model(c("a", "b", "c"),
    log_likelihood = function(theta, data) t(dnorm(residual(theta, data), log = TRUE)),
    log_prior = function(theta) rowSums(dnorm(theta, log = TRUE)),
    draw_prior = function(n) matrix(rnorm(3 * n), n),
    gradient = function(theta, data) t(residual(theta, data)) %*% as.matrix(data[-1]),
    prior_gradient = function(theta) -theta, vectorised = TRUE
  )
  exact <- evidence(linear_regression(y ~ . - 1, sigma = 1, prior_sd = 1), data,
                    exact())$log_evidence
  fit <- evidence(model, data, sgais(particles = fast_or_slow(15, 30),
                                     early = list(particles = fast_or_slow(40, 60),
                                                  rows = fast_or_slow(300, 1000))),
                  seed = test_seed(1), progress = FALSE)
  expect_lt(abs(fit$log_evidence - exact), 4 * fit$se)
  expect_true(all(is.na(fit$trace$temperature)))
})

test_that("a prior density and prior draws that contradict each other give a warning", {
  y <- c(1.2, 0.4, 2.1)
  model <- function(log_prior, draw_prior = function(n) rnorm(n), ...)
    custom_model("m", function(m, y) sum(dnorm(y, m, 1, log = TRUE)), log_prior, draw_prior, ...)
  told <- function(model, data = y, method = laplace())
    grep("do not belong together", quiet_fit(model, data, method, seed = test_seed(1))$failed,
         value = TRUE)
  proper <- function(m) dnorm(m, log = TRUE)
  expect_length(told(model(proper)), 0)
  found <- told(model(function(m) -m^2 / 2))
  expect_match(found, "`log_prior` and `draw_prior` of custom_model() do not belong", fixed = TRUE)
  number <- as.numeric(sub(".*exp[(](-?[0-9.]+)[)].*", "\\1", found))
  expect_lt(abs(number - log(2 * pi) / 2), 0.2)
  expect_length(told(model(proper, function(n) rnorm(n, 0, 0.5))), 1)
  wide <- custom_model(c("a", "b", "c"), function(theta) -sum((theta - 0.3)^2),
                       function(theta) if (all(abs(theta) < 1)) -3 * log(2) else -Inf,
                       function(n) matrix(runif(3 * n, -1, 1), n))
  expect_length(told(wide, NULL), 0)
  wide$log_prior <- function(theta) if (all(abs(theta) < 1)) 0 else -Inf
  expect_length(told(wide, NULL), 1)
  # the generator of the user is left alone
  set.seed(1)
  before <- .Random.seed
  prior_doubts(model(proper), NULL, NULL)
  expect_identical(.Random.seed, before)
})

test_that("an error names the user's function, and a warning is raised once", {
  prior <- function(m) dnorm(m, log = TRUE)
  run <- function(...) evidence(custom_model("m", ...), 1:9, laplace(), seed = 1, progress = FALSE)
  expect_error(run(function(m, d) stop("a bug"), prior, rnorm), "^`log_likelihood` stopped: a bug$")
  none <- function(m, d) 0
  expect_error(run(none, function(m) stop("a bug"), rnorm), "^`log_prior` stopped: a bug")
  expect_error(run(none, prior, function(n) stop("a bug")), "^`draw_prior` stopped: a bug")
  # the call inside of the function, and the class, stay as they are
  inner <- function(x) stop(structure(class = c("own", "error", "condition"),
                                      list(message = "a bug", call = sys.call())))
  error <- expect_error(run(function(m, d) inner(m), prior, rnorm), class = "own")
  expect_identical(conditionMessage(error), "`log_likelihood` stopped: a bug")
  expect_identical(conditionCall(error), quote(inner(m)))
  said <- character()
  withCallingHandlers(
    run(function(m, d) {
      if (m > 0) warning("above")
      sum(dnorm(d, m, log = TRUE))
    }, prior, rnorm),
    warning = function(w) {
      said <<- c(said, conditionMessage(w))
      invokeRestart("muffleWarning")
    })
  expect_identical(sum(said == "above"), 1L)
})

test_that("a run that is left by the handler of a warning does no harm to later ones", {
  many <- with_own_seed(test_seed(8), data.frame(y = rnorm(20000, 1)))
  warns <- custom_model("m", function(theta, data) {
    warning("as a user's function does")
    sum(stats::dnorm(data$y, theta, 1, log = TRUE))
  }, function(theta) stats::dnorm(theta, log = TRUE), function(n) rnorm(n))
  right <- quiet_fit(gaussian_mean(~ y), many, seed = test_seed(1), threads = 2)
  for (method in list(smc(particles = 20), laplace(), sgais(particles = 20))) {
    left <- tryCatch(evidence(warns, many, method, seed = test_seed(1)), warning = identity)
    expect_match(conditionMessage(left), "as a user's function does")
    again <- quiet_fit(gaussian_mean(~ y), many, seed = test_seed(1), threads = 2)
    expect_identical(again$log_evidence, right$log_evidence)
  }
})

# Parameters with bounds, and priors by a transform of the unit cube ------------------------------

few <- c(1.2, 0.4, 2.1, -0.3, 0.9)
normal_each <- function(theta, data) dnorm(data, theta["mu"], theta["sigma"], log = TRUE)
prior_of_both <- function(theta)
  sum(dnorm(theta["mu"], 0, 2, log = TRUE), dexp(theta["sigma"], log = TRUE))
draw_both <- function(n) cbind(rnorm(n, 0, 2), rexp(n))
# by quadrature, without the package
truth_of_few <- log(integrate(function(sigma) vapply(sigma, function(s) {
  over_mu <- function(mu) vapply(mu, function(m) prod(dnorm(few, m, s)) * dnorm(m, 0, 2), 0)
  dexp(s) * integrate(over_mu, -15, 15)$value
}, 0), 1e-3, 30)$value)

test_that("`bounds` and `prior_transform` have evidence and posterior on the user's scale", {
  bounded <- custom_model(c("mu", "sigma"), normal_each, prior_of_both, draw_both,
                          bounds = list(sigma = c(0, Inf)))
  cube <- custom_model(c("mu", "sigma"), normal_each,
                       prior_transform = function(u) c(qnorm(u["mu"], 0, 2), qexp(u[2])))
  fits <- lapply(list(bounded, cube), function(model)
    muffled(evidence(model, few, laplace(importance = 400), seed = test_seed())))
  for (fit in fits) {
    expect_lt(abs(fit$log_evidence - truth_of_few), 4.5 * fit$se)
    expect_identical(colnames(fit$draws), c("mu", "sigma"))
    expect_true(all(fit$draws[, "sigma"] > 0))
  }
  expect_identical(colnames(fits[[1]]$parameters), c("mu", "log(sigma)"))
  expect_equal(fits[[1]]$draws[, "sigma"], exp(fits[[1]]$parameters[, "log(sigma)"]))
  expect_equal(fits[[2]]$draws[, "sigma"], qexp(pnorm(fits[[2]]$parameters[, "z(sigma)"])))
  expect_equal(coef(fits[[1]])[["sigma"]], coef(fits[[2]])[["sigma"]], tolerance = 0.15)
})

test_that("the density in unconstrained space has the derivative, and gradients follow", {
  bounds <- list(a = c(-1, 4), p = c(0, 1), q = c(-Inf, 3), r = c(2, Inf))
  names <- c("a", "p", "q", "r", "free")
  log_prior <- function(theta)
    dunif(theta[["a"]], -1, 4, log = TRUE) + dbeta(theta[["p"]], 2, 3, log = TRUE) +
      dexp(3 - theta[["q"]], log = TRUE) + dexp(theta[["r"]] - 2, log = TRUE) +
      dnorm(theta[["free"]], log = TRUE)
  draws <- function(n)
    cbind(runif(n, -1, 4), rbeta(n, 2, 3), 3 - rexp(n), 2 + rexp(n), rnorm(n))
  log_lik <- function(theta, data) dnorm(data, sum(theta), 1, log = TRUE)
  slope <- function(theta, data) rep(sum(data - sum(theta)), 5)
  prior_slope <- function(theta)
    c(0, 1 / theta[["p"]] - 2 / (1 - theta[["p"]]), 1, -1, -theta[["free"]])
  model <- custom_model(names, log_lik, log_prior, draws, bounds = bounds, gradient = slope,
                        prior_gradient = prior_slope)
  f <- model_functions(model, few)
  expect_identical(f$names,
                   c("logit((a + 1) / 5)", "logit(p)", "log(3 - q)", "log(r - 2)", "free"))
  z <- c(0.3, -0.7, 0.2, -0.4, 1.1)
  user <- c(a = -1 + 5 * plogis(0.3), p = plogis(-0.7), q = 3 - exp(0.2), r = 2 + exp(-0.4),
            free = 1.1)
  expect_equal(f$to_user(z), user)
  jacobian <- prod(5 * dlogis(0.3), dlogis(-0.7), exp(0.2), exp(-0.4))
  expect_equal(f$log_prior(z), log_prior(user) + log(jacobian))
  expect_equal(f$log_lik(z), sum(log_lik(user, few)))
  by_differences <- function(g) vapply(1:5, function(j) {
    h <- replace(numeric(5), j, 1e-5)
    (g(z + h) - g(z - h)) / 2e-5
  }, 0)
  expect_equal(unname(f$gradient(z)), by_differences(f$log_lik), tolerance = 1e-6)
  expect_equal(unname(f$log_prior_gradient(z)), by_differences(f$log_prior), tolerance = 1e-6)
  many <- custom_model(
    names, function(theta, data) rowSums(outer(rowSums(theta), data, function(m, y)
      dnorm(y, m, 1, log = TRUE))), function(theta) apply(theta, 1, log_prior), draws,
    gradient = function(theta, data) matrix(vapply(seq_len(nrow(theta)), function(i)
      slope(theta[i, ], data), numeric(5)), ncol = 5, byrow = TRUE),
    prior_gradient = function(theta) t(apply(theta, 1, prior_slope)), vectorised = TRUE,
    bounds = bounds)
  g <- model_functions(many, few)
  points <- rbind(z, -z, z / 2)
  for (name in c("log_prior", "log_lik", "gradient", "log_prior_gradient", "to_user"))
    expect_equal(g[[name]](points), f[[name]](points), ignore_attr = TRUE, info = name)
  expect_identical(limits_custom(list(model = model, draws = t(user), parameters = t(z))),
                   model$scale$bounds)
})

test_that("simulation and vectorised prior transforms work on the user's scale", {
  cube <- custom_model("sigma", function(theta, data)
    rowSums(outer(theta[, "sigma"], data, function(s, y) dnorm(y, 0, s, log = TRUE))),
    prior_transform = function(u) qexp(u[, "sigma"]), vectorised = TRUE,
    simulate = function(theta, data) rnorm(length(data), 0, theta["sigma"]))
  f <- model_functions(cube, few)
  expect_equal(unname(f$to_user(0.3)), qexp(pnorm(0.3)))
  expect_equal(f$log_lik(0.3), sum(dnorm(few, 0, qexp(pnorm(0.3)), log = TRUE)))
  expect_equal(f$log_prior(0.3), dnorm(0.3, log = TRUE))
  # far out in the cube quantiles stay finite
  expect_true(all(is.finite(f$to_user(rbind(-50, 50)))))
  expect_lt(sd(f$simulate(-9, seed = test_seed())), 1e-12)
})

test_that("impossible bounds and transforms are refused", {
  own <- function(...) custom_model("x", function(theta) 0, ...)
  uniform <- function(u) u
  refused(own(dnorm, rnorm, prior_transform = uniform), "must be left out")
  refused(own(prior_transform = uniform, bounds = list(x = c(0, 1))), "`bounds` must be NULL")
  refused(own(prior_transform = uniform, gradient = uniform, prior_gradient = uniform),
          "`gradient` must be NULL")
  refused(own(), "`prior` must be given, or `log_prior` and `draw_prior`, or a `prior_transform`.")
  refused(own(prior_transform = 3), "`prior_transform` must be a function, not 3.")
  refused(own(dnorm, rnorm, bounds = c(0, 1)), "`bounds` must be a list of lower and upper")
  refused(own(dnorm, rnorm, bounds = list(y = c(0, 1))),
          "`bounds` must be named by parameters (`x`), not by `y`.")
  refused(own(dnorm, rnorm, bounds = list(x = c(1, 0))), "`bounds$x` must be two numbers")
  run <- function(model) evidence(model, method = laplace(), seed = test_seed(), progress = FALSE)
  refused(run(own(function(theta) dnorm(theta, log = TRUE), rnorm, bounds = list(x = c(0, Inf)))),
          "must return numbers inside `bounds`")
  refused(run(custom_model("x", function(theta) theta, prior_transform = function(u) c(u, u))),
          "`prior_transform` must return 1 number, one for each parameter")
  refused(run(custom_model("x", function(theta) theta, prior_transform = function(u) log(u - 2))),
          "`prior_transform` must return finite numbers")
})

# Priors as objects --------------------------------------------------------------------------------

test_that("`prior` is the density, the draws and the bounds that it names", {
  priors <- list(a = normal(1, 2), b = student_t(4, 0, 3), c = half_normal(2),
                 d = half_student(3, 2), e = inverse_gamma(3, 2), f = exponential(0.5),
                 g = cauchy(0, 1))
  own <- list(a = function(x) dnorm(x, 1, 2, log = TRUE),
              b = function(x) dt(x / 3, 4, log = TRUE) - log(3),
              c = function(x) log(2) + dnorm(x, 0, 2, log = TRUE),
              d = function(x) log(2) + dt(x / 2, 3, log = TRUE) - log(2),
              e = function(x) dgamma(1 / x, 3, 2, log = TRUE) - 2 * log(x),
              f = function(x) dexp(x, 0.5, log = TRUE), g = function(x) dcauchy(x, log = TRUE))
  positive <- names(priors) %in% c("c", "d", "e", "f")
  z <- rbind(0.3 * 1:7, -0.5, c(1.2, -2, 0.4, 3, 0, -1, 2))
  user <- z
  user[, positive] <- exp(z[, positive])
  truth <- rowSums(vapply(seq_along(own), function(j) own[[j]](user[, j]), numeric(3))) +
    rowSums(z[, positive])
  flat <- function(theta, ...) if (is.matrix(theta)) numeric(nrow(theta)) else 0
  for (vectorised in c(FALSE, TRUE)) {
    model <- custom_model(names(priors), flat, prior = priors, vectorised = vectorised)
    found <- model_functions(model, 1:3)
    expect_equal(apply(z, 1, found$log_prior), truth)
    slope <- function(j) (found$log_prior(z[3, ] + 1e-6 * (1:7 == j)) -
                            found$log_prior(z[3, ] - 1e-6 * (1:7 == j))) / 2e-6
    at <- if (vectorised) z[3, , drop = FALSE] else z[3, ]
    expect_equal(as.vector(model$prior_gradient(at)), vapply(1:7, slope, 0), tolerance = 1e-6)
    expect_match(capture.output(print(model)), "e ~ inverse_gamma(shape = 3, scale = 2)",
                 fixed = TRUE, all = FALSE)
  }
  set.seed(2)
  draws <- model$draw_prior(4000)
  for (j in which(positive))
    expect_gt(ks.test(exp(draws[, j]), function(q) vapply(q, function(one)
      integrate(function(x) exp(own[[j]](x)), 0, one)$value, 0))$p.value, 1e-4)
})

test_that("`prior` gives the evidence of the same prior written out, with and without gradients", {
  log_lik <- function(theta, data) dnorm(data, theta[["m"]], theta[["s"]], log = TRUE)
  y <- c(1.2, 0.4, 2.1, -0.8, 1.5, -0.3, 0.9, -1.7)
  truth <- log(integrate(function(m) vapply(m, function(m) integrate(function(s)
    vapply(s, function(s) exp(sum(dnorm(y, m, s, log = TRUE))) * dexp(s, 0.5) * dnorm(m, 0, 3), 0),
    0, Inf)$value, 0), -Inf, Inf)$value)
  gradient <- function(theta, data)
    c(sum(data - theta[["m"]]) / theta[["s"]]^2,
      sum((data - theta[["m"]])^2) / theta[["s"]]^3 - length(data) / theta[["s"]])
  for (g in list(NULL, gradient)) {
    model <- custom_model(c("m", "s"), log_lik, prior = list(normal(0, 3), s = exponential(0.5)),
                          gradient = g)
    for (method in list(sgais(), laplace(importance = 1000), nested(30))) {
      fit <- run(model, y, method)
      expect_lt(abs(fit$log_evidence - truth), 4 * fit$se, label = method$name)
      expect_null(fit$warnings)
    }
    expect_gt(min(posterior_draws(fit)[, "s"]), 0)
  }
})

test_that("a `prior` beside functions, of other parameters or of another package is refused", {
  of <- function(...) custom_model(c("m", "s"), function(theta, data) 0, ...)
  refused(of(prior = list(m = normal())), "must have a prior for each parameter")
  refused(of(prior = list(q = normal(), normal())), "must be named by parameters (`m`, `s`)")
  refused(of(prior = "normal"), "must be a prior or a list of priors")
  refused(of(prior = normal(), bounds = list(s = c(0, Inf))), "must be left out")
  refused(of(function(theta) 0, prior = normal()), "must be left out")
  refused(of(prior = normal(), prior_transform = qnorm), "must be left out")
  refused(of(), "`prior` must be given, or `log_prior`")
})

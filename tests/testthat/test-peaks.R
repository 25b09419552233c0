# laplace(), bic() and exact(): against plain R, closed forms, and each other where derivatives are
# and are not known.

run <- function(problem, method = laplace(), seed = 1, ...) {
  quiet_fit(problem$model, problem$data, method, seed = test_seed(seed), progress = FALSE, ...)
}
linear_names <- c("cars", "mtcars", "swiss", "longley", "airquality", "linear1000")
linear_posterior <- function(problem) {
  precision <- crossprod(problem$x) / problem$sigma^2 + diag(1 / problem$prior_sd^2)
  list(mean = drop(solve(precision, crossprod(problem$x, problem$y))) / problem$sigma^2,
       precision = precision)
}

# Laplace ------------------------------------------------------------------------------------------

#' Laplace's approximation at the peak that is found from `start`, without its copies
plain_peak <- function(f, start) {
  joint <- function(t) f$log_prior(t) + f$log_lik(t)
  slope <- function(t) f$log_prior_gradient(t) + f$gradient(t)
  at <- function(t, j, h) replace(t, j, t[[j]] + h)
  theta <- stats::optim(start, joint, slope, method = "BFGS",
                        control = list(fnscale = -1, maxit = 2000, reltol = 1e-15))$par
  curvature <- function(t) {
    h <- 1e-4
    -vapply(seq_along(t), function(j) unname(slope(at(t, j, h)) - slope(at(t, j, -h))) / (2 * h),
            numeric(length(t)))
  }
  for (newton in 1:3) theta <- theta + solve(curvature(theta), slope(theta))
  eigenvalues <- eigen((curvature(theta) + t(curvature(theta))) / 2, TRUE, TRUE)$values
  list(theta = theta, definite = min(eigenvalues) > 0,
       value = suppressWarnings(joint(theta) + length(theta) / 2 * LOG_2PI -
                                0.5 * sum(log(eigenvalues))))
}

#' The sum over the distinct peaks that some starts lead to, each with its copies
plain_laplace <- function(problem, starts = 20) {
  f <- model_functions(problem$model, problem$data)
  from <- f$draw_prior(starts, seed = test_seed(9))
  peaks <- Filter(function(p) p$definite,
                  lapply(seq_len(starts), function(i) plain_peak(f, from[i, ])))
  places <- f$relabel(peaks[[1]]$theta, do.call(rbind, lapply(peaks, `[[`, "theta")))
  mass <- vapply(peaks, `[[`, 0, "value")[!duplicated(round(places, 2))]
  list(value = log_sum_exp(mass) + f$log_symmetry, modes = sum(mass > max(mass) - 9))
}

test_that("laplace() is exact where the posterior is normal", {
  for (name in c("mean100", linear_names)) {
    problem <- truth_problem(name)
    fit <- run(problem)
    expect_lt(abs(fit$log_evidence - problem$log_evidence), 1e-6)
    expect_identical(fit$source, "laplace")
    expect_true(is.na(fit$se))
    expect_identical(fit$peaks$modes, 1)
    expect_null(fit$failed)
  }
})

test_that("laplace() gives the value of plain R", {
  names <- c("iris_petal", "mix2_galaxies", "softmax_tiny", "mix1_faithful", "mix2_faithful",
             "mix3_galaxies")
  for (name in fast_or_slow(names[1:2], names)) {
    problem <- truth_problem(name)
    plain <- plain_laplace(problem)
    fit <- run(problem)
    expect_lt(abs(fit$log_evidence - plain$value), 3e-4)
    expect_equal(fit$peaks$modes, plain$modes, info = name)
    expect_identical(fit$peaks$laplace, fit$log_evidence)
  }
})

test_that("at the reported peaks the slope is zero and the density is the reported one", {
  for (name in c("iris_petal", "mix2_faithful")) {
    problem <- truth_problem(name)
    fit <- run(problem)
    f <- model_functions(problem$model, problem$data)
    peak <- fit$peaks$parameters
    expect_equal(f$log_prior(peak) + f$log_lik(peak), fit$peaks$log_density)
    slope <- drop(f$log_prior_gradient(peak) + f$gradient(peak))
    curvature <- -(f$log_prior_hessian(peak) + f$hessian(peak))
    expect_lt(sum(slope * solve(curvature, slope)), 1e-6)
    near <- f$relabel(peak, fit$parameters)
    moments <- whitened_moments(t(near), list(mean = peak, precision = curvature))
    # draws of a mixture are normal in coordinates of its own, and only nearly so in these
    if (name == "mix2_faithful") expect_lt(max(abs(colMeans(moments))), 0.3)
    else expect_z(z_score(moments))
  }
})

test_that("a mixture's peak counts as often as its components can be numbered", {
  set.seed(test_seed())
  apart <- function(centres) list(model = gaussian_mixture(components = length(centres),
                                                           location = 0, rate = 1),
                                  data = rep(centres, each = 40) +
                                    stats::rnorm(40 * length(centres), 0, 0.3))
  for (centres in list(c(-3, 3), c(-5, 0, 5))) {
    problem <- apart(centres)
    fit <- run(problem)
    f <- model_functions(problem$model, problem$data)
    expect_lt(abs(fit$log_evidence - lfactorial(length(centres)) -
                  plain_peak(f, fit$peaks$parameters)$value), 1e-4)
    means <- sort(colMeans(fit$draws[, grepl("mean", colnames(fit$draws))]))
    expect_lt(max(abs(means - centres)), 0.2)
  }
  # a peak at which two components are alike is its own mirror image
  alike <- list(model = gaussian_mixture(components = 2, concentration = 20,
                                         location = 0, rate = 1), data = c(0, 0))
  f <- model_functions(alike$model, alike$data)
  fit <- run(alike)
  peak <- fit$peaks$parameters
  expect_lt(max(abs(f$to_user(peak)[1:2] - 0.5)), 1e-3)
  expect_lt(abs(fit$log_evidence - plain_peak(f, peak)$value), 1e-4)
})

test_that("importance sampling around the peaks is right, with the right standard error", {
  for (name in c("softmax_tiny", "iris_petal", "mix1_faithful", "mix2_galaxies"))
    expect_truth(truth_problem(name), laplace(importance = 400))
  for (name in c("softmax_tiny", "iris_petal", "mix1_faithful")) {
    seeds <- 1:60
    fits <- fits_of(truth_problem(name), laplace(importance = 400), seeds)
    value <- vapply(fits, `[[`, 0, "log_evidence")
    se <- vapply(fits, `[[`, 0, "se")
    expect_lt(abs(log(stats::sd(value) / sqrt(mean(se^2)))), 4.5 / sqrt(2 * length(fits)))
  }
  fit <- run(truth_problem("mix2_galaxies"), laplace(importance = 400))
  expect_identical(fit$source, "importance")
  expect_identical(dim(fit$draws), c(400L, 6L))
  expect_equal(sum(exp(fit$log_weights)), 1)
  expect_lt(abs(sum(exp(2 * fit$log_weights)) * 400 * fit$peaks$ess - 1), 1e-6)
  expect_equal(fit$peaks$laplace, run(truth_problem("mix2_galaxies"))$log_evidence,
               tolerance = 1e-6)
})

test_that("weighted draws around the peaks follow the posterior", {
  problem <- truth_problem("mtcars")
  posterior <- linear_posterior(problem)
  fits <- fits_of(problem, laplace(importance = 400), 1:30)
  moments <- t(vapply(fits, function(f) {
    colSums(exp(f$log_weights) * whitened_moments(t(f$draws), posterior))
  }, numeric(32)))
  expect_z(z_score(moments))
})

test_that("uneven weights give a warning", {
  fit <- run(truth_problem("mix3_dozen_2d"), laplace(importance = 400))
  expect_match(fit$failed, paste("The posterior is not close to normal around its modes: .*% of",
                                 "the draws\\. .*cannot be trusted"))
  expect_true(fit$failed %in% fit$warnings)
  expect_lt(fit$peaks$ess, 0.5)
  expect_null(run(truth_problem("mix3_dozen_2d"))$failed)
  # after a refit of the proposal these are even
  problem <- truth_problem("mix2_dozen")
  fit <- run(problem, laplace(importance = 400))
  expect_gt(fit$peaks$ess, 0.25)
  # so few draws miss a part for 4 of 150 seeds, and all these fits say that they failed
  if (is.null(fit$failed))
    expect_lt(abs(fit$log_evidence - problem$log_evidence), 4.5 * sqrt(fit$se^2 + problem$se^2))
  expect_null(run(problem)$failed)
  tail <- list(ess = 0.9, ideal = 1, pareto_k = 0.8, laplace = -1, thin = 0)
  expect_match(uneven_weights(tail, "one"), "heavy tail (Pareto k 0.80)", fixed = TRUE)
  expect_null(uneven_weights(replace(tail, "pareto_k", NA), "one"))
  no_mode <- replace(tail, c("ess", "pareto_k", "laplace"), c(0.5, NA, NA))
  expect_match(uneven_weights(no_mode, "one"), "no mode was found")
})

test_that("importance sampling alone has a right standard error also for uneven weights", {
  skew <- custom_model(
    c("a", "b", "c"),
    function(theta) rowSums(dnorm(theta, log = TRUE)) + pnorm(4 * theta[, 1], log.p = TRUE) +
      pnorm(4 * theta[, 2], log.p = TRUE) + 2 * log(2),
    function(theta) rowSums(dnorm(theta, 0, 3, log = TRUE)),
    function(n) matrix(rnorm(3 * n, 0, 3), n), vectorised = TRUE)
  # 2 phi(x) Phi(4 x) integrates to one against any even factor
  inner <- function(x) 2 * dnorm(x) * pnorm(4 * x) * dnorm(x, 0, 3)
  truth <- 2 * log(integrate(inner, -Inf, Inf, rel.tol = 1e-10)$value) + dnorm(0, 0, sqrt(10), TRUE)
  z <- vapply(fast_or_slow(1:8, 1:60), function(seed) {
    fit <- suppressWarnings(evidence(skew, method = laplace(importance = 400),
                                     seed = test_seed(seed)))
    if (is.null(fit$failed)) (fit$log_evidence - truth) / fit$se else 0
  }, 0)
  expect_lt(max(abs(z)), 4.5)
})

test_that("components of the proposal with few draws of weight give a warning", {
  corners <- custom_model(
    c("a", "b", "c"), modes = "several",
    function(theta) rowSums(log(dnorm(theta, 2, 0.3) + dnorm(theta, -2, 0.3))),
    function(theta) rowSums(dnorm(theta, 0, 3, log = TRUE)),
    function(n) matrix(rnorm(3 * n, 0, 3), n), vectorised = TRUE)
  few <- suppressWarnings(evidence(corners, method = laplace(importance = 24, starts = 60),
                                   seed = test_seed(1)))
  expect_equal(few$peaks$thin, 1)
  expect_match(few$warnings[["thin"]], "^100% of the importance-sampling estimate .* fewer than 5")
  many <- evidence(corners, method = laplace(importance = 400, starts = 60), seed = test_seed(1))
  expect_equal(many$peaks$thin, 0)
  expect_null(many$failed)
})

test_that("replicates are averaged", {
  fit <- run(truth_problem("iris_petal"), laplace(importance = 200), replicates = 5)
  expect_identical(fit$replicates$source, rep("importance", 5))
  expect_lt(abs(fit$log_evidence - log_sum_exp(fit$replicates$log_evidence) + log(5)), 1e-10)
  for (method in list(laplace(), bic(), exact()))
    expect_output(print(run(truth_problem("cars"), method, replicates = 2)))
})

# Without derivatives ------------------------------------------------------------------------------

#' A model that offers its densities alone, or gradients besides
bare <- function(problem, gradients = FALSE) {
  f <- model_functions(problem$model, problem$data)
  list(model = custom_model(
    make.unique(f$names), f$log_lik, f$log_prior, function(n) f$draw_prior(n), vectorised = TRUE,
    gradient = if (gradients) function(theta) matrix(f$gradient(theta), NROW(theta)),
    prior_gradient = if (gradients) function(theta) matrix(f$log_prior_gradient(theta), NROW(theta))
  ), data = NULL)
}

test_that("differences of gradients or densities give the result of second derivatives", {
  for (name in c("cars", "mtcars", "softmax_tiny", "iris_petal", "mix1_faithful")) {
    problem <- truth_problem(name)
    known <- run(problem)
    for (gradients in c(TRUE, FALSE)) {
      fit <- run(bare(problem, gradients))
      expect_lt(abs(fit$log_evidence - known$log_evidence), 1e-3)
      expect_lt(max(abs(fit$peaks$parameters - known$peaks$parameters)), 0.01)
    }
  }
  problem <- truth_problem("iris_petal")
  fit <- run(bare(problem), laplace(importance = 400))
  expect_lt(abs(fit$log_evidence - problem$log_evidence), 4 * fit$se)
})

# In each of d dimensions two normal densities at -1 and 1: 2^d peaks that are alike.
corners <- function(d) {
  parts <- function(x) list(dnorm(x, -1, 0.2), dnorm(x, 1, 0.2) + 1e-300)
  one <- sum(dnorm(c(-1, 1), 0, sqrt(1 + 0.2^2)))
  list(model = custom_model(
    paste0("x", seq_len(d)), function(x) rowSums(log(Reduce(`+`, parts(x)))),
    function(x) rowSums(dnorm(x, log = TRUE)), function(n) matrix(rnorm(n * d), n),
    vectorised = TRUE, modes = "several", gradient = function(x) {
      p <- parts(x)
      unname(((-1 - x) * p[[1]] + (1 - x) * p[[2]]) / 0.04 / Reduce(`+`, p))
    },
    prior_gradient = function(x) unname(-x)
  ), data = NULL, log_evidence = d * log(one))
}

test_that("climbs by differences continue until they agree", {
  for (seed in seq_len(fast_or_slow(1, 2))) {
    fit <- run(corners(4), laplace(importance = 400), seed)
    expect_identical(fit$peaks$modes, 16)
    expect_lt(abs(fit$log_evidence - corners(4)$log_evidence), 4 * fit$se)
    expect_null(fit$failed)
  }
  # and end where they do, with two modes after a thousand at most
  expect_lt(run(corners(1), laplace(importance = 400))$peaks$climbs, 1100)
})

test_that("modes that climbs have not found give a warning", {
  methods <- list(laplace(importance = 400), laplace())
  for (method in fast_or_slow(methods[1], methods))
    expect_match(run(corners(6), method)$failed, "there are probably more modes",
                 all = FALSE)
})

test_that("a posterior without a peak is an error", {
  flat <- custom_model("x", function(theta) 0, function(theta)
                         if (abs(theta) < 1) -log(2) else -Inf,
                       function(n) stats::runif(n, -1, 1))
  for (method in list(laplace(), laplace(importance = 100), bic()))
    refused(evidence(flat, method = method, seed = test_seed()),
            paste0("No posterior mode with positive definite curvature was found, so ",
                                                              method$name, "() gives no estimate."))
})

# Many rows ----------------------------------------------------------------------------------------

test_that("with many rows climbs begin on a random part of them", {
  problem <- simulated_linear(20000)
  sorted <- problem
  sorted$data <- problem$data[order(problem$data$y), ]
  for (each in list(problem, sorted)) {
    fit <- run(each)
    expect_lt(abs(fit$log_evidence - problem$log_evidence), 1e-6)
    expect_lt(sum(fit$work[c("likelihoods", "gradients")]), 30 * 20000)
  }
  classes <- simulated_softmax(20000, 3, 3)
  model <- softmax_regression(class ~ ., prior_sd = 1)
  mixed <- list(model = model, data = classes)
  sorted <- list(model = model, data = classes[order(classes$class), ])
  plain <- plain_laplace(mixed, 1)$value
  for (each in list(mixed, sorted)) expect_lt(abs(run(each)$log_evidence - plain), 1e-3)
})

# Schwarz ------------------------------------------------------------------------------------------

no_top <- "No maximum of the likelihood was found"

test_that("bic() is that of the textbooks where errors are known", {
  for (name in linear_names) {
    problem <- truth_problem(name)
    residual <- stats::lm.fit(problem$x, problem$y)$residuals
    top <- sum(stats::dnorm(residual, 0, problem$sigma, log = TRUE))
    fit <- run(problem, bic())
    expect_lt(abs(fit$log_evidence - top + 0.5 * ncol(problem$x) * log(length(problem$y))), 1e-5)
    expect_equal(fit$peaks$maximum, top, tolerance = 1e-7)
    expect_false(any(grepl(no_top, fit$warnings)))
    expect_match(fit$warnings, "ignores the prior", all = FALSE)
    expect_true(is.na(fit$se))
  }
  hundred <- truth_problem("mean100")
  expect_equal(run(hundred, bic())$log_evidence,
               sum(stats::dnorm(hundred$data, 2, log = TRUE)) - 0.5 * log(100))
})

test_that("bic() counts the coefficients of all classes but one", {
  top <- function(x, class, classes) {
    log_lik <- function(beta) {
      eta <- cbind(0, x %*% matrix(beta, ncol(x)))
      sum(eta[cbind(seq_along(class), class)]) - sum(log(rowSums(exp(eta))))
    }
    stats::optim(numeric(ncol(x) * (classes - 1)), log_lik, method = "BFGS",
                 control = list(fnscale = -1, maxit = 500, reltol = 1e-14))$value
  }
  simulated <- simulated_softmax(300, 2, 3)
  for (problem in list(truth_problem("softmax_tiny"), softmax_problem(class ~ ., simulated, NA, 0),
                       softmax_problem(class ~ ., simulated, NA, 0, prior_sd = 50))) {
    fit <- run(problem, bic())
    free <- ncol(problem$x) * (problem$classes - 1)
    expected <- top(problem$x, problem$class, problem$classes) -
      0.5 * free * log(length(problem$class))
    expect_lt(abs(fit$log_evidence - expected), 1e-4)
    expect_false(any(grepl(no_top, fit$warnings)))
  }
})

test_that("bic() of one component is that of normal numbers", {
  y <- scaled_faithful()
  sd_of <- function(x) sqrt(mean((x - mean(x))^2))
  top <- sum(vapply(1:2, function(j) sum(stats::dnorm(y[, j], mean(y[, j]), sd_of(y[, j]), TRUE)),
                    0))
  fit <- run(truth_problem("mix1_faithful"), bic())
  expect_lt(abs(fit$log_evidence - top + 2 * log(nrow(y))), 1e-4)
  expect_false(any(grepl(no_top, fit$warnings)))
  # away from the prior's peak
  one <- list(model = gaussian_mixture(components = 1,
                                       location = 0, rate = 1), data = c(10, 11, 13))
  top <- sum(stats::dnorm(one$data, mean(one$data), sqrt(14 / 9), TRUE))
  expect_lt(abs(run(one, bic())$log_evidence - top + log(3)), 1e-4)
})

test_that("a likelihood without a maximum gives a warning, and that at the mode is used", {
  separable <- data.frame(x = -3:3, y = factor(rep(c("a", "b"), c(4, 3))))
  for (problem in list(truth_problem("iris_petal"), truth_problem("mix2_faithful"),
                       list(model = softmax_regression(y ~ x, prior_sd = 30), data = separable),
                       list(model = gaussian_mixture(components = 1,
                                                     location = 0, rate = 1),
                               data = rep(0.3, 5)))) {
    fit <- run(problem, bic())
    expect_match(fit$warnings, no_top, all = FALSE)
    expect_equal(fit$peaks$maximum,
                 model_functions(problem$model, problem$data)$log_lik(fit$peaks$parameters))
  }
})

test_that("bic() counts each parameter of other models", {
  fit <- run(truth_problem("mix2_faithful"), bic())
  expect_equal(fit$log_evidence, fit$peaks$maximum - 0.5 * 9 * log(272))
  custom <- run(bare(truth_problem("cars")), bic())
  expect_equal(custom$log_evidence, custom$peaks$maximum) # one row, as far as is known
})

# Closed forms -------------------------------------------------------------------------------------

test_that("exact() gives the closed form", {
  for (name in c("mean100", linear_names, "mix1_faithful")) {
    problem <- truth_problem(name)
    fit <- run(problem, exact())
    expect_equal(fit$log_evidence, problem$log_evidence, tolerance = 1e-10)
    expect_identical(fit$se, 0)
    expect_identical(fit$source, "exact")
    expect_equal(fit$log_evidence, model_functions(problem$model, problem$data)$exact(),
                 tolerance = 1e-10)
    expect_null(fit$failed)
  }
  # other settings than the default, against the marginal in its other form, and data far from the
  # prior
  for (y in list(0.7, c(1, 2, 4), c(1e4, 1.1e4), rep(3, 4))) {
    model <- gaussian_mixture(components = 1, location = 0.5, mean_scale = 3, shape = 2, rate = 0.4)
    truth <- cluster_marginal(length(y), sum(y - 0.5), sum((y - 0.5)^2), 3, 2, 0.4)
    expect_equal(run(list(model = model, data = y), exact())$log_evidence, truth, tolerance = 1e-7)
  }
})

test_that("exact() refuses models without a closed form", {
  for (problem in list(truth_problem("softmax_tiny"), truth_problem("mix2_dozen"),
                       bare(truth_problem("cars"))))
    refused(run(problem, exact()), paste0(
      "exact() needs a model whose evidence has a closed form, such as gaussian_mean() or ",
      "linear_regression(); ", problem$model$name, "() has none."
    ))
  expect_error(model_functions(gaussian_mixture(components = 2,
                                                location = 0, rate = 1),
                               c(1, 2))$exact(), "closed form")
})

test_that("draws of exact() and laplace() follow the posterior where that is normal", {
  hundred <- truth_problem("mean100")
  mean_posterior <- list(mean = sum(hundred$data) / 101, precision = matrix(101))
  for (method in list(exact(), laplace())) {
    expect_z(z_score(whitened_moments(t(run(hundred, method)$draws), mean_posterior)))
    for (name in c("cars", "mtcars", "swiss")) {
      problem <- truth_problem(name)
      expect_z(z_score(whitened_moments(t(run(problem, method)$draws), linear_posterior(problem))))
    }
  }
})

# Settings -----------------------------------------------------------------------------------------

test_that("bad settings are refused before the run", {
  for (starts in list(0, 513, 1.5, NA, Inf, "many", 2:3))
    refused(laplace(starts), "`starts` must be a whole number between 1 and 512")
  for (importance in list(-1, 2.5, NA, Inf, NULL, "some", 1:2, 1e7))
    refused(laplace(importance = importance),
            "`importance` must be a whole number between 0 and 1000000")
  refused(laplace(importance = 1), "`importance` must be 0 or at least 2 draws, not 1.")
  expect_error(bic(1), "unused argument")
  expect_error(exact(1), "unused argument")
})

test_that("fits print which estimate is reported", {
  for (each in list(list(laplace(), "Laplace approximation, 1 mode, error unknown"),
                    list(exact(), "in closed form"),
                    list(laplace(importance = 100),
                         "importance sampling, 1 mode, 100 draws, [0-9]+%\\s+effective"),
                    list(bic(), "BIC, error unknown"))) {
    fit <- run(truth_problem("cars"), each[[1]])
    expect_output(print(fit), each[[2]])
    expect_output(print(summary(fit)), "Posterior, [0-9,]+ (weighted )?draws")
    expect_identical(nrow(fit$trace), 0L)
    expect_null(fit$audit)
  }
})

test_that("exact() fits of few rows make their draws when asked, with the same bits", {
  cars$z <- sin(seq_len(50))
  whole <- function(model, method = exact()) {
    method["quick"] <- list(NULL)
    quiet_fit(model, cars, method, seed = test_seed(1))
  }
  for (model in list(linear_regression(dist ~ speed + z), regression(dist ~ speed, scale = TRUE),
                     linear_regression(dist ~ speed, sigma = 15),
                     linear_regression(dist ~ speed, prior = jzs()))) {
    fit <- quiet_fit(model, cars, exact(), seed = test_seed(1))
    kept <- whole(model)
    expect_null(kept$redraw)
    expect_false(is.null(fit$redraw))
    for (part in DRAWN) {
      expect_identical(fit[[part]], kept[[part]])
      expect_identical(do.call(`$`, list(fit, part)), kept[[part]])
    }
    expect_identical(names(fit)[match(DRAWN, names(fit))], DRAWN)
    expect_identical(posterior_draws(fit), posterior_draws(kept))
    expect_identical(summary(fit)[-1], summary(kept)[-1])
    expect_null(unclass(summary(fit)$fit)$draws)
    expect_identical(coef(fit), coef(kept))
    expect_identical(predict(fit, cars, interval = 0.9, seed = 1),
                     predict(kept, cars, interval = 0.9, seed = 1))
    size <- function(x) length(serialize(x, NULL))
    expect_gt(size(kept) - size(fit), 4 * 8 * 1000)
  }
  # rows that need more memory than the draws are not kept
  many <- data.frame(x = rnorm(2000), y = rnorm(2000))
  expect_null(evidence(linear_regression(y ~ x, sigma = 1), many, exact(), seed = 1)$redraw)
  expect_null(evidence(linear_regression(dist ~ speed), cars, exact(), replicates = 2)$redraw)
})

test_that("exact() fits give any number of draws, and others a message if they have fewer", {
  fit <- evidence(linear_regression(dist ~ speed, sigma = 15, prior_sd = 10), cars, exact(),
                  seed = test_seed(1))
  expect_no_message(many <- posterior_draws(fit, FALSE, 20000))
  expect_identical(dim(unique(many)), c(20000L, 2L))
  expect_identical(posterior_draws(fit, FALSE, 20000), many)
  # the posterior of coefficients with known noise is normal
  x <- cbind(1, cars$speed)
  cover <- solve(crossprod(x) / 15^2 + diag(2) / 10^2)
  mean <- drop(cover %*% crossprod(x, cars$dist)) / 15^2
  for (j in 1:2) {
    expect_lt(abs(mean(many[, j]) - mean[j]), 5 * sqrt(cover[j, j] / 20000))
    expect_gt(ks.test(many[, j], "pnorm", mean[j], sqrt(cover[j, j]))$p.value, 1e-4)
  }
  unknown <- evidence(linear_regression(dist ~ speed), cars, exact(), seed = test_seed(1))
  expect_identical(nrow(unique(posterior_draws(unknown, FALSE, 3000))), 3000L)
  twice <- evidence(linear_regression(dist ~ speed), cars, exact(), seed = test_seed(1),
                    replicates = 2)
  expect_message(drawn <- posterior_draws(twice, FALSE, 5000), "repeats 2,000 distinct draws")
  expect_identical(nrow(unique(drawn)), 2000L)
})

test_that("a saved exact() fit has its draws in a new session", {
  fit <- evidence(linear_regression(dist ~ speed), cars, exact(), seed = test_seed(1))
  file <- tempfile(fileext = ".rds")
  on.exit(unlink(file))
  saveRDS(fit, file)
  code <- sprintf("cat(format(sum(logevidence::posterior_draws(readRDS('%s'))), digits = 15))",
                  file)
  out <- system2(file.path(R.home("bin"), "Rscript"), c("-e", shQuote(code)), stdout = TRUE)
  expect_identical(out, format(sum(fit$draws), digits = 15))
})

test_that("a stream whose sample shows a second mode far away gives a warning", {
  # a and -a explain the rows equally well; sums over all rows are known around one of them
  data <- with_own_seed(test_seed(51), {
    x <- stats::rnorm(12000)
    data.frame(x, y = 0.35^2 * x + stats::rnorm(12000))
  })
  model <- density(~ dnorm(y, a^2 * x, 1, log = TRUE), a = normal(0.1, 0.5))
  whole <- quiet_fit(model, data, laplace(importance = 1000), seed = 1)
  for (seed in seq_len(fast_or_slow(2, 30))) for (rewind in c(TRUE, FALSE)) {
    fit <- quiet_fit(model, in_blocks(data, 500, rewind), seed = test_seed(seed), keep = 1000)
    error <- abs(fit$log_evidence - whole$log_evidence)
    expect_true(length(fit$failed) > 0 || error < 4.5 * sqrt(fit$se^2 + whole$se^2))
    expect_true("modes_apart" %in% names(fit$warnings))
  }
  # one mode: nothing to say
  line <- linear_regression(y ~ x, sigma = 1, prior_sd = 1)
  fit <- quiet_fit(line, in_blocks(data, 500), seed = 1, keep = 1000)
  expect_length(fit$warnings, 0)
})

test_that("posterior_modes() lists the modes that a fit has found", {
  model <- density(~ dnorm(y, m^2, 0.5, log = TRUE), m = ~ 1)
  rows <- data.frame(y = c(3.8, 4.1, 4.3))
  for (method in list(sgais(), laplace(), laplace(importance = 500))) {
    fit <- evidence(model, rows, method, seed = test_seed())
    found <- posterior_modes(fit)
    expect_named(found, c("share", "log_density", "climbs", "m_(Intercept)"))
    expect_equal(sort(abs(found[[4]])), rep(2.015, 2), tolerance = 1e-3)
    expect_lt(prod(found[[4]]), 0)
    expect_equal(found$share, c(0.5, 0.5), tolerance = 0.01)
    expect_false(is.unsorted(rev(found$share)))
    f <- model_functions(model, rows)
    at <- cbind(found[[4]])
    expect_equal(found$log_density, f$log_lik(at) + f$log_prior(at), tolerance = 1e-6)
    expect_true(all(found$climbs > 0))
  }
  # the heaviest of unequal ones first, on the user's scale
  fit <- evidence(at_unit_one(linear_regression(dist ~ speed)), cars, seed = test_seed())
  expect_equal(unlist(posterior_modes(fit)[c("speed", "sigma")]), c(speed = 3.56, sigma = 14.8),
               tolerance = 0.01)
  for (method in list(nested(50), exact(), ais(20)))
    refused(posterior_modes(muffled(evidence(linear_regression(dist ~ speed), cars, method))),
            "posterior_modes() has nothing to return")
})

# Parameters with few values, drawn by Gibbs steps between the moves of kernels: evidences and
# posterior probabilities against sums over all values, chains, saved runs, and refusals.

# Problems whose real parameters have a closed form or a quadrature given the others ---------------

# Log evidence and the probability of an event from those of all values of the discrete parameters.
summed <- function(log_evidences, event) {
  total <- log_sum_exp(log_evidences)
  list(log_evidence = total, probability = sum(exp(log_evidences - total) * event))
}

#' Two normal components with a label for each of eight rows; the event: rows 1 and 8 together
labelled_rows <- function() {
  y <- c(-2.1, -0.9, -1.4, 0.3, 0.5, 1.2, 0.8, 2.6)
  names <- c("a", "b", paste0("z", 1:8))
  model <- custom_model(names, function(theta, data) {
    means <- theta[, 3:10] * theta[, "b"] + (1 - theta[, 3:10]) * theta[, "a"]
    rowSums(dnorm(means, rep(data, each = nrow(theta)), log = TRUE))
  }, prior = list(normal(0, 3)), gibbs = stats::setNames(rep(list(0:1), 8), names[-(1:2)]),
  vectorised = TRUE, modes = "several")
  labels <- as.matrix(expand.grid(rep(list(0:1), 8)))
  part <- function(y) if (length(y)) mean_problem(y, 1, 3)$log_evidence else 0
  each <- apply(labels, 1, function(z) part(y[z == 0]) + part(y[z == 1])) - 8 * log(2)
  c(list(model = model, data = y, event = function(d) d[, "z1"] == d[, "z8"]),
    summed(each, labels[, 1] == labels[, 8]))
}

#' A regression whose covariates may be left out, of which two are alike; the event: the first is in
selection <- function(gradients = TRUE) {
  rows <- with_own_seed(test_seed(5), {
    x <- rnorm(25)
    data.frame(u = x, v = x + 0.4 * rnorm(25), y = 0.3 + 0.5 * x + rnorm(25))
  })
  columns <- function(data) cbind(1, data$u, data$v)
  used <- function(theta) cbind(theta[, "b0"], theta[, "g1"] * theta[, "b1"],
                                theta[, "g2"] * theta[, "b2"])
  residuals <- function(theta, data) t(data$y - columns(data) %*% t(used(theta)))
  model <- custom_model(
    c("g1", "b0", "b1", "g2", "b2"),
    function(theta, data) dnorm(residuals(theta, data), log = TRUE),
    prior = list(normal(0, 1), g1 = c(0.7, 0.3), g2 = c(0.7, 0.3)),
    gradient = if (gradients) function(theta, data)
      residuals(theta, data) %*% columns(data) * cbind(1, theta[, c("g1", "g2"), drop = FALSE]),
    gibbs = list(g1 = 0:1, g2 = 0:1), vectorised = TRUE)
  chosen <- as.matrix(expand.grid(0:1, 0:1))
  each <- apply(chosen, 1, function(g)
    linear_truth(columns(rows)[, c(TRUE, g == 1), drop = FALSE], rows$y, 1, 1) +
      sum(log(ifelse(g == 1, 0.3, 0.7))))
  c(list(model = model, data = rows, event = function(d) d[, "g1"] == 1),
    summed(each, chosen[, 1] == 1))
}

#' Counts whose rate changes after row k; the event: k is at most 12
changed_counts <- function() {
  y <- c(2, 1, 3, 0, 2, 2, 1, 4, 2, 1, 1, 3, 4, 6, 3, 5, 7, 4, 5, 4)
  n <- length(y)
  model <- custom_model(c("before", "after", "k"), function(theta, data) {
    late <- outer(theta[, "k"], seq_len(n), `<`)
    rate <- ifelse(late, theta[, "after"], theta[, "before"])
    rowSums(matrix(dpois(rep(data, each = nrow(theta)), rate, log = TRUE), nrow(theta)))
  }, prior = list(exponential(0.3)), gibbs = list(k = 1:19), vectorised = TRUE)
  # a gamma prior is conjugate to counts
  part <- function(y) log(0.3) + lgamma(1 + sum(y)) - (1 + sum(y)) * log(0.3 + length(y)) -
    sum(lgamma(y + 1))
  each <- vapply(1:19, function(k) part(y[1:k]) + part(y[-(1:k)]), 0) - log(19)
  c(list(model = model, data = y, event = function(d) d[, "k"] <= 12), summed(each, 1:19 <= 12))
}

#' All parameters discrete: a probability among nine, with any prior
nine_shares <- function() {
  prior <- (1:9) / 45
  model <- custom_model("p", function(theta, data) dbinom(data, 10, theta[["p"]], log = TRUE),
                        prior = list(p = prior), gibbs = list(p = (1:9) / 10))
  each <- log(prior) + vapply((1:9) / 10, function(p) sum(dbinom(c(3, 6), 10, p, log = TRUE)), 0)
  c(list(model = model, data = c(3, 6), event = function(d) d[, "p"] > 0.5),
    summed(each, (1:9) / 10 > 0.5))
}

#' Evidences, their stated errors, and probabilities of the event, over many seeds
expect_sums <- function(problem, method, seeds, label) {
  fits <- lapply(test_seed(seq_len(seeds)), function(seed)
    quiet_fit(problem$model, problem$data, method, seed = seed, progress = FALSE))
  error <- vapply(fits, function(f) f$log_evidence, 0) - problem$log_evidence
  se <- vapply(fits, function(f) f$se, 0)
  share <- vapply(fits, function(f) sum(exp(f$log_weights) * problem$event(f$draws)), 0)
  expect_lt(abs(mean(error)), 4 * sqrt(mean(se^2) / seeds) + 0.01, label = paste("error of", label))
  expect_lt(max(abs(error / se)), 4.2, label = paste("largest z of", label))
  # a chi-squared variable, of which 1 in 100,000 is larger
  expect_lt(mean((error / se)^2), stats::qchisq(1 - 1e-5, seeds) / seeds,
            label = paste("mean squared z of", label))
  expect_gt(mean((error / se)^2), stats::qchisq(1e-5, seeds) / seeds,
            label = paste("mean squared z of", label))
  # the spread of a few numbers says little
  if (seeds >= 8) expect_z(z_score(share, problem$probability), 4.5)
  else expect_lt(abs(mean(share) - problem$probability), 0.15, label = label)
}

test_that("evidences and probabilities are those of sums over all values", {
  seeds <- fast_or_slow(2, 40)
  particles <- fast_or_slow(150, 500)
  for (make in list(labelled_rows, selection, changed_counts, nine_shares))
    expect_sums(make(), smc(particles = particles), seeds, deparse1(body(make)[[2]]))
  expect_sums(selection(), ais(particles), seeds, "ais()")
})

test_that("each kernel leaves discrete parameters to Gibbs steps", {
  problem <- selection(gradients = FALSE)
  for (kernel in list(slice(), rwm(), mala(), hmc(5))[fast_or_slow(1:2, 1:4)])
    expect_sums(problem, smc(particles = 200, kernel = kernel), fast_or_slow(2, 40), kernel$name)
  for (kernel in list(baoab(0.2), sghmc(), sgld())) {
    path <- kernel_path(problem$model, problem$data, kernel, 60, points = 3, tune = 40,
                        seed = test_seed())
    expect_setequal(unique(path$g1), 0:1)
    expect_gt(length(unique(path$b1)), 10)
  }
  for (kernel in list(baoab(), sghmc(), sgld()))
    refused(evidence(problem$model, problem$data, smc(kernel = kernel), seed = 1),
            "`kernel` must be hmc(), mala(), rwm() or slice()")
  for (mass in c("identity", "diagonal", "dense"))
    expect_lt(abs(quiet_fit(problem$model, problem$data, smc(kernel = hmc(mass = mass)),
                            seed = test_seed(3))$log_evidence - problem$log_evidence), 0.4)
})

test_that("chunks of rows, power posteriors and draws from the prior are right with Gibbs steps", {
  problem <- selection()
  methods <- list(smc("data", particles = 300), power_posterior(run = smc(particles = 300)),
                  likelihood_weighting(3000))
  for (method in methods)
    expect_sums(problem, method, fast_or_slow(1, 40), method$name)
})

# Chains and joint law -----------------------------------------------------------------------------

test_that("chains of moves and Gibbs steps draw from the posterior", {
  for (make in list(selection, changed_counts)[fast_or_slow(1, 1:2)]) {
    problem <- make()
    for (kernel in list(hmc(), rwm(), slice(), mala())[fast_or_slow(1:2, 1:4)]) {
      path <- kernel_path(problem$model, problem$data, kernel, fast_or_slow(100, 400),
                          points = 200, tune = 40, seed = test_seed(6))
      path <- as.data.frame(path)[path$step > 40, ]
      share <- tapply(problem$event(as.matrix(path)), path$point, mean)
      z <- z_score(share, problem$probability)
      expect_lt(abs(z), 4.5, label = paste("z of chains by", kernel$name))
    }
  }
})

# The noise depends on a discrete parameter, and so do data and both others.
joint_model <- function(wrong = FALSE) custom_model(
  c("z", "m", "k"), function(theta, data)
    matrix(dnorm(rep(data, each = nrow(theta)), theta[, "m"] + (theta[, "k"] == 3),
                 1 + theta[, "z"], log = TRUE), nrow(theta)),
  prior = list(m = normal(0, 1), z = c(0.2, 0.5, 0.3)), gibbs = list(z = 0:2, k = c(1, 3)),
  simulate = function(theta, data)
    rnorm(length(data), theta[["m"]] + (theta[["k"]] == 3), 1 + theta[["z"]] * (1 + wrong)),
  vectorised = TRUE)

test_that("parameters and data drawn in turn have the distribution of forward draws", {
  skip_unless_slow()
  rows <- c(0.5, -1, 2)
  joint <- function(model, kernel) {
    check <- check_model(model, rows, seed = test_seed(), geweke = TRUE, kernel = kernel)
    check$holds[check$check == "joint"]
  }
  for (kernel in list(slice(), hmc())) expect_true(joint(joint_model(), kernel))
  expect_false(joint(joint_model(wrong = TRUE), slice()))
})

test_that("bounds of bidirectional Monte Carlo enclose the evidence of simulated data", {
  found <- bdmc(joint_model(), n = 5, method = ais(20, sigmoidal(60)), chains = 8, budgets = 1,
                seed = test_seed(2))
  y <- found$data
  each <- function(z, k) log(c(0.2, 0.5, 0.3)[z + 1] / 2) +
    mean_problem((y - (k == 3)) / (1 + z), 1, 1 / (1 + z))$log_evidence - length(y) * log(1 + z)
  truth <- log_sum_exp(mapply(each, rep(0:2, 2), rep(c(1, 3), each = 3)))
  last <- found$bounds[nrow(found$bounds), ]
  expect_lt(last$lower_low, truth)
  expect_gt(last$upper_high, truth)
  expect_lt(last$gap, 1)
})

# The same bits ------------------------------------------------------------------------------------

test_that("threads, and saving and resuming, change no bit", {
  problem <- selection()
  for (method in list(smc(particles = 40), ais(20, kernel = slice()))) {
    whole <- quiet_fit(problem$model, problem$data, method, seed = test_seed(4))
    expect_same(quiet_fit(problem$model, problem$data, method, seed = test_seed(4), threads = 2),
                whole)
    fit <- quiet_fit(problem$model, problem$data, method, seed = test_seed(4), time_limit = 1e-9)
    stops <- 0
    while (inherits(fit, "incomplete_evidence")) {
      stops <- stops + 1
      limit <- if (stops < 4) 1e-9
      fit <- muffled(resume(unserialize(serialize(fit, NULL)), time_limit = limit))
    }
    # a slice of work is 50 ms, in which a fast machine does a good part of the run
    expect_gt(stops, 0)
    expect_same(fit, whole)
  }
})

# What users give ----------------------------------------------------------------------------------

test_that("positive parameters, bounds and places of parameters do not matter", {
  y <- c(1.2, 0.4, 2.1, -0.3)
  method <- smc(particles = fast_or_slow(200, 500))
  # s is sqrt(2) or 2, m has a prior of real numbers, t is positive
  residuals <- function(theta, data) t(outer(data, theta[, "m"], `-`))
  log_lik <- function(theta, data)
    matrix(dnorm(residuals(theta, data), 0, theta[, "s"] * theta[, "t"], TRUE), nrow(theta))
  slope <- function(theta, data) {
    noise <- theta[, "s"] * theta[, "t"]
    z <- residuals(theta, data) / noise
    cbind(m = rowSums(z) / noise, t = rowSums(z^2 - 1) / theta[, "t"], deparse.level = 0)
  }
  gibbs <- list(s = c(sqrt(2), 2))
  prior <- list(m = normal(0, 2), t = exponential(1))
  marginal <- function(s) integrate(Vectorize(function(t)
    exp(mean_problem(y / (s * t), 1, 2 / (s * t))$log_evidence) / (s * t)^4 * dexp(t)),
    0, Inf, rel.tol = 1e-8)$value
  problem <- list(data = y, event = function(d) d[, "s"] == 2,
                  log_evidence = log(mean(c(marginal(sqrt(2)), marginal(2)))),
                  probability = marginal(2) / (marginal(2) + marginal(sqrt(2))))
  models <- list(
    custom_model(c("m", "s", "t"), log_lik, prior = prior, gibbs = gibbs, vectorised = TRUE),
    custom_model(c("s", "m", "t"), log_lik, prior = prior, gibbs = gibbs, gradient = slope,
                 vectorised = TRUE),
    custom_model(c("m", "t", "s"), log_lik, gibbs = gibbs, bounds = list(t = c(0, Inf)),
                 log_prior = function(theta)
                   dnorm(theta[, "m"], 0, 2, TRUE) - theta[, "t"] - log(2),
                 draw_prior = function(n)
                   cbind(rnorm(n, 0, 2), rexp(n), sample(gibbs$s, n, TRUE)),
                 gradient = slope, vectorised = TRUE,
                 prior_gradient = function(theta) cbind(-theta[, "m"] / 4, -1))
  )
  for (model in models) {
    expect_sums(c(list(model = model), problem), method, fast_or_slow(2, 40),
                paste(model$parameters, collapse = " "))
    check <- check_model(model, y, seed = test_seed(1))
    expect_true(all(check$holds, na.rm = TRUE), info = printed(check))
  }
})

simple <- function(...)
  custom_model(c("z", "x"), function(theta, data) t(outer(data, theta[, "x"], dnorm, log = TRUE)),
               ..., vectorised = TRUE)

test_that("check_model() finds wrong priors of discrete parameters", {
  wrong <- simple(function(theta) dnorm(theta[, "x"], log = TRUE),
                  function(n) cbind(sample(0:2, n, TRUE), rnorm(n)), gibbs = list(z = 0:2))
  fit <- quiet_fit(wrong, 1.2, smc(particles = 50), seed = test_seed())
  expect_true("prior_apart" %in% names(fit$warnings))
  check <- check_model(wrong, 1.2, seed = test_seed())
  expect_false(check$holds[check$check == "prior constant"])
  skewed <- simple(function(theta) dnorm(theta[, "x"], log = TRUE) - log(2),
                   function(n) cbind(rbinom(n, 1, 0.9), rnorm(n)), gibbs = list(z = 0:1))
  check <- check_model(skewed, 1.2, seed = test_seed())
  expect_false(check$holds[check$check == "prior draws"])
  off <- simple(function(theta) 0 * theta[, 1], function(n) matrix(runif(2 * n), n),
                gibbs = list(z = 0:1))
  refused(evidence(off, 1.2, seed = 1), "one of the values in `gibbs` for `z`")
})

test_that("the default is smc(), and methods without Gibbs steps are refused before the run", {
  model <- simple(prior = list(normal(0, 1)), gibbs = list(z = 0:1))
  fit <- quiet_fit(model, c(1.2, 0.3), seed = test_seed())
  expect_identical(fit$method$name, "smc")
  # no check climbs to modes
  expect_identical(fit$verdict$entry, "particles")
  fits <- quiet_fit(list(model, model), c(1.2, 0.3), seed = test_seed())
  expect_identical(attr(fits, "fits")[[1]]$method$name, "smc")
  both <- muffled(crosscheck(model, c(1.2, 0.3), seed = test_seed()))
  expect_false(any(nzchar(both$error)))
  for (name in constructors_of("evidence_method")) {
    method <- function_named(name)()
    if (has_trait(method, "discrete")) next
    error <- expect_error(evidence(model, c(1.2, 0.3), method, seed = 1),
                          class = "logevidence_error")
    expect_match(conditionMessage(error), "`method` must be smc\\(\\)|needs a mixture")
  }
})

test_that("wrong values, priors and functions of discrete parameters are refused in a sentence", {
  given <- function(...) simple(prior = list(normal(0, 1)), ...)
  refused(given(gibbs = list(w = 0:1)), "`gibbs` must be named by parameters (`z`, `x`)")
  refused(given(gibbs = 0:1), "`gibbs` must be a list of values by parameter")
  refused(given(gibbs = list(z = 0:1, z = 0:1)), "`gibbs` must be a list of values by parameter")
  for (values in list(1, c(1, 1), c(0, NA), "a", 0:1000, c(0, Inf), NULL))
    refused(given(gibbs = list(z = values)), "two to 1,000 different numbers")
  refused(simple(prior = list(x = normal(0, 1), z = c(0.5, 0.6)), gibbs = list(z = 0:1)),
          "`prior$z` must be 2 positive numbers with the sum 1")
  refused(simple(prior = list(x = normal(0, 1), z = normal(0, 1)), gibbs = list(z = 0:1)),
          "`prior$z` must be 2 positive numbers with the sum 1")
  refused(simple(prior = list(z = c(0.5, 0.5)), gibbs = list(z = 0:1)), "not an empty list")
  refused(custom_model(c("z", "x", "y"), function(theta, data) 0, gibbs = list(z = 0:1),
                       prior = list(z = c(0.5, 0.5), x = normal(0, 1))), "not none for `y`")
  refused(simple(prior_transform = identity, gibbs = list(z = 0:1)),
          "`prior_transform` must be NULL if there is `gibbs`")
  refused(simple(function(theta) 0, function(n) 0, bounds = list(z = c(0, 1)),
                 gibbs = list(z = 0:1)), "`bounds` must leave out `z`")
  three <- given(gibbs = list(z = 0:1), gradient = function(theta, data) 0 * theta)
  refused(evidence(three, 1, seed = 1), "`gradient` must return a matrix of 500 x 1")
  plain <- custom_model(c("z", "x"), function(theta, data) dnorm(data, theta[["x"]], log = TRUE),
                        prior = list(normal(0, 1)), gibbs = list(z = 0:1),
                        gradient = function(theta, data) c(0, 0))
  refused(evidence(plain, 1, seed = 1), "1 numbers, one for each parameter not in `gibbs`")
})

test_that("fits print the prior, and models which parameters are drawn by Gibbs steps", {
  problem <- selection()
  expect_match(said(problem$model), "gibbs: 2 parameters of 2 values")
  fit <- quiet_fit(problem$model, problem$data, smc(particles = 50), seed = test_seed())
  expect_match(said(prior_summary(fit)), "g1 ~ probabilities 0.7, 0.3 of 0, 1")
  expect_lt(abs(coef(fit)[["g1"]] - problem$probability), 0.3)
})

# Models in C --------------------------------------------------------------------------------------

# Rows are normal around the sum of a normal number and one of three values.
compiler_works <- compile_model(
  system.file("examples", "normal_mean.c", package = "logevidence"), "discrete_mean",
  more = c(
    'static const double shifts[] = {-1, 0, 2};',
    'static size_t two(const void *self) { (void)self; return 2; }',
    'static size_t discrete(const void *self, size_t j, const double **values)',
    '{ (void)self; *values = shifts; return j == 0 ? 3 : 0; }',
    'static void prior2(const void *self, size_t m, const double *theta, double *value)',
    '{ (void)self;',
    '  for (size_t i = 0; i < m; i++) value[i] = log_normal(theta[2 * i + 1]) - log(3.0); }',
    'static void prior_grad2(const void *self, size_t m, const double *theta, double *grad)',
    '{ (void)self;',
    '  for (size_t i = 0; i < m; i++) grad[2 * i] = 0, grad[2 * i + 1] = -theta[2 * i + 1]; }',
    'static void draw2(const void *self, const gsl_rng *rng, double *theta)',
    '{ (void)self; theta[0] = shifts[(int)(3 * gsl_rng_uniform(rng))];',
    '  theta[1] = draw_normal(rng); }',
    'static le_status lik2(const void *self, size_t m, const double *theta, const le_rows *rows,',
    '                      double *value, double *scratch)',
    '{ for (size_t i = 0; i < m; i++) { const double sum = theta[2 * i] + theta[2 * i + 1];',
    '    log_lik(self, 1, &sum, rows, value + i, scratch); } return LE_OK; }',
    'static le_status each2(const void *self, size_t m, const double *theta, const le_rows *rows,',
    '                       double *value, double *scratch)',
    '{ for (size_t i = 0; i < m; i++) { const double sum = theta[2 * i] + theta[2 * i + 1];',
    '    log_lik_each(self, 1, &sum, rows, value + i * rows->n, scratch); } return LE_OK; }',
    'static le_status grad2(const void *self, size_t m, const double *theta, const le_rows *rows,',
    '                       double *value, double *grad, double *scratch)',
    '{ for (size_t i = 0; i < m; i++) { const double sum = theta[2 * i] + theta[2 * i + 1];',
    '    log_lik_grad(self, 1, &sum, rows, value + i, grad + 2 * i + 1, scratch); }',
    '  return LE_OK; }',
    'const le_model_ops *discrete_mean_table(void)',
    '{ static le_model_ops t; t = ops; t.dim = two; t.discrete = discrete; t.log_prior = prior2;',
    '  t.log_prior_grad = prior_grad2; t.draw_prior = draw2; t.log_lik = lik2;',
    '  t.log_lik_each = each2; t.log_lik_grad = grad2; t.simulate = NULL; return &t; }'
  )
)

test_that("models in C can have discrete parameters, with any number of threads", {
  needs_compiler(compiler_works)
  y <- with_own_seed(test_seed(), rnorm(300, 1.4, 4))
  model <- compiled_model("discrete_mean_table", c("shift", "mean"), sigma = 4,
                          PACKAGE = "discrete_mean")
  each <- vapply(c(-1, 0, 2), function(s) mean_problem(y - s, 4, 1)$log_evidence, 0) - log(3)
  problem <- c(list(model = model, data = y, event = function(d) d[, "shift"] == 2),
               summed(each, c(FALSE, FALSE, TRUE)))
  for (method in list(smc(particles = 300), smc("data", particles = 300), ais()))
    expect_sums(problem, method, fast_or_slow(2, 40), method$name)
  expect_same(quiet_fit(model, y, threads = 2, seed = test_seed()),
              quiet_fit(model, y, smc(), seed = test_seed()))
  refused(evidence(model, y, sgais(), seed = 1), "parameters with few values, as `shift` has")
  check <- check_model(model, y, seed = test_seed())
  expect_true(all(check$holds, na.rm = TRUE), info = printed(check))
  stream <- muffled(evidence(model, crossing_source(data.frame(y = y), "once"),
                             smc("data", particles = 300), seed = test_seed()))
  expect_lt(abs(stream$log_evidence - problem$log_evidence), 5 * stream$se)
})

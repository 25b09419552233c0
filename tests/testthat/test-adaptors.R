# Models made from objects of other packages (TMB, rstan), the priors and prior draws that they use,
# and gradients by differences.

fit_of <- function(model, data = NULL, method = sgais(), seed = 1)
  quiet_fit(model, data, method, seed = test_seed(seed), progress = FALSE)

# Gradients by differences ------------------------------------------------------------------------

#' A Poisson regression as a custom model, with gradients or without
counts_model <- function(gradients) {
  x <- function(data) as.matrix(data[-1])
  mean_of <- function(theta, data) exp(theta %*% t(x(data)))
  custom_model(
    c("a", "b", "c"),
    function(theta, data) t(dpois(data$y, t(mean_of(theta, data)), log = TRUE)),
    function(theta) rowSums(dnorm(theta, 0, 0.7, log = TRUE)),
    function(n) matrix(rnorm(3 * n, 0, 0.7), n),
    gradient = if (gradients)
      function(theta, data) t(data$y - t(mean_of(theta, data))) %*% x(data),
    prior_gradient = if (gradients) function(theta) -theta / 0.49,
    vectorised = TRUE
  )
}
counts <- with_own_seed(test_seed(7), {
  x <- cbind(1, matrix(rnorm(400), 200))
  data.frame(y = rpois(200, exp(drop(x %*% c(0.5, 0.3, -0.4)))), x)
})

test_that("gradients by differences equal exact gradients, for many points and for one", {
  exact <- model_functions(counts_model(TRUE), counts)
  by_differences <- model_functions(counts_model(FALSE), counts)
  points <- exact$draw_prior(30, seed = test_seed(1))
  for (theta in list(points, points[1, ])) {
    size <- max(abs(exact$gradient(theta)))
    expect_lt(max(abs(exact$gradient(theta) - by_differences$gradient(theta))), 1e-6 * size)
    expect_equal(by_differences$log_prior_gradient(theta), exact$log_prior_gradient(theta),
                 tolerance = 1e-7)
  }
  expect_true(all(check_model(counts_model(FALSE), counts, seed = test_seed())$holds, na.rm = TRUE))
})

test_that("with many rows differences are taken for a few coordinates at a time", {
  few <- local_calls <- 0
  model <- custom_model(
    c("a", "b", "c"),
    function(theta, data) {
      local_calls <<- local_calls + 1
      few <<- max(few, nrow(theta) * length(data))
      -outer(rowSums(theta^2), data)
    },
    function(theta) rowSums(dnorm(theta, log = TRUE)), function(n) matrix(rnorm(3 * n), n),
    vectorised = TRUE
  )
  ask <- encode(model, rep(1, 2e6))$args$answer
  expect_lte(few, DIFFERENCES_AT_ONCE)
  few <- local_calls <- 0
  theta <- matrix(1:6 / 10, 3)
  slope <- ask("gradient", theta, as.double(seq_len(2e6)))
  expect_equal(slope, -2 * c(theta) * 2e6, tolerance = 1e-6)
  expect_lte(few, DIFFERENCES_AT_ONCE)
  expect_identical(local_calls, 6)
})

test_that("the default method and its check need no gradient of a custom model", {
  truth <- evidence(regression(y ~ . - 1, family = "poisson", prior_sd = 0.7), counts,
                    laplace(importance = 20000), seed = test_seed())$log_evidence
  for (seed in fast_or_slow(3, 1:3)) {
    fit <- fit_of(counts_model(FALSE), counts, seed = seed)
    expect_identical(fit$source, "audit")
    expect_null(fit$failed)
    expect_lt(fit$se, 0.02)
    expect_lt(abs(fit$log_evidence - truth), 4 * fit$se)
  }
  expect_equal(fit$log_evidence, fit_of(counts_model(TRUE), counts, seed = 3)$log_evidence,
               tolerance = 1e-5)
  expect_match(said(counts_model(FALSE)), "central differences, 6 evaluations each")
})

test_that("a posterior at the edge of its prior has no mode, and only this is warned of", {
  y <- 1.15 + stats::qnorm(stats::ppoints(fast_or_slow(20, 40)))
  for (gradients in fast_or_slow(FALSE, c(TRUE, FALSE))) {
    model <- custom_model(
      "m", function(theta, data) outer(theta[, 1], data, function(m, y) dnorm(y, m, log = TRUE)),
      function(theta) ifelse(abs(theta[, 1]) > 1, -Inf, -log(2)), function(n) runif(n, -1, 1),
      if (gradients) function(theta, data) cbind(sum(data) - length(data) * theta[, 1]),
      if (gradients) function(theta) 0 * theta, vectorised = TRUE
    )
    density <- function(m) vapply(m, function(m) prod(dnorm(y, m) / dnorm(y, 1)) / 2, 0)
    truth <- log(integrate(density, -1, 1, rel.tol = 1e-9)$value) + sum(dnorm(y, 1, log = TRUE))
    for (seed in fast_or_slow(1, 1:2)) {
      fit <- fit_of(model, y, seed = seed)
      expect_lt(abs(fit$log_evidence - truth), 4 * fit$se)
      # importance sampling needs no mode: it begins at the particles
      expect_identical(fit$source, "audit")
      expect_null(fit$warnings)
    }
  }
})

# Priors ------------------------------------------------------------------------------------------

test_that("a prior equal to the density of the posterior is refused", {
  posterior <- function(theta) sum(dnorm(theta, 1, log = TRUE))
  refused(refuse_no_likelihood(posterior, posterior, 3), "the log density of the prior alone")
  expect_silent(refuse_no_likelihood(posterior, function(theta) sum(dnorm(theta, log = TRUE)), 3))
  expect_silent(refuse_no_likelihood(function(theta) NaN, function(theta) NaN, 3))
})

test_that("priors as R functions equal those of C, integrate to one and agree with their draws", {
  real <- list(normal(1, 2), student_t(4, -1, 0.5), cauchy(2, 3))
  positive <- list(half_normal(2), half_student(3, 1.5), inverse_gamma(2.5, 3), exponential(0.7))
  at <- c(-1.7, -0.2, 0.4, 1.3)
  for (prior in c(real, positive)) {
    is_log <- !prior$kind %in% REAL_PRIORS
    f <- prior_functions(list(prior), is_log)
    own <- vapply(at, f$log_prior, 0)
    data <- data.frame(y = 1:3, x = 3:1)
    in_c <- if (is_log) regression(y ~ x - 1, prior = normal(), auxiliary = prior)
    else regression(y ~ x - 1, family = "poisson", prior = prior)
    other <- model_functions(in_c, data)
    points <- if (is_log) cbind(0, at) else matrix(at)
    expect_equal(own, other$log_prior(points) - if (is_log) dnorm(0, log = TRUE) else 0,
                 tolerance = 1e-10, label = format(prior))
    slope <- (vapply(at + 1e-5, f$log_prior, 0) - vapply(at - 1e-5, f$log_prior, 0)) / 2e-5
    expect_equal(vapply(at, f$prior_gradient, 0), slope, tolerance = 1e-6, label = format(prior))
    density <- function(x) exp(vapply(x, f$log_prior, 0))
    # the tails of a Cauchy density need a wide range
    draws <- with_own_seed(test_seed(5), f$draw_prior(4000))
    inside <- stats::quantile(draws, c(0.2, 0.7))
    expect_equal(integrate(density, inside[[1]], inside[[2]])$value, 0.5, tolerance = 0.08)
    expect_equal(integrate(density, -Inf, Inf, rel.tol = 1e-6)$value, 1, tolerance = 1e-4)
  }
  two <- prior_functions(list(normal(), student_t()), c(FALSE, FALSE))
  expect_equal(two$prior_gradient(c(0, 0)), c(0, 0))
})

# TMB ---------------------------------------------------------------------------------------------

#' Groups around a common mean: the log-likelihood in closed form, and its integral over the priors
#' normal(0, 3) of the mean and half_normal(2) of both standard deviations on a grid
groups <- local({
  group <- rep(1:8, each = 5)
  y <- with_own_seed(test_seed(11), 1 + rnorm(8, 0, 0.8)[group] + rnorm(40, 0, 0.6))
  covariance <- function(theta)
    exp(2 * theta[2]) * outer(group, group, `==`) + exp(2 * theta[3]) * diag(40)
  normal_density <- function(y, covariance) {
    root <- chol(covariance)
    -sum(backsolve(root, y, transpose = TRUE)^2) / 2 - sum(log(diag(root))) -
      length(y) / 2 * log(2 * pi)
  }
  # the covariance of a group has the eigenvalues tau^2 5 + sigma^2, for the mean, and sigma^2
  means <- as.vector(tapply(y, group, mean))
  within <- sum((y - means[group])^2)
  log_lik <- function(theta) {
    of_mean <- 5 * exp(2 * theta[[2]]) + exp(2 * theta[[3]])
    -(5 * sum((means - theta[[1]])^2) / of_mean + within / exp(2 * theta[[3]])) / 2 -
      4 * log(of_mean) - 32 * theta[[3]] - 20 * log(2 * pi)
  }
  log_prior <- function(x) log(2) + dnorm(exp(x), 0, 2, log = TRUE) + x
  side <- seq(-5, 2, length.out = 71)
  at <- as.matrix(expand.grid(0, side, side))
  # with the common mean integrated out one eigenvalue of the groups' means is 40 times 9 larger
  of_mean <- 5 * exp(2 * at[, 2]) + exp(2 * at[, 3])
  over_mean <- -(5 * sum((means - mean(means))^2) / of_mean +
                   40 * mean(means)^2 / (of_mean + 360) + within / exp(2 * at[, 3])) / 2 -
    3.5 * log(of_mean) - log(of_mean + 360) / 2 - 32 * at[, 3] - 20 * log(2 * pi)
  stopifnot(all.equal(over_mean[3000], normal_density(y, covariance(at[3000, ]) + 9)))
  values <- over_mean + log_prior(at[, 2]) + log_prior(at[, 3])
  list(y = y, group = group, log_lik = log_lik,
       by_covariance = function(theta) normal_density(y - theta[[1]], covariance(theta)),
       truth = log_sum_exp(values) + 2 * log(side[2] - side[1]))
})
group_priors <- list(beta = normal(0, 3), half_normal(2))
group_logs <- c("log_tau", "log_sigma")

#' An object with the parts that TMB and RTMB give theirs, with its objective in R
object_like_tmb <- function(objective = function(theta) -groups$log_lik(theta),
                            par = c(beta = 0.5, log_tau = 0, log_sigma = 0)) {
  env <- new.env()
  env$par <- env$last.par <- env$last.par.best <- par
  env$value.best <- Inf
  fn <- function(x = env$last.par) {
    value <- objective(x)
    env$last.par <- x
    if (isTRUE(value < env$value.best)) {
      env$value.best <- value
      env$last.par.best <- x
    }
    value
  }
  gr <- function(x = env$last.par) matrix(vapply(seq_along(x), function(j) {
    h <- replace(0 * x, j, 1e-5)
    (objective(x + h) - objective(x - h)) / 2e-5
  }, 0), 1)
  list(par = par, fn = fn, gr = gr, env = env)
}

test_that("an object with an objective and priors has the evidence of the closed form", {
  object <- object_like_tmb()
  model <- tmb_model(object, group_priors, group_logs)
  expect_match(said(model), "exp(log_tau) ~ half_normal(sd = 2)", fixed = TRUE)
  before <- as.list(object$env)
  methods <- list(laplace(importance = 2000), sgais(), nested(60, slice(), steps = 10))
  for (method in fast_or_slow(methods[1], methods)) {
    fit <- fit_of(model, method = method)
    expect_lt(abs(fit$log_evidence - groups$truth), 4 * fit$se)
    expect_null(fit$failed)
  }
  expect_identical(as.list(object$env)[names(before)], before)
  point <- c(beta = 0.2, log_tau = -1, log_sigma = 0.4)
  expect_equal(groups$log_lik(point), groups$by_covariance(point))
  expect_true(all(check_model(model, seed = test_seed())$holds, na.rm = TRUE))
})

test_that("the prior may be a function, an object, or a part of the objective", {
  plain <- tmb_model(object_like_tmb(), group_priors, group_logs)
  log_prior <- plain$log_prior
  joint <- function(theta) -groups$log_lik(theta) - log_prior(theta)
  models <- list(
    tmb_model(object_like_tmb(joint), group_priors, group_logs, joint = TRUE),
    tmb_model(object_like_tmb(), log_prior, draw_prior = plain$draw_prior),
    tmb_model(object_like_tmb(joint), object_like_tmb(function(theta) -log_prior(theta)),
              draw_prior = plain$draw_prior, joint = TRUE)
  )
  theta <- c(beta = 0.3, log_tau = -0.2, log_sigma = 0.1)
  for (model in models) {
    expect_equal(model$log_likelihood(theta), groups$log_lik(theta))
    expect_equal(model$log_prior(theta), log_prior(theta))
    expect_equal(as.vector(model$gradient(theta)), as.vector(plain$gradient(theta)),
                 tolerance = 1e-5)
    expect_equal(as.vector(model$prior_gradient(theta)), as.vector(plain$prior_gradient(theta)),
                 tolerance = 1e-5)
    expect_equal(fit_of(model, method = laplace())$log_evidence,
                 fit_of(plain, method = laplace())$log_evidence, tolerance = 1e-5)
  }
})

test_that("points where the objective has no value give a warning only near the posterior", {
  broken <- function(where) object_like_tmb(function(theta)
    if (where(theta)) NaN else -groups$log_lik(theta))
  # what would make functions of the user faster is no advice for an object
  expect_match(slow_functions(tmb_model(object_like_tmb(), group_priors, group_logs)),
               "functions of the object", fixed = TRUE)
  far <- fit_of(tmb_model(broken(function(theta) theta[2] < -6), group_priors, group_logs),
                method = laplace(importance = 500))
  expect_null(far$failed)
  expect_lt(abs(far$log_evidence - groups$truth), 4 * far$se)
  near <- fit_of(tmb_model(broken(function(theta) theta[1] > 1), group_priors, group_logs),
                 method = smc(particles = 40, kernel = slice()))
  expect_match(near$failed, "where the posterior is, the object of the model had no value",
               all = FALSE)
})

test_that("parameters of one name get numbers, and a prior of that name applies to all", {
  object <- object_like_tmb(function(theta) sum(theta^2),
                            c(beta = 0, beta = 0, log_sigma = 0, beta = 0))
  model <- tmb_model(object, list(beta = normal(0, 2), "beta[2]" = normal(0, 3), exponential(1)),
                     "log_sigma")
  expect_identical(model$parameters, c("beta[1]", "beta[2]", "log_sigma", "beta[3]"))
  theta <- c(0.1, 0.2, 0.3, 0.4)
  expect_equal(model$log_prior(theta), sum(dnorm(theta, 0, c(2, 3, NA, 2), TRUE)[-3]) -
                 exp(0.3) + 0.3)
})

test_that("tmb_model() refuses what it cannot use", {
  object <- object_like_tmb()
  refused(tmb_model(1, normal()), "`object` must be an object from TMB::MakeADFun()")
  refused(tmb_model(object), "`prior` must be given")
  refused(tmb_model(object, 3), "`prior` must be a prior object, a list of them")
  refused(tmb_model(object, half_normal()), "name it in `logs`")
  refused(tmb_model(object, normal(), "log_tau"), "`prior$log_tau` must be a prior of a positive")
  refused(tmb_model(object, normal(), "sigma"), "`logs` must be names of parameters")
  refused(tmb_model(object, list(gamma = normal(), normal())), "not by `gamma`.")
  refused(tmb_model(object, list(beta = normal())), "not none for `log_tau`.")
  refused(tmb_model(object, list(normal(), normal())), "named by parameters but for at most one")
  refused(tmb_model(object, function(theta) 0), "`draw_prior` must be given")
  refused(tmb_model(object, normal(), draw_prior = rnorm), "`draw_prior` must be left out")
  refused(tmb_model(object, function(theta) 0, "log_tau", rnorm), "`logs` must be left out")
  refused(tmb_model(object, object_like_tmb(function(theta) 0, c(a = 1)), draw_prior = rnorm),
          "`prior` must have the 3 parameters of `object`, not 1.")
  refused(tmb_model(object_like_tmb(function(theta) NaN), normal()), "must have a finite objective")
  refused(tmb_model(object_like_tmb(function(theta) stop("null pointer")), normal()),
          "cannot be evaluated at its own `par` (null pointer)")
})

test_that("methods that use rows are refused for models without rows", {
  model <- tmb_model(object_like_tmb(), group_priors, group_logs)
  for (method in list(smc("data"), sequential(), online_nested(), hybrid(5, 10)))
    refused(fit_of(model, method = method), "uses rows chunk by chunk, and this model has no rows")
  refused(fit_of(model, data = 1:3), "`data` must be left out")
})

test_that("fits of objects can be compared only if their observations are the same", {
  with_data <- function(observed)
    fit_of(tmb_model(object_like_tmb(), group_priors, group_logs, observed = observed),
           method = laplace())
  one <- with_data(groups$y)
  expect_s3_class(compare_models(a = one, b = with_data(groups$y)), "data.frame")
  refused(compare_models(a = one, b = with_data(groups$y + 1)), "different data")
  expect_identical(nobs(one), length(groups$y))
  expect_match(said(compare_models(a = one, b = with_data(groups$y))), "on n = \\d+ observations")
})

test_that("the number of observations of an object is stated if it is known", {
  object <- object_like_tmb()
  from <- function(...) fit_of(tmb_model(object, group_priors, group_logs, ...), method = laplace())
  unknown <- from()
  expect_identical(nobs(unknown), NA_integer_)
  expect_match(said(unknown), "rows not known; laplace()", fixed = TRUE)
  expect_match(said(compare_models(a = unknown, b = from())), "2 models, rows not known")
  expect_match(said(from(n = 40)), "n = 40; ")
  refused(tmb_model(object, group_priors, group_logs, observed = 1:3, n = 4), "`n` must be")
  refused(tmb_model(object, group_priors, group_logs, n = 0), "`n` must be")
  object$env$data <- list(y = 1:24, x = matrix(0, 24, 2), limit = 3)
  expect_identical(nobs(from()), 24L)
  object$env$data$z <- 1:5
  expect_identical(nobs(from()), NA_integer_)
  refused(compare_models(a = from(observed = groups$y), b = unknown), "`b` are not known")
})

test_that("TMB objects with random effects have the right evidence", {
  skip_unless_slow() # its compilation alone takes 7 seconds
  skip_if_not_installed("TMB")
  folder <- tempfile("tmb")
  dir.create(folder)
  file <- file.path(folder, "groups.cpp")
  writeLines("#include <TMB.hpp>
template<class Type>
Type objective_function<Type>::operator() ()
{
  DATA_VECTOR(y); DATA_IVECTOR(group);
  PARAMETER(beta); PARAMETER(log_tau); PARAMETER(log_sigma); PARAMETER_VECTOR(u);
  Type value = -sum(dnorm(u, Type(0), exp(log_tau), true));
  for (int i = 0; i < y.size(); i++)
    value -= dnorm(y(i), beta + u(group(i)), exp(log_sigma), true);
  return value;
}", file)
  old <- setwd(folder)
  on.exit(setwd(old))
  made <- tryCatch(utils::capture.output(status <- TMB::compile("groups.cpp", flags = "-O0 -w")),
                   error = function(e) NULL)
  skip_if(is.null(made) || status != 0, "TMB cannot compile here")
  dyn.load(TMB::dynlib("groups"))
  object <- TMB::MakeADFun(
    list(y = groups$y, group = groups$group - 1L),
    list(beta = 0, log_tau = 0, log_sigma = 0, u = numeric(8)),
    random = "u", DLL = "groups", silent = TRUE
  )
  model <- tmb_model(object, group_priors, group_logs)
  expect_match(said(model), "8 integrated out")
  points <- with_own_seed(test_seed(2), model$draw_prior(20))
  for (i in 1:20)
    expect_equal(model$log_likelihood(points[i, ]), groups$log_lik(points[i, ]), tolerance = 1e-8)
  fit <- fit_of(model, method = laplace(importance = 1000))
  expect_identical(nobs(fit), length(groups$y)) # y and group have as many
  expect_lt(abs(fit$log_evidence - groups$truth), 4 * fit$se)
  expect_lt(fit$se, 0.05)
  expect_null(fit$failed)
})

# Stan --------------------------------------------------------------------------------------------

test_that("sampling statements are found outside of comments", {
  expect_true(drops_constants("model { y ~ normal(0, 1); }"))
  expect_true(drops_constants("model {\n  // no\n  y ~\n normal(0, 1); }"))
  expect_true(drops_constants("model { target += normal_lupdf(y | 0, 1); }"))
  expect_false(drops_constants("model { // y ~ normal(0, 1)\n  target += normal_lpdf(y | 0, 1); }"))
  expect_false(drops_constants("/* y ~ normal(0, 1)\n a ~ b */ model { print(\"a ~ b\"); }"))
  expect_false(drops_constants("# y ~ normal(0, 1)"))
})

test_that("prior draws of a fit are used once, in any order", {
  pool <- matrix(1:20, 10)
  draw <- pool_of_draws(pool, "prior_fit")
  drawn <- with_own_seed(test_seed(), rbind(draw(3), draw(7)))
  expect_identical(drawn[order(drawn[, 1]), ], pool)
  refused(draw(1), "`prior_fit` must have more than 10 independent draws")
  attr(draw, "restart")()
  expect_identical(nrow(draw(10)), 10L)
})

test_that("stanfit_model() refuses what is no stanfit object", {
  skip_if_not_installed("rstan")
  refused(stanfit_model(1), "`prior_fit` must be given")
  refused(stanfit_model(1, 2), "`fit` must be a stanfit object of the package rstan, not 1.")
})

#' A normal mean with a standard normal prior in Stan; `densities` are statements for prior and data
stan_mean <- function(prior, data) {
  if (!nzchar(system.file("include", package = "BH")))
    rstan::rstan_options(boost_lib = "/usr/include")
  rstan::stan_model(model_code = paste(
    "data { int n; vector[n] y; int<lower=0, upper=1> prior_only; }",
    "parameters { real mu; real<lower=0> sigma; }",
    "model {", prior, "target += exponential_lpdf(sigma | 1); if (!prior_only) {", data, "} }"
  ))
}

test_that("a Stan program has the evidence of quadrature, and lost constants are a warning", {
  skip_unless_slow()
  skip_if_not_installed("rstan")
  y <- c(1.2, 0.4, 2.1, -0.3)
  data <- list(n = 4, y = y, prior_only = 0)
  density <- function(mu, sigma) vapply(seq_along(mu), function(i)
    exp(sum(dnorm(y, mu[i], sigma, log = TRUE)) + dnorm(mu[i], log = TRUE) - sigma), 0)
  over_mu <- function(sigma) vapply(sigma, function(s)
    integrate(density, -8, 8, sigma = s, rel.tol = 1e-8)$value, 0)
  truth <- log(integrate(over_mu, 0.02, 40, rel.tol = 1e-7)$value)
  program <- stan_mean("target += normal_lpdf(mu | 0, 1);", "target += normal_lpdf(y | mu, sigma);")
  fit <- suppressWarnings(rstan::sampling(program, data, chains = 0, refresh = 0))
  prior_fit <- rstan::sampling(program, replace(data, "prior_only", 1), refresh = 0,
                               seed = test_seed(),
                               iter = 4000)
  model <- stanfit_model(fit, prior_fit)
  expect_identical(model$parameters, c("mu", "sigma"))
  for (seed in 1:3) for (method in list(sgais(), smc(), nested(100))) {
    estimate <- fit_of(model, method = method, seed = seed)
    expect_lt(abs(estimate$log_evidence - truth), 4 * estimate$se)
  }
  theta <- c(0.3, -0.2)
  expect_equal(model$log_likelihood(theta), sum(dnorm(y, 0.3, exp(-0.2), log = TRUE)))
  expect_equal(model$log_prior(theta), dnorm(0.3, log = TRUE) - exp(-0.2) - 0.2)
  expect_true(all(check_model(model, seed = test_seed())$holds, na.rm = TRUE))
  refused(fit_of(model, method = likelihood_weighting(1e5)), "independent draws")
  refused(stanfit_model(fit, fit), "`prior_fit` must have draws")
  dropping <- stan_mean("mu ~ normal(0, 1);", "y ~ normal(mu, sigma);")
  fits <- lapply(0:1, function(prior_only)
    rstan::sampling(dropping, replace(data, "prior_only", prior_only), refresh = 0,
                    seed = test_seed()))
  expect_warning(lossy <- stanfit_model(fits[[1]], fits[[2]]), "has sampling statements")
  expect_equal(model$log_likelihood(theta) - lossy$log_likelihood(theta), -2 * log(2 * pi))
  expect_match(fit_of(lossy)$failed, "wrong by an unknown number", all = FALSE)
})

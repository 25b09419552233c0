# Models with formulas on data frames: evidence() and then perhaps a verb.

RESPONSES <- c("log(y)", "I(y^2)", "factor(y)", "cbind(y, x)", "y + 1",
               "-y", "1", "as.character(y)", "y > 0", "sqrt(y)", "x", "`a b`", "nothing", "g",
               "NULL",
               "cbind(y, 3 - y)", "y/2", "as.integer(y)", "log(y + 10)")
TERMS <- c("x", "x", "x", "z", "g", "x:z", "x * z", "poly(x, 2)", "log(x)", "I(x^2)", "factor(g)",
           ".", "-1", "0", "1", "offset(z)", "offset(log(x))", "lags(x, 1)", "lags(y, 1)",
           "lags(y, 1:2)", "scale(x)", "x^2", "(x + z)^2", "`a b`", "nothing", "1/x", "sin(x)",
           "cut(x, 3)", "Inf", "NULL", "\"text\"", "x | g", "x %in% g", "I(x)", "I(x * 1e200)",
           "x - x", "y", "w", "ifelse(x > 0, x, NA)", "stats::rnorm(3)", "identity(g)", "exp(x)",
           "stop(\"told to\")", "x:g", "as.numeric(g)", "I(list(x))", "factor(1)", "rep(1, 2)", "T")

right_side <- function(most = 3) {
  paste(unlist(some_of(TERMS, sample.int(most, 1))), collapse = " + ")
}

#' @param left The response that suits the model.
a_formula <- function(oddness, left, right = PLAIN_RIGHT) {
  if (chance(oddness)) right <- right_side()
  if (chance(oddness / 2)) left <- pick(RESPONSES)
  str2lang(paste(left, "~", pick(right)))
}

PLAIN_RIGHT <- c("x", "x", "x + y:p", "1", "g", "x * g", "x + p", "log(p)", "poly(x, 2)", "0 + g",
                 "x + offset(p)", "lags(x, 1)", "scale(x)", "n", "b", "x + I(2 * x)", "factor(n)")

some_arguments <- function(given, oddness) {
  kept <- given[vapply(given, function(x) chance(0.4), NA)]
  for (i in seq_along(kept)) if (chance(oddness / 2))
    kept[i] <- list(as_given(an_odd_value(kept[[i]])))
  kept
}

# With the responses that suit them.
FAMILIES_TRIED <- list(
  y = expression(gaussian(), family_student(), family_student(df = inverse_gamma(2, 10))),
  n = expression(poisson(), family_negative_binomial(), "poisson"),
  b = expression(binomial(), binomial("probit"), binomial("cloglog"), binomial("logit")),
  p = expression(Gamma("log"), family_weibull(), "weibull"),
  y = expression(Gamma(), inverse.gaussian(), quasipoisson(), gaussian("log"), poisson("sqrt"),
                 family_weibull, "gamma", NULL))

a_family <- function(oddness) {
  at <- if (chance(oddness)) 5 else sample.int(4, 1)
  list(response = names(FAMILIES_TRIED)[at], family = pick(FAMILIES_TRIED[[at]]))
}

A_PRIOR <- expression(prior_normal(0, 2.5), prior_cauchy(), prior_student_t(3, 0, 2),
                      prior_normal(0, c(1, 2)), jzs(),
                      prior_normal(0, 1e-300), prior_normal(1e300, 1), half_normal(1),
                      prior_exponential(2),
                      prior_student_t(0.1), prior_inverse_gamma(1, 1), prior_normal(c(x = 1), 2),
                      jzs(1e-8))

a_prior <- function(oddness)
  pick(A_PRIOR[seq_len(if (chance(oddness / 2)) length(A_PRIOR) else 3)])

COLUMNS <- c("x", "x + y", "y", "y + x + p", "x + z", "log(p) + x")

model_call <- function(name, formula, ...) as.call(c(as.name(name), formula, ...))

MODEL_CALLS <- list(
  linear = function(o) model_call("linear_regression", a_formula(o, "y"), some_arguments(
    list(sigma = 1, prior_sd = 2, prior_mean = 0, scale = TRUE), o)),
  linear_prior = function(o) model_call(
    "linear_regression", a_formula(o, "y"), prior = a_prior(o), some_arguments(
    list(sigma = pick(list(1, 1, 1e-5, 1e5)), scale = TRUE, intercept = quote(prior_normal(0, 10))),
    o)),
  regression = function(o) {
    family <- a_family(o)
    model_call("regression", a_formula(o, family$response), family$family, prior = a_prior(o),
               some_arguments(list(intercept = quote(prior_normal(0, 10)), scale = TRUE), o))
  },
  auxiliary = function(o) model_call(
    "regression", a_formula(o, "y"), quote(family_student()), prior = a_prior(o),
    auxiliary = pick(expression(prior_exponential(1), half_student(), half_normal(1e-8),
                                prior_normal()))),
  further = function(o) {
    at <- sample.int(3, 1)
    further <- list(quote(sigma), quote(shape), pick(expression(sigma, df)))[[at]]
    if (chance(o)) further <- pick(expression(nothing, x, y, mu))
    model_call("regression", a_formula(o, c("y", "p", "y")[at]),
               list(quote(gaussian()), quote(family_weibull()), quote(family_student()))[[at]],
               a_formula(o, deparse(further)), prior = a_prior(o))
  },
  softmax = function(o) model_call("softmax_regression", a_formula(o, "k"), some_arguments(
    list(prior_sd = 1, scale = TRUE), o)),
  mean = function(o) model_call(
    "gaussian_mean", a_formula(o, "", "y"),
    some_arguments(list(sigma = 1, prior_mean = 0, prior_sd = 1), o)),
  rate = function(o) model_call("poisson_rate", a_formula(o, "n", "1"), some_arguments(
    list(shape = 1, rate = 1), o)),
  probability = function(o) model_call("binomial_probability", a_formula(o, "", "b"),
    some_arguments(list(shape1 = 1, shape2 = 1), o)),
  mixture = function(o) model_call(
    "gaussian_mixture", a_formula(o, "", COLUMNS), components = pick(list(1, 2, 2, 3, 1:2)),
    some_arguments(
      list(location = 0, mean_scale = 2, shape = 1, rate = 1, concentration = 1), o)),
  density = function(o) {
    body <- pick(c("dnorm(y, mu, 1, log = TRUE)", "dnorm(y, mu, s, log = TRUE)", "-(y - mu)^2",
                   "dpois(n, exp(mu), log = TRUE)", "log(mu)", "b * mu - log(1 + exp(mu))",
                   "dt(y - mu, 4, log = TRUE)", "mu / 0", "sqrt(mu)", "lgamma(mu)", "nothing(mu)",
                   "ifelse(y > 0, mu, -mu)", "dgamma(p, 1, exp(mu), log = TRUE)", "1", "y", "NaN",
                   "log(0.5 * dnorm(y, mu) + 0.5 * dnorm(y, -mu))"))
    s <- if (grepl(", s,", body) || chance(o)) list(s = quote(half_normal(2)))
    model_call("density", str2lang(paste("~", body)), list(mu = a_formula(o, "")), s)
  },
  clustering = function(o) model_call(
    "clustering", a_formula(o, "", COLUMNS), components = pick(list(1, 2, 3)), some_arguments(
    list(prior_sd = 1, noise_sd = 1, infer = TRUE), o)),
  low_rank = function(o) model_call(
    "low_rank", a_formula(o, "", c("y + x + p", "x + y")), rank = 1,
    some_arguments(list(row_sd = 1, column_sd = 1, noise_sd = 1, infer = TRUE), o)),
  attributes = function(o) model_call(
    "binary_attributes", a_formula(o, "", COLUMNS), attributes = pick(list(1, 2)), some_arguments(
    list(probabilities = 0.5, prior_sd = 1, noise_sd = 1, infer = TRUE), o))
)

LATENT <- c("clustering", "low_rank", "binary_attributes")

SMALL_METHODS <- expression(
  sgais(), sgais(particles = 20, steps = 2), sgais(particles = 10, steps = 1, audit = FALSE),
  sgais(preset = "paper", particles = 10), method_smc(particles = 20),
  method_smc("data", particles = 20),
  ais(10, linear(10)), ais(10, sigmoidal(10)), method_laplace(),
  method_laplace(starts = 2, importance = 50),
  method_exact(), method_bic(), nested(20), nested(20, slice(), steps = 2),
  likelihood_weighting(50),
  method_sequential(5, 2), harmonic_mean(5, 5), hybrid(2, 10, particles = 5, steps = 2),
  online_nested(10, steps = 2), bridge(10, 20), power_posterior(run = smc(particles = 20)),
  method_smc(particles = 10, kernel = rwm()), method_smc(particles = 10, kernel = slice()),
  ais(10, linear(5), mala()))

LATENT_METHODS <- expression(
  method_smc("data", particles = 10), method_smc(particles = 10), ais(10, linear(10)), chib(20, 10),
  variational(1, 5, draws = 10), partitions(chains = 4, work = 1000, draws = 10), method_bic(),
  likelihood_weighting(50), harmonic_mean(5, 5), nested(20))

# Half of the fits take the default.
a_method <- function(model, oddness) {
  if (chance(0.5)) return(list())
  latent <- as.character(model[[1]]) %in% LATENT || model[[1]] == "gaussian_mixture" && chance(0.3)
  if (chance(oddness / 2)) latent <- !latent
  list(method = pick(if (latent) LATENT_METHODS else SMALL_METHODS))
}

# Calls on a fit, `fit`, and new data, `more`.
FIT_VERBS <- expression(
  predict(fit), predict(fit, more), summary(fit), plot(fit), update(fit, more), log_lik(fit),
  log_lik(fit, more), residuals(fit), fitted(fit), simulate(fit, 2, seed = 1), coef(fit), vcov(fit),
  confint(fit), posterior_draws(fit, n = 5), evidence_report(fit), compare_models(fit, fit),
  bayes_factor(fit, fit), logml(fit), as.data.frame(fit), partial_evidence(fit, 1:2), deviance(fit),
  error_measures(fit), model.matrix(fit), model.frame(fit), nobs(fit), sigma(fit), terms(fit),
  formula(fit), family(fit), variable.names(fit), case.names(fit), labels(fit), as_bridge(fit),
  post_prob(fit, fit), as.list(fit), format(fit), c(fit, fit), check_model(fit$model, more),
  model_functions(fit$model, more), predict(fit, more, type = "response"), print(fit$verdict),
  simulate(fit$model, more, nsim = 1), summary(fit)$verdict, as.character(evidence_report(fit)))

FORMULA_CASES <- list(
  lacks = function() NULL,
  prepare = function() NULL,
  make = function() {
    oddness <- pick(list(0, 0.05, 0.1, 0.2, 0.5))
    model <- pick(MODEL_CALLS)(oddness)
    arguments <- c(
      list(model = model, data = quote(data)), a_method(model, oddness),
      list(seed = sample.int(1000, 1), progress = FALSE, time_limit = 3),
      if (chance(0.2)) list(na.action = quote(na.omit)),
      if (chance(0.1)) list(replicates = 2),
      if (chance(0.1)) list(keep_state = TRUE),
      if (chance(0.05)) list(keep = 1000),
      if (chance(0.05)) list(target_se = 0.5))
    call <- as.call(c(quote(evidence), arguments))
    data <- if (oddness > 0.3) some_data(oddness) else a_frame(oddness)
    objects <- list(data = data)
    if (chance(0.3)) {
      objects["more"] <- list(if (chance(0.5)) data else some_data(oddness))
      call <- bquote({
        fit <- .(call)
        .(pick(FIT_VERBS))
        fit
      })
    }
    # [[<- would leave out a NULL
    list(objects = if (is.null(data)) c(list(data = NULL), objects["more"]) else objects,
         call = call)
  })

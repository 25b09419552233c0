# Data for each family of regression(), and the same densities in plain R.

regression_data <- function(n = 200, seed = 1) with_own_seed(test_seed(seed), {
  d <- data.frame(x = rnorm(n), z = runif(n), g = factor(sample(letters[1:3], n, TRUE)),
                  e = runif(n, 0.5, 2), trials = sample(1:20, n, TRUE))
  eta <- 0.5 + 0.4 * d$x - 0.6 * d$z
  d$count <- rpois(n, exp(eta) * d$e)
  d$wide <- rnbinom(n, mu = exp(eta + 1) * d$e, size = 2)
  d$hits <- rbinom(n, d$trials, plogis(eta))
  d$misses <- d$trials - d$hits
  d$one <- rbinom(n, 1, plogis(eta))
  d$y <- eta + rnorm(n, 0, 0.7)
  d$t <- eta + 0.5 * rt(n, 4)
  d$positive <- rgamma(n, 3, 3 / exp(eta))
  d$time <- rweibull(n, 1.5, exp(eta))
  d$status <- rbinom(n, 1, 0.7)
  d
})

# For each case a model and the density of each row in plain R: functions of the data, the linear
# predictor without offset, and the further parameters.
regression_cases <- function() list(
  poisson = list(
    model = regression(count ~ x + z + g + offset(log(e)), family = poisson(),
                       prior_sd = 2.5),
    each = function(d, eta, a) dpois(d$count, exp(eta) * d$e, log = TRUE)),
  "binomial, trials" = list(
    model = regression(cbind(hits, misses) ~ x + z + g, family = binomial(),
                       prior_sd = 2.5),
    each = function(d, eta, a)
      lchoose(d$trials, d$hits) + d$hits * plogis(eta, log.p = TRUE) +
        d$misses * plogis(-eta, log.p = TRUE)),
  "binomial, 0 or 1" = list(
    model = regression(one ~ x + z + offset(e), family = binomial(), prior_sd = 2.5),
    each = function(d, eta, a) plogis((2 * d$one - 1) * (eta + d$e), log.p = TRUE)),
  "probit, trials" = list(
    model = regression(cbind(hits, misses) ~ x * z, family = binomial("probit"),
                       prior_sd = 2.5),
    each = function(d, eta, a)
      lchoose(d$trials, d$hits) + d$hits * pnorm(eta, log.p = TRUE) +
        d$misses * pnorm(-eta, log.p = TRUE)),
  "probit, 0 or 1" = list(
    model = regression(one ~ x, family = binomial("probit"), prior_sd = 2.5),
    each = function(d, eta, a) pnorm(ifelse(d$one == 1, eta, -eta), log.p = TRUE)),
  gaussian = list(
    model = regression(y ~ x + z, family = gaussian(), prior_sd = 2.5),
    each = function(d, eta, a) dnorm(d$y, eta, a[["sigma"]], log = TRUE)),
  "gaussian, sigma known" = list(
    model = regression(y ~ x + z, sigma = 1.3, prior = cauchy(0, 2.5),
                       intercept = cauchy(0, 2.5)),
    each = function(d, eta, a) dnorm(d$y, eta, 1.3, log = TRUE)),
  student = list(
    model = regression(t ~ x + z, family = student(inverse_gamma(2, 10)),
                       auxiliary = half_normal(2), prior_sd = 2.5),
    each = function(d, eta, a)
      dt((d$t - eta) / a[["sigma"]], a[["df"]], log = TRUE) - log(a[["sigma"]])),
  "student, df known" = list(
    model = regression(t ~ x + offset(e), family = student(4), prior_sd = 2.5),
    each = function(d, eta, a)
      dt((d$t - eta - d$e) / a[["sigma"]], 4, log = TRUE) - log(a[["sigma"]])),
  "negative binomial" = list(
    model = regression(wide ~ x + z + offset(log(e)), family = negative_binomial(),
                       prior_sd = 2.5),
    each = function(d, eta, a) dnbinom(d$wide, a[["size"]], mu = exp(eta) * d$e, log = TRUE)),
  gamma = list(
    model = regression(positive ~ x + z, family = Gamma("log"), prior_sd = 2.5),
    each = function(d, eta, a)
      dgamma(d$positive, a[["shape"]], a[["shape"]] / exp(eta), log = TRUE)),
  weibull = list(
    model = regression(time ~ x + g, family = weibull(), prior_sd = 2.5),
    each = function(d, eta, a) {
      z <- a[["shape"]] * (log(d$time) - eta)
      log(a[["shape"]] / d$time) + z - exp(z)
    })
)

further_of <- function(f, theta) {
  own <- grepl("^log\\(", f$names)
  stats::setNames(exp(theta[own]), sub("log\\((.*)\\)", "\\1", f$names[own]))
}

predictor_of <- function(model, data, theta) {
  x <- stats::model.matrix(stats::delete.response(stats::terms(model$formula)), data)
  drop(x %*% theta[seq_len(ncol(x))])
}

# Functions of a model whose parameters are those of the columns as they are.
raw_functions <- function(model, data) model_functions(at_unit_one(model), data)

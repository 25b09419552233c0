# Problems of regression() and density(): counts, proportions, times, outliers, priors with heavy
# tails that contradict the rows, two groups of responses. References are importance sampling in
# plain R, or sums over grids in one or two dimensions.

# Half t with 3 degrees of freedom and scale 2.5, and exponential, of the log of a number.
half_t <- function(s) log(2) + dt(exp(s) / 2.5, 3, log = TRUE) - log(2.5) + s
exponential_1 <- function(s) s - exp(s)

# `rows(eta, further)` is the log density of all rows, given their linear predictors, with a column
# for each point.
family_problem <- function(name, model, data, x, rows, prior, further = list(), start, ...) {
  p <- ncol(x)
  density <- function(theta) {
    eta <- x %*% t(theta[, seq_len(p), drop = FALSE])
    more <- theta[, -seq_len(p), drop = FALSE]
    value <- colSums(matrix(rows(eta, more), nrow(x))) + prior(theta[, seq_len(p), drop = FALSE])
    for (k in seq_along(further)) value <- value + further[[k]](more[, k])
    ifelse(is.nan(value), -Inf, value)
  }
  add(name, "glm", model, data, function() t_importance(density, start, 1e5), ...)
}
normal_prior <- function(sd) function(w) rowSums(dnorm(w, 0, sd, log = TRUE))
per_row <- function(a, eta) rep(a, each = nrow(eta))

quine <- MASS::quine
quine_x <- model.matrix(~ Sex + Age + Eth + Lrn, quine)
glm_start <- function(fit, ...) list(c(unname(coef(fit)), ...))
family_problem("quine-poisson", regression(Days ~ Sex + Age + Eth + Lrn, poisson(),
                                           prior_sd = 2.5), quine, quine_x,
               function(eta, more) dpois(quine$Days, exp(eta), log = TRUE), normal_prior(2.5),
               start = glm_start(glm(Days ~ Sex + Age + Eth + Lrn, poisson(), quine)),
               benign = TRUE)
family_problem("quine-counts", regression(Days ~ Sex + Age + Eth + Lrn, negative_binomial(),
                                          prior_sd = 2.5), quine,
               quine_x, function(eta, more)
                 dnbinom(quine$Days, per_row(exp(more[, 1]), eta), mu = exp(eta), log = TRUE),
               normal_prior(2.5), list(exponential_1),
               start = glm_start(glm(Days ~ Sex + Age + Eth + Lrn, poisson(), quine), 0),
               benign = TRUE)
esoph_x <- model.matrix(~ as.numeric(agegp) + as.numeric(alcgp), esoph)
esoph_two <- transform(esoph, a = as.numeric(agegp), b = as.numeric(alcgp))
family_problem("esoph-trials", regression(cbind(ncases, ncontrols) ~ a + b, binomial(),
                                          prior_sd = 2.5), esoph_two,
               esoph_x, function(eta, more)
                 dbinom(esoph$ncases, esoph$ncases + esoph$ncontrols, plogis(eta), log = TRUE),
               normal_prior(2.5), start = list(c(-5, 0.5, 0.7)), benign = TRUE)
lung <- survival::lung
lung_x <- cbind(1, (lung$age - 60) / 10, lung$sex)
lung_frame <- data.frame(time = lung$time, status = lung$status, age = lung_x[, 2],
                         sex = lung_x[, 3])
lung_fit <- survival::survreg(survival::Surv(time, status) ~ age + sex, lung_frame)
lung_start <- list(c(unname(coef(lung_fit)), -log(lung_fit$scale)))
family_problem("lung-times", regression(survival::Surv(time, status) ~ age + sex, weibull(),
                                        prior_sd = 2.5),
               lung_frame, lung_x, function(eta, more) {
                 shape <- per_row(exp(more[, 1]), eta)
                 dead <- matrix(lung$status == 2, nrow(eta), ncol(eta))
                 ifelse(dead, dweibull(lung$time, shape, exp(eta), log = TRUE),
                        -(lung$time / exp(eta))^shape)
               }, normal_prior(2.5), list(exponential_1), start = lung_start)
family_problem("cars-noise-raw", linear_regression(dist ~ speed,
                                                   prior_sd = 1), cars, cbind(1, cars$speed),
               function(eta, more) dnorm(cars$dist, eta, per_row(exp(more[, 1]), eta), log = TRUE),
               normal_prior(1), list(half_t), start = list(c(0, 3, log(15)), c(-17, 4, log(15))))
family_problem("mtcars-grams-cauchy", regression(mpg ~ wt, prior = cauchy(0, 2.5),
                                                  intercept = cauchy(0, 2.5)),
               transform(mtcars, wt = wt / 1000), cbind(1, mtcars$wt / 1000),
               function(eta, more) dnorm(mtcars$mpg, eta, per_row(exp(more[, 1]), eta), log = TRUE),
               function(w) rowSums(dt(w / 2.5, 1, log = TRUE) - log(2.5)), list(half_t),
               start = list(c(37, -5344, 1), c(20, 0, 1.8)))
with_outlier <- transform(cars, dist = dist / 10)
with_outlier$dist[25] <- 1000
family_problem("cars-outlier-t", regression(dist ~ speed, student(4),
                                            prior_sd = 2.5), with_outlier,
               cbind(1, cars$speed), function(eta, more) {
                 s <- per_row(exp(more[, 1]), eta)
                 dt((with_outlier$dist - eta) / s, 4, log = TRUE) - log(s)
               }, normal_prior(2.5), list(half_t), start = list(c(-1, 0.4, 0)))

# Sums over grids: `f` of all points, and the log of the volume of each.
grid_sum <- function(value, log_volume) truth_of(log_sum_exp(value + log_volume), 0, "grid")

separated <- data.frame(x = c(-3, -2, -1, -0.5, 0.5, 1, 2, 3))
separated$y <- as.numeric(separated$x > 0)
add("separated-cauchy", "glm", regression(y ~ x, binomial(), prior = cauchy(0, 2.5),
                                            intercept = cauchy(0, 2.5)), separated,
    function() {
      u <- seq(-9, 9, 0.02)
      axis <- 2.5 * sinh(u)
      prior <- dt(sinh(u), 1, log = TRUE) + log(cosh(u))
      value <- outer(prior, prior, `+`)
      for (i in seq_len(8))
        value <- value + plogis((2 * separated$y[i] - 1) * outer(axis, axis * separated$x[i], `+`),
                                log.p = TRUE)
      grid_sum(value, 2 * log(0.02))
    })
add("one-row-cauchy", "glm", regression(y ~ 1, binomial(), intercept = cauchy(0, 2.5)),
    data.frame(y = 0), function() truth_of(log(0.5), 0, "closed form"))
narrow_y <- made(31, 100 + scale(rnorm(30))[, 1])
add("noise-or-mean", "glm", linear_regression(y ~ 1, prior_sd = 6.02), data.frame(y = narrow_y),
    function() {
      s <- seq(-4, 9, length.out = 20001)
      spread <- exp(2 * s) + 30 * 6.02^2
      value <- half_t(s) - 15 * log(2 * pi) - 29 * s - log(spread) / 2 -
        (sum((narrow_y - mean(narrow_y))^2) / exp(2 * s) + 30 * mean(narrow_y)^2 / spread) / 2
      grid_sum(value, log(s[2] - s[1]))
    })
two_groups <- c(0, 0.1, -0.1, 20, 20.1, 19.9)
add("two-groups-t", "glm", regression(y ~ 1, student(2), prior_sd = 500,
                                      auxiliary = half_normal(0.1)), data.frame(y = two_groups),
    function() {
      grid <- expand.grid(m = c(seq(-3, 3, 0.01), seq(17, 23, 0.01)), s = seq(-5, 0.5, 0.01))
      value <- dnorm(grid$m, 0, 500, log = TRUE) + log(2) +
        dnorm(exp(grid$s), 0, 0.1, log = TRUE) + grid$s
      for (y in two_groups)
        value <- value + dt((y - grid$m) / exp(grid$s), 2, log = TRUE) - grid$s
      grid_sum(value, 2 * log(0.01))
    })
far_groups <- c(0, 0.1, 0.2, 0.05, -0.1, 30, 30.1, 29.9, 30.05, 30.02, 30.01)
add("two-groups-density", "glm",
    density(~ dt((y - m) / 0.1, 2, log = TRUE) - log(0.1), m = ~ 1,
            prior = logevidence::prior_normal(0, 100)),
    data.frame(y = far_groups), function() {
      m <- seq(-20, 50, 0.001)
      value <- dnorm(m, 0, 100, log = TRUE)
      for (y in far_groups) value <- value + dt((y - m) / 0.1, 2, log = TRUE) - log(0.1)
      grid_sum(value, log(0.001))
    })
waves <- made(32, local({
  x <- runif(40, 0, 10)
  data.frame(x = x, y = sin(2.3 * x) + rnorm(40, 0, 0.3))
}))
waves_model <- density(~ dnorm(y, sin(w), s, log = TRUE), w = ~ 0 + x, s = half_normal(1),
                       prior = logevidence::prior_normal(0, 10))
add("waves-density", "glm", waves_model, waves, function() {
  w <- seq(-60, 60, 0.001)
  square <- vapply(w, function(one) sum((waves$y - sin(one * waves$x))^2), 0)
  s <- seq(-4, 2, 0.005)
  inner <- vapply(square, function(q) log_sum_exp(log(2) + dnorm(exp(s), log = TRUE) + s -
                                                    20 * log(2 * pi) - 40 * s - q / 2 / exp(2 * s)),
                  0)
  grid_sum(inner + dnorm(w, 0, 10, log = TRUE), log(0.001) + log(0.005))
})

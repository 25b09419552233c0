# Regressions as users make them: regression(), and linear_regression() for the gaussian family.

#' Regression with a choice of family
#'
#' Regressions as in [glm()], with a prior on every parameter: the response has a distribution of
#' the given family, which depends on a linear function of the covariates (the linear predictor)
#' and, in some families, on a further unknown parameter such as the standard deviation of the
#' noise.
#'
#' @param formula A formula as in [glm()]: factors, interactions, `.`, transformations and
#'   `offset()` are understood, and group-level terms as `(1 + x | g)`; see below. `NULL`, the
#'   default, when the data are `list(x =, y =)`.
#' @param family A family of R: [gaussian()], [poisson()], [binomial()] (links `"logit"` and
#'   `"probit"`) or `Gamma(link = "log")`; one of this package: [student()], [negative_binomial()]
#'   or [weibull()]; or the name of one: `"gaussian"`, `"poisson"`, `"binomial"`, `"gamma"`,
#'   `"student"`, `"negative_binomial"` or `"weibull"`.
#' @param ... Formulas of further parameters, whose left side is the parameter: `sigma ~ z`,
#'   `size ~ g`, `shape ~ x + offset(o)`. See below.
#' @param prior Prior of the coefficients but for the intercept: one for all, as `normal(0, 1)`, or
#'   a list with names of coefficients, in which one prior without a name is that of all others:
#'   `list(normal(0, 1), x = normal(0, 5))`. See [priors]. `NULL`, the default, is `normal(0, 2.5)`
#'   in units of the data; see below. For the family `gaussian()` also [jzs()].
#' @param intercept Prior of the intercept, if the model has one. `NULL`, the default, is
#'   `normal(0, 10)` for `gaussian()` and `student()`, and `normal(0, 5)` for other families, in
#'   units of the data. It may also be named in `prior`, as `"(Intercept)" = normal(0, 5)`.
#' @param auxiliary Prior of the family's further parameters: one prior, or a list named by them.
#'   For a parameter with a formula see below.
#'   `NULL`, the default, is `half_student(3, 2.5)` for `sigma`, in units of the data, and
#'   `exponential(1)` for `size` and `shape`; the prior of `df` is given in `student(df =)`.
#' @param scale Whether priors that are given are those of coefficients of standardised columns; see
#'   below.
#' @param prior_sd,prior_mean Short for normal priors of all coefficients, the intercept included;
#'   see [linear_regression()].
#' @param sigma Short for `auxiliary = list(sigma = )`; or a positive number: the noise of the
#'   family `gaussian()` is then known.
#' @param group_sd Prior of the standard deviations of group-level effects: one prior, or a list
#'   named by factors (`g`) or effects (`g_x`). `NULL`, the default, is `half_student(3, 2.5)`, in
#'   units of the data.
#' @param group_cor Prior of their correlations: [lkj()], the default, or a list named by factors. A
#'   prior of a real number, as `normal(0, 1)`, is that of the inverse hyperbolic tangents of
#'   partial correlations.
#'
#' @details
#' **Priors and units.** The evidence depends on the priors however many data there are. Priors that
#' are not given are in units of the data, so that Bayes factors do not change if a column or the
#' response is measured in other units. With \eqn{u} the standard deviation of the response for
#' `gaussian()` and `student()`, and 1 for other families:
#' * a coefficient is `normal(0, 2.5 u)` per standard deviation of its column. Columns from factors
#'   and logical covariates, and those of no other values than 0 and 1, are not divided by their
#'   standard deviation: their coefficients are differences between groups;
#' * the intercept is that of an average row, of columns minus their means: `normal(c, 10 u)` with
#'   \eqn{c} the mean of the response for `gaussian()` and `student()`; `normal(c, 5)` with the
#'   logarithm of the mean for `Gamma()` and [weibull()], and with \eqn{c = 0} for others. (Offsets
#'   are taken off before.)
#' * `sigma` is `half_student(3, 2.5 u)`, and so are standard deviations of groups, for a slope
#'   divided by the standard deviation of its column.
#'
#' On columns with mean 0 and standard deviation 1 these are the numbers without units. [print()]
#' of a fit shows the numbers that were used, and [prior_summary()] has them all. They are those of
#' the first data: of up to 10,000 rows of a source, or of all rows of a data frame, of
#' [rows_cluster()], and of a table in a database ([rows_dbi()] with `push = TRUE`). They are kept
#' for [predict()], [update()] and further blocks of a stream. So these few numbers of the data are
#' used twice, once for the prior, which changes the log evidence by about their number divided by
#' that of the rows, for all models of the same response alike. A prior that is given is
#' in the units of the columns as they are, and is never changed unless `scale = TRUE`. Without a
#' response, [simulate()], [bdmc()] and [study_design()] use units of one. For comparisons with the
#' priors of package \pkg{BayesFactor} use [jzs()].
#'
#' [print()] of a fit has a note if, under a prior that is given, a column changes the response by
#' far more or far less than the response varies.
#'
#' **Data** are as for [linear_regression()], but for the response:
#' \describe{
#'   \item{[poisson()], [negative_binomial()]}{non-negative whole numbers up to 1e11. Exposure is
#'     `offset(log(exposure))`, as in [glm()];}
#'   \item{[binomial()]}{`cbind(successes, failures)`; or a factor with rows of two levels, of which
#'     the first is failure; or a logical or 0/1 vector. For two classes this has one coefficient
#'     vector, unlike [softmax_regression()];}
#'   \item{[Gamma()]}{positive numbers;}
#'   \item{[weibull()]}{positive times, or `survival::Surv(time, status)`, right-censored;}
#'   \item{[gaussian()], [student()]}{finite numbers.}
#' }
#' Offsets are part of the linear predictor. Rows with missing values are errors, unless
#' [evidence()] is told to leave them out by its `na.action`. There are no `weights`.
#'
#' **Parameters**: the coefficients, with the names of [glm()], then `sigma` (of `gaussian()` and
#' `student()`), `size` (of `negative_binomial()`), `shape` (of `Gamma()` and `weibull()`) and `df`
#' (of `student()` with a prior). In unconstrained space they are logarithms, `log(sigma)` and so
#' on.
#'
#' `exp()` of a coefficient is a ratio of means or rates, of odds or of times: see [families].
#'
#' **Formulas of further parameters.** With `sigma ~ z` the logarithm of `sigma` is a linear
#' function of `z` in each row. Its coefficients are called `sigma_(Intercept)`, `sigma_z` and so
#' on, and are real numbers. Their priors are `student_t(3, 0, 2.5)` for the intercept (of `sigma`
#' around \eqn{\log u}{log(u)}) and `normal(0, 1)` for the others, both for standardised columns; or
#' those of `auxiliary`, by the name of a coefficient or of the parameter, for all its coefficients:
#' `list(sigma = normal(0, 0.5), "sigma_(Intercept)" = normal(0, 2))`. `scale = TRUE` standardises
#' these columns, too. `sigma`, `size` and `shape` can
#' have formulas. An offset is added to the logarithm: a mean of `k` values has `sigma ~
#' offset(-log(k) / 2)`.
#'
#' **Known standard errors** of the rows, as in a meta-analysis, are a column of the data in a
#' [density()][density.formula]: `density(~ dnorm(y, mu, se, log = TRUE), mu = ~ x)`. If the rows
#' differ by more than that, with the standard deviation `tau`: `density(~ dnorm(y, mu, sqrt(tau^2 +
#' se^2), log = TRUE), mu = ~ x, tau = half_normal(1))`.
#'
#' **Group-level effects.** `(1 + x | g)` gives each group of the factor `g` an intercept and a
#' slope of its own, which deviate from those of the population by normal effects. Their standard
#' deviations and correlations are parameters: `sd_g_(Intercept)`, `sd_g_x` and
#' `cor_g_(Intercept)_x`. Terms are written as in \pkg{lme4}: `(1 | g)`, `(x | g)`, `(0 + x | g)`,
#' `(x || g)` without correlations, `(1 | g/h)` for groups within groups, `(1 | a:b)` for
#' combinations, and several terms, `(1 | subject) + (1 | item)`, whose factors may be crossed. They
#' may stand in formulas of further parameters, as `sigma ~ (1 | g)`, too. Columns of effects are
#' standardised by `scale = TRUE` no more than groups are: `group_sd` is in the unit of the column
#' as given.
#'
#' Effects are integrated out in the likelihood: exactly for the family `gaussian()` (from sums over
#' each group, so that its time does not depend on the rows of a group where there is one factor);
#' for other families by adaptive Gauss-Hermite quadrature around the mode of each group (11 nodes
#' for one effect, or 81 where its density is far from normal, 7 and 5 for each of two and three),
#' and for several factors by the Laplace approximation with importance sampling around it. What a
#' finer rule changes is found at draws of the posterior, added to the log evidence and part of its
#' standard error (`fit$correction`). Number of observations is that of rows; in
#' [log_lik()] and in densities a row is a group. See [group_effects()] for the effects, [predict()]
#' for new and known groups, and [tmb_model()] for models with latent variables that a formula does
#' not express.
#'
#' Of `gaussian()` only sums over groups are kept. So rows may come from a source of any size, or
#' from [rows_cluster()], and a group may have rows in several blocks and on several machines; the
#' memory grows with the number of groups. Other models keep all rows of a source in memory, as
#' several models in one call do, unless `keep` is given: then the rows of a group must arrive
#' together, as in a table that is sorted by the groups, and at most `keep` groups (at least 1,000)
#' are in memory. A group that comes again is an error that names its row. Likewise the rows of a
#' group must be in one shard of [rows_cluster()]. Without the rows of all groups their effects are
#' not known: [predict()] needs `groups = FALSE`.
#'
#' [update()][update.evidence] adds rows, of known groups and of others: it fits what the fit has
#' kept of its groups together with the new rows, which takes as long as a new fit. A run with
#' `keep` goes on instead, with rows of other groups.
#'
#' **Standardised columns.** With `scale = TRUE` columns of the model matrix, interactions among
#' them, are centred and divided by their standard deviations, so that a `prior` that is given is
#' that of the change of the linear predictor per standard deviation of the column, and the
#' intercept is that of an average row. Columns stay as they are if they come from factors and
#' logical covariates only, or if their only values are 0 and 1: their coefficients are differences
#' between groups in any case. In a model without an intercept columns are only divided by their
#' standard deviations. The response is never scaled. The evidence is that of the same model fitted
#' to `scale()`d columns.
#'
#' Coefficients of the fit (`coef()`, `fit$draws`) are always those of the columns as given, as in
#' [glm()]; `fit$parameters` and [model_functions()] are in unconstrained space and have those of
#' standardised columns, where priors are those of standardised columns.
#'
#' All densities have their constants, so that families can be compared on the same response: a
#' Poisson regression with a negative binomial one, or a gamma with a Weibull regression.
#'
#' **Runs.** [sgais()] first looks for the posterior mode, from a weighted least-squares fit of the
#' rows, and replaces the annealing of the first rows by importance sampling around it where its
#' weights are even. This matters for counts and times: under a wide prior the likelihoods of draws
#' from the prior differ so much that annealing takes thousands of steps.
#'
#' [predict()] and `fitted()` give the mean of the response, for `cbind(successes, failures)` the
#' mean number of successes; rows of `newdata` without these columns have one trial. `simulate()` of
#' censored times simulates the times of events, without censoring.
#'
#' @inherit gaussian_mean return
#'
#' @references McCullagh, P. and Nelder, J. A. (1989). *Generalized Linear Models*, second edition.
#' Chapman and Hall.
#'
#' @examples
#' counts <- regression(count ~ spray, family = poisson())
#' counts
#' fit <- evidence(counts, InsectSprays, seed = 1)
#' fit
#' coef(fit)
#'
#' # are the counts more variable than Poisson?
#' wide <- evidence(regression(count ~ spray, family = negative_binomial()), InsectSprays, seed = 1)
#' compare_models(poisson = fit, negative_binomial = wide)
#'
#' # do chicks differ in their growth?
#' growth <- function(formula)
#'   evidence(regression(formula, prior = normal(0, 50), auxiliary = half_student(3, 20),
#'                       group_sd = half_student(3, 20)), ChickWeight, seed = 1)
#' compare_models(level = growth(weight ~ Time + (1 | Chick)),
#'                slope = growth(weight ~ Time + (Time | Chick)))
#'
#' # does the noise depend on the speed?
#' noisy <- regression(dist ~ speed, sigma ~ speed, prior = normal(0, 20), scale = TRUE)
#' coef(evidence(noisy, cars, seed = 1))
#'
#' @concept random effects
#' @concept mixed-effects model
#' @concept multilevel model
#' @concept hierarchical model
#' @concept generalized linear model
#' @concept logistic regression
#' @concept Poisson regression
#' @concept heteroscedasticity
#' @seealso [priors], [families]
#' @family models
#' @export
regression <- function(formula = NULL, family = stats::gaussian(), ..., prior = NULL,
                       intercept = NULL, auxiliary = NULL, scale = FALSE, prior_sd = NULL,
                       prior_mean = NULL, sigma = NULL, group_sd = NULL, group_cor = NULL) {
  own_names("family", "prior", "intercept", "auxiliary", "sigma", "group_sd", "group_cor")
  refuse_named(...names())
  formulas <- list(...)
  # as in regression(y ~ x, sigma ~ z)
  if (inherits(family, "formula")) {
    formulas <- c(list(family), formulas)
    family <- stats::gaussian()
  }
  new_regression("regression", formula, check_family(family), formulas, prior, intercept,
                 auxiliary, scale, prior_sd, prior_mean, sigma, group_sd, group_cor)
}

#' What to write in the place of a response with `|`, as of brms: `y | se(se) ~ x`
#' @noRd
bar_advice <- function(formula) {
  of <- formula[[2]][[2]]
  what <- formula[[2]][[3]]
  y <- deparse1(of)
  second <- if (is.call(what) && length(what) > 1) deparse1(what[[2]])
  called <- if (is.call(what)) deparse1(what[[1]]) else ""
  switch(called,
    cens = paste0(" Right-censored times are `survival::Surv(", y, ", 1 - ", second,
                  ")`, whose second argument is 1 for an event."),
    trials = paste0(" Successes among trials are `cbind(", y, ", ", second, " - ", y, ")`."),
    weights = paste(" The rows of a likelihood have no weights: give a row as often as it was",
                    "observed."),
    known_noise_advice(formula_of_sides(of, formula[[3]])))
}

#' The model of regression() and linear_regression(), which is called `name`
#' @noRd
new_regression <- function(name, formula, family, formulas, prior, intercept, auxiliary, scale,
                           prior_sd, prior_mean, sigma, group_sd, group_cor) {
  formula <- check_formula(formula, 2)
  if (is_bar(formula[[2]]))
    fail("`formula` must have a response without `|`, not `", deparse1(formula[[2]]), "`.",
         bar_advice(formula))
  grouped <- any(vapply(c(list(formula), formulas), has_bars, NA))
  if (!grouped && (!is.null(group_sd) || !is.null(group_cor)))
    fail("`group_sd` and `group_cor` are for formulas with group-level terms, ", GROUP_EXAMPLE,
         ".")
  scale <- check_flag(scale, "scale")
  if (is_jzs(prior)) {
    others <- list(intercept = intercept, auxiliary = auxiliary, prior_sd = prior_sd,
                   prior_mean = prior_mean, sigma = sigma, scale = if (scale) TRUE,
                   `...` = if (length(formulas)) formulas)
    given <- names(others)[!vapply(others, is.null, NA)]
    if (length(given)) fail("`", given[1], "` must not be given with `prior = jzs()`.")
    if (!is_normal(family))
      fail("`prior = jzs()` is for the family gaussian, not for ", family$family, ".")
    if (has_factor_priors(formula, prior))
      return(factor_regression(name, formula, with_factor_scales(prior)))
    return(jzs_regression(name, formula, prior))
  }
  if (!has_bars(formula)) check_has_terms(formula)
  formulas <- check_further_formulas(formulas, formula, family)
  if (!is.null(sigma)) {
    check_sigma(sigma, family, formulas, auxiliary, formula)
    if (is_prior(sigma)) auxiliary <- list(sigma = sigma) else family$sigma <- as.double(sigma)
  }
  auxiliary <- check_auxiliary(auxiliary, family, names(formulas))
  settings <- c(coefficient_settings(prior, intercept, prior_sd, prior_mean, family$link), list(
    family = family, formulas = formulas, auxiliary = auxiliary$numbers,
    further_prior = auxiliary$coefficients, scale = scale
  ))
  if (grouped && max(vapply(c(list(formula), formulas), formula_lag, 0)) > 0)
    fail("`formula` must have no lags() with group-level terms, whose rows have no order.")
  if (grouped)
    grouped_regression(name, formula, c(settings, group_settings(group_sd, group_cor)),
                       split_groups(formula), lapply(formulas, split_groups))
  else if (!is.null(family$sigma) && has_normal_priors(settings))
    known_noise(name, formula, settings)
  else family_regression(name, formula, settings)
}

check_sigma <- function(sigma, family, formulas, auxiliary, formula) {
  if (!"sigma" %in% further_names(family))
    fail("`sigma` must not be given for the family ", family$family,
         ", which has no parameter of this name.")
  if (!is.null(formulas$sigma)) fail("`sigma` must have a formula or a prior, not both.")
  if (!is.null(auxiliary)) fail("`sigma` must not be given with `auxiliary`: it is short for it.")
  if (is_prior(sigma)) return(check_prior(sigma, "sigma", FALSE))
  rule <- "a positive number or a prior, such as `half_student(3, 2.5)`"
  if (!is_normal(family)) rule <- "a prior, such as `half_student(3, 2.5)`"
  # the noise of each row, or the column that has it
  several <- is.numeric(sigma) && length(sigma) > 1
  if (is_normal(family) && (several || is_one_string(sigma) && nzchar(sigma)))
    fail("`sigma` must be ", rule, ", not ", show_value(sigma), ".",
         known_noise_advice(formula, if (several) quote(se) else as.name(sigma)))
  if (!is_one_number(sigma) || sigma <= 0 || !is_normal(family))
    refuse_made(sigma, "sigma", rule, "prior")
}

#' Linear regression
#'
#' The response is a linear function of the covariates plus normal noise, whose standard deviation
#' `sigma` is unknown with a prior, or known:
#' \deqn{y_i \sim N(x_i'w, \sigma^2), \qquad w_j \sim N(m_j, s_j^2).}{
#' y[i] ~ N(x[i]'w, sigma^2), w[j] ~ N(m[j], s[j]^2).}
#' This is [regression()] with the family `gaussian()`: the same model, the same defaults and the
#' same numbers. With normal priors the evidence is known without Monte Carlo error (see [exact()]).
#' Other methods also give the evidence of a growing data stream, and can be tested against the
#' exact evidence.
#'
#' @param formula A formula as in [lm()]: factors, interactions, `.`, transformations such as
#'   `log(y)`, `I()` and `poly()`, and `offset()` are understood. `NULL`, the default, when the data
#'   are `list(x =, y =)`.
#' @param sigma Standard deviation of the noise, in units of the response: its prior, one of
#'   `half_student()`, `half_normal()`, `exponential()` and `inverse_gamma()` (see [priors]); or a
#'   positive number, if it is known. `NULL`, the default, is `half_student(3, 2.5)` in units of the
#'   data: see [regression()].
#' @param prior_sd,prior_mean Short for normal priors: standard deviation (positive) and mean of the
#'   coefficients, the intercept included. One number for all, or one for each coefficient, in the
#'   order of the coefficients or named by them (`c("(Intercept)" = 10, x = 1)`). If names leave out
#'   the intercept, it has the prior `intercept`, or its default.
#' @param prior,intercept,auxiliary,scale,group_sd,group_cor As in [regression()]; or `prior =`
#'   [jzs()], which replaces the priors of coefficients and noise by a default prior that has no
#'   units.
#' @param ... A formula for the noise, `sigma ~ z`, as in [regression()]. There are no `weights`;
#'   `na.action` is an argument of [evidence()].
#'
#' @details
#' **Data** for a model with a formula are a data frame, or a numeric matrix with column names. All
#' variables of the formula must be columns; only constants, as `k` in `poly(x, k)`, may come from
#' elsewhere, and keep the values that they have when the model is made. Character columns are
#' factors; those of numbers, and those with more than 20 values of which most do not repeat, are
#' errors: convert them, or write `factor(x)` in the formula. All levels of a factor are kept,
#' because later chunks may have rows of levels without rows so far; with a proper prior such levels
#' do not change the evidence, unless the first level has no rows. [print()] of the fit names them,
#' and [droplevels()] of the data leaves them out, as [lm()] does. Under [jzs()] they are always
#' left out. Contrasts are those of
#' `options("contrasts")` or of the factor. Dates must be converted to numbers first, in the formula
#' or in the data.
#'
#' Data for a model without formula are `list(x =, y =)`, `x` a numeric matrix (or vector) and `y` a
#' numeric vector. A first column of ones called `(Intercept)` is added unless `x` has a column of
#' that name (as a [model.matrix()] does); for a model without an intercept use a formula with `0
#' +`.
#'
#' Offsets are subtracted from the response. Missing and infinite values are errors. More
#' coefficients than rows, constant columns and repeated rows are all allowed. If the coefficients
#' fit the response exactly, with rows to spare, the evidence is infinite under all priors of
#' `sigma` but `inverse_gamma()`, and [exact()] says so.
#'
#' **Parameters**: the coefficients, with the names of [lm()], and `sigma` if it is unknown, which
#' is `log(sigma)` in unconstrained space.
#'
#' @inherit gaussian_mean return
#'
#' @references Bishop, C. M. (2006). *Pattern Recognition and Machine Learning*, sections 3.3 and
#' 3.5. Springer.
#'
#' @examples
#' model <- linear_regression(dist ~ speed, sigma = half_student(3, 20),
#'                            prior_sd = c("(Intercept)" = 20, speed = 5))
#' model
#' fit <- evidence(model, cars, exact(), seed = 1)
#' fit
#' coef(fit)
#'
#' # by sampling
#' evidence(model, cars, seed = 1)
#'
#' # known noise, from a matrix
#' xy <- list(x = cbind(speed = cars$speed), y = cars$dist)
#' model_functions(linear_regression(sigma = 15, prior_sd = c(20, 5)), xy)$exact()
#'
#' @seealso [regression()], [jzs()], [model_functions()]
#' @family models
#' @export
linear_regression <- function(formula = NULL, sigma = NULL, prior_sd = NULL, prior_mean = NULL,
                              prior = NULL, intercept = NULL, auxiliary = NULL, scale = FALSE,
                              group_sd = NULL, group_cor = NULL, ...) {
  own_names("sigma", "prior", "intercept", "auxiliary", "group_sd", "group_cor")
  refuse_named(...names())
  # as in linear_regression(y ~ x, sigma ~ z)
  formulas <- c(if (inherits(sigma, "formula")) list(sigma), list(...))
  if (inherits(sigma, "formula")) sigma <- NULL
  new_regression("linear_regression", formula, check_family("gaussian"), formulas, prior,
                 intercept, auxiliary, scale, prior_sd, prior_mean, sigma, group_sd, group_cor)
}

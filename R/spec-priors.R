# Priors as objects: a kind and its numbers, which C reads (src/models/glm/priors.h).

# In the order of le_prior_kind.
PRIOR_KINDS <- c("normal", "student_t", "half_normal", "half_student", "inverse_gamma",
                 "exponential", "correlation")
REAL_PRIORS <- c("normal", "student_t")

#' Prior distributions
#'
#' Prior distributions of the parameters of [regression()], and of the noise of
#' [linear_regression()].
#'
#' @param mean,location Centre of the distribution.
#' @param sd,scale Standard deviation or scale, positive. For half distributions it is that of the
#'   distribution of which they are the positive half.
#' @param df Degrees of freedom, positive.
#' @param shape,rate Shape or rate, positive.
#'
#' @details
#' **Coefficients** are real numbers and have `normal()`, `student_t()` or `cauchy()` priors:
#' `cauchy()` is `student_t()` with one degree of freedom. The unit of a coefficient is that of the
#' linear predictor per unit of the covariate.
#'
#' **Further parameters** (`sigma`, `size`, `shape`, `df`) are positive and have one of the others.
#' Each is the prior of the parameter itself: `inverse_gamma()` of a standard deviation is not the
#' inverse gamma distribution of a variance. Its density is proportional to `x^(-shape - 1) *
#' exp(-scale / x)`.
#'
#' The evidence depends on these distributions however many data there are, so choose them for the
#' units of the data.
#'
#' **Names.** In arguments of models the names do without `prior_`, as here, whatever packages are
#' attached. Elsewhere write `prior_normal()`: see [logevidence_names].
#'
#' @section One-sided hypotheses:
#' Coefficients have priors on all real numbers. A hypothesis about a sign, such as \eqn{b > 0}{b >
#' 0}, cuts such a prior in two, and needs no fit of its own: its Bayes factor over the model
#' without the restriction is the posterior probability of the sign divided by the prior one, which
#' is 1/2 if the prior is symmetric around zero (Klugkist and Hoijtink, 2007). So this is added to
#' the log evidence:
#' ```
#' draws <- posterior_draws(fit)
#' weights <- exp(attr(draws, "log_weights"))
#' share <- sum(weights[draws[, "x"] > 0])
#' log(share / 0.5)
#' ```
#' with the standard error `sqrt((1 - share) / share * sum(weights^2))`. An order of several
#' coefficients is the same, with the share of draws in this order, and the prior share, as 1/6 for
#' three coefficients with the same prior. If only few draws are inside, give the sign to the model:
#' parameters of [density()] may be positive, as `b` in `density(~ dnorm(y, a + b * x, s, log =
#' TRUE), a = normal(0, 10), b = half_normal(2), s = half_student(3, 2.5))`. The article *Priors,
#' and what they do to the evidence* has both on data.
#'
#' @return An object of class `"evidence_prior"`.
#'
#' @references
#' Klugkist, I. and Hoijtink, H. (2007). The Bayes factor for inequality and about equality
#' constrained models. *Computational Statistics & Data Analysis* 51, 6367-6379.
#'
#' @examples
#' prior_normal(0, 2.5)
#' prior_half_student(3, 10)
#'
#' # one coefficient with a prior of its own
#' model <- regression(dist ~ speed, prior = list(normal(0, 5), "(Intercept)" = normal(0, 50)),
#'                     auxiliary = half_student(3, 15))
#' model
#' model_functions(model, cars)$names
#'
#' @concept one-sided hypothesis
#' @concept directional test
#' @concept order-restricted hypothesis
#' @seealso [regression()]
#' @aliases cauchy exponential half_normal half_student inverse_gamma
#'   normal student_t
#' @name priors
NULL

#' @rdname priors
#' @export
prior_normal <- function(mean = 0, sd = 1) {
  new_prior("normal", list(mean = check_number(mean, "mean"), sd = check_positive(sd, "sd")),
            location = mean, scale = sd)
}

#' @rdname priors
#' @export
prior_student_t <- function(df = 3, location = 0, scale = 1) {
  new_prior("student_t",
            list(df = check_positive(df, "df"), location = check_number(location, "location"),
                 scale = check_positive(scale, "scale")),
            location = location, scale = scale, shape = df)
}

#' @rdname priors
#' @export
prior_cauchy <- function(location = 0, scale = 1) {
  check_number(location, "location")
  student_t(1, location, check_positive(scale, "scale"))
}

#' @rdname priors
#' @export
prior_half_normal <- function(sd = 1) {
  new_prior("half_normal", list(sd = check_positive(sd, "sd")), scale = sd)
}

#' @rdname priors
#' @export
prior_half_student <- function(df = 3, scale = 1) {
  new_prior("half_student",
            list(df = check_positive(df, "df"), scale = check_positive(scale, "scale")),
            scale = scale, shape = df)
}

#' @rdname priors
#' @export
prior_inverse_gamma <- function(shape = 1, scale = 1) {
  new_prior("inverse_gamma",
            list(shape = check_positive(shape, "shape"), scale = check_positive(scale, "scale")),
            scale = scale, shape = shape)
}

#' @rdname priors
#' @export
prior_exponential <- function(rate = 1) {
  new_prior("exponential", list(rate = check_positive(rate, "rate")), scale = 1 / rate)
}

# `shown` are the numbers as the user gave them; the others are those that C reads.
new_prior <- function(kind, shown, location = 0, scale = 1, shape = 1) {
  prior <- list(kind = kind, shown = shown, location = as.double(location),
                scale = as.double(scale), shape = as.double(shape))
  class(prior) <- "evidence_prior"
  prior
}

# Are its numbers those of the data as they are? Else they are in units of the data
# (R/spec-prior-units.R).
has_units <- function(prior) is.null(.subset2(prior, "unit"))

#' @export
format.evidence_prior <- function(x, ...) {
  paste0(x$kind, "(", paste(names(x$shown), "=", format_each(unlist(x$shown)), collapse = ", "),
         ")", if (!has_units(x)) ", in units of the data")
}

#' @export
print.evidence_prior <- function(x, ...) {
  cat("Prior: ", format(x), "\n", sep = "")
  invisible(x)
}

#' The default prior of Jeffreys, Zellner and Siow
#'
#' A prior for [linear_regression()] that has no units: it does not change if the response or a
#' covariate is measured in other units. It gives the Bayes factors of the functions
#' `regressionBF()`, `lmBF()` (for numeric covariates) and `ttestBF()` of package \pkg{BayesFactor}.
#'
#' @param scale Scale of the coefficients, positive: the prior of standardised effects is a Cauchy
#'   distribution of this scale. The default is "medium" for regressions in \pkg{BayesFactor};
#'   "wide" is `1/2` and "ultrawide" is `sqrt(2)/2`.
#' @param flat_intercept Whether the intercept has a flat density and is common to all models that
#'   are compared. With `FALSE` it has a prior as the other coefficients, so that its evidence can
#'   be asked for.
#' @param fixed,random Scales of the effects of factors, positive: those of covariates, and those of
#'   group-level terms, as `(1 | subject)`. `fixed = NULL`, the default, treats a factor as its
#'   columns in [lm()]; with group-level terms it is `1/2`. See below.
#'
#' @details
#' With \eqn{n} rows, an intercept and covariates \eqn{X} minus their means,
#' \deqn{w \sim N(0, g \sigma^2 n (X'X)^{-1}), \qquad g \sim \textrm{inverse gamma}(1/2,
#' \textrm{scale}^2 / 2),}{w ~ N(0, g sigma^2 n (X'X)^-1), g ~ inverse gamma(1/2, scale^2 / 2),}
#' the density of the intercept is 1, and that of \eqn{\sigma^2}{sigma^2} is
#' \eqn{1 / \sigma^2}{1 / sigma^2}. Without an intercept, or with `flat_intercept = FALSE`, means
#' are not subtracted and \eqn{X} has all covariates.
#'
#' **Factors.** With `fixed` given, or with group-level terms `(1 | g)`, factors have the priors of
#' Rouder et al. (2012), those of `anovaBF()` and `lmBF(whichRandom = )`: the effects of a factor,
#' or of an interaction of factors, are those of orthonormal contrasts with independent normal
#' densities of variance \eqn{g \sigma^2}{g sigma^2} and \eqn{g \sim}{g ~} inverse gamma(1/2,
#' `fixed`^2 / 2), with a `g` for each; those of the groups are one for each group, with `random` in
#' place of `fixed`. All numeric covariates have the prior above. `fixed = 1/2` is "medium",
#' `sqrt(2)/2` "wide", 1 "ultrawide", `random = 1` "nuisance". Given all `g` the evidence has a
#' closed form, and the integral over their logarithms is by [sgais()] or any other method. The
#' model is for comparisons and has no predictions.
#'
#' **Only ratios have a meaning.** The densities of intercept and noise are improper, and therefore
#' the evidence has an arbitrary factor. It is the same in all models of the same response with the
#' same improper parts, and cancels in their ratios. [compare_models()] and [bayes_factor()] refuse
#' to compare such a fit with one that has a proper prior, or with one that has a flat intercept if
#' the other has none.
#'
#' **Method.** The evidence is an integral over `g`, which [exact()] computes. There is nothing to
#' anneal from, because the prior cannot be drawn from: [evidence()] uses `exact()` unless told
#' otherwise, and other methods are refused. All rows must be in memory. Linearly dependent
#' covariates, and as many coefficients as rows, are errors.
#'
#' **Tests of means.** One sample against zero: `y ~ 1` with `flat_intercept = FALSE` and `scale =
#' sqrt(2)/2`, against `y ~ 0` with the same prior. Two groups of \eqn{n_1}{n1} and \eqn{n_2}{n2}
#' observations: `y ~ group` against `y ~ 1`; for `rscale` of `ttestBF()` give
#' `scale = rscale * sqrt(n1 * n2) / (n1 + n2)`, half of it for groups of the same size. A factor is
#' its columns here, as for `lm()`; `lmBF()` has another prior for factors.
#'
#' @return An object of class `"evidence_jzs"`.
#'
#' @references
#' Liang, F., Paulo, R., Molina, G., Clyde, M. A. and Berger, J. O. (2008). Mixtures of g priors for
#' Bayesian variable selection. *Journal of the American Statistical Association* 103, 410-423.
#'
#' Rouder, J. N. and Morey, R. D. (2012). Default Bayes factors for model selection in regression.
#' *Multivariate Behavioral Research* 47, 877-903.
#'
#' Rouder, J. N., Morey, R. D., Speckman, P. L. and Province, J. M. (2012). Default Bayes factors
#' for ANOVA designs. *Journal of Mathematical Psychology* 56, 356-374.
#'
#' Zellner, A. and Siow, A. (1980). Posterior odds ratios for selected regression hypotheses.
#' *Trabajos de Estadistica y de Investigacion Operativa* 31, 585-603.
#'
#' @examples
#' fit <- function(formula) evidence(linear_regression(formula, prior = jzs()), attitude, seed = 1)
#' compare_models(none = fit(rating ~ 1), complaints = fit(rating ~ complaints),
#'                both = fit(rating ~ complaints + learning))
#'
#' # the t-test of one sample against zero
#' one <- function(formula)
#'   evidence(linear_regression(formula, prior = jzs(sqrt(2) / 2, flat_intercept = FALSE)), sleep)
#' bayes_factor(one(extra ~ 1), one(extra ~ 0))
#'
#' # the t-test of two groups of ten
#' test <- function(formula)
#'   evidence(linear_regression(formula, prior = jzs(sqrt(2) / 4)), sleep, seed = 1)
#' bayes_factor(test(extra ~ group), test(extra ~ 1))
#'
#' @concept t-test
#' @concept t test
#' @concept ANOVA
#' @concept analysis of variance
#' @concept repeated measures
#' @concept default Bayes factor
#' @seealso [linear_regression()], [priors]
#' @aliases jzs
#' @export
prior_jzs <- function(scale = sqrt(2) / 4, flat_intercept = TRUE, fixed = NULL, random = 1) {
  structure(list(scale = check_positive(scale, "scale"),
                 flat_intercept = check_flag(flat_intercept, "flat_intercept"),
                 fixed = if (!is.null(fixed)) check_positive(fixed, "fixed"),
                 random = check_positive(random, "random")),
            class = "evidence_jzs")
}

# "medium" of BayesFactor
with_factor_scales <- function(prior) {
  if (is.null(prior$fixed)) prior$fixed <- 1 / 2
  prior
}

is_jzs <- function(x) is_made(x, "evidence_jzs")

#' @export
format.evidence_jzs <- function(x, ...) {
  paste0("jzs(scale = ", format_each(x$scale), if (!x$flat_intercept) ", flat_intercept = FALSE",
         if (!is.null(x$fixed)) paste0(", fixed = ", format_each(x$fixed), ", random = ",
                                       format_each(x$random)), ")")
}

#' @export
print.evidence_jzs <- function(x, ...) {
  cat("Prior: ", format(x), "\n", sep = "")
  invisible(x)
}

is_prior <- function(x) is_made(x, "evidence_prior")

#' One prior of the right kind
#'
#' @param real Whether it is that of a real number; NA allows both.
#' @noRd
check_prior <- function(x, name, real) {
  if (is.na(real)) real <- !is_prior(x) || x$kind %in% REAL_PRIORS
  rule <- if (real) "a prior of a real number, such as `normal(0, 2.5)`"
  else "a prior of a positive number, such as `half_student(3, 2.5)`"
  if (!is_prior(x)) refuse_made(x, name, rule, "prior")
  if (real != x$kind %in% REAL_PRIORS)
    fail("`", name, "` must be ", rule, ", not ", format(x), ".",
         if (real) " For a coefficient of one sign see \"One-sided hypotheses\" in ?priors.")
  x
}

#' A prior for all parameters, or a list of them, named but for at most one (that of all others)
#' @noRd
check_priors <- function(x, name, real) {
  if (is_prior(x)) return(list(check_prior(x, name, real)))
  if (is_jzs(x))
    fail("`", name, "` must not be `jzs()`, which is for linear_regression(): give ",
         if (is.na(real) || real) "`normal(0, 2.5)` or another prior of a real number."
         else "`half_student(3, 2.5)` or another prior of a positive number.")
  if (is.list(x) && is_one_string(unclass(x)[["dist"]]))
    fail("`", name, "` must be a prior of this package, not one of rstanarm.",
         prefix_advice("prior"))
  if (inherits(x, "brmsprior"))
    fail("`", name, "` must be a prior of this package, not one of brms: for example ",
         "`normal(0, 2.5)` for all coefficients, or `list(x = normal(0, 1))` for that of `x`.",
         prefix_advice("prior"))
  if (!is.list(x) || length(x) == 0 || is.object(x))
    refuse_made(x, name, "a prior or a list of priors", "prior")
  names <- if (is.null(names(x))) rep("", length(x)) else names(x)
  if (sum(names == "") > 1)
    fail("`", name, "` must have names for all priors but one, not ", sum(names == ""),
         " without.")
  if (anyDuplicated(names))
    fail("`", name, "` must have one prior for each parameter, not several for `",
         names[anyDuplicated(names)], "`.")
  for (k in seq_along(x))
    check_prior(x[[k]], paste0(name, if (names[k] != "") paste0("$", names[k])), real)
  x
}

#' The prior of each of the parameters called `labels`
#'
#' @param priors From check_priors().
#' @param fallback Named priors of parameters that `priors` does not name.
#' @noRd
match_priors <- function(priors, name, labels, fallback = list()) {
  names <- if (is.null(names(priors))) rep("", length(priors)) else names(priors)
  unknown <- names[names != "" & is.na(match(names, labels))]
  if (length(unknown))
    fail("`", name, "` must be named by parameters (", show_names(labels), "), not by `",
         unknown[1], "`.")
  at <- match(labels, names)
  at[is.na(at)] <- match("", names)
  missing <- labels[is.na(at) & is.na(match(labels, names(fallback)))]
  if (length(missing))
    fail("`", name, "` must have a prior for each parameter, or one without a name for the ",
         "others, not none for `", missing[1], "`.")
  found <- unclass(priors)[at]
  for (k in which(is.na(at))) found[k] <- fallback[labels[k]]
  names(found) <- labels
  found
}

#' Priors as C reads them
#' @noRd
prior_args <- function(priors) {
  kind <- character(length(priors))
  location <- scale <- shape <- numeric(length(priors))
  for (i in seq_along(priors)) {
    prior <- unclass(priors[[i]])
    kind[i] <- prior$kind
    location[i] <- prior$location
    scale[i] <- prior$scale
    shape[i] <- prior$shape
  }
  list(prior_kind = match(kind, PRIOR_KINDS) - 1, prior_location = location, prior_scale = scale,
       prior_shape = shape)
}

show_priors <- function(priors) {
  texts <- vapply(priors, format, "")
  names <- names(priors)
  if (is.null(names)) texts else paste0(ifelse(names == "", "", paste0(names, " ~ ")), texts)
}

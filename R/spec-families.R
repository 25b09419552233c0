# Families of regression(): what R knows of each. C has the densities (src/models/glm/).

#' Families of regressions
#'
#' Families for [regression()] besides [poisson()], [binomial()], [gaussian()] and [Gamma()] of R.
#'
#' @param df Degrees of freedom of the t distribution: a positive number if they are known, or a
#'   prior, as `inverse_gamma(2, 10)`, if they are a parameter.
#'
#' @details
#' With linear predictor \eqn{\eta}{eta}:
#' \describe{
#'   \item{`student()`}{The response has a t distribution around \eqn{\eta}{eta} with scale `sigma`:
#'     a linear regression in which single responses may lie far away.}
#'   \item{`negative_binomial()`}{Counts with mean \eqn{\mu = e^\eta}{mu = exp(eta)} and variance
#'     \eqn{\mu + \mu^2 / }{mu + mu^2 / }`size`, as in `MASS::glm.nb()`, which calls it `theta`.}
#'   \item{`weibull()`}{Times with scale \eqn{e^\eta}{exp(eta)} and exponent `shape`, as in
#'     `survival::survreg()`, whose `scale` is one over `shape`. The response is a vector of times
#'     or a right-censored `survival::Surv()` object.}
#' }
#'
#' **Ratios.** `exp()` of a coefficient, as `tidy(fit, exponentiate = TRUE)` gives it, is a ratio of
#' \tabular{ll}{
#'   [poisson()], `negative_binomial()` \tab means; of rates, if the exposure is an offset \cr
#'   [Gamma()] \tab means \cr
#'   [binomial()] with the link `"logit"` \tab odds \cr
#'   `weibull()` \tab times, as in `survival::survreg()`: above 1 events come later. The ratio of
#'     hazards, as in `survival::coxph()`, is `exp(-shape * coefficient)`. \cr
#'   [gaussian()], `student()`, `"probit"` \tab nothing: the link is not a logarithm
#' }
#'
#' **Other families** are a line or three of [density()], which takes any log density of a row and
#' runs at about the same speed. With a predictor `mu = ~ x`, and `gap`, `phi`, `sigma` given a
#' prior. `mean` and `simulate` are what [predict()] and [simulate()][simulate.evidence] need; where
#' the density is one of R they are known without these arguments.
#' \describe{
#'   \item{zero-inflated counts}{`density(~ ifelse(y == 0, log(plogis(p) + plogis(-p) *
#'     exp(-exp(mu))), plogis(-p, log.p = TRUE) + dpois(y, exp(mu), log = TRUE)), mu = ~ x, p = ~ 1,
#'     mean = ~ plogis(-p) * exp(mu), simulate = y ~ rbinom(n, 1, plogis(-p)) * rpois(n,
#'     exp(mu)))`: `plogis(p)` is the share of additional zeros.}
#'   \item{hurdle}{`density(~ ifelse(y == 0, plogis(p, log.p = TRUE), plogis(-p, log.p = TRUE) +
#'     dpois(y, exp(mu), log = TRUE) - log(-expm1(-exp(mu)))), mu = ~ x, p = ~ 1, mean = ~
#'     plogis(-p) * exp(mu) / -expm1(-exp(mu)), simulate = y ~ rbinom(n, 1, plogis(-p)) * (1 +
#'     rpois(n, exp(mu) + log1p(runif(n) * expm1(-exp(mu))))))`: `plogis(p)` is the probability of
#'     zero.}
#'   \item{ordinal, three classes 1, 2, 3}{`density(~ ifelse(y == 1, plogis(low - mu, log.p = TRUE),
#'     ifelse(y == 2, log(plogis(low + gap - mu) - plogis(low - mu)), plogis(mu - low - gap, log.p =
#'     TRUE))), mu = ~ 0 + x, low = ~ 1, gap = exponential(1), mean = ~ 1 + plogis(mu - low) +
#'     plogis(mu - low - gap), simulate = y ~ {z <- rlogis(n, mu); 1 + (z > low) + (z > low +
#'     gap)})`: cumulative logits, with the limits `low` and `low + gap`; the mean is that of the
#'     number of the class. Each further class is one more `ifelse()` and `gap`.}
#'   \item{beta}{`density(~ dbeta(y, plogis(mu) * phi, plogis(-mu) * phi, log = TRUE), mu = ~ x, phi
#'     = exponential(0.1))`}
#'   \item{lognormal}{`density(~ dlnorm(y, mu, sigma, log = TRUE), mu = ~ x, sigma =
#'     half_student(3, 2.5))`}
#'   \item{exponential}{`density(~ dexp(y, exp(-mu), log = TRUE), mu = ~ x)`}
#'   \item{geometric}{`density(~ dgeom(y, plogis(mu), log = TRUE), mu = ~ x)`}
#'   \item{complementary log-log, 0 or 1}{`density(~ ifelse(y == 1, log(-expm1(-exp(mu))),
#'     -exp(mu)), mu = ~ x, mean = ~ -expm1(-exp(mu)), simulate = y ~ rbinom(n, 1,
#'     -expm1(-exp(mu))))`}
#'   \item{inverse Gaussian}{`density(~ (log(phi) - log(2 * pi * y^3)) / 2 - phi * (y * exp(-mu) -
#'     1)^2 / (2 * y), mu = ~ x, phi = exponential(1), mean = ~ exp(mu), simulate = y ~ {w <-
#'     exp(mu) * rnorm(n)^2 / phi; r <- 1 + (w - sqrt(w * (4 + w))) / 2; exp(mu) * ifelse(runif(n) *
#'     (1 + r) < 1, r, 1 / r)})`: the mean is `exp(mu)` and the variance its cube divided by `phi`.}
#'   \item{skew-normal}{`density(~ log(2) + dnorm(y, mu, sigma, log = TRUE) + pnorm(slant * (y - mu)
#'     / sigma, log.p = TRUE), mu = ~ x, slant = ~ 1, sigma = half_student(3, 2.5), mean = ~ mu +
#'     sigma * slant * sqrt(2 / pi / (1 + slant^2)), simulate = y ~ mu + sigma * (slant *
#'     abs(rnorm(n)) + rnorm(n)) / sqrt(1 + slant^2))`}
#' }
#' A von Mises density has a Bessel function, which `density()` does not know: see
#' [custom_model()].
#'
#' In arguments the names do without `family_`, as `regression(dist ~ speed, student())`, see
#' [logevidence_names]; or give the name as text: `"student"`.
#'
#' @return An object of class `"regression_family"`.
#'
#' @examples
#' family_student(df = 4)
#' regression(dist ~ speed, family = student(df = inverse_gamma(2, 10)))
#'
#' @concept zero-inflated counts
#' @concept hurdle model
#' @concept ordinal regression
#' @concept proportional odds
#' @concept beta regression
#' @concept lognormal regression
#' @concept robust regression
#' @concept overdispersion
#' @concept survival analysis
#' @seealso [regression()], [density()][density.formula], [priors]
#' @aliases negative_binomial student weibull
#' @name families
NULL

#' @rdname families
#' @export
family_student <- function(df = 4) {
  own_names("df")
  if (is_prior(df)) return(new_family("student", df = check_prior(df, "df", FALSE)))
  if (!is_one_number(df) || df <= 0) refuse(df, "df", "a positive number or a prior")
  new_family("student", df = as.double(df))
}

#' @rdname families
#' @export
family_negative_binomial <- function() new_family("negative_binomial")

#' @rdname families
#' @export
family_weibull <- function() new_family("weibull")

# All that the package knows of a family, which is a row of this table and two files in C:
#
# title, likelihood   as print() shows them
# links               types in C, by link; the first is the default
# known               the type in C where a further parameter is a known number
# response            which of the rules of family_response() the response must obey
# further             names of the further parameters
# make                the constructor of a family that has an argument
# of_r                the family of R, given its link
# ratio               of what exp() of a coefficient is a ratio, by link
# normal, heavy       is the noise normal; are the tails heavy?
# shape_power         density of a row that is fitted exactly, as a power of a large `shape`
# mean                the mean of the response, if it is not the inverse of the link
# advice, insight     what to write for a link that is refused; the name in package insight
FAMILIES <- list(
  poisson = list(title = "Poisson regression", links = c(log = "poisson"),
                 likelihood = "counts with mean exp(linear predictor)", response = "counts",
                 ratio = c(log = "means (of rates, if the exposure is an offset)"),
                 of_r = stats::poisson),
  binomial = list(title = "Binomial regression", links = c(logit = "binomial", probit = "probit"),
                  likelihood = "successes with probability given by the linear predictor",
                  response = "successes", ratio = c(logit = "odds"), of_r = stats::binomial,
                  mean = function(mean, extra, further) if (is.null(extra)) mean else extra * mean),
  gaussian = list(title = "Linear regression, unknown noise", links = c(identity = "gaussian"),
                  likelihood = "response normal around the linear predictor, sd `sigma`",
                  response = "numbers", further = "sigma", known = "gaussian_known",
                  of_r = stats::gaussian, normal = TRUE),
  student = list(title = "Student t regression", links = c(identity = "student"),
                 likelihood = "response t distributed around the linear predictor, scale `sigma`",
                 response = "numbers", further = c("sigma", "df"), known = "student_fixed",
                 make = family_student, heavy = TRUE),
  negative_binomial = list(title = "Negative binomial regression",
                           links = c(log = "negative_binomial"),
                           likelihood = paste("counts with mean m = exp(linear predictor) and",
                                              "variance m + m^2 / `size`"),
                           response = "counts", further = "size",
                           ratio = c(log = "means (of rates, if the exposure is an offset)"),
                           insight = "negbinomial"),
  gamma = list(title = "Gamma regression", links = c(log = "gamma"),
               likelihood = "response gamma with mean exp(linear predictor) and `shape`",
               response = "positive", further = "shape", ratio = c(log = "means"),
               of_r = stats::Gamma, shape_power = 1 / 2,
               advice = " Write `Gamma(link = \"log\")`."),
  weibull = list(title = "Weibull regression", links = c(log = "weibull"),
                 likelihood = "times Weibull with scale exp(linear predictor) and `shape`",
                 response = "times", further = "shape", shape_power = 1,
                 ratio = c(log = "times, and exp(-shape * coefficient) of hazards"),
                 mean = function(mean, extra, further)
                   mean * as.vector(gamma(1 + 1 / further$shape)))
)

# The row of a family of this package or of R; NULL for no family.
family_facts <- function(family)
  if (!is.null(family)) FAMILIES[[tolower(.subset2(family, "family"))]]

is_normal <- function(family) isTRUE(family_facts(family)$normal)
counts_trials <- function(family) identical(family_facts(family)$response, "successes")

#' Of what exp() of a coefficient is a ratio; NULL for other links and for models without a family
#' @noRd
ratio_of <- function(family) {
  ratios <- family_facts(family)$ratio
  if (!is.null(ratios) && family$link %in% names(ratios)) ratios[[family$link]]
}

ratio_sentence <- function(ratio)
  if (!is.null(ratio)) paste0("exp(coefficient) is a ratio of ", ratio)

further_prior <- function(name)
  if (name == "sigma") in_units(half_student(3, 2.5)) else exponential(1)

new_family <- function(name, link = names(FAMILIES[[name]]$links)[1], df = NULL) {
  structure(list(family = name, link = link, df = df), class = "regression_family")
}

#' A family of this package from what the user gave
#' @noRd
check_family <- function(family) {
  given <- family
  if (is.function(family)) family <- tryCatch(family(), error = function(e) NULL)
  if (is_one_string(family)) family <- family_named(family)
  if (is_made(family, "regression_family")) return(family)
  if (inherits(family, "brmsfamily"))
    fail("`family` must be a family of R or of this package, not one of brms, whose parameters ",
         "may mean something else: give the name \"", family$family, "\" instead.",
         prefix_advice("family"))
  if (!inherits(family, "family"))
    refuse_made(given, "family", paste0("a family such as `poisson()`, or one of ",
                                        either(dQuote(names(FAMILIES), FALSE))), "family")
  facts <- family_facts(family)
  if (is.null(facts$of_r)) refuse_family(family$family)
  links <- names(facts$links)
  if (!family$link %in% links)
    fail("`family` must have the link ", either(dQuote(links, FALSE)), " for ", family$family,
         "(), not ", dQuote(family$link, FALSE), ".",
         if (is.null(facts$advice)) paste0(" ", OTHER_FAMILIES) else facts$advice)
  new_family(tolower(family$family), family$link)
}

family_named <- function(name) {
  facts <- FAMILIES[[tolower(name)]]
  if (is.null(facts)) refuse_family(dQuote(name, FALSE))
  if (is.null(facts$make)) new_family(tolower(name)) else facts$make()
}

refuse_family <- function(given)
  fail("`family` must be one of ", show_names(names(FAMILIES), 9), ", not ", given, ". ",
       OTHER_FAMILIES)

OTHER_FAMILIES <- "For others see ?families: density() takes any log density."

#' The family as glm() has it, with its functions; those that R does not have stay as they are
#' @noRd
glm_family <- function(model) {
  of_r <- family_facts(model$family)$of_r
  if (is.null(of_r)) model$family else of_r(model$family$link)
}

# The names of the parameters besides the coefficients, but for those that are known numbers.
further_names <- function(family) {
  given <- unclass(family)
  names <- family_facts(family)$further
  names[!vapply(names, function(name) is.numeric(given[[name]]), NA)]
}

# The name of the family in C.
family_type <- function(family) {
  facts <- family_facts(family)
  if (length(further_names(family)) < length(facts$further)) facts$known
  else facts$links[[.subset2(family, "link")]]
}

# Their priors if the user gives none.
further_defaults <- function(family)
  lapply(stats::setNames(nm = further_names(family)), function(name)
    if (name == "df") family$df else further_prior(name))

#' @export
format.regression_family <- function(x, ...) {
  paste0(x$family, "(", if (is_prior(x$df)) paste0("df = ", format(x$df))
         else if (!is.null(x$df)) paste0("df = ", format_each(x$df))
         else if (length(family_facts(x)$links) > 1) paste0("link = \"", x$link, "\""), ")")
}

#' @export
print.regression_family <- function(x, ...) {
  cat("Family: ", format(x), "\n", sep = "")
  invisible(x)
}

# Responses ---------------------------------------------------------------------------------------

#' The response of a regression as one or two columns of numbers
#'
#' @param y As formula and data give it; NULL if there is none.
#' @param name Its name in messages.
#' @param design From the first data, or NULL: has `classes`, the levels of a factor, and whether
#'   there is a second column (`extra`).
#' @return A list: `y`, `extra` (numbers or NULL) and `levels` (of a factor, or NULL).
#' @noRd
family_response <- function(family, y, name, argument = "data", design = NULL) {
  rule <- family_facts(family)$response
  if (rule == "successes") return(binomial_response(y, name, argument, design))
  if (rule == "times") return(times_response(y, name, argument, design))
  y <- numeric_response(y, name, argument)
  if (rule == "counts")
    refuse_responses(y, y < 0 | y != round(y) | y > MOST_COUNT, name, argument, COUNT_RULE)
  if (rule == "positive") refuse_responses(y, y <= 0, name, argument, "positive numbers")
  list(y = y, extra = NULL, levels = NULL)
}

# Rounding of more nats than this is said.
LOST_MOST <- 0.01

#' Have the log densities of counts lost their digits in the sum over all rows?
#' @noRd
lost_counts <- function(model, points, log_weights, encoded) {
  rule <- family_facts(model$family)$response
  if (!rule %in% c("counts", "successes") || is.null(encoded$rows)) return(NULL)
  rows <- encoded$rows
  last <- if (rule == "successes" && isTRUE(encoded$design$extra)) nrow(rows) - 1 else nrow(rows)
  total <- sum(rows[last, ])
  lost <- .Machine$double.eps * total * log(max(rows[last, ], 2))
  if (isTRUE(lost > LOST_MOST)) say("lost_counts", format(total, digits = 2), lost)
}

refuse_responses <- function(y, bad, name, argument, rule) {
  row <- which(bad)[1]
  if (is.na(row)) return(invisible())
  fail_in_row(row, "`", argument, "` must have ", rule, " as response `", name, "`, not ",
              format(y[row], digits = 7), " in row ")
}

# cbind(successes, failures), or a factor, logical or 0/1 response; the first level of a factor is
# the failure, as in glm().
binomial_response <- function(y, name, argument, design) {
  two <- is.matrix(y) && ncol(y) == 2
  if (!is.null(design) && two != design$extra)
    fail("`", argument, "` must have a response of ", if (two) "one column" else "two columns",
         " in `", name, "`, as in the first data, not ", NCOL(y), ".")
  if (two) return(trials_response(y, name, argument))
  if (is.factor(y) || is.character(y)) return(factor_response(y, name, argument, design))
  if (is.logical(y)) y <- as.double(y)
  y <- numeric_response(y, name, argument)
  refuse_responses(y, y != 0 & y != 1, name, argument,
                   "0 or 1 (or a factor, or cbind(successes, failures))")
  list(y = y, extra = NULL, levels = NULL)
}

trials_response <- function(y, name, argument) {
  if (!is.numeric(y)) fail("`", argument, "` must have numbers in `", name, "`, not ",
                           show_kind(y), ".")
  check_finite_columns(stats::setNames(list(unclass(y)), name), argument)
  for (k in 1:2)
    refuse_responses(y[, k], y[, k] < 0 | y[, k] != round(y[, k]) | y[, k] > MOST_COUNT, name,
                     argument, paste0(COUNT_RULE, " of ",
                                      c("successes", "failures (trials minus successes)")[k]))
  list(y = as.double(y[, 1]), extra = as.double(y[, 1] + y[, 2]), levels = NULL)
}

factor_response <- function(y, name, argument, design) {
  check_finite_columns(stats::setNames(list(y), name), argument)
  levels <- if (is.null(design)) levels_of_column(y) else design$classes
  # as in glm()
  if (is.null(design) && length(levels) > 2) {
    used <- levels[levels %in% unique(as.character(y))]
    if (length(used) == 2) levels <- used
  }
  if (length(levels) != 2)
    fail("`", argument, "` must have two levels in the response `", name, "`, not ",
         length(levels), "; for more classes see softmax_regression().")
  known <- list(levels = levels, ordered = FALSE)
  list(y = as.double(match_levels(y, known, name, argument)) - 1, extra = NULL, levels = levels)
}

# Times, and whether an event was observed (1) or the time is a lower limit (0).
times_response <- function(y, name, argument, design) {
  censored <- inherits(y, "Surv")
  if (!is.null(design) && censored != design$extra)
    fail("`", argument, "` must have ", if (censored) "numbers" else "a `Surv` object",
         " as response `", name, "`, as in the first data.")
  if (censored) {
    if (!identical(attr(y, "type"), "right"))
      fail("`", argument, "` must have right-censored times in `", name, "`, not ",
           attr(y, "type"), "-censored ones.")
    y <- unclass(y)
    extra <- as.double(y[, "status"])
    y <- as.double(y[, "time"])
  } else {
    extra <- NULL
    y <- numeric_response(y, name, argument)
  }
  check_finite_columns(stats::setNames(list(y), name), argument)
  if (!is.null(extra)) check_finite_columns(stats::setNames(list(extra), name), argument)
  refuse_responses(y, y <= 0, name, argument, "positive times")
  list(y = y, extra = extra, levels = NULL)
}

# Means -------------------------------------------------------------------------------------------

#' The mean of the response
#' @param eta A matrix of linear predictors, a column for each draw.
#' @param extra The second column of the response, or NULL.
#' @param further A list of the further parameters, each a value for each number of `eta`.
#' @noRd
family_mean <- function(family, eta, extra, further) {
  mean <- switch(family$link, identity = eta, log = exp(eta), logit = stats::plogis(eta),
                 probit = stats::pnorm(eta))
  own <- family_facts(family)$mean
  if (is.null(own)) mean else own(mean, extra, further)
}

# Lagged columns in formulas: rows whose distribution depends on the rows before them.
#
# The first rows, up to the longest lag, have no lagged values: the model conditions on them. In a
# stream the last rows of a block are kept (`carry`) for the next, and a fit keeps those of its data
# for update() and predict() (in its `design`).

#' Lagged values in a formula
#'
#' In a formula of [regression()], [linear_regression()] or [softmax_regression()], or of a
#' predictor of [density()], `lags(y, 1:2)` is the value of `y` one row and two rows before. The
#' rows must be in order of time. So the response may depend on its own past, and on the past of
#' covariates.
#'
#' @param x A numeric, logical, factor or character vector; in a formula a column, or a function of
#'   columns.
#' @param k Numbers of rows to go back, whole numbers of at least 1; one only for a factor.
#'
#' @details
#' The first rows, as many as the longest lag, have no values before them. The likelihood is that of
#' all other rows given these: \eqn{\prod_{i > L} p(y_i \mid y_{i-1}, \ldots, y_{i-L})}{the product
#' of p(y[i] | y[i-1], ..., y[i-L]) for i > L}, with as many rows less. To compare models of
#' different lags, use the same rows: leave out rows of the data so that the first response is the
#' same.
#'
#' Given the lagged values this is a product over rows, so every method works on a data frame, in
#' any order of rows. Rows from a source, and rows that [update()] adds, follow directly on those
#' before: their lagged values are found there. [predict()] takes the first rows of `newdata` to
#' follow directly on the data of the fit, and gives predictions of each row given the rows before
#' it, so `newdata` needs the lagged columns for all rows but the last.
#'
#' [gaussian_mixture()] and models with latent variables have no lags: they are models of all their
#' columns, so that lagged ones would be modelled a second time. A mixture of autoregressions is a
#' [density()], as in `density(~ log(0.5 * dnorm(y, a, s) + 0.5 * dnorm(y, b, s)), a = ~ lags(y, 1),
#' b = ~ lags(y, 1), s = half_normal(1))`.
#'
#' There may be several `lags()`, also with functions of them, as in `log(lags(y, 1))` or `lags(x,
#' 2) * z`. Responses cannot be lagged on the left-hand side.
#'
#' [simulate()][simulate.evidence_model] goes forward in time. If the response is lagged, its first
#' values, as many as the longest lag, must be in `data`. A row takes about a millisecond.
#'
#' @return For one lag a vector like `x`, for several a matrix with a column for each, named by the
#'   lag. In a formula the coefficients are called `lags(y, 1)`, or `lags(y, 1:2)1` and `lags(y,
#'   1:2)2`.
#'
#' @examples
#' lags(c(3, 1, 4, 1, 5), 1:2)
#'
#' levels <- data.frame(y = as.numeric(LakeHuron) - 579)
#' fit <- evidence(regression(y ~ lags(y, 1:2)), levels, seed = 1)
#' fit
#' # the level of the next year
#' predict(fit, data.frame(y = NA_real_))
#'
#' @concept autoregression
#' @concept time series
#' @seealso [regression()]
#' @export
lags <- function(x, k = 1) {
  k <- check_lags(k)
  n <- length(x)
  if (!is.null(dim(x)) || !is.atomic(x)) refuse(x, "x", "a vector")
  # ts() has a time of its own
  if (stats::is.ts(x)) x <- as.vector(x)
  back <- function(j) x[c(rep(NA_integer_, min(j, n)), seq_len(max(n - j, 0)))]
  if (length(k) == 1) return(back(k))
  if (!is.numeric(x) && !is.logical(x))
    fail("`k` must be one number for a ", column_kind(x), ", not ", show_value(k), ".")
  matrix(vapply(k, function(j) as.double(back(j)), numeric(n)), n, length(k),
         dimnames = list(NULL, format(k, trim = TRUE, scientific = FALSE)))
}

MOST_LAG <- 10000

check_lags <- function(k) {
  if (!is_plain_numeric(k) || length(k) == 0 || anyNA(k) || any(k < 1 | k != round(k)) ||
      any(k > MOST_LAG) || anyDuplicated(k))
    refuse(k, "k", paste("distinct whole numbers from 1 to", MOST_LAG))
  as.double(k)
}

#' The longest lag of a formula, or of any expression; 0 without lags()
#' @noRd
formula_lag <- function(formula) {
  if (is.null(formula) || !"lags" %in% all.names(formula)) return(0)
  if (length(formula) == 3 && longest_lag(formula[[2]], environment(formula)) > 0)
    fail("`formula` must have no lags() on its left-hand side, not `", deparse1(formula), "`.")
  longest_lag(formula[[length(formula)]], environment(formula))
}

longest_lag <- function(e, where) {
  if (!is.call(e)) return(0)
  if (is_lags(e)) {
    e <- match.call(lags, e)
    k <- if (is.null(e$k)) 1 else tryCatch(eval(e$k, where), error = function(problem)
      fail("`k` must be known without the data in `", deparse1(e), "` (",
           conditionMessage(problem), ")."))
    return(max(check_lags(k)) + longest_lag(e$x, where))
  }
  max(0, vapply(as.list(e)[-1], longest_lag, 0, where = where))
}

is_lags <- function(e) {
  f <- e[[1]]
  identical(f, quote(lags)) || (is.call(f) && identical(f[[1]], quote(`::`)) &&
                                identical(f[[3]], quote(lags)))
}

#' Rows with the rows before them in front
#' @noRd
with_carry <- function(data, carry, columns, argument) {
  if (is.null(carry)) return(data)
  columns <- intersect(columns, names(data))
  check_same_kinds(data, vapply(carry[columns], column_kind, ""), argument)
  rbind(carry[columns], data[columns])
}

#' The longest lag of a model, in any of its formulas
#' @noRd
model_lag <- function(model) max(vapply(model_formulas(model), formula_lag, 0))

model_formulas <- function(model)
  c(list(model$formula), model$formulas, if (is.list(model$predictors)) model$predictors)

#' A model frame without the rows whose lagged values are not known
#' @noRd
without_first <- function(frame, lag, argument) {
  if (lag == 0) return(frame)
  if (nrow(frame) <= lag)
    fail("`", argument, "` must have more rows than the longest lag (", lag, "), not ",
         nrow(frame), ".")
  arrays <- vapply(frame, function(x) length(dim(x)) > 2, NA)
  if (any(arrays))
    fail("`", argument, "` must have vectors and matrices as columns, not `",
         names(frame)[arrays][1], "` of type array.")
  terms <- attr(frame, "terms")
  frame <- frame[-seq_len(lag), , drop = FALSE]
  attr(frame, "terms") <- terms
  frame
}

#' The last rows of `data`, for the rows that follow
#' @noRd
carry_of <- function(data, columns, lag) {
  if (lag == 0) return(NULL)
  rows <- utils::tail(data[columns], lag)
  rownames(rows) <- NULL
  rows
}

# Rows that a model leaves out at the beginning of its data, for the numbers of rows in errors.
unlagged_rows <- function(model, carry = NULL) {
  if (!is.null(carry)) 0 else model_lag(model)
}

# Simulation --------------------------------------------------------------------------------------

is_lagged <- function(model) model_lag(model) > 0

#' The shortest lag of the response: so many rows can be drawn at a time; Inf if it is not lagged
#' @noRd
response_lag <- function(model) {
  response <- all.vars(model$formula[[2]])
  shortest <- function(e) {
    if (!is.call(e)) return(Inf)
    if (is_lags(e) && any(response %in% all.vars(e))) {
      e <- match.call(lags, e)
      return(min(if (is.null(e$k)) 1 else eval(e$k, environment(model$formula))))
    }
    min(Inf, vapply(as.list(e)[-1], shortest, 0))
  }
  min(vapply(model_formulas(model), function(formula) shortest(formula[[length(formula)]]), 0))
}

# Data as C reads them: encode() and what belongs to it, for models of all kinds.

#' Data as C reads them
#'
#' @param binding For rows that are copied for this run (`own`): a list of the number of `threads`
#'   for the copy, and of the `seed` of the run whose random order the rows get, or NULL.
#' @return See new_model(); also `own`, if the rows come from bind_rows(), so that the run may
#' change their order in memory.
#' @noRd
encode <- function(model, data, binding = AS_GIVEN)
  rows_together(model, encode_apart(model, data, binding))

# The same with a row for each observation, whatever the likelihood does with them.
encode_apart <- function(model, data, binding = AS_GIVEN) {
  encoded <- after_rows(unlagged_rows(model), part_of(model, "encode")(model, data, binding))
  check_encoded(model, encoded)
  named <- columns_named(model, data)
  if (length(named)) encoded$design$named_columns <- named
  with_library(model, encoded)
}

# The function may be that of another package.
check_encoded <- function(model, encoded) {
  is_right <- list(rows = is.matrix(encoded$rows) && is.double(encoded$rows),
                   n = is.numeric(encoded$n) && length(encoded$n) == 1,
                   args = is.null(encoded$args) || is.list(encoded$args),
                   theta_names = is.character(encoded$theta_names),
                   user_names = is.character(encoded$user_names))
  bad <- names(is_right)[!unlist(is_right)]
  if (length(bad))
    fail("`encode` of ", model$name, "() must return a list with `", bad[1],
         "`, as ?new_model says.")
}

#' The number of observations; of an object of another package, which C takes as one row, that which
#' is known of it, or NA
#' @noRd
number_of_rows <- function(encoded)
  if (is.null(encoded$observations)) encoded$n else encoded$observations

# What C must know of a model of another package: where its functions are.
with_library <- function(model, encoded) {
  encoded$args <- c(as.list(part_of(model, "type"))[-1], encoded$args)
  encoded
}

AS_GIVEN <- list(threads = 1, seed = NULL)

#' Further data as rows
#'
#' @param response Whether the response is needed; if not, its row is NA.
#' @param argument Name of the data in error messages.
#' @return A list: `rows`, `n`, `offset`.
#' @noRd
encode_new <- function(model, design, newdata, response = TRUE, argument = "newdata") {
  if (isTRUE(design$joined))
    fail("`", argument, "` must be left out: in this ", model$name, "() rows depend on earlier ",
         "ones, so that other rows have no density of their own.")
  after_rows(unlagged_rows(model, design$carry),
             part_of(model, "encode_new")(model, design, newdata, response, argument))
}

#' Simulated rows in the form of the user's data
#'
#' @param encoded What `encode()` returned, or a list with `design` and `offset`.
#' @param data The data that were encoded.
#' @noRd
decode <- function(model, encoded, rows, data) {
  together <- encoded$args$.together
  if (!is.null(together)) rows <- matrix(rows, ncol = together)
  part_of(model, "decode")(model, encoded, rows, data)
}

#' Data before their responses are simulated
#'
#' @return A list: `data` (in the user's form) and `encoded`.
#' @noRd
template <- function(model, data, n) {
  model <- simulated_model(model, data)
  found <- if (is_lagged(model) && !is.null(model$formula)) template_lagged(model, data, n)
  else part_of(model, "template")(model, data, n)
  if (is.null(found$encoded$args$.symbol)) found$encoded <- with_library(model, found$encoded)
  found
}

# The units of priors are those of the data, or, if these have no responses, those of their columns
# and one; without data all are one.
simulated_model <- function(model, data) {
  if (!is.null(model$units)) return(model)
  design <- if (!is.null(data)) or_null(encode(model, data))$design
  if (!is.null(design$prior_units)) at_units_of(list(model = model, design = design))
  else if (is.null(data) || is_lagged(model)) at_unit_one(model)
  else at_units(model, c(UNIT_ONE, columns = TRUE))
}

#' Data whose first responses are known, so many as the longest lag; the others get legal values
#' until they are drawn
#' @noRd
begun_series <- function(model, data, argument = "data") {
  lag <- model_lag(model)
  if (nrow(data) <= lag)
    fail("`", argument, "` must have more rows than the longest lag (", lag, "), not ", nrow(data),
         ".")
  for (name in all.vars(model$formula[[2]])) {
    first <- data[[name]][seq_len(lag)]
    if (is.null(first) || anyNA(first))
      fail("`", argument, "` must have `", name, "` in ",
           if (lag == 1) "its first row" else paste("its first", lag, "rows"),
           ", because the formula has lags of it.")
    data[[name]] <- rep_len(first, nrow(data))
  }
  data
}

#' Data before their responses are simulated: as `template()`
#' @noRd
template_lagged <- function(model, data, n) {
  lag <- model_lag(model)
  if (is.finite(response_lag(model))) {
    data <- as_frame(data)
    if (isTRUE(model$scale))
      fail("A model with `scale = TRUE` and lags of its response cannot be simulated, because the ",
           "scale is that of the response.")
    data <- begun_series(model, data)
    return(list(data = data, encoded = encode(model, data)))
  }
  found <- part_of(model, "template")(model, data, n)
  for (name in all.vars(model$formula[[2]])) {
    first <- as_frame(data)[[name]][seq_len(lag)]
    found$data[[name]][seq_len(lag)] <- if (is.null(first)) NA else first
  }
  found
}

# Is a likelihood that a user has written a sum over rows? ----------------------------------------
#
# Runs cut the rows of a model into chunks, blocks and parts, which is right only then. A filter, or
# a chain whose state depends on earlier rows, is no such sum: for C all its rows become one row,
# which no run cuts.

# Draws from the prior at which sums are compared, how many are tried if the likelihood of some is
# zero, and the difference that rounding explains, relative to the numbers that are added.
SUMS_AT <- 4
SUMS_TRIED <- 40
SUMS_ROUNDING <- 1e-6

#' What encode() returns, with all rows as one if the likelihood is no sum over rows
#'
#' Only likelihoods in R and in libraries of users and other packages are compared.
#' @noRd
rows_together <- function(model, encoded) {
  compiled <- !is.null(encoded$args$.symbol)
  if (!asks_r(model) && !compiled || is_latent(model) || isTRUE(encoded$without_rows) ||
      ncol(encoded$rows) < 2 || adds_up(model, encoded)) return(encoded)
  n <- ncol(encoded$rows)
  if (compiled) {
    encoded$args$.together <- as.double(n)
    dim(encoded$rows) <- c(length(encoded$rows), 1L)
  } else {
    encoded$args$answer <- of_all_rows(encoded$args$answer, n)
    encoded$rows <- matrix(1)
  }
  encoded$observations <- as.integer(number_of_rows(encoded))
  encoded$n <- 1L
  encoded$without_rows <- encoded$joined <- encoded$design$joined <- TRUE
  encoded$own <- NULL
  encoded$design$hint <- c(encoded$design$hint, paste0(
    "The log-likelihood is not a sum over rows: all ", count_of(n, "row"), " together give ",
    "another value than two parts. It is used for all rows at once, and only by methods that do ",
    "not need parts of them."))
  encoded
}

# The function of a custom model for which all rows are one.
of_all_rows <- function(answer, n) {
  force(answer)
  every <- as.double(seq_len(n))
  function(what, theta, rows, forgive = FALSE)
    answer(if (what == "log_lik_each") "log_lik" else what, theta,
           if (length(rows)) every else rows, forgive)
}

#' Does the log-likelihood of all rows equal the sum over two parts, and the gradient likewise?
#'
#' The two parts are drawn row by row, so that rows in groups, and in any period, are separated.
#' Draws from the prior are always the same ones. An error for a part of the rows, but not for all
#' of them, is also a difference. The answer is TRUE where nothing is known: if the likelihood is
#' zero at all draws or is itself random, or if there is an error, which the run will raise.
#' @noRd
adds_up <- function(model, encoded) {
  restore <- own_generator(c(0, 3), keep = FALSE)
  on.exit(restore())
  call <- quiet_caller(model, encoded$args)
  n <- ncol(encoded$rows)
  in_first <- sample.int(n) <= n %/% 2
  all <- encoded$rows
  parts <- list(all[, in_first, drop = FALSE], all[, !in_first, drop = FALSE])
  theta <- or_null(call("draw_prior", all, NULL))
  if (is.null(theta)) return(TRUE)
  agree <- function(what, theta) {
    one <- or_null(call(what, all, theta))
    if (is.null(one)) return(TRUE)
    two <- lapply(parts, function(rows) or_null(call(what, rows, theta)))
    if (!any(lengths(two) == 0) && all_alike(one, two)) return(TRUE)
    # a likelihood that draws random numbers has another value in the next call
    again <- or_null(call(what, all, theta))
    is.null(again) || !all_alike(one, list(again, 0 * one))
  }
  gradient <- if (asks_r(model)) has_user_gradient(model)
  else "log_lik_grad" %in% model_facts(model, encoded$args)$offered
  # one by one, because functions of many points may need much memory
  compared <- 0
  for (i in seq_len(ncol(theta))) {
    at <- theta[, i, drop = FALSE]
    value <- or_null(call("log_lik", all, at))
    if (is.null(value)) return(TRUE)
    if (!is.finite(value)) next
    if (!agree("log_lik", at) || gradient && !agree("gradient", at)) return(FALSE)
    compared <- compared + 1
    if (compared == SUMS_AT) break
  }
  TRUE
}

# Functions of a model in C or R: those of R are called as in searches, without warnings.
quiet_caller <- function(model, args) {
  if (asks_r(model)) {
    d <- as.integer(args$dim)
    return(function(what, rows, theta) {
      if (is.null(theta)) theta <- matrix(0, d, SUMS_TRIED)
      found <- args$answer(what, theta, if (what != "draw_prior") as.double(rows), TRUE)
      if (what == "log_lik") found else matrix(found, d)
    })
  }
  type <- model_type(model)
  function(what, rows, theta) {
    if (what == "draw_prior")
      return(.Call(ffi_model, type, args, rows, what, NULL, list(n = SUMS_TRIED, seed = c(0, 3))))
    if (what == "log_lik") .Call(ffi_model, type, args, rows, what, theta, list())
    else .Call(ffi_model, type, args, rows, "log_lik_grad", theta, list())[[2]]
  }
}

# Is each number the sum of those of two parts, but for rounding? Numbers of one point (a column of
# a matrix) are rounded relative to the largest of them. Where one is not finite nothing is known.
all_alike <- function(one, two) {
  if (!is.matrix(one)) one <- t(one)
  two <- lapply(two, matrix, nrow(one))
  finite <- is.finite(one)
  if (any(finite & !(is.finite(two[[1]]) & is.finite(two[[2]])))) return(FALSE)
  size <- pmax(abs(one), abs(two[[1]]), abs(two[[2]]))
  size[!finite] <- 0
  limit <- SUMS_ROUNDING * rep(pmax(apply(size, 2, max), 1), each = nrow(one))
  all((abs(one - two[[1]] - two[[2]]) <= limit)[finite])
}

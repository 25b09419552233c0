# What is unusual about the columns of a regression: covariates that are zero or combinations of
# others, responses that do not vary, and scales far from those of the prior. With proper priors the
# evidence is well defined, so these are warnings and hints, not errors.

COLUMN_ROWS <- 2000      # rows to look for such columns; what is found is verified on all rows
COLUMN_WORK <- 2e7       # rows x columns^2 of the decomposition
COLUMN_MOST <- 500       # more covariates are not checked for combinations
COLUMN_TOLERANCE <- 1e-8 # of residuals, relative to the column

#' Warnings about covariates and the response of a regression, or NULL
#' @noRd
column_warnings <- function(model, encoded) {
  design <- encoded$design
  # of models whose rows are groups
  if (!is.null(design$group_rows)) {
    if (is.null(encoded$each)) return(NULL)
    encoded$rows <- encoded$each[-seq_len(design$group_rows), , drop = FALSE]
  }
  rows <- encoded$rows
  if (is.null(design$covariates) || is.null(design$response) || is.null(rows) || ncol(rows) < 2)
    return(NULL)
  at <- length(design$covariates) + isTRUE(design$offset)
  found <- covariate_warnings(rows, 0, design)
  for (name in names(design$further)) {
    own <- design$further[[name]]
    found <- c(found, covariate_warnings(rows, at, own, paste("in the formula of", name)))
    at <- at + length(own$covariates) + own$offset
  }
  c(found, response_warning(model, encoded))
}

# The covariates of this design are the rows after the first `before`. All of them are copied only
# if a part of the observations gives a reason to.
covariate_warnings <- function(rows, before, design, where = NULL) {
  names <- design$covariates
  own <- before + seq_along(names)
  some <- t.default(rows[own, evenly(ncol(rows), COLUMN_ROWS), drop = FALSE])
  levelled <- if (is.null(design$levelled)) rep(FALSE, length(names)) else design$levelled
  zero <- which(.colSums(some != 0, nrow(some), length(own)) == 0)
  if (length(zero)) zero <- zero[vapply(zero, function(j) all(rows[own[j], ] == 0), NA)]
  # levels without rows may get rows later
  said <- zero[!levelled[zero]]
  use <- if (length(zero)) seq_along(names)[-zero] else seq_along(names)
  aliased <- aliased_columns(rows, own, some, use, INTERCEPT %in% names)
  where <- if (!is.null(where)) paste0(" (", where, ")")
  several <- function(names, yes, no) if (length(names) > 1) yes else no
  c(if (length(said))
      say("zero_columns", paste0(count_names(names[said]), where, several(said, " are", " is")),
          several(said, "their coefficients", "its coefficient")),
    if (length(aliased))
      say("aliased_columns",
          paste0(count_names(names[aliased]), where,
                 several(aliased, " are linear combinations", " is a linear combination")),
          several(aliased, "them", "it")))
}

count_names <- function(names)
  paste0(if (length(names) > 1) "The columns " else "The column ", show_names(names, 10))

evenly <- function(n, most) if (n <= most) seq_len(n) else round(seq(1, n, length.out = most))

#' Which columns are linear combinations of those before them?
#'
#' @param rows All rows, an observation in each column, of which `own` are the covariates.
#' @param some Covariates of some observations, one in each row.
#' @param use The columns to compare, without columns of zeros.
#' @noRd
aliased_columns <- function(rows, own, some, use, intercept) {
  p <- length(use)
  if (p < 2 || p > COLUMN_MOST || ncol(rows) <= p) return(NULL)
  least <- min(nrow(some), max(2 * p, floor(COLUMN_WORK / p^2)))
  some <- some[evenly(nrow(some), least), use, drop = FALSE]
  x <- unit_columns(some, intercept)
  parts <- stats::.lm.fit(x, numeric(nrow(x)), tol = 1e-9)
  if (parts$rank == p) return(NULL)
  kept <- sort(parts$pivot[seq_len(parts$rank)])
  found <- sort(parts$pivot[-seq_len(parts$rank)])
  all <- unit_columns(t(rows[own[use], , drop = FALSE]), intercept)
  weights <- qr.coef(qr(all[, kept, drop = FALSE]), all[, found, drop = FALSE])
  weights[is.na(weights)] <- 0
  away <- all[, found, drop = FALSE] - all[, kept, drop = FALSE] %*% weights
  use[found[apply(abs(away), 2, max) <= COLUMN_TOLERANCE * apply(abs(all[, found, drop = FALSE]),
                                                                2, max)]]
}

# Around their means, if there is an intercept, so that a large mean hides no differences; of length
# one. Constant columns keep their values.
unit_columns <- function(x, intercept) {
  n <- nrow(x)
  p <- ncol(x)
  if (intercept) {
    constant <- .colSums(x != rep(x[1, ], each = n), n, p) == 0
    some <- x[, !constant]
    x[, !constant] <- some - rep(.colMeans(some, n, p - sum(constant)), each = n)
  }
  size <- numeric(p)
  for (j in seq_len(p)) size[j] <- max(abs(x[, j]))
  size[size == 0] <- 1
  x <- x / rep(size, each = n)
  length <- sqrt(.colSums(x^2, n, p))
  length[length == 0] <- 1
  x / rep(length, each = n)
}

response_warning <- function(model, encoded) {
  rows <- encoded$rows
  at <- nrow(rows)
  alike <- function(y) all(y == y[1])
  if (ncol(rows) > 2 && alike(rows[at, evenly(ncol(rows), COLUMN_ROWS)]) && alike(rows[at, ]))
    return(say("same_response", encoded$design$response, response_word(encoded, rows[at, 1])))
}

response_word <- function(encoded, y) {
  levels <- c(encoded$design[["classes"]], encoded$design[["levels"]])
  if (is.null(levels)) format(y, digits = 7) else show_text(levels[y + 1])
}

# Scales ------------------------------------------------------------------------------------------

# Outside of this range a column's effect under the prior is far from the scale of the response.
USUAL_EFFECT <- c(0.01, 100)

#' A hint for print() if, under the prior, a standard deviation of a column changes the linear
#' predictor by far more or less than usual; or NULL
#'
#' Priors without units, and those of standardised columns, fit all columns.
#' @param priors Of each covariate.
#' @param unit What is usual: the standard deviation of the response, or 1 for other links.
#' @noRd
scale_hint <- function(model, input, design, priors, unit) {
  if (model$scale) return(NULL)
  prior_sd <- vapply(priors, .subset2, 0, "scale")
  prior_sd[are_relative(model, priors)] <- NA
  x <- input$x[evenly(nrow(input$x), COLUMN_ROWS), , drop = FALSE]
  if (nrow(x) < 2 || !ncol(x)) return(NULL)
  names <- trailing(design$covariates, ncol(x))
  effect <- rep(NA_real_, length(names))
  for (j in seq_along(names)) {
    column <- x[, j]
    if (all(is.finite(column)) && !isTRUE(design$categorical[j]) && !stays_unscaled(column))
      effect[j] <- spread_of(column)
  }
  effect <- effect * trailing(prior_sd, ncol(x)) / unit
  far <- which(effect < USUAL_EFFECT[1] | effect > USUAL_EFFECT[2])
  if (!length(far)) return(NULL)
  far <- far[order(-abs(log(effect[far])))]
  one <- far[1]
  paste0("Under the prior a standard deviation of `", names[one], "` changes the linear predictor ",
         "by about ", format(signif(effect[one] * unit, 1), big.mark = ","),
         if (unit != 1) paste0(", that of the response is ", format(signif(unit, 2),
                                                                    big.mark = ",")),
         if (length(far) > 1) paste0(" (likewise ", show_names(names[far[-1]], 5), ")"),
         ". With `scale = TRUE` priors are those of standardised columns.")
}

#' What default priors could not take from the rows that were seen, a note for print(); or NULL
#'
#' @param y The response, or NULL if its values have no unit.
#' @param relative Whether the prior of each covariate is in units of the data.
#' @noRd
units_note <- function(model, input, design, relative, y) {
  if (!is.null(model$units)) return(NULL)
  n <- nrow(input$x)
  same <- function(x) length(x) < 2 || all(x == x[1])
  names <- trailing(design$covariates, ncol(input$x))
  open <- trailing(relative, ncol(input$x)) & names != INTERCEPT
  if (!is.null(design$levelled)) open <- open & !trailing(design$levelled, ncol(input$x))
  open <- which(open)
  alike <- names[open[vapply(open, function(j) same(input$x[, j]), NA)]]
  what <- c(if (!is.null(y) && same(y)) paste0("the response `", design$response, "`"),
            if (length(alike)) show_names(alike, 5))
  if (length(what))
    paste0("Default priors have a unit of one for ", paste(what, collapse = " and for "),
           ", which ", if (n == 1) "has" else "does not vary in", " the first ",
           if (n == 1) "row alone" else count_of(n, "row"),
           ". If later rows vary, give priors in their units.")
}

# The units of default priors where rows are elsewhere: constants of all rows, from workers or from
# sums of a database.

#' A model whose default priors have the units of all rows
#'
#' @param constants A matrix with a column for each row for C, by name, the response last: `mean`,
#'   `sd` and `kind`, as ffi_standard_constants() returns them, and in sums of workers `exp`, the
#'   logarithm of the mean of exp(x), and `n`.
#' @noRd
with_units_of <- function(model, constants)
  at_units(model, part_of(unit_model(model), "units")$of(unit_model(model), constants))

# The model of rows that has the units of a model: that of the fixed part where there are groups.
unit_model <- function(model) if (is.null(model$base)) model else model$base

#' Does a fit depend on constants of all rows, by default priors or `scale = TRUE`?
#' @noRd
needs_constants <- function(model, design) {
  known <- !is.null(model$units) || is.null(part_of(unit_model(model), "units"))
  if (known || is.null(design$prior_units)) return(FALSE)
  scalings <- c(list(design$scaling), lapply(design$further, `[[`, "scaling"))
  scaled <- any(vapply(scalings, function(one) any(one$centre != 0 | one$scale != 1), NA))
  relative <- is.null(design$priors) ||
    any(vapply(design$priors, function(one) isTRUE(one$default), NA))
  scaled || relative &&
    (length(design$covariates) > 1 || !identical(unlist(design$prior_units), unlist(UNIT_ONE)))
}

#' A model as a worker reads the rows of its constants: units of one, columns as they are
#' @noRd
bound_for_constants <- function(model, design, head) {
  effects <- lapply(model$group_terms, `[[`, "effects")
  model <- at_unit_one(unit_model(model))
  model$scale <- FALSE
  if (length(effects)) {
    # the columns of effects as well, and `.` without the groups
    model$formula <- stats::formula(design$terms)
    for (one in effects) model$formula[[3]] <- call("+", model$formula[[3]], one)
  }
  feed <- open_feed(model, rows_in_memory(head))
  on.exit(close_feed(feed))
  list(model = model, encoded = feed$encoded, identified = feed$identified)
}

#' Constants of some rows
#' @noRd
constants_of_rows <- function(model, rows) {
  rows <- part_of(model, "units")$rows(model, rows)
  found <- .Call(ffi_standard_constants, t(rows), 1)
  dimnames(found) <- list(c("mean", "sd", "kind"), rownames(rows))
  rbind(found, exp = apply(rows, 1, log_mean_exp), n = ncol(rows))
}

#' Constants of the rows of two parts
#'
#' Sums of squares of deviations are added around the common mean, in units of the largest, so that
#' they do not overflow.
#' @noRd
joined_constants <- function(a, b) {
  if (is.null(a) || is.null(b)) return(if (is.null(a)) b else a)
  n <- a["n", ] + b["n", ]
  apart <- b["mean", ] - a["mean", ]
  most <- pmax(a["sd", ], b["sd", ], abs(apart))
  most[most == 0] <- 1
  squares <- (a["n", ] - 1) * (a["sd", ] / most)^2 + (b["n", ] - 1) * (b["sd", ] / most)^2 +
    (apart / most)^2 * a["n", ] * b["n", ] / n
  same <- a["kind", ] == SAME_COLUMN & b["kind", ] == SAME_COLUMN & apart == 0
  of_two <- function(one)
    one["kind", ] == 1 | one["kind", ] == SAME_COLUMN & one["mean", ] %in% 0:1
  highest <- pmax(a["exp", ], b["exp", ])
  exponents <- log((a["n", ] * exp(a["exp", ] - highest) + b["n", ] * exp(b["exp", ] - highest)) /
                     n) + highest
  rbind(mean = a["mean", ] + apart * b["n", ] / n, sd = most * sqrt(squares / (n - 1)),
        kind = ifelse(same, SAME_COLUMN, of_two(a) & of_two(b)), exp = exponents, n = n)
}

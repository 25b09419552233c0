# Linear regressions whose sums a database computes (rows_dbi(push = TRUE)): no row leaves it.

#' The work of a model whose sums the database computes
#' @noRd
work_on_sums <- function(spec, data) {
  model <- spec$model
  check_for_questions(model, spec$method, "rows_dbi(push = TRUE)")
  if (!isTRUE(part_of(model, "normal")))
    fail("rows_dbi(push = TRUE) is for linear regression with constant noise, whose sums a ",
         "database can compute, not for this ", model$name, "(): read the rows, by ",
         "`push = FALSE`.")
  bind <- function(model) model_elsewhere(model, spec$method, head, spec$words, spec$threads)
  ask <- function(formula) database_sums(data$push$con, data$push$table, formula, head)
  head <- head_rows(model, data, columns_read(model), HEAD_ROWS)
  if (is.null(head)) fail("`data` must have at least one row, not 0.")
  used <- columns_for_omit(model$formula, head)
  head <- head[stats::complete.cases(head[used]), , drop = FALSE]
  # what is refused is refused before the database works
  bind(model)
  sums <- ask(model$formula)
  if (sums$n < 1) fail("`data` must have at least one complete row, not 0.")
  around <- if (INTERCEPT %in% colnames(sums$root)) sums else ask(with_intercept(model$formula))
  bound <- bind(with_units_of(model, constants_of_sums(around)))
  columns <- rownames(bound$encoded$rows)
  if (!identical(colnames(sums$root), columns))
    fail("The database gives the columns ", show_names(colnames(sums$root)), ", and R gives ",
         show_names(columns), ": read the rows, by `push = FALSE`.")
  if (sums$omitted)
    message("na.omit: ", count(sums$omitted), " of ", count(sums$n + sums$omitted),
            " rows left out by the database, with missing values.")
  rows <- standardise(t(sums$root), list(standardised_rows(bound$encoded$design$scaling)),
                      ones = match(INTERCEPT, columns))
  sample <- bound$first[, seq_len(min(ncol(bound$first), sums$n)), drop = FALSE]
  spec$keep <- Inf
  work <- new_work(spec, encoded_elsewhere(bound, sums$n, sample, id_of_sums(sums)),
                   feeding = "last", problem = with_rows_elsewhere(bound$problem, sums$n))
  work$sums <- list(rows = rows, n = sums$n)
  if (has_trait(spec$method, "joins")) for (r in seq_along(work$plan$first))
    work$plan$first[[r]]$result <- exact_by_sums(bound, rows, sums$n, spec$words)
  work
}

# What comes last in a formula counts; update() does not take `.` for the columns.
with_intercept <- function(formula) {
  formula[[3]] <- call("+", formula[[3]], 1)
  formula
}

#' What ffi_standard_constants() would say of all columns, from a matrix with the same sums of
#' products as all rows, the first of whose columns is that of ones
#'
#' @param sums From database_sums().
#' @noRd
constants_of_sums <- function(sums) {
  root <- sums$root
  n <- sums$n
  # the first row of R has the sums, and the others have the products around the means
  first <- match(INTERCEPT, colnames(root))
  upper <- qr.R(qr(cbind(root[, first, drop = FALSE], root[, -first, drop = FALSE]), tol = 0))
  mean <- c(1, upper[1, -1] / upper[1, 1])
  square <- c(0, colSums(upper[-1, -1, drop = FALSE]^2))
  names(mean) <- names(square) <- c(INTERCEPT, colnames(root)[-first])
  same <- square <= n * (1e-14 * abs(mean))^2
  binary <- abs(square - n * mean * (1 - mean)) <= 1e-9 * n & mean >= 0 & mean <= 1
  sd <- sqrt(square / (n - 1))
  rbind(mean, sd, kind = ifelse(same, SAME_COLUMN, binary))
}

#' What exact() reports, from few rows with the same sums of products and as many rows of zeros as
#' are missing
#' @noRd
exact_by_sums <- function(bound, rows, n, words) {
  one <- with_tables(bound)
  blocks <- cbind(with_block(one, NULL, rows), blank_block(one, n - ncol(rows)))
  exact_of_rows(one, joined_blocks(one, blocks), n, words)
}

#' The block of n rows of zeros
#' @noRd
blank_block <- function(one, n) {
  doubled <- with_block(one, NULL, one$first[, 1, drop = FALSE] * 0)
  block <- NULL
  while (n >= 1) {
    if (n %% 2 == 1) block <- joined_blocks(one, cbind(block, doubled))
    n <- n %/% 2
    if (n >= 1) doubled <- joined_blocks(one, cbind(doubled, doubled))
  }
  block
}

# Fits of the same responses have the same sums of them, up to rounding.
id_of_sums <- function(sums) {
  response <- ncol(sums$products)
  own <- signif(c(sums$products[response, response], sums$n), 10)
  sub("^[^-]*", format(sums$n, scientific = FALSE), fingerprint(matrix(own)))
}

# Are two fits to the same data? Fits do not keep their data, but fingerprints of them.
#
# Models of the same observations can be compared. A regression explains its response given
# covariates, so fits with different covariates are comparable, with rows in any order, provided
# that each response has its own covariates. `data_id` is a fingerprint of the responses (for other
# models, of the rows) that does not depend on their order. `pairing` detects responses that were
# permuted relative to the covariates: for each covariate it has a sum of products with a function
# of the response. If two regressions have no covariate in common, and neither is an intercept
# alone, they can be compared only if their rows are in the same order, which `pairing` also has.
# With more than MANY_ROWS rows, `pairing` uses a part of them at fixed places, to save time, and
# all rows must be in the same order. `rows_id` is a fingerprint of everything in the likelihood,
# for runs that are merged or continued. For custom models it depends on the order of the rows,
# because the model may do so.

#' @noRd
data_id <- function(encoded, threads = 1) {
  if (is_streamed(encoded)) return(encoded$data_id)
  fingerprint(if (is.null(encoded$observed)) encoded$rows else encoded$observed, threads)
}

#' Responses of several columns with an observation in each column
#'
#' Two models may name and order the columns differently, as `Surv(time, status)` and a density of
#' `status` and `time`, so they are ordered by their fingerprints.
#' @return A list: `observed`; `ids`, fingerprints of the columns if there are several; and
#'   `varying_id`, the fingerprint without constant columns if there are some.
#' @noRd
observed_columns <- function(columns) {
  if (length(columns) == 1) return(list(observed = as.double(columns[[1]])))
  columns <- lapply(columns, as.double)
  ids <- vapply(columns, fingerprint, "")
  columns <- unname(columns[order(ids, method = "radix")])
  varying <- Filter(function(x) any(x != x[1]), columns)
  list(observed = do.call(rbind, columns), ids = ids,
       varying_id = if (length(varying) && length(varying) < length(columns))
         fingerprint(if (length(varying) == 1) varying[[1]] else do.call(rbind, varying)))
}

rows_id <- function(encoded)
  fingerprint(if (is.null(encoded$in_order)) encoded$rows else encoded$in_order)

# The fingerprint of the columns of a matrix, or of their last numbers alone.
fingerprint <- function(observations, threads = 1, last = FALSE)
  .Call(ffi_fingerprint, observations, threads, last)

# Pairing of a response with covariates -----------------------------------------------------------

#' The covariates whose values are known by their names
#'
#' A term with a name from outside the data, as `k` in `ns(x, k)`, may have other values in another
#' fit under the same names of columns. The columns of the data in it stand for them.
#' @param x The model matrix.
#' @param assign The term of each column of `x`, as model.matrix() has it, or NULL if each term has
#'   one column.
#' @noRd
paired_columns <- function(x, terms, data, assign = NULL) {
  if (!anyNA(match(all.vars(attr(terms, "variables")), attr(data, "names")))) return(NULL)
  open <- open_terms(terms, names(data))
  if (!any(open)) return(NULL)
  if (is.null(assign))
    assign <- c(if (attr(terms, "intercept") == 1) 0, seq_along(attr(terms, "term.labels")))
  read <- unique(unlist(lapply(attr(terms, "term.labels")[open], function(label)
    all.vars(str2lang(label)))))
  read <- setdiff(intersect(read, names(data)), colnames(x))
  plain <- function(x) is_plain_numeric(x) && is.null(dim(x)) && all_finite(x)
  read <- Filter(function(name) plain(data[[name]]), read)
  own <- as.matrix(utils::tail(data[read], nrow(x)))
  cbind(x[, !assign %in% which(open), drop = FALSE], own)
}

# Which terms use names that are no columns of the data?
open_terms <- function(terms, columns) {
  vapply(attr(terms, "term.labels"), function(label)
    any(!all.vars(str2lang(label)) %in% columns), NA)
}

#' Sums that change when responses are permuted against covariates
#'
#' @param input A list: `x`, with a row for each observation, and `paired`, from paired_columns().
#' @param y The responses, numbers.
#' @param covariates Names; the first is that of the intercept if `x` has one column less.
#' @return A list: `products` and `sizes` (the scale of rounding errors), named by covariates, and
#' `order`.
#' @noRd
pairing_of <- function(input, y, covariates) {
  x <- if (is.null(input$paired)) input$x else input$paired
  covariates <- if (is.null(input$paired)) trailing(covariates, ncol(x)) else colnames(x)
  # a part of very many rows; then their order matters
  if (length(y) > MANY_ROWS) {
    some <- round(seq(1, length(y), length.out = 10000))
    x <- x[some, , drop = FALSE]
    y <- y[some]
  }
  z <- y / max(abs(y), 1e-300)
  # not linear, so that sums of a few whole numbers are not equal by chance
  z <- z * (z * (z + 0.7390851) - 0.3141593)
  products <- drop(crossprod(x, z))
  sizes <- drop(crossprod(abs(x), abs(z)))
  names(products) <- names(sizes) <- covariates
  list(products = products, sizes = sizes,
       order = sum(((seq_along(z) - 1) %% 9973 + 1) * z) / length(z))
}

MANY_ROWS <- 2e4

PAIRING_TOLERANCE <- 1e-9

#' Two fits to the same responses but not the same rows, and the reason, or NULL
#'
#' @return A list: `of`, two numbers of fits, and `reason`.
#' @noRd
pairings_differ <- function(fits) {
  pairings <- lapply(fits, `[[`, "pairing")
  use <- which(lengths(pairings) > 0)
  plain <- lapply(pairings, function(pairing) setdiff(names(pairing$products), "(Intercept)"))
  first <- integer() # fit that has each covariate
  for (i in use) {
    for (name in plain[[i]]) {
      k <- first[name]
      if (is.na(k)) first[name] <- i
      else if (products_differ(pairings[[k]], pairings[[i]], name))
        return(list(of = c(k, i),
                    reason = paste0("the values of `", name, "` belong to different responses",
                                    other_order(fits[[i]]))))
    }
  }
  use <- use[lengths(plain[use]) > 0]
  order <- vapply(pairings[use], `[[`, 0, "order")
  if (length(use) < 2 || diff(range(order)) <= PAIRING_TOLERANCE * 9973) return(NULL)
  for (i in use) for (k in use[use < i]) {
    apart <- abs(pairings[[i]]$order - pairings[[k]]$order) > PAIRING_TOLERANCE * 9973
    if (apart && !any(plain[[i]] %in% plain[[k]]))
      return(list(of = c(k, i),
                  reason = paste("which have no covariate in common, the rows must be in the",
                                 "same order")))
  }
}

other_order <- function(fit) if (isTRUE(fit$n > MANY_ROWS)) ", or the rows are in a different order"

products_differ <- function(a, b, name) {
  abs(a$products[[name]] - b$products[[name]]) > PAIRING_TOLERANCE *
    (a$sizes[[name]] + b$sizes[[name]])
}

# Data of custom models ---------------------------------------------------------------------------

#' The data of a custom model as numbers, a column for each row
#' @noRd
numbers_of <- function(data) {
  if (is.null(data)) return(matrix(0, 1, 1))
  columns <- if (is.data.frame(data)) as.list(data) else list(data)
  values <- lapply(columns, function(x) {
    if (inherits(x, "integer64")) x <- as.character(x)
    if (is.character(x)) x <- factor(x, levels_of_column(x))
    if (is.complex(x)) x <- cbind(Re(x), Im(x))
    if (is.list(x)) x <- vapply(x, function(item) fingerprint(bytes_of(item)), "")
    if (is.character(x)) x <- factor(x, levels_of_column(x))
    matrix(as.double(x), NROW(x))
  })
  t(do.call(cbind, values))
}

# In the form in which 1:3 and c(1L, 2L, 3L) are equal.
bytes_of <- function(x) {
  bytes <- as.double(as.integer(serialize(x, NULL, version = 2)[-(1:14)]))
  rbind(bytes, seq_along(bytes))
}

#' The data for the fingerprints of a custom model
#' @noRd
custom_prints <- function(data) {
  rows <- numbers_of(data)
  list(observed = rows, in_order = rbind(rows, as.double(seq_len(ncol(rows)))),
       columns = if (!is.null(data))
         vapply(seq_len(nrow(rows)), function(j) fingerprint(rows[j, ]), ""))
}

# Do the rows come from a source, and not from an object in memory?
is_streamed <- function(encoded) !is.null(encoded$sampled)

#' The fingerprint of two parts of the data together: numbers of rows and sums of hashes
#' @noRd
join_ids <- function(one, other) {
  if (is.null(one) || is.null(other)) return(NULL)
  join_all(c(one, other))
}

#' The fingerprint of many parts together
#' @noRd
join_all <- function(ids) {
  if (length(ids) <= 1) return(ids)
  hash <- sub(".*-", "", ids)
  half <- function(from, to) sum(as.numeric(paste0("0x", substr(hash, from, to))))
  low <- half(9, 16)
  high <- half(1, 8) + low %/% 2^32
  hex <- function(x) {
    x <- x %% 2^32
    sprintf("%04x%04x", as.integer(x %/% 2^16), as.integer(x %% 2^16))
  }
  n <- sum(as.numeric(sub("-.*", "", ids)))
  paste0(format(n, scientific = FALSE), "-", hex(high), hex(low))
}

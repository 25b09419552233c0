# Groups of which rows come later: those of a source, block by block, of other workers, and of
# update(). What a fit keeps of its groups is enough to add rows to them.

#' Can the rows of a source be added to groups block by block, in memory that does not grow with the
#' rows? Triangular factors can; units have all their rows in them.
#' @noRd
gathers_groups <- function(model) model_type(model) == "grouped_linear_regression"

#' What encode_groups() returns, with the rows of later data
#'
#' @param encoded From encode_groups(), this function or groups_of_fit().
#' @param data Data, or what part_of_groups() makes of data elsewhere.
#' @return `encoded` without what single rows are needed for (`each`, `pairing`).
#' @noRd
join_groups <- function(model, encoded, data, argument = "data") {
  if (model_type(model) == "crossed_linear_regression")
    fail("Rows cannot be added to sums over crossed groups: give all rows to evidence().")
  part <- if (inherits(data, "part_of_groups")) data
  else part_of_later(model, encoded, data, argument)
  if (!ncol(encoded$rows)) encoded <- without_any_group(encoded)
  design <- encoded$design
  codes <- list()
  for (label in names(design$group_factors)) {
    old <- design$group_factors[[label]]$levels
    here <- part$levels[[label]]
    codes[[label]] <- code_among(old, here)
    design$group_factors[[label]]$levels <- c(old, here[codes[[label]] > length(old)])
  }
  encoded$design <- design
  encoded <- if (gathers_groups(model)) add_to_group_sums(encoded, part, codes)
  else add_to_group_units(model, encoded, part,
                          Map(function(code, own) code[own], codes, part$codes))
  encoded$data_id <- join_all(c(encoded$data_id, part$data_id))
  encoded$observations <- count_as_integer(encoded$observations + part$n)
  encoded$args$observations <- as.double(encoded$observations)
  encoded$args$size <- pmax(encoded$args$size, part$size)
  parameters <- length(design$group_parameters)
  means <- args_of_means(utils::head(design$all_names, -parameters), design$group_effects,
                         encoded$design$group_factors, parameters)
  encoded$args[names(means)] <- means
  encoded[c("each", "observed", "pairing")] <- NULL
  encoded$sampled <- FALSE
  encoded
}

#' Later data that are to be added to groups: sums over groups, or columns; the levels of each
#' factor and, for columns, the level of each row
#' @noRd
part_of_later <- function(model, encoded, data, argument = "data") {
  data <- as_frame(data, argument)
  design <- encoded$design
  base <- encode_new_regression(model$base, design, data, TRUE, argument)
  base$design <- design
  found <- new_groups(model, design, data, argument)
  last <- nrow(base$rows)
  observed <- observed_columns(c(list(base$rows[last, ]), if (design$extra)
    list(base$rows[last - 1, ])))
  linear <- grepl("_linear_", model_type(model))
  structure(
    list(sums = if (gathers_groups(model))
           .Call(ffi_group_sums, columns_of_sums(encoded, base, found$x), found$codes[[1]],
                 length(found$levels[[1]])),
         columns = if (!gathers_groups(model)) rbind(base$rows, t(found$x)),
         codes = if (!gathers_groups(model)) found$codes, levels = found$levels, n = base$n,
         data_id = fingerprint(observed$observed),
         size = unname(column_sizes(base, if (!linear) design$further_order))),
    class = "part_of_groups")
}

#' Sums over groups, for join_groups() in another process
#' @noRd
part_of_sums <- function(encoded) {
  structure(list(sums = encoded$rows, columns = NULL, codes = NULL,
                 levels = lapply(encoded$design$group_factors, `[[`, "levels"),
                 n = encoded$observations, data_id = encoded$data_id, size = encoded$args$size),
            class = "part_of_groups")
}

# Without rows, columns have no size.
without_any_group <- function(encoded) {
  encoded$rows <- encoded$rows[, 0, drop = FALSE]
  encoded$observations <- 0
  encoded$args$size <- 0 * encoded$args$size
  encoded["data_id"] <- list(NULL)
  for (label in names(encoded$design$group_factors))
    encoded$design$group_factors[[label]]$levels <- character()
  encoded
}

columns_of_sums <- function(encoded, base, z) {
  x <- covariates_and_response(base)
  column <- encoded$args$column + 1
  own <- column > ncol(z)
  for (j in which(!own))
    if (!identical(x[, j], as.double(z[, column[j]])))
      fail("Covariate ", j, " must be the column of an effect in all rows, as in the first.")
  columns <- cbind(z, x[, which(own), drop = FALSE], x[, ncol(x)])
  storage.mode(columns) <- "double"
  columns
}

add_to_group_sums <- function(encoded, part, codes) {
  many <- length(encoded$design$group_factors[[1]]$levels)
  encoded$rows <- .Call(ffi_join_sums, encoded$rows, part$sums, codes[[1]], many)
  encoded$n <- many
  levels <- seq_len(many)
  encoded$design$group_factors[[1]][c("unit", "position")] <- list(levels, rep(1, many))
  encoded$design$units <- encoded$rows
  encoded
}

add_to_group_units <- function(model, encoded, part, codes) {
  design <- encoded$design
  old <- rows_of_units(encoded)
  width <- old$width
  columns <- cbind(old$columns, part$columns)
  x <- t(columns[-seq_len(width), , drop = FALSE])
  at <- cumsum(c(0, lengths(lapply(design$group_effects, `[[`, "names"))))
  grouped <- list(
    effects = lapply(seq_along(design$group_effects), function(b)
      c(design$group_effects[[b]], list(x = x[, (at[b] + 1):at[b + 1], drop = FALSE]))),
    factors = Map(function(before, later) list(codes = c(before, later)), old$codes, codes))
  units <- group_units(list(rows = columns[seq_len(width), , drop = FALSE],
                            user_names = seq_len(encoded$args$base)),
                       grouped, integration_rule(model, grouped$effects))
  encoded$rows <- design$units <- units$rows
  encoded$n <- ncol(units$rows)
  encoded$args[names(units$args)] <- units$args
  for (label in names(units$places))
    design$group_factors[[label]][c("unit", "position")] <-
      units$places[[label]][c("unit", "position")]
  encoded$design <- design
  encoded
}

#' The rows in units as models/mixed/unit.h describes them
#'
#' @return A list: `columns`, those of the regression without groups (`width`) and of the effects;
#'   and `codes`, the level of each row by each factor.
#' @noRd
rows_of_units <- function(encoded) {
  args <- encoded$args
  found <- encoded$rows
  factors <- encoded$design$group_factors
  head <- 1 + length(factors) + (args$nodes == 0 && args$draws > 1)
  each <- (nrow(found) - head) / args$rows
  width <- each - args$extra_columns - length(factors)
  sizes <- found[1, ]
  unit <- rep(seq_along(sizes), sizes)
  place <- (unit - 1) * nrow(found) + head + (sequence(sizes) - 1) * each
  rows <- matrix(found[rep(place, each = each) + seq_len(each)], each)
  codes <- lapply(seq_along(factors), function(f) {
    place <- factors[[f]]
    most <- max(place$position) + 1
    position <- rows[each - length(factors) + f, ] + 1
    match(unit * most + position, place$unit * most + place$position)
  })
  list(columns = rows[c(seq_len(width), args$effect_column + 1), , drop = FALSE],
       codes = stats::setNames(codes, names(factors)), width = width)
}

#' What join_groups() needs of a fit
#' @noRd
groups_of_fit <- function(fit) {
  design <- fit$design
  list(rows = design$units, n = ncol(design$units), observations = fit$n, args = fit$args,
       theta_names = design$theta_names, user_names = design$all_names, data_id = fit$data_id,
       design = design)
}

JOINING <- list(of_fit = groups_of_fit, join = join_groups, gathers = gathers_groups,
                part = part_of_sums)

# Rows of groups that come in blocks, as those of a source do, where the rows of a group arrive
# together: units as C reads them, in blocks of whole units. Memory does not grow with the rows.

# Later groups may have so many times the rows of the largest one of the source, or of the first
# ones if it can be read only once.
ROOM_FOR_GROUPS <- 2

#' The units of some rows
#'
#' @return A list: `factors`, the levels of the rows as `codes` and `levels`; `unit`, that of each
#'   row; and `ends`, the rows after which a unit ends, with those before it.
#' @noRd
units_of_rows <- function(model, data, argument = "data") {
  labels <- unique(vapply(model$group_terms, `[[`, "", "label"))
  factors <- factors_of_rows(model, labels, as_frame(data, argument), argument)
  unit <- .Call(ffi_group_units, lapply(factors, `[[`, "codes"))
  last <- length(unit) + 1 - match(unit, rev(unit))
  list(factors = factors, unit = unit, ends = which(cummax(last) == seq_along(unit)))
}

#' What is known of the units of a source before they are encoded
#'
#' @param blocks A function that returns the next block of whole units, or NULL.
#' @return A list: `rows`, the most of a unit; for each factor the most `levels` of a unit, and
#'   `groups`, the number of its levels; and the number of `units`. NULL without rows.
#' @noRd
count_units <- function(model, blocks) {
  counted <- NULL
  while (!is.null(block <- blocks())) {
    units <- units_of(units_of_rows(model, block)$factors)
    of_block <- list(rows = max(units$sizes), levels = apply(units$many, 1, max),
                     groups = rowSums(units$many), units = length(units$sizes))
    counted <- if (is.null(counted)) of_block else joined_counts(list(counted, of_block))
  }
  counted
}

#' Room for units of so many rows
#'
#' @param encoded From encode_groups(), of some rows.
#' @param counted From count_units(), or NULL if the units cannot be counted.
#' @param kept The most units in memory.
#' @noRd
room_for_units <- function(encoded, counted, kept) {
  args <- encoded$args
  factors <- encoded$design$group_factors
  if (!is.null(counted)) {
    for (label in names(factors))
      factors[[label]]$levels <- character(counted$groups[[label]])
    parameters <- length(encoded$design$group_parameters)
    means <- args_of_means(utils::head(encoded$design$all_names, -parameters),
                           encoded$design$group_effects, factors, parameters)
    encoded$args[names(means)] <- means
  } else counted <- list(rows = args$rows, levels = stats::setNames(args$levels, names(factors)),
                         units = Inf)
  rows <- ROOM_FOR_GROUPS * counted$rows
  levels <- pmin(ROOM_FOR_GROUPS * counted$levels[names(factors)], rows)
  head <- unit_head(args, length(factors))
  each <- (nrow(encoded$rows) - head) / args$rows
  encoded$args$rows <- as.double(rows)
  encoded$args$levels <- as.double(levels)
  size <- head + rows * each
  most <- floor(UNIT_NUMBERS / size)
  if (min(kept, counted$units) > most)
    fail("`keep` must be at most ", count(most), " for these groups: each takes ", count(size),
         " numbers, with room for twice the rows of the largest one.")
  encoded$rows_of_a_unit <- args$observations / ncol(encoded$rows)
  encoded$rows <- matrix(0, size, 0)
  encoded
}

#' Units of later rows
#'
#' @param encoded From room_for_units().
#' @param before Number of units before these.
#' @return A list: `rows`, a unit in each column; `n`, their number; `observed`, what identifies the
#'   observations; and for each factor the `levels` with their `unit` and `position`.
#' @noRd
encode_units <- function(model, encoded, data, argument, before) {
  data <- as_frame(data, argument)
  design <- encoded$design
  base <- encode_new_regression(model$base, design, data, TRUE, argument)
  found <- new_groups(model, design, data, argument)
  grouped <- list(
    effects = effects_with_columns(design, found$x),
    factors = Map(function(codes, levels) list(codes = codes, levels = levels), found$codes,
                  found$levels))
  units <- group_units(base, grouped, encoded$args[c("nodes", "draws")], encoded$args, before)
  places <- Map(function(place, levels)
    list(levels = levels, unit = before + place$unit, position = place$position),
    units$places, found$levels)
  list(rows = units$rows, n = ncol(units$rows), observations = base$n, places = places,
       observed = observed_rows(base, design))
}

#' What count_units() returns of several sources together
#' @noRd
joined_counts <- function(counts) Reduce(function(one, other)
  Map(function(f, a, b) f(a, b), list(rows = max, levels = pmax, groups = `+`, units = `+`),
      one, other), counts)

#' What encode_groups() returns, after all units have been encoded
#'
#' @param places For each block those of encode_units().
#' @param kept Whether `encoded` has all units as rows.
#' @noRd
with_all_units <- function(encoded, places, observations, kept) {
  encoded$observations <- count_as_integer(observations)
  encoded$args$observations <- as.double(observations)
  for (label in names(encoded$design$group_factors))
    encoded$design$group_factors[[label]][c("levels", "unit", "position")] <-
      lapply(c("levels", "unit", "position"), function(what)
        unlist(lapply(places, function(block) block[[label]][[what]])))
  encoded$design["units"] <- list(if (kept) encoded$rows)
  encoded$rows_of_a_unit <- observations / encoded$n
  encoded
}

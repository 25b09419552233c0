# Groups of which rows come later: those of a source, block by block, of other workers, and of
# update(). What a fit keeps of its groups is enough to add rows to them.

#' Can the rows of a source be added to groups block by block, in memory that does not grow with the
#' rows? Sums can; units of rows have all rows in them.
#' @noRd
gathers_groups <- function(model) model$sums

#' What encode_groups() returns, with the rows of later data
#'
#' @param encoded From encode_groups(), this function or groups_of_fit().
#' @param data Data, or what part_of_groups() makes of data elsewhere.
#' @return `encoded` without what single rows are needed for (`each`, `pairing`).
#' @noRd
join_groups <- function(model, encoded, data, argument = "data") {
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
  encoded <- if (gathers_groups(model) && model$crossed)
    add_to_unit_sums(encoded, part, codes)
  else if (gathers_groups(model)) add_to_group_sums(encoded, part, codes)
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
  sums <- gathers_groups(model)
  crossed <- if (sums && model$crossed) crossed_sums(base, list(
    effects = effects_with_columns(design, found$x),
    factors = Map(function(codes, levels) list(codes = codes, levels = levels), found$codes,
                  found$levels)))
  part_of_groups(
    sums = if (!is.null(crossed)) crossed$rows
    else if (sums) .Call(ffi_group_sums, columns_of_sums(encoded, base, found$x), found$codes[[1]],
                         length(found$levels[[1]])),
    places = crossed$places, columns = if (!sums) rbind(base$rows, t(found$x)),
    codes = if (!sums) found$codes, levels = found$levels, n = base$n,
    data_id = fingerprint(observed_rows(base, design)),
    size = unname(column_sizes(base, if (!sums) design$further_order)))
}

#' Later rows for join_groups()
#'
#' @param sums,places Sums, and of several factors for each factor the `unit` of each level and its
#'   `position` in it; or NULL.
#' @param columns,codes Columns, and the level of each row by each factor; or NULL.
#' @noRd
part_of_groups <- function(sums, places, columns, codes, levels, n, data_id, size)
  structure(list(sums = sums, places = places, columns = columns, codes = codes, levels = levels,
                 n = n, data_id = data_id, size = size), class = "part_of_groups")

#' Sums over groups, for join_groups() in another process
#' @noRd
part_of_sums <- function(encoded) {
  factors <- encoded$design$group_factors
  part_of_groups(encoded$rows, if (length(factors) > 1) places_of(factors), NULL, NULL,
                 lapply(factors, `[[`, "levels"), encoded$observations, encoded$data_id,
                 encoded$args$size)
}

places_of <- function(factors) lapply(factors, `[`, c("unit", "position"))

# Without rows, columns have no size.
without_any_group <- function(encoded) {
  encoded$rows <- encoded$rows[, 0, drop = FALSE]
  encoded$observations <- 0
  encoded$args$size <- 0 * encoded$args$size
  encoded["data_id"] <- list(NULL)
  for (label in names(encoded$design$group_factors))
    encoded$design$group_factors[[label]][c("unit", "position", "levels")] <-
      list(integer(), integer(), character())
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

#' Sums over units of several factors, with later ones. Later rows may join units.
#'
#' @param codes For each factor the number of each level of the part among all levels.
#' @noRd
add_to_unit_sums <- function(encoded, part, codes) {
  factors <- encoded$design$group_factors
  sets <- list(list(rows = encoded$rows, places = places_of(factors),
                    codes = lapply(factors, function(one) seq_along(one$unit))),
               list(rows = part$sums, places = part$places, codes = codes))
  linked <- lapply(sets, function(set) linked_levels(set$places, set$codes))
  grouped <- list(factors = do.call(Map, c(function(...) list(codes = c(...)), linked)))
  units <- units_of(grouped$factors)
  places <- places_in_units(grouped, units)
  q <- unname(effects_of_blocks(encoded$design))
  covariates <- length(encoded$design$covariates)
  size <- size_of_crossed(q, units, covariates)
  parts <- lapply(sets, function(set) {
    of <- function(f, what) places[[f]][[what]][set$codes[[f]]]
    from <- do.call(rbind, lapply(seq_along(q), function(f)
      data.frame(unit = set$places[[f]]$unit, factor = rep(f, length(set$codes[[f]])),
                 position = set$places[[f]]$position, level = as.integer(of(f, "position")))))
    list(rows = set$rows,
         unit = of(1, "unit")[match(seq_len(ncol(set$rows)), set$places[[1]]$unit)],
         level = from$level[order(from$unit, from$factor, from$position)])
  })
  encoded$rows <- encoded$design$units <-
    .Call(ffi_join_unit_sums, parts, q, units$many, covariates, size)
  encoded$n <- ncol(encoded$rows)
  encoded$args$levels <- crossed_levels(units)$levels
  for (label in names(places))
    encoded$design$group_factors[[label]][c("unit", "position")] <- places[[label]]
  encoded
}

#' Levels of each factor that are in one unit
#'
#' @return For each factor a vector: levels at the same place are in one unit.
#' @noRd
linked_levels <- function(places, codes) {
  first <- Map(function(place, code) {
    of <- integer()
    of[place$unit[place$position == 1]] <- code[place$position == 1]
    of
  }, places, codes)
  lapply(stats::setNames(seq_along(codes), names(codes)), function(f)
    unlist(lapply(seq_along(codes), function(g)
      if (g == f) codes[[f]] else first[[f]][places[[g]]$unit]), use.names = FALSE))
}

add_to_group_units <- function(model, encoded, part, codes) {
  design <- encoded$design
  old <- rows_of_units(encoded)
  width <- old$width
  columns <- cbind(old$columns, part$columns)
  x <- t(columns[-seq_len(width), , drop = FALSE])
  grouped <- list(
    effects = effects_with_columns(design, x),
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
  head <- unit_head(args, length(factors))
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
                part = part_of_sums, units = units_of_rows, count = count_units,
                counts = joined_counts, room = room_for_units, encode = encode_units,
                whole = with_all_units, prepared = with_effects, mean_draws = group_mean_draws)

# Rows of groups as C reads them: triangular factors of each group, sums over units, and units of
# rows (src/models/mixed/).

# The largest absolute value of the column of each parameter, zero for those without.
column_sizes <- function(base, further) {
  design <- base$design
  largest <- apply(abs(base$rows), 1, max)
  p <- length(design$covariates)
  at <- p + 1
  c(largest[seq_len(p)], unlist(lapply(further, function(name) {
    own <- design$further[[name]]
    if (is.null(own)) return(0)
    found <- largest[at + seq_along(own$covariates)]
    at <<- at + length(own$covariates) + 1
    found
  })))
}

# The group of each row by each factor, and the columns of effects.
group_columns <- function(grouped, codes)
  rbind(do.call(rbind, codes), t(do.call(cbind, lapply(grouped$effects, `[[`, "x"))))

# Where the effects of each level are: the unit, and the position among the levels of the unit.
level_places <- function(codes, unit, position) {
  first <- match(seq_len(max(codes)), codes)
  list(unit = unit[first], position = position[first])
}

#' For each group its number of rows and the triangular factor of its columns (ffi_group_sums)
#'
#' @return A list: `rows`, and `args`: the number of `columns` without the response, and `column`,
#'   that of each covariate, from zero.
#' @noRd
group_sums <- function(base, grouped) {
  p <- length(base$design$covariates)
  x <- covariates_and_response(base)
  y <- x[, p + 1]
  z <- do.call(cbind, lapply(grouped$effects, `[[`, "x"))
  named <- unlist(lapply(grouped$effects, `[[`, "names"))
  column <- vapply(seq_len(p), function(j) {
    # columns of other names may differ in later rows
    same <- which(named == base$design$covariates[j] &
                    vapply(seq_len(ncol(z)), function(k) all(z[, k] == x[, j]), NA))
    if (length(same)) same[1] else NA_integer_
  }, 0L)
  own <- which(is.na(column))
  column[own] <- ncol(z) + seq_along(own)
  columns <- cbind(z, x[, own, drop = FALSE], y)
  storage.mode(columns) <- "double"
  codes <- grouped$factors[[1]]$codes
  list(rows = .Call(ffi_group_sums, columns, codes, max(codes)),
       places = lapply(grouped$factors, function(one)
         level_places(one$codes, one$codes, rep(1, length(one$codes)))),
       args = list(columns = as.double(ncol(columns) - 1), column = as.double(column - 1)))
}

# Covariates, and the response without the offset.
covariates_and_response <- function(base) {
  p <- length(base$design$covariates)
  y <- base$rows[nrow(base$rows), ] - if (base$design$offset) base$rows[p + 1, ] else 0
  unname(cbind(t(base$rows[seq_len(p), , drop = FALSE]), y))
}

#' Units of several factors, and the levels of rows within them
#' @noRd
units_of <- function(factors) {
  codes <- lapply(factors, `[[`, "codes")
  unit <- .Call(ffi_group_units, codes)
  local <- lapply(codes, levels_in_unit, unit = unit)
  list(unit = unit, sizes = tabulate(unit), level = do.call(rbind, lapply(local, `[[`, "level")),
       many = do.call(rbind, lapply(local, `[[`, "many")))
}

#' Sums over units (ffi_unit_sums)
#' @noRd
crossed_sums <- function(base, grouped) {
  x <- covariates_and_response(base)
  z <- do.call(cbind, lapply(grouped$effects, `[[`, "x"))
  storage.mode(z) <- "double"
  units <- units_of(grouped$factors)
  q <- effects_of_factors(grouped)
  size <- size_of_crossed(q, units, ncol(x) - 1)
  list(rows = .Call(ffi_unit_sums, x, z, units$unit,
                    list(q = q, level = units$level, many = units$many), size),
       places = places_in_units(grouped, units), args = crossed_levels(units))
}

crossed_levels <- function(units) list(levels = as.double(apply(units$many, 1, max)))

# Numbers of a row of the engine for so many covariates.
size_of_crossed <- function(q, units, p) {
  levels <- crossed_levels(units)$levels
  dim <- sum(q * levels)
  rest <- dim - q[1] * levels[1]
  size <- 1 + length(q) + (p + 1) * (p + 2) / 2 + q[1] * levels[1] * (q[1] + rest) + rest^2 +
    rest + dim * (p + 1)
  check_unit_numbers(size, units)
  size
}

places_in_units <- function(grouped, units)
  lapply(stats::setNames(seq_along(grouped$factors), names(grouped$factors)), function(f)
    level_places(grouped$factors[[f]]$codes, units$unit, units$level[f, ]))

effects_of_factors <- function(grouped)
  vapply(names(grouped$factors), function(label) sum(lengths(lapply(grouped$effects, function(one)
    if (one$label == label) one$names))), 0L, USE.NAMES = FALSE)

check_unit_numbers <- function(size, units) {
  if (size * length(units$sizes) > UNIT_NUMBERS)
    fail("`data` must have groups that need less memory: ", count(length(units$sizes)),
         " groups, or joined groups, of up to ", count(max(units$sizes)), " rows need ",
         count(round(8e-9 * size * length(units$sizes))), " GB. Groups of similar sizes need ",
         "less.")
}

# Nodes of adaptive quadrature for each of so many effects of a group, and random points if there
# are more effects or several factors.
QUADRATURE_NODES <- c(11, 7, 5)
RANDOM_POINTS <- 64

#' How C integrates out effects. A density that is normal in the effects needs no points, and for
#' its gradient two nodes.
#' @noRd
integration_rule <- function(model, effects) {
  q <- sum(lengths(lapply(effects, `[[`, "names")))
  normal <- is_normal(model$family) &&
    !any(vapply(effects, `[[`, 0, "part") > 0)
  if (model$crossed && !model$sums)
    return(list(nodes = 0, draws = if (normal) 1 else RANDOM_POINTS))
  nodes <- if (normal && q <= 6) 2
  else if (q <= length(QUADRATURE_NODES)) QUADRATURE_NODES[q] else 0
  list(nodes = nodes, draws = RANDOM_POINTS)
}

# Most numbers of padded units.
UNIT_NUMBERS <- 3e8

#' Units as models/mixed/unit.h describes them, each padded to the size of the largest
#'
#' @param room NULL, or `args` of earlier units: these have the same columns, and the same number of
#'   rows with those that are padded.
#' @param before Number of units before these.
#' @noRd
group_units <- function(base, grouped, rule, room = NULL, before = 0) {
  units <- units_of(grouped$factors)
  z <- do.call(cbind, lapply(grouped$effects, `[[`, "x"))
  width <- nrow(base$rows)
  at <- if (is.null(room)) columns_of_effects(base, z) else room$effect_column + 1
  extra <- which(at > width)
  if (!is.null(room)) for (k in which(at <= width))
    if (!all(base$rows[at[k], ] == z[, k]))
      fail("The column of effect ", k, " must be that of a covariate in all rows, as in the first.")
  rows <- rbind(base$rows, t(z[, extra, drop = FALSE]), units$level - 1)
  sizes <- units$sizes
  head <- unit_head(rule, length(grouped$factors))
  most <- if (is.null(room)) max(sizes) else room$rows
  if (max(sizes) > most) refuse_large_unit(grouped$factors[[1]], units, sizes, most, "rows")
  if (!is.null(room)) for (f in which(apply(units$many, 1, max) > room$levels))
    refuse_large_unit(grouped$factors[[1]], units, units$many[f, ], room$levels[f],
                      paste0("levels of `", names(grouped$factors)[f], "`"))
  size <- head + most * nrow(rows)
  check_unit_numbers(size, units)
  found <- matrix(0, size, length(sizes))
  found[1, ] <- sizes
  found[1 + seq_len(nrow(units$many)), ] <- units$many
  if (has_random_points(rule)) found[head, ] <- before + seq_along(sizes)
  order <- order(units$unit)
  place <- (units$unit[order] - 1) * size + head + (sequence(sizes) - 1) * nrow(rows)
  found[rep(place, each = nrow(rows)) + seq_len(nrow(rows))] <- rows[, order]
  list(rows = found, places = places_in_units(grouped, units), args = c(rule, list(
    base = as.double(length(base$user_names)),
    rows = as.double(most),
    extra_columns = as.double(length(extra)),
    effect_column = as.double(at - 1),
    effect_part = unlist(lapply(grouped$effects, function(one)
      rep(as.double(one$part), length(one$names)))),
    levels = as.double(apply(units$many, 1, max))
  )))
}

# A column that the row has already is not written again.
columns_of_effects <- function(base, z) {
  width <- nrow(base$rows)
  at <- vapply(seq_len(ncol(z)), function(k) {
    same <- which(vapply(seq_len(width), function(j) all(base$rows[j, ] == z[, k]), NA))
    if (length(same)) same[1] else NA_integer_
  }, 0L)
  extra <- which(is.na(at))
  at[extra] <- width + seq_along(extra)
  at
}

has_random_points <- function(rule) rule$nodes == 0 && rule$draws > 1

# Numbers of a unit before its rows.
unit_head <- function(rule, factors) 1 + factors + has_random_points(rule)

refuse_large_unit <- function(factor, units, sizes, most, what) {
  largest <- which.max(sizes)
  fail("There must be at most ", count(most), " ", what, " in a group, twice the most of the ",
       "first groups. Group ", show_text(factor$levels[factor$codes[match(largest, units$unit)]]),
       " has ", count(sizes[largest]), ". Let a large group come first, use a source that can be ",
       "read again, or leave out `keep`.")
}

#' The levels of a factor counted within each unit, from 1
#' @noRd
levels_in_unit <- function(codes, unit) {
  first <- which(!duplicated(codes))
  of <- unit[first]
  order <- order(of)
  many <- tabulate(of, max(unit))
  level <- integer(length(first))
  level[codes[first[order]]] <- sequence(many)
  list(level = level[codes], many = many)
}

#' Which coefficient is the mean of the effects whose standard deviation a parameter is
#' (le_means_read)
#'
#' @param names Those of the parameters of the regression without groups.
#' @param parameters Number of parameters of the groups: standard deviations, then correlations.
#' @noRd
args_of_means <- function(names, effects, factors, parameters) {
  own <- lapply(effects, `[[`, "names")
  mean <- match(unlist(own), names, nomatch = 0) - 1
  levels <- vapply(effects, function(one) length(factors[[one$label]]$levels), 0L)
  none <- rep(0, parameters - length(mean))
  before <- rep(0, length(names))
  list(mean_of = c(before - 1, mean, none - 1),
       mean_share = c(before + 1, 1 / rep(levels, lengths(own)), none + 1))
}

# The blocks of effects, with their columns of later rows.
effects_with_columns <- function(design, x) {
  at <- cumsum(c(0, lengths(lapply(design$group_effects, `[[`, "names"))))
  lapply(seq_along(design$group_effects), function(b)
    c(design$group_effects[[b]], list(x = x[, (at[b] + 1):at[b + 1], drop = FALSE])))
}

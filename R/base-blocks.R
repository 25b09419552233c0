# Blocks of rows as sources give them: data frames, or batches of Arrow (src/bridge/arrow.c).

block_rows <- function(block) {
  if (is_arrow_block(block)) return(block$n)
  NROW(if (is.list(block) && !is.data.frame(block)) block$x else block)
}

#' A block in a form that models accept as data
#' @noRd
block_data <- function(block) if (is_arrow_block(block)) arrow_frame(list(block)) else block

block_part <- function(block, which) {
  if (is.data.frame(block) || is.matrix(block)) block[which, , drop = FALSE]
  else if (is.list(block)) list(x = block_part(block$x, which), y = block$y[which])
  else block[which]
}

#' What blocks that are put together must have in common: the type of each column that is used
#'
#' Blocks of different types are given to the model one by one, so that its checks find the
#' difference, and name the rows, whatever the size of the blocks.
#'
#' @param used Names of columns, or NULL for all.
#' @noRd
block_kinds <- function(block, used = NULL) {
  if (is_arrow_block(block)) return("arrow")
  if (is.data.frame(block)) {
    names <- if (is.null(used)) sort(names(block)) else used[used %in% names(block)]
    return(vapply(.subset(block, names), column_kind, ""))
  }
  if (is.matrix(block) || !is.list(block)) return(column_kind(block))
  c(column_kind(block$x), column_kind(block$y))
}

#' @param used As in block_kinds(), which must be equal for all blocks.
#' @noRd
bind_blocks <- function(blocks, used = NULL) {
  if (length(blocks) == 1) return(blocks[[1]])
  first <- blocks[[1]]
  if (is_arrow_block(first)) return(arrow_frame(blocks))
  if (is.data.frame(first)) bind_frames(blocks, used)
  else if (is.matrix(first)) do.call(rbind, blocks)
  else if (is.list(first))
    list(x = bind_blocks(lapply(blocks, `[[`, "x")), y = bind_column(lapply(blocks, `[[`, "y")))
  else unlist(blocks)
}

# rbind() takes seconds for thousands of small data frames, so columns are bound one by one. Columns
# that are not used are left out if they change.
bind_frames <- function(blocks, used) {
  names <- names(blocks[[1]])
  alike <- vapply(blocks, function(block) identical(names(block), names), NA)
  columns <- lapply(seq_along(names), function(j) {
    parts <- lapply(blocks, .subset2, if (all(alike)) j else names[j])
    if (is.null(used) || names[j] %in% used) bind_column(parts)
    else if (all(lengths(parts) > 0))
      tryCatch(suppressWarnings(bind_column(parts)), error = function(e) NULL)
  })
  names(columns) <- names
  structure(Filter(Negate(is.null), columns), class = "data.frame",
            row.names = .set_row_names(sum(vapply(blocks, nrow, 1L))))
}

# Parts of a column whose types are the same.
bind_column <- function(parts) {
  kinds <- unique(lapply(parts, attributes))
  first <- parts[[1]]
  plain <- length(kinds) == 1 && is.atomic(first) && is.null(dim(first)) && is.null(names(first))
  if (plain) {
    all <- unlist(lapply(parts, unclass))
    attributes(all) <- kinds[[1]]
    return(all)
  }
  # columns of other classes are bound by their own method of rbind()
  do.call(rbind, lapply(parts, function(part) {
    frame <- data.frame(row.names = seq_len(NROW(part)))
    frame$it <- part
    frame
  }))$it
}

is_arrow_block <- function(block) inherits(block, "arrow_block")

#' Batches as one data frame
#'
#' Columns with a dictionary are factors with its values as levels.
#' @noRd
arrow_frame <- function(blocks) {
  first <- blocks[[1]]
  arrays <- lapply(blocks, function(block) without_slice(block$array))
  stream <- nanoarrow::basic_array_stream(arrays, first$schema, validate = FALSE)
  frame <- as.data.frame(nanoarrow::convert_array_stream(stream))
  columns <- first$schema$children
  for (name in names(columns)) {
    x <- frame[[name]]
    if (inherits(x, "integer64")) frame[[name]] <- as.double(x)
    else if (!is.null(columns[[name]]$dictionary) && is.character(x))
      frame[[name]] <- factor(x, dictionary_values(arrays, name))
  }
  with_levels(frame, first$levels, 0)
}

# nanoarrow 0.9 reads a batch that is a slice of its columns as if it began at their first rows.
without_slice <- function(array) {
  n <- array$length
  from <- array$offset
  if (from == 0 && all(vapply(array$children, function(child) child$length == n, NA))) return(array)
  cut <- function(child) {
    missing <- if (child$null_count == 0) 0 else -1 # -1: not known
    nanoarrow::nanoarrow_array_modify(child, list(offset = child$offset + from, length = n,
                                                  null_count = missing))
  }
  nanoarrow::nanoarrow_array_modify(array, list(offset = 0, children = lapply(array$children, cut)))
}

dictionary_values <- function(arrays, name) {
  values <- lapply(arrays, function(array)
    nanoarrow::convert_array(array$children[[name]]$dictionary))
  unique(unlist(values))
}

# Rows for update() with levels of factors that a fit does not have: an error says what to do, or
# the rows are left out as they are read.

UPDATE_LEVELS <- c("new", "omit")

#' A source whose rows have only levels of covariates that the fits have
#'
#' New levels of groups and of the response are not looked at.
#' @param designs Of all fits that read the rows.
#' @param levels "new": a new level is an error. "omit": its rows are left out, and a message says
#'   how many.
#' @noRd
rows_of_known_levels <- function(source, designs, levels) {
  lagged <- any(vapply(designs, function(design) isTRUE(design$lag > 0), NA))
  designs <- unlist(lapply(designs, levelled_parts), FALSE)
  if (!length(designs)) return(source)
  omit <- levels == "omit"
  if (omit && lagged)
    fail("`levels` must be \"new\" for a model with lags(): without a row, the rows around it ",
         "would count as neighbours.")
  said <- FALSE
  open <- function() {
    reader <- source$open()
    before <- 0
    left <- new.env(parent = emptyenv())
    list(check = reader$check, read = function() {
      block <- reader$read()
      if (is.null(block)) {
        if (!said && before > 0) said <<- say_left_out(left, before)
        return(NULL)
      }
      new <- lapply(new_levels(block, designs), function(own) {
        if (!omit) refuse_level(own, before)
        note_left_out(left, own)
        own$row
      })
      rows <- unique(unlist(new))
      before <<- before + block_rows(block)
      if (length(rows)) block_part(block_data(block), -rows) else block
    }, close = reader$close)
  }
  new_source(c("rows_of_known_levels", class(source)[1]), source$describe, open, source$rewinds,
             if (omit) function() NA_real_ else source$count, source$lasts)
}

# The designs of all formulas of a model: further parameters have their own.
levelled_parts <- function(design) {
  if (!is.list(design)) return(NULL)
  c(if (length(design$levels_of)) list(design),
    unlist(lapply(unname(design[names(design) != "levels_of"]), levelled_parts), FALSE))
}

#' Where covariates of a block have levels that are not known: for each of them a list of `name`,
#' `known`, and the `row` and `value` of each
#' @noRd
new_levels <- function(block, designs) {
  data <- block_data(block)
  if (!is.data.frame(data)) return(NULL)
  found <- list()
  for (design in designs) for (name in setdiff(names(design$levels_of), names(found))) {
    # a column that is missing or has another type is refused when the model reads the block
    x <- tryCatch(eval(str2lang(name), data, environment(design$terms)), error = function(e) NULL)
    if (!is.factor(x) && !is.character(x)) next
    known <- design$levels_of[[name]]$levels
    value <- as.character(x)
    row <- which(!is.na(value) & !value %in% known)
    if (length(row)) found[[name]] <- list(name = name, known = known, row = row,
                                           value = value[row])
  }
  found
}

refuse_level <- function(new, before) {
  fail("`rows` must have only known levels in `", new$name, "` (", show_levels(new$known),
       "), not ", show_text(new$value[1]), " in row ", plain_number(before + new$row[1]), ": the ",
       "run has no coefficient for it. Leave such rows out by `levels = \"omit\"`, or fit all ",
       "rows with evidence(). A factor that has the level from the start, by ",
       "`factor(levels = )`, or that is a group, as in `(1 | ", new$name, ")`, takes such rows.")
}

note_left_out <- function(left, new) {
  counts <- table(new$value)
  old <- left[[new$name]]
  for (value in names(counts)) old[value] <- sum(old[value], counts[[value]], na.rm = TRUE)
  assign(new$name, old, envir = left)
}

# "2 of 40 rows were left out ...: levels "d" (2 rows) of `f`."
say_left_out <- function(left, n) {
  names <- sort(ls(left, all.names = TRUE))
  if (length(names)) {
    each <- vapply(names, function(name) {
      counts <- left[[name]]
      shown <- utils::head(counts, 5)
      paste0("`", name, "`: ", paste0(show_text(names(shown)), " (",
                                      vapply(shown, count_of, "", "row"), ")", collapse = ", "),
             if (length(counts) > 5) paste0(" and ", count_of(length(counts) - 5, "level")))
    }, "")
    message("Of ", count_of(n, "row"), ", those with levels that the fit does not have were left ",
            "out (`levels = \"omit\"`). ", paste(each, collapse = "; "), ".")
  }
  TRUE
}

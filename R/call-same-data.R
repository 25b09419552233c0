# May fits be compared? They must be to the same observations, and have the same improper priors.

#' @param trusted Whether the user says that the observations are the same: only their numbers are
#'   compared.
#' @noRd
check_same_data <- function(fits, names, trusted = FALSE) {
  check_same_number(fits, names, trusted)
  check_same_improper(fits, names)
  check_same_scale(fits, names)
  if (trusted) return(invisible())
  first <- fits[[1]]
  for (i in seq_along(fits)[-1]) {
    if (same_observations(fits[[i]], first)) next
    if (is.na(first$n) || is.na(fits[[i]]$n))
      fail(OTHER_DATA, "the observations of `", names[if (is.na(first$n)) 1 else i],
           "` are not known. Give its model `observed`.")
    fail(OTHER_DATA, "`", names[1], "` has ", first$n, " observations, `", names[i],
           "` as many, but with other values. ", joint_density(fits[c(1, i)], names[c(1, i)]),
         SAME_ALL_THE_SAME)
  }
  pair <- pairings_differ(fits)
  if (!is.null(pair))
    fail(OTHER_DATA, "in `", names[pair$of[1]], "` and `", names[pair$of[2]], "`, ", pair$reason,
         ".")
}

OTHER_DATA <- "Fits to different data cannot be compared: "

SAME_ALL_THE_SAME <- paste("If they are the same observations (a file may have rounded them:",
                           "write.csv() keeps 15 digits), compare_models() takes them with",
                           "`same_rows = TRUE`.")

# Which of the fits is of a density whose response cannot be told from its covariates?
joint_density <- function(fits, names) {
  several <- which(vapply(fits, function(fit) length(fit$design$density_of) > 1, NA))[1]
  if (!is.na(several))
    paste0("The density of `", names[several], "` is taken for one of ",
           show_names(fits[[several]]$design$density_of), " together: only what is a parameter of ",
           "a density of R alone, as `x` in dnorm(y, a + b * x, s), is a covariate. ")
}

# Models of `y` and `log(y)` are refused: the observations are the same, but not their densities.
check_same_scale <- function(fits, names) {
  formulas <- lapply(fits, function(fit) {
    formula <- fit$model$formula
    if (inherits(formula, "formula") && length(formula) == 3) formula
  })
  known <- which(lengths(formulas) > 0)
  for (i in known[-1]) {
    one <- formulas[[known[1]]]
    two <- formulas[[i]]
    if (!other_scale(one, two) || same_observations(fits[[known[1]]], fits[[i]])) next
    fail("Fits to different scales of the response cannot be compared: `", names[known[1]],
         "` is a density of ", deparse1(one[[2]]), ", `", names[i], "` of ", deparse1(two[[2]]),
         ". Give both models the same response",
         if (any(grepl("^log\\(", c(deparse1(one[[2]]), deparse1(two[[2]])))))
           " (?families has the lognormal model)", ".")
  }
}

# Do the responses differ at some values of the same columns? FALSE if they are no numbers.
other_scale <- function(one, two) {
  columns <- all.vars(one[[2]])
  if (identical(one[[2]], two[[2]]) || !setequal(columns, all.vars(two[[2]]))) return(FALSE)
  at <- lapply(stats::setNames(seq_along(columns), columns), function(k) c(0.4, 1.7, 6.1) + k / 10)
  value <- function(formula)
    or_null(suppressWarnings(eval(formula[[2]], at, environment(formula))))
  one <- value(one)
  two <- value(two)
  is.numeric(one) && is.numeric(two) && !isTRUE(all.equal(as.vector(one), as.vector(two)))
}

check_same_number <- function(fits, names, trusted) {
  n <- vapply(fits, function(fit) as.double(fit$n), 0)
  # models that a user has compiled may count all data as one observation
  known <- n[!is.na(n)][1]
  other <- which(n != known & !(trusted & (n == 1 | known == 1)))[1]
  if (is.na(other)) return(invisible())
  gone <- vapply(fits, function(fit) length(fit$na.action), 0L)
  fail(OTHER_DATA, "`", names[match(known, n)], "` has ", known, " observations, `", names[other],
       "` ", n[other], ".", if (any(gone > 0)) paste0(
         " Rows with missing values were left out (", show_gone(names, gone), "): fit all models ",
         "to the rows that are complete in the columns of all of them."),
       advice_on_lags(fits, names, n))
}

#' What to do where fits differ in the rows that lags() took from the beginning, or NULL
#' @noRd
advice_on_lags <- function(fits, names, n) {
  lag <- vapply(fits, function(fit) c(or_null(model_lag(fit$model)), 0)[1], 0)
  if (all(lag == 0) || anyNA(n)) return(NULL)
  why <- paste(" With lags() the first rows of the data, as many as the longest lag, have no",
               "likelihood:")
  # the name in a formula may have another value by now, so the numbers must agree
  if (any(n + lag != (n + lag)[1]) || all(lag == lag[1]))
    return(paste(why, "leave out rows so that the first response is the same."))
  short <- which(lag < max(lag))
  more <- max(lag) - lag[short]
  paste0(why, " fit ", paste0("`", names[short], "` without the first ",
                              ifelse(more == 1, "row", paste(more, "rows")), collapse = ", "),
         ", so that all models have the same responses.")
}

#' The number of observations, NA if no fit knows it
#' @noRd
# Models without data have no number of rows, unless it is that of another package's object.
has_no_data <- function(fit)
  !is.null(fit$call) && is.null(fit$call$data) && isTRUE(fit$n == 1)

most_known <- function(fits) {
  n <- vapply(fits, function(fit) as.double(fit$n), 0)
  c(unname(n[!is.na(n)]), NA)[1]
}

show_gone <- function(names, gone) {
  some <- utils::head(which(gone > 0), 5)
  paste0("`", names[some], "`: ", gone[some], collapse = ", ")
}

# The arbitrary factor of an improper prior cancels between models that have it in common.
check_same_improper <- function(fits, names) {
  parts <- lapply(fits, function(fit) improper_parts(fit$model, fit$design))
  other <- which(!vapply(parts, identical, NA, parts[[1]]))[1]
  if (is.na(other)) return(invisible())
  words <- function(i) paste0("`", names[i], "` has ", if (is.null(parts[[i]])) "a proper prior"
                              else paste("improper priors of", either(parts[[i]])))
  fail("Fits with improper priors can be compared only if the same parameters have them: ",
       words(1), ", ", words(other), ".")
}

# A custom model does not say which part of its data it explains, so the two must have a column in
# common.
same_observations <- function(one, two) {
  # some streams have no fingerprint
  if (identical(one$data_id, two$data_id) || any(ids_of(one) %in% ids_of(two))) return(TRUE)
  # which columns are responses may be written differently, as in dnorm(y - b * x, 0, s)
  read <- read_ids(one)
  if (!is.null(read) && identical(read, read_ids(two))) return(TRUE)
  custom <- function(fit) asks_r(fit$model)
  if (isTRUE(one$n != two$n) || !custom(one) && !custom(two)) return(FALSE)
  if (custom(one) && custom(two)) {
    if (is.null(one$design$columns) || is.null(two$design$columns)) return(FALSE)
    alike <- identical(one$design$names, two$design$names) &&
      length(one$design$columns) == length(two$design$columns)
    return(!alike && any(one$design$columns %in% two$design$columns))
  }
  own <- if (custom(one)) one else two
  other <- if (custom(one)) two else one
  # classes can have different codes, and data of several columns have no fingerprint of one column
  of_one_number <- part_of(other$model, "one_number")
  !of_one_number || any(c(other$data_id, other$design$column_ids) %in% own$design$columns)
}

#' What is not checked where a likelihood of the user's own, of data of several columns, is compared
#' with another model: which of the columns it explains; or NULL
#' @noRd
unchecked_response <- function(fits, names) {
  own <- vapply(fits, function(fit) asks_r(fit$model) && length(fit$design$columns) > 1, NA)
  others <- !vapply(fits, function(fit) asks_r(fit$model), NA)
  if (!any(own) || !any(others)) return(NULL)
  response <- unique(unlist(lapply(fits[others], function(fit) {
    formula <- fit$model$formula
    if (length(formula) == 3) deparse1(formula[[2]])
  })))
  shown <- utils::head(names[own], 5)
  paste0("Not checked: ", paste0("`", shown, "`", collapse = ", "),
         if (sum(own) == 1) " has your own likelihood" else " have your own likelihoods",
         ", of data with several columns. Bayes factors have a meaning only if it is the density ",
         "of ", if (length(response) == 1) paste0("`", response, "`")
         else "the same columns", ", as in the other models.")
}

# A column of the response that is constant, as equal numbers of trials, may be a constant in the
# other model: there is a fingerprint without it, too, unless rows were added later.
ids_of <- function(fit) {
  varying <- fit$design$varying_id
  c(fit$data_id, if (is_of_all_rows(varying, fit)) varying)
}

is_of_all_rows <- function(id, fit)
  !is.null(id) && isTRUE(as.numeric(sub("-.*", "", id[1])) == fit$n)

# The columns of the expression of a density(), covariates among them.
read_ids <- function(fit) {
  ids <- unname(fit$design$read_ids)
  if (is_of_all_rows(ids, fit)) ids
}

# What the page of a report says of a fit besides its evidence: rows and events, the call, and the
# estimates of parameters.

#' The rows of the fits, and the events in them, if the data of the call are still there
#'
#' @param envir Where the call is evaluated.
#' @return A data frame of text, or NULL for models without data.
#' @noRd
rows_table <- function(fit, envir) {
  if (is.na(fit$n) || has_no_data(fit)) return(NULL)
  left <- length(fit$na.action)
  found <- c(rows = count(fit$n), if (left) c(`left out, with missing values` = count(left)),
             or_null(events_of(fit, envir)))
  data.frame(data = names(found), number = unname(found))
}

#' Numbers of events as text, by what they are; NULL for a response that has none
#' @noRd
events_of <- function(fit, envir) {
  kind <- if (!is.null(fit$model$family)) family_facts(fit$model$family)$response
  responses <- part_of(fit$model, "responses")
  if (is.null(responses) || is_latent(fit$model)) return(NULL)
  encoded <- by_observation(in_frame(own_data, list(fit, NULL, envir), envir))
  y <- responses(fit, encoded$rows, encoded$offset)
  if (is.factor(y)) {
    counts <- table(y)
    return(stats::setNames(count_each(as.vector(counts)), paste0("of class ", names(counts))))
  }
  if (is.null(kind)) return(NULL)
  extra <- if (isTRUE(fit$design$extra)) encoded$rows[nrow(encoded$rows) - 1, ]
  switch(kind,
         successes = c(events = paste(count(if (is.matrix(y)) sum(y[, 1]) else sum(y)), "of",
                                      count(if (is.null(extra)) length(y) else sum(extra)))),
         counts = c(`events (sum of counts)` = count(sum(y))),
         times = if (is.null(extra)) c(events = count(length(y)))
         else c(events = count(sum(extra)), censored = count(sum(extra == 0))))
}

#' The call of a fit in lines; objects in it, as do.call() leaves them, are named by their class
#' @noRd
call_lines <- function(fit) {
  if (is.null(fit$call)) return(NULL)
  call <- as.list(fit$call)
  if (is.function(call[[1]])) call[[1]] <- as.name("evidence")
  large <- vapply(call, function(part) {
    made <- is.object(part) && !inherits(part, "formula")
    made || !is.language(part) && length(part) > 5
  }, NA)
  call[large] <- lapply(call[large], function(part)
    as.name(paste0("<", utils::tail(class(part), 1), ">")))
  lines <- gsub("`(<[^`]*>)`", "\\1", deparse(as.call(call), width.cutoff = 80L))
  c(utils::head(lines, CALL_LINES), if (length(lines) > CALL_LINES) "...")
}

CALL_LINES <- 20

# The most parameters on a page; of more it has the first.
ESTIMATES_MOST <- 50

#' The estimates of a fit: a `table` of text, and a `note`
#' @noRd
estimates_of <- function(fit) {
  summary <- summary.evidence(fit)
  table <- utils::head(summary$parameters, ESTIMATES_MOST)
  hidden <- nrow(summary$parameters) - nrow(table)
  list(table = if (nrow(table)) data.frame(parameter = rownames(table), format_parameters(table),
                                           check.names = FALSE),
       note = paste(c(if (hidden > 0) paste("and", count_of(hidden, "more parameter")),
                      if (summary$exchangeable) "Components are numbered arbitrarily."),
                    collapse = "; "))
}

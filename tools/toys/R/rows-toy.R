# Waiting times from a generator, in blocks.

#' A toy source of rows: the waiting times of a radioactive sample, the same whenever they are read
#' @noRd
rows_toy <- function(n, block = 8) {
  new_source("rows_toy", function() list("Waiting times from a generator"), function() {
    times <- with_seed_words(seed_words(1), stats::rexp(n, 2))
    at <- 0
    list(read = function() {
      from <- at
      at <<- min(n, at + block)
      if (from < n) times[(from + 1):at]
    }, close = function() NULL)
  }, rewinds = TRUE)
}

# What all checks of check_model() share: their limits, seeds, sentences.

CHECK <- list(
  rows = 200,           # of the data
  latent_rows = 40,
  points = 6,           # at which most functions are compared
  draws = c(2000, 500), # from the prior; the second of R functions
  sums = 1e-8,          # relative, of sums in another order
  single = 1e-4,        # of single precision
  slopes = 1e-4,        # of differences
  inverse = 1e-6,       # of parameters computed from the user's scale
  level = 1e-5,         # of the tests of the prior's draws
  z = 6,                # standard errors, of the prior's constant
  threads = 0.04        # seconds for which two threads call each function at once
)

a_call <- function(bench, what, theta = NULL, rows = bench$rows, ...) {
  list(what = what, theta = theta, rows = rows, ...)
}

written_by <- function(answer) c(answer$first, answer$second)

# What a check finds; a sentence for what should be is denied where it is not.
finding <- function(holds, value, what) list(holds = holds, value = value, what = what)

holding <- function(holds, value, rule, more = NULL) {
  more <- if (length(more)) paste0(" (", more, ")")
  finding(holds, value, paste0(if (!holds) "not so: ", rule, more))
}

not_checked <- function(why) finding(NA, NA, why)

failing <- function(why) finding(FALSE, NA, why)

#' The largest of some relative differences against its limit, and where it was
#' @noRd
against <- function(differences, limit, agree, where = names(differences)) {
  differences <- unlist(differences)
  if (all(is.na(differences))) return(not_checked("could not be compared"))
  worst <- which.max(replace(differences, is.na(differences), -1))
  value <- max(differences[worst], 0)
  holds <- value <= limit
  holding(holds, value, agree, paste0(if (!holds && length(where)) paste0(where[worst], ", "),
                                      "difference ", format(value, digits = 2)))
}

#' Largest difference between numbers, relative to a scale; infinite numbers must be the same ones
#' @noRd
difference <- function(a, b, scale = pmax(abs(a), abs(b))) {
  if (length(a) != length(b) || anyNA(a) || anyNA(b)) return(Inf)
  same <- a == b
  if (all(same)) return(0)
  d <- abs(a - b) / pmax(scale, 1e-300)
  if (!all(is.finite(a[!same]) & is.finite(b[!same]))) Inf else max(d[!same])
}

a_seed <- function() c(0, floor(stats::runif(1, 1, 2^31)))

prior_spread <- function(draws) {
  spread <- apply(draws, 1, stats::mad)
  flat <- !(spread > 0)
  spread[flat] <- pmax(apply(draws[flat, , drop = FALSE], 1, stats::sd), 1e-8)
  spread
}

# The size of entries, the largest: the digits of tiny ones beside it do not count.
size_of <- function(x) {
  x <- abs(x[is.finite(x)])
  if (length(x)) max(x) else 1
}

# Rounding makes ties of numbers that are not equal, and others of numbers that are.
ks_p <- function(x, y) {
  z <- signif(c(x, y), 10)
  if (length(unique(z)) == 1) return(1)
  suppressWarnings(stats::ks.test(z[seq_along(x)], z[-seq_along(x)], exact = FALSE)$p.value)
}

some_of <- function(d, most = 10) if (d <= most) seq_len(d) else sort(sample.int(d, most))

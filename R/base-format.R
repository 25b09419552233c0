# Numbers, times and words as text.

plus_minus <- function() if (isTRUE(l10n_info()[["UTF-8"]])) "\u00b1" else "+/-"

# One significant digit of the standard error, two if it starts with a 1.
decimals_for <- function(se) {
  if (!is.finite(se) || se <= 0) return(3)
  exponent <- floor(log10(se))
  lead <- se / 10^exponent
  min(8, max(0, -exponent + (lead < 1.95)))
}

# Without the sign of what rounds to zero.
format_number <- function(x, decimals) {
  if (!is.finite(x)) return(format(x))
  sub("^-(0\\.?0*)$", "\\1", formatC(x, digits = decimals, format = "f", decimal.mark = "."))
}

format_number_each <- function(x, decimals) vapply(x, format_number, "", decimals = decimals)

#' Estimates and standard errors as text, aligned at the decimal point
#' @noRd
align_estimates <- function(estimates, ses, digits = NULL) {
  decimals <- if (is.null(digits)) vapply(ses, decimals_for, 0)
  else pmax(0, digits - nchar(trunc(abs(estimates))))
  values <- mapply(format_number, estimates, decimals)
  shown <- if (is.null(digits)) mapply(format_number, ses, decimals)
  else vapply(signif(ses, 2), format, "")
  errors <- ifelse(is.na(ses), "?", ifelse(ses == 0, "0", shown))
  whole <- nchar(sub("\\..*", "", values))
  values <- format(paste0(strrep(" ", max(whole) - whole), values))
  format(paste(values, plus_minus(), errors))
}

# A number of rows as R has it, which may be larger than its integers.
count_as_integer <- function(n) if (isTRUE(n > .Machine$integer.max)) n else as.integer(n)

count <- function(x) {
  format(round(x), big.mark = ",", decimal.mark = ".", scientific = x >= 1e12, trim = TRUE)
}

row_words <- function(n, unit = NULL) {
  if (is.na(n)) return("rows not known")
  paste0("n = ", if (is.null(unit)) count(n) else count_of(n, unit))
}

# "34.5 million": three digits are enough for a cost.
large <- function(x) {
  if (x < 1e6) return(count(signif(x, 3)))
  size <- if (x < 1e9) 1e6 else 1e9
  paste(count_digits(x / size), if (x < 1e9) "million" else "billion")
}

count_digits <- function(x)
  format(signif(x, 3), big.mark = ",", decimal.mark = ".", scientific = FALSE)

count_of <- function(n, noun) paste0(count(n), " ", noun, if (round(n) != 1) "s")

percent <- function(share) paste0(round(100 * share), "%")

show_probability <- function(p) {
  ifelse(p > 0.9995 & p < 1, ">0.999",
         ifelse(p < 0.0005 & p > 0, "<0.001", formatC(p, digits = 3, format = "f")))
}

# A Bayes factor of at least 1, to two digits or as a power of ten.
show_factor <- function(log_bf) {
  if (log_bf < log(10)) return(sprintf("%.1f", exp(log_bf)))
  if (log_bf < log(1e6)) return(format(signif(exp(log_bf), 2), big.mark = ",", scientific = FALSE))
  power <- log_bf / log(10)
  paste0(format(round(10^(power - floor(power)), 1), nsmall = 1), " x 10^", floor(power))
}

show_time <- function(seconds) if (seconds < 5e-4) "less than 1 ms" else format_seconds(seconds)

format_seconds <- function(seconds) {
  if (seconds < 1) return(sprintf("%.0f ms", 1000 * seconds))
  if (seconds < 10) return(sprintf("%.1f s", seconds))
  if (seconds < 100) return(sprintf("%.0f s", seconds))
  if (seconds < 5400) return(sprintf("%.0f min", seconds / 60))
  sprintf("%.1f h", seconds / 3600)
}

shorten <- function(text, width)
  if (nchar(text) > width) paste0(substr(text, 1, width - 3), "...") else text

#' Different texts as different ones of at most this width
#'
#' Those that begin alike are cut in the middle, and numbered if they end alike, too.
#' @noRd
shorten_apart <- function(texts, width) {
  short <- vapply(texts, shorten, "", width, USE.NAMES = FALSE)
  same <- function() short %in% short[duplicated(short)] & nchar(texts) > width
  half <- (width - 3) %/% 2
  cut <- same()
  short[cut] <- paste0(substr(texts[cut], 1, half), "...",
                       substring(texts[cut], nchar(texts[cut]) - (width - 3 - half) + 1))
  cut <- same()
  numbers <- paste0("...", which(cut))
  short[cut] <- paste0(substr(texts[cut], 1, width - nchar(numbers)), numbers)
  short
}

# Long lines are broken between words; lines that fit are printed unchanged, with their spaces.
cat_wrapped <- function(lines, exdent = 0) {
  width <- max(60, getOption("width"))
  for (line in lines)
    cat(if (nchar(line) <= width) line else strwrap(line, width, exdent = exdent), sep = "\n")
}

show_share <- function(share)
  if (isTRUE(share < 0.01)) "under 1%" else sprintf("%.0f%%", 100 * share)

format_each <- function(x) vapply(unname(x), format, "", digits = 6)

count_each <- function(n) vapply(n, count, "")

PACKAGE <- "logevidence"
# C reads it too. The sources by themselves, from which NAMESPACE is written, have none.
PACKAGE_VERSION <- if (isNamespace(topenv())) as.character(getNamespaceVersion(topenv()))

# Kass and Raftery's terms for a Bayes factor of at least 1, and the thresholds between them.
STRENGTHS <- c("not worth more than a mention", "substantial", "strong", "decisive")
LADDER <- 10^c(0.5, 1, 2)

# Names of models, of which at most five are written out.
show_models <- function(names) {
  paste0(paste(utils::head(names, 5), collapse = ", "),
         if (length(names) > 5) paste(" and", length(names) - 5, "more"))
}

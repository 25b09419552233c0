# Colours, axes and words that several items share.

# Okabe and Ito's palette, which colour-blind readers can tell apart.
PALETTE <- c("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")

# Panels of a picture in rows and columns; `left` is the width of the left margin in lines.
panels <- function(rows = 1, columns = 1, left = 4.6) {
  par(mfrow = c(rows, columns), mar = c(3.4, left, 2, 0.8), mgp = c(2.2, 0.6, 0))
}

# Two panels side by side, the first with room for the names of lines.
named_panels <- function(left) {
  layout(matrix(1:2, 1), widths = c(1 + left / 13, 1))
  par(mar = c(3.4, left, 2, 0.8), mgp = c(2.2, 0.6, 0), cex = 0.83)
}

# 1,000 as 10^3; 200 and 500 as such, where there is only one power of ten or none.
power_axis <- function(side, range) {
  range <- log10(range(range[range > 0], finite = TRUE))
  powers <- floor(range[1]):ceiling(range[2])
  if (diff(range) >= 1.6) {
    powers <- powers[seq(1, length(powers), ceiling(length(powers) / 7))]
    return(axis(side, 10^powers, parse(text = paste0("10^", powers))))
  }
  ticks <- rep(c(1, 2, 5), length(powers)) * 10^rep(powers, each = 3)
  axis(side, ticks, format(ticks, scientific = FALSE, drop0trailing = TRUE, trim = TRUE))
}

# An empty plot with powers of ten along the axes that are logarithmic.
frame_of <- function(x, y, log = "xy", xlab = "rows", ylab, main = "", yaxt = "s", ...) {
  plot(range(x), range(y, finite = TRUE), type = "n", log = log, xlab = "", ylab = "",
       main = main, xaxt = if (grepl("x", log)) "n" else "s",
       yaxt = if (grepl("y", log)) "n" else yaxt, cex.main = 1, font.main = 1, ...)
  title(xlab = xlab, line = 2.1)
  title(ylab = ylab, line = 3.2)
  if (grepl("x", log)) power_axis(1, x)
  if (grepl("y", log)) power_axis(2, y)
}

big <- function(x) formatC(x, format = "f", digits = 0, big.mark = ",")

# A number with two digits or three, without powers of ten.
short <- function(x) {
  ifelse(is.na(x), "missing", ifelse(abs(x) >= 100, big(x), ifelse(abs(x) >= 10,
         formatC(x, format = "f", digits = 1), formatC(signif(x, 2), format = "fg"))))
}

# "0.1 for 5, 0.2 for 10" of a named vector.
listed <- function(x) paste(short(x), "for", names(x), collapse = ", ")

# "0.1, 0.2", with `digits` significant digits if given.
in_turn <- function(x, digits = NULL)
  paste(if (is.null(digits)) short(x) else signif(x, digits), collapse = ", ")

# Draws man/figures/logo.png, the package's hexagon: a wide prior, the likelihood, and the area of
# their product, which is the evidence. The icon of the site is the same, small and without name.
#
#   Rscript tools/logo.R

SIZE <- 240
INK <- "#0B3C5D"
BLUE <- "#0072B2"
ORANGE <- "#D55E00"

# A hexagon with a vertex at the top, within a square of side 2.
corner <- function(radius) {
  angle <- pi / 2 + 2 * pi * (0:5) / 6
  list(x = radius * cos(angle), y = radius * sin(angle))
}

# Curves over the middle of the hexagon, scaled to its height.
x <- seq(-0.74, 0.74, length.out = 400)
base <- -0.28
prior <- 0.34 * exp(-0.5 * ((x + 0.12) / 0.36)^2)
likelihood <- 0.86 * exp(-0.5 * ((x - 0.18) / 0.13)^2)
product <- prior * likelihood / max(prior) * 0.9

draw <- function(file, size, name) {
  dir.create(dirname(file), showWarnings = FALSE, recursive = TRUE)
  grDevices::png(file, size, round(size * if (name) 1.155 else 1), type = "cairo",
                 bg = "transparent")
  on.exit(grDevices::dev.off())
  graphics::par(mar = rep(0, 4), xaxs = "i", yaxs = "i")
  half <- if (name) sqrt(3) / 2 else 1
  width <- size / 480
  graphics::plot.new()
  graphics::plot.window(c(-half, half), c(-1, 1))
  graphics::polygon(corner(0.995), col = BLUE, border = NA)
  graphics::polygon(corner(0.945), col = "#F7FBFD", border = NA)
  graphics::polygon(c(x, rev(x)), base + c(product, 0 * x), col = "#F3B48A", border = NA)
  graphics::lines(x, base + prior, col = BLUE, lwd = max(1, 7 * width))
  graphics::lines(x, base + likelihood, col = ORANGE, lwd = max(1, 7 * width))
  graphics::segments(-0.74, base, 0.74, base, col = INK, lwd = max(1, 5 * width))
  if (name) graphics::text(0, -0.5, "logevidence", cex = 3.6 * width, font = 2, col = INK)
}

draw("man/figures/logo.png", SIZE, TRUE)
for (size in c(16, 32))
  draw(sprintf("pkgdown/favicon/favicon-%dx%d.png", size, size), size, FALSE)

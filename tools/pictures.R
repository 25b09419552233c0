# Draws man/figures/nile.png, the picture of README.md: change points of the Nile's flow. Needs the
# installed package.
#
#   tools/with-lib.sh Rscript tools/pictures.R

library(logevidence)

nile <- data.frame(year = 1871:1970, flow = as.numeric(Nile))
found <- change_points(linear_regression(flow ~ 1), nile, at = "year", seed = 1)

dir.create("man/figures", showWarnings = FALSE, recursive = TRUE)
grDevices::png("man/figures/nile.png", 1000, 560, res = 130, type = "cairo")
plot(found)
invisible(grDevices::dev.off())

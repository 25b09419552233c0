# Geweke's joint distribution test, drawn: P-P plots of what is asked of parameters, latents and
# data when these are drawn forwards from the model, against the same along a chain that moves them
# in turn. A right sampler stays on the diagonal. The machinery is that of the tests,
# tests/testthat/helper-geweke.R; here the runs are longer.
#
#   Rscript bench/geweke.R [draws = 10000] [directory = bench/results] [figures =
#     clustering,low_rank,binary_attributes,kernels]
#
# Runs the installed package (R_LIBS says which).

suppressPackageStartupMessages(library(logevidence))
here <- dirname(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[1]))
machinery <- new.env(parent = asNamespace("logevidence"))
for (helper in c("helper-truth.R", "helper-machinery.R", "helper-geweke.R"))
  sys.source(file.path(here, "..", "tests", "testthat", helper), machinery)

TITLES <- c(clustering = "Clustering", low_rank = "Low rank",
            binary_attributes = "Binary attributes")
KINDS <- c(`variances, probabilities` = "#1b6ca8", `latents and factors` = "#d1495b",
           data = "#3a7d44")

# Pictures -----------------------------------------------------------------------------------------

#' The differences in a corner, magnified until the band fills it
inset <- function(curves, colours, bound) {
  left <- 0.06
  wide <- 0.4
  middle <- 0.76
  high <- 0.17 / bound
  rect(left, middle - 0.17, left + wide, middle + 0.17, col = "grey88", border = NA)
  segments(left, middle, left + wide, middle, col = "grey55", lwd = 0.7)
  for (j in seq_along(curves))
    lines(left + wide * c(0, curves[[j]]$a), middle + high * c(0, curves[[j]]$b - curves[[j]]$a),
          col = colours[j], lwd = 0.8)
  text(left, 0.975, sprintf("difference x %.0f", high), adj = c(0, 0.7), cex = 0.75, col = "grey35")
}

#' One panel: a curve for each statistic, the band that chance allows all of them together one time
#' in a thousand
panel <- function(marginal, conditional, table, colours, title, broken = FALSE) {
  plot(0:1, 0:1, type = "n", xlim = c(0, 1), ylim = c(0, 1), xlab = "", ylab = "", axes = FALSE,
       xaxs = "i", yaxs = "i")
  bound <- max(table$bound)
  polygon(c(0, 0, 1 - bound, 1, 1, bound), c(0, bound, 1, 1, 1 - bound, 0), col = "grey88",
          border = NA)
  ends <- (1:4) / 5
  segments(c(ends, 0 * ends), c(0 * ends, ends), c(ends, 1 + 0 * ends), c(1 + 0 * ends, ends),
           col = "grey95", lwd = 0.5)
  abline(0, 1, col = "grey55", lwd = 0.7)
  curves <- lapply(seq_len(ncol(marginal)), function(j)
                     machinery$pp_curve(marginal[, j], conditional[, j]))
  for (j in seq_along(curves))
    lines(c(0, curves[[j]]$a), c(0, curves[[j]]$b), col = colours[j], lwd = 1.1)
  box(col = "grey40")
  worst <- which.max(table$deviation / table$bound)
  outside <- table$deviation[worst] > table$bound[worst]
  if (!outside) inset(curves, colours, bound)
  text(0.97, 0.12, sprintf("%.3f", table$deviation[worst]), adj = 1, cex = 1.05,
       font = if (outside) 2 else 1, col = if (outside) "#b00020" else "black")
  text(0.97, 0.05, sprintf("bound %.3f", table$bound[worst]), adj = 1, cex = 0.8, col = "grey35")
  mtext(title, line = 0.35, cex = 0.68, col = if (broken) "#b00020" else "black")
}

sheet <- function(file, rows, columns, title, note, draw, key = NULL) {
  png(file, 310 * columns + 60, 330 * rows + 190, res = 130)
  on.exit(dev.off())
  par(mfrow = c(rows, columns), pty = "s", mar = c(0.6, 0.6, 1.7, 0.6), oma = c(3.2, 2.6, 4.6, 0.4))
  draw()
  mtext(title, outer = TRUE, side = 3, line = 2.6, adj = 0, font = 2, cex = 0.95)
  mtext(note, outer = TRUE, side = 3, line = 1.2, adj = 0, cex = 0.68, col = "grey25")
  mtext("drawn forwards: share of draws below each value, 0 to 1", outer = TRUE, side = 1,
        line = 0.5, cex = 0.7)
  mtext("drawn by the sampler, 0 to 1", outer = TRUE, side = 2, line = 0.8, cex = 0.7)
  if (is.null(key)) return(invisible())
  par(fig = c(0, 1, 0, 1), oma = c(0.1, 0, 0, 0), mar = rep(0, 4), new = TRUE)
  plot.new()
  legend("bottom", names(key), col = key, lwd = 2.2, bty = "n", horiz = TRUE, cex = 0.95,
         text.col = "grey15")
}

# Latent models ------------------------------------------------------------------------------------

BROKEN <- list(
  `sweep at 0.7 instead of 1` = function(case) list(lambda = 0.7),
  `sweep believes noise x 1.5` = function(case)
    list(state = function(state) replace(state, case$noise, 1.5 * state[case$noise])),
  `sweep's prior has shape 4, not 5` = function(case) list(args = list(shape = 4)),
  `sweep overlooks the last row` = function(case) list(seen = case$n - 1)
)

latent_panels <- function(name) {
  case <- machinery$latent_cases[[name]]
  right <- expand.grid(way = c(FALSE, TRUE), lambda = c(1, 0.5), known = c(TRUE, FALSE))
  c(lapply(seq_len(nrow(right)), function(i) with(right[i, ], list(
      case = case, known = known, lambda = lambda, backwards = way, broken = list(),
      title = sprintf("%s, %s%s", if (known) "known" else "unknown",
                      if (way) "backwards" else "forwards",
                      if (lambda == 1) "" else sprintf(", lambda %.1f", lambda))
    ))),
    lapply(names(BROKEN), function(what) list(
      case = case, known = FALSE, lambda = 1, backwards = FALSE, broken = BROKEN[[what]](case),
      title = what
    )))
}

run_panel <- function(own, draws, seed) {
  joint <- function(broken, seed)
    machinery$latent_joint(own$case, own$known, own$lambda, own$backwards, broken, seed)
  marginal <- machinery$marginal_draws(joint(list(), seed), draws, seed)
  conditional <- machinery$conditional_draws(joint(own$broken, seed + 1000), draws,
                                             seed = seed + 1000)
  look <- colnames(marginal)
  state <- joint(list(), 1)$state()
  rows <- matrix(0, own$case$width, own$case$n)
  kind <- ifelse(look %in% names(own$case$data(rows)), 3,
                 ifelse(look %in% names(own$case$settings(state)), 1, 2))
  list(marginal = marginal, conditional = conditional,
       table = machinery$pp_table(marginal, conditional),
       colours = unname(KINDS)[kind])
}

latent_figure <- function(name, draws, directory) {
  panels <- latent_panels(name)
  tables <- NULL
  sheet(
    file.path(directory, sprintf("geweke-%s.png", name)), 3, 4,
    sprintf("%s: the joint test of its sweeps", TITLES[[name]]),
    paste("Variances and probabilities known, then unknown; last row: broken on purpose, unknown.",
          "Greatest deviation in each corner; grey: what chance allows."),
    function() for (i in seq_along(panels)) {
      own <- panels[[i]]
      run <- run_panel(own, draws, 100 * i)
      panel(run$marginal, run$conditional, run$table, run$colours, own$title,
            length(own$broken) > 0)
      tables <<- rbind(tables, cbind(figure = name, panel = own$title,
                                     broken = length(own$broken) > 0, run$table))
    }, KINDS
  )
  tables
}

# Kernels ------------------------------------------------------------------------------------------

kernel_figure <- function(draws, directory) {
  cases <- machinery$kernel_cases()
  columns <- max(vapply(cases, function(case) length(case$kernels), 0L))
  tables <- NULL
  sheet(
    file.path(directory, "geweke-kernels.png"), length(cases), columns,
    "The joint test of the kernels",
    paste("Greatest deviation in each corner; grey band: what chance allows.",
          "A curve for each function of parameters and data."),
    function() for (name in names(cases)) for (k in seq_len(columns)) {
      case <- cases[[name]]
      if (k > length(case$kernels)) {
        plot.new()
        next
      }
      kernel <- case$kernels[[k]]
      # half of the chains for each axis, so that these are independent
      chains <- machinery$kernel_chains(kernel, case$model, case$n, draws, 4,
                                        if (kernel$name == "sghmc") 40 else 10,
                                        seed = 500 + k, functions = case$functions)
      half <- seq_len(nrow(chains$before)) %% 2 == 0
      marginal <- chains$before[half, ]
      conditional <- chains$after[!half, ]
      colnames(marginal) <- colnames(conditional) <- paste("function", seq_len(ncol(marginal)))
      table <- machinery$pp_table(marginal, conditional, worth = nrow(conditional))
      title <- paste0(name, ", ", if (identical(kernel$args$leapfrog, 1)) "mala" else kernel$name,
                      "()", if (identical(kernel$args$refresh, 1)) " refreshed")
      panel(marginal, conditional, table, grDevices::hcl.colors(ncol(marginal), "Dark 3"), title)
      tables <<- rbind(tables, cbind(figure = "kernels", panel = title, broken = FALSE, table))
    }
  )
  tables
}

main <- function(draws = "10000", directory = "bench/results",
                 figures = "clustering,low_rank,binary_attributes,kernels") {
  dir.create(directory, showWarnings = FALSE, recursive = TRUE)
  draws <- as.integer(draws)
  for (figure in strsplit(figures, ",")[[1]]) {
    started <- proc.time()[["elapsed"]]
    tables <- if (figure == "kernels") kernel_figure(draws, directory) else
      latent_figure(figure, draws, directory)
    cat(sprintf("%s, %.0f s: greatest deviation, its statistic, its bound, ", figure,
                proc.time()[["elapsed"]] - started), "least worth of the thinned draws\n", sep = "")
    for (own in split(tables, factor(tables$panel, unique(tables$panel)))) {
      worst <- own[which.max(own$deviation / own$bound), ]
      cat(sprintf("  %-36s %.4f %-20s %.4f %6.0f%s\n", worst$panel, worst$deviation,
                  worst$statistic, worst$bound, min(own$worth),
                  if (worst$deviation > worst$bound) "  outside" else ""))
    }
  }
}

do.call(main, as.list(commandArgs(trailingOnly = TRUE)))

# Plots are drawn without error on any fit, leave the device as it was, and show the numbers that
# they should.

regression <- linear_regression(dist ~ speed, sigma = 15, prior_sd = 10)
run <- function(model, data, method = sgais(), ...) {
  quiet_fit(model, data, method, seed = test_seed(), progress = FALSE, ...)
}
fits <- list(
  linear = run(regression, cars),
  mixture = run(gaussian_mixture(components = 2), scale(faithful)),
  ais = run(regression, cars, ais()),
  weighting = run(regression, cars, likelihood_weighting(1000)),
  harmonic = run(regression, cars, harmonic_mean(draws = 10)),
  stream = run(regression, cars, smc("data")),
  one = run(gaussian_mean(), 1.2),
  replicates = run(regression, cars, replicates = 2),
  laplace = run(regression, cars, laplace()),
  importance = run(gaussian_mixture(components = 2), scale(faithful), laplace(importance = 100)),
  bic = run(regression, cars, bic()),
  exact = run(regression, cars, exact()),
  exact_replicates = run(gaussian_mean(), c(1.2, 0.4, 2.1), exact(), replicates = 2),
  bridge = run(regression, cars, bridge(draws = 10)),
  stepping = run(regression, cars, power_posterior()),
  thermodynamic = run(regression, cars, power_posterior("thermodynamic", ais()), replicates = 2),
  online = run(regression, cars, online_nested(50, steps = 5)),
  online_control = run(regression, cars, online_nested(50, sghmc(0.001), steps = 5)),
  hybrid = run(regression, cars, hybrid(20, 50, steps = 5)),
  nested = run(regression, cars, nested(100)),
  nested_paper = run(gaussian_mean(), c(1.2, 0.4, 2.1), nested(preset = "paper")),
  nested_replicates = run(gaussian_mixture(components = 2), scale(faithful)[1:10, ], nested(50),
                          replicates = 2),
  nested_merged = c(run(regression, cars, nested(50)),
                    evidence(regression, cars, nested(50), seed = test_seed(2), progress = FALSE))
)
on_device <- function(code) {
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  force(code)
}

test_that("each type of plot works for each kind of fit", {
  for (fit in fits) for (type in c(list(NULL), plot_types(fit)))
    on_device(expect_invisible(expect_silent(plot(fit, type))))
})

test_that("each kind of fit is printed, and so is its summary", {
  for (fit in fits) {
    expect_output(expect_invisible(print(fit)), "log evidence")
    expect_output(expect_invisible(print(summary(fit))), "Posterior, [0-9,]+ (weighted )?draw")
  }
})

test_that("plots restore graphical parameters", {
  on_device({
    graphics::par(mfrow = c(1, 2), mar = c(3, 2, 1, 1), las = 2)
    names <- c("mfrow", "mar", "mgp", "tcl", "las", "oma", "cex")
    before <- graphics::par(names)
    for (type in list("evidence", "posterior", NULL)) {
      plot(fits$linear, type)
      expect_identical(graphics::par(names), before)
    }
  })
})

test_that("a plot takes one figure of a page divided by par(mfrow)", {
  two <- quiet_fit(list(a = gaussian_mean(), b = gaussian_mean(prior_sd = 3)), sin(1:30), seed = 1)
  line <- linear_regression(dist ~ speed, sigma = 15, prior_sd = 20)
  mixtures <- muffled(evidence(gaussian_mixture(components = 1:2), scale(faithful)[1:60, ],
                               laplace(), seed = 1))
  drawn <- list(
    function() plot(fits$linear), function() plot(fits$linear, "posterior"),
    function() plot(fits$linear, "evidence"), function() plot(two),
    function() plot(two, "models"), function() plot(two, "score"), function() plot(mixtures),
    function() plot(attr(mixtures, "fits")[[2]], "clusters", data = scale(faithful)[1:60, ]),
    function() plot(study_design(list(a = gaussian_mean(), b = gaussian_mean(prior_sd = 3)), 5,
                                 nsim = 1, seed = 1)),
    function() plot(muffled(change_points(gaussian_mean(prior_sd = 3), c(1:9, 31:39) / 5,
                                          seed = 1))),
    function() plot(change_alarm(gaussian_mean(prior_sd = 3), sin(1:40), duration = 20)),
    function() plot(muffled(crosscheck(line, cars, list(laplace(), exact()), seed = 1))),
    function() plot(kernel_path(line, cars, steps = 3, seed = 1))
  )
  pages <- function(divide, last = NULL) {
    pattern <- file.path(tempfile(), "%d.pdf")
    dir.create(dirname(pattern))
    on.exit(unlink(dirname(pattern), recursive = TRUE))
    grDevices::pdf(pattern, 16, 16, onefile = FALSE)
    divide()
    names <- c("mfrow", "mar", "mgp", "tcl", "las", "oma", "cex", "xpd")
    before <- graphics::par(names)
    for (k in seq_along(drawn)) {
      drawn[[k]]()
      expect_identical(graphics::par(names), before)
      if (!is.null(last)) expect_identical(graphics::par("mfg")[1:2], last(k))
    }
    graphics::plot.default(1)
    grDevices::dev.off()
    length(list.files(dirname(pattern)))
  }
  expect_lte(length(drawn), 15)
  by_row <- function(k) as.integer(c((k - 1) %/% 4 + 1, (k - 1) %% 4 + 1))
  expect_identical(pages(function() graphics::par(mfrow = c(4, 4)), by_row), 1L)
  uneven <- rbind(matrix(1:8, 2), matrix(9:16, 2))[, c(1, 1:4)]
  expect_identical(pages(function() graphics::layout(uneven, c(1, 1, 2, 2, 2))), 1L)
  # a page for each where it is not divided
  expect_identical(pages(function() NULL), length(drawn) + 1L)
  on_device({
    graphics::par(mfrow = c(6, 9))
    refused(plot(fits$linear), "There is no room for the panels of this picture")
    expect_identical(graphics::par("mfrow"), c(6L, 9L))
  })
})

test_that("labels and limits can be replaced", {
  on_device({
    expect_silent(plot(fits$linear, "evidence", main = "Cars", xlab = "rows", ylim = c(-5, -4)))
    expect_equal(graphics::par("usr")[3:4], c(-5.04, -3.96))
    expect_silent(plot(fits$linear, "posterior", parameters = "speed", xlim = c(0, 5)))
  })
})

test_that("unknown arguments of plot() are refused", {
  on_device(refused(plot(fits$linear, which = 1), "not `which`: the nearest is `type`"))
})

test_that("figures of walks have the numbers of the trace", {
  trace <- fits$linear$trace
  figure <- figure_of(fits$linear, "evidence")
  expect_equal(figure$data$y, trace$log_evidence / trace$n)
  expect_equal(figure$data$upper - figure$data$lower, 4 * trace$se / trace$n)
  expect_equal(figure$estimate$y, fits$linear$log_evidence / 50)
  expect_false(figure$log)
  expect_equal(figure_of(fits$linear, "steps")$data$y, trace$lambda_steps)
  expect_equal(figure_of(fits$linear, "ess")$data$y, 100 * trace$ess / trace$particles)
  path <- figure_of(fits$ais, "evidence")
  expect_equal(path$data$x, c(0, fits$ais$trace$lambda))
  expect_equal(path$data$y, c(0, fits$ais$trace$log_evidence))
  expect_equal(figure_of(fits$ais, "steps")$data$y, c(0, fits$ais$trace$lambda))
  expect_true(is_wide(c(10, 1000)))
})

test_that("figures of nested sampling have the numbers of its points", {
  for (fit in fits[c("nested", "nested_merged")]) {
    points <- fit$nested$points
    climb <- figure_of(fit, "climb")
    expect_true(all(paste(climb$data$x, climb$data$y) %in%
                    paste(points$log_volume, points$log_lik)))
    expect_true(climb$reversed)
    figure <- figure_of(fit, "evidence")
    expect_false(is.unsorted(figure$data$y))
    expect_equal(max(figure$data$y), fit$log_evidence)
    expect_equal(figure$estimate$y, fit$log_evidence)
    expect_equal(figure$estimate$upper - figure$estimate$lower, 4 * fit$se)
    expect_equal(max(figure_of(fit, "weight")$data$y), 1)
  }
})

test_that("densities are weighted and integrate to one", {
  figure <- density_figure(fits$mixture, 3)
  expect_equal(sum(figure$data$y) * diff(figure$data$x[1:2]), 1, tolerance = 0.01)
  # but for draws that nothing would show of
  expect_equal(figure$median, summary(fits$mixture)$parameters$q50[3], tolerance = 1e-5)
  # no density beyond the limits of a parameter, and all of it within them
  bounded <- run(binomial_probability(~ y), data.frame(y = c(0, 0, 0, 0)), exact())
  figure <- density_figure(bounded, 1)
  expect_gte(min(figure$data$x), 0)
  expect_equal(sum(figure$data$y) * diff(figure$data$x[1:2]), 1, tolerance = 0.02)
  expect_gt(figure$data$y[1], 0.8 * max(figure$data$y))
  limits <- part_of(fits$mixture$model, "limits")(fits$mixture)
  expect_equal(unname(limits["lower", ]), c(0, 0, rep(-Inf, 4), rep(0, 4)))
  model <- regression(y ~ x + (x | g))
  # as those of a fit whose effects hardly vary, and are as good as equal
  few <- with_own_seed(test_seed(), list(model = model, log_weights = rep(-log(400), 400),
    draws = cbind("sd_g_x" = abs(rnorm(400)), "cor_g_(Intercept)_x" = tanh(rnorm(400, 2))),
    parameters = cbind("log(sd_g_x)" = 0, "z_cor_g_(Intercept)_x" = 0)))
  expect_equal(min(density_figure(few, 1)$data$x), 0)
  expect_equal(max(density_figure(few, 2)$data$x), 1)
  same <- fits$linear
  same$draws[, 1] <- 4
  on_device(expect_silent(plot(same, "posterior")))
  on_device(expect_silent(plot(same)))
})

test_that("values that are not finite are left out of figures", {
  fit <- fits$linear
  fit$trace$log_evidence[2] <- -Inf
  fit$trace$se[3] <- NaN
  on_device(for (type in list(NULL, "evidence")) expect_silent(plot(fit, type)))
  fit$warnings <- c(not_finite = "The estimate is not finite.")
  fit$trace$log_evidence <- fit$log_evidence <- -Inf
  on_device(for (type in list(NULL, "evidence")) expect_silent(plot(fit, type)))
})

test_that("infinite draws are named in a note, and are in no figure", {
  # of one row, the posterior of log(sigma) is far from normal
  one <- data.frame(y = -2.456, x = 0.736)
  expect_warning(fit <- evidence(linear_regression(y ~ x), one, laplace(), seed = test_seed(911)),
                 "draws are infinite: the approximation is far wider than the posterior")
  expect_true(any(is.infinite(fit$draws[, "sigma"])))
  on_device(for (type in list(NULL, "posterior")) expect_silent(plot(fit, type)))
  fit$draws[, "sigma"] <- Inf
  expect_error(plot(fit, "posterior"), "no finite draw of sigma", class = "logevidence_error")
})

test_that("a fit without a trace can be plotted and printed", {
  fit <- fits$linear
  fit$trace <- data.frame()
  on_device(for (type in list(NULL, "posterior")) expect_silent(plot(fit, type)))
  expect_error(plot(fit, "evidence"), "`type` must be \"posterior\"", class = "logevidence_error")
  expect_output(print(summary(fit)), "Posterior, 1,000 weighted draws")
})

test_that("axis labels are written out up to a million", {
  expect_identical(axis_labels(c(10, 1000, 100000)), c("10", "1,000", "100,000"))
  expect_identical(axis_labels(c(-4.2, -4.25)), c("-4.20", "-4.25"))
  expect_identical(axis_labels(c(0, 1e6)), c("0", "1e6"))
})

test_that("wrong arguments of plot() are refused in a sentence", {
  refused <- function(..., sentence) expect_error(plot(...), sentence, fixed = TRUE)
  refused(fits$linear, "hist",
          sentence =
            paste0("`type` must be \"evidence\", \"steps\", \"ess\", \"posterior\", \"prior\" or ",
                   "\"pairs\", not \"hist\""))
  refused(fits$nested, "steps",
          sentence = "`type` must be \"evidence\", \"climb\", \"weight\", \"posterior\"")
  refused(fits$linear, "posterior", "slope",
          sentence = "`parameters` must be among `(Intercept)`, `speed`, not \"slope\"")
  refused(fits$linear, "posterior", 3, sentence = "`parameters` must be among 1 to 2, not 3")
  refused(fits$mixture, "posterior", 1:10, sentence = "`parameters` must be at most 9, not 10")
  refused(fits$linear, parameters = TRUE, sentence = "names or numbers of parameters, not TRUE")
})

test_that("autoplot() draws the same with ggplot2", {
  skip_if_not_installed("ggplot2")
  some <- c("linear", "mixture", "exact", "nested", "online", "stepping")
  for (fit in fits[fast_or_slow(some, names(fits))]) for (type in plot_types(fit))
    expect_s3_class(ggplot2::autoplot(fit, type), "ggplot")
  drawn <- list(c("linear", "evidence"), c("ais", "steps"), c("one", "evidence"),
                c("stream", "ess"),
                c("ais", "posterior"), c("nested", "evidence"), c("nested", "climb"),
                c("nested", "weight"))
  for (pair in fast_or_slow(drawn[c(1, 5, 7)], drawn))
    on_device(expect_silent(print(ggplot2::autoplot(fits[[pair[1]]], pair[2]))))
  expect_identical(ggplot2::autoplot(fits$linear)$data, figure_of(fits$linear, "evidence")$data)
  expect_error(ggplot2::autoplot(fits$linear, "hist"), "`type` must be",
               class = "logevidence_error")
  expect_error(ggplot2::autoplot(fits$linear, colour = 1), "not `colour`",
               class = "logevidence_error")
})

test_that("pairs of parameters are drawn, with the correlations of the weighted draws", {
  fit <- evidence(linear_regression(dist ~ speed + I(speed^2), sigma = 15, prior_sd = 20), cars,
                  laplace(importance = 200), seed = test_seed())
  weights <- exp(fit$log_weights)
  figure <- pairs_figure(fit, 1:3, lapply(1:3, function(j) density_figure(fit, j)))
  expect_equal(figure$correlations, cov.wt(fit$draws, weights / sum(weights), cor = TRUE)$cor,
               tolerance = 1e-8)
  expect_true(all(figure$points %in% fit$draws))
  expect_lte(nrow(figure$points), 1000)
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  before <- graphics::par(no.readonly = TRUE)
  expect_identical(withVisible(plot(fit, "pairs"))$visible, FALSE)
  expect_identical(plot(fit, "pairs", parameters = c("speed", "(Intercept)")), fit)
  expect_equal(graphics::par(no.readonly = TRUE)[c("mar", "oma", "las")],
               before[c("mar", "oma", "las")])
  refused(plot(fit, "pairs", parameters = "speed"), "the plot needs two")
  refused(plot(fit, "pairs", main = "x"), "`...` must be empty if `type` is \"pairs\".")
  refused(plot(fit, "pairs", columns = 1), "`columns` must be NULL")
})

# Walks that follow a path, forwards and in reverse, against evidences in closed form; and the
# sandwich that is made of them for models without latent variables.

set.seed(test_seed())
line_data <- data.frame(x = rnorm(8))
line_data$y <- 0.5 * line_data$x + rnorm(8)
line <- linear_regression(y ~ x, sigma = 1, prior_sd = 0.7)

# Settings of a walk besides those of its method, and the result.
walked <- function(model, data, method, seed, ...) {
  finish_run(start_run(with_settings(run_problem(model, data, method, seed), ...)))
}
with_settings <- function(setup, ...) {
  setup$problem$settings <- utils::modifyList(setup$problem$settings, lapply(list(...), as.double))
  setup
}
path_of <- function(model, data, method, seed = 1)
  walked(model, data, method, seed, record = 1)$path

#' Z / truth forwards and truth / Z backwards, of `runs` walks each; `draw(runs)` are exact draws,
#' one in each row
ratios <- function(model, data, method, truth, draw, runs = fast_or_slow(120, 250)) {
  path <- path_of(model, data, method)
  from <- draw(runs)
  figure <- function(seed, ...)
    drop(walked(model, data, method, seed, follow = path, ...)$log_evidence)
  cbind(vapply(seq_len(runs), function(s) exp(figure(s) - truth), 0),
        vapply(seq_len(runs), function(s)
                 exp(truth - figure(s, reverse = 1, from_state = from[s, ])), 0))
}

normal_draws <- function(model, data) {
  encoded <- encode(model, data)
  target <- gaussian_posterior(list(type = model$name, dim = length(encoded$theta_names),
                                    width = nrow(encoded$rows), args = encoded$args), encoded$rows)
  function(runs) t(matrix(gaussian_draws(target, runs), length(target$mean)))
}

test_that("Z forwards and 1/Z in reverse are unbiased, for every kernel along both paths", {
  truth <- model_functions(line, line_data)$exact()
  draw <- normal_draws(line, line_data)
  kernels <- list(hmc(), rwm(mass = "identity"), mala(mass = "diagonal"), slice())
  for (kernel in fast_or_slow(kernels[2], kernels)) {
    methods <- list(ais(20, linear(4), kernel, 1),
                    smc(particles = 10, kernel = kernel, steps = 1, threshold = 1),
                    smc("data", 10, kernel = kernel, steps = 1),
                    smc("data", 10, 0.95, chunk = 2, kernel = kernel, steps = 1,
                        resampling = "none", move = "always"))
    for (method in methods) expect_z(z_score(ratios(line, line_data, method, truth, draw), 1))
  }
  for (scheme in fast_or_slow("residual", c("stratified", "multinomial", "residual"))) {
    method <- smc(particles = 8, resampling = scheme, threshold = 0.9, steps = 1)
    expect_z(z_score(ratios(line, line_data, method, truth, draw), 1))
  }
  mean <- gaussian_mean(sigma = 2, prior_sd = 1.5)
  few <- c(1.2, 0.4, 2.1)
  expect_z(z_score(ratios(mean, few, ais(10, adaptive(0.9)), model_functions(mean, few)$exact(),
                          normal_draws(mean, few)), 1))
})

# A mixture of two components of one column, by the sum over all ways to divide its rows: the
# evidence, and exact draws.
divided <- function(y, mean_scale) {
  picks <- as.matrix(expand.grid(rep(list(1:2), length(y))))
  part <- function(y) {
    n <- length(y)
    precision <- 1 / mean_scale^2 + n
    list(n = n, precision = precision, mean = sum(y) / precision, shape = 1 + n / 2,
         rate = 1 + (sum(y^2) - sum(y)^2 / precision) / 2)
  }
  log_part <- function(p) lgamma(p$shape) - p$shape * log(p$rate) -
    log(mean_scale^2 * p$precision) / 2 - p$n / 2 * log(2 * pi)
  values <- apply(picks, 1, function(pick) {
    counts <- tabulate(pick, 2)
    log_part(part(y[pick == 1])) + log_part(part(y[pick == 2])) + sum(lgamma(1 + counts)) -
      lgamma(2 + length(y))
  })
  top <- max(values)
  draw <- function(runs) t(vapply(seq_len(runs), function(r) {
    pick <- picks[sample.int(length(values), 1, prob = exp(values - top)), ]
    parts <- list(part(y[pick == 1]), part(y[pick == 2]))
    variance <- vapply(parts, function(p) p$rate / stats::rgamma(1, p$shape), 0)
    mean <- vapply(1:2, function(k)
                     stats::rnorm(1, parts[[k]]$mean, sqrt(variance[k] / parts[[k]]$precision)), 0)
    share <- stats::rgamma(2, 1 + tabulate(pick, 2))
    c(log(share[1] / share[2]), mean / (mean_scale * sqrt(variance)), log(variance))
  }, numeric(5)))
  list(log_evidence = top + log(sum(exp(values - top))), draw = draw)
}

test_that("Z forwards and 1/Z in reverse are unbiased for mixtures, relabelled by a reference", {
  # narrow enough a prior that weights have a variance
  y <- c(-1, -0.2, 0.8, 1.1)
  model <- gaussian_mixture(components = 2, mean_scale = 0.5, location = 0, rate = 1)
  set.seed(test_seed(2))
  exact <- divided(y, 0.5)
  methods <- list(ais(20, linear(5), steps = 1),
                  smc("data", 20, kernel = rwm(mass = "identity"), steps = 2, move = "always"),
                  ais(10, linear(6), rwm(), 2), ais(10, linear(6), slice(), 1),
                  smc(particles = 10, ess = 0.97, kernel = slice(), steps = 1))
  for (method in fast_or_slow(methods[1:2], methods)) {
    labelled <- path_of(model, matrix(y), method)[6, ]
    expect_identical(any(labelled == 1), method$kernels[[1]]$mass != "identity")
    expect_z(z_score(ratios(model, matrix(y), method, exact$log_evidence, exact$draw), 1))
  }
})

test_that("a path is followed as recorded, in reverse in the opposite order", {
  data <- matrix(c(-2, -1.5, 0, 2, 2.5, 3))
  for (case in list(list(line, line_data, ais(30, adaptive(0.9))),
                    list(line, line_data, smc("data", 20, chunk = 3)),
                    list(gaussian_mixture(components = 2), data,
                         smc(particles = 30, kernel = rwm())))) {
    pilot <- walked(case[[1]], case[[2]], case[[3]], 1, record = 1)
    path <- pilot$path
    plain <- finish_run(start_run(run_problem(case[[1]], case[[2]], case[[3]], 1)))
    if (case[[3]]$name == "ais") expect_identical(pilot[names(pilot) != "path"], plain)
    forward <- walked(case[[1]], case[[2]], case[[3]], 2, follow = path)
    from <- rep(0.1, nrow(forward$draws))
    back <- walked(case[[1]], case[[2]], case[[3]], 3, follow = path, reverse = 1,
                   from_state = from)
    steps <- ncol(path)
    expect_identical(drop(forward$lambda_steps), as.double(steps))
    expect_equal(back$trace$lambda, c(rev(path[3, ]), 0))
    expect_equal(back$trace$n, c(rev(path[1, ] + path[2, ]), 0))
    expect_identical(back$trace$step_size[seq_len(steps)][rev(path[4, ]) > 0],
                     rev(path[5, ])[rev(path[4, ]) > 0])
    if (!identical(case[[3]]$path, "data")) {
      expect_equal(forward$trace$lambda, path[3, ])
      expect_identical(forward$trace$step_size, path[5, ])
    }
    # the end of the path always moves, for the sake of those who start there
    expect_gt(path[4, steps], 0)
  }
  # steps that the user fixed are not adapted in the first place
  fixed <- path_of(line, line_data, ais(10, linear(7), hmc(step_size = 0.3)))
  expect_identical(fixed[5, ], rep(0.3, 7))
  expect_equal(fixed[3, ], (1:7) / 7)
})

test_that("a walk along a part of a path ends where this part ends", {
  path <- path_of(line, line_data, ais(10, linear(10)))
  expect_identical(thinned_path(path, 1), path)
  half <- thinned_path(path, 0.5)
  expect_equal(half[3, ], c(0.2, 0.4, 0.6, 0.8, 1))
  expect_identical(half[-3, ], path[-3, c(2, 4, 6, 8, 10)])
  expect_identical(thinned_path(path, 0.01), path[, 10, drop = FALSE])
  expect_equal(thinned_path(path, 0.3)[3, ], c(1, 2, 3) / 3)
  # a thinned path can be walked
  expect_true(is.finite(walked(line, line_data, ais(10), 1,
                               follow = thinned_path(path, 0.3))$log_evidence))
})

test_that("wrong paths are refused", {
  path <- path_of(line, line_data, ais(10, linear(3)))
  follow <- function(path, ..., method = ais(10))
    walked(line, line_data, method, 1, follow = path, ...)
  with <- function(row, column, value) {
    path[row, column] <- value
    path
  }
  refused(follow(path[-1, ]), "must have 11 numbers for each distribution")
  refused(follow(numeric()), "must have 11 numbers for each distribution")
  refused(follow(path[, -3]), "ends at 0 of 8 observations")
  refused(follow(with(2, 3, 9)), "is invalid at distribution 3")
  for (bad in list(c(1, 1, 3), c(2, 1, 0), c(2, 2, 7), c(3, 2, 0.1), c(3, 3, 1.5), c(4, 1, -1),
                   c(4, 1, 0.5), c(5, 2, 0), c(5, 2, NaN), c(9, 1, Inf)))
    refused(follow(with(bad[1], bad[2], bad[3])), "is invalid at distribution")
  expect_error(follow(with(9, 2, -1)), class = "logevidence_error")
  refused(follow(path, reverse = 1), "A reverse run needs an exact draw")
  refused(follow(path, reverse = 1, from_state = 1), "A reverse run needs an exact draw")
  refused(follow(path, method = ais(10, kernel = baoab())),
          "`kernel` must be hmc(), mala(), rwm() or slice()")
  refused(follow(path, method = sgais()), "no path that could be followed")
  refused(follow(path, method = sequential()), "no path that could be followed")
  refused(walked(line, line_data, likelihood_weighting(10), 1, record = 1),
          "no path that could be followed")
  refused(follow(path, reverse = 1, from_state = c(1e300, 0)),
          "simulated data have zero likelihood")
})

# The sandwich ------------------------------------------------------------------------------------

bread <- function(..., seed = 1) bdmc(..., seed = test_seed(seed), progress = FALSE)
covariates <- data.frame(x = line_data$x)

test_that("bounds hold on simulated data, and come closer with more work", {
  methods <- list(ais(schedule = linear(30)), smc("data", 40, move = "always"),
                  ais(30, adaptive(0.95), rwm()), smc(particles = 40),
                  smc("data", 40, kernel = slice()))
  for (method in fast_or_slow(methods[1:2], methods)) {
    runs <- lapply(seq_len(fast_or_slow(16, 30)), function(seed)
      bread(line, data = covariates, method = method, chains = 3, budgets = c(0.1, 1), seed = seed))
    truth <- vapply(runs, function(s) model_functions(line, s$data)$exact(), 0)
    lower <- vapply(runs, function(s) s$bounds$lower, c(0, 0)) - rep(truth, each = 2)
    upper <- vapply(runs, function(s) s$bounds$upper, c(0, 0)) - rep(truth, each = 2)
    # Markov, over data sets: a nat beyond the truth with probability below exp(-1)
    expect_lt(max(rowMeans(lower > 1)), 0.37)
    expect_lt(max(rowMeans(upper < -1)), 0.37)
    expect_lt(mean(lower[2, ]), 0.25)
    expect_gt(mean(upper[2, ]), -0.25)
    expect_lt(mean(upper[2, ] - lower[2, ]), mean(upper[1, ] - lower[1, ]))
    # over data as well, the estimates are unbiased
    expect_z(z_score(exp(-upper[2, ]), 1))
  }
})

test_that("bounds meet for every model", {
  set.seed(test_seed(1))
  labelled <- data.frame(k = gl(3, 10), x = rnorm(30))
  cases <- list(list(gaussian_mean(sigma = 2), n = 12), list(gaussian_mean(~log(y)), n = 12),
                list(linear_regression(dist ~ speed, sigma = 15, prior_sd = 10), data = cars),
                list(linear_regression(sigma = 1,
                                       prior_sd = 1), data = list(x = cbind(a = 1:9 / 9), y = 0)),
                list(softmax_regression(k ~ x, prior_sd = 1), data = labelled),
                list(gaussian_mixture(components = 2), n = 15, columns = 1),
                list(gaussian_mixture(~ a + b, components = 2), n = 15))
  methods <- list(ais(schedule = adaptive(0.99)), smc(particles = 200, steps = 4))
  if (!is_slow()) cases <- cases[c(3, 7)]
  for (case in cases) for (method in fast_or_slow(methods[2], methods)) {
    s <- do.call(bread, c(case, method = list(method), budgets = 1, chains = fast_or_slow(30, 100)))
    expect_lt(abs(s$bounds$gap), 1, label = paste(case[[1]]$name, method$name))
    expect_identical(encode(case[[1]], s$data)$n, as.integer(s$n))
    expect_named(s$state, encode(case[[1]], s$data)$theta_names)
  }
  expect_named(s$data, c("a", "b"))
})

test_that("data, draws and walks use separate random numbers", {
  same <- function(...) bread(line, data = covariates, method = ais(20, linear(10)), ...)
  expect_identical(same()[c("data", "state", "forward", "reverse")],
                   same()[c("data", "state", "forward", "reverse")])
  expect_false(identical(same()$state, same(seed = test_seed(2))$state))
  set.seed(test_seed())
  before <- .Random.seed
  same()
  expect_identical(.Random.seed, before)
  blank <- template(line, covariates, NULL)
  prior <- vapply(1:300, function(s) prior_draw(line, blank, words(s)), c(0, 0))
  expect_identical(unname(same()$state), prior[, 1])
  expect_gt(stats::ks.test(prior / 0.7, "pnorm")$p.value, 1e-4)
})

test_that("models and methods without bounds are refused", {
  refused(bread(gaussian_mean(), 5, method = sgais()),
          "`method` must be ais() or smc(), whose runs can be reversed, not sgais().")
  refused(bread(gaussian_mean(), 5, method = nested()), "whose runs can be reversed")
  refused(bread(gaussian_mean(), 5, method = power_posterior()), "whose runs can be reversed")
  for (kernel in list(sgld(), sghmc(), baoab()))
    refused(bread(gaussian_mean(), 5, method = smc(kernel = kernel)),
            paste0("not ", kernel$name, "(): a kernel with a step-size error"))
  refused(bread(gaussian_mean(), 5, method = ais(preset = "paper")), "gives no bounds")
  refused(bread(gaussian_mean()), "Exactly one of `data` and `n` must be given, not neither")
  refused(bread(line, 8, data = covariates),
          "Exactly one of `data` and `n` must be given, not both")
  refused(bread(line, 8), "`data` must hold the covariates of a regression")
  refused(bread(gaussian_mean(), 1.5), "`n` must be a whole number")
  refused(bread(gaussian_mixture(components = 2), 5, 0), "`columns` must be a whole number")
  refused(bread(clustering(components = 2), 5, data = covariates), "`data` must be left out")
  own <- custom_model("a", function(theta, data) 0, function(theta) 0, function(n) rnorm(n))
  refused(bread(own, 5, method = ais(kernel = slice())),
          "`model` must be one that can simulate data")
  refused(bread(gaussian_mean(), 5, method = ais(kernel = hmc)), "`kernel` must be")
})

test_that("bounds of any model are printed and plotted", {
  s <- bread(line, data = covariates, method = ais(20, linear(20)))
  expect_match(said(s),
               "Linear regression, known noise: y ~ x, 8 simulated rows ais(particles = 20",
               fixed = TRUE)
  s$bounds$gap[3] <- 5
  expect_match(said(s), "more temperatures, moves or particles", fixed = TRUE)
  series <- drawn_series(expect_invisible(plot(s)))
  # an empty plot, then each bound as a line and as points
  expect_equal(lapply(series[-1], `[[`, "y"), unname(as.list(s$bounds[rep(c("lower", "upper"),
                                                                          each = 2)])))
  for (one in series[-1]) expect_equal(one$x, pmax(s$bounds$seconds, 1e-4))
})

test_that("given a fit, sandwich_check() simulates data from the fit, or from the prior if asked", {
  # data far from the prior are harder than those that the prior makes
  far <- data.frame(x = line_data$x, y = 4 + 4 * line_data$x + line_data$y)
  fit <- evidence(line, far, ais(40, linear(4), steps = 1), seed = test_seed(1), progress = FALSE)
  sets <- fast_or_slow(4, 8)
  check <- function(...) sandwich_check(fit, sets, 10, data = far, ..., seed = test_seed(1),
                                        progress = FALSE)
  like_fit <- check()
  like_prior <- check(from = "prior")
  expect_identical(dim(like_fit), c(as.integer(sets), 5L))
  expect_gt(mean(like_fit$gap), 2 * mean(like_prior$gap))
  expect_match(said(like_fit), paste(sets, "data sets of 8 rows simulated from the fit, 10 chains"),
               fixed = TRUE)
  expect_match(said(like_prior), "simulated from the prior, 10 chains", fixed = TRUE)
  if (is_slow()) expect_identical(check()$upper, like_fit$upper)
  blobs <- data.frame(a = c(-2:2, 5:9), b = c(1:5, 5:1))
  cases <- list(list(gaussian_mean(), c(1.5, 0.2, 1)),
                list(gaussian_mixture(~ a + b, components = 2), blobs),
                list(gaussian_mixture(components = 2), blobs))
  for (case in fast_or_slow(cases[1:2], cases))
    for (method in list(ais(20, adaptive(0.95)), smc(particles = 20), smc("data", 20))) {
      if (!is_slow() && method$name == "smc" && method$path != "data") next
      fit <- evidence(case[[1]], case[[2]], method, seed = test_seed(1), progress = FALSE)
      checked <- sandwich_check(fit, 2, 3, seed = test_seed(2), progress = FALSE)
      expect_true(all(is.finite(unlist(checked[1:4]))))
    }
})

test_that("the bounds of a check hold although its draws are from another posterior", {
  # of the linear model the evidence of whatever is simulated is known
  fit <- evidence(line, line_data, ais(40, linear(6), steps = 1), seed = test_seed(1),
                  progress = FALSE)
  simulated <- data_like(fit, line_data)
  errors <- vapply(seq_len(fast_or_slow(30, 80)), function(i) {
    like <- simulated(fit$parameters[resample(exp(fit$log_weights), 80)[i], ], words(i))
    s <- sandwich(like$model, like$made, fit$method, 3, 1, words(i), FALSE, like$warm)
    c(s$bounds$lower, s$bounds$upper) - model_functions(line, s$data)$exact()
  }, c(0, 0))
  expect_lt(mean(errors[1, ]), 0.1)
  expect_gt(mean(errors[2, ]), -0.1)
  expect_lt(mean(errors[2, ] < -1), 0.2)
})

test_that("given a fit, sandwich_check() refuses data of another form", {
  fit <- evidence(line, line_data, smc(particles = 50), seed = test_seed(1), progress = FALSE)
  refused(sandwich_check(fit), "`data` must hold the covariates of a regression")
  refused(sandwich_check(fit, data = line_data[1:5, ]),
          "`data` must have as many rows as those of the fit (8), not 5")
  refused(sandwich_check(fit, data = data.frame(x = gl(2, 4))),
          "`data` must be like those of the fit")
  refused(sandwich_check(fit, data = line_data, from = "fit"), "`from` must be")
  refused(sandwich_check(fit, data = line_data, chains = 1), "`chains` must be a whole number")
  refused(sandwich_check(evidence(line, line_data, seed = test_seed())),
          "`method` must be ais() or smc(), whose runs can be reversed")
  refused(sandwich_check(evidence(line, line_data, ais(kernel = baoab()), seed = test_seed())),
          "`kernel` must be")
})

# change_points(): exact references, enumeration in plain R, the grid, draws, and what is refused.

nile <- data.frame(year = 1871:1970, flow = as.numeric(datasets::Nile))
normal_flow <- gaussian_mixture(~ flow, components = 1, location = 900, mean_scale = sqrt(10),
                                shape = 2, rate = 20000)
# boot::coal by year, 1851 to 1962
coal <- data.frame(
  year = 1851:1962,
  n = c(4, 5, 4, 1, 0, 4, 3, 4, 0, 6, 3, 3, 4, 0, 2, 6, 3, 3, 5, 4, 5, 3, 1, 4, 4, 1, 5, 5, 3,
        4, 2, 5, 2, 2, 3, 4, 2, 1, 3, 2, 2, 1, 1, 1, 1, 3, 0, 0, 1, 0, 1, 1, 0, 0, 3, 1, 0, 3,
        2, 2, 0, 1, 1, 1, 0, 1, 0, 1, 0, 0, 0, 2, 1, 0, 0, 0, 1, 1, 0, 2, 3, 3, 1, 1, 2, 1, 1,
        1, 1, 2, 3, 3, 0, 0, 0, 1, 4, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 1)
)
found_in <- function(...) muffled(change_points(..., seed = test_seed()))
log_sum_of <- function(x) max(x) + log(sum(exp(x - max(x))))

test_that("coal mining disasters and the Nile have the published evidences", {
  rate <- poisson_rate(n ~ 1, shape = 2, rate = 1)
  found <- found_in(rate, coal, at = "year", most = 3)
  expect_equal(found$numbers$log_evidence, c(-205.9197, -176.4679, -175.6190, -175.3718),
               tolerance = 1e-6)
  one <- found_in(rate, coal, at = "year", prior = c(0, 1))
  expect_identical(one$changes$at, 1891L)
  expect_equal(one$changes$probability, 0.238, tolerance = 2e-3)
  flow <- found_in(normal_flow, nile, at = "year", most = 2)
  expect_equal(flow$numbers$log_evidence, c(-660.4128, -639.2883, -640.1844), tolerance = 1e-6)
  expect_identical(flow$changes$at, 1898L)
  expect_equal(flow$changes$probability, 0.770, tolerance = 1e-3)
})

# Plain R -----------------------------------------------------------------------------------------

some <- local({
  set.seed(4)
  data.frame(x = c(-1, 0.5, 2, 0.1, -0.7, 1.4, 0.3), y = c(0.1, 0.4, -0.2, 2.1, 1.7, 2.6, 1.1),
             k = c(0, 1, 0, 3, 4, 2, 5), hit = c(1, 0, 0, 1, 1, 1, 0))
})
small_models <- list(
  mean = gaussian_mean(~ y, prior_mean = 1, prior_sd = 2, sigma = 0.8),
  known = linear_regression(y ~ x, sigma = 0.7, prior_sd = c(2, 1)),
  unknown = linear_regression(y ~ x, prior_sd = 1, sigma = inverse_gamma(2, 1)),
  student = linear_regression(y ~ 1, prior_sd = 2, sigma = half_student(3, 1)),
  normal = gaussian_mixture(~ y + x, components = 1, rate = 0.5, location = 0),
  counts = poisson_rate(k ~ offset(x / 5), shape = 2, rate = 1),
  share = binomial_probability(cbind(hit, 2 - hit) ~ 1, shape1 = 2)
)

# All ways to divide n rows by k changes into segments of at least `least` rows.
divisions <- function(n, k, least) {
  cuts <- utils::combn(n - 1, k, simplify = FALSE)
  Filter(function(cut) all(diff(c(0, cut, n)) >= least), cuts)
}

compare_divisions <- function(name, model, exact, n, least) {
  value <- function(cut) {
    ends <- c(0, cut, n)
    sum(exact[cbind(ends[-length(ends)] + 1, ends[-1])])
  }
  found <- found_in(model, some, most = 2, least = least, draws = 20)
  for (k in 0:2) {
    ways <- divisions(n, k, least)
    logs <- vapply(ways, value, 0)
    expect_equal(found$numbers$log_evidence[k + 1], log_sum_of(logs) - log(length(logs)),
                 tolerance = 1e-9, info = paste(name, least, k))
    if (k == 1) weight <- exp(logs - log_sum_of(logs))
  }
  alone <- found_in(model, some, prior = c(0, 1), least = least, draws = 20)
  each <- numeric(n - 1)
  each[unlist(divisions(n, 1, least))] <- weight
  expect_equal(as.data.frame(alone, "rows")$probability, each, tolerance = 1e-9, info = name)
  expect_equal(alone$changes$probability, max(each), tolerance = 1e-9, info = name)
  # the rows of two changes are the most probable ones together
  both <- found_in(model, some, prior = c(0, 0, 1), least = least, draws = 20)
  ways <- divisions(n, 2, least)
  best <- ways[[which.max(vapply(ways, value, 0))]]
  expect_equal(both$changes$row, best, info = paste(name, least))
  expect_identical(nrow(both$segments) %% 3L, 0L)
}

test_that("no two changes are after the same row", {
  set.seed(2)
  rows <- data.frame(n = rpois(200, rep(c(2, 5, 1), c(80, 60, 60))))
  found <- suppressWarnings(change_points(poisson_rate(~ n), rows, seed = 1))
  expect_gt(found$number, 2)
  expect_true(all(diff(found$changes$row) > 0))
  expect_identical(nrow(found$segments), as.integer(found$number) + 1L)
})

test_that("evidences and positions of changes equal those of enumeration", {
  n <- nrow(some)
  for (name in names(small_models)) {
    model <- small_models[[name]]
    exact <- outer(0:(n - 1), 1:n, Vectorize(function(i, j)
      if (j > i) model_functions(model, some[(i + 1):j, ])$exact() else NA))
    for (least in 1:2) compare_divisions(name, model, exact, n, least)
  }
})

test_that("a prior of durations equals independent changes after each row", {
  for (least in 1:2) {
    found <- found_in(small_models$mean, some, duration = 4, most = 6, least = least)
    n <- nrow(some)
    k <- found$numbers$changes
    ways <- vapply(k, function(k) length(divisions(n, k, least)), 0)
    prior <- ways * 0.25^k * 0.75^(n - 1 - k)
    expect_equal(found$numbers$prior, prior / sum(prior), tolerance = 1e-12)
    log_joint <- found$numbers$log_evidence + log(found$numbers$prior)
    expect_equal(found$numbers$posterior, exp(log_joint - log_sum_of(log_joint)),
                 tolerance = 1e-10)
  }
})

test_that("evidences of segments are right far from the prior and with few rows", {
  rows <- local({
    set.seed(2)
    data.frame(x = rnorm(60), y = rnorm(60, 50))
  })
  for (sigma in list(half_student(3, 2.5), inverse_gamma(1, 1), exponential(3), half_normal(1))) {
    model <- linear_regression(y ~ x, prior_sd = c(20, 3), sigma = sigma)
    series <- new_series(model, rows, encode(model, rows), 1)
    all <- segment_grid(series, 0:60)$log_evidence
    for (ends in list(c(0, 1), c(0, 2), c(3, 5), c(10, 14), c(0, 60), c(31, 60)))
      expect_equal(all[segment_at(60, ends[1] + 1, ends[2] + 1)],
                   model_functions(model, rows[(ends[1] + 1):ends[2], ])$exact(),
                   tolerance = 1e-9, info = format(sigma))
  }
})

# The grid ----------------------------------------------------------------------------------------

test_that("sums over a grid of rows equal those over all rows within the stated error", {
  for (seed in test_seed(1:fast_or_slow(3, 20))) {
    set.seed(seed)
    n <- 1200
    y <- rnorm(n, rep(c(0, 0.8, 0.4), c(450, 350, 400)))
    model <- gaussian_mean(prior_sd = 2)
    every <- muffled(change_points(model, y, most = 3, blocks = n, seed = 1))
    grid <- muffled(change_points(model, y, most = 3, blocks = 60, seed = 1))
    expect_true(every$exact && !grid$exact)
    expect_identical(every$numbers$error, rep(0, 4))
    off <- abs(every$numbers$log_evidence - grid$numbers$log_evidence)
    expect_lt(max((off - 2 * grid$numbers$error)[every$numbers$posterior > 1e-4]), 0.05)
    expect_identical(grid$number, every$number)
    expect_lt(max(abs(grid$changes$from - every$changes$from)), 25)
    rows <- as.data.frame(grid, "rows")$probability
    expect_equal(sum(rows), sum(grid$positions$probability), tolerance = 1e-6)
    expect_lt(max(abs(cumsum(rows) - cumsum(every$positions$probability))), 0.05)
  }
})

test_that("sizes of changes have the mean and spread of the posterior", {
  y <- c(some$y, some$y + 1)
  model <- gaussian_mean(sigma = 0.8, prior_sd = 2)
  found <- found_in(model, y, prior = c(0, 1), draws = 20000)
  moments <- function(rows) {
    precision <- length(rows) / 0.64 + 1 / 4
    c(sum(y[rows]) / 0.64 / precision, 1 / precision)
  }
  p <- found$positions$probability
  parts <- vapply(1:13, function(cut) {
    before <- moments(1:cut)
    after <- moments((cut + 1):14)
    c(after[1] - before[1], before[2] + after[2])
  }, numeric(2))
  mean <- sum(p * parts[1, ])
  sd <- sqrt(sum(p * (parts[2, ] + parts[1, ]^2)) - mean^2)
  expect_lt(abs(found$sizes$difference - mean) / sd * sqrt(20000), 4.5)
  up <- sum(p * pnorm(parts[1, ] / sqrt(parts[2, ])))
  expect_lt(abs(found$sizes$up - up) / sqrt(up * (1 - up) / 20000), 4.5)
  expect_identical(found_in(model, y, draws = 50), found_in(model, y, draws = 50))
})

test_that("draws of coefficients in segments follow the posterior", {
  for (model in small_models[c("known", "unknown")]) {
    series <- new_series(model, some, encode(model, some), 1)
    m <- fast_or_slow(4000, 40000)
    whole <- segment_grid(series, c(0, 7))
    drawn <- drawn_parameters(series, whole, same_bounds(c(0, 7), m), words())$user[, , 1]
    fit <- evidence(model, some, exact(), seed = 1)
    truth <- as.matrix(posterior_draws(fit))[, colnames(drawn)]
    for (name in colnames(drawn))
      expect_gt(suppressWarnings(ks.test(drawn[, name], truth[, name]))$p.value, 1e-4)
  }
})

# Laplace -----------------------------------------------------------------------------------------

test_that("models without closed form use Laplace's approximation and state its error", {
  rows <- local({
    set.seed(test_seed(6))
    x <- rnorm(400)
    data.frame(x = x, k = rpois(400, exp(0.5 + 0.3 * x + rep(0:1, c(250, 150)))))
  })
  model <- regression(k ~ x, poisson(), prior_sd = 1)
  series <- new_series(model, rows, encode(model, rows), 1)
  expect_identical(series$kind, "laplace")
  all <- segment_grid(series, c(0, 30, 200, 400))$log_evidence
  for (ends in list(c(1, 2), c(2, 4), c(1, 4))) {
    part <- rows[(c(0, 30, 200)[ends[1]] + 1):c(0, 30, 200, 400)[ends[2]], ]
    expect_equal(all[segment_at(3, ends[1], ends[2])], logml(evidence(model, part, laplace())),
                 tolerance = 1e-6)
  }
  found <- found_in(model, rows)
  expect_identical(found$number, 1)
  expect_true(found$changes$from <= 250 && found$changes$to >= 250)
  expect_lt(max(found$numbers$error[1:2]), 0.3)
  expect_gt(found$sizes$up[1], 0.99)
  # Laplace's approximation is exact for a quadratic log-likelihood
  linear <- linear_regression(k ~ x, sigma = 2, prior_sd = 3)
  exact <- new_series(linear, rows, encode(linear, rows), 5)
  other <- list2env(as.list(exact))
  other$kind <- "laplace"
  bounds <- c(0, 3, 100, 101, 400)
  expect_equal(segment_grid(other, bounds)$log_evidence, segment_grid(exact, bounds)$log_evidence,
               tolerance = 1e-7)
})

# Other models, sources, fits ----------------------------------------------------------------------

test_that("change_points() takes a fit, with its model and data", {
  fit <- muffled(evidence(normal_flow, nile, seed = 1))
  of_fit <- muffled(change_points(fit, at = "year", seed = test_seed()))
  parts <- c("numbers", "changes", "sizes")
  expect_equal(of_fit[parts], found_in(normal_flow, nile, at = "year")[parts])
  expect_identical(found_in(fit, nile)$number, 1)
})

test_that("two changes inside one block of the grid are found", {
  set.seed(test_seed(9))
  y <- rnorm(30000)
  y[20011:20026] <- y[20011:20026] + 4
  found <- found_in(gaussian_mean(prior_sd = 3), y)
  expect_identical(found$number, 2)
  expect_true(all(abs(found$changes$row - c(20010, 20026)) <= 2))
  still <- found_in(gaussian_mean(prior_sd = 3), rnorm(30000))
  expect_identical(still$number, 0)
})

# Models ------------------------------------------------------------------------------------------

test_that("conjugate models have their closed forms", {
  counts <- c(2, 0, 3)
  exposure <- c(1, 2, 0.5)
  d <- data.frame(k = counts, t = exposure, s = c(1, 3, 0), f = c(2, 0, 4))
  rate <- poisson_rate(k ~ offset(log(t)), shape = 2, rate = 3)
  integral <- integrate(function(l) vapply(l, function(l)
    prod(dpois(counts, exposure * l)) * dgamma(l, 2, 3), 0), 0, Inf, rel.tol = 1e-10)$value
  fit <- evidence(rate, d, exact(), seed = 1)
  expect_equal(logml(fit), log(integral), tolerance = 1e-8)
  expect_identical(fit$source, "exact")
  expect_gt(ks.test(posterior_draws(fit)[, "rate"], "pgamma", 2 + 5, 3 + 3.5)$p.value, 1e-4)
  share <- binomial_probability(cbind(s, f) ~ 1, 2, 3)
  fit <- evidence(share, d, exact(), seed = 1)
  expect_equal(logml(fit), sum(lchoose(c(3, 3, 4), d$s)) + lbeta(2 + 4, 3 + 6) - lbeta(2, 3))
  expect_gt(ks.test(posterior_draws(fit)[, "probability"], "pbeta", 6, 9)$p.value, 1e-4)
  expect_equal(fitted(fit), 4 / 10 * 0 + mean(posterior_draws(fit)) * c(3, 3, 4),
               ignore_attr = TRUE, tolerance = 0.02)
  for (model in list(rate, share)) {
    expect_true(all(check_model(model, d, seed = 1)$passed))
    sampled <- quiet_fit(model, d, seed = test_seed())
    expect_lt(abs(logml(sampled) - logml(evidence(model, d, exact()))), 4.5 * sampled$se + 1e-3)
  }
  refused(poisson_rate(k ~ t), "without covariates")
  refused(poisson_rate(k ~ 1, shape = 0), "`shape` must be a positive number, not 0.")
  refused(evidence(poisson_rate(~ k), data.frame(k = -1), exact()), "non-negative whole number")
})

# Streams -----------------------------------------------------------------------------------------

test_that("an alarm has the evidence of geometric durations, for any size of blocks", {
  set.seed(test_seed(3))
  # so far apart that there is one answer to where the last segment begins
  y <- c(rnorm(60), rnorm(40, 5))
  model <- gaussian_mean(prior_sd = 3)
  n <- length(y)
  found <- muffled(change_points(model, y, duration = 50, most = 60, draws = 10, seed = 1))
  log_joint <- found$numbers$log_evidence + dbinom(0:60, n - 1, 1 / 50, log = TRUE)
  watch <- change_alarm(model, y, duration = 50, starts = 200)
  expect_equal(watch$log_evidence, log_sum_of(log_joint), tolerance = 1e-12)
  expect_identical(watch$lost, 0)
  # the first rows of the last segment
  last <- muffled(change_points(model, y, duration = 50, most = 60, draws = 10, seed = 1))
  expect_identical(watch$start, as.double(last$changes$row[last$number]))
  in_parts <- update(update(change_alarm(model, y[1:7], duration = 50), y[8:70]), y[71:100])
  expect_equal(in_parts$log_evidence, watch$log_evidence, tolerance = 1e-12)
  few <- change_alarm(model, y, duration = 50, starts = 20)
  expect_lt(abs(few$log_evidence - watch$log_evidence), 2 * few$lost)
  for (name in c("normal", "unknown", "counts")) {
    rows <- some[rep(1:7, 3), ]
    parts <- change_alarm(small_models[[name]], rows[1:9, ], duration = 20)
    expect_equal(update(parts, rows[10:21, ])$log_evidence,
                 change_alarm(small_models[[name]], rows, duration = 20)$log_evidence,
                 tolerance = 1e-10, info = name)
  }
})

test_that("a stream that changes raises an alarm at the right row, in bounded memory", {
  set.seed(test_seed(8))
  n <- 0
  heard <- list()
  blocks <- rows_function(function(reset) {
    if (reset) n <<- 0
    if (n >= 6000) return(NULL)
    n <<- n + 500
    data.frame(y = rnorm(500, if (n > 3000) 1 else 0))
  }, rewind = FALSE)
  watch <- change_alarm(gaussian_mean(~ y, prior_sd = 3), blocks, duration = 1e4, starts = 50,
                        step = 5, on_chunk = function(now) heard[[length(heard) + 1]] <<- now)
  expect_identical(watch$n, 6000)
  expect_identical(nrow(watch$alarms), 1L)
  expect_lt(watch$alarms$row, 3400)
  expect_lt(abs(watch$alarms$start - 3000), 60)
  expect_identical(length(heard), 60L)
  expect_identical(vapply(heard, `[[`, 0, "rows"), seq(100, 6000, by = 100))
  expect_identical(sum(vapply(heard, `[[`, NA, "alarm")), 1L)
  expect_lt(as.numeric(object.size(watch$state)), 2e4)
  expect_match(said(watch), "alarm at row 3,", fixed = TRUE)
  refused(change_alarm(gaussian_mean(), 1:3, alarm = 0.2), "`alarm` must be")
  refused(change_alarm(gaussian_mean(), 1:3, on_chunk = 3), "`on_chunk` must be NULL")
  expect_error(change_alarm(gaussian_mean(), 1:3, on_chunk = function(now) stop("mine")),
               "^`on_chunk` stopped: mine$")
  refused(change_alarm(regression(k ~ x, poisson()), some), "closed form")
  refused(update(watch), "`rows` must be given")
  expect_error(update(watch, data.frame(y = c(1, NA))), "row 2.", fixed = TRUE)
})

test_that("an altered alarm is refused in a sentence, by R and by C", {
  set.seed(test_seed(4))
  watch <- change_alarm(gaussian_mean(prior_sd = 3), rnorm(30), duration = 20, starts = 10)
  whole <- update(watch, c(0, 1))
  expect_identical(whole$n, 32)
  alter <- function(path, new) {
    altered <- unclass(watch)
    altered[[path]] <- new
    structure(altered, class = "change_alarm")
  }
  state <- watch$state
  cases <- list(
    list("settings", replace(watch$settings, 2, -1)), list("settings", watch$settings[-1]),
    list("settings", replace(watch$settings, 3, 0.5)), list("settings", NULL),
    list(c("state", "log_evidence"), state$log_evidence[-1]),
    list(c("state", "log_weight"), numeric()), list(c("state", "numbers"), numeric()),
    list(c("state", "start"), rev(state$start)), list(c("state", "block"), state$block * NA),
    list(c("state", "block"), as.character(state$block)), list("state", list()),
    list("tables", "a"), list("n", 1e300), list("since", -1), list("since", 31),
    list("model", 1), list("args", 1),
    list("trace", NULL), list("alarms", data.frame(row = 1)),
    list(c("trace", "log_evidence"), 1:3), list(c("trace", "rows"), numeric()))
  for (case in cases) {
    altered <- alter(case[[1]], case[[2]])
    # the state is compared with the settings and the number of rows
    part <- if (case[[1]][1] %in% c("settings", "n")) "of this one"
    else paste0("the part `", case[[1]][1], "` of this one")
    for (verb in list(print, plot, as.data.frame, function(x) update(x, 0)))
      refused(verb(altered), part)
  }
  # what is right by itself but not for this model is refused by C
  refused(update(alter("tables", 1), 0), "`tables` must be as it was made")
  # tables that are as long as there were rows
  long <- Find(function(watch) length(watch$tables) > 0, lapply(
    small_models[c("normal", "unknown", "counts")], change_alarm, some[rep(1:7, 3), ],
    duration = 20))
  for (tables in list(replace(long$tables, 1, 1e6), long$tables[-3], numeric())) {
    altered <- unclass(long)
    altered$tables <- tables
    refused(update(structure(altered, class = "change_alarm"), some), "`tables` must be")
  }
  refused(update(alter(c("state", "block"), state$block[-(1:10)]), 0),
          "`block` must be as it was made")
  refused(update(alter("args", replace(watch$args, 1, list(TRUE))), 0), "must be numeric or one")
  # vectors of length 0
  refused(.Call(ffi_segments_sums, numeric(), numeric(), 1, TRUE),
          "`log_weight` must be as it was made")
  refused(.Call(ffi_segments_sums, 1:3, numeric(3), 1, TRUE),
          "`log_evidence` must be as it was made")
})

test_that("altered change points are refused in a sentence", {
  set.seed(test_seed(5))
  found <- muffled(change_points(gaussian_mean(prior_sd = 3), c(rnorm(9), rnorm(9, 6)), most = 2,
                                 draws = 20, seed = 1))
  parts <- c("numbers", "number", "changes", "positions", "n", "level", "model", "times", "band",
             "segments")
  for (part in parts) {
    altered <- unclass(found)
    altered[[part]] <- "a"
    class(altered) <- "change_points"
    for (verb in list(print, summary, plot, as.data.frame, report))
      refused(verb(altered), paste0("the part `", part, "` of this one is \"a\""))
  }
  # a matrix as a column of a table
  found$band$y <- cbind(found$band$y, 0)
  refused(plot(found), "the part `band`")
})

# What a user meets -------------------------------------------------------------------------------

test_that("change points are printed, summarised and plotted", {
  found <- found_in(normal_flow, nile, at = "year")
  text <- said(found)
  expect_match(text, "Change points in 100 rows, year 1871 to 1970", fixed = TRUE)
  expect_match(text, "after year 1898 (probability 0.770), 95% interval 1896 to 1899", fixed = TRUE)
  expect_match(said(summary(found)), "Every row is a possible position.", fixed = TRUE)
  expect_identical(as.data.frame(found), found$changes)
  expect_identical(as.data.frame(found, type = "sizes")$parameter, c("mean", "sd"))
  expect_identical(nrow(as.data.frame(found, "rows")), 99L)
  series <- drawn_series(plot(found))
  expect_true(any(vapply(series, function(s) identical(as.numeric(s$y), nile$flow), NA)))
  skip_if_not_installed("ggplot2")
  expect_s3_class(ggplot2::autoplot(found), "ggplot")
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  print(ggplot2::autoplot(found))
  steady <- muffled(change_points(gaussian_mean(), c(0.1, -0.3, 0.2, 0), seed = 1))
  expect_identical(steady$number, 0)
  expect_match(said(steady), "No change is the most probable")
  expect_identical(nrow(as.data.frame(steady)), 0L)
  plot(steady)
  print(ggplot2::autoplot(steady))
  days <- found_in(normal_flow, nile, at = as.Date("2020-01-01") + 0:99)
  expect_match(said(days), "time 2020-01-01 to 2020-04-09", fixed = TRUE)
  plot(days)
})

test_that("bad input to change_points() is refused in a sentence", {
  m <- gaussian_mean(~ flow)
  refused(change_points(3, nile), "`model` must be a model")
  refused(change_points(m), "`data` must be given")
  refused(change_points(m, nile[100:1, ], at = "year"), "`at` must be sorted")
  refused(change_points(m, nile, at = "time"), "`at` must be a column of `data`")
  refused(change_points(m, nile, at = 1:3), "`at` must have a time for each row of `data` (100)")
  refused(change_points(m, nile, at = c(NA, 2:100)), "no missing times, as in row 1")
  refused(change_points(m, transform(nile, flow = replace(flow, 3, NA))), "row 3")
  omitted <- suppressMessages(found_in(m, transform(nile, flow = replace(flow, 3, NA)),
                                       at = "year", na.action = na.omit, prior = c(1, 1)))
  expect_identical(time_at(omitted$times, 2:3), c(1872L, 1874L))
  refused(change_points(m, nile[1, ]), "must have at least 2 rows, twice `least`, not 1")
  refused(change_points(m, nile, least = 51), "at least 102 rows")
  refused(change_points(m, nile, most = 0), "`most` must be a whole number")
  refused(change_points(m, nile, prior = 1), "`prior` must be weights of 0, 1, ... changes")
  refused(change_points(m, nile, prior = c(1, 1), duration = 5), "not both")
  refused(change_points(m, nile[1:2, ], prior = c(0, 0, 1)), "the most that the rows have room for")
  refused(change_points(m, nile, duration = 1), "`duration` must be")
  refused(change_points(m, nile, level = 1), "`level`")
  refused(change_points(m, rows_in_memory(nile), at = nile$year), "`at` must be NULL or the name")
  refused(change_points(m, rows_in_memory(nile), method = laplace()), "`method` must be NULL")
  refused(change_points(regression(k ~ x, poisson()), rows_in_memory(some)), "rows in memory")
  refused(change_points(gaussian_mixture(~ flow, components = 1:2,
                                         location = 0, rate = 1), nile), "not of several")
  refused(change_points(linear_regression(flow ~ year, prior = jzs()), nile), "proper prior")
  refused(change_points(linear_regression(flow ~ year, prior = jzs()), nile),
          "give the model `prior_sd = 10` or `prior = normal(0, 10)`, in units of the data")
  twice <- data.frame(y = c(1, 1, 2, 3))
  refused(change_points(linear_regression(y ~ 1), twice),
          "fit rows 1 to 2 exactly, so their evidence is infinite")
})

test_that("segments that would be fitted exactly are made longer, unless `least` is given", {
  nile <- data.frame(flow = as.numeric(Nile)[1:40])
  model <- linear_regression(flow ~ 1, prior = normal(900, 300), sigma = half_student(3, 150))
  found <- change_points(model, nile, seed = 1)
  expect_identical(found$least, 4)
  expect_identical(found$numbers, change_points(model, nile, least = 4, seed = 1)$numbers)
  expect_output(print(found), "fit rows 5 to 6 exactly")
  expect_output(print(found), "at least 4 rows")
  refused(change_points(model, nile, least = 2), "or a larger `least`")
  # longer runs of equal rows, also those that a later step finds
  nile$flow[11:16] <- 1000
  expect_identical(change_points(model, nile, seed = 1, blocks = 20)$least, 7)
  refused(change_points(model, nile, blocks = 8), "there are no 5 segments of at least 6 rows each")
  expect_null(change_points(gaussian_mean(~ flow, sigma = 150, prior_mean = 900, prior_sd = 300),
                            nile, seed = 1)$note)
})

test_that("a prior that contradicts the rows gives the warning that evidence() gives", {
  nile <- data.frame(flow = as.numeric(Nile))
  expect_warning(found <- change_points(gaussian_mean(~ flow, sigma = 150), nile, seed = 1),
                 "contradict the prior")
  expect_match(found$warnings, "contradict the prior", all = FALSE)
  expect_warning(change_alarm(gaussian_mean(~ flow, sigma = 150), nile), "contradict the prior")
  sensible <- gaussian_mean(~ flow, sigma = 150, prior_mean = 900, prior_sd = 300)
  expect_silent(change_points(sensible, nile, seed = 1))
  expect_silent(change_alarm(sensible, nile))
})

test_that("an alarm is plotted, and its alarms are a data frame", {
  set.seed(test_seed(77))
  watch <- change_alarm(gaussian_mean(prior_sd = 3), c(rnorm(300), rnorm(100, 2)), duration = 1000)
  expect_gt(nrow(as.data.frame(watch)), 0)
  quiet <- change_alarm(gaussian_mean(prior_sd = 3), rnorm(100), duration = 1e6)
  expect_identical(nrow(as.data.frame(quiet)), 0L)
  expect_identical(names(as.data.frame(quiet)), names(as.data.frame(watch)))
  file <- tempfile(fileext = ".pdf")
  grDevices::pdf(file)
  on.exit({
    grDevices::dev.off()
    unlink(file)
  })
  expect_identical(plot(watch), watch)
  expect_identical(plot(quiet), quiet)
})

test_that("positions of changes in a time series are its times", {
  model <- gaussian_mean(prior_mean = 900, prior_sd = 200, sigma = 130)
  found <- change_points(model, Nile, seed = test_seed())
  frame <- change_points(model, as.numeric(Nile), at = 1871:1970, seed = test_seed())
  expect_identical(found$numbers, frame$numbers)
  expect_equal(found$changes, frame$changes)
  expect_equal(found$changes$at, 1898)
  expect_match(said(found), "Change points in 100 rows, time 1871 to 1970")
  # another time is that of the user
  expect_equal(change_points(model, Nile, at = 1:100, seed = test_seed())$changes$at, 28)
  flow <- linear_regression(flow ~ 1, sigma = 130, prior_sd = 1000)
  expect_equal(change_points(flow, Nile, seed = test_seed())$changes$at, 1898)
  drivers <- linear_regression(log(drivers) ~ law, sigma = 0.15, prior_sd = 10)
  months <- change_points(drivers, Seatbelts, most = 1, seed = test_seed())
  expect_s3_class(months$changes$at, "Date")
  expect_identical(time_at(months$times, c(1, 192)), as.Date(c("1969-01-01", "1984-12-01")))
  expect_identical(times_of_ts(ts(1:3, c(1999, 4), frequency = 4)),
                   as.Date(c("1999-10-01", "2000-01-01", "2000-04-01")))
  refused(change_points(linear_regression(flow ~ x, sigma = 1, prior_sd = 1), Nile),
          "`data` must be a data frame for a model of several columns (`flow`, `x`)")
})

test_that("sizes are printed as a table for four and more parameters, else as sentences", {
  set.seed(test_seed())
  rows <- data.frame(a = rnorm(60), b = rnorm(60), c = rnorm(60))
  rows$y <- ifelse(seq_len(60) > 30, 5, 0) + rows$a + rnorm(60) / 2
  of <- function(formula)
    utils::capture.output(print(change_points(
      linear_regression(formula, sigma = 0.5, prior_sd = 3), rows, seed = test_seed())))
  table <- of(y ~ a + b + c)
  expect_match(table, "^ +before +after +difference +95% interval +P\\(larger\\)$", all = FALSE)
  expect_match(table, "^     \\(Intercept\\) .* to .*  above 0.999$", all = FALSE)
  expect_no_match(table, "larger with")
  few <- of(y ~ a)
  expect_match(paste(few, collapse = " "), "a from .* larger with +probability")
})

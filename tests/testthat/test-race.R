# Several models on the same rows: evidence(list(...)).

race_rows <- function(n = 4000, seed = test_seed(1)) {
  set.seed(seed)
  rows <- data.frame(x = rnorm(n), z = rnorm(n))
  rows$y <- rpois(n, exp(0.2 + 0.1 * rows$x))
  rows
}

# Their priors have the same units whatever rows are there.
race_models <- function() lapply(list(
  a = regression(y ~ x, family = poisson()), b = regression(y ~ x + z, family = poisson()),
  c = regression(y ~ 1, family = poisson())), at_unit_one)

# A source of blocks, which counts how often each of its rows is read.
counted_source <- function(rows, size = 700, fails_after = Inf) {
  at <- 0
  read <- 0
  source <- rows_function(function(reset) {
    if (reset) {
      at <<- 0
      return(invisible())
    }
    if (at >= nrow(rows)) return(NULL)
    if (at >= fails_after) stop("the line is down")
    block <- rows[(at + 1):min(at + size, nrow(rows)), , drop = FALSE]
    at <<- at + nrow(block)
    read <<- read + nrow(block)
    block
  })
  list(source = source, read = function() read)
}

# A race whose moments several tests look at.
known_race <- local({
  race <- NULL
  function() {
    if (is.null(race))
      race <<- evidence(race_models(), counted_source(race_rows(2000), 100)$source, seed = 3,
                        keep = 1000, prior = c(2, 1, 1))
    race
  }
})

fits_of <- function(race) attr(race, "fits")[attr(race, "race")$names]

expect_same_fits <- function(race, fits) {
  for (name in names(fits)) {
    own <- attr(race, "fits")[[name]]
    for (part in c("log_evidence", "se", "draws", "log_weights", "warnings"))
      expect_identical(own[[part]], fits[[name]][[part]])
    plain <- setdiff(names(own$trace), "seconds")
    expect_identical(own$trace[plain], fits[[name]]$trace[plain])
  }
}

test_that("each fit of several models is that of the model alone, in memory and of a source", {
  rows <- race_rows()
  models <- race_models()
  singly <- function(...) lapply(models, evidence, ..., seed = 5)
  expect_same_fits(evidence(models, rows, seed = 5), singly(rows))
  expect_same_fits(evidence(models, rows, seed = 5, keep = 1000), singly(rows, keep = 1000))
  counted <- counted_source(rows)
  race <- evidence(models, counted$source, seed = 5, keep = 1000, replicates = 2)
  expect_same_fits(race, singly(counted_source(rows)$source, keep = 1000, replicates = 2))
})

test_that("a source is read once for all models, and again only for further passes", {
  rows <- race_rows()
  counted <- counted_source(rows)
  evidence(race_models(), counted$source, seed = 1)
  expect_equal(counted$read(), nrow(rows))

  # a mixture with rows gone asks for a further pass, and so does its neighbour
  set.seed(test_seed(2))
  points <- data.frame(u = c(rnorm(1500, -1), rnorm(1500, 2)))
  models <- list(two = gaussian_mixture(~ u, 2, location = 0, rate = 1),
                 three = gaussian_mixture(~ u, 3, location = 0, rate = 1))
  counted <- counted_source(points, 500)
  race <- muffled(evidence(models, counted$source, seed = 1, keep = 1000))
  alone <- lapply(models, function(model)
    muffled(evidence(model, counted_source(points, 500)$source, seed = 1, keep = 1000)))
  expect_same_fits(race, alone)
  expect_lte(counted$read(), 3 * nrow(points))
})

test_that("a race that is stopped and resumed has the same bits", {
  rows <- race_rows(20000)
  models <- race_models()
  file <- tempfile(fileext = ".csv")
  checkpoint <- tempfile()
  on.exit(unlink(c(file, checkpoint)))
  utils::write.csv(rows, file, row.names = FALSE)
  whole <- fits_of(evidence(models, rows_csv(file), seed = 3, keep = 2000))
  stopped <- 0
  for (limit in c(1e-6, 0.03, 0.06)) {
    unlink(checkpoint)
    race <- evidence(models, rows_csv(file), seed = 3, keep = 2000, time_limit = limit,
                     checkpoint = checkpoint)
    if (inherits(race, "incomplete_race")) {
      stopped <- stopped + 1
      expect_output(print(race), "Stopped by: the time limit")
      expect_same_fits(resume(race), whole)
    }
    expect_same_fits(resume(checkpoint), whole)
  }
  expect_gt(stopped, 0)
  expect_error(evidence(models[1:2], rows_csv(file), seed = 3, keep = 2000,
                        checkpoint = checkpoint), "another run")
  # in memory
  race <- evidence(models, rows, seed = 3, time_limit = 1e-6)
  expect_s3_class(race, "incomplete_race")
  expect_same_fits(resume(race), fits_of(evidence(models, rows, seed = 3)))
})

test_that("rows are added to all models of a race", {
  rows <- race_rows()
  models <- race_models()
  whole <- evidence(models, rows, seed = 3, keep = 1000)
  race <- update(evidence(models, rows[1:2500, ], seed = 3, keep = 1000), rows[2501:4000, ])
  expect_same_fits(race, fits_of(whole))
  moments <- as.data.frame(race)
  expect_true(2500 %in% moments$rows)
  expect_identical(attr(race, "race")$prior, attr(whole, "race")$prior)
})

test_that("an error of the source stops all models at the same row; rows can then be added", {
  rows <- race_rows()
  models <- race_models()
  error <- expect_error(
    evidence(models, counted_source(rows, 500, 2500)$source, seed = 3, keep = 1000),
    "could not be read after row 2500")
  expect_s3_class(error$fit, "incomplete_race")
  expect_identical(error$fit$rows_read, 2500)
  race <- update(error$fit, rows[2501:4000, ])
  expect_same_fits(race, fits_of(evidence(models, rows, seed = 3, keep = 1000)))
})

test_that("a model that fails drops out with its reason, and the others go on", {
  rows <- race_rows()
  models <- race_models()
  rows$z[3000] <- NA
  race <- evidence(models, counted_source(rows)$source, seed = 3, keep = 1000)
  expect_identical(sort(race$model), c("a", "c"))
  expect_match(attr(race, "race")$dropped[["b"]], "column `z`, row 3000")
  expect_output(print(race), "Dropped out: b")
  expect_same_fits(race, lapply(models[c("a", "c")], evidence, rows, seed = 3, keep = 1000))
  # if all fail, the call does
  rows$y[3000] <- NA
  error <- expect_error(evidence(models, counted_source(rows)$source, seed = 3, keep = 1000),
                        "row 3000")
  expect_s3_class(error$fit, "incomplete_race")
})

test_that("models that cannot be compared are refused before any run", {
  rows <- race_rows(100)
  models <- race_models()
  expect_error(evidence(list(models$a), rows), "at least two models")
  expect_error(evidence(list(models$a, 3), rows), "model[[2]]", fixed = TRUE)
  expect_error(evidence(list(a = models$a, a = models$b), rows), "distinct names")
  expect_error(evidence(list(models$a, regression(x ~ z)), rows), "different data")
  expect_error(evidence(list(models$a, regression(x ~ z)), rows, keep = 1000), "different data")
  expect_error(evidence(list(one = models$a, two = regression(y ~ q)), rows), "Model `two`")
  expect_error(evidence(models, rows, keep = 1000, method = nested()),
               "Model `a`.*all rows at once")
  expect_error(evidence(models, rows, stop_at = 10), "two Bayes factors")
  expect_error(evidence(models, rows, stop_at = c(2, 10)), "one below and one above 1")
  expect_error(evidence(models, rows, prior = c(1, 2)), "a weight for each of the 3 fits")
  expect_error(evidence(models$a, rows, stop_at = c(0.1, 10)), "for several models")
  expect_error(evidence(list(gaussian_mixture(~ x, 1:3), gaussian_mixture(~ x, 2)), rows),
               "one number of `components`")
  # rows that are incomplete for one model are left out for all
  rows$z[5] <- NA
  rows$x[7] <- NA
  expect_message(race <- evidence(models, rows, seed = 1, na.action = na.omit), "1 of 99 rows")
  expect_identical(nobs(race), 98L)
  expect_identical(as.integer(fits_of(race)$a$na.action), c(5L, 7L))
})

test_that("states at a moment are fits of the first rows", {
  rows <- race_rows(2000)
  models <- race_models()
  race <- known_race()
  moments <- as.data.frame(race)
  at <- function(model, n) moments[moments$model == model & moments$rows == n, ]
  for (n in c(1, 10, 104)) for (name in names(models)) {
    own <- evidence(models[[name]], rows[seq_len(n), ], seed = 3, sgais(order = "given"))
    expect_lt(abs(at(name, n)$log_evidence - own$log_evidence), 4 * (own$se + at(name, n)$se))
  }
  expect_identical(at("b", 2000)$log_evidence, fits_of(race)$b$log_evidence)
  for (n in c(10, max(moments$rows[moments$rows < 2000]), 2000)) {
    logs <- vapply(names(models), function(name) at(name, n)$log_evidence, 0)
    weights <- c(2, 1, 1) * exp(logs - max(logs))
    expect_equal(vapply(names(models), function(name) at(name, n)$posterior, 0),
                 setNames(weights / sum(weights), names(models)))
    expect_equal(at("combination", n)$log_evidence, max(logs) + log(sum(weights) / 4))
  }
  scores <- moments$log_score[moments$model == "a"]
  expect_equal(sum(scores), fits_of(race)$a$log_evidence)
  # the combination is never far below the best model
  best <- tapply(moments$log_evidence[moments$model != "combination"],
                 moments$rows[moments$model != "combination"], max)
  combined <- moments$log_evidence[moments$model == "combination"]
  expect_true(all(combined >= best - log(4) - 1e-9))
})

test_that("after the first rows the state at a moment is the fit of the rows so far, to the bit", {
  n <- fast_or_slow(4000, 12000)
  rows <- race_rows(n)
  models <- list(a = race_models()$a,
                 d = at_unit_one(regression(y ~ x, family = negative_binomial())))
  race <- evidence(models, counted_source(rows, 500)$source, seed = 3, keep = 1000,
                   replicates = 2)
  moments <- as.data.frame(race)
  looks <- setdiff(unique(moments$rows[moments$rows > 1000]), n)
  expect_gt(length(looks), 0)
  once <- function(n) {
    left <- split(rows[seq_len(n), ], ceiling(seq_len(n) / 500))
    rows_function(function(reset) {
      block <- left[1][[1]]
      left <<- left[-1]
      block
    }, rewind = FALSE)
  }
  for (n in looks) for (name in names(models)) {
    own <- evidence(models[[name]], once(n), seed = 3, keep = 1000, replicates = 2)
    at <- moments[moments$model == name & moments$rows == n, ]
    expect_identical(c(at$log_evidence, at$se), c(own$log_evidence, own$se))
  }
  # the same when the run was stopped on the way
  part <- evidence(models, counted_source(rows, 500)$source, seed = 3, keep = 1000,
                   replicates = 2, time_limit = 0.1)
  if (inherits(part, "incomplete_race"))
    expect_identical(as.data.frame(resume(part, counted_source(rows, 500)$source)), moments)
})

test_that("a fit that failed at a moment is left out of decisions and averages there", {
  rows <- race_rows(60)
  race <- evidence(race_models(), rows, seed = 3)
  whole <- as.data.frame(race)
  kept <- attr(race, "race")
  bad <- kept$moments$model == "a" & kept$moments$rows == 10
  kept$moments$doubt[bad] <- "failed"
  kept$moments$log_evidence[bad] <- 1000
  moments <- as.data.frame(race)
  at <- function(table, model) table[table$rows == 10 & table$model == model, ]
  expect_identical(at(moments, "a")$doubt, "failed")
  expect_identical(at(moments, "a")$log_evidence, 1000)
  expect_true(is.na(at(moments, "a")$posterior))
  expect_equal(at(moments, "b")$posterior + at(moments, "c")$posterior, 1)
  others <- c(at(whole, "b")$log_evidence, at(whole, "c")$log_evidence)
  expect_equal(at(moments, "combination")$log_evidence, log(mean(exp(others))))
  path <- bayes_factor_path(race, c("a", "b"))
  expect_true(is.na(path$log_bf[path$rows == 10]))
  expect_false(10 %in% crossings(race, c("a", "b"))$rows)
  expect_false(10 %in% race_figure(race, "bayes factor", c("a", "b"))$lines$rows)
  each <- vapply(fits_of(race)[c("b", "c")], predict, c(0, 0), newdata = rows[1:2, ])
  expect_equal(predict(race, rows[1:2, ], rows = 10),
               drop(each %*% c(at(moments, "b")$posterior, at(moments, "c")$posterior)))
  # nor does it end a stream
  fit <- fits_of(race)$a
  parts <- list2env(list(names = c("one", "two"), stop_at = c(0.1, 10)))
  far <- list(one = fit, two = replace(fit, "log_evidence", fit$log_evidence - 50))
  expect_true(decide_by(parts, 60, far, list()))
  expect_false(decide_by(parts, 19, far, list()))
  far$one$failed <- "no"
  expect_false(decide_by(parts, 60, far, list()))
})

test_that("rows are added without computing the moments before them", {
  rows <- race_rows(3000)
  race <- evidence(race_models()[c("a", "c")], rows[1:2500, ], seed = 3, keep = 1000)
  more <- update(race, rows[2501:3000, ])
  expect_null(attr(race, "race")$moments)
  expect_null(attr(more, "race")$moments)
  moments <- as.data.frame(more)
  expect_true(all(c(10, 2000, 2500, 3000) %in% moments$rows))
  before <- as.data.frame(race)
  both <- merge(before, moments, by = c("rows", "model"))
  expect_identical(both$log_evidence.x, both$log_evidence.y)
  expect_setequal(both$rows, before$rows)
})

test_that("predictions are averaged with the weights of any moment", {
  race <- known_race()
  moments <- as.data.frame(race)
  new <- data.frame(x = c(-2, 2), z = 1)
  each <- vapply(fits_of(race), predict, c(0, 0), newdata = new)
  for (n in c(20, max(moments$rows[moments$rows < 2000]), 2000)) {
    weights <- moments$posterior[moments$rows == n & moments$model != "combination"]
    expect_equal(predict(race, new, rows = n), drop(each %*% weights))
  }
  expect_equal(predict(race, new), predict(race, new, rows = 1e9))
  expect_error(predict(race, new, rows = 0), "at least 1")
})

test_that("a stream ends where the Bayes factor has passed a threshold", {
  rows <- race_rows(2000)
  models <- race_models()[c("a", "c")]
  race <- evidence(models, rows, seed = 3, stop_at = c(1 / 10, 10))
  stopped <- attr(race, "race")$stopped
  expect_identical(nobs(race), as.integer(stopped$rows))
  path <- bayes_factor_path(race, c("a", "c"))
  passed <- path$lower >= log(10) | path$upper <= -log(10)
  expect_identical(path$rows[passed & path$rows >= 20][1], stopped$rows)
  expect_output(print(race), "Stopped after")
  # with a threshold that is passed after the first chunk
  far <- evidence(models, counted_source(rows, 500)$source, seed = 3, keep = 1000,
                  stop_at = c(0, exp(4)))
  if (!is.null(attr(far, "race")$stopped))
    expect_same_fits(far, lapply(models, evidence, rows[seq_len(nobs(far)), ], seed = 3,
                                 keep = 1000))
  never <- evidence(models, rows[1:50, ], seed = 3, stop_at = c(0, 1e200))
  expect_output(print(never), "No threshold of `stop_at` was passed")
  expect_identical(nobs(never), 50L)
})

test_that("`stop_at` does not stop on few rows, nor by fits with warnings", {
  # the response is zero in the first 30 rows, so all fits to them say that it is the same
  rows <- data.frame(hit = rep(c(0, 1, 0, 0, 1), c(30, 3, 20, 5, 20)), x = rep(0:1, 39))
  models <- list(rare = regression(hit ~ 1, binomial(), intercept = normal(-4, 0.5)),
                 half = regression(hit ~ 1, binomial(), prior_sd = 0.5))
  ended <- function(...) {
    race <- muffled(evidence(models, rows, seed = 1, stop_at = c(1 / 10, 10), ...))
    attr(race, "race")$stopped$rows
  }
  expect_gt(ended(), 30)
  expect_gte(ended(from = 50), 50)
  # without a doubt, as soon as there are 20 rows, or as many as asked for
  rows <- data.frame(hit = rep(0:1, 40), x = 0)
  expect_identical(ended(), 20)
  expect_lt(ended(from = 1), 15)
  expect_error(evidence(models, rows, from = 5), "`from` must be NULL without `stop_at`")
  expect_error(evidence(models, rows, stop_at = c(0.1, 10), from = 0), "`from` must be a whole")
  # a race that goes on has the same rule
  race <- muffled(evidence(models, rows[1:10, ], seed = 1, stop_at = c(1 / 10, 10), from = 40))
  more <- muffled(update(race, rows[11:80, ]))
  expect_gte(nobs(more), 40)
  wide <- lapply(list(one = "x1", all = paste0("x", 1:25, collapse = " + ")), function(columns)
    linear_regression(stats::as.formula(paste("y ~", columns)), sigma = 1))
  columns <- with_own_seed(1, as.data.frame(matrix(rnorm(60 * 25), 60)))
  names(columns) <- paste0("x", 1:25)
  columns$y <- 5 * columns$x1 + 5 * columns$x2
  race <- muffled(evidence(wide, columns, seed = 1, stop_at = c(1 / 10, 10)))
  expect_gte(nobs(race), 26)
})

test_that("single fits that have seen the same rows in the same order become a race", {
  rows <- race_rows()
  models <- race_models()
  fits <- lapply(models, evidence, rows, seed = 3, keep = 1000)
  race <- compare_models(fits)
  expect_s3_class(race, "evidence_race")
  together <- as.data.frame(evidence(models, rows, seed = 3, keep = 1000))
  single <- as.data.frame(race)
  expect_gt(length(unique(single$rows)), 3)
  last <- function(table) table$log_evidence[table$rows == 4000]
  expect_identical(last(single), last(together))
  fits$b <- evidence(models$b, rows[4000:1, ], seed = 3, keep = 1000)
  expect_false(inherits(compare_models(fits), "evidence_race"))
  expect_false(inherits(compare_models(lapply(models, evidence, rows, seed = 3)), "evidence_race"))
})

test_that("the error of a log Bayes factor along a stream is right", {
  sigma_1 <- normal(0, 1)
  models <- list(a = linear_regression(y ~ 1, sigma = 1, prior = sigma_1),
                 b = linear_regression(y ~ x, sigma = 1, prior = sigma_1))
  z <- unlist(lapply(seq_len(fast_or_slow(15, 100)), function(i) {
    set.seed(test_seed(100 + i))
    rows <- data.frame(x = rnorm(2500))
    rows$y <- 1 + 0.05 * rows$x + rnorm(2500)
    fits <- lapply(models, evidence, rows, seed = test_seed(i), keep = 1000)
    path <- bayes_factor_path(compare_models(fits), c("a", "b"))
    path <- path[round(nrow(path) * c(0.3, 0.6, 0.9)), ]
    true <- vapply(path$rows, function(n) {
      own <- vapply(models, function(model)
        evidence(model, rows[seq_len(n), ], exact())$log_evidence, 0)
      own[["a"]] - own[["b"]]
    }, 0)
    2 * (path$log_bf - true) / (path$upper - path$log_bf)
  }))
  expect_gt(mean(abs(z) < 2), 0.88)
  expect_lt(max(abs(z)), 4.5)
})

test_that("races are plotted by base graphics and by ggplot2", {
  race <- known_race()
  file <- tempfile(fileext = ".pdf")
  grDevices::pdf(file)
  on.exit({
    grDevices::dev.off()
    unlink(file)
  })
  for (type in c("bayes factor", "probability", "score", "models"))
    expect_identical(plot(race, type), race)
  expect_error(plot(race, "bars"), "`type`")
  expect_error(plot(race, reference = "q"), "names or numbers of models")
  figure <- race_figure(race, "bayes factor", c("a", "c"))
  expect_identical(figure$lines$value, bayes_factor_path(race, c("a", "c"))$log_bf)
  expect_identical(figure$crossed$rows, sort(figure$crossed$rows))
  skip_if_not_installed("ggplot2")
  for (type in c("bayes factor", "probability", "score"))
    print(ggplot2::autoplot(race, type))
})

test_that("study_design() simulates how often and after how many rows models are decided", {
  groups <- function(n) data.frame(g = rep(0:1, length.out = n))
  models <- list(effect = linear_regression(y ~ g), none = linear_regression(y ~ 1))
  design <- study_design(models, 40, data = groups, nsim = fast_or_slow(3, 40), seed = 1,
                         truth = list(effect = c(`(Intercept)` = 0, g = 3, sigma = 1)))
  expect_identical(design$right + design$wrong + design$undecided, 1)
  expect_gt(design$right, 0.9)
  expect_gte(design$mean_rows, 20)
  expect_lt(design$mean_rows, 22)
  expect_output(print(design), "1/10 and 10")
  expect_error(study_design(models, 40), "Exactly one of|must hold the covariates")
  expect_error(study_design(models, 40, data = groups, truth = list(other = 1)), "named by models")
  all_at_once <- custom_model("m", function(theta, data) dnorm(data, theta, log = TRUE),
                              function(theta) dnorm(theta, log = TRUE), function(n) rnorm(n),
                              simulate = function(theta, data) rnorm(length(data), theta))
  expect_error(study_design(list(all_at_once, gaussian_mean()), 40), "row by row, not a custom")
  expect_error(evidence(list(all_at_once, gaussian_mean()), 1:5, stop_at = c(0.1, 10)),
               "leave out `keep` and `stop_at`")
  own <- density(~ dnorm(y, mu, 1, log = TRUE), mu = ~ 1, prior = normal(0, 3))
  zero <- linear_regression(y ~ 1, sigma = 1, prior_sd = 0.05)
  design <- study_design(list(own = own, zero = zero), 30, nsim = 2, seed = 1,
                         data = function(n) data.frame(y = numeric(n)),
                         truth = list(own = c(`mu_(Intercept)` = 3)))
  expect_identical(design$right, 1)
  expect_error(study_design(models$effect, 40), "list of at least two models")
  expect_error(study_design(models, 40, data = function(n) groups(3)), "as many rows")
})

test_that("a study of models in closed form stops where their evidences pass a threshold", {
  groups <- function(n) data.frame(g = rep(0:1, length.out = n))
  models <- lapply(list(effect = linear_regression(y ~ g), none = linear_regression(y ~ 1)),
                   at_unit_one)
  truth <- list(effect = c(`(Intercept)` = 0, g = 1, sigma = 1))
  study <- function(...) attr(study_design(models, 60, data = groups, nsim = 4, seed = 5,
                                           from = 1, truth = truth, ...), "streams")
  exactly <- study()
  for (i in seq_len(nrow(exactly))) {
    rows <- simulated_stream(models$effect, 60, groups, truth$effect, next_seed(seed_words(5), i))
    ahead <- vapply(opening_moments(60), function(n)
      model_functions(models$effect, rows[1:n, ])$exact() -
        model_functions(models$none, rows[1:n, ])$exact(), 0)
    first <- which(abs(ahead) >= log(10))[1]
    expect_identical(exactly$rows[i], if (is.na(first)) 60 else opening_moments(60)[first])
    best <- if (is.na(first)) NA_character_ else if (ahead[first] > 0) "effect" else "none"
    expect_identical(exactly$decided[i], best)
  }
  # a method that is given is used: its thresholds are wider by its error
  sampled <- study(method = sgais())
  expect_true(all(sampled$rows >= exactly$rows))
  expect_lt(max(sampled$rows / exactly$rows), 1.5)
  # beyond the opening rows
  small <- study_design(models, 2500, data = groups, nsim = 1, seed = 5,
                        truth = list(none = c(`(Intercept)` = 0, sigma = 1)),
                        stop_at = c(1 / 1e6, 1e6))
  expect_identical(small$undecided, 1)
  expect_identical(attr(small, "streams")$rows, 2500)
})

test_that("a study of models with groups stops after whole groups", {
  data <- function(n) data.frame(g = paste0("a", (seq_len(n) - 1) %/% 4),
                                 x = rep(0:3, length.out = n))
  models <- list(slope = regression(y ~ x + (1 | g)), level = regression(y ~ 1 + (1 | g)))
  truth <- list(slope = c(`(Intercept)` = 0, x = 1, sigma = 1, `sd_g_(Intercept)` = 1))
  design <- study_design(models, 60, data = data, truth = truth, nsim = fast_or_slow(2, 10),
                         from = 1, seed = test_seed(1))
  expect_identical(design$right, 1)
  streams <- attr(design, "streams")
  expect_true(all(streams$rows %% 4 == 0))
  # the Bayes factor of the rows so far is that of evidence()
  rows <- simulated_stream(models$slope, 60, data, truth$slope,
                           next_seed(seed_words(test_seed(1)), 1))
  bayes_factor_at <- function(n) {
    fits <- lapply(models, function(model) evidence(model, rows[seq_len(n), ], seed = 1))
    c(logml(fits$slope) - logml(fits$level), sqrt(fits$slope$se^2 + fits$level$se^2))
  }
  stopped <- bayes_factor_at(streams$rows[1])
  expect_gt(stopped[1], log(10) - 2 * stopped[2])
  before <- bayes_factor_at(streams$rows[1] - 4)
  expect_lt(before[1], log(10) + 6 * before[2])
  # a model of crossed factors ends its groups only where all of them end
  crossed <- list(a = regression(y ~ x + (1 | g) + (1 | h)), b = regression(y ~ x + (1 | g)))
  rows <- data.frame(g = rep(1:4, each = 2), h = rep(1:2, c(4, 4)))
  expect_identical(ends_of_groups(crossed, rows), c(4L, 8L))
  expect_identical(ends_of_groups(crossed["b"], rows), c(2L, 4L, 6L, 8L))
  mixed <- function(n) data.frame(g = rep(1:10, length.out = n), x = seq_len(n))
  expect_error(study_design(models, 40, data = mixed, nsim = 1), "one after another, so that")
  expect_error(study_design(models, 40, data = data(8), nsim = 1), "`data` must be a function")
  scaled <- list(regression(y ~ x + (1 | g)), regression(y ~ x, scale = TRUE))
  expect_error(study_design(scaled, 40, data = data, nsim = 1), "`scale` must be FALSE")
  lagged <- list(regression(y ~ x + (1 | g)), regression(y ~ lags(x)))
  expect_error(study_design(lagged, 40, data = data, nsim = 1), "no lags")
  factors <- linear_regression(y ~ g, prior = jzs(fixed = 1))
  expect_error(study_design(list(factors, regression(y ~ 1)), 40, data = data, nsim = 1,
                            truth = list()), "needs all rows at once")
})

test_that("models of R functions, with latent variables or lags have states at moments", {
  set.seed(test_seed(31))
  y <- rnorm(12, 1)
  custom <- custom_model("mean", function(theta, data) dnorm(data, theta, log = TRUE),
                         function(theta) dnorm(theta, sd = 2, log = TRUE),
                         function(n) rnorm(n, sd = 2))
  race <- muffled(evidence(list(mine = custom, theirs = gaussian_mean(prior_sd = 2)), y, seed = 1))
  moments <- as.data.frame(race)
  expect_identical(unique(moments$rows), c(5, 10, 12))
  wide <- function(model) moments[moments$model == model, ]
  apart <- wide("mine")$log_evidence - wide("theirs")$log_evidence
  expect_lt(max(abs(apart) / sqrt(wide("mine")$se^2 + wide("theirs")$se^2 + 1e-6)), 4.5)
  expect_identical(wide("mine")$log_evidence[1],
                   logml(muffled(evidence(custom, y[1:5], seed = 1))))
  groups <- list(two = clustering(components = 2), three = clustering(components = 3))
  data <- matrix(rnorm(14), 7)
  latent <- as.data.frame(muffled(evidence(groups, data, seed = 1)))
  expect_identical(unique(latent$rows), c(5, 7))
  expect_identical(latent$log_evidence[latent$rows == 5 & latent$model == "two"],
                   logml(muffled(evidence(groups$two, data[1:5, ], seed = 1))))
  series <- data.frame(y = as.numeric(arima.sim(list(ar = 0.6), 40)))
  lagged <- list(one = linear_regression(y ~ lags(y, 1:2), prior_sd = 1),
                 none = linear_regression(y ~ lags(y, 2), prior_sd = 1))
  own <- as.data.frame(muffled(evidence(lagged, series, seed = 1)))
  at <- own[own$rows == 10 & own$model == "one", ]
  expect_equal(at$log_evidence, logml(evidence(lagged$one, series[1:12, , drop = FALSE], exact())),
               tolerance = 1e-2)
})

test_that("an altered race is refused in a sentence", {
  race <- known_race()
  alone <- race
  attr(alone, "fits") <- NULL
  for (verb in list(as.data.frame, crossings, plot))
    refused(verb(alone), "`x` must be a result of evidence() with all its models and columns.")
  refused(update(alone, race_rows(10)), "`object` must be a result of evidence()")
  cut <- unclass(race)
  cut$posterior <- numeric()
  class(cut) <- class(race)
  for (verb in list(print, as.data.frame, crossings, plot))
    refused(verb(cut), "columns of one length, 3")
})

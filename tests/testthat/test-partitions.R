# partitions(): against the sum over all partitions of a few rows, and its use as the default.

# All partitions of n rows as restricted growth strings, a column for each.
all_partitions <- function(n) {
  labels <- matrix(1L, 1, 1)
  for (i in seq_len(n - 1)) {
    top <- apply(labels, 2, max)
    labels <- do.call(cbind, lapply(seq_len(max(top) + 1), function(k)
      rbind(labels[, top + 1 >= k, drop = FALSE], k)))
  }
  labels
}

# The log evidence of one block, column by column, with a normal-inverse-gamma prior.
log_block <- function(rows, model) {
  n <- nrow(rows)
  before <- 1 / model$mean_scale^2
  shape <- model$shape + n / 2
  rate <- vapply(seq_len(ncol(rows)), function(j) {
    y <- rows[, j]
    model$rate + 0.5 * (sum((y - mean(y))^2) + before * n / (before + n) *
                          (mean(y) - model$location[j])^2)
  }, 0)
  sum(model$shape * log(model$rate) - lgamma(model$shape) + lgamma(shape) - shape * log(rate) +
        0.5 * log(before / (before + n)) - n / 2 * log(2 * pi))
}

# Joint densities of the rows and of the numbers of occupied components.
by_enumeration <- function(rows, model, components) {
  n <- nrow(rows)
  alpha <- model$concentration
  labels <- all_partitions(n)
  t <- apply(labels, 2, max)
  density <- apply(labels, 2, function(z) sum(vapply(split(seq_len(n), z), function(b)
    lgamma(length(b) + alpha) - lgamma(alpha) + log_block(rows[b, , drop = FALSE], model), 0)))
  ways <- lgamma(components + 1) - lgamma(pmax(components - t, 0) + 1) +
    lgamma(components * alpha) - lgamma(n + components * alpha)
  terms <- ifelse(t <= components, density + ways, -Inf)
  list(log_evidence = max(terms) + log(sum(exp(terms - max(terms)))),
       occupied = as.vector(tapply(exp(terms - max(terms)), factor(t, seq_len(components)), sum,
                                   default = 0)) / sum(exp(terms - max(terms))))
}

few <- with_own_seed(4, cbind(a = rnorm(6, c(-2, -2, 0, 0, 2, 5)),
                              b = rnorm(6, c(1, 1, 0, 0, 3, 9))))
priors <- list(
  list(location = c(0, 0), mean_scale = 2, shape = 1, rate = 1, concentration = 1),
  list(location = c(1, -1), mean_scale = 3, shape = 2, rate = 0.5, concentration = 0.4)
)
mixture_of <- function(components, prior)
  do.call(gaussian_mixture, c(list(components = components), prior))

test_that("the evidence of each number of components is the sum over all partitions", {
  z <- c()
  for (prior in priors) for (k in 1:6) {
    exact <- by_enumeration(few, prior, k)
    fit <- quiet_fit(mixture_of(k, prior), few, partitions(anchor = 1, work = 1e6),
                     seed = test_seed(k))
    expect_identical(fit$failed, NULL)
    expect_lt(fit$se, 0.05)
    z <- c(z, if (k > 1) (fit$log_evidence - exact$log_evidence) / fit$se)
    if (k == 1) expect_equal(fit$log_evidence, exact$log_evidence)
    expect_lt(max(abs(fit$partitions$occupied - exact$occupied)), 0.03)
    expect_identical(fit$source, "partitions")
  }
  expect_lt(max(abs(z)), 4.5)
  # a mean of ten squares
  expect_lt(mean(z^2), 4)
})

test_that("draws are from the posterior: predictive densities are ratios of evidences", {
  prior <- priors[[2]]
  new <- rbind(c(0, 0), c(2, 3), c(-2, 1))
  for (k in c(2, 4)) {
    fit <- quiet_fit(mixture_of(k, prior), few, partitions(anchor = 1, work = 1e6, draws = 4000),
                     seed = test_seed(20))
    own <- by_enumeration(few, prior, k)$log_evidence
    exact <- apply(new, 1, function(y)
      by_enumeration(rbind(few, y), prior, k)$log_evidence - own)
    expect_lt(max(abs(predict(fit, as.data.frame(`colnames<-`(new, c("a", "b"))),
                              type = "density") - exact)), 0.15)
  }
})

galaxies <- c(9172, 9350, 9483, 9558, 9775, 10227, 10406, 16084, 16170, 18419, 18552, 18600, 18927,
              19052, 19070, 19330, 19343, 19349, 19440, 19473, 19529, 19541, 19547, 19663, 19846,
              19856, 19863, 19914, 19918, 19973, 19989, 20166, 20175, 20179, 20196, 20215, 20221,
              20415, 20629, 20795, 20821, 20846, 20875, 20986, 21137, 21492, 21701, 21814, 21921,
              21960, 22185, 22209, 22242, 22249, 22314, 22374, 22495, 22746, 22747, 22888, 22914,
              23206, 23241, 23263, 23484, 23538, 23542, 23666, 23706, 23711, 24129, 24285, 24289,
              24366, 24717, 24990, 25633, 26690, 26995, 32065, 32789, 34279) / 1000

test_that("the published evidences of the galaxies are found for all numbers of components", {
  prior <- list(location = mean(galaxies), mean_scale = sqrt(diff(range(galaxies)) / 2.6),
                shape = 1.28, rate = 0.36 * var(galaxies))
  published <- c(`3` = -227.06, `5` = -226.26, `6` = -226.31, `8` = -226.8)
  components <- fast_or_slow(c(3, 8), c(3, 5, 6, 8))
  fits <- evidence(mixture_of(components, prior), galaxies, seed = test_seed(), threads = 2)
  table <- as.data.frame(fits)
  errors <- table$log_evidence - published[as.character(components)]
  expect_lt(max(abs(errors) / (table$se + 0.02)), 4.5)
  expect_true(all(table$reliable & table$se < 0.15))
  # three components are as a rule not from partitions, and 1 seed in 13 has uneven weights
  expect_identical(unique(table$doubt[table$components > 3]), "")
})

scaled <- as.data.frame(scale(faithful))

test_that("mixtures with superfluous components use partitions by default, without a warning", {
  # from long runs of an independent program, anchored at three components
  expected <- c(`4` = -453.041, `6` = -459.079)
  for (k in fast_or_slow(4, c(4, 6))) {
    fit <- expect_silent(evidence(gaussian_mixture(components = k), scaled, seed = test_seed(k)))
    expect_identical(fit$source, "partitions")
    expect_length(fit$warnings, 0)
    expect_lt(fit$se, 0.2)
    expect_lt(abs(fit$log_evidence - expected[[as.character(k)]]) / sqrt(fit$se^2 + 0.02^2), 4.5)
    expect_match(said(fit), "from partitions of the rows, relative to")
  }
  # an estimate is never said to be relative to itself
  fits <- attr(evidence(gaussian_mixture(components = 1:2), scaled[1:60, ], partitions(),
                        seed = test_seed()), "fits")
  expect_match(said(fits[["1 component"]]), "in closed form, draws from partitions")
  for (k in 1:2)
    expect_no_match(said(fits[[grep(k, names(fits))]]), sprintf("relative to %d component", k))
  words <- function(used, own, ladder = 1:4)
    partition_words(list(model = list(components = own), partitions = list(
      anchors = data.frame(components = c(1, used), share = c(0, used > 0)),
      ladder = data.frame(components = ladder, log_evidence = -ladder, se = 0.1))))
  expect_match(words(3, 4), "^from partitions of the rows, relative to 3 components \\(-3.00.*\\)$")
  expect_identical(words(c(3, 3), 4), words(3, 4))
  expect_identical(words(c(1, 2, 3), 4),
                   "from partitions of the rows, relative to 1, 2 and 3 components")
  expect_identical(words(2:4, 4), paste("from partitions of the rows, relative to 2 and 3",
                                        "components, and by importance sampling"))
  # where importance sampling is even, and where another method is asked for, nothing changes
  two <- evidence(gaussian_mixture(components = 2), scaled, seed = test_seed())
  expect_identical(two$source, "audit")
  expect_null(two$partitions)
  expect_null(quiet_fit(gaussian_mixture(components = 3), scaled[1:40, ],
                        sgais(early = list(particles = 30)), seed = test_seed())$partitions)
})

# Results of the engine for mixtures of up to `components`, relative to an anchor.
run_chains <- function(model, rows, components, anchor = 1, se = 0, seed = 1, ...) {
  model$components <- components
  encoded <- encode(model, rows)
  method <- with_anchor(partitions(work = fast_or_slow(2e6, 2e7)),
                        list(components = anchor, log_evidence = 0, se = se), components)
  method <- with_settings(method, ...)
  conduct(new_problem(model, encoded, method, c(test_seed(), seed)), encoded$rows)
}

test_that("importance sampling given partitions is right for each number of components", {
  z <- c()
  for (prior in priors) {
    exact <- vapply(2:6, function(k) by_enumeration(few, prior, k)$log_evidence, 0)
    known <- run_chains(mixture_of(1, prior), few, 6, target = 0)$known[1:2, -1]
    expect_lt(max(known[2, ]), 0.1)
    z <- c(z, (known[1, ] - exact) / known[2, ])
  }
  expect_lt(max(abs(z)), 4.5)
  expect_lt(mean(z^2), 4)
})

test_that("the mean over anchors has the smallest variance", {
  # steps of a ladder from 1 to 4 that are independent, with these variances
  step <- c(0.03, 0.01, 0.02)^2
  variances <- outer(1:4, 1:4, Vectorize(function(a, b) sum(step[seq_len(3) >= min(a, b) &
                                                                   seq_len(3) < max(a, b)])))
  at <- c(1, 2, 2)
  between <- covariances_between(variances, at, 4)
  expect_equal(between, sum(step[2:3]) + diag(c(step[1], 0, 0)))
  se <- c(0.02, 0.05, 0.04)
  best <- mean_of_anchors(diag(se^2) + between, 1)
  # the errors of the anchors at 2 are added after the mean of all three is known there
  own <- 1 / c(se[1]^2 + step[1], se[2]^2, se[3]^2)
  expect_equal(best$share, own / sum(own))
  expect_equal(best$se, sqrt(1 / sum(own) + sum(step[2:3])))
  # an anchor that is only further away than another one on the same way adds nothing
  expect_equal(mean_of_anchors(matrix(c(1, 0.2, 0.2, 0.05), 2), 2)$share, c(0, 1))
  # closed forms, and chains that have not reached an anchor
  expect_equal(mean_of_anchors(diag(c(0, 0.01)), 1), list(share = c(1, 0), se = 0))
  lost <- matrix(c(0.01, NaN, NaN, Inf), 2)
  expect_equal(mean_of_anchors(lost, 1)$share, c(1, 0))
  expect_identical(mean_of_anchors(matrix(Inf, 2, 2), 1)$se, Inf)
  # what all have missed is not averaged out
  common <- errors_of_anchors(data.frame(se = c(0.05, 0.05, 0.1), unseen = c(0.04, 0.04, NA)))
  expect_equal(mean_of_anchors(common[1:2, 1:2], 1)$se, sqrt(0.03^2 / 2 + 0.04^2))
  expect_equal(common[3, ], c(0, 0, 0.01))
})

test_that("partitions that no chain has visited are part of the standard error", {
  # three clusters, two components: without proposals to split, chains stay in one division of three
  y <- matrix(c(qnorm(ppoints(12), -9), qnorm(ppoints(12)), qnorm(ppoints(12), 8.5)))
  model <- gaussian_mixture(components = 2, location = 0, rate = 1)
  known <- function(splits, seeds)
    vapply(seeds, function(s) run_chains(model, y, 2, seed = s, splits = splits, chains = 8,
                                         work = 5e5, target = 0)$known[c(1, 2, 4), 2], c(0, 0, 0))
  mixed <- known(10, 1:4)
  expect_lt(diff(range(mixed[1, ])), 0.05)
  stuck <- known(0, 11:40)
  # one chain alone was in a division with a part of the posterior
  alone <- stuck[, is.finite(stuck[2, ]) & stuck[2, ] > 5 * max(mixed[2, ])]
  expect_gt(ncol(alone), 0)
  expect_lt(max(abs(alone[1, ] - mean(mixed[1, ])) / alone[2, ]), 4)
  expect_gt(min(alone[3, ]), max(mixed[3, ]))
  # chains that are all in one division of two blocks never had a single block
  fit <- quiet_fit(model, y, with_settings(partitions(anchor = 1, work = 5e5), splits = 0),
                   seed = test_seed())
  expect_match(fit$failed, "chains", all = FALSE)
})

test_that("clusters whose densities in each other's blocks underflow have the right weight", {
  # two tight clusters, and a third component that has none
  y <- matrix(c(qnorm(ppoints(100), -9, 0.01), qnorm(ppoints(100), 9, 0.01)))
  model <- gaussian_mixture(components = 1, location = 0, rate = 1e-4)
  out <- run_chains(model, y, 3, anchor = 2, target = 0)
  expect_true(all(is.finite(out$known[1:2, ])))
  rung <- array(out$rungs, c(3, 2, 2))[, 1, 2] # of three components, relative to two
  expect_lt(abs(diff(out$known[1, ]) - rung[1]) / sqrt(sum(out$known[2, ]^2) + rung[2]^2), 4.5)
})

test_that("a default with uneven weights is replaced by partitions(), once", {
  y <- as.numeric(scale(galaxies))
  model <- gaussian_mixture(components = 3)
  encoded <- encode(model, y)
  other <- function(model, method, encoded) method_if_uneven(model, method, encoded, c(1, 1))
  chosen <- other(model, sgais(), encoded)
  expect_equal(chosen$name, "partitions")
  expect_null(other(model, chosen$asked, encoded))
  expect_null(other(model, sgais(particles = 50), encoded))
  expect_null(other(gaussian_mixture(components = 1), sgais(), encoded))
  # in one of twenty calls importance sampling seems to suit and does not
  for (seed in 22 + 4 * (0:fast_or_slow(1, 10))) {
    fit <- evidence(model, y, seed = test_seed(seed))
    expect_length(fit$warnings, 0)
    expect_lt(abs(fit$log_evidence + 106.18), 0.15)
  }
})

test_that("anchors agree with each other", {
  at <- lapply(c(1, 2), function(k) {
    method <- partitions(anchor = k, work = fast_or_slow(1.5e7, 4.5e7))
    evidence(gaussian_mixture(components = 4, location = 20), galaxies,
             with_settings(method, dual = 0), seed = test_seed(k))
  })
  apart <- at[[1]]$log_evidence - at[[2]]$log_evidence
  expect_lt(abs(apart) / sqrt(at[[1]]$se^2 + at[[2]]$se^2), 4.5)
  expect_equal(at[[1]]$partitions$anchor$components, 1)
  expect_equal(at[[2]]$partitions$ladder$components, 2:4)
  expect_equal(at[[2]]$partitions$ladder$disagree, c(0, 0, 0))
  # with further anchors
  more <- evidence(gaussian_mixture(components = 4, location = 20), galaxies, seed = test_seed(3))
  expect_gt(more$partitions$anchor$components, 2)
  expect_gt(max(more$partitions$ladder$disagree), 0)
  expect_lt(abs(more$log_evidence - at[[2]]$log_evidence) / sqrt(more$se^2 + at[[2]]$se^2), 4.5)
})

test_that("a run that is too short is marked as failed", {
  fit <- quiet_fit(gaussian_mixture(components = 6), scaled, partitions(anchor = 1, work = 1e4),
                   seed = test_seed())
  expect_gt(length(fit$failed), 0)
  expect_match(fit$failed[1], "partitions")
})

test_that("threads, and stopping and resuming, change no bit", {
  model <- gaussian_mixture(components = 3)
  method <- partitions(anchor = 1, work = 1e5)
  fit <- function(...) essence(quiet_fit(model, scaled[1:80, ], method, seed = test_seed(), ...))
  whole <- fit()
  expect_identical(fit(threads = 2), whole)
  stopped <- quiet_fit(model, scaled[1:80, ], method, seed = test_seed(), time_limit = 1e-9)
  expect_s3_class(stopped, "incomplete_evidence")
  expect_identical(essence(muffled(resume(stopped))), whole)
})

test_that("rows can be added to a fit that partitions() has made by default", {
  fit <- evidence(gaussian_mixture(components = 4), scaled[1:80, ], seed = test_seed())
  expect_identical(fit$source, "partitions")
  skip_unless_slow()
  more <- muffled(update(fit, scaled[81:100, ]))
  expect_equal(more$n, 100)
  other <- evidence(gaussian_mixture(components = 4), scaled[1:100, ], seed = test_seed(2))
  expect_lt(abs(more$log_evidence - other$log_evidence), 5 * sqrt(more$se^2 + other$se^2))
})

test_that("several numbers of components give a comparison", {
  several <- evidence(gaussian_mixture(~ eruptions + waiting, components = c(4, 1:3)),
                      scaled[1:100, ], seed = test_seed())
  expect_s3_class(several, c("component_comparison", "model_comparison"))
  table <- as.data.frame(several)
  expect_equal(table$components, 1:4)
  expect_equal(sum(table$posterior), 1)
  fits <- attr(several, "fits")
  expect_setequal(names(fits), c("1 component", paste(2:4, "components")))
  single <- evidence(gaussian_mixture(~ eruptions + waiting, components = 2), scaled[1:100, ],
                     seed = test_seed())
  same <- c("log_evidence", "se", "draws", "source", "warnings", "args")
  expect_identical(fits[["2 components"]][same], single[same])
  four <- fits[["4 components"]]
  expect_identical(four$source, "partitions")
  expect_identical(four$call$model$components, 4)
  expect_equal(dim(four$parameters), c(1000, 19))
  occupied <- attr(several, "occupied")
  expect_equal(unname(rowSums(occupied)), rep(1, 4))
  expect_gt(occupied["2", "2"], 0.99)
  expect_match(said(several), "Number of clusters that have rows")
  file <- tempfile(fileext = ".pdf")
  grDevices::pdf(file)
  on.exit(unlink(file))
  expect_identical(plot(several), several)
  grDevices::dev.off()
  expect_length(predict(several, scaled[1:3, ]), 3)
})

test_that("partitions() refuses models and settings that it cannot use", {
  two <- gaussian_mixture(components = 2)
  refused(partitions(chains = 5), "`chains` must be an even number, not 5")
  refused(partitions(anchor = 0), "`anchor` must be a whole number between 1 and 64, not 0")
  refused(partitions(draws = 1), "`draws` must be a whole number between 2 and")
  refused(evidence(two, scaled, partitions(anchor = 3)),
          "`anchor` must be at most the number of components (2), not 3")
  refused(evidence(linear_regression(eruptions ~ waiting, prior_sd = 1), faithful, partitions()),
          "partitions() needs a mixture")
  refused(evidence(clustering(components = 2), scaled, partitions()), "partitions() needs")
  refused(evidence(two, scaled, partitions(), keep = 1000), "needs all rows at once")
  refused(gaussian_mixture(components = c(2, 2)), "`components` must be a whole number")
  several <- gaussian_mixture(components = 1:3)
  expect_match(said(several), "1 to 3 components")
  refused(evidence(several, scaled, prior = 1:3), "are for several models")
  refused(model_functions(several, scaled), "`components` must be one number here")
})

test_that("several numbers of components have replicates, limits, files and sources, as a race", {
  several <- gaussian_mixture(components = 1:2)
  fit <- function(..., data = scaled[1:80, ]) suppressMessages(quiet_fit(
    several, data, laplace(importance = 200), seed = test_seed(), ...))
  alone <- function(k, ...) quiet_fit(gaussian_mixture(components = k), scaled[1:80, ],
                                      laplace(importance = 200), seed = test_seed(), ...)
  file <- tempfile()
  on.exit(unlink(file))
  whole <- fit(replicates = 2, checkpoint = file)
  expect_s3_class(whole, "component_comparison")
  expect_setequal(whole$model, c("1 component", "2 components"))
  for (k in 1:2) expect_identical(whole$log_evidence[whole$components == k],
                                  alone(k, replicates = 2)$log_evidence)
  same <- function(found) for (part in c("model", "log_evidence", "se", "components"))
    expect_identical(found[[part]], whole[[part]], info = part)
  same(suppressMessages(muffled(resume(file))))
  part <- fit(replicates = 2, time_limit = 1e-9)
  for (k in 1:100) {
    if (inherits(part, "component_comparison")) break
    part <- suppressMessages(muffled(resume(part, time_limit = 1e-9)))
  }
  same(part)
  near <- fit(target_se = 0.5)
  expect_true(all(near$se <= 0.5))
  told <- 0
  fit(on_chunk = function(report) told <<- told + 1)
  expect_gt(told, 0)
  # of a source, by a method for blocks of rows
  both <- quiet_fit(several, in_blocks(as.data.frame(scaled[1:80, ]), 30), sgais(particles = 100),
                    seed = test_seed())
  expect_s3_class(both, "component_comparison")
  expect_equal(sum(attr(both, "occupied")["1", ]), 1)
  expect_output(print(both), "Number of clusters that have rows")
})

test_that("if chains over partitions do not mix, the default uses its other method", {
  # five overlapping clusters of 1,000 rows: chains do not come from five groups to two
  rows <- with_own_seed(110, {
    centre <- 0.6 * (rbind(c(-3, -2), c(2.5, 3), c(0, 0), c(3.5, -2.5), c(-2.5, 3)) +
                       rnorm(10, sd = 0.3))
    sd <- matrix(runif(10, 0.5, 1.2), 5)
    z <- sample.int(5, 1000, replace = TRUE,
                    prob = runif(5, 0.5, 1.5) * c(0.3, 0.25, 0.2, 0.15, 0.1))
    centre[z, ] + sd[z, ] * matrix(rnorm(2000), 1000)
  })
  model <- gaussian_mixture(components = 5)
  short <- partitions(anchor = 2, work = 1e5)
  expect_gt(length(quiet_fit(model, rows, short, seed = test_seed())$failed), 0)
  short$asked <- laplace(importance = 200)
  other <- quiet_fit(model, rows, short, seed = test_seed())
  expect_identical(other$method$name, "laplace")
  expect_null(other$partitions)
  # a checkpoint goes along
  file <- tempfile()
  on.exit(unlink(file))
  saved <- quiet_fit(model, rows, short, seed = test_seed(), checkpoint = file, every = 0)
  same <- c("log_evidence", "se", "draws", "source")
  expect_identical(saved[same], other[same])
  expect_identical(muffled(resume(file))[same], other[same])
  skip_unless_slow()
  fit <- quiet_fit(model, rows, seed = test_seed())
  expect_identical(fit$method$name, "sgais")
  # three runs of importance sampling around the modes
  expect_lt(abs(fit$log_evidence + 3769.4) / sqrt(fit$se^2 + 0.3^2), 4.5)
})

test_that("draws beyond the range of numbers are kept, with a warning", {
  d <- data.frame(x = c(5e-324, 0.1, 0.1, 0.5, 2147483648, 1, 1e15, 1e300), y = (1:8) / 10)
  fit <- quiet_fit(gaussian_mixture(~ x + y, components = 1), d,
                   partitions(chains = 4, work = 1000, draws = 10), seed = test_seed())
  expect_equal(nrow(fit$draws), 10)
  expect_length(fit$log_weights, 10)
})

test_that("an anchor whose evidence cannot be found is refused", {
  refused(muffled(evidence(gaussian_mixture(components = 2), c(1e200, -1e200, 1, 2, 3),
                           partitions(anchor = 2, work = 1e5), seed = test_seed())),
          "`anchor` must be a number of components whose evidence")
})

test_that("refitting of a proposal ends early where it is of no use", {
  x <- matrix(as.numeric(MASS::galaxies) / 1000)
  look <- function(components, least) {
    method <- with_settings(laplace(starts = 16, importance = 4000), refit_least = least)
    muffled(evidence(gaussian_mixture(components = components, location = mean(x)), x, method,
                     seed = test_seed()))
  }
  # three clusters: refitted draws become even, so nothing changes
  expect_identical(look(3, 0.5)$log_evidence, look(3, 0)$log_evidence)
  # five components have no normal modes
  expect_lt(look(5, 0.5)$work[["likelihoods"]], 0.7 * look(5, 0)$work[["likelihoods"]])
})

test_that("chains end as soon as one of the anchors makes the standard error small", {
  run <- function(dual) run_chains(gaussian_mixture(components = 1), scaled, 4, anchor = 2,
                                   se = 0.002, work = 4e7, dual = dual)
  known <- run(6)
  expect_lt(drop(known$sweeps), 0.5 * drop(run(0)$sweeps))
  rung <- array(known$rungs, c(3, 3, 3))[, , 3] # of four components
  expect_lt(min(sqrt(rung[2, ]^2 + known$known[2, ]^2)), 0.03)
  # an anchor with an error of its own does not end them
  alone <- function(se)
    drop(run_chains(gaussian_mixture(components = 1, location = 20, rate = 1), galaxies, 3,
                    anchor = 2, se = se, dual = 0, work = 1e7, target = 0.1)$sweeps)
  expect_gt(alone(0.3), 2 * alone(0))
})

test_that("there may be more components than rows, as the prior allows", {
  rows <- matrix(c(-1, 0.3, 2))
  for (k in c(4, 6)) {
    model <- gaussian_mixture(components = k, location = 0, rate = 1)
    truth <- by_enumeration(rows, list(mean_scale = 2, shape = 1, rate = 1, location = 0,
                                       concentration = 1), k)$log_evidence
    for (method in list(smc(), nested(), smc("data"))) {
      fit <- quiet_fit(model, rows, method, seed = test_seed())
      expect_lt(abs(fit$log_evidence - truth) / fit$se, 4.5)
    }
    # of one method with exact sums over labels the error is known, too
    fit <- quiet_fit(model, rows, partitions(), seed = test_seed())
    expect_equal(fit$log_evidence, truth, tolerance = 0.02)
  }
  one <- quiet_fit(gaussian_mixture(components = 3, location = 0, rate = 1), matrix(1.5), smc(),
                   seed = test_seed())
  expect_lt(abs(one$log_evidence - log_block(matrix(1.5), list(
    mean_scale = 2, shape = 1, rate = 1, location = 0))) / one$se, 4.5)
})

test_that("a component without rows has its part of the evidence, although it has no mode", {
  # by enumeration; with 8% of the posterior one of three components has no rows
  rows <- as.data.frame(as.matrix(expand.grid(a = 0:1, b = 0:1))[rep(1:4, each = 7), ])
  model <- gaussian_mixture(components = 3, location = 0, rate = 0.1)
  fits <- lapply(1:10, function(seed) muffled(evidence(model, rows, seed = seed)))
  error <- vapply(fits, `[[`, 0, "log_evidence") + 32.949
  se <- vapply(fits, `[[`, 0, "se")
  expect_true(all(abs(error / se) < 4), info = toString(format(error / se, digits = 2)))
  expect_lt(abs(mean(error)), 0.03)
  expect_lt(max(se), 0.1)
})

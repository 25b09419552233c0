# Streams whose law changes on the way: the walk starts again, and the audit searches for what it
# left behind.

stream <- with_own_seed(test_seed(1),
                        c(rnorm(200, rep(c(0, 6), 100)), rnorm(600, rep(c(0, 30, 36), 200))))
two <- gaussian_mixture(components = 2, location = 0, rate = 1)
quick <- function(...) sgais(particles = 30, order = "given", early = list(particles = 50), ...)
# the walk from the prior, which a look at the first rows would make unnecessary
from_prior <- function(method, ...) {
  method$settings[c("first_look", ...)] <- 0
  method
}
run <- function(method, seed = 1)
  quiet_fit(two, stream, method, seed = test_seed(seed), progress = FALSE)
truth <- evidence(two, stream, laplace(importance = 2000), seed = test_seed(1),
                  progress = FALSE)$log_evidence

test_that("a run that follows a change of law ends far too low, one that starts again does not", {
  kept <- run(quick(restart = FALSE))
  expect_lt(kept$log_evidence, truth - 100)
  # the change is noticed by nine walks in ten, and each fit knows where its walk has ended
  fits <- lapply(1:6, function(seed) run(from_prior(quick()), seed))
  off <- vapply(fits, function(fit) abs(fit$sampler$log_evidence - truth), 0)
  restarts <- vapply(fits, function(fit) max(fit$trace$restarts), 0)
  expect_gte(sum(restarts >= 1 & off < 6), 4)
  for (i in seq_along(fits)) {
    fit <- fits[[i]]
    counted <- fit$trace$restarts
    expect_lt(abs(fit$log_evidence - truth), 1)
    expect_equal(grepl("nats lower", fit$verdict$says[1]), off[i] > 100)
    expect_equal(counted[1], 0)
    expect_true(all(diff(counted) >= 0) && all(diff(fit$trace$n) > 0))
    expect_equal(utils::tail(fit$trace$n, 1), length(stream))
    # the first row after the change that the trace has is where it started again
    if (restarts[i] >= 1) expect_gt(fit$trace$n[which(counted == 1)[1]], 200)
  }
})

test_that("a run does not start again where the law of the rows does not change", {
  same <- with_own_seed(test_seed(2), matrix(rnorm(600, rep(c(0, 6, 12), 200))))
  fit <- evidence(two, same, quick(), seed = test_seed(1), progress = FALSE)
  expect_equal(max(fit$trace$restarts), 0)
  line <- data.frame(x = with_own_seed(test_seed(3), rnorm(2000)))
  line$y <- with_own_seed(test_seed(4), 1 + line$x + rnorm(2000))
  model <- linear_regression(y ~ x, sigma = 1, prior_sd = 1)
  expect_equal(max(evidence(model, line, sgais(order = "given"), seed = test_seed(),
                            progress = FALSE)$trace$restarts), 0)
})

test_that("the trace of a stream has an entry per 20,000 rows at least, of shuffled rows fewer", {
  line <- with_own_seed(test_seed(5), data.frame(x = rnorm(150000), y = rnorm(150000)))
  model <- linear_regression(y ~ x, sigma = 1, prior_sd = 1)
  largest <- function(method)
    max(diff(evidence(model, line, method, seed = test_seed(), progress = FALSE)$trace$n))
  expect_equal(largest(sgais(order = "given")), 20000)
  expect_gt(largest(sgais()), 20000)
})

test_that("the audit finds the mode that a walk has left, and there is a warning", {
  method <- from_prior(quick(), "restarts")
  fit <- run(method)
  expect_lt(fit$sampler$log_evidence, truth - 100)
  expect_lt(abs(fit$log_evidence - truth), 0.5)
  expect_identical(fit$source, "audit")
  # what the particles have missed is what their estimate lacks
  expect_lt(abs(fit$sampler$log_evidence + fit$audit$unreached - truth), 6)
  # the reported estimate has them: said beside the particles' own, and no reason to warn
  expect_match(fit$verdict$says[fit$verdict$entry == "particles"], "nats lower$")
  expect_match(printed(fit), "; [0-9]+ nats lower")
  expect_null(fit$failed)
})

# What second runs make of the results of first ones, when `walk` is who runs them.
challenged_runs <- function(first, problems, walk) {
  plan <- list(first = Map(function(problem, result) list(problem = problem, result = result),
                           problems, first))
  plan$second <- lapply(plan$first, second_job)
  open <- which(vapply(plan$second, is_open, NA))
  work <- function(jobs) {
    Map(function(job, result) list(problem = job$problem, result = result), jobs,
        walk(lapply(jobs, `[[`, "problem")))
  }
  if (length(open)) plan$second[open] <- attempted(plan$second[open], work)
  plan_results(plan)
}

challenged <- function(first, problem, walk)
  challenged_runs(list(first), list(problem), function(problems) lapply(problems, walk))[[1]]

test_that("if importance sampling around better modes fails, rows are run again in random order", {
  encoded <- encode(two, stream)
  method <- from_prior(quick(), "restarts")
  problem <- new_problem(two, encoded, method, seed_words(test_seed(1)))
  walked <- 0
  walk <- function(problem) {
    walked <<- walked + 1
    conduct(problem, encoded$rows)
  }
  first <- walk(problem)
  expect_identical(challenged(first, problem, walk)$trace, first$trace)
  expect_equal(walked, 1)
  first$audit_pareto_k[] <- 2
  expect_gt(problem$thorough$`1.work`, problem$settings$`1.work`)
  again <- challenged(first, problem, walk)
  expect_equal(walked, 2)
  expect_equal(attr(again, "second_run")$walks, 2)
  expect_lt(drop(again$audit_unreached), 0.1)
  # nobody's time is forgotten
  expect_gt(attr(again, "second_run")$work[["seconds"]], drop(first$seconds))
  expect_lt(abs(drop(again$log_evidence[1]) - truth), 6)
  trace <- again$trace
  expect_equal(utils::tail(trace$restarts, 1), 1)
  expect_equal(utils::head(trace$log_evidence, -1), utils::head(first$trace$log_evidence, -1))
  # a second walk that fails leaves the first
  kept <- challenged(first, problem, function(problem) fail("No walk."))
  expect_equal(kept$trace, first$trace)
  expect_equal(attr(kept, "second_run")$walks, 1)
  # of several only those that fail
  second <- again
  for (several in list(1:2, 2:1)) {
    problems <- list(problem, replace(problem, "replicate", list(7)))[several]
    some <- function(problems)
      lapply(problems, function(p)
        if (p$replicate == STREAMS[["second run"]] + 7) fail("No walk.") else second)
    walks <- vapply(challenged_runs(list(first, first), problems, some),
                    function(out) attr(out, "second_run")$walks, 0)
    expect_equal(walks, c(2, 1)[several])
  }
})

test_that("a run does not change the order of the user's rows", {
  after <- function(method, feed, seed = 1) {
    encoded <- encode(two, stream)
    problem <- new_problem(two, encoded, method, seed_words(test_seed(seed)))
    before <- encoded$rows + 0
    out <- conduct_together(list(problem), encoded$rows, feed = feed)[[1]]
    list(before = before, rows = encoded$rows, restarts = max(out$trace$restarts))
  }
  given <- lapply(1:3, function(seed) after(from_prior(quick()), "last", seed))
  expect_gte(max(vapply(given, `[[`, 0, "restarts")), 1)
  for (one in given) expect_identical(one$rows, one$before)
  for (method in list(sgais(preset = "paper"),
                      replace(quick(), "settings",
                              list(utils::modifyList(quick()$settings, list(shuffle = 1)))))) {
    free <- after(method, "own")
    expect_false(identical(free$rows, free$before))
    in_order <- function(rows) rows[, do.call(order, as.data.frame(t(rows))), drop = FALSE]
    expect_identical(in_order(free$rows), in_order(free$before))
  }
})

test_that("without an audit the run is repeated with more effort, unless effort was given", {
  crowd <- with_own_seed(test_seed(6), matrix(rnorm(400, rep(c(-4, 4), 200)), ncol = 1))
  model <- gaussian_mixture(components = 4, location = 0, rate = 1)
  walks <- function(method) {
    encoded <- encode(model, crowd)
    problem <- new_problem(model, encoded, method, seed_words(test_seed(1)))
    attr(challenged(conduct(problem, encoded$rows), problem, function(p) conduct(p, encoded$rows)),
         "second_run")
  }
  twice <- walks(sgais(particles = 20))
  expect_equal(twice$walks, 2)
  asked <- walks(sgais(particles = 20, early = list(work = 20, particles = 50)))
  expect_equal(asked$walks, 1)
  expect_gt(twice$work[["gradients"]], 3 * asked$work[["gradients"]])
})

test_that("the search finds modes that are hard to find, and none where there are none", {
  # five bumps, two components: which pairs are taken together is decided early
  bumps <- with_own_seed(test_seed(5), matrix(rnorm(2000, rep(c(-9, -4, 0, 5, 9), 400)), ncol = 1))
  f <- model_functions(two, bumps)
  best <- max(vapply(test_seed(1:5), function(s)
                       evidence(two, bumps, laplace(starts = 200), seed = s)$log_evidence, 0))
  for (seed in 1:5) {
    fit <- evidence(two, bumps, sgais(), seed = test_seed(seed), progress = FALSE)
    expect_lt(abs(fit$audit$log_evidence - best), 0.5)
    expect_gte(fit$audit$unreached, 0)
  }
  expect_equal(run(quick(restart = FALSE))$audit$unreached, 0)
})

test_that("a run in none of the best modes starts again at the modes of the search", {
  # five clusters far from where the prior expects them
  far <- with_own_seed(test_seed(7),
                       vapply(1:2, function(j) rnorm(6000, 3 * rep(1:5, 1200)), numeric(6000)))
  five <- gaussian_mixture(components = 5, location = 0, rate = 1)
  best <- evidence(five, far, laplace(importance = 1000), seed = test_seed(1),
                   progress = FALSE)$log_evidence
  for (seed in seq_len(fast_or_slow(1, 2))) {
    fit <- evidence(five, far, from_prior(sgais()), seed = test_seed(seed), progress = FALSE)
    expect_lt(abs(fit$sampler$log_evidence - best), 6)
    expect_equal(max(fit$trace$restarts), 1)
    # and not by exact densities, of which there is no noise
    expect_lt(utils::tail(fit$trace$noise, 1), 0.5)
  }
  encoded <- encode(five, far)
  problem <- new_problem(five, encoded, from_prior(sgais()), seed_words(test_seed(1)))
  whole <- conduct(problem, encoded$rows)
  for (slices in fast_or_slow(200, c(100, 200, 300))) {
    again <- resumed(problem, encoded$rows, slices, 0.001)
    expect_identical(again$draws, whole$draws)
    expect_identical(again$audit_log_evidence, whole$audit_log_evidence)
  }
  skip_unless_slow()
  alone <- evidence(five, far, sgais(restart = FALSE), seed = test_seed(1), progress = FALSE)
  expect_lt(alone$sampler$log_evidence, best - 100)
  # one that is where it should be stays there
  near <- with_own_seed(test_seed(8), rnorm(3000, rep(c(-4, 0, 4), 1000)))
  fit <- evidence(gaussian_mixture(components = 3,
                                   location = 0, rate = 1), near, sgais(), seed = test_seed(1),
                  progress = FALSE)
  expect_equal(max(fit$trace$restarts), 0)
  expect_lt(abs(fit$sampler$log_evidence - fit$audit$log_evidence), 4)
})

test_that("particles that have not followed the posterior are found, and the audit is reported", {
  line <- with_own_seed(test_seed(9), data.frame(x = rnorm(20000)))
  line$y <- with_own_seed(test_seed(10), 1 + line$x + rnorm(20000))
  model <- linear_regression(y ~ x, sigma = 1, prior_sd = 1)
  hot <- evidence(model, line, sgais(preset = "paper", rate = 1, steps = 2, audit = TRUE),
                  seed = test_seed(1), progress = FALSE)
  expect_identical(hot$source, "audit")
  expect_lt(hot$sampler$log_evidence, hot$audit$log_evidence - 10)
  expect_match(hot$verdict$says[1], "nats lower")
  expect_match(printed(hot), "nats lower")
  expect_null(evidence(model, line, sgais(), seed = test_seed(1), progress = FALSE)$warnings)
})

test_that("a run that starts again can be saved at any moment", {
  encoded <- encode(two, stream)
  problem <- new_problem(two, encoded, quick(audit = FALSE), seed_words(test_seed(1)))
  whole <- conduct(problem, encoded$rows)
  for (slices in c(30, 90, 120)) {
    again <- resumed(problem, encoded$rows, slices, 0.001)
    expect_identical(again$draws, whole$draws)
    expect_identical(again$restarts, whole$restarts)
  }
})

# Users' own models that are not close to normal (helper-shapes.R): the default is right, and does
# not doubt itself where it is right. bench/shapes.R counts more of them.

test_that("the default is not doubted where it is right on rings, edges, steps and spikes", {
  indices <- if (fast_or_slow(FALSE, TRUE)) 1:200 else c(1:2, 4:7, 9:12, 18, 30)
  rows <- judged_shapes(do.call(rbind, lapply(indices, function(index)
    shape_fit(shape_problem(index), 100 * index + 1))))
  expect_true(all(rows$right))
  expect_false(any(rows$silent))
  expect_lt(sum(rows$doubted), 0.1 * nrow(rows))
  expect_lt(sum(rows$right & rows$failed), 0.02 * nrow(rows))
  expect_lt(mean(rows$z^2), 1 + 4 * sqrt(2 / nrow(rows)))
})

test_that("the references of these problems are means over the prior", {
  for (index in 1:16) {
    problem <- shape_problem(index)
    set.seed(index)
    at <- problem$model$draw_prior(1e5)
    value <- if (is.null(problem$data)) problem$model$log_likelihood(at)
    else problem$model$log_likelihood(at, problem$data)
    ratio <- exp(value - problem$truth)
    expect_lt(abs(mean(ratio) - 1), 5 * sd(ratio) / sqrt(1e5))
  }
})

test_that("climbs on a ring end on one ridge, not in as many modes as there are climbs", {
  fit <- evidence(shape_problem(1)$model, seed = 101, progress = FALSE)
  expect_false("missing" %in% names(fit$warnings))
  expect_lt(fit$audit$missing, 0.1)
  expect_lt(fit$se, 0.1)
})

test_that("a posterior whose top is at a hard edge has an estimate from importance sampling", {
  problem <- shape_problem(10)
  fit <- evidence(problem$model, problem$data, seed = 1001, progress = FALSE)
  expect_identical(fit$source, "audit")
  expect_identical(fit$audit$modes, 0)
  expect_false("Laplace approximation" %in% fit$verdict$entry)
  expect_lt(abs(fit$log_evidence - problem$truth), 4 * fit$se)
})

test_that("a right gradient is not called wrong for draws without weight", {
  model <- shape_problem(1)$model
  points <- rbind(c(rnorm(50, 2), 1e6 * rnorm(50)), c(rnorm(50, 2), 1e6 * rnorm(50)))
  weights <- normalise(rep(c(0, -1e6), each = 50))
  picked <- as_likely(weights)
  expect_true(all(picked <= 50))
  expect_identical(as_likely(rep(-log(10), 10)), as.numeric(1:10))
  expect_null(gradient_warning(model, encode(model, NULL), sgais(), points, weights))
})

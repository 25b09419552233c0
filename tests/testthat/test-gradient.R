# Gradient rules: full, from a mini-batch, and from a mini-batch with control variates, all of the
# same mean. Gradients alone are of single precision.

estimate <- function(model, rows, theta, rule, seen, lambda, ..., seed = 1)
  run_kernel(sgld(), model, rows, theta, seed, gradient = rule, seen = seen, lambda = lambda,
             answer = "gradient", ...)

full_gradient <- function(model, rows, theta, seen, lambda) {
  part <- function(r) ask(model, "log_lik_grad", theta, rows[, r, drop = FALSE])$gradient
  chunk <- setdiff(seq_len(ncol(rows)), seq_len(seen))
  ask(model, "log_prior_grad", theta) + part(seq_len(seen)) + lambda * part(chunk)
}

noisy_cases <- function() {
  softmax <- softmax_model(2, 3)
  mixture <- mixture_model(2, 1)
  lapply(list(list(softmax, c(1, 0, -1, 0.5, 0, -0.5), 61),
              list(mixture, c(0.3, 1, -1, 0, 0.4), 62)), function(case) {
    model <- case[[1]]
    rows <- some_rows(model, 60, case[[2]], case[[3]])
    away <- seq_along(case[[2]]) / 5
    list(model = model, rows = rows, truth = case[[2]],
         theta = cbind(case[[2]] + away, case[[2]] - sqrt(away / 5)), tolerance = 1e-6)
  })
}

# Of double precision in all.
exact_case <- function() {
  model <- linear_model(3, 0.7, 0, 2)
  list(model = model, rows = some_rows(model, 60, c(1, 2, 3), 63),
       theta = prior_draws(model, 2, 64), tolerance = 1e-12)
}

test_that("the full rule is the full gradient, at any split of the rows", {
  for (case in c(noisy_cases(), list(exact_case()))) for (seen in c(0, 40, 60))
    for (lambda in c(0, 0.3, 1))
    expect_equal(estimate(case$model, case$rows, case$theta, "full", seen, lambda),
                 full_gradient(case$model, case$rows, case$theta, seen, lambda),
                 tolerance = case$tolerance)
})

test_that("mini-batch gradients are unbiased under both rules, by rows and by stretches of rows", {
  for (case in noisy_cases()) for (split in list(c(40, 0.6), c(60, 0), c(20, 1))) {
    expected <- full_gradient(case$model, case$rows, case$theta, split[1], split[2])
    for (rule in c("batch", "control")) for (mixed in c(0, 1)) for (own in c(0, 1)) {
      found <- t(vapply(seq_len(fast_or_slow(500, 1500)), function(s) {
        as.vector(estimate(case$model, case$rows, case$theta, rule, split[1], split[2], batch = 7,
                           mixed = mixed, anchor = case$truth, own_batches = own, seed = s))
      }, as.vector(expected)))
      expect_z(z_score(found, as.vector(expected)))
    }
  }
})

test_that("mini-batches of adjacent rows wrap around, so that each row is in equally many", {
  model <- linear_model(4, 1, 0, 1)
  rows <- some_rows(model, 20, c(1, -1, 0, 0.5), 66)
  theta <- cbind(c(0.8, -0.9, 0.1, 0.4))
  found <- vapply(1:600, function(s) drop(estimate(model, rows, theta, "batch", 20, 0, batch = 7,
                                                   mixed = 1, seed = s)), numeric(4))
  stretches <- unique(round(t(found), 9))
  expect_equal(nrow(stretches), 20)
  expect_equal(colMeans(stretches), drop(full_gradient(model, rows, theta, 20, 0)),
               tolerance = 1e-8)
})

test_that("rows are shuffled after they were used, but not the user's own data", {
  place <- seq_len(500) / 1e3
  end <- 0
  batches <- list()
  note <- function(theta, data) {
    if (length(data) == 100) end <<- max(data)
    else if (length(data) < 100) batches[[length(batches) + 1]] <<- list(end = end, rows = data)
    sum(data - theta)
  }
  model <- custom_model("mean", function(theta, data) dnorm(data, theta, log = TRUE),
                        function(theta) dnorm(theta, log = TRUE),
                        stats::rnorm, note, function(theta) -theta)
  latest <- vapply(seq_len(fast_or_slow(25, 60)), function(seed) {
    batches <<- list()
    quiet_fit(model, place, sgais(preset = "paper", particles = 2, ess = 1, chunk = 100,
                                  batch = 20),
              seed = test_seed(seed), progress = FALSE)
    used <- lapply(batches, `[[`, "rows")
    expect_true(all(lengths(used) == 20))
    expect_false(any(vapply(used, anyDuplicated, 0L) > 0))
    expect_true(all(mapply(function(rows, end) max(rows) <= end - 0.1 + 1e-9, used,
                           lapply(batches, `[[`, "end"))))
    last <- used[vapply(batches, `[[`, 0, "end") == 0.5]
    c(mean(unlist(last) > 0.3), mean(unlist(last) < 0.1),
      mean(vapply(last, function(rows) diff(range(rows)), 0)))
  }, numeric(3))
  expect_z(z_score(t(latest), c(0.25, 0.25, 0.401 * 19 / 21)))
  expect_identical(place, seq_len(500) / 1e3)
})

test_that("a mini-batch is shared by all particles, or each particle has its own, as asked", {
  case <- noisy_cases()[[1]]
  twice <- estimate(case$model, case$rows, case$theta[, c(1, 1)], "batch", 40, 0.5, batch = 5)
  expect_identical(twice[, 1], twice[, 2])
  # noise of the same size, and none in common
  for (rule in c("batch", "control")) {
    draw <- function(own) vapply(seq_len(fast_or_slow(400, 2000)), function(s)
      estimate(case$model, case$rows, case$theta[, c(1, 1)], rule, 40, 0.5, batch = 5,
               anchor = case$truth, own_batches = own, seed = s)[1, ], numeric(2))
    own <- draw(1)
    n <- ncol(own)
    expect_lt(abs(cor(own[1, ], own[2, ])), 4.5 / sqrt(n))
    expect_lt(abs(log(var(own[1, ]) / var(draw(0)[1, ]))), 4.5 * 2 / sqrt(n / 3))
  }
})

test_that("several moves in one call equal moves one by one", {
  for (case in noisy_cases()) for (mixed in c(0, 1)) {
    moved <- function(...)
      run_kernel(baoab(step_size = 0.1), case$model, case$rows, case$theta[, rep(1:2, 20)], 1,
                 moves = 11, gradient = "control", seen = 40,
                 lambda = 0.5, batch = 10, anchor = case$truth, mixed = mixed, noise = 0.1,
                 precision = diag(50, case$model$dim), ...)
    expect_equal(moved(), moved(at_once = 1), tolerance = 1e-10)
    expect_gt(max(abs(moved() - case$theta[, rep(1:2, 20)])), 0.05)
  }
})

test_that("control variates are far less noisy near the anchor, and exact at it", {
  for (case in noisy_cases()) {
    model <- case$model
    spread <- function(rule, distance) {
      theta <- matrix(case$truth + distance * cos(seq_len(model$dim)), model$dim)
      found <- vapply(1:300, function(s) {
        drop(estimate(model, case$rows, theta, rule, 40, 0.6, batch = 10, anchor = case$truth,
                      seed = s))
      }, numeric(model$dim))
      sum(apply(found, 1, stats::var))
    }
    plain <- spread("batch", 0.02)
    expect_lt(spread("control", 0.02), 1e-3 * plain)
    expect_lt(spread("control", 0.1), 0.1 * plain)
    # the remainder is of second order: a tenth of the distance, a ten-thousandth of the variance
    expect_lt(abs(log10(spread("control", 0.05) / spread("control", 0.005)) - 4), 0.5)
    expect_equal(drop(estimate(model, case$rows, case$truth, "control", 40, 0.6, batch = 10,
                               anchor = case$truth)),
                 drop(full_gradient(model, case$rows, matrix(case$truth), 40, 0.6)),
                 tolerance = 1e-5)
  }
})

test_that("a quadratic model needs no batch: control variates are exact everywhere", {
  model <- linear_model(3, 0.7, 0, 2)
  rows <- some_rows(model, 700, c(1, 2, 3), 63)
  theta <- prior_draws(model, 5, 64)
  for (seen in c(0, 300, 700)) for (lambda in c(0, 0.4, 1))
    expect_equal(estimate(model, rows, theta, "control", seen, lambda, batch = 10,
                          anchor = c(5, -3, 0)),
                 full_gradient(model, rows, theta, seen, lambda), tolerance = 1e-10)
})

test_that("with nothing seen, or no anchor, the estimate is the full gradient", {
  for (case in c(noisy_cases(), list(exact_case()))) {
    expected <- full_gradient(case$model, case$rows, case$theta, 0, 0.5)
    expect_equal(estimate(case$model, case$rows, case$theta, "batch", 0, 0.5, batch = 5), expected,
                 tolerance = case$tolerance)
    expect_equal(estimate(case$model, case$rows, case$theta, "control", 0, 0.5, batch = 5),
                 expected, tolerance = case$tolerance)
  }
})

test_that("mini-batches longer than a block of rows are summed whole", {
  model <- softmax_model(2, 2)
  rows <- some_rows(model, 3000, c(1, -1, 0, 0.5), 65)
  theta <- cbind(c(0.8, -0.9, 0.1, 0.4))
  expected <- full_gradient(model, rows, theta, 2500, 0.5)
  for (rule in c("batch", "control")) for (mixed in c(0, if (rule == "batch") 1)) {
    found <- t(vapply(1:200, function(s) {
      drop(estimate(model, rows, theta, rule, 2500, 0.5, batch = 1300, mixed = mixed,
                    anchor = c(1, -1, 0, 0.5), seed = s))
    }, numeric(4)))
    expect_z(z_score(found, expected[, 1]))
  }
})

test_that("sums at few points, whose rows threads share, equal those at many points", {
  n <- 10007
  for (model in list(softmax_model(2, 2), linear_model(2, 0.7, 0, 2), mean_model(1.5))) {
    rows <- some_rows(model, n, seq_len(model$dim) / 3, 66)
    theta <- prior_draws(model, 20, 67)
    weighed <- function(which, seen)
      run_kernel(sgld(), model, rows, theta[, which, drop = FALSE], 1, gradient = "full",
                 seen = seen, answer = "log_lik")
    for (which in list(7, 1:3, 1:20))
      expect_equal(as.vector(weighed(which, 0)),
                   ask(model, "log_lik", theta[, which, drop = FALSE], rows), tolerance = 1e-11)
    few <- theta[, 1:3, drop = FALSE]
    expect_equal(estimate(model, rows, few, "full", 0, 1), full_gradient(model, rows, few, 0, 1),
                 tolerance = 1e-5)
  }
  # a row that a point excludes does so whichever part it lies in
  rows <- some_rows(mean_model(), n, 0, 68)
  rows[1, 9000] <- Inf
  found <- run_kernel(sgld(), mean_model(), rows, matrix(c(0, 1), 1), 1, gradient = "full",
                      seen = 0, answer = "log_lik")
  expect_identical(as.vector(found), c(-Inf, -Inf))
})

# Where control variates fail ----------------------------------------------------------------------

test_that("exact densities replace mini-batch gradients only where these are too noisy", {
  crowd <- with_own_seed(test_seed(7),
                         matrix(rnorm(5000, rep(c(-4, 0, 5), c(1500, 500, 500))), ncol = 1))
  quick <- sgais(particles = 30, early = list(particles = 50, work = 0), audit = FALSE)
  fit <- evidence(gaussian_mixture(components = 6), crowd, quick, seed = test_seed(1),
                  progress = FALSE)
  noisy <- fit$trace$n > 1900
  expect_gt(max(fit$trace$noise, na.rm = TRUE), 0.5)
  expect_true(100 %in% fit$trace$particles[noisy])
  # particles have not run away: no chunk explains its rows much worse than all before did
  per_row <- diff(fit$trace$log_evidence) / diff(fit$trace$n)
  expect_gt(min(per_row[noisy[-1]]), min(per_row[!noisy[-1]]) - 1)
  kind <- evidence(gaussian_mixture(components = 2), crowd[crowd < 2.5, , drop = FALSE],
                   sgais(particles = 30, early = list(particles = 50), audit = FALSE),
                   seed = test_seed(1), progress = FALSE)
  late <- kind$trace$n > 1900
  expect_true(all(kind$trace$particles[late] == 30))
  expect_lt(max(kind$trace$noise, na.rm = TRUE), 0.2)
  expect_lt(max(kind$trace$drift, na.rm = TRUE), 10)
})

test_that("a run that has changed to exact densities can be saved at any moment", {
  skip_unless_slow()
  crowd <- with_own_seed(test_seed(8),
                         matrix(rnorm(1600, rep(c(-4, 0, 5), c(900, 400, 300))), ncol = 1))
  model <- gaussian_mixture(components = 6)
  encoded <- encode(model, crowd)
  problem <- new_problem(model, encoded,
                         sgais(particles = 10, early = list(particles = 20, work = 0, rows = 300),
                               audit = TRUE),
                         seed_words(test_seed(1)))
  whole <- conduct(problem, encoded$rows)
  expect_true(100 %in% whole$trace$particles)
  for (slices in c(5, 40, 150)) {
    again <- resumed(problem, encoded$rows, slices, 0.002)
    expect_identical(again$draws, whole$draws)
    expect_identical(again$noise, whole$noise)
    expect_identical(again$audit_unreached, whole$audit_unreached)
  }
})

test_that("too wide particles are found, and their cost is estimated", {
  problem <- simulated_softmax(20000, 3, 3)
  right <- evidence(softmax_regression(class ~ ., prior_sd = 1), problem, sgais(audit = FALSE),
                    seed = test_seed(1), progress = FALSE)
  heating <- right$sampler$heating
  expect_lt(abs(heating$bias), 4 * heating$se)
  expect_lt(abs(heating$batches), 0.5)
  expect_null(heating_warning(heating))
  n <- c(1000, 2000, 4000, 8000, 16000)
  trace <- data.frame(n = n, temperature = c(NA, rep(1.5, 4)), ess = 40, noise = c(NA, rep(1, 4)))
  told <- heating(trace, 10)
  expect_equal(told$bias, -5 * 0.5 * log(16))
  expect_equal(told$temperature, 1.5)
  expect_match(heating_warning(told), paste("temperature 1.50 instead of 1), and the estimate is",
                                            "probably about 6.9 nats too low"), fixed = TRUE)
})

test_that("given settings of the early phase hold, whichever others are left open", {
  set.seed(test_seed(3))
  data <- data.frame(a = c(rnorm(150, -2), rnorm(150, 2)))
  given <- list(particles = 40, ess = 0.8, steps = 2, work = 50, kernel = hmc())
  for (left_out in c(list(character(0)), as.list(names(given)), list(names(given)))) {
    early <- given[setdiff(names(given), left_out)]
    fit <- evidence(gaussian_mixture(components = 2), data, sgais(early = early, audit = FALSE),
                    seed = test_seed(7), progress = FALSE)
    expect_identical(fit$trace$particles[1], if ("particles" %in% left_out) 100 else 40)
    expect_true(is.finite(fit$log_evidence))
  }
})

# A run that was saved and restored is the run that was not.

set.seed(test_seed(3))
many <- data.frame(x = rnorm(3000))
many$y <- 1 + 2 * many$x + rnorm(3000)
line <- linear_regression(y ~ x, sigma = 1, prior_sd = 2)
few <- many[1:60, ]
long <- data.frame(x = rnorm(8000))
long$y <- factor(rbinom(8000, 1, plogis(1 + long$x)))
blobs <- data.frame(a = c(rnorm(700, -2), rnorm(700, 2)))
close <- data.frame(a = with_own_seed(test_seed(), c(rnorm(150), rnorm(150, 2))))

# Walks that follow a path, there and back.
recording <- function(setup) {
  setup$problem$settings$record <- 1
  setup
}
following <- function(setup, path, from = NULL) {
  setup$problem$settings$follow <- as.double(path)
  setup$problem$settings$reverse <- as.double(!is.null(from))
  setup$problem$settings$from_state <- from
  setup
}
two <- gaussian_mixture(components = 2)
few_blobs <- blobs[c(1:20, 701:720), , drop = FALSE]
line_path <-
  finish_run(start_run(recording(run_problem(line, few, smc("data", 40, chunk = 7), 1))))$path
two_path <- finish_run(start_run(
  recording(run_problem(two, few_blobs, smc(particles = 20, kernel = rwm()), 1))))$path

made_setups <- NULL
setups <- function() {
  if (is.null(made_setups)) made_setups <<- make_setups()
  made_setups
}
make_setups <- function() {
  light <- list(rows = 200, particles = 40)
  list(
    sgais = run_problem(line, many, sgais(audit_draws = 100), test_seed()),
    sgais_mixture = run_problem(gaussian_mixture(components = 2), blobs,
                                sgais(20, early = light, audit_draws = 64), test_seed()),
    sgais_led = run_problem(gaussian_mixture(components = 2), close,
                            sgais(20, early = light, audit = FALSE), test_seed()),
    sgais_weighed = run_problem(softmax_regression(y ~ x, prior_sd = 1), long,
                                sgais(20, chunk = 2500, early = light, audit = FALSE), test_seed()),
    sgais_sghmc = run_problem(line, many, sgais(20, kernel = sghmc(), early = light, audit = FALSE),
                              test_seed()),
    paper = run_problem(line, many, sgais(preset = "paper", steps = 3), test_seed()),
    ais = run_problem(line, few, ais(20, linear(10)), test_seed()),
    ais_sgld = run_problem(line, few, ais(20, linear(10), kernel = sgld(), steps = 3), test_seed()),
    smc_thermal = run_problem(line, few, smc(particles = 40), test_seed()),
    smc_rwm = run_problem(line, few, smc(particles = 40, kernel = rwm(), resampling = "residual"),
                          test_seed()),
    smc_data = run_problem(line, few, smc("data", 40, chunk = 7), test_seed()),
    sequential = run_problem(line, many, sequential(steps = 3), test_seed()),
    sequential_baoab = run_problem(line, many, sequential(steps = 3, kernel = baoab()),
                                   test_seed()),
    harmonic_mean = run_problem(line, few, harmonic_mean(10, 20), test_seed()),
    nested = run_problem(line, few, nested(live = 30), test_seed()),
    nested_mixture = run_problem(gaussian_mixture(components = 2), blobs[1:30, , drop = FALSE],
                                 nested(live = 40, slice(), steps = 5), test_seed()),
    nested_paper = run_problem(line, few, nested(preset = "paper"), test_seed()),
    laplace = run_problem(line, many, laplace(importance = 200), test_seed()),
    laplace_mixture = run_problem(gaussian_mixture(components = 2), blobs, laplace(importance = 64),
                                  test_seed()),
    bic = run_problem(line, few, bic(), test_seed()),
    bridge = run_problem(line, few, bridge(10, 20), test_seed()),
    power_posterior = run_problem(line, few, power_posterior(run = smc(particles = 40)),
                                  test_seed()),
    online_nested = run_problem(line, few, online_nested(30, steps = 5), test_seed()),
    online_nested_control = run_problem(line, many[1:300, ],
                                        online_nested(20, sghmc(0.01), 5, batch = 30), test_seed()),
    hybrid = run_problem(line, many, hybrid(60, 30, steps = 3), test_seed()),
    variational = run_problem(binary_attributes(attributes = 2, infer = TRUE),
                              blobs[1:30, , drop = FALSE],
                              variational(3, sweeps = 5, draws = 20), test_seed()),
    variational_mixture = run_problem(gaussian_mixture(components = 2), blobs,
                                      variational(3, draws = 20), test_seed()),
    partitions = run_problem(gaussian_mixture(components = 3), blobs[1:40, , drop = FALSE],
                             with_anchor(partitions(work = 2e4, draws = 20),
                                         list(components = 1, log_evidence = 0, se = 0), 3),
                             test_seed()),
    likelihood_weighting = run_problem(line, few, likelihood_weighting(100), test_seed()),
    recording = recording(run_problem(two, few_blobs, smc(particles = 20, kernel = slice()),
                                      test_seed())),
    following = following(run_problem(line, few, smc("data", 20, chunk = 7), test_seed()),
                          line_path),
    following_mixture = following(run_problem(two, few_blobs, smc(particles = 20, kernel = rwm()),
                                              test_seed()), two_path),
    reverse = following(run_problem(line, few, smc("data", 20, chunk = 7), test_seed()), line_path,
                        c(1, 2)),
    reverse_mixture = following(run_problem(two, few_blobs, smc(particles = 20, kernel = rwm()),
                                            test_seed()), two_path,
                                c(0, -1, 1, 0, 0))
  )
}

restored <- function(setup, state) {
  run <- .Call(ffi_run_new, replace(setup$problem, "restore", list(TRUE)))
  .Call(ffi_run_restore, run, state)
  run
}

# States after each of `at` smallest possible slices; fewer where the run is shorter.
states_at <- function(setup, at) {
  run <- start_run(setup)
  states <- list()
  for (slice in 0:max(at)) {
    if (slice %in% at) states <- c(states, list(.Call(ffi_run_save, run)))
    if (.Call(ffi_run_advance, run, 0, Inf) != "more")
      return(c(states, list(.Call(ffi_run_save, run))))
  }
  states
}

slices_of <- function(setup) {
  run <- start_run(setup)
  n <- 1
  while (.Call(ffi_run_advance, run, 0, Inf) == "more") n <- n + 1
  n
}

test_that("phases that a time limit undoes are done again to the same bits", {
  for (name in names(setups())) {
    run <- start_run(setups()[[name]])
    repeat {
      # over before the phase begins: it is undone where it first tests for an interrupt
      answer <- .Call(ffi_run_advance, run, 0, -1)
      if (answer == "more") answer <- .Call(ffi_run_advance, run, 0, Inf)
      if (answer != "more") break
    }
    expect_identical(timeless(run_result(run)), finish_run(start_run(setups()[[name]])),
                     info = name)
  }
})

test_that("restored runs end as those that were never interrupted, to the bit", {
  for (name in names(setups())) {
    setup <- setups()[[name]]
    whole <- finish_run(start_run(setup))
    n <- slices_of(setup)
    at <- fast_or_slow(n * 0.4, c(0, 1, 2, 3, n * seq(0.05, 0.95, 0.15), n - 3:1))
    at <- unique(round(at))
    for (state in states_at(setup, at)) {
      run <- restored(setup, state)
      expect_identical(.Call(ffi_run_save, run), state, info = name)
      expect_identical(finish_run(run), whole, info = name)
    }
  }
})

test_that("saving changes nothing in the run that is saved", {
  setup <- setups()$smc_thermal
  run <- start_run(setup)
  for (i in 1:20) {
    first <- .Call(ffi_run_save, run)
    expect_identical(.Call(ffi_run_save, run), first)
    .Call(ffi_run_advance, run, 0, Inf)
  }
  expect_identical(finish_run(run), finish_run(start_run(setup)))
})

test_that("a state may be restored with another number of threads, and twice", {
  setup <- setups()$smc_thermal
  state <- states_at(setup, 10)[[1]]
  whole <- finish_run(start_run(setup))
  setup$problem$threads <- 2
  expect_identical(finish_run(restored(setup, state)), whole)
  expect_identical(finish_run(restored(setup, state)), whole)
})

test_that("a stream that is fed in parts can be saved between them", {
  setup <- setups()$sequential
  parts <- list(1:500, 501:1900, 1901:3000)
  feed <- function(run, k) .Call(ffi_run_feed, run, setup$rows[, parts[[k]]],
                                 if (k == 3) "last" else "some")
  exhaust <- function(run) while (.Call(ffi_run_advance, run, 0.05, Inf) == "more") NULL
  run <- .Call(ffi_run_new, setup$problem)
  for (k in 1:3) {
    feed(run, k)
    exhaust(run)
  }
  whole <- timeless(run_result(run))
  run <- .Call(ffi_run_new, setup$problem)
  for (k in 1:3) {
    feed(run, k)
    exhaust(run)
    run <- restored(setup, .Call(ffi_run_save, run))
  }
  expect_identical(timeless(run_result(run)), whole)
})

damaged <- function(setup, state) {
  run <- .Call(ffi_run_new, replace(setup$problem, "restore", list(TRUE)))
  refused <- tryCatch({
    .Call(ffi_run_restore, run, state)
    FALSE
  }, error = function(e) TRUE)
  list(run = run, refused = refused)
}

test_that("a run shuffles its own rows in place, and never the rows of the user", {
  for (problem in list(list(model = linear_regression(dist ~ speed, sigma = 15,
                                                      prior_sd = 1), data = cars),
                       list(model = softmax_regression(Species ~ Petal.Width,
                                                       prior_sd = 1), data = iris),
                       list(model = gaussian_mixture(components = 2),
                            data = as.matrix(faithful)))) {
    before <- unserialize(serialize(problem$data, NULL))
    fit <- evidence(problem$model, problem$data, seed = test_seed(), progress = FALSE)
    expect_identical(problem$data, before)
    copied <- run_problem(problem$model, problem$data, sgais())
    own <- run_problem(problem$model, problem$data, sgais())
    told <- function(run, feed)
      timeless(conduct_together(list(run$problem), run$rows, feed = feed)[[1]])
    expected <- told(copied, "last")
    expect_identical(told(own, "own"), expected)
    mixed <- replace(copied, "rows",
                     list(encode(problem$model, problem$data,
                                 list(threads = 1, seed = copied$problem$seed))$rows))
    expect_identical(mixed$rows, own$rows)
    expect_identical(told(mixed, "mixed"), expected)
    expect_identical(copied$rows, encode(problem$model, problem$data)$rows)
    expect_false(identical(own$rows, copied$rows))
    sorted <- function(rows) rows[, do.call(order, as.data.frame(t(rows)))]
    expect_identical(sorted(own$rows), sorted(copied$rows))
    expect_identical(fit$data_id, data_id(encode(problem$model, problem$data)))
  }
})

test_that("truncated and lengthened states are errors", {
  for (name in c("sgais", "harmonic_mean", "smc_data", "laplace", "bridge", "online_nested",
                 "hybrid")) {
    setup <- setups()[[name]]
    state <- utils::tail(states_at(setup, 30), 1)[[1]]
    n <- length(state)
    set.seed(test_seed())
    lengths <- fast_or_slow(c(0, 9, 40, 8 * (3:8), round(n * seq(0.1, 0.9, 0.2)), n - 2:1),
                            c(0:40, 8 * (1:20), round(n * seq(0.01, 0.99, 0.02)), n - 9:1))
    lengths <- unique(lengths)
    refused <- vapply(lengths, function(length) damaged(setup, state[seq_len(length)])$refused,
                      TRUE)
    expect_true(all(refused), info = name)
    expect_true(damaged(setup, c(state, as.raw(0)))$refused)
    expect_error(.Call(ffi_run_restore, .Call(ffi_run_new, setup$problem), state[1:20]),
                 "damaged or belongs to another version", class = "logevidence_error")
  }
})

test_that("damaged states are errors", {
  for (name in c("sgais", "sgais_mixture", "harmonic_mean", "smc_data", "laplace_mixture",
                 "power_posterior", "reverse_mixture", "online_nested_control", "hybrid")) {
    setup <- setups()[[name]]
    for (state in states_at(setup, fast_or_slow(25, c(2, 25, 60)))) {
      n <- length(state)
      set.seed(test_seed(2))
      places <- fast_or_slow(c(sample(100, 10), sample(n, 20), n - sample(0:50, 10)),
                             c(1:100, sample(n, 60), n - 0:50))
      refused <- vapply(places, function(at) {
        state[at] <- xor(state[at], as.raw(sample(1:255, 1)))
        damaged(setup, state)$refused
      }, TRUE)
      expect_true(all(refused), info = name)
    }
  }
})

test_that("a run whose state was refused has ended", {
  setup <- setups()$ais
  state <- states_at(setup, 5)[[1]]
  run <- damaged(setup, state[1:500])$run
  expect_error(.Call(ffi_run_advance, run, 0, Inf), "has ended")
  expect_error(.Call(ffi_run_result, run), "has ended")
})

test_that("states of other problems are errors", {
  setup <- setups()$ais
  state <- states_at(setup, 5)[[1]]
  other <- function(model = line, method = ais(20, linear(10)), seed = test_seed()) {
    run_problem(model, few, method, seed)
  }
  expect_true(damaged(other(seed = test_seed(9)), state)$refused)
  expect_true(damaged(other(method = ais(21, linear(10))), state)$refused)
  expect_true(damaged(other(linear_regression(y ~ 1, sigma = 1, prior_sd = 1)), state)$refused)
  expect_true(damaged(other(linear_regression(y ~ x + I(x^2), sigma = 1,
                                              prior_sd = 1)), state)$refused)
  expect_true(damaged(other(gaussian_mean(~y)), state)$refused)
  for (name in setdiff(names(setups()), "ais"))
    expect_true(damaged(setups()[[name]], state)$refused, info = name)
  set.seed(test_seed(4))
  noise <- as.raw(sample(0:255, 1000, TRUE))
  for (bytes in list(raw(), as.raw(0), serialize(1:100, NULL), noise, rep(as.raw(255), 5000)))
    expect_true(damaged(setup, bytes)$refused)
  for (value in list(NULL, "state", 1:10, list()))
    expect_error(.Call(ffi_run_restore, start_run(setup), value), "raw vector")
})

test_that("states are refused if the formula differs in more than spaces", {
  problem <- setups()$ais$problem
  id <- function(formula)
    .Call(ffi_problem_id, replace(problem, "model", list(list(formula = formula))))
  others <- list(y ~ f(g(a), b), y ~ f(g(a, b)), y ~ f(g(a)) + b, y ~ f(a = g(b)), y ~ f(b = g(a)),
                 y ~ f(g(a), "b"), y ~ f(g(a), 1), y ~ f(g(a), 1L), y ~ f(g(a), 2), z ~ f(g(a), b),
                 ~ f(g(a), b), y ~ f(g(a), NULL), y ~ (f(g(a), b)))
  ids <- vapply(others, id, "")
  expect_identical(anyDuplicated(ids), 0L)
  expect_identical(id(y~f( g(a),b )), ids[1])
})

test_that("an error about a state says to what the state belongs", {
  setup <- setups()$ais
  state <- states_at(setup, 5)[[1]]
  told <- function(setup, bytes = state) {
    run <- .Call(ffi_run_new, replace(setup$problem, "restore", list(TRUE)))
    tryCatch(.Call(ffi_run_restore, run, bytes), logevidence_error = conditionMessage)
  }
  other <- function(model = line, method = ais(20, linear(10)), seed = test_seed())
    run_problem(model, few, method, seed)
  expect_match(told(other(linear_regression(y ~ x, prior_sd = 3, sigma = 1))),
               "belongs to another model, or to other priors")
  expect_match(told(other(method = ais(20, linear(11)))),
               "belongs to another method, other settings")
  expect_match(told(other(seed = test_seed(9))), "a run with another seed")
  again <- setup
  again$problem$replicate <- 3
  expect_match(told(again), "another replicate: 1, not 4")
  version <- state
  version[17] <- as.raw(57)
  expect_match(told(setup, version), "damaged")
  expect_null(told(setup))
})

test_that("a state of a model of R functions has R's random numbers with it", {
  model <- custom_model("a", function(theta) dnorm(2, theta, log = TRUE),
                        function(theta) dnorm(theta, log = TRUE), function(n) rnorm(n))
  encoded <- encode(model, NULL)
  problem <- new_problem(model, encoded, smc(particles = 20, kernel = rwm()),
                         seed_words(test_seed()))
  started <- function(problem) {
    run <- .Call(ffi_run_new, problem)
    .Call(ffi_run_feed, run, encoded$rows, "last")
    run
  }
  set.seed(test_seed(5))
  whole <- finish_run(started(problem))
  set.seed(test_seed(5))
  run <- started(problem)
  for (i in 1:3) .Call(ffi_run_advance, run, 0, Inf)
  state <- .Call(ffi_run_save, run)
  seed <- .Random.seed
  set.seed(test_seed(6))
  run <- .Call(ffi_run_new, replace(problem, "restore", list(TRUE)))
  .Call(ffi_run_restore, run, state)
  expect_identical(.Random.seed, seed)
  expect_identical(finish_run(run), whole)
  other <- model
  other$log_prior <- function(theta) dnorm(theta, 0, 2, log = TRUE)
  encoded <- encode(other, NULL)
  run <- .Call(ffi_run_new, replace(new_problem(other, encoded, smc(particles = 20, kernel = rwm()),
                                                seed_words(test_seed())), "restore",
                                    list(TRUE)))
  expect_error(.Call(ffi_run_restore, run, state), "another model", class = "logevidence_error")
})

test_that("kernels without a metric need no square matrices", {
  d <- 400
  data <- list(x = matrix(0, 2, d), y = c(0, 0))
  setup <- run_problem(linear_regression(sigma = 1,
                                         prior_sd = 1), data, smc(particles = 4, kernel = sghmc()),
                       test_seed())
  run <- start_run(setup)
  .Call(ffi_run_advance, run, 0, Inf)
  # before there were three matrices more for each half of the particles
  expect_lt(length(.Call(ffi_run_save, run)), 6 * 8 * d^2)
})

test_that("a plan of several runs, second runs included, can be saved at any moment", {
  crowd <- with_own_seed(test_seed(6), matrix(rnorm(200, rep(c(-4, 4), 100)), ncol = 1))
  model <- gaussian_mixture(components = 4)
  encoded <- encode(model, crowd)
  light <- list(rows = 60, particles = 40, work = 0)
  problem <- new_problem(model, encoded, sgais(20, early = light, audit_draws = 64),
                         seed_words(test_seed(1)))
  # a check that is never the surer estimate asks for a second run
  problem$thorough <- problem$settings
  problem$settings$audit_draws <- problem$settings$audit_least <- 8
  problems <- lapply(0:2, function(r) replace(problem, "replicate", list(r)))
  slices <- function(plan, n, together) {
    done <- 0
    work_on(plan, encoded$rows, together, stop = function() (done <<- done + 1) >= n)
  }
  strip <- function(results) lapply(results, function(result) {
    attr(result, "second_run") <- NULL
    timeless(result)
  })
  whole <- work_on(new_plan(problems), encoded$rows)
  expect_true(is_done(whole))
  expect_true(any(lengths(whole$second) > 0))
  for (n in fast_or_slow(1, c(1, 2, 4))) for (together in fast_or_slow(3, c(1, 3))) {
    plan <- new_plan(problems)
    rounds <- 0
    while (!is_done(plan)) {
      plan <- unserialize(serialize(slices(plan, n, together), NULL))
      rounds <- rounds + 1
    }
    if (n == 1) expect_gt(rounds, 1)
    expect_identical(strip(plan_results(plan)), strip(plan_results(whole)))
  }
  expect_false(is_done(new_plan(problems)))
})

test_that("a run that was freed, or never was one, is an error", {
  run <- start_run(setups()$ais)
  .Call(ffi_run_free, run)
  expect_error(.Call(ffi_run_advance, run, 0, Inf), "has ended")
  expect_error(.Call(ffi_run_save, run), "has ended")
  expect_error(.Call(ffi_run_result, run), "has ended")
  expect_error(.Call(ffi_run_progress, run), "has ended")
  expect_error(.Call(ffi_run_feed, run, matrix(0, 3, 1), "last"), "has ended")
  expect_error(.Call(ffi_run_restore, run, raw(10)), "has ended")
  expect_null(.Call(ffi_run_free, run))
  expect_error(.Call(ffi_run_advance, NULL, 0, Inf), "has ended")
  expect_error(.Call(ffi_run_advance, list(), 0, Inf), "has ended")
})

test_that("errors of C about a damaged state are sentences", {
  fit <- quiet_fit(gaussian_mean(), c(1.2, 0.3, 2.2), seed = test_seed(), keep_state = TRUE)
  state <- fit$state$plan$first[[1]]$state
  fit$state$plan$first[[1]]$state <- replace(state, 200, !state[200])
  expect_error(update(fit, 1), "^The saved state is damaged or belongs to another version[.]$",
               class = "logevidence_error")
})

test_that("states with altered content and a right checksum are errors", {
  header <- 9 # words
  seal <- function(state) .Call(ffi_state_seal, state)
  for (name in c("ais", "online_nested", "laplace", "partitions")) {
    setup <- setups()[[name]]
    state <- utils::tail(states_at(setup, 6), 1)[[1]]
    expect_identical(seal(state), state, info = name)
    forged <- function(word, value)
      seal(replace(state, 8 * (header + word - 1) + 1:8, value))
    same <- damaged(setup, seal(state))
    expect_false(same$refused, info = name)
    # fewer bytes
    for (n in c(10, length(state) %/% 16, length(state) / 8 - 2))
      expect_true(damaged(setup, seal(c(state[seq_len(8 * n)], raw(8))))$refused,
                  info = name)
    # -1 as a count or a choice, NaN as a number; a run that is not refused works on
    refused <- vapply(1:24, function(word) {
      got <- damaged(setup, forged(word, as.raw(rep(255, 8))))
      if (!got$refused) try(.Call(ffi_run_advance, got$run, 0, Inf), silent = TRUE)
      got$refused
    }, TRUE)
    expect_true(all(refused[1:3]), info = name)
    expect_gt(sum(refused), 5)
  }
})

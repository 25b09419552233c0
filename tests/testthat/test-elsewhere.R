# Rows that are elsewhere: a run asks for sums over them, and workers answer, each from its part.

ROWS <- 2600
SAMPLE <- 300
scattered <- with_own_seed(test_seed(7), {
  data <- data.frame(x = rnorm(ROWS), z = rnorm(ROWS))
  data$y <- rbinom(ROWS, 1, stats::plogis(0.3 + data$x - data$z / 2))
  data$w <- data$x + rnorm(ROWS)
  data
})

logit <- regression(y ~ x + z, family = binomial())
curves <- list(
  logit, gaussian_mean(~ x), linear_regression(w ~ x + z),
  density(~ dnorm(w, m, s, log = TRUE), m = ~ x, s = half_normal(1)),
  softmax_regression(factor(y) ~ x, prior_sd = 1)
)

# A run in memory whose first climbs use SAMPLE of the rows, and the same with the rows elsewhere:
# these rows are here, and the parts have a worker each.
setting_elsewhere <- function(model, method, parts = 6, seed = 1) {
  encoded <- encode(model, scattered)
  problem <- new_problem(model, encoded, method, words(seed))
  problem$settings$rows <- SAMPLE
  n <- ncol(encoded$rows)
  drawn <- .Call(ffi_uniforms, words(seed), 0, 1, SAMPLE, FALSE)
  picked <- floor(n / SAMPLE * (seq_len(SAMPLE) - 1 + drawn)) + 1
  away <- with_rows_elsewhere(problem, n)
  cut <- split(seq_len(n), rep(seq_len(parts), length.out = n))
  list(problem = problem, rows = encoded$rows, away = away,
       sample = encoded$rows[, picked, drop = FALSE],
       workers = lapply(cut, function(part) new_worker(away, encoded$rows[, part, drop = FALSE])))
}

answer_of <- function(setting, ask = identity) function(question) {
  ask(question)
  add_answers(lapply(setting$workers, function(worker) worker(question)))
}

conduct_elsewhere <- function(problem, sample, answer)
  conduct(problem, asked_rows(list(sample), function(questions) lapply(questions, answer)))

answer_run <- function(run, answer) {
  question <- .Call(ffi_run_question, run)
  .Call(ffi_run_answer, run, question$what, answer(question))
}

relative <- function(a, b) max(abs(a - b) / pmax(abs(a), 1))

test_that("a run that asks finds what it finds with all rows in memory", {
  for (model in curves) for (method in list(laplace(importance = 500), bic())) {
    setting <- setting_elsewhere(model, method)
    here <- conduct(setting$problem, setting$rows)
    away <- conduct_elsewhere(setting$away, setting$sample, answer_of(setting))
    name <- paste(model$name, method$name)
    expect_identical(away$n, here$n, info = name)
    found <- c("laplace", "log_peak",
               if (method$name == "bic") "maximum" else c("importance", "se"))
    for (part in found) expect_lt(relative(here[[part]], away[[part]]), 1e-9)
    expect_lt(relative(here$peak, away$peak), 1e-6)
  }
})

test_that("a climb has a question in an iteration, importance sampling one for a thousand draws", {
  setting <- setting_elsewhere(logit, laplace(importance = 2000))
  asked <- list()
  conduct_elsewhere(setting$away, setting$sample,
                    answer_of(setting, function(question) asked <<- c(asked, list(question))))
  what <- vapply(asked, `[[`, "", "what")
  points <- vapply(asked, function(question) ncol(question$points), 0L)
  expect_lte(sum(what == "curvature"), 8)
  expect_true(all(points[what == "curvature"] == 1))
  expect_identical(points[what == "value" & points > 100], c(1024L, 976L))
  expect_length(unique(lapply(asked, `[[`, "points")), length(asked))
})

test_that("the number of workers does not matter where parts are added in their order", {
  setting <- setting_elsewhere(logit, laplace(importance = 300))
  held_by <- function(workers) {
    owner <- rep(seq_len(workers), length.out = length(setting$workers))
    function(question) {
      answers <- vector("list", length(owner))
      for (k in rev(seq_len(workers)))
        answers[owner == k] <- lapply(setting$workers[owner == k], function(part) part(question))
      add_answers(answers)
    }
  }
  runs <- lapply(c(1, 2, 3, 6), function(workers)
    timeless(conduct_elsewhere(setting$away, setting$sample, held_by(workers))))
  for (run in runs[-1]) expect_identical(run, runs[[1]])
})

# A run that is saved and read into a new one after each `every`-th question and each answer.
resumed <- function(setting, every) {
  begin <- function(state) {
    run <- .Call(ffi_run_new, replace(setting$away, "restore", !is.null(state)))
    if (is.null(state)) .Call(ffi_run_feed, run, setting$sample, "sample")
    else .Call(ffi_run_restore, run, state)
    run
  }
  again <- function(run) {
    state <- .Call(ffi_run_save, run)
    .Call(ffi_run_free, run)
    begin(state)
  }
  run <- begin(NULL)
  steps <- 0
  while ((word <- .Call(ffi_run_advance, run, 0, Inf)) != "done") {
    steps <- steps + 1
    saved <- steps %% every == 0
    question <- .Call(ffi_run_question, run)
    if (saved) run <- again(run)
    if (word != "question") next
    expect_identical(.Call(ffi_run_question, run), question)
    expect_identical(.Call(ffi_run_advance, run, 0, Inf), "question")
    answer_run(run, answer_of(setting))
    expect_null(.Call(ffi_run_question, run))
    if (saved) run <- again(run)
  }
  timeless(run_result(run))
}

test_that("a state saved between question and answer goes on to the same bits", {
  for (model in curves[c(1, 4)]) {
    setting <- setting_elsewhere(model, laplace(importance = 300))
    whole <- timeless(conduct_elsewhere(setting$away, setting$sample, answer_of(setting)))
    for (every in c(1, 3)) expect_identical(resumed(setting, every), whole, info = model$name)
  }
})

test_that("a damaged log of questions is refused", {
  setting <- setting_elsewhere(logit, laplace())
  run <- .Call(ffi_run_new, setting$away)
  .Call(ffi_run_feed, run, setting$sample, "sample")
  while (.Call(ffi_run_advance, run, 0, Inf) != "question") NULL
  state <- .Call(ffi_run_save, run)
  for (at in seq(200, length(state) - 8, length.out = 40)) {
    damaged <- state
    damaged[at] <- xor(damaged[at], as.raw(64))
    other <- .Call(ffi_run_new, replace(setting$away, "restore", TRUE))
    expect_error(.Call(ffi_run_restore, other, damaged), "damaged")
  }
})

test_that("what is no answer is refused in a sentence, and the question stays open", {
  setting <- setting_elsewhere(logit, laplace(importance = 300))
  run <- .Call(ffi_run_new, setting$away)
  .Call(ffi_run_feed, run, setting$sample, "sample")
  refused(.Call(ffi_run_answer, run, "value", matrix(0, 1, 1)), "No question of this run waits")
  expect_null(.Call(ffi_run_question, run))
  while (.Call(ffi_run_advance, run, 1, Inf) != "question") NULL
  question <- .Call(ffi_run_question, run)
  right <- answer_of(setting)(question)
  give <- function(sums, what = question$what) .Call(ffi_run_answer, run, what, sums)
  expect_identical(question$what, "curvature")
  refused(give(right, "value"), "The answer is a value, and the question is for a curvature.")
  expect_error(give(right, "third"), "`what` must be .* not \"third\".")
  refused(give(rbind(right, 0)), "must have 13 numbers for each of 1 points, not 14 for 1")
  refused(give(cbind(right, right)), "not 13 for 2")
  refused(give(replace(right, 3, NaN)), "number 3 of point 1 is NaN")
  refused(give(replace(right, 3, -Inf)), "number 3 of point 1 is infinite")
  refused(give(replace(right, 1, Inf)), "-Inf only as log-likelihood")
  expect_error(give(c(right)), "must be a numeric matrix")
  expect_error(give(array(1L, dim(right))), "must be a numeric matrix")
  expect_identical(.Call(ffi_run_advance, run, 1, Inf), "question")
  give(right)
  refused(give(right), "No question of this run waits")
  while ((word <- .Call(ffi_run_advance, run, 1, Inf)) != "done")
    if (word == "question") answer_run(run, answer_of(setting))
  whole <- conduct_elsewhere(setting$away, setting$sample, answer_of(setting))
  expect_identical(timeless(run_result(run)), timeless(whole))
})

test_that("a worker refuses what its model cannot answer, and goes on", {
  worker <- setting_elsewhere(logit, laplace(), parts = 1)$workers[[1]]
  point <- matrix(0, 3, 1)
  ask <- function(what, points = point) worker(list(what = what, points = points, lenient = FALSE))
  expect_error(ask("value", matrix(0, 2, 1)), "`points` must be a numeric matrix with 3 rows.")
  expect_error(ask("value", c(0, 0, 0)), "`points` must be")
  expect_error(ask("third"), "`what` must be")
  expect_identical(dim(ask("curvature")), c(13L, 1L))
  expect_equal(ask("value")[[1]], -ROWS * log(2))
  far <- ask("curvature", matrix(c(NaN, 0, 0)))
  expect_identical(far[[1]], -Inf)
  expect_true(all(far[-1] == 0))
  away <- setting_elsewhere(logit, laplace(), parts = 1)
  run <- .Call(ffi_run_new, away$away)
  .Call(ffi_run_feed, run, away$sample, "sample")
  expect_error(.Call(ffi_run_sums, run, list(what = "value", points = point, lenient = FALSE)),
               "This run cannot sum over its rows.")
})

test_that("methods that need their rows say so, and a sample must be one", {
  setting <- setting_elsewhere(curves[[3]], laplace())
  begin <- function(problem, sample = setting$sample) {
    run <- .Call(ffi_run_new, problem)
    .Call(ffi_run_feed, run, sample, "sample")
    run
  }
  for (method in list(sgais(), smc("data", 50), nested(20, steps = 5), hybrid()))
    refused(begin(with_rows_elsewhere(new_problem(curves[[3]], encode(curves[[3]], scattered),
                                                  method, words()), ROWS)), "in memory")
  refused(begin(setting$away, setting$sample[, 0, drop = FALSE]), "1 to 2600 rows, not 0")
  refused(begin(with_rows_elsewhere(setting$problem, 10)), "1 to 10 rows, not 300")
  refused(.Call(ffi_run_feed, begin(setting$away), setting$sample, "sample"), "comes first")
  refused(.Call(ffi_run_feed, begin(setting$away), setting$sample, "last"), "Rows cannot be added")
  known <- linear_regression(w ~ x + z, sigma = 1)
  run <- begin(with_rows_elsewhere(new_problem(known, encode(known, scattered), exact(), words()),
                                   ROWS))
  refused(.Call(ffi_run_advance, run, 1, Inf), "exact() needs all rows in memory")
})

test_that("a pass through the rows answers as workers do", {
  setting <- setting_elsewhere(logit, laplace(importance = 300), parts = 1)
  whole <- timeless(conduct_elsewhere(setting$away, setting$sample, answer_of(setting)))
  for (size in c(700, 1e4)) {
    run <- .Call(ffi_run_new, setting$away)
    .Call(ffi_run_feed, run, setting$sample, "sample")
    while ((word <- .Call(ffi_run_advance, run, 1, Inf)) != "done") {
      if (word == "question") fed <- 0
      if (!word %in% c("question", "rows")) next
      to <- min(fed + size, ROWS)
      .Call(ffi_run_feed, run, setting$rows[, (fed + 1):to, drop = FALSE],
            if (to == ROWS) "last" else "some")
      fed <- to
      refused(.Call(ffi_run_answer, run, "value", matrix(0, 1, 1)), "No question")
    }
    expect_identical(timeless(run_result(run)), whole, info = size)
  }
})

test_that("a question about rows that have left the memory is answered by a pass or a worker", {
  model <- gaussian_mixture(~ a, components = 2)
  data <- with_own_seed(test_seed(2), data.frame(a = rnorm(7800, sample(c(-2, 1), 7800, TRUE))))
  method <- by_blocks(sgais(), model, list(rewinds = TRUE), 1000)
  encoded <- encode(model, data)
  problem <- new_problem(model, encoded, method, words(2))
  worker <- new_worker(new_problem(model, encoded, laplace(), words(2)), encoded$rows)
  passes <- 0
  run_with <- function(answer) {
    run <- .Call(ffi_run_new, problem)
    .Call(ffi_run_feed, run, encoded$rows, "some")
    .Call(ffi_run_feed, run, encoded$rows[, 0, drop = FALSE], "last")
    while ((word <- .Call(ffi_run_advance, run, 1, Inf)) != "done") if (word == "question") {
      passes <<- passes + 1
      expect_identical(.Call(ffi_run_question, run)$what, "curvature")
      answer(run)
    }
    timeless(run_result(run))
  }
  read <- run_with(function(run) .Call(ffi_run_feed, run, encoded$rows, "last"))
  expect_gt(passes, 0)
  told <- run_with(function(run) answer_run(run, worker))
  expect_identical(told, read)
  short <- function(run) .Call(ffi_run_feed, run, encoded$rows[, -1, drop = FALSE], "last")
  refused(run_with(short), "had 7800 rows when it was read first and 7799 the second time")
})

test_that("a model of R functions is asked about too, with its random numbers undone", {
  skip_on_cran()
  model <- custom_model(
    c("mean", "log_sd"),
    function(theta, data) stats::dnorm(data, theta[["mean"]], exp(theta[["log_sd"]]), log = TRUE),
    log_prior = function(theta) sum(stats::dnorm(theta, log = TRUE)),
    draw_prior = function(n) matrix(stats::rnorm(2 * n), n)
  )
  encoded <- encode(model, scattered$w[1:400])
  problem <- new_problem(model, encoded, laplace(importance = 200), words())
  away <- with_rows_elsewhere(problem, 400)
  halves <- lapply(list(1:150, 151:400), function(part)
    new_worker(away, encoded$rows[, part, drop = FALSE]))
  answer <- function(question) add_answers(lapply(halves, function(half) half(question)))
  sampled <- encoded$rows[, 1:200, drop = FALSE]
  set.seed(1)
  found <- conduct_elsewhere(away, sampled, answer)
  set.seed(1)
  expect_identical(timeless(conduct_elsewhere(away, sampled, answer)), timeless(found))
  set.seed(1)
  here <- conduct(problem, encoded$rows)
  expect_lt(abs(found$laplace - here$laplace), 1e-3)
  expect_lt(abs(found$importance - here$importance), 4.5 * sqrt(found$se^2 + here$se^2))
})

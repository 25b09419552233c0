# The evidence of models with latent variables: against enumeration, closed forms and long
# importance sampling, forwards and back.

run <- function(model, data, method, seed = 1, ...)
  quiet_fit(model, data, method, seed = test_seed(seed), progress = FALSE, ...)

METHODS <- list(
  likelihood_weighting(20000), ais(particles = 400, sigmoidal(20)),
  ais(particles = 400, adaptive(0.7)),
  smc(particles = 400), smc(particles = 400, threshold = 1, resampling = "multinomial"),
  smc("data", particles = 400),
  smc("data", particles = 400, proposal = "prior", steps = 3),
  smc("data", particles = 400, threshold = 0)
)

test_that("with multinomial resampling at each step standard errors are not too small", {
  method <- smc(particles = 400, threshold = 1, resampling = "multinomial")
  z <- vapply(1:60, function(s) {
    fit <- run(CASES$binary$model, few_rows, method, seed = s)
    (fit$log_evidence - CASES$binary$truth) / fit$se
  }, 0)
  expect_lt(max(abs(z)), 4)
  expect_gt(mean(abs(z) > 0.3), 0.2)
})

test_that("every method agrees with enumeration and quadrature", {
  for (case in CASES) for (method in METHODS) {
    fit <- run(case$model, few_rows, method)
    expect_lt(abs(fit$log_evidence - case$truth) / fit$se, 4,
              label = paste(case$model$name, deparse1(method$call)))
    expect_null(fit$failed)
  }
})

test_that("a single particle adds one row at a time, is moved, and is unbiased for Z", {
  exact_z <- function(model) run(model, few_rows[, 1], exact())$log_evidence
  mean_model <- gaussian_mean()
  cases <- c(CASES, list(list(model = mean_model, truth = exact_z(mean_model))))
  for (case in cases) {
    data <- if (case$model$name == "gaussian_mean") few_rows[, 1] else few_rows
    fits <- lapply(seq_len(fast_or_slow(100, 400)), function(seed)
      run(case$model, data, smc("data", particles = 1), seed))
    expect_identical(fits[[1]]$trace$n, as.double(1:5))
    ratio <- exp(vapply(fits, `[[`, 0, "log_evidence") - case$truth)
    expect_lt(abs(mean(ratio) - 1) / sd(ratio) * sqrt(length(ratio)), 4, label = case$model$name)
  }
  # of draws from the prior the variance would be six times as large
  final <- vapply(fits, function(fit) fit$draws[1], 0)
  posterior <- run(mean_model, data, exact())$draws
  expect_lt(abs(mean(final) - mean(posterior)), 4 * sd(posterior) / sqrt(length(final)))
  expect_lt(sd(final), 1.5 * sd(posterior))
  refused(smc("data", particles = 1, move = "resampled"),
          "`move` must be \"always\" with one particle")
})

test_that("a single particle is as good as a forward chain of bdmc() by the same method", {
  method <- smc("data", particles = 1)
  model <- low_rank(rank = 2)
  known <- bdmc(model, n = 40, columns = 4, method, chains = 20, budgets = 1, seed = test_seed(1),
                progress = FALSE)
  own <- vapply(1:20, function(seed) run(model, known$data, method, seed)$log_evidence, 0)
  expect_lt(abs(mean(own) - mean(known$forward)),
            4 * sqrt((var(own) + var(known$forward)) / 20))
})

#' log estimates of 1 / Z by the reverse walk from an exact draw
reverse_run <- function(model, data, method, state, seed) {
  encoded <- encode(model, data)
  problem <- new_problem(model, encoded, method, seed_words(test_seed(seed)))
  problem$settings$reverse <- 1
  problem$settings$from_state <- state
  out <- conduct(problem, encoded$rows)
  c(-drop(out$log_evidence), drop(out$se))
}

test_that("estimates of Z are unbiased, and those of 1 / Z from an exact draw", {
  methods <- list(ais(particles = 2, sigmoidal(6)), smc("data", particles = 3),
                  smc("data", particles = 4, proposal = "prior"),
                  smc(particles = 4, ess = 0.6, threshold = 1))
  # first rows that come together do so by an adaptive schedule, and cannot be taken away one by one
  methods <- lapply(methods, function(method) {
    method$settings$first <- 0
    method
  })
  runs <- fast_or_slow(40, 400)
  size <- fast_or_slow(1000, 4000)
  for (case in CASES[1:2]) {
    pool <- run(case$model, few_rows, smc("data", particles = size, steps = 20), 77)
    for (method in fast_or_slow(methods[1:2], methods)) {
      ratio <- vapply(seq_len(runs), function(seed)
                        exp(run(case$model, few_rows, method, seed)$log_evidence - case$truth), 0)
      # an adaptive schedule looks at the particles it weighs: a little bias is its price
      drift <- if (identical(method$name, "smc") && identical(method$path, "thermal")) 0.05 else 0
      expect_lt(abs(mean(ratio) - 1), 4 * sd(ratio) / sqrt(runs) + drift)
      if (drift > 0) next
      # exact draws: those of a long run, as good as exact
      picked <- with_own_seed(test_seed(78), sample.int(size, runs, TRUE, exp(pool$log_weights)))
      states <- t(pool$parameters[picked, ])
      inverse <- vapply(seq_len(runs), function(seed)
        exp(reverse_run(case$model, few_rows, method, states[, seed], seed)[1] + case$truth), 0)
      expect_lt(abs(mean(inverse) - 1), 4 * sd(inverse) / sqrt(runs),
                label = paste(case$model$name, deparse1(method$call)))
    }
  }
})

test_that("a reverse walk is refused without fixed temperatures or a state", {
  case <- CASES$clustering
  state <- run(case$model, few_rows, smc("data", particles = 10))$parameters[1, ]
  refused(reverse_run(case$model, few_rows, smc(particles = 10), state, 1),
          "An adaptive schedule cannot be run in reverse")
  refused(reverse_run(case$model, few_rows, ais(particles = 10, linear(3)), state[-1], 1),
          "must have")
})

test_that("standard errors are as large as the spread of repeated runs", {
  runs_each <- fast_or_slow(40, 100)
  for (case in CASES)
    for (method in list(ais(particles = 50, sigmoidal(10)), smc("data", particles = 50))) {
    runs <- t(vapply(seq_len(runs_each), function(seed) {
      fit <- run(case$model, few_rows, method, seed)
      c(fit$log_evidence - case$truth, fit$se)
    }, c(0, 0)))
    expect_lt(abs(log(mean(runs[, 2]) / sd(runs[, 1]))), 3.5 / sqrt(runs_each))
  }
})

test_that("draws are named, on the user's scale, and of the posterior", {
  fit <- run(CASES$clustering$model, few_rows, smc("data", particles = 2000, steps = 3))
  draws <- posterior_draws(fit)
  expect_identical(colnames(draws), sprintf("label[%d]", 1:5))
  expect_true(all(draws %in% 1:3))
  together <- function(i, j) sum(exp(fit$log_weights) * (draws[, i] == draws[, j]))
  # by enumeration: the labels of the first two rows agree
  exact <- local({
    picks <- as.matrix(expand.grid(rep(list(1:3), 5)))
    p <- apply(picks, 1, function(pick) {
      root <- chol(1.69 * outer(pick, pick, `==`) + diag(0.64, 5))
      sum(log(c(0.5, 0.3, 0.2)[pick])) + sum(apply(few_rows, 2, function(y)
        -sum(log(diag(root))) - sum(backsolve(root, y, transpose = TRUE)^2) / 2))
    })
    sum(exp(p - log_sum_exp(p))[picks[, 1] == picks[, 2]])
  })
  expect_lt(abs(together(1, 2) - exact), 4.5 * sqrt(exact * (1 - exact) / 1000))
  unknown <- run(low_rank(rank = 1, infer = TRUE), few_rows, ais(particles = 10, linear(10)))
  expect_identical(colnames(unknown$draws)[1:5],
                   c("row_sd", "column_sd", "noise_sd", "v[1,a]", "v[1,b]"))
  expect_identical(ncol(run(binary_attributes(attributes = 2), few_rows,
                            smc(particles = 10))$draws), 10L)
})

test_that("unknown variances and proportions integrate to a proper evidence", {
  # one column, two rows, one component: a two-dimensional integral over the variances
  y <- matrix(c(0.3, -1.2), dimnames = list(NULL, "a"))
  density <- function(x) dgamma(1 / x, 3, rate = 3) / x^2
  truth <- log(integrate(Vectorize(function(s) density(s) * integrate(Vectorize(function(n) {
    root <- chol(s + diag(n, 2))
    density(n) * exp(-log(2 * pi) - sum(log(diag(root))) -
                     sum(backsolve(root, y, transpose = TRUE)^2) / 2)
  }), 0, Inf)$value), 0, Inf)$value)
  models <- list(clustering(components = 1, infer = TRUE, shape = 3, scale = 3))
  for (model in models)
    for (method in list(likelihood_weighting(20000), ais(particles = 400, sigmoidal(20)),
                        smc("data", particles = 1000, steps = 3))) {
    fit <- run(model, y, method)
    expect_lt(abs(fit$log_evidence - truth) / fit$se, 4)
  }
})

test_that("runs are reproducible, and can be saved between any two steps", {
  case <- CASES$binary
  expect_identical(run(case$model, few_rows, smc(particles = 20))$log_evidence,
                   run(case$model, few_rows, smc(particles = 20))$log_evidence)
  encoded <- encode(case$model, few_rows)
  problem <- new_problem(case$model, encoded, smc("data", particles = 20), c(1, 2))
  whole <- conduct(problem, encoded$rows)
  expect_identical(resumed(problem, encoded$rows, 4)$log_evidence, whole$log_evidence)
})

test_that("chib() agrees with enumeration and quadrature where sweeps mix", {
  for (case in CASES) for (plain in c(FALSE, TRUE)) {
    fits <- lapply(1:4, function(seed) run(case$model, few_rows,
                                           chib(draws = 4000, search = 100, plain = plain), seed))
    z <- vapply(fits, function(fit) (fit$log_evidence - case$truth) / fit$se, 0)
    # a heavy-tailed mean of densities where states are continuous
    expect_lt(max(abs(z)), if (case$model$name == "low_rank") 6 else 4.5, label = case$model$name)
  }
})

test_that("chib() is unbiased for Z from any state, with plain = TRUE it is not", {
  case <- CASES$clustering
  runs <- fast_or_slow(150, 400)
  ratio <- function(plain, draws) vapply(seq_len(runs), function(seed)
    exp(run(case$model, few_rows, chib(draws = draws, search = 6, plain = plain),
            seed)$log_evidence - case$truth), 0)
  honest <- ratio(FALSE, 30) # with fewer the tail is heavy
  expect_lt(abs(mean(honest) - 1), 4 * sd(honest) / sqrt(runs))
  skip_unless_slow()
  plain <- ratio(TRUE, 4)
  expect_gt(abs(mean(plain) - 1), 4 * sd(plain) / sqrt(runs))
})

test_that("chib() is right although sweeps do not change the signs of a product of matrices", {
  # given v the rows are independent and normal; sweeps hardly ever come from v to -v, which cost
  # the log of two
  set.seed(test_seed())
  y <- matrix(stats::rnorm(30), 30) %*% c(1.5, -2) + stats::rnorm(60, sd = 0.5)
  v <- as.matrix(expand.grid(seq(-6, 6, 0.03), seq(-6, 6, 0.03)))
  long <- 0.25 + rowSums(v^2)
  each <- -30 * log(2 * pi) - 15 * log(0.25 * long) -
    (sum(y^2) - rowSums((v %*% crossprod(y)) * v) / long) / 0.5 +
    rowSums(stats::dnorm(v, log = TRUE))
  truth <- max(each) + log(sum(exp(each - max(each))) * 0.03^2)
  model <- low_rank(rank = 1, row_sd = 1, column_sd = 1, noise_sd = 0.5)
  off <- function(...) mean(vapply(1:4, function(seed) run(model, y, chib(draws = 4000, ...),
                                                            seed)$log_evidence, 0)) - truth
  expect_lt(abs(off()), 0.35)
  expect_lt(abs(off(relabel = FALSE) + log(2)), 0.35)
})

# Five clusters so far apart that sweeps never exchange their labels; attributes likewise.
APART <- list(
  few = list(model = clustering(components = 2, prior_sd = 6, noise_sd = 0.7),
             lost = log(2),
             data = matrix(c(-6, -5, 6, 7), dimnames = list(NULL, "a")),
             choices = diag(2), log_p = log(c(0.5, 0.5))),
  many = list(model = clustering(components = 5, prior_sd = 20, noise_sd = 0.3),
              lost = lfactorial(5),
              data = cbind(a = c(-20, -20, 0, 20, 20), b = c(-20, 20, 1, -20, 20)),
              choices = diag(5), log_p = rep(-log(5), 5)),
  alike = list(model = clustering(components = 3, proportions = c(0.3, 0.3, 0.4), prior_sd = 20,
                                  noise_sd = 0.3), lost = log(2),
               data = cbind(a = c(-20, -20, 20, 21, 5), b = c(-20, -21, 20, 20, 30)),
               choices = diag(3), log_p = log(c(0.3, 0.3, 0.4)))
)
for (name in names(APART)) APART[[name]]$truth <- with(APART[[name]], enumerated(
  data, choices, log_p, model$args$prior_sd, model$args$noise_sd))

test_that("chib() sees all labellings if it relabels, else only those that sweeps reach", {
  for (case in APART[c("few", "many")]) for (plain in c(FALSE, TRUE)) {
    value <- function(...) run(case$model, case$data, chib(draws = 500, plain = plain, ...),
                               3)$log_evidence
    expect_lt(abs(value() - case$truth), 0.05)
    expect_lt(abs(value(relabel = FALSE) - case$truth + case$lost), 0.05)
  }
  # only components of equal proportion are exchanged, so three of six modes are missing or more
  unequal <- APART$alike
  off <- vapply(c(TRUE, FALSE), function(relabel)
    run(unequal$model, unequal$data, chib(draws = 500, relabel = relabel))$log_evidence, 0)
  expect_lt(abs(off[1] - off[2] - unequal$lost), 0.05)
  expect_lt(off[1], unequal$truth)
  attributes <- binary_attributes(attributes = 2, prior_sd = 20, noise_sd = 0.3)
  data <- cbind(a = c(20, 20, -5, 15), b = c(1, 1, 18, 19), c = c(8, 8, -30, -22))
  truth <- enumerated(data, as.matrix(expand.grid(0:1, 0:1)), rep(-log(4), 4), 20, 0.3)
  expect_lt(abs(run(attributes, data, chib(draws = 500))$log_evidence - truth), 0.3)
})

test_that("with relabelling chib() is unbiased for Z, by all relabellings and by one of many", {
  runs <- fast_or_slow(100, 1000)
  three <- as.matrix(expand.grid(0:1, 0:1, 0:1))
  p <- c(0.3, 0.3, 0.6)
  cases <- list(
    list(model = clustering(components = 3, prior_sd = 1.3, noise_sd = 0.8), rows = few_rows,
         truth = enumerated(few_rows, diag(3), rep(-log(3), 3), 1.3, 0.8)),
    list(model = clustering(components = 5, prior_sd = 1.3, noise_sd = 0.8), rows = few_rows,
         truth = enumerated(few_rows, diag(5), rep(-log(5), 5), 1.3, 0.8)),
    list(model = binary_attributes(attributes = 3, probabilities = p, prior_sd = 1.3,
                                   noise_sd = 0.8), rows = few_rows[1:3, ],
         truth = enumerated(few_rows[1:3, ], three,
                            drop(three %*% log(p) + (1 - three) %*% log(1 - p)), 1.3, 0.8)))
  for (case in cases) {
    ratio <- vapply(seq_len(runs), function(seed)
      exp(run(case$model, case$rows, chib(draws = 30, search = 6), seed)$log_evidence -
            case$truth), 0)
    expect_lt(abs(mean(ratio) - 1), 4 * sd(ratio) / sqrt(runs), label = deparse1(case$model$args))
  }
})

test_that("chib() takes its state from bdmc() and from posterior draws, and makes no search", {
  for (model in list(clustering(components = 2), binary_attributes(attributes = 2),
                     low_rank(rank = 1))) {
    made <- bdmc(model, n = 8, columns = 3, ais(schedule = sigmoidal(5)), chains = 2, budgets = 1,
                 seed = test_seed(1), progress = FALSE)
    value <- function(state, ...) run(model, made$data, chib(200, state = state, ...))$log_evidence
    shown <- encode(model, made$data)$user_names
    # as of posterior draws: labels from one, nothing that is known
    draw <- made$state[shown] + grepl("^label", shown)
    all <- value(made)
    for (state in list(made$state, unname(made$state), rev(made$state), draw, unname(draw)))
      expect_identical(value(state), all)
    expect_false(identical(value(made, plain = TRUE), all))
    expect_identical(value(made, search = 3), all)
    # a state of low density is as right as a good one, only less accurate
    expect_lt(abs(value(made, relabel = FALSE) - all), 3)
  }
  saved <- new_problem(CASES$clustering$model, encode(CASES$clustering$model, few_rows),
                       chib(40, state = c(1, 1, 2, 3, 1)), c(1, 2))
  rows <- encode(CASES$clustering$model, few_rows)$rows
  expect_identical(resumed(saved, rows, 3)$log_evidence, conduct(saved, rows)$log_evidence)
})

test_that("a state that does not fit the model is refused", {
  model <- CASES$clustering$model
  of <- function(state, ...) run(model, few_rows, chib(state = state), ...)
  refused(chib(state = "a"), "`state` must be a state, such as")
  refused(chib(state = c(1, NA)), "`state` must be a state, such as")
  refused(chib(state = matrix(1, 2, 2)), "`state` must be a state, such as")
  refused(chib(relabel = 2), "`relabel` must be TRUE or FALSE")
  refused(of(rep(1, 4)), paste("`state` must have 10 numbers, as `bdmc(...)$state` for these data,",
                               "or the 5 of a posterior draw, not 4."))
  refused(of(c(1, 1, 2, 4, 1)),
          "labels are whole numbers from 0 to 2, in posterior draws from 1 to 3")
  refused(of(c(1, 1, 2, 1.5, 1)), "labels are whole numbers")
  refused(of(c(a = 1, b = 1, c = 2, d = 1, e = 1)), "`label[5]`, not `a`")
  own <- unname(encode(model, few_rows)$theta_names)
  state <- c(1.69, 0.64, 0.5, 0.3, 0.2, 0, 0, 1, 2, 0)
  expect_true(is.finite(of(state)$log_evidence))
  refused(of(replace(state, 2, 1)),
          "`state` must be a state of this model, whose noise_sd is 0.8, not 1")
  refused(of(replace(state, 4, 0.4)), "whose proportion[2] is 0.3, not 0.4")
  refused(run(CASES$binary$model, few_rows, chib(state = c(2, rep(1, 9)))),
          "attributes are zeros and ones")
})

test_that("from a posterior draw chib() is too low by the mutual information of state and chain", {
  # the mean density of m draws is at least a share 1 / m of that of the draw which comes from the
  # state: the error is between minus the information of one draw, and that plus log m
  skip_unless_slow()
  noise <- 0.2
  errors <- vapply(1:24, function(seed) {
    made <- bdmc(low_rank(rank = 1, noise_sd = noise), n = 12, columns = 8,
                 ais(schedule = sigmoidal(1000)), chains = 10, budgets = 1, seed = test_seed(seed),
                 progress = FALSE)
    truth <- mean(c(made$bounds$lower, made$bounds$upper))
    v <- made$state[4:11]
    u <- made$state[12:23]
    a <- sum(u^2)
    b <- sum(v^2)
    # Laplace's method along the scale and the sign that the data leave open
    formula <- log((noise^2 + a) * (noise^2 + b) / noise^2 / (noise^2 + a + b)) / 2 + log(2) / 2
    c(mean(vapply(1:4, function(s) run(made$model, made$data,
                                       chib(draws = 4, relabel = FALSE, state = made),
                                       s)$log_evidence, 0)) - truth, formula)
  }, c(0, 0))
  se <- sd(errors[1, ]) / sqrt(ncol(errors))
  expect_gt(mean(errors[1, ]), -mean(errors[2, ]) - 3 * se)
  expect_lt(mean(errors[1, ]), -mean(errors[2, ]) + log(4) + 3 * se)
})

test_that("bad input is refused before anything runs", {
  refused(clustering(components = 2, proportions = c(0.5, 0.6)),
          "`proportions` must sum to one, not to 1.1")
  refused(clustering(components = 2, proportions = 1), "one value for each of the 2 components")
  refused(clustering(components = 2, proportions = c(1, 0)),
          "`proportions` must hold only positive numbers")
  refused(clustering(components = 0), "`components` must be a whole number")
  refused(clustering(components = 2, noise_sd = 0), "`noise_sd` must be a positive number")
  refused(clustering(components = 2, infer = NA), "`infer` must be TRUE or FALSE")
  refused(low_rank(rank = 1.5), "`rank` must be a whole number")
  refused(low_rank(rank = 1, column_sd = -1), "`column_sd` must be a positive number")
  refused(binary_attributes(attributes = 17),
          "`attributes` must be a whole number between 1 and 16")
  refused(binary_attributes(attributes = 2, probabilities = c(0.5, 1)),
          "`probabilities` must lie between 0 and 1")
  refused(binary_attributes(attributes = 3, probabilities = c(0.5, 0.1)),
          "one for each of the 3 attributes")
  refused(run(clustering(components = 6), few_rows, smc()),
          "`components` must be at most the number of rows (5), not 6.")
  refused(run(low_rank(rank = 2), few_rows, smc()),
          "`rank` must be less than the number of rows and of columns")
  refused(run(clustering(components = 2), replace(few_rows, 3, NA), smc()), "NA")
  refused(run(clustering(components = 2), data.frame(a = letters), smc()), "`a`")
  refused(run(clustering(~ c, components = 2), few_rows, smc()), "`c`")
  model <- clustering(components = 2)
  for (method in list(sgais(), online_nested(), laplace(), bridge(), exact()))
    refused(run(model, few_rows, method),
            paste0(" for a model with latent variables, not ", method$name, "()."))
  refused(run(model, few_rows, smc(kernel = hmc())), "it is moved by Gibbs sweeps")
  refused(run(model, few_rows, smc("data", chunk = 2)), "`chunk` must be 1")
  refused(model_functions(model, few_rows), "latent variables")
  refused(simulate(model, data = few_rows, parameters = 1), "latent variables")
  fit <- run(model, few_rows, smc(particles = 10))
  expect_equal(predict(fit), predict(fit, few_rows))
  refused(predict(fit, few_rows[, "a", drop = FALSE]), "`b`")
  refused(predict(fit, few_rows, type = "response"), "`type` must be")
  refused(run(gaussian_mean(), 1:3, chib()),
          "chib() is for models with latent variables, such as clustering()")
  refused(run(clustering(components = 2, infer = TRUE), few_rows, chib()),
          "needs known variances and probabilities")
  refused(chib(draws = 1), "`draws` must be")
  refused(chib(search = 0), "`search` must be")
  refused(chib(plain = 2), "`plain` must be TRUE or FALSE")
  # a constant column is a column like any other
  expect_true(is.finite(run(model, cbind(few_rows, c = 1), smc(particles = 20))$log_evidence))
})

test_that("summary() says that equal parts are numbered arbitrarily", {
  printed <- function(model)
    paste(utils::capture.output(print(summary(run(model, few_rows, smc(particles = 10))))),
          collapse = " ")
  expect_match(printed(clustering(components = 2)), "Components are numbered arbitrarily.",
               fixed = TRUE)
  expect_match(printed(clustering(components = 2, infer = TRUE)),
               "Components are numbered arbitrarily.", fixed = TRUE)
  for (model in list(CASES$clustering$model, CASES$binary$model, CASES$low_rank$model))
    expect_false(grepl("arbitrarily", printed(model)))
})

test_that("models with latent variables and their fits are printed in words", {
  for (case in CASES) expect_snapshot(print(case$model))
  expect_snapshot(print(clustering(~ a + b, components = 2, infer = TRUE)))
  expect_snapshot(print(binary_attributes(attributes = 2, infer = TRUE)))
  expect_snapshot(print(low_rank(rank = 2, infer = TRUE)))
})

# Predictions --------------------------------------------------------------------------------------

new_rows <- cbind(a = c(-0.7, 1.5, 9), b = c(0.4, -2, 0))

test_that("predictive densities are p(new row, rows) / p(rows), exactly if draws are all states", {
  choices <- list(clustering = diag(3), binary = as.matrix(expand.grid(0:1, 0:1)))
  log_probability <- list(clustering = log(c(0.5, 0.3, 0.2)),
                          binary = log(as.vector(outer(c(0.7, 0.3), c(0.4, 0.6)))))
  rows <- few_rows[1:3, ]
  for (name in names(choices)) {
    model <- CASES[[name]]$model
    of <- function(data) enumerated(data, choices[[name]], log_probability[[name]], 1.3, 0.8)
    fit <- run(model, rows, smc(particles = 10))
    own <- fit$parameters[1, ]
    latents <- grepl("^label|^z", names(own))
    all <- as.matrix(expand.grid(rep(list(if (name == "clustering") 0:2 else 0:1), sum(latents))))
    fit$parameters <- t(apply(all, 1, function(values) replace(own, latents, values)))
    picks <- if (name == "clustering") all + 1 else 1 + all[, c(1, 3, 5)] + 2 * all[, c(2, 4, 6)]
    log_joint <- apply(picks, 1, function(pick) {
      z <- choices[[name]][pick, , drop = FALSE]
      root <- chol(1.69 * tcrossprod(z) + diag(0.64, 3))
      sum(log_probability[[name]][pick]) - 2 * sum(log(diag(root))) -
        sum(backsolve(root, rows, transpose = TRUE)^2) / 2
    })
    fit$log_weights <- log_joint - log_sum_exp(log_joint)
    truth <- vapply(1:3, function(i) of(rbind(rows, new_rows[i, ])), 0) - of(rows)
    expect_equal(predict(fit, new_rows), truth, tolerance = 1e-9)
  }
})

test_that("predictive densities of fits are near the truth", {
  truth <- vapply(1:2, function(i) low_rank_truth(rbind(few_rows, new_rows[i, ])), 0) -
    CASES$low_rank$truth
  methods <- list(smc("data", particles = 4000), smc(particles = 4000),
                  ais(particles = 4000, sigmoidal(50)))
  for (method in fast_or_slow(methods[1], methods)) {
    fit <- run(CASES$low_rank$model, few_rows, method)
    expect_lt(max(abs(predict(fit, new_rows[1:2, ], type = "density") - truth)), 0.12)
  }
})

test_that("with unknown settings predictive densities of successive rows give the evidence", {
  for (model in list(clustering(components = 2, infer = TRUE, shape = 3, scale = 2),
                     low_rank(rank = 1, infer = TRUE, shape = 3, scale = 2),
                     binary_attributes(attributes = 2, infer = TRUE, shape = 3, scale = 2))) {
    less <- run(model, few_rows[1:4, ], smc(particles = 4000))
    all <- run(model, few_rows, smc(particles = 4000))
    step <- predict(less, few_rows[5, , drop = FALSE])
    expect_lt(abs(step - (all$log_evidence - less$log_evidence)), 0.15)
  }
  # draws of any method; rows by name, and each by itself
  expect_true(all(is.finite(predict(run(CASES$clustering$model, few_rows, chib(draws = 20)),
                                    new_rows))))
  named <- data.frame(c = "x", b = few_rows[1:2, "b"], a = few_rows[1:2, "a"])
  expect_equal(predict(all, named[, 3:2]), predict(all, few_rows[1:2, ]))
  expect_equal(predict(all, few_rows[2, , drop = FALSE]), predict(all, few_rows[1:2, ])[2])
})

test_that("errors that the standard error cannot show give a warning", {
  iris4 <- scale(iris[1:4])
  model <- clustering(components = 3, prior_sd = 3, noise_sd = 0.3)
  sorted <- run(model, iris4, smc("data", order = "given", particles = 200))
  expect_match(sorted$warnings, "is very improbable|on one or two particles|is below a lower bound",
               all = FALSE)
  spread <- run(model, iris4[seq(1, 150, 3), ], ais(particles = 20, sigmoidal(30)))
  expect_match(spread$warnings,
               "The chains' log weights have a standard deviation|on one or two particles",
               all = FALSE)
  expect_match(run(model, few_rows, chib(draws = 50, relabel = FALSE))$warnings,
               "too low by up to the log of the number of their orders", all = FALSE)
  fine <- run(CASES$clustering$model, few_rows, ais(particles = 50, sigmoidal(50)))
  expect_length(fine$warnings, 0)
})

test_that("attributes with features much larger than the noise keep their digits", {
  model <- binary_attributes(attributes = 2, probabilities = c(0.3, 0.6), prior_sd = 1e5,
                             noise_sd = 1)
  data <- with_own_seed(test_seed(8), {
    features <- matrix(rnorm(4, sd = 1e5), 2)
    `colnames<-`(rbind(c(1, 0), c(1, 1), c(0, 1), c(1, 0)) %*% features + rnorm(8), c("a", "b"))
  })
  truth <- enumerated(data, as.matrix(expand.grid(0:1, 0:1)),
                      log(as.vector(outer(c(0.7, 0.3), c(0.4, 0.6)))), 1e5, 1)
  fit <- run(model, data, likelihood_weighting(20000))
  expect_lt(abs(fit$log_evidence - truth), 4 * fit$se + 0.01)
})

test_that("a model with latent variables has a default method, and a crosscheck", {
  fit <- evidence(CASES$clustering$model, few_rows, seed = test_seed(), progress = FALSE)
  expect_identical(fit$method$name, "smc")
  check <- crosscheck(CASES$clustering$model, few_rows, seed = test_seed(), progress = FALSE)
  expect_true(all(check$error == ""))
  expect_match(paste(utils::capture.output(print(summary(
    run(CASES$clustering$model, few_rows, ais(particles = 5, linear(7)))))), collapse = " "),
               "7 annealing steps", fixed = TRUE)
})

test_that("held-out densities agree with enumeration within their stated errors", {
  choices <- list(clustering = diag(3), binary = as.matrix(expand.grid(0:1, 0:1)))
  log_probability <- list(clustering = log(c(0.5, 0.3, 0.2)),
                          binary = log(as.vector(outer(c(0.7, 0.3), c(0.4, 0.6)))))
  for (name in names(CASES)) {
    of <- function(data) if (name == "low_rank") low_rank_truth(data)
    else enumerated(data, choices[[name]], log_probability[[name]], 1.3, 0.8)
    truth <- vapply(1:2, function(i) of(rbind(few_rows, new_rows[i, ])), 0) - CASES[[name]]$truth
    for (method in list(ais(100, sigmoidal(50)), smc("data", particles = 100))) {
      runs <- if (method$name == "ais") 1 else 4
      found <- lapply(seq_len(fast_or_slow(30, 150)), function(seed)
        log_lik(quiet_fit(CASES[[name]]$model, few_rows, method, replicates = runs,
                          seed = test_seed(seed), progress = FALSE), new_rows[1:2, ],
                type = "heldout"))
      error <- vapply(found, function(one) one$log_lik, c(0, 0)) - truth
      se <- vapply(found, function(one) one$se, c(0, 0))
      expect_lt(max(abs(rowMeans(error)) / (apply(error, 1, sd) / sqrt(ncol(error)))), 4.5)
      ratio <- sqrt(rowMeans(error^2) / rowMeans(se^2))
      expect_gt(min(ratio), 0.6)
      expect_lt(max(ratio), 1.5)
    }
  }
})

test_that("held-out densities are those of predict(), for other models as well", {
  fit <- run(clustering(components = 2, infer = TRUE), few_rows, smc("data", particles = 20),
             replicates = 3)
  found <- log_lik(fit, new_rows, type = "heldout")
  expect_identical(found$log_lik, predict(fit, new_rows, type = "density"))
  expect_true(all(found$se > 0))
  mixture <- run(gaussian_mixture(components = 2), scale(faithful[1:60, ]), laplace())
  new <- scale(faithful)[61:70, ]
  expect_identical(log_lik(mixture, new, type = "heldout")$log_lik,
                   predict(mixture, new, type = "density"))
  # the error of a mean of weighted draws, from the log-likelihoods of all draws
  each <- log_lik(mixture, new, weighted = TRUE)
  weights <- exp(attr(each, "log_weights"))
  mean <- colSums(weights * exp(each))
  expect_equal(log_lik(mixture, new, type = "heldout")$se,
               sqrt(colSums((weights * sweep(exp(each), 2, mean, "-"))^2)) / mean)
  line <- run(linear_regression(dist ~ speed, sigma = 15, prior_sd = 10), cars[1:40, ],
              laplace(importance = 4000))
  held <- log_lik(line, cars[41:43, ], type = "heldout")
  truth <- vapply(41:43, function(i)
    run(line$model, cars[c(1:40, i), ], exact())$log_evidence, 0) -
    run(line$model, cars[1:40, ], exact())$log_evidence
  expect_lt(max(abs(held$log_lik - truth) / held$se), 4.5)
  refused(log_lik(fit, type = "heldout"), "`newdata` must be given with `type = \"heldout\"`")
  refused(log_lik(fit, new_rows), "For new rows take `type = \"heldout\"`")
  refused(log_lik(fit, new_rows, type = "heldout", draws = 3), "`draws` must not be given with")
  refused(log_lik(fit, new_rows, type = "heldout", weighted = TRUE), "`weighted` must not be given")
  refused(log_lik(fit, new_rows, type = "else"), "`type` must be")
  grouped <- run(linear_regression(dist ~ speed + (1 | g), sigma = 15, prior_sd = 10,
                                   group_sd = half_normal(5)),
                 cbind(cars, g = rep(1:5, 10)), laplace())
  refused(log_lik(grouped, cbind(cars[1:2, ], g = 1), type = "heldout"), "`type` must be \"draws\"")
})

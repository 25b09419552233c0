# Settings by name: what engines and kernels know, and what happens to the rest.

set_to <- function(...) {
  setup <- run_problem(linear_regression(y ~ x, sigma = 1,
                                         prior_sd = 1), data.frame(x = 1:20, y = rep(1:2, 10)),
                       smc(particles = 20))
  setup$problem$settings <- utils::modifyList(setup$problem$settings, list(...))
  setup
}

refusal <- function(setup) {
  tryCatch(.Call(ffi_run_new, setup$problem), logevidence_error = conditionMessage)
}

test_that("a setting that an engine does not know is an error", {
  expect_match(refusal(set_to(serach = 1)), "There is no setting `serach` of the engine walk.",
               fixed = TRUE)
  expect_match(refusal(set_to(`2.stepz` = 1)), "no setting `2.stepz`", fixed = TRUE)
  expect_match(refusal(set_to(`4.steps` = 1)), "no setting `4.steps`", fixed = TRUE)
  expect_match(refusal(set_to(particles = 20)), "no setting `particles`", fixed = TRUE)
  expect_match(refusal(set_to(`1.shuffle` = 1)), "no setting `1.shuffle`", fixed = TRUE)
  expect_match(refusal(set_to(live = 10)), "no setting `live`", fixed = TRUE)
})

test_that("a setting of another kind or out of range is an error", {
  expect_match(refusal(set_to(shuffle = 2)),
               "`shuffle` of the engine walk must be a whole number from 0 to 1, not 2")
  expect_match(refusal(set_to(`1.particles` = 20.5)), "must be a whole number")
  expect_match(refusal(set_to(`1.particles` = NaN)), "must be a whole number")
  expect_match(refusal(set_to(`1.threshold` = 1.5)), "must be a number from 0 to 1, not 1.5")
  expect_match(refusal(set_to(`1.schedule` = "adaptiv")),
               "must be one of one fixed adaptive curvature, not adaptiv")
  expect_match(refusal(set_to(`1.schedule` = 1)), "must be one of .* not a number")
  expect_match(refusal(set_to(lag = "two")), "must be a number, not \"two\"")
  expect_match(refusal(set_to(lag = c(1, 2))), "must be one number, not 2")
})

test_that("settings of kernels are checked, too", {
  setup <- set_to()
  setup$problem$kernels[[1]]$args$stepsize <- 1
  expect_match(refusal(setup), "There is no setting `stepsize` of the kernel hmc().", fixed = TRUE)
  setup <- set_to()
  setup$problem$kernels[[1]]$args$step_size <- -1
  expect_match(refusal(setup), "`step_size`.* must be a number from 0")
})

test_that("constructors of kernels have the settings of the tables in C, with the same defaults", {
  known <- tables()$kernels
  names <- constructors_of("evidence_kernel")
  kernels <- lapply(stats::setNames(names, names), function(name) function_named(name)())
  own <- vapply(kernels, `[[`, "", "name")
  # an exported kernel for each in C, except Gibbs sweeps, which no constructor makes
  expect_setequal(names(known), c(own, "sweeps"))
  for (kernel in kernels) {
    table <- known[[kernel$name]]$settings
    expect_setequal(as.character(names(kernel$args)), as.character(table$name))
    if (!length(kernel$args)) next
    # NaN: the kernel chooses
    given <- stats::setNames(table$default, table$name)[names(kernel$args)]
    chosen <- is.nan(given) | names(given) == "leapfrog" # which is what mala() sets
    expect_identical(unlist(kernel$args[!chosen]), given[!chosen], info = kernel$name)
  }
})

test_that("every setting of a method is in the table of its engine, or R's own", {
  known <- tables()$engines
  for (name in constructors_of("evidence_method")) {
    method <- function_named(name)()
    table <- known[[method$estimator]]
    own <- setdiff(names(method$settings), CHOSEN_IN_R)
    staged <- grepl("^[0-9][.]", own)
    expect_identical(setdiff(own[!staged], c(table$settings$name, "stages")), character(),
                     info = name)
    expect_identical(setdiff(sub("^[0-9][.]", "", own[staged]), table$stage$name), character(),
                     info = name)
    expect_true(all(method$traits %in% names(TRAITS)), info = name)
  }
})

test_that("R and C refuse wrong settings in the same words", {
  line <- linear_regression(y ~ x, sigma = 1, prior_sd = 1)
  data <- data.frame(x = 1:20, y = rep(1:2, 10))
  own <- function(call) tryCatch(call, logevidence_error = conditionMessage)
  # a problem that R accepts, with the parts of another one
  same <- function(sentence, method, model = line, kernel = NULL, ...) {
    problem <- run_problem(model, data, method)$problem
    if (!is.null(kernel)) problem$kernels <- list(kernel[c("name", "args")])
    problem <- utils::modifyList(problem, list(...))
    expect_identical(refusal(list(problem = problem)), sentence)
  }
  draws <- logevidence::kernel_prior_draws()
  same(own(smc(kernel = draws)), smc(particles = 20), kernel = draws)
  same(own(online_nested(kernel = draws)), online_nested(20), kernel = draws)
  same(own(nested(kernel = hmc())), nested(20), kernel = hmc())
  same(own(sequential(20, kernel = hmc())), sequential(20), kernel = hmc())
  same(own(bdmc(line, 20, method = smc(kernel = baoab()))), smc(particles = 20), kernel = baoab(),
       settings = list(record = 1))
  for (engine in list(chib(), variational(), exact())) {
    model <- softmax_regression(factor(y) ~ x, prior_sd = 1)
    problem <- run_problem(model, data, laplace())$problem
    problem$estimator <- engine$estimator
    problem$settings <- lapply(for_engine(engine$settings), as.double)
    expect_identical(refusal(list(problem = problem)), own(evidence(model, data, engine)))
  }
  mixture <- gaussian_mixture(~ x, components = 2)
  refused(model_functions(mixture, data)$exact(), own(evidence(mixture, data, exact())))
})

test_that("words and settings that R accepts are those of the tables in C", {
  known <- tables()
  words <- function(table, name) strsplit(table$words[table$name == name], " ")[[1]]
  stage <- known$engines$walk$stage
  for (scheme in words(stage, "resampling")) expect_identical(check_resampling(scheme), scheme)
  for (mass in setdiff(words(stage, "mass"), "default")) expect_identical(check_mass(mass), mass)
  for (kernel in list(hmc(), mala(), rwm(), slice(), sgld(), sghmc(), baoab(),
                      logevidence::kernel_prior_draws()))
    expect_true(all(names(kernel$args) %in% known$kernels[[kernel$name]]$settings$name),
                info = kernel$name)
  for (engine in known$engines) for (table in engine[c("settings", "stage")]) {
    expect_true(all(tapply(table$kind, table$name, function(kinds) length(unique(kinds))) == 1))
    inside <- is.na(table$default) | (table$default >= table$least & table$default <= table$most)
    expect_true(all(inside | table$name == "particles"))
  }
})

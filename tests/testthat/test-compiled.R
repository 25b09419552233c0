# Models in C: the package's own example, compiled here, against the built-in model and its closed
# form.

# Also an integral without data, and tables that are not right, in the same file.
compiler_works <- compile_model(
  system.file("examples", "normal_mean.c", package = "logevidence"), "normal_mean",
  more = c(
    'static size_t none(const void *self) { (void)self; return 0; }',
    'static le_status still(const void *self, size_t m, const double *theta, const le_rows *rows,',
    '                       double *value, double *scratch)',
    '{ (void)rows; (void)scratch; log_prior(self, m, theta, value); return LE_OK; }',
    'static le_status hollow(const void *self, size_t m, const double *theta, const le_rows *rows,',
    '                        double *value, double *scratch)',
    '{ le_status s = log_lik(self, m, theta, rows, value, scratch);',
    '  for (size_t i = 0; i < m; i++) if (theta[i] > 0.5) value[i] = NAN; return s; }',
    'static void unsure(const void *self, size_t m, const double *theta, double *value)',
    '{ log_prior(self, m, theta, value);',
    '  for (size_t i = 0; i < m; i++) if (theta[i] > 0.5) value[i] = NAN; }',
    '#define TABLE(name, changes) const le_model_ops *name(void) \\',
    '{ static le_model_ops t; t = ops; changes return &t; }',
    'TABLE(square_table, t.width = none; t.log_lik = still; t.log_lik_each = still;',
    '      t.log_lik_grad = NULL; t.traits = LE_MODEL_MULTIMODAL;)',
    'TABLE(flat_table, t.log_lik_grad = NULL; t.log_lik_hess = NULL;)',
    'TABLE(alone_table, t.traits |= LE_MODEL_ONE_THREAD;)',
    'TABLE(old_table, t.version = 0;)',
    'TABLE(short_table, t.size = offsetof(le_model_ops, exact);)',
    'TABLE(empty_table, t.draw_prior = NULL;)',
    'TABLE(mute_table, t.simulate = NULL;)',
    'static const char *const nothing[] = {NULL};',
    'TABLE(bare_table, t.settings = nothing;)',
    'TABLE(silent_table, t.settings = NULL;)',
    'TABLE(hollow_table, t.log_lik = hollow;)',
    'TABLE(unsure_table, t.log_prior = unsure;)',
    'const le_model_ops *no_table(void) { return NULL; }'
  )
)
normal_mean <- function(...)
  compiled_model("normal_mean_table", "mean", ..., PACKAGE = "normal_mean")
few <- c(1.2, 0.4, 2.1)

test_that("a model in C has the densities of the built-in one", {
  needs_compiler(compiler_works)
  ours <- model_functions(normal_mean(sigma = 2), few)
  theirs <- model_functions(gaussian_mean(sigma = 2, prior_sd = 1), few)
  at <- c(-3, 0.1, 5)
  for (what in c("log_prior", "log_prior_gradient", "log_lik", "gradient", "log_lik_each"))
    expect_equal(ours[[what]](at), theirs[[what]](at), tolerance = 1e-13, label = what)
  draws <- ours$draw_prior(1e4, seed = test_seed(1))
  expect_gt(stats::ks.test(draws, "pnorm")$p.value, 1e-4)
})

test_that("settings that the model does not read are refused, if it says which it reads", {
  needs_compiler(compiler_works)
  refused(normal_mean(sgima = 2), "has no setting `sgima`: its settings are `sigma`")
  other <- function(table) compiled_model(table, "mean", sgima = 2, PACKAGE = "normal_mean")
  refused(other("bare_table"), "has no settings, and so not `sgima`")
  # a table without the list, as those of earlier headers
  expect_s3_class(other("silent_table"), "evidence_model")
})

test_that("methods of every kind take a model in C", {
  needs_compiler(compiler_works)
  truth <- logml(evidence(gaussian_mean(sigma = 2, prior_sd = 1), few, exact()))
  for (method in list(sgais(), smc(), ais(), nested(100), laplace(importance = 200), bridge(),
                      likelihood_weighting(1e4), online_nested(60), hybrid(2, 50))) {
    fit <- evidence(normal_mean(sigma = 2), few, method, seed = test_seed(3), progress = FALSE)
    expect_lt(abs(logml(fit) - truth), 4 * fit$se, label = paste("error of", method$name))
  }
  expect_equal(colnames(posterior_draws(fit)), "mean")
  expect_length(predict(fit, c(0, 1)), 2)
})

test_that("a model in C that simulates data has bounds by bdmc()", {
  needs_compiler(compiler_works)
  s <- bdmc(normal_mean(sigma = 2), 10, method = smc(particles = 50), chains = 5,
            seed = test_seed(1), progress = FALSE)
  truth <- model_functions(gaussian_mean(sigma = 2), s$data)$exact()
  expect_lt(abs(s$bounds$lower[3] - truth), 0.3)
  expect_lt(abs(s$bounds$upper[3] - truth), 0.3)
  fit <- evidence(normal_mean(sigma = 2), few, ais(), seed = test_seed(1), progress = FALSE)
  expect_lt(max(abs(sandwich_check(fit, 2, seed = test_seed(1), progress = FALSE)$gap)), 0.5)
  mute <- compiled_model("mute_table", "mean", PACKAGE = "normal_mean")
  refused(bdmc(mute, 10), "`mute_table` has no `simulate`")
})

test_that("a kernel that fits is chosen for a model in C without gradients", {
  needs_compiler(compiler_works)
  truth <- logml(evidence(gaussian_mean(sigma = 2, prior_sd = 1), few, exact()))
  flat <- compiled_model("flat_table", "mean", sigma = 2, PACKAGE = "normal_mean")
  fit <- evidence(flat, few, seed = test_seed(1))
  expect_equal(fit$method$name, "smc")
  named <- evidence(flat, few, smc(kernel = slice()), seed = test_seed(1))
  expect_identical(posterior_draws(fit), posterior_draws(named))
  for (method in list(smc("data"), ais(), bridge(), power_posterior())) {
    fit <- evidence(flat, few, method, seed = test_seed(2))
    expect_lt(abs(logml(fit) - truth), 4.5 * fit$se, label = paste("error of", method$name))
  }
  checked <- crosscheck(flat, few, seed = test_seed(3), progress = FALSE)
  expect_true(all(is.finite(checked$log_evidence)))
  refused(evidence(flat, few, sgais()), "`method` sgais() needs gradients")
  refused(evidence(flat, rows_in_memory(data.frame(x = few))), "smc(\"data\") for a source")
  refused(evidence(flat, few, smc(kernel = hmc())), "`kernel` must be rwm() or slice()")
  refused(evidence(flat, few, power_posterior(run = smc(kernel = hmc()))), "needs gradients")
})

test_that("threads change nothing", {
  needs_compiler(compiler_works)
  run <- function(threads) logml(evidence(normal_mean(), sin(1:2000), smc(), seed = test_seed(),
                                          threads = threads, progress = FALSE))
  expect_identical(run(1), run(2))
})

test_that("an integral in C needs no data, and methods can search for its modes", {
  needs_compiler(compiler_works)
  square <- compiled_model("square_table", "x", PACKAGE = "normal_mean")
  expect_true(may_have_modes(square))
  fit <- evidence(square, method = nested(), seed = test_seed(1), progress = FALSE)
  expect_lt(abs(logml(fit) + log(4 * pi) / 2), 4 * fit$se)
  expect_error(evidence(square, 1:3), "model without data", class = "logevidence_error")
  fit <- evidence(square, method = smc(), seed = test_seed(1))
  expect_lt(abs(logml(fit) + log(4 * pi) / 2), 4.5 * fit$se)
})

test_that("a model compiled with an earlier header works", {
  needs_compiler(compiler_works)
  short <- compiled_model("short_table", "mean", sigma = 2, PACKAGE = "normal_mean")
  for (method in list(smc(), nested(50)))
    expect_identical(logml(evidence(short, few, method, seed = test_seed())),
                     logml(evidence(normal_mean(sigma = 2), few, method, seed = test_seed())))
})

test_that("a wrong table of a model in C is refused when the model is made", {
  needs_compiler(compiler_works)
  wrong <- function(code, sentence)
    expect_error(code, sentence, fixed = TRUE, class = "logevidence_error")
  from <- function(symbol, parameters = "mean", ...)
    compiled_model(symbol, parameters, ..., PACKAGE = "normal_mean")
  wrong(from("old_table"), "compile it again")
  wrong(from("no_table"), "compile it again")
  wrong(from("empty_table"), "`draw_prior`")
  wrong(from("normal_mean_table", c("a", "b")), "must name the 1 parameters")
  wrong(from("normal_mean_table", sigma = -1), "`sigma` must be a positive number, not -1")
  wrong(from("normal_mean_table", "mean", 3), "names, each its own")
  wrong(from("normal_mean_table", "mean", sigma = TRUE), "`sigma` must be numeric or one string")
  wrong(from(3), "`symbol` must be")
  wrong(evidence(normal_mean()), "`data` must be given")
  wrong(evidence(normal_mean(), cbind(1:3, 4:6)), "must have 1 column, not 2")
  wrong(evidence(normal_mean(), data.frame(a = c("x", "y"))), "not `a`")
  wrong(evidence(normal_mean(), c(1, NA)), "NA")
  wrong(evidence(normal_mean(), few, exact()), "closed form")
  expect_output(print(normal_mean(sigma = 2)), "sigma = 2")
})

test_that("a symbol that is not loaded is named", {
  expect_error(compiled_model("no_such_symbol_anywhere", "a"), "no_such_symbol_anywhere",
               class = "logevidence_error")
})

test_that("NaN from a model in C is an error, as from functions of R", {
  needs_compiler(compiler_works)
  bad <- function(table) compiled_model(table, "mean", sigma = 2, PACKAGE = "normal_mean")
  for (method in list(smc(), nested(50), likelihood_weighting(100), smc(kernel = rwm()), sgais()))
    expect_error(evidence(bad("hollow_table"), few, method, seed = test_seed()),
                 "`log_lik` of the model in C must give finite numbers or -Inf, not NaN, at ",
                 class = "logevidence_error", label = method$name)
  expect_error(evidence(bad("unsure_table"), few, smc(kernel = rwm()), seed = test_seed()),
               "`log_prior` of the model in C must give finite numbers",
               class = "logevidence_error")
})

test_that("a model in C that is not safe for threads runs in one, with the same bits", {
  needs_compiler(compiler_works)
  alone <- compiled_model("alone_table", "mean", sigma = 2, PACKAGE = "normal_mean")
  expect_identical(compiled_says(alone)$threads, 1)
  found <- check_model(alone, few, seed = test_seed(1))
  expect_true(is.na(found$holds[found$check == "two threads"]))
  expect_identical(quiet_fit(alone, few, seed = 1, threads = 2)$log_evidence,
                   quiet_fit(alone, few, seed = 1, threads = 1)$log_evidence)
})

test_that("a library may be unloaded after its runs", {
  needs_compiler(compiler_works)
  model <- normal_mean()
  evidence(model, few, smc(), seed = test_seed())
  dyn.unload(file.path(tempdir(), paste0("normal_mean", .Platform$dynlib.ext)))
  gc()
  expect_error(evidence(model, few), "use dyn.load() first", fixed = TRUE,
               class = "logevidence_error")
})

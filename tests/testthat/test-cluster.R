# The workers of a cluster: the same bits as without one, and what happens when they are lost.

skip_if_not_installed("parallel")
local_cluster <- function(n = 2, env = parent.frame()) {
  cl <- tryCatch(parallel::makePSOCKcluster(n), error = function(e) skip(conditionMessage(e)))
  # one by one, because some may have ended
  end <- function() for (k in seq_along(cl))
    suppressWarnings(try(parallel::stopCluster(cl[k]), silent = TRUE))
  do.call(on.exit, list(bquote(.(end)()), add = TRUE), envir = env)
  cl
}
line <- linear_regression(dist ~ speed)
user <- custom_model("m", function(theta, data) dnorm(data, theta, 1, log = TRUE),
                     function(theta) dnorm(theta, 0, 3, log = TRUE), function(n) rnorm(n, 0, 3))
numbers <- c(1.2, 0.4, 2.1, 0.9, 1.5, -0.3)
of_workers <- function(cl, f, ...) parallel::clusterCall(cl, f, ...)

test_that("replicates have the same bits on workers, whatever the method and the model", {
  cl <- local_cluster()
  calls <- list(list(line, cars, nested(50)), list(line, cars), list(line, cars, ais(50)),
                list(user, numbers, smc(particles = 30)),
                list(clustering(components = 2), iris[1:20, 1:2], smc("data", 20)))
  for (call in calls) {
    fit <- function(...)
      do.call(quiet_fit, c(call, list(seed = test_seed(1), replicates = 3, ...)), quote = TRUE)
    expect_same(fit(cl = cl), fit(), deparse1(call[[1]]$name))
  }
  # a fit from workers takes further rows
  fit <- quiet_fit(line, cars[1:40, ], seed = 1, replicates = 2, cl = cl)
  here <- quiet_fit(line, cars[1:40, ], seed = 1, replicates = 2)
  expect_identical(update(fit, cars[41:50, ])$log_evidence,
                   update(here, cars[41:50, ])$log_evidence)
})

test_that("models of a list, methods, chains and simulated streams have the same bits", {
  cl <- local_cluster()
  models <- list(a = line, b = linear_regression(dist ~ 1),
                 c = regression(dist ~ speed, "student"))
  numbers_of <- function(table)
    lapply(c("log_evidence", "se"), function(column) as.vector(table[[column]]))
  expect_identical(numbers_of(evidence(models, cars, seed = 1, cl = cl)),
                   numbers_of(evidence(models, cars, seed = 1)))
  mixed <- list(user = user, mean = gaussian_mean())
  expect_identical(evidence(mixed, numbers, smc(), seed = 1, replicates = 2, cl = cl)$log_evidence,
                   evidence(mixed, numbers, smc(), seed = 1, replicates = 2)$log_evidence)
  methods <- list(sgais(), nested(50), laplace())
  expect_identical(numbers_of(crosscheck(line, cars, methods, seed = 1, cl = cl)),
                   numbers_of(crosscheck(line, cars, methods, seed = 1)))
  timeless <- function(x) x[setdiff(names(x), "seconds")]
  bounds <- function(...) timeless(bdmc(line, data = cars, method = smc(particles = 10), chains = 3,
                                        budgets = 1, seed = 1, ...)$bounds)
  expect_identical(bounds(cl = cl), bounds())
  design <- function(...) study_design(list(a = gaussian_mean(), b = gaussian_mean(prior_sd = 0.1)),
                                       20, nsim = 3, seed = 1, ...)
  expect_identical(design(cl = cl), design())
})

test_that("errors on workers are those of a run here", {
  cl <- local_cluster()
  unlucky <- custom_model("m", function(theta, data) stop("no luck"),
                          function(theta) dnorm(theta, log = TRUE), function(n) rnorm(n))
  expect_error(evidence(unlucky, 1, smc(), seed = 1, replicates = 2, cl = cl), "no luck")
  race <- suppressWarnings(evidence(list(bad = unlucky, good = gaussian_mean()), numbers, smc(),
                                    seed = 1, cl = cl))
  expect_identical(race$model, "good")
  expect_error(evidence(line, cars, cl = 2), "a cluster")
  expect_error(evidence(line, in_blocks(cars, 10), cl = cl), "rows in memory")
  expect_error(evidence(gaussian_mixture(components = 1:2), faithful, cl = cl), "`cl` cannot be")
  stream <- quiet_fit(line, in_blocks(cars, 10), seed = 1, time_limit = 1e-9)
  expect_error(resume(stream, cars, cl = cl), "rows in memory")
  # the cluster is as it was
  expect_identical(of_workers(cl, function() 1), list(1, 1))
})

# A function that does not end on one worker only, which is chosen by its process.
troubled <- function(file, what) custom_model(
  "m", function(theta, data) {
    # the first process to come here is stopped
    if (file.exists(file) && !file.exists(paste0(file, Sys.getpid())) && file.remove(file))
      what()
    dnorm(data, theta, 1, log = TRUE)
  },
  function(theta) dnorm(theta, 0, 3, log = TRUE), function(n) rnorm(n, 0, 3))

with_trouble <- function(what, cl) {
  file <- tempfile()
  file.create(file)
  on.exit(unlink(file))
  environment(what) <- globalenv()
  suppressMessages(evidence(troubled(file, what), numbers, smc(particles = 20, kernel = rwm()),
                            seed = test_seed(3), replicates = 3, cl = cl))
}

test_that("a worker that ends, hangs or sends no result is replaced", {
  plain <- with_trouble(function() NULL, NULL)
  end <- function() tools::pskill(Sys.getpid(), tools::SIGKILL)
  expect_identical(with_trouble(end, local_cluster())$log_evidence, plain$log_evidence)
  cl <- local_cluster()
  pids <- unlist(of_workers(cl, Sys.getpid))
  halt <- function() tools::pskill(Sys.getpid(), tools::SIGSTOP)
  found <- with_trouble(halt, task_limit(cl, 3))
  for (pid in pids) tools::pskill(pid, tools::SIGCONT)
  expect_identical(found$log_evidence, plain$log_evidence)
  # an answer that came too late belongs to no later call
  expect_identical(with_trouble(function() NULL, cl)$log_evidence, plain$log_evidence)
})

test_that("a task that ends every worker, other versions and dead clusters are named", {
  cl <- local_cluster()
  deadly <- custom_model("m", function(theta, data) tools::pskill(Sys.getpid(), tools::SIGKILL),
                         function(theta) dnorm(theta, log = TRUE), function(n) rnorm(n))
  expect_error(suppressMessages(evidence(deadly, 1, smc(), seed = 1, replicates = 2, cl = cl)),
               "lost on 2 workers|No worker")
  expect_error(suppressMessages(evidence(line, cars, seed = 1, replicates = 2, cl = cl)),
               "no worker that answers")
  expect_false(holds_data(list(1, function() 1)))
  expect_false(holds_data(structure(1, f = quote(x))))
  expect_false(holds_data(globalenv()))
  expect_true(holds_data(list(a = 1:2, b = data.frame(x = "y", z = factor("a")))))
})

# Rows in shards -----------------------------------------------------------------------------------

rows <- with_own_seed(test_seed(9), {
  n <- 3000
  x <- rnorm(n)
  g <- sample(c("b", "a", "c"), n, TRUE)
  data.frame(x, g, y = 1 + x + (g == "b") + rnorm(n), k = rpois(n, exp(0.2 + 0.3 * x)))
})
# Functions for workers have nothing but what is put in them.
opening <- function(f, ...) {
  environment(f) <- list2env(list(...), parent = globalenv())
  f
}
parts_of <- function(rows, size) opening(function(shard)
  rows[seq(size * (shard - 1) + 1, min(size * shard, nrow(rows))), ], rows = rows, size = size)

test_that("rows in shards give the fit of the rows in memory", {
  cl <- local_cluster()
  models <- list(linear_regression(y ~ x + g, sigma = 1, prior_sd = 2), linear_regression(y ~ x),
                 regression(k ~ x, "poisson", prior = normal(0, 2.5)),
                 softmax_regression(g ~ x, prior_sd = 1), gaussian_mean(~ y),
                 density(~ dnorm(y, m, s, log = TRUE), m = ~ x, s = half_normal(2)))
  for (model in models) {
    away <- quiet_fit(model, rows_cluster(cl, parts_of(rows, 700), 5), seed = test_seed(2))
    here <- quiet_fit(model, rows, laplace(importance = 4000), seed = test_seed(2))
    name <- deparse1(model$call)
    expect_identical(away$data_id, here$data_id, info = name)
    expect_identical(away$n, here$n)
    # other climbs of the first rows end at the same modes
    expect_lt(abs(away$log_evidence - here$log_evidence), 1e-5, label = name)
    expect_lt(abs(away$se - here$se), 1e-4)
  }
  table <- evidence(list(both = models[[1]], one = models[[2]]),
                    rows_cluster(cl, parts_of(rows, 700), 5), seed = test_seed(2))
  own <- quiet_fit(models[[1]], rows_cluster(cl, parts_of(rows, 700), 5), seed = test_seed(2))
  expect_identical(table$log_evidence[table$model == "both"], own$log_evidence)
  expect_identical(own$shards$rows, c(700, 700, 700, 700, 200))
})

# Those that need rows together or in order, and kinds of data that have no parts.
NOT_IN_SHARDS <- "all rows together|proper prior|lags\\(\\)|scale"

test_that("every model has in shards the fit that it has in memory, or is refused", {
  cl <- local_cluster()
  names <- names(Filter(function(entry) entry$n > 0, crossing_models()))
  refusals <- 0
  for (name in names[seq(1, length(names), fast_or_slow(4, 1))]) {
    model <- crossing_model(name)
    data <- crossing_data(name)
    size <- ceiling(NROW(data) / 3)
    cut <- opening(function(shard) {
      some <- seq(size * (shard - 1) + 1, min(size * shard, NROW(data)))
      if (is.data.frame(data)) data[some, ] else data.frame(y = data[some])
    }, data = data, size = size)
    method <- laplace(importance = 400)
    away <- tryCatch(quiet_fit(model, rows_cluster(cl, cut, 3), method, seed = test_seed(4)),
                     logevidence_error = function(e) e)
    if (inherits(away, "condition")) {
      expect_match(conditionMessage(away), NOT_IN_SHARDS, info = name)
      refusals <- refusals + 1
      next
    }
    here <- quiet_fit(model, data, method, seed = test_seed(4))
    expect_identical(away$data_id, here$data_id, info = name)
    # modes are found from other rows, so draws may differ where there are several
    apart <- abs(away$log_evidence - here$log_evidence)
    expect_lt(apart, max(1e-5, 4.5 * sqrt(away$se^2 + here$se^2)), label = name)
  }
  expect_gt(refusals, 0)
})

test_that("workers, memory and lost workers do not change a bit; other rows are found out", {
  cl <- local_cluster(3)
  model <- regression(k ~ x, "poisson", prior = normal(0, 2.5))
  fit <- function(cl, open = parts_of(rows, 700), ...)
    suppressMessages(quiet_fit(model, rows_cluster(cl, open, 5, ...), seed = test_seed(2)))
  whole <- fit(cl[1])
  expect_same(fit(cl[1:2]), whole)
  expect_same(fit(cl), whole)
  expect_same(fit(cl[1:2], keep = 0), whole)
  file <- tempfile()
  # the second time that shard 4 is read its worker ends; then others read it
  deadly <- opening(function(shard) {
    part <- rows[seq(700 * (shard - 1) + 1, min(700 * shard, nrow(rows))), ]
    at <- 0
    reads <- 0
    logevidence::rows_function(function(reset) {
      if (reset) {
        reads <<- reads + 1
        at <<- 0
        if (shard == 4 && reads == 4 && !file.exists(file) && file.create(file))
          tools::pskill(Sys.getpid(), tools::SIGKILL)
      } else if (!at) {
        at <<- 1
        part
      }
    })
  }, rows = rows, file = file)
  expect_same(fit(cl, deadly, keep = 0), whole)
  expect_true(file.exists(file))
  cl <- local_cluster(1)
  changing <- opening(function(shard) {
    reads <- 0
    at <- 0
    logevidence::rows_function(function(reset) {
      if (reset) {
        reads <<- reads + 1
        at <<- 0
      } else if (!at) {
        at <<- 1
        rows[seq_len(10) + (reads > 3), ]
      }
    })
  }, rows = rows)
  expect_error(fit(cl, changing, keep = 0), "Shard 1: the rows are not those of the first time")
})

test_that("what cannot be done with shards is refused, with the shard", {
  cl <- local_cluster(1)
  refused <- function(code, text) expect_error(code, text, class = "logevidence_error")
  source <- rows_cluster(cl, list(rows[1:20, ], rows[21:40, ]))
  expect_output(print(source), "2 shards on 1 worker")
  refused(evidence(line, source), "dist")
  refused(evidence(gaussian_mean(~ y), source, smc()), "laplace\\(\\) or bic")
  refused(evidence(clustering(components = 2), source), "all rows together")
  refused(evidence(user, source), "all rows together")
  refused(evidence(gaussian_mean(~ y), source, replicates = 2), "`replicates`")
  refused(evidence(gaussian_mean(~ y), source, keep = 2000), "`keep`")
  strange <- rows[21:40, ]
  strange$x[3] <- NA
  refused(evidence(linear_regression(y ~ x), rows_cluster(cl, list(rows[1:20, ], strange))),
          "Shard 2")
  refused(rows_cluster(cl, 3), "`open`")
  refused(rows_cluster(NULL, identity), "`cl`")
  refused(evidence(gaussian_mean(~ y), rows_cluster(cl, opening(function(shard) 1))),
          "Shard 1: `open` must return")
})

# The workers of a cluster: the same bits as without one, and what happens when they are lost.

skip_if_not_installed("parallel")
local_cluster <- function(n = 2, env = parent.frame()) {
  cl <- tryCatch(parallel::makePSOCKcluster(n), error = function(e) skip(conditionMessage(e)))
  do.call(on.exit, list(substitute(suppressWarnings(try(parallel::stopCluster(cl), TRUE)),
                                   list(cl = cl)), add = TRUE), envir = env)
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
  expect_identical(update(fit, cars[41:50, ])$log_evidence, update(here, cars[41:50, ])$log_evidence)
})

test_that("models of a list, methods, chains and simulated streams have the same bits", {
  cl <- local_cluster()
  models <- list(a = line, b = linear_regression(dist ~ 1), c = regression(dist ~ speed, "student"))
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

# The workers of a cluster: the same bits as without one, and what happens when they are lost.

skip_if_not_installed("parallel")
line <- linear_regression(dist ~ speed)
user <- custom_model("m", function(theta, data) dnorm(data, theta, 1, log = TRUE),
                     function(theta) dnorm(theta, 0, 3, log = TRUE), function(n) rnorm(n, 0, 3))
numbers <- c(1.2, 0.4, 2.1, 0.9, 1.5, -0.3)
of_workers <- function(cl, f, ...) parallel::clusterCall(cl, f, ...)

test_that("replicates have the same bits on workers and here, for all methods and models", {
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

test_that("lists of models, crosschecks, bdmc() and studies have the same bits on workers", {
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
  expect_error(evidence(gaussian_mixture(components = 1:2), in_blocks(faithful, 50), cl = cl),
               "rows in memory")
  stream <- quiet_fit(line, in_blocks(cars, 10), seed = 1, time_limit = 1e-9)
  expect_error(resume(stream, cars, cl = cl), "rows in memory")
  # the cluster is as it was
  expect_identical(of_workers(cl, function() 1), list(1, 1))
})

# A function that does not end on one worker only, which is chosen by its process.
troubled <- function(file, what) {
  caller <- Sys.getpid()
  custom_model(
    "m", function(theta, data) {
      # the first worker to come here is stopped; before, the caller compares all rows with parts
      if (Sys.getpid() != caller && file.exists(file) && file.remove(file)) what()
      dnorm(data, theta, 1, log = TRUE)
    },
    function(theta) dnorm(theta, 0, 3, log = TRUE), function(n) rnorm(n, 0, 3))
}

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

test_that("a task that ends all workers, and a dead cluster, are errors that say so", {
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

# Shards whose readings are counted in a file. At the reading `at`, and later ones, something
# happens.
counted <- function(rows, file, at = 0, what = function() stop("no more")) {
  environment(what) <- globalenv()
  opening(function(shard) {
    given <- FALSE
    logevidence::rows_function(function(reset) {
      if (reset) {
        given <<- FALSE
        cat(".", file = file, append = TRUE)
        if (at > 0 && file.size(file) >= at) what()
      } else if (!given) {
        given <<- TRUE
        rows[seq(1000 * (shard - 1) + 1, 1000 * shard), ]
      }
    })
  }, rows = rows, file = file, at = at, what = what)
}

test_that("rows in shards give the fit of the rows in memory", {
  cl <- local_cluster()
  models <- list(linear_regression(y ~ x + g, sigma = 1, prior_sd = 2), linear_regression(y ~ x),
                 regression(k ~ x, "poisson", prior_sd = 2.5),
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

test_that("exact() of rows in shards is that of the rows in memory", {
  cl <- local_cluster()
  n <- fast_or_slow(3000, 999999)
  data <- with_own_seed(test_seed(8), data.frame(
    x = stats::rnorm(n), far = 1e6 + stats::rnorm(n), g = sample(c("a", "b"), n, TRUE),
    k = stats::rpois(n, 3), s = stats::rbinom(n, 5, 0.3), five = 5, y = stats::rnorm(n)))
  models <- list(
    linear_regression(y ~ x + g, sigma = 1, prior_sd = 2), linear_regression(y ~ x + g),
    linear_regression(y ~ far, prior_sd = 1), linear_regression(y ~ far, sigma = 1, prior_sd = 1),
    regression(y ~ x + offset(x^2), "gaussian", prior_sd = 3,
               auxiliary = list(sigma = exponential(1))),
    gaussian_mean(~ y), poisson_rate(k ~ 1), binomial_probability(cbind(s, five - s) ~ 1),
    gaussian_mixture(~ y + x, components = 1))[fast_or_slow(c(1:2, 7), 1:9)]
  size <- n / 3
  open <- opening(function(shard) data[seq(size * (shard - 1) + 1, size * shard), ],
                  data = data, size = size)
  away <- lapply(models, function(model)
    quiet_fit(model, rows_cluster(cl, open, 3), exact(), seed = test_seed(3)))
  for (i in seq_along(models)) {
    here <- quiet_fit(models[[i]], data, exact(), seed = test_seed(3))
    name <- deparse1(models[[i]]$call)
    # conjugate models in memory add a million logarithms one after another
    allowed <- if (n > 1e5 && grepl("poisson_rate|binomial_prob", name)) 3e-11 else 1e-12
    expect_lt(abs(away[[i]]$log_evidence / here$log_evidence - 1), allowed, label = name)
    expect_identical(away[[i]][c("se", "source", "n")], here[c("se", "source", "n")], info = name)
    draws <- list(away[[i]]$draws, here$draws)
    means <- lapply(draws, colMeans)
    spread <- apply(draws[[2]], 2, stats::sd)
    expect_true(all(abs(means[[1]] - means[[2]]) <= 5 * spread * sqrt(2 / 1000)), info = name)
    expect_true(all(abs(apply(draws[[1]], 2, stats::sd) - spread) <= 5 * spread / sqrt(1000)),
                info = name)
  }
  # several models, one pass, and a stopped run
  table <- evidence(list(a = models[[1]], b = models[[2]]), rows_cluster(cl[1], open, 3), exact(),
                    seed = test_seed(3))
  expect_identical(as.vector(table$log_evidence[match(c("a", "b"), table$model)]),
                   c(away[[1]]$log_evidence, away[[2]]$log_evidence))
  # the second model has default priors, whose units are those of all rows
  expect_identical(lapply(away[1:2], function(one) one$shards$passes), list(1, 2))
  file <- tempfile()
  reads <- tempfile()
  part <- function(at) counted(data, reads, at)
  if (n == 3000) {
    expect_error(evidence(models[[2]], rows_cluster(cl[1], part(6), 3), exact(),
                          seed = test_seed(3), checkpoint = file, every = 0), "no more")
    expect_same(resume(file, rows_cluster(cl, part(0), 3)), away[[2]])
  }
  expect_error(evidence(regression(k ~ x, "poisson", prior_sd = 2),
                        rows_cluster(cl, open, 3), exact()), "has a closed form, such as",
               class = "logevidence_error")
})

# Those that need rows together or in order, and kinds of data that have no parts.
NOT_IN_SHARDS <- "all rows together|proper prior|lags\\(\\)|scale"

test_that("each model has the same fit from shards and from memory, or is refused", {
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

test_that("the number and loss of workers change no bit, and other rows are refused", {
  cl <- local_cluster(3)
  model <- regression(k ~ x, "poisson", prior_sd = 2.5)
  fit <- function(cl, open = parts_of(rows, 700), ...)
    suppressMessages(quiet_fit(model, rows_cluster(cl, open, 5, ...), seed = test_seed(2)))
  whole <- fit(cl[1])
  expect_same(fit(cl[1:2]), whole)
  expect_same(fit(cl), whole)
  # rows of a data frame that are too many are not kept between the passes
  log <- tempfile()
  noted <- opening(function(shard) {
    cat(shard, "\n", file = log, append = TRUE)
    rows[seq(700 * (shard - 1) + 1, min(700 * shard, nrow(rows))), ]
  }, rows = rows, log = log)
  opened <- function(...) {
    unlink(log)
    expect_same(fit(cl[1], noted, ...), whole)
    table(readLines(log))[["1 "]]
  }
  expect_gt(opened(keep = 0), opened() + 2)
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
  expect_error(fit(cl, changing, keep = 0),
               "Shard 1 on worker 1 .*: the rows are not those of the first time")
})

test_that("calls that shards do not allow are refused, and errors name the shard", {
  cl <- local_cluster(1)
  refused <- function(code, text) expect_error(code, text, class = "logevidence_error")
  source <- rows_cluster(cl, list(rows[1:20, ], rows[21:40, ]))
  expect_output(print(source), "2 shards on 1 worker")
  refused(evidence(line, source), "dist")
  refused(evidence(gaussian_mean(~ y), source, smc()), "laplace\\(\\), bic\\(\\) or exact")
  refused(evidence(clustering(components = 2), source), "all rows together")
  refused(evidence(user, source), "all rows together")
  refused(evidence(gaussian_mean(~ y), source, keep = 2000), "`keep`")
  refused(evidence(gaussian_mean(~ y), source, cl = cl), "`cl`")
  strange <- rows[21:40, ]
  strange$x[3] <- NA
  refused(evidence(linear_regression(y ~ x), rows_cluster(cl, list(rows[1:20, ], strange))),
          "Shard 2")
  refused(rows_cluster(cl, 3), "`open`")
  refused(rows_cluster(NULL, identity), "`cl`")
  refused(evidence(gaussian_mean(~ y), rows_cluster(cl, opening(function(shard) 1))),
          "Shard 1 on worker 1 .*: `open` must return")
})

test_that("rows in shards have replicates, a target error and a hook, as rows in memory", {
  cl <- local_cluster(2)
  model <- regression(k ~ x, "poisson", prior_sd = 2.5)
  method <- laplace(importance = 100)
  source <- rows_cluster(cl, parts_of(rows, 1000), 3)
  here <- quiet_fit(model, rows, method, replicates = 3, seed = test_seed(4))
  told <- list()
  there <- quiet_fit(model, source, method, replicates = 3, seed = test_seed(4),
                     on_chunk = function(report) told <<- c(told, list(report)))
  expect_identical(nrow(there$replicates), 3L)
  expect_length(unique(there$replicates$log_evidence), 3)
  # the same draws around the same peak, as far as sums over parts are those over all rows
  expect_lt(max(abs(there$replicates$log_evidence - here$replicates$log_evidence)), 1e-3)
  expect_lt(abs(there$se - here$se), 1e-3)
  expect_identical(told[[length(told)]]$share, 1)
  expect_identical(told[[length(told)]]$log_evidence, there$sampler$log_evidence)
  one <- quiet_fit(model, source, method, seed = test_seed(4))
  target <- one$se / 2
  more <- suppressMessages(quiet_fit(model, source, method, seed = test_seed(4),
                                     target_se = target))
  # the number of runs is fixed by a forecast, so that the target may be missed a little
  expect_lt(more$se, 1.5 * target)
  expect_gt(nrow(more$replicates), 3)
  expect_lt(abs(more$log_evidence - one$log_evidence), 4 * one$se)
  # two models with two runs each ask together
  both <- quiet_fit(list(a = model, b = regression(k ~ 1, "poisson", prior_sd = 2.5)), source,
                    method, replicates = 2, seed = test_seed(4))
  expect_identical(vapply(attr(both, "fits"), function(fit) nrow(fit$replicates), 0L),
                   c(a = 2L, b = 2L)[both$model])
})

test_that("a run of shards that is stopped and resumed on other workers has the same bits", {
  cl <- local_cluster(3)
  model <- regression(k ~ x, "poisson", prior_sd = 2.5)
  several <- list(a = model, b = regression(k ~ x + g, "poisson", prior_sd = 2.5))
  file <- tempfile()
  for (asked in fast_or_slow(list(several), list(model, several))) {
    fit <- function(workers, open, ...)
      quiet_fit(asked, rows_cluster(cl[workers], open, 3, keep = 0), seed = test_seed(2), ...)
    same <- function(other) if (inherits(whole, "evidence")) expect_same(other, whole)
    else expect_identical(as.list(other$log_evidence), as.list(whole$log_evidence))
    unlink(reads <- tempfile())
    whole <- fit(1, counted(rows, reads))
    n <- file.size(reads)
    # the first three readings are those of the first rows, before there is a file
    for (at in seq(4, n, fast_or_slow(20, 1))) {
      unlink(c(file, reads))
      expect_error(fit(1:2, counted(rows, reads, at), checkpoint = file, every = 0),
                   "Shard [1-3] on worker [12] .*no more.* The checkpoint .* has the run so far")
      before <- file.size(reads)
      other <- rows_cluster(cl[seq_len(at %% 3 + 1)], counted(rows, reads), 3)
      same(resume(file, other))
      expect_lt(file.size(reads) - before, n)
      # nothing is asked of a run that has ended
      before <- file.size(reads)
      same(resume(file))
      expect_identical(file.size(reads), before)
    }
  }
  stopped <- fit(1:2, counted(rows, reads), time_limit = 1e-9)
  expect_s3_class(stopped, "incomplete_race")
  same(resume(stopped, rows_cluster(cl, counted(rows, reads), 3)))
  refused <- function(code, text) expect_error(code, text, class = "logevidence_error")
  refused(resume(stopped), "given again: rows_cluster\\(\\) with the 3 shards")
  refused(resume(stopped, rows), "the 3 shards of the run")
  refused(resume(stopped, rows_cluster(cl, counted(rows, reads), 2)), "the 3 shards of the run")
  refused(resume(stopped, rows_cluster(cl, counted(rows[c(2:3000, 2), ], reads), 3)),
          "the same shards")
  refused(update(stopped, rows), "continue it by resume")
  refused(evidence(line, rows_cluster(cl, counted(rows, reads), 3), checkpoint = file), "dist")
  refused(evidence(model, rows_cluster(cl, counted(rows, reads), 3), checkpoint = file),
          "the file of another run")
})

test_that("a run of shards goes on after its process was killed, and refuses a changed shard", {
  cl <- local_cluster()
  model <- regression(k ~ x, "poisson", prior_sd = 2.5)
  reads <- tempfile()
  here <- rows_cluster(cl, counted(rows, reads), 3)
  whole <- quiet_fit(model, here, seed = test_seed(2))
  unlink(reads)
  given <- tempfile()
  file <- tempfile()
  # the worker ends the process that has called evidence(), and then itself
  open <- counted(rows, reads, 20, function() {
    tools::pskill(scan(paste0(file, ".pid"), quiet = TRUE), tools::SIGKILL)
    tools::pskill(Sys.getpid(), tools::SIGKILL)
  })
  environment(environment(open)$what) <- list2env(list(file = file), parent = globalenv())
  saveRDS(list(model = model, open = open, seed = test_seed(2)), given)
  code <- sprintf(paste(
    "library(logevidence); given <- readRDS('%s'); cat(Sys.getpid(), file = '%s.pid');",
    "rows <- rows_cluster(parallel::makePSOCKcluster(1), given$open, 3, keep = 0);",
    "evidence(given$model, rows, seed = given$seed, checkpoint = '%s', every = 0)"),
    given, file, file)
  status <- suppressWarnings(system2(file.path(R.home("bin"), "Rscript"), c("-e", shQuote(code)),
                                     stdout = FALSE, stderr = FALSE))
  expect_false(status == 0)
  changed <- rows
  changed$x[2500] <- 0
  expect_error(resume(file, rows_cluster(cl, counted(changed, reads), 3)),
               "Shard 3 on worker 1 .*: the rows are not .* The checkpoint")
  expect_same(resume(file, here), whole)
})

# Workers that answer with something else ----------------------------------------------------------

#' From the n-th message on a worker sends what `other` makes of a message, and goes on as `then`
spoil <- function(cl, n, other, then = function() NULL) {
  replace_sender <- function(n, other, then) {
    count <- -1
    namespace <- asNamespace("parallel")
    for (class in c("SOCKnode", "SOCK0node")) local({
      name <- paste0("sendData.", class)
      old <- get(name, namespace)
      unlockBinding(name, namespace)
      assign(name, function(node, data) {
        count <<- count + 1
        if (count < n) return(old(node, data))
        bytes <- other(data)
        if (!is.raw(bytes)) return(old(node, bytes))
        writeBin(bytes, node$con)
        then()
      }, namespace)
    })
  }
  for (f in c("replace_sender", "other", "then")) {
    changed <- get(f)
    environment(changed) <- globalenv()
    assign(f, changed)
  }
  parallel::clusterCall(cl, replace_sender, n, other, then)
}

test_that("a worker that sends something else is left out, and no number changes", {
  fit <- function(cl) suppressMessages(quiet_fit(line, cars, nested(50), seed = test_seed(1),
                                                 replicates = 5, cl = cl))
  right <- fit(NULL)
  halt <- function() tools::pskill(Sys.getpid(), tools::SIGSTOP)
  value <- function(x) {
    force(x)
    eval(bquote(function(data) replace(data, "value", list(.(x)))))
  }
  others <- list(
    bytes = function(data) as.raw(rep(c(88, 10, 0, 255), 50)),
    half = function(data) utils::head(serialize(data, NULL), 500),
    object = value(list(value = 1:10)), text = value("x"),
    parts = value(list(value = list(result = list(log_evidence = 1)))),
    error = value(list(error = 1)),
    # again and again
    unknown = value(list(unknown = TRUE)),
    code = value(list(value = quote(stop("evaluated")))))
  for (name in if (is_slow()) names(others) else c("half", "parts", "unknown")) {
    cl <- local_cluster()
    pid <- of_workers(cl[1], Sys.getpid)[[1]]
    spoil(cl[1], 2, others[[name]], if (name == "half") halt else function() NULL)
    found <- fit(task_limit(cl, 2))
    tools::pskill(pid, tools::SIGCONT)
    expect_same(found, right, name)
  }
})

test_that("sums of wrong size or not finite are not added", {
  fit <- function(cl) suppressMessages(quiet_fit(linear_regression(y ~ x, sigma = 1, prior_sd = 2),
                                                 rows_cluster(cl, parts_of(rows, 700), 5),
                                                 seed = test_seed(2)))
  cl <- local_cluster()
  right <- fit(cl)
  spoil(cl[1], 4, function(data) {
    if (is.list(data$value$value))
      data$value$value <- lapply(data$value$value, function(shard) list(matrix(1)))
    data
  })
  expect_same(fit(cl), right)
})

test_that("the rest of an interrupted message is not read as an answer", {
  cl <- local_cluster(1)
  of_workers(cl, Sys.getpid)
  # before its answer, which nobody reads, this worker sends what is no message
  torn <- function() {
    writeBin(as.raw(1:100), getConnection(max(as.integer(rownames(showConnections())))))
    TRUE
  }
  environment(torn) <- baseenv()
  utils::getFromNamespace("sendCall", "parallel")(cl[[1]], torn, list())
  Sys.sleep(0.5)
  expect_no_message(fit <- suppressWarnings(evidence(line, cars, nested(50), seed = test_seed(1),
                                                     replicates = 2, progress = FALSE, cl = cl)))
  expect_identical(fit$log_evidence, quiet_fit(line, cars, nested(50), seed = test_seed(1),
                                               replicates = 2)$log_evidence)
})

test_that("sums over groups are joined across shards", {
  cl <- local_cluster()
  data <- with_own_seed(test_seed(12), {
    d <- data.frame(g = sample(30, 900, TRUE), x = stats::rnorm(900), h = sample(6, 900, TRUE))
    d$y <- 1 + d$x + stats::rnorm(30)[d$g] + stats::rnorm(900)
    d
  })
  open <- opening(function(shard) data[300 * (shard - 1) + 1:300, ], data = data)
  model <- regression(y ~ x + (x | g), prior = normal(0, 2), intercept = normal(0, 5),
                      auxiliary = half_normal(2))
  here <- evidence(model, data, seed = test_seed(3))
  rows <- rows_cluster(cl, open, 3)
  away <- evidence(model, rows, seed = test_seed(3))
  expect_equal(away$log_evidence, here$log_evidence, tolerance = 1e-10)
  expect_identical(away[c("n", "data_id")], here[c("n", "data_id")])
  expect_identical(away$shards$rows, c(300, 300, 300))
  crossed <- regression(y ~ x + (1 | g) + (1 | h), prior = normal(0, 2), intercept = normal(0, 5),
                        auxiliary = half_normal(2))
  expect_equal(evidence(crossed, rows, laplace(100), seed = test_seed(3))$log_evidence,
               evidence(crossed, data, laplace(100), seed = test_seed(3))$log_evidence,
               tolerance = 1e-10)
  one <- regression(y ~ x + (1 | g), prior = normal(0, 2), intercept = normal(0, 5),
                    auxiliary = half_normal(2))
  both <- evidence(list(one = one, two = model), rows, seed = test_seed(3))
  expect_identical(both$log_evidence[both$model == "two"], away$log_evidence)
  file <- tempfile()
  evidence(model, rows, seed = test_seed(3), checkpoint = file, every = 0, time_limit = 1e-9)
  expect_same(resume(file, rows_cluster(cl[1], open, 3)), away)
  refused(evidence(list(model, regression(y ~ x)), rows, laplace()), "needs all rows together")
  refused(evidence(regression(round(abs(y)) ~ x + (1 | g), poisson()), rows),
          "must have all rows of a group in one shard")
})

test_that("an answer that is no sum over groups is left out", {
  part <- part_of_groups(sums = rbind(2, diag(3)[, c(1, 2)]), places = NULL, columns = NULL,
                         codes = NULL, levels = list(g = c("a", "b")), n = 4, data_id = "4-0",
                         size = 1)
  fits <- function(part) SHARD_ANSWERS$groups_of_shard(list(n = 4, parts = list(part)), NULL, 1)
  expect_true(fits(part))
  for (bad in list(list(levels = list(g = c("a", "a"))), list(levels = list(g = 1:2)), list(n = 5),
                   list(sums = part$sums[, 1, drop = FALSE]), list(columns = diag(2)),
                   list(data_id = 3), list(size = "1")))
    expect_false(isTRUE(fits(structure(utils::modifyList(unclass(part), bad),
                                       class = class(part)))))
})

test_that("the shards of a worker send one sample together, with all rows that must be in it", {
  of_shard <- function(n, sent) list(
    n = n, ids = list("9-0123456789abcdef"), prints = list("9-0123456789abcdef"),
    keys = stats::runif(sent), rows = list(matrix(0, 1, sent)), blocks = list(NULL))
  task <- list(f = "open_shard", shards = 1:2, tasks = list(list(), list()), common = list())
  fits <- function(...) fits_shards(1)(list(...), task)
  expect_true(fits(of_shard(8000, 4000), of_shard(9000, 6000)))
  expect_false(fits(of_shard(8000, 4000), of_shard(9000, 5999)))
  expect_true(fits(of_shard(80, 80), of_shard(90, 90)))
  expect_false(fits(of_shard(80, 80), of_shard(90, 89)))
  expect_false(fits(of_shard(8000, 8001), of_shard(9000, 6000)))
})

test_that("when all workers are lost, the message names the last one and why", {
  crew <- list2env(list(alive = c(FALSE, FALSE), tags = c("", ""), busy = c(0, 0),
                        lost = "worker 2, has ended"))
  refused(on_workers(crew, NULL, c("part 1", "part 2"), NULL, NULL, NULL),
          "No worker of `cl` is left; the last, worker 2, has ended; not done: ")
})

# Rows that are added to a fit: the same bits as one run on all rows.

set.seed(test_seed(21))
points <- data.frame(x = rnorm(3000), z = rnorm(3000), g = factor(rep(c("a", "b", "c"), 1000)))
points$y <- 1 + 2 * points$x + rnorm(3000)
line <- linear_regression(y ~ x + g, sigma = 1, prior_sd = 2)
given <- sgais(order = "given")

expect_same_parts <- function(one, other, info = NULL) {
  for (part in c("log_evidence", "se", "draws", "log_weights", "n", "data_id", "warnings",
                 "sampler", "audit", "bound", "replicates"))
    testthat::expect_identical(one[[part]], other[[part]], info = paste(info, part))
}

in_parts <- function(model, data, method, ends, ...) {
  fit <- quiet_fit(model, data[seq_len(ends[1]), , drop = FALSE], method, seed = test_seed(3), ...)
  for (k in seq_along(ends)[-1])
    fit <- muffled(update(fit, data[(ends[k - 1] + 1):ends[k], , drop = FALSE]))
  fit
}

test_that("updates give the bits of one run on all rows, whatever the method", {
  expect_same_parts(in_parts(line, points, given, c(1000, 1001, 1800, 3000)),
              evidence(line, points, given, seed = test_seed(3)))
  pair <- gaussian_mixture(~ x + z, components = 2, location = 0, rate = 1)
  some <- points[seq_len(fast_or_slow(900, 3000)), ]
  expect_same_parts(in_parts(pair, some, given, c(700, nrow(some))),
              quiet_fit(pair, some, given, seed = test_seed(3)))
  few <- points[1:240, ]
  methods <- list(sgais(preset = "paper"), sequential(), hybrid(), smc("data"), online_nested())
  for (method in fast_or_slow(methods[1:2], methods))
    expect_same_parts(in_parts(line, few, method, c(90, 91, 240), replicates = 2),
                quiet_fit(line, few, method, seed = test_seed(3), replicates = 2), method$name)
})

test_that("a source and a data frame can be mixed, and blocks have any size", {
  source <- function(rows) {
    left <- TRUE
    rows_function(function(reset) if (left) {
      left <<- FALSE
      points[rows, ]
    }, rewind = FALSE)
  }
  fit <- evidence(line, source(1:1200), given, seed = test_seed(3))
  fit <- update(update(fit, points[1201:1202, ]), source(1203:3000))
  expect_same_parts(fit, evidence(line, points, given, seed = test_seed(3)))
})

test_that("many small updates equal one run", {
  slow <- identical(Sys.getenv("LOGEVIDENCE_SLOW"), "true")
  each <- if (slow) 2000 else 200
  n <- 50 * each
  set.seed(test_seed(5))
  many <- data.frame(x = rnorm(n))
  many$y <- many$x + rnorm(n)
  model <- linear_regression(y ~ x, sigma = 1, prior_sd = 1)
  fit <- evidence(model, many[1:each, ], given, seed = test_seed())
  for (k in 2:50) fit <- update(fit, many[((k - 1) * each + 1):(k * each), ])
  expect_same_parts(fit, evidence(model, many, given, seed = test_seed()))
})

test_that("a fit is saved, read in a new session and updated", {
  files <- c(tempfile(), tempfile(), tempfile())
  on.exit(unlink(files))
  saveRDS(evidence(line, points[1:1000, ], given, seed = test_seed(3)), files[1])
  saveRDS(points[1001:3000, ], files[2])
  new_session(sprintf("saveRDS(update(readRDS('%s'), readRDS('%s')), '%s')", files[1], files[2],
                      files[3]))
  expect_same_parts(readRDS(files[3]), evidence(line, points, given, seed = test_seed(3)))
})

test_that("update() refuses fits that cannot be continued, and says what to do", {
  fit <- evidence(line, points[1:500, ], given, seed = test_seed(3))
  refused(update(fit), "`rows` must be given")
  refused(update(fit, . ~ . + z), "fit the new model with evidence() on all rows")
  refused(update(fit, points[1:5, ], tol = 0.1), "`tol` and `rows` cannot both be given")
  refused(update(fit, points[1:5, ], live = 3), "`live`")
  dropped <- evidence(line, points[1:500, ], given, seed = test_seed(3), keep_state = FALSE)
  expect_null(dropped$state)
  refused(update(dropped, points), "keep_state = TRUE")
  refused(update(evidence(line, points[1:50, ], smc(), seed = test_seed()), points),
          "needs all rows at once")
  refused(update(evidence(line, points[1:50, ], nested(30), seed = test_seed()), points),
          "needs all rows at once")
})

test_that("rows that do not fit the model are refused, and the fit is as it was", {
  fit <- evidence(line, points[1:500, ], given, seed = test_seed(3))
  refused(update(fit, points[, c("x", "y")]), "`rows` must have the column `g`")
  refused(update(fit, transform(points[501:510, ], g = "new")), "`rows`")
  refused(update(fit, transform(points[501:510, ], x = NA_real_)), "`rows`")
  refused(update(fit, "text"), "`rows`")
  expect_same_parts(update(fit, points[501:3000, ]),
                    evidence(line, points, given, seed = test_seed(3)))
})

test_that("a fit whose rows were shuffled, and are too many to be kept, takes further rows", {
  many <- with_own_seed(test_seed(9), {
    data <- data.frame(x = rnorm(45000))
    data$y <- 1 + data$x + rnorm(45000)
    data$class <- factor(rbinom(45000, 1, stats::plogis(data$x)))
    data$w <- data$y + 8 * (data$class == 1)
    data
  })
  models <- list(linear_regression(y ~ x, sigma = 1,
                                   prior_sd = 1), softmax_regression(class ~ x, prior_sd = 1),
                 gaussian_mixture(~ w, components = 2, location = 0, rate = 1))
  for (model in models) {
    fit <- quiet_fit(model, many[1:30000, ], seed = test_seed(3))
    expect_lt(as.numeric(object.size(fit$state)), 2e6)
    expect_same_parts(quiet_fit(model, many[1:30000, ], seed = test_seed(3), keep_state = FALSE),
                      fit)
    further <- muffled(update(fit, many[30001:45000, ]))
    whole <- quiet_fit(model, many, seed = test_seed(4))
    expect_identical(further$n, whole$n)
    expect_identical(further$data_id, whole$data_id)
    expect_lt(abs(further$log_evidence - whole$log_evidence),
              4.5 * sqrt(further$se^2 + whole$se^2) + 0.01)
    expect_lt(further$se, 0.2)
    # and again, whatever the size of the parts
    parts <- muffled(update(update(fit, many[30001:30007, ]), many[30008:45000, ]))
    expect_same_parts(parts, further)
  }
})

test_that("adding no rows changes only the order of the checks", {
  fit <- evidence(line, points[1:500, ], given, seed = test_seed(3))
  expect_same_parts(update(fit, points[0, ]), fit)
})

test_that("an error in the rows of a stream comes with the fit up to the row before", {
  set.seed(test_seed(6))
  many <- data.frame(x = rnorm(13000), z = 1, g = factor(rep(c("a", "b"), 6500)))
  many$y <- many$x + rnorm(13000)
  model <- linear_regression(y ~ x + g, sigma = 1, prior_sd = 1)
  blocks <- function(data) {
    at <- 0
    rows_function(function(reset) {
      if (reset) at <<- 0
      else if (at < 13000) {
        if (at == 12000 && identical(data, "gone")) stop("the server is gone")
        at <<- at + 1000
        if (identical(data, "gone")) many[(at - 999):at, ] else data[(at - 999):at, ]
      }
    })
  }
  whole <- evidence(model, many, given, seed = test_seed(2))
  bad <- many
  bad$x[12345] <- NA
  new <- many
  new$g <- as.character(new$g)
  new$g[12002] <- "c"
  cases <- list(list(data = bad, used = 12344), list(data = new, used = 12001),
                list(data = "gone", used = 12000))
  for (case in cases) {
    data <- case$data
    rest <- many[(case$used + 1):13000, ]
    cnd <- expect_error(evidence(model, blocks(data), given, seed = test_seed(2)))
    expect_s3_class(cnd$fit, "incomplete_evidence")
    expect_identical(cnd$fit$rows_read, case$used)
    expect_same_parts(update(cnd$fit, rest), whole)
    expect_same_parts(resume(cnd$fit, many), whole)
    expect_same_parts(resume(cnd$fit, rest, skip = FALSE), whole)
  }
  expect_match(conditionMessage(expect_error(evidence(model, blocks(bad), seed = test_seed(2)))),
               "row 12345")
  expect_match(printed(cnd$fit), "Incomplete")
  refused(logml(cnd$fit), "The fit is incomplete")
  refused(resume(cnd$fit, many[13000:1, ]), "must begin with the 12,000 rows")
  refused(resume(cnd$fit, many[1:50, ]), "must have the 12,000 rows")
})

test_that("sources are not joined by c()", {
  source <- rows_function(function(reset) NULL)
  refused(c(source, source), "cannot be joined by c()")
})

test_that("added rows in which a column has become a matrix are refused", {
  data <- data.frame(a = sin(1:12), b = cos(1:12))
  wide <- data
  wide$b <- cbind(data$b, 1)
  models <- list(gaussian_mixture(~ a + b, components = 1,
                                  location = 0, rate = 1), clustering(~ a + b, components = 2),
                 low_rank(~ a + b, rank = 1))
  for (model in models) {
    fit <- muffled(evidence(model, data, seed = test_seed()))
    refused(predict(fit, wide, type = "density"),
            "`newdata` must have `b` of type numeric, as in the first data, not numeric with 2")
  }
  fit <- muffled(evidence(models[[1]], data, seed = test_seed()))
  refused(update(fit, wide), "`rows` must have `b` of type numeric, as in the first data, not")
})

# Levels that a fit does not have -----------------------------------------------------------------

with_factor <- data.frame(y = sin(1:60), x = cos(1:60), f = rep(c("a", "b", "c"), 20),
                          g = rep(1:6, 10))
later <- data.frame(y = c(0.1, 0.2, 0.3, 0.4), x = 1:4, f = c("a", "d", "b", "e"),
                    g = c(1, 7, 2, 8))
of_factor <- function(formula = y ~ x + f, ...)
  quiet_fit(linear_regression(formula, sigma = 1, prior_sd = 1), with_factor,
            sgais(order = "given"), seed = test_seed(), progress = FALSE)

test_that("a new level of a covariate is refused, or its rows are left out if asked", {
  fit <- of_factor()
  refused(update(fit, later), paste0("`rows` must have only known levels in `f` (\"a\", \"b\", ",
                                     "\"c\"), not \"d\" in row 2: the run has no coefficient"))
  refused(update(fit, later), "Leave such rows out by `levels = \"omit\"`")
  refused(update(fit, later, levels = "all"),
          "`levels` must be \"new\" or \"omit\", not \"all\".")
  expect_message(left <- update(fit, later, levels = "omit"),
                 "Of 4 rows, .* `f`: \"d\" \\(1 row\\), \"e\" \\(1 row\\)")
  known <- update(fit, later[c(1, 3), ])
  expect_identical(left[c("log_evidence", "se", "n")], known[c("log_evidence", "se", "n")])
  file <- tempfile(fileext = ".csv")
  on.exit(unlink(file))
  utils::write.csv(later, file, row.names = FALSE)
  expect_message(of_file <- update(fit, rows_csv(file), levels = "omit"), "were left out")
  expect_identical(of_file$log_evidence, known$log_evidence)
  expect_silent(update(fit, later[c(1, 3), ], levels = "omit"))
  none <- suppressMessages(update(fit, later[c(2, 4), ], levels = "omit"))
  expect_identical(none[c("log_evidence", "n")], fit[c("log_evidence", "n")])
})

test_that("a level that the factor had from the start, or of a group, takes new rows", {
  all <- function(f) factor(f, levels = c("a", "b", "c", "d", "e"))
  with_factor$f <- all(with_factor$f)
  fit <- quiet_fit(linear_regression(y ~ x + f, sigma = 1, prior_sd = 1), with_factor,
                   sgais(order = "given"), seed = test_seed(), progress = FALSE)
  updated <- update(fit, later)
  truth <- evidence(linear_regression(y ~ x + f, sigma = 1, prior_sd = 1),
                    rbind(with_factor, transform(later, f = all(f))), exact())
  expect_lt(abs(updated$log_evidence - truth$log_evidence), 5 * updated$se + 1e-6)
  groups <- of_factor(y ~ x + (1 | g))
  expect_identical(update(groups, later)$n, 64L)
})

test_that("models of a race, and further formulas, leave out the same rows", {
  race <- quiet_fit(list(plain = linear_regression(y ~ x, sigma = 1, prior_sd = 1),
                         factor = linear_regression(y ~ x + f, sigma = 1, prior_sd = 1)),
                    with_factor, sgais(order = "given"), seed = test_seed(), progress = FALSE)
  refused(update(race, later), "not \"d\" in row 2")
  left <- suppressMessages(update(race, later, levels = "omit"))
  expect_identical(left$log_evidence, update(race, later[c(1, 3), ])$log_evidence)
  noise <- quiet_fit(regression(y ~ x, sigma ~ f, prior_sd = 1), with_factor,
                     sgais(order = "given"), seed = test_seed(), progress = FALSE)
  refused(update(noise, later), "the run has no coefficient for it")
  expect_identical(suppressMessages(update(noise, later, levels = "omit"))$n, 62L)
})

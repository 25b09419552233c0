# Sums of products that a database computes are those of the model matrix of the rows.

skip_if_not_installed("RSQLite")

database_sums <- logevidence:::database_sums

with_database <- function(use, ...) {
  con <- DBI::dbConnect(RSQLite::SQLite(), ":memory:", ...)
  on.exit(DBI::dbDisconnect(con))
  use(con)
}

# Not dbWriteTable(), because that of RPostgreSQL writes 15 digits and other names.
put_rows <- function(con, name, data) {
  sqlite <- inherits(con, "SQLiteConnection")
  type <- function(x) {
    if (is.character(x)) "text" else if (is.integer(x)) "integer"
    else if (inherits(x, "Date")) "date" else if (is.logical(x)) "boolean" else "double precision"
  }
  value <- function(x) {
    texts <- if (is.character(x) || inherits(x, "Date")) DBI::dbQuoteString(con, as.character(x))
    else if (is.logical(x)) if (sqlite) as.integer(x) else ifelse(x, "TRUE", "FALSE")
    else if (is.integer(x)) x else sprintf("%.17g", x)
    ifelse(is.na(x), "NULL", as.character(texts))
  }
  names <- vapply(names(data), function(name) as.character(DBI::dbQuoteIdentifier(con, name)), "")
  table <- DBI::dbQuoteIdentifier(con, name)
  DBI::dbExecute(con, paste0("CREATE TABLE ", table, " (",
                             paste(names, vapply(data, type, ""), collapse = ", "), ")"))
  rows <- do.call(paste, c(lapply(unname(data), value), sep = ", "))
  DBI::dbExecute(con, paste0("INSERT INTO ", table, " VALUES ",
                             paste0("(", rows, ")", collapse = ", ")))
}

# The model matrix and the response of rows that are read, with order of terms and levels, and rows
# left out, as the package has them.
wanted_columns <- function(formula, data) {
  terms <- logevidence:::formula_terms(formula, data)
  read <- all.vars(formula)
  data <- stats::na.omit(if ("." %in% read) data else data[intersect(read, names(data))])
  frame <- stats::model.frame(terms, data)
  for (name in names(frame)) if (is.character(frame[[name]]))
    frame[[name]] <- factor(frame[[name]], sort(unique(frame[[name]]), method = "radix"))
  x <- cbind(stats::model.matrix(terms, frame), stats::model.response(frame))
  dimnames(x) <- list(NULL, c(colnames(x)[-ncol(x)], names(frame)[1]))
  x
}

relative_error <- function(got, wanted) {
  size <- sqrt(diag(wanted))
  size[size == 0] <- 1
  max(abs(got - wanted) / outer(size, size))
}

expect_sums <- function(con, table, formula, head = NULL, data = NULL) {
  query <- if (inherits(table, "SQL")) table else paste("SELECT * FROM",
                                                        DBI::dbQuoteIdentifier(con, table))
  if (is.null(data)) data <- collect_rows(rows_dbi(con, DBI::SQL(query)))
  x <- wanted_columns(formula, data)
  sums <- database_sums(con, table, formula, head)
  info <- deparse1(formula)
  expect_identical(sums$n, as.double(nrow(x)), info = info)
  expect_identical(sums$omitted, as.double(nrow(data) - nrow(x)), info = info)
  expect_identical(dimnames(sums$products), list(colnames(x), colnames(x)), info = info)
  expect_identical(colnames(sums$root), colnames(x), info = info)
  wanted <- crossprod(x)
  expect_identical(sums$products, t(sums$products))
  expect_lt(relative_error(sums$products, wanted), 1e-12)
  expect_lt(relative_error(crossprod(sums$root), wanted), 1e-12)
  expect_lte(nrow(sums$root), 400)
  sums
}

set.seed(test_seed(21))
n <- 400
rows <- data.frame(
  x = round(rnorm(n, 3), 9), z = round(exp(rnorm(n)), 9), k = sample.int(2e9, n),
  g = sample(c("b", "a", "B", "_c", "é"), n, TRUE), h = sample(c("u", "v"), n, TRUE),
  flag = runif(n) < 0.3, day = as.Date("2020-02-27") + sample(-20000:9000, n)
)
rows$y <- round(rows$x + 2 * (rows$g == "a") - rows$z + rnorm(n), 9)
for (name in c("x", "k", "g", "flag", "day", "y")) rows[[name]][sample(n, 6)] <- NA

a <- 2.5
formulas <- list(
  y ~ 1, y ~ x, y ~ x - 1, y ~ g, y ~ g - 1, y ~ x + g + h, y ~ x * g, y ~ x:g - 1, y ~ g:h,
  y ~ g:h - 1, y ~ g / x, y ~ x %in% g, y ~ (x + g + h)^2, y ~ (x + z + k)^3, y ~ x * z * g - 1,
  y ~ h:x + g:h + g, y ~ I(x^2) + x, y ~ I(-x + 2 * z / 3) + I((x - a)^2):g,
  log(z) ~ log(z + 1, 2) + exp(-x) + sqrt(z), y ~ abs(x) + log10(z) + log2(z) + I(x / z),
  y ~ I(z^0.5) + I(z^-2), y ~ factor(h) + factor(round), y ~ k + I(k * x), y ~ flag,
  y ~ flag:x + I(flag * 2), y ~ day + x, y ~ day:g, y ~ as.numeric(day) + I(flag),
  y ~ factor(flag) - 1, y ~ g + I(g), sqrt(z) ~ . - k - round, y ~ h * flag * x - flag,
  y ~ I((x + z + 1)^5)
)

# Names and levels that are not those of a usual table.
expect_odd_names <- function(con) {
  odd <- rows[c("y", "x", "z", "k", "g", "h")]
  names(odd) <- c("select", "a \"b\" `c`", "X", "x); DROP TABLE odd; --", "it's \\", "from")
  odd$`it's \\` <- c("a'b", "'); DROP TABLE odd; --", "\\", "\\'", "a\nb", "A'B")[
    match(odd$`it's \\`, unique(odd$`it's \\`))]
  odd$from <- ifelse(odd$from == "u", "", " ")
  put_rows(con, "odd", odd)
  put_rows(con, "a \"table\"", odd)
  of <- function(text) stats::as.formula(paste("select ~", text), globalenv())
  for (text in c("`a \"b\" \\`c\\``", "X * `it's \\\\`", "`x); DROP TABLE odd; --`",
                 "factor(`it's \\\\`):from - 1", "log(X) + I(X^2) + from"))
    for (table in c("odd", "a \"table\"")) expect_sums(con, table, of(text))
  expect_equal(DBI::dbGetQuery(con, "SELECT COUNT(*) FROM odd")[[1]], n)
  # the names that the queries themselves use
  own <- stats::setNames(rows[c("y", "x", "z", "g", "h")],
                         c("value_3", "value_1", "response", "key_2", "key_1"))
  put_rows(con, "rows_of_sums", own)
  expect_sums(con, "rows_of_sums", value_3 ~ response * key_2 + value_1 + key_1)
}

test_that("SQLite has the sums of the model matrix, and names and order of its columns", {
  with_database(function(con) {
    rows$round <- sample(c(10L, 9L, 1L), n, TRUE)
    # of logical values RSQLite makes numbers, and of dates text
    put_rows(con, "rows", rows[names(rows) != "day"])
    for (formula in formulas[!grepl("day", formulas)]) expect_sums(con, "rows", formula)
  })
})

test_that("random formulas have the sums of their model matrix", {
  with_database(function(con) {
    put_rows(con, "rows", rows)
    parts <- c("x", "z", "k", "g", "h", "I(x^2)", "log(z)", "x:z", "factor(h)", "I(z - x)")
    for (i in seq_len(fast_or_slow(25, 300))) {
      chosen <- sample(parts, sample(1:4, 1))
      right <- paste(chosen, collapse = sample(c("+", "*", ":"), 1))
      formula <- stats::as.formula(paste("y ~", right, sample(c("", "- 1"), 1)))
      expect_sums(con, "rows", formula)
    }
  })
})

test_that("dates of SQLite are numbers of days, of texts and of numbers", {
  skip_if_not_installed("hms")
  with_database(extended_types = TRUE, function(con) {
    dates <- rows[!is.na(rows$day), c("y", "x", "g", "day")]
    put_rows(con, "texts", dates)
    DBI::dbWriteTable(con, "numbers", dates, field.types = c(day = "DATE"))
    for (formula in c(formulas[grepl("day", formulas) & !grepl("flag|[.]", formulas)], y ~ day))
      for (table in c("texts", "numbers")) {
        expect_s3_class(collect_rows(rows_dbi(con, table))$day, "Date")
        expect_sums(con, table, formula)
      }
  })
})

test_that("PostgreSQL has the sums of the model matrix", with_postgres(function(con) {
  rows$round <- sample(c(10L, 9L, 1L), n, TRUE)
  put_rows(con, "rows", rows)
  for (formula in formulas) expect_sums(con, "rows", formula)
  expect_odd_names(con)
  pushed <- function(push) rows_dbi(con, paste("SELECT y, x, h FROM rows WHERE x IS NOT NULL",
                                               "AND y IS NOT NULL AND h IS NOT NULL"), push = push)
  there <- quiet_fit(linear_regression(y ~ x * h), pushed(TRUE), seed = 1)
  here <- quiet_fit(linear_regression(y ~ x * h), collect_rows(pushed(FALSE)),
                    laplace(importance = 4000), seed = 1)
  expect_identical(there$n, here$n)
  expect_lt(abs(there$log_evidence - here$log_evidence), 1e-5)
  # NaN and infinite values, also of functions
  DBI::dbExecute(con, "CREATE TABLE strange AS SELECT * FROM rows WHERE x IS NOT NULL")
  refused <- function(formula, rule) expect_error(database_sums(con, "strange", formula), rule)
  DBI::dbExecute(con, "UPDATE strange SET z = 'NaN' WHERE h = 'u'")
  refused(y ~ z, "only finite values, not NaN or infinite ones in `z`")
  refused(y ~ log(z), "only finite values, not NaN or infinite ones in `z`")
  DBI::dbExecute(con, "UPDATE strange SET z = '-Infinity' WHERE h = 'u'")
  refused(z ~ x, "infinite ones in `z`")
  DBI::dbExecute(con, "UPDATE strange SET z = 0 WHERE h = 'u'")
  refused(y ~ log(z), "infinite ones in `log\\(z\\)` \\(in [0-9]+ rows\\)")
  refused(y ~ I(x / z), "infinite ones in `x/z`")
  refused(y ~ sqrt(x - 100), "in `sqrt\\(x - 100\\)`")
  refused(y ~ exp(k), "in `exp\\(k\\)`")
  expect_sums(con, "strange", y ~ exp(-k))
  # others in the language of the database
  DBI::dbExecute(con, "CREATE TYPE mood AS ENUM ('sad', 'glad')")
  DBI::dbExecute(con, paste("CREATE TABLE moods AS SELECT y, CAST(CASE WHEN x > 3 THEN 'sad' ELSE",
                            "'glad' END AS mood) AS m, CAST(h AS char(3)) AS h,",
                            "CAST(x AS numeric(30, 9)) AS x, CAST(k AS bigint) AS k FROM strange"))
  for (formula in c(y ~ m, y ~ h * x, y ~ m:k))
    suppressWarnings(expect_sums(con, "moods", formula))
  DBI::dbExecute(con, "CREATE TABLE times AS SELECT y, now() AS at FROM strange")
  expect_error(database_sums(con, "times", y ~ at), "`at` of type date-time")
  expect_error(database_sums(con, "nowhere", y ~ at), "could not answer.*nowhere")
}))

test_that("DuckDB has the sums of the model matrix", {
  if (!"duckdb" %in% .packages(all.available = TRUE)) skip("No package duckdb")
  con <- DBI::dbConnect(getExportedValue("duckdb", "duckdb")())
  on.exit(DBI::dbDisconnect(con, shutdown = TRUE))
  rows$round <- sample(c(10L, 9L, 1L), n, TRUE)
  put_rows(con, "rows", rows)
  for (formula in formulas) expect_sums(con, "rows", formula)
  expect_odd_names(con)
})

test_that("odd names and levels are quoted", {
  with_database(expect_odd_names)
})

test_that("a query may take the place of a table", {
  with_database(function(con) {
    put_rows(con, "rows", rows)
    for (query in c("SELECT *, x * z AS xz FROM rows WHERE z > 0.5",
                    "SELECT y, x AS xz FROM rows;\n", "SELECT y, z AS xz FROM rows -- all"))
      expect_sums(con, DBI::SQL(query), y ~ xz)
    expect_equal(database_sums(con, DBI::Id(table = "rows"), y ~ x),
                 database_sums(con, "rows", y ~ x))
    # the same number of rows twice: once in 100,000 times
    varying <- paste("SELECT a.y AS y, a.x AS x FROM rows a, rows b",
                     "LIMIT 50000 + abs(random()) % 100000")
    expect_error(database_sums(con, DBI::SQL(varying), y ~ x), "have changed while they were read")
    # fewer rows in the first query than in the second
    larger <- paste("SELECT y, x FROM rows",
                    "LIMIT (CASE WHEN abs(random()) % 2 = 0 THEN 10 ELSE 20 END)")
    for (k in 1:20) {
      found <- tryCatch(database_sums(con, DBI::SQL(larger), y ~ x), error = identity)
      if (inherits(found, "error")) expect_match(conditionMessage(found), "have changed while they")
      else expect_gte(found$omitted, 0)
    }
    expect_error(database_sums(con, 3, y ~ x), "`table` must be the name of a table")
    expect_error(database_sums("rows", "rows", y ~ x), "`con` must be a connection")
  })
})

test_that("levels are those of the head's factors", {
  with_database(function(con) {
    put_rows(con, "rows", rows)
    head <- rows[1:20, ]
    head$g <- factor(head$g, c("é", "z", "b", "a", "B", "_c"))
    data <- rows
    data$g <- factor(data$g, levels(head$g))
    sums <- expect_sums(con, "rows", y ~ g * x, head, data)
    expect_identical(sums$products["gz", "gz"], 0)
    head$g <- ordered(head$g)
    data$g <- ordered(data$g, levels(head$g))
    expect_sums(con, "rows", y ~ g, head, data)
    levels(head$g)[3] <- "c"
    expect_error(database_sums(con, "rows", y ~ g, head),
                 "only known levels in `g` .*, not \"[ab]\"")
    head$g <- NULL
    # contrasts of the user
    expect_sums(con, "rows", y ~ g + h)
    before <- options(contrasts = c("contr.sum", "contr.poly"))
    on.exit(options(before))
    expect_sums(con, "rows", y ~ g * h + x)
  })
})

test_that("a column that takes \"a\" and \"A\" for the same keeps both levels", {
  with_database(function(con) {
    DBI::dbExecute(con, "CREATE TABLE t (y REAL, g TEXT COLLATE NOCASE)")
    DBI::dbExecute(con, "INSERT INTO t VALUES (1, 'a'), (2, 'A'), (3.5, 'b'), (4, 'a')")
    expect_identical(colnames(expect_sums(con, "t", y ~ g)$products),
                     c("(Intercept)", "ga", "gb", "y"))
  })
})

test_that("many columns are asked for in several queries", {
  with_database(function(con) {
    wide <- as.data.frame(matrix(round(rnorm(80 * 62, 5), 6), 80))
    names(wide)[62] <- "y"
    wide$g <- rep(c("a", "b"), 40)
    DBI::dbWriteTable(con, "wide", wide)
    expect_sums(con, "wide", y ~ .)
    expect_error(database_sums(con, "wide", y ~ .:g:., NULL), "fewer columns")
  })
})

# Log evidence with known noise, from rows or from the root of their products.
log_evidence_of <- function(x, y, n, sigma, prior_sd) {
  x <- as.matrix(x)
  p <- ncol(x)
  stacked <- rbind(cbind(x, y) / sigma, cbind(diag(1 / prior_sd, p), 0))
  r <- qr.R(qr(stacked, LAPACK = FALSE, tol = 0))
  -n / 2 * log(2 * pi * sigma^2) - p * log(prior_sd) - sum(log(abs(diag(r)[seq_len(p)]))) -
    r[[p + 1, p + 1]]^2 / 2
}

test_that("large means leave the digits of residuals", {
  with_database(function(con) {
    m <- fast_or_slow(2000, 50000)
    far <- data.frame(x = 1e6 + rnorm(m), z = 1e6 + rnorm(m), g = sample(c("a", "b", "c"), m, TRUE))
    far$y <- far$x + 0.3 * (far$z - 1e6) + (far$g == "b") + rnorm(m)
    DBI::dbWriteTable(con, "far", far)
    check <- function(formula) {
      x <- wanted_columns(formula, far)
      p <- ncol(x) - 1
      root <- database_sums(con, "far", formula)$root
      expect_equal(log_evidence_of(root[, 1:p, drop = FALSE], root[, p + 1], m, 1, 10),
                   log_evidence_of(x[, 1:p, drop = FALSE], x[, p + 1], m, 1, 10), tolerance = 1e-9,
                   info = deparse1(formula))
      # its sums are of products around other points
      fit <- evidence(linear_regression(formula, sigma = 1, prior_sd = 10), far, laplace())
      expect_equal(log_evidence_of(root[, 1:p, drop = FALSE], root[, p + 1], m, 1, 10),
                   fit$log_evidence, tolerance = 1e-7)
    }
    for (formula in c(y ~ x, y ~ x - 1, y ~ x + z, y ~ x + z + g, y ~ x * g, y ~ g + g:x - 1))
      check(formula)
  })
})

test_that("what a database cannot compute is refused with its name", {
  with_database(function(con) {
    put_rows(con, "rows", rows[-7])
    refused <- function(formula, rule) expect_error(database_sums(con, "rows", formula), rule)
    for (term in c("poly(x, 2)", "splines::ns(x, 3)", "lags(y, 1)", "cut(x, 3)", "log1p(z)",
                   "I(x > 2)", "cos(x)", "I(x%%2)", "I(2^x)", "I(x + g)", "factor(g, \"a\")",
                   "scale(x)"))
      expect_error(database_sums(con, "rows", stats::as.formula(paste("y ~ x +", term))),
                   paste0("database can compute, not with `", term, "`"), fixed = TRUE)
    refused(y ~ x + offset(z), "not with `offset\\(z\\)`")
    refused(g ~ x, "numeric response, not `g` of type factor")
    refused(y ~ nowhere, "must have the column `nowhere`")
    refused(y ~ x + I(a^2), "a column of the table in each variable")
    refused(~ x, "with a response")
    refused(y ~ log(x - 100), "only finite values, not NaN or infinite ones in `log\\(x - 100\\)`")
    log <- function(x) x
    expect_error(database_sums(con, "rows", y ~ log(z)), "not with `log\\(z\\)`")
    rm(log)
    DBI::dbExecute(con, "CREATE TABLE mixed (y, x, g, one, id, none)")
    DBI::dbExecute(con, paste("INSERT INTO mixed VALUES",
                              paste0("(", 1:150, ".5, ", 1:150, ", 'a', 'b', 'i", 1:150, "', NULL)",
                                     collapse = ", ")))
    mixed <- function(formula, rule) expect_error(database_sums(con, "mixed", formula), rule)
    mixed(y ~ one, "at least two levels in the factor `one`, not only \"b\"")
    mixed(y ~ id, "at most 100 levels in the factor `id` for sums in a database, not 150")
    mixed(y ~ none, "a row without missing values")
    DBI::dbExecute(con, "INSERT INTO mixed VALUES (9e999, 'fast', 3, NULL, NULL, NULL)")
    head <- DBI::dbGetQuery(con, "SELECT * FROM mixed LIMIT 100")
    for (first in list(NULL, head)) {
      expect_error(database_sums(con, "mixed", y ~ x, first), "one type in each column")
      expect_error(database_sums(con, "mixed", y ~ g, first), "one type in each column")
    }
    expect_error(database_sums(con, DBI::SQL("SELECT y, 1.0 * id AS x FROM mixed"), y ~ 1, head),
                 "infinite ones in `y` \\(in 1 row\\)")
    expect_error(database_sums(con, DBI::SQL("SELECT * FROM rows WHERE z < 0"), y ~ x, rows),
                 "at least one row")
  })
})

# Fits by sums in the database ---------------------------------------------------------------------

test_that("a regression whose sums the database computes is that of the rows in memory", {
  skip_if_not_installed("RSQLite")
  con <- DBI::dbConnect(RSQLite::SQLite(), ":memory:")
  on.exit(DBI::dbDisconnect(con))
  rows <- with_own_seed(test_seed(11), {
    n <- 3000
    x <- rnorm(n, 1000)
    data.frame(x, g = sample(c("b", "a", "c"), n, TRUE), z = rnorm(n),
               y = 1 + x / 3 + rnorm(n))
  })
  DBI::dbWriteTable(con, "rows", rows)
  pushed <- rows_dbi(con, "rows", push = TRUE)
  models <- list(linear_regression(y ~ x + g, sigma = 1, prior_sd = 2),
                 linear_regression(y ~ I(x - 1000) * g + z), regression(y ~ I((x - 1000)^2)),
                 regression(y ~ z, prior = student_t(3, 0, 2), sigma = 2))
  fits <- lapply(models, function(model) {
    there <- quiet_fit(model, pushed, seed = test_seed(1))
    here <- quiet_fit(model, rows, laplace(importance = 4000), seed = test_seed(1))
    expect_identical(there$n, here$n)
    expect_lt(abs(there$log_evidence - here$log_evidence), 1e-5, label = deparse1(model$formula))
    expect_lt(abs(there$se - here$se), 1e-4)
    there
  })
  # the closed form, from the sums and as many rows of zeros as are missing
  for (model in models[1:2]) {
    there <- quiet_fit(model, pushed, exact(), seed = test_seed(1))
    here <- quiet_fit(model, rows, exact(), seed = test_seed(1))
    expect_lt(abs(there$log_evidence - here$log_evidence), 1e-6, label = deparse1(model$formula))
    expect_identical(there$se, 0)
    # both have 1,000 independent draws
    away <- (colMeans(there$draws) - colMeans(here$draws)) / apply(here$draws, 2, stats::sd)
    expect_lt(max(abs(away)), 5 * sqrt(2 / 1000))
    expect_equal(stats::cov(there$draws), stats::cov(here$draws), tolerance = 0.3)
  }
  expect_error(evidence(models[[4]], pushed, exact()), "closed form", class = "logevidence_error")
  # also of fewer rows than columns
  for (n in 1:5) {
    DBI::dbWriteTable(con, "few", rows[seq_len(n), ])
    for (model in list(linear_regression(y ~ x + z, sigma = 1, prior_sd = 2),
                       linear_regression(y ~ x * z)))
      expect_equal(quiet_fit(model, rows_dbi(con, "few", push = TRUE), exact())$log_evidence,
                   quiet_fit(model, rows[seq_len(n), ], exact())$log_evidence, tolerance = 1e-9)
    DBI::dbRemoveTable(con, "few")
  }
  # fits of the same response can be compared
  table <- compare_models(a = fits[[2]], b = fits[[3]])
  expect_identical(nrow(table), 2L)
  both <- suppressWarnings(evidence(list(a = models[[2]], b = models[[3]]), pushed,
                                    seed = test_seed(1)))
  expect_identical(both$log_evidence[both$model == "a"], fits[[2]]$log_evidence)
  # replicates, a target error, a hook, checkpoints and a limit of time are those of rows in memory
  file <- tempfile()
  on.exit(unlink(file), add = TRUE)
  told <- 0
  fit <- quiet_fit(models[[2]], pushed, laplace(importance = 100), seed = test_seed(1),
                   replicates = 3, checkpoint = file, on_chunk = function(report) told <<- told + 1)
  here <- quiet_fit(models[[2]], rows, laplace(importance = 100), seed = test_seed(1),
                    replicates = 3)
  expect_lt(max(abs(fit$replicates$log_evidence - here$replicates$log_evidence)), 1e-4)
  expect_gt(told, 0)
  same <- function(one) expect_identical(one[c("log_evidence", "se", "draws", "data_id")],
                                         fit[c("log_evidence", "se", "draws", "data_id")])
  same(suppressWarnings(resume(file)))
  part <- quiet_fit(models[[2]], pushed, laplace(importance = 100), seed = test_seed(1),
                    replicates = 3, time_limit = 1e-9)
  if (inherits(part, "incomplete_evidence")) part <- suppressWarnings(resume(part))
  same(part)
  more <- suppressMessages(quiet_fit(models[[2]], pushed, laplace(importance = 100),
                                     seed = test_seed(1), target_se = fit$se / 2))
  expect_lte(more$se, fit$se / 2)
  expect_error(resume(file, rows), "must not be given", class = "logevidence_error")
  DBI::dbExecute(con, "UPDATE rows SET z = NULL WHERE rowid < 5")
  expect_message(fit <- quiet_fit(models[[4]], pushed, seed = 1), "4 of 3,000 rows left out")
  expect_identical(fit$n, 2996L)
  all <- regression(y ~ ., prior_sd = 2.5)
  there <- suppressMessages(quiet_fit(all, pushed, seed = 1))
  here <- quiet_fit(all, rows[-(1:4), ], laplace(importance = 4000), seed = 1)
  expect_lt(abs(there$log_evidence - here$log_evidence), 1e-5)
  refused <- function(code, text) expect_error(code, text, class = "logevidence_error")
  refused(evidence(regression(y ~ x, sigma ~ z), pushed), "constant noise")
  # standardised columns, with constants of all rows
  for (model in list(linear_regression(y ~ x, scale = TRUE, prior_sd = 1, sigma = 2),
                     linear_regression(y ~ 0 + x + z),
                     linear_regression(y ~ 0 + g + x), linear_regression(y ~ . - 1),
                     regression(y ~ x, prior = normal(0, 1)))) {
    there <- suppressMessages(quiet_fit(model, pushed, exact(), seed = 1))
    table <- DBI::dbReadTable(con, pushed$push$table)
    used <- columns_for_omit(model$formula, table)
    table <- table[stats::complete.cases(table[used]), ]
    here <- quiet_fit(model, table, exact(), seed = 1)
    expect_lt(abs(there$log_evidence - here$log_evidence), 1e-6)
    expect_equal(there$args$user_scale, here$args$user_scale, tolerance = 1e-9)
  }
  refused(evidence(regression(g ~ x, "binomial"), pushed), "push = FALSE|zeros")
  refused(evidence(models[[1]], pushed, smc()), "laplace")
  refused(evidence(linear_regression(y ~ poly(x, 2)), pushed), "poly")
})

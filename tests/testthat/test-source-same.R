# The same rows in the same order give the same results to the bit, wherever they come from.

set.seed(test_seed(12))
n <- fast_or_slow(600, 3000)
sizes <- fast_or_slow(c(7, 250), c(1, 7, 1000))
rows <- data.frame(x = rnorm(n), z = exp(rnorm(n, 0, 5)), count = sample(1:9, n, TRUE),
                   g = sample(c("a", "b", "c"), n, TRUE))
rows$y <- 1 + 2 * rows$x - (rows$g == "b") + rnorm(n)
models <- list(
  linear_regression(y ~ x + count, sigma = 1, prior_sd = 2),
  linear_regression(y ~ log(z) + g, sigma = 1, prior_sd = 2),
  gaussian_mixture(~ x + y, components = 2)
)
wanted <- lapply(models, evidence, rows, sgais(order = "given"), seed = test_seed(5))

expect_same_fits <- function(make, label, of = seq_along(models)) {
  for (k in of) {
    fit <- evidence(models[[k]], make(), sgais(order = "given"), seed = test_seed(5))
    for (part in c("log_evidence", "se", "draws", "log_weights", "n", "data_id"))
      expect_identical(fit[[part]], wanted[[k]][[part]], info = paste(label, k, part))
  }
}

test_that("rows from a function give the fits of the data frame", {
  for (size in sizes) expect_same_fits(function() in_blocks(rows, size), size)
})

test_that("rows from a text file give the fits of the data frame", {
  file <- write_digits(rows)
  for (size in sizes) expect_same_fits(function() rows_csv(file, block = size), size)
  zipped <- tempfile(fileext = ".csv.gz")
  con <- gzfile(zipped, "wb")
  writeLines(readLines(file), con)
  close(con)
  expect_same_fits(function() rows_csv(zipped), "gzip")
})

test_that("rows from SQLite give the fits of the data frame", {
  skip_if_not_installed("RSQLite")
  con <- DBI::dbConnect(RSQLite::SQLite(), ":memory:")
  on.exit(DBI::dbDisconnect(con))
  DBI::dbWriteTable(con, "rows", rows)
  for (size in sizes) expect_same_fits(function() rows_dbi(con, "rows", block = size), size)
  expect_same_fits(function() rows_dbi(con, "SELECT * FROM rows ORDER BY rowid"), "query")
})

test_that("rows from PostgreSQL give the fits of the data frame", with_postgres(function(con) {
  # dbWriteTable() of RPostgreSQL would write 15 digits
  DBI::dbGetQuery(con, "CREATE TABLE rows (x float8, z float8, count int, g text, y float8)")
  values <- sprintf("(%.17g,%.17g,%d,'%s',%.17g)", rows$x, rows$z, rows$count, rows$g, rows$y)
  DBI::dbGetQuery(con, paste("INSERT INTO rows VALUES", paste(values, collapse = ",")))
  # a round trip for each row takes long
  expect_same_fits(function() rows_dbi(con, "rows", block = 1), 1, of = 2)
  for (size in setdiff(sizes, 1))
    expect_same_fits(function() rows_dbi(con, "rows", block = size), size, of = 1:2)
}))

test_that("rows from Arrow give the fits of the data frame", {
  skip_if_not_installed("nanoarrow")
  stream <- function(size, data = rows) {
    parts <- split(data, (seq_len(nrow(data)) - 1) %/% size)
    nanoarrow::basic_array_stream(lapply(parts, nanoarrow::as_nanoarrow_array))
  }
  for (size in setdiff(sizes, 1)) expect_same_fits(function() rows_arrow(stream(size)), size)
  # thousands of batches of one row would take long
  few <- rows[1:200, ]
  one <- function(data) evidence(models[[1]], data, sgais(order = "given"),
                                 seed = test_seed(5))$draws
  expect_identical(one(rows_arrow(stream(1, few))), one(few))
})

test_that("rows from DuckDB give the fits of the data frame", {
  for (package in c("duckdb", "arrow"))
    if (!package %in% .packages(all.available = TRUE)) skip(paste("No package", package))
  con <- DBI::dbConnect(getExportedValue("duckdb", "duckdb")())
  on.exit(DBI::dbDisconnect(con, shutdown = TRUE))
  DBI::dbWriteTable(con, "rows", rows)
  expect_same_fits(function() rows_arrow(function() {
    result <- DBI::dbSendQuery(con, "SELECT * FROM rows", arrow = TRUE)
    getExportedValue("duckdb", "duckdb_fetch_record_batch")(result)
  }), "duckdb")
})

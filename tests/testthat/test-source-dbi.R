# Rows from databases. The fits are compared in test-source-same.R.

skip_if_not_installed("RSQLite")

with_sqlite <- function(use) {
  con <- DBI::dbConnect(RSQLite::SQLite(), ":memory:")
  on.exit(DBI::dbDisconnect(con))
  use(con)
}
model <- linear_regression(dist ~ speed, sigma = 15, prior_sd = 10)

test_that("a table, a query and Id() give their rows again and again", {
  with_sqlite(function(con) {
    DBI::dbWriteTable(con, "cars", cars)
    for (query in list("cars", DBI::Id(table = "cars"), "SELECT * FROM cars",
                       DBI::SQL("SELECT * FROM cars")))
      for (block in c(1, 7, 1000)) {
        source <- rows_dbi(con, query, block = block)
        for (pass in 1:2) expect_identical(collect_rows(source), cars)
      }
    expect_output(print(rows_dbi(con, "cars")),
                  "table `cars`\n.*SQLite\n.* 50\n.*again from the start")
    expect_output(print(rows_dbi(con, "SELECT * FROM cars")), "query: .*SELECT .*not known before")
    DBI::dbWriteTable(con, "labels", data.frame(y = c(1, 2, 3, 4), g = c("u", "v", "u", "w")))
    got <- collect_rows(rows_dbi(con, "labels", levels = list(g = c("w", "v", "u")), block = 3))
    expect_identical(got$g, factor(c("u", "v", "u", "w"), c("w", "v", "u")))
    expect_error(collect_rows(rows_dbi(con, "labels", levels = list(g = c("u", "v")), block = 3)),
                 "not \"w\" in row 4.", fixed = TRUE)
  })
})

test_that("a table that does not exist is named", {
  with_sqlite(function(con) {
    expect_error(rows_dbi(con, "nope"), "not \"nope\": the database has no table of this name",
                 fixed = TRUE)
    DBI::dbWriteTable(con, "cars", cars)
    expect_error(rows_dbi(con, "nope"), "has the tables `cars`", fixed = TRUE)
    expect_error(rows_dbi(con, DBI::Id(table = "nope")), "has the tables `cars`", fixed = TRUE)
  })
})

# A result that is still open makes the next query of RSQLite warn.
expect_closed <- function(con) expect_silent(DBI::dbGetQuery(con, "SELECT 1"))

test_that("the result is cleared when a run ends, fails or is interrupted", {
  with_sqlite(function(con) {
    many <- cars[rep(1:50, 400), ]
    DBI::dbWriteTable(con, "cars", many)
    evidence(model, rows_dbi(con, "cars"), seed = test_seed())
    expect_closed(con)
    many$speed[15000] <- NA
    DBI::dbWriteTable(con, "missing", many)
    expect_error(evidence(model, rows_dbi(con, "missing"), seed = test_seed()),
                 "column `speed`, row 15000.",
                 fixed = TRUE)
    expect_closed(con)
    source <- rows_dbi(con, "cars", block = 100)
    open <- source$open
    source$open <- function() {
      reader <- open()
      calls <- 0
      list(read = function() if ((calls <<- calls + 1) > 150) an_interrupt() else reader$read(),
           close = reader$close)
    }
    expect_identical(tryCatch(evidence(model, source, seed = test_seed()),
                              interrupt = function(e) "stopped"), "stopped")
    expect_closed(con)
  })
})

test_that("columns of several types are refused", {
  with_sqlite(function(con) {
    DBI::dbExecute(con, "CREATE TABLE mixed (dist, speed)")
    DBI::dbExecute(con, "INSERT INTO mixed VALUES (1, 2), (2, 3), (3, 2.5)")
    # whole numbers first and others later, in one block and in the next
    for (block in c(1, 2, 1000))
      expect_equal(collect_rows(rows_dbi(con, "mixed", block = block))$speed, c(2, 3, 2.5))
    DBI::dbExecute(con, "INSERT INTO mixed VALUES (4, 'fast')")
    expect_error(collect_rows(rows_dbi(con, "mixed")), "one type in each column.*`speed`.*CAST")
    expect_error(collect_rows(rows_dbi(con, "mixed", block = 1)), "rows after row 3 .*`speed`")
  })
})

test_that("arguments are checked when the source is made, and database errors are quoted", {
  with_sqlite(function(con) {
    expect_error(rows_dbi("cars", "cars"), "`con` must be a connection made by")
    expect_error(rows_dbi(con, 1), "`query` must be a query in SQL or the name of a table, not 1")
    expect_error(evidence(model, rows_dbi(con, "SELECT * FROM nowhere")), "no such table: nowhere")
    DBI::dbWriteTable(con, "cars", cars)
    expect_error(evidence(model, rows_dbi(con, "SELECT * FROM cars WHERE speed < 0")),
                 "at least one row")
  })
  closed <- DBI::dbConnect(RSQLite::SQLite(), ":memory:")
  DBI::dbDisconnect(closed)
  expect_error(rows_dbi(closed, "cars"), "`con` must be an open connection")
})

test_that("PostgreSQL: a closed cursor and a lost server are errors in a sentence", {
  server <- start_postgres()
  if (is.character(server)) skip(server)
  on.exit(server$stop())
  con <- server$connect()
  on.exit(suppressWarnings(try(DBI::dbDisconnect(con), silent = TRUE)), add = TRUE, after = FALSE)
  DBI::dbGetQuery(con, paste("CREATE TABLE cars AS SELECT i % 20 AS speed, 2.0 * (i % 20) AS dist",
                             "FROM generate_series(1, 30000) AS i"))
  cursors <- function() DBI::dbGetQuery(con, "SELECT count(*) FROM pg_cursors")[[1]]
  source <- rows_dbi(con, "SELECT * FROM cars", block = 500)
  expect_equal(evidence(model, source, seed = test_seed())$n, 30000)
  expect_equal(cursors(), 0)
  expect_error(evidence(gaussian_mean(~ log(speed)), source),
               "-Inf in column `log(speed)`, row 20.",
               fixed = TRUE)
  expect_equal(cursors(), 0)
  expect_output(print(rows_dbi(con, "cars")), "PostgreSQL\n.*30,000")
  # the server stops while rows are read
  open <- source$open
  source$open <- function() {
    reader <- open()
    calls <- 0
    list(read = function() {
      if ((calls <<- calls + 1) == 41) server$stop()
      reader$read()
    }, close = reader$close)
  }
  expect_error(suppressWarnings(evidence(model, source, seed = test_seed())),
               "could not be read after row 20000: server closed")
})

test_that("an empty table and a refused query are errors in a sentence", {
  with_sqlite(function(con) {
    DBI::dbWriteTable(con, "empty", cars[0, ])
    DBI::dbWriteTable(con, "cars", cars)
    for (push in c(FALSE, TRUE)) {
      expect_error(evidence(model, rows_dbi(con, "empty", push = push), seed = 1),
                   class = "logevidence_error")
      refused(evidence(model, rows_dbi(con, "SELECT nothing FROM cars", push = push), seed = 1),
              "must be one that the database accepts, and of this one it says: ")
    }
  })
})

# Rows from a source give the same results as rows in memory, whatever the size of their blocks.

set.seed(test_seed(11))
points <- data.frame(x = rnorm(4000), z = rnorm(4000), g = factor(rep(c("a", "b", "c", "d"), 1000)))
points$y <- 1 + 2 * points$x + rnorm(4000)
line <- linear_regression(y ~ x + g, sigma = 1, prior_sd = 2)

expect_same_fit <- function(model, data, method, sizes) {
  one <- evidence(model, data, method, seed = test_seed(3))
  for (size in sizes) {
    other <- evidence(model, in_blocks(data, size), method, seed = test_seed(3))
    for (part in c("log_evidence", "se", "draws", "n", "data_id", "warnings", "sampler"))
      expect_identical(other[[part]], one[[part]], info = paste(size, part))
  }
}

test_that("a source with an altered `open` is refused", {
  source <- rows_function(function(reset) NULL)
  for (open in list(function() NULL, function() 3, function() list(read = 1), sum)) {
    source$open <- open
    refused(evidence(gaussian_mean(), source, seed = 1),
            "A source of rows must be as its constructor has made it, and the part `open`")
  }
})

test_that("the size of blocks changes no bit, for each method", {
  most <- points[seq_len(fast_or_slow(400, 4000)), ]
  expect_same_fit(line, most, sgais(order = "given"), fast_or_slow(c(7, 250), c(1, 7, 250, 1e5)))
  expect_same_fit(gaussian_mixture(~ x + z, components = 2), most, sgais(order = "given"),
                  fast_or_slow(c(30, 1e5), c(7, 400, 1e5)))
  expect_same_fit(line, most, sgais(preset = "paper"), fast_or_slow(30, c(7, 250)))
  expect_same_fit(line, points[1:300, ], smc("data", order = "given"), c(1, 100))
  expect_same_fit(line, most[1:300, ], sequential(), fast_or_slow(30, c(7, 300)))
  expect_same_fit(line, most[1:300, ], hybrid(), fast_or_slow(30, c(7, 100)))
  if (is_slow()) expect_same_fit(line, points[1:200, ], online_nested(), c(7, 20))
})

test_that("replicates from a source are those in memory", {
  one <- evidence(line, points, sgais(order = "given"), seed = test_seed(3), replicates = 3)
  other <- evidence(line, in_blocks(points, 700), sgais(order = "given"), seed = test_seed(3),
                    replicates = 3)
  expect_identical(other$replicates, one$replicates)
})

test_that("methods and models that need all rows at once refuse a source", {
  expect_error(evidence(line, in_blocks(points, 100), nested()), "all rows at once")
  expect_error(evidence(clustering(components = 2), in_blocks(points, 100)), "all rows at once")
  expect_error(evidence(line, in_blocks(points[0, ], 100)), "at least one row")
})

# Bad rows ----------------------------------------------------------------------------------------

slope <- linear_regression(y ~ x, sigma = 1, prior_sd = 2)
first <- points[1:1500, ]
second <- points[1501:3000, ]
with_bad <- function(row, column, value) {
  bad <- second
  bad[[column]][row] <- value
  these_blocks(first, bad)
}

test_that("an error names the row of the source, not of the block", {
  run <- function(model, rows) evidence(model, rows, seed = test_seed())
  expect_error(run(slope, with_bad(7, "x", NA)), "not NA in column `x`, row 1507.", fixed = TRUE)
  expect_error(run(slope, with_bad(7, "y", Inf)), "not Inf in column `y`, row 1507.", fixed = TRUE)
  expect_error(run(linear_regression(y ~ x + z:x, sigma = 1, prior_sd = 1), with_bad(7, "z", NA)),
               "not NA in column `z`, row 1507.", fixed = TRUE)
  expect_error(run(gaussian_mixture(~ x + z, components = 2), with_bad(7, "z", NaN)),
               "not NaN in column `z`, row 1507.", fixed = TRUE)
  expect_error(run(gaussian_mixture(~ x + log(z^2), components = 2), with_bad(7, "z", 0)),
               "not -Inf in column `log(z^2)`, row 1507.", fixed = TRUE)
  expect_error(run(gaussian_mean(~ y), with_bad(7, "y", NA)), "column `y`, row 1507.", fixed = TRUE)
  # the first block is larger than the head, from which levels are taken
  many <- points[rep(1:4000, 4), ]
  many$x[12345] <- NA
  expect_error(run(slope, in_blocks(many, 1e5)), "row 12345.", fixed = TRUE)
})

test_that("text where numbers were names the column, the row and the value", {
  expect_error(evidence(slope, with_bad(7, "x", "oops"), seed = test_seed()),
               "numbers in the column `x`, as in its first rows, not \"oops\" in row 1507.",
               fixed = TRUE)
  # also within the rows that are put together
  bad <- points[1:20, ]
  bad$y[13] <- "?"
  expect_error(evidence(slope, these_blocks(points[1:20, ], bad)), "not \"?\" in row 33.",
               fixed = TRUE)
})

test_that("whole numbers first and others later are numbers", {
  whole <- points[1:10, ]
  whole$x <- 1:10
  mixed <- rbind(whole, points[11:3000, ])
  one <- evidence(slope, mixed, sgais(order = "given"), seed = test_seed())
  other <- evidence(slope, these_blocks(whole, points[11:1500, ], points[1501:3000, ]),
                    seed = test_seed())
  expect_identical(other$log_evidence, one$log_evidence)
})

test_that("a level that was not seen names its column and row", {
  group <- linear_regression(y ~ g, sigma = 1, prior_sd = 1)
  late <- points[rep(1:4000, 3), ]
  late$g <- as.character(late$g)
  late$g[11111] <- "new"
  expect_error(evidence(group, in_blocks(late, 3000), seed = test_seed()),
               paste("known levels in `g` (\"a\", \"b\", \"c\", \"d\": those of the first rows, or",
                     "`levels` of the source), not \"new\" in row 11111."),
               fixed = TRUE)
  class <- softmax_regression(g ~ x, prior_sd = 1)
  expect_error(evidence(class, in_blocks(late, 3000), seed = test_seed()),
               "not \"new\" in row 11111.",
               fixed = TRUE)
})

test_that("other bad blocks are refused with their rows", {
  expect_error(evidence(slope, these_blocks(first[rep(1:1500, 7), ], second[c("y", "z")])),
               "must have the column `x`, .* rows from 10501 to 12000")
  expect_error(evidence(slope, these_blocks(first[rep(1:1500, 7), ],
                                            transform(second, x = as.Date("2020-01-01")))),
               "`x` of type numeric, as in the first data, not Date. .*rows from 10501 to 12000")
  expect_error(evidence(slope, these_blocks(first, second[c("y", "z")])), "the column `x`")
})

test_that("the error of a failing reader is quoted, with the number of rows before it", {
  failing <- these_blocks(first, second, function() stop("the server went away."))
  expect_error(evidence(slope, failing, seed = test_seed()),
               "could not be read after row 3000: the server went away.", fixed = TRUE)
  expect_error(evidence(slope, these_blocks(function() stop("no file"))), "after row 0: no file.")
  expect_error(collect_rows(failing), "after row 3000", class = "logevidence_error")
})

test_that("rows before a failure are used before it is raised", {
  feed <- logevidence:::open_feed(slope, these_blocks(points[rep(1:4000, 3), ], second, function()
    stop("lost")))
  on.exit(logevidence:::close_feed(feed))
  expect_false(logevidence:::pull(feed)$last)
  expect_false(logevidence:::pull(feed)$last)
  expect_identical(feed$n, 13500)
  expect_error(logevidence:::pull(feed), "after row 13500: lost.", fixed = TRUE)
})

test_that("a bad row among the first ones leaves a fit of the rows before", {
  bad <- points[1:500, ]
  bad$y[333] <- NA
  stopped <- tryCatch(evidence(slope, these_blocks(bad), seed = test_seed()), error = identity)
  expect_match(conditionMessage(stopped), "row 333.", fixed = TRUE)
  expect_identical(stopped$fit$rows_read, 332)
  expect_identical(update(stopped$fit, points[333:500, ])$log_evidence,
                   evidence(slope, in_blocks(points[1:500, ], 500),
                            seed = test_seed())$log_evidence)
  bad$y[1] <- NA
  none <- tryCatch(evidence(slope, these_blocks(bad), seed = test_seed()), error = identity)
  expect_match(conditionMessage(none), "row 1.", fixed = TRUE)
  expect_null(none$fit)
})

test_that("empty blocks are skipped, and no rows at all are an error", {
  empty <- points[0, ]
  some <- these_blocks(empty, first, empty, empty, second, empty)
  expect_identical(evidence(slope, some, seed = test_seed())$log_evidence,
                   evidence(slope, in_blocks(points[1:3000, ], 800),
                            seed = test_seed())$log_evidence)
  expect_error(evidence(slope, these_blocks(empty, empty)), "at least one row, not 0.",
               fixed = TRUE)
  expect_error(collect_rows(these_blocks()), "at least one row, not 0.", fixed = TRUE)
})

# All rows ----------------------------------------------------------------------------------------

test_that("collect_rows() gives all rows as a data frame", {
  plain <- points
  attr(plain, "row.names") <- seq_len(nrow(points))
  for (size in c(1, 7, 1e5)) expect_identical(collect_rows(in_blocks(points, size)), plain)
  xy <- list(x = as.matrix(points[c("x", "z")]), y = points$y)
  parts <- lapply(split(1:4000, rep(1:4, each = 1000)),
                  function(i) list(x = xy$x[i, ], y = xy$y[i]))
  expect_equal(collect_rows(do.call(these_blocks, unname(parts))), xy, ignore_attr = TRUE)
  # factors whose levels differ, and text, are bound as rbind() does
  halves <- list(data.frame(g = factor("a")), data.frame(g = factor(c("b", "a"))))
  expect_identical(collect_rows(do.call(these_blocks, halves)), do.call(rbind, halves))
})

test_that("a second pass over a source begins at its first row", {
  feed <- logevidence:::open_feed(slope, in_blocks(points, 300))
  on.exit(logevidence:::close_feed(feed))
  pass <- function() {
    rows <- list()
    repeat {
      block <- logevidence:::pull(feed)
      rows <- c(rows, list(block$rows))
      if (block$last) return(do.call(cbind, rows))
    }
  }
  once <- pass()
  logevidence:::rewind_feed(feed)
  expect_identical(pass(), once)
  expect_identical(unname(once["x", ]), points$x)
})

# A source whose rows are changed from its second reading on.
changing <- function(data, size, change) {
  rows <- in_blocks(data, size)
  opened <- 0
  open <- rows$open
  rows$open <- function() {
    reader <- open()
    if ((opened <<- opened + 1) == 1) return(reader)
    list(read = function() {
      block <- reader$read()
      if (!is.null(block)) change(block)
    }, close = reader$close)
  }
  rows
}

test_that("a source that gives other rows when it is read again is refused", {
  many <- rows_for_two_passes()
  logit <- regression(y ~ ., binomial(), prior_sd = 2.5)
  fit <- function(change, ...)
    evidence(logit, changing(many, 2000, change), seed = 1, keep = 1000, ...)
  expect_s3_class(fit(identity), "evidence")
  # the order does not matter
  expect_s3_class(fit(function(block) block[rev(seq_len(nrow(block))), ]), "evidence")
  said <- "`data` must give the same rows each time it is read. It gave 12,000 rows first, and "
  refused(fit(function(block) transform(block, y = 1 - y)), paste0(said, "rows with other values"))
  refused(fit(function(block) transform(block, a = a + 1e-6)), paste0(said, "rows with other"))
  refused(fit(function(block) block[-1, ]), paste0(said, "11,994 rows the second time"))
  refused(fit(function(block) NULL), paste0(said, "0 rows the second time"))
  # further replicates read it again, too
  refused(suppressMessages(evidence(
    linear_regression(y ~ a, sigma = 1,
                      prior_sd = 1), changing(many, 2000, function(block) block * 2),
    sgais(particles = 20, audit = FALSE), seed = 1, target_se = 1e-3)), "rows with other values")
})

test_that("a source is closed when a run ends, fails or is interrupted", {
  closed <- 0
  source_of <- function(read) logevidence:::new_source("rows_test", function() list("Test"),
    function() list(read = read, close = function() closed <<- closed + 1))
  left <- 3
  evidence(slope, source_of(function() if ((left <<- left - 1) >= 0) first), seed = test_seed())
  expect_identical(closed, 1)
  expect_error(evidence(slope, source_of(function() stop("lost")), seed = test_seed()), "lost")
  expect_identical(closed, 2)
  expect_error(evidence(slope, source_of(function() "text"), seed = test_seed()))
  expect_identical(closed, 3)
  interrupt <- function() an_interrupt()
  calls <- 0
  reached <- tryCatch(evidence(slope, source_of(function() {
    calls <<- calls + 1
    if (calls < 20) first else interrupt()
  }), seed = test_seed()), interrupt = function(e) "interrupted")
  expect_identical(reached, "interrupted")
  expect_identical(closed, 4)
})

test_that("a source is printed with its kind and number of rows", {
  expect_output(print(in_blocks(points, 10)), "Rows from a function\\n.*not known.*again from")
  expect_output(print(in_blocks(points, 10, rewind = FALSE)), "only once")
})

test_that("columns that change their type are errors with rows, whatever the size of blocks", {
  some <- points[1:3000, c("x", "y", "z")]
  slope <- linear_regression(y ~ x, sigma = 1, prior_sd = 1)
  changes <- list(Date = function(x) as.Date(x, origin = "1970-01-01"), logical = function(x) x > 0,
                  "numeric with 2 columns" = function(x) cbind(x, 1e3),
                  "date-time" = function(x) as.POSIXct(x, origin = "1970-01-01"))
  for (size in c(100, 500, 1500)) for (late in c(FALSE, TRUE)) for (kind in names(changes)) {
    blocks <- unname(split(some, (seq_len(3000) - 1) %/% size))
    k <- if (late) length(blocks) else 2
    blocks[[k]]$x <- changes[[kind]](blocks[[k]]$x)
    said <- sprintf("`x` of type numeric, as in the first data, not %s. (This is in the rows from",
                    kind)
    said <- paste(said, (k - 1) * size + 1)
    source <- do.call(these_blocks, blocks)
    expect_error(evidence(slope, source, seed = test_seed()), said, fixed = TRUE)
    expect_error(collect_rows(source), said, fixed = TRUE)
  }
})

test_that("columns that the model does not use may change or be missing", {
  some <- points[1:3000, c("x", "y", "z")]
  slope <- linear_regression(y ~ x, sigma = 1, prior_sd = 1)
  whole <- evidence(slope, these_blocks(some), seed = test_seed())
  for (size in c(100, 1000)) {
    blocks <- unname(split(some, (seq_len(3000) - 1) %/% size))
    blocks[[3]]$z <- NULL
    blocks[[2]]$z <- as.Date(blocks[[2]]$z, origin = "1970-01-01")
    fit <- evidence(slope, do.call(these_blocks, blocks), seed = test_seed())
    expect_identical(fit$log_evidence, whole$log_evidence)
    # but those of y ~ . are all used
    expect_error(evidence(linear_regression(y ~ ., sigma = 1,
                                            prior_sd = 1), do.call(these_blocks, blocks)),
                 "`z` of type numeric, as in the first data, not Date")
  }
})

test_that("blocks of another form are refused, and none is skipped", {
  slope <- linear_regression(y ~ x, sigma = 1, prior_sd = 1)
  some <- points[1:1000, c("x", "y")]
  expect_error(evidence(slope, these_blocks(some, as.matrix(some))),
               "must have the same form, a data frame as the first, not a matrix after row 1000.")
  expect_error(evidence(slope, these_blocks(list(1, 2), some)), "not another list")
  expect_error(rows_function(function() NULL), 
               "`f` must be a function of `reset`, such as `function(reset) ...`, not one without",
               fixed = TRUE)
  expect_error(evidence(slope, some, nested(), keep = 2000), "leave out `keep`")
  expect_error(evidence(slope, these_blocks(some), nested()), "`collect = TRUE`")
})

test_that("numbers of class integer64 keep their class when small blocks are put together", {
  whole <- structure(c(1e-320, 2e-320), class = "integer64")
  block <- data.frame(y = c(1, 2))
  block$x <- whole
  both <- logevidence:::bind_blocks(list(block, block))
  expect_s3_class(both$x, "integer64")
  expect_error(evidence(linear_regression(y ~ x, sigma = 1,
                                          prior_sd = 1), these_blocks(block, block)),
               "integer64")
})

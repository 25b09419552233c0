# Rows from Arrow streams: C reads each type as nanoarrow converts it.

skip_if_not_installed("nanoarrow")

set.seed(test_seed(14))
numbers <- data.frame(y = rnorm(40), x = rnorm(40), k = sample(-100:100, 40),
                      b = rep(c(TRUE, FALSE), 20))
feed_rows <- function(model, source) {
  feed <- logevidence:::open_feed(model, source)
  on.exit(logevidence:::close_feed(feed))
  rows <- list()
  repeat {
    block <- logevidence:::pull(feed)
    rows <- c(rows, list(block$rows))
    if (block$last) return(do.call(cbind, rows))
  }
}
# nanoarrow itself does not write all of these types.
typed <- function(type, values) {
  bytes <- switch(type$format, c = , C = 1, s = , S = 2, i = , I = , f = 4, 8)
  if (type$format %in% c("l", "L")) values <- as.vector(rbind(values, ifelse(values < 0, -1L, 0L)))
  raw <- if (type$format %in% c("f", "g")) writeBin(as.double(values), raw(), bytes)
  else writeBin(as.integer(values), raw(), min(bytes, 4))
  nanoarrow::nanoarrow_array_modify(nanoarrow::nanoarrow_array_init(type),
    list(length = 40, null_count = 0, buffers = list(NULL, nanoarrow::as_nanoarrow_buffer(raw))))
}
with_typed <- function(type, data) {
  array <- nanoarrow::as_nanoarrow_array(data)
  schema <- nanoarrow::infer_nanoarrow_schema(data)
  children <- array$children
  children$k <- typed(type, data$k)
  schema$children$k <- type
  nanoarrow::nanoarrow_array_set_schema(array, schema, validate = FALSE)
  nanoarrow::nanoarrow_array_modify(array, list(children = children))
}
line <- linear_regression(y ~ x + k, sigma = 1, prior_sd = 1)

test_that("columns of all numeric types become rows without vectors of R", {
  types <- list(nanoarrow::na_double(), nanoarrow::na_int64(), nanoarrow::na_int32(),
                nanoarrow::na_int16(), nanoarrow::na_int8(), nanoarrow::na_float(),
                nanoarrow::na_uint64(), nanoarrow::na_uint32(), nanoarrow::na_uint16(),
                nanoarrow::na_uint8())
  for (type in types) {
    data <- numbers
    if (grepl("^[CSIL]$", type$format)) data$k <- abs(data$k)
    wanted <- rbind(1, data$x, data$k, data$y)
    array <- with_typed(type, data)
    plain <- logevidence:::plain_rows(
      structure(list(array = array, schema = nanoarrow::infer_nanoarrow_schema(array), n = 40),
                class = "arrow_block"),
      list(columns = c("x", "k", "y"), intercept = TRUE, names = c("1", "x", "k", "y")))
    expect_identical(unname(plain), wanted, info = type$format)
    stream <- nanoarrow::basic_array_stream(list(array))
    expect_identical(unname(feed_rows(line, rows_arrow(stream))), wanted, info = type$format)
  }
})

test_that("slices, bits and missing values are read at their offsets", {
  array <- nanoarrow::as_nanoarrow_array(numbers)
  part <- nanoarrow::nanoarrow_array_modify(array, list(offset = 13, length = 20))
  block <- structure(list(array = part, schema = nanoarrow::infer_nanoarrow_schema(array), n = 20),
                     class = "arrow_block")
  plain <- list(columns = c("b", "y"), intercept = FALSE, names = c("b", "y"))
  expect_identical(unname(logevidence:::plain_rows(block, plain)),
                   rbind(numbers$b + 0, numbers$y)[, 14:33])
  missing <- numbers
  missing$x[29] <- NA
  array <- nanoarrow::as_nanoarrow_array(missing)
  parts <- lapply(c(0, 20), function(offset)
    nanoarrow::nanoarrow_array_modify(array, list(offset = offset, length = 20)))
  expect_error(evidence(line, rows_arrow(nanoarrow::basic_array_stream(parts))),
               "not NA in column `x`, row 29.",
               fixed = TRUE)
  # conversion to a data frame, too
  expect_identical(collect_rows(rows_arrow(nanoarrow::basic_array_stream(parts))), missing)
  many <- numbers[rep(1:40, 500), ]
  many$k[12345] <- NA
  expect_error(evidence(line, rows_arrow(function() nanoarrow::as_nanoarrow_array_stream(many)),
                        seed = test_seed()),
               "not NA in column `k`, row 12345.", fixed = TRUE)
  infinite <- transform(many, k = 1, y = replace(y, 12346, Inf))
  expect_error(evidence(line, rows_arrow(infinite), seed = test_seed()),
               "not Inf in column `y`, row 12346.",
               fixed = TRUE)
})

test_that("text and dictionaries become factors", {
  data <- transform(numbers, g = rep(c("v", "u"), 20))
  coded <- transform(numbers, g = factor(rep(c("v", "u"), 20), c("v", "u", "w")))
  group <- linear_regression(y ~ g, sigma = 1, prior_sd = 1)
  same <- function(source, data) expect_identical(
    evidence(group, source, sgais(order = "given"), seed = test_seed())$draws,
    evidence(group, data, sgais(order = "given"), seed = test_seed())$draws)
  same(rows_arrow(data), data)
  same(rows_arrow(coded), coded)
  same(rows_arrow(data, levels = list(g = c("v", "u", "w"))), coded)
  expect_identical(collect_rows(rows_arrow(coded))$g, coded$g)
  late <- transform(data[rep(1:40, 300), ], g = replace(g, 11111, "new"))
  expect_error(evidence(group, rows_arrow(late), seed = test_seed()), "not \"new\" in row 1",
               fixed = TRUE)
})

test_that("streams are printed, fail in a sentence and are released", {
  stream <- nanoarrow::as_nanoarrow_array_stream(cars)
  source <- rows_arrow(stream)
  expect_output(print(source), "speed (double), dist (double)", fixed = TRUE)
  expect_output(print(source), "only once")
  expect_identical(collect_rows(source), cars)
  expect_false(nanoarrow::nanoarrow_pointer_is_valid(stream))
  expect_error(collect_rows(source), "only once")
  expect_output(print(rows_arrow(cars)), "data.frame.*50\n.*again from the start")
  again <- rows_arrow(function() nanoarrow::as_nanoarrow_array_stream(cars))
  for (pass in 1:2) expect_identical(collect_rows(again), cars)
  expect_error(rows_arrow(sum), NA)
  expect_error(rows_arrow(quote(x)),
               "`x` must be an object that nanoarrow::as_nanoarrow_array_stream")
  vector <- nanoarrow::basic_array_stream(list(nanoarrow::as_nanoarrow_array(1:3)))
  expect_error(collect_rows(rows_arrow(vector)), "batches with columns")
  expect_error(collect_rows(rows_arrow(cars[0, ])), "at least one row")
})

test_that("a batch with more rows than its columns have is refused", {
  model <- linear_regression(y ~ x, sigma = 1, prior_sd = 1)
  for (change in list(list(length = 41), list(length = 30, offset = 11), list(length = 1e7))) {
    longer <- nanoarrow::nanoarrow_array_modify(nanoarrow::as_nanoarrow_array(numbers), change,
                                                validate = FALSE)
    stream <- nanoarrow::basic_array_stream(list(longer), validate = FALSE)
    expect_error(evidence(model, rows_arrow(stream), seed = 1, progress = FALSE),
                 "The stream has a batch of [0-9]+ rows from row [0-9]+ of columns that have 40[.]",
                 class = "logevidence_error")
  }
})

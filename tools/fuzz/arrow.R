# Batches of Arrow: columns of all types with missing values, slices, batches without rows, and
# columns that are shorter than their batch says. Buffers are as long as columns say: a reader of
# the C interface cannot know how long they are.

NUMBER_TYPES <- c("double", "float", "int64", "uint64", "int32", "uint32", "int16", "uint16",
                  "int8", "uint8", "bool")

OTHER_COLUMNS <- list(
  text = function(n) sample(c("a", "b"), n, TRUE), factor = function(n) factor(rep(c("a", "b"),
                                                                                  length.out = n)),
  date = function(n) as.Date("2020-01-01") + seq_len(n), list = function(n) rep(list(1:2), n),
  frame = function(n) data.frame(u = stats::rnorm(n)), none = function(n) rep(NA, n),
  time = function(n) as.POSIXct("2020-01-01", "UTC") + seq_len(n))

# A function of a number of rows that makes a column, of the same type each time.
arrow_column <- function(oddness) {
  if (chance(oddness)) {
    make <- pick(OTHER_COLUMNS)
    other <- function(n) nanoarrow::as_nanoarrow_array(make(n))
    # some need the package arrow
    if (is.list(tryCatch(list(other(0), other(2)), error = function(e) NULL))) return(other)
  }
  name <- if (chance(0.5)) "double" else pick(NUMBER_TYPES)
  type <- getExportedValue("nanoarrow", paste0("na_", name))()
  real <- name %in% c("double", "float")
  missing <- chance(oddness)
  extreme <- chance(oddness) && real
  numbers <- function(n) {
    x <- if (real) stats::rnorm(n) else if (name == "bool") stats::runif(n) < 0.5
    else as.double(stats::rpois(n, 3))
    if (missing && n > 0) x[sample.int(n, 1)] <- NA
    if (extreme && n > 0) x[sample.int(n, 1)] <- pick(c(EXTREMES, Inf, NaN))
    x
  }
  # nanoarrow alone does not write all types
  typed <- tryCatch(is.list(nanoarrow::as_nanoarrow_array(numbers(2), schema = type)$buffers),
                    error = function(e) FALSE)
  function(n)
    if (typed) nanoarrow::as_nanoarrow_array(numbers(n), schema = type)
    else nanoarrow::as_nanoarrow_array(as.double(numbers(n)))
}

arrow_batch <- function(makers, oddness) {
  n <- few_rows()
  from <- if (chance(0.3)) sample(0:3, 1) else 0
  columns <- lapply(makers, function(make) make(n + from))
  # the batch may say that it has more rows than its columns
  more <- if (chance(oddness)) pick(list(1, 100, 1e7)) else 0
  schema <- nanoarrow::na_struct(lapply(columns, nanoarrow::infer_nanoarrow_schema))
  nanoarrow::nanoarrow_array_modify(
    nanoarrow::nanoarrow_array_init(schema),
    list(length = n + more, null_count = 0, offset = from, children = columns), validate = FALSE)
}

ARROW_CASES <- list(
  lacks = function() if (!requireNamespace("nanoarrow", quietly = TRUE))
    "the package nanoarrow is not installed",
  prepare = function() NULL,
  make = function() {
    oddness <- pick(list(0, 0, 0.1, 0.3))
    names <- c("y", "x", "z", if (chance(oddness)) pick(c("y", "", "w")))
    if (chance(oddness / 2)) names <- names[-1]
    makers <- lapply(stats::setNames(nm = names), function(name) arrow_column(oddness))
    batches <- lapply(seq_len(sample.int(3, 1)), function(i) arrow_batch(makers, oddness))
    model <- pick(expression(linear_regression(y ~ x, sigma = 1, prior_sd = 1),
                             linear_regression(y ~ x + z, sigma = 1, prior_sd = 1),
                             linear_regression(y ~ 0 + z, sigma = 1, prior_sd = 1),
                             gaussian_mixture(~ y + x, components = 2)))
    list(objects = list(batches = batches), call = bquote({
      schema <- nanoarrow::infer_nanoarrow_schema(batches[[1]])
      rows <- rows_arrow(function()
        nanoarrow::basic_array_stream(batches, schema, validate = FALSE))
      evidence(.(model), rows, sgais(particles = 10, steps = 1), seed = 1, progress = FALSE,
               time_limit = 3)
    }))
  })

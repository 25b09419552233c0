# Rows from a source give the same results as rows in memory, whatever the size of their blocks.

# A source of the rows of `data` in blocks of `size`.
in_blocks <- function(data, size, rewind = TRUE) {
  at <- 0
  rows_function(function(reset) {
    if (reset) at <<- 0
    else if (at < NROW(data)) {
      rows <- (at + 1):min(at + size, nrow(data))
      at <<- at + size
      data[rows, , drop = FALSE]
    }
  }, rewind)
}

set.seed(11)
points <- data.frame(x = rnorm(4000), z = rnorm(4000), g = factor(rep(c("a", "b", "c", "d"), 1000)))
points$y <- 1 + 2 * points$x + rnorm(4000)
line <- linear_regression(y ~ x + g, sigma = 1, prior_sd = 2)

expect_same_fit <- function(model, data, method, sizes) {
  one <- evidence(model, data, method, seed = 3)
  for (size in sizes) {
    other <- evidence(model, in_blocks(data, size), method, seed = 3)
    for (part in c("log_evidence", "se", "draws", "n", "data_id", "warnings", "sampler"))
      expect_identical(other[[part]], one[[part]], info = paste(size, part))
  }
}

test_that("the size of blocks does not matter, whatever the method", {
  expect_same_fit(line, points, sgais(order = "given"), c(1, 7, 1000, 1e5))
  expect_same_fit(gaussian_mixture(~ x + z, components = 2), points, sgais(order = "given"),
                  c(7, 1500, 1e5))
  expect_same_fit(line, points, sgais(preset = "paper"), c(7, 500))
  expect_same_fit(line, points[1:300, ], smc("data", order = "given"), c(1, 100))
  expect_same_fit(line, points[1:1000, ], sequential(), c(7, 500))
  expect_same_fit(line, points[1:1000, ], hybrid(), c(7, 100))
  expect_same_fit(line, points[1:200, ], online_nested(), c(7, 20))
})

test_that("replicates use the same blocks", {
  one <- evidence(line, points, sgais(order = "given"), seed = 3, replicates = 3)
  other <- evidence(line, in_blocks(points, 700), sgais(order = "given"), seed = 3, replicates = 3)
  expect_identical(other$replicates, one$replicates)
})

test_that("what cannot be done by blocks is refused", {
  expect_error(evidence(line, in_blocks(points, 100), nested()), "all rows at once")
  expect_error(evidence(clustering(components = 2), in_blocks(points, 100)), "all rows at once")
  expect_error(evidence(line, in_blocks(points[0, ], 100)), "at least one row")
})

# Clusters of points: found where they lie apart, and only there.

clusters_of <- function(points) {
  out <- .Call(unit("clusters"), t(points))
  by_row <- function(x) matrix(x, ncol = ncol(points), byrow = TRUE)
  list(label = out[[1]], residuals = by_row(out[[2]]), variance = by_row(out[[3]]))
}

test_that("points of one part are one cluster, whatever its shape", {
  with_own_seed(test_seed(1), {
    shapes <- list(
      normal = matrix(rnorm(400 * 10), 400), few = matrix(rnorm(60), 30),
      flat = cbind(rnorm(300), 0),
      ring = { a <- runif(400, 0, 2 * pi); cbind(cos(a), sin(a)) },
      heavy = matrix(rt(400 * 3, 2), 400),
      curved = { x <- rnorm(400); cbind(x, x^2 + 0.1 * rnorm(400)) },
      many = matrix(runif(5000), 2500)
    )
  })
  for (name in names(shapes))
    expect_identical(unique(clusters_of(shapes[[name]])$label), 0, label = name)
})

test_that("parts that lie apart are clusters", {
  with_own_seed(test_seed(2), {
    truth <- sample(rep(0:2, c(200, 100, 40)))
    points <- matrix(rnorm(340 * 3), 340) + 30 * truth
    many <- sample(rep(0:1, c(1500, 1000)))
    more <- matrix(rnorm(2500 * 2), 2500) + 20 * many
  })
  found <- clusters_of(points)
  expect_identical(length(unique(found$label)), 3L)
  expect_true(all(tapply(truth, found$label, function(t) length(unique(t))) == 1))
  # what is left when each cluster's own mean is taken away, and the variance of each
  for (cluster in unique(found$label)) {
    own <- points[found$label == cluster, ]
    expect_equal(found$variance[cluster + 1, ], apply(own, 2, function(x) mean((x - mean(x))^2)),
                 tolerance = 1e-12)
    expect_equal(found$residuals[found$label == cluster, ],
                 sweep(own, 2, colMeans(own)) * sqrt(nrow(own) / (nrow(own) - 1)),
                 tolerance = 1e-12)
  }
  # beyond a thousand points the rest follow their nearest
  found <- clusters_of(more)
  expect_identical(found$label == found$label[1], many == many[1])
})

test_that("a few points that are close by chance are no cluster", {
  with_own_seed(test_seed(3), points <- rbind(matrix(rnorm(200), 100), matrix(rnorm(6), 3) + 50))
  expect_identical(length(unique(clusters_of(points)$label)), 1L)
})

test_that("nested() does not warn where there are many modes, and its moves fit their size", {
  box <- custom_model(
    c("x", "y"), function(theta) (2 + cos(theta[, 1] / 2) * cos(theta[, 2] / 2))^5,
    function(theta) ifelse(rowSums(theta < 0 | theta > 10 * pi) > 0, -Inf, -2 * log(10 * pi)),
    function(n) matrix(runif(2 * n, 0, 10 * pi), n), vectorised = TRUE
  )
  fit <- evidence(box, method = nested(300), seed = test_seed(1), progress = FALSE)
  expect_null(fit$failed)
  expect_lt(abs(fit$log_evidence - 235.856), 4 * fit$se)
})

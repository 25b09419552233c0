# Small matrices, against R's own.

test_that("the factor of a matrix is that of chol(), of any size, and only the lower half is read",
          {
  set.seed(test_seed())
  for (d in c(1:20, 31:33, 44, 100)) {
    x <- matrix(rnorm(d * (d + 3)), d)
    a <- tcrossprod(x) * outer(10^seq(-3, 3, length.out = d), 10^seq(-3, 3, length.out = d))
    expected <- chol(a)
    found <- .Call(unit("cholesky"), a) # rows there are columns here
    expect_lt(max(abs(found - expected) / sqrt(diag(a))[col(a)]), 1e-12)
    expect_identical(found[lower.tri(found)], numeric(d * (d - 1) / 2))
    half <- a
    half[lower.tri(a)] <- NaN
    expect_identical(.Call(unit("cholesky"), half), found)
  }
})

test_that("a matrix that is not positive, or not finite, has no factor", {
  for (d in c(1, 2, 9, 17)) {
    a <- diag(d) + 0.1
    expect_false(is.null(.Call(unit("cholesky"), a)))
    for (bad in c(-1, 0, NaN, Inf, -Inf)) for (k in unique(c(1, d)))
      expect_null(.Call(unit("cholesky"), replace(a, cbind(k, k), bad)))
    if (d > 1) for (bad in c(2, NaN, Inf))
      expect_null(.Call(unit("cholesky"), replace(a, rbind(c(1, d), c(d, 1)), bad)))
  }
})

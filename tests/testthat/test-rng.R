# Random numbers: the published test vectors, and streams that are independent of one another.

uniforms <- function(n, seed = words(), replicate = 0, stream = 0, together = FALSE)
  .Call(ffi_uniforms, seed, replicate, stream, n, together)
normals <- function(n, d, times = 1, seed = words(), replicate = 0)
  array(.Call(unit("normals"), seed, replicate, n, d, times), c(d, n, times))

hex <- function(x) as.numeric(paste0("0x", strsplit(x, " ")[[1]]))

test_that("Philox4x32-10 gives the published test vectors", {
  vectors <- list(
    list("00000000 00000000 00000000 00000000", "00000000 00000000",
         "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    list("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff",
         "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    list("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0",
         "d16cfe09 94fdcceb 5001e420 24126ea1")
  )
  for (v in vectors) expect_identical(.Call(unit("philox"), hex(v[[1]]), hex(v[[2]])), hex(v[[3]]))
})

test_that("a stream is made of the blocks of its name, two words for a number", {
  from_blocks <- function(n, seed, replicate, stream) {
    blocks <- lapply(seq_len(n / 2) - 1, function(b)
                       .Call(unit("philox"), c(b, 0, stream, replicate), rev(seed)))
    word <- matrix(unlist(blocks), 2)
    (word[1, ] * 2^20 + floor(word[2, ] / 2^12) + 0.5) / 2^52
  }
  for (case in list(list(c(0, 1), 0, 0), list(c(7, 4294967295), 3, 5),
                    list(c(4294967295, 0), 4294967295, 63)))
    expect_identical(uniforms(20, case[[1]], case[[2]], case[[3]]),
                     from_blocks(20, case[[1]], case[[2]], case[[3]]))
})

test_that("streams are reproducible and differ by seed, replicate and number", {
  expect_identical(uniforms(50), uniforms(50))
  expect_identical(uniforms(100)[1:50], uniforms(50))
  names <- expand.grid(high = 0:2, low = c(1, 2, 2^31, 2^32 - 1), replicate = 0:2,
                       stream = c(0, 1, 1000))
  first <- mapply(function(h, l, r, s) uniforms(1, c(h, l), r, s), names$high, names$low,
                  names$replicate, names$stream)
  expect_identical(anyDuplicated(first), 0L)
})

test_that("numbers are uniform, strictly inside (0, 1), and serially independent", {
  u <- uniforms(1e5, words(11))
  expect_true(all(u > 0 & u < 1))
  expect_gt(stats::ks.test(u, "punif")$p.value, 1e-5)
  for (lag in c(1:4, 100))
    expect_z(stats::cor(head(u, -lag), tail(u, -lag)) * sqrt(length(u) - lag))
  counts <- table(findInterval(u, seq(0, 1, 0.1)), findInterval(c(u[-1], u[1]), seq(0, 1, 0.1)))
  expect_gt(stats::chisq.test(counts)$p.value, 1e-5)
  # the low bits too: they must not repeat what the high ones say
  expect_gt(stats::chisq.test(table(floor((u * 2^44) %% 256), u > 0.5))$p.value, 1e-5)
})

test_that("neighbouring streams and replicates are uncorrelated", {
  n <- 20000
  streams <- cbind(sapply(0:5, function(s) uniforms(n, words(12), 0, s)),
                   sapply(1:3, function(r) uniforms(n, words(12), r, 0)), uniforms(n, words(13)))
  correlation <- stats::cor(streams)
  expect_z(correlation[upper.tri(correlation)] * sqrt(n))
  # the k-th numbers of many streams are a uniform sample as well
  across <- vapply(0:1999, function(s) uniforms(1, words(14), 0, s), 0)
  expect_gt(stats::ks.test(across, "punif")$p.value, 1e-5)
})

test_that("many uniforms at once are the same numbers", {
  for (n in c(1, 2, 7, 127, 128, 129, 1000))
    expect_identical(uniforms(n, words(3), 1, 4, TRUE), uniforms(n, words(3), 1, 4))
})

test_that("normals in blocks are normal in the tails too, and the same as one by one", {
  x <- as.vector(normals(50, 7, 600, words(16)))
  expect_gt(stats::ks.test(x, "pnorm")$p.value, 1e-5)
  expect_z(z_score(cbind(x, x^2 - 1, x^3, x^4 - 3)))
  beyond <- c(1, 2, 3, 4)
  expect_z((sapply(beyond, function(b) sum(x > b)) - length(x) * stats::pnorm(-beyond)) /
           sqrt(length(x) * stats::pnorm(-beyond)), 5)
  # the two of a block are independent, in sign, size and angle
  pairs <- normals(1, 2, 1e5, words(17))[, 1, ]
  expect_z(z_score(cbind(pairs[1, ] * pairs[2, ], (pairs[1, ]^2 - 1) * (pairs[2, ]^2 - 1),
                         pairs[1, ] * abs(pairs[2, ]), abs(pairs[1, ]) * pairs[2, ])))
  angle <- atan2(pairs[2, ], pairs[1, ]) / (2 * pi) + 0.5
  expect_gt(stats::ks.test(angle, "punif")$p.value, 1e-5)
  expect_gt(stats::ks.test(exp(-0.5 * colSums(pairs^2)), "punif")$p.value, 1e-5)
  # a stream does not care for the company it is in, nor for how many are drawn at once
  for (d in c(1, 3, 8, 201)) {
    all <- normals(9, d, 3, words(18))
    expect_identical(all[, 1:4, , drop = FALSE], normals(4, d, 3, words(18)))
    expect_equal(dim(unique(matrix(all, d), MARGIN = 2)), c(d, 27))
  }
  # by the definition: radius and angle from the uniforms of the block
  block <- .Call(unit("philox"), c(0, 0, 0, 0), rev(words(19)))
  unit <- function(high, low) (high * 2^20 + floor(low / 2^12) + 0.5) / 2^52
  radius <- sqrt(-2 * log(unit(block[1], block[2])))
  turn <- (unit(block[3], block[4]) - 0.5) * pi / 2
  expected <- radius * c(cos(turn), sin(turn))
  if (block[4] %% 2 == 1) expected <- rev(expected)
  if (floor(block[4] / 2) %% 2 == 1) expected <- -expected
  expect_equal(as.vector(normals(1, 2, 1, words(19))), expected, tolerance = 1e-14)
})

test_that("draws from a normal prior are normal into the tails", {
  x <- prior_draws(mean_model(), 1e5, 15)[1, ]
  expect_gt(stats::ks.test(unique(x), "pnorm")$p.value, 1e-5) # 24 bits each: one in 1e5 comes twice
  expect_z(z_score(cbind(x, x^2 - 1, x^3, x^4 - 3)))
  beyond <- c(2, 3, 4)
  expect_z((sapply(beyond, function(b) sum(abs(x) > b)) - 1e5 * 2 * stats::pnorm(-beyond)) /
             sqrt(1e5 * 2 * stats::pnorm(-beyond)), 5)
})

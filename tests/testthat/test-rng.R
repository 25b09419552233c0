# Random numbers: the published test vectors, and streams that know nothing of one another.

uniforms <- function(n, seed = words(), replicate = 0, stream = 0) .Call(ffi_uniforms, seed, replicate, stream, n)

hex <- function(x) as.numeric(paste0("0x", strsplit(x, " ")[[1]]))

test_that("Philox4x32-10 gives the published test vectors", {
  vectors <- list(
    list("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    list("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    list("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1")
  )
  for (v in vectors) expect_identical(.Call(ffi_philox, hex(v[[1]]), hex(v[[2]])), hex(v[[3]]))
})

test_that("a stream is the blocks of its name, two words to a number", {
  from_blocks <- function(n, seed, replicate, stream) {
    blocks <- lapply(seq_len(n / 2) - 1, function(b) .Call(ffi_philox, c(b, 0, stream, replicate), rev(seed)))
    word <- matrix(unlist(blocks), 2)
    (word[1, ] * 2^20 + floor(word[2, ] / 2^12) + 0.5) / 2^52
  }
  for (case in list(list(c(0, 1), 0, 0), list(c(7, 4294967295), 3, 5), list(c(4294967295, 0), 4294967295, 63)))
    expect_identical(uniforms(20, case[[1]], case[[2]], case[[3]]),
                     from_blocks(20, case[[1]], case[[2]], case[[3]]))
})

test_that("streams are reproducible and differ by seed, replicate and number", {
  expect_identical(uniforms(50), uniforms(50))
  expect_identical(uniforms(100)[1:50], uniforms(50))
  names <- expand.grid(high = 0:2, low = c(1, 2, 2^31, 2^32 - 1), replicate = 0:2, stream = c(0, 1, 1000))
  first <- mapply(function(h, l, r, s) uniforms(1, c(h, l), r, s), names$high, names$low, names$replicate, names$stream)
  expect_identical(anyDuplicated(first), 0L)
})

test_that("numbers are uniform, strictly inside (0, 1), and serially independent", {
  u <- uniforms(1e5, words(11))
  expect_true(all(u > 0 & u < 1))
  expect_gt(stats::ks.test(u, "punif")$p.value, 1e-5)
  for (lag in c(1:4, 100)) expect_z(stats::cor(head(u, -lag), tail(u, -lag)) * sqrt(length(u) - lag))
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

test_that("draws from a normal prior are normal into the tails", {
  x <- prior_draws(mean_model(), 1e5, 15)[1, ]
  expect_gt(stats::ks.test(unique(x), "pnorm")$p.value, 1e-5) # 24 bits each: one in 1e5 comes twice
  expect_z(z_score(cbind(x, x^2 - 1, x^3, x^4 - 3)))
  beyond <- c(2, 3, 4)
  expect_z((sapply(beyond, function(b) sum(abs(x) > b)) - 1e5 * 2 * stats::pnorm(-beyond)) /
             sqrt(1e5 * 2 * stats::pnorm(-beyond)), 5)
})

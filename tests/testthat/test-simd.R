# Kernels compiled for several instruction sets: exp and log against 60-digit arithmetic, and the
# variants against one another.

variants <- c("plain", "avx2", "avx512")
best <- .Call(ffi_simd)$best
available <- variants[seq_len(match(best, variants))]
each_variant <- function(check) for (variant in available) check(variant)
vector_exp <- function(x, variant) .Call(unit("exp"), as.double(x), match(variant, variants) - 1)
vector_log <- function(x, variant) .Call(unit("log"), as.double(x), match(variant, variants) - 1)

# argument and correctly rounded result
exact_exp <- matrix(c(
  -0x1.748cccccccccdp+9, 0x0.0000000000001p-1022, -0x1.74385446d71c3p+9, 0x0.0000000000001p-1022,
  -0x1.6d0fcd6e9b9cbp+9, 0x0.0000000192f6fp-1022, -0x1.6232bdd7abcaep+9, 0x1.000000000487cp-1022,
  -0x1.5e5999999999ap+9, 0x1.130e7f11093c4p-1011, -0x1.59ad916872b02p+8, 0x1.3971a67444e9dp-499,
  -0x1.9066666666666p+6, 0x1.805628c2e465cp-145, -0x1.4800000000000p+4, 0x1.57a3afeed00abp-30,
  -0x1.0000000000000p+0, 0x1.78b56362cef38p-2, -0x1.62e42fefa39efp-2, 0x1.6a09e667f3bcdp-1,
  -0x1.999999999999ap-4, 0x1.cf46d99d52b3ap-1, -0x1.4f8b588e368f1p-17, 0x1.fffeb07515653p-1,
  -0x1.70ef54646d497p-57, 0x1.0000000000000p+0, 0x1.56e1fc2f8f359p-997, 0x1.0000000000000p+0,
  0x1.9c511dc3a41dfp-29, 0x1.0000000ce288fp+0, 0x1.0000000000000p-2, 0x1.48b5e3c3e8186p+0,
  0x1.62e42fefa39f1p-2, 0x1.6a09e667f3bcdp+0, 0x1.0000000000000p-1, 0x1.a61298e1e069cp+0,
  0x1.0000000000000p+0, 0x1.5bf0a8b145769p+1, 0x1.5bf0a8b145769p+1, 0x1.e4efb75e4527ap+3,
  0x1.4333333333333p+3, 0x1.7c5c09a68d572p+14, 0x1.62e42feba39efp+6, 0x1.fffffdffffff5p+127,
  0x1.2c4cccccccccdp+8, 0x1.2e9c6cabf8f3fp+433, 0x1.5e0cccccccccdp+9, 0x1.058614179b2a5p+1010,
  0x1.62e42fefa39efp+9, 0x1.fffffffffff2ap+1023
), 2)
exact_log <- matrix(c(
  0x0.0000000000001p-1022, -0x1.74385446d71c3p+9, 0x0.012688b70e62bp-1022, -0x1.64e69394d9508p+9,
  0x1.0000000000000p-1022, -0x1.6232bdd7abcd2p+9, 0x1.25eed8ffb39c1p-663, -0x1.cb6b1cad0a7efp+8,
  0x1.b7cdfd9d7bdbbp-34, -0x1.7069e2aa2aa5bp+4, 0x1.999999999999ap-4, -0x1.26bb1bbb55515p+1,
  0x1.0000000000000p-1, -0x1.62e42fefa39efp-1, 0x1.6a09e667f3bccp-1, -0x1.62e42fefa39f1p-2,
  0x1.6a09e667f3bcdp-1, -0x1.62e42fefa39eep-2, 0x1.8000000000000p-1, -0x1.269621134db92p-2,
  0x1.ccccccccccccdp-1, -0x1.af8e8210a415cp-4, 0x1.ffffde7210be9p-1, -0x1.0c6f82d74d230p-20,
  0x1.fffffffffffffp-1, -0x1.0000000000000p-53, 0x1.0000000000001p+0, 0x1.fffffffffffffp-53,
  0x1.000010c6f7a0bp+0, 0x1.0c6f713f33a1dp-20, 0x1.199999999999ap+0, 0x1.8663f793c46ccp-4,
  0x1.6a09e667f3bcdp+0, 0x1.62e42fefa39f0p-2, 0x1.8000000000000p+0, 0x1.9f323ecbf984cp-2,
  0x1.0000000000000p+1, 0x1.62e42fefa39efp-1, 0x1.8000000000000p+1, 0x1.193ea7aad030bp+0,
  0x1.4000000000000p+3, 0x1.26bb1bbb55516p+1, 0x1.81cd6c8b43958p+13, 0x1.2d79559791e31p+3,
  0x1.249ad2594c37dp+332, 0x1.cc845b54b54f2p+7, 0x1.fffffffffffffp+1023, 0x1.62e42fefa39efp+9
), 2)

# Largest error in units of the result; what is too small to be normal has an absolute error.
furthest <- function(found, expected) max(abs(found - expected) / pmax(abs(expected), 2.3e-308))

test_that("exp and log have nearly all digits over the whole range", {
  set.seed(test_seed())
  wide <- c(stats::runif(1e5, -745, 709.7), stats::runif(1e5, -2, 2), (-2000:2000) * log(2) / 2)
  wide <- wide[abs(wide) < 709]
  positive <- c(exp(stats::runif(1e5, -700, 700)), stats::runif(1e5, 0.3, 3), 2^(-1022:1023),
                1 + (-999:999) * 2^-50)
  each_variant(function(variant) {
    expect_lt(furthest(vector_exp(exact_exp[1, ], variant), exact_exp[2, ]), 2e-15)
    expect_lt(furthest(vector_log(exact_log[1, ], variant), exact_log[2, ]), 1e-15)
    expect_lt(furthest(vector_exp(wide, variant), exp(wide)), 2e-15)
    expect_lt(furthest(vector_log(positive, variant), log(positive)), 1e-15)
  })
})

test_that("exp and log are right at the ends of the range, at each place of a vector", {
  each_variant(function(variant) {
    for (shift in 0:8) {
      from <- c(rep(1, shift), -Inf, -1e300, -746, 0, -0, 5e-324, 709.78, 709.79, 1e300, Inf, NaN,
                NA)
      expect_equal(vector_exp(from, variant), exp(from), tolerance = 2e-15, info = variant)
      from <- c(rep(1, shift), 0, -0, -5e-324, -1, -Inf, 5e-324, 1e-308, 1, .Machine$double.xmax,
                Inf, NaN, NA)
      expect_equal(vector_log(from, variant), suppressWarnings(log(from)), tolerance = 1e-15,
                   info = variant)
    }
    expect_identical(vector_exp(c(0, -0, -746, -Inf), variant), c(1, 1, 0, 0))
    expect_identical(vector_log(c(1, 0), variant), c(0, -Inf))
    expect_identical(vector_exp(numeric(), variant), numeric())
  })
})

# ---- models ----

with_variant <- function(model, variant) {
  model$args$simd <- variant
  model
}

# Relative to the largest of the answer's numbers; what is infinite must be so in both.
expect_alike <- function(found, expected, info) {
  found <- unlist(found)
  expected <- unlist(expected)
  finite <- is.finite(expected)
  expect_identical(found[!finite], expected[!finite], info = info)
  expect_lt(max(0, abs(found - expected)[finite]) / max(1e-300, abs(expected[finite])), 1e-12,
            label = info)
}

cases <- list(
  linear_model(1, 0.8, -1, 3), linear_model(2), linear_model(3, 2), linear_model(6),
  linear_model(9, 1.1), linear_model(17),
  softmax_model(1, 2, 1.5), softmax_model(3, 4), softmax_model(11, 4), softmax_model(6, 3),
  softmax_model(5, 9),
  softmax_model(2, 70), mixture_model(1, 1), mixture_model(1, 3), mixture_model(2, 1, 0.5),
  mixture_model(3, 2, c(-1, 4), 1.5, 1.5, 2, 0.7), mixture_model(5, 2), mixture_model(4, 5),
  mixture_model(64, 1)
)

test_that("variants agree on every block, to twelve digits", {
  for (model in cases[fast_or_slow(c(1, 4, 8, 11, 12, 16, 18), seq_along(cases))]) {
    theta <- prior_draws(model, 6, 3)
    rows <- some_rows(model, 700, theta[, 1], 4)
    plain <- with_variant(model, "plain")
    for (variant in setdiff(available, "plain")) {
      other <- with_variant(model, variant)
      for (n in fast_or_slow(c(1, 33, 700), c(1, 7, 33, 64, 100, 700))) {
        part <- rows[, seq_len(n), drop = FALSE]
        info <- paste(model$type, model$dim, variant, n)
        for (what in c("log_lik", "log_lik_grad", "log_lik_each"))
          expect_alike(ask(other, what, theta, part), ask(plain, what, theta, part),
                       paste(info, what))
        expect_alike(ask(other, "log_lik_hess", theta[, 1], part),
                     ask(plain, "log_lik_hess", theta[, 1], part),
                     paste(info, "log_lik_hess"))
        if (model$type == "gaussian_mixture")
          expect_alike(ask(other, "information", theta[, 1], part),
                       ask(plain, "information", theta[, 1], part), paste(info, "information"))
      }
    }
  }
})

test_that("variants agree at extreme points, and no value is NaN", {
  for (model in cases[fast_or_slow(c(1, 4, 8, 11, 12, 16, 18), seq_along(cases))]) {
    for (size in c(30, 1000, 1e8, 1e155)) {
      theta <- size * prior_draws(model, 7, 3)
      rows <- some_rows(model, 100, prior_draws(model, 1, 5), 4)
      plain <- ask(with_variant(model, "plain"), "log_lik_grad", theta, rows)
      expect_false(anyNA(unlist(plain)))
      expect_true(all(is.finite(plain$gradient)))
      for (variant in setdiff(available, "plain")) {
        found <- ask(with_variant(model, variant), "log_lik_grad", theta, rows)
        expect_alike(found$value, plain$value, paste(model$type, model$dim, variant, size))
        expect_true(all(is.finite(found$gradient)))
      }
    }
  }
})

test_that("gradients alone equal those with values to single precision, under every variant", {
  each_variant(function(variant)
                 for (model in Filter(function(model) model$type != "linear_regression", cases)) {
    model <- with_variant(model, variant)
    rows <- some_rows(model, 700, prior_draws(model, 1, 5), 4)
    for (n in fast_or_slow(c(7, 100), c(1, 7, 33, 64, 100, 700)))
      for (size in fast_or_slow(c(1, 1000, 1e155), c(1, 30, 1000, 1e8, 1e155))) {
      theta <- size * prior_draws(model, 5, 3)
      part <- rows[, seq_len(n), drop = FALSE]
      found <- ask(model, "log_lik_grad_alone", theta, part)
      info <- paste(model$type, model$dim, variant, n, size)
      expect_true(all(is.finite(found)), info = info)
      expected <- ask(model, "log_lik_grad", theta, part)$gradient
      expect_lt(max(abs(found - expected)), 1e-5 * max(abs(expected), n), label = info)
    }
  })
})

test_that("gradients alone are exact where differences of logits are beyond all exponentials", {
  model <- softmax_model(1, 4)
  rows <- rbind(1, rep(0:3, 40))
  each_variant(function(variant) for (size in c(800, 1e13, 1e100, 1e300)) for (best in 1:4) {
    theta <- -size * ((1:4) != best) * (1:4 / 4)
    found <- ask(with_variant(model, variant), "log_lik_grad_alone", matrix(theta), rows)
    expect_lt(max(abs(found - (40 - 160 * (1:4 == best)))), 1e-12,
              label = paste(variant, size, best))
  })
})

test_that("exponentials of single precision keep six digits, from the smallest to the largest", {
  model <- softmax_model(1, 2)
  logit <- c(seq(-63.9, 68, by = 0.37), -1e-3, 0, 1e-9)
  each_variant(function(variant) {
    model <- with_variant(model, variant)
    alone <- function(label) ask(model, "log_lik_grad_alone", rbind(0, logit),
                                 matrix(c(1, label)))[2, ]
    expect_lt(max(abs(alone(0) / stats::plogis(logit) + 1) / (5 + abs(logit))), 1e-7,
              label = variant)
    expect_lt(max(abs(alone(1) - stats::plogis(-logit))), 5e-7, label = variant)
  })
})

test_that("gradients alone keep their digits for columns far from 0 and of extreme sizes", {
  weights <- matrix(c(0.2, 1, 0.3, -0.5, -0.4, 0.7, 0, 0.1, -1), 3)
  rows <- rbind(1, some_rows(softmax_model(2, 3), 200, as.vector(weights[2:3, ]), 6))
  for (scale in list(c(1, 1, 1), c(1e3, 1, 1e-3), c(1e-40, 1, 1), c(1, 1e60, 1), c(1, 1e-60, 1e60)))
    for (offset in c(0, 1e6)) {
    moved <- rows
    moved[2, ] <- moved[2, ] + offset
    moved[1:3, ] <- scale * moved[1:3, ]
    theta <- weights
    theta[1, ] <- theta[1, ] - offset * theta[2, ]
    theta <- matrix(theta / scale)
    far <- offset > 0 || any(abs(log10(scale)) > 35)
    each_variant(function(variant) {
      model <- with_variant(softmax_model(3, 3), variant)
      apart <- ask(model, "log_lik_grad_alone", theta, moved) -
        ask(model, "log_lik_grad", theta, moved)$gradient
      expect_lt(max(abs(apart) / rep(scale * c(200, 200 * (offset + 1), 200), 3)),
                if (far) 1e-15 else 1e-6, label = paste(variant, deparse(scale), offset))
    })
  }
})

test_that("values and gradients are right of rows that are far from all components", {
  model <- mixture_model(5, 2)
  theta <- prior_draws(model, 4, 3)
  rows <- some_rows(model, 130, theta[, 1], 4)
  # row by row the largest density is taken off first, always
  row_sums <- function(model, theta, rows) colSums(ask(model, "log_lik_each", theta, rows))
  each_variant(function(variant)
                 for (far in list(1, 1e2, 1e6, 1e100, c(1, 1e4), c(rep(1, 60), 1e200))) {
    model <- with_variant(model, variant)
    away <- rows * rep(rep_len(far, 130), each = 2)
    expect_equal(ask(model, "log_lik", theta, away), row_sums(model, theta, away),
                 tolerance = 1e-13, info = variant)
    with_value <- ask(model, "log_lik_grad", theta, away)$gradient
    alone <- ask(model, "log_lik_grad_alone", theta, away)
    expect_lt(max(abs(alone - with_value)), 3e-6 * max(abs(with_value)), label = variant)
    if (min(far) >= 1e6) expect_lt(max(abs(alone - with_value)), 1e-12 * max(abs(with_value)),
                                   label = variant)
    if (max(far) > 1e150) next
    slopes <- vapply(seq_len(nrow(theta)), function(a) {
      step <- 1e-5 * (seq_len(nrow(theta)) == a)
      (row_sums(model, theta + step, away) - row_sums(model, theta - step, away)) / 2e-5
    }, numeric(4))
    for (i in 1:4) expect_lt(max(abs(with_value[, i] - slopes[i, ])), 1e-6 * max(abs(slopes[i, ])),
                             label = paste(variant, max(far)))
  })
})

test_that("LOGEVIDENCE_SIMD lowers the variant, with a warning where it cannot", {
  skip_on_cran()
  used <- function(wish) {
    code <- paste("warned <- ''; invisible(withCallingHandlers(loadNamespace('logevidence'),",
                  "warning = function(w) {warned <<- conditionMessage(w);",
                  "invokeRestart('muffleWarning')}));",
                  "cat(.Call(logevidence:::ffi_simd)$used, warned, sep = '|')")
    path <- paste(.libPaths(), collapse = .Platform$path.sep)
    output <- system2(file.path(R.home("bin"), "Rscript"), c("--vanilla", "-e", shQuote(code)),
                      stdout = TRUE, stderr = FALSE,
                      env = c(paste0("LOGEVIDENCE_SIMD=", wish), paste0("R_LIBS=", shQuote(path))))
    strsplit(paste0(output, " "), "|", fixed = TRUE)[[1]]
  }
  expect_identical(used("plain"), c("plain", " "))
  expect_identical(used(best), c(best, " "))
  wrong <- used("neon")
  expect_identical(wrong[1], best)
  expect_match(wrong[2], "LOGEVIDENCE_SIMD=neon is none of `plain`, `avx2`, `avx512`", fixed = TRUE)
})

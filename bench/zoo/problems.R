# The problems.  Each has a model, data, a reference value by code of another kind (truths.R), and
# a family that says which methods apply.  `benign` problems are those on which warnings are false
# alarms; of `hidden` ones no method that sees a finite number of points can know, and they are
# left out of the totals.

PROBLEMS <- list()

# Truths are those of priors in units of one, whatever the units of the data.
at_unit_one <- function(model) logevidence:::at_unit_one(model)

add <- function(name, family, model, data = NULL, truth, benign = FALSE, hidden = FALSE,
                table = FALSE, limit = 60) {
  stopifnot(!name %in% names(PROBLEMS))
  PROBLEMS[[name]] <<- list(name = name, family = family, model = at_unit_one(model), data = data,
                            truth = truth, benign = benign, hidden = hidden, table = table,
                            limit = limit)
}

# Data that do not change from run to run, whatever the seed of the fits.
made <- function(seed, code) {
  set.seed(seed, "Mersenne-Twister", "Inversion", "Rejection")
  code
}

normal <- function(n, d, sd = 1) matrix(rnorm(n * d, sd = sd), n)
around <- function(centres, each, sd) {
  centres[rep(seq_len(nrow(centres)), each = each), , drop = FALSE] +
    normal(each * nrow(centres), ncol(centres), sd)
}

# ---- mixtures ----

mixture <- function(name, data, components, ..., orders = 8, particles = 1500, benign = FALSE,
                    table = FALSE) {
  data <- as.matrix(data)
  add(name, "mixture", gaussian_mixture(components = components, ...), data,
      function() mixture_truth(data, components, ..., orders = orders, particles = particles),
      benign = benign, table = table)
}

scaled_faithful <- scale(faithful)
GALAXIES <- c(9172, 9350, 9483, 9558, 9775, 10227, 10406, 16084, 16170, 18419, 18552, 18600, 18927,
              19052, 19070, 19330, 19343, 19349, 19440, 19473, 19529, 19541, 19547, 19663, 19846,
              19856, 19863, 19914, 19918, 19973, 19989, 20166, 20175, 20179, 20196, 20215, 20221,
              20415, 20629, 20795, 20821, 20846, 20875, 20986, 21137, 21492, 21701, 21814, 21921,
              21960, 22185, 22209, 22242, 22249, 22314, 22374, 22495, 22746, 22747, 22888, 22914,
              23206, 23241, 23263, 23484, 23538, 23542, 23666, 23706, 23711, 24129, 24285, 24289,
              24366, 24717, 24990, 25633, 26690, 26995, 32065, 32789, 34279)
two_clusters <- function(shift, d) {
  made(24 + d, around(rbind(rep(-2, d), rep(2, d)), 80, 0.7)) + shift
}

mixture("faithful-2", faithful, 2, table = TRUE)
mixture("faithful-1", faithful, 1)
mixture("faithful-3", faithful, 3)
mixture("waiting-2", faithful$waiting, 2)
mixture("scaled-faithful-2", scaled_faithful, 2, benign = TRUE)
mixture("scaled-faithful+3", scaled_faithful + 3, 2)
mixture("scaled-faithful+10", scaled_faithful + 10, 2, table = TRUE)
mixture("scaled-faithful+30", scaled_faithful + 30, 2)
mixture("scaled-faithful+100", scaled_faithful + 100, 2)
mixture("scaled-faithful*.01", scaled_faithful * 0.01, 2)
mixture("scaled-faithful*100", scaled_faithful * 100, 2)
mixture("clusters-2d+10", two_clusters(10, 2), 2, table = TRUE)
mixture("clusters-2d+14", two_clusters(14, 2), 2, table = TRUE)
mixture("clusters-3d+14", two_clusters(14, 3), 2, table = TRUE)
mixture("iris-2", iris[1:4], 2)
mixture("iris-3", iris[1:4], 3)
mixture("scaled-iris-2", scale(iris[1:4]), 2, benign = TRUE)
mixture("galaxies-1", GALAXIES / 1000, 1)
mixture("galaxies-3", GALAXIES / 1000, 3)
mixture("galaxies-4", GALAXIES / 1000, 4)
mixture("galaxies-6", GALAXIES / 1000, 6)
mixture("scaled-galaxies-3", scale(GALAXIES), 3, benign = TRUE)
mixture("galaxies-raw-3", GALAXIES, 3)
mixture("quakes-2", quakes[1:3], 2, orders = 8, particles = 500)
mixture("airquality-2", na.omit(airquality)[c("Ozone", "Temp")], 2)
mixture("mtcars-2", mtcars[c("mpg", "disp", "hp", "wt")], 2)
mixture("mtcars-5", mtcars[c("mpg", "disp", "hp", "wt")], 5)
mixture("swiss-2", swiss, 2)
mixture("stackloss-2", stackloss, 2)
mixture("sorted-2", made(5, sort(c(rnorm(60, -3), rnorm(40, 2)))), 2, benign = TRUE)
mixture("constant-start-2", made(6, c(rep(1.5, 50), rnorm(100, -1), rnorm(50, 6))), 2)
mixture("ties-rate-1e-8", made(7, round(rnorm(50), 1)), 2, rate = 1e-8)
mixture("concentration-.01", made(8, c(rnorm(40, -2, 0.6), rnorm(20, 2, 0.6))), 2,
        concentration = 0.01)
mixture("shape-.1", made(8, c(rnorm(40, -2, 0.6), rnorm(20, 2, 0.6))), 2, shape = 0.1)
mixture("small-2", made(9, around(rbind(c(-2, 0), c(2, 1)), 50, 0.7)), 2, benign = TRUE)
mixture("small-3", made(10, around(rbind(c(-3, 0), c(3, 0), c(0, 3)), 40, 0.6)), 3, benign = TRUE)
mixture("overlapping-2", made(11, around(rbind(c(-0.7, 0), c(0.7, 0)), 50, 0.8)), 2)
mixture("6-of-4-clusters", made(12, around(4 * rbind(c(1, 1), c(1, -1), c(-1, 1), c(-1, -1)),
                                           40, 0.7)), 6)

# Few distinct rows, which are symmetric: modes lie at the edges of fundamental domains.
distinct <- function(name, data, components) {
  add(name, "mixture", gaussian_mixture(components = components, rate = 0.1), data,
      function() enumerate_mixture(data, components, 0.1))
}
corners_of_square <- as.matrix(expand.grid(a = 0:1, b = 0:1))
distinct("square-2", corners_of_square[rep(1:4, each = 7), ], 2)
distinct("square-3", corners_of_square[rep(1:4, each = 7), ], 3)
distinct("binary-2", made(15, cbind(a = rbinom(40, 1, 0.5), b = rbinom(40, 1, 0.3))), 2)

# ---- regressions ----

line <- function(name, formula, data, sigma, prior_sd = 1, benign = FALSE) {
  x <- model.matrix(formula, data)
  y <- model.response(model.frame(formula, data))
  add(name, if (ncol(x) > 12) "wide" else "regression",
      linear_regression(formula, sigma = sigma, prior_sd = prior_sd), data,
      function() exact_linear(x, y, sigma, prior_sd), benign = benign)
}
scaled <- function(data) as.data.frame(scale(data))

line("mtcars-line", mpg ~ wt + hp, scaled(mtcars), 0.4, benign = TRUE)
line("mtcars-line-raw", mpg ~ wt + hp, mtcars, 2.6)
line("swiss-line-raw", Fertility ~ ., swiss, 7)
line("swiss-line-sd-.01", Fertility ~ ., scaled(swiss), 0.6, prior_sd = 0.01)
line("swiss-line-sd-1000", Fertility ~ ., scaled(swiss), 0.6, prior_sd = 1000)
line("stackloss-line-raw", stack.loss ~ ., stackloss, 3)
line("airquality-line-raw", Ozone ~ Solar.R + Wind + Temp, na.omit(airquality), 21)
line("quakes-line", stations ~ mag + depth + lat + long, scaled(quakes), 0.5, benign = TRUE)
line("sorted-line", mpg ~ wt + hp, scaled(mtcars)[order(mtcars$mpg), ], 0.4, benign = TRUE)
line("outlier-line", y ~ a + b, made(13, local({
  x <- data.frame(a = rnorm(300), b = rnorm(300))
  x$y <- with(x, 1 + a - b + rnorm(300)) + c(rep(0, 149), 1000, rep(0, 150))
  x
})), 1)
line("constant-start-line", y ~ a, made(14, local({
  x <- data.frame(a = c(rep(1, 2000), rnorm(2000)))
  x$y <- c(rep(2, 2000), 1 + x$a[2001:4000] + rnorm(2000))
  x
})), 1)

softmax <- function(name, formula, data, prior_sd = 1, benign = FALSE, draws = 1e5) {
  x <- model.matrix(formula, data)
  class <- as.factor(model.response(model.frame(formula, data)))
  k <- nlevels(class)
  p <- ncol(x)
  density <- function(w) {
    # a point in each row: the weights of a class one after another
    sums <- -rowSums(w^2) / 2 / prior_sd^2 - k * p * log(sqrt(2 * pi) * prior_sd)
    utility <- lapply(seq_len(k), function(j) w[, (j - 1) * p + seq_len(p), drop = FALSE] %*% t(x))
    top <- do.call(pmax, utility)
    total <- top + log(Reduce(`+`, lapply(utility, function(u) exp(u - top))))
    for (j in seq_len(k)) {
      own <- class == levels(class)[j]
      sums <- sums + rowSums(utility[[j]][, own, drop = FALSE])
    }
    sums - rowSums(total)
  }
  add(name, "regression", softmax_regression(formula, prior_sd = prior_sd), data,
      function() t_importance(density, list(rep(0, k * p)), draws), benign = benign)
}

softmax("iris-softmax", Species ~ Petal.Length + Petal.Width,
        cbind(scaled(iris[1:4]), Species = iris$Species), benign = TRUE)
softmax("iris-softmax-raw", Species ~ Petal.Length + Petal.Width, iris)
softmax("mtcars-softmax-raw", am ~ hp + disp + wt, transform(mtcars, am = factor(am)))
softmax("mtcars-softmax-sd-.01", am ~ hp + wt,
        transform(scaled(mtcars), am = factor(mtcars$am)), prior_sd = 0.01)
softmax("mtcars-softmax-sd-1000", am ~ hp, transform(scaled(mtcars), am = factor(mtcars$am)),
        prior_sd = 1000)

add("mean", "regression", gaussian_mean(), made(15, rnorm(50, 0.5)), benign = TRUE,
    truth = function() exact_linear(matrix(1, 50), made(15, rnorm(50, 0.5)), 1, 1))
add("mean-far", "regression", gaussian_mean(), made(16, rnorm(50, 40)),
    truth = function() exact_linear(matrix(1, 50), made(16, rnorm(50, 40)), 1, 1))

# ---- latent variables ----

far_clusters <- made(17, around(5 * diag(3), 15, 0.5)[sample(45), ])
near_clusters <- made(18, around(1.5 * diag(3), 10, 0.6))
few_rows <- made(19, around(rbind(c(2, 0), c(-2, 1)), 5, 0.5))
attribute_rows <- made(20, local({
  z <- matrix(rbinom(60, 1, 0.5), 30)
  z %*% rbind(c(2, -1, 0, 1.5), c(0, 2, -2, 1)) + normal(30, 4, 0.5)
}))
rank_rows <- made(21, normal(20, 2) %*% normal(2, 4) + normal(20, 4, 0.5))

clusters <- function(name, data, k, infer, sds = c(1, 1), benign = FALSE, table = FALSE, ...) {
  add(name, if (infer) "latent" else "latent-known",
      clustering(components = k, infer = infer, prior_sd = sds[1], noise_sd = sds[2]), data,
      function() filter_clusters(data, k, infer, sds, ...), benign = benign, table = table)
}
clusters("far-3-unknown", far_clusters, 3, TRUE, table = TRUE)
clusters("far-2-unknown", far_clusters, 2, TRUE)
clusters("far-5-unknown", far_clusters, 5, TRUE, table = TRUE)
clusters("far-3-known", far_clusters, 3, FALSE, c(3, 0.5), benign = TRUE)
clusters("near-3-unknown", near_clusters, 3, TRUE, benign = TRUE)
clusters("near-3-known", near_clusters, 3, FALSE, c(1, 0.6), benign = TRUE)
clusters("faithful-60-unknown", scaled_faithful[1:60, ], 2, TRUE)
clusters("faithful-272-unknown", scaled_faithful, 2, TRUE)
clusters("iris-sorted-unknown", scale(iris[c(1:20, 51:70, 101:120), 1:4]), 3, TRUE)
clusters("ties-unknown", round(scaled_faithful[1:30, ]), 2, TRUE)
add("few-unknown", "latent", clustering(components = 2, infer = TRUE), few_rows,
    function() enumerate_clusters(few_rows, TRUE))
add("few-known", "latent-known", clustering(components = 2, prior_sd = 2, noise_sd = 0.5), few_rows,
    function() enumerate_clusters(few_rows, FALSE, c(2, 0.5)), benign = TRUE)

attributes_of <- function(name, data, k, infer, sds = c(1, 1), benign = FALSE, table = FALSE) {
  add(name, if (infer) "latent" else "latent-known",
      binary_attributes(attributes = k, infer = infer, prior_sd = sds[1], noise_sd = sds[2]), data,
      function() filter_attributes(data, k, infer, sds), benign = benign, table = table)
}
attributes_of("attributes-2-unknown", attribute_rows, 2, TRUE, table = TRUE)
attributes_of("attributes-2-known", attribute_rows, 2, FALSE, c(1.5, 0.5), table = TRUE)
attributes_of("attributes-3-unknown", attribute_rows, 3, TRUE)
add("attributes-1-known", "latent-known",
    binary_attributes(attributes = 1, prior_sd = 1.5, noise_sd = 0.5), attribute_rows[1:12, ],
    function() enumerate_attribute(attribute_rows[1:12, ], c(1.5, 0.5)))

rank_of <- function(name, data, k, infer, sds = c(1, 1, 1), benign = FALSE) {
  add(name, if (infer) "latent" else "latent-known",
      low_rank(rank = k, infer = infer, row_sd = sds[1], column_sd = sds[2], noise_sd = sds[3]),
      data,
      function() integrate_low_rank(data, k, infer, sds), benign = benign)
}
rank_of("rank-1-known", rank_rows, 1, FALSE, c(1, 1, 0.5)) # of data of rank 2
rank_of("rank-1-unknown", rank_rows, 1, TRUE)
rank_of("rank-2-known", rank_rows, 2, FALSE, c(1, 1, 0.5), benign = TRUE)
rank_of("iris-rank-1-unknown", scale(iris[1:40, 1:4]), 1, TRUE)

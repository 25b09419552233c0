# Problems whose evidence is known without the package: closed forms, sums over all allocations, and
# constants from long runs of plain R code (bench/truth.R computes them anew). Nothing here calls
# the code under test, but for the constructors of the models themselves.

LOG_2PI <- log(2 * pi)

log_sum_exp <- function(x) {
  top <- max(x)
  top + log(sum(exp(x - top)))
}

#' Evaluate with a seed of its own, and leave the generator as it was
with_own_seed <- function(seed, code) {
  old <- get0(".Random.seed", globalenv(), inherits = FALSE)
  on.exit(if (is.null(old)) rm(".Random.seed", envir = globalenv()) else
          assign(".Random.seed", old, globalenv()))
  set.seed(seed, "Mersenne-Twister", "Inversion", "Rejection")
  code
}

scaled <- function(data) as.data.frame(scale(data))

# Linear regression --------------------------------------------------------------------------------

#' Log density of y ~ N(0, sigma^2 I + X S X'), S diagonal
#'
#' Through the singular values of X S^(1/2), which keeps its digits where the covariates are nearly
#' dependent and the Cholesky factor of either matrix, N x N or d x d, would lose half of them.
linear_truth <- function(x, y, sigma, prior_sd) {
  n <- length(y)
  s <- svd(x %*% diag(prior_sd, ncol(x)), nu = min(n, ncol(x)))
  along <- drop(crossprod(s$u, y))
  across <- y - drop(s$u %*% along)
  spread <- sigma^2 + s$d^2
  -0.5 * (n * LOG_2PI + sum(log(spread)) + (n - length(s$d)) * log(sigma^2) +
            sum(along^2 / spread) + sum(across^2) / sigma^2)
}

#' The same from the definition, the normal density in N dimensions; for the check of the other
linear_truth_dense <- function(x, y, sigma, prior_sd) {
  root <- chol(sigma^2 * diag(length(y)) + x %*% (prior_sd^2 * t(x)))
  -0.5 * (length(y) * LOG_2PI + sum(backsolve(root, y, transpose = TRUE)^2)) - sum(log(diag(root)))
}

linear_problem <- function(formula, data, sigma, prior_sd) {
  frame <- model.frame(formula, data)
  x <- model.matrix(formula, frame)
  each <- if (is.null(names(prior_sd))) rep_len(prior_sd, ncol(x)) else prior_sd[colnames(x)]
  list(
    model = linear_regression(formula, sigma = sigma, prior_sd = prior_sd), data = data,
    log_evidence = linear_truth(x, model.response(frame), sigma, each), se = 0,
    x = x, y = model.response(frame), sigma = sigma, prior_sd = each
  )
}

simulated_linear <- function(n, covariates = 5, seed = 1) {
  with_own_seed(seed, {
    x <- matrix(rnorm(n * covariates), n)
    data <- data.frame(x, y = drop(x %*% rnorm(covariates)) + rnorm(1) + rnorm(n))
    linear_problem(y ~ ., data, 1, 1)
  })
}

airquality_complete <- function() {
  air <- airquality[complete.cases(airquality), ]
  air$Month <- factor(air$Month)
  air
}

# Gaussian mean ------------------------------------------------------------------------------------

mean_problem <- function(y, sigma = 1, s = 1) {
  root <- chol(sigma^2 * diag(length(y)) + s^2)
  truth <- -0.5 * (length(y) * LOG_2PI + sum(backsolve(root, y, transpose = TRUE)^2)) -
    sum(log(diag(root)))
  list(model = gaussian_mean(sigma = sigma, prior_sd = s), data = y, log_evidence = truth, se = 0)
}

# A hundred normal quantiles, moved to a mean of exactly 2.
hundred_around_two <- function() qnorm(ppoints(100)) + 2

# Softmax regression -------------------------------------------------------------------------------

#' Adding one vector to the weights of all classes alters no probability, and the prior treats the
#' classes alike: in orthonormal coordinates across the classes that direction is independent of the
#' rest and integrates to one.
class_contrasts <- function(classes) {
  h <- contr.helmert(classes)
  sweep(h, 2, sqrt(colSums(h^2)), "/")
}

#' Log of likelihood times prior in the K - 1 coordinates that matter, for many points
#'
#' @param points Matrix, a row for each point, p x (K - 1) numbers in each.
softmax_joint <- function(points, x, class, classes, prior_sd = 1) {
  contrasts <- class_contrasts(classes)
  p <- ncol(x)
  m <- nrow(points)
  linear <- lapply(seq_len(classes - 1), function(j)
                     x %*% t(points[, (j - 1) * p + seq_len(p), drop = FALSE]))
  top <- NULL
  predictors <- lapply(seq_len(classes), function(k) {
    Reduce(`+`, Map(function(l, c) l * c, linear, contrasts[k, ]))
  })
  top <- do.call(pmax, predictors)
  normaliser <- top + log(Reduce(`+`, lapply(predictors, function(f) exp(f - top))))
  chosen <- Reduce(`+`, lapply(seq_len(classes), function(k)
                                 colSums(predictors[[k]] * (class == k))))
  chosen - colSums(normaliser) - 0.5 * ncol(points) * log(2 * pi * prior_sd^2) -
    rowSums(points^2) / (2 * prior_sd^2)
}

softmax_gradient <- function(point, x, class, classes, prior_sd = 1) {
  contrasts <- class_contrasts(classes)
  eta <- x %*% matrix(point, ncol(x)) %*% t(contrasts)
  p <- exp(eta - apply(eta, 1, max))
  p <- p / rowSums(p)
  as.vector(crossprod(x, (outer(class, seq_len(classes), `==`) - p) %*% contrasts)) -
    point / prior_sd^2
}

#' Minus the second derivatives
softmax_curvature <- function(point, x, class, classes, prior_sd = 1) {
  contrasts <- class_contrasts(classes)
  eta <- x %*% matrix(point, ncol(x)) %*% t(contrasts)
  prob <- exp(eta - apply(eta, 1, max))
  prob <- prob / rowSums(prob)
  p <- ncol(x)
  d <- length(point)
  curvature <- diag(1 / prior_sd^2, d)
  for (i in seq_len(classes - 1)) for (j in seq_len(classes - 1)) {
    ci <- contrasts[, i]
    cj <- contrasts[, j]
    w <- drop(prob %*% (ci * cj)) - drop(prob %*% ci) * drop(prob %*% cj)
    rows <- (i - 1) * p + seq_len(p)
    columns <- (j - 1) * p + seq_len(p)
    curvature[rows, columns] <- curvature[rows, columns] + crossprod(x, w * x)
  }
  curvature
}

#' Importance sampling by a multivariate t, with its standard error
#'
#' @param joint Log of likelihood times prior, one value for each row of a matrix.
#' @param mean,covariance Where the proposals start from; each round of `rounds` draws refits them
#'   to the weighted draws of the round before, which helps where the posterior is skewed. Only the
#'   last round counts.
#' @param images List of functions from points to points that leave `joint` as it is, the identity
#'   first: the proposal density is the mean over these images of itself, so that all copies of the
#'   mode count.
t_importance <- function(joint, mean, covariance, draws, df, rounds = 0, seed = 1,
                         images = list(identity), block = 1000) {
  d <- length(mean)
  log_t <- function(points, root) {
    z <- backsolve(root, t(points) - mean, transpose = TRUE)
    lgamma((df + d) / 2) - lgamma(df / 2) - d / 2 * log(df * pi) - sum(log(diag(root))) -
      (df + d) / 2 * log1p(colSums(z^2) / df)
  }
  with_own_seed(seed, for (round in 0:rounds) {
    root <- chol(covariance)
    many <- if (round < rounds) ceiling(draws / 10) else draws
    pieces <- lapply(seq_len(ceiling(many / block)), function(b) {
      z <- matrix(rnorm(d * block), block) / sqrt(rchisq(block, df) / df)
      points <- sweep(z %*% root, 2, mean, "+")
      densities <- vapply(images, function(image) log_t(image(points), root), numeric(block))
      top <- apply(densities, 1, max)
      list(points = points, log_ratio = joint(points) - top - log(rowMeans(exp(densities - top))))
    })
    log_ratio <- unlist(lapply(pieces, `[[`, "log_ratio"))
    w <- exp(log_ratio - max(log_ratio))
    if (round < rounds) {
      moments <- cov.wt(do.call(rbind, lapply(pieces, `[[`, "points")), w / sum(w))
      mean <- moments$center
      covariance <- moments$cov
    }
  })
  average <- sum(w) / length(w)
  list(log_evidence = max(log_ratio) + log(average), se = sd(w) / average / sqrt(length(w)),
       ess = sum(w)^2 / sum(w^2) / length(w))
}

softmax_importance <- function(x, class, classes, draws, prior_sd = 1, df = 30, rounds = 0) {
  joint <- function(points) softmax_joint(points, x, class, classes, prior_sd)
  one <- function(point) joint(matrix(point, 1))
  slope <- function(point) softmax_gradient(point, x, class, classes, prior_sd)
  mode <- optim(rep(0, ncol(x) * (classes - 1)), function(v) -one(v), function(v) -slope(v),
                method = "BFGS", control = list(maxit = 1000, reltol = 1e-14))$par
  for (newton in 1:5) mode <- mode +
    solve(softmax_curvature(mode, x, class, classes, prior_sd), slope(mode))
  t_importance(joint, mode, solve(softmax_curvature(mode, x, class, classes, prior_sd)), draws, df,
               rounds)
}

#' One covariate, an intercept and two classes leave two coordinates: the trapezium rule, which
#' converges faster than any power of the step for a function that is smooth and dies away at both
#' ends
softmax_quadrature <- function(x, class, prior_sd = 1, reach = 8, nodes = 801) {
  at <- seq(-reach, reach, length.out = nodes) * prior_sd
  grid <- as.matrix(expand.grid(at, at))
  values <-
    unlist(lapply(split(seq_len(nrow(grid)), ceiling(seq_len(nrow(grid)) / 20000)), function(rows) {
    softmax_joint(grid[rows, ], x, class, 2, prior_sd)
  }))
  log_sum_exp(values) + 2 * log(at[2] - at[1])
}

softmax_problem <- function(formula, data, log_evidence, se, prior_sd = 1) {
  frame <- model.frame(formula, data)
  response <- as.factor(model.response(frame))
  list(
    model = softmax_regression(formula, prior_sd = prior_sd), data = data,
    log_evidence = log_evidence, se = se,
    x = model.matrix(formula, frame), class = as.integer(response), classes = nlevels(response),
    prior_sd = prior_sd
  )
}

scaled_iris <- function() cbind(scaled(iris[1:4]), Species = iris$Species)

simulated_softmax <- function(n, covariates = 10, classes = 4, seed = 2) {
  with_own_seed(seed, {
    x <- matrix(rnorm(n * covariates), n)
    eta <- cbind(1, x) %*% matrix(rnorm((covariates + 1) * classes), covariates + 1)
    gumbel <- -log(-log(matrix(runif(n * classes), n)))
    data.frame(x, class = factor(max.col(eta + gumbel, "first"), levels = seq_len(classes)))
  })
}

# Mixtures -----------------------------------------------------------------------------------------

#' Log marginal likelihood of normal numbers with a normal-inverse-gamma prior, from their count,
#' sum and sum of squares about the prior location (vectors: one element for each set of numbers)
#'
#' mu | v ~ N(0, r^2 v), v ~ InvGamma(a, b).
cluster_marginal <- function(count, total, squares, r = 2, a = 1, b = 1) {
  precision <- 1 / r^2 + count
  late_b <- b + 0.5 * (squares - total^2 / precision)
  -count / 2 * LOG_2PI - 0.5 * log(r^2 * precision) + a * log(b) - lgamma(a) +
    lgamma(a + count / 2) -
    (a + count / 2) * log(late_b)
}

#' K = 1: every column by itself
single_component_truth <- function(y, ...) {
  y <- as.matrix(y)
  sum(vapply(seq_len(ncol(y)), function(j)
               cluster_marginal(nrow(y), sum(y[, j]), sum(y[, j]^2), ...), 0))
}

#' The evidence of a mixture as the sum over all K^n allocations, each with the weights and
#' parameters integrated out
#'
#' The set of points in one component is a number whose bits are the points; all 2^n sets are valued
#' first. Every ordered allocation counts once, so that no K! is missing or doubled.
mixture_truth <- function(y, components, concentration = 1, ...) {
  y <- as.matrix(y)
  n <- nrow(y)
  member <- outer(seq_len(2^n) - 1, 2^(seq_len(n) - 1), function(set, bit) (set %/% bit) %% 2)
  count <- rowSums(member)
  value <- lgamma(concentration + count) - lgamma(concentration)
  for (j in seq_len(ncol(y)))
    value <- value + cluster_marginal(count, drop(member %*% y[, j]), drop(member %*% y[, j]^2),
                                      ...)
  sets <- matrix(0, 1, components)
  for (i in seq_len(n)) {
    sets <- do.call(rbind, lapply(seq_len(components), function(k) {
      sets[, k] <- sets[, k] + 2^(i - 1)
      sets
    }))
  }
  allocation <- rowSums(matrix(value[sets + 1], ncol = components))
  log_sum_exp(allocation) + lgamma(components * concentration) -
    lgamma(n + components * concentration)
}

#' Log of likelihood times prior at parameters of one's own choice: log weight ratios, means and log
#' variances
#'
#' @param points Matrix, a row for each point: K - 1 log ratios to the last weight, then K means
#'   and K log variances column by column of the data.
mixture_joint <- function(points, y, components, r = 2, a = 1, b = 1) {
  y <- as.matrix(y)
  k <- components
  ratios <- cbind(points[, seq_len(k - 1), drop = FALSE], 0)
  top <- do.call(pmax, as.data.frame(ratios))
  log_weight <- ratios - top - log(rowSums(exp(ratios - top)))
  # Dirichlet(1, ..., 1), with the Jacobian of the log ratios: the product of all weights
  prior <- lgamma(k) + rowSums(log_weight)
  terms <- lapply(seq_len(k), function(c) matrix(log_weight[, c], nrow(points), nrow(y)))
  for (j in seq_len(ncol(y))) for (c in seq_len(k)) {
    at <- k - 1 + (j - 1) * 2 * k + c
    mean <- points[, at]
    log_variance <- points[, at + k]
    # the inverse gamma density of the variance, times the variance for its logarithm
    prior <- prior + dnorm(mean, 0, r * exp(log_variance / 2), log = TRUE) + a * log(b) -
      lgamma(a) -
      a * log_variance - b * exp(-log_variance)
    terms[[c]] <- terms[[c]] - 0.5 * (LOG_2PI + log_variance) -
      0.5 * outer(mean, y[, j], `-`)^2 * exp(-log_variance)
  }
  top <- do.call(pmax, terms)
  prior + rowSums(top + log(Reduce(`+`, lapply(terms, function(t) exp(t - top)))))
}

mixture_problem <- function(y, components, log_evidence = mixture_truth(y, components), se = 0) {
  list(model = gaussian_mixture(components = components,
                                location = 0, rate = 1), data = y, log_evidence = log_evidence,
       se = se)
}

scaled_faithful <- function() scale(as.matrix(faithful))

# Every 23rd eruption: a dozen points of both kinds.
dozen <- function() scaled_faithful()[seq(1, 272, by = 23), ]

# Velocities of 82 galaxies in km/s (Roeder 1990, as in the package MASS), scaled.
scaled_galaxies <- function() {
  velocity <- c(9172, 9350, 9483, 9558, 9775, 10227, 10406, 16084, 16170, 18419, 18552, 18600,
                18927, 19052, 19070,
    19330, 19343, 19349, 19440, 19473, 19529, 19541, 19547, 19663, 19846, 19856, 19863, 19914,
    19918, 19973,
    19989, 20166, 20175, 20179, 20196, 20215, 20221, 20415, 20629, 20795, 20821, 20846, 20875,
    20986, 21137,
    21492, 21701, 21814, 21921, 21960, 22185, 22209, 22242, 22249, 22314, 22374, 22495, 22746,
    22747, 22888,
    22914, 23206, 23241, 23263, 23484, 23538, 23542, 23666, 23706, 23711, 24129, 24285, 24289,
    24366, 24717, 24990, 25633, 26690, 26995, 32065, 32789, 34279)
  as.vector(scale(velocity))
}

# The problems -------------------------------------------------------------------------------------

# Constants from bench/truth.R: log evidence and its standard error.
TRUTH_CONSTANTS <- list(
  iris_petal = c(-43.6836, 0.0013),
  iris = c(-42.1775, 0.0014),
  iris_wide = c(-23.4781, 0.0029),
  softmax500 = c(-318.9948, 0.0038),
  softmax1000 = c(-563.0526, 0.0024),
  softmax3000 = c(-1676.4357, 0.0030),
  mix2_eruptions = c(-273.6003, 0.0011),
  mix2_faithful = c(-450.8745, 0.0016),
  mix2_galaxies = c(-107.4664, 0.0090),
  mix3_galaxies = c(-106.2124, 0.0262)
)

TRUTH_PROBLEMS <- list(
  mean100 = function() mean_problem(hundred_around_two()),
  cars = function() linear_problem(dist ~ speed, cars, 15, 10),
  mtcars = function() linear_problem(mpg ~ ., scaled(mtcars), 0.4, 1),
  swiss = function() linear_problem(Fertility ~ ., swiss, 7, c(
    "(Intercept)" = 100, Agriculture = 1, Examination = 1, Education = 1, Catholic = 1,
    Infant.Mortality = 5)),
  longley = function() linear_problem(Employed ~ ., longley, 0.3, c(
    "(Intercept)" = 1000, GNP.deflator = 1, GNP = 1, Unemployed = 1, Armed.Forces = 1,
    Population = 1, Year = 1)),
  airquality = function() linear_problem(Ozone ~ Solar.R + Wind + Temp + Month,
                                         airquality_complete(), 20, c(
    "(Intercept)" = 50, Solar.R = 1, Wind = 5, Temp = 5, Month6 = 20, Month7 = 20, Month8 = 20,
    Month9 = 20)),
  linear1000 = function() simulated_linear(1000),
  linear5000 = function() simulated_linear(5000),
  softmax_tiny = function() {
    tiny <- data.frame(x = c(-1.2, -0.4, 0.1, 0.3, 0.9, 1.6),
                       y = factor(c("a", "a", "b", "a", "b", "b")))
    problem <- softmax_problem(y ~ x, tiny, NA, 0)
    problem$log_evidence <- softmax_quadrature(problem$x, problem$class, nodes = 201)
    problem
  },
  iris_petal = function() constant_softmax("iris_petal", Species ~ Petal.Length + Petal.Width,
                                           scaled_iris()),
  iris = function() constant_softmax("iris", Species ~ ., scaled_iris()),
  iris_wide = function() constant_softmax("iris_wide", Species ~ ., scaled_iris(), prior_sd = 5),
  softmax500 = function() constant_softmax("softmax500", class ~ ., simulated_softmax(500)),
  softmax1000 = function() constant_softmax("softmax1000", class ~ ., simulated_softmax(1000)),
  softmax3000 = function() constant_softmax("softmax3000", class ~ ., simulated_softmax(3000)),
  mix1_faithful = function()
    mixture_problem(scaled_faithful(), 1, single_component_truth(scaled_faithful())),
  mix2_dozen = function() mixture_problem(dozen()[, 1], 2),
  mix3_dozen = function() mixture_problem(dozen()[1:11, 1], 3),
  mix2_dozen_2d = function() mixture_problem(dozen(), 2),
  mix3_dozen_2d = function() mixture_problem(dozen()[1:11, ], 3),
  mix2_eruptions = function() constant_mixture("mix2_eruptions", scaled_faithful()[, 1], 2),
  mix2_faithful = function() constant_mixture("mix2_faithful", scaled_faithful(), 2),
  mix2_galaxies = function() constant_mixture("mix2_galaxies", scaled_galaxies(), 2),
  mix3_galaxies = function() constant_mixture("mix3_galaxies", scaled_galaxies(), 3)
)

constant_softmax <- function(name, formula, data, ...) {
  known <- TRUTH_CONSTANTS[[name]]
  softmax_problem(formula, data, known[1], known[2], ...)
}

constant_mixture <- function(name, y, components) {
  known <- TRUTH_CONSTANTS[[name]]
  mixture_problem(y, components, known[1], known[2])
}

made_problems <- new.env()

#' A problem by name, a list: `model`, `data`, `log_evidence`, `se` and what its truth was computed
#' from; made once
truth_problem <- function(name) {
  if (is.null(made_problems[[name]]))
    assign(name, c(list(name = name), TRUTH_PROBLEMS[[name]]()), made_problems)
  made_problems[[name]]
}

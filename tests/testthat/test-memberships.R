# Memberships of components and the plot of clusters.

blobs <- with_own_seed(test_seed(), {
  centre <- cbind(a = c(-3, 0, 3), b = c(0, 3, -1))[rep(1:3, each = 20), ]
  centre + rnorm(120, 0, 0.5)
})
groups <- clustering(components = 3, prior_sd = 3, noise_sd = 0.5)
labelled <- quiet_fit(groups, blobs, smc("data", particles = 30), seed = test_seed(),
                      progress = FALSE)
mixture <- muffled(evidence(gaussian_mixture(components = 3, location = 0, rate = 1),
                             blobs, laplace(importance = 200),
                            seed = test_seed(), progress = FALSE))

same_groups <- function(class) {
  table <- table(class, rep(1:3, each = 20))
  all(colSums(table == 20) == 1) && sum(table) == 60
}

test_that("rows of separate clusters have separate labels", {
  expect_true(same_groups(predict(labelled, type = "class")))
  expect_true(same_groups(predict(mixture, type = "class")))
  expect_identical(levels(predict(mixture, type = "class")), paste0("component", 1:3))
  expect_equal(rowSums(predict(labelled, blobs[1:5, ], "probability")), rep(1, 5))
  expect_identical(predict(labelled, blobs[1, , drop = FALSE], "class"),
                   predict(labelled, blobs, "class")[1])
})

test_that("memberships and density of a clustering are those of the same mixture", {
  for (model in list(clustering(components = 2, proportions = c(0.7, 0.3)),
                     clustering(components = 2, infer = TRUE))) {
    rows <- blobs[c(1, 2, 21, 22, 41), ]
    fit <- quiet_fit(model, rows, smc(particles = 40), seed = test_seed(), progress = FALSE)
    new <- rbind(c(0, 1), c(-2, 2))
    at <- labelled_draws(fit)
    each <- lapply(seq_along(at$use), function(i)
      exp(fit$log_weights[at$use[i]] + label_densities(cluster_state(fit, at, i), t(new))))
    expect_equal(log(rowSums(Reduce(`+`, each))), predict(fit, new), tolerance = 1e-6)
  }
})

test_that("memberships do not depend on the numbering of components in single draws", {
  turned <- labelled
  labels <- startsWith(colnames(turned$parameters), "label[")
  half <- seq(2, nrow(turned$parameters), by = 2)
  half <- setdiff(half, which.max(turned$log_weights))
  turned$parameters[half, labels] <- (turned$parameters[half, labels] + 1) %% 3
  expect_equal(predict(turned, blobs, "probability"), predict(labelled, blobs, "probability"))
  expect_equal(cluster_centres(turned), cluster_centres(labelled))
  # known proportions that differ are those of given components
  unequal <- clustering(components = 2, proportions = c(0.9, 0.1))
  expect_false(exchangeable(list(args = unequal$args)))
})

test_that("simulate() of a mixture has all its columns", {
  draws <- predict(mixture, blobs[1:2, ], type = "draws", draws = 3000, seed = test_seed())
  expect_identical(dim(draws), c(3000L, 2L, 2L))
  expect_identical(dimnames(draws)[[3]], c("a", "b"))
  expect_z(z_score(draws[, 1, ], colMeans(blobs)), 6)
  sets <- simulate(mixture, nsim = 2, seed = test_seed())
  expect_identical(dim(sets$sim_2), c(60L, 2L))
  expect_length(unique(predict(mixture, sets$sim_1, "class")), 3)
  one <- muffled(evidence(gaussian_mixture(components = 2, location = 0, rate = 1),
                           blobs[, 1], laplace(),
                          seed = test_seed(), progress = FALSE))
  expect_identical(dim(simulate(one, nsim = 3)), c(60L, 3L))
  refused(simulate(labelled), "a clustering() cannot.")
  refused(log_lik(labelled), "log_lik() has nothing to return: in a clustering()")
})

test_that("the plot of clusters has rows, ellipses and centres", {
  for (fit in list(mixture, labelled)) {
    centres <- part_of(fit$model, "clusters")(fit)
    true <- rbind(colMeans(blobs[1:20, ]), colMeans(blobs[21:40, ]), colMeans(blobs[41:60, ]))
    order <- order(centres$mean[, 1])
    expect_equal(centres$mean[order, ], true, tolerance = 0.1, ignore_attr = TRUE)
    expect_equal(centres$sd, matrix(0.5, 3, 2), tolerance = 0.4, ignore_attr = TRUE)
    drawn <- drawn_series(expect_invisible(plot(fit, "clusters")))
    points <- Filter(function(s) nrow(s) == 60, drawn)
    expect_equal(points[[1]], as.data.frame(blobs), ignore_attr = TRUE)
    lines <- Filter(function(s) nrow(s) == 181, drawn)
    expect_length(lines, 3)
    expect_equal(t(vapply(lines, function(s) colMeans(s[-1, ]), numeric(2))), centres$mean,
                 ignore_attr = TRUE)
  }
  inside <- ellipse(c(0, 0), c(1, 2), 0.9)
  expect_equal(range(pchisq(inside$x^2 + inside$y^2 / 4, 2)), c(0.9, 0.9))
  turned <- drawn_series(plot(mixture, "clusters", columns = c("b", "a"), main = "Mine"))
  expect_equal(Filter(function(s) nrow(s) == 60, turned)[[1]], as.data.frame(blobs[, 2:1]),
               ignore_attr = TRUE)
})

test_that("components without rows have no ellipse, and many components have colours", {
  many <- quiet_fit(clustering(components = 9, prior_sd = 3, noise_sd = 0.5), blobs,
                    smc("data", particles = 10), seed = test_seed(), progress = FALSE)
  figure <- cluster_figure(many, many$design$rows, 1:2)
  expect_length(figure$ellipses, length(unique(figure$points$component)))
  expect_lt(length(figure$ellipses), 9)
  expect_length(unique(component_colours(9)), 9)
  expect_length(unique(component_colours(7)), 7)
})

test_that("plots of clusters are refused where there are none", {
  line <- evidence(linear_regression(dist ~ speed, sigma = 15), cars, exact(), seed = test_seed())
  refused(plot(line, "clusters"), "`type` must be")
  refused(plot(mixture, "posterior", columns = 1:2), "`columns` must be NULL unless `type`")
  refused(plot(mixture, "clusters", columns = c("a", "c")), "two different columns of `a`, `b`")
  refused(plot(mixture, "clusters", columns = c(1, 1)), "two different columns of `a`, `b`")
  refused(plot(mixture, "clusters", data = blobs[1:9, ]), "`data` must be those of the fit")
  one <- quiet_fit(clustering(components = 2), blobs[1:9, 1], smc(particles = 9),
                   seed = test_seed(), progress = FALSE)
  refused(plot(one, "clusters"), "data of one column")
})

# Groups whose rows come in blocks of a source, with `keep`: units are made block by block.

d <- local({
  set.seed(3)
  g <- rep(seq_len(120), times = sample(2:9, 120, TRUE))
  d <- data.frame(g = paste0("g", g), h = sample(c("a", "b"), length(g), TRUE))
  d$x <- rnorm(nrow(d))
  d$y <- rpois(nrow(d), exp(0.3 + 0.4 * d$x + rnorm(120, 0, 0.7)[g]))
  d
})
model <- at_unit_one(regression(y ~ x + (1 | g), family = poisson()))

quick <- sgais(particles = 50, order = "given")
blocks_fit <- function(data, ..., formula_model = model)
  evidence(formula_model, data, quick, keep = 1000, seed = 1, ...)

test_that("the size of blocks does not change a bit", {
  whole <- blocks_fit(d)
  fit <- blocks_fit(in_blocks(d, 7))
  expect_same(fit, whole)
  expect_identical(group_effects(fit), group_effects(whole))
  expect_equal(nobs(fit), nrow(d))
  expect_same(blocks_fit(in_blocks(d, 100, rewind = FALSE)), whole)
  memory <- evidence(model, d, seed = 1)
  expect_identical(whole$data_id, memory$data_id)
  expect_lt(abs(whole$log_evidence - memory$log_evidence), 4 * sqrt(whole$se^2 + memory$se^2))
  expect_identical(group_effects(whole)$group, group_effects(memory)$group)
  expect_lt(max(abs(group_effects(whole)$mean - group_effects(memory)$mean)), 0.1)
})

test_that("nested factors and several effects can come in blocks", {
  d <- d[d$g %in% paste0("g", 1:8), ]
  for (formula in list(y ~ x + (1 | g / h), y ~ x + (1 + x | g))) {
    one <- regression(formula, family = poisson())
    fit <- blocks_fit(in_blocks(d, 50), formula_model = one)
    memory <- evidence(one, d, seed = 2)
    expect_identical(blocks_fit(in_blocks(d, 13), formula_model = one)$log_evidence,
                     fit$log_evidence)
    expect_lt(abs(fit$log_evidence - memory$log_evidence), 4 * sqrt(fit$se^2 + memory$se^2))
  }
})

test_that("levels may be empty or begin with a point", {
  odd <- d[1:60, ]
  odd$g <- c("", ".a", "..", "=", "a b")[as.integer(factor(odd$g)) %% 5 + 1]
  odd <- odd[order(odd$g), ]
  whole <- evidence(model, odd, seed = 1)
  fit <- blocks_fit(in_blocks(odd, 7))
  expect_lt(abs(fit$log_evidence - whole$log_evidence), 4 * sqrt(fit$se^2 + whole$se^2))
  expect_setequal(group_effects(fit)$group, unique(odd$g))
  expect_setequal(read_groups(model, in_blocks(odd, 7))$levels$g, unique(odd$g))
})

test_that("a group that comes again is refused with its row", {
  again <- rbind(d, d[2, ])
  expect_error(blocks_fit(in_blocks(again, 50)),
               paste0("Group \"g1\" of `g` comes again in row ", nrow(d) + 1))
  expect_error(blocks_fit(in_blocks(again, 50, rewind = FALSE)), "comes again")
  # where one block has all rows of the group, their order does not matter
  mixed <- d[c(2, 1, 3:nrow(d)), ]
  expect_true(is.finite(blocks_fit(in_blocks(mixed, 50))$log_evidence))
})

test_that("a source that is read once refuses groups much larger than its first ones", {
  large <- rbind(d, data.frame(g = "large", h = "a", x = rnorm(30), y = 1))
  expect_error(with_first_rows(100, blocks_fit(in_blocks(large, 50, rewind = FALSE))),
               "at most 18 rows in a group, .* Group \"large\" has 30")
  expect_true(is.finite(with_first_rows(100, blocks_fit(in_blocks(large, 50)))$log_evidence))
  # nested levels have room, too
  rows <- d[order(d$g), ]
  rows$h[1:150] <- "a"
  nested <- regression(y ~ x + (1 | g / h), family = poisson())
  rows$h[400:420] <- letters[1:21]
  expect_error(with_first_rows(100, blocks_fit(in_blocks(rows, 50, rewind = FALSE),
                                               formula_model = nested)),
               "levels of `g:h` in a group")
})

test_that("update() adds rows of new groups, and refuses rows of known groups", {
  first <- d$g %in% paste0("g", 1:80)
  begun <- blocks_fit(in_blocks(d[first, ], 40), keep_state = TRUE)
  both <- update(begun, in_blocks(d[!first, ], 40))
  whole <- blocks_fit(d)
  expect_equal(nobs(both), nrow(d))
  expect_identical(both$data_id, whole$data_id)
  expect_equal(both$log_evidence, whole$log_evidence, tolerance = 1e-10)
  expect_equal(group_effects(both), group_effects(whole), tolerance = 1e-6)
  expect_error(update(begun, d[sum(first) + -1:1, ]), "`rows` must have .* comes again in row 1")
})

test_that("without the rows of groups effects are refused in a sentence", {
  many <- do.call(rbind, lapply(1:10, function(k) transform(d, g = paste0(g, "-", k))))
  fit <- blocks_fit(in_blocks(many, 500))
  memory <- evidence(model, many, seed = 2)
  expect_lt(abs(fit$log_evidence - memory$log_evidence), 4 * sqrt(fit$se^2 + memory$se^2))
  expect_error(group_effects(fit), "no rows of its groups")
  expect_error(predict(fit, many[1:3, ]), "`groups = FALSE`")
  expect_length(predict(fit, many[1:3, ], groups = FALSE), 3)
  # the correction of the rule is that of all units
  whole <- evidence(model, many, quick, seed = 2)
  expect_equal(fit$correction$log_evidence, whole$correction$log_evidence, tolerance = 0.3)
  expect_gt(fit$correction$se, 0)
})

test_that("a run from blocks that resumes from its checkpoint has the same bits", {
  file <- tempfile()
  on.exit(unlink(file))
  for (rewind in c(TRUE, FALSE)) {
    whole <- blocks_fit(in_blocks(d, 30, rewind))
    calls <- 0
    hook <- function(state) if ((calls <<- calls + 1) > 1) stop("stop")
    expect_error(blocks_fit(in_blocks(d, 30, rewind), checkpoint = file, every = 0,
                            on_chunk = hook), "stop")
    again <- resume(file, in_blocks(d, 17, rewind))
    expect_same(again, whole)
    expect_identical(again$correction, whole$correction)
    unlink(file)
  }
})

test_that("a note says that the error of the integration rule is unknown without rows", {
  many <- data.frame(g = 1:1010, x = 0, y = 1)
  fit <- muffled(evidence(regression(y ~ 1 + (1 | g), family = poisson()), in_blocks(many, 505),
                          online_nested(live = 8, steps = 1), keep = 1000, seed = 1))
  expect_null(fit$correction)
  expect_match(fit$warnings, "error of the rule that integrates out the effects is not known",
               all = FALSE)
})

test_that("shards of whole groups have the evidence of all rows, to the bit", {
  skip_if_not_installed("parallel")
  cl <- local_cluster()
  shard <- (match(d$g, unique(d$g)) - 1) %% 3
  parts <- unname(split(d, shard))
  parts[[3]] <- parts[[3]][sample(nrow(parts[[3]])), ]
  way <- laplace(importance = 500)
  of_shards <- function(cl, parts, ...)
    evidence(model, rows_cluster(cl, function(i) parts[[i]], shards = length(parts)), way, seed = 1,
             ...)
  fit <- of_shards(cl, parts)
  memory <- evidence(model, d, way, seed = 1)
  expect_lt(abs(fit$log_evidence - memory$log_evidence), 4 * sqrt(fit$se^2 + memory$se^2))
  expect_identical(fit$data_id, memory$data_id)
  expect_equal(nobs(fit), nrow(d))
  expect_identical(fit$shards$rows, as.double(table(shard)))
  expect_identical(of_shards(cl[1], parts)$log_evidence, fit$log_evidence)
  expect_error(predict(fit, d[1:3, ]), "`groups = FALSE`")
  # an empty shard, and a group in two
  expect_equal(of_shards(cl, c(parts, list(d[0, ])))$log_evidence, fit$log_evidence,
               tolerance = 1e-3)
  apart <- replace(parts, 2, list(rbind(parts[[2]], parts[[1]][1, ])))
  expect_error(of_shards(cl, apart), "Group \"g1\" of `g` has rows in the shards 1 and 2")
  # stopped before its rows are counted, and after
  for (limit in c(1e-9, 0.3)) {
    file <- tempfile()
    of_shards(cl, parts, checkpoint = file, time_limit = limit, every = 0)
    again <- resume(file, rows_cluster(cl, function(i) parts[[i]], shards = 3))
    expect_identical(again$log_evidence, fit$log_evidence)
    unlink(file)
  }
})

test_that("draws with infinite density leave the error of the integration rule unknown", {
  encoded <- encode(model, d[1:20, ])
  points <- cbind(c(0, 0, 0), c(800, 0, 0))
  for (weights in list(c(0, -Inf), c(-Inf, 0))) {
    found <- rule_correction(model, encoded, points, weights, c(1, 2))
    if (weights[1] == 0) expect_lt(abs(found$log_evidence), 0.1)
    else expect_match(found, "error of the rule .* far from the posterior")
  }
})

test_that("a bad row in a group stops the run before the group, and resume() goes on there", {
  whole <- blocks_fit(in_blocks(d, 30))
  bad <- replace(d, "y", list(replace(d$y, 402, NA)))
  expect_identical(d$g[401], d$g[402])
  stopped <- tryCatch(with_first_rows(100, blocks_fit(in_blocks(bad, 30))), error = identity)
  expect_match(conditionMessage(stopped), "row 402")
  again <- resume(stopped$fit, in_blocks(d, 30))
  expect_equal(again$log_evidence, whole$log_evidence, tolerance = 1e-10)
  expect_identical(again[c("n", "data_id")], whole[c("n", "data_id")])
  expect_equal(group_effects(again), group_effects(whole), tolerance = 1e-6)
})

test_that("a `keep` that needs too much memory, and effects that cannot be read, are refused", {
  expect_error(evidence(model, in_blocks(d, 50, rewind = FALSE), quick, keep = 1e9),
               "`keep` must be at most")
  apart <- transform(d, z = ifelse(seq_along(x) > 300, x + 1, x))
  slopes <- regression(y ~ x + (1 + z | g), family = poisson(), prior_sd = 2.5)
  expect_error(with_first_rows(100, blocks_fit(in_blocks(apart, 50), formula_model = slopes)),
               "must be that of a covariate in all rows")
})

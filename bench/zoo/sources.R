# The ways of giving rows: in memory, one pass, two passes, shards, sums in a database, ten pieces,
# two models on one pass. Problems of 12,000 rows and 1,000 rows in memory (`keep`), so that each
# way does what it is for. References are importance sampling in plain R around the modes.

SOURCE_ROWS <- 12000
SOURCE_KEEP <- 1000
SOURCE_SHARDS <- 4

# A model, its rows, and the log density of points (a matrix with a point in each row) on a scale
# of its own; `orders` is the number of labellings of a mode.
SOURCE_PROBLEMS <- list()
add_source <- function(name, model, data, density, starts, orders = 1, sums = FALSE)
  SOURCE_PROBLEMS[[name]] <<- list(name = name, model = logevidence:::at_unit_one(model),
                                   data = data, density = density,
                                   starts = starts, orders = orders, sums = sums)

# Rows of points at a time, so that matrices of rows x points stay small.
by_few <- function(f) function(theta) unlist(lapply(
  split(seq_len(nrow(theta)), (seq_len(nrow(theta)) - 1) %/% 50),
  function(some) f(theta[some, , drop = FALSE])), use.names = FALSE)

# A regression with normal priors: `row(eta, further)` of linear predictors in columns.
source_regression <- function(name, model, data, x, row, sd, further = list(), start, ...) {
  p <- ncol(x)
  density <- by_few(function(theta) {
    w <- theta[, seq_len(p), drop = FALSE]
    more <- theta[, -seq_len(p), drop = FALSE]
    value <- colSums(matrix(row(x %*% t(w), more), SOURCE_ROWS)) +
      rowSums(dnorm(w, 0, sd, log = TRUE))
    for (k in seq_along(further)) value <- value + further[[k]](more[, k])
    value
  })
  add_source(name, model, data, density, list(start), ...)
}
of_rows <- function(a) rep(a, each = SOURCE_ROWS)

source_rows <- made(51, local({
  n <- SOURCE_ROWS
  d <- data.frame(x = rnorm(n), z = rnorm(n), g = sample(c("a", "b", "c"), n, TRUE),
                  far = 1000 + rnorm(n), rare = rep(c(rep("no", 999), "yes"), 12))
  d$y <- with(d, 1 + x - 0.5 * z + 0.3 * (g == "b") + rnorm(n))
  d$k <- rpois(n, exp(0.3 + 0.4 * d$x))
  d$b <- rbinom(n, 1, plogis(0.5 - d$x + d$z))
  d$few <- rbinom(n, 1, plogis(-6.5 + d$x))
  d$nb <- rnbinom(n, 1.5, mu = exp(1 + 0.3 * d$z))
  d$t <- 1 + d$x + rt(n, 3)
  # the law changes at two thirds
  d$shift <- rpois(n, exp(c(rep(0.2, 2 * n / 3), rep(0.6, n / 3)) + 0.3 * d$x))
  d$square <- 0.35^2 * d$x + rnorm(n)
  d$sine <- sin(1.3 * d$x) + rnorm(n, 0, 0.8)
  d$mixed <- c(-2, 1.5)[1 + rbinom(n, 1, 0.4)] + rnorm(n, 0, 0.7)
  d
}))
noise <- list(half_t)
xs <- function(formula) model.matrix(formula, source_rows)
normal_rows <- function(y) function(eta, more) dnorm(y, eta, of_rows(exp(more[, 1])), log = TRUE)
lm_start <- function(formula, data = source_rows) {
  fit <- lm(formula, data)
  c(unname(coef(fit)), log(summary(fit)$sigma))
}

source_regression("line-known", linear_regression(y ~ x + z + g, sigma = 1, prior_sd = 2),
                  source_rows, xs(~ x + z + g),
                  function(eta, more) dnorm(source_rows$y, eta, 1, log = TRUE), 2,
                  start = lm_start(y ~ x + z + g)[1:5], sums = TRUE)
source_regression("line-noise", linear_regression(y ~ x + z + g, prior_sd = 2), source_rows,
                  xs(~ x + z + g), normal_rows(source_rows$y), 2, noise,
                  lm_start(y ~ x + z + g), sums = TRUE)
source_regression("line-far", linear_regression(y ~ far, prior_sd = 10), source_rows, xs(~ far),
                  normal_rows(source_rows$y), 10, noise, lm_start(y ~ far), sums = TRUE)
source_regression("line-rare", linear_regression(y ~ x + rare, prior_sd = 2), source_rows,
                  xs(~ x + rare), normal_rows(source_rows$y), 2, noise, lm_start(y ~ x + rare),
                  sums = TRUE)
sorted_rows <- source_rows[order(source_rows$y), ]
source_regression("line-sorted", linear_regression(y ~ x + z, prior_sd = 2), sorted_rows,
                  model.matrix(~ x + z, sorted_rows), normal_rows(sorted_rows$y), 2, noise,
                  lm_start(y ~ x + z), sums = TRUE)
counts_of <- function(y) function(eta, more) dpois(y, exp(eta), log = TRUE)
poisson_start <- function(formula) unname(coef(glm(formula, poisson(), source_rows)))
source_regression("counts", regression(k ~ x + z, "poisson", prior_sd = 2.5),
                  source_rows, xs(~ x + z), counts_of(source_rows$k), 2.5,
                  start = poisson_start(k ~ x + z))
source_regression("counts-shift",
                  regression(shift ~ x, "poisson", prior_sd = 2.5),
                  source_rows, xs(~ x), counts_of(source_rows$shift), 2.5,
                  start = poisson_start(shift ~ x))
binary_of <- function(y) function(eta, more) dbinom(y, 1, plogis(eta), log = TRUE)
binary_start <- function(formula) unname(coef(glm(formula, binomial(), source_rows)))
source_regression("binary", regression(b ~ x + z, "binomial", prior_sd = 2.5),
                  source_rows, xs(~ x + z), binary_of(source_rows$b), 2.5,
                  start = binary_start(b ~ x + z))
source_regression("binary-rare",
                  regression(few ~ x, "binomial", prior_sd = 2.5),
                  source_rows, xs(~ x), binary_of(source_rows$few), 2.5,
                  start = binary_start(few ~ x))
source_regression("counts-wide",
                  regression(nb ~ z, "negative_binomial", prior_sd = 2.5),
                  source_rows, xs(~ z), function(eta, more)
                    dnbinom(source_rows$nb, of_rows(exp(more[, 1])), mu = exp(eta), log = TRUE),
                  2.5, list(exponential_1), c(poisson_start(nb ~ z), 0.4))
source_regression("outliers", regression(t ~ x, student(3), prior_sd = 2.5),
                  source_rows, xs(~ x), function(eta, more) {
                    s <- of_rows(exp(more[, 1]))
                    dt((source_rows$t - eta) / s, 3, log = TRUE) - log(s)
                  }, 2.5, noise, c(1, 1, 0))
source_density <- function(name, model, log_row, prior, starts)
  add_source(name, model, source_rows, by_few(function(theta)
    prior(theta) + vapply(seq_len(nrow(theta)), function(i) sum(log_row(theta[i, ])), 0)), starts)
source_density("square", density(~ dnorm(square, a^2 * x, 1, log = TRUE),
                                 a = logevidence::prior_normal(0.1, 0.5)),
               function(a) dnorm(source_rows$square, a^2 * source_rows$x, 1, log = TRUE),
               function(theta) dnorm(theta[, 1], 0.1, 0.5, log = TRUE), list(0.35, -0.35))
source_density("sine", density(~ dnorm(sine, sin(w * x), s, log = TRUE),
                               w = logevidence::prior_normal(0, 3), s = half_normal(2)),
               function(p) dnorm(source_rows$sine, sin(p[1] * source_rows$x), exp(p[2]),
                                 log = TRUE),
               function(theta) dnorm(theta[, 1], 0, 3, log = TRUE) + log(2) +
                 dnorm(exp(theta[, 2]), 0, 2, log = TRUE) + theta[, 2], list(c(1.3, log(0.8))))
# two components, in an order: weight, means, log variances
add_source("mixture", gaussian_mixture(~ mixed, components = 2), source_rows,
           by_few(function(theta) vapply(seq_len(nrow(theta)), function(i) {
             p <- theta[i, ]
             v <- exp(p[4:5])
             y <- source_rows$mixed
             one <- plogis(p[1], log.p = TRUE) + dnorm(y, p[2], sqrt(v[1]), log = TRUE)
             two <- plogis(-p[1], log.p = TRUE) + dnorm(y, p[3], sqrt(v[2]), log = TRUE)
             top <- pmax(one, two)
             f <- MIXTURE_PRIOR
             sum(top + log(exp(one - top) + exp(two - top))) +
               plogis(p[1], log.p = TRUE) + plogis(-p[1], log.p = TRUE) +
               sum(dnorm(p[2:3], 0, f$mean_scale * sqrt(v), log = TRUE)) +
               sum(f$shape * log(f$rate) - lgamma(f$shape) - f$shape * p[4:5] - f$rate / v)
           }, 0)), list(c(0.4, -2, 1.5, -0.7, -0.7)), orders = 2)
MIXTURE_PRIOR <- local({
  model <- gaussian_mixture(~ y, components = 2)
  list(mean_scale = model$mean_scale, shape = model$shape, rate = model$rate)
})

# ---- references ----

# Draws from t distributions around the modes; the standard error from the spread of the weights.
source_truth <- function(problem, draws = 8000, df = 8) {
  f <- problem$density
  one <- function(x) f(matrix(x, 1))
  modes <- lapply(problem$starts, function(start) {
    scale <- rep(0.02, length(start))
    climb <- optim(start, function(x) -max(one(x), -1e300), method = "BFGS",
                   control = list(maxit = 200, parscale = scale, reltol = 1e-12))
    hessian <- optimHess(climb$par, function(x) -one(x), control = list(ndeps = scale / 10))
    list(at = climb$par, root = chol(solve((hessian + t(hessian)) / 2)), top = -climb$value)
  })
  d <- length(modes[[1]]$at)
  volume <- vapply(modes, function(m) m$top + sum(log(diag(m$root))), 0)
  share <- exp(volume - max(volume))
  share <- share / sum(share)
  made(52, {
    of <- sample.int(length(modes), draws, TRUE, share)
    z <- matrix(rnorm(draws * d), draws) / sqrt(rchisq(draws, df) / df)
    x <- t(vapply(seq_len(draws), function(i)
      modes[[of[i]]]$at + drop(z[i, ] %*% modes[[of[i]]]$root), numeric(d)))
    x <- matrix(x, draws)
  })
  each <- vapply(seq_along(modes), function(k) {
    m <- modes[[k]]
    u <- backsolve(m$root, t(x) - m$at, transpose = TRUE)
    log(share[k]) + lgamma((df + d) / 2) - lgamma(df / 2) - d / 2 * log(df * pi) -
      sum(log(diag(m$root))) - (df + d) / 2 * log1p(colSums(u^2) / df)
  }, numeric(draws))
  top <- apply(each, 1, max)
  weight <- f(x) - top - log(rowSums(exp(each - top)))
  ratio <- exp(weight - max(weight))
  list(value = max(weight) + log(mean(ratio)) + log(problem$orders),
       se = sd(ratio) / mean(ratio) / sqrt(draws))
}

write_source_truths <- function(file) for (problem in SOURCE_PROBLEMS) {
  truth <- source_truth(problem)
  message(sprintf("%-14s %14.4f +- %.4f", problem$name, truth$value, truth$se))
  append_rows(data.frame(problem = problem$name, truth = sprintf("%.5f", truth$value),
                         se = signif(truth$se, 3)), file)
}

# ---- ways ----

source_blocks <- function(data, rewind, size = 500) {
  at <- 0
  rows_function(function(reset) {
    if (reset) at <<- 0
    else if (at < nrow(data)) {
      some <- (at + 1):min(at + size, nrow(data))
      at <<- at + size
      data[some, , drop = FALSE]
    }
  }, rewind)
}
tenths <- function(data) split(data, (seq_len(nrow(data)) - 1) %/% (nrow(data) / 10))

source_cluster <- local({
  cl <- NULL
  function() {
    if (is.null(cl)) cl <<- parallel::makePSOCKcluster(1)
    cl
  }
})

SOURCE_WAYS <- list(
  memory = function(problem, seed) evidence(problem$model, problem$data, seed = seed),
  `one pass` = function(problem, seed)
    evidence(problem$model, source_blocks(problem$data, FALSE), seed = seed, keep = SOURCE_KEEP),
  `two passes` = function(problem, seed)
    evidence(problem$model, source_blocks(problem$data, TRUE), seed = seed, keep = SOURCE_KEEP),
  shards = function(problem, seed) {
    parts <- unname(split(problem$data, (seq_len(SOURCE_ROWS) - 1) %/%
                            (SOURCE_ROWS / SOURCE_SHARDS)))
    open <- function(shard) parts[[shard]]
    environment(open) <- list2env(list(parts = parts), parent = globalenv())
    evidence(problem$model, rows_cluster(source_cluster(), open, SOURCE_SHARDS), seed = seed)
  },
  database = function(problem, seed) {
    if (!problem$sums) return(NULL)
    con <- DBI::dbConnect(RSQLite::SQLite(), ":memory:")
    on.exit(DBI::dbDisconnect(con))
    DBI::dbWriteTable(con, "given", problem$data)
    evidence(problem$model, rows_dbi(con, "given", push = TRUE), seed = seed)
  },
  `ten pieces` = function(problem, seed) {
    pieces <- tenths(problem$data)
    fit <- evidence(problem$model, source_blocks(pieces[[1]], FALSE), seed = seed,
                    keep = SOURCE_KEEP, keep_state = TRUE)
    for (piece in pieces[-1]) fit <- update(fit, source_blocks(piece, FALSE), keep_state = TRUE)
    fit
  },
  race = function(problem, seed) {
    race <- evidence(list(problem$model, problem$model), source_blocks(problem$data, FALSE),
                     seed = seed, keep = SOURCE_KEEP)
    attr(race, "fits")[[1]]
  })

source_fit <- function(problem, way, seed, limit) {
  started <- proc.time()[[3]]
  fit <- tryCatch({
    setTimeLimit(elapsed = limit, transient = TRUE)
    withCallingHandlers(SOURCE_WAYS[[way]](problem, seed),
                        warning = function(w) invokeRestart("muffleWarning"),
                        message = function(m) invokeRestart("muffleMessage"))
  }, error = conditionMessage, finally = setTimeLimit())
  if (is.null(fit)) return(NULL)
  row <- data.frame(problem = problem$name, way = way, seed = seed, log_evidence = NA_real_,
                    se = NA_real_, warned = NA, failed = NA,
                    seconds = round(proc.time()[[3]] - started, 3), commit = package_commit(),
                    text = "")
  short <- function(x) substr(gsub("[\",\n]", " ", x), 1, 70)
  if (is.character(fit)) {
    row$text <- short(paste("error:", fit))
    return(row)
  }
  said <- named_problems(fit)
  row$log_evidence <- round(fit$log_evidence, 5)
  row$se <- signif(fit$se, 4)
  row$warned <- length(said) > 0
  row$failed <- length(fit$failed) > 0
  row$text <- if (length(said)) short(said[1]) else ""
  row
}

# Seeds one after another, until the minutes are over; what is in the file is not run again.
run_sources <- function(file, minutes, problems = ".", ways = names(SOURCE_WAYS), limit = 120) {
  until <- proc.time()[[3]] + 60 * minutes
  seen <- if (file.exists(file)) with(read.csv(file), paste(problem, way, seed))
  for (seed in seq_len(1000))
    for (problem in SOURCE_PROBLEMS[grepl(problems, names(SOURCE_PROBLEMS))]) for (way in ways) {
      if (paste(problem$name, way, seed) %in% seen) next
      if (proc.time()[[3]] > until) return(invisible())
      # seeds of fits differ between problems
      row <- source_fit(problem, way, seed + 1000 * match(problem$name, names(SOURCE_PROBLEMS)),
                        limit)
      if (is.null(row)) next
      row$seed <- seed
      append_rows(row, file)
    }
}

way_line <- function(part, name) c(
  name, length(unique(part$problem)), nrow(part), percent(part$silent_tenth),
  percent(part$silent_any), percent(part$beyond), percent(part$wrong), percent(part$doubted),
  percent(abs(part$z[is.finite(part$z)]) < 2), number(mean(part$seconds)))
WAY <- c("way", "problems", "runs", "silent > .1", "silent", "beyond 4 se", "wrong", "doubted",
         "within 2 se", "s")
way_lines <- function(rows) {
  parts <- split(rows, factor(rows$way, intersect(names(SOURCE_WAYS), rows$way)))
  table_lines(WAY, Map(way_line, parts, names(parts)))
}

report_sources <- function(file, truths) {
  rows <- judge(read.csv(file), read.csv(truths))
  writeLines(way_lines(rows))
  worst <- function(what) 100 * max(tapply(rows[[what]], paste(rows$way, rows$problem), mean))
  cat(sprintf("\nOf the runs of a problem and a way at most %.1f%% are silent (above 1 nat), ",
              worst("silent")), sprintf("%.1f%% above 0.1 nats.\n", worst("silent_tenth")),
      sep = "")
  for (part in split(rows, rows$way)) {
    if (any(part$silent_tenth)) cat(sprintf("\n%s\n", part$way[1]))
    worst_lines(part)
  }
}

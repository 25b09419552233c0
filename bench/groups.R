# Regressions with group-level effects: is the evidence right, and is the stated error?
#
#   Rscript bench/groups.R references [problems, comma-separated]
#   Rscript bench/groups.R run [seeds = 40] [problems] [file = bench/results/groups.csv]
#   Rscript bench/groups.R report [file]
#   Rscript bench/groups.R rules [problems]
#
# References are in bench/results/groups-references.csv, so that `run` fits with the package alone.
# They are made in plain R and share no code with the package. Parameters are drawn from Student's t
# distribution, which is adapted in rounds. At each draw effects are integrated out
# - normal densities: by the dense covariance matrix of all rows;
# - one effect of a group: on a grid of the effect for each group, which is narrowed twice;
# - else, for logit and Poisson models: by draws around the mode of all effects, which are new for
#   each draw of the parameters, so that the mean over all is unbiased and its standard error
#   contains theirs.

suppressPackageStartupMessages(library(logevidence))

REFERENCES <- "bench/results/groups-references.csv"
RESULTS <- "bench/results/groups.csv"
PRIOR_SD <- 2.5

log_sum <- function(x) max(x) + log(sum(exp(x - max(x))))

# Problems ----------------------------------------------------------------------------------------

# Densities of rows given the linear predictor and the logarithm of the further parameter.
DENSITIES <- list(
  gaussian = function(y, eta, a) dnorm(y, eta, exp(a), log = TRUE),
  student = function(y, eta, a) dt((y - eta) / exp(a), 4, log = TRUE) - a,
  poisson = function(y, eta, a) y * eta - exp(eta) - lgamma(y + 1),
  logit = function(y, eta, a) plogis((2 * y - 1) * eta, log.p = TRUE),
  probit = function(y, eta, a) pnorm((2 * y - 1) * eta, log.p = TRUE),
  gamma = function(y, eta, a) dgamma(y, exp(a), exp(a - eta), log = TRUE),
  negative_binomial = function(y, eta, a) dnbinom(y, exp(a), mu = exp(eta), log = TRUE),
  weibull = function(y, eta, a) dweibull(y, exp(a), exp(eta), log = TRUE)
)
FAMILIES <- list(gaussian = gaussian(), student = student(4), poisson = poisson(),
                 logit = binomial(), probit = binomial("probit"), gamma = Gamma("log"),
                 negative_binomial = negative_binomial(), weibull = weibull())
DRAWS <- list(
  gaussian = function(eta) rnorm(length(eta), eta, 0.7),
  student = function(eta) eta + 0.5 * rt(length(eta), 3),
  poisson = function(eta) rpois(length(eta), exp(eta)),
  logit = function(eta) rbinom(length(eta), 1, plogis(eta)),
  probit = function(eta) rbinom(length(eta), 1, pnorm(eta)),
  gamma = function(eta) rgamma(length(eta), 2, 2 / exp(eta)),
  negative_binomial = function(eta) rnbinom(length(eta), 1.5, mu = exp(eta)),
  weibull = function(eta) rweibull(length(eta), 1.5, exp(eta))
)
HAS_FURTHER <- c("gaussian", "student", "gamma", "negative_binomial", "weibull")
half_t <- function(log_sd) log(2) + dt(exp(log_sd) / 2.5, 3, log = TRUE) - log(2.5) + log_sd
exponential_1 <- function(log_a) log_a - exp(log_a)

# A term: the column of the groups, the columns of its effects, whether these are correlated.
term <- function(group, effects = "one", correlated = length(effects) > 1, sd = 0.8)
  list(group = group, effects = effects, correlated = correlated, sd = rep_len(sd, length(effects)))

# `groups` of so many `rows`, or so many rows of each pair of `groups` and `items`.
problem <- function(family, formula, terms, groups, rows = 1, items = 0, inner = 0,
                    on_sigma = FALSE, fixed = "x") {
  list(family = family, formula = formula, terms = terms, groups = groups, rows = rows,
       items = items, inner = inner, on_sigma = on_sigma, fixed = fixed)
}

usual <- list(term("g"))
PROBLEMS <- list(
  gaussian = problem("gaussian", y ~ x + (1 | g), usual, 20, 5),
  gaussian_three = problem("gaussian", y ~ x + (1 | g), list(term("g", sd = 5)), 3, 6),
  gaussian_single = problem("gaussian", y ~ x + (1 | g), usual, 12, 1),
  gaussian_zero = problem("gaussian", y ~ x + (1 | g), list(term("g", sd = 0)), 15, 4),
  gaussian_slope = problem("gaussian", y ~ x + (1 + x | g), list(term("g", c("one", "x"))), 12, 6),
  gaussian_bars = problem("gaussian", y ~ x + z + (x + z || g),
                          list(term("g", c("one", "x", "z"), FALSE)), 10, 8, fixed = c("x", "z")),
  gaussian_four = problem("gaussian", y ~ x + (x + z + w || g),
                          list(term("g", c("one", "x", "z", "w"), FALSE)), 10, 10),
  gaussian_nested = problem("gaussian", y ~ x + (1 | g / h), list(term("g"), term("gh")), 6, 18,
                            inner = 5),
  gaussian_crossed = problem("gaussian", y ~ x + (1 | g) + (1 | item),
                             list(term("g"), term("item", sd = 0.4)), 12, items = 8),
  gaussian_sigma = problem("gaussian", y ~ x, list(term("g", sd = 0.6)), 12, 8, on_sigma = TRUE),
  student = problem("student", y ~ x + (1 | g), usual, 20, 5),
  student_wide = problem("student", y ~ x + (1 | g), list(term("g", sd = 6)), 15, 2),
  poisson = problem("poisson", y ~ x + (1 | g), usual, 50, 3),
  poisson_wide = problem("poisson", y ~ x + (1 | g), list(term("g", sd = 3)), 20, 5),
  poisson_slope = problem("poisson", y ~ x + (1 + x | g), list(term("g", c("one", "x"), sd = 0.6)),
                          12, 5),
  poisson_nested = problem("poisson", y ~ x + (1 | g / h), list(term("g"), term("gh", sd = 0.5)), 5,
                           15, inner = 4),
  poisson_crossed = problem("poisson", y ~ x + (1 | g) + (1 | item),
                            list(term("g"), term("item", sd = 0.5)), 15, items = 8),
  logit = problem("logit", y ~ x + (1 | g), usual, 40, 5),
  logit_separated = problem("logit", y ~ x + (1 | g), list(term("g", sd = 8)), 12, 5),
  logit_single = problem("logit", y ~ x + (1 | g), usual, 40, 1),
  logit_zero = problem("logit", y ~ x + (1 | g), list(term("g", sd = 0)), 15, 6),
  logit_many = problem("logit", y ~ x + (1 | g), usual, 10000, 3),
  logit_three = problem("logit", y ~ x + (x + z || g),
                        list(term("g", c("one", "x", "z"), FALSE)), 8, 12),
  logit_crossed = problem("logit", y ~ x + (1 | g) + (1 | item),
                          list(term("g", sd = 1), term("item", sd = 0.7)), 30, items = 12),
  logit_crossed_large = problem("logit", y ~ x + (1 | g) + (1 | item),
                                list(term("g", sd = 1), term("item", sd = 0.7)), 100, items = 12),
  probit = problem("probit", y ~ x + (1 | g), usual, 30, 6),
  gamma = problem("gamma", y ~ x + (1 | g), usual, 25, 4),
  negative_binomial = problem("negative_binomial", y ~ x + (1 | g), usual, 30, 4),
  weibull = problem("weibull", y ~ x + (1 | g), usual, 25, 4)
)

make_data <- function(name) {
  p <- PROBLEMS[[name]]
  set.seed(match(name, names(PROBLEMS)) + 500)
  d <- if (p$items > 0) expand.grid(g = seq_len(p$groups), item = seq_len(p$items))
  else data.frame(g = rep(seq_len(p$groups), each = p$rows))
  n <- nrow(d)
  if (p$inner > 0) {
    d$h <- rep_len(seq_len(p$inner), n)
    d$gh <- paste(d$g, d$h)
  }
  for (name in c("x", "z", "w")) d[[name]] <- rnorm(n)
  d$one <- 1
  added <- numeric(n)
  for (t in p$terms) {
    code <- match(d[[t$group]], unique(d[[t$group]]))
    for (k in seq_along(t$effects))
      added <- added + d[[t$effects[k]]] * rnorm(max(code), sd = t$sd[k])[code]
  }
  eta <- 0.3 + 0.5 * d$x
  d$y <- if (p$on_sigma) rnorm(n, eta, 0.7 * exp(added)) else DRAWS[[p$family]](eta + added)
  d
}

model_of <- function(p) {
  args <- list(p$formula, FAMILIES[[p$family]], prior = normal(0, PRIOR_SD))
  if (p$on_sigma) args <- c(args, list(sigma ~ 1 + (1 | g)))
  do.call(regression, args)
}

# References --------------------------------------------------------------------------------------

# theta: coefficients, the logarithm of the further parameter, then for each term the logarithms of
# its standard deviations, and the inverse hyperbolic tangent of the correlation of two.
layout <- function(p) {
  at <- length(p$fixed) + 1
  coefficients <- seq_len(at)
  further <- if (p$family %in% HAS_FURTHER) at + 1
  at <- at + length(further)
  terms <- lapply(p$terms, function(t) {
    q <- length(t$effects)
    sd <- at + seq_len(q)
    cor <- if (t$correlated) at + q + 1
    at <<- at + q + length(cor)
    list(sd = sd, cor = cor)
  })
  list(coefficients = coefficients, further = further, terms = terms, d = at)
}

log_prior <- function(p, l, theta) {
  value <- sum(dnorm(theta[l$coefficients], 0, PRIOR_SD, log = TRUE))
  if (length(l$further)) {
    a <- theta[l$further]
    value <- value + if (p$on_sigma) dt(a / 2.5, 3, log = TRUE) - log(2.5)
    else if (p$family %in% c("gaussian", "student")) half_t(a) else exponential_1(a)
  }
  for (t in l$terms) {
    value <- value + sum(half_t(theta[t$sd]))
    # uniform in the correlation
    if (length(t$cor)) value <- value + log(0.5) - 2 * log(cosh(theta[t$cor]))
  }
  value
}

root_of <- function(t, theta) {
  sd <- exp(theta[t$sd])
  if (!length(t$cor)) return(diag(sd, length(sd)))
  r <- tanh(theta[t$cor])
  matrix(c(sd[1], sd[2] * r, 0, sd[2] / cosh(theta[t$cor])), 2)
}

# Columns of all effects, times the root of their covariance.
loads <- function(p, l, d, theta) do.call(cbind, Map(function(t, at) {
  code <- match(d[[t$group]], unique(d[[t$group]]))
  z <- as.matrix(d[t$effects]) %*% root_of(at, theta)
  found <- matrix(0, nrow(d), max(code) * ncol(z))
  for (k in seq_len(ncol(z))) found[cbind(seq_along(code), (code - 1) * ncol(z) + k)] <- z[, k]
  found
}, p$terms, l$terms))

fixed_part <- function(p, l, d, theta)
  drop(cbind(1, as.matrix(d[p$fixed])) %*% theta[l$coefficients])

by_covariance <- function(p, l, d) function(theta) {
  e <- d$y - fixed_part(p, l, d, theta)
  root <- chol(diag(exp(2 * theta[l$further]), nrow(d)) + tcrossprod(loads(p, l, d, theta)))
  squares <- sum(backsolve(root, e, transpose = TRUE)^2)
  -nrow(d) / 2 * log(2 * pi) - sum(log(diag(root))) - squares / 2
}

by_grid <- function(p, l, d) {
  code <- match(d$g, unique(d$g))
  groups <- max(code)
  z <- d[[p$terms[[1]]$effects]]
  density <- DENSITIES[[p$family]]
  function(theta) {
    eta <- fixed_part(p, l, d, theta)
    a <- if (length(l$further)) theta[l$further] else 0
    sd <- exp(theta[l$terms[[1]]$sd])
    values <- function(v) {
      added <- z * sd * v[code, , drop = FALSE]
      each <- if (p$on_sigma) density(d$y, eta, a + added) else density(d$y, eta + added, a)
      rowsum(each, code, reorder = FALSE) + dnorm(v, log = TRUE)
    }
    low <- rep(-9, groups)
    high <- rep(9, groups)
    for (points in c(if (nrow(d) > 1000) 25 else c(41, 41), if (nrow(d) > 1000) 41 else 101)) {
      step <- (high - low) / (points - 1)
      v <- low + outer(step, seq_len(points) - 1)
      f <- values(v)
      top <- f[cbind(seq_len(groups), max.col(f, "first"))]
      inside <- f > top - 30
      first <- max.col(inside, "first")
      last <- max.col(inside, "last")
      low <- v[cbind(seq_len(groups), pmax(first - 1, 1))]
      high <- v[cbind(seq_len(groups), pmin(last + 1, points))]
    }
    sum(top + log(rowSums(exp(f - top)) * step))
  }
}

# Around the mode of all effects: draws of Student's t distribution with 40 degrees of freedom.
by_draws <- function(p, l, d, draws = 200) {
  density <- DENSITIES[[p$family]]
  mean_of <- if (p$family == "poisson") exp else plogis
  bend_of <- if (p$family == "poisson") exp else function(eta) plogis(eta) * plogis(-eta)
  function(theta, random = TRUE) {
    eta <- fixed_part(p, l, d, theta)
    a <- loads(p, l, d, theta)
    k <- ncol(a)
    v <- numeric(k)
    target <- function(v) sum(density(d$y, eta + drop(a %*% v), 0)) - sum(v^2) / 2
    now <- target(v)
    for (i in 1:100) {
      at <- eta + drop(a %*% v)
      slope <- drop(crossprod(a, d$y - mean_of(at))) - v
      root <- chol(crossprod(a * sqrt(bend_of(at))) + diag(k))
      step <- backsolve(root, backsolve(root, slope, transpose = TRUE))
      size <- 1
      while (!((new <- target(v + size * step)) >= now - 1e-9) && size > 1e-6) size <- size / 2
      v <- v + size * step
      now <- new
      if (sum(step * slope) < 1e-8) break
    }
    base <- -sum(log(diag(root)))
    if (!random) return(now + base)
    z <- matrix(rnorm(k * draws), k) / rep(sqrt(rchisq(draws, 40) / 40), each = k)
    points <- v + backsolve(root, z)
    f <- colSums(density(d$y, eta + a %*% points, 0)) - colSums(points^2) / 2 - k / 2 * log(2 * pi)
    proposal <- lgamma((40 + k) / 2) - lgamma(20) - k / 2 * log(40 * pi) -
      (40 + k) / 2 * log1p(colSums(z^2) / 40)
    base + log_sum(f - proposal) - log(draws)
  }
}

t_sampling <- function(target, centre, root, draws, df = 6) {
  d <- length(centre)
  z <- matrix(rnorm(draws * d), draws)
  u <- rchisq(draws, df) / df
  theta <- rep(centre, each = draws) + (z / sqrt(u)) %*% root
  proposal <- lgamma((df + d) / 2) - lgamma(df / 2) - d / 2 * log(df * pi) -
    sum(log(diag(root))) - (df + d) / 2 * log1p(rowSums(z^2) / u / df)
  value <- apply(theta, 1, function(t) tryCatch(target(t), error = function(e) -Inf))
  log_weight <- ifelse(is.finite(value), value, -Inf) - proposal
  weight <- exp(log_weight - max(log_weight))
  list(value = log_sum(log_weight) - log(draws), ess = sum(weight)^2 / sum(weight^2),
       se = sd(weight) / mean(weight) / sqrt(draws), theta = theta, weight = weight / sum(weight))
}

one_effect <- function(p) length(p$terms) == 1 && length(p$terms[[1]]$effects) == 1

reference <- function(name) {
  p <- PROBLEMS[[name]]
  d <- make_data(name)
  l <- layout(p)
  one <- one_effect(p)
  normal <- p$family == "gaussian" && !p$on_sigma
  log_lik <- (if (normal) by_covariance else if (one) by_grid else by_draws)(p, l, d)
  target <- function(theta) log_prior(p, l, theta) + log_lik(theta)
  smooth <- if (normal || one) target
  else function(theta) log_prior(p, l, theta) + log_lik(theta, FALSE)
  safe <- function(theta) {
    value <- tryCatch(-smooth(theta), error = function(e) 1e10)
    if (is.finite(value)) value else 1e10
  }
  set.seed(match(name, names(PROBLEMS)) + 900)
  peak <- optim(rep(0, l$d), safe, method = "BFGS", control = list(maxit = 100), hessian = TRUE)
  parts <- eigen(peak$hessian, symmetric = TRUE)
  root <- chol(parts$vectors %*% (t(parts$vectors) / pmax(parts$values, 0.1)))
  centre <- peak$par
  large <- nrow(d) > 1000
  few <- if (large) 60 else 400
  for (power in if (large) 1 else c(0.5, 1, 1)) {
    now <- t_sampling(target, centre, 1.2 * root, few)
    weight <- now$weight^power / sum(now$weight^power)
    if (large) break
    centre <- colSums(weight * now$theta)
    away <- now$theta - rep(centre, each = few)
    root <- tryCatch(chol(crossprod(away * sqrt(weight))), error = function(e) root)
  }
  draws <- if (large) 500 else if (normal || one) 6000 else 4000
  now <- t_sampling(target, centre, 1.1 * root, draws)
  data.frame(problem = name, parameters = l$d, rows = nrow(d), draws = draws, truth = now$value,
             truth_se = now$se, share_used = now$ess / draws)
}

append_rows <- function(found, file) {
  new <- !file.exists(file)
  write.table(format(found, digits = 10, trim = TRUE), file, append = !new, sep = ",",
              row.names = FALSE, col.names = new, quote = FALSE)
}

references <- function(names) {
  known <- if (file.exists(REFERENCES)) read.csv(REFERENCES)$problem
  for (name in setdiff(names, known)) {
    seconds <- system.time(found <- reference(name))[["elapsed"]]
    append_rows(cbind(found, seconds = round(seconds, 1)), REFERENCES)
    cat(format(Sys.time(), "%H:%M:%S"), name, found$truth, found$truth_se, found$share_used, "\n")
  }
}

# Fits --------------------------------------------------------------------------------------------

run <- function(seeds, names, file) {
  done <- if (file.exists(file)) read.csv(file, strip.white = TRUE)
  known <- paste(done$problem, done$seed)
  for (name in names) {
    model <- model_of(PROBLEMS[[name]])
    d <- make_data(name)
    for (seed in seq_len(seeds)) {
      if (paste(name, seed) %in% known) next
      seconds <- system.time(fit <- suppressWarnings(
        evidence(model, d, seed = seed, threads = 1)))[["elapsed"]]
      append_rows(data.frame(problem = name, seed = seed, log_evidence = fit$log_evidence,
                             se = fit$se, source = fit$source,
                             warnings = length(setdiff(fit$warnings, fit$prior_conflict)),
                             seconds = seconds), file)
    }
  }
}

report <- function(file) {
  all <- merge(read.csv(file, strip.white = TRUE), read.csv(REFERENCES)[c("problem", "truth",
                                                                          "truth_se")])
  all$error <- all$log_evidence - all$truth
  all$z <- all$error / sqrt(all$se^2 + all$truth_se^2)
  table <- do.call(rbind, lapply(intersect(names(PROBLEMS), all$problem), function(name) {
    d <- all[all$problem == name, ]
    silent <- d$warnings == 0
    data.frame(problem = name, seeds = nrow(d), truth = d$truth[1], truth_se = d$truth_se[1],
               mean_error = mean(d$error), sd = sd(d$error), stated = mean(d$se),
               within_2 = mean(abs(d$z) < 2), within_4 = mean(abs(d$z) < 4),
               silent_0.3 = mean(silent & abs(d$error) > 0.3), warned = mean(!silent),
               false_alarms = mean(!silent & abs(d$error) < 0.1),
               audit = mean(d$source == "audit"), seconds = median(d$seconds))
  }))
  options(width = 200)
  print(format(table, digits = 2, nsmall = 2, scientific = FALSE), row.names = FALSE)
  cat("\nAll: ", nrow(all), " runs; within 2 errors ", format(mean(abs(all$z) < 2), digits = 3),
      ", within 4 ", format(mean(abs(all$z) < 4), digits = 4), "; silent errors above 1 nat: ",
      sum(all$warnings == 0 & abs(all$error) > 1), "\n", sep = "")
  invisible(table)
}

# The rules of integration -------------------------------------------------------------------------

# What a finer rule changes in the log evidence, from draws of the posterior; and for random points
# how much this varies between `seeds` of the points.
rules <- function(names, draws = 100, seeds = 20) {
  internal <- asNamespace("logevidence")
  table <- lapply(names, function(name) {
    p <- PROBLEMS[[name]]
    model <- model_of(p)
    d <- make_data(name)
    encoded <- internal$encode(model, d)
    q <- sum(encoded$args$effects)
    if (is.null(encoded$args$nodes) || p$family == "gaussian" && !p$on_sigma) return(NULL)
    fit <- suppressWarnings(evidence(model, d, seed = 1, threads = 1))
    set.seed(1)
    use <- sample(nrow(fit$parameters), draws, TRUE, exp(fit$log_weights))
    theta <- t(unname(fit$parameters[use, , drop = FALSE]))
    log_lik <- function(...) {
      own <- encoded
      own$args <- utils::modifyList(own$args, list(...))
      as.vector(internal$model_caller(model, own)("log_lik", theta, list()))
    }
    base <- log_lik()
    change <- function(...) log(mean(exp(log_lik(...) - base)))
    found <- if (encoded$args$nodes > 0)
      c(finer = change(nodes = 2 * encoded$args$nodes + 1), wide = if (q == 1)
        change(outer_share = 0) else NA, sd = NA)
    else {
      long <- change(draws = 5000, rule_seed = 1e6)
      c(finer = long, wide = NA,
        sd = sd(vapply(as.double(seq_len(seeds)), function(s) change(rule_seed = s), 0)))
    }
    own <- if (one_effect(p)) {
      grid <- by_grid(p, layout(p), d)
      log(mean(exp(apply(theta, 2, grid) - base)))
    } else NA
    data.frame(problem = name, nodes = encoded$args$nodes, finer_rule = found[["finer"]],
               wide_rule = found[["wide"]], plain_r = own, sd_of_points = found[["sd"]],
               removed = fit$correction[["log_evidence"]], stated = fit$correction[["se"]])
  })
  print(format(do.call(rbind, table), digits = 2, scientific = FALSE), row.names = FALSE)
}

given <- commandArgs(TRUE)
argument <- function(k, default) if (length(given) >= k) given[k] else default
problems_from <- function(text) if (text == "all") names(PROBLEMS) else strsplit(text, ",")[[1]]
if (argument(1, "report") == "references") {
  references(problems_from(argument(2, "all")))
} else if (given[1] == "run") {
  run(as.integer(argument(2, "40")), problems_from(argument(3, "all")), argument(4, RESULTS))
} else if (argument(1, "report") == "rules") {
  rules(problems_from(argument(2, "all")))
} else if (argument(1, "report") == "report") {
  report(argument(2, RESULTS))
} else {
  stop("`", given[1], "` must be `references`, `run`, `rules` or `report`.")
}

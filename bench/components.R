# How good is the evidence of mixtures with more components than clusters? Five data sets, as they
# come and scaled, with one to eight components, against references of another kind.
#
#   Rscript bench/components.R reference   # writes results/components-reference.csv, 1 h
#   Rscript bench/components.R run [seeds] # writes results/components.csv, 4 min for a seed
#   Rscript bench/components.R unseen [seeds] # writes results/components-unseen.csv, as long
#   Rscript bench/components.R published   # the galaxies with a published prior
#
# References: a label sampler in plain R and dual importance sampling (Lee and Robert 2016) for two
# and three components, and four where its weights are even, which share no code with the package;
# and from there on long runs of partitions(), added to these. They are compared with long runs that
# begin at the closed form for one component. Both without the package's own dual importance
# sampling.

suppressPackageStartupMessages(library(logevidence))
results <- "bench/results"

acidity_like <- function() {
  set.seed(155)
  high <- runif(155) < 0.4
  matrix(rnorm(155, ifelse(high, 6.25, 4.33), ifelse(high, 0.54, 0.38)))
}

data_sets <- function() {
  raw <- list(galaxies = matrix(MASS::galaxies / 1000), faithful = as.matrix(faithful),
              iris = as.matrix(iris[1:4]), precip = matrix(precip), acidity = acidity_like())
  plain <- function(x) matrix(as.numeric(x), nrow(x))
  c(lapply(raw, plain), setNames(lapply(raw, function(x) plain(scale(x))),
                                 paste(names(raw), "scaled")))
}

model_of <- function(x, components)
  gaussian_mixture(components = components, location = colMeans(x), rate = 1)

# Dual importance sampling -------------------------------------------------------------------------

PRIOR <- list(count = 1 / 4, shape = 1, rate = 1) # mean_scale 2

block_of <- function(y, location) {
  n <- nrow(y)
  count <- PRIOR$count + n
  sums <- colSums(y)
  centre <- (PRIOR$count * location + sums) / count
  rate <- PRIOR$rate + 0.5 * (colSums(y^2) + PRIOR$count * location^2 - count * centre^2)
  list(n = n, count = count, centre = centre, shape = PRIOR$shape + n / 2, rate = rate)
}

draw_block <- function(b) {
  variance <- b$rate / rgamma(length(b$rate), b$shape)
  list(mean = rnorm(length(b$rate), b$centre, sqrt(variance / b$count)), variance = variance)
}

# Parameters of all components: lists of matrices, a column for each component.
draw_given <- function(y, z, k, location) {
  blocks <- lapply(seq_len(k), function(c) block_of(y[z == c, , drop = FALSE], location))
  drawn <- lapply(blocks, draw_block)
  w <- rgamma(k, 1 + vapply(blocks, `[[`, 0, "n"))
  list(blocks = blocks, mean = vapply(drawn, `[[`, location, "mean"),
       variance = vapply(drawn, `[[`, location, "variance"), w = w / sum(w))
}

log_components <- function(y, theta, k) {
  mean <- matrix(theta$mean, ncol(y))
  variance <- matrix(theta$variance, ncol(y))
  vapply(seq_len(k), function(c) log(theta$w[c]) - 0.5 * sum(log(2 * pi * variance[, c])) -
           0.5 * colSums((t(y) - mean[, c])^2 / variance[, c]), numeric(nrow(y)))
}

log_sum <- function(x) {
  top <- do.call(pmax, as.data.frame(x))
  top + log(rowSums(exp(x - top)))
}

permutations <- function(k) {
  if (k == 1) return(matrix(1, 1, 1))
  smaller <- permutations(k - 1)
  do.call(rbind, lapply(seq_len(k), function(i) cbind(i, smaller + (smaller >= i))))
}

# Blocks of kept divisions, from several chains.
kept_blocks <- function(y, k, location, chains, sweeps, kept) {
  blocks <- list()
  for (chain in seq_len(chains)) {
    z <- kmeans(y, k)$cluster
    for (s in seq_len(sweeps)) {
      theta <- draw_given(y, z, k, location)
      each <- log_components(y, theta, k)
      z <- max.col(each - log(-log(matrix(runif(length(each)), nrow(each)))), "first")
      if (s > sweeps / 5 && s %% ((4 * sweeps * chains) %/% (5 * kept)) == 0)
        blocks <- c(blocks, list(draw_given(y, z, k, location)$blocks))
    }
  }
  blocks
}

# log density of component c of each point given block l of each division: a matrix for each l of
# each c.
log_pairs <- function(points, blocks, y, k) {
  part <- function(name, c, j) vapply(points, function(p) matrix(p[[name]], ncol(y))[j, c], 0)
  lapply(seq_len(k), function(c) lapply(seq_len(k), function(l) {
    own <- function(name, j = 1) vapply(blocks, function(b) b[[l]][[name]][j], 0)
    weight <- vapply(points, function(p) log(p$w[c]), 0)
    value <- outer(weight, own("n"))
    for (j in seq_len(ncol(y))) {
      m <- part("mean", c, j)
      v <- part("variance", c, j)
      shape <- own("shape")
      rate <- own("rate", j)
      count <- own("count")
      value <- value - outer(log(v), shape + 1.5) - outer(1 / v, rate) -
        0.5 * outer(m^2 / v, count) + outer(m / v, count * own("centre", j)) -
        0.5 * outer(1 / v, count * own("centre", j)^2) +
        rep(shape * log(rate) - lgamma(shape) + 0.5 * log(count / (2 * pi)), each = length(points))
    }
    value
  }))
}

# The estimate, its standard error and the effective size as a share of the draws.
dual <- function(y, k, location, chains = 10, sweeps = 1500, kept = 2000, draws = 12000) {
  y <- sweep(y, 2, location)
  location <- rep(0, ncol(y))
  blocks <- kept_blocks(y, k, location, chains, sweeps, kept)
  points <- lapply(sample(length(blocks), draws, TRUE), function(j) {
    drawn <- lapply(blocks[[j]], draw_block)
    w <- rgamma(k, 1 + vapply(blocks[[j]], `[[`, 0, "n"))
    list(mean = vapply(drawn, `[[`, location, "mean"),
         variance = vapply(drawn, `[[`, location, "variance"), w = w / sum(w))
  })
  n <- nrow(y)
  orders <- permutations(k)
  # some divisions at a time, for the memory
  log_q <- log_sum(vapply(split(blocks, ceiling(seq_along(blocks) / 50)), function(some) {
    pairs <- log_pairs(points, some, y, k)
    constant <- vapply(some, function(b) lgamma(n + k) - sum(lgamma(vapply(b, `[[`, 0, "n") + 1)),
                       0)
    log_sum(do.call(cbind, lapply(seq_len(nrow(orders)), function(i) {
      each <- Reduce(`+`, lapply(seq_len(k), function(c) pairs[[c]][[orders[i, c]]]))
      log_sum(each + rep(constant, each = draws))
    })))
  }, numeric(draws))) - log(length(blocks)) - lfactorial(k)
  log_p <- vapply(points, function(p) {
    prior <- lgamma(k) + sum(dnorm(p$mean, 0, sqrt(p$variance / PRIOR$count), log = TRUE) +
                               PRIOR$shape * log(PRIOR$rate) - lgamma(PRIOR$shape) -
                               (PRIOR$shape + 1) * log(p$variance) - PRIOR$rate / p$variance)
    prior + sum(log_sum(log_components(y, p, k)))
  }, 0)
  ratio <- log_p - log_q
  weight <- exp(ratio - max(ratio))
  c(max(ratio) + log(mean(weight)), sd(weight) / mean(weight) / sqrt(draws),
    sum(weight)^2 / sum(weight^2) / draws)
}

EVEN <- 0.4 # effective size, as a share of the draws, from which dual importance sampling is used

# For one data set. Two and three components are always independent.
reference_of <- function(name) {
  x <- data_sets()[[name]]
  set.seed(1)
  own <- matrix(0, 3, 4)
  for (k in 2:4) {
    own[, k] <- dual(x, k, colMeans(x))
    if (own[3, k] < EVEN) break
  }
  most <- max(3, which(own[3, ] >= EVEN))
  # chains alone, without the importance sampling of the package
  from <- function(anchor, seed) {
    method <- logevidence:::with_settings(partitions(anchor, chains = 16, work = 1e9), dual = 0)
    suppressWarnings(evidence(model_of(x, 8), x, method, seed = seed))$partitions$ladder
  }
  closed <- from(1, 101)
  above <- from(most, 103)
  rise <- (above$log_evidence - above$log_evidence[1])[-1]
  rise_se <- sqrt(pmax(above$se^2 - above$se[1]^2, 0))[-1]
  one <- logml(evidence(model_of(x, 1), x, exact()))
  at <- 2:most
  row <- data.frame(data = name, components = 1:8,
                    log_evidence = c(one, own[1, at], own[1, most] + rise),
                    se = c(0, own[2, at], sqrt(own[2, most]^2 + rise_se^2)),
                    from_one = closed$log_evidence, from_one_se = closed$se,
                    trips = c(rep(NA, most), above$trips[-1]))
  row$apart <- (row$from_one - row$log_evidence) / sqrt(row$se^2 + row$from_one_se^2)
  print(row, digits = 6)
  row
}

reference <- function() {
  table <- do.call(rbind, parallel::mclapply(names(data_sets()), reference_of,
                                             mc.preschedule = FALSE))
  write.csv(format(table, digits = 8), file.path(results, "components-reference.csv"),
            row.names = FALSE, quote = FALSE)
}

# The mean of the two references for each data set and number of components, by their precisions.
best_reference <- function() {
  known <- read.csv(file.path(results, "components-reference.csv"), strip.white = TRUE)
  more <- known$components > 1 # one is exact
  share <- with(known[more, ], from_one_se^2 / (se^2 + from_one_se^2)) # of the first
  known$log_evidence[more] <- with(known[more, ], share * log_evidence + (1 - share) * from_one)
  known$se[more] <- with(known[more, ], 1 / sqrt(1 / se^2 + 1 / from_one_se^2))
  known
}

muted <- function(expr) suppressWarnings(expr, classes = "logevidence_warning")

# One row for a number of components; `own` is its reference, `cpu` the time of the call.
row_of <- function(fit, own, seed, together, cpu)
  data.frame(data = own$data, components = own$components, seed = seed, together = together,
             log_evidence = fit$log_evidence, se = fit$se, source = fit$source,
             anchor = if (is.null(fit$partitions)) NA else fit$partitions$anchor$components,
             error = fit$log_evidence - own$log_evidence, reference_se = own$se,
             warned = length(fit$warnings), prior = length(fit$prior_conflict),
             failed = length(fit$failed), cpu = round(cpu, 2))

# All numbers from 1 to 8: one call for each of them, and one call for all.
run_one <- function(x, own, seed) {
  alone <- lapply(2:8, function(k) {
    cpu <- system.time(fit <- muted(evidence(model_of(x, k), x, seed = seed)))
    row_of(fit, own[k, ], seed, FALSE, sum(cpu[1:2]))
  })
  cpu <- system.time(all <- muted(evidence(model_of(x, 1:8), x, seed = seed)))
  fits <- attr(all, "fits")[all$model[match(2:8, all$components)]]
  do.call(rbind, c(alone, Map(row_of, fits, split(own[2:8, ], 2:8), seed, TRUE,
                              sum(cpu[1:2]) / 8)))
}

run <- function(seeds) {
  known <- best_reference()
  sets <- data_sets()
  cells <- expand.grid(seed = seq_len(seeds), data = names(sets), stringsAsFactors = FALSE)
  found <- parallel::mclapply(seq_len(nrow(cells)), function(i) {
    name <- cells$data[i]
    run_one(sets[[name]], known[known$data == name, ], cells$seed[i])
  }, mc.preschedule = FALSE)
  table <- do.call(rbind, found)
  write.csv(format(table, digits = 6), file.path(results, "components.csv"), row.names = FALSE,
            quote = FALSE)
  report(table)
}

# The lines of the table of bench/README.md.
report_lines <- function(table) {
  table$z2 <- table$error^2 / (table$se^2 + table$reference_se^2)
  line <- function(t, name) sprintf(
    "| %s | %d | %.3f | %.3f | %.0f%% | %.3f | %.2f | %.0f%% | %d | %.2f | %.1f |", name, nrow(t),
    mean(t$error), max(abs(t$error)), 100 * mean(abs(t$error) < 0.1), stats::median(t$se),
    mean(t$z2), 100 * mean(t$z2 < 4), sum(t$warned > t$prior), stats::median(t$cpu), max(t$cpu))
  together <- table[table$together, ]
  table <- table[!table$together, ]
  parts <- split(table, factor(table$data, unique(table$data)))
  ladder <- table$source == "partitions"
  c(paste("| data | runs | mean error | largest | below 0.1 | stated | z^2 | within 2 | warned |",
          "s | most |"),
    "|---|---|---|---|---|---|---|---|---|---|---|", unlist(Map(line, parts, names(parts))),
    line(table[ladder, ], "all by partitions"), line(table[!ladder, ], "all others"),
    line(together, "one call for 1 to 8"))
}

report <- function(table) writeLines(report_lines(table))

# How well the part of the posterior that no chain has visited is estimated: what dual importance
# sampling misses without it, by the part where only one chain has been.
unseen <- function(seeds) {
  known <- best_reference()
  sets <- data_sets()
  cells <- expand.grid(seed = seq_len(seeds), components = 5:8, data = names(sets),
                       stringsAsFactors = FALSE)
  found <- parallel::mclapply(seq_len(nrow(cells)), function(i) {
    cell <- cells[i, ]
    x <- sets[[cell$data]]
    fit <- muted(evidence(model_of(x, cell$components), x, partitions(), seed = cell$seed))
    anchors <- fit$partitions$anchors[-1, ]
    own <- known[known$data == cell$data, ][anchors$components, ]
    data.frame(cell[rep(1, nrow(anchors)), ], anchor = anchors$components,
               alone = sqrt(2 * anchors$unseen), error = anchors$log_evidence - own$log_evidence,
               se = anchors$se, reference_se = own$se)
  }, mc.preschedule = FALSE)
  table <- do.call(rbind, found)
  write.csv(format(table, digits = 6), file.path(results, "components-unseen.csv"),
            row.names = FALSE, quote = FALSE)
  writeLines(unseen_lines(table))
}

unseen_lines <- function(table) {
  table$added <- table$alone^2 / 2
  table$z2 <- table$error^2 / (table$se^2 + table$reference_se^2)
  parts <- split(table, cut(table$alone, c(-1, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 1)))
  vapply(parts, function(t) sprintf("| %.2f | %d | %.3f | %.3f | %.2f |", max(t$alone), nrow(t),
                                    mean(t$added - t$error), mean(t$added), mean(t$z2)), "",
         USE.NAMES = FALSE)
}

published <- function() {
  y <- MASS::galaxies
  y[y == 26960] <- 26690 # a known error of the data set
  y <- y / 1000
  model <- gaussian_mixture(components = c(3, 5, 6, 8), location = mean(y), shape = 1.28,
                            mean_scale = sqrt(diff(range(y)) / 2.6), rate = 0.36 * var(y))
  for (seed in 1:8)
    print(as.data.frame(evidence(model, y, seed = seed))[c("components", "log_evidence", "se")],
          digits = 6)
}

arguments <- commandArgs(TRUE)
switch(arguments[1], reference = reference(),
       run = run(if (length(arguments) > 1) as.numeric(arguments[2]) else 6),
       report = report(read.csv(file.path(results, "components.csv"), strip.white = TRUE)),
       unseen = unseen(if (length(arguments) > 1) as.numeric(arguments[2]) else 2),
       published = published())

# Geweke's joint distribution test, drawn as P-P plots: what is asked of parameters, latents and data has one law whether
# they are drawn forwards (marginal) or moved in turn, the data anew given parameters and latents, those by the sampler
# given the data (conditional).  Here for the sweeps of models with latent variables and the kernels of all others; the
# tests take short runs, bench/geweke.R draws long ones.

#' The functions of a latent model on states, as C has them; each call has its own seed
latent_door <- function(type, args, width, n, seed = 1) {
  args <- lapply(c(list(width = width), args), as.double)
  blank <- matrix(0, width, n)
  calls <- 0
  function(what, state = NULL, rows = blank, seen = n, lambda = 1, backwards = FALSE) {
    calls <<- calls + 1
    .Call(ffi_latent, type, args, rows, what, state, list(seen = as.double(seen), lambda = as.double(lambda),
                                                          backwards = backwards, to = NULL, seed = c(seed, calls)))
  }
}

# The models: numbers of rows and columns small enough for data to leave much open, statistics of the settings (where these
# are unknown), of latents, of data, and of both together.  Means of labels or signs of factors are not identified, but
# their laws are no less known for that.
latent_cases <- local({
  unknown <- list(infer = 1, shape = 5, scale = 5)
  together <- function(rows) sum(rows[, 1] * rows[, 2])
  of_data <- function(rows) c(`one number` = rows[1, 1], `mean` = mean(rows), `squares` = sum(rows^2), `two rows` = together(rows))
  list(
    clustering = list(
      type = "clustering", n = 5, width = 2, noise = 2, thin = 6,
      known = list(components = 3, proportions = c(0.5, 0.3, 0.2), prior_sd = 1.3, noise_sd = 0.8),
      inferred = c(list(components = 3), unknown),
      settings = function(state) c(`var of centres` = state[1], `var of noise` = state[2], `proportion` = state[3]),
      latents = function(state, rows) {
        label <- state[5 + 1:5]
        alike <- outer(label, label, `==`)
        c(`in cluster 1` = sum(label == 0), `pairs together` = sum(alike), `pairs by products` = sum(alike * crossprod(rows)))
      }, data = of_data
    ),
    low_rank = list(
      type = "low_rank", n = 5, width = 3, noise = 3, thin = 12,
      known = list(rank = 2, row_sd = 1.2, prior_sd = 0.9, noise_sd = 0.8),
      inferred = c(list(rank = 2), unknown),
      settings = function(state) c(`var of u` = state[1], `var of v` = state[2], `var of noise` = state[3]),
      latents = function(state, rows) {
        v <- matrix(state[3 + 1:6], 2, byrow = TRUE)
        u <- matrix(state[9 + 1:10], 5, byrow = TRUE)
        product <- u %*% v
        c(`one of u` = u[1, 1], `one of v` = v[1, 1], `squares of u` = sum(u^2), `squares of v` = sum(v^2),
          `one of uv` = product[1, 1], `residuals` = sum((t(rows) - product)^2))
      }, data = of_data
    ),
    binary_attributes = list(
      type = "binary_attributes", n = 5, width = 2, noise = 2, thin = 6,
      known = list(attributes = 2, probabilities = c(0.3, 0.6), prior_sd = 1.3, noise_sd = 0.8),
      inferred = c(list(attributes = 2), unknown),
      settings = function(state) c(`var of features` = state[1], `var of noise` = state[2], `probability` = state[3]),
      latents = function(state, rows) {
        z <- matrix(state[4 + 1:10], 5, byrow = TRUE)
        c(`with the first` = sum(z[, 1]), `with both` = sum(z[, 1] * z[, 2]),
          `shared by products` = sum(tcrossprod(z) * crossprod(rows)))
      }, data = of_data
    )
  )
})

#' A latent model's joint distribution of state and data at lambda, and what moves along it
#'
#' Given a state and the parameters that it leaves out, a row's likelihood to the power lambda is a normal density of
#' variance noise / lambda, times noise^((1 - lambda) / 2) for each number and a constant. An inverse-gamma prior
#' of the noise variance takes the factor in: its shape falls by (1 - lambda) / 2 for each number of the data.
#'
#' @param broken What the sweep, wrongly, takes for granted: a list of `lambda`, of `seen` rows, of `args`, or of `state`, a
#'   function of the state it is given (what is changed is put back where sweeps leave it alone); and `prior = TRUE` where
#'   the noise has its prior after all.
latent_joint <- function(case, known, lambda = 1, backwards = FALSE, broken = list(), seed = 1) {
  args <- if (known) case$known else case$inferred
  believed <- args
  believed[names(broken$args)] <- broken$args
  n <- case$n
  ask <- latent_door(case$type, args, case$width, n, seed)
  moves <- latent_door(case$type, believed, case$width, n, seed + 1e6)
  shape <- args$shape - if (isTRUE(broken$prior)) 0 else (1 - lambda) / 2 * n * case$width
  if (!known) stopifnot(shape > 0)
  believe <- list(lambda = lambda, seen = n)
  believe[names(broken)] <- broken
  list(
    state = function() {
      state <- ask("start")$state
      if (!known) state[case$noise] <- args$scale / stats::rgamma(1, shape)
      for (i in seq_len(n)) state <- ask("extend_blind", state, seen = i - 1)$state
      state
    },
    data = function(state) {
      state[case$noise] <- state[case$noise] / lambda
      ask("simulate", state)$rows
    },
    move = function(state, rows) {
      from <- if (is.null(broken$state)) state else broken$state(state)
      moved <- moves("sweep", from, rows, seen = believe$seen, lambda = believe$lambda, backwards = backwards)$state
      if (known) moved[seq_len(case$noise)] <- state[seq_len(case$noise)]
      moved
    },
    look = function(state, rows) c(if (!known) case$settings(state), case$latents(state, rows), case$data(rows))
  )
}

#' Statistics of independent draws: a row for each
marginal_draws <- function(joint, draws, seed = 1) with_own_seed(test_seed(seed), {
  do.call(rbind, lapply(seq_len(draws), function(i) {
    state <- joint$state()
    joint$look(state, joint$data(state))
  }))
})

#' Statistics along a few long chains, of which each `thin`-th turn is kept
conditional_draws <- function(joint, draws, thin, chains = 4, seed = 1) with_own_seed(test_seed(seed), {
  kept <- vector("list", draws)
  for (i in seq_len(draws)) {
    if ((i - 1) %% (draws / chains) == 0) state <- joint$state()
    for (turn in seq_len(thin)) {
      rows <- joint$data(state)
      state <- joint$move(state, rows)
    }
    kept[[i]] <- joint$look(state, rows)
  }
  do.call(rbind, kept)
})

#' The P-P plot of two samples: both distribution functions at every value seen
pp_curve <- function(a, b) {
  at <- sort(unique(c(a, b)))
  list(a = findInterval(at, sort(a)) / length(a), b = findInterval(at, sort(b)) / length(b))
}
pp_deviation <- function(a, b) {
  curve <- pp_curve(a, b)
  max(abs(curve$a - curve$b))
}

#' What thinned draws are worth: ranks, as the plot knows no other scale, and their correlations while those stay above 0.05
thinned_worth <- function(x, chains = 4) {
  of_one <- matrix(rank(x), ncol = chains)
  lags <- apply(of_one, 2, function(y) stats::acf(y, lag.max = 20, plot = FALSE)$acf[-1])
  mean <- rowMeans(lags)
  length(x) / (1 + 2 * sum(mean[cumprod(mean > 0.05) == 1]))
}

#' The largest deviation that chance allows in one of so many comparisons: Smirnov's asymptotic tail
pp_bound <- function(n_a, n_b, comparisons, alpha = 1e-3) sqrt(log(2 * comparisons / alpha) / 2 * (1 / n_a + 1 / n_b))

#' A row for each statistic: its greatest deviation and what chance allows
pp_table <- function(marginal, conditional, chains = 4, comparisons = ncol(marginal), alpha = 1e-3) {
  deviation <- vapply(seq_len(ncol(marginal)), function(j) pp_deviation(marginal[, j], conditional[, j]), 0)
  worth <- apply(conditional, 2, thinned_worth, chains = chains)
  data.frame(statistic = colnames(marginal), deviation = deviation, worth = worth,
             bound = pp_bound(nrow(marginal), worth, comparisons, alpha))
}

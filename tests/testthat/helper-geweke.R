# Geweke's joint distribution test, drawn as P-P plots: what is asked of parameters, latents and
# data has one law whether they are drawn forwards (marginal) or moved in turn, the data anew given
# parameters and latents, those by the sampler given the data (conditional). Here for the sweeps of
# models with latent variables and the kernels of all others; the tests take short runs,
# bench/geweke.R draws long ones.

#' The functions of a latent model on states, as C has them; each call has its own seed
latent_door <- function(type, args, width, n, seed = 1) {
  args <- lapply(c(list(width = width), args), as.double)
  blank <- matrix(0, width, n)
  calls <- 0
  function(what, state = NULL, rows = blank, seen = n, lambda = 1, backwards = FALSE) {
    calls <<- calls + 1
    answer <- .Call(ffi_model, type, args, rows, paste0("state_", what), state,
                    list(seen = seen, lambda = lambda, backwards = backwards,
                         seed = c(seed, calls)))
    list(value = answer$value, state = answer$theta, rows = answer$first)
  }
}

# The models: numbers of rows and columns large enough for data to inform, small enough for a noise
# variance to stay proper at lambda = 0.5; statistics of the settings (where these are unknown), of
# latents, of data, and of both together. Means of labels or signs of factors are not identified,
# but their laws are no less known for that.
latent_cases <- local({
  unknown <- list(infer = 1, shape = 5, scale = 5)
  together <- function(rows) sum(rows[, 1] * rows[, 2])
  of_data <- function(rows) c(`one number` = rows[1, 1], `mean` = mean(rows),
                              `squares` = sum(rows^2), `two rows` = together(rows))
  list(
    clustering = list(
      type = "clustering", n = 5, width = 3, noise = 2, thin = c(known = 2, inferred = 6),
      known = list(components = 3, proportions = c(0.5, 0.3, 0.2), prior_sd = 1.3, noise_sd = 0.8),
      inferred = c(list(components = 3), unknown),
      settings = function(state)
        c(`var of centres` = state[1], `var of noise` = state[2], `proportion` = state[3]),
      latents = function(state, rows) {
        label <- state[5 + 1:5]
        alike <- outer(label, label, `==`)
        c(`in cluster 1` = sum(label == 0), `in use` = length(unique(label)),
          `pairs together` = sum(alike), `pairs by products` = sum(alike * crossprod(rows)))
      }, data = of_data
    ),
    low_rank = list(
      type = "low_rank", n = 5, width = 3, noise = 3, thin = c(known = 10, inferred = 12),
      known = list(rank = 2, row_sd = 1.2, prior_sd = 0.9, noise_sd = 0.8),
      inferred = c(list(rank = 2), unknown),
      settings = function(state)
        c(`var of u` = state[1], `var of v` = state[2], `var of noise` = state[3]),
      latents = function(state, rows) {
        v <- matrix(state[3 + 1:6], 2, byrow = TRUE)
        u <- matrix(state[9 + 1:10], 5, byrow = TRUE)
        product <- u %*% v
        c(`one of u` = u[1, 1], `one of v` = v[1, 1], `squares of u` = sum(u^2),
          `squares of v` = sum(v^2),
          `one of uv` = product[1, 1], `residuals` = sum((t(rows) - product)^2))
      }, data = of_data
    ),
    binary_attributes = list(
      type = "binary_attributes", n = 5, width = 3, noise = 2, thin = c(known = 2, inferred = 6),
      known = list(attributes = 2, probabilities = c(0.3, 0.6), prior_sd = 1.3, noise_sd = 0.8),
      inferred = c(list(attributes = 2), unknown),
      settings = function(state)
        c(`var of features` = state[1], `var of noise` = state[2], `probability` = state[3]),
      latents = function(state, rows) {
        z <- matrix(state[4 + 1:10], 5, byrow = TRUE)
        c(`with the first` = sum(z[, 1]), `with both` = sum(z[, 1] * z[, 2]),
          # between 0 and 2: how far both say something, and not the same
          `directions` = 2 - sum(diag(solve(2 * crossprod(z) + diag(2)))),
          `shared by products` = sum(tcrossprod(z) * crossprod(rows)))
      }, data = of_data
    )
  )
})

#' A latent model's joint distribution of state and data at lambda, and what moves along it
#'
#' Given a state and the parameters that it leaves out, a row's likelihood to the power lambda is a
#' normal density of variance noise / lambda, times noise^((1 - lambda) / 2) for each number and a
#' constant. An inverse-gamma prior of the noise variance takes the factor in: its shape falls by (1
#' - lambda) / 2 for each number of the data.
#'
#' @param broken What the sweep, wrongly, takes for granted: a list of `lambda`, of `seen` rows,
#'   of `args`, or of `state`, a function of the state it is given (what is changed is put back
#'   where sweeps leave it alone); and `prior = TRUE` where the noise has its prior after all.
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
    thin = case$thin[[if (known) "known" else "inferred"]],
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
      moved <- moves("sweep", from, rows, seen = believe$seen, lambda = believe$lambda,
                     backwards = backwards)$state
      if (known) moved[seq_len(case$noise)] <- state[seq_len(case$noise)]
      moved
    },
    look = function(state, rows)
      c(if (!known) case$settings(state), case$latents(state, rows), case$data(rows))
  )
}

#' Statistics of independent draws: a row for each
marginal_draws <- function(joint, draws, seed = 1) with_own_seed(test_seed(seed), {
  do.call(rbind, lapply(seq_len(draws), function(i) {
    state <- joint$state()
    joint$look(state, joint$data(state))
  }))
})

#' Statistics along a few long chains, of which one turn in `thin` is kept
conditional_draws <- function(joint, draws, chains = 4, seed = 1) with_own_seed(test_seed(seed), {
  kept <- vector("list", draws)
  for (i in seq_len(draws)) {
    if ((i - 1) %% (draws / chains) == 0) state <- joint$state()
    for (turn in seq_len(joint$thin)) {
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

#' What thinned draws are worth: ranks, as the plot knows no other scale, and their correlations
#' while those stay above 0.05
thinned_worth <- function(x, chains = 4) {
  of_one <- matrix(rank(x), ncol = chains)
  lags <- apply(of_one, 2, function(y) stats::acf(y, lag.max = 20, plot = FALSE)$acf[-1])
  mean <- rowMeans(lags)
  length(x) / (1 + 2 * sum(mean[cumprod(mean > 0.05) == 1]))
}

#' The largest deviation that chance allows in one of so many comparisons: Smirnov's asymptotic tail
pp_bound <- function(n_a, n_b, comparisons, alpha = 1e-3)
  sqrt(log(2 * comparisons / alpha) / 2 * (1 / n_a + 1 / n_b))

#' A row for each statistic: its greatest deviation and what chance allows
pp_table <- function(marginal, conditional, worth = apply(conditional, 2, thinned_worth),
                     alpha = 1e-3) {
  deviation <- vapply(seq_len(ncol(marginal)), function(j)
                        pp_deviation(marginal[, j], conditional[, j]), 0)
  data.frame(statistic = colnames(marginal), deviation = deviation, worth = worth,
             bound = pp_bound(nrow(marginal), worth, ncol(marginal), alpha))
}

# Kernels ------------------------------------------------------------------------------------------

#' Test functions before and after: parameters from the prior, data given them, then in turn a few
#' moves of the parameters given the data and fresh data given the parameters
#'
#' @param believed The model that the kernel takes for granted.
kernel_chains <- function(kernel, model, n, chains, turns = 3, moves = 4, seed = 1, lambda = 1,
                          seen = n, believed = model, functions, ...) {
  set.seed(test_seed(seed))
  covariates <- matrix(stats::rnorm(n * model$width), model$width)
  theta <- ask(model, "draw_prior", extra = list(n = chains, seed = words(seed)))
  fresh <- function(theta, s)
    ask(model, "simulate", theta, covariates, list(seed = c(test_seed(seed), s)))
  pairs <- lapply(seq_len(chains), function(i) {
    x <- theta[, i, drop = FALSE]
    y <- fresh(x, 100 * i)
    before <- functions(drop(x), y)
    for (turn in seq_len(turns)) {
      if (turn > 1) y <- fresh(x, 100 * i + turn)
      x <- run_kernel(kernel, believed, y, x, words = c(i, 10 * test_seed(seed) + turn),
                      moves = moves, seen = seen, lambda = lambda, ...)
      dim(x) <- c(model$dim, 1)
    }
    list(before, functions(drop(x), y))
  })
  list(before = do.call(rbind, lapply(pairs, `[[`, 1)),
       after = do.call(rbind, lapply(pairs, `[[`, 2)))
}

#' The models, what is looked at (bounded, as some priors have no variance), and steps that suit
#' them
kernel_cases <- function() {
  list(
    mean = list(
      model = mean_model(1, 0.5, 1.5), n = 3,
      functions = function(x, y)
        c(x, x^2, x * mean(y), mean(y)^2, stats::pnorm(x), (x - mean(y))^2),
      kernels = list(rwm(1), slice(4), hmc(3, 0.5), mala(0.8), baoab(0.15), sghmc(0.02, 0.1),
                     sghmc(0.02, 0.1, refresh = TRUE), sgld(0.02))
    ),
    linear = list(
      model = linear_model(2, 0.8, c(0, 1), c(1, 0.5)), n = 4,
      functions = function(x, y) {
        r <- y[3, ] - drop(x %*% y[1:2, ])
        c(x, x^2, x[1] * x[2], sum(r), sum(r^2), tanh(sum(r^2) / 3), x * y[3, 1])
      },
      kernels = list(rwm(0.4), slice(3), hmc(3, 0.3), mala(0.4), baoab(0.1), sghmc(0.01, 0.1),
                     sgld(0.01))
    ),
    softmax = list(
      model = softmax_model(2, 2), n = 3,
      functions = function(x, y) {
        # the last: how well the labels are explained
        c(x, x^2, x[1] * x[3], x * y[3, 1], x[1:2] * y[3, 2],
          sum(tanh(drop((x[3:4] - x[1:2]) %*% y[1:2, ]) * (2 * y[3, ] - 1))))
      },
      kernels = list(rwm(0.7), slice(3), hmc(3, 0.6), mala(0.7), baoab(0.15), sghmc(0.02, 0.1),
                     sgld(0.02))
    ),
    mixture = list(
      model = mixture_model(2, 1, shape = 4, rate = 4), n = 4,
      functions = function(x, y) {
        c(tanh(x), x[2:5]^2 / (1 + x[2:5]^2), tanh(x[2]) * tanh(x[3]), tanh(mean(y)),
          tanh(x[2] * mean(y)),
          tanh(x[4]) * tanh(stats::var(y[1, ])), tanh(x[1]) * tanh(x[2] * y[1, 1]))
      },
      kernels = list(rwm(0.4), slice(3), hmc(3, 0.25), mala(0.25), baoab(0.05), sghmc(0.004, 0.1),
                     sgld(0.004))
    )
  )
}

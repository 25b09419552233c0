# What do other packages and published methods give for the same evidence, and at what cost?
#
#   Rscript bench/rivals.R run [problems = linear,linear-large,logistic,mixture] [seeds] [rivals]
#   Rscript bench/rivals.R jzs      mtcars against BayesFactor and BAS
#   Rscript bench/rivals.R report   the tables of bench/README.md, from bench/results/rivals.csv
#
# Every run has its own process on one core, whose CPU time and growth of memory are recorded. An
# evaluation is one likelihood or one gradient of all rows for one set of parameters; a mini-batch
# counts as its share of the rows. Compiling a program of Stan or TMB is not counted, drawing from
# the posterior is.
#
# Needs rstan, TMB, bridgesampling and coda (Debian) and, from CRAN, thames, ernest and BAS; also
# BayesFactor (Debian). ernest also needs the vctrs of CRAN. thames, ernest, BayesFactor and BAS are
# left out if they are not installed. Three methods have no package for R and are
# here in plain R, from the formulas of their articles:
#
#   waste-free SMC        Dau, H.-D. and Chopin, N. (2022). Waste-free sequential Monte Carlo.
#                         Journal of the Royal Statistical Society B 84, 114-148.
#   persistent sampling   Karamanis, M. and Seljak, U. (2025). Persistent sampling: enhancing the
#                         efficiency of sequential Monte Carlo. Statistics and Computing 35.
#   subsampling SMC       Gunawan, D., Dang, K.-D., Quiroz, M., Kohn, R. and Tran, M.-N. (2020).
#                         Subsampling sequential Monte Carlo for static Bayesian models. Statistics
#                         and Computing 30, 1741-1758. Only its abstract was at hand; the formulas
#                         are as in a program that follows it (alexandra-frca/bayesianlearning on
#                         GitHub), and bench/README.md says what was chosen here.

suppressPackageStartupMessages(library(logevidence))

here <- dirname(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[1]))
FILE <- file.path(here, "results", "rivals.csv")
have <- function(package) requireNamespace(package, quietly = TRUE)
missing_rivals <- function(packages) {
  missing <- packages[!vapply(packages, have, NA)]
  if (length(missing))
    message("Left out, because they are not installed: ", paste(missing, collapse = ", "), ".")
}
log_sum_exp <- function(x) max(x) + log(sum(exp(x - max(x))))
log_mean_exp <- function(x) log_sum_exp(x) - log(length(x))

# Problems -----------------------------------------------------------------------------------------

regression_rows <- function(n, covariates, seed) {
  set.seed(seed)
  x <- matrix(rnorm(n * covariates), n, dimnames = list(NULL, paste0("x", seq_len(covariates))))
  w <- rnorm(covariates + 1)
  list(x = x, linear = as.vector(w[1] + x %*% w[-1]), noise = rnorm(n), chance = runif(n))
}

linear_problem <- function(n) function() {
  made <- regression_rows(n, 5, 1)
  data <- list(x = made$x, y = made$linear + made$noise)
  model <- linear_regression(sigma = 1, prior_sd = 1)
  # the covariance of all rows, I + X X', by its determinant and inverse
  x <- cbind(1, data$x)
  precision <- crossprod(x) + diag(6)
  xy <- crossprod(x, data$y)
  exact <- -n / 2 * log(2 * pi) - sum(log(diag(chol(precision)))) -
    (sum(data$y^2) - sum(xy * solve(precision, xy))) / 2
  list(model = model, data = data, design = x, response = data$y, logistic = 0,
       reference = c(exact, 0), stan = n < 1e4)
}

logistic_problem <- function() {
  made <- regression_rows(1000, 9, 2)
  data <- data.frame(made$x, y = as.integer(made$chance < plogis(made$linear)))
  model <- regression(y ~ ., family = binomial(), prior = normal(0, 1), intercept = normal(0, 1))
  x <- cbind(1, made$x)
  list(model = model, data = data, design = x, response = data$y, logistic = 1, stan = TRUE,
       reference = logistic_reference(x, data$y))
}

mixture_problem <- function() {
  set.seed(3)
  data <- data.frame(y = c(rnorm(200, -4), rnorm(200, 0, 0.7), rnorm(100, 4, 1.3)))
  model <- gaussian_mixture(~ y, components = 3, location = 0, rate = 1)
  list(model = model, data = data, stan = FALSE, reference = mixture_reference(data$y))
}

PROBLEMS <- list(linear = linear_problem(1e3), `linear-large` = linear_problem(1e5),
                 logistic = logistic_problem, mixture = mixture_problem)

# References in plain R ----------------------------------------------------------------------------

#' Log weights of draws from a t distribution around the peak of `joint`
#'
#' `images` are maps of parameter space onto itself that preserve volume and `joint`: the draws then
#' have the average of the t density over them.
#' @noRd
t_weights <- function(joint, start, draws, df = 8, images = list(identity)) {
  peak <- optim(start, function(v) -joint(matrix(v, 1)), method = "BFGS", hessian = TRUE,
                control = list(maxit = 500))
  root <- chol(peak$hessian)
  d <- length(start)
  z <- matrix(rnorm(draws * d), draws) / sqrt(rchisq(draws, df) / df)
  theta <- sweep(t(backsolve(root, t(z))), 2, peak$par, "+")
  t_density <- function(theta)
    lgamma((df + d) / 2) - lgamma(df / 2) - d / 2 * log(df * pi) + sum(log(diag(root))) -
      (df + d) / 2 * log1p(colSums((root %*% (t(theta) - peak$par))^2) / df)
  each <- vapply(images, function(image) t_density(image(theta)), numeric(draws))
  joint(theta) - apply(each, 1, log_mean_exp)
}

by_blocks <- function(blocks, weights) {
  all <- unlist(lapply(seq_len(blocks), function(k) weights()))
  ratio <- exp(all - max(all))
  c(log_mean_exp(all), sd(ratio) / mean(ratio) / sqrt(length(all)))
}

logistic_reference <- function(x, y) {
  joint <- function(theta) {
    eta <- x %*% t(theta)
    colSums(y * eta - pmax(eta, 0) - log1p(exp(-abs(eta)))) + rowSums(dnorm(theta, log = TRUE))
  }
  set.seed(11)
  by_blocks(30, function() t_weights(joint, numeric(ncol(x)), 2000, 15))
}

#' Three components, by the parameters of the package: log ratios of weights to the third, means
#' over two standard deviations, log variances
mixture_reference <- function(y) {
  joint <- function(theta) {
    log_w <- cbind(theta[, 1:2, drop = FALSE], 0)
    log_w <- log_w - log(rowSums(exp(log_w)))
    log_v <- theta[, 6:8, drop = FALSE]
    mean <- 2 * exp(log_v / 2) * theta[, 3:5, drop = FALSE]
    prior <- log(2) + rowSums(log_w) + rowSums(dnorm(theta[, 3:5, drop = FALSE], log = TRUE)) -
      rowSums(log_v + exp(-log_v))
    density <- lapply(1:3, function(k)
      exp(log_w[, k] - log_v[, k] / 2 - log(2 * pi) / 2 -
            exp(-log_v[, k]) / 2 * outer(mean[, k], y, "-")^2))
    prior + rowSums(log(density[[1]] + density[[2]] + density[[3]]))
  }
  permuted <- function(order) function(theta) {
    log_w <- cbind(theta[, 1:2, drop = FALSE], 0)[, order, drop = FALSE]
    cbind(log_w[, 1:2] - log_w[, 3], theta[, 2 + order], theta[, 5 + order])
  }
  orders <- list(1:3, c(1, 3, 2), c(2, 1, 3), c(2, 3, 1), c(3, 1, 2), c(3, 2, 1))
  set.seed(12)
  start <- c(0.7, 0.7, -2, 0, 1.6, 0, -0.7, 0.5)
  by_blocks(50, function() t_weights(joint, start, 2000, 8, lapply(orders, permuted)))
}

# The densities that rivals see, and how often they were asked -------------------------------------

counted <- function(problem) {
  f <- model_functions(problem$model, problem$data)
  calls <- 0
  log_lik <- function(theta) {
    calls <<- calls + nrow(theta)
    f$log_lik(theta)
  }
  list(dim = f$dim, names = f$names, log_symmetry = f$log_symmetry, draw_prior = f$draw_prior,
       log_prior = f$log_prior, log_lik = log_lik, calls = function() calls)
}

answer <- function(method, log_evidence, se = NA, evaluations = NA, cpu = NA)
  data.frame(method = method, log_evidence = log_evidence, se = se, evaluations = evaluations,
             cpu = cpu)

# This package -------------------------------------------------------------------------------------

own <- function(method, label) function(problem, seed) {
  fit <- evidence(problem$model, problem$data, method, seed = seed)
  asked <- sum(fit$work[c("likelihoods", "gradients")]) / fit$n
  answer(label, fit$log_evidence, if (length(fit$se)) fit$se else NA, asked)
}

# Draws, then an estimate from them ----------------------------------------------------------------

STAN <- "
data { int n; int d; matrix[n, d] x; vector[n] y; int<lower=0, upper=1> label[n]; int logistic; }
parameters { vector[d] beta; }
model {
  target += normal_lpdf(beta | 0, 1);
  if (logistic) target += bernoulli_logit_lpmf(label | x * beta);
  else target += normal_lpdf(y | x * beta, 1);
}"

PROGRAM <- file.path(tempdir(), "rivals.rds")
compile_stan <- function() {
  # Debian has the headers of Boost there
  if (!nzchar(system.file("include", package = "BH")))
    rstan::rstan_options(boost_lib = "/usr/include")
  saveRDS(rstan::stan_model(model_code = STAN), PROGRAM)
}

#' Four chains of a thousand draws: by Stan, or by Hamiltonian moves of this package; those of the
#' mixture are around one numbering of its components
draws_of <- function(problem, target, seed, program) {
  if (problem$stan) {
    y <- problem$response
    data <- list(n = length(y), d = ncol(problem$design), x = problem$design, y = y,
                 label = if (problem$logistic) y else integer(length(y)),
                 logistic = problem$logistic)
    fit <- rstan::sampling(program, data, chains = 4, iter = 1500, warmup = 500,
                           seed = seed, refresh = 0, cores = 1)
    path <- rstan::extract(fit, "beta", permuted = FALSE)
    leaps <- sum(vapply(rstan::get_sampler_params(fit), function(p) sum(p[, "n_leapfrog__"]), 0))
    chains <- lapply(1:4, function(k) `colnames<-`(path[, k, ], target$names))
    return(list(chains = chains, evaluations = leaps))
  }
  start <- evidence(problem$model, problem$data, seed = seed)$sampler$draws
  path <- kernel_path(problem$model, problem$data, hmc(leapfrog = 10), steps = 1000,
                      start = start[c(1, 26, 51, 76), ], tune = 200, scale = cov(start),
                      density = FALSE, seed = seed)
  chains <- lapply(unique(path$point), function(k)
    as.matrix(path[path$point == k & path$step > 0, target$names]))
  list(chains = chains, evaluations = 4 * 1200 * 10)
}

from_draws <- function(problem, seed) {
  target <- counted(problem)
  program <- NULL
  if (problem$stan) {
    program <- readRDS(PROGRAM)
    loadNamespace("rstan")
  }
  made_in <- sum(system.time(made <- draws_of(problem, target, seed, program))[1:2])
  log_posterior <- function(theta, ...) {
    theta <- matrix(theta, ncol = target$dim)
    target$log_prior(theta) + target$log_lik(theta)
  }
  labels <- if (length(target$log_symmetry)) target$log_symmetry else 0
  one <- function(label, work) {
    before <- target$calls()
    spent <- sum(system.time(found <- work())[1:2])
    answer(label, found[1] + labels, found[2], made$evaluations + target$calls() - before,
           made_in + spent)
  }
  bridge_by <- function(method) function() {
    bound <- setNames(rep(Inf, target$dim), target$names)
    set.seed(seed)
    b <- bridgesampling::bridge_sampler(
      coda::as.mcmc.list(lapply(made$chains, coda::mcmc)), log_posterior = log_posterior,
      data = list(0), lb = -bound, ub = bound, method = method, silent = TRUE)
    c(b$logml, if (method == "normal") bridgesampling::error_measures(b)$cv else NA)
  }
  rbind(
    one("bridgesampling, normal", bridge_by("normal")),
    one("bridgesampling, warp3", bridge_by("warp3")),
    if (have("thames")) one("thames", function() {
      all <- do.call(rbind, made$chains)
      found <- thames::thames(log_posterior(all), all)
      c(-found$log_zhat_inv, found$se)
    })
  )
}

# Laplace by TMB -----------------------------------------------------------------------------------

TMB_PROGRAM <- "
#include <TMB.hpp>
template<class Type>
Type objective_function<Type>::operator() ()
{
  DATA_VECTOR(y); DATA_MATRIX(x); DATA_INTEGER(logistic);
  PARAMETER_VECTOR(beta);
  vector<Type> eta = x * beta;
  Type value = -dnorm(beta, Type(0), Type(1), true).sum();
  for (int i = 0; i < y.size(); i++)
    value -= logistic ? dbinom_robust(y(i), Type(1), eta(i), true)
                      : dnorm(y(i), eta(i), Type(1), true);
  return value;
}"

compile_tmb <- function() {
  folder <- file.path(tempdir(), "tmb")
  dir.create(folder, showWarnings = FALSE)
  writeLines(TMB_PROGRAM, file.path(folder, "rivals.cpp"))
  back <- setwd(folder)
  on.exit(setwd(back))
  TMB::compile("rivals.cpp")
  TMB::dynlib(file.path(folder, "rivals"))
}

laplace_by_tmb <- function(problem, seed) {
  if (is.null(problem$design)) return(NULL)
  data <- list(y = problem$response, x = problem$design, logistic = as.integer(problem$logistic))
  made <- TMB::MakeADFun(data, list(beta = numeric(ncol(problem$design))), random = "beta",
                         DLL = "rivals", silent = TRUE)
  answer("TMB, Laplace", -as.numeric(made$fn()))
}

# Nested sampling by ernest ------------------------------------------------------------------------

prior_transform <- function(problem, d) {
  if (!is.null(problem$design)) return(function(u) qnorm(u))
  function(u) {
    # weights by breaking a stick; variances inverse-gamma with shape 1 and rate 1
    first <- qbeta(u[, 1], 1, 2)
    second <- (1 - first) * u[, 2]
    third <- (1 - first) * (1 - u[, 2])
    cbind(log(first / third), log(second / third), qnorm(u[, 3:5, drop = FALSE]),
          -log(-log(u[, 6:8, drop = FALSE])))
  }
}

nested_by_ernest <- function(problem, seed) {
  if (!have("ernest")) return(NULL)
  options(rlib_message_verbosity = "quiet", rlib_warning_verbosity = "quiet")
  target <- counted(problem)
  prior <- ernest::create_prior(vectorized_fn = prior_transform(problem, target$dim),
                                names = paste0("p", seq_len(target$dim)))
  sampler <- ernest::ernest_sampler(function(theta) target$log_lik(matrix(theta, 1)), prior,
                                    nlive = 100, seed = seed)
  run <- ernest::generate(sampler, show_progress = FALSE)
  # one value for each point that was removed; the last is the estimate
  last <- function(x) x[length(x)]
  answer("ernest, 100 live points", last(run$log_evidence), last(run$log_evidence_err),
         target$calls())
}

# Two kinds of SMC in plain R ----------------------------------------------------------------------

#' Moves by random-walk Metropolis at a power of the likelihood; `each` sees the points after each
metropolis <- function(target, state, lambda, covariance, moves, each = function(state) NULL) {
  root <- chol(covariance) * 2.38 / sqrt(target$dim)
  m <- nrow(state$theta)
  for (move in seq_len(moves)) {
    theta <- state$theta + matrix(rnorm(m * target$dim), m) %*% root
    log_lik <- target$log_lik(theta)
    log_prior <- target$log_prior(theta)
    change <- lambda * (log_lik - state$log_lik) + log_prior - state$log_prior
    taken <- which(log(runif(m)) < change)
    state$theta[taken, ] <- theta[taken, ]
    state$log_lik[taken] <- log_lik[taken]
    state$log_prior[taken] <- log_prior[taken]
    each(state)
  }
  state
}

at_prior <- function(target, n, seed) {
  theta <- target$draw_prior(n, seed = seed)
  list(theta = theta, log_lik = target$log_lik(theta), log_prior = target$log_prior(theta))
}
part_of <- function(state, rows)
  list(theta = state$theta[rows, , drop = FALSE], log_lik = state$log_lik[rows],
       log_prior = state$log_prior[rows])
joined <- function(states)
  list(theta = do.call(rbind, lapply(states, `[[`, "theta")),
       log_lik = unlist(lapply(states, `[[`, "log_lik")),
       log_prior = unlist(lapply(states, `[[`, "log_prior")))
ess <- function(log_w) exp(2 * log_sum_exp(log_w) - log_sum_exp(2 * log_w))
normalised <- function(log_w) exp(log_w - log_sum_exp(log_w))
systematic <- function(weight, m)
  pmin(findInterval((seq_len(m) - runif(1)) / m, cumsum(weight)) + 1, length(weight))

#' The largest power whose weights have the effective sample size `target`
next_power <- function(log_weights, from, target) {
  short <- function(to) ess(log_weights(to)) - target
  if (short(1) >= 0) 1 else if (short(from) <= 0) from
  else uniroot(short, c(from, 1), tol = 1e-10)$root
}

#' M ancestors are resampled, each makes a chain of P points, and all M P points are the next
#' population. The variance is that between the means of chains, added over the powers.
waste_free <- function(problem, seed, chains = 50, length = 100) {
  target <- counted(problem)
  set.seed(seed)
  state <- at_prior(target, chains * length, seed)
  chain <- seq_len(chains * length) # the first points are independent
  lambda <- log_z <- variance <- 0
  while (lambda < 1) {
    to <- next_power(function(to) (to - lambda) * state$log_lik, lambda, chains * length / 2)
    log_w <- (to - lambda) * state$log_lik
    log_z <- log_z + log_mean_exp(log_w)
    means <- tapply(exp(log_w - max(log_w)), chain, mean)
    variance <- variance + var(means) / mean(means)^2 / length(means)
    lambda <- to
    if (lambda == 1) break
    weight <- normalised(log_w)
    covariance <- cov.wt(state$theta, weight)$cov
    begin <- part_of(state, systematic(weight, chains))
    path <- list(begin)
    metropolis(target, begin, lambda, covariance, length - 1,
               function(state) path[[length(path) + 1]] <<- state)
    state <- joined(path)
    chain <- rep(seq_len(chains), length)
  }
  answer("waste-free SMC (plain R)", log_z, sqrt(variance), target$calls())
}

#' All points of all powers so far are weighted as draws from the mixture of their distributions
persistent <- function(problem, seed, points = 500, moves = 20, share = 0.9) {
  target <- counted(problem)
  set.seed(seed)
  state <- all <- at_prior(target, points, seed)
  powers <- log_z <- 0
  repeat {
    each <- vapply(seq_along(powers), function(s) powers[s] * all$log_lik - log_z[s],
                   numeric(length(all$log_lik)))
    top <- apply(each, 1, max)
    mixed <- top + log(rowMeans(exp(each - top)))
    last <- powers[length(powers)]
    to <- next_power(function(to) to * all$log_lik - mixed, last, share * points)
    log_w <- to * all$log_lik - mixed
    powers <- c(powers, to)
    log_z <- c(log_z, log_mean_exp(log_w))
    if (to == 1) break
    weight <- normalised(log_w)
    covariance <- cov.wt(all$theta, weight)$cov
    state <- metropolis(target, part_of(all, systematic(weight, points)), to, covariance, moves)
    all <- joined(list(all, state))
  }
  answer("persistent sampling (plain R)", log_z[length(log_z)], NA, target$calls())
}

# Subsampling SMC in plain R -----------------------------------------------------------------------

#' The log-likelihood of a row and its first two derivatives by its linear predictor
by_predictor <- function(eta, y, logistic) {
  if (!logistic)
    return(list(value = dnorm(y, eta, log = TRUE), first = y - eta, second = rep(-1, length(y))))
  p <- plogis(eta)
  list(value = y * eta - pmax(eta, 0) - log1p(exp(-abs(eta))), first = y - p, second = p * (p - 1))
}

#' The control variate: each row's log-likelihood to second order around the posterior mode
expansion <- function(x, y, logistic) {
  mode <- numeric(ncol(x))
  for (step in 1:50) {
    eta <- as.vector(x %*% mode)
    rows <- by_predictor(eta, y, logistic)
    gradient <- as.vector(crossprod(x, rows$first))
    hessian <- crossprod(x, rows$second * x)
    move <- solve(diag(ncol(x)) - hessian, gradient - mode)
    if (max(abs(move)) < 1e-8) break
    mode <- mode + move
  }
  # a Hessian counts as one gradient for each parameter
  list(mode = mode, rows = c(rows, list(eta = eta, y = y)), log_lik = sum(rows$value),
       gradient = gradient, hessian = hessian, passes = step * (1 + ncol(x)))
}

#' The estimates from subsamples: a line of `picked` has the row numbers of one particle
subsampled <- function(problem) {
  x <- problem$design
  n <- nrow(x)
  about <- expansion(x, problem$response, problem$logistic)
  passes <- about$passes
  known <- c(unname(split(x, col(x))), about$rows)
  look_up <- function(picked) lapply(known, function(v) matrix(v[picked], nrow(picked)))
  columns <- seq_len(ncol(x))

  #' Log-likelihoods of rows less their control variates, with derivatives by the predictor
  differences <- function(theta, rows) {
    passes <<- passes + length(rows$y) / n
    eta <- 0
    for (j in columns) eta <- eta + rows[[j]] * theta[, j]
    away <- eta - rows$eta
    now <- by_predictor(eta, rows$y, problem$logistic)
    list(value = now$value - rows$value - (rows$first + rows$second * away / 2) * away,
         first = now$first - rows$first - rows$second * away)
  }
  #' The difference estimator of the log-likelihood, and the estimate of its variance
  estimate <- function(theta, difference) {
    away <- sweep(theta, 2, about$mode)
    control <- about$log_lik + away %*% about$gradient + rowSums(away %*% about$hessian * away) / 2
    mean <- rowMeans(difference)
    list(log_lik = as.vector(control) + n * mean,
         variance = (n / ncol(difference))^2 * rowSums((difference - mean)^2))
  }
  #' The gradient of `power * log_lik - power^2 / 2 * variance`
  gradient <- function(theta, rows, difference, power) {
    share <- power * n / ncol(rows$y)
    each <- difference$first * (share - share^2 * (difference$value - rowMeans(difference$value)))
    control <- sweep(sweep(theta, 2, about$mode) %*% about$hessian, 2, about$gradient, "+")
    power * control + vapply(columns, function(j) rowSums(each * rows[[j]]), numeric(nrow(theta)))
  }
  list(n = n, look_up = look_up, differences = differences, estimate = estimate,
       gradient = gradient, passes = function() passes)
}

at_power <- function(state, power) power * state$log_lik - power^2 / 2 * state$variance
rows_of <- function(state, chosen)
  lapply(state, function(part)
    if (is.matrix(part)) part[chosen, , drop = FALSE] else part[chosen])
replaced <- function(state, new, chosen) {
  for (part in names(new))
    if (is.matrix(new[[part]])) state[[part]][chosen, ] <- new[[part]][chosen, ]
    else state[[part]][chosen] <- new[[part]][chosen]
  state
}

#' New rows are proposed for one block of each particle's subsample
move_rows <- function(of, state, power, blocks) {
  m <- ncol(state$picked)
  particles <- nrow(state$picked)
  block <- which(ceiling(seq_len(m) * blocks / m) == sample(blocks, 1))
  fresh <- matrix(sample(of$n, particles * length(block), replace = TRUE), particles)
  new <- state[c("picked", "difference")]
  new$picked[, block] <- fresh
  new$difference[, block] <- of$differences(state$theta, of$look_up(fresh))$value
  new <- c(new, of$estimate(state$theta, new$difference))
  change <- at_power(new, power) - at_power(state, power)
  replaced(state, new, which(log(runif(particles)) < change))
}

#' A Hamiltonian trajectory with the subsample held; the prior is standard normal
move_theta <- function(of, state, power, root, size, leaps) {
  rows <- of$look_up(state$picked)
  theta <- state$theta
  slope <- function() (of$gradient(theta, rows, difference, power) - theta) %*% t(root)
  difference <- of$differences(theta, rows)
  start <- matrix(rnorm(length(theta)), nrow(theta))
  speed <- start + size / 2 * slope()
  for (leap in seq_len(leaps)) {
    theta <- theta + size * speed %*% root
    difference <- of$differences(theta, rows)
    speed <- speed + size / (if (leap == leaps) 2 else 1) * slope()
  }
  new <- c(list(theta = theta, difference = difference$value),
           of$estimate(theta, difference$value))
  change <- at_power(new, power) - at_power(state, power) -
    rowSums(theta^2 - state$theta^2 + speed^2 - start^2) / 2
  replaced(state, new, which(log(runif(nrow(theta))) < change))
}

#' A particle is a point and a subsample; the variance takes the moved particles as independent
subsampling <- function(problem, seed, points = 500, rows = 100, blocks = 10, moves = 3,
                        leaps = 3, size = 0.5, share = 0.8) {
  if (is.null(problem$design)) return(NULL)
  set.seed(seed)
  of <- subsampled(problem)
  state <- list(theta = matrix(rnorm(points * ncol(problem$design)), points),
                picked = matrix(sample(of$n, points * rows, replace = TRUE), points))
  state$difference <- of$differences(state$theta, of$look_up(state$picked))$value
  state <- c(state, of$estimate(state$theta, state$difference))
  power <- log_z <- variance <- 0
  repeat {
    log_weights <- function(to) at_power(state, to) - at_power(state, power)
    to <- next_power(log_weights, power, share * points)
    weight <- normalised(log_weights(to))
    log_z <- log_z + log_mean_exp(log_weights(to))
    variance <- variance + sum((weight - 1 / points)^2)
    power <- to
    if (power == 1) break
    root <- chol(cov.wt(state$theta, weight)$cov)
    state <- rows_of(state, systematic(weight, points))
    for (move in seq_len(moves)) {
      state <- move_rows(of, state, power, blocks)
      state <- move_theta(of, state, power, root, size * runif(1, 0.8, 1.2), leaps)
    }
  }
  answer("subsampling SMC (plain R)", log_z, sqrt(variance), of$passes())
}

# Runs ---------------------------------------------------------------------------------------------

RIVALS <- list(
  sgais = own(sgais(), "sgais()"),
  bridge = own(bridge(), "bridge()"),
  laplace = own(method_laplace(importance = 1000), "laplace(importance = 1000)"),
  bic = own(method_bic(), "bic()"),
  draws = from_draws, tmb = laplace_by_tmb, ernest = nested_by_ernest, waste_free = waste_free,
  persistent = persistent, subsampling = subsampling
)

# Loading a package is not part of a run.
NEEDS <- list(draws = c("bridgesampling", "coda", "Brobdingnag", "mvtnorm", "thames"),
              ernest = "ernest", tmb = "TMB")

memory <- function(what) {
  line <- grep(what, readLines("/proc/self/status"), value = TRUE)
  as.numeric(gsub("[^0-9]", "", line)) / 1024
}

in_child <- function(work) suppressWarnings(parallel::mccollect(parallel::mcparallel(work)))[[1]]

#' One run in a process of its own: its CPU time, and by how many MB it grew
one_run <- function(problem, name, rival, seed) {
  work <- function() {
    for (package in NEEDS[[rival]]) have(package)
    before <- memory("VmRSS")
    spent <- sum(system.time(found <- RIVALS[[rival]](problem, seed))[1:2])
    if (is.null(found)) return(NULL)
    found$cpu[is.na(found$cpu)] <- spent
    cbind(problem = name, seed = seed, found, reference = problem$reference[1],
          reference_se = problem$reference[2], mb = memory("VmHWM") - before)
  }
  found <- in_child(work())
  if (inherits(found, "try-error")) message(name, ", ", rival, ", seed ", seed, ": ", found)
  if (is.data.frame(found)) found else NULL
}

run <- function(names = paste(names(PROBLEMS), collapse = ","), seeds = NULL, only = ".") {
  names <- strsplit(names, ",")[[1]]
  missing_rivals(c("thames", "ernest"))
  if (any(names != "mixture")) {
    if (grepl(only, "draws") && any(names %in% c("linear", "logistic"))) in_child(compile_stan())
    if (grepl(only, "tmb")) dyn.load(in_child(compile_tmb()))
  }
  runs <- if (file.exists(FILE)) utils::read.csv(FILE)
  for (name in names) {
    problem <- PROBLEMS[[name]]()
    message(sprintf("%s: reference %.4f (%.4f)", name, problem$reference[1], problem$reference[2]))
    large <- name == "linear-large"
    most <- if (!is.null(seeds) && seeds != "all") as.integer(seeds) else if (large) 2 else 6
    # random walks do not change the labelling of a mixture
    rivals <- setdiff(names(RIVALS), if (large) c("ernest", "persistent")
                                     else if (name == "mixture") c("waste_free", "persistent"))
    for (rival in grep(only, rivals, value = TRUE)) {
      spent <- system.time(
        # ernest asks for one point at a time and is slow
        found <- do.call(rbind, lapply(seq_len(if (rival == "ernest") min(most, 3) else most),
                                       one_run, problem = problem, name = name, rival = rival)))
      message(sprintf("  %s: %.0f s", rival, spent[["elapsed"]]))
      again <- runs$problem == name & runs$method %in% found$method
      runs <- rbind(runs[!again, ], found)
    }
    utils::write.csv(runs, FILE, row.names = FALSE)
  }
  report()
}

table_of <- function(runs) {
  lines <- lapply(split(runs, factor(runs$method, unique(runs$method))), function(part) {
    error <- part$log_evidence - part$reference
    stated <- any(is.finite(part$se) & part$se > 0)
    joint <- sqrt(part$se^2 + part$reference_se^2)
    data.frame(
      method = part$method[1], seeds = nrow(part), mean = mean(error),
      rms = sqrt(mean(error^2)), stated = if (stated) median(part$se) else NA,
      within = if (stated) sum(abs(error) < 2 * joint) else NA,
      cpu = median(part$cpu), evaluations = median(part$evaluations), mb = median(part$mb)
    )
  })
  do.call(rbind, lines)
}

report <- function() {
  runs <- utils::read.csv(FILE)
  for (name in unique(runs$problem)) {
    part <- runs[runs$problem == name, ]
    cat(sprintf("\n%s: reference %.4f (%.4f)\n\n", name, part$reference[1], part$reference_se[1]))
    cat("| method | seeds | mean error | rms | stated | within 2 se | CPU s | evaluations | MB |\n")
    cat("|---|---:|---:|---:|---:|---:|---:|---:|---:|\n")
    t <- table_of(part)
    blank <- function(x, format) ifelse(is.na(x), "", sprintf(format, x))
    digits <- ifelse(abs(t$mean) > 1, 2, 3)
    nats <- function(x) sub("^-(0[.]0+)$", "\\1", sprintf("%.*f", digits, x))
    cat(sprintf("| %s | %d | %s | %s | %s | %s | %.2f | %s | %.0f |\n", t$method, t$seeds,
                nats(t$mean), nats(t$rms), blank(t$stated, "%.3f"),
                ifelse(is.na(t$within), "", sprintf("%d of %d", t$within, t$seeds)), t$cpu,
                ifelse(is.na(t$evaluations), "", trimws(format(round(t$evaluations),
                                                               big.mark = ",", trim = TRUE))),
                t$mb), sep = "")
  }
}

# Default priors without units ---------------------------------------------------------------------

#' Log Bayes factor of p covariates over the intercept: the integral over g of Liang et al. (2008),
#' g inverse-gamma with shape 1/2 and rate n scale^2 / 2, by R's integrate()
jzs_integral <- function(fit, scale) {
  n <- length(fit$residuals)
  p <- fit$rank - 1
  r2 <- summary(fit)$r.squared
  rate <- n * scale^2 / 2
  value <- function(t) { # t = log g
    g <- exp(t)
    (n - 1 - p) / 2 * log1p(g) - (n - 1) / 2 * log1p(g * (1 - r2)) + 0.5 * log(rate) -
      lgamma(0.5) - 0.5 * t - rate / g
  }
  top <- optimise(value, c(-10, 30), maximum = TRUE)$objective
  top + log(integrate(function(t) exp(value(t) - top), -10, 40, rel.tol = 1e-10,
                      subdivisions = 1000)$value)
}

jzs_table <- function() {
  missing_rivals(c("BayesFactor", "BAS"))
  here_by <- function(scale) {
    of <- function(formula)
      evidence(linear_regression(formula, prior = jzs(scale)), mtcars, exact())
    of(mpg ~ wt + hp)$log_evidence - of(mpg ~ 1)$log_evidence
  }
  plain <- lm(mpg ~ wt + hp, mtcars)
  say <- function(way, scale, work) {
    spent <- sum(system.time(value <- work())[1:2])
    cat(sprintf("| %s | %s | %.6f | %.2f |\n", way, scale, value, spent))
  }
  for (scale in c(sqrt(2) / 4, 1)) {
    name <- if (scale == 1) "1" else "sqrt(2)/4"
    say("integrate(), the integral of Liang et al.", name, function() jzs_integral(plain, scale))
    say("`jzs()`, `exact()`", name, function() here_by(scale))
    if (scale < 1 && have("BayesFactor")) {
      loadNamespace("BayesFactor")
      say("BayesFactor, `lmBF()`", name, function()
        BayesFactor::lmBF(mpg ~ wt + hp, mtcars, progress = FALSE)@bayesFactor$bf)
    }
    if (scale == 1 && have("BAS")) {
      loadNamespace("BAS")
      say("BAS, `bas.lm(prior = \"JZS\")`", name, function() {
        all <- BAS::bas.lm(mpg ~ wt + hp, mtcars, prior = "JZS", alpha = 1,
                           modelprior = BAS::uniform())
        all$logmarg[lengths(all$which) == 3] - all$logmarg[lengths(all$which) == 1]
      })
    }
  }
}

asked <- commandArgs(trailingOnly = TRUE)
if (length(asked)) switch(asked[1], run = do.call(run, as.list(asked[-1])), jzs = jzs_table(),
                          report = report(), stop("not `run`, `jzs` or `report`"))

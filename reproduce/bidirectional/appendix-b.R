# Appendix B of the paper: tests that show whether an implementation is right.

log_mean <- function(x) max(x) + log(mean(exp(x - max(x))))

# The functions of a latent model on states, as the core has them. Every call has its own seed.
door <- function(model, width, n, seed) {
  args <- lapply(c(list(width = width), model$args), as.double)
  calls <- 0
  function(what, state = NULL, rows = matrix(0, width, n), seen = n, lambda = 1, backwards = FALSE,
           other = NULL) {
    calls <<- calls + 1
    out <- .Call(logevidence:::ffi_model, logevidence:::model_type(model), args, rows,
                 paste0("state_", what), state,
                 c(list(seen = seen, lambda = lambda, backwards = backwards, seed = c(seed, calls)),
                   if (!is.null(other)) list(other = other)))
    list(value = out$value, state = out$theta, rows = out$first)
  }
}
# A draw of parameters and latents from the prior, given by `start` where it has variances.
prior_state <- function(ask, n, prepare = identity) {
  state <- prepare(ask("start")$state)
  for (i in seq_len(n)) state <- ask("extend_blind", state, seen = i - 1)$state
  state
}

KNOWN <- list(
  clustering = clustering(components = 3, proportions = c(0.5, 0.3, 0.2), prior_sd = 1.3,
                          noise_sd = 0.8),
  `low rank` = low_rank(rank = 2, row_sd = 1.2, column_sd = 0.9, noise_sd = 0.8),
  `binary attributes` = binary_attributes(attributes = 2, probabilities = c(0.3, 0.6),
                                          prior_sd = 1.3, noise_sd = 0.8)
)
UNKNOWN <- list(
  clustering = clustering(components = 3, infer = TRUE, shape = 5, scale = 5),
  `low rank` = low_rank(rank = 2, infer = TRUE, shape = 5, scale = 5),
  `binary attributes` = binary_attributes(attributes = 2, infer = TRUE, shape = 5, scale = 5)
)

# 1. Conditional distributions against the joint one -----------------------------------------------

# Mean-field coordinate ascent for a clustering, in plain R: responsibilities and normal centres.
# Returns the bound of one labelling.
plain_variational <- function(y, components, prior_sd, noise_sd, iterations = 300) {
  n <- nrow(y)
  d <- ncol(y)
  r <- matrix(rexp(n * components), n)
  r <- r / rowSums(r)
  for (i in seq_len(iterations)) {
    precision <- 1 / prior_sd^2 + colSums(r) / noise_sd^2
    centre <- crossprod(r, y) / noise_sd^2 / precision
    score <- y %*% t(centre) / noise_sd^2 -
      rep((rowSums(centre^2) + d / precision) / (2 * noise_sd^2), each = n)
    r <- exp(score - apply(score, 1, max))
    r <- r / rowSums(r)
  }
  precision <- 1 / prior_sd^2 + colSums(r) / noise_sd^2
  centre <- crossprod(r, y) / noise_sd^2 / precision
  squares <- outer(rowSums(y^2), rowSums(centre^2) + d / precision, "+") - 2 * y %*% t(centre)
  sum(-r * (squares / (2 * noise_sd^2) + d / 2 * log(2 * pi * noise_sd^2) + log(components))) -
    sum(ifelse(r > 0, r * log(r), 0)) -
    0.5 * sum(d / (precision * prior_sd^2) + rowSums(centre^2) / prior_sd^2 - d +
                d * log(precision * prior_sd^2))
}

item(
  "bidirectional", "appendix-B1", "conditional distributions and variational updates",
  reported = "conditional densities must agree exactly with the joint density; variational updates
              must end at a maximum of the bound",
  settings = "log f(x) + log T(y | x) = log f(y) + log T'(x | y) for sweeps T and reversed sweeps
              T', 50 pairs of states for each model, likelihood to the power 1 and 0.4; variational
              bound of a clustering, 40 rows, 4 columns, against coordinate ascent in plain R from
              60 starts",
  run = function(full) {
    pairs <- if (full) 50 else 5
    identities <- do.call(rbind, lapply(names(KNOWN), function(name) {
      ask <- door(KNOWN[[name]], 3, 6, 1)
      off <- replicate(pairs, vapply(c(1, 0.4), function(lambda) {
        from <- prior_state(ask, 6)
        rows <- ask("simulate", from)$rows
        to <- ask("sweep", from, rows, lambda = lambda)$state
        f <- function(state) ask("log_prior", state, rows)$value +
          ask("log_lik", state, rows, lambda = lambda)$value
        there <- ask("sweep", from, rows, lambda = lambda, other = to)$value
        back <- ask("sweep", to, rows, lambda = lambda, other = from, backwards = TRUE)$value
        f(from) + there - f(to) - back
      }, 0))
      data.frame(test = name, off = max(abs(off)))
    }))
    model <- clustering(components = 3, prior_sd = 1, noise_sd = 1)
    y <- bdmc(model, n = 40, columns = 4, ais(schedule = sigmoidal(2)), chains = 2, budgets = 1,
              seed = 1, progress = FALSE)$data
    set.seed(1)
    starts <- replicate(if (full) 60 else 15, plain_variational(as.matrix(y), 3, 1, 1))
    bound <- evidence(model, y, variational(restarts = 30, tolerance = 1e-6), seed = 1,
                      progress = FALSE)$variational$bound
    rbind(identities, data.frame(test = "variational bound, plain R minus package",
                                 off = max(starts) - bound))
  },
  judge = function(table) {
    sweeps <- max(table$off[1:3])
    bound <- table$off[4]
    list(verdict = if (sweeps < 1e-8 && abs(bound) < 1e-3) "reproduced" else "not reproduced",
         obtained = sprintf("the identity holds within %.0e nats for %s; the bound of the package
                             and of plain R differ by %.1e nats", sweeps,
                            paste(table$test[1:3], collapse = ", "), abs(bound)),
         why = "tests of the package do this for every model (check_model() for a user's own)")
  }
)

# 2. Geweke's joint test ---------------------------------------------------------------------------

N <- 5
WIDTH <- 3
VARIANCES <- c(clustering = 2, `low rank` = 3, `binary attributes` = 2) # the last: of the noise

# What is compared, for state x and rows y: settings where they are unknown, latents, data.
LOOKS_AT <- list(
  clustering = function(x, y) {
    alike <- outer(x[5 + 1:N], x[5 + 1:N], `==`)
    c(x[1:3], sum(x[5 + 1:N] == 0), sum(alike), sum(alike * crossprod(y)))
  },
  `low rank` = function(x, y) {
    v <- matrix(x[3 + 1:6], 2, byrow = TRUE)
    u <- matrix(x[9 + 1:10], N, byrow = TRUE)
    c(x[1:3], u[1, 1], v[1, 1], sum(u^2), sum(v^2), sum((t(y) - u %*% v)^2))
  },
  `binary attributes` = function(x, y) {
    z <- matrix(x[4 + 1:10], N, byrow = TRUE)
    c(x[1:3], sum(z[, 1]), sum(z[, 1] * z[, 2]), sum(tcrossprod(z) * crossprod(y)))
  }
)

# Two samples of the joint distribution: from the model, and along chains that move states given
# rows and draw rows anew. `wrong`: the noise variance that the sweep believes, relative to its
# value.
geweke_samples <- function(name, known, draws, wrong = 1, seed = 1) {
  model <- (if (known) KNOWN else UNKNOWN)[[name]]
  noise <- VARIANCES[[name]]
  look <- function(x, y) c(if (known) LOOKS_AT[[name]](x, y)[-(1:3)] else LOOKS_AT[[name]](x, y),
                           y[1, 1], mean(y), sum(y^2), sum(y[, 1] * y[, 2]))
  ask <- door(model, WIDTH, N, seed)
  set.seed(seed)
  start <- function() prior_state(ask, N, function(x) {
    if (!known) x[noise] <- 5 / rgamma(1, 5)
    x
  })
  forward <- t(replicate(draws, {
    x <- start()
    look(x, ask("simulate", x)$rows)
  }))
  thin <- if (name == "low rank") 10 else if (known) 2 else 6
  chain <- matrix(0, draws, ncol(forward))
  for (i in seq_len(draws)) {
    if ((i - 1) %% (draws / 4) == 0) x <- start()
    for (turn in seq_len(thin)) {
      rows <- ask("simulate", x)$rows
      believed <- replace(x, noise, wrong * x[noise])
      moved <- ask("sweep", believed, rows)$state
      if (known) moved[seq_len(noise)] <- x[seq_len(noise)]
      x <- moved
    }
    chain[i, ] <- look(x, rows)
  }
  list(forward = forward, chain = chain)
}

# Distribution functions at shares of the first sample, the largest difference, and the band that
# chance allows all of them together one time in a thousand (Smirnov's asymptotic tail; thinned
# draws count by the autocorrelation of their ranks).
pp_of <- function(samples, panel, broken) {
  worth <- function(x) {
    lags <- rowMeans(apply(matrix(rank(x), ncol = 4), 2,
                           function(z) acf(z, lag.max = 20, plot = FALSE)$acf[-1]))
    length(x) / (1 + 2 * sum(lags[cumprod(lags > 0.05) == 1]))
  }
  do.call(rbind, lapply(seq_len(ncol(samples$forward)), function(j) {
    a <- samples$forward[, j]
    b <- samples$chain[, j]
    all <- sort(c(a, b))
    off <- max(abs(findInterval(all, sort(a)) / length(a) - findInterval(all, sort(b)) / length(b)))
    at <- quantile(c(a, b), seq(0.05, 0.95, by = 0.05), names = FALSE, type = 1)
    bound <- sqrt(log(2 * ncol(samples$forward) / 1e-3) / 2 * (1 / length(a) + 1 / worth(b)))
    data.frame(panel = panel, broken = broken, statistic = j,
               forward = round(ecdf(a)(at), 4), chain = round(ecdf(b)(at), 4),
               deviation = round(off, 4), bound = round(bound, 4))
  }))
}

item(
  "bidirectional", "appendix-B2", "Geweke's joint test, as P-P plots",
  reported = "draws from the model and draws along chains that also draw the data anew must have the
              same distribution; P-P plots show whether they do, and amplify small errors",
  settings = "sweeps of three models, 5 rows of 3 columns; variances known, unknown, and unknown
              with a planted error (the sweep takes the noise variance for 1.5 times its value); 7
              to 12 statistics each; 4,000 draws each way, thinned",
  run = function(full) {
    # the small form plants a larger error, which fewer draws show
    draws <- if (full) 4000 else 400
    planted <- if (full) 1.5 else 4
    cases <- expand.grid(name = names(KNOWN), what = c("known", "unknown", "error planted"),
                         stringsAsFactors = FALSE)
    do.call(rbind, lapply(seq_len(nrow(cases)), function(i) {
      own <- cases[i, ]
      broken <- own$what == "error planted"
      pp_of(geweke_samples(own$name, own$what == "known", draws, if (broken) planted else 1,
                               10 * i),
            paste0(own$name, ", ", own$what), broken)
    }))
  },
  draw = function(table) {
    par(mfrow = c(3, 3), mar = c(3.2, 3.6, 1.8, 0.6), mgp = c(1.8, 0.5, 0), pty = "s")
    for (panel in unique(table$panel)) {
      own <- table[table$panel == panel, ]
      plot(0:1, 0:1, type = "n", xlab = "drawn forwards", ylab = "", main = panel, cex.main = 1)
      title(ylab = "drawn by sweeps", line = 2.3)
      bound <- max(own$bound)
      polygon(c(0, 1, 1, 0), c(0, 1, 1, 0) + bound * c(1, 1, -1, -1), col = "grey85", border = NA)
      abline(0, 1, col = "grey50")
      for (j in unique(own$statistic)) {
        part <- own[own$statistic == j, ]
        lines(part$forward, part$chain, lwd = 1.5,
              col = c("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")[j %% 6 + 1])
      }
      text(0.98, 0.06, sprintf("%.3f (%.3f)", max(own$deviation), bound), adj = 1, cex = 0.9)
    }
  },
  alt = "Nine P-P plots. In the first two rows, models with known and with unknown variances, all
         curves stay within a grey band around the diagonal. In the last row, with a planted error,
         some curves leave the band.",
  judge = function(table) {
    worst <- function(part) max(part$deviation / part$bound)
    ratio <- vapply(split(table, table$panel), worst, 0)
    broken <- grepl("error planted", names(ratio))
    list(verdict = if (all(ratio[!broken] < 1) && all(ratio[broken] > 1)) "reproduced" else
           "not reproduced",
         obtained = sprintf("greatest deviation %.2f to %.2f of the bound for right sweeps, %.1f to
                             %.1f times the bound for wrong ones", min(ratio[!broken]),
                            max(ratio[!broken]), min(ratio[broken]), max(ratio[broken])),
         why = "bound: what chance allows all curves of a panel together one time in a thousand")
  },
  size = c(7.5, 7.8)
)

# 3. Evidence that is known ------------------------------------------------------------------------

# Sum over all labels or attributes: given them, columns are normal with covariance
# prior_sd^2 Z Z' + noise_sd^2 I. `choices` has the possible latent vectors of one row.
enumerated <- function(y, choices, log_probability, prior_sd, noise_sd) {
  n <- nrow(y)
  picks <- as.matrix(expand.grid(rep(list(seq_len(nrow(choices))), n)))
  values <- apply(picks, 1, function(pick) {
    z <- choices[pick, , drop = FALSE]
    root <- chol(prior_sd^2 * tcrossprod(z) + diag(noise_sd^2, n))
    sum(log_probability[pick]) - ncol(y) * (n / 2 * log(2 * pi) + sum(log(diag(root)))) -
      sum(backsolve(root, y, transpose = TRUE)^2) / 2
  })
  log_mean(values) + log(length(values))
}

METHODS <- list(
  AIS = ais(particles = 100, sigmoidal(100)), `SMC by temperature` = method_smc(particles = 200),
  `SMC by rows` = method_smc("data", particles = 200), `nested sampling` = nested(live = 200),
  `Chib-Murray-Salakhutdinov` = chib(draws = 10000), `variational Bayes` = variational(),
  `likelihood weighting` = likelihood_weighting(1e5), `harmonic mean` = harmonic_mean(draws = 1000)
)
errors_of <- function(model, data, truth, seeds, methods = METHODS)
  do.call(rbind, lapply(names(methods), function(name) {
    error <- vapply(seq_len(seeds), function(seed) suppressMessages(suppressWarnings(
      evidence(model, data, methods[[name]], seed = seed, progress = FALSE)))$log_evidence, 0) -
      truth
    data.frame(method = name, mean = mean(error), sd = sd(error))
  }))

item(
  "bidirectional", "appendix-B3", "evidence by enumeration",
  reported = "estimators are tested where the evidence is known: toy distributions, and very small
              clustering and binary models by enumeration of all latent variables",
  settings = "five rows of two columns; 3 components (243 labellings), 2 attributes (1,024), and a
              normal mean of 20 rows (closed form); 10 seeds each",
  run = function(full) {
    seeds <- 10
    set.seed(1)
    rows <- data.frame(a = rnorm(5, sd = 1.5), b = rnorm(5))
    both <- as.matrix(expand.grid(0:1, 0:1))
    truths <- c(clustering = enumerated(as.matrix(rows), diag(3), log(c(0.5, 0.3, 0.2)), 1.3, 0.8),
                `binary attributes` = enumerated(as.matrix(rows), both,
                                                 log(c(0.7, 0.3) %o% c(0.4, 0.6)), 1.3, 0.8))
    methods <- if (full) METHODS else METHODS[c(1, 3, 6, 7)]
    latent <- do.call(rbind, lapply(names(truths), function(name)
      cbind(model = name, errors_of(KNOWN[[name]], rows, truths[[name]], seeds, methods))))
    y <- rnorm(20, 0.7)
    toy <- gaussian_mean()
    exact <- model_functions(toy, y)$exact()
    closed <- -10 * log(2 * pi) - 0.5 * log(21) - 0.5 * (sum(y^2) - sum(y)^2 / 21)
    stopifnot(abs(exact - closed) < 1e-9)
    rbind(latent, cbind(model = "normal mean", errors_of(toy, y, closed, seeds, list(
      AIS = ais(), `SMC by temperature` = method_smc(), `SMC by rows` = method_smc("data"),
      `nested sampling` = nested(), `likelihood weighting` = likelihood_weighting(),
      `harmonic mean` = harmonic_mean()))))
  },
  judge = function(table) {
    sampled <- table[!table$method %in% c("variational Bayes", "harmonic mean"), ]
    # errors of the mean of ten seeds, which may not be more than three standard errors and .02 nats
    far <- abs(sampled$mean) > 0.02 + 3 * sampled$sd / sqrt(10)
    bound <- table[table$method == "variational Bayes", ]
    harmonic <- table[table$method == "harmonic mean", ]
    list(verdict = if (!any(far) && all(bound$mean < 1e-6)) "reproduced" else "not reproduced",
         obtained = sprintf("%d of %d pairs of method and model are right; largest mean error %.3f
                             nats, of single runs %.2f (sd); variational bounds %s nats below, the
                             harmonic mean off by %s", sum(!far), nrow(sampled),
                            max(abs(sampled$mean)), max(sampled$sd),
                            paste(sprintf("%.2f", -bound$mean), collapse = " and "),
                            paste(sprintf("%+.2f", harmonic$mean), collapse = ", ")),
         why = if (any(far)) paste("off:", paste(sampled$method[far], "on", sampled$model[far],
                                                 collapse = ", ")) else
           "the harmonic mean converges too slowly even here")
  }
)

# 4. Agreement on easy instances -------------------------------------------------------------------

item(
  "bidirectional", "appendix-B4", "agreement of estimators on easy instances",
  reported = "estimators must agree where noise is very large or very small, or rows are few",
  settings = "three models; prior standard deviation 0.05 (noise 1) and 4 (noise 0.3) with 10 rows
              of 4 columns, and 3 rows of 4 columns with 1 and 1; one run of each sampler;
              sweeps of the Chib-Murray-Salakhutdinov estimator begin with a random relabelling",
  run = function(full) {
    cases <- list(`large noise` = c(10, 0.05, 1), `small noise` = c(10, 4, 0.3),
                  `few rows` = c(3, 1, 1))
    models <- list(
      clustering = function(s, e) clustering(components = 2, prior_sd = s, noise_sd = e),
      `low rank` = function(s, e) low_rank(rank = 1, row_sd = 1, column_sd = s, noise_sd = e),
      `binary attributes` = function(s, e) binary_attributes(attributes = 2, prior_sd = s,
                                                             noise_sd = e))
    samplers <- METHODS[setdiff(names(METHODS), c("likelihood weighting", "harmonic mean",
                                                  "variational Bayes"))]
    samplers$AIS <- ais(particles = 100, sigmoidal(1000))
    do.call(rbind, lapply(names(cases), function(case) do.call(rbind, lapply(
      names(models), function(name) {
        own <- cases[[case]]
        model <- models[[name]](own[2], own[3])
        data <- bdmc(model, n = own[1], columns = 4, ais(schedule = sigmoidal(2)), chains = 2,
                     budgets = 1, seed = 1, progress = FALSE)$data
        do.call(rbind, lapply(names(samplers), function(method) {
          fit <- suppressMessages(suppressWarnings(
            evidence(model, data, samplers[[method]], seed = 1, progress = FALSE)))
          data.frame(case = case, model = name, method = method, log_evidence = fit$log_evidence,
                     se = fit$se)
        }))
      }))))
  },
  judge = function(table) {
    table$off <- table$log_evidence - ave(table$log_evidence, table$case, table$model, FUN = median)
    far <- abs(table$off) > 0.1 + 4 * table$se
    list(verdict = if (!any(far)) "reproduced" else "not reproduced",
         obtained = sprintf("%d of %d estimates are within 0.1 nats and four standard errors of the
                             median; largest difference %.2f nats (standard error %.2f)", sum(!far),
                            nrow(table), max(abs(table$off)), table$se[which.max(abs(table$off))]),
         why = if (!any(far)) "all samplers agree; without relabelling the
                               Chib-Murray-Salakhutdinov estimator would be too low by log 2 on two
                               models with small noise (?chib)" else
           paste0("off: ", paste0(table$method[far], " on ", table$model[far], " with ",
                                  table$case[far], sprintf(" (%+.2f)", table$off[far]),
                                  collapse = ", ")))
  }
)

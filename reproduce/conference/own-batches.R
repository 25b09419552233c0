# What a mini-batch for each particle is worth: the error of the published estimators with own and
# with shared mini-batches, and what the noise of the mini-batches predicts for it.

source("reproduce/three-models.R", local = TRUE)
source("reproduce/batch-noise.R", local = TRUE)
source("reproduce/pictures.R", local = TRUE)

ESTIMATORS <- list(
  "sequential(), own" = function() method_sequential(),
  "sequential(), shared" = function() method_sequential(own_batches = FALSE),
  "SGAIS, own" = function() sgais(preset = "paper"),
  "SGAIS, shared" = function() sgais(preset = "paper", own_batches = FALSE))

# One row for each model, data set, size and estimator.
compare_batches <- function(model, seed, sizes) {
  problem <- rows_of_model(model, max(sizes), seed)
  do.call(rbind, lapply(sizes, function(n) {
    part <- first_rows(problem, n)
    truth <- truth_of(part, 400)
    do.call(rbind, lapply(names(ESTIMATORS), function(name) {
      fit <- timed_fit(part, ESTIMATORS[[name]](), seed)
      data.frame(model = model, seed = seed, n = n, estimator = name,
                 error = round(fit$log_evidence - truth, 3), truth = round(truth, 2),
                 evaluations = sum(fit$work[c("likelihoods", "gradients")]),
                 seconds = signif(fit$cpu, 3))
    }))
  }))
}

# The geometric mean of a ratio of two estimators' columns, over data sets, at the largest size.
ratio_of <- function(table, column, model, above, below) {
  at <- table[table$model == model & table$n == max(table$n), ]
  of <- function(name) abs(at[[column]][at$estimator == name])
  exp(mean(log(of(above) / of(below))))
}

percent_of <- function(table, model, name, n = max(table$n)) {
  at <- table[table$model == model & table$n == n & table$estimator == name, ]
  100 * at$error / at$truth
}

item(
  "conference", "claim-own-batches", "own and shared mini-batches",
  reported = "a new mini-batch for each estimate of the potential; linear
              regression at 10^6 rows: error about 10^-4 nats per row (0.01%)",
  settings = "published settings; rows of the three models, five data sets; truth: closed form or
              laplace(importance = 400)",
  run = function(full) {
    sizes <- if (full) 10^(3:6) else c(1e3, 3e4)
    cases <- expand.grid(seed = seq_len(if (full) 5 else 3), model = names(THREE_MODELS),
                         stringsAsFactors = FALSE)
    do.call(rbind, Map(compare_batches, cases$model, cases$seed, list(sizes)))
  },
  draw = function(table) {
    panels(1, 3)
    colour <- setNames(PALETTE[c(1, 6, 2, 5)], names(ESTIMATORS))
    loss <- pmax(-table$error / table$n, 1e-6)
    for (model in names(THREE_MODELS)) {
      frame_of(table$n, loss, ylab = "log evidence lost, nats per row", main = model)
      for (name in names(ESTIMATORS)) {
        own <- table$model == model & table$estimator == name
        points(table$n[own], loss[own], col = colour[[name]], pch = 1)
        means <- tapply(loss[own], table$n[own], function(x) exp(mean(log(x))))
        lines(as.numeric(names(means)), means, col = colour[[name]], lwd = 2)
      }
      if (model == "linear")
        legend("bottomleft", names(ESTIMATORS), col = colour, lwd = 2, bty = "n", cex = 0.85)
    }
  },
  alt = "Log evidence lost per row against the number of rows, for three models, by sequential() and
         SGAIS, with own and with shared mini-batches; points are data sets, lines their means.",
  judge = function(table) {
    models <- intersect(names(THREE_MODELS), table$model)
    linear <- abs(percent_of(table, "linear", "sequential(), own"))
    shared <- abs(percent_of(table, "linear", "sequential(), shared"))
    gain <- vapply(models, function(model)
      ratio_of(table, "error", model, "sequential(), shared", "sequential(), own"), 0)
    other <- vapply(models, function(model)
      ratio_of(table, "error", model, "SGAIS, shared", "SGAIS, own"), 0)
    cost <- vapply(models, function(model)
      ratio_of(table, "seconds", model, "sequential(), own", "sequential(), shared"), 0)
    most <- big(max(table$n))
    list(verdict = if (all(linear <= 0.015)) "reproduced" else "not reproduced",
         obtained = sprintf("linear regression at %s rows: %s to %s%% with own mini-batches, %s to
                             %s%% with shared ones", most, signif(min(linear), 2),
                            signif(max(linear), 2), signif(min(shared), 2),
                            signif(max(shared), 2)),
         why = paste0("the error of sequential() with shared mini-batches is ", listed(gain),
                      " times that with own ones, in ", listed(1 / cost), " times the time; for
                      SGAIS it is ", listed(other), " times. claim-batch-noise derives both, and
                      has the number of particles with which 0.01% comes out"))
  },
  size = c(9, 3.6)
)

# The noise of mini-batches ------------------------------------------------------------------------

CASES <- data.frame(
  estimator = c(rep("sequential()", 9), rep("SGAIS", 4)),
  rate = c(0.1, 0.1, 0.05, 0.1, 0.1, 0.1, 0.1, 0.1, 0.05, 0.1, 0.1, 0.05, 0.1),
  friction = c(rep(0.2, 3), 0.4, rep(0.2, 9)),
  batch = c(500, 500, 500, 500, 2000, 500, 500, 2000, 500, 500, 500, 500, 2000),
  particles = c(10, 10, 10, 10, 10, 30, 100, 10, 10, 10, 10, 10, 10),
  own = c(TRUE, FALSE, TRUE, TRUE, TRUE, TRUE, TRUE, FALSE, FALSE, TRUE, FALSE, TRUE, TRUE))

# The loss per row after the first part, from log evidences of prefixes.
measured_loss <- function(case, problem, from) {
  kernel <- kernel_sghmc(case$rate, case$friction, tempered = FALSE)
  method <- if (case$estimator == "SGAIS")
    sgais(preset = "paper", particles = case$particles, rate = case$rate,
          friction = case$friction, batch = case$batch, own_batches = case$own) else
    method_sequential(case$particles, kernel = kernel, batch = case$batch, own_batches = case$own)
  trace <- timed_fit(problem, method)$trace
  ends <- c(which(trace$n >= from & trace$lambda == 1)[1], nrow(trace))
  truth <- vapply(ends, function(k) truth_of(first_rows(problem, trace$n[k])), 0)
  -diff(trace$log_evidence[ends] - truth) / diff(trace$n[ends])
}

item(
  "conference", "claim-batch-noise", "what the noise of mini-batches costs",
  reported = "error about 10^-4 nats per row for a linear regression (its reason is not discussed)",
  settings = "6 parameters, 20 thousand to a million rows, five data sets; chunks of 500 rows",
  run = function(full) {
    n <- if (full) 1e6 else 1e5
    cases <- if (full) CASES else CASES[c(1, 2, 10), ]
    table <- do.call(rbind, lapply(seq_len(if (full) 5 else 2), function(seed) {
      problem <- rows_of_model("linear", n, seed)
      loss <- vapply(seq_len(nrow(cases)), function(k)
        measured_loss(cases[k, ], problem, 2e4), 0)
      data.frame(cases, seed = seed, n = n, loss = signif(loss, 5))
    }))
    x <- 500 * added_variance(table$rate, table$friction, table$batch)
    one_by_one <- table$estimator == "sequential()" & table$own
    table$predicted <- signif(mapply(predicted_loss, x, 500, 6, table$particles, one_by_one), 5)
    table$limit <- signif(ifelse(one_by_one, limit_of_loss(x, 500, 6), NA), 5)
    table
  },
  draw = function(table) {
    panels()
    table[c("predicted", "loss")] <- 1000 * table[c("predicted", "loss")]
    frame_of(table$predicted, c(table$loss, table$predicted),
             xlab = "predicted, nats per 1,000 rows", ylab = "lost, nats per 1,000 rows")
    abline(0, 1, col = "grey70")
    kind <- paste0(table$estimator, ifelse(table$own, ", own", ", shared"))
    kinds <- unique(kind)
    points(table$predicted, table$loss, pch = 14 + match(kind, kinds),
           col = PALETTE[match(kind, kinds)])
    legend("topleft", kinds, pch = 14 + seq_along(kinds), col = PALETTE[seq_along(kinds)],
           bty = "n")
  },
  alt = "Log evidence lost per row against the loss that the proposition predicts, for settings of
         two estimators; the points are data sets, the line is equality.",
  judge = function(table) {
    key <- paste(table$estimator, table$rate, table$friction, table$batch, table$particles,
                 table$own)
    by_case <- do.call(rbind, lapply(split(table, key), function(own)
      data.frame(own[1, ], mean = mean(own$loss), se = sd(own$loss) / sqrt(nrow(own)))))
    # a tenth for what the proposition leaves out: higher orders in the rate, few moves per chunk
    off <- abs(by_case$mean / by_case$predicted - 1)
    holds <- abs(by_case$mean - by_case$predicted) < 0.1 * by_case$predicted + 3 * by_case$se
    if (!all(holds))
      stop("The loss is not the predicted one: ", toString(rownames(by_case)[!holds]))
    published <- by_case[by_case$estimator == "sequential()" & by_case$rate == 0.1 &
                         by_case$batch == 500 & by_case$own & by_case$friction == 0.2, ]
    published <- published[order(published$particles), ]
    ten <- published$mean[published$particles == 10]
    list(verdict = if (ten <= 1.5e-4) "reproduced" else "not reproduced",
         obtained = paste0("lost per row, own mini-batches, by particles: ", paste0(
           signif(published$mean, 3), " (", published$particles, ")", collapse = ", "),
           "; in the limit of many particles ", signif(published$limit[1], 3)),
         why = paste0("the proposition holds at all ", nrow(by_case), " settings (largest
                      difference ", round(100 * max(off)), "%). With ten particles the loss is ",
                      short(ten / published$limit[1]), " times that of infinitely many, whose loss
                      is about what the paper reports"))
  },
  size = c(6, 4.4)
)

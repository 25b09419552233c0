# Regressions with group-level effects: is the evidence right, and is the stated error?
#
#   Rscript bench/groups.R references [problems, comma-separated]
#   Rscript bench/groups.R run [seeds = 40] [problems] [file = bench/results/groups.csv]
#   Rscript bench/groups.R report [file]
#   Rscript bench/groups.R rules [problems]
#
# References are in bench/results/groups-references.csv, so that `run` fits with the package alone.
# They are made in plain R and share no code with the package (zoo/groups-truths.R).

suppressPackageStartupMessages(library(logevidence))
source("bench/zoo/groups-truths.R")

REFERENCES <- "bench/results/groups-references.csv"
RESULTS <- "bench/results/groups.csv"

# Problems ----------------------------------------------------------------------------------------

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

# Fits and references -----------------------------------------------------------------------------

append_rows <- function(found, file) {
  new <- !file.exists(file)
  write.table(format(found, digits = 10, trim = TRUE), file, append = !new, sep = ",",
              row.names = FALSE, col.names = new, quote = FALSE)
}

references <- function(names) {
  known <- if (file.exists(REFERENCES)) read.csv(REFERENCES)$problem
  for (name in setdiff(names, known)) {
    seed <- match(name, names(PROBLEMS)) + 900
    seconds <- system.time(
      found <- group_reference(PROBLEMS[[name]], make_data(name), seed))[["elapsed"]]
    append_rows(cbind(problem = name, found, seconds = round(seconds, 1)), REFERENCES)
    cat(format(Sys.time(), "%H:%M:%S"), name, found$truth, found$truth_se, found$share_used, "\n")
  }
}

# Fits --------------------------------------------------------------------------------------------

run <- function(seeds, names, file) {
  done <- if (file.exists(file)) read.csv(file, strip.white = TRUE)
  known <- paste(done$problem, done$seed)
  for (name in names) {
    model <- group_model(PROBLEMS[[name]])
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

LABELS <- c(
  gaussian = "gaussian, intercepts", gaussian_three = "three groups",
  gaussian_single = "a group for each row", gaussian_zero = "standard deviation near zero",
  gaussian_slope = "slopes", gaussian_bars = "three effects, `||`", gaussian_four = "four effects",
  gaussian_nested = "nested", gaussian_crossed = "crossed", gaussian_sigma = "effects on the noise",
  student = "student", student_wide = "student, sd 6", poisson = "poisson",
  poisson_wide = "poisson, sd 3", poisson_slope = "poisson, slopes",
  poisson_nested = "poisson, nested", poisson_crossed = "poisson, crossed", logit = "logit",
  logit_separated = "logit, separated groups", logit_single = "logit, a group for each row",
  logit_zero = "logit, standard deviation near zero", logit_many = "logit, 10,000 groups",
  logit_three = "logit, three effects, `||`", logit_crossed = "logit, 30 x 12 crossed",
  logit_crossed_large = "logit, 100 x 12 crossed", probit = "probit", gamma = "gamma",
  negative_binomial = "negative binomial", weibull = "weibull")

judged <- function(file) {
  all <- merge(read.csv(file, strip.white = TRUE), read.csv(REFERENCES)[c("problem", "truth",
                                                                          "truth_se")])
  all$error <- all$log_evidence - all$truth
  all$z <- all$error / sqrt(all$se^2 + all$truth_se^2)
  all
}

report <- function(file) {
  all <- judged(file)
  cat("| problem | seeds | truth (its error) | mean error | sd | stated | within two | seconds |\n",
      "|---|---|---|---|---|---|---|---|\n", sep = "")
  decimal <- function(x, digits) sub("^(-?)0[.]", "\\1.", sprintf("%.*f", digits, x))
  for (name in intersect(names(PROBLEMS), all$problem)) {
    d <- all[all$problem == name, ]
    cat(sprintf("| %s | %d | %.2f (%s) | %s | %s | %s | %.0f%% | %s |\n", LABELS[[name]], nrow(d),
                d$truth[1], decimal(d$truth_se[1], 3), decimal(mean(d$error), 3),
                decimal(sd(d$error), 3), decimal(mean(d$se), 3), 100 * mean(abs(d$z) < 2),
                decimal(median(d$seconds), 2)))
  }
  silent <- all$warnings == 0
  cat(sprintf(paste0("\nAll %d runs: %.1f%% within two errors, %.1f%% within four; mean square of ",
                     "error / stated error %.2f;\nlargest error %.2f nats; %d with a warning, %d ",
                     "of them within 0.1 nats; %d silently more than 0.3 nats off\n"),
              nrow(all), 100 * mean(abs(all$z) < 2), 100 * mean(abs(all$z) < 4), mean(all$z^2),
              max(abs(all$error)), sum(!silent), sum(!silent & abs(all$error) < 0.1),
              sum(silent & abs(all$error) > 0.3)))
}

rules <- function(names, draws = 100, seeds = 20) {
  internal <- asNamespace("logevidence")
  table <- lapply(names, function(name) {
    p <- PROBLEMS[[name]]
    model <- group_model(p)
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

# Table 1 of the paper: each model, its variances and probabilities unknown, on data of each.

TRUE_MODELS <- list(
  clustering = function(k) clustering(components = 2 * k, prior_sd = 1, noise_sd = 1),
  `low rank` = function(k) low_rank(rank = k, row_sd = 1, column_sd = 1, noise_sd = 1),
  binary = function(k) binary_attributes(attributes = 2 * k, probabilities = 0.3, prior_sd = 1,
                                         noise_sd = 1)
)
FITTED <- list(
  clustering = function(k) clustering(components = 2 * k, infer = TRUE),
  `low rank` = function(k) low_rank(rank = k, infer = TRUE),
  binary = function(k) binary_attributes(attributes = 2 * k, infer = TRUE)
)
# Nats behind the true model: rows are data, columns models.
PAPER <- rbind(clustering = c(clustering = 0, `low rank` = 13.1, binary = 5.7),
               `low rank` = c(69.1, 0, 26.3), binary = c(49.2, 22.3, 0))

item(
  "bidirectional", "table-1", "log evidence of three models on data of each",
  reported = "nats behind the true model: clustering data, low rank 13.1, binary 5.7; low-rank data,
              clustering 69.1, binary 26.3; binary data, clustering 49.2, low rank 22.3",
  settings = "50 rows, 25 columns, 10 clusters or attributes, rank 5; AIS of 30,000 temperatures,
              two chains, on one data set each; the default method on three data sets each; priors
              inverse-gamma(1, 1), Dirichlet(1), Beta(1, 1), which are not published",
  run = function(full) {
    k <- 5
    datasets <- if (full) 3 else 1
    do.call(rbind, lapply(seq_len(datasets), function(d) do.call(rbind, lapply(
      names(TRUE_MODELS), function(from) {
        data <- bdmc(TRUE_MODELS[[from]](k), 50, 25, ais(schedule = sigmoidal(2)), chains = 2,
                     budgets = 1, seed = d, progress = FALSE)$data
        do.call(rbind, lapply(names(FITTED), function(to) {
          fit <- function(...) suppressMessages(suppressWarnings(
            evidence(FITTED[[to]](k), data, ..., seed = d, progress = FALSE)))
          usual <- if (full) fit() # half a minute for all nine: the small form has AIS alone
          annealed <- if (d == 1) fit(ais(particles = 2, sigmoidal(if (full) 30000 else 2000)))
          data.frame(dataset = d, data = from, model = to,
                     usual = if (full) usual$log_evidence else NA,
                     usual_se = if (full) usual$se else NA,
                     ais = if (d == 1) annealed$log_evidence else NA)
        }))
      }))))
  },
  judge = function(table) {
    behind <- function(d, column) {
      own <- table[table$dataset == d, ]
      value <- matrix(own[[column]], 3, byrow = TRUE)
      diag(value) - value
    }
    ranks_alike <- function(x) all(x[row(x) != col(x)] > 0) &&
      all(vapply(1:3, function(i) identical(order(x[i, ]), order(PAPER[i, ])), NA))
    usually <- !anyNA(table$usual)
    all_sets <- c(list(behind(1, "ais")),
                  lapply(unique(table$dataset), behind, if (usually) "usual" else "ais"))
    first <- all(vapply(all_sets, function(x) all(x[row(x) != col(x)] > 0), NA))
    words <- function(x) sprintf("%.1f, %.1f; %.1f, %.1f; %.1f, %.1f", x[1, 2], x[1, 3], x[2, 1],
                                 x[2, 3], x[3, 1], x[3, 2])
    usual <- Reduce(`+`, all_sets[-1]) / (length(all_sets) - 1)
    apart <- if (usually) abs(table$usual - table$ais)[table$dataset == 1] else NA
    list(verdict = if (first && ranks_alike(all_sets[[1]]) && ranks_alike(usual)) "reproduced" else
           "not reproduced",
         obtained = paste0("AIS, one data set each: ", words(all_sets[[1]]), if (usually) sprintf(
                             "; default, mean of %d: %s", length(all_sets) - 1, words(usual)),
                           ". The true model is first in ", if (first) "all" else "some"),
         why = paste0(if (ranks_alike(usual)) "same order" else "another order", "; differences
                      depend on variances and priors, which are not published", if (usually)
                        sprintf(". AIS and the default differ by up to %.0f nats: with unknown
                                variances annealing crosses a phase transition", max(apart))))
  }
)

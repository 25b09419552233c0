# The three models with latent variables of the bidirectional Monte Carlo paper, in its sizes (50
# rows, 25 columns), and data simulated from them. Sourced by items.

# The standard deviations are not published. `at` is that of centres, factors and features.
LATENT_MODELS <- list(
  clustering = function(at = 1, components = 10)
    clustering(components = components, prior_sd = at, noise_sd = 1),
  low_rank = function(at = 1, components = 5)
    low_rank(rank = components, row_sd = at, column_sd = at, noise_sd = 1),
  binary_attributes = function(at = 0.6, components = 10)
    binary_attributes(attributes = components, probabilities = 0.3, prior_sd = at, noise_sd = 1)
)

# Rows drawn from the model (`data`), and the parameters and latents that made them (`state`).
rows_drawn <- function(model, seed, n = 50, columns = 25)
  bdmc(model, n, columns, ais(schedule = sigmoidal(2)), chains = 2, budgets = 1, seed = seed,
       progress = FALSE)[c("data", "state")]

quiet_evidence <- function(...)
  suppressMessages(suppressWarnings(evidence(..., progress = FALSE)))

log_mean <- function(x) max(x) + log(mean(exp(x - max(x))))

# Another estimate for methods that may stay in one part of the posterior, annealing methods and
# chib(): a short run row by row, in random order. Its mean is the evidence, so it is too high by
# `a` nats with a probability of at most e^-a: an estimate far below it has missed something.

SECOND_LEAST <- 1e5 # likelihood evaluations that are always allowed
SECOND_PARTICLES <- 300

CHECK_BY_ROWS <- list(
  applies = function(case) is_latent(case$model) && has_bound(case) &&
    (has_trait(case$method, "local") || identical(case$method$path, "thermal")),
  share = function(case) 0.2,
  least = function(case) SECOND_LEAST,
  look = function(case, most) second_look(case$model, case$encoded, case$words, most),
  entry = function(found) new_entry(
    sprintf("smc(\"data\") with %.0f particles", found$particles), "unbiased",
    found$log_evidence, found$se, cost = found$cost, stream = STREAMS[["run by rows"]])
)

second_look <- function(model, encoded, words, most) {
  n <- encoded$n
  width <- nrow(encoded$rows)
  most <- most * row_cost(model, n, width)$sweep
  particles <- min(SECOND_PARTICLES, floor(most / by_rows_cost(model, n, width)))
  if (particles < 20) return(NULL)
  problem <- new_problem(model, encoded, smc("data", particles), words)
  problem$replicate <- STREAMS[["run by rows"]]
  out <- conduct(problem, encoded$rows)
  list(log_evidence = drop(out$log_evidence), se = drop(out$se), particles = particles,
       cost = evaluations_of(out))
}

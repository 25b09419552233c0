# A check: the mean likelihood of draws from the prior.

CHECK_TOY <- list(
  applies = function(case) can_climb(case),
  share = function(case) 0.01,
  least = function(case) 1e4,
  look = function(case, most) {
    ask <- model_caller(case$model, case$encoded)
    draws <- ask("draw_prior", extra = list(n = ceiling(most / case$encoded$n), seed = case$words))
    list(log_evidence = log_mean(as.vector(ask("log_lik", draws))))
  },
  entry = function(found)
    new_entry("draws from the prior", "unbiased", found$log_evidence, uneven = TRUE)
)

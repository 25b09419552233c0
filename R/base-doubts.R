# All sentences of doubt about a fit, by name. The code that finds a doubt says its name and its
# numbers; the level of a sentence decides what becomes of it:
#
# failed    the estimate failed a check: in `fit$failed` and `fit$warnings`
# doubt     a warning that leaves the estimate in use: in `fit$warnings`

#' A sentence with its name
#' @noRd
say <- function(name, ...) stats::setNames(sprintf(SENTENCES[[name]][["text"]], ...), name)

# The levels of sentences. Those of models in other packages have no name and are failures.
levels_of <- function(sentences) {
  if (is.null(names(sentences))) return(character())
  vapply(SENTENCES[match(names(sentences), names(SENTENCES))], function(known)
    if (is.null(known)) "failed" else known[["level"]], "")
}

at_level <- function(sentences, level) {
  if (!length(sentences)) return(NULL)
  found <- sentences[levels_of(sentences) %in% level]
  if (length(found)) found
}

# unique() would drop the names.
distinct <- function(sentences)
  if (length(sentences) > 1) sentences[!duplicated(sentences)] else sentences

failed <- function(...) c(level = "failed", text = paste(...))
doubt <- function(...) c(level = "doubt", text = paste(...))


SENTENCES <- list(
  # Entries of the ledger ------------------------------------------------------------------------
  not_finite = failed("The estimate is not finite."),
  lost_digits = failed(
    "The noise has about %s of the size of the effects of groups. With several grouping factors",
    "the likelihood has lost its digits there, and the estimate may be many nats off. Give",
    "`auxiliary` a prior without such small noise, or use one grouping factor."),
  lost_counts = doubt(
    "The counts add up to %s, and of so many the log-likelihood has an error of up to %.2g by the",
    "rounding of its sums."),
  missed_part = failed(
    "The estimate has missed a part of the posterior: %s gives a log evidence of %s, which is %s",
    "nats more. %s"),
  under_bound = failed(
    "The estimate, %s, is below a lower bound of the log evidence, %s (%s), so it is too low by",
    "at least %s nats: a part of the posterior was missed. %s"),
  mode_behind = failed(
    "The particles have probably missed a part of the posterior: optimisation has found a",
    "posterior mode. By Laplace's approximation its mass is %s nats more than the estimate, and a",
    "reverse run from the mode to the prior gives %s nats more. %s"),
  impossible = failed(
    "%s gives a log evidence of %s, which is %s nats %s than the reported estimate (%.0f joint",
    "standard errors): one of the two is wrong. %s"),
  beside_exact = doubt(
    "%s gives a log evidence of %s, which is %s nats %s than the exact value (%.0f joint standard",
    "errors), and is wrong."),
  not_known = doubt(
    "The estimate is that of importance sampling, although %s. Its standard error, multiplied by",
    "%.0f, is uncertain."),
  thin = doubt(
    "%s of the importance-sampling estimate comes from parts of the proposal in which fewer than",
    "%.0f draws have weight, so its standard error, multiplied by %.0f, is still uncertain."),
  check_below = failed(
    "The importance-sampling check is %s nats lower than the reported estimate (%.0f joint",
    "standard errors), although it could only be too low by chance or by missing a part of the",
    "posterior: one of the two is wrong. Compare with another method, such as nested(), or give",
    "the early phase more moves."),
  runs_apart = failed(
    "A second run of the particles differs from the first by %s nats (%.0f joint standard errors),",
    "and importance sampling cannot say which of the two is right. Compare with nested(), or use",
    "several `replicates`."),
  inconclusive = doubt(
    "The importance-sampling check was inconclusive, and the sampler's own estimate is reported:",
    "%s."),
  missed_modes = failed(
    "A search has found posterior modes that the particles have missed. They raise the log",
    "evidence by %s (a rough estimate), and the reported estimate does not include them. Use more",
    "particles in the early phase, or compare with smc() or nested()."),
  missing = failed(
    "The search for posterior modes has not found all of them: those that it has missed raise the",
    "log evidence by about %s nats (an estimate from the modes that few of its climbs have",
    "reached). Compare with nested() or smc()."),
  uneven = doubt(
    "The weights of importance sampling are uneven: the %s. Its standard error was multiplied by",
    "%.0f."),
  one_dominates = failed(
    "One replicate dominates the mean of the evidence, so its standard error is unreliable."),

  # The particles --------------------------------------------------------------------------------
  collapsed = failed(
    "At some step almost all weight was on one or two particles: the evidence is probably far %s,",
    "and its standard error is unreliable. Use more annealing steps, more particles, or another",
    "method."),
  no_mean = failed(
    "A few draws carry the estimate: the tail of their weights is so heavy (Pareto k %.2f) that",
    "the evidence is probably too low, and its standard error is unreliable. Use another method."),
  few_chains = failed(
    "The chains' log weights have a standard deviation of %.1f nats, so a few chains dominate the",
    "estimate: the evidence is probably too low, and its standard error is unreliable. Use more",
    "annealing steps."),
  hardly_move = failed(
    "The particles hardly move: at %.0f%% of the distributions less than 1%% of the proposals are",
    "accepted, and the estimate may be wrong by several nats. Use a smaller `step_size` of %s(),",
    "or leave it out, so that it is tuned."),
  slow_moves = failed(
    "The particles move too little: after %s at each distribution, their renewal in the slowest",
    "direction is only %.0f%% (independent draws: 100%%), and the estimate may be wrong by several",
    "nats. %s"),
  wrong_steps = failed(
    "The steps of %s() are too %s: its particles are spread too %s (temperature %s instead of 1),",
    "and the estimate is probably %s %s. Use hmc(), which has an accept step, or %s."),
  heated = failed(
    "The particles are spread too widely (temperature %.2f instead of 1), and the estimate is",
    "probably about %s nats too low. Use shorter or more steps of the kernel, or larger batches."),
  ran_away = failed(
    "Before row %s the particles left the region where their gradients are accurate: the evidence",
    "is probably far too low, and its standard error is unreliable. Use `audit = TRUE`, larger",
    "batches, or another method."),
  laborious = failed(
    "The chunk that ends at row %s needed %s annealing steps (normally under %d), and the estimate",
    "may be too low. Are the rows sorted?"),
  astray = failed(
    "%s of %s draws are infinite because the kernel's steps are too long for these data, so the",
    "evidence cannot be trusted. Scale the columns, lower the rate, or use another kernel."),
  unbounded = failed(
    "%s of %s draws are infinite: the approximation is far wider than the posterior, and the",
    "evidence cannot be trusted. Use sgais()."),
  not_settled = failed(
    "The particles do not represent the posterior: shorter moves at the end %s their mean",
    "log-likelihood by %s (%.0f standard errors). A narrow part of the posterior has too %s",
    "particles, and the estimate is probably too %s. Use smc(kernel = slice()), hmc(accept = 0.95)",
    "with more `steps`%s."),
  displaced = failed(
    "The noise of the mini-batches has moved all points away from the posterior, by %s nats at the",
    "end, and the estimate may be wrong by several times as much: the standard error does not",
    "include this. Use %slarger batches, a smaller `rate`, or slice()."),
  wrong_gradient = failed(
    "`gradient` is not the gradient of `log_likelihood`: between two points the log-likelihood",
    "changes by %s, but by %s according to `gradient`. The estimate cannot be trusted."),
  rules_apart = failed(
    "The thermodynamic integral is %s nats %s than the stepping-stone estimate from the same",
    "particles: the mean log-likelihood changes too much from one power to the next. Use",
    "`rule = \"stepping\"`, or more steps."),
  chains_apart = failed(
    "%s: the draws do not represent the posterior, and the estimate may be wrong by several nats.",
    "Use more `steps`, smc() or nested()."),

  # Rows -----------------------------------------------------------------------------------------
  sudden = failed(
    "Row %s is very improbable under almost all particles: the evidence may be far too low. Are",
    "the rows sorted? Shuffle them."),
  sudden_shuffled = failed(
    "After row %s of the run the effective sample size was only %.0f particles: the evidence may",
    "be wrong by several nats. Use more `particles`, or compare with nested()."),
  hard_chunk = failed(
    "The chunk that ends at row %s needed %s annealing steps (normally one or two), and the",
    "estimate may be several nats too low. Is the row an outlier, or are the rows sorted? Compare",
    "with smc()."),
  still = failed(
    "Particles hardly moved in %s of %s chunks, first at row %s, because the steps of hmc() were",
    "too short or not accepted: the evidence may be far too low. Scale the columns, or use smc()",
    "or sgais()."),
  contradicting_chunk = failed(
    "The chunk that ends at row %s contradicts the rows before it: it leaves only a share of",
    "e^-%.0f of their posterior, and the estimate may be wrong by many nats. Is a row an outlier,",
    "or are the rows sorted? Compare with nested() or smc()."),
  digits = failed(
    "The log evidence is about %.0e in size, so its rounding error exceeds one nat and it cannot",
    "be compared with others. Scale the columns."),
  rows_changed = doubt(
    "The distribution of the rows changed when earlier rows were no longer in memory. The reported",
    "estimate is of all rows."),
  lost_rows = failed(
    "The distribution of the rows changed when earlier rows were no longer in memory, and the run",
    "went on from a sample of them. %s"),
  modes_apart = failed(
    "The sample of the rows shows further modes, far from the one around which sums over all rows",
    "are known, and cannot tell their masses: the estimate may lack them. Use a larger `keep`, or",
    "rows_cluster(), which asks about all rows at each mode."),
  sample_error_unknown = failed(
    "The error of using only a sample of the rows could not be computed, because the particles",
    "have left the posterior: the estimate cannot be trusted. %s"),
  sample_error = failed(
    "Only a sample of the rows stands for all of them. This adds a standard error of %s nats to",
    "the estimate. %s"),
  rule_unchecked = doubt(
    "The error of the rule that integrates out the effects is not known, because %s: use sgais(),",
    "or a larger `keep`."),
  needs_all_rows = doubt(
    "online_nested() needs all rows of a model with exchangeable components in memory, and stops",
    "with an error after %s rows: use sgais(), or a larger `keep`."),

  # Other methods --------------------------------------------------------------------------------
  near_copies = failed(
    "The kernel hardly moves the points it copies (renewal %.0f%%, independent draws: 100%%), so",
    "the live points are near copies of each other and the evidence cannot be trusted. Use more",
    "`steps`, or slice()."),
  uneven_ranks = failed(
    "The likelihoods of new points do not rank uniformly among the live points (largest deviation",
    "%.2f): the kernel does not reach the whole region above the likelihood threshold. Use more",
    "`steps`, or more `live` points if there are several modes."),
  copies = failed(
    "The particles were resampled %.0f times in a row while sweeps changed none of them, so they",
    "are copies of a few: the evidence is probably too low, and its standard error is unreliable.",
    "Use more `particles`, or another method."),
  few_met = failed(
    "Few draws have an appreciable transition density to the chosen state: the average rests on",
    "%.0f of them%s. The estimate may be wrong by several nats, and its standard error does not",
    "show it. Use more `draws`, or compare with smc(\"data\")."),
  one_state = failed(
    "The sweeps hardly leave one state, so the standard error ignores other parts of the",
    "posterior, and the estimate may be several nats too low. Compare with smc(\"data\") or",
    "nested()."),
  not_normal = failed(
    "The posterior is not close to normal around its modes: %s. The estimate and its standard",
    "error cannot be trusted; use sgais(), smc() or nested()."),
  modes_refused = failed(
    "The posterior has more modes than the %d for which there is memory, and the others hold a",
    "relevant part of the evidence: the estimate is too low. Use smc() or nested()."),
  modes_once = failed(
    "%.0f%% of the estimate comes from modes that few of %d optimisation runs have found, so there",
    "are probably more modes and the estimate is too low. Use more `starts`, or smc() or",
    "nested()."),
  no_maximum = doubt(
    "No maximum of the likelihood was found; the likelihood at the posterior mode is used",
    "instead."),
  bound_can_rise = doubt(
    "The best start reached the limit of `iterations`: more would raise the bound."),
  no_partitions = failed(
    "The chains over partitions have not reached the anchor or all numbers of groups, so there is",
    "no estimate. Use more `work`, or compare with nested()."),
  few_trips = failed(
    "The chains over partitions have gone from few groups to the most and back only %.0f times, so",
    "the estimate is unreliable. Use more `work`, or compare with nested()."),
  anchors_apart = failed(
    "Estimates relative to different numbers of components differ by %.1f standard errors. Use",
    "more `work`, or compare with nested()."),
  groups_apart = failed(
    "Chains that began with few groups and with many differ by %.1f standard errors, so they have",
    "not mixed. Use more `work`, or compare with nested()."),
  slow_partitions = failed(
    "The chains over partitions move slowly between numbers of groups: the standard error of %.1f",
    "nats is itself uncertain. Use more `work`, or compare with nested()."),
  target_not_reached = doubt(
    "The standard error of %.2g is not reached: %s. Use more particles or another method."),
  target_missed = doubt(
    "The standard error is %.2g and not %.2g, because the first runs were closer together than the",
    "later ones. Use more `replicates`."),

  # Model, prior and data ------------------------------------------------------------------------
  prior_conflict = doubt(
    "The data contradict the prior: %s. The evidence may be right, but it mostly says how badly",
    "the prior fits. %s"),
  prior_apart = failed(
    "`log_prior` and `draw_prior` of %s() do not belong together: from its draws the prior",
    "integrates to exp(%s) and not to 1 (standard error of the exponent %s). If the density is not",
    "normalised, the log evidence of methods that use it is wrong by %s, and that of others, such",
    "as nested(), is not; if the draws are from another distribution, all are wrong."),
  no_value = failed(
    "At %s where the posterior is, the object of the model had no value, and they were taken as",
    "impossible: the evidence may be too low. Use other starting values, or a prior without",
    "extreme values."),
  zero_columns = doubt("%s zero in all rows, so the data say nothing about %s."),
  aliased_columns = doubt(
    "%s of other columns, so only the prior tells their coefficients apart. The evidence is that",
    "of the model as it stands; a model without %s has another evidence."),
  same_response = doubt("The response `%s` is %s in all rows."),

  # Change points --------------------------------------------------------------------------------
  most_changes = doubt(
    "The largest number of changes that is allowed, %s, has a posterior probability of %s, so",
    "there may be more: give a larger `most`."),
  rough_changes = doubt(
    "The log evidence of a number of changes has an error of about %.2g, because positions are",
    "too far apart or the evidences of segments are uncertain: give more `blocks`, a larger",
    "`least`, or another `method`."),
  uneven_changes = doubt(
    "The weights of the draws of the shared parameters are uneven, so the evidences of numbers of",
    "changes are uncertain: give `sigma` and the coefficients priors that say more."),
  doubted_segments = doubt(
    "The evidence of %s could not be confirmed, so the changes there are uncertain: give a larger",
    "`least`, or another `method`.")
)

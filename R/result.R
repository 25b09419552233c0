# From the results of C to a fit: which estimate is reported (the headline), warnings, and draws.

#' @noRd
new_evidence <- function(runs, call, model, method, encoded, words, threads = 1, other_end = NULL,
                         settled = NULL) {
  climbs_em <- method$name == "bic" && is_latent(model)
  fits <- lapply(runs, function(out) {
    if (climbs_em) latent_bic_run(out, method, model, encoded)
    else if (method$estimator == "laplace") peak_run(out, method, model, encoded$args)
    else if (method$estimator == "variational") variational_run(out, method)
    else if (method$estimator == "partitions") partition_run(out, method, model, encoded)
    else one_run(out, method, modes = if (may_have_modes(model)) "several" else "one", model)
  })
  bounds <- method$estimator == "variational" || climbs_em
  first <- if (bounds) best_run(fits) else fits[[1]]
  headline <- if (length(fits) > 1 && !bounds) combine_runs(fits) else first$headline
  chosen <- lapply(fits, `[[`, "headline")
  points <- do.call(cbind, lapply(chosen, `[[`, "points"))
  log_weights <- pool_weights(chosen)
  work <- Reduce(`+`, lapply(fits, `[[`, "work"))
  gradient <- c(gradient_warning(model, encoded, method, points),
                displaced_warning(model, encoded, method, points))
  user <- if (is_latent(model)) user_state(model, encoded, points)
  else .Call(ffi_model, model_type(model), encoded$args, encoded$rows[, 0, drop = FALSE], "to_user",
             points, list())
  astray <- sum(rowSums(!is.finite(t(user))) > 0)
  doubts <- part_of(model, "doubts")(model, points, log_weights)
  failed <- c(headline$warnings, gradient, doubts, if (astray) astray_warning(astray, ncol(user)),
              other_end_warning(other_end, headline), settled_warning(settled))
  # BIC does not use the prior; and what particles that have run away say of it is left out
  conflict <- if (method$name != "bic")
    prior_conflict(model, encoded, points, log_weights, words,
                   length(c(failed, said_by_runs(fits, "failed"))) > 0)
  if (!is.null(first$sampler$draws)) colnames(first$sampler$draws) <- encoded$theta_names
  structure(
    list(
      log_evidence = headline$log_evidence, se = headline$se, source = headline$source,
      n = encoded$n,
      trace = first$trace, sampler = first$sampler, audit = first$audit, nested = first$nested,
      peaks = first$peaks, power = first$power, variational = first$variational,
      partitions = first$partitions,
      draws = named_draws(user, encoded$user_names), log_weights = log_weights,
      parameters = named_draws(points, encoded$theta_names),
      replicates = if (length(fits) > 1) replicate_table(fits),
      warnings = unique(c(said_by_runs(fits, "warnings"), failed, conflict,
                          column_warnings(model, encoded), method$note)),
      failed = unique(c(said_by_runs(fits, "failed"), failed,
                        if (method$name == "harmonic_mean") method$note)),
      prior_conflict = conflict, work = work, call = call, model = model, method = method,
      seed = words, design = encoded$design, args = encoded$args,
      data_id = data_id(encoded, threads), pairing = encoded$pairing,
      rows_id = if (!is.null(first$nested)) rows_id(encoded)
    ),
    class = "evidence"
  )
}

astray_warning <- function(astray, n) {
  paste0(astray, " of ", n,
         " draws are infinite because the kernel's steps are too long for these data, so the ",
         "evidence cannot be trusted. Scale the columns, lower the rate, or use another kernel.")
}

named_draws <- function(columns, names) {
  draws <- t(columns)
  colnames(draws) <- names
  draws
}

# The standard deviation of log weights, from those above the median. A few chains that are stuck
# far from the posterior have no weight, and leave the estimate as it is.
upper_spread <- function(log_weights) {
  middle <- stats::median(log_weights)
  above <- log_weights[log_weights > middle] - middle
  if (length(above)) sqrt(mean(above^2)) else 0
}

#' The estimates of one run, and which of them is reported
#' @noRd
one_run <- function(out, method, modes = "one", model = NULL) {
  trace <- out$trace
  log_weights <- if (is.null(out$log_weights)) rep(0, ncol(out$draws)) else drop(out$log_weights)
  sampler <- list(
    log_evidence = out$log_evidence, se = out$se, draws = t(out$draws),
    log_weights = normalise(log_weights)
  )
  # the particles saw the rows that are gone through the same sample as the check
  if (!is.null(out$past_se)) sampler$se <- sqrt(sampler$se^2 + drop(out$past_se)^2)
  # after a restart from a sample of the rows the particles' estimate has no known error
  if (isTRUE(drop(out$past_changed) > 0)) sampler$se <- Inf
  sampler$heating <- if (!is.null(out$heated)) step_heating(out, trace)
  else if (!is.null(trace$temperature)) heating(trace, ncol(sampler$draws))
  nested <- nested_of(out, trace, method$settings$live)
  if (isTRUE(method$settings$published == 1)) sampler$log_evidence <- out$published
  power <- power_of(out, sampler)
  if (identical(method$name, "bridge") && !is.finite(sampler$log_evidence)) no_bridge()
  if (identical(method$rule, "thermodynamic"))
    sampler[c("log_evidence", "se")] <- power[c("corrected", "se")]
  audit <- audit_of(out, sampler, AUDIT_LEAST_ESS[[modes]])
  headline <- if (!is.null(audit) && audit$passed) {
    list(log_evidence = audit$log_evidence, se = audit$se, source = "audit",
         points = out$audit_draws, log_weights = normalise(drop(out$audit_log_weights)))
  } else {
    list(log_evidence = sampler$log_evidence, se = sampler$se, source = "sampler",
         points = out$draws, log_weights = sampler$log_weights)
  }
  collapsed <- headline$source == "sampler" && min(trace$ess, Inf, na.rm = TRUE) < COLLAPSED_ESS
  spread <- if (identical(method$name, "ais")) upper_spread(log_weights) else 0
  failed <- c(
    nested_warnings(nested), chib_warnings(out, method, model), unmoved_warning(out),
    if (!collapsed && headline$source == "sampler" && is.finite(spread) &&
        spread^2 > log(length(log_weights))) sprintf(
      paste("The chains' log weights have a standard deviation of %.1f nats, so a few chains",
            "dominate the estimate: the evidence is probably too low, and its standard error is",
            "unreliable. Use more annealing steps."), spread),
    if (collapsed) paste0(
      "At some step almost all weight was on one or two particles: the evidence is probably far ",
      if (identical(method$rule, "thermodynamic")) "off" else "too low",
      ", and its standard error is unreliable. Use more annealing steps, more particles, or ",
      "another method."
    ),
    if (headline$source == "sampler") move_warnings(trace, method, sampler, modes),
    if (identical(method$rule, "thermodynamic")) thermodynamic_warning(power, out$se),
    if (identical(method$name, "bridge")) chains_warning(out$draws, method$settings$`1.particles`),
    if (!collapsed) sudden_row(trace, method),
    if (headline$source == "sampler" && is.null(out$heated)) heating_warning(sampler$heating),
    if (headline$source == "sampler") runaway_warning(trace),
    if (headline$source == "sampler") labour_warning(trace, method),
    past_warnings(out),
    sequential_warnings(trace, method, headline),
    contradicted(audit), missing_warning(audit),
    if (!is.finite(headline$log_evidence)) "The estimate is not finite."
  )
  list(
    headline = headline, sampler = sampler, audit = audit, nested = nested, power = power,
    trace = trace, failed = failed,
    warnings = unique(c(if (!is.null(audit) && !audit$passed) audit$reason,
                        unreached_warning(audit),
                        behind_warning(audit, sampler), uneven_warning(audit), failed)),
    work = if (is.null(attr(out, "challenge"))) work_of(out) else attr(out, "challenge")$work
  )
}

# If the particles have temperature T during the whole run, the estimate is in error by (d/2)(T-1)
# nats for each factor e by which the number of rows grows. With the default kernel the noise of
# gradients would raise T by NOISE_HEATS times the noise, if the kernel did not inject less noise to
# correct for it.
heating <- function(trace, d) {
  rows <- which(!is.na(trace$temperature) & trace$n > trace$n[1])
  if (length(rows) < 3) return(NULL)
  growth <- log(trace$n[rows] / trace$n[rows - 1])
  excess <- trace$temperature[rows] - 1
  noise <- sqrt(sum(growth^2 * 2 / (pmax(trace$ess[rows], 1) * d)))
  list(temperature = 1 + sum(growth * excess) / sum(growth), bias = -d / 2 * sum(growth * excess),
       se = d / 2 * noise,
       batches = -d / 2 * NOISE_HEATS *
       sum(growth * ifelse(is.na(trace$noise[rows]), 0, trace$noise[rows])))
}
NOISE_HEATS <- 0.2

heating_warning <- function(heating) {
  if (is.null(heating) || heating$bias > -1 || heating$bias > -4 * heating$se) return(NULL)
  sprintf(paste("The particles are spread too widely (temperature %.2f instead of 1), and the",
                "estimate is probably about %s nats too low. Use shorter or more steps of the",
                "kernel, or larger batches."), heating$temperature,
                format(signif(-heating$bias, 2), scientific = FALSE))
}

# In a good run the drift in a chunk is less than ten posterior variances per dimension. In runs
# that were thousands of nats too low it was a hundred to thirty thousand.
DRIFT_MOST <- 30

runaway_warning <- function(trace) {
  away <- which(trace$drift > DRIFT_MOST)[1]
  if (is.na(away)) return(NULL)
  sprintf(paste("Before row %s the particles left the region where their gradients are accurate:",
                "the evidence is probably far too low, and its standard error is unreliable. Use",
                "`audit = TRUE`, larger batches, or another method."),
                format(trace$n[away], big.mark = ",", scientific = FALSE))
}

# More annealing steps than a chunk ever needs if its rows are like those before.
labour_warning <- function(trace, method) {
  if (is.null(trace$lambda_steps) || is.null(trace$shortest) ||
      isTRUE(method$settings$`1.whole` == 1)) return(NULL)
  hard <- trace$n >= HARD_FROM & trace$lambda_steps > HARD_STEPS
  if (!any(hard)) return(NULL)
  sprintf(paste("The chunk that ends at row %s needed %s annealing steps (normally under %d),",
                "and the estimate may be too low. Are the rows sorted?"),
          count(trace$n[hard][1]), count(trace$lambda_steps[hard][1]), HARD_STEPS)
}
HARD_FROM <- 500
HARD_STEPS <- 25

# Latent variables are drawn row by row. If a row is improbable under almost all particles, the rows
# before did not predict it.
sudden_row <- function(trace, method) {
  if (!identical(method$path, "data") || is.null(trace$n) || is.null(trace$lambda) ||
      is.null(trace$ess)) return(NULL)
  if (!is.null(trace$particles)) return(NULL)
  if (!identical(method$settings$shuffle, 0)) return(sudden_shuffled(trace))
  if (min(trace$ess) > SUDDEN_SHARE * method$settings$`1.particles`) return(NULL)
  sprintf(paste("Row %s is very improbable under almost all particles: the evidence may be far",
                "too low. Are the rows sorted? Shuffle them."),
                count(trace$n[which.min(trace$ess)]))
}
SUDDEN_SHARE <- 0.03

# In random order the first row of a cluster is normally improbable under most particles, and sweeps
# renew the others.
sudden_shuffled <- function(trace) {
  if (min(trace$ess) > SUDDEN_LEAST) return(NULL)
  sprintf(paste("After row %s of the run the effective sample size was only %.0f particles: the",
                "evidence may be wrong by several nats. Use more `particles`, or compare with",
                "nested()."),
                count(trace$n[which.min(trace$ess)]), min(trace$ess))
}
SUDDEN_LEAST <- 4

#' Stepping stones and the thermodynamic integral, from the moments at each power
#' @noRd
power_of <- function(figures, sampler) {
  if (is.null(figures$moments)) return(NULL)
  path <- as.data.frame(t(figures$moments))
  width <- diff(path$lambda)
  last <- nrow(path)
  plain <- sum(width * (path$mean[-1] + path$mean[-last]) / 2)
  correction <- -sum(width^2 * diff(path$variance)) / 12
  list(stepping = sum(path$log_ratio[-last]), thermodynamic = plain, corrected = plain + correction,
       se = sqrt(sampler$se^2 + (correction / 4)^2 +
                 (plain + correction - sum(path$log_ratio[-last]))^2), path = path)
}

normalise <- function(log_weights) {
  top <- max(log_weights)
  log_weights - top - log(sum(exp(log_weights - top)))
}

COLLAPSED_ESS <- 1.5  # smallest effective sample size of the run
# Least effective sample size of the importance-sampling check, as a share of the ideal one (for a
# posterior that is normal around its modes). With several modes the proposal may miss a part of the
# posterior, which the weights show only if a draw happens to fall there, so the limit is stricter.
AUDIT_LEAST_ESS <- c(one = 0.25, several = 0.6)
# Between this share and AUDIT_LEAST_ESS the standard error is unreliable: it is multiplied by
# AUDIT_DOUBT, and the check is reported only if its error is still smaller than the sampler's.
AUDIT_DOUBTED_ESS <- 0.1
AUDIT_DOUBT <- 3
AUDIT_UNEVEN_ESS <- 0.15 # below this share the fit has a warning
AUDIT_MOST_K <- 0.7     # Pareto shape of its weights
AUDIT_MOST_Z <- 4       # joint standard errors between check and sampler
# The check is reported in spite of uneven weights if it exceeds the sampler by so many nats and two
# standard errors: an unbiased estimate is e^5 times the truth with probability at most e^-5.
AUDIT_AHEAD <- 5

#' The results of the importance-sampling check, and whether it is reported
#'
#' @param strict Whether the weights must be even also if the check is far above the sampler.
#' @noRd
audit_of <- function(figures, sampler, least_ess, strict = FALSE) {
  if (is.null(figures$audit_failed)) return(NULL)
  draws <- if (is.null(figures$audit_draws)) 0 else ncol(figures$audit_draws)
  missing <- if (is.null(figures$audit_missing)) 0 else log1p(drop(figures$audit_missing))
  audit <- c(
    list(log_evidence = drop(figures$audit_log_evidence),
         se = sqrt(sum(c(figures$audit_se, figures$past_se, missing)^2)), missing = missing,
         laplace = drop(figures$audit_laplace), modes = drop(figures$audit_modes), draws = draws),
    audit_weights(figures),
    list(unreached = drop(figures$audit_unreached), chance = drop(figures$audit_chance),
                                first = isTRUE(drop(figures$audit_first) == 1))
  )
  doubted <- isTRUE(audit$ess < least_ess * audit$ideal &&
                    audit$ess >= AUDIT_DOUBTED_ESS * audit$ideal)
  audit$uneven <- isTRUE(audit$ess < AUDIT_UNEVEN_ESS * audit$ideal)
  # what the tail adds to the error says this already
  if (doubted) audit$se <- max(audit$se, AUDIT_DOUBT * plain_error(figures))
  # if the particles were drawn by the check, they are no independent estimate
  if (doubted && (audit$se < sampler$se || audit$first)) least_ess <- AUDIT_DOUBTED_ESS
  failed <- drop(figures$audit_failed) != 0
  # importance sampling can miss a part of the posterior but cannot add one, so only a higher
  # estimate of the sampler contradicts it
  joint <- sqrt(audit$se^2 + sampler$se^2)
  audit$below <- !failed && isTRUE(sampler$log_evidence - audit$log_evidence > AUDIT_MOST_Z * joint)
  audit$reason <- audit_reason(audit, sampler, failed, least_ess)
  ahead <- !strict && !failed &&
    isTRUE(audit$log_evidence - sampler$log_evidence > AUDIT_AHEAD + 2 * sampler$se)
  if (!is.null(audit$reason) && ahead) {
    if (!doubted) audit$se <- AUDIT_DOUBT * audit$se
    audit["reason"] <- list(NULL)
  }
  audit$passed <- is.null(audit$reason)
  audit
}

plain_error <- function(figures) {
  unseen <- if (is.null(figures$audit_unseen)) 0 else figures$audit_unseen
  sqrt(max(drop(figures$audit_se^2 - unseen^2), 0) + sum(figures$past_se^2))
}

audit_reason <- function(audit, sampler, failed, least_ess) {
  prefix <- paste0("The importance-sampling check was inconclusive, and the sampler's own ",
                   "estimate is reported: ")
  if (failed)
    return(paste0(prefix, "no posterior mode with positive definite curvature was found."))
  if (!is.finite(audit$log_evidence)) return(paste0(prefix, "its weights are not finite."))
  reason <- if (audit$ess < least_ess * audit$ideal) {
    paste0("its ", effective_share(audit))
  } else if (!is.na(audit$pareto_k) && audit$pareto_k > AUDIT_MOST_K) {
    sprintf("its weights have a heavy tail (Pareto k %.2f)", audit$pareto_k)
  }
  if (is.null(reason) && !audit$below) return(NULL)
  gap <- sampler$log_evidence - audit$log_evidence
  distance <- sprintf("the check is %.1f nats lower than the sampler (%.0f joint standard errors)",
                      gap, gap / sqrt(audit$se^2 + sampler$se^2))
  paste0(prefix, paste(c(reason, if (audit$below) distance), collapse = ", and "), ".",
         if (audit$below) paste0(" Compare with another method, such as `nested()`, or give the ",
                                 "early phase more moves."))
}

effective_share <- function(audit) {
  sprintf("effective sample size is %s of its draws (%.0f%% is usual)", show_share(audit$ess),
          100 * audit$ideal)
}

show_share <- function(share)
  if (isTRUE(share < 0.01)) "under 1%" else sprintf("%.0f%%", 100 * share)

# The check is reported although its weights are uneven.
uneven_warning <- function(audit) {
  if (is.null(audit) || !audit$passed || !audit$uneven) return(NULL)
  paste0("The weights of importance sampling are uneven: the ", effective_share(audit),
         ". Its standard error was multiplied by ", AUDIT_DOUBT, ".")
}

# Modes that only one climb reached estimate the mass of those that none did (Good and Turing). What
# they could add is part of the standard error of the check.
MISSING_MOST <- 0.1 # nats

missing_warning <- function(audit) {
  if (is.null(audit) || !audit$passed || !isTRUE(audit$missing > MISSING_MOST)) return(NULL)
  sprintf(paste("The search for posterior modes has not found all of them: those that it has",
                "missed raise the log evidence by about %s nats (an estimate from the modes that",
                "only one of its climbs has reached). Compare with nested() or smc()."),
          format(signif(audit$missing, 2)))
}

# The sampler's estimate is reported, and the search or the check contradicts it.
contradicted <- function(audit) {
  if (is.null(audit) || audit$passed) return(NULL)
  c(if (audit$below) audit$reason, unreached_warning(audit))
}

#' Warnings of single runs
#'
#' If fewer than half of the runs have failed, their warnings are left out: the mean of several runs
#' is close to the best run, and their spread shows that others are lower.
#' @noRd
said_by_runs <- function(fits, what) {
  failed <- vapply(fits, function(fit) length(fit$failed) > 0, NA)
  counted <- if (any(failed) && mean(failed) < 0.5) fits[!failed] else fits
  unlist(lapply(counted, `[[`, what))
}

#' Several runs: the mean of the evidence, with a standard error from their spread
#' @noRd
combine_runs <- function(fits) {
  estimate <- vapply(fits, function(f) f$headline$log_evidence, 0)
  top <- max(estimate)
  ratio <- exp(estimate - top)
  own <- vapply(fits, function(f) f$headline$se, 0)
  # a few runs may be close together by chance
  se <- max(stats::sd(ratio) / mean(ratio) / sqrt(length(ratio)),
            sqrt(sum((ratio * own)^2)) / sum(ratio), na.rm = TRUE)
  dominated <- max(ratio) / sum(ratio) > max(0.5, 2 / length(ratio))
  list(
    log_evidence = top + log(mean(ratio)), se = se, source = "replicates",
    warnings = if (dominated)
      "One replicate dominates the mean of the evidence, so its standard error is unreliable."
  )
}

replicate_table <- function(fits) {
  data.frame(
    log_evidence = vapply(fits, function(f) f$headline$log_evidence, 0),
    se = vapply(fits, function(f) f$headline$se, 0),
    source = vapply(fits, function(f) f$headline$source, ""),
    sampler = vapply(fits, function(f) f$sampler$log_evidence, 0)
  )
}

# Draws of all runs together; each run is weighted by its evidence.
pool_weights <- function(chosen) {
  pooled <- unlist(lapply(chosen, function(h) h$log_weights + h$log_evidence))
  normalise(pooled)
}

#' Log marginal likelihood
#'
#' The log evidence of a fit as a plain number.
#'
#' @param x A fit from [evidence()].
#' @param ... Unused.
#'
#' @return A number, in nats.
#'
#' @examples
#' logml(evidence(gaussian_mean(), c(1.2, 0.4, 2.1), seed = 1))
#'
#' @export
logml <- function(x, ...) UseMethod("logml")

#' @export
logml.evidence <- function(x, ...) x$log_evidence

# From the results of C to a fit: entries of the ledger, what is wrong with an estimate, and draws.

# By engine, what makes a fit of what a run has returned: one_run() where there is none.
RESULTS <- list(
  laplace = function(out, method, model, encoded) peak_run(out, method, model, encoded),
  variational = function(out, method, model, encoded) variational_run(out, method),
  partitions = function(out, method, model, encoded) partition_run(out, method, model, encoded)
)

#' @param checks From further_checks(): entries of the ledger, and sentences.
#' @param times For runs of different numbers of particles: how many times those of the method each
#'   has.
#' @noRd
new_evidence <- function(runs, call, model, method, encoded, words, threads = 1, checks = NULL,
                         times = NULL) {
  asked <- method
  method <- unclass(method) # see new_problem()
  climbs_em <- has_trait(method, "no prior") && is_latent(model)
  result <- if (climbs_em) latent_bic_run else RESULTS[[method$estimator]]
  fits <- lapply(runs, function(out) {
    if (!is.null(result)) result(out, method, model, encoded)
    else one_run(out, method, modes = if (may_have_modes(model)) "several" else "one", model)
  })
  for (i in seq_along(times)) fits[[i]]$headline$times <- times[i]
  bounds <- of_engine(method, "bounds") || climbs_em
  first <- if (bounds) best_run(fits) else fits[[1]]
  headline <- if (length(fits) > 1 && !bounds) combine_runs(fits, combination_of(method))
  else first$headline
  own <- if (headline$source == "replicates") run_entries(fits, headline) else first$ledger
  ledger <- ledger_of(own, checks$entries)
  chosen <- lapply(fits, `[[`, "headline")
  points <- if (length(chosen) == 1) chosen[[1]]$points
  else do.call(cbind, lapply(chosen, `[[`, "points"))
  log_weights <- pool_weights(chosen)
  correct <- part_of(model, "correction")$of
  correction <- if (!is.null(correct) && has_correction(headline, method))
    correct(model, encoded, points, log_weights, words)
  unchecked <- if (!is.list(correction)) correction
  if (is.list(correction)) {
    headline$log_evidence <- headline$log_evidence + correction[["log_evidence"]]
    headline$se <- sqrt(headline$se^2 + correction[["se"]]^2)
  }
  drawn <- both_scales(model, encoded, points)
  astray <- if (all_finite(drawn$draws)) 0
  else sum(rowSums(!is.finite(drawn$draws)) > 0 & log_weights > NO_WEIGHT)
  at <- which(ledger$entry == headline$entry)[1]
  if (!is.null(checks) && length(impossible_beside(ledger, at)))
    ledger <- ledger_of(ledger, checks$third())
  said <- c(said_by_runs(fits), headline$said, unchecked,
            gradient_warning(model, encoded, method, points, log_weights),
            displaced_warning(model, encoded, method, points),
            part_of(model, "doubts")(model, points, log_weights, encoded),
            if (astray && length(method$kernels)) say("astray", astray, ncol(points))
            else if (astray) say("unbounded", astray, ncol(points)),
            contradictions(ledger, at, advice_for(model, method)),
            if (!is.null(checks)) checks$said(headline))
  # BIC does not use the prior; and what particles that have run away say of it is left out
  conflict <- if (!has_trait(method, "no prior"))
    prior_conflict(model, encoded, points, log_weights, words, length(at_level(said, "failed")) > 0)
  if (!is.null(first$sampler$draws)) colnames(first$sampler$draws) <- encoded$theta_names
  if (identical(first$sampler$draws, drawn$parameters)) first$sampler$draws <- drawn$parameters
  if (identical(first$sampler$log_weights, log_weights)) first$sampler$log_weights <- log_weights
  structure(
    c(list(log_evidence = headline$log_evidence, se = headline$se, source = headline$source,
           n = number_of_rows(encoded), verdict = verdict_of(ledger, at)),
      parts_named(first, c("trace", "sampler", "audit", "nested", "peaks", "power", "variational",
                           "partitions")),
      list(modes = modes_of(model, encoded, first$mode_table)),
      checks$parts,
      if (is.list(correction)) list(correction = correction),
      list(
        draws = drawn$draws, log_weights = log_weights, parameters = drawn$parameters,
        replicates = if (length(fits) > 1) replicate_table(fits, method),
        warnings = distinct(c(said, conflict, column_warnings(model, encoded),
                              notes_of_method(method, first$trace))),
        failed = distinct(c(at_level(said, "failed"),
                            if (has_trait(method, "overstates")) method$note)),
        prior_conflict = conflict, work = Reduce(`+`, lapply(fits, `[[`, "work")), call = call,
        model = model, method = asked, seed = words,
        version = c(logevidence = PACKAGE_VERSION, R = r_version()),
        design = structure(encoded$design, class = "evidence_design"), args = encoded$args,
        redraw = NULL, data_id = data_id(encoded, threads), pairing = encoded$pairing,
        rows_id = if (!is.null(first$nested)) rows_id(encoded)
      )),
    class = "evidence"
  )
}

# Averages of few particles are too low by half the variance of their logarithms: `note_from` is the
# share of the error from which on the note of the method says so.
notes_of_method <- function(method, trace) {
  if (is.null(method$note_from) || !length(trace$se)) return(method$note)
  last <- trace$se[length(trace$se)]
  if (isTRUE((last^2 - trace$se[1]^2) / 2 <= method$note_from * last)) NULL else method$note
}

# Is there an estimate from weighted draws of the posterior?
has_correction <- function(headline, method)
  is.finite(headline$log_evidence) && isTRUE(headline$se >= 0) && !has_trait(method, "no prior")

#' Draws on the user's scale and in unconstrained space; equal ones are one object in memory
#' @noRd
both_scales <- function(model, encoded, points) {
  user <- if (is_latent(model)) user_state(model, encoded, points)
  else .Call(ffi_model, model_type(model), encoded$args, encoded$rows[, 0, drop = FALSE], "to_user",
             points, list())
  parameters <- named_draws(points, encoded$theta_names)
  user <- named_draws(user, encoded$user_names)
  list(draws = if (identical(user, parameters)) parameters else user, parameters = parameters)
}

#' The table of modes of a run (src/core/audit.h) as posterior_modes() returns it
#' @noRd
modes_of <- function(model, encoded, table) {
  if (is.null(table)) return(NULL)
  at <- both_scales(model, encoded, table[-(1:3), , drop = FALSE])$draws
  order <- order(-table[1, ])
  found <- data.frame(share = exp(normalise(table[1, ])), log_density = table[2, ],
                      climbs = table[3, ], at, check.names = FALSE)
  found <- found[order, ]
  rownames(found) <- NULL
  found
}

# Draws that are made when they are asked for -----------------------------------------------------

# What these draws are made from, and parts of a fit that have draws in them.
REDRAWN_FROM <- c("rows", "n", "args", "theta_names", "user_names")
DRAWN <- c("draws", "log_weights", "parameters", "sampler")

#' A fit with the rows from which its draws are made again, if that takes less memory
#'
#' Only for methods whose run takes about a millisecond.
#' @noRd
without_draws <- function(fit, encoded, runs) {
  if (!isTRUE(.subset2(.subset2(fit, "method"), "quick")) || runs > 1 ||
      length(encoded$rows) > length(fit$draws)) return(fit)
  fit[DRAWN] <- list(NULL)
  fit$redraw <- encoded[REDRAWN_FROM]
  fit
}

#' The parts of a fit with draws, from the run repeated with the same random numbers
#' @param n Number of draws; `NULL` for as many as the run makes.
#' @noRd
redrawn <- function(fit, n = NULL) {
  encoded <- fit$redraw
  method <- if (is.null(n)) fit$method else with_settings(fit$method, draws = n)
  problem <- new_problem(fit$model, encoded, method, fit$seed)
  points <- conduct(problem, encoded$rows)$normal_draws
  parts <- both_scales(fit$model, encoded, points)
  parts$log_weights <- normalise(rep(0, ncol(points)))
  parts$sampler <- list(log_evidence = fit$log_evidence, se = fit$se, draws = parts$parameters,
                        log_weights = parts$log_weights)
  parts
}

#' A fit with all its draws in it
#' @noRd
with_draws <- function(fit) {
  if (is.null(fit$redraw)) return(fit)
  parts <- redrawn(fit)
  fit[names(parts)] <- parts
  fit["redraw"] <- list(NULL)
  fit
}

# The text of getRversion(), which alone takes a fiftieth of a call on few rows.
r_version <- function() paste(.subset2(R.version, "major"), .subset2(R.version, "minor"), sep = ".")

WORK <- c("lambda_steps", "likelihoods", "gradients", "seconds")

# What parts of a fit must be, and, where a function has a second argument, in this fit. All that
# use a fit take its parts by `$` or `[[`, which ask this table: so a fit of which a part was
# removed or replaced is refused in a sentence, wherever it is used.
FIT_PARTS <- local({
  number <- function(x) length(x) == 1 && (is.numeric(x) || identical(x, NA))
  # a list in which these are single numbers
  has <- function(x, needed)
    is.list(x) && all(vapply(needed, function(name) number(x[[name]]), NA))
  numbers <- function(...) {
    needed <- c(...)
    function(x) is.null(x) || has(x, needed)
  }
  # not known of some objects of other packages, which are custom_model()s
  rows <- function(x, fit) length(x) == 1 && is.numeric(x) &&
    (is.finite(x) || is.na(x) && !is.nan(x) && model(.subset2(fit, "model")) &&
       asks_r(.subset2(fit, "model")))
  estimate <- function(x) length(x) == 1 && is.numeric(x) && !is.nan(x)
  call_or_none <- function(x) is.null(x) || is.call(x)
  list_or_none <- function(x) is.null(x) || is.list(x) && (!length(x) || !is.null(names(x)))
  saved <- function(x) is.list(x) && is.list(x[["spec"]]) && has_names(x[["spec"]]) &&
    (is.null(x[["stream"]]) || is.list(x[["stream"]]))
  text_or_none <- function(x) is.null(x) || is.character(x)
  # a list from which parts were taken or moved has lost its class
  design <- function(x) inherits(x, "evidence_design") && list_or_none(x)
  sampler <- function(x) has(x, c("log_evidence", "se"))
  versions <- function(x)
    is.null(x) || is.character(x) && all(c("logevidence", "R") %in% names(x))
  points <- function(x) is.numeric(x) && is.matrix(x) && nrow(x) > 0 && !anyNA(x)
  # as many draws on both scales
  draws <- function(x, fit) points(x) && (is.null(.subset2(fit, "parameters")) ||
                                           nrow(x) == NROW(.subset2(fit, "parameters")))
  table <- function(x, ...) is_whole_table(x) && all(c(...) %in% names(x))
  model <- function(x) is_made(x, "evidence_model")
  method <- function(x) is_made(x, "evidence_method")
  # the part that the words about where the estimate comes from are about
  source <- function(x, fit) is_one_string(x) &&
    (!x %in% c("replicates", "partitions", "audit") || !is.null(.subset2(fit, x))) &&
    (x != "laplace" || has(.subset2(fit, "peaks"), "modes")) &&
    (x != "importance" || has(.subset2(fit, "peaks"), c("modes", "draws", "ess", "pareto_k")))
  # a weight for each draw, which add up to one; a fit has no draws while it has what they are made
  # from
  weights <- function(x, fit) is.numeric(x) && length(x) && isTRUE(abs(sum(exp(x)) - 1) < 1e-6) &&
    (is.null(.subset2(fit, "redraw")) || is.null(.subset2(fit, "log_weights"))) &&
    (is.null(.subset2(fit, "parameters")) || length(x) == NROW(.subset2(fit, "parameters")))
  # no number only where the fit says so; no error only where the verdict has none either
  log_evidence <- function(x, fit) length(x) == 1 && is.numeric(x) &&
    (is.finite(x) || length(.subset2(fit, "failed")) > 0 ||
       "not_finite" %in% names(.subset2(fit, "warnings")))
  verdict <- function(x) table(x, "entry", "kind", "log_evidence", "se", "says") &&
    is.character(x$says) && is.numeric(x$se)
  se <- function(x, fit) {
    own <- .subset2(fit, "verdict")
    estimate(x) && (!is.na(x) || length(.subset2(fit, "failed")) > 0 ||
                      verdict(own) && anyNA(own$se[startsWith(own$says, "reported")]))
  }
  list(log_evidence = log_evidence, se = se, n = rows, source = source,
       verdict = verdict, sampler = sampler,
       trace = function(x) is_whole_table(x) && (!length(x) || "n" %in% names(x)),
       audit = numbers("log_evidence", "se", "modes", "draws", "ess", "pareto_k"),
       nested = function(x) numbers("live")(x) && (is.null(x) || is_whole_table(x$points)),
       modes = function(x) is.null(x) || table(x, "share", "log_density", "climbs"),
       peaks = list_or_none,
       power = function(x) is.null(x) || is.list(x) && table(x$path, "lambda", "mean", "variance"),
       variational = function(x) numbers("bound", "symmetry", "relabellings")(x) &&
         (is.null(x) || is_whole_table(x$restarts)),
       partitions = function(x) numbers("sweeps", "accepted")(x) &&
         (is.null(x) || is_whole_table(x$ladder)),
       bound = numbers("log_evidence", "bound", "symmetry"), second_look = list_or_none,
       draws = draws, log_weights = weights, parameters = points,
       replicates = function(x) is.null(x) || table(x, "log_evidence", "se"),
       warnings = text_or_none, failed = text_or_none, prior_conflict = text_or_none,
       work = function(x) is.numeric(x) && all(WORK %in% names(x)) && !anyNA(x[WORK]),
       model = model, method = method,
       seed = function(x) is.numeric(x) && length(x) == 2 && !anyNA(x), version = versions,
       design = design, args = list_or_none,
       redraw = function(x) is.null(x) || is.list(x) && all(c("rows", "n", "args") %in% names(x)),
       call = call_or_none, data_id = text_or_none, pairing = list_or_none, rows_id = text_or_none,
       state = function(x) is.null(x) || saved(x))
})

# The same of a fit that was stopped before its end
INCOMPLETE_PARTS <- c(
  FIT_PARTS[c("n", "call", "model", "method", "seed")],
  list(log_evidence = function(x) length(x) == 1 && is.numeric(x),
       se = function(x) length(x) == 1 && is.numeric(x),
       reason = is_one_string, rows_read = FIT_PARTS$n,
       trace = function(x) is.null(x) || is_whole_table(x),
       state = function(x) !is.null(x) && FIT_PARTS$state(x)))

checked_part <- function(fit, name, value, parts = FIT_PARTS) {
  right <- parts[[name]]
  if (is.null(right) || follows(right, value, fit)) return(value)
  refuse_altered("A fit", "evidence()", name, value, "make the fit again.")
}

#' @export
`$.evidence` <- function(x, name) {
  value <- .subset2(x, name, exact = FALSE)
  if (is.null(value) && name %in% DRAWN && !is.null(.subset2(x, "redraw")))
    value <- redrawn(x)[[name]]
  checked_part(x, name, value)
}

#' @export
`[[.evidence` <- function(x, i, exact = TRUE) {
  if (!is_one_string(i)) return(.subset2(x, i, exact = exact))
  if (i %in% DRAWN) `$.evidence`(x, i) else checked_part(x, i, .subset2(x, i, exact = exact))
}

#' An error if a part of the fit is not what it must be
#' @noRd
check_parts <- function(fit) {
  drawn <- if (!is.null(.subset2(fit, "redraw"))) DRAWN
  for (name in setdiff(names(FIT_PARTS), drawn)) checked_part(fit, name, .subset2(fit, name))
}

#' @export
`$.incomplete_evidence` <- function(x, name)
  checked_part(x, name, .subset2(x, name, exact = FALSE), INCOMPLETE_PARTS)

# The parts with these names; those that a list does not have are NULL.
parts_named <- function(x, names) {
  parts <- x[names]
  names(parts) <- names
  parts
}

#' The estimates of one run, and which of them is reported
#' @noRd
one_run <- function(out, method, modes = "one", model = NULL) {
  table <- out$trace
  trace <- out$trace <- unclass(table)
  log_weights <- if (is.null(out$log_weights)) rep(0, ncol(out$draws)) else drop(out$log_weights)
  sampler <- list(
    log_evidence = out$log_evidence, se = out$se, draws = t.default(out$draws),
    log_weights = normalise(log_weights)
  )
  # the particles saw the rows that are gone through the same sample as the check
  if (!is.null(out$past_se)) sampler$se <- sqrt(sampler$se^2 + drop(out$past_se)^2)
  # a single particle has no spread
  if (is_lone(method)) sampler$se <- NA_real_
  # after a restart from a sample of the rows the particles' estimate has no known error
  if (isTRUE(drop(out$past_changed) > 0)) sampler$se <- Inf
  sampler$heating <- if (!is.null(out$heated)) step_heating(out, trace)
  else if (!is.null(trace$temperature)) heating(trace, ncol(sampler$draws))
  nested <- nested_of(out, trace, method$settings$live)
  if (isTRUE(method$settings$published == 1)) sampler$log_evidence <- out$published
  power <- power_of(out, sampler)
  if (has_setting(method, "bridge") && !is.finite(sampler$log_evidence)) no_bridge()
  if (identical(method$rule, "thermodynamic"))
    sampler[c("log_evidence", "se")] <- power[c("corrected", "se")]
  flaws <- c(sampler_flaws(out, method, sampler, power, nested, log_weights, modes, model),
             no_mean_warning(method, log_weights))
  audit <- audit_of(out, modes)
  # where the posterior has separate modes, particles too may lack those that no climb has found
  if (isTRUE(audit$known)) sampler$se <- sqrt(sampler$se^2 + audit$missing^2)
  ledger <- ledger_of(sampler_entry(out, sampler, method, flaws, isTRUE(audit$first)),
                      audit_entries(audit, sampler), attr(out, "second_run")$entry)
  at <- headline(ledger)
  if (!is.null(audit)) {
    audit$passed <- ledger$entry[at] == AUDIT_ENTRY
    audit$reason <- if (!audit$passed) inconclusive(audit)
  }
  ledger$se[at] <- widened(ledger, at)
  headline <- if (isTRUE(audit$passed)) {
    list(log_evidence = audit$log_evidence, se = ledger$se[at], source = "audit",
         points = out$audit_draws, log_weights = normalise(drop(out$audit_log_weights)))
  } else {
    list(log_evidence = sampler$log_evidence, se = ledger$se[at], source = "sampler",
         points = out$draws, log_weights = sampler$log_weights)
  }
  headline$entry <- ledger$entry[at]
  list(
    headline = headline, sampler = sampler, audit = audit, nested = nested, power = power,
    mode_table = out$mode_table, trace = table, ledger = ledger,
    said = c(if (!isTRUE(audit$passed)) c(flaws, runs_apart(ledger, at)),
             audit_sentences(audit, entry_at(ledger, at)),
             past_warnings(out, method, audit),
             if (!is.finite(headline$log_evidence)) say("not_finite")),
    work = if (is.null(attr(out, "second_run"))) work_of(out) else attr(out, "second_run")$work
  )
}

# The particles of both runs have known errors, which do not explain their difference.
runs_apart <- function(ledger, at) {
  other <- grep("^particles of", ledger$entry)
  if (!length(other)) return(NULL)
  gap <- abs(ledger$log_evidence[other] - ledger$log_evidence[at])
  se <- ledger$se[c(other, at)]
  if (are_apart(gap, se))
    say("runs_apart", show_nats(gap, 2), gap / sqrt(sum(se^2)))
}

#' What is wrong with the estimate of the particles
#' @noRd
sampler_flaws <- function(out, method, sampler, power, nested, log_weights, modes, model) {
  trace <- out$trace
  collapsed <- !is_lone(method) && min(trace$ess, Inf, na.rm = TRUE) < COLLAPSED_ESS
  spread <- if (has_trait(method, "independent")) upper_spread(log_weights) else 0
  thermodynamic <- identical(method$rule, "thermodynamic")
  c(
    nested_warnings(nested), chib_warnings(out, model), unmoved_warning(out),
    if (collapsed) say("collapsed", if (thermodynamic) "off" else "too low")
    else if (is.finite(spread) && spread^2 > log(length(log_weights))) say("few_chains", spread),
    move_warnings(trace, method, sampler, modes, is_discrete(model)),
    if (thermodynamic) thermodynamic_warning(power, out$se),
    if (has_setting(method, "bridge")) chains_warning(out$draws, method$settings$`1.particles`),
    if (!collapsed) sudden_row(trace, method),
    if (is.null(out$heated)) heating_warning(sampler$heating),
    runaway_warning(trace), labour_warning(trace, method),
    sequential_warnings(trace, method, sampler$log_evidence)
  )
}

#' The entry of a method's own estimate
#' @noRd
sampler_entry <- function(out, sampler, method, flaws, first) {
  # particles that are draws of the check are no estimate of their own
  unknown <- first || length(flaws) || !is.finite(sampler$se)
  kind <- if (has_trait(method, "overstates")) "upper bound"
  else if (keeps_law(method)) "unbiased" else "approximate"
  new_entry(own_entry(method), kind, sampler$log_evidence, sampler$se,
            error = if (unknown) Inf else if (kind == "unbiased") sampler$se
            else weight_limit("doubted") * sampler$se,
            ess = if (length(out$trace$ess)) out$trace$ess[length(out$trace$ess)] else NA_real_,
            cost = evaluations_of(out) - if (is.null(out$audit_cost)) 0 else drop(out$audit_cost),
            reportable = TRUE,
            doubt = if (first) DRAWN_BY_CHECK else if (length(flaws)) FAILED_OWN else "")
}

own_entry <- function(method) {
  points <- of_engine(method, "points")
  if (is.null(points)) paste0(method$name, "()") else points
}

# Annealing with moves that leave their target as it is gives unbiased weights; with steps of
# stochastic gradients, or volumes of nested sampling, there is no such property.
keeps_law <- function(method) {
  of_engine(method, "weighs") && !has_setting(method, "bridge") &&
    !identical(method$rule, "thermodynamic") &&
    all(vapply(method$kernels, is_reversible, NA)) &&
    !any(unlist(method$settings[endsWith(names(method$settings), ".gradient")]) != "full")
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
  say("heated", heating$temperature, format(signif(-heating$bias, 2), scientific = FALSE))
}

# In a good run the drift in a chunk is less than ten posterior variances per dimension. In runs
# that were thousands of nats too low it was a hundred to thirty thousand.
DRIFT_MOST <- 30

runaway_warning <- function(trace) {
  away <- which(trace$drift > DRIFT_MOST)[1]
  if (is.na(away)) return(NULL)
  say("ran_away", format(trace$n[away], big.mark = ",", scientific = FALSE))
}

# More annealing steps than a chunk ever needs if its rows are like those before.
labour_warning <- function(trace, method) {
  if (is.null(trace$lambda_steps) || is.null(trace$shortest) ||
      isTRUE(method$settings$`1.whole` == 1)) return(NULL)
  hard <- trace$n >= HARD_FROM & trace$lambda_steps > HARD_STEPS
  if (!any(hard)) return(NULL)
  say("laborious", count(trace$n[hard][1]), count(trace$lambda_steps[hard][1]), HARD_STEPS)
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
  say("sudden", count(trace$n[which.min(trace$ess)]))
}
SUDDEN_SHARE <- 0.03

# In random order the first row of a cluster is normally improbable under most particles, and sweeps
# renew the others.
sudden_shuffled <- function(trace) {
  if (min(trace$ess) > SUDDEN_LEAST) return(NULL)
  say("sudden_shuffled", count(trace$n[which.min(trace$ess)]), min(trace$ess))
}
SUDDEN_LEAST <- 4

#' Stepping stones and the thermodynamic integral, from the moments at each power
#' @noRd
power_of <- function(figures, sampler) {
  if (is.null(figures$moments)) return(NULL)
  path <- as.data.frame(t(figures$moments))
  last <- nrow(path)
  width <- diff(path$lambda)
  plain <- width * (path$mean[-1] + path$mean[-last]) / 2
  correction <- -width^2 * diff(path$variance) / 12
  path$rule <- c(interval_rules(path, correction, figures$trace$ess), NA)
  ratio <- path$log_ratio[-last]
  rule <- path$rule[-last]
  correction[rule != "corrected"] <- 0
  corrected <- sum(ifelse(rule == "ratio", ratio, plain + correction))
  list(stepping = sum(ratio), thermodynamic = sum(plain), corrected = corrected,
       se = sqrt(sampler$se^2 + (sum(correction) / 4)^2 + (corrected - sum(ratio))^2), path = path)
}

# The estimate of draws or chains that do not interact is the mean of their weights.
no_mean_warning <- function(method, log_weights) {
  if (!has_trait(method, "still") && !has_trait(method, "independent")) return(NULL)
  k <- .Call(ffi_pareto_k, as.double(log_weights))[1]
  if (isTRUE(k > NO_MEAN_K)) say("no_mean", k)
}

# Above this shape a Pareto distribution has no mean. In 240 runs of likelihood_weighting() 44% of
# the 212 above it were more than two standard errors off, and one of the 28 others.
NO_MEAN_K <- 1

#' By which rule each interval between two powers is integrated
#'
#' The mean log likelihood rises with the power, so the integral is within half of the rise times
#' the width from the trapezoid. A correction that leaves this range by more than chance explains
#' comes from a variance that says nothing about the interval: below a wide prior the variance at
#' power zero is that of a few far draws, and may not exist. Of the mean there the same is true, but
#' not of the ratio of the stepping stones, whose terms are at most as large as the likelihoods are.
#'
#' @param ess_after Effective sample sizes after the steps of the powers, before resampling.
#' @return `"corrected"`; or `"ratio"` for the stepping stone, where its draws know it; or `"plain"`
#'   for the trapezoid alone.
#' @noRd
interval_rules <- function(path, correction, ess_after) {
  last <- nrow(path)
  half <- diff(path$lambda) / 2
  rise <- abs(half * diff(path$mean))
  squares <- path$variance / path$ess
  chance <- half * sqrt(squares[-1] + squares[-last])
  within <- abs(correction) <= pmax(rise, chance)
  ifelse(is.finite(correction) & within %in% TRUE, "corrected",
         ifelse(ess_after / path$ess[-last] >= KNOWN_RATIO, "ratio", "plain"))
}
# Share of the effective draws that is left if log weights have a standard deviation of one nat.
KNOWN_RATIO <- exp(-1)

COLLAPSED_ESS <- 1.5  # smallest effective sample size of the run

#' The results of the importance-sampling check
#' @noRd
audit_of <- function(figures, modes) {
  if (is.null(figures$audit_failed)) return(NULL)
  own <- figures[startsWith(names(figures), "audit_")]
  names(own) <- substring(names(own), 7)
  draws <- if (is.null(own$draws)) NA else ncol(own$draws)
  missing <- if (is.null(own$missing)) 0 else log1p(drop(own$missing))
  audit <- list(log_evidence = drop(own$log_evidence),
                se = sqrt(sum(c(own$se, figures$past_se, missing)^2)), missing = missing,
                laplace = drop(own$laplace), modes = drop(own$modes),
                draws = if (is.na(draws)) 0 else draws,
                ess = drop(own$ess) / draws, ideal = drop(own$ideal) / draws,
                pareto_k = drop(own$pareto_k), unreached = drop(own$unreached),
                chance = drop(own$chance), first = isTRUE(drop(own$first) == 1),
                cost = if (is.null(own$cost)) NA_real_ else drop(own$cost),
                no_mode = drop(own$failed) != 0)
  audit$thin <- drop(own$thin)
  verdict <- weights_verdict(audit, modes, drop(own$given_scales))
  audit$uneven <- verdict$uneven
  audit$known <- !audit$no_mode && is.finite(audit$log_evidence) && verdict$known
  # what the tail adds to the error says this already
  if (verdict$doubted || !audit$known)
    audit$se <- max(audit$se, weight_limit("doubted") * plain_error(figures))
  audit
}

plain_error <- function(figures) {
  unseen <- if (is.null(figures$audit_unseen)) 0 else figures$audit_unseen
  sqrt(max(drop(figures$audit_se^2 - unseen^2), 0) + sum(figures$past_se^2))
}

# Do modes that the search has found raise the evidence of the particles by more than chance does?
lacks_modes <- function(audit) isTRUE(audit$unreached > audit$chance)

#' The entries of the check: its estimate, and what its search says of modes that were missed
#' @noRd
audit_entries <- function(audit, sampler) {
  if (is.null(audit)) return(NULL)
  ledger_of(
    if (!audit$no_mode && is.finite(audit$log_evidence))
      new_entry(AUDIT_ENTRY, "unbiased", audit$log_evidence, audit$se,
                error = if (audit$known) audit$se else Inf, ess = audit$ess * audit$draws,
                cost = audit$cost, reportable = TRUE, uneven = !audit$known,
                doubt = if (audit$known) "" else "uneven weights"),
    if (!audit$no_mode && audit$modes > 0)
      new_entry("Laplace approximation", "approximate", audit$laplace),
    if (lacks_modes(audit))
      new_entry("particles and missed modes", "approximate",
                sampler$log_evidence + audit$unreached)
  )
}

#' Why the error of the check is not known, or NULL if it is
#' @noRd
inconclusive <- function(audit) {
  if (audit$no_mode) return("no posterior mode with positive definite curvature was found")
  if (!is.finite(audit$log_evidence)) return("its weights are not finite")
  if (audit$known) return(NULL)
  if (isTRUE(audit$pareto_k > weight_limit("most_k")))
    return(sprintf("its weights have a heavy tail (Pareto k %.2f)", audit$pareto_k))
  if (is.na(audit$laplace)) return("no posterior mode was found, and its weights are not even")
  paste0("its ", effective_share(audit))
}

effective_share <- function(audit) {
  sprintf("effective sample size is %s of its draws (%.0f%% is usual)", show_share(audit$ess),
          100 * audit$ideal)
}

# Modes that few climbs reached estimate the mass of those that none did (Good and Turing). What
# they could add is part of the standard error of the check; above so many nats it is said.
MISSING_MOST <- 0.1

#' What the check says of the reported estimate
#' @noRd
audit_sentences <- function(audit, own) {
  if (is.null(audit)) return(NULL)
  if (audit$passed) return(c(
    if (audit$missing > MISSING_MOST) say("missing", format(signif(audit$missing, 2))),
    if (audit$uneven) say("uneven", effective_share(audit), weight_limit("doubted"))
    else if (!audit$known) say("not_known", inconclusive(audit), weight_limit("doubted"))
    else thin_words(audit)
  ))
  gap <- own$log_evidence - audit$log_evidence
  c(
    if (!is.null(audit$reason)) say("inconclusive", audit$reason),
    if (audit$known && isTRUE(gap > 0) && are_apart(gap, audit$se, own$se))
      say("check_below", show_nats(gap, 2), gap / sqrt(audit$se^2 + own$se^2)),
    if (lacks_modes(audit))
      say("missed_modes", if (audit$unreached >= 1e4) "more than 10,000 nats"
          else paste("about", show_nats(audit$unreached, 2), "nats"))
  )
}

#' Warnings of single runs
#'
#' If fewer than half of the runs have failed, their warnings are left out: the mean of several runs
#' is close to the best run, and their spread shows that others are lower.
#' @noRd
said_by_runs <- function(fits) {
  if (length(fits) == 1) return(fits[[1]]$said)
  failed <- vapply(fits, function(fit) length(at_level(fit$said, "failed")) > 0, NA)
  counted <- if (any(failed) && mean(failed) < 0.5) fits[!failed] else fits
  unlist(lapply(counted, `[[`, "said"))
}

#' Several runs: one estimate, with a standard error from their spread
#' @param combine How they become one.
#' @noRd
combine_runs <- function(fits, combine) {
  times <- times_of(fits)
  both <- combine_estimates(vapply(fits, function(f) f$headline$log_evidence, 0), combine, times)
  own <- vapply(fits, function(f) f$headline$se, 0)
  # a few runs may be close together by chance
  se <- max(both$se, sqrt(sum((both$weight * own)^2)) / sum(both$weight), na.rm = TRUE)
  share <- both$weight / sum(both$weight)
  # a run of half of all particles has half of the weight
  dominated <- any(share > pmax(0.5, 2 / length(fits), 2 * times / sum(times)))
  list(
    log_evidence = both$value, se = se, source = "replicates", combine = combine,
    entry = paste0(COMBINED[[combine]], " of ", count_of(length(fits), "run"),
                   if (are_sized(fits)) " by particles"),
    said = if (dominated) say("one_dominates")
  )
}

#' The entries of several runs: each, and their mean
#' @noRd
run_entries <- function(fits, headline) {
  own <- lapply(fits, function(fit)
    entry_at(fit$ledger, match(fit$headline$entry, fit$ledger$entry)))
  entries <- do.call(ledger_of, own)
  entries$entry <- paste0("run ", seq_along(fits), ", ", entries$entry)
  entries$reportable <- rep(FALSE, length(fits))
  # the spread of the runs is the error; that of a single one may be too small
  entries$uneven <- rep(TRUE, length(fits))
  kinds <- unique(entries$kind)
  # of unbiased estimates only the arithmetic mean is unbiased
  kept <- length(kinds) == 1 && (headline$combine == "arithmetic" || kinds != "unbiased")
  ledger_of(
    new_entry(headline$entry, if (kept) kinds else "approximate",
              headline$log_evidence, headline$se, cost = sum(entries$cost), reportable = TRUE),
    entries)
}

# How many times the particles of the method each run has.
times_of <- function(fits)
  vapply(fits, function(f) if (is.null(f$headline$times)) 1 else f$headline$times, 0)

# Runs of a call that doubles the particles have their number.
are_sized <- function(fits) any(vapply(fits, function(f) !is.null(f$headline$times), NA))

replicate_table <- function(fits, method) {
  table <- data.frame(
    log_evidence = vapply(fits, function(f) f$headline$log_evidence, 0),
    se = vapply(fits, function(f) f$headline$se, 0),
    source = vapply(fits, function(f) f$headline$source, ""),
    sampler = vapply(fits, function(f) f$sampler$log_evidence, 0)
  )
  if (are_sized(fits)) table$particles <- times_of(fits) * particles_of(method)
  table
}

# Draws of all runs together; each run is weighted by its evidence. Runs without a finite one have
# no weight, or the same if there is no other.
pool_weights <- function(chosen) {
  level <- vapply(chosen, `[[`, 0, "log_evidence")
  level[!is.finite(level)] <- if (any(is.finite(level))) -Inf else 0
  level <- level + log(times_of(lapply(chosen, function(one) list(headline = one))))
  if (length(chosen) == 1) return(normalise(chosen[[1]]$log_weights + level))
  normalise(unlist(Map(function(run, level) run$log_weights + level, chosen, level)))
}

#' Raise the warnings of a fit as one condition of class `logevidence_warning`
#'
#' Its first line is the model, because several may be fitted in one call, as by lapply().
#' Notes on a method, which do not depend on the data, are not raised; print() shows them.
#'
#' @param known Sentences that were raised before, for example by the fit that this one continues.
#' @return The fit.
#' @noRd
raise_warnings <- function(fit, known = NULL) {
  without_numbers <- function(sentences) gsub("[0-9]", "", sentences)
  if (!length(.subset2(fit, "warnings"))) return(fit)
  sentences <- fit_warnings(fit)
  sentences <- sentences[!without_numbers(sentences) %in% without_numbers(known)]
  if (length(sentences)) warning(new_warning(sentences, model_line(fit$model)))
  fit
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

# What to do about an estimate that has missed a part of the posterior.
advice_for <- function(model, method) {
  if (is_latent(model)) return("Use smc(\"data\") or nested() with more particles.")
  others <- setdiff(c("nested()", "sgais()"), paste0(method$name, "()"))
  paste0("Use ", paste(others, collapse = ", "), ", or laplace() with `importance`, and scale the ",
         "columns if their means are far from the prior means.")
}

# Numbers of rows at which a walk has started again from the prior, because the law of the rows had
# changed or the run had lost a mode.
restarted_at <- function(trace) {
  if (is.null(trace$restarts) || is.null(trace$n) || nrow(trace) < 2) return(NULL)
  trace$n[c(FALSE, diff(trace$restarts) > 0)]
}

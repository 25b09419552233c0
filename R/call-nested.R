# Fits of nested(): merged, or continued to a smaller tolerance.

#' Continue nested sampling
#'
#' `update(fit, tol = )` continues a fit by [nested()] to a tolerance that is smaller than before;
#' its argument `data` has the data of the fit, by default those of its call. Independent fits are
#' merged by [c()][c.evidence].
#'
#' @examples
#' model <- linear_regression(dist ~ speed, sigma = 15, prior_sd = 10)
#' one <- evidence(model, cars, nested(live = 100), seed = 1)
#' two <- evidence(model, cars, nested(live = 100), seed = 2)
#' c(one, two)
#' update(one, tol = 1e-3)
#'
#' @seealso [nested()]
#' @name nested_runs
NULL

check_is_nested <- function(fit, name = "...") {
  check_is_fit(fit, name)
  if (is.null(fit$nested))
    fail("Only fits of nested() can be merged or continued, not one of ", fit$method$name, "().")
  if (is_latent(fit$model))
    fail("Fits of models with latent variables cannot be merged or continued: their points are ",
         "not all kept.")
  if (!is.null(fit$replicates))
    fail("A fit of several replicates cannot be merged or continued; fit once, with more `live`.")
  fit
}

#' @param frame Where the data of the fit's call are looked for.
#' @noRd
update_nested <- function(object, tol, data, frame) {
  began <- now()
  check_is_nested(object, "object")
  if (is.null(tol))
    fail("`tol` must be given: the new tolerance, smaller than ", object$method$settings$tol, ".")
  tol <- check_number(tol, "tol", 0, object$method$settings$tol, TRUE, TRUE)
  if (object$nested$live != object$method$settings$live)
    fail("A merged fit cannot be continued: continue its parts, then merge them.")
  if (is.null(data)) data <- eval(object$call$data, frame)
  if (!is.null(object$na.action)) data <- without_incomplete(object$model, data)
  encoded <- encode(object$model, data)
  if (!identical(rows_id(encoded), object$rows_id))
    fail("`data` must be those of the fit, so that its run can be continued.")
  method <- with_settings(object$method, tol = tol)
  method <- from_levels(method, object$nested$levels, object$parameters)
  problem <- new_problem(object$model, encoded, method, object$seed)
  problem$replicate <- as.double(STREAMS[["continued"]] + nrow(object$nested$levels))
  if (asks_r(object$model)) {
    restore <- own_generator(c(problem$replicate, object$seed[2]), keep = FALSE)
    on.exit(restore())
  }
  out <- conduct(problem, encoded$rows)
  method <- without_levels(method)
  method$call$tol <- tol
  checks <- further_checks(problem, encoded, list(out), object$model, method, object$seed)
  fit <- new_evidence(list(out), object$call, object$model, method, encoded, object$seed,
                      checks = checks)
  fit$call$method <- method$call
  fit$na.action <- object$na.action
  for (name in c("evaluations", "seconds"))
    fit$trace[[name]] <- fit$trace[[name]] + utils::tail(object$trace[[name]], 1)
  fit$trace <- rbind(object$trace, fit$trace)
  fit$work <- fit$work + object$work
  # of the whole call, not of C alone
  fit$work[["seconds"]] <- object$work[["seconds"]] + now() - began
  # of the whole run; the new part may be short or empty
  fit$nested$renewal <- stats::median(fit$trace$renewal)
  raise_warnings(with_doubts(fit, nested_warnings(fit$nested)), known = object$warnings)
}

#' The fit of all points of some fits
#' @noRd
together <- function(fits) {
  for (fit in fits) check_is_nested(fit)
  if (anyDuplicated(do.call(rbind,
                            lapply(fits, function(fit) fit$nested$levels[c("log_lik", "tie")]))))
    fail("Fits can be pooled only if they are independent: two of these share points.")
  levels <- do.call(rbind, lapply(fits, function(fit) fit$nested$levels))
  sorted <- order(levels$log_lik, levels$tie)
  levels <- levels[sorted, ]
  rownames(levels) <- NULL
  levels$live <- live_counts(levels)
  pool <- function(part) do.call(rbind, lapply(fits, `[[`, part))[sorted, , drop = FALSE]
  fit <- fits[[1]]
  live <- sum(vapply(fits, function(f) f$nested$live, 0))
  volumes <- .Call(ffi_volumes, levels$log_lik, levels$live, as.double(live), 200, fit$seed)
  sums <- stats::setNames(volumes$sums,
                          c("log_evidence", "se", "information", "lower", "upper", "published",
                            "simulated"))
  renewal <- mean(vapply(fits, function(f) f$nested$renewal, 0))
  fit$nested <- nested_part(levels, volumes$log_volumes, volumes$log_weights,
                            c(trapezoid = sums[["log_evidence"]],
                              sums[c("lower", "upper", "published", "simulated")]),
                            sums[["information"]], renewal, live,
                            mean(vapply(fits, function(f) f$nested$echo, 0)))
  fit$draws <- pool("draws")
  fit$parameters <- pool("parameters")
  fit$log_weights <- normalise(volumes$log_weights)
  fit$trace <- do.call(rbind, lapply(fits, `[[`, "trace"))
  fit$work <- Reduce(`+`, lapply(fits, `[[`, "work"))
  fit$log_evidence <-
    sums[[if (fit$method$settings$published == 1) "published" else "log_evidence"]]
  fit$se <- sums[["se"]]
  fit$sampler <- list(log_evidence = fit$log_evidence, se = fit$se, draws = fit$parameters,
                      log_weights = fit$log_weights)
  known <- unlist(lapply(fits, `[[`, "warnings"))
  fit$warnings <- fit$failed <- NULL
  fit <- with_doubts(fit, c(known, nested_warnings(fit$nested)))
  fit$verdict <- merged_verdict(fit, fits)
  raise_warnings(fit, known = known)
}

# The merged points are reported; the estimates of the single fits stand beside.
merged_verdict <- function(fit, fits) {
  ledger <- new_entry("live points", "approximate", fit$log_evidence, fit$se, reportable = TRUE,
                      cost = sum(fit$work[c("likelihoods", "gradients")]))
  for (i in seq_along(fits))
    ledger <- ledger_of(ledger, new_entry(paste("fit", i), "approximate", fits[[i]]$log_evidence,
                                          fits[[i]]$se, uneven = TRUE))
  verdict_of(ledger, 1)
}

#' Number of live points when each of the sorted `levels` was removed: those drawn before and not
#' removed earlier
#' @noRd
live_counts <- function(levels) {
  n <- nrow(levels)
  keys <- order(order(c(levels$log_lik, levels$birth), c(levels$tie, levels$birth_tie),
                      rep(0:1, each = n)))
  death <- keys[seq_len(n)]
  birth <- sort(keys[n + seq_len(n)])
  # a new point is drawn just after the removal of the point whose level is its threshold
  as.double(findInterval(death, birth) - seq_len(n) + 1)
}

# check_model() for variational Bayes: is the bound a bound, and do updates raise it? The same
# functions are there for maximum likelihood by EM, where the bound is the log-likelihood.

BOUND <- list(
  rows = 6,          # at which bounds are compared with the evidence
  particles = 1000,  # whose weights estimate it, from states or from draws of the prior
  draws = 10000,
  least_ess = 100,   # of these weights
  starts = 3,
  sweeps = 8,        # updates of all factors
  rounding = 1e-9    # relative to the bound
)

#' The checks of the bound of a model
#'
#' @param evidence_of Function of rows: an estimate of their log evidence as `weighted_mean()`
#'   returns it.
#' @param possible Function of a state or point: is it possible, with finite densities?
#' @param point A state or point from which a q may start.
#' @return A list of functions for `run_checks()`; empty if the model has no bound.
#' @noRd
bound_checks <- function(bench, evidence_of, possible, point) {
  checks <- list()
  if (bench$is$factors[1] > 0) {
    q <- new_factors(bench, "bound")
    checks <- list(
      `bound calls` = function() check_bound_calls(q),
      `bound start` = function() check_bound_start(q, point()),
      `bound updates` = function() check_bound_updates(q),
      bound = function() check_bound(q, evidence_of),
      `bound draws` = function() check_bound_draws(q, possible)
    )
  }
  if (bench$is$factors[2] > 0) {
    em <- new_factors(bench, "maximum")
    checks <- c(checks, list(
      `maximum calls` = function() check_bound_calls(em),
      `maximum updates` = function() check_bound_updates(em)
    ))
  }
  checks
}

#' The functions of q of one table of a model, for some of its rows
#' @noRd
new_factors <- function(bench, table, rows = bench$rows) {
  maximum <- table == "maximum"
  ask <- function(what, q = NULL, ...)
    bench$ask(what, q, rows = rows, maximum = as.double(maximum), ...)
  own <- list(
    bench = bench, rows = rows, maximum = maximum, ask = ask,
    factors = seq_len(bench$is$factors[1 + maximum]) - 1,
    start = function(...) ask("q_start", seed = a_seed(), ...)$theta,
    update = function(q, factor) ask("q_update", q, factor = factor)$theta,
    bound = function(q) ask("q_bound", q)$value
  )
  own$of <- function(rows) new_factors(bench, table, rows)
  own$sweep <- function(q) {
    for (factor in own$factors) q <- own$update(q, factor)
    q
  }
  own
}

# Does each function give the same result in calls one after the other and in parallel?
check_bound_calls <- function(q) {
  bench <- q$bench
  one <- q$start()
  other <- q$sweep(q$start())
  call <- function(what, q_now, ...)
    a_call(bench, what, q_now, maximum = as.double(q$maximum), ...)
  functions <- c("q_start", "q_update", "q_bound", if (!q$maximum) c("q_draw", "q_symmetry"))
  numbers <- function(answer) c(answer$theta, answer$first, answer$value)
  off <- vapply(stats::setNames(nm = functions), function(what) {
    starts <- what == "q_start"
    answers <- bench$calls(list(
      call(what, if (!starts) one, seed = c(0, 7)),
      call(what, if (!starts) other, seed = c(0, 8)),
      call(what, if (!starts) one, seed = c(0, 7), soil = NaN, behind = NaN)
    ))
    difference(numbers(answers[[1]]), numbers(answers[[3]]))
  }, 0)
  if (bench$is$threads > 1) {
    at_once <- bench$calls(list(c(call("q_update", one), list(with = call("q_update", other),
                                                              seconds = CHECK$threads))))[[1]]$value
    off <- c(off, `two threads` = at_once)
  }
  against(off, 0, "the same call gives the same, whatever was called and is in scratch memory")
}

check_bound_start <- function(q, point) {
  starts <- c(lapply(seq_len(BOUND$starts), function(i) q$start()),
              list(q$start(other = as.double(point))))
  bounds <- vapply(starts, q$bound, 0)
  holding(all(is.finite(bounds)), sum(!is.finite(bounds)), "a q to start from has a finite bound",
          if (!all(is.finite(bounds[seq_len(BOUND$starts)]))) "a random one" else
            if (!all(is.finite(bounds))) "one around a given point")
}

check_bound_updates <- function(q) {
  falls <- numeric()
  for (start in seq_len(BOUND$starts)) {
    now <- q$start()
    before <- q$bound(now)
    for (sweep in seq_len(BOUND$sweeps)) for (factor in q$factors) {
      now <- q$update(now, factor)
      after <- q$bound(now)
      # a likelihood may have no maximum
      if (q$maximum && !is.finite(after)) break
      fall <- if (is.finite(after)) (before - after) / max(1, abs(before)) else Inf
      falls <- c(falls, stats::setNames(max(fall, 0), paste("factor", factor)))
      before <- after
    }
  }
  against(falls, BOUND$rounding, if (q$maximum) "no update lowers the likelihood"
          else "no update lowers the bound")
}

#' For few rows, for which the evidence can be estimated without q
#' @noRd
check_bound <- function(q, evidence_of) {
  for (n in c(BOUND$rows, 3, 1)) {
    if (n > ncol(q$rows)) next
    rows <- q$rows[, sort(sample.int(ncol(q$rows), n)), drop = FALSE]
    truth <- evidence_of(rows)
    if (truth$ess < BOUND$least_ess) next
    few <- q$of(rows)
    bounds <- vapply(seq_len(BOUND$starts), function(i) {
      now <- few$start()
      for (sweep in 1:20) now <- few$sweep(now)
      few$bound(now) + few$ask("q_symmetry", now, seed = a_seed())$value
    }, 0)
    excess <- max(bounds) - truth$log_mean
    return(holding(isTRUE(excess <= log1p(CHECK$z * truth$se) + 1e-6), excess,
                   "the bound is below the evidence",
                   paste0("by ", format(-excess, digits = 2), ", se ",
                          format(truth$se, digits = 1), ", for ", count_of(n, "row"))))
  }
  not_checked("too few draws have weight")
}

#' The log of the mean of weights, the relative standard error, and the effective sample size
#' @noRd
weighted_mean <- function(log_weights) {
  top <- max(log_weights)
  if (!is.finite(top)) return(list(log_mean = NaN, se = Inf, ess = 0))
  weights <- exp(log_weights - top)
  list(log_mean = top + log(mean(weights)),
       se = stats::sd(weights) / mean(weights) / sqrt(length(weights)),
       ess = sum(weights)^2 / sum(weights^2))
}

check_bound_draws <- function(q, possible) {
  now <- q$sweep(q$start())
  draws <- lapply(1:20, function(i) q$ask("q_draw", now, seed = a_seed())$first)
  wrong <- sum(!vapply(draws, possible, NA))
  gain <- q$ask("q_symmetry", now, seed = a_seed())$value
  most <- q$bench$log_symmetry
  gains <- isTRUE(gain >= -1e-6 && gain <= most + 1e-6)
  holding(wrong == 0 && gains, wrong, "draws from q are possible, with finite densities",
          if (!gains) paste0("relabelling adds ", format(gain, digits = 3), ", not between 0 and ",
                             format(most, digits = 3)))
}

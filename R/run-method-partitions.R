# partitions(): the evidence of a mixture for all numbers of components, from chains over partitions
# of the rows (src/estimators/partitions/), and its use as the default where importance sampling
# around the modes fails.

#' The evidence of mixtures from partitions of the rows
#'
#' For [gaussian_mixture()] on data in memory, of up to some thousands of rows. A mixture with more
#' components than the data have clusters has no posterior modes that a normal density fits, but its
#' evidence follows from that with fewer components. The default of [evidence()] uses this method
#' where importance sampling around the modes fails, on up to 1,000 rows.
#'
#' @param anchor `NULL`, or the number of components whose evidence the others are compared with, at
#'   most that of the model; 1 is in closed form. `NULL`, the default, begins with a number at which
#'   importance sampling around the modes has even weights.
#' @param chains Number of independent chains, an even number of at least 4.
#' @param work Largest number of evaluations of the density of a row in a group, and of changes of a
#'   group by a row. The chains end earlier if the standard error is below 0.03. They go on for up
#'   to three times this work if it is above 0.1.
#' @param draws Number of posterior draws.
#'
#' @details
#' Weights, means and variances are integrated out. What is left are the labels of the rows, which
#' divide them into groups. A division into \eqn{t} groups has the same density for every number of
#' components \eqn{K}, up to a factor \eqn{c(K, t)} that is known: the number of ways to give the
#' groups \eqn{K} labels, and the prior of the labels. So
#' \deqn{Z_K = \sum_t c(K, t) S_t,}{Z[K] = sum_t c(K, t) S[t],}
#' with the same sums \eqn{S_t} for all \eqn{K}. Chains over divisions (Gibbs updates of single
#' rows, and proposals that split a group or merge two) visit all numbers of groups \eqn{t}, by
#' weights that are found first and then stay. Their visits estimate all \eqn{S_t} relative to the
#' evidence of the anchor.
#'
#' Without `anchor` the chains begin at the largest number of components whose evidence is known
#' with a standard error of at most 0.1 from importance sampling around the modes, or at 1. Numbers
#' from there on, up to six, are further anchors if dual importance sampling (Lee and Robert 2016)
#' has even weights: its draws come from the posteriors given 256 of the divisions. Its error
#' includes what no chain has visited, which is estimated from what only one chain has visited (Chao
#' 1984). The estimate is the mean over the anchors that has the smallest variance. If two of them
#' contradict each other, the fit has failed.
#'
#' Half of the chains begin with few groups and half with many. If they do not agree, or if no chain
#' has gone from few groups to many and back, the fit has a warning and has failed. The standard
#' error is from the autocorrelations of the chains and from their spread, together with that of the
#' anchor. If the default of [evidence()] has chosen this method and it has failed so, the default
#' goes on with [sgais()], and the fit has no `partitions`: with many rows in clusters that overlap,
#' whole clusters hardly ever change. Draws of the parameters are exact draws given divisions from
#' the chains.
#'
#' @return An object of class `"evidence_method"` for [evidence()]. Its fits have `partitions`, a
#'   list: `anchor` (the best one: `components`, `log_evidence`, `se`); `anchors`, a data frame with
#'   the same of all anchors, their `share` in the estimate and, of those by dual importance
#'   sampling, `unseen`: the estimated part of the posterior that no chain has visited; `ladder`, a
#'   data frame with a row for each number of `components` up to that of the model: `log_evidence`,
#'   `se`, `apart` (the difference between chains that began with few and with many groups, in
#'   standard errors), `anchor` (the best one), `trips` (how often chains went from the most groups
#'   to those of the first anchor) and `disagree` (the largest difference from another anchor, in
#'   standard errors); `occupied`, the posterior probabilities of the numbers of groups that have
#'   rows; `sweeps`; and `accepted`, the share of proposals to split or merge that were accepted.
#'
#' @references
#' Chao, A. (1984). Nonparametric estimation of the number of classes in a population. *Scandinavian
#' Journal of Statistics* 11, 265-270.
#'
#' Lee, J. E. and Robert, C. P. (2016). Importance sampling schemes for evidence approximation in
#' mixture models. *Bayesian Analysis* 11, 573-597.
#'
#' Nobile, A. (2004). On the posterior distribution of the number of components in a finite mixture.
#' *Annals of Statistics* 32, 2044-2073.
#'
#' Dahl, D. B. (2005). Sequentially-allocated merge-split sampler for conjugate and nonconjugate
#' Dirichlet process mixture models. Technical report, Texas A&M University.
#'
#' @examples
#' fit <- evidence(gaussian_mixture(components = 3), scale(faithful$waiting),
#'                 partitions(work = 1e6), seed = 1)
#' fit
#' fit$partitions$ladder
#'
#' @seealso [gaussian_mixture()], whose `components` may be several numbers
#' @family methods
#' @aliases partitions
#' @export
method_partitions <- function(anchor = NULL, chains = 8, work = 4.2e7, draws = 1000) {
  if (!is.null(anchor)) anchor <- check_count(anchor, "anchor", 1, 64)
  chains <- check_count(chains, "chains", 4, 1000)
  if (chains %% 2) refuse(chains, "chains", "an even number")
  method <- new_method("partitions", match.call(), estimator = "partitions", traits = "components",
                       chains = chains,
                       work = check_number(work, "work", 1),
                       draws = check_count(draws, "draws", 2, 1e5))
  method$wanted <- anchor
  method
}

# Anchors -----------------------------------------------------------------------------------------

# Rows up to which the default uses partitions. With more rows modes are sharp, and sweeps long.
PARTITION_ROWS <- 1000
# Importance sampling around the modes is reported above the first share of the ideal effective
# sample size, for weights at half of it have hidden errors of 0.3 nats. It can be an anchor above
# the second, with many draws above the third; below the fourth its standard error is doubled.
PARTITION_SUITS <- 0.75
PARTITION_EVEN <- 0.5
PARTITION_ANCHOR <- 0.25
PARTITION_SURE <- 0.6
PARTITION_SE <- 0.1 # of an anchor
# Importance sampling around the modes is not used if a larger share of the posterior has a
# component without rows, which has no mode of its own: refitted proposals have missed it with even
# weights.
PARTITION_EMPTY <- 0.02
PARTITION_HIDDEN <- 0.02 # errors of refitted draws that even weights do not show
PARTITION_DRAWS <- c(least = 2000, rough = 4000, careful = 8000)
# Anchors are looked for up to so many numbers of components above the last one that was found.
PARTITION_BEYOND <- 1
# Climbs x rows x components: a mode with a fifth of the mass can have a basin that 23 climbs miss
PARTITION_CLIMBS <- c(rough = 1e4, careful = 2e5)
PARTITION_STARTS <- c(12, 300)
PARTITION_USUAL <- 50 # a careful look makes no fewer, or as many as laplace() takes
PARTITION_TWICE <- 1000 # rows x components up to which a rough look is made twice
PARTITION_CELLS <- c(rough = 2e6, careful = 2e7) # draws x rows x columns x components
PARTITION_STREAM <- 2^28 + 2^27 # random number streams that no replicate of evidence() uses

has_partitions <- function(model) isTRUE(part_of(model, "partitions"))

#' The method of a call on data in memory: where the default would fail, partitions()
#' @noRd
method_for_rows <- function(model, method, encoded, words) {
  if (method$name == "partitions") {
    if (!has_partitions(model))
      fail("partitions() needs a mixture whose parameters can be integrated out, such as ",
           "gaussian_mixture(), not ", model$name, "().")
    return(anchored(method, model, known_once(model, encoded, words)))
  }
  if (!may_use_partitions(model, method, encoded)) return(method)
  know <- known_once(model, encoded, words)
  if (suits_modes(model$components, know, encoded$n)) return(method)
  anchored(instead_of(method), model, know)
}

#' Whether importance sampling around the modes suits this number of components
#'
#' A rough answer, from few draws. With few rows a second look is cheap, and one that has missed a
#' mode may have even weights.
#' @param know As known_once() returns.
#' @noRd
suits_modes <- function(components, know, n) {
  suits <- function(...) know(components, rough = TRUE, ...)$share >= PARTITION_SUITS
  suits() && has_all_occupied(components, know) &&
    (n * components > PARTITION_TWICE || suits(second = TRUE))
}

#' Whether all components have rows, but for PARTITION_EMPTY of the posterior
#'
#' With K components the expected number of empty ones is K B Z(K - 1) / Z(K), Z being evidences and
#' B the prior probability that one of them has none of the n rows.
#' @noRd
has_all_occupied <- function(k, know) {
  fewer <- know(k - 1, rough = TRUE)
  here <- know(k, rough = TRUE)
  empty <- log(k) + here$log_empty + fewer$log_evidence - here$log_evidence
  isTRUE(empty <= log(PARTITION_EMPTY))
}

#' The log of the prior probability that a component has no rows
#' @noRd
log_prior_empty <- function(k, concentration, n)
  lgamma(concentration * k) - lgamma(concentration * (k - 1)) +
    lgamma(concentration * (k - 1) + n) - lgamma(concentration * k + n)

#' partitions() for a default whose weights have come out uneven, once; or NULL
#' @noRd
method_if_uneven <- function(model, method, encoded, words)
  if (may_use_partitions(model, method, encoded) && !isTRUE(method$given_way))
    anchored(instead_of(method), model, known_once(model, encoded, words))

may_use_partitions <- function(model, method, encoded)
  is_default(method) && has_partitions(model) && model$components > 1 &&
    encoded$n <= PARTITION_ROWS

is_default <- function(method) has_trait(method, "default") && length(.subset2(method, "call")) == 1

#' partitions() in the place of a method that was asked for
#' @noRd
instead_of <- function(method) {
  chosen <- partitions()
  method$given_way <- TRUE
  chosen$asked <- method
  chosen
}

#' The method with its first anchor: a number of components whose evidence is known
#'
#' The ladder begins at the largest number that is known to PARTITION_SE.
#' @noRd
anchored <- function(method, model, know)
  with_anchor(method, anchor_below(method, model$components, know), model$components)

#' known_evidence() of this model, computed once for each number of components
#' @return A function of a number of components, `rough` and `second`.
#' @noRd
known_once <- function(model, encoded, words) {
  known <- list()
  function(k, rough = FALSE, second = FALSE) {
    at <- paste(k, rough, second)
    if (is.null(known[[at]]))
      known[[at]] <<- known_evidence(k, model, encoded, words, rough, second)
    known[[at]]
  }
}

#' @param know As known_once() returns.
#' @noRd
anchor_below <- function(method, components, know) {
  wanted <- method$wanted
  if (!is.null(wanted)) {
    if (wanted > components)
      fail("`anchor` must be at most the number of components (", components, "), not ", wanted,
           ".")
    known <- know(wanted)
    if (!isTRUE(is.finite(known$log_evidence)))
      fail("`anchor` must be a number of components whose evidence importance sampling around the ",
           "modes can find, not ", wanted, ".")
    return(known)
  }
  best <- know(1)
  for (k in as.double(seq_len(components)[-1])) {
    if (k > best$components + PARTITION_BEYOND) break
    for (known in known_well(k, know)) best <- known
  }
  best
}

#' The evidence of a number of components, if that can be the first anchor
#'
#' A rough look has few draws, of a proposal that was refitted if weights were uneven. The other one
#' has more climbs and draws, the latter from around the modes. They must not contradict each other.
#' @return A list of one element, or none.
#' @noRd
known_well <- function(k, know) {
  rough <- know(k, rough = TRUE)
  if (rough$even < PARTITION_ANCHOR || !has_all_occupied(k, know)) return(list())
  looks <- list(rough, know(k))
  looks <- looks[c(rough$share >= PARTITION_EVEN, looks[[2]]$share >= PARTITION_ANCHOR)]
  estimate <- vapply(looks, `[[`, 0, "log_evidence")
  se <- vapply(looks, `[[`, 0, "se")
  apart <- abs(diff(estimate)) > PARTITION_APART * sqrt(sum(se^2)) # of two
  looks <- if (!isTRUE(apart)) looks[which.min(se)]
  Filter(function(look) look$se <= PARTITION_SE, looks)
}

with_anchor <- function(method, known, components, draws_from = components) {
  method$anchor <- data.frame(known[c("components", "log_evidence", "se")])
  with_settings(method, anchor = known$components, anchor_se = known$se, components = components,
                draws_from = draws_from)
}

#' The evidence of a number of components: in closed form, or by importance sampling
#'
#' @param rough With few starts and draws.
#' @param second With other random numbers.
#' @return A list: `components`, `log_evidence`, `se`, `even` (the effective sample size as a share
#'   of the ideal one), `share` (the same, or 0 if the estimate cannot be used), and `log_empty`.
#' @noRd
known_evidence <- function(components, model, encoded, words, rough = FALSE, second = FALSE) {
  encoded$args$components <- components
  model$components <- components
  if (components == 1)
    return(list(components = 1, log_evidence = .Call(ffi_model, model_type(model), encoded$args,
                                                     encoded$rows, "exact", NULL, list()),
                se = 0, even = 1, share = 1))
  kind <- if (rough) "rough" else "careful"
  draws <- round(PARTITION_CELLS[[kind]] / (length(encoded$rows) * components))
  draws <- min(max(draws, PARTITION_DRAWS[["least"]]), PARTITION_DRAWS[[kind]])
  starts <- PARTITION_CLIMBS[[kind]] / (encoded$n * components)
  starts <- if (rough || starts >= PARTITION_USUAL)
    min(max(round(starts), PARTITION_STARTS[1]), PARTITION_STARTS[2])
  search <- with_settings(
    laplace(starts = starts, importance = draws), refit_least = if (rough) PARTITION_EVEN)
  problem <- new_problem(model, encoded, search, words)
  problem$replicate <- PARTITION_STREAM + components + if (second) 64 else 0
  out <- tryCatch(lapply(conduct(problem, encoded$rows), drop),
                  logevidence_error = function(e) NULL)
  even <- if (is.null(out) || !is.finite(out$importance)) 0 else out$ess / out$ideal
  if (!is.finite(even)) even <- 0
  share <- if (isTRUE(out$pareto_k > weight_limit("most_k"))) 0 else even
  doubt <- if (rough || share < PARTITION_SURE) 2 else 1
  list(components = components, log_evidence = out$importance,
       se = sqrt((doubt * out$se)^2 + PARTITION_HIDDEN^2), even = even, share = share,
       log_empty = log_prior_empty(components, encoded$args$concentration, encoded$n))
}

# Results -----------------------------------------------------------------------------------------

# Chains that began low and high may differ by so many joint standard errors; a standard error above
# PARTITION_MOST is not calibrated.
PARTITION_APART <- 4
PARTITION_MOST <- 0.5
PARTITION_TRIPS <- 10

#' One run of partitions(): as one_run() in run-result.R, for the number of components of the model
#' @noRd
partition_run <- function(out, method, model, encoded) {
  k <- model$components
  known <- partition_ladder(out, method, k)
  rung <- known$ladder[known$ladder$components == k, ]
  points <- partition_draws(out, method, model, encoded)
  headline <- list(log_evidence = rung$log_evidence, se = rung$se, source = "partitions",
                   entry = "partitions of the rows",
                   points = points, log_weights = normalise(rep(0, ncol(points))))
  said <- partition_warnings(rung)
  list(
    headline = headline, trace = data.frame(), said = said,
    ledger = new_entry(headline$entry, "approximate", rung$log_evidence, rung$se,
                       error = if (length(said)) Inf else rung$se, cost = evaluations_of(out),
                       reportable = TRUE, doubt = if (length(said)) FAILED_OWN else ""),
    partitions = list(anchor = known$anchor, anchors = known$anchors,
                      ladder = known$ladder, occupied = occupied_groups(out, method, k, encoded),
                      sweeps = drop(out$sweeps),
                      accepted = drop(out$accepted)),
    sampler = list(log_evidence = rung$log_evidence, se = rung$se, draws = t(points),
                   log_weights = headline$log_weights),
    work = work_of(out)
  )
}

#' What is known of the evidence: of the first anchor, and by importance sampling given partitions
#' @return A data frame: `components`, `log_evidence`, `se`, `unseen`, and `trips`: how often the
#'   chains went from the most groups to those of the first anchor.
#' @noRd
partition_anchors <- function(out, method) {
  first <- method$anchor$components
  most <- method$settings$components
  # with one number there is nowhere to go
  trips <- if (first == most) Inf else drop(out$trips)[1]
  numbers <- as.double(first:most)
  given <- data.frame(components = numbers, log_evidence = out$known[1, ], se = out$known[2, ],
                      unseen = out$known[4, ], trips = trips)
  rbind(cbind(method$anchor, unseen = NA, trips = trips), given[is.finite(given$se), ])
}

#' The estimates for all numbers of components: means over the anchors
#' @return A list: `ladder`, `anchors`, and `anchor`, that of the last number.
#' @noRd
partition_ladder <- function(out, method, components) {
  anchors <- partition_anchors(out, method)
  first <- method$anchor$components
  numbers <- as.double(first:method$settings$components)
  # a number, its base, and log ratio, se, apart
  pairs <- array(out$rungs, c(3, length(numbers), length(numbers)))
  variances <- matrix(pairs[2, , ]^2, length(numbers))
  anchor <- share <- NULL
  rows <- lapply(numbers[numbers <= components], function(k) {
    usable <- anchors[anchors$components <= k, ]
    ratio <- matrix(pairs[, usable$components - first + 1, k - first + 1], 3)
    estimate <- usable$log_evidence + ratio[1, ]
    se <- sqrt(usable$se^2 + ratio[2, ]^2)
    best <- order(usable$trips < PARTITION_TRIPS, se)[1]
    joint <- sqrt(se^2 + se[best]^2)
    anchor <<- as.list(usable[best, c("components", "log_evidence", "se")])
    between <- covariances_between(variances, usable$components - first + 1, k - first + 1)
    mean <- mean_of_anchors(errors_of_anchors(usable) + between, best)
    share <<- mean$share
    data.frame(components = k, log_evidence = sum((share * estimate)[share > 0]), se = mean$se,
               apart = ratio[3, best], anchor = anchor$components, trips = usable$trips[best],
               disagree = max(0, (abs(estimate - estimate[best]) / joint)[-best], na.rm = TRUE))
  })
  anchors <- anchors[anchors$components <= components,
                     c("components", "log_evidence", "se", "unseen")]
  anchors$share <- share
  row.names(anchors) <- NULL
  list(ladder = do.call(rbind, rows), anchor = anchor, anchors = anchors)
}

#' Covariances of the chains' log ratios of a number of components to those of the anchors
#'
#' From the variances of all pairs: 2 Cov(k - i, k - j) = Var(k - i) + Var(k - j) - Var(i - j).
#' @param variances A matrix: those of log ratios of two numbers.
#' @param at,k Rows of the anchors and of the number.
#' @noRd
covariances_between <- function(variances, at, k)
  (outer(variances[at, k], variances[at, k], `+`) - variances[at, at]) / 2

#' Covariances of anchors: what no chain has visited is missed by all that are from the chains
#' @noRd
errors_of_anchors <- function(anchors) {
  unseen <- ifelse(is.na(anchors$unseen), 0, anchors$unseen)
  all <- outer(unseen, unseen)
  diag(all) <- anchors$se^2
  all
}

#' The mean of the estimates from several anchors that has the smallest variance
#'
#' Shares are at least 0. If there is no such mean, it is the estimate from the best anchor.
#' @param all Covariances of the estimates.
#' @param best The one with the smallest error.
#' @return A list: the `share` of each, and `se`.
#' @noRd
mean_of_anchors <- function(all, best) {
  alone <- list(share = as.numeric(seq_len(nrow(all)) == best), se = sqrt(all[best, best]))
  used <- which(rowSums(!is.finite(all)) == 0)
  if (!isTRUE(alone$se > 0) || !best %in% used) return(alone)
  repeat {
    weight <- tryCatch(solve(all[used, used], rep(1, length(used))), error = function(e) NaN)
    if (!all(is.finite(weight))) return(alone)
    if (all(weight >= 0)) break
    used <- used[-which.min(weight)]
  }
  if (!(sum(weight) > 1 / alone$se^2)) return(alone)
  list(share = replace(alone$share * 0, used, weight / sum(weight)), se = 1 / sqrt(sum(weight)))
}

#' Draws for this number of components, with equal numbering
#' @noRd
partition_draws <- function(out, method, model, encoded) {
  each <- method$settings$draws
  at <- model$components - method$settings$draws_from
  d <- seq_along(encoded$theta_names)
  centre <- out$centre[d, at + 1]
  draws <- .Call(ffi_model, model_type(model), encoded$args, encoded$rows[, 0, drop = FALSE],
                 "relabel", out$draws[d, at * each + seq_len(each), drop = FALSE],
                 list(other = centre))$theta
  # predict() numbers the components as in the first draw; none is nearest if no draw is finite
  nearest <- c(which.min(colSums((draws - centre)^2)), 1)[1]
  cbind(draws[, nearest], draws[, -nearest, drop = FALSE], deparse.level = 0)
}

#' Posterior probabilities of the number of groups with rows
#' @noRd
occupied_groups <- function(out, method, components, encoded) {
  t <- seq_len(components)
  k <- components
  alpha <- encoded$args$concentration
  visits <- rowSums(out$occupied)[t + 1]
  # what depends on the number of components alone cancels
  log_weight <- lgamma(k + 1) - lgamma(k - t + 1) - drop(out$levels)[t] + log(visits)
  share <- exp(log_weight - max(log_weight))
  stats::setNames(share / sum(share), t)
}

partition_warnings <- function(rung) {
  if (!is.finite(rung$se)) return(say("no_partitions"))
  if (rung$trips < PARTITION_TRIPS) return(say("few_trips", rung$trips))
  c(if (isTRUE(rung$disagree > PARTITION_APART)) say("anchors_apart", rung$disagree),
    if (isTRUE(abs(rung$apart) > PARTITION_APART)) say("groups_apart", abs(rung$apart)),
    if (rung$se > PARTITION_MOST) say("slow_partitions", rung$se))
}

#' Words of print() on the source of the estimate
#'
#' With one number of components that others are compared with, these include its log evidence.
#' @noRd
partition_words <- function(fit) {
  own <- fit$model$components
  anchors <- fit$partitions$anchors
  used <- unique(anchors$components[anchors$share > 0])
  below <- sort(used[used < own])
  # the estimate is that of the anchors themselves, the draws are those of the labels
  if (!length(below))
    return(paste0(if (own == 1) "in closed form" else "by importance sampling",
                  ", draws from partitions of the rows"))
  known <- fit$partitions$ladder[match(below, fit$partitions$ladder$components), ]
  paste0("from partitions of the rows, relative to ",
         paste(below[-length(below)], collapse = ", "), if (length(below) > 1) " and ",
         count_of(below[length(below)], "component"),
         if (length(used) == 1) sprintf(" (%s)", align_estimates(known$log_evidence, known$se)),
         if (own %in% used) ", and by importance sampling")
}

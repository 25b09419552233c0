# Regressions with group-level effects, as `y ~ x + (1 + x | g)`. A row of the engine is a unit, all
# rows of a group: its effects are integrated out in its likelihood (src/models/mixed/).

#' @param groups From split_groups().
#' @param further From split_groups() of each formula of a further parameter.
#' @noRd
grouped_regression <- function(name, formula, settings, groups, further) {
  fixed <- settings
  fixed$formulas <- lapply(further, `[[`, "fixed")
  settings$base <- family_regression(name, groups$fixed, fixed)
  settings$group_terms <- c(
    lapply(groups$terms, function(term) c(term, part = 0)),
    unlist(Map(function(one, name) lapply(one$terms, function(term)
      c(term, part = match(name, further_names(settings$family)))), further, names(further)),
      recursive = FALSE, use.names = FALSE))
  check_effects_once(settings$group_terms)
  # do terms have different groups? Do the rows enter as sums, from which the density follows?
  settings$crossed <- length(unique(vapply(settings$group_terms, `[[`, "", "label"))) > 1
  settings$sums <- is_normal(settings$family) && !length(settings$formulas)
  settings$group_correlated <- any(vapply(settings$group_terms, `[[`, NA, "correlated"))
  new_model(name, formula, settings, encode_groups, encode_new_groups, describe_groups,
            type = grouped_type(settings), from_user = from_user_groups,
            decode = decode_groups, template = template_groups, simulate_rows = simulate_groups,
            predictions = list(response = group_mean), fitted = group_mean, link = group_link,
            replicated = replicated_regression, one_number = TRUE,
            noise_sd = noise_of(settings$family, settings$formulas),
            groups = JOINING, cost = cost_of_groups,
            derivatives = function(model) if (model$sums || !model$crossed) 1 else 0,
            centred = centred_groups,
            family = glm_family, starts = GROUPED_STARTS,
            closed = "one with group-level terms has an integral over their parameters",
            limits = group_limits, doubts = lost_digits,
            correction = list(of = rule_correction, finer = rule_for_differences),
            prior_moments = prior_moments_regression,
            far = if (is_normal(settings$family)) far_fit_groups else NOTHING,
            advice = advice_groups)
}

# C adds squares of crossed effects, which cancel where the noise is far smaller (src/models/mixed/
# crossed.c); this many roundings are left.
ROUNDINGS <- 16

#' Has the likelihood lost its digits at the draws?
#' @noRd
lost_digits <- function(model, points, log_weights, encoded) {
  if (!model$sums || !model$crossed) return(NULL)
  effects <- grepl("^log\\(sd_", encoded$theta_names)
  noise <- encoded$theta_names == "log(sigma)"
  log_sigma <- if (any(noise)) points[noise, ] else log(encoded$args$sigma)
  log_size <- log(colSums(exp(2 * points[effects, , drop = FALSE]))) / 2
  gap <- sum(exp(log_weights) * (log_size - log_sigma))
  lost <- ROUNDINGS * .Machine$double.eps * encoded$args$observations * exp(2 * gap)
  if (isTRUE(lost > LOST_MOST)) say("lost_digits", format(exp(-gap), digits = 1))
}

#' Refuse two terms with the same effect of the same groups: their parameters would share one
#' standard deviation
#' @noRd
check_effects_once <- function(terms) {
  effects <- lapply(terms, function(term) effect_labels(term$effects))
  same <- vapply(terms, function(term)
    paste(c(term$part, sort(vapply(term$group, deparse1, ""))), collapse = ":"), "")
  for (j in seq_along(terms)[-1]) for (i in seq_len(j - 1)) {
    shared <- if (same[i] == same[j]) intersect(effects[[i]], effects[[j]])
    if (!length(shared)) next
    show <- function(k, without = "") paste0(
      "`(", without, deparse1(terms[[k]]$effects), if (terms[[k]]$correlated) " | " else " || ",
      terms[[k]]$label, ")`")
    both <- c(i, j)
    within <- both[c(all(effects[[i]] %in% shared), all(effects[[j]] %in% shared))]
    wider <- both[lengths(effects[both]) > 1]
    fail("`formula` must have each effect of a grouping factor once, not ",
         if (shared[1] == "1") "the intercept" else paste0("`", shared[1], "`"), " of `",
         terms[[j]]$label, "` in ", show(i), " and again in ", show(j), ": ",
         if (length(within) == 2) "leave one of them out"
         else if (length(within)) paste0("leave out ", show(utils::tail(within, 1)))
         else if (shared[1] != "1") "take it out of one of them",
         if (shared[1] == "1" && length(wider)) paste0(
           if (length(within)) ", or ", "write ", show(utils::tail(wider, 1), "0 + "),
           ", which has no intercept"), ".")
  }
}

# "1" is the intercept. Those of `.` are known only with the data.
effect_labels <- function(effects) {
  terms <- or_null(stats::terms(stats::as.formula(call("~", effects))))
  if (is.null(terms)) return(NULL)
  c(if (attr(terms, "intercept") == 1) "1", attr(terms, "term.labels"))
}

GROUPED_STARTS <- 12

# From sums: of the products of R, and of the elimination of effects.
cost_of_groups <- function(model, encoded) {
  args <- encoded$args
  # a climb of five steps, two evaluations each, and a node for each point of the rule
  if (!model$sums) return(rows_of_a_unit(encoded) * (10 + rule_points(args)))
  if (!model$crossed) return(nrow(encoded$rows) / 4)
  q <- tapply(args$effects, args$factor, sum)
  dim <- q * args$levels
  entries <- mean(colSums(encoded$rows != 0))
  cost_of_elimination(dim[[1]], sum(dim[-1]), entries / dim[[1]])
}

# Rows of a unit, not known before if groups come in blocks.
rows_of_a_unit <- function(encoded)
  if (is.null(encoded$rows_of_a_unit)) encoded$observations / encoded$n else encoded$rows_of_a_unit

# The cost of effects that are eliminated one after another, each with so many others (arrow.c),
# of which it shares rows with `shared`.
cost_of_elimination <- function(first, others, shared = others)
  (first * others + others^2 + first * min(shared, others)^2 + others^3 / 3) / 40

rule_points <- function(args)
  if (args$nodes > 0) args$nodes^sum(args$effects) else args$draws

# The models in C: from sums where all densities are normal with the same noise; and by units.
grouped_type <- function(settings)
  paste0(if (settings$crossed) "crossed" else "grouped", if (settings$sums) "_linear",
         "_regression")

advice_groups <- function(model)
  paste("Set `prior`, `intercept`, `auxiliary` and `group_sd` in the units of the data, or leave",
        "them out: their defaults have these units.")

describe_groups <- function(model) {
  c(describe_family_regression(model), list(groups = show_group_priors(model)))
}

# Effects and groups ------------------------------------------------------------------------------

#' The columns of the effects of each term, and the groups of each factor
#'
#' @return A list: `effects`, blocks of correlated effects, each a list of `label`, `names`, `part`,
#'   `correlated` and `x`, sorted by factor; `factors`, with the most groups first.
#' @noRd
group_input <- function(model, data) {
  labels <- vapply(model$group_terms, `[[`, "", "label")
  factors <- factors_of_rows(model, unique(labels), data)
  blocks <- unlist(lapply(model$group_terms, function(term)
    split_block(effects_of_term(model, term, data))), recursive = FALSE)
  sizes <- vapply(names(factors), function(label)
    length(factors[[label]]$levels) *
      sum(lengths(lapply(blocks, function(one) if (one$label == label) one$names))), 0)
  factors <- factors[order(-sizes)]
  list(factors = factors,
       effects = blocks[order(match(vapply(blocks, `[[`, "", "label"), names(factors)))])
}

# Limits of the models in C (src/models/mixed): grouping factors, effects of a factor, and
# coefficients where sums over groups are enough.
FACTORS_MOST <- 6
EFFECTS_OF_FACTOR_MOST <- 8
GROUPED_COEFFICIENTS_MOST <- 128

check_group_sizes <- function(model, base, grouped) {
  factors <- length(grouped$factors)
  if (factors > FACTORS_MOST)
    fail("`formula` must have at most ", FACTORS_MOST, " grouping factors, not ", factors, ".")
  for (label in names(grouped$factors)) {
    effects <- sum(vapply(grouped$effects, function(one)
      if (one$label == label) length(one$names) else 0L, 0L))
    if (effects > EFFECTS_OF_FACTOR_MOST)
      fail("`formula` must have at most ", EFFECTS_OF_FACTOR_MOST, " effects of each group of `",
           label, "`, not ", effects, ".")
  }
  coefficients <- length(base$design$covariates)
  if (model$sums && coefficients > GROUPED_COEFFICIENTS_MOST)
    fail("`formula` must have at most ", GROUPED_COEFFICIENTS_MOST,
         " coefficients beside group-level effects, not ", coefficients, ".")
}

effects_of_term <- function(model, term, data) {
  formula <- stats::as.formula(call("~", model$formula[[2]], term$effects),
                               environment(model$formula))
  input <- input_from_formula(formula, data)
  if (!is.null(input$offset)) fail("`formula` must have no offset() in a group-level term.")
  check_finite_matrix(input$x, input$argument, input$design$covariates)
  of <- if (term$part) paste0(further_names(model$family)[term$part], "_")
  list(label = term$label, names = paste0(of, input$design$covariates), part = term$part,
       correlated = term$correlated, x = input$x, design = input$design)
}

# Effects that are not correlated are blocks of their own.
split_block <- function(block) {
  if (block$correlated) return(list(block))
  lapply(seq_along(block$names), function(j) {
    one <- block
    one$names <- block$names[j]
    one$x <- block$x[, j, drop = FALSE]
    one$only <- j
    one
  })
}

# Data --------------------------------------------------------------------------------------------

encode_groups <- function(model, data, binding = AS_GIVEN) {
  data <- as_frame(data)
  base <- encode_regression(model$base, without_groups(model, model$base$formula, data),
                            offsets = TRUE)
  grouped <- group_input(model, data)
  check_group_sizes(model, base, grouped)
  grouped$effects <- effects_with_units(model, grouped$effects, base$design$prior_units$scale)
  parameters <- group_parameters(grouped$effects, model)
  check_clash(base$user_names, parameters$user)
  units <- if (!model$sums) group_units(base, grouped, integration_rule(model, grouped$effects))
  else if (model$crossed) crossed_sums(base, grouped) else group_sums(base, grouped)
  further <- further_names(model$family)
  each <- function(f) vapply(grouped$effects, function(one) as.double(f(one)), 0)
  args <- c(base$args, units$args, list(
    observations = as.double(base$n), # which C does not read
    size = unname(column_sizes(base, if (!model$sums) further)),
    effects = each(function(one) length(one$names)),
    correlated = each(function(one) one$correlated),
    factor = each(function(one) match(one$label, names(grouped$factors)) - 1)))
  args <- c(args, args_of_means(base$user_names, grouped$effects, grouped$factors,
                                length(parameters$user)))
  prior <- prior_args(parameters$priors)
  for (name in names(prior)) args[[name]] <- c(args[[name]], prior[[name]])
  if (!is.null(args$user_scale)) {
    none <- rep(0, length(parameters$user))
    args$user_scale <- c(args$user_scale, none + 1)
    args$user_centre <- c(args$user_centre, none)
    args$user_intercept <- c(args$user_intercept, none - 1)
  }
  columns <- group_columns(grouped, lapply(grouped$factors, `[[`, "codes"))
  design <- base$design
  design$group_effects <- lapply(grouped$effects, function(one) one[setdiff(names(one), "x")])
  design$group_factors <- units$places
  for (label in names(grouped$factors))
    design$group_factors[[label]]$levels <- grouped$factors[[label]]$levels
  design$group_rows <- nrow(columns)
  design$effect_units <- lapply(grouped$effects, `[[`, "units")
  design$priors <- c(design$priors, parameters$priors)
  design$units <- units$rows
  design$base_args <- base$args
  design$base_names <- base$theta_names
  design$group_parameters <- parameters$user
  design$all_names <- c(base$user_names, parameters$user)
  design$theta_names <- c(base$theta_names, parameters$theta)
  design$further_order <- further_names(model$family)
  list(
    rows = units$rows,
    each = rbind(columns, base$rows),
    n = ncol(units$rows),
    observations = base$n,
    args = args,
    theta_names = design$theta_names,
    user_names = design$all_names,
    offset = NULL,
    observed = base$observed,
    pairing = base$pairing,
    design = design
  )
}

# Effects stay as they are: only the coefficients change with the columns.
centred_groups <- function(model, encoded) {
  design <- encoded$design
  base <- centred_model(model$base, list(
    rows = encoded$each[-seq_len(design$group_rows), , drop = FALSE], design = design))
  if (is.null(base)) return(NULL)
  model$base <- base
  model$scale <- TRUE
  model
}

# In a formula, `.` stands for the columns that are no groups.
without_groups <- function(model, formula, data) {
  if (!"." %in% all.vars(formula)) return(data)
  groups <- unlist(lapply(model$group_terms, function(term) lapply(term$group, all.vars)))
  data[setdiff(names(data), groups)]
}

template_groups <- function(model, data, n) {
  found <- template_regression(model$base, data, n)
  encoded <- encode_groups(model, found$data)
  # no group has rows yet
  encoded$design$units <- NULL
  list(data = found$data, encoded = encoded)
}

# Parameters --------------------------------------------------------------------------------------

# Positive parameters become logarithms, correlations the inverse hyperbolic tangents of partial
# correlations.
from_user_groups <- function(model, encoded, user) {
  points <- from_user_regression(model, encoded, user)
  args <- encoded$args
  q <- args$effects
  pairs <- ifelse(args$correlated > 0, q * (q - 1) / 2, 0)
  at <- nrow(user) - sum(pairs) + cumsum(c(0, pairs))
  for (b in which(pairs > 0)) {
    own <- at[b] + seq_len(pairs[b])
    points[own, ] <- apply(user[own, , drop = FALSE], 2, partial_correlations, q = q[b])
  }
  points
}

partial_correlations <- function(correlations, q) {
  matrix <- diag(q)
  matrix[upper.tri(matrix)] <- correlations
  root <- tryCatch(t(chol(matrix + t(matrix) - diag(q))), error = function(e)
    fail("Correlations of effects must be those of a positive definite matrix."))
  unlist(lapply(seq_len(q)[-1], function(i) {
    left <- sqrt(rev(cumsum(rev(root[i, seq_len(i)]^2))))
    atanh(root[i, seq_len(i - 1)] / left[seq_len(i - 1)])
  }))
}

group_limits <- function(fit) {
  names <- colnames(fit$draws)
  parameter_limits(names, logs_of(fit),
                   correlations = names[paste0("z_", names) %in% colnames(fit$parameters)])
}

# The error of the rule of integration ------------------------------------------------------------

# The finer rule, at some draws of the posterior; that of one effect is the wide one in C.
FINER_NODES <- c(11, 21, 11)
FINER_POINTS <- 256
FINER_DRAWS <- 100
# Fewer draws, a multiple of FINER_LOT, where their standard error is below FINER_ENOUGH.
FINER_LOT <- 25
# The parts of a sample of units from which the error of the sample is found.
FINER_PARTS <- 10
FINER_ENOUGH <- 0.002

#' The error of the rule of integration
#'
#' The evidence by another rule is that by the rule of the run, times the mean of the ratio of their
#' likelihoods over the posterior. Random points of the finer rule are new for each draw of the
#' posterior: its likelihood has the right mean for any number of points, so that the standard error
#' of the mean of ratios contains what is random in the points. The error of the run's own points,
#' which are the same for all parameters, is removed.
#' @noRd
rule_correction <- function(model, encoded, points, log_weights, words) {
  args <- encoded$args
  if (is.null(args$nodes) || args$nodes == 2 || args$nodes == 0 && args$draws == 1) return(NULL)
  restore <- own_generator(words, keep = FALSE)
  on.exit(restore())
  use <- sample(resample(exp(log_weights), FINER_DRAWS))
  theta <- unname(points[, use, drop = FALSE])
  log_lik <- function(rows, theta, ...) {
    own <- encoded
    own$rows <- rows
    own$args <- utils::modifyList(args, list(...))
    as.vector(model_caller(model, own)("log_lik", theta, list()))
  }
  finer <- function(rows, at) {
    if (args$nodes > 0)
      return(log_lik(rows, theta[, at, drop = FALSE], nodes = FINER_NODES[sum(args$effects)],
                     outer_share = 0))
    vapply(at, function(k) log_lik(rows, theta[, k, drop = FALSE], draws = FINER_POINTS,
                                   rule_seed = as.double(k)), 0)
  }
  # where the units are a sample of all, parts of it say what the sample adds
  few <- ncol(encoded$rows)
  if (few < FINER_PARTS && few < encoded$n)
    return(say("rule_unchecked", "the rows are not in memory"))
  parts <- if (few < encoded$n) FINER_PARTS else 1
  part <- rep_len(seq_len(parts), few)
  times <- encoded$n / few
  change <- matrix(0, parts, 0)
  error <- Inf
  while (ncol(change) < FINER_DRAWS && !(error < FINER_ENOUGH)) {
    at <- ncol(change) + seq_len(FINER_LOT)
    change <- cbind(change, do.call(rbind, lapply(seq_len(parts), function(k) {
      rows <- encoded$rows[, part == k, drop = FALSE]
      times * (finer(rows, at) - log_lik(rows, theta[, at, drop = FALSE]))
    })))
    log_ratio <- colSums(change)
    most <- max(log_ratio)
    if (!is.finite(most))
      return(say("rule_unchecked", "some draws are far from the posterior"))
    ratio <- exp(log_ratio - most)
    error <- stats::sd(ratio) / mean(ratio) / sqrt(length(ratio))
  }
  of_sample <- if (parts > 1) stats::var(rowMeans(change)) * parts else 0
  list(log_evidence = most + log(mean(ratio)), se = sqrt(error^2 + of_sample))
}

# Nodes for each of so many effects of a group with which gradients agree with differences.
NODES_FOR_DIFFERENCES <- c(61, 41, 13)

rule_for_differences <- function(args) {
  if (is.null(args$nodes) || args$nodes <= 2) return(NULL)
  list(nodes = NODES_FOR_DIFFERENCES[sum(args$effects)], outer_share = 0)
}

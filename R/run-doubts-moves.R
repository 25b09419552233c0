# Do the moves of a run work as its weights assume? Checks of the renewal of particles, of
# acceptance rates, of the spread of particles for kernels without an accept step, and of the
# agreement between chains.

POOR_RENEWAL <- 0.25    # renewal (1: independent draws), at this share of the distributions:
POOR_SHARE <- 0.1
LOW_ACCEPTANCE <- 0.01
# largest error by a wrong temperature, or so many standard errors:
HEATED_NATS <- 0.5
HEATED_Z <- 3

#' Warnings about the moves of a run
#' @noRd
move_warnings <- function(trace, method, sampler, modes = "one", discrete = FALSE) {
  if (is.null(trace$moves) || !any(trace$moves > 0)) return(NULL)
  made <- lapply(trace[c("moves", "acceptance", "renewal")], `[`, trace$moves > 0)
  walks <- length(method$kernels) == 1 && of_engine(method, "walks")
  c(still_warning(made, method, modes, discrete),
    if (walks) hot_warning(sampler$heating, sampler$se, method$kernels[[1]]))
}

often <- function(is) {
  often <- sum(is, na.rm = TRUE)
  share <- often / length(is)
  share >= 0.25 || (often >= 3 && share >= POOR_SHARE)
}

still_warning <- function(made, method, modes, discrete) {
  kernel <- method$kernels[[1]]$name
  if (often(made$acceptance < LOW_ACCEPTANCE)) return(say(
    "hardly_move", 100 * mean(made$acceptance < LOW_ACCEPTANCE, na.rm = TRUE), kernel))
  # with a given number of moves, separate modes cannot be distinguished from slow moves
  if (isTRUE(method$settings$`1.renew` < 0) && modes != "one") return(NULL)
  if (!often(made$renewal < POOR_RENEWAL)) return(NULL)
  given <- isTRUE(method$settings$`1.renew` < 0)
  say("slow_moves", if (stats::median(made$moves) == 1) "one move"
      else paste(count(stats::median(made$moves)), "moves"),
      100 * stats::median(made$renewal[made$renewal < POOR_RENEWAL], na.rm = TRUE),
      if (given) "Use more `steps`, or leave their number out."
      else if (discrete) "Use hmc(), scaled columns, or more `steps`."
      else "Use hmc(), scaled columns, more `steps`, or nested().")
}

#' The error in nats caused by the step size, summed over distributions in C
#' @noRd
step_heating <- function(figures, trace) {
  list(temperature = stats::median(trace$temperature, na.rm = TRUE), bias = -drop(figures$heated),
       se = drop(figures$heated_noise))
}

#' Are the steps of a kernel without an accept step too long, or too few?
#'
#' The errors of `bias` and of the estimate are correlated, so beyond three standard errors one of
#' the two is wrong.
#' @noRd
hot_warning <- function(heating, se, kernel) {
  if (is.null(heating) || is.na(heating$bias)) return(NULL)
  if (abs(heating$bias) <= max(HEATED_NATS, HEATED_Z * c(se, heating$se), na.rm = TRUE))
    return(NULL)
  low <- heating$bias < 0
  size <- format(signif(abs(heating$bias), 2), big.mark = ",", scientific = FALSE)
  cure <- if (low) sprintf("a smaller %s, or scaled columns",
                           if (is.null(kernel$args$rate)) "`step_size`" else "`rate`")
  say(
    "wrong_steps", kernel$name, if (low) "long" else "few", if (low) "widely" else "narrowly",
    format(signif(heating$temperature, 3)),
    if (is.finite(heating$bias)) sprintf("about %s nats too", size) else "far too",
    if (low) "low" else "high", if (low) cure else "more `steps`"
  )
}

#' Do thermodynamic integral and stepping stones of the same particles agree?
#' @noRd
thermodynamic_warning <- function(power, se) {
  gap <- power$corrected - power$stepping
  # an estimate that is not finite has a warning of its own
  if (!is.finite(gap) || abs(gap) <= max(0.5, 3 * se, na.rm = TRUE)) return(NULL)
  say("rules_apart", format(signif(abs(gap), 2), big.mark = ",", scientific = FALSE),
      if (gap < 0) "lower" else "higher")
}

CHAINS_APART <- 1.2 # root of the variance of all draws over that within chains
CHAINS_STILL <- 0.02 # share of chains that may never move

#' Do the chains of bridge() agree with each other?
#'
#' @param draws Parameters in rows; a column for each chain in turn, and again for the next round.
#' @noRd
chains_warning <- function(draws, chains) {
  rounds <- ncol(draws) / chains
  if (rounds < 2) return(NULL)
  shaped <- array(draws, c(nrow(draws), chains, rounds))
  means <- rowMeans(shaped, dims = 2)
  squares <- rowSums((shaped - as.vector(means))^2, dims = 2) / (rounds - 1)
  still <- mean(colSums(squares) == 0)
  within <- rowMeans(squares)
  between <- apply(means, 1, stats::var)
  apart <- sqrt(((rounds - 1) / rounds * within + between) / within)
  # the mean of a few rounds varies by chance
  most <- CHAINS_APART * sqrt(1 + 1 / rounds)
  if (still <= CHAINS_STILL && isTRUE(max(apart) <= most)) return(NULL)
  say("chains_apart",
    if (still > CHAINS_STILL) sprintf("%.0f%% of the chains never moved", 100 * still)
    else sprintf(paste("The chains do not agree with each other (potential scale reduction",
                       "factor up to %.2f)"), max(apart)))
}

no_bridge <- function() {
  fail("The draws are too few, or too much alike, for fitting a normal density: use more ",
       "`particles` or `draws` of bridge(), or another kernel.")
}

GRADIENT_POINTS <- 5
GRADIENT_OFF <- 0.1 # relative error

#' Is the user's gradient that of the user's density? Compared with differences along some
#' directions at a few draws
#' @noRd
gradient_warning <- function(model, encoded, method, points, log_weights) {
  if (!has_user_gradient(model) || !moves_by_gradient(method) || ncol(points) < 2)
    return(NULL)
  # draws without weight can be so far away that steps on their scale leave the posterior
  points <- points[, as_likely(log_weights), drop = FALSE]
  at <- points[, unique(round(seq(1, ncol(points), length.out = GRADIENT_POINTS))), drop = FALSE]
  at <- at[, colSums(!is.finite(at)) == 0, drop = FALSE]
  if (ncol(at) == 0) return(NULL)
  scale <- apply(points, 1, stats::sd)
  scale[!is.finite(scale) | scale == 0] <- 1e-3
  scale[encoded$theta_names %in% names(part_of(model, "discrete"))] <- 0
  ask <- function(theta) or_null(model_caller(model, encoded)("log_lik_grad", theta))
  signs <- matrix(ifelse((row(at) * 7 + col(at) * 3) %% 5 < 2, -1, 1), nrow(at))
  step <- 1e-4 * scale * signs
  here <- ask(at)
  above <- ask(at + step)
  below <- ask(at - step)
  if (is.null(here) || is.null(above) || is.null(below)) return(NULL)
  said <- colSums(matrix(here$gradient, nrow(at)) * 2 * step)
  seen <- drop(above$value) - drop(below$value)
  size <- pmax(abs(said), abs(seen))
  # smaller differences are rounding errors
  known <- is.finite(said) & is.finite(seen) & size > 1e-9 * (1 + abs(drop(above$value)))
  if (sum(known) < 2 || mean(abs(said - seen)[known] > GRADIENT_OFF * size[known]) <= 0.5)
    return(NULL)
  say("wrong_gradient", format(signif(seen[known][1], 3)), format(signif(said[known][1], 3)))
}

# A displacement in nats (half of its squared length in posterior standard deviations), which must
# also be more than chance explains.
DISPLACED_NATS <- 0.5
DISPLACED_CHANCE <- 4

#' Have stochastic gradients moved the points of online_nested() away from the posterior together?
#'
#' The points share their mini-batches, whose noise moves all of them: neither their spread nor the
#' standard error shows it. At draws of a density the mean of its gradient g is zero, and near a
#' normal density with precision P a displacement u gives g = -P u, where P is the covariance of the
#' gradients of the points; u'Pu / 2 = g' P^-1 g / 2 is the displacement in nats.
#' @noRd
displaced_warning <- function(model, encoded, method, points) {
  d <- nrow(points)
  n <- ncol(points)
  if (!has_trait(method, "points by chunk") || method$settings$gradient == "full" || n < 4 * d ||
      isTRUE(encoded$sampled) || !all(is.finite(points))) return(NULL)
  call <- model_caller(model, encoded)
  gradient <- matrix(call("log_lik_grad", points)$gradient + call("log_prior_grad", points), d)
  mean <- rowMeans(gradient)
  nats <- tryCatch(drop(mean %*% solve(stats::cov(t(gradient)), mean)) / 2,
                   error = function(e) NA_real_)
  if (!isTRUE(nats > max(DISPLACED_NATS, DISPLACED_CHANCE * d / n))) return(NULL)
  say("displaced", format(signif(nats, 2), big.mark = ",", scientific = FALSE),
          if (method$settings$gradient == "batch") "`gradient = \"control\"`, " else "")
}

# Numbers of draws, each about as often as its weight says; of even weights, all of them.
as_likely <- function(log_weights) {
  n <- length(log_weights)
  below <- cumsum(exp(log_weights))
  pmin(findInterval((seq_len(n) - 0.5) / n * below[n], below) + 1, n)
}

moves_by_gradient <- function(method) {
  any(vapply(method$kernels, kernel_needs, TRUE, "gradient"))
}

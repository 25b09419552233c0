# Geweke's joint test of a model, for check_model(geweke = TRUE): parameters and data drawn forwards
# have the same law as those that a chain draws in turn, parameters given data and data given
# parameters, only if prior, likelihood and simulated data belong to one model.

JOINT <- list(
  rows = 20,       # with more rows the chain moves less
  chains = 400,
  forward = 4,     # times as many draws forwards
  turns = 12,      # of each chain
  moves = 3,       # of the parameters in each turn
  statistics = 12, # parameters that are looked at
  level = 1e-4
)

#' The joint test: a finding for check_model(), with the draws of both kinds
#' @noRd
check_joint <- function(model, data, kernel) {
  reason <- if (is_lagged(model)) "series of lags may explode under the prior"
  else if (!is_latent(model)) part_of(model, "simulates")(model)
  if (!is.null(reason))
    return(not_checked(paste("no joint test:", reason)))
  draws <- if (is_latent(model)) joint_states(model, data) else joint_points(model, data, kernel)
  p <- vapply(colnames(draws$forward), function(name) {
    if (anyNA(draws$chain[, name]) || anyNA(draws$forward[, name])) return(0)
    2 * min(ks_p(draws$chain[, name], draws$forward[, name]),
            spread_p(draws$chain[, name], draws$forward[, name]))
  }, 0)
  p <- pmin(p * length(p), 1)
  worst <- which.min(p)
  holds <- p[[worst]] >= JOINT$level
  found <- holding(holds, p[[worst]], "chains and forward draws have the same law",
                   paste0(if (!holds) paste0("`", names(p)[worst], "`, "), "p = ",
                          format(p[[worst]], digits = 2)))
  c(found, list(draws = draws))
}

#' Klotz' test: have two samples the same spread? By normal scores of ranks, for any law
#' @noRd
spread_p <- function(x, y) {
  n <- length(x) + length(y)
  score <- stats::qnorm(rank(c(x, y)) / (n + 1))^2
  sd <- sqrt(length(x) * length(y) * stats::var(score) / n)
  if (!(sd > 0)) return(1)
  2 * stats::pnorm(-abs(sum(score[seq_along(x)]) - length(x) * mean(score)) / sd)
}

#' Few rows of the data, with which the model can still be bound
#' @noRd
joint_data <- function(model, data) {
  if (is.null(dim(data)) && !is.atomic(data)) return(data)
  few <- seq_len(min(NROW(data), JOINT$rows))
  some <- if (is.null(dim(data))) data[few] else data[few, , drop = FALSE]
  if (inherits(try(encode(model, some), silent = TRUE), "try-error")) data else some
}

joint_points <- function(model, data, kernel) {
  model <- at_unit_one(model)
  data <- joint_data(model, data)
  encoded <- template(model, data, NULL)$encoded
  d <- length(encoded$theta_names)
  chains <- JOINT$chains
  draw <- function(n) matrix(model_caller(model, encoded)("draw_prior",
                                                          extra = list(n = n, seed = a_seed())), d)
  pilot <- draw(200)
  precision <- as.double(diag(1 / prior_spread(pilot)^2, d))
  whole <- !is.null(part_of(model, "simulate_data"))
  # the model bound to data drawn at a point
  bind <- function(theta) {
    if (whole)
      return(encode(model, simulated(model, list(data = data, encoded = encoded), theta, a_seed())))
    replace(encoded, "rows", list(simulated_rows(model, encoded, theta, a_seed())))
  }
  shown <- some_of(length(encoded$user_names), JOINT$statistics)
  look <- function(theta, bound) {
    call <- model_caller(model, bound)
    at <- matrix(theta, d)
    c(stats::setNames(call("to_user", at)[shown], encoded$user_names[shown]),
      `log likelihood` = as.vector(call("log_lik", at)))
  }
  settings <- list(moves = JOINT$moves, seen = as.double(encoded$n), lambda = 1, gradient = "full",
                   batch = 1, precision = precision)
  walk <- function(theta) {
    for (turn in seq_len(JOINT$turns)) {
      bound <- bind(theta)
      theta <- as.vector(.Call(ffi_kernel_moves, model_type(model), bound$args,
                               list(kernel$name, kernel$args), bound$rows, matrix(theta, d),
                               settings, a_seed()))
    }
    look(theta, bound)
  }
  both_ways(draw(JOINT$forward * chains), draw(chains), function(theta) look(theta, bind(theta)),
            walk)
}

#' Statistics of forward draws and of the ends of chains, a row each
#' @noRd
both_ways <- function(forward, starts, look, walk) {
  rows_of <- function(points, f) do.call(rbind, lapply(seq_len(ncol(points)),
                                                       function(i) f(points[, i])))
  list(forward = rows_of(forward, look), chain = rows_of(starts, walk))
}

joint_states <- function(model, data) {
  few <- joint_data(model, data)
  encoded <- encode(model, few)
  n <- encoded$n
  width <- nrow(encoded$rows)
  state_of <- function() part_of(model, "latent")$simulate(model, n, width, a_seed())$state
  ask <- function(what, state, rows, ...)
    .Call(ffi_model, model_type(model), encoded$args, rows, paste0("state_", what), state,
          list(seen = n, seed = a_seed(), ...))
  blank <- matrix(0, width, n)
  rows_at <- function(state) ask("simulate", state, blank)$first
  user <- function(state) {
    values <- user_state(model, encoded, matrix(state))[, 1]
    names(values) <- encoded$user_names
    values <- values[!grepl("^label", names(values))]
    utils::head(values, JOINT$statistics)
  }
  look <- function(state, rows)
    c(user(state), `log likelihood` = ask("log_lik", state, rows)$value,
      `sum of squares` = sum(rows^2))
  walk <- function(state) {
    for (turn in seq_len(JOINT$turns)) {
      rows <- rows_at(state)
      for (move in seq_len(JOINT$moves)) state <- ask("sweep", state, rows, lambda = 1)$theta
    }
    look(state, rows)
  }
  states <- function(count) vapply(seq_len(count), function(i) state_of(), state_of())
  both_ways(states(JOINT$chains * JOINT$forward), states(JOINT$chains),
            function(state) look(state, rows_at(state)), walk)
}

#' @rdname check_model
#' @param x A result of `check_model(geweke = TRUE)`.
#' @export
plot.model_check <- function(x, ...) {
  draws <- attr(x, "geweke")
  if (is.null(draws))
    fail("`x` must come from check_model(geweke = TRUE), which has draws to plot.")
  settings <- list(x = 0:1, y = 0:1, type = "l", col = "grey60", xlim = c(0, 1), ylim = c(0, 1),
                   xlab = "forward draws: share below", ylab = "chains: share below",
                   main = "Joint test of the model", asp = 1)
  do.call(graphics::plot, utils::modifyList(settings, list(...)))
  # what chance allows all statistics together one time in a thousand
  size <- ncol(draws$forward)
  bound <- sqrt(log(2 * size / 1e-3) / 2 * (1 / nrow(draws$forward) + 1 / nrow(draws$chain)))
  graphics::polygon(c(0, 0, 1 - bound, 1, 1, bound), c(0, bound, 1, 1, 1 - bound, 0),
                    col = FAINT, border = NA)
  graphics::abline(0, 1, col = "grey60")
  colours <- grDevices::hcl.colors(size, "Dark 3")
  gaps <- vapply(seq_len(size), function(j) {
    at <- sort(unique(c(draws$forward[, j], draws$chain[, j])))
    a <- stats::ecdf(draws$forward[, j])(at)
    b <- stats::ecdf(draws$chain[, j])(at)
    graphics::lines(c(0, a), c(0, b), col = colours[j])
    max(abs(a - b))
  }, 0)
  shown <- utils::head(order(-gaps), 6)
  graphics::legend("bottomright", colnames(draws$forward)[shown], col = colours[shown], lwd = 2,
                   bty = "n", cex = 0.8, title = "largest differences")
  invisible(x)
}

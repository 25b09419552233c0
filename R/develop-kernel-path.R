# Points moved by a kernel on one density, without a method around it: to see how a kernel moves, to
# teach, and to try step sizes.

#' Move points by a kernel and keep their path
#'
#' Moves points by a Markov kernel on the posterior density of a model, or on a tempered one, and
#' returns all places they come to. There are no weights and there is no evidence: use it to see how
#' a kernel moves, to compare kernels, to try step sizes, or to draw a figure for a lecture.
#'
#' @param model,data A model without latent variables and its data, as for [evidence()]; a model
#'   without data has none.
#' @param kernel A kernel, see [kernels]. Its mass matrix is that of `scale`; its own `mass` is not
#'   used.
#' @param steps Number of moves, at least 1.
#' @param points Number of points that move, each by itself; not needed if `start` is given.
#' @param start Where the points begin, in unconstrained space: a vector for one point, or a matrix
#'   with a point in each row. `NULL`, the default, draws them from the prior.
#' @param thin Every how many moves a place is kept.
#' @param tune Number of moves before the path, in groups of 20. After each group a kernel whose
#'   step size is not given adapts it. These moves are not part of the path, which begins where they
#'   end.
#' @param scale Scale of the mass matrix: `NULL` for the identity, a vector of standard deviations,
#'   or a covariance matrix, for instance that of the posterior. Step sizes of [hmc()], [mala()],
#'   [rwm()], [slice()] and [baoab()] are relative to it.
#' @param lambda Power of the likelihood, from 0 (the prior) to 1, the default (the posterior).
#' @param batch For [baoab()], [sghmc()] and [sgld()]: number of rows in the mini-batch from which a
#'   gradient is estimated, drawn anew for each move; `Inf`, the default, for exact gradients. Only
#'   with `lambda = 1`.
#' @param density Whether to compute the log density at all places.
#' @param seed As for [evidence()].
#'
#' @details
#' Points are in unconstrained space, where every parameter is a real number; see
#' [model_functions()], whose `to_user()` turns them into parameters.
#'
#' [hmc()], [mala()], [rwm()] and [slice()] leave the density invariant, and after many moves the
#' places are draws from it. [baoab()], [sgld()] and [sghmc()] do so only in the limit of short
#' steps, and the noise of mini-batches makes their draws too wide.
#'
#' @return An object of class `"kernel_path"`, a data frame with a row for each point and kept
#'   place: `step` (0 is the start), `point`, the parameters, and `log_density`, the log of prior
#'   times likelihood to the power `lambda`. The attributes `acceptance` and `step_size` are the
#'   share of accepted moves and the last step size (`NA` for kernels without them). `plot()` draws
#'   two parameters against each other, with contours of the density if there are no others, or one
#'   against the steps.
#'
#' @references
#' Neal, R. M. (2011). MCMC using Hamiltonian dynamics. In *Handbook of Markov Chain Monte Carlo*.
#'
#' @examples
#' # a correlated normal density of two parameters, without data
#' precision <- solve(matrix(c(1, 0.9, 0.9, 1), 2))
#' model <- custom_model(
#'   c("x", "y"),
#'   log_likelihood = function(theta) -sum(theta * (precision %*% theta)) / 2,
#'   log_prior = function(theta) sum(dnorm(theta, 0, 10, log = TRUE)),
#'   draw_prior = function(n) matrix(rnorm(2 * n, 0, 10), n),
#'   gradient = function(theta) -drop(precision %*% theta),
#'   prior_gradient = function(theta) -theta / 100
#' )
#' walk <- kernel_path(model, kernel = rwm(0.3), steps = 200, start = c(-2, -2), seed = 1)
#' walk
#' plot(walk)
#' plot(kernel_path(model, kernel = hmc(10, 0.15), steps = 20, start = c(-2, -2), seed = 1))
#'
#' # the noise of mini-batches makes the draws of sgld() too wide
#' line <- linear_regression(dist ~ faster, sigma = 15, prior_sd = 50)
#' data <- data.frame(dist = cars$dist, faster = cars$speed - mean(cars$speed))
#' spread <- function(kernel, ...)
#'   sd(kernel_path(line, data, kernel, 5000, start = c(43, 4), seed = 1, ...)$faster)
#' c(slice = spread(kernel_slice()), sgld = spread(kernel_sgld(1)),
#'   batches = spread(kernel_sgld(1), batch = 5))
#'
#' @seealso [kernels], [model_functions()]
#' @export
kernel_path <- function(model, data, kernel = hmc(), steps = 100, points = 1, start = NULL,
                        thin = 1, tune = 0, scale = NULL, lambda = 1, batch = Inf, density = TRUE,
                        seed = NULL) {
  own_names("kernel")
  check_is_model(model)
  if (is_latent(model))
    fail("`model` has latent variables, which are moved by sweeps, not by kernels.")
  require_proper(model, "No path is possible")
  kernel <- check_kernel(kernel)
  thin <- check_count(thin, "thin", 1, 1e6)
  steps <- check_count(steps, "steps", 1, 1e8)
  if (steps %% thin != 0) fail("`steps` must be a multiple of `thin`, ", thin, ", not ", steps, ".")
  tune <- check_count(tune, "tune", 0, 1e6)
  lambda <- check_number(lambda, "lambda", 0, 1)
  density <- check_flag(density, "density")
  if (missing(data)) data <- part_of(model, "no_data")(model)
  encoded <- encode(model, data)
  d <- length(encoded$theta_names)
  batch <- check_path_batch(batch, kernel, lambda, encoded$n)
  precision <- path_precision(scale, d)
  words <- seed_words(seed)
  restore <- own_generator(words, keep = is.null(seed))
  on.exit(restore())
  theta <- if (!is.null(start)) as_points(start, d, "start")$points else {
    points <- check_count(points, "points", 1, 1e6)
    matrix(model_caller(model, encoded)("draw_prior", extra = list(n = points,
                                                                   seed = next_seed(words, 1))), d)
  }
  m <- ncol(theta)
  rounds <- ceiling(tune / TUNING_MOVES)
  settings <- list(
    distributions = rounds + 1, moves = c(rep(TUNING_MOVES, rounds), steps), thin = thin,
    lambda = lambda, seen = if (lambda == 1) as.double(encoded$n) else 0, precision = precision,
    density = as.double(density), answer = "path",
    gradient = if (is.finite(batch)) "batch" else "full",
    batch = if (is.finite(batch)) batch else 1
  )
  found <- .Call(ffi_kernel_moves, model_type(model), encoded$args, list(kernel$name, kernel$args),
                 encoded$rows, theta, settings, words)
  new_kernel_path(found, model, encoded, kernel, m, d, thin, batch, lambda, density)
}

TUNING_MOVES <- 20

new_kernel_path <- function(found, model, encoded, kernel, m, d, thin, batch, lambda, density) {
  places <- length(found) / (m * d)
  frame <- data.frame(
    step = rep((seq_len(places) - 1) * thin, each = m), point = rep(seq_len(m), places),
    matrix(t(matrix(found, d)), ncol = d, dimnames = list(NULL, encoded$theta_names)),
    check.names = FALSE
  )
  if (density) frame$log_density <- as.vector(attr(found, "log_density"))
  none_as_na <- function(x) if (is.null(x) || is.nan(x)) NA_real_ else x
  call <- model_caller(model, encoded)
  structure(frame, class = c("kernel_path", "data.frame"),
            kernel = replace(kernel, "mass", "default"),
            model = describe(model)[[1]], parameters = encoded$theta_names, batch = batch,
            n = encoded$n, lambda = lambda, acceptance = none_as_na(attr(found, "acceptance")),
            step_size = none_as_na(attr(found, "step_size")),
            log_density = function(theta)
              call("log_prior", theta) + if (lambda > 0) lambda * call("log_lik", theta) else 0)
}

check_path_batch <- function(batch, kernel, lambda, n) {
  if (identical(batch, Inf)) return(batch)
  batch <- check_count(batch, "batch", 1, 2^31 - 1)
  if (needs_density(kernel) || !kernel_needs(kernel, "gradient"))
    fail("`batch` is for baoab(), sghmc() and sgld(), not ", kernel$name,
         "(), which needs the exact density.")
  if (batch >= n) fail("`batch` must be less than the number of rows, ", n, ", not ", batch, ".")
  if (lambda != 1) fail("`lambda` must be 1 with mini-batches, not ", lambda, ".")
  batch
}

# The precision matrix of the scale that was given; numbers() if none was.
path_precision <- function(scale, d) {
  if (is.null(scale)) return(numeric())
  if (!is_plain_numeric(scale) || !all(is.finite(scale)))
    refuse(scale, "scale", "standard deviations or a covariance matrix")
  if (!is.matrix(scale)) {
    if (!length(scale) %in% c(1, d) || any(scale <= 0))
      fail("`scale` must be ", d, " positive standard deviations, or a covariance matrix.")
    return(as.double(diag(rep_len(1 / scale^2, d), d)))
  }
  if (!identical(dim(scale), c(as.integer(d), as.integer(d))) || !isSymmetric(unname(scale)))
    fail("`scale` must be a symmetric matrix of ", d, " x ", d, ".")
  root <- tryCatch(chol(scale), error = function(e) NULL)
  if (is.null(root)) fail("`scale` must be a covariance matrix, which is positive definite.")
  as.double(chol2inv(root))
}

#' @export
print.kernel_path <- function(x, ...) {
  check_no_dots(...)
  if (is.null(attr(x, "kernel"))) return(NextMethod())
  m <- max(x$point)
  cat(attr(x, "model"), "\n", count_of(m, "point"), " moved ", count_of(max(x$step), "time"),
      " by ", format_kernel(attr(x, "kernel")),
      if (is.finite(attr(x, "batch"))) paste0(", mini-batches of ", attr(x, "batch"), " of ",
                                              count_of(attr(x, "n"), "row")),
      if (attr(x, "lambda") != 1) paste0(", likelihood to the power ", attr(x, "lambda")), "\n",
      sep = "")
  if (!is.na(attr(x, "acceptance")))
    cat(sprintf("acceptance %.0f%%", 100 * attr(x, "acceptance")), sep = "")
  if (!is.na(attr(x, "step_size")))
    cat(if (!is.na(attr(x, "acceptance"))) ", ", "last step size ",
        format(signif(attr(x, "step_size"), 3)), sep = "")
  if (!is.na(attr(x, "acceptance")) || !is.na(attr(x, "step_size"))) cat("\n")
  values <- as.matrix(as.data.frame(x)[attr(x, "parameters")])
  shown <- t(apply(values, 2, function(v) signif(c(mean = mean(v), sd = stats::sd(v)), 4)))
  print(utils::head(shown, 20))
  if (nrow(shown) > 20) cat("and", nrow(shown) - 20, "other parameters\n")
  invisible(x)
}

#' @export
`[.kernel_path` <- function(x, ...) as.data.frame(x)[...]

#' @export
as.data.frame.kernel_path <- function(x, ...) plain_table(x)

#' @param x A result of `kernel_path()`.
#' @param parameters Names of one or two parameters to draw; the first two by default.
#' @param ... Passed on to [plot()].
#' @rdname kernel_path
#' @export
plot.kernel_path <- function(x, parameters = NULL, ...) {
  known <- attr(x, "parameters")
  if (is.null(parameters)) parameters <- utils::head(known, 2)
  if (!is.character(parameters) || !length(parameters) %in% 1:2 || !all(parameters %in% known))
    fail("`parameters` must be one or two of ", show_names(known), ".")
  frame <- as.data.frame(x)
  lines_of <- split(frame, frame$point)
  colours <- rep_len(c(BLUE, ORANGE, "#009E73", "#CC79A7", "#E69F00", "#56B4E9"), length(lines_of))
  over <- length(parameters) == 2
  across <- if (over) frame[[parameters[1]]] else frame$step
  along <- frame[[parameters[length(parameters)]]]
  settings <- list(x = across, y = along, type = "n", xlab = if (over) parameters[1] else "step",
                   ylab = parameters[length(parameters)],
                   main = format_kernel(attr(x, "kernel")))
  do.call(graphics::plot, utils::modifyList(settings, list(...)))
  if (over && length(known) == 2) path_contours(x)
  for (i in seq_along(lines_of)) {
    one <- lines_of[[i]]
    at <- if (over) one[[parameters[1]]] else one$step
    graphics::lines(at, one[[parameters[length(parameters)]]], col = colours[i])
    graphics::points(at, one[[parameters[length(parameters)]]], col = colours[i], pch = 16,
                     cex = 0.5)
    graphics::points(at[1], one[[parameters[length(parameters)]]][1], col = colours[i], pch = 1,
                     cex = 1.6)
  }
  invisible(x)
}

#' Contours of a density of two parameters: half a nat, 2, 4.5 and 8 below the highest value seen
#' @noRd
path_contours <- function(x) {
  limits <- graphics::par("usr")
  across <- seq(limits[1], limits[2], length.out = 61)
  along <- seq(limits[3], limits[4], length.out = 61)
  value <- matrix(attr(x, "log_density")(t(as.matrix(expand.grid(across, along)))), 61)
  value[!is.finite(value)] <- min(value[is.finite(value)], 0) - 100
  graphics::contour(across, along, value - max(value), levels = -c(0.5, 2, 4.5, 8), add = TRUE,
                    drawlabels = FALSE, col = "grey60")
}

# Markov kernels as specifications: which one, and its settings. What a setting means is said once,
# on the help page of all kernels; what a kernel does is in src/kernels.

new_kernel <- function(name, args, mass = "default") {
  structure(list(name = name, args = args, mass = mass), class = "evidence_kernel")
}

#' Markov kernels
#'
#' How particles move between two reweightings. Every method that takes a `kernel` takes each of
#' these whose needs are met: `hmc()`, `mala()`, `rwm()` and `slice()` look at the exact density and
#' so need the full data; `baoab()`, `sghmc()` and `sgld()` need only a gradient, which may come
#' from mini-batches. `rwm()` and `slice()` need no gradients. Nested sampling takes `slice()`,
#' `rwm()`, `sghmc()` and `prior_draws()`. A mismatch is an error before anything runs.
#'
#' @param leapfrog Leapfrog steps of a trajectory, a whole number; `NULL`, the default, takes as
#'   many as make a trajectory of length 1.5 on the scale of the mass matrix.
#' @param step_size Step size, positive. `NULL`, the default for the kernels with an accept step,
#'   starts from a rule of thumb and adapts to the acceptance rate `accept`, only ever between two
#'   distributions. On the scale of the mass matrix.
#' @param accept Acceptance rate to aim at, between 0 and 1.
#' @param mass Mass matrix: `"dense"` (the default) or `"diagonal"`, from the curvature of the model
#'   or the spread of the particles, or `"identity"`.
#' @param rate Learning rate per observation: the step is \eqn{\eta = rate / n} with \eqn{n} the
#'   observations in the current distribution.
#' @param friction For `sghmc()` the share \eqn{\alpha} of the momentum that is lost in a step, in
#'   (0, 1\]; 1 makes it `sgld()`. For `baoab()` the friction \eqn{\gamma} per unit of time.
#' @param noise Assumed variance \eqn{\hat\beta} of the gradient's own noise, taken off the injected
#'   noise; 0, as published, ignores it.
#' @param refresh Whether to draw fresh momenta before every step and not only at the start of each
#'   distribution.
#' @param tempered Whether a chunk that is annealed at \eqn{\lambda} counts \eqn{\lambda} times in
#'   \eqn{n}; `FALSE`, as published, counts it in full.
#' @param bounce For `sghmc()` in nested sampling: whether a point that is reflected at the
#'   likelihood's wall goes on from where it met it, which is reversible; `FALSE`, as published,
#'   keeps it where it was.
#' @param width Width of the interval in which `slice()` looks for the next point, positive, on the
#'   scale of the mass matrix; `NULL`, the default, adapts it between distributions.
#' @param clip Largest move of a whitened coordinate in one step, positive.
#'
#' @details
#' `hmc()` is Hamiltonian Monte Carlo and `mala()` its one-step form, `rwm()` random-walk
#' Metropolis, `sgld()` and `sghmc()` stochastic gradient Langevin dynamics and Hamiltonian Monte
#' Carlo as published, and `baoab()` underdamped Langevin dynamics on a whitened scale by the
#' splitting of that name, which samples a Gaussian without step size error. `slice()` is slice
#' sampling along random orthogonal directions, by shrinkage. `prior_draws()`, for nested sampling
#' only, draws from the prior until the likelihood is high enough: exact, and slow beyond a few
#' parameters. As published, `sghmc()` loses some variance at the start of each distribution, so it
#' wants ten `steps` or more.
#'
#' @return An object of class `"evidence_kernel"`.
#'
#' @references
#' Neal, R. M. (2011). MCMC using Hamiltonian dynamics. In *Handbook of Markov Chain Monte Carlo*.
#'
#' Chen, T., Fox, E. and Guestrin, C. (2014). Stochastic gradient Hamiltonian Monte Carlo. *ICML*.
#'
#' Leimkuhler, B. and Matthews, C. (2013). Rational construction of stochastic numerical methods for
#' molecular sampling. *Applied Mathematics Research eXpress*. \doi{10.1093/amrx/abs010}
#'
#' Neal, R. M. (2003). Slice sampling. *Annals of Statistics* 31, 705-767.
#' \doi{10.1214/aos/1056562461}
#'
#' Welling, M. and Teh, Y. W. (2011). Bayesian learning via stochastic gradient Langevin dynamics.
#' *ICML*.
#'
#' @examples
#' hmc()
#' evidence(gaussian_mean(), c(1.2, 0.4, 2.1), ais(kernel = mala()), seed = 1)
#'
#' @name kernels
NULL

#' @rdname kernels
#' @export
hmc <- function(leapfrog = NULL, step_size = NULL, accept = 0.8, mass = "dense") {
  new_kernel("hmc", list(
    leapfrog = if (is.null(leapfrog)) 0 else check_count(leapfrog, "leapfrog", 1, 1e4),
    step_size = check_step(step_size),
    accept = check_number(accept, "accept", 0, 1, TRUE, TRUE)
  ), check_mass(mass))
}

#' @rdname kernels
#' @export
mala <- function(step_size = NULL, accept = 0.65, mass = "dense") {
  hmc(leapfrog = 1, step_size = step_size, accept = accept, mass = mass)
}

#' @rdname kernels
#' @export
rwm <- function(step_size = NULL, mass = "dense") {
  new_kernel("rwm", list(step_size = check_step(step_size)), check_mass(mass))
}

#' @rdname kernels
#' @export
sgld <- function(rate = 0.1, noise = 0, tempered = TRUE) {
  new_kernel("sgld", list(
    rate = check_positive(rate, "rate"),
    noise = check_number(noise, "noise", 0),
    tempered = as.double(check_flag(tempered, "tempered"))
  ))
}

#' @rdname kernels
#' @export
sghmc <- function(rate = 0.1, friction = 0.2, noise = 0, refresh = FALSE, tempered = TRUE,
                  bounce = TRUE) {
  new_kernel("sghmc", list(
    rate = check_positive(rate, "rate"),
    friction = check_number(friction, "friction", 0, 1, lower_open = TRUE),
    noise = check_number(noise, "noise", 0),
    refresh = as.double(check_flag(refresh, "refresh")),
    tempered = as.double(check_flag(tempered, "tempered")),
    bounce = as.double(check_flag(bounce, "bounce"))
  ))
}

#' @rdname kernels
#' @export
baoab <- function(step_size = 0.7, friction = 2, clip = 3, mass = "dense") {
  new_kernel("baoab", list(
    step_size = check_number(step_size, "step_size", 0, 2, TRUE, TRUE),
    friction = check_positive(friction, "friction"),
    clip = check_positive(clip, "clip")
  ), check_mass(mass))
}

#' @rdname kernels
#' @export
slice <- function(width = NULL, mass = "dense") {
  new_kernel("slice", list(width = if (is.null(width)) 0 else check_positive(width, "width")),
             check_mass(mass))
}

#' @rdname kernels
#' @export
prior_draws <- function() new_kernel("prior_draws", list())

check_step <- function(step_size)
  if (is.null(step_size)) 0 else check_positive(step_size, "step_size")

check_mass <- function(mass) check_choice(mass, "mass", setdiff(setting_words("mass"), "default"))

check_kernel <- function(kernel, name = "kernel", walled = FALSE) {
  if (!inherits(kernel, "evidence_kernel")) refuse(kernel, name, "a kernel, such as `hmc()`")
  if (!walled && kernel_needs(kernel, "floor"))
    fail("`", name, "` ", kernel$name,
         "() is for nested() only: it draws from the prior and ignores the particles.")
  kernel
}

# What C says of engines and kernels.
tables <- function() .Call(ffi_tables)

# The words that a setting of a stage may be.
setting_words <- function(name) {
  stage <- tables()$engines$walk$stage
  strsplit(stage$words[stage$name == name], " ")[[1]]
}

kernel_needs <- function(kernel, what) what %in% tables()$kernels[[kernel$name]]$needs

needs_density <- function(kernel) kernel_needs(kernel, "density")

# Kernels that leave their distribution as it is at any fixed step size.
is_reversible <- function(kernel) isTRUE(tables()$kernels[[kernel$name]]$fixes)

#' @export
print.evidence_kernel <- function(x, ...) {
  cat("Kernel ", format_kernel(x), "\n", sep = "")
  invisible(x)
}

# As a call; settings left to adapt are not shown.
format_kernel <- function(kernel) {
  args <- kernel$args
  flag <- names(args) %in% c("refresh", "tempered", "bounce")
  shown <- ifelse(flag, as.character(unlist(args) != 0), vapply(args, format, ""))
  adaptive <- names(args) %in% c("leapfrog", "step_size", "width") & unlist(args) == 0
  pieces <- paste(names(args), shown, sep = " = ")[!adaptive]
  if (kernel$mass != "default") pieces <- c(pieces, paste0("mass = \"", kernel$mass, "\""))
  paste0(kernel$name, "(", paste(pieces, collapse = ", "), ")")
}

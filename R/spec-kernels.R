# Markov kernels as specifications: a name and settings. The help page of all kernels explains the
# settings; src/kernels has the kernels.

#' @param moves Least number of moves at each distribution, if the user gives none.
#' @param walled For kernels that can keep points above a likelihood threshold: the first number of
#'   moves for each parameter in nested sampling, before it adapts.
#' @noRd
new_kernel <- function(name, args, mass = "default", moves = 2, walled = NULL) {
  structure(list(name = name, args = args, mass = mass, moves = moves, walled = walled),
            class = "evidence_kernel")
}

#' Markov kernels
#'
#' A Markov kernel moves the particles between two reweightings. `hmc()`, `mala()`, `rwm()` and
#' `slice()` use the exact density and so need the full data. `baoab()`, `sghmc()` and `sgld()` need
#' only a gradient, which may come from mini-batches. `rwm()` and `slice()` need no gradients.
#' Nested sampling takes `slice()`, `rwm()`, `sghmc()` and `prior_draws()`. A kernel that does not
#' suit the method or the model is an error before the run starts.
#'
#' @param leapfrog Number of leapfrog steps of a trajectory; `NULL`, the default, takes as many as
#'   give a trajectory of length 1.5 on the scale of the mass matrix.
#' @param step_size Step size, positive. On the scale of the mass matrix. `NULL`, the default for
#'   kernels with an accept step, starts from a rule of thumb and adapts to the acceptance rate
#'   `accept`, only between two distributions.
#' @param accept Target acceptance rate, between 0 and 1.
#' @param mass Mass matrix: `"dense"` (the default) or `"diagonal"`, computed from the curvature of
#'   the model or the spread of the particles, or `"identity"`.
#' @param rate Learning rate per observation: the step is \eqn{\eta = rate / n} with \eqn{n} the
#'   observations in the current distribution.
#' @param friction For `sghmc()` the share \eqn{\alpha} of the momentum that is lost in a step, in
#'   (0, 1\]; 1 gives `sgld()`. For `baoab()` the friction \eqn{\gamma} per unit of time.
#' @param noise \eqn{\hat\beta}, what is subtracted from the injected noise because mini-batches add
#'   noise of their own: half of the variance of the gradient makes up for it exactly (the thesis
#'   speaks of the variance itself). 0, as published, ignores it. `"adaptive"` measures it: each
#'   move has two mini-batches of half the size, and half the running mean of their squared half
#'   difference is subtracted for each parameter. No more can be subtracted than is injected: for a
#'   posterior of \eqn{n} rows that is all of the noise up to \eqn{n = 2 \alpha b / r} rows, with
#'   \eqn{b} the size of a mini-batch and \eqn{r} the rate (2,000 with the published settings).
#' @param scaled How `noise` enters. With `TRUE`, the default, the injected noise has the variance
#'   \eqn{2(\alpha - \hat\beta\eta)\eta}, as in the thesis of Cameron. With `FALSE` it is a part
#'   of the friction, and the variance is \eqn{2(\alpha - \hat\beta)\eta}, as in the article of
#'   Cameron, Eggers and Kroon; `noise` must then be less than the friction.
#' @param decay,delay Decreasing steps: move \eqn{t} of a distribution, counted from 0, has the step
#'   \eqn{\eta (1 + t / \mathrm{delay})^{-\mathrm{decay}}}{eta (1 + t / delay)^-decay}. A `decay`
#'   above 1/2 and at most 1 satisfies the conditions of Robbins and Monro; 0, the default, keeps
#'   the step.
#' @param refresh Whether to draw new momenta before every step and not only at the start of each
#'   distribution. The drift is then \eqn{(1 + \alpha^2)\eta/2} times the gradient, which belongs to
#'   the noise of fresh momenta; with the published drift \eqn{\eta} the temperature would be about
#'   one half.
#' @param tempered Whether a chunk at annealing parameter \eqn{\lambda} contributes \eqn{\lambda}
#'   times its rows to \eqn{n}; with `FALSE`, as published, it contributes all its rows.
#' @param bounce For `sghmc()` in nested sampling: whether a point that is reflected at the
#'   likelihood threshold continues from the place of reflection, which is reversible; with `FALSE`,
#'   as published, it stays where it was before the step.
#' @param width Width of the interval in which `slice()` searches the next point, positive, on the
#'   scale of the mass matrix; `NULL`, the default, adapts it between distributions.
#' @param clip Largest change of a whitened coordinate in one step, positive.
#'
#' @details
#' `hmc()` is Hamiltonian Monte Carlo and `mala()` its one-step form, `rwm()` random-walk
#' Metropolis, `sgld()` and `sghmc()` stochastic gradient Langevin dynamics and Hamiltonian Monte
#' Carlo as published, and `baoab()` underdamped Langevin dynamics on a whitened scale with the
#' BAOAB splitting, which samples a Gaussian without step-size error. `slice()` is slice sampling
#' along random orthogonal directions, with shrinkage. `prior_draws()`, for nested sampling only,
#' draws from the prior until the likelihood is high enough: it is exact, and slow beyond a few
#' parameters. As published, `sghmc()` loses some variance at the start of each distribution, so use
#' at least ten `steps`.
#'
#' In arguments the names do without `kernel_`, as above: see [logevidence_names].
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
#' kernel_hmc()
#' evidence(gaussian_mean(), c(1.2, 0.4, 2.1), ais(kernel = mala()), seed = 1)
#'
#' @aliases baoab hmc mala prior_draws rwm sghmc
#'   sgld slice
#' @name kernels
NULL

#' @rdname kernels
#' @export
kernel_hmc <- function(leapfrog = NULL, step_size = NULL, accept = 0.8, mass = "dense") {
  new_kernel("hmc", list(
    leapfrog = if (is.null(leapfrog)) 0 else check_count(leapfrog, "leapfrog", 1, 1e4),
    step_size = check_step(step_size),
    accept = check_number(accept, "accept", 0, 1, TRUE, TRUE)
  ), check_mass(mass))
}

#' @rdname kernels
#' @export
kernel_mala <- function(step_size = NULL, accept = 0.65, mass = "dense") {
  hmc(leapfrog = 1, step_size = step_size, accept = accept, mass = mass)
}

#' @rdname kernels
#' @export
kernel_rwm <- function(step_size = NULL, mass = "dense") {
  new_kernel("rwm", list(step_size = check_step(step_size)), check_mass(mass), moves = 10,
             walled = 10)
}

#' @rdname kernels
#' @export
kernel_sgld <- function(rate = 0.1, noise = 0, tempered = TRUE, scaled = TRUE, decay = 0,
                        delay = 1) {
  new_kernel("sgld", c(list(
    rate = check_positive(rate, "rate"),
    tempered = as.double(check_flag(tempered, "tempered"))
  ), langevin_steps(noise, 1, scaled, decay, delay)))
}

# What sgld() and sghmc() have in common.
langevin_steps <- function(noise, friction, scaled, decay, delay) {
  scaled <- check_flag(scaled, "scaled")
  adaptive <- identical(noise, "adaptive")
  if (is.character(noise) && !adaptive) refuse(noise, "noise", "a number or \"adaptive\"")
  if (adaptive) noise <- 0
  noise <- check_number(noise, "noise", 0)
  if (!scaled && noise >= friction)
    fail("`noise` must be less than the friction, ", friction, ", with `scaled = FALSE`, not ",
         noise, ".")
  list(noise = noise, adaptive = as.double(adaptive), scaled = as.double(scaled),
       decay = check_number(decay, "decay", 0, 1), delay = check_positive(delay, "delay"))
}

#' @rdname kernels
#' @export
kernel_sghmc <- function(rate = 0.1, friction = 0.2, noise = 0, refresh = FALSE, tempered = TRUE,
                         bounce = TRUE, scaled = TRUE, decay = 0, delay = 1) {
  new_kernel("sghmc", c(list(
    rate = check_positive(rate, "rate"),
    friction = check_number(friction, "friction", 0, 1, lower_open = TRUE),
    refresh = as.double(check_flag(refresh, "refresh")),
    tempered = as.double(check_flag(tempered, "tempered")),
    bounce = as.double(check_flag(bounce, "bounce"))
  ), langevin_steps(noise, friction, scaled, decay, delay)), walled = 5)
}

#' @rdname kernels
#' @export
kernel_baoab <- function(step_size = 0.7, friction = 2, clip = 3, mass = "dense") {
  new_kernel("baoab", list(
    step_size = check_number(step_size, "step_size", 0, 2, TRUE, TRUE),
    friction = check_positive(friction, "friction"),
    clip = check_positive(clip, "clip")
  ), check_mass(mass))
}

#' @rdname kernels
#' @export
kernel_slice <- function(width = NULL, mass = "dense") {
  new_kernel("slice", list(width = if (is.null(width)) 0 else check_positive(width, "width")),
             check_mass(mass), moves = 5, walled = 3)
}

#' @rdname kernels
#' @export
kernel_prior_draws <- function() new_kernel("prior_draws", list(), walled = 0)

check_step <- function(step_size)
  if (is.null(step_size)) 0 else check_positive(step_size, "step_size")

check_mass <- function(mass) check_choice(mass, "mass", setdiff(setting_words("mass"), "default"))

check_kernel <- function(kernel, name = "kernel", walled = FALSE) {
  if (!is_made(kernel, "evidence_kernel"))
    refuse_made(kernel, name, "a kernel, such as `hmc()`", "kernel")
  if (!walled && kernel_needs(kernel, "floor"))
    fail("`", name, "` ", kernel$name,
         "() is for nested() only: it draws from the prior and ignores the particles.")
  kernel
}

# The tables of engines and kernels, from C. They never change, and are asked for many times in a
# fit.
tables <- local({
  known <- NULL
  function() {
    if (is.null(known)) known <<- .Call(ffi_tables)
    known
  }
})

#' The largest number of leapfrog steps of a trajectory
#' @noRd
most_leapfrog <- function(kernel) {
  asked <- kernel$args$leapfrog
  if (isTRUE(asked > 0)) asked else tables()$kernels[[.subset2(kernel, "name")]]$steps_most
}

# The allowed words of a setting of a stage.
setting_words <- function(name) {
  stage <- tables()$engines$walk$stage
  strsplit(stage$words[stage$name == name], " ")[[1]]
}

kernel_needs <- function(kernel, what) what %in% tables()$kernels[[.subset2(kernel, "name")]]$needs

needs_density <- function(kernel) kernel_needs(kernel, "density")

# Kernels that leave their target invariant at any fixed step size.
is_reversible <- function(kernel) isTRUE(tables()$kernels[[.subset2(kernel, "name")]]$fixes)

#' @export
print.evidence_kernel <- function(x, ...) {
  cat("Kernel ", format_kernel(x), "\n", sep = "")
  invisible(x)
}

# A kernel as a call, without settings left to adapt and steps that do not decrease.
format_kernel <- function(kernel) {
  args <- kernel$args
  if (isTRUE(args$scaled == 1)) args$scaled <- NULL
  if (isTRUE(args$decay == 0)) args[c("decay", "delay")] <- NULL
  flag <- names(args) %in% c("refresh", "tempered", "bounce", "scaled")
  shown <- ifelse(flag, as.character(unlist(args) != 0), vapply(args, format, ""))
  adaptive <- names(args) %in% c("leapfrog", "step_size", "width") & unlist(args) == 0
  pieces <- paste(names(args), shown, sep = " = ")[!adaptive]
  if (kernel$mass != "default") pieces <- c(pieces, paste0("mass = \"", kernel$mass, "\""))
  paste0(kernel$name, "(", paste(pieces, collapse = ", "), ")")
}

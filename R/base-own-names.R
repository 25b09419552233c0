# The names of constructors: a name with a prefix, which is exported, and a short one, which is for
# arguments of this package's functions. There it means the function of this package, whatever
# other packages are attached.

#' Names of constructors, and names of other packages
#'
#' Other packages have functions with names such as `slice()` or `normal()`. So each constructor of
#' a kernel, method, schedule, prior or family has a name which begins with the kind of thing that
#' it makes: [kernel_slice()], [prior_normal()]. **In arguments of this package's functions the name
#' without the prefix means the same**, in any order of [library()]:
#' ```
#' regression(dist ~ speed, prior = normal(0, 5))
#' evidence(model, data, nested(kernel = slice()))
#' ```
#' Everywhere else write the name with its prefix: `p <- prior_normal(0, 5)`.
#'
#' @details
#' Names with a prefix, by kind:
#' * [kernels]: `kernel_hmc()`, `kernel_mala()`, `kernel_rwm()`, `kernel_slice()`, `kernel_baoab()`,
#'   `kernel_sghmc()`, `kernel_sgld()`, `kernel_prior_draws()`;
#' * methods: `method_` before [ais()], [bic()], [bridge()], [chib()], [exact()], [harmonic_mean()],
#'   [hybrid()], [laplace()], [likelihood_weighting()], [nested()], [online_nested()],
#'   [partitions()], [power_posterior()], [sequential()], [sgais()], [smc()], [variational()];
#' * [schedules]: `schedule_adaptive()`, `schedule_linear()`, `schedule_sigmoidal()`;
#' * [priors]: `prior_normal()`, `prior_student_t()`, `prior_cauchy()`, `prior_half_normal()`,
#'   `prior_half_student()`, `prior_inverse_gamma()`, `prior_exponential()`, [prior_jzs()],
#'   [prior_lkj()];
#' * [families]: `family_student()`, `family_negative_binomial()`, `family_weibull()`.
#'
#' A method prints the name by which it was made, `smc()` or `method_smc()`; nothing else differs.
#'
#' @section Short names in arguments:
#' The arguments are those that take such things: `method`, `methods`, `kernel`, `schedule`, `run`,
#' `start` and `early` of methods, `grid`, `prior`, `intercept`, `auxiliary`, `sigma`, `group_sd`,
#' `group_cor`, `family`, `df`, and the parameters of [density()][density.formula]. What is written
#' there is evaluated where the constructors of this package come first:
#' * in all of it, also in `list(sgais(), smc())` or `lapply(1:3, function(k) laplace(k))`;
#' * a function of the same name of your own is not found there, one of a package by `::` is, as
#'   `rstanarm::normal()`;
#' * your variables are found as before, also those of these names: with `normal <- 3`,
#'   `prior = normal(0, normal)` has the standard deviation 3;
#' * it applies to what is written in the call of a function of this package, also if it gets there
#'   by `...`. An argument of a function of your own is no such place: in
#'   `f <- function(m) evidence(model, data, m)`, call `f(method_exact())`;
#' * formulas are left as they are.
#'
#' @section Short names elsewhere:
#' Short names that no other package of wide use is known to have are exported, too: `ais()`,
#' `bridge()`, `chib()`, `harmonic_mean()`, `hybrid()`, `likelihood_weighting()`, `nested()`,
#' `online_nested()`, `partitions()`, `power_posterior()`, `sgais()`, `variational()`; `baoab()`,
#' `mala()`, `rwm()`; `adaptive()`, `sigmoidal()`; `half_normal()`, `half_student()`, `jzs()`. These
#' are not, because others have functions of these names:
#'
#' | Name | Packages | Name with prefix |
#' |---|---|---|
#' | `slice()` | dplyr, plotly, greta | `kernel_slice()` |
#' | `hmc()` | greta | `kernel_hmc()` |
#' | `sghmc()`, `sgld()` | sgmcmc | `kernel_sghmc()`, `kernel_sgld()` |
#' | `prior_draws()` | brms | `kernel_prior_draws()` |
#' | `sequential()` | future | `method_sequential()` |
#' | `laplace()` | rstanarm, VGAM, greta | `method_laplace()` |
#' | `bic()` | mclust | `method_bic()` |
#' | `exact()` | coin | `method_exact()` |
#' | `smc()` | psych | `method_smc()` |
#' | `linear()` | many, as a variable or a function | `schedule_linear()` |
#' | `normal()` | rstanarm, greta | `prior_normal()` |
#' | `student_t()` | rstanarm | `prior_student_t()` |
#' | `cauchy()` | rstanarm, VGAM, greta | `prior_cauchy()` |
#' | `exponential()` | rstanarm, brms, VGAM, greta | `prior_exponential()` |
#' | `inverse_gamma()` | greta | `prior_inverse_gamma()` |
#' | `lkj()` | rstanarm | `prior_lkj()` |
#' | `student()`, `weibull()` | brms, greta | `family_student()`, `family_weibull()` |
#' | `negative_binomial()` | greta | `family_negative_binomial()` |
#' | `report()` | report | `evidence_report()` |
#' | `tune()` | e1071, hardhat, parsnip | `evidence_tune()` |
#'
#' @section Verbs that other packages have, too:
#' Each of these passes on objects that it does not know, so that it does no harm to mask the other:
#' * [log_lik()] and [prior_summary()] of \pkg{rstantools}, \pkg{brms} and \pkg{rstanarm};
#'   [logml()], [bayes_factor()], [post_prob()] and [error_measures()] of \pkg{bridgesampling} and
#'   \pkg{brms}: these are generics with methods for fits of this package, and those here take fits
#'   of the others, in either order;
#' * `report()` of \pkg{report} has methods for fits of this package, and [evidence_report()] takes
#'   objects of the other;
#' * [check_model()] of \pkg{performance} also takes models of this package, and that of this
#'   package passes other objects on to it if it is attached;
#' * [compare_models()] (also in \pkg{parameters}, \pkg{rstanarm} and \pkg{caret}) and
#'   [posterior_draws()] (also in \pkg{marginaleffects}) pass objects of others on to
#'   \pkg{parameters} and \pkg{marginaleffects} if these are attached. The functions there know no
#'   fits of this package. If they were attached later, write `evidence_compare_models()`,
#'   `evidence_check_model()` and `evidence_posterior_draws()`;
#' * [density()][density.formula] is that of \pkg{stats}, with a method for formulas; `density()` of
#'   \pkg{terra} and \pkg{raster} passes formulas on. `density_model()` is a second name.
#'
#' No function of base R or of its packages is masked. `tidy()`, `glance()`, `augment()`,
#' `as_draws()`, `autoplot()` and other generics of packages are not exported, only methods for
#' them.
#'
#' @return See the help page of each function.
#'
#' @examples
#' wide <- prior_normal(0, 5)
#' regression(dist ~ speed, prior = wide)
#' regression(dist ~ speed, prior = normal(0, 5))
#'
#' # another package's slice() may be attached
#' slice <- function(.data, ...) .data[c(...), ]
#' slice(cars, 1:2)
#' evidence(gaussian_mean(), c(1.2, 0.4, 2.1), nested(live = 50, kernel = slice()), seed = 1)
#'
#' @name logevidence_names
#' @rawNamespace export(ais, bridge, chib, harmonic_mean, hybrid, likelihood_weighting, nested,
#'   online_nested, partitions, power_posterior, sgais, variational)
#' @rawNamespace export(baoab, mala, rwm)
#' @rawNamespace export(adaptive, sigmoidal)
#' @rawNamespace export(half_normal, half_student, jzs)
NULL

# Short names by what the exported names begin with.
SHORT_NAMES <- list(
  kernel = c("baoab", "hmc", "mala", "prior_draws", "rwm", "sghmc", "sgld", "slice"),
  method = c("ais", "bic", "bridge", "chib", "exact", "harmonic_mean", "hybrid", "laplace",
             "likelihood_weighting", "nested", "online_nested", "partitions", "power_posterior",
             "sequential", "sgais", "smc", "variational"),
  schedule = c("adaptive", "linear", "sigmoidal"),
  prior = c("cauchy", "exponential", "half_normal", "half_student", "inverse_gamma", "jzs",
            "lkj", "normal", "student_t"),
  family = c("negative_binomial", "student", "weibull")
)

# The short names are given while the package loads, so that the installed package has each function
# once.
add_short_names <- function(namespace) {
  add <- function(short, name) {
    force(name)
    delayedAssign(short, get(name, namespace), assign.env = namespace)
  }
  for (kind in names(SHORT_NAMES))
    for (short in SHORT_NAMES[[kind]]) add(short, paste0(kind, "_", short))
}

#' Let arguments of the calling function find the constructors of this package first
#'
#' They are evaluated when they are needed, as before, and missing() and match.call() do not change.
#' @param ... Names of arguments.
#' @noRd
own_names <- function(...) {
  frame <- parent.frame()
  for (name in c(...)) {
    if (eval(call("missing", as.name(name)), frame)) next
    written <- eval(call("substitute", as.name(name)), frame)
    mask <- own_mask(written, place_of_argument(written, sys.parent()))
    if (!is.null(mask)) do.call(delayedAssign, list(name, written, mask, frame))
  }
}

#' The arguments in the dots of the calling function, as a list, evaluated in the same way
#' @noRd
own_list <- function(...) {
  written <- as.list(substitute(list(...)))[-1]
  frame <- sys.parent()
  values <- lapply(seq_along(written), function(i) {
    mask <- own_mask(written[[i]], place_of_argument(written[[i]], frame))
    if (is.null(mask)) ...elt(i) else eval(written[[i]], mask)
  })
  stats::setNames(values, names(written))
}

#' What is written, evaluated in an environment, where the constructors of this package come first
#' @noRd
eval_own <- function(written, place) {
  mask <- own_mask(written, place)
  eval(written, if (is.null(mask)) place else mask)
}

#' An environment in front of `place` with the constructors whose names are in an expression
#'
#' R finds values and functions separately: a variable of the user with such a name stays in front.
#' @return NULL if there are no such names, if the expression is a formula, or without a place.
#' @noRd
own_mask <- function(written, place) {
  if (is.call(written) && identical(written[[1]], quote(`~`))) return(NULL)
  names <- intersect(all.names(written), unlist(SHORT_NAMES))
  if (!length(names) || is.null(place)) return(NULL)
  variables <- intersect(names, all.names(written, functions = FALSE))
  variables <- lapply(stats::setNames(nm = variables), function(name) or_null(get0(name, place)))
  variables <- Filter(function(value) !is.null(value) && !is.function(value), variables)
  constructors <- list2env(mget(names, topenv()), parent = place)
  if (length(variables)) list2env(variables, parent = constructors) else constructors
}

#' Where an argument of the call in a frame was written
#'
#' That is where the call was made, or, if the argument came in dots, a call before it.
#' @return An environment, or NULL if no call has this argument.
#' @noRd
place_of_argument <- function(written, frame) {
  before <- sys.parents()
  while (frame > 0) {
    arguments <- as.list(sys.call(frame))[-1]
    if (any(vapply(arguments, identical, NA, written)))
      return(do.call(parent.frame, list(), envir = sys.frame(frame)))
    frame <- before[frame]
  }
}

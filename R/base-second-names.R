# Second names, for functions whose first one may be masked by a function of another package. A
# second name is the same function under another name; the help page below says which there are.

#' Second names of functions
#'
#' Other packages have functions with names such as `slice()` or `normal()`. The package that is
#' attached last masks those of the others. Each constructor of a kernel, method, schedule, prior or
#' family has therefore a second name, which begins with the kind of thing that it makes:
#' `kernel_slice()` is `slice()`. It works in any order of [library()], and so does
#' `logevidence::slice()`.
#'
#' @details
#' Second names:
#' * [kernels]: `kernel_hmc()`, `kernel_mala()`, `kernel_rwm()`, `kernel_slice()`, `kernel_baoab()`,
#'   `kernel_sghmc()`, `kernel_sgld()`, `kernel_prior_draws()`;
#' * methods: `method_` before [ais()], [bic()], [bridge()], [chib()], [exact()], [harmonic_mean()],
#'   [hybrid()], [laplace()], [likelihood_weighting()], [nested()], [online_nested()],
#'   [partitions()], [power_posterior()], [sequential()], [sgais()], [smc()], [variational()];
#' * [schedules]: `schedule_adaptive()`, `schedule_linear()`, `schedule_sigmoidal()`;
#' * [priors]: `prior_normal()`, `prior_student_t()`, `prior_cauchy()`, `prior_half_normal()`,
#'   `prior_half_student()`, `prior_inverse_gamma()`, `prior_exponential()`, and `prior_jzs()` for
#'   [jzs()], `prior_lkj()` for [lkj()];
#' * [families]: `family_student()`, `family_negative_binomial()`, `family_weibull()`;
#' * verbs: `evidence_compare_models()` for [compare_models()], `evidence_check_model()` for
#'   [check_model()], `evidence_posterior_draws()` for [posterior_draws()],
#'   `evidence_report()` for [report()], `evidence_tune()` for [tune()];
#' * `density_model()` for [density()][density.formula].
#'
#' A method that was made as `method_smc()` prints this name; nothing else differs.
#'
#' **Who masks whom.** Names that are known to be in other packages, too:
#'
#' | Name | Packages | Second name |
#' |---|---|---|
#' | `slice()` | dplyr, plotly, greta | `kernel_slice()` |
#' | `hmc()` | greta | `kernel_hmc()` |
#' | `prior_draws()` | brms | `kernel_prior_draws()` |
#' | `sequential()` | future | `method_sequential()` |
#' | `laplace()` | rstanarm, VGAM, greta | `method_laplace()` |
#' | `bic()` | mclust | `method_bic()` |
#' | `exact()` | coin | `method_exact()` |
#' | `smc()` | psych | `method_smc()` |
#' | `normal()` | rstanarm, greta | `prior_normal()` |
#' | `student_t()` | rstanarm | `prior_student_t()` |
#' | `cauchy()` | rstanarm, VGAM, greta | `prior_cauchy()` |
#' | `exponential()` | rstanarm, brms, VGAM, greta | `prior_exponential()` |
#' | `inverse_gamma()` | greta | `prior_inverse_gamma()` |
#' | `student()`, `weibull()` | brms, greta | `family_student()`, `family_weibull()` |
#' | `negative_binomial()` | greta | `family_negative_binomial()` |
#' | `compare_models()` | parameters, rstanarm, caret | `evidence_compare_models()` |
#' | `check_model()` | performance | `evidence_check_model()` |
#' | `posterior_draws()` | marginaleffects | `evidence_posterior_draws()` |
#' | `report()` | report | `evidence_report()` |
#' | `tune()` | e1071, hardhat, parsnip | `evidence_tune()` |
#' | `density()` | terra, raster (which pass formulas on) | `density_model()` |
#'
#' **Names that may be masked in either order**, because each function passes on what it does not
#' know:
#' * `log_lik()` and `prior_summary()` of \pkg{rstantools}, \pkg{brms} and \pkg{rstanarm};
#'   `logml()`, `bayes_factor()`, `post_prob()` and `error_measures()` of \pkg{bridgesampling} and
#'   \pkg{brms}: these are generics with methods for fits of this package, and those here take fits
#'   of the others, and so does `report()` of \pkg{report};
#' * `check_model()` of \pkg{performance}: also takes models of this package, and that of this
#'   package passes other objects on to it if it is attached;
#' * `compare_models()`, `posterior_draws()` and `prior_draws()` of this package pass objects of
#'   others on to \pkg{parameters}, \pkg{marginaleffects} and \pkg{brms} if these are attached. The
#'   functions there know no fits of this package: if they were attached later, use second names.
#'
#' No function of base R or of its packages is masked: `density()` is that of \pkg{stats}, with a
#' method for formulas. `tidy()`, `glance()`, `augment()`, `as_draws()`, `autoplot()` and other
#' generics of packages are not exported, only methods for them.
#'
#' @return See the help page of each function.
#'
#' @examples
#' identical(kernel_slice(), slice())
#' fit <- evidence(regression(dist ~ speed, prior = prior_normal(0, 5), family = family_student()),
#'                 cars, method_laplace(importance = 200), seed = 1)
#' fit$method
#'
#' @name logevidence_names
#' @rawNamespace export(kernel_baoab, kernel_hmc, kernel_mala, kernel_prior_draws, kernel_rwm,
#'   kernel_sghmc, kernel_sgld, kernel_slice)
#' @rawNamespace export(method_ais, method_bic, method_bridge, method_chib, method_exact,
#'   method_harmonic_mean, method_hybrid, method_laplace, method_likelihood_weighting,
#'   method_nested, method_online_nested, method_partitions, method_power_posterior,
#'   method_sequential, method_sgais, method_smc, method_variational)
#' @rawNamespace export(schedule_adaptive, schedule_linear, schedule_sigmoidal)
#' @rawNamespace export(prior_cauchy, prior_exponential, prior_half_normal, prior_half_student,
#'   prior_inverse_gamma, prior_jzs, prior_lkj, prior_normal, prior_student_t)
#' @rawNamespace export(family_negative_binomial, family_student, family_weibull)
#' @rawNamespace export(evidence_check_model, evidence_compare_models, evidence_posterior_draws,
#'   evidence_report, evidence_tune)
NULL

# By what a second name begins with: the first names. They are given while the package loads, so
# that the installed package has each function once.
SECOND_NAMES <- list(
  kernel = c("baoab", "hmc", "mala", "prior_draws", "rwm", "sghmc", "sgld", "slice"),
  method = c("ais", "bic", "bridge", "chib", "exact", "harmonic_mean", "hybrid", "laplace",
             "likelihood_weighting", "nested", "online_nested", "partitions", "power_posterior",
             "sequential", "sgais", "smc", "variational"),
  schedule = c("adaptive", "linear", "sigmoidal"),
  prior = c("cauchy", "exponential", "half_normal", "half_student", "inverse_gamma", "jzs",
            "lkj", "normal", "student_t"),
  family = c("negative_binomial", "student", "weibull"),
  evidence = c("check_model", "compare_models", "posterior_draws", "report", "tune")
)

add_second_names <- function(namespace) {
  add <- function(name, first) {
    force(first)
    delayedAssign(name, get(first, namespace), assign.env = namespace)
  }
  for (kind in names(SECOND_NAMES))
    for (first in SECOND_NAMES[[kind]]) add(paste0(kind, "_", first), first)
}

#' logevidence: Bayesian evidence for data of any size
#'
#' The evidence (marginal likelihood) of a model is the probability that it gave to the data before
#' it saw them: its likelihood, averaged over its prior. The ratio of two evidences is the Bayes
#' factor. This package computes the evidence of models on data in memory or from a stream, compares
#' models by it, and checks how far each number can be trusted.
#'
#' Three calls do most of it: a model such as [linear_regression()], which is a likelihood and a
#' prior; [evidence()], which brings model and data together; and [compare_models()]:
#' ```
#' one <- evidence(linear_regression(mpg ~ wt), mtcars)
#' two <- evidence(linear_regression(mpg ~ wt + hp), mtcars)
#' compare_models(one, two)
#' ```
#'
#' @section I have a data frame and two models, I want to know which is better:
#' * Models: [linear_regression()] and [regression()] with formulas as in [lm()] and [glm()],
#'   [softmax_regression()] for classes, [gaussian_mixture()] and [clustering()] for groups,
#'   [low_rank()] and [binary_attributes()] for structure in many columns, [gaussian_mean()],
#'   [poisson_rate()] and [binomial_probability()] for one number.
#' * [evidence()] of each, then [compare_models()], or [bayes_factor()] of two.
#' * Priors decide: [`?priors`][priors] has their functions, [jzs()] the default of package
#'   BayesFactor, and [prior_summary()] shows what a fit has used. `simulate(model, data = )` shows
#'   what a model expects: see [simulate()][simulate.evidence_model].
#' * Numbers and pictures of a fit: [summary()][summary.evidence], [plot()][plot.evidence],
#'   [predict()][predict.evidence], [posterior_draws()], [coef()][evidence_verbs], [log_lik()],
#'   [tidy()][tidy.evidence], [as_draws()][as_draws.evidence], [simulate()][simulate.evidence],
#'   [posterior_predict()][posterior_predict.evidence] and `loo()`.
#'
#' @section I have many models, I want their probabilities:
#' * `evidence(list(a = , b = ), data)` fits all of them on one pass: see [`?race`][race].
#' * `evidence(gaussian_mixture(components = 1:10), data)` compares numbers of clusters.
#' * [compare_models()] takes a list of fits; [`?averaged`][averaged] has coefficients averaged over
#'   the models and the probability that each one is needed, and `predict()` of a comparison
#'   averages predictions.
#'
#' @section I have a stream, or more rows than memory, I want the evidence as rows arrive:
#' * Rows from a file, a database, Arrow or a function: [rows_csv()], [rows_dbi()], [rows_arrow()],
#'   [rows_function()]. They take the place of a data frame. Lagged columns: [lags()].
#' * [update()][update.evidence] adds the rows of a new day, `evidence(checkpoint = )` and
#'   [resume()] go on after a crash.
#' * [`?race`][race]: several models at once; `stop_at =` stops when the Bayes factor is large
#'   enough, [crossings()] says when it was, and [study_design()] how many rows a study will need.
#'
#' @section I have many machines, or rows on many machines:
#' * `cl =` in [evidence()], [crosscheck()], [bdmc()] and [study_design()]: runs on a cluster of
#'   package parallel, to the same bits; [task_limit()] for workers that hang.
#' * [rows_cluster()]: rows that stay on the workers; `rows_dbi(push = TRUE)`: sums that a database
#'   computes.
#'
#' @section I have rows in the order of time, I want to know whether their law changed:
#' * [change_points()]: where, how many times, and how sure that is.
#' * [change_alarm()]: the same for a stream, in bounded memory.
#'
#' @section I have a likelihood of my own, I want its evidence:
#' * [density()][density.formula]: the log density of a row as an expression.
#' * [custom_model()]: likelihood and prior as functions in R; [compiled_model()]: in C.
#' * [tmb_model()] and [stanfit_model()]: objects of TMB, RTMB and rstan.
#' * [check_model()] tests a model, with `geweke = TRUE` also its simulated data;
#'   [model_functions()] binds it to data, [kernel_path()] moves points on its density,
#'   [new_model()] is for packages that add models.
#'
#' @section I have a number, I want to know how far to trust it:
#' * `fit$warnings` has all doubts, `fit$failed` those that say that the number may be nats off, and
#'   `fit$verdict` all estimates and checks: see [evidence()].
#' * [crosscheck()] runs methods that fail differently; `replicates = 5` takes the error from
#'   independent runs; [exact()] has no Monte Carlo error where it exists.
#' * [sandwich_check()] bounds the evidence of simulated data like yours from both sides, and
#'   [bdmc()] that of any data which a model can simulate.
#'
#' @section I have a result, I want to write it down:
#' * [evidence_report()]: sentences with numbers, errors, priors, seed and versions, and a page of
#'   HTML.
#'
#' @section I want another method:
#' [sgais()] is the default. Others: [ais()], [smc()], [nested()], [online_nested()], [bridge()],
#' [laplace()], [power_posterior()], [partitions()], [variational()], [chib()], [exact()], [bic()],
#' [sequential()], [hybrid()], and for comparison [likelihood_weighting()] and [harmonic_mean()].
#' Their parts are [`?kernels`][kernels] and [`?schedules`][schedules]. Outside of arguments the
#' names have a prefix, as `method_smc()`: see [`?logevidence_names`][logevidence_names].
#'
#' @section Articles:
#' `vignette(package = "logevidence")` lists them; begin with
#' `vignette("evidence-in-five-minutes")`. `vignette("models-and-methods")` has all models and
#' methods in tables.
#'
#' @examples
#' one <- evidence(linear_regression(mpg ~ wt), mtcars, seed = 1)
#' two <- evidence(linear_regression(mpg ~ wt + hp), mtcars, seed = 1)
#' compare_models(one, two)
#'
#' @references
#' Cameron, S. A., Eggers, H. C. and Kroon, S. (2019). Stochastic gradient annealed importance
#' sampling for efficient online marginal likelihood estimation. *Entropy* 21(11), 1109.
#' \doi{10.3390/e21111109}
#'
#' @keywords internal
#' @useDynLib logevidence, .registration = TRUE
#' @importFrom stats predict
"_PACKAGE"

# A model bound to data as a set of R functions: densities, gradients, draws. They call the same C
# code as the estimators, so that tests of these functions test the estimators' models.

#' Densities and gradients of a model on data
#'
#' Binds a model to data and returns its densities, gradients and draws as functions of the
#' parameters. Use them to apply a method of your own to the models of this package, to evaluate a
#' posterior at single points, to check a result, or to get the exact evidence if it has a closed
#' form.
#'
#' @param model A model, such as [linear_regression()].
#' @param data Data for that model; see its help page for the forms it takes.
#'
#' @details
#' Functions take points `theta` in *unconstrained space*, where every parameter is a real number: a
#' vector for one point, or a matrix with a point in each row. (If the model has only one parameter,
#' each value of a vector is a point, and results are vectors as well.) Densities are normalised.
#' The prior density is that of `theta`, including the Jacobian of the transformation, so that
#' `exp(log_prior + log_lik)` integrates to the evidence.
#'
#' A `seed` is a whole number from 0 to 2^53, which makes a draw reproducible without using R's
#' generator, or `NULL`, the default, for a seed from R's generator, so that [set.seed()] works.
#'
#' @return An object of class `"model_functions"`, a list:
#' \describe{
#'   \item{`dim`, `names`}{Number and names of the unconstrained parameters.}
#'   \item{`user_names`}{Names of the parameters on the user's scale.}
#'   \item{`n`}{Number of observations.}
#'   \item{`log_prior(theta)`, `log_lik(theta)`}{Log prior density and log-likelihood, one value for
#'     each point.}
#'   \item{`log_lik_each(theta)`}{Log-likelihood of each observation: a matrix, points x
#'     observations.}
#'   \item{`log_prior_gradient(theta)`, `gradient(theta)`}{Gradients of `log_prior` and of
#'     `log_lik`: a vector for a vector, a matrix of points x parameters for a matrix.}
#'   \item{`log_prior_hessian(theta)`, `hessian(theta)`}{Matrices of second derivatives of
#'     `log_prior` and of `log_lik`, at one point.}
#'   \item{`information(theta)`}{A positive semi-definite approximation of minus the hessian, at one
#'     point; for mixtures the information of the complete data.}
#'   \item{`draw_prior(n, seed = NULL)`}{Draws from the prior: a matrix, `n` x parameters.}
#'   \item{`to_user(theta)`}{Parameters on the user's scale: a vector for a vector, a matrix for a
#'     matrix.}
#'   \item{`simulate(theta, seed = NULL)`}{Data like `data`, with responses drawn given one point.}
#'   \item{`exact()`}{The exact log evidence, as by [exact()]; an error if it is not known.}
#'   \item{`relabel(reference, theta)`}{Each point with its exchangeable parts, such as mixture
#'     components, in the order that is nearest to the point `reference`; unchanged points if
#'     nothing is exchangeable.}
#'   \item{`log_symmetry`}{Log of the number of such orders; 0 if nothing is exchangeable.}
#' }
#'
#' @examples
#' f <- model_functions(gaussian_mean(sigma = 1, prior_sd = 3), c(1.2, 0.4, 2.1))
#' f
#' f$log_prior(0) + f$log_lik(0)
#' f$exact()
#'
#' # the evidence by quadrature
#' log(integrate(function(m) exp(f$log_prior(m) + f$log_lik(m)), -10, 10)$value)
#'
#' @seealso [simulate.evidence_model()]
#' @export
model_functions <- function(model, data) {
  check_is_model(model)
  if (is_latent(model))
    fail("A model with latent variables has no densities in unconstrained space.")
  encoded <- encode(model, data)
  call <- model_caller(model, encoded)
  proper <- function(use) if (needs_exact(model)) function(...)
    fail("The prior of this model is improper: it has no density and no draws.") else use
  names <- encoded$theta_names
  user_names <- encoded$user_names
  dim <- length(names)

  # One value, or one row of values, for each point.
  value_at <- function(what) function(theta) as.vector(call(what, as_points(theta, dim)$points))
  rows_at <- function(what, labels, pick = identity) function(theta) {
    at <- as_points(theta, dim)
    per_point(pick(call(what, at$points)), labels, at$single)
  }
  matrix_at <- function(what, pick = identity) function(theta) {
    result <- pick(call(what, one_point(theta, dim)))
    matrix(result, dim, dim, dimnames = list(names, names))
  }
  log_symmetry <- model_facts(model, encoded$args)$log_symmetry

  structure(list(
    model = model,
    n = encoded$n,
    dim = dim,
    names = names,
    user_names = user_names,
    log_prior = proper(value_at("log_prior")),
    log_prior_gradient = proper(rows_at("log_prior_grad", names)),
    log_prior_hessian = proper(matrix_at("log_prior_hess")),
    log_lik = value_at("log_lik"),
    log_lik_each = function(theta) {
      at <- as_points(theta, dim)
      t(matrix(call("log_lik_each", at$points), encoded$n))
    },
    gradient = rows_at("log_lik_grad", names, function(result) result$gradient),
    hessian = matrix_at("log_lik_hess", function(result) result$hessian),
    information = matrix_at("information"),
    draw_prior = proper(function(n, seed = NULL) {
      n <- check_count(n, "n")
      per_point(call("draw_prior", extra = list(n = n, seed = seed_words(seed))), names, FALSE)
    }),
    to_user = rows_at("to_user", user_names),
    simulate = function(theta, seed = NULL) {
      point <- one_point(theta, dim)
      # Another stream than that of draw_prior() with the same seed, so that data and parameters
      # have independent random numbers.
      blank <- list(data = data, encoded = encoded)
      simulated(model, blank, as.vector(point), next_seed(seed_words(seed), 1))
    },
    exact = function() {
      value <- as.vector(call("exact"))
      if (is.na(value))
        fail("exact() needs a model whose evidence has a closed form, such as gaussian_mean() or ",
             "linear_regression(); ", model$name, "() has none.")
      value
    },
    relabel = function(reference, theta) {
      at <- as_points(theta, dim)
      reference <- one_point(reference, dim, "reference")
      points <- at$points
      if (log_symmetry > 0)
        points <- call("relabel", points, list(other = as.vector(reference)))$theta
      per_point(points, names, at$single)
    },
    log_symmetry = log_symmetry
  ), class = "model_functions")
}

#' @export
print.model_functions <- function(x, ...) {
  plural <- function(n, word) paste0(n, " ", word, if (n != 1) "s")
  cat(describe(x$model)[[1]], "\n", sep = "")
  cat("  bound to ", plural(x$n, "row"), ", ", plural(x$dim, "parameter"), ": ",
      paste(c(utils::head(x$names, 6), if (x$dim > 6) "..."), collapse = ", "), "\n", sep = "")
  functions <- names(Filter(is.function, unclass(x)))
  cat(strwrap(paste0("functions: ", paste0(functions, "()", collapse = ", ")), 78, indent = 2,
              exdent = 4), sep = "\n")
  invisible(x)
}

# Mixture of normal distributions with diagonal covariance matrices and a conjugate prior.

#' Gaussian mixture with diagonal covariances
#'
#' Each observation of \eqn{p} numbers comes from one of \eqn{K} components, and its numbers are
#' independent and normal given the component:
#' \deqn{p(y_i) = \sum_k w_k \prod_j N(y_{ij} \mid \mu_{kj}, \sigma^2_{kj}).}{
#' p(y[i]) = sum_k w[k] prod_j N(y[ij] | mu[kj], sigma[kj]^2).}
#' The prior is conjugate for each component:
#' \deqn{w \sim \mathrm{Dirichlet}(c, \dots, c), \qquad
#' \sigma^2_{kj} \sim \mathrm{InvGamma}(a, b), \qquad
#' \mu_{kj} \mid \sigma^2_{kj} \sim N(m_j, r^2 \sigma^2_{kj}),}{
#' w ~ Dirichlet(c, ..., c), sigma[kj]^2 ~ InvGamma(a, b),
#' mu[kj] | sigma[kj]^2 ~ N(m[j], r^2 sigma[kj]^2),}
#' with \eqn{c} the `concentration`, \eqn{a} and \eqn{b} the `shape` and `rate`, \eqn{m_j} the
#' `location` and \eqn{r} the `mean_scale`. To find the number of clusters, fit the model with
#' several numbers of components, see the details.
#'
#' @param formula A one-sided formula that names the columns, `~ a + b`, or transformations of them,
#'   `~ log(a) + b`; `~ .` or `NULL`, the default, for all columns, which must then be numeric.
#' @param components Number of components \eqn{K}, a whole number from 1 to 64. Or several, such as
#'   `1:10`: [evidence()] then compares them, see the details.
#' @param location Prior location of the component means, in units of the data: one for all columns,
#'   or one for each, in their order or named by them. `NULL`, the default, is the mean of each
#'   column.
#' @param mean_scale Prior standard deviation of a component mean, positive, in standard deviations
#'   of that component.
#' @param shape,rate Shape and rate of the inverse-gamma prior of the variances, positive. The rate
#'   is in squared units of the data, one for all columns or one for each: the prior mode of a
#'   variance is `rate / (shape + 1)`. `NULL`, the default, is the variance of each column.
#' @param concentration Parameter of the symmetric Dirichlet prior of the weights, positive; 1 is
#'   uniform.
#'
#' @details
#' **Covariances are diagonal**: columns are independent within a component. For columns that are
#' correlated within components rotate them first, for instance by `prcomp()`, or write the density
#' of a mixture with full covariances as a [custom_model()].
#'
#' **Data** are a data frame or numeric matrix, or a numeric vector for one dimension. There may be
#' more components than rows. Missing and infinite values are errors.
#'
#' **Priors and units.** The defaults of `location` and `rate` have the units of the data, as those
#' of Richardson and Green (1997), who take them from the range: the evidence of columns in other
#' units differs by a constant that all numbers of components share. They are those of the first
#' data, as in [regression()], and are kept for further rows. Before there are data, for
#' [simulate()] and [bdmc()], they are 0 and 1.
#'
#' **Parameters in unconstrained space** are \eqn{K - 1 + 2Kp} in number, each kind component by
#' component: `log_ratio[k]`, the log of the weight of component \eqn{k < K} over that of the last;
#' `standard_mean[k,column]`, the mean minus `location`, divided by `mean_scale` times the standard
#' deviation, which is standard normal a priori; and `log_variance[k,column]`. **On the user's
#' scale** they are `weight[k]`, `mean[k,column]` and `sd[k,column]`.
#'
#' **How many clusters?** With several numbers of components [evidence()] returns a comparison, as
#' [compare_models()] does, of a fit for each number. By the default method, fits whose posterior
#' modes are not close to normal come from one run of [partitions()]. The comparison prints, plots
#' and returns (`attr(x, "occupied")`) also the posterior probabilities of the number of clusters
#' that have rows, which may be smaller than the number of components. `as.data.frame()` gives a row
#' for each number of components; `attr(x, "fits")` are the fits. Equal prior weights are assumed.
#'
#' **Which rows are together?** [predict()][predict.evidence] gives the probability of each
#' component and the most probable one, and `plot(fit, "clusters")` shows them.
#'
#' Exchanging components does not change any density, so the posterior has \eqn{K!} copies of each
#' mode. The evidence includes all copies.
#'
#' @inherit gaussian_mean return
#'
#' @references
#' McLachlan, G. and Peel, D. (2000). *Finite Mixture Models*. Wiley.
#'
#' Richardson, S. and Green, P. J. (1997). On Bayesian analysis of mixtures with an unknown number
#' of components. *Journal of the Royal Statistical Society B* 59, 731-792.
#'
#' Cameron, S. A., Eggers, H. C. and Kroon, S. (2019). Stochastic gradient annealed importance
#' sampling for efficient online marginal likelihood estimation. *Entropy* 21(11), 1109.
#' \doi{10.3390/e21111109}
#'
#' @examples
#' model <- gaussian_mixture(~ eruptions + waiting, components = 2,
#'                           location = c(eruptions = 3.5, waiting = 70), rate = 1)
#' model
#' model_functions(model, faithful)$names
#'
#' # how many clusters?
#' several <- gaussian_mixture(components = 1:3)
#' how_many <- evidence(several, faithful$waiting[1:80], seed = 1)
#' how_many
#' plot(how_many)
#'
#' @concept finite mixture
#' @concept cluster analysis
#' @seealso [model_functions()]
#' @family models
#' @export
gaussian_mixture <- function(formula = NULL, components, location = NULL, mean_scale = 2,
                             shape = 1, rate = NULL, concentration = 1) {
  formula <- check_formula(formula, 1)
  if (missing(components)) fail("`components` must be given, a whole number between 1 and 64.")
  new_model("gaussian_mixture", formula, list(
    components = check_components(components),
    location = if (!is.null(location)) check_numbers(location, "location"),
    mean_scale = check_positive(mean_scale, "mean_scale"),
    shape = check_positive(shape, "shape"),
    rate = if (!is.null(rate)) check_numbers(rate, "rate", positive = TRUE),
    concentration = check_positive(concentration, "concentration")
  ), encode_mixture, encode_new_mixture, describe_mixture,
  decode = decode_mixture, template = template_mixture, plain = plain_mixture,
  modes = function(model) if (any(model$components > 1)) "several" else "one",
  partitions = TRUE,
  bound = function(model, args) if (args$components > 1) args$components else 0,
  columns = function(model) if (is.null(model$formula) && is.null(names(model$location)) &&
                                length(model$location) < 2) "any" else "given",
  predictions = list(
    density = NULL, probability = function(fit, encoded) memberships(fit, encoded$rows),
    class = function(fit, encoded) most_probable(memberships(fit, encoded$rows))
  ),
  from_user = from_user_mixture, clusters = mixture_clusters, label_free = mixture_spread,
  limits = function(fit) limits_by_kind(fit, positive = "sd", shares = "weight"),
  units = list(rows = function(model, rows) rows, of = units_of_mixture),
  coefficients = FALSE, prior_moments = prior_moments_mixture, far = far_mixture,
  advice = function(model) paste("Set `location`, `mean_scale` and `rate` in units of the",
                                 "data, or leave `location` and `rate` out: their defaults",
                                 "have these units."))
}

check_components <- function(components) {
  if (length(components) < 2) return(check_count(components, "components", 1, 64))
  whole <- is_plain_numeric(components) && all(components %in% 1:64)
  if (!whole || anyDuplicated(components))
    refuse(components, "components", "a whole number between 1 and 64, or several that differ")
  sort(as.double(components))
}

describe_mixture <- function(model) {
  components <- model$components
  several <- length(components) > 1
  range <- if (!several) components
  else if (all(diff(components) == 1)) paste(components[1], "to", components[length(components)])
  else paste(components, collapse = ", ")
  list(
    paste0("Gaussian mixture of ", range, if (identical(components, 1)) " component"
           else " components", ", diagonal covariances"),
    columns = if (is.null(model$formula)) "all" else deparse1(model$formula[[2]]),
    likelihood = "columns normal and independent within a component",
    prior = c(
      paste0("weights Dirichlet, concentration ", show_setting(model$concentration)),
      paste0("variances inverse-gamma, shape ", show_setting(model$shape), ", rate ",
             show_or_default(model$rate, model$units$rate, "the variances of the columns")),
      paste0("means normal around ",
             show_or_default(model$location, model$units$location, "the means of the columns"),
             ", sd ",
             show_setting(model$mean_scale), " x sd of the component")
    )
  )
}

# What was given, else what is known of the columns.
show_or_default <- function(setting, known, default) {
  if (is.null(setting)) setting <- known
  if (is.null(setting)) default else show_setting(setting)
}

#' What the default priors of a mixture take from its columns
#' @noRd
mixture_units <- function(model, x, threads) {
  known <- model$units
  if (isFALSE(known$columns)) return(list(location = 0, rate = 1))
  if (!is.null(known$rate)) return(known[c("location", "rate")])
  if (!is.null(model$location) && !is.null(model$rate)) return(NULL)
  if (!is.double(x)) storage.mode(x) <- "double"
  units_of_mixture(model, .Call(ffi_standard_constants, x, threads))
}

units_of_mixture <- function(model, constants) {
  variance <- constants[2, ]^2
  # of one row, or of equal ones, nothing is known
  known <- constants[3, ] != SAME_COLUMN & is.finite(variance) &
    constants[2, ] > 1e-14 * abs(constants[1, ])
  list(location = unname(constants[1, ]), rate = unname(ifelse(known, variance, 1)))
}

encode_mixture <- function(model, data, binding = AS_GIVEN) {
  if (length(model$components) > 1)
    fail("`components` must be one number here: only evidence() takes a model with several.")
  input <- mixture_columns(model$formula, data, "data")
  x <- input$x
  columns <- input$names
  units <- mixture_units(model, x, binding$threads)
  of_columns <- function(name) if (is.null(model[[name]])) units[[name]]
  else match_setting(model[[name]], name, columns, "column")
  list(
    rows = bind_rows(x, columns, binding),
    own = TRUE,
    n = nrow(x),
    args = list(
      components = model$components,
      dimensions = as.double(ncol(x)),
      location = of_columns("location"),
      mean_scale = model$mean_scale,
      shape = model$shape,
      rate = of_columns("rate"),
      concentration = model$concentration
    ),
    theta_names = c(numbered("log_ratio", model$components - 1),
                    numbered("standard_mean", model$components, columns),
                    numbered("log_variance", model$components, columns)),
    user_names = c(numbered("weight", model$components),
                   numbered("mean", model$components, columns),
                   numbered("sd", model$components, columns)),
    offset = NULL,
    design = c(input$design, list(columns = columns, prior_units = units))
  )
}

# "mean[1,a]" "mean[1,b]" "mean[2,a]" ...
numbered <- function(stem, components, columns = NULL) {
  k <- seq_len(components)
  if (is.null(columns)) return(sprintf("%s[%d]", rep(stem, components), k))
  sprintf("%s[%d,%s]", stem, rep(k, each = length(columns)), rep(columns, components))
}

encode_new_mixture <- function(model, design, newdata, response = TRUE, argument = "newdata") {
  x <- if (is.null(design$terms)) mixture_new_columns(design, newdata, argument)
  else mixture_new_frame(design, newdata, argument)
  list(rows = bind_rows(x, design$columns), n = nrow(x), offset = NULL)
}

plain_mixture <- function(model, design) {
  columns <- if (!is.null(design$terms)) plain_variables(design$terms)
  else if (design$named) design$columns
  if (identical(columns, design$columns))
    list(columns = columns, intercept = FALSE, names = columns)
}

#' The columns of a mixture, a matrix with a row per observation
#' @noRd
mixture_columns <- function(formula, data, argument) {
  if (is.null(formula))
    return(c(all_columns(data, argument), list(design = list(named = !is.null(colnames(data))))))
  data <- as_frame(data, argument)
  terms <- formula_terms(formula, data)
  refuse_offset(terms)
  labels <- attr(terms, "term.labels")
  if (length(labels) == 0)
    fail("`formula` must name at least one column, not `", deparse1(formula), "`.")
  if (any(attr(terms, "order") > 1))
    fail("`formula` must have no interactions, not `", labels[attr(terms, "order") > 1][1], "`.")
  used <- formula_columns(terms, data, argument)
  frame <- build_frame(terms, data, used, argument)
  x <- frame_columns(frame, argument)
  list(x = x, names = colnames(x),
       design = list(terms = attr(frame, "terms"), used = used,
                     kinds = vapply(frame, column_kind, "")))
}

mixture_new_frame <- function(design, newdata, argument) {
  newdata <- as_frame(newdata, argument)
  for (name in setdiff(design$used, names(newdata))) refuse_missing_column(name, newdata, argument)
  frame <- build_frame(design$terms, newdata, design$used, argument)
  check_same_kinds(frame, design$kinds, argument)
  frame_columns(frame, argument)
}

#' The variables of a model frame side by side; those of several columns, as poly(x, 2), with
#' numbered names
#' @noRd
frame_columns <- function(frame, argument) {
  check_mixture_columns(frame, argument)
  check_finite_columns(frame, argument)
  width <- vapply(frame, NCOL, 1L)
  inner <- unlist(lapply(width, function(w) if (w == 1) "" else seq_len(w)))
  names <- paste0(rep(names(frame), width), inner)
  matrix(as.double(unlist(frame, use.names = FALSE)), nrow(frame), sum(width),
         dimnames = list(NULL, names))
}

all_columns <- function(data, argument) {
  if (!is.data.frame(data)) {
    if (!is_plain_numeric(data)) refuse(data, argument, "a numeric matrix or a data frame")
    return(numeric_columns(data, argument))
  }
  if (length(data) == 0) fail("`", argument, "` must have at least one column, not 0.")
  check_distinct(names(data), argument)
  check_some_rows(nrow(data), argument)
  data <- as.data.frame(data)
  check_mixture_columns(data, argument, "numeric")
  check_finite_columns(data, argument)
  numeric_columns(as.matrix(data), argument)
}

check_mixture_columns <- function(frame, argument,
                                  kinds = c("numeric", paste("numeric with", 1:64, "columns"))) {
  for (name in names(frame)) {
    if (!column_kind(frame[[name]]) %in% kinds)
      fail("`", argument, "` must have numeric columns only, not `", name, "` of type ",
           show_kind(frame[[name]]), ".")
  }
}

# By name where both have names, else by position.
mixture_new_columns <- function(design, newdata, argument) {
  named <- isTRUE(design$named) && !is.null(colnames(newdata))
  if (is.data.frame(newdata)) newdata <- as.data.frame(newdata)
  if (named) {
    for (name in setdiff(design$columns, colnames(newdata)))
      refuse_missing_column(name, as.data.frame(newdata), argument)
    newdata <- newdata[, design$columns, drop = FALSE]
  }
  x <- all_columns(newdata, argument)$x
  if (ncol(x) != length(design$columns))
    fail("`", argument, "` must have ", length(design$columns),
         " columns as in the first data, not ", ncol(x), ".")
  x
}

decode_mixture <- function(model, encoded, rows, data) {
  values <- t(rows)
  if (is.null(model$formula) && !is.data.frame(data)) {
    if (is.matrix(data)) return(matrix(values, nrow(values), dimnames = dimnames(data)))
    return(values[, 1])
  }
  columns <- encoded$design$columns
  if (is.null(model$formula)) {
    data <- as.data.frame(data)
    data[columns] <- as.data.frame(values)
    return(data)
  }
  data <- as_frame(data)
  variables <- as.list(attr(encoded$design$terms, "variables"))[-1]
  if (!all(vapply(variables, is.name, NA)) || length(variables) != length(columns))
    fail("`formula` must name plain columns to simulate data, not `", deparse1(model$formula), "`.")
  data[vapply(variables, as.character, "")] <- as.data.frame(values)
  data
}

#' Points in unconstrained space from weights, means and standard deviations
#' @noRd
from_user_mixture <- function(model, encoded, user) {
  args <- encoded$args
  k <- args$components
  weight <- user[seq_len(k), , drop = FALSE]
  total <- colSums(weight)
  if (any(weight < 0) || any(abs(total - 1) > 1e-6))
    fail("`parameters` must have weights of components that are not negative and sum to one, not ",
         if (any(weight < 0)) format(min(weight), digits = 7)
         else paste("to", format(total[which.max(abs(total - 1))], digits = 7)), ".")
  each <- k * args$dimensions
  sds <- k + each + seq_len(each)
  log_sd <- log_positive(user, sds, encoded$user_names)[sds, , drop = FALSE]
  location <- rep(rep_len(args$location, args$dimensions), k)
  mean <- user[k + seq_len(each), , drop = FALSE]
  # the weight of a component without rows may be zero in double precision
  log_weight <- log(pmax(weight, .Machine$double.xmin))
  rbind(log_weight[-k, , drop = FALSE] - rep(log_weight[k, ], each = k - 1),
        (mean - location) / (args$mean_scale * exp(log_sd)), 2 * log_sd)
}

#' Means and standard deviations of the components, averaged over the posterior
#' @noRd
mixture_clusters <- function(fit) {
  at <- weighted_points(fit)
  theta <- same_labels(fit, at)
  user <- .Call(ffi_model, model_type(fit$model), fit$args, matrix(0, fit$args$dimensions, 0),
                "to_user", theta, list())
  average <- drop(user %*% exp(at$log_weights))
  k <- fit$args$components
  part <- function(first) matrix(average[first + seq_len(k * fit$args$dimensions)], k,
                                 byrow = TRUE, dimnames = list(NULL, fit$design$columns))
  list(mean = part(k), sd = part(k + k * fit$args$dimensions))
}

template_mixture <- function(model, data, n) {
  if (is.null(data)) data <- blank_mixture(model, n)
  list(data = data, encoded = encode_mixture(model, data))
}

# The columns come from the formula, or from a location for each of them.
blank_mixture <- function(model, n) {
  names <- if (!is.null(model$formula)) all.vars(model$formula) else names(model$location)
  if (identical(names, ".") || (is.null(names) && length(model$location) < 2))
    fail("`data` must be given, as neither the formula nor `location` of the model says how many ",
         "columns it has.")
  width <- if (is.null(names)) length(model$location) else length(names)
  # Ones are allowed under any usual transformation.
  blank <- matrix(1, n, width, dimnames = list(NULL, names))
  if (is.null(names)) blank else as.data.frame(blank)
}

# Mean and standard deviation of each column of the data, a row for each draw.
mixture_spread <- function(model, draws) {
  names <- colnames(draws)
  columns <- unique(column_of(names[startsWith(names, "mean[")]))
  weight <- draws[, startsWith(names, "weight["), drop = FALSE]
  each <- lapply(columns, function(column) {
    own <- function(what)
      draws[, startsWith(names, what) & column_of(names) == column, drop = FALSE]
    mean <- rowSums(weight * own("mean["))
    cbind(mean, sqrt(rowSums(weight * (own("sd[")^2 + (own("mean[") - mean)^2))))
  })
  spread <- do.call(cbind, c(lapply(each, function(x) x[, 1]), lapply(each, function(x) x[, 2])))
  of <- if (length(columns) > 1) paste0("[", columns, "]") else ""
  colnames(spread) <- c(paste0("mean", of), paste0("sd", of))
  spread
}

# "mean[2,flow]" is of the column flow.
column_of <- function(names) sub("\\]$", "", sub("^[^,]*,?", "", names))

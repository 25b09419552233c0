# Fits of which parts are missing or of another type, as after an assignment by hand, and objects of
# other packages with the class of a fit: all verbs must refuse them in a sentence, or do without
# the part.

ALTERATIONS <- list(
  function(x) NULL, function(x) NA, function(x) "a", function(x) list(), function(x) numeric(),
  function(x) NaN, function(x) -Inf, function(x) sum, function(x) rep(1, 3),
  function(x) matrix(0, 0, 0),
  function(x) if (length(x) > 1) x[-1] else 1:2, function(x) rev(x), function(x) list(x),
  function(x) if (length(x)) x[0] else 1, function(x) if (is.numeric(x)) -x - 1 else -1,
  function(x) if (is.numeric(x)) x * 1e300 else 1e300, function(x) if (length(x)) sample(x) else x,
  function(x) if (is.numeric(x) && length(x)) replace(x, sample.int(length(x), 1), -1) else 0.5,
  function(x) if (is.numeric(x)) x + NA else TRUE, function(x) data.frame(a = 1),
  function(x) unclass(x), function(x) if (is.list(x)) unname(x) else as.character(x))

#' Alters one element, or an element of an element
alter_part <- function(object, depth) {
  whole <- attributes(object)
  plain <- unclass(object)
  if (!length(plain)) return(object)
  at <- sample.int(length(plain), 1)
  old <- .subset2(plain, at)
  if (depth > 1 && is.list(old) && length(old)) plain[[at]] <- alter_part(old, depth - 1)
  else {
    new <- tryCatch(pick(ALTERATIONS)(old), error = function(e) NULL, warning = function(w) 0)
    if (is.null(new) && chance(0.5)) plain <- plain[-at] else plain[at] <- list(new)
  }
  if (!is.null(whole$class) && length(plain) == length(unclass(object))) attributes(plain) <- whole
  else class(plain) <- whole$class
  plain
}

# as.list() gives the parts as they are
ALTERED_VERBS <- c(Filter(function(verb)
  !as.character(verb)[1] %in% c("as.list", "simulate"), FIT_VERBS), expression(
  print(fit), resume(fit), resume(fit, time_limit = 1e-9, progress = FALSE),
  compare_models(a = fit, b = good), bayes_factor(good, fit), post_prob(good, fit),
  update(fit, more, progress = FALSE), change_points(fit, more), sandwich_check(fit),
  compare_models(list(fit, good)), fit$draws, plot(compare_models(a = good, b = fit)),
  evidence(fit$model, more, fit$method, seed = 1, progress = FALSE, time_limit = 2),
  evidence(gaussian_mean(~ y), more, fit$method, seed = 1, progress = FALSE, time_limit = 2),
  evidence(fit$model, more, seed = 1, progress = FALSE, time_limit = 2)))

fits_to_alter <- local({
  known <- NULL
  function() {
    if (!is.null(known)) return(known)
    rows <- standard_objects()$rows
    fit <- function(model, ...) evidence(model, rows, ..., seed = 1, progress = FALSE)
    known <<- list(
      standard_objects()$fit, standard_objects()$part,
      fit(regression(y ~ x + g), sgais(particles = 10, steps = 2), replicates = 2),
      fit(linear_regression(y ~ x), method_exact()), fit(gaussian_mean(~ y), nested(20)),
      fit(gaussian_mixture(~ x + y, components = 2), sgais(particles = 10, steps = 2)),
      fit(clustering(~ x + y, components = 2), method_smc("data", 10)),
      fit(softmax_regression(g ~ x, prior_sd = 1), method_laplace()))
    known
  }
})

FIT_CASES <- list(
  lacks = function() NULL,
  prepare = function() in_silence(suppressWarnings(fits_to_alter())),
  make = function() {
    fit <- pick(fits_to_alter())
    for (k in seq_len(pick(list(1, 1, 2)))) fit <- alter_part(fit, 1)
    list(objects = list(fit = fit, good = standard_objects()$fit, more = standard_objects()$rows),
         call = pick(ALTERED_VERBS))
  })

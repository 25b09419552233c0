# Objects that a user holds, of which a random part is cut, empty, missing, of another type or
# order, negative or huge: alarms, change points, models, methods, sources, stopped runs, races and
# other results. Each verb must refuse them in a sentence, or do without the part. Fits alone have a
# kind of their own (verbs.R). Models and methods are plain lists of which any part may be altered:
# of them, also as parts of other objects, only a crash, a hang and an unsound number are findings,
# and an error of R is not.

SPECIFICATIONS <- c("evidence_model", "evidence_method")
SPECIFYING <- c("model", "method", "design", "state", "call")

# Was something changed inside a part that is a specification?
altered_within <- function(object, whole) {
  of <- function(x, name) .subset2(unclass(x), name)
  any(vapply(intersect(SPECIFYING, names(unclass(whole))), function(name)
    is.list(of(object, name)) && !identical(of(object, name), of(whole, name)), NA))
}

OBJECT_USES <- list(
  change_alarm = expression(
    update(object, rows), update(object, rows[1:3, ]), update(object, rows$y), print(object),
    plot(object), as.data.frame(object), summary(object)),
  change_points = expression(
    print(object), summary(object), plot(object), as.data.frame(object), evidence_report(object),
    as.data.frame(object, type = "rows"), as.data.frame(object, type = "segments")),
  evidence_model = expression(
    print(object), change_alarm(object, rows, duration = 20),
    change_points(object, rows, most = 1, draws = 20, seed = 1),
    evidence(object, rows, seed = 1, progress = FALSE, time_limit = 2),
    evidence(object, rows, smc(particles = 20), seed = 1, progress = FALSE, time_limit = 2),
    simulate(object, data = rows, seed = 1), model_functions(object, rows)),
  evidence_method = expression(
    print(object), evidence(line, rows, object, seed = 1, progress = FALSE, time_limit = 2)),
  rows_source = expression(
    print(object), change_alarm(mean, object, duration = 20),
    evidence(line, object, sgais(particles = 10, steps = 1), seed = 1, progress = FALSE,
             time_limit = 2)),
  incomplete_evidence = expression(
    print(object), resume(object, progress = FALSE, time_limit = 2), update(object, rows),
    plot(object), logml(object)),
  evidence_race = expression(
    print(object), plot(object), as.data.frame(object), predict(object, rows),
    update(object, rows, progress = FALSE, time_limit = 2)),
  model_comparison = expression(
    print(object), plot(object), predict(object, rows), as.data.frame(object), summary(object)),
  crosscheck = expression(print(object), plot(object)),
  kernel_path = expression(print(object), plot(object), as.data.frame(object)),
  evidence_bayes_factor = expression(print(object), as.data.frame(object))
)

objects_to_alter <- local({
  known <- NULL
  function() {
    if (!is.null(known)) return(known)
    rows <- standard_objects()$rows
    line <- linear_regression(y ~ x, sigma = 1, prior_sd = 1)
    flat <- linear_regression(y ~ 1, sigma = 1, prior_sd = 1)
    mean <- gaussian_mean(~ y, prior_sd = 3)
    alarm <- change_alarm(mean, rows, duration = 20, starts = 10)
    quick <- sgais(particles = 10, steps = 1)
    fit <- function(...) evidence(..., progress = FALSE, seed = 1)
    race <- fit(list(line = line, flat = flat), rows, quick, keep_state = TRUE)
    known <<- list(
      alarm, alarm, alarm,
      change_alarm(linear_regression(y ~ x, sigma = 1, prior_sd = 1), rows, duration = 20,
                   starts = 10),
      change_alarm(poisson_rate(~ k), data.frame(k = stats::rpois(12, 3)), step = 3),
      change_points(mean, rows, most = 2, draws = 20, seed = 1),
      line, mean, regression(y ~ x), gaussian_mixture(~ x + y, components = 2),
      density(~ dnorm(y, m, 1, log = TRUE), m = ~ 1), clustering(~ x + y, components = 2),
      low_rank(~ x + y, rank = 1),
      quick, nested(20), method_laplace(), method_smc(particles = 20, kernel = hmc()),
      method_exact(),
      rows_csv(standard_objects()$file), rows_function(blocks_of(rows)),
      standard_objects()$part, fit(line, rows, nested(100), time_limit = 1e-9), race,
      compare_models(a = fit(line, rows, quick), b = fit(flat, rows, quick)),
      crosscheck(line, rows, list(exact(), laplace()), seed = 1, progress = FALSE),
      bayes_factor(fit(line, rows, quick), fit(flat, rows, quick)))
    known
  }
})

OBJECT_CASES <- list(
  lacks = function() NULL,
  prepare = function() in_silence(suppressWarnings(objects_to_alter())),
  make = function() {
    object <- pick(objects_to_alter())
    uses <- OBJECT_USES[[intersect(class(object), names(OBJECT_USES))[1]]]
    whole <- object
    for (k in seq_len(pick(list(1, 1, 2)))) object <- alter_part(object, pick(list(1, 2, 2, 3)))
    rows <- standard_objects()$rows
    list(by_r = inherits(object, SPECIFICATIONS) || altered_within(object, whole),
         objects = list(object = object, rows = rows, mean = gaussian_mean(~ y, prior_sd = 3),
                        line = linear_regression(y ~ x, sigma = 1, prior_sd = 1)),
         call = pick(uses))
  })

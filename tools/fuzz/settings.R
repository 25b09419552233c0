# Arguments of all exported functions, in and beyond their range. Which arguments there are is read
# from the functions themselves; only the values of those without a default are listed here, by the
# names that the package uses for them everywhere.

REQUIRED <- expression(
  formula = y ~ x, components = 2, attributes = 2, rank = 1, model = gaussian_mean(~ y),
  data = rows, fit = fit, x = fit, object = fit, x1 = fit, x2 = fit, file = file, f = next_rows,
  training = 1:5, from = part, models = list(a = gaussian_mean(~ y), b = gaussian_mean(~ x)),
  n = 4, name = "mine", encode = function(...) NULL, encode_new = function(...) NULL,
  describe = function(...) "it", parameters = "a", symbol = "no_such_symbol", con = NULL,
  query = "SELECT 1", log_likelihood = function(theta, data) sum(dnorm(data$y, theta, log = TRUE)),
  log_prior = function(theta) dnorm(theta, log = TRUE), draw_prior = function(n) rnorm(n),
  prior = prior_normal())

# Small values, so that what succeeds is quick.
QUICK <- list(
  particles = 10, draws = 20, steps = 3, live = 20, starts = 2, chains = 2, work = 1000, nsim = 2,
  restarts = 1, sweeps = 5, iterations = 20, search = 10, first = 2, importance = 20, datasets = 1,
  progress = FALSE, seed = 1, method = quote(sgais(particles = 10, steps = 2)), budgets = c(0.5, 1),
  methods = quote(list(method_laplace(), method_exact())), threads = 1)

# Exported functions and methods for fits; not those that compile, or that need other packages.
tried_functions <- local({
  known <- NULL
  function() {
    if (!is.null(known)) return(known)
    space <- asNamespace("logevidence")
    names <- sort(getNamespaceExports(space))
    functions <- Filter(is.function, mget(names, envir = space))
    # some have two names
    functions <- functions[!duplicated(functions)]
    registered <- getNamespaceInfo(space, "S3methods")
    ours <- registered[, 2] %in% c("evidence", "model_comparison", "incomplete_evidence") &
      vapply(registered[, 1], exists, NA)
    generics <- setdiff(registered[ours, 1], c("$", "[", "[["))
    known <<- c(functions, Filter(Negate(is.null), lapply(
      stats::setNames(nm = generics), function(generic)
        utils::getS3method(generic, "evidence", TRUE, space))))
    # c() has nothing but dots
    known <<- Filter(function(f) !identical(names(formals(f))[1], "...") ||
                       length(formals(f)) > 1, known[!duplicated(names(known))])
    known
  }
})

# What to do with the result of a constructor, `made`, and `rows`.
USES <- list(
  evidence_model = expression(
    evidence(made, rows, sgais(particles = 10, steps = 2), seed = 1, time_limit = 3,
             progress = FALSE),
    evidence(made, rows, seed = 1, time_limit = 3, progress = FALSE),
    evidence(made, rows, laplace(), seed = 1, time_limit = 3, progress = FALSE),
    evidence(made, rows, likelihood_weighting(20), seed = 1, time_limit = 3, progress = FALSE)),
  evidence_method = expression(
    evidence(linear_regression(y ~ x, sigma = 1, prior_sd = 1), rows, made, seed = 1,
             time_limit = 3, progress = FALSE),
    evidence(gaussian_mixture(~ y, components = 2), rows, made, seed = 1, time_limit = 3,
             progress = FALSE),
    evidence(clustering(~ y, components = 2), rows, made, seed = 1, time_limit = 3,
             progress = FALSE)),
  evidence_kernel = expression(
    evidence(regression(y ~ x), rows, smc(particles = 10, kernel = made), seed = 1,
             time_limit = 3, progress = FALSE),
    evidence(regression(y ~ x), rows, sgais(particles = 10, kernel = made), seed = 1,
             time_limit = 3, progress = FALSE),
    evidence(regression(y ~ x), rows, nested(20, kernel = made), seed = 1, time_limit = 3,
             progress = FALSE)),
  evidence_prior = expression(
    evidence(regression(y ~ x, prior = made), rows, laplace(), seed = 1, time_limit = 3,
             progress = FALSE),
    evidence(regression(y ~ x, auxiliary = made), rows, seed = 1, time_limit = 3,
             progress = FALSE),
    evidence(regression(y ~ x, intercept = made), rows, seed = 1, time_limit = 3,
             progress = FALSE),
    evidence(density(~ dnorm(y, m, 1, log = TRUE), m = made), rows, seed = 1, time_limit = 3,
             progress = FALSE)),
  evidence_schedule = expression(
    evidence(regression(y ~ x), rows, ais(10, made), seed = 1, time_limit = 3, progress = FALSE)),
  regression_family = expression(
    evidence(regression(y ~ x, made), rows, seed = 1, time_limit = 3, progress = FALSE)),
  rows_source = expression(
    evidence(gaussian_mean(~ y), made, seed = 1, time_limit = 3, progress = FALSE)))

# Numbers of fits, draws or rows that are allowed to be so large that a case takes long.
LONG <- c("n", "nsim", "datasets", "chains", "draws", "replicates")

#' A call of a function with one or two odd arguments
#'
#' @param first Whether the first argument stays as it is: methods get objects of their class.
odd_call <- function(name, f, first) {
  wanted <- names(formals(f))
  needed <- vapply(formals(f), identical, NA, quote(expr = )) & wanted != "..."
  arguments <- list()
  for (argument in wanted[needed])
    arguments[argument] <- list(if (argument %in% names(REQUIRED)) REQUIRED[[argument]] else 1)
  quick <- intersect(wanted[!needed], names(QUICK))
  quick <- quick[vapply(quick, function(x) chance(0.9), NA)]
  arguments[quick] <- QUICK[quick]
  odd <- some_of(setdiff(wanted, c("...", if (first) wanted[1])), pick(list(0, 1, 1, 1, 2, 3)))
  defaults <- lapply(formals(f), function(d) if (is.atomic(d)) d)
  for (argument in odd) {
    value <- an_odd_value(defaults[[argument]])
    if (argument %in% LONG && is.numeric(value) && any(value > 1000 & value < 1e9, na.rm = TRUE))
      value <- 7
    arguments[argument] <- list(as_given(value))
  }
  as.call(c(as.name(name), arguments))
}

SETTINGS_CASES <- list(
  lacks = function() NULL,
  prepare = function() {
    standard_objects()
    tried_functions()
  },
  make = function() {
    functions <- tried_functions()
    name <- pick(names(functions))
    exported <- name %in% getNamespaceExports("logevidence")
    call <- odd_call(if (exported) name else "f", functions[[name]], !exported)
    objects <- c(standard_objects(), list(f = functions[[name]]))
    rows <- objects$rows
    at <- 0
    objects$next_rows <- function(reset) {
      if (reset) at <<- 0
      else if (at < nrow(rows)) {
        at <<- at + 4
        rows[at - 3:0, ]
      }
    }
    list(objects = objects, call = bquote({
      made <- .(call)
      used(made, rows, .(round(stats::runif(1), 3)))
    }))
  })

#' Uses what a constructor has made
#'
#' @param at From 0 to 1, which of its uses.
used <- function(made, rows, at) {
  uses <- USES[[intersect(names(USES), class(made))[1]]]
  if (is.null(uses)) made else eval(uses[[max(1, ceiling(at * length(uses)))]])
}

# Rows, a file, a fit and a part of one, the same in all cases.
standard_objects <- local({
  known <- NULL
  function() {
    if (!is.null(known)) return(known)
    set.seed(1)
    rows <- data.frame(x = stats::rnorm(12), y = stats::rnorm(12, 1))
    rows$g <- factor(rep(c("a", "b"), 6))
    file <- own_file("rows.csv")
    utils::write.csv(rows, file, row.names = FALSE)
    fit <- evidence(linear_regression(y ~ x, sigma = 1, prior_sd = 1), rows,
                    sgais(particles = 20, steps = 2), seed = 1, progress = FALSE, keep_state = TRUE)
    part <- evidence(linear_regression(y ~ x, sigma = 1, prior_sd = 1), rows,
                     smc(particles = 50), seed = 1, progress = FALSE, time_limit = 1e-9)
    known <<- list(rows = rows, file = file, fit = fit, part = part)
    known
  }
})

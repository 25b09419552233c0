# A conformance suite for models: every function of the contract is called in guarded memory
# (src/bridge/check.c), and what it returns is compared with what the other functions return.

#' Check a model
#'
#' Tests whether the functions of a model agree with each other and keep the contract of
#' `logevidence.h`: gradients with densities, sums with single rows, draws with the prior's density,
#' and many more. Use it on a model of your own, by [custom_model()], [compiled_model()] or
#' [new_model()], before you trust evidences that are computed with it. For models of this package
#' everything should hold.
#'
#' @param model A model, such as [linear_regression()].
#' @param data Data for that model, as for [evidence()]; left out for a model without data. A few
#'   hundred of the rows are used.
#' @param geweke Whether to make Geweke's joint test of prior, likelihood and simulated data, too;
#'   it needs a model that can simulate data and takes seconds.
#' @param kernel For the joint test: the kernel that moves the parameters, [slice()] by default.
#'   Give another one to test the kernel and the model's gradients with it.
#' @param ... Must be empty; for `plot()`, passed on to [plot()].
#' @inheritParams evidence
#'
#' @details
#' Functions are called at points drawn from the prior, and at others nearer to the posterior. A
#' model that has a fault may fail several checks, as one often follows from another: look at the
#' first one that fails.
#'
#' \describe{
#'   \item{`inputs`, `outputs`, `scratch`}{Each call gets memory that is exactly as large as the
#'     contract says. Nothing else is written to: not points and rows, nothing behind the outputs or
#'     the scratch memory. (Not for R functions.)}
#'   \item{`repeated calls`, `two threads`}{The same call gives the same numbers, whatever was
#'     called before, and while another thread calls the same function. No function keeps anything
#'     outside of its scratch memory.}
#'   \item{`scratch contents`}{Numbers that happen to be in the scratch memory do not change
#'     results.}
#'   \item{`width`}{Nothing behind the last row is read, and every column is.}
#'   \item{`legal points`}{No density or gradient is `NaN`, also at points of which the prior has
#'     few. A density may be zero (`-Inf`).}
#'   \item{`adding`}{Likelihood functions add to what is in their outputs; `log_prior`,
#'     `log_prior_grad` and `log_lik_each` overwrite it.}
#'   \item{`particles`, `blocks`}{Several points in one call give what they give one by one; all
#'     rows in one call what halves and single rows add up to.}
#'   \item{`rows`, `values`, `fast gradient`}{`log_lik_each` adds up to `log_lik`; `log_lik_grad`
#'     has the same values, and `log_lik_grad_alone` the same gradients (to four digits).}
#'   \item{`prior gradient`, `gradient`}{Gradients agree with differences of the densities.}
#'   \item{`prior second derivatives`, `second derivatives`, `information`}{Second derivatives agree
#'     with differences of gradients; the information matrix has no negative eigenvalue.}
#'   \item{`prior draws`}{Draws from the prior keep their distribution when Metropolis steps move
#'     them by the prior's density: two-sample Kolmogorov-Smirnov tests of coordinates and of the
#'     density, at a level of 1e-5 in all.}
#'   \item{`prior constant`}{The prior's density integrates to one, with the Jacobian of its
#'     transformation: `q / p` averages to one over draws from the prior `p`, where `q` is a narrow
#'     normal distribution cut off at its edges. For up to 8 parameters.}
#'   \item{`relabelling`, `symmetry`}{Relabelled points have the same densities, and are left alone
#'     by the same reference; the points that many references make are as many as `log_symmetry` and
#'     `log_orbit` say.}
#'   \item{`user scale`, `simulate`, `start`}{Parameters on the user's scale, simulated rows and
#'     starts are finite. `from_user` of [new_model()] is the inverse of `to_user`.}
#'   \item{`coordinates`}{`to_normal` and `from_normal` are the inverse of each other, leave the
#'     mode where it is and agree with the parameters to first order there; the log determinant
#'     agrees with differences (for up to 40 parameters).}
#'   \item{`bound start`, `bound updates`, `bound`, `bound draws`}{For variational Bayes: starts
#'     have a finite bound, no update lowers it, and it is not above the evidence, which is
#'     estimated by importance sampling for few rows. Draws are possible, and relabelling adds at
#'     most `log_symmetry`. `maximum updates`: no step of EM lowers the likelihood. `bound calls`
#'     and `maximum calls` are as `repeated calls` and `two threads`.}
#'   \item{`joint`}{With `geweke = TRUE`: parameters and data that are drawn forwards from the model
#'     have the same law as those at the end of chains that draw them in turn, parameters given data
#'     by a kernel (or sweeps), data given parameters by the model's `simulate`. The test is of
#'     parameters and of the log-likelihood, with few rows of the data. `plot()` draws it as a P-P
#'     plot.}
#' }
#'
#' For models with latent variables, which have no densities in unconstrained space, the checks are
#' of states: those drawn from the prior are possible and have finite densities; predictive
#' densities of a row agree with each other; a sweep backwards is the reverse of one forwards (for
#' known variances); sweeps stay above a wall of the likelihood.
#'
#' @return A data frame of class `"model_check"` with a row for each check: its name (`check`),
#'   whether it `holds` (`NA` if it does not apply), the `value` that was compared with its limit
#'   (differences are relative), and `what` was seen. It prints with one line for each check.
#'
#' @examples
#' check_model(linear_regression(dist ~ speed, sigma = 15, prior_sd = 10), cars, seed = 1)
#'
#' # a gradient with the wrong sign
#' wrong <- custom_model(
#'   log_likelihood = function(theta, data) dnorm(data, theta, log = TRUE),
#'   log_prior = function(theta) dnorm(theta, log = TRUE),
#'   draw_prior = function(n) matrix(rnorm(n), n),
#'   gradient = function(theta, data) sum(theta - data),
#'   prior_gradient = function(theta) -theta,
#'   parameters = "mean"
#' )
#' check <- check_model(wrong, c(1.2, 0.4, 2.1), seed = 1)
#' check[which(!check$holds), ]
#'
#' # are prior, likelihood and simulated data one model? The joint test
#' check <- check_model(gaussian_mean(), c(1.2, 0.4, 2.1), seed = 1, geweke = TRUE)
#' check[check$check == "joint", ]
#' plot(check)
#'
#' @references
#' Geweke, J. (2004). Getting it right: joint distribution tests of posterior simulators. *Journal
#' of the American Statistical Association* 99, 799-804.
#'
#' @seealso [new_model()], [model_functions()]; [logevidence_names] for
#'   `evidence_check_model()`, the same function
#' @family models
#' @export
check_model <- function(model, data, seed = NULL, geweke = FALSE, kernel = slice(), ...) {
  own_names("kernel")
  theirs <- masked_function("performance", "check_model", model)
  if (!is.null(theirs)) return(theirs(model, ...))
  check_no_dots(...)
  check_is_model(model)
  require_proper(model, "No check is possible")
  geweke <- check_flag(geweke, "geweke")
  kernel <- check_kernel(kernel)
  if (missing(data)) data <- part_of(model, "no_data")(model)
  words <- seed_words(seed)
  encoded <- encode_apart(model, data)
  restore <- own_generator(words, keep = is.null(seed))
  on.exit(restore())
  bench <- check_bench(model, encoded)
  found <- if (is_latent(model)) check_states(bench, model)
  else check_densities(bench, model, encoded)
  # the check of memory comes last, because it is about all calls
  if (!asks_r(model)) found <- c(check_memory(bench), found)
  joint <- if (geweke) run_checks(list(joint = function() check_joint(model, data, kernel)))
  found <- c(found, joint)
  frame <- data.frame(
    check = names(found),
    holds = vapply(found, function(x) x$holds, NA),
    value = vapply(found, function(x) as.double(x$value), 0),
    what = vapply(found, function(x) x$what, ""),
    row.names = NULL
  )
  structure(frame, class = c("model_check", "data.frame"), model = describe(model)[[1]],
            n = ncol(bench$rows), geweke = joint$joint$draws)
}

#' @rdname check_model
#' @usage NULL
#' @export
evidence_check_model <- check_model

# For the generic of the same name.
#' @exportS3Method performance::check_model
check_model.evidence_model <- check_model

#' @export
print.model_check <- function(x, ...) {
  if (!all(c("check", "holds", "what") %in% names(x))) return(NextMethod())
  said <- attr(x, "model")
  if (!is.null(said)) cat(said, ", checked on ", count_of(attr(x, "n"), "row"), "\n", sep = "")
  word <- ifelse(is.na(x$holds), "-", ifelse(x$holds, "holds", "FAILS"))
  cat(sprintf("  %-5s  %s  %s\n", word, format(x$check), x$what), sep = "")
  failed <- sum(!x$holds, na.rm = TRUE)
  if (!is.null(said))
    cat(if (failed) paste0(count_of(failed, "check"), " of ", sum(!is.na(x$holds)), " failed.") else
      paste0("All ", count_of(sum(!is.na(x$holds)), "check"), " hold."), "\n", sep = "")
  invisible(x)
}

# Parts of the data frame are plain data frames.
#' @export
`[.model_check` <- function(x, ...) {
  x <- as.data.frame(x)
  x[...]
}

#' @export
as.data.frame.model_check <- function(x, ...) plain_table(x)

# ---- the bench: calls and their limits

ROW_FUNCTIONS <- c("log_lik", "log_lik_grad", "log_lik_grad_alone", "log_lik_hess", "information",
                   "log_lik_each")
AT_ONE_POINT <- c("log_lik_hess", "information", "log_prior_hess")

#' A model on some of its rows, and the ways to call it
#' @noRd
check_bench <- function(model, encoded) {
  type <- model_type(model)
  args <- encoded$args
  run <- function(calls) .Call(ffi_check_model, type, args, calls)
  is <- model_facts(model, args)
  rows <- encoded$rows
  most <- if (is_latent(model)) CHECK$latent_rows else CHECK$rows
  if (ncol(rows) > most) rows <- rows[, sort(sample.int(ncol(rows), most)), drop = FALSE]
  dimnames(rows) <- NULL
  storage.mode(rows) <- "double"
  bench <- new.env()
  bench$is <- is
  bench$rows <- rows
  bench$asks_r <- asks_r(model)
  bench$names <- encoded$theta_names
  bench$d <- length(encoded$theta_names)
  bench$few <- few_values(model, encoded)
  bench$real <- setdiff(seq_len(bench$d), bench$few$at)
  bench$log_symmetry <- is$log_symmetry
  bench$broken <- list()
  # several calls of one instance, one after the other
  bench$calls <- function(calls) {
    answers <- run(calls)
    for (i in seq_along(answers)) for (word in answers[[i]]$broken)
      bench$broken[[word]] <- union(bench$broken[[word]], calls[[i]]$what)
    answers
  }
  bench$ask <- function(...) bench$calls(list(a_call(bench, ...)))[[1]]
  # the numbers that it wrote
  bench$get <- function(...) written_by(bench$ask(...))
  bench$has <- function(what) what %in% is$offered
  if (!is.null(part_of(model, "from_user")))
    bench$from_user <- function(user) from_user(model, encoded, user)
  bench$offered <- function(functions) intersect(functions, is$offered)
  bench
}

# Parameters with few values: where they are, and these values.
few_values <- function(model, encoded) {
  values <- part_of(model, "discrete")
  list(at = match(names(values), encoded$theta_names), values = values)
}

#' Points moved by so much; parameters with few values get one of them at random, every other time
#' @noRd
shifted <- function(bench, at, by) {
  moved <- at + by
  m <- ncol(at)
  for (k in seq_along(bench$few$at)) {
    j <- bench$few$at[k]
    anew <- sample(bench$few$values[[k]], m, TRUE)
    moved[j, ] <- ifelse(stats::runif(m) < 0.5, at[j, ], anew)
  }
  moved
}

# A call for each row by itself.
row_calls <- function(bench, what, theta, which = seq_len(ncol(bench$rows))) {
  lapply(which, function(r) a_call(bench, what, theta, bench$rows[, r, drop = FALSE]))
}

#' Run checks; an error in the model's own functions is a failed check
#' @noRd
run_checks <- function(checks) {
  lapply(checks, function(check) {
    tryCatch(check(), error = function(e) {
      if (is_time_limit(e)) stop(e)
      failing(gsub("\\s+", " ", conditionMessage(e)))
    })
  })
}

# Points at which a function is called: one by one where it takes only one.
each_call <- function(what, points) {
  if (what %in% AT_ONE_POINT) lapply(seq_len(ncol(points)), function(i) points[, i])
  else list(points)
}

# ---- models with densities

check_densities <- function(bench, model, encoded) {
  first <- run_checks(list(`legal points` = function() {
    found <- check_points(bench)
    if (!is.null(found$points)) measure(bench, found$points)
    found
  }))
  draws <- first[[1]]$draws
  if (is.null(draws)) return(first)
  smooth <- smooth_bench(bench, model, encoded)
  checks <- list(
    `repeated calls` = function() check_repeated(bench),
    `two threads` = function() check_threads(bench),
    `scratch contents` = function() check_soil(bench),
    width = function() check_width(bench),
    `legal points` = function() check_legal(bench, draws),
    adding = function() check_adding(bench),
    particles = function() check_together(bench),
    blocks = function() check_blocks(bench),
    rows = function() check_each(bench),
    values = function() check_values_agree(bench),
    `fast gradient` = function() check_fast(bench),
    `prior gradient` = function() check_slope(bench, "log_prior", "log_prior_grad", draws),
    gradient = function() check_slope(smooth, "log_lik", "log_lik_grad", draws),
    `prior second derivatives` = function()
      check_curvature(bench, "log_prior_grad", "log_prior_hess", draws),
    `second derivatives` = function()
      check_curvature(smooth, "log_lik_grad", "log_lik_hess", draws),
    information = function() check_information(bench),
    `prior draws` = function() check_prior_draws(bench, draws),
    `prior constant` = function() check_prior_constant(bench, draws),
    relabelling = function() check_relabelling(bench),
    symmetry = function() check_symmetry(bench, draws),
    `user scale` = function() check_user_scale(bench, draws),
    simulate = function() check_simulate(bench, draws),
    start = function() check_start(bench),
    coordinates = function() check_coordinates(bench, draws)
  )
  run_checks(c(checks, bound_of_points(bench, draws)))
}

#' The bench for derivatives: where the likelihood is approximate, gradients are those of the exact
#' one, so that differences need a finer approximation, and points where it is good
#' @noRd
smooth_bench <- function(bench, model, encoded) {
  finer <- part_of(model, "correction")$finer
  if (!is.null(finer)) finer <- finer(encoded$args)
  if (is.null(finer)) return(bench)
  encoded$args <- utils::modifyList(encoded$args, finer)
  encoded$rows <- bench$rows
  smooth <- check_bench(model, encoded)
  smooth$points <- near_posterior(bench)
  smooth
}

#' Those of the points that are nearer to the posterior
#' @noRd
near_posterior <- function(bench) bench$points[, -seq_len(CHECK$points %/% 2), drop = FALSE]

#' The checks of the bound for a model without latent variables: likelihoods at draws from the prior
#' are weights
#' @noRd
bound_of_points <- function(bench, draws) {
  bound_checks(
    bench,
    evidence_of = function(rows) {
      more <- bench$ask("draw_prior", n = BOUND$draws, seed = a_seed())$first
      weighted_mean(bench$get("log_lik", matrix(more, bench$d), rows))
    },
    possible = function(theta)
      all(is.finite(c(bench$get("log_prior", theta), bench$get("log_lik", theta)))),
    point = function() draws[, 1]
  )
}

#' Prepares what later checks use: points, functions of rows, and sizes of sums
#' @noRd
measure <- function(bench, points) {
  bench$points <- points
  # of a custom model values of single rows may be missing
  bench$each <- !bench$asks_r || tryCatch(length(bench$get("log_lik_each", points)) > 0,
                                          logevidence_error = function(e) FALSE)
  bench$of_rows <- setdiff(bench$offered(ROW_FUNCTIONS), if (!bench$each) "log_lik_each")
  bench$reads_data <- !"no_data" %in% bench$is$traits && !(bench$asks_r && ncol(bench$rows) == 1)
  # the size of sums over single rows, to which their rounding errors are relative
  bench$scale <- lapply(stats::setNames(nm = bench$of_rows), sum_scale, bench = bench)
}

#' Memory: has any call written to memory that was not its own?
#' @noRd
check_memory <- function(bench) {
  rule <- list(inputs = c("theta", "rows"), outputs = c("outputs", "state"), scratch = "scratch")
  agree <- list(inputs = "points and rows are left as they are",
                outputs = "nothing is written behind outputs",
                scratch = "nothing is written behind the scratch memory")
  lapply(stats::setNames(nm = names(rule)), function(name) {
    guilty <- unique(unlist(bench$broken[rule[[name]]]))
    holding(length(guilty) == 0, length(guilty), agree[[name]],
            if (length(guilty)) paste(guilty, collapse = ", "))
  })
}

check_soil <- function(bench) {
  if (bench$asks_r) return(not_checked("R functions have none"))
  off <- vapply(stats::setNames(nm = bench$of_rows), function(what) {
    max(vapply(each_call(what, bench$points), function(theta) {
      both <- bench$calls(list(a_call(bench, what, theta), a_call(bench, what, theta, soil = NaN)))
      difference(written_by(both[[1]]), written_by(both[[2]]))
    }, 0))
  }, 0)
  against(off, 0, "results do not depend on what is in the scratch memory before")
}

#' Draws from the prior, and points: some of the draws and some nearer to the posterior
#' @noRd
check_points <- function(bench) {
  m <- CHECK$draws[1 + bench$asks_r]
  draws <- matrix(bench$ask("draw_prior", n = m, seed = a_seed())$first, bench$d)
  if (!all(is.finite(draws))) return(failing("a draw from the prior is not finite"))
  half <- CHECK$points %/% 2
  log_lik <- bench$get("log_lik", draws)
  possible <- which(is.finite(log_lik))
  if (length(possible) < CHECK$points) return(failing(paste0(
    "the likelihood of ", m - length(possible), " of ", m, " draws from the prior is zero or NaN")))
  best <- possible[order(-log_lik[possible])]
  near <- climb(bench, draws[, best[seq_len(half)], drop = FALSE], prior_spread(draws))
  list(draws = draws, points = cbind(draws[, sample(possible, half), drop = FALSE], near))
}

# Metropolis steps of all sizes towards the posterior.
climb <- function(bench, at, spread, steps = 60) {
  density <- function(x) bench$get("log_prior", x) + bench$get("log_lik", x)
  value <- density(at)
  for (step in seq_len(steps)) {
    size <- 10^stats::runif(ncol(at), -4, 0)
    moved <- shifted(bench, at, spread * rep(size, each = nrow(at)) * stats::rnorm(length(at)))
    there <- density(moved)
    better <- which(there > value - stats::rexp(ncol(at)))
    at[, better] <- moved[, better]
    value[better] <- there[better]
  }
  at
}

check_width <- function(bench) {
  if (!bench$reads_data) return(not_checked("there are no data"))
  rows <- bench$rows
  n <- ncol(rows)
  compare <- function(behind) vapply(stats::setNames(nm = bench$of_rows), function(what) {
    max(vapply(each_call(what, bench$points), function(theta) {
      both <- bench$calls(list(a_call(bench, what, theta, behind = 0),
                               a_call(bench, what, theta, behind = behind)))
      difference(written_by(both[[1]]), written_by(both[[2]]))
    }, 0))
  }, 0)
  # first with 1 behind the last row, which a model may take for a code, then with NaN
  behind <- compare(1)
  if (max(behind) == 0) behind <- compare(NaN)
  if (max(behind) > 0) return(holding(FALSE, max(behind), "nothing behind the last row is read",
                                      paste(names(behind)[which.max(behind)], "does")))
  if (bench$each && n > 1) for (j in seq_len(nrow(rows))) {
    other <- rows
    other[j, ] <- rows[j, c(n, seq_len(n - 1))]
    if (identical(other, rows)) next
    before <- bench$get("log_lik_each", bench$points)
    if (identical(before, bench$get("log_lik_each", bench$points, other)))
      return(holding(FALSE, j, "every column is read",
                     paste("number", j, "of", nrow(rows), "is not")))
  }
  holding(TRUE, 0, "nothing behind the last row is read, every column is")
}

#' At draws, and at points three times as far from the prior's middle
#' @noRd
check_legal <- function(bench, draws) {
  some <- draws[, seq_len(60), drop = FALSE]
  middle <- apply(draws, 1, stats::median)
  far <- middle + 3 * (some[, 1:30, drop = FALSE] - middle)
  far[bench$few$at, ] <- some[bench$few$at, 1:30]
  points <- cbind(bench$points, some, far)
  wrong <- character()
  legal <- function(what, x) if (anyNA(x) || any(x == Inf)) wrong <<- c(wrong, what)
  log_prior <- bench$get("log_prior", points)
  log_lik <- bench$get("log_lik", points)
  legal("log_prior", log_prior)
  legal("log_lik", log_lik)
  fine <- which(is.finite(log_prior) & is.finite(log_lik))
  possible <- points[, fine, drop = FALSE]
  if (length(fine)) {
    if (bench$each) legal("log_lik_each", bench$get("log_lik_each", possible))
    for (what in bench$offered(c("log_prior_grad", "log_lik_grad", "log_lik_grad_alone"))) {
      x <- bench$get(what, possible)
      if (!all(is.finite(x))) wrong <- c(wrong, what)
    }
  }
  holding(length(wrong) == 0, length(wrong), "densities and gradients are numbers",
          if (length(wrong)) paste(wrong, collapse = ", ") else paste("at", ncol(points), "points"))
}

check_adding <- function(bench) {
  writes <- c("log_prior", "log_prior_grad", "log_lik_each")
  pre <- 1000.5
  functions <- c(bench$offered(c("log_prior", "log_prior_grad", "log_prior_hess")), bench$of_rows)
  off <- vapply(stats::setNames(nm = functions), function(what) {
    max(vapply(each_call(what, bench$points), function(theta) {
      both <- bench$calls(list(a_call(bench, what, theta),
                               a_call(bench, what, theta, prefill = pre)))
      clean <- written_by(both[[1]])
      added <- written_by(both[[2]])
      if (what %in% writes) difference(clean, added, 1)
      else difference(clean, added - pre, pmax(abs(clean), pre))
    }, 0))
  }, 0)
  against(off, CHECK$sums, "sums are added to outputs, other values overwrite them")
}

check_repeated <- function(bench) {
  functions <- c(bench$of_rows,
                 bench$offered(c("log_prior", "log_prior_grad", "log_prior_hess", "to_user")))
  at <- function(i) lapply(functions, function(what) a_call(bench, what, bench$points[, i]))
  off <- vapply(stats::setNames(nm = functions), function(what) {
    call <- a_call(bench, what, if (what %in% AT_ONE_POINT) bench$points[, 1] else bench$points)
    # other points first too: the first call may be the one that differs
    answers <- bench$calls(c(at(2)[match(what, functions)], list(call), at(3), list(call)))
    difference(written_by(answers[[2]]), written_by(answers[[length(answers)]]))
  }, 0)
  against(off, 0, "the same call gives the same numbers, whatever was called between")
}

check_threads <- function(bench) {
  if (bench$asks_r) return(not_checked("R functions have one thread"))
  if (bench$is$threads < 2) return(not_checked("there is only one thread here"))
  functions <- c(bench$of_rows, bench$offered(c("log_prior", "log_prior_grad", "log_prior_hess",
                                                "draw_prior", "to_user")))
  p <- ncol(bench$points)
  off <- vapply(stats::setNames(nm = functions), function(what) {
    at <- if (what %in% AT_ONE_POINT) list(1, p) else list(seq_len(p), rev(seq_len(p)))
    call <- function(i) {
      if (what == "draw_prior") return(a_call(bench, what, n = 20, seed = c(0, i)))
      a_call(bench, what, bench$points[, at[[i]]])
    }
    bench$calls(list(c(call(1), list(with = call(2), seconds = CHECK$threads))))[[1]]$value
  }, 0)
  worst <- which.max(off)
  holding(max(off) == 0, max(off), "two threads at once give what one gives alone",
          if (max(off) > 0) paste0(names(off)[worst], ", ", off[worst], " times"))
}

check_together <- function(bench) {
  functions <- setdiff(c(bench$of_rows, bench$offered(c("log_prior", "log_prior_grad"))),
                       AT_ONE_POINT)
  p <- ncol(bench$points)
  off <- vapply(stats::setNames(nm = functions), function(what) {
    together <- bench$ask(what, bench$points)
    alone <- bench$calls(lapply(seq_len(p), function(i) a_call(bench, what, bench$points[, i])))
    alone <- unlist(c(lapply(alone, function(a) a$first), lapply(alone, function(a) a$second)))
    together <- written_by(together)
    scale <- bench$scale[[what]][[1]]$scale
    if (is.null(scale)) scale <- pmax(abs(together), abs(alone), 1e-6)
    difference(together, alone, scale)
  }, 0)
  against(off, CHECK$sums, "several points in one call give what they give one by one")
}

#' What single rows add in all, in absolute value: rounding errors are relative to this
#' @noRd
sum_scale <- function(bench, what) {
  if (what == "log_lik_each") return(NULL)
  n <- ncol(bench$rows)
  lapply(each_call(what, bench$points), function(theta) {
    sum <- scale <- 0
    # ten rows at a time, because matrices of all rows together may be large
    for (which in split(seq_len(n), (seq_len(n) - 1) %/% 10)) {
      singles <- lapply(bench$calls(row_calls(bench, what, theta, which)), written_by)
      sum <- sum + Reduce(`+`, singles)
      scale <- scale + Reduce(`+`, lapply(singles, abs))
    }
    least <- 1e-6 * size_of(scale)
    # in single precision, entries much smaller than others of the gradient have no digits
    if (what == "log_lik_grad_alone")
      least <- 1e-2 * rep(apply(matrix(scale, bench$d), 2, max), each = bench$d)
    list(sum = sum, scale = pmax(scale, least, 1e-6))
  })
}

check_blocks <- function(bench) {
  n <- ncol(bench$rows)
  if (n < 2 || !bench$reads_data) return(not_checked("there is only one row"))
  half <- n %/% 2
  part <- function(what, theta, rows) a_call(bench, what, theta, bench$rows[, rows, drop = FALSE])
  off <- vapply(stats::setNames(nm = setdiff(bench$of_rows, "log_lik_each")), function(what) {
    limit <- if (what == "log_lik_grad_alone") CHECK$single else CHECK$sums
    points <- each_call(what, bench$points)
    max(vapply(seq_along(points), function(i) {
      three <- bench$calls(list(a_call(bench, what, points[[i]]),
                                part(what, points[[i]], 1:half),
                                part(what, points[[i]], (half + 1):n)))
      three <- lapply(three, written_by)
      single <- bench$scale[[what]][[i]]
      max(difference(three[[1]], three[[2]] + three[[3]], single$scale),
          difference(three[[1]], single$sum, single$scale))
    }, 0)) * CHECK$sums / limit
  }, 0)
  if (bench$each) {
    whole <- matrix(bench$get("log_lik_each", bench$points), n)
    single <- bench$calls(row_calls(bench, "log_lik_each", bench$points))
    single <- do.call(rbind, lapply(single, written_by))
    each <- difference(c(whole), c(single), pmax(abs(c(whole)), 1))
    off <- c(off, log_lik_each = each)
  }
  against(off, CHECK$sums, "all rows at once give what halves and single rows give")
}

check_each <- function(bench) {
  if (!bench$each) return(not_checked("`log_likelihood` returns sums only"))
  each <- colSums(matrix(bench$get("log_lik_each", bench$points), ncol(bench$rows)))
  off <- difference(each, bench$get("log_lik", bench$points), bench$scale$log_lik[[1]]$scale)
  against(off, CHECK$sums, "log_lik_each adds up to log_lik")
}

check_values_agree <- function(bench) {
  if (!bench$has("log_lik_grad")) return(not_checked("no gradients"))
  off <- difference(bench$ask("log_lik_grad", bench$points)$first,
                    bench$get("log_lik", bench$points), bench$scale$log_lik[[1]]$scale)
  against(off, CHECK$sums, "log_lik_grad has the values of log_lik")
}

check_fast <- function(bench) {
  if (!bench$has("log_lik_grad_alone")) return(not_checked("not offered"))
  off <- difference(bench$ask("log_lik_grad", bench$points)$second,
                    bench$get("log_lik_grad_alone", bench$points),
                    bench$scale$log_lik_grad_alone[[1]]$scale)
  against(off, CHECK$single, "log_lik_grad_alone has the gradients of log_lik_grad")
}

# ---- derivatives

STEPS <- 0.1 * 6^-(0:6) # of differences, in the prior's spread
STENCIL <- c(-2, -1, 1, 2)
NEGLIGIBLE <- 1e-4 # of derivatives in units of the prior's spread: rounding hides less

#' Five-point differences of a function by some coordinates, with steps of many sizes
#'
#' @param f A function of a matrix with a point in each column; it returns a column for each.
#' @return A list by coordinate of `slope` and of `error`, what steps of other sizes say.
#' @noRd
differences_of <- function(f, point, coordinates, spread) {
  steps <- outer(STENCIL, STEPS)
  at <- matrix(point, length(point), length(steps) * length(coordinates))
  for (k in seq_along(coordinates)) {
    columns <- (k - 1) * length(steps) + seq_along(steps)
    at[coordinates[k], columns] <- at[coordinates[k], columns] + c(steps) * spread[coordinates[k]]
  }
  values <- f(at)
  lapply(seq_along(coordinates), function(k) {
    v <- values[, (k - 1) * length(steps) + seq_along(steps), drop = FALSE]
    h <- STEPS * spread[coordinates[k]]
    first <- (seq_along(h) - 1) * 4
    slopes <- t((8 * t(v[, first + 3, drop = FALSE] - v[, first + 2, drop = FALSE]) -
                   t(v[, first + 4, drop = FALSE] - v[, first + 1, drop = FALSE])) / (12 * h))
    last <- length(h)
    change <- abs(slopes[, -1, drop = FALSE] - slopes[, -last, drop = FALSE])
    error <- pmax(change[, -(last - 1), drop = FALSE], change[, -1, drop = FALSE])
    noise <- 1e-15 * apply(abs(v), 1, max) %o% (1 / h[seq_len(last - 2)])
    error <- error + noise
    error[!is.finite(error)] <- Inf
    best <- cbind(seq_len(nrow(v)), apply(error, 1, which.min))
    list(slope = slopes[best], error = error[best])
  })
}


# Deviations are relative to the numbers, and to the error of numerical differences.
off_slope <- function(given, slope, error, scale = 0) {
  size <- abs(given) + abs(slope) + 1e5 * error + scale
  ifelse(is.finite(error), abs(given - slope) / pmax(size, 1e-300), NA)
}

check_slope <- function(bench, density, gradient, draws) {
  if (!bench$has(gradient)) return(not_checked("no gradients"))
  spread <- prior_spread(draws)
  f <- function(at) matrix(bench$get(density, at), 1)
  if (!length(bench$real)) return(not_checked("no parameter is a real number"))
  off <- lapply(seq_len(ncol(bench$points)), function(i) {
    coordinates <- bench$real[some_of(length(bench$real))]
    point <- bench$points[, i]
    answer <- bench$ask(gradient, point)
    given <- if (length(answer$second)) answer$second else answer$first
    found <- differences_of(f, point, coordinates, spread)
    scale <- (NEGLIGIBLE + 1e-8 * size_of(given * spread)) / spread[coordinates]
    off <- mapply(function(j, x, s) off_slope(given[j], x$slope, x$error, s),
                  coordinates, found, scale)
    stats::setNames(off, paste0("by `", bench$names[coordinates], "`"))
  })
  against(off, CHECK$slopes, "it agrees with differences of the density", names(unlist(off)))
}

check_curvature <- function(bench, gradient, hessian, draws) {
  if (!bench$has(hessian) || !bench$has(gradient)) return(not_checked("not offered"))
  spread <- prior_spread(draws)
  d <- bench$d
  f <- function(at) {
    answer <- bench$ask(gradient, at)
    matrix(if (length(answer$second)) answer$second else answer$first, d)
  }
  off <- lapply(seq_len(ncol(bench$points)), function(i) {
    coordinates <- bench$real[some_of(length(bench$real), 6)]
    point <- bench$points[, i]
    answer <- bench$ask(hessian, point)
    given <- matrix(if (length(answer$second)) answer$second else answer$first, d)
    found <- differences_of(f, point, coordinates, spread)
    size <- sqrt(pmax(abs(diag(given)), 1e-6 * size_of(given * outer(spread, spread)) / spread^2))
    slopes <- vapply(seq_along(coordinates), function(k) {
      j <- coordinates[k]
      scale <- 1e-3 * size * size[j] + NEGLIGIBLE / spread / spread[j]
      max(off_slope(given[, j], found[[k]]$slope, found[[k]]$error, scale), -Inf, na.rm = TRUE)
    }, 0)
    # the gradient that comes with the second derivatives must be that of the other function
    own <- if (length(answer$second)) CHECK$slopes / CHECK$sums *
      difference(f(cbind(point))[, 1], answer$first, size_of(answer$first))
    c(stats::setNames(slopes, paste0("by `", bench$names[coordinates], "`")),
      symmetry = difference(c(given), c(t(given)), c(outer(size, size))), gradient = own)
  })
  against(off, CHECK$slopes, "they agree with differences of the gradient", names(unlist(off)))
}

check_information <- function(bench) {
  if (!bench$has("information")) return(not_checked("not offered"))
  off <- vapply(seq_len(ncol(bench$points)), function(i) {
    given <- matrix(bench$get("information", bench$points[, i]), bench$d)
    if (!all(is.finite(given))) return(Inf)
    scale <- sqrt(pmax(diag(given), 1e-300))
    values <- eigen(given / outer(scale, scale), TRUE, TRUE)$values
    max(-min(values), difference(c(given), c(t(given)), c(outer(scale, scale))))
  }, 0)
  against(off, CHECK$sums, "it is symmetric and has no negative eigenvalue", NULL)
}

# ---- the prior

#' Does the prior's density leave its draws as they are?
#'
#' Draws of a different law than the density's move towards the density's. Those that move and
#' those that they are compared with are different draws.
#' @noRd
check_prior_draws <- function(bench, draws) {
  m <- ncol(draws)
  fresh <- matrix(bench$ask("draw_prior", n = m, seed = a_seed())$first, bench$d)
  log_fresh <- bench$get("log_prior", fresh)
  spread <- prior_spread(draws)
  at <- draws
  value <- bench$get("log_prior", at)
  if (any(!is.finite(value)))
    return(failing(paste("the log density is", value[!is.finite(value)][1], "at a draw")))
  coordinates <- some_of(bench$d, 12)
  for (sweep in 1:10) for (j in c(coordinates, 0)) {
    moved <- at
    if (j == 0)
      moved <- shifted(bench, at, spread * stats::rnorm(length(at)) * 1.5 / sqrt(bench$d))
    else if (j %in% bench$few$at)
      moved[j, ] <- sample(bench$few$values[[match(j, bench$few$at)]], m, TRUE)
    else moved[j, ] <- at[j, ] + 2 * spread[j] * stats::rnorm(m)
    there <- bench$get("log_prior", moved)
    accepted <- which(there - value > -stats::rexp(m))
    at[, accepted] <- moved[, accepted]
    value[accepted] <- there[accepted]
  }
  p <- vapply(coordinates, function(j) ks_p(at[j, ], fresh[j, ]), 0)
  names(p) <- paste0("`", bench$names[coordinates], "`")
  p <- c(p, `the density itself` = ks_p(value, log_fresh))
  p <- pmin(1, p * length(p))
  worst <- which.min(p)
  holds <- p[[worst]] >= CHECK$level
  holding(holds, p[[worst]], "draws keep their distribution when they are moved by the density",
          paste0(if (!holds) paste0(names(p)[worst], ", "), "p = ", format(p[[worst]], digits = 2)))
}

check_prior_constant <- function(bench, draws) {
  half <- ncol(draws) %/% 2
  more <- matrix(bench$ask("draw_prior", n = 2 * half, seed = a_seed())$first, bench$d)
  found <- prior_integral(draws[, seq_len(half), drop = FALSE],
                          cbind(draws[, -seq_len(half), drop = FALSE], more),
                          function(theta) bench$get("log_prior", theta), bench$few$at)
  if (!is.null(found$not_known)) return(not_checked(found$not_known))
  if (!is.null(found$impossible)) return(failing("the density of a draw is zero"))
  holding(found$holds, found$integral, "the density integrates to one",
          paste0("to ", format(found$integral, digits = 3), ", se ",
                 format(found$se, digits = 2)))
}

# ---- labels and what users see

check_relabelling <- function(bench) {
  if (bench$log_symmetry == 0) return(not_checked("nothing is exchangeable"))
  if (!bench$has("relabel"))
    return(failing("there is no `relabel`, but `log_symmetry` is positive"))
  log_prior <- bench$get("log_prior", bench$points)
  log_lik <- bench$get("log_lik", bench$points)
  off <- c(log_prior = 0, log_lik = 0, `a second time` = 0, `the answer 0` = 0)
  for (i in seq_len(10)) {
    reference <- matrix(bench$ask("draw_prior", seed = a_seed())$first, bench$d)
    once <- bench$ask("relabel", bench$points, other = c(reference))
    image <- matrix(once$theta, bench$d)
    again <- bench$ask("relabel", image, other = c(reference))
    off[1] <- max(off[1], difference(bench$get("log_prior", image), log_prior))
    off[2] <- max(off[2], difference(bench$get("log_lik", image), log_lik,
                                     bench$scale$log_lik[[1]]$scale))
    off[3] <- max(off[3], difference(again$theta, c(image), size_of(image)))
    left <- rep(once$first == 0, each = bench$d)
    off[4] <- max(off[4], if (any(left)) difference(image[left], bench$points[left]) else 0)
  }
  against(off, CHECK$sums, "relabelled points have the same densities, and their own labels")
}

SMALL_GROUP <- 120 # relabellings, of which many references find all

check_symmetry <- function(bench, draws) {
  claimed <- exp(bench$log_symmetry)
  if (!bench$has("relabel")) return(not_checked("nothing is exchangeable"))
  point <- draws[, 1]
  orbit <- exp(bench$get("log_orbit", point))
  m <- ceiling(min(claimed, SMALL_GROUP) * (log(min(claimed, SMALL_GROUP)) + 15))
  references <- bench$ask("draw_prior", n = m, seed = a_seed())$first
  images <- matrix(bench$ask("relabel", rep(point, m), other = references)$theta, bench$d)
  count <- ncol(unique(signif(images, 10), MARGIN = 2))
  few <- claimed <= SMALL_GROUP + 0.5
  same <- if (few) count == round(claimed) else count <= claimed
  # fewer where parts are alike, as empty components are
  holds <- same && orbit >= 1 - 1e-6 && orbit <= claimed * (1 + 1e-6)
  holding(holds, count, "the orbits of points have the size that `log_symmetry` says",
          if (few || !holds) paste(count, "of", format(claimed)) else paste("at least", count))
}

check_user_scale <- function(bench, draws) {
  points <- bench$points
  user <- matrix(bench$get("to_user", cbind(points, draws[, 1:60, drop = FALSE])),
                 ncol = ncol(points) + 60)
  holds <- all(is.finite(user))
  if (!holds || is.null(bench$from_user))
    return(holding(holds, sum(!is.finite(user)), "parameters on the user's scale are finite"))
  back <- bench$from_user(user[, seq_len(ncol(points)), drop = FALSE])
  against(difference(back, points, pmax(abs(points), 1)), CHECK$inverse,
          "`from_user` goes back from the user's scale")
}

check_simulate <- function(bench, draws) {
  if (!bench$has("simulate")) return(not_checked("not offered"))
  bad <- 0
  for (i in 1:10) {
    answer <- matrix(bench$ask("simulate", draws[, i], seed = a_seed())$first, nrow(bench$rows))
    bad <- bad + sum(!is.finite(answer))
    if (bad == 0) bad <- sum(!is.finite(bench$get("log_lik", draws[, i], answer)))
  }
  holding(bad == 0, bad, "simulated rows are finite, and possible")
}

check_start <- function(bench) {
  if (!bench$has("start")) return(not_checked("not offered"))
  starts <- bench$calls(lapply(1:5, function(i) a_call(bench, "start", seed = a_seed())))
  starts <- matrix(vapply(starts, written_by, numeric(bench$d)), bench$d)
  holds <- all(is.finite(starts)) && all(is.finite(bench$get("log_lik", starts)))
  holding(holds, sum(!is.finite(starts)), "starts of climbs are finite and possible")
}

MOST_COORDINATES <- 40 # whose matrix of derivatives is made by differences

check_coordinates <- function(bench, draws) {
  if (!bench$has("to_normal")) return(not_checked("not offered"))
  if (!bench$has("from_normal")) return(failing("there is no `from_normal`"))
  spread <- prior_spread(draws)
  peaks <- near_posterior(bench)
  off <- lapply(seq_len(ncol(peaks)), function(k) {
    peak <- peaks[, k]
    around <- peak + spread * rep(c(0.03, 0.3, 1), each = bench$d) *
      matrix(stats::rnorm(6 * bench$d), bench$d)
    c(check_inverse(bench, peak, around, spread),
      if (bench$d <= MOST_COORDINATES) check_determinant(bench, peak, around[, 1:3], spread))
  })
  against(off, CHECK$sums, "coordinates are the inverse of each other, with this log determinant",
          names(unlist(off)))
}

#' From points to coordinates and back, and from coordinates to points and back
#' @noRd
check_inverse <- function(bench, peak, around, spread) {
  size <- pmax(abs(around), abs(peak), spread)
  there <- bench$ask("to_normal", around, other = peak)
  back <- bench$ask("from_normal", there$first, other = peak)
  points <- bench$ask("from_normal", around, other = peak)
  legal <- points$first == 1
  again <- bench$ask("to_normal", points$theta, other = peak)$first
  kept <- rep(legal, each = bench$d)
  at_peak <- bench$ask("to_normal", peak, other = peak)
  c(`from_normal(to_normal())` = if (all(back$first == 1)) difference(back$theta, c(around), size)
    else Inf,
    `to_normal(from_normal())` = if (any(legal)) difference(again[kept], around[kept], size[kept])
    else Inf,
    `the mode` = max(difference(at_peak$first, peak, pmax(abs(peak), spread)),
                     abs(at_peak$second)))
}

check_determinant <- function(bench, peak, around, spread) {
  f <- function(at) matrix(bench$ask("to_normal", at, other = peak)$first, bench$d)
  derivatives <- function(point) {
    slopes <- differences_of(f, point, seq_len(bench$d), spread)
    vapply(slopes, function(x) x$slope, numeric(bench$d)) * outer(1 / spread, spread)
  }
  given <- bench$ask("to_normal", around, other = peak)$second
  log_det <- function(point) determinant(matrix(derivatives(point), bench$d))$modulus
  found <- apply(around, 2, log_det)
  c(`the log determinant` = max(abs(given - found) / pmax(1, abs(given))),
    `derivatives at the mode` = max(abs(derivatives(peak) - diag(bench$d)))) *
    CHECK$sums / CHECK$slopes
}

# ---- models with latent variables

check_states <- function(bench, model) {
  n <- ncol(bench$rows)
  known <- identical(as.double(model$args$infer), 0)
  on_state <- function(what, state = NULL, ...) bench$ask(what, state, ...)
  # a draw from the prior, with the latent variables of so many rows
  prior_state <- function(rows) {
    state <- on_state("state_start", seed = a_seed())$theta
    for (seen in seq_len(rows) - 1)
      state <- on_state("state_extend_blind", state, seen = seen, seed = a_seed())$theta
    state
  }
  states <- lapply(1:4, function(i) prior_state(n))
  log_prior <- function(state) on_state("state_log_prior", state)$value
  log_lik <- function(state, lambda = 1) on_state("state_log_lik", state, lambda = lambda)$value
  # two calls of one kind and what differs between them
  twice <- function(what, state, ...) {
    call <- function(state, ...) a_call(bench, what, state, ...)
    answers <- bench$calls(list(call(state, seed = c(0, 7), ...),
                                call(states[[2]], seed = c(0, 8), ...),
                                call(state, seed = c(0, 7), soil = NaN, behind = NaN, ...)))
    difference(c(answers[[1]]$theta, answers[[1]]$value), c(answers[[3]]$theta, answers[[3]]$value))
  }
  bounds <- bound_checks(
    bench, evidence_of = function(rows) sequential_evidence(bench, rows),
    possible = function(state)
      on_state("state_possible", state)$value != 0 &&
        all(is.finite(c(log_prior(state), log_lik(state)))),
    point = function() states[[1]]
  )
  run_checks(c(list(
    states = function() {
      possible <- vapply(states, function(s) on_state("state_possible", s)$value, 0)
      densities <- lapply(states, function(s) c(log_prior(s), log_lik(s), log_lik(s, 0.3)))
      wrong <- sum(possible == 0) + sum(!is.finite(unlist(densities)))
      holding(wrong == 0, wrong, "states drawn from the prior are possible, with finite densities")
    },
    temperature = function() against(vapply(states, function(s) abs(log_lik(s, 0)), 0), 1e-8,
                                     "the likelihood to the power of zero is one", NULL),
    `repeated calls` = function() {
      functions <- c("state_log_prior", "state_log_lik", "state_sweep", "state_sweep_above",
                     "state_last_given_rest")
      floor <- log_lik(states[[1]]) - 1
      off <- vapply(stats::setNames(nm = functions), twice, 0, states[[1]], lambda = 0.7,
                    floor = floor)
      against(off, 0, "the same call gives the same, whatever was called and is in scratch memory")
    },
    `two threads` = function() {
      if (bench$is$threads < 2) return(not_checked("there is only one thread here"))
      off <- vapply(c("state_log_lik", "state_sweep"), function(what) {
        call <- function(i) a_call(bench, what, states[[i]], seed = c(0, i))
        bench$calls(list(c(call(1), list(with = call(2), seconds = 0.05))))[[1]]$value
      }, 0)
      holding(max(off) == 0, max(off), "two threads at once give what one gives alone")
    },
    prediction = function() against(vapply(states, function(s) {
      # the state without its last row, then with it
      before <- prior_state(n - 1)
      after <- on_state("state_extend", before, seen = n - 1, seed = a_seed())
      difference(after$value, on_state("state_last_given_rest", after$theta)$value)
    }, 0), 1e-6, "the density of a row given the others is that of extending by it", NULL),
    reversal = function() {
      if (!known) return(not_checked("variances are unknown"))
      off <- unlist(lapply(states, function(from) vapply(c(1, 0.4), function(lambda) {
        to <- on_state("state_sweep", from, lambda = lambda, seed = a_seed())$theta
        there <- on_state("state_sweep", from, lambda = lambda, other = to)$value
        back <- on_state("state_sweep", to, lambda = lambda, other = from, backwards = 1)$value
        left <- log_prior(from) + log_lik(from, lambda) + there
        right <- log_prior(to) + log_lik(to, lambda) + back
        terms <- c(log_lik(from, lambda), log_lik(to, lambda), there, back)
        difference(left, right, max(abs(terms), 1))
      }, 0)))
      against(off, 1e-6, "log f(x) + log T(y | x) = log f(y) + log T(x | y) backwards", NULL)
    },
    wall = function() {
      below <- vapply(states, function(s) {
        floor <- log_lik(s) - 1
        moved <- on_state("state_sweep_above", s, floor = floor, seed = a_seed())$theta
        max(0, (floor - log_lik(moved)) / max(1, abs(floor)))
      }, 0)
      against(below, 1e-9, "sweeps above a wall of the likelihood stay there", NULL)
    }
  ), bounds))
}

#' The evidence of few rows: states are drawn row by row, given the row, and the weight of each is
#' the product of the rows' predictive densities
#' @noRd
sequential_evidence <- function(bench, rows) {
  call <- function(what, state = NULL, seen = 0)
    a_call(bench, what, state, rows, seen = seen, seed = a_seed())
  answers <- bench$calls(lapply(seq_len(BOUND$particles), function(i) call("state_start")))
  log_weights <- numeric(BOUND$particles)
  for (seen in seq_len(ncol(rows)) - 1) {
    answers <- bench$calls(lapply(answers, function(x) call("state_extend", x$theta, seen)))
    log_weights <- log_weights + vapply(answers, function(x) x$value, 0)
  }
  weighted_mean(log_weights)
}

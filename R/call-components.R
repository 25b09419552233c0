# evidence() of a mixture with several numbers of components: a comparison of their fits, most of
# them from one run of partitions(), or a race of them (R/call-component-comparison.R).

#' @param spec As for new_work().
#' @param data In memory.
#' @param options From check_options().
#' @param evidence evidence() itself, for one number of components.
#' @noRd
evidence_of_components <- function(spec, data, options, evidence) {
  model <- spec$model
  numbers <- model$components
  encoded <- encode(with_components(model, max(numbers)), data)
  fits <- stats::setNames(vector("list", length(numbers)), numbers)
  plans <- component_plans(model, spec$method, encoded, spec$words)
  for (plan in plans) {
    chosen <- as.character(plan$components)
    fits[chosen] <- if (is.null(plan$method))
      list(fit_alone(spec, plan$components, data, options, evidence))
    else fits_together(spec, plan, data, options)
  }
  names(fits) <- vapply(numbers, count_of, "", "component")
  for (i in seq_along(fits)) fits[[i]]$na.action <- spec$omitted
  raise_named(fits)
  new_component_comparison(fits, numbers, encoded$rows, encoded$n)
}

#' Do all numbers of components have works of their own? One run for several numbers has no
#' replicates, and cannot be saved, limited or shared.
#' @noRd
apart_by_components <- function(spec, data, options)
  is_source(data) || !is.null(spec$keep) || !has_one_run(spec) ||
    any(lengths(options[c("checkpoint", "time_limit", "on_chunk", "cl")]) > 0)

#' A race of the numbers of components
#' @noRd
race_of_components <- function(spec, data, chosen) {
  numbers <- spec$model$components
  specs <- lapply(numbers, function(k)
    replace(spec, c("call", "model"), list(call_of(spec$call, k), with_components(spec$model, k))))
  names(specs) <- vapply(numbers, count_of, "", "component")
  race <- new_race(specs, data, chosen, NULL, NULL)
  race$components <- stats::setNames(numbers, names(specs))
  race
}

with_components <- function(model, components) {
  model$components <- as.double(components)
  model
}

#' Which numbers of components are fitted together, and how
#'
#' @return A list of lists with `components`, and `method` if they have a run of partitions() in
#'   common.
#' @noRd
component_plans <- function(model, method, encoded, words) {
  numbers <- model$components
  alone <- lapply(numbers, function(k) list(components = k))
  wanted <- has_trait(method, "components")
  if (!wanted && (!is_default(method) || encoded$n > PARTITION_ROWS)) return(alone)
  know <- known_once(model, encoded, words)
  of_its_own <- function(k)
    !wanted && (k == 1 || suits_modes(k, know, encoded$n))
  single <- vapply(numbers, of_its_own, NA)
  together <- numbers[!single]
  if (!length(together)) return(alone[single])
  chosen <- if (wanted) method else for_several(instead_of(method), length(together))
  anchors <- lapply(together, function(k) anchor_below(chosen, k, know))
  # numbers whose ladders begin at the same one have it in common
  begins <- vapply(anchors, `[[`, 0, "components")
  c(alone[single], lapply(split(seq_along(together), begins), function(at) {
    last <- at[length(at)]
    list(components = together[at],
         method = with_anchor(chosen, anchors[[last]], together[last], together[at[1]]))
  }))
}

# One run for several numbers may take the time of so many, and then aims at a smaller error.
SEVERAL_MOST <- 4
SEVERAL_TARGET <- 0.02

for_several <- function(method, numbers) {
  if (numbers == 1) return(method)
  with_settings(method, work = method$settings$work * min(numbers, SEVERAL_MOST),
                target = SEVERAL_TARGET)
}

fit_alone <- function(spec, components, data, options, evidence) {
  fit <- muffled(evidence(with_components(spec$model, components), data, spec$method,
                          seed = method_seed(spec$words, 1), threads = spec$threads,
                          progress = options$progress, keep_state = options$keep_state))
  fit$call <- call_of(spec$call, components)
  fit
}

#' Fits of several numbers of components from one run, each made as that of a single call
#' @noRd
fits_together <- function(spec, plan, data, options) {
  encoded <- lapply(plan$components, function(k) encode(with_components(spec$model, k), data))
  last <- length(encoded)
  problem <- new_problem(with_components(spec$model, plan$components[last]), encoded[[last]],
                         plan$method, spec$words, spec$threads)
  out <- conduct(problem, encoded[[last]]$rows)
  Map(function(k, bound) {
    own <- spec
    own[c("call", "model", "method", "seeded", "keep")] <-
      list(call_of(spec$call, k), with_components(spec$model, k), plan$method, TRUE, Inf)
    work <- new_work(own, bound, feeding = "last")
    work$options <- options
    work$plan$first[[1]]$result <- out
    work$plan$second <- list(NULL)
    fit <- finished_fit(work)
    if (is.null(other <- other_method(fit, work))) return(fit)
    begin_again(work, other)
    muffled(run_work(work, options))
  }, plan$components, encoded)
}

# The call that gives one of the fits alone.
call_of <- function(call, components) {
  if (is.call(call$model) && !is.null(call$model$components)) call$model$components <- components
  call
}

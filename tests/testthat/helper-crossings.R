# The matrix of crossings: every method x kernel x mass matrix x model x way of the rows x law of
# the rows, on small data. Methods, kernels and mass matrices are those that the package exports
# and C knows. Models need data, so each has an entry in crossing_models(); test-crossings.R fails
# if one is missing. Each cell is run by evidence() with two threads, by hand with one, saved and
# restored at many phases, in other processes, so that a crash is found and belongs to its cell. Of
# rows in memory it is also the first of two replicates and of runs that double the particles, of a
# stream a model of a race.

# Functions of the package -------------------------------------------------------------------------

function_named <- function(name) get(name, asNamespace("logevidence"))

#' Exported names, each function once: constructors by their short names
first_names <- function(names) {
  known <- asNamespace("logevidence")$SHORT_NAMES
  short <- stats::setNames(unlist(known), paste0(rep(names(known), lengths(known)), "_",
                                                 unlist(known)))
  long <- names %in% names(short)
  names[long] <- short[names[long]]
  second <- c("evidence_check_model", "evidence_compare_models", "evidence_posterior_draws")
  setdiff(names, c(second, "density_model"))
}

#' Exported functions that reach `maker`, such as new_model(), through calls
functions_reaching <- function(maker) {
  space <- asNamespace("logevidence")
  names <- Filter(function(name) is.function(get(name, space)), ls(space))
  uses <- lapply(stats::setNames(names, names), function(name)
    intersect(all.names(body(get(name, space))), names))
  hit <- maker
  repeat {
    more <- names(Filter(function(used) any(used %in% hit), uses))
    if (all(more %in% hit)) break
    hit <- union(hit, more)
  }
  public <- c(first_names(getNamespaceExports(space)), getNamespaceInfo(space, "S3methods")[, 3])
  setdiff(intersect(public, hit), maker)
}

#' Exported functions that give an object of this class without any argument
constructors_of <- local({
  known <- list()
  function(class) {
    if (is.null(known[[class]])) known[[class]] <<- find_constructors(class)
    known[[class]]
  }
})

find_constructors <- function(class) {
  space <- asNamespace("logevidence")
  complete <- Filter(function(name) {
    f <- get(name, space)
    needed <- vapply(formals(f), identical, NA, quote(expr = ))
    is.function(f) && !any(needed[names(needed) != "..."])
  }, first_names(getNamespaceExports(space)))
  makes <- function(name) inherits(tryCatch(get(name, space)(), error = function(e) NULL), class)
  sort(Filter(makes, complete))
}

# Data ---------------------------------------------------------------------------------------------

# A stream has more rows than are kept in memory, the least `keep`. Data in memory are a part of
# these rows, evenly spaced, so that they have the same change of law.
STREAM_ROWS <- 1500
MEMORY_ROWS <- 1200
FEW_ROWS <- 2 # for kernels that draw from the prior
CROSSING_BLOCK <- 150
CROSSING_KEEP <- 1000

# Where the law of the rows changes: before a row has left the memory, or after.
LAWS <- c(steady = Inf, early = 500, late = 1200)

#' A row of everything: the columns of all models
crossing_rows <- function(law, n = STREAM_ROWS) {
  d <- with_own_seed(test_seed(38), {
    m <- STREAM_ROWS
    later <- seq_len(m) > LAWS[[law]]
    x <- rnorm(m)
    eta <- 0.5 + ifelse(later, -1, 1) * 0.7 * x
    group <- rbinom(m, 1, 0.4)
    data.frame(
      x = x, z = rnorm(m),
      y = eta + rnorm(m) + 4 * later,
      count = rpois(m, exp(eta + later)),
      hit = rbinom(m, 1, plogis(eta + 2 * later)),
      positive = rgamma(m, 2, 2 / exp(eta + 2 * later)),
      kind = factor(c("a", "b", "c")[1 + rbinom(m, 2, plogis(eta - 3 * later))],
                    c("a", "b", "c")),
      a = rnorm(m, c(-2, 2)[1 + group] + 3 * later, 1),
      b = rnorm(m, c(1, -1)[1 + group] * (1 - 2 * later), 0.7),
      g = seq_len(m) %% 40, h = seq_len(m) %/% 7 %% 5
    )
  })
  d[round(seq(1, STREAM_ROWS, length.out = n)), ]
}

# Models -------------------------------------------------------------------------------------------

#' The models as calls, by name
#'
#' A list of `call`, `n` (rows; fewer where each row is a parameter or a call of R), and `full`:
#' whether it is crossed with every kernel and mass matrix, which one model of each type in C is.
crossing_models <- function() {
  entry <- function(call, n = MEMORY_ROWS, full = FALSE, columns = NULL, together = NULL)
    list(call = call, n = n, full = full, columns = columns, together = together)
  models <- list(
    gaussian_mean = entry(quote(gaussian_mean(~ y, prior_sd = 3)), full = TRUE),
    rate = entry(quote(poisson_rate(count ~ 1, shape = 2)), full = TRUE),
    probability = entry(quote(binomial_probability(~ hit)), full = TRUE),
    linear_known = entry(quote(linear_regression(y ~ x, sigma = 1, prior_sd = 1)), full = TRUE),
    linear_known_scaled = entry(quote(linear_regression(y ~ x, sigma = 1, scale = TRUE))),
    linear_known_heavy = entry(quote(regression(y ~ x, sigma = 1, prior = student_t(3, 0, 2)))),
    linear_unknown = entry(quote(linear_regression(y ~ x, prior_sd = 1))),
    linear_jzs = entry(quote(linear_regression(y ~ x + z, prior = jzs()))),
    linear_lags = entry(quote(linear_regression(y ~ x + lags(y, 1:2), sigma = 1, prior_sd = 1))),
    regression_lags = entry(quote(regression(count ~ lags(x, 1), poisson()))),
    regression_scaled = entry(quote(regression(y ~ x, scale = TRUE, prior_sd = 2.5))),
    regression_modelled = entry(quote(regression(y ~ x, sigma ~ z))),
    regression_heavy = entry(quote(regression(hit ~ x, binomial(), prior = cauchy(0, 2.5)))),
    softmax = entry(quote(softmax_regression(kind ~ x, prior_sd = 1)), full = TRUE),
    softmax_scaled = entry(quote(softmax_regression(kind ~ x, prior = student_t(4, 0, 2),
                                                    intercept = normal(0, 5), scale = TRUE))),
    groups = entry(quote(regression(y ~ x + (1 + z | g))), 60, TRUE),
    groups_known = entry(quote(regression(y ~ x + (1 | g), sigma = 1)), 60),
    groups_counts = entry(quote(regression(count ~ x + (1 | g), poisson())), 20, together = "g"),
    groups_slopes = entry(quote(regression(hit ~ x + (1 + x || h), binomial())), 10,
                          together = "h"),
    groups_noise = entry(quote(regression(y ~ x + (1 | g), sigma ~ z)), 12, together = "g"),
    groups_nested = entry(quote(regression(y ~ x + (1 | h/g))), 12),
    factors = entry(quote(linear_regression(y ~ kind + x + (1 | h), prior = jzs())), 20),
    groups_crossed = entry(quote(regression(count ~ x + (1 | g) + (1 | h), poisson())), 10,
                           together = "g"),
    density = entry(quote(density(~ dnorm(y, mu, s, log = TRUE), mu = ~ x, s = half_normal(2))),
                    full = TRUE),
    density_lags = entry(quote(density(~ dnorm(y, mu, 1, log = TRUE), mu = ~ lags(y, 1)))),
    density_modes = entry(quote(density(~ log(0.5 * dnorm(a, m) + 0.5 * dnorm(a, -m)), m = ~ 1))),
    mixture = entry(quote(gaussian_mixture(~ a + b, components = 2)), full = TRUE),
    clustering = entry(quote(clustering(~ a + b, components = 2, prior_sd = 2)), 40),
    clustering_unknown = entry(quote(clustering(~ a + b, components = 2, infer = TRUE)), 40),
    low_rank = entry(quote(low_rank(~ a + b + x, rank = 1)), 40),
    low_rank_unknown = entry(quote(low_rank(~ a + b + x, rank = 1, infer = TRUE)), 40),
    attributes = entry(quote(binary_attributes(~ a + b + x, attributes = 2)), 40),
    attributes_unknown =
      entry(quote(binary_attributes(~ a + b + x, attributes = 2, infer = TRUE)), 40),
    custom = entry(quote(crossing_custom()), 30, TRUE, "y"),
    custom_plain = entry(quote(crossing_custom(gradient = FALSE)), 30, FALSE, "y"),
    custom_memory = entry(quote(crossing_memory()), 12, FALSE, "y"),
    custom_bounds = entry(quote(crossing_custom(bounds = list(mean = c(-20, Inf)))), 12, FALSE,
                          "y"),
    custom_cube = entry(quote(crossing_cube()), 12, FALSE, "y"),
    custom_prior = entry(quote(crossing_prior()), 12, FALSE, "y"),
    custom_gibbs = entry(quote(crossing_gibbs()), 12, FALSE, "y"),
    tmb = entry(quote(crossing_tmb()), 0),
    compiled = entry(quote(compiled_model("normal_mean_table", "mean", sigma = 1,
                                          PACKAGE = "normal_mean")), columns = "y")
  )
  # where there is no compiler
  if (!is.loaded("normal_mean_table")) models$compiled <- NULL
  c(models, family_models(entry))
}

#' A regression for each family and link that R knows; the first is crossed with everything
family_models <- function(entry) {
  response <- c(counts = "count", successes = "hit", numbers = "y", positive = "positive",
                times = "positive")
  models <- list()
  for (name in names(FAMILIES)) for (link in names(FAMILIES[[name]]$links)) {
    family <- if (length(FAMILIES[[name]]$links) > 1) bquote(.(as.name(name))(.(link))) else name
    formula <- call("~", as.name(response[[FAMILIES[[name]]$response]]), quote(x))
    models[[paste("regression", name, link, sep = "_")]] <-
      entry(bquote(regression(.(formula), .(family),
                              prior_sd = 2.5)), full = length(models) == 0)
  }
  models$regression_student_df <-
    entry(quote(regression(y ~ x, student(df = inverse_gamma(2, 10)), prior_sd = 2.5)))
  models
}

# Adaptors that need a compiled object of another package; what they return is a custom_model().
WITHOUT_CROSSING <- "stanfit_model"

crossing_custom <- function(gradient = TRUE, ...) {
  custom_model("mean", function(theta, data) dnorm(data, theta[["mean"]], 1, log = TRUE),
               function(theta) dnorm(theta[["mean"]], 0, 3, log = TRUE),
               function(n) rnorm(n, 0, 3),
               if (gradient) function(theta, data) sum(data - theta[["mean"]]),
               if (gradient) function(theta) -theta / 9, ...)
}

# Each row is normal around the one before.
crossing_memory <- function() {
  custom_model("start", function(theta, data)
    sum(dnorm(data, c(theta[["start"]], data[-length(data)]), 1, log = TRUE)),
    function(theta) dnorm(theta[["start"]], 0, 3, log = TRUE), function(n) rnorm(n, 0, 3))
}

crossing_prior <- function() {
  custom_model(c("mean", "sigma"), function(theta, data)
    dnorm(data, theta[["mean"]], theta[["sigma"]], log = TRUE),
    prior = list(normal(0, 3), sigma = half_normal(2)))
}

# The mean has a shift of few values, which Gibbs steps draw.
crossing_gibbs <- function() {
  custom_model(c("shift", "mean"), function(theta, data)
    t(outer(data, theta[, "shift"] + theta[, "mean"], dnorm, log = TRUE)),
    prior = list(normal(0, 2)), gibbs = list(shift = c(0, 3, 6)), vectorised = TRUE)
}

crossing_cube <- function() {
  custom_model("mean", function(theta, data) dnorm(data, theta[["mean"]], 1, log = TRUE),
               prior_transform = function(u) qnorm(u, 0, 3))
}

# The objective of an object as TMB makes it, with its data inside.
crossing_tmb <- function() {
  y <- c(1.2, 0.4, 2.1, -0.3)
  env <- new.env()
  env$par <- env$last.par <- env$last.par.best <- c(mu = 0, log_s = 0)
  fn <- function(x = env$last.par) -sum(dnorm(y, x[[1]], exp(x[[2]]), log = TRUE))
  gr <- function(x = env$last.par) {
    r <- (y - x[[1]]) / exp(x[[2]])
    matrix(c(-sum(r) / exp(x[[2]]), length(y) - sum(r^2)), 1)
  }
  tmb_model(list(par = env$par, fn = fn, gr = gr, env = env),
            list(mu = normal(0, 3), log_s = half_normal(2)), "log_s")
}

# What is asked for many times is made once.
remembered <- function(f) {
  known <- list()
  function(...) {
    key <- paste(c("", ...), collapse = " ")
    if (is.null(known[[key]])) known[[key]] <<- list(f(...))
    known[[key]][[1]]
  }
}

crossing_model <- remembered(function(name) eval(crossing_models()[[name]]$call))

crossing_data <- remembered(function(name, law = "steady", way = "memory", few = FALSE) {
  entry <- crossing_models()[[name]]
  if (entry$n == 0) return(NULL)
  stream <- if (is.null(entry$together)) STREAM_ROWS else 10 * entry$n
  d <- crossing_rows(law, if (way != "memory") stream else if (few) FEW_ROWS else entry$n)
  # groups of a source come in blocks if their rows arrive together
  if (way != "memory" && !is.null(entry$together)) d <- d[order(d[[entry$together]]), ]
  if (is.null(entry$columns)) d else d[[entry$columns]]
})

# Methods ------------------------------------------------------------------------------------------

# Cheap values of arguments, whatever method has them.
CHEAP <- alist(
  particles = 12, steps = 2, draws = 10, live = 10, tol = 0.3, search = 20, restarts = 2,
  sweeps = 5, iterations = 50, importance = 64, first = 100, audit_draws = 64,
  schedule = linear(20), run = smc(particles = 12, ess = 0.5, steps = 2),
  early = list(rows = 300, particles = 12, work = 0, steps = 1), ess = 0.5,
  past = 300
)

# The places of kernels in a method: arguments whose default is a kernel, or a method that has one.
kernel_places <- function(method, kernels = constructors_of("evidence_kernel"),
                          methods = constructors_of("evidence_method")) {
  defaults <- as.list(formals(function_named(method)))
  is_call <- function(default, of) is.call(default) && deparse1(default[[1]]) %in% of
  c(names(Filter(function(default) is_call(default, c(kernels, methods)), defaults)),
    if ("early" %in% names(defaults)) "early")
}

#' Every method: constructor, `path`, `preset` and the place where the kernel goes
crossing_methods <- function() {
  methods <- constructors_of("evidence_method")
  kernels <- constructors_of("evidence_kernel")
  rows <- lapply(methods, function(name) {
    has <- names(formals(function_named(name)))
    places <- kernel_places(name, kernels, methods)
    expand.grid(
      constructor = name, place = if (length(places)) places else "",
      path = if ("path" %in% has) eval(formals(function_named(name))$path) else "",
      preset = if ("preset" %in% has) c("default", "paper") else "", stringsAsFactors = FALSE
    )
  })
  rows <- do.call(rbind, rows)
  rows <- rows[!(rows$place == "early" & rows$preset == "paper"), ]
  paste_words <- function(...) gsub(":+$", "", gsub(":+", ":", paste(..., sep = ":")))
  rows$method <- paste_words(rows$constructor, ifelse(rows$place == "kernel", "", rows$place),
                             rows$path, ifelse(rows$preset == "default", "", rows$preset))
  rownames(rows) <- NULL
  rows
}

crossing_kernels <- function() {
  stage <- tables()$engines$walk$stage
  masses <- setdiff(strsplit(stage$words[stage$name == "mass"], " ")[[1]], "default")
  names <- constructors_of("evidence_kernel")
  has_mass <- vapply(names, function(name) "mass" %in% names(formals(function_named(name))), NA)
  rbind(expand.grid(kernel = names[has_mass], mass = masses, stringsAsFactors = FALSE),
        data.frame(kernel = names[!has_mass], mass = ""))
}

#' The call of a method in a cell
#'
#' Arguments that are choices between words are drawn, so that these are crossed, too; `variety` is
#' the seed.
method_call <- function(cell, variety = 1, batch = NULL) {
  constructor <- cell$constructor
  defaults <- as.list(formals(function_named(constructor)))
  args <- CHEAP[intersect(names(CHEAP), names(defaults))]
  latent <- is_latent(crossing_model(cell$model))
  # a number of rows, not a share of them
  if (!latent && isTRUE(defaults$chunk >= 1)) args$chunk <- 150
  if (cell$path == "data") args$ess <- NULL
  if (constructor == "sgais" && cell$preset == "paper") args[c("early", "ess")] <- NULL
  if (nzchar(cell$path)) args$path <- cell$path
  if (cell$preset == "paper") args$preset <- "paper"
  words <- Filter(function(default) is.call(default) && identical(default[[1]], quote(c)) &&
                    is.character(tryCatch(eval(default), error = function(e) NULL)),
                  defaults[setdiff(names(defaults), "path")])
  with_own_seed(variety, for (name in names(words)) args[[name]] <- sample(eval(words[[name]]), 1))
  if ("own_batches" %in% names(defaults)) args$own_batches <- variety %% 2 == 0
  if (cell$kernel != "") {
    kernel <- call(cell$kernel)
    if (cell$mass != "") kernel$mass <- cell$mass
    # the steps of one of these decrease, the noise of the other is the article's or measured
    if (cell$kernel == "sgld") kernel$decay <- 0.6
    if (cell$kernel == "sghmc" && variety %% 3 == 0) kernel$noise <- "adaptive"
    else if (cell$kernel == "sghmc") kernel[c("noise", "scaled")] <- list(0.05, FALSE)
    if (cell$place == "early") args$early$kernel <- kernel
    else if (is.call(defaults[[cell$place]]) &&
             as.character(defaults[[cell$place]][[1]]) %in% constructors_of("evidence_kernel"))
      args[[cell$place]] <- kernel
    else args[[cell$place]]$kernel <- kernel
  }
  args$batch <- batch
  as.call(c(list(as.name(constructor)), args))
}

is_blind <- function(kernel) kernel != "" && kernel_needs(function_named(kernel)(), "floor")

# `prior_draws` of the tests is another function.
eval_method <- function(call) eval(call, list(prior_draws = function_named("prior_draws")))

#' The method of a cell; kernels with an accept step need a batch of all rows
crossing_method <- function(cell, variety = 1) {
  call <- method_call(cell, variety)
  tryCatch(list(call = call, method = eval_method(call)), logevidence_error = function(e) {
    if (!"batch" %in% names(formals(function_named(cell$constructor)))) stop(e)
    call <- method_call(cell, variety, batch = Inf)
    method <- tryCatch(eval_method(call), logevidence_error = function(...) stop(e))
    list(call = call, method = method)
  })
}

# Rows ---------------------------------------------------------------------------------------------

CROSSING_WAYS <- c("memory", "keep", "once", "again")

#' Data as they come in a cell
crossing_source <- function(data, way) {
  if (way == "memory") return(data)
  if (way == "keep") return(rows_in_memory(data))
  at <- 0
  rows_function(function(reset) {
    if (reset) {
      at <<- 0
      return(NULL)
    }
    which <- at + seq_len(min(CROSSING_BLOCK, NROW(data) - at))
    at <<- at + length(which)
    if (length(which)) block_part(data, which)
  }, rewind = way == "again")
}

# Cells --------------------------------------------------------------------------------------------

#' Which pairs of values are legal: all combinations of the others are cells
#'
#' A pair is tried with the plainest other values.  What is refused must be refused in a sentence.
legal_pairs <- function() {
  methods <- crossing_methods()
  kernels <- crossing_kernels()
  models <- names(crossing_models())
  try_cell <- function(cell) {
    said <- tryCatch({
      begun <- begin_crossing(cell)
      .Call(ffi_run_free, .Call(ffi_run_new, begun$problem))
      c(estimator = begun$problem$estimator, type = begun$problem$model_type,
        kernels = paste(vapply(begun$problem$kernels, `[[`, "", "name"), collapse = " "))
    }, error = identity)
    ok <- !inherits(said, "error")
    cbind(cell[c("method", "kernel", "mass", "model", "way")], legal = ok,
          said = if (ok) "" else refusal_of(said),
          estimator = if (ok) said[["estimator"]] else "", type = if (ok) said[["type"]] else "",
          kernels = if (ok) said[["kernels"]] else "")
  }
  cell <- function(method, kernel = "", mass = "", model = PLAIN_MODEL, way = "memory")
    cbind(methods[methods$method == method, ], kernel = kernel, mass = mass, model = model,
          way = way, law = "steady")
  rows <- list()
  try_all <- function(cells) rows <<- c(rows, lapply(cells, try_cell))
  for (method in methods$method) {
    if (methods$place[methods$method == method] != "")
      try_all(Map(function(kernel, mass) cell(method, kernel, mass), kernels$kernel, kernels$mass))
    try_all(lapply(models, function(model) cell(method, model = model)))
    try_all(lapply(CROSSING_WAYS, function(way) cell(method, way = way)))
  }
  for (model in models) {
    try_all(lapply(CROSSING_WAYS, function(way) cell("sgais", model = model, way = way)))
    if (crossing_models()[[model]]$full)
      try_all(lapply(unique(kernels$kernel),
                     function(kernel) cell(PLAIN_METHOD, kernel, "", model)))
  }
  do.call(rbind, rows)
}

# "" for an error of ours, which is a sentence, and what else it says.
refusal_of <- function(e) {
  text <- conditionMessage(e)
  ours <- inherits(e, "logevidence_error") && grepl("\\.$", text) && is.null(conditionCall(e)) &&
    !grepl(INTERNAL, text)
  paste0(if (!ours) "NOT A SENTENCE: ", text)
}
INTERNAL <- paste(c("subscript", "out of bounds", "object '", "could not find", "non-numeric",
                    "argument is of length", "missing value where", "ffi_", "le_[a-z]", "NULL used",
                    "replacement has", "non-conformable", "undefined columns", "[$] operator",
                    "invalid .*argument", "incorrect number"), collapse = "|")

#' All cells whose pairs are legal
#'
#' @param pairs What legal_pairs() returns.
crossing_cells <- function(pairs) {
  methods <- crossing_methods()
  models <- crossing_models()
  full <- names(Filter(function(model) model$full, models))
  legal <- pairs[pairs$legal, ]
  plain <- legal$model == PLAIN_MODEL
  whole <- legal$way == "memory"
  default <- legal$kernel == ""
  by_kernel <- unique(legal[plain & whole, c("method", "kernel", "mass")])
  by_model <- unique(legal[whole & default, c("method", "model")])
  by_way <- unique(legal[plain & default, c("method", "way")])
  # methods that a plain regression refuses
  others <- setdiff(by_model$method, by_kernel$method)
  by_kernel <- rbind(by_kernel, data.frame(method = others, kernel = rep("", length(others)),
                                           mass = rep("", length(others))))
  by_way <- rbind(by_way, data.frame(method = others, way = rep("memory", length(others))))
  model_way <- unique(legal[default & legal$method == "sgais", c("model", "way")])
  model_kernel <- unique(legal[whole & !default & legal$method == PLAIN_METHOD,
                               c("model", "kernel")])
  among <- function(cells, table) do.call(paste, unname(as.list(cells[names(table)]))) %in%
    do.call(paste, unname(as.list(table)))
  cells <- merge(merge(by_kernel, by_model), by_way)
  cells <- cells[cells$way == "memory" | among(cells, model_way), ]
  tried <- kernel_needs_tried(cells$kernel)
  cells <- cells[cells$kernel == "" | cells$model %in% full &
                   (!tried | among(cells, model_kernel)), ]
  cells <- merge(merge(cells, data.frame(law = names(LAWS))), methods)
  sorted <- do.call(order, unname(as.list(cells[c("method", "kernel", "mass", "model", "way",
                                                  "law")])))
  cells <- cells[sorted, ]
  rownames(cells) <- NULL
  cells
}

# The plainest model and method, with which pairs are tried.
PLAIN_MODEL <- "linear_known"
PLAIN_METHOD <- "smc:thermal"

# Kernels that PLAIN_METHOD takes: of these it is known which models refuse them.
kernel_needs_tried <- function(kernels)
  vapply(kernels, function(name) name != "" && !is_blind(name), NA)

#' Few cells that cover every combination of values of some columns: the greedy choice
#'
#' Each next cell is one that covers most combinations that none before covers, the first such in a
#' random order. Then cells all of whose combinations others cover are left out again.
#'
#' @param columns A list of names of columns.
covering <- function(cells, columns, seed) {
  order <- with_own_seed(seed, sample(nrow(cells)))
  keys <- vapply(columns, function(some)
    paste(toString(some), do.call(paste, unname(as.list(cells[some])))), character(nrow(cells)))
  keys <- matrix(match(keys, unique(c(keys))), nrow(cells))
  count <- integer(max(keys))
  chosen <- integer()
  repeat {
    fresh <- matrix(count[keys] == 0, nrow(keys))
    gain <- rowSums(fresh)
    if (max(gain) == 0) break
    best <- order[which.max(gain[order])]
    chosen <- c(chosen, best)
    count[keys[best, ]] <- count[keys[best, ]] + 1L
  }
  for (one in rev(chosen)) if (all(count[keys[one, ]] > 1)) {
    count[keys[one, ]] <- count[keys[one, ]] - 1L
    chosen <- setdiff(chosen, one)
  }
  sort(chosen)
}

CROSSED <- list(c("method", "kernel"), c("method", "model"), c("kernel", "mass"),
                c("method", "way", "law"), c("model", "way"))
CROSSED_FEW <- list(c("method", "kernel"), c("kernel", "mass"), c("method", "way"), c("way", "law"),
                    c("model", "way"))

#' The complete matrix: every cell, of each with a kernel one law, drawn at random
complete_crossings <- function(cells, seed) {
  order <- with_own_seed(seed, sample(nrow(cells)))
  same <- do.call(paste, unname(as.list(cells[c("method", "kernel", "mass", "model", "way")])))
  drawn <- order[!duplicated(same[order])]
  cells[sort(union(drawn, which(cells$kernel == ""))), ]
}

# One cell -----------------------------------------------------------------------------------------

#' The problem of a cell, and its rows in blocks, as evidence() would give them to C
begin_crossing <- function(cell, threads = 1) {
  variety <- sum(utf8ToInt(paste(unlist(cell), collapse = " ")))
  method <- crossing_method(cell, variety)
  model <- crossing_model(cell$model)
  data <- crossing_data(cell$model, cell$law, cell$way, is_blind(cell$kernel))
  words <- seed_words(test_seed(variety))
  spec <- list(call = quote(evidence()), model = model, method = method$method, words = words,
               seeded = TRUE, replicates = 1, threads = threads, keep = NULL)
  if (cell$way == "memory") {
    work <- work_in_memory(spec, data, TRUE)
    rows <- work$encoded$rows
    blocks <- list(list(rows, if (work$feeding == "open") "some" else work$feeding))
    if (work$feeding == "open") blocks <- c(blocks, list(list(rows[, 0, drop = FALSE], "last")))
  } else {
    spec$keep <- CROSSING_KEEP
    work <- work_on_source(spec, crossing_source(data, cell$way))
    close_feed(work$feed)
    rows <- if (takes_units(model)) encode_units(model, work$encoded, data, "data", 0)$rows
    else encode(model, data)$rows
    part <- if (cell$way == "keep") rep(1, ncol(rows))
    else (seq_len(ncol(rows)) - 1) %/% CROSSING_BLOCK
    blocks <- lapply(split(seq_len(ncol(rows)), part), function(which)
      list(rows[, which, drop = FALSE], "some"))
    blocks <- c(unname(blocks), list(list(rows[, 0, drop = FALSE], "last")))
  }
  list(problem = work$problem, blocks = blocks, method = method, model = model, data = data,
       variety = variety, words = words, streamed = cell$way != "memory", asks_r = asks_r(model))
}

#' A run by hand, one phase at a time, as in R/run-conductor.R
#'
#' @param saved Numbers of phases after which the run is saved, freed and restored into a new one.
#' @param threads Numbers of threads: of the first run, of the second ... and so on in turn.
#' @return A list: `phases`, their number, `passes`, how often the rows were asked for once more,
#'   and `result`. NULL if it takes more than `limit` seconds.
drive <- function(begun, threads = 1, saved = integer(), limit = Inf) {
  runs <- 0
  fresh <- function(restore) {
    runs <<- runs + 1
    problem <- begun$problem
    problem$threads <- threads[1 + (runs - 1) %% length(threads)]
    problem$restore <- restore
    .Call(ffi_run_new, problem)
  }
  give <- function(block) .Call(ffi_run_feed, run, begun$blocks[[block]][[1]],
                                begun$blocks[[block]][[2]])
  restore <- own_generator(begun$words, keep = FALSE) # models of R functions draw from it
  on.exit(restore())
  run <- fresh(FALSE)
  on.exit(.Call(ffi_run_free, run), add = TRUE)
  given <- if (begun$streamed) 0 else 1
  if (given) give(1)
  phases <- passes <- 0
  ends <- proc.time()[["elapsed"]] + limit
  repeat {
    answer <- .Call(ffi_run_advance, run, 0, Inf)
    phases <- phases + 1
    if (phases %in% saved) {
      state <- .Call(ffi_run_save, run)
      .Call(ffi_run_free, run)
      if (begun$asks_r) stats::runif(1) # the state has the generator with it
      run <- fresh(TRUE)
      .Call(ffi_run_restore, run, state)
    }
    if (answer == "done") break
    if (answer == "question") {
      given <- 0
      passes <- passes + 1
    }
    if (answer %in% c("rows", "question")) {
      given <- given + 1
      give(given)
    }
    if (proc.time()[["elapsed"]] > ends) return(NULL)
  }
  list(phases = phases, passes = passes, result = timeless(run_result(run)))
}

#' What must hold of a cell
#'
#' @return A list: how it ended (`status`), what is wrong (`finding`, "" if nothing), the error in
#'   which it was refused (`said`), further `passes` through the rows, seconds of processor time of
#'   evidence() and of everything, and the `call`.
cross <- function(cell, slow = crossing_patience()) {
  begun <- NULL
  started <- proc.time()
  status <- "ran"
  finding <- said <- character()
  note <- function(...) finding <<- c(finding, paste0(...))
  spent <- NA_real_
  passes <- 0
  part <- function(expr) withCallingHandlers(expr, warning = function(w) {
    if (!inherits(w, "logevidence_warning")) note("warning not ours: ", conditionMessage(w))
    invokeRestart("muffleWarning")
  })
  outcome <- tryCatch(part({
    begun <- begin_crossing(cell)
    limit <- 20 * slow
    from <- proc.time()
    fit <- crossing_fit(cell, begun, limit)
    spent <- sum((proc.time() - from)[c("user.self", "sys.self")])
    if (inherits(fit, "incomplete_evidence")) note("slow: evidence() over ", limit, " s")
    else {
      finite_or_said(fit, note)
      shown_or_said(fit, note)
      passes <- same_bits(begun, fit, note, limit)
      if (cell$way == "keep") same_in_race(cell, begun, fit, note, limit)
      if (cell$way == "memory") {
        same_in_replicates(cell, begun, fit, note, limit)
        same_in_doubled(cell, begun, fit, note, limit)
      }
    }
  }), error = identity)
  if (inherits(outcome, "error")) {
    said <- refusal_of(outcome)
    status <- "refused"
    if (startsWith(said, "NOT A SENTENCE")) {
      status <- "error"
      note(said)
    }
  }
  if (isTRUE(spent > slow)) note(sprintf("slow: evidence() took %.1f s", spent))
  list(status = status, finding = paste(finding, collapse = "; "),
       said = paste(said, collapse = " "), passes = passes, evidence = spent,
       cpu = sum((proc.time() - started)[c("user.self", "sys.self")]),
       call = if (is.null(begun)) "" else crossing_call(cell, begun))
}

crossing_fit <- function(cell, begun, limit, models = begun$model, ...) {
  args <- list(models, crossing_source(begun$data, cell$way), begun$method$method,
               seed = test_seed(begun$variety), threads = 2, progress = FALSE, time_limit = limit,
               ...)
  if (cell$way != "memory") args$keep <- CROSSING_KEEP
  do.call(evidence, args)
}

# The first of two replicates has the numbers of a single run, before a correction is added.
same_in_replicates <- function(cell, begun, fit, note, limit) {
  two <- tryCatch(crossing_fit(cell, begun, limit, replicates = 2), error = identity)
  if (inherits(two, "error")) {
    said <- refusal_of(two)
    if (startsWith(said, "NOT A SENTENCE")) note("two replicates: ", said)
  } else if (inherits(two, "incomplete_evidence")) note("slow: two replicates over ", limit, " s")
  else {
    finite_or_said(two, note)
    added <- if (is.null(fit$correction)) 0 else fit$correction[["log_evidence"]]
    first <- two$replicates$log_evidence[1] + added
    if (!identical(first, fit$log_evidence))
      note("the first replicate: ", first, ", not ", fit$log_evidence)
  }
}

# The same of runs that double the particles, which other methods refuse in a sentence.
same_in_doubled <- function(cell, begun, fit, note, limit) {
  target <- if (isTRUE(fit$se > 0 && is.finite(fit$se))) fit$se / 1.3 else 1
  doubled <- tryCatch(suppressMessages(crossing_fit(cell, begun, limit, target_se = target,
                                                    doubling = TRUE)), error = identity)
  if (inherits(doubled, "error")) {
    said <- refusal_of(doubled)
    if (startsWith(said, "NOT A SENTENCE")) note("doubling: ", said)
    # a further run may stop for a reason of its own, as the first one may
    refused <- grepl("`doubling`", said, fixed = TRUE) && !grepl("at least 2", said)
    if (refused == has_trait(begun$method$method, "any particles")) note("doubling: ", said)
    return(invisible())
  }
  if (inherits(doubled, "incomplete_evidence"))
    return(note("slow: runs that double over ", limit, " s"))
  if (!has_trait(begun$method$method, "any particles")) note("doubling is not refused")
  finite_or_said(doubled, note)
  runs <- doubled$replicates
  reached <- isTRUE(doubled$se <= target)
  if (!reached && !length(doubled$warnings)) note("target of doubling missed without a word")
  if (is.null(runs)) return(invisible())
  added <- if (is.null(fit$correction)) 0 else fit$correction[["log_evidence"]]
  if (!identical(runs$log_evidence[1] + added, fit$log_evidence))
    note("the first of runs that double: ", runs$log_evidence[1] + added, ", not ",
         fit$log_evidence)
  own <- runs$particles / runs$particles[1]
  if (!identical(own, c(1, 2^(seq_along(own)[-1] - 2))))
    note("particles do not double: ", paste(runs$particles, collapse = " "))
}

# The call to type, with the helpers of this file.
crossing_call <- function(cell, begun) {
  rows <- sprintf("crossing_data(\"%s\", \"%s\", \"%s\"%s)", cell$model, cell$law, cell$way,
                  if (is_blind(cell$kernel)) ", few = TRUE" else "")
  if (cell$way %in% c("once", "again"))
    rows <- sprintf("crossing_source(%s, \"%s\")", rows, cell$way)
  sprintf("evidence(%s, %s, %s, seed = %s%s)", deparse1(crossing_models()[[cell$model]]$call),
          rows, deparse1(begun$method$call), test_seed(begun$variety),
          if (cell$way == "memory") "" else ", keep = 1000")
}

# Methods without sampling error have none to state.
WITHOUT_SE <- c("laplace", "bic", "exact", "variational")

finite_or_said <- function(fit, note) {
  reasons <- c(fit$failed, fit$warnings)
  if (!is.finite(fit$log_evidence) && !length(reasons))
    note("log evidence ", fit$log_evidence, " without a word")
  if (!(is.finite(fit$se) || length(reasons) || fit$method$name %in% WITHOUT_SE))
    note("se ", fit$se, " without a word")
  if (any(!is.finite(fit$draws)) && !length(reasons)) note("draws not finite, without a word")
  if (any(!is.finite(fit$log_weights) & fit$log_weights != -Inf)) note("log weights not finite")
}

# What shows a fit and its priors works for each, or says why not.
shown_or_said <- function(fit, note) {
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  part <- function(what, expr) tryCatch(expr, error = function(e) {
    said <- refusal_of(e)
    if (startsWith(said, "NOT A SENTENCE")) note(what, ": ", said)
  })
  part("print()", utils::capture.output(print(fit)))
  part("the picture of priors", plot(fit, "prior"))
  part("prior_summary()", {
    priors <- as.data.frame(prior_summary(fit))
    utils::capture.output(print(prior_summary(fit)))
    if (anyNA(priors$prior) || !all(nzchar(priors$prior))) note("priors without words")
    if (!anyNA(priors$parameter) && anyDuplicated(priors$parameter)) note("a prior is there twice")
  })
}

# Most phases at which a run is saved and restored: at least three, and others while it is cheap.
SAVED_MOST <- 25

#' The fit had two threads, and blocks of another size: by hand with one thread the trace is the
#' same. A run that is saved and restored many times, with one thread or two in turn, is the whole
#' run.
same_bits <- function(begun, fit, note, limit) {
  whole <- drive(begun, limit = limit)
  if (is.null(whole)) {
    note("slow: the run over ", limit, " s")
    return(0)
  }
  compare <- function(other, what) {
    same <- identical(other$result, whole$result)
    if (!same) note(what, " differs: ", differing(other$result, whole$result))
    same
  }
  traced <- nrow(fit$trace) > 0 && is.null(second_problem(whole$result, begun$problem))
  trace <- fit$trace[names(fit$trace) != "seconds"]
  if (traced && !identical(trace, whole$result$trace))
    note("evidence() with 2 threads differs from the run by hand: ",
         differing(list(trace = trace), whole$result["trace"]))
  points <- with_own_seed(begun$variety,
                          sort(sample(whole$phases, min(SAVED_MOST, whole$phases))))
  restored <- drive(begun, 2:1, points, limit)
  if (identical(restored$result, whole$result)) return(whole$passes)
  compare(drive(begun, 2, limit = limit), "2 threads: the result")
  # which phase it is
  for (point in points)
    if (!compare(drive(begun, 1, point, limit),
                 paste("restored after phase", point, "of", whole$phases))) return(whole$passes)
  compare(restored, "restored many times")
  whole$passes
}

#' Two models on one pass are fitted as each alone is
same_in_race <- function(cell, begun, fit, note, limit) {
  race <- crossing_fit(cell, begun, limit, list(one = begun$model, two = begun$model))
  if (inherits(race, "incomplete_race")) return(note("slow: two models over ", limit, " s"))
  plain <- function(fit) {
    fit$trace$seconds <- NULL
    fit[c("log_evidence", "se", "draws", "log_weights", "trace")]
  }
  for (own in attr(race, "fits")) if (!identical(plain(own), plain(fit)))
    note("one of two models differs from the model alone: ", differing(plain(own), plain(fit)))
}

# Names of the parts that differ, of the trace by column.
differing <- function(one, two) {
  names <- union(names(one), names(two))
  names <- names[!vapply(names, function(name) identical(one[[name]], two[[name]]), NA)]
  columns <- function(name) {
    a <- one[[name]]
    b <- two[[name]]
    if (!is.data.frame(a) || !is.data.frame(b)) return(name)
    if (nrow(a) != nrow(b)) return(paste0(name, " (rows)"))
    own <- names(a)[!vapply(names(a), function(column) identical(a[[column]], b[[column]]), NA)]
    paste0(name, "$", own)
  }
  paste(unlist(lapply(names, columns)), collapse = ", ")
}

# Processes ----------------------------------------------------------------------------------------

#' cross() for each cell, in fresh processes, as many side by side as MC_CORES says
#' @noRd
run_crossings <- function(cells) {
  sides <- max(1, min(getOption("mc.cores", 1L), nrow(cells)))
  shares <- split(seq_len(nrow(cells)), seq_len(nrow(cells)) %% sides)
  until <- clock() + as.numeric(Sys.getenv("LOGEVIDENCE_CROSSINGS_SECONDS", "Inf"))
  done <- parallel::mclapply(shares, function(share) run_share(cells[share, ], until = until),
                             mc.cores = sides)
  for (one in done) if (!is.data.frame(one)) stop(one)
  done <- do.call(rbind, unname(done))
  if (nrow(done) < nrow(cells))
    cat("\nCrossings: ", nrow(done), " of ", nrow(cells), " cells in the time given.\n", sep = "")
  done
}

# Of the whole machine.
clock <- function() as.numeric(Sys.time())

# Seconds that a cell still has when the time given is over.
LAST_CELL <- 20

#' cross() for each cell, in fresh processes
#'
#' A process works through cells, one after the other, and writes down what it begins. If it dies,
#' the cell that it was at is tried alone, and another process goes on.
#'
#' @param seconds Most seconds of a process; then another one goes on.
#' @param until The time after which no cell is begun.
#' @return The cells that were run, with the columns that cross() returns.
run_share <- function(cells, seconds = 600, until = Inf) {
  folder <- tempfile("crossings")
  dir.create(folder)
  on.exit(unlink(folder, recursive = TRUE))
  results <- vector("list", nrow(cells))
  ended <- function() lengths(results) > 0
  while (!all(ended()) && clock() < until) {
    before <- sum(ended())
    left <- max(1, ceiling(until - clock() + LAST_CELL))
    child <- child_process(folder, cells, which(!ended()), min(seconds, left), until)
    results <- results_in(folder, results)
    at <- last_begun(folder)
    # a cell that was under way when the time was over is none of those that were run
    if ((!length(at) || child$late) && clock() > until) break
    if (!length(at)) stop("A process for cells could not be started: ", last_words(child$said))
    # of a process that was only too slow another one goes on, unless it has ended no cell
    if (ended()[at] || child$late && sum(ended()) > before) next
    alone <- child_process(folder, cells, at, seconds)
    results <- results_in(folder, results)
    if (!ended()[at]) results[[at]] <- died_in(cells[at, ], alone)
    else if (!nzchar(results[[at]]$finding)) results[[at]]$finding <-
      paste("the process died here, but not with this cell alone:", last_words(child$said))
  }
  cbind(cells[ended(), ], do.call(rbind, lapply(results[ended()], as.data.frame,
                                                stringsAsFactors = FALSE)))
}

results_in <- function(folder, results) {
  for (k in which(lengths(results) == 0)) {
    file <- file.path(folder, paste0(k, ".rds"))
    if (file.exists(file)) results[[k]] <- readRDS(file)
  }
  results
}

last_begun <- function(folder) {
  file <- file.path(folder, "begun")
  if (file.exists(file)) as.integer(utils::tail(readLines(file), 1))
}

died_in <- function(cell, child) {
  call <- tryCatch(crossing_call(cell, begin_crossing(cell)), error = function(e) "")
  how <- if (child$late) "the process did not end:" else "the process died:"
  list(status = "crash", finding = paste(how, last_words(child$said)), said = "", passes = 0,
       evidence = NA_real_, cpu = NA_real_, call = call)
}

# The line that says why a process died, of R's or of a sanitizer.
last_words <- function(said) {
  why <- grep("caught|ERROR: |runtime error|Abort|terminate|SUMMARY|\\*\\*\\*", said, value = TRUE)
  paste(utils::head(c(trimws(why), utils::tail(said, 1)), 2), collapse = " / ")
}

child_process <- function(folder, cells, which, seconds, until = Inf) {
  unlink(file.path(folder, "begun"))
  input <- file.path(folder, "cells.rds")
  saveRDS(list(cells = cells, which = which), input)
  fresh_process(folder, seconds, c(
    sprintf("input <- readRDS(%s)", deparse1(input)),
    sprintf("setwd(%s)", deparse1(folder)),
    "for (k in input$which) {",
    sprintf("  if (as.numeric(Sys.time()) > %s) break", format(until, digits = 15)),
    "  cat(k, '\\n', file = 'begun', append = TRUE)",
    "  saveRDS(place$cross(input$cells[k, ]), paste0(k, '.rds'))",
    "}"
  ))
}

#' Lines of R in a fresh process, with the functions of this file in `place`
#'
#' A fork of this process would have one thread only.
#' @return A list: what it `said`, and whether it took more than so many seconds (`late`).
fresh_process <- function(folder, seconds, lines) {
  script <- file.path(folder, "run.R")
  model <- file.path(tempdir(), paste0("normal_mean", .Platform$dynlib.ext))
  helpers <- testthat::test_path(paste0("helper-", c("machinery", "truth", "crossings"), ".R"))
  writeLines(c(
    sprintf(".libPaths(%s)", deparse1(.libPaths())),
    "library(logevidence)",
    "place <- new.env(parent = asNamespace('logevidence'))",
    sprintf("sys.source(%s, place)", vapply(normalizePath(helpers), deparse1, "")),
    if (file.exists(model)) sprintf("dyn.load(%s)", deparse1(model)),
    lines
  ), script)
  log <- file.path(folder, "log")
  status <- suppressWarnings(system2(file.path(R.home("bin"), "Rscript"), c("--vanilla", script),
                                     stdout = log, stderr = log, timeout = seconds,
                                     env = "OMP_WAIT_POLICY=passive"))
  list(said = readLines(log, warn = FALSE), late = identical(as.integer(status), 124L))
}

#' legal_pairs(), in a process of its own
pairs_in_process <- function() {
  folder <- tempfile("pairs")
  dir.create(folder)
  on.exit(unlink(folder, recursive = TRUE))
  file <- file.path(folder, "pairs.rds")
  child <- fresh_process(folder, 600, sprintf("saveRDS(place$legal_pairs(), %s)", deparse1(file)))
  if (!file.exists(file)) stop("The process died: ", last_words(child$said))
  readRDS(file)
}

# Seconds of processor time that evidence() may take in a cell on a slow machine, where it takes up
# to twice as long as on others; under sanitizers more.
crossing_patience <- function() 8 * as.numeric(Sys.getenv("LOGEVIDENCE_PATIENCE", "1"))

# Rows in shards on the workers of a cluster (rows_cluster()): what the workers do, and the runs
# that ask them.
#
# A worker knows from `shared`: `open`, the function of the user; `models`, each with its `problem`
# and what encode() has returned for the first rows; `words`, the seed; and `keep`. Of each shard
# that it has opened it keeps a state, an environment in `known_here$shards`.

# Rows of the sample in which modes are searched.
SHARD_SAMPLE <- 10000
# Rows whose sums are computed at once. The sums of a shard are added in this order, whether its
# rows are in memory or read again.
SHARD_ROWS <- 65536

# More groups than a shard has.
GROUPS_OF_SHARD <- 1e9

# The default: modes of all rows and weights of draws around them.
SHARD_METHOD <- function() laplace(importance = 4000)

# On workers ---------------------------------------------------------------------------------------

#' A function of this file for each of some shards
#'
#' @param task `f`, its name; `shards`; `tasks`, what each is asked; and `common`, what all are.
#' @noRd
do_for_shards <- function(task, shared) {
  f <- get(task$f, asNamespace(PACKAGE))
  values <- Map(function(shard, one)
    tryCatch(f(c(list(shard = shard), one, task$common), shared), error = function(e)
      fail("Shard ", shard, ": ", conditionMessage(e))), task$shards, task$tasks)
  if (task$f == "open_shard") without_large_keys(values) else values
}

shard_source <- function(open, shard) {
  source <- open(shard)
  if (is.data.frame(source) || is.matrix(source)) return(rows_in_memory(source))
  if (!is_source(source))
    fail("`open` must return a source of rows or a data frame, not ", show_value(source), ".")
  if (!source$rewinds) fail("`open` must return a source that can be read again.")
  source
}

head_of_shard <- function(task, shared)
  head_rows(shared$models[[1]], shard_source(shared$open, task$shard), shared$used, task$rows)

#' The first rows of a source as the user has them, or NULL if there are none
#' @noRd
head_rows <- function(model, source, used, n) {
  feed <- new_feed(model, source, 0)
  feed$used <- used
  begin_reading(feed)
  on.exit(close_feed(feed))
  check_columns(feed$reading, used)
  block <- gather(feed, n)
  if (is.null(block)) return(NULL)
  if (is_failure(block)) stop(block)
  head <- block_data(block)
  block_part(head, seq_len(min(block_rows(head), n)))
}

#' Read a shard for the first time: its size, fingerprints and sample
#' @noRd
open_shard <- function(task, shared) {
  state <- list2env(list(shard = task$shard), parent = emptyenv())
  state$source <- shard_source(shared$open, task$shard)
  sample <- new_sample(shared, task$shard)
  blocks <- lapply(shared$models, function(one) NULL)
  asked <- any(vapply(shared$models, function(one) is.null(one$tables), NA))
  held <- list()
  cells <- 0
  state$prints <- read_shard(state, shared, function(rows) {
    sample$add(rows)
    blocks <<- Map(with_block, shared$models, blocks, rows)
    cells <<- cells + sum(lengths(rows))
    held <<- if (asked && cells <= shared$keep) c(held, list(workers_of(shared, rows)))
  })
  if (cells <= shared$keep) state$held <- held
  # the rows of a data frame are not kept beside those that are held, nor if there are too many
  if (!is.null(state$held) || inherits(state$source, "rows_in_memory")) state$source <- NULL
  known_here$shards[[as.character(task$shard)]] <- state
  c(state$prints, sample$drawn(), list(blocks = blocks))
}

# Rows that are added to a block one after another, and numbers that the blocks of a portion have:
# rounding errors grow with the number of rows of a block, not with that of joined blocks.
BLOCK_ROWS <- 64
BLOCK_NUMBERS <- 1e6

#' The block of a model in closed form with further rows; NULL for other models
#' @noRd
with_block <- function(one, block, rows) {
  if (is.null(one$tables)) return(NULL)
  size <- max(BLOCK_ROWS, ceiling(3 * length(rows) * nrow(rows) / BLOCK_NUMBERS))
  cells <- (seq_len(ncol(rows)) - 1) %/% size + 1
  own <- .Call(ffi_segment_add, one$problem$model_type, one$problem$model_args, one$tables, rows,
               cells, numeric(), max(cells))
  joined_blocks(one, cbind(block, joined_blocks(one, own)))
}

#' The blocks that are the columns of a matrix, joined in pairs
#' @noRd
joined_blocks <- function(one, blocks) {
  while (ncol(blocks) > 1) {
    pair <- ceiling(seq_len(ncol(blocks)) / 2)
    blocks <- .Call(ffi_segment_join, one$problem$model_type, one$problem$model_args, one$tables,
                    blocks, pair, max(pair))
  }
  blocks
}

#' The answers of a shard to questions
#'
#' @param task `shard`, `questions` (NULL for a run that asks nothing), `of`, the number of the
#'   model of each, and `known`, what open_shard() has said when the shard was first opened.
#' @noRd
answer_of_shard <- function(task, shared) {
  key <- as.character(task$shard)
  if (is.null(known_here$shards[[key]])) open_shard(task, shared)
  state <- known_here$shards[[key]]
  if (!identical(state$prints, task$known)) changed_shard()
  answers <- vector("list", length(task$questions))
  asked <- which(lengths(task$questions) > 0)
  add <- function(workers) for (i in asked) {
    sums <- workers[[task$of[i]]](task$questions[[i]])
    answers[[i]] <<- if (is.null(answers[[i]])) sums else answers[[i]] + sums
  }
  if (!is.null(state$held)) for (workers in state$held) add(workers)
  else {
    again <- read_shard(state, shared, function(rows) add(workers_of(shared, rows)))
    if (!identical(again, state$prints)) changed_shard()
  }
  answers
}

#' Constants of all rows of a shard, of each model (R/run-units.R), and the number of rows
#' @noRd
constants_of_shard <- function(task, shared) {
  state <- list(shard = task$shard, source = shard_source(shared$open, task$shard))
  found <- vector("list", length(shared$models))
  read <- read_shard(state, shared, function(rows) found <<- Map(function(one, old, own)
    joined_constants(old, constants_of_rows(one$model, own)), shared$models, found, rows))
  list(n = read$n, constants = found)
}

#' The groups of a shard: of each model what its contract calls a part, and the number of rows
#' @noRd
groups_of_shard <- function(task, shared) {
  parts <- lapply(shared$models, function(one) {
    encoded <- joined_source(one$model, shard_source(shared$open, task$shard), one$encoded)
    if (ncol(encoded$rows)) part_of(one$model, "groups")$part(encoded)
  })
  list(n = if (is.null(parts[[1]])) 0 else parts[[1]]$n, parts = parts)
}

#' The units of a shard whose groups are whole: their number and sizes, the levels of each factor,
#' and the number of rows
#' @noRd
units_of_shard <- function(task, shared)
  read_groups(shared$models[[1]], shard_source(shared$open, task$shard), shared$used)

changed_shard <- function()
  fail("the rows are not those of the first time: they must not change during a run.")

workers_of <- function(shared, rows) Map(function(one, rows)
  if (is.null(one$tables)) new_worker(one$problem, rows), shared$models, rows)

#' Read all rows of a shard once, for all models
#'
#' @param use A function of a list of matrices, with the same SHARD_ROWS rows for each model (or
#'   fewer at the end).
#' @return `n`, `id` and `print` of each model.
#' @noRd
read_shard <- function(state, shared, use) {
  portion <- min(vapply(shared$models, function(one) rows_of_portion(one$encoded), 0))
  source <- if (is.null(state$source)) shard_source(shared$open, state$shard) else state$source
  sources <- shared_sources(source, length(shared$models))
  feeds <- Map(function(one, source) {
    feed <- new_feed(one$model, source, 0)
    feed$encoded <- one$encoded
    feed$plain <- part_of(one$model, "plain")(one$model, one$encoded$design)
    feed$identified <- one$identified
    # groups of different shards have different random points
    feed$units <- (state$shard - 1) * GROUPS_OF_SHARD
    begin_reading(feed)
    check_columns(feed$reading, feed$used)
    feed
  }, shared$models, sources)
  on.exit(for (feed in feeds) close_feed(feed))
  waiting <- lapply(feeds, function(feed) list())
  held <- n <- 0
  give <- function(some) {
    rows <- lapply(waiting, function(blocks) do.call(cbind, blocks))
    use(lapply(rows, function(all) all[, seq_len(some), drop = FALSE]))
    waiting <<- lapply(rows, function(all) list(all[, -seq_len(some), drop = FALSE]))
    n <<- n + some
    held <<- held - some
  }
  repeat {
    blocks <- lapply(feeds, pull)
    if (all(vapply(blocks, `[[`, NA, "last"))) break
    sizes <- vapply(blocks, function(block) ncol(block$rows), 0L)
    if (any(sizes != sizes[1])) fail("The models of a list must use the same rows.")
    waiting <- Map(function(all, block) c(all, list(block$rows)), waiting, blocks)
    held <- held + sizes[1]
    while (held >= portion) give(portion)
  }
  if (held > 0) give(held)
  list(n = n, ids = lapply(feeds, `[[`, "id"), prints = lapply(feeds, `[[`, "id_of_pass"))
}

# The units of a portion of rows: a group is a unit of several rows.
rows_of_portion <- function(encoded)
  if (is.null(encoded$rows_of_a_unit)) SHARD_ROWS else ceiling(SHARD_ROWS / encoded$args$rows)

#' A uniform random sample: the rows with the smallest of random keys, which belong to the seed, the
#' shard and the row
#' @noRd
new_sample <- function(shared, shard) {
  words <- next_seed(shared$words, shard)
  keys <- numeric()
  rows <- lapply(shared$models, function(one) NULL)
  portion <- 0
  list(
    # rows come in portions of SHARD_ROWS
    add = function(more) {
      n <- ncol(more[[1]])
      portion <<- portion + 1
      fresh <- .Call(ffi_uniforms, words, portion, 0, as.double(SHARD_ROWS), TRUE)[seq_len(n)]
      few <- order(fresh)[seq_len(min(n, SHARD_SAMPLE))]
      keys <<- c(keys, fresh[few])
      rows <<- Map(function(old, new) cbind(old, new[, few, drop = FALSE]), rows, more)
      keep <- order(keys)[seq_len(min(length(keys), SHARD_SAMPLE))]
      keys <<- keys[keep]
      rows <<- lapply(rows, function(all) all[, keep, drop = FALSE])
    },
    drawn = function() list(keys = keys, rows = rows)
  )
}

# The caller, here and in R/call-shards.R ----------------------------------------------------------

#' Is a value what these functions return for one shard, asked so, of this number of models?
#' @noRd
SHARD_ANSWERS <- list(
  head_of_shard = function(value, asked, models)
    is.null(value) || is.data.frame(value) || is.matrix(value) || is.atomic(value) ||
      is.list(value) && !is.null(names(value)),
  open_shard = function(value, asked, models) {
    as_said <- c("n", "ids", "prints", "keys", "rows", "blocks")
    if (!is.list(value) || !identical(names(value), as_said)) return(FALSE)
    prints <- c(value$ids, value$prints)
    is_one_number(value$n) && isTRUE(value$n >= 0 && value$n == floor(value$n)) &&
      all(lengths(value[c("ids", "prints", "rows", "blocks")]) == models) &&
      all(vapply(value$blocks, function(block)
        is.null(block) || is.matrix(block) && is.double(block), NA)) &&
      all(vapply(prints, function(print) if (value$n == 0) is.null(print)
                 else is_text(print) && grepl("^[0-9]+-[0-9a-f]{16}$", print), NA)) &&
      is.double(value$keys) && !anyNA(value$keys) &&
      length(value$keys) <= min(value$n, SHARD_SAMPLE) &&
      all(vapply(value$rows, function(rows) if (value$n == 0) is.null(rows)
                 else is.matrix(rows) && is.double(rows) && ncol(rows) == length(value$keys), NA))
  },
  groups_of_shard = function(value, asked, models)
    is.list(value) && identical(names(value), c("n", "parts")) && is_one_number(value$n) &&
      is.list(value$parts) && length(value$parts) == models &&
      all(vapply(value$parts, function(part) if (value$n == 0) is.null(part)
                 else is_part_of_groups(part, value$n), NA)),
  constants_of_shard = function(value, asked, models)
    is.list(value) && identical(names(value), c("n", "constants")) && is_one_number(value$n) &&
      length(value$constants) == models &&
      all(vapply(value$constants, are_constants, NA, value$n)),
  units_of_shard = function(value, asked, models)
    is.list(value) && identical(names(value), c("counted", "levels", "n")) &&
      is_one_number(value$n) && (if (value$n == 0) is.null(value$counted)
      else are_counted(value$counted, value$levels)),
  answer_of_shard = function(value, asked, models)
    is.list(value) && length(value) == length(asked$questions) &&
      all(mapply(is_sum_of_shard, value, asked$questions, MoreArgs = list(asked$known$n)))
)

#' Are these sums over the groups of `n` rows?
#' @noRd
is_part_of_groups <- function(part, n) {
  inherits(part, "part_of_groups") && is.list(part) &&
    identical(names(part), names(formals(part_of_groups))) &&
    is.matrix(part$sums) && is.double(part$sums) && is.null(part$columns) && is.null(part$codes) &&
    is.list(part$levels) && length(part$levels) >= 1 &&
    all(vapply(part$levels, function(levels) is.character(levels) && !anyDuplicated(levels), NA)) &&
    (if (length(part$levels) == 1) length(part$levels[[1]]) == ncol(part$sums)
     else are_places(part)) &&
    identical(as.double(part$n), as.double(n)) && sum(part$sums[1, ]) == n &&
    is_text(part$data_id) && is.double(part$size)
}

# Are these constants of the columns of `n` rows?
are_constants <- function(constants, n)
  if (n == 0) is.null(constants) else
    is.matrix(constants) && is.double(constants) && !is.null(colnames(constants)) &&
      identical(rownames(constants), c("mean", "sd", "kind", "exp", "n")) &&
      all(constants["kind", ] %in% 0:2) && all(constants["n", ] == n)

#' Does each unit of a part have its levels, each at a place of its own?
#' @noRd
are_places <- function(part) {
  factors <- seq_along(part$levels)
  is.list(part$places) && identical(names(part$places), names(part$levels)) &&
    nrow(part$sums) > length(factors) &&
    all(vapply(factors, function(f) {
      place <- part$places[[f]]
      is.list(place) && is.numeric(place$unit) && is.numeric(place$position) &&
        length(place$unit) == length(part$levels[[f]]) &&
        length(place$position) == length(place$unit) &&
        identical(sort(paste(place$unit, place$position)), sort(paste(
          rep(seq_len(ncol(part$sums)), part$sums[1 + f, ]), sequence(part$sums[1 + f, ]))))
    }, NA))
}

#' Do these numbers of units, and their levels, belong together?
#' @noRd
are_counted <- function(counted, levels)
  is.list(counted) && identical(names(counted), c("rows", "levels", "groups", "units")) &&
    all(vapply(counted, function(x) is.numeric(x) && !anyNA(x) && all(x >= 1), NA)) &&
    lengths(counted)[["rows"]] == 1 && lengths(counted)[["units"]] == 1 &&
    is.list(levels) && length(levels) >= 1 && setequal(names(levels), names(counted$groups)) &&
    identical(names(counted$groups), names(counted$levels)) &&
    all(vapply(levels, is.character, NA)) &&
    all(lengths(levels) == counted$groups[names(levels)])

#' Is this the answer of `n` rows to a question?
#' @noRd
is_sum_of_shard <- function(answer, question, n) {
  if (is.null(question) || n == 0) return(is.null(answer))
  d <- nrow(question$points)
  size <- 1 + switch(question$what, value = 0, gradient = d, curvature = d + d^2)
  is.double(answer) && is.matrix(answer) && nrow(answer) == size &&
    ncol(answer) == ncol(question$points)
}

#' What encode() would return of all rows, with a sample of them
#'
#' @param bound From model_elsewhere().
#' @param groups NULL, or of groups what units_of_shard() has said of each shard.
#' @noRd
encoded_elsewhere <- function(bound, n, sample, id, groups = NULL) {
  encoded <- bound$encoded
  encoded$n <- count_as_integer(n)
  encoded$sampled <- TRUE
  encoded$rows <- sample
  encoded$data_id <- id
  if (is.null(groups)) return(encoded)
  places <- lapply(groups, function(one) lapply(one$levels, function(levels)
    list(levels = levels)))
  part_of(bound$model, "groups")$whole(encoded, places, sum(vapply(groups, `[[`, 0, "n")), FALSE)
}

joined_heads <- function(heads) {
  heads <- heads[lengths(heads) > 0]
  if (!length(heads)) fail("`data` must have at least one row, not 0.")
  heads <- lapply(heads, as_frame)
  columns <- lapply(stats::setNames(nm = names(heads[[1]])), function(name) {
    parts <- lapply(heads, `[[`, name)
    # levels of all shards, in the order of the first that has them
    if (all(vapply(parts, is.factor, NA))) {
      levels <- unique(unlist(lapply(parts, levels)))
      return(factor(unlist(lapply(parts, as.character)), levels))
    }
    do.call(c, parts)
  })
  list2DF(columns)
}

#' A model bound to the first rows, and its problem
#'
#' @param counted Of groups, from read_groups() of all shards.
#' @noRd
model_elsewhere <- function(model, method, head, words, threads, counted = NULL) {
  feed <- open_feed(model, rows_in_memory(head), SHARD_SAMPLE, counted)
  on.exit(close_feed(feed))
  encoded <- feed$encoded
  first <- pull(feed)$rows
  if (has_trait(method, "no prior") && is.null(encoded$design$units)) {
    seen <- utils::modifyList(encoded, list(rows = first))
    if (!is.null(part_of(model, "centred")(model, seen)))
      fail("`model` must have columns near zero for ", method$name, "() of rows elsewhere, but `",
           far_column(seen)$name, "` is more than ", count(FAR_FROM_ZERO), " standard deviations ",
           "away, where digits are lost: set `scale = TRUE`, or subtract about its mean.")
  }
  list(model = model, encoded = encoded, identified = feed$identified,
       problem = with_rows_elsewhere(new_problem(model, encoded, method, words, threads), 0),
       first = first)
}

#' What shards have said of their rows, without the rows that will not be in the sample of all
#'
#' @param described From open_shard(), NULL for shards that have not answered yet.
#' @noRd
without_large_keys <- function(described) {
  keys <- unlist(lapply(described, `[[`, "keys"))
  if (length(keys) <= SHARD_SAMPLE) return(described)
  most <- sort(keys, partial = SHARD_SAMPLE)[SHARD_SAMPLE]
  lapply(described, function(one) {
    stay <- one$keys <= most
    one$keys <- one$keys[stay]
    one$rows <- lapply(one$rows, function(rows) rows[, stay, drop = FALSE])
    one
  })
}

#' The rows with the smallest keys of all shards, in their order
#' @noRd
merged_sample <- function(described, m) {
  keys <- unlist(lapply(described, `[[`, "keys"))
  rows <- do.call(cbind, lapply(described, function(one) one$rows[[m]]))
  rows[, order(keys)[seq_len(min(length(keys), SHARD_SAMPLE))], drop = FALSE]
}

#' @param groups Whether rows may come in whole groups.
#' @noRd
check_for_questions <- function(model, method, what, groups = FALSE) {
  if (is_latent(model) || asks_r(model) || needs_all(model) && !(groups && takes_units(model)))
    fail(what, " is not for a ", model$name, "()",
         if (needs_all(model)) " with group-level terms", ", which needs all rows together.")
  if (is_improper(model)) fail(what, " needs a model with a proper prior.")
  if (is_stepped(model)) fail(what, " needs gradients, and ", no_gradients(model), ".")
  if (is_lagged(model)) fail(what, " is not for models with lags(): its rows have no order.")
  if (!has_trait(method, "asks") && !has_trait(method, "joins"))
    fail("`method` must be laplace(), bic() or exact() for ", what, ", not ", method$name, "().")
}

# Exact evidences of blocks ------------------------------------------------------------------------

#' A bound model with what its blocks share, for exact(): each worker gives its rows as a block
#' (le_partition_ops), a few numbers on which alone the evidence depends
#'
#' @param bound From model_elsewhere().
#' @noRd
with_tables <- function(bound) {
  problem <- bound$problem
  bound$tables <- .Call(ffi_segment_tables, problem$model_type, problem$model_args, bound$first)
  if (is.null(bound$tables))
    fail("exact() on rows elsewhere needs a model whose evidence has a closed form, such as ",
         "linear_regression() with normal priors; for this ", bound$model$name,
         "() there are laplace() and bic().")
  problem$total <- ncol(bound$first)
  # which kind of result exact() has, from a few rows
  bound$like <- conduct(problem, bound$first)
  bound
}

#' What a run of exact() on all rows reports
#'
#' @param block Of all rows.
#' @noRd
exact_of_rows <- function(bound, block, n, words) {
  type <- bound$problem$model_type
  args <- bound$problem$model_args
  value <- .Call(ffi_segments, type, args, bound$tables, block, c(0, n), 0)
  if (is.nan(value))
    fail("The rows have no finite exact evidence: values may be too large, or covariates equal.")
  draws <- bound$problem$settings$draws
  if (is.null(draws)) draws <- EXACT_DRAWS
  points <- if (is.finite(value))
    .Call(ffi_segments_draw, type, args, bound$first, list(tables = bound$tables, sums = block),
          c(0, n), cbind(rep(0, draws), rep(1, draws)), words)
  nothing <- lapply(bound$like[c("laplace", "importance", "se", "ess", "pareto_k", "maximum",
                                 "log_peak", "ideal")], function(x) NaN)
  c(list(n = n, likelihoods = n, gradients = 0, seconds = 0, failed = 0, modes = 0, climbs = 0,
         once = 0, refused = 0, top_found = 0, exact = value, drawn = bound$like$drawn,
         trace = bound$like$trace, normal_draws = points), nothing)
}

# The draws of an exact fit, as many as exact() makes from rows in memory.
EXACT_DRAWS <- 1000

# States of runs with altered bytes. R reads what surrounds them; the states themselves are read by
# C (src/bridge/state.c), which must refuse them all, because their checksum is no longer theirs.
#
# Forged states get a right checksum, which no damage of a file gives. C checks their
# counts, indices and phases. Other numbers may be anything, so that a run may take very long. They
# are tried only if asked for (KIND=forged).

MULTIPLIER <- c(0x7c15, 0x7f4a, 0x79b9, 0x9e37) # 16 bits each, the lowest first

# A number of 64 bits as four of 16, the lowest first.
multiply_words <- function(a, b) {
  out <- numeric(4)
  for (i in 1:4) for (j in seq_len(5 - i)) {
    at <- i + j - 1
    product <- a[i] * b[j] + out[at]
    out[at] <- product %% 65536
    over <- product %/% 65536
    while (over > 0 && at < 4) {
      at <- at + 1
      over <- over + out[at]
      out[at] <- over %% 65536
      over <- over %/% 65536
    }
  }
  out
}

xor_words <- function(a, b) as.numeric(bitwXor(a, b))

shift_29 <- function(a) {
  # 29 = 16 + 13
  moved <- c(a[-1], 0)
  (moved %/% 2^13 + c(moved[-1], 0) * 2^3) %% 65536
}

#' le_checksum() of src/base/archive.c
checksum <- function(bytes) {
  bytes <- c(bytes, raw(-length(bytes) %% 8))
  words <- matrix(readBin(bytes, "integer", length(bytes) / 2, 2, signed = FALSE), 4)
  sum <- c(0x2325, 0x8422, 0x9ce4, 0xcbf2) # 14695981039346656037
  for (k in seq_len(ncol(words))) {
    sum <- multiply_words(xor_words(sum, words[, k]), MULTIPLIER)
    sum <- xor_words(sum, shift_29(sum))
  }
  writeBin(as.integer(ifelse(sum > 32767, sum - 65536, sum)), raw(), 2)
}

ODD_WORDS <- list(raw(8), as.raw(rep(255, 8)), as.raw(c(0, 0, 0, 0, 0, 0, 0xf0, 0x7f)),
                  as.raw(c(0, 0, 0, 0, 0, 0, 0xf8, 0x7f)), as.raw(c(0, 0, 0, 0, 0, 0, 0, 0x80)),
                  as.raw(c(1, rep(0, 7))), as.raw(c(0, 0, 0, 0, 1, 0, 0, 0)),
                  as.raw(c(255, 255, 255, 127, 0, 0, 0, 0)))

alter_state <- function(state) {
  n <- length(state)
  for (k in seq_len(sample.int(3, 1))) {
    at <- sample.int(n, 1)
    word <- 8 * sample.int(max(1, n %/% 8 - 1), 1) + 1:8
    state <- switch(sample.int(7, 1),
      replace(state, at, xor(state[at], as.raw(2^sample(0:7, 1)))),
      replace(state, at, as.raw(sample(0:255, 1))),
      replace(state, word, pick(ODD_WORDS)),
      replace(state, word, pick(ODD_WORDS)),
      utils::head(state, at),
      c(utils::head(state, at), state[word], utils::tail(state, -at)),
      c(utils::head(state, at), utils::tail(state, -at - 8)))
    n <- length(state)
    if (n < 16) break
  }
  state
}

# Each element that is a state, as a path of numbers.
state_paths <- function(x, without = "source", path = integer()) {
  if (is.raw(x) && length(x) > 100) return(list(path))
  if (!is.list(x)) return(list())
  # the source of the rows, in bytes, is read by R
  own <- setdiff(seq_along(x), which(names(x) %in% without))
  unlist(lapply(own, function(i) state_paths(.subset2(x, i), without, c(path, i))), FALSE)
}

# The states that update() or resume() will read. The open one of a run that has ended is for
# update() only.
paths_read <- function(run)
  state_paths(unclass(run), c("source", if (inherits(run, "incomplete_evidence")) "open"))

#' The same object with altered states
#'
#' @param mend Whether the states get right checksums.
altered_states <- function(object, paths, mend) {
  for (path in paths) {
    old <- object[[path]]
    new <- alter_state(old)
    if (mend && length(new) > 16) {
      body <- utils::head(new, -8)
      new <- c(body, checksum(body))
    }
    object[[path]] <- new
  }
  object
}

# Runs that were stopped at their first slice, and fits to which rows can be added.
stopped_runs <- local({
  known <- NULL
  function() {
    if (!is.null(known)) return(known)
    objects <- standard_objects()
    rows <- objects$rows
    line <- linear_regression(y ~ x, sigma = 1, prior_sd = 1)
    user <- custom_model("a", function(theta, data) sum(stats::dnorm(data$y, theta, log = TRUE)),
                         function(theta) stats::dnorm(theta, log = TRUE),
                         function(n) stats::rnorm(n))
    calls <- list(
      list(line, rows, sgais(particles = 10, steps = 5)),
      list(line, rows, sgais(particles = 10, steps = 5, order = "given")),
      list(line, rows, sgais(particles = 10, preset = "paper")),
      list(line, rows, nested(400)), list(line, rows, method_smc(particles = 2000)),
      list(line, rows, ais(200, linear(200))), list(line, rows, bridge(200, 1000)),
      list(line, rows, hybrid(4, 400)), list(line, rows, online_nested(10, steps = 2, chunk = 2)),
      list(line, rows, method_laplace(importance = 50)), list(line, rows, method_exact()),
      list(line, rows, power_posterior(run = smc(particles = 2000))),
      list(regression(y ~ x, student()), rows, sgais(particles = 10, steps = 3)),
      list(density(~ dnorm(y, m, 1, log = TRUE), m = ~ 1), rows, method_smc(particles = 2000)),
      list(gaussian_mixture(~ x + y, components = 2), rows, sgais(particles = 10, steps = 2)),
      list(gaussian_mixture(~ x + y, components = 2), rows, variational(50, draws = 20)),
      list(clustering(~ x + y, components = 2), rows, method_smc("data", 500)),
      list(clustering(~ x + y, components = 2), rows, chib(draws = 5000)),
      list(gaussian_mixture(~ x + y, components = 2), rows, partitions(chains = 4, work = 1e7)),
      list(low_rank(~ x + y, rank = 1), rows, ais(50, linear(200))),
      list(user, rows, method_smc(particles = 300, kernel = rwm())),
      list(line, rows_function(blocks_of(rows)), sgais(particles = 10, steps = 2), keep = 1000))
    stopped <- lapply(calls, function(call)
      do.call(evidence, c(call, list(seed = 1, progress = FALSE, time_limit = 1e-9)), quote = TRUE))
    open <- lapply(calls[c(1, 9, 13)], function(call)
      do.call(evidence, c(call, list(seed = 1, progress = FALSE, keep_state = TRUE)), quote = TRUE))
    known <<- Filter(function(run) length(paths_read(run)) > 0, c(stopped, open))
    known
  }
})

blocks_of <- function(rows) {
  at <- 0
  function(reset) {
    if (reset) at <<- 0
    else if (at < nrow(rows)) {
      at <<- at + 4
      rows[at - 3:0, ]
    }
  }
}

#' @param mend As in altered_states().
archive_cases <- function(mend) list(
  lacks = function() NULL,
  prepare = function() in_silence(suppressWarnings(stopped_runs())),
  make = function() {
    run <- pick(stopped_runs())
    whole <- class(run)
    paths <- some_of(paths_read(run), 1)
    run <- structure(altered_states(unclass(run), paths, mend), class = whole)
    rows <- standard_objects()$rows
    call <- if (inherits(run, "evidence") && !inherits(run, "incomplete_evidence"))
      quote(update(run, rows, progress = FALSE, time_limit = 5))
    else if (chance(0.5)) quote(resume(run, progress = FALSE, time_limit = 5))
    else quote(resume(run, progress = FALSE, time_limit = 1e-9))
    list(objects = list(run = run, rows = rows), call = call)
  })

ARCHIVE_CASES <- archive_cases(FALSE)
FORGED_CASES <- archive_cases(TRUE)

# Random choices: numbers, columns, data frames and names, most of them ordinary, some of them odd.

chance <- function(p) stats::runif(1) < p
pick <- function(from) from[[sample.int(length(from), 1)]]
some_of <- function(from, n) from[sample.int(length(from), min(n, length(from)))]

# Numbers at the ends of what a double and an integer can hold.
EXTREMES <- c(0, -0, 1, -1, 1e308, -1e308, 1e300, -1e300, 1e-300, 5e-324, -5e-324,
              .Machine$double.eps, .Machine$integer.max, -.Machine$integer.max, 2^31, 2^53, 1e15,
              1e8, -1e8, 1e154, 1e-154, 0.1, 0.5)
NOT_FINITE <- c(NA, NaN, Inf, -Inf)

few_rows <- function() pick(list(8, 8, 8, 8, 12, 12, 12, 12, 20, 20, 5, 3, 2, 1, 0))

# Columns -----------------------------------------------------------------------------------------

ORDINARY_COLUMNS <- list(
  normal = function(n) stats::rnorm(n),
  shifted = function(n) stats::rnorm(n, 100, 5),
  counts = function(n) stats::rpois(n, 3),
  binary = function(n) stats::rbinom(n, 1, 0.5),
  positive = function(n) stats::rexp(n),
  logical = function(n) stats::runif(n) < 0.5,
  text = function(n) sample(c("a", "b", "c"), n, TRUE),
  factor = function(n) factor(sample(c("a", "b", "c"), n, TRUE), c("a", "b", "c"))
)

ODD_COLUMNS <- list(
  extremes = function(n) sample(EXTREMES, n, TRUE),
  one_extreme = function(n) replace(stats::rnorm(n), seq_len(min(n, 1)), pick(EXTREMES)),
  huge = function(n) stats::rnorm(n) * 1e300,
  tiny = function(n) stats::rnorm(n) * 1e-300,
  wide = function(n) stats::rnorm(n) * 1e10,
  far = function(n) 1e10 + stats::rnorm(n),
  constant = function(n) rep(pick(EXTREMES), n),
  duplicates = function(n) rep(stats::rnorm(2), length.out = n),
  trend = function(n) as.double(seq_len(n)),
  missing = function(n) rep(NA_real_, n),
  missing_logical = function(n) rep(NA, n),
  missing_text = function(n) rep(NA_character_, n),
  integers = function(n) sample(c(-.Machine$integer.max, .Machine$integer.max, 0L, NA), n, TRUE),
  all_true = function(n) rep(TRUE, n),
  texts = function(n) paste0("level", seq_len(n)),
  odd_text = function(n) sample(c("", " ", NA, "NA", "\u00e9", "1", "a b", "`", "\n"), n, TRUE),
  bytes_text = function(n) rep("\xff\xfe", n),
  empty_levels = function(n) factor(sample(c("a", "b"), n, TRUE), c("z", "a", "b", "y")),
  one_level = function(n) factor(rep("a", n)),
  no_level = function(n) factor(rep(NA, n)),
  level_missing = function(n) addNA(factor(sample(c("a", NA), n, TRUE))),
  ordered = function(n) factor(sample(c("lo", "mid", "hi"), n, TRUE), c("lo", "mid", "hi"),
                               ordered = TRUE),
  broken_factor = function(n) structure(rep(5L, n), levels = c("a", "b"), class = "factor"),
  date = function(n) as.Date("2020-01-01") + seq_len(n),
  time = function(n) as.POSIXct("2020-01-01", "UTC") + seq_len(n),
  time_list = function(n) as.POSIXlt(as.POSIXct("2020-01-01", "UTC") + seq_len(n)),
  difference = function(n) as.difftime(stats::rexp(n), units = "mins"),
  complex = function(n) complex(real = stats::rnorm(n), imaginary = 1),
  raw = function(n) as.raw(seq_len(n) %% 256),
  list = function(n) I(lapply(seq_len(n), function(i) i)),
  odd_list = function(n) I(lapply(seq_len(n), function(i) pick(list(NULL, 1:3, "a", sum)))),
  matrix = function(n) matrix(stats::rnorm(2 * n), n),
  named_matrix = function(n) matrix(stats::rnorm(2 * n), n, 2, dimnames = list(NULL, c("u", "v"))),
  thin_matrix = function(n) matrix(stats::rnorm(n), n),
  no_matrix = function(n) matrix(0, n, 0),
  text_matrix = function(n) matrix("a", n, 2),
  cube = function(n) array(stats::rnorm(4 * n), c(n, 2, 2)),
  frame = function(n) data.frame(u = stats::rnorm(n), v = rep(1, n)),
  one_dimension = function(n) array(stats::rnorm(n), n),
  named = function(n) stats::setNames(stats::rnorm(n), rep("n", n)),
  asis = function(n) I(stats::rnorm(n)),
  wide_integer = function(n) structure(stats::rnorm(n), class = "integer64"),
  classed = function(n) structure(stats::rnorm(n), class = "unknown"),
  series = function(n) if (n) stats::ts(stats::rnorm(n)) else numeric()
)

a_column <- function(n, oddness) {
  x <- if (chance(oddness)) pick(ODD_COLUMNS)(n) else pick(ORDINARY_COLUMNS)(n)
  plain <- is.atomic(x) && !is.raw(x) && is.null(dim(x))
  if (plain && n > 0 && chance(oddness / 2))
    x[sample.int(n, 1)] <- if (is.double(x)) pick(NOT_FINITE) else NA
  x
}

ODD_NAMES <- c("a b", "if", "1x", "", "y", "x", "\u00e9", "(Intercept)", ".", "sigma", "T", "x:z",
               NA, "..1", "...", "offset", "log(x)", "_", "`", "weights", "lp__", "theta", "row",
               strrep("n", 300))

# A column for each kind of response (y, n, b, p and k), the covariates x, z and g, and perhaps
# further ones with odd names.
a_frame <- function(oddness, n = few_rows()) {
  response <- function(kind)
    if (chance(oddness)) a_column(n, oddness) else ORDINARY_COLUMNS[[kind]](n)
  columns <- list(y = response("normal"), n = response("counts"), b = response("binary"),
                  p = response("positive"), k = response("factor"), x = response("normal"),
                  z = a_column(n, oddness), g = response("factor"))
  if (chance(oddness)) {
    columns$w <- a_column(n, oddness)
    names(columns)[9] <- pick(ODD_NAMES)
  }
  # without the checks of data.frame()
  frame <- structure(columns, class = "data.frame", row.names = .set_row_names(n))
  if (chance(oddness / 3)) class(frame) <- c("tbl_df", "tbl", "data.frame")
  frame
}

# Data that may not be a data frame at all.
some_data <- function(oddness) {
  if (!chance(oddness / 2)) return(a_frame(oddness))
  n <- few_rows()
  pick(list(
    function() stats::rnorm(n), function() matrix(stats::rnorm(2 * n), n),
    function() matrix(stats::rnorm(2 * n), n, 2, dimnames = list(NULL, c("y", "x"))),
    function() list(x = matrix(stats::rnorm(2 * n), n), y = a_column(n, oddness)),
    function() list(x = a_column(n, oddness), y = a_column(n, oddness)),
    function() list(y = 1, x = NULL), function() NULL, function() a_column(n, 1),
    function() list(), function() "data", function() as.list(a_frame(0)),
    function() environment(), function() sum, function() data.frame()
  ))()
}

# Values of arguments -----------------------------------------------------------------------------

ODD_VALUES <- list(
  NULL, NA, NA_character_, NA_integer_, NaN, Inf, -Inf, TRUE, FALSE, 0, -1, 1, 2, 0.5, 1.5, 1e-10,
  1e6, 1e12, 1e300, -1e300, 5e-324, 2147483647L, 2^31, 2^53, "a", "", "1", character(), numeric(),
  integer(), logical(), list(), list(1), list(a = 1), c(1, 2), c(a = 1, b = 2), c(1, NA), c(-1, 1),
  1:10, c("a", "b"), quote(x), quote(x + y), y ~ x, ~ 1, y ~ 0, factor("a"), as.Date("2020-01-01"),
  complex(real = 1, imaginary = 1), raw(1), matrix(1, 2, 2), diag(2), array(1, c(1, 1, 1)),
  data.frame(), data.frame(a = 1), function() 1, function(x) x, function(...) stop("told to"), sum,
  globalenv(), structure(1, class = "unknown"), structure(list(), class = "evidence"),
  structure(list(), class = "evidence_model"), structure(list(), class = "evidence_method"),
  structure(list(), class = "evidence_kernel"), structure(list(), class = "evidence_prior"),
  structure(1, class = "integer64"), structure(list(), class = "evidence_schedule"), "\xff",
  expression(a), TRUE + 0L, c(TRUE, NA), seq(0, 1, 0.25), strrep("long", 100), -0.5, 1 + 1e-12,
  0.999999, 3L, 1e5, 100
)

# As an argument of a call: names and calls are given as such, and not evaluated.
as_given <- function(value) if (is.name(value) || is.call(value)) call("quote", value) else value

an_odd_value <- function(default = NULL) {
  near <- if (is.numeric(default) && length(default) == 1 && is.finite(default))
    list(-default, default / 2, default * 2, default + 0.5, default * 1e3, as.character(default),
         rep(default, 2), c(named = default))
  else if (is.character(default))
    list(default, toupper(default), rev(default), substr(default, 1, 1))
  else if (is.logical(default)) list(!default, as.integer(default), rep(default, 2))
  pick(if (length(near) && chance(0.4)) near else ODD_VALUES)
}

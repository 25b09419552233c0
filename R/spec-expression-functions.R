# The functions of R that density() understands: how each becomes operations (R/spec-expressions.R).

# Functions of nodes, with the argument names of R. `g` is the graph.
num <- function(g, x) constant_node(g, x)

# A reader keeps the graph, the nodes of known names, the columns of the data that the expression
# reads, the numbers it found for other names, and rules for the data that densities have: lists of
# `expression`, `rule`, `ok`, a function of its values, and `when`, the conditions under which the
# rule holds.

#' Turn an expression into a node
#' @noRd
read_expression <- function(reader, e) {
  if (is.numeric(e) || is.logical(e)) {
    if (length(e) != 1 || is.na(e)) refuse_part(e, "has a value that is not one number")
    return(num(reader$graph, as.double(e)))
  }
  if (is.name(e)) return(read_name(reader, as.character(e)))
  if (!is.call(e) || !is_function_name(e[[1]])) refuse_part(e, "is not understood")
  name <- function_name(e[[1]])
  if (name == "(") return(read_expression(reader, e[[2]]))
  if (name %in% names(SEVERAL_ROWS))
    refuse_part(e, "is a function of several rows: write the log density of one row")
  rule <- UNDERSTOOD[[name]]
  if (is.null(rule))
    refuse_part(e, paste0("has the function ", name, "(), which is not understood. Known are ",
                          paste(setdiff(names(UNDERSTOOD), c("{", "(")), collapse = ", ")))
  rule(reader, e)
}

is_function_name <- function(f) is.name(f) ||
  (is.call(f) && identical(f[[1]], quote(`::`)) && as.character(f[[2]]) %in% c("stats", "base"))
function_name <- function(f) if (is.name(f)) as.character(f) else as.character(f[[3]])

SEVERAL_ROWS <- list(sum = 1, mean = 1, prod = 1, length = 1, cumsum = 1, var = 1, sd = 1, max = 1,
                     min = 1, rowSums = 1, scale = 1)

refuse_part <- function(e, why) fail("`x` must be an expression of known functions: `",
                                     deparse1(e), "` ", why, ".")

read_name <- function(reader, name) {
  known <- reader$names[[name]]
  if (!is.null(known)) return(known)
  value <- if (name == "pi") pi else reader$constant(name)
  if (!is.null(value)) {
    reader$constants[[name]] <- value
    return(num(reader$graph, value))
  }
  reader$columns <- c(reader$columns, name)
  node <- input_node(reader$graph, paste0("column ", name), LEVEL[["data"]])
  reader$names[[name]] <- node
  node
}

#' The arguments of a call by name, as R matches them: in any order, and named in part
#'
#' @param names The names of a function's arguments, in its order.
#' @noRd
match_args <- function(e, names) {
  shape <- as.function(c(stats::setNames(rep(list(quote(expr = )), length(names)), names),
                         list(NULL)))
  tryCatch(as.list(match.call(shape, e))[-1], error = function(problem)
    refuse_part(e, paste0("has arguments that are not understood (", conditionMessage(problem),
                          ")")))
}

#' Arguments of a call as nodes; defaults are numbers, "needed", "none" or "refused"
#'
#' @param flags Arguments that are TRUE or FALSE, with their defaults; they are not read.
#' @noRd
read_args <- function(reader, e, defaults, flags = list()) {
  matched <- match_args(e, c(names(defaults), names(flags)))
  out <- list()
  for (name in names(defaults)) {
    if (!is.null(matched[[name]]) && identical(defaults[[name]], "refused"))
      refuse_part(e, paste0("has the argument `", name, "`, which is not understood"))
    if (!is.null(matched[[name]])) out[[name]] <- read_expression(reader, matched[[name]])
    else if (is.numeric(defaults[[name]])) out[[name]] <- num(reader$graph, defaults[[name]])
    else if (identical(defaults[[name]], "needed"))
      refuse_part(e, paste0("has no argument `", name, "`"))
  }
  for (name in names(flags)) {
    flag <- if (is.null(matched[[name]])) flags[[name]] else matched[[name]]
    if (identical(flag, quote(T))) flag <- TRUE
    if (identical(flag, quote(F))) flag <- FALSE
    if (!isTRUE(flag) && !isFALSE(flag))
      refuse_part(e, paste0("must have TRUE or FALSE as `", name, "`"))
    out[[name]] <- flag
  }
  out
}

# Arithmetic and functions of one argument ---------------------------------------------------------

operator <- function(two, one = NULL) function(reader, e) {
  args <- lapply(as.list(e)[-1], function(a) read_expression(reader, a))
  if (length(args) == 1 && !is.null(one)) return(one(reader$graph, args[[1]]))
  if (length(args) != 2) refuse_part(e, "must have two arguments")
  two(reader$graph, args[[1]], args[[2]])
}

# A function of some arguments that must all be given, by place or by name.
of_args <- function(names, value) function(reader, e) {
  args <- read_args(reader, e, stats::setNames(rep(list("needed"), length(names)), names))
  do.call(value, c(list(reader$graph), unname(args)))
}

of_one <- function(operation) of_args("x", function(g, x) make(g, operation, x))

# pmin() and pmax() of two or more arguments, whose names mean nothing.
of_many <- function(two) function(reader, e) {
  given <- as.list(e)[-1]
  if (length(given) < 2 || "na.rm" %in% names(given))
    refuse_part(e, "must have two arguments or more, without `na.rm`")
  Reduce(function(a, b) two(reader$graph, a, b),
         lapply(unname(given), function(a) read_expression(reader, a)))
}

binary <- function(operation) function(g, a, b) make(g, operation, a, b)
truth <- function(g, a) make(g, "sub", num(g, 1), make(g, "equal", a, num(g, 0)))

power <- function(g, a, b) {
  # with other exponents the base must be positive
  if (is_constant(g, b)) make(g, "pow", a, b)
  else make(g, "exp", make(g, "mul", b, make(g, "log", a)))
}

read_choice <- function(reader, e) {
  if (length(e) != 4) refuse_part(e, "must have three arguments")
  given <- match_args(e, c("test", "yes", "no"))
  test <- read_expression(reader, given$test)
  outside <- reader$when
  on.exit(reader$when <- outside)
  reader$when <- c(outside, list(given$test))
  yes <- read_expression(reader, given$yes)
  reader$when <- c(outside, list(call("!", given$test)))
  no <- read_expression(reader, given$no)
  made <- make(reader$graph, "select", test, yes, no)
  # R's ifelse() has the length of its test
  if (is_constant(reader$graph, test) && !is_constant(reader$graph, made))
    refuse_part(e, "has a test that is the same for all rows: write if and else outside `x`")
  made
}

read_log <- function(reader, e) {
  args <- read_args(reader, e, list(x = "needed", base = "none"))
  g <- reader$graph
  value <- make(g, "log", args$x)
  if (is.null(args$base)) value else make(g, "div", value, make(g, "log", args$base))
}

log_to <- function(base) function(reader, e) {
  make(reader$graph, "mul", of_one("log")(reader, e), num(reader$graph, 1 / log(base)))
}

log_beta <- function(g, a, b) {
  make(g, "sub", make(g, "add", make(g, "lgamma", a), make(g, "lgamma", b)),
       make(g, "lgamma", make(g, "add", a, b)))
}

log_choose <- function(g, n, k) {
  one <- num(g, 1)
  make(g, "sub", make(g, "sub", make(g, "lgamma", make(g, "add", n, one)),
                      make(g, "lgamma", make(g, "add", k, one))),
       make(g, "lgamma", make(g, "add", make(g, "sub", n, k), one)))
}

smaller <- function(g, a, b) make(g, "select", make(g, "less", a, b), a, b)
larger <- function(g, a, b) make(g, "select", make(g, "less", a, b), b, a)

# Probabilities of one side: from the logarithm of one tail, and of the other if it is known.
read_tail <- function(defaults, log_tails) function(reader, e) {
  args <- read_args(reader, e, defaults, list(lower.tail = TRUE, log.p = FALSE))
  g <- reader$graph
  tails <- do.call(log_tails, c(list(g), args[intersect(names(defaults), names(args))]))
  value <- if (args$lower.tail) tails$lower else tails$upper
  if (args$log.p) value else make(g, "exp", value)
}

# log(1 - exp(a)) for a < 0.
log_complement <- function(g, a) make(g, "log", make(g, "neg", make(g, "expm1", a)))

normal_tails <- function(g, q, mean, sd) {
  z <- make(g, "div", make(g, "sub", q, mean), sd)
  list(lower = make(g, "log_pnorm", z), upper = make(g, "log_pnorm", make(g, "neg", z)))
}

logistic_tails <- function(g, q, location, scale) {
  z <- make(g, "div", make(g, "sub", q, location), scale)
  list(lower = make(g, "neg", make(g, "softplus", make(g, "neg", z))),
       upper = make(g, "neg", make(g, "softplus", z)))
}

weibull_tails <- function(g, q, shape, scale) {
  upper <- make(g, "neg", make(g, "exp", make(g, "mul", shape,
                                              make(g, "sub", make(g, "log", q),
                                                   make(g, "log", scale)))))
  list(upper = upper, lower = log_complement(g, upper))
}

exponential_tails <- function(g, q, rate) {
  upper <- make(g, "neg", make(g, "mul", rate, q))
  list(upper = upper, lower = log_complement(g, upper))
}

# plogis(x) and pnorm(x) have operations of their own.
read_simple_tail <- function(operation, otherwise) function(reader, e) {
  if (length(e) != 2 || !is.null(names(e))) return(otherwise(reader, e))
  make(reader$graph, operation, read_expression(reader, e[[2]]))
}

# Densities ----------------------------------------------------------------------------------------

RULES <- list(
  count = list(rule = COUNT_RULE,
               ok = function(x) x >= 0 & x == round(x) & x <= MOST_COUNT),
  positive = list(rule = "positive numbers", ok = function(x) x > 0),
  non_negative = list(rule = "non-negative numbers", ok = function(x) x >= 0),
  proportion = list(rule = "numbers between 0 and 1", ok = function(x) x > 0 & x < 1)
)

#' A density of R, from the formula of its logarithm
#'
#' @param defaults As in `read_args()`; the first argument is the observation.
#' @param rule Which values the observation may have: a name of RULES, or NULL.
#' @noRd
read_density <- function(defaults, log_density, rule = NULL) function(reader, e) {
  args <- read_args(reader, e, defaults, list(log = FALSE))
  g <- reader$graph
  given <- args[intersect(names(defaults), names(args))]
  if (!is.null(rule)) {
    first <- match_args(e, c(names(defaults), "log"))[["x"]]
    require_data_rule(reader, as.call(list(e[[1]], first)), given[["x"]], RULES[[rule]])
  }
  value <- do.call(log_density, c(list(g), given))
  if (args$log) value else make(g, "exp", value)
}

# Observations with a restricted range must be functions of the data alone, so that they can be
# checked.
require_data_rule <- function(reader, e, node, rule) {
  force(node) # it may be made here
  level <- reader$graph$nodes[[node]]$level
  if (level > LEVEL["data"])
    refuse_part(e, "must have a first argument that depends on columns of the data only")
  reader$rules <- c(reader$rules, list(list(node = node, expression = e[[2]], rule = rule$rule,
                                            ok = rule$ok, when = reader$when,
                                            name = function_name(e[[1]]))))
}

log_dnorm <- function(g, x, mean, sd) {
  z <- make(g, "div", make(g, "sub", x, mean), sd)
  make(g, "sub", log_normal_density(g, z), make(g, "log", sd))
}

log_dt <- function(g, x, df) {
  half <- num(g, 0.5)
  more <- make(g, "mul", half, make(g, "add", df, num(g, 1)))
  # the third term is df-free only in the limit: log(df * pi) / 2
  constant <- make(g, "sub", make(g, "lgamma_ratio", make(g, "mul", half, df), half),
                   make(g, "mul", half, make(g, "add", make(g, "log", df), num(g, log(pi)))))
  make(g, "sub", constant,
       make(g, "mul", more, make(g, "log1p", make(g, "div", make(g, "mul", x, x), df))))
}

log_dpois <- function(g, x, lambda) {
  make(g, "sub", make(g, "sub", make(g, "mul", x, make(g, "log", lambda)), lambda),
       make(g, "lgamma", make(g, "add", x, num(g, 1))))
}

log_dbinom <- function(g, x, size, prob) {
  failures <- make(g, "sub", size, x)
  make(g, "add", log_choose(g, size, x),
       make(g, "add", make(g, "mul", x, make(g, "log", prob)),
            make(g, "mul", failures, make(g, "log1p", make(g, "neg", prob)))))
}

log_dnbinom <- function(g, x, size, prob = NULL, mu = NULL) {
  if (is.null(prob) == is.null(mu)) fail("`dnbinom()` must have one of `prob` and `mu`.")
  start <- make(g, "sub", make(g, "lgamma_ratio", size, x),
                make(g, "lgamma", make(g, "add", x, num(g, 1))))
  rest <- if (is.null(mu)) {
    make(g, "add", make(g, "mul", size, make(g, "log", prob)),
         make(g, "mul", x, make(g, "log1p", make(g, "neg", prob))))
  } else {
    ratio <- make(g, "sub", make(g, "log", mu), make(g, "log", size))
    make(g, "sub", make(g, "mul", x, ratio),
         make(g, "mul", make(g, "add", x, size), make(g, "softplus", ratio)))
  }
  make(g, "add", start, rest)
}

log_dgamma <- function(g, x, shape, rate = NULL, scale = NULL) {
  if (!is.null(rate) && !is.null(scale))
    fail("`dgamma()` must have at most one of `rate` and `scale`.")
  if (is.null(rate)) rate <- if (is.null(scale)) num(g, 1) else make(g, "div", num(g, 1), scale)
  power <- make(g, "mul", make(g, "sub", shape, num(g, 1)), make(g, "log", x))
  make(g, "sub", make(g, "sub", make(g, "add", make(g, "mul", shape, make(g, "log", rate)), power),
                      make(g, "mul", rate, x)), make(g, "lgamma", shape))
}

log_dweibull <- function(g, x, shape, scale) {
  ratio <- make(g, "sub", make(g, "log", x), make(g, "log", scale))
  power <- make(g, "mul", shape, ratio)
  make(g, "sub", make(g, "add", make(g, "sub", make(g, "log", shape), make(g, "log", x)), power),
       make(g, "exp", power))
}

log_dlogis <- function(g, x, location, scale) {
  z <- make(g, "div", make(g, "sub", x, location), scale)
  make(g, "sub", make(g, "neg", make(g, "add", z, make(g, "log", scale))),
       make(g, "mul", num(g, 2), make(g, "softplus", make(g, "neg", z))))
}

log_dcauchy <- function(g, x, location, scale) {
  z <- make(g, "div", make(g, "sub", x, location), scale)
  make(g, "neg", make(g, "add", make(g, "add", num(g, log(pi)), make(g, "log", scale)),
                      make(g, "log1p", make(g, "mul", z, z))))
}

log_dbeta <- function(g, x, shape1, shape2) {
  one <- num(g, 1)
  make(g, "sub", make(g, "add",
                      make(g, "mul", make(g, "sub", shape1, one), make(g, "log", x)),
                      make(g, "mul", make(g, "sub", shape2, one),
                           make(g, "log1p", make(g, "neg", x)))),
       log_beta(g, shape1, shape2))
}

# The size of a binomial, too, is checked.
read_dbinom <- function(reader, e) {
  args <- read_args(reader, e, list(x = "needed", size = "needed", prob = "needed"),
                    list(log = FALSE))
  g <- reader$graph
  given <- match_args(e, c("x", "size", "prob", "log"))
  require_data_rule(reader, as.call(list(e[[1]], given$x)), args$x, RULES$count)
  failures <- call("dbinom", call("-", given$size, given$x))
  require_data_rule(reader, failures, make(g, "sub", args$size, args$x), RULES$count)
  value <- log_dbinom(g, args$x, args$size, args$prob)
  if (args$log) value else make(g, "exp", value)
}


UNDERSTOOD <- list(
  `+` = operator(binary("add"), function(g, a) a),
  `-` = operator(binary("sub"), function(g, a) make(g, "neg", a)),
  `*` = operator(binary("mul")), `/` = operator(binary("div")), `^` = operator(power),
  `<` = operator(binary("less")), `<=` = operator(binary("at_most")),
  `>` = operator(function(g, a, b) make(g, "less", b, a)),
  `>=` = operator(function(g, a, b) make(g, "at_most", b, a)),
  `==` = operator(binary("equal")),
  `!=` = operator(function(g, a, b) make(g, "sub", num(g, 1), make(g, "equal", a, b))),
  `&` = operator(function(g, a, b) make(g, "mul", truth(g, a), truth(g, b))),
  `|` = operator(function(g, a, b) truth(g, make(g, "add", truth(g, a), truth(g, b)))),
  `!` = operator(NULL, function(g, a) make(g, "equal", a, num(g, 0))),
  exp = of_one("exp"), log = read_log, log2 = log_to(2), log10 = log_to(10),
  log1p = of_one("log1p"), expm1 = of_one("expm1"), sqrt = of_one("sqrt"), abs = of_one("abs"),
  sin = of_one("sin"), cos = of_one("cos"), tanh = of_one("tanh"), atan = of_one("atan"),
  lgamma = of_one("lgamma"), digamma = of_one("digamma"),
  lfactorial = of_args("x", function(g, x) make(g, "lgamma", make(g, "add", x, num(g, 1)))),
  lbeta = of_args(c("a", "b"), log_beta), lchoose = of_args(c("n", "k"), log_choose),
  pmin = of_many(smaller), pmax = of_many(larger), ifelse = read_choice,
  pnorm = read_simple_tail("pnorm", read_tail(list(q = "needed", mean = 0, sd = 1), normal_tails)),
  plogis = read_simple_tail("logistic", read_tail(list(q = "needed", location = 0, scale = 1),
                                                  logistic_tails)),
  pweibull = read_tail(list(q = "needed", shape = "needed", scale = 1), weibull_tails),
  pexp = read_tail(list(q = "needed", rate = 1), exponential_tails),
  dnorm = read_density(list(x = "needed", mean = 0, sd = 1), log_dnorm),
  dlnorm = read_density(list(x = "needed", meanlog = 0, sdlog = 1),
                        function(g, x, meanlog, sdlog) {
                          y <- make(g, "log", x)
                          make(g, "sub", log_dnorm(g, y, meanlog, sdlog), y)
                        }, "positive"),
  dt = read_density(list(x = "needed", df = "needed", ncp = "refused"), log_dt),
  dcauchy = read_density(list(x = "needed", location = 0, scale = 1), log_dcauchy),
  dlogis = read_density(list(x = "needed", location = 0, scale = 1), log_dlogis),
  dexp = read_density(list(x = "needed", rate = 1), function(g, x, rate)
    make(g, "sub", make(g, "log", rate), make(g, "mul", rate, x)), "non_negative"),
  dgamma = read_density(list(x = "needed", shape = "needed", rate = "none", scale = "none"),
                        log_dgamma, "positive"),
  dweibull = read_density(list(x = "needed", shape = "needed", scale = 1), log_dweibull,
                          "positive"),
  dbeta = read_density(list(x = "needed", shape1 = "needed", shape2 = "needed", ncp = "refused"),
                       log_dbeta, "proportion"),
  dpois = read_density(list(x = "needed", lambda = "needed"), log_dpois, "count"),
  dgeom = read_density(list(x = "needed", prob = "needed"), function(g, x, prob)
    make(g, "add", make(g, "log", prob),
         make(g, "mul", x, make(g, "log1p", make(g, "neg", prob)))), "count"),
  dnbinom = read_density(list(x = "needed", size = "needed", prob = "none", mu = "none"),
                         log_dnbinom, "count"),
  dbinom = read_dbinom
)

# Programs for C: an expression as a graph of operations, its derivatives, and the steps that
# compute it (src/models/density/program.h).
#
# A graph is an environment of nodes, which are numbers. Equal nodes are made once. A node has an
# operation, its arguments, and a level that says on what it depends: 0 on nothing, DATA on columns
# of the data, POINT on the parameters, ROW on both. What depends on the data alone is computed once
# for all particles, what depends on the parameters alone once for all rows.

# In the order of src/models/density/program.h.
OPERATIONS <- c("add", "sub", "mul", "div", "neg", "exp", "log", "log1p", "expm1", "sqrt", "abs",
                "logistic", "softplus", "lgamma", "digamma", "trigamma", "tetragamma",
                "lgamma_ratio", "pnorm", "log_pnorm", "sin", "cos", "tanh", "atan", "pow", "less",
                "at_most", "equal", "select")

LEVEL <- c(data = 1L, point = 2L, row = 3L)

new_graph <- function() {
  graph <- new.env(parent = emptyenv())
  graph$known <- new.env(parent = emptyenv())
  graph$nodes <- list()
  graph
}

add_node <- function(graph, operation, args = integer(), value = NA_real_, level = NULL) {
  key <- paste(c(operation, args, if (operation == "constant") sprintf("%a", value)
                 else if (operation == "input") value), collapse = " ")
  known <- graph$known[[key]]
  if (!is.null(known)) return(known)
  if (is.null(level))
    level <- Reduce(bitwOr, lapply(args, function(a) graph$nodes[[a]]$level), 0L)
  id <- length(graph$nodes) + 1L
  graph$nodes[[id]] <- list(operation = operation, args = as.integer(args), value = value,
                            level = level)
  assign(key, id, graph$known)
  id
}

constant_node <- function(graph, value) add_node(graph, "constant", value = as.double(value),
                                                 level = 0L)

input_node <- function(graph, name, level) add_node(graph, "input", value = name, level = level)

#' The nodes from which a node is computed, itself included
#' @noRd
nodes_below <- function(graph, id) {
  found <- integer()
  open <- id
  while (length(open)) {
    found <- c(found, open)
    open <- setdiff(unlist(lapply(open, args_of, graph = graph)), found)
  }
  found
}

operation_of <- function(graph, id) graph$nodes[[id]]$operation
args_of <- function(graph, id) graph$nodes[[id]]$args
is_operation <- function(graph, id, name) operation_of(graph, id) == name
is_constant <- function(graph, id, value = NULL)
  is_operation(graph, id, "constant") &&
    (is.null(value) || identical(graph$nodes[[id]]$value, as.double(value)))
value_of <- function(graph, id) graph$nodes[[id]]$value

# Operations in R, for constants and checks.
IN_R <- list(
  add = `+`, sub = `-`, mul = `*`, div = `/`, neg = function(x) -x, exp = exp, log = log,
  log1p = log1p, expm1 = expm1, sqrt = sqrt, abs = abs, logistic = stats::plogis,
  softplus = function(x) -stats::plogis(-x, log.p = TRUE), lgamma = lgamma, digamma = digamma,
  trigamma = trigamma, tetragamma = function(x) psigamma(x, 2),
  lgamma_ratio = function(z, x) lgamma(z + x) - lgamma(z), pnorm = stats::pnorm,
  log_pnorm = function(x) stats::pnorm(x, log.p = TRUE), sin = sin, cos = cos, tanh = tanh,
  atan = atan, pow = `^`, less = function(x, y) as.double(x < y),
  at_most = function(x, y) as.double(x <= y), equal = function(x, y) as.double(x == y),
  select = function(test, yes, no) ifelse(test != 0, yes, no)
)

#' An operation on nodes, in the form that loses fewest digits
#' @noRd
make <- function(graph, operation, ...) {
  args <- c(..., use.names = FALSE) # names, such as those of inputs, would be matched as arguments
  if (all(vapply(args, is_constant, NA, graph = graph)))
    return(constant_node(graph, suppressWarnings(
      do.call(IN_R[[operation]], lapply(args, value_of, graph = graph)))))
  simple <- SIMPLER[[operation]]
  made <- if (!is.null(simple)) do.call(simple, c(list(graph), as.list(args)))
  if (!is.null(made)) made else add_node(graph, operation, args)
}

# Each returns NULL if there is no simpler form.
SIMPLER <- list(
  add = function(g, a, b) {
    if (is_constant(g, a, 0)) b
    else if (is_constant(g, b, 0)) a
    else if (is_operation(g, b, "neg")) make(g, "sub", a, args_of(g, b))
    else if (is_operation(g, a, "neg")) make(g, "sub", b, args_of(g, a))
    else if (a > b) make(g, "add", b, a)
  },
  sub = function(g, a, b) {
    if (is_constant(g, b, 0)) a
    else if (is_constant(g, a, 0)) make(g, "neg", b)
    else if (a == b) constant_node(g, 0)
    else if (is_operation(g, b, "neg")) make(g, "add", a, args_of(g, b))
  },
  mul = function(g, a, b) {
    if (is_constant(g, a, 0) || is_constant(g, b, 0)) constant_node(g, 0)
    else if (is_constant(g, a, 1)) b
    else if (is_constant(g, b, 1)) a
    else if (is_constant(g, a, -1)) make(g, "neg", b)
    else if (is_constant(g, b, -1)) make(g, "neg", a)
    else if (is_operation(g, a, "neg")) make(g, "neg", make(g, "mul", args_of(g, a), b))
    else if (is_operation(g, b, "neg")) make(g, "neg", make(g, "mul", a, args_of(g, b)))
    else if (a > b) make(g, "mul", b, a)
  },
  div = function(g, a, b) {
    if (is_constant(g, b, 1)) a
    else if (is_constant(g, a, 0)) a
    else if (is_constant(g, b) && is.finite(1 / value_of(g, b)))
      make(g, "mul", a, constant_node(g, 1 / value_of(g, b)))
    # 1 / exp(x) may be known already, and a product is faster
    else if (is_operation(g, b, "exp"))
      make(g, "mul", a, make(g, "exp", make(g, "neg", args_of(g, b))))
  },
  neg = function(g, a) {
    if (is_operation(g, a, "neg")) args_of(g, a)
    else if (is_operation(g, a, "sub")) make(g, "sub", args_of(g, a)[2], args_of(g, a)[1])
  },
  # logarithms of products with exp() are sums, which neither overflow nor lose digits
  log = function(g, a) {
    args <- args_of(g, a)
    switch(operation_of(g, a),
      exp = args,
      logistic = make(g, "neg", make(g, "softplus", make(g, "neg", args))),
      pnorm = make(g, "log_pnorm", args),
      mul = if (is_exponential(g, args[1]) || is_exponential(g, args[2]))
        make(g, "add", make(g, "log", args[1]), make(g, "log", args[2])),
      div = if (is_operation(g, args[1], "exp")) make(g, "sub", args_of(g, args[1]),
                                                      make(g, "log", args[2])),
      add = if (is_constant(g, args[1], 1)) make(g, "log1p", args[2])
      else if (is_constant(g, args[2], 1)) make(g, "log1p", args[1])
      else log_of_sum(g, args[1], args[2]),
      sub = if (is_constant(g, args[1], 1)) make(g, "log1p", make(g, "neg", args[2])),
      select = if (is_exponential(g, a)) make(g, "select", args[1], make(g, "log", args[2]),
                                              make(g, "log", args[3]))
    )
  },
  log1p = function(g, a) {
    if (is_operation(g, a, "exp")) return(make(g, "softplus", args_of(g, a)))
    if (!is_operation(g, a, "neg")) return(NULL)
    inner <- args_of(g, a)
    switch(operation_of(g, inner),
      logistic = make(g, "neg", make(g, "softplus", args_of(g, inner))),
      pnorm = make(g, "log_pnorm", make(g, "neg", args_of(g, inner)))
    )
  },
  pow = function(g, a, b) {
    if (!is_constant(g, b)) return(NULL)
    n <- value_of(g, b)
    if (n == 0) constant_node(g, 1)
    else if (n == 1) a
    else if (n == 0.5) make(g, "sqrt", a)
    else if (n == -1) make(g, "div", constant_node(g, 1), a)
    else if (n %in% 2:4) make(g, "mul", make(g, "pow", a, constant_node(g, n - 1)), a)
    else if (is_operation(g, a, "exp")) make(g, "exp", make(g, "mul", args_of(g, a), b))
  },
  select = function(g, test, yes, no) {
    if (is_constant(g, test)) { if (value_of(g, test) != 0) yes else no }
    else if (yes == no) yes
  }
)

# The logarithm of the sum of two nodes that are densities: log(exp(u) + exp(v)) is u + log(1 +
# exp(v - u)), without overflow and without zeros.
log_of_sum <- function(g, a, b) {
  if (!is_exponential(g, a) || !is_exponential(g, b)) return(NULL)
  u <- make(g, "log", a)
  make(g, "add", u, make(g, "softplus", make(g, "sub", make(g, "log", b), u)))
}

# Is the logarithm of this node, as `make()` writes it, a formula without log() of a predictor?
is_exponential <- function(g, a) {
  args <- args_of(g, a)
  switch(operation_of(g, a),
    exp = , logistic = , pnorm = TRUE,
    constant = value_of(g, a) > 0,
    mul = is_exponential(g, args[1]) && is_exponential(g, args[2]),
    select = is_exponential(g, args[2]) && is_exponential(g, args[3]),
    sub = is_constant(g, args[1], 1) && operation_of(g, args[2]) %in% c("logistic", "pnorm"),
    FALSE)
}

# Derivatives --------------------------------------------------------------------------------------

# Derivatives by the first, second and third argument, as nodes: functions of the graph, the node
# and its arguments.
SLOPES <- list(
  add = list(function(g, f, a, b) constant_node(g, 1), function(g, f, a, b) constant_node(g, 1)),
  sub = list(function(g, f, a, b) constant_node(g, 1), function(g, f, a, b) constant_node(g, -1)),
  mul = list(function(g, f, a, b) b, function(g, f, a, b) a),
  div = list(function(g, f, a, b) make(g, "div", constant_node(g, 1), b),
             function(g, f, a, b) make(g, "neg", make(g, "div", f, b))),
  neg = list(function(g, f, a) constant_node(g, -1)),
  exp = list(function(g, f, a) f),
  log = list(function(g, f, a) make(g, "div", constant_node(g, 1), a)),
  log1p = list(function(g, f, a) make(g, "div", constant_node(g, 1),
                                      make(g, "add", constant_node(g, 1), a))),
  expm1 = list(function(g, f, a) make(g, "exp", a)),
  sqrt = list(function(g, f, a) make(g, "div", constant_node(g, 0.5), f)),
  abs = list(function(g, f, a) make(g, "select", make(g, "less", a, constant_node(g, 0)),
                                    constant_node(g, -1), constant_node(g, 1))),
  logistic = list(function(g, f, a) make(g, "mul", f, make(g, "logistic", make(g, "neg", a)))),
  softplus = list(function(g, f, a) make(g, "logistic", a)),
  lgamma = list(function(g, f, a) make(g, "digamma", a)),
  digamma = list(function(g, f, a) make(g, "trigamma", a)),
  trigamma = list(function(g, f, a) make(g, "tetragamma", a)),
  lgamma_ratio = list(
    function(g, f, z, x) make(g, "sub", make(g, "digamma", make(g, "add", z, x)),
                              make(g, "digamma", z)),
    function(g, f, z, x) make(g, "digamma", make(g, "add", z, x))),
  pnorm = list(function(g, f, a) normal_density(g, a)),
  log_pnorm = list(function(g, f, a) make(g, "exp", make(g, "sub", log_normal_density(g, a), f))),
  sin = list(function(g, f, a) make(g, "cos", a)),
  cos = list(function(g, f, a) make(g, "neg", make(g, "sin", a))),
  tanh = list(function(g, f, a) make(g, "sub", constant_node(g, 1), make(g, "mul", f, f))),
  atan = list(function(g, f, a) make(g, "div", constant_node(g, 1),
                                     make(g, "add", constant_node(g, 1), make(g, "mul", a, a)))),
  pow = list(
    function(g, f, a, b) make(g, "mul", b, make(g, "pow", a, make(g, "sub", b,
                                                                 constant_node(g, 1)))),
    function(g, f, a, b) make(g, "mul", f, make(g, "log", a)))
)

log_normal_density <- function(g, a) {
  make(g, "sub", make(g, "mul", constant_node(g, -0.5), make(g, "mul", a, a)),
       constant_node(g, log(2 * pi) / 2))
}

normal_density <- function(g, a) make(g, "exp", log_normal_density(g, a))

#' The derivative of a node by an input
#' @param known An environment for derivatives that were made before.
#' @noRd
differentiate <- function(g, id, by, known = new.env(parent = emptyenv())) {
  key <- as.character(id)
  if (!is.null(known[[key]])) return(known[[key]])
  zero <- constant_node(g, 0)
  operation <- operation_of(g, id)
  args <- args_of(g, id)
  slope_of <- function(k) differentiate(g, args[k], by, known)
  made <- if (id == by) constant_node(g, 1)
  else if (operation %in% c("constant", "input", "less", "at_most", "equal")) zero
  else if (operation == "select") make(g, "select", args[1], slope_of(2), slope_of(3))
  else {
    sum <- zero
    for (k in seq_along(args)) {
      inner <- slope_of(k)
      if (inner == zero) next
      if (is.null(SLOPES[[operation]]))
        fail("The second derivatives of `", operation, "` are not known.")
      outer <- do.call(SLOPES[[operation]][[k]], c(list(g, id), as.list(args)))
      sum <- make(g, "add", sum, make(g, "mul", outer, inner))
    }
    sum
  }
  assign(key, made, known)
  made
}

# Steps --------------------------------------------------------------------------------------------

#' All nodes that some nodes need, in the order in which they are computed
#' @noRd
nodes_for <- function(g, outputs) {
  needed <- logical(length(g$nodes))
  needed[outputs] <- TRUE
  for (id in rev(seq_along(g$nodes))) if (needed[id]) needed[args_of(g, id)] <- TRUE
  which(needed) # arguments are made before the nodes that use them
}

#' Steps and registers for some lists of outputs
#'
#' @param inputs,predictors Nodes: the columns of the data, and the predictors, in C's order.
#' @param goals A named list of lists of output nodes.
#' @return Settings for C.
#' @noRd
write_programs <- function(g, inputs, predictors, goals) {
  needed <- lapply(goals, function(outputs) nodes_for(g, outputs))
  all <- sort(unique(unlist(needed)))
  level <- vapply(g$nodes, `[[`, 0L, "level")
  is_input <- vapply(g$nodes, function(node) node$operation == "input", NA)
  constant <- all[level[all] == 0]
  of_data <- all[level[all] == LEVEL["data"] & !is_input[all]]
  of_point <- all[level[all] == LEVEL["point"] & !is_input[all]]
  # numbers of registers, from zero
  place <- rep(NA_real_, length(g$nodes))
  at <- 0
  put <- function(nodes) {
    place[nodes] <<- at + seq_along(nodes) - 1
    at <<- at + length(nodes)
  }
  put(constant)
  put(inputs)
  # only results that other steps use are kept for all rows
  users <- setdiff(all, of_data)
  used <- unique(c(unlist(lapply(users, args_of, graph = g)), unlist(goals)))
  hoisted <- intersect(of_data, used)
  put(hoisted)
  put(predictors)
  put(of_point)
  first_free <- at
  temporary <- 0
  allot <- function(nodes, outputs, placed = integer()) {
    given <- allot_registers(g, nodes, outputs, placed, first_free)
    free <- !nodes %in% placed
    place[nodes[free]] <<- given$place[free]
    temporary <<- max(temporary, given$count)
  }
  allot(of_data, hoisted, hoisted)
  settings <- list(data = steps_of(g, of_data, place))
  for (goal in names(goals)) {
    rows <- needed[[goal]][level[needed[[goal]]] == LEVEL["row"]]
    rows <- rows[!is_input[rows]]
    allot(rows, goals[[goal]])
    settings[[paste0(goal, "_point")]] <- steps_of(g, intersect(needed[[goal]], of_point), place)
    settings[[paste0(goal, "_row")]] <- steps_of(g, rows, place)
    settings[[paste0(goal, "_out")]] <- place[goals[[goal]]]
  }
  c(settings, list(constants = vapply(constant, value_of, 0, graph = g),
                   hoisted = as.double(length(hoisted)), points = as.double(length(of_point)),
                   temporary = as.double(temporary)))
}

#' Registers for results that are needed for some steps only
#'
#' @param nodes All steps, in their order.
#' @param outputs Nodes that are needed after the last step.
#' @param placed Outputs that have registers already.
#' @noRd
allot_registers <- function(g, nodes, outputs, placed, first) {
  last <- rep(0L, length(g$nodes))
  for (k in seq_along(nodes)) last[args_of(g, nodes[k])] <- k
  last[outputs] <- length(nodes) + 1L
  place <- numeric(length(nodes))
  free <- numeric()
  count <- 0
  for (k in seq_along(nodes)) {
    if (nodes[k] %in% placed) {
      place[k] <- NA
    } else if (length(free)) {
      place[k] <- free[1]
      free <- free[-1]
    } else {
      place[k] <- first + count
      count <- count + 1
    }
    ended <- intersect(match(unique(args_of(g, nodes[k])), nodes), which(last[nodes] == k))
    free <- c(free, place[ended])
  }
  list(place = place, count = count)
}

steps_of <- function(g, nodes, place) {
  as.double(unlist(lapply(nodes, function(id) {
    args <- rep_len(args_of(g, id), 3)
    c(match(operation_of(g, id), OPERATIONS) - 1, place[id], place[args])
  })))
}

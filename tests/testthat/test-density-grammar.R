# Expressions of density() made at random: each function that it understands, within others, with
# arguments in any order and by name, against R itself and numerical differences.

PARTS <- local({
  one_of <- function(...) list(...)[[sample.int(...length(), 1)]]
  shuffle <- function(args) args[sample.int(length(args))]

  # A call with arguments by place, by name in any order, or the first one by place at the end.
  call_of <- function(f, args) {
    as.call(c(as.name(f), switch(sample.int(3, 1), {
      by_place <- seq_along(args) <= 2
      c(unname(args[by_place]), args[!by_place])
    }, shuffle(args), c(shuffle(args[-1]), unname(args[1])))))
  }

  # Real numbers, positive ones, probabilities and conditions; `depth` calls within one another.
  real <- function(depth) {
    if (depth == 0) return(one_of(quote(a), quote(b), quote(s), quote(y), quote(w), 0.7,
                                  quote(limit)))
    x <- function() real(depth - 1)
    p <- function() positive(depth - 1)
    plain <- c("sin", "cos", "tanh", "atan")
    of_positive <- c("log", "log1p", "log2", "log10", "lgamma", "digamma", "lfactorial")
    one_of(
      function() call(sample(c("+", "-", "*"), 1), x(), x()), function() call("/", x(), p()),
      function() call("-", x()), function() call("(", x()),
      function() call(sample(plain, 1), x()), function() call(sample(of_positive, 1), p()),
      function() call("log", base = 2, x = p()), function() call("expm1", call("tanh", x())),
      function() call("lbeta", b = p(), a = p()),
      function() call("lchoose", k = 2, n = call("+", 3, p())),
      function() call(sample(c("pmin", "pmax"), 1), x(), x(), x()),
      function() call("ifelse", no = x(), test = condition(depth - 1), yes = x()),
      function() call("^", call("tanh", x()), sample(2:4, 1)),
      function() call("*", condition(depth - 1), x()),
      function() density_call(depth - 1, TRUE), function() tail_call(depth - 1, TRUE))()
  }
  positive <- function(depth) {
    if (depth == 0) return(one_of(quote(s), quote(w), 1.3, quote(exp(a)), quote(exp(b))))
    p <- function() positive(depth - 1)
    one_of(
      function() call("exp", call("tanh", real(depth - 1))), function() call("sqrt", p()),
      function() call(sample(c("+", "*", "/", "pmax"), 1), p(), p()),
      function() call("+", 0.1, call("abs", real(depth - 1))), function() call("log1p", p()),
      function() call("^", p(), one_of(0.5, 1.7, -1, 2, quote(b))),
      function() call("ifelse", condition(depth - 1), p(), p()),
      function() probability(depth - 1),
      function() call("+", 0.1, density_call(depth - 1, FALSE)))() # which may be zero
  }
  probability <- function(depth) {
    if (depth == 0) return(one_of(quote(plogis(a)), quote(pnorm(b)), 0.4, quote(share)))
    one_of(
      function() call(sample(c("plogis", "pnorm"), 1), call("sin", real(depth - 1))),
      function() call("-", 1, probability(depth - 1)),
      function() call("+", 0.1, call("*", 0.8, tail_call(depth - 1, FALSE))))()
  }
  condition <- function(depth) {
    x <- function() call("+", quote(y), real(max(depth - 1, 0)))
    one_of(
      function() call(sample(c("<", "<=", ">", ">="), 1), x(), x()),
      function() call(sample(c("==", "!="), 1), quote(count), 1),
      function() call("!", call(">", x(), x())),
      function() call(sample(c("&", "|"), 1), call("<", x(), x()), quote(count > 1)))()
  }
  density_call <- function(depth, log) {
    x <- function() real(depth)
    p <- function() positive(depth)
    q <- function() probability(depth)
    one_of(
      function() call_of("dnorm", list(x = x(), mean = x(), sd = p(), log = log)),
      function() call_of("dlnorm", list(x = quote(w), meanlog = x(), sdlog = p(), log = log)),
      function() call_of("dt", list(x = x(), df = p(), log = log)),
      function() call_of(sample(c("dcauchy", "dlogis"), 1),
                         list(x = x(), location = x(), scale = p(), log = log)),
      function() call_of("dexp", list(x = quote(w), rate = p(), log = log)),
      function() call_of("dgamma", list(x = quote(w), shape = p(), rate = p(), log = log)),
      function() call_of("dgamma", list(x = quote(w), shape = p(), scale = p(), log = log)),
      function() call_of("dweibull", list(x = quote(w), shape = p(), scale = p(), log = log)),
      function() call_of("dbeta", list(x = quote(share), shape1 = p(), shape2 = p(), log = log)),
      function() call_of("dpois", list(x = quote(count - shift), lambda = p(), log = log)),
      function() call_of("dgeom", list(x = quote(count), prob = q(), log = log)),
      function() call_of("dnbinom", list(x = quote(count), size = p(), prob = q(), log = log)),
      function() call_of("dnbinom", list(x = quote(count), size = p(), mu = p(), log = log)),
      function() call_of("dbinom", list(x = quote(hits), size = quote(trials), prob = q(),
                                        log = log)))()
  }
  tail_call <- function(depth, log) {
    x <- function() real(depth)
    p <- function() positive(depth)
    flags <- list(lower.tail = sample(c(TRUE, FALSE), 1), log.p = log)
    one_of(
      function() call_of("pnorm", c(list(q = x(), mean = x(), sd = p()), flags)),
      function() call_of("plogis", c(list(q = x(), location = x(), scale = p()), flags)),
      function() call_of("pweibull", c(list(q = quote(w), shape = p(), scale = p()), flags)),
      function() call_of("pexp", c(list(q = quote(w), rate = p()), flags)))()
  }
  # every parameter and a column are in it
  list(expression = function() call("+", real(3), quote(0.01 * a * b + s * y)))
})

constants <- list2env(list(limit = 0.3, shift = -1), parent = globalenv())

rows <- with_own_seed(7, data.frame(y = rnorm(12), w = rgamma(12, 3, 2), count = rpois(12, 2),
                                    share = rbeta(12, 2, 3), trials = 7, hits = rbinom(12, 7, 0.4)))

# Differences of two lengths that agree.
differences <- function(f, theta) {
  steps <- function(size) vapply(seq_along(theta), function(k) {
    h <- replace(0 * theta, k, size)
    (f(theta + h) - f(theta - h)) / (2 * size)
  }, f(theta))
  found <- steps(1e-5)
  found[abs(found - steps(1e-6)) > 1e-4 * (1 + abs(found))] <- NA
  found
}

expect_near <- function(ours, theirs, tolerance, label) {
  expect_lt(max(0, abs(ours - theirs) / (1 + max(abs(theirs), na.rm = TRUE)), na.rm = TRUE),
            tolerance, label = label)
}

test_that("random expressions, with arguments in any order, have the values that R gives them", {
  made <- with_own_seed(test_seed(11), lapply(1:60, function(i)
    list(e = PARTS$expression(), theta = rnorm(3, sd = 0.5))))
  slow <- if (Sys.getenv("LOGEVIDENCE_SLOW") != "")
    with_own_seed(test_seed(12), lapply(1:3000, function(i)
      list(e = PARTS$expression(), theta = rnorm(3, sd = 0.5))))
  for (case in c(made, slow)) {
    text <- shorten(deparse1(case$e), 500)
    model <- density(eval(call("~", case$e), constants), a = ~ 1, b = ~ 1, s = half_normal(1))
    f <- model_functions(model, rows)
    in_r <- function(theta) suppressWarnings(
      eval(case$e, c(list(a = rep(theta[1], 12), b = rep(theta[2], 12), s = rep(exp(theta[3]), 12)),
                     rows), constants))
    values <- in_r(case$theta)
    if (!all(is.finite(values)) || max(abs(values)) > 1e6) next
    expect_near(drop(f$log_lik_each(case$theta)), values, 1e-8, text)
    expect_near(drop(f$gradient(case$theta)),
                differences(function(theta) sum(in_r(theta)), case$theta), 1e-4, text)
    expect_near(f$hessian(case$theta),
                differences(function(theta) drop(f$gradient(theta)), case$theta), 1e-3, text)
  }
})

test_that("values do not depend on names of parameters, also those of arguments of functions", {
  # some have a slope that is one operation
  expressions <- expression(
    log(dnorm(y, first, 1) + exp(second)) + third * first, first^1.5 * 2 / 3 + second * third * y,
    log1p(exp(third)) * y + second * first, first - second^1.5 * 2 / 3 / exp(third * y))
  theta <- c(1.3, 0.8, 0.9)
  values_with <- function(e, names) {
    names(names) <- c("first", "second", "third")
    renamed <- do.call(substitute, list(e, lapply(names, as.name)))
    parts <- stats::setNames(rep(list(~ 1), 3), names)
    formula <- eval(call("~", renamed))
    model <- do.call(density, c(list(formula, prior = normal(1, 0.1)), parts))
    f <- model_functions(model, rows)
    list(f$log_lik(theta), unname(f$gradient(theta)), unname(f$hessian(theta)))
  }
  for (e in expressions) {
    plain <- values_with(e, c("mu", "nu", "tau"))
    for (names in list(c("a", "b", "g"), c("b", "a", "f"), c("test", "yes", "no"),
                       c("size", "shape", "rate"), c("operation", "graph", "args")))
      expect_equal(values_with(e, names), plain, tolerance = 1e-12,
                   label = toString(c(deparse1(e), names)))
  }
})

test_that("rules for data hold for the right argument, with constants in them", {
  limit <- 0
  shift <- 1
  later <- data.frame(y = c(-1, 0.5, 2), count = c(1, 2, 3))
  ok <- function(x) expect_silent(model_functions(density(x, mu = ~ 1), later))
  ok(~ ifelse(y > limit, dlnorm(y, mu, log = TRUE), mu * y))
  ok(~ ifelse(no = mu * y, yes = dlnorm(y, mu, log = TRUE), y > limit))
  ok(~ dpois(lambda = exp(mu), count - shift, log = TRUE))
  ok(~ dpois(log = T, lambda = exp(mu), x = count))
  ok(~ dnorm(y, mu, 1, TRUE))
  ok(~ dnorm(y, mu, lo = TRUE))
  expect_error(model_functions(density(~ dpois(lambda = exp(mu), y, log = TRUE), mu = ~ 1), later),
               "non-negative whole numbers up to 1e11 as `y` in dpois\\(\\), not -1")
})

test_that("expressions that R would read otherwise are refused in a sentence", {
  switched <- 1
  refused <- function(x, sentence) expect_error(
    model_functions(density(x, mu = ~ 1), data.frame(y = c(0.2, 0.4))), sentence)
  refused(~ dt(y - mu, 3, 1, TRUE), "argument `ncp`, which is not understood")
  refused(~ dbeta(y, exp(mu), 1, 2, log = TRUE), "argument `ncp`, which is not understood")
  refused(~ dgamma(y, 1, rate = exp(mu), scale = 2, log = TRUE), "one of `rate` and `scale`")
  refused(~ pmin(y, mu, na.rm = TRUE), "without `na.rm`")
  refused(~ exp(y, mu), "arguments that are not understood")
  refused(~ ifelse(switched > 0, y * mu, mu), "the same for all rows")
})

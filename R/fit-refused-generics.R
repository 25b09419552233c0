# Generics of R that have no meaning for a fit or a comparison: errors that say what to use. The
# default methods would return NULL or numbers without a meaning.

LIKELIHOOD <- paste("has no meaning for a fit, whose parameters are averaged over and not set to a",
                    "maximum of the likelihood. The log evidence is logml(); compare_models()",
                    "compares models, and the method bic() is the approximation by Schwarz.")
TERMS <- paste("has no meaning for a fit: fit the models with and without a term, and compare them",
               "by compare_models().")
LEAST_SQUARES <- paste("is for fits by least squares. See residuals(), and for the density of each",
                       "row predict(type = \"density\").")
DRAWS <- paste("does not apply to a whole fit. The posterior draws are posterior_draws(), their",
               "summaries are summary(), coef() and confint().")
NUMBER <- paste("does not apply to fits. The log evidence is logml(), and two fits are compared by",
                "bayes_factor().")
PICTURE <- "does not apply to a fit: see plot(), and posterior_draws() for other pictures."

# By the package of the generic.
REFUSED <- list(
  stats = c(
    logLik = LIKELIHOOD, AIC = LIKELIHOOD, BIC = LIKELIHOOD, extractAIC = LIKELIHOOD,
    profile = LIKELIHOOD, anova = TERMS, add1 = TERMS, drop1 = TERMS,
    effects = LEAST_SQUARES, alias = LEAST_SQUARES, proj = LEAST_SQUARES,
    influence = LEAST_SQUARES, hatvalues = LEAST_SQUARES, cooks.distance = LEAST_SQUARES,
    rstandard = LEAST_SQUARES, rstudent = LEAST_SQUARES, dfbeta = LEAST_SQUARES,
    dfbetas = LEAST_SQUARES, dummy.coef = LEAST_SQUARES, model.tables = LEAST_SQUARES,
    df.residual = paste("has no meaning for a fit, because a posterior has no residual degrees of",
                        "freedom. See nobs() and coef()."),
    weights = paste("has no meaning for a fit, whose rows have equal weight. The log weights of",
                    "its draws are attr(posterior_draws(fit), \"log_weights\")."),
    quantile = DRAWS, median = DRAWS, aggregate = DRAWS, density = DRAWS, biplot = PICTURE,
    reorder = DRAWS, weighted.mean = DRAWS, kernapply = DRAWS, window = DRAWS, time = DRAWS,
    start = DRAWS, end = DRAWS, lag = DRAWS, as.ts = DRAWS, cycle = DRAWS, deltat = DRAWS,
    frequency = DRAWS, na.omit = DRAWS, na.exclude = DRAWS, screeplot = PICTURE, qqnorm = PICTURE
  ),
  base = c(
    mean = DRAWS, Summary = DRAWS, Math = NUMBER, Ops = NUMBER, sort = DRAWS, unique = DRAWS,
    duplicated = DRAWS, merge = DRAWS, as.matrix = DRAWS, scale = DRAWS, diff = DRAWS, cut = DRAWS,
    split = DRAWS, transform = DRAWS, subset = DRAWS, rep = DRAWS, t = DRAWS, solve = DRAWS,
    xtfrm = DRAWS, rev = DRAWS, anyDuplicated = DRAWS, as.array = DRAWS, as.expression = DRAWS,
    as.function = DRAWS, as.double = NUMBER, as.integer = NUMBER, qr = LEAST_SQUARES
  ),
  graphics = c(hist = PICTURE, pairs = PICTURE, boxplot = PICTURE, lines = PICTURE,
               points = PICTURE, barplot = PICTURE, image = PICTURE, persp = PICTURE)
)

# For a comparison, which is also a data frame, only those that look at a model.
ONE_MODEL <- "is for one model. The fits of a comparison are attr(x, \"fits\")."
REFUSED_FOR_COMPARISONS <- c(
  names(REFUSED$stats)[seq_len(match("weights", names(REFUSED$stats)))],
  "family", "model.frame", "model.matrix", "variable.names", "case.names", "getCall", "fitted",
  "residuals", "deviance", "sigma", "update", "na.action", "quantile", "median"
)

# What incomplete fits refuse, besides what R/run-work.R has.
WHOLE <- list(
  stats = c("family", "terms", "model.frame", "model.matrix", "variable.names", "case.names"),
  base = c("labels", "as.data.frame")
)

#' @noRd
register_refusals <- function() {
  for (package in names(REFUSED)) for (generic in names(REFUSED[[package]]))
    refuse_generic(package, generic, "evidence", REFUSED[[package]][[generic]])
  for (generic in REFUSED_FOR_COMPARISONS)
    refuse_generic("stats", generic, "model_comparison", ONE_MODEL)
  refuse_generic("base", "mean", "model_comparison", ONE_MODEL)
  for (package in names(WHOLE)) for (generic in c(WHOLE[[package]], names(REFUSED[[package]])))
    register(package, generic, "incomplete_evidence", whole_refusal(generic))
}

refuse_generic <- function(package, generic, class, sentence)
  register(package, generic, class, refusal(generic, sentence))

refusal <- function(generic, sentence) {
  force(sentence)
  # packages look for texts in lists of arguments, of which one may be a fit
  if (generic == "Ops")
    return(function(e1, e2) if (.Generic %in% c("==", "!=") && is.character(e2)) .Generic == "!="
           else fail(.Generic, " ", sentence))
  if (generic %in% c("Math", "Summary")) return(function(...) fail(.Generic, "() ", sentence))
  function(...) fail(generic, "() ", sentence)
}

whole_refusal <- function(generic) {
  force(generic)
  function(...) whole_fit(generic)
}

register <- function(package, generic, class, method)
  registerS3method(generic, class, method, envir = asNamespace(package))

# Definitions of the scripts, without running them, and small forms of their runs.

scripts <- new.env()
definitions_of <- function(name) {
  if (!is.null(scripts[[name]])) return(scripts[[name]])
  into <- new.env(parent = globalenv())
  into$here <- into$bench <- HERE
  # a script finds its own folder by --file=, which here is another one's
  skip <- c("here", "bench", "script", "HERE", "million", "shifting", "verb", "folder", "asked",
            "arguments")
  for (line in parse(file.path(HERE, paste0(name, ".R"))))
    if (is.call(line) && identical(line[[1]], quote(`<-`)) && !as.character(line[[2]])[1] %in% skip)
      eval(line, into)
  assign(name, into, scripts)
  into
}

# The zoo: problems, references, how runs are judged.
zoo <- local({
  loaded <- NULL
  function() {
    if (is.null(loaded)) {
      loaded <<- new.env(parent = globalenv())
      loaded$ZOO <- file.path(HERE, "zoo")
      loaded$HERE <- HERE
      for (part in c("truths", "integrals", "problems", "functions", "regressions", "groups",
                     "generate", "runner", "report", "generated"))
        sys.source(file.path(HERE, "zoo", paste0(part, ".R")), loaded)
    }
    loaded
  }
})

fitted_again <- function(model, data, method = NULL, seed = 1, ...) {
  call <- list(model, data, seed = seed, progress = FALSE, ...)
  if (!is.null(method)) call$method <- method
  suppressWarnings(do.call(evidence, call))
}
cpu_of <- function(code) {
  spent <- system.time(code, gcFirst = FALSE)
  spent[["user.self"]] + spent[["sys.self"]]
}

# Recorded rows beside fits made now: `fit(row)` returns the fit or its list(log_evidence, se).
rerun <- function(rows, fit, reference = rows$reference, reference_se = rows$reference_se) {
  if (is.null(reference_se)) reference_se <- rep(0, nrow(rows))
  out <- lapply(seq_len(nrow(rows)), function(i) {
    one <- fit(rows[i, ])
    data.frame(error = rows$log_evidence[i] - reference[i], se = rows$se[i],
               now = one$log_evidence - reference[i], now_se = one$se,
               reference_se = reference_se[i], failed = length(one$failed) > 0)
  })
  do.call(rbind, out)
}

# Rscript of a bench script in a process of its own; its output.
in_process <- function(name, arguments, env = character()) suppressWarnings(
  system2(file.path(R.home("bin"), "Rscript"), c(file.path(HERE, name), arguments), stdout = TRUE,
          stderr = FALSE, env = env))

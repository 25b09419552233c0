# Which methods apply to which family, one fit as one row of results, and the loop over all.

METHODS <- list(
  default = function() NULL, # what evidence() does when no method is named
  smc = function() smc(),
  ais = function() ais(),
  nested = function() nested(),
  bridge = function() bridge(),
  importance = function() method_laplace(importance = 400),
  stepping = function() power_posterior(),
  thermodynamic = function() power_posterior("thermodynamic"),
  smc_data = function() smc("data"),
  chib = function() chib(),
  online_nested = function() online_nested(),
  hybrid = function() hybrid(),
  sequential = function() sequential(),
  smc_rwm = function() smc(kernel = rwm()),
  smc_slice = function() smc(kernel = slice()),
  smc_mala = function() smc(kernel = mala()),
  smc_baoab = function() smc(kernel = baoab()),
  smc_sgld = function() smc(kernel = sgld()),
  smc_sghmc = function() smc(kernel = sghmc()),
  given = function() sgais(order = "given", audit = FALSE)
)

WALKS <- c("default", "smc", "ais", "bridge", "importance", "stepping", "thermodynamic")
FAMILIES <- list(
  mixture = c(WALKS, "nested"),
  regression = c(WALKS, "nested", "smc_data", "online_nested", "hybrid", "sequential", "smc_rwm",
                 "smc_slice", "given"),
  wide = WALKS,
  groups = c(WALKS, "nested", "smc_rwm"),
  glm = c(WALKS, "nested", "smc_data", "hybrid", "sequential", "smc_rwm", "smc_slice"),
  latent = c("default", "ais", "nested", "smc", "smc_data"),
  `latent-known` = c("default", "ais", "nested", "smc", "smc_data", "chib"),
  custom = c(WALKS, "nested", "smc_rwm", "smc_slice"),
  kernels = c(WALKS, "smc_rwm", "smc_slice", "smc_mala", "smc_baoab", "smc_sgld", "smc_sghmc")
)

# Sentences that name a problem of the estimate: not what a method always says of itself, not that
# prior and data contradict each other, and not what is true of the columns.
OF_COLUMNS <- c("zero_columns", "aliased_columns", "same_response")
named_problems <- function(fit) {
  said <- fit$warnings[!names(fit$warnings) %in% OF_COLUMNS]
  setdiff(said, c(fit$method$note, fit$prior_conflict))
}

# The last commit that changed the package that R found: of the checkout whose library it is in, or
# else of this one. A plus says that files of the package differ from the commit.
package_commit <- local({
  known <- NULL
  function() {
    if (!is.null(known)) return(known)
    library <- dirname(find.package("logevidence"))
    root <- if (basename(library) == ".lib") dirname(library) else dirname(HERE)
    git <- function(...) suppressWarnings(system2("git", c("-C", shQuote(root), ...), stdout = TRUE,
                                                  stderr = FALSE))
    package <- c("--", "R", "src", "DESCRIPTION", "NAMESPACE")
    hash <- git("log", "-1", "--format=%h", package)
    changed <- git("status", "--porcelain", package)
    known <<- if (length(hash)) paste0(hash, if (length(changed)) "+") else "unknown"
    known
  }
})

# A fit is stopped after `limit` seconds.  R looks at its time limit whenever C asks for interrupts.
one_fit <- function(problem, method, seed, limit) {
  call <- list(problem$model, problem$data, seed = seed, progress = FALSE)
  if (is.null(problem$data)) call[2] <- NULL
  chosen <- METHODS[[method]]()
  if (!is.null(chosen)) call$method <- chosen
  started <- proc.time()[[3]]
  # a limit that strikes while C asks for interrupts is an interrupt
  fit <- withRestarts(tryCatch({
    setTimeLimit(elapsed = limit, transient = TRUE)
    withCallingHandlers(do.call(evidence, call),
                        logevidence_warning = function(w) invokeRestart("muffleWarning"))
  }, error = conditionMessage, finally = setTimeLimit()), abort = function() "time limit")
  seconds <- proc.time()[[3]] - started
  row <- data.frame(problem = problem$name, method = method, seed = seed, log_evidence = NA_real_,
                    se = NA_real_, warned = NA, failed = NA, seconds = round(seconds, 3),
                    commit = package_commit(), text = "")
  short <- function(x) substr(gsub("[\",\n]", " ", x), 1, 70)
  if (is.character(fit)) {
    row$text <- if (grepl("time limit", fit)) "stopped: time limit" else short(paste("error:", fit))
    return(row)
  }
  said <- named_problems(fit)
  row$log_evidence <- signif(fit$log_evidence, 9)
  row$se <- signif(fit$se, 4)
  row$warned <- length(said) > 0
  row$failed <- length(fit$failed) > 0
  row$text <- if (length(said)) short(said[1]) else ""
  row
}

run_zoo <- function(problems, methods, seeds, file, limit = NULL, patience = Inf) {
  seen <- if (file.exists(file)) with(read.csv(file), paste(problem, method, seed))
  for (problem in problems) {
    for (method in intersect(methods, FAMILIES[[problem$family]])) {
      rows <- list()
      started <- proc.time()[[3]]
      for (seed in seq_len(seeds)) {
        if (paste(problem$name, method, seed) %in% seen) next
        if (proc.time()[[3]] - started > patience) break
        rows[[length(rows) + 1]] <- one_fit(problem, method, seed,
                                            if (is.null(limit)) problem$limit else limit)
        # a method that twice found no end will find none with other seeds
        endless <- vapply(rows, function(r) r$text == "stopped: time limit", NA)
        if (length(rows) == 2 && all(endless)) break
      }
      if (!length(rows)) next
      rows <- do.call(rbind, rows)
      append_rows(rows, file)
      message(sprintf("%-24s %-14s %3d fits, %.1f s", problem$name, method, nrow(rows),
                      sum(rows$seconds)))
    }
  }
}

append_rows <- function(rows, file) {
  write.table(rows, file, append = file.exists(file), sep = ",", row.names = FALSE,
              col.names = !file.exists(file), qmethod = "double")
}

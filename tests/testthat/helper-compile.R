# Models in C for tests: compiled in the session's folder, with the package's public header.

#' Compile a file and load it; afterwards PACKAGE = `name` finds its functions
#'
#' @param more Lines of C that are added to the file.
#' @param libraries For the linker.
#' @return Whether that worked.
compile_model <- function(file, name, more = NULL, libraries = "") {
  source <- file.path(tempdir(), paste0(name, ".c"))
  writeLines(c(readLines(file), more), source)
  library <- file.path(tempdir(), paste0(name, .Platform$dynlib.ext))
  old <- setwd(tempdir())
  on.exit(setwd(old))
  flags <- paste0("PKG_CPPFLAGS=-I", system.file("include", package = "logevidence"))
  # the library of a sanitizer is for R, not for the compiler's tools
  made <- tryCatch(system2(file.path(R.home("bin"), "R"), c("CMD", "SHLIB", "-o", library, source),
                           stdout = FALSE, stderr = FALSE,
                           env = c(flags, paste0("PKG_LIBS=", libraries), "LD_PRELOAD=")),
                   error = function(e) 1)
  works <- made == 0 && file.exists(library)
  if (works) dyn.load(library)
  works
}

needs_compiler <- function(works) {
  skip_on_cran()
  skip_if_not(works, "a C compiler and the headers of GSL")
}

# Tests of small parts of C call them directly, by routines that are not in the package (units.c).
# They become a library of their own, together with the files of the package's source that they use.

#' A routine of units.c, for .Call(); without the package's source or a compiler the test is skipped
unit <- function(name) {
  if (is.null(units[[name]]))
    units[[name]] <- getNativeSymbolInfo(paste0("unit_", name), units_library())
  units[[name]]
}
units <- new.env()

units_library <- function() {
  library <- Sys.getenv("LOGEVIDENCE_UNITS")
  if (!nzchar(library)) {
    library <- make_units(test_path("."))
    Sys.setenv(LOGEVIDENCE_UNITS = library)
  }
  if (!file.exists(library)) testthat::skip("the package's source, or a compiler, is not there")
  dyn.load(library)
}

#' Make the library of units.c
#'
#' The source is above the tests, in a checkout, or where R CMD check unpacks the package.
#' LOGEVIDENCE_MAKEVARS names a file with other flags of the compiler.
#' @param tests The folder of the tests.
#' @return The path of the library, which does not exist if it could not be made.
make_units <- function(tests) {
  folder <- tempfile("units-")
  dir.create(folder)
  root <- file.path(tests, c("../..", "../../00_pkg_src/logevidence"))
  root <- root[file.exists(file.path(root, "src/base/status.c"))]
  if (!length(root)) return(file.path(folder, "none"))
  file.copy(file.path(root[1], c("configure", "src", "inst")), folder, recursive = TRUE)
  src <- file.path(folder, "src")
  unlink(list.files(src, "[.](o|so|dll|dylib)$", recursive = TRUE, full.names = TRUE))
  file.copy(file.path(tests, c("units.c", "units_body.h")), src)
  old <- setwd(folder)
  on.exit(setwd(old))
  run <- function(command, ...) {
    flags <- Sys.getenv("LOGEVIDENCE_MAKEVARS")
    # the library of a sanitizer is for R, not for the compiler's tools
    system2(command, c(...), stdout = FALSE, stderr = FALSE,
            env = c("LD_PRELOAD=", if (nzchar(flags)) paste0("R_MAKEVARS_USER=", flags)))
  }
  run("sh", "configure")
  setwd(src)
  parts <- paste0("core/", c("clusters", "resample", "schedule", "varopt"), ".o")
  cat("OBJECTS = units.o $(base)", parts, "\n", file = "Makevars", append = TRUE)
  library <- paste0("units", .Platform$dynlib.ext)
  run(file.path(R.home("bin"), "R"), "CMD", "SHLIB", "-o", library, "units.c")
  file.path(src, library)
}

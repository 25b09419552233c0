library(testthat)
library(logevidence)
# Whether estimates are right over many seeds does not depend on the machine, and takes long: `make
# test` shows that. Elsewhere what may depend on it.
quick <- c("compiled", "interop", "model-specs", "models", "plots", "resample", "rng", "run",
           "simd", "state", "threads", "variants")
quick <- paste0("^(", paste(quick, collapse = "|"), ")$")
test_check("logevidence", filter = if (!identical(Sys.getenv("NOT_CRAN"), "true")) quick)

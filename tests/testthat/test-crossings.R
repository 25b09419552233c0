# Crossings: every combination of method, kernel, mass matrix, model, way of the rows and law of the
# rows runs or is refused in a sentence, is finite or says why not, and has the same bits with one
# thread and two, and after it was saved and restored.  helper-crossings.R has the matrix.
#
# LOGEVIDENCE_CROSSINGS says how many cells are run: "none", "few", the default, "pairs", which
# cover every pair of values (continuous integration runs these under sanitizers), or "all"
# (`make slow`).
# LOGEVIDENCE_CROSSINGS_SECONDS is the time after which no further cell is begun.

# Of everything that the package exports or C knows there is an entry.

everywhere <- identical(Sys.getenv("NOT_CRAN"), "true")
compiler_works <- everywhere && compile_model(
  system.file("examples", "normal_mean.c", package = "logevidence"), "normal_mean")
pairs <- if (everywhere) pairs_in_process()

test_that("each exported model, method and kernel is in the matrix", {
  used <- unlist(lapply(crossing_models(), function(entry) all.names(entry$call)))
  # custom models are made by functions of the helper
  makers <- grep("^crossing_", used, value = TRUE)
  used <- c(used, paste0(used, ".formula"),
            unlist(lapply(makers, function(name) all.names(body(get(name))))))
  left <- c(WITHOUT_CROSSING, if (!compiler_works) "compiled_model")
  expect_identical(setdiff(functions_reaching("new_model"), c(used, left)), character())
  makes <- function(maker, class) {
    # of those that reach the maker through calls, the constructors return what it makes
    expect_gt(length(constructors_of(class)), 5)
    expect_true(all(constructors_of(class) %in% c(functions_reaching(maker), "power_posterior")))
  }
  makes("new_method", "evidence_method")
  makes("new_kernel", "evidence_kernel")
  expect_setequal(crossing_methods()$constructor, constructors_of("evidence_method"))
  expect_setequal(crossing_kernels()$kernel, constructors_of("evidence_kernel"))
  # a method whose constructor needs an argument would not be found
  direct <- function(maker) Filter(function(name) maker %in% all.names(body(function_named(name))),
                                   intersect(functions_reaching(maker),
                                             first_names(getNamespaceExports("logevidence"))))
  expect_identical(setdiff(direct("new_method"), constructors_of("evidence_method")), character())
  expect_identical(setdiff(direct("new_kernel"), constructors_of("evidence_kernel")), character())
})

test_that("combinations that do not work are refused in a sentence", {
  skip_on_cran()
  expect_identical(unique(grep("NOT A SENTENCE", pairs$said, value = TRUE)), character())
})

test_that("each engine, kernel and model of C is run in a cell of the matrix", {
  skip_on_cran()
  legal <- pairs[pairs$legal, ]
  known <- tables()
  expect_setequal(unique(unlist(strsplit(legal$kernels, " "))), names(known$kernels))
  expect_setequal(unique(legal$estimator), names(known$engines))
  expect_identical(setdiff(names(known$models), legal$type), character())
  expect_setequal(unique(legal$method), crossing_methods()$method)
  expect_setequal(unique(legal$model), names(crossing_models()))
  expect_setequal(unique(legal$way), CROSSING_WAYS)
})

#' What was found in these cells, a line for each
findings_of <- function(cells) {
  done <- run_crossings(cells)
  # combinations whose pairs are legal hardly ever turn out to be refused
  expect_gt(mean(done$status == "ran"), 0.9)
  # the rows of some are read once more
  expect_true(any(done$passes > 0) || nrow(done) < nrow(cells))
  wrong <- done[nzchar(done$finding), ]
  sprintf("%s: %s", wrong$call, wrong$finding)
}

extent <- Sys.getenv("LOGEVIDENCE_CROSSINGS", if (is_slow()) "all" else "few")

test_that("cells of the matrix run, are finite, and have the same bits with one and two threads", {
  skip_on_cran()
  expect_true(extent %in% c("none", "few", "pairs", "all"))
  skip_if(extent == "none", "LOGEVIDENCE_CROSSINGS is \"none\"")
  cells <- crossing_cells(pairs)
  crossed <- if (extent == "few") CROSSED_FEW else CROSSED
  covered <- covering(cells, crossed, test_seed(1))
  for (some in crossed)
    expect_identical(nrow(unique(cells[covered, some])), nrow(unique(cells[some])))
  chosen <- if (extent == "all") complete_crossings(cells, test_seed(1)) else cells[covered, ]
  expect_identical(findings_of(chosen), character())
})

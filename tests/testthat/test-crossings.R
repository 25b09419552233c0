# Crossings: every combination of method, kernel, mass matrix, model, way of the rows and law of the
# rows runs or is refused in a sentence, is finite or says why not, and has the same bits with one
# thread and two, and after it was saved and restored.  helper-crossings.R has the matrix.

# Of everything that the package exports or C knows there is an entry.

test_that("each exported model, method and kernel is in the matrix", {
  used <- unique(unlist(lapply(crossing_models(), function(entry) all.names(entry$call))))
  used <- unlist(lapply(used, function(name)
    c(name, paste0(name, ".formula"), if (exists(name, mode = "function"))
      all.names(body(get(name, mode = "function"))))))
  expect_identical(setdiff(functions_reaching("new_model"), c(used, WITHOUT_CROSSING)),
                   character())
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
  direct <- function(maker) Filter(function(name) maker %in% all.names(body(exported(name))),
                                   intersect(functions_reaching(maker),
                                             getNamespaceExports("logevidence")))
  expect_identical(setdiff(direct("new_method"), constructors_of("evidence_method")), character())
  expect_identical(setdiff(direct("new_kernel"), constructors_of("evidence_kernel")), character())
})

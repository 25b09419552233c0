library(testthat)
library(logevidence)
test_check("logevidence")

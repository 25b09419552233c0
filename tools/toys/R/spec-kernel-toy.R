# Metropolis steps of a fixed size.

#' A toy kernel
#' @noRd
toy_kernel <- function(step_size = 0.5) {
  new_kernel("toy", list(step_size = check_positive(step_size, "step_size")))
}

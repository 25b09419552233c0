# Waiting times at an unknown rate, whose logarithm is standard normal.

#' A toy model
#' @noRd
toy_model <- function() {
  new_model("toy", encode = encode_toy, encode_new = encode_new_toy, describe = describe_toy)
}

encode_toy <- function(model, data, ...) {
  list(rows = matrix(as.double(data), 1), n = length(data), args = list(),
       theta_names = "log_rate", user_names = "log_rate", design = list())
}

encode_new_toy <- function(model, design, newdata, response, argument) {
  list(rows = matrix(as.double(newdata), 1), n = length(newdata))
}

describe_toy <- function(model) {
  list("Waiting times", likelihood = "y exponential, its rate exp(log_rate)",
       prior = "log_rate standard normal")
}

# Seeds, and R's own generator while a run draws from it.

WORD <- 2^32

#' A seed as the two 32-bit words that C takes, high and low
#'
#' @param seed A whole number from 0 to 2^53, or NULL for a seed from R's generator.
#' @noRd
seed_words <- function(seed = NULL) {
  if (is.null(seed)) return(floor(stats::runif(2) * WORD))
  if (!(is_one_number(seed) && seed == round(seed) && seed >= 0 && seed <= 2^53))
    refuse(seed, "seed", "NULL or a whole number from 0 to 2^53")
  c(seed %/% WORD, seed %% WORD)
}

#' The words of the i-th stream after `words`
#'
#' Draws that must be independent, such as parameters and the data drawn with them, need different
#' seeds. The multiples of an odd number take all values of the high word before one repeats; the
#' arithmetic is exact for i up to 3e6.
#' @noRd
next_seed <- function(words, i) c((words[1] + i * 2654435769) %% WORD, words[2])

#' Seed R's generator for a run; returns a function that restores its state
#'
#' @param keep Whether the run uses R's generator as it is (no seed was given); then nothing is
#'   restored.
#' @noRd
own_generator <- function(words, keep) {
  if (keep) return(function() NULL)
  old <- get0(".Random.seed", globalenv(), inherits = FALSE)
  set.seed((words[1] * 7919 + words[2]) %% (2^31 - 1), "Mersenne-Twister", "Inversion", "Rejection")
  function() if (is.null(old)) rm(".Random.seed", envir = globalenv())
  else assign(".Random.seed", old, globalenv())
}

# A different seed for each method; the first has the one given.
method_seed <- function(words, i) WORD * ((words[1] + i - 1) %% 2^21) + words[2]

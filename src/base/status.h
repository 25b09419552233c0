/* Status codes, and the one place for the error sentence of a run. Below the bridge nothing jumps
 * or prints: a function that fails writes to the run's `le_error` and returns the status. */
#pragma once

#include "logevidence.h"

typedef struct le_error {
  char message[LE_MESSAGE_SIZE];
} le_error;

const char *le_status_sentence(le_status status);

/* Writes the sentence unless there is one already, and returns `status`, so that a failing function
 * ends with `return le_fail(...)`. */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
le_status le_fail(le_error *error, le_status status, const char *format, ...);

#define LE_TRY(expression)                                                                         \
  do {                                                                                             \
    le_status le_try_status_ = (expression);                                                       \
    if (le_try_status_ != LE_OK) return le_try_status_;                                            \
  } while (0)

/* The sentences of the status codes, and how an error is recorded. */
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>

const char *le_status_sentence(le_status status)
{
  switch (status) {
#define LE_STATUS_CASE(name, sentence)                                                             \
  case name: return sentence;
    LE_STATUS_LIST(LE_STATUS_CASE)
#undef LE_STATUS_CASE
  }
  return "an unknown status";
}

le_status le_fail(le_error *error, le_status status, const char *format, ...)
{
  if (error && error->message[0] == '\0') {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->message, sizeof error->message, format, arguments);
    va_end(arguments);
  }
  return status;
}

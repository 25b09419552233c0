/* Readers of settings that models share. */
#include "models/shared.h"

#include <stdio.h>

int le_read_count(const le_args *args, const char *name, size_t least, size_t most, size_t *count,
                  char *message)
{
  const le_arg *arg = le_args_find(args, name);
  if (!arg || !arg->values || arg->n != 1) {
    snprintf(message, LE_MESSAGE_SIZE, "`%s` must be a single whole number.", name);
    return 0;
  }
  double number = arg->values[0];
  if (number >= (double)least && number <= (double)most && number == floor(number)) {
    *count = (size_t)number;
    return 1;
  }
  snprintf(message, LE_MESSAGE_SIZE, "`%s` must be a whole number from %zu to %zu, not %g.", name,
           least, most, number);
  return 0;
}

int le_read_number(const le_args *args, const char *name, double fallback, double above, size_t n,
                   size_t j, double *number, char *message)
{
  const le_arg *arg = le_args_find(args, name);
  if (arg && (!arg->values || (arg->n != 1 && arg->n != n))) {
    if (n == 1)
      snprintf(message, LE_MESSAGE_SIZE, "`%s` must be a single number.", name);
    else
      snprintf(message, LE_MESSAGE_SIZE, "`%s` must be 1 or %zu numbers, not %zu.", name, n,
               arg->values ? arg->n : 0);
    return 0;
  }
  *number = !arg ? fallback : arg->values[arg->n == 1 ? 0 : j];
  if (isfinite(*number) && *number > above) return 1;
  if (above == -INFINITY)
    snprintf(message, LE_MESSAGE_SIZE, "`%s` must be finite, not %g.", name, *number);
  else
    snprintf(message, LE_MESSAGE_SIZE, "`%s` must be finite and above %g, not %g.", name, above,
             *number);
  return 0;
}

int le_read_numbers(const le_args *args, const char *name, double fallback, double above, size_t n,
                    double *number, char *message)
{
  for (size_t j = 0; j < n; j++)
    if (!le_read_number(args, name, fallback, above, n, j, &number[j], message)) return 0;
  return 1;
}

int le_all_codes(const double *x, size_t n, size_t k)
{
  for (size_t i = 0; i < n; i++)
    if (!(x[i] >= 0 && x[i] < (double)k && x[i] == floor(x[i]))) return 0;
  return 1;
}

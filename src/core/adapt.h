/* Step sizes that are adapted to a target acceptance rate, and change only between
 * distributions. */
#ifndef LE_CORE_ADAPT_H
#define LE_CORE_ADAPT_H

#include "base/archive.h"

#include <math.h>

#define LE_ADAPT_AMPLE 0.95

typedef struct le_adapt {
  double step, goal, most;
  int fixed;
  double accepted, proposed; /* since the last adaptation */
  double acceptance;         /* of the last distribution; NaN before the first */
  double tunings;
} le_adapt;

/* A positive `step` was given by the user and never changes. Otherwise the step begins at `start`
 * and is adapted towards the acceptance rate `goal`. */
static inline le_adapt le_adapt_make(double step, double start, double goal, double most)
{
  const le_adapt adapt = {step > 0 ? step : start, goal, most, step > 0, 0, 0, NAN, 0};
  return adapt;
}

static inline void le_adapt_tune(le_adapt *adapt)
{
  if (adapt->proposed == 0) return;
  adapt->acceptance = adapt->accepted / adapt->proposed;
  adapt->accepted = adapt->proposed = 0;
  adapt->tunings++;
  if (adapt->fixed) return;
  /* The gain falls to a constant and not to zero, because the best step changes along the path. */
  const double gain = fmax(0.5, 2 / adapt->tunings);
  /* An acceptance rate near 1 does not tell how far the step is below its best value. After a hard
   * distribution the step may be a thousand times too short and must grow quickly. */
  const double surplus = fmax(0, adapt->acceptance - LE_ADAPT_AMPLE) / (1 - LE_ADAPT_AMPLE);
  adapt->step = fmin(adapt->step * exp(gain * (adapt->acceptance - adapt->goal) + surplus),
                     adapt->most);
}

/* Fixes the step at this value. */
static inline void le_adapt_fix(le_adapt *adapt, double step)
{
  adapt->step = step;
  adapt->fixed = 1;
}

static inline void le_adapt_archive(le_adapt *adapt, le_archive *archive)
{
  static const le_field fields[] = {LE_FIELD(le_adapt, step),       LE_FIELD(le_adapt, fixed),
                                    LE_FIELD(le_adapt, accepted),   LE_FIELD(le_adapt, proposed),
                                    LE_FIELD(le_adapt, acceptance), LE_FIELD(le_adapt, tunings)};
  LE_ARCHIVE_FIELDS(archive, adapt, fields);
}

#endif

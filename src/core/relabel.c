/* Relabellings of states. */
#include "core/relabel.h"

#include "base/logsum.h"

#include <gsl/gsl_rng.h>
#include <math.h>
#include <string.h>

/* Draws towards another state assign parts one after another with probabilities in proportion to
 * exp(sharpness * likeness), which is a guess. The sharpness is one of these at random: at zero all
 * relabellings are equally probable, so that none is less probable than a fifth of that. */
static const double sharpness[] = {0, 0.1, 0.3, 1, 3};
enum { SHARPNESSES = sizeof sharpness / sizeof *sharpness };

double le_relabel_log_count(const le_latent_ops *ops, const void *self)
{
  double sum = 0;
  if (!ops->renumber) return 0;
  const size_t k = ops->parts(self);
  for (size_t c = 0; c < k; c++) {
    size_t alike = 0;
    for (size_t b = 0; b <= c; b++) alike += ops->kind(self, b) == ops->kind(self, c);
    sum += log((double)(alike * (ops->signs ? 2 : 1)));
  }
  return sum;
}

void le_relabel_make(le_relabel *r, le_arena *arena, const le_latent_ops *ops, const void *self,
                     size_t n)
{
  const size_t k = ops->parts(self);
  *r = (le_relabel){.ops = ops, .self = self, .n = n, .k = k};
  r->log_count = le_relabel_log_count(ops, self);
  r->image = le_arena_indices(arena, k);
  r->order = le_arena_indices(arena, k);
  r->taken = le_arena_indices(arena, k);
  r->other = le_arena_indices(arena, k);
  r->likeness = le_arena_doubles(arena, k * k);
  r->weight = le_arena_doubles(arena, 2 * k);
}

/* Whether part c may still become that part, with that sign. */
static int open_to(const le_relabel *r, size_t c, size_t code)
{
  return (code % 2 == 0 || r->ops->signs) && !r->taken[code / 2] &&
         r->ops->kind(r->self, code / 2) == r->ops->kind(r->self, c);
}

void le_relabel_number(le_relabel *r, size_t index)
{
  memset(r->taken, 0, r->k * sizeof(size_t));
  for (size_t c = 0; c < r->k; c++) {
    size_t choices = 0, code = 0;
    for (size_t i = 0; i < 2 * r->k; i++) choices += (size_t)open_to(r, c, i);
    for (size_t left = index % choices;; code++)
      if (open_to(r, c, code) && left-- == 0) break;
    index /= choices;
    r->image[c] = code;
    r->taken[code / 2] = 1;
  }
}

void le_relabel_invert(le_relabel *r)
{
  memcpy(r->other, r->image, r->k * sizeof(size_t));
  for (size_t c = 0; c < r->k; c++) r->image[r->other[c] / 2] = 2 * c + r->other[c] % 2;
}

/* Assigns parts in the order of `order` and returns the log probability of the result; with rng =
 * NULL that of `image`. */
static double assign(le_relabel *r, double sharp, const gsl_rng *rng)
{
  double sum = 0;
  memset(r->taken, 0, r->k * sizeof(size_t));
  for (size_t turn = 0; turn < r->k; turn++) {
    const size_t c = r->order[turn], codes = 2 * r->k;
    for (size_t code = 0; code < codes; code++) {
      const double alike = sharp * r->likeness[c * r->k + code / 2];
      r->weight[code] = !open_to(r, c, code) ? -INFINITY : code % 2 ? -alike : alike;
    }
    le_normalise(r->weight, codes, r->weight);
    if (rng) {
      double point = gsl_rng_uniform(rng);
      for (size_t code = 0; code < codes; code++) {
        if (r->weight[code] <= 0) continue;
        r->image[c] = code; /* rounding may leave a small remainder */
        if ((point -= r->weight[code]) < 0) break;
      }
    }
    sum += log(r->weight[r->image[c]]);
    r->taken[r->image[c] / 2] = 1;
  }
  return sum;
}

void le_relabel_uniform(le_relabel *r, const gsl_rng *rng)
{
  for (size_t c = 0; c < r->k; c++) r->order[c] = c;
  memset(r->likeness, 0, r->k * r->k * sizeof(double));
  assign(r, 0, rng);
}

/* Parts that are most like one of the others come first. */
static void set_order(le_relabel *r)
{
  for (size_t c = 0; c < r->k; c++) {
    const double *own = r->likeness + c * r->k;
    double top = -INFINITY;
    for (size_t j = 0; j < r->k; j++) top = fmax(top, r->ops->signs ? fabs(own[j]) : own[j]);
    r->weight[c] = top;
    size_t at = c;
    for (; at > 0 && r->weight[r->order[at - 1]] < top; at--) r->order[at] = r->order[at - 1];
    r->order[at] = c;
  }
}

double le_relabel_towards(le_relabel *r, const double *to, const double *state, const gsl_rng *rng)
{
  double each[SHARPNESSES];
  r->ops->likeness(r->self, r->n, to, state, r->likeness);
  set_order(r);
  if (rng) assign(r, sharpness[gsl_rng_uniform_int(rng, SHARPNESSES)], rng);
  for (size_t s = 0; s < SHARPNESSES; s++) each[s] = assign(r, sharpness[s], NULL);
  return le_logmeanexp(each, SHARPNESSES);
}

void le_relabel_apply(const le_relabel *r, const double *state, double *out)
{
  r->ops->renumber(r->self, r->n, r->image, state, out);
}

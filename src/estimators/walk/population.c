/* The weighted particles: their start, labels and resampling, and their replacement by draws of
 * importance sampling or of another engine. */
#include "estimators/walk/parts.h"

#include "base/linalg.h"
#include "base/logsum.h"

#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <string.h>

le_status le_walk_start(void *self)
{
  walk *w = self;
  const size_t d = w->d;
  for (size_t i = 0; i < w->m; i++) {
    if (w->settings.reverse)
      memcpy(w->theta + i * d, w->settings.from + i % w->settings.starts * d, d * sizeof(double));
    else
      w->target.ops->draw_prior(w->target.model, w->machine.streams.rng[i + 1], w->theta + i * d);
  }
  for (size_t j = 0; j < d; j++) {
    double mean = 0, square = 0;
    for (size_t i = 0; i < w->m; i++) mean += w->theta[i * d + j] / (double)w->m;
    for (size_t i = 0; i < w->m; i++) square += pow(w->theta[i * d + j] - mean, 2) / (double)w->m;
    w->prior_variance[j] = square > 0 ? square : 1;
  }
  le_walk_begin_from(w, 0, 0);
  w->machine.phase = OPEN_CHUNK;
  return LE_OK;
}

size_t le_walk_heaviest(const walk *w)
{
  return gsl_stats_max_index(w->weight, 1, w->m);
}

/* Relabelling does not change the density. Each particle is relabelled to be as close to the
 * reference as possible; kernels relabel to the same reference from now on. */
void le_walk_relabel_to(walk *w, const double *reference)
{
  if (!w->target.ops->relabel) return;
  memcpy(w->labels, reference, w->d * sizeof(double));
  w->target.labels = w->labels;
#ifdef _OPENMP
#pragma omp parallel for num_threads(le_target_threads(&w->target, w->m, w->d * w->d)) \
    schedule(static)
#endif
  for (size_t i = 0; i < w->m; i++)
    w->target.ops->relabel(w->target.model, reference, w->theta + i * w->d);
}

void le_walk_relabel_to_heaviest(walk *w)
{
  if (!w->target.ops->relabel) return;
  LE_SCRATCH(heaviest, w->target.stack, w->d);
  memcpy(heaviest, w->theta + le_walk_heaviest(w) * w->d, w->d * sizeof(double));
  le_walk_relabel_to(w, heaviest);
}

/* The labels of the particles are those of the anchor, if there is one. */
void le_walk_relabel_to_past(walk *w)
{
  if (le_rows_of(&w->target)->everywhere) le_walk_relabel_to_heaviest(w);
  else le_walk_relabel_to(w, w->past.anchor);
}

void le_walk_weighted_mean(const walk *w, double *mean)
{
  memset(mean, 0, w->d * sizeof(double));
  for (size_t i = 0; i < w->m; i++) le_add_scaled(w->d, w->weight[i], w->theta + i * w->d, mean);
}

void le_walk_labelled_mean(walk *w)
{
  le_walk_relabel_to_past(w);
  le_walk_weighted_mean(w, w->centre);
}

static void set_equal(walk *w, size_t m, double log_weight)
{
  w->m = m;
  for (size_t i = 0; i < m; i++) {
    w->log_weight[i] = log_weight;
    w->weight[i] = 1 / (double)m;
  }
}

void le_walk_resample(walk *w, size_t m)
{
  const size_t d = w->d;
  const le_resampling scheme = stage_of(w)->resampling;
  const double level = le_logmeanexp(w->log_weight, w->m);
  LE_SCRATCH(work, w->target.stack, w->m);
  le_resample(scheme, w->m, w->weight, m, w->machine.streams.rng[0], work, w->ancestor);
  for (size_t j = 0; j < m; j++)
    memcpy(w->swap + j * d, w->theta + w->ancestor[j] * d, d * sizeof(double));
  double *old = w->theta;
  w->theta = w->swap;
  w->swap = old;
  le_genealogy_resample(&w->genealogy, w->m, w->weight,
                        scheme == LE_MULTINOMIAL || scheme == LE_RESIDUAL, m, w->ancestor);
  set_equal(w, m, level);
}

void le_walk_resize(walk *w, size_t m)
{
  if (m != w->m) le_walk_resample(w, m);
}

void le_walk_begin_from(walk *w, double log_evidence, double variance)
{
  w->log_z_before = log_evidence;
  w->variance_before = variance;
  set_equal(w, w->m, 0);
  le_genealogy_start(&w->genealogy, w->m);
}

void le_walk_draw_particles(walk *w, const double *weight)
{
  const le_audit *a = &w->audit;
  const size_t m = stage_of(w)->particles, d = w->d;
  le_resample(LE_SYSTEMATIC, a->draws, weight, m, w->machine.streams.rng[0], NULL, w->ancestor);
  for (size_t j = 0; j < m; j++)
    memcpy(w->theta + j * d, a->theta + w->ancestor[j] * d, d * sizeof(double));
  w->m = m;
}

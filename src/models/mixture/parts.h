/* Types and functions shared by the files of the mixture; mixture.c describes the model. */
#pragma once

#include "models/products.h"

#include <gsl/gsl_rng.h>
#include <math.h>

#define MOST_COMPONENTS 64 /* small arrays over components are on the stack */

typedef struct mixture {
  size_t components, dimensions;
  le_simd simd;
  double mean_scale, shape, concentration;
  double weight_constant; /* of the Dirichlet prior */
  double scale_constant;  /* of the inverse gamma prior, the mean over columns */
  double *rate;           /* [component][dimension], the same for all components */
  double location[];      /* [dimension], then the rates */
} mixture;

static inline size_t dim(const void *self)
{
  const mixture *model = self;
  return model->components - 1 + 2 * model->components * model->dimensions;
}

/* The index of the first offset and of the first log-scale. */
static inline size_t offsets_at(const mixture *model) { return model->components - 1; }

static inline size_t scales_at(const mixture *model)
{
  return offsets_at(model) + model->components * model->dimensions;
}

/* The index of column c of component k: its log-ratio (the last component has none), its offsets,
 * its log-scales. */
static inline size_t place_of(const mixture *model, size_t k, size_t c)
{
  const size_t p = model->dimensions;
  return c == 0   ? k
         : c <= p ? offsets_at(model) + k * p + c - 1
                  : scales_at(model) + k * p + c - 1 - p;
}

/* That of the last component is 0. */
static inline double log_ratio(const mixture *model, const double *theta, size_t k)
{
  return k + 1 < model->components ? theta[k] : 0;
}

/* Columns of a component, and its moments: of its share, and two by dimension. */
static inline size_t columns_of(const mixture *model) { return 1 + 2 * model->dimensions; }

static inline double prior_count(const mixture *model)
{
  return 1 / (model->mean_scale * model->mean_scale);
}

/* ---- prior ---- */

/* Numbers processed at a time, on the stack. */
enum { TOGETHER = 64 };

/* Weights relative to the largest; returns their sum, and the log-ratio of the largest. */
double le_mixture_relative_weights(const mixture *model, const double *theta, double *out,
                                   double *sum);
/* Weights; and their logarithms. */
void le_mixture_weights(const mixture *model, const double *theta, double *out);
void le_mixture_log_weights(const mixture *model, const double *theta, double *out);
/* Adds count * (weight weight' - diag(weight)) to the block of the log-ratios. */
void le_mixture_add_weight_curvature(const mixture *model, const double *theta, double count,
                                     double *hess);
void le_mixture_log_prior(const void *self, size_t m, const double *theta, double *value);
void le_mixture_log_prior_grad(const void *self, size_t m, const double *theta, double *grad);
void le_mixture_log_prior_hess(const void *self, const double *theta, double *hess);
void le_mixture_draw_prior(const void *self, const gsl_rng *rng, double *theta);

/* ---- likelihood ---- */

/* Slopes with excesses are kept for several tiles at once, as long as they fit in the L2 cache. */
enum { SLOPES_MOST = 16384 };

typedef struct workspace {
  size_t n, p, components;
  size_t together;   /* tiles whose shares and derived quantities are kept */
  double mean_scale;
  double *y;         /* tiles of the observations minus the location */
  double *peak;      /* [component]: log of its weight and of its normalising constant */
  double *weight;    /* [component] */
  double *rate;      /* [component][dimension]: exp(-u/2) / sqrt(2) */
  double *minus;     /* [component][dimension]: -mean_scale t / sqrt(2) */
  double *st;        /* [component][dimension]: mean_scale t */
  /* [component][1 + 2 p]: sums of share, then of share z and of share z^2 by dimension */
  double *moments;
  /* tiles: log density of each component, then density over the largest, then responsibility */
  double *share;
  double *slope;     /* tiles: [component][1 + 2 p]: see derivatives.c */
  double *excess;
  double *sums;      /* [1 + 2 p][1 + 2 p]: of products of slopes */
} workspace;

/* The same for floats. */
typedef struct single_workspace {
  size_t n, p, components, together;
  float *y, *peak, *rate, *minus, *share;
  double *moments;
} single_workspace;

typedef struct kernels {
  void (*narrow)(size_t tiles, size_t columns, const double *from, float *to, double *largest);
  void (*moments_alone)(const single_workspace *w);
  void (*add_values)(const workspace *w, size_t from, int shares, double *lanes);
  void (*add_moments)(const workspace *w, size_t from);
  void (*derive)(const workspace *w, size_t from);
  void (*each)(const workspace *w, size_t t, double *value);
  void (*apart)(size_t n, double mean_scale, const double *t, const double *u,
                const double *other_t, const double *other_u, double *out);
} kernels;

/* For the variant that this instance uses. */
const kernels *le_mixture_kernels(const mixture *model);
/* Divides the scratch memory and fills the tiles with rows. */
workspace le_mixture_divide(const mixture *model, const le_rows *rows, double *scratch);
/* Computes what depends only on the particle, and sets the moments to zero. Without `values` all
 * densities may be multiplied by a common factor. */
void le_mixture_prepare(const mixture *model, const double *theta, int values, workspace *w);
/* Converts sums of z' to sums of z. */
void le_mixture_finish_moments(const mixture *model, workspace *w);
/* All this for one particle: sets the moments and returns the log-likelihood. */
double le_mixture_moments(const mixture *model, const double *theta, workspace *w);
/* Adds the gradient that follows from the moments of n rows. */
void le_mixture_add_gradient(const mixture *model, size_t n, const workspace *w, double *grad);
size_t le_mixture_scratch(const void *self, size_t particles, size_t rows);
/* `value` and `grad` may be NULL. */
le_status le_mixture_log_lik_grad(const void *self, size_t m, const double *theta,
                                  const le_rows *rows, double *value, double *grad,
                                  double *scratch);
le_status le_mixture_log_lik_each(const void *self, size_t m, const double *theta,
                                  const le_rows *rows, double *value, double *scratch);

/* ---- second derivatives, relabelling, starts, coordinates, variational Bayes ---- */

le_status le_mixture_log_lik_hess(const void *self, const double *theta, const le_rows *rows,
                                  double *grad, double *hess, double *scratch);
le_status le_mixture_information(const void *self, const double *theta, const le_rows *rows,
                                 double *info, double *scratch);
double le_mixture_log_symmetry(const void *self);
double le_mixture_log_orbit(const void *self, const double *theta);
int le_mixture_relabel(const void *self, const double *reference, double *theta);
void le_mixture_start(const void *self, const le_rows *rows, const gsl_rng *rng, double *theta,
                      double *scratch);
size_t le_mixture_start_scratch(const void *self, size_t n);
double le_mixture_to_normal(const void *self, const double *peak, const double *theta, double *out);
int le_mixture_from_normal(const void *self, const double *peak, double *point);
extern const le_variational_ops le_mixture_variational;
extern const le_partition_ops le_mixture_partitions;

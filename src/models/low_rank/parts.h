/* Functions shared by the files of low_rank. */
#ifndef LE_MODELS_LOW_RANK_PARTS_H
#define LE_MODELS_LOW_RANK_PARTS_H

#include "base/linalg.h"
#include "models/latent_shared.h"

enum { ROWS, COLUMNS, NOISE, FACTORS };

typedef struct low_rank {
  le_gaussian_prior gaussian;
  double row_sd;
  size_t k;
} low_rank;

static inline size_t size(const void *self, size_t n)
{
  const low_rank *model = self;
  return FACTORS + model->k * (model->gaussian.width + n);
}

static inline double *columns_of(double *state) { return state + FACTORS; }
static inline double *rows_of(const low_rank *model, double *state)
{
  return state + FACTORS + model->k * model->gaussian.width;
}

static inline double sum_squares(const double *x, size_t n) { return le_dot(x, x, n); }

/* The conditional distribution of one kind of vector given the other: x has precision P = I /
 * variance + weight * A A', where A holds the k x n regressors, `across` apart along k and `along`
 * apart along n. Writes the Cholesky factor of P to the beginning of scratch. */
void le_low_rank_factorise(size_t k, size_t n, const double *a, size_t across, size_t along,
                           double variance, double weight, double *factor);
/* With b = weight * A y, writes the mean P^-1 b to `mean`. */
void le_low_rank_regress(size_t k, size_t n, const double *a, size_t across, size_t along,
                         const double *y, size_t stride, double weight, const double *factor,
                         double *b, double *mean);
/* log p(rows | V) at lambda without its constant, from V V' and V Y' Y V', which are in scratch
 * after the space for a factor. */
double le_low_rank_log_lik_columns(const void *self, size_t seen, const le_rows *rows,
                                   double lambda, const double *state, double *scratch);
void le_low_rank_prepare_columns(const low_rank *model, size_t seen, const le_rows *rows,
                                 double *state, double *scratch);
void le_low_rank_start(const void *self, const gsl_rng *rng, double *state);

extern const le_latent_ops le_low_rank_states;
extern const le_variational_ops le_low_rank_variational, le_low_rank_maximum;

#endif

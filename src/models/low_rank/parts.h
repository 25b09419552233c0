/* Functions shared by the files of low_rank. */
#pragma once

#include "base/linalg.h"
#include "models/latent_shared.h"

enum { ROWS, COLUMNS, NOISE, FACTORS };

typedef struct low_rank {
  le_gaussian_prior gaussian;
  size_t k;
} low_rank;

static inline double *columns_of(double *state) { return state + FACTORS; }
static inline double *rows_of(const low_rank *model, double *state)
{
  return state + FACTORS + model->k * model->gaussian.width;
}

static inline double sum_squares(const double *x, size_t n) { return le_dot(x, x, n); }

/* n vectors of length k: `across` apart along k and `along` apart along n. */
typedef struct vectors {
  size_t k, n, across, along;
  double *values;
} vectors;

/* Those of one kind, ROWS of U or COLUMNS of V. */
static inline vectors vectors_of(int which, size_t k, size_t n, double *values)
{
  return which == ROWS ? (vectors){k, n, 1, k, values} : (vectors){k, n, n, 1, values};
}

/* out = sum of a a' over the vectors, plus n times a covariance unless this is NULL. */
void le_low_rank_moments(vectors a, const double *covariance, double *out);
/* The conditional distribution of one kind of vector given the other: x has precision P = precision
 * I + weight * A A', where A holds the others. Replaces A A' by the Cholesky factor of P, which
 * exists by construction if A A' is finite. */
le_status le_low_rank_factorise(size_t k, double precision, double weight, double *moments);
/* Of x number i of the kind `which`, with b = weight * A y: writes the mean P^-1 b to `mean`. */
void le_low_rank_regress(vectors a, const le_rows *rows, int which, size_t i, double weight,
                         const double *factor, double *b, double *mean);
/* The sum of squared residuals of the rows from `from` on, which are written to `out` unless it is
 * NULL. */
double le_low_rank_residual_squares(size_t k, const le_rows *rows, size_t from, const double *u,
                                    const double *v, double *out);
/* log p(rows | V) at lambda without its constant, from V V' and V Y' Y V', which are in scratch
 * after the space for a factor. */
double le_low_rank_log_lik_columns(const void *self, const le_chain *chain);
void le_low_rank_prepare_columns(const low_rank *model, const le_chain *chain);
void le_low_rank_start(const void *self, const gsl_rng *rng, double *state);
size_t le_low_rank_size(const void *self, size_t n);

extern const le_latent_ops le_low_rank_states;
extern const le_variational_ops le_low_rank_variational, le_low_rank_maximum;

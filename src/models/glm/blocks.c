/* Blocks of rows of a linear regression as triangular factors of their rows, which are joined by
 * reflections: products of covariates, which lose digits, are not formed. */
#include "models/glm/exact.h"

#include <math.h>

typedef struct block {
  double count;
  double squares, total, lost, lost_total; /* as in le_reflections */
  double numbers[]; /* the factor; room for rows that are added, and for a copy of the factor */
} block;

static size_t width_of(const void *self)
{
  return ((const glm *)self)->covariates + 1;
}

static size_t size(const void *self)
{
  const size_t width = width_of(self);
  return sizeof(block) / sizeof(double) + 3 * width * width;
}

static size_t tables(const void *self, size_t n)
{
  (void)self, (void)n;
  return 0;
}

static void prepare(const void *self, const le_rows *rows, double *table)
{
  (void)self, (void)rows, (void)table;
}

static le_reflections reflections(const glm *model, block *b)
{
  const size_t p = model->covariates;
  return (le_reflections){.p = p, .factor = b->numbers, .columns = b->numbers + p * (p + 1),
                          .squares = b->squares, .total = b->total, .lost = b->lost,
                          .lost_total = b->lost_total};
}

/* Adds the n rows in the room for them. */
static void reflect(const glm *model, size_t n, block *b)
{
  le_reflections r = reflections(model, b);
  le_reflect(&r, n);
  b->squares = r.squares;
  b->total = r.total;
  b->lost = r.lost;
  b->lost_total = r.lost_total;
}

static void clear(const void *self, const double *table, double *own)
{
  (void)table;
  memset(own, 0, size(self) * sizeof(double));
}

static void add(const void *self, const double *table, const double *row, double sign, double *own)
{
  block *b = (block *)own;
  (void)table, (void)sign;
  le_glm_standardise(self, 1, row, reflections(self, b).columns);
  b->count++;
  reflect(self, 1, b);
}

static void join(const void *self, const double *table, const double *other, double *own)
{
  const glm *model = self;
  const size_t p = model->covariates;
  const block *from = (const block *)other;
  block *b = (block *)own;
  double *columns = reflections(model, b).columns;
  (void)table;
  for (size_t k = 0; k <= p; k++)
    for (size_t j = 0; j < p; j++)
      columns[k * p + j] = k < j ? 0 : from->numbers[j * (p + 1) + k];
  b->count += from->count;
  reflect(model, p, b);
  b->squares += from->squares;
  b->total += from->squares;
}

/* The factor of the posterior: if sigma is known the prior is that of p further rows. These are
 * added to a copy, in the room of the block. */
static le_reflections posterior(const glm *model, const double *own)
{
  const size_t p = model->covariates;
  le_reflections r = reflections(model, (block *)own);
  if (model->family->further) return r;
  double *copy = r.columns + p * (p + 1) + 1;
  memcpy(copy, r.factor, p * (p + 1) * sizeof(double));
  memset(r.columns, 0, p * (p + 1) * sizeof(double));
  for (size_t j = 0; j < p; j++) r.columns[j * p + j] = model->known;
  r.factor = copy;
  le_reflect(&r, p);
  return r;
}

static double log_evidence(const void *self, const double *table, const double *own)
{
  const le_reflections r = posterior(self, own);
  double value;
  (void)table;
  return le_glm_exact_fit(self, (size_t)*own, &r, &value) == LE_OK ? value : NAN;
}

static size_t dim(const void *self, size_t components)
{
  const glm *model = self;
  return le_glm_closed(model) && components == 1 ? model->priors.d : 0;
}

static void draw(const void *self, const double *table, size_t components, size_t t,
                 const double *const *own, const gsl_rng *rng, double *theta, double *scratch)
{
  const le_reflections r = posterior(self, own[0]);
  (void)table, (void)components, (void)t, (void)scratch;
  if (le_glm_exact_point(self, (size_t)*own[0], &r, rng, theta) != LE_OK)
    for (size_t j = 0; j < ((const glm *)self)->priors.d; j++) theta[j] = NAN;
}

const le_partition_ops le_glm_blocks = {
  .size = size, .tables = tables, .prepare = prepare, .clear = clear, .add = add, .join = join,
  .log_evidence = log_evidence, .dim = dim, .draw = draw};

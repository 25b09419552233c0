/* A mixture as partitions of the rows: the evidence of a block, and draws of the parameters given
 * the blocks.
 *
 * A block of n rows has in each column a normal-inverse-gamma posterior. With k = 1/mean_scale^2 +
 * n and a = shape + n/2 for all columns, and a rate b and a centre for each,
 *
 *   m = prod over columns of (k_0 / k)^(1/2) rate^shape Gamma(a) / Gamma(shape) b^-a
 *       (2 pi)^(-n/2),
 *
 * and a further row has Student's t density, prod of (1 + x)^-(a + 1/2) with x = (y - centre)^2 k
 * / (2 b (k + 1)). All columns have the same exponent, so one logarithm of a product is enough.
 *
 * Columns are taken relative to their means, so that sums of squares lose no digits. A block:
 * number of rows, sum of the logs of the rates, constant and exponent of the density, and for each
 * column sum, sum of squares, centre, and the factor of (y - centre)^2 in x. Tables: means of the
 * columns, locations relative to them, and for each number of rows the parts of log m and of the
 * log density that depend on it alone, side by side. */
#include "models/mixture/parts.h"

#include "models/variational_shared.h"

#include <gsl/gsl_randist.h>

enum { COUNT, LOG_RATES, CONSTANT, EXPONENT, SUMS };

/* A product of more than this is replaced by its logarithm. */
static const double PRODUCT_MOST = 1e200;

typedef struct columns {
  double *sum, *square, *centre, *factor;
} columns;

static columns columns_of(const mixture *model, const double *block)
{
  const size_t p = model->dimensions;
  double *first = (double *)(size_t)block + SUMS;
  return (columns){first, first + p, first + 2 * p, first + 3 * p};
}

static size_t size(const void *self) { return SUMS + 4 * ((const mixture *)self)->dimensions; }

static size_t table_size(const void *self, size_t n)
{
  return 2 * ((const mixture *)self)->dimensions + 2 * (n + 2);
}

static double prior_count(const mixture *model)
{
  return 1 / (model->mean_scale * model->mean_scale);
}

static const double *constants(const mixture *model, const double *tables, double count)
{
  return tables + 2 * model->dimensions + 2 * (size_t)count;
}

static void prepare(const void *self, const le_rows *rows, double *tables)
{
  const mixture *model = self;
  const size_t p = model->dimensions, n = rows->n;
  double *mean = tables, *location = tables + p, *by_count = tables + 2 * p;
  memset(mean, 0, p * sizeof(double));
  for (size_t i = 0; i < n; i++)
    for (size_t j = 0; j < p; j++) mean[j] += rows->values[i * p + j] / (double)n;
  for (size_t j = 0; j < p; j++) location[j] = model->location[j] - mean[j];
  for (size_t c = 0; c < n + 2; c++) {
    const double count = prior_count(model) + (double)c, shape = model->shape + 0.5 * (double)c;
    by_count[2 * c] = (double)p * (model->scale_constant + lgamma(shape) -
                                   0.5 * log(count / prior_count(model)) -
                                   (double)c * HALF_LOG_2PI);
    by_count[2 * c + 1] = (double)p * (lgamma(shape + 0.5) - lgamma(shape) - HALF_LOG_2PI +
                                       0.5 * log(count / (count + 1)));
  }
}

/* The rate of a column given its sums; sets its centre. */
static double rate_of(const mixture *model, double n, double location, double sum, double square,
                      double *centre)
{
  const double before = prior_count(model), count = before + n;
  *centre = (before * location + sum) / count;
  if (n == 0) return model->rate;
  const double mean = sum / n, within = square - sum * mean, off = mean - location;
  return model->rate + 0.5 * ((within > 0 ? within : 0) + before * n / count * off * off);
}

/* Sets what follows from the sums. */
static void complete(const mixture *model, const double *tables, double *block)
{
  const size_t p = model->dimensions;
  const columns c = columns_of(model, block);
  const double n = block[COUNT], count = prior_count(model) + n, ratio = 0.5 * count / (count + 1);
  double product = 1, logs = 0;
  for (size_t j = 0; j < p; j++) {
    const double rate = rate_of(model, n, tables[p + j], c.sum[j], c.square[j], &c.centre[j]);
    c.factor[j] = ratio / rate;
    product *= rate;
    if (product < PRODUCT_MOST && product > 1 / PRODUCT_MOST) continue;
    logs += log(product);
    product = 1;
  }
  block[LOG_RATES] = logs + log(product);
  block[EXPONENT] = model->shape + 0.5 * n + 0.5;
  block[CONSTANT] = constants(model, tables, n)[1] - 0.5 * block[LOG_RATES];
}

static void clear(const void *self, const double *tables, double *block)
{
  memset(block, 0, size(self) * sizeof(double));
  complete(self, tables, block);
}

static void add(const void *self, const double *tables, const double *row, double sign,
                double *block)
{
  const mixture *model = self;
  const columns c = columns_of(model, block);
  block[COUNT] += sign;
  for (size_t j = 0; j < model->dimensions; j++) {
    const double y = row[j] - tables[j];
    c.sum[j] += sign * y;
    c.square[j] += sign * y * y;
  }
  complete(model, tables, block);
}

static void join(const void *self, const double *tables, const double *other, double *block)
{
  const size_t p = ((const mixture *)self)->dimensions;
  block[COUNT] += other[COUNT];
  for (size_t j = 0; j < 2 * p; j++) block[SUMS + j] += other[SUMS + j]; /* sums and squares */
  complete(self, tables, block);
}

static double log_evidence(const void *self, const double *tables, const double *block)
{
  const mixture *model = self;
  return constants(model, tables, block[COUNT])[0] -
         (model->shape + 0.5 * block[COUNT]) * block[LOG_RATES];
}

static double log_density(const void *self, const double *tables, const double *row,
                          const double *block)
{
  const mixture *model = self;
  const columns c = columns_of(model, block);
  double product = 1, logs = 0;
  for (size_t j = 0; j < model->dimensions; j++) {
    const double off = row[j] - tables[j] - c.centre[j];
    product *= 1 + off * off * c.factor[j];
    if (product < PRODUCT_MOST) continue;
    logs += log(product);
    product = 1;
  }
  return block[CONSTANT] - block[EXPONENT] * (logs + log(product));
}

/* With Dirichlet weights integrated out, the labels have density
 * Gamma(K alpha) / Gamma(n + K alpha) prod_b Gamma(n_b + alpha) / Gamma(alpha). */
static double log_size(const void *self, size_t rows)
{
  const mixture *model = self;
  return lgamma((double)rows + model->concentration) - lgamma(model->concentration);
}

static double log_labellings(const void *self, size_t components, size_t n, size_t t)
{
  const mixture *model = self;
  if (t > components) return -INFINITY;
  const double k = (double)components, sum = k * model->concentration;
  return lgamma(k + 1) - lgamma(k - (double)t + 1) + lgamma(sum) - lgamma((double)n + sum);
}

static size_t dim_of(const void *self, size_t components)
{
  return components - 1 + 2 * components * ((const mixture *)self)->dimensions;
}

/* log of a variance given its shape and rate, and of a weight given its count: draws, or without
 * rng typical values. */
static double log_variance(const gsl_rng *rng, double shape, double rate)
{
  return log(rate) - (rng ? le_draw_log_gamma(rng, shape) : log(shape));
}

static void draw(const void *self, const double *tables, size_t components, size_t t,
                 const double *const *block, const gsl_rng *rng, double *theta, double *scratch)
{
  const mixture *model = self;
  const size_t p = model->dimensions;
  double *offset = theta + components - 1, *scale = offset + components * p;
  for (size_t k = 0; k < components; k++) {
    const double n = k < t ? block[k][COUNT] : 0, count = prior_count(model) + n;
    scratch[k] = rng ? le_draw_log_gamma(rng, model->concentration + n)
                     : log(model->concentration + n);
    for (size_t j = 0; j < p; j++) {
      const double location = tables[p + j];
      double centre, sum = 0, square = 0;
      if (k < t) {
        const columns c = columns_of(model, block[k]);
        sum = c.sum[j];
        square = c.square[j];
      }
      const double rate = rate_of(model, n, location, sum, square, &centre);
      const double u = log_variance(rng, model->shape + 0.5 * n, rate);
      const double noise = rng ? gsl_ran_gaussian_ziggurat(rng, 1 / sqrt(count)) : 0;
      scale[k * p + j] = u;
      offset[k * p + j] = ((centre - location) * exp(-0.5 * u) + noise) / model->mean_scale;
    }
  }
  for (size_t k = 0; k + 1 < components; k++) theta[k] = scratch[k] - scratch[components - 1];
}

const le_partition_ops le_mixture_partitions = {
  .size = size,
  .tables = table_size,
  .prepare = prepare,
  .clear = clear,
  .add = add,
  .join = join,
  .log_evidence = log_evidence,
  .log_density = log_density,
  .log_size = log_size,
  .log_labellings = log_labellings,
  .dim = dim_of,
  .draw = draw,
};

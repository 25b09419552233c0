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
 * Columns are taken relative to their means, so that sums of squares lose no digits. Tables: the
 * number of rows, means of the columns, locations relative to them, and for each number of rows the
 * parts of log m and of the log density that depend on it alone, side by side. */
#include "models/mixture/parts.h"

#include "models/variational_shared.h"

#include <gsl/gsl_randist.h>

/* A product of more than this is replaced by its logarithm. */
static const double PRODUCT_MOST = 1e200;

typedef struct column {
  double sum, square, centre;
  double factor; /* of (y - centre)^2 in x */
} column;

typedef struct block {
  double count, log_rates;   /* the number of rows, and the sum of the logs of the rates */
  double constant, exponent; /* of the density */
  column column[];
} block;

static size_t size(const void *self)
{
  const size_t p = ((const mixture *)self)->dimensions;
  return (sizeof(block) + p * sizeof(column)) / sizeof(double);
}

static size_t table_size(const void *self, size_t n)
{
  return 1 + 2 * ((const mixture *)self)->dimensions + 2 * (n + 2);
}

/* What depends on the number of rows alone: `which` is 0 for log m, 1 for the density. */
static double constant_of(const mixture *model, double rows, int which)
{
  const double p = (double)model->dimensions, count = prior_count(model) + rows,
               shape = model->shape + 0.5 * rows;
  if (which == 0)
    return p * (model->scale_constant + lgamma(shape) - 0.5 * log(count / prior_count(model)) -
                rows * HALF_LOG_2PI);
  return p * (lgamma(shape + 0.5) - lgamma(shape) - HALF_LOG_2PI + 0.5 * log(count / (count + 1)));
}

/* From the table; a stream has more rows than were there when it was made. */
static double constant(const mixture *model, const double *tables, double rows, int which)
{
  if (rows > tables[0] + 1) return constant_of(model, rows, which);
  return tables[1 + 2 * model->dimensions + 2 * (size_t)rows + (size_t)which];
}

static const double *means(const double *tables) { return tables + 1; }

static const double *locations(const mixture *model, const double *tables)
{
  return tables + 1 + model->dimensions;
}

static void prepare(const void *self, const le_rows *rows, double *tables)
{
  const mixture *model = self;
  const size_t p = model->dimensions, n = rows->n;
  double *mean = tables + 1, *location = mean + p, *by_count = location + p;
  tables[0] = (double)n;
  memset(mean, 0, p * sizeof(double));
  for (size_t i = 0; i < n; i++)
    for (size_t j = 0; j < p; j++) mean[j] += rows->values[i * p + j] / (double)n;
  for (size_t j = 0; j < p; j++) location[j] = model->location[j] - mean[j];
  for (size_t c = 0; c < n + 2; c++)
    for (int which = 0; which < 2; which++)
      by_count[2 * c + (size_t)which] = constant_of(model, (double)c, which);
}

/* Sets the centre given the sums, and returns the rate. */
static double rate_of(const mixture *model, double n, double location, column *c)
{
  const double before = prior_count(model), count = before + n;
  c->centre = (before * location + c->sum) / count;
  if (n == 0) return model->rate;
  const double mean = c->sum / n, within = c->square - c->sum * mean, off = mean - location;
  return model->rate + 0.5 * ((within > 0 ? within : 0) + before * n / count * off * off);
}

/* Sets what follows from the sums. */
static void complete(const mixture *model, const double *tables, block *b)
{
  const size_t p = model->dimensions;
  const double n = b->count, count = prior_count(model) + n, ratio = 0.5 * count / (count + 1);
  double product = 1, logs = 0;
  for (size_t j = 0; j < p; j++) {
    const double rate = rate_of(model, n, locations(model, tables)[j], &b->column[j]);
    b->column[j].factor = ratio / rate;
    product *= rate;
    if (product < PRODUCT_MOST && product > 1 / PRODUCT_MOST) continue;
    logs += log(product);
    product = 1;
  }
  b->log_rates = logs + log(product);
  b->exponent = model->shape + 0.5 * n + 0.5;
  b->constant = constant(model, tables, n, 1) - 0.5 * b->log_rates;
}

static void clear(const void *self, const double *tables, double *own)
{
  memset(own, 0, size(self) * sizeof(double));
  complete(self, tables, (block *)own);
}

static void add(const void *self, const double *tables, const double *row, double sign,
                double *own)
{
  const mixture *model = self;
  block *b = (block *)own;
  b->count += sign;
  for (size_t j = 0; j < model->dimensions; j++) {
    const double y = row[j] - means(tables)[j];
    b->column[j].sum += sign * y;
    b->column[j].square += sign * y * y;
  }
  complete(model, tables, b);
}

static void join(const void *self, const double *tables, const double *other, double *own)
{
  const mixture *model = self;
  const block *from = (const block *)other;
  block *b = (block *)own;
  b->count += from->count;
  for (size_t j = 0; j < model->dimensions; j++) {
    b->column[j].sum += from->column[j].sum;
    b->column[j].square += from->column[j].square;
  }
  complete(model, tables, b);
}

static double log_evidence(const void *self, const double *tables, const double *own)
{
  const mixture *model = self;
  const block *b = (const block *)own;
  return constant(model, tables, b->count, 0) - (model->shape + 0.5 * b->count) * b->log_rates;
}

static double log_density(const void *self, const double *tables, const double *row,
                          const double *own)
{
  const mixture *model = self;
  const block *b = (const block *)own;
  double product = 1, logs = 0;
  for (size_t j = 0; j < model->dimensions; j++) {
    const double off = row[j] - means(tables)[j] - b->column[j].centre;
    product *= 1 + off * off * b->column[j].factor;
    if (product < PRODUCT_MOST) continue;
    logs += log(product);
    product = 1;
  }
  return b->constant - b->exponent * (logs + log(product));
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

/* A draw, or without rng a typical value. */
static double log_gamma(const gsl_rng *rng, double shape)
{
  return rng ? le_draw_log_gamma(rng, shape) : log(shape);
}

static void draw(const void *self, const double *tables, size_t components, size_t t,
                 const double *const *own, const gsl_rng *rng, double *theta, double *scratch)
{
  const mixture *model = self;
  const size_t p = model->dimensions;
  double *offset = theta + components - 1, *scale = offset + components * p;
  for (size_t k = 0; k < components; k++) {
    const block *b = k < t ? (const block *)own[k] : NULL;
    const double n = b ? b->count : 0, count = prior_count(model) + n;
    scratch[k] = log_gamma(rng, model->concentration + n);
    for (size_t j = 0; j < p; j++, offset++, scale++) {
      const double location = locations(model, tables)[j];
      column c = b ? b->column[j] : (column){0};
      const double rate = rate_of(model, n, location, &c);
      *scale = log(rate) - log_gamma(rng, model->shape + 0.5 * n);
      const double noise = rng ? gsl_ran_gaussian_ziggurat(rng, 1 / sqrt(count)) : 0;
      *offset = ((c.centre - location) * exp(-0.5 * *scale) + noise) / model->mean_scale;
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

/* A mixture as partitions of the rows: the evidence of a block, and draws of the parameters given
 * the blocks.
 *
 * A block of n rows has in each column a normal-inverse-gamma posterior. With k = 1/mean_scale^2 +
 * n and a = shape + n/2 for all columns, and a rate b and a centre for each,
 *
 *   m = prod over columns of (k_0 / k)^(1/2) rate^shape Gamma(a) / Gamma(shape) b^-a
 *       (2 pi)^(-n/2),
 *
 * and a further row has Student's t density
 *
 *   m(rows and y) / m(rows) = constant(n) prod b^a b_y^-(a + 1/2)
 *
 * with b_y = b + (y - centre)^2 k / (2 (k + 1)), the rate with the row. All columns have the same
 * exponents, so one logarithm of each product is enough.
 *
 * Columns are taken relative to their means, so that sums of squares lose no digits. Tables: the
 * number of rows, means of the columns, locations relative to them, and what depends on the number
 * of rows in a block alone. */
#include "base/logsum.h"
#include "models/mixture/parts.h"
#include "models/variational_shared.h"

#include <gsl/gsl_randist.h>

/* A product beyond this, or below its inverse, is replaced by its logarithm. */
static const double PRODUCT_MOST = 1e200;

typedef struct column {
  double sum, square, centre, rate;
} column;

typedef struct block {
  double count, log_rates; /* the number of rows, and the sum of the logs of the rates */
  double constant, ratio;  /* of the density, with log_rates; k / (2 (k + 1)) */
  column column[];
} block;

/* What depends on the number of rows alone. */
typedef struct size_part {
  double log_evidence, log_density; /* their constants */
  double inverse, inverse_count;    /* 1 / n (0 for no row), 1 / k */
  double before;                    /* k_0 */
  double ratio, shrinkage;          /* k / (2 (k + 1)), k_0 n / k */
} size_part;

static size_t size(const void *self)
{
  const size_t p = ((const mixture *)self)->dimensions;
  return (sizeof(block) + p * sizeof(column)) / sizeof(double);
}

static size_t table_size(const void *self, size_t n)
{
  return 1 + 2 * ((const mixture *)self)->dimensions + (n + 2) * sizeof(size_part) / sizeof(double);
}

static size_part size_part_of(const mixture *model, double n)
{
  const double p = (double)model->dimensions, before = prior_count(model), count = before + n,
               shape = model->shape + 0.5 * n;
  return (size_part){
    .log_evidence = p * (model->scale_constant + lgamma(shape) - 0.5 * log(count / before) -
                         n * HALF_LOG_2PI),
    .log_density = p * (lgamma(shape + 0.5) - lgamma(shape) - HALF_LOG_2PI +
                        0.5 * log(count / (count + 1))),
    .inverse = n > 0 ? 1 / n : 0, .inverse_count = 1 / count, .before = before,
    .ratio = 0.5 * count / (count + 1), .shrinkage = before * n / count};
}

static const double *means(const double *tables) { return tables + 1; }

static const double *locations(const mixture *model, const double *tables)
{
  return tables + 1 + model->dimensions;
}

/* From the table, or set in `beyond`: a stream has more rows than were there when it was made. */
static const size_part *size_part_at(const mixture *model, const double *tables, double n,
                                     size_part *beyond)
{
  const size_part *table = (const size_part *)(locations(model, tables) + model->dimensions);
  if (n <= tables[0] + 1) return table + (size_t)n;
  *beyond = size_part_of(model, n);
  return beyond;
}

static void prepare(const void *self, const le_rows *rows, double *tables)
{
  const mixture *model = self;
  const size_t p = model->dimensions, n = rows->n;
  double *mean = tables + 1, *location = mean + p;
  size_part *by_count = (size_part *)(location + p);
  tables[0] = (double)n;
  memset(mean, 0, p * sizeof(double));
  for (size_t i = 0; i < n; i++)
    for (size_t j = 0; j < p; j++) mean[j] += rows->values[i * p + j] / (double)n;
  for (size_t j = 0; j < p; j++) location[j] = model->location[j] - mean[j];
  for (size_t c = 0; c < n + 2; c++) by_count[c] = size_part_of(model, (double)c);
}

/* Sets the centre and the rate given the sums of n rows. */
static void set_column(double prior_rate, const size_part *part, double location, column *c)
{
  const double mean = c->sum * part->inverse, within = c->square - c->sum * mean,
               off = mean - location;
  c->centre = (part->before * location + c->sum) * part->inverse_count;
  c->rate = prior_rate + 0.5 * ((within > 0 ? within : 0) + part->shrinkage * off * off);
}

/* Multiplies; a product that becomes too large or too small goes to `logs`. */
static void multiply(double factor, double *product, double *logs)
{
  *product *= factor;
  if (*product < PRODUCT_MOST && *product > 1 / PRODUCT_MOST) return;
  *logs += log(*product);
  *product = 1;
}

/* Sets what follows from the sums. */
static void complete(const mixture *model, const double *tables, block *b)
{
  size_part beyond;
  const size_part *part = size_part_at(model, tables, b->count, &beyond);
  double product = 1, logs = 0;
  for (size_t j = 0; j < model->dimensions; j++) {
    set_column(model->rate[j], part, locations(model, tables)[j], &b->column[j]);
    multiply(b->column[j].rate, &product, &logs);
  }
  b->ratio = part->ratio;
  b->log_rates = logs + log(product);
  b->constant = part->log_density + (model->shape + 0.5 * b->count) * b->log_rates;
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
  size_part beyond;
  return size_part_at(model, tables, b->count, &beyond)->log_evidence -
         (model->shape + 0.5 * b->count) * b->log_rates;
}

static void log_densities(const void *self, const double *tables, const double *row, size_t n,
                          const double *blocks, double *out)
{
  const mixture *model = self;
  const size_t p = model->dimensions, stride = size(self);
  for (size_t a = 0; a < n; a++, blocks += stride) {
    const block *b = (const block *)blocks;
    double product = 1, logs = 0;
    for (size_t j = 0; j < p; j++) {
      const double off = row[j] - means(tables)[j] - b->column[j].centre;
      multiply(b->column[j].rate + off * off * b->ratio, &product, &logs);
    }
    out[a] = b->constant - (model->shape + 0.5 * b->count + 0.5) * (logs + log(product));
  }
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
    size_part beyond;
    const size_part *part = size_part_at(model, tables, n, &beyond);
    scratch[k] = log_gamma(rng, model->concentration + n);
    for (size_t j = 0; j < p; j++, offset++, scale++) {
      const double location = locations(model, tables)[j];
      column c = b ? b->column[j] : (column){0};
      set_column(model->rate[j], part, location, &c);
      *scale = log(c.rate) - log_gamma(rng, model->shape + 0.5 * n);
      const double noise = rng ? gsl_ran_gaussian_ziggurat(rng, 1 / sqrt(count)) : 0;
      *offset = ((c.centre - location) * exp(-0.5 * *scale) + noise) / model->mean_scale;
    }
  }
  for (size_t k = 0; k + 1 < components; k++) theta[k] = scratch[k] - scratch[components - 1];
}

/* ---- densities as dot products ----
 *
 * Normal-inverse-gamma densities and normal ones belong to one exponential family: of the terms 1
 * and log weight, and in each column log v, 1 / v, m / v and m^2 / v, with the mean m relative to
 * that of the column, and the variance v. */

enum { CONSTANT, LOG_WEIGHT, SHARED, LOG_SCALE = 0, INVERSE, MEAN, SQUARE, BY_COLUMN };

static size_t terms(const void *self)
{
  return SHARED + BY_COLUMN * ((const mixture *)self)->dimensions;
}

static void component_terms(const void *self, const double *tables, size_t components,
                            const double *theta, double *out)
{
  const mixture *model = self;
  const size_t p = model->dimensions;
  const double *offset = theta + components - 1, *scale = offset + components * p;
  double ratio[MOST_COMPONENTS] = {0}; /* the last one is 0 */
  memcpy(ratio, theta, (components - 1) * sizeof(double));
  const double sum = le_logsumexp(ratio, components);
  for (size_t k = 0; k < components; k++) {
    out[CONSTANT] = 1;
    out[LOG_WEIGHT] = ratio[k] - sum;
    out += SHARED;
    for (size_t j = 0; j < p; j++, offset++, scale++, out += BY_COLUMN) {
      const double inverse = exp(-*scale),
                   mean = locations(model, tables)[j] +
                          model->mean_scale * *offset * exp(0.5 * *scale);
      out[LOG_SCALE] = *scale;
      out[INVERSE] = inverse;
      out[MEAN] = mean * inverse;
      out[SQUARE] = mean * mean * inverse;
    }
  }
}

static void row_terms(const void *self, const double *tables, const double *row, double *out)
{
  const size_t p = ((const mixture *)self)->dimensions;
  out[CONSTANT] = -HALF_LOG_2PI * (double)p;
  out[LOG_WEIGHT] = 1;
  out += SHARED;
  for (size_t j = 0; j < p; j++, out += BY_COLUMN) {
    const double y = row[j] - means(tables)[j];
    out[LOG_SCALE] = out[SQUARE] = -0.5;
    out[INVERSE] = -0.5 * y * y;
    out[MEAN] = y;
  }
}

static void block_terms(const void *self, const double *own, double *out)
{
  const mixture *model = self;
  const block *b = (const block *)own;
  const double count = prior_count(model) + b->count, shape = model->shape + 0.5 * b->count,
               constant = 0.5 * log(count) - HALF_LOG_2PI - lgamma(shape);
  double *sum = &out[CONSTANT];
  *sum = -log_size(self, (size_t)b->count);
  out[LOG_WEIGHT] = model->concentration + b->count - 1;
  out += SHARED;
  for (size_t j = 0; j < model->dimensions; j++, out += BY_COLUMN) {
    const double centre = b->column[j].centre, rate = b->column[j].rate;
    *sum += constant + shape * log(rate);
    out[LOG_SCALE] = -shape - 1.5;
    out[INVERSE] = -rate - 0.5 * count * centre * centre;
    out[MEAN] = count * centre;
    out[SQUARE] = -0.5 * count;
  }
}

const le_partition_ops le_mixture_partitions = {
  .size = size,
  .tables = table_size,
  .prepare = prepare,
  .clear = clear,
  .add = add,
  .join = join,
  .log_evidence = log_evidence,
  .log_densities = log_densities,
  .log_size = log_size,
  .log_labellings = log_labellings,
  .dim = dim_of,
  .draw = draw,
  .terms = terms,
  .component_terms = component_terms,
  .row_terms = row_terms,
  .block_terms = block_terms,
};

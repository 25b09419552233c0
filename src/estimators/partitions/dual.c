/* Dual importance sampling (Lee and Robert 2016): the evidence of K components from draws of the
 * parameters given kept partitions z_1 .. z_J. Under a random numbering of the components they have
 * the density
 *
 *     q(theta) = 1 / (J K!) sum_j sum over numberings of prod_c p(theta_c | block of c in z_j),
 *
 * which is near the posterior if the kept partitions are typical ones. The inner sum is the
 * permanent of a K x K matrix. No ladder is needed.
 *
 * What no chain has visited is missed. It is estimated as unseen species are (Chao 1984), with
 * chains as samples: if a part e of the posterior lies where only one chain has been, none has been
 * in about e^2 / 2. Measured by bench/components.R unseen, it was from a half to two thirds of that
 * for e from 0.15 to 0.5. */
#include "base/arrays.h"
#include "base/linalg.h"
#include "base/logsum.h"
#include "base/pareto.h"
#include "estimators/partitions/parts.h"

/* The draws are parts of the work, for threads: each has one from each kept partition. */
enum { PARTS = 8, DRAWS = DUAL_KEPT * PARTS };
/* So many permanents are computed side by side. */
enum { LANES = 8 };
/* Estimates with a smaller effective size, as a share of the draws, are not used. */
static const double SHARE_LEAST = 0.25;
/* A part of the draws has shown that it will be so. */
static const double SHARE_HOPELESS = 0.15;
/* Products of terms, of which there are a thousand million in less than a second. */
static const double WORK_MOST = 4e9;
/* A partition is left out of q if its part is smaller than the largest by about this logarithm (the
 * scaled permanent is at most K!). */
static const double TERM_LEAST = -20;

static size_t width(const partition_space *space) { return space->ops->terms(space->self); }

/* For so many components. */
static size_t scratch_of_part(const partition_space *space, size_t components)
{
  const size_t rows = components * (space->rows.n + LE_ALIGN_MORE),
               blocks = components * components * DUAL_KEPT;
  return (rows > blocks ? rows : blocks) + space->rows.n + ((size_t)LANES << components);
}

/* With many columns and rows it would take longer than the chains do. */
static int is_affordable(const partition_space *space, size_t components)
{
  return (double)(width(space) * components * (space->rows.n + components * DUAL_KEPT)) <
         WORK_MOST / DRAWS;
}

/* The largest number of components, at most this; 0 if the model has no such densities. */
static size_t most_of(const partition_space *space, size_t wanted)
{
  const size_t most = space->most < DUAL_MOST ? space->most : DUAL_MOST;
  size_t k = space->ops->terms ? (wanted < most ? wanted : most) : 0;
  while (k > 0 && !is_affordable(space, k)) k--;
  return k;
}

void le_dual_alloc(partition_dual *dual, const partition_space *space, le_arena *arena)
{
  const size_t most = dual->most = most_of(space, dual->most), n = space->rows.n;
  if (most == 0) return;
  const size_t terms = width(space);
  dual->space = space;
  dual->row = le_arena_scratch(arena, terms * n, sizeof(double));
  dual->block = le_arena_scratch(arena, terms * DUAL_KEPT * most, sizeof(double));
  dual->prior = le_arena_doubles(arena, terms);
  dual->component = le_arena_scratch(arena, DRAWS * most * terms, sizeof(double));
  dual->log_weight = le_arena_doubles(arena, DRAWS);
  dual->share = le_arena_doubles(arena, DRAWS);
  dual->from = le_arena_indices(arena, DUAL_KEPT);
  dual->work = le_arena_doubles(arena, 2 * DRAWS);
  dual->theta = le_arena_doubles(arena, space->ops->dim(space->self, most) + most + terms);
  dual->scratch = le_arena_scratch(arena, PARTS * scratch_of_part(space, most), sizeof(double));
}

/* Terms of rows or blocks lie column by column, so that sums over terms are sums of vectors. */
static void scatter(const double *value, size_t terms, size_t stride, size_t at, double *out)
{
  for (size_t s = 0; s < terms; s++) out[s * stride + at] = value[s];
}

void le_dual_begin(partition_dual *dual, size_t components)
{
  const partition_space *space = dual->space;
  const size_t terms = width(space);
  double *value = dual->theta;
  dual->components = components;
  space->ops->block_terms(space->self, space->empty, dual->prior);
  for (size_t i = 0; i < space->rows.n; i++) {
    space->ops->row_terms(space->self, space->tables,
                          space->rows.values + i * space->rows.width, value);
    scatter(value, terms, space->rows.n, i, dual->row);
  }
}

void le_dual_add(partition_dual *dual, size_t at, size_t from, size_t t, const double *const *block,
                 const gsl_rng *rng)
{
  const partition_space *space = dual->space;
  const size_t k = dual->components, terms = width(space);
  dual->from[at] = from;
  double *theta = dual->theta, *value = theta + space->ops->dim(space->self, k), *scratch = value;
  for (size_t a = 0; a < k; a++) {
    space->ops->block_terms(space->self, a < t ? block[a] : space->empty, value);
    scatter(value, terms, k * DUAL_KEPT, at * k + a, dual->block);
  }
  for (size_t part = 0; part < PARTS; part++) {
    space->ops->draw(space->self, space->tables, k, t, block, rng, theta, scratch);
    space->ops->component_terms(space->self, space->tables, k, theta,
                                dual->component + (part * DUAL_KEPT + at) * k * terms);
  }
}

/* out[n]: dot products of one component with n rows or blocks */
static void products(const double *component, size_t terms, size_t n, const double *of, double *out)
{
  memset(out, 0, n * sizeof(double));
  for (size_t s = 0; s < terms; s++) le_add_scaled(n, component[s], of + s * n, out);
}

/* The sum over rows of the log density of the mixture. */
static double log_likelihood(const partition_dual *dual, const double *component, double *scratch)
{
  const le_array_functions *arrays = le_arrays(le_simd_level());
  const size_t k = dual->components, terms = width(dual->space), n = dual->space->rows.n;
  double *top = scratch, *each = top + n, sum = 0;
  for (size_t c = 0; c < k; c++) {
    products(component + c * terms, terms, n, dual->row, each + c * n);
    for (size_t i = 0; i < n; i++)
      if (c == 0 || each[c * n + i] > top[i]) top[i] = each[c * n + i];
  }
  for (size_t c = 0; c < k; c++)
    for (size_t i = 0; i < n; i++) each[c * n + i] -= top[i];
  arrays->exp(k * n, 1, 0, each, each);
  for (size_t c = 1; c < k; c++)
    for (size_t i = 0; i < n; i++) each[i] += each[c * n + i];
  arrays->log(n, each, each);
  for (size_t i = 0; i < n; i++) sum += each[i] + top[i];
  return sum;
}

/* [set]: how many columns are in it */
#define TWICE(n) n, n + 1
#define FOUR(n) TWICE(n), TWICE(n + 1)
#define EIGHT(n) FOUR(n), FOUR(n + 1)
#define SIXTEEN(n) EIGHT(n), EIGHT(n + 1)
#define MANY(n) SIXTEEN(n), SIXTEEN(n + 1)
static const unsigned char ROWS_OF[1 << DUAL_MOST] = {MANY(0), MANY(1)};

/* Subtracts the largest number of each row (step 1) or column (step k) of a k x k matrix; returns
 * their sum. */
static double scale(size_t k, size_t step, double *entry)
{
  const size_t across = step == 1 ? k : 1;
  double sum = 0;
  for (size_t c = 0; c < k; c++) {
    double *own = entry + c * across, top = own[0];
    for (size_t l = 1; l < k; l++) top = own[l * step] > top ? own[l * step] : top;
    for (size_t l = 0; l < k; l++) own[l * step] -= top;
    sum += top;
  }
  return sum;
}

static void add_products(double *restrict to, const double *restrict a, const double *restrict b)
{
  for (size_t lane = 0; lane < LANES; lane++) to[lane] += a[lane] * b[lane];
}

/* Parts of the density q: matrices of logs, entry[row][column][lane], whose largest numbers have
 * been subtracted (`bound` is their sum). */
typedef struct q_parts {
  size_t n;
  double entry[DUAL_MOST * DUAL_MOST * LANES], bound[LANES];
  int is_same[LANES]; /* from the chain of the partition that the point was drawn from */
} q_parts;

/* A sum relative to the largest part so far. */
typedef struct q_sum {
  double most, sum, same;
} q_sum;

static int matters(const q_sum *q, double log_part) { return log_part > q->most + TERM_LEAST; }

static void add_part(q_sum *q, double log_part, int is_same)
{
  if (!(log_part > -INFINITY)) return;
  if (log_part > q->most) {
    const double factor = exp(q->most - log_part);
    q->sum *= factor;
    q->same *= factor;
    q->most = log_part;
  }
  const double part = exp(log_part - q->most);
  q->sum += part;
  if (is_same) q->same += part;
}

/* The permanents of all matrices, side by side: sums over all ways to assign k rows to k columns of
 * products of exp(entry). sum[set] is that over the first rows and this set of as many columns.
 *
 * A part below exp(-745) of its bound becomes 0. It would matter only if its bound were that much
 * larger than the part of the partition that the point was drawn from; as each component was drawn
 * from a density of that partition, others exceed it f times with a probability of at most 1/f. */
static void add_parts(q_sum *q, size_t k, q_parts *parts, double *sum)
{
  const size_t sets = (size_t)1 << k;
  double value[DUAL_MOST * DUAL_MOST * LANES];
  le_arrays(le_simd_level())->exp(k * k * LANES, 1, 0, parts->entry, value);
  for (size_t lane = 0; lane < LANES; lane++) sum[lane] = 1;
  memset(sum + LANES, 0, (sets - 1) * LANES * sizeof(double));
  for (size_t set = 1; set < sets; set++) {
    const double *row = value + (ROWS_OF[set] - 1) * k * LANES;
    for (size_t l = 0; l < k; l++)
      if (set >> l & 1)
        add_products(sum + set * LANES, sum + (set & ~((size_t)1 << l)) * LANES, row + l * LANES);
  }
  for (size_t lane = 0; lane < parts->n; lane++)
    add_part(q, parts->bound[lane] + log(sum[(sets - 1) * LANES + lane]), parts->is_same[lane]);
  parts->n = 0;
}

/* log of J times the density q, but for the numbers of labellings; and the share of it that is from
 * the chain of the partition `own`, from which the point was drawn. That one is first and alone, as
 * its part is often the largest. */
static double log_proposal(const partition_dual *dual, size_t own, const double *component,
                           double *scratch, double *share)
{
  const size_t k = dual->components, terms = width(dual->space), n = k * DUAL_KEPT;
  double *pair = scratch, *sums = pair + k * n;
  q_parts parts = {0};
  q_sum q = {-INFINITY, 0, 0};
  for (size_t c = 0; c < k; c++)
    products(component + c * terms, terms, n, dual->block, pair + c * n);
  for (size_t step = 0; step < DUAL_KEPT; step++) {
    const size_t j = (own + step) % DUAL_KEPT;
    double entry[DUAL_MOST * DUAL_MOST];
    for (size_t c = 0; c < k; c++)
      memcpy(entry + c * k, pair + c * n + j * k, k * sizeof(double));
    double bound = scale(k, 1, entry);
    if (matters(&q, bound) && matters(&q, bound += scale(k, k, entry))) {
      parts.bound[parts.n] = bound;
      parts.is_same[parts.n] = dual->from[j] == dual->from[own];
      scatter(entry, k * k, LANES, parts.n++, parts.entry);
    }
    if (step == 0 || parts.n == LANES) add_parts(&q, k, &parts, sums);
  }
  if (parts.n > 0) add_parts(&q, k, &parts, sums);
  *share = q.same / q.sum;
  return q.most + log(q.sum);
}

static void weigh(const partition_dual *dual, size_t part)
{
  const size_t k = dual->components, terms = width(dual->space);
  double *scratch = dual->scratch + part * scratch_of_part(dual->space, k);
  for (size_t j = 0; j < DUAL_KEPT; j++) {
    const size_t d = part * DUAL_KEPT + j;
    const double *component = dual->component + d * k * terms;
    double prior = 0;
    for (size_t c = 0; c < k; c++) prior += le_dot(component + c * terms, dual->prior, terms);
    dual->log_weight[d] = prior + log_likelihood(dual, component, scratch) -
                          log_proposal(dual, j, component, scratch, &dual->share[d]);
  }
}

/* The effective size of the first n weights, as a share of them. */
static double share_of(const partition_dual *dual, size_t n)
{
  return le_effective_size(dual->log_weight, n, 1, NULL, 0) / (double)n;
}

/* What no chain has visited, as a part of the evidence: half of the square of what one chain alone
 * has. Where all chains have been alike, the own chain has its share of the kept partitions. */
static double unseen(const partition_dual *dual, const double *weight)
{
  double alike = 0;
  for (size_t i = 0; i < DUAL_KEPT; i++)
    for (size_t j = 0; j < DUAL_KEPT; j++) alike += dual->from[i] == dual->from[j];
  alike /= (double)DUAL_KEPT * DUAL_KEPT;
  const double alone = (le_dot(weight, dual->share, DRAWS) - alike) / (1 - alike);
  return alone > 0 ? 0.5 * fmin(alone * alone, 1) : alike < 1 ? 0 : 0.5;
}

partition_known le_dual_estimate(partition_dual *dual, int threads)
{
  const partition_space *space = dual->space;
  partition_known known = {NAN, INFINITY, 0, NAN};
  /* the first part has one draw from each partition */
  weigh(dual, 0);
  if (!(share_of(dual, DUAL_KEPT) > SHARE_HOPELESS)) return known;
#ifdef _OPENMP
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1) if (threads > 1)
#endif
  for (int part = 1; part < PARTS; part++) weigh(dual, (size_t)part);
  (void)threads;
  double *weight = dual->work;
  const double n = DRAWS, total = le_normalise(dual->log_weight, DRAWS, weight);
  if (!isfinite(total)) return known;
  const double variance = fmax(le_dot(weight, weight, DRAWS) - 1 / n, 0) * n / (n - 1);
  if (!(share_of(dual, DRAWS) > SHARE_LEAST)) return known;
  known.share = share_of(dual, DRAWS);
  known.unseen = unseen(dual, weight);
  /* half of the relative variance of the mean weight is the mean error of its logarithm */
  known.log_evidence = total - log(n) + log(DUAL_KEPT) + 0.5 * variance + known.unseen +
                       space->ops->log_labellings(space->self, dual->components, space->rows.n,
                                                  dual->components);
  const le_pareto tail = le_pareto_tail(dual->log_weight, DRAWS, dual->work);
  /* a part of 1 / n of the posterior has probably no draw */
  known.se = hypot(hypot(sqrt(variance), tail.unseen), hypot(known.unseen, 1 / n));
  return known;
}

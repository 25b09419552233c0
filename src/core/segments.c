/* Evidences of segments in closed form, and sums over all ways to divide the rows.
 *
 * The statistics of blocks of rows between neighbouring boundaries are joined one after another
 * from each start, so that a segment costs one join whatever its number of rows, and differences of
 * long sums, which lose digits, are not taken. */
#include "core/segments.h"

#include "base/arena.h"
#include "base/logsum.h"

#include <math.h>

/* Terms whose logarithms are so far below the largest are left out. */
static const double NEGLIGIBLE = -36;

/* ---- closed forms ---- */

int le_segments_closed(const le_model_ops *ops, const void *self)
{
  const le_partition_ops *blocks = ops->partitions;
  return blocks && ops->dim && blocks->dim(self, 1) == ops->dim(self);
}

le_status le_segments_evidence(const le_segments *segments, double *log_evidence)
{
  const le_segments *s = segments;
  const le_partition_ops *ops = s->ops->partitions;
  const size_t size = ops->size(s->self);
  le_arena arena = {0};
  double *own = le_arena_doubles(&arena, size);
  le_status status = arena.failed ? LE_NO_MEMORY : LE_OK;
  for (size_t i = 0; i < s->m && status == LE_OK; i++) {
    ops->clear(s->self, s->tables, own);
    for (size_t j = i + 1; j <= s->m; j++) {
      ops->join(s->self, s->tables, s->sums + (j - 1) * size, own);
      *log_evidence++ = s->bound[j] - s->bound[i] < s->least
                          ? -INFINITY
                          : ops->log_evidence(s->self, s->tables, own);
    }
    if (le_interrupted(s->context)) status = LE_INTERRUPTED;
  }
  le_arena_free(&arena);
  return status;
}

le_status le_segments_draw(const le_segments *segments, size_t k, const double *from,
                           const double *to, const gsl_rng *rng, double *theta)
{
  const le_segments *s = segments;
  const le_partition_ops *ops = s->ops->partitions;
  const size_t d = s->ops->dim(s->self), size = ops->size(s->self);
  le_arena arena = {0};
  double *own = le_arena_doubles(&arena, size), scratch[1];
  const double *given = own;
  le_status status = arena.failed ? LE_NO_MEMORY : LE_OK;
  for (size_t i = 0; i < k && status == LE_OK; i++) {
    if (i == 0 || from[i] != from[i - 1] || to[i] != to[i - 1]) {
      ops->clear(s->self, s->tables, own);
      for (size_t j = (size_t)from[i]; j < (size_t)to[i]; j++)
        ops->join(s->self, s->tables, s->sums + j * size, own);
    }
    ops->draw(s->self, s->tables, 1, 1, &given, rng, theta + i * d, scratch);
    if (le_interrupted(s->context)) status = LE_INTERRUPTED;
  }
  le_arena_free(&arena);
  return status;
}

/* ---- sums ---- */

/* log sum exp(a_i + b_i) */
static double log_sum(size_t n, const double *a, const double *b)
{
  double top = -INFINITY, sum = 0;
  for (size_t i = 0; i < n; i++) top = fmax(top, a[i] + b[i]);
  if (top == -INFINITY) return top;
  for (size_t i = 0; i < n; i++) {
    const double below = a[i] + b[i] - top;
    if (below > NEGLIGIBLE) sum += exp(below);
  }
  return top + log(sum);
}

le_status le_segments_sums(size_t m, size_t most, const double *log_evidence,
                           const double *log_weight, const le_context *context, double *first,
                           double *last)
{
  le_arena arena = {0};
  const size_t n = m + 1;
  double *terms = le_arena_doubles(&arena, n);
  le_status status = arena.failed ? LE_NO_MEMORY : LE_OK;
  for (size_t c = 0; c <= most; c++) {
    first[c * n] = -INFINITY;
    if (last) last[c * n + m] = -INFINITY;
  }
  for (size_t j = 1; j <= m && status == LE_OK; j++) {
    for (size_t i = 0; i < j; i++)
      terms[i] = log_evidence[le_segment_at(m, i, j)] + log_weight[i];
    first[j] = terms[0];
    for (size_t c = 1; c <= most; c++)
      first[c * n + j] = log_sum(j - 1, terms + 1, first + (c - 1) * n + 1);
    if (le_interrupted(context)) status = LE_INTERRUPTED;
  }
  for (size_t i = m; last && i-- > 0 && status == LE_OK;) {
    for (size_t j = i + 1; j <= m; j++)
      terms[j] = log_evidence[le_segment_at(m, i, j)] + log_weight[j];
    last[i] = terms[m];
    for (size_t c = 1; c <= most; c++)
      last[c * n + i] = log_sum(m - i - 1, terms + i + 1, last + (c - 1) * n + i + 1);
    if (le_interrupted(context)) status = LE_INTERRUPTED;
  }
  le_arena_free(&arena);
  return status;
}

/* ---- streams ---- */

/* Joins a block with all starts; it is also a new one. */
static void extend_runs(const le_segments *s, const double *tables, double rows, le_runs *runs)
{
  const le_partition_ops *ops = s->ops->partitions;
  const size_t size = ops->size(s->self);
  const double *fresh = runs->block + runs->n * size;
  const double before = runs->n ? le_logsumexp(runs->log_weight, runs->n) : 0;
  for (size_t k = 0; k < runs->n; k++) {
    ops->join(s->self, tables, fresh, runs->block + k * size);
    const double now = ops->log_evidence(s->self, tables, runs->block + k * size);
    runs->log_weight[k] += now - runs->log_evidence[k] + log1p(-runs->hazard);
    runs->log_evidence[k] = now;
  }
  const double alone = ops->log_evidence(s->self, tables, fresh);
  runs->log_evidence[runs->n] = alone;
  runs->log_weight[runs->n] = alone + before + (runs->n ? log(runs->hazard) : 0);
  runs->start[runs->n++] = runs->seen;
  runs->seen += rows;
}

static void drop_least(const le_segments *s, le_runs *runs)
{
  const size_t size = s->ops->partitions->size(s->self), last = runs->n - 1;
  size_t least = 0;
  /* the newest start has not yet had a chance */
  for (size_t k = 1; k < last; k++)
    if (runs->log_weight[k] < runs->log_weight[least]) least = k;
  runs->lost += exp(runs->log_weight[least] - le_logsumexp(runs->log_weight, runs->n));
  const size_t after = last - least;
  memmove(runs->block + least * size, runs->block + (least + 1) * size,
          after * size * sizeof(double));
  memmove(runs->log_evidence + least, runs->log_evidence + least + 1, after * sizeof(double));
  memmove(runs->log_weight + least, runs->log_weight + least + 1, after * sizeof(double));
  memmove(runs->start + least, runs->start + least + 1, after * sizeof(double));
  runs->n--;
}

le_status le_runs_extend(const le_segments *segments, const double *tables, le_runs *runs)
{
  const le_segments *s = segments;
  const le_partition_ops *ops = s->ops->partitions;
  const size_t size = ops->size(s->self), step = (size_t)runs->step;
  for (size_t r = 0; r < s->rows.n; r += step) {
    const size_t end = r + step < s->rows.n ? r + step : s->rows.n;
    double *fresh = runs->block + runs->n * size;
    ops->clear(s->self, tables, fresh);
    for (size_t i = r; i < end; i++)
      ops->add(s->self, tables, s->rows.values + i * s->rows.width, 1, fresh);
    extend_runs(s, tables, (double)(end - r), runs);
    if (runs->n > (size_t)runs->most) drop_least(s, runs);
    if (le_interrupted(s->context)) return LE_INTERRUPTED;
  }
  return LE_OK;
}

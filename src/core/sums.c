/* Sums of the log-likelihood and its derivatives over rows. Rows are visited in blocks that fit in
 * the L1 or L2 cache while all particles of a thread use them. Threads split the particles; the
 * loop over segments of rows is outside, so that an interrupt is noticed between segments. */
#include "core/sums.h"

#include "base/clock.h"
#include "base/linalg.h"
#include "core/past.h"
#include "core/question.h"

#include <math.h>
#include <string.h>

enum { BLOCK_DOUBLES = 3072, BLOCK_MOST = 512, BLOCK_LEAST = 32 };
enum { BLOCKS_AT_ONCE = 64 }; /* of each part, between two tests for an interrupt */
enum { FEW = 16 };            /* number of particles */
enum { CALL_WORK = 200000 };  /* rows of one particle of a regression in a call of the model */
/* the smallest number of rows in a part; the largest number of parts when there are too few rows
 * for LE_TARGET_PARTS parts of one block each */
/* For some numbers for each parameter, and for the last line of each array. */
enum { STACK_LEAST = 1024 };
enum { PART_LEAST = 48, PARTS_FEW = 4 };

/* Finds the coordinates with few values; returns the largest number of values, 0 without any. */
static size_t find_held(le_target *target, le_arena *arena)
{
  const le_model_ops *ops = target->ops;
  const double *values;
  size_t most = 0;
  int *held = ops->discrete ? le_arena_bytes(arena, target->d, sizeof *held) : NULL;
  for (size_t j = 0; held && j < target->d; j++) {
    const size_t n = ops->discrete(target->model, j, &values);
    held[j] = n > 0;
    if (n > most) most = n;
  }
  target->held = most ? held : NULL;
  return most;
}

void le_target_alloc(le_target *target, const le_model_ops *ops, const void *model, size_t m,
                     size_t more, le_context *context, le_arena *arena)
{
  memset(target, 0, sizeof *target);
  target->ops = ops;
  target->model = model;
  target->d = ops->dim(model);
  /* for Gibbs steps */
  const size_t values = find_held(target, arena);
  if (values) more += m * (values + 3);
  target->context = context;
  size_t block = BLOCK_DOUBLES / ops->width(model);
  target->block = block > BLOCK_MOST ? BLOCK_MOST : block < BLOCK_LEAST ? BLOCK_LEAST : block;
  target->m = m;
  /* round up to a cache line, because threads write to neighbouring memory */
  target->scratch_size = ops->scratch ? (ops->scratch(model, m, target->block) + 15) / 8 * 8 : 0;
  target->scratch =
    le_arena_scratch(arena, target->scratch_size * (size_t)context->threads, sizeof(double));
  target->work = le_arena_doubles(arena, 2 * m);
  target->grad = le_arena_doubles(arena, m * target->d);
  target->few = le_arena_doubles(arena, LE_TARGET_PARTS * FEW * (target->d + 1));
  target->part = le_arena_doubles(arena, ops->log_lik_hess || ops->information
                                           ? LE_TARGET_PARTS * (target->d * target->d + target->d)
                                           : 0);
  target->relabelled = le_arena_doubles(arena, 2 * target->d * (size_t)context->threads);
  target->stack = le_stack_alloc(arena, 4 * target->d * (m + target->d) + STACK_LEAST + more);
  target->pace = le_arena_bytes(arena, 1, sizeof *target->pace);
  if (target->pace) le_pace_alloc(target->pace, context->threads, arena);
  target->packed = le_arena_doubles(arena, m * target->d);
  target->chosen = le_arena_indices(arena, m);
}

/* One block of rows for some particles; adds to the sums. */
static le_status block_sums(const le_target *target, const le_rows *block, size_t m,
                            const double *theta, double *value, double *grad, double *work,
                            double *scratch)
{
  const le_model_ops *ops = target->ops;
  if (!grad) return ops->log_lik(target->model, m, theta, block, value, scratch);
  if (!value && ops->log_lik_grad_alone)
    return ops->log_lik_grad_alone(target->model, m, theta, block, grad, scratch);
  return ops->log_lik_grad(target->model, m, theta, block, value ? value : work, grad, scratch);
}

/* All rows for particles [first, last), block by block. Where a row takes long, such as that of a
 * whole group, a block is done for a few particles at a time, so that an interrupt is noticed. */
static le_status some_particles(const le_target *target, const le_rows *rows, size_t first,
                                size_t last, const double *theta, double *value, double *grad,
                                double *scratch)
{
  const size_t d = target->d;
  const double row_work = le_row_work(target->context),
               share = CALL_WORK / (row_work * (double)target->block);
  const size_t most = row_work <= 1 ? last - first : share < FEW ? FEW : (size_t)share;
  double done = 0;
  for (size_t r = 0; r < rows->n; r += target->block) {
    const le_rows block = le_rows_part(rows, r, target->block);
    for (size_t from = first; from < last; from += most) {
      const size_t m = last - from < most ? last - from : most;
      LE_TRY(block_sums(target, &block, m, theta + from * d, value ? value + from : NULL,
                        grad ? grad + from * d : NULL, target->work + from, scratch));
      if (le_work_interrupted(target->context, &done, (double)(m * block.n) * row_work))
        return LE_INTERRUPTED;
    }
  }
  return LE_OK;
}

le_status le_target_tasks(const le_target *target, size_t n, int threads, le_target_task task,
                          void *self)
{
  const int workers = (size_t)threads < n ? threads : (int)n;
  le_pace *pace = target->pace;
  int worst = LE_OK;
  /* no region of one thread: R functions may leave it by a jump, and OpenMP would not know */
  if (workers <= 1) {
    for (size_t k = 0; k < n; k++) {
      const le_status status = le_interrupted(target->context) ? LE_INTERRUPTED
                                                               : task(self, target, k, 0);
      if ((int)status > worst) worst = (int)status;
    }
    return (le_status)worst;
  }
  size_t next = 0;
  if (pace) le_pace_begin(pace, 0);
#ifdef _OPENMP
#pragma omp parallel for num_threads(workers) schedule(static, 1) reduction(max : worst)
#endif
  for (int t = 0; t < workers; t++) {
    size_t done = 0;
    for (;; done++) {
      size_t k;
#ifdef _OPENMP
#pragma omp atomic capture
#endif
      k = next++;
      if (k >= n) break;
      const le_status status =
        le_interrupted(target->context) ? LE_INTERRUPTED : task(self, target, k, (size_t)t);
      if ((int)status > worst) worst = (int)status;
    }
    if (!pace) continue;
    pace->first[t + 1] = done;
    pace->ended[t] = le_now();
  }
  if (!pace) return (le_status)worst;
  for (size_t t = 0; t < pace->n; t++) pace->first[t + 1] += pace->first[t];
  le_pace_watch(pace);
  return (le_status)worst;
}

/* Adds to the sums; threads share the particles. */
static le_status segment_sums(le_target *target, const le_rows *rows, size_t m, const double *theta,
                              double *value, double *grad)
{
  const size_t threads = (size_t)le_target_threads(target, m,
                                                   (rows->n + LE_TARGET_PARTICLE_COST) * target->d);
  le_pace *pace = target->pace;
  if (threads <= 1) return some_particles(target, rows, 0, m, theta, value, grad, target->scratch);
  int worst = LE_OK;
  le_pace_begin(pace, m);
#ifdef _OPENMP
#pragma omp parallel for num_threads((int)threads) schedule(static, 1) reduction(max : worst)
#endif
  for (size_t t = 0; t < threads; t++) {
    const size_t first = pace->first[t], last = pace->first[t + 1];
    double *scratch = target->scratch + t * target->scratch_size;
    const le_status status =
      first < last ? some_particles(target, rows, first, last, theta, value, grad, scratch) : LE_OK;
    if ((int)status > worst) worst = (int)status;
    pace->ended[t] = le_now();
  }
  le_pace_end(pace);
  return (le_status)worst;
}

/* A few particles cannot be shared evenly, and every thread would have to transpose all rows; one
 * point cannot be shared at all. So threads share the rows. The parts do not depend on the threads;
 * each has its own sums, and these are added in a fixed order, so that the result does not depend
 * on the number of threads. */
typedef struct row_parts {
  const le_rows *rows;
  size_t m, from, stretch; /* particles; first row of this round; rows of a part */
  const double *theta;
  int with_grad, alone; /* whether gradients are wanted, and whether without values */
} row_parts;

static le_status row_part(void *self, const le_target *target, size_t part, size_t worker)
{
  const row_parts *all = self;
  const size_t size = all->m * (target->d + 1);
  const le_rows some = le_rows_part(all->rows, part * all->stretch, all->stretch);
  double *value = target->few + part * size;
  memset(value, 0, size * sizeof(double));
  return some_particles(target, &some, 0, all->m, all->theta, all->alone ? NULL : value,
                        all->with_grad ? value + all->m : NULL, le_target_scratch(target, worker));
}

static le_status few_sums(le_target *target, const le_rows *rows, size_t m, const double *theta,
                          double *value, double *grad)
{
  const size_t d = target->d, blocks = (rows->n + target->block - 1) / target->block;
  const size_t stretch = (blocks + LE_TARGET_PARTS - 1) / LE_TARGET_PARTS * target->block;
  row_parts all = {rows, m, 0, stretch, theta, grad != NULL,
                   grad && !value && target->ops->log_lik_grad_alone};
  LE_TRY(le_target_tasks(target, LE_TARGET_PARTS, target->context->threads, row_part, &all));
  for (size_t p = 0; p < LE_TARGET_PARTS; p++) {
    const double *sums = target->few + p * m * (d + 1);
    if (value) le_add_scaled(m, 1, sums, value);
    if (grad) le_add_scaled(m * d, 1, sums + m, grad);
  }
  return LE_OK;
}

/* Where theta is not finite, the model may return anything. */
static int is_point(const double *theta, size_t d)
{
  for (size_t j = 0; j < d; j++)
    if (!isfinite(theta[j])) return 0;
  return 1;
}

/* A NaN does not mean an impossible point: it hides an error of the model. */
le_status le_target_check(const le_target *target, const char *what, size_t m, const double *theta,
                          const double *value)
{
  if (!(target->ops->traits & LE_MODEL_CHECKED) || target->context->lenient) return LE_OK;
  for (size_t i = 0; i < m; i++) {
    const double *point = theta + i * target->d;
    if (!(isnan(value[i]) || value[i] == INFINITY) || !is_point(point, target->d)) continue;
    le_status status = LE_NOT_FINITE;
#ifdef _OPENMP
#pragma omp critical(le_target_check)
#endif
    status = le_fail(&target->context->error, LE_NOT_FINITE,
                     "`%s` of the model in C must give finite numbers or -Inf, not %s, at %.4g%s.",
                     what, isnan(value[i]) ? "NaN" : "Inf", point[0], target->d > 1 ? ", ..." : "");
    return status;
  }
  return LE_OK;
}

le_status le_target_sums(le_target *target, const le_rows *rows, size_t m, const double *theta,
                         double *value, double *grad)
{
  if (value) memset(value, 0, m * sizeof(double));
  if (grad) memset(grad, 0, m * target->d * sizeof(double));
  /* about a million particle-rows between two tests for an interrupt */
  const size_t segment = (1000000 / m + target->block) / target->block * target->block;
  for (size_t r = 0; r < rows->n; r += segment) {
    if (r > 0 && le_interrupted(target->context)) return LE_INTERRUPTED;
    const le_rows part = le_rows_part(rows, r, segment);
    const int by_rows = target->few && m <= FEW && part.n >= LE_TARGET_PARTS * target->block;
    LE_TRY((by_rows ? few_sums : segment_sums)(target, &part, m, theta, value, grad));
  }
  *(grad ? &target->gradients : &target->likelihoods) += (double)m * (double)rows->n;
  return value ? le_target_check(target, grad ? "log_lik_grad" : "log_lik", m, theta, value)
               : LE_OK;
}

static const le_rows_ops *rows_from(const le_target *target, size_t from);

le_status le_target_log_lik(le_target *target, size_t from, size_t to, size_t m,
                            const double *theta, double *value)
{
  return le_target_log_lik_grad(target, from, to, m, theta, value, NULL);
}

le_status le_target_log_lik_grad(le_target *target, size_t from, size_t to, size_t m,
                                 const double *theta, double *value, double *grad)
{
  return rows_from(target, from)->sums(target, from, to, m, theta, value, grad, NULL);
}

le_status le_target_add_curvature(const le_target *target, const le_rows *rows, const double *theta,
                                  double *grad, double *matrix, double *scratch)
{
  const double row_work = le_row_work(target->context) * (double)target->d;
  double done = 0;
  for (size_t r = 0; r < rows->n; r += target->block) {
    const le_rows block = le_rows_part(rows, r, target->block);
    LE_TRY(grad ? target->ops->log_lik_hess(target->model, theta, &block, grad, matrix, scratch)
                : target->ops->information(target->model, theta, &block, matrix, scratch));
    if (le_work_interrupted(target->context, &done, (double)block.n * row_work))
      return LE_INTERRUPTED;
  }
  return LE_OK;
}

static le_status curvature_part(void *self, const le_target *target, size_t part, size_t worker)
{
  const row_parts *all = self;
  const size_t d = target->d;
  const le_rows some = le_rows_part(all->rows, all->from + part * all->stretch, all->stretch);
  double *sums = target->part + part * (d * d + d);
  if (all->from == 0) memset(sums, 0, (d * d + d) * sizeof(double));
  return le_target_add_curvature(target, &some, all->theta, all->with_grad ? sums + d * d : NULL,
                                 sums, le_target_scratch(target, worker));
}

le_status le_target_curvature(le_target *target, const le_rows *rows, const double *theta,
                              double *grad, double *matrix)
{
  const size_t d = target->d,
               few = rows->n / PART_LEAST < PARTS_FEW ? rows->n / PART_LEAST : PARTS_FEW;
  const size_t parts = rows->n >= LE_TARGET_PARTS * target->block ? LE_TARGET_PARTS
                       : few < 1                                  ? 1
                                                                  : few;
  target->gradients += (double)rows->n;
  if (grad) memset(grad, 0, d * sizeof(double));
  memset(matrix, 0, d * d * sizeof(double));
  if (parts == 1)
    return le_target_add_curvature(target, rows, theta, grad, matrix, target->scratch);
  const size_t even = (rows->n + parts - 1) / parts, most = BLOCKS_AT_ONCE * target->block,
               stretch = even < most ? even : most;
  for (size_t r = 0; r < rows->n; r += parts * stretch) {
    row_parts round = {rows, 1, r, stretch, theta, grad != NULL, 0};
    if (r > 0 && le_interrupted(target->context)) return LE_INTERRUPTED;
    LE_TRY(le_target_tasks(target, parts, le_target_threads(target, rows->n, d * d), curvature_part,
                           &round));
  }
  for (size_t p = 0; p < parts; p++) {
    const double *sums = target->part + p * (d * d + d);
    le_add_scaled(d * d, 1, sums, matrix);
    if (grad) le_add_scaled(d, 1, sums + d * d, grad);
  }
  return LE_OK;
}

le_status le_target_log_lik_hess(le_target *target, size_t from, size_t to, const double *theta,
                                 double *grad, double *hess)
{
  return rows_from(target, from)->sums(target, from, to, 1, theta, NULL, grad, hess);
}

le_status le_target_expand(le_target *target, const le_rows *rows, int order, const double *theta,
                           double *sums)
{
  double *grad = sums + 1;
  LE_TRY(le_target_sums(target, rows, 1, theta, sums, NULL));
  if (order == 2) return le_target_curvature(target, rows, theta, grad, grad + target->d);
  return le_target_sums(target, rows, 1, theta, NULL, grad);
}

/* ---- the contract of the rows seen ---- */

static le_status sums_in_memory(le_target *target, size_t from, size_t to, size_t m,
                                const double *theta, double *value, double *grad, double *hess)
{
  const le_rows rows = le_store_rows(target->store, from, to);
  return hess ? le_target_curvature(target, &rows, theta, grad, hess)
              : le_target_sums(target, &rows, m, theta, value, grad);
}

static le_status sums_of_past(le_target *target, size_t from, size_t to, size_t m,
                              const double *theta, double *value, double *grad, double *hess)
{
  LE_TRY(sums_in_memory(target, from, to, m, theta, value, grad, hess));
  le_past_complete(target->past, target->store, m, theta, value, grad, hess, target->relabelled);
  return LE_OK;
}

/* At a single point everything is asked at once: a climb then has one question in an iteration. */
static le_status sums_elsewhere(le_target *target, size_t from, size_t to, size_t m,
                                const double *theta, double *value, double *grad, double *hess)
{
  const size_t d = target->d;
  const int all = hess || (m == 1 && target->ops->log_lik_hess);
  const le_wanted what = all ? LE_CURVATURE_WANTED : grad ? LE_GRADIENT_WANTED : LE_VALUE_WANTED;
  const size_t size = le_wanted_size(what, d);
  const double *sums;
  LE_TRY(le_ask(target->store->asked, what, target->context->lenient, d, m, theta, &sums));
  for (size_t i = 0; i < m; i++, sums += size) {
    if (value) value[i] = sums[0];
    if (grad) memcpy(grad + i * d, sums + 1, d * sizeof(double));
    if (hess) memcpy(hess, sums + 1 + d, d * d * sizeof(double));
  }
  *(grad ? &target->gradients : &target->likelihoods) += (double)m * (double)(to - from);
  return LE_OK;
}

static const le_rows_ops in_memory = {1, 1, sums_in_memory}, of_past = {0, 0, sums_of_past},
                         elsewhere = {0, 1, sums_elsewhere};

const le_rows_ops *le_rows_of(const le_target *target)
{
  if (target->store->asked) return &elsewhere;
  return le_store_represented(target->store) ? &of_past : &in_memory;
}

/* Rows that have come since are in memory. */
static const le_rows_ops *rows_from(const le_target *target, size_t from)
{
  return from > 0 ? &in_memory : le_rows_of(target);
}

le_status le_target_information(le_target *target, size_t from, size_t to, double weight,
                                const double *theta, double *info)
{
  const size_t d = target->d;
  double *sum = target->metric[0]->work, *unused = sum + d * d;
  if (weight == 0 || to <= from) return LE_OK;
  const int own = target->ops->information != NULL;
  const le_rows rows = le_store_rows(target->store, from, to);
  if (own && !rows_from(target, from)->readable) weight *= (double)(to - from) / (double)rows.n;
  LE_TRY(own ? le_target_curvature(target, &rows, theta, NULL, sum)
             : le_target_log_lik_hess(target, from, to, theta, unused, sum));
  for (size_t k = 0; k < d * d; k++) info[k] += (own ? weight : -weight) * sum[k];
  return LE_OK;
}

/* cost of a coordinate in multiplications, mostly an exp if there is one */
enum { PRIOR_COST = 20 };

static void some_priors(const le_target *target, size_t m, const double *theta, double *value,
                        double *grad)
{
  if (value) target->ops->log_prior(target->model, m, theta, value);
  if (grad) target->ops->log_prior_grad(target->model, m, theta, grad);
}

void le_target_prior(const le_target *target, size_t m, const double *theta, double *value,
                     double *grad)
{
  const size_t d = target->d;
  if (target->flat) {
    if (value) memset(value, 0, m * sizeof(double));
    if (grad) memset(grad, 0, m * d * sizeof(double));
    return;
  }
  const size_t threads = (size_t)le_target_threads(target, m, PRIOR_COST * d),
               tile = (m + threads - 1) / threads;
  if (threads == 1) {
    some_priors(target, m, theta, value, grad);
    return;
  }
#ifdef _OPENMP
#pragma omp parallel for num_threads((int)threads) schedule(static, 1)
#endif
  for (size_t t = 0; t < threads; t++) {
    const size_t first = t * tile, count = first >= m ? 0 : first + tile < m ? tile : m - first;
    some_priors(target, count, theta + first * d, value ? value + first : NULL,
                grad ? grad + first * d : NULL);
  }
}

le_status le_target_share(le_target *target, size_t m, double rows, le_target_job job, void *self)
{
  const double multiplications = (rows + LE_TARGET_PARTICLE_COST) * (double)target->d;
  le_pace *pace = target->pace;
  if ((double)m * rows > LE_TARGET_SHARED_MOST || target->floor) return job(self, target, 0, m);
  /* a thread with few particles has its own sums, because the order of adding rows must not depend
   * on the number of its particles */
  double *few = target->few;
  const size_t threads = (size_t)le_target_threads(target, m, (size_t)multiplications);
  if (threads <= 1) {
    target->few = NULL;
    const le_status status = job(self, target, 0, m);
    target->few = few;
    return status;
  }
  int worst = LE_OK;
  size_t first_failed = threads; /* its sentence is reported, whatever thread failed first */
  le_pace_begin(pace, m);
  double likelihoods = 0, gradients = 0;
#ifdef _OPENMP
#pragma omp parallel for num_threads((int)threads) schedule(static, 1)                             \
  reduction(max : worst) reduction(+ : likelihoods, gradients)
#endif
  for (size_t t = 0; t < threads; t++) {
    const size_t first = pace->first[t], last = pace->first[t + 1];
    le_context alone = *target->context;
    alone.threads = 1;
    alone.error.message[0] = '\0';
    le_target own = *target;
    own.context = &alone;
    own.thread = t;
    own.scratch += t * target->scratch_size;
    own.relabelled += t * 2 * target->d;
    own.work += first;
    own.grad += first * target->d;
    own.packed += first * target->d;
    own.few = NULL;
    own.likelihoods = own.gradients = 0;
    const le_status status = first < last ? job(self, &own, first, last - first) : LE_OK;
    likelihoods += own.likelihoods;
    gradients += own.gradients;
    if ((int)status > worst) worst = (int)status;
    if (status != LE_OK && alone.error.message[0]) {
#ifdef _OPENMP
#pragma omp critical(le_share_error)
#endif
      if (t < first_failed) {
        first_failed = t;
        target->context->error = alone.error;
      }
    }
    pace->ended[t] = le_now();
  }
  le_pace_end(pace);
  target->likelihoods += likelihoods;
  target->gradients += gradients;
  return (le_status)worst;
}

/* A Markov chain over partitions of the rows: Gibbs updates of single rows, and proposals to split
 * a block or merge two (Jain and Neal 2004), which change many rows at once. */
#include "base/arrays.h"
#include "estimators/partitions/parts.h"

/* ---- rows and blocks ---- */

static const double *row_at(const partition_space *space, size_t i)
{
  return space->rows.values + i * space->rows.width;
}

double *le_partition_block(const partition_chain *chain, size_t a)
{
  return chain->block + a * chain->space->stride;
}

/* Log densities of a row in n blocks. */
static void densities(const partition_space *space, size_t i, size_t n, const double *blocks,
                      double *out)
{
  space->ops->log_densities(space->self, space->tables, row_at(space, i), n, blocks, out);
}

void le_partition_space_make(partition_space *space, le_arena *arena)
{
  const size_t n = space->rows.n;
  space->stride = space->ops->size(space->self);
  space->tables = le_arena_doubles(arena, space->ops->tables(space->self, n));
  space->scale = le_arena_doubles(arena, space->rows.width);
  space->empty = le_arena_doubles(arena, space->stride);
  space->alone = le_arena_doubles(arena, n);
  space->size = le_arena_doubles(arena, n + 2);
  space->level = le_arena_doubles(arena, space->most + 2);
  if (arena->failed) return;
  le_rows_precisions(&space->rows, space->scale);
  space->ops->prepare(space->self, &space->rows, space->tables);
  space->ops->clear(space->self, space->tables, space->empty);
  for (size_t c = 0; c < n + 2; c++) space->size[c] = space->ops->log_size(space->self, c);
  for (size_t i = 0; i < n; i++) {
    densities(space, i, 1, space->empty, &space->alone[i]);
    space->alone[i] += space->size[1];
  }
}

void le_partition_chain_alloc(partition_chain *chain, const partition_space *space,
                              le_arena *arena)
{
  const size_t n = space->rows.n, t = space->most + 1;
  chain->space = space;
  chain->spare = space->most;
  chain->half = chain->spare + 1;
  chain->label = le_arena_bytes(arena, n, 1);
  chain->count = le_arena_indices(arena, chain->half + 2);
  chain->block = le_arena_doubles(arena, (chain->half + 2) * space->stride);
  chain->weight = le_arena_doubles(arena, t);
  chain->near = le_arena_doubles(arena, n);
  chain->occupied = le_arena_doubles(arena, t);
  chain->trips = le_arena_doubles(arena, t);
  chain->high = le_arena_indices(arena, t);
  chain->list = le_arena_indices(arena, n);
  chain->side = le_arena_bytes(arena, n, 1);
  chain->kept.every = 1;
  chain->kept.t = le_arena_indices(arena, KEPT);
  chain->kept.density = le_arena_doubles(arena, KEPT);
  chain->kept.label = le_arena_bytes(arena, KEPT * n, 1);
}

/* log s(n) m(rows) of a block. */
static double log_factor(const partition_chain *chain, size_t a)
{
  const partition_space *space = chain->space;
  return space->size[chain->count[a]] +
         space->ops->log_evidence(space->self, space->tables, le_partition_block(chain, a));
}

/* log s(n + 1) / s(n) */
static double log_larger(const partition_chain *chain, size_t a)
{
  const double *size = chain->space->size + chain->count[a];
  return size[1] - size[0];
}

static void copy_block(partition_chain *chain, size_t from, size_t to)
{
  chain->count[to] = chain->count[from];
  memcpy(le_partition_block(chain, to), le_partition_block(chain, from),
         chain->space->stride * sizeof(double));
}

static void empty_block(partition_chain *chain, size_t a)
{
  chain->count[a] = 0;
  memcpy(le_partition_block(chain, a), chain->space->empty,
         chain->space->stride * sizeof(double));
}

/* The block with one row more (sign 1) or less (sign -1). */
static void add_row(partition_chain *chain, size_t i, int sign, size_t a)
{
  const partition_space *space = chain->space;
  if (sign > 0) chain->count[a]++;
  else chain->count[a]--;
  space->ops->add(space->self, space->tables, row_at(space, i), sign, le_partition_block(chain, a));
}

/* The last block takes the place of the one that is closed. */
static void close_block(partition_chain *chain, size_t a)
{
  const size_t last = --chain->t;
  if (a == last) return;
  copy_block(chain, last, a);
  for (size_t i = 0; i < chain->space->rows.n; i++)
    if (chain->label[i] == last) chain->label[i] = (unsigned char)a;
}

/* Makes the blocks from the labels, without the rounding errors of many changes. */
static void rebuild(partition_chain *chain)
{
  for (size_t a = 0; a < chain->t; a++) empty_block(chain, a);
  for (size_t i = 0; i < chain->space->rows.n; i++) add_row(chain, i, 1, chain->label[i]);
}

double le_partition_density(const partition_chain *chain)
{
  double sum = 0;
  for (size_t a = 0; a < chain->t; a++) sum += log_factor(chain, a);
  return sum;
}

/* ---- starts ---- */

/* The squared distance of two rows, with columns divided by their standard deviations. */
static double apart(const partition_space *space, size_t a, size_t b)
{
  const double *one = row_at(space, a), *other = row_at(space, b);
  double sum = 0;
  for (size_t j = 0; j < space->rows.width; j++)
    sum += space->scale[j] * (one[j] - other[j]) * (one[j] - other[j]);
  return sum;
}

/* Each row joins the nearest of some seed rows; a row far from the seeds so far is more likely to
 * be the next seed. */
void le_partition_start(partition_chain *chain, size_t clusters)
{
  const size_t n = chain->space->rows.n;
  double *near = chain->near;
  chain->t = 0;
  for (size_t i = 0; i < n; i++) near[i] = 1;
  for (size_t c = 0; c < clusters; c++) {
    double total = 0;
    for (size_t i = 0; i < n; i++) total += near[i];
    if (!(total > 0)) break;
    double left = gsl_rng_uniform(chain->rng) * total;
    size_t seed = 0;
    while (seed + 1 < n && (left -= near[seed]) > 0) seed++;
    if (near[seed] == 0) continue;
    for (size_t i = 0; i < n; i++) {
      const double square = apart(chain->space, i, seed);
      if (c > 0 && square >= near[i] && i != seed) continue;
      near[i] = square;
      chain->label[i] = (unsigned char)chain->t;
    }
    chain->t++;
    near[seed] = 0;
  }
  rebuild(chain);
  /* a cluster that lost all its rows to later seeds */
  for (size_t a = chain->t; a-- > 0;)
    if (chain->count[a] == 0) close_block(chain, a);
}

/* ---- Gibbs updates ---- */

/* Replaces n log weights by weights relative to the largest; returns their sum. */
static double relative(size_t n, double *weight)
{
  double top = -INFINITY, sum = 0;
  for (size_t a = 0; a < n; a++) top = weight[a] > top ? weight[a] : top;
  le_arrays(le_simd_level())->exp(n, 1, -top, weight, weight);
  for (size_t a = 0; a < n; a++) sum += weight[a];
  return sum;
}

/* Draws the block of a row that is in none; block t is a new one. */
static size_t draw_block(partition_chain *chain, size_t i)
{
  const partition_space *space = chain->space;
  const size_t t = chain->t;
  double *weight = chain->weight;
  densities(space, i, t, chain->block, weight);
  for (size_t a = 0; a < t; a++) weight[a] += space->level[t] + log_larger(chain, a);
  weight[t] = space->level[t + 1] + space->alone[i];
  const double sum = relative(t + 1, weight), share = weight[t] / sum;
  chain->tally.evaluations += (double)(t + 2); /* it leaves a block and enters one */
  chain->occupied[t] += 1 - share;
  if (t < space->most) chain->occupied[t + 1] += share;
  double left = gsl_rng_uniform(chain->rng) * sum;
  size_t a = 0;
  while (a < t && (left -= weight[a]) > 0) a++;
  return a == t && weight[t] == 0 ? t - 1 : a; /* rounding */
}

/* If the row returns to its block, that becomes what it was, without rounding errors. */
static void update_row(partition_chain *chain, size_t i)
{
  const size_t old = chain->label[i];
  const int single = chain->count[old] == 1;
  copy_block(chain, old, chain->spare);
  if (single) close_block(chain, old);
  else add_row(chain, i, -1, old);
  const size_t t = chain->t, own = draw_block(chain, i);
  if (own == t) empty_block(chain, chain->t++);
  chain->label[i] = (unsigned char)own;
  if (own == (single ? t : old)) copy_block(chain, chain->spare, own);
  else add_row(chain, i, 1, own);
}

void le_partition_sweep(partition_chain *chain)
{
  for (size_t i = 0; i < chain->space->rows.n; i++) update_row(chain, i);
}

/* ---- splits and merges ----
 *
 * A proposal is two rows, each with a half of the others that are with either of them: these are in
 * chain->list. */

/* Log odds beyond this make no difference; a product of less than 1 / PRODUCT_MOST is replaced by
 * its logarithm. */
static const double ODDS_MOST = 300, PRODUCT_MOST = 1e150;

static size_t common_divisor(size_t a, size_t b)
{
  while (b > 0) {
    const size_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

/* Lists the other rows of the two blocks, in an order that does not depend on the partition, and
 * begins the halves. Returns their number. */
static size_t gather(partition_chain *chain, size_t i, size_t j)
{
  const size_t n = chain->space->rows.n, one = chain->label[i], other = chain->label[j];
  size_t r = gsl_rng_uniform_int(chain->rng, n), step = 1 + gsl_rng_uniform_int(chain->rng, n - 1);
  size_t listed = 0;
  while (common_divisor(n, step) > 1) step++;
  for (size_t k = 0; k < n; k++, r += r + step < n ? step : step - n)
    if (r != i && r != j && (chain->label[r] == one || chain->label[r] == other))
      chain->list[listed++] = r;
  for (size_t s = 0; s < 2; s++) {
    empty_block(chain, chain->half + s);
    add_row(chain, s ? j : i, 1, chain->half + s);
  }
  return listed;
}

/* Puts a row, which is in neither half, into one of them: into `forced` unless that is 2. Returns
 * the probability. */
static double place_row(partition_chain *chain, size_t k, unsigned char forced)
{
  const size_t i = chain->list[k], half = chain->half;
  double weight[2];
  densities(chain->space, i, 2, le_partition_block(chain, half), weight);
  const double odds = log_larger(chain, half) + weight[0] - log_larger(chain, half + 1) - weight[1],
               first = exp(fmin(fmax(odds, -ODDS_MOST), ODDS_MOST)),
               second = 1 / (1 + first);
  if (forced == 2) forced = gsl_rng_uniform(chain->rng) < second;
  chain->side[k] = forced;
  add_row(chain, i, 1, half + forced);
  return forced ? second : first * second;
}

/* Divides the n rows of the list one after another. Returns the log probability of the result:
 * drawn, or the halves as they are now (`other` is the block of the second row). */
static double divide(partition_chain *chain, size_t n, int drawn, size_t other)
{
  double product = 1, logs = 0;
  for (size_t k = 0; k < n; k++) {
    product *= place_row(chain, k, drawn ? 2 : chain->label[chain->list[k]] == other);
    if (product > 1 / PRODUCT_MOST) continue;
    logs += log(product);
    product = 1;
  }
  chain->tally.evaluations += (double)(3 * n);
  return logs + log(product);
}

/* `lot` is the log of a uniform number: the ratio of densities must exceed it. */
static void split(partition_chain *chain, size_t i, size_t j, double lot)
{
  const double *level = chain->space->level + chain->t;
  const size_t old = chain->label[j], half = chain->half, n = gather(chain, i, j);
  const double log_probability = divide(chain, n, 1, 0);
  if (!(level[1] - level[0] + (log_factor(chain, half) + log_factor(chain, half + 1)) -
          log_factor(chain, old) - log_probability > lot))
    return;
  chain->tally.accepted++;
  const size_t fresh = chain->t++;
  chain->label[j] = (unsigned char)fresh;
  for (size_t k = 0; k < n; k++)
    if (chain->side[k]) chain->label[chain->list[k]] = (unsigned char)fresh;
  copy_block(chain, half, old);
  copy_block(chain, half + 1, fresh);
}

/* The probability of the halves is at most one, so most merges of blocks that are far apart are
 * refused before it is computed. */
static void merge(partition_chain *chain, size_t i, size_t j, double lot)
{
  const partition_space *space = chain->space;
  const double *level = space->level + chain->t;
  const size_t kept = chain->label[i], gone = chain->label[j], whole = chain->spare;
  copy_block(chain, kept, whole);
  chain->count[whole] += chain->count[gone];
  space->ops->join(space->self, space->tables, le_partition_block(chain, gone),
                   le_partition_block(chain, whole));
  const double log_ratio = level[-1] - level[0] + log_factor(chain, whole) -
                           log_factor(chain, kept) - log_factor(chain, gone);
  if (!(log_ratio > lot)) return;
  const size_t n = gather(chain, i, j);
  if (!(log_ratio + divide(chain, n, 0, gone) > lot)) return;
  chain->tally.accepted++;
  for (size_t k = 0; k < n; k++) chain->label[chain->list[k]] = (unsigned char)kept;
  chain->label[j] = (unsigned char)kept;
  copy_block(chain, whole, kept);
  close_block(chain, gone);
}

/* Another row, half of the time the nearest of some: how pairs are chosen does not depend on the
 * partition, so it cancels between a split and its merge. */
static size_t choose_partner(const partition_chain *chain, size_t i)
{
  const partition_space *space = chain->space;
  const size_t n = space->rows.n,
               candidates = gsl_rng_uniform(chain->rng) < 0.5 ? 1 : space->most;
  size_t best = i;
  double least = INFINITY;
  for (size_t c = 0; c < candidates; c++) {
    const size_t j = (i + 1 + gsl_rng_uniform_int(chain->rng, n - 1)) % n;
    const double square = candidates > 1 ? apart(space, i, j) : 0;
    if (!(square < least)) continue;
    least = square;
    best = j;
  }
  return best;
}

static void split_or_merge(partition_chain *chain)
{
  const size_t n = chain->space->rows.n;
  if (n < 2) return;
  const size_t i = gsl_rng_uniform_int(chain->rng, n), j = choose_partner(chain, i);
  const double lot = log(gsl_rng_uniform_pos(chain->rng));
  const int together = chain->label[i] == chain->label[j];
  chain->tally.proposed++;
  if (together ? chain->t >= chain->space->most : chain->t < 2) return;
  if (together) split(chain, i, j, lot);
  else merge(chain, i, j, lot);
}

/* ---- partitions that are kept ---- */

static void keep(partition_chain *chain)
{
  partition_kept *k = &chain->kept;
  const size_t n = chain->space->rows.n;
  if (++k->since < k->every) return;
  k->since = 0;
  if (k->n == KEPT) { /* every second one goes */
    k->n /= 2;
    k->every *= 2;
    for (size_t s = 0; s < k->n; s++) {
      k->t[s] = k->t[2 * s + 1];
      k->density[s] = k->density[2 * s + 1];
      memcpy(k->label + s * n, k->label + (2 * s + 1) * n, n);
    }
  }
  memcpy(k->label + k->n * n, chain->label, n);
  k->t[k->n] = chain->t;
  k->density[k->n++] = le_partition_density(chain);
}

void le_partition_forget(partition_chain *chain)
{
  const size_t t = chain->space->most + 1;
  chain->kept.n = chain->kept.since = 0;
  chain->kept.every = 1;
  memset(chain->trips, 0, t * sizeof(double));
  memset(chain->high, 0, t * sizeof(size_t));
}

void le_partition_restore(partition_chain *chain, const partition_kept *kept, size_t which)
{
  const size_t n = chain->space->rows.n;
  chain->t = kept->t[which];
  memcpy(chain->label, kept->label + which * n, n);
  rebuild(chain);
}

static void count_trips(partition_chain *chain)
{
  for (size_t t = 1; t < chain->space->most; t++) {
    if (chain->t == chain->space->most) chain->high[t] = 1;
    if (!chain->high[t] || chain->t > t) continue;
    chain->high[t] = 0;
    chain->trips[t]++;
  }
}

void le_partition_move(partition_chain *chain, size_t sweeps, int keeps)
{
  rebuild(chain);
  memset(chain->occupied, 0, (chain->space->most + 1) * sizeof(double));
  for (size_t s = 0; s < sweeps; s++) {
    le_partition_sweep(chain);
    for (size_t k = 0; k < chain->space->splits; k++) split_or_merge(chain);
    if (keeps) keep(chain);
    count_trips(chain);
  }
}

/* Labels of a damaged state are not used as indices. */
static int is_sound(const partition_chain *chain)
{
  const partition_kept *k = &chain->kept;
  const size_t n = chain->space->rows.n, most = chain->space->most;
  int sound = chain->t >= 1 && chain->t <= most && k->n <= KEPT && k->every > 0;
  for (size_t i = 0; sound && i < n; i++) sound = chain->label[i] < chain->t;
  for (size_t s = 0; sound && s < k->n; s++) sound = k->t[s] >= 1 && k->t[s] <= most;
  for (size_t s = 0; sound && s < k->n * n; s++) sound = k->label[s] < k->t[s / n];
  return sound;
}

#define FIELD(member) LE_FIELD(partition_chain, member)
static const le_field fields[] = {
  FIELD(t), FIELD(tally.proposed), FIELD(tally.accepted), FIELD(tally.evaluations),
  LE_WITHIN(partition_chain, kept.n, 0, KEPT), FIELD(kept.every), FIELD(kept.since)
};
#undef FIELD

void le_partition_archive(partition_chain *chain, le_archive *archive)
{
  const size_t n = chain->space->rows.n, t = chain->space->most + 1;
  LE_ARCHIVE_FIELDS(archive, chain, fields);
  le_archive_bytes(archive, chain->label, n);
  le_archive_doubles(archive, chain->trips, t);
  le_archive_sizes(archive, chain->high, t);
  le_archive_indices(archive, chain->kept.t, KEPT, t);
  le_archive_doubles(archive, chain->kept.density, KEPT);
  le_archive_bytes(archive, chain->kept.label, KEPT * n);
  if (archive->status == LE_OK) le_archive_require(archive, is_sound(chain));
}

/* A Markov chain over partitions of the rows: Gibbs updates of single rows, and proposals to split
 * a block or merge two (Jain and Neal 2004), which change many rows at once. */
#include "estimators/partitions/parts.h"

/* ---- memory and blocks ---- */

static size_t slots_of(const partition_space *space) { return space->most + 1; }

void le_partition_space_alloc(partition_space *space, size_t n, le_arena *arena)
{
  space->stride = space->ops->size(space->self);
  space->tables = le_arena_doubles(arena, space->ops->tables(space->self, n));
  space->scale = le_arena_doubles(arena, space->rows.width);
  space->alone = le_arena_doubles(arena, n);
  space->size = le_arena_doubles(arena, n + 2);
  space->join = le_arena_doubles(arena, n + 1);
  space->level = le_arena_doubles(arena, space->most + 2);
}

void le_partition_chain_alloc(partition_chain *chain, const partition_space *space,
                              le_arena *arena)
{
  const size_t n = space->rows.n, slots = slots_of(space);
  chain->label = le_arena_indices(arena, n);
  chain->slot = le_arena_indices(arena, slots);
  chain->place = le_arena_indices(arena, slots);
  chain->count = le_arena_indices(arena, slots);
  chain->block = le_arena_doubles(arena, (slots + 3) * space->stride);
  chain->weight = le_arena_doubles(arena, slots + 1);
  chain->occupied = le_arena_doubles(arena, space->most + 1);
  chain->trips = le_arena_doubles(arena, space->most + 1);
  chain->high = le_arena_indices(arena, space->most + 1);
  chain->list = le_arena_indices(arena, n);
  chain->side = le_arena_bytes(arena, n, 1);
}

static double *block_at(const partition_chain *chain, const partition_space *space, size_t slot)
{
  return chain->block + slot * space->stride;
}

static const double *row_at(const partition_space *space, size_t i)
{
  return space->rows.values + i * space->rows.width;
}

static void add_row(const partition_space *space, size_t i, double sign, double *block)
{
  space->ops->add(space->self, space->tables, row_at(space, i), sign, block);
}

static void clear(const partition_space *space, double *block)
{
  space->ops->clear(space->self, space->tables, block);
}

static double density_in(const partition_space *space, size_t i, const double *block)
{
  return space->ops->log_density(space->self, space->tables, row_at(space, i), block);
}

/* log s(n) m(rows) of a block. */
static double log_factor(const partition_space *space, size_t rows, const double *block)
{
  return space->size[rows] + space->ops->log_evidence(space->self, space->tables, block);
}

/* The reciprocals of the variances of the columns. */
static void scale_columns(partition_space *space)
{
  const size_t n = space->rows.n, p = space->rows.width;
  for (size_t j = 0; j < p; j++) {
    double mean = 0, square = 0;
    for (size_t i = 0; i < n; i++) mean += row_at(space, i)[j] / (double)n;
    for (size_t i = 0; i < n; i++) square += pow(row_at(space, i)[j] - mean, 2) / (double)n;
    space->scale[j] = square > 0 ? 1 / square : 0;
  }
}

void le_partition_space_prepare(partition_space *space)
{
  const size_t n = space->rows.n;
  space->ops->prepare(space->self, &space->rows, space->tables);
  scale_columns(space);
  for (size_t c = 0; c < n + 2; c++) space->size[c] = space->ops->log_size(space->self, c);
  for (size_t c = 0; c < n + 1; c++) space->join[c] = space->size[c + 1] - space->size[c];
}

/* The block leaves or enters the list of those in use; the last of these takes its place. */
static void set_place(partition_chain *chain, size_t place, size_t slot)
{
  chain->slot[place] = slot;
  chain->place[slot] = place;
}

static void close_block(partition_chain *chain, size_t slot)
{
  const size_t last = --chain->t, place = chain->place[slot], other = chain->slot[last];
  set_place(chain, place, other);
  set_place(chain, last, slot);
}

static size_t open_block(partition_chain *chain)
{
  const size_t slot = chain->slot[chain->t++];
  chain->count[slot] = 0;
  return slot;
}

void le_partition_rebuild(partition_chain *chain, const partition_space *space)
{
  for (size_t a = 0; a < chain->t; a++) {
    const size_t slot = chain->slot[a];
    chain->count[slot] = 0;
    clear(space, block_at(chain, space, slot));
  }
  for (size_t i = 0; i < space->rows.n; i++) {
    chain->count[chain->label[i]]++;
    add_row(space, i, 1, block_at(chain, space, chain->label[i]));
  }
}

double le_partition_density(const partition_chain *chain, const partition_space *space)
{
  double sum = 0;
  for (size_t a = 0; a < chain->t; a++) {
    const size_t slot = chain->slot[a];
    sum += log_factor(space, chain->count[slot], block_at(chain, space, slot));
  }
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
 * be the next seed. `alone` is used as work and is set here at the end. */
void le_partition_start(partition_chain *chain, const partition_space *space, size_t clusters)
{
  const size_t n = space->rows.n;
  double *near = space->alone;
  for (size_t a = 0; a < slots_of(space); a++) set_place(chain, a, a);
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
    const size_t slot = open_block(chain);
    for (size_t i = 0; i < n; i++) {
      const double square = apart(space, i, seed);
      if (c > 0 && square >= near[i] && i != seed) continue;
      near[i] = square;
      chain->label[i] = slot;
    }
    near[seed] = 0;
  }
  le_partition_rebuild(chain, space);
  /* a cluster that lost all its rows to later seeds */
  for (size_t a = chain->t; a-- > 0;)
    if (chain->count[chain->slot[a]] == 0) close_block(chain, chain->slot[a]);
  double *empty = block_at(chain, space, slots_of(space));
  clear(space, empty);
  for (size_t i = 0; i < n; i++) space->alone[i] = space->size[1] + density_in(space, i, empty);
}

/* ---- Gibbs updates ---- */

/* Replaces n log weights by weights relative to the largest; returns their sum. */
static double relative(size_t n, double *weight)
{
  double top = -INFINITY, sum = 0;
  for (size_t a = 0; a < n; a++) top = weight[a] > top ? weight[a] : top;
  for (size_t a = 0; a < n; a++) sum += weight[a] = exp(weight[a] - top);
  return sum;
}

static void update_row(partition_chain *chain, const partition_space *space, size_t i)
{
  const size_t old = chain->label[i], single = chain->count[old] == 1;
  double *own = block_at(chain, space, old), *spare = block_at(chain, space, slots_of(space)),
         *weight = chain->weight;
  if (single) {
    close_block(chain, old);
  } else {
    memcpy(spare, own, space->stride * sizeof(double));
    add_row(space, i, -1, own);
    chain->count[old]--;
  }
  const size_t t = chain->t;
  for (size_t a = 0; a < t; a++) {
    const size_t slot = chain->slot[a];
    weight[a] = space->level[t] + space->join[chain->count[slot]] +
                density_in(space, i, block_at(chain, space, slot));
  }
  weight[t] = space->level[t + 1] + space->alone[i];
  const double sum = relative(t + 1, weight), share = weight[t] / sum;
  chain->evaluations += (double)t;
  chain->occupied[t] += 1 - share;
  if (t < space->most) chain->occupied[t + 1] += share;
  double left = gsl_rng_uniform(chain->rng) * sum;
  size_t a = 0;
  while (a < t && (left -= weight[a]) > 0) a++;
  if (a == t && weight[t] == 0) a = t - 1; /* rounding */
  const size_t slot = a < t ? chain->slot[a] : open_block(chain);
  double *block = block_at(chain, space, slot);
  chain->label[i] = slot;
  chain->count[slot]++;
  if (single && slot == old) return; /* still has its row */
  if (slot == old) {
    memcpy(own, spare, space->stride * sizeof(double));
    return;
  }
  if (a == t) clear(space, block);
  add_row(space, i, 1, block);
}

void le_partition_sweep(partition_chain *chain, const partition_space *space)
{
  for (size_t i = 0; i < space->rows.n; i++) update_row(chain, space, i);
}

/* ---- splits and merges ---- */

/* Log odds beyond this make no difference; a product of less than 1 / PRODUCT_MOST is replaced by
 * its logarithm. */
static const double ODDS_MOST = 300, PRODUCT_MOST = 1e150;

/* A proposal: two rows, each with a half of the others that are with either of them. */
typedef struct halves {
  size_t n;         /* other rows, in chain->list */
  size_t count[2];  /* with the two rows */
  double *block[2];
} halves;

static size_t common_divisor(size_t a, size_t b)
{
  while (b > 0) {
    const size_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

/* The other rows of the two blocks, in an order that does not depend on the partition. */
static void gather(partition_chain *chain, const partition_space *space, size_t i, size_t j,
                   halves *h)
{
  const size_t n = space->rows.n, one = chain->label[i], other = chain->label[j];
  size_t r = gsl_rng_uniform_int(chain->rng, n), step = 1 + gsl_rng_uniform_int(chain->rng, n - 1);
  while (common_divisor(n, step) > 1) step++;
  h->n = 0;
  for (size_t k = 0; k < n; k++, r += r + step < n ? step : step - n)
    if (r != i && r != j && (chain->label[r] == one || chain->label[r] == other))
      chain->list[h->n++] = r;
  const size_t row[2] = {i, j};
  for (int s = 0; s < 2; s++) {
    h->block[s] = block_at(chain, space, slots_of(space) + 1 + (size_t)s);
    h->count[s] = 1;
    clear(space, h->block[s]);
    add_row(space, row[s], 1, h->block[s]);
  }
}

/* Puts a row, which is in neither half, into one of them: into `forced` unless that is 2. Returns
 * the probability. */
static double place_row(partition_chain *chain, const partition_space *space, halves *h, size_t k,
                        unsigned char forced)
{
  const size_t i = chain->list[k];
  double weight[2];
  for (int s = 0; s < 2; s++)
    weight[s] = space->join[h->count[s]] + density_in(space, i, h->block[s]);
  const double first = exp(fmin(fmax(weight[0] - weight[1], -ODDS_MOST), ODDS_MOST)),
               second = 1 / (1 + first);
  if (forced == 2) forced = gsl_rng_uniform(chain->rng) < second;
  chain->side[k] = forced;
  h->count[forced]++;
  add_row(space, i, 1, h->block[forced]);
  return forced ? second : first * second;
}

/* Divides the rows one after another. Returns the log probability of the result: drawn, or the
 * halves as they are now (`other` is the block of the second row). */
static double divide(partition_chain *chain, const partition_space *space, halves *h, int drawn,
                     size_t other)
{
  double product = 1, logs = 0;
  for (size_t k = 0; k < h->n; k++) {
    product *= place_row(chain, space, h, k, drawn ? 2 : chain->label[chain->list[k]] == other);
    if (product > 1 / PRODUCT_MOST) continue;
    logs += log(product);
    product = 1;
  }
  chain->evaluations += (double)(2 * h->n);
  return logs + log(product);
}

static double halves_factor(const partition_space *space, const halves *h)
{
  return log_factor(space, h->count[0], h->block[0]) + log_factor(space, h->count[1], h->block[1]);
}

/* `lot` is the log of a uniform number: the ratio of densities must exceed it. */
static void split(partition_chain *chain, const partition_space *space, size_t i, size_t j,
                  double lot)
{
  const size_t old = chain->label[j], t = chain->t;
  double *whole = block_at(chain, space, old);
  halves h;
  gather(chain, space, i, j, &h);
  const double log_probability = divide(chain, space, &h, 1, 0);
  if (!(space->level[t + 1] - space->level[t] + halves_factor(space, &h) -
          log_factor(space, chain->count[old], whole) - log_probability > lot))
    return;
  chain->accepted++;
  const size_t fresh = open_block(chain);
  chain->label[j] = fresh;
  for (size_t k = 0; k < h.n; k++)
    if (chain->side[k]) chain->label[chain->list[k]] = fresh;
  chain->count[old] = h.count[0];
  chain->count[fresh] = h.count[1];
  memcpy(whole, h.block[0], space->stride * sizeof(double));
  memcpy(block_at(chain, space, fresh), h.block[1], space->stride * sizeof(double));
}

/* The probability of the halves is at most one, so most merges of blocks that are far apart are
 * refused before it is computed. */
static void merge(partition_chain *chain, const partition_space *space, size_t i, size_t j,
                  double lot)
{
  const size_t kept = chain->label[i], gone = chain->label[j], t = chain->t,
               rows = chain->count[kept] + chain->count[gone];
  double *whole = block_at(chain, space, slots_of(space)), *own = block_at(chain, space, kept);
  const double *other = block_at(chain, space, gone);
  memcpy(whole, own, space->stride * sizeof(double));
  space->ops->join(space->self, space->tables, other, whole);
  const double log_ratio = space->level[t - 1] - space->level[t] + log_factor(space, rows, whole) -
                           log_factor(space, chain->count[kept], own) -
                           log_factor(space, chain->count[gone], other);
  if (!(log_ratio > lot)) return;
  halves h;
  gather(chain, space, i, j, &h);
  if (!(log_ratio + divide(chain, space, &h, 0, gone) > lot)) return;
  chain->accepted++;
  chain->label[j] = kept;
  for (size_t k = 0; k < h.n; k++) chain->label[chain->list[k]] = kept;
  chain->count[kept] = rows;
  memcpy(own, whole, space->stride * sizeof(double));
  close_block(chain, gone);
}

/* Another row, half of the time the nearest of some: how pairs are chosen does not depend on the
 * partition, so it cancels between a split and its merge. */
static size_t choose_partner(partition_chain *chain, const partition_space *space, size_t i)
{
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

void le_partition_split_or_merge(partition_chain *chain, const partition_space *space)
{
  const size_t n = space->rows.n;
  if (n < 2) return;
  const size_t i = gsl_rng_uniform_int(chain->rng, n), j = choose_partner(chain, space, i);
  const double lot = log(gsl_rng_uniform_pos(chain->rng));
  const int together = chain->label[i] == chain->label[j];
  chain->proposed++;
  if (together ? chain->t >= space->most : chain->t < 2) return;
  if (together) split(chain, space, i, j, lot);
  else merge(chain, space, i, j, lot);
}

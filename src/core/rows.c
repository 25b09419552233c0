/* The rows of a run. Rows of a stream are copied, because the caller's memory may be freed between
 * two blocks. Rows are kept in random order: then every block is a random sample that is contiguous
 * in memory. */
#include "core/rows.h"

#include "base/arena.h"
#include "base/arrays.h"
#include "base/rng.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { AHEAD = 32, AT_ONCE = 256, PART = 4, MANY = 256 * AT_ONCE };

le_rows le_rows_gather(const le_rows *rows, size_t n, const size_t *picked, double *copy)
{
  le_arrays(le_simd_level())->gather(n, rows->width, rows->n, rows->values, picked, copy);
  return (le_rows){n, rows->width, copy};
}

void le_rows_precisions(const le_rows *rows, double *precision)
{
  const size_t n = rows->n, p = rows->width;
  for (size_t j = 0; j < p; j++) {
    double mean = 0, square = 0;
    for (size_t i = 0; i < n; i++) mean += rows->values[i * p + j] / (double)n;
    for (size_t i = 0; i < n; i++) square += pow(rows->values[i * p + j] - mean, 2) / (double)n;
    precision[j] = square > 0 ? 1 / square : 0;
  }
}

static le_status reserve(le_store *store, size_t rows)
{
  if (rows <= store->capacity && !store->borrowed) return LE_OK;
  const size_t more = store->capacity * 3 / 2, capacity = rows > more ? rows : more;
  if (store->width && capacity > SIZE_MAX / sizeof(double) / store->width) return LE_NO_MEMORY;
  double *grown = le_resize(store->borrowed ? NULL : store->values,
                            capacity * store->width * sizeof(double));
  if (!grown) return LE_NO_MEMORY;
  if (store->borrowed)
    memcpy(grown, store->values, le_store_held(store) * store->width * sizeof(double));
  store->borrowed = 0;
  store->values = grown;
  store->capacity = capacity;
  return LE_OK;
}

static void exchange(double *one, double *other, size_t width)
{
  size_t j = 0;
  if (one == other) return;
  for (; j + PART <= width; j += PART) { /* a loop that compilers vectorise */
    double part[PART];
    memcpy(part, one + j, sizeof part);
    memcpy(one + j, other + j, sizeof part);
    memcpy(other + j, part, sizeof part);
  }
  for (; j < width; j++) {
    const double own = one[j];
    one[j] = other[j];
    other[j] = own;
  }
}

/* The row that is exchanged with the k-th row. */
static size_t partner_of(size_t k, double uniform)
{
  const size_t place = (size_t)(uniform * (double)(k + 1));
  return place < k ? place : k;
}

/* Fisher-Yates shuffle from the front: if rows [0, from) are in random order before, [0, to) are
 * afterwards. The partner of each row is chosen AHEAD rows before its turn and prefetched. */
static void mix(double *values, size_t from, size_t to, size_t width, const gsl_rng *rng)
{
  double uniform[AT_ONCE];
  size_t partner[AHEAD];
  for (size_t k = 0; k < to - from + AHEAD; k++) {
    if (k >= AHEAD)
      exchange(values + (from + k - AHEAD) * width, values + partner[k % AHEAD] * width, width);
    if (k >= to - from) continue;
    if (k % AT_ONCE == 0)
      le_uniforms(rng, to - from - k < AT_ONCE ? to - from - k : AT_ONCE, uniform);
    partner[k % AHEAD] = partner_of(from + k, uniform[k % AT_ONCE]);
    le_prefetch(values + partner[k % AHEAD] * width, width * sizeof(double));
  }
}

/* Undoes the exchanges from the last to the first: the result at the old place of a row is its new
 * place. */
le_status le_store_places(size_t n, const gsl_rng *shuffle, int threads, uint32_t *place)
{
  uint32_t *partner = le_resize(NULL, (n < MANY ? n : MANY) * sizeof *partner);
  if (!partner) return LE_NO_MEMORY;
  for (size_t k = 0; k < n; k++) place[k] = (uint32_t)k;
  for (size_t to = n, first; to > 0; to = first) {
    first = (to - 1) / MANY * MANY;
#ifdef _OPENMP
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1 && n > MANY)
#endif
    for (size_t from = first; from < to; from += AT_ONCE) {
      double uniform[AT_ONCE];
      const size_t m = to - from < AT_ONCE ? to - from : AT_ONCE;
      le_uniforms_after(shuffle, from, m, uniform);
      for (size_t k = 0; k < m; k++)
        partner[from - first + k] = (uint32_t)partner_of(from + k, uniform[k]);
    }
    for (size_t k = to; k-- > first;) {
      const uint32_t own = place[k];
      place[k] = place[partner[k - first]];
      place[partner[k - first]] = own;
    }
  }
  (void)threads;
  le_release(partner);
  return LE_OK;
}

size_t le_store_origin(size_t n, size_t row, const gsl_rng *shuffle)
{
  uint32_t *place = n <= UINT32_MAX ? le_resize(NULL, n * sizeof *place) : NULL;
  size_t origin = row;
  if (place && le_store_places(n, shuffle, 1, place) == LE_OK)
    for (origin = 0; place[origin] != row;) origin++;
  le_release(place);
  return origin;
}

/* Shuffles the last n rows. */
static void shuffle_last(le_store *store, size_t n, const gsl_rng *shuffle)
{
  if (!shuffle) return;
  mix(store->values + (store->n - n) * store->width, 0, n, store->width, shuffle);
  if (store->n == n) store->mixed = n;
}

le_status le_store_append(le_store *store, const le_rows *rows, const gsl_rng *shuffle)
{
  if (rows->n == 0) return LE_OK;
  const size_t held = le_store_held(store);
  LE_TRY(reserve(store, held + rows->n));
  memcpy(store->values + held * store->width, rows->values,
         rows->n * store->width * sizeof(double));
  store->n += rows->n;
  shuffle_last(store, rows->n, shuffle);
  return LE_OK;
}

le_status le_store_take(le_store *store, const le_rows *rows, const gsl_rng *shuffle, le_feed feed)
{
  if (le_feed_goes_on(feed) || (shuffle && feed < LE_OWN_ROWS) || store->n > 0)
    return le_store_append(store, rows, shuffle);
  if (!store->borrowed) le_release(store->values);
  /* written to only if the rows belong to the run */
  store->values = (double *)(size_t)rows->values;
  store->n = rows->n;
  store->capacity = 0;
  store->borrowed = 1;
  store->writable = feed >= LE_OWN_ROWS;
  if (feed == LE_MIXED_ROWS && shuffle) {
    le_skip_uniforms(shuffle, store->n);
    store->mixed = store->n;
  } else
    shuffle_last(store, store->n, shuffle);
  return LE_OK;
}

le_status le_store_shuffle(le_store *store, size_t mixed, size_t n, const gsl_rng *rng)
{
  if (store->borrowed && !store->writable) LE_TRY(reserve(store, le_store_held(store)));
  mix(store->values, mixed, n, store->width, rng);
  if (store->mixed < n) store->mixed = n;
  return LE_OK;
}

le_rows le_store_rows(const le_store *store, size_t from, size_t to)
{
  if (store->gone && from < store->kept + store->gone)
    return (le_rows){store->kept, store->width, store->values};
  return (le_rows){to - from, store->width,
                   store->values + le_store_place(store, from) * store->width};
}

le_status le_store_forget(le_store *store, size_t kept, size_t seen)
{
  const size_t first = le_store_place(store, seen), after = store->n - seen, width = store->width;
  double *to = store->values;
  if (store->borrowed) {
    to = le_resize(NULL, (kept + after) * width * sizeof(double));
    if (!to) return LE_NO_MEMORY;
    memcpy(to, store->values, kept * width * sizeof(double));
    store->capacity = kept + after;
  }
  memmove(to + kept * width, store->values + first * width, after * width * sizeof(double));
  store->values = to;
  store->borrowed = 0;
  store->kept = kept;
  store->gone = seen - kept;
  store->mixed = kept;
  return LE_OK;
}

void le_store_represent(le_store *store, size_t all, struct le_asked *asked)
{
  store->kept = store->mixed = le_store_held(store);
  store->gone = all - store->kept;
  store->n = all;
  store->asked = asked;
}

void le_store_free(le_store *store)
{
  if (!store->borrowed) le_release(store->values);
  memset(store, 0, sizeof *store);
}

void le_store_archive(le_store *store, le_archive *archive)
{
  static const le_field fields[] = {
    LE_FIELD(le_store, mixed), LE_FIELD(le_store, gone), LE_FIELD(le_store, kept),
    LE_UNSAVED(le_store, capacity), LE_UNSAVED(le_store, values), LE_UNSAVED(le_store, borrowed),
    LE_UNSAVED(le_store, writable)};
  size_t n = le_store_held(store);
  const size_t row = store->width * sizeof(double);
  le_archive_expect(archive, store->width);
  le_archive_count(archive, &n, row);
  LE_ARCHIVE_FIELDS(archive, store, fields);
  if (archive->status != LE_OK) return;
  if (!archive->writing) {
    store->n = store->gone;
    le_archive_require(archive, store->kept <= n && store->mixed <= n);
    /* rows that are gone are represented by others */
    le_archive_require(archive, !store->gone || store->kept);
    if (archive->status == LE_OK) archive->status = reserve(store, n);
    if (archive->status != LE_OK) return;
    store->n = n + store->gone;
  }
  le_archive_doubles(archive, store->values, n * store->width);
}

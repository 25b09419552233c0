/* Rows of a stream are copied in: the caller's memory may go away while it is open.  Shuffling while copying costs one
 * gather and makes every later block a random sample that lies contiguous in memory. */
#include "core/rows.h"

#include "base/arena.h"

#include <gsl/gsl_randist.h>
#include <stdint.h>
#include <string.h>

enum { STRETCH = 32, THREADS_LEAST = 100000 };

static le_status reserve(le_store *store, size_t rows)
{
  if (rows <= store->capacity && !store->borrowed) return LE_OK;
  const size_t capacity = store->capacity == 0 ? rows : (rows > store->capacity * 3 / 2 ? rows : store->capacity * 3 / 2);
  if (store->width && capacity > SIZE_MAX / sizeof(double) / store->width) return LE_NO_MEMORY;
  double *grown = le_resize(store->borrowed ? NULL : store->values, capacity * store->width * sizeof(double));
  if (!grown) return LE_NO_MEMORY;
  if (store->borrowed) memcpy(grown, store->values, store->n * store->width * sizeof(double));
  store->borrowed = 0;
  store->values = grown;
  store->capacity = capacity;
  return LE_OK;
}

/* Four bytes a row: an order of eight would be half of the data where rows have two numbers. */
static uint32_t *random_order(size_t n, const gsl_rng *shuffle)
{
  uint32_t *order = n > UINT32_MAX ? NULL : le_resize(NULL, n * sizeof *order);
  if (!order) return NULL;
  for (size_t i = 0; i < n; i++) order[i] = (uint32_t)i;
  /* Fisher and Yates, a stretch at a time: its partners are on their way before the first is exchanged */
  size_t partner[STRETCH];
  for (size_t left = n; left > 1;) {
    const size_t count = left - 1 < STRETCH ? left - 1 : STRETCH;
    for (size_t k = 0; k < count; k++) {
      partner[k] = gsl_rng_uniform_int(shuffle, (unsigned long)(left - k));
      le_prefetch(&order[partner[k]], sizeof *order);
    }
    for (size_t k = 0; k < count; k++) {
      const uint32_t own = order[left - 1 - k];
      order[left - 1 - k] = order[partner[k]];
      order[partner[k]] = own;
    }
    left -= count;
  }
  return order;
}

size_t le_store_origin(size_t n, size_t row, const gsl_rng *shuffle)
{
  uint32_t *order = n < 2 ? NULL : random_order(n, shuffle);
  const size_t origin = order ? order[row] : row;
  le_release(order);
  return origin;
}

le_status le_store_append(le_store *store, const le_rows *rows, const gsl_rng *shuffle)
{
  const size_t width = store->width;
  LE_TRY(reserve(store, store->n + rows->n));
  double *out = store->values + store->n * width;
  if (rows->n > 0) store->mixed = shuffle && store->n == 0;
  if (!shuffle || rows->n < 2) {
    memcpy(out, rows->values, rows->n * width * sizeof(double));
  } else {
    uint32_t *order = random_order(rows->n, shuffle);
    if (!order) return LE_NO_MEMORY;
    const int threads = rows->n * width < THREADS_LEAST || store->threads < 1 ? 1 : store->threads;
#ifdef _OPENMP
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
#endif
    for (size_t i = 0; i < rows->n; i++) {
      if (i + STRETCH < rows->n) le_prefetch(rows->values + order[i + STRETCH] * width, width * sizeof(double));
      memcpy(out + i * width, rows->values + order[i] * width, width * sizeof(double));
    }
    (void)threads;
    le_release(order);
  }
  store->n += rows->n;
  return LE_OK;
}

le_status le_store_take(le_store *store, const le_rows *rows, const gsl_rng *shuffle, int last)
{
  if (!last || shuffle || store->n > 0) return le_store_append(store, rows, shuffle);
  if (!store->borrowed) le_release(store->values);
  store->values = (double *)(size_t)rows->values; /* never written to: see reserve */
  store->n = rows->n;
  store->capacity = 0;
  store->borrowed = 1;
  return LE_OK;
}

le_status le_store_shuffle(le_store *store, size_t n, const gsl_rng *rng)
{
  if (store->borrowed) LE_TRY(reserve(store, store->n));
  if (n > 1) gsl_ran_shuffle(rng, store->values, n, store->width * sizeof(double));
  return LE_OK;
}

le_rows le_store_rows(const le_store *store, size_t from, size_t to)
{
  const le_rows rows = {to - from, store->width, store->values + from * store->width};
  return rows;
}

void le_store_free(le_store *store)
{
  if (!store->borrowed) le_release(store->values);
  memset(store, 0, sizeof *store);
}

void le_store_archive(le_store *store, le_archive *archive)
{
  size_t n = store->n;
  le_archive_expect(archive, store->width);
  le_archive_size(archive, &n);
  le_archive_int(archive, &store->mixed);
  if (archive->status != LE_OK) return;
  if (!archive->writing) {
    store->n = 0;
    if (store->width && n > (archive->size - archive->position) / sizeof(double) / store->width)
      archive->status = LE_CORRUPT;
    else
      archive->status = reserve(store, n);
    if (archive->status != LE_OK) return;
    store->n = n;
  }
  le_archive_doubles(archive, store->values, n * store->width);
}

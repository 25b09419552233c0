/* The observations of a run, contiguous, in the order in which they are processed. Rows that are no
 * longer in memory (core/past.h) are represented by a random sample of them, which is at the
 * front. */
#pragma once

#include "base/archive.h"
#include "base/status.h"

#include <gsl/gsl_rng.h>
#include <stdint.h>

typedef struct le_store {
  size_t n, width, capacity; /* n: all rows, with those that are gone (derived from the others) */
  /* the first `kept` rows in memory are a sample of the first kept + gone rows; 0 and 0 while all
   * rows are in memory */
  size_t gone, kept;
  struct le_asked *asked; /* NULL, or derived: what was asked about rows that are elsewhere */
  double *values;
  /* borrowed: the caller owns the values; writable: they may be reordered nevertheless */
  int borrowed, writable;
  /* the first `mixed` rows are in random order: any consecutive ones among them are a random
   * sample */
  size_t mixed;
} le_store;

/* Rows in memory: their number, and all of them. */
static inline size_t le_store_held(const le_store *store) { return store->n - store->gone; }
static inline le_rows le_store_all(const le_store *store)
{
  return (le_rows){le_store_held(store), store->width, store->values};
}
/* Rows in memory that represent the first `seen`: all of them, or the sample. */
static inline size_t le_store_sample(const le_store *store, size_t seen)
{
  return store->gone ? store->kept : seen;
}
/* How many rows the sample represents; 0 if all are in memory. */
static inline size_t le_store_represented(const le_store *store)
{
  return store->gone ? store->kept + store->gone : 0;
}
/* The place in memory of row `row`, which is not represented by the sample. */
static inline size_t le_store_place(const le_store *store, size_t row) { return row - store->gone; }

/* How rows are added: a block of a stream, its last block, or all rows at once in memory that
 * the run may reorder (LE_MIXED_ROWS: already in the random order of the run's stream); or a block
 * of a stream whose rows so far cannot be read again (LE_ONCE_ROWS); or a random sample of rows
 * that are elsewhere (LE_SAMPLE_ROWS). LE_ROWS is 0. */
typedef enum le_feed {
  LE_ROWS,
  LE_LAST_ROWS,
  LE_OWN_ROWS,
  LE_MIXED_ROWS,
  LE_ONCE_ROWS,
  LE_SAMPLE_ROWS
} le_feed;

/* Whether further rows may follow. */
static inline int le_feed_goes_on(le_feed feed)
{
  return feed == LE_ROWS || feed == LE_ONCE_ROWS;
}

/* At most `most` of these rows, from row `first` on. */
static inline le_rows le_rows_part(const le_rows *rows, size_t first, size_t most)
{
  const size_t rest = first < rows->n ? rows->n - first : 0;
  return (le_rows){rest < most ? rest : most, rows->width, rows->values + first * rows->width};
}

/* Copies the n rows with these indices to `copy`, which has room for LE_ALIGN_MORE numbers more. */
le_rows le_rows_gather(const le_rows *rows, size_t n, const size_t *picked, double *copy);
/* The reciprocal of the variance of each column; 0 if all its numbers are equal. */
void le_rows_precisions(const le_rows *rows, double *precision);

/* Appends a block; if `shuffle` is not NULL, the rows of this block are put in random order. */
le_status le_store_append(le_store *store, const le_rows *rows, const gsl_rng *shuffle);
/* The same, but if all rows come at once (empty store, last rows) and either keep their order or
 * belong to the run, they are not copied. The caller must keep them as long as the store exists;
 * rows that belong to the run are reordered. */
le_status le_store_take(le_store *store, const le_rows *rows, const gsl_rng *shuffle, le_feed feed);
/* place[i] is the position of row i after one append of n rows that shuffles with this stream. */
le_status le_store_places(size_t n, const gsl_rng *shuffle, int threads, uint32_t *place);
/* The original index of a row in a store of n rows that were shuffled by one append with this
 * stream. The order is computed again, so that it need not be stored. Returns `row` itself if
 * memory is short. */
size_t le_store_origin(size_t n, size_t row, const gsl_rng *shuffle);
/* Puts the first n rows in random order. If the first `mixed` already are, each later row is
 * exchanged with a randomly chosen row up to its own position (Fisher-Yates). Rows that must not be
 * written to are copied first. */
le_status le_store_shuffle(le_store *store, size_t mixed, size_t n, const gsl_rng *rng);
/* Rows [from, to). If some rows are gone, `from` is 0, and the result is the sample, or no earlier
 * than the first row after those that the sample represents. */
le_rows le_store_rows(const le_store *store, size_t from, size_t to);
/* From now on the first `kept` rows in memory represent the first `seen` rows; the others of these
 * are dropped. */
le_status le_store_forget(le_store *store, size_t kept, size_t seen);
/* From now on the rows in memory are a sample of `all` rows, which are elsewhere. */
void le_store_represent(le_store *store, size_t all, struct le_asked *asked);
void le_store_free(le_store *store);
void le_store_archive(le_store *store, le_archive *archive);

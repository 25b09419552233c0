/* The observations of a run, contiguous, in the order in which they are processed. */
#ifndef LE_CORE_ROWS_H
#define LE_CORE_ROWS_H

#include "base/archive.h"
#include "base/status.h"

#include <gsl/gsl_rng.h>
#include <stdint.h>

typedef struct le_store {
  size_t n, width, capacity;
  double *values;
  /* borrowed: the caller owns the values; writable: they may be reordered nevertheless */
  int borrowed, writable;
  /* the first `mixed` rows are in random order: any consecutive ones among them are a random
   * sample */
  size_t mixed;
} le_store;

/* How rows are added: a block of a stream, its last block, or all rows at once in memory that
 * the run may reorder (LE_MIXED_ROWS: already in the random order of the run's stream). LE_ROWS
 * is 0. */
typedef enum le_feed { LE_ROWS, LE_LAST_ROWS, LE_OWN_ROWS, LE_MIXED_ROWS } le_feed;

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
le_rows le_store_rows(const le_store *store, size_t from, size_t to);
void le_store_free(le_store *store);
void le_store_archive(le_store *store, le_archive *archive);

#endif

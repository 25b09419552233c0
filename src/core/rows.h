/* The observations of a run, contiguous and in the order in which they are walked. */
#ifndef LE_CORE_ROWS_H
#define LE_CORE_ROWS_H

#include "base/archive.h"
#include "base/status.h"

#include <gsl/gsl_rng.h>
#include <stdint.h>

typedef struct le_store {
  size_t n, width, capacity;
  double *values;
  int borrowed, writable; /* the values are the caller's; may be put into another order all the same */
  size_t mixed; /* so many of the first rows are in one random order: any of them that follow each other are a random sample */
} le_store;

/* What a feed of rows is: of a stream, its last (zero is neither), or all there are, in memory that the run may write to, maybe in the
 * places where its stream for their order wants them. */
typedef enum le_feed { LE_ROWS, LE_LAST_ROWS, LE_OWN_ROWS, LE_MIXED_ROWS } le_feed;

/* Appends a block; with `shuffle` not NULL in a random order (only the block itself is shuffled). */
le_status le_store_append(le_store *store, const le_rows *rows, const gsl_rng *shuffle);
/* The same, but rows that come all at once (the store is empty, and these are the last), and either keep their order or are the
 * run's own, are not copied: the caller keeps them as long as the store lives, and finds its own in another order. */
le_status le_store_take(le_store *store, const le_rows *rows, const gsl_rng *shuffle, le_feed feed);
/* Where each of n rows goes that one append with this stream puts in a random order. */
le_status le_store_places(size_t n, const gsl_rng *shuffle, int threads, uint32_t *place);
/* Where a row of a store of n rows, shuffled by one append with this stream, stood before: found anew, so that nobody has to keep the
 * order.  `row` itself when there is no memory for that. */
size_t le_store_origin(size_t n, size_t row, const gsl_rng *shuffle);
/* Puts the first n rows in a random order, where the first `mixed` may be already: then each of the others takes a random place
 * among those before it, which drives out its owner to where it came from. Rows that may not be written to are copied. */
le_status le_store_shuffle(le_store *store, size_t mixed, size_t n, const gsl_rng *rng);
le_rows le_store_rows(const le_store *store, size_t from, size_t to);
void le_store_free(le_store *store);
void le_store_archive(le_store *store, le_archive *archive);

#endif

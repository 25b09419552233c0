/* Counter-based random numbers: Philox4x32-10 (Salmon, Moraes, Dror & Shaw 2011) as a gsl_rng_type.
 *
 * A stream is named by (seed, replicate, index) and is independent of every other, so each particle owns one and
 * a run gives the same numbers at any number of threads.  The state is a key and a position: saving it is cheap. */
#ifndef LE_BASE_RNG_H
#define LE_BASE_RNG_H

#include "base/archive.h"

#include <gsl/gsl_rng.h>
#include <stdint.h>

/* The bijection itself: ten rounds on a 128-bit counter under a 64-bit key. */
void le_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

extern const gsl_rng_type *const le_rng_philox;

/* A set of streams allocated together, and the one for the order of rows, which whoever puts rows together knows before there is a run. */
typedef struct le_streams {
  size_t n;
  gsl_rng **rng, *order;
} le_streams;

/* Streams (replicate, 0) ... (replicate, n - 1); NULL entries never occur on success. */
le_status le_streams_alloc(le_streams *streams, size_t n, uint64_t seed, uint32_t replicate);
void le_streams_free(le_streams *streams);
void le_streams_archive(le_streams *streams, le_archive *archive);

/* Many numbers at once, by vector instructions, a block of the counter for two of them; what a block had left over is not used.
 * n uniforms in (0, 1), those that gsl_rng_uniform() would give; and d standard normals from each of m streams. */
void le_uniforms(const gsl_rng *rng, size_t n, double *out);
/* Those that come after `skipped` others, an even number; and so many skipped. */
void le_uniforms_after(const gsl_rng *rng, size_t skipped, size_t n, double *out);
void le_skip_uniforms(const gsl_rng *rng, size_t n);
void le_normals(const le_streams *streams, size_t first, size_t m, size_t d, double *out);

#endif

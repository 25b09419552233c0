/* Counter-based random numbers: Philox4x32-10 (Salmon, Moraes, Dror & Shaw 2011) as a gsl_rng_type.
 *
 * A stream is identified by (seed, replicate, index) and is independent of all others. Each
 * particle has its own stream, so a run gives the same numbers with any number of threads. The
 * state is a key and a position, so it is small to save. */
#pragma once

#include "base/archive.h"

#include <gsl/gsl_rng.h>
#include <stdint.h>

/* The bijection: ten rounds on a 128-bit counter under a 64-bit key. */
void le_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

extern const gsl_rng_type *const le_rng_philox;

/* Streams allocated together. `order` is for the order of rows; it is known before a run exists, so
 * rows can be stored in their final order from the start. */
typedef struct le_streams {
  size_t n;
  gsl_rng **rng, *order;
} le_streams;

/* Streams (replicate, 0) ... (replicate, n - 1); no entry is NULL on success. */
le_status le_streams_alloc(le_streams *streams, size_t n, uint64_t seed, uint32_t replicate);
void le_streams_free(le_streams *streams);
void le_streams_archive(le_streams *streams, le_archive *archive);

/* Many numbers at once by vector instructions: n uniforms in (0, 1), equal to those of
 * gsl_rng_uniform(); and d standard normals from each of m streams. Each block of the counter gives
 * two numbers; the unused words of a started block are dropped. */
void le_uniforms(const gsl_rng *rng, size_t n, double *out);
/* le_uniforms_after: n uniforms after the next `skipped` ones, an even number, without moving the
 * stream. le_skip_uniforms: skips n uniforms. */
void le_uniforms_after(const gsl_rng *rng, size_t skipped, size_t n, double *out);
void le_skip_uniforms(const gsl_rng *rng, size_t n);
void le_normals(const le_streams *streams, size_t first, size_t m, size_t d, double *out);

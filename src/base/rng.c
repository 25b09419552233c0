/* The Philox generator. The low 64 bits of its counter count blocks; the high 64 bits are (stream
 * index, replicate). */
#include "base/rng.h"

#include "base/arena.h"

#include <string.h>

#define VECTOR_BODY "base/rng_body.h"
#include "base/variants.h"

typedef struct philox_state {
  uint64_t key, next; /* `next`: the block that comes next */
  uint32_t index, replicate;
  uint32_t block[4];
  uint32_t used; /* words of `block` already used; 4 if none are left */
} philox_state;

void le_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
  uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
  uint32_t k0 = key[0], k1 = key[1];
  for (int round = 0; round < 10; round++) {
    const uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
    const uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0, n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
    c1 = (uint32_t)p1;
    c3 = (uint32_t)p0;
    c0 = n0;
    c2 = n2;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  out[0] = c0;
  out[1] = c1;
  out[2] = c2;
  out[3] = c3;
}

static unsigned long philox_get(void *vstate)
{
  philox_state *state = vstate;
  if (state->used >= 4) {
    const uint32_t key[] = {(uint32_t)state->key, (uint32_t)(state->key >> 32)};
    const uint32_t counter[] = {(uint32_t)state->next, (uint32_t)(state->next >> 32), state->index,
                                state->replicate};
    le_philox(counter, key, state->block);
    state->next++;
    state->used = 0;
  }
  return state->block[state->used++];
}

/* In the open interval (0, 1), with 52 bits, because tails of transformed variates need the
 * resolution. With one more bit the largest number plus the half would round to 1. */
static double philox_get_double(void *vstate)
{
  const uint64_t high = philox_get(vstate), low = philox_get(vstate);
  return ((double)(((high << 32) | low) >> 12) + 0.5) * (1.0 / 4503599627370496.0);
}

static void philox_set(void *vstate, unsigned long seed)
{
  philox_state *state = vstate;
  memset(state, 0, sizeof *state);
  state->key = seed;
  state->used = 4;
}

static const gsl_rng_type philox_type = {"philox4x32", 0xffffffffUL, 0, sizeof(philox_state),
                                         philox_set,   philox_get,   philox_get_double};
const gsl_rng_type *const le_rng_philox = &philox_type;

/* ---- many at once ---- */

enum { BLOCKS = 64 };

typedef struct functions {
  void (*uniform_pairs)(size_t n, const uint64_t *counter, size_t stride, uint64_t key, double *one,
                        double *two);
  void (*normal_pairs)(size_t n, const uint64_t *counter, size_t stride, uint64_t key, double *one,
                       double *two);
} functions;

#define FUNCTIONS(variant) {uniform_pairs_##variant, normal_pairs_##variant}
static const functions table[] = TABLES(FUNCTIONS);

/* Blocks that wait for a vector call: where their two numbers go, and how many of them are
 * wanted. */
typedef struct pending {
  size_t n;
  uint64_t counter[4][BLOCKS], key;
  double *to[BLOCKS];
  int both[BLOCKS];
} pending;

static void deliver(pending *p)
{
  double one[BLOCKS], two[BLOCKS];
  /* unused lanes need a valid counter */
  for (size_t k = p->n; k % 8; k++)
    for (int word = 0; word < 4; word++) p->counter[word][k] = 0;
  table[le_simd_level()].normal_pairs(p->n, p->counter[0], BLOCKS, p->key, one, two);
  for (size_t k = 0; k < p->n; k++) {
    p->to[k][0] = one[k];
    if (p->both[k]) p->to[k][1] = two[k];
  }
  p->n = 0;
}

/* The counter of block `next` of a stream as the k-th one. */
static void set_counter(uint64_t (*counter)[BLOCKS], size_t k, const philox_state *state,
                        uint64_t next)
{
  counter[0][k] = next & 0xffffffffu;
  counter[1][k] = next >> 32;
  counter[2][k] = state->index;
  counter[3][k] = state->replicate;
}

/* Requests n numbers from whole blocks, beginning with the next block. */
static void order(pending *p, const gsl_rng *rng, size_t n, double *out)
{
  philox_state *state = gsl_rng_state(rng);
  p->key = state->key;
  state->used = 4;
  for (size_t j = 0; j < n; j += 2) {
    const size_t k = p->n++;
    set_counter(p->counter, k, state, state->next++);
    p->to[k] = out + j;
    p->both[k] = j + 1 < n;
    if (p->n == BLOCKS) deliver(p);
  }
}

void le_skip_uniforms(const gsl_rng *rng, size_t n)
{
  philox_state *state = gsl_rng_state(rng);
  state->next += (n + 1) / 2;
  state->used = 4;
}

void le_uniforms_after(const gsl_rng *rng, size_t skipped, size_t n, double *out)
{
  const philox_state *state = gsl_rng_state(rng);
  const uint64_t first = state->next + skipped / 2;
  uint64_t counter[4][BLOCKS];
  double one[BLOCKS], two[BLOCKS];
  for (size_t from = 0; from < n; from += 2 * BLOCKS) {
    const size_t m = n - from < 2 * BLOCKS ? n - from : 2 * BLOCKS;
    for (size_t k = 0; k < BLOCKS; k++) set_counter(counter, k, state, first + from / 2 + k);
    table[le_simd_level()].uniform_pairs((m + 1) / 2, counter[0], BLOCKS, state->key, one, two);
    for (size_t j = 0; j < m; j++) out[from + j] = (j % 2 ? two : one)[j / 2];
  }
}

void le_uniforms(const gsl_rng *rng, size_t n, double *out)
{
  le_uniforms_after(rng, 0, n, out);
  le_skip_uniforms(rng, n);
}

void le_normals(const le_streams *streams, size_t first, size_t m, size_t d, double *out)
{
  pending p;
  p.n = 0;
  for (size_t i = 0; i < m; i++) order(&p, streams->rng[first + i], d, out + i * d);
  if (p.n) deliver(&p);
}

/* A generator of GSL beside its state. */
typedef struct generator {
  gsl_rng rng;
  philox_state state;
} generator;

static gsl_rng *stream(generator *own, uint64_t seed, uint32_t replicate, uint32_t index)
{
  own->rng = (gsl_rng){le_rng_philox, &own->state};
  own->state = (philox_state){.key = seed, .index = index, .replicate = replicate, .used = 4};
  return &own->rng;
}

/* One block has the pointers and what they point to. */
le_status le_streams_alloc(le_streams *streams, size_t n, uint64_t seed, uint32_t replicate)
{
  *streams = (le_streams){0};
  gsl_rng **rng = le_resize(NULL, (n + 1) * (sizeof *rng + sizeof(generator)));
  if (!rng) return LE_NO_MEMORY;
  generator *own = (generator *)(rng + n + 1);
  for (size_t i = 0; i < n; i++) rng[i] = stream(own + i, seed, replicate, (uint32_t)i);
  *streams = (le_streams){n, rng, stream(own + n, seed, replicate, UINT32_MAX)};
  return LE_OK;
}

void le_streams_free(le_streams *streams)
{
  le_release(streams->rng);
  *streams = (le_streams){0};
}

void le_streams_archive(le_streams *streams, le_archive *archive)
{
  LE_ARCHIVE_WHOLE(archive, streams);
  le_archive_expect(archive, streams->n);
  for (size_t i = 0; i < streams->n && archive->status == LE_OK; i++)
    le_archive_bytes(archive, gsl_rng_state(streams->rng[i]), sizeof(philox_state));
  if (archive->status == LE_OK)
    le_archive_bytes(archive, gsl_rng_state(streams->order), sizeof(philox_state));
}

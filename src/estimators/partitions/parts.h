/* The parts of partitions(): chains over partitions of the rows (chain.c), the evidence of all
 * numbers of components relative to each other from their numbers of blocks (ladder.c), and that of
 * small numbers from the kept partitions (dual.c). partitions.c is the engine. */
#pragma once

#include "base/arena.h"
#include "base/rng.h"
#include "core/machine.h"

#include <math.h>
#include <string.h>

/* What all chains share: the target density of a partition into t blocks is
 * exp(level[t]) prod_b s(n_b) m(rows of b). */
typedef struct partition_space {
  const le_partition_ops *ops;
  const void *self;
  le_rows rows;  /* set once */
  size_t most;   /* blocks */
  size_t splits; /* proposals to split or merge after each sweep */
  size_t stride; /* set once: doubles of a block */
  double *tables, *scale; /* set once; scale[column]: 1 / variance */
  double *empty; /* set once: the block without rows */
  double *alone; /* set once; [row]: log s(1) m(row) */
  double *size;  /* set once; [number of rows]: log s */
  double *level; /* [t = 0 .. most + 1]; -Inf at both ends */
} partition_space;

/* Numbers of proposals to split or merge, and of densities of a row in a block. */
typedef struct partition_tally {
  double proposed, accepted, evaluations;
} partition_tally;

/* Partitions of a chain that were kept: one of `every` sweeps, at most KEPT. */
enum { KEPT = 256 };
typedef struct partition_kept {
  size_t n, every, since;
  size_t *t;
  double *density;
  unsigned char *label; /* [partition][row] */
} partition_kept;

/* A chain. The first t blocks are in use. After the last that can be are a spare one, for what a
 * row or a merge changes, and the two halves of a split. */
typedef struct partition_chain {
  const partition_space *space;
  const gsl_rng *rng;
  size_t t;
  size_t spare, half;   /* set once */
  unsigned char *label; /* [row]: its block */
  size_t *count;        /* derived; [block]: its rows */
  double *block;        /* derived; [block][stride] */
  double *weight;       /* scratch for a row: of each block, and of a new one */
  double *near;         /* scratch for starts: squared distances to seeds */
  double *occupied;     /* scratch; [t]: expected number of updates that end with t blocks */
  size_t *list;         /* scratch: rows of a proposal */
  unsigned char *side;  /* scratch: which half of the proposal each is in */
  partition_tally tally;
  double *trips; /* [t]: how often it went from the most blocks to at most t */
  size_t *high;  /* [t]: whether the most were reached since there were at most t */
  partition_kept kept;
} partition_chain;

/* Given ops, self, rows, most and splits. */
void le_partition_space_make(partition_space *space, le_arena *arena);
void le_partition_chain_alloc(partition_chain *chain, const partition_space *space,
                              le_arena *arena);
double *le_partition_block(const partition_chain *chain, size_t a);
/* Begins with about so many clusters of rows that are close to each other. */
void le_partition_start(partition_chain *chain, size_t clusters);
/* One update of every row given the others. */
void le_partition_sweep(partition_chain *chain);
/* Sweeps, and proposals to split a block or to merge two; with `keeps` partitions are kept. */
void le_partition_move(partition_chain *chain, size_t sweeps, int keeps);
/* The log density without its level. */
double le_partition_density(const partition_chain *chain);
/* Forgets the kept partitions and the trips. */
void le_partition_forget(partition_chain *chain);
/* Goes to a kept partition, which may be another chain's. */
void le_partition_restore(partition_chain *chain, const partition_kept *kept, size_t which);
void le_partition_archive(partition_chain *chain, le_archive *archive);

enum { LADDER_BATCHES = 64 };

/* The ladder: numbers of components from `first` (the anchor) to the most blocks. */
typedef struct partition_ladder {
  const partition_space *space;
  size_t first;
  size_t chains, batches; /* filled batches of each chain, at most LADDER_BATCHES */
  double *occupied;       /* [LADDER_BATCHES][chain][t = 0 .. most] */
} partition_ladder;

/* What is known of one number of components, relative to another. */
typedef struct partition_rung {
  double log_ratio, se; /* of their evidences */
  double apart;         /* joint standard errors between chains that began low and high */
} partition_rung;

/* Levels to begin with: those of the anchor up to its own number of blocks, then those of the last
 * number of components. */
void le_ladder_levels(const partition_ladder *ladder);
/* Lowers the levels of numbers of blocks that are visited often; `rate` says how much. */
void le_ladder_adapt(const partition_ladder *ladder, const double *share, double rate);
/* Whether no number of blocks was visited too rarely. */
int le_ladder_is_even(const partition_ladder *ladder, const double *visits);
/* Corrects the levels by all batches, if some numbers of blocks were visited too rarely; returns
 * whether they were. `visits` is work. */
int le_ladder_correct(const partition_ladder *ladder, double *visits);
/* Joins pairs of batches, so that there is place for as many again. */
void le_ladder_halve(partition_ladder *ladder);
/* work: 2 * chains * batches doubles. */
partition_rung le_ladder_rung(const partition_ladder *ladder, size_t components, size_t base,
                              double *work);
/* log of the weight that a partition into t blocks has given this number of components. */
double le_ladder_weight(const partition_ladder *ladder, size_t components, size_t t);

/* The evidence of a number of components. `share` is the effective size of the sample as a share of
 * its draws, 0 if that is too small; `se` is Inf where the estimate cannot be used. `unseen` is the
 * estimated part of the posterior that no chain has visited: it is in the evidence. */
typedef struct partition_known {
  double log_evidence, se, share, unseen;
} partition_known;

/* Importance sampling from the posteriors given kept partitions. */
enum { DUAL_MOST = 6, DUAL_KEPT = 256 }; /* components: the work grows as 2^K; partitions */
typedef struct partition_dual {
  const partition_space *space;
  size_t most; /* components */
  size_t components;
  double *row, *block, *prior; /* scratch: [term][row], [term][partition][block], [term] */
  double *component;           /* scratch: [draw][component][term] */
  size_t *from;                /* scratch; [partition]: its chain */
  double *log_weight, *share;  /* scratch; [draw]; the share of its density from its chain */
  double *work, *theta, *scratch; /* scratch */
} partition_dual;

/* `most` is what is wanted, and becomes what is possible: 0 if the model has no such densities. */
void le_dual_alloc(partition_dual *dual, const partition_space *space, le_arena *arena);
/* Begins with a number of components; DUAL_KEPT partitions are needed. */
void le_dual_begin(partition_dual *dual, size_t components);
/* The partition `at`, from this chain, has t blocks. */
void le_dual_add(partition_dual *dual, size_t at, size_t from, size_t t, const double *const *block,
                 const gsl_rng *rng);
partition_known le_dual_estimate(partition_dual *dual, int threads);

/* A search for the peaks of a posterior that does not depend on particles.
 *
 * Starts come from the rows where the model offers that (`start` of its contract: three of four),
 * and from the prior: of many draws the most probable ones, and some at random.  They climb on a
 * few rows first, taken at random, then from the distinct peaks on ten times as many, and so on;
 * peaks that are far too light are dropped.  The climbs on all rows are left to the
 * caller: only a handful of them reads all data. */
#ifndef LE_CORE_SEARCH_H
#define LE_CORE_SEARCH_H

#include "core/audit.h"

enum { LE_SEARCH_STARTS_MOST = 512 };

/* As many starts as cost about the same in any dimension. */
size_t le_search_starts(size_t d);

typedef struct le_search {
  size_t d, starts, candidates, rows; /* draws to choose starts from; rows of the first climbs */
  le_store few;
  double *candidate, *value, *scale;
  double *scratch; /* for starts from the rows; NULL where the model has none */
  size_t *order;
  int scattered, done;
  int every; /* make all climbs, also once they agree */
  size_t found;   /* points to climb from on all rows */
  double *start;  /* starts x d, the found ones first, heaviest first if there was a climb */
} le_search;

void le_search_alloc(le_search *search, const le_target *target, size_t starts, size_t rows,
                     le_arena *arena);
void le_search_free(le_search *search);
void le_search_start(le_search *search);
/* One climb, or one choice of what to climb next, among the rows seen of the target, by means of this audit, which starts
 * anew; `take` decides which rows are few.  At the end search->done; when there are more rows it goes on from there. */
le_status le_search_step(le_search *search, le_audit *audit, le_target *target, const gsl_rng *rng,
                         const gsl_rng *take);
/* Starts the audit's climbs from what was found, behind so many other starts that its memory holds already. */
void le_search_climbs(const le_search *search, le_audit *audit, size_t others);
void le_search_archive(le_search *search, le_archive *archive);

#endif

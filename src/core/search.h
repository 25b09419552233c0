/* A search for the modes of a posterior that does not depend on particles.
 *
 * Three of four starts come from the rows if the model offers this (`start` in its contract); the
 * others come from the prior: the most probable ones of many draws (for models without `start`,
 * those that are more probable than their neighbours), and some at random. Climbs begin on a small
 * random sample of the rows. The distinct modes found there are the starts for a sample ten times
 * as large, and so on; modes with far too little mass are dropped. The caller makes the climbs on
 * all rows, so that only a few climbs read all data. */
#pragma once

#include "core/audit.h"

enum { LE_SEARCH_STARTS_MOST = 512 };

/* The most starts in this dimension; fewer are used where climbs are expensive. */
size_t le_search_starts(size_t d);

typedef struct le_search {
  size_t starts;
  size_t d, candidates, rows; /* set once: draws to choose starts from; rows of the first climbs */
  le_store few;
  double *candidate, *value; /* scratch */
  double *scratch; /* scratch for starts from the rows; NULL if the model has none */
  size_t *order, *rest; /* scratch */
  int scattered, done;
  int wider;     /* 1: modes were chosen among few rows and climbed from among more */
  double unseen; /* mass of modes that these climbs have not found, or that were too many for more
                  * rows, relative to what was found */
  size_t drawn;  /* further starts so far */
  int every;     /* set once; 1: make all climbs, even after they agree */
  size_t found;  /* number of points to climb from on all rows */
  double *start; /* starts x d; after a climb the points found come first, heaviest first */
} le_search;

void le_search_alloc(le_search *search, const le_target *target, size_t starts, size_t rows,
                     le_arena *arena);
void le_search_free(le_search *search);
void le_search_start(le_search *search);
/* One climb, or one choice of the next starts, among the rows seen of the target. It uses this
 * audit, which is restarted; `take` decides how many rows the sample has. At the end search->done
 * is set; with more rows the search can continue. */
le_status le_search_step(le_search *search, le_audit *audit, le_target *target, const gsl_rng *rng,
                         const gsl_rng *take);
/* Starts the audit's climbs from the points found, after `others` starts that are already in its
 * memory. */
void le_search_climbs(const le_search *search, le_audit *audit, size_t others);
/* Lets the audit ask for further starts. */
void le_search_attach(le_search *search, le_audit *audit);
/* Mass (Laplace) of modes that were not found or not kept, relative to those found, after the
 * climbs of the audit on all rows; `few` as in le_audit_rarely(). */
double le_search_unseen(const le_search *search, const le_audit *audit, size_t few);
void le_search_archive(le_search *search, le_archive *archive);

/* Symmetric matrices H of the effects of a unit: block diagonal in the effects of the first factor,
 * whose blocks share entries with the effects of the other factors only. H = R R' by elimination of
 * these blocks. */
#pragma once

#include "logevidence.h"

typedef struct arrow {
  size_t q, levels;       /* of the first factor */
  size_t split, dim;      /* q x levels; all effects */
  size_t rest;            /* those of the other factors */
  double *own;            /* split x q: the blocks, lower triangles */
  double *shared;         /* split x rest */
  double *others;         /* rest x rest, lower triangle */
  size_t *used;           /* scratch: rest */
  double half_log_det;    /* log det R */
} arrow;

/* Numbers that an arrow of so many effects needs, `used` included; and places it there. */
size_t le_arrow_size(size_t q, size_t levels, size_t rest);
void le_arrow_place(arrow *h, size_t q, size_t levels, size_t rest, double *room);
/* The matrix `diagonal` times one. */
void le_arrow_begin(arrow *h, double diagonal);
/* Adds x where effects j and k meet, to both triangles. */
void le_arrow_add(arrow *h, size_t j, size_t k, double x);
/* Replaces H by R. Returns 0 if H is not positive definite. */
int le_arrow_factorise(arrow *h);
/* x -> R^-1 x and x -> R'^-1 x. */
void le_arrow_gather(const arrow *h, double *x);
void le_arrow_spread(const arrow *h, double *x);

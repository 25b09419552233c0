/* Rows of groups for regressions with group-level effects: triangular factors, and units: rows that
 * are joined by a group of any factor. */
#include "bridge/bridge.h"

#include "models/reflections.h"

#include <math.h>
#include <string.h>

static int group_of(SEXP group, size_t i, int groups)
{
  const int g = INTEGER(group)[i];
  if (g < 1 || g > groups) Rf_error("Groups must be numbered from 1.");
  return g - 1;
}

/* The rows of each group one after another: `order` has their numbers, `first` where each group
 * begins, and the end. */
static void sort_groups(SEXP group, int groups, size_t *first, size_t *order)
{
  const size_t n = (size_t)XLENGTH(group);
  memset(first, 0, ((size_t)groups + 1) * sizeof *first);
  for (size_t i = 0; i < n; i++) first[group_of(group, i, groups) + 1]++;
  for (int g = 0; g < groups; g++) first[g + 1] += first[g];
  for (size_t i = 0; i < n; i++) order[first[group_of(group, i, groups)]++] = i;
  for (int g = groups; g > 0; g--) first[g] = first[g - 1];
  first[0] = 0;
}

/* A row for the model of sums (models/mixed/sums.c) of each group: the number of its rows, and the
 * upper triangle R of the QR decomposition of its columns, row by row. The last column is the
 * response. */
static void write_triangle(const le_reflections *fit, size_t n, double *to)
{
  *to++ = (double)n;
  for (size_t j = 0; j < fit->p; j++)
    for (size_t k = j; k <= fit->p; k++) *to++ = fit->factor[j * (fit->p + 1) + k];
  *to = sqrt(fit->squares);
}

SEXP ffi_group_sums(SEXP columns, SEXP group, SEXP groups)
{
  if (TYPEOF(columns) != REALSXP || !Rf_isMatrix(columns) || TYPEOF(group) != INTSXP ||
      XLENGTH(group) != Rf_nrows(columns) || Rf_ncols(columns) < 1)
    Rf_error("Columns and groups must have the same number of rows.");
  const int many = Rf_asInteger(groups);
  if (many < 1) Rf_error("There must be a group.");
  const size_t n = (size_t)Rf_nrows(columns), p = (size_t)Rf_ncols(columns) - 1,
               width = 1 + (p + 1) * (p + 2) / 2;
  size_t *first = (size_t *)R_alloc((size_t)many + 1, sizeof *first),
         *order = (size_t *)R_alloc(n + 1, sizeof *order);
  double *room = (double *)R_alloc(p * (p + 1) + 1 + (p + 1) * LE_REFLECTED, sizeof *room);
  SEXP rows = PROTECT(Rf_allocMatrix(REALSXP, (int)width, many));
  const double *x = REAL(columns);
  sort_groups(group, many, first, order);
  for (int g = 0; g < many; g++) {
    le_reflections fit = {.p = p, .factor = room, .columns = room + p * (p + 1) + 1};
    memset(fit.factor, 0, (p * (p + 1) + 1) * sizeof(double));
    for (size_t at = first[g]; at < first[g + 1]; at += LE_REFLECTED) {
      const size_t left = first[g + 1] - at, some = left < LE_REFLECTED ? left : LE_REFLECTED;
      for (size_t j = 0; j <= p; j++)
        for (size_t r = 0; r < some; r++) fit.columns[j * some + r] = x[j * n + order[at + r]];
      le_reflect(&fit, some);
    }
    write_triangle(&fit, first[g + 1] - first[g], REAL(rows) + (size_t)g * width);
  }
  UNPROTECT(1);
  return rows;
}

/* The rows of a triangle as columns of a block. */
static void open_triangle(const double *from, size_t p, double *columns)
{
  memset(columns, 0, (p + 1) * (p + 1) * sizeof *columns);
  from++;
  for (size_t j = 0; j <= p; j++)
    for (size_t k = j; k <= p; k++) columns[k * (p + 1) + j] = *from++;
}

/* Sums of the groups of two parts of the rows. `place` has the group of each later one, from 1:
 * one of those before, or a further one, and each only once. `groups` is the number of all. */
SEXP ffi_join_sums(SEXP before, SEXP later, SEXP place, SEXP groups)
{
  if (TYPEOF(before) != REALSXP || TYPEOF(later) != REALSXP || TYPEOF(place) != INTSXP ||
      Rf_nrows(before) != Rf_nrows(later) || XLENGTH(place) != Rf_ncols(later))
    Rf_error("Sums of groups must have the same columns, and each later one its place.");
  const int many = Rf_asInteger(groups), old = Rf_ncols(before), fresh = Rf_ncols(later);
  const size_t width = (size_t)Rf_nrows(before);
  size_t p = 0;
  while (1 + (p + 1) * (p + 2) / 2 < width) p++;
  if (1 + (p + 1) * (p + 2) / 2 != width || p >= LE_REFLECTED || many < old)
    Rf_error("Sums of groups must be triangles.");
  SEXP rows = PROTECT(zeros(width, (size_t)many));
  memcpy(REAL(rows), REAL(before), width * (size_t)old * sizeof(double));
  double *room = (double *)R_alloc(p * (p + 1) + 1 + (p + 1) * LE_REFLECTED, sizeof *room);
  for (int g = 0; g < fresh; g++) {
    double *to = REAL(rows) + (size_t)group_of(place, (size_t)g, many) * width;
    const double *from = REAL(later) + (size_t)g * width, n = to[0] + from[0];
    if (to[0] > 0) {
      le_reflections fit = {.p = p, .factor = room, .columns = room + p * (p + 1) + 1};
      memset(fit.factor, 0, (p * (p + 1) + 1) * sizeof(double));
      open_triangle(to, p, fit.columns);
      le_reflect(&fit, p + 1);
      open_triangle(from, p, fit.columns);
      le_reflect(&fit, p + 1);
      write_triangle(&fit, 0, to);
    } else {
      memcpy(to, from, width * sizeof *to);
    }
    to[0] = n;
  }
  UNPROTECT(1);
  return rows;
}

/* ---- units ---- */

static int root_of(int *parent, int i)
{
  while (parent[i] != i) i = parent[i] = parent[parent[i]];
  return i;
}

/* The unit of each row, numbered from 1 in the order of the rows. `groups` is a list of integer
 * vectors, the group of each row by each factor, numbered from 1. */
SEXP ffi_group_units(SEXP groups)
{
  if (TYPEOF(groups) != VECSXP || XLENGTH(groups) < 1) Rf_error("There must be a factor.");
  SEXP lead = VECTOR_ELT(groups, 0);
  const R_xlen_t n = XLENGTH(lead);
  int all = 0;
  for (R_xlen_t f = 0; f < XLENGTH(groups); f++) {
    SEXP group = VECTOR_ELT(groups, f);
    if (TYPEOF(group) != INTSXP || XLENGTH(group) != n)
      Rf_error("Factors must have a group for each row.");
    int many = 0;
    for (R_xlen_t i = 0; i < n; i++) {
      if (INTEGER(group)[i] < 1) Rf_error("Groups must be numbered from 1.");
      if (INTEGER(group)[i] > many) many = INTEGER(group)[i];
    }
    all += many;
  }
  int *parent = (int *)R_alloc((size_t)all + 1, sizeof *parent),
      *number = (int *)R_alloc((size_t)all + 1, sizeof *number);
  for (int i = 0; i < all; i++) parent[i] = i, number[i] = 0;
  int before = 0;
  for (R_xlen_t f = 0; f < XLENGTH(groups); f++) {
    const int *group = INTEGER(VECTOR_ELT(groups, f)), *first = INTEGER(lead);
    int many = 0;
    for (R_xlen_t i = 0; i < n; i++) {
      const int a = root_of(parent, first[i] - 1), b = root_of(parent, before + group[i] - 1);
      if (a < b) parent[b] = a;
      else parent[a] = b;
      if (group[i] > many) many = group[i];
    }
    before += many;
  }
  SEXP unit = PROTECT(Rf_allocVector(INTSXP, n));
  int last = 0;
  for (R_xlen_t i = 0; i < n; i++) {
    const int root = root_of(parent, INTEGER(lead)[i] - 1);
    if (number[root] == 0) number[root] = ++last;
    INTEGER(unit)[i] = number[root];
  }
  UNPROTECT(1);
  return unit;
}

/* ---- sums over units ---- */

typedef struct layout {
  int factors;
  const int *q, *level, *many; /* effects; levels of rows (factors x n), and of units */
  size_t most;                 /* numbers of a row of the engine */
} layout;

/* Adds a row of the data to the sums of its unit (models/mixed/crossed.c), Z'Z and Z'[X y]. */
static void add_row(const layout *s, size_t unit, size_t i, size_t n, size_t p, const double *x,
                    const double *z, double *to)
{
  const int *many = s->many + unit * (size_t)s->factors, *level = s->level + i * (size_t)s->factors;
  const size_t q0 = (size_t)s->q[0], split = q0 * (size_t)many[0];
  size_t dim = 0;
  for (int f = 0; f < s->factors; f++) dim += (size_t)(s->q[f] * many[f]);
  const size_t rest = dim - split;
  double *own = to, *shared = own + split * q0, *others = shared + split * rest,
         *with_x = others + rest * rest;
  size_t first = 0, column = 0;
  for (int f = 0; f < s->factors; first += (size_t)(s->q[f] * many[f]), f++)
    for (int k = 0; k < s->q[f]; k++, column++) {
      const size_t at = first + (size_t)((level[f] - 1) * s->q[f] + k);
      const double value = z[column * n + i];
      for (size_t j = 0; j <= p; j++) with_x[at * (p + 1) + j] += value * x[j * n + i];
      size_t begin = 0, other = 0;
      for (int g = 0; g < s->factors; begin += (size_t)(s->q[g] * many[g]), g++)
        for (int l = 0; l < s->q[g]; l++, other++) {
          const size_t to_at = begin + (size_t)((level[g] - 1) * s->q[g] + l);
          const double product = value * z[other * n + i];
          if (f == 0 && g == 0) own[at * q0 + (size_t)l] += product;
          else if (f == 0) shared[at * rest + to_at - split] += product;
          else if (g > 0) others[(at - split) * rest + to_at - split] += product;
        }
    }
}

/* A row of the engine for each unit. `x` has the covariates and the response, `z` the effects of
 * all factors, `size` the numbers of a row of the engine, `shape` a list of q, levels and many. */
SEXP ffi_unit_sums(SEXP x, SEXP z, SEXP unit, SEXP shape, SEXP size)
{
  SEXP q = list_element(shape, "q"), level = list_element(shape, "level"),
       many = list_element(shape, "many");
  if (TYPEOF(x) != REALSXP || TYPEOF(z) != REALSXP || TYPEOF(unit) != INTSXP ||
      TYPEOF(q) != INTSXP || TYPEOF(level) != INTSXP || TYPEOF(many) != INTSXP)
    Rf_error("Columns must be numbers, and units and levels must be whole numbers.");
  const layout s = {(int)XLENGTH(q), INTEGER(q), INTEGER(level), INTEGER(many),
                    (size_t)Rf_asReal(size)};
  const size_t n = (size_t)Rf_nrows(x), p = (size_t)Rf_ncols(x) - 1,
               units = (size_t)(XLENGTH(many) / s.factors), head = 1 + (size_t)s.factors,
               triangle = (p + 1) * (p + 2) / 2;
  if ((size_t)XLENGTH(unit) != n || (size_t)XLENGTH(level) != n * (size_t)s.factors)
    Rf_error("There must be a unit and a level for each row.");
  SEXP triangles = PROTECT(ffi_group_sums(x, unit, Rf_ScalarInteger((int)units)));
  SEXP rows = PROTECT(zeros(s.most, units));
  for (size_t g = 0; g < units; g++) {
    double *to = REAL(rows) + g * s.most;
    const double *from = REAL(triangles) + g * (1 + triangle);
    to[0] = from[0];
    for (int f = 0; f < s.factors; f++) to[1 + f] = s.many[g * (size_t)s.factors + (size_t)f];
    memcpy(to + head, from + 1, triangle * sizeof *to);
  }
  for (size_t i = 0; i < n; i++) {
    const size_t g = (size_t)group_of(unit, i, (int)units);
    add_row(&s, g, i, n, p, REAL(x), REAL(z), REAL(rows) + g * s.most + head + triangle);
  }
  UNPROTECT(2);
  return rows;
}

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

/* The upper triangle R of the QR decomposition of columns, row by row. The last column is the
 * response. What `rows` rows leave below row `rows` is rounding. */
static void write_triangle(const le_reflections *fit, double rows, double *to)
{
  for (size_t j = 0; j < fit->p; j++)
    for (size_t k = j; k <= fit->p; k++)
      *to++ = (double)j < rows ? fit->factor[j * (fit->p + 1) + k] : 0;
  *to = (double)fit->p < rows ? sqrt(fit->squares) : 0;
}

/* The triangle after `share` times column `at` was added to each later column. */
static void add_column(double *triangle, size_t p, size_t at, const double *share)
{
  double *line = triangle;
  for (size_t i = 0; i <= at; i++, line += p + 2 - i)
    for (size_t k = at + 1; k <= p; k++) line[k - i] += share[k] * line[at - i];
}

/* The first column that has the same number, not zero, in `n` rows; or the number of columns. */
static size_t constant_column(const double *x, size_t step, size_t columns, const size_t *row,
                              size_t n)
{
  for (size_t j = 0; j < columns; j++) {
    const double *column = x + j * step, first = column[row[0]];
    size_t i = 0;
    while (i < n && column[row[i]] == first) i++;
    if (i == n && first != 0) return j;
  }
  return columns;
}

static size_t room_of_triangles(size_t p)
{
  return p * (p + 1) + 1 + (p + 1) * (LE_REFLECTED + 1);
}

/* For the model of sums (models/mixed/sums.c) a row for each group: its number of rows and R. If a
 * column is constant within a group, R is that of later columns minus their numbers in the first
 * row, with this added afterwards: where rows agree in all but their last digits, these count. */
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
  double *room = (double *)R_alloc(room_of_triangles(p), sizeof *room),
         *shift = room + room_of_triangles(p) - (p + 1);
  SEXP rows = PROTECT(Rf_allocMatrix(REALSXP, (int)width, many));
  const double *x = REAL(columns);
  sort_groups(group, many, first, order);
  for (int g = 0; g < many; g++) {
    le_reflections fit = {.p = p, .factor = room, .columns = room + p * (p + 1) + 1};
    const size_t *row = order + first[g], in = first[g + 1] - first[g],
                 constant = in > 0 ? constant_column(x, n, p + 1, row, in) : p + 1;
    for (size_t j = 0; j <= p; j++) shift[j] = j > constant ? x[j * n + row[0]] : 0;
    memset(fit.factor, 0, (p * (p + 1) + 1) * sizeof(double));
    for (size_t at = first[g]; at < first[g + 1]; at += LE_REFLECTED) {
      const size_t left = first[g + 1] - at, some = left < LE_REFLECTED ? left : LE_REFLECTED;
      for (size_t j = 0; j <= p; j++)
        for (size_t r = 0; r < some; r++)
          fit.columns[j * some + r] = x[j * n + order[at + r]] - shift[j];
      le_reflect(&fit, some);
    }
    double *to = REAL(rows) + (size_t)g * width;
    to[0] = (double)in;
    write_triangle(&fit, to[0], to + 1);
    if (constant > p) continue;
    for (size_t j = constant + 1; j <= p; j++) shift[j] /= x[constant * n + row[0]];
    add_column(to + 1, p, constant, shift);
  }
  UNPROTECT(1);
  return rows;
}

/* The rows of a triangle as columns of a block. */
static void open_triangle(const double *from, size_t p, double *columns)
{
  memset(columns, 0, (p + 1) * (p + 1) * sizeof *columns);
  for (size_t j = 0; j <= p; j++)
    for (size_t k = j; k <= p; k++) columns[k * (p + 1) + j] = *from++;
}

/* The triangle of the rows of two, `rows` in all, in the place of the first one, without what the
 * first column explains there, which is added afterwards. `room`: room_of_triangles(). */
static void join_triangles(double rows, double *to, const double *from, size_t p, double *room)
{
  le_reflections fit = {.p = p, .factor = room, .columns = room + p * (p + 1) + 1};
  double *share = room + room_of_triangles(p) - (p + 1);
  memset(fit.factor, 0, (p * (p + 1) + 1) * sizeof(double));
  for (size_t k = 1; k <= p; k++) share[k] = to[0] != 0 ? to[k] / to[0] : 0;
  open_triangle(to, p, fit.columns);
  for (size_t k = 1; to[0] != 0 && k <= p; k++) fit.columns[k * (p + 1)] = 0;
  le_reflect(&fit, p + 1);
  open_triangle(from, p, fit.columns);
  for (size_t k = 1; k <= p; k++) fit.columns[k * (p + 1)] -= share[k] * from[0];
  le_reflect(&fit, p + 1);
  write_triangle(&fit, rows, to);
  add_column(to, p, 0, share);
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
  double *room = (double *)R_alloc(room_of_triangles(p), sizeof *room);
  for (int g = 0; g < fresh; g++) {
    double *to = REAL(rows) + (size_t)group_of(place, (size_t)g, many) * width;
    const double *from = REAL(later) + (size_t)g * width, n = to[0] + from[0];
    if (to[0] > 0) join_triangles(n, to + 1, from + 1, p, room);
    else memcpy(to, from, width * sizeof *to);
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

/* Errors unless all that add_row() writes lies within the row of its unit. */
static void check_layout(const layout *s, SEXP z, SEXP unit, size_t p, size_t head, size_t units)
{
  double columns = 0;
  for (int f = 0; f < s->factors; f++) {
    if (s->q[f] < 1) Rf_error("A factor must have effects.");
    columns += s->q[f];
  }
  if (columns * (double)XLENGTH(unit) != (double)XLENGTH(z))
    Rf_error("There must be an effect of each row.");
  for (size_t g = 0; g < units; g++) {
    const int *many = s->many + g * (size_t)s->factors;
    double dim = 0;
    for (int f = 0; f < s->factors; f++) {
      if (many[f] < 0) Rf_error("A unit must have levels.");
      dim += (double)s->q[f] * many[f];
    }
    const double split = (double)s->q[0] * many[0], rest = dim - split,
                 needed = (double)head + 0.5 * (double)((p + 1) * (p + 2)) + split * s->q[0] +
                          dim * rest + dim * (double)(p + 1);
    if (needed > (double)s->most) Rf_error("A row of the engine is too short for its unit.");
  }
  for (R_xlen_t i = 0; i < XLENGTH(unit); i++) {
    const size_t g = (size_t)group_of(unit, (size_t)i, (int)units);
    const int *many = s->many + g * (size_t)s->factors;
    for (int f = 0; f < s->factors; f++) {
      const int level = s->level[(size_t)i * (size_t)s->factors + (size_t)f];
      if (level < 1 || level > many[f]) Rf_error("A row has a level that its unit has not.");
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
  if (XLENGTH(q) < 1) Rf_error("There must be a factor.");
  const layout s = {(int)XLENGTH(q), INTEGER(q), INTEGER(level), INTEGER(many),
                    (size_t)Rf_asReal(size)};
  const size_t n = (size_t)Rf_nrows(x), p = (size_t)Rf_ncols(x) - 1,
               units = (size_t)(XLENGTH(many) / s.factors), head = 1 + (size_t)s.factors,
               triangle = (p + 1) * (p + 2) / 2;
  if ((size_t)XLENGTH(unit) != n || (size_t)XLENGTH(level) != n * (size_t)s.factors)
    Rf_error("There must be a unit and a level for each row.");
  check_layout(&s, z, unit, p, head, units);
  SEXP number = PROTECT(Rf_ScalarInteger((int)units)),
       triangles = PROTECT(ffi_group_sums(x, unit, number));
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
  UNPROTECT(3);
  return rows;
}

/* ---- sums over units of parts of the rows ---- */

/* A row of the engine, by its parts. */
typedef struct unit_row {
  size_t q, split, rest; /* of the first factor; its effects; those of the others */
  double *head, *triangle, *own, *shared, *others, *with_x;
} unit_row;

static unit_row unit_row_at(double *row, int factors, const int *q, const int *many, size_t p)
{
  unit_row s = {.q = (size_t)q[0], .split = (size_t)(q[0] * many[0]), .head = row};
  for (int f = 1; f < factors; f++) s.rest += (size_t)(q[f] * many[f]);
  s.triangle = row + 1 + factors;
  s.own = s.triangle + (p + 1) * (p + 2) / 2;
  s.shared = s.own + s.split * s.q;
  s.others = s.shared + s.split * s.rest;
  s.with_x = s.others + s.rest * s.rest;
  return s;
}

/* Adds the sums of a part of a unit. `place` has the place of each effect. */
static void add_unit(const unit_row *from, const size_t *place, size_t p, double *room,
                     unit_row *to)
{
  const size_t split = from->split, rest = from->rest, q = from->q;
  const double n = to->head[0] + from->head[0];
  if (to->head[0] > 0) join_triangles(n, to->triangle, from->triangle, p, room);
  else memcpy(to->triangle, from->triangle, (p + 1) * (p + 2) / 2 * sizeof(double));
  to->head[0] = n;
  for (size_t i = 0; i < split; i++) {
    for (size_t j = 0; j < q; j++) to->own[place[i] * q + j] += from->own[i * q + j];
    for (size_t j = 0; j < rest; j++)
      to->shared[place[i] * to->rest + place[split + j] - to->split] += from->shared[i * rest + j];
  }
  for (size_t i = 0; i < rest; i++)
    for (size_t j = 0; j < rest; j++)
      to->others[(place[split + i] - to->split) * to->rest + place[split + j] - to->split] +=
        from->others[i * rest + j];
  for (size_t i = 0; i < split + rest; i++)
    for (size_t j = 0; j <= p; j++)
      to->with_x[place[i] * (p + 1) + j] += from->with_x[i * (p + 1) + j];
}

typedef struct joined_units {
  int factors, units;
  const int *q, *many;
  size_t p, width;
  double *rows, *room;
} joined_units;

/* Adds a part: `rows` for its units, the `unit` of each in the whole, and `level`: for each of its
 * units, of each factor, the levels there of its levels. */
static void add_part(const joined_units *all, SEXP part)
{
  SEXP rows = list_element(part, "rows"), unit = list_element(part, "unit"),
       level = list_element(part, "level");
  if (TYPEOF(rows) != REALSXP || TYPEOF(unit) != INTSXP || TYPEOF(level) != INTSXP ||
      XLENGTH(unit) != Rf_ncols(rows))
    Rf_error("A part must have sums, units and levels.");
  const size_t width = (size_t)Rf_nrows(rows), levels = (size_t)XLENGTH(level);
  const size_t factors = (size_t)all->factors;
  int *many = (int *)R_alloc(factors, sizeof *many);
  size_t at = 0, *place = NULL, room = 0;
  for (R_xlen_t u = 0; u < XLENGTH(unit); u++) {
    double *row = REAL(rows) + (size_t)u * width;
    const int whole = group_of(unit, (size_t)u, all->units);
    const int *there = all->many + (size_t)whole * factors;
    size_t dim = 0, size = 0, first = 0;
    for (size_t f = 0; f < factors; f++) {
      if (width < 1 + factors || !(row[1 + f] >= 1 && row[1 + f] <= there[f]))
        Rf_error("A unit must have as many levels as the whole has, or fewer.");
      many[f] = (int)row[1 + f];
      dim += (size_t)(all->q[f] * many[f]);
    }
    const unit_row from = unit_row_at(row, all->factors, all->q, many, all->p);
    size = (size_t)(from.with_x - row) + dim * (all->p + 1);
    if (size > width) Rf_error("A unit must have all its sums.");
    if (dim > room) {
      room = 2 * dim;
      place = (size_t *)R_alloc(room, sizeof *place);
    }
    dim = 0;
    for (size_t f = 0; f < factors; first += (size_t)(all->q[f] * there[f]), f++)
      for (int l = 0; l < many[f]; l++, at++) {
        if (at >= levels || INTEGER(level)[at] < 1 || INTEGER(level)[at] > there[f])
          Rf_error("Each level must have its place.");
        for (int k = 0; k < all->q[f]; k++)
          place[dim++] = first + (size_t)((INTEGER(level)[at] - 1) * all->q[f] + k);
      }
    unit_row to = unit_row_at(all->rows + (size_t)whole * all->width, all->factors, all->q, there,
                              all->p);
    add_unit(&from, place, all->p, all->room, &to);
  }
}

/* Sums over units of all rows from those of parts of them. `many` has the levels of each factor in
 * each unit of the whole, `size` the numbers of a row of the engine. */
SEXP ffi_join_unit_sums(SEXP parts, SEXP q, SEXP many, SEXP covariates, SEXP size)
{
  if (TYPEOF(parts) != VECSXP || TYPEOF(q) != INTSXP || TYPEOF(many) != INTSXP ||
      XLENGTH(q) < 1 || XLENGTH(many) % XLENGTH(q) != 0)
    Rf_error("There must be parts, and levels of each factor.");
  joined_units all = {.factors = (int)XLENGTH(q),
                      .units = (int)(XLENGTH(many) / XLENGTH(q)),
                      .q = INTEGER(q),
                      .many = INTEGER(many),
                      .p = (size_t)Rf_asInteger(covariates),
                      .width = (size_t)Rf_asReal(size)};
  if (all.p >= LE_REFLECTED) Rf_error("There are too many covariates.");
  SEXP rows = PROTECT(zeros(all.width, (size_t)all.units));
  all.rows = REAL(rows);
  all.room = (double *)R_alloc(room_of_triangles(all.p), sizeof *all.room);
  for (int u = 0; u < all.units; u++) {
    const int *own = all.many + (size_t)u * (size_t)all.factors;
    double *row = all.rows + (size_t)u * all.width;
    const unit_row s = unit_row_at(row, all.factors, all.q, own, all.p);
    if ((size_t)(s.with_x - row) + (s.split + s.rest) * (all.p + 1) > all.width)
      Rf_error("A row of the engine is too small.");
    for (int f = 0; f < all.factors; f++) row[1 + f] = own[f];
  }
  for (R_xlen_t i = 0; i < XLENGTH(parts); i++) add_part(&all, VECTOR_ELT(parts, i));
  UNPROTECT(1);
  return rows;
}

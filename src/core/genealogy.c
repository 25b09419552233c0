/* The variance of log Z from ancestors. At step t the ancestors of up to L steps back are known.
 * V(t-L, t-1) is V at lag L-1 one step earlier. */
#include "core/genealogy.h"

#include "base/linalg.h"

#include <string.h>

void le_genealogy_alloc(le_genealogy *genealogy, size_t lag, size_t most, le_arena *arena)
{
  memset(genealogy, 0, sizeof *genealogy);
  genealogy->lag = lag < 1 ? 1 : lag > LE_LAGS_MOST ? LE_LAGS_MOST : lag;
  genealogy->most = most;
  for (size_t l = 0; l <= genealogy->lag; l++)
    genealogy->ancestor[l] = le_arena_indices(arena, most);
  genealogy->group = le_arena_doubles(arena, most);
  genealogy->next = le_arena_indices(arena, most);
}

void le_genealogy_start(le_genealogy *genealogy, size_t m)
{
  genealogy->steps = 0;
  genealogy->before = genealogy->variance = genealogy->excess = 0;
  genealogy->own = genealogy->least = 0;
  genealogy->subtracted = 0;
  genealogy->size[0] = m;
  for (size_t i = 0; i < m; i++) genealogy->ancestor[0][i] = i;
}

static double group_variance(const le_genealogy *genealogy, size_t back, size_t m,
                             const double *weight)
{
  const size_t groups = genealogy->size[back];
  for (size_t a = 0; a < groups; a++) genealogy->group[a] = -1 / (double)groups;
  for (size_t i = 0; i < m; i++) genealogy->group[genealogy->ancestor[back][i]] += weight[i];
  return le_dot(genealogy->group, genealogy->group, groups);
}

void le_genealogy_weigh(le_genealogy *genealogy, size_t m, const double *weight)
{
  const size_t lag = genealogy->lag;
  /* one step later: each particle is its own ancestor of zero steps ago */
  size_t *spare = genealogy->ancestor[lag];
  for (size_t l = lag; l > 0; l--) {
    genealogy->ancestor[l] = genealogy->ancestor[l - 1];
    genealogy->size[l] = genealogy->size[l - 1];
  }
  genealogy->ancestor[0] = spare;
  genealogy->size[0] = m;
  for (size_t i = 0; i < m; i++) spare[i] = i;
  if (genealogy->steps < lag) genealogy->steps++;

  genealogy->variance += group_variance(genealogy, genealogy->steps, m, weight) -
                         genealogy->before - genealogy->excess;
  genealogy->excess = 0;
  /* for the next step: the same weights grouped by ancestors L - 1 steps back, or by those at the
   * start if that is fewer steps */
  const size_t reach = genealogy->steps < lag ? genealogy->steps : lag - 1;
  genealogy->before = group_variance(genealogy, reach, m, weight);
  genealogy->own = group_variance(genealogy, 0, m, weight);
}

double le_genealogy_variance(const le_genealogy *genealogy)
{
  const double least = genealogy->least + genealogy->own;
  return genealogy->subtracted && !(genealogy->variance > least) ? least : genealogy->variance;
}

void le_genealogy_resample(le_genealogy *genealogy, size_t n, const double *weight, int independent,
                           size_t m, const size_t *ancestor)
{
  genealogy->least += genealogy->own;
  genealogy->own = 0;
  if (independent) {
    genealogy->subtracted = 1;
    for (size_t a = 0; a < n; a++) genealogy->group[a] = -weight[a];
    for (size_t i = 0; i < m; i++) genealogy->group[ancestor[i]] += 1 / (double)m;
    genealogy->excess += le_dot(genealogy->group, genealogy->group, n);
  }
  for (size_t l = 0; l <= genealogy->steps; l++) {
    for (size_t i = 0; i < m; i++) genealogy->next[i] = genealogy->ancestor[l][ancestor[i]];
    size_t *old = genealogy->ancestor[l];
    genealogy->ancestor[l] = genealogy->next;
    genealogy->next = old;
  }
}

void le_genealogy_archive(le_genealogy *genealogy, le_archive *archive)
{
  static const le_field fields[] = {
    LE_UP_TO(le_genealogy, steps, lag), LE_FIELD(le_genealogy, before),
    LE_FIELD(le_genealogy, variance), LE_FIELD(le_genealogy, excess),
    LE_FIELD(le_genealogy, own), LE_FIELD(le_genealogy, least),
    LE_WITHIN(le_genealogy, subtracted, 0, 1)};
  le_archive_expect(archive, genealogy->lag);
  LE_ARCHIVE_FIELDS(archive, genealogy, fields);
  const size_t most = genealogy->most;
  le_archive_indices(archive, genealogy->size, genealogy->lag + 1, most + 1);
  for (size_t l = 0; l <= genealogy->lag; l++)
    le_archive_indices(archive, genealogy->ancestor[l], most, most);
}

/* The evidence of all numbers of components from the numbers of blocks that chains visit.
 *
 * With S_t the sum of prod_b s(n_b) m(rows of b) over the partitions into t blocks, the evidence
 * of K components is Z_K = sum_t c(K, t) S_t. Chains visit t with probability proportional to
 * exp(level[t]) S_t, so their visits, divided by exp(level[t]), estimate all S_t up to one factor,
 * and Z_K / Z_first for every K. Up to `first` blocks the levels are log c(first, t): then these
 * partitions together have the weight of Z_first. Above, the levels are chosen so that all numbers
 * of blocks are visited equally often. */
#include "estimators/partitions/parts.h"

/* Numbers of blocks are visited too rarely below this part of their fair share. */
static const double LEAST_SHARE = 0.3;

static size_t numbers(const partition_ladder *ladder) { return ladder->last + 1; }

void le_ladder_alloc(partition_ladder *ladder, le_arena *arena)
{
  ladder->occupied = le_arena_doubles(arena, LADDER_BATCHES * ladder->chains * numbers(ladder));
}

static double log_labellings(const partition_ladder *ladder, const partition_space *space,
                             size_t components, size_t t)
{
  return space->ops->log_labellings(space->self, components, ladder->n, t);
}

void le_ladder_levels(const partition_ladder *ladder, const partition_space *space)
{
  double *level = space->level;
  level[0] = level[ladder->last + 1] = -INFINITY;
  for (size_t t = 1; t <= ladder->last; t++)
    level[t] = t <= ladder->first ? log_labellings(ladder, space, ladder->first, t)
                                  : level[t - 1] + log_labellings(ladder, space, ladder->last, t) -
                                      log_labellings(ladder, space, ladder->last, t - 1);
}

/* The share of the visits that a number of blocks should have, those up to `first` together: the
 * first step up is the one for which whole clusters must change, and gets most. */
static double fair_share(const partition_ladder *ladder, size_t t)
{
  double sum = 0;
  for (size_t k = ladder->first; k <= ladder->last; k++)
    sum += 1 / (1 + (double)(k - ladder->first));
  return 1 / (1 + (double)(t - ladder->first)) / sum;
}

void le_ladder_adapt(const partition_ladder *ladder, const double *share, double rate,
                     double *level)
{
  double low = -fair_share(ladder, ladder->first);
  for (size_t t = 1; t <= ladder->first; t++) low += share[t];
  /* only differences of levels matter: those up to `first` stay */
  for (size_t t = ladder->first + 1; t <= ladder->last; t++)
    level[t] -= rate * (share[t] - fair_share(ladder, t) - low);
}

static double *batch_at(const partition_ladder *ladder, size_t batch, size_t chain)
{
  return ladder->occupied + (batch * ladder->chains + chain) * numbers(ladder);
}

/* The visits of a number of blocks relative to its fair share; those up to `first` are together. */
static double relative_visits(const partition_ladder *ladder, const double *visits, size_t t)
{
  double sum = 0, own = t > ladder->first ? visits[t] : 0;
  for (size_t k = 1; k <= ladder->last; k++) sum += visits[k];
  for (size_t k = 1; k <= ladder->first && t <= ladder->first; k++) own += visits[k];
  return own / sum / fair_share(ladder, t);
}

int le_ladder_is_even(const partition_ladder *ladder, const double *visits)
{
  for (size_t t = ladder->first; t <= ladder->last; t++)
    if (!(relative_visits(ladder, visits, t) >= LEAST_SHARE)) return 0;
  return 1;
}

int le_ladder_correct(const partition_ladder *ladder, double *visits, double *level)
{
  const size_t t = numbers(ladder), all = ladder->batches * ladder->chains;
  memset(visits, 0, t * sizeof(double));
  for (size_t k = 0; k < all * t; k++) visits[k % t] += ladder->occupied[k];
  if (le_ladder_is_even(ladder, visits)) return 0;
  const double least = LEAST_SHARE / 100,
               low = fmax(relative_visits(ladder, visits, ladder->first), least);
  for (size_t k = ladder->first + 1; k < t; k++)
    level[k] -= log(fmax(relative_visits(ladder, visits, k), least) / low);
  return 1;
}

void le_ladder_halve(partition_ladder *ladder)
{
  const size_t each = ladder->chains * numbers(ladder);
  ladder->batches /= 2;
  for (size_t b = 0; b < ladder->batches; b++)
    for (size_t k = 0; k < each; k++)
      ladder->occupied[b * each + k] = ladder->occupied[2 * b * each + k] +
                                       ladder->occupied[(2 * b + 1) * each + k];
}

double le_ladder_weight(const partition_ladder *ladder, const partition_space *space,
                        size_t components, size_t t)
{
  return log_labellings(ladder, space, components, t) - space->level[t];
}

/* The weight of a batch for so many components, divided by exp(top). */
static double batch_weight(const partition_ladder *ladder, const partition_space *space,
                           size_t components, double top, const double *occupied)
{
  double sum = 0;
  for (size_t t = 1; t <= components; t++)
    if (occupied[t] > 0)
      sum += occupied[t] * exp(le_ladder_weight(ladder, space, components, t) - top);
  return sum;
}

static double largest_weight(const partition_ladder *ladder, const partition_space *space,
                             size_t components)
{
  double top = -INFINITY;
  for (size_t t = 1; t <= components; t++)
    top = fmax(top, le_ladder_weight(ladder, space, components, t));
  return top;
}

/* The variance of the mean of all batches, from autocovariances summed while pairs of them are
 * positive (Geyer 1992). `value` has mean zero: [batch][chain]. */
static double variance_of_mean(size_t batches, size_t chains, const double *value)
{
  const double all = (double)(batches * chains);
  double sum = 0;
  for (size_t lag = 0; lag + 1 < batches; lag += 2) {
    double pair = 0;
    for (size_t step = lag; step < lag + 2; step++)
      for (size_t k = 0; k + step * chains < batches * chains; k++)
        pair += (step ? 2 : 1) * value[k] * value[k + step * chains] / all;
    if (lag > 0 && !(pair > 0)) break;
    sum += pair;
  }
  return sum / all;
}

/* The variance of the mean of all chains, from their own means. */
static double variance_between(size_t batches, size_t chains, const double *value)
{
  double sum = 0;
  for (size_t c = 0; c < chains; c++) {
    double mean = 0;
    for (size_t b = 0; b < batches; b++) mean += value[b * chains + c] / (double)batches;
    sum += mean * mean;
  }
  return sum / (double)(chains * (chains - 1));
}

/* Chains with an even number began low, those with an odd number high. */
static double apart(size_t batches, size_t chains, const double *value, double se)
{
  double mean[2] = {0, 0};
  for (size_t k = 0; k < batches * chains; k++)
    mean[k % chains % 2] += 2 * value[k] / (double)(batches * chains);
  return se > 0 ? (mean[1] - mean[0]) / (2 * se) : 0;
}

partition_rung le_ladder_rung(const partition_ladder *ladder, const partition_space *space,
                              size_t components, size_t base, double *work)
{
  const size_t chains = ladder->chains, batches = ladder->batches, all = chains * batches;
  const double top = largest_weight(ladder, space, components),
               low = largest_weight(ladder, space, base);
  double own = 0, other = 0;
  for (size_t k = 0; k < all; k++) {
    const double *occupied = batch_at(ladder, k / chains, k % chains);
    own += batch_weight(ladder, space, components, top, occupied) / (double)all;
    other += batch_weight(ladder, space, base, low, occupied) / (double)all;
  }
  partition_rung rung = {top - low + log(own / other), INFINITY, INFINITY};
  if (!(own > 0 && other > 0)) return rung;
  for (size_t k = 0; k < all; k++) {
    const double *occupied = batch_at(ladder, k / chains, k % chains);
    work[k] = batch_weight(ladder, space, components, top, occupied) / own -
              batch_weight(ladder, space, base, low, occupied) / other;
  }
  rung.se = sqrt(fmax(variance_of_mean(batches, chains, work),
                      variance_between(batches, chains, work)));
  rung.apart = apart(batches, chains, work, rung.se);
  return rung;
}

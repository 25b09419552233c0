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
/* An estimate needs this part of the fair share of visits, from more than this share of chains. */
static const double VISITS_LEAST = 0.03, CHAINS_SHARE = 0.25;

static size_t numbers(const partition_ladder *ladder) { return ladder->space->most + 1; }

static double log_labellings(const partition_ladder *ladder, size_t components, size_t t)
{
  const partition_space *space = ladder->space;
  return space->ops->log_labellings(space->self, components, space->rows.n, t);
}

void le_ladder_levels(const partition_ladder *ladder)
{
  const size_t first = ladder->first, last = ladder->space->most;
  double *level = ladder->space->level;
  level[0] = level[last + 1] = -INFINITY;
  for (size_t t = 1; t <= last; t++)
    level[t] = t <= first ? log_labellings(ladder, first, t)
                          : level[t - 1] + log_labellings(ladder, last, t) -
                              log_labellings(ladder, last, t - 1);
}

/* The share of the visits that a number of blocks should have; those up to `first` are one. A
 * smaller share of larger numbers, or a larger one, makes the standard error larger. */
static double fair_share(const partition_ladder *ladder)
{
  return 1 / (double)(numbers(ladder) - ladder->first);
}

void le_ladder_adapt(const partition_ladder *ladder, const double *share, double rate)
{
  double low = 0;
  for (size_t t = 1; t <= ladder->first; t++) low += share[t];
  /* only differences of levels matter: those up to `first` stay */
  for (size_t t = ladder->first + 1; t < numbers(ladder); t++)
    ladder->space->level[t] -= rate * (share[t] - low);
}

/* The visits of a number of blocks relative to its fair share; those up to `first` are together. */
static double relative_visits(const partition_ladder *ladder, const double *visits, size_t t)
{
  double sum = 0, own = t > ladder->first ? visits[t] : 0;
  for (size_t k = 1; k < numbers(ladder); k++) sum += visits[k];
  for (size_t k = 1; k <= ladder->first && t <= ladder->first; k++) own += visits[k];
  return own / sum / fair_share(ladder);
}

int le_ladder_is_even(const partition_ladder *ladder, const double *visits)
{
  for (size_t t = ladder->first; t < numbers(ladder); t++)
    if (!(relative_visits(ladder, visits, t) >= LEAST_SHARE)) return 0;
  return 1;
}

int le_ladder_correct(const partition_ladder *ladder, double *visits)
{
  const size_t t = numbers(ladder), all = ladder->batches * ladder->chains;
  memset(visits, 0, t * sizeof(double));
  for (size_t k = 0; k < all * t; k++) visits[k % t] += ladder->occupied[k];
  if (le_ladder_is_even(ladder, visits)) return 0;
  const double least = LEAST_SHARE / 100,
               low = fmax(relative_visits(ladder, visits, ladder->first), least);
  for (size_t k = ladder->first + 1; k < t; k++)
    ladder->space->level[k] -= log(fmax(relative_visits(ladder, visits, k), least) / low);
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

double le_ladder_weight(const partition_ladder *ladder, size_t components, size_t t)
{
  return log_labellings(ladder, components, t) - ladder->space->level[t];
}

/* The weights that batches [batch][chain] have for so many components, relative to their mean,
 * which is exp(return value) *mean. */
static double relative_weights(const partition_ladder *ladder, size_t components, double *mean,
                               double *out)
{
  const size_t all = ladder->chains * ladder->batches;
  double top = -INFINITY;
  for (size_t t = 1; t <= components; t++)
    top = fmax(top, le_ladder_weight(ladder, components, t));
  memset(out, 0, all * sizeof(double));
  for (size_t t = 1; t <= components; t++) {
    const double weight = exp(le_ladder_weight(ladder, components, t) - top);
    for (size_t k = 0; k < all; k++) out[k] += ladder->occupied[k * numbers(ladder) + t] * weight;
  }
  *mean = 0;
  for (size_t k = 0; k < all; k++) *mean += out[k] / (double)all;
  for (size_t k = 0; k < all; k++) out[k] /= *mean;
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

/* How many chains have the visits of [batch][chain]. */
static double effective_chains(size_t batches, size_t chains, const double *visits)
{
  double all = 0, squares = 0;
  for (size_t c = 0; c < chains; c++) {
    double sum = 0;
    for (size_t b = 0; b < batches; b++) sum += visits[b * chains + c];
    all += sum;
    squares += sum * sum;
  }
  return squares > 0 ? all * all / squares : 0;
}

/* Whether chains have visited t blocks (up to `first` these together) often enough for an estimate.
 * A number that none has visited adds nothing to the sum, and a single excursion of one chain says
 * nothing of its own error: in both cases the ratio would seem to be known. */
static int is_visited(const partition_ladder *ladder, size_t t, double *work)
{
  const size_t all = ladder->chains * ladder->batches;
  double total = 0, own = 0;
  for (size_t k = 0; k < all; k++) {
    const double *visits = ladder->occupied + k * numbers(ladder);
    work[k] = 0;
    for (size_t a = t > ladder->first ? t : 1; a <= t; a++) work[k] += visits[a];
    for (size_t a = 1; a < numbers(ladder); a++) total += visits[a];
    own += work[k];
  }
  return own >= VISITS_LEAST * fair_share(ladder) * total &&
         effective_chains(ladder->batches, ladder->chains, work) >
           fmax(2, CHAINS_SHARE * (double)ladder->chains);
}

/* Chains with an even number began low, those with an odd number high. */
static double apart(size_t batches, size_t chains, const double *value, double se)
{
  double mean[2] = {0, 0};
  for (size_t k = 0; k < batches * chains; k++)
    mean[k % chains % 2] += 2 * value[k] / (double)(batches * chains);
  return se > 0 ? (mean[1] - mean[0]) / (2 * se) : 0;
}

partition_rung le_ladder_rung(const partition_ladder *ladder, size_t components, size_t base,
                              double *work)
{
  const size_t chains = ladder->chains, batches = ladder->batches, all = chains * batches;
  double own, other, *value = work, *below = work + all;
  const double top = relative_weights(ladder, components, &own, value),
               low = relative_weights(ladder, base, &other, below);
  partition_rung rung = {top - low + log(own / other), INFINITY, INFINITY};
  if (!(own > 0 && other > 0)) return rung;
  for (size_t k = 0; k < all; k++) value[k] -= below[k];
  const double se = sqrt(fmax(variance_of_mean(batches, chains, value),
                              variance_between(batches, chains, value)));
  const double difference = apart(batches, chains, value, se);
  const size_t from = components < base ? components : base,
               to = components < base ? base : components;
  for (size_t t = from; t <= to && from < to; t++)
    if (!is_visited(ladder, t, work)) return rung;
  rung.se = se;
  rung.apart = difference;
  return rung;
}

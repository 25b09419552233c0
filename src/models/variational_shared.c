/* Factors of mean-field variational Bayes, their contribution to the bound, and the gain from
 * relabelling. */
#include "models/variational_shared.h"

#include <gsl/gsl_randist.h>
#include <gsl/gsl_sf_psi.h>
#include <string.h>

/* ---- variances ---- */

le_expected_variance le_expect_variance(const double *q)
{
  return (le_expected_variance){q[0] / q[1], log(q[1]) - gsl_sf_psi(q[0])};
}

void le_update_variance(le_inverse_gamma prior, double n, double squares, double *q)
{
  q[0] = prior.shape + 0.5 * n;
  q[1] = prior.scale + 0.5 * squares;
}

double le_variance_gain(le_inverse_gamma prior, const double *q)
{
  return -(q[0] - prior.shape) * gsl_sf_psi(q[0]) + lgamma(q[0]) - lgamma(prior.shape) -
         prior.shape * log(q[1] / prior.scale) - q[0] * (prior.scale / q[1] - 1);
}

double le_draw_inverse_gamma(const double *q, const gsl_rng *rng)
{
  return q[1] / gsl_ran_gamma(rng, q[0], 1);
}

/* ---- proportions ---- */

void le_expect_log_proportions(size_t k, const double *alpha, double *out)
{
  double sum = 0;
  for (size_t c = 0; c < k; c++) sum += alpha[c];
  const double all = gsl_sf_psi(sum);
  for (size_t c = 0; c < k; c++) out[c] = gsl_sf_psi(alpha[c]) - all;
}

double le_proportions_gain(size_t k, double prior, const double *alpha)
{
  double sum = 0, gain = lgamma((double)k * prior) - (double)k * lgamma(prior);
  for (size_t c = 0; c < k; c++) sum += alpha[c];
  const double all = gsl_sf_psi(sum);
  for (size_t c = 0; c < k; c++)
    gain += lgamma(alpha[c]) + (prior - alpha[c]) * (gsl_sf_psi(alpha[c]) - all);
  return gain - lgamma(sum);
}

/* Gamma(a) is distributed as Gamma(a + 1) U^(1/a). */
double le_draw_log_gamma(const gsl_rng *rng, double shape)
{
  return log(gsl_ran_gamma(rng, shape + 1, 1)) + log(gsl_rng_uniform_pos(rng)) / shape;
}

void le_draw_proportions(size_t k, const double *alpha, const gsl_rng *rng, double *out)
{
  for (size_t c = 0; c < k; c++) out[c] = le_draw_log_gamma(rng, alpha[c]);
  le_to_shares(k, out);
}

/* ---- normal vectors ---- */

double le_normal_gain(double n, double squares, double half_log_det, le_expected_variance prior)
{
  return 0.5 * (n - n * prior.log - prior.precision * squares) + half_log_det;
}

/* ---- categories ---- */

double le_to_weights(size_t k, double *log_weight, double *total)
{
  double top = -INFINITY;
  *total = 0;
  for (size_t c = 0; c < k; c++) top = log_weight[c] > top ? log_weight[c] : top;
  for (size_t c = 0; c < k; c++) *total += log_weight[c] = exp(log_weight[c] - top);
  return top + log(*total);
}

double le_to_shares(size_t k, double *weight)
{
  double total;
  const double log_total = le_to_weights(k, weight, &total);
  for (size_t c = 0; c < k; c++) weight[c] /= total;
  return log_total;
}

double le_entropy(size_t n, const double *p)
{
  double sum = 0;
  for (size_t i = 0; i < n; i++)
    if (p[i] > 0) sum -= p[i] * log(p[i]);
  return sum;
}

size_t le_draw_index(size_t k, const double *weight, double total, const gsl_rng *rng)
{
  double point = total * gsl_rng_uniform(rng);
  size_t c = 0, last = 0;
  for (; c < k; c++) {
    if (weight[c] <= 0) continue;
    last = c;
    if ((point -= weight[c]) < 0) break;
  }
  return c < k ? c : last; /* rounding may leave a small remainder */
}

void le_start_labels(const le_rows *rows, size_t k, const double *weight, const gsl_rng *rng,
                     double *label, double *nearest)
{
  const size_t n = rows->n, d = rows->width;
  for (size_t c = 0; c < k; c++) {
    double sum = 0;
    for (size_t i = 0; i < n && c > 0; i++) sum += nearest[i];
    size_t seed = gsl_rng_uniform_int(rng, n);
    if (sum > 0 && isfinite(sum)) {
      double point = sum * gsl_rng_uniform(rng);
      for (seed = 0; seed + 1 < n && (point -= nearest[seed]) >= 0;) seed++;
    }
    const double *centre = rows->values + seed * d;
    for (size_t i = 0; i < n; i++) {
      double distance = 0;
      for (size_t j = 0; j < d; j++)
        distance += (weight ? weight[j] : 1) * (rows->values[i * d + j] - centre[j]) *
                    (rows->values[i * d + j] - centre[j]);
      if (c > 0 && !(distance < nearest[i])) continue;
      nearest[i] = distance;
      label[i] = (double)c;
    }
  }
}

void le_start_shares(const le_rows *rows, size_t k, const double *weight, const gsl_rng *rng,
                     double *share, double *scratch)
{
  le_start_labels(rows, k, weight, rng, scratch, scratch + rows->n);
  le_label_shares(rows->n, k, scratch, share);
}

void le_label_shares(size_t n, size_t k, const double *label, double *share)
{
  memset(share, 0, n * k * sizeof(double));
  for (size_t i = 0; i < n; i++) share[i * k + (size_t)label[i]] = 1;
}

/* ---- relabelling ----
 *
 * Let q' be the mean of q over all M relabellings. The bound grows by the mutual information of the
 * unknowns x and the relabelling,
 *
 *     log M - E_q log sum_s q(s x) / q(x)  <=  log M.
 *
 * The mutual information with a part of x, here the latents z, is not larger. Since q(z) is a
 * product over the components that are relabelled, the sum is a permanent: entry (k, l) is the
 * density of component k in the place of component l. */

enum { MOST_RELABELLED = 200, MOST_EXACT = 12, MOST_DRAWS = 1000, LEAST_DRAWS = 30 };
#define NUMBERS_DRAWN 2e7
#define NEGLIGIBLE 1e-10

size_t le_relabelling_scratch(size_t n, size_t k)
{
  return k > MOST_RELABELLED ? 0 : 2 * n * k + k * k + ((size_t)1 << MOST_EXACT) + 2 * k;
}

/* The permanent of the m x m matrix at `a` (rows are k apart), by dynamic programming over subsets
 * of columns, which never subtracts. */
static double permanent(size_t m, size_t k, const double *a, double *by_subset)
{
  by_subset[0] = 1;
  for (size_t subset = 1; subset < (size_t)1 << m; subset++) {
    size_t row = 0;
    for (size_t l = 0; l < m; l++) row += (subset >> l) & 1;
    double sum = 0;
    for (size_t l = 0; l < m; l++)
      if ((subset >> l) & 1) sum += by_subset[subset ^ ((size_t)1 << l)] * a[(row - 1) * k + l];
    by_subset[subset] = sum;
  }
  return by_subset[((size_t)1 << m) - 1];
}

/* Removes components that no other can replace, or that can replace no other, and moves the m
 * remaining ones to the upper left corner. Returns m. */
static size_t keep_exchangeable(size_t k, double *log_ratio)
{
  size_t m = k;
  for (size_t at = 0; at < m;) {
    double row = 0, column = 0;
    for (size_t l = 0; l < m; l++) {
      if (l == at) continue;
      row += exp(log_ratio[at * k + l]);
      column += exp(log_ratio[l * k + at]);
    }
    if (row > NEGLIGIBLE && column > NEGLIGIBLE) {
      at++;
      continue;
    }
    m--;
    for (size_t l = 0; l <= m; l++) log_ratio[at * k + l] = log_ratio[m * k + l];
    for (size_t l = 0; l <= m; l++) log_ratio[l * k + at] = log_ratio[l * k + m];
    log_ratio[at * k + at] = 0;
  }
  return m;
}

/* log of the permanent of exp(log_ratio), whose diagonal is one; for many components the product of
 * the row sums, which is an upper bound. */
static double log_permanent(size_t k, double *log_ratio, double *by_subset)
{
  const size_t m = keep_exchangeable(k, log_ratio);
  double sum = 0;
  for (size_t r = 0; r < m; r++) {
    double top = 0, total = 0, *row = log_ratio + r * k;
    for (size_t l = 0; l < m; l++) top = row[l] > top ? row[l] : top;
    for (size_t l = 0; l < m; l++) total += row[l] = exp(row[l] - top);
    sum += top + (m > MOST_EXACT ? log(total) : 0);
  }
  if (m <= MOST_EXACT) sum += log(permanent(m, k, log_ratio, by_subset));
  return sum > 0 ? sum : 0;
}

double le_log_exchanges(size_t k, const double *value)
{
  double sum = 0;
  for (size_t c = 0; c < k; c++) {
    size_t alike = 0;
    for (size_t b = 0; b <= c; b++) alike += value[b] == value[c];
    sum += log((double)alike);
  }
  return sum;
}

double le_relabelling_gain(size_t n, size_t k, const double *share, int bits, const double *value,
                           const gsl_rng *rng, double *scratch)
{
  const double most = value ? le_log_exchanges(k, value) : lgamma((double)k + 1);
  if (k > MOST_RELABELLED || most == 0) return 0;
  double *yes = scratch, *no = yes + n * k, *log_ratio = no + n * k, *by_subset = log_ratio + k * k;
  for (size_t i = 0; i < n * k; i++) {
    yes[i] = log(share[i]);
    no[i] = log1p(-share[i]);
  }
  const double each = (double)n * (double)k * (bits ? (double)k : 1), wanted = NUMBERS_DRAWN / each;
  const size_t draws = wanted > MOST_DRAWS    ? MOST_DRAWS
                       : wanted < LEAST_DRAWS ? LEAST_DRAWS
                                              : (size_t)wanted;
  double overlap = 0;
  for (size_t draw = 0; draw < draws; draw++) {
    memset(log_ratio, 0, k * k * sizeof(double));
    for (size_t i = 0; i < n; i++) {
      const size_t own = bits ? 0 : le_draw_index(k, share + i * k, 1, rng);
      for (size_t part = bits ? 0 : own; part < (bits ? k : own + 1); part++) {
        const double *p = (!bits || gsl_rng_uniform(rng) < share[i * k + part] ? yes : no) + i * k;
        for (size_t l = 0; l < k; l++) log_ratio[part * k + l] += p[l] - p[part];
      }
    }
    for (size_t c = 0; c < k * k && value; c++)
      if (value[c / k] != value[c % k]) log_ratio[c] = -INFINITY;
    overlap += log_permanent(k, log_ratio, by_subset) / (double)draws;
  }
  return overlap < most ? most - overlap : 0;
}

/* Evidence of models with a label for each row, by a particle filter over the rows that moves its
 * particles (Chopin 2002, A sequential particle filter method for static models).  It shares no
 * code with the package and is used for reference values only.
 *
 * Everything but the labels (and, where asked for, two variances) is integrated out in closed form.
 * Rows are added one by one, in the order given.  A row's label is drawn from its exact conditional
 * distribution; the weight is multiplied by the sum over labels.  When weights become uneven
 * particles are resampled and moved by Gibbs sweeps over all labels so far.  The estimate of the
 * evidence is unbiased, so the mean over many random orders of the rows is unbiased too. */
#include <R.h>
#include <Rinternals.h>
#include <Rmath.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MIXTURE, CLUSTERING, ATTRIBUTES };
enum { MOST_OPTIONS = 64, MOST_PARTS = 16 };

typedef struct problem {
  int kind, n, d, parts, options, infer;
  const double *y;     /* n x d, a row after the other */
  double conc;         /* concentration of the weights; of the attributes Beta(conc, conc) */
  double shape, rate;  /* inverse-gamma prior of variances */
  double kappa;        /* MIXTURE: 1 / mean_scale^2 */
  const double *share; /* fixed shares or probabilities of the parts; NULL: integrated out */
  double log_var[2];   /* known variances of centres or features, and of the noise */
  double *log_gamma;   /* log gamma(shape + n / 2) by n */
} problem;

/* A particle: labels, log variances, and what the labels say of the rows. */
typedef struct particle {
  double log_var[2];
  double *count;  /* rows in a part; ATTRIBUTES: parts x parts counts of common rows */
  double *sum;    /* parts x d */
  double *square; /* parts x d; CLUSTERING, ATTRIBUTES: one number */
  double *score;  /* log marginal likelihood of each cluster; ATTRIBUTES: of all rows */
  int *label;
} particle;

static int counts_of(const problem *p)
{
  return p->kind == ATTRIBUTES ? p->parts * p->parts : p->parts;
}
static int squares_of(const problem *p) { return p->kind == MIXTURE ? p->parts * p->d : p->parts; }

/* Log marginal likelihood of the rows of one cluster of a mixture. */
static double mixture_score(const problem *p, double n, const double *sum, const double *square)
{
  const double a = p->shape + 0.5 * n, k = p->kappa + n;
  double value = p->d * (p->log_gamma[(int)(n + 0.5)] - p->log_gamma[0] + p->shape * log(p->rate) +
                         0.5 * log(p->kappa / k) - n * M_LN_SQRT_2PI);
  for (int j = 0; j < p->d; j++)
    value -= a * log(p->rate + 0.5 * fmax(0, square[j] - sum[j] * sum[j] / k));
  return value;
}

static double cluster_score(const problem *p, const double *log_var, double n, const double *sum,
                            double square)
{
  const double v = exp(log_var[1]), ratio = exp(log_var[0] - log_var[1]);
  double length = 0;
  for (int j = 0; j < p->d; j++) length += sum[j] * sum[j];
  return -n * p->d * (M_LN_SQRT_2PI + 0.5 * log_var[1]) - 0.5 * p->d * log1p(n * ratio) -
         0.5 * (square - ratio * length / (1 + n * ratio)) / v;
}

/* Log marginal likelihood of all rows given all attributes: common = Z'Z, sum = Z'Y. */
static double attributes_score(const problem *p, const double *log_var, double n,
                               const double *common, const double *sum, double square)
{
  const int k = p->parts;
  const double v = exp(log_var[1]), ratio = exp(log_var[0] - log_var[1]);
  double l[MOST_PARTS * MOST_PARTS], half_log_det = 0, fit = 0;
  for (int a = 0; a < k; a++)
    for (int b = 0; b <= a; b++) {
      double s = common[a * k + b] + (a == b ? 1 / ratio : 0);
      for (int c = 0; c < b; c++) s -= l[a * k + c] * l[b * k + c];
      l[a * k + b] = a == b ? sqrt(s) : s / l[b * k + b];
    }
  for (int a = 0; a < k; a++) half_log_det += log(l[a * k + a]) + 0.5 * log(ratio);
  for (int j = 0; j < p->d; j++) {
    double x[MOST_PARTS];
    for (int a = 0; a < k; a++) {
      x[a] = sum[a * p->d + j];
      for (int c = 0; c < a; c++) x[a] -= l[a * k + c] * x[c];
      x[a] /= l[a * k + a];
      fit += x[a] * x[a];
    }
  }
  return -n * p->d * (M_LN_SQRT_2PI + 0.5 * log_var[1]) - p->d * half_log_det -
         0.5 * (square - fit) / v;
}

static double part_score(const problem *p, const particle *x, int c)
{
  if (p->kind == MIXTURE)
    return mixture_score(p, x->count[c], x->sum + c * p->d, x->square + c * p->d);
  return cluster_score(p, x->log_var, x->count[c], x->sum + c * p->d, x->square[c]);
}

/* Log marginal likelihood of the first `seen` rows at other variances. */
static double total_score(const problem *p, const particle *x, const double *log_var, int seen)
{
  if (p->kind == ATTRIBUTES)
    return attributes_score(p, log_var, seen, x->count, x->sum, x->square[0]);
  double value = 0;
  for (int c = 0; c < p->parts; c++)
    value += cluster_score(p, log_var, x->count[c], x->sum + c * p->d, x->square[c]);
  return value;
}

static void change(const problem *p, particle *x, int label, const double *y, double sign)
{
  if (p->kind == ATTRIBUTES) {
    for (int a = 0; a < p->parts; a++) {
      if (!(label >> a & 1)) continue;
      for (int b = 0; b < p->parts; b++) if (label >> b & 1) x->count[a * p->parts + b] += sign;
      for (int j = 0; j < p->d; j++) x->sum[a * p->d + j] += sign * y[j];
    }
    for (int j = 0; j < p->d; j++) x->square[0] += sign * y[j] * y[j];
    return;
  }
  x->count[label] += sign;
  for (int j = 0; j < p->d; j++) {
    x->sum[label * p->d + j] += sign * y[j];
    x->square[p->kind == MIXTURE ? label * p->d + j : label] += sign * y[j] * y[j];
  }
}

static void rescore(const problem *p, particle *x, int seen)
{
  if (p->kind == ATTRIBUTES) {
    x->score[0] = total_score(p, x, x->log_var, seen);
    return;
  }
  for (int c = 0; c < p->parts; c++) x->score[c] = part_score(p, x, c);
}

static void recount(const problem *p, particle *x, int seen)
{
  memset(x->count, 0, counts_of(p) * sizeof(double));
  memset(x->sum, 0, p->parts * p->d * sizeof(double));
  memset(x->square, 0, squares_of(p) * sizeof(double));
  for (int i = 0; i < seen; i++) change(p, x, x->label[i], p->y + i * p->d, 1);
  rescore(p, x, seen);
}

/* Log prior of a label given those of `others` rows. */
static double label_prior(const problem *p, const particle *x, int label, int others)
{
  if (p->kind != ATTRIBUTES) {
    if (p->share) return log(p->share[label]);
    return log((x->count[label] + p->conc) / (others + p->parts * p->conc));
  }
  double value = 0;
  for (int a = 0; a < p->parts; a++) {
    const double share =
      p->share ? p->share[a] : (x->count[a * p->parts + a] + p->conc) / (others + 2 * p->conc);
    value += log(label >> a & 1 ? share : 1 - share);
  }
  return value;
}

/* Draw a label for a row that is not counted; returns the log of the sum over labels. */
static double draw_label(const problem *p, particle *x, const double *y, int others, int *label)
{
  double weight[MOST_OPTIONS], score[MOST_OPTIONS], top = -INFINITY, sum = 0;
  for (int c = 0; c < p->options; c++) {
    const double prior = label_prior(p, x, c, others);
    const int own = p->kind == ATTRIBUTES ? 0 : c;
    change(p, x, c, y, 1);
    score[c] = p->kind == ATTRIBUTES ? total_score(p, x, x->log_var, others + 1)
                                     : part_score(p, x, c);
    change(p, x, c, y, -1);
    weight[c] = prior + score[c] - x->score[own];
    top = fmax(top, weight[c]);
  }
  for (int c = 0; c < p->options; c++) sum += exp(weight[c] - top);
  double point = unif_rand() * sum;
  int c = 0;
  while (c + 1 < p->options && (point -= exp(weight[c] - top)) >= 0) c++;
  change(p, x, c, y, 1);
  x->score[p->kind == ATTRIBUTES ? 0 : c] = score[c];
  *label = c;
  return top + log(sum);
}

static double variance_prior(const problem *p, double log_var)
{
  return -p->shape * log_var - p->rate * exp(-log_var);
}

static void move_variances(const problem *p, particle *x, int seen)
{
  double here = total_score(p, x, x->log_var, seen);
  for (int turn = 0; turn < 6; turn++) {
    const int which = turn % 2;
    double to[2] = {x->log_var[0], x->log_var[1]};
    to[which] += norm_rand() * exp(-3.5 + 4.5 * unif_rand());
    const double there = total_score(p, x, to, seen);
    const double gain = there - here + variance_prior(p, to[which]) -
                        variance_prior(p, x->log_var[which]);
    if (log(unif_rand()) < gain) {
      x->log_var[which] = to[which];
      here = there;
    }
  }
  rescore(p, x, seen);
}

static void sweep(const problem *p, particle *x, int seen)
{
  for (int i = 0; i < seen; i++) {
    const double *y = p->y + i * p->d;
    change(p, x, x->label[i], y, -1);
    if (p->kind == ATTRIBUTES) x->score[0] = total_score(p, x, x->log_var, seen - 1);
    else x->score[x->label[i]] = part_score(p, x, x->label[i]);
    draw_label(p, x, y, seen - 1, &x->label[i]);
  }
  if (p->infer) move_variances(p, x, seen);
}

static void copy(const problem *p, particle *to, const particle *from)
{
  memcpy(to->log_var, from->log_var, sizeof to->log_var);
  memcpy(to->count, from->count, counts_of(p) * sizeof(double));
  memcpy(to->sum, from->sum, p->parts * p->d * sizeof(double));
  memcpy(to->square, from->square, squares_of(p) * sizeof(double));
  memcpy(to->score, from->score, p->parts * sizeof(double));
  memcpy(to->label, from->label, p->n * sizeof(int));
}

static particle *swarm(const problem *p, int m)
{
  const int width = counts_of(p) + p->parts * p->d + squares_of(p) + p->parts;
  double *block = (double *)R_alloc((size_t)m * width, sizeof(double));
  int *label = (int *)R_alloc((size_t)m * p->n, sizeof(int));
  particle *all = (particle *)R_alloc(m, sizeof *all);
  for (int i = 0; i < m; i++) {
    double *own = block + (size_t)i * width;
    all[i].count = own;
    all[i].sum = all[i].count + counts_of(p);
    all[i].square = all[i].sum + p->parts * p->d;
    all[i].score = all[i].square + squares_of(p);
    all[i].label = label + (size_t)i * p->n;
    memset(all[i].label, 0, p->n * sizeof(int));
    for (int v = 0; v < 2; v++)
      all[i].log_var[v] = p->infer ? log(p->rate / rgamma(p->shape, 1)) : p->log_var[v];
    recount(p, &all[i], 0);
  }
  return all;
}

/* Systematic resampling; returns the log of the mean weight. */
static double resample(const problem *p, int m, particle **all, particle **spare, double *weight)
{
  double top = -INFINITY, sum = 0, at = unif_rand(), seen = 0;
  for (int i = 0; i < m; i++) top = fmax(top, weight[i]);
  for (int i = 0; i < m; i++) sum += exp(weight[i] - top);
  for (int i = 0, next = 0; i < m && next < m; i++) {
    seen += exp(weight[i] - top) / sum * m;
    while (next < m && (next + at < seen || i == m - 1)) copy(p, &(*spare)[next++], &(*all)[i]);
  }
  particle *swap = *all;
  *all = *spare;
  *spare = swap;
  memset(weight, 0, m * sizeof(double));
  return top + log(sum / m);
}

static double effective(int m, const double *weight)
{
  double top = -INFINITY, sum = 0, squares = 0;
  for (int i = 0; i < m; i++) top = fmax(top, weight[i]);
  for (int i = 0; i < m; i++) {
    const double w = exp(weight[i] - top);
    sum += w;
    squares += w * w;
  }
  return sum * sum / squares;
}

/* rows: d x n; kind; settings: parts, concentration, shape, rate, kappa, infer, log variances (2),
 * particles, sweeps; share: fixed shares or NULL.  Returns the log evidence. */
SEXP zoo_labels(SEXP rows, SEXP kind, SEXP settings, SEXP share)
{
  const double *s = REAL(settings);
  problem p = {.kind = asInteger(kind), .n = ncols(rows), .d = nrows(rows), .parts = (int)s[0],
               .infer = s[5] != 0, .y = REAL(rows), .conc = s[1], .shape = s[2], .rate = s[3],
               .kappa = s[4], .share = isNull(share) ? NULL : REAL(share),
               .log_var = {s[6], s[7]}};
  const int m = (int)s[8], sweeps = (int)s[9];
  p.options = p.kind == ATTRIBUTES ? 1 << p.parts : p.parts;
  if (p.options > MOST_OPTIONS || p.parts > MOST_PARTS) error("too many labels");
  p.log_gamma = (double *)R_alloc(p.n + 2, sizeof(double));
  for (int i = 0; i < p.n + 2; i++) p.log_gamma[i] = lgammafn(p.shape + 0.5 * i);
  GetRNGstate();
  particle *all = swarm(&p, m), *spare = swarm(&p, m);
  double *weight = (double *)R_alloc(m, sizeof(double)), total = 0;
  memset(weight, 0, m * sizeof(double));
  for (int t = 0; t < p.n; t++) {
    R_CheckUserInterrupt();
    for (int i = 0; i < m; i++)
      weight[i] += draw_label(&p, &all[i], p.y + t * p.d, t, &all[i].label[t]);
    const int last = t == p.n - 1;
    if (!last && t >= 20 && effective(m, weight) > 0.5 * m) continue;
    total += resample(&p, m, &all, &spare, weight);
    if (last) break;
    for (int i = 0; i < m; i++) {
      recount(&p, &all[i], t + 1);
      for (int turn = 0; turn < sweeps; turn++) sweep(&p, &all[i], t + 1);
    }
  }
  PutRNGstate();
  return ScalarReal(total);
}

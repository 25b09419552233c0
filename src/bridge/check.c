/* The functions of a model, each called in memory that is exactly as large as the contract says,
 * with guards around it: check_model() compares what they return.  Guards are known numbers, which
 * nobody may change; those behind the rows are chosen by the caller, as a model that reads them
 * returns something else when they are others. */
#include "bridge/functions.h"

#include "base/clock.h"
#include "base/threads.h"

#include <math.h>

enum { BEFORE = 65, BEHIND = 2048, MOST_WORDS = 8 };

/* Numbers between guards.  So many lie behind that a model with wrong strides does no harm. */
typedef struct pen {
  double *values, guard;
  size_t n, behind;
} pen;

static pen make_pen(size_t n, double guard)
{
  pen p = {NULL, guard, n, BEHIND + 2 * n};
  p.values = (double *)R_alloc(BEFORE + n + p.behind, sizeof(double)) + BEFORE;
  for (size_t i = 0; i < BEFORE; i++) p.values[i - BEFORE] = guard;
  for (size_t i = 0; i < p.behind; i++) p.values[n + i] = guard;
  return p;
}

static void fill(pen *p, double value)
{
  for (size_t i = 0; i < p->n; i++) p->values[i] = value;
}

static pen copy_pen(const double *from, size_t n, double guard)
{
  pen p = make_pen(n, guard);
  if (n) memcpy(p.values, from, n * sizeof(double));
  return p;
}

/* Bits, as guards may be NaN. */
static int same(const double *a, const double *b, size_t n)
{
  return n == 0 || memcmp(a, b, n * sizeof(double)) == 0;
}

static int whole(const pen *p)
{
  for (size_t i = 0; i < BEFORE; i++)
    if (!same(p->values + i - BEFORE, &p->guard, 1)) return 0;
  for (size_t i = 0; i < p->behind; i++)
    if (!same(p->values + p->n + i, &p->guard, 1)) return 0;
  return 1;
}

/* A call in guarded memory, ready to be made as often as one likes, always with the same random
 * numbers. */
typedef struct prepared {
  model_call c;
  const double *given_theta, *given_rows;
  pen theta, rows, first, second, scratch, other;
  double prefill, soil; /* what is in outputs and in scratch before */
  const gsl_rng *fresh;
} prepared;

static prepared prepare(const model_handle *handle, SEXP call)
{
  const char *what = one_string(list_element(call, "what"), "what");
  prepared p = {.c = read_call(handle, what, maybe_element(call, "rows"),
                               maybe_element(call, "theta"), call)};
  model_call *c = &p.c;
  p.given_theta = c->theta;
  p.given_rows = c->rows.values;
  p.prefill = number_element(call, "prefill", 0);
  p.soil = number_element(call, "soil", 0);
  p.fresh = new_stream(maybe_element(call, "seed"));
  p.theta = make_pen(c->m * c->d, NAN);
  p.rows = make_pen(c->rows.n * c->rows.width, number_element(call, "behind", 0));
  p.first = make_pen(call_output(c, c->function->first), -1.25);
  p.second = make_pen(call_output(c, c->function->second), -1.25);
  p.scratch = make_pen(call_scratch(c, c->rows.n), -1.25);
  p.other = copy_pen(c->other, c->others, NAN);
  c->theta = p.theta.values;
  c->rows.values = p.rows.values;
  c->first = p.first.values;
  c->second = p.second.values;
  c->scratch = p.scratch.values;
  if (c->other) c->other = p.other.values;
  return p;
}

static void perform(prepared *p)
{
  if (p->given_theta)
    memcpy(p->theta.values, p->given_theta, p->theta.n * sizeof(double));
  else
    fill(&p->theta, p->c.function->of == OF_FACTORS ? p->soil : 0);
  if (p->rows.n) memcpy(p->rows.values, p->given_rows, p->rows.n * sizeof(double));
  fill(&p->first, p->prefill);
  fill(&p->second, p->prefill);
  fill(&p->scratch, p->soil);
  gsl_rng_memcpy(p->c.rng, p->fresh);
  p->c.status = LE_OK;
  p->c.value = 0;
  make_call(&p->c);
}

static SEXP vector_of(const pen *p) { return number_vector(p->n, p->values); }

/* What was written that must not be. */
static SEXP broken_in(const prepared *p)
{
  const char *words[MOST_WORDS];
  const model_function *f = p->c.function;
  size_t n = 0;
  if (!whole(&p->theta)) words[n++] = f->of == OF_POINT ? "theta" : "state";
  if (!(f->uses & CHANGES) && p->given_theta &&
      !same(p->theta.values, p->given_theta, p->theta.n))
    words[n++] = "theta";
  if (!whole(&p->rows) || (p->rows.n && !same(p->rows.values, p->given_rows, p->rows.n)))
    words[n++] = "rows";
  if (!whole(&p->first) || !whole(&p->second)) words[n++] = "outputs";
  if (!whole(&p->scratch)) words[n++] = "scratch";
  if (!whole(&p->other)) words[n++] = "theta";
  return string_vector(n, words);
}

/* What a call has answered. */
typedef struct answer {
  const double *first, *second, *theta;
  double value;
} answer;

static answer answer_of(const prepared *p)
{
  return (answer){copy_pen(p->first.values, p->first.n, 0).values,
                  copy_pen(p->second.values, p->second.n, 0).values,
                  copy_pen(p->theta.values, p->theta.n, 0).values, p->c.value};
}

static int answers_as(const prepared *p, const answer *a)
{
  return same(p->first.values, a->first, p->first.n) &&
         same(p->second.values, a->second, p->second.n) &&
         same(p->theta.values, a->theta, p->theta.n) && same(&p->c.value, &a->value, 1);
}

/* Two calls at once, again and again for so many seconds: how many of their answers are not those
 * of one alone. */
static double differing(prepared *pair, double seconds)
{
  answer alone[2];
  int wrong[2] = {0, 0};
  for (int k = 0; k < 2; k++) {
    perform(&pair[k]);
    alone[k] = answer_of(&pair[k]);
  }
  const double until = le_now() + seconds;
#ifdef _OPENMP
#pragma omp parallel for schedule(static, 1) num_threads(2)
#endif
  for (int k = 0; k < 2; k++) {
    do {
      perform(&pair[k]);
      wrong[k] += !answers_as(&pair[k], &alone[k]);
    } while (le_now() < until);
  }
  return wrong[0] + wrong[1];
}

/* A named list: what the call wrote and returned, and what it wrote to that it must not. With
 * another call, `value` is the number of answers that differ when both are made at once. */
static SEXP checked_call(const model_handle *handle, SEXP call)
{
  static const char *const names[] = {"first", "second", "theta", "value", "broken"};
  SEXP with = maybe_element(call, "with");
  prepared pair[2] = {prepare(handle, call)};
  if (!Rf_isNull(with)) {
    pair[1] = prepare(handle, with);
    pair[0].c.value = differing(pair, number_element(call, "seconds", 0.05));
  } else {
    perform(&pair[0]);
  }
  raise_call(&pair[0].c, handle);
  SEXP values[5] = {PROTECT(vector_of(&pair[0].first)), PROTECT(vector_of(&pair[0].second)),
                    PROTECT(vector_of(&pair[0].theta)), PROTECT(Rf_ScalarReal(pair[0].c.value)),
                    PROTECT(broken_in(&pair[0]))};
  SEXP list = named_list(5, names, values);
  UNPROTECT(5);
  return list;
}

/* A list of calls, each a list: `what`, `theta`, `rows`, the arguments that read_call() knows;
 * `prefill`, `soil` and `behind`: what is in outputs, in scratch memory and behind the rows; and
 * `with`, another call that is made at the same time for so many `seconds`. */
SEXP ffi_check_model(SEXP type, SEXP args, SEXP calls)
{
  SEXP pointer = PROTECT(model_new(type, args));
  const R_xlen_t n = XLENGTH(calls);
  SEXP answers = PROTECT(Rf_allocVector(VECSXP, n));
  for (R_xlen_t i = 0; i < n; i++) {
    const void *top = vmaxget();
    SET_VECTOR_ELT(answers, i, checked_call(model_get(pointer), VECTOR_ELT(calls, i)));
    vmaxset(top);
    R_CheckUserInterrupt();
  }
  UNPROTECT(2);
  return answers;
}

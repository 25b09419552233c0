/* Integrals over the real line of the exponential of a smooth function, and draws from the density
 * that is proportional to it. The function may have several peaks of very different widths. */
#pragma once

#include "base/status.h"

#include <gsl/gsl_rng.h>

typedef struct le_panel {
  double from, to;
  double mass; /* share of the integral */
  double most; /* largest value of the function at its nodes */
} le_panel;

typedef struct le_quadrature {
  double (*log_density)(const void *self, double t);
  const void *self;
  double log_integral;
  double error; /* relative difference from the integral with panels of twice the length */
  size_t n;
  le_panel *panel;
} le_quadrature;

/* Integrates from `from` to `to`. The logarithm of the density must have no features narrower than
 * a few hundredths; peaks of the density itself may be as narrow as they like. `log_density` and
 * `self` are set by the caller. LE_NOT_FINITE if the density is nowhere finite or not negligible at
 * both limits. */
le_status le_quadrature_run(le_quadrature *quadrature, double from, double to);
/* Only `log_integral`, in a small part of the time, if the density has one peak between `from` and
 * `to` or beyond; else returns 0. */
int le_quadrature_quick(le_quadrature *quadrature, double from, double to);
double le_quadrature_draw(const le_quadrature *quadrature, const gsl_rng *rng);
void le_quadrature_free(le_quadrature *quadrature);

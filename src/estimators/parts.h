/* What engines show to others that are made of them. */
#ifndef LE_ESTIMATORS_PARTS_H
#define LE_ESTIMATORS_PARTS_H

#include "core/estimator.h"

extern const le_estimator_ops le_walk_estimator, le_nested_estimator;
extern const le_setting le_walk_table[], le_stage_table[], le_nested_table[];

/* A walk that has not begun takes over particles that stand for the posterior of the first `seen` of its rows, whose log
 * evidence has this variance. */
le_status le_walk_adopt(void *walk, size_t seen, const double *theta, double log_evidence, double variance);
/* The particles at the end of nested sampling in chunks, and what it found. */
const double *le_nested_particles(const void *nested, double *log_evidence, double *variance);

#endif

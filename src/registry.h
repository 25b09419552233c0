/* Models, kernels and estimators by name. */
#pragma once

#include "core/estimator.h"

/* NULL for an unknown name. */
const le_model_ops *le_find_model(const char *name);
const le_kernel_ops *le_find_kernel(const char *name);
const le_estimator_ops *le_find_estimator(const char *name);
/* Entry i of the table, from 0; NULL after the last. */
const le_model_ops *le_model_at(size_t i);
const le_kernel_ops *le_kernel_at(size_t i);
const le_estimator_ops *le_estimator_at(size_t i);

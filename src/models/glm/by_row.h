/* Regressions in which a further parameter has a linear predictor of its own. */
#ifndef LE_MODELS_GLM_BY_ROW_H
#define LE_MODELS_GLM_BY_ROW_H

#include "models/glm/instance.h"

/* Room for workspace.by_row. */
size_t le_glm_row_scratch(const glm *model, size_t rows);

/* Adds values (may be NULL) and gradients (may be NULL) of one particle. */
void le_glm_row_evaluate(const glm *model, const double *theta, const workspace *w, double *value,
                         double *grad);
void le_glm_row_hess(const glm *model, const double *theta, const workspace *w, double *grad,
                     double *hess);
/* Leaves the log density of each row, without the constants of responses, in w->column. */
void le_glm_row_each(const glm *model, const double *theta, const workspace *w);

#endif

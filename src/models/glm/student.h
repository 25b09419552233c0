/* Student's t: what the families with known and with unknown degrees of freedom share. */
#ifndef LE_MODELS_GLM_STUDENT_H
#define LE_MODELS_GLM_STUDENT_H

#include "models/glm/family.h"

void glm_student_point(const double *further, int curves, glm_point *point);
double glm_student_draw(const gsl_rng *rng, double eta, const double *further, double *extra);
glm_guess glm_student_guess(double y, double extra);
void glm_student_guess_further(double variance, double *further);

#endif

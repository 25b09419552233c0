/* The functions of models/glm/functions_body.h for single numbers. */
#ifndef LE_MODELS_GLM_SPECIAL_H
#define LE_MODELS_GLM_SPECIAL_H

/* The product of z + k, k = 0 .. 7. */
double glm_eight_factors(double z);
/* log Gamma(z) - (z - 1/2) log z + z - log(2 pi) / 2, and digamma(z) - log z + 1 / (2 z), for
 * z >= 8. */
double glm_stirling(double z);
double glm_digamma_rest(double z);
/* log Gamma(z + x) - log Gamma(z), for x >= 0; without cancellation for large z. */
double glm_log_gamma_ratio(double z, double x);

#endif

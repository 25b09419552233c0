/* Compiles the kernels of a family, which has defined what models/glm/family_body.h needs. */
#define VECTOR_BODY "models/glm/family_body.h"
#include "base/variants.h"

#define GLM_KERNELS(variant) {rows_##variant, responses_##variant}
static const glm_kernels kernels[] = TABLES(GLM_KERNELS);

/* The kernels of models/glm/student.c if the degrees of freedom are known. */
#include "models/glm/family.h"

#define FAMILY_FURTHER 1
#define FAMILY_RESPONSE plain
#define FAMILY_BODY "models/glm/student_body.h"
#define VECTOR_BODY "models/glm/family_body.h"
#include "base/variants.h"

#define GLM_KERNELS(variant) {rows_##variant, responses_##variant}
const glm_kernels le_glm_student_fixed_kernels[] = TABLES(GLM_KERNELS);

/* Numbers with outliers: as models/glm/student.c, but the degrees of freedom are known. */
#include "models/glm/student.h"

#define FAMILY_FURTHER 1
#define FAMILY_RESPONSE plain
#define FAMILY_BODY "models/glm/student_body.h"
#include "models/glm/family_kernels.h"

const glm_family le_glm_student_fixed = {.name = "student_fixed",
                                         .further = 1,
                                         .known = "df",
                                         .several = 1,
                                         .kernels = kernels,
                                         .point = glm_student_point,
                                         .draw = glm_student_draw,
                                         .guess = glm_student_guess,
                                         .guess_further = glm_student_guess_further};

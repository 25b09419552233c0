/* Programs: an expression as a list of steps, each an operation on tiles of rows (models/shared.h).
 *
 * R/spec-expressions.R writes programs and lists the operations in the same order. Registers are
 * tiles; they are numbered in one sequence: constants, columns of the data, results that depend on
 * the data alone, predictors, results that depend on the parameters alone, and temporary ones. */
#pragma once

#include "models/shared.h"

#define PROGRAM_OPERATIONS(X)                                                                      \
  X(ADD) X(SUB) X(MUL) X(DIV) X(NEG) X(EXP) X(LOG) X(LOG1P) X(EXPM1) X(SQRT) X(ABS) X(LOGISTIC)    \
  X(SOFTPLUS) X(LGAMMA) X(DIGAMMA) X(TRIGAMMA) X(TETRAGAMMA) X(LGAMMA_RATIO) X(PNORM)              \
  X(LOG_PNORM) X(SIN) X(COS) X(TANH) X(ATAN) X(POW) X(LESS) X(AT_MOST) X(EQUAL) X(SELECT)

typedef enum operation {
#define OPERATION(name) OPERATION_##name,
  PROGRAM_OPERATIONS(OPERATION)
#undef OPERATION
    OPERATIONS
} operation;

/* out = operation(in[0], in[1], in[2]), with numbers of registers. */
typedef struct program_step {
  operation operation;
  size_t out, in[3];
} program_step;

typedef struct program {
  size_t n;
  program_step *step;
} program;

/* Reads the setting `name`: five numbers for each step. Registers must be below `registers`, and
 * results at least `first`. Returns LE_OK, or a failure with a message. */
le_status le_program_read(const le_args *args, const char *name, size_t first, size_t registers,
                          program *out, char *message);
void le_program_free(program *p);

/* Runs all steps on the first n rows of tiles, rounded up to whole vectors. */
void le_program_run(le_simd simd, const program *p, size_t n, double *const *reg);

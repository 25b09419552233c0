/* Answers to questions about rows (core/question.h): sums over rows that are here. A worker answers
 * from its part of the rows, and a pass adds up the answers of portions. */
#pragma once

#include "core/question.h"
#include "core/sums.h"

/* Overwrites `sums` by the answer of these rows. Where a point has no finite log-likelihood with
 * finite derivatives, they are -Inf and zeros. Who asks counts the evaluations. */
le_status le_answer(le_target *target, const le_rows *rows, const le_question *question,
                    double *sums);
/* Adds a portion of the rows of a pass, or ends it: there must have been as many as were seen. */
le_status le_pass_step(le_asked *asked, le_target *target);

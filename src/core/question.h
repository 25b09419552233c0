/* Questions about rows that are not in memory: sums over all of them at some points.
 *
 * Of rows that are elsewhere, on other machines or in a source, a run has a sample at most. What it
 * needs of all rows it asks: the log-likelihood at these points, its gradient, or its second
 * derivatives. The phase that asks ends there as by an interrupt, and runs again from its beginning
 * when there is the answer (core/machine.h). Answers are kept until the phase is over, so that
 * nothing is asked twice in it. An answer comes from outside, or from a pass through the rows
 * (core/answers.h). */
#pragma once

#include "core/rows.h"

typedef enum le_wanted { LE_VALUE_WANTED, LE_GRADIENT_WANTED, LE_CURVATURE_WANTED } le_wanted;
extern const char *const le_wanted_words[]; /* "value", "gradient", "curvature" */

/* Numbers for each point: the value, behind it the gradient, and behind it d x d second
 * derivatives. */
static inline size_t le_wanted_size(le_wanted what, size_t d)
{
  return 1 + (what > LE_VALUE_WANTED ? d : 0) + (what == LE_CURVATURE_WANTED ? d * d : 0);
}

typedef struct le_question {
  le_wanted what;
  int lenient; /* 1: sums that are not finite are no error of the model, see core/context.h */
  size_t d, m;
  double *points, *sums; /* m x d, and for each point the numbers wanted */
} le_question;

/* LE_NO_PASS, or a pass answers the question that is open: further rows follow, or none. */
typedef enum le_pass { LE_NO_PASS, LE_PASS_GOES_ON, LE_PASS_ENDS } le_pass;

typedef struct le_asked {
  double *log;    /* the questions of this phase with their answers, one after the other */
  size_t used;    /* numbers in it; behind them is room for the sums of a portion of a pass */
  size_t last;    /* where the last one begins */
  int open;       /* 1: it has no answer yet */
  le_pass pass;
  le_store rows;  /* of the pass: those not yet summed */
  size_t counted; /* and the number of those that are */
} le_asked;

/* Rows that a pass sums at a time, whatever the size of the blocks that are read. */
enum { LE_PASS_ROWS = 16384 };

/* The sums, in the memory of `asked`. If there is no answer, the question is open afterwards, and
 * the result is LE_INTERRUPTED: the caller ends. */
le_status le_ask(le_asked *asked, le_wanted what, int lenient, size_t d, size_t m,
                 const double *points, const double **sums);
/* The question that is open. */
le_question le_asked_question(const le_asked *asked);
/* Whether it waits for something from outside: rows or the answer. */
int le_asked_waits(const le_asked *asked);
/* Answers it. What is no answer to it is refused with a sentence. */
le_status le_asked_answer(le_asked *asked, le_wanted what, size_t rows, size_t columns,
                          const double *sums, le_error *error);
/* Begins or continues a pass. */
le_status le_asked_feed(le_asked *asked, const le_rows *rows, le_feed feed);
/* Forgets all questions. */
void le_asked_clear(le_asked *asked);
void le_asked_free(le_asked *asked);
/* `d` is the dimension of the points, or 0 where nothing is asked. */
void le_asked_archive(le_asked *asked, size_t d, le_archive *archive);

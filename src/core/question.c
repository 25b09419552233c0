/* The log of the questions of a phase. */
#include "core/question.h"

#include "base/arena.h"

#include <math.h>
#include <string.h>

const char *const le_wanted_words[] = {"value", "gradient", "curvature"};

/* A question in the log: these numbers, the points, the sums. */
enum { WHAT, LENIENT, DIMENSION, POINTS, HEAD };

static le_question question_at(const le_asked *asked, size_t at)
{
  double *head = asked->log + at;
  le_question q = {(le_wanted)head[WHAT], head[LENIENT] != 0, (size_t)head[DIMENSION],
                   (size_t)head[POINTS], head + HEAD, NULL};
  q.sums = q.points + q.m * q.d;
  return q;
}

static size_t numbers_in(const le_question *q) { return q->m * le_wanted_size(q->what, q->d); }

static size_t size_of(const le_question *q) { return HEAD + q->m * q->d + numbers_in(q); }

/* Twice as many numbers: a question has more than the sums of a portion are. */
static le_status reserve(le_asked *asked, size_t used)
{
  const size_t bytes = (2 * used + 1) * sizeof(double);
  double *grown = used < SIZE_MAX / 32 ? le_resize(asked->log, bytes) : NULL;
  if (!grown) return LE_NO_MEMORY;
  asked->log = grown;
  return LE_OK;
}

/* What is wanted of one point is part of all that can be. */
static int answers(const le_question *known, const le_question *q)
{
  const int enough = known->what == q->what || (q->m == 1 && known->what > q->what);
  return enough && known->m == q->m &&
         memcmp(known->points, q->points, q->m * q->d * sizeof(double)) == 0;
}

le_status le_ask(le_asked *asked, le_wanted what, int lenient, size_t d, size_t m,
                 const double *points, const double **sums)
{
  const double head[HEAD] = {what, lenient, (double)d, (double)m};
  le_question q = {what, lenient, d, m, (double *)(size_t)points, NULL};
  for (size_t at = 0; at < asked->used;) {
    const le_question known = question_at(asked, at);
    if (answers(&known, &q)) {
      *sums = known.sums;
      return LE_OK;
    }
    at += size_of(&known);
  }
  LE_TRY(reserve(asked, asked->used + size_of(&q)));
  memcpy(asked->log + asked->used, head, sizeof head);
  memcpy(asked->log + asked->used + HEAD, points, m * d * sizeof(double));
  asked->last = asked->used;
  asked->used += size_of(&q);
  asked->open = 1;
  asked->pass = LE_NO_PASS;
  asked->counted = 0;
  q = le_asked_question(asked);
  memset(q.sums, 0, numbers_in(&q) * sizeof(double));
  return LE_INTERRUPTED;
}

le_question le_asked_question(const le_asked *asked) { return question_at(asked, asked->last); }

int le_asked_waits(const le_asked *asked)
{
  return asked->open && asked->pass != LE_PASS_ENDS && asked->rows.n < LE_PASS_ROWS;
}

le_status le_asked_answer(le_asked *asked, le_wanted what, size_t rows, size_t columns,
                          const double *sums, le_error *error)
{
  if (!asked->open || asked->pass != LE_NO_PASS)
    return le_fail(error, LE_BAD_ARGUMENT, "No question of this run waits for an answer.");
  const le_question q = le_asked_question(asked);
  const size_t size = le_wanted_size(q.what, q.d);
  if (what != q.what)
    return le_fail(error, LE_BAD_ARGUMENT, "The answer is a %s, and the question is for a %s.",
                   le_wanted_words[what], le_wanted_words[q.what]);
  if (rows != size || columns != q.m)
    return le_fail(error, LE_BAD_ARGUMENT,
                   "The answer must have %zu numbers for each of %zu points, not %zu for %zu.",
                   size, q.m, rows, columns);
  for (size_t i = 0; i < size * q.m; i++)
    if (!isfinite(sums[i]) && !(i % size == 0 && sums[i] == -INFINITY))
      return le_fail(error, LE_NOT_FINITE,
                     "The answer must have finite numbers, and -Inf only as log-likelihood: number "
                     "%zu of point %zu is %s.",
                     i % size + 1, i / size + 1, isnan(sums[i]) ? "NaN" : "infinite");
  memcpy(q.sums, sums, size * q.m * sizeof(double));
  asked->open = 0;
  return LE_OK;
}

le_status le_asked_feed(le_asked *asked, const le_rows *rows, le_feed feed)
{
  asked->pass = le_feed_goes_on(feed) ? LE_PASS_GOES_ON : LE_PASS_ENDS;
  return le_store_append(&asked->rows, rows, NULL);
}

void le_asked_clear(le_asked *asked) { asked->used = 0; }

void le_asked_free(le_asked *asked)
{
  le_release(asked->log);
  le_store_free(&asked->rows);
}

/* Whether the log that was read is one of points in d dimensions, whose last question begins at
 * `last`. */
static int is_sound(const le_asked *asked, size_t d)
{
  size_t at = 0, last = 0;
  while (asked->used - at > HEAD) {
    const double *head = asked->log + at, rest = (double)(asked->used - at);
    if (!(head[WHAT] >= 0 && head[WHAT] <= LE_CURVATURE_WANTED && head[DIMENSION] == (double)d &&
          head[POINTS] >= 1 && head[POINTS] < rest))
      return 0;
    const le_question q = question_at(asked, at);
    if (size_of(&q) > asked->used - at) return 0;
    last = at;
    at += size_of(&q);
  }
  return at == asked->used && (asked->used ? last == asked->last : !asked->open);
}

static const le_field fields[] = {LE_FIELD(le_asked, open),
                                  LE_FIELD(le_asked, last),
                                  LE_WITHIN(le_asked, pass, 0, LE_PASS_ENDS),
                                  LE_FIELD(le_asked, counted),
                                  LE_UNSAVED(le_asked, log)}; /* its numbers are, below */

void le_asked_archive(le_asked *asked, size_t d, le_archive *archive)
{
  LE_ARCHIVE_FIELDS(archive, asked, fields);
  le_archive_count(archive, &asked->used, sizeof(double));
  if (!archive->writing && archive->status == LE_OK)
    archive->status = reserve(asked, asked->used);
  if (archive->status != LE_OK) return;
  le_archive_doubles(archive, asked->log, asked->used);
  le_store_archive(&asked->rows, archive);
  if (archive->status != LE_OK) return;
  le_archive_require(archive, is_sound(asked, d) && !le_store_represented(&asked->rows));
}

/* The instance of an engine and its state machine: adding rows, running phases, and the archive of
 * both. */
#include "core/machine.h"

#include "base/clock.h"

#include <string.h>

le_status le_machine_new(const le_estimator_ops *ops, const le_problem *problem,
                         le_context *context, void **self)
{
  le_machine *m = *self = le_resize(NULL, ops->size);
  if (!m) return LE_NO_MEMORY;
  memset(m, 0, ops->size);
  m->ops = ops;
  m->problem = *problem;
  m->context = context;
  m->store.width = m->asked.rows.width = problem->ops->width(problem->model);
  while (ops->columns && ops->columns[m->trace.columns]) m->trace.columns++;
  le_status status = ops->make(m);
  if (status == LE_OK && m->arena.failed) status = LE_NO_MEMORY;
  if (status == LE_OK) return LE_OK;
  le_machine_free(m);
  *self = NULL;
  return status;
}

void le_machine_free(void *self)
{
  le_machine *m = self;
  if (!m) return;
  if (m->ops->release) m->ops->release(self);
  le_streams_free(&m->streams);
  le_store_free(&m->store);
  le_asked_free(&m->asked);
  le_trace_free(&m->trace);
  le_arena_free(&m->arena);
  le_release(m);
}

le_status le_machine_streams(le_machine *machine, size_t streams)
{
  const le_problem *problem = &machine->problem;
  return le_streams_alloc(&machine->streams, streams, problem->seed, problem->replicate);
}

le_status le_machine_take(le_machine *m, const le_rows *rows, le_feed feed)
{
  if (feed == LE_ONCE_ROWS && rows->n == 0) return LE_OK;
  if (m->closed)
    return le_fail(&m->context->error, LE_BAD_ARGUMENT,
                   "Rows cannot be added: the data were declared complete.");
  m->feeds++;
  if (!le_feed_goes_on(feed)) m->closed = 1;
  if (rows->n == 0) return LE_OK;
  return le_store_take(&m->store, rows, m->shuffle ? m->streams.order : NULL, feed);
}

/* Rows that are elsewhere are all there from the start. */
static le_status take_sample(le_machine *m, const le_rows *rows)
{
  const size_t all = m->problem.total;
  le_error *error = &m->context->error;
  if (!m->ops->asks)
    return le_fail(error, LE_UNSUPPORTED,
                   "This method needs its rows in memory. laplace() and bic() can ask about rows "
                   "that are elsewhere.");
  if (m->feeds > 0 || rows->n == 0 || rows->n > all)
    return le_fail(error, LE_BAD_ARGUMENT,
                   "A sample of rows that are elsewhere comes first, of 1 to %zu rows, not %zu.",
                   all, rows->n);
  m->feeds = 1;
  m->closed = m->elsewhere = 1;
  LE_TRY(le_store_append(&m->store, rows, NULL));
  le_store_represent(&m->store, all, &m->asked);
  return LE_OK;
}

le_status le_machine_feed(void *self, const le_rows *rows, le_feed feed)
{
  le_machine *m = self;
  if (feed == LE_SAMPLE_ROWS) return take_sample(m, rows);
  if (feed == LE_ONCE_ROWS) m->once = 1;
  else if (m->asked.open) return le_asked_feed(&m->asked, rows, feed);
  return m->ops->feed ? m->ops->feed(self, rows, feed) : le_machine_take(m, rows, feed);
}

le_progress le_machine_advance(void *self, double seconds, le_status *status)
{
  le_machine *m = self;
  const double started = le_now(), before = m->seconds;
  *status = LE_OK;
  if (m->ops->advance) return m->ops->advance(self, seconds, status);
  m->progress = LE_MORE;
  while (m->progress == LE_MORE && m->ops->phases[m->phase].run) {
    const le_phase *phase = &m->ops->phases[m->phase];
    if (phase->waits && !m->closed) return LE_NEEDS_ROWS;
    if (le_asked_waits(&m->asked))
      return m->asked.pass == LE_PASS_GOES_ON ? LE_NEEDS_ROWS : LE_ASKS;
    const int passes = m->asked.open;
    *status = passes ? le_pass_step(&m->asked, m->target) : phase->run(self);
    m->seconds = before + le_now() - started;
    if (*status == LE_INTERRUPTED && !passes && m->asked.open) {
      *status = LE_OK;
      return LE_ASKS;
    }
    if (*status != LE_OK) return LE_FAILED;
    if (!passes) le_asked_clear(&m->asked);
    if (le_now() - started >= seconds) break;
  }
  const int more = m->progress != LE_MORE || m->ops->phases[m->phase].run;
  return more ? m->progress : LE_DONE;
}

le_status le_machine_needs_rows(le_machine *machine)
{
  machine->progress = LE_NEEDS_ROWS;
  return LE_OK;
}

le_machine *le_machine_at_work(void *self)
{
  le_machine *m = self;
  return m->ops->at_work ? le_machine_at_work(m->ops->at_work(self)) : m;
}

le_status le_machine_undo(void **self, le_archive *before, int keeps_answers)
{
  le_machine *m = *self, *made;
  void *fresh;
  LE_TRY(le_machine_new(m->ops, &m->problem, m->context, &fresh));
  le_machine_archive(fresh, before);
  made = fresh;
  made->seconds = m->seconds;
  if (keeps_answers) {
    const le_asked unused = made->asked;
    made->asked = m->asked;
    m->asked = unused;
  }
  le_machine_free(m);
  *self = fresh;
  return before->status;
}

le_rows le_machine_rows(const le_machine *machine)
{
  return le_store_rows(&machine->store, 0, machine->store.n);
}

le_status le_machine_result(void *self, le_result *result)
{
  le_machine *m = self;
  const size_t columns = m->trace.columns;
  if (columns)
    le_result_frame(result, "trace", m->ops->columns, columns, m->trace.rows, m->trace.values);
  return m->ops->result(self, result);
}

/* Sizes of the engine are compared before anything is read that depends on them. */
void le_machine_archive(void *self, le_archive *archive)
{
  static const le_field fields[] = {LE_FIELD(le_machine, closed),
                                    LE_FIELD(le_machine, feeds), LE_FIELD(le_machine, seconds),
                                    LE_FIELD(le_machine, once), LE_FIELD(le_machine, elsewhere),
                                    LE_UNSAVED(le_machine, problem), /* the same by its hash */
                                    LE_UNSAVED(le_machine, progress)};
  le_machine *m = self;
  const le_estimator_ops *ops = m->ops;
  int last = 0;
  while (ops->phases && ops->phases[last].run) last++;
  le_archive_fields(archive, self, ops->size, ops->fields.field, ops->fields.n, ops->name);
  LE_ARCHIVE_FIELDS(archive, m, fields);
  le_archive_choice(archive, &m->phase, 0, last);
  le_store_archive(&m->store, archive);
  le_streams_archive(&m->streams, archive);
  le_asked_archive(&m->asked, m->target ? m->target->d : 0, archive);
  if (m->elsewhere) m->store.asked = &m->asked;
  le_archive_require(archive, (ops->asks || !m->elsewhere) && (m->target || !m->asked.used));
  /* a phase that waits is over only when all rows are there */
  for (int k = 0; k < m->phase; k++)
    le_archive_require(archive, m->closed || !ops->phases[k].waits);
  if (archive->status != LE_OK) return;
  if (ops->columns) le_trace_archive(&m->trace, archive);
  const int there = !ops->allocate || m->phase > 0;
  if (ops->allocate && there && !archive->writing && archive->status == LE_OK)
    archive->status = ops->allocate(self);
  if (archive->status == LE_OK && there) ops->archive(self, archive);
}

/* The state machine of an engine: adding rows, running phases, and the archive of both. */
#include "core/machine.h"

#include "base/clock.h"

le_status le_machine_alloc(le_machine *machine, const le_phase *table, size_t phases,
                           const le_problem *problem, size_t streams, le_context *context)
{
  machine->table = table;
  machine->phases = (int)phases;
  machine->context = context;
  machine->store.width = problem->ops->width(problem->model);
  return le_streams_alloc(&machine->streams, streams, problem->seed, problem->replicate);
}

void le_machine_free(le_machine *machine)
{
  le_streams_free(&machine->streams);
  le_store_free(&machine->store);
}

le_status le_machine_feed(void *self, const le_rows *rows, le_feed feed)
{
  le_machine *m = self;
  if (feed == LE_ONCE_ROWS && rows->n == 0) return LE_OK;
  if (m->closed)
    return le_fail(&m->context->error, LE_BAD_ARGUMENT,
                   "Rows cannot be added: the data were declared complete.");
  m->feeds++;
  if (!le_feed_goes_on(feed)) m->closed = 1;
  if (rows->n == 0) return LE_OK;
  return le_store_take(&m->store, rows, m->shuffle ? m->streams.order : NULL, feed);
}

int le_machine_ended(const le_machine *machine)
{
  return !machine->table[machine->phase].run;
}

le_progress le_machine_advance(void *self, double seconds, le_status *status)
{
  le_machine *m = self;
  const double started = le_now(), before = m->seconds;
  le_progress progress = LE_MORE;
  *status = LE_OK;
  while (progress == LE_MORE && !le_machine_ended(m)) {
    const le_phase *phase = &m->table[m->phase];
    if (phase->waits && !m->closed) return LE_NEEDS_ROWS;
    *status = phase->run(self, &progress);
    m->seconds = before + le_now() - started;
    if (*status != LE_OK) return LE_FAILED;
    if (le_now() - started >= seconds) break;
  }
  return progress != LE_MORE ? progress : le_machine_ended(m) ? LE_DONE : LE_MORE;
}

le_rows le_machine_rows(const le_machine *machine)
{
  return le_store_rows(&machine->store, 0, machine->store.n);
}

void le_machine_archive(le_machine *machine, le_archive *archive)
{
  static const le_field fields[] = {LE_FIELD(le_machine, phase), LE_FIELD(le_machine, closed),
                                    LE_FIELD(le_machine, feeds), LE_FIELD(le_machine, seconds)};
  le_store_archive(&machine->store, archive);
  le_streams_archive(&machine->streams, archive);
  LE_ARCHIVE_FIELDS(archive, machine, fields);
  if (archive->status == LE_OK && (machine->phase < 0 || machine->phase >= machine->phases))
    archive->status = LE_CORRUPT;
}

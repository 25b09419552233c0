/* The functions of a run that R calls. A run is an external pointer whose finalizer frees
 * everything. R decides when runs work: it calls one run, or several at once, for a short time. */
#include "bridge/run.h"

#include "base/clock.h"
#include "base/threads.h"
#include "core/volumes.h"

void run_finalize(SEXP pointer)
{
  run_handle *run = R_ExternalPtrAddr(pointer);
  if (!run) return;
  le_machine_free(run->self);
  le_result_free(&run->result);
  le_arena_free(&run->arena);
  le_release(run->before);
  le_release(run);
  R_ClearExternalPtr(pointer);
}

run_handle *run_get(SEXP pointer)
{
  run_handle *run = TYPEOF(pointer) == EXTPTRSXP ? R_ExternalPtrAddr(pointer) : NULL;
  if (!run) Rf_error("This run has ended.");
  return run;
}

/* Where R has stopped the run, by the condition with which it did. */
static void raise_failure(run_handle *run, le_status status)
{
  SEXP condition = PROTECT(VECTOR_ELT(run->watch.kept, 0));
  SET_VECTOR_ELT(run->watch.kept, 0, R_NilValue);
  atomic_store(&run->watch.stopped, 0);
  if (status == LE_INTERRUPTED && condition != R_NilValue) raise_condition(condition);
  UNPROTECT(1);
  raise_status(status, &run->context.error);
}

static void check_settings(run_handle *run, const le_problem *problem)
{
  le_error *error = &run->context.error;
  char owner[64];
  snprintf(owner, sizeof owner, "the engine %s", run->ops->name);
  le_status status = le_settings_check(&problem->settings, &run->ops->knows, owner, error);
  for (size_t k = 0; status == LE_OK && k < problem->kernels; k++) {
    const le_knows knows = {{problem->kernel[k].ops->settings}, NULL};
    snprintf(owner, sizeof owner, "the kernel %s()", problem->kernel[k].ops->name);
    status = le_settings_check(&problem->kernel[k].args, &knows, owner, error);
  }
  if (status != LE_OK) raise_status(status, error);
}

SEXP ffi_run_new(SEXP problem)
{
  SEXP model =
    PROTECT(model_new(list_element(problem, "model_type"), list_element(problem, "model_args")));
  /* the run reads settings from R's memory, so both objects must exist as long as the pointer */
  SEXP kept = PROTECT(Rf_allocVector(VECSXP, 1));
  SEXP keep = PROTECT(Rf_list3(problem, model, kept)),
       pointer = PROTECT(new_object(sizeof(run_handle), run_finalize, keep));
  run_handle *run = R_ExternalPtrAddr(pointer);

  const char *name = one_string(list_element(problem, "estimator"), "estimator");
  run->ops = le_find_estimator(name);
  if (!run->ops) Rf_error("There is no estimator called \"%s\".", name);
  run->context.threads =
    le_threads_usable((int)one_count(list_element(problem, "threads"), "threads"));

  const model_handle *handle = model_get(model);
  run->model = handle;
  run->problem = problem;
  run->watch.kept = kept;
  run->watch.until = INFINITY;
  run->context.interrupted = user_interrupts;
  run->context.payload = &run->watch;
  if (handle->ops->traits & LE_MODEL_ONE_THREAD) run->context.threads = 1;
  SEXP work = maybe_element(problem, "row_work");
  if (work != R_NilValue) run->context.row_work = Rf_asReal(work);
  if (handle->ops->latent && !run->ops->latent)
    Rf_error("This method does not support models with latent variables.");
  user_model_watch(handle, &run->context);
  SEXP kernels = list_element(problem, "kernels");
  le_kernel_spec *kernel = le_arena_bytes(&run->arena, (size_t)XLENGTH(kernels), sizeof *kernel);
  if (!kernel) raise_status(LE_NO_MEMORY, NULL);
  for (R_xlen_t i = 0; i < XLENGTH(kernels); i++) {
    SEXP spec = VECTOR_ELT(kernels, i);
    name = one_string(list_element(spec, "name"), "kernel");
    kernel[i].ops = le_find_kernel(name);
    if (!kernel[i].ops) Rf_error("There is no kernel called \"%s\".", name);
    kernel[i].args = args_from_list(list_element(spec, "args"), &run->arena);
  }
  const le_problem made = {handle->ops,
                           handle->self,
                           args_from_list(list_element(problem, "settings"), &run->arena),
                           (size_t)XLENGTH(kernels),
                           kernel,
                           seed_from_words(list_element(problem, "seed")),
                           (uint32_t)one_count(list_element(problem, "replicate"), "replicate"),
                           one_count(list_element(problem, "total"), "total")};
  check_settings(run, &made);
  le_status status = le_machine_new(run->ops, &made, &run->context, &run->self);
  if (status == LE_OK && run->ops->start && !Rf_asLogical(list_element(problem, "restore")))
    status = run->ops->start(run->self);
  user_model_raise(run->model);
  if (status != LE_OK) raise_failure(run, status);
  UNPROTECT(4);
  return pointer;
}

/* In the order of le_feed. */
static const char *const feeds[] = {"some", "last", "own", "mixed", "once", "sample"};

static le_feed feed_named(const char *word)
{
  for (int kind = LE_ROWS; kind <= LE_SAMPLE_ROWS; kind++)
    if (strcmp(word, feeds[kind]) == 0) return (le_feed)kind;
  Rf_error("`feed` must be \"some\", \"last\", \"own\", \"mixed\", \"once\" or \"sample\", not "
           "\"%s\".",
           word);
  return LE_ROWS;
}

/* `feed`: "some" rows of a stream, or its "last"; "once": some, and those so far cannot be read
 * again; or all rows at once, as the run's "own" to reorder, or already "mixed"; or a random
 * "sample" of `total` rows that are elsewhere. */
SEXP ffi_run_feed(SEXP run, SEXP rows, SEXP feed)
{
  run_handle *handle = run_get(run);
  const model_handle *model = handle->model;
  const le_feed kind = feed_named(one_string(feed, "feed"));
  /* the last rows may be borrowed, so they must exist as long as the run */
  if (!le_feed_goes_on(kind)) {
    SEXP keep = PROTECT(Rf_cons(rows, R_ExternalPtrProtected(run)));
    R_SetExternalPtrProtected(run, keep);
    UNPROTECT(1);
  }
  const le_rows block = rows_from_matrix(rows, model->ops->width(model->self));
  handle->before_size = 0;
  const le_status status = le_machine_feed(handle->self, &block, kind);
  if (status != LE_OK) raise_failure(handle, status);
  return R_NilValue;
}

static void archive_state(run_handle *run, le_archive *archive)
{
  le_machine_archive(run->self, archive);
  user_model_archive(run->model, archive);
}

/* Keeps the state as it is, so that what follows can be undone; not if it has more bytes. */
static le_status keep_state(run_handle *run, size_t most)
{
  const double began = le_now();
  le_archive archive = le_archive_writer(NULL, SIZE_MAX);
  archive_state(run, &archive);
  const size_t size = archive.position;
  run->before_size = 0;
  unsigned char *before = size > most ? NULL : le_resize(run->before, size);
  if (!before) return LE_NO_MEMORY;
  run->before = before;
  archive = le_archive_writer(before, size);
  archive_state(run, &archive);
  run->before_size = size;
  run->before_made = le_now();
  run->before_took = run->before_made - began;
  return LE_OK;
}

static le_status undo(run_handle *run, int keeps_answers)
{
  le_archive archive = le_archive_reader(run->before, run->before_size);
  run->before_size = 0;
  const le_status status = le_machine_undo(&run->self, &archive, keeps_answers);
  user_model_archive(run->model, &archive);
  return status;
}

/* Runs a phase, and if this asks goes back to the state before. */
static le_progress advance_undoing(run_handle *run, le_status *status)
{
  *status = keep_state(run, SIZE_MAX);
  if (*status != LE_OK) return LE_FAILED;
  const le_progress progress = le_machine_advance(run->self, 0, status);
  if (progress != LE_ASKS) return progress;
  *status = undo(run, 1);
  return *status == LE_OK ? LE_ASKS : LE_FAILED;
}

/* Before a time limit the state is kept again when so many times have passed as it took to keep:
 * what is undone is little work. With a state of more bytes, phases go on to their ends. */
enum { KEEP_EVERY = 50, KEEP_BYTES = 200000000 };

static int is_kept(run_handle *run)
{
  const double age = le_now() - run->before_made;
  return (run->before_size > 0 && age < KEEP_EVERY * run->before_took) ||
         keep_state(run, KEEP_BYTES) == LE_OK;
}

/* As le_machine_advance(), but at the time `until` the work since the last state that was kept is
 * undone. The first phase is not, so that a run that is resumed often comes to its end, too, and
 * there are always so many `seconds`. */
static le_progress advance_until(run_handle *run, double seconds, double until, le_status *status)
{
  const r_watch *asker = run->watch.leader ? run->watch.leader : &run->watch;
  if (!run->moved) {
    run->moved = 1;
    return le_machine_advance(run->self, 0, status);
  }
  if (is_kept(run)) run->watch.until = until;
  const le_progress progress = le_machine_advance(run->self, seconds, status);
  const int late = le_now() > run->watch.until && progress == LE_FAILED &&
                   *status == LE_INTERRUPTED && !atomic_load(&asker->stopped);
  run->watch.until = INFINITY;
  if (!late) return progress;
  /* the state may be that of an earlier phase, whose answers are in it */
  *status = undo(run, 0);
  return *status == LE_OK ? LE_MORE : LE_FAILED;
}

static le_progress advance_once(run_handle *run, double seconds, double until, le_status *status)
{
  const le_machine *m = run->self;
  if (m->elsewhere && !m->asked.open) return advance_undoing(run, status);
  if (m->elsewhere) return le_machine_advance(run->self, 0, status);
  if (isfinite(until)) return advance_until(run, seconds, until, status);
  return le_machine_advance(run->self, seconds, status);
}

static void advance_one(run_handle *run, double seconds, double until, le_progress *progress,
                        le_status *status)
{
  const double end = le_now() + seconds;
  double left = seconds;
  do {
    *progress = advance_once(run, left, until < end ? end : until, status);
    left = end - le_now();
  } while (*progress == LE_MORE && left > 0);
}

/* Between two questions to R by its thread, when it waits for the others. */
static const double WAIT = 0.01;

/* Only the thread of R may call R. It asks for all runs, by the watch of the first, and goes on to
 * ask when its own work is done. */
static void advance_all(size_t n, run_handle **run, double seconds, double until,
                        le_progress *progress, le_status *status)
{
  int threads = le_threads_usable((int)n);
  atomic_int left = threads;
  atomic_store(&run[0]->watch.stopped, 0);
  for (size_t k = 0; k < n; k++) {
    if (run[k]->model->ops->traits & LE_MODEL_ONE_THREAD) threads = 1;
    run[k]->watch.leader = k > 0 ? &run[0]->watch : NULL;
  }
  if (threads > 1) {
#ifdef _OPENMP
#pragma omp parallel for num_threads(threads) schedule(static, 1)
#endif
    for (int t = 0; t < threads; t++) {
      for (size_t k = (size_t)t; k < n; k += (size_t)threads)
        advance_one(run[k], seconds, until, &progress[k], &status[k]);
      atomic_fetch_sub(&left, 1);
      const int last = t + le_threads_at_work() >= threads;
      while (last && le_thread_loaded() && atomic_load(&left) > 0) {
        user_interrupts(&run[0]->watch);
        le_wait(WAIT);
      }
    }
  /* inside a parallel region, even of one thread, the threads of a run would be created and ended
   * each time */
  } else {
    for (size_t k = 0; k < n; k++) advance_one(run[k], seconds, until, &progress[k], &status[k]);
  }
  for (size_t k = 1; k < n; k++) run[k]->watch.leader = NULL;
}

/* Advances one run, or a list of runs, each in its own thread unless it calls R functions. `left`:
 * the seconds until a time limit, at which work that is under way is undone. */
SEXP ffi_run_advance(SEXP runs, SEXP seconds, SEXP left)
{
  static const char *const words[] = {"more", "rows", "question", "done", "failed"};
  const int several = TYPEOF(runs) == VECSXP && XLENGTH(runs) > 0;
  const size_t n = several ? (size_t)XLENGTH(runs) : 1;
  run_handle **run = (run_handle **)R_alloc(n, sizeof *run);
  le_status *status = (le_status *)R_alloc(n, sizeof *status);
  le_progress *progress = (le_progress *)R_alloc(n, sizeof *progress);
  for (size_t k = 0; k < n; k++)
    run[k] = run_get(several ? VECTOR_ELT(runs, (R_xlen_t)k) : runs);
  advance_all(n, run, Rf_asReal(seconds), le_now() + Rf_asReal(left), progress, status);
  SEXP answer = PROTECT(Rf_allocVector(STRSXP, (R_xlen_t)n));
  for (size_t k = 0; k < n; k++) {
    user_model_raise(run[k]->model);
    /* the first run is the one that asks R */
    run_handle *blamed = run[status[k] == LE_INTERRUPTED ? 0 : k];
    if (progress[k] == LE_FAILED) raise_failure(blamed, status[k]);
    SET_STRING_ELT(answer, (R_xlen_t)k, Rf_mkChar(words[progress[k]]));
  }
  /* R was told of an interrupt, and every run came to its end before it was told */
  if (VECTOR_ELT(run[0]->watch.kept, 0) != R_NilValue) raise_failure(run[0], LE_INTERRUPTED);
  UNPROTECT(1);
  return answer;
}

static le_wanted wanted_named(const char *word)
{
  for (int what = LE_VALUE_WANTED; what <= LE_CURVATURE_WANTED; what++)
    if (strcmp(word, le_wanted_words[what]) == 0) return (le_wanted)what;
  Rf_error("`what` must be \"value\", \"gradient\" or \"curvature\", not \"%s\".", word);
  return LE_VALUE_WANTED;
}

/* The question that is open, or NULL: what is wanted, at which points (a column each), and whether
 * the run takes sums that are not finite for those of impossible points. */
SEXP ffi_run_question(SEXP run)
{
  static const char *const names[] = {"what", "points", "lenient"};
  const le_asked *asked = &le_machine_at_work(run_get(run)->self)->asked;
  if (!asked->open) return R_NilValue;
  const le_question q = le_asked_question(asked);
  SEXP values[] = {PROTECT(Rf_mkString(le_wanted_words[q.what])), PROTECT(zeros(q.d, q.m)),
                   PROTECT(Rf_ScalarLogical(q.lenient))};
  memcpy(REAL(values[1]), q.points, q.d * q.m * sizeof(double));
  SEXP list = named_list(3, names, values);
  UNPROTECT(3);
  return list;
}

/* Answers it by a matrix with a column for each point: the value, and if wanted the gradient, and
 * behind it the second derivatives. */
SEXP ffi_run_answer(SEXP run, SEXP what, SEXP sums)
{
  le_asked *asked = &le_machine_at_work(run_get(run)->self)->asked;
  le_error error = {""};
  const le_wanted kind = wanted_named(one_string(what, "what"));
  if (TYPEOF(sums) != REALSXP || !Rf_isMatrix(sums))
    Rf_error("An answer must be a numeric matrix with a column for each point.");
  const le_status status = le_asked_answer(asked, kind, (size_t)Rf_nrows(sums),
                                           (size_t)Rf_ncols(sums), REAL(sums), &error);
  if (status != LE_OK) raise_status(status, &error);
  return R_NilValue;
}

/* The answer of the rows that this run has to the question of another one. */
SEXP ffi_run_sums(SEXP pointer, SEXP question)
{
  run_handle *run = run_get(pointer);
  le_machine *machine = le_machine_at_work(run->self);
  const le_model_ops *ops = run->model->ops;
  SEXP points = list_element(question, "points");
  const le_wanted what = wanted_named(one_string(list_element(question, "what"), "what"));
  const size_t d = ops->dim(run->model->self);
  if (!machine->target || !le_rows_of(machine->target)->readable)
    Rf_error("This run cannot sum over its rows.");
  if (TYPEOF(points) != REALSXP || !Rf_isMatrix(points) || (size_t)Rf_nrows(points) != d)
    Rf_error("`points` must be a numeric matrix with %zu rows.", d);
  if ((what == LE_GRADIENT_WANTED && !ops->log_lik_grad) ||
      (what == LE_CURVATURE_WANTED && !ops->log_lik_hess))
    Rf_error("The model has no %s.", le_wanted_words[what]);
  const le_question q = {what, Rf_asLogical(list_element(question, "lenient")) == TRUE, d,
                         (size_t)Rf_ncols(points), REAL(points), NULL};
  const le_rows rows = le_machine_rows(machine);
  SEXP sums = PROTECT(zeros(le_wanted_size(what, d), q.m));
  run->context.error.message[0] = '\0';
  const le_status status = le_answer(machine->target, &rows, &q, REAL(sums));
  user_model_raise(run->model);
  if (status != LE_OK) raise_failure(run, status);
  UNPROTECT(1);
  return sums;
}

SEXP ffi_threads_none(void)
{
  le_threads_none();
  return R_NilValue;
}

SEXP ffi_threads(SEXP requested)
{
  return Rf_ScalarInteger(le_threads_usable(Rf_asInteger(requested)));
}

SEXP ffi_now(void)
{
  return Rf_ScalarReal(le_now());
}

SEXP ffi_processor_time(void)
{
  return Rf_ScalarReal(le_processor_time());
}

SEXP ffi_run_progress(SEXP run)
{
  const run_handle *handle = run_get(run);
  double progress[2];
  handle->ops->progress(handle->self, &progress[0], &progress[1]);
  return number_vector(2, progress);
}

/* A data frame with a column for each row of the array. */
static SEXP frame_of(const le_output *output)
{
  const size_t n = output->columns, width = output->rows;
  SEXP frame = PROTECT(named_list(width, output->labels, NULL));
  for (size_t i = 0; i < width; i++) {
    SEXP column = Rf_allocVector(REALSXP, (R_xlen_t)n);
    SET_VECTOR_ELT(frame, (R_xlen_t)i, column);
    for (size_t k = 0; k < n; k++) REAL(column)[k] = output->values[k * width + i];
  }
  SEXP rows = PROTECT(Rf_allocVector(INTSXP, n ? 2 : 0));
  if (n) {
    INTEGER(rows)[0] = NA_INTEGER;
    INTEGER(rows)[1] = -(int)n;
  }
  Rf_setAttrib(frame, R_RowNamesSymbol, rows);
  Rf_setAttrib(frame, R_ClassSymbol, PROTECT(Rf_mkString("data.frame")));
  UNPROTECT(3);
  return frame;
}

static SEXP values_of(const le_output *output)
{
  if (!output->is_array) return Rf_ScalarReal(output->figure);
  if (output->is_frame) return frame_of(output);
  const size_t n = output->rows * output->columns;
  SEXP values = Rf_allocMatrix(REALSXP, (int)output->rows, (int)output->columns);
  if (n) memcpy(REAL(values), output->values, n * sizeof(double));
  if (!output->labels) return values;
  SEXP labels, dimensions;
  PROTECT(values);
  PROTECT(labels = Rf_allocVector(STRSXP, (R_xlen_t)output->rows));
  PROTECT(dimensions = Rf_allocVector(VECSXP, 2));
  for (size_t i = 0; i < output->labelled; i++)
    SET_STRING_ELT(labels, (R_xlen_t)i, Rf_mkChar(output->labels[i]));
  SET_VECTOR_ELT(dimensions, 0, labels);
  Rf_setAttrib(values, R_DimNamesSymbol, dimensions);
  UNPROTECT(3);
  return values;
}

SEXP ffi_run_result(SEXP pointer)
{
  run_handle *run = run_get(pointer);
  le_result *result = &run->result;
  le_result_free(result);
  result->status = LE_OK;
  le_status status = le_machine_result(run->self, result);
  if (status == LE_OK) status = result->status;
  if (status != LE_OK) raise_status(status, &run->context.error);
  const char **names = (const char **)R_alloc(result->n, sizeof *names);
  for (size_t i = 0; i < result->n; i++) names[i] = result->output[i].name;
  SEXP list = PROTECT(named_list(result->n, names, NULL));
  for (size_t i = 0; i < result->n; i++)
    SET_VECTOR_ELT(list, (R_xlen_t)i, values_of(&result->output[i]));
  UNPROTECT(1);
  return list;
}

/* Makes a run that has ended ready for further rows. */
SEXP ffi_run_reopen(SEXP pointer)
{
  run_handle *run = run_get(pointer);
  if (!run->ops->reopen) Rf_error("This method cannot take further rows.");
  const le_status status = run->ops->reopen(run->self);
  if (status != LE_OK) raise_failure(run, status);
  return R_NilValue;
}

/* A hash in which every bit of the word affects every bit of the result: the last steps of
 * splitmix64. */
static uint64_t scrambled(uint64_t word)
{
  word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9u;
  word = (word ^ word >> 27) * 0x94d049bb133111ebu;
  return word ^ word >> 31;
}

/* A fingerprint of n observations that does not depend on their order: their number and the sum of
 * their hashes, as text. Observations are the columns of a matrix (with `last`, only the last
 * number of each), numbers, or a factor. */
SEXP ffi_fingerprint(SEXP observations, SEXP threads, SEXP last)
{
  const int coded = Rf_isFactor(observations);
  if (TYPEOF(observations) != REALSXP && !coded) Rf_error("`observations` must be numeric.");
  const size_t stride = Rf_isMatrix(observations) ? (size_t)Rf_nrows(observations) : 1;
  const size_t n = stride ? (size_t)XLENGTH(observations) / stride : 0;
  const size_t from = Rf_asLogical(last) == TRUE && stride ? stride - 1 : 0, width = stride - from;
  const double *value = coded ? NULL : REAL(observations);
  const int *code = coded ? INTEGER(observations) : NULL;
  const int usable = le_threads_usable(Rf_asInteger(threads));
  uint64_t sum = 0;
#ifdef _OPENMP
#pragma omp parallel for num_threads(usable) schedule(static) reduction(+ : sum)                   \
  if (usable > 1 && n * stride > 100000)
#endif
  for (size_t r = 0; r < n; r++) {
    uint64_t print = width;
    for (size_t j = from; j < stride; j++) {
      const double number = coded ? (double)code[r] - 1 : value[r * stride + j];
      uint64_t word;
      memcpy(&word, &number, sizeof word);
      print = scrambled(print + word);
    }
    sum += print;
  }
  (void)usable;
  char text[64];
  snprintf(text, sizeof text, "%.0f-%08x%08x", (double)n, (unsigned)(sum >> 32), (unsigned)sum);
  return Rf_mkString(text);
}

/* The sums of nested sampling for points that were merged in R. */
SEXP ffi_volumes(SEXP log_lik, SEXP live, SEXP rest, SEXP simulations, SEXP seed)
{
  static const char *const names[] = {"log_volumes", "log_weights", "sums"};
  if (TYPEOF(log_lik) != REALSXP || TYPEOF(live) != REALSXP || XLENGTH(log_lik) != XLENGTH(live))
    Rf_error("`log_lik` and `live` must be numeric vectors of the same length.");
  const size_t n = (size_t)XLENGTH(log_lik);
  SEXP values[3] = {PROTECT(zero_vector(n)), PROTECT(zero_vector(n)), NULL};
  double *work = (double *)R_alloc(n, sizeof(double));
  le_volumes volumes;
  le_volumes_sum(n, REAL(log_lik), REAL(live), one_count(rest, "rest"),
                 one_count(simulations, "simulations"), new_stream(seed), REAL(values[0]),
                 REAL(values[1]), work, &volumes);
  const double sums[7] = {volumes.log_evidence, volumes.se,    volumes.information,
                          volumes.lower,        volumes.upper, volumes.published,
                          volumes.mean};
  values[2] = PROTECT(number_vector(7, sums));
  SEXP list = named_list(3, names, values);
  UNPROTECT(3);
  return list;
}

SEXP ffi_run_free(SEXP run)
{
  if (TYPEOF(run) == EXTPTRSXP) run_finalize(run);
  return R_NilValue;
}

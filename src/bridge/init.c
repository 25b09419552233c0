/* Registers the routines that R calls, and initialises the library. */
#include "bridge/bridge.h"

#include "base/simd.h"
#include "base/threads.h"

#include <R_ext/Rdynload.h>
#include <R_ext/Visibility.h>

#define ROUTINE(name, arguments) {#name, (DL_FUNC)(void (*)(void))(name), arguments}

static const R_CallMethodDef routines[] = {ROUTINE(ffi_model, 6),
                                           ROUTINE(ffi_model_facts, 2),
                                           ROUTINE(ffi_check_model, 3),
                                           ROUTINE(ffi_run_new, 1),
                                           ROUTINE(ffi_run_feed, 3),
                                           ROUTINE(ffi_run_advance, 2),
                                           ROUTINE(ffi_threads, 1),
                                           ROUTINE(ffi_run_progress, 1),
                                           ROUTINE(ffi_run_reopen, 1),
                                           ROUTINE(ffi_run_result, 1),
                                           ROUTINE(ffi_run_save, 1),
                                           ROUTINE(ffi_run_restore, 2),
                                           ROUTINE(ffi_run_free, 1),
                                           ROUTINE(ffi_problem_id, 1),
                                           ROUTINE(ffi_path_kind, 1),
                                           ROUTINE(ffi_file_read, 1),
                                           ROUTINE(ffi_checkpoint_open, 2),
                                           ROUTINE(ffi_checkpoint_close, 1),
                                           ROUTINE(ffi_checkpoint_read, 1),
                                           ROUTINE(ffi_checkpoint_write, 2),
                                           ROUTINE(ffi_checkpoint_intact, 1),
                                           ROUTINE(ffi_fingerprint, 3),
                                           ROUTINE(ffi_all_finite, 1),
                                           ROUTINE(ffi_bind_rows, 5),
                                           ROUTINE(ffi_vector_rows, 2),
                                           ROUTINE(ffi_arrow_next, 2),
                                           ROUTINE(ffi_arrow_rows, 4),
                                           ROUTINE(ffi_csv, 4),
                                           ROUTINE(ffi_csv_fields, 2),
                                           ROUTINE(ffi_csv_kinds, 4),
                                           ROUTINE(ffi_csv_lines, 2),
                                           ROUTINE(ffi_crc32, 2),
                                           ROUTINE(ffi_volumes, 5),
                                           ROUTINE(ffi_kernel_moves, 7),
                                           ROUTINE(ffi_philox, 2),
                                           ROUTINE(ffi_uniforms, 5),
                                           ROUTINE(ffi_normals, 5),
                                           ROUTINE(ffi_cholesky, 1),
                                           ROUTINE(ffi_pace, 2),
                                           ROUTINE(ffi_resample, 4),
                                           ROUTINE(ffi_varopt, 3),
                                           ROUTINE(ffi_clusters, 1),
                                           ROUTINE(ffi_latent_density, 5),
                                           ROUTINE(ffi_schedule, 4),
                                           ROUTINE(ffi_lambdas, 3),
                                           ROUTINE(ffi_pareto_k, 1),
                                           ROUTINE(ffi_simd, 0),
                                           ROUTINE(ffi_tables, 0),
                                           ROUTINE(ffi_vector, 3),
                                           {NULL, NULL, 0}};

void attribute_visible R_init_logevidence(DllInfo *dll)
{
  R_registerRoutines(dll, NULL, routines, NULL, NULL);
  R_useDynamicSymbols(dll, FALSE);
  R_forceSymbols(dll, TRUE);
  le_threads_init();
  le_simd_init();
}

/* The C object behind a run in R: an external pointer whose finalizer frees everything. */
#pragma once

#include "bridge/bridge.h"
#include "core/machine.h"

typedef struct run_handle {
  const le_estimator_ops *ops;
  const model_handle *model; /* exists as long as the pointer of the run, like the problem */
  SEXP problem;              /* set once */
  void *self;
  le_context context;    /* set once */
  r_watch watch;         /* set once */
  le_arena arena;        /* set once: memory for settings */
  le_result result;      /* derived */
  unsigned char *before; /* scratch: a state to which a phase can be undone */
  size_t before_size;    /* scratch: 0 if there is none */
  double before_made, before_took; /* scratch: when, and seconds */
  int moved;             /* scratch: whether a phase has ended since the run was made */
} run_handle;

/* The run of a pointer; an R error if it has ended. */
run_handle *run_get(SEXP pointer);
void run_finalize(SEXP pointer);

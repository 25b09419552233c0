/* What a run shares with everything that works for it: how many threads, whether the user wants it to stop, and
 * where the sentence of a failure goes. */
#ifndef LE_CORE_CONTEXT_H
#define LE_CORE_CONTEXT_H

#include "base/status.h"

typedef struct le_context {
  int threads;
  int (*interrupted)(void *payload); /* NULL: never asked */
  void *payload;
  le_error error;
} le_context;

static inline int le_interrupted(const le_context *context)
{
  return context->interrupted && context->interrupted(context->payload);
}

#endif

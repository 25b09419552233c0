/* Bytes of a FIFO. Opened in the usual way, a FIFO without a writer holds R in the system, where
 * an interrupt is not heard; so does a writer that pauses. Here both are waited for, and R is asked
 * for an interrupt many times a second. */
#include "bridge/bridge.h"

#include <errno.h>
#include <string.h>

#ifdef _WIN32

SEXP ffi_fifo_open(SEXP path)
{
  (void)path;
  Rf_error("This system has no FIFOs that are files.");
}

SEXP ffi_fifo_read(SEXP pointer, SEXP most)
{
  (void)pointer, (void)most;
  return R_NilValue;
}

SEXP ffi_fifo_close(SEXP pointer)
{
  return pointer;
}

#else

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#ifndef O_CLOEXEC
#define O_CLOEXEC 0
#endif

enum { WAIT = 50 }; /* milliseconds between two questions to R */

typedef struct fifo {
  int handle; /* -1: closed */
  int begun;  /* whether there has been a writer, as far as is known */
} fifo;

static void leave(SEXP pointer)
{
  fifo *f = R_ExternalPtrAddr(pointer);
  if (!f) return;
  if (f->handle >= 0) close(f->handle);
  le_release(f);
  R_ClearExternalPtr(pointer);
}

SEXP ffi_fifo_open(SEXP path)
{
  SEXP pointer = PROTECT(new_object(sizeof(fifo), leave, R_NilValue));
  fifo *f = R_ExternalPtrAddr(pointer);
  f->handle = open(one_string(path, "path"), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (f->handle < 0) Rf_error("%s", strerror(errno));
  UNPROTECT(1);
  return pointer;
}

/* Whether there is something to read, or the end. */
static int is_ready(fifo *f)
{
  struct pollfd seen = {.fd = f->handle, .events = POLLIN};
  if (poll(&seen, 1, WAIT) <= 0) return 0;
  if (seen.revents & POLLIN) return 1;
#ifdef __linux__
  return 1; /* the writer has left; Linux says nothing before there is one */
#else
  if (!f->begun) poll(NULL, 0, WAIT);
  return f->begun;
#endif
}

/* At most so many bytes, as soon as there are some; none at the end. */
SEXP ffi_fifo_read(SEXP pointer, SEXP most)
{
  fifo *f = R_ExternalPtrAddr(pointer);
  if (!f) Rf_error("This FIFO was closed.");
  SEXP bytes = PROTECT(Rf_allocVector(RAWSXP, (R_xlen_t)one_count(most, "most")));
  ssize_t got = -1;
  while (got < 0) {
    while (!is_ready(f)) R_CheckUserInterrupt();
    got = read(f->handle, RAW(bytes), (size_t)XLENGTH(bytes));
    if (got < 0 && errno != EAGAIN && errno != EINTR) Rf_error("%s", strerror(errno));
  }
  f->begun = 1;
  bytes = PROTECT(Rf_xlengthgets(bytes, (R_xlen_t)got));
  UNPROTECT(2);
  return bytes;
}

SEXP ffi_fifo_close(SEXP pointer)
{
  leave(pointer);
  return R_NilValue;
}

#endif

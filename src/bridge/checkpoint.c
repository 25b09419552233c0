/* Files that hold a checkpoint: written to a temporary file in the same directory, synchronised
 * with the disk, and renamed, so that a file with this name is always complete. The last 8 bytes
 * are a checksum of all bytes before. */
#include "bridge/bridge.h"

#include "base/archive.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#ifdef _WIN32
#include <io.h>
#include <windows.h>
#else
#include <fcntl.h>
#include <unistd.h>
#endif

static uint64_t checksum(const unsigned char *bytes, size_t size)
{
  return le_checksum(size, bytes, size);
}

static int synchronise(FILE *file)
{
  if (fflush(file) != 0) return 0;
#ifdef _WIN32
  return _commit(_fileno(file)) == 0;
#else
  return fsync(fileno(file)) == 0;
#endif
}

static int replace_file(const char *from, const char *to)
{
#ifdef _WIN32
  return MoveFileExA(from, to, MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH) != 0;
#else
  return rename(from, to) == 0;
#endif
}

/* Until the directory is on the disk, too, a crash of the machine may bring the old name back. */
static void synchronise_directory(const char *directory)
{
#ifdef _WIN32
  (void)directory;
#else
  const int handle = open(directory, O_RDONLY);
  if (handle < 0) return;
  (void)fsync(handle);
  close(handle);
#endif
}

static int write_all(FILE *file, SEXP bytes)
{
  const size_t size = (size_t)XLENGTH(bytes);
  return size == 0 || fwrite(RAW(bytes), 1, size, file) == size;
}

/* Writes `bytes` and their checksum. Returns NULL, or why it could not be done: the file is then as
 * it was before. */
SEXP ffi_checkpoint_write(SEXP path, SEXP directory, SEXP bytes)
{
  const char *name = one_string(path, "path"), *folder = one_string(directory, "directory");
  if (TYPEOF(bytes) != RAWSXP) Rf_error("A checkpoint must be a raw vector.");
  const size_t room = strlen(name) + 8;
  char *temporary = R_alloc(room, 1);
  snprintf(temporary, room, "%s.new", name);
  (void)remove(temporary); /* of a process that was killed */
  FILE *file = fopen(temporary, "wb");
  if (!file) return Rf_mkString(strerror(errno));
  const uint64_t sum = checksum(RAW(bytes), (size_t)XLENGTH(bytes));
  errno = 0;
  const int written = write_all(file, bytes) && fwrite(&sum, sizeof sum, 1, file) == 1 &&
                      synchronise(file);
  int reason = errno;
  const int closed = fclose(file) == 0;
  if (written && !closed) reason = errno;
  if (written && closed && replace_file(temporary, name)) {
    synchronise_directory(folder);
    return R_NilValue;
  }
  if (written && closed) reason = errno;
  (void)remove(temporary);
  return Rf_mkString(reason ? strerror(reason) : "the file could not be written");
}

/* Do the last 8 bytes fit the bytes before? */
SEXP ffi_checkpoint_intact(SEXP bytes)
{
  uint64_t sum;
  if (TYPEOF(bytes) != RAWSXP || (size_t)XLENGTH(bytes) < sizeof sum) return Rf_ScalarLogical(0);
  const size_t size = (size_t)XLENGTH(bytes) - sizeof sum;
  memcpy(&sum, RAW(bytes) + size, sizeof sum);
  return Rf_ScalarLogical(sum == checksum(RAW(bytes), size));
}

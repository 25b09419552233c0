/* Saves state as bytes. One function per piece of state both writes and reads it, depending on the
 * direction of the archive, so the two cannot disagree. After a failure (too few or damaged bytes)
 * every later call does nothing: check `status` once at the end. */
#ifndef LE_BASE_ARCHIVE_H
#define LE_BASE_ARCHIVE_H

#include "base/status.h"

#include <stdint.h>

typedef struct le_archive {
  int writing;
  unsigned char *bytes; /* NULL if the bytes are only counted */
  size_t size;          /* of `bytes` */
  size_t position;      /* bytes written, counted or read so far */
  le_status status;
} le_archive;

/* Counts the bytes that would be written. */
void le_archive_count(le_archive *archive);
void le_archive_write(le_archive *archive, unsigned char *bytes, size_t size);
void le_archive_read(le_archive *archive, const unsigned char *bytes, size_t size);

void le_archive_bytes(le_archive *archive, void *data, size_t size);
void le_archive_double(le_archive *archive, double *value);
void le_archive_doubles(le_archive *archive, double *values, size_t n);
void le_archive_size(le_archive *archive, size_t *value);
void le_archive_sizes(le_archive *archive, size_t *values, size_t n);
void le_archive_int(le_archive *archive, int *value);
/* Writes a number; fails if the number read is different. Detects states of another version or
 * problem. */
void le_archive_expect(le_archive *archive, uint64_t value);

/* A checksum of bytes that continues `sum`. */
uint64_t le_checksum(uint64_t sum, const void *data, size_t size);

#endif

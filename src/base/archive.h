/* Saves state as bytes. One function per piece of state both writes and reads it, depending on the
 * direction of the archive, so the two cannot disagree. After a failure (too few or damaged bytes)
 * every later call does nothing: check `status` once at the end. */
#ifndef LE_BASE_ARCHIVE_H
#define LE_BASE_ARCHIVE_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

typedef struct le_archive {
  int writing;
  unsigned char *bytes; /* NULL if the bytes are only counted */
  size_t size;          /* of `bytes` */
  size_t position;      /* bytes written, counted or read so far */
  le_status status;
} le_archive;

/* If `bytes` is NULL, those that would be written are only counted, up to `size`. */
le_archive le_archive_writer(unsigned char *bytes, size_t size);
le_archive le_archive_reader(const unsigned char *bytes, size_t size);

void le_archive_bytes(le_archive *archive, void *data, size_t size);
void le_archive_doubles(le_archive *archive, double *values, size_t n);
void le_archive_size(le_archive *archive, size_t *value);
void le_archive_sizes(le_archive *archive, size_t *values, size_t n);
void le_archive_int(le_archive *archive, int *value);
/* Members of a struct, one after the other. A table of them is an array of le_field:
 *   static const le_field fields[] = {LE_FIELD(le_path, begun), LE_FIELD(le_path, lambda)};
 *   LE_ARCHIVE_FIELDS(archive, path, fields);
 * An enumeration is saved as an int. */
typedef enum le_field_kind {
  LE_FIELD_DOUBLE,
  LE_FIELD_SIZE,
  LE_FIELD_INT,
  LE_FIELD_EXPECTED
} le_field_kind;
typedef struct le_field {
  size_t offset;
  le_field_kind kind;
} le_field;
typedef struct le_fields {
  const le_field *field;
  size_t n;
} le_fields;
#define LE_FIELD(type, member)                                                                     \
  {offsetof(type, member), _Generic(((type *)0)->member, double: LE_FIELD_DOUBLE,                  \
                                    size_t: LE_FIELD_SIZE, int: LE_FIELD_INT,                      \
                                    unsigned: LE_FIELD_INT)}
/* A size that is known before, for le_archive_expect(). */
#define LE_EXPECTED(type, member)                                                                  \
  {offsetof(type, member), _Generic(((type *)0)->member, size_t: LE_FIELD_EXPECTED)}
/* A table and its length. */
#define LE_TABLE(table) table, sizeof(table) / sizeof *(table)
#define LE_ARCHIVE_FIELDS(archive, self, table)                                                    \
  le_archive_fields(archive, self, LE_TABLE(table))
void le_archive_fields(le_archive *archive, void *self, const le_field *fields, size_t n);
/* Writes a number; fails if the number read is different. Detects states of another version or
 * problem. */
void le_archive_expect(le_archive *archive, uint64_t value);

/* A checksum of bytes that continues `sum`. */
uint64_t le_checksum(uint64_t sum, const void *data, size_t size);

#endif

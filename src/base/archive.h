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
  struct le_image *image; /* in a debug build: the structs written so far */
  size_t images;
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
 * An enumeration is saved as an int. Of a member that is in no table or call the comment behind it
 * says "set once", "scratch" or "derived" (`make lint`).
 *
 * A debug build also writes whole structs, except LE_UNSAVED, and compares them after a restore
 * (tools/debug/le_images.h). LE_ARCHIVE_WHOLE() is for structs without a table. Structs come before
 * those that are members of them. */
typedef enum le_field_kind {
  LE_FIELD_DOUBLE,
  LE_FIELD_SIZE,
  LE_FIELD_INT,
  LE_FIELD_EXPECTED,
  LE_FIELD_UNSAVED
} le_field_kind;
typedef struct le_field {
  size_t offset;
  le_field_kind kind;
  size_t size;
} le_field;
typedef struct le_fields {
  const le_field *field;
  size_t n;
} le_fields;
#define LE_FIELD(type, member)                                                                     \
  {offsetof(type, member), _Generic(((type *)0)->member, double: LE_FIELD_DOUBLE,                  \
                                    size_t: LE_FIELD_SIZE, int: LE_FIELD_INT,                      \
                                    unsigned: LE_FIELD_INT), sizeof(((type *)0)->member)}
/* A size that is known before, for le_archive_expect(). */
#define LE_EXPECTED(type, member)                                                                  \
  {offsetof(type, member), _Generic(((type *)0)->member, size_t: LE_FIELD_EXPECTED), 0}
/* A member that may differ after it was read. */
#define LE_UNSAVED(type, member)                                                                   \
  {offsetof(type, member), LE_FIELD_UNSAVED, sizeof(((type *)0)->member)}
/* A table and its length. */
#define LE_TABLE(table) table, sizeof(table) / sizeof *(table)
#define LE_ARCHIVE_FIELDS(archive, self, table)                                                    \
  le_archive_fields(archive, self, sizeof *(self), LE_TABLE(table), __func__)
#define LE_ARCHIVE_WHOLE(archive, self)                                                            \
  le_archive_fields(archive, self, sizeof *(self), NULL, 0, __func__)
/* `size` of the struct, and the name of it or of its archive function. */
void le_archive_fields(le_archive *archive, void *self, size_t size, const le_field *fields,
                       size_t n, const char *name);
/* Writes a number; fails if the number read is different. Detects states of another version or
 * problem. */
void le_archive_expect(le_archive *archive, uint64_t value);

/* In a debug build: whether what was written differs from these bytes. Ends the archive. */
int le_archive_differs(le_archive *archive, const unsigned char *bytes, le_error *error);

/* A checksum of bytes that continues `sum`. */
uint64_t le_checksum(uint64_t sum, const void *data, size_t size);

#endif

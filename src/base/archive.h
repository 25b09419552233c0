/* Saves state as bytes. One function per piece of state both writes and reads it, depending on the
 * direction of the archive, so the two cannot disagree. After a failure (too few or damaged bytes)
 * every later call does nothing: check `status` once at the end. */
#pragma once

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

/* What is read may be wrong although its checksum is right. So each number that the code uses to
 * count, to index or to choose has a range here, and is refused outside of it. Later calls then
 * read nothing: memory may be taken only while `status` is LE_OK. */
void le_archive_bytes(le_archive *archive, void *data, size_t size);
void le_archive_doubles(le_archive *archive, double *values, size_t n);
/* At most LE_COUNT_MOST. */
void le_archive_size(le_archive *archive, size_t *value);
void le_archive_sizes(le_archive *archive, size_t *values, size_t n);
/* Each below `bound`. */
void le_archive_indices(le_archive *archive, size_t *values, size_t n, size_t bound);
/* 0 or 1. */
void le_archive_flag(le_archive *archive, int *value);
/* Between two numbers. */
void le_archive_choice(le_archive *archive, int *value, int least, int most);
/* A number of objects of `each` bytes that follow: no more than the bytes that are left. */
void le_archive_count(le_archive *archive, size_t *value, size_t each);
/* What must hold for the numbers read so far. Nothing is checked of those that are written. */
void le_archive_require(le_archive *archive, int holds);

/* The largest count: a double holds it exactly. */
#define LE_COUNT_MOST ((size_t)1 << 53)

/* Members of a struct, one after the other. A table of them is an array of le_field:
 *   static const le_field fields[] = {LE_FIELD(le_path, begun), LE_UP_TO(le_path, at, points)};
 *   LE_ARCHIVE_FIELDS(archive, path, fields);
 * LE_FIELD() is for any double, a size_t of at most LE_COUNT_MOST, and an int that is 0 or 1. Other
 * members need a range: LE_UP_TO(), LE_BELOW() or LE_WITHIN(). An enumeration is saved as an int.
 * Of a member that is in no table or call the comment behind it says "set once", "scratch" or
 * "derived" (`make lint`).
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
typedef enum le_field_range { LE_ANY_NUMBER, LE_BETWEEN, LE_AT_MOST, LE_LESS_THAN } le_field_range;
typedef struct le_field {
  size_t offset;
  le_field_kind kind;
  size_t size;
  le_field_range range;
  double least, most; /* of LE_BETWEEN */
  size_t bound;       /* of LE_AT_MOST and LE_LESS_THAN: where the size_t is that limits it */
} le_field;
typedef struct le_fields {
  const le_field *field;
  size_t n;
} le_fields;
#define LE_MEMBER(type, member) ((type *)0)->member
#define LE_FIELD(type, member)                                                                     \
  {offsetof(type, member), _Generic(LE_MEMBER(type, member), double: LE_FIELD_DOUBLE,              \
                                    size_t: LE_FIELD_SIZE, int: LE_FIELD_INT),                     \
   sizeof(LE_MEMBER(type, member)),                                                                \
   _Generic(LE_MEMBER(type, member), double: LE_ANY_NUMBER, default: LE_BETWEEN), 0,               \
   _Generic(LE_MEMBER(type, member), int: 1, default: LE_COUNT_MOST), 0}
/* A number between two others; a double is not NaN. */
#define LE_WITHIN(type, member, least, most)                                                       \
  {offsetof(type, member), _Generic(LE_MEMBER(type, member), double: LE_FIELD_DOUBLE,              \
                                    size_t: LE_FIELD_SIZE, int: LE_FIELD_INT,                      \
                                    unsigned: LE_FIELD_INT), sizeof(LE_MEMBER(type, member)),      \
   LE_BETWEEN, least, most, 0}
#define LE_LIMITED(type, member, range, limit)                                                     \
  {offsetof(type, member), _Generic(LE_MEMBER(type, member), size_t: LE_FIELD_SIZE),               \
   sizeof(LE_MEMBER(type, member)), range, 0, 0,                                                   \
   _Generic(LE_MEMBER(type, limit), size_t: offsetof(type, limit))}
/* A size_t that is at most another member, or below it. That one is set once, or in the table
 * before. */
#define LE_UP_TO(type, member, limit) LE_LIMITED(type, member, LE_AT_MOST, limit)
#define LE_BELOW(type, member, limit) LE_LIMITED(type, member, LE_LESS_THAN, limit)
/* A size that is known before, for le_archive_expect(). */
#define LE_EXPECTED(type, member)                                                                  \
  {offsetof(type, member), _Generic(LE_MEMBER(type, member), size_t: LE_FIELD_EXPECTED), 0,        \
   LE_ANY_NUMBER, 0, 0, 0}
/* A member that may differ after it was read. */
#define LE_UNSAVED(type, member)                                                                   \
  {offsetof(type, member), LE_FIELD_UNSAVED, sizeof(LE_MEMBER(type, member)), LE_ANY_NUMBER, 0, 0, \
   0}
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

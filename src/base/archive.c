/* A growing buffer of native-endian bytes. A saved state can be read on the same type of machine by
 * the same version of the package. */
#include "base/archive.h"

#include "base/arena.h"

#include <string.h>

void le_archive_write(le_archive *archive)
{
  memset(archive, 0, sizeof *archive);
  archive->writing = 1;
}

void le_archive_read(le_archive *archive, const unsigned char *bytes, size_t size)
{
  memset(archive, 0, sizeof *archive);
  archive->bytes = (unsigned char *)bytes;
  archive->size = size;
}

void le_archive_free(le_archive *archive)
{
  if (archive->writing) le_release(archive->bytes);
  archive->bytes = NULL;
}

void le_archive_bytes(le_archive *archive, void *data, size_t size)
{
  if (archive->status != LE_OK || size == 0) return;
  if (!archive->writing) {
    if (archive->size - archive->position < size) {
      archive->status = LE_CORRUPT;
      return;
    }
    memcpy(data, archive->bytes + archive->position, size);
    archive->position += size;
    return;
  }
  if (archive->capacity - archive->size < size) {
    size_t capacity = 2 * archive->capacity + size + 1024;
    unsigned char *grown = le_resize(archive->bytes, capacity);
    if (!grown) {
      archive->status = LE_NO_MEMORY;
      return;
    }
    archive->bytes = grown;
    archive->capacity = capacity;
  }
  memcpy(archive->bytes + archive->size, data, size);
  archive->size += size;
}

void le_archive_double(le_archive *archive, double *value)
{
  le_archive_bytes(archive, value, sizeof *value);
}

void le_archive_doubles(le_archive *archive, double *values, size_t n)
{
  le_archive_bytes(archive, values, n * sizeof *values);
}

void le_archive_size(le_archive *archive, size_t *value)
{
  uint64_t wide = *value;
  le_archive_bytes(archive, &wide, sizeof wide);
  *value = (size_t)wide;
}

void le_archive_sizes(le_archive *archive, size_t *values, size_t n)
{
  for (size_t i = 0; i < n; i++) le_archive_size(archive, &values[i]);
}

void le_archive_int(le_archive *archive, int *value)
{
  int64_t wide = *value;
  le_archive_bytes(archive, &wide, sizeof wide);
  *value = (int)wide;
}

void le_archive_expect(le_archive *archive, uint64_t value)
{
  uint64_t seen = value;
  le_archive_bytes(archive, &seen, sizeof seen);
  if (archive->status == LE_OK && seen != value) archive->status = LE_CORRUPT;
}

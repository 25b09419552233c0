/* Native-endian bytes. A saved state can be read on the same type of machine by the same version of
 * the package. */
#include "base/archive.h"

#include <string.h>

le_archive le_archive_writer(unsigned char *bytes, size_t size)
{
  return (le_archive){.writing = 1, .bytes = bytes, .size = size};
}

le_archive le_archive_reader(const unsigned char *bytes, size_t size)
{
  return (le_archive){.writing = 0, .bytes = (unsigned char *)bytes, .size = size};
}

void le_archive_bytes(le_archive *archive, void *data, size_t size)
{
  if (archive->status != LE_OK || size == 0) return;
  if (archive->size - archive->position < size) {
    archive->status = LE_CORRUPT;
    return;
  }
  if (!archive->writing) memcpy(data, archive->bytes + archive->position, size);
  else if (archive->bytes) memcpy(archive->bytes + archive->position, data, size);
  archive->position += size;
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

#ifdef LE_DEBUG
#include <le_images.h>
#else
#define LE_ARCHIVE_IMAGE(archive, self, size, fields, n, name) ((void)(size), (void)(name))
#endif

void le_archive_fields(le_archive *archive, void *self, size_t size, const le_field *fields,
                       size_t n, const char *name)
{
  for (size_t i = 0; i < n; i++) {
    void *at = (char *)self + fields[i].offset;
    if (fields[i].kind == LE_FIELD_DOUBLE) le_archive_doubles(archive, at, 1);
    else if (fields[i].kind == LE_FIELD_SIZE) le_archive_size(archive, at);
    else if (fields[i].kind == LE_FIELD_EXPECTED) le_archive_expect(archive, *(size_t *)at);
    else if (fields[i].kind == LE_FIELD_INT) le_archive_int(archive, at);
  }
  LE_ARCHIVE_IMAGE(archive, self, size, fields, n, name);
}

void le_archive_expect(le_archive *archive, uint64_t value)
{
  uint64_t seen = value;
  le_archive_bytes(archive, &seen, sizeof seen);
  if (archive->status == LE_OK && seen != value) archive->status = LE_CORRUPT;
}

/* For every word the step is one-to-one in the sum and in the word, so that no change of a single
 * word goes unnoticed. */
uint64_t le_checksum(uint64_t sum, const void *data, size_t size)
{
  const unsigned char *bytes = data;
  for (size_t i = 0; i < size; i += sizeof(uint64_t)) {
    uint64_t word = 0;
    memcpy(&word, bytes + i, size - i < sizeof word ? size - i : sizeof word);
    sum = (sum ^ word) * 0x9e3779b97f4a7c15u;
    sum ^= sum >> 29;
  }
  return sum;
}

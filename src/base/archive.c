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

/* In a debug build what is written must be in its range too. */
#ifdef LE_DEBUG
enum { CHECKS_WRITING = 1 };
#else
enum { CHECKS_WRITING = 0 };
#endif

void le_archive_require(le_archive *archive, int holds)
{
  if (archive->writing && !CHECKS_WRITING) return;
  if (archive->status == LE_OK && !holds) archive->status = LE_CORRUPT;
}

void le_archive_size(le_archive *archive, size_t *value)
{
  le_archive_indices(archive, value, 1, LE_COUNT_MOST + 1);
}

void le_archive_sizes(le_archive *archive, size_t *values, size_t n)
{
  le_archive_indices(archive, values, n, LE_COUNT_MOST + 1);
}

void le_archive_indices(le_archive *archive, size_t *values, size_t n, size_t bound)
{
  for (size_t i = 0; i < n && archive->status == LE_OK; i++) {
    uint64_t wide = values[i];
    le_archive_bytes(archive, &wide, sizeof wide);
    le_archive_require(archive, wide < bound);
    if (archive->status == LE_OK) values[i] = (size_t)wide;
  }
}

void le_archive_flag(le_archive *archive, int *value)
{
  le_archive_choice(archive, value, 0, 1);
}

void le_archive_choice(le_archive *archive, int *value, int least, int most)
{
  int64_t wide = *value;
  le_archive_bytes(archive, &wide, sizeof wide);
  le_archive_require(archive, wide >= least && wide <= most);
  if (archive->status == LE_OK) *value = (int)wide;
}

void le_archive_count(le_archive *archive, size_t *value, size_t each)
{
  size_t n = *value;
  le_archive_size(archive, &n);
  if (!archive->writing && each)
    le_archive_require(archive, n <= (archive->size - archive->position) / each);
  if (archive->status == LE_OK) *value = n;
}

#ifdef LE_DEBUG
#include <le_images.h>
#else
#define LE_ARCHIVE_IMAGE(archive, self, size, fields, n, name) ((void)(size), (void)(name))
#endif

static void archive_number(le_archive *archive, void *self, void *at, const le_field *field)
{
  const size_t *bound = (const size_t *)((const char *)self + field->bound);
  const size_t below = field->range == LE_AT_MOST     ? *bound + 1
                       : field->range == LE_LESS_THAN ? *bound
                                                      : LE_COUNT_MOST + 1;
  if (field->kind == LE_FIELD_INT) {
    le_archive_choice(archive, at, (int)field->least, (int)field->most);
    return;
  }
  if (field->kind == LE_FIELD_SIZE) le_archive_indices(archive, at, 1, below);
  if (field->kind == LE_FIELD_DOUBLE) le_archive_doubles(archive, at, 1);
  if (field->range != LE_BETWEEN) return;
  const double value =
    field->kind == LE_FIELD_SIZE ? (double)*(const size_t *)at : *(const double *)at;
  le_archive_require(archive, value >= field->least && value <= field->most);
}

void le_archive_fields(le_archive *archive, void *self, size_t size, const le_field *fields,
                       size_t n, const char *name)
{
  for (size_t i = 0; i < n; i++) {
    void *at = (char *)self + fields[i].offset;
    if (fields[i].kind == LE_FIELD_EXPECTED) le_archive_expect(archive, *(size_t *)at);
    else if (fields[i].kind != LE_FIELD_UNSAVED) archive_number(archive, self, at, &fields[i]);
  }
  LE_ARCHIVE_IMAGE(archive, self, size, fields, n, name);
}

void le_archive_expect(le_archive *archive, uint64_t value)
{
  uint64_t seen = value;
  le_archive_bytes(archive, &seen, sizeof seen);
  le_archive_require(archive, seen == value);
}

/* For every word the step is one-to-one in the sum and in the word, so that no change of a single
 * word goes unnoticed. */
static uint64_t with_word(uint64_t sum, uint64_t word)
{
  sum = (sum ^ word) * 0x9e3779b97f4a7c15u;
  return sum ^ sum >> 29;
}

uint64_t le_checksum(uint64_t sum, const void *data, size_t size)
{
  const unsigned char *bytes = data;
  uint64_t word;
  for (; size >= sizeof word; size -= sizeof word, bytes += sizeof word) {
    memcpy(&word, bytes, sizeof word);
    sum = with_word(sum, word);
  }
  if (size == 0) return sum;
  word = 0;
  memcpy(&word, bytes, size);
  return with_word(sum, word);
}

/* For src/base/archive.c in a debug build: with each table of members the bytes of its whole struct
 * are saved. A run that was read is written again, and what differs was not restored. An address
 * counts as 1. The bytes of LE_UNSAVED are left out, also where the struct is a member of one that
 * was written before. */
#include "base/arena.h"

typedef struct le_image {
  const char *self, *name;
  size_t size, position;
} le_image;

/* On Linux. A double with such bits would be of size 1e-309. */
static int is_address(uint64_t word)
{
  return word >> 40 >= 0x50 && word >> 40 <= 0xff;
}

/* A part of all structs written so far that have it. */
static void blank(le_archive *archive, const char *part, size_t size)
{
  for (size_t i = 0; i < archive->images; i++) {
    const le_image *image = &archive->image[i];
    if (part >= image->self && part + size <= image->self + image->size)
      memset(archive->bytes + image->position + (part - image->self), 0, size);
  }
}

static void write_image(le_archive *archive, const char *self, size_t size, const le_field *fields,
                        size_t n, const char *name)
{
  le_image *all = le_resize(archive->image, (archive->images + 1) * sizeof *all);
  if (!all) archive->status = LE_NO_MEMORY;
  if (!all) return;
  archive->image = all;
  all[archive->images++] = (le_image){self, name, size, archive->position};
  for (size_t i = 0; i + sizeof(uint64_t) <= size; i += sizeof(uint64_t)) {
    uint64_t word;
    memcpy(&word, self + i, sizeof word);
    if (is_address(word)) word = 1;
    memcpy(archive->bytes + archive->position + i, &word, sizeof word);
  }
  for (size_t i = 0; i < n; i++)
    if (fields[i].kind == LE_FIELD_UNSAVED) blank(archive, self + fields[i].offset, fields[i].size);
}

static void save_image(le_archive *archive, const char *self, size_t size, const le_field *fields,
                       size_t n, const char *name)
{
  if (archive->status != LE_OK) return;
  if (archive->size - archive->position < size) archive->status = LE_CORRUPT;
  else if (archive->writing && archive->bytes) write_image(archive, self, size, fields, n, name);
  archive->position += size;
}
#define LE_ARCHIVE_IMAGE save_image

int le_archive_differs(le_archive *archive, const unsigned char *bytes, le_error *error)
{
  size_t at = 0, i = 0;
  while (at < archive->size && archive->bytes[at] == bytes[at]) at++;
  while (i < archive->images && archive->image[i].position + archive->image[i].size <= at) i++;
  if (at < archive->size && i < archive->images && archive->image[i].position <= at)
    le_fail(error, LE_CORRUPT, "Byte %d of %d of the struct of %s differs after it was read.",
            (int)(at - archive->image[i].position), (int)archive->image[i].size,
            archive->image[i].name);
  else if (at < archive->size)
    le_fail(error, LE_CORRUPT, "Byte %d of the state differs after it was read.", (int)at);
  le_release(archive->image);
  return at < archive->size;
}

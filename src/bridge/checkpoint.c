/* The file of a checkpoint.
 *
 * A checkpoint is written to a temporary file in the same directory, synchronised with the disk,
 * and renamed, so that a file with this name is always complete. The temporary file has a name that
 * no other file has, and only its owner can read it, because the data of the user may be in it. The
 * last 8 bytes are a checksum of all bytes before.
 *
 * A run holds a lock of its file (flock(), where the system has it), so that two processes cannot
 * write to it in turn. The lock belongs to the open file, not to its name: the new file is locked
 * before it gets the name. The system ends the lock when the process ends, however it ends. Before
 * each writing the file must still be what this run has left or read, so that a file that another
 * program has put there is not lost. */
#include "bridge/bridge.h"

#include "base/archive.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#ifdef _WIN32
#include <io.h>
#include <process.h>
#include <windows.h>
#else
#include <sys/file.h>
#include <unistd.h>
#endif

#ifndef O_BINARY
#define O_BINARY 0
#endif
#ifndef O_CLOEXEC
#define O_CLOEXEC 0
#endif
#ifndef O_NOFOLLOW
#define O_NOFOLLOW 0
#endif
#ifndef O_NONBLOCK
#define O_NONBLOCK 0
#endif

/* The file as this run knows it. */
typedef struct place {
  int handle;  /* of the locked file, or -1 */
  int known;   /* whether there is a file */
  double size; /* of this file, and its last bytes */
  uint64_t last;
} place;

static uint64_t checksum(const void *bytes, size_t size)
{
  return le_checksum(size, bytes, size);
}

/* What a path is ------------------------------------------------------------------------------- */

/* Looks at the path itself, without following a link or opening anything. */
static int look_at(const char *path, struct stat *info)
{
#ifdef _WIN32
  return stat(path, info);
#else
  return lstat(path, info);
#endif
}

static const char *kind_of(const struct stat *info)
{
  if (S_ISREG(info->st_mode)) return "file";
  if (S_ISDIR(info->st_mode)) return "directory";
#ifdef S_ISLNK
  if (S_ISLNK(info->st_mode)) return "link";
#endif
#ifdef S_ISFIFO
  if (S_ISFIFO(info->st_mode)) return "FIFO";
#endif
#ifdef S_ISSOCK
  if (S_ISSOCK(info->st_mode)) return "socket";
#endif
  return "device";
}

/* "none", "file", "directory", "link", "FIFO", "socket" or "device". If that cannot be seen, two
 * texts: "error" and the reason. */
SEXP ffi_path_kind(SEXP path)
{
  struct stat info;
  if (look_at(one_string(path, "path"), &info) == 0) return Rf_mkString(kind_of(&info));
  const int reason = errno;
  if (reason == ENOENT) return Rf_mkString("none");
  return string_vector(2, (const char *[]){"error", strerror(reason)});
}

/* Opening -------------------------------------------------------------------------------------- */

/* A handle of the file, or -1. A FIFO that has taken its place in the meantime does not block. */
static int open_file(const char *path)
{
  const int handle = open(path, O_RDONLY | O_BINARY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  struct stat info;
  if (handle < 0 || (fstat(handle, &info) == 0 && S_ISREG(info.st_mode))) return handle;
  close(handle);
  errno = EINVAL;
  return -1;
}

static void let_go(place *p)
{
  if (p->handle >= 0) close(p->handle);
  p->handle = -1;
}

#ifdef _WIN32
/* An open file could not be replaced, so it is closed at once, and there are no locks. */
static int hold(place *p)
{
  let_go(p);
  return 1;
}
static int has_this_name(const place *p, const char *path)
{
  (void)p, (void)path;
  return 1;
}
#else
/* Locks the file. Returns 0 if another process has it; on a file system without locks 1. */
static int hold(place *p)
{
  return flock(p->handle, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

static int has_this_name(const place *p, const char *path)
{
  struct stat open, named;
  return fstat(p->handle, &open) == 0 && lstat(path, &named) == 0 &&
         open.st_dev == named.st_dev && open.st_ino == named.st_ino;
}
#endif

static void let_go_of(SEXP pointer)
{
  place *p = R_ExternalPtrAddr(pointer);
  if (!p) return;
  let_go(p);
  le_release(p);
  R_ClearExternalPtr(pointer);
}

static place *place_of(SEXP pointer)
{
  place *p = TYPEOF(pointer) == EXTPTRSXP ? R_ExternalPtrAddr(pointer) : NULL;
  if (!p) Rf_error("This is not the place of a checkpoint.");
  return p;
}

/* The file of a place (0), or its directory (1). */
static const char *name_of(SEXP pointer, R_xlen_t which)
{
  return CHAR(STRING_ELT(R_ExternalPtrProtected(pointer), which));
}

/* Locks the file, if there is one. Returns NULL, or why not. */
static const char *open_place(place *p, const char *path)
{
  /* until the file that was locked is also the one that has this name */
  for (int trial = 0; trial < 100; trial++) {
    p->handle = open_file(path);
    if (p->handle < 0) return errno == ENOENT ? NULL : strerror(errno);
    if (!hold(p)) break;
    if (has_this_name(p, path)) return NULL;
    let_go(p);
  }
  return "locked";
}

/* The place of a checkpoint: an external pointer. Otherwise why the file cannot be opened, "locked"
 * if another process writes to it. */
SEXP ffi_checkpoint_open(SEXP path, SEXP directory)
{
  SEXP names = PROTECT(string_vector(
    2, (const char *[]){one_string(path, "path"), one_string(directory, "directory")}));
  SEXP pointer = PROTECT(new_object(sizeof(place), let_go_of, names));
  place *p = place_of(pointer);
  p->handle = -1;
  const char *reason = open_place(p, name_of(pointer, 0));
  SEXP answer = reason ? PROTECT(Rf_mkString(reason)) : PROTECT(pointer);
  if (reason) let_go_of(pointer);
  UNPROTECT(3);
  return answer;
}

SEXP ffi_checkpoint_close(SEXP pointer)
{
  if (TYPEOF(pointer) == EXTPTRSXP) let_go_of(pointer);
  return R_NilValue;
}

/* Reading -------------------------------------------------------------------------------------- */

/* Reads or writes all these bytes. Returns 0 at an error, and at the end of the file, then without
 * an error number. */
static int pass_all(int handle, void *bytes, size_t size, int writing)
{
  for (size_t done = 0; done < size;) {
    const size_t left = size - done, part = left < 1u << 30 ? left : 1u << 30;
    char *at = (char *)bytes + done;
    const long passed = writing ? (long)write(handle, at, (unsigned)part)
                                : (long)read(handle, at, (unsigned)part);
    if (passed < 0 && errno == EINTR) continue;
    if (passed == 0) errno = 0;
    if (passed <= 0) return 0;
    done += (size_t)passed;
  }
  return 1;
}

/* All bytes of a file, NULL if there is none, or why they cannot be read. */
SEXP ffi_file_read(SEXP path)
{
  const char *name = one_string(path, "path");
  struct stat info;
  if (look_at(name, &info) != 0) return errno == ENOENT ? R_NilValue : Rf_mkString(strerror(errno));
  /* allocated before the file is open, because R does not return if there is no memory */
  SEXP bytes = PROTECT(Rf_allocVector(RAWSXP, (R_xlen_t)info.st_size));
  const int handle = open_file(name);
  const int read = handle >= 0 && pass_all(handle, RAW(bytes), (size_t)XLENGTH(bytes), 0);
  const int reason = errno;
  if (handle >= 0) close(handle);
  UNPROTECT(1);
  if (read) return bytes;
  return Rf_mkString(reason ? strerror(reason) : "it has become shorter");
}

static void know(place *p, const void *bytes, size_t size)
{
  p->known = 1;
  p->size = (double)size;
  p->last = 0;
  if (size >= sizeof p->last)
    memcpy(&p->last, (const char *)bytes + size - sizeof p->last, sizeof p->last);
}

/* The same of the file of a run, which is then known to the run. */
SEXP ffi_checkpoint_read(SEXP pointer)
{
  place *p = place_of(pointer);
  SEXP bytes = PROTECT(ffi_file_read(PROTECT(Rf_mkString(name_of(pointer, 0)))));
  if (TYPEOF(bytes) == RAWSXP) know(p, RAW(bytes), (size_t)XLENGTH(bytes));
  UNPROTECT(2);
  return bytes;
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

/* Writing -------------------------------------------------------------------------------------- */

/* Is the file still what this run has left or read? A file that is gone may be made anew. */
static int is_as_known(place *p, const char *path)
{
  struct stat info;
  if (look_at(path, &info) != 0) {
    if (errno == ENOENT) p->known = 0;
    return 1; /* writing will say what else is wrong */
  }
  if (!p->known || !S_ISREG(info.st_mode) || (double)info.st_size != p->size) return 0;
  if (p->size < sizeof p->last) return 1;
  const int handle = open_file(path);
  uint64_t last;
  if (handle < 0) return 0;
  const int same = lseek(handle, -(off_t)sizeof last, SEEK_END) >= 0 &&
                   pass_all(handle, &last, sizeof last, 0) && last == p->last;
  close(handle);
  return same;
}

/* Makes a file that only the owner can read, with a name that no other file has. */
static int new_file(const char *name, char *temporary, size_t room)
{
  const uint64_t seed[] = {(uint64_t)time(NULL), (uint64_t)clock(), (uint64_t)getpid(),
                           (uint64_t)(size_t)temporary};
  uint64_t word = checksum(seed, sizeof seed);
  int handle = -1;
  for (int trial = 0; trial < 100 && handle < 0; trial++) {
    snprintf(temporary, room, "%s.%08x.new", name, (unsigned)(word >> 32));
    handle = open(temporary, O_RDWR | O_CREAT | O_EXCL | O_BINARY | O_CLOEXEC | O_NOFOLLOW,
                  S_IRUSR | S_IWUSR);
    if (handle < 0 && errno != EEXIST) break;
    word = checksum(&word, sizeof word);
  }
  return handle;
}

static int synchronise(int handle)
{
#ifdef _WIN32
  return _commit(handle) == 0;
#else
  return fsync(handle) == 0;
#endif
}

/* Gives the file its name. Without `replace` there must be no file of this name. */
static int rename_file(const char *from, const char *to, int replace)
{
#ifdef _WIN32
  const DWORD how = MOVEFILE_WRITE_THROUGH | (replace ? MOVEFILE_REPLACE_EXISTING : 0);
  if (MoveFileExA(from, to, how)) return 1;
  errno = GetLastError() == ERROR_ALREADY_EXISTS ? EEXIST : EACCES;
  return 0;
#else
  if (replace) return rename(from, to) == 0;
  if (link(from, to) == 0) {
    (void)unlink(from);
    return 1;
  }
  if (errno == EEXIST) return 0;
  /* a file system without hard links */
  const int claim = open(to, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (claim < 0) return 0;
  close(claim);
  if (rename(from, to) == 0) return 1;
  const int reason = errno;
  (void)unlink(to);
  errno = reason;
  return 0;
#endif
}

/* Until the directory is on the disk, too, a crash of the machine may bring the old name back. */
static void synchronise_directory(const char *directory)
{
#ifdef _WIN32
  (void)directory;
#else
  const int handle = open(directory, O_RDONLY | O_CLOEXEC);
  if (handle < 0) return;
  (void)fsync(handle);
  close(handle);
#endif
}

/* Writes to the open temporary file and renames it. */
static int put_in_place(place *p, int handle, const char *temporary, const char *path, SEXP bytes)
{
  const size_t size = (size_t)XLENGTH(bytes);
  uint64_t sum = checksum(RAW(bytes), size);
  const int written = pass_all(handle, RAW(bytes), size, 1) &&
                      pass_all(handle, &sum, sizeof sum, 1) && synchronise(handle);
  /* the new file is locked before other processes can see it by its name */
  place new = {.handle = handle};
  if (!written || !hold(&new) || !rename_file(temporary, path, p->known)) {
    const int reason = errno;
    let_go(&new);
    errno = reason;
    return 0;
  }
  let_go(p);
  p->handle = new.handle;
  know(p, &sum, sizeof sum);
  p->size = (double)(size + sizeof sum);
  return 1;
}

static SEXP conflict(void)
{
  static const char *const reason[] = {
    "another program has made or changed this file since the run began", "conflict"};
  return string_vector(2, reason);
}

/* Writes `bytes` and their checksum. Returns NULL, or why it could not be done: the file is then as
 * it was before. The reason has a second element, "conflict", if the file is another program's. */
SEXP ffi_checkpoint_write(SEXP pointer, SEXP bytes)
{
  place *p = place_of(pointer);
  if (TYPEOF(bytes) != RAWSXP) Rf_error("A checkpoint must be a raw vector.");
  const char *path = name_of(pointer, 0);
  const size_t room = strlen(path) + 32;
  char *temporary = R_alloc(room, 1);
  if (!is_as_known(p, path)) return conflict();
  const int handle = new_file(path, temporary, room);
  if (handle < 0) return Rf_mkString(strerror(errno));
  errno = 0;
  if (put_in_place(p, handle, temporary, path, bytes)) {
    synchronise_directory(name_of(pointer, 1));
    return R_NilValue;
  }
  const int reason = errno;
  (void)remove(temporary);
  if (reason == EEXIST) return conflict();
  return Rf_mkString(reason ? strerror(reason) : "the file could not be written");
}

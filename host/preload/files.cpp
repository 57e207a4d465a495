// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Functions of the C library that take a path: the same with the path translated (sysfs.hpp). All
// other paths pass through after a look at their first letters.
#include "real.hpp"
#include "sysfs.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using roci::preload::translate;

// The real function, looked up once. No guarded static: the lookup may come back here.
template <class Function>
Function* cached(std::atomic<void*>& cache, const char* name) {
  void* function = cache.load(std::memory_order_relaxed);
  if (function == nullptr) {
    function = roci::preload::find_real(name);
    cache.store(function, std::memory_order_relaxed);
  }
  return reinterpret_cast<Function*>(function);
}

mode_t mode_of(int flags, va_list arguments) {
  if ((flags & O_CREAT) == 0 && (flags & O_TMPFILE) != O_TMPFILE) return 0;
  return va_arg(arguments, mode_t);
}

}  // namespace

// A function `name` whose parameter `path` is translated.
#define WRAP(result, failure, name, parameters, types, call)            \
  EXPORT result name parameters {                                       \
    static std::atomic<void*> cache;                                    \
    auto* function = cached<result types>(cache, #name);                \
    if (function == nullptr) {                                          \
      errno = ENOSYS;                                                   \
      return failure;                                                   \
    }                                                                   \
    char space[PATH_MAX];                                               \
    path = translate(path, space);                                      \
    return function call;                                               \
  }

#define WRAP_OPEN(name)                                                          \
  EXPORT int name(const char* path, int flags, ...) {                            \
    va_list arguments;                                                           \
    va_start(arguments, flags);                                                  \
    const mode_t mode = mode_of(flags, arguments);                               \
    va_end(arguments);                                                           \
    static std::atomic<void*> cache;                                             \
    char space[PATH_MAX];                                                        \
    auto* function = cached<int(const char*, int, ...)>(cache, #name);           \
    return function(translate(path, space), flags, mode);                        \
  }

#define WRAP_OPENAT(name)                                                        \
  EXPORT int name(int directory, const char* path, int flags, ...) {             \
    va_list arguments;                                                           \
    va_start(arguments, flags);                                                  \
    const mode_t mode = mode_of(flags, arguments);                               \
    va_end(arguments);                                                           \
    static std::atomic<void*> cache;                                             \
    char space[PATH_MAX];                                                        \
    auto* function = cached<int(int, const char*, int, ...)>(cache, #name);      \
    return function(directory, translate(path, space), flags, mode);             \
  }

WRAP_OPEN(open)
WRAP_OPEN(open64)
WRAP_OPENAT(openat)
WRAP_OPENAT(openat64)

// What programs call that were built with _FORTIFY_SOURCE.
WRAP(int, -1, __open_2, (const char* path, int flags), (const char*, int), (path, flags))
WRAP(int, -1, __open64_2, (const char* path, int flags), (const char*, int), (path, flags))
WRAP(int, -1, __openat_2, (int dir, const char* path, int flags), (int, const char*, int),
     (dir, path, flags))
WRAP(int, -1, __openat64_2, (int dir, const char* path, int flags), (int, const char*, int),
     (dir, path, flags))

WRAP(FILE*, nullptr, fopen, (const char* path, const char* mode), (const char*, const char*),
     (path, mode))
WRAP(FILE*, nullptr, fopen64, (const char* path, const char* mode), (const char*, const char*),
     (path, mode))

WRAP(int, -1, stat, (const char* path, struct stat* to), (const char*, struct stat*), (path, to))
WRAP(int, -1, lstat, (const char* path, struct stat* to), (const char*, struct stat*), (path, to))
WRAP(int, -1, stat64, (const char* path, struct stat64* to), (const char*, struct stat64*),
     (path, to))
WRAP(int, -1, lstat64, (const char* path, struct stat64* to), (const char*, struct stat64*),
     (path, to))
WRAP(int, -1, fstatat, (int dir, const char* path, struct stat* to, int flags),
     (int, const char*, struct stat*, int), (dir, path, to, flags))
WRAP(int, -1, fstatat64, (int dir, const char* path, struct stat64* to, int flags),
     (int, const char*, struct stat64*, int), (dir, path, to, flags))
WRAP(int, -1, statx, (int dir, const char* path, int flags, unsigned mask, struct statx* to),
     (int, const char*, int, unsigned, struct statx*), (dir, path, flags, mask, to))
// Of programs built before glibc 2.33.
WRAP(int, -1, __xstat, (int version, const char* path, struct stat* to),
     (int, const char*, struct stat*), (version, path, to))
WRAP(int, -1, __lxstat, (int version, const char* path, struct stat* to),
     (int, const char*, struct stat*), (version, path, to))
WRAP(int, -1, __xstat64, (int version, const char* path, struct stat64* to),
     (int, const char*, struct stat64*), (version, path, to))
WRAP(int, -1, __lxstat64, (int version, const char* path, struct stat64* to),
     (int, const char*, struct stat64*), (version, path, to))

WRAP(int, -1, access, (const char* path, int mode), (const char*, int), (path, mode))
WRAP(int, -1, faccessat, (int dir, const char* path, int mode, int flags),
     (int, const char*, int, int), (dir, path, mode, flags))
WRAP(DIR*, nullptr, opendir, (const char* path), (const char*), (path))
WRAP(int, -1, scandir,
     (const char* path, struct dirent*** list, int (*filter)(const struct dirent*),
      int (*compare)(const struct dirent**, const struct dirent**)),
     (const char*, struct dirent***, int (*)(const struct dirent*),
      int (*)(const struct dirent**, const struct dirent**)),
     (path, list, filter, compare))
WRAP(ssize_t, -1, readlink, (const char* path, char* to, size_t size),
     (const char*, char*, size_t), (path, to, size))
WRAP(ssize_t, -1, readlinkat, (int dir, const char* path, char* to, size_t size),
     (int, const char*, char*, size_t), (dir, path, to, size))
WRAP(ssize_t, -1, getxattr, (const char* path, const char* name, void* to, size_t size),
     (const char*, const char*, void*, size_t), (path, name, to, size))
WRAP(ssize_t, -1, lgetxattr, (const char* path, const char* name, void* to, size_t size),
     (const char*, const char*, void*, size_t), (path, name, to, size))
WRAP(char*, nullptr, realpath, (const char* path, char* to), (const char*, char*), (path, to))

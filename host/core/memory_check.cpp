// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Whether a program may register a range: what pinning checks in a kernel. Reads /proc/self/maps,
// because nothing else tells the rights of a page without touching it.
#include <roci/dma.hpp>
#include <roci/error.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace roci {

bool check_memory(const void* begin, size_t bytes, bool writable) {
  const auto from = reinterpret_cast<uintptr_t>(begin);
  const uintptr_t to = from + bytes;
  uintptr_t good = from;  // everything before is fine
  bool all_writable = true;
  const int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return writable;  // no proc file system: the device will find out
  char text[65536];
  size_t held = 0;
  bool more = true;
  while (more && good < to) {
    const ssize_t n = read(fd, text + held, sizeof text - 1 - held);
    if (n < 0 && errno == EINTR) continue;
    more = n > 0;
    if (n > 0) held += static_cast<size_t>(n);
    text[held] = 0;
    char* line = text;
    while (char* end = strchr(line, '\n')) {
      unsigned long long low = 0;
      unsigned long long high = 0;
      char rights[5] = "";
      if (sscanf(line, "%llx-%llx %4s", &low, &high, rights) == 3 && high > good) {
        const bool covers = low <= good;
        const bool allowed = rights[0] == 'r' && (!writable || rights[1] == 'w');
        if (covers && !allowed) {
          close(fd);
          fail(EFAULT, "memory at 0x%llx is %s (%s): %s", static_cast<unsigned long long>(good),
               rights[0] == 'r' ? "read-only" : "not readable", rights,
               rights[0] == 'r' ? "register it without IBV_ACCESS_LOCAL_WRITE" : "map it readable");
        }
        if (!covers) {  // a hole: lines are in order of address
          more = false;
          break;
        }
        all_writable = all_writable && rights[1] == 'w';
        good = high;
        if (good >= to) break;
      }
      line = end + 1;
    }
    held -= static_cast<size_t>(line - text);
    memmove(text, line, held);
  }
  close(fd);
  if (good < to) {
    fail(EFAULT, "memory at 0x%llx is not mapped", static_cast<unsigned long long>(good));
  }
  return all_writable;
}

}  // namespace roci

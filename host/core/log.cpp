// SPDX-License-Identifier: BSD-2-Clause-Patent
#include <roci/log.hpp>

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace roci {
namespace {

// Read from the environment at the first use, not in a constructor.
std::atomic<int> level_cache{-1};

LogLevel level() noexcept {
  int value = level_cache.load(std::memory_order_relaxed);
  if (value < 0) {
    const char* text = getenv("ROCI_LOG");
    LogLevel wanted = LogLevel::WARN;
    bool known = true;
    if (text == nullptr || *text == 0 || strcmp(text, "warn") == 0) {
      wanted = LogLevel::WARN;
    } else if (strcmp(text, "none") == 0) {
      wanted = LogLevel::NONE;
    } else if (strcmp(text, "info") == 0) {
      wanted = LogLevel::INFO;
    } else if (strcmp(text, "debug") == 0) {
      wanted = LogLevel::DEBUG;
    } else {
      known = false;
    }
    value = static_cast<int>(wanted);
    level_cache.store(value, std::memory_order_relaxed);
    if (!known) {
      log(LogLevel::WARN, "ROCI_LOG=%s is not known: none, warn, info or debug", text);
    }
  }
  return static_cast<LogLevel>(value);
}

}  // namespace

bool log_enabled(LogLevel wanted) noexcept { return wanted <= level(); }

void log(LogLevel wanted, const char* format, ...) noexcept {
  if (!log_enabled(wanted)) return;
  const int saved = errno;
  char line[1024] = "roci: ";
  constexpr size_t PREFIX = 6;
  va_list arguments;
  va_start(arguments, format);
  const int n = vsnprintf(line + PREFIX, sizeof line - PREFIX - 1, format, arguments);
  va_end(arguments);
  if (n >= 0) {
    size_t end = strlen(line);
    line[end++] = '\n';
    // A line that cannot be printed is lost; there is nobody to tell.
    // Not write(), which is a cancellation point: whoever logs may be noexcept.
    [[maybe_unused]] const long written = syscall(SYS_write, STDERR_FILENO, line, end);
  }
  errno = saved;
}

bool LogRate::allows(uint64_t seconds, unsigned& left_out) noexcept {
  // Two threads at the change of a second may let a line too many through: that is no harm.
  if (second_.exchange(seconds, std::memory_order_relaxed) != seconds) {
    lines_.store(0, std::memory_order_relaxed);
  }
  if (lines_.fetch_add(1, std::memory_order_relaxed) >= LINES) {
    left_out_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  left_out = left_out_.exchange(0, std::memory_order_relaxed);
  return true;
}

}  // namespace roci

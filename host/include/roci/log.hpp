// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Log lines of the host stack: stderr, prefix "roci: ", level from the environment variable ROCI_LOG
// (none, warn, info, debug; default warn).
#pragma once

#include <atomic>
#include <cstdint>

namespace roci {

/// How much is said. Each level includes the ones before it.
enum class LogLevel : uint8_t { NONE, WARN, INFO, DEBUG };

/// Whether lines of this level are printed.
bool log_enabled(LogLevel wanted) noexcept;

/// Prints one line, made by printf rules, with one write; no newline in `format`. Keeps errno.
void log(LogLevel wanted, const char* format, ...) noexcept __attribute__((format(printf, 2, 3)));

/// How often lines of one kind may come: so that a program that goes on failing does not fill the disk.
/// Any number of threads.
class LogRate {
 public:
  /// Lines in one second.
  static constexpr unsigned LINES = 20;

  /// Whether there may be one more line now.
  /// @param seconds   the time, of any clock that only goes forwards
  /// @param left_out  lines that were not printed since the last one that was
  bool allows(uint64_t seconds, unsigned& left_out) noexcept;

 private:
  std::atomic<uint64_t> second_{~uint64_t{0}};
  std::atomic<unsigned> lines_{0};
  std::atomic<unsigned> left_out_{0};
};

}  // namespace roci

// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Log lines of the host stack: stderr, prefix "roci: ", level from the environment variable ROCI_LOG
// (none, warn, info, debug; default warn).
#pragma once

#include <cstdint>

namespace roci {

/// How much is said. Each level includes the ones before it.
enum class LogLevel : uint8_t { NONE, WARN, INFO, DEBUG };

/// Whether lines of this level are printed.
bool log_enabled(LogLevel wanted) noexcept;

/// Prints one line, made by printf rules, with one write; no newline in `format`. Keeps errno.
void log(LogLevel wanted, const char* format, ...) noexcept __attribute__((format(printf, 2, 3)));

}  // namespace roci

// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// What a failed RTL assertion ($error, $fatal, assert) does in our executables: it throws, so that
// Catch2 and nicsim report file, line and instance instead of the process aborting. Verilator's own
// vl_stop and vl_fatal are left out of the runtime by VL_USER_STOP and VL_USER_FATAL.

#include <verilated.h>

#include <stdexcept>
#include <string>

namespace {
[[noreturn]] void fail(const char* kind, const char* file, int line, const char* hierarchy,
                       const char* message) {
  throw std::runtime_error(std::string{file ? file : "?"} + ":" + std::to_string(line) + ": RTL " +
                           kind + " in " + (hierarchy ? hierarchy : "?") +
                           (message && *message ? std::string{": "} + message : std::string{}));
}
}  // namespace

/// Called for $stop and failed assertions. Always throws std::runtime_error.
void vl_stop(const char* file, int line, const char* hierarchy) {
  fail("assertion or $stop", file, line, hierarchy, nullptr);
}

/// Called for $fatal and errors of the runtime. Always throws std::runtime_error.
void vl_fatal(const char* file, int line, const char* hierarchy, const char* message) {
  fail("fatal", file, line, hierarchy, message);
}

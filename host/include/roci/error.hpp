// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Errors of the control path. The data path throws nothing.
#pragma once

#include <exception>
#include <string>

namespace roci {

/// A control call failed. Carries the errno that verbs promise and a line for the user: which field
/// is wrong and what helps.
class Error : public std::exception {
 public:
  /// @param code  errno value, positive
  /// @param text  one line without a full stop
  Error(int code, std::string text) : code_(code), text_(std::move(text)) {}

  /// The errno value.
  int code() const noexcept { return code_; }
  /// The line.
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  int code_;
  std::string text_;
};

/// Throws Error(code, text) with a text made by printf rules.
[[noreturn]] void fail(int code, const char* format, ...) __attribute__((format(printf, 2, 3)));

/// Text made by printf rules.
std::string format(const char* format, ...) __attribute__((format(printf, 1, 2)));

/// Name of an errno value with its meaning, thread-safe: "Invalid argument".
std::string errno_text(int code);

}  // namespace roci

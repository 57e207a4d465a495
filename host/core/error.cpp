// SPDX-License-Identifier: BSD-2-Clause-Patent
#include <roci/error.hpp>

#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace roci {
namespace {

std::string vformat(const char* format, va_list arguments) {
  char text[1024];
  const int n = vsnprintf(text, sizeof text, format, arguments);
  return n < 0 ? std::string(format) : std::string(text);
}

}  // namespace

void fail(int code, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::string text = vformat(format, arguments);
  va_end(arguments);
  throw Error(code, std::move(text));
}

std::string format(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::string text = vformat(format, arguments);
  va_end(arguments);
  return text;
}

std::string errno_text(int code) {
  char text[128] = "";
  // The GNU variant, which returns the text.
  return strerror_r(code, text, sizeof text);
}

}  // namespace roci

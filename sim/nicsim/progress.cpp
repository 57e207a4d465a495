// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "nicsim/progress.hpp"

#include <unistd.h>

#include <array>
#include <cstdio>

namespace roci::sim {
namespace {

// To the begin of the line, and nothing behind it.
constexpr const char* kErase = "\r\x1b[K";

}  // namespace

Progress::Progress(int fd, Clock::time_point start)
    : fd_(fd), next_(isatty(fd) == 1 ? start + kFirst : Clock::time_point::max()) {}

void Progress::show(Clock::time_point now, uint64_t ns, uint64_t frames) {
  next_ = now + kPause;
  shown_ = true;
  std::array<char, 80> text{};
  constexpr double kNsPerMs = 1e6;
  std::snprintf(text.data(), text.size(), "nicsim: simulated %.3f ms, %llu frames",
                static_cast<double>(ns) / kNsPerMs, static_cast<unsigned long long>(frames));
  put(std::string(kErase) + text.data() + "\r");
}

void Progress::clear() {
  if (shown_) put(kErase);
  shown_ = false;
}

void Progress::put(const std::string& text) const {
  // a terminal that takes nothing loses only this
  [[maybe_unused]] const ssize_t size = ::write(fd_, text.data(), text.size());
}

}  // namespace roci::sim

// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// How far a long run is, in one line of a terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace roci::sim {

/// The line of a run that takes long. Written only to a terminal; the cursor stays at its begin, so
/// that what a program says there replaces it.
class Progress {
 public:
  using Clock = std::chrono::steady_clock;

  /// @param fd     stderr
  /// @param start  of the run; the first line comes `kFirst` later
  Progress(int fd, Clock::time_point start);

  /// Whether it is time for a new line.
  bool due(Clock::time_point now) const { return now >= next_; }
  /// Replaces the line. @param ns  simulated @param frames  on all links
  void show(Clock::time_point now, uint64_t ns, uint64_t frames);
  /// Takes the line away, before anything else is written.
  void clear();

  static constexpr std::chrono::milliseconds kFirst{2000};
  static constexpr std::chrono::milliseconds kPause{500};

 private:
  void put(const std::string& text) const;

  int fd_;
  Clock::time_point next_;  // never if there is no terminal
  bool shown_ = false;
};

}  // namespace roci::sim

// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// How long the host waits for a device.
#pragma once

#include <roci/transport.hpp>

#include <chrono>

namespace roci {

/// One wait with an end. For a device that runs by itself that is a matter of the time of day; of one
/// that only runs while it is waited for, only that time counts: a loaded machine is no late answer.
class Patience {
 public:
  /// Begins to wait, at most about `limit`. `transport` outlives it.
  Patience(Transport& transport, std::chrono::milliseconds limit)
      : transport_(transport), limit_(limit), begin_(Clock::now()) {}

  /// Transport::wait(), counted.
  void wait(unsigned vector, std::chrono::milliseconds time) {
    transport_.wait(vector, time);
    waited_ += time;
  }

  /// Whether the limit is passed.
  bool over() const {
    return transport_.runs_by_itself() ? Clock::now() - begin_ > limit_ : waited_ > limit_;
  }

 private:
  using Clock = std::chrono::steady_clock;

  Transport& transport_;
  const std::chrono::milliseconds limit_;
  const Clock::time_point begin_;
  std::chrono::milliseconds waited_{0};
};

}  // namespace roci

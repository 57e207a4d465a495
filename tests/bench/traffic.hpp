// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// The messages of a load in one direction: posted in lists as room comes, polled, their data checked.
#pragma once

#include "rig.hpp"

#include <cstdint>
#include <vector>

namespace roci::bench {

/// Random bytes into the first `bytes` of a side's memory.
void fill_random(Side& side, size_t bytes, uint64_t seed);

/// One direction of a load. Posting and polling cost no simulated time.
class Traffic {
 public:
  /// Fills the source and clears the sink.
  /// @param near     who posts
  /// @param sink_at  offset of the sink in its side's memory
  /// @throws std::logic_error if the memory is too small
  Traffic(const Load& load, Side& near, Side& far, size_t sink_at, uint64_t seed);

  /// Fills all receive queues, send queues.
  void post_receives();
  void post_sends();
  /// Takes completions and posts what has room. @return whether there were any
  /// @throws std::runtime_error for one that is not as it should be
  bool poll();
  bool done() const { return completed_ == messages() && (!send_ || received_ == messages()); }
  /// Messages in all, and those that are complete at the sender.
  uint64_t messages() const { return each_ * load_.qps; }
  uint64_t completed() const { return completed_; }
  /// Compares every byte. @throws std::runtime_error
  void check_data() const;

 private:
  struct Queue {
    uint64_t posted = 0, completed = 0, receives = 0, received = 0;
  };
  size_t offset(unsigned qp, uint64_t message) const { return (qp * each_ + message) * stride_; }
  void post_receives(unsigned qp);
  void post_sends(unsigned qp);

  Load load_;
  Side& near_;
  Side& far_;
  bool send_, read_;
  uint64_t each_;         // messages of one queue pair, whole lists
  size_t stride_;
  size_t near_at_, far_at_;  // offsets of the first message
  std::vector<Queue> queues_;
  uint64_t completed_ = 0, received_ = 0;
};

}  // namespace roci::bench

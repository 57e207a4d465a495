// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// A source of beats with side fields on a port of their own, both under one valid and ready.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <utility>

#include "harness/dut.hpp"
#include "harness/random.hpp"

namespace roci::test {

/// Feeds the ports `beat_valid_i`, `beat_i`, `side_i` of a model and watches `beat_ready_o`. Beat has a
/// field `last`, at the end of each packet.
template <class Beat, class Side>
class SidedSource : public Agent {
 public:
  /// Binds to the ports of a model, which stay idle until this is attached.
  /// @param salt  of its random pauses
  template <class Model>
  SidedSource(Model& dut, std::uint64_t salt)
      : random_(salt), valid_(dut->beat_valid_i), ready_(dut->beat_ready_o),
        put_([&dut](const Beat& beat, const Side& side) {
          beat.pack(dut->beat_i);
          side.pack(dut->side_i);
        }) {
    valid_ = 0;
  }

  /// Queues one beat.
  void push(const Beat& beat, const Side& side) {
    queue_.emplace_back(beat, side);
    left_ += beat.last;
  }
  /// Probability of a pause of one cycle before a beat; 0 at first.
  void idle(double probability) { idle_ = probability; }
  /// Rests when only this many packets are left, until a smaller number is set; 0 at first.
  void hold_at(std::size_t packets) { hold_at_ = packets; }
  /// True if no beat waits and none may be begun.
  bool rests() const { return !active_ && left_ <= hold_at_; }
  /// Beats not yet taken by the model.
  std::size_t pending() const { return queue_.size(); }
  /// Packets taken to their end so far.
  std::uint64_t whole() const { return whole_; }

  void sample() override {
    if (!active_ || !ready_) return;
    if (queue_.front().first.last) {
      --left_;
      ++whole_;
    }
    queue_.pop_front();
    active_ = false;
  }
  void drive() override {
    const bool held = hold_at_ != 0 && left_ <= hold_at_;
    if (!active_ && !queue_.empty() && !held && !random_.chance(idle_)) {
      active_ = true;
      put_(queue_.front().first, queue_.front().second);
    }
    valid_ = active_;
  }

 private:
  Random random_;
  CData& valid_;
  const CData& ready_;
  std::function<void(const Beat&, const Side&)> put_;
  std::deque<std::pair<Beat, Side>> queue_;
  double idle_ = 0.0;
  std::size_t hold_at_ = 0;
  std::size_t left_ = 0;
  std::uint64_t whole_ = 0;
  bool active_ = false;
};

}  // namespace roci::test

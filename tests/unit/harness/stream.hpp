// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Ends of valid/ready streams for unit tests, and the stream rules as checks.
//
// The rules (docs/style.md): a transfer happens in a cycle with valid and ready; valid never waits
// for ready; once valid, it stays and the payload is stable until the transfer.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/bits.hpp"
#include "harness/dut.hpp"
#include "harness/random.hpp"

namespace roci::test {

/// When a stream end is idle: nothing, random cycles, or random bursts.
class Stall {
 public:
  /// Idle in each cycle with this probability.
  explicit Stall(double probability = 0.0) : idle_(probability) {}
  /// Alternates busy and idle stretches of these mean lengths in cycles (≥ 1): fills and empties
  /// buffers, which independent cycles rarely do.
  static Stall bursts(double mean_busy, double mean_idle) {
    Stall stall;
    stall.to_idle_ = 1.0 / mean_busy;
    stall.to_busy_ = 1.0 / mean_idle;
    return stall;
  }
  /// Random choice among never, rarely, half, mostly, and bursts, with its own random numbers: two
  /// rounds of a test do not stall in the same cycles.
  static Stall any(Random& random) {
    static const Stall kinds[] = {Stall(0.0), Stall(0.1),   Stall(0.5),
                                  Stall(0.9), bursts(4, 4), bursts(40, 40)};
    Stall stall = kinds[random.below(std::size(kinds))];
    stall.salt_ = random();
    return stall;
  }

  /// Salt of the random numbers to use with it.
  std::uint64_t salt() const { return salt_; }

  /// True if this cycle is idle.
  bool next(Random& random) {
    if (to_idle_ > 0.0) {
      if (random.chance(idle_now_ ? to_busy_ : to_idle_)) idle_now_ = !idle_now_;
      return idle_now_;
    }
    return idle_ > 0.0 && random.chance(idle_);
  }

 private:
  double idle_ = 0.0;
  double to_idle_ = 0.0;
  double to_busy_ = 0.0;
  bool idle_now_ = false;
  std::uint64_t salt_ = 0;
};

/// Throws Failure with the stream's name, the cycle count of that stream, and the seed.
[[noreturn]] inline void stream_failure(const std::string& name, std::uint64_t cycle,
                                        const std::string& what) {
  throw Failure(name + ", cycle " + std::to_string(cycle) + ": " + what +
                " (ROCI_SEED=" + std::to_string(base_seed()) + ")");
}

/// Feeds a stream of the model: `valid_i` and payload driven, `ready_o` watched.
///
/// Payload bits are random while not valid, so that logic which looks at them is found.
template <sv::Struct T>
class Source : public Agent {
 public:
  /// Binds to ports, which stay idle until this is attached; `name` is for messages and makes its
  /// random numbers its own.
  template <class Payload>
  Source(std::string name, CData& valid, const CData& ready, Payload& payload)
      : name_(std::move(name)), random_(std::hash<std::string>{}(name_)), valid_(valid),
        ready_(ready), put_([&payload](const T& value) { value.pack(payload); }) {
    valid_ = 0;
  }

  /// Queues one item.
  void push(const T& item) { queue_.push_back(item); }
  /// Idle pattern before each new item.
  void stall(const Stall& stall) {
    stall_ = stall;
    random_ = Random(std::hash<std::string>{}(name_) + stall.salt());
  }
  /// Items not yet taken by the model.
  std::size_t pending() const { return queue_.size(); }
  /// True if the model has taken everything.
  bool empty() const { return queue_.empty(); }
  /// Items taken so far.
  std::uint64_t transfers() const { return transfers_; }
  /// Called at each transfer, before the edge.
  void on_transfer(std::function<void(const T&)> call) { call_ = std::move(call); }
  /// Forgets all items and takes valid away (only around a reset: it breaks the stream rule).
  void clear() {
    queue_.clear();
    active_ = false;
    valid_ = 0;
  }

  void sample() override {
    if (active_ && ready_) {
      ++transfers_;
      const T item = queue_.front();
      queue_.pop_front();
      active_ = false;
      if (call_) call_(item);
    }
  }
  void drive() override {
    if (!active_ && !queue_.empty() && !stall_.next(random_)) {
      active_ = true;
      put_(queue_.front());
    }
    valid_ = active_;
    if (!active_) put_(random_payload<T>(random_));
  }

 private:
  std::string name_;
  Random random_;
  Stall stall_;
  CData& valid_;
  const CData& ready_;
  std::function<void(const T&)> put_;
  std::function<void(const T&)> call_;
  std::deque<T> queue_;
  bool active_ = false;
  std::uint64_t transfers_ = 0;
};

/// Watches a stream without driving it: checks the stream rules and calls back at each transfer.
template <sv::Struct T>
class Monitor : public Agent {
 public:
  /// Binds to ports, outputs of the model or not.
  template <class Payload>
  Monitor(std::string name, const CData& valid, const CData& ready, const Payload& payload)
      : name_(std::move(name)), valid_(valid), ready_(&ready),
        take_([&payload] { return T::unpack(payload); }) {}
  /// A stream without ready: every valid cycle is a transfer.
  template <class Payload>
  Monitor(std::string name, const CData& valid, const Payload& payload)
      : name_(std::move(name)), valid_(valid), take_([&payload] { return T::unpack(payload); }) {}

  /// Called at each transfer, before the edge.
  void on_transfer(std::function<void(const T&)> call) { call_ = std::move(call); }
  /// Transfers so far.
  std::uint64_t transfers() const { return transfers_; }
  /// Cycles watched so far.
  std::uint64_t cycle() const { return cycle_; }
  /// Text in front of messages.
  const std::string& name() const { return name_; }
  /// Forgets the waiting item (around a reset).
  void clear() { waiting_.reset(); }

  void sample() override {
    ++cycle_;
    if (!valid_) {
      if (waiting_) stream_failure(name_, cycle_, "valid went away before the transfer of " +
                                                      waiting_->to_string());
      return;
    }
    const T item = take_();
    if (waiting_ && !(item == *waiting_)) {
      stream_failure(name_, cycle_, "payload changed while stalled\n  from " +
                                        waiting_->to_string() + "\n  to   " + item.to_string());
    }
    if (ready_ && !*ready_) {
      waiting_ = item;
      return;
    }
    waiting_.reset();
    ++transfers_;
    if (call_) call_(item);
  }
  void drive() override {}

 private:
  std::string name_;
  const CData& valid_;
  const CData* ready_ = nullptr;
  std::function<T()> take_;
  std::function<void(const T&)> call_;
  std::optional<T> waiting_;
  std::uint64_t cycle_ = 0;
  std::uint64_t transfers_ = 0;
};

/// Takes a stream of the model: `valid_o` and payload watched, `ready_i` driven.
///
/// Either `expect` each item in order (anything else fails at once), or `collect()` and read
/// `received()`.
template <sv::Struct T>
class Sink : public Agent {
 public:
  /// Binds to ports; name as for Source.
  template <class Payload>
  Sink(std::string name, const CData& valid, CData& ready, const Payload& payload)
      : monitor_(name, valid, ready, payload), random_(std::hash<std::string>{}(name)),
        ready_(ready) {
    ready_ = 0;
    monitor_.on_transfer([this](const T& item) { take(item); });
  }
  Sink(const Sink&) = delete;  // the callback holds `this`
  Sink& operator=(const Sink&) = delete;

  /// The next item must be this one.
  void expect(const T& item) { expected_.push_back(item); }
  /// No expectations from now on: items are kept in received().
  void collect() { collecting_ = true; }
  /// Items in collect mode; the test may erase them.
  std::vector<T>& received() { return received_; }
  /// Idle pattern of ready.
  void stall(const Stall& stall) {
    stall_ = stall;
    random_ = Random(std::hash<std::string>{}(monitor_.name()) + stall.salt());
  }
  /// Expected items that have not come yet.
  std::size_t pending() const { return expected_.size(); }
  /// True if everything expected has come.
  bool done() const { return expected_.empty(); }
  /// Transfers so far.
  std::uint64_t transfers() const { return monitor_.transfers(); }
  /// Called at each transfer after the check.
  void on_transfer(std::function<void(const T&)> call) { call_ = std::move(call); }
  /// Forgets expectations and what was seen waiting (around a reset).
  void clear() {
    expected_.clear();
    received_.clear();
    monitor_.clear();
  }

  void sample() override { monitor_.sample(); }
  void drive() override { ready_ = !stall_.next(random_); }

 private:
  void take(const T& item) {
    if (collecting_) {
      received_.push_back(item);
    } else {
      if (expected_.empty()) {
        stream_failure(monitor_.name(), monitor_.cycle(), "unexpected item " + item.to_string());
      }
      if (!(item == expected_.front())) {
        stream_failure(monitor_.name(), monitor_.cycle(),
                       "item " + std::to_string(monitor_.transfers()) + " differs\n  expected " +
                           expected_.front().to_string() + "\n  got      " + item.to_string());
      }
      expected_.pop_front();
    }
    if (call_) call_(item);
  }

  Monitor<T> monitor_;
  Random random_;
  Stall stall_;
  CData& ready_;
  std::function<void(const T&)> call_;
  std::deque<T> expected_;
  std::vector<T> received_;
  bool collecting_ = false;
};

}  // namespace roci::test

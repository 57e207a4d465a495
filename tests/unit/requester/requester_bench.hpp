// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Small parts that the tests of requester modules share: always-accepted broadcasts, the context
// bus, PSN arithmetic.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <utility>

#include "harness/harness.hpp"

namespace roci::test {

/// a + b modulo 2^24.
inline std::uint32_t psn_add(std::uint32_t a, std::int64_t b) {
  return static_cast<std::uint32_t>((a + b) & 0xffffff);
}
/// Signed distance a - b of PSNs (wire.md 2.1).
inline std::int32_t psn_diff(std::uint32_t a, std::uint32_t b) {
  const auto d = static_cast<std::int32_t>((a - b) & 0xffffff);
  return d < 0x800000 ? d : d - 0x1000000;
}

/// Sets a port of up to 64 bits.
template <class Port>
void set(Port& port, std::uint64_t value) {
  port = static_cast<Port>(value);
}

/// Drives a broadcast: a struct with a member `valid`, always accepted. At most one item per cycle;
/// the other bits are random while not valid.
template <sv::Struct T>
class Broadcast : public Agent {
 public:
  /// Binds to an input port of the model.
  template <class Port>
  Broadcast(std::string name, Port& port)
      : random_(std::hash<std::string>{}(name)), put_([&port](const T& v) { v.pack(port); }) {}

  /// Queues one item.
  void push(T item) {
    item.valid = true;
    queue_.push_back(item);
  }
  /// Idle pattern before each item.
  void stall(const Stall& stall) { stall_ = stall; }
  /// True if everything was driven and seen.
  bool empty() const { return queue_.empty() && !active_; }
  /// Called when the model has seen the item, before the edge.
  void on_transfer(std::function<void(const T&)> call) { call_ = std::move(call); }

  void sample() override {
    if (active_ && call_) call_(last_);
    active_ = false;
  }
  void drive() override {
    if (!queue_.empty() && !stall_.next(random_)) {
      last_ = queue_.front();
      queue_.pop_front();
      active_ = true;
      put_(last_);
    } else {
      T idle = random_payload<T>(random_);
      idle.valid = false;
      put_(idle);
    }
  }

 private:
  Random random_;
  Stall stall_;
  std::function<void(const T&)> put_;
  std::function<void(const T&)> call_;
  std::deque<T> queue_;
  bool active_ = false;
  T last_{};
};

/// Watches a broadcast of the model.
template <sv::Struct T>
class Listener : public Agent {
 public:
  /// Binds to an output port; `call` gets each valid item, before the edge.
  template <class Port>
  Listener(const Port& port, std::function<void(const T&)> call)
      : get_([&port] { return T::unpack(port); }), call_(std::move(call)) {}
  void sample() override {
    const T item = get_();
    if (item.valid) call_(item);
  }
  void drive() override {}

 private:
  std::function<T()> get_;
  std::function<void(const T&)> call_;
};

}  // namespace roci::test

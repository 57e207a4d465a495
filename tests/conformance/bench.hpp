// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// What a scenario is played on: the device, the peer, random numbers; and what it finds.
#pragma once

#include "conformance/device.hpp"
#include "conformance/peer.hpp"
#include "conformance/text.hpp"

#include <cstdint>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace roci::conformance {

/// The rest of a scenario makes no sense: what had to be there is not.
struct Stopped : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The bench of one scenario.
class Bench {
 public:
  /// @param device  fresh for this scenario
  /// @param wire    its wire
  Bench(Device& device, FramePort& wire, uint64_t seed)
      : device(device), peer(wire, device.mac(), device.gid()), engine_(seed) {}

  Device& device;
  Peer peer;

  /// Goes on whether it holds or not. @param what  has to hold, for the verdict
  bool expect(bool holds, const std::string& what) {
    if (!holds) failures_.push_back(what);
    return holds;
  }
  template <class A, class B>
  bool expect_equal(const A& seen, const B& expected, const std::string& what) {
    return expect(seen == static_cast<A>(expected),
                  say(what, ": ", +seen, " instead of ", +static_cast<A>(expected)));
  }
  /// As expect(), but ends the scenario.
  void require(bool holds, const std::string& what) {
    if (!holds) throw Stopped(what);
  }
  /// Adds to the sentence of what was seen.
  void saw(const std::string& what) { seen_ += (seen_.empty() ? "" : "; ") + what; }

  /// @return how much a counter moved since `before`; nothing if the device has no such counter
  std::optional<uint64_t> moved(const std::string& counter, std::optional<uint64_t> before) {
    const auto now = device.counter(counter);
    if (!now || !before) return std::nullopt;
    return *now - *before;
  }

  uint64_t random() { return engine_(); }
  uint64_t random(uint64_t low, uint64_t high) {
    return std::uniform_int_distribution<uint64_t>(low, high)(engine_);
  }
  Bytes random_bytes(size_t count) {
    Bytes bytes(count);
    for (uint8_t& b : bytes) b = static_cast<uint8_t>(engine_());
    return bytes;
  }

  const std::vector<std::string>& failures() const { return failures_; }
  const std::string& seen() const { return seen_; }

 private:
  std::mt19937_64 engine_;
  std::vector<std::string> failures_;
  std::string seen_;
};

}  // namespace roci::conformance

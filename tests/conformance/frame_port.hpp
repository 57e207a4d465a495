// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// The tester's end of the link: all that a scripted peer needs of the wire. Whoever wants to test
// another device implements this for its frame source (README.md).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace roci::conformance {

/// Nanoseconds of the device's world: simulated time, or that of a clock.
using Time = uint64_t;

inline constexpr Time kMicrosecond = 1000;
inline constexpr Time kMillisecond = 1000 * kMicrosecond;
inline constexpr Time kSecond = 1000 * kMillisecond;

/// A frame from the device.
struct ReceivedFrame {
  Time time = 0;               ///< when its last bit was here
  std::vector<uint8_t> bytes;  ///< without FCS
  bool bad_fcs = false;
};

/// One end of an Ethernet link, the device under test is at the other. Used by one thread.
class FramePort {
 public:
  virtual ~FramePort() = default;

  /// Queues a frame; it goes as soon as the wire is free.
  /// @param frame    Ethernet frame without FCS, well-formed or not
  /// @param bad_fcs  with a wrong FCS
  virtual void send(std::span<const uint8_t> frame, bool bad_fcs = false) = 0;

  /// The next frame that has come, in order; never waits.
  virtual std::optional<ReceivedFrame> receive() = 0;

  virtual Time now() const = 0;

  /// Lets time pass: up to `until`, or less. It ends at the latest when a frame comes (at once if one
  /// waits to be received), and often enough besides that a caller who polls for completions sees them
  /// soon.
  virtual void advance(Time until) = 0;

  /// What the wire itself takes one way, to be taken off from measured times; 0 if it is not known.
  virtual Time wire_delay() const { return 0; }
};

}  // namespace roci::conformance

// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// What crosses the NIC's Ethernet ports, and how fast.
#pragma once

#include <array>
#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <vector>

namespace roci::sim {

/// One AXI-Stream beat of an Ethernet frame without FCS. The first `bytes` bytes are valid (a keep
/// mask without holes); every beat but the last is full.
struct Beat {
  std::array<uint8_t, 64> data{};
  uint8_t bytes = 0;
  bool last = false;
  bool bad = false;  ///< with `last`: frame aborted by its sender, or bad FCS at the receiver
  bool operator==(const Beat&) const = default;
};

/// Bytes on the wire beside the frame itself (IEEE 802.3): preamble before, FCS and gap behind.
inline constexpr unsigned kPreambleBytes = 8;
inline constexpr unsigned kFcsBytes = 4;
inline constexpr unsigned kGapBytes = 12;
inline constexpr unsigned kWireOverhead = kPreambleBytes + kFcsBytes + kGapBytes;

/// Rate of a link as a fraction, so that averages are exact: `bytes` per `cycles` core cycles.
struct Rate {
  uint32_t bytes = 50;
  uint32_t cycles = 1;

  /// Nearest fraction to a number of bytes per cycle, in steps of 1/1000.
  /// @throws std::invalid_argument below 0.001 or above 4096
  static Rate from_double(double bytes_per_cycle) {
    if (!(bytes_per_cycle >= 0.001 && bytes_per_cycle <= 4096)) {
      throw std::invalid_argument("link rate must be 0.001 … 4096 bytes per cycle");
    }
    const auto thousandths = static_cast<uint32_t>(bytes_per_cycle * 1000 + 0.5);
    const uint32_t divisor = std::gcd(thousandths, 1000u);
    return {thousandths / divisor, 1000 / divisor};
  }
};

}  // namespace roci::sim

// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Meaning of the AETH syndrome and the coded times of RC (wire.md §2.6–2.8), for testers that play
// the peer of a NIC.
#pragma once

#include <cstdint>
#include <optional>

namespace roci::wirecodec {

/// Kind of an acknowledge, from syndrome bits 6:5. Bit 7 set or kind 10 is reserved: ignore.
enum class AethKind : uint8_t { ack, rnr_nak, nak, reserved };

/// Syndromes a tester sends or expects.
namespace syndrome {
inline constexpr uint8_t nak_sequence = 0x60;  ///< NAK, PSN sequence error
inline constexpr uint8_t nak_invalid_request = 0x61;
inline constexpr uint8_t nak_remote_access = 0x62;
inline constexpr uint8_t nak_remote_operational = 0x63;
/// RNR NAK with a 5-bit timer code.
constexpr uint8_t rnr_nak(uint8_t timer_code) {
  return static_cast<uint8_t>(0x20 | (timer_code & 0x1f));
}
}  // namespace syndrome

/// Decodes the kind of a syndrome byte.
AethKind aeth_kind(uint8_t syndrome);

/// Credit count of an ACK syndrome's low five bits; nothing for code 31 (no flow control).
std::optional<uint32_t> credits(uint8_t credit_code);

/// RNR wait of a 5-bit timer code, in ns. Code 0 is the longest (655.36 ms).
uint64_t rnr_timer_ns(uint8_t timer_code);

/// Local ACK timeout of a 5-bit code, in ns: 4.096 µs · 2^n; nothing for 0 (no timer).
std::optional<uint64_t> ack_timeout_ns(uint8_t timeout_code);

}  // namespace roci::wirecodec

// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// EUI-64 of a MAC address, and the byte orders in which contexts want addresses.
#pragma once

#include <stdint.h>

namespace roci::fw {

/// Reverses the bytes.
constexpr uint64_t swap64(uint64_t value) {
  const auto low = __builtin_bswap32(static_cast<uint32_t>(value));
  const auto high = __builtin_bswap32(static_cast<uint32_t>(value >> 32));
  return uint64_t{low} << 32 | high;
}

/// EUI-64 of a MAC address (RFC 4291 appendix A): universal/local bit inverted, ff:fe in the middle.
/// Argument and result have their first byte in bits 7:0.
constexpr uint64_t eui64(uint64_t mac) {
  return ((mac & 0xffffff) ^ 0x02) | uint64_t{0xfeff} << 24 | (mac >> 24 & 0xffffff) << 40;
}

}  // namespace roci::fw

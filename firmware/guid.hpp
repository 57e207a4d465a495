// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// EUI-64 of a MAC address, and the byte orders in which contexts want addresses.
#pragma once

#include <stdint.h>

#include "config.hpp"

namespace roci::fw {

/// Reverses the bytes. The core has no instruction for it: where there is room, no call either.
constexpr uint32_t swap32(uint32_t v) {
  if constexpr (!IS_WIDE) return __builtin_bswap32(v);
  return v >> 24 | (v >> 8 & 0xff00) | (v & 0xff00) << 8 | v << 24;
}
constexpr uint64_t swap64(uint64_t value) {
  return uint64_t{swap32(static_cast<uint32_t>(value))} << 32 |
         swap32(static_cast<uint32_t>(value >> 32));
}

/// EUI-64 of a MAC address (RFC 4291 appendix A): universal/local bit inverted, ff:fe in the middle.
/// Argument and result have their first byte in bits 7:0.
constexpr uint64_t eui64(uint64_t mac) {
  return ((mac & 0xffffff) ^ 0x02) | uint64_t{0xfeff} << 24 | (mac >> 24 & 0xffffff) << 40;
}

}  // namespace roci::fw

// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "wire/aeth.hpp"

namespace roci::wirecodec {

AethKind aeth_kind(uint8_t syndrome) {
  switch (syndrome >> 5) {
    case 0:
      return AethKind::ack;
    case 1:
      return AethKind::rnr_nak;
    case 3:
      return AethKind::nak;
    default:
      return AethKind::reserved;
  }
}

std::optional<uint32_t> credits(uint8_t credit_code) {
  static constexpr uint16_t kCredits[31] = {
      0,   1,   2,   3,   4,    6,    8,    12,   16,   24,   32,   48,    64,    96,    128,  192,
      256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768};
  const uint8_t code = credit_code & 0x1f;
  if (code == 31) return std::nullopt;
  return kCredits[code];
}

uint64_t rnr_timer_ns(uint8_t timer_code) {
  // Hundredths of a millisecond, as the table of wire.md §2.7 gives them.
  static constexpr uint32_t kCentiMs[32] = {65536, 1,    2,    3,     4,     6,     8,     12,
                                            16,    24,   32,   48,    64,    96,    128,   192,
                                            256,   384,  512,  768,   1024,  1536,  2048,  3072,
                                            4096,  6144, 8192, 12288, 16384, 24576, 32768, 49152};
  return uint64_t{kCentiMs[timer_code & 0x1f]} * 10'000;
}

std::optional<uint64_t> ack_timeout_ns(uint8_t timeout_code) {
  if ((timeout_code & 0x1f) == 0) return std::nullopt;
  return uint64_t{4096} << (timeout_code & 0x1f);
}

}  // namespace roci::wirecodec

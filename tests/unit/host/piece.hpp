// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Random DMA requests of unit tests.
#pragma once

#include <cstdint>

#include "harness/random.hpp"

namespace roci::test {

/// A random address and length (1…max_length) of a request that stays within 4 KB.
struct Piece {
  std::uint64_t addr;
  unsigned length;
};

/// Random request: lengths mix tiny, bus-word and full ones; addresses have any alignment.
inline Piece random_piece(Random& random, unsigned bus_bytes, unsigned max_length = 4096) {
  Piece piece{random() & 0x0000'00ff'ffff'ffffu, 0};
  switch (random.below(6)) {
    case 0: piece.length = static_cast<unsigned>(random.between(1, 8)); break;
    case 1: piece.length = bus_bytes; break;
    case 2: piece.length = static_cast<unsigned>(random.between(1, 2 * bus_bytes)); break;
    case 3: piece.length = static_cast<unsigned>(random.between(1, 600)); break;
    case 4: piece.length = 64; break;
    default: piece.length = static_cast<unsigned>(random.between(1, 4096)); break;
  }
  if (random.chance(0.3)) piece.addr &= ~std::uint64_t{63};
  if (random.chance(0.05)) piece = {piece.addr & ~std::uint64_t{4095}, 4096};
  if (piece.length > max_length) piece.length = max_length;
  const unsigned offset = piece.addr % 4096;
  if (offset + piece.length > 4096) piece.addr -= offset + piece.length - 4096;
  return piece;
}

}  // namespace roci::test

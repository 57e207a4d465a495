// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Randomness without state: every draw is a hash of a seed, a stream and a counter. So what happens
// to frame 17 or in cycle 1000 does not depend on how many draws came before it: skipping idle
// time, stepping NICs in another order or in several threads gives the same run bit for bit.
#pragma once

#include <cstdint>

namespace roci::sim {

/// Finalizer of SplitMix64: a bijection with full avalanche.
constexpr uint64_t mix64(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// 64 random bits that belong to (seed, stream, counter) and to nothing else.
/// @param seed     of the run
/// @param stream   who draws: direction, channel, kind of decision
/// @param counter  what for: index of a frame, burst, or cycle
constexpr uint64_t draw(uint64_t seed, uint64_t stream, uint64_t counter) {
  return mix64(mix64(mix64(seed) ^ stream) ^ counter);
}

/// True with the given probability (0 = never, 1 = always).
constexpr bool chance(double probability, uint64_t bits) {
  return static_cast<double>(bits >> 11) * 0x1p-53 < probability;
}

/// Maps random bits to 0 … bound-1; 0 if bound is 0.
constexpr uint64_t below(uint64_t bound, uint64_t bits) { return bound == 0 ? 0 : bits % bound; }

}  // namespace roci::sim

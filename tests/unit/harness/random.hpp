// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Seeds and random numbers of the unit tests.
//
// Does: one base seed per process (ROCI_SEED, else random), printed once; a small generator whose
// results are the same on every machine. Does not: use <random>'s distributions (their results
// differ between libraries, and a printed seed must replay anywhere).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace roci::test {

/// A failed check of the harness: stream rule broken, wrong data, timeout. Catch2 reports its text.
class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The base seed of this process. ROCI_SEED=N replays a run; otherwise it is random. Printed on
/// first use, so that every log of a test has it.
inline std::uint64_t base_seed() {
  static const std::uint64_t seed = [] {
    std::uint64_t value = std::random_device{}();
    if (const char* text = std::getenv("ROCI_SEED"); text && *text) {
      char* end = nullptr;
      value = std::strtoull(text, &end, 0);
      if (*end != '\0') {
        throw std::invalid_argument("ROCI_SEED is not a number: " + std::string(text));
      }
    }
    std::fprintf(stderr, "seed %llu (replay with ROCI_SEED=%llu)\n",
                 static_cast<unsigned long long>(value), static_cast<unsigned long long>(value));
    return value;
  }();
  return seed;
}

/// `count` times ROCI_SCALE (default 1): length of random tests; a nightly run can be longer.
inline std::size_t scaled(std::size_t count) {
  static const double factor = [] {
    const char* text = std::getenv("ROCI_SCALE");
    return text && *text ? std::strtod(text, nullptr) : 1.0;
  }();
  return std::max<std::size_t>(1, static_cast<std::size_t>(static_cast<double>(count) * factor));
}

/// Random numbers (splitmix64). `salt` separates independent generators of one test; the same base
/// seed and salt give the same numbers whatever other tests ran before.
class Random {
 public:
  using result_type = std::uint64_t;

  explicit Random(std::uint64_t salt = 0) : state_(base_seed() * 0x9e3779b97f4a7c15u + salt) {
    (*this)();
  }

  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return ~result_type{0}; }

  /// 64 random bits.
  result_type operator()() {
    state_ += 0x9e3779b97f4a7c15u;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30u)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27u)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31u);
  }

  /// Uniform in 0 … bound-1; `bound` must not be 0.
  std::uint64_t below(std::uint64_t bound) { return (*this)() % bound; }

  /// Uniform in low … high, both included.
  std::uint64_t between(std::uint64_t low, std::uint64_t high) {
    return low + (high - low == max() ? (*this)() : below(high - low + 1));
  }

  /// True with this probability.
  bool chance(double probability) {
    return static_cast<double>((*this)() >> 11u) * 0x1.0p-53 < probability;
  }

  /// `bits` (0…64) random bits.
  std::uint64_t bits(unsigned bits) { return bits == 0 ? 0 : (*this)() >> (64u - bits); }

  /// Random bytes.
  std::vector<std::uint8_t> bytes(std::size_t count) {
    std::vector<std::uint8_t> out(count);
    for (auto& byte : out) byte = static_cast<std::uint8_t>((*this)() >> 56u);
    return out;
  }

  /// One element of a non-empty container.
  template <class Container>
  const auto& pick(const Container& from) {
    return from[below(from.size())];
  }

 private:
  std::uint64_t state_;
};

}  // namespace roci::test

// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Free object numbers, and regions of the on-chip pools.
#pragma once

#include <stdint.h>

namespace roci::fw {

/// Number of the lowest bit that is set. `bits` is not 0. (The core has no instruction for it, and its
/// multiplier is faster than the library's search.)
inline unsigned lowest(uint32_t bits) {
  static constexpr uint8_t positions[32] = {
      0,  1,  28, 2,  29, 14, 24, 3, 30, 22, 20, 15, 25, 17, 4,  8,
      31, 27, 13, 23, 21, 19, 16, 7, 26, 12, 18, 6,  11, 5,  10, 9};
  return positions[(bits & (~bits + 1)) * 0x077cb531u >> 27];
}

/// Numbers 0 … N-1, each free or taken. Numbers are reused as late as possible, so that something
/// stale (a key, a doorbell) meets nothing for long. O(1): words of 32 bits and a summary of them.
/// All bits zero = all free, so a pool needs next to no start.
template <unsigned N>
class IndexPool {
  static constexpr unsigned WORDS = (N + 31) / 32;
  static constexpr unsigned SUMMARY = (WORDS + 31) / 32;
  // Bits of the last word (of `count` bits in all) that stand for nothing.
  static constexpr uint32_t tail(unsigned count) {
    return count % 32 == 0 ? 0 : ~uint32_t{0} << (count % 32);
  }

 public:
  /// For a pool that is all zero: all numbers from `first` (< 32) on are free.
  void init(unsigned first = 0) {
    taken_[WORDS - 1] = tail(N);
    full_[SUMMARY - 1] = tail(WORDS);
    taken_[0] |= (uint32_t{1} << first) - 1;
  }

  /// Takes a free number, or returns N if there is none.
  unsigned take() {
    unsigned word = next_ / 32;
    uint32_t bits = ~taken_[word] & (~uint32_t{0} << (next_ % 32));
    if (bits == 0) {
      // words after this one, then from the start, this one included
      unsigned s = (word + 1) / 32;
      uint32_t words = s < SUMMARY ? ~full_[s] & (~uint32_t{0} << ((word + 1) % 32)) : 0;
      for (unsigned n = 0; words == 0; ++n) {
        if (n > SUMMARY) return N;
        s = s + 1 < SUMMARY ? s + 1 : 0;
        words = ~full_[s];
      }
      word = 32 * s + lowest(words);
      bits = ~taken_[word];
    }
    const unsigned n = 32 * word + lowest(bits);
    taken_[word] |= uint32_t{1} << (n % 32);
    if (taken_[word] == ~uint32_t{0}) full_[word / 32] |= uint32_t{1} << (word % 32);
    next_ = static_cast<uint16_t>(n + 1 < N ? n + 1 : 0);
    return n;
  }

  /// Whether the 32 numbers from n (a multiple of 32) on are all free.
  bool all_free(unsigned n) const { return taken_[n / 32] == 0; }

  /// Gives a taken number back.
  void give(unsigned n) {
    taken_[n / 32] &= ~(uint32_t{1} << (n % 32));
    full_[n / 32 / 32] &= ~(uint32_t{1} << (n / 32 % 32));
  }

 private:
  uint32_t taken_[WORDS];
  uint32_t full_[SUMMARY];        // bit w: taken_[w] is all ones
  uint16_t next_;                 // where the search begins
};

/// A region of a pool: 2^log2 units from `base` on, a multiple of its size.
struct Region {
  uint16_t base;
  uint8_t log2;
};

/// A pool of units that is cut into regions of a power of two, each aligned to its size. The first
/// OWNERS * 2^STATIC_LOG2 units belong to owners by their number, so that no owner can be left
/// without; the rest is granted in regions of MIN_LOG2 … MAX_LOG2, lowest place first. A region lies
/// within one word of 32 blocks (of the smallest size), so to find or to give back is a few shifts.
/// KEEPS: units of what is granted that are kept for needs, whoever wants more before.
template <unsigned UNITS, unsigned OWNERS, unsigned STATIC_LOG2, unsigned MAX_LOG2,
          unsigned KEEPS = 0>
class RegionPool {
  static constexpr unsigned MIN_LOG2 = STATIC_LOG2 + 1;
  static constexpr unsigned START = OWNERS << STATIC_LOG2;
  static constexpr unsigned GRANTED = UNITS - START;
  static constexpr unsigned ORDERS = MAX_LOG2 - MIN_LOG2 + 1;
  static constexpr unsigned BLOCKS = GRANTED >> MIN_LOG2;
  static constexpr unsigned WORDS = BLOCKS == 0 ? 1 : (BLOCKS + 31) / 32;
  static_assert(START <= UNITS, "the static regions do not fit");
  static_assert(GRANTED % (1u << MAX_LOG2) == 0 && START % (1u << MAX_LOG2) == 0,
                "whole regions of the largest size");
  static_assert(ORDERS <= 6 && WORDS <= 32);
  // The blocks of a region at the lowest place.
  static constexpr uint32_t blocks(unsigned order) { return ~uint32_t{0} >> (32 - (1u << order)); }

 public:
  /// What all owners together can have at most: who got a largest region leaves his own unused.
  static constexpr unsigned MOST_TOGETHER =
      GRANTED + ((OWNERS - (GRANTED >> MAX_LOG2)) << STATIC_LOG2);
  static constexpr unsigned LARGEST_LOG2 = GRANTED == 0 ? STATIC_LOG2 : MAX_LOG2;

  /// For a pool that is all zero: everything is free.
  void init() {
    if (BLOCKS % 32 != 0) taken_[WORDS - 1] = ~uint32_t{0} << (BLOCKS % 32);
    for (uint32_t& words : may_) words = ~uint32_t{0} >> (32 - WORDS);
    units_free_ = GRANTED;
    grants_ = 0;
  }

  /// The owner's own region.
  static Region owned(unsigned owner) {
    return {static_cast<uint16_t>(owner << STATIC_LOG2), STATIC_LOG2};
  }

  /// A region of at least 2^need_log2 units for this owner and, if the pool is not short, up to
  /// 2^want_log2. Beyond his need nobody gets more than an eighth of what is free, nor more than
  /// 1/(12 + 2.5 n) of the pool if n have got some before: the first is fast, and the 64th still gets
  /// a usable part. If the need cannot be met the answer is the owner's own, smaller one.
  // One function that takes `this` (noipa, of which clang-tidy knows nothing): its addresses are short.
#ifndef __clang__
  [[gnu::noipa]]
#endif
  Region grant(unsigned owner, unsigned need_log2, unsigned want_log2) {
    unsigned log2 = want_log2 < MAX_LOG2 ? want_log2 : MAX_LOG2;
    if (GRANTED != 0 && need_log2 <= MAX_LOG2) {
      const unsigned least = need_log2 < MIN_LOG2 ? MIN_LOG2 : need_log2;
      uint32_t most = units_free_ >> 3;
      if (KEEPS != 0 && units_free_ < most + KEEPS) most = units_free_ < KEEPS ? 0 : units_free_ - KEEPS;
      uint32_t size = uint32_t{1} << log2;
      uint32_t shares = (24 + 5 * grants_) << log2;
      const auto too_much = [&] { return size > most || shares > 2 * GRANTED; };
      for (; log2 > least && too_much(); --log2) {
        size >>= 1;
        shares >>= 1;
      }
      if (log2 < need_log2) log2 = need_log2;
      // One that is wanted, not needed, has to be within these bounds, too.
      if (log2 == least && log2 > need_log2 && too_much()) return owned(owner);
      for (; log2 >= least; --log2) {
        const Region region = cut(log2);
        if (region.log2 != 0) return region;
      }
    }
    return owned(owner);
  }

  /// Gives a region back; the owner's own one is nobody else's and stays.
  void give(Region region) {
    if (region.base < START) return;
    const unsigned n = static_cast<unsigned>(region.base - START) >> MIN_LOG2;
    taken_[n / 32] &= ~(blocks(region.log2 - MIN_LOG2) << (n % 32));
    const uint32_t word = uint32_t{1} << (n / 32);
    for (uint32_t& words : may_) words |= word;
    units_free_ += 1u << region.log2;
    --grants_;
  }

  /// Units that nobody has (of those that are granted).
  unsigned units_free() const { return units_free_; }

 private:
  // A region of this size, or one with log2 = 0.
  Region cut(unsigned log2) {
    static constexpr uint32_t aligned[6] = {0xffffffff, 0x55555555, 0x11111111,
                                            0x01010101, 0x00010001, 0x00000001};
    const unsigned order = log2 - MIN_LOG2;
    for (uint32_t& words = may_[order]; words != 0; words &= words - 1) {
      const unsigned word = lowest(words);
      // Bit n: blocks n … n + 2^order - 1 are free.
      uint32_t free = ~taken_[word];
      if (order >= 1) free &= free >> 1;
      if (order >= 2) free &= free >> 2;
      if (order >= 3) free &= free >> 4;
      if (order >= 4) free &= free >> 8;
      if (order >= 5) free &= free >> 16;
      free &= aligned[order];
      if (free == 0) continue;
      const unsigned n = lowest(free);
      if ((free & (free - 1)) == 0) words &= words - 1;        // that was the last one
      taken_[word] |= blocks(order) << n;
      units_free_ -= 1u << log2;
      ++grants_;
      return {static_cast<uint16_t>(START + ((32 * word + n) << MIN_LOG2)),
              static_cast<uint8_t>(log2)};
    }
    return {};
  }

  uint32_t taken_[WORDS];
  uint32_t may_[ORDERS];          // bit w: there may be a free region of this order in word w
  uint32_t units_free_;
  uint32_t grants_;
};

}  // namespace roci::fw

// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Free object numbers, and regions of the on-chip pools.
#pragma once

#include <stdint.h>

namespace roci::fw {

/// Numbers 0 … N-1, each free or taken. Numbers are reused as late as possible, so that something
/// stale (a key, a doorbell) meets nothing for long. O(1): words of 32 bits and a summary of them.
template <unsigned N>
class IndexPool {
  static constexpr unsigned WORDS = (N + 31) / 32;
  static constexpr unsigned SUMMARY = (WORDS + 31) / 32;

 public:
  /// All numbers from `first` on are free.
  void init(unsigned first = 0) {
    for (auto& word : free_) word = 0;
    for (auto& word : summary_) word = 0;
    next_ = 0;
    for (unsigned n = first; n < N; ++n) {
      if (n % 32 == 0 && n + 32 <= N) {
        free_[n / 32] = ~uint32_t{0};
        summary_[n / 32 / 32] |= uint32_t{1} << (n / 32 % 32);
        n += 31;
      } else {
        give(n);
      }
    }
  }

  /// Takes a free number, or returns N if there is none.
  unsigned take() {
    unsigned word = next_ / 32;
    uint32_t bits = free_[word] & (~uint32_t{0} << (next_ % 32));
    if (bits == 0) {
      // words after this one, then from the start, this one included
      unsigned s = (word + 1) / 32;
      uint32_t words = s < SUMMARY ? summary_[s] & (~uint32_t{0} << ((word + 1) % 32)) : 0;
      for (unsigned n = 0; words == 0; ++n) {
        if (n > SUMMARY) return N;
        s = s + 1 < SUMMARY ? s + 1 : 0;
        words = summary_[s];
      }
      word = 32 * s + static_cast<unsigned>(__builtin_ctz(words));
      bits = free_[word];
    }
    const unsigned n = 32 * word + static_cast<unsigned>(__builtin_ctz(bits));
    free_[word] &= ~(uint32_t{1} << (n % 32));
    if (free_[word] == 0) summary_[word / 32] &= ~(uint32_t{1} << (word % 32));
    next_ = static_cast<uint16_t>(n + 1 < N ? n + 1 : 0);
    return n;
  }

  /// Whether the 32 numbers from n (a multiple of 32) on are all free.
  bool all_free(unsigned n) const { return free_[n / 32] == ~uint32_t{0}; }

  /// Gives a taken number back.
  void give(unsigned n) {
    free_[n / 32] |= uint32_t{1} << (n % 32);
    summary_[n / 32 / 32] |= uint32_t{1} << (n / 32 % 32);
  }

 private:
  uint32_t free_[WORDS];
  uint32_t summary_[SUMMARY];     // bit w: free_[w] is not zero
  uint16_t next_;                 // where the search begins
};

/// A region of a pool: 2^log2 units from `base` on, a multiple of its size.
struct Region {
  uint16_t base;
  uint8_t log2;
};

/// A pool of units that is cut into regions of a power of two (buddy allocation). The first
/// OWNERS * 2^STATIC_LOG2 units belong to owners by their number, so that no owner can be left
/// without; the rest is granted in regions of MIN_LOG2 … MAX_LOG2.
template <unsigned UNITS, unsigned OWNERS, unsigned STATIC_LOG2, unsigned MAX_LOG2>
class RegionPool {
  static constexpr unsigned MIN_LOG2 = STATIC_LOG2 + 1;
  static constexpr unsigned START = OWNERS << STATIC_LOG2;
  static constexpr unsigned GRANTED = UNITS - START;
  static constexpr unsigned ORDERS = MAX_LOG2 - MIN_LOG2 + 1;
  static_assert(START <= UNITS, "the static regions do not fit");
  static_assert(GRANTED % (1u << MAX_LOG2) == 0 && START % (1u << MAX_LOG2) == 0,
                "whole regions of the largest size");
  // Bits of order o: one for each region of 2^(MIN_LOG2 + o) units.
  static constexpr unsigned regions(unsigned order) { return GRANTED >> (MIN_LOG2 + order); }
  static constexpr unsigned first_word(unsigned order) {
    unsigned words = 0;
    for (unsigned o = 0; o < order; ++o) words += (regions(o) + 31) / 32;
    return words;
  }
  static constexpr unsigned WORDS = first_word(ORDERS) == 0 ? 1 : first_word(ORDERS);

 public:
  static constexpr unsigned LARGEST_LOG2 = GRANTED == 0 ? STATIC_LOG2 : MAX_LOG2;

  void init() {
    for (auto& word : free_) word = 0;
    for (unsigned n = 0; n < regions(ORDERS - 1); ++n) set(ORDERS - 1, n);
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
  /// a usable part. `ok` tells whether the need could be met; if not, nothing was taken.
  Region grant(unsigned owner, unsigned need_log2, unsigned want_log2, bool& ok) {
    ok = true;
    if (want_log2 > MAX_LOG2) want_log2 = MAX_LOG2;
    while (want_log2 > STATIC_LOG2 && want_log2 > need_log2 &&
           ((8u << want_log2) > units_free_ || ((24 + 5 * grants_) << want_log2) > 2 * GRANTED)) {
      --want_log2;
    }
    if (want_log2 < need_log2) want_log2 = need_log2;
    for (; want_log2 > STATIC_LOG2; --want_log2) {
      Region region;
      if (want_log2 <= MAX_LOG2 && cut(want_log2, region)) return region;
      if (want_log2 == need_log2) {
        ok = false;
        return owned(owner);
      }
    }
    return owned(owner);
  }

  /// Gives a region back; the owner's own one is nobody else's and stays.
  void give(Region region) {
    if (region.base < START) return;
    unsigned order = region.log2 - MIN_LOG2;
    unsigned n = static_cast<unsigned>(region.base - START) >> region.log2;
    units_free_ += 1u << region.log2;
    --grants_;
    while (order + 1 < ORDERS && take_bit(order, n ^ 1)) {
      n >>= 1;
      ++order;
    }
    set(order, n);
  }

  /// Units that nobody has (of those that are granted).
  unsigned units_free() const { return units_free_; }

 private:
  void set(unsigned order, unsigned n) {
    free_[first_word(order) + n / 32] |= uint32_t{1} << (n % 32);
  }
  // Clears the bit; whether it was set.
  bool take_bit(unsigned order, unsigned n) {
    uint32_t& word = free_[first_word(order) + n / 32];
    const uint32_t bit = uint32_t{1} << (n % 32);
    if ((word & bit) == 0) return false;
    word &= ~bit;
    return true;
  }
  bool cut(unsigned log2, Region& out) {
    if (GRANTED == 0 || log2 < MIN_LOG2) return false;
    const unsigned wanted = log2 - MIN_LOG2;
    for (unsigned order = wanted; order < ORDERS; ++order) {
      const unsigned words = (regions(order) + 31) / 32;
      for (unsigned w = 0; w < words; ++w) {
        uint32_t& word = free_[first_word(order) + w];
        if (word == 0) continue;
        unsigned n = 32 * w + static_cast<unsigned>(__builtin_ctz(word));
        word &= word - 1;
        for (unsigned o = order; o > wanted; --o) {   // the upper halves stay free
          n <<= 1;
          set(o - 1, n + 1);
        }
        units_free_ -= 1u << log2;
        ++grants_;
        out = {static_cast<uint16_t>(START + (n << log2)), static_cast<uint8_t>(log2)};
        return true;
      }
    }
    return false;
  }

  uint32_t free_[WORDS];
  uint32_t units_free_;
  uint32_t grants_;
};

}  // namespace roci::fw

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
  /// For a pool that is all zero: all numbers from `first` (0 or 1) on are free.
  void init(unsigned first = 0) {
    taken_[WORDS - 1] = tail(N);
    full_[SUMMARY - 1] = tail(WORDS);
    if (first != 0) taken_[0] |= 1;
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

/// A pool of units that is cut into regions of a power of two (buddy allocation). The first
/// OWNERS * 2^STATIC_LOG2 units belong to owners by their number, so that no owner can be left
/// without; the rest is granted in regions of MIN_LOG2 … MAX_LOG2.
/// KEEPS_HALF: half of what is granted is kept for needs, whoever wants more before.
template <unsigned UNITS, unsigned OWNERS, unsigned STATIC_LOG2, unsigned MAX_LOG2,
          bool KEEPS_HALF = false>
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
  struct Places {
    uint8_t first[ORDERS + 1];    // first word of each order
  };
  static constexpr Places make_places() {
    Places out{};
    for (unsigned o = 0; o < ORDERS; ++o) {
      out.first[o + 1] = static_cast<uint8_t>(out.first[o] + (regions(o) + 31) / 32);
    }
    return out;
  }
  static constexpr Places places = make_places();
  static constexpr unsigned first_word(unsigned order) { return places.first[order]; }
  static constexpr unsigned WORDS = places.first[ORDERS] == 0 ? 1 : places.first[ORDERS];

 public:
  /// What all owners together can have at most: who got a largest region leaves his own unused.
  static constexpr unsigned MOST_TOGETHER =
      GRANTED + ((OWNERS - (GRANTED >> MAX_LOG2)) << STATIC_LOG2);
  static constexpr unsigned LARGEST_LOG2 = GRANTED == 0 ? STATIC_LOG2 : MAX_LOG2;

  /// For a pool that is all zero: everything is free.
  void init() {
    constexpr unsigned LARGEST = regions(ORDERS - 1);
    for (unsigned n = 0; n < LARGEST; n += 32) {
      free_[first_word(ORDERS - 1) + n / 32] =
          LARGEST - n >= 32 ? ~uint32_t{0} : (uint32_t{1} << (LARGEST - n)) - 1;
    }
    orders_ = 1u << (ORDERS - 1);
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
  /// a usable part. With KEEPS_HALF it is 1/(12 + 6 n), so that the first 63 share half of the pool, and
  /// the other half stays. `ok` tells whether the need could be met; if not, nothing was taken.
  Region grant(unsigned owner, unsigned need_log2, unsigned want_log2, bool& ok) {
    ok = true;
    if (want_log2 > MAX_LOG2) want_log2 = MAX_LOG2;
    while (want_log2 > STATIC_LOG2 && want_log2 > need_log2 &&
           ((8u << want_log2) > units_free_ ||
            (KEEPS_HALF && GRANTED / 2 + (1u << want_log2) > units_free_) ||
            ((24 + (KEEPS_HALF ? 12 : 5) * grants_) << want_log2) > 2 * GRANTED)) {
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
    orders_ |= 1u << order;
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
    for (;;) {
      const uint32_t orders = orders_ & (~uint32_t{0} << wanted);
      if (orders == 0) return false;
      auto order = lowest(orders);
      uint32_t* word = &free_[first_word(order)];
      uint32_t* const end = &free_[first_word(order + 1)];
      unsigned n = 0;
      for (; word != end && *word == 0; ++word) n += 32;
      if (word == end) {
        orders_ &= ~(1u << order);
        continue;
      }
      n += lowest(*word);
      *word &= *word - 1;
      while (order != wanted) {   // the upper halves stay free
        n <<= 1;
        set(--order, n + 1);
      }
      units_free_ -= 1u << log2;
      ++grants_;
      out = {static_cast<uint16_t>(START + (n << log2)), static_cast<uint8_t>(log2)};
      return true;
    }
  }

  uint32_t free_[WORDS];
  uint32_t orders_;               // bit o: there may be free regions of order o
  uint32_t units_free_;
  uint32_t grants_;
};

}  // namespace roci::fw

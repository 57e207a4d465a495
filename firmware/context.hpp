// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Access to the contexts of the data path: single words, and images that the copy engine writes.
#pragma once

#include "bus.hpp"

namespace roci::fw {

/// Word `word` of the row of object `index` in `column`.
inline uint64_t ctx_read(hwif::CtxColumn column, uint32_t index, uint32_t word = 0) {
  bus::ctx_start_read(ctx_address(column, index, word));
  return bus::ctx_answer();
}

/// Writes a word of a row. Returns before it is done: accesses are in order.
inline void ctx_write(hwif::CtxColumn column, uint32_t index, uint32_t word, uint64_t data) {
  bus::ctx_start_write(ctx_address(column, index, word), data);
}

/// Word `n` of a row that was built in memory.
template <class Row>
uint64_t row_word(const Row& row, unsigned n) {
  if constexpr (sizeof(row.words[0]) == 8) {
    return row.words[n];
  } else {
    return uint64_t{row.words[2 * n + 1]} << 32 | row.words[2 * n];
  }
}

/// Puts word `n` into a row in memory.
template <class Row>
void set_row_word(Row& row, unsigned n, uint64_t value) {
  if constexpr (sizeof(row.words[0]) == 8) {
    row.words[n] = value;
  } else {
    row.words[2 * n] = static_cast<uint32_t>(value);
    row.words[2 * n + 1] = static_cast<uint32_t>(value >> 32);
  }
}

/// Copies words first … first + count - 1 of a layout (words of 4 or 8 bytes as it has them).
template <class Layout>
[[gnu::always_inline]] inline void copy_words(Layout& to, const Layout& from, unsigned first = 0,
                                              unsigned count = sizeof(Layout) /
                                                               sizeof(Layout{}.words[0])) {
#pragma GCC unroll 24
  for (unsigned n = first; n < first + count; ++n) to.words[n] = from.words[n];
}

/// Reads `count` words from `first` on into a row in memory.
template <class Row>
[[gnu::always_inline]] inline void ctx_read_row(Row& row, hwif::CtxColumn column, uint32_t index,
                                                unsigned first, unsigned count) {
#pragma GCC unroll 5
  for (unsigned n = first; n < first + count; ++n) {
    set_row_word(row, n, ctx_read(column, index, n));
  }
}

/// Lists of context words for the copy engine (format: rtl/cpu/cpu_context.sv), carried out in the order
/// in which groups are added. The engine has one list at a time; whoever touches the contexts next
/// waits for its end. There is room for one list that reads and one that writes.
namespace list {

/// Longest ones: that of QUERY_QP, and that of a new queue pair.
inline constexpr unsigned READ_WORDS = 40, WRITE_WORDS = 48;

struct Storage {
  alignas(8) uint8_t read[8 * READ_WORDS];
  alignas(8) uint8_t write[8 * WRITE_WORDS];
};
extern Storage storage;

// in the upper half of a header
constexpr uint32_t LAST = 1u << 31, READ = 1u << 30, BY_INDEX = 1u << 29;

using Half [[gnu::may_alias]] = uint32_t;

/// Writes a header at `at`.
inline void put_header(uint8_t* at, hwif::CtxColumn column, uint32_t index, unsigned first,
                       uint32_t upper) {
  auto* const half = reinterpret_cast<Half*>(at);
  half[0] = ctx_address(column, index, first);
  half[1] = upper;
}

}  // namespace list

/// A group of a list that lies ready: words FIRST … FIRST + COUNT - 1 of the object whose index comes
/// with the start of the list, so its header never changes. Such a list is a struct of groups; the last
/// has LAST.
template <hwif::CtxColumn COLUMN, unsigned FIRST, unsigned COUNT, uint32_t LAST = 0>
struct alignas(8) Group {
  uint32_t header[2] = {ctx_address(COLUMN, 0, FIRST), LAST | COUNT};
  uint32_t words[2 * COUNT] = {};

  template <class Row>
  [[gnu::always_inline]] void put(const Row& row) {
    static_assert(8 * (FIRST + COUNT) <= Row::BYTES);
    using Word [[gnu::may_alias]] = typename Row::Word;
    constexpr unsigned PER_8 = 8 / sizeof(Word);
    auto* const to = reinterpret_cast<Word*>(words);
#pragma GCC unroll 10
    for (unsigned n = 0; n < PER_8 * COUNT; ++n) to[n] = row.words[PER_8 * FIRST + n];
  }
};

/// A list that reads rows. Add all, start(), do something else, wait(), and then look at the rows. They
/// may be changed where they are.
class Reads {
 public:
  /// Waits until the engine has finished the list before.
  [[gnu::always_inline]] Reads() { bus::ctx_failed(); }

  /// Adds words 0 … `count` - 1 of a row; the others of what is returned must not be looked at.
  template <class Row>
  [[gnu::always_inline]] Row& add(hwif::CtxColumn column, uint32_t index,
                                  unsigned count = Row::BYTES / 8) {
    uint8_t* const at = list::storage.read + at_;
    list::put_header(at, column, index, 0, list::READ | count);
    last_ = at_;
    at_ += 8 + 8 * count;
    return *reinterpret_cast<Row*>(at + 8);
  }

  [[gnu::always_inline]] void start() {
    reinterpret_cast<list::Half*>(list::storage.read + last_)[1] |= list::LAST;
    bus::ctx_list(list::storage.read);
  }
  [[gnu::always_inline]] void wait() { bus::ctx_failed(); }
  /// Starts to write the first `count` words of the last row back.
  [[gnu::always_inline]] void write_back(unsigned count) {
    reinterpret_cast<list::Half*>(list::storage.read + last_)[1] = list::LAST | count;
    bus::ctx_list(list::storage.read + last_);
  }

 private:
  uint32_t at_ = 0;      // bytes
  uint32_t last_ = 0;    // last header
};

/// A list that writes words. send() starts it.
class Image {
 public:
  /// Waits until the engine has finished the list before.
  [[gnu::always_inline]] Image() { bus::ctx_failed(); }

  /// Adds a whole row, or the words first … first + count - 1 of it.
  template <class Row>
  [[gnu::always_inline]] void row(hwif::CtxColumn column, uint32_t index, const Row& row,
                                  unsigned first = 0, unsigned count = Row::BYTES / 8) {
    using Word [[gnu::may_alias]] = typename Row::Word;
    constexpr unsigned PER_8 = 8 / sizeof(Word);
    uint8_t* const at = list::storage.write + at_;
    list::put_header(at, column, index, first, count);
    auto* const to = reinterpret_cast<Word*>(at + 8);
#pragma GCC unroll 10
    for (unsigned n = 0; n < PER_8 * count; ++n) to[n] = row.words[PER_8 * first + n];
    last_ = at_;
    at_ += 8 + 8 * count;
  }

  /// Starts the engine.
  [[gnu::always_inline]] void send() {
    reinterpret_cast<list::Half*>(list::storage.write + last_)[1] |= list::LAST;
    bus::ctx_list(list::storage.write);
  }
  /// As send, unless nothing was added.
  void send_if_any() {
    if (at_ != 0) send();
  }

 private:
  uint32_t at_ = 0;      // bytes
  uint32_t last_ = 0;    // last header
};

}  // namespace roci::fw

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
  uint64_t out;
  __builtin_memcpy(&out, row.data() + 8 * n, 8);
  return out;
}

/// Puts word `n` into a row in memory.
template <class Row>
void set_row_word(Row& row, unsigned n, uint64_t value) {
  __builtin_memcpy(row.data() + 8 * n, &value, 8);
}

/// Reads `count` words from `first` on into a row in memory.
template <class Row>
void ctx_read_row(Row& row, hwif::CtxColumn column, uint32_t index, unsigned first,
                  unsigned count) {
  for (unsigned n = first; n < first + count; ++n) {
    set_row_word(row, n, ctx_read(column, index, n));
  }
}

/// A list of context words for the copy engine (format: rtl/cpu/cpu_context.sv). Words are written in
/// the order in which they are added. One image exists at a time; send() starts it and the next
/// access to the contexts waits for its end.
class Image {
 public:
  /// Waits until the engine has read the image before.
  Image();

  /// Adds words `first` … of a row; `row` points at word `first`.
  void add(hwif::CtxColumn column, uint32_t index, unsigned first, unsigned count,
           const void* row);

  /// Adds a whole row, or the words first … first + count - 1 of it.
  template <class Row>
  void row(hwif::CtxColumn column, uint32_t index, const Row& row, unsigned first = 0,
           unsigned count = Row::BYTES / 8) {
    add(column, index, first, count, row.data() + 8 * first);
  }

  /// Starts the engine.
  void send();
  /// As send, unless nothing was added.
  void send_if_any() {
    if (at_ != 0) send();
  }

 private:
  uint32_t at_ = 0;      // next free word
  uint32_t last_ = 0;    // last header
};

}  // namespace roci::fw

// SPDX-License-Identifier: BSD-2-Clause-Patent
#include "context.hpp"

namespace roci::fw {

namespace {
// The longest image is that of a new queue pair: 26 words and 14 headers.
constexpr unsigned LIST_WORDS = 48;
uint64_t list[LIST_WORDS];
}  // namespace

Image::Image() { bus::ctx_failed(); }

void Image::add(hwif::CtxColumn column, uint32_t index, unsigned first, unsigned count,
                const void* row) {
  if (at_ + 1 + count > LIST_WORDS) __builtin_trap();
  last_ = at_;
  list[at_++] = uint64_t{count} << 32 | ctx_address(column, index, first);
  __builtin_memcpy(&list[at_], row, 8 * count);
  at_ += count;
}

void Image::send() {
  list[last_] |= uint64_t{1} << 63;
  bus::ctx_list(list);
}

}  // namespace roci::fw

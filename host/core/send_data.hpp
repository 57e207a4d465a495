// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// What all posting to send queues shares: where the payload comes from, the place of a request in the
// ring, the doorbell.
#pragma once

#include "rings.hpp"
#include "wqe_builder.hpp"

#include <roci/qp.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace roci {

// Where the payload comes from. Each knows its size before anything is written. One piece is the rule,
// and a loop costs more to begin than the piece.

inline uint64_t length_of(const ibv_sge* list, unsigned count) noexcept {
  if (count == 1) [[likely]] return list->length;
  uint64_t length = 0;
  for (unsigned i = 0; i < count; ++i) length += list[i].length;
  return length;
}

// SGEs.
struct SgeData {
  const ibv_sge* list;
  unsigned count;
  uint64_t length;

  SgeData(const ibv_sge* list, unsigned count)
      : list(list), count(count), length(length_of(list, count)) {}
  unsigned sges() const noexcept { return count; }
  size_t bytes() const noexcept { return count * sizeof(ibv_sge); }
  void copy(std::byte* to) const noexcept { wqe::sges(to, list, count); }
};

// Bytes in pieces that SGEs describe.
struct InlineSges {
  const ibv_sge* list;
  unsigned count;
  uint64_t length;

  InlineSges(const ibv_sge* list, unsigned count)
      : list(list), count(count), length(length_of(list, count)) {}
  unsigned sges() const noexcept { return 0; }
  size_t bytes() const noexcept { return length; }
  void copy(std::byte* to) const noexcept {
    for (unsigned i = 0; i < count; ++i) {
      if (list[i].length == 0) continue;  // its address may be null
      std::memcpy(to, reinterpret_cast<const void*>(list[i].addr), list[i].length);
      to += list[i].length;
    }
  }
};

// Bytes in pieces.
struct InlineBuffers {
  const ibv_data_buf* list;
  size_t count;
  uint64_t length = 0;

  InlineBuffers(const ibv_data_buf* list, size_t count) : list(list), count(count) {
    for (size_t i = 0; i < count; ++i) length += list[i].length;
  }
  unsigned sges() const noexcept { return 0; }
  size_t bytes() const noexcept { return length; }
  void copy(std::byte* to) const noexcept {
    for (size_t i = 0; i < count; ++i) {
      if (list[i].length == 0) continue;  // its address may be null
      std::memcpy(to, list[i].addr, list[i].length);
      to += list[i].length;
    }
  }
};

constexpr uint64_t progress_of(uint32_t next, uint32_t count) noexcept {
  return next | (uint64_t{count} << 32);
}

// Room for one more request of this many blocks, or nullptr if the queue is full. A request does not
// cross a line: what is left of the line becomes a NOP.
inline std::byte* Qp::place(unsigned blocks) noexcept {
  const uint64_t completed = sq_.completed.load(std::memory_order_acquire);
  const auto tail = static_cast<uint32_t>(completed);
  const auto done = static_cast<uint32_t>(completed >> 32);
  const unsigned room = hwif::SQ_LINE_BLOCKS - (sq_.head % hwif::SQ_LINE_BLOCKS);
  const unsigned skip = room < blocks ? room : 0;
  if (sq_.count - done >= sq_.max_wr || sq_.head + skip + blocks - tail > sq_.mask + 1) {
    return nullptr;
  }
  if (skip != 0) [[unlikely]] {
    const uint32_t at = sq_.head & sq_.mask;
    wqe::pad(sq_.ring + at * size_t{hwif::SQ_BLOCK_BYTES}, skip);
    sq_.head += skip;
    sq_.info[at] = {0, progress_of(sq_.head, sq_.count)};
  }
  return sq_.ring + (sq_.head & sq_.mask) * size_t{hwif::SQ_BLOCK_BYTES};
}

// Announces everything up to `head`.
inline void Qp::ring_send() noexcept {
  sq_.posted.store(sq_.head, std::memory_order_release);
  const uint64_t doorbell = sq_.doorbell_base | (sq_.head & SQ_INDEX_MASK);
  barrier_before_doorbell();
  if (doorbell_ != nullptr) {
    *doorbell_ = doorbell;
  } else {
    transport_.ring(doorbell_page_, doorbell);
  }
}

}  // namespace roci

// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Rings shared with the device: indexes in doorbells, and when an entry is there.
#pragma once

#include "barrier.hpp"

#include <roci_hwif.hpp>

#include <cstddef>
#include <cstdint>

namespace roci {

/// What doorbells take of a free-running index: those of send and receive queues.
inline constexpr uint32_t SQ_INDEX_MASK = (1u << hwif::SQ_INDEX_BITS) - 1;
/// Those of completion and event queues.
inline constexpr uint32_t CQ_INDEX_MASK = (1u << hwif::CQ_INDEX_BITS) - 1;

/// Whether the device has written the entry at this free-running index of its ring. What is read from
/// the entry afterwards is not older.
/// @param entry  layout Entry, with its phase bit in the last bit
/// @param log2   of the ring's entries
template <class Entry>
inline bool is_written(const std::byte* entry, uint32_t index, unsigned log2) noexcept {
  static_assert(Entry::phase::AT == sizeof(Entry) * 8 - 1);
  const unsigned phase = hwif::PHASE_FIRST_LAP ^ ((index >> log2) & 1);
  return (load_phase_byte(entry + sizeof(Entry) - 1) >> 7) == phase;
}

}  // namespace roci

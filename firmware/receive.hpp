// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Receive queues of queue pairs and SRQs: their rows and their slots on the chip.
#pragma once

#include "rings.hpp"
#include "state.hpp"

namespace roci::fw {

/// Slots for a receive queue (number `owner` of column RQ): two entries at least, more if there are.
/// log2 = 0: not even that.
inline Region grant_slots(unsigned owner, uint32_t ring_log2, uint32_t stride_code) {
  const unsigned entry_log2 = stride_code <= 1 ? 0 : stride_code - 1;   // slots of an entry
  const unsigned need = entry_log2 + 1;                                  // two entries
  const Region region = state.slots.grant(owner, need, entry_log2 + ring_log2);
  return region.log2 < need ? Region{} : region;
}

/// Row of column RQ, words 0 and 1.
inline hwif::CtxRq receive_row(uint64_t ring, uint32_t ring_log2, uint32_t stride_code, unsigned fn,
                               Region slots, bool valid) {
  using R = hwif::CtxRq;
  R row{};
  row.set<R::log2_entries>(static_cast<uint8_t>(ring_log2));
  row.set<R::fn>(static_cast<uint8_t>(fn));
  row.set<R::ring_page>(ring / RING_ALIGNMENT);
  row.set<R::slot_base>(slots.base);
  row.set<R::slot_log2>(slots.log2);
  row.set<R::stride_code>(static_cast<uint8_t>(stride_code));
  row.set<R::valid>(valid);
  return row;
}

/// The slots that a row of column RQ tells of.
inline Region slots_of(const hwif::CtxRq& row) {
  using R = hwif::CtxRq;
  return {row.get<R::slot_base>(), row.get<R::slot_log2>()};
}

}  // namespace roci::fw

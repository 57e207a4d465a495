// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Receive queues of queue pairs and SRQs: their rows and their slots on the chip.
#pragma once

#include "state.hpp"

namespace roci::fw {

/// Slots for a receive queue (number `owner` of column RQ): two entries at least, more if there are.
/// False: not even that.
bool grant_slots(unsigned owner, uint32_t ring_log2, uint32_t stride_code, Region& region);

/// Row of column RQ, words 0 and 1.
hwif::CtxRq receive_row(uint64_t ring, uint32_t ring_log2, uint32_t stride_code, unsigned fn,
                        Region slots, bool valid);

/// The slots that receive queue `queue` has.
Region slots_of(unsigned queue);

}  // namespace roci::fw

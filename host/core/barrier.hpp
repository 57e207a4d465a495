// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Memory barriers, named for what they are used for.
#pragma once

#include <atomic>
#include <cstdint>

namespace roci {

/// Work requests written before it are seen by a device that sees a doorbell written after it.
/// Doorbell pages are uncached, so that on x86 the order of stores is enough (no write combining).
inline void barrier_before_doorbell() noexcept {
#if defined(__x86_64__)
  std::atomic_signal_fence(std::memory_order_seq_cst);
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

/// Loads the byte with the phase bit, which the device writes last; what is read after it is not older.
inline uint8_t load_phase_byte(const void* byte) noexcept {
  return __atomic_load_n(static_cast<const uint8_t*>(byte), __ATOMIC_ACQUIRE);
}

}  // namespace roci
